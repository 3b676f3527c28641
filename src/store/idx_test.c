/*
 * store/idx_test.c - IDX files that are read, and files that are refused.
 */
#include "core/file.h"
#include "store/idx.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

static const char *put(const char *name, const void *data, size_t bytes)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(path, data, bytes, NULL));
    return path;
}

static const char *put_gzip(const char *name, const void *data, size_t bytes)
{
    static char path[512];
    gzFile file;

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    file = gzopen(path, "wb");
    CHECK(file != NULL);
    CHECK_EQ_INT(gzwrite(file, data, (unsigned)bytes), bytes);
    CHECK_EQ_INT(gzclose(file), Z_OK);
    return path;
}

/* 2 items of 1 x 3 int16: 1, -2, 258 and 0, 32767, -32768. */
static const unsigned char small[] = {0, 0, 0x0b, 3, 0,    0,    0,    2, 0,    0,
                                      0, 1, 0,    0, 0,    3,    0,    1, 0xff, 0xfe,
                                      1, 2, 0,    0, 0x7f, 0xff, 0x80, 0};
static const int16_t numbers[2][3] = {
    {1, -2,    258   },
    {0, 32767, -32768}
};

static void is_small(const char *path)
{
    struct hr_idx_header header;
    struct hr_idx *idx;
    int16_t item[3];

    CHECK_OK(hr__idx_peek(path, &header, NULL));
    CHECK_EQ_INT(header.dtype, HR_I16);
    CHECK_EQ_INT(header.items, 2);
    CHECK_EQ_INT(header.ndim, 2);
    CHECK_EQ_INT(header.dims[0], 1);
    CHECK_EQ_INT(header.dims[1], 3);
    CHECK_OK(hr__idx_open(path, &idx, NULL));
    for (int i = 0; i < 2; i++) {
        hr__idx_item(idx, i, item);
        CHECK_BYTES(item, numbers[i], sizeof item);
    }
    CHECK_BYTES(hr__idx_data(idx), small + 16, 12);
    hr__idx_close(idx);
}

TEST(items_are_read_plain_and_gzipped)
{
    is_small(put("small.idx", small, sizeof small));
    is_small(put_gzip("small.idx.gz", small, sizeof small));
}

TEST(a_file_without_items_is_a_file)
{
    static const unsigned char none[] = {0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 5};
    struct hr_idx *idx;

    CHECK_OK(hr__idx_open(put("none.idx", none, sizeof none), &idx, NULL));
    CHECK_EQ_INT(hr__idx_header(idx)->items, 0);
    hr__idx_close(idx);
    CHECK_OK(hr__idx_open(put_gzip("none.gz", none, sizeof none), &idx, NULL));
    hr__idx_close(idx);
}

static void refuse(const char *path, enum hr_err code, const char *word)
{
    struct hr_error error = {0};
    struct hr_idx *idx = NULL;

    CHECK_ERR(code, hr__idx_open(path, &idx, &error));
    CHECK_HAS(error.message, word);
    CHECK(idx == NULL);
}

TEST(contradictory_files_are_refused)
{
    unsigned char file[sizeof small + 1];

    memcpy(file, small, sizeof small);
    refuse("/nowhere/at/all", HR_ERR_NOT_FOUND, "/nowhere");
    refuse("/tmp", HR_ERR_TYPE, "regular");
    refuse(put("e", "", 0), HR_ERR_FORMAT, "two zero bytes");
    refuse(put("e", "PNG.", 4), HR_ERR_FORMAT, "two zero bytes");
    refuse(put("e", file, 9), HR_ERR_FORMAT, "inside its header");
    refuse(put("e", file, sizeof small - 1), HR_ERR_FORMAT, "11 bytes");
    file[sizeof small] = 7;
    refuse(put("e", file, sizeof small + 1), HR_ERR_FORMAT, "13 bytes");
    file[2] = 0x0a;
    refuse(put("e", file, sizeof small), HR_ERR_FORMAT, "0x0a");
    file[2] = 0x0b;
    file[3] = 0;
    refuse(put("e", file, sizeof small), HR_ERR_FORMAT, "0 dimensions");
    file[3] = 9;
    refuse(put("e", file, sizeof small), HR_ERR_FORMAT, "9 dimensions");
    file[3] = 3;
    memset(file + 4, 0xff, 12);
    refuse(put("e", file, sizeof small), HR_ERR_FORMAT, "overflow");
    refuse(put_gzip("e.gz", file, sizeof small), HR_ERR_FORMAT, "overflow");
}

TEST(a_compressed_file_must_hold_what_its_header_implies)
{
    unsigned char file[sizeof small + 1];
    char packed[256];
    size_t bytes;
    FILE *in;

    memcpy(file, small, sizeof small);
    refuse(put_gzip("less.gz", file, sizeof small - 1), HR_ERR_FORMAT, "damaged");
    file[sizeof small] = 1;
    refuse(put_gzip("more.gz", file, sizeof file), HR_ERR_FORMAT, "damaged");
    file[4] = 0x10; /* 268 million items in 30 bytes */
    refuse(put_gzip("bomb.gz", file, sizeof small), HR_ERR_FORMAT, "can hold");
    in = fopen(put_gzip("cut.gz", small, sizeof small), "rb");
    CHECK(in != NULL);
    bytes = fread(packed, 1, sizeof packed, in);
    fclose(in);
    for (size_t cut = 2; cut + 8 < bytes; cut++)
        refuse(put("cut", packed, cut), HR_ERR_FORMAT, "cut");
}
