/*
 * api/arrow_api.c - implements headrace/arrow.h. The arrays are another library's and are
 * trusted as its specification says; cells are those of codec/arrow.h.
 */
#include "headrace/arrow.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api/arrow_abi.h"
#include "codec/arrow.h"
#include "core/alloc.h"
#include "core/bisect.h"
#include "core/error.h"
#include "ops/columns.h"

#define COLUMNS_MAX 64 /* as many as a record can have fields */

struct chunk { /* a record batch */
    struct ArrowArray array;
    uint64_t first;                             /* number of its first row */
    struct hr_arrow_view *views, *dictionaries; /* of each column */
};

struct hr_arrow {
    atomic_size_t refs;
    struct hr_arrow_column *columns;
    size_t count;
    struct chunk *chunks;
    size_t chunk_count, chunk_room;
    int64_t total;
    int64_t *rows; /* or NULL */
    size_t row_count;
};

void hr_arrow_unref(struct hr_arrow *arrow)
{
    if (arrow == NULL || atomic_fetch_sub(&arrow->refs, 1) > 1)
        return;
    for (size_t i = 0; i < arrow->chunk_count; i++) {
        struct chunk *chunk = &arrow->chunks[i];

        if (chunk->array.release != NULL)
            chunk->array.release(&chunk->array);
        hr__free(chunk->views);
    }
    hr__free(arrow->chunks);
    hr__free(arrow->columns);
    hr__free(arrow->rows);
    hr__free(arrow);
}

uint64_t hr_arrow_count(const struct hr_arrow *arrow)
{
    return arrow->rows != NULL ? arrow->row_count : (uint64_t)arrow->total;
}

/* ---- types ---- */

static enum hr_err
refuse(const struct ArrowSchema *field, const char *why, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_UNSUPPORTED, "column \"%.80s\" is %s",
                    field->name != NULL ? field->name : "", why);
}

static enum hr_err read_columns(struct hr_arrow *arrow, const struct ArrowSchema *schema,
                                struct hr_error *reterr)
{
    if (strcmp(schema->format, "+s") != 0 || schema->n_children < 1 ||
        schema->n_children > COLUMNS_MAX)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "the stream is of no table of 1 to %d columns", COLUMNS_MAX);
    arrow->count = (size_t)schema->n_children;
    arrow->columns = hr__calloc(arrow->count, sizeof *arrow->columns);
    if (arrow->columns == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < arrow->count; i++) {
        const struct ArrowSchema *field = schema->children[i];
        const char *child =
            field->n_children == 1 && field->children[0]->dictionary == NULL
                ? field->children[0]->format
                : NULL;
        const char *values = field->dictionary != NULL ? field->dictionary->format : NULL;
        const char *why;

        if (!hr__arrow_column(field->format, child, values, &arrow->columns[i], &why))
            return refuse(field, why, reterr);
        snprintf(arrow->columns[i].name, sizeof arrow->columns[i].name, "%s",
                 field->name != NULL ? field->name : "");
    }
    return HR_OK;
}

/* ---- arrays ---- */

static bool has_nulls(const struct ArrowArray *array, int64_t first, int64_t rows)
{
    const uint8_t *bits = array->buffers[0];

    if (array->null_count == 0 || bits == NULL)
        return false;
    for (int64_t i = first; i < first + rows; i++)
        if ((bits[i / 8] >> i % 8 & 1) == 0)
            return true;
    return false;
}

static uint64_t
last_offset(const struct hr_arrow_column *column, const void *offsets, int64_t at)
{
    int64_t large;
    int32_t small;

    if (offsets == NULL)
        return 0;
    if (column->is_large) {
        memcpy(&large, (const char *)offsets + 8 * at, sizeof large);
        return (uint64_t)large;
    }
    memcpy(&small, (const char *)offsets + 4 * at, sizeof small);
    return (uint64_t)small;
}

/* `rows` rows from element `first` of the array. False: some are null. */
static bool
make_view(const struct hr_arrow_column *column, const struct ArrowArray *array,
          int64_t first, int64_t rows, bool indexed, struct hr_arrow_view *view)
{
    *view = (struct hr_arrow_view){.rows = rows, .first = first};
    if (has_nulls(array, first, rows))
        return false;
    if (!indexed && (column->kind == HR_ARROW_LIST || column->kind == HR_ARROW_VECTOR)) {
        const struct ArrowArray *child = array->children[0];

        view->offsets = column->kind == HR_ARROW_LIST ? array->buffers[1] : NULL;
        view->data = child->buffers[1];
        view->child_rows = child->length;
        view->child_first = child->offset;
        return !has_nulls(child, child->offset, child->length);
    }
    if (!indexed && column->kind == HR_ARROW_BYTES) {
        view->offsets = array->buffers[1];
        view->data = array->buffers[2];
        view->data_bytes =
            rows > 0 ? last_offset(column, view->offsets, first + rows) : 0;
        return true;
    }
    view->data = array->buffers[1];
    return true;
}

static enum hr_err
make_views(struct hr_arrow *arrow, struct chunk *chunk, struct hr_error *reterr)
{
    const struct ArrowArray *array = &chunk->array;

    chunk->views = hr__calloc(2 * arrow->count, sizeof *chunk->views);
    if (chunk->views == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    chunk->dictionaries = chunk->views + arrow->count;
    for (size_t i = 0; i < arrow->count; i++) {
        const struct hr_arrow_column *column = &arrow->columns[i];
        const struct ArrowArray *child = array->children[i];
        const struct ArrowArray *values = child->dictionary;
        struct hr_arrow_view *view = &chunk->views[i];
        bool good = make_view(column, child, child->offset + array->offset, array->length,
                              column->has_dictionary, view);

        if (good && column->has_dictionary) {
            good = make_view(column, values, values->offset, values->length, false,
                             &chunk->dictionaries[i]);
            view->dictionary = &chunk->dictionaries[i];
        }
        if (!good)
            return hr__fail(reterr, HR_ERR_UNSUPPORTED, "column \"%s\" has nulls",
                            column->name);
    }
    return HR_OK;
}

static enum hr_err stream_failed(struct ArrowArrayStream *stream, struct hr_error *reterr)
{
    const char *why = stream->get_last_error(stream);

    return hr__fail(reterr, HR_ERR_IO, "the Arrow stream failed: %s",
                    why != NULL ? why : "it does not say why");
}

static enum hr_err read_chunks(struct hr_arrow *arrow, struct ArrowArrayStream *stream,
                               struct hr_error *reterr)
{
    for (;;) {
        struct ArrowArray array = {0};
        struct chunk *chunk;

        if (stream->get_next(stream, &array) != 0)
            return stream_failed(stream, reterr);
        if (array.release == NULL)
            return HR_OK;
        if (!hr__array_room(&arrow->chunks, arrow->chunk_count, &arrow->chunk_room, 1,
                            sizeof *arrow->chunks)) {
            array.release(&array);
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        }
        chunk = &arrow->chunks[arrow->chunk_count++];
        *chunk = (struct chunk){.array = array, .first = (uint64_t)arrow->total};
        arrow->total += array.length;
        HR_TRY(make_views(arrow, chunk, reterr));
    }
}

static enum hr_err read_stream(struct hr_arrow *arrow, struct ArrowArrayStream *stream,
                               struct hr_error *reterr)
{
    struct ArrowSchema schema = {0};
    enum hr_err code;

    if (stream->get_schema(stream, &schema) != 0)
        return stream_failed(stream, reterr);
    code = read_columns(arrow, &schema, reterr);
    schema.release(&schema);
    return code == HR_OK ? read_chunks(arrow, stream, reterr) : code;
}

static enum hr_err copy_rows(struct hr_arrow *arrow, const int64_t *rows, size_t count,
                             struct hr_error *reterr)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= arrow->total)
            return hr__fail(reterr, HR_ERR_RANGE, "there is no row %lld of %lld",
                            (long long)rows[i], (long long)arrow->total);
    arrow->rows = hr__malloc(count * sizeof *rows + 1);
    if (arrow->rows == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (count > 0)
        memcpy(arrow->rows, rows, count * sizeof *rows);
    arrow->row_count = count;
    return HR_OK;
}

enum hr_err
hr_arrow_create(struct ArrowArrayStream *stream, const int64_t *rows, size_t row_count,
                struct hr_arrow **ret_arrow, struct hr_error *reterr)
{
    struct hr_arrow *arrow;
    enum hr_err code;

    if (stream == NULL || stream->release == NULL || ret_arrow == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "hr_arrow_create needs a stream that is not released");
    arrow = hr__calloc(1, sizeof *arrow);
    if (arrow == NULL) {
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    } else {
        atomic_init(&arrow->refs, 1);
        code = read_stream(arrow, stream, reterr);
    }
    stream->release(stream);
    if (code == HR_OK && rows != NULL)
        code = copy_rows(arrow, rows, row_count, reterr);
    if (code == HR_OK)
        *ret_arrow = arrow;
    else
        hr_arrow_unref(arrow);
    return code;
}

/* ---- records ---- */

/* The chunk that has record `index`, and its row; NULL and HR_ERR_RANGE if there is none.
 */
static const struct chunk *find_row(const struct hr_arrow *arrow, uint64_t index,
                                    int64_t *ret_row, struct hr_error *reterr)
{
    bool known = index < hr_arrow_count(arrow);

    *ret_row = known && arrow->rows != NULL ? arrow->rows[index] : (int64_t)index;
    if (known)
        return &arrow->chunks[HR_BISECT(arrow->chunks, arrow->chunk_count, first,
                                        (uint64_t)*ret_row)];
    (void)hr__fail(reterr, HR_ERR_RANGE, "there is no row %llu",
                   (unsigned long long)index);
    return NULL;
}

/* Converts elements that hr__arrow_elements() made, or that lie in a buffer. */
static bool convert(enum hr_dtype from, const uint8_t *data, int64_t count,
                    enum hr_dtype to, void *made)
{
    bool real = from == HR_F32 || from == HR_F64;

    if (from == HR_F16 || (to == HR_I64 && real) ||
        (to != HR_I64 && to != HR_F32 && to != HR_F64))
        return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t number =
            real ? 0 : hr__integer_at(from, data + (size_t)i * hr_dtype_size(from));
        double value = (double)number;
        float small;

        if (from == HR_F32) {
            memcpy(&small, data + 4 * i, sizeof small);
            value = (double)small;
        } else if (from == HR_F64) {
            memcpy(&value, data + 8 * i, sizeof value);
        }
        small = (float)value;
        if (to == HR_I64)
            memcpy((char *)made + 8 * i, &number, sizeof number);
        else if (to == HR_F64)
            memcpy((char *)made + 8 * i, &value, sizeof value);
        else
            memcpy((char *)made + 4 * i, &small, sizeof small);
    }
    return true;
}

static enum hr_err
set_tensor(struct hr_code_call *call, size_t at, const struct hr_arrow_column *column,
           const struct hr_arrow_cell *cell, struct hr_error *reterr)
{
    int ndim = column->kind != HR_ARROW_NUMBER;
    struct hr_field_info info;
    const uint8_t *data = cell->data;
    void *room, *wide = NULL;
    enum hr_err code = HR_OK;

    HR_TRY(hr_code_output(call, at, &info));
    HR_TRY(hr_code_room(call, at, info.dtype, ndim, &cell->count, &room, reterr));
    if (info.dtype == column->dtype)
        return hr__arrow_elements(column, cell, room, reterr);
    if (!hr__arrow_is_plain(column)) {
        wide = hr__malloc((size_t)cell->count * 8 + 1);
        code = wide != NULL ? hr__arrow_elements(column, cell, wide, reterr)
                            : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        data = wide;
    }
    if (code == HR_OK && !convert(column->dtype, data, cell->count, info.dtype, room))
        code = hr__fail(reterr, HR_ERR_TYPE, "column \"%s\" is %s, and %s was declared",
                        column->name, hr_dtype_name(column->dtype),
                        hr_dtype_name(info.dtype));
    hr__free(wide);
    return code;
}

static enum hr_err
set_output(struct hr_code_call *call, const struct hr_arrow *arrow,
           const struct chunk *chunk, size_t at, int64_t row, struct hr_error *reterr)
{
    const struct hr_arrow_column *column = &arrow->columns[at];
    struct hr_arrow_cell cell;
    int64_t bytes;
    void *room;

    HR_TRY(hr__arrow_cell(column, &chunk->views[at], row - (int64_t)chunk->first, &cell,
                          reterr));
    if (column->kind != HR_ARROW_BYTES && column->kind != HR_ARROW_FIXED)
        return set_tensor(call, at, column, &cell, reterr);
    bytes = (int64_t)cell.bytes;
    HR_TRY(hr_code_room(call, at, HR_DTYPE_NONE, 1, &bytes, &room, reterr));
    if (bytes > 0)
        memcpy(room, cell.data, (size_t)bytes);
    return HR_OK;
}

static enum hr_err
call_row(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    const struct hr_arrow *arrow = user;
    const struct chunk *chunk;
    int64_t row;

    chunk = find_row(arrow, hr_code_index(call), &row, reterr);
    if (chunk == NULL)
        return HR_ERR_RANGE;
    if (hr_code_output_count(call) != arrow->count)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "%zu outputs are declared, for %zu columns",
                        hr_code_output_count(call), arrow->count);
    for (size_t i = 0; i < arrow->count; i++)
        HR_TRY(set_output(call, arrow, chunk, i, row, reterr));
    return HR_OK;
}

static enum hr_err call_key(void *user, size_t output, uint64_t index, char *text,
                            size_t room, size_t *ret_bytes, struct hr_error *reterr)
{
    const struct hr_arrow *arrow = user;
    const struct chunk *chunk;
    struct hr_arrow_cell cell;
    struct hr_str key;
    enum hr_err code;
    int64_t row;

    assert(output < arrow->count);
    chunk = find_row(arrow, index, &row, reterr);
    if (chunk == NULL)
        return HR_ERR_RANGE;
    hr__str_init(&key);
    code = hr__arrow_cell(&arrow->columns[output], &chunk->views[output],
                          row - (int64_t)chunk->first, &cell, reterr);
    if (code == HR_OK)
        code = hr__columns_key(&arrow->columns[output], &cell, &key, reterr);
    if (code == HR_OK && !hr__str_ok(&key))
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    *ret_bytes = key.length;
    if (code == HR_OK)
        memcpy(text, hr__str_text(&key), key.length < room ? key.length : room);
    hr__str_finish(&key);
    return code;
}

static void release(void *user)
{
    hr_arrow_unref(user);
}

void hr_arrow_code(struct hr_arrow *arrow, struct hr_code *ret_code)
{
    atomic_fetch_add(&arrow->refs, 1);
    *ret_code = (struct hr_code){.identity = "",
                                 .user = arrow,
                                 .call = call_row,
                                 .release = release,
                                 .key = call_key};
    for (size_t i = 0; i < arrow->count; i++)
        if (hr__columns_is_key(&arrow->columns[i]))
            ret_code->keys |= (uint64_t)1 << i;
}
