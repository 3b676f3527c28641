/*
 * image_size.c - parameters shared by the image ops.
 */
#include "ops/image_size.h"

/* In order of enum hr_filter. */
const char *const hr__interpolations[] = {"nearest", "bilinear", "bicubic",
                                          "box",     "lanczos",  NULL};

int32_t hr__size_width(const struct hr_ints *size)
{
    return (int32_t)size->values[size->count - 1];
}

int32_t hr__size_height(const struct hr_ints *size)
{
    return (int32_t)size->values[0];
}
