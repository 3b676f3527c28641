/*
 * record.kind - declares what the numbers of a field are.
 */
#include <assert.h>
#include <string.h>

#include "ops/kinds.h"

struct declare {
    const char *field;
    int kind;
    int64_t rate;
};

static const struct hr_param kind_params[] = {
    HR_P_FIELD(struct declare, field, .required = true, .access = HR_ACCESS_UPDATE,
               .help = "the field to declare"),
    HR_P_ENUM(struct declare, kind, .required = true, .names = hr__kind_names,
              .help = "image, mask: uint8 [height, width, channels], images also float32 "
                      "of 0..1; boxes: float32 [n, 4]; points: float32 [n, 2]; samples: "
                      "float32 [..., frames]"),
    HR_P_INT(struct declare, rate, .fallback = "0", HR_RANGE(0, HR_RATE_MAX),
             .unit = "Hz", .help = "samples: frames per second, of all records"),
};

static const struct hr_kind *kind_of(const struct declare *p)
{
    const struct hr_kind *kind = hr__kind_find(hr__kind_names[p->kind]);

    assert(kind != NULL);
    return kind;
}

/* What makes a field one of the kind, for the message; "" if nothing simple does. */
static const char *cure(const struct hr_kind *kind, const struct hr_field *field)
{
    static const enum hr_dtype dtypes[] = {HR_U8, HR_F32};
    struct hr_field other = *field;

    if (field->kind != HR_FIELD_TENSOR)
        return "";
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        other.dtype = dtypes[i];
        if (kind->accepts(&other))
            return dtypes[i] == HR_U8 ? ": tensor.cast to uint8 before it makes it one"
                                      : ": tensor.cast to float32 before it makes it one";
    }
    return kind->pixels && field->ndim == 2
               ? ": it lacks the channels; of a NumPy array, array[..., None]"
               : "";
}

static enum hr_err kind_infer(struct hr_infer *infer)
{
    const struct declare *p = infer->params;
    const struct hr_kind *kind = kind_of(p);
    struct hr_field *field = infer->fields[0];
    char text[128];

    if (field->kind != HR_FIELD_TENSOR || !kind->accepts(field))
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" is %s; %s wants %s%s", field->name,
                              hr__field_text(field, text, sizeof text), kind->name,
                              kind->wants, cure(kind, field));
    if ((p->rate > 0) != (kind->meaning == HR_MEANING_SAMPLES))
        return hr__infer_fail(infer, "rate", HR_ERR_ARGUMENT,
                              "samples need a rate, and no other kind has one");
    field->meaning = field->dtype == HR_F32 && kind->meaning_f32 != HR_MEANING_NONE
                         ? kind->meaning_f32
                         : kind->meaning;
    field->rate = (int32_t)p->rate;
    field->left_by = NULL;
    if (!kind->pixels)
        field->layout = HR_LAYOUT_NONE;
    else if (field->layout == HR_LAYOUT_NONE)
        field->layout = HR_LAYOUT_HWC;
    return HR_OK;
}

/* What infer could not see: unknown dims, and how a tensor without a layout lies. */
static enum hr_err kind_apply(struct hr_op_ctx *ctx)
{
    const struct hr_kind *kind = kind_of(ctx->params);
    struct hr_value *value = ctx->fields[0];
    struct hr_field field = {.kind = HR_FIELD_TENSOR};

    HR_TRY(hr__value_force(ctx->thread, value, NULL, ctx->error));
    field.dtype = (enum hr_dtype)value->dtype;
    field.ndim = value->ndim;
    for (int i = 0; i < value->ndim; i++)
        hr__dim_set(&field.dims[i], value->dims[i]);
    if (value->kind != HR_VALUE_TENSOR || !kind->accepts(&field)) {
        char text[128];

        return hr__fail(ctx->error, HR_ERR_SHAPE, "the field is %s; %s wants %s",
                        hr__field_text(&field, text, sizeof text), kind->name,
                        kind->wants);
    }
    if (kind->pixels && value->layout == HR_LAYOUT_NONE)
        value->layout = HR_LAYOUT_HWC;
    return HR_OK;
}

const struct hr_op hr_op_record_kind = {
    .name = "record.kind",
    .summary = "declare a field to be an image, a mask, boxes, points or samples",
    .doc =
        "Ops that move an image (crops, flips, resizes, pads, rotations) take a list of "
        "fields: the "
        "image first, then what moves with it, each by its kind. A **mask** is an image "
        "of labels: it is resized by the nearest pixel and padded with the label "
        "`mask_fill` (or by the op's `mode`), and ops on colours refuse it. **Boxes** "
        "are rows of x1, y1, "
        "x2, y2 and **points** rows of x, y, in pixels of the image, where 0 is its left "
        "or top edge. A crop clips boxes to its window; a box that lies outside stays as "
        "a row of no width or no height, so that rows still agree with labels. Points "
        "are never clipped. A decoded photo that is declared a mask is decoded in full: "
        "a reduced scale would mix labels; image.decode reads masks in PNG files with "
        "`color: labels`. **Samples** are sound, as audio.decode makes "
        "it, at `rate` frames per second.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(kind_params, struct declare),
    .infer = kind_infer,
    .apply = kind_apply,
};
