/*
 * ops/bucket.c - the bucket of a record, and how much buckets hold.
 */
#include "ops/bucket.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- parameters ---- */

static enum hr_err wrong(struct hr_error *error, const char *param)
{
    snprintf(error->param, sizeof error->param, "%s", param);
    return error->code;
}

enum hr_err hr__bucket_check(const void *params, struct hr_error *error)
{
    const struct hr_bucket *p = params;
    const int64_t *bounds = p->boundaries.values;

    for (int i = 1; i < p->boundaries.count; i++)
        if (bounds[i] <= bounds[i - 1]) {
            (void)hr__fail(error, HR_ERR_ARGUMENT,
                           "boundaries must ascend: %lld follows %lld",
                           (long long)bounds[i], (long long)bounds[i - 1]);
            return wrong(error, "boundaries");
        }
    if ((p->size.count > 0) == (p->elements > 0)) {
        (void)hr__fail(error, HR_ERR_ARGUMENT, "give either `size` or `elements`%s",
                       p->size.count > 0 ? ", not both" : "");
        return wrong(error, p->size.count > 0 ? "elements" : "size");
    }
    if (p->size.count > 1 && p->size.count != p->boundaries.count + 1) {
        (void)hr__fail(error, HR_ERR_ARGUMENT,
                       "%d boundaries make %d buckets, but there are %d sizes",
                       p->boundaries.count, p->boundaries.count + 1, p->size.count);
        return wrong(error, "size");
    }
    return HR_OK;
}

int hr__bucket_count(const struct hr_bucket *p)
{
    return p->boundaries.count + 1;
}

int64_t hr__bucket_size(const struct hr_bucket *p, int at)
{
    return p->elements > 0 ? p->elements : p->size.values[p->size.count > 1 ? at : 0];
}

/* What records of a bucket are padded to, or -1: to the longest of the batch. */
int64_t hr__bucket_target(const struct hr_bucket *p, int at)
{
    return p->pad_to == HR_BUCKET_BOUNDARY && at < p->boundaries.count
               ? hr__pad_up(p->boundaries.values[at] - 1, p->padding.multiple)
               : -1;
}

int hr__bucket_of(const struct hr_bucket *p, int64_t length)
{
    int low = 0, high = p->boundaries.count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (length < p->boundaries.values[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- the length of a record ---- */

bool hr__bucket_varies(const struct hr_field *field)
{
    return field->kind == HR_FIELD_TENSOR && hr__field_has_unknown_dims(field);
}

/* Appends the names of dimensions or fields for a message. */
static void list(char *text, size_t room, const char *name)
{
    size_t at = strlen(text);

    snprintf(text + at, room - at, "%s%s", at == 0 ? "" : ", ", name);
}

static enum hr_err
find_dim(struct hr_infer *infer, const struct hr_field *field, int *ret_dim)
{
    const struct hr_bucket *p = infer->params;
    int dims[HR_MAX_DIMS], count = hr__length_dims(field, dims);
    char names[200] = "";

    if (!hr__bucket_varies(field) ||
        (p->dim >= 0 && p->dim < field->ndim && field->dims[p->dim].size >= 0))
        return hr__infer_fail(
            infer, hr__bucket_varies(field) ? "dim" : "by", HR_ERR_SHAPE,
            "no such dimension of field \"%s\" varies between records", field->name);
    if (p->dim >= field->ndim)
        return hr__infer_fail(infer, "dim", HR_ERR_SHAPE,
                              "field \"%s\" has %d dimension%s", field->name, field->ndim,
                              field->ndim == 1 ? "" : "s");
    for (int i = 0; i < count; i++)
        list(names, sizeof names, field->dims[dims[i]].name);
    if (p->dim < 0 && count > 1)
        return hr__infer_fail(infer, "dim", HR_ERR_SHAPE,
                              "%d dimensions of field \"%s\" vary (%s): say which is the "
                              "length",
                              count, field->name, names);
    *ret_dim = p->dim < 0 ? dims[0] : (int)p->dim;
    return HR_OK;
}

static enum hr_err
find_field(struct hr_infer *infer, const struct hr_schema *schema, size_t *ret_field)
{
    const struct hr_bucket *p = infer->params;
    char names[300] = "";
    int count = 0;

    if (p->by != NULL) {
        *ret_field = (size_t)(hr__schema_get(schema, p->by) - schema->fields);
        return HR_OK;
    }
    for (size_t f = 0; f < schema->count; f++)
        if (hr__bucket_varies(&schema->fields[f])) {
            *ret_field = f;
            count++;
            list(names, sizeof names, schema->fields[f].name);
        }
    if (count == 1)
        return HR_OK;
    return hr__infer_fail(infer, "by", HR_ERR_SHAPE,
                          count == 0 ? "no field has a size that varies between records%s"
                                     : "several fields have sizes that vary (%s): say "
                                       "which is the length",
                          names);
}

enum hr_err
hr__bucket_measure(struct hr_infer *infer, struct hr_bucket_measure *ret_measure)
{
    const struct hr_schema *schema = &infer->inputs[0];
    struct hr_bucket_measure m = {.dim = -1};
    const struct hr_field *field;

    HR_TRY(find_field(infer, schema, &m.field));
    field = &schema->fields[m.field];
    if (field->kind == HR_FIELD_TENSOR && field->ndim > 0)
        HR_TRY(find_dim(infer, field, &m.dim));
    else if (field->kind == HR_FIELD_TENSOR && !hr__dtype_is_integer(field->dtype))
        return hr__infer_fail(infer, "by", HR_ERR_TYPE,
                              "field \"%s\" is a number of %s: a length is an integer",
                              field->name, hr_dtype_name(field->dtype));
    *ret_measure = m;
    return HR_OK;
}

int64_t
hr__bucket_length(const struct hr_bucket_measure *m, const struct hr_value *values)
{
    const struct hr_value *value = &values[m->field];

    if (m->dim >= 0)
        return value->dims[m->dim];
    if (value->kind == HR_VALUE_BYTES)
        return (int64_t)value->bytes;
    return hr__integer_at((enum hr_dtype)value->dtype, value->data);
}

/* ---- memory ---- */

/* Records of a schema with the largest sizes, for estimates. */
struct largest {
    int64_t length; /* -1: not known */
    double fixed;   /* part of a record's bytes that does not grow with the length */
};

static struct largest
largest_of(const struct hr_bucket_measure *m, const struct hr_schema *input)
{
    const struct hr_field *by = &input->fields[m->field];
    struct largest l = {.length = m->dim >= 0 ? by->dims[m->dim].size : -1, .fixed = 1};
    double all = 0;

    for (size_t f = 0; f < input->count; f++) {
        int64_t bytes = hr__field_bytes(&input->fields[f]);

        all += bytes > 0 ? (double)bytes : 0;
    }
    if (l.length > 0 && hr__field_bytes(by) > 0)
        l.fixed = 1 - (double)hr__field_bytes(by) / all;
    return l;
}

/* How many of the largest records are as large as what the bucket may hold, its records
 * padded to their longest or to the boundary. */
static double
held_in(const struct hr_bucket *p, int at, const struct largest *l, bool padded)
{
    const int64_t *bounds = p->boundaries.values;
    int64_t low = at > 0 ? bounds[at - 1] : (bounds[0] + 1) / 2, to = l->length;
    double records = p->elements > 0 ? (double)p->elements / (double)low
                                     : (double)hr__bucket_size(p, at);

    if (l->length <= 0)
        return records;
    if (at > 0 && l->length < low)
        return 0;
    if (at < p->boundaries.count && bounds[at] <= to)
        to = bounds[at] - 1;
    if (padded && hr__bucket_target(p, at) > to)
        to = hr__bucket_target(p, at);
    if (p->elements > 0)
        return records * l->fixed +
               (double)p->elements / (double)l->length * (1 - l->fixed);
    return records * (l->fixed + (double)to / (double)l->length * (1 - l->fixed));
}

uint64_t
hr__bucket_joins(const void *params, const void *state, const struct hr_schema *input)
{
    const struct hr_bucket *p = params;
    struct largest l = largest_of(state, input);
    double most = 0;

    for (int i = 0; i < hr__bucket_count(p); i++)
        most = fmax(most, held_in(p, i, &l, true));
    return (uint64_t)ceil(most);
}

uint64_t
hr__bucket_holds(const void *params, const void *state, const struct hr_schema *input)
{
    const struct hr_bucket *p = params;
    struct largest l = largest_of(state, input);
    double records = p->elements > 0; /* one that waits */

    for (int i = 0; i < hr__bucket_count(p); i++)
        records += held_in(p, i, &l, false);
    return (uint64_t)ceil(records);
}
