/*
 * engine/survey.c - looks at records before a run with a budget: how large do they get?
 *
 * Steps run on a record until one would make pixels. The header of a photo says how large
 * it is and what a decode of it takes, so nothing is decoded.
 */
#include "engine/engine.h"

#include <assert.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/error.h"
#include "op/thread.h"
#include "opt/extent.h"
#include "store/reader.h"

/* Records of an epoch to survey, evenly spaced; fewer of an epoch leave some for the next
 * one, if that may have other records. */
#define SURVEY_RECORDS 512u
/* In a longer epoch, the store is asked for the sizes of this many evenly spaced records,
 * and the largest of them are surveyed as well. */
#define SURVEY_SIZES 4096u
#define SURVEY_LARGEST 128u

struct sized {
    uint64_t position, bytes;
};

struct survey {
    const struct hr_plan *plan;
    struct hr_program program;
    size_t step_count; /* steps that make no pixels */
    struct hr_thread thread;
    struct hr_record_id *ids; /* per path */
    struct hr_value *row;
    struct hr_value **fields; /* of one step */
    struct hr_extent *one;
    bool drawn; /* a part of the record's image was drawn at random */
};

static bool is_cheap(const struct hr_step *step)
{
    return step->code == NULL && step->before_count == 0 &&
           (step->op->kind == HR_OP_SOURCE || (step->op->traits & HR_TRAIT_DEFERS));
}

static size_t cheap_steps(const struct hr_program *p)
{
    size_t count = 0;

    while (count < p->step_count && is_cheap(&p->steps[count]))
        count++;
    return count;
}

static enum hr_err survey_init(struct survey *s, struct hr_error *reterr)
{
    const struct hr_program *p = &s->program;
    struct hr_reader_options options = {.mode = HR_READER_NONE};

    hr__arena_init(&s->thread.arena);
    HR_TRY(hr__program_init(&s->program, s->plan, 0, reterr));
    s->step_count = cheap_steps(p);
    s->ids = hr__calloc(p->id_count, sizeof *s->ids);
    s->row = hr__calloc(p->slot_count + 1, sizeof *s->row);
    s->fields = hr__calloc(HR_BINDINGS_MAX + 1, sizeof *s->fields);
    s->one = hr__extents_create(s->plan->graph);
    s->thread.pool = hr_pool_create(0);
    if (s->ids == NULL || s->row == NULL || s->fields == NULL || s->one == NULL ||
        s->thread.pool == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__pool_keep(s->thread.pool, 1); /* no buffer for the next record */
    options.pool = s->thread.pool;
    return hr__reader_create(&options, &s->thread.reader, reterr);
}

static void survey_finish(struct survey *s)
{
    hr__thread_objects_destroy(&s->thread);
    hr__reader_destroy(s->thread.reader);
    hr_pool_unref(s->thread.pool);
    hr__arena_finish(&s->thread.arena);
    hr__free(s->ids);
    hr__free(s->row);
    hr__free(s->fields);
    hr__free(s->one);
    hr__program_finish(&s->program);
}

/* Notes the sizes of the record after the step. */
static void note(struct survey *s, const struct hr_step *step)
{
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
    e->bytes = e->force = 0;
    for (size_t i = 0; i < s->program.slot_count; i++) {
        const struct hr_value *value = &s->row[i];

        if (value->kind == HR_VALUE_BYTES || value->kind == HR_VALUE_RAGGED)
            e->bytes += value->bytes;
        if (value->kind == HR_VALUE_DEFERRED)
            e->force += value->u.lazy->class->scratch(value->u.lazy, s->drawn);
    }
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
                            .thread = &s->thread,
                            .error = &error,
                            .id = &s->ids[step->path],
                            .fields = s->fields,
                            .field_count = step->field_count};

    for (size_t i = 0; i < step->alias_count; i++)
        hr__value_alias(&s->row[step->alias[2 * i + 1]], &s->row[step->alias[2 * i]]);
    for (size_t i = 0; i < step->field_count; i++)
        s->fields[i] = &s->row[step->fields[i]];
    HR_TRY(hr__step_fill(step, s->row, &ctx));
    HR_TRY(hr__op_apply(step->op, &ctx));
    *ret_drop = ctx.drop;
    s->drawn = s->drawn || ((step->op->traits & HR_TRAIT_RANDOM) &&
                            (step->op->traits & HR_TRAIT_RESAMPLING));
    for (size_t i = 0; i < step->clear_count; i++)
        hr__value_clear(&s->row[step->clear[i]]);
    return HR_OK;
}

/* Bad records are for the run to report. What follows a step that would make pixels is
 * inferred. */
static void look_at(struct survey *s, struct hr_extent *most)
{
    const struct hr_graph *graph = s->plan->graph;
    enum hr_err code = HR_OK;
    bool drop = false;

    for (uint32_t i = 0; i < graph->count; i++)
        s->one[i].known = false;
    assert(s->step_count <= s->program.step_count);
    s->drawn = false;
    s->thread.describes = true;
    for (size_t i = 0; code == HR_OK && !drop && i < s->step_count; i++) {
        const struct hr_step *step = &s->program.steps[i];

        if (step->branches && s->ids[step->path].index == HR_INDEX_NONE)
            continue;
        code = run_step(s, step, &drop);
        if (code == HR_OK)
            note(s, &s->program.steps[i]);
    }
    if ((code == HR_OK || !s->thread.describes) && !drop)
        hr__extents_add(graph, s->one, most);
    for (size_t i = 0; i < s->program.slot_count; i++)
        hr__value_clear(&s->row[i]);
    hr__arena_reset(&s->thread.arena);
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

/* The first part of what the source reads for the record, in bytes; 0: unknown. */
static uint64_t stored_bytes(const struct survey *s)
{
    const struct hr_graph_node *n = &s->plan->graph->nodes[s->program.paths[0].source];
    struct hr_range range; /* 4 kB, not cleared */
    struct hr_object object;
    size_t bytes;

    if (!n->op->source.ahead(n->params, n->state, s->ids[0].index, 0, &range))
        return 0;
    if (range.bytes != HR_RANGE_REST)
        return range.bytes;
    if (hr__range_open(&range, &object, &bytes, NULL) != HR_OK)
        return 0;
    hr__store_close(&object);
    return bytes;
}

static void keep_largest(struct sized *kept, struct sized one)
{
    size_t least = 0;

    for (size_t i = 1; i < SURVEY_LARGEST; i++)
        least = kept[i].bytes < kept[least].bytes ? i : least;
    if (one.bytes > kept[least].bytes)
        kept[least] = one;
}

/* In an epoch of n records. */
static void look_at_largest(struct survey *s, uint64_t seed, uint32_t epoch, uint64_t n,
                            struct hr_extent *most)
{
    const struct hr_program *p = &s->program;
    uint64_t count = n < SURVEY_SIZES ? n : SURVEY_SIZES;
    struct sized kept[SURVEY_LARGEST] = {0};

    if (s->plan->graph->nodes[p->paths[0].source].op->source.ahead == NULL)
        return;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t position = spread(n, i, count);

        set_ids(s, seed, epoch, position);
        keep_largest(kept, (struct sized){position, stored_bytes(s)});
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

    if (s->step_count == 0 || n >= HR_COUNT_UNKNOWN || n == 0)
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

enum hr_err
hr__engine_survey(const struct hr_plan *plan, const struct hr_iter_options *options,
                  struct hr_extent *most, struct hr_error *reterr)
{
    struct survey s = {.plan = plan};
    enum hr_err code = survey_init(&s, reterr);

    if (code == HR_OK)
        look_at_all(&s, options, most);
    survey_finish(&s);
    if (code == HR_OK && hr__extents_close(plan->graph, most) != HR_OK)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return code;
}
