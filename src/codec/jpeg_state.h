/*
 * codec/jpeg_state.h - the decoder object and the steps of a decode: place (which MCUs
 * the window needs), reserve (memory), begin (tables, data), then MCU row by MCU row.
 */
#ifndef HR_CODEC_JPEG_STATE_H
#define HR_CODEC_JPEG_STATE_H

#include "codec/jpeg.h"
#include "codec/jpeg_priv.h"

#define HR_JPEG_KEPT 2 /* rows of the previous strip, kept before each strip */
#define HR_JPEG_GROUPS_ROW (HR_JPEG_BATCH * 2 / 4) /* per row of blocks in a batch */
#define HR_JPEG_GROUPS_MAX (3 * HR_JPEG_GROUPS_ROW * 2)
#define HR_JPEG_SLACK 128 /* bytes that the inner loops may access after a row */

/* One component of the photo at the scale of the request. */
struct hr_jpeg_plane {
    int32_t log2, size;    /* of its blocks after the transform */
    int32_t width, height; /* samples of the whole photo */
    int32_t mcu_width, mcu_height;
    bool wide, tall; /* must be doubled in that direction */
    bool triangle;   /* by the triangle filter, else by replication */
    bool wanted;     /* false for chroma if gray is requested */
    int32_t x0, x1;  /* samples that the window needs */
    int32_t y0, y1;
    int32_t first; /* sample column where the strip begins */
    ptrdiff_t stride;
    uint8_t *strip; /* KEPT rows, then those of one MCU row */
    uint8_t *whole; /* all strips, if they are kept */
    int32_t top;    /* row of the photo that is the strip's row KEPT */
    int16_t quant[64];
    int16_t *groups; /* coefficients of a batch: v rows of GROUPS_ROW groups */
};

struct hr_jpeg {
    struct hr_jpeg_header header;
    const struct hr_jpeg_kernels *kernels;
    struct hr_jpeg_scan scan;
    const uint8_t *segment; /* where data continues after a restart marker, or NULL */
    int32_t segment_left;   /* MCUs before the next restart */
    int32_t restarts;
    struct hr_jpeg_index *index; /* of this photo, or NULL */
    int32_t known;               /* rows of MCUs that the index covers */
    int32_t went;                /* MCUs read so far */
    bool records_points; /* rows after the known ones are recorded, and kept if the decode
                     succeeds */
    size_t points_bytes; /* of the index, including added points */
    uint64_t noted_bits; /* of the last recorded point */
    int32_t noted_predictor[3];
    uint32_t base; /* with an index: unstuffed bytes before the first one copied */
    uint8_t *unstuffed;
    size_t unstuffed_bytes;

    struct hr_jpeg_plane plane[3];
    int32_t mcus_x, mcus_y;      /* of the photo */
    int32_t mx0, mx1, my0, my1;  /* needed for the window */
    int32_t x, y, width, height; /* the window in scaled pixels */
    int32_t channels;
    bool planar;                /* planes are requested, not pixels */
    int32_t scale_log2, planes; /* planes: how many are wanted */
    struct hr_jpeg_seen *seen;  /* of this photo, or NULL */
    const struct hr_jpeg_seen_part
        *within; /* the part that covers the whole window, or NULL */
    int32_t read0,
        read1; /* rows of MCUs with something to decode; none if read0 >= read1 */
    uint8_t *pixels;
    uint8_t *row[2]; /* an upsampled row of each chroma component */
    uint16_t *sums;
    uint8_t *gray; /* a row of 128: the chroma of a gray photo */

    uint8_t *block; /* the allocation that holds the above */
    size_t block_bytes;
    uint32_t idle; /* photos since the whole block was needed */

    struct hr_jpeg_table dc[4], ac[4];
    _Alignas(64) int16_t groups[HR_JPEG_GROUPS_MAX * HR_JPEG_GROUP];
};

/* True if strips stay where they are decoded: for planes, or for later windows. */
static inline bool hr__jpeg_retains_strips(const struct hr_jpeg *jpeg)
{
    return jpeg->planar || jpeg->seen != NULL;
}

/* True if earlier decodes cover the whole window. */
static inline bool hr__jpeg_is_covered(const struct hr_jpeg *jpeg)
{
    return jpeg->read0 >= jpeg->read1;
}

/* True for reduced planes, which use only low frequencies; see hr__jpeg_planes. */
static inline bool hr__jpeg_is_low(const struct hr_jpeg *jpeg)
{
    return jpeg->planar && jpeg->scale_log2 > 0;
}

static inline int32_t hr__divide_up(int32_t a, int32_t b)
{
    return (a + b - 1) / b;
}

/* Computes the geometry from the header and the request. */
void hr__jpeg_place(struct hr_jpeg *jpeg, const struct hr_image_job *job);
/* True if the data can hold all blocks: each takes at least two bits. Checked before
 * memory is allocated for them. */
bool hr__jpeg_data_may_suffice(const struct hr_jpeg *jpeg);
/* Allocates the block of memory; false if out of memory. */
HR_CHECK bool hr__jpeg_reserve(struct hr_jpeg *jpeg);

/* Everything up to the entropy-coded data. An index that does not match is ignored. */
HR_CHECK enum hr_err
hr__jpeg_prepare(struct hr_jpeg *jpeg, const struct hr_image_job *job, bool planar);

/* Determines which part of the window earlier decodes cover; `seen` may be NULL. */
void hr__jpeg_find_seen(struct hr_jpeg *jpeg, struct hr_jpeg_seen *seen);
/* Finds the next MCUs [*from, *ret_to) of the window's row that must be decoded; false if
 * there are none. */
bool hr__jpeg_find_unseen(const struct hr_jpeg *jpeg, int32_t my, int32_t *from,
                          int32_t *ret_to);
/* Copies the other MCUs to the strip; call it after those are decoded. */
void hr__jpeg_copy_seen(struct hr_jpeg *jpeg, int32_t my);
/* Sets the planes to those of `within`. */
void hr__jpeg_use_seen_planes(struct hr_jpeg *jpeg);
/* After a successful decode: adds this window's samples for later ones. */
void hr__jpeg_add_seen(struct hr_jpeg *jpeg);

/* Sets up tables and the list of blocks, and unstuffs the data up to the first restart
 * marker, or what is needed according to the index. Returns false to decline, as do all
 * functions below. */
HR_CHECK bool hr__jpeg_begin(struct hr_jpeg *jpeg);
/* Runs the next MCUs through `mcus`, one of the kernels, across restart markers. */
HR_CHECK bool hr__jpeg_run(struct hr_jpeg *jpeg, int64_t count,
                           bool (*mcus)(struct hr_jpeg_scan *, int32_t));
/* Number of bits not yet consumed; negative if more were consumed than the data had. */
ptrdiff_t hr__jpeg_bits_left(const struct hr_jpeg_scan *scan);
/* True if less than a byte is left, as there must be after a segment's last MCU. */
bool hr__jpeg_is_exhausted(const struct hr_jpeg_scan *scan);

/* Opens the request's index unless it cannot belong to this photo; false if out of
 * memory. open_index unstuffs what the index covers, seek goes to MCU (mx, my) in it. */
HR_CHECK bool hr__jpeg_set_index(struct hr_jpeg *jpeg, struct hr_jpeg_index *index,
                                 struct hr_arena *arena);
HR_CHECK bool hr__jpeg_open_index(struct hr_jpeg *jpeg);
HR_CHECK bool hr__jpeg_seek(struct hr_jpeg *jpeg, int32_t my, int32_t mx);
/* Reads on from the known rows to the beginning of row `my` below them. */
HR_CHECK bool hr__jpeg_reach(struct hr_jpeg *jpeg, int32_t my);
/* Runs the MCUs of a row from mx up to `to` through `mcus`, like hr__jpeg_run, and
 * records points on the way. */
HR_CHECK bool hr__jpeg_advance(struct hr_jpeg *jpeg, int32_t my, int32_t mx, int32_t to,
                               bool (*mcus)(struct hr_jpeg_scan *, int32_t));
/* After a successful decode: adds the rows that were read to the index. */
void hr__jpeg_keep_index(struct hr_jpeg *jpeg);

#endif
