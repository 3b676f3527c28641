/*
 * api/jpeg_api.c - include/headrace/jpeg.h except seek points: info, decode, resize.
 */
#include "api/jpeg_api.h"

#include "codec/image_source.h"
#include "codec/jpeg_describe.h"
#include "core/alloc.h"
#include "core/error.h"

#include <stdio.h>
#include <string.h>

/* ---- info ---- */

static enum hr_err probe(const void *data, size_t bytes, struct hr_image_info *ret_info,
                         struct hr_error *reterr)
{
    if (data == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "data must not be NULL or empty");
    HR_TRY(hr__image_probe(data, bytes, ret_info, reterr));
    if (ret_info->format != HR_IMAGE_JPEG)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "not a JPEG: it is %s",
                        hr__image_format_name(ret_info->format));
    return HR_OK;
}

enum hr_err hr_jpeg_read_info(const void *data, size_t bytes,
                              struct hr_jpeg_info *ret_info, struct hr_error *reterr)
{
    struct hr_jpeg_description d;
    struct hr_image_info info;

    if (ret_info == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "ret_info must not be NULL");
    HR_TRY(probe(data, bytes, &info, reterr));
    hr__jpeg_describe(data, bytes, &d);
    *ret_info = (struct hr_jpeg_info){
        .width = info.width,
        .height = info.height,
        .components = info.channels,
        .sampling_x = d.sampling_x,
        .sampling_y = d.sampling_y,
        .quality = d.quality,
        .restart = d.restart,
        .orientation = info.orientation,
        .baseline = d.baseline,
        .accepted = d.reason == NULL,
    };
    if (d.reason != NULL)
        snprintf(ret_info->reason, sizeof ret_info->reason, "%s", d.reason);
    return HR_OK;
}

/* ---- per-thread decoders ---- */

struct hr_jpeg_worker *hr_jpeg_worker_create(void)
{
    struct hr_jpeg_worker *worker = hr__calloc(1, sizeof *worker);

    if (worker == NULL)
        return NULL;
    hr__arena_init(&worker->arena);
    if (hr__image_decoder_create(&worker->decoder) == HR_OK)
        return worker;
    hr_jpeg_worker_destroy(worker);
    return NULL;
}

void hr_jpeg_worker_destroy(struct hr_jpeg_worker *worker)
{
    if (worker == NULL)
        return;
    hr__image_decoder_destroy(worker->decoder);
    hr__jpeg_destroy(worker->own);
    hr__arena_finish(&worker->arena);
    hr__free(worker);
}

/* ---- windows ---- */

static int log2_of(int32_t scale)
{
    return scale <= 1 ? 0 : scale == 2 ? 1 : scale == 4 ? 2 : 3;
}

/* The part [at, at + size) of an axis; a size of 0 means the rest. */
static bool
clip_range(int32_t at, int32_t size, int32_t full, int32_t *ret_at, int32_t *ret_size)
{
    if (at < 0 || at >= full || size < 0 || size > full - at)
        return false;
    *ret_at = at;
    *ret_size = size != 0 ? size : full - at;
    return true;
}

static enum hr_err
request_of(int32_t width, int32_t height, const struct hr_jpeg_window *w,
           struct hr_image_request *request, struct hr_error *reterr)
{
    if (w->scale < 0 || w->scale > 8 || (w->scale & (w->scale - 1)) != 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "scale must be 1, 2, 4 or 8, not %d",
                        (int)w->scale);
    *request = (struct hr_image_request){.channels =
                                             w->gray ? HR_CHANNELS_GRAY : HR_CHANNELS_RGB,
                                         .scale_log2 = log2_of(w->scale),
                                         .pixels_max = w->pixels_max};
    if (clip_range(w->x, w->width, width, &request->x, &request->width) &&
        clip_range(w->y, w->height, height, &request->y, &request->height))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "window %dx%d at (%d, %d) is not inside the photo of %dx%d",
                    (int)w->width, (int)w->height, (int)w->x, (int)w->y, (int)width,
                    (int)height);
}

static int32_t scaled(int32_t at, int32_t size, int log2)
{
    return ((at + size + (1 << log2) - 1) >> log2) - (at >> log2);
}

enum hr_err
hr_jpeg_window_size(const struct hr_jpeg_info *info, const struct hr_jpeg_window *window,
                    int32_t *ret_width, int32_t *ret_height, struct hr_error *reterr)
{
    struct hr_image_request request = {0};

    if (info == NULL || window == NULL || ret_width == NULL || ret_height == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "an argument is NULL");
    HR_TRY(request_of(info->width, info->height, window, &request, reterr));
    *ret_width = scaled(request.x, request.width, request.scale_log2);
    *ret_height = scaled(request.y, request.height, request.scale_log2);
    return HR_OK;
}

/* The decoder may return more than the window. */
static void
copy_window(const struct hr_image_part *part, const struct hr_image_request *request,
            uint8_t *to, size_t row_bytes)
{
    const struct hr_pixels *p = &part->pixels;
    int log2 = part->scale_log2;
    int32_t width = scaled(request->x, request->width, log2);
    int32_t height = scaled(request->y, request->height, log2);
    const uint8_t *from = (const uint8_t *)p->data +
                          ((request->y >> log2) - part->y) * p->row_stride +
                          ((request->x >> log2) - part->x) * p->pixel_stride;

    for (; height > 0; height--, from += p->row_stride, to += row_bytes)
        memcpy(to, from, (size_t)width * (size_t)p->channels);
}

static enum hr_err decode(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
                          const struct hr_jpeg_window *window, uint8_t *pixels,
                          size_t row_bytes, struct hr_error *reterr)
{
    struct hr_image_request request;
    struct hr_jpeg_index index;
    struct hr_image_info info;
    struct hr_image_part part;
    size_t row;

    HR_TRY(probe(data, bytes, &info, reterr));
    HR_TRY(request_of(info.width, info.height, window, &request, reterr));
    row = (size_t)scaled(request.x, request.width, request.scale_log2) *
          (window->gray ? 1 : 3);
    if (row_bytes < row)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "row_bytes is %zu, but a row needs %zu",
                        row_bytes, row);
    HR_TRY(hr__jpeg_entries_use(window->entries, data, bytes, &index, reterr));
    request.index = window->entries != NULL ? &index : NULL;
    HR_TRY(hr__image_decode(worker->decoder, &worker->arena, data, bytes, &info, &request,
                            &part, reterr));
    copy_window(&part, &request, pixels, row_bytes);
    return HR_OK;
}

enum hr_err hr_jpeg_decode(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
                           const struct hr_jpeg_window *window, uint8_t *pixels,
                           size_t row_bytes, struct hr_error *reterr)
{
    enum hr_err err;

    if (worker == NULL || window == NULL || pixels == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "an argument is NULL");
    err = decode(worker, data, bytes, window, pixels, row_bytes, reterr);
    hr__arena_reset(&worker->arena);
    return err;
}

/* ---- resizes ---- */

static bool is_dtype_known(enum hr_dtype dtype)
{
    return dtype == HR_U8 || dtype == HR_F16 || dtype == HR_BF16 || dtype == HR_F32;
}

static enum hr_err check_resize(const struct hr_jpeg_resize *what, enum hr_dtype dtype,
                                size_t out_bytes, struct hr_error *reterr)
{
    size_t bytes;

    if (what->out_width < 1 || what->out_height < 1 || what->out_width > 65535 ||
        what->out_height > 65535)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "the output size must be 1 to 65535 per side, not %dx%d",
                        (int)what->out_width, (int)what->out_height);
    if (!is_dtype_known(dtype))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "the dtype must be uint8, float16, bfloat16 or float32, not %s",
                        hr_dtype_name(dtype));
    if ((unsigned)what->mode > HR_JPEG_MODE_FAST)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "there is no mode %d", (int)what->mode);
    bytes = (size_t)what->out_width * (size_t)what->out_height * hr_dtype_size(dtype) *
            (what->gray ? 1 : 3);
    if (bytes != out_bytes)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "the output has %zu bytes, but out_bytes is %zu", bytes,
                        out_bytes);
    return HR_OK;
}

static enum hr_err
place_box(const struct hr_jpeg_resize *what, const struct hr_image_info *info,
          struct hr_image_view *view, struct hr_error *reterr)
{
    double width = what->width != 0 ? what->width : info->width - what->x;
    double height = what->height != 0 ? what->height : info->height - what->y;

    if (!(what->x >= 0 && what->y >= 0 && width > 0 && height > 0 &&
          what->x + width <= info->width && what->y + height <= info->height))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "window %gx%g at (%g, %g) is not inside the photo of %dx%d",
                        width, height, what->x, what->y, (int)info->width,
                        (int)info->height);
    view->clip_width = info->width;
    view->clip_height = info->height;
    view->box_x = what->x;
    view->box_y = what->y;
    view->box_width = width;
    view->box_height = height;
    return HR_OK;
}

static struct hr_pixels
pixels_of(const struct hr_jpeg_resize *what, enum hr_dtype dtype, void *out)
{
    int32_t channels = what->gray ? 1 : 3;
    int64_t size = (int64_t)hr_dtype_size(dtype);
    struct hr_pixels p = {.data = out,
                          .dtype = dtype,
                          .width = what->out_width,
                          .height = what->out_height,
                          .channels = channels};

    p.pixel_stride = what->planar ? size : size * channels;
    p.row_stride = p.pixel_stride * p.width;
    p.channel_stride = what->planar ? p.row_stride * p.height : size;
    return p;
}

static struct hr_affine affine_of(const struct hr_jpeg_resize *what)
{
    struct hr_affine affine = {.scale = {0}};

    memcpy(affine.scale, what->scale, sizeof what->scale);
    memcpy(affine.bias, what->bias, sizeof what->bias);
    return affine;
}

static enum hr_err resize(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
                          const struct hr_jpeg_resize *what, void *out, size_t out_bytes,
                          struct hr_error *reterr)
{
    static const enum hr_image_mode modes[] = {HR_MODE_EXACT, HR_MODE_CLOSE,
                                               HR_MODE_FAST};
    enum hr_dtype dtype = what->dtype != HR_DTYPE_NONE ? what->dtype : HR_U8;
    const struct hr_affine affine = affine_of(what);
    const struct hr_image_finish finish = {
        .flip_x = what->flip, .steps = &affine, .step_count = what->affine ? 1 : 0};
    struct hr_image_view view = {
        .width = what->out_width,
        .height = what->out_height,
        .resampled = true,
        .filter = HR_FILTER_BILINEAR,
        .antialias = true,
        .want = what->gray ? HR_CHANNELS_GRAY : HR_CHANNELS_RGB,
        .channels = what->gray ? 1 : 3,
        .orientation = 1,
        .pixels_max = what->pixels_max,
    };
    struct hr_image_source source;
    struct hr_jpeg_index index;
    struct hr_image_info info;
    struct hr_pixels to;

    HR_TRY(check_resize(what, dtype, out_bytes, reterr));
    HR_TRY(probe(data, bytes, &info, reterr));
    HR_TRY(place_box(what, &info, &view, reterr));
    HR_TRY(hr__jpeg_entries_use(what->entries, data, bytes, &index, reterr));
    view.index = what->entries != NULL ? &index : NULL;
    view.mode = modes[what->mode];
    HR_TRY(hr__image_source_decode(worker->decoder, &worker->arena, data, bytes, &info,
                                   &view, &source, reterr));
    to = pixels_of(what, dtype, out);
    return hr__image_source_resample(&worker->arena, &source, &view, &finish, &to,
                                     reterr);
}

enum hr_err hr_jpeg_resize(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
                           const struct hr_jpeg_resize *what, void *out, size_t out_bytes,
                           struct hr_error *reterr)
{
    enum hr_err err;

    if (worker == NULL || what == NULL || out == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "an argument is NULL");
    err = resize(worker, data, bytes, what, out, out_bytes, reterr);
    hr__arena_reset(&worker->arena);
    return err;
}
