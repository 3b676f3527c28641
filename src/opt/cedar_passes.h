/*
 * opt/cedar_passes.h - what the passes of opt/cedar.c decide, one after the other.
 */
#ifndef HR_OPT_CEDAR_PASSES_H
#define HR_OPT_CEDAR_PASSES_H

#include "opt/cedar_place.h"

struct hr_cedar_choice {
    uint8_t order[HR_CEDAR_PIPES_MAX];
    int cache; /* place, or -1 */
    int drivers;
    bool drivers_refused;
    enum hr_cedar_variant variant; /* of slices; NONE: nothing is offloaded */
    struct hr_cedar_places places;
    bool in_source; /* all pipes are fused into a TensorFlow source */
    bool tf_calls;  /* TensorFlow decides how many calls run at once */
};

/* The choice of order, cache and slices that takes least, found together; drivers and
 * variant stay. `orders` are legal. Never dearer than `choice`. *best, whether the order
 * is the cheapest, gets false if a choice may take less. */
void hr__cedar_choose(const struct hr_cedar_model *model, double orders,
                      struct hr_cedar_choice *choice, bool *best);

/* Whether all pipes but source and batchers are TensorFlow's, none a py_function. */
bool hr__cedar_is_tf(const struct hr_cedar_stats *stats);

/* The stages of a choice; may reduce its drivers. */
void hr__cedar_stages(const struct hr_cedar_model *model, struct hr_cedar_choice *choice,
                      struct hr_cedar_result *result);

#endif
