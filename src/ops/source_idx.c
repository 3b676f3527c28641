/*
 * source.idx - the items of an IDX file, with labels from a second one.
 *
 * The header is read when the graph is checked, so that shapes are known before any data.
 * Items with one-byte elements are used in place; wider ones are copied and converted to
 * the machine's byte order.
 */
#include <string.h>

#include "core/alloc.h"
#include "op/op.h"
#include "store/idx.h"

struct source {
    const char *path, *labels;
    const char *field, *label_field;
};

static const struct hr_param idx_params[] = {
    HR_P_PATH(struct source, path, .required = true, .not_identity = true,
              .help = "the IDX file of the items, plain or gzipped, or its URI"),
    HR_P_PATH(struct source, labels, .not_identity = true,
              .help = "an IDX file with one label per item, in the same order"),
    HR_P_FIELD(struct source, field, .fallback = "image", .access = HR_ACCESS_WRITE,
               .help = "the field that holds an item"),
    HR_P_FIELD(struct source, label_field, .fallback = "label", .access = HR_ACCESS_WRITE,
               .help = "the field that holds its label, int64"),
};

struct files {
    struct hr_idx *items, *labels; /* labels may be NULL */
};

/* Bytes in two dimensions are a gray picture; a third dimension of 1 or 3 is channels. */
static bool is_picture(const struct hr_idx_header *header)
{
    return header->dtype == HR_U8 &&
           (header->ndim == 2 ||
            (header->ndim == 3 && (header->dims[2] == 1 || header->dims[2] == 3)));
}

static enum hr_err infer_labels(struct hr_infer *infer, int64_t items)
{
    const struct source *p = infer->params;
    struct hr_idx_header header;

    if (p->labels == NULL) {
        hr__infer_remove(infer, 1);
        return HR_OK;
    }
    HR_TRY(hr__idx_peek(p->labels, &header, infer->error));
    if (header.ndim != 0 || header.dtype == HR_F32 || header.dtype == HR_F64)
        return hr__infer_fail(infer, "labels", HR_ERR_SHAPE,
                              "%s does not hold one integer per item", p->labels);
    if (header.items != items)
        return hr__infer_fail(infer, "labels", HR_ERR_SHAPE,
                              "%s has %lld labels, but there are %lld items", p->labels,
                              (long long)header.items, (long long)items);
    infer->fields[1]->kind = HR_FIELD_TENSOR;
    infer->fields[1]->dtype = HR_I64;
    infer->fields[1]->meaning = HR_MEANING_LABEL;
    return HR_OK;
}

static enum hr_err idx_infer(struct hr_infer *infer)
{
    const struct source *p = infer->params;
    struct hr_field *field = infer->fields[0];
    struct hr_idx_header header;

    HR_TRY(hr__idx_peek(p->path, &header, infer->error));
    field->kind = HR_FIELD_TENSOR;
    field->dtype = header.dtype;
    field->ndim = header.ndim;
    for (int i = 0; i < header.ndim; i++)
        hr__dim_set(&field->dims[i], header.dims[i]);
    if (is_picture(&header)) {
        if (header.ndim == 2)
            hr__dim_set(&field->dims[field->ndim++], 1);
        field->meaning = HR_MEANING_IMAGE_U8;
        field->layout = HR_LAYOUT_HWC;
    }
    infer->output->records = header.items;
    return infer_labels(infer, header.items);
}

static void idx_close(void *state)
{
    struct files *files = state;

    hr__idx_close(files->items);
    hr__idx_close(files->labels);
    hr__free(files);
}

static enum hr_err idx_open(const struct hr_open *open, void **ret_state)
{
    const struct source *p = open->params;
    struct files *files = hr__calloc(1, sizeof *files);
    enum hr_err code;

    if (files == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    code = hr__idx_open(p->path, &files->items, open->error);
    if (code == HR_OK && p->labels != NULL)
        code = hr__idx_open(p->labels, &files->labels, open->error);
    if (code != HR_OK) {
        idx_close(files);
        return code;
    }
    *ret_state = files;
    return HR_OK;
}

static uint64_t idx_count(const void *params, const void *state)
{
    (void)params;
    return (uint64_t)hr__idx_header(((const struct files *)state)->items)->items;
}

static void add_identity(const struct hr_idx *idx, struct hr_hasher *hasher)
{
    const struct hr_idx_header *header = hr__idx_header(idx);
    int64_t shape[2 + HR_MAX_DIMS] = {header->dtype, header->items};

    memcpy(shape + 2, header->dims, (size_t)header->ndim * sizeof *shape);
    hr__hasher_add(hasher, shape, sizeof shape);
    hr__hasher_add(hasher, hr__idx_data(idx), header->data_bytes);
}

static void idx_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct files *files = state;

    (void)params;
    add_identity(files->items, hasher);
    if (files->labels != NULL)
        add_identity(files->labels, hasher);
}

static bool idx_locate(const void *params, const void *state, uint64_t index, char *path,
                       size_t room, uint64_t *ret_offset)
{
    const struct source *p = params;
    const struct hr_idx_header *header =
        hr__idx_header(((const struct files *)state)->items);

    if (index >= (uint64_t)header->items || strlen(p->path) >= room)
        return false;
    memcpy(path, p->path, strlen(p->path) + 1);
    *ret_offset = header->header_bytes + index * header->item_bytes;
    return true;
}

static enum hr_err set_item(struct hr_op_ctx *ctx, const struct hr_idx *idx, int64_t at)
{
    const struct hr_idx_header *header = hr__idx_header(idx);
    struct hr_value *value = ctx->fields[0];
    int64_t dims[HR_MAX_DIMS + 1] = {0};
    int ndim = header->ndim;
    void *data;

    memcpy(dims, header->dims, (size_t)ndim * sizeof *dims);
    if (is_picture(header) && ndim == 2)
        dims[ndim++] = 1;
    if (hr_dtype_size(header->dtype) == 1) {
        data = (char *)hr__idx_data(idx) + (size_t)at * header->item_bytes;
    } else {
        HR_TRY(hr__op_alloc(ctx, header->item_bytes, &data));
        hr__idx_item(idx, at, data);
    }
    hr__value_set_tensor(value, header->dtype, ndim, dims, data, NULL);
    value->shared = hr_dtype_size(header->dtype) == 1;
    value->layout = is_picture(header) ? HR_LAYOUT_HWC : HR_LAYOUT_NONE;
    return HR_OK;
}

static int64_t label_at(const struct hr_idx *idx, int64_t at)
{
    enum hr_dtype dtype = hr__idx_header(idx)->dtype;
    union {
        uint8_t u8;
        int8_t i8;
        int16_t i16;
        int32_t i32;
    } raw = {0};

    hr__idx_item(idx, at, &raw);
    return dtype == HR_U8    ? raw.u8
           : dtype == HR_I8  ? raw.i8
           : dtype == HR_I16 ? raw.i16
                             : raw.i32;
}

static const char *idx_key_name(const void *params, const void *state, size_t i)
{
    return i == 0 && ((const struct files *)state)->labels != NULL
               ? ((const struct source *)params)->label_field
               : NULL;
}

static enum hr_err idx_key(const void *params, const void *state, size_t i,
                           uint64_t index, struct hr_str *out, struct hr_error *error)
{
    const struct files *files = state;

    (void)params, (void)i, (void)error;
    hr__str_addf(out, "%lld", (long long)label_at(files->labels, (int64_t)index));
    return HR_OK;
}

static enum hr_err set_label(struct hr_op_ctx *ctx, const struct hr_idx *idx, int64_t at)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &memory));
    *(int64_t *)memory = label_at(idx, at);
    hr__value_set_tensor(ctx->fields[1], HR_I64, 0, NULL, memory, NULL);
    return HR_OK;
}

static enum hr_err idx_apply(struct hr_op_ctx *ctx)
{
    const struct files *files = ctx->state;
    int64_t items = hr__idx_header(files->items)->items;

    if (ctx->id->index >= (uint64_t)items)
        return hr__fail(ctx->error, HR_ERR_RANGE, "there is no item %llu",
                        (unsigned long long)ctx->id->index);
    HR_TRY(set_item(ctx, files->items, (int64_t)ctx->id->index));
    return files->labels == NULL ? HR_OK
                                 : set_label(ctx, files->labels, (int64_t)ctx->id->index);
}

const struct hr_op hr_op_source_idx = {
    .name = "source.idx",
    .summary = "the items of an IDX file, as MNIST comes",
    .doc = "Items of unsigned bytes in two dimensions become images of one channel "
           "(height, width, 1); in three, with 1 or 3 as the last, images too. Others "
           "become tensors of their own type. Files may be gzipped. The identity of the "
           "source is its data, not its name.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(idx_params, struct source),
    .infer = idx_infer,
    .open = idx_open,
    .close = idx_close,
    .identity = idx_identity,
    .apply = idx_apply,
    .source = {.count = idx_count,
               .locate = idx_locate,
               .key_name = idx_key_name,
               .key = idx_key},
};
