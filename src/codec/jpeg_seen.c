/*
 * codec/jpeg_seen.c - finds MCUs that earlier decodes produced and copies them.
 *
 * A row of MCUs is a sequence of ranges, each found in one earlier part or in none.
 * Missing ranges are decoded first, because a transform writes whole groups and may
 * overrun its range; then the others are copied, which takes about 10 us for a window of
 * 300x300. A window that lies within one part is returned in place.
 */
#include "codec/jpeg_state.h"

#include <assert.h>
#include <string.h>

static bool is_usable(const struct hr_jpeg *jpeg, const struct hr_jpeg_seen_part *part)
{
    return part->scale_log2 == jpeg->scale_log2 && part->low == hr__jpeg_is_low(jpeg) &&
           part->planes >= jpeg->planes;
}

/* The part that covers the most of row `my` from column `at`, or NULL. *ret_to is where
 * its coverage ends, clipped to the window. */
static const struct hr_jpeg_seen_part *
find(const struct hr_jpeg *jpeg, int32_t my, int32_t at, int32_t *ret_to)
{
    const struct hr_jpeg_seen_part *found = NULL;
    int32_t to = at, next = jpeg->mx1, i;

    for (i = 0; i < jpeg->seen->count; i++) {
        const struct hr_jpeg_seen_part *part = &jpeg->seen->part[i];

        if (!is_usable(jpeg, part) || my < part->my0 || my >= part->my1)
            continue;
        if (part->mx0 > at) {
            next = part->mx0 < next ? part->mx0 : next;
        } else if (part->mx1 > to) {
            found = part;
            to = part->mx1;
        }
    }
    if (found == NULL)
        to = next;
    *ret_to = to < jpeg->mx1 ? to : jpeg->mx1;
    return found;
}

bool hr__jpeg_find_unseen(const struct hr_jpeg *jpeg, int32_t my, int32_t *from,
                          int32_t *ret_to)
{
    int32_t at = *from, to = jpeg->mx1;

    if (jpeg->seen != NULL)
        while (at < jpeg->mx1 && find(jpeg, my, at, &to) != NULL)
            at = to;
    *from = at;
    *ret_to = to;
    return at < jpeg->mx1;
}

void hr__jpeg_find_seen(struct hr_jpeg *jpeg, struct hr_jpeg_seen *seen)
{
    int32_t my, i;

    jpeg->seen = seen;
    jpeg->within = NULL;
    jpeg->read0 = jpeg->my0;
    jpeg->read1 = jpeg->my1;
    if (seen == NULL)
        return;
    jpeg->read0 = jpeg->my1;
    jpeg->read1 = jpeg->my0;
    for (my = jpeg->my0; my < jpeg->my1; my++) {
        int32_t from = jpeg->mx0, to;

        if (!hr__jpeg_find_unseen(jpeg, my, &from, &to))
            continue;
        jpeg->read0 = my < jpeg->read0 ? my : jpeg->read0;
        jpeg->read1 = my + 1;
    }
    for (i = 0; i < seen->count && jpeg->within == NULL; i++) {
        const struct hr_jpeg_seen_part *part = &seen->part[i];

        if (is_usable(jpeg, part) && part->mx0 <= jpeg->mx0 && part->mx1 >= jpeg->mx1 &&
            part->my0 <= jpeg->my0 && part->my1 >= jpeg->my1)
            jpeg->within = part;
    }
}

static void take(struct hr_jpeg *jpeg, const struct hr_jpeg_seen_part *part, int32_t my,
                 int32_t from, int32_t to)
{
    int32_t i, y;

    assert(from >= part->mx0 && to <= part->mx1 && my >= part->my0 && my < part->my1);
    for (i = 0; i < jpeg->planes; i++) {
        const struct hr_jpeg_plane *p = &jpeg->plane[i];
        size_t bytes = (size_t)((to - from) * p->mcu_width);
        const uint8_t *in =
            part->samples[i] +
            (ptrdiff_t)(my - part->my0) * p->mcu_height * part->stride[i] +
            (ptrdiff_t)(from - part->mx0) * p->mcu_width;
        uint8_t *out = p->strip + HR_JPEG_KEPT * p->stride +
                       (ptrdiff_t)(from - jpeg->mx0) * p->mcu_width;

        for (y = 0; y < p->mcu_height; y++, in += part->stride[i], out += p->stride)
            memcpy(out, in, bytes);
    }
}

void hr__jpeg_copy_seen(struct hr_jpeg *jpeg, int32_t my)
{
    int32_t at, to;

    if (jpeg->seen == NULL || jpeg->within != NULL)
        return;
    for (at = jpeg->mx0; at < jpeg->mx1; at = to) {
        const struct hr_jpeg_seen_part *part = find(jpeg, my, at, &to);

        if (part != NULL)
            take(jpeg, part, my, at, to);
    }
}

void hr__jpeg_use_seen_planes(struct hr_jpeg *jpeg)
{
    const struct hr_jpeg_seen_part *part = jpeg->within;
    int32_t i;

    assert(part != NULL);
    for (i = 0; i < jpeg->planes; i++) {
        struct hr_jpeg_plane *p = &jpeg->plane[i];

        p->first = part->mx0 * p->mcu_width;
        p->stride = part->stride[i];
        p->whole = part->samples[i] +
                   ((ptrdiff_t)(jpeg->my0 - part->my0) * p->mcu_height - HR_JPEG_KEPT) *
                       p->stride;
    }
}

void hr__jpeg_add_seen(struct hr_jpeg *jpeg)
{
    struct hr_jpeg_seen_part *part;
    int32_t i;

    if (jpeg->seen == NULL || jpeg->within != NULL ||
        jpeg->seen->count == HR_JPEG_SEEN_MAX)
        return;
    part = &jpeg->seen->part[jpeg->seen->count++];
    *part = (struct hr_jpeg_seen_part){.scale_log2 = jpeg->scale_log2,
                                       .low = hr__jpeg_is_low(jpeg),
                                       .planes = jpeg->planes,
                                       .mx0 = jpeg->mx0,
                                       .mx1 = jpeg->mx1,
                                       .my0 = jpeg->my0,
                                       .my1 = jpeg->my1};
    for (i = 0; i < jpeg->planes; i++) {
        const struct hr_jpeg_plane *p = &jpeg->plane[i];

        part->samples[i] = p->whole + HR_JPEG_KEPT * p->stride;
        part->stride[i] = p->stride;
    }
}
