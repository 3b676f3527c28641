/*
 * engine/survey.c - looks at records before a run with a budget: how large do they get?
 *
 * Steps run on a record until one would make pixels. The header of a photo says how large
 * it is, so nothing is decoded.
 */
#include "engine/engine.h"

#include "core/alloc.h"
#include "core/error.h"
#include "op/thread.h"
#include "opt/extent.h"
#include "store/reader.h"

/* Records of an epoch that are looked at, evenly spread. */
#define SURVEY_RECORDS 512u

struct survey {
    const struct hr_plan *plan;
    struct hr_program program;
    size_t step_count; /* steps that make no pixels */
    struct hr_thread thread;
    struct hr_record_id *ids; /* per path */
    struct hr_value *row;
    struct hr_value **fields; /* of one step */
    struct hr_extent *one;
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
    s->ids = hr__calloc(p->path_count + 1, sizeof *s->ids);
    s->row = hr__calloc(p->slot_count + 1, sizeof *s->row);
    s->fields = hr__calloc(HR_BINDINGS_MAX + 1, sizeof *s->fields);
    s->one = hr__extents_create(s->plan->graph);
    s->thread.pool = hr_pool_create(0);
    if (s->ids == NULL || s->row == NULL || s->fields == NULL || s->one == NULL ||
        s->thread.pool == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
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
    e->bytes = 0;
    for (size_t i = 0; i < s->program.slot_count; i++)
        if (s->row[i].kind == HR_VALUE_BYTES || s->row[i].kind == HR_VALUE_RAGGED)
            e->bytes += s->row[i].bytes;
}

static enum hr_err run_step(struct survey *s, const struct hr_step *step, bool *ret_drop)
{
    struct hr_error error = {0};
    struct hr_op_ctx ctx = {.params = step->params,
                            .state = step->state,
                            .node = step->node,
                            .draw_id = step->draw_id,
                            .thread = &s->thread,
                            .error = &error,
                            .id = &s->ids[step->path],
                            .fields = s->fields,
                            .field_count = step->field_count};

    for (size_t i = 0; i < step->alias_count; i++)
        hr__value_alias(&s->row[step->alias[2 * i + 1]], &s->row[step->alias[2 * i]]);
    for (size_t i = 0; i < step->field_count; i++)
        s->fields[i] = &s->row[step->fields[i]];
    HR_TRY(step->op->apply(&ctx));
    *ret_drop = ctx.drop;
    for (size_t i = 0; i < step->clear_count; i++)
        hr__value_clear(&s->row[step->clear[i]]);
    return HR_OK;
}

/* Bad records are for the run to report. */
static void look_at(struct survey *s, struct hr_extent *most)
{
    const struct hr_graph *graph = s->plan->graph;
    enum hr_err code = HR_OK;
    bool drop = false;

    for (uint32_t i = 0; i < graph->count; i++)
        s->one[i].known = false;
    for (size_t i = 0; code == HR_OK && !drop && i < s->step_count; i++) {
        code = run_step(s, &s->program.steps[i], &drop);
        if (code == HR_OK)
            note(s, &s->program.steps[i]);
    }
    if (code == HR_OK && !drop)
        hr__extents_add(graph, s->one, most);
    for (size_t i = 0; i < s->program.slot_count; i++)
        hr__value_clear(&s->row[i]);
    hr__arena_reset(&s->thread.arena);
}

static void look_at_all(struct survey *s, const struct hr_iter_options *options,
                        struct hr_extent *most)
{
    const struct hr_program *p = &s->program;
    uint64_t n = hr__path_global_count(&p->paths[0]);
    uint64_t count = n < SURVEY_RECORDS ? n : SURVEY_RECORDS;

    for (uint64_t i = 0; s->step_count > 0 && n < HR_COUNT_UNKNOWN && i < count; i++) {
        uint64_t position = n / count * i + n % count * i / count;

        for (size_t k = 0; k < p->path_count; k++) {
            struct hr_record_id *id = &s->ids[k];

            *id = (struct hr_record_id){.seed = options->seed, .position = position};
            id->epoch = id->draw_epoch = (uint32_t)options->epoch_first;
            hr__path_map(&p->paths[k], position, NULL, id);
        }
        look_at(s, most);
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
