/*
 * ops/fill.h - the value of padding in a tensor of any dtype.
 */
#ifndef HR_OPS_FILL_H
#define HR_OPS_FILL_H

#include "headrace/base.h"

/* Sets `count` elements to `value`, converted to `dtype`. */
void hr__fill(void *data, enum hr_dtype dtype, int64_t count, double value);

/* Whether an element of the dtype can be `value`; floats round, but not to infinity. */
bool hr__fill_fits(enum hr_dtype dtype, double value);

/* Sets one element to the decimal number in the text, of a bool also "true" or "false".
 * False if it has no such value; floats round, but not to infinity. */
bool hr__fill_parse(const char *text, enum hr_dtype dtype, void *to);

#endif
