/*
 * Cutting a stage with user code into segments, and describing its requests to a worker
 * process. Read-only once made.
 */
#include "engine/program.h"

#include <string.h>

static bool lists(const uint16_t *list, size_t count, uint16_t slot)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == slot)
            return true;
    return false;
}

static bool touches(const struct hr_step *step, uint16_t slot)
{
    return lists(step->fields, step->field_count, slot) ||
           lists(step->alias, 2 * (size_t)step->alias_count, slot);
}

/* The expansion counts as a step when it is user code. */
static size_t step_total(const struct hr_program *p)
{
    return p->step_count + (p->expand.code != NULL);
}

static bool touched_from(const struct hr_program *p, size_t from, uint16_t slot)
{
    size_t count = p->step_count + (p->expand.op != NULL);

    for (size_t i = from; i < count; i++)
        if (touches(hr__program_step(p, i), slot))
            return true;
    return false;
}

/* 1 + the result that the slot is, 0 for none. Children are results of their own. */
static uint16_t result_of(const struct hr_program *p, uint16_t slot)
{
    if (p->expand.code != NULL)
        return 0;
    for (size_t f = 0; f < p->out_count; f++)
        if (p->out[f].slot == slot)
            return (uint16_t)(f + 1);
    return 0;
}

static bool find_finals(struct hr_program *p, struct hr_step *step, size_t at)
{
    const struct hr_code_use *use = step->code;

    step->finals =
        hr__arena_zalloc(&p->arena, (use->output_count + 1) * sizeof *step->finals);
    if (step->finals == NULL)
        return false;
    for (size_t i = 0; at < p->step_count && i < use->output_count; i++) {
        uint16_t slot = step->fields[use->input_count + i];

        if (!touched_from(p, at + 1, slot))
            step->finals[i] = result_of(p, slot);
    }
    return true;
}

static enum hr_segment_kind kind_of(const struct hr_step *step)
{
    return step->code == NULL                   ? HR_SEGMENT_LOCAL
           : step->variant == HR_PLAN_PROCESSES ? HR_SEGMENT_PROCESS
                                                : HR_SEGMENT_CODE;
}

/* A request knows one identity per record, and forks only what is shipped. */
static bool
goes_on(const struct hr_program *p, const struct hr_segment *segment, size_t at)
{
    const struct hr_step *first = hr__program_step(p, segment->from);
    const struct hr_step *step = hr__program_step(p, at);

    if (segment->kind != kind_of(step))
        return false;
    return segment->kind == HR_SEGMENT_LOCAL ||
           (segment->kind == HR_SEGMENT_PROCESS && step->path == first->path &&
            step->alias_count == 0);
}

/* ---- requests ---- */

struct packer {
    struct hr_program *p;
    struct hr_segment *segment;
    struct hr_proc_program *program;
    uint16_t *known; /* slot of the row -> slot of the request + 1 */
};

static void *zalloc(struct packer *k, size_t count, size_t size)
{
    return hr__arena_zalloc(&k->p->arena, (count + 1) * size);
}

/* Inputs are numbered first: all that steps read and none before made. */
static bool pack_inputs(struct packer *k)
{
    const struct hr_field **fields =
        zalloc(k, k->p->slot_count, sizeof(struct hr_field *));

    k->segment->inputs = zalloc(k, k->p->slot_count, sizeof(uint16_t));
    if (fields == NULL || k->segment->inputs == NULL)
        return false;
    for (size_t i = k->segment->from; i < k->segment->to; i++) {
        const struct hr_step *step = hr__program_step(k->p, i);

        for (size_t f = 0; f < step->code->input_count; f++) {
            uint16_t slot = step->fields[f];
            bool made = false;

            for (size_t e = k->segment->from; e < i; e++) {
                const struct hr_step *earlier = hr__program_step(k->p, e);
                size_t inputs = earlier->code->input_count;

                made = made ||
                       lists(earlier->fields + inputs, earlier->code->output_count, slot);
            }
            if (made || k->known[slot] != 0)
                continue;
            k->segment->inputs[k->program->input_count] = slot;
            fields[k->program->input_count++] = &step->code->fields[f];
            k->known[slot] = (uint16_t)++k->program->slot_count;
        }
    }
    k->program->input_fields = fields;
    return true;
}

/* The inputs that a step of the segment wants made. */
static bool pack_made(struct packer *k)
{
    struct hr_segment *segment = k->segment;

    segment->made = zalloc(k, k->program->input_count, sizeof *segment->made);
    if (segment->made == NULL)
        return false;
    for (size_t i = 0; i < k->program->input_count; i++) {
        uint16_t slot = segment->inputs[i];

        for (size_t s = segment->from; s < segment->to; s++) {
            const struct hr_step *step = hr__program_step(k->p, s);

            if (!lists(step->before, step->before_count, slot))
                continue;
            segment->made[segment->made_count++] = slot;
            break;
        }
    }
    return true;
}

static bool pack_step(struct packer *k, const struct hr_graph *graph, size_t at)
{
    const struct hr_step *step = hr__program_step(k->p, at);
    const struct hr_code_use *use = step->code;
    struct hr_proc_step *packed =
        (struct hr_proc_step *)&k->program->steps[at - k->segment->from];
    uint16_t *inputs = zalloc(k, use->input_count, sizeof *inputs);
    uint16_t *outputs = zalloc(k, use->output_count, sizeof *outputs);

    if (inputs == NULL || outputs == NULL)
        return false;
    for (size_t i = 0; i < use->input_count; i++)
        inputs[i] = (uint16_t)(k->known[step->fields[i]] - 1);
    for (size_t i = 0; i < use->output_count; i++) {
        uint16_t *known = &k->known[step->fields[use->input_count + i]];

        if (*known == 0)
            *known = (uint16_t)++k->program->slot_count;
        outputs[i] = (uint16_t)(*known - 1);
    }
    *packed = (struct hr_proc_step){
        .code = use->name,
        .node = graph->nodes[step->node].name,
        .draw_id = step->draw_id,
        .kind = step->op->kind,
        .input_count = use->input_count,
        .output_count = use->output_count,
        .inputs = inputs,
        .outputs = outputs,
        .output_fields = use->output_fields,
    };
    return true;
}

/* What comes back: children as they are, else what somebody uses later. */
static bool pack_results(struct packer *k)
{
    uint16_t *results = zalloc(k, k->program->slot_count, sizeof *results);

    k->segment->results = zalloc(k, k->program->slot_count, sizeof(uint16_t));
    if (results == NULL || k->segment->results == NULL)
        return false;
    for (size_t i = k->segment->from; i < k->segment->to; i++) {
        const struct hr_step *step = hr__program_step(k->p, i);
        size_t inputs = step->code->input_count;

        if (k->segment->to > k->p->step_count && i < k->p->step_count)
            continue;
        for (size_t f = 0; f < step->code->output_count; f++) {
            uint16_t slot = step->fields[inputs + f];

            if (i < k->p->step_count && result_of(k->p, slot) == 0 &&
                !touched_from(k->p, k->segment->to, slot))
                continue;
            k->segment->results[k->program->result_count] = slot;
            results[k->program->result_count++] = (uint16_t)(k->known[slot] - 1);
        }
    }
    k->program->results = results;
    return true;
}

static bool
pack(struct hr_program *p, struct hr_segment *segment, const struct hr_graph *graph)
{
    struct packer k = {.p = p, .segment = segment};
    size_t count = (size_t)(segment->to - segment->from);

    k.program = segment->program = zalloc(&k, 1, sizeof *k.program);
    k.known = zalloc(&k, p->slot_count, sizeof *k.known);
    if (k.program == NULL || k.known == NULL)
        return false;
    k.program->steps = zalloc(&k, count, sizeof *k.program->steps);
    if (k.program->steps == NULL || !pack_inputs(&k) || !pack_made(&k))
        return false;
    for (size_t i = segment->from; i < segment->to; i++)
        if (!pack_step(&k, graph, i))
            return false;
    k.program->step_count = count;
    return pack_results(&k);
}

bool hr__program_cut(struct hr_program *p, const struct hr_graph *graph)
{
    size_t count = step_total(p);
    bool code = false;

    for (size_t i = 0; i < count; i++) {
        struct hr_step *step = i < p->step_count ? &p->steps[i] : &p->expand;

        if (step->code != NULL && !find_finals(p, step, i))
            return false;
        code = code || step->code != NULL;
    }
    if (!code)
        return true;
    p->segments = hr__arena_zalloc(&p->arena, count * sizeof *p->segments);
    if (p->segments == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct hr_segment *segment = &p->segments[p->segment_count];

        if (p->segment_count > 0 && goes_on(p, segment - 1, i)) {
            segment[-1].to++;
            continue;
        }
        segment->kind = kind_of(hr__program_step(p, i));
        segment->from = (uint16_t)i;
        segment->to = (uint16_t)(i + 1);
        p->segment_count++;
    }
    for (size_t i = 0; i < p->segment_count; i++) {
        if (p->segments[i].kind != HR_SEGMENT_PROCESS)
            continue;
        p->processes = true;
        if (!pack(p, &p->segments[i], graph))
            return false;
    }
    return true;
}
