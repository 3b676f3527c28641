/*
 * explain_measure.c - headrace explain --measure: what each node costs on the user's own
 * records, then what the modes change.
 */
#include "explain.h"
#include "node_table.h"
#include "progress.h"
#include "stop.h"
#include "term.h"

#include <stdlib.h>

/* Opens the graph by the plan that the options decide. */
static int open_iter(struct hr_graph *graph, const struct explain_options *o,
                     struct hr_iter **ret_iter)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    char *plan = NULL;
    int code;

    hr_iter_options_init(&options);
    code = plan_options_set(&o->plan, &options, &plan);
    options.seed = (uint64_t)o->seed;
    options.records_max = o->records;
    options.uncached = true;
    options.on_error = HR_ON_ERROR_SUBSTITUTE;
    if (code == CLI_OK && hr_iter_open(graph, &options, ret_iter, &error) != HR_OK)
        code = cli_library(&error);
    free(plan);
    return code;
}

/* `before`: records of earlier passes; there are two in all. */
static int run_all(struct hr_iter *iter, const struct explain_options *options,
                   struct progress *progress, int64_t before)
{
    struct hr_error error = {0};
    struct hr_batch *batch;
    enum hr_err code;

    for (;;) {
        if (stop_requested())
            return CLI_INTERRUPTED;
        code = hr_iter_next(iter, &batch, &error);
        if (code != HR_OK)
            return code == HR_ERR_END ? CLI_OK : cli_library_failed(&error);
        before += hr_batch_records(batch);
        hr_batch_unref(batch);
        progress_count(progress, (uint64_t)before, 2 * (uint64_t)options->records);
    }
}

/* Runs the records twice, so that no node of the second run, *ret_iter, pays for files
 * that are not in the page cache. The caller closes it, also after a failure. */
static int run_nodes(struct hr_graph *graph, const struct explain_options *options,
                     struct hr_iter **ret_iter)
{
    struct progress progress;
    int code = CLI_OK;

    *ret_iter = NULL;
    progress_begin(&progress, options->quiet, "records");
    for (int pass = 0; pass < 2 && code == CLI_OK; pass++) {
        hr_iter_close(*ret_iter);
        *ret_iter = NULL;
        code = open_iter(graph, options, ret_iter);
        if (code == CLI_OK)
            code = run_all(*ret_iter, options, &progress, pass * options->records);
    }
    progress_clear(&progress);
    return code;
}

static void print_json(const char *path, const struct explain_options *options,
                       const struct hr_iter *iter, const struct explain_compare *compare)
{
    struct json json = {.out = stdout};

    json_open(&json, NULL, '{');
    json_text(&json, "graph", path);
    json_i64(&json, "seed", options->seed);
    node_table_json(&json, iter);
    if (compare != NULL)
        explain_compare_json(&json, compare);
    json_close(&json, '}');
    json_end(&json);
}

static void print_text(const char *path, const struct hr_iter *iter,
                       const struct explain_compare *compare)
{
    struct hr_iter_stats stats;

    hr_iter_stats(iter, &stats);
    printf("%s%s%s, second pass over %llu records\n\n", term_bold(stdout), path,
           term_plain(stdout), (unsigned long long)stats.records);
    node_table_print(iter);
    if (compare != NULL) {
        putchar('\n');
        explain_compare_print(compare);
    }
}

int explain_measure(struct hr_graph *graph, const struct explain_options *options,
                    const char *path)
{
    struct explain_compare *compare = NULL;
    struct hr_iter *iter = NULL;
    int code;

    stop_watch(NULL);
    code = run_nodes(graph, options, &iter);
    if (code == CLI_OK)
        code = explain_compare_run(graph, options, &compare);
    stop_unwatch();
    if (code == CLI_OK && options->json)
        print_json(path, options, iter, compare);
    else if (code == CLI_OK)
        print_text(path, iter, compare);
    explain_compare_finish(compare);
    hr_iter_close(iter);
    return code;
}
