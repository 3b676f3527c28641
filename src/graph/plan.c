/*
 * graph/plan.c - the members of a plan, and when two plans are equal.
 */
#include "graph/plan.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/plan_items.h"

#define BYTES_MAX ((int64_t)HR_PLAN_BYTES_MAX)
#define RECORDS_MAX ((int64_t)1 << 24)
#define NS_MAX ((int64_t)1000 * 1000 * 1000 * 1000)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *const hr__plan_variants[HR_PLAN_VARIANTS] = {"threads", "inline", "processes",
                                                         "remote"};

/* clang-format off */
#define AT(member) offsetof(struct hr_plan, member)
static const struct hr_plan_item top[] = {
    {"threads",        HR_PLAN_INT,    AT(threads), 0, 4096, NULL},
    {"threads_reason", HR_PLAN_REASON, AT(threads_reason), 0, 0, NULL},
    {"ordered",        HR_PLAN_BOOL,   AT(ordered), 0, 1, NULL},
    {"help_ns",        HR_PLAN_U64,    AT(help_ns), 0, NS_MAX, NULL},
    {"wake_ns",        HR_PLAN_U64,    AT(wake_ns), 0, NS_MAX, NULL},
};
#undef AT

#define AT(member) offsetof(struct hr_plan_memory, member)
static const struct hr_plan_item memory[] = {
    {"budget",           HR_PLAN_U64,    AT(budget), 0, BYTES_MAX, NULL},
    {"program",          HR_PLAN_U64,    AT(program), 0, BYTES_MAX, NULL},
    {"scratch",          HR_PLAN_U64,    AT(scratch), 0, BYTES_MAX, NULL},
    {"kept",             HR_PLAN_U64,    AT(kept), 0, BYTES_MAX, NULL},
    {"channel",          HR_PLAN_U64,    AT(channel), 0, BYTES_MAX, NULL},
    {"read_ahead",       HR_PLAN_U64,    AT(read_ahead), 0, BYTES_MAX, NULL},
    {"read_ahead_files", HR_PLAN_U32,    AT(read_ahead_files), 1, 4096, NULL},
    {"batch",            HR_PLAN_U64,    AT(batch), 1, BYTES_MAX, NULL},
    {"batches_ahead",    HR_PLAN_U32,    AT(batches_ahead), 1, HR_PLAN_BATCHES_MAX, NULL},
    {"release_wait_ns",  HR_PLAN_U64,    AT(release_wait_ns), 0, NS_MAX, NULL},
    {"total",            HR_PLAN_U64,    AT(total), 0, INT64_MAX, NULL},
    {"least",            HR_PLAN_U64,    AT(least), 0, INT64_MAX, NULL},
    {"measured",         HR_PLAN_BOOL,   AT(measured), 0, 1, NULL},
    {"reason",           HR_PLAN_REASON, AT(reason), 0, 0, NULL},
};
#undef AT

#define AT(member) offsetof(struct hr_plan_stage, member)
static const struct hr_plan_item stage[] = {
    {"reason",        HR_PLAN_REASON, AT(reason), 0, 0, NULL},
    {"direct",        HR_PLAN_BOOL,   AT(direct), 0, 1, NULL},
    {"parallelism",   HR_PLAN_INT,    AT(parallelism), 1, 4096, NULL},
    {"chunk_ns",      HR_PLAN_U64,    AT(chunk_ns), 1, NS_MAX, NULL},
    {"chunk_records", HR_PLAN_U32,    AT(chunk_records), 1, RECORDS_MAX, NULL},
    {"chunk_bytes",   HR_PLAN_U64,    AT(chunk_bytes), 0, BYTES_MAX, NULL},
    {"request_ns",    HR_PLAN_U64,    AT(request_ns), 0, NS_MAX, NULL},
    {"overlap_ns",    HR_PLAN_U64,    AT(overlap_ns), 0, NS_MAX, NULL},
};
static const struct hr_plan_item expand[] = {
    {"expand_variant", HR_PLAN_WORD, AT(expand_variant), 0, HR_PLAN_VARIANTS - 1, hr__plan_variants},
};
#undef AT

#define AT(member) offsetof(struct hr_plan_stage_memory, member)
static const struct hr_plan_item stage_memory[] = {
    {"block_records", HR_PLAN_U32,    AT(block_records), 1, RECORDS_MAX, NULL},
    {"block_count",   HR_PLAN_U32,    AT(block_count), 1, 8192, NULL}, /* 4096 threads */
    {"block_bytes",   HR_PLAN_U64,    AT(block_bytes), 1, BYTES_MAX, NULL},
    {"queue_records", HR_PLAN_U32,    AT(queue_records), 0, RECORDS_MAX, NULL},
    {"queue_bytes",   HR_PLAN_U64,    AT(queue_bytes), 0, BYTES_MAX, NULL},
    {"held_bytes",    HR_PLAN_U64,    AT(held_bytes), 0, BYTES_MAX, NULL},
    {"reason",        HR_PLAN_REASON, AT(reason), 0, 0, NULL},
};
#undef AT

#define AT(member) offsetof(struct hr_plan_step, member)
static const struct hr_plan_item step[] = {
    {"variant",      HR_PLAN_WORD,   AT(variant), 0, HR_PLAN_VARIANTS - 1, hr__plan_variants},
    {"made_after",   HR_PLAN_BOOL,   AT(force_after), 0, 1, NULL},
    {"reason",       HR_PLAN_REASON, AT(reason), 0, 0, NULL},
};
#undef AT
/* clang-format on */

#define TABLE(items)                                                                     \
    {                                                                                    \
        (items), COUNT(items)                                                            \
    }

const struct hr_plan_table hr__plan_top = TABLE(top);
const struct hr_plan_table hr__plan_memory = TABLE(memory);
const struct hr_plan_table hr__plan_stage = TABLE(stage);
const struct hr_plan_table hr__plan_stage_memory = TABLE(stage_memory);
const struct hr_plan_table hr__plan_step = TABLE(step);
const struct hr_plan_table hr__plan_expand = TABLE(expand);

int64_t hr__plan_item_get(const struct hr_plan_item *item, const void *object)
{
    const char *at = (const char *)object + item->offset;
    uint64_t wide;
    uint32_t narrow;

    assert(item->type != HR_PLAN_REASON);
    switch (item->type) {
    case HR_PLAN_BOOL:
        return *(const bool *)at;
    case HR_PLAN_U64:
        memcpy(&wide, at, sizeof wide);
        return (int64_t)wide;
    default: /* int, uint32_t and the enum: 32 bits, never negative */
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
}

void hr__plan_item_set(const struct hr_plan_item *item, void *object, int64_t value)
{
    char *at = (char *)object + item->offset;
    uint64_t wide = (uint64_t)value;
    uint32_t narrow = (uint32_t)value;

    assert(item->type != HR_PLAN_REASON && value >= item->min && value <= item->max);
    switch (item->type) {
    case HR_PLAN_BOOL:
        *(bool *)at = value != 0;
        break;
    case HR_PLAN_U64:
        memcpy(at, &wide, sizeof wide);
        break;
    default:
        memcpy(at, &narrow, sizeof narrow);
        break;
    }
}

static bool items_equal(const struct hr_plan_table *table, const void *a, const void *b)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct hr_plan_item *item = &table->items[i];

        if (item->type == HR_PLAN_REASON
                ? strcmp(hr__plan_item_text(item, a), hr__plan_item_text(item, b)) != 0
                : hr__plan_item_get(item, a) != hr__plan_item_get(item, b))
            return false;
    }
    return true;
}

static bool steps_equal(const struct hr_plan_stage *a, const struct hr_plan_stage *b)
{
    if (a->step_count != b->step_count)
        return false;
    for (size_t i = 0; i < a->step_count; i++)
        if (a->steps[i].node != b->steps[i].node ||
            a->steps[i].group != b->steps[i].group ||
            !items_equal(&hr__plan_step, &a->steps[i], &b->steps[i]))
            return false;
    return true;
}

/* `feed`, `last` and `filters` follow from the rest. */
static bool stages_equal(const struct hr_plan_stage *a, const struct hr_plan_stage *b)
{
    return items_equal(&hr__plan_stage, a, b) &&
           items_equal(&hr__plan_stage_memory, &a->memory, &b->memory) &&
           steps_equal(a, b) && a->expand == b->expand &&
           (a->expand == HR_NO_NODE || a->expand_variant == b->expand_variant) &&
           a->sequence_count == b->sequence_count &&
           memcmp(a->sequence, b->sequence, a->sequence_count * sizeof a->sequence[0]) ==
               0;
}

bool hr__plan_equal(const struct hr_plan *a, const struct hr_plan *b)
{
    assert(a->graph != NULL && b->graph != NULL);
    if (a->graph != b->graph || a->stage_count != b->stage_count ||
        !items_equal(&hr__plan_top, a, b) ||
        !items_equal(&hr__plan_memory, &a->memory, &b->memory))
        return false;
    for (size_t i = 0; i < a->stage_count; i++)
        if (!stages_equal(&a->stages[i], &b->stages[i]))
            return false;
    return true;
}

uint32_t hr__plan_stage_end(const struct hr_plan_stage *s)
{
    return s->sequence_count > 0     ? s->sequence[s->sequence_count - 1]
           : s->expand != HR_NO_NODE ? s->expand
                                     : s->last;
}

uint32_t hr__plan_stage_batch(const struct hr_plan *plan, const struct hr_plan_stage *s)
{
    for (size_t k = s->sequence_count; k-- > 0;) {
        const struct hr_op_sequence *op =
            &plan->graph->nodes[s->sequence[k]].op->sequence;

        if (op->runs != NULL || op->joins != NULL)
            return s->sequence[k];
    }
    return HR_NO_NODE;
}

void hr__plan_finish(struct hr_plan *plan)
{
    if (plan == NULL)
        return;
    for (size_t i = 0; i < plan->stage_count; i++)
        hr__free(plan->stages[i].steps);
    memset(plan, 0, sizeof *plan);
}
