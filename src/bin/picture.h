/*
 * picture.h - fields of a batch as pictures that a person can look at.
 */
#ifndef BIN_PICTURE_H
#define BIN_PICTURE_H

#include "headrace/engine.h"

struct picture {
    int width, height, channels; /* 1 or 3 */
    uint8_t *pixels;             /* interleaved; free() it */
};

/* Element `at` of a field's storage in its dtype as a number. */
double picture_element(enum hr_dtype dtype, const void *element);

/* The elements of record `record`, one by one, the last dimension fastest. */
struct picture_walk {
    const struct hr_field_view *view;
    int64_t at[HR_MAX_DIMS], left;
};
void picture_walk_begin(struct picture_walk *walk, const struct hr_field_view *view,
                        int64_t record);
const void *picture_walk_next(struct picture_walk *walk); /* NULL: no more */

/* True when each record of the field looks like an image: three dimensions of which the
 * last or the first is 1 or 3. */
bool picture_is_image(const struct hr_field_view *view);

/* How values became levels, for the words beside the picture. */
enum picture_scale {
    PICTURE_AS_IS, /* u8, or 0..1 times 255 */
    PICTURE_RANGE, /* this image's least value black, its greatest white */
};

/* The image of record `record`. false when out of memory. */
bool picture_make(const struct hr_field_view *view, int64_t record,
                  struct picture *ret_picture, enum picture_scale *ret_scale);

/* A sheet of `count` pictures, each averaged down to fit a cell. false: out of memory. */
bool picture_sheet(const struct picture *pictures, size_t count,
                   struct picture *ret_sheet);

#endif
