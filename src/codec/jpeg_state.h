/*
 * codec/jpeg_state.h - the decoder object, and the steps of a decode: place (which MCUs
 * does the window need), reserve (memory), begin (tables, the data), then rows of MCUs.
 */
#ifndef HR_CODEC_JPEG_STATE_H
#define HR_CODEC_JPEG_STATE_H

#include "codec/jpeg.h"
#include "codec/jpeg_priv.h"

#define HR_JPEG_KEPT 2 /* rows of the strip before, ahead of each strip */
#define HR_JPEG_GROUPS_ROW (HR_JPEG_BATCH * 2 / 4) /* in a row of blocks of a batch */
#define HR_JPEG_GROUPS_MAX (3 * HR_JPEG_GROUPS_ROW * 2)
#define HR_JPEG_SLACK 128 /* what the inner loops may touch behind a row */

/* One component of the photo at the scale of the request. */
struct hr_jpeg_plane {
    int32_t log2, size;    /* of its blocks after the transform */
    int32_t width, height; /* samples of the whole photo */
    int32_t mcu_width, mcu_height;
    bool wide, tall; /* it must be doubled in that direction */
    bool triangle;   /* by the triangle filter, else by repetition */
    bool wanted;     /* gray does without chroma */
    int32_t x0, x1;  /* samples that the window needs */
    int32_t y0, y1;
    int32_t first; /* sample column of the strip's first */
    ptrdiff_t stride;
    uint8_t *strip; /* KEPT rows, then those of a row of MCUs */
    uint8_t *whole; /* all strips, when they are kept */
    int32_t top;    /* row of the photo at strip's row KEPT */
    int16_t quant[64];
    int16_t *groups; /* coefficients of a batch: v rows of GROUPS_ROW groups */
};

struct hr_jpeg {
    struct hr_jpeg_header header;
    const struct hr_jpeg_kernels *kernels;
    struct hr_jpeg_scan scan;
    const uint8_t *segment; /* where the data goes on, behind a restart marker; or NULL */
    int32_t segment_left;   /* MCUs before the next restart */
    int32_t restarts;
    struct hr_jpeg_index *index; /* of this photo, or NULL */
    int32_t known;               /* rows of MCUs that it knows */
    int32_t went;                /* MCUs gone through */
    bool gathers;        /* those below are added, kept when the decode ends well */
    size_t points_bytes; /* of the index with what was added */
    uint64_t noted_bits; /* of the last point */
    int32_t noted_predictor[3];
    uint32_t base; /* unstuffed bytes before the first one, with an index */
    uint8_t *unstuffed;
    size_t unstuffed_bytes;

    struct hr_jpeg_plane plane[3];
    int32_t mcus_x, mcus_y;      /* of the photo */
    int32_t mx0, mx1, my0, my1;  /* that the window needs */
    int32_t x, y, width, height; /* the window in scaled pixels */
    int32_t channels;
    bool planar;                            /* planes are asked for, not pixels */
    int32_t scale_log2, planes;             /* how many are wanted */
    struct hr_jpeg_seen *seen;              /* of this photo, or NULL */
    const struct hr_jpeg_seen_part *within; /* it has all of the window; or NULL */
    int32_t read0, read1; /* rows of MCUs of which some must be decoded; none: equal or
                             crossed */
    uint8_t *pixels;
    uint8_t *row[2]; /* an upsampled row of each chroma component */
    uint16_t *sums;
    uint8_t *gray; /* a row of 128: the chroma of a gray photo */

    uint8_t *block; /* holds the above */
    size_t block_bytes;
    uint32_t idle; /* photos since the block was needed in full */

    struct hr_jpeg_table dc[4], ac[4];
    _Alignas(64) int16_t groups[HR_JPEG_GROUPS_MAX * HR_JPEG_GROUP];
};

/* Strips stay where they are made: for planes, or for later windows. */
static inline bool hr__jpeg_keeps_strips(const struct hr_jpeg *jpeg)
{
    return jpeg->planar || jpeg->seen != NULL;
}

/* Earlier decodes have made all of the window. */
static inline bool hr__jpeg_is_seen(const struct hr_jpeg *jpeg)
{
    return jpeg->read0 >= jpeg->read1;
}

/* Reduced planes are made of the low frequencies; see hr__jpeg_planes. */
static inline bool hr__jpeg_is_low(const struct hr_jpeg *jpeg)
{
    return jpeg->planar && jpeg->scale_log2 > 0;
}

static inline int32_t hr__divide_up(int32_t a, int32_t b)
{
    return (a + b - 1) / b;
}

/* Geometry, from the header and the request. */
void hr__jpeg_place(struct hr_jpeg *jpeg, const struct hr_image_job *job);
/* Each block takes two bits at least; a header that promises more would only take memory.
 */
bool hr__jpeg_is_promise_kept(const struct hr_jpeg *jpeg);
/* The block of memory; false when there is none. */
HR_CHECK bool hr__jpeg_reserve(struct hr_jpeg *jpeg);

/* All up to the entropy-coded data. An index that does not fit is left alone. */
HR_CHECK enum hr_err
hr__jpeg_prepare(struct hr_jpeg *jpeg, const struct hr_image_job *job, bool planar);

/* What of the window is there; `seen` may be NULL. */
void hr__jpeg_look_at_seen(struct hr_jpeg *jpeg, struct hr_jpeg_seen *seen);
/* The next MCUs [*from, *ret_to) of the window's row that must be decoded; false: none.
 */
bool hr__jpeg_find_unseen(const struct hr_jpeg *jpeg, int32_t my, int32_t *from,
                          int32_t *ret_to);
/* Copy the others to the strip, when those are decoded. */
void hr__jpeg_take_seen(struct hr_jpeg *jpeg, int32_t my);
/* The planes are those of `within`. */
void hr__jpeg_show_seen(struct hr_jpeg *jpeg);
/* All went well: later windows may take what this one has. */
void hr__jpeg_leave_seen(struct hr_jpeg *jpeg);

/* Tables, the list of blocks; the data up to the first restart marker, or what
 * the index says is needed. False: declined, as from all below. */
HR_CHECK bool hr__jpeg_begin(struct hr_jpeg *jpeg);
/* The next MCUs through `mcus`, one of the kernels, across restart markers. */
HR_CHECK bool hr__jpeg_run(struct hr_jpeg *jpeg, int64_t count,
                           bool (*mcus)(struct hr_jpeg_scan *, int32_t));
/* Bits that the data had and that were not taken; negative when more were taken. */
ptrdiff_t hr__jpeg_bits_over(const struct hr_jpeg_scan *scan);
/* Behind the last MCU of a segment: less than a byte may be left. */
bool hr__jpeg_is_used_up(const struct hr_jpeg_scan *scan);

/* The index of a request, unless it cannot be of this photo; false: out of memory. What
 * it knows is unstuffed by open_index, and entered by seek: to MCU (mx, my). */
HR_CHECK bool hr__jpeg_take_index(struct hr_jpeg *jpeg, struct hr_jpeg_index *index,
                                  struct hr_arena *arena);
HR_CHECK bool hr__jpeg_open_index(struct hr_jpeg *jpeg);
HR_CHECK bool hr__jpeg_seek(struct hr_jpeg *jpeg, int32_t my, int32_t mx);
/* From the rows that are known to the begin of row `my`, below them. */
HR_CHECK bool hr__jpeg_reach(struct hr_jpeg *jpeg, int32_t my);
/* The MCUs of a row from mx up to `to` through `mcus`, as hr__jpeg_run does; notes points
 * on the way. */
HR_CHECK bool hr__jpeg_pass(struct hr_jpeg *jpeg, int32_t my, int32_t mx, int32_t to,
                            bool (*mcus)(struct hr_jpeg_scan *, int32_t));
/* All went well: the index gains the rows that were passed. */
void hr__jpeg_keep_index(struct hr_jpeg *jpeg);

#endif
