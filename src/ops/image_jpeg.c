/*
 * image.jpeg - compresses the image with a random quality, and decodes it.
 */
#include "codec/image.h"
#include "core/alloc.h"
#include "ops/image_levels.h"

struct jpeg {
    const char *field;
    struct hr_ints quality;
};

static const struct hr_param jpeg_params[] = {
    HR_P_INTS(struct jpeg, quality, .required = true, .items_min = 1, .items_max = 2,
              HR_RANGE(1, 100), .help = "one number, or [least, most]"),
    HR_P_IMAGE(struct jpeg),
};

static enum hr_err jpeg_infer(struct hr_infer *infer)
{
    const struct jpeg *p = infer->params;
    const struct hr_field *field = infer->fields[0];

    HR_TRY(hr__infer_colours(infer, 0));
    if (field->dtype != HR_U8)
        return hr__infer_fail(infer, field->name, HR_ERR_TYPE,
                              "field \"%s\" is %s, and JPEG has uint8: convert after it",
                              field->name, hr_dtype_name(field->dtype));
    if (p->quality.values[0] > p->quality.values[p->quality.count - 1])
        return hr__infer_fail(infer, "quality", HR_ERR_RANGE,
                              "quality: the smaller number comes first");
    return HR_OK;
}

static int draw(const struct jpeg *p, struct hr_rng *rng)
{
    int64_t least = p->quality.values[0], most = p->quality.values[p->quality.count - 1];

    return (int)(least + (int64_t)hr__rng_below(rng, (uint64_t)(most - least + 1)));
}

static enum hr_err
decode(struct hr_op_ctx *ctx, const void *data, size_t bytes, const struct hr_pixels *to)
{
    struct hr_image_decoder *decoder;
    struct hr_image_request request = {
        .channels = HR_CHANNELS_UNCHANGED, .width = to->width, .height = to->height};
    struct hr_image_info info;
    struct hr_image_part part;

    HR_TRY(hr__image_decoder_of(ctx->thread, &decoder, ctx->error));
    HR_TRY(hr__image_probe(data, bytes, &info, ctx->error));
    HR_TRY(hr__image_decode(decoder, &ctx->thread->arena, data, bytes, &info, &request,
                            &part, ctx->error));
    hr__pixels_store(&part.pixels, to, NULL, 0, false, false);
    return HR_OK;
}

static enum hr_err jpeg_apply(struct hr_op_ctx *ctx)
{
    struct hr_jpeg_options options = {.sampling_x = 2, .sampling_y = 2};
    struct hr_pixels pixels;
    struct hr_rng rng;
    enum hr_err code;
    size_t bytes;
    void *data;

    hr__op_rng(ctx, &rng);
    options.quality = draw(ctx->params, &rng);
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    HR_TRY(hr__image_encode_jpeg(&pixels, &options, &data, &bytes, ctx->error));
    code = decode(ctx, data, bytes, &pixels);
    hr__free(data);
    return code;
}

const struct hr_op hr_op_image_jpeg = {
    .name = "image.jpeg",
    .summary = "compress the image with a random quality, and decode it",
    .doc = "torchvision's JPEG: the blocks and ringing of files of that quality. Colours "
           "have half the resolution, as in most files.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(jpeg_params, struct jpeg),
    .infer = jpeg_infer,
    .apply = jpeg_apply,
};
