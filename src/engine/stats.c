/*
 * engine/stats.c - statistics, from the meters' copies that threads have made
 * (hr__meter_show), read under the lock.
 */
#include "engine/run.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"

static uint64_t peek(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void pool_stats(struct hr_engine *engine, struct hr_iter_stats *s)
{
    size_t shared = atomic_load(&engine->shared_bytes);
    struct hr_pool_stats pool;

    hr_pool_stats(engine->pool, &pool);
    s->memory_bytes = pool.used_bytes + pool.idle_bytes + shared;
    s->memory_peak_bytes = pool.peak_bytes + shared;
}

void hr__engine_stats(struct hr_engine *engine, struct hr_iter_stats *s)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_lock(&engine->lock);
    s->records = engine->delivered_records;
    s->batches = engine->delivered_batches;
    s->bytes = engine->delivered_bytes;
    s->errors = peek(&engine->errors);
    s->substituted = peek(&engine->substituted);
    s->seconds = (double)(hr__now_ns() - engine->open_ns) * 1e-9;
    s->first_batch_seconds = (double)engine->first_batch_ns * 1e-9;
    s->worker_seconds = (double)engine->worker_ns * 1e-9;
    s->cpu_seconds =
        (double)(hr__cpu_process_ns() - engine->open_cpu_ns) * 1e-9 + s->worker_seconds;
    s->wait_seconds = (double)engine->wait_ns * 1e-9;
    s->blocked_seconds = (double)engine->blocked_ns * 1e-9;
    s->batches_ready = engine->out_count;
    s->epoch = (int64_t)engine->epoch;
    s->epoch_records = engine->stages[0].direct &&
                               engine->stages[0].program.paths[0].n < HR_COUNT_UNKNOWN
                           ? (int64_t)hr__engine_positions(engine, engine->epoch)
                           : -1;
    s->epoch_done = engine->stages[0].direct ? (int64_t)engine->place.at
                                             : (int64_t)engine->epoch_delivered;
    s->threads = engine->thread_count;
    s->threads_used = hr__demand_threads(engine);
    if (s->threads_used > engine->contention.allowed)
        s->threads_used = engine->contention.allowed;
    for (size_t i = 0; i < engine->stage_count; i++)
        s->processes += (int)hr__process_count(&engine->stages[i].program);
    s->processes_used = s->processes * (s->threads > 0 ? s->threads_used : 1);
    s->processes *= s->threads > 0 ? s->threads : 1;
    s->processes_alive = engine->processes;
    s->thread_changes = engine->demand.control.changes;
    s->demand = engine->options.demand;
    memcpy(s->threads_reason, engine->demand.control.reason,
           sizeof engine->demand.control.reason);
    s->node_count = engine->graph->count;
    pool_stats(engine, s);
    pthread_mutex_unlock(&engine->lock);
}

/* ---- nodes ---- */

static void add_time(struct hr_time *sum, const struct hr_time *time)
{
    sum->cpu_ns += time->cpu_ns;
    sum->wait_ns += time->wait_ns;
}

/* Sums a node's meters over all threads; under the lock. */
static struct hr_node_meter sum_node(const struct hr_engine *engine, size_t node)
{
    struct hr_node_meter sum = {0};

    hr__engine_assert_locked(engine);
    assert(node < engine->graph->count);
    for (int i = 0; i <= engine->thread_count; i++) {
        const struct hr_node_meter *m = &engine->runners[i].meter.shown_nodes[node];

        sum.records_in += m->records_in;
        sum.records_out += m->records_out;
        sum.errors += m->errors;
        sum.dropped += m->dropped;
        sum.ended += m->ended;
        sum.skipped += m->skipped;
        sum.bytes_in += m->bytes_in;
        sum.bytes_out += m->bytes_out;
        add_time(&sum.own, &m->own);
        add_time(&sum.worker, &m->worker);
        hr__fit_merge(&sum.cost, &m->cost);
        sum.share += m->share;
        sum.wait_ns += m->wait_ns;
        for (size_t k = 0; k < HR_BYTES_KINDS; k++)
            sum.bytes[k] += m->bytes[k];
    }
    return sum;
}

static struct hr_stage_meter sum_stage(const struct hr_engine *engine, size_t stage)
{
    struct hr_stage_meter sum = {0};

    hr__engine_assert_locked(engine);
    assert(stage < engine->stage_count);
    for (int i = 0; i <= engine->thread_count; i++) {
        const struct hr_stage_meter *m = &engine->runners[i].meter.shown_stages[stage];

        add_time(&sum.records, &m->records);
        sum.begun += m->begun;
    }
    return sum;
}

/* The stage in which records pass the node, or NULL. */
static const struct hr_stage *stage_of(const struct hr_engine *engine, size_t node)
{
    for (size_t i = 0; i < engine->stage_count; i++) {
        const struct hr_program *p = &engine->stages[i].program;

        for (size_t k = 0; k < p->node_count; k++)
            if (p->nodes[k] == node)
                return &engine->stages[i];
    }
    return NULL;
}

static double part(double of, double all, bool last)
{
    return all > 0 ? of / all : last ? 1 : 0;
}

/* Adds to `sum->own` the node's part of the time of the stage's records. */
static void divide_stage(const struct hr_engine *engine, const struct hr_stage *stage,
                         size_t node, struct hr_node_meter *sum)
{
    const struct hr_program *p = &stage->program;
    struct hr_stage_meter all = sum_stage(engine, stage->number);
    bool last = p->nodes[p->node_count - 1] == node;
    double share = 0, wait_ns = 0;

    for (size_t i = 0; i < p->node_count; i++) {
        struct hr_node_meter other = sum_node(engine, p->nodes[i]);

        share += other.share;
        wait_ns += other.share > 0 ? other.wait_ns : 0;
    }
    sum->own.cpu_ns += all.records.cpu_ns * part(sum->share, share, last);
    sum->own.wait_ns +=
        all.records.wait_ns *
        (wait_ns > 0 ? part(sum->share > 0 ? sum->wait_ns : 0, wait_ns, last)
                     : part(sum->share, share, last));
}

static bool sees_in_order(const struct hr_plan_stage *stage, size_t node)
{
    for (size_t i = 0; i < stage->sequence_count; i++)
        if (stage->sequence[i] == node)
            return true;
    return false;
}

/* CPU time of the node with records in order; before its part of the stage is added. */
static double
ordered_ns(const struct hr_engine *engine, size_t node, const struct hr_node_meter *sum)
{
    for (size_t i = 0; i < engine->stage_count; i++)
        if (sees_in_order(engine->stages[i].program.plan, node))
            return sum->own.cpu_ns;
    return 0;
}

/* Counts the records that reached the node: those that began the stage, less those that
 * ended in an earlier step. Sequencers count by themselves. */
static void count_records(const struct hr_engine *engine, const struct hr_stage *stage,
                          size_t node, struct hr_node_meter *sum)
{
    const struct hr_program *p = &stage->program;
    struct hr_stage_meter all = sum_stage(engine, stage->number);
    uint64_t count = all.begun;

    for (size_t i = 0; i < p->node_count && p->nodes[i] != node; i++)
        count -= sum_node(engine, p->nodes[i]).ended;
    if (sees_in_order(p->plan, node))
        return;
    count -= sum->skipped;
    sum->records_in = count;
    if (p->plan->expand != node)
        sum->records_out = count - sum->ended;
}

static void set_costs(const struct hr_node_meter *sum, struct hr_node_stats *s)
{
    double ns = sum->own.cpu_ns + sum->worker.cpu_ns;
    double mean = hr__fit_mean(&sum->cost), scale;

    s->seconds = ns * 1e-9;
    s->worker_seconds = sum->worker.cpu_ns * 1e-9;
    s->wait_seconds = (sum->own.wait_ns + sum->worker.wait_ns) * 1e-9;
    s->record_ns = sum->records_in > 0 ? ns / (double)sum->records_in : 0;
    scale = mean > 0 ? s->record_ns / mean : 0;
    s->record_ns_variance = hr__fit_variance(&sum->cost) * scale * scale;
    s->byte_ns = hr__fit_slope(&sum->cost) * scale;
}

static void set_bytes(const struct hr_node_meter *sum, struct hr_node_stats *s)
{
    double scale = sum->cost.weight > 0 ? (double)sum->records_in / sum->cost.weight : 0;
    uint64_t bytes[HR_BYTES_KINDS];

    for (size_t i = 0; i < HR_BYTES_KINDS; i++)
        bytes[i] = (uint64_t)(sum->bytes[i] * scale + 0.5);
    s->bytes_read = bytes[HR_BYTES_READ] + sum->bytes_in;
    s->bytes_taken = bytes[HR_BYTES_TAKEN];
    s->bytes_updated = bytes[HR_BYTES_AFTER];
    s->bytes_written = bytes[HR_BYTES_WRITTEN] + sum->bytes_out;
    s->bytes_in = s->bytes_read + s->bytes_taken + bytes[HR_BYTES_BEFORE];
    s->bytes_out = s->bytes_updated + s->bytes_written;
}

static uint32_t group_of(const struct hr_engine *engine, uint32_t node)
{
    for (size_t i = 0; i < engine->plan.stage_count; i++) {
        const struct hr_plan_stage *stage = &engine->plan.stages[i];

        for (size_t k = 0; k < stage->step_count; k++)
            if (stage->steps[k].node == node)
                return stage->steps[k].group;
    }
    return node;
}

static void set_note(const struct hr_graph_node *node, struct hr_node_stats *stats)
{
    struct hr_str text;

    if (node->state == NULL || node->op->learner.warn == NULL)
        return;
    hr__str_init(&text);
    node->op->learner.warn(node->state, &text);
    snprintf(stats->note, sizeof stats->note, "%s", hr__str_text(&text));
    hr__str_finish(&text);
}

enum hr_err hr__engine_node_stats(struct hr_engine *engine, size_t at,
                                  struct hr_node_stats *ret_stats)
{
    const struct hr_graph_node *node;
    const struct hr_stage *stage;
    struct hr_node_meter sum;
    struct hr_kept kept = {0};

    if (at >= engine->graph->count)
        return HR_ERR_RANGE;
    memset(ret_stats, 0, sizeof *ret_stats);
    node = &engine->graph->nodes[at];
    stage = stage_of(engine, at);
    pthread_mutex_lock(&engine->lock);
    sum = sum_node(engine, at);
    ret_stats->ordered_seconds = ordered_ns(engine, at, &sum) * 1e-9;
    if (stage != NULL) {
        divide_stage(engine, stage, at, &sum);
        count_records(engine, stage, at, &sum);
    }
    pthread_mutex_unlock(&engine->lock);
    ret_stats->node = node->name;
    ret_stats->op = node->op->name;
    ret_stats->records = sum.records_in;
    ret_stats->records_out = sum.records_out;
    ret_stats->errors = sum.errors;
    ret_stats->dropped = sum.dropped;
    set_costs(&sum, ret_stats);
    set_bytes(&sum, ret_stats);
    ret_stats->fused_into = engine->graph->nodes[group_of(engine, (uint32_t)at)].name;
    if (node->state != NULL && node->op->learner.keeps != NULL)
        node->op->learner.keeps(node->state, &kept);
    ret_stats->kept_entries = kept.entries;
    ret_stats->kept_bytes = kept.bytes;
    ret_stats->kept_hits = kept.hits;
    ret_stats->kept_misses = kept.misses;
    set_note(node, ret_stats);
    return HR_OK;
}

struct hr_fit hr__engine_node_fit(struct hr_engine *engine, size_t at)
{
    struct hr_fit fit;

    pthread_mutex_lock(&engine->lock);
    fit = sum_node(engine, at).cost;
    pthread_mutex_unlock(&engine->lock);
    return fit;
}

/* {"name":..,"cat":..,...,"args":{"op":..,"thread":..,"batch":..,"epoch":..,...}} */
static void print_span(const struct hr_engine *engine, int thread,
                       const struct hr_span *span, double tick_us, struct hr_str *out)
{
    const struct hr_graph_node *node =
        span->kind == HR_SPAN_NODE ? &engine->graph->nodes[span->node] : NULL;
    const char *name = node != NULL                   ? node->name
                       : span->kind == HR_SPAN_RECORD ? "record"
                                                      : "wait";

    hr__str_add(out, ",\n{\"name\":");
    hr__str_add_json(out, name, strlen(name));
    if (span->kind == HR_SPAN_WAIT)
        hr__str_add(out, ",\"cat\":\"consumer\"");
    else
        hr__str_addf(out, ",\"cat\":\"stage %u\"", span->stage + 1);
    hr__str_addf(out,
                 ",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{"
                 "\"thread\":%d",
                 thread, (double)(span->begin - engine->start_ticks) * tick_us,
                 (double)(span->end - span->begin) * tick_us, thread);
    if (node != NULL)
        hr__str_addf(out, ",\"op\":\"%s\"", node->op->name);
    if (span->batch >= 0)
        hr__str_addf(out, ",\"batch\":%lld", (long long)span->batch);
    if (span->kind != HR_SPAN_WAIT) {
        hr__str_add(out, ",");
        hr__record_json(&span->id, out);
    }
    hr__str_add(out, "}}");
}

enum hr_err hr__engine_trace(struct hr_engine *engine, struct hr_str *out)
{
    double tick_us = hr__tick_ns() / 1e3;

    hr__str_add(out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    for (int i = 0; i <= engine->thread_count; i++) {
        const struct hr_runner *runner = &engine->runners[i];
        size_t count = atomic_load_explicit(&runner->span_count, memory_order_acquire);

        hr__str_addf(
            out,
            "%s{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{"
            "\"name\":\"%s %d\"}}",
            i == 0 ? "" : ",\n", i, i < engine->thread_count ? "thread" : "caller", i);
        for (size_t k = 0; k < count; k++)
            print_span(engine, i, &runner->spans[k], tick_us, out);
    }
    hr__str_add(out, "]}\n");
    return hr__str_ok(out) ? HR_OK : HR_ERR_MEMORY;
}
