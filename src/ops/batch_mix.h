/*
 * ops/batch_mix.h - shared by batch.mixup and batch.cutmix: each record of a batch is
 * mixed with the one before it, the first with the last, and so are their labels.
 */
#ifndef HR_OPS_BATCH_MIX_H
#define HR_OPS_BATCH_MIX_H

#include "op/op.h"

/* First in the parameters of both. */
struct hr_batch_mix {
    const char *field, *label;
    double alpha;
    int64_t num_classes; /* 0: labels are rows of probabilities */
};

#define HR_P_BATCH_MIX(struct_)                                                          \
    HR_P_FLOAT(struct_, alpha, .fallback = "1", .has_min = true, .min = 0,               \
               .min_open = true, .has_max = true, .max = 1e6,                            \
               .help = "both parameters of the beta distribution that the share of a "   \
                       "record is drawn from"),                                          \
        HR_P_INT(struct_, num_classes, .fallback = "0", HR_RANGE(0, 1 << 24),            \
                 .help = "number of classes; 0: labels are rows of probabilities "       \
                         "already"),                                                     \
        HR_P_FIELD(struct_, field, .fallback = "image", .access = HR_ACCESS_UPDATE,      \
                   .help = "the field with the images"),                                 \
        HR_P_FIELD(struct_, label, .fallback = "label", .access = HR_ACCESS_UPDATE,      \
                   .help = "the field with class numbers, or with rows of "              \
                           "probabilities")

/* infer: a batch of images, and of labels, which become float32 [batch, classes]. */
HR_CHECK enum hr_err hr__infer_batch_mix(struct hr_infer *infer);

/* A contiguous batch of images in bound field 0, and a new one of the same form. */
struct hr_batch_images {
    int64_t count;
    int32_t width, height, channels;
    enum hr_layout layout;
    enum hr_dtype dtype;
    const char *from;
    char *to;
    size_t bytes; /* of an image */
};
HR_CHECK enum hr_err
hr__batch_images(struct hr_op_ctx *ctx, struct hr_batch_images *ret_images);

/* Puts the new images in place of the old ones, and the labels' mix: `share` of a record
 * and 1 - share of the one before it. */
HR_CHECK enum hr_err hr__batch_mixed(struct hr_op_ctx *ctx,
                                     const struct hr_batch_images *images, double share);

#endif
