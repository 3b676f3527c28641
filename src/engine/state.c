/*
 * engine/state.c - an iterator's place as JSON, and going on from it.
 *
 * {"headrace_state": 1, "fingerprint": ..., "seed": s, "epoch": e, "base": b, "position":
 * p, ...}: p positions of this consumer are behind it, in an epoch that it began at
 * global position b. A consumer of other rank and world begins at b + p * (old world):
 * all ranks must have stood at the same step. That is a plain number only while positions
 * and records are the same thing, so graphs that filter refuse another world.
 */
#include "engine/engine.h"

#include <string.h>

#include "core/doc.h"
#include "core/error.h"

/* Ranks that share an epoch: by the options, or by the order op that shards. */
static uint64_t world_of(const struct hr_engine *engine)
{
    const struct hr_path *path = &engine->stages[0].program.paths[0];
    const struct hr_order *order = path->orders;
    struct hr_record_id id = {0};

    if (engine->options.world > 0)
        return (uint64_t)engine->options.world;
    if (path->count == 0 || !order->shards)
        return 1;
    /* Of an epoch so long that no position wraps. */
    return order->op->order_map(order->params, order->state, HR_COUNT_UNKNOWN, 1, &id,
                                order->node) -
           order->op->order_map(order->params, order->state, HR_COUNT_UNKNOWN, 0, &id,
                                order->node);
}

static bool is_plain(const struct hr_cursor *cursor)
{
    struct hr_cursor plain = {.epoch = cursor->epoch, .position = cursor->position};

    return memcmp(&plain, cursor, sizeof plain) == 0;
}

static void
add_numbers(struct hr_str *out, const char *key, const uint64_t *values, size_t count)
{
    hr__str_addf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < count; i++)
        hr__str_addf(out, "%s%llu", i == 0 ? "" : ",", (unsigned long long)values[i]);
    hr__str_add(out, "]");
}

enum hr_err hr__state_print(const struct hr_engine *engine, struct hr_str *out)
{
    const struct hr_cursor *c = &engine->cursor;
    uint64_t base = c->epoch == engine->base_epoch ? engine->base : 0;

    if (!engine->plan.ordered)
        return HR_ERR_UNSUPPORTED;
    hr__str_addf(
        out,
        "{\"headrace_state\":1,\"fingerprint\":\"%s\",\"seed\":%llu,\"epoch\":%llu,"
        "\"base\":%llu,\"position\":%llu,\"world\":%llu,\"records\":%llu,\"direct\":%s",
        engine->fingerprint, (unsigned long long)engine->options.seed,
        (unsigned long long)c->epoch, (unsigned long long)base,
        (unsigned long long)c->position, (unsigned long long)world_of(engine),
        (unsigned long long)(engine->earlier_records + engine->delivered_records),
        engine->stages[0].direct ? "true" : "false");
    if (!is_plain(c)) {
        add_numbers(out, "skip_children", c->skip_children, engine->stage_count);
        add_numbers(out, "skip_out", c->skip_out, engine->stage_count);
        add_numbers(out, "ordinals", c->ordinals, HR_CURSOR_STREAMS);
    }
    hr__str_add(out, "}");
    return hr__str_ok(out) ? HR_OK : HR_ERR_MEMORY;
}

static enum hr_err get(const struct hr_doc *doc, const char *key, uint64_t *ret_value,
                       struct hr_error *reterr)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value == NULL || value->kind != HR_DOC_INT || value->as.integer < 0)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the iterator state is damaged: \"%s\" is missing or no number",
                        key);
    *ret_value = (uint64_t)value->as.integer;
    return HR_OK;
}

static enum hr_err get_numbers(const struct hr_doc *doc, const char *key,
                               uint64_t *values, size_t room, struct hr_error *reterr)
{
    const struct hr_doc *list = hr__doc_get(doc, key);

    if (list == NULL)
        return HR_OK;
    if (list->kind != HR_DOC_LIST || list->as.list.count > room)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the iterator state is damaged: \"%s\" is no list of numbers",
                        key);
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct hr_doc *item = list->as.list.items[i];

        if (item->kind != HR_DOC_INT || item->as.integer < 0)
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "the iterator state is damaged: \"%s\" is no list of numbers",
                            key);
        values[i] = (uint64_t)item->as.integer;
    }
    return HR_OK;
}

static enum hr_err check_identity(const struct hr_engine *engine,
                                  const struct hr_doc *doc, struct hr_error *reterr)
{
    const char *fingerprint = hr__doc_get_string(doc, "fingerprint");
    uint64_t version = 0, seed = 0;

    HR_TRY(get(doc, "headrace_state", &version, reterr));
    HR_TRY(get(doc, "seed", &seed, reterr));
    if (version != 1)
        return hr__fail(
            reterr, HR_ERR_UNSUPPORTED,
            "the iterator state is of version %llu; this library reads version 1",
            (unsigned long long)version);
    if (fingerprint == NULL || strcmp(fingerprint, engine->fingerprint) != 0)
        return hr__fail(
            reterr, HR_ERR_STATE,
            "the iterator state belongs to another graph or data set (fingerprint %s, "
            "here %s)",
            fingerprint != NULL ? fingerprint : "missing", engine->fingerprint);
    if (seed != engine->options.seed)
        return hr__fail(
            reterr, HR_ERR_STATE, "the iterator state was saved with seed %llu, not %llu",
            (unsigned long long)seed, (unsigned long long)engine->options.seed);
    return HR_OK;
}

/* Positions of any rank behind the step at which one of them has done `position`: its
 * last batch may be shorter than those of others. */
static uint64_t steps_end(const struct hr_stage *stage, uint64_t position)
{
    uint64_t size = stage->program.batch != NULL ? stage->program.spec.size : 1;

    if (stage->engine->options.on_error == HR_ON_ERROR_SKIP)
        return position; /* batches reach beyond what they leave out */
    return (position + size - 1) / size * size;
}

static enum hr_err get_cursor(const struct hr_doc *doc, struct hr_cursor *ret_cursor,
                              struct hr_error *reterr)
{
    struct hr_cursor c = {0};

    HR_TRY(get(doc, "epoch", &c.epoch, reterr));
    HR_TRY(get(doc, "position", &c.position, reterr));
    HR_TRY(
        get_numbers(doc, "skip_children", c.skip_children, HR_PLAN_STAGES_MAX, reterr));
    HR_TRY(get_numbers(doc, "skip_out", c.skip_out, HR_PLAN_STAGES_MAX, reterr));
    HR_TRY(get_numbers(doc, "ordinals", c.ordinals, HR_CURSOR_STREAMS, reterr));
    *ret_cursor = c;
    return HR_OK;
}

static enum hr_err
apply(struct hr_engine *engine, const struct hr_doc *doc, struct hr_error *reterr)
{
    const struct hr_path *path = &engine->stages[0].program.paths[0];
    struct hr_cursor c;
    uint64_t base = 0, world = 1, records = 0, ours = world_of(engine), n, end;
    bool plain;

    HR_TRY(check_identity(engine, doc, reterr));
    HR_TRY(get_cursor(doc, &c, reterr));
    HR_TRY(get(doc, "base", &base, reterr));
    HR_TRY(get(doc, "world", &world, reterr));
    HR_TRY(get(doc, "records", &records, reterr));
    plain = engine->stages[0].direct && is_plain(&c);
    if (world != ours && !plain)
        return hr__fail(
            reterr, HR_ERR_STATE,
            "the iterator state was saved with world %llu, not %llu; a graph that "
            "filters or reshapes its stream can only go on with the same",
            (unsigned long long)world, (unsigned long long)ours);
    if (plain && (world > 1 || ours > 1))
        c.position = steps_end(&engine->stages[0], c.position);
    if (world != ours) {
        base += c.position * world;
        c.position = 0;
    }
    n = engine->options.world == 0 && path->count > 0 ? path->orders[0].n : path->n;
    engine->base_epoch = c.epoch;
    engine->base = base < n ? base : n;
    end = hr__engine_positions(engine, c.epoch);
    if (plain && ours > 1 && c.position > end)
        c.position = end; /* that of a rank which has more */
    engine->cursor = c;
    engine->earlier_records = engine->sequenced_records = records;
    engine->finished = engine->options.records_max > 0 &&
                       records >= (uint64_t)engine->options.records_max;
    engine->stages[0].position = c.position;
    if (c.position > end)
        return hr__fail(
            reterr, HR_ERR_STATE,
            "the iterator state stands at position %llu, beyond the epoch's end",
            (unsigned long long)c.position);
    for (size_t i = 0; i < engine->stage_count; i++)
        engine->stages[i].now = c;
    return HR_OK;
}

enum hr_err
hr__state_restore(struct hr_engine *engine, const char *json, struct hr_error *reterr)
{
    struct hr_doc *doc;
    enum hr_err code = hr__doc_parse(json, strlen(json), "state.json", &doc, reterr);

    if (code != HR_OK) {
        hr__error_prefix(reterr, "the iterator state is damaged");
        return code;
    }
    code = apply(engine, doc, reterr);
    hr__doc_destroy(doc);
    return code;
}
