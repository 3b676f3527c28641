/*
 * graph/profile_items.h - the numbers of a profile, as tables that printing, reading and
 * comparing follow.
 */
#ifndef HR_GRAPH_PROFILE_ITEMS_H
#define HR_GRAPH_PROFILE_ITEMS_H

#include "graph/plan_items.h"
#include "graph/profile.h"

enum hr_profile_item_type {
    HR_PROFILE_U32,
    HR_PROFILE_U64,
    HR_PROFILE_BOOL,
    HR_PROFILE_VARIANT,
    HR_PROFILE_DOUBLE,  /* 0 to `max` */
    HR_PROFILE_PERHAPS, /* the same, or unknown (null) */
    HR_PROFILE_TEXT,    /* char[max] */
    HR_PROFILE_HASH,    /* 32 hex digits */
};

struct hr_profile_item {
    const char *key;
    enum hr_profile_item_type type;
    size_t offset;
    double max;
    int since; /* version of the format that has it; 0: all */
};

struct hr_profile_table {
    const struct hr_profile_item *items;
    size_t count;
};

extern const struct hr_profile_table hr__profile_top, hr__profile_where, hr__profile_node;

/* Of the numbers of `item`: the whole number, truth or variant; the double. */
int64_t hr__profile_item_int(const struct hr_profile_item *item, const void *object);
double hr__profile_item_double(const struct hr_profile_item *item, const void *object);

#endif
