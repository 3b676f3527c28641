/*
 * engine/survey.c - looks at records before a run with a budget: how large do they get?
 *
 * Steps run on many records until one would make pixels or samples or call a tokenizer:
 * the header of a photo says how large it is and what a decode of it takes, so nothing is
 * decoded. The largest of these records are then run up to the first user code, because
 * what a sound or a text becomes, and what work on it takes, follows from no schema.
 */
#include "engine/engine.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/error.h"
#include "op/thread.h"
#include "opt/extent.h"
#include "opt/memory.h"
#include "store/reader.h"

/* Records of an epoch to survey, evenly spaced; fewer of an epoch leave some for the next
 * one, if that may have other records. */
#define SURVEY_RECORDS 512u
/* In a longer epoch, the largest of this many evenly spaced records are surveyed as well,
 * by what their sources read for them. Where that is a whole file, the store is asked for
 * the sizes of fewer. */
#define SURVEY_RANGES ((uint64_t)1 << 18)
#define SURVEY_SIZES 4096u
#define SURVEY_LARGEST 128u
/* The largest records are run, as long as those before them are no larger in all. */
#define SURVEY_RUN 8u
#define SURVEY_RUN_BYTES ((uint64_t)64 << 20)

struct sized {
    uint64_t position, bytes;
    uint32_t epoch;
};

struct survey {
    const struct hr_plan *plan;
    struct hr_program program;
    bool *cheap;   /* by step: it makes no pixels, and neither do those that it needs */
    bool *missing; /* by slot: no cheap step makes it */
    bool runs;     /* not all steps are cheap */
    size_t *used; /* by slot: 1 + the last step that needs it; SIZE_MAX: it is a result */
    struct sized largest[SURVEY_RUN]; /* records, by what cheap steps make of them */
    struct hr_thread *thread;         /* shared with `next`, like `one` */
    struct hr_record_id *ids;         /* per path */
    struct hr_value *row;
    struct hr_value **fields; /* of one step */
    struct hr_extent *one;
    struct survey
        *next;  /* of the stage after it, which records reach as they are; or NULL */
    bool drawn; /* a part of the record's image was drawn at random */
};

static bool is_cheap(const struct hr_step *step)
{
    return step->code == NULL && step->before_count == 0 &&
           (step->op->kind == HR_OP_SOURCE || (step->op->traits & HR_TRAIT_DEFERS));
}

static bool misses(const struct survey *s, const uint16_t *slots, size_t count, size_t by)
{
    for (size_t i = 0; i < count; i += by)
        if (s->missing[slots[i]])
            return true;
    return false;
}

/* Finds the steps that are cheap and need nothing that others make. Returns whether all
 * are. */
static bool find_cheap(struct survey *s)
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

static void find_used(struct survey *s)
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

/* Whether the records that leave a stage are those after its steps, all of which the
 * library can run by itself. */
static bool passes_on(const struct survey *s)
{
    const struct hr_program *p = &s->program;
    const struct hr_graph_node *nodes = s->plan->graph->nodes;

    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i].code != NULL)
            return false;
    for (size_t i = 0; i < p->plan->sequence_count; i++)
        if (nodes[p->plan->sequence[i]].op->kind != HR_OP_ORDER)
            return false;
    return p->expand.op == NULL;
}

static enum hr_err survey_init(struct survey *s, size_t stage, struct hr_error *reterr)
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

static void survey_finish(struct survey *s)
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

static enum hr_err
begin(struct survey *s, struct hr_thread *thread, struct hr_error *reterr)
{
    struct hr_reader_options options = {.mode = HR_READER_NONE};

    hr__arena_init(&thread->arena);
    s->thread = thread;
    s->one = hr__extents_create(s->plan->graph);
    thread->pool = hr_pool_create(0);
    if (s->one == NULL || thread->pool == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__pool_keep(thread->pool, 1); /* no buffer for the next record */
    options.pool = thread->pool;
    HR_TRY(hr__reader_create(&options, &thread->reader, reterr));
    return survey_init(s, 0, reterr);
}

static void end(struct survey *s)
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
static void note(struct survey *s, size_t at)
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

static enum hr_err make_slots(struct survey *s, const uint16_t *slots, size_t count)
{
    struct hr_error error = {0};

    for (size_t i = 0; i < count; i++)
        HR_TRY(hr__value_force(s->thread, &s->row[slots[i]], NULL, &error));
    return HR_OK;
}

/* The values of the input that the record comes from become those of the merge. */
static enum hr_err merge(struct survey *s, const struct hr_step *step)
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

static enum hr_err run_step(struct survey *s, const struct hr_step *step, bool *ret_drop)
{
    struct hr_error error = {0};
    struct hr_op_ctx ctx = {.params = step->params,
                            .state = step->state,
                            .node = step->node,
                            .draw_id = step->draw_id,
                            .when = step->when,
                            .when_count = step->when_count,
                            .thread = s->thread,
                            .error = &error,
                            .id = &s->ids[step->path],
                            .fields = s->fields,
                            .field_count = step->field_count};

    *ret_drop = false;
    if (step->merge != NULL)
        return merge(s, step);
    for (size_t i = 0; i < step->alias_count; i++)
        hr__value_alias(&s->row[step->alias[2 * i + 1]], &s->row[step->alias[2 * i]]);
    for (size_t i = 0; i < step->field_count; i++)
        s->fields[i] = &s->row[step->fields[i]];
    HR_TRY(hr__step_fill(step, s->row, &ctx));
    HR_TRY(make_slots(s, step->before, step->before_count));
    if (step->op->cache.begin == NULL) /* it keeps nothing of the survey */
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

static void keep_largest(struct sized *kept, size_t count, struct sized one)
{
    size_t least = 0;

    for (size_t i = 1; i < count; i++)
        least = kept[i].bytes < kept[least].bytes ? i : least;
    if (one.bytes > kept[least].bytes)
        kept[least] = one;
}

static void begin_record(struct survey *s, bool describes)
{
    for (uint32_t i = 0; i < s->plan->graph->count; i++)
        s->one[i].known = false;
    s->thread->describes = describes;
    s->drawn = false;
}

static void end_record(struct survey *s)
{
    for (struct survey *stage = s; stage != NULL; stage = stage->next)
        for (size_t i = 0; i < stage->program.slot_count; i++)
            hr__value_clear(&stage->row[i]);
    hr__arena_reset(&s->thread->arena);
}

/* Sets *ret_code to that of the first step that failed. Returns whether the record is
 * whole: neither that nor dropped. */
static bool run_steps(struct survey *s, enum hr_err *ret_code)
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

/* Bad records are for the run to report. What follows a step that would make pixels is
 * inferred. */
static void look_at(struct survey *s, struct hr_extent *most)
{
    struct sized one = {s->ids[0].position, 1, s->ids[0].epoch};
    enum hr_err code;
    bool whole;

    begin_record(s, true);
    whole = run_steps(s, &code);
    if (whole || (code != HR_OK && !s->thread->describes))
        hr__extents_add(s->plan->graph, s->one, most);
    for (size_t i = 0; i < s->program.slot_count; i++)
        one.bytes += value_bytes(&s->row[i]);
    if (whole)
        keep_largest(s->largest, SURVEY_RUN, one);
    end_record(s);
}

static void set_ids(struct survey *s, uint64_t seed, uint32_t epoch, uint64_t position)
{
    for (size_t k = 0; k < s->program.path_count; k++) {
        struct hr_record_id *id = &s->ids[k];

        *id = (struct hr_record_id){.seed = seed, .position = position};
        id->epoch = id->draw_epoch = epoch;
        if (s->program.paths[k].parent == HR_NO_PATH)
            hr__path_map(&s->program.paths[k], position, NULL, id);
    }
    if (s->program.merges)
        hr__paths_branch(&s->program, NULL, s->ids);
    hr__views_set(&s->program, s->ids);
}

/* Position `i` of `count` evenly spread ones in an epoch of n. */
static uint64_t spread(uint64_t n, uint64_t i, uint64_t count)
{
    assert(i < count && count <= n);
    return n / count * i + n % count * i / count;
}

/* Whether the path leads to a source that says where the records are. */
static bool has_ranges(const struct survey *s, const struct hr_path *path)
{
    return path->merge == NULL && path->join == NULL &&
           s->plan->graph->nodes[path->source].op->source.ahead != NULL;
}

/* The first part of what a source reads for the record, in bytes; 0: unknown. With `open`
 * objects are opened for it. */
static uint64_t range_bytes(const struct survey *s, size_t path, bool open)
{
    const struct hr_graph_node *n = &s->plan->graph->nodes[s->program.paths[path].source];
    struct hr_range range; /* 4 kB, not cleared */
    struct hr_object object;
    size_t bytes;

    if (s->ids[path].index == HR_INDEX_NONE ||
        !n->op->source.ahead(n->params, n->state, s->ids[path].index, 0, &range))
        return 0;
    if (range.bytes != HR_RANGE_REST)
        return range.bytes;
    if (!open || hr__range_open(&range, &object, &bytes, NULL) != HR_OK)
        return 0;
    hr__store_close(&object);
    return bytes;
}

static uint64_t stored_bytes(const struct survey *s, bool open)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->program.path_count; i++)
        if (has_ranges(s, &s->program.paths[i]))
            bytes += range_bytes(s, i, open);
    return bytes;
}

/* In an epoch of n records. */
static void look_at_largest(struct survey *s, uint64_t seed, uint32_t epoch, uint64_t n,
                            struct hr_extent *most)
{
    const struct hr_program *p = &s->program;
    uint64_t count = n < SURVEY_RANGES ? n : SURVEY_RANGES, opened = 0;
    struct sized kept[SURVEY_LARGEST] = {0};
    bool any = false;

    for (size_t i = 0; i < p->path_count; i++)
        any = any || has_ranges(s, &p->paths[i]);
    for (uint64_t i = 0; any && i < count; i++) {
        uint64_t position = spread(n, i, count);
        bool open = i * SURVEY_SIZES / count >= opened;

        opened += open;
        set_ids(s, seed, epoch, position);
        keep_largest(kept, SURVEY_LARGEST,
                     (struct sized){position, stored_bytes(s, open), epoch});
    }
    for (size_t i = 0; i < SURVEY_LARGEST && kept[i].bytes > 0; i++) {
        set_ids(s, seed, epoch, kept[i].position);
        look_at(s, most);
    }
}

/* Whether the path leads to some of the records, and to which is drawn. */
static bool chooses(const struct hr_path *path)
{
    bool drawn = path->merge != NULL && (path->merge->op->traits & HR_TRAIT_RANDOM);
    bool some = drawn || hr__path_global_count(path) < path->span;

    for (size_t i = 0; i < path->count; i++) {
        const struct hr_op *op = path->orders[i].op;
        bool random = (op->traits & HR_TRAIT_RANDOM) != 0;

        drawn = drawn || random;
        some = some || (random && op->order.by != NULL);
    }
    return drawn && some;
}

/* Whether a later epoch may have records that the first one has not. */
static bool epochs_differ(const struct hr_program *p)
{
    bool differ = false;

    for (size_t i = 0; i < p->path_count; i++)
        differ = differ || chooses(&p->paths[i]);
    return differ;
}

static void look_at_all(struct survey *s, const struct hr_iter_options *options,
                        struct hr_extent *most)
{
    uint64_t n = hr__path_global_count(&s->program.paths[0]);
    uint64_t epochs = epochs_differ(&s->program) ? (uint64_t)options->epochs : 1;
    uint64_t epoch = (uint64_t)options->epoch_first, left = SURVEY_RECORDS;

    if (s->program.step_count == 0 || n >= HR_COUNT_UNKNOWN || n == 0)
        return;
    if (epochs == 0) /* endless */
        epochs = SURVEY_RECORDS;
    for (uint64_t e = 0; e < epochs && left > 0; e++) {
        uint64_t count = n < left ? n : left;

        for (uint64_t i = 0; i < count; i++) {
            set_ids(s, options->seed, (uint32_t)(epoch + e), spread(n, i, count));
            look_at(s, most);
        }
        if (n > count)
            look_at_largest(s, options->seed, (uint32_t)(epoch + e), n, most);
        left -= count;
    }
}

/* Children of a record to look at, evenly spaced. */
#define SURVEY_CHILDREN 256u

/* Notes the sizes of one child of `count`. */
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
static enum hr_err expand(struct survey *s, struct hr_value *children)
{
    const struct hr_program *p = &s->program;
    const struct hr_step *step = &p->expand;
    struct hr_extent *e = &s->one[step->node];
    struct hr_error error = {0};
    struct hr_op_ctx ctx = {.params = step->params,
                            .state = step->state,
                            .node = step->node,
                            .draw_id = step->draw_id,
                            .thread = s->thread,
                            .error = &error,
                            .id = &s->ids[step->path],
                            .fields = s->fields,
                            .field_count = step->field_count};
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
        HR_TRY(step->op->expand.child(&ctx, spread(count, i, seen), parents, children,
                                      p->child_count));
        note_child(children, p->child_count, e, &bytes);
        for (size_t f = 0; f < p->child_count; f++)
            hr__value_clear(&children[f]);
    }
    if (seen > 0)
        e->children = bytes / seen * count + count * hr__values_bytes(p->child_count);
    return HR_OK;
}

/* Whether the library runs all steps of the stage, and an expansion follows. */
static bool expands(const struct survey *s)
{
    const struct hr_program *p = &s->program;

    for (size_t i = 0; i < p->step_count; i++)
        if (p->steps[i].code != NULL)
            return false;
    return p->expand.op != NULL && p->expand.code == NULL;
}

static enum hr_err try_expand(struct survey *s)
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
static void hand_on(struct survey *s)
{
    struct survey *next = s->next;

    assert(next->program.in_count == s->program.out_count);
    next->ids[0] = s->ids[0];
    hr__views_set(&next->program, next->ids);
    next->drawn = s->drawn;
    for (size_t f = 0; f < s->program.out_count; f++) {
        struct hr_value *from = &s->row[s->program.out[f].slot];

        next->row[next->program.in_slots[f]] = *from;
        memset(from, 0, sizeof *from);
    }
}

/* Runs a record as far as the library does by itself. */
static void run_record(struct survey *s, struct hr_extent *most)
{
    struct survey *stage = s;
    enum hr_err code = HR_OK;
    bool whole;

    begin_record(s, false);
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

static int larger_first(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;

    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void run_largest(struct survey *s, const struct hr_iter_options *options,
                        struct hr_extent *most)
{
    uint64_t bytes = 0;

    qsort(s->largest, SURVEY_RUN, sizeof *s->largest, larger_first);
    for (size_t i = 0; s->runs && i < SURVEY_RUN && s->largest[i].bytes > 0; i++) {
        const struct sized *one = &s->largest[i];

        if (bytes > SURVEY_RUN_BYTES)
            return;
        bytes += one->bytes;
        set_ids(s, options->seed, one->epoch, one->position);
        run_record(s, most);
    }
}

enum hr_err
hr__engine_survey(const struct hr_plan *plan, const struct hr_iter_options *options,
                  struct hr_extent *most, struct hr_error *reterr)
{
    struct survey s = {.plan = plan};
    struct hr_thread thread = {0};
    enum hr_err code = begin(&s, &thread, reterr);

    if (code == HR_OK)
        look_at_all(&s, options, most);
    if (code == HR_OK)
        run_largest(&s, options, most);
    end(&s);
    if (code == HR_OK && hr__extents_close(plan->graph, most) != HR_OK)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return code;
}
