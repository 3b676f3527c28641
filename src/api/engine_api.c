/*
 * api/engine_api.c - include/headrace/engine.h: checks arguments; src/engine does the
 * work.
 */
#include "headrace/engine.h"

#include <assert.h>
#include <string.h>

#include "api/iter.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "fleet/cut.h"
#include "op/ragged.h"

void hr_iter_options_init(struct hr_iter_options *options)
{
    memset(options, 0, sizeof *options);
    options->epochs = 1;
    options->ordered = true;
    options->fuse = true;
}

#ifdef HR_SERVICE
/* The first part of the graph runs on workers, the rest here. */
static enum hr_err
open_fed(struct hr_graph *graph, uint32_t after, const struct hr_iter_options *options,
         struct hr_iter *iter, struct hr_error *reterr)
{
    struct hr_engine_place place = {0};

    HR_TRY(hr__supply_open(graph, after, options, &iter->supply, reterr));
    place.feed = hr__supply_feed(iter->supply);
    return hr__engine_open_in(graph, hr__supply_options(iter->supply), &place,
                              &iter->engine, reterr);
}
#endif

#ifdef HR_SERVICE
/* Its positions must be whole batches. */
static enum hr_err
open_consumer(struct hr_graph *graph, const struct hr_iter_options *options,
              struct hr_iter *iter, struct hr_error *reterr)
{
    struct hr_error error = {0};
    enum hr_err code = hr__remote_open(graph, options, &iter->remote, &error);

    if (code == HR_ERR_UNSUPPORTED && options->service_after == NULL)
        return hr__fail(reterr, code,
                        "several consumers of one job need batches that any worker can "
                        "make by itself: %s",
                        error.message);
    if (code != HR_OK && reterr != NULL)
        *reterr = error;
    return code;
}
#endif

static enum hr_err
open_remote(struct hr_graph *graph, const struct hr_iter_options *options,
            struct hr_iter *iter, struct hr_error *reterr)
{
#ifdef HR_SERVICE
    uint32_t after;

    HR_TRY(hr_graph_freeze(graph, reterr));
    if (options->service_consumer != NULL)
        return open_consumer(graph, options, iter, reterr);
    HR_TRY(hr__cut_asked(graph, options->service_after, &after, reterr));
    if (after == HR_CUT_FREE || after == graph->output) {
        enum hr_err code = hr__remote_open(graph, options, &iter->remote, reterr);

        if (code != HR_ERR_UNSUPPORTED || after != HR_CUT_FREE)
            return code;
    }
    return open_fed(graph, after, options, iter, reterr);
#else
    (void)graph;
    (void)options;
    (void)iter;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "this library was built without libevent, which a service needs");
#endif
}

enum hr_err hr_iter_open(struct hr_graph *graph, const struct hr_iter_options *options,
                         struct hr_iter **ret_iter, struct hr_error *reterr)
{
    struct hr_iter_options defaults;
    struct hr_iter *iter;
    enum hr_err code;

    hr_iter_options_init(&defaults);
    if (graph == NULL || ret_iter == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "graph and ret_iter must not be NULL");
    options = options != NULL ? options : &defaults;
    if (options->service_consumer != NULL &&
        (options->service == NULL || options->service_after != NULL))
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "options.service_consumer needs options.service, and workers that "
            "run the whole graph: no options.service_after");
    iter = hr__calloc(1, sizeof *iter);
    if (iter == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = options->service != NULL
               ? open_remote(graph, options, iter, reterr)
               : hr__engine_open(graph, options, &iter->engine, reterr);
    if (code != HR_OK) {
        hr_iter_close(iter);
        return code;
    }
    *ret_iter = iter;
    return HR_OK;
}

enum hr_err
hr_graph_epoch_size(struct hr_graph *graph, const struct hr_iter_options *options,
                    struct hr_epoch_size *ret_size, struct hr_error *reterr)
{
    struct hr_iter_options defaults;

    hr_iter_options_init(&defaults);
    if (graph == NULL || ret_size == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "no graph, or nowhere to put the size");
    HR_TRY(hr_graph_freeze(graph, reterr));
    return hr__engine_epoch_size(graph, options != NULL ? options : &defaults, ret_size,
                                 reterr);
}

/* The next batch, waiting until the clock shows `until_ns` at most. */
static enum hr_err next_until(struct hr_iter *iter, uint64_t until_ns,
                              struct hr_batch **ret_batch, struct hr_error *reterr)
{
#ifdef HR_SERVICE
    if (iter->remote != NULL)
        return hr__remote_next(iter->remote, until_ns, ret_batch, reterr);
#endif
    return hr__engine_next(iter->engine, until_ns, ret_batch, reterr);
}

enum hr_err
hr_iter_next(struct hr_iter *iter, struct hr_batch **ret_batch, struct hr_error *reterr)
{
    if (iter == NULL || ret_batch == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "iter and ret_batch must not be NULL");
    return next_until(iter, UINT64_MAX, ret_batch, reterr);
}

enum hr_err hr_iter_next_for(struct hr_iter *iter, uint64_t timeout_ns,
                             struct hr_batch **ret_batch, struct hr_error *reterr)
{
    uint64_t now = hr__now_ns();

    if (iter == NULL || ret_batch == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "iter and ret_batch must not be NULL");
    return next_until(iter, timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX,
                      ret_batch, reterr);
}

void hr_iter_cancel(struct hr_iter *iter)
{
    if (iter == NULL)
        return;
#ifdef HR_SERVICE
    if (iter->remote != NULL)
        hr__remote_cancel(iter->remote);
#endif
    if (iter->engine == NULL)
        return;
    atomic_store(&iter->engine->cancelled, true);
    atomic_store(&iter->engine->stop, true); /* no record is started after this */
}

/* Refuses what only a run in this process has. */
static enum hr_err check_local(const struct hr_iter *iter, struct hr_error *reterr)
{
    if (iter == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "iter must not be NULL");
    if (iter->engine == NULL)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a service makes the batches of this run: ask its workers");
    return HR_OK;
}

enum hr_err hr_iter_demand(struct hr_iter *iter, double demand, struct hr_error *reterr)
{
    HR_TRY(check_local(iter, reterr));
    HR_TRY(hr__demand_check(demand, reterr));
    pthread_mutex_lock(&iter->engine->lock);
    hr__demand_set(iter->engine, demand);
    pthread_mutex_unlock(&iter->engine->lock);
    return HR_OK;
}

enum hr_err hr_iter_seed(struct hr_iter *iter, uint64_t seed, struct hr_error *reterr)
{
    HR_TRY(check_local(iter, reterr));
    if (seed > INT64_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "seed must be below 2^63, not %llu",
                        (unsigned long long)seed);
    return hr__engine_seed(iter->engine, seed, reterr);
}

const char *hr_iter_detail(const struct hr_iter *iter)
{
    const struct hr_engine *engine = iter != NULL ? iter->engine : NULL;

    return engine != NULL && engine->detail_given && engine->detail != NULL
               ? engine->detail
               : "";
}

enum hr_err
hr_iter_stop(struct hr_iter *iter, uint64_t timeout_ns, struct hr_error *reterr)
{
    if (iter == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "iter must not be NULL");
    if (iter->engine != NULL)
        return hr__engine_stop(iter->engine, timeout_ns, reterr);
    hr_iter_cancel(iter);
    return HR_OK;
}

static void close_engine(struct hr_engine *engine)
{
    struct hr_graph *graph = engine->graph;

    hr__graph_ref(graph);
    hr__engine_close(engine);
    hr__graph_rest(graph);
    hr__graph_unref(graph);
}

void hr_iter_close(struct hr_iter *iter)
{
    if (iter == NULL)
        return;
#ifdef HR_SERVICE
    hr__remote_close(iter->remote);
#endif
    if (iter->engine != NULL)
        close_engine(iter->engine);
#ifdef HR_SERVICE
    hr__supply_close(iter->supply);
#endif
    hr__free(iter);
}

/* Returns the text to the caller, or the error that prevented it. */
static enum hr_err return_text(struct hr_str *text, enum hr_err code, char **ret_text,
                               struct hr_error *reterr)
{
    if (code == HR_OK && (*ret_text = hr__str_take(text)) == NULL)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__str_finish(text);
    return code;
}

static enum hr_err
save(const struct hr_iter *iter, struct hr_str *text, struct hr_error *reterr)
{
    enum hr_err code;

#ifdef HR_SERVICE
    if (iter->remote != NULL)
        return hr__remote_save(iter->remote, text, reterr);
#endif
    code = hr__state_print(iter->engine, text);
    if (code == HR_ERR_UNSUPPORTED)
        return hr__fail(reterr, code, "cannot save a state: %s",
                        iter->engine->one_record
                            ? "each record was given a seed, so there is no position"
                            : "batches are delivered as they complete, so there is no "
                              "single position; use ordered batches");
    return code == HR_OK ? HR_OK : hr__fail(reterr, code, "out of memory");
}

enum hr_err
hr_iter_save(const struct hr_iter *iter, char **ret_json, struct hr_error *reterr)
{
    struct hr_str text;

    if (iter == NULL || ret_json == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "iter and ret_json must not be NULL");
    hr__str_init(&text);
    return return_text(&text, save(iter, &text, reterr), ret_json, reterr);
}

/* ---- one of several consumers ---- */

/* Refuses runs of another kind. */
static enum hr_err check_consumer(const struct hr_iter *iter, struct hr_error *reterr)
{
    if (iter == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "iter must not be NULL");
    if (iter->remote == NULL)
        return hr__fail(reterr, HR_ERR_STATE,
                        "only a run with options.service_consumer commits");
    return HR_OK;
}

#ifdef HR_SERVICE
static uint64_t deadline(uint64_t timeout_ns)
{
    uint64_t now = hr__now_ns();

    return timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
}
#endif

enum hr_err hr_iter_committed(struct hr_iter *iter, uint64_t timeout_ns,
                              uint64_t *ret_number, struct hr_error *reterr)
{
    HR_TRY(check_consumer(iter, reterr));
    if (ret_number == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "ret_number must not be NULL");
#ifdef HR_SERVICE
    return hr__remote_committed(iter->remote, deadline(timeout_ns), ret_number, reterr);
#else
    (void)timeout_ns;
    return HR_ERR_UNSUPPORTED;
#endif
}

enum hr_err
hr_iter_resume(struct hr_iter *iter, const char *state, struct hr_error *reterr)
{
    HR_TRY(check_consumer(iter, reterr));
    if (state == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "state must not be NULL");
#ifdef HR_SERVICE
    return hr__remote_resume(iter->remote, state, reterr);
#else
    return HR_ERR_UNSUPPORTED;
#endif
}

enum hr_err hr_iter_commit_due(struct hr_iter *iter, uint64_t timeout_ns, bool *ret_due,
                               struct hr_error *reterr)
{
    HR_TRY(check_consumer(iter, reterr));
    if (ret_due == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "ret_due must not be NULL");
#ifdef HR_SERVICE
    return hr__remote_commit_due(iter->remote, deadline(timeout_ns), ret_due, reterr);
#else
    (void)timeout_ns;
    return HR_ERR_UNSUPPORTED;
#endif
}

enum hr_err
hr_iter_commit(struct hr_iter *iter, uint64_t timeout_ns, struct hr_error *reterr)
{
    HR_TRY(check_consumer(iter, reterr));
#ifdef HR_SERVICE
    return hr__remote_commit(iter->remote, deadline(timeout_ns), reterr);
#else
    (void)timeout_ns;
    return HR_ERR_UNSUPPORTED;
#endif
}

enum hr_err hr_state_merge(const char *const *states, size_t count, char **ret_json,
                           struct hr_error *reterr)
{
    struct hr_str text;

    if (states == NULL || count == 0 || ret_json == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "states and ret_json must not be NULL");
    hr__str_init(&text);
    return return_text(&text, hr__state_merge(states, count, &text, reterr), ret_json,
                       reterr);
}

enum hr_err
hr_iter_trace(const struct hr_iter *iter, char **ret_json, struct hr_error *reterr)
{
    struct hr_str text;
    enum hr_err code;

    if (ret_json == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "ret_json must not be NULL");
    HR_TRY(check_local(iter, reterr));
    hr__str_init(&text);
    code = hr__engine_trace(iter->engine, &text);
    return return_text(&text, code, ret_json, reterr);
}

void hr_iter_stats(const struct hr_iter *iter, struct hr_iter_stats *ret_stats)
{
    if (iter == NULL || ret_stats == NULL)
        return;
#ifdef HR_SERVICE
    if (iter->remote != NULL)
        hr__remote_stats(iter->remote, ret_stats);
#endif
    if (iter->engine != NULL)
        hr__engine_stats(iter->engine, ret_stats);
#ifdef HR_SERVICE
    if (iter->supply != NULL)
        hr__supply_stats(iter->supply, ret_stats);
#endif
}

enum hr_err
hr_iter_node_stats(const struct hr_iter *iter, size_t at, struct hr_node_stats *ret_stats)
{
    if (iter == NULL || ret_stats == NULL)
        return HR_ERR_ARGUMENT;
    if (iter->engine == NULL)
        return HR_ERR_RANGE; /* the workers have them */
    return hr__engine_node_stats(iter->engine, at, ret_stats);
}

/* The plan of these options (NULL: defaults); hr__plan_finish() it. */
static enum hr_err plan_of(struct hr_graph *graph, const struct hr_iter_options *options,
                           struct hr_plan *ret_plan, struct hr_error *reterr)
{
    struct hr_iter_options defaults;
    struct hr_sizes sizes;

    hr_iter_options_init(&defaults);
    HR_TRY(hr_graph_freeze(graph, reterr));
    return hr__engine_plan(graph, options != NULL ? options : &defaults, NULL, ret_plan,
                           &sizes, reterr);
}

enum hr_err
hr_graph_plan(struct hr_graph *graph, const struct hr_iter_options *options,
              enum hr_graph_format format, char **ret_text, struct hr_error *reterr)
{
    struct hr_plan plan;
    struct hr_str text;

    if (graph == NULL || ret_text == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "no graph, or nowhere to put the plan");
    HR_TRY(plan_of(graph, options, &plan, reterr));
    hr__str_init(&text);
    hr__plan_print(&plan, format, &text);
    hr__plan_finish(&plan);
    return return_text(&text, HR_OK, ret_text, reterr);
}

enum hr_err
hr_graph_explain(struct hr_graph *graph, const struct hr_iter_options *options, bool json,
                 char **ret_text, struct hr_error *reterr)
{
    struct hr_plan plan;
    struct hr_str text;

    if (graph == NULL || ret_text == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "no graph, or nowhere to put the text");
    HR_TRY(plan_of(graph, options, &plan, reterr));
    hr__str_init(&text);
    if (json)
        hr__plan_print(&plan, HR_GRAPH_JSON, &text);
    else
        hr__plan_explain(&plan, &text);
    hr__plan_finish(&plan);
    return return_text(&text, HR_OK, ret_text, reterr);
}

/* ---- batches ---- */

int64_t hr_batch_records(const struct hr_batch *batch)
{
    return batch != NULL ? batch->records : 0;
}

int64_t hr_batch_epoch(const struct hr_batch *batch)
{
    return batch != NULL ? batch->epoch : 0;
}

size_t hr_batch_field_count(const struct hr_batch *batch)
{
    return batch != NULL ? batch->field_count : 0;
}

enum hr_err
hr_batch_field(const struct hr_batch *batch, size_t at, struct hr_field_view *ret_view)
{
    const struct hr_value *value;

    if (batch == NULL || ret_view == NULL)
        return HR_ERR_ARGUMENT;
    if (at >= batch->field_count)
        return HR_ERR_RANGE;
    value = &batch->values[at];
    assert(hr__value_is_made(value));
    memset(ret_view, 0, sizeof *ret_view);
    hr__value_view(value, batch->names[at], ret_view);
    ret_view->text = batch->texts[at];
    ret_view->buffer = value->owner;
    return HR_OK;
}

enum hr_err hr_batch_find(const struct hr_batch *batch, const char *name,
                          struct hr_field_view *ret_view)
{
    if (batch == NULL || name == NULL || ret_view == NULL)
        return HR_ERR_ARGUMENT;
    for (size_t i = 0; i < batch->field_count; i++)
        if (strcmp(batch->names[i], name) == 0)
            return hr_batch_field(batch, i, ret_view);
    return HR_ERR_NOT_FOUND;
}
