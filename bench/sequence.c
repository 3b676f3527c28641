/*
 * sequence.c - make bench B=sequence: what sequencers cost per record: the numbers of a
 * source into batches, directly and through filters, takes, windows and batches that are
 * taken apart again.
 */
#include "measure.h"

#include <string.h>

#define RECORDS 2000000
#define SOURCE "headrace: 1\npipeline:\n  - source.range: {n: 2000000}\n"
#define FILTER "  - record.filter: {expr: \"value >= 0\"}\n"
#define STACK "  - batch.stack: {size: 256}\n"
#define UNBATCH "  - batch.unbatch: {}\n"

static const struct {
    const char *row, *text;
} graphs[] = {
    {"batch",                         SOURCE STACK                                      },
    {"filter, batch",                 SOURCE FILTER STACK                               },
    {"filter, skip, batch",           SOURCE FILTER "  - order.skip: {count: 1}\n" STACK},
    {"filter, skip, filter, batch",
     SOURCE FILTER "  - order.skip: {count: 1}\n" FILTER STACK                          },
    {"filter, window of 1000, batch",
     SOURCE FILTER "  - order.shuffle: {window: 1000}\n" STACK                          },
    {"batch, unbatch, batch",         SOURCE STACK UNBATCH STACK                        },
    {"batch, unbatch, filter, batch", SOURCE STACK UNBATCH FILTER STACK                 },
};

static void run(struct bench *bench, const char *row, const char *text)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_graph *graph = NULL;

    bench_must(hr_graph_parse(text, strlen(text), row, NULL, 0, &graph, &error), &error);
    hr_iter_options_init(&options);
    options.variant = HR_VARIANT_INLINE;
    bench_add_run(bench, row, graph, &options, RECORDS);
    hr_graph_unref(graph);
}

int main(int argc, char **argv)
{
    static struct bench bench;

    bench_init(&bench, argc, argv, "sequence",
               "2,000,000 numbers into batches of 256, inline, start included",
               "ns/record");
    bench.cpu_heading = "CPU ns";
    for (int i = 0; i < bench.rounds; i++)
        for (size_t j = 0; j < sizeof(graphs) / sizeof(graphs[0]); j++)
            run(&bench, graphs[j].row, graphs[j].text);
    bench_print(&bench);
    return 0;
}
