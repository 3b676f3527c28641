/*
 * boxes.convert - writes boxes in another format.
 *
 * Only corners (xyxy) are of the kind boxes, which moves with an image.
 */
#include "ops/kinds.h"

struct convert {
    const char *field;
    int format, to;
};

enum { XYXY, XYWH, CXCYWH };
static const char *const formats[] = {"xyxy", "xywh", "cxcywh", NULL};

static const struct hr_param convert_params[] = {
    HR_P_ENUM(struct convert, to, .required = true, .names = formats,
              .help = "xyxy: two corners; xywh: the top left corner, width, height; "
                      "cxcywh: the centre, width, height"),
    HR_P_ENUM(struct convert, format, .fallback = "xyxy", .names = formats,
              .help = "the format that the rows have"),
    HR_P_FIELD(struct convert, field, .fallback = "boxes", .access = HR_ACCESS_UPDATE,
               .help = "the field, float32 [n, 4]"),
};

static enum hr_err convert_infer(struct hr_infer *infer)
{
    const struct convert *p = infer->params;
    struct hr_field *field = infer->fields[0];
    char text[128];

    if (field->kind != HR_FIELD_TENSOR || !hr__kind_boxes.accepts(field))
        return hr__infer_fail(
            infer, "field", HR_ERR_TYPE, "field \"%s\" is %s; boxes are %s", field->name,
            hr__field_text(field, text, sizeof text), hr__kind_boxes.wants);
    if (p->format != XYXY && field->meaning == HR_MEANING_BOXES)
        return hr__infer_fail(infer, "format", HR_ERR_ARGUMENT,
                              "the boxes of field \"%s\" are xyxy, not %s", field->name,
                              formats[p->format]);
    field->meaning = p->to == XYXY ? HR_MEANING_BOXES : HR_MEANING_NONE;
    hr__dim_set(&field->dims[1], 4);
    return HR_OK;
}

static void convert_box(int from, int to, float box[4])
{
    double x = box[0], y = box[1], width = box[2], height = box[3];

    if (from == XYXY) {
        width -= x;
        height -= y;
    } else if (from == CXCYWH) {
        x -= width / 2;
        y -= height / 2;
    }
    box[0] = (float)(to == CXCYWH ? x + width / 2 : x);
    box[1] = (float)(to == CXCYWH ? y + height / 2 : y);
    box[2] = (float)(to == XYXY ? x + width : width);
    box[3] = (float)(to == XYXY ? y + height : height);
}

static enum hr_err convert_apply(struct hr_op_ctx *ctx)
{
    const struct convert *p = ctx->params;
    int64_t dims[2] = {0, 4};
    float *boxes;

    HR_TRY(hr__boxes_copy(ctx, 0, &boxes, &dims[0]));
    if (p->format != p->to)
        for (int64_t i = 0; i < dims[0]; i++)
            convert_box(p->format, p->to, boxes + 4 * i);
    hr__value_clear(ctx->fields[0]);
    hr__value_set_tensor(ctx->fields[0], HR_F32, 2, dims, boxes, NULL);
    return HR_OK;
}

const struct hr_op hr_op_boxes_convert = {
    .name = "boxes.convert",
    .summary = "write boxes in another format",
    .doc = "Ops that move an image take boxes as corners, x1, y1, x2, y2. Other formats "
           "are converted to `xyxy` before them, which declares the field to be boxes, "
           "and from it after them, which makes it a plain tensor.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(convert_params, struct convert),
    .infer = convert_infer,
    .apply = convert_apply,
};
