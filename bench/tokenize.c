/*
 * tokenize.c - make bench B=tokenize: MiB/s of GPT-2's BPE.
 *
 * The text is WikiText-2's validation and test sets, repeated to about 50 MB where a row
 * is warm: then all words are in the cache of the thread. Cold is the first sight of the
 * text by a new tokenizer's cache, whose creation is not counted.
 * bench/python/tokenizers_race.py compares the Python package with tiktoken and
 * gigatoken.
 */
#include "measure.h"

#include "codec/bpe.h"
#include "core/alloc.h"
#include "core/file.h"
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
static char encoder[4096], merges[4096];

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
    for (int i = 0; i < bench.rounds; i++)
        run(&bench);
    bench_fact(&bench, "text", "%.2f MiB, %zu lines; warm %.0f MiB",
               (double)text_bytes / (1 << 20), line_count,
               (double)(text_bytes * repeats) / (1 << 20));
    bench_claim_ratio(&bench, "2 threads to 1, warm", "warm, 1 thread", "warm, 2 threads",
                      false, true, 1.7);
    bench_print(&bench);
    return 0;
}
