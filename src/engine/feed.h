/*
 * engine/feed.h - a run whose first steps run elsewhere: who makes their records, and the
 * segment that takes them from there (feed.c).
 *
 * The steps up to a node have the variant `remote`. All else is as in any run: positions,
 * blocks, identities, places and states are this engine's, so what comes after the node
 * cannot tell. A record that failed there, and a substitute for a bad one, are made here,
 * by the same steps.
 */
#ifndef HR_ENGINE_FEED_H
#define HR_ENGINE_FEED_H

#include <stdatomic.h>

#include "op/value.h"

/* A record of the consumer's share: `position` counts those of the epoch. */
struct hr_feed_place {
    uint64_t epoch, position;
};

struct hr_feed {
    uint32_t node; /* up to which the records are made */
    void *user;
    /* Once, before any record is wanted: none before this place will be. */
    HR_CHECK enum hr_err (*begin)(void *user, const struct hr_feed_place *place,
                                  struct hr_error *reterr);
    /* Waits until the records up to this one are there. No record before `floor` will be
     * wanted again. HR_ERR_CANCELLED once *stop is true; another error ends the run. Any
     * thread, as is get(). */
    HR_CHECK enum hr_err (*wait)(void *user, const struct hr_feed_place *to,
                                 const struct hr_feed_place *floor,
                                 const atomic_bool *stop, struct hr_error *reterr);
    /* The values of a record that is there, in the order of the node's schema; they own
     * what they need. Or *ret_failed, and no values: it failed there. An error ends the
     * run. */
    HR_CHECK enum hr_err (*get)(void *user, const struct hr_feed_place *place,
                                struct hr_value *values, bool *ret_failed,
                                struct hr_error *reterr);
    /* The engine is gone: no thread of it uses what get() returned. */
    void (*close)(void *user);
};

#endif
