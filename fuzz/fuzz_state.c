/*
 * fuzz/fuzz_state.c - any text as the state of an iterator, and of the only rank of a
 * world: refused with a message, or resumed from without harm. "@" in the text stands for
 * the graph's fingerprint, so that the code after that check is reached; the first byte
 * chooses the graph.
 */
#include "fuzz/graph_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define HEAD                                                                             \
    "headrace: 1\npipeline:\n  - source.range: {n: 1000}\n  - order.shuffle: {}\n"
static const char *const texts[] = {
    HEAD "  - batch.stack: {size: 7}\n",
    HEAD "  - record.filter: {expr: \"value % 3 != 1\"}\n"
         "  - order.shuffle: {window: 16}\n"
         "  - order.take: {count: 300}\n"
         "  - batch.stack: {size: 7}\n",
    HEAD "  - batch.stack: {size: 5}\n"
         "  - batch.unbatch: {}\n"
         "  - order.skip: {count: 3}\n"
         "  - batch.stack: {size: 8}\n",
    HEAD "  - batch.bucket: {by: value, boundaries: [300, 700], size: 5}\n",
};
#define GRAPHS (sizeof texts / sizeof texts[0])

static struct hr_graph *graphs[GRAPHS];

/* Reads a little and saves: a state that was accepted can be resumed from. */
static void resume(struct hr_iter *iter)
{
    struct hr_batch *batch;
    char *state;

    for (int i = 0; i < 3 && hr_iter_next(iter, &batch, NULL) == HR_OK; i++)
        hr_batch_unref(batch);
    if (hr_iter_save(iter, &state, NULL) == HR_OK)
        hr_free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_iter_options options;
    struct hr_iter *iter;
    struct hr_error error = {0};
    struct hr_graph *graph;
    struct hr_str text;
    char *merged;
    const char *states[1];

    if (bytes < 1)
        return 0;
    graph = fuzz_graph(&graphs[data[0] % GRAPHS], texts[data[0] % GRAPHS]);
    fuzz_text(&text, graph, data + 1, bytes - 1);
    hr_iter_options_init(&options);
    options.variant = HR_VARIANT_INLINE;
    options.world = data[0] / GRAPHS % 3;
    options.state = hr__str_text(&text);
    states[0] = options.state;
    if (hr_state_merge(states, 1, &merged, &error) == HR_OK)
        hr_free(merged);
    else if (error.message[0] == '\0')
        abort();
    memset(&error, 0, sizeof error);
    if (hr_iter_open(graph, &options, &iter, &error) == HR_OK) {
        resume(iter);
        hr_iter_close(iter);
    } else if (error.message[0] == '\0') {
        abort();
    }
    hr__str_finish(&text);
    return 0;
}
