/*
 * engine/run.c - the loop that runs records.
 *
 * A runner takes the records of a claim through their stage in passes. Each record gets a
 * row of slots, steps run on it, and its results are stored; only the order differs. If
 * all steps are ops of the library in this thread, each record goes through all of them
 * at once, in one row that stays in cache: 27 ns for a record of one number. Otherwise
 * all rows of a pass go through the stage segment by segment, so that an interpreter is
 * entered, or a request sent, once for all of them. If the only step is a source that
 * can, many records are made in one call (rows.c). A record that fails leaves its pass.
 * Its substitute, if allowed, runs alone afterwards, since the memory of a request is
 * valid only until the next one; steps that run on remote workers run here for it.
 *
 * A pass pauses once its first request is sent, and resumes when the next pass has got as
 * far, so the worker process always has work.
 */
#include "engine/run.h"
#include "engine/budget.h"

#include <assert.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "op/thread.h"
#include "op/when.h"

/* The work on a row is inlined where it runs, with `timed` a constant. gcc considers it
 * too large for that, and the calls cost a fifth of the time of a small record. */
#define ROW_INLINE static inline __attribute__((always_inline))

/* ---- timing ---- */

uint64_t hr__run_bytes(struct hr_value *const *values, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += values[i]->kind == HR_VALUE_NONE ? 0 : values[i]->bytes;
    return bytes;
}

/* ---- steps ---- */

static enum hr_err force_slots(struct hr_runner *runner, struct hr_value *slots,
                               const uint16_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        HR_TRY(hr__value_force(&runner->thread, &slots[list[i]], NULL, &runner->error));
    return HR_OK;
}

static enum hr_err
force_after(struct hr_runner *runner, struct hr_value *slots, const struct hr_step *step)
{
    if (!step->early)
        return force_slots(runner, slots, step->after, step->after_count);
    for (size_t i = 0; i < step->after_count; i++)
        hr__value_force_early(&runner->thread, &slots[step->after[i]]);
    return HR_OK;
}

/* An op without DEFERS is never given a deferred value and never leaves one. */
static inline void
assert_fields_are_made(const struct hr_step *step, const struct hr_op_ctx *ctx)
{
    for (size_t i = 0; i < ctx->field_count; i++)
        assert((step->op->traits & HR_TRAIT_DEFERS) ||
               ctx->fields[i]->kind == HR_VALUE_NONE ||
               hr__value_is_made(ctx->fields[i]));
    (void)step;
}

/* Counts what the step reads and removes, before it runs, and what it made, afterwards.
 */
static void add_bytes(struct hr_charge *charge, const struct hr_step *step,
                      const struct hr_op_ctx *ctx, bool after)
{
    for (size_t i = 0; i < ctx->field_count; i++) {
        uint64_t bytes = hr__run_bytes(&ctx->fields[i], 1);

        if (after && step->access[i] == HR_ACCESS_UPDATE)
            charge->bytes[HR_BYTES_AFTER] += bytes;
        else if (after && step->access[i] == HR_ACCESS_WRITE)
            charge->bytes[HR_BYTES_WRITTEN] += bytes;
        else if (!after && step->access[i] == HR_ACCESS_UPDATE)
            charge->bytes[HR_BYTES_BEFORE] += bytes;
        else if (!after && step->access[i] == HR_ACCESS_TAKE)
            charge->bytes[HR_BYTES_TAKEN] += bytes;
        else if (!after && step->access[i] == HR_ACCESS_READ)
            charge->bytes[HR_BYTES_READ] += bytes;
    }
}

/* Makes the values of the input that the record comes from those of the merge. */
static enum hr_err
merge_fields(struct hr_runner *runner, struct hr_value *slots, const struct hr_step *step,
             const struct hr_record_id *ids)
{
    size_t fields = step->alias_count / step->merge->inputs.count;

    for (size_t i = 0; i < step->merge->inputs.count; i++) {
        const uint16_t *alias = &step->alias[2 * fields * i];

        if (ids[step->merge->paths[i]].index == HR_INDEX_NONE)
            continue;
        for (size_t f = 0; f < fields; f++) {
            HR_TRY(hr__value_force(&runner->thread, &slots[alias[2 * f]], NULL,
                                   &runner->error));
            hr__value_alias(&slots[alias[2 * f + 1]], &slots[alias[2 * f]]);
        }
    }
    return HR_OK;
}

static enum hr_err run_step(struct hr_runner *runner, struct hr_value *slots,
                            const struct hr_step *step, struct hr_op_ctx *ctx)
{
    struct hr_charge *charge;

    hr__thread_charge(&runner->thread, step->node);
    if (step->merge != NULL)
        return merge_fields(runner, slots, step, hr__step_ids(step, ctx->id));
    for (size_t i = 0; i < step->alias_count; i++)
        hr__value_alias(&slots[step->alias[2 * i + 1]], &slots[step->alias[2 * i]]);
    if (step->fill_count > 0)
        HR_TRY(hr__step_fill(step, slots, ctx));
    if (step->before_count > 0)
        HR_TRY(force_slots(runner, slots, step->before, step->before_count));
    assert_fields_are_made(step, ctx);
    charge = hr__run_charge(runner, step->node);
    if (charge != NULL)
        add_bytes(charge, step, ctx, false);
    HR_TRY(hr__op_apply(step->op, ctx));
    if (step->after_count > 0)
        HR_TRY(force_after(runner, slots, step));
    if (charge != NULL)
        add_bytes(charge, step, ctx, true);
    for (size_t i = 0; i < step->clear_count; i++)
        hr__value_clear(&slots[step->clear[i]]);
    return HR_OK;
}

/* Runs steps [from, to) on a row, which stays open unless one fails or drops it. */
ROW_INLINE void
run_row(struct hr_pass *pass, uint32_t row, size_t from, size_t to, bool timed)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_program *p = &pass->stage->program;
    struct hr_op_ctx *ctxs = runner->ctxs[pass->stage->number];

    assert(timed == (runner->thread.charges != NULL));
    if (p->placed_count > 0)
        hr__finals_set(pass, row);
    for (size_t i = from; i < to; i++) {
        struct hr_op_ctx *ctx = &ctxs[i];
        const struct hr_step *step = &p->steps[i];
        enum hr_err code;

        if (step->cache_count > 0) {
            size_t next = hr__cached_next(pass, row, i);

            if (*hr__pass_status(pass, row) != HR_RECORD_OPEN)
                return;
            if (next != i) {
                pass->chunk->resume[row] = (uint16_t)next;
                i = next - 1;
                continue;
            }
        }
        if (step->plain && !timed)
            code = step->op->apply(ctx);
        else if (step->branches && ctx->id->index == HR_INDEX_NONE) {
            hr__meter_node(runner, step->node)->skipped++;
            continue;
        } else
            code = run_step(runner, hr__pass_slots(pass, row), step, ctx);
        if (code == HR_OK)
            assert_fields_are_made(step, ctx);
        if (code != HR_OK) {
            runner->error.code = code;
            hr__pass_fail(pass, row, step->node, NULL, false);
            return;
        }
        if (ctx->drop) {
            ctx->drop = false;
            hr__pass_ended(pass, row, step->node, HR_RECORD_DROPPED);
            return;
        }
    }
}

/* ---- rows ---- */

static void branch(struct hr_pass *pass, struct hr_record_id *ids, bool timed)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_runner *runner = pass->runner;

    hr__paths_branch(p, timed ? &runner->thread : NULL, ids);
    for (size_t i = 0; i < p->path_count; i++) {
        const struct hr_path *path = &p->paths[i];

        for (size_t k = 0; path->parent != HR_NO_PATH && k < path->count; k++) {
            if (ids[i].index == HR_INDEX_NONE)
                hr__meter_node(runner, path->orders[k].node)->skipped++;
            else if (timed)
                (void)hr__run_charge(runner, path->orders[k].node);
        }
    }
}

/* Sets the record's identities: one per source, mapped by its order ops. */
ROW_INLINE void
set_positions(struct hr_pass *pass, uint32_t at, struct hr_record_id *ids, bool timed)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_runner *runner = pass->runner;

    for (size_t i = 0; i < p->path_count; i++) {
        const struct hr_path *path = &p->paths[i];

        if (path->parent != HR_NO_PATH)
            continue;
        if (path->count == 0 && pass->attempt == 0 &&
            hr__engine_map_plain(runner->engine, path, pass->block->epoch,
                                 pass->block->first + at, &ids[i]))
            continue;
        hr__engine_map(runner->engine, path, pass->block->epoch, pass->block->first + at,
                       pass->attempt, timed ? &runner->thread : NULL, &ids[i]);
        for (size_t k = 0; timed && k < path->count; k++)
            (void)hr__run_charge(runner, path->orders[k].node);
    }
    if (p->merges)
        branch(pass, ids, timed);
    if (p->stamp_count > 0)
        hr__stamps_set(p, runner->engine->graph, timed ? &runner->thread : NULL, ids);
    if (p->view_count > 0)
        hr__views_set(p, ids);
}

/* Turns inputs that are descriptions into deferred values; their bytes stay in slots of
 * their own. */
static bool take_descriptions(struct hr_pass *pass, uint32_t row)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_value *slots = hr__pass_slots(pass, row);

    for (size_t f = 0; f < p->in_count; f++) {
        struct hr_value *value = &slots[p->in_slots[f]], *kept;

        if (p->in_kept[f] == 0 || value->kind != HR_VALUE_BYTES)
            continue;
        kept = &slots[p->in_kept[f] - 1];
        assert(kept->kind == HR_VALUE_NONE);
        *kept = *value;
        *value = (struct hr_value){0};
        if (hr__store_described(pass->runner, kept, value) != HR_OK) {
            hr__pass_fail(pass, row, p->plan->feed, NULL, true);
            return false;
        }
    }
    return true;
}

/* Sets the row's identities, or takes its values from the stage before. Returns false if
 * that failed: the record is bad. */
ROW_INLINE bool begin_row(struct hr_pass *pass, uint32_t row, bool timed)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_block *block = pass->block;
    struct hr_record_id *ids = hr__pass_ids(pass, row);
    uint32_t at = pass->at + row;
    struct hr_value *slots, *in;

    block->status[at] = HR_RECORD_OPEN;
    if (pass->stage->number == 0) {
        set_positions(pass, at, ids, timed);
        return true;
    }
    in = &block->inputs[at * p->in_count];
    slots = hr__pass_slots(pass, row);
    ids[0] = block->ids[at];
    if (p->view_count > 0)
        hr__views_set(p, ids);
    for (size_t f = 0; f < p->in_count; f++)
        slots[p->in_slots[f]] = in[f];
    memset(in, 0, p->in_count * sizeof *in);
    return !p->in_described || take_descriptions(pass, row);
}

/* Counts the bytes that are stored in the batch or the block. */
static void count_stored(struct hr_pass *pass, const struct hr_value *slots)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_charge *charge = hr__run_charge(pass->runner, p->store_node);

    hr__thread_charge(&pass->runner->thread, p->store_node);
    for (size_t f = 0; f < p->out_count; f++) {
        const struct hr_value *value = &slots[p->out[f].slot];

        charge->bytes[HR_BYTES_READ] += value->kind == HR_VALUE_NONE ? 0 : value->bytes;
    }
}

/* Copies the record's identity to the block. Not right after set_positions: loading 16
 * bytes that were just stored as two words stalls for 5 ns per record. */
static inline void keep_id(struct hr_pass *pass, uint32_t row)
{
    const struct hr_record_id *id = hr__pass_ids(pass, row);

    if (pass->stage->number > 0)
        return;
    assert(id->depth == 0);
    memcpy(&pass->block->ids[pass->at + row], id, offsetof(struct hr_record_id, child));
    if (pass->stage->program.stamp_count > 0)
        pass->block->ids[pass->at + row].stamp = id->stamp;
}

/* Stores the results of the steps, or makes the children. */
ROW_INLINE void finish_row(struct hr_pass *pass, uint32_t row, bool timed)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_program *p = &pass->stage->program;
    struct hr_value *slots = hr__pass_slots(pass, row);
    enum hr_err code = HR_OK;

    assert(*hr__pass_status(pass, row) == HR_RECORD_OPEN);
    if (timed && p->store_node != HR_NO_NODE)
        count_stored(pass, slots);
    if (p->expand.op == NULL)
        code = hr__store_results(runner, pass->stage, pass->block, pass->at + row, slots);
    else if (!p->expands_in_segment)
        code =
            hr__store_children(runner, pass->stage, pass->block, pass->at + row, slots);
    if (code == HR_OK) {
        *hr__pass_status(pass, row) = HR_RECORD_GOOD;
        return;
    }
    runner->error.code = code;
    if (runner->error.node[0] == '\0')
        hr__run_blame(runner, p->step_count > 0 ? p->steps[p->step_count - 1].group : 0);
    hr__run_note_bad(runner, pass->stage, pass->block, pass->at + row,
                     hr__pass_ids(pass, row), NULL, false);
    *hr__pass_status(pass, row) = HR_RECORD_BAD;
}

static inline void clear_rows(struct hr_pass *pass, uint32_t from, uint32_t to)
{
    struct hr_value *rows = hr__pass_slots(pass, 0);
    size_t slots = pass->stage->program.slot_count + 1;

    for (size_t i = from * slots; i < to * slots; i++) {
        if (rows[i].owner != NULL)
            hr__value_clear(&rows[i]);
        rows[i].kind = HR_VALUE_NONE;
    }
}

static inline void clear_scratch(struct hr_runner *runner)
{
    if (runner->thread.arena.used_bytes > HR_SCRATCH_KEPT)
        hr__arena_reset(&runner->thread.arena);
}

bool hr__pass_stopped(const struct hr_pass *pass)
{
    return atomic_load_explicit(&pass->runner->engine->stop, memory_order_relaxed);
}

void hr__pass_ended(struct hr_pass *pass, uint32_t row, uint32_t node,
                    enum hr_record_status status)
{
    struct hr_node_meter *meter = hr__meter_node(pass->runner, node);

    assert(*hr__pass_status(pass, row) == HR_RECORD_OPEN && status != HR_RECORD_OPEN);
    *hr__pass_status(pass, row) = (uint8_t)status;
    if (status == HR_RECORD_END) /* there was no record */
        pass->runner->meter.stages[pass->stage->number].begun--;
    else
        meter->ended++;
    meter->dropped += status == HR_RECORD_DROPPED;
    if (status == HR_RECORD_DROPPED && pass->stage->program.cache_count > 0)
        hr__cached_dropped(pass, row, node);
}

void hr__pass_give_up(struct hr_pass *pass, uint32_t node)
{
    for (uint32_t row = 0; row < pass->count; row++)
        if (*hr__pass_status(pass, row) == HR_RECORD_OPEN)
            hr__pass_ended(pass, row, node, HR_RECORD_UNRUN);
}

void hr__pass_fail(struct hr_pass *pass, uint32_t row, uint32_t node, char *detail,
                   bool fatal)
{
    hr__run_blame(pass->runner, node);
    hr__run_note_bad(pass->runner, pass->stage, pass->block, pass->at + row,
                     hr__pass_ids(pass, row), detail, fatal);
    hr__pass_ended(pass, row, node, HR_RECORD_BAD);
}

void hr__pass_compact(struct hr_pass *pass)
{
    struct hr_chunk *chunk = pass->chunk;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < chunk->live_count; i++)
        if (*hr__pass_status(pass, chunk->live[i]) == HR_RECORD_OPEN)
            chunk->live[kept++] = chunk->live[i];
    chunk->live_count = kept;
}

/* Whether another world did the record; substitutes are never skipped. */
static inline bool is_done(const struct hr_pass *pass, uint32_t row)
{
    return pass->attempt == 0 && *hr__pass_status(pass, row) == HR_RECORD_DROPPED;
}

/* ---- record by record ---- */

ROW_INLINE void run_record(struct hr_pass *pass, bool timed)
{
    if (begin_row(pass, 0, timed))
        run_row(pass, 0, 0, pass->stage->program.step_count, timed);
    if (*hr__pass_status(pass, 0) == HR_RECORD_OPEN)
        finish_row(pass, 0, timed);
    keep_id(pass, 0);
    clear_rows(pass, 0, 1);
    clear_scratch(pass->runner);
}

static void run_timed(struct hr_pass *pass)
{
    struct hr_sample *sample = &pass->chunk->samples[0];

    hr__sample_init(pass->runner, pass->stage, sample);
    hr__sample_resume(pass->runner, sample, pass->stage->program.nodes[0]);
    run_record(pass, true);
    hr__sample_pause(pass->runner);
    hr__sample_finish(pass->runner, pass->stage, sample);
}

static void aim_sampler(const struct hr_pass *pass)
{
    hr__sampler_aim(pass->runner, pass->stage->number, pass->stage->program.node_count, 0,
                    pass->record_ns);
}

/* Runs the first record of the pass. */
static void run_one(struct hr_pass *pass)
{
    struct hr_runner *runner = pass->runner;
    size_t stage = pass->stage->number;
    bool trace = runner->engine->options.trace;
    uint64_t begin = trace ? hr__span_begin(runner) : 0;

    if (is_done(pass, 0))
        return;
    runner->meter.stages[stage].begun++;
    if (hr__sampler_takes(&runner->meter.samplers[stage]))
        run_timed(pass);
    else
        run_record(pass, false);
    if (trace)
        hr__span_record(runner, pass, hr__pass_ids(pass, 0), HR_NO_NODE, begin,
                        hr__ticks());
}

/* Runs records [at, at + count) of the pass's block: as many as the source makes at once
 * together, every other one in row 0 of a pass of its own. */
static void run_straight(struct hr_pass *pass)
{
    struct hr_pass rest = *pass;
    uint32_t end = pass->at + pass->count, most = pass->count;
    bool by_rows = pass->stage->program.row_results != NULL && pass->attempt == 0 &&
                   !pass->runner->engine->options.trace;

    aim_sampler(pass);
    while (rest.at < end && !hr__pass_stopped(&rest)) {
        if (by_rows) {
            uint32_t done;

            rest.count = end - rest.at < most ? end - rest.at : most;
            done = hr__run_rows(&rest);
            most = done > 0 ? 2 * done : 4; /* bad records may follow each other */
            rest.at += done;
            if (done > 0)
                continue;
            aim_sampler(pass);
        }
        run_one(&rest);
        rest.at++;
    }
    for (; rest.at < end; rest.at++)
        if (!is_done(&rest, 0))
            *hr__pass_status(&rest, 0) = HR_RECORD_UNRUN;
}

/* ---- segment by segment ---- */

static bool needs(const struct hr_step *step, uint16_t slot)
{
    for (size_t i = 0; i < step->before_count; i++)
        if (step->before[i] == slot)
            return true;
    return false;
}

/* What the first step needs made must be; what only later ones need may fail there. */
static enum hr_err prepare_row(struct hr_pass *pass, const struct hr_step *step,
                               const uint16_t *made, size_t count, uint32_t row)
{
    struct hr_runner *runner = pass->runner;
    struct hr_value *slots = hr__pass_slots(pass, row);

    for (size_t i = 0; i < step->alias_count; i++)
        hr__value_alias(&slots[step->alias[2 * i + 1]], &slots[step->alias[2 * i]]);
    for (size_t i = 0; i < count; i++) {
        struct hr_value *value = &slots[made[i]];
        enum hr_err code = hr__value_force(&runner->thread, value, NULL, &runner->error);

        if (code != HR_OK &&
            (needs(step, made[i]) || !hr__value_may_wait(&runner->thread, value, code)))
            return code;
    }
    return HR_OK;
}

void hr__pass_prepare(struct hr_pass *pass, size_t at, const uint16_t *made, size_t count)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_step *step = hr__program_step(&pass->stage->program, at);

    if (step->alias_count == 0 && count == 0)
        return;
    for (uint32_t i = 0; i < pass->chunk->live_count; i++) {
        uint32_t row = pass->chunk->live[i];
        enum hr_err code;

        if (hr__pass_stopped(pass)) {
            hr__pass_give_up(pass, step->node);
            break;
        }
        hr__pass_time_begin(pass, row, pass->stage->program.nodes[0]);
        code = prepare_row(pass, step, made, count, row);
        hr__pass_time_end(pass);
        if (code != HR_OK) {
            runner->error.code = code;
            hr__pass_fail(pass, row, step->node, NULL, false);
        }
    }
    hr__pass_compact(pass);
}

/* Begins to time the row, if there is room for another sample. */
static void add_sample(struct hr_pass *pass, uint32_t row)
{
    struct hr_chunk *chunk = pass->chunk;

    if (chunk->sample_count == HR_SAMPLES_MAX) {
        /* Time the first row of the next pass instead. */
        pass->runner->meter.samplers[pass->stage->number].left = 1;
        return;
    }
    hr__sample_init(pass->runner, pass->stage, &chunk->samples[chunk->sample_count]);
    chunk->sample_of[row] = (uint8_t)++chunk->sample_count;
}

static void begin_rows(struct hr_pass *pass)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_program *p = &pass->stage->program;
    struct hr_sampler *sampler = &runner->meter.samplers[pass->stage->number];
    struct hr_chunk *chunk = pass->chunk;
    uint32_t live = 0;

    assert(pass->count <= chunk->room);
    chunk->sample_count = 0;
    hr__sampler_aim(runner, pass->stage->number, p->node_count, pass->count,
                    pass->record_ns);
    for (uint32_t row = 0; row < pass->count; row++) {
        if (is_done(pass, row))
            continue;
        chunk->sample_of[row] = 0;
        chunk->resume[row] = 0;
        if (hr__sampler_takes(sampler))
            add_sample(pass, row);
        hr__pass_time_begin(pass, row, p->nodes[0]);
        if (begin_row(pass, row, chunk->sample_of[row] > 0))
            chunk->live[live++] = row;
        hr__pass_time_end(pass);
        runner->meter.stages[pass->stage->number].begun++;
    }
    chunk->live_count = live;
    for (uint32_t i = 0; i < live; i++)
        keep_id(pass, chunk->live[i]);
}

void hr__pass_run_row(struct hr_pass *pass, const struct hr_segment *segment,
                      uint32_t row)
{
    struct hr_runner *runner = pass->runner;
    bool trace = runner->engine->options.trace;
    uint64_t begin = trace ? hr__span_begin(runner) : 0;
    size_t from = pass->chunk->resume[row];

    if (from < segment->from)
        from = segment->from;
    for (size_t at = from; at < segment->to; at++)
        hr__pass_bind(pass, at, row);
    hr__pass_time_begin(pass, row, pass->stage->program.steps[segment->from].node);
    run_row(pass, row, from, segment->to, pass->chunk->sample_of[row] > 0);
    hr__pass_time_end(pass);
    if (trace)
        hr__span_record(runner, pass, hr__pass_ids(pass, row), HR_NO_NODE, begin,
                        hr__ticks());
}

static void run_local(struct hr_pass *pass, const struct hr_segment *segment)
{
    for (uint32_t i = 0; i < pass->chunk->live_count; i++) {
        if (hr__pass_stopped(pass)) {
            hr__pass_give_up(pass, pass->stage->program.steps[segment->from].node);
            return;
        }
        hr__pass_run_row(pass, segment, pass->chunk->live[i]);
    }
}

static void finish_rows(struct hr_pass *pass)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_program *p = &pass->stage->program;
    const struct hr_chunk *chunk = pass->chunk;

    for (uint32_t i = 0; i < chunk->live_count; i++) {
        uint32_t row = chunk->live[i];

        if (p->expand.op != NULL)
            hr__pass_bind(pass, p->step_count, row);
        hr__pass_time_begin(pass, row, p->nodes[p->node_count - 1]);
        finish_row(pass, row, chunk->sample_of[row] > 0);
        hr__pass_time_end(pass);
        clear_rows(pass, row, row + 1); /* while it is in cache */
    }
    if (chunk->live_count < pass->count)
        clear_rows(pass, 0, pass->count);
    for (uint32_t i = 0; i < chunk->sample_count; i++)
        hr__sample_finish(runner, pass->stage, &chunk->samples[i]);
    pass->bytes += runner->thread.arena.used_bytes;
    clear_scratch(runner);
}

/* Leaves only those rows in the pass whose records the segment's steps are for. */
static void narrow(struct hr_pass *pass, const struct hr_segment *segment)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_chunk *chunk = pass->chunk;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < chunk->live_count; i++) {
        uint32_t row = chunk->live[i];
        const struct hr_step *first = hr__program_step(p, segment->from);

        if (hr__pass_ids(pass, row)[first->path].index != HR_INDEX_NONE) {
            chunk->live[kept++] = row;
            continue;
        }
        for (size_t at = segment->from; at < segment->to; at++)
            hr__meter_node(pass->runner, hr__program_step(p, at)->node)->skipped++;
    }
    chunk->live_count = kept;
}

/* After a segment: the rows that are still open. */
static void settle(struct hr_pass *pass, const struct hr_segment *segment)
{
    struct hr_chunk *chunk = pass->chunk;

    if (!segment->branches) {
        hr__pass_compact(pass);
        return;
    }
    chunk->live_count = 0;
    for (uint32_t row = 0; row < pass->count; row++)
        if (*hr__pass_status(pass, row) == HR_RECORD_OPEN)
            chunk->live[chunk->live_count++] = row;
}

/* Runs segments from `at` on; with `pause`, stops once a request is sent and returns its
 * segment. Returns segment_count when all are done. */
static size_t run_segments(struct hr_pass *pass, size_t at, bool pause)
{
    const struct hr_program *p = &pass->stage->program;

    for (; at < p->segment_count; at++) {
        const struct hr_segment *segment = &p->segments[at];
        struct hr_proc **proc = &pass->chunk->procs[at];

        if (p->cache_count > 0)
            hr__cached_gather(pass, segment);
        else if (pass->chunk->live_count == 0)
            break;
        if (segment->branches)
            narrow(pass, segment);
        if (pass->chunk->live_count == 0)
            ; /* no record is of this branch */
        else if (segment->kind == HR_SEGMENT_LOCAL ||
                 (segment->kind == HR_SEGMENT_REMOTE && pass->attempt > 0))
            run_local(pass, segment);
        else if (segment->kind == HR_SEGMENT_CODE)
            hr__code_segment(pass, segment);
        else if (segment->kind == HR_SEGMENT_REMOTE)
            hr__feed_segment(pass, segment);
        else if (hr__process_begin(pass, segment, proc)) {
            if (pause)
                return at;
            hr__process_end(pass, segment, *proc);
        }
        settle(pass, segment);
    }
    if (p->cache_count > 0)
        hr__cached_gather(pass, NULL);
    return p->segment_count;
}

/* ---- passes ---- */

static void run_pass(struct hr_pass *pass)
{
    if (pass->stage->program.segment_count == 0) {
        run_straight(pass);
        return;
    }
    begin_rows(pass);
    (void)run_segments(pass, 0, false);
    finish_rows(pass);
}

/* Runs substitutes for a bad record until one is good or none is allowed. */
static void substitute(struct hr_pass *pass, uint32_t at)
{
    const struct hr_block *block = pass->block;
    struct hr_pass again = *pass;

    again.at = at;
    again.count = 1;
    for (again.attempt = 1; block->status[at] == HR_RECORD_BAD ||
                            (block->status[at] == HR_RECORD_DROPPED && again.attempt > 1);
         again.attempt++) {
        const struct hr_bad *last = block->bad[at];

        while (last != NULL && last->next != NULL)
            last = last->next;
        if (!hr__run_may_substitute(pass->stage, last, again.attempt - 1))
            break;
        run_pass(&again);
    }
    if (block->status[at] == HR_RECORD_END)
        pass->block->status[at] = HR_RECORD_BAD; /* no record follows */
    pass->bytes = again.bytes;
    pass->lost_ticks = again.lost_ticks;
}

static void substitute_bad(struct hr_pass *pass)
{
    if (pass->runner->engine->options.on_error != HR_ON_ERROR_SUBSTITUTE)
        return;
    for (uint32_t i = 0; i < pass->count; i++)
        if (pass->block->status[pass->at + i] == HR_RECORD_BAD)
            substitute(pass, pass->at + i);
}

/* ---- claims ---- */

static struct hr_pass
pass_of(struct hr_runner *runner, const struct hr_claim *claim, struct hr_chunk *chunk)
{
    return (struct hr_pass){.runner = runner,
                            .stage = claim->stage,
                            .block = claim->block,
                            .chunk = chunk,
                            .at = claim->at,
                            .count = claim->count,
                            .record_ns = claim->record_ns};
}

static void run_claim(struct hr_runner *runner, struct hr_claim *claim)
{
    struct hr_chunk *chunk = &runner->chunks[2 * claim->stage->number];
    uint32_t most = claim->stage->program.segment_count == 0 ? UINT32_MAX : chunk->room;
    uint32_t end = claim->at + claim->count, step = hr__budget_step(claim);
    struct hr_pass pass = pass_of(runner, claim, chunk);
    uint64_t bytes = 0;

    most = most < step ? most : step;
    do {
        pass.count = end - pass.at < most ? end - pass.at : most;
        run_pass(&pass);
        substitute_bad(&pass);
        pass.at += pass.count;
    } while (pass.at < end &&
             !hr__budget_is_used(claim, pass.at - pass.count, pass.at, &bytes));
    claim->back = end - pass.at;
    claim->count -= claim->back;
    claim->bytes = pass.bytes;
    claim->lost_ticks = pass.lost_ticks;
}

/* ---- two claims at a time ---- */

static void swap_arenas(struct hr_runner *runner, struct hr_chunk *chunk)
{
    struct hr_arena own = runner->thread.arena;

    runner->thread.arena = chunk->arena;
    chunk->arena = own;
}

/* Begins the claim, which is one pass in a stage with requests. */
static struct hr_chunk *begin(struct hr_runner *runner, const struct hr_claim *claim)
{
    struct hr_chunk *chunk =
        &runner->chunks[2 * claim->stage->number + runner->turn++ % 2];

    assert(claim->count <= chunk->room);
    chunk->pass = pass_of(runner, claim, chunk);
    swap_arenas(runner, chunk);
    begin_rows(&chunk->pass);
    chunk->waits_at = run_segments(&chunk->pass, 0, true);
    swap_arenas(runner, chunk);
    return chunk;
}

static void end(struct hr_runner *runner, struct hr_chunk *chunk)
{
    struct hr_pass *pass = &chunk->pass;
    const struct hr_program *p = &pass->stage->program;
    size_t at = chunk->waits_at;

    swap_arenas(runner, chunk);
    if (at < p->segment_count) {
        hr__process_end(pass, &p->segments[at], chunk->procs[at]);
        settle(pass, &p->segments[at]);
        run_segments(pass, at + 1, false);
    }
    finish_rows(pass);
    substitute_bad(pass);
    swap_arenas(runner, chunk);
}

/* Begins the records of this claim (stage NULL: none) and completes those of the
 * outstanding one. On return *claim is the completed claim, with stage NULL if there was
 * none. */
static void overlap(struct hr_runner *runner, struct hr_claim *claim)
{
    struct hr_chunk *older = runner->under_way;
    uint64_t lost_ticks = 0;

    runner->under_way = NULL;
    if (claim->stage != NULL) {
        runner->under_way = begin(runner, claim);
        lost_ticks = runner->under_way->pass.lost_ticks;
        runner->under_way->pass.lost_ticks = 0;
    }
    *claim = (struct hr_claim){.lost_ticks = lost_ticks};
    if (older == NULL)
        return;
    end(runner, older);
    *claim = (struct hr_claim){.stage = older->pass.stage,
                               .block = older->pass.block,
                               .at = older->pass.at,
                               .count = older->pass.count,
                               .bytes = older->pass.bytes,
                               .lost_ticks = older->pass.lost_ticks + lost_ticks};
}

/* Records that another world did, or this run before it resumed, count as dropped. */
static void drop_done(const struct hr_engine *engine, const struct hr_claim *claim)
{
    struct hr_block *block = claim->block;
    uint64_t children;

    for (uint32_t i = claim->at; i < claim->at + claim->count; i++)
        if (hr__rerun_skips(engine, block->epoch, block->first + i) ||
            hr__engine_is_done(engine, block->epoch, block->first + i, &children))
            block->status[i] = HR_RECORD_DROPPED;
}

void hr__run_claim(struct hr_runner *runner, struct hr_claim *claim)
{
    if (claim->stage == NULL) {
        overlap(runner, claim);
        return;
    }
    if (claim->count == 0)
        return; /* only the end of an epoch: the block is the sequencer's already */
    if (claim->stage->number == 0 &&
        (!hr__done_is_empty(&runner->engine->done) || runner->engine->rerun.end > 0))
        drop_done(runner->engine, claim);
    hr__run_ahead(runner, claim);
    if (claim->stage->program.processes)
        overlap(runner, claim);
    else
        run_claim(runner, claim);
}
