/*
 * noop.c - make bench B=noop: the engine's overhead per record: numbers through four
 * identity steps into a batch.
 *
 * All rounds do the same work, so the spread is measurement noise.
 */
#include "measure.h"

#include <stdio.h>

#define RECORDS 4000000

static const char inline_row[] = "inline";
static const char one_row[] = "1 thread and the consumer";
static const char core_row[] = "1 thread, all on one core";
static const char two_row[] = "2 threads and the consumer";

static void run(struct bench *bench, const char *row, enum hr_variant variant,
                int threads, int cpus, bool fuse)
{
    struct hr_graph_param param = {"n", "4000000"};
    struct hr_iter_options options;
    struct hr_graph *graph;

    bench_pin(cpus);
    graph = bench_example("noop", &param, 1);
    hr_iter_options_init(&options);
    options.variant = variant;
    options.threads = threads;
    options.fuse = fuse;
    bench_add_run(bench, row, graph, &options, RECORDS);
    hr_graph_unref(graph);
    bench_pin(0);
}

int main(int argc, char **argv)
{
    static struct bench bench;

    bench_init(
        &bench, argc, argv, "noop",
        "range -> four identities -> batches of 256, 4,000,000 records, start included",
        "ns/record");
    bench.cpu_heading = "CPU ns";
    for (int i = 0; i < bench.rounds; i++) {
        run(&bench, inline_row, HR_VARIANT_INLINE, 1, 1, true);
        run(&bench, core_row, HR_VARIANT_THREADS, 1, 1, true);
        run(&bench, one_row, HR_VARIANT_THREADS, 1, 0, true);
        if (bench_cpus() >= 2)
            run(&bench, two_row, HR_VARIANT_THREADS, 2, 0, true);
        run(&bench, "inline, unfused", HR_VARIANT_INLINE, 1, 1, false);
    }
    bench_claim_value(&bench, "ns per record, inline, wall clock",
                      bench_median(&bench, inline_row), false, 40);
    bench_claim_ratio(&bench, "1 thread / inline, wall clock", one_row, inline_row, false,
                      false, 1);
    if (bench_cpus() >= 2)
        bench_claim_ratio(&bench, "2 threads / inline, wall clock", two_row, inline_row,
                          false, false, 1);
    bench_print(&bench);
    return 0;
}
