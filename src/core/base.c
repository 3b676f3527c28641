/*
 * core/base.c - the tables behind headrace/base.h: error codes, element types, version.
 */
#include "headrace/base.h"

#include <string.h>

const char *hr_err_name(enum hr_err code)
{
    switch (code) {
#define HR_ERR_NAME(name, value, text)                                                   \
    case name:                                                                           \
        return #name;
        HR_ERRORS(HR_ERR_NAME)
#undef HR_ERR_NAME
    }
    return "HR_ERR_UNKNOWN";
}

const char *hr_err_text(enum hr_err code)
{
    switch (code) {
#define HR_ERR_TEXT(name, value, text)                                                   \
    case name:                                                                           \
        return text;
        HR_ERRORS(HR_ERR_TEXT)
#undef HR_ERR_TEXT
    }
    return "unknown error";
}

struct dtype {
    const char *name;
    size_t bytes;
};

static const struct dtype dtypes[] = {
    [HR_DTYPE_NONE] = {"none",     0},
      [HR_U8] = {"uint8",    1},
      [HR_I16] = {"int16",    2},
    [HR_I32] = {"int32",    4},
      [HR_I64] = {"int64",    8},
      [HR_F16] = {"float16",  2},
    [HR_BF16] = {"bfloat16", 2},
      [HR_F32] = {"float32",  4},
      [HR_F64] = {"float64",  8},
    [HR_BOOL] = {"bool",     1},
      [HR_I8] = {"int8",     1},
      [HR_U16] = {"uint16",   2},
};

#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

size_t hr_dtype_size(enum hr_dtype dtype)
{
    return (unsigned)dtype < DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

const char *hr_dtype_name(enum hr_dtype dtype)
{
    return (unsigned)dtype < DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

enum hr_dtype hr_dtype_from_name(const char *name)
{
    for (unsigned i = 1; name != NULL && i < DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0)
            return (enum hr_dtype)i;
    }
    return HR_DTYPE_NONE;
}

const char *hr_version(void)
{
    return HR_VERSION;
}
