/*
 * tests/support/outcome.c - run a graph to its end and keep what can be compared.
 */
#include "tests/support/outcome.h"

#include <stdlib.h>
#include <string.h>

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

struct hr_graph *outcome_graph(const struct outcome_job *job, struct hr_error *reterr)
{
    struct hr_graph *graph = NULL;
    enum hr_err code =
        job->path != NULL
            ? hr_graph_load(job->path, job->params, job->param_count, &graph, reterr)
            : hr_graph_parse(job->text, strlen(job->text), "test.yaml", job->params,
                             job->param_count, &graph, reterr);

    return code == HR_OK ? graph : NULL;
}

struct hr_hash128 outcome_hash(const struct hr_batch *batch)
{
    struct hr_hasher *hasher = hr__hasher_create();
    struct hr_hash128 hash;
    struct hr_field_view view;

    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        CHECK_OK(hr_batch_field(batch, i, &view));
        hr__hasher_add(hasher, view.name, strlen(view.name));
        hr__hasher_add(hasher, view.dims, sizeof view.dims[0] * (size_t)view.ndim);
        hr__hasher_add(hasher, view.data, view.bytes);
        if (view.offsets != NULL)
            hr__hasher_add(hasher, view.offsets, ((size_t)view.dims[0] + 1) * 8);
    }
    hash = hr__hasher_value(hasher);
    hr__hasher_destroy(hasher);
    return hash;
}

static void add(struct outcome *o, const struct hr_iter *iter,
                const struct hr_batch *batch, bool state)
{
    if (o->batches == o->room) {
        o->room = o->room == 0 ? 64 : 2 * o->room;
        o->hashes = realloc(o->hashes, o->room * sizeof *o->hashes);
        o->states = realloc(o->states, o->room * sizeof *o->states);
        if (o->hashes == NULL || o->states == NULL)
            abort();
    }
    o->hashes[o->batches] = outcome_hash(batch);
    o->states[o->batches] = NULL;
    o->records += hr_batch_records(batch);
    if (state)
        CHECK_OK(hr_iter_save(iter, &o->states[o->batches], NULL));
    o->batches++;
}

struct outcome *outcome_run(const struct outcome_job *job)
{
    struct outcome *o = calloc(1, sizeof *o);
    struct hr_graph *graph;
    struct hr_iter *iter = NULL;
    struct hr_batch *batch;

    if (o == NULL)
        abort();
    graph = outcome_graph(job, &o->error);
    o->code = graph == NULL ? o->error.code
                            : hr_iter_open(graph, &job->options, &iter, &o->error);
    while (o->code == HR_OK &&
           (o->code = hr_iter_next(iter, &batch, &o->error)) == HR_OK) {
        add(o, iter, batch, job->states);
        hr_batch_unref(batch);
    }
    if (iter != NULL)
        hr_iter_stats(iter, &o->stats);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return o;
}

void outcome_free(struct outcome *o)
{
    for (size_t i = 0; i < o->batches; i++)
        hr_free(o->states[i]);
    free(o->states);
    free(o->hashes);
    free(o);
}

const char *
outcome_difference(const struct outcome *whole, const struct outcome *other, size_t skip)
{
    static char text[2048];
    size_t shared =
        whole->batches < other->batches + skip ? whole->batches : other->batches + skip;

    for (size_t i = skip; i < shared; i++) {
        if (hr__hash_equal(whole->hashes[i], other->hashes[i - skip]))
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
    return NULL;
}
