/*
 * engine/survey_record.c - runs steps on a record of a survey.
 *
 * Cheap steps run on many records: the header of a photo says how large it is and what a
 * decode of it takes, so nothing is decoded. All steps run on few, because what a sound
 * or a text becomes, and what work on it takes, follows from no schema.
 */
#include "engine/survey.h"

#include <assert.h>
#include <malloc.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/error.h"
#include "op/thread.h"
#include "opt/memory.h"
#include "store/reader.h"

static bool is_cheap(const struct hr_step *step)
{
    return step->code == NULL && step->before_count == 0 &&
           (step->op->kind == HR_OP_SOURCE || (step->op->traits & HR_TRAIT_DEFERS));
}

static bool
misses(const struct hr_survey *s, const uint16_t *slots, size_t count, size_t by)
{
    for (size_t i = 0; i < count; i += by)
        if (s->missing[slots[i]])
            return true;
    return false;
}

/* Finds the steps that are cheap and need nothing that others make. Returns whether all
 * are. */
static bool find_cheap(struct hr_survey *s)
{
    const struct hr_program *p = &s->program;
    bool all = p->expand.op == NULL;

    for (size_t i = 0; i < p->step_count; i++) {
        const struct hr_step *step = &p->steps[i];

        s->cheap[i] = is_cheap(step) && step->merge == NULL &&
                      !misses(s, step->fields, step->field_count, 1) &&
                      !misses(s, step->alias, 2u * step->alias_count, 2);
        all = all && s->cheap[i];
        for (size_t f = 0; !s->cheap[i] && f < step->field_count; f++)
            s->missing[step->fields[f]] = true;
        for (size_t k = 0; !s->cheap[i] && k < step->alias_count; k++)
            s->missing[step->alias[2 * k + 1]] = true;
    }
    return all;
}

static void find_used(struct hr_survey *s)
{
    const struct hr_program *p = &s->program;

    for (size_t i = 0; i < p->step_count; i++) {
        const struct hr_step *step = &p->steps[i];

        for (size_t f = 0; f < step->field_count; f++)
            s->used[step->fields[f]] = i + 1;
        for (size_t k = 0; k < step->alias_count; k++)
            s->used[step->alias[2 * k]] = i + 1;
    }
    for (size_t f = 0; f < p->out_count; f++)
        s->used[p->out[f].slot] = SIZE_MAX;
}

/* Whether the library can run all steps of a stage by itself. */
static bool runs_without_code(const struct hr_program *p)
{
    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i].code != NULL)
            return false;
    return true;
}

/* Whether the records that leave a stage are those after its steps, without user code. */
static bool passes_on(const struct hr_survey *s)
{
    const struct hr_program *p = &s->program;
    const struct hr_graph_node *nodes = s->plan->graph->nodes;

    for (size_t i = 0; i < p->plan->sequence_count; i++)
        if (nodes[p->plan->sequence[i]].op->kind != HR_OP_ORDER)
            return false;
    return p->expand.op == NULL && runs_without_code(p);
}

static enum hr_err survey_init(struct hr_survey *s, size_t stage, struct hr_error *reterr)
{
    const struct hr_program *p = &s->program;

    HR_TRY(hr__program_init(&s->program, s->plan, stage, reterr));
    s->cheap = hr__calloc(p->step_count + 1, sizeof *s->cheap);
    s->missing = hr__calloc(p->slot_count + 1, sizeof *s->missing);
    s->used = hr__calloc(p->slot_count + 1, sizeof *s->used);
    s->ids = hr__calloc(p->id_count, sizeof *s->ids);
    s->row = hr__calloc(p->slot_count + 1, sizeof *s->row);
    s->fields = hr__calloc(HR_BINDINGS_MAX + 1, sizeof *s->fields);
    if (s->ids == NULL || s->row == NULL || s->fields == NULL || s->cheap == NULL ||
        s->missing == NULL || s->used == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    s->runs = !find_cheap(s);
    find_used(s);
    if (stage + 1 == s->plan->stage_count || !passes_on(s))
        return HR_OK;
    s->next = hr__calloc(1, sizeof *s->next);
    if (s->next == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    s->next->plan = s->plan;
    s->next->thread = s->thread;
    s->next->one = s->one;
    HR_TRY(survey_init(s->next, stage + 1, reterr));
    s->runs = s->runs || s->next->runs;
    return HR_OK;
}

static void survey_finish(struct hr_survey *s)
{
    if (s->next != NULL)
        survey_finish(s->next);
    hr__free(s->next);
    hr__free(s->ids);
    hr__free(s->row);
    hr__free(s->fields);
    hr__free(s->cheap);
    hr__free(s->missing);
    hr__free(s->used);
    hr__program_finish(&s->program);
}

enum hr_err hr__survey_begin(struct hr_survey *s, const struct hr_plan *plan,
                             struct hr_thread *thread, struct hr_error *reterr)
{
    struct hr_reader_options options = {.mode = HR_READER_NONE};

    *s = (struct hr_survey){.plan = plan, .thread = thread};
    thread->surveys = true;
    hr__arena_init(&thread->arena);
    s->one = hr__extents_create(s->plan->graph);
    thread->pool = hr_pool_create(0);
    if (s->one == NULL || thread->pool == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__pool_keep(thread->pool, 1); /* no buffer for the next record */
    options.pool = thread->pool;
    HR_TRY(hr__reader_create(&options, &thread->reader, reterr));
    return survey_init(s, 0, reterr);
}

void hr__survey_end(struct hr_survey *s)
{
    survey_finish(s);
    hr__free(s->one);
    hr__thread_objects_destroy(s->thread);
    hr__reader_destroy(s->thread->reader);
    hr_pool_unref(s->thread->pool);
    hr__arena_finish(&s->thread->arena);
#ifdef __GLIBC__
    (void)malloc_trim(0); /* what was freed counts as long as the process has it */
#endif
}

/* Notes the sizes of the record after step `at`. */
static void note(struct hr_survey *s, size_t at)
{
    const struct hr_step *step = &s->program.steps[at];
    const struct hr_graph *graph = s->plan->graph;
    const struct hr_graph_node *n = &graph->nodes[step->node];
    struct hr_extent *e = &s->one[step->node];

    hr__extents_infer(graph, step->node, s->one);
    for (size_t i = 0; e->known && i < step->field_count; i++) {
        const struct hr_value *value = s->fields[i];
        struct hr_field *field = hr__schema_find(&e->schema, n->field_names[i]);

        if (field == NULL || value->kind == HR_VALUE_NONE)
            continue;
        if (field->kind != HR_FIELD_TENSOR)
            continue;
        for (int d = 0; d < field->ndim && d < value->ndim; d++)
            field->dims[d].size = value->dims[d];
    }
    e->bytes = e->force = e->encoded = 0;
    e->measured = true;
    for (size_t i = 0; i < s->program.slot_count; i++) {
        const struct hr_value *value = &s->row[i];

        if (value->kind == HR_VALUE_BYTES || value->kind == HR_VALUE_RAGGED)
            *(s->used[i] > at + 1 ? &e->bytes : &e->encoded) += value->bytes;
        if (value->kind == HR_VALUE_DEFERRED)
            e->force += value->u.lazy->class->scratch(value->u.lazy, s->drawn);
    }
    e->ran = s->thread->arena.used_bytes;
}

static enum hr_err make_slots(struct hr_survey *s, const uint16_t *slots, size_t count)
{
    struct hr_error error = {0};

    for (size_t i = 0; i < count; i++)
        HR_TRY(hr__value_force(s->thread, &s->row[slots[i]], NULL, &error));
    return HR_OK;
}

/* The values of the input that the record comes from become those of the merge. */
static enum hr_err merge(struct hr_survey *s, const struct hr_step *step)
{
    size_t fields = step->alias_count / step->merge->inputs.count;

    for (size_t i = 0; i < step->alias_count; i++) {
        const uint16_t *alias = &step->alias[2 * i];

        if (s->ids[step->merge->paths[i / fields]].index == HR_INDEX_NONE)
            continue;
        HR_TRY(make_slots(s, alias, 1));
        hr__value_alias(&s->row[alias[1]], &s->row[alias[0]]);
    }
    return HR_OK;
}

static struct hr_op_ctx
context(struct hr_survey *s, const struct hr_step *step, struct hr_error *error)
{
    return (struct hr_op_ctx){.params = step->params,
                              .state = step->state,
                              .node = step->node,
                              .draw_id = step->draw_id,
                              .when = step->when,
                              .when_count = s->thread->describes ? step->when_count : 0,
                              .thread = s->thread,
                              .error = error,
                              .id = &s->ids[step->path],
                              .fields = s->fields,
                              .field_count = step->field_count};
}

static enum hr_err
run_step(struct hr_survey *s, const struct hr_step *step, bool *ret_drop)
{
    struct hr_error error = {0};
    struct hr_op_ctx ctx = context(s, step, &error);

    *ret_drop = false;
    if (step->merge != NULL)
        return merge(s, step);
    for (size_t i = 0; i < step->alias_count; i++)
        hr__value_alias(&s->row[step->alias[2 * i + 1]], &s->row[step->alias[2 * i]]);
    for (size_t i = 0; i < step->field_count; i++)
        s->fields[i] = &s->row[step->fields[i]];
    HR_TRY(hr__step_fill(step, s->row, &ctx));
    HR_TRY(make_slots(s, step->before, step->before_count));
    if (step->op->cache.begin == NULL && /* it keeps nothing of the survey */
        !(s->skips && step->when_count > 0))
        HR_TRY(hr__op_apply(step->op, &ctx));
    if (!s->thread->describes)
        HR_TRY(make_slots(s, step->after, step->after_count));
    *ret_drop = ctx.drop;
    s->drawn = s->drawn || ((step->op->traits & HR_TRAIT_RANDOM) &&
                            (step->op->traits & HR_TRAIT_RESAMPLING));
    for (size_t i = 0; i < step->clear_count; i++)
        hr__value_clear(&s->row[step->clear[i]]);
    return HR_OK;
}

static uint64_t value_bytes(const struct hr_value *value)
{
    if (value->kind == HR_VALUE_DEFERRED)
        return (uint64_t)hr__value_count(value) * hr_dtype_size(value->dtype);
    return value->kind == HR_VALUE_NONE ? 0 : value->bytes;
}

static void begin_record(struct hr_survey *s, bool describes)
{
    for (uint32_t i = 0; i < s->plan->graph->count; i++)
        s->one[i].known = false;
    s->thread->describes = describes;
    for (; s != NULL; s = s->next)
        s->drawn = s->skips = false;
}

static void end_record(struct hr_survey *s)
{
    for (struct hr_survey *stage = s; stage != NULL; stage = stage->next)
        for (size_t i = 0; i < stage->program.slot_count; i++)
            hr__value_clear(&stage->row[i]);
    hr__arena_reset(&s->thread->arena);
}

/* Sets *ret_code to that of the first step that failed. Returns whether the record is
 * whole: neither that nor dropped. */
static bool run_steps(struct hr_survey *s, enum hr_err *ret_code)
{
    bool drop = false, all = !s->thread->describes;

    *ret_code = HR_OK;
    for (size_t i = 0; i < s->program.step_count; i++) {
        const struct hr_step *step = &s->program.steps[i];

        if (all && step->code != NULL)
            break;
        if ((!all && !s->cheap[i]) ||
            (step->branches && s->ids[step->path].index == HR_INDEX_NONE))
            continue;
        *ret_code = run_step(s, step, &drop);
        if (*ret_code != HR_OK || drop)
            return false;
        note(s, i);
    }
    return true;
}

bool hr__survey_look(struct hr_survey *s, struct hr_extent *most, uint64_t *ret_bytes)
{
    enum hr_err code;
    bool whole;

    begin_record(s, true);
    whole = run_steps(s, &code);
    if (whole || (code != HR_OK && !s->thread->describes))
        hr__extents_add(s->plan->graph, s->one, most);
    *ret_bytes = 0;
    for (size_t i = 0; i < s->program.slot_count; i++)
        *ret_bytes += value_bytes(&s->row[i]);
    end_record(s);
    return whole;
}

/* Children of a record to look at, evenly spaced. */
#define SURVEY_CHILDREN 256u

/* Notes the sizes of a child. */
static void note_child(const struct hr_value *child, size_t fields, struct hr_extent *e,
                       uint64_t *bytes)
{
    uint64_t texts = 0;

    for (size_t f = 0; f < fields; f++) {
        struct hr_field *field = &e->schema.fields[f];

        *bytes += value_bytes(&child[f]);
        if (field->kind != HR_FIELD_TENSOR)
            texts += child[f].bytes;
        for (int d = 0; field->kind == HR_FIELD_TENSOR && d < field->ndim; d++)
            if (child[f].dims[d] > field->dims[d].size)
                field->dims[d].size = child[f].dims[d];
    }
    e->bytes = texts > e->bytes ? texts : e->bytes;
}

/* Makes some children of the record. */
static enum hr_err expand(struct hr_survey *s, struct hr_value *children)
{
    const struct hr_program *p = &s->program;
    const struct hr_step *step = &p->expand;
    struct hr_extent *e = &s->one[step->node];
    struct hr_error error = {0};
    struct hr_op_ctx ctx = context(s, step, &error);
    struct hr_value *parents = children + p->child_count;
    uint64_t count, seen, bytes = 0;

    for (size_t f = 0; f < p->out_count; f++) {
        HR_TRY(make_slots(s, &p->out[f].slot, 1));
        parents[f] = s->row[p->out[f].slot]; /* which still owns it */
    }
    for (size_t i = 0; i < step->field_count; i++)
        s->fields[i] = &s->row[step->fields[i]];
    HR_TRY(step->op->expand.count(&ctx, &count));
    hr__extents_infer(s->plan->graph, step->node, s->one);
    seen = count < SURVEY_CHILDREN ? count : SURVEY_CHILDREN;
    if (seen > 0) {
        e->bytes = 0;
        e->measured = true;
    }
    for (uint64_t i = 0; i < seen; i++) {
        memset(children, 0, p->child_count * sizeof *children);
        HR_TRY(step->op->expand.child(&ctx, hr__spread(count, i, seen), parents, children,
                                      p->child_count));
        note_child(children, p->child_count, e, &bytes);
        for (size_t f = 0; f < p->child_count; f++)
            hr__value_clear(&children[f]);
    }
    if (seen > 0)
        e->children = bytes / seen * count + count * hr__values_bytes(p->child_count);
    return HR_OK;
}

/* Whether an expansion follows the steps, all without user code. */
static bool expands(const struct hr_survey *s)
{
    const struct hr_program *p = &s->program;

    return p->expand.op != NULL && p->expand.code == NULL && runs_without_code(p);
}

static enum hr_err try_expand(struct hr_survey *s)
{
    const struct hr_program *p = &s->program;
    struct hr_value *values =
        hr__calloc(p->child_count + p->out_count + 1, sizeof *values);
    enum hr_err code = values != NULL ? expand(s, values) : HR_ERR_MEMORY;

    for (size_t f = 0; values != NULL && f < p->child_count; f++)
        hr__value_clear(&values[f]);
    hr__free(values);
    return code;
}

/* The record goes on to the next stage. */
static void hand_on(struct hr_survey *s)
{
    struct hr_survey *next = s->next;

    assert(next->program.in_count == s->program.out_count);
    next->ids[0] = s->ids[0];
    hr__views_set(&next->program, next->ids);
    next->drawn = s->drawn;
    next->skips = s->skips;
    for (size_t f = 0; f < s->program.out_count; f++) {
        struct hr_value *from = &s->row[s->program.out[f].slot];

        next->row[next->program.in_slots[f]] = *from;
        memset(from, 0, sizeof *from);
    }
}

/* Whether a draw decides which records run some step. */
static bool may_skip(const struct hr_survey *s)
{
    for (; s != NULL; s = s->next)
        for (size_t i = 0; i < s->program.step_count; i++)
            if (s->program.steps[i].when_count > 0)
                return true;
    return false;
}

/* With `skips` without the steps that only some records run, else with all. */
static void run_once(struct hr_survey *s, bool skips, struct hr_extent *most)
{
    struct hr_survey *stage = s;
    enum hr_err code = HR_OK;
    bool whole;

    begin_record(s, false);
    s->skips = skips;
    whole = run_steps(s, &code);
    while (whole && stage->next != NULL) {
        hand_on(stage);
        stage = stage->next;
        whole = run_steps(stage, &code);
    }
    if (whole && expands(stage))
        whole = try_expand(stage) == HR_OK;
    if (whole)
        hr__extents_add(s->plan->graph, s->one, most);
    end_record(s);
}

void hr__survey_run(struct hr_survey *s, struct hr_extent *most)
{
    run_once(s, false, most);
    if (may_skip(s))
        run_once(s, true, most);
}
