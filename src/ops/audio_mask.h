/*
 * ops/audio_mask.h - shared by the ops that blank out parts of a spectrum.
 */
#ifndef HR_OPS_AUDIO_MASK_H
#define HR_OPS_AUDIO_MASK_H

#include "ops/audio.h"

struct hr_mask {
    const char *field;
    int64_t max, count;
    double share, value;
};

#define HR_P_MASK(dimension)                                                             \
    HR_P_INT(struct hr_mask, max, .required = true, HR_RANGE(0, 1 << 24),                \
             .unit = dimension, .help = "largest width of a mask; widths are drawn"),    \
        HR_P_INT(struct hr_mask, count, .fallback = "1", HR_RANGE(1, 1000),              \
                 .help = "number of masks; they may overlap"),                           \
        HR_P_FLOAT(struct hr_mask, share, .fallback = "1", HR_RANGE(0, 1),               \
                   .help = "no mask is wider than this share of the whole"),             \
        HR_P_FLOAT(struct hr_mask, value, .fallback = "0", .help = "what is put there"), \
        HR_P_FIELD(struct hr_mask, field, .fallback = "audio",                           \
                   .access = HR_ACCESS_UPDATE,                                           \
                   .help = "the field with the spectrum, float32 [..., rows, time]")

/* The hooks of an op with these parameters; `time`: masks columns, else rows. */
HR_CHECK enum hr_err hr__mask_infer(struct hr_infer *infer);
HR_CHECK enum hr_err hr__mask_apply(struct hr_op_ctx *ctx, bool time);

#endif
