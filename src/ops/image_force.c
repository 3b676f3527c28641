/*
 * image_force.c - makes the pixels of a described image.
 *
 * codec/image_source decodes the part of a photo that is needed, at the lowest scale that
 * the mode allows; then one kernel resamples, mirrors, maps and stores at the
 * destination.
 */
#include "ops/image_job.h"

#include <string.h>

#include "codec/image_source.h"

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

static const struct hr_thread_class decoder_class = {"image decoder", create_decoder,
                                                     destroy_decoder};

enum hr_err
hr__image_decoder_of(struct hr_thread *thread, struct hr_image_decoder **ret_decoder,
                     struct hr_error *reterr)
{
    void *decoder;

    HR_TRY(hr__thread_object(thread, &decoder_class, &decoder, reterr));
    *ret_decoder = decoder;
    return HR_OK;
}

static struct hr_image_view view_of(const struct hr_image *image)
{
    return (struct hr_image_view){
        .clip_x = image->clip_x,
        .clip_y = image->clip_y,
        .clip_width = image->clip_width,
        .clip_height = image->clip_height,
        .box_x = image->box_x,
        .box_y = image->box_y,
        .box_width = image->box_width,
        .box_height = image->box_height,
        .width = image->width,
        .height = image->height,
        .full_width = image->full_width,
        .full_height = image->full_height,
        .at_x = image->at_x,
        .at_y = image->at_y,
        .resampled = image->resampled,
        .filter = (enum hr_filter)image->filter,
        .antialias = image->antialias,
        .mode = image->mode,
        .want = (enum hr_image_channels)image->want_channels,
        .channels = image->channels,
        .orientation = image->orientation,
        .pixels_max = image->pixels_max,
    };
}

static enum hr_err find_source(struct hr_thread *thread, const struct hr_image *image,
                               struct hr_image_view *view, struct hr_image_source *source,
                               struct hr_error *reterr)
{
    struct hr_pixels pixels;
    struct hr_image_decoder *decoder;

    if (image->encoded != NULL) {
        HR_TRY(hr__image_decoder_of(thread, &decoder, reterr));
        hr__image_seek_begin(image, &thread->arena, view);
        HR_TRY(hr__image_source_decode(decoder, &thread->arena, image->encoded,
                                       image->encoded_bytes, image->info, view, source,
                                       reterr));
        hr__image_seek_end(image, &thread->arena, view);
        return HR_OK;
    }
    HR_TRY(hr__image_view(&image->pixels, &pixels, reterr));
    hr__image_source_cut(&pixels, view, source);
    return HR_OK;
}

/* True if the result is the source's own pixels. */
static bool
shows_source(const struct hr_image *image, const struct hr_image_source *source)
{
    return !image->resampled && !image->flip_x && !image->flip_y &&
           !hr__image_framed(image) && image->step_count == 0 &&
           image->dtype == source->pixels.dtype;
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
    value->u.ragged = NULL;
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
hr__image_make(struct hr_thread *thread, int32_t width, int32_t height, int32_t channels,
               enum hr_dtype dtype, enum hr_layout layout, struct hr_value *ret_value,
               struct hr_pixels *ret_pixels, struct hr_error *reterr)
{
    struct hr_pixels pixels = {
        .dtype = dtype, .width = width, .height = height, .channels = channels};
    struct hr_value value = {0};

    set_strides(&pixels, dtype != HR_U8);
    pixels.data =
        hr__arena_alloc(&thread->arena, (size_t)width * (size_t)height *
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
destination(struct hr_thread *thread, const struct hr_image *image, void *into,
            struct hr_value *value, struct hr_pixels *pixels, struct hr_error *reterr)
{
    if (into == NULL)
        return hr__image_make(thread, hr__image_width(image), hr__image_height(image),
                              image->channels, image->dtype, image->layout, value, pixels,
                              reterr);
    *pixels = (struct hr_pixels){.data = into,
                                 .dtype = image->dtype,
                                 .width = hr__image_width(image),
                                 .height = hr__image_height(image),
                                 .channels = image->channels};
    set_strides(pixels, image->layout == HR_LAYOUT_CHW);
    *value = (struct hr_value){0};
    set_view(value, pixels, image->layout);
    return HR_OK;
}

static void fill_frame(const struct hr_image *image, const struct hr_pixels *whole)
{
    int32_t right = image->frame_left + image->width;

    for (int32_t y = 0; y < whole->height; y++) {
        bool beside = y >= image->frame_top && y < image->frame_top + image->height;

        hr__image_fill(whole, 0, y, beside ? image->frame_left : whole->width,
                       image->frame_fill);
        if (beside)
            hr__image_fill(whole, right, y, image->frame_right, image->frame_fill);
    }
}

static enum hr_err
make(struct hr_thread *thread, const struct hr_image *image, void *into,
     struct hr_value *made, bool *ret_shows, struct hr_error *reterr)
{
    struct hr_affine steps[HR_IMAGE_AFFINE_MAX];
    struct hr_image_view view = view_of(image);
    struct hr_image_source source;
    struct hr_image_finish finish = {image->flip_x, image->flip_y, image->round_levels,
                                     steps, image->step_count};
    struct hr_pixels whole, to;

    hr__thread_charge(thread, image->node_decode);
    HR_TRY(find_source(thread, image, &view, &source, reterr));
    *ret_shows = into == NULL && shows_source(image, &source);
    if (*ret_shows) {
        *made = (struct hr_value){0};
        set_view(made, &source.pixels, image->layout);
        return HR_OK;
    }
    HR_TRY(destination(thread, image, into, made, &whole, reterr));
    to = hr__image_inside(&whole, image->frame_left, image->frame_top, image->width,
                          image->height);
    for (int i = 0; i < image->step_count; i++) {
        memcpy(steps[i].scale, image->steps[i].scale, sizeof steps[i].scale);
        memcpy(steps[i].bias, image->steps[i].bias, sizeof steps[i].bias);
    }
    hr__thread_charge(thread,
                      image->resampled ? image->node_resample : image->node_store);
    if (image->resampled)
        HR_TRY(hr__image_source_resample(&thread->arena, &source, &view, &finish, &to,
                                         reterr));
    else
        hr__pixels_store(&source.pixels, &to, steps, image->step_count, image->flip_x,
                         image->flip_y);
    if (hr__image_framed(image))
        fill_frame(image, &whole);
    return HR_OK;
}

uint64_t hr__image_scratch(const struct hr_lazy *lazy, bool drawn)
{
    const struct hr_image *image = (const struct hr_image *)lazy;
    struct hr_image_view view = view_of(image);

    if (image->encoded == NULL)
        return 0;
    view.seen = image->photo->seen;
    return hr__image_source_bytes(image->info, &view, image->encoded_bytes, drawn);
}

enum hr_err hr__image_force(struct hr_thread *thread, struct hr_value *value, void *into,
                            struct hr_error *reterr)
{
    const struct hr_image *image = (const struct hr_image *)value->u.lazy;
    uint32_t node = thread->charge_node;
    struct hr_value made;
    bool shows = false;
    enum hr_err err;

    if (value->shared)
        hr__image_seek_share(image, &thread->arena);
    err = make(thread, image, into, &made, &shows, reterr);
    hr__thread_charge(thread, node);
    if (err != HR_OK) {
        thread->failed_node = image->node_decode + 1;
        return err;
    }
    /* Widened pixels are in the arena; the owner holds the pixels they were made from. */
    if (shows && image->encoded == NULL && image->pixels.dtype == image->source_dtype) {
        made.owner = value->owner;
        made.shared = value->shared || image->pixels.shared;
        value->owner = NULL;
    }
    hr__value_clear(value);
    *value = made;
    return HR_OK;
}
