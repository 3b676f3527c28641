/*
 * fuzz/fuzz_parquet.c - any bytes as a Parquet file: refused with a message, or every
 * cell of every row is inside memory or refused. Bytes that do not end as a file does are
 * also read as a footer, and as a page, which a file leads to only with offsets and sizes
 * that fit.
 */
#include "core/alloc.h"
#include "ops/parquet_files.h"
#include "store/store_memory.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static volatile unsigned sum;

static void check_error(const struct hr_error *error)
{
    if (error->message[0] == '\0')
        abort();
}

static void
read_cell(const struct hr_arrow_column *column, const struct hr_arrow_cell *cell)
{
    struct hr_error error = {0};
    void *to;

    if (cell->is_null)
        return;
    for (uint64_t i = 0; i < cell->bytes; i++)
        sum += cell->data[i];
    if (column->kind == HR_ARROW_BYTES || column->kind == HR_ARROW_FIXED)
        return;
    to = malloc((size_t)cell->count * 8 + 1);
    if (to != NULL && hr__arrow_elements(column, cell, to, &error) != HR_OK)
        check_error(&error);
    free(to);
}

/* The numbers that lie side by side from the row on, the first of which is its cell. */
static void read_run(struct hr_parquet_files *files, struct hr_parquet_row *row, size_t k,
                     const struct hr_arrow_cell *cell)
{
    const struct hr_arrow_column *column = &files->columns.items[k];
    struct hr_error error = {0};
    struct hr_arrow_cell run;
    uint64_t rows;

    if (column->kind != HR_ARROW_NUMBER)
        return;
    if (hr__parquet_files_run(files, row, k, &run, &rows, &error) != HR_OK ||
        (rows == 0) != cell->is_null || run.count != (int64_t)rows)
        abort();
    read_cell(column, &run);
}

static void read_rows(struct hr_parquet_files *files)
{
    for (uint64_t i = 0; i < files->records && i < 200; i++) {
        struct hr_parquet_row row;

        if (hr__parquet_files_row(files, i, NULL, &row, NULL) != HR_OK)
            return;
        for (size_t k = 0; k < files->columns.count; k++) {
            struct hr_error error = {0};
            struct hr_arrow_cell cell;
            struct hr_buffer *owner;

            if (hr__parquet_files_cell(files, &row, k, &cell, &owner, &error) == HR_OK) {
                read_cell(&files->columns.items[k], &cell);
                read_run(files, &row, k, &cell);
            } else {
                check_error(&error);
            }
        }
        hr__parquet_row_finish(&row);
    }
}

static void read_file(const uint8_t *data, size_t bytes)
{
    static const char uri[] = "mem://fuzz.parquet";
    struct hr_names names = {1, {"*"}};
    struct hr_error error = {0};
    struct hr_parquet_files *files;

    if (hr__memory_put(uri, data, bytes, NULL) != HR_OK)
        return;
    if (hr__parquet_files_open(uri, &names, 1 << 20, false, &files, &error) == HR_OK) {
        files->cache_bytes = 1 << 20;
        read_rows(files);
        hr__parquet_files_close(files);
    } else {
        check_error(&error);
    }
}

/* The first two bytes choose how the values are stored; a page of data follows. */
static void read_page(const uint8_t *data, size_t bytes)
{
    static const char *const formats[] = {"b", "i", "l", "?", "f", "g", "u", "w:3"};
    static const uint8_t widths[] = {1, 4, 8, 12, 4, 8, 0, 3};
    struct hr_parquet_storage storage = {0};
    struct hr_parquet_page page = {0};
    struct hr_arrow_column column = {.name = "x"};
    struct hr_parquet_header header;
    struct hr_parquet_body body;
    struct hr_error error = {0};
    const char *reason;
    unsigned type = data[0] & 7, levels = data[1] & 3;

    storage.type = (enum hr_parquet_type)type;
    storage.width = widths[type];
    storage.is_list = (data[1] & 4) != 0 && type < HR_PARQUET_BYTES;
    storage.def_max = (uint8_t)(levels + storage.is_list);
    storage.def_item = storage.def_max > 0 ? (uint8_t)(1 + levels / 2) : 0;
    storage.def_list = (uint8_t)(storage.def_item - storage.is_list);
    if (!hr__arrow_column(storage.is_list ? "+l" : formats[type], formats[type], NULL,
                          &column, &reason))
        return;
    column.is_bits = false;
    if (hr__parquet_header(data + 2, bytes - 2, &header, &error) != HR_OK) {
        check_error(&error);
        return;
    }
    body.levels = data + 2 + header.head;
    body.values = body.levels + header.def_bytes + header.rep_bytes;
    body.bytes = header.stored - header.def_bytes - header.rep_bytes;
    if (hr__parquet_decode(&column, &storage, &header, &body, NULL, 1 << 20, &page,
                           &error) != HR_OK)
        check_error(&error);
    else
        for (uint64_t i = 0; i < page.rows && i < 1000; i++) {
            struct hr_arrow_cell cell;

            if (hr__parquet_cell(&column, &page, i, &cell, &error) == HR_OK)
                read_cell(&column, &cell);
            else
                check_error(&error);
            if (column.kind == HR_ARROW_NUMBER) {
                uint64_t rows;

                hr__parquet_run(&column, &page, i, &cell, &rows);
                read_cell(&column, &cell);
            }
        }
    hr__parquet_page_finish(&page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_parquet_meta meta = {0};
    struct hr_error error = {0};

    if (bytes >= 4 && memcmp(data + bytes - 4, HR_PARQUET_MARK, 4) == 0) {
        read_file(data, bytes);
        return 0;
    }
    if (hr__parquet_meta_read(data, bytes, 1 << 20, &meta, &error) != HR_OK)
        check_error(&error);
    hr__parquet_meta_finish(&meta);
    if (bytes > 2)
        read_page(data, bytes);
    return 0;
}
