/*
 * tests/support/outcome.c - runs a graph to its end and keeps what can be compared.
 */
#include "tests/support/outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/hash.h"
#include "core/str.h"
#include "tests/support/check.h"

struct outcome_job outcome_job_text(const char *text)
{
    struct outcome_job job = {.text = text};

    hr_iter_options_init(&job.options);
    outcome_job_threads(&job, 0);
    return job;
}

void outcome_job_threads(struct outcome_job *job, int threads)
{
    job->options.threads = threads;
    job->options.variant = threads == 0 ? HR_VARIANT_INLINE : HR_VARIANT_THREADS;
}

struct outcome_job
outcome_job_with(const char *text, int threads, const struct hr_iter_options *options)
{
    struct outcome_job job = outcome_job_text(text);

    if (options != NULL)
        job.options = *options;
    outcome_job_threads(&job, threads);
    job.states = job.options.ordered;
    return job;
}

struct hr_graph *outcome_graph(const struct outcome_job *job, struct hr_error *reterr)
{
    struct hr_graph *graph = NULL;
    enum hr_err code =
        job->path != NULL
            ? hr_graph_load(job->path, job->params, job->param_count, &graph, reterr)
            : hr_graph_parse(job->text, strlen(job->text), "test.yaml", job->params,
                             job->param_count, &graph, reterr);

    if (code == HR_OK && job->prepare != NULL)
        code = job->prepare(job->user, graph, reterr);
    if (code == HR_OK)
        return graph;
    hr_graph_unref(graph);
    return NULL;
}

static uint64_t hash_ragged(const struct hr_field_view *view, uint64_t hash)
{
    int64_t items = view->dims[0];

    for (int l = 0; l < view->levels; l++) {
        hash = hr__hash64(view->splits[l], ((size_t)items + 1) * 8, hash);
        if (l + 1 < view->levels)
            items = view->splits[l][items];
    }
    if (view->shapes != NULL)
        hash = hr__hash64(view->shapes, (size_t)(items * view->item_ndim) * 8, hash);
    return hash;
}

uint64_t outcome_hash(const struct hr_batch *batch)
{
    struct hr_field_view view;
    uint64_t hash = 0;

    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        CHECK_OK(hr_batch_field(batch, i, &view));
        hash = hr__hash64(view.name, strlen(view.name), hash);
        hash = hr__hash64(view.dims, sizeof view.dims[0] * (size_t)view.ndim, hash);
        hash = hr__hash64(view.data, view.bytes, hash);
        hash = hash_ragged(&view, hash);
    }
    return hash;
}

static void *grown(void *memory, size_t count, size_t bytes)
{
    memory = reallocarray(memory, count, bytes);
    if (memory == NULL)
        abort();
    return memory;
}

static size_t ledger_bytes(const struct outcome_job *job)
{
    struct stat found;

    return job->options.ledger != NULL && stat(job->options.ledger, &found) == 0
               ? (size_t)found.st_size
               : 0;
}

/* The lines after the first `skip` bytes. */
static char *read_ledger(const struct outcome_job *job, size_t skip)
{
    size_t bytes = ledger_bytes(job);
    char *lines;
    FILE *file;

    if (job->options.ledger == NULL)
        return NULL;
    CHECK(skip <= bytes);
    bytes -= skip;
    lines = grown(NULL, bytes + 1, 1);
    if (bytes > 0) { /* else the file may not be there */
        file = fopen(job->options.ledger, "r");
        CHECK(file != NULL && fseek(file, (long)skip, SEEK_SET) == 0);
        CHECK_EQ_INT(fread(lines, 1, bytes, file), bytes);
        fclose(file);
    }
    lines[bytes] = '\0';
    return lines;
}

/* `before`: bytes of the ledger before the run. */
static void add(struct outcome *o, const struct outcome_job *job, size_t before,
                const struct hr_iter *iter, struct hr_batch *batch)
{
    size_t at = o->batches;

    if (at == o->room) {
        o->room = at == 0 ? 64 : 2 * at;
        o->sizes = grown(o->sizes, o->room, sizeof *o->sizes);
        o->hashes = grown(o->hashes, o->room, sizeof *o->hashes);
        o->states = grown(o->states, o->room, sizeof *o->states);
        o->listed = grown(o->listed, o->room, sizeof *o->listed);
    }
    o->sizes[at] = hr_batch_records(batch);
    o->hashes[at] = outcome_hash(batch);
    o->states[at] = NULL;
    o->listed[at] = ledger_bytes(job) - before;
    o->records += o->sizes[at];
    o->batches++;
    if (job->states)
        CHECK_OK(hr_iter_save(iter, &o->states[at], NULL));
    if (job->first && at == 0)
        o->first = hr_batch_ref(batch);
}

static void record_stats(struct outcome *o, const struct hr_iter *iter)
{
    struct hr_node_stats node;

    snprintf(o->detail, sizeof o->detail, "%s", hr_iter_detail(iter));
    hr_iter_stats(iter, &o->stats);
    for (size_t i = 0; hr_iter_node_stats(iter, i, &node) == HR_OK; i++)
        if (strcmp(node.op, "image.decode") == 0)
            o->decoded += (int64_t)node.records;
    for (size_t i = 0; i < OUTCOME_NODES && o->code == HR_ERR_END; i++)
        if (hr_iter_node_stats(iter, i, &o->nodes[i]) == HR_OK)
            o->nodes[i].node = o->nodes[i].op = o->nodes[i].fused_into = NULL;
}

char *outcome_edit_plan(char *plan, const char *key, const char *value)
{
    struct hr_str start, edited;
    const char *at;

    hr__str_init(&start);
    hr__str_addf(&start, "%s: ", key);
    at = strstr(plan, hr__str_text(&start));
    CHECK(at != NULL);
    hr__str_init(&edited);
    hr__str_add_bytes(&edited, plan, (size_t)(at - plan) + start.length);
    hr__str_add(&edited, value);
    hr__str_add(&edited, at + strcspn(at, "\n"));
    hr__str_finish(&start);
    hr_free(plan);
    return hr__str_take(&edited);
}

struct outcome *outcome_run(const struct outcome_job *job)
{
    struct outcome *o = calloc(1, sizeof *o);
    size_t before = ledger_bytes(job);
    struct hr_graph *graph;
    struct hr_iter *iter = NULL;
    struct hr_batch *batch;

    if (o == NULL)
        abort();
    graph = outcome_graph(job, &o->error);
    o->code = graph == NULL ? o->error.code
                            : hr_iter_open(graph, &job->options, &iter, &o->error);
    while (o->code == HR_OK && (job->batches_max == 0 || o->batches < job->batches_max) &&
           (o->code = hr_iter_next(iter, &batch, &o->error)) == HR_OK) {
        add(o, job, before, iter, batch);
        hr_batch_unref(batch);
    }
    if (iter != NULL)
        record_stats(o, iter);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    o->ledger = read_ledger(job, before);
    return o;
}

void outcome_free(struct outcome *o)
{
    for (size_t i = 0; i < o->batches; i++)
        hr_free(o->states[i]);
    hr_batch_unref(o->first);
    free(o->sizes);
    free(o->hashes);
    free(o->states);
    free(o->listed);
    free(o->ledger);
    free(o);
}

/* Describes the first line that differs, in `room` bytes of `text`; false if all are
 * equal. */
static bool lines_differ(const char *whole, const char *other, char *text, size_t room)
{
    size_t same = 0, begin;

    while (whole[same] != '\0' && whole[same] == other[same])
        same++;
    if (whole[same] == other[same])
        return false;
    for (begin = same; begin > 0 && whole[begin - 1] != '\n'; begin--)
        continue;
    snprintf(text, room, "a line of the ledger is\n%.*s, not\n%.*s",
             (int)strcspn(other + begin, "\n"), other + begin,
             (int)strcspn(whole + begin, "\n"), whole + begin);
    return true;
}

const char *
outcome_difference(const struct outcome *whole, const struct outcome *other, size_t skip)
{
    static char text[2048];
    size_t shared =
        whole->batches < other->batches + skip ? whole->batches : other->batches + skip;

    for (size_t i = skip; i < shared; i++) {
        if (whole->hashes[i] == other->hashes[i - skip])
            continue;
        snprintf(text, sizeof text, "batch %zu of %zu differs", i, whole->batches);
        return text;
    }
    if (whole->code != other->code || whole->batches != other->batches + skip ||
        (whole->code != HR_ERR_END &&
         strcmp(whole->error.message, other->error.message) != 0)) {
        snprintf(text, sizeof text, "%zu batches and %s (%s), not %zu and %s (%s)",
                 other->batches + skip, hr_err_name(other->code), other->error.message,
                 whole->batches, hr_err_name(whole->code), whole->error.message);
        return text;
    }
    if (whole->ledger != NULL && other->ledger != NULL &&
        lines_differ(whole->ledger + (skip > 0 ? whole->listed[skip - 1] : 0),
                     other->ledger, text, sizeof text))
        return text;
    return NULL;
}

void outcome_check_same(const struct outcome *whole, const struct outcome *other,
                        size_t skip, const char *words)
{
    const char *difference = outcome_difference(whole, other, skip);

    if (difference != NULL)
        check_failed(__FILE__, __LINE__, "%s: %s", words, difference);
}

void outcome_check_restarts(const struct outcome_job *given, const struct outcome *whole,
                            size_t places)
{
    struct outcome_job job = *given;

    for (size_t i = 0; i < whole->batches; i += 1 + whole->batches / places) {
        struct outcome *rest;
        char words[64];

        job.options.state = whole->states[i];
        job.states = false;
        outcome_job_threads(&job, i % 3 == 0 ? 0 : 2);
        rest = outcome_run(&job);
        snprintf(words, sizeof words, "restarted after batch %zu", i);
        outcome_check_same(whole, rest, i + 1, words);
        outcome_free(rest);
    }
}

void outcome_check_threads_and_restarts(struct outcome_job job)
{
    static const int threads[] = {1, 2, 3, 8};
    struct outcome *whole;

    outcome_job_threads(&job, 0);
    job.states = true;
    whole = outcome_run(&job);
    if (whole->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", whole->error.message);
    CHECK(whole->batches > 0);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        struct outcome *other;
        char words[64];

        outcome_job_threads(&job, threads[i]);
        other = outcome_run(&job);
        snprintf(words, sizeof words, "%d threads", threads[i]);
        outcome_check_same(whole, other, 0, words);
        outcome_free(other);
    }
    outcome_check_restarts(&job, whole, 40);
    outcome_free(whole);
}
