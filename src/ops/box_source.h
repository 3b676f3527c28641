/*
 * ops/box_source.h - shared by sources of images with boxes: fields with one row per box,
 * chosen columns, texts.
 */
#ifndef HR_OPS_BOX_SOURCE_H
#define HR_OPS_BOX_SOURCE_H

#include "op/op.h"

/* Sets wanted[i] for each of the `count` columns that is among `given`. HR_ERR_ARGUMENT
 * for another name; `words` lists the columns. */
HR_CHECK enum hr_err
hr__choose_columns(const struct hr_names *given, const char *const *columns, int count,
                   const char *words, bool *wanted, struct hr_error *error);

/* infer: encoded bytes or a text; float32 [boxes, 4] of kind boxes; [boxes] of a dtype;
 * int64 labels with their classes. */
void hr__infer_bytes(struct hr_field *field, enum hr_meaning meaning);
void hr__infer_boxes(struct hr_field *field);
void hr__infer_box_list(struct hr_field *field, enum hr_dtype dtype);
void hr__infer_box_labels(struct hr_field *field, const struct hr_field_classes *classes);

/* Sets the field to `count` rows of the arena, which the caller fills in. */
HR_CHECK enum hr_err
hr__new_boxes(struct hr_op_ctx *ctx, size_t field, size_t count, float **ret_boxes);
HR_CHECK enum hr_err hr__new_box_list(struct hr_op_ctx *ctx, size_t field,
                                      enum hr_dtype dtype, size_t count, void **ret_data);

/* Sets the field to a copy of the text. */
HR_CHECK enum hr_err hr__set_text(struct hr_op_ctx *ctx, size_t field, const char *text);

#endif
