/*
 * augment.c - runs a chain of augmentation steps on a record.
 *
 * Tables wait until a step needs the pixels. Their histogram follows from that of the
 * pixels, so autocontrast and equalize need no pass of their own once levels are counted.
 */
#include "ops/augment.h"

#include <math.h>
#include <string.h>

#include "kernel/rows.h"
#include "kernel/sharpen.h"
#include "kernel/tint.h"
#include "ops/image_levels.h"
#include "ops/image_turn.h"

const struct hr_augment_space hr__augment_space = {.shear = 0.3,
                                                   .shift = 150.0 / 331,
                                                   .shift_of_side = true,
                                                   .turn = 30,
                                                   .factor = 0.9,
                                                   .bits = 8,
                                                   .bits_less = 4};

/* ---- draws ---- */

static double greatest(const struct hr_augment_space *space, enum hr_augment_kind kind,
                       int32_t width, int32_t height)
{
    switch (kind) {
    case HR_AUGMENT_SHEAR_X:
    case HR_AUGMENT_SHEAR_Y:
        return space->shear;
    case HR_AUGMENT_TRANSLATE_X:
        return space->shift * (space->shift_of_side ? width : 1);
    case HR_AUGMENT_TRANSLATE_Y:
        return space->shift * (space->shift_of_side ? height : 1);
    case HR_AUGMENT_ROTATE:
        return space->turn;
    case HR_AUGMENT_BRIGHTNESS:
    case HR_AUGMENT_COLOR:
    case HR_AUGMENT_CONTRAST:
    case HR_AUGMENT_SHARPNESS:
        return space->factor;
    default:
        return 0;
    }
}

/* Number `at` of `count` from `from` to `to`, rounded as torch.linspace does. */
static float spaced(double from, double to, int64_t at, int64_t count)
{
    float first = (float)from, last = (float)to;
    float step = (last - first) / (float)(count - 1);

    if (at < count / 2)
        return first + step * (float)at;
    return last - step * (float)(count - at - 1);
}

struct hr_augment_step
hr__augment_draw(const struct hr_augment_space *space, enum hr_augment_kind kind,
                 int64_t bin, int64_t bins, int32_t width, int32_t height,
                 struct hr_rng *rng)
{
    struct hr_augment_step step = {.kind = kind};
    double most = greatest(space, kind, width, height);

    if (kind == HR_AUGMENT_POSTERIZE)
        step.magnitude =
            rintf((float)space->bits -
                  (float)bin / ((float)(bins - 1) / (float)space->bits_less));
    else if (kind == HR_AUGMENT_SOLARIZE)
        step.magnitude = spaced(1, 0, bin, bins);
    else if (most > 0) {
        step.magnitude = spaced(0, most, bin, bins);
        if (hr__rng_double(rng) < 0.5)
            step.magnitude = -step.magnitude;
    }
    return step;
}

/* ---- a chain on an image ---- */

struct run {
    struct hr_op_ctx *ctx;
    const struct hr_augment_how *how;
    bool owned;   /* the pixels are the op's and may change in place */
    bool waiting; /* the tables still have to be applied */
    bool counted; /* `counts` are those of the pixels, before the tables */
    struct hr_level_tables tables;
    struct hr_level_counts counts;
};

static enum hr_err no_memory(struct run *run)
{
    return hr__fail(run->ctx->error, HR_ERR_MEMORY, "out of memory to augment an image");
}

/* The pixels, interleaved. */
static enum hr_err read_pixels(struct run *run, struct hr_pixels *ret_pixels)
{
    HR_TRY(hr__image_read(run->ctx, 0, ret_pixels));
    if (ret_pixels->channels != 1 && ret_pixels->channels != 3)
        return hr__fail(run->ctx->error, HR_ERR_SHAPE,
                        "augmenting needs an image of 1 or 3 channels, not %d",
                        (int)ret_pixels->channels);
    if (hr__is_interleaved(ret_pixels))
        return HR_OK;
    run->owned = true;
    return hr__image_own(run->ctx, 0, ret_pixels);
}

/* Where changed pixels go: a new image, or the same one if it is the op's. */
static enum hr_err make_room(struct run *run, const struct hr_pixels *in,
                             struct hr_value *ret_made, struct hr_pixels *ret_out)
{
    *ret_out = *in;
    if (run->owned)
        return HR_OK;
    return hr__image_make(run->ctx->thread, in->width, in->height, in->channels,
                          in->dtype, hr__image_layout_of(run->ctx->fields[0]), ret_made,
                          ret_out, run->ctx->error);
}

static void replace(struct run *run, const struct hr_value *made)
{
    if (!run->owned)
        hr__image_replace(run->ctx, 0, made);
    run->owned = true;
    run->waiting = run->counted = false;
}

static enum hr_err apply_tables(struct run *run)
{
    struct hr_pixels in, out;
    struct hr_value made;

    if (!run->waiting)
        return HR_OK;
    HR_TRY(read_pixels(run, &in));
    HR_TRY(make_room(run, &in, &made, &out));
    hr__levels_look_up(&in, &run->tables, &out);
    replace(run, &made);
    return HR_OK;
}

static void join_table(struct run *run, int channel, const uint8_t table[256])
{
    uint8_t *joined = run->tables.of[channel];

    for (int i = 0; i < 256; i++)
        joined[i] = table[run->waiting ? joined[i] : i];
}

static void join(struct run *run, const uint8_t table[256])
{
    for (int c = 0; c < 4; c++)
        join_table(run, c, table);
    run->waiting = true;
}

/* ---- steps ---- */

static void posterize(struct run *run, int bits)
{
    uint8_t table[256];

    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(i & 0xff00 >> bits);
    join(run, table);
}

static void solarize(struct run *run, float threshold)
{
    uint8_t table[256];

    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)((float)i >= threshold ? 255 - i : i);
    join(run, table);
}

static void brighten(struct run *run, double factor)
{
    uint8_t table[256];

    hr__tint_brightness(factor, table);
    join(run, table);
}

static enum hr_err contrast(struct run *run, double factor)
{
    struct hr_pixels pixels;
    uint8_t table[256];
    float mean;

    HR_TRY(read_pixels(run, &pixels));
    if (hr__tint_mean(&run->ctx->thread->arena, &pixels,
                      run->waiting ? &run->tables : NULL, &mean) != HR_OK)
        return no_memory(run);
    hr__tint_contrast(factor, mean, table);
    join(run, table);
    return HR_OK;
}

static enum hr_err saturate(struct run *run, double factor)
{
    struct hr_pixels in, out;
    struct hr_value made;

    HR_TRY(read_pixels(run, &in));
    if (in.channels == 1)
        return HR_OK;
    HR_TRY(make_room(run, &in, &made, &out));
    if (hr__tint_saturate(&run->ctx->thread->arena, &in,
                          run->waiting ? &run->tables : NULL, factor, &out) != HR_OK)
        return no_memory(run);
    replace(run, &made);
    return HR_OK;
}

static enum hr_err sharpen(struct run *run, double factor)
{
    struct hr_pixels pixels;

    HR_TRY(apply_tables(run));
    HR_TRY(read_pixels(run, &pixels));
    if (!run->owned)
        HR_TRY(hr__image_own(run->ctx, 0, &pixels));
    run->owned = true;
    run->counted = false;
    if (hr__sharpen(&run->ctx->thread->arena, &pixels, factor) != HR_OK)
        return no_memory(run);
    return HR_OK;
}

/* Autocontrast and equalize. */
static enum hr_err spread(struct run *run, bool flat)
{
    struct hr_pixels pixels;
    uint8_t table[256];

    HR_TRY(read_pixels(run, &pixels));
    if (!run->counted)
        hr__levels_count(&pixels, &run->counts);
    run->counted = true;
    for (int32_t c = 0; c < pixels.channels; c++) {
        uint32_t count[256] = {0};

        for (int i = 0; i < 256; i++)
            count[run->waiting ? run->tables.of[c][i] : i] += run->counts.of[c][i];
        if (flat)
            hr__levels_flatten(count, table);
        else
            hr__levels_stretch(count, table);
        join_table(run, c, table);
    }
    run->waiting = true;
    return HR_OK;
}

static enum hr_err turn(struct run *run, const struct hr_augment_step *step)
{
    static const double corner[2];
    const double degree = acos(-1.0) / 180;
    struct hr_turn turn = {.scale = 1, .mask_fill = (int32_t)run->how->mask_fill};
    double size = (double)step->magnitude;

    switch (step->kind) {
    case HR_AUGMENT_SHEAR_X:
        turn.shear_x = atan(size) / degree;
        turn.center = corner;
        break;
    case HR_AUGMENT_SHEAR_Y:
        turn.shear_y = atan(size) / degree;
        turn.center = corner;
        break;
    case HR_AUGMENT_TRANSLATE_X:
        turn.shift_x = trunc(size);
        break;
    case HR_AUGMENT_TRANSLATE_Y:
        turn.shift_y = trunc(size);
        break;
    default:
        turn.degrees = -size;
        break;
    }
    if (turn.shear_x == 0 && turn.shear_y == 0 && turn.shift_x == 0 &&
        turn.shift_y == 0 && turn.degrees == 0)
        return HR_OK;
    hr__fill_levels(&run->how->fill, turn.fill);
    HR_TRY(apply_tables(run));
    run->owned = true;
    run->counted = false;
    return hr__turn(run->ctx, &turn, run->how->interpolation, false);
}

static enum hr_err take_step(struct run *run, const struct hr_augment_step *step)
{
    double factor = 1 + (double)step->magnitude;

    switch (step->kind) {
    case HR_AUGMENT_IDENTITY:
        return HR_OK;
    case HR_AUGMENT_BRIGHTNESS:
        brighten(run, factor);
        return HR_OK;
    case HR_AUGMENT_COLOR:
        return saturate(run, factor);
    case HR_AUGMENT_CONTRAST:
        return contrast(run, factor);
    case HR_AUGMENT_SHARPNESS:
        return sharpen(run, factor);
    case HR_AUGMENT_POSTERIZE:
        posterize(run, (int)step->magnitude);
        return HR_OK;
    case HR_AUGMENT_SOLARIZE:
        solarize(run, (float)(255 * (double)step->magnitude));
        return HR_OK;
    case HR_AUGMENT_AUTO_CONTRAST:
        return spread(run, false);
    case HR_AUGMENT_EQUALIZE:
        return spread(run, true);
    case HR_AUGMENT_INVERT:
        solarize(run, 0);
        return HR_OK;
    default:
        return turn(run, step);
    }
}

enum hr_err hr__augment(struct hr_op_ctx *ctx, const struct hr_augment_step *steps,
                        int64_t count, const struct hr_augment_how *how)
{
    struct run run = {.ctx = ctx, .how = how};

    for (int64_t i = 0; i < count; i++)
        HR_TRY(take_step(&run, &steps[i]));
    return apply_tables(&run);
}

enum hr_err hr__infer_augment(struct hr_infer *infer, const struct hr_augment_how *how)
{
    const struct hr_field *image = infer->fields[0];

    HR_TRY(hr__infer_colours(infer, 0));
    if (image->dtype != HR_U8)
        return hr__infer_fail(infer, image->name, HR_ERR_TYPE,
                              "field \"%s\" is %s, and this op needs uint8 levels: put "
                              "it before tensor.cast and image.normalize",
                              image->name, hr_dtype_name(image->dtype));
    HR_TRY(hr__infer_turned(infer));
    return hr__infer_fill(infer, &how->fill);
}
