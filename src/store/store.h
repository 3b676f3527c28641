/*
 * store/store.h - what a source reads, by name: a range of bytes of an object.
 */
#ifndef HR_STORE_STORE_H
#define HR_STORE_STORE_H

#include "headrace/base.h"

#define HR_URI_MAX 4096 /* with the NUL */
#define HR_RANGE_REST UINT64_MAX

/* `bytes` from `offset` of the object; HR_RANGE_REST: all that follow. */
struct hr_range {
    uint64_t offset, bytes;
    char uri[HR_URI_MAX];
};

#endif
