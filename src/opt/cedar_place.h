/*
 * opt/cedar_place.h - which runs of pipes of a path are fused and offloaded to a backend.
 */
#ifndef HR_OPT_CEDAR_PLACE_H
#define HR_OPT_CEDAR_PLACE_H

#include "opt/cedar_model.h"

struct hr_cedar_slice {
    uint8_t from, to; /* places */
};

struct hr_cedar_places {
    struct hr_cedar_slice slices[HR_CEDAR_PIPES_MAX]; /* from source to output */
    size_t count;
    double ms; /* of a sample, with these slices offloaded */
};

/* As cedar does: slices of one gain after the other, the best first. */
void hr__cedar_place(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
                     enum hr_cedar_variant variant, struct hr_cedar_places *ret_places);

/* The slices that take the least together. */
void hr__cedar_place_best(const struct hr_cedar_model *model,
                          const struct hr_cedar_path *path, enum hr_cedar_variant variant,
                          struct hr_cedar_places *ret_places);

#endif
