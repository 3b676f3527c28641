/*
 * image_padding.c - parameters of ops that pad images or read beyond their edges.
 */
#include "ops/image_padding.h"

#include <math.h>

const char *const hr__pad_modes[] = {"constant", "edge", "reflect", NULL};

struct hr_sides hr__sides(const struct hr_ints *padding)
{
    int last = padding->count - 1;
    struct hr_sides sides = {
        .left = (int32_t)padding->values[0],
        .top = (int32_t)padding->values[last < 1 ? last : 1],
        .right = (int32_t)padding->values[last < 3 ? 0 : 2],
        .bottom = (int32_t)padding->values[last],
    };

    return sides;
}

enum hr_err
hr__infer_fill_of(struct hr_infer *infer, const char *param, const struct hr_floats *fill)
{
    struct hr_field *field = infer->fields[0];
    int64_t channels = hr__field_channels(field)->size;

    if (fill->count != 1 && channels >= 0 && fill->count != channels)
        return hr__infer_fail(infer, param, HR_ERR_SHAPE,
                              "%d levels for an image of %d channels", fill->count,
                              (int)channels);
    for (int i = 0; i < fill->count; i++) {
        double level = fill->values[i];
        if (field->meaning == HR_MEANING_IMAGE_U8 &&
            (level < 0 || level > 255 || level != floor(level)))
            return hr__infer_fail(
                infer, param, HR_ERR_RANGE,
                "the image is uint8: a level is a whole number from 0 to "
                "255, not %g",
                level);
        if (field->meaning == HR_MEANING_IMAGE_UNIT && (level < 0 || level > 1))
            return hr__infer_fail(infer, param, HR_ERR_RANGE,
                                  "the image is 0..1: %g is not a level", level);
    }
    return HR_OK;
}

enum hr_err hr__infer_fill(struct hr_infer *infer, const struct hr_floats *fill)
{
    return hr__infer_fill_of(infer, "fill", fill);
}

void hr__fill_levels(const struct hr_floats *fill, float ret_levels[4])
{
    for (int i = 0; i < 4; i++)
        ret_levels[i] = (float)fill->values[i < fill->count ? i : 0];
}
