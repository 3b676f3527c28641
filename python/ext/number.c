/*
 * Single numbers of every dtype, as Python objects and back.
 *
 * Half and bfloat16 are converted here: C has no portable type for them, and a number
 * need not go through NumPy.
 */
#include "ext.h"

#include <math.h>
#include <string.h>

static double from_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023, value;

    if (exponent == 31)
        value = fraction != 0 ? (double)Py_NAN : (double)Py_HUGE_VAL;
    else if (exponent == 0)
        value = fraction / (1 << 24);
    else
        value = (1024 + fraction) * (exponent >= 25 ? (double)(1 << (exponent - 25))
                                                    : 1.0 / (1 << (25 - exponent)));
    return bits >> 15 ? -value : value;
}

static double from_brain(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

/* Rounds to nearest, ties to even; `value` is not a NaN. */
static uint16_t to_brain(double value)
{
    float narrow = (float)value;
    uint32_t bits;

    memcpy(&bits, &narrow, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t to_half(double value)
{
    uint64_t bits, fraction;
    int exponent, shift;
    uint16_t sign;

    memcpy(&bits, &value, sizeof bits);
    sign = (uint16_t)(bits >> 48 & 0x8000);
    exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    fraction = (bits & 0xfffffffffffffu) | (uint64_t)1 << 52;
    if (exponent > 15)
        return sign | 0x7c00;
    if (exponent < -25)
        return sign;
    /* 42 bits too many for a normal number, more for one below 2^-14. The carry out of
     * rounding moves on into the exponent, as it should. */
    shift = exponent >= -14 ? 42 : 42 - 14 - exponent;
    fraction =
        (fraction + ((uint64_t)1 << (shift - 1)) - 1 + (fraction >> shift & 1)) >> shift;
    if (exponent >= -14)
        fraction += (uint64_t)(exponent + 14) << 10;
    return sign | (uint16_t)fraction;
}

PyObject *ext_number(enum hr_dtype dtype, const void *at)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } v;

    if (dtype == HR_I64) { /* what int becomes; the rest are copies of any size */
        memcpy(&v.i64, at, sizeof v.i64);
        return PyLong_FromLongLong(v.i64);
    }
    memcpy(&v, at, hr_dtype_size(dtype));
    switch (dtype) {
    case HR_U8:
        return PyLong_FromLong(v.u8);
    case HR_I8:
        return PyLong_FromLong(v.i8);
    case HR_U16:
        return PyLong_FromLong(v.u16);
    case HR_I16:
        return PyLong_FromLong(v.i16);
    case HR_I32:
        return PyLong_FromLong(v.i32);
    case HR_F16:
        return PyFloat_FromDouble(from_half(v.u16));
    case HR_BF16:
        return PyFloat_FromDouble(from_brain(v.u16));
    case HR_F32:
        return PyFloat_FromDouble((double)v.f32);
    case HR_F64:
        return PyFloat_FromDouble(v.f64);
    case HR_BOOL:
        return PyBool_FromLong(v.u8);
    default:
        return PyErr_Format(PyExc_SystemError, "no number of dtype %d", (int)dtype);
    }
}

static const struct {
    int64_t min, max;
} limits[EXT_DTYPES] = {
    [HR_U8] = {0,         UINT8_MAX },
      [HR_I8] = {INT8_MIN,  INT8_MAX  },
    [HR_U16] = {0,         UINT16_MAX},
      [HR_I16] = {INT16_MIN, INT16_MAX },
    [HR_I32] = {INT32_MIN, INT32_MAX },
      [HR_I64] = {INT64_MIN, INT64_MAX },
};

bool ext_is_int(enum hr_dtype dtype)
{
    return limits[dtype].max != 0;
}

/* -1 with an exception set. Little-endian, like all platforms of the library. */
static int store_int(PyObject *value, enum hr_dtype dtype, void *at)
{
    PyObject *index = PyLong_CheckExact(value) ? Py_NewRef(value) : PyNumber_Index(value);
    int overflow = 0;
    int64_t number;

    if (index == NULL)
        return -1;
    number = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow != 0 || number < limits[dtype].min || number > limits[dtype].max) {
        PyErr_Format(PyExc_OverflowError, "%R does not fit into %s", value,
                     hr_dtype_name(dtype));
        return -1;
    }
    if (dtype == HR_I64)
        memcpy(at, &number, sizeof number);
    else
        memcpy(at, &number, hr_dtype_size(dtype));
    return 0;
}

/* A finite number that would become infinite is refused. */
static int store_float(PyObject *value, enum hr_dtype dtype, void *at)
{
    double number = PyFloat_AsDouble(value);
    bool nan = number != number, infinite = false;
    float narrow = (float)number;
    uint16_t bits;

    if (number == -1.0 && PyErr_Occurred() != NULL)
        return -1;
    switch (dtype) {
    case HR_F64:
        memcpy(at, &number, sizeof number);
        break;
    case HR_F32:
        infinite = isinf(narrow);
        memcpy(at, &narrow, sizeof narrow);
        break;
    case HR_F16:
        bits = nan ? 0x7e00 : to_half(number);
        infinite = (bits & 0x7fff) == 0x7c00;
        memcpy(at, &bits, sizeof bits);
        break;
    default:
        bits = nan ? 0x7fc0 : to_brain(number);
        infinite = (bits & 0x7fff) == 0x7f80;
        memcpy(at, &bits, sizeof bits);
    }
    if (infinite && isfinite(number)) {
        PyErr_Format(PyExc_OverflowError, "%R does not fit into %s", value,
                     hr_dtype_name(dtype));
        return -1;
    }
    return 0;
}

/* Numbers other than 0 and 1 are refused: they would all become True. */
static int store_bool(PyObject *value, void *at)
{
    int truth = PyObject_IsTrue(value), equal = 1;

    if (truth >= 0 && !PyBool_Check(value))
        equal = PyObject_RichCompareBool(value, truth ? Py_True : Py_False, Py_EQ);
    if (truth < 0 || equal < 0)
        return -1;
    if (equal == 0) {
        PyErr_Format(PyExc_TypeError, "%R is neither True nor False", value);
        return -1;
    }
    *(uint8_t *)at = truth > 0;
    return 0;
}

int ext_number_store(PyObject *value, enum hr_dtype dtype, void *at)
{
    if (dtype == HR_F16 || dtype == HR_BF16 || dtype == HR_F32 || dtype == HR_F64)
        return store_float(value, dtype, at);
    return dtype == HR_BOOL ? store_bool(value, at) : store_int(value, dtype, at);
}
