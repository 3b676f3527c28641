/*
 * ops/image_seek.h - where decoding can begin in a photo, from one decode to the next.
 *
 * A photo is one file's bytes in one record, whatever views are made of it: its hash is
 * taken once, and the second view begins where the first one noted points. Between
 * records and runs the points live in a store (store/seek.h).
 */
#ifndef HR_OPS_IMAGE_SEEK_H
#define HR_OPS_IMAGE_SEEK_H

#include "codec/image_source.h"
#include "codec/jpeg_index.h"
#include "store/seek.h"

/* In the record's arena; {.seek = store} at first. */
struct hr_image_photo {
    struct hr_seek *seek;
    bool known; /* key and index are those of the bytes */
    struct hr_hash128 key;
    struct hr_jpeg_index index;
    int32_t rows_kept; /* that the store has */
};

struct hr_image;

/* Give the view the photo's index, if one can help. */
void hr__image_seek_begin(const struct hr_image *image, struct hr_arena *arena,
                          struct hr_image_view *view);

/* The decode has ended well: keep what it added to the index. */
void hr__image_seek_end(const struct hr_image *image, struct hr_arena *arena,
                        const struct hr_image_view *view);

#endif
