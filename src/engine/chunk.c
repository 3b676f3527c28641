/*
 * engine/chunk.c - many records at a time through a stage with user code, segment by
 * segment.
 *
 * Each record has a row of slots, so that it can wait between segments. A record that
 * fails leaves the chunk; when another may stand in for it, that one goes through alone
 * afterwards, because the memory of a request is good until the next one only.
 *
 * A pass with requests pauses when the first of them is on its way, and goes on when the
 * next pass has come as far: so the worker process always has records to do.
 */
#include "engine/run.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"

/* Scratch of small records is given up together: what is in cache stays there. */
#define SCRATCH_KEPT 16384

static enum hr_err chunk_init(struct hr_chunk *chunk, const struct hr_stage *stage)
{
    const struct hr_program *p = &stage->program;
    size_t paths = p->path_count > 0 ? p->path_count : 1;

    chunk->room = stage->block_size < HR_CHUNK_ROWS ? stage->block_size : HR_CHUNK_ROWS;
    chunk->live = hr__calloc(chunk->room, sizeof *chunk->live);
    chunk->ids = hr__calloc(chunk->room * paths, sizeof *chunk->ids);
    chunk->rows = hr__calloc(chunk->room * (p->slot_count + 1), sizeof *chunk->rows);
    hr__arena_init(&chunk->arena);
    if (chunk->live == NULL || chunk->ids == NULL || chunk->rows == NULL)
        return HR_ERR_MEMORY;
    return hr__process_init(chunk, p);
}

enum hr_err hr__chunk_init(struct hr_runner *runner, size_t at)
{
    const struct hr_stage *stage = &runner->engine->stages[at];
    struct hr_chunk *chunks = &runner->chunks[2 * at];

    if (stage->program.segment_count == 0)
        return HR_OK;
    HR_TRY(chunk_init(&chunks[0], stage));
    if (!stage->program.processes)
        return HR_OK;
    chunks[1].procs = chunks[0].procs;
    chunks[1].channel = 1;
    return chunk_init(&chunks[1], stage);
}

static void chunk_finish(struct hr_chunk *chunk, const struct hr_program *p)
{
    for (size_t i = 0; chunk->rows != NULL && i < chunk->room * (p->slot_count + 1); i++)
        hr__value_clear(&chunk->rows[i]);
    hr__process_finish(chunk, p);
    hr__arena_finish(&chunk->arena);
    hr__free(chunk->live);
    hr__free(chunk->ids);
    hr__free(chunk->rows);
}

void hr__chunk_finish(struct hr_runner *runner, size_t at)
{
    const struct hr_program *p = &runner->engine->stages[at].program;

    chunk_finish(&runner->chunks[2 * at], p);
    chunk_finish(&runner->chunks[2 * at + 1], p);
}

/* ---- rows ---- */

struct hr_op_ctx *hr__pass_bind(const struct hr_pass *pass, size_t at, uint32_t row)
{
    const struct hr_step *step = hr__program_step(&pass->stage->program, at);
    struct hr_op_ctx *ctx = &pass->runner->ctxs[pass->stage->number][at];
    struct hr_value *slots = hr__pass_slots(pass, row);

    ctx->id = &hr__pass_ids(pass, row)[step->path];
    for (size_t i = 0; i < step->field_count; i++)
        ctx->fields[i] = &slots[step->fields[i]];
    return ctx;
}

bool hr__pass_stopped(const struct hr_pass *pass)
{
    return atomic_load_explicit(&pass->runner->engine->stop, memory_order_relaxed);
}

void hr__pass_give_up(struct hr_pass *pass)
{
    for (uint32_t row = 0; row < pass->count; row++)
        if (*hr__pass_status(pass, row) == HR_RECORD_OPEN)
            *hr__pass_status(pass, row) = HR_RECORD_UNRUN;
}

void hr__pass_fail(struct hr_pass *pass, uint32_t row, uint32_t node, char *detail,
                   bool fatal)
{
    hr__run_blame(pass->runner, node);
    hr__run_note_bad(pass->runner, pass->stage, pass->block, pass->at + row,
                     hr__pass_ids(pass, row), detail, fatal);
    *hr__pass_status(pass, row) = HR_RECORD_BAD;
}

static bool is_timed(const struct hr_pass *pass, uint32_t i)
{
    return i == 0 || pass->count <= 4;
}

static enum hr_err prepare_row(struct hr_pass *pass, const struct hr_step *step,
                               const uint16_t *made, size_t count, uint32_t row)
{
    struct hr_runner *runner = pass->runner;
    struct hr_value *slots = hr__pass_slots(pass, row);

    for (size_t i = 0; i < step->alias_count; i++)
        hr__value_alias(&slots[step->alias[2 * i + 1]], &slots[step->alias[2 * i]]);
    for (size_t i = 0; i < count; i++)
        HR_TRY(hr__value_force(&runner->thread, &slots[made[i]], NULL, &runner->error));
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
            hr__pass_give_up(pass);
            break;
        }
        if (is_timed(pass, i))
            hr__run_begin_timing(runner);
        code = prepare_row(pass, step, made, count, row);
        if (is_timed(pass, i))
            hr__run_end_timing(runner);
        if (code != HR_OK) {
            runner->error.code = code;
            hr__pass_fail(pass, row, step->node, NULL, false);
        }
    }
    hr__pass_compact(pass);
}

/* ---- a pass ---- */

static void begin_rows(struct hr_pass *pass)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_block *block = pass->block;
    uint32_t live = 0;

    for (uint32_t row = 0; row < pass->count; row++) {
        struct hr_record_id *ids = hr__pass_ids(pass, row);
        uint32_t at = pass->at + row;

        if (pass->attempt == 0 && block->status[at] == HR_RECORD_DROPPED)
            continue; /* another world did it */
        pass->chunk->live[live++] = row;
        block->status[at] = HR_RECORD_OPEN;
        if (pass->stage->number == 0) {
            hr__run_positions(pass->runner, pass->stage, block->epoch, block->first + at,
                              pass->attempt, ids);
            block->ids[at] = ids[0];
        } else {
            struct hr_value *in = &block->inputs[at * p->in_count];

            ids[0] = block->ids[at];
            for (size_t f = 0; f < p->in_count; f++)
                hr__pass_slots(pass, row)[p->in_slots[f]] = in[f];
            memset(in, 0, p->in_count * sizeof *in);
        }
    }
    pass->chunk->live_count = live;
}

static void run_local(struct hr_pass *pass, const struct hr_segment *segment)
{
    struct hr_runner *runner = pass->runner;
    bool trace = runner->engine->options.trace;

    for (uint32_t i = 0; i < pass->chunk->live_count; i++) {
        uint64_t begin = trace ? hr__ticks() : 0;
        uint32_t row = pass->chunk->live[i];
        bool timed = is_timed(pass, i), drop;
        enum hr_err code;

        if (hr__pass_stopped(pass)) {
            hr__pass_give_up(pass);
            return;
        }
        for (size_t at = segment->from; at < segment->to; at++)
            hr__pass_bind(pass, at, row);
        if (timed)
            hr__run_begin_timing(runner);
        code = hr__run_steps(runner, pass->stage, hr__pass_slots(pass, row),
                             segment->from, segment->to, &drop);
        if (timed)
            hr__run_end_timing(runner);
        if (code != HR_OK) { /* blamed already */
            hr__run_note_bad(runner, pass->stage, pass->block, pass->at + row,
                             hr__pass_ids(pass, row), NULL, false);
            *hr__pass_status(pass, row) = HR_RECORD_BAD;
        } else if (drop) {
            *hr__pass_status(pass, row) = HR_RECORD_DROPPED;
        }
        if (trace)
            hr__run_span(runner, pass->stage, pass->block->first + pass->at + row, begin,
                         hr__ticks());
    }
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

static void finish_row(struct hr_pass *pass, uint32_t row)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_program *p = &pass->stage->program;
    enum hr_err code = HR_OK;

    if (p->expand.code == NULL) {
        if (p->expand.op != NULL)
            hr__pass_bind(pass, p->step_count, row);
        code = hr__run_finish(runner, pass->stage, pass->block, pass->at + row,
                              hr__pass_slots(pass, row));
    }
    if (code == HR_OK) {
        *hr__pass_status(pass, row) = HR_RECORD_GOOD;
        return;
    }
    hr__run_note_bad(runner, pass->stage, pass->block, pass->at + row,
                     hr__pass_ids(pass, row), NULL, false);
    *hr__pass_status(pass, row) = HR_RECORD_BAD;
}

static void finish_rows(struct hr_pass *pass)
{
    struct hr_runner *runner = pass->runner;
    struct hr_chunk *chunk = pass->chunk;
    size_t slots = pass->stage->program.slot_count + 1;

    for (uint32_t i = 0; i < chunk->live_count; i++) {
        if (is_timed(pass, i))
            hr__run_begin_timing(runner);
        finish_row(pass, chunk->live[i]);
        if (is_timed(pass, i))
            hr__run_end_timing(runner);
    }
    for (size_t i = 0; i < pass->count * slots; i++) {
        if (chunk->rows[i].owner != NULL)
            hr__value_clear(&chunk->rows[i]);
        chunk->rows[i].kind = HR_VALUE_NONE;
    }
    pass->bytes += runner->thread.arena.used_bytes;
    if (runner->thread.arena.used_bytes > SCRATCH_KEPT)
        hr__arena_reset(&runner->thread.arena);
}

/* Segments from `at` on; with `pause` until a request is on its way. Returns its segment,
 * all when the rows are through. */
static size_t run_segments(struct hr_pass *pass, size_t at, bool pause)
{
    const struct hr_program *p = &pass->stage->program;

    for (; at < p->segment_count && pass->chunk->live_count > 0; at++) {
        const struct hr_segment *segment = &p->segments[at];
        struct hr_proc **proc = &pass->chunk->procs[at];

        if (segment->kind == HR_SEGMENT_LOCAL)
            run_local(pass, segment);
        else if (segment->kind == HR_SEGMENT_CODE)
            hr__code_segment(pass, segment);
        else if (hr__process_begin(pass, segment, proc)) {
            if (pause)
                return at;
            hr__process_end(pass, segment, *proc);
        }
        hr__pass_compact(pass);
    }
    return p->segment_count;
}

static void run_pass(struct hr_pass *pass)
{
    begin_rows(pass);
    run_segments(pass, 0, false);
    finish_rows(pass);
}

/* Records that were bad, each again with the next ones by number in its place. */
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
        pass->block->status[at] = HR_RECORD_BAD; /* no record stands behind it */
    pass->bytes = again.bytes;
    pass->lost_ticks = again.lost_ticks;
}

static void substitute_bad(struct hr_pass *pass)
{
    for (uint32_t i = 0; i < pass->count; i++)
        if (pass->block->status[pass->at + i] == HR_RECORD_BAD)
            substitute(pass, pass->at + i);
}

void hr__chunk_claim(struct hr_runner *runner, struct hr_claim *claim)
{
    struct hr_chunk *chunk = &runner->chunks[2 * claim->stage->number];
    uint32_t end = claim->at + claim->count;
    struct hr_pass pass = {.runner = runner,
                           .stage = claim->stage,
                           .block = claim->block,
                           .chunk = chunk,
                           .at = claim->at};

    for (; pass.at < end; pass.at += pass.count) {
        pass.count = end - pass.at < chunk->room ? end - pass.at : chunk->room;
        run_pass(&pass);
        substitute_bad(&pass);
    }
    claim->bytes = pass.bytes;
    claim->lost_ticks = pass.lost_ticks;
}

/* ---- two passes at a time ---- */

static void swap_arenas(struct hr_runner *runner, struct hr_chunk *chunk)
{
    struct hr_arena own = runner->thread.arena;

    runner->thread.arena = chunk->arena;
    chunk->arena = own;
}

/* Claims of a stage with requests are one pass each. */
static struct hr_chunk *begin(struct hr_runner *runner, const struct hr_claim *claim)
{
    struct hr_chunk *chunk =
        &runner->chunks[2 * claim->stage->number + runner->turn++ % 2];

    assert(claim->count <= chunk->room);
    chunk->pass = (struct hr_pass){.runner = runner,
                                   .stage = claim->stage,
                                   .block = claim->block,
                                   .chunk = chunk,
                                   .at = claim->at,
                                   .count = claim->count};
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
        hr__pass_compact(pass);
        run_segments(pass, at + 1, false);
    }
    finish_rows(pass);
    substitute_bad(pass);
    swap_arenas(runner, chunk);
}

void hr__chunk_overlap(struct hr_runner *runner, struct hr_claim *claim)
{
    struct hr_chunk *older = runner->under_way;
    uint64_t lost_ticks = 0;

    if (claim->stage != NULL && claim->count == 0)
        return; /* the end of an epoch */
    runner->under_way = NULL;
    if (claim->stage != NULL) {
        runner->under_way = begin(runner, claim);
        lost_ticks = runner->under_way->pass.lost_ticks;
        runner->under_way->pass.lost_ticks = 0;
    }
    *claim = (struct hr_claim){0};
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
