/*
 * bench_kinds.c - what each benchmark measures.
 *
 * The graphs are those of examples/, repeated here so that the installed command needs no
 * other files.
 */
#include "bench.h"
#include "headrace/dataset.h"
#include "stop.h"
#include "term.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>

static const char noop_graph[] = "headrace: 1\n"
                                 "params:\n"
                                 "  n: {type: int}\n"
                                 "pipeline:\n"
                                 "  - source.range: {n: \"${n}\"}\n"
                                 "  - debug.identity: {}\n"
                                 "  - debug.identity: {}\n"
                                 "  - debug.identity: {}\n"
                                 "  - debug.identity: {}\n"
                                 "  - batch.stack: {size: 256}\n";

static const char vision_graph[] =
    "headrace: 1\n"
    "params:\n"
    "  data: {type: path}\n"
    "  mode: {type: string, default: close}\n"
    "pipeline:\n"
    "  - source.files: {path: \"${data}\", labels: none}\n"
    "  - order.shuffle: {}\n"
    "  - image.decode: {mode: \"${mode}\"}\n"
    "  - image.random_resized_crop: {size: 224}\n"
    "  - image.flip: {p: 0.5}\n"
    "  - image.normalize: {mean: imagenet, std: imagenet}\n"
    "  - tensor.layout: {order: chw}\n"
    "  - batch.stack: {size: 64}\n";

static const char names_graph[] =
    "headrace: 1\n"
    "params:\n"
    "  data: {type: path}\n"
    "pipeline:\n"
    "  - source.files: {path: \"${data}\", labels: folder}\n"
    "  - record.select: {fields: [label]}\n"
    "  - batch.stack: {size: 256}\n";

static const char index_graph[] = "headrace: 1\n"
                                  "params:\n"
                                  "  data: {type: path}\n"
                                  "  index: {type: path}\n"
                                  "pipeline:\n"
                                  "  - source.files: {path: \"${data}\", labels: folder, "
                                  "index: \"${index}\"}\n"
                                  "  - record.select: {fields: [label]}\n"
                                  "  - batch.stack: {size: 256}\n";

static int thread_limit(const struct bench *bench)
{
    return bench->options->threads > 0 ? (int)bench->options->threads : bench_cpus();
}

static void show_round(const struct bench *bench, int64_t round)
{
    if (!bench->options->quiet)
        fprintf(stderr, "headrace: round %lld of %lld\n", (long long)round + 1,
                (long long)bench->options->rounds);
}

/* Adds nanoseconds per record of one run. */
static int add_noop(struct bench *bench, const char *name, struct bench_run *run)
{
    struct bench_outcome outcome;
    int code = bench_graph(run, &outcome);

    if (code == CLI_OK && outcome.records > 0)
        bench_add(bench, name, outcome.seconds * 1e9 / (double)outcome.records);
    return code;
}

static int bench_noop(struct bench *bench)
{
    char count[24], name[64];
    int code = CLI_OK;

    bench->unit = "ns per record";
    bench->less_is_better = true;
    snprintf(count, sizeof(count), "%lld",
             (long long)(bench->options->count > 0 ? bench->options->count : 2000000));
    for (int64_t r = 0; r < bench->options->rounds && !stop_requested(); r++) {
        struct bench_run run = {.text = noop_graph,
                                .params = {{"n", count}},
                                .param_count = 1,
                                .variant = HR_VARIANT_INLINE,
                                .threads = 1};

        show_round(bench, r);
        code = add_noop(bench, "inline", &run);
        run.variant = HR_VARIANT_THREADS;
        for (int t = 1; t <= thread_limit(bench) && code == CLI_OK; t *= 2) {
            run.threads = t;
            snprintf(name, sizeof(name), "threads %d", t);
            code = add_noop(bench, name, &run);
        }
        run.variant = HR_VARIANT_INLINE;
        run.no_fuse = true;
        if (code == CLI_OK)
            code = add_noop(bench, "inline, not fused", &run);
        if (code != CLI_OK)
            return code;
    }
    return code;
}

/* Adds records per second of one run. */
static int add_rate(struct bench *bench, const char *name, const struct bench_run *run)
{
    struct bench_outcome outcome;
    int code = bench_graph(run, &outcome);

    if (code == CLI_OK && outcome.seconds > 0)
        bench_add(bench, name, (double)outcome.records / outcome.seconds);
    return code;
}

static int bench_vision(struct bench *bench)
{
    const char *data = bench_photos(bench);
    struct bench_run close = {.text = vision_graph, .threads = 1, .param_count = 2};
    int code = data != NULL ? CLI_OK : CLI_FAILED;

    bench->unit = "photos/s";
    close.params[0] = (struct hr_graph_param){"data", data};
    close.params[1] = (struct hr_graph_param){"mode", "close"};
    for (int64_t r = 0; code == CLI_OK && r < bench->options->rounds && !stop_requested();
         r++) {
        struct bench_run exact = close, apart, all = close;
        char name[64];

        exact.params[1].value = "exact";
        apart = exact;
        apart.no_fuse = true;
        all.threads = thread_limit(bench);
        snprintf(name, sizeof(name), "composed, close, %d threads", all.threads);
        show_round(bench, r);
        code = add_rate(bench, "not composed, exact, 1 thread", &apart);
        if (code == CLI_OK)
            code = add_rate(bench, "composed, exact, 1 thread", &exact);
        if (code == CLI_OK)
            code = add_rate(bench, "composed, close, 1 thread", &close);
        if (code == CLI_OK && all.threads > 1)
            code = add_rate(bench, name, &all);
    }
    return code;
}

/* Adds both epochs of one run as two cases. */
static int add_epochs(struct bench *bench, const char *mode, const struct bench_run *run)
{
    static const char *const which[] = {"first", "second"};
    struct bench_outcome outcome;
    int code = bench_graph(run, &outcome);

    for (int i = 0; code == CLI_OK && i < 2; i++) {
        char name[64];

        snprintf(name, sizeof(name), "%s, %s epoch", mode, which[i]);
        if (outcome.epoch_seconds[i] > 0)
            bench_add(bench, name,
                      (double)outcome.epoch_records[i] / outcome.epoch_seconds[i]);
    }
    return code;
}

static int bench_jpeg(struct bench *bench)
{
    static const char *const modes[] = {"exact", "close", "fast"};
    const char *data = bench_photos(bench);
    struct bench_run run = {
        .text = vision_graph, .threads = 1, .param_count = 2, .twice = true};
    int code = data != NULL ? CLI_OK : CLI_FAILED;

    bench->unit = "photos/s";
    run.params[0] = (struct hr_graph_param){"data", data};
    for (int64_t r = 0; code == CLI_OK && r < bench->options->rounds && !stop_requested();
         r++) {
        show_round(bench, r);
        for (int i = 0; i < 3 && code == CLI_OK; i++) {
            run.params[1] = (struct hr_graph_param){"mode", modes[i]};
            code = add_epochs(bench, modes[i], &run);
        }
    }
    return code;
}

static int bench_threads(struct bench *bench)
{
    const char *data = bench_photos(bench);
    struct bench_run run = {.text = vision_graph, .param_count = 1};
    int code = data != NULL ? CLI_OK : CLI_FAILED;

    bench->unit = "photos/s";
    run.params[0] = (struct hr_graph_param){"data", data};
    for (int64_t r = 0; code == CLI_OK && r < bench->options->rounds && !stop_requested();
         r++) {
        show_round(bench, r);
        run.variant = HR_VARIANT_INLINE;
        code = add_rate(bench, "inline", &run);
        run.variant = HR_VARIANT_THREADS;
        for (int t = 1; t <= thread_limit(bench) && code == CLI_OK; t *= 2) {
            char name[64];

            run.threads = t;
            snprintf(name, sizeof(name), "threads %d", t);
            code = add_rate(bench, name, &run);
        }
    }
    return code;
}

/* ---- start ---- */

static uint64_t walked;

static int count_file(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)path;
    (void)info;
    (void)at;
    walked += kind == FTW_F;
    return 0;
}

static int start_round(struct bench *bench, const char *names, const char *index)
{
    struct bench_run plain = {.text = names_graph,
                              .params = {{"data", names}},
                              .param_count = 1,
                              .first_batch_only = true};
    struct bench_run saved = plain;
    struct bench_outcome outcome;
    double began = term_now();
    int code;

    walked = 0;
    nftw(names, count_file, 64, FTW_PHYS);
    bench_add(bench, "nftw: walk and stat all files", term_now() - began);
    code = bench_graph(&plain, &outcome);
    if (code != CLI_OK)
        return code;
    bench_add(bench, "first batch, no index", outcome.seconds);
    saved.text = index_graph;
    saved.params[1] = (struct hr_graph_param){"index", index};
    saved.param_count = 2;
    code = bench_graph(&saved, &outcome);
    if (code == CLI_OK)
        bench_add(bench, "first batch, saved index", outcome.seconds);
    return code;
}

static int bench_start(struct bench *bench)
{
    const char *temp = bench_temp(bench);
    struct hr_index_result result;
    struct hr_error error = {0};
    char names[300], index[300];
    uint64_t count =
        (uint64_t)(bench->options->count > 0 ? bench->options->count : 100000);
    int code = CLI_OK;

    bench->unit = "seconds";
    bench->less_is_better = true;
    if (temp == NULL)
        return CLI_FAILED;
    snprintf(names, sizeof(names), "%s/names", temp);
    snprintf(index, sizeof(index), "%s/names.index", temp);
    if (!bench->options->quiet)
        fprintf(stderr, "headrace: making %llu empty files\n", (unsigned long long)count);
    if (hr_synth_names(names, count, 1000, NULL, NULL, &error) != HR_OK ||
        hr_index_write(names, index, &result, &error) != HR_OK)
        return cli_library(&error);
    for (int64_t r = 0; code == CLI_OK && r < bench->options->rounds && !stop_requested();
         r++) {
        show_round(bench, r);
        code = start_round(bench, names, index);
    }
    return code;
}

/* clang-format off */
const struct bench_kind bench_kinds[] = {
    {"noop", "the engine alone: four identity ops and a batch, ns per record", bench_noop},
    {"vision", "photos to float32 CHW batches: composed, exact, not composed", bench_vision},
    {"jpeg", "like vision, in modes exact, close and fast, first and second epoch", bench_jpeg},
    {"threads", "photos with 1, 2, 4 ... threads", bench_threads},
    {"start", "time to the first batch with many files, with and without an index", bench_start},
    {NULL, NULL, NULL},
};
/* clang-format on */
