/*
 * store/hdf5_test.c - the checksum of HDF5's structures, and failures while a file is
 * read. What files hold is tested by python/tests/test_hdf5.py.
 */
#include "store/hdf5_internal.h"

#include <string.h>

#include "core/alloc.h"
#include "tests/support/check.h"

static const char *const names[] = {
    "plain",  "plain_new", "block",   "chunked",     "chunked_new", "texts",
    "groups", "grown",     "structs", "structs_new", "outside",     "outside_new"};
#define NAMES (sizeof names / sizeof names[0])

TEST(the_checksum_is_that_of_lookup3)
{
    static const char text[] = "Four score and seven years ago";

    CHECK_EQ_INT(hr__hdf5_checksum((const uint8_t *)"", 0), 0xdeadbeef);
    CHECK_EQ_INT(hr__hdf5_checksum((const uint8_t *)text, 30), 0x17770551);
}

#define INT32 0x10, 0, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0

/* A type of 8 bytes that says that it has `n` integers of 4 bytes. */
static bool is_read(const uint8_t *type, size_t bytes, int64_t n)
{
    struct hr_hdf5_object object = {0};
    bool read = hr__hdf5_type(&object, (struct hr_hdf5_in){type, bytes, false});

    if (read) {
        CHECK_EQ_INT(object.part_count, 1);
        CHECK_EQ_INT(object.parts[0].ndim, 1);
        CHECK_EQ_INT(object.parts[0].dims[0], n);
    }
    hr__hdf5_parts_finish(&object);
    return read;
}

TEST(arrays_that_are_longer_than_their_element_are_damaged)
{
    for (uint8_t n = 1; n <= 4; n++) {
        const uint8_t array[] = {0x2a, 0, 0, 0, 8, 0, 0, 0, 1, 0,    0,
                                 0,    n, 0, 0, 0, 0, 0, 0, 0, INT32};
        const uint8_t member[] = {0x16, 1, 0, 0, 8, 0, 0, 0, 'a', 0,    0, 0, 0,
                                  0,    0, 0, 0, 0, 0, 0, 1, 0,   0,    0, 0, 0,
                                  0,    0, 0, 0, 0, 0, n, 0, 0,   0,    0, 0, 0,
                                  0,    0, 0, 0, 0, 0, 0, 0, 0,   INT32};

        CHECK_EQ_INT(is_read(array, sizeof array, n), n <= 2);
        CHECK_EQ_INT(is_read(member, sizeof member, n), n <= 2);
    }
}

/* Reads a file of the corpus, and unpacks its chunks. */
static enum hr_err read_all(const char *name)
{
    struct hr_window *window = hr__calloc(1, sizeof *window);
    struct hr_hdf5 hdf5 = {0};
    struct hr_error error = {0};
    char path[600];
    enum hr_err code = HR_ERR_MEMORY;

    snprintf(path, sizeof path, "%s/fuzz/corpus/hdf5/%s", check_source_dir(), name);
    if (window != NULL)
        code = hr__window_open(window, path, &error);
    if (code == HR_OK)
        code = hr__hdf5_read(window, &hdf5, &error);
    for (size_t i = 0; code == HR_OK && i < hdf5.count; i++) {
        const struct hr_hdf5_dataset *dataset = &hdf5.datasets[i];
        char *to = hr__malloc(HR_HDF5_ROOM(dataset));
        char *scratch = hr__malloc(HR_HDF5_ROOM(dataset));
        const void *data;

        if (to == NULL || scratch == NULL)
            code = HR_ERR_MEMORY;
        for (uint64_t k = 0; code == HR_OK && k < dataset->chunk_count; k++) {
            const struct hr_hdf5_chunk *chunk = &dataset->chunks[k];

            if (dataset->why != NULL || chunk->at == HR_HDF5_NONE)
                continue;
            code = hr__window_get(window, chunk->at, chunk->bytes, &data, &error);
            if (code == HR_OK)
                code = hr__hdf5_unpack(dataset, chunk, data, to, scratch, &error);
        }
        hr__free(to);
        hr__free(scratch);
    }
    hr__hdf5_finish(&hdf5);
    if (window != NULL)
        hr__window_finish(window);
    hr__free(window);
    return code;
}

TEST(each_failure_is_reported_and_frees_all)
{
    for (size_t i = 0; i < NAMES; i++)
        for (unsigned kind = HR_FAULT_ALLOC; kind <= HR_FAULT_READ; kind *= 2)
            for (uint64_t nth = 1;; nth++) {
                enum hr_err code;
                uint64_t calls;

                hr__fault_arm(kind, nth);
                code = read_all(names[i]);
                calls = hr__fault_calls();
                hr__fault_arm(0, 0);
                CHECK(code == HR_OK || code == HR_ERR_MEMORY || code == HR_ERR_IO);
                if (calls < nth) {
                    CHECK_OK(code);
                    break;
                }
                CHECK(kind == HR_FAULT_READ || code != HR_OK); /* reads are tried again */
            }
}
