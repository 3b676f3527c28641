/*
 * op/ragged.c - joining values of differing size, and taking them apart again.
 *
 * A ragged value is one buffer: struct hr_ragged, the splits of each level, the shapes,
 * then the items. So one reference keeps all of it, and a copy is one pass.
 */
#include "op/ragged.h"

#include <assert.h>
#include <string.h>

#include "core/error.h"
#include "headrace/engine.h"

#define ITEMS_ALIGN 16

static size_t round_up(size_t bytes)
{
    return (bytes + ITEMS_ALIGN - 1) & ~(size_t)(ITEMS_ALIGN - 1);
}

int64_t hr__ragged_items(const struct hr_value *value, int level)
{
    const struct hr_ragged *r = value->u.ragged;
    int64_t items = value->dims[0];

    assert(value->kind == HR_VALUE_RAGGED && level < r->levels);
    for (int i = 0; i < level; i++)
        items = r->splits[i][items];
    return items;
}

/* What a ragged value is made of, before it is laid out. */
struct layout {
    int levels, item_ndim;
    int64_t items[HR_RAGGED_LEVELS_MAX];
    size_t item_bytes; /* of all items together */
};

/* Bytes up to the items. Cannot overflow: what is counted is in memory already. */
static size_t head_bytes(const struct layout *layout)
{
    size_t numbers = 0, last = (size_t)layout->items[layout->levels - 1];

    for (int i = 0; i < layout->levels; i++)
        numbers += (size_t)layout->items[i] + 1;
    if (layout->item_ndim > 1)
        numbers += last * (size_t)layout->item_ndim;
    return sizeof(struct hr_ragged) + numbers * sizeof(int64_t);
}

/* Place the parts in `memory`; the caller fills splits and shapes in. */
static struct hr_ragged *lay_out(const struct layout *layout, void *memory, char **items)
{
    struct hr_ragged *r = memory;
    int64_t *at = (int64_t *)(r + 1);

    *r = (struct hr_ragged){.levels = layout->levels, .item_ndim = layout->item_ndim};
    for (int i = 0; i < layout->levels; i++) {
        r->splits[i] = at;
        at[0] = 0;
        at += layout->items[i] + 1;
    }
    if (layout->item_ndim > 1)
        r->shapes = at;
    *items = (char *)memory + round_up(head_bytes(layout));
    return r;
}

static struct layout layout_of(const struct hr_value *value)
{
    struct layout layout = {.levels = value->u.ragged->levels,
                            .item_ndim = value->u.ragged->item_ndim,
                            .item_bytes = value->bytes};

    for (int i = 0; i < layout.levels; i++)
        layout.items[i] = hr__ragged_items(value, i);
    return layout;
}

size_t hr__ragged_copy_bytes(const struct hr_value *value)
{
    struct layout layout = layout_of(value);

    return round_up(head_bytes(&layout)) + layout.item_bytes;
}

void hr__ragged_set(struct hr_value *value, enum hr_dtype dtype, int64_t count,
                    const struct hr_ragged *ragged, void *items, size_t bytes,
                    struct hr_buffer *owner)
{
    memset(value, 0, sizeof *value);
    value->kind = HR_VALUE_RAGGED;
    value->dtype = (uint8_t)dtype;
    value->ndim = 1;
    value->strings = ragged->item_ndim == 0;
    value->dims[0] = count;
    value->data = items;
    value->bytes = bytes;
    value->u.ragged = ragged;
    value->owner = owner;
}

static void copy_splits(const struct hr_value *value, const struct layout *layout,
                        struct hr_ragged *to)
{
    const struct hr_ragged *from = value->u.ragged;

    for (int i = 0; i < layout->levels; i++)
        memcpy((void *)(uintptr_t)to->splits[i], from->splits[i],
               ((size_t)layout->items[i] + 1) * sizeof(int64_t));
    if (to->shapes != NULL)
        memcpy((void *)(uintptr_t)to->shapes, from->shapes,
               (size_t)layout->items[layout->levels - 1] * (size_t)layout->item_ndim *
                   sizeof(int64_t));
}

struct hr_ragged *
hr__ragged_copy_splits(const struct hr_value *value, struct hr_arena *arena)
{
    struct layout layout = layout_of(value);
    void *memory = hr__arena_alloc(arena, head_bytes(&layout));
    struct hr_ragged *to = NULL;
    char *items;

    if (memory != NULL) {
        to = lay_out(&layout, memory, &items);
        copy_splits(value, &layout, to);
    }
    return to;
}

void hr__ragged_copy(const struct hr_value *value, void *memory, struct hr_buffer *owner,
                     struct hr_value *ret_value)
{
    struct layout layout = layout_of(value);
    char *items;
    struct hr_ragged *to = lay_out(&layout, memory, &items);

    copy_splits(value, &layout, to);
    if (value->bytes > 0)
        memcpy(items, value->data, value->bytes);
    hr__ragged_set(ret_value, (enum hr_dtype)value->dtype, value->dims[0], to, items,
                   value->bytes, owner);
    ret_value->layout = value->layout;
}

/* ---- joining ---- */

static int item_ndim_of(const struct hr_value *value)
{
    return value->kind == HR_VALUE_BYTES    ? 0
           : value->kind == HR_VALUE_TENSOR ? value->ndim
                                            : value->u.ragged->item_ndim;
}

static int levels_of(const struct hr_value *value)
{
    return value->kind == HR_VALUE_RAGGED ? value->u.ragged->levels : 0;
}

static size_t bytes_of(const struct hr_value *value)
{
    return value->kind == HR_VALUE_TENSOR ? (size_t)hr__value_count(value) *
                                                hr_dtype_size((enum hr_dtype)value->dtype)
                                          : value->bytes;
}

static enum hr_err check_alike(const char *field, const struct hr_value *a,
                               const struct hr_value *b, struct hr_error *reterr)
{
    if (a->kind == b->kind && a->dtype == b->dtype &&
        item_ndim_of(a) == item_ndim_of(b) && levels_of(a) == levels_of(b))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_SHAPE,
                    "field '%s' cannot be joined: its records differ in kind, dtype or "
                    "number of dimensions",
                    field);
}

/* Sizes of the join: the values' own levels move down by one. */
static enum hr_err measure(const char *field, const struct hr_value *first, size_t stride,
                           int64_t count, struct layout *layout, struct hr_error *reterr)
{
    int levels = levels_of(first);

    if (levels + 1 > HR_RAGGED_LEVELS_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "field '%s' is nested in %d batches; at most %d are supported",
                        field, levels + 1, HR_RAGGED_LEVELS_MAX);
    *layout = (struct layout){.levels = levels + 1, .item_ndim = item_ndim_of(first)};
    layout->items[0] = count;
    for (int64_t i = 0; i < count; i++) {
        const struct hr_value *value = &first[(size_t)i * stride];

        HR_TRY(check_alike(field, first, value, reterr));
        for (int l = 0; l < levels; l++)
            layout->items[l + 1] += hr__ragged_items(value, l);
        if (__builtin_add_overflow(layout->item_bytes, bytes_of(value),
                                   &layout->item_bytes))
            return hr__fail(reterr, HR_ERR_LIMIT, "field '%s' is too large to join",
                            field);
    }
    return HR_OK;
}

struct joint {
    int64_t *splits[HR_RAGGED_LEVELS_MAX], used[HR_RAGGED_LEVELS_MAX];
    int64_t *shapes;
    char *items;
    size_t item_size; /* bytes of an element */
    int levels, item_ndim;
};

/* Another item of a level, `length` items of the next one long. */
static void add_split(struct joint *j, int level, int64_t length)
{
    int64_t at = j->used[level]++;

    j->splits[level][at + 1] = j->splits[level][at] + length;
}

static void add_shape(struct joint *j, const int64_t *dims)
{
    if (j->item_ndim < 2)
        return;
    memcpy(j->shapes, dims, (size_t)j->item_ndim * sizeof *dims);
    j->shapes += j->item_ndim;
}

static void add_value(struct joint *j, const struct hr_value *value)
{
    size_t bytes = bytes_of(value);

    if (value->kind == HR_VALUE_RAGGED) {
        const struct hr_ragged *r = value->u.ragged;

        add_split(j, 0, value->dims[0]);
        for (int l = 0; l < r->levels; l++) {
            int64_t items = hr__ragged_items(value, l);

            for (int64_t i = 0; i < items; i++)
                add_split(j, l + 1, r->splits[l][i + 1] - r->splits[l][i]);
            if (l + 1 == r->levels)
                for (int64_t i = 0; i < items && r->item_ndim > 1; i++)
                    add_shape(j, &r->shapes[i * r->item_ndim]);
        }
        if (bytes > 0)
            memcpy(j->items, value->data, bytes);
    } else {
        add_split(j, 0, (int64_t)(bytes / j->item_size));
        if (value->kind == HR_VALUE_TENSOR) {
            add_shape(j, value->dims);
            hr__value_copy(value, j->items);
        } else if (bytes > 0) {
            memcpy(j->items, value->data, bytes);
        }
    }
    j->items += bytes;
}

enum hr_err hr__ragged_join(struct hr_pool *pool, const char *field,
                            const struct hr_value *first, size_t stride, int64_t count,
                            struct hr_value *ret_value, struct hr_error *reterr)
{
    bool strings = first->kind == HR_VALUE_BYTES ||
                   (first->kind == HR_VALUE_RAGGED && first->strings);
    enum hr_dtype dtype = strings ? HR_U8 : (enum hr_dtype)first->dtype;
    struct joint j = {.item_size = hr_dtype_size(dtype)};
    struct hr_ragged *ragged;
    struct hr_buffer *buffer;
    struct layout layout;
    enum hr_err code;
    char *items;

    assert(count > 0 && first->kind != HR_VALUE_NONE && first->kind != HR_VALUE_DEFERRED);
    HR_TRY(measure(field, first, stride, count, &layout, reterr));
    code = hr_pool_get(pool, round_up(head_bytes(&layout)) + layout.item_bytes, &buffer);
    if (code != HR_OK)
        return hr__fail(reterr, code, "no memory for a batch of field '%s'", field);
    ragged = lay_out(&layout, hr_buffer_data(buffer), &items);
    for (int l = 0; l < layout.levels; l++)
        j.splits[l] = (int64_t *)(uintptr_t)ragged->splits[l];
    j.shapes = (int64_t *)(uintptr_t)ragged->shapes;
    j.items = items;
    j.levels = layout.levels;
    j.item_ndim = layout.item_ndim;
    for (int64_t i = 0; i < count; i++)
        add_value(&j, &first[(size_t)i * stride]);
    for (int l = 0; l < layout.levels; l++)
        assert(j.used[l] == layout.items[l]);
    hr__ragged_set(ret_value, dtype, count, ragged, items, layout.item_bytes, buffer);
    ret_value->layout = first->layout;
    return HR_OK;
}

/* ---- taking apart ---- */

/* A range of items of level 0 as a value of its own whose splits begin at 0. */
static enum hr_err
take_range(const struct hr_value *value, int64_t at, struct hr_pool *pool,
           struct hr_value *ret_item, struct hr_error *reterr)
{
    const struct hr_ragged *r = value->u.ragged;
    struct layout layout = {.levels = r->levels - 1, .item_ndim = r->item_ndim};
    int64_t from[HR_RAGGED_LEVELS_MAX], begin = at, end = at + 1;
    size_t size = hr_dtype_size((enum hr_dtype)value->dtype);
    struct hr_ragged *to;
    struct hr_buffer *buffer;
    enum hr_err code;
    char *items;

    for (int l = 0; l < r->levels; l++) {
        from[l] = begin;
        if (l > 0)
            layout.items[l - 1] = end - begin;
        begin = r->splits[l][begin];
        end = r->splits[l][end];
    }
    layout.item_bytes = (size_t)(end - begin) * size;
    code = hr_pool_get(pool, round_up(head_bytes(&layout)) + layout.item_bytes, &buffer);
    if (code != HR_OK)
        return hr__fail(reterr, code, "no memory for a batch of %zu bytes",
                        layout.item_bytes);
    to = lay_out(&layout, hr_buffer_data(buffer), &items);
    for (int l = 0; l < layout.levels; l++) {
        const int64_t *splits = &r->splits[l + 1][from[l + 1]];
        int64_t *copy = (int64_t *)(uintptr_t)to->splits[l];

        for (int64_t i = 0; i <= layout.items[l]; i++)
            copy[i] = splits[i] - splits[0];
    }
    if (to->shapes != NULL)
        memcpy((void *)(uintptr_t)to->shapes,
               &r->shapes[from[r->levels - 1] * r->item_ndim],
               (size_t)layout.items[layout.levels - 1] * (size_t)r->item_ndim *
                   sizeof(int64_t));
    if (layout.item_bytes > 0)
        memcpy(items, (const char *)value->data + (size_t)begin * size,
               layout.item_bytes);
    hr__ragged_set(ret_item, (enum hr_dtype)value->dtype, layout.items[0], to, items,
                   layout.item_bytes, buffer);
    ret_item->layout = value->layout;
    return HR_OK;
}

enum hr_err
hr__ragged_item(const struct hr_value *value, int64_t at, struct hr_pool *pool,
                struct hr_value *ret_item, struct hr_error *reterr)
{
    const struct hr_ragged *r = value->u.ragged;
    size_t size = hr_dtype_size((enum hr_dtype)value->dtype);
    struct hr_buffer *owner;
    int64_t length;
    char *data;

    assert(value->kind == HR_VALUE_RAGGED && at >= 0 && at < value->dims[0]);
    if (r->levels > 1)
        return take_range(value, at, pool, ret_item, reterr);
    data = (char *)value->data + (size_t)r->splits[0][at] * size;
    length = r->splits[0][at + 1] - r->splits[0][at];
    owner = value->owner != NULL ? hr_buffer_ref(value->owner) : NULL;
    if (r->item_ndim == 0)
        hr__value_set_bytes(ret_item, data, (size_t)length, owner);
    else
        hr__value_set_tensor(ret_item, (enum hr_dtype)value->dtype, r->item_ndim,
                             r->item_ndim == 1 ? &length : &r->shapes[at * r->item_ndim],
                             data, owner);
    ret_item->layout = value->layout;
    ret_item->shared = true;
    return HR_OK;
}

/* ---- showing ---- */

static void
take_slice(const struct hr_value *value, int64_t at, struct hr_value *ret_item)
{
    struct hr_value item = *value;

    item.data = (char *)value->data + at * value->strides[0];
    item.ndim--;
    item.bytes = value->bytes / (size_t)value->dims[0];
    memmove(&item.dims[0], &item.dims[1], item.ndim * sizeof item.dims[0]);
    memmove(&item.strides[0], &item.strides[1], item.ndim * sizeof item.strides[0]);
    item.dims[item.ndim] = item.strides[item.ndim] = 0;
    item.shared = true;
    if (item.owner != NULL)
        hr_buffer_ref(item.owner);
    *ret_item = item;
}

bool hr__value_has_items(const struct hr_value *value)
{
    return (value->kind == HR_VALUE_TENSOR || value->kind == HR_VALUE_RAGGED) &&
           value->ndim >= 1;
}

size_t hr__values_odd(struct hr_value *const *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!hr__value_has_items(values[i]) || values[i]->dims[0] != values[0]->dims[0])
            return i;
    return count;
}

enum hr_err hr__batch_item(const struct hr_value *value, int64_t at, struct hr_pool *pool,
                           struct hr_value *ret_item, struct hr_error *reterr)
{
    if (!hr__value_has_items(value) || at >= value->dims[0])
        return hr__fail(reterr, HR_ERR_SHAPE,
                        "the fields of a batch have different numbers of records");
    if (value->kind == HR_VALUE_RAGGED)
        return hr__ragged_item(value, at, pool, ret_item, reterr);
    take_slice(value, at, ret_item);
    return HR_OK;
}

void hr__value_view(const struct hr_value *value, const char *name,
                    struct hr_field_view *ret_view)
{
    static_assert(HR_RAGGED_LEVELS == HR_RAGGED_LEVELS_MAX, "the header says as many");
    bool bytes = value->kind == HR_VALUE_BYTES;

    assert(hr__value_is_made(value));
    ret_view->name = name;
    ret_view->text = false;
    ret_view->dtype =
        bytes || value->strings ? HR_DTYPE_NONE : (enum hr_dtype)value->dtype;
    ret_view->ndim = bytes ? 1 : value->ndim;
    for (int i = 0; i < value->ndim; i++) {
        ret_view->dims[i] = value->dims[i];
        ret_view->strides[i] = value->strides[i];
    }
    if (bytes) {
        ret_view->dims[0] = (int64_t)value->bytes;
        ret_view->strides[0] = 1;
    }
    ret_view->data = value->data;
    ret_view->bytes = value->bytes;
    ret_view->buffer = NULL;
    ret_view->offsets = ret_view->shapes = NULL;
    ret_view->levels = ret_view->item_ndim = 0;
    if (value->kind == HR_VALUE_RAGGED) {
        const struct hr_ragged *r = value->u.ragged;

        ret_view->offsets = r->splits[0];
        ret_view->levels = r->levels;
        ret_view->item_ndim = r->item_ndim;
        memcpy(ret_view->splits, r->splits, sizeof r->splits);
        ret_view->shapes = r->shapes;
    }
}
