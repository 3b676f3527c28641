/*
 * memory.c - make bench B=memory: what vision_rrc keeps resident, and whether it obeys a
 * budget.
 *
 * Each case is a process of its own, because a peak never goes down. Two epochs on two
 * threads; the consumer holds one batch. Batch buffers are counted at their full size,
 * three of them by default; the rest is the program, its libraries, scratch, and files
 * that were read ahead.
 */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cpu.h"

#define BATCH_BYTES ((uint64_t)256 * 3 * 224 * 224 * 4)
#define MB 1e6

struct outcome {
    unsigned long long first_rss, peak_rss, engine_peak, batches_max;
    double allocs; /* per record, second epoch */
    double rate;
};

/* ---- the child ---- */

/* One epoch; holds each batch until the next one has come, as training does. */
static void run_epoch(struct hr_iter *iter, int64_t records, struct hr_batch **held)
{
    struct hr_error error = {0};
    struct hr_batch *batch = NULL;

    while (records > 0) {
        bench_must(hr_iter_next(iter, &batch, &error), &error);
        hr_batch_unref(*held);
        *held = batch;
        records -= hr_batch_records(batch);
    }
}

static int child(const char *dir, const char *budget)
{
    struct hr_graph_param param = {"data", dir};
    uint64_t start = hr__rss_bytes(), allocs;
    struct hr_graph *graph = bench_example("vision_rrc", &param, 1);
    struct hr_iter_options options;
    struct hr_iter_stats stats;
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;
    struct hr_batch *held = NULL;
    int64_t records;
    double began;

    hr_iter_options_init(&options);
    options.threads = 2;
    options.epochs = 3;
    options.memory_bytes = strtoull(budget, NULL, 10);
    if (hr_iter_open(graph, &options, &iter, &error) != HR_OK) {
        printf("refused: %s\n", error.message);
        return 0;
    }
    records = hr_graph_record_count(graph);
    run_epoch(iter, records, &held);
    allocs = hr__alloc_count();
    began = bench_now();
    run_epoch(iter, records, &held);
    run_epoch(iter, records, &held);
    allocs = hr__alloc_count() - allocs;
    began = bench_now() - began;
    hr_iter_stats(iter, &stats);
    printf("%llu %llu %llu %.4f %.1f\n", (unsigned long long)start,
           (unsigned long long)hr__rss_peak_bytes(),
           (unsigned long long)stats.memory_peak_bytes,
           (double)allocs / (double)(2 * records), (double)(2 * records) / began);
    hr_batch_unref(held);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return 0;
}

/* ---- the parent ---- */

static bool measure(const char *self, const char *dir, uint64_t budget,
                    struct outcome *outcome, char *line, size_t room)
{
    const char *args[] = {self, "--child", dir, NULL, NULL};
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)budget);
    args[3] = text;
    bench_child(line, room, args);
    return sscanf(line, "%llu %llu %llu %lf %lf", &outcome->first_rss, &outcome->peak_rss,
                  &outcome->engine_peak, &outcome->allocs, &outcome->rate) == 5;
}

static void run_budgets(struct bench *bench, const char *self, const char *dir)
{
    static const int budgets_mb[] = {100, 340, 400, 500, 800, 1200};
    struct outcome outcome;
    char line[600], key[32];

    for (size_t i = 0; i < sizeof(budgets_mb) / sizeof(budgets_mb[0]); i++) {
        snprintf(key, sizeof(key), "budget %d MB", budgets_mb[i]);
        if (measure(self, dir, (uint64_t)budgets_mb[i] * 1000000, &outcome, line,
                    sizeof(line)))
            bench_fact(bench, key,
                       "peak resident %.0f MB, engine's own count %.0f MB, %.0f photos/s",
                       (double)outcome.peak_rss / MB, (double)outcome.engine_peak / MB,
                       outcome.rate);
        else
            bench_fact(bench, key, "%s", line);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    char path[4096], self[4096], line[600];
    struct outcome outcome;
    const char *dir;

    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], argv[3]);
    bench_init(&bench, argc, argv, "memory",
               "vision_rrc, 2 threads, batches of 256 (154.1 MB), three epochs", "MB");
    dir = bench_photos(&bench, path, sizeof(path));
    bench_path(self, sizeof(self), "memory");
    for (int i = 0; i < bench.rounds; i++) {
        if (!measure(self, dir, 0, &outcome, line, sizeof(line)))
            bench_die("%s", line);
        bench_add(&bench, "peak resident", (double)outcome.peak_rss / MB, -1);
        bench_add(&bench, "beside three batch buffers",
                  ((double)outcome.peak_rss - 3.0 * BATCH_BYTES) / MB, -1);
        bench_add(&bench, "at the start of main", (double)outcome.first_rss / MB, -1);
    }
    run_budgets(&bench, self, dir);
    bench_fact(&bench, "allocations",
               "%.4f of the library's own per record in epochs 2 and 3", outcome.allocs);
    bench_claim_value(&bench, "beside three batch buffers, MB",
                      bench_median(&bench, "beside three batch buffers"), false, 60);
    bench_claim_value(&bench, "allocations per record", outcome.allocs, false, .05);
    bench_print(&bench);
    return 0;
}
