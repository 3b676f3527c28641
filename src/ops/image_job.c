/*
 * image_job.c - edits the description of an image.
 *
 * Every edit works on the image "as described so far": it maps its coordinates back
 * through the mirror flags and the resize, or makes the pixels first if the description
 * cannot hold both edits in order. In mode exact an edit is composed only if the
 * arithmetic is bit-equal to that with pixels in between; in the other modes if it
 * differs only by rounding. image_force.c makes the pixels.
 */
#include "ops/image_job.h"

#include <string.h>

#include "kernel/half.h"
#include "op/kind.h"

const struct hr_lazy_class hr__image_class = {
    .name = "image",
    .force = hr__image_force,
    .scratch = hr__image_scratch,
    .encoded_bytes = HR_IMAGE_ENCODED_BYTES,
    .source = hr__image_source,
    .encode = hr__image_encode,
    .decode = hr__image_decode_description,
};

void hr__image_describe(struct hr_value *value, struct hr_image *image)
{
    bool chw = image->layout == HR_LAYOUT_CHW;
    int64_t size = (int64_t)hr_dtype_size(image->dtype);

    value->kind = HR_VALUE_DEFERRED;
    value->dtype = (uint8_t)image->dtype;
    value->ndim = 3;
    value->shared = false;
    value->layout = (uint8_t)image->layout;
    value->data = NULL;
    value->u.lazy = &image->lazy;
    value->dims[0] = chw ? image->channels : hr__image_height(image);
    value->dims[1] = chw ? hr__image_height(image) : hr__image_width(image);
    value->dims[2] = chw ? hr__image_width(image) : image->channels;
    value->strides[2] = size;
    value->strides[1] = size * value->dims[2];
    value->strides[0] = value->strides[1] * value->dims[1];
    value->bytes = (size_t)(value->strides[0] * value->dims[0]);
}

static void init(struct hr_image *image, uint32_t node, int32_t width, int32_t height)
{
    image->lazy.class = &hr__image_class;
    image->orientation = 1;
    image->clip_width = image->width = width;
    image->clip_height = image->height = height;
    image->box_width = width;
    image->box_height = height;
    image->node_decode = image->node_resample = image->node_store = node;
}

static enum hr_err new_image(struct hr_op_ctx *ctx, struct hr_image **ret_image)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof(struct hr_image), &memory));
    memset(memory, 0, sizeof(struct hr_image));
    *ret_image = memory;
    return HR_OK;
}

/* Converts a float16 or bfloat16 tensor to float32, with the same dims and layout. */
static enum hr_err
widen(struct hr_op_ctx *ctx, const struct hr_value *value, struct hr_value *ret_wide)
{
    struct hr_value wide = {0};
    size_t count = (size_t)hr__value_count(value);
    void *half, *memory;

    HR_TRY(hr__op_alloc(ctx, count * 2, &half));
    HR_TRY(hr__op_alloc(ctx, count * 4, &memory));
    hr__value_copy(value, half);
    if (value->dtype == HR_F16)
        hr__f16_to_f32(half, memory, count);
    else
        hr__bf16_to_f32(half, memory, count);
    hr__value_set_tensor(&wide, HR_F32, value->ndim, value->dims, memory, NULL);
    wide.layout = value->layout;
    *ret_wide = wide;
    return HR_OK;
}

static enum hr_err
wrap(struct hr_op_ctx *ctx, struct hr_value *value, struct hr_image **ret_image)
{
    bool half = value->dtype == HR_F16 || value->dtype == HR_BF16;
    struct hr_value source = *value;
    struct hr_pixels pixels;
    struct hr_image *image;

    if (half)
        HR_TRY(widen(ctx, value, &source));
    HR_TRY(hr__image_view(&source, &pixels, ctx->error));
    HR_TRY(new_image(ctx, &image));
    init(image, ctx->node, pixels.width, pixels.height);
    source.owner = NULL;
    image->pixels = source;
    image->source_dtype = image->dtype = (enum hr_dtype)value->dtype;
    image->channels = pixels.channels;
    image->layout = hr__image_layout_of(value);
    image->mode = HR_MODE_EXACT;
    hr__image_describe(value, image);
    *ret_image = image;
    return HR_OK;
}

enum hr_err
hr__image_edit(struct hr_op_ctx *ctx, size_t field, struct hr_image **ret_image)
{
    struct hr_value *value = ctx->fields[field];
    struct hr_image *image;

    if (value->kind == HR_VALUE_DEFERRED && value->u.lazy->class != &hr__image_class)
        HR_TRY(hr__value_force(ctx->thread, value, NULL, ctx->error));
    if (value->kind == HR_VALUE_TENSOR)
        return wrap(ctx, value, ret_image);
    if (value->kind != HR_VALUE_DEFERRED)
        return hr__fail(ctx->error, HR_ERR_TYPE, "the field holds no image");
    if (value->shared) {
        hr__image_seek_share((const struct hr_image *)value->u.lazy, &ctx->thread->arena);
        HR_TRY(new_image(ctx, &image));
        *image = *(const struct hr_image *)value->u.lazy;
        image->pixels.shared = true;
        hr__image_describe(value, image);
    }
    *ret_image = (struct hr_image *)value->u.lazy;
    return HR_OK;
}

int32_t hr__image_decoded_channels(const struct hr_image_info *info, int want)
{
    if (want == HR_CHANNELS_RGB)
        return 3;
    if (want == HR_CHANNELS_GRAY || want == HR_CHANNELS_LABELS)
        return 1;
    return info->cmyk ? 3 : info->channels;
}

enum hr_err hr__image_check_size(const struct hr_image_info *info, uint64_t pixels_max,
                                 struct hr_error *error)
{
    if (pixels_max == 0)
        pixels_max = 1 << 28;
    if (info->width <= HR_IMAGE_EXTENT_MAX && info->height <= HR_IMAGE_EXTENT_MAX &&
        (uint64_t)info->width * (uint64_t)info->height <= pixels_max)
        return HR_OK;
    return hr__fail(error, HR_ERR_LIMIT,
                    "an image of %dx%d is larger than the limit of %llu pixels",
                    (int)info->width, (int)info->height, (unsigned long long)pixels_max);
}

static enum hr_err
new_photo(struct hr_op_ctx *ctx, struct hr_seek *seek, struct hr_image_photo **ret_photo)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof(struct hr_image_photo), &memory));
    *ret_photo = memory;
    **ret_photo = (struct hr_image_photo){.seek = seek};
    return HR_OK;
}

enum hr_err hr__image_begin(struct hr_op_ctx *ctx, size_t field, const void *data,
                            size_t bytes, const struct hr_image_begin *how)
{
    struct hr_image_info *info;
    struct hr_image *image;
    bool turned;
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof *info, &memory));
    info = memory;
    HR_TRY(hr__image_probe(data, bytes, info, ctx->error));
    HR_TRY(hr__image_check_size(info, how->pixels_max, ctx->error));
    if (how->channels == HR_CHANNELS_LABELS)
        HR_TRY(hr__image_check_labels(info, ctx->error));
    HR_TRY(new_image(ctx, &image));
    HR_TRY(new_photo(ctx, how->seek, &image->photo));
    turned = how->orientation && info->orientation >= 5;
    init(image, ctx->node, turned ? info->height : info->width,
         turned ? info->width : info->height);
    image->encoded = data;
    image->encoded_bytes = bytes;
    image->info = info;
    image->mode = how->mode;
    image->want_channels = how->channels;
    image->pixels_max = how->pixels_max;
    image->orientation = how->orientation ? info->orientation : 1;
    image->channels = hr__image_decoded_channels(info, how->channels);
    image->source_dtype = image->dtype = HR_U8;
    image->layout = HR_LAYOUT_HWC;
    hr__value_clear(ctx->fields[field]);
    hr__image_describe(ctx->fields[field], image);
    return HR_OK;
}

/* Makes the pixels described so far, and starts a new description of them. */
static enum hr_err
settle(struct hr_op_ctx *ctx, size_t field, struct hr_image **ret_image)
{
    enum hr_image_mode mode = (*ret_image)->mode;

    HR_TRY(hr__value_force(ctx->thread, ctx->fields[field], NULL, ctx->error));
    HR_TRY(hr__image_edit(ctx, field, ret_image));
    (*ret_image)->mode = mode;
    return HR_OK;
}

/* True if the kernel rounds the described result to its dtype only after all of its
 * arithmetic, so that arithmetic on the rounded numbers cannot be added. */
static bool rounds_last(const struct hr_image *image)
{
    if (image->dtype == HR_F32)
        return false;
    if (image->step_count > 0 || image->dtype != image->source_dtype)
        return true;
    return image->resampled && !image->round_levels;
}

/* A window of a resize. In mode exact the resize stays as it was, as its weights depend
 * on all of it; in the other modes the box shrinks. */
static void
crop_resized(struct hr_image *image, int32_t x, int32_t y, int32_t width, int32_t height)
{
    double ratio_x = image->box_width / image->width;
    double ratio_y = image->box_height / image->height;

    if (image->mode == HR_MODE_EXACT) {
        if (image->full_width == 0) {
            image->full_width = image->width;
            image->full_height = image->height;
        }
        image->at_x += x;
        image->at_y += y;
        return;
    }
    image->box_x += x * ratio_x;
    image->box_y += y * ratio_y;
    image->box_width = width * ratio_x;
    image->box_height = height * ratio_y;
}

struct window {
    int32_t x, y, width, height;
};

/* One axis of a window of an image with a frame: the frame becomes that of the window,
 * the window that of the image inside. False if it shows nothing of the image. */
static bool
crop_span(int32_t *at, int32_t *size, int32_t shown, int32_t *before, int32_t *after)
{
    int32_t from = *at > *before ? *at - *before : 0;
    int32_t end = *at + *size - *before < shown ? *at + *size - *before : shown;

    if (from >= end)
        return false;
    *before = *before > *at ? *before - *at : 0;
    *after = *size - *before - (end - from);
    *at = from;
    *size = end - from;
    return true;
}

/* False if the description cannot hold the window. In modes other than exact a window of
 * a resize would differ by rounding from that of the pixels that the frame is around. */
static bool crop_frame(struct hr_image *image, struct window *w)
{
    struct hr_image cropped = *image;
    struct window inside = *w;

    if (image->resampled && image->mode != HR_MODE_EXACT)
        return false;
    if (!crop_span(&inside.x, &inside.width, image->width, &cropped.frame_left,
                   &cropped.frame_right) ||
        !crop_span(&inside.y, &inside.height, image->height, &cropped.frame_top,
                   &cropped.frame_bottom))
        return false;
    *image = cropped;
    *w = inside;
    return true;
}

static void crop(struct hr_image *image, struct window w)
{
    if (image->flip_x)
        w.x = image->width - w.x - w.width;
    if (image->flip_y)
        w.y = image->height - w.y - w.height;
    if (image->resampled) {
        crop_resized(image, w.x, w.y, w.width, w.height);
    } else {
        image->box_x = image->clip_x += w.x;
        image->box_y = image->clip_y += w.y;
        image->box_width = image->clip_width = w.width;
        image->box_height = image->clip_height = w.height;
    }
    image->width = w.width;
    image->height = w.height;
}

enum hr_err hr__image_crop(struct hr_op_ctx *ctx, size_t field, int32_t x, int32_t y,
                           int32_t width, int32_t height)
{
    struct window w = {x, y, width, height};
    struct hr_image *image;

    HR_TRY(hr__image_edit(ctx, field, &image));
    if (x == 0 && y == 0 && width == hr__image_width(image) &&
        height == hr__image_height(image))
        return HR_OK;
    if (hr__image_framed(image) && !crop_frame(image, &w))
        HR_TRY(settle(ctx, field, &image));
    if (w.width != image->width || w.height != image->height)
        crop(image, w);
    hr__image_describe(ctx->fields[field], image);
    return HR_OK;
}

static bool resize_composes(const struct hr_image *image)
{
    if (image->resampled || rounds_last(image) || hr__image_framed(image))
        return false;
    if (image->mode != HR_MODE_EXACT)
        return true;
    return image->step_count == 0 && image->dtype == image->source_dtype &&
           !image->flip_x && !image->flip_y;
}

enum hr_err hr__image_resize(struct hr_op_ctx *ctx, size_t field, int32_t width,
                             int32_t height, int filter, bool antialias)
{
    struct hr_image *image;

    HR_TRY(hr__image_edit(ctx, field, &image));
    if (width == hr__image_width(image) && height == hr__image_height(image))
        return HR_OK;
    if (!resize_composes(image))
        HR_TRY(settle(ctx, field, &image));
    image->resampled = true;
    image->filter = filter;
    image->antialias = antialias;
    image->round_levels = image->dtype == HR_U8;
    image->width = width;
    image->height = height;
    image->node_resample = ctx->node;
    hr__image_describe(ctx->fields[field], image);
    return HR_OK;
}

static void exchange(int32_t *a, int32_t *b)
{
    int32_t kept = *a;

    *a = *b;
    *b = kept;
}

enum hr_err hr__image_flip(struct hr_op_ctx *ctx, size_t field, bool x, bool y)
{
    struct hr_image *image;

    if (!x && !y)
        return HR_OK;
    HR_TRY(hr__image_edit(ctx, field, &image));
    image->flip_x ^= x;
    image->flip_y ^= y;
    if (x)
        exchange(&image->frame_left, &image->frame_right);
    if (y)
        exchange(&image->frame_top, &image->frame_bottom);
    image->node_store = ctx->node;
    return HR_OK;
}

/* The value as the dtype holds it. */
static float held(enum hr_dtype dtype, float value)
{
    if (dtype == HR_F16)
        return hr__unhalf(hr__half(value));
    return dtype == HR_BF16 ? hr__unbhalf(hr__bhalf(value)) : value;
}

static enum hr_err
describe_frame(struct hr_op_ctx *ctx, size_t field, int32_t left, int32_t top,
               int32_t right, int32_t bottom, const float fill[4])
{
    struct hr_image *image;

    HR_TRY(hr__image_edit(ctx, field, &image));
    if (hr__image_framed(image))
        HR_TRY(settle(ctx, field, &image));
    image->frame_left = left;
    image->frame_top = top;
    image->frame_right = right;
    image->frame_bottom = bottom;
    for (int c = 0; c < 4; c++)
        image->frame_fill[c] = held(image->dtype, fill[c]);
    image->node_store = ctx->node;
    hr__image_describe(ctx->fields[field], image);
    return HR_OK;
}

enum hr_err
hr__image_frame(struct hr_op_ctx *ctx, size_t field, int32_t left, int32_t top,
                int32_t right, int32_t bottom, enum hr_pad_mode mode, const float fill[4])
{
    if (left == 0 && top == 0 && right == 0 && bottom == 0)
        return HR_OK;
    if (mode == HR_PAD_CONSTANT)
        return describe_frame(ctx, field, left, top, right, bottom, fill);
    return hr__image_extend(ctx, field, left, top, right, bottom, mode);
}

enum hr_err
hr__image_move(struct hr_op_ctx *ctx, size_t field, const struct hr_move *move)
{
    HR_TRY(hr__image_frame(ctx, field, move->left, move->top, move->right, move->bottom,
                           (enum hr_pad_mode)move->pad_mode, move->fill));
    if (move->x != 0 || move->y != 0 ||
        move->crop_width != move->width + move->left + move->right ||
        move->crop_height != move->height + move->top + move->bottom)
        HR_TRY(hr__image_crop(ctx, field, move->x, move->y, move->crop_width,
                              move->crop_height));
    if (move->to_width != move->crop_width || move->to_height != move->crop_height)
        HR_TRY(hr__image_resize(ctx, field, move->to_width, move->to_height, move->filter,
                                move->antialias));
    return hr__image_flip(ctx, field, move->flip_x, move->flip_y);
}

enum hr_err hr__image_affine(struct hr_op_ctx *ctx, size_t field, const float scale[4],
                             const float bias[4])
{
    struct hr_image *image;

    HR_TRY(hr__image_edit(ctx, field, &image));
    if (rounds_last(image) || image->step_count == HR_IMAGE_AFFINE_MAX)
        HR_TRY(settle(ctx, field, &image));
    memcpy(image->steps[image->step_count].scale, scale, 4 * sizeof(float));
    memcpy(image->steps[image->step_count].bias, bias, 4 * sizeof(float));
    image->step_count++;
    for (int c = 0; c < 4; c++)
        image->frame_fill[c] = image->frame_fill[c] * scale[c] + bias[c];
    if (image->dtype == HR_U8)
        image->dtype = HR_F32;
    image->node_store = ctx->node;
    hr__image_describe(ctx->fields[field], image);
    return HR_OK;
}

enum hr_err
hr__image_cast(struct hr_op_ctx *ctx, size_t field, enum hr_dtype dtype, float scale)
{
    float scales[4] = {scale, scale, scale, scale}, zeros[4] = {0};
    struct hr_image *image;

    if (scale != 1.0f)
        HR_TRY(hr__image_affine(ctx, field, scales, zeros));
    HR_TRY(hr__image_edit(ctx, field, &image));
    if (image->dtype == dtype)
        return HR_OK;
    if (image->dtype != HR_F32 && rounds_last(image))
        HR_TRY(settle(ctx, field, &image));
    image->dtype = dtype;
    image->node_store = ctx->node;
    hr__image_describe(ctx->fields[field], image);
    return HR_OK;
}

enum hr_err hr__image_layout(struct hr_op_ctx *ctx, size_t field, enum hr_layout layout)
{
    struct hr_image *image;

    HR_TRY(hr__image_edit(ctx, field, &image));
    if (image->layout == layout)
        return HR_OK;
    image->layout = layout;
    image->node_store = ctx->node;
    hr__image_describe(ctx->fields[field], image);
    return HR_OK;
}

enum hr_err hr__image_size(struct hr_op_ctx *ctx, size_t field, int32_t *ret_width,
                           int32_t *ret_height, int32_t *ret_channels)
{
    HR_TRY(hr__image_dims(ctx, field, ret_width, ret_height, ret_channels));
    if (*ret_width < 1 || *ret_height < 1)
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "an image has at least one pixel, not %dx%d", (int)*ret_width,
                        (int)*ret_height);
    return HR_OK;
}

enum hr_err hr__image_dims(struct hr_op_ctx *ctx, size_t field, int32_t *ret_width,
                           int32_t *ret_height, int32_t *ret_channels)
{
    const struct hr_value *value = ctx->fields[field];
    bool chw = hr__image_layout_of(value) == HR_LAYOUT_CHW;

    if ((value->kind != HR_VALUE_TENSOR && value->kind != HR_VALUE_DEFERRED) ||
        value->ndim != 3)
        return hr__fail(ctx->error, HR_ERR_SHAPE, "the field holds no image");
    *ret_width = (int32_t)value->dims[chw ? 2 : 1];
    *ret_height = (int32_t)value->dims[chw ? 1 : 0];
    *ret_channels = (int32_t)value->dims[chw ? 0 : 2];
    return HR_OK;
}
