/*
 * ops/move.h - shared by the ops that move an image and what belongs to it.
 *
 * The first field of the list is the image: its size and the op's draws decide the move.
 * The others (further images, masks, boxes, points) follow by the same move.
 */
#ifndef HR_OPS_MOVE_H
#define HR_OPS_MOVE_H

#include "op/kind.h"
#include "op/param.h"

/* `field`; the struct's member is a struct hr_names. */
#define HR_P_MOVED(struct_)                                                              \
    HR_P_FIELDS(struct_, field, .fallback = "image", .access = HR_ACCESS_UPDATE,         \
                .one_is_item = true,                                                     \
                .help = "the field with the image; or a list: the image, then images, "  \
                        "masks, boxes and points that move with it")

/* The hooks of an op whose first member of its parameters is that list. */
#define HR_MOVE_STATE .open = hr__move_open, .close = hr__move_close
HR_CHECK enum hr_err hr__move_open(const struct hr_open *open, void **ret_state);
void hr__move_close(void *state);

/* infer: the first field is an image, and the others can follow. */
HR_CHECK enum hr_err hr__infer_moved(struct hr_infer *infer);
/* infer: requires exactly one field of boxes among them. */
HR_CHECK enum hr_err hr__infer_moved_boxes(struct hr_infer *infer);
/* infer: the size of all that are pixels; -1 for unknown. */
void hr__infer_moved_size(struct hr_infer *infer, int64_t width, int64_t height);

/* The bound field of boxes after hr__infer_moved_boxes, and a copy of its `*ret_count`
 * rows in the arena. */
HR_CHECK enum hr_err hr__move_boxes(struct hr_op_ctx *ctx, size_t *ret_field,
                                    float **ret_boxes, int64_t *ret_count);

/* A move of the image that changes nothing. */
HR_CHECK enum hr_err hr__move_begin(struct hr_op_ctx *ctx, struct hr_move *ret_move);
/* Adds padding; the window becomes all of the padded image. */
void hr__move_pad(struct hr_move *move, int32_t left, int32_t top, int32_t right,
                  int32_t bottom);
/* Sets the window, and the result to its size. */
void hr__move_crop(struct hr_move *move, int32_t x, int32_t y, int32_t width,
                   int32_t height);
/* Sets the size of the result. */
void hr__move_resize(struct hr_move *move, int32_t width, int32_t height, int filter,
                     bool antialias);
/* Resizes all bound fields, which nothing else moves. HR_ERR_LIMIT for sides that are too
 * long. */
HR_CHECK enum hr_err
hr__move_to_size(struct hr_op_ctx *ctx, struct hr_move *move, int64_t width,
                 int64_t height, int filter, bool antialias);
/* Moves all bound fields. HR_ERR_SHAPE when pixels differ from the image in size. */
HR_CHECK enum hr_err hr__move(struct hr_op_ctx *ctx, const struct hr_move *move);
/* The same for an op without DEFERS: what it moves is made. */
HR_CHECK enum hr_err hr__move_made(struct hr_op_ctx *ctx, const struct hr_move *move);
HR_CHECK enum hr_err hr__warp(struct hr_op_ctx *ctx, const struct hr_warp *warp);

#endif
