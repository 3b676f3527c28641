/*
 * engine/segments.c - cuts a stage with user code or worker processes into segments.
 * Read-only once made.
 */
#include "engine/program.h"

#include <assert.h>
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
    for (size_t i = 0; i < step->fill_count; i++)
        if (step->fills[i].slot == slot)
            return true;
    return lists(step->fields, step->field_count, slot) ||
           lists(step->alias, 2 * (size_t)step->alias_count, slot);
}

/* The expansion counts as a step if a segment makes the children. */
static size_t step_total(const struct hr_program *p)
{
    return p->step_count + p->expands_in_segment;
}

bool hr__program_touches(const struct hr_program *p, size_t from, uint16_t slot)
{
    size_t count = p->step_count + (p->expand.op != NULL);

    for (size_t i = from; i < count; i++)
        if (touches(hr__program_step(p, i), slot))
            return true;
    return false;
}

static enum hr_segment_kind kind_of(const struct hr_step *step)
{
    return step->variant == HR_PLAN_REMOTE      ? HR_SEGMENT_REMOTE
           : step->variant == HR_PLAN_PROCESSES ? HR_SEGMENT_PROCESS
           : step->code != NULL                 ? HR_SEGMENT_CODE
                                                : HR_SEGMENT_LOCAL;
}

/* A request has one identity per record, and user code in it gets no aliases. */
static bool
goes_on(const struct hr_program *p, const struct hr_segment *segment, size_t at)
{
    const struct hr_step *first = hr__program_step(p, segment->from);
    const struct hr_step *step = hr__program_step(p, at);

    if (segment->kind != kind_of(step))
        return false;
    if (segment->kind == HR_SEGMENT_REMOTE)
        return true;
    if (segment->kind != HR_SEGMENT_LOCAL && step->cache_count > 0)
        return false; /* caches are asked before a segment, or within a local one */
    return segment->kind == HR_SEGMENT_LOCAL ||
           (segment->kind == HR_SEGMENT_PROCESS && step->path == first->path &&
            (step->alias_count == 0 || step->code == NULL));
}

bool hr__program_cut(struct hr_program *p, const struct hr_graph *graph)
{
    bool needed = false;
    size_t count;

    p->expands_in_segment =
        p->expand.op != NULL && kind_of(&p->expand) != HR_SEGMENT_LOCAL;
    count = step_total(p);
    for (size_t i = 0; i < count; i++)
        needed = needed || kind_of(hr__program_step(p, i)) != HR_SEGMENT_LOCAL;
    if (!needed)
        return true;
    assert(p->segment_count == 0 && p->segments == NULL);
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
        segment->branches = segment->kind != HR_SEGMENT_LOCAL &&
                            segment->kind != HR_SEGMENT_REMOTE &&
                            hr__program_step(p, i)->branches;
        p->segment_count++;
        if (segment->kind == HR_SEGMENT_REMOTE) {
            segment->results = p->remote_slots;
            segment->result_count = p->remote_count;
        }
        if (segment->kind == HR_SEGMENT_CODE) {
            const struct hr_step *step = hr__program_step(p, i);

            p->one_at_a_time = p->one_at_a_time || step->variant == HR_PLAN_INLINE;
            p->may_wait = p->may_wait || step->code->code->may_wait;
        }
    }
    for (size_t i = 0; i < p->segment_count; i++) {
        if (p->segments[i].kind != HR_SEGMENT_PROCESS)
            continue;
        p->processes = true;
        if (!hr__segment_pack(p, &p->segments[i], graph))
            return false;
    }
    return true;
}
