/*
 * codec/jpeg_index.c - entry points into the entropy-coded data: made in one pass that
 * skips every block, used to begin at the window.
 *
 * Offsets are kept both in the file, where copying begins, and without the stuffed
 * zeros, so that all points of a window are found in one copy. Whatever an index says,
 * reads stay in the data: points are checked against its ends, and decoding is as safe
 * from any bit as from the first.
 */
#include "codec/jpeg_state.h"
#include "core/error.h"

#include <string.h>

/* ---- use ---- */

void hr__jpeg_index_use(struct hr_jpeg *jpeg, const struct hr_jpeg_index *index)
{
    jpeg->index_next = index;
}

bool hr__jpeg_is_usable(const struct hr_jpeg *jpeg, const struct hr_jpeg_index *index)
{
    return index != NULL && jpeg->header.restart == 0 && index->mcus_x == jpeg->mcus_x &&
           index->mcus_y == jpeg->mcus_y && index->step > 0 &&
           index->points_x == hr__divide_up(index->mcus_x, index->step);
}

static const struct hr_jpeg_point *
point_of(const struct hr_jpeg_index *index, int32_t mx, int32_t my)
{
    return &index->points[(ptrdiff_t)my * index->points_x + mx / index->step];
}

/* Copy from the window's first point to the row below it. A stuffed byte may be cut in
 * half there, but not one that is needed. */
bool hr__jpeg_open_index(struct hr_jpeg *jpeg)
{
    const struct hr_jpeg_point *first = point_of(jpeg->index, jpeg->mx0, jpeg->my0);
    const uint8_t *from = jpeg->header.scan, *end = jpeg->header.data_end;
    size_t bytes = (size_t)(end - from);
    uint8_t *unstuffed_end;

    if (jpeg->my1 < jpeg->mcus_y) {
        size_t last = (size_t)point_of(jpeg->index, 0, jpeg->my1)->at + 2;

        end = from + (last < bytes ? last : bytes);
    }
    if (first->at >= (size_t)(end - from))
        return false;
    (void)jpeg->kernels->unstuff(from + first->at, end, jpeg->unstuffed, &unstuffed_end);
    memset(unstuffed_end, 0, HR_JPEG_PAD);
    jpeg->scan.end = unstuffed_end;
    jpeg->base = first->unstuffed;
    jpeg->segment_left = INT32_MAX;
    return true;
}

bool hr__jpeg_seek(struct hr_jpeg *jpeg, int32_t my)
{
    const struct hr_jpeg_point *point = point_of(jpeg->index, jpeg->mx0, my);
    struct hr_jpeg_scan *scan = &jpeg->scan;
    uint32_t at = point->unstuffed - jpeg->base;
    int i;

    if (point->unstuffed < jpeg->base || point->bit > 7 ||
        at >= (size_t)(scan->end - jpeg->unstuffed))
        return false;
    scan->at = jpeg->unstuffed + at + 1;
    scan->bits = (uint64_t)scan->at[-1] << (56 + point->bit);
    scan->left = 8U - point->bit;
    for (i = 0; i < 3; i++)
        scan->predictor[i] = point->predictor[i];
    return hr__jpeg_run(jpeg, jpeg->mx0 % jpeg->index->step, jpeg->kernels->skip);
}

/* ---- making ---- */

static void set_point(const struct hr_jpeg *jpeg, struct hr_jpeg_point *point)
{
    const struct hr_jpeg_scan *scan = &jpeg->scan;
    ptrdiff_t bits = 8 * (scan->at - jpeg->unstuffed) - (ptrdiff_t)scan->left;
    int i;

    *point = (struct hr_jpeg_point){.unstuffed = (uint32_t)(bits / 8),
                                    .bit = (uint8_t)(bits % 8)};
    for (i = 0; i < 3; i++)
        point->predictor[i] = (int16_t)scan->predictor[i];
}

static bool walk(struct hr_jpeg *jpeg, struct hr_jpeg_point *points, int32_t step)
{
    int32_t mx, my;

    for (my = 0; my < jpeg->mcus_y; my++)
        for (mx = 0; mx < jpeg->mcus_x; mx += step) {
            int32_t left = jpeg->mcus_x - mx;

            set_point(jpeg, points++);
            if (!hr__jpeg_run(jpeg, left < step ? left : step, jpeg->kernels->skip))
                return false;
        }
    return hr__jpeg_is_used_up(&jpeg->scan);
}

/* Count the stuffed zeros back in. */
static void find_in_file(const uint8_t *scan, struct hr_jpeg_point *points, size_t count)
{
    size_t at = 0, unstuffed = 0, i;

    for (i = 0; i < count; i++) {
        while (unstuffed < points[i].unstuffed) {
            size_t left = points[i].unstuffed - unstuffed;
            const uint8_t *ff = memchr(scan + at, 0xFF, left);
            size_t plain = ff != NULL ? (size_t)(ff - scan) - at : left;

            at += plain + (ff != NULL ? 2 : 0);
            unstuffed += plain + (ff != NULL ? 1 : 0);
        }
        points[i].at = (uint32_t)at;
    }
}

static void need_skips(struct hr_jpeg *jpeg)
{
    const struct hr_jpeg_header *header = &jpeg->header;
    int i;

    for (i = 0; i < header->components; i++)
        if (!jpeg->ac[header->component[i].ac].skips)
            jpeg->kernels->make_skip(&jpeg->ac[header->component[i].ac]);
}

enum hr_err
hr__jpeg_index_make(struct hr_jpeg *jpeg, struct hr_arena *arena, const void *data,
                    size_t bytes, int32_t step, struct hr_jpeg_index *ret_index)
{
    struct hr_image_info info;
    struct hr_image_request request = {.width = 1, .height = 1};
    struct hr_image_job job = {arena, data, bytes, &info, &request, NULL};
    struct hr_jpeg_point *points;
    int32_t points_x;
    size_t count;

    if (bytes > UINT32_MAX || hr__jpeg_probe(data, bytes, &info, NULL) != HR_OK)
        return HR_ERR_UNSUPPORTED;
    jpeg->index_next = NULL;
    HR_TRY(hr__jpeg_prepare(jpeg, &job, true));
    if (jpeg->header.restart != 0)
        return HR_ERR_UNSUPPORTED;
    need_skips(jpeg);
    step = step > 0 && step < jpeg->mcus_x ? step : jpeg->mcus_x;
    points_x = hr__divide_up(jpeg->mcus_x, step);
    count = (size_t)points_x * (size_t)jpeg->mcus_y;
    points = hr__arena_alloc(arena, count * sizeof *points);
    if (points == NULL)
        return HR_ERR_MEMORY;
    if (!walk(jpeg, points, step))
        return HR_ERR_UNSUPPORTED;
    find_in_file(jpeg->header.scan, points, count);
    *ret_index =
        (struct hr_jpeg_index){jpeg->mcus_x, jpeg->mcus_y, step, points_x, points};
    return HR_OK;
}
