/*
 * engine/state.c - an iterator's place as JSON, and going on from it.
 *
 * {"headrace_state": 2, "fingerprint": ..., "seed": s, "epoch": e, "base": b, "position":
 * p, "world": w, "rank": r, ...}: p positions of this consumer are behind it, in an epoch
 * that it began at global position b. The same rank of the same world goes on exactly
 * there.
 *
 * Others begin anew at a global position. Where every position is a record, all ranks of
 * the old world had come equally far after as many steps ("even"), so the state of any
 * one tells: b + p * w. Else each has a place of its own ("end": so many positions, and
 * children of the next record, have gone into batches or were dropped), and the states of
 * all must be merged: merge.c. World 0 is that of a merged state. Behind a window, or
 * where records are counted behind a filter, no place in the source tells what is done:
 * these go on in the same rank and world only ("moves" is false).
 */
#include "engine/engine.h"

#include <string.h>

#include "core/doc.h"
#include "core/error.h"

/* The share of an order.shard behind a filter: the first two records that it keeps. */
static bool stream_share(const struct hr_order *order, uint64_t *rank, uint64_t *world)
{
    uint64_t at = 0;

    if (!order->shards)
        return false;
    while (order->op->stream_verdict(order->params, at) != HR_STREAM_KEEP)
        at++;
    *rank = at++;
    while (order->op->stream_verdict(order->params, at) != HR_STREAM_KEEP)
        at++;
    *world = at - *rank;
    return true;
}

/* This consumer's number, and of how many that share the epoch: by the options, else by
 * the order op that shards. */
static void get_share(const struct hr_engine *engine, uint64_t *rank, uint64_t *world)
{
    const struct hr_path *path = &engine->stages[0].program.paths[0];
    const struct hr_order *order = path->orders;
    struct hr_record_id id = {0};

    *rank = (uint64_t)engine->options.rank;
    *world = (uint64_t)engine->options.world;
    if (engine->options.world > 0)
        return;
    if (path->count > 0 && order->shards) { /* in an epoch so long that none wraps */
        *rank = order->op->order_map(order->params, order->state, HR_COUNT_UNKNOWN, 0,
                                     &id, order->draw_id);
        *world = order->op->order_map(order->params, order->state, HR_COUNT_UNKNOWN, 1,
                                      &id, order->draw_id) -
                 *rank;
        return;
    }
    for (size_t i = 0; i < engine->stage_count; i++)
        for (size_t k = 0; k < engine->stages[i].program.stream_count; k++)
            if (stream_share(&engine->stages[i].program.streams[k], rank, world))
                return;
}

static uint64_t rank_of(const struct hr_engine *engine)
{
    uint64_t rank, world;

    get_share(engine, &rank, &world);
    return rank;
}

static uint64_t world_of(const struct hr_engine *engine)
{
    uint64_t rank, world;

    get_share(engine, &rank, &world);
    return world;
}

/* Whether a place in the source tells what is done. */
static bool moves(const struct hr_engine *engine)
{
    for (size_t i = 0; i < engine->stage_count; i++)
        if (engine->stages[i].program.stream_count > 0 ||
            (i > 0 && engine->stages[i].program.expand.op != NULL))
            return false;
    return true;
}

/* Whether ranks take as many positions a step, but for records that are bad. */
static bool steps_are_even(const struct hr_engine *engine)
{
    for (size_t i = 0; i < engine->stage_count; i++)
        if (engine->plan.stages[i].filters || engine->stages[i].program.expand.op != NULL)
            return false;
    if (engine->options.records_max > 0 && engine->options.world != 1)
        return false; /* it cuts a batch wherever it falls */
    return moves(engine);
}

/* Whether it is the same place for all ranks at the same step. Where bad records are
 * skipped no rank knows how many another one had. */
static bool is_even(const struct hr_engine *engine, const struct hr_cursor *c)
{
    bool skips = engine->options.on_error == HR_ON_ERROR_SKIP;

    return steps_are_even(engine) && !(skips && world_of(engine) > 1) && c->uneven == 0 &&
           (c->epoch != engine->base_epoch || engine->done.end <= engine->base);
}

static bool is_plain(const struct hr_cursor *cursor)
{
    struct hr_cursor plain = {.epoch = cursor->epoch,
                              .position = cursor->position,
                              .end_position = cursor->end_position,
                              .end_child = cursor->end_child,
                              .uneven = cursor->uneven};

    return memcmp(&plain, cursor, sizeof plain) == 0;
}

/* Zeros at the end are left out. */
static void
add_numbers(struct hr_str *out, const char *key, const uint64_t *values, size_t count)
{
    while (count > 0 && values[count - 1] == 0)
        count--;
    hr__str_addf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < count; i++)
        hr__str_addf(out, "%s%llu", i == 0 ? "" : ",", (unsigned long long)values[i]);
    hr__str_add(out, "]");
}

/* Records that a step takes. */
static uint64_t step_size(const struct hr_engine *engine)
{
    uint64_t size = 1;

    for (size_t i = 0; i < engine->stage_count; i++)
        if (engine->stages[i].program.batch != NULL && size < HR_STATE_NUMBER_MAX >> 32)
            size *= (uint64_t)engine->stages[i].program.spec.size;
    return size;
}

/* A last batch that is short ends the share of the longest rank, too. */
static uint64_t step_end(const struct hr_engine *engine, uint64_t position)
{
    uint64_t size = step_size(engine);

    return (position + size - 1) / size * size;
}

enum hr_err hr__state_print(const struct hr_engine *engine, struct hr_str *out)
{
    const struct hr_cursor *c = &engine->cursor;
    bool first = c->epoch == engine->base_epoch;
    uint64_t base = first ? engine->base : 0;
    bool even = is_even(engine, c);

    if (!engine->plan.ordered)
        return HR_ERR_UNSUPPORTED;
    hr__str_addf(
        out,
        "{\"headrace_state\":2,\"fingerprint\":\"%s\",\"seed\":%llu,\"epoch\":%llu,"
        "\"base\":%llu,\"position\":%llu,\"world\":%llu,\"rank\":%llu,"
        "\"records\":%llu,\"moves\":%s,\"even\":%s,\"end\":[%llu,%llu]",
        engine->fingerprint, (unsigned long long)engine->options.seed,
        (unsigned long long)c->epoch, (unsigned long long)base,
        (unsigned long long)c->position, (unsigned long long)world_of(engine),
        (unsigned long long)rank_of(engine),
        (unsigned long long)(engine->earlier_records + engine->delivered_records),
        moves(engine) ? "true" : "false", even ? "true" : "false",
        (unsigned long long)(even ? step_end(engine, c->end_position) : c->end_position),
        (unsigned long long)c->end_child);
    if (first && engine->done.end > base) {
        hr__str_add(out, ",");
        hr__done_print(&engine->done, base, out);
    }
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

    if (value == NULL || value->kind != HR_DOC_INT || value->as.integer < 0 ||
        (uint64_t)value->as.integer > HR_STATE_NUMBER_MAX)
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

        if (item->kind != HR_DOC_INT || item->as.integer < 0 ||
            (uint64_t)item->as.integer > HR_STATE_NUMBER_MAX)
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "the iterator state is damaged: \"%s\" is no list of numbers",
                            key);
        values[i] = (uint64_t)item->as.integer;
    }
    return HR_OK;
}

static enum hr_err get_flag(const struct hr_doc *doc, const char *key, bool *ret_value,
                            struct hr_error *reterr)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value == NULL || value->kind != HR_DOC_BOOL)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the iterator state is damaged: \"%s\" is missing or neither "
                        "true nor false",
                        key);
    *ret_value = value->as.boolean;
    return HR_OK;
}

enum hr_err hr__saved_parse(const struct hr_doc *doc, struct hr_saved *ret_saved,
                            struct hr_error *reterr)
{
    struct hr_saved s = {0};
    struct hr_cursor *c = &s.cursor;
    uint64_t version = 0, end[2] = {0};
    const struct hr_doc *done = hr__doc_get(doc, "done"), *seed;

    HR_TRY(get(doc, "headrace_state", &version, reterr));
    if (version != HR_STATE_VERSION)
        return hr__fail(
            reterr, HR_ERR_UNSUPPORTED,
            "the iterator state is of version %llu; this library reads version %d",
            (unsigned long long)version, HR_STATE_VERSION);
    s.fingerprint = hr__doc_get_string(doc, "fingerprint");
    seed = hr__doc_get(doc, "seed");
    if (s.fingerprint == NULL || seed == NULL || seed->kind != HR_DOC_INT)
        return hr__fail(
            reterr, HR_ERR_FORMAT,
            "the iterator state is damaged: it lacks \"fingerprint\" or \"seed\"");
    s.seed = (uint64_t)seed->as.integer;
    HR_TRY(get(doc, "epoch", &c->epoch, reterr));
    HR_TRY(get(doc, "base", &s.base, reterr));
    HR_TRY(get(doc, "position", &c->position, reterr));
    HR_TRY(get(doc, "world", &s.world, reterr));
    HR_TRY(get(doc, "rank", &s.rank, reterr));
    HR_TRY(get(doc, "records", &s.records, reterr));
    HR_TRY(get_flag(doc, "moves", &s.moves, reterr));
    HR_TRY(get_flag(doc, "even", &s.even, reterr));
    HR_TRY(get_numbers(doc, "end", end, 2, reterr));
    HR_TRY(
        get_numbers(doc, "skip_children", c->skip_children, HR_PLAN_STAGES_MAX, reterr));
    HR_TRY(get_numbers(doc, "skip_out", c->skip_out, HR_PLAN_STAGES_MAX, reterr));
    HR_TRY(get_numbers(doc, "ordinals", c->ordinals, HR_CURSOR_STREAMS, reterr));
    c->end_position = end[0];
    c->end_child = end[1];
    if (done != NULL)
        HR_TRY(hr__done_parse(done, &s.done, reterr));
    *ret_saved = s;
    return HR_OK;
}

static enum hr_err check_identity(const struct hr_engine *engine,
                                  const struct hr_saved *s, struct hr_error *reterr)
{
    if (strcmp(s->fingerprint, engine->fingerprint) != 0)
        return hr__fail(
            reterr, HR_ERR_STATE,
            "the iterator state belongs to another graph or data set (fingerprint %s, "
            "here %s)",
            s->fingerprint, engine->fingerprint);
    if (s->seed != engine->options.seed)
        return hr__fail(
            reterr, HR_ERR_STATE, "the iterator state was saved with seed %llu, not %llu",
            (unsigned long long)s->seed, (unsigned long long)engine->options.seed);
    return HR_OK;
}

static enum hr_err refuse_move(const struct hr_engine *engine, const struct hr_saved *s,
                               const char *why, struct hr_error *reterr)
{
    return hr__fail(
        reterr, HR_ERR_STATE,
        "the iterator state was saved by rank %llu of %llu, and this is rank %llu of "
        "%llu; %s",
        (unsigned long long)s->rank, (unsigned long long)s->world,
        (unsigned long long)rank_of(engine), (unsigned long long)world_of(engine), why);
}

/* Another rank or world saved it: begin at a global position instead. */
static enum hr_err
move(const struct hr_engine *engine, struct hr_saved *s, struct hr_error *reterr)
{
    uint64_t done;

    if (!moves(engine))
        return refuse_move(
            engine, s,
            "behind a filter, a window shuffle, take or skip (or batches that are "
            "taken apart) ties a state to its rank and world. Give each rank its own "
            "state, and shuffle in front of the filter to be free to change the world",
            reterr);
    if (!s->even || !steps_are_even(engine))
        return refuse_move(
            engine, s,
            "ranks that filter, expand or skip records stand at different places: "
            "give each rank its own state, or merge those of all ranks "
            "(hr_state_merge, in Python hr.merge_states)",
            reterr);
    if (__builtin_mul_overflow(step_end(engine, s->cursor.end_position), s->world,
                               &done) ||
        done > HR_STATE_NUMBER_MAX)
        return hr__fail(reterr, HR_ERR_STATE,
                        "the iterator state stands beyond the epoch's end");
    s->base += done;
    s->cursor = (struct hr_cursor){.epoch = s->cursor.epoch};
    return HR_OK;
}

/* Whether to go on exactly there. Ranks that may have been given the state of another all
 * begin anew at the same place, so that their states can be merged. */
static bool is_own(const struct hr_engine *engine, const struct hr_saved *s)
{
    return s->world == world_of(engine) && s->rank == rank_of(engine) &&
           (s->world == 1 || !s->even || !moves(engine));
}

/* Numbers of records in stream ops, with which they calculate. */
static enum hr_err check_ordinals(const struct hr_engine *engine,
                                  const struct hr_cursor *c, struct hr_error *reterr)
{
    for (size_t i = 0; i < engine->stage_count; i++) {
        const struct hr_stage *stage = &engine->stages[i];

        for (size_t k = 0; k < stage->program.stream_count; k++) {
            uint64_t block = stage->window.stream == k ? stage->window.block : 0;

            if (c->ordinals[stage->ordinal_first + k] > HR_STATE_NUMBER_MAX / (block + 1))
                return hr__fail(reterr, HR_ERR_STATE,
                                "the iterator state stands beyond the epoch's end");
        }
    }
    return HR_OK;
}

static enum hr_err
apply(struct hr_engine *engine, struct hr_saved *s, struct hr_error *reterr)
{
    const struct hr_path *path = &engine->stages[0].program.paths[0];
    bool shards = path->count > 0 && path->orders[0].shards;
    uint64_t n = shards ? path->orders[0].n : path->n;
    struct hr_cursor *c = &s->cursor;

    HR_TRY(check_identity(engine, s, reterr));
    HR_TRY(check_ordinals(engine, c, reterr));
    if (s->world != 0 && !is_own(engine, s))
        HR_TRY(move(engine, s, reterr));
    if (s->world == 0 && (!moves(engine) || !is_plain(c) || c->position > 0))
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the iterator state is damaged: no merged state stands there");
    engine->base_epoch = c->epoch;
    engine->base = s->base < n ? s->base : n;
    engine->done = s->done;
    memset(&s->done, 0, sizeof s->done);
    c->uneven = s->even ? 0 : 1;
    engine->cursor = *c;
    engine->earlier_records = engine->sequenced_records = s->records;
    engine->finished = engine->options.records_max > 0 &&
                       s->records >= (uint64_t)engine->options.records_max;
    engine->stages[0].position = c->position;
    if (c->position > hr__engine_positions(engine, c->epoch))
        return hr__fail(
            reterr, HR_ERR_STATE,
            "the iterator state stands at position %llu, beyond the epoch's end",
            (unsigned long long)c->position);
    for (size_t i = 0; i < engine->stage_count; i++)
        engine->stages[i].now = *c;
    return HR_OK;
}

enum hr_err
hr__state_restore(struct hr_engine *engine, const char *json, struct hr_error *reterr)
{
    struct hr_saved saved = {0};
    struct hr_doc *doc;
    enum hr_err code = hr__doc_parse(json, strlen(json), "state.json", &doc, reterr);

    if (code != HR_OK) {
        hr__error_prefix(reterr, "the iterator state is damaged");
        return code;
    }
    code = hr__saved_parse(doc, &saved, reterr);
    if (code == HR_OK)
        code = apply(engine, &saved, reterr);
    hr__done_finish(&saved.done);
    hr__doc_destroy(doc);
    return code;
}
