/*
 * codec/image_source.h - a resized window of a photo: which pixels to decode, at which
 * scale, and the resize.
 *
 * Decodes only what the filter's taps reach, at the lowest scale that the mode allows.
 * Taps are clamped to the clip rectangle, as if only the clip had been decoded: where the
 * decoded part is smaller than the clip, no tap reaches its edge. Independent of records.
 */
#ifndef HR_CODEC_IMAGE_SOURCE_H
#define HR_CODEC_IMAGE_SOURCE_H

#include "codec/image.h"

enum hr_image_mode {
    HR_MODE_EXACT, /* never decode at a reduced scale: same bytes fused or not */
    HR_MODE_CLOSE, /* reduce by powers of two while at least 1.5x oversampled */
    HR_MODE_FAST,  /* reduce by powers of two while the target is covered */
};

/* Which part of an image to show, and how. Coordinates refer to the upright image. */
struct hr_image_view {
    int32_t clip_x, clip_y, clip_width, clip_height; /* pixels outside are never read */
    double box_x, box_y, box_width, box_height; /* the part to show; may be fractional */
    int32_t width, height;                      /* size of the result */
    int32_t full_width, full_height; /* in mode exact: the box is resized to this size and
                                        the result is a window of that; else 0 */
    int32_t at_x, at_y;              /* where the window begins, before mirroring */
    bool resampled;                  /* else the clip is copied unscaled */
    enum hr_filter filter;
    bool antialias;
    enum hr_image_mode mode;
    enum hr_image_channels want;
    int32_t channels; /* channels of the result for this photo */
    int orientation;  /* EXIF 1..8, to be undone */
    uint64_t pixels_max;
    struct hr_jpeg_index *index; /* or NULL; see hr_image_request */
    struct hr_jpeg_seen *seen;   /* or NULL; see hr_image_request */
};

/* Decoded pixels, where they begin in the upright image, and where the box lies in them.
 * If `planar`, `pixels` is luma and
 * chroma is separate. */
struct hr_image_source {
    struct hr_pixels pixels;
    bool planar;
    struct hr_ycc_planes ycc;
    int32_t x, y;
    double box_x, box_y, box_width, box_height;
};

/* Decodes what the view needs of a photo; pixels are in `arena`. If EXIF says that the
 * photo is rotated, the decoded part is copied upright before any arithmetic. */
HR_CHECK enum hr_err
hr__image_source_decode(struct hr_image_decoder *decoder, struct hr_arena *arena,
                        const void *data, size_t bytes, const struct hr_image_info *info,
                        const struct hr_image_view *view,
                        struct hr_image_source *ret_source, struct hr_error *reterr);

/* Memory that hr__image_source_decode takes for this view, at most. With `drawn`, for any
 * box of the same shape within the clip. */
uint64_t
hr__image_source_bytes(const struct hr_image_info *info, const struct hr_image_view *view,
                       size_t bytes, bool drawn);

/* hr__image_source_decode for pixels that are already decoded: gives a view of them. */
void hr__image_source_cut(const struct hr_pixels *pixels,
                          const struct hr_image_view *view,
                          struct hr_image_source *ret_source);

/* Resizes to `to`; see hr__resample_run. */
struct hr_image_finish {
    bool flip_x, flip_y, round_levels;
    const struct hr_affine *steps;
    int step_count;
};
HR_CHECK enum hr_err
hr__image_source_resample(struct hr_arena *arena, const struct hr_image_source *source,
                          const struct hr_image_view *view,
                          const struct hr_image_finish *finish,
                          const struct hr_pixels *to, struct hr_error *reterr);

#endif
