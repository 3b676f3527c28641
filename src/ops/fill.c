/*
 * ops/fill.c - the value of padding in a tensor of any dtype.
 */
#include "ops/fill.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/str.h"
#include "kernel/pixels.h"

void hr__fill(void *data, enum hr_dtype dtype, int64_t count, double value)
{
    if (value == 0 && !signbit(value)) { /* zeros of all types */
        memset(data, 0, (size_t)count * hr_dtype_size(dtype));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        switch (dtype) {
        case HR_U8:
        case HR_BOOL:
            ((uint8_t *)data)[i] = (uint8_t)value;
            break;
        case HR_I8:
            ((int8_t *)data)[i] = (int8_t)value;
            break;
        case HR_I16:
            ((int16_t *)data)[i] = (int16_t)value;
            break;
        case HR_U16:
            ((uint16_t *)data)[i] = (uint16_t)value;
            break;
        case HR_I32:
            ((int32_t *)data)[i] = (int32_t)value;
            break;
        case HR_I64:
            ((int64_t *)data)[i] = (int64_t)value;
            break;
        case HR_F32:
            ((float *)data)[i] = (float)value;
            break;
        case HR_F64:
            ((double *)data)[i] = value;
            break;
        case HR_F16:
            hr__f32_to_f16(&(float){(float)value}, (uint16_t *)data + i, 1);
            break;
        case HR_BF16:
            hr__f32_to_bf16(&(float){(float)value}, (uint16_t *)data + i, 1);
            break;
        case HR_DTYPE_NONE:
            break;
        }
    }
}

/* What a float of the dtype becomes of the value. */
static double rounded(enum hr_dtype dtype, double value)
{
    float number = (float)value;
    uint16_t half;

    if (dtype == HR_F64)
        return value;
    if (dtype == HR_F16) {
        hr__f32_to_f16(&number, &half, 1);
        hr__f16_to_f32(&half, &number, 1);
    } else if (dtype == HR_BF16) {
        hr__f32_to_bf16(&number, &half, 1);
        hr__bf16_to_f32(&half, &number, 1);
    }
    return (double)number;
}

bool hr__fill_fits(enum hr_dtype dtype, double value)
{
    int bits = (int)(8 * hr_dtype_size(dtype));

    switch (dtype) {
    case HR_BOOL:
        return value == 0 || value == 1;
    case HR_U8:
    case HR_U16:
        return value == floor(value) && value >= 0 && value < ldexp(1, bits);
    case HR_I8:
    case HR_I16:
    case HR_I32:
    case HR_I64:
        return value == floor(value) && value >= -ldexp(1, bits - 1) &&
               value < ldexp(1, bits - 1);
    case HR_F16:
    case HR_BF16:
    case HR_F32:
    case HR_F64:
        return !isfinite(value) || isfinite(rounded(dtype, value));
    case HR_DTYPE_NONE:
        break;
    }
    return false;
}

bool hr__fill_parse(const char *text, enum hr_dtype dtype, void *to)
{
    long long number;
    double real;
    char *end;

    if (dtype == HR_F16 || dtype == HR_BF16 || dtype == HR_F32 || dtype == HR_F64) {
        if (!hr__double_parse(text, strlen(text), &real) || isinf(real) ||
            !hr__fill_fits(dtype, real))
            return false;
        hr__fill(to, dtype, 1, real);
        return true;
    }
    if (dtype == HR_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        *(uint8_t *)to = text[0] == 't';
        return true;
    }
    errno = 0;
    number = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return false;
    if (dtype != HR_I64 && !hr__fill_fits(dtype, (double)number))
        return false;
    memcpy(to, &number, hr_dtype_size(dtype)); /* little-endian */
    return true;
}
