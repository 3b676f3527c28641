/*
 * codec/jpeg_index.h - positions in a photo where decoding can start.
 *
 * An index covers some rows of MCUs, from the top: where each begins, and a point inside
 * it every `step` MCUs. With an index the cost of a window depends on its own size, not
 * on what lies above and beside it. A decode that is given an index (jpeg.h, image.h:
 * `index` of a request) uses the known rows and adds those it passes itself, so building
 * an index takes no extra pass. Points are stored as differences, 4 to 6 bytes each.
 *
 * An index belongs to the bytes it was made from. Used with other bytes it is safe, but
 * the pixels are wrong or the file is declined: key it by a hash of the contents. A row
 * is added only if decoding accepted everything up to it, so skipping by the index never
 * hides data that would have been declined.
 */
#ifndef HR_CODEC_JPEG_INDEX_H
#define HR_CODEC_JPEG_INDEX_H

#include "core/arena.h"

#include "headrace/base.h"

struct hr_jpeg;

struct hr_jpeg_row {
    uint32_t at;        /* byte offset into the entropy-coded data */
    uint32_t unstuffed; /* the same without stuffed zeros */
    uint32_t points_at; /* offset of its points in `points` */
    int16_t predictor[3];
    uint8_t bit; /* bit within that byte, 0 the highest */
};

/* {0} is an empty index. All memory is in the arena. */
struct hr_jpeg_index {
    int32_t mcus_x, mcus_y, components; /* of the photo */
    int32_t step;            /* MCUs between points; 0 while empty: not chosen yet */
    int32_t rows, rows_room; /* known, of mcus_y; allocated */
    struct hr_jpeg_row *row;
    uint8_t *points;
    size_t points_bytes, points_room;
    /* For the last successful decode with this index: the MCUs it read, and the number it
     * would have read without the index. */
    int32_t went, would;
};

/* Indexes a whole file in one pass. `step` 0: points at row starts only; negative: the
 * step that decoding would choose. HR_ERR_UNSUPPORTED: declined; files with restart
 * markers always are. HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__jpeg_index_make(struct hr_jpeg *jpeg, struct hr_arena *arena, const void *data,
                    size_t bytes, int32_t step, struct hr_jpeg_index *ret_index);

/* Serialise: the maximum size, and the bytes written to `to`; returns their number. */
size_t hr__jpeg_index_room(const struct hr_jpeg_index *index);
size_t hr__jpeg_index_pack(const struct hr_jpeg_index *index, uint8_t *to);

/* Deserialise; points stay in `data`, which must outlive the index. HR_ERR_FORMAT for
 * what is not an index; any bytes are safe. */
HR_CHECK enum hr_err hr__jpeg_index_unpack(struct hr_arena *arena, const uint8_t *data,
                                           size_t bytes, struct hr_jpeg_index *ret_index);

#endif
