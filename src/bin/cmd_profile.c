/*
 * cmd_profile.c - headrace profile: measures what each node of a graph costs.
 */
#include "graph_file.h"
#include "headrace/profile.h"
#include "out.h"
#include "profile_file.h"
#include "progress.h"
#include "stop.h"
#include "term.h"

#include <math.h>
#include <string.h>

struct profile_command {
    struct cli_params params;
    const char *output;
    int64_t records, seconds, width, threads, seed;
    int variant; /* enum hr_variant */
    bool fuse, save, merge, json, quiet;
};

/* Of the CPU time: what nodes may be off by without being named. */
#define HARDLY 0.001

#define AT(field) offsetof(struct profile_command, field)

/* clang-format off */
static const struct cli_option profile_table[] = {
    CLI_OPTION_PARAM,
    {"output", 'o', CLI_TEXT, AT(output), "FILE",
     "write the profile to FILE, as JSON"},
    {"records", 0, CLI_INT, AT(records), "N",
     "stop after N records of the sources; default: no limit", 1, INT64_MAX},
    {"seconds", 0, CLI_INT, AT(seconds), "S",
     "measure for about S seconds at most; default 5", 1, 86400},
    {"width", 0, CLI_INT, AT(width), "PERCENT",
     "stop once the 95 % confidence intervals are this narrow, those of all costs together "
     "and those of the nodes with much of the time; default 5", 1, 100},
    {"variant", 0, CLI_CHOICE, AT(variant), "threads|inline|processes",
     "where nodes run: in threads, in the calling thread (default), or in worker "
     "processes where a step supports it"},
    {"threads", 0, CLI_INT, AT(threads), "N",
     "number of threads, unless inline; default: the CPUs that this process may use", 0, 4096},
    {"fuse", 0, CLI_FLAG, AT(fuse), NULL,
     "compose nodes as a run would; by default each makes its own result, so that each has "
     "its own cost"},
    {"save", 0, CLI_FLAG, AT(save), NULL,
     "keep it in the user's cache folder, merged with what is there; headrace optimize uses "
     "what --fuse measured"},
    {"merge", 0, CLI_FLAG, AT(merge), NULL,
     "measure nothing: merge the profiles in FILES, where older measurements count less"},
    {"seed", 0, CLI_INT, AT(seed), "S",
     "seed for order and augmentation; default 0"},
    {"json", 0, CLI_FLAG, AT(json), NULL,
     "print the profile instead of a table"},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "no progress output and no table"},
};

static const struct cli_example profile_examples[] = {
    {"headrace profile examples/vision_rrc.yaml -p data=photos",
     "what each node costs, in a few seconds"},
    {"headrace profile train.yaml -o profile.json",
     "keep it"},
    {"headrace profile train.yaml --fuse --save",
     "costs that headrace optimize finds on this machine"},
    {"headrace profile --merge monday.json friday.json -o week.json",
     "two measurements as one"},
    {"headrace profile train.yaml --variant threads --fuse --seconds 20",
     "costs while all cores are busy and nodes are composed"},
};
/* clang-format on */

static const char *percent(char *text, size_t room, double part)
{
    if (part < 0)
        snprintf(text, room, "-");
    else
        snprintf(text, room, "%.*f %%", part < 0.0995 ? 1 : 0, part * 100);
    return text;
}

static void print_node(const struct hr_profile_info *n, int width)
{
    double kept = n->records_in > 0 ? (double)n->records_out / (double)n->records_in : 1;
    char records[32], cpu[24], waits[24], in[24], out[24], fixed[16], within[16];

    printf("%-*s %9s %10s %10s %9s %9s %7.3g %6s %6s\n", width, n->node,
           term_count(records, sizeof(records), n->records_in),
           term_seconds(cpu, sizeof(cpu), n->cpu_ns * 1e-9),
           term_seconds(waits, sizeof(waits), n->wait_ns * 1e-9),
           term_bytes(in, sizeof(in), n->bytes_in),
           term_bytes(out, sizeof(out), n->bytes_out), kept,
           percent(fixed, sizeof(fixed), n->fixed),
           percent(within, sizeof(within), n->width));
}

/* Names the nodes whose costs are less sure than `limit`, but for those that hardly
 * count.
 */
static void print_unsure(const struct hr_profile *profile, double limit)
{
    struct hr_profile_info node, worst;
    double all = 0, part = 0, squares = 0, most = 0, share = 0;
    size_t count = 0;
    char parts[5][16];

    for (size_t i = 0; hr_profile_node(profile, i, &node) == HR_OK; i++)
        all += node.cpu_ns * (double)node.records_in;
    for (size_t i = 0; all > 0 && hr_profile_node(profile, i, &node) == HR_OK; i++) {
        double its = node.cpu_ns * (double)node.records_in / all;
        double off = its * (node.width >= 0 ? node.width : 1);

        squares += off * off;
        if (off < HARDLY || (node.width >= 0 && node.width <= limit))
            continue;
        count++;
        part += its;
        if (off <= most)
            continue;
        most = off;
        share = its;
        worst = node;
    }
    if (count == 0)
        return;
    printf("\n%zu %s of %s of the CPU time %s not known to within %s, above all %s: %s "
           "of the time, +- %s. The sum is known to within %s.\n",
           count, count == 1 ? "node" : "nodes", percent(parts[0], 16, part),
           count == 1 ? "is" : "are", percent(parts[1], 16, limit), worst.node,
           percent(parts[2], 16, share),
           worst.width < 0 ? "unknown" : percent(parts[3], 16, worst.width),
           percent(parts[4], 16, sqrt(squares)));
}

static void print_table(const struct hr_profile *profile, const char *path, double limit)
{
    struct hr_profile_info node;
    char seconds[24];
    int width = 4;

    for (size_t i = 0; hr_profile_node(profile, i, &node) == HR_OK; i++)
        if ((int)strlen(node.node) > width)
            width = (int)strlen(node.node);
    printf("%s%s%s, %s; per record\n\n", term_bold(stdout), path, term_plain(stdout),
           term_seconds(seconds, sizeof(seconds), hr_profile_seconds(profile)));
    printf("%s%-*s %9s %10s %10s %9s %9s %7s %6s %6s%s\n", term_bold(stdout), width,
           "node", "records", "CPU", "waited", "bytes in", "out", "kept", "fixed", "+-",
           term_plain(stdout));
    for (size_t i = 0; hr_profile_node(profile, i, &node) == HR_OK; i++)
        print_node(&node, width);
    print_unsure(profile, limit);
}

static int show(const struct hr_profile *profile, const struct profile_command *command,
                const char *path)
{
    struct hr_error error = {0};
    char *text = NULL;
    int code = CLI_OK;

    if (hr_profile_print(profile, &text, &error) != HR_OK)
        return cli_library(&error);
    if (command->output != NULL)
        code = out_replace(command->output, text);
    if (code == CLI_OK && command->json)
        printf("%s\n", text);
    else if (code == CLI_OK && !command->quiet)
        print_table(profile, path, (double)command->width / 100);
    hr_free(text);
    return code;
}

static int measure(struct hr_graph *graph, const struct profile_command *command,
                   struct hr_profile **ret_profile)
{
    struct hr_profile_options options;
    struct hr_error error = {0};
    struct progress progress;
    enum hr_err code;

    hr_profile_options_init(&options);
    options.seed = (uint64_t)command->seed;
    options.records_max = command->records;
    options.seconds_max = (double)command->seconds;
    options.width = (double)command->width / 100;
    options.variant = (enum hr_variant)command->variant;
    options.threads = (int)command->threads;
    options.fuse = command->fuse;
    options.progress = progress_count;
    options.user = &progress;
    progress_begin(&progress, command->quiet, "records");
    stop_watch(NULL);
    code = hr_graph_profile(graph, &options, ret_profile, &error);
    stop_unwatch();
    progress_clear(&progress);
    if (code == HR_ERR_CANCELLED && stop_requested())
        return CLI_INTERRUPTED;
    return code == HR_OK ? CLI_OK : cli_library_failed(&error);
}

static int merge(const struct cli_rest *rest, struct hr_profile **ret_profile)
{
    int code = profile_file_read(rest->words[0], ret_profile);

    for (size_t i = 1; code == CLI_OK && i < rest->count; i++) {
        struct hr_profile *other = NULL;
        struct hr_error error = {0};

        code = profile_file_read(rest->words[i], &other);
        if (code == CLI_OK && hr_profile_merge(*ret_profile, other, &error) != HR_OK)
            code = cli_failed("%s: %s", rest->words[i], error.message);
        hr_profile_free(other);
    }
    return code;
}

static int measure_graph(const char *path, const struct profile_command *command,
                         struct hr_profile **ret_profile)
{
    struct hr_graph *graph = NULL;
    int code = graph_file_open(path, &command->params, &graph);

    if (code == CLI_OK)
        code = measure(graph, command, ret_profile);
    if (code == CLI_OK && command->save)
        profile_keep(*ret_profile, graph, command->quiet);
    hr_graph_unref(graph);
    return code;
}

static int profile_run(void *values, const struct cli_rest *rest)
{
    const struct profile_command *command = values;
    struct hr_profile *profile = NULL;
    int code = command->output != NULL ? out_probe(command->output) : CLI_OK;

    if (rest->count > 1 && !command->merge)
        return cli_usage("one graph at a time: %s is too many; --merge takes several "
                         "profiles",
                         rest->words[1]);
    if (command->save && command->merge)
        return cli_usage("--save needs the graph that was measured, which --merge does "
                         "not know");
    if (code == CLI_OK)
        code = command->merge ? merge(rest, &profile)
                              : measure_graph(rest->words[0], command, &profile);
    if (code == CLI_OK)
        code = show(profile, command, rest->words[0]);
    hr_profile_free(profile);
    return code;
}

static const struct profile_command profile_defaults = {
    .seconds = 5, .width = 5, .variant = HR_VARIANT_INLINE};

const struct cli_command cmd_profile = {
    .name = "profile",
    .summary = "measure what each node of a graph costs",
    .args = "GRAPH | --merge FILES",
    .args_min = 1,
    .args_max = CLI_WORDS_MAX,
    .text =
        "Runs the graph for a few seconds and reports for each node the CPU time and the "
        "time waited per record, bytes in and out, the records kept, the part of the "
        "cost that does not depend on the size of a record, and how sure the cost is. "
        "It stops once the costs are known, and names nodes whose costs are not; "
        "it runs a small data set repeatedly. "
        "docs/formats/profile.md describes the file that -o writes.",
    CLI_OPTIONS(profile_table, struct profile_command),
    CLI_EXAMPLES(profile_examples),
    .defaults = &profile_defaults,
    .run = profile_run,
};
