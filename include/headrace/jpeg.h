/*
 * headrace/jpeg.h - the JPEG decoder alone: windows, scales and resizes of a photo that
 * lies in memory.
 *
 * It decodes what a window needs and no more. Baseline photos go through Headrace's own
 * decoder, all others and everything odd through libjpeg-turbo; the pixels are the same
 * either way (its "islow" with fancy upsampling). Nothing here opens files but
 * hr_jpeg_entries_save and _load.
 *
 * A worker holds the state of one thread: give each its own. Photos and entry points are
 * only read and may be shared. Windows are in pixels of the photo as it is stored; EXIF
 * orientation is told, not applied.
 *
 * Errors: HR_ERR_FORMAT for a damaged photo, HR_ERR_UNSUPPORTED for what is no JPEG or a
 * kind that nobody here reads, HR_ERR_ARGUMENT for a window outside the photo and the
 * like, HR_ERR_LIMIT above `pixels_max`, HR_ERR_MEMORY. The output is then undefined or
 * untouched, nothing else changes, and the worker can go on.
 */
#ifndef HR_JPEG_H
#define HR_JPEG_H

#include "headrace/base.h"

HR_BEGIN_DECLS

/* ---- what a photo is ---- */

/* From the header; nothing is decoded. */
struct hr_jpeg_info {
    int32_t width, height;          /* as stored */
    int32_t components;             /* 1 gray, 3 colour, 4 CMYK */
    int32_t sampling_x, sampling_y; /* luma samples for one of chroma, 1 to 4; 1 for gray;
                                       0 when chroma components differ */
    int32_t quality;     /* 1..100, estimated from the steps of quantisation; 0: none */
    int32_t restart;     /* MCUs between restart markers, 0: there are none */
    int32_t orientation; /* EXIF 1..8; 1 when absent or malformed */
    bool baseline;       /* sequential, Huffman-coded, 8 bits */
    bool accepted;       /* by Headrace's own decoder, as far as the header tells */
    char reason[64];     /* why not, in words; empty when accepted */
};
HR_API HR_CHECK enum hr_err
hr_jpeg_read_info(const void *data, size_t bytes, struct hr_jpeg_info *ret_info,
                  struct hr_error *reterr);

/* ---- decoding ---- */

/* What one thread decodes with: tables and scratch memory, which grows with the photos
 * and is kept between them. create returns NULL when out of memory. */
struct hr_jpeg_worker;
HR_API HR_CHECK struct hr_jpeg_worker *hr_jpeg_worker_create(void);
HR_API void hr_jpeg_worker_destroy(struct hr_jpeg_worker *worker); /* NULL is fine */

struct hr_jpeg_entries; /* entry points, below */

/* A part of a photo. All zero: the whole photo in RGB. */
struct hr_jpeg_window {
    int32_t x, y, width, height; /* width and height 0: all to the right, below */
    int32_t scale;               /* 1, 2, 4 or 8: decode at 1 / scale; 0 means 1 */
    bool gray;                   /* luma alone, which is less work */
    uint64_t pixels_max;         /* refuse larger photos; 0: 2^28 pixels */
    const struct hr_jpeg_entries *entries; /* of this very photo, or NULL */
};

/* Pixels that the window has: it begins at floor(x / scale) and ends at
 * ceil((x + width) / scale). */
HR_API HR_CHECK enum hr_err
hr_jpeg_window_size(const struct hr_jpeg_info *info, const struct hr_jpeg_window *window,
                    int32_t *ret_width, int32_t *ret_height, struct hr_error *reterr);

/* Decode to u8, 3 channels interleaved (1 for gray), rows `row_bytes` apart at `pixels`.
 * The bytes are those of a full decode at that scale, whatever the window is. */
HR_API HR_CHECK enum hr_err
hr_jpeg_decode(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
               const struct hr_jpeg_window *window, uint8_t *pixels, size_t row_bytes,
               struct hr_error *reterr);

/* ---- decoding and resizing in one ---- */

enum hr_jpeg_mode {
    HR_JPEG_MODE_EXACT, /* the pixels of a full decode are resized */
    HR_JPEG_MODE_CLOSE, /* luma and chroma are resized before colour conversion, and the
                           photo is decoded at 1/2, 1/4, 1/8 where 1.5 times the wanted
                           size remains: within 0.5 levels on average */
    HR_JPEG_MODE_FAST,  /* the same where the wanted size remains */
};

/* A fractional window to out_width x out_height by an antialiased triangle filter
 * (Pillow's and torchvision's bilinear). All zero but for the size: the whole photo, u8,
 * RGB, interleaved, exact. */
struct hr_jpeg_resize {
    double x, y, width, height; /* width and height 0: all to the right, below */
    int32_t out_width, out_height;
    enum hr_jpeg_mode mode;
    bool gray;
    bool flip;           /* mirrored left to right */
    bool planar;         /* [channel][row][column] instead of [row][column][channel] */
    enum hr_dtype dtype; /* HR_U8, HR_F16, HR_BF16, HR_F32; HR_DTYPE_NONE means HR_U8 */
    bool affine;         /* result = level * scale + bias, by channel, levels 0..255 */
    float scale[3], bias[3];
    uint64_t pixels_max;
    const struct hr_jpeg_entries *entries;
};

/* out_width * out_height * channels elements into `out`, dense; out_bytes is their size
 * and is checked. u8 results are rounded, others keep the fractions of the resize. */
HR_API HR_CHECK enum hr_err
hr_jpeg_resize(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
               const struct hr_jpeg_resize *what, void *out, size_t out_bytes,
               struct hr_error *reterr);

/* ---- entry points ---- */

/*
 * Places in the data of one photo where decoding can begin. With them a window costs what
 * it holds, not what lies before it, and several threads can share one large photo. They
 * belong to the bytes that they were made from: every use compares a hash of the photo
 * (20 GB/s) and refuses others with HR_ERR_STATE. Immutable; may be used by any number of
 * threads at once.
 */
struct hr_jpeg_entries_info {
    int32_t step;       /* MCUs between entry points in a row */
    int32_t rows;       /* of MCUs */
    int32_t mcu_height; /* pixels; threads that share a photo do best with parts whose
                           height is a multiple of this */
    size_t bytes;       /* of the saved form */
};

/* Go through a photo once. An entry point every `step` MCUs, 0: at the begin of rows
 * only. HR_ERR_UNSUPPORTED when Headrace's own decoder does not take the photo, or it has
 * restart markers. */
HR_API HR_CHECK enum hr_err
hr_jpeg_entries_make(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
                     int32_t step, struct hr_jpeg_entries **ret_entries,
                     struct hr_error *reterr);

/* Write to a file, by rename. */
HR_API HR_CHECK enum hr_err
hr_jpeg_entries_save(const struct hr_jpeg_entries *entries, const char *path,
                     struct hr_error *reterr);

/* Read what was saved. HR_ERR_FORMAT when its checksum is wrong, HR_ERR_STATE when it was
 * made from other bytes than `data`. */
HR_API HR_CHECK enum hr_err
hr_jpeg_entries_load(const char *path, const void *data, size_t bytes,
                     struct hr_jpeg_entries **ret_entries, struct hr_error *reterr);

/* The same from and to memory; `to` has room for hr_jpeg_entries_info.bytes. */
HR_API void hr_jpeg_entries_store(const struct hr_jpeg_entries *entries, void *to);
HR_API HR_CHECK enum hr_err
hr_jpeg_entries_parse(const void *saved, size_t saved_bytes, const void *data,
                      size_t bytes, struct hr_jpeg_entries **ret_entries,
                      struct hr_error *reterr);

/* What they are. */
HR_API void hr_jpeg_entries_describe(const struct hr_jpeg_entries *entries,
                                     struct hr_jpeg_entries_info *ret_info);

/* Bytes of the photo above and below the window's rows of MCUs, which decoding with these
 * entry points does not read; it saves more, left and right of the window. */
HR_API size_t hr_jpeg_entries_skip(const struct hr_jpeg_entries *entries,
                                   const struct hr_jpeg_window *window);

HR_API void hr_jpeg_entries_destroy(struct hr_jpeg_entries *entries); /* NULL is fine */

HR_END_DECLS

#endif
