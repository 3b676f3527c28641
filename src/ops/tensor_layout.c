/*
 * tensor.layout - the order of an image's dimensions.
 */
#include "ops/image_job.h"
#include "ops/image_size.h"

struct layout {
    const char *field;
    int order;
};

static const char *const orders[] = {"hwc", "chw", NULL};

static const struct hr_param layout_params[] = {
    HR_P_ENUM(
        struct layout, order, .required = true, .names = orders,
        .help = "hwc: the channels of a pixel are adjacent; chw: one plane per channel"),
    HR_P_IMAGE(struct layout),
};

static enum hr_layout wanted(const struct layout *p)
{
    return p->order == 0 ? HR_LAYOUT_HWC : HR_LAYOUT_CHW;
}

static enum hr_err layout_infer(struct hr_infer *infer)
{
    const struct layout *p = infer->params;
    struct hr_field *field = infer->fields[0];
    struct hr_dim height, width, channels;

    HR_TRY(hr__infer_image(infer, 0));
    height = *hr__field_height(field);
    width = *hr__field_width(field);
    channels = *hr__field_channels(field);
    field->layout = wanted(p);
    *hr__field_height(field) = height;
    *hr__field_width(field) = width;
    *hr__field_channels(field) = channels;
    return HR_OK;
}

static enum hr_err layout_apply(struct hr_op_ctx *ctx)
{
    return hr__image_layout(ctx, 0, wanted(ctx->params));
}

const struct hr_op hr_op_tensor_layout = {
    .name = "tensor.layout",
    .summary = "order an image's dimensions as [h, w, c] or [c, h, w]",
    .doc = "Values do not change. PyTorch wants `chw`.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_LAYOUT | HR_TRAIT_DEFERS,
    HR_PARAMS(layout_params, struct layout),
    .infer = layout_infer,
    .apply = layout_apply,
};
