/*
 * codec/npy_test.c - headers as NumPy writes them, and damaged ones.
 */
#include "codec/npy.h"
#include "core/rng.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static struct hr_error error;

/* A header of a version, with `more` bytes of data after it. */
static size_t make(char *file, int version, const char *dict, size_t more)
{
    size_t length = strlen(dict), fixed = version == 1 ? 10 : 12;

    memcpy(file, "\x93NUMPY\0\0\0\0\0\0", 12);
    file[6] = (char)version;
    file[8] = (char)length;
    file[9] = (char)(length >> 8);
    memcpy(file + fixed, dict, length);
    memset(file + fixed + length, 0, more);
    return fixed + length + more;
}

static enum hr_err
read_npy(int version, const char *dict, size_t more, struct hr_npy *ret_npy)
{
    char file[2000];
    size_t bytes = make(file, version, dict, more);

    memset(&error, 0, sizeof error);
    return hr__npy_read(file, bytes, bytes, "x.npy", ret_npy, &error);
}

TEST(headers_of_all_versions_and_shapes)
{
    static const char matrix[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }     \n";
    struct hr_npy npy;

    for (int version = 1; version <= 3; version++) {
        CHECK_OK(read_npy(version, matrix, 48, &npy));
        CHECK(npy.dtype == HR_F32 && !npy.fortran && npy.ndim == 2);
        CHECK(npy.dims[0] == 3 && npy.dims[1] == 4 && npy.bytes == 48);
        CHECK_EQ_INT(npy.start, sizeof matrix - 1 + (version == 1 ? 10 : 12));
    }
    CHECK_OK(
        read_npy(1, "{'descr': '|b1', 'fortran_order': True, 'shape': (5,)}", 9, &npy));
    CHECK(npy.dtype == HR_BOOL && npy.fortran && npy.ndim == 1 && npy.bytes == 5);
    CHECK_OK(read_npy(1, "{\"shape\": (), \"descr\": \"<i8\", \"fortran_order\":False}",
                      8, &npy));
    CHECK(npy.ndim == 0 && npy.bytes == 8);
    CHECK_OK(
        read_npy(1, "{'descr':'<f2','fortran_order':False,'shape':(9,0,7)}", 0, &npy));
    CHECK(npy.ndim == 3 && npy.bytes == 0);
}

/* The elements 1 and -2, or 254, of every dtype and byte order. */
TEST(elements_of_all_dtypes_are_converted)
{
    static const char *const names[] = {"b1", "u1", "i1", "u2", "i2", "u4",
                                        "i4", "u8", "i8", "f2", "f4", "f8"};

    for (size_t i = 0; i < 2 * sizeof names / sizeof names[0]; i++) {
        const char *name = names[i / 2];
        size_t bytes = (size_t)(name[1] - '0');
        uint8_t file[16] = {0}, made[16], want[16] = {0};
        struct hr_npy npy;
        char dict[100];

        snprintf(dict, sizeof dict,
                 "{'descr': '%c%s', 'fortran_order': False, 'shape': (2,)}", "<>"[i % 2],
                 name);
        CHECK_OK(read_npy(1, dict, 2 * bytes, &npy));
        CHECK_EQ_INT(npy.element_bytes, bytes);
        CHECK_EQ_INT(hr_dtype_size(npy.dtype), strcmp(name, "u4") == 0 ? 8 : bytes);
        for (size_t k = 0; k < 2 * bytes; k++) {
            size_t at = k % bytes, to = k / bytes * hr_dtype_size(npy.dtype);

            want[to + at] = (uint8_t)(k + 1);
            file[k - at + (i % 2 == 1 ? bytes - 1 - at : at)] = (uint8_t)(k + 1);
        }
        CHECK(hr__npy_convert(&npy, file, made, 2));
        CHECK_BYTES(made, want, 2 * hr_dtype_size(npy.dtype));
        CHECK_EQ_INT(hr__npy_is_plain(&npy), (i % 2 == 0 || bytes == 1) &&
                                                 strcmp(name, "u4") != 0 &&
                                                 strcmp(name, "u8") != 0);
    }
}

TEST(numbers_that_are_too_large_are_refused)
{
    static const char dict[] = "{'descr': '>u8', 'fortran_order': False, 'shape': (1,)}";
    uint8_t number[8] = {127, 255, 255, 255, 255, 255, 255, 255};
    struct hr_npy npy;
    int64_t made;

    CHECK_OK(read_npy(1, dict, 8, &npy));
    CHECK(hr__npy_convert(&npy, number, &made, 1) && made == INT64_MAX);
    number[0] = 128;
    CHECK(!hr__npy_convert(&npy, number, &made, 1));
}

#define DICT(descr, order, shape)                                                        \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "}"

TEST(damaged_headers_are_refused)
{
    static const struct {
        const char *dict;
        enum hr_err code;
        const char *words;
    } cases[] = {
        {DICT("'>c8'",                 "False",        "(1,)"),                                      HR_ERR_UNSUPPORTED, "integers or floats"},
        {DICT("'f4'",        "False",                      "(1,)"),                                                        HR_ERR_UNSUPPORTED, "f4"},
        {DICT("'|f4'",                     "False","(1,)"),HR_ERR_UNSUPPORTED, "f4"},
        {DICT("''",                 "False",    "(1,)"),                                              HR_ERR_UNSUPPORTED, "not supported"},
        {DICT("'<c8'",                        "False",                                      "(1,)"),                                                                          HR_ERR_UNSUPPORTED, "<c8"},
        {DICT("[('a', '<f4')]",                     "False",              "(1,)"),HR_ERR_UNSUPPORTED, "several fields"},
        {DICT("4",                 "False", "(1,)"), HR_ERR_FORMAT, "short string"},
        {DICT("'<f4'",                       "0",                                     "(1,)"),                                                             HR_ERR_FORMAT, "True or False"},
        {DICT("'<f4'",                     "False",    "(1)"),                                   HR_ERR_FORMAT, "tuple"},
        {DICT("'<f4'",                     "False",            "(1 2)"),                                                 HR_ERR_FORMAT, "tuple"},
        {DICT("'<f4'",              "False",                            "(-1,)"),                                                             HR_ERR_FORMAT, "sizes"},
        {DICT("'<f4'",                     "False","(1,"),HR_ERR_FORMAT, "sizes"},
        {DICT("'<f4'",                 "False",    "[1]"),                                       HR_ERR_FORMAT, "tuple"},
        {DICT("'<f4'",                     "False",                                   "(1,1,1,1,1,1,1,1,1)"),                                                                    HR_ERR_LIMIT, "8 dimensions"},
        {DICT("'<f4'",                    "False",          "(99,)"),HR_ERR_FORMAT, "ends before its data"},
        {DICT("'<f4'",                 "False",           "(4611686018427387904, 4)"),                    HR_ERR_FORMAT, "memory"},
        {DICT("'<f4'",                     "False",                                   "(99999999999999999999,)"),                                                                    HR_ERR_FORMAT, "sizes"},
        {DICT("'<f4'",                      "False",                                      "(1,)") " x",                                                                                                                         HR_ERR_FORMAT, "more after"},
        {"{'descr': '<f4', 'shape': (1,)}",                 HR_ERR_FORMAT,        "keys"                                          },
        {"{'descr': '<f4', 'descr': '<f4'}",                     HR_ERR_FORMAT,                                   "keys"                                                                   },
        {"{'name': '<f4'}",      HR_ERR_FORMAT,"keys"},
        {"{'descr': '<f4' 'shape'",                 HR_ERR_FORMAT,     "comma"                               },
        {"{",      HR_ERR_FORMAT,                    "key"                                                    },
        {"", HR_ERR_FORMAT,"dict"        },
    };
    struct hr_npy npy;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_ERR(cases[i].code, read_npy(1, cases[i].dict, 8, &npy));
        CHECK_HAS(error.message, cases[i].words);
        CHECK_HAS(error.message, "x.npy");
    }
}

/* Cut anywhere, or with any byte changed: refused, or within the file. */
TEST(cut_and_changed_headers)
{
    char file[2000], other[2000];
    size_t bytes = make(file, 2, DICT("'<f8'", "False", "(2, 3)"), 48);
    struct hr_npy npy;
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (size_t cut = 0; cut < bytes; cut++)
        CHECK(hr__npy_read(file, cut, cut, "x.npy", &npy, &error) != HR_OK);
    for (int i = 0; i < 5000; i++) {
        memcpy(other, file, bytes);
        other[hr__rng_below(&rng, bytes)] = (char)hr__rng_below(&rng, 256);
        memset(&error, 0, sizeof error);
        if (hr__npy_read(other, bytes, bytes, "x.npy", &npy, &error) == HR_OK)
            CHECK(npy.start + npy.bytes <= bytes);
        else
            CHECK(error.message[0] != '\0');
    }
    file[6] = 4;
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__npy_read(file, bytes, bytes, "x", &npy, &error));
    file[6] = 3;
    file[11] = 1;
    CHECK_ERR(HR_ERR_LIMIT, hr__npy_read(file, bytes, bytes, "x", &npy, &error));
}
