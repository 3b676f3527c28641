/*
 * fuzz/fuzz_arrow.c - any bytes as an Arrow file or stream, of two columns per type at
 * most: refused with a message, or every cell of every row is inside the file or refused.
 */
#include "core/alloc.h"
#include "ops/arrow_files.h"
#include "store/store_memory.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static volatile unsigned sum;

static void read_bytes(const uint8_t *data, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        sum += data[i];
}

static void
read_cell(const struct hr_arrow_column *column, const struct hr_arrow_cell *cell)
{
    struct hr_error error = {0};
    void *to;

    if (cell->is_null)
        return;
    read_bytes(cell->data, cell->bytes);
    if (cell->count < 0 || cell->count > 1 << 20)
        return;
    to = malloc((size_t)cell->count * 8 + 1);
    if (to != NULL && hr__arrow_elements(column, cell, to, &error) != HR_OK &&
        error.message[0] == '\0')
        abort();
    free(to);
}

static void read_rows(struct hr_arrow_files *files)
{
    for (uint64_t i = 0; i < files->records && i < 200; i++) {
        struct hr_error error = {0};
        struct hr_arrow_row row;

        if (hr__arrow_files_row(files, i, &row, &error) != HR_OK) {
            if (error.message[0] == '\0')
                abort();
            continue;
        }
        for (size_t k = 0; k < files->columns.count; k++) {
            struct hr_arrow_cell cell;

            if (hr__arrow_files_cell(files, &row, k, &cell, &error) == HR_OK)
                read_cell(&files->columns.items[k], &cell);
            else if (error.message[0] == '\0')
                abort();
            if (files->columns.items[k].kind == HR_ARROW_NUMBER ||
                files->columns.items[k].kind == HR_ARROW_VECTOR) {
                uint64_t rows;

                hr__arrow_files_run(files, &row, k, &cell, &rows);
                read_cell(&files->columns.items[k], &cell);
            }
        }
        hr_buffer_unref(row.buffer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char uri[] = "mem://fuzz.arrow";
    struct hr_names names = {1, {"*"}};
    struct hr_error error = {0};
    struct hr_arrow_files *files;

    if (hr__memory_put(uri, data, bytes, NULL) != HR_OK)
        return 0;
    if (hr__arrow_files_open(uri, &names, 1 << 24, &files, &error) == HR_OK) {
        files->cache_bytes = 1 << 20;
        read_rows(files);
        hr__arrow_files_close(files);
    } else if (error.message[0] == '\0') {
        abort();
    }
    return 0;
}
