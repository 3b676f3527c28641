/*
 * headrace.c - main(): finds the subcommand and passes it the remaining arguments.
 */
#include "cli.h"

#include <errno.h>
#include <locale.h>
#include <string.h>

extern const struct cli_command cmd_run, cmd_init, cmd_inspect, cmd_explain, cmd_plan,
    cmd_profile, cmd_optimize, cmd_cedar, cmd_convert, cmd_ops, cmd_pack, cmd_synth,
    cmd_index, cmd_jpeg, cmd_bench, cmd_doctor, cmd_dispatcher, cmd_worker, cmd_status,
    cmd_workers, cmd_jobs, cmd_consumers, cmd_top, cmd_drain, cmd_evict, cmd_help,
    cmd_version, cmd_completion;

const struct cli_command *const cli_commands[] = {
    &cmd_run,     &cmd_init,       &cmd_inspect,    &cmd_explain, &cmd_plan,
    &cmd_profile, &cmd_optimize,   &cmd_cedar,      &cmd_convert, &cmd_pack,
    &cmd_ops,     &cmd_synth,      &cmd_index,      &cmd_jpeg,    &cmd_bench,
    &cmd_doctor,  &cmd_dispatcher, &cmd_worker,     &cmd_status,  &cmd_workers,
    &cmd_jobs,    &cmd_consumers,  &cmd_top,        &cmd_drain,   &cmd_evict,
    &cmd_help,    &cmd_version,    &cmd_completion, NULL,
};

/* Unwritten output (a full disk) must not look like success. */
static int close_stdout(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "headrace: cannot write to standard output: %s\n", strerror(errno));
    return code == CLI_OK ? CLI_FAILED : code;
}

int main(int argc, char **argv)
{
    const struct cli_command *command;
    const char *name = argc > 1 ? argv[1] : "";

    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        cli_print_overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    command = cli_find(name);
    if (command == NULL) { /* help suggests the nearest command */
        char *words[] = {argv[1]};

        if (name[0] == '-')
            return cli_usage("unknown option %s (headrace --help lists the commands)",
                             name);
        return cli_run(&cmd_help, 1, words);
    }
    return close_stdout(cli_run(command, argc - 2, argv + 2));
}
