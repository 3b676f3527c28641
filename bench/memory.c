/*
 * memory.c - make bench B=memory: the resident memory of vision_rrc, and whether it obeys
 * a budget.
 *
 * Each case runs in its own process, because a peak never decreases. Two threads; two
 * epochs with a slow consumer, so that as much as possible is made ahead, then some with
 * a fast one. Three batch buffers are the default budget; the rest is the program, its
 * libraries, scratch, and files in memory.
 */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/cpu.h"

#define BATCH_BYTES ((uint64_t)256 * 3 * 224 * 224 * 4)
#define MB 1e6
#define SLOW_MS 400 /* longer than two threads take for a batch */
#define COUNTED_EPOCHS 5

struct outcome {
    unsigned long long first_rss, peak_rss, engine_peak;
    double allocs; /* per record, median of the counted epochs */
    double rate;
};

/* ---- the child ---- */

/* Receives batches until `records` have arrived, releasing each before requesting the
 * next. While the consumer is slow, as much as possible is made ahead. */
static void take(struct hr_iter *iter, int64_t records, int work_ms)
{
    struct hr_error error = {0};
    struct hr_batch *batch = NULL;

    while (records > 0) {
        bench_must(hr_iter_next(iter, &batch, &error), &error);
        usleep((useconds_t)work_ms * 1000);
        records -= hr_batch_records(batch);
        hr_batch_unref(batch);
    }
}

static int child(const char *dir, const char *budget)
{
    struct hr_graph_param param = {"data", dir};
    double allocs[COUNTED_EPOCHS], spread[2];
    uint64_t start = hr__rss_bytes();
    struct hr_graph *graph = bench_example("vision_rrc", &param, 1);
    struct hr_iter_options options;
    struct hr_iter_stats stats;
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;
    int64_t records;
    double began;

    hr_iter_options_init(&options);
    options.threads = 2;
    options.epochs = 0;
    options.memory_bytes = strtoull(budget, NULL, 10);
    if (hr_iter_open(graph, &options, &iter, &error) != HR_OK) {
        printf("refused: %s\n", error.message);
        return 0;
    }
    records = hr_graph_record_count(graph);
    take(iter, 2 * records, SLOW_MS);
    take(iter, records, 0);
    began = bench_now();
    for (int i = 0; i < COUNTED_EPOCHS; i++) {
        uint64_t before = hr__alloc_count();

        take(iter, records, 0);
        allocs[i] = (double)(hr__alloc_count() - before) / (double)records;
    }
    began = bench_now() - began;
    hr_iter_stats(iter, &stats);
    printf("%llu %llu %llu %.4f %.1f\n", (unsigned long long)start,
           (unsigned long long)hr__rss_peak_bytes(),
           (unsigned long long)stats.memory_peak_bytes,
           bench_middle(allocs, COUNTED_EPOCHS, spread),
           COUNTED_EPOCHS * (double)records / began);
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
    static const int budgets_mb[] = {100, 331, 400, 500, 650, 1000};
    struct outcome outcome;
    char line[600], key[32];
    double most = 0;

    for (size_t i = 0; i < sizeof(budgets_mb) / sizeof(budgets_mb[0]); i++) {
        snprintf(key, sizeof(key), "budget %d MB", budgets_mb[i]);
        if (!measure(self, dir, (uint64_t)budgets_mb[i] * 1000000, &outcome, line,
                     sizeof(line))) {
            bench_fact(bench, key, "%s", line);
            continue;
        }
        bench_fact(bench, key, "peak resident %.0f MB, pool %.0f MB, %.0f photos/s",
                   (double)outcome.peak_rss / MB, (double)outcome.engine_peak / MB,
                   outcome.rate);
        if ((double)outcome.peak_rss / MB / budgets_mb[i] > most)
            most = (double)outcome.peak_rss / MB / budgets_mb[i];
    }
    bench_claim_value(bench, "peak resident / budget, the worst", most, false, 1);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    char path[4096], self[4096], line[600];
    struct outcome outcome = {0};
    double allocs[ROUNDS_MAX], spread[2];
    const char *dir;

    if (argc == 4 && strcmp(argv[1], "--child") == 0)
        return child(argv[2], argv[3]);
    bench_init(&bench, argc, argv, "memory",
               "vision_rrc, 2 threads, batches of 256 (154.1 MB)", "MB");
    dir = bench_photos(&bench, path, sizeof(path));
    bench_path(self, sizeof(self), "memory");
    for (int i = 0; i < bench.rounds; i++) {
        if (!measure(self, dir, 0, &outcome, line, sizeof(line)))
            bench_die("%s", line);
        bench_add(&bench, "peak resident", (double)outcome.peak_rss / MB, -1);
        bench_add(&bench, "beside three batch buffers",
                  ((double)outcome.peak_rss - 3.0 * BATCH_BYTES) / MB, -1);
        bench_add(&bench, "at the start of main", (double)outcome.first_rss / MB, -1);
        allocs[i] = outcome.allocs;
    }
    bench_claim_value(&bench, "beside three batch buffers, MB",
                      bench_median(&bench, "beside three batch buffers"), false, 60);
    bench_claim_value(&bench, "allocations per record, the middle of five warm epochs",
                      bench_middle(allocs, bench.rounds, spread), false, .05);
    run_budgets(&bench, self, dir);
    bench_print(&bench);
    return 0;
}
