/*
 * image_pixels.c - the kernels' view of image tensors, for ops that need pixels.
 */
#include "ops/image_job.h"

#include <assert.h>
#include <string.h>

#include "kernel/half.h"
#include "ops/fill.h"

enum hr_layout hr__image_layout_of(const struct hr_value *value)
{
    if (value->layout != HR_LAYOUT_NONE || value->ndim != 3)
        return (enum hr_layout)value->layout;
    if (value->dims[2] > 4 && value->dims[0] >= 1 && value->dims[0] <= 4)
        return HR_LAYOUT_CHW;
    return HR_LAYOUT_HWC;
}

enum hr_err hr__image_view(const struct hr_value *value, struct hr_pixels *ret_pixels,
                           struct hr_error *reterr)
{
    bool chw = hr__image_layout_of(value) == HR_LAYOUT_CHW;
    int channel = chw ? 0 : 2, row = chw ? 1 : 0, column = chw ? 2 : 1;

    if (value->kind != HR_VALUE_TENSOR || value->ndim != 3)
        return hr__fail(reterr, HR_ERR_SHAPE, "the field holds no image");
    if (value->dtype != HR_U8 && value->dtype != HR_F32)
        return hr__fail(reterr, HR_ERR_TYPE, "an image of %s is not supported",
                        hr_dtype_name((enum hr_dtype)value->dtype));
    if (value->dims[channel] < 1 || value->dims[channel] > 4 || value->dims[row] < 1 ||
        value->dims[column] < 1 || value->dims[row] > INT32_MAX ||
        value->dims[column] > INT32_MAX)
        return hr__fail(reterr, HR_ERR_SHAPE,
                        "an image has 1 to 4 channels and at least one pixel");
    *ret_pixels = (struct hr_pixels){
        .data = value->data,
        .dtype = (enum hr_dtype)value->dtype,
        .width = (int32_t)value->dims[column],
        .height = (int32_t)value->dims[row],
        .channels = (int32_t)value->dims[channel],
        .row_stride = value->strides[row],
        .pixel_stride = value->strides[column],
        .channel_stride = value->strides[channel],
    };
    return HR_OK;
}

enum hr_err
hr__image_read(struct hr_op_ctx *ctx, size_t field, struct hr_pixels *ret_pixels)
{
    HR_TRY(hr__value_force(ctx->thread, ctx->fields[field], NULL, ctx->error));
    return hr__image_view(ctx->fields[field], ret_pixels, ctx->error);
}

void hr__image_replace(struct hr_op_ctx *ctx, size_t field, const struct hr_value *made)
{
    hr__value_clear(ctx->fields[field]);
    *ctx->fields[field] = *made;
}

void hr__infer_size(struct hr_field *field, int64_t width, int64_t height)
{
    if (width < 0)
        hr__dim_unknown(hr__field_width(field), "width");
    else
        hr__dim_set(hr__field_width(field), width);
    if (height < 0)
        hr__dim_unknown(hr__field_height(field), "height");
    else
        hr__dim_set(hr__field_height(field), height);
}

enum hr_err hr__infer_pixel_dtype(struct hr_infer *infer, size_t field)
{
    const struct hr_field *f = infer->fields[field];

    if (f->dtype == HR_U8 || f->dtype == HR_F32)
        return HR_OK;
    return hr__infer_fail(infer, f->name, HR_ERR_TYPE,
                          "field \"%s\" is %s, and this op needs uint8 or float32: "
                          "convert to %s after it",
                          f->name, hr_dtype_name(f->dtype), hr_dtype_name(f->dtype));
}

enum hr_err hr__infer_pixels(struct hr_infer *infer, size_t field)
{
    HR_TRY(hr__infer_image(infer, field));
    return hr__infer_pixel_dtype(infer, field);
}

enum hr_err hr__infer_colours(struct hr_infer *infer, size_t field)
{
    struct hr_field *f = infer->fields[field];
    int64_t channels;

    HR_TRY(hr__infer_levels(infer, field));
    HR_TRY(hr__infer_pixels(infer, field));
    channels = hr__field_channels(f)->size;
    if (channels < 0 || channels == 1 || channels == 3)
        return HR_OK;
    return hr__infer_fail(infer, f->name, HR_ERR_SHAPE,
                          "field \"%s\" has %d channels; colour ops need 1 or 3", f->name,
                          (int)channels);
}

/* The source position of a position in the padded image. `reflect` does not repeat the
 * edge, and reflects repeatedly if the padding is wider than the image. */
static int32_t framed(int32_t at, int32_t size, enum hr_pad_mode mode)
{
    int32_t period = 2 * (size - 1);

    if (at >= 0 && at < size)
        return at;
    if (mode == HR_PAD_EDGE || size == 1)
        return at < 0 ? 0 : size - 1;
    at = (at % period + period) % period;
    return at < size ? at : period - at;
}

static void put(const struct hr_pixels *in, const struct hr_pixels *out, int32_t x,
                int32_t y, int32_t from_x, int32_t from_y)
{
    for (int32_t c = 0; c < out->channels; c++) {
        char *to = (char *)out->data + y * out->row_stride + x * out->pixel_stride +
                   c * out->channel_stride;
        const char *from = (const char *)in->data + from_y * in->row_stride +
                           from_x * in->pixel_stride + c * in->channel_stride;

        if (out->dtype == HR_U8)
            *(uint8_t *)to = *(const uint8_t *)from;
        else
            memcpy(to, from, sizeof(float));
    }
}

struct hr_pixels hr__image_inside(const struct hr_pixels *out, int32_t x, int32_t y,
                                  int32_t width, int32_t height)
{
    struct hr_pixels inside = *out;

    assert(x >= 0 && y >= 0 && x + width <= out->width && y + height <= out->height);
    inside.data = (char *)out->data + y * out->row_stride + x * out->pixel_stride;
    inside.width = width;
    inside.height = height;
    return inside;
}

/* Repeats the first `unit` bytes up to `bytes`. */
static void repeat(char *to, size_t unit, size_t bytes)
{
    for (size_t done = unit, next; done < bytes; done += next) {
        next = done < bytes - done ? done : bytes - done;
        memcpy(to + done, to, next);
    }
}

static void put_level(enum hr_dtype dtype, float value, char *to)
{
    if (dtype == HR_U8)
        *(uint8_t *)to = hr__round_u8(value);
    else
        hr__fill(to, dtype, 1, (double)value);
}

void hr__image_fill(const struct hr_pixels *out, int32_t x, int32_t y, int32_t count,
                    const float fill[4])
{
    char *to = (char *)out->data + y * out->row_stride + x * out->pixel_stride;
    size_t unit = (size_t)out->pixel_stride, bytes = (size_t)count * unit;
    bool planar = unit == hr_dtype_size(out->dtype);

    if (count == 0)
        return;
    for (int32_t c = 0; c < out->channels; c++) {
        put_level(out->dtype, fill[c], to + c * out->channel_stride);
        if (planar)
            repeat(to + c * out->channel_stride, unit, bytes);
    }
    if (!planar)
        repeat(to, unit, bytes);
}

enum hr_err
hr__image_extend(struct hr_op_ctx *ctx, size_t field, int32_t left, int32_t top,
                 int32_t right, int32_t bottom, enum hr_pad_mode mode)
{
    enum hr_layout layout = hr__image_layout_of(ctx->fields[field]);
    enum hr_dtype dtype = (enum hr_dtype)ctx->fields[field]->dtype;
    struct hr_pixels in, out, middle;
    struct hr_value made;

    if (dtype != HR_U8) /* float16 to float32 and back is exact */
        HR_TRY(hr__image_cast(ctx, field, HR_F32, 1.0f));
    HR_TRY(hr__image_read(ctx, field, &in));
    HR_TRY(hr__image_make(ctx->thread, in.width + left + right, in.height + top + bottom,
                          in.channels, in.dtype, layout, &made, &out, ctx->error));
    middle = hr__image_inside(&out, left, top, in.width, in.height);
    hr__pixels_store(&in, &middle, NULL, 0, false, false);
    for (int32_t y = 0; y < out.height; y++) {
        bool beside = y >= top && y < top + in.height;

        for (int32_t x = 0; x < out.width; x++) {
            if (beside && x == left)
                x += in.width;
            if (x < out.width)
                put(&in, &out, x, y, framed(x - left, in.width, mode),
                    framed(y - top, in.height, mode));
        }
    }
    hr__image_replace(ctx, field, &made);
    return dtype == in.dtype ? HR_OK : hr__image_cast(ctx, field, dtype, 1.0f);
}
