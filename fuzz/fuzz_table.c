/*
 * fuzz/fuzz_table.c - any bytes as a table of CSV or JSON lines.
 *
 * The bytes decide which of the two they are, as a file's do. Every column of an accepted
 * table is used; every cell is read; then half of the rows are removed.
 */
#include "core/alloc.h"
#include "core/hash.h"
#include "store/table.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint64_t read_cells(const struct hr_table *table)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        const struct hr_table_column *column = &table->columns[i];

        if (!column->used)
            continue;
        if (column->cells != table->rows)
            __builtin_trap();
        for (size_t row = 0; row < table->rows; row++) {
            size_t length = column->type == HR_TABLE_BOOL ? 1 : sizeof(int64_t);
            const char *at;

            if (column->type == HR_TABLE_TEXT)
                at = hr__table_text(column, row, &length);
            else
                at = (const char *)column->numbers + row * length;
            sum += hr__hash64(at, length, sum);
        }
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_table table;
    bool *keep;

    if (hr__table_parse((const char *)data, bytes, "x", "path", &table, NULL) == HR_OK) {
        for (size_t i = 0; i < table.column_count; i++) {
            if (hr__table_use(&table, (int)i, NULL) != HR_OK &&
                hr__table_use_text(&table, (int)i, NULL) == HR_OK &&
                table.columns[i].type != HR_TABLE_TEXT)
                __builtin_trap();
        }
        (void)read_cells(&table);
        hr__table_drop_unused(&table);
        keep = hr__calloc(table.rows + 1, sizeof *keep);
        for (size_t row = 0; keep != NULL && row < table.rows; row += 2)
            keep[row] = true;
        if (keep != NULL)
            hr__table_keep(&table, keep);
        hr__free(keep);
        (void)read_cells(&table);
    }
    hr__table_finish(&table);
    return 0;
}
