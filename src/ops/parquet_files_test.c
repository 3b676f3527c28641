/*
 * ops/parquet_files_test.c - pages are decoded once while rows are read in order, by any
 * number of threads; damage is found once.
 */
#include "op/thread.h"
#include "ops/parquet_files.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static struct hr_parquet_files *open_file(const char *name, uint64_t cache_bytes)
{
    struct hr_names names = {1, {"*"}};
    struct hr_parquet_files *files;
    struct hr_error error = {0};
    char path[600];

    snprintf(path, sizeof path, "%s/fuzz/corpus/parquet/%s", check_source_dir(), name);
    CHECK_OK(hr__parquet_files_open(path, &names, 1 << 20, false, &files, &error));
    files->cache_bytes = cache_bytes;
    return files;
}

/* Those that have rows: a writer may write empty pages. */
static uint64_t count_spans(const struct hr_parquet_files *files)
{
    uint64_t count = 0;

    for (size_t i = 0; i < files->group_count; i++)
        for (size_t k = 0; k < files->columns.count; k++) {
            const struct hr_parquet_part *part = &files->groups[i].parts[k];

            for (size_t s = 0; s < part->span_count; s++)
                count += part->spans[s].first < (s + 1 < part->span_count
                                                     ? part->spans[s + 1].first
                                                     : part->readable);
        }
    return count;
}

/* Reads every `step`-th row from `from` on, as one thread. */
struct reading {
    struct hr_parquet_files *files;
    uint64_t from, step;
    pthread_t id;
};

static void *read_rows(void *user)
{
    const struct reading *reading = user;
    struct hr_parquet_files *files = reading->files;
    struct hr_thread thread = {0};

    for (uint64_t i = reading->from; i < files->records; i += reading->step) {
        struct hr_parquet_row row;
        struct hr_arrow_cell cell;
        struct hr_buffer *owner;

        CHECK_OK(hr__parquet_files_row(files, i, &thread, &row, NULL));
        for (size_t k = 0; k < files->columns.count; k++) {
            CHECK_OK(hr__parquet_files_cell(files, &row, k, &cell, &owner, NULL));
            if (strcmp(files->columns.items[k].name, "id") == 0)
                CHECK(memcmp(cell.data, &i, sizeof i) == 0); /* little-endian */
        }
        hr__parquet_row_finish(&row);
    }
    hr__thread_objects_destroy(&thread);
    return NULL;
}

TEST(rows_in_order_decode_each_page_once)
{
    static const char *const names[] = {"plain", "snappy"};

    for (int i = 0; i < 2; i++) {
        struct hr_parquet_files *files = open_file(names[i], 0);
        struct reading all = {files, 0, 1, 0};

        read_rows(&all);
        CHECK(count_spans(files) >= 24);
        CHECK_EQ_INT(files->decoded, count_spans(files));
        hr__parquet_files_close(files);
    }
}

TEST(threads_share_what_they_decode)
{
    struct hr_parquet_files *files = open_file("snappy", 1 << 20);
    struct reading readings[4];

    for (uint64_t i = 0; i < 4; i++) {
        readings[i] = (struct reading){files, i, 4, 0};
        CHECK(pthread_create(&readings[i].id, NULL, read_rows, &readings[i]) == 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(readings[i].id, NULL);
    CHECK_EQ_INT(files->decoded, count_spans(files));
    CHECK(files->cached_bytes > 0);
    hr__parquet_files_close(files);
}

TEST(the_cache_keeps_within_its_bytes)
{
    struct hr_parquet_files *files = open_file("snappy", 0);
    struct reading all = {files, 0, 1, 0};

    read_rows(&all);
    CHECK(files->cached <= 8 * files->columns.count);
    hr__parquet_files_close(files);
}
