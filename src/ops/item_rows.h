/*
 * ops/item_rows.h - records made many at once by sources whose records are items of fixed
 * size, one after the other in files: hr_op_source.apply_rows.
 */
#ifndef HR_OPS_ITEM_ROWS_H
#define HR_OPS_ITEM_ROWS_H

#include "op/op.h"

#define HR_ITEM_ROWS_WINDOW (((size_t)32 << 10) - 1) /* bytes that come through one */
#define HR_ITEM_ROWS_FILL ((size_t)1 << 20)

/* Items of `bytes` bytes each that are read at once, of `most` that are wanted: up to
 * `room` bytes. Larger ones are read one by one, as they were fetched early. */
static inline uint32_t hr__item_rows_count(size_t bytes, size_t room, uint32_t most)
{
    size_t count = bytes > HR_ITEM_ROWS_WINDOW ? 1 : bytes > 0 ? room / bytes : most;

    return count < most ? (uint32_t)count : most;
}

struct hr_item_rows {
    struct hr_op_ctx *ctx;
    const struct hr_source_rows *rows;
    size_t columns;
    uint64_t records; /* of the source */
    /* One more than the last item of the file that has the item. */
    uint64_t (*end)(const void *state, uint64_t index);
    /* Copies up to `count` items, which follow each other in a file, to column `column`,
     * from row `row` on. Returns how many; 0: the first one is bad, or some are. */
    uint32_t (*copy)(struct hr_op_ctx *ctx, const struct hr_source_rows *rows,
                     size_t column, uint32_t row, uint32_t count);
};

/* How many rows, from the first on, are made. Sources with a field that has no column,
 * such as larger items in stages that are not direct, make none. */
uint32_t hr__item_rows(const struct hr_item_rows *items);

#endif
