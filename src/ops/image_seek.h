/*
 * ops/image_seek.h - what one decode of a photo leaves for the next.
 *
 * A photo is one file's bytes in one record, whatever views are made of it. It is hashed
 * once, and the second view starts at the entry points that the first one noted; between
 * records and runs the points are kept in a store (store/seek.h). After a fork the
 * decoded samples are kept too, until the record ends: the second view decodes only what
 * the first did not.
 */
#ifndef HR_OPS_IMAGE_SEEK_H
#define HR_OPS_IMAGE_SEEK_H

#include "codec/image_source.h"
#include "codec/jpeg_index.h"
#include "codec/jpeg_seen.h"
#include "store/seek.h"

/* In the record's arena; {.seek = store} at first. */
struct hr_image_photo {
    struct hr_seek *seek;      /* or NULL: no points are kept */
    struct hr_jpeg_seen *seen; /* or NULL: there is one view */
    bool known;                /* key and index are those of the bytes */
    bool found;                /* the store had an entry */
    struct hr_hash128 key;
    struct hr_jpeg_index index;
    int32_t rows_kept; /* rows in the store */
};

struct hr_image;

/* Several views will be made. Allocation failure is harmless here. */
void hr__image_seek_share(const struct hr_image *image, struct hr_arena *arena);

/* Gives the view what is known about the photo, where that can help. */
void hr__image_seek_begin(const struct hr_image *image, struct hr_arena *arena,
                          struct hr_image_view *view);

/* After a successful decode: keeps what it added to the index. */
void hr__image_seek_end(const struct hr_image *image, struct hr_arena *arena,
                        const struct hr_image_view *view);

#endif
