/*
 * ops/text.h - shared by the ops that change a text.
 */
#ifndef HR_OPS_TEXT_H
#define HR_OPS_TEXT_H

#include "op/op.h"

#define HR_P_TEXT(struct_)                                                               \
    HR_P_FIELD(struct_, field, .fallback = "text", .access = HR_ACCESS_UPDATE,           \
               .help = "the field with the text")

/* Fails unless the first bound field is a byte string before the op. */
HR_CHECK enum hr_err hr__infer_text(struct hr_infer *infer);

/* An infer function for ops whose first bound field is a text and stays one. */
HR_CHECK enum hr_err hr__infer_text_to_text(struct hr_infer *infer);

/* infer: the field becomes a list of token ids, int32 `[tokens]`. */
void hr__infer_tokens(struct hr_field *field);

#endif
