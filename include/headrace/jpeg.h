/*
 * headrace/jpeg.h - the JPEG decoder by itself: windows, scales and resizes of photos in
 * memory.
 *
 * It decodes only what a window needs. Headrace's own decoder handles baseline photos,
 * libjpeg-turbo all others; the pixels are the same either way (libjpeg-turbo's "islow"
 * with fancy upsampling). Only hr_jpeg_entries_save and _load access files.
 *
 * A worker is the decoding state of one thread: create one per thread. Photos and seek
 * points are read-only and may be shared between threads. Windows are in pixels of the
 * photo as stored; EXIF orientation is reported but not applied.
 *
 * Errors: HR_ERR_FORMAT for a damaged photo, HR_ERR_UNSUPPORTED for data that is not a
 * JPEG or not a supported kind, HR_ERR_ARGUMENT for invalid arguments such as a window
 * outside the photo, HR_ERR_LIMIT above `pixels_max`, HR_ERR_MEMORY. The output buffer is
 * then undefined or unchanged, everything else is unchanged, and the worker can be used
 * again.
 */
#ifndef HR_JPEG_H
#define HR_JPEG_H

#include "headrace/base.h"

HR_BEGIN_DECLS

/* ---- info ---- */

/* Read from the header without decoding. */
struct hr_jpeg_info {
    int32_t width, height;          /* as stored */
    int32_t components;             /* 1 gray, 3 colour, 4 CMYK */
    int32_t sampling_x, sampling_y; /* luma samples per chroma sample, 1 to 4; 1 for gray;
                                       0 if chroma components differ */
    int32_t quality;     /* 1..100, estimated from the quantisation steps; 0: no table */
    int32_t restart;     /* MCUs between restart markers; 0: none */
    int32_t orientation; /* EXIF 1..8; 1 if absent or malformed */
    bool baseline;       /* sequential, Huffman-coded, 8 bits */
    bool accepted;       /* by Headrace's own decoder, judging by the header */
    char reason[64];     /* why it is not accepted; else empty */
};
HR_API HR_CHECK enum hr_err
hr_jpeg_read_info(const void *data, size_t bytes, struct hr_jpeg_info *ret_info,
                  struct hr_error *reterr);

/* ---- decoding ---- */

/* The decoding state of one thread: tables, and scratch memory that grows with the photos
 * and is kept between them. create returns NULL when out of memory. */
struct hr_jpeg_worker;
HR_API HR_CHECK struct hr_jpeg_worker *hr_jpeg_worker_create(void);
HR_API void hr_jpeg_worker_destroy(struct hr_jpeg_worker *worker); /* NULL is allowed */

struct hr_jpeg_entries; /* seek points, below */

/* A part of a photo. All zero means the whole photo in RGB. */
struct hr_jpeg_window {
    int32_t x, y, width, height; /* width, height 0: up to the right, bottom edge */
    int32_t scale;               /* 1, 2, 4 or 8: decode at 1 / scale; 0 means 1 */
    bool gray;                   /* only luma, which is faster */
    uint64_t pixels_max;         /* fail on larger photos; 0: 2^28 pixels */
    const struct hr_jpeg_entries *entries; /* seek points of this photo, or NULL */
};

/* Size of the window in output pixels: it begins at floor(x / scale) and ends at ceil((x
 * + width) / scale). */
HR_API HR_CHECK enum hr_err
hr_jpeg_window_size(const struct hr_jpeg_info *info, const struct hr_jpeg_window *window,
                    int32_t *ret_width, int32_t *ret_height, struct hr_error *reterr);

/* Decodes to u8, 3 interleaved channels (1 for gray), with rows `row_bytes` apart at
 * `pixels`. The bytes equal those of a full decode at that scale, whatever the window. */
HR_API HR_CHECK enum hr_err
hr_jpeg_decode(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
               const struct hr_jpeg_window *window, uint8_t *pixels, size_t row_bytes,
               struct hr_error *reterr);

/* ---- decoding and resizing ---- */

enum hr_jpeg_mode {
    HR_JPEG_MODE_EXACT, /* resizes the pixels of a full decode */
    HR_JPEG_MODE_CLOSE, /* resizes luma and chroma before colour conversion, and decodes
                           at 1/2, 1/4, 1/8 while at least 1.5 times the output size
                           remains: within 0.5 levels on average */
    HR_JPEG_MODE_FAST,  /* the same while at least the output size remains */
};

/* Resizes a fractional window to out_width x out_height with an antialiased triangle
 * filter (Pillow's and torchvision's bilinear). All zero except the size means: the whole
 * photo, u8, RGB, interleaved, exact. */
struct hr_jpeg_resize {
    double x, y, width, height; /* width, height 0: up to the right, bottom edge */
    int32_t out_width, out_height;
    enum hr_jpeg_mode mode;
    bool gray;
    bool flip;           /* mirror left to right */
    bool planar;         /* [channel][row][column] instead of [row][column][channel] */
    enum hr_dtype dtype; /* HR_U8, HR_F16, HR_BF16, HR_F32; HR_DTYPE_NONE means HR_U8 */
    bool affine;         /* result = level * scale + bias per channel, levels 0..255 */
    float scale[3], bias[3];
    uint64_t pixels_max;
    const struct hr_jpeg_entries *entries;
};

/* Writes out_width * out_height * channels contiguous elements to `out`; out_bytes must
 * be their size. u8 results are rounded, others keep fractions. */
HR_API HR_CHECK enum hr_err
hr_jpeg_resize(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
               const struct hr_jpeg_resize *what, void *out, size_t out_bytes,
               struct hr_error *reterr);

/* ---- seek points ---- */

/*
 * Positions in one photo's data where decoding can start. With them the cost of a window
 * depends on its size, not on what precedes it, and several threads can split one large
 * photo. They belong to the bytes they were made from: every use compares a hash of the
 * photo (20 GB/s) and fails with HR_ERR_STATE on a mismatch. Immutable and thread-safe.
 */
struct hr_jpeg_entries_info {
    int32_t step;       /* MCUs between seek points in a row */
    int32_t rows;       /* of MCUs */
    int32_t mcu_height; /* pixels; when threads split a photo, parts whose height is a
                           multiple of this are best */
    size_t bytes;       /* size when saved */
};

/* Reads a photo once and records a seek point every `step` MCUs; 0: at row starts only.
 * HR_ERR_UNSUPPORTED if Headrace's own decoder does not accept the photo or if it has
 * restart markers. */
HR_API HR_CHECK enum hr_err
hr_jpeg_entries_make(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
                     int32_t step, struct hr_jpeg_entries **ret_entries,
                     struct hr_error *reterr);

/* Writes them to a file atomically. */
HR_API HR_CHECK enum hr_err
hr_jpeg_entries_save(const struct hr_jpeg_entries *entries, const char *path,
                     struct hr_error *reterr);

/* Reads saved seek points. HR_ERR_FORMAT if the checksum is wrong, HR_ERR_STATE if they
 * were made from other bytes than `data`. */
HR_API HR_CHECK enum hr_err
hr_jpeg_entries_load(const char *path, const void *data, size_t bytes,
                     struct hr_jpeg_entries **ret_entries, struct hr_error *reterr);

/* The same in memory; `to` must have hr_jpeg_entries_info.bytes bytes. */
HR_API void hr_jpeg_entries_store(const struct hr_jpeg_entries *entries, void *to);
HR_API HR_CHECK enum hr_err
hr_jpeg_entries_parse(const void *saved, size_t saved_bytes, const void *data,
                      size_t bytes, struct hr_jpeg_entries **ret_entries,
                      struct hr_error *reterr);

/* Describes the seek points. */
HR_API void hr_jpeg_entries_describe(const struct hr_jpeg_entries *entries,
                                     struct hr_jpeg_entries_info *ret_info);

/* Bytes of the photo above and below the window's MCU rows, which decoding with these
 * seek points does not read. It also skips parts left and right of the window. */
HR_API size_t hr_jpeg_entries_skip(const struct hr_jpeg_entries *entries,
                                   const struct hr_jpeg_window *window);

HR_API void
hr_jpeg_entries_destroy(struct hr_jpeg_entries *entries); /* NULL is allowed */

HR_END_DECLS

#endif
