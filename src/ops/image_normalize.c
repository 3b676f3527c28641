/*
 * image.normalize - subtracts a mean and divides by a deviation, per channel.
 *
 * One affine step per channel, with the 1/255 of integer images folded in, so that it is
 * part of the store of a resize or a decode.
 */
#include "ops/image_job.h"
#include "ops/image_size.h"

struct normalize {
    const char *field;
    struct hr_floats mean, std;
    int dtype;
};

static const struct hr_param_alias means[] = {
    {"imagenet", "[0.485, 0.456, 0.406]"},
    {"mnist",    "[0.1307]"             },
    {"half",     "[0.5]"                },
    {NULL,       NULL                   }
};
static const struct hr_param_alias stds[] = {
    {"imagenet", "[0.229, 0.224, 0.225]"},
    {"mnist",    "[0.3081]"             },
    {"half",     "[0.5]"                },
    {NULL,       NULL                   }
};

static const struct hr_param normalize_params[] = {
    HR_P_FLOATS(struct normalize, mean, .required = true, .items_min = 1, .items_max = 4,
                .aliases = means,
                .help =
                    "subtracted, per channel, in 0..1; one number for all channels; or "
                    "imagenet, mnist, half"),
    HR_P_FLOATS(struct normalize, std, .required = true, .items_min = 1, .items_max = 4,
                HR_MIN(0), .min_open = true, .aliases = stds,
                .help = "divided by, per channel; or imagenet, mnist, half"),
    HR_P_DTYPE(struct normalize, dtype, .fallback = "float32",
               .help = "float32, float16 or bfloat16"),
    HR_P_IMAGE(struct normalize),
};

static bool count_fits(int count, int64_t channels)
{
    return count == 1 || channels < 0 || count == channels;
}

/* Numbers for levels of 0 to 255, which would give images that are nearly constant: no
 * mean of levels of 0 to 1 is above 1, and deviations are well below. Floats are what the
 * user made of them. */
#define STD_MAX 10

static enum hr_err check_levels(struct hr_infer *infer, const struct normalize *p)
{
    for (int i = 0; i < p->mean.count || i < p->std.count; i++) {
        bool mean = i < p->mean.count && p->mean.values[i] > 1;

        if (mean || (i < p->std.count && p->std.values[i] > STD_MAX))
            return hr__infer_fail(
                infer, mean ? "mean" : "std", HR_ERR_RANGE,
                "%s %g is one of levels of 0 to 255, and levels are 0 to "
                "1 here: divide mean and std by 255",
                mean ? "mean" : "std", mean ? p->mean.values[i] : p->std.values[i]);
    }
    return HR_OK;
}

static enum hr_err normalize_infer(struct hr_infer *infer)
{
    const struct normalize *p = infer->params;
    struct hr_field *field = infer->fields[0];
    int64_t channels;

    HR_TRY(hr__infer_levels(infer, 0));
    if (field->dtype == HR_U8)
        HR_TRY(check_levels(infer, p));
    channels = hr__field_channels(field)->size;
    if (!count_fits(p->mean.count, channels))
        return hr__infer_fail(infer, "mean", HR_ERR_SHAPE,
                              "%d means for an image of %d channels", p->mean.count,
                              (int)channels);
    if (!count_fits(p->std.count, channels))
        return hr__infer_fail(infer, "std", HR_ERR_SHAPE,
                              "%d deviations for an image of %d channels", p->std.count,
                              (int)channels);
    if (p->dtype != HR_F32 && p->dtype != HR_F16 && p->dtype != HR_BF16)
        return hr__infer_fail(infer, "dtype", HR_ERR_TYPE,
                              "dtype must be float32, float16 or bfloat16");
    field->dtype = (enum hr_dtype)p->dtype;
    field->meaning = HR_MEANING_IMAGE_NORMAL;
    return HR_OK;
}

static enum hr_err normalize_apply(struct hr_op_ctx *ctx)
{
    const struct normalize *p = ctx->params;
    double unit = ctx->fields[0]->dtype == HR_U8 ? 255.0 : 1.0;
    float scale[4], bias[4];
    int32_t width, height, channels;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    if (!count_fits(p->mean.count, channels) || !count_fits(p->std.count, channels))
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "%d means and %d deviations for an image of %d channels",
                        p->mean.count, p->std.count, (int)channels);
    for (int i = 0; i < 4; i++) {
        double mean = p->mean.values[i < p->mean.count ? i : 0];
        double std = p->std.values[i < p->std.count ? i : 0];
        scale[i] = (float)(1 / (unit * std));
        bias[i] = (float)(-mean / std);
    }
    HR_TRY(hr__image_affine(ctx, 0, scale, bias));
    return hr__image_cast(ctx, 0, (enum hr_dtype)p->dtype, 1.0f);
}

const struct hr_op hr_op_image_normalize = {
    .name = "image.normalize",
    .summary = "subtract a mean and divide by a deviation, per channel",
    .doc =
        "`(x - mean) / std` with x in 0..1: uint8 images are divided by 255 in the same "
        "step, so no cast is needed before. Computed as `x * a + b` in float32, hence up "
        "to one unit in the last place from torchvision. `mean: half` gives -1..1.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_POINTWISE | HR_TRAIT_AFFINE | HR_TRAIT_DTYPE |
              HR_TRAIT_DEFERS | HR_TRAIT_GROWS,
    HR_PARAMS(normalize_params, struct normalize),
    .infer = normalize_infer,
    .apply = normalize_apply,
};
