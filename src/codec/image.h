/*
 * codec/image.h - decodes windows of encoded photos.
 *
 * The interface to JPEG, PNG, WebP and PNM; independent of data loading. A decoder object
 * keeps the libraries' state between photos; each thread has its own.
 */
#ifndef HR_CODEC_IMAGE_H
#define HR_CODEC_IMAGE_H

#include "core/arena.h"
#include "kernel/resample_ycc.h"

struct hr_jpeg_index;
struct hr_jpeg_seen;

enum hr_image_format {
    HR_IMAGE_UNKNOWN,
    HR_IMAGE_JPEG,
    HR_IMAGE_PNG,
    HR_IMAGE_WEBP,
    HR_IMAGE_PNM, /* P1 to P6 */
};

/* Read from the header without decoding pixels. */
struct hr_image_info {
    enum hr_image_format format;
    int32_t width, height; /* as stored, before orientation */
    int32_t channels;  /* in the file: 1 gray, 2 gray + alpha, 3 colour, 4 colour + alpha
                          or CMYK */
    int32_t bit_depth; /* 1, 2, 4, 8, 16 */
    bool palette;      /* pixels are the numbers of colours */
    int32_t orientation; /* EXIF 1..8; 1 if absent or malformed */
    bool cmyk;
    bool whole;          /* decoded whole, whatever the window */
    uint64_t held_bytes; /* that a decode holds besides pixels: the coefficients of a
                            progressive JPEG, of whole photos in WebP */
    double samples;      /* of a JPEG, per pixel: 1.5 in 4:2:0 */
};

/* Detects the format from the first bytes. */
enum hr_image_format hr__image_sniff(const void *data, size_t bytes);
const char *hr__image_format_name(enum hr_image_format format);

/* HR_ERR_FORMAT with the reason if the header is malformed; HR_ERR_UNSUPPORTED if the
 * format is not supported, naming what the data looks like ("GIF", "an HTML page", "empty
 * file"). */
HR_CHECK enum hr_err
hr__image_probe(const void *data, size_t bytes, struct hr_image_info *ret_info,
                struct hr_error *reterr);

enum hr_image_channels {
    HR_CHANNELS_RGB,  /* gray is replicated, alpha dropped, CMYK converted as Pillow does
                       */
    HR_CHANNELS_GRAY, /* luma from the codec or by ITU-R 601 (Pillow's "L") */
    HR_CHANNELS_UNCHANGED, /* as in the file: 1 to 4 channels; CMYK converted to RGB,
                              palettes expanded */
    HR_CHANNELS_LABELS,    /* one channel of the numbers in the file: those of a palette's
                              colours, gray levels of up to 8 bits as they are stored.
                              PNG only: HR_ERR_UNSUPPORTED for other files */
};

struct hr_image_request {
    enum hr_image_channels channels;
    int32_t x, y, width,
        height; /* wanted window, in stored full-size pixels; must lie inside the image */
    int32_t scale_log2;  /* decode JPEG at 1 / 2^scale_log2 (0 to 3); other formats ignore
                            it */
    uint64_t pixels_max; /* larger images give HR_ERR_LIMIT; 0: 2^28 */
    struct hr_jpeg_index
        *index; /* or NULL: seek points of this file, initially empty; used, and extended
                   by a successful decode. JPEG only. */
    struct hr_jpeg_seen *seen; /* or NULL: what earlier requests for this file decoded
                                  into the same arena; used and extended */
};

/*
 * The decoded pixels: interleaved u8, in the arena, covering at least the window. Pixel
 * (i, j) covers the full-size area starting at ((x + i) << scale_log2, (y + j) <<
 * scale_log2): x and y are in scaled pixels. 16-bit samples are reduced to 8 bits by
 * value >> 8. Inside the requested window the bytes equal those of a full decode at the
 * same scale.
 */
struct hr_image_part {
    struct hr_pixels pixels;
    int32_t x, y;
    int32_t scale_log2;
};

/* HR_ERR_UNSUPPORTED, with what the file holds instead, if it has no labels that
 * HR_CHANNELS_LABELS can give. */
HR_CHECK enum hr_err
hr__image_check_labels(const struct hr_image_info *info, struct hr_error *reterr);

/* State kept between decodes; used by one thread at a time. HR_ERR_MEMORY. */
struct hr_image_decoder;
HR_CHECK enum hr_err hr__image_decoder_create(struct hr_image_decoder **ret_decoder);
void hr__image_decoder_destroy(struct hr_image_decoder *decoder);

/* Decodes the requested window. On failure *reterr has the codec's message. A JPEG that
 * libjpeg would decode with warnings about corrupt data gives HR_ERR_FORMAT: the user's
 * policy for bad records must see a damaged photo, rather than gray pixels slipping
 * in. */
HR_CHECK enum hr_err
hr__image_decode(struct hr_image_decoder *decoder, struct hr_arena *arena,
                 const void *data, size_t bytes, const struct hr_image_info *info,
                 const struct hr_image_request *request, struct hr_image_part *ret_part,
                 struct hr_error *reterr);

/* Decodes the same window as luma and chroma planes, for a resize that converts to RGB
 * afterwards. Luma is exactly the window; its sample (i, j) covers the full-size area
 * starting at ((x + i) << scale_log2, ...). HR_ERR_UNSUPPORTED without a message if there
 * are no such planes; call hr__image_decode instead. */
struct hr_image_planes {
    struct hr_ycc_planes ycc;
    int32_t x, y, scale_log2;
};
HR_CHECK enum hr_err
hr__image_decode_planes(struct hr_image_decoder *decoder, struct hr_arena *arena,
                        const void *data, size_t bytes, const struct hr_image_info *info,
                        const struct hr_image_request *request,
                        struct hr_image_planes *ret_planes, struct hr_error *reterr);

/* Encode pixels (u8 interleaved, 1 or 3 channels; PNG also 2 and 4), for tools and
 * synthetic data. The caller frees *ret_data with hr__free. */
struct hr_jpeg_options {
    int quality;                /* 1..100 */
    int sampling_x, sampling_y; /* luma samples per chroma sample: 1 or 2, x also 4 */
    bool optimise;              /* compute optimal Huffman tables */
    int restart_rows;           /* MCU rows between restart markers; 0: none */
    bool progressive;
};
HR_CHECK enum hr_err
hr__image_encode_jpeg(const struct hr_pixels *pixels,
                      const struct hr_jpeg_options *options, void **ret_data,
                      size_t *ret_bytes, struct hr_error *reterr);
HR_CHECK enum hr_err hr__image_encode_png(const struct hr_pixels *pixels, void **ret_data,
                                          size_t *ret_bytes, struct hr_error *reterr);

#endif
