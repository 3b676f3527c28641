/*
 * op/kind.h - kinds of field: what a field's numbers are, and how they follow when the
 * image that they belong to is moved.
 *
 * An op that moves an image draws once, says what it did as a struct hr_move or struct
 * hr_warp, and every field that is bound with the image follows by its kind (ops/move.h).
 * A kind is one file, ops/kind_NAME.c, with one const struct, and one line in
 * ops/kinds.c. The ranges of an image's levels (enum hr_meaning) are no kinds of their
 * own.
 */
#ifndef HR_OP_KIND_H
#define HR_OP_KIND_H

#include "op/op.h"

/*
 * How an image is moved: padded, then cropped, then resized, then mirrored. Sides are in
 * pixels of the image before; the window is in pixels of the padded image.
 */
struct hr_move {
    int32_t width, height; /* of the image before */
    int32_t left, top, right, bottom;
    int pad_mode; /* enum hr_pad_mode */
    float fill[4];
    int32_t mask_fill; /* the label of masks where images have `fill` */
    int32_t x, y, crop_width, crop_height;
    int32_t to_width, to_height; /* of the result */
    int filter;                  /* enum hr_filter */
    bool antialias;
    bool flip_x, flip_y;
};

/*
 * How an image is rotated, shifted, scaled and sheared: position (x, y) of the result
 * comes from (m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]) of the image
 * before. Positions are in pixels; the top left corner of an image is (0, 0).
 */
struct hr_warp {
    int32_t width, height; /* of the image before */
    int32_t to_width, to_height;
    double m[6]; /* invertible, as in kernel/warp.h */
    double p[2]; /* perspective; 0, 0: affine */
    /* Elastic, in place of m and p; else NULL: pixel (x, y) of the result comes from
     * (x + shift_x, y + shift_y), with entries of width * height pixels. The result has
     * the image's size. */
    const float *shift_x, *shift_y;
    int filter; /* enum hr_filter: nearest or bilinear */
    float fill[4];
    int32_t mask_fill;
};

struct hr_kind {
    const char *name;  /* "boxes" */
    const char *wants; /* what a field of this kind is, for messages: "float32 [n, 4]" */
    /* The meanings of its fields; a field that is declared to be of this kind gets the
     * first, or one of float32 `meaning_f32` unless that is HR_MEANING_NONE. */
    enum hr_meaning meaning, meaning_last, meaning_f32;
    /* Values are pixels in rows and columns. They may be deferred, and have the size of
     * the image that they belong to. */
    bool pixels;
    /* True for a tensor field of a record that may be declared to be of this kind. */
    bool (*accepts)(const struct hr_field *field);
    /* Moves the made or deferred value of a bound field; NULL for a kind that does not
     * belong to an image. */
    HR_CHECK enum hr_err (*move)(struct hr_op_ctx *ctx, size_t field,
                                 const struct hr_move *move);
    /* The same for a warp; NULL where `move` is. */
    HR_CHECK enum hr_err (*warp)(struct hr_op_ctx *ctx, size_t field,
                                 const struct hr_warp *warp);
};

/* The kind of a field, or NULL. */
const struct hr_kind *hr__kind_of(const struct hr_field *field);

/* The kind of this name, or NULL; ops/kinds.c has the list. */
const struct hr_kind *hr__kind_find(const char *name);

#endif
