/*
 * codec/jpeg_index.h - places in a photo where decoding can begin.
 *
 * An index knows some rows of MCUs, from the top: for each where it begins, and every
 * `step` MCUs a point inside it. With one a window costs what it holds, not what lies
 * above and beside it. A decode that is given an index uses what it knows and adds the
 * rows that it passes itself (jpeg.h, image.h: `index` of a request), so an index costs
 * no pass of its own. Points are kept as differences, 4 to 6 bytes each.
 *
 * An index belongs to the bytes it was made from; with others it is safe, and the pixels
 * are wrong or declined, so keep it by the content's hash. Rows are known only when
 * decoding accepted all down to them, so what an index leaves out would not have been
 * declined.
 */
#ifndef HR_CODEC_JPEG_INDEX_H
#define HR_CODEC_JPEG_INDEX_H

#include "core/arena.h"

#include "headrace/base.h"

struct hr_jpeg;

struct hr_jpeg_row {
    uint32_t at;        /* byte of the entropy-coded data, from its begin in the file */
    uint32_t unstuffed; /* the same without the stuffed zeros */
    uint32_t points_at; /* its points, from the begin of `points` */
    int16_t predictor[3];
    uint8_t bit; /* of that byte, 0 the highest */
};

/* {0} is an empty one. All memory is the arena's. */
struct hr_jpeg_index {
    int32_t mcus_x, mcus_y, components; /* of the photo */
    int32_t step;            /* MCUs between points; 0 in an empty one: chosen */
    int32_t rows, rows_room; /* known of mcus_y */
    struct hr_jpeg_row *row;
    uint8_t *points;
    size_t points_bytes, points_room;
    /* Of the last decode with it that ended well: MCUs that it went through, and how many
     * it were without. */
    int32_t went, would;
};

/* Go through all of a file once. `step` 0: points at the begin of rows only; negative: as
 * decoding chooses it.
 * HR_ERR_UNSUPPORTED: declined, as also files with restart markers; HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__jpeg_index_make(struct hr_jpeg *jpeg, struct hr_arena *arena, const void *data,
                    size_t bytes, int32_t step, struct hr_jpeg_index *ret_index);

/* As bytes, to be kept: how many at most, and what they are. */
size_t hr__jpeg_index_room(const struct hr_jpeg_index *index);
size_t hr__jpeg_index_pack(const struct hr_jpeg_index *index, uint8_t *to);

/* Back again; points stay in `data`. HR_ERR_FORMAT for what is no index; any other bytes
 * are safe. */
HR_CHECK enum hr_err hr__jpeg_index_unpack(struct hr_arena *arena, const uint8_t *data,
                                           size_t bytes, struct hr_jpeg_index *ret_index);

#endif
