/*
 * ops/image_seek.h - what one decode of a photo keeps for the next.
 *
 * A photo is one file's bytes in one record, however many views are made of it. Its hash
 * is computed once, and the second view starts at seek points that the first one
 * recorded; between records and runs the points are in a store (store/seek.h). After a
 * fork the decoded samples are also kept until the record ends: the second view decodes
 * only what the first has not.
 */
#ifndef HR_OPS_IMAGE_SEEK_H
#define HR_OPS_IMAGE_SEEK_H

#include "codec/image_source.h"
#include "codec/jpeg_index.h"
#include "codec/jpeg_seen.h"
#include "store/seek.h"

/* In the record's arena; {.seek = store} initially. */
struct hr_image_photo {
    struct hr_seek *seek;      /* NULL: no points are kept */
    struct hr_jpeg_seen *seen; /* NULL: there is one view */
    bool known;                /* key and index are valid */
    bool found;                /* the store had an index */
    struct hr_hash128 key;
    struct hr_jpeg_index index;
    int32_t rows_kept; /* in the store's index */
};

struct hr_image;

/* Prepares for several views. Allocation failure is harmless here. */
void hr__image_seek_share(const struct hr_image *image, struct hr_arena *arena);

/* Adds what is known of the photo to the view, if it can help. */
void hr__image_seek_begin(const struct hr_image *image, struct hr_arena *arena,
                          struct hr_image_view *view);

/* Stores what a successful decode added to the index. */
void hr__image_seek_end(const struct hr_image *image, struct hr_arena *arena,
                        const struct hr_image_view *view);

#endif
