/*
 * picture.h - fields of a batch as viewable pictures.
 */
#ifndef BIN_PICTURE_H
#define BIN_PICTURE_H

#include "headrace/engine.h"

struct picture {
    int width, height, channels; /* 1 or 3 */
    uint8_t *pixels;             /* interleaved; free() it */
};

/* Converts an element of a field's storage to a number. */
double picture_element(enum hr_dtype dtype, const void *element);

/* Iterates over the elements of record `record`, last dimension fastest. */
struct picture_walk {
    const struct hr_field_view *view;
    int64_t at[HR_MAX_DIMS], left;
};
void picture_walk_begin(struct picture_walk *walk, const struct hr_field_view *view,
                        int64_t record);
const void *picture_walk_next(struct picture_walk *walk); /* NULL: no more */

/* True if each record of the field looks like an image: three dimensions, the last or the
 * first of size 1 or 3. */
bool picture_is_image(const struct hr_field_view *view);

/* How values were mapped to levels. */
enum picture_scale {
    PICTURE_AS_IS, /* u8, or 0..1 times 255 */
    PICTURE_RANGE, /* this image's smallest value is black, its largest white */
};

/* Makes the picture of record `record`; false if out of memory. */
bool picture_make(const struct hr_field_view *view, int64_t record,
                  struct picture *ret_picture, enum picture_scale *ret_scale);

/* Makes a contact sheet of `count` pictures, each scaled down to fit a cell; false if out
 * of memory. */
bool picture_sheet(const struct picture *pictures, size_t count,
                   struct picture *ret_sheet);

#endif
