/*
 * image_cut.c - serialises the description of an image for a cut, and reads it back.
 *
 * The source (a photo's bytes or a pixel tensor) and the edits are sent, so that the
 * other side makes the same pixels that this side would have made, at the same decode
 * scale. Not sent are seek points of JPEGs and decoded rows that views share: they save
 * time and change no pixel.
 */
#include "ops/image_job.h"

#include <math.h>
#include <string.h>

struct encoded {
    double box_x, box_y, box_width, box_height;
    uint64_t pixels_max;
    int32_t clip_x, clip_y, clip_width, clip_height;
    int32_t width, height, channels;
    int32_t full_width, full_height, at_x, at_y;
    uint32_t node_decode, node_resample, node_store;
    struct {
        float scale[4], bias[4];
    } steps[HR_IMAGE_AFFINE_MAX];
    int32_t frame_left, frame_top, frame_right, frame_bottom;
    float frame_fill[4];
    uint8_t photo; /* 1: the source is a photo's bytes, 0: pixels */
    uint8_t source_dtype, dtype, layout, mode, want_channels, orientation, filter;
    uint8_t antialias, resampled, round_levels, flip_x, flip_y, step_count;
    uint8_t zero[2];
};

_Static_assert(sizeof(struct encoded) == HR_IMAGE_ENCODED_BYTES,
               "the format has no padding");
_Static_assert(HR_FILTER_NEAREST == 0 && HR_FILTER_LANCZOS == 4 && HR_MODE_EXACT == 0 &&
                   HR_MODE_FAST == 2 && HR_CHANNELS_RGB == 0 && HR_CHANNELS_LABELS == 3,
               "these numbers are part of the format");

void hr__image_source(const struct hr_lazy *lazy, struct hr_value *ret_source)
{
    const struct hr_image *image = (const struct hr_image *)lazy;

    *ret_source = image->pixels;
    if (image->encoded != NULL)
        *ret_source = (struct hr_value){.kind = HR_VALUE_BYTES,
                                        .data = (void *)(uintptr_t)image->encoded,
                                        .bytes = image->encoded_bytes};
    ret_source->owner = NULL;
}

void hr__image_encode(const struct hr_lazy *lazy, void *to)
{
    const struct hr_image *image = (const struct hr_image *)lazy;
    struct encoded encoded = {
        .box_x = image->box_x,
        .box_y = image->box_y,
        .box_width = image->box_width,
        .box_height = image->box_height,
        .pixels_max = image->pixels_max,
        .clip_x = image->clip_x,
        .clip_y = image->clip_y,
        .clip_width = image->clip_width,
        .clip_height = image->clip_height,
        .width = image->width,
        .height = image->height,
        .channels = image->channels,
        .full_width = image->full_width,
        .full_height = image->full_height,
        .at_x = image->at_x,
        .at_y = image->at_y,
        .frame_left = image->frame_left,
        .frame_top = image->frame_top,
        .frame_right = image->frame_right,
        .frame_bottom = image->frame_bottom,
        .node_decode = image->node_decode,
        .node_resample = image->node_resample,
        .node_store = image->node_store,
        .photo = image->encoded != NULL,
        .source_dtype = (uint8_t)image->source_dtype,
        .dtype = (uint8_t)image->dtype,
        .layout = (uint8_t)image->layout,
        .mode = (uint8_t)image->mode,
        .want_channels = (uint8_t)image->want_channels,
        .orientation = (uint8_t)image->orientation,
        .filter = (uint8_t)image->filter,
        .antialias = image->antialias,
        .resampled = image->resampled,
        .round_levels = image->round_levels,
        .flip_x = image->flip_x,
        .flip_y = image->flip_y,
        .step_count = (uint8_t)image->step_count,
    };

    memcpy(encoded.frame_fill, image->frame_fill, sizeof encoded.frame_fill);
    memcpy(encoded.steps, image->steps,
           (size_t)image->step_count * sizeof encoded.steps[0]);
    memcpy(to, &encoded, sizeof encoded);
}

/* ---- checks ---- */

static bool is_pixel_dtype(unsigned dtype)
{
    return dtype == HR_U8 || dtype == HR_F32 || dtype == HR_F16 || dtype == HR_BF16;
}

static bool flags_are_sound(const struct encoded *e, const struct hr_lazy_decode *decode)
{
    return e->photo <= 1 && e->antialias <= 1 && e->resampled <= 1 &&
           e->round_levels <= 1 && e->flip_x <= 1 && e->flip_y <= 1 && e->zero[0] == 0 &&
           e->zero[1] == 0 && e->step_count <= HR_IMAGE_AFFINE_MAX &&
           e->filter <= HR_FILTER_LANCZOS && e->mode <= HR_MODE_FAST &&
           e->want_channels <= HR_CHANNELS_LABELS && e->orientation >= 1 &&
           e->orientation <= 8 && is_pixel_dtype(e->dtype) &&
           is_pixel_dtype(e->source_dtype) &&
           (e->layout == HR_LAYOUT_HWC || e->layout == HR_LAYOUT_CHW) &&
           e->node_decode < decode->nodes && e->node_resample < decode->nodes &&
           e->node_store < decode->nodes;
}

static bool steps_are_sound(const struct encoded *e)
{
    for (int i = 0; i < e->step_count; i++)
        for (int c = 0; c < 4; c++)
            if (!isfinite(e->steps[i].scale[c]) || !isfinite(e->steps[i].bias[c]))
                return false;
    return true;
}

/* Resizes divide by the ratio of a box, whose ends may be off by rounding. */
#define BOX_SLACK 1e-3
#define BOX_MIN 1e-9

static bool axis_is_sound(const struct encoded *e, int32_t whole, int32_t clip,
                          int32_t clip_size, double box, double box_size, int32_t size)
{
    if (clip < 0 || clip_size < 1 || clip > whole - clip_size || size < 1 ||
        size > HR_IMAGE_EXTENT_MAX)
        return false;
    if (!e->resampled)
        return size == clip_size && box == clip && box_size == clip_size;
    return box >= clip - BOX_SLACK && box_size >= BOX_MIN &&
           box + box_size <= (double)clip + clip_size + BOX_SLACK;
}

static bool span_is_sound(int32_t at, int32_t size, int32_t full)
{
    return full <= HR_IMAGE_EXTENT_MAX && at >= 0 && at <= full - size;
}

/* Only a resize in mode exact has a full size. */
static bool full_is_sound(const struct encoded *e)
{
    if (e->full_width == 0)
        return e->full_height == 0 && e->at_x == 0 && e->at_y == 0;
    return e->resampled && e->mode == HR_MODE_EXACT &&
           span_is_sound(e->at_x, e->width, e->full_width) &&
           span_is_sound(e->at_y, e->height, e->full_height);
}

static bool frame_is_sound(int32_t before, int32_t size, int32_t after)
{
    return before >= 0 && before <= HR_IMAGE_EXTENT_MAX && after >= 0 &&
           after <= HR_IMAGE_EXTENT_MAX && before + size + after <= HR_IMAGE_EXTENT_MAX;
}

/* The upright source is `width` x `height`. */
static bool window_is_sound(const struct encoded *e, int32_t width, int32_t height)
{
    uint64_t most = e->pixels_max > 1 << 28 ? e->pixels_max : 1 << 28;

    return axis_is_sound(e, width, e->clip_x, e->clip_width, e->box_x, e->box_width,
                         e->width) &&
           axis_is_sound(e, height, e->clip_y, e->clip_height, e->box_y, e->box_height,
                         e->height) &&
           full_is_sound(e) && frame_is_sound(e->frame_left, e->width, e->frame_right) &&
           frame_is_sound(e->frame_top, e->height, e->frame_bottom) &&
           (uint64_t)(e->frame_left + e->width + e->frame_right) *
                   (uint64_t)(e->frame_top + e->height + e->frame_bottom) <=
               most;
}

/* ---- the source ---- */

static enum hr_err malformed(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "the description of an image is malformed");
}

static enum hr_err
read_photo(const struct hr_lazy_decode *decode, const struct encoded *e,
           struct hr_image *image, struct hr_error *reterr)
{
    struct hr_image_info *info = hr__arena_alloc(decode->arena, sizeof *info);
    bool turned;

    image->photo = hr__arena_zalloc(decode->arena, sizeof *image->photo);
    if (info == NULL || image->photo == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for an image");
    if (decode->source.kind != HR_VALUE_BYTES || e->source_dtype != HR_U8)
        return malformed(reterr);
    HR_TRY(hr__image_probe(decode->source.data, decode->source.bytes, info, reterr));
    HR_TRY(hr__image_check_size(info, e->pixels_max, reterr));
    turned = e->orientation >= 5;
    if (e->channels != hr__image_decoded_channels(info, e->want_channels) ||
        !window_is_sound(e, turned ? info->height : info->width,
                         turned ? info->width : info->height))
        return malformed(reterr);
    image->encoded = decode->source.data;
    image->encoded_bytes = decode->source.bytes;
    image->info = info;
    return HR_OK;
}

static enum hr_err
read_pixels(const struct hr_lazy_decode *decode, const struct encoded *e,
            struct hr_image *image, struct hr_error *reterr)
{
    const struct hr_value *source = &decode->source;
    bool widened = source->dtype == HR_F32 &&
                   (e->source_dtype == HR_F16 || e->source_dtype == HR_BF16);
    struct hr_pixels pixels;

    HR_TRY(hr__image_view(source, &pixels, reterr));
    if ((e->source_dtype != source->dtype && !widened) || e->orientation != 1 ||
        pixels.channels != e->channels || pixels.width > HR_IMAGE_EXTENT_MAX ||
        pixels.height > HR_IMAGE_EXTENT_MAX ||
        !window_is_sound(e, pixels.width, pixels.height))
        return malformed(reterr);
    image->pixels = *source;
    image->pixels.owner = NULL;
    return HR_OK;
}

static void set_edits(const struct encoded *e, struct hr_image *image)
{
    image->lazy.class = &hr__image_class;
    image->source_dtype = (enum hr_dtype)e->source_dtype;
    image->mode = (enum hr_image_mode)e->mode;
    image->want_channels = e->want_channels;
    image->pixels_max = e->pixels_max;
    image->orientation = e->orientation;
    image->clip_x = e->clip_x;
    image->clip_y = e->clip_y;
    image->clip_width = e->clip_width;
    image->clip_height = e->clip_height;
    image->box_x = e->box_x;
    image->box_y = e->box_y;
    image->box_width = e->box_width;
    image->box_height = e->box_height;
    image->width = e->width;
    image->height = e->height;
    image->channels = e->channels;
    image->full_width = e->full_width;
    image->full_height = e->full_height;
    image->at_x = e->at_x;
    image->at_y = e->at_y;
    image->resampled = e->resampled != 0;
    image->filter = e->filter;
    image->antialias = e->antialias != 0;
    image->round_levels = e->round_levels != 0;
    image->flip_x = e->flip_x != 0;
    image->flip_y = e->flip_y != 0;
    image->dtype = (enum hr_dtype)e->dtype;
    image->layout = (enum hr_layout)e->layout;
    image->step_count = e->step_count;
    memcpy(image->steps, e->steps, sizeof image->steps);
    image->frame_left = e->frame_left;
    image->frame_top = e->frame_top;
    image->frame_right = e->frame_right;
    image->frame_bottom = e->frame_bottom;
    memcpy(image->frame_fill, e->frame_fill, sizeof image->frame_fill);
    image->node_decode = e->node_decode;
    image->node_resample = e->node_resample;
    image->node_store = e->node_store;
}

enum hr_err
hr__image_decode_description(const struct hr_lazy_decode *decode,
                             struct hr_value *ret_value, struct hr_error *reterr)
{
    struct hr_image *image = hr__arena_zalloc(decode->arena, sizeof *image);
    struct encoded encoded;

    if (image == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for an image");
    memcpy(&encoded, decode->bytes, sizeof encoded);
    if (!flags_are_sound(&encoded, decode) || !steps_are_sound(&encoded))
        return malformed(reterr);
    if (encoded.photo)
        HR_TRY(read_photo(decode, &encoded, image, reterr));
    else
        HR_TRY(read_pixels(decode, &encoded, image, reterr));
    set_edits(&encoded, image);
    *ret_value = (struct hr_value){0};
    hr__image_describe(ret_value, image);
    return HR_OK;
}
