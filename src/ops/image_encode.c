/*
 * image.encode - pixels to the bytes of a JPEG or PNG file.
 */
#include "codec/image.h"

#include <string.h>

#include "core/alloc.h"
#include "ops/image_job.h"

struct encode {
    const char *field, *to;
    int format, sampling;
    int64_t quality;
};

enum format { FORMAT_JPEG, FORMAT_PNG };
enum sampling { SAMPLING_420, SAMPLING_422, SAMPLING_444 };
static const char *const formats[] = {"jpeg", "png", NULL};
static const char *const samplings[] = {"420", "422", "444", NULL};

static const struct hr_param encode_params[] = {
    HR_P_FIELD(struct encode, field, .fallback = "image", .access = HR_ACCESS_TAKE,
               .help = "the image; it is dropped"),
    HR_P_FIELD(struct encode, to, .fallback = "data", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the file's bytes"),
    HR_P_ENUM(struct encode, format, .fallback = "jpeg", .names = formats,
              .help = "png loses nothing, and takes several times as many bytes"),
    HR_P_INT(struct encode, quality, .fallback = "95", HR_RANGE(1, 100),
             .help = "of a JPEG, as libjpeg counts"),
    HR_P_ENUM(struct encode, sampling, .fallback = "420", .names = samplings,
              .help = "of a JPEG's colours: 420 halves both sides, as most files do, 422 "
                      "the width, 444 neither"),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err check_field(struct hr_infer *infer, const struct hr_field *from)
{
    const struct encode *p = infer->params;
    int64_t most = p->format == FORMAT_JPEG ? 3 : 4;

    if (!hr__field_has_pixels(from) || from->ndim != 3)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" is no image or mask", from->name);
    if (from->dtype != HR_U8)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" is %s, and files have uint8: encode before "
                              "image.normalize, tensor.cast and the like",
                              from->name, hr_dtype_name(from->dtype));
    if (from->layout != HR_LAYOUT_HWC)
        return hr__infer_fail(infer, "field", HR_ERR_SHAPE,
                              "field \"%s\" has its channels first: encode before "
                              "tensor.layout",
                              from->name);
    if (from->meaning == HR_MEANING_MASK && p->format == FORMAT_JPEG)
        return hr__infer_fail(infer, "format", HR_ERR_ARGUMENT,
                              "a JPEG would change the numbers of mask \"%s\": give "
                              "format: png",
                              from->name);
    if (from->dims[2].size > most || (from->dims[2].size == 2 && most == 3))
        return hr__infer_fail(infer, "field", HR_ERR_SHAPE,
                              "field \"%s\" has %lld channels, and a %s %s", from->name,
                              (long long)from->dims[2].size,
                              p->format == FORMAT_JPEG ? "JPEG" : "PNG",
                              most == 3 ? "1 or 3" : "at most 4");
    return HR_OK;
}

static enum hr_err encode_infer(struct hr_infer *infer)
{
    struct hr_field *to = infer->fields[FIELD_TO];
    struct hr_field made = {.kind = HR_FIELD_BYTES, .slot = to->slot};

    HR_TRY(check_field(infer, infer->fields[FIELD_FROM]));
    memcpy(made.name, to->name, sizeof made.name);
    *to = made;
    return HR_OK;
}

static enum hr_err encode(struct hr_op_ctx *ctx, const struct hr_pixels *pixels,
                          void **ret_data, size_t *ret_bytes)
{
    const struct encode *p = ctx->params;
    const struct hr_jpeg_options options = {
        .quality = (int)p->quality,
        .sampling_x = p->sampling == SAMPLING_444 ? 1 : 2,
        .sampling_y = p->sampling == SAMPLING_420 ? 2 : 1,
    };

    return p->format == FORMAT_PNG
               ? hr__image_encode_png(pixels, ret_data, ret_bytes, ctx->error)
               : hr__image_encode_jpeg(pixels, &options, ret_data, ret_bytes, ctx->error);
}

static enum hr_err encode_apply(struct hr_op_ctx *ctx)
{
    struct hr_pixels pixels;
    enum hr_err code;
    size_t bytes;
    void *data, *kept;

    HR_TRY(hr__image_read(ctx, FIELD_FROM, &pixels));
    HR_TRY(encode(ctx, &pixels, &data, &bytes));
    code = hr__op_alloc(ctx, bytes, &kept);
    if (code == HR_OK) {
        memcpy(kept, data, bytes);
        hr__value_clear(ctx->fields[FIELD_FROM]);
        hr__value_set_bytes(ctx->fields[FIELD_TO], kept, bytes, NULL);
    }
    hr__free(data);
    return code;
}

const struct hr_op hr_op_image_encode = {
    .name = "image.encode",
    .summary = "encode an image as a JPEG or PNG file",
    .doc =
        "What image.decode reads. Photos that are resized once and kept as files, by "
        "flow.cache or `headrace pack`, take about a fifth of the bytes of their pixels: "
        "`resize_shortest(256).encode().cache(\"folder\").decode()`. A JPEG changes "
        "levels a little, a PNG does not. The same pixels give the same bytes with the "
        "same build of libjpeg-turbo or libpng.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(encode_params, struct encode),
    .infer = encode_infer,
    .apply = encode_apply,
};
