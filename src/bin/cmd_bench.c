/*
 * cmd_bench.c - headrace bench: runs named benchmarks and prints medians.
 *
 * The cases are in bench_kinds.c. Other libraries are compared elsewhere, because they
 * need Python packages (make bench-peers).
 */
#include "bench.h"
#include "headrace/dataset.h"
#include "out.h"
#include "stop.h"
#include "term.h"

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(field) offsetof(struct bench_options, field)

/* clang-format off */
static const struct cli_option bench_table[] = {
    {"list", 0, CLI_FLAG, AT(list), NULL,
     "list the benchmarks"},
    {"data", 0, CLI_TEXT, AT(data), "DIR",
     "photos for vision, jpeg and threads; default: 300 synthetic ones"},
    {"rounds", 0, CLI_INT, AT(rounds), "N",
     "number of rounds, each running every case; default 5", 1, BENCH_ROUNDS_MAX},
    {"count", 'n', CLI_INT, AT(count), "N",
     "number of records (noop) or files (start); default 2000000 and 100000", 1},
    {"threads", 0, CLI_INT, AT(threads), "N",
     "maximum number of threads; default: the CPUs that this process may use", 0, 4096},
    CLI_OPTION_JSON,
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "no progress output"},
};

static const struct cli_example bench_examples[] = {
    {"headrace bench --list",
     "list the benchmarks"},
    {"headrace bench noop",
     "the engine's overhead per record"},
    {"headrace bench vision --data photos --rounds 9 --json",
     "photos to tensors, composed and not, as JSON"},
};
/* clang-format on */

/* ---- folders ---- */

static int
remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

const char *bench_temp(struct bench *bench)
{
    const char *root = getenv("TMPDIR");

    if (bench->temp[0] != '\0')
        return bench->temp;
    snprintf(bench->temp, sizeof(bench->temp), "%s/headrace-bench.XXXXXX",
             root != NULL && root[0] == '/' && strlen(root) < 200 ? root : "/tmp");
    if (mkdtemp(bench->temp) != NULL)
        return bench->temp;
    cli_failed("cannot make %s: %s", bench->temp, strerror(errno));
    bench->temp[0] = '\0';
    return NULL;
}

const char *bench_photos(struct bench *bench)
{
    struct hr_synth_photos what = {.count = 300, .classes = 10, .vary = true};
    struct hr_error error = {0};
    const char *dir = bench->options->data;

    if (dir != NULL)
        return dir;
    dir = bench_temp(bench);
    if (dir == NULL)
        return NULL;
    if (!bench->options->quiet)
        fprintf(stderr, "headrace: synthesising 300 photos (use --data for your own)\n");
    if (hr_synth_photos(dir, &what, NULL, NULL, &error) == HR_OK)
        return dir;
    cli_library(&error);
    return NULL;
}

int bench_cpus(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return 1;
    return CPU_COUNT(&set);
}

/* ---- figures ---- */

void bench_add(struct bench *bench, const char *name, double value)
{
    struct bench_case *at = bench->cases, *end = at + bench->case_count;

    while (at < end && strcmp(at->name, name) != 0)
        at++;
    if (at == end && bench->case_count == BENCH_CASES_MAX)
        return;
    if (at == end) {
        bench->case_count++;
        snprintf(at->name, sizeof(at->name), "%s", name);
    }
    if (at->rounds < BENCH_ROUNDS_MAX)
        at->values[at->rounds++] = value;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const struct bench_case *at)
{
    int middle = at->rounds / 2; /* values are sorted */

    if (at->rounds % 2 == 1)
        return at->values[middle];
    return (at->values[middle - 1] + at->values[middle]) / 2;
}

/* Receives the next batch and counts its records. */
static enum hr_err
count_batch(struct hr_iter *iter, struct bench_outcome *outcome, struct hr_error *error)
{
    double began = term_now();
    struct hr_batch *batch = NULL;
    enum hr_err code = hr_iter_next(iter, &batch, error);

    if (code == HR_OK) {
        uint64_t records = (uint64_t)hr_batch_records(batch);
        int epoch = hr_batch_epoch(batch) > 0;

        outcome->records += records;
        outcome->epoch_records[epoch] += records;
        outcome->epoch_seconds[epoch] += term_now() - began;
    }
    hr_batch_unref(batch);
    return code;
}

int bench_graph(const struct bench_run *run, struct bench_outcome *ret_outcome)
{
    struct bench_outcome outcome = {0};
    struct hr_iter_options options;
    struct hr_graph *graph = NULL;
    struct hr_iter *iter = NULL;
    struct hr_error error = {0};
    double began = term_now();
    enum hr_err code;

    hr_iter_options_init(&options);
    options.variant = run->variant;
    options.threads = run->threads;
    options.fuse = !run->no_fuse;
    options.epochs = run->twice ? 2 : 1;
    code = hr_graph_parse(run->text, strlen(run->text), "bench.yaml", run->params,
                          run->param_count, &graph, &error);
    if (code == HR_OK)
        code = hr_iter_open(graph, &options, &iter, &error);
    while (code == HR_OK && !(run->first_batch_only && outcome.records > 0))
        code = count_batch(iter, &outcome, &error);
    outcome.seconds = term_now() - began;
    *ret_outcome = outcome;
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return code == HR_OK || code == HR_ERR_END ? CLI_OK : cli_library(&error);
}

/* ---- report ---- */

static void print_table(const struct bench *bench)
{
    double base = median(&bench->cases[0]);

    printf("%s%-34s %14s  %-25s %8s%s\n", term_bold(stdout), bench->name, bench->unit,
           "min to max", "ratio", term_plain(stdout));
    for (int i = 0; i < bench->case_count; i++) {
        const struct bench_case *at = &bench->cases[i];
        double value = median(at);
        char spread[64];

        snprintf(spread, sizeof(spread), "%.4g to %.4g", at->values[0],
                 at->values[at->rounds - 1]);
        printf("%-34s %14.5g  %-25s %7.2fx\n", at->name, value, spread,
               bench->less_is_better ? base / value : value / base);
    }
    printf("%smedians of %d rounds, cases alternating; ratio: speed relative to the "
           "first case%s\n",
           term_dim(stdout), bench->cases[0].rounds, term_plain(stdout));
}

static void print_json(const struct bench *bench)
{
    struct json json = {.out = stdout};

    json_open(&json, NULL, '{');
    json_text(&json, "bench", bench->name);
    json_text(&json, "unit", bench->unit);
    json_text(&json, "version", hr_version());
    json_i64(&json, "cpus", bench_cpus());
    json_open(&json, "cases", '[');
    for (int i = 0; i < bench->case_count; i++) {
        const struct bench_case *at = &bench->cases[i];

        json_open(&json, NULL, '{');
        json_text(&json, "name", at->name);
        json_double(&json, "median", median(at));
        json_double(&json, "least", at->values[0]);
        json_double(&json, "greatest", at->values[at->rounds - 1]);
        json_i64(&json, "rounds", at->rounds);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    json_end(&json);
}

static int run_kind(const struct bench_kind *kind, const struct bench_options *options)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    int code;

    if (bench == NULL)
        return cli_failed("out of memory");
    bench->options = options;
    bench->name = kind->name;
    code = kind->run(bench);
    if (bench->temp[0] != '\0')
        nftw(bench->temp, remove_entry, 64, FTW_DEPTH | FTW_PHYS);
    for (int i = 0; i < bench->case_count; i++)
        qsort(bench->cases[i].values, (size_t)bench->cases[i].rounds, sizeof(double),
              compare);
    if (code == CLI_OK && stop_requested())
        code = CLI_INTERRUPTED;
    if (code == CLI_OK && options->json)
        print_json(bench);
    else if (code == CLI_OK)
        print_table(bench);
    free(bench);
    return code;
}

static int find_kind(const char *name, const struct bench_kind **ret_kind)
{
    const char *names[16];
    size_t count = 0;
    char nearest[96];

    for (; bench_kinds[count].name != NULL; count++) {
        names[count] = bench_kinds[count].name;
        if (strcmp(name, names[count]) == 0) {
            *ret_kind = &bench_kinds[count];
            return CLI_OK;
        }
    }
    return cli_usage("unknown benchmark '%s'%s (see headrace bench --list)", name,
                     cli_nearest(name, names, count, nearest, sizeof(nearest)));
}

static void list_kinds(bool as_json)
{
    struct json json = {.out = stdout};

    if (!as_json) {
        for (const struct bench_kind *kind = bench_kinds; kind->name != NULL; kind++)
            printf("%-10s %s\n", kind->name, kind->what);
        return;
    }
    json_open(&json, NULL, '{');
    json_open(&json, "benchmarks", '[');
    for (const struct bench_kind *kind = bench_kinds; kind->name != NULL; kind++) {
        json_open(&json, NULL, '{');
        json_text(&json, "name", kind->name);
        json_text(&json, "what", kind->what);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    json_end(&json);
}

static int bench_run_command(void *values, const struct cli_rest *rest)
{
    const struct bench_options *options = values;
    const struct bench_kind *kind = NULL;
    int code;

    if (options->list || rest->count == 0) {
        list_kinds(options->json);
        return CLI_OK;
    }
    code = find_kind(rest->words[0], &kind);
    if (code != CLI_OK)
        return code;
    stop_watch(NULL);
    code = run_kind(kind, options);
    stop_unwatch();
    return code;
}

static const struct bench_options bench_defaults = {.rounds = 5};

const struct cli_command cmd_bench = {
    .name = "bench",
    .summary = "run benchmarks and compare medians",
    .args = "[NAME]",
    .complete = "$(headrace bench --list 2>/dev/null | cut -d ' ' -f 1)",
    .args_max = 1,
    .text = "Runs a named benchmark. Its cases alternate in rounds, so that interference "
            "from other work affects all of them alike; the medians are compared.",
    CLI_OPTIONS(bench_table, struct bench_options),
    CLI_EXAMPLES(bench_examples),
    .defaults = &bench_defaults,
    .run = bench_run_command,
};
