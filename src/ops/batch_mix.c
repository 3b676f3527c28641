/*
 * batch_mix.c - the images and labels of a batch, for ops that mix its records.
 */
#include "ops/batch_mix.h"

#include <string.h>

#include "op/kind.h"

static enum hr_err infer_labels(struct hr_infer *infer, const struct hr_batch_mix *p)
{
    struct hr_field *f = infer->fields[1];
    bool numbers = f->kind == HR_FIELD_TENSOR && f->dtype == HR_I64 && f->ndim == 1;
    bool rows = f->kind == HR_FIELD_TENSOR && f->dtype == HR_F32 && f->ndim == 2;
    char text[128];

    if (!numbers && !rows)
        return hr__infer_fail(infer, "label", HR_ERR_TYPE,
                              "field \"%s\" is %s; labels are int64 [batch], or float32 "
                              "[batch, classes]",
                              f->name, hr__field_text(f, text, sizeof text));
    if (numbers && p->num_classes == 0)
        return hr__infer_fail(infer, "num_classes", HR_ERR_ARGUMENT,
                              "num_classes is needed: field \"%s\" holds class numbers",
                              f->name);
    if (rows && p->num_classes != 0 && f->dims[1].size != HR_DIM_UNKNOWN &&
        f->dims[1].size != p->num_classes)
        return hr__infer_fail(infer, "num_classes", HR_ERR_SHAPE,
                              "field \"%s\" has rows of %lld probabilities: leave "
                              "num_classes out",
                              f->name, (long long)f->dims[1].size);
    if (rows)
        return HR_OK;
    f->dtype = HR_F32;
    f->meaning = HR_MEANING_NONE;
    f->ndim = 2;
    hr__dim_set(&f->dims[1], p->num_classes);
    return HR_OK;
}

enum hr_err hr__infer_batch_mix(struct hr_infer *infer)
{
    const struct hr_field *image = infer->fields[0];

    if (infer->output->batch_rank != 1)
        return hr__infer_fail(
            infer, NULL, HR_ERR_GRAPH,
            "it mixes the records of a batch: put it after batch.stack");
    if (image->kind == HR_FIELD_RAGGED)
        return hr__infer_fail(infer, "field", HR_ERR_SHAPE,
                              "the images in field \"%s\" may differ in size: put "
                              "image.resize before the batch",
                              image->name);
    HR_TRY(hr__infer_image(infer, 0));
    for (size_t i = 0; i < infer->output->count; i++) {
        const struct hr_field *f = &infer->output->fields[i];

        if (f != image && f != infer->fields[1] && hr__kind_of(f) != NULL &&
            hr__kind_of(f)->move != NULL)
            return hr__infer_fail(infer, NULL, HR_ERR_TYPE,
                                  "field \"%s\" (%s) belongs to images before they are "
                                  "mixed: drop it with record.drop",
                                  f->name, hr__kind_of(f)->name);
    }
    return infer_labels(infer, infer->params);
}

enum hr_err hr__batch_images(struct hr_op_ctx *ctx, struct hr_batch_images *ret_images)
{
    const struct hr_value *value = ctx->fields[0];
    bool chw = value->layout == HR_LAYOUT_CHW;
    void *from = value->data, *to;

    if (value->kind != HR_VALUE_TENSOR || value->ndim != 4)
        return hr__fail(ctx->error, HR_ERR_SHAPE, "the field holds no batch of images");
    if (hr__value_count(value) == 0)
        return hr__fail(ctx->error, HR_ERR_SHAPE,
                        "an image has at least one pixel, and a batch one image");
    HR_TRY(hr__op_alloc(ctx, value->bytes, &to));
    if (!hr__value_contiguous(value)) {
        HR_TRY(hr__op_alloc(ctx, value->bytes, &from));
        hr__value_copy(value, from);
    }
    *ret_images = (struct hr_batch_images){
        .count = value->dims[0],
        .width = (int32_t)value->dims[chw ? 3 : 2],
        .height = (int32_t)value->dims[chw ? 2 : 1],
        .channels = (int32_t)value->dims[chw ? 1 : 3],
        .layout = chw ? HR_LAYOUT_CHW : HR_LAYOUT_HWC,
        .dtype = (enum hr_dtype)value->dtype,
        .from = from,
        .to = to,
    };
    if (ret_images->count > 0)
        ret_images->bytes = (size_t)hr__value_count(value) *
                            hr_dtype_size(ret_images->dtype) / (size_t)value->dims[0];
    return HR_OK;
}

/* Adds `part` of label `at` of the batch to a row. */
static enum hr_err
add_label(struct hr_op_ctx *ctx, int64_t at, int64_t classes, float part, float *row)
{
    const struct hr_value *label = ctx->fields[1];
    const char *data = (const char *)label->data + at * label->strides[0];
    int64_t number;

    if (label->dtype == HR_F32) {
        for (int64_t c = 0; c < classes; c++) {
            float chance;

            memcpy(&chance, data + c * label->strides[1], sizeof chance);
            row[c] += chance * part;
        }
        return HR_OK;
    }
    memcpy(&number, data, sizeof number);
    if (number < 0 || number >= classes)
        return hr__fail(ctx->error, HR_ERR_RANGE,
                        "record %lld of the batch has class %lld, which is not below "
                        "num_classes (%lld)",
                        (long long)at, (long long)number, (long long)classes);
    row[number] += part;
    return HR_OK;
}

static enum hr_err mix_labels(struct hr_op_ctx *ctx, int64_t count, double share)
{
    const struct hr_batch_mix *p = ctx->params;
    struct hr_value *label = ctx->fields[1];
    bool rows = label->dtype == HR_F32 && label->ndim == 2;
    int64_t dims[2] = {count, rows ? label->dims[1] : p->num_classes};
    void *memory;

    if (label->kind != HR_VALUE_TENSOR || label->dims[0] != count)
        return hr__fail(ctx->error, HR_ERR_SHAPE, "there is not one label per image");
    HR_TRY(hr__op_alloc(ctx, (size_t)(count * dims[1]) * sizeof(float) + 1, &memory));
    memset(memory, 0, (size_t)(count * dims[1]) * sizeof(float));
    for (int64_t i = 0; i < count; i++) {
        float *row = (float *)memory + i * dims[1];

        HR_TRY(add_label(ctx, (i + count - 1) % count, dims[1], (float)(1 - share), row));
        HR_TRY(add_label(ctx, i, dims[1], (float)share, row));
    }
    hr__value_clear(label);
    hr__value_set_tensor(label, HR_F32, 2, dims, memory, NULL);
    return HR_OK;
}

enum hr_err
hr__batch_mixed(struct hr_op_ctx *ctx, const struct hr_batch_images *images, double share)
{
    struct hr_value *value = ctx->fields[0];
    uint8_t layout = value->layout;
    int64_t dims[4];

    HR_TRY(mix_labels(ctx, images->count, share));
    memcpy(dims, value->dims, sizeof dims);
    hr__value_clear(value);
    hr__value_set_tensor(value, images->dtype, 4, dims, images->to, NULL);
    value->layout = layout;
    return HR_OK;
}
