/*
 * graph/plan_items.h - the plain members of a plan, as tables: printing, reading and
 * comparing all follow them, so that none of the three forgets a member.
 */
#ifndef HR_GRAPH_PLAN_ITEMS_H
#define HR_GRAPH_PLAN_ITEMS_H

#include "graph/plan.h"

enum hr_plan_item_type {
    HR_PLAN_INT,
    HR_PLAN_U32,
    HR_PLAN_U64,
    HR_PLAN_BOOL,
    HR_PLAN_WORD,   /* enum, one of `words` */
    HR_PLAN_REASON, /* char[HR_PLAN_REASON_MAX]; may be left out when read */
};

struct hr_plan_item {
    const char *key;
    enum hr_plan_item_type type;
    size_t offset;
    int64_t min, max;
    const char *const *words; /* WORD: max + 1 of them */
};

struct hr_plan_table {
    const struct hr_plan_item *items;
    size_t count;
};

extern const struct hr_plan_table hr__plan_top, hr__plan_memory, hr__plan_stage,
    hr__plan_stage_memory, hr__plan_step, hr__plan_expand;

/* The words of enum hr_plan_variant. */
extern const char *const hr__plan_variants[HR_PLAN_VARIANTS];

/* A number, truth or word of the member; not of a REASON. */
int64_t hr__plan_item_get(const struct hr_plan_item *item, const void *object);
void hr__plan_item_set(const struct hr_plan_item *item, void *object, int64_t value);

static inline char *
hr__plan_item_text(const struct hr_plan_item *item, const void *object)
{
    return (char *)(uintptr_t)object + item->offset;
}

#endif
