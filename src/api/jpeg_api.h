/*
 * api/jpeg_api.h - shared by jpeg_api.c and jpeg_entries_api.c.
 */
#ifndef HR_API_JPEG_API_H
#define HR_API_JPEG_API_H

#include "codec/jpeg.h"
#include "codec/jpeg_priv.h"
#include "headrace/jpeg.h"

struct hr_jpeg_worker {
    struct hr_image_decoder *decoder;
    struct hr_jpeg *own; /* makes seek points */
    struct hr_arena arena;
};

/* Copies the index of `entries` to *ret_index; its rows and points remain owned by the
 * entries. Fails if they do not belong to these bytes. Without entries, sets an empty
 * index. */
HR_CHECK enum hr_err
hr__jpeg_entries_use(const struct hr_jpeg_entries *entries, const void *data,
                     size_t bytes, struct hr_jpeg_index *ret_index,
                     struct hr_error *reterr);

#endif
