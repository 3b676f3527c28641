/*
 * codec/image.h - encoded photos to pixels, as much of them as is wanted.
 *
 * The narrow door to JPEG, PNG, WebP and PNM. Knows nothing of data loading. A decoder
 * object keeps the libraries' state between photos; each thread has its own.
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

/* What the header says; no pixel is decoded. */
struct hr_image_info {
    enum hr_image_format format;
    int32_t width, height; /* as stored, before orientation */
    int32_t channels;  /* in the file: 1 gray, 2 gray + alpha, 3 colour, 4 colour + alpha
                          or CMYK */
    int32_t bit_depth; /* 1, 2, 4, 8, 16 */
    int32_t orientation; /* EXIF 1..8; 1 when absent or malformed */
    bool cmyk;
};

/* The format by the first bytes. */
enum hr_image_format hr__image_sniff(const void *data, size_t bytes);
const char *hr__image_format_name(enum hr_image_format format);

/* HR_ERR_FORMAT with a reason when the header is broken, HR_ERR_UNSUPPORTED (naming what
 * it looks like: "GIF", "an HTML page", "empty file") when the format is not one of ours.
 */
HR_CHECK enum hr_err
hr__image_probe(const void *data, size_t bytes, struct hr_image_info *ret_info,
                struct hr_error *reterr);

enum hr_image_channels {
    HR_CHANNELS_RGB,  /* gray is repeated, alpha is dropped, CMYK is converted as Pillow
                         does */
    HR_CHANNELS_GRAY, /* luma as the codec or ITU-R 601 gives it (Pillow's "L") */
    HR_CHANNELS_UNCHANGED, /* as in the file: 1, 2, 3 or 4 channels; CMYK is converted to
                              RGB; palettes expanded */
};

struct hr_image_request {
    enum hr_image_channels channels;
    int32_t x, y, width,
        height;         /* window wanted, in stored full-size pixels, inside the image */
    int32_t scale_log2; /* JPEG may be decoded at 1 / 2^scale_log2 (0 to 3); others ignore
                           it */
    uint64_t pixels_max;         /* refuse larger images with HR_ERR_LIMIT; 0: 2^28 */
    struct hr_jpeg_index *index; /* or NULL: entry points of this very file, an empty one
                                    at first; used, and completed when the decode ends
                                    well. Others than JPEG leave it alone. */
    struct hr_jpeg_seen *seen;   /* or NULL: what earlier requests for this very file
                                    decoded into the same arena; used and added to */
};

/*
 * What was decoded. `pixels` is u8 interleaved, in the arena; it covers at least the
 * window. Its pixel (i, j) stands for full-size area [(x + i) << scale_log2, ...): x, y
 * are in scaled pixels. 16-bit files are reduced to 8 bits by value >> 8. Inside the
 * requested window the bytes equal those of a full decode at the same scale, whatever the
 * window was.
 */
struct hr_image_part {
    struct hr_pixels pixels;
    int32_t x, y;
    int32_t scale_log2;
};

/* What decodes keep from one to the next; for one thread at a time. HR_ERR_MEMORY. */
struct hr_image_decoder;
HR_CHECK enum hr_err hr__image_decoder_create(struct hr_image_decoder **ret_decoder);
void hr__image_decoder_destroy(struct hr_image_decoder *decoder);

/* Decode. On failure *reterr tells what the codec said. A JPEG that libjpeg would decode
 * with warnings about damaged data is refused (HR_ERR_FORMAT): a damaged photo must meet
 * the user's policy, not slip gray pixels in. */
HR_CHECK enum hr_err
hr__image_decode(struct hr_image_decoder *decoder, struct hr_arena *arena,
                 const void *data, size_t bytes, const struct hr_image_info *info,
                 const struct hr_image_request *request, struct hr_image_part *ret_part,
                 struct hr_error *reterr);

/* The same window as luma and chroma, for a resize that converts behind itself. Luma is
 * exactly the window; its sample (i, j) stands for full-size area [(x + i) << scale_log2,
 * ...). HR_ERR_UNSUPPORTED, without words, for what has no planes to give; then decode.
 */
struct hr_image_planes {
    struct hr_ycc_planes ycc;
    int32_t x, y, scale_log2;
};
HR_CHECK enum hr_err
hr__image_decode_planes(struct hr_image_decoder *decoder, struct hr_arena *arena,
                        const void *data, size_t bytes, const struct hr_image_info *info,
                        const struct hr_image_request *request,
                        struct hr_image_planes *ret_planes, struct hr_error *reterr);

/* Pixels (u8 interleaved, 1 or 3 channels; PNG also 2 and 4) to a file's bytes, for tools
 * and synthetic data; hr__free *ret_data. */
struct hr_jpeg_options {
    int quality;                /* 1..100 */
    int sampling_x, sampling_y; /* luma over chroma: 1 or 2, x also 4 */
    bool optimise;              /* Huffman tables of its own */
    int restart_rows;           /* MCU rows between restart markers, 0: none */
    bool progressive;
};
HR_CHECK enum hr_err
hr__image_encode_jpeg(const struct hr_pixels *pixels,
                      const struct hr_jpeg_options *options, void **ret_data,
                      size_t *ret_bytes, struct hr_error *reterr);
HR_CHECK enum hr_err hr__image_encode_png(const struct hr_pixels *pixels, void **ret_data,
                                          size_t *ret_bytes, struct hr_error *reterr);

#endif
