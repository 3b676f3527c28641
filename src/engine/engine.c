/*
 * engine/engine.c - opening an engine, and the consumer's side.
 */
#include "engine/budget.h"
#include "engine/run.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/clock.h"
#include "core/error.h"

/* ---- open and close ---- */

static enum hr_err set_share(struct hr_engine *engine, struct hr_error *reterr)
{
    struct hr_iter_options *o = &engine->options;

    HR_TRY(hr__engine_set_world(engine->graph, o, reterr));
    engine->divider = o->world > 1 ? hr__engine_divider(engine->graph) : HR_NO_NODE;
    if (engine->divider != HR_NO_NODE) {
        engine->source_world = 1;
        return HR_OK;
    }
    engine->source_rank = (uint64_t)o->rank;
    engine->source_world = (uint64_t)o->world;
    return HR_OK;
}

static enum hr_err make_plan(struct hr_engine *engine, struct hr_error *reterr)
{
    HR_TRY(set_share(engine, reterr));
    HR_TRY(hr__engine_plan(engine->graph, &engine->options,
                           engine->feed != NULL ? &engine->feed->node : NULL,
                           &engine->plan, &engine->sizes, reterr));
    engine->stage_count = engine->plan.stage_count;
    engine->thread_count = engine->plan.threads;
    hr__contention_init(&engine->contention, engine->thread_count);
    pthread_mutex_lock(&engine->lock);
    hr__demand_set(engine, engine->options.demand);
    pthread_mutex_unlock(&engine->lock);
    engine->out_max = engine->plan.memory.batches_ahead;
    if (engine->options.timeout_ns > 0 && engine->thread_count == 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a timeout needs threads: without any, the consumer's own thread "
                        "makes the batches, and cannot look at the clock meanwhile");
    return HR_OK;
}

/* Places without a mark count children if each record of the expansion is a source
 * record. */
static uint32_t find_child_node(const struct hr_engine *engine)
{
    for (size_t i = 0; i < engine->stage_count; i++) {
        const struct hr_plan_stage *stage = &engine->plan.stages[i];

        if (stage->expand != HR_NO_NODE)
            return stage->expand;
        if (stage->sequence_count > 0)
            break;
    }
    return HR_NO_NODE;
}

static enum hr_err init_stages(struct hr_engine *engine, struct hr_error *reterr)
{
    engine->child_node = find_child_node(engine);
    for (size_t i = 0; i < engine->stage_count; i++) {
        struct hr_stage *stage = &engine->stages[i];

        HR_TRY(hr__stage_init(stage, engine, i, reterr));
        HR_TRY(hr__process_host(engine, &stage->program, reterr));
    }
    return HR_OK;
}

static enum hr_err init_reader(struct hr_engine *engine, struct hr_error *reterr)
{
    struct hr_reader_options options = {
        .pool = engine->pool,
        .ahead_bytes_max = engine->plan.memory.read_ahead,
        .depth = (int)engine->plan.memory.read_ahead_files,
    };

    engine->ahead_depth = options.depth;
    engine->remote = hr__ahead_is_remote(engine);
    return hr__reader_create(&options, &engine->reader, reterr);
}

/* The engine's lock is held for well under a microsecond, so waiters spin first. */
static void init_locks(struct hr_engine *engine)
{
    pthread_mutexattr_t adaptive;

    pthread_mutexattr_init(&adaptive);
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&engine->lock, &adaptive);
    pthread_mutexattr_destroy(&adaptive);
    pthread_mutex_init(&engine->host_lock, NULL);
    hr__cond_init(&engine->work);
    hr__cond_init(&engine->ready);
    hr__cond_init(&engine->left);
}

/* Whether the output's records are those of the positions, one each, as they are or in
 * batches. */
static bool keeps_records(const struct hr_graph *graph)
{
    const struct hr_graph_node *n = &graph->nodes[hr__engine_last_not_mapped(graph)];

    if (!n->by_number && n->op->sequence.runs != NULL)
        n = &graph->nodes[n->inputs[0]];
    return n->by_number && n->schema.records >= 0;
}

/* Whether the positions before the run's first are those of the records before it. */
static bool begins_plainly(const struct hr_engine *engine)
{
    return engine->place.mark == NULL && engine->place.child == 0 &&
           engine->rerun.count == 0 && engine->base == 0 &&
           hr__done_is_empty(&engine->done);
}

/* With a limit on records, no position is begun whose record would go into no batch. A
 * padded share has more positions than records. */
static uint64_t positions_needed(const struct hr_engine *engine)
{
    const struct hr_iter_options *o = &engine->options;
    uint64_t limit = (uint64_t)o->records_max, had = engine->earlier_records;

    if (limit == 0 || o->world == 0 || (o->world > 1 && o->even == HR_EVEN_PAD) ||
        o->on_error == HR_ON_ERROR_SKIP || !begins_plainly(engine) ||
        !keeps_records(engine->graph))
        return UINT64_MAX;
    return limit > had ? limit - had : 0;
}

/* Sets where the run begins: its first epoch, or the place of a saved state. */
static enum hr_err find_begin(struct hr_engine *engine, struct hr_error *reterr)
{
    struct hr_iter_options *o = &engine->options;
    struct hr_stage *first = &engine->stages[0];
    uint64_t end = (uint64_t)o->epoch_first + (uint64_t)o->epochs;

    engine->base_epoch = UINT64_MAX;
    engine->epoch = (uint64_t)o->epoch_first;
    if (o->state != NULL)
        HR_TRY(hr__state_restore(engine, o->state, reterr));
    o->state = NULL;
    engine->positions_first = first->position;
    engine->positions_max = positions_needed(engine);
    first->epoch = engine->epoch;
    engine->epochs_max = hr__engine_epochs_max(engine);
    if (first->epoch >= engine->epochs_max)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "epochs have numbers below %llu here (the passes of order.repeat "
                        "count as well)",
                        (unsigned long long)engine->epochs_max);
    first->epoch_count = hr__engine_positions(engine, first->epoch);
    first->exhausted = (o->epochs > 0 && first->epoch >= end) ||
                       (first->epoch_count == 0 && engine->base_epoch != first->epoch);
    return HR_OK;
}

/* Default limit of bad records: one percent of an epoch, at least 100. */
static uint64_t errors_allowed(const struct hr_engine *engine)
{
    uint64_t n = engine->stages[0].epoch_count;

    if (engine->options.errors_max > 0)
        return (uint64_t)engine->options.errors_max;
    return n < HR_COUNT_UNKNOWN && n / 100 + 1 > 100 ? n / 100 + 1 : 100;
}

static enum hr_err start_caches(struct hr_engine *engine, struct hr_error *reterr)
{
    struct hr_error unread = {0}, *error = reterr != NULL ? reterr : &unread;

    for (uint32_t i = 0; !engine->options.uncached && i < engine->graph->count; i++) {
        const struct hr_graph_node *n = &engine->graph->nodes[i];
        uint64_t bytes = hr__plan_cache_bytes(&engine->plan, i);
        enum hr_err code =
            n->op->cache.start != NULL
                ? n->op->cache.start(n->state, bytes < UINT64_MAX ? bytes : 0, error)
                : HR_OK;

        if (code != HR_OK) {
            hr__graph_blame(engine->graph, i, error);
            return code;
        }
    }
    return HR_OK;
}

static enum hr_err init_engine(struct hr_engine *engine, struct hr_error *reterr)
{
    init_locks(engine);
    hr__ledger_init(&engine->ledger);
    engine->fail_stage = -1;
    engine->open_ns = hr__now_ns();
    engine->open_cpu_ns = hr__cpu_process_ns();
    engine->stolen.before_ns = hr__cpu_steal_ns();
    engine->start_ticks = hr__ticks();
    HR_TRY(hr__engine_check_options(&engine->options, reterr));
    HR_TRY(hr_graph_freeze(engine->graph, reterr));
    HR_TRY(hr_graph_fingerprint(engine->graph, engine->fingerprint));
    if (engine->graph->states_of[0] != '\0')
        memcpy(engine->fingerprint, engine->graph->states_of, sizeof engine->fingerprint);
    HR_TRY(make_plan(engine, reterr));
    HR_TRY(start_caches(engine, reterr));
    if (engine->pool == NULL)
        engine->pool = hr_pool_create(0);
    if (engine->pool == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(init_stages(engine, reterr));
    hr__budget_init(engine);
    HR_TRY(init_reader(engine, reterr));
    HR_TRY(find_begin(engine, reterr));
    HR_TRY(hr__feed_begin(engine, reterr));
    engine->errors_max = errors_allowed(engine);
    if (engine->options.ledger != NULL)
        HR_TRY(hr__ledger_open(&engine->ledger, engine->options.ledger, reterr));
    engine->options.ledger = NULL; /* the caller's memory */
    return hr__engine_start_threads(engine, reterr);
}

enum hr_err hr__engine_open(struct hr_graph *graph, const struct hr_iter_options *options,
                            struct hr_engine **ret_engine, struct hr_error *reterr)
{
    return hr__engine_open_in(graph, options, &(struct hr_engine_place){0}, ret_engine,
                              reterr);
}

enum hr_err
hr__engine_open_in(struct hr_graph *graph, const struct hr_iter_options *options,
                   const struct hr_engine_place *place, struct hr_engine **ret_engine,
                   struct hr_error *reterr)
{
    struct hr_engine *engine = hr__calloc(1, sizeof *engine);
    enum hr_err code;

    if (engine == NULL) {
        if (place->feed != NULL)
            place->feed->close(place->feed->user);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    engine->graph = hr_graph_ref(graph);
    engine->options = *options;
    if (place->pool != NULL)
        engine->pool = hr__pool_ref(place->pool);
    engine->pool_shared = place->pool != NULL;
    engine->feed = place->feed;
    engine->bare = place->bare;
    engine->nice = place->nice;
    code = init_engine(engine, reterr);
    if (code != HR_OK) {
        hr__engine_close(engine);
        return code;
    }
    *ret_engine = engine;
    return HR_OK;
}

/* ---- the consumer ---- */

bool hr__stage_failed(const struct hr_stage *stage)
{
    return (int)stage->number <= stage->engine->fail_stage;
}

void hr__engine_fail(struct hr_engine *engine, size_t stage, const struct hr_error *error,
                     char **detail)
{
    hr__engine_assert_locked(engine);
    assert(stage < engine->stage_count && error->code != HR_OK);
    if ((int)stage <= engine->fail_stage)
        return;
    engine->fail_stage = (int)stage;
    engine->error = *error;
    hr__free(engine->detail);
    engine->detail = NULL;
    if (detail != NULL) {
        engine->detail = *detail;
        *detail = NULL;
    }
    if (engine->consumer_waits)
        pthread_cond_signal(&engine->ready);
}

bool hr__engine_drained(const struct hr_engine *engine)
{
    hr__engine_assert_locked(engine);
    if (engine->finished) /* before the thread that output the last batch counted it */
        return !engine->stages[engine->stage_count - 1].sequencing;
    for (size_t i = (size_t)(engine->fail_stage + 1); i < engine->stage_count; i++)
        if (!hr__stage_drained(&engine->stages[i]))
            return false;
    return true;
}

static struct hr_batch *pop(struct hr_engine *engine)
{
    struct hr_batch *batch = engine->out[engine->out_head];

    hr__engine_assert_locked(engine);
    assert(engine->out_count > 0 && batch != NULL);
    hr__place_move(&engine->place, &engine->out_place[engine->out_head]);
    engine->epoch = (uint64_t)batch->epoch;
    engine->waiting_ns = 0;
    engine->popped_ns = engine->plan.memory.release_wait_ns > 0 ? hr__now_ns() : 0;
    engine->out_head = (engine->out_head + 1) % HR_OUT_MAX;
    engine->out_count--;
    if (engine->epoch_of_delivery != batch->epoch)
        engine->epoch_delivered = 0;
    engine->epoch_of_delivery = batch->epoch;
    engine->epoch_delivered += (uint64_t)batch->records;
    engine->delivered_records += (uint64_t)batch->records;
    engine->delivered_bytes += batch->bytes;
    if (engine->delivered_batches++ == 0)
        engine->first_batch_ns = hr__now_ns() - engine->open_ns;
    return batch;
}

/* Whether no record is begun before it is asked for, and none comes from a cache. */
static bool makes_one_at_a_time(const struct hr_engine *engine)
{
    for (size_t i = 0; i < engine->stage_count; i++) {
        const struct hr_plan_stage *plan = &engine->plan.stages[i];

        if (plan->memory.block_records > 1 || plan->chunk_records > 1 ||
            engine->stages[i].program.cache_count > 0)
            return false;
    }
    return engine->thread_count == 0;
}

enum hr_err
hr__engine_seed(struct hr_engine *engine, uint64_t seed, struct hr_error *reterr)
{
    if (!makes_one_at_a_time(engine))
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "records can be given seeds in a run without threads and caches "
                        "only, with block_records and chunk_records of 1 in its plan");
    engine->options.seed = seed;
    engine->one_record = true;
    return HR_OK;
}

static bool batches_take_less(const struct hr_engine *engine, uint64_t ns)
{
    const struct hr_stage *last = &engine->stages[engine->stage_count - 1];
    double records = last->program.runs.size > 0 ? (double)last->program.runs.size : 1;

    return engine->stages[0].record_ns > 0 &&
           engine->stages[0].record_ns * records < (double)ns;
}

/* Whether the consumer's thread makes batches too: always if there are no threads;
 * otherwise if waking one costs more than the batch, and it is not to be back by a time
 * at which it may still wait for a network. */
static bool helps(const struct hr_engine *engine, uint64_t until_ns)
{
    if (engine->thread_count == 0)
        return true;
    if (engine->options.timeout_ns > 0 || (engine->remote && until_ns != UINT64_MAX))
        return false;
    return batches_take_less(engine, engine->plan.help_ns);
}

static enum hr_err how_it_ended(struct hr_engine *engine, struct hr_error *reterr)
{
    if (engine->finished || engine->fail_stage < 0)
        return HR_ERR_END;
    if (reterr != NULL)
        *reterr = engine->error;
    engine->detail_given = true;
    return engine->error.code;
}

/* Sleeps until batches are ready. If waking this thread costs more than making one, until
 * half of those that may be ready are, but no longer than `wake_ns`: a later record may
 * block its thread for any time. */
static void wait_for_batches(struct hr_engine *engine, bool several, uint64_t until_ns)
{
    uint64_t begin = hr__now_ns(), soon_ns = begin + engine->plan.wake_ns;
    struct hr_runner *runner = &engine->runners[engine->thread_count];
    uint64_t ticks = hr__ticks();

    engine->wake_at = several ? (engine->out_max + 1) / 2 : 1;
    engine->consumer_waits = true;
    hr__engine_sleep(runner, &engine->ready,
                     several && soon_ns < until_ns ? soon_ns : until_ns);
    engine->consumer_waits = false;
    if (engine->options.trace)
        hr__span_wait(runner, engine->delivered_batches, ticks);
    engine->wait_ns += hr__now_ns() - begin;
    atomic_fetch_add_explicit(&engine->code_clock, 1, memory_order_relaxed);
}

/* No batch came in time: the run fails with an error that says what is running. */
static void time_out(struct hr_engine *engine)
{
    struct hr_error error = {0};

    hr__engine_time_out(engine, &error);
    hr__engine_fail(engine, engine->stage_count - 1, &error, NULL);
}

static enum hr_err next_locked(struct hr_engine *engine, uint64_t until_ns,
                               struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_runner *caller = &engine->runners[engine->thread_count];
    uint64_t timeout_ns = engine->options.timeout_ns, late_ns = UINT64_MAX;

    if (timeout_ns > 0 && engine->waiting_ns == 0)
        engine->waiting_ns = hr__now_ns();
    if (timeout_ns > 0 && timeout_ns < UINT64_MAX - engine->waiting_ns)
        late_ns = engine->waiting_ns + timeout_ns;
    for (bool waited = false;; waited = true) {
        if (atomic_load_explicit(&engine->cancelled, memory_order_relaxed))
            return hr__fail(reterr, HR_ERR_CANCELLED, "cancelled");
        if (engine->out_count > 0) {
            *ret_batch = pop(engine);
            return HR_OK;
        }
        if (hr__engine_drained(engine))
            return how_it_ended(engine, reterr);
        if (late_ns != UINT64_MAX && hr__now_ns() >= late_ns) {
            time_out(engine);
            continue;
        }
        if (until_ns != UINT64_MAX && hr__now_ns() >= until_ns) {
            *ret_batch = NULL;
            return HR_OK;
        }
        if (helps(engine, until_ns) && hr__engine_work(engine, caller))
            continue;
        /* A batch may be complete that had no room; its thread may be waiting in user
         * code. */
        if (engine->lacked_room && hr__engine_pump(engine, caller))
            continue;
        /* It may have filled a block while it helped: a sleeping thread must see that. */
        if (engine->idle > 0 && engine->plan.memory.release_wait_ns > 0)
            pthread_cond_broadcast(&engine->work); /* any of them may have work */
        else if (engine->idle > 0)
            pthread_cond_signal(&engine->work);
        wait_for_batches(engine,
                         !waited && batches_take_less(engine, engine->plan.wake_ns),
                         until_ns < late_ns ? until_ns : late_ns);
    }
}

/* Writes the bad records of what the consumer has taken. Without the lock: only the
 * consumer's thread changes its place and sees how the run ended. */
static void write_ledger(struct hr_engine *engine, enum hr_err code)
{
    if (code == HR_ERR_END && !engine->finished)
        hr__ledger_write(&engine->ledger, 0, NULL);
    else if (code == HR_OK || code == HR_ERR_END)
        hr__ledger_write(&engine->ledger, engine->epoch,
                         engine->plan.ordered ? &engine->place : NULL);
    else if (code != HR_ERR_CANCELLED)
        hr__ledger_write_end(&engine->ledger, (size_t)engine->fail_stage);
}

enum hr_err hr__engine_next(struct hr_engine *engine, uint64_t until_ns,
                            struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_runner *caller = &engine->runners[engine->thread_count];
    bool ended, began;
    int64_t epoch;
    enum hr_err code;

    pthread_mutex_lock(&engine->lock);
    caller->handle = pthread_self();
    hr__engine_enter(caller);
    hr__meter_adopt(&caller->meter);
    hr__meter_enter(&caller->meter, (uint32_t)engine->graph->output);
    began = engine->delivered_batches > 0;
    epoch = engine->epoch_of_delivery;
    hr__demand_wait(engine, true);
    code = next_locked(engine, until_ns, ret_batch, reterr);
    hr__demand_wait(engine, false);
    if (code == HR_ERR_CANCELLED)
        atomic_store(&engine->stop, true);
    ended = began && engine->epoch_of_delivery != epoch;
    if (ended || engine->ledger.waiting > 0) {
        pthread_mutex_unlock(&engine->lock);
        write_ledger(engine, code);
        if (ended)
            hr__graph_pause(engine->graph);
        pthread_mutex_lock(&engine->lock);
    }
    if (code != HR_OK)
        hr__meter_settle(&caller->meter, 0);
    hr__meter_leave(&caller->meter);
    hr__meter_show(&caller->meter);
    /* Last: a thread that wakes up before the lock is released has to sleep again. */
    if (code == HR_OK && engine->idle > 0 && engine->out_count * 2 <= engine->out_max)
        pthread_cond_broadcast(&engine->work);
    hr__engine_leave(caller);
    return code;
}
