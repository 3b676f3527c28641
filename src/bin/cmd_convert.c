/*
 * cmd_convert.c - headrace convert: cedar's statistics to a profile of a graph, its plans
 * to orders of a graph's nodes, and a profile to cedar's statistics.
 */
#include "graph_file.h"
#include "headrace/cedar.h"
#include "out.h"
#include "text_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct convert_command {
    struct cli_params params, map;
    const char *output, *pipes;
    int strictness; /* enum hr_strictness */
    bool order;
};

#define AT(field) offsetof(struct convert_command, field)

/* clang-format off */
static const struct cli_option convert_table[] = {
    CLI_OPTION_PARAM,
    {"output", 'o', CLI_TEXT, AT(output), "FILE",
     "write to FILE instead of stdout"},
    {"pipes", 0, CLI_TEXT, AT(pipes), "FILE",
     "cedar's plan file: read for the order of the pipes if there is a GRAPH, else written "
     "with the names of the nodes"},
    {"map", 0, CLI_PARAM, AT(map), "ID=node",
     "pipe ID is the work of this node of GRAPH; may be repeated. Default: pipes and nodes "
     "in their order"},
    {"order", 0, CLI_FLAG, AT(order), NULL,
     "FILE is a plan of cedar: write GRAPH with its nodes in the plan's order"},
    {"strictness", 0, CLI_CHOICE, AT(strictness), "exact|close|relaxed",
     "how far records may differ with --order: not at all (default), by rounding, or as "
     "other augmentations of the same record"},
};

static const struct cli_example convert_examples[] = {
    {"headrace convert stats.yml train.yaml -p data=photos -o profile.json",
     "cedar's statistics as a profile of a graph with as many nodes"},
    {"headrace convert stats.yml train.yaml --map 8=image.decode --map 7=crop -o profile.json",
     "of some nodes, for headrace optimize --profile"},
    {"headrace convert plan.yml train.yaml --order --strictness relaxed -o faster.yaml",
     "a graph in the order that cedar's optimizer found"},
    {"headrace convert profile.json -o stats.yml --pipes plan.yml",
     "a profile as statistics and plan for headrace cedar or cedar itself"},
};
/* clang-format on */

/* ---- to a profile or a graph ---- */

static int read_map(const struct cli_params *map, struct hr_cedar_match *matches)
{
    for (size_t i = 0; i < map->count; i++) {
        const char *id = map->items[i].name;
        char *end = NULL;

        errno = 0;
        matches[i] = (struct hr_cedar_match){strtoll(id, &end, 10), map->items[i].value};
        if (*id < '0' || *id > '9' || *end != '\0' || errno != 0)
            return cli_usage("--map %s=%s: the number of a pipe is wanted before '='", id,
                             map->items[i].value);
    }
    return CLI_OK;
}

static int
profile_text(const struct hr_cedar_text *stats, const struct hr_cedar_text *pipes,
             struct hr_graph *graph, const struct hr_cedar_match *matches,
             size_t match_count, char **ret_text)
{
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};
    int code = CLI_OK;

    if (hr_cedar_to_profile(stats, pipes, graph, matches, match_count, &profile,
                            &error) != HR_OK ||
        hr_profile_print(profile, ret_text, &error) != HR_OK)
        code = cli_library(&error);
    hr_profile_free(profile);
    return code;
}

static int graph_text(const struct hr_cedar_text *plan, struct hr_graph *graph,
                      const struct hr_cedar_match *matches, size_t match_count,
                      const struct convert_command *command, char **ret_text)
{
    struct hr_graph *ordered = NULL;
    struct hr_error error = {0};
    int code = CLI_OK;

    if (hr_cedar_to_graph(plan, graph, matches, match_count,
                          (enum hr_strictness)command->strictness, &ordered,
                          &error) != HR_OK ||
        hr_graph_print(ordered, graph_file_format(command->output), ret_text, &error) !=
            HR_OK)
        code = cli_library(&error);
    hr_graph_unref(ordered);
    return code;
}

/* `pipes` is NULL if it was not given. */
static int
with_graph(const struct convert_command *command, const struct hr_cedar_text *file,
           const struct hr_cedar_text *pipes, const char *path, char **ret_text)
{
    struct hr_cedar_match *matches = calloc(command->map.count + 1, sizeof(*matches));
    struct hr_graph *graph = NULL;
    size_t count = command->map.count;
    int code;

    if (matches == NULL)
        return cli_failed("out of memory");
    code = read_map(&command->map, matches);
    if (code == CLI_OK)
        code = graph_file_open(path, &command->params, &graph);
    if (code == CLI_OK && command->order)
        code = graph_text(file, graph, matches, count, command, ret_text);
    else if (code == CLI_OK)
        code = profile_text(file, pipes, graph, matches, count, ret_text);
    hr_graph_unref(graph);
    free(matches);
    return code;
}

static int with_pipes(const struct convert_command *command,
                      const struct hr_cedar_text *file, const char *path, char **ret_text)
{
    struct hr_cedar_text pipes = {NULL, 0, command->pipes};
    char *text = NULL;
    int code;

    if (command->pipes == NULL)
        return with_graph(command, file, NULL, path, ret_text);
    if (command->order)
        return cli_usage("--pipes does not go with --order: FILE has the pipes");
    code = text_file_read(command->pipes, "a plan of cedar", &text);
    if (code == CLI_OK) {
        pipes.text = text;
        pipes.bytes = strlen(text);
        code = with_graph(command, file, &pipes, path, ret_text);
    }
    free(text);
    return code;
}

/* ---- from a profile ---- */

static int from_profile(const struct convert_command *command,
                        const struct hr_cedar_text *file, char **ret_text)
{
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};
    char *names = NULL;
    int code = CLI_OK;

    if (command->map.count > 0 || command->params.count > 0 || command->order)
        return cli_usage("--map, --param and --order need a GRAPH");
    if (command->output != NULL && command->pipes != NULL &&
        out_is_same(command->output, command->pipes))
        return cli_usage("--output and --pipes are the same file, %s: each needs its own",
                         command->pipes);
    if (hr_profile_parse(file->text, file->bytes, file->name, &profile, &error) !=
            HR_OK ||
        hr_cedar_from_profile(profile, ret_text, &names, &error) != HR_OK)
        code = cli_library(&error);
    else if (command->pipes != NULL)
        code = out_replace(command->pipes, names);
    hr_free(names);
    hr_profile_free(profile);
    return code;
}

static int convert_run(void *values, const struct cli_rest *rest)
{
    const struct convert_command *command = values;
    struct hr_cedar_text file = {NULL, 0, rest->words[0]};
    bool to = rest->count > 1;
    char *text = NULL, *made = NULL;
    int code = text_file_read(file.name, to ? "a file of cedar" : "a profile", &text);

    if (code == CLI_OK) {
        file.text = text;
        file.bytes = strlen(text);
        code = to ? with_pipes(command, &file, rest->words[1], &made)
                  : from_profile(command, &file, &made);
    }
    if (code == CLI_OK && command->output != NULL)
        code = out_replace(command->output, made);
    else if (code == CLI_OK)
        printf("%s%s", made, to && !command->order ? "\n" : "");
    hr_free(made);
    free(text);
    return code;
}

const struct cli_command cmd_convert = {
    .name = "convert",
    .summary = "turn cedar's statistics and plans into ours, and back",
    .args = "FILE [GRAPH]",
    .args_min = 1,
    .args_max = 2,
    .text =
        "With a GRAPH, FILE is a statistics file of cedar (VLDB 2024), and the result a "
        "profile of that graph, for headrace optimize --profile; with --order, FILE is a "
        "plan of cedar, and the result the graph in its order. Without a GRAPH, FILE is "
        "a "
        "profile of headrace profile -o, and the result a statistics file; its nodes are "
        "taken for one chain. docs/formats/cedar.md describes cedar's files.",
    CLI_OPTIONS(convert_table, struct convert_command),
    CLI_EXAMPLES(convert_examples),
    .run = convert_run,
};
