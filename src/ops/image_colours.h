/*
 * ops/image_colours.h - running a colour chain on a record's image.
 */
#ifndef HR_OPS_IMAGE_COLOURS_H
#define HR_OPS_IMAGE_COLOURS_H

#include "kernel/colour.h"
#include "ops/image_job.h"

/* Replace the image in bound field `field` by what the steps make of it, with `channels`
 * channels (one when a GRAY step is among them and one is wanted; else as before). */
HR_CHECK enum hr_err
hr__image_colours(struct hr_op_ctx *ctx, size_t field, const struct hr_colour_step *steps,
                  int count, int32_t channels);

#endif
