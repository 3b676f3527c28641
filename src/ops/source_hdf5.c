/*
 * source.hdf5 - the items along the first dimension of datasets of HDF5 files.
 */
#include "ops/hdf5_files.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "ops/item_rows.h"

struct params {
    const char *path;
    struct hr_pairs fields;
    int64_t unpacked_max, unpack_cache;
};

static const struct hr_param hdf5_params[] = {
    HR_P_PATH(struct params, path, .required = true, .not_identity = true,
              .help = "a file; or several: \"part-{000..099}.h5\", a pattern such as "
                      "\"part-*.hdf5\", or a folder of .h5 files, or of .hdf5 files"),
    HR_P_MAP(struct params, fields,
             .help = "field: the path of its dataset, as in {image: train/images, label: "
                     "train/labels}; default: every dataset that can be read, named by "
                     "its path with _ for /; a "
                     "member of a compound type is train/points.x"),
    HR_P_BYTES(struct params, unpacked_max, .fallback = "256MiB", HR_RANGE(1, 1LL << 32),
               .unit = "bytes", .not_identity = true,
               .help = "datasets whose chunks unpack to more are refused, and items of "
                       "any length that have more are bad"),
    HR_P_BYTES(struct params, unpack_cache, .fallback = "64MiB", HR_RANGE(0, 1LL << 40),
               .unit = "bytes", .not_identity = true,
               .help = "unpacked chunks that are kept in memory: a shuffled epoch is "
                       "fast where all of them fit"),
};

static void hdf5_close(void *state)
{
    hr__hdf5_files_close(state);
}

static enum hr_err
hdf5_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct params *p = params;
    struct hr_hdf5_files *files;

    HR_TRY(hr__hdf5_files_open(p->path, &p->fields, (uint64_t)p->unpacked_max,
                               (uint64_t)p->unpack_cache, &files, error));
    *ret_state = files;
    return HR_OK;
}

static enum hr_err hdf5_open(const struct hr_open *open, void **ret_state)
{
    (void)open, (void)ret_state; /* hdf5_prepare did */
    return HR_OK;
}

static enum hr_err
hdf5_binds(const void *params, const void *made, const struct hr_schema *input,
           struct hr_bindings *bindings, struct hr_error *error)
{
    const struct hr_hdf5_files *files = made;

    (void)params, (void)input;
    for (size_t i = 0; i < files->count; i++)
        HR_TRY(hr__bind(bindings, files->names[i], HR_ACCESS_WRITE, error));
    return HR_OK;
}

static bool is_bytes(const struct hr_hdf5_item *item)
{
    enum hr_hdf5_class class = item->dataset->type.class;

    return class == HR_HDF5_TEXT || class == HR_HDF5_BYTES;
}

static enum hr_err hdf5_infer(struct hr_infer *infer)
{
    const struct hr_hdf5_files *files = infer->state;

    assert(infer->field_count == files->count);
    for (size_t i = 0; i < files->count; i++) {
        const struct hr_hdf5_item *item = &files->files[0].items[i];
        struct hr_field *field = infer->fields[i];

        if (is_bytes(item)) {
            field->kind = HR_FIELD_BYTES;
            field->meaning =
                item->dataset->type.is_text ? HR_MEANING_TEXT : HR_MEANING_NONE;
            continue;
        }
        field->kind = HR_FIELD_TENSOR;
        field->dtype = item->npy.dtype;
        field->ndim = item->npy.ndim - 1;
        for (int d = 1; d < item->npy.ndim; d++)
            hr__dim_set(&field->dims[d - 1], item->npy.dims[d]);
    }
    infer->output->records = (int64_t)files->records;
    return HR_OK;
}

static const char *hdf5_note(const void *made)
{
    const struct hr_hdf5_files *files = made;

    return files->note.length > 0 && hr__str_ok(&files->note) ? hr__str_text(&files->note)
                                                              : NULL;
}

static void hdf5_identity(const void *params, const void *made, struct hr_hasher *hasher)
{
    const struct hr_hdf5_files *files = made;

    (void)params;
    hr__hasher_add(hasher, &files->identity.low, sizeof files->identity.low);
    hr__hasher_add(hasher, &files->identity.high, sizeof files->identity.high);
}

static uint64_t hdf5_count(const void *params, const void *made)
{
    (void)params;
    return ((const struct hr_hdf5_files *)made)->records;
}

static bool hdf5_locate(const void *params, const void *made, uint64_t index, char *uri,
                        size_t room, uint64_t *ret_offset)
{
    const struct hr_hdf5_files *files = made;
    struct hr_hdf5_source *file;
    struct hr_shard_place place;

    (void)params;
    if (index >= files->records)
        return false;
    file = hr__hdf5_files_of(files, index);
    if (strlen(file->uri) >= room)
        return false;
    memcpy(uri, file->uri, strlen(file->uri) + 1);
    *ret_offset = hr__hdf5_item_place(file, 0, index, &place) ? place.offset : 0;
    return true;
}

/* The range of chunk `cell` of a field of the item, or of the item, to be fetched. */
static bool
range_of(struct hr_hdf5_files *files, struct hr_hdf5_source *file, size_t field,
         uint64_t index, uint64_t cell, struct hr_range *ret_range)
{
    struct hr_shard_place place;

    if (file->items[field].dataset->layout == HR_HDF5_CHUNKED)
        return hr__hdf5_slab_ahead(files, file, field, index, cell, ret_range);
    return hr__hdf5_item_place(file, field, index, &place) &&
           hr__shard_ahead(&place, ret_range);
}

static bool hdf5_ahead(const void *params, const void *made, uint64_t index, int part,
                       struct hr_range *ret_range)
{
    struct hr_hdf5_files *files = (void *)(uintptr_t)made;
    struct hr_hdf5_source *file;

    (void)params;
    if (index >= files->records)
        return false;
    file = hr__hdf5_files_of(files, index);
    for (size_t i = 0; i < files->count; i++)
        for (uint64_t cell = 0; cell < file->items[i].cells; cell++)
            if (range_of(files, file, i, index, cell, ret_range) && part-- == 0)
                return true;
    return false;
}

/* ---- records ---- */

#define HEAP_WINDOW HR_SCHEMA_FIELDS_MAX /* after those of the fields */

/* An item as it is in the file: in `owner`, to which the caller has a reference, or valid
 * until the thread's next record. */
struct raw {
    const char *data;
    struct hr_buffer *owner;
};

/* An item from its chunks. */
static enum hr_err
gather(const struct hr_hdf5_read *read, const struct hr_hdf5_item *item, char *to)
{
    for (uint64_t cell = 0; cell < item->cells; cell++) {
        struct hr_hdf5_slab slab;

        HR_TRY(hr__hdf5_slab(read, cell, &slab));
        if (slab.data != NULL)
            hr__hdf5_place_slab(item, cell, slab.data, to);
        hr_buffer_unref(slab.owner);
    }
    return HR_OK;
}

static enum hr_err read_item(struct hr_op_ctx *ctx, struct hr_hdf5_source *file,
                             size_t at, struct hr_window *windows, struct raw *ret_raw)
{
    const struct hr_hdf5_item *item = &file->items[at];
    const struct hr_hdf5_read read = {.files = (void *)(uintptr_t)ctx->state,
                                      .file = file,
                                      .field = at,
                                      .index = ctx->id->index,
                                      .count = 1,
                                      .window = &windows[at],
                                      .reader = ctx->thread->reader,
                                      .error = ctx->error};
    struct hr_shard_record record = {.data = NULL};
    bool chunked = item->dataset->layout == HR_HDF5_CHUNKED;
    struct hr_hdf5_slab slab;
    void *memory;

    *ret_raw = (struct raw){"", NULL};
    if (item->bytes == 0)
        return HR_OK;
    if (hr__hdf5_item_place(file, at, ctx->id->index, &record.place)) {
        HR_TRY(hr__shard_read(ctx, &windows[at], &record));
        *ret_raw = (struct raw){record.data, record.owner};
        return HR_OK;
    }
    if (chunked && item->whole) {
        HR_TRY(hr__hdf5_slab(&read, 0, &slab));
        *ret_raw = (struct raw){slab.data, slab.owner};
        if (slab.data != NULL)
            return HR_OK;
    }
    HR_TRY(hr__op_alloc(ctx, item->bytes, &memory));
    hr__hdf5_fill(item->dataset, memory, item->bytes);
    ret_raw->data = memory;
    return chunked ? gather(&read, item, memory) : HR_OK;
}

static enum hr_err set_numbers(struct hr_op_ctx *ctx, const struct hr_hdf5_item *item,
                               const struct raw *raw, struct hr_value *value)
{
    const struct hr_npy *npy = &item->npy;
    size_t count = item->elements * item->inner;
    void *memory;

    if (raw->owner != NULL && hr__npy_is_plain(npy) && !item->scattered &&
        (uintptr_t)raw->data % npy->element_bytes == 0) {
        hr__value_set_tensor(value, npy->dtype, npy->ndim - 1, npy->dims + 1,
                             (void *)(uintptr_t)raw->data, hr_buffer_ref(raw->owner));
        value->shared = true;
        return HR_OK;
    }
    HR_TRY(hr__op_alloc(ctx, count * hr_dtype_size(npy->dtype) + 1, &memory));
    if (!hr__hdf5_convert(item, raw->data, memory, 1))
        return hr__fail(ctx->error, HR_ERR_RANGE,
                        "dataset \"%.80s\" has a uint64 that is larger than an int64",
                        item->dataset->path);
    hr__value_set_tensor(value, npy->dtype, npy->ndim - 1, npy->dims + 1, memory, NULL);
    return HR_OK;
}

static enum hr_err
set_copy(struct hr_op_ctx *ctx, const char *data, size_t bytes, struct hr_value *value)
{
    void *memory;

    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    memcpy(memory, data, bytes);
    hr__value_set_bytes(value, memory, bytes, NULL);
    return HR_OK;
}

static enum hr_err set_text(struct hr_op_ctx *ctx, const struct hr_hdf5_item *item,
                            const struct raw *raw, struct hr_value *value)
{
    const struct hr_hdf5_type *type = &item->dataset->type;
    const char *data = raw->data + item->dataset->offset;
    size_t bytes = strnlen(data, type->bytes);

    while (type->space_padded && bytes > 0 && data[bytes - 1] == ' ')
        bytes--;
    return set_copy(ctx, data, bytes, value);
}

/* HR_ERR_FORMAT; messages name file and byte. */
static enum hr_err
heap_failed(struct hr_hdf5_source *file, uint64_t at, struct hr_error *error)
{
    return hr__fail(error, HR_ERR_FORMAT,
                    "%s: byte %llu: damaged: the heap of items of any length", file->uri,
                    (unsigned long long)at);
}

/* Bytes from a heap of the file. */
static enum hr_err
set_from_heap(struct hr_op_ctx *ctx, struct hr_hdf5_source *file, const char *element,
              struct hr_window *windows, struct hr_value *value)
{
    const struct hr_hdf5_files *files = ctx->state;
    struct hr_hdf5_reference reference;
    struct hr_shard_place place = {.uri = file->uri,
                                   .identity = file->identity,
                                   .object = file->open ? &file->object : NULL};
    const char *bytes;
    const void *heap;
    uint64_t size, at;

    hr__hdf5_reference(element, &reference);
    if (reference.heap == HR_HDF5_NONE)
        return set_copy(ctx, "", 0, value);
    at = file->hdf5.base + reference.heap;
    if (reference.bytes > files->unpacked_max)
        return hr__fail(ctx->error, HR_ERR_LIMIT,
                        "%s: an item of %llu bytes is longer than unpacked_max (%llu)",
                        file->uri, (unsigned long long)reference.bytes,
                        (unsigned long long)files->unpacked_max);
    HR_TRY(hr__shard_window(&windows[HEAP_WINDOW], &place, ctx->error));
    if (hr__window_get(&windows[HEAP_WINDOW], at, HR_HDF5_HEAP_HEAD, &heap, NULL) !=
            HR_OK ||
        (size = hr__hdf5_heap_bytes(heap)) < HR_HDF5_HEAP_HEAD ||
        size > windows[HEAP_WINDOW].object->bytes - at)
        return heap_failed(file, at, ctx->error);
    HR_TRY(hr__window_get(&windows[HEAP_WINDOW], at, (size_t)size, &heap, ctx->error));
    bytes = hr__hdf5_heap_object(heap, (size_t)size, &reference);
    if (bytes == NULL)
        return heap_failed(file, at, ctx->error);
    return set_copy(ctx, bytes, (size_t)reference.bytes, value);
}

static enum hr_err set_field(struct hr_op_ctx *ctx, struct hr_hdf5_source *file,
                             size_t at, struct hr_window *windows)
{
    const struct hr_hdf5_item *item = &file->items[at];
    struct hr_value *value = ctx->fields[at];
    enum hr_err code;
    struct raw raw;

    HR_TRY(read_item(ctx, file, at, windows, &raw));
    if (item->dataset->type.class == HR_HDF5_TEXT)
        code = set_text(ctx, item, &raw, value);
    else if (item->dataset->type.class == HR_HDF5_BYTES)
        code = set_from_heap(ctx, file, raw.data + item->dataset->offset, windows, value);
    else
        code = set_numbers(ctx, item, &raw, value);
    hr_buffer_unref(raw.owner);
    return code;
}

static enum hr_err hdf5_apply(struct hr_op_ctx *ctx)
{
    const struct hr_hdf5_files *files = ctx->state;
    struct hr_window *windows;
    struct hr_hdf5_source *file;

    if (ctx->id->index >= files->records)
        return hr__fail(ctx->error, HR_ERR_RANGE, "there is no item %llu",
                        (unsigned long long)ctx->id->index);
    HR_TRY(hr__shard_windows(ctx->thread, &windows, ctx->error));
    file = hr__hdf5_files_of(files, ctx->id->index);
    for (size_t i = 0; i < files->count; i++)
        HR_TRY(set_field(ctx, file, i, windows));
    return HR_OK;
}

/* ---- many items at once ---- */

static uint64_t file_end(const void *made, uint64_t index)
{
    const struct hr_hdf5_source *file = hr__hdf5_files_of(made, index);

    return file->first + file->count;
}

/* Where `count` items or fewer are: in the file one after the other, or in a chunk. */
static enum hr_err read_items(const struct hr_hdf5_read *read, struct hr_op_ctx *ctx,
                              struct hr_hdf5_slab *ret_slab)
{
    const struct hr_hdf5_item *item = &read->file->items[read->field];
    struct hr_shard_record record;

    if (item->dataset->layout == HR_HDF5_CHUNKED)
        return hr__hdf5_slab(read, 0, ret_slab);
    *ret_slab = (struct hr_hdf5_slab){.count = read->count};
    if (!hr__hdf5_item_place(read->file, read->field, read->index, &record.place))
        return HR_OK;
    record.place.bytes *= read->count;
    HR_TRY(hr__shard_read(ctx, read->window, &record));
    ret_slab->data = record.data;
    ret_slab->owner = record.owner;
    return HR_OK;
}

/* See hr_item_rows.copy. */
static uint32_t copy_items(struct hr_op_ctx *ctx, const struct hr_source_rows *rows,
                           size_t column, uint32_t row, uint32_t count)
{
    struct hr_hdf5_files *files = (void *)(uintptr_t)ctx->state;
    struct hr_hdf5_source *file = hr__hdf5_files_of(files, rows->indices[row]);
    const struct hr_hdf5_item *item = &file->items[column];
    size_t bytes = item->elements * item->inner * hr_dtype_size(item->npy.dtype);
    char *to = rows->columns[column] + row * bytes;
    struct hr_hdf5_read read = {.files = files,
                                .file = file,
                                .field = column,
                                .index = rows->indices[row],
                                .reader = ctx->thread->reader,
                                .error = ctx->error};
    struct hr_hdf5_slab slab = {0};
    struct hr_shard_place place;
    bool good;

    if (!item->whole || item->bytes == 0 ||
        hr__shard_windows(ctx->thread, &read.window, ctx->error) != HR_OK)
        return 0;
    read.window += column;
    if (hr__npy_is_plain(&item->npy) && !item->scattered &&
        hr__hdf5_item_place(file, column, read.index, &place)) {
        count = hr__item_rows_count(item->bytes, HR_ITEM_ROWS_FILL, count);
        place.bytes *= count;
        return hr__shard_fill(ctx, read.window, &place, to) == HR_OK ? count : 0;
    }
    read.count = hr__item_rows_count(item->bytes, HR_ITEM_ROWS_WINDOW, count);
    if (read_items(&read, ctx, &slab) != HR_OK || slab.data == NULL)
        return 0;
    good = hr__hdf5_convert(item, slab.data, to, slab.count);
    hr_buffer_unref(slab.owner);
    return good ? slab.count : 0;
}

static uint32_t hdf5_apply_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows)
{
    const struct hr_hdf5_files *files = ctx->state;

    return hr__item_rows(&(struct hr_item_rows){.ctx = ctx,
                                                .rows = rows,
                                                .columns = files->count,
                                                .records = files->records,
                                                .end = file_end,
                                                .copy = copy_items});
}

/* ---- keys ---- */

/* The fields that are one number. */
static size_t key_field(const struct hr_hdf5_files *files, size_t i)
{
    for (size_t k = 0; k < files->count; k++) {
        const struct hr_hdf5_item *item = &files->files[0].items[k];
        enum hr_hdf5_class class = item->dataset->type.class;
        bool number =
            class == HR_HDF5_INTEGER || class == HR_HDF5_BOOL || class == HR_HDF5_FLOAT;

        if (item->npy.ndim == 1 && number && hr__has_number_text(item->npy.dtype) &&
            i-- == 0)
            return k;
    }
    return files->count;
}

static const char *hdf5_key_name(const void *params, const void *made, size_t i)
{
    const struct hr_hdf5_files *files = made;
    size_t at = key_field(files, i);

    (void)params;
    return at < files->count ? files->names[at] : NULL;
}

/* A number through a window of its own; NULL data: the fill value. */
static enum hr_err
look_up(struct hr_hdf5_files *files, size_t at, uint64_t index, struct hr_window *window,
        struct hr_hdf5_slab *ret_slab, struct hr_error *error)
{
    struct hr_hdf5_source *file = hr__hdf5_files_of(files, index);
    struct hr_shard_place place;
    const void *data = NULL;

    *ret_slab = (struct hr_hdf5_slab){0};
    if (file->items[at].dataset->layout == HR_HDF5_CHUNKED)
        return hr__hdf5_slab(&(struct hr_hdf5_read){.files = files,
                                                    .file = file,
                                                    .field = at,
                                                    .index = index,
                                                    .count = 1,
                                                    .window = window,
                                                    .error = error},
                             0, ret_slab);
    if (!hr__hdf5_item_place(file, at, index, &place))
        return HR_OK;
    HR_TRY(hr__shard_window(window, &place, error));
    HR_TRY(hr__window_get(window, place.offset, (size_t)place.bytes, &data, error));
    ret_slab->data = data;
    return HR_OK;
}

static enum hr_err hdf5_key(const void *params, const void *made, size_t i,
                            uint64_t index, struct hr_str *out, struct hr_error *error)
{
    struct hr_hdf5_files *files = (void *)(uintptr_t)made;
    size_t at = key_field(files, i);
    const struct hr_hdf5_item *item = &hr__hdf5_files_of(files, index)->items[at];
    struct hr_window *window = hr__calloc(1, sizeof *window);
    char *fill = hr__malloc(item->bytes);
    struct hr_hdf5_slab slab = {0};
    int64_t number = 0;
    enum hr_err code;

    (void)params;
    if (window == NULL || fill == NULL) {
        hr__free(window);
        hr__free(fill);
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    }
    code = look_up(files, at, index, window, &slab, error);
    hr__hdf5_fill(item->dataset, fill, item->bytes);
    if (code == HR_OK &&
        hr__hdf5_convert(item, slab.data != NULL ? slab.data : fill, (char *)&number, 1))
        hr__number_text(out, item->npy.dtype, &number);
    else if (code == HR_OK) /* a bad record */
        code = hr__fail(error, HR_ERR_FORMAT, "its number has no value in its dtype");
    hr_buffer_unref(slab.owner);
    hr__window_finish(window);
    hr__free(window);
    hr__free(fill);
    return hr__shard_source_key(code, index, out);
}

static void hdf5_kept(const void *params, const void *state, uint64_t budget,
                      struct hr_op_kept *ret_kept)
{
    const struct params *p = params;

    hr__hdf5_files_kept(state, ret_kept);
    if (ret_kept->least > 0)
        ret_kept->most = hr__cache_worth((uint64_t)p->unpack_cache, budget);
}

static void hdf5_limit(const void *params, void *state, uint64_t bytes)
{
    const struct params *p = params;

    hr__hdf5_files_limit(state, hr__cache_limit((uint64_t)p->unpack_cache, bytes),
                         bytes < UINT64_MAX);
}

const struct hr_op hr_op_source_hdf5 = {
    .name = "source.hdf5",
    .summary = "the items of datasets of HDF5 files",
    .doc =
        "The items along the first dimension become records: datasets of shape [1000, "
        "28, 28] and [1000] have 1000 records with fields of shape [28, 28] and []. The "
        "datasets that are chosen must have equally many items. Bool, integers and "
        "floats of up to 64 bits, little-endian and big-endian (uint32 and uint64 become "
        "int64, and an item with a larger number is a bad record); texts of fixed size, "
        "and texts and bytes of any length. An array type adds its dimensions. Each "
        "member of a compound type is a dataset of its own, `points.x`. Several files "
        "must have items of one type and shape. No library is needed: files are read "
        "that any version of HDF5's library writes, with data compact, contiguous or in "
        "chunks, and chunks filtered by shuffle, gzip, LZF and Fletcher's checksum. What "
        "is not read (other filters, virtual datasets, external storage, arrays of "
        "compound types, references) is refused by name, with what to do.\n\n"
        "Contiguous items and those of plain chunks are read where they lie, in any "
        "order, so shuffle, split, shard and resume work as for files. A filtered chunk "
        "is unpacked as a whole, once for all threads while it is in the cache: in order "
        "each is unpacked once, shuffled as often as `unpack_cache` forces it. A damaged "
        "chunk costs the records in it. HDF5 has no checksums by default: damage to "
        "plain items cannot be seen. The identity of the source is the names and shapes, "
        "the places of the chunks, and the first, middle and last 64 KiB of the files.",
    .version = 2,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(hdf5_params, struct params),
    .binds = hdf5_binds,
    .infer = hdf5_infer,
    .open = hdf5_open,
    .close = hdf5_close,
    .identity = hdf5_identity,
    .apply = hdf5_apply,
    .prepare = hdf5_prepare,
    .source = {.note = hdf5_note,
               .apply_rows = hdf5_apply_rows,
               .count = hdf5_count,
               .locate = hdf5_locate,
               .ahead = hdf5_ahead,
               .key_name = hdf5_key_name,
               .key = hdf5_key},
    .memory = {.kept = hdf5_kept, .limit = hdf5_limit          },
};
