/*
 * codec/image_priv.h - private interface between image.c and the formats.
 *
 * image.c calls the formats only through these functions, and formats do not know each
 * other. A decoder gets a request that image.c has checked: the window lies inside the
 * image of `info`, the scale is 0 to 3, and the pixel limit holds. It fills *ret_part
 * with exactly the window.
 */
#ifndef HR_CODEC_IMAGE_PRIV_H
#define HR_CODEC_IMAGE_PRIV_H

#include "codec/image.h"

/* The arguments of one decode, passed from image.c to a format. */
struct hr_image_job {
    struct hr_arena *arena;
    const uint8_t *data;
    size_t bytes;
    const struct hr_image_info *info;
    const struct hr_image_request *request;
    struct hr_error *reterr;
};

struct hr_jpeg_decoder;
HR_CHECK struct hr_jpeg_decoder *hr__jpeg_decoder_create(void);
void hr__jpeg_decoder_destroy(struct hr_jpeg_decoder *decoder);
HR_CHECK enum hr_err
hr__jpeg_probe(const uint8_t *data, size_t bytes, struct hr_image_info *ret_info,
               struct hr_error *reterr);
HR_CHECK enum hr_err
hr__jpeg_decode(struct hr_jpeg_decoder *decoder, const struct hr_image_job *job,
                struct hr_image_part *ret_part);

/* HR_ERR_UNSUPPORTED without a message if only hr__jpeg_decode can handle the request. */
HR_CHECK enum hr_err
hr__jpeg_decode_planes(struct hr_jpeg_decoder *decoder, const struct hr_image_job *job,
                       struct hr_image_planes *ret_planes);

HR_CHECK enum hr_err
hr__png_probe(const uint8_t *data, size_t bytes, struct hr_image_info *ret_info,
              struct hr_error *reterr);
HR_CHECK enum hr_err
hr__png_decode(const struct hr_image_job *job, struct hr_image_part *ret_part);

HR_CHECK enum hr_err
hr__webp_probe(const uint8_t *data, size_t bytes, struct hr_image_info *ret_info,
               struct hr_error *reterr);
HR_CHECK enum hr_err
hr__webp_decode(const struct hr_image_job *job, struct hr_image_part *ret_part);

HR_CHECK enum hr_err
hr__pnm_probe(const uint8_t *data, size_t bytes, struct hr_image_info *ret_info,
              struct hr_error *reterr);
HR_CHECK enum hr_err
hr__pnm_decode(const struct hr_image_job *job, struct hr_image_part *ret_part);

/* Orientation 1..8 of a TIFF block ("II*\0..." or "MM\0*..."), 1 if absent or malformed.
 * The second form skips "Exif\0\0" first if present. */
int32_t hr__exif_orientation(const uint8_t *tiff, size_t bytes);
int32_t hr__exif_orientation_prefixed(const uint8_t *data, size_t bytes);

/* Number of channels that a request outputs. */
int32_t
hr__image_channels_out(const struct hr_image_info *info, enum hr_image_channels channels);

/* Sets `part` to interleaved u8 pixels at `data`, whose first pixel is (x, y). */
void hr__image_part_set(struct hr_image_part *part, void *data, int32_t width,
                        int32_t height, int32_t channels, size_t row_stride, int32_t x,
                        int32_t y, int32_t scale_log2);

/* ITU-R 601 luma of RGB (`step` 3) or RGBA (`step` 4) pixels, in Pillow's integer
 * arithmetic. `gray` may equal `colour`. */
void hr__image_luma(const uint8_t *colour, int step, uint8_t *gray, size_t count);

static inline uint32_t hr__be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint32_t hr__le32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline uint32_t hr__be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

#endif
