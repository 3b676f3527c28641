/*
 * engine/finals.c - results that steps make where they are stored: in the batch, if the
 * record's place there is known, instead of in memory from where they would be copied.
 * A record that fails or is dropped afterwards leaves bytes there that nothing reads.
 */
#include "engine/run.h"

#include <assert.h>
#include <string.h>

/* ---- compiling ---- */

/* 1 + the result that the slot is, 0 for none. Children are results of their own. */
uint16_t hr__program_result(const struct hr_program *p, uint16_t slot)
{
    if (p->expand.code != NULL)
        return 0;
    for (size_t f = 0; f < p->out_count; f++)
        if (p->out[f].slot == slot)
            return (uint16_t)(f + 1);
    return 0;
}

static bool makes(const struct hr_step *step, size_t field)
{
    return step->code != NULL ? field >= step->code->input_count
                              : step->access[field] == HR_ACCESS_UPDATE ||
                                    step->access[field] == HR_ACCESS_WRITE;
}

static bool find_finals(struct hr_program *p, struct hr_step *step, size_t at)
{
    step->finals =
        hr__arena_zalloc(&p->arena, (step->field_count + 1u) * sizeof *step->finals);
    if (step->finals == NULL)
        return false;
    for (size_t i = 0; at < p->step_count && i < step->field_count; i++)
        if (makes(step, i) && !hr__program_touches(p, at + 1, step->fields[i]))
            step->finals[i] = hr__program_result(p, step->fields[i]);
    return true;
}

static bool is_placed(const struct hr_program *p, const struct hr_step *step)
{
    return step->code == NULL && step->op->placed && p->expand.op == NULL;
}

static bool list_placed(struct hr_program *p)
{
    size_t most = 0;

    for (size_t i = 0; i < p->step_count; i++)
        most += is_placed(p, &p->steps[i]) ? p->steps[i].field_count : 0;
    if (most == 0)
        return true;
    p->placed = hr__arena_alloc(&p->arena, most * sizeof *p->placed);
    if (p->placed == NULL)
        return false;
    for (size_t i = 0; i < p->step_count; i++) {
        const struct hr_step *step = &p->steps[i];

        for (size_t k = 0; is_placed(p, step) && k < step->field_count; k++)
            if (step->finals[k] > 0 && p->out[step->finals[k] - 1u].bytes > 0)
                p->placed[p->placed_count++] = (struct hr_placed){
                    (uint16_t)i, (uint16_t)k, (uint16_t)(step->finals[k] - 1u)};
    }
    return true;
}

bool hr__program_finals(struct hr_program *p)
{
    assert(p->placed == NULL && p->placed_count == 0);
    for (size_t i = 0; i < p->step_count + (p->expand.op != NULL); i++) {
        struct hr_step *step = i < p->step_count ? &p->steps[i] : &p->expand;

        if ((step->code != NULL || is_placed(p, step)) && !find_finals(p, step, i))
            return false;
    }
    return list_placed(p);
}

/* ---- running ---- */

void *hr__pass_place(const struct hr_pass *pass, uint32_t row, size_t result)
{
    const struct hr_buffer *column = pass->block->columns[result];
    size_t bytes = (size_t)pass->stage->program.out[result].bytes;

    if (column == NULL)
        return NULL;
    return (char *)hr_buffer_data(column) + (size_t)(pass->at + row) * bytes;
}

void hr__finals_set(const struct hr_pass *pass, uint32_t row)
{
    const struct hr_program *p = &pass->stage->program;
    struct hr_op_ctx *ctxs = pass->runner->ctxs[pass->stage->number];

    for (size_t i = 0; i < p->placed_count; i++) {
        const struct hr_placed *placed = &p->placed[i];

        ctxs[placed->step].places[placed->field] =
            (struct hr_op_place){.data = hr__pass_place(pass, row, placed->out),
                                 .bytes = (size_t)p->out[placed->out].bytes};
    }
}
