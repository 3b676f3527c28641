/*
 * wire/value.c - values to bytes and back.
 *
 * Reading takes nothing on trust: places and sizes are checked against the region without
 * overflow, ragged offsets must rise from zero to the number of items, and a description
 * is checked by its class against the value that it starts from.
 */
#include "wire/value.h"
#include "op/ragged.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian");
_Static_assert(sizeof(struct hr_wire_value) == 96, "the format has no padding");
_Static_assert(offsetof(struct hr_wire_value, kind) == 24, "the format is fixed");
_Static_assert(offsetof(struct hr_wire_value, dims) == 32, "the format is fixed");
_Static_assert(sizeof(struct hr_wire_lazy) == 120, "the format has no padding");
_Static_assert(HR_VALUE_NONE == 0 && HR_VALUE_TENSOR == 1 && HR_VALUE_BYTES == 2 &&
                   HR_VALUE_RAGGED == 3 && HR_VALUE_DEFERRED == 4,
               "kinds of values are part of the format");

/* ---- writing ---- */

static size_t tensor_bytes(const struct hr_value *value)
{
    return (size_t)hr__value_count(value) * hr_dtype_size((enum hr_dtype)value->dtype);
}

static size_t split_bytes(const struct hr_value *value, int level)
{
    return ((size_t)hr__ragged_items(value, level) + 1) * sizeof(int64_t);
}

static size_t shape_bytes(const struct hr_value *value)
{
    const struct hr_ragged *r = value->u.ragged;

    return r->item_ndim < 2 ? 0
                            : (size_t)hr__ragged_items(value, r->levels - 1) *
                                  (size_t)r->item_ndim * sizeof(int64_t);
}

/* Splits of all levels and the shapes. */
static size_t offset_bytes(const struct hr_value *value)
{
    size_t bytes = hr__wire_align(shape_bytes(value));

    for (int i = 0; i < value->u.ragged->levels; i++)
        bytes += hr__wire_align(split_bytes(value, i));
    return bytes;
}

static void put_offsets(const struct hr_value *value, char *to)
{
    const struct hr_ragged *r = value->u.ragged;

    for (int i = 0; i < r->levels; i++) {
        memcpy(to, r->splits[i], split_bytes(value, i));
        to += hr__wire_align(split_bytes(value, i));
    }
    if (r->shapes != NULL)
        memcpy(to, r->shapes, shape_bytes(value));
}

bool hr__wire_describes(const struct hr_value *value)
{
    return value->kind != HR_VALUE_DEFERRED || value->u.lazy->class->encode != NULL;
}

size_t hr__wire_value_bytes(const struct hr_value *value)
{
    struct hr_value source = {0};

    switch ((enum hr_value_kind)value->kind) {
    case HR_VALUE_NONE:
        return 0;
    case HR_VALUE_TENSOR:
        return hr__wire_align(tensor_bytes(value));
    case HR_VALUE_BYTES:
        return hr__wire_align(value->bytes);
    case HR_VALUE_RAGGED:
        return hr__wire_align(value->bytes) + offset_bytes(value);
    case HR_VALUE_DEFERRED:
        assert(hr__wire_describes(value));
        value->u.lazy->class->source(value->u.lazy, &source);
        return hr__wire_align(sizeof(struct hr_wire_lazy) +
                              value->u.lazy->class->encoded_bytes) +
               hr__wire_value_bytes(&source);
    }
    return 0;
}

void hr__wire_value_head(const struct hr_value *value, struct hr_wire_value *ret_wire)
{
    size_t dims = value->ndim * sizeof(int64_t);

    assert(value->ndim <= HR_MAX_DIMS);
    ret_wire->kind = value->kind;
    ret_wire->dtype = value->dtype;
    ret_wire->ndim = value->ndim;
    ret_wire->flags = value->strings ? HR_WIRE_STRINGS : 0;
    ret_wire->layout = value->layout;
    ret_wire->levels = ret_wire->item_ndim = 0;
    if (value->kind == HR_VALUE_RAGGED) {
        ret_wire->levels = (uint8_t)value->u.ragged->levels;
        ret_wire->item_ndim = (uint8_t)value->u.ragged->item_ndim;
    }
    ret_wire->where = HR_WIRE_HERE;
    memcpy(ret_wire->dims, value->dims, dims);
    memset((char *)ret_wire->dims + dims, 0, sizeof ret_wire->dims - dims);
}

static void put_lazy(const struct hr_value *value, char *base, size_t place,
                     struct hr_wire_value *ret_wire)
{
    const struct hr_lazy *lazy = value->u.lazy;
    struct hr_wire_lazy head = {.bytes = lazy->class->encoded_bytes};
    size_t bytes = sizeof head + lazy->class->encoded_bytes;
    struct hr_value source = {0};

    assert(strlen(lazy->class->name) < HR_WIRE_CLASS_BYTES);
    lazy->class->source(lazy, &source);
    assert(source.kind == HR_VALUE_TENSOR || source.kind == HR_VALUE_BYTES);
    hr__wire_value_put(&source, base, place + hr__wire_align(bytes), &head.source);
    memcpy(head.class, lazy->class->name, strlen(lazy->class->name));
    memcpy(base + place, &head, sizeof head);
    lazy->class->encode(lazy, base + place + sizeof head);
    ret_wire->bytes = bytes;
}

void hr__wire_value_put(const struct hr_value *value, char *base, size_t place,
                        struct hr_wire_value *ret_wire)
{
    assert(place % HR_WIRE_ALIGN == 0);
    hr__wire_value_head(value, ret_wire);
    ret_wire->place = place;
    ret_wire->bytes = value->bytes;
    ret_wire->offsets = 0;
    if (value->kind == HR_VALUE_DEFERRED) {
        put_lazy(value, base, place, ret_wire);
        return;
    }
    if (value->kind == HR_VALUE_TENSOR) {
        ret_wire->bytes = tensor_bytes(value);
        hr__value_copy(value, base + place);
    } else if (value->kind != HR_VALUE_NONE && value->bytes > 0) {
        memcpy(base + place, value->data, value->bytes);
    }
    if (value->kind == HR_VALUE_RAGGED) {
        ret_wire->offsets = place + hr__wire_align(value->bytes);
        put_offsets(value, base + ret_wire->offsets);
    }
}

/* ---- reading ---- */

static enum hr_err malformed(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "a value is malformed: %s", what);
}

/* Where `bytes` bytes of the region lie; NULL if they are not inside. */
static const char *
locate(const struct hr_wire_region *region, uint64_t place, uint64_t bytes)
{
    if (hr__wire_inside(region->bytes, place, bytes))
        return region->base + place;
    for (size_t i = 0; i < region->far_count; i++) {
        const struct hr_wire_far *far = &region->far[i];

        if (place >= far->place && hr__wire_inside(far->bytes, place - far->place, bytes))
            return far->data + (place - far->place);
    }
    return NULL;
}

/* `bytes` bytes of the region: in place, or a copy when the region may change. */
static enum hr_err steady(const struct hr_wire_region *region, uint64_t place,
                          uint64_t bytes, const void **ret_bytes, struct hr_error *reterr)
{
    void *copy;

    const char *at = locate(region, place, bytes);

    if (place % HR_WIRE_ALIGN != 0 || at == NULL)
        return malformed(reterr, "it lies outside of its region");
    *ret_bytes = at;
    if (!region->unsteady)
        return HR_OK;
    copy = hr__arena_alloc(region->arena, (size_t)bytes + 1);
    if (copy == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a value of %llu bytes",
                        (unsigned long long)bytes);
    memcpy(copy, at, (size_t)bytes);
    atomic_signal_fence(memory_order_seq_cst); /* the copy is what is looked at */
    *ret_bytes = copy;
    return HR_OK;
}

/* Bytes of a contiguous tensor of these dims; false when they are none, or when bytes or
 * strides overflow: those count an empty dim as one. */
static bool dims_bytes(const struct hr_wire_value *wire, uint64_t *ret_bytes)
{
    uint64_t span = hr_dtype_size((enum hr_dtype)wire->dtype);
    bool empty = false;

    if (span == 0)
        return false;
    for (int i = 0; i < wire->ndim; i++) {
        if (wire->dims[i] < 0)
            return false;
        empty = empty || wire->dims[i] == 0;
        if (wire->dims[i] > 0 &&
            (__builtin_mul_overflow(span, (uint64_t)wire->dims[i], &span) ||
             span > (uint64_t)PTRDIFF_MAX))
            return false;
    }
    *ret_bytes = empty ? 0 : span;
    return true;
}

static enum hr_err check_head(const struct hr_wire_value *wire, struct hr_error *reterr)
{
    if (wire->kind > HR_VALUE_DEFERRED || wire->ndim > HR_MAX_DIMS ||
        (wire->flags & ~HR_WIRE_STRINGS) != 0 || wire->layout > HR_LAYOUT_CHW)
        return malformed(reterr, "its kind is not known");
    if (wire->where != HR_WIRE_HERE)
        return malformed(reterr, "its place is not known");
    if ((wire->levels > 0) != (wire->kind == HR_VALUE_RAGGED) ||
        wire->levels > HR_RAGGED_LEVELS_MAX || wire->item_ndim > HR_MAX_DIMS ||
        (wire->item_ndim > 0 && wire->kind != HR_VALUE_RAGGED) ||
        ((wire->flags & HR_WIRE_STRINGS) != 0 && wire->kind != HR_VALUE_RAGGED))
        return malformed(reterr, "only a ragged value has offsets");
    if (wire->place % HR_WIRE_ALIGN != 0)
        return malformed(reterr, "its place is not aligned");
    return HR_OK;
}

static enum hr_err
get_tensor(const struct hr_wire_region *region, const struct hr_wire_value *wire,
           struct hr_value *ret_value, struct hr_error *reterr)
{
    const char *at;
    uint64_t bytes;

    if (!dims_bytes(wire, &bytes) || bytes != wire->bytes)
        return malformed(reterr, "its dims do not match its bytes");
    at = locate(region, wire->place, bytes);
    if (at == NULL)
        return malformed(reterr, "it lies outside of its region");
    hr__value_set_tensor(ret_value, (enum hr_dtype)wire->dtype, wire->ndim, wire->dims,
                         (char *)(uintptr_t)at, NULL);
    ret_value->layout = wire->layout;
    return HR_OK;
}

static enum hr_err
get_bytes(const struct hr_wire_region *region, const struct hr_wire_value *wire,
          struct hr_value *ret_value, struct hr_error *reterr)
{
    const char *at = locate(region, wire->place, wire->bytes);

    if (at == NULL)
        return malformed(reterr, "it lies outside of its region");
    hr__value_set_bytes(ret_value, at, (size_t)wire->bytes, NULL);
    return HR_OK;
}

/* A walk through the numbers of a ragged value. */
struct numbers {
    const struct hr_wire_region *region;
    uint64_t place;
    struct hr_error *reterr;
};

static enum hr_err
take_numbers(struct numbers *n, uint64_t count, const int64_t **ret_numbers)
{
    const void *numbers;
    uint64_t bytes;

    if (__builtin_mul_overflow(count, sizeof(int64_t), &bytes) ||
        bytes > (uint64_t)PTRDIFF_MAX / 2)
        return malformed(n->reterr, "it has too many items");
    HR_TRY(steady(n->region, n->place, bytes, &numbers, n->reterr));
    n->place += hr__wire_align((size_t)bytes); /* inside of the region, or just after */
    *ret_numbers = numbers;
    return HR_OK;
}

/* Splits of `items` items: they rise from 0. */
static enum hr_err
take_splits(struct numbers *n, int64_t items, const int64_t **ret_splits)
{
    HR_TRY(take_numbers(n, (uint64_t)items + 1, ret_splits));
    if ((*ret_splits)[0] != 0)
        return malformed(n->reterr, "its offsets do not span its items");
    for (int64_t i = 0; i < items; i++)
        if ((*ret_splits)[i] > (*ret_splits)[i + 1])
            return malformed(n->reterr, "its offsets fall");
    return HR_OK;
}

/* Shapes say the same numbers of elements as the last splits. */
static enum hr_err
check_shapes(const struct hr_ragged *r, int64_t items, struct hr_error *reterr)
{
    const int64_t *splits = r->splits[r->levels - 1];

    for (int64_t i = 0; i < items; i++) {
        int64_t count = 1;

        for (int d = 0; d < r->item_ndim; d++) {
            int64_t size = r->shapes[i * r->item_ndim + d];

            if (size < 0 || __builtin_mul_overflow(count, size, &count))
                return malformed(reterr, "the shape of an item is none");
        }
        if (count != splits[i + 1] - splits[i])
            return malformed(reterr, "the shape of an item does not match its size");
    }
    return HR_OK;
}

static enum hr_err take_ragged(struct numbers *n, const struct hr_wire_value *wire,
                               uint64_t elements, struct hr_ragged *r)
{
    int64_t items = wire->dims[0];

    r->levels = wire->levels;
    r->item_ndim = wire->item_ndim;
    for (int i = 0; i < r->levels; i++) {
        HR_TRY(take_splits(n, items, &r->splits[i]));
        if (i + 1 < r->levels)
            items = r->splits[i][items];
    }
    if ((uint64_t)r->splits[r->levels - 1][items] != elements)
        return malformed(n->reterr, "its offsets do not span its items");
    if (r->item_ndim < 2)
        return HR_OK;
    if (items > INT64_MAX / HR_MAX_DIMS)
        return malformed(n->reterr, "it has too many items");
    HR_TRY(take_numbers(n, (uint64_t)items * (uint64_t)r->item_ndim, &r->shapes));
    return check_shapes(r, items, n->reterr);
}

static enum hr_err
get_ragged(const struct hr_wire_region *region, const struct hr_wire_value *wire,
           struct hr_value *ret_value, struct hr_error *reterr)
{
    bool strings = (wire->flags & HR_WIRE_STRINGS) != 0;
    uint64_t size = strings ? 1 : hr_dtype_size((enum hr_dtype)wire->dtype);
    struct numbers numbers = {.region = region, .place = wire->offsets, .reterr = reterr};
    struct hr_ragged *ragged;

    if (wire->ndim != 1 || wire->dims[0] < 0 || wire->dims[0] == INT64_MAX || size == 0 ||
        wire->bytes % size != 0 || strings != (wire->item_ndim == 0))
        return malformed(reterr, "it is no list");
    ragged = hr__arena_zalloc(region->arena, sizeof *ragged);
    if (ragged == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a value");
    HR_TRY(get_bytes(region, wire, ret_value, reterr));
    HR_TRY(take_ragged(&numbers, wire, wire->bytes / size, ragged));
    ret_value->kind = HR_VALUE_RAGGED;
    ret_value->dtype = wire->dtype;
    ret_value->ndim = 1;
    ret_value->strings = strings;
    ret_value->layout = wire->layout;
    ret_value->dims[0] = wire->dims[0];
    ret_value->u.ragged = ragged;
    return HR_OK;
}

/* The value that a description starts from; a decoder reads it several times. */
static enum hr_err
get_source(const struct hr_wire_region *region, const struct hr_wire_value *wire,
           struct hr_value *ret_source, struct hr_error *reterr)
{
    const void *data;

    if (wire->kind != HR_VALUE_TENSOR && wire->kind != HR_VALUE_BYTES)
        return malformed(reterr, "its description starts from nothing");
    HR_TRY(hr__wire_value_get(region, wire, ret_source, reterr));
    HR_TRY(steady(region, wire->place, wire->bytes, &data, reterr));
    ret_source->data = (void *)(uintptr_t)data;
    return HR_OK;
}

static enum hr_err
get_lazy(const struct hr_wire_region *region, const struct hr_wire_value *wire,
         struct hr_value *ret_value, struct hr_error *reterr)
{
    struct hr_lazy_decode decode = {.arena = region->arena, .nodes = region->nodes};
    const struct hr_lazy_class *class;
    struct hr_wire_lazy head;
    const void *bytes;

    HR_TRY(steady(region, wire->place, wire->bytes, &bytes, reterr));
    if (wire->bytes < sizeof head)
        return malformed(reterr, "its description is too short");
    memcpy(&head, bytes, sizeof head);
    if (head.class[HR_WIRE_CLASS_BYTES - 1] != '\0' || head.zero != 0 ||
        head.bytes != wire->bytes - sizeof head)
        return malformed(reterr, "its description has no class");
    class = hr__lazy_class_find(head.class);
    if (class == NULL || class->decode == NULL || class->encoded_bytes != head.bytes)
        return malformed(reterr, "its description is of a class that is not known");
    HR_TRY(get_source(region, &head.source, &decode.source, reterr));
    decode.bytes = (const char *)bytes + sizeof head;
    HR_TRY(class->decode(&decode, ret_value, reterr));
    assert(ret_value->kind == HR_VALUE_DEFERRED && ret_value->u.lazy->class == class);
    if (ret_value->dtype != wire->dtype || ret_value->ndim != wire->ndim ||
        memcmp(ret_value->dims, wire->dims, wire->ndim * sizeof(int64_t)) != 0)
        return malformed(reterr, "its description is of another value");
    return HR_OK;
}

enum hr_err
hr__wire_value_get(const struct hr_wire_region *region, const struct hr_wire_value *wire,
                   struct hr_value *ret_value, struct hr_error *reterr)
{
    struct hr_value value = {0};
    enum hr_err code = HR_OK;

    HR_TRY(check_head(wire, reterr));
    if (wire->kind == HR_VALUE_TENSOR)
        code = get_tensor(region, wire, &value, reterr);
    else if (wire->kind == HR_VALUE_BYTES)
        code = get_bytes(region, wire, &value, reterr);
    else if (wire->kind == HR_VALUE_RAGGED)
        code = get_ragged(region, wire, &value, reterr);
    else if (wire->kind == HR_VALUE_DEFERRED)
        code = get_lazy(region, wire, &value, reterr);
    if (code != HR_OK)
        return code;
    value.shared = wire->kind != HR_VALUE_DEFERRED;
    *ret_value = value;
    return HR_OK;
}

static bool kind_fits(const struct hr_value *value, const struct hr_field *field)
{
    switch (field->kind) {
    case HR_FIELD_TENSOR:
        return value->kind == HR_VALUE_TENSOR || value->kind == HR_VALUE_DEFERRED;
    case HR_FIELD_BYTES:
        return value->kind == HR_VALUE_BYTES;
    case HR_FIELD_RAGGED:
        return value->kind == HR_VALUE_RAGGED && !value->strings;
    case HR_FIELD_STRINGS:
        return value->kind == HR_VALUE_RAGGED && value->strings;
    }
    return false;
}

enum hr_err hr__wire_value_fits(const struct hr_value *value,
                                const struct hr_field *field, struct hr_error *reterr)
{
    bool fits = kind_fits(value, field);
    bool typed = field->kind == HR_FIELD_TENSOR || field->kind == HR_FIELD_RAGGED;

    fits = fits && (!typed || value->dtype == field->dtype);
    if (fits && field->kind == HR_FIELD_TENSOR) {
        fits = value->ndim == field->ndim;
        for (int i = 0; fits && i < field->ndim; i++)
            fits = field->dims[i].size < 0 || field->dims[i].size == value->dims[i];
    }
    return fits ? HR_OK
                : hr__fail(reterr, HR_ERR_FORMAT,
                           "field '%s' is not what its schema says", field->name);
}
