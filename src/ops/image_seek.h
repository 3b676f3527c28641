/*
 * ops/image_seek.h - what one decode of a photo leaves for the next.
 *
 * A photo is one file's bytes in one record, whatever views are made of it. Its hash is
 * taken once, and the second view begins where the first one noted points; between
 * records and runs the points live in a store (store/seek.h). From the first fork on the
 * decoded samples are kept as well, until the record ends: the second view decodes what
 * the first has not.
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
    bool found;                /* the store had some */
    struct hr_hash128 key;
    struct hr_jpeg_index index;
    int32_t rows_kept; /* that the store has */
};

struct hr_image;

/* Several views will be made. Memory that is lacking is none that must be there. */
void hr__image_seek_share(const struct hr_image *image, struct hr_arena *arena);

/* Give the view what is known of the photo, where it can help. */
void hr__image_seek_begin(const struct hr_image *image, struct hr_arena *arena,
                          struct hr_image_view *view);

/* The decode has ended well: keep what it added to the index. */
void hr__image_seek_end(const struct hr_image *image, struct hr_arena *arena,
                        const struct hr_image_view *view);

#endif
