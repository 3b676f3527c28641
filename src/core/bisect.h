/*
 * core/bisect.h - finding the run that a number lies in.
 */
#ifndef HR_CORE_BISECT_H
#define HR_CORE_BISECT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The last of `count` elements, in ascending order and `stride` bytes apart, whose
 * uint64_t is at most `at`; `first` points to that of the first element. 0 if there is
 * none. */
static inline size_t
hr__bisect(const uint64_t *first, size_t count, size_t stride, uint64_t at)
{
    size_t low = 0, high = count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        uint64_t begin;

        memcpy(&begin, (const char *)first + middle * stride, sizeof begin);
        if (begin <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The same of an array by a member of its structs. */
#define HR_BISECT(array, count, member, at)                                              \
    hr__bisect(&(array)->member, (count), sizeof *(array), (at))

#endif
