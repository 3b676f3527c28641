/*
 * ops/item_rows.c - see item_rows.h.
 */
#include "ops/item_rows.h"

/* Rows from `from` on whose items follow each other in a file. */
static uint32_t count_run(const struct hr_item_rows *items, uint32_t from)
{
    const struct hr_source_rows *rows = items->rows;
    uint64_t first = rows->indices[from], end = items->end(items->ctx->state, first);
    uint32_t count = 1;

    while (from + count < rows->count && first + count < end &&
           rows->indices[from + count] == first + count)
        count++;
    return count;
}

/* Copies items to rows [from, to) of a column. Returns where the first bad one is, or
 * `to`. */
static uint32_t
copy_column(const struct hr_item_rows *items, size_t column, uint32_t from, uint32_t to)
{
    while (from < to) {
        uint32_t done = items->copy(items->ctx, items->rows, column, from, to - from);

        if (done == 0) /* finds the bad one */
            done = items->copy(items->ctx, items->rows, column, from, 1);
        if (done == 0)
            break;
        from += done;
    }
    return from;
}

uint32_t hr__item_rows(const struct hr_item_rows *items)
{
    const struct hr_source_rows *rows = items->rows;
    uint32_t done = 0;

    for (size_t i = 0; i < items->columns; i++)
        if (rows->columns[i] == NULL)
            return 0;
    while (done < rows->count && rows->indices[done] < items->records) {
        uint32_t end = done + count_run(items, done), whole = end;

        for (size_t i = 0; i < items->columns; i++)
            end = copy_column(items, i, done, end);
        done = end;
        if (end < whole)
            break;
    }
    return done;
}
