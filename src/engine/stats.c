/*
 * engine/stats.c - what the meters say. Counters are written by one thread each and read
 * here without a lock: a number may be a moment old, never torn.
 */
#include "engine/engine.h"

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
    s->cpu_seconds = (double)hr__cpu_process_ns() * 1e-9;
    s->wait_seconds = (double)engine->wait_ns * 1e-9;
    s->blocked_seconds = (double)engine->blocked_ns * 1e-9;
    s->batches_ready = engine->out_count;
    s->epoch = (int64_t)engine->cursor.epoch;
    s->epoch_records = engine->stages[0].direct &&
                               engine->stages[0].program.paths[0].n < HR_COUNT_UNKNOWN
                           ? (int64_t)hr__engine_positions(engine, engine->cursor.epoch)
                           : -1;
    s->epoch_done = engine->stages[0].direct ? (int64_t)engine->cursor.position
                                             : (int64_t)engine->epoch_delivered;
    s->threads = engine->thread_count;
    s->node_count = engine->graph->count;
    pool_stats(engine, s);
    pthread_mutex_unlock(&engine->lock);
}

static struct hr_node_meter sum_meters(const struct hr_engine *engine, size_t node)
{
    struct hr_node_meter sum = {0};

    for (int i = 0; i <= engine->thread_count; i++) {
        const struct hr_node_meter *meter = &engine->runners[i].meters[node];

        sum.records += peek(&meter->records);
        sum.timed += peek(&meter->timed);
        sum.errors += peek(&meter->errors);
        sum.dropped += peek(&meter->dropped);
        sum.bytes_in += peek(&meter->bytes_in);
        sum.bytes_out += peek(&meter->bytes_out);
        sum.ticks += peek(&meter->ticks);
    }
    return sum;
}

/* Node whose group a step is in, and the step whose counts stand for a batch node. */
static void find_step(const struct hr_engine *engine, size_t node, uint32_t *ret_group,
                      uint32_t *ret_counted)
{
    *ret_group = (uint32_t)node;
    *ret_counted = (uint32_t)node;
    for (size_t i = 0; i < engine->plan.stage_count; i++) {
        const struct hr_plan_stage *stage = &engine->plan.stages[i];

        for (size_t k = 0; k < stage->step_count; k++)
            if (stage->steps[k].node == node)
                *ret_group = stage->steps[k].group;
        if (stage->batch == node && stage->step_count > 0)
            *ret_counted = stage->steps[stage->step_count - 1].node;
    }
}

enum hr_err hr__engine_node_stats(struct hr_engine *engine, size_t at,
                                  struct hr_node_stats *ret_stats)
{
    const struct hr_graph_node *node;
    struct hr_node_meter sum, counted;
    struct hr_kept kept = {0};
    uint32_t group, like;
    double scale;

    if (at >= engine->graph->count)
        return HR_ERR_RANGE;
    node = &engine->graph->nodes[at];
    find_step(engine, at, &group, &like);
    sum = sum_meters(engine, at);
    counted = sum_meters(engine, like);
    scale = counted.timed > 0 ? (double)counted.records / (double)counted.timed : 0;
    memset(ret_stats, 0, sizeof *ret_stats);
    ret_stats->node = engine->graph->nodes[at].name;
    ret_stats->op = engine->graph->nodes[at].op->name;
    ret_stats->records = counted.records;
    if (like != at)
        ret_stats->records -= counted.errors + counted.dropped;
    ret_stats->errors = sum.errors;
    ret_stats->dropped = sum.dropped;
    ret_stats->bytes_in =
        (uint64_t)((double)(like != at ? counted.bytes_out : sum.bytes_in) * scale);
    ret_stats->bytes_out =
        (uint64_t)((double)(like != at ? counted.bytes_out : sum.bytes_out) * scale);
    ret_stats->seconds = hr__ticks_to_ns(sum.ticks) * 1e-9 * scale;
    ret_stats->fused_into = engine->graph->nodes[group].name;
    if (node->state != NULL && node->op->keeps != NULL)
        node->op->keeps(node->state, &kept);
    ret_stats->kept_entries = kept.entries;
    ret_stats->kept_bytes = kept.bytes;
    ret_stats->kept_hits = kept.hits;
    ret_stats->kept_misses = kept.misses;
    return HR_OK;
}

enum hr_err hr__engine_trace(struct hr_engine *engine, struct hr_str *out)
{
    bool first = true;

    hr__str_add(out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    for (int i = 0; i <= engine->thread_count; i++) {
        const struct hr_runner *runner = &engine->runners[i];

        hr__str_addf(
            out,
            "%s{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{"
            "\"name\":\"%s %d\"}}",
            i == 0 ? "" : ",", i, i < engine->thread_count ? "thread" : "caller", i);
        first = false;
        for (size_t k = 0; k < runner->span_count; k++) {
            const struct hr_span *span = &runner->spans[k];

            hr__str_addf(
                out,
                "%s\n{\"name\":\"record\",\"cat\":\"stage %u\",\"ph\":\"X\",\"pid\":1,"
                "\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{",
                first ? "" : ",", span->stage + 1, i,
                hr__ticks_to_ns(span->begin - engine->start_ticks) / 1e3,
                hr__ticks_to_ns(span->end - span->begin) / 1e3);
            hr__record_json(&span->id, out);
            hr__str_add(out, "}}");
        }
    }
    hr__str_add(out, "]}\n");
    return hr__str_ok(out) ? HR_OK : HR_ERR_MEMORY;
}
