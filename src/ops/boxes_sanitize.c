/*
 * boxes.sanitize - drops boxes that are too small or lie outside, and what belongs to
 * them.
 */
#include <string.h>

#include "ops/image_job.h"
#include "ops/kinds.h"

struct sanitize {
    const char *field;
    struct hr_names rows;
    const char *image;
    double min_size, min_area;
};

static const struct hr_param sanitize_params[] = {
    HR_P_FIELD(struct sanitize, field, .fallback = "boxes", .access = HR_ACCESS_UPDATE,
               .help = "the boxes"),
    HR_P_FIELDS(struct sanitize, rows, .fallback = "[labels]", .items_min = 0,
                .items_max = HR_LIST_MAX, .access = HR_ACCESS_UPDATE,
                .help = "fields with one row per box, whose rows go with the boxes"),
    HR_P_FIELD(struct sanitize, image, .access = HR_ACCESS_READ,
               .help = "the image: boxes that are not inside it are dropped, too"),
    HR_P_FLOAT(struct sanitize, min_size, .fallback = "1", HR_RANGE(0, 1e9),
               .unit = "pixels", .help = "smallest width and height that remains"),
    HR_P_FLOAT(struct sanitize, min_area, .fallback = "1", HR_RANGE(0, 1e18),
               .unit = "pixels", .help = "smallest width * height that remains"),
};

static enum hr_err sanitize_infer(struct hr_infer *infer)
{
    const struct sanitize *p = infer->params;
    size_t rows = (size_t)p->rows.count;

    if (hr__kind_of(infer->fields[0]) != &hr__kind_boxes)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" holds no boxes: declare it with record.kind",
                              p->field);
    hr__dim_unknown(&infer->fields[0]->dims[0], "boxes");
    for (size_t i = 1; i <= rows; i++) {
        struct hr_field *f = infer->fields[i];

        if (f->kind != HR_FIELD_TENSOR || f->ndim == 0 || hr__field_has_pixels(f))
            return hr__infer_fail(infer, "rows", HR_ERR_TYPE,
                                  "field \"%s\" has no rows that belong to boxes",
                                  f->name);
        for (size_t k = 0; k < i; k++)
            if (infer->fields[k] == f)
                return hr__infer_fail(infer, "rows", HR_ERR_ARGUMENT,
                                      "field \"%s\" is listed twice", f->name);
        hr__dim_unknown(&f->dims[0], "boxes");
    }
    return p->image != NULL ? hr__infer_image(infer, 1 + rows) : HR_OK;
}

/* Copies the rows that are kept. */
static enum hr_err
keep_rows(struct hr_op_ctx *ctx, size_t field, const bool *keep, int64_t kept)
{
    struct hr_value *value = ctx->fields[field];
    enum hr_dtype dtype = (enum hr_dtype)value->dtype;
    int64_t dims[HR_MAX_DIMS], count = value->dims[0];
    size_t all = (size_t)hr__value_count(value) * hr_dtype_size(dtype), row;
    int ndim = value->ndim;
    char *to, *from;
    void *memory;

    if (kept == count)
        return HR_OK;
    HR_TRY(hr__op_alloc(ctx, all + 1, &memory));
    hr__value_copy(value, memory);
    row = all / (size_t)count;
    to = from = memory;
    for (int64_t i = 0; i < count; i++, from += row) {
        if (!keep[i])
            continue;
        memmove(to, from, row);
        to += row;
    }
    memcpy(dims, value->dims, sizeof dims);
    dims[0] = kept;
    hr__value_clear(value);
    hr__value_set_tensor(value, dtype, ndim, dims, memory, NULL);
    return HR_OK;
}

static enum hr_err check_rows(struct hr_op_ctx *ctx, int64_t count)
{
    const struct sanitize *p = ctx->params;

    for (int i = 0; i < p->rows.count; i++) {
        const struct hr_value *value = ctx->fields[1 + i];

        if (value->kind != HR_VALUE_TENSOR || value->ndim == 0 || value->dims[0] != count)
            return hr__fail(
                ctx->error, HR_ERR_SHAPE, "\"%s\" has %lld rows and there are %lld boxes",
                p->rows.values[i], (long long)(value->ndim > 0 ? value->dims[0] : 0),
                (long long)count);
    }
    return HR_OK;
}

static bool is_good(const struct sanitize *p, const float box[4], const double canvas[2])
{
    double width = (double)box[2] - box[0], height = (double)box[3] - box[1];

    if (!(width >= p->min_size && height >= p->min_size && width * height >= p->min_area))
        return false; /* also for NaN */
    return p->image == NULL ||
           (box[0] >= 0 && box[1] >= 0 && box[2] <= canvas[0] && box[3] <= canvas[1]);
}

static enum hr_err sanitize_apply(struct hr_op_ctx *ctx)
{
    const struct sanitize *p = ctx->params;
    int32_t width = 0, height = 0, channels;
    int64_t count, kept = 0;
    float *boxes;
    void *keep;

    HR_TRY(hr__boxes_copy(ctx, 0, &boxes, &count));
    HR_TRY(check_rows(ctx, count));
    if (p->image != NULL)
        HR_TRY(
            hr__image_dims(ctx, 1 + (size_t)p->rows.count, &width, &height, &channels));
    HR_TRY(hr__op_alloc(ctx, (size_t)count + 1, &keep));
    for (int64_t i = 0; i < count; i++) {
        ((bool *)keep)[i] = is_good(p, boxes + 4 * i, (double[]){width, height});
        kept += ((bool *)keep)[i];
    }
    for (size_t i = 0; i <= (size_t)p->rows.count; i++)
        HR_TRY(keep_rows(ctx, i, keep, kept));
    return HR_OK;
}

const struct hr_op hr_op_boxes_sanitize = {
    .name = "boxes.sanitize",
    .summary = "drop boxes that are too small, and their labels",
    .doc = "Like torchvision's SanitizeBoundingBoxes. Crops leave boxes outside of their "
           "window as rows of no width or height, so that rows agree with labels; this "
           "drops such rows of `field` and of all fields in `rows`. With `image` it also "
           "drops boxes that reach beyond the image's edges.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_DEFERS | HR_TRAIT_SHRINKS,
    HR_PARAMS(sanitize_params, struct sanitize),
    .infer = sanitize_infer,
    .apply = sanitize_apply,
};
