/*
 * ops/parquet_where.c - see parquet_where.h.
 */
#include "ops/parquet_where.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

/* ---- bounds ---- */

/* The kind of the column as an operand; false: it has no bounds. */
static bool kind_of(const struct hr_arrow_column *column, enum hr_operand_kind *ret_kind)
{
    if (column->kind == HR_ARROW_BYTES || column->kind == HR_ARROW_FIXED) {
        *ret_kind = HR_OPERAND_STRING;
        return true;
    }
    *ret_kind = column->dtype == HR_BOOL                             ? HR_OPERAND_BOOL
                : column->dtype == HR_F32 || column->dtype == HR_F64 ? HR_OPERAND_FLOAT
                                                                     : HR_OPERAND_INT;
    return column->kind == HR_ARROW_NUMBER && column->dtype != HR_F16 &&
           column->dtype != HR_BF16;
}

static bool is_unsigned(const struct hr_arrow_column *column)
{
    return column->is_widened || column->dtype == HR_U8 || column->dtype == HR_U16;
}

/* Whether the writer's order is that of conditions. That of signed numbers has never been
 * in doubt; of others, older writers compared signed bytes. */
static bool is_sound(const struct hr_arrow_column *column, enum hr_operand_kind kind,
                     const struct hr_parquet_stats *stats, enum hr_parquet_order order)
{
    if (order == HR_PARQUET_ORDER_OTHER)
        return false;
    if (kind == HR_OPERAND_STRING || is_unsigned(column))
        return order == HR_PARQUET_ORDER_TYPE && !stats->is_old;
    return true;
}

/* A stored number; false: it is none, or too large. */
static bool
read_number(const struct hr_arrow_column *column,
            const struct hr_parquet_storage *storage, enum hr_operand_kind kind,
            const uint8_t *data, size_t bytes, struct hr_operand *operand)
{
    uint64_t bits = 0;
    float small;

    if (bytes != storage->width || bytes > sizeof bits)
        return false;
    for (size_t i = 0; i < bytes; i++)
        bits |= (uint64_t)data[i] << 8 * i;
    operand->kind = kind;
    if (kind == HR_OPERAND_BOOL) {
        operand->as.boolean = bits != 0;
    } else if (kind == HR_OPERAND_FLOAT && bytes == sizeof small) {
        uint32_t half = (uint32_t)bits;

        memcpy(&small, &half, sizeof small);
        operand->as.number = (double)small;
    } else if (kind == HR_OPERAND_FLOAT) {
        memcpy(&operand->as.number, &bits, sizeof bits);
    } else if (bytes == sizeof(int32_t) && !is_unsigned(column)) {
        operand->as.integer = (int32_t)(uint32_t)bits;
    } else {
        operand->as.integer = (int64_t)bits;
        return !is_unsigned(column) || operand->as.integer >= 0;
    }
    return kind != HR_OPERAND_FLOAT || !isnan(operand->as.number);
}

static void set_text(struct hr_operand *operand, const char *text, size_t bytes)
{
    operand->kind = HR_OPERAND_STRING;
    operand->as.string.text = text;
    operand->as.string.length = bytes;
}

static bool
read_bounds(struct hr_parquet_bounds *bounds, const struct hr_arrow_column *column,
            const struct hr_parquet_storage *storage,
            const struct hr_parquet_stats *stats, enum hr_operand_kind kind)
{
    struct hr_operand_range range = hr__operand_any(kind);

    if (kind == HR_OPERAND_STRING) {
        memcpy(bounds->text, stats->low, stats->low_bytes);
        memcpy(bounds->text + stats->low_bytes, stats->high, stats->high_bytes);
        set_text(&range.low, bounds->text, stats->low_bytes);
        set_text(&range.high, bounds->text + stats->low_bytes, stats->high_bytes);
        range.open = false;
    } else if (!read_number(column, storage, kind, stats->low, stats->low_bytes,
                            &range.low) ||
               !read_number(column, storage, kind, stats->high, stats->high_bytes,
                            &range.high)) {
        return false;
    }
    bounds->range = range;
    return true;
}

struct hr_parquet_bounds *
hr__parquet_bounds_create(const struct hr_arrow_column *column,
                          const struct hr_parquet_storage *storage,
                          const struct hr_parquet_stats *stats,
                          enum hr_parquet_order order, int64_t values)
{
    struct hr_parquet_bounds *bounds;
    enum hr_operand_kind kind;
    bool usable = kind_of(column, &kind) && stats->low != NULL &&
                  is_sound(column, kind, stats, order);

    bounds = hr__calloc(1, sizeof *bounds + stats->low_bytes + stats->high_bytes);
    if (bounds == NULL)
        return NULL;
    bounds->range = hr__operand_any(kind);
    usable = usable && read_bounds(bounds, column, storage, stats, kind);
    bounds->has_values = storage->is_list || stats->nulls != values;
    bounds->may_be_null = (storage->def_max > 0 || storage->is_list) && stats->nulls != 0;
    bounds->may_be_large = column->is_widened && storage->width == 8 && !usable;
    return bounds;
}

/* ---- row groups ---- */

static struct hr_operand
fill_of(const struct hr_column_source *source, size_t at, enum hr_operand_kind kind)
{
    const struct hr_arrow_column *column = &source->columns->items[at];
    const int64_t *number = &source->number[at];
    struct hr_operand fill = {.kind = kind};
    float small;

    if (kind == HR_OPERAND_STRING) {
        set_text(&fill, source->fill[at], strlen(source->fill[at]));
    } else if (kind == HR_OPERAND_FLOAT && column->dtype == HR_F32) {
        memcpy(&small, number, sizeof small);
        fill.as.number = (double)small;
    } else if (kind == HR_OPERAND_FLOAT) {
        memcpy(&fill.as.number, number, sizeof fill.as.number);
    } else if (kind == HR_OPERAND_BOOL) {
        fill.as.boolean = *number != 0;
    } else {
        fill.as.integer = *number;
    }
    return fill;
}

/* What an operand of the condition may be; false: a row may be bad. */
static bool
operand_range(const struct hr_column_source *source, size_t at,
              const struct hr_expr_ref *ref, const struct hr_parquet_bounds *bounds,
              struct hr_operand_range *ret_range)
{
    struct hr_operand_range fill;

    *ret_range = hr__operand_any(ref->kind);
    if (bounds->may_be_large || (bounds->may_be_null && !source->has_fill[at]))
        return false;
    if (ref->member != HR_MEMBER_VALUE || bounds->range.low.kind != ref->kind)
        return true;
    *ret_range = bounds->range;
    if (!bounds->may_be_null)
        return true;
    fill = (struct hr_operand_range){.low = fill_of(source, at, ref->kind)};
    fill.high = fill.low;
    fill.nan = ref->kind == HR_OPERAND_FLOAT;
    if (ref->kind == HR_OPERAND_FLOAT && isnan(fill.low.as.number))
        fill = hr__operand_any(ref->kind);
    *ret_range = bounds->has_values ? hr__operand_join(&fill, ret_range) : fill;
    return true;
}

static bool never_holds(const struct hr_parquet_group *group, void *user)
{
    const struct hr_column_source *source = user;
    struct hr_operand_range ranges[HR_EXPR_REFS_MAX];
    size_t count;
    const struct hr_expr_ref *refs = hr__expr_refs(source->where, &count);

    for (size_t i = 0; i < count; i++) {
        size_t at = source->where_at[refs[i].field];

        if (!operand_range(source, at, &refs[i], group->parts[at].bounds, &ranges[i]))
            return false;
    }
    return hr__expr_never(source->where, ranges);
}

void hr__parquet_where_skip(struct hr_column_source *source)
{
    struct hr_parquet_files *files = source->files;

    hr__parquet_files_skip(files, never_holds, source);
    source->records = files->records;
}
