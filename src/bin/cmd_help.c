/*
 * cmd_help.c - headrace help, version and completion.
 */
#include "cli.h"
#include "graph_file.h"
#include "out.h"

#include <string.h>

struct help_options {
    bool man;
};
/* clang-format off */
static const struct cli_option help_table[] = {
    {"man", 0, CLI_FLAG, offsetof(struct help_options, man), NULL,
     "print the manual page of all commands, for groff"},
};

static const struct cli_example help_examples[] = {
    {"headrace help run",
     "same as headrace run --help"},
    {"headrace help --man | man -l -",
     "read the manual page without installing it"},
};
/* clang-format on */

static int unknown_command(const char *name)
{
    const char *names[32];
    size_t count = 0;
    char nearest[96];

    for (; cli_commands[count] != NULL; count++)
        names[count] = cli_commands[count]->name;
    return cli_usage("unknown command '%s'%s", name,
                     cli_nearest(name, names, count, nearest, sizeof(nearest)));
}

static int help_run(void *values, const struct cli_rest *rest)
{
    const struct help_options *options = values;

    if (options->man)
        cli_print_man(stdout);
    else if (rest->count == 0)
        cli_print_overview(stdout);
    else if (cli_find(rest->words[0]) == NULL)
        return unknown_command(rest->words[0]);
    else
        cli_print_help(cli_find(rest->words[0]), stdout);
    return CLI_OK;
}

const struct cli_command cmd_help = {
    .name = "help",
    .summary = "show this help, or a command's",
    .args = "[COMMAND]",
    .args_max = 1,
    .text = "Lists the commands, or describes one.",
    CLI_OPTIONS(help_table, struct help_options),
    CLI_EXAMPLES(help_examples),
    .run = help_run,
};

struct version_options {
    bool json;
};

#define AT(field) offsetof(struct version_options, field)

/* clang-format off */
static const struct cli_option version_table[] = {
    CLI_OPTION_JSON,
};

static const struct cli_example version_examples[] = {
    {"headrace version",
     "print \"headrace\" and the library's version"},
};
/* clang-format on */

static int version_run(void *values, const struct cli_rest *rest)
{
    const struct version_options *options = values;
    struct json json = {.out = stdout};

    (void)rest;
    if (!options->json) {
        printf("headrace %s\n", hr_version());
        return CLI_OK;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "version", hr_version());
    json_close(&json, '}');
    json_end(&json);
    return CLI_OK;
}

const struct cli_command cmd_version = {
    .name = "version",
    .summary = "show the version",
    .args = "",
    .text = "Shows the version of the library in use.",
    CLI_OPTIONS(version_table, struct version_options),
    CLI_EXAMPLES(version_examples),
    .run = version_run,
};

struct completion_options {
    const char *params;
};

/* clang-format off */
static const struct cli_option completion_table[] = {
    {"params", 0, CLI_TEXT, offsetof(struct completion_options, params), "GRAPH",
     "print what -p can set in the graph, for the scripts"},
};

static const struct cli_example completion_examples[] = {
    {"eval \"$(headrace completion bash)\"",
     "enable completion in the current bash"},
    {"headrace completion zsh > ~/.zfunc/_headrace", "the same for zsh, in a folder of fpath"},
    {"headrace completion fish > ~/.config/fish/completions/headrace.fish", "the same for fish"},
};
/* clang-format on */

static int completion_run(void *values, const struct cli_rest *rest)
{
    const struct completion_options *options = values;

    if (options->params != NULL)
        return graph_file_complete(options->params);
    if (rest->count == 0)
        return cli_usage("headrace completion expects bash|zsh|fish (see headrace "
                         "completion --help)");
    if (!cli_print_completion(rest->words[0], stdout))
        return cli_usage("completion supports bash, zsh and fish, not '%s'",
                         rest->words[0]);
    return CLI_OK;
}

const struct cli_command cmd_completion = {
    .name = "completion",
    .summary = "print a completion script for a shell",
    .args = "bash|zsh|fish",
    .complete = "bash zsh fish",
    .args_max = 1,
    .text = "Prints a script that completes commands, options, operators, files, and "
            "after -p the parameters of the graph on the command line with their values.",
    CLI_OPTIONS(completion_table, struct completion_options),
    CLI_EXAMPLES(completion_examples),
    .run = completion_run,
};
