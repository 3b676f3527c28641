/*
 * image.decode - a photo's bytes become a described image; its pixels are made when
 * somebody needs them, and then only those that matter.
 */
#include "ops/image_job.h"

struct decode {
    const char *field, *to;
    int color, mode;
    bool orientation;
    int64_t pixels_max;
};

static const char *const colors[] = {"rgb", "gray", "unchanged", NULL};
static const char *const modes[] = {"exact", "close", "fast", NULL};

static const struct hr_param decode_params[] = {
    HR_P_FIELD(struct decode, field, .fallback = "data", .access = HR_ACCESS_TAKE,
               .help = "the field with the encoded bytes; it is gone afterwards"),
    HR_P_FIELD(struct decode, to, .fallback = "image", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the image"),
    HR_P_ENUM(struct decode, color, .fallback = "rgb", .names = colors,
              .help =
                  "channels: rgb repeats gray and drops alpha; unchanged is as in the "
                  "file"),
    HR_P_BOOL(struct decode, orientation, .fallback = "false",
              .help = "turn the image as its EXIF data says"),
    HR_P_ENUM(struct decode, mode, .fallback = "close", .names = modes,
              .help = "exact: decode at full size always; close: at a half, quarter or "
                      "eighth where 1.5 times the wanted size remains; fast: where the "
                      "wanted size remains"),
    HR_P_INT(struct decode, pixels_max, .fallback = "268435456", HR_RANGE(1, 4e9),
             .unit = "pixels", .help = "refuse larger images"),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err decode_infer(struct hr_infer *infer)
{
    const struct decode *p = infer->params;
    struct hr_field *to = infer->fields[FIELD_TO];
    const struct hr_field *from = infer->fields[FIELD_FROM];

    if (from != to && from->kind != HR_FIELD_BYTES)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" holds no bytes to decode", p->field);
    *to = (struct hr_field){.kind = HR_FIELD_TENSOR,
                            .dtype = HR_U8,
                            .ndim = 3,
                            .meaning = HR_MEANING_IMAGE_U8,
                            .layout = HR_LAYOUT_HWC,
                            .slot = to->slot};
    for (size_t i = 0; p->to[i] != '\0' && i < HR_FIELD_NAME_MAX; i++)
        to->name[i] = p->to[i];
    hr__dim_unknown(&to->dims[0], "height");
    hr__dim_unknown(&to->dims[1], "width");
    if (p->color == HR_CHANNELS_UNCHANGED)
        hr__dim_unknown(&to->dims[2], "channels");
    else
        hr__dim_set(&to->dims[2], p->color == HR_CHANNELS_GRAY ? 1 : 3);
    return HR_OK;
}

static enum hr_err decode_apply(struct hr_op_ctx *ctx)
{
    const struct decode *p = ctx->params;
    struct hr_value bytes = *ctx->fields[FIELD_FROM];
    const struct hr_image_begin how = {
        .mode = (enum hr_image_mode)p->mode,
        .channels = (enum hr_image_channels)p->color,
        .orientation = p->orientation,
        .pixels_max = (uint64_t)p->pixels_max,
    };
    enum hr_err err;

    if (bytes.kind != HR_VALUE_BYTES)
        return hr__fail(ctx->error, HR_ERR_TYPE, "the field holds no bytes to decode");
    *ctx->fields[FIELD_FROM] = (struct hr_value){0};
    err = hr__image_begin(ctx, FIELD_TO, bytes.data, bytes.bytes, &how);
    if (err == HR_OK)
        ctx->fields[FIELD_TO]->owner = bytes.owner;
    else
        hr_buffer_unref(bytes.owner);
    return err;
}

const struct hr_op hr_op_image_decode = {
    .name = "image.decode",
    .summary = "bytes of a JPEG, PNG, WebP or PNM file to an image",
    .doc =
        "Gives uint8 levels, [height, width, channels]. The decoding waits until pixels "
        "are needed: a crop behind it means that the rest of the photo is never "
        "decoded, a resize that it may be decoded at a reduced scale (JPEG, see "
        "`mode`). Differs from torchvision: CMYK is converted to RGB, 16-bit files are "
        "reduced to 8 bits, and a damaged file is an error instead of a partly gray "
        "image.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DECODES | HR_TRAIT_DEFERS | HR_TRAIT_GROWS,
    HR_PARAMS(decode_params, struct decode),
    .infer = decode_infer,
    .apply = decode_apply,
};
