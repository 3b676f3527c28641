/*
 * engine/rows.c - records that a source makes many at once, straight into the batch or
 * the block. Where nothing else is done to records, what a cell costs is a copy; a value
 * for each would cost ten times as much.
 */
#include "engine/run.h"

#include <string.h>

/* Records of one call. Values that have no column wait in the arena meanwhile, unless the
 * source gives them owners. */
#define ROWS_MAX 512
#define VALUES_MAX 32

/* ---- compiling ---- */

/* Whether the source may make the records of the stage at once. */
static bool can_make_rows(const struct hr_program *p)
{
    const struct hr_step *step = &p->steps[0];

    return p->path_count == 1 && p->step_count == 1 && p->segment_count == 0 &&
           step->plain && step->op->kind == HR_OP_SOURCE &&
           step->op->source.apply_rows != NULL && !hr__op_drops(step->op, step->params) &&
           p->expand.op == NULL && !p->plan->describes && p->stamp_count == 0;
}

/* The results of the source's fields, one more than their number; 0: the schema has no
 * such field. False: a result is that of none, or of two. */
static bool find_results(const struct hr_program *p, uint16_t *results)
{
    const struct hr_step *step = &p->steps[0];
    bool made[HR_SCHEMA_FIELDS_MAX] = {false};
    size_t count = 0;

    for (size_t f = 0; f < step->field_count; f++) {
        results[f] = hr__program_result(p, step->fields[f]);
        if (results[f] == 0)
            continue;
        if (made[results[f] - 1u])
            return false;
        made[results[f] - 1u] = true;
        count++;
    }
    return count == p->out_count;
}

bool hr__program_rows(struct hr_program *p)
{
    uint16_t *results;

    if (!can_make_rows(p))
        return true;
    results =
        hr__arena_zalloc(&p->arena, (p->steps[0].field_count + 1) * sizeof *results);
    if (results == NULL)
        return false;
    if (find_results(p, results))
        p->row_results = results;
    return true;
}

/* ---- running ---- */

/* Records of the next call: from the first on, up to one that another world did. */
static uint32_t count_rows(const struct hr_pass *pass)
{
    const struct hr_program *p = &pass->stage->program;
    uint32_t most = pass->count < ROWS_MAX ? pass->count : ROWS_MAX, count = 0;
    bool own = p->steps[0].op->source.rows_own;

    for (size_t f = 0; f < p->out_count && most > VALUES_MAX && !own; f++)
        if (pass->block->columns[f] == NULL)
            most = VALUES_MAX;
    while (count < most && *hr__pass_status(pass, count) != HR_RECORD_DROPPED)
        count++;
    return count;
}

/* Sets the identities of the block's records, and the indices. */
static void set_ids(struct hr_pass *pass, uint32_t count, uint64_t *indices, bool timed)
{
    const struct hr_path *path = &pass->stage->program.paths[0];
    struct hr_runner *runner = pass->runner;
    const struct hr_engine *engine = runner->engine;
    struct hr_block *block = pass->block;

    for (uint32_t i = 0; i < count; i++) {
        struct hr_record_id *id = &block->ids[pass->at + i];
        uint64_t position = block->first + pass->at + i;

        if (path->count > 0 ||
            !hr__engine_map_plain(engine, path, block->epoch, position, id))
            hr__engine_map(engine, path, block->epoch, position, 0,
                           timed ? &runner->thread : NULL, id);
        indices[i] = id->index;
    }
    for (size_t k = 0; timed && k < path->count; k++)
        (void)hr__run_charge(runner, path->orders[k].node);
}

static uint32_t
make_rows(const struct hr_pass *pass, const uint64_t *indices, uint32_t count)
{
    const struct hr_program *p = &pass->stage->program;
    const struct hr_step *step = &p->steps[0];
    char *columns[HR_BINDINGS_MAX];
    struct hr_value *values[HR_BINDINGS_MAX];
    struct hr_source_rows rows = {indices, count, columns, values, p->out_count};

    for (size_t f = 0; f < step->field_count; f++) {
        size_t result = p->row_results[f] - 1u;

        columns[f] = NULL;
        values[f] = NULL;
        if (p->row_results[f] == 0)
            continue;
        columns[f] = hr__pass_place(pass, 0, result);
        values[f] = &pass->block->rows[pass->at * p->out_count + result];
    }
    count =
        step->op->source.apply_rows(&pass->runner->ctxs[pass->stage->number][0], &rows);
    assert(count <= rows.count);
    return count;
}

/* Counts the bytes that the source wrote. */
static void count_bytes(const struct hr_pass *pass, uint32_t count)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_runner *runner = pass->runner;
    const struct hr_value *rows = &pass->block->rows[pass->at * p->out_count];
    uint64_t bytes = 0;

    for (size_t f = 0; f < p->out_count; f++) {
        if (pass->block->columns[f] != NULL)
            bytes += (uint64_t)p->out[f].bytes * count;
        for (uint32_t i = 0; pass->block->columns[f] == NULL && i < count; i++)
            bytes += rows[i * p->out_count + f].bytes;
    }
    hr__run_charge(runner, p->steps[0].node)->bytes[HR_BYTES_WRITTEN] += bytes;
    if (p->store_node != HR_NO_NODE)
        hr__run_charge(runner, p->store_node)->bytes[HR_BYTES_READ] += bytes;
}

/* Keeps the values of `count` records in a field that has no column. Returns how many are
 * kept: memory may be missing. */
static uint32_t keep_values(const struct hr_pass *pass, size_t field, uint32_t count)
{
    size_t stride = pass->stage->program.out_count;
    struct hr_value *values = &pass->block->rows[pass->at * stride + field];
    uint32_t kept = 0;

    for (; kept < count; kept++) {
        struct hr_value value = values[kept * stride];
        enum hr_err code;

        if (value.owner != NULL && value.kind == HR_VALUE_BYTES &&
            hr__store_may_share(pass->runner, &value))
            continue; /* it is as hr__store_keep() would leave it */
        values[kept * stride] = (struct hr_value){0};
        code = hr__store_keep(pass->runner, &value, &values[kept * stride]);
        hr__value_clear(&value);
        if (code != HR_OK)
            break;
    }
    return kept;
}

/* Removes what records from `from` up to `to`, which are not made, have of their values.
 */
static void clear_values(const struct hr_pass *pass, uint32_t from, uint32_t to)
{
    size_t fields = pass->stage->program.out_count;
    struct hr_value *rows = &pass->block->rows[pass->at * fields];

    for (size_t i = from * fields; i < to * fields; i++)
        hr__value_clear(&rows[i]);
}

static uint32_t run_rows(struct hr_pass *pass, uint32_t count, bool timed)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_program *p = &pass->stage->program;
    uint64_t indices[ROWS_MAX];
    uint32_t made;

    set_ids(pass, count, indices, timed);
    hr__thread_charge(&runner->thread, p->steps[0].node);
    made = make_rows(pass, indices, count);
    if (timed)
        count_bytes(pass, made);
    if (p->store_node != HR_NO_NODE)
        hr__thread_charge(&runner->thread, p->store_node);
    for (size_t f = 0; f < p->out_count; f++)
        if (pass->block->columns[f] == NULL)
            made = keep_values(pass, f, made);
    if (made < count) { /* the next record is run again by itself, and may fail then */
        clear_values(pass, made, count);
        memset(&runner->error, 0, sizeof runner->error);
    }
    return made;
}

uint32_t hr__run_rows(struct hr_pass *pass)
{
    struct hr_runner *runner = pass->runner;
    const struct hr_program *p = &pass->stage->program;
    size_t stage = pass->stage->number;
    struct hr_sample *sample = &pass->chunk->samples[0];
    uint32_t count = count_rows(pass), made;
    bool timed;

    if (count == 0)
        return 0;
    /* All of them are one record to the sampler, that passes each order op many times. */
    hr__sampler_aim(runner, stage, p->node_count + count * p->paths[0].count, 0,
                    pass->record_ns * count);
    timed = hr__sampler_takes(&runner->meter.samplers[stage]);
    if (timed) {
        hr__sample_init(runner, pass->stage, sample);
        hr__sample_resume(runner, sample, p->nodes[0]);
    }
    made = run_rows(pass, count, timed);
    if (timed)
        hr__sample_pause(runner);
    if (timed && made > 0) {
        sample->records = made;
        hr__sample_finish(runner, pass->stage, sample);
    }
    memset(hr__pass_status(pass, 0), HR_RECORD_GOOD, made);
    runner->meter.stages[stage].begun += made;
    if (runner->thread.arena.used_bytes > HR_SCRATCH_KEPT)
        hr__arena_reset(&runner->thread.arena);
    return made;
}
