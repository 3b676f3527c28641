/*
 * tinyrace.c - a minimal C program that iterates over batches of photos.
 *
 *     cc tinyrace.c $(pkg-config --cflags --libs headrace) -o tinyrace
 *     ./tinyrace g.yaml
 */
#include <headrace/engine.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct hr_iter_options options;
    struct hr_graph *graph = NULL;
    struct hr_iter *iter = NULL;
    struct hr_batch *batch = NULL;
    struct hr_field_view field;
    struct hr_error error = {0};
    enum hr_err code;

    if (argc != 2)
        return fprintf(stderr, "usage: tinyrace GRAPH\n"), 2;
    hr_iter_options_init(&options);
    code = hr_graph_load(argv[1], NULL, 0, &graph, &error);
    if (code == HR_OK)
        code = hr_iter_open(graph, &options, &iter, &error);
    while (code == HR_OK && (code = hr_iter_next(iter, &batch, &error)) == HR_OK) {
        code = hr_batch_field(batch, 0, &field); /* field.data: pass it to the trainer */
        if (code == HR_OK)
            printf("%lld records, %s: %zu bytes\n", (long long)hr_batch_records(batch),
                   field.name, field.bytes);
        hr_batch_unref(batch);
    }
    if (code != HR_ERR_END)
        fprintf(stderr, "tinyrace: %s\n", error.message);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return code == HR_ERR_END ? 0 : 1;
}
