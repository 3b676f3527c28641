/*
 * cmd_optimize.c - headrace optimize: the nodes of a graph in the order that is cheapest.
 */
#include "cache_report.h"
#include "graph_file.h"
#include "headrace/optimize.h"
#include "out.h"
#include "profile_file.h"
#include "progress.h"
#include "stop.h"
#include "term.h"

#include <string.h>
#include <time.h>

struct optimize_command {
    struct cli_params params;
    const char *output, *profile;
    int64_t records, seconds, seed;
    struct cache_ask cache;
    int rule, strictness; /* enum hr_rule, enum hr_strictness */
    bool fresh, json, quiet;
};

#define AT(field) offsetof(struct optimize_command, field)

/* clang-format off */
static const struct cli_option optimize_table[] = {
    CLI_OPTION_PARAM,
    {"output", 'o', CLI_TEXT, AT(output), "FILE",
     "write the graph in the new order to FILE, as YAML (JSON if its name ends in .json), with the values of -p in place"},
    {"profile", 0, CLI_TEXT, AT(profile), "FILE",
     "what nodes cost, from headrace profile -o; default: as saved on this machine, else "
     "measure it now and save it"},
    {"fresh", 0, CLI_FLAG, AT(fresh), NULL,
     "measure costs again although they are saved"},
    {"strictness", 0, CLI_CHOICE, AT(strictness), "exact|close|relaxed",
     "how far records may differ from the written order's: not at all (default), by "
     "rounding, or as other augmentations of the same record"},
    {"rule", 0, CLI_CHOICE, AT(rule), "headrace|pecan|cedar|written",
     "how the order is found: the cheapest by the profile (default), Pecan's rule, cedar's, or none"},
    {"records", 0, CLI_INT, AT(records), "N",
     "compare both orders over N records; default 64", 1, INT64_MAX},
    {"seconds", 0, CLI_INT, AT(seconds), "S",
     "measure costs for at most about S seconds; default 5", 1, 86400},
    {"seed", 0, CLI_INT, AT(seed), "S",
     "seed for order and augmentation; default 0"},
    CACHE_ASK_OPTIONS(struct optimize_command, cache),
    {"json", 0, CLI_FLAG, AT(json), NULL,
     "print the result as JSON"},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "no progress output and no report"},
};

static const struct cli_example optimize_examples[] = {
    {"headrace optimize train.yaml -p data=photos -o faster.yaml",
     "the cheapest order that gives the same bytes"},
    {"headrace optimize train.yaml --strictness relaxed",
     "what would be gained if augmentations may change places"},
    {"headrace optimize train.yaml --profile profile.json --rule pecan",
     "Pecan's order, for comparison; cedar's with --rule cedar"},
    {"headrace optimize train.yaml --epochs 20 --cache-folder /scratch/cache -o faster.yaml",
     "also a cache, where it pays over 20 epochs: in memory or in that folder"},
};
/* clang-format on */

static const char *const strictness_names[] = {"exact", "close", "relaxed"};

struct found {
    struct hr_graph *written, *graph;
    struct hr_optimize_result result;
    uint64_t measured;              /* when, if the profile is a saved one; else 0 */
    struct hr_cache_places *places; /* for a cache; NULL: none was asked for */
};

/* ---- the profile ---- */

/* Composed, as it will run: what shares its work stays together. */
static struct hr_profile_options options_of(const struct optimize_command *command)
{
    struct hr_profile_options options;

    hr_profile_options_init(&options);
    options.seed = (uint64_t)command->seed;
    options.seconds_max = (double)command->seconds;
    options.fuse = true;
    return options;
}

static enum hr_err measure(struct hr_graph *graph, const struct optimize_command *command,
                           struct progress *progress, struct hr_profile **ret_profile,
                           struct hr_error *error)
{
    struct hr_profile_options options = options_of(command);
    enum hr_err code;

    options.progress = progress_count;
    options.user = progress;
    code = hr_graph_profile(graph, &options, ret_profile, error);
    if (code == HR_OK)
        profile_keep(*ret_profile, graph, command->quiet);
    return code;
}

/* The profile that was given, or the saved one; NULL if it must be measured. */
static int find_profile(struct found *found, const struct optimize_command *command,
                        struct hr_profile **ret_profile)
{
    struct hr_profile_options options = options_of(command);

    if (command->profile != NULL)
        return profile_file_read(command->profile, ret_profile);
    if (!command->fresh)
        *ret_profile = profile_saved(found->written, &options, command->quiet);
    if (*ret_profile != NULL)
        found->measured = hr_profile_measured(*ret_profile);
    return CLI_OK;
}

/* ---- the order ---- */

static enum hr_err choose(struct found *found, const struct hr_profile *profile,
                          const struct optimize_command *command,
                          struct progress *progress, struct hr_error *error)
{
    struct hr_optimize_options options;

    hr_optimize_options_init(&options);
    options.rule = (enum hr_rule)command->rule;
    options.strictness = (enum hr_strictness)command->strictness;
    options.records_max = command->records;
    options.seed = (uint64_t)command->seed;
    options.progress = progress_count;
    options.user = progress;
    return hr_graph_optimize(found->written, profile, &options, &found->graph,
                             &found->result, error);
}

/* Puts a cache into the order that was found. */
static enum hr_err
add_cache(struct found *found, const struct hr_profile *profile,
          const struct optimize_command *command, struct hr_error *error)
{
    struct hr_optimize_options order;
    struct hr_cache_place place;
    struct hr_graph *cached = NULL;
    enum hr_err code;

    if (command->cache.epochs == 0)
        return HR_OK;
    hr_optimize_options_init(&order);
    order.rule = (enum hr_rule)command->rule;
    order.strictness = found->result.needs;
    code = cache_propose(
        found->written, profile, &command->cache, (enum hr_strictness)command->strictness,
        found->result.moved > 0 ? &order : NULL, &cached, &found->places, error);
    if (code != HR_OK)
        return code;
    if (cache_chosen(found->places, &place) && place.needs > found->result.needs)
        found->result.needs = place.needs;
    hr_graph_unref(found->graph);
    found->graph = cached;
    return HR_OK;
}

static int find(struct found *found, const struct optimize_command *command)
{
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};
    struct progress progress;
    enum hr_err code = HR_OK;
    int read = find_profile(found, command, &profile);

    if (read != CLI_OK)
        return read;
    stop_watch(NULL);
    progress_begin(&progress, command->quiet, "records");
    if (profile == NULL)
        code = measure(found->written, command, &progress, &profile, &error);
    progress_clear(&progress);
    progress_begin(&progress, command->quiet, "records compared");
    if (code == HR_OK)
        code = choose(found, profile, command, &progress, &error);
    if (code == HR_OK)
        code = add_cache(found, profile, command, &error);
    progress_clear(&progress);
    stop_unwatch();
    hr_profile_free(profile);
    if (code == HR_ERR_CANCELLED && stop_requested())
        return CLI_INTERRUPTED;
    if (code == HR_ERR_STATE)
        return cli_library(&error);
    return code == HR_OK ? CLI_OK : cli_library_failed(&error);
}

/* ---- the report ---- */

/* Where a node of that name stands, from 1; 0: nowhere. */
static size_t place_of(const struct hr_graph *graph, const char *name)
{
    struct hr_node_info node;

    for (size_t i = 0; hr_graph_node_info(graph, i, &node) == HR_OK; i++)
        if (strcmp(node.name, name) == 0)
            return i + 1;
    return 0;
}

/* Places that new nodes shift are no moves. */
static void print_nodes(const struct found *found)
{
    struct hr_node_info node;
    size_t fresh = 0;

    for (size_t i = 0; hr_graph_node_info(found->graph, i, &node) == HR_OK; i++) {
        size_t was = place_of(found->written, node.name);

        printf("  %3zu  %s", i + 1, node.name);
        if (was == 0)
            printf("  %s(new)%s", term_bold(stdout), term_plain(stdout));
        else if (was != i + 1 - fresh)
            printf("  %s(was %zu)%s", term_bold(stdout), was, term_plain(stdout));
        printf("\n");
        fresh += was == 0;
    }
}

static void print_difference(const struct found *found)
{
    const struct hr_optimize_result *r = &found->result;
    char records[32];

    term_count(records, sizeof(records), (uint64_t)r->records);
    if (r->needs == HR_STRICTNESS_RELAXED)
        printf("  %s records have the same fields, shapes and dtypes; their values are "
               "those of other augmentations\n",
               records);
    else if (r->difference == 0)
        printf("  %s records have the same bytes\n", records);
    else
        printf("  the levels of %s records differ by at most %.2g %% of their range\n",
               records, 100 * r->difference);
}

/* Where the costs come from, if they are old ones. */
static void print_age(uint64_t measured)
{
    int64_t days = ((int64_t)time(NULL) - (int64_t)measured) / 86400;
    char when[48];

    if (measured == 0)
        return;
    snprintf(when, sizeof(when), "%lld day%s ago", (long long)days, days == 1 ? "" : "s");
    printf("  costs as saved, measured %s; --fresh measures them again\n",
           days > 0 ? when : "today");
}

static void print_dropped(const struct hr_optimize_result *r)
{
    if (r->dropped[0] != '\0')
        printf("  the cheapest by the profile was dropped: %s\n", r->dropped);
}

static void print_report(const struct found *found, const char *path, enum hr_rule rule)
{
    const struct hr_optimize_result *r = &found->result;
    struct hr_cache_place cache;
    char written[24], now[24];

    printf("%s%s%s: ", term_bold(stdout), path, term_plain(stdout));
    if (r->moved == 0) {
        printf("no order is cheaper\n");
        if (cache_chosen(found->places, &cache) && cache.node != NULL)
            print_nodes(found);
        print_dropped(r);
        print_age(found->measured);
        return;
    }
    printf("%zu nodes stand elsewhere\n", r->moved);
    print_nodes(found);
    printf(
        "  CPU per record: %s as written, %s now: %.2fx (%.2fx predicted for the nodes "
        "that may move)\n",
        term_seconds(written, sizeof(written), r->written_run_ns * 1e-9),
        term_seconds(now, sizeof(now), r->run_ns * 1e-9), r->written_run_ns / r->run_ns,
        r->written_ns / r->predicted_ns);
    print_difference(found);
    print_dropped(r);
    if (!r->best && rule != HR_RULE_HEADRACE)
        printf("  another order may be cheaper: see --rule headrace\n");
    else if (!r->best)
        printf(
            "  too many nodes may move to try all orders: there may be a better one\n");
    print_age(found->measured);
}

static void print_json(const struct found *found)
{
    const struct hr_optimize_result *r = &found->result;
    struct json json = {stdout, false};
    struct hr_node_info node;

    json_open(&json, NULL, '{');
    json_u64(&json, "moved", r->moved);
    json_text(&json, "needs", strictness_names[r->needs]);
    json_bool(&json, "best", r->best);
    json_double(&json, "written_ns", r->written_ns);
    json_double(&json, "predicted_ns", r->predicted_ns);
    json_i64(&json, "records", r->records);
    json_double(&json, "difference", r->difference);
    json_double(&json, "written_run_ns", r->written_run_ns);
    json_double(&json, "run_ns", r->run_ns);
    json_bool(&json, "saved_profile", found->measured != 0);
    json_text(&json, "dropped", r->dropped[0] != '\0' ? r->dropped : NULL);
    json_open(&json, "nodes", '[');
    for (size_t i = 0; hr_graph_node_info(found->graph, i, &node) == HR_OK; i++)
        json_text(&json, NULL, node.name);
    json_close(&json, ']');
    cache_report_json(&json, found->places);
    json_close(&json, '}');
    json_end(&json);
}

static int save(const struct found *found, const char *path)
{
    struct hr_error error = {0};
    char *text = NULL;
    int code;

    if (hr_graph_print(found->graph, graph_file_format(path), &text, &error) != HR_OK)
        return cli_library(&error);
    code = out_replace(path, text);
    hr_free(text);
    return code;
}

static int optimize_run(void *values, const struct cli_rest *rest)
{
    const struct optimize_command *command = values;
    struct found found = {0};
    int code = cache_ask_check(&command->cache);

    if (code == CLI_OK && command->output != NULL)
        code = out_probe(command->output);
    if (code == CLI_OK)
        code = graph_file_open(rest->words[0], &command->params, &found.written);
    if (code == CLI_OK)
        code = find(&found, command);
    if (code == CLI_OK && command->output != NULL)
        code = save(&found, command->output);
    if (code == CLI_OK && command->json)
        print_json(&found);
    else if (code == CLI_OK && !command->quiet)
        print_report(&found, rest->words[0], (enum hr_rule)command->rule);
    if (code == CLI_OK && !command->json && !command->quiet)
        cache_report_print(found.places, command->cache.epochs);
    hr_cache_places_free(found.places);
    hr_graph_unref(found.graph);
    hr_graph_unref(found.written);
    return code;
}

static const struct optimize_command optimize_defaults = {
    .seconds = 5, .records = 64, .cache = CACHE_ASK_DEFAULTS};

const struct cli_command cmd_optimize = {
    .name = "optimize",
    .summary =
        "put the nodes of a graph in the cheapest order, and a cache where it pays",
    .args = "GRAPH",
    .args_min = 1,
    .args_max = 1,
    .text =
        "Measures what each node costs, finds the order of the nodes that is cheapest, "
        "and runs both orders over the same records to compare their batches and their "
        "time. Nodes move only as their traits, depends_on and keep_position allow, and "
        "keep their random draws. Which record takes the place of a bad one (run "
        "--errors substitute), and whether a record that a filter drops is bad, depends "
        "on the order. An order whose records differ by more than "
        "--strictness allows is dropped, and the reason is printed. With --epochs it "
        "also puts a cache where it gains most over that many epochs: it weighs the work "
        "before each place against writing and reading entries at rates measured here. "
        "Places after random ops are refused unless --refresh allows them, and places "
        "between a decode and a resize or crop, which change pixels in modes close and "
        "fast, unless --strictness close does. With "
        "--cache-quality images may be kept as JPEGs, after what encoding and decoding "
        "some of them takes.",
    CLI_OPTIONS(optimize_table, struct optimize_command),
    CLI_EXAMPLES(optimize_examples),
    .defaults = &optimize_defaults,
    .run = optimize_run,
};
