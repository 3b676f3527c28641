/*
 * engine/survey.c - looks at records before a run with a budget: how large do they get?
 *
 * Of many records only the description is made; the largest of these are then run.
 */
#include "engine/survey.h"

#include <assert.h>
#include <stdlib.h>

#include "core/error.h"
#include "op/thread.h"

/* Records of an epoch to survey, evenly spaced; fewer of an epoch leave some for the next
 * one, if that may have other records. */
#define SURVEY_RECORDS 512u
/* In a longer epoch, the largest of this many evenly spaced records are surveyed as well,
 * by what their sources know of their sizes. Where the store has to be asked for that of
 * a file, fewer are. */
#define SURVEY_SIZED ((uint64_t)1 << 18)
#define SURVEY_OPENED 4096u
#define SURVEY_LARGEST 128u
/* The largest records are run, as long as those before them are no larger in all. */
#define SURVEY_RUN 8u
#define SURVEY_RUN_BYTES ((uint64_t)64 << 20)

struct sized {
    uint64_t position, bytes;
    uint32_t epoch;
};

struct looks {
    struct hr_survey survey;
    /* Of the records, by what cheap steps make of them. */
    struct sized largest[SURVEY_RUN];
};

static void keep_largest(struct sized *kept, size_t count, struct sized one)
{
    size_t least = 0;

    for (size_t i = 1; i < count; i++)
        least = kept[i].bytes < kept[least].bytes ? i : least;
    if (one.bytes > kept[least].bytes)
        kept[least] = one;
}

static void look_at(struct looks *l, struct hr_extent *most)
{
    const struct hr_record_id *id = &l->survey.ids[0];
    struct sized one = {.position = id->position, .epoch = id->epoch};

    if (!hr__survey_look(&l->survey, most, &one.bytes))
        return;
    one.bytes++; /* 0 is no record */
    keep_largest(l->largest, SURVEY_RUN, one);
}

static void set_ids(struct hr_survey *s, uint64_t seed, uint32_t epoch, uint64_t position)
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

/* Whether the path leads to a source that says how large the records are, or where. */
static bool has_sizes(const struct hr_survey *s, const struct hr_path *path)
{
    const struct hr_op_source *source = &s->plan->graph->nodes[path->source].op->source;

    return path->merge == NULL && path->join == NULL &&
           (source->size != NULL || source->ahead != NULL);
}

/* What a source reads for the record, or the first part of it, in bytes; 0: unknown. With
 * `open` objects are opened for it. */
static uint64_t record_bytes(const struct hr_survey *s, size_t path, bool open)
{
    const struct hr_graph_node *n = &s->plan->graph->nodes[s->program.paths[path].source];
    uint64_t index = s->ids[path].index;
    struct hr_range range; /* 4 kB, not cleared */
    struct hr_object object;
    size_t bytes;

    if (index == HR_INDEX_NONE)
        return 0;
    if (n->op->source.size != NULL)
        return n->op->source.size(n->params, n->state, index);
    if (!n->op->source.ahead(n->params, n->state, index, 0, &range))
        return 0;
    if (range.bytes != HR_RANGE_REST)
        return range.bytes;
    if (!open || hr__range_open(&range, &object, &bytes, NULL) != HR_OK)
        return 0;
    hr__store_close(&object);
    return bytes;
}

static uint64_t stored_bytes(const struct hr_survey *s, bool open)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->program.path_count; i++)
        if (has_sizes(s, &s->program.paths[i]))
            bytes += record_bytes(s, i, open);
    return bytes;
}

/* What is compressed is unpacked once if it is read in the order of a file. */
static int in_order(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;

    return (x->position > y->position) - (x->position < y->position);
}

/* In an epoch of n records. */
static void look_at_largest(struct looks *l, uint64_t seed, uint32_t epoch, uint64_t n,
                            struct hr_extent *most)
{
    struct hr_survey *s = &l->survey;
    const struct hr_program *p = &s->program;
    uint64_t count = n < SURVEY_SIZED ? n : SURVEY_SIZED, opened = 0;
    struct sized kept[SURVEY_LARGEST] = {0};
    bool any = false;

    for (size_t i = 0; i < p->path_count; i++)
        any = any || has_sizes(s, &p->paths[i]);
    for (uint64_t i = 0; any && i < count; i++) {
        uint64_t position = hr__spread(n, i, count);
        bool open = i * SURVEY_OPENED / count >= opened;

        opened += open;
        set_ids(s, seed, epoch, position);
        keep_largest(kept, SURVEY_LARGEST,
                     (struct sized){position, stored_bytes(s, open), epoch});
    }
    qsort(kept, SURVEY_LARGEST, sizeof *kept, in_order);
    for (size_t i = 0; i < SURVEY_LARGEST; i++) {
        if (kept[i].bytes == 0)
            continue;
        set_ids(s, seed, epoch, kept[i].position);
        look_at(l, most);
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

static void look_at_all(struct looks *l, const struct hr_iter_options *options,
                        struct hr_extent *most)
{
    struct hr_survey *s = &l->survey;
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
            set_ids(s, options->seed, (uint32_t)(epoch + e), hr__spread(n, i, count));
            look_at(l, most);
        }
        if (n > count)
            look_at_largest(l, options->seed, (uint32_t)(epoch + e), n, most);
        left -= count;
    }
}

static int larger_first(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;

    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void run_largest(struct looks *l, const struct hr_iter_options *options,
                        struct hr_extent *most)
{
    struct hr_survey *s = &l->survey;
    uint64_t bytes = 0;

    qsort(l->largest, SURVEY_RUN, sizeof *l->largest, larger_first);
    for (size_t i = 0; s->runs && i < SURVEY_RUN && l->largest[i].bytes > 0; i++) {
        const struct sized *one = &l->largest[i];

        if (bytes > SURVEY_RUN_BYTES)
            return;
        bytes += one->bytes;
        set_ids(s, options->seed, one->epoch, one->position);
        hr__survey_run(s, most);
    }
}

enum hr_err
hr__engine_survey(const struct hr_plan *plan, const struct hr_iter_options *options,
                  struct hr_extent *most, struct hr_error *reterr)
{
    struct looks looks = {0};
    struct hr_thread thread = {0};
    enum hr_err code = hr__survey_begin(&looks.survey, plan, &thread, reterr);

    if (code == HR_OK)
        look_at_all(&looks, options, most);
    if (code == HR_OK)
        run_largest(&looks, options, most);
    hr__survey_end(&looks.survey);
    if (code == HR_OK && hr__extents_close(plan->graph, most) != HR_OK)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return code;
}
