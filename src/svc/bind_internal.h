/*
 * svc/bind_internal.h - private interface between bind.c and bind_grant.c: splits of the
 * window.
 */
#ifndef HR_SVC_BIND_INTERNAL_H
#define HR_SVC_BIND_INTERNAL_H

#include "svc/bind.h"

static inline struct hr_bind_split *
hr__bind_at(const struct hr_binder *binder, uint64_t number)
{
    return &binder->window[number % binder->options.window];
}

static inline uint64_t hr__bind_limit(const struct hr_binder *binder)
{
    uint64_t limit = binder->first + binder->options.window;

    return limit < binder->splits ? limit : binder->splits;
}

static inline uint64_t hr__bind_size(const struct hr_binder *binder, uint64_t number)
{
    uint64_t from = number * binder->options.split, rest = binder->options.end - from;

    return rest < binder->options.split ? rest : binder->options.split;
}

/* What of it is not committed. */
static inline struct hr_frame_range
hr__bind_rest(const struct hr_binder *binder, uint64_t number)
{
    uint64_t from = number * binder->options.split;

    return (struct hr_frame_range){from + hr__bind_at(binder, number)->committed,
                                   from + hr__bind_size(binder, number)};
}

/* Ends the lease of a split that has an owner; does nothing if there is none. */
void hr__bind_end_lease(struct hr_binder *binder, struct hr_bind_split *split);

/* Binds a split that nobody owns. */
void hr__bind_own(struct hr_binder *binder, uint64_t number, uint32_t rank);

/* Binds and leases while there are splits, consumers, workers and room for actions. */
void hr__bind_grant(struct hr_binder *binder, uint64_t now, struct hr_actions *actions);

#endif
