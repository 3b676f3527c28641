/*
 * ops/image_colours.h - runs a chain of colour steps on a record's image.
 */
#ifndef HR_OPS_IMAGE_COLOURS_H
#define HR_OPS_IMAGE_COLOURS_H

#include "kernel/colour.h"
#include "ops/image_job.h"

/* A chain of steps that are ops of their own: an image of uint8 is rounded between them.
 */
struct hr_colour_chain {
    bool rounds;
    int count;
    struct hr_colour_step steps[HR_COLOUR_MAX];
};
void hr__colour_add(struct hr_colour_chain *chain, enum hr_colour_kind kind,
                    double value);

/* Applies the steps to the image in bound field `field`. The result has `channels`
 * channels: one if a GRAY step reduces them to one, else as many as before. */
HR_CHECK enum hr_err
hr__image_colours(struct hr_op_ctx *ctx, size_t field, const struct hr_colour_step *steps,
                  int count, int32_t channels);

#endif
