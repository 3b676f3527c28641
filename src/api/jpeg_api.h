/*
 * api/jpeg_api.h - what jpeg_api.c and jpeg_entries_api.c share.
 */
#ifndef HR_API_JPEG_API_H
#define HR_API_JPEG_API_H

#include "codec/jpeg.h"
#include "codec/jpeg_priv.h"
#include "headrace/jpeg.h"

struct hr_jpeg_worker {
    struct hr_image_decoder *decoder;
    struct hr_jpeg *own; /* makes entry points */
    struct hr_arena arena;
};

/* HR_OK and a copy of the index, whose rows and points stay the entries', if they are of
 * these bytes; an empty index without entries. */
HR_CHECK enum hr_err
hr__jpeg_entries_use(const struct hr_jpeg_entries *entries, const void *data,
                     size_t bytes, struct hr_jpeg_index *ret_index,
                     struct hr_error *reterr);

#endif
