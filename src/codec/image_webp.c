/*
 * codec/image_webp.c - WebP, lossy and lossless, through libwebp.
 *
 * libwebp's crop stops decoding below the window and outputs only the window's rows. It
 * interpolates chroma within the crop, so we request MARGIN more pixels, from an even
 * position; image_test.c compares windows with full decodes. libwebp has its own
 * allocator. Not supported: animation, incremental decoding, colour profiles.
 */
#include "codec/image_priv.h"
#include "core/error.h"

#include <string.h>

#include <webp/decode.h>

#define MARGIN 2

static enum hr_err fail_status(VP8StatusCode status, struct hr_error *reterr)
{
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return hr__fail(reterr, HR_ERR_MEMORY, "WebP: out of memory");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "WebP: feature not supported");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return hr__fail(reterr, HR_ERR_FORMAT, "WebP: the file is cut off");
    default:
        return hr__fail(reterr, HR_ERR_FORMAT, "WebP: damaged data");
    }
}

/* The orientation in the EXIF chunk of the RIFF container; only extended files have
 * one. */
static int32_t orientation_of(const uint8_t *data, size_t bytes)
{
    size_t at = 12;

    while (bytes - at >= 8) {
        size_t length = hr__le32(data + at + 4);

        if (length > bytes - at - 8)
            return 1;
        if (memcmp(data + at, "EXIF", 4) == 0)
            return hr__exif_orientation_prefixed(data + at + 8, length);
        at += 8 + length;
        if (length % 2 == 1 && at < bytes)
            at++;
    }
    return 1;
}

/* libwebp holds lossless photos whole, in 4 bytes a pixel; of lossy ones it holds the
 * alpha channel, decoded and as it was coded. */
static uint64_t held_bytes(const WebPBitstreamFeatures *features)
{
    uint64_t pixels = (uint64_t)features->width * (uint64_t)features->height;

    if (features->format == 2)
        return 4 * pixels;
    return features->has_alpha ? 2 * pixels : 0;
}

enum hr_err hr__webp_probe(const uint8_t *data, size_t bytes,
                           struct hr_image_info *ret_info, struct hr_error *reterr)
{
    WebPBitstreamFeatures features;
    VP8StatusCode status = WebPGetFeatures(data, bytes, &features);

    if (status != VP8_STATUS_OK)
        return fail_status(status, reterr);
    if (features.has_animation)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "animated WebP");
    *ret_info = (struct hr_image_info){
        .format = HR_IMAGE_WEBP,
        .width = features.width,
        .height = features.height,
        .channels = features.has_alpha ? 4 : 3,
        .bit_depth = 8,
        .orientation = orientation_of(data, bytes),
        .held_bytes = held_bytes(&features),
    };
    return HR_OK;
}

/* The crop: the window plus its margin, from an even position, inside the image. */
static void set_crop(WebPDecoderOptions *options, const struct hr_image_job *job)
{
    const struct hr_image_request *request = job->request;
    int32_t left = request->x > MARGIN ? (request->x - MARGIN) & ~1 : 0;
    int32_t top = request->y > MARGIN ? (request->y - MARGIN) & ~1 : 0;
    int32_t right = request->x + request->width, bottom = request->y + request->height;

    right = job->info->width - right > MARGIN ? right + MARGIN : job->info->width;
    bottom = job->info->height - bottom > MARGIN ? bottom + MARGIN : job->info->height;
    options->use_cropping = 1;
    options->crop_left = left;
    options->crop_top = top;
    options->crop_width = right - left;
    options->crop_height = bottom - top;
}

static enum hr_err
decode_crop(const struct hr_image_job *job, int32_t channels, WebPDecoderConfig *config)
{
    size_t stride = (size_t)config->options.crop_width * (size_t)channels;
    size_t bytes = stride * (size_t)config->options.crop_height;
    VP8StatusCode status;

    config->output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = hr__arena_alloc(job->arena, bytes);
    config->output.u.RGBA.stride = (int)stride;
    config->output.u.RGBA.size = bytes;
    if (config->output.u.RGBA.rgba == NULL)
        return hr__fail(job->reterr, HR_ERR_MEMORY, "out of memory");
    status = WebPDecode(job->data, job->bytes, config);
    WebPFreeDecBuffer(&config->output);
    return status == VP8_STATUS_OK ? HR_OK : fail_status(status, job->reterr);
}

enum hr_err
hr__webp_decode(const struct hr_image_job *job, struct hr_image_part *ret_part)
{
    const struct hr_image_request *request = job->request;
    int32_t channels = hr__image_channels_out(job->info, request->channels);
    int32_t channels_in = channels == 4 ? 4 : 3, y;
    WebPDecoderConfig config;
    size_t stride;
    uint8_t *first;

    if (!WebPInitDecoderConfig(&config))
        return hr__fail(job->reterr, HR_ERR_INTERNAL,
                        "libwebp's version differs from its headers");
    set_crop(&config.options, job);
    HR_TRY(decode_crop(job, channels_in, &config));
    stride = (size_t)config.options.crop_width * (size_t)channels_in;
    first = config.output.u.RGBA.rgba +
            (size_t)(request->y - config.options.crop_top) * stride +
            (ptrdiff_t)(request->x - config.options.crop_left) * channels_in;
    if (channels == 1)
        for (y = 0; y < request->height; y++)
            hr__image_luma(first + (size_t)y * stride, 3, first + (size_t)y * stride,
                           (size_t)request->width);
    hr__image_part_set(ret_part, first, request->width, request->height, channels, stride,
                       request->x, request->y, 0);
    return HR_OK;
}
