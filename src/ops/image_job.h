/*
 * ops/image_job.h - an image that is described and not yet made.
 *
 * A deferred image is a source (encoded bytes or pixels), a window of it, a target size,
 * mirror flags, affine steps, a frame of constant pixels around all that, a dtype and a
 * layout. Crops, flips, resizes, pads, casts and normalisation only edit this. Forcing it
 * runs one kernel that decodes the window at the best scale, resamples, maps and stores,
 * straight into the batch's slot if it can. The meaning is that of making every step at
 * once, in order: in mode exact to the bit, in the other modes but for the scale of the
 * decode and rounding. An edit that cannot be described on top of the earlier ones (a
 * second resize) forces the image first. Which edits are composed is a property of the
 * graph: see graph/graph_compose.c.
 */
#ifndef HR_OPS_IMAGE_JOB_H
#define HR_OPS_IMAGE_JOB_H

#include "codec/image_source.h"
#include "op/op.h"
#include "ops/image_seek.h"

#define HR_IMAGE_AFFINE_MAX 4

/* No real photo is larger, and sums of sides stay far from overflow. */
#define HR_IMAGE_EXTENT_MAX (1 << 24)

struct hr_image {
    struct hr_lazy lazy; /* first */

    /* Source: encoded bytes, or a pixel tensor. */
    const void *encoded;
    size_t encoded_bytes;
    struct hr_value pixels;     /* kind TENSOR when the source is pixels; NONE for encoded
                                 * bytes. Either is kept alive by the owner of the value that
                                 * holds this description: nothing here owns anything. */
    enum hr_dtype source_dtype; /* of the source as given; float16 and bfloat16
                                   tensors are held as float32 here */
    const struct hr_image_info *info; /* from the file's header */
    struct hr_image_photo *photo;     /* of encoded bytes */
    enum hr_image_mode mode;
    int want_channels; /* enum hr_image_channels of the decode */
    uint64_t pixels_max;
    int orientation; /* EXIF 1..8 still to be undone; 1 = upright */

    /* Window: integer clip (pixels outside are never read) and fractional box within it,
     * in upright source pixels. */
    int32_t clip_x, clip_y, clip_width, clip_height;
    double box_x, box_y, box_width, box_height;
    int32_t width, height, channels; /* the result as described so far, without frame */
    int32_t full_width, full_height; /* in mode exact, after a crop of a resize: the size
                                        that the box is resized to; else 0 */
    int32_t at_x, at_y; /* where the result begins in that, before mirroring */
    bool resampled;
    int filter; /* enum hr_filter */
    bool antialias;
    bool round_levels; /* the resampled result is rounded to whole levels (it was u8 when
                          resampled) */
    bool flip_x, flip_y; /* of the result */

    /* Store. */
    enum hr_dtype dtype;
    enum hr_layout layout;
    int step_count;
    struct {
        float scale[4], bias[4];
    } steps[HR_IMAGE_AFFINE_MAX];

    /* Around the result, after mirroring, and its pixels after the steps. */
    int32_t frame_left, frame_top, frame_right, frame_bottom;
    float frame_fill[4];

    /* Nodes to which the time of each part is charged. */
    uint32_t node_decode, node_resample, node_store;
};

/*
 * The editable description of the image in bound field `field`: the existing one, or a
 * new one of the tensor. Afterwards the field's value is deferred and not shared.
 */
HR_CHECK enum hr_err
hr__image_edit(struct hr_op_ctx *ctx, size_t field, struct hr_image **ret_image);

/* Starts a description of encoded bytes in `field` (image.decode). The caller sets the
 * owner of the bytes in the field's value. */
struct hr_image_begin {
    enum hr_image_mode mode;
    enum hr_image_channels channels;
    bool orientation; /* apply the EXIF orientation */
    uint64_t pixels_max;
    struct hr_seek *seek; /* or NULL */
};
HR_CHECK enum hr_err
hr__image_begin(struct hr_op_ctx *ctx, size_t field, const void *data, size_t bytes,
                const struct hr_image_begin *how);

/* Edits, in the coordinates of the image as described so far, with its frame. An edit
 * that cannot be composed forces the image first. The caller has checked ranges. */
HR_CHECK enum hr_err hr__image_crop(struct hr_op_ctx *ctx, size_t field, int32_t x,
                                    int32_t y, int32_t width, int32_t height);
HR_CHECK enum hr_err hr__image_resize(struct hr_op_ctx *ctx, size_t field, int32_t width,
                                      int32_t height, int filter, bool antialias);
HR_CHECK enum hr_err hr__image_flip(struct hr_op_ctx *ctx, size_t field, bool x, bool y);
/* All of a move: pad, crop, resize, mirror. */
struct hr_move; /* op/kind.h */
HR_CHECK enum hr_err
hr__image_move(struct hr_op_ctx *ctx, size_t field, const struct hr_move *move);
/* Makes the pixels and warps them: uint8 or float32. */
struct hr_warp; /* op/kind.h */
HR_CHECK enum hr_err
hr__image_warp(struct hr_op_ctx *ctx, size_t field, const struct hr_warp *warp);
HR_CHECK enum hr_err hr__image_affine(struct hr_op_ctx *ctx, size_t field,
                                      const float scale[4], const float bias[4]);
HR_CHECK enum hr_err
hr__image_cast(struct hr_op_ctx *ctx, size_t field, enum hr_dtype dtype, float scale);
HR_CHECK enum hr_err
hr__image_layout(struct hr_op_ctx *ctx, size_t field, enum hr_layout layout);

/* Width, height and channels as described so far, without making pixels; also of tensors.
 * hr__image_size: HR_ERR_SHAPE for an image without pixels, which user code may make. */
HR_CHECK enum hr_err
hr__image_dims(struct hr_op_ctx *ctx, size_t field, int32_t *ret_width,
               int32_t *ret_height, int32_t *ret_channels);
HR_CHECK enum hr_err
hr__image_size(struct hr_op_ctx *ctx, size_t field, int32_t *ret_width,
               int32_t *ret_height, int32_t *ret_channels);

/* The thread's decoder. */
struct hr_image_decoder; /* codec/image.h */
HR_CHECK enum hr_err
hr__image_decoder_of(struct hr_thread *thread, struct hr_image_decoder **ret_decoder,
                     struct hr_error *reterr);

/* ---- ops that need pixels ---- */

/* The kernels' view of an image tensor (u8 or f32, interleaved or planar, by its layout).
 * HR_ERR_TYPE or HR_ERR_SHAPE for anything else. */
HR_CHECK enum hr_err
hr__image_view(const struct hr_value *value, struct hr_pixels *ret_pixels,
               struct hr_error *reterr);

/* The pixels of bound field `field`, which is forced if deferred. */
HR_CHECK enum hr_err
hr__image_read(struct hr_op_ctx *ctx, size_t field, struct hr_pixels *ret_pixels);

/* A new image in the arena, interleaved for u8 and planar for floats, with its dims in
 * the order of `layout`. */
HR_CHECK enum hr_err
hr__image_make(struct hr_thread *thread, int32_t width, int32_t height, int32_t channels,
               enum hr_dtype dtype, enum hr_layout layout, struct hr_value *ret_value,
               struct hr_pixels *ret_pixels, struct hr_error *reterr);

/* Fills `count` pixels of a row of an image that is interleaved or planar: values of its
 * dtype, rounded to it. */
void hr__image_fill(const struct hr_pixels *out, int32_t x, int32_t y, int32_t count,
                    const float fill[4]);

/* The part of an image at (x, y). */
struct hr_pixels hr__image_inside(const struct hr_pixels *out, int32_t x, int32_t y,
                                  int32_t width, int32_t height);

/* Replaces the value of bound field `field` by `made`. */
void hr__image_replace(struct hr_op_ctx *ctx, size_t field, const struct hr_value *made);

/* The layout of an image tensor or of a deferred image. */
enum hr_layout hr__image_layout_of(const struct hr_value *value);

/* Pads the image, uint8 or float32, by `left`, `top`, ... pixels, which may be zero;
 * `fill` are values of that dtype. A constant frame is described; the others need the
 * pixels. */
enum hr_pad_mode { HR_PAD_CONSTANT, HR_PAD_EDGE, HR_PAD_REFLECT };
HR_CHECK enum hr_err hr__image_frame(struct hr_op_ctx *ctx, size_t field, int32_t left,
                                     int32_t top, int32_t right, int32_t bottom,
                                     enum hr_pad_mode mode, const float fill[4]);
/* The frames that are not constant. */
HR_CHECK enum hr_err
hr__image_extend(struct hr_op_ctx *ctx, size_t field, int32_t left, int32_t top,
                 int32_t right, int32_t bottom, enum hr_pad_mode mode);

/* infer: requires pixels of uint8 or float32; an image of these; one with levels (not
 * normalised) and 1 or 3 channels. */
HR_CHECK enum hr_err hr__infer_pixel_dtype(struct hr_infer *infer, size_t field);
HR_CHECK enum hr_err hr__infer_pixels(struct hr_infer *infer, size_t field);
HR_CHECK enum hr_err hr__infer_colours(struct hr_infer *infer, size_t field);

/* infer: sets the image's size; -1 for unknown. */
void hr__infer_size(struct hr_field *field, int64_t width, int64_t height);

/* ---- what the parts of this class share ---- */

/* Channels that decoding a photo gives. */
int32_t hr__image_decoded_channels(const struct hr_image_info *info, int want);
/* HR_ERR_LIMIT for an image of more pixels than that (0: 2^28). */
HR_CHECK enum hr_err hr__image_check_size(const struct hr_image_info *info,
                                          uint64_t pixels_max, struct hr_error *error);
/* The described size, with the frame. */
static inline int32_t hr__image_width(const struct hr_image *image)
{
    return image->width + image->frame_left + image->frame_right;
}

static inline int32_t hr__image_height(const struct hr_image *image)
{
    return image->height + image->frame_top + image->frame_bottom;
}

static inline bool hr__image_framed(const struct hr_image *image)
{
    return (image->frame_left | image->frame_top | image->frame_right |
            image->frame_bottom) != 0;
}

/* The value becomes a deferred one of this description; it keeps its owner. */
void hr__image_describe(struct hr_value *value, struct hr_image *image);

/* Across a cut: image_cut.c. */
#define HR_IMAGE_ENCODED_BYTES 272
void hr__image_source(const struct hr_lazy *lazy, struct hr_value *ret_source);
void hr__image_encode(const struct hr_lazy *lazy, void *to);
HR_CHECK enum hr_err
hr__image_decode_description(const struct hr_lazy_decode *decode,
                             struct hr_value *ret_value, struct hr_error *reterr);

/* The lazy class of images, and its force. */
extern const struct hr_lazy_class hr__image_class;
HR_CHECK enum hr_err hr__image_force(struct hr_thread *thread, struct hr_value *value,
                                     void *into, struct hr_error *reterr);
uint64_t hr__image_scratch(const struct hr_lazy *lazy, bool drawn);

#endif
