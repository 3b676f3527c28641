/*
 * codec/image_source.h - a window of a photo, resized: which pixels to decode and at
 * which scale, and the resize of what came.
 *
 * Decode no more than the filter's taps reach, at the lowest scale that the mode allows.
 * Taps are clamped to the clip rectangle as if it alone had been decoded: a cut made
 * tighter than the clip lies where no tap reaches. Knows nothing of records.
 */
#ifndef HR_CODEC_IMAGE_SOURCE_H
#define HR_CODEC_IMAGE_SOURCE_H

#include "codec/image.h"

enum hr_image_mode {
    HR_MODE_EXACT, /* never decode at a reduced scale; same bytes fused or not */
    HR_MODE_CLOSE, /* power-of-two scaling while 1.5x oversampling remains */
    HR_MODE_FAST,  /* power-of-two scaling while the target is covered */
};

/* What is shown of a picture, and how. Coordinates are those of the upright picture. */
struct hr_image_view {
    int32_t clip_x, clip_y, clip_width, clip_height; /* pixels outside are never read */
    double box_x, box_y, box_width, box_height;      /* shown; may be fractional */
    int32_t width, height;                           /* of the result */
    bool resampled;                                  /* else the clip is shown as it is */
    enum hr_filter filter;
    bool antialias;
    enum hr_image_mode mode;
    enum hr_image_channels want;
    int32_t channels; /* that this gives for the photo */
    int orientation;  /* EXIF 1..8, to be undone */
    uint64_t pixels_max;
    struct hr_jpeg_index *index; /* or NULL; see hr_image_request */
    struct hr_jpeg_seen *seen;   /* likewise */
};

/* Pixels made available, and where the box lies in them. With `planar` they are luma, and
 * chroma stands beside it. */
struct hr_image_source {
    struct hr_pixels pixels;
    bool planar;
    struct hr_ycc_planes ycc;
    double box_x, box_y, box_width, box_height;
};

/* Decode what the view needs of a photo; pixels in `arena`. A photo that its EXIF data
 * turns is put upright by a copy of the decoded part, before any arithmetic. */
HR_CHECK enum hr_err
hr__image_source_decode(struct hr_image_decoder *decoder, struct hr_arena *arena,
                        const void *data, size_t bytes, const struct hr_image_info *info,
                        const struct hr_image_view *view,
                        struct hr_image_source *ret_source, struct hr_error *reterr);

/* The same of pixels that are there: a view of them. */
void hr__image_source_cut(const struct hr_pixels *pixels,
                          const struct hr_image_view *view,
                          struct hr_image_source *ret_source);

/* Resize to `to`; see hr__resample_run. */
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
