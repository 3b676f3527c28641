/*
 * image_force.c - making the pixels of a described image.
 *
 * Decode no more than the filter's taps reach, at the lowest scale that the mode allows;
 * then one kernel resamples, mirrors, maps and stores where the result is wanted. Taps
 * are clamped to the clip rectangle as if it alone had been decoded: a cut made tighter
 * than the clip lies where no tap reaches. A photo that its EXIF data turns is put
 * upright by a copy of the decoded part, before any arithmetic.
 */
#include "ops/image_job.h"

#include <math.h>
#include <string.h>

#include "kernel/resample.h"

/* Pixels made available, and where the box lies in them. With `planar` they are luma, and
 * chroma stands beside it. */
struct source {
    struct hr_pixels pixels;
    bool planar;
    struct hr_ycc_planes ycc;
    double box_x, box_y, box_width, box_height;
};

struct rect {
    int32_t x, y, width, height;
};

static enum hr_err create_decoder(void **ret_object, struct hr_error *reterr)
{
    struct hr_image_decoder *decoder;

    if (hr__image_decoder_create(&decoder) != HR_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for an image decoder");
    *ret_object = decoder;
    return HR_OK;
}

static void destroy_decoder(void *object)
{
    hr__image_decoder_destroy(object);
}

static const struct hr_worker_class decoder_class = {"image decoder", create_decoder,
                                                     destroy_decoder};

static double filter_radius(int filter)
{
    switch (filter) {
    case HR_FILTER_BICUBIC:
        return 2;
    case HR_FILTER_LANCZOS:
        return 3;
    default:
        return 1;
    }
}

static int reduced_scale(const struct hr_image *image)
{
    double spare = image->mode == HR_MODE_CLOSE ? 1.5 : 1.0;
    int log2 = 0;

    if (image->info->format != HR_IMAGE_JPEG || !image->resampled || !image->antialias ||
        image->mode == HR_MODE_EXACT || image->filter == HR_FILTER_NEAREST)
        return 0;
    while (log2 < 3 && image->box_width / (2 << log2) >= spare * image->width &&
           image->box_height / (2 << log2) >= spare * image->height)
        log2++;
    return log2;
}

/* What one axis needs of the clip: the box and what the taps reach beyond it, a pixel
 * more for rounding, whole pixels of the reduced scale. */
static void
reach_axis(const struct hr_image *image, double box, double size, int32_t out,
           int32_t clip, int32_t clip_size, int log2, int32_t *ret_at, int32_t *ret_size)
{
    double unit = 1 << log2, ratio = size / out, low, high;
    double reach =
        filter_radius(image->filter) * (image->antialias && ratio > unit ? ratio : unit) +
        unit;

    low = floor((box - reach) / unit) * unit;
    high = ceil((box + size + reach) / unit) * unit;
    low = fmax(low, clip);
    high = fmin(high, (double)clip + clip_size);
    *ret_at = (int32_t)low;
    *ret_size = (int32_t)(high - low);
}

static struct rect reach(const struct hr_image *image, int log2)
{
    struct rect rect = {image->clip_x, image->clip_y, image->clip_width,
                        image->clip_height};

    if (!image->resampled)
        return rect;
    reach_axis(image, image->box_x, image->box_width, image->width, image->clip_x,
               image->clip_width, log2, &rect.x, &rect.width);
    reach_axis(image, image->box_y, image->box_height, image->height, image->clip_y,
               image->clip_height, log2, &rect.y, &rect.height);
    return rect;
}

static void
cut(struct hr_pixels *pixels, int32_t x, int32_t y, int32_t width, int32_t height)
{
    pixels->data =
        (char *)pixels->data + y * pixels->row_stride + x * pixels->pixel_stride;
    pixels->width = width;
    pixels->height = height;
}

static enum hr_err source_tensor(const struct hr_image *image, struct source *source,
                                 struct hr_error *reterr)
{
    struct rect rect = reach(image, 0);

    HR_TRY(hr__image_view(&image->pixels, &source->pixels, reterr));
    cut(&source->pixels, rect.x, rect.y, rect.width, rect.height);
    source->box_x = image->box_x - rect.x;
    source->box_y = image->box_y - rect.y;
    source->box_width = image->box_width;
    source->box_height = image->box_height;
    return HR_OK;
}

/* How an EXIF orientation sees the stored picture: along which stored axis, and from
 * which end, upright x and y run. */
struct turn {
    bool swapped, mirror_x, mirror_y; /* mirrors of the stored axes */
};

static struct turn turn_of(int orientation)
{
    struct turn turn = {
        .swapped = orientation >= 5,
        .mirror_x =
            orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
        .mirror_y =
            orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
    };
    return turn;
}

/* The stored rectangle of an upright one. */
static struct rect stored_rect(const struct hr_image *image, struct rect rect)
{
    struct turn turn = turn_of(image->orientation);
    struct rect stored = rect;

    if (turn.swapped)
        stored = (struct rect){rect.y, rect.x, rect.height, rect.width};
    if (turn.mirror_x)
        stored.x = image->info->width - stored.x - stored.width;
    if (turn.mirror_y)
        stored.y = image->info->height - stored.y - stored.height;
    return stored;
}

/* A row of pixels from every `step` bytes. */
static inline void gather_row(uint8_t *to, const uint8_t *from, int64_t step,
                              int32_t width, int32_t channels)
{
    for (int32_t x = 0; x < width; x++, from += step, to += channels)
        for (int32_t c = 0; c < channels; c++)
            to[c] = from[c];
}

/* Copy the cut upright. */
static enum hr_err put_upright(struct hr_worker *worker, int orientation,
                               struct hr_pixels *pixels, struct hr_error *reterr)
{
    struct turn turn = turn_of(orientation);
    struct hr_pixels in = *pixels, out = *pixels;
    const uint8_t *origin = in.data;
    int64_t step_x = in.pixel_stride, step_y = in.row_stride;
    uint8_t *to;

    if (turn.mirror_x) {
        origin += (in.width - 1) * in.pixel_stride;
        step_x = -step_x;
    }
    if (turn.mirror_y) {
        origin += (in.height - 1) * in.row_stride;
        step_y = -step_y;
    }
    out.width = turn.swapped ? in.height : in.width;
    out.height = turn.swapped ? in.width : in.height;
    out.row_stride = (int64_t)out.width * out.channels;
    to = hr__arena_alloc(&worker->arena, (size_t)(out.row_stride * out.height));
    if (to == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory to turn an image");
    out.data = to;
    for (int32_t y = 0; y < out.height; y++, to += out.row_stride) {
        const uint8_t *from = origin + y * (turn.swapped ? step_x : step_y);
        int64_t step = turn.swapped ? step_y : step_x;
        if (in.channels == 3)
            gather_row(to, from, step, out.width, 3);
        else
            gather_row(to, from, step, out.width, in.channels);
    }
    *pixels = out;
    return HR_OK;
}

/* Cut what was asked for out of what came, so that nothing beyond it is ever read. */
static enum hr_err cut_part(const struct hr_image *image, struct hr_image_part *part,
                            const struct rect *asked, struct hr_error *reterr)
{
    int log2 = part->scale_log2;
    int32_t unit = 1 << log2;
    int32_t x = asked->x >> log2, y = asked->y >> log2;
    int32_t width = ((asked->x + asked->width + unit - 1) >> log2) - x;
    int32_t height = ((asked->y + asked->height + unit - 1) >> log2) - y;

    if (part->pixels.channels != image->channels)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the image has %d channels where its header said %d",
                        (int)part->pixels.channels, (int)image->channels);
    if (x < part->x || y < part->y || x + width > part->x + part->pixels.width ||
        y + height > part->y + part->pixels.height)
        return hr__fail(reterr, HR_ERR_INTERNAL, "the decoder gave less than the window");
    cut(&part->pixels, x - part->x, y - part->y, width, height);
    part->x = x;
    part->y = y;
    return HR_OK;
}

/* Where a cut of `size` scaled pixels from `at` begins, counted from the other end. */
static double from_end(int32_t full, int32_t at, int32_t size, double unit)
{
    return full / unit - (at + size);
}

/* A resize may take luma and chroma as the file has them, which is less work and less
 * rounding, but not the bytes of converting first. */
static bool takes_planes(const struct hr_image *image)
{
    return image->mode != HR_MODE_EXACT && image->resampled && image->antialias &&
           image->filter != HR_FILTER_NEAREST && image->orientation == 1 &&
           image->want_channels == HR_CHANNELS_RGB &&
           image->info->format == HR_IMAGE_JPEG;
}

static void place_box(const struct hr_image *image, double unit, double x, double y,
                      struct source *source)
{
    source->box_x = image->box_x / unit - x;
    source->box_y = image->box_y / unit - y;
    source->box_width = image->box_width / unit;
    source->box_height = image->box_height / unit;
}

/* HR_ERR_UNSUPPORTED without words: decode to RGB instead. */
static enum hr_err
source_planes(struct hr_worker *worker, void *decoder, const struct hr_image *image,
              const struct hr_image_request *request, struct source *source,
              struct hr_error *reterr)
{
    struct hr_image_planes planes;

    if (!takes_planes(image))
        return HR_ERR_UNSUPPORTED;
    HR_TRY(hr__image_decode_planes(decoder, &worker->arena, image->encoded,
                                   image->encoded_bytes, image->info, request, &planes,
                                   reterr));
    source->planar = true;
    source->ycc = planes.ycc;
    source->pixels = planes.ycc.plane[0];
    place_box(image, 1 << planes.scale_log2, planes.x, planes.y, source);
    return HR_OK;
}

static enum hr_err source_encoded(struct hr_worker *worker, const struct hr_image *image,
                                  struct source *source, struct hr_error *reterr)
{
    int log2 = reduced_scale(image);
    struct turn turn = turn_of(image->orientation);
    struct rect rect = stored_rect(image, reach(image, log2));
    struct hr_image_request request = {image->want_channels, rect.x,      rect.y,
                                       rect.width,           rect.height, log2,
                                       image->pixels_max};
    struct hr_image_part part;
    double unit, origin_x, origin_y;
    enum hr_err err;
    void *decoder;

    HR_TRY(hr__worker_object(worker, &decoder_class, &decoder, reterr));
    err = source_planes(worker, decoder, image, &request, source, reterr);
    if (err != HR_ERR_UNSUPPORTED)
        return err;
    HR_TRY(hr__image_decode(decoder, &worker->arena, image->encoded, image->encoded_bytes,
                            image->info, &request, &part, reterr));
    HR_TRY(cut_part(image, &part, &rect, reterr));
    unit = 1 << part.scale_log2;
    origin_x = turn.mirror_x
                   ? from_end(image->info->width, part.x, part.pixels.width, unit)
                   : part.x;
    origin_y = turn.mirror_y
                   ? from_end(image->info->height, part.y, part.pixels.height, unit)
                   : part.y;
    if (image->orientation != 1)
        HR_TRY(put_upright(worker, image->orientation, &part.pixels, reterr));
    source->pixels = part.pixels;
    place_box(image, unit, turn.swapped ? origin_y : origin_x,
              turn.swapped ? origin_x : origin_y, source);
    return HR_OK;
}

/* Nothing is left to be done but to show the source. */
static bool shows_source(const struct hr_image *image, const struct source *source)
{
    return !image->resampled && !image->flip_x && !image->flip_y &&
           image->step_count == 0 && image->dtype == source->pixels.dtype;
}

static void
set_view(struct hr_value *value, const struct hr_pixels *pixels, enum hr_layout layout)
{
    bool chw = layout == HR_LAYOUT_CHW;

    value->kind = HR_VALUE_TENSOR;
    value->dtype = (uint8_t)pixels->dtype;
    value->ndim = 3;
    value->layout = (uint8_t)layout;
    value->data = pixels->data;
    value->u.offsets = NULL;
    value->dims[chw ? 0 : 2] = pixels->channels;
    value->dims[chw ? 1 : 0] = pixels->height;
    value->dims[chw ? 2 : 1] = pixels->width;
    value->strides[chw ? 0 : 2] = pixels->channel_stride;
    value->strides[chw ? 1 : 0] = pixels->row_stride;
    value->strides[chw ? 2 : 1] = pixels->pixel_stride;
    value->bytes = (size_t)pixels->width * (size_t)pixels->height *
                   (size_t)pixels->channels * hr_dtype_size(pixels->dtype);
}

static void set_strides(struct hr_pixels *pixels, bool planar)
{
    int64_t size = (int64_t)hr_dtype_size(pixels->dtype);

    pixels->pixel_stride = planar ? size : size * pixels->channels;
    pixels->row_stride = pixels->pixel_stride * pixels->width;
    pixels->channel_stride = planar ? pixels->row_stride * pixels->height : size;
}

enum hr_err
hr__image_make(struct hr_worker *worker, int32_t width, int32_t height, int32_t channels,
               enum hr_dtype dtype, enum hr_layout layout, struct hr_value *ret_value,
               struct hr_pixels *ret_pixels, struct hr_error *reterr)
{
    struct hr_pixels pixels = {
        .dtype = dtype, .width = width, .height = height, .channels = channels};
    struct hr_value value = {0};

    set_strides(&pixels, dtype != HR_U8);
    pixels.data =
        hr__arena_alloc(&worker->arena, (size_t)width * (size_t)height *
                                            (size_t)channels * hr_dtype_size(dtype));
    if (pixels.data == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for an image of %dx%d",
                        (int)width, (int)height);
    set_view(&value, &pixels, layout);
    *ret_value = value;
    *ret_pixels = pixels;
    return HR_OK;
}

static enum hr_err
destination(struct hr_worker *worker, const struct hr_image *image, void *into,
            struct hr_value *value, struct hr_pixels *pixels, struct hr_error *reterr)
{
    if (into == NULL)
        return hr__image_make(worker, image->width, image->height, image->channels,
                              image->dtype, image->layout, value, pixels, reterr);
    *pixels = (struct hr_pixels){.data = into,
                                 .dtype = image->dtype,
                                 .width = image->width,
                                 .height = image->height,
                                 .channels = image->channels};
    set_strides(pixels, image->layout == HR_LAYOUT_CHW);
    *value = (struct hr_value){0};
    set_view(value, pixels, image->layout);
    return HR_OK;
}

static enum hr_err resample(struct hr_worker *worker, const struct hr_image *image,
                            const struct source *source, const struct hr_pixels *to,
                            const struct hr_affine *steps, struct hr_error *reterr)
{
    struct hr_resample spec = {
        .in_width = source->pixels.width,
        .in_height = source->pixels.height,
        .box_x = source->box_x,
        .box_y = source->box_y,
        .box_width = source->box_width,
        .box_height = source->box_height,
        .out_width = image->width,
        .out_height = image->height,
        .flip_x = image->flip_x,
        .flip_y = image->flip_y,
        .filter = (enum hr_filter)image->filter,
        .antialias = image->antialias,
    };
    struct hr_resample_plan *plan;
    enum hr_err err;

    if (source->planar)
        err = hr__resample_ycc(&worker->arena, &spec, &source->ycc, to,
                               image->round_levels, steps, image->step_count);
    else
        err = hr__resample_plan(&worker->arena, &spec, &plan);
    if (err == HR_OK && !source->planar)
        err = hr__resample_run(plan, &worker->arena, &source->pixels, to,
                               image->round_levels, steps, image->step_count);
    if (err != HR_OK)
        return hr__fail(reterr, err, "out of memory to resize an image");
    return HR_OK;
}

static enum hr_err
make(struct hr_worker *worker, const struct hr_image *image, void *into,
     struct hr_value *made, bool *ret_shows, struct hr_error *reterr)
{
    struct hr_affine steps[HR_IMAGE_AFFINE_MAX];
    struct source source = {0};
    struct hr_pixels to;

    hr__worker_charge(worker, image->node_decode);
    if (image->encoded != NULL)
        HR_TRY(source_encoded(worker, image, &source, reterr));
    else
        HR_TRY(source_tensor(image, &source, reterr));
    *ret_shows = into == NULL && shows_source(image, &source);
    if (*ret_shows) {
        *made = (struct hr_value){0};
        set_view(made, &source.pixels, image->layout);
        return HR_OK;
    }
    HR_TRY(destination(worker, image, into, made, &to, reterr));
    for (int i = 0; i < image->step_count; i++) {
        memcpy(steps[i].scale, image->steps[i].scale, sizeof steps[i].scale);
        memcpy(steps[i].bias, image->steps[i].bias, sizeof steps[i].bias);
    }
    hr__worker_charge(worker,
                      image->resampled ? image->node_resample : image->node_store);
    if (image->resampled)
        return resample(worker, image, &source, &to, steps, reterr);
    hr__pixels_store(&source.pixels, &to, steps, image->step_count, image->flip_x,
                     image->flip_y);
    return HR_OK;
}

enum hr_err hr__image_force(struct hr_worker *worker, struct hr_value *value, void *into,
                            struct hr_error *reterr)
{
    const struct hr_image *image = (const struct hr_image *)value->u.lazy;
    uint32_t node = worker->charge_node;
    struct hr_value made;
    bool shows = false;
    enum hr_err err;

    err = make(worker, image, into, &made, &shows, reterr);
    hr__worker_charge(worker, node);
    if (err != HR_OK)
        return err;
    /* Widened pixels lie in the arena; the owner holds those they were made of. */
    if (shows && image->encoded == NULL && image->pixels.dtype == image->source_dtype) {
        made.owner = value->owner;
        made.shared = value->shared || image->pixels.shared;
        value->owner = NULL;
    }
    hr__value_clear(value);
    *value = made;
    return HR_OK;
}
