/*
 * ops/column_rows.c - many rows at once: numbers are copied column by column from where
 * they lie side by side, all other cells are read one by one.
 *
 * A row group or record batch is found once for all rows of it that follow each other.
 */
#include "ops/column_source.h"

#include <string.h>

/* The rows that are made: `at` up to `end`, all of the same row group. */
struct span {
    struct hr_op_ctx *ctx;
    const struct hr_column_source *state;
    const struct hr_source_rows *rows;
    struct hr_column_row *row;
    uint32_t at, end;
    bool in_order; /* each record follows the one before it */
};

/* Numbers of consecutive records, as one cell. */
struct run {
    uint64_t first, count;
    struct hr_arrow_cell cell;
};

/* How many records from `at` on follow each other, up to `count`. */
static uint32_t count_in_order(const uint64_t *indices, uint32_t count)
{
    uint32_t run = 1;

    while (run < count && indices[run] == indices[run - 1] + 1)
        run++;
    return run;
}

/* Copies `count` tensors of the run, from that of record `index` on. */
static bool copy_run(const struct hr_arrow_column *column, const struct run *run,
                     uint64_t index, uint32_t count, char *to)
{
    int64_t each = column->kind == HR_ARROW_VECTOR ? column->size : 1;
    int64_t skip = (int64_t)(index - run->first) * each;
    struct hr_arrow_cell cell = run->cell;
    struct hr_error ignored;

    if (cell.count == 0)
        return true;
    cell.count = (int64_t)count * each;
    if (column->is_bits)
        cell.bit += (uint64_t)skip;
    else
        cell.data += (size_t)skip * column->width;
    return hr__arrow_elements(column, &cell, to, &ignored) == HR_OK;
}

/* Copies the tensor of the row, or what stands for a null. */
static bool copy_cell(const struct span *span, size_t at, char *to)
{
    const struct hr_column_source *state = span->state;
    const struct hr_arrow_column *column = &state->columns->items[at];
    struct hr_error *error = span->ctx->error;
    struct hr_arrow_cell cell;
    struct hr_buffer *owner;

    if (state->format->cell(state->files, span->row, at, &cell, &owner, error) != HR_OK)
        return false;
    if (!cell.is_null)
        return hr__arrow_elements(column, &cell, to, error) == HR_OK;
    if (!state->has_fill[at])
        return false;
    memcpy(to, &state->number[at], hr_dtype_size(column->dtype));
    return true;
}

/* Copies the tensors from row *at on that lie in one run. Returns false if the row *at is
 * bad. */
static bool copy_some(const struct span *span, size_t column, size_t bytes,
                      struct run *run, uint32_t *at)
{
    const struct hr_column_format *format = span->state->format;
    const struct hr_arrow_column *type = &span->state->columns->items[column];
    const uint64_t *indices = span->rows->indices;
    char *to = span->rows->columns[column] + *at * bytes;
    uint64_t index = indices[*at];
    uint32_t count;

    if (index - run->first >= run->count) {
        run->first = index;
        format->move(span->row, index);
        if (format->run(span->state->files, span->row, column, &run->cell, &run->count,
                        span->ctx->error) != HR_OK)
            return false;
    }
    count = run->first + run->count - index < span->end - *at
                ? (uint32_t)(run->first + run->count - index)
                : span->end - *at;
    if (count > 0 && !span->in_order)
        count = count_in_order(&indices[*at], count);
    if (count > 0 && copy_run(type, run, index, count, to)) {
        *at += count;
        return true;
    }
    format->move(span->row, index);
    *at += 1;
    return copy_cell(span, column, to);
}

/* Returns where the first bad row is, or the end. */
static uint32_t copy_column(const struct span *span, size_t column)
{
    const struct hr_arrow_column *type = &span->state->columns->items[column];
    size_t bytes = hr_dtype_size(type->dtype) *
                   (type->kind == HR_ARROW_VECTOR ? (size_t)type->size : 1);
    struct run run = {0};

    for (uint32_t at = span->at; at < span->end;) {
        uint32_t row = at;

        if (!copy_some(span, column, bytes, &run, &at))
            return row;
    }
    return span->end;
}

static uint32_t set_values(const struct span *span, size_t column)
{
    struct hr_value *values = span->rows->values[column];

    for (uint32_t at = span->at; at < span->end; at++) {
        span->state->format->move(span->row, span->rows->indices[at]);
        if (hr__column_source_value(span->ctx, span->state, span->row, column,
                                    &values[at * span->rows->stride]) != HR_OK)
            return at;
    }
    return span->end;
}

/* Where the rows from `at` on that lie in the row's group end. */
static uint32_t
find_end(const struct hr_source_rows *rows, const struct hr_column_row *row, uint32_t at)
{
    uint32_t end = at + 1;

    while (end < rows->count && rows->indices[end] - row->first < row->count)
        end++;
    return end;
}

/* Makes rows from *at on that lie in one group, and moves *at past them. Returns false if
 * row *at is bad. */
static bool
make_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows, uint32_t *at)
{
    const struct hr_column_source *state = ctx->state;
    struct hr_column_row row = {.index = rows->indices[*at], .thread = ctx->thread};
    struct span span = {ctx, state, rows, &row, *at, *at, false};
    uint32_t end = *at;

    if (row.index >= state->records)
        return false;
    if (state->format->begin(state->files, &row, ctx->error) == HR_OK) {
        end = find_end(rows, &row, *at);
        span.in_order = count_in_order(&rows->indices[*at], end - *at) == end - *at;
        span.end = end;
    }
    for (size_t f = 0; f < ctx->field_count; f++)
        span.end =
            rows->columns[f] != NULL ? copy_column(&span, f) : set_values(&span, f);
    state->format->end(&row);
    *at = span.end;
    return span.end == end && end > span.at;
}

uint32_t
hr__column_source_apply_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows)
{
    uint32_t done = 0;

    while (done < rows->count && make_rows(ctx, rows, &done))
        ;
    return done;
}
