/*
 * ops/stack.c - stacking: shapes that agree, shapes that are padded, and lists.
 */
#include "ops/stack.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "op/ragged.h"
#include "ops/fill.h"

static enum hr_err get_column(struct hr_pool *pool, const struct hr_field *field,
                              int64_t records, struct hr_buffer **ret_column)
{
    size_t bytes;

    assert(hr__field_bytes(field) >= 0);
    if (__builtin_mul_overflow((size_t)hr__field_bytes(field), (size_t)records, &bytes))
        return HR_ERR_LIMIT;
    return hr_pool_get(pool, bytes, ret_column);
}

/* ---- shapes ---- */

static const char *dims_text(const struct hr_value *value, char *text, size_t room)
{
    int at = snprintf(text, room, "[");

    for (int i = 0; i < value->ndim && at < (int)room; i++)
        at += snprintf(text + at, room - (size_t)at, "%s%lld", i == 0 ? "" : ", ",
                       (long long)value->dims[i]);
    if (at < (int)room)
        snprintf(text + at, room - (size_t)at, "]");
    return text;
}

/* The smallest shape that holds all records; sets *ret_pad if some are smaller. */
static enum hr_err
common_shape(const struct hr_field *field, const struct hr_value *first, size_t stride,
             int64_t records, const struct hr_stack_spec *spec, int64_t *ret_dims,
             bool *ret_pad, struct hr_error *reterr)
{
    char a[128], b[128];

    *ret_pad = false;
    memcpy(ret_dims, first->dims, sizeof first->dims);
    for (int64_t i = 1; i < records; i++) {
        const struct hr_value *value = &first[(size_t)i * stride];
        bool same = value->ndim == first->ndim;

        for (int d = 0; same && d < value->ndim; d++)
            same = value->dims[d] == ret_dims[d];
        if (same)
            continue;
        if (!spec->pad || value->ndim != first->ndim)
            return hr__fail(
                reterr, HR_ERR_SHAPE,
                "records of differing shape cannot be stacked: field '%s' is %s in "
                "one record and %s in another; %s batch.pad (padded_batch in Python)",
                field->name, dims_text(first, a, sizeof a), dims_text(value, b, sizeof b),
                hr__field_has_pixels(field)
                    ? "give them one size (image.resize, image.random_resized_crop, ...) "
                      "or use"
                    : "use");
        *ret_pad = true;
        for (int d = 0; d < value->ndim; d++)
            if (value->dims[d] > ret_dims[d])
                ret_dims[d] = value->dims[d];
    }
    for (int d = 0; spec->pad && d < first->ndim; d++) {
        int64_t size =
            spec->pad_to > 0 ? spec->pad_to : hr__pad_up(ret_dims[d], spec->pad_multiple);

        if (field->dims[d].size >= 0 || size == ret_dims[d])
            continue;
        assert(size > ret_dims[d]);
        ret_dims[d] = size;
        *ret_pad = true;
    }
    return HR_OK;
}

/* Copies a record's tensor into the corner of a larger one and pads the rest. */
static void copy_corner(const struct hr_value *value, const int64_t *dims, int d,
                        const char *from, char *to, double pad)
{
    size_t item = hr_dtype_size((enum hr_dtype)value->dtype);
    int64_t step = 1;

    if (d == value->ndim) {
        memcpy(to, from, item);
        return;
    }
    for (int k = d + 1; k < value->ndim; k++)
        step *= dims[k];
    if (d == value->ndim - 1 && value->strides[d] == (int64_t)item)
        memcpy(to, from, (size_t)value->dims[d] * item);
    else
        for (int64_t i = 0; i < value->dims[d]; i++)
            copy_corner(value, dims, d + 1, from + i * value->strides[d],
                        to + i * step * (int64_t)item, pad);
    hr__fill(to + value->dims[d] * step * (int64_t)item, (enum hr_dtype)value->dtype,
             (dims[d] - value->dims[d]) * step, pad);
}

static enum hr_err stack_tensors(struct hr_pool *pool, const struct hr_field *field,
                                 const struct hr_value *first, size_t stride,
                                 int64_t records, const struct hr_stack_spec *spec,
                                 struct hr_value *ret_value, struct hr_error *reterr)
{
    int64_t dims[HR_MAX_DIMS + 1];
    size_t item = hr_dtype_size((enum hr_dtype)first->dtype), row = item, bytes;
    struct hr_buffer *buffer;
    enum hr_err code;
    char *at;
    bool pad;

    if (first->ndim >= HR_MAX_DIMS)
        return hr__fail(reterr, HR_ERR_SHAPE,
                        "field '%s' has %d dimensions; a batch would have more than %d",
                        field->name, first->ndim, HR_MAX_DIMS);
    HR_TRY(common_shape(field, first, stride, records, spec, dims + 1, &pad, reterr));
    dims[0] = records;
    for (int d = 0; d < first->ndim; d++)
        if (__builtin_mul_overflow(row, (size_t)dims[d + 1], &row))
            return hr__fail(reterr, HR_ERR_LIMIT, "field '%s' is too large to be padded",
                            field->name);
    code = __builtin_mul_overflow(row, (size_t)records, &bytes)
               ? HR_ERR_LIMIT
               : hr_pool_get(pool, bytes, &buffer);
    if (code != HR_OK)
        return hr__fail(reterr, code, "no memory for a batch of field '%s'", field->name);
    at = hr_buffer_data(buffer);
    for (int64_t i = 0; i < records; i++, at += row) {
        const struct hr_value *value = &first[(size_t)i * stride];

        if (pad)
            copy_corner(value, dims + 1, 0, value->data, at, spec->pad_value);
        else
            hr__value_copy(value, at);
    }
    hr__value_set_tensor(ret_value, (enum hr_dtype)first->dtype, first->ndim + 1, dims,
                         hr_buffer_data(buffer), buffer);
    ret_value->layout = (uint8_t)field->layout;
    return HR_OK;
}

static bool joins_ragged(const struct hr_field *field, const struct hr_stack_spec *spec)
{
    return field->kind != HR_FIELD_TENSOR ||
           (spec->ragged && hr__field_has_unknown_dims(field));
}

/* Sets the value to `records` rows of `column`, whose reference it takes over. */
static void set_column(struct hr_value *value, const struct hr_field *field,
                       int64_t records, struct hr_buffer *column)
{
    int64_t dims[HR_MAX_DIMS];

    assert(field->ndim < HR_MAX_DIMS);
    dims[0] = records;
    for (int i = 0; i < field->ndim; i++)
        dims[i + 1] = field->dims[i].size;
    hr__value_set_tensor(value, field->dtype, field->ndim + 1, dims,
                         hr_buffer_data(column), column);
    value->layout = (uint8_t)field->layout;
}

int hr__length_dims(const struct hr_field *field, int ret_dims[HR_MAX_DIMS])
{
    int count = 0;

    for (int d = 0; d < field->ndim; d++)
        if (field->dims[d].size < 0)
            ret_dims[count++] = d;
    if (count == 0)
        ret_dims[count++] = 0;
    return count;
}

/* The sizes of the field's records, of which `columns` holds those of one fixed shape. */
static enum hr_err
join_lengths(struct hr_pool *pool, const struct hr_field *field,
             const struct hr_value *first, size_t stride, int64_t records,
             struct hr_value *ret_value, struct hr_error *reterr)
{
    int dims[HR_MAX_DIMS], count = hr__length_dims(field, dims);
    int64_t shape[2] = {records, count}, *to;
    struct hr_buffer *buffer;
    enum hr_err code = hr_pool_get(pool, (size_t)(records * count) * sizeof *to, &buffer);

    if (code != HR_OK)
        return hr__fail(reterr, code, "no memory for the lengths of field '%s'",
                        field->name);
    to = hr_buffer_data(buffer);
    for (int64_t i = 0; i < records; i++)
        for (int k = 0; k < count; k++)
            *to++ = field->dims[dims[k]].size >= 0
                        ? field->dims[dims[k]].size
                        : first[(size_t)i * stride].dims[dims[k]];
    hr__value_set_tensor(ret_value, HR_I64, count > 1 ? 2 : 1, shape,
                         hr_buffer_data(buffer), buffer);
    return HR_OK;
}

enum hr_err
hr__stack_join(struct hr_pool *pool, const struct hr_schema *schema, int64_t records,
               struct hr_buffer **columns, const struct hr_value *rows, size_t stride,
               const struct hr_stack_spec *spec, struct hr_value *ret_values,
               struct hr_error *reterr)
{
    assert(records > 0);
    for (size_t f = 0; f < schema->count; f++) {
        const struct hr_field *field = &schema->fields[f];

        if (columns != NULL && columns[f] != NULL) {
            set_column(&ret_values[f], field, records, columns[f]);
            columns[f] = NULL;
        } else if (joins_ragged(field, spec)) {
            HR_TRY(hr__ragged_join(pool, field->name, &rows[f], stride, records,
                                   &ret_values[f], reterr));
        } else {
            HR_TRY(stack_tensors(pool, field, &rows[f], stride, records, spec,
                                 &ret_values[f], reterr));
        }
    }
    for (int i = 0; spec->lengths != NULL && i < spec->lengths->count; i++) {
        size_t f = 0;

        while (strcmp(schema->fields[f].name, spec->lengths->values[i]) != 0)
            f++;
        HR_TRY(join_lengths(pool, &schema->fields[f], &rows[f], stride, records,
                            &ret_values[schema->count + (size_t)i], reterr));
    }
    return HR_OK;
}

/* ---- the sequencer ---- */

struct stacker {
    struct hr_stack_spec spec;
    const struct hr_schema *schema; /* of one record */
    struct hr_pool *pool;
    int64_t count, room; /* records held; rows allocated */
    bool full;
    struct hr_record_id first;  /* of the first record held */
    int64_t *row_bytes;         /* per field; -1: kept in rows */
    struct hr_buffer **columns; /* per field, NULL without row bytes */
    bool keeps_rows;            /* there are fields without row bytes */
    struct hr_value *rows;      /* room x fields */
    size_t kept_bytes;          /* of the values in rows */
};

void hr__stacker_clear(void *sequencer)
{
    struct stacker *s = sequencer;

    for (size_t i = 0; s->keeps_rows && i < (size_t)s->count * s->schema->count; i++)
        hr__value_clear(&s->rows[i]);
    s->count = 0;
    s->kept_bytes = 0;
    s->full = false;
}

void hr__stacker_end(void *sequencer)
{
    struct stacker *s = sequencer;

    if (s->rows != NULL)
        hr__stacker_clear(s);
    for (size_t f = 0; s->columns != NULL && f < s->schema->count; f++)
        hr_buffer_unref(s->columns[f]);
    hr__free(s->rows);
    hr__free(s->columns);
    hr__free(s->row_bytes);
    hr__free(s);
}

/* Grows the rows for values that wait: few at first, since a batch may have millions. */
static enum hr_err grow(struct stacker *s, struct hr_error *error)
{
    int64_t room = s->room == 0 ? 64 : 2 * s->room;
    struct hr_value *rows;

    room = room < s->spec.size ? room : s->spec.size;
    rows = hr__realloc(s->rows, (size_t)room * (s->schema->count + 1) * sizeof *rows);
    if (rows == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    memset(&rows[(size_t)s->room * s->schema->count], 0,
           (size_t)(room - s->room) * s->schema->count * sizeof *rows);
    s->rows = rows;
    s->room = room;
    return HR_OK;
}

enum hr_err hr__stacker_begin(const struct hr_sequence_begin *begin,
                              const struct hr_stack_spec *spec, void **sequencer)
{
    struct stacker *s = *sequencer;

    if (s != NULL) {
        assert(s->count == 0);
        return HR_OK;
    }
    s = hr__calloc(1, sizeof *s);
    if (s == NULL)
        return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
    s->spec = *spec;
    s->schema = begin->input;
    s->pool = begin->pool;
    s->columns = hr__calloc(s->schema->count + 1, sizeof *s->columns);
    s->row_bytes = hr__calloc(s->schema->count + 1, sizeof *s->row_bytes);
    if (s->columns == NULL || s->row_bytes == NULL || grow(s, begin->error) != HR_OK) {
        hr__stacker_end(s);
        return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
    }
    for (size_t f = 0; f < s->schema->count; f++)
        s->row_bytes[f] = spec->keep_rows ? -1 : hr__field_bytes(&s->schema->fields[f]);
    for (size_t f = 0; f < s->schema->count; f++)
        s->keeps_rows = s->keeps_rows || s->row_bytes[f] < 0;
    *sequencer = s;
    return HR_OK;
}

static enum hr_err begin_batch(struct stacker *s, struct hr_error *error)
{
    for (size_t f = 0; f < s->schema->count; f++) {
        enum hr_err code;

        if (s->row_bytes[f] < 0 || s->columns[f] != NULL)
            continue;
        code = get_column(s->pool, &s->schema->fields[f], s->spec.size, &s->columns[f]);
        if (code != HR_OK)
            return hr__fail(error, code, "no memory for a batch of field '%s'",
                            s->schema->fields[f].name);
    }
    return HR_OK;
}

/* Makes room for the next record; the memory of a batch is allocated with its first
 * record. */
static enum hr_err
make_room(struct stacker *s, const struct hr_record_id *id, struct hr_error *error)
{
    assert(!s->full && s->count < s->spec.size);
    if (s->count == s->room && s->keeps_rows)
        HR_TRY(grow(s, error));
    if (s->count == 0) {
        HR_TRY(begin_batch(s, error));
        s->first = *id;
    }
    return HR_OK;
}

static enum hr_err
add_field(struct stacker *s, size_t f, struct hr_value *value, struct hr_error *error)
{
    char *to;

    if (s->row_bytes[f] < 0) {
        struct hr_value *row = &s->rows[(size_t)s->count * s->schema->count + f];

        *row = *value;
        value->kind = HR_VALUE_NONE;
        value->owner = NULL;
        s->kept_bytes += row->bytes;
        return HR_OK;
    }
    /* A record that does not match its schema would overwrite its neighbours. */
    if (value->kind != HR_VALUE_TENSOR ||
        hr__value_count(value) * (int64_t)hr_dtype_size((enum hr_dtype)value->dtype) !=
            s->row_bytes[f])
        return hr__fail(error, HR_ERR_INTERNAL, "field '%s' does not match its schema",
                        s->schema->fields[f].name);
    to = (char *)hr_buffer_data(s->columns[f]) +
         (size_t)s->count * (size_t)s->row_bytes[f];
    if (value->bytes == 8 && value->ndim == 0)
        memcpy(to, value->data, 8); /* numbers, by far the most common */
    else
        hr__value_copy(value, to);
    hr__value_clear(value);
    return HR_OK;
}

enum hr_err hr__stacker_add(void *sequencer, struct hr_sequence_record *record,
                            enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct stacker *s = sequencer;

    HR_TRY(make_room(s, &record->id, error));
    for (size_t f = 0; f < s->schema->count; f++)
        HR_TRY(add_field(s, f, &record->values[f], error));
    s->full = ++s->count == s->spec.size;
    *ret_verdict = s->full ? HR_SEQUENCE_READY : HR_SEQUENCE_HELD;
    return HR_OK;
}

enum hr_err
hr__stacker_add_rows(void *sequencer, const struct hr_record_id *ids,
                     char *const *columns, uint32_t count, uint32_t *ret_taken,
                     enum hr_sequence_verdict *ret_verdict, struct hr_error *error)
{
    struct stacker *s = sequencer;
    uint64_t left;

    HR_TRY(make_room(s, ids, error));
    left = (uint64_t)(s->spec.size - s->count);
    count = count < left ? count : (uint32_t)left;
    for (size_t f = 0; f < s->schema->count; f++) {
        size_t bytes = (size_t)s->row_bytes[f];

        assert(s->row_bytes[f] >= 0);
        memcpy((char *)hr_buffer_data(s->columns[f]) + (size_t)s->count * bytes,
               columns[f], count * bytes);
    }
    s->count += count;
    s->full = s->count == s->spec.size;
    *ret_taken = count;
    *ret_verdict = s->full ? HR_SEQUENCE_READY : HR_SEQUENCE_HELD;
    return HR_OK;
}

enum hr_err hr__stacker_next(void *sequencer, struct hr_sequence_record *record,
                             bool *ret_any, bool *ret_more, struct hr_error *error)
{
    struct stacker *s = sequencer;
    enum hr_err code;

    *ret_more = false;
    *ret_any = s->full;
    if (!s->full)
        return HR_OK;
    record->id = s->first;
    record->records = s->count;
    code = hr__stack_join(s->pool, s->schema, s->count, s->columns, s->rows,
                          s->schema->count, &s->spec, record->values, error);
    hr__stacker_clear(s);
    return code;
}

enum hr_err
hr__stacker_flush(void *sequencer, enum hr_sequence_flush why, struct hr_error *error)
{
    struct stacker *s = sequencer;

    (void)error;
    if (why == HR_FLUSH_EPOCH && s->spec.drop_last && !s->full)
        hr__stacker_clear(s);
    s->full = s->count > 0;
    return HR_OK;
}

bool hr__stacker_save(const void *sequencer, struct hr_str *out)
{
    (void)out;
    return ((const struct stacker *)sequencer)->count == 0;
}

uint64_t hr__stacker_held_bytes(const void *sequencer)
{
    const struct stacker *s = sequencer;
    uint64_t bytes = s->kept_bytes;

    for (size_t f = 0; f < s->schema->count; f++)
        bytes += s->columns[f] != NULL ? hr_buffer_bytes(s->columns[f]) : 0;
    return bytes;
}

uint64_t hr__stacker_held_records(const void *sequencer)
{
    return (uint64_t)((const struct stacker *)sequencer)->count;
}
