/*
 * tokenize.c - make bench B=tokenize: MiB/s of GPT-2's BPE.
 *
 * The text is WikiText-2's validation and test sets, repeated to about 50 MB where a row
 * is warm: then all words are in the cache of the thread. Cold is the first sight of the
 * text by a new tokenizer's cache, whose creation is not counted. The rows of tokens.pack
 * call its hooks with the ids of the lines; the pipeline is a graph over a file of the
 * repeated lines, from opening it to the last batch.
 * bench/python/tokenizers_race.py compares the Python package with tiktoken and
 * gigatoken.
 */
#include "measure.h"

#include "codec/bpe.h"
#include "core/alloc.h"
#include "core/file.h"
#include "graph/graph.h"
#include "headrace/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARM_BYTES ((size_t)50 << 20)

static char *text;
static size_t text_bytes;
static struct hr_tokenizer_text *lines, *repeated;
static size_t line_count, repeats;
static struct hr_tokens ids;
static int64_t *offsets;
static char encoder[4096], merges[4096], lines_path[4096];
static double packed_rate, padding[2]; /* tokens/s; parts of rows by fit */

static void read_text(const char *dir)
{
    static const char *const names[] = {"valid", "test"};
    struct hr_error error = {0};

    for (int i = 0; i < 2; i++) {
        char path[4096], *data;
        size_t bytes;

        snprintf(path, sizeof path, "%s/text/wikitext2-%s.txt", dir, names[i]);
        bench_must(hr__file_read(path, 1 << 30, &data, &bytes, &error), &error);
        text = realloc(text, text_bytes + bytes + 1);
        memcpy(text + text_bytes, data, bytes);
        text_bytes += bytes;
        hr__free(data);
    }
    text[text_bytes] = '\0';
}

static void split_text(void)
{
    for (size_t i = 0; i < text_bytes; i++)
        line_count += text[i] == '\n';
    lines = calloc(line_count + 1, sizeof *lines);
    line_count = 0;
    for (const char *at = text, *end = text + text_bytes; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((stop != NULL ? stop + 1 : end) - at);

        lines[line_count++] = (struct hr_tokenizer_text){at, bytes};
        at += bytes;
    }
    repeats = WARM_BYTES / text_bytes + 1;
    repeated = calloc(repeats, sizeof *repeated);
    for (size_t i = 0; i < repeats; i++)
        repeated[i] = (struct hr_tokenizer_text){text, text_bytes};
    offsets = calloc(line_count + repeats + 1, sizeof *offsets);
}

static struct hr_tokenizer *open_tokenizer(void)
{
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};

    bench_must(hr_tokenizer_from_gpt2(encoder, merges, &t, &error), &error);
    return t;
}

static void
add(struct bench *bench, const char *row, double since, double cpu, size_t bytes)
{
    double mib = (double)bytes / (1 << 20);

    bench_add(bench, row, (bench_now() - since) / mib * 1e3,
              (bench_cpu_seconds() - cpu) / mib * 1e3);
}

static void batch(struct bench *bench, const char *row, struct hr_tokenizer *t,
                  const struct hr_tokenizer_text *texts, size_t count, int threads)
{
    struct hr_error error = {0};
    double since = bench_now(), cpu = bench_cpu_seconds();
    size_t bytes = 0;

    bench_must(hr_tokenizer_encode_batch(t, texts, count, threads, &ids, offsets, &error),
               &error);
    for (size_t i = 0; i < count; i++)
        bytes += texts[i].bytes;
    add(bench, row, since, cpu, bytes);
}

/* ---- rows of one length ---- */

#define LENGTH 1024
static const char *const fits[] = {"best", "first"};

/* A graph over the file `path` up to tokens.pack or to batches. */
static struct hr_graph *packing_graph(const char *path, const char *fit, bool batches)
{
    struct hr_error error = {0};
    struct hr_graph *graph = NULL;
    char nodes[16384];

    snprintf(nodes, sizeof nodes,
             "headrace: 1\npipeline:\n  - source.list: {path: '%s'}\n"
             "  - text.tokenize_bpe: {encoder: '%s', merges: '%s'}\n"
             "  - tokens.pack: {length: %d, fit: %s}\n%s",
             path, encoder, merges, LENGTH, fit,
             batches ? "  - batch.stack: {size: 64}\n" : "");
    bench_must(hr_graph_parse(nodes, strlen(nodes), "bench", NULL, 0, &graph, &error),
               &error);
    bench_must(hr_graph_freeze(graph, &error), &error);
    return graph;
}

/* Takes the outputs of next(), and returns how many there were. */
static int64_t drain(const struct hr_op_sequence *op, void *state)
{
    int64_t rows = 0;

    for (bool more = true; more;) {
        struct hr_value values[3] = {{0}};
        struct hr_sequence_record record = {.values = values};
        struct hr_error error = {0};
        bool any;

        bench_must(op->next(state, &record, &any, &more, &error), &error);
        rows += any;
        for (int f = 0; f < 3; f++)
            hr__value_clear(&values[f]);
    }
    return rows;
}

/* Packs the ids of all lines, in order, and returns the number of rows. */
static int64_t pack_lines(const struct hr_graph_node *node, const struct hr_graph *graph,
                          struct hr_pool *pool)
{
    const struct hr_op_sequence *op = &node->op->sequence;
    struct hr_error error = {0};
    struct hr_sequence_begin begin = {.params = node->params,
                                      .input = &graph->nodes[node->inputs[0]].schema,
                                      .output = &node->schema,
                                      .pool = pool,
                                      .error = &error};
    void *state = NULL;
    int64_t rows = 0;

    bench_must(op->begin(&begin, &state), &error);
    for (size_t i = 0; i < line_count; i++) {
        struct hr_value value = {0};
        struct hr_sequence_record record = {.values = &value, .id.position = i};
        enum hr_sequence_verdict verdict;

        hr__value_set_tensor(&value, HR_I32, 1, &(int64_t){offsets[i + 1] - offsets[i]},
                             ids.ids + offsets[i], NULL);
        bench_must(op->add(state, &record, &verdict, &error), &error);
        if (verdict == HR_SEQUENCE_READY)
            rows += drain(op, state);
    }
    bench_must(op->flush(state, HR_FLUSH_EPOCH, &error), &error);
    rows += drain(op, state);
    op->end(state);
    return rows;
}

/* `ids` and `offsets` are of the lines. */
static void pack(struct bench *bench, int fit)
{
    struct hr_graph *graph = packing_graph(lines_path, fits[fit], false);
    struct hr_pool *pool = hr_pool_create(0);
    double since, cpu, tokens = (double)offsets[line_count], seconds;
    int64_t rows;
    char row[32];

    snprintf(row, sizeof row, "tokens.pack, %s fit", fits[fit]);
    since = bench_now();
    cpu = bench_cpu_seconds();
    rows = pack_lines(&graph->nodes[graph->output], graph, pool);
    seconds = bench_now() - since;
    add(bench, row, since, cpu, text_bytes);
    padding[fit] = 1 - tokens / (double)(rows * LENGTH);
    if (fit == 0 && tokens / seconds > packed_rate)
        packed_rate = tokens / seconds;
    hr_pool_unref(pool);
    hr_graph_unref(graph);
}

static void pipeline(struct bench *bench, const char *row, int threads)
{
    struct hr_graph *graph = packing_graph(lines_path, "best", true);
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;
    struct hr_batch *taken = NULL;
    double since = bench_now(), cpu = bench_cpu_seconds();
    enum hr_err code;

    hr_iter_options_init(&options);
    options.variant = threads > 0 ? HR_VARIANT_THREADS : HR_VARIANT_INLINE;
    options.threads = threads;
    bench_must(hr_iter_open(graph, &options, &iter, &error), &error);
    while ((code = hr_iter_next(iter, &taken, &error)) == HR_OK)
        hr_batch_unref(taken);
    if (code != HR_ERR_END)
        bench_must(code, &error);
    hr_iter_close(iter);
    add(bench, row, since, cpu, text_bytes * repeats);
    hr_graph_unref(graph);
}

/* The repeated lines. */
static void write_lines(void)
{
    struct hr_file_writer *file;
    struct hr_error error = {0};

    bench_path(lines_path, sizeof lines_path, "tokenize-lines.txt");
    bench_must(hr__file_begin(lines_path, &file, &error), &error);
    for (size_t i = 0; i < repeats; i++)
        bench_must(hr__file_write(file, text, text_bytes, &error), &error);
    bench_must(hr__file_commit(file, &error), &error);
}

static void run(struct bench *bench)
{
    struct hr_tokenizer *t = open_tokenizer();
    struct hr_error error = {0};
    double since, cpu;

    ids.count = 0;
    bench_must(hr_tokenizer_append(t, "a", 1, &ids, &error),
               &error); /* makes the cache */
    ids.count = 0;
    since = bench_now();
    cpu = bench_cpu_seconds();
    bench_must(hr_tokenizer_append(t, text, text_bytes, &ids, &error), &error);
    add(bench, "cold", since, cpu, text_bytes);
    batch(bench, "warm", t, repeated, repeats, 1);
    batch(bench, "warm, 1 thread", t, repeated, repeats, 1);
    batch(bench, "warm, 2 threads, first", t, repeated, repeats, 2);
    batch(bench, "warm, 2 threads", t, repeated, repeats, 2);
    batch(bench, "warm, by line", t, lines, line_count, 1);
    pack(bench, 0);
    pack(bench, 1);
    pipeline(bench, "lines to packed batches", 0);
    pipeline(bench, "the same, 2 threads", 2);
    hr_tokenizer_destroy(t);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    const char *dir = getenv("HEADRACE_DATA");

    bench_init(&bench, argc, argv, "tokenize", "GPT-2's BPE over WikiText-2", "ms/MiB");
    bench.cpu_heading = "CPU ms";
    if (dir == NULL)
        dir = "../shared/data"; /* tools/bench runs in the root of the tree */
    snprintf(encoder, sizeof encoder, "%s/tokenizer/gpt2-encoder.json", dir);
    snprintf(merges, sizeof merges, "%s/tokenizer/gpt2-vocab.bpe", dir);
    read_text(dir);
    split_text();
    write_lines();
    for (int i = 0; i < bench.rounds; i++)
        run(&bench);
    bench_fact(&bench, "text", "%.2f MiB, %zu lines; warm %.0f MiB",
               (double)text_bytes / (1 << 20), line_count,
               (double)(text_bytes * repeats) / (1 << 20));
    bench_claim_ratio(&bench, "2 threads to 1, warm", "warm, 1 thread", "warm, 2 threads",
                      false, true, 1.7);
    bench_claim_value(&bench, "million tokens packed per second, best fit",
                      packed_rate / 1e6, true, 20);
    bench_claim_value(&bench, "% of padding at length 1024, best fit", 100 * padding[0],
                      false, 1);
    bench_fact(&bench, "padding", "best fit %.2f %%, first fit %.2f %%", 100 * padding[0],
               100 * padding[1]);
    bench_print(&bench);
    return 0;
}
