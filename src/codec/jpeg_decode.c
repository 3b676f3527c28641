/*
 * codec/jpeg_decode.c - decodes a window of a baseline JPEG, MCU row by MCU row.
 *
 * MCUs before the window are only parsed, those in it are decoded in batches, and nothing
 * below it is read. A row of MCUs becomes a strip of samples per component. Pixel rows
 * are output as soon as the samples above and below them exist; the last rows of a strip
 * are kept for the next one.
 */
#include "codec/jpeg_state.h"
#include "core/error.h"

#include <assert.h>
#include <string.h>

/* ---- MCU rows to strips ---- */

/* Zigzag indices of the last coefficients used for reduced planes: they include the
 * lowest 2x2 and 4x4 frequencies. Those above are finer than the samples. */
#define LAST_2 4
#define LAST_4 24

/* Sets which blocks are needed in MCU row `my`: a row may be needed only for the chroma
 * just below the window. */
static void set_wants(struct hr_jpeg *jpeg, int32_t my)
{
    struct hr_jpeg_scan *scan = &jpeg->scan;
    int32_t b;

    for (b = 0; b < scan->block_count; b++) {
        struct hr_jpeg_block *block = &scan->block[b];
        const struct hr_jpeg_plane *p = &jpeg->plane[block->component];
        int32_t top = my * p->mcu_height;

        if (!p->wanted ||
            (jpeg->seen == NULL && (top >= p->y1 || top + p->mcu_height <= p->y0)))
            block->want = HR_JPEG_NOTHING;
        else
            block->want = p->size == 1                           ? HR_JPEG_DC
                          : p->size < 8 && hr__jpeg_is_low(jpeg) ? HR_JPEG_LOW
                                                                 : HR_JPEG_ALL;
        block->last = p->size == 2 ? LAST_2 : LAST_4;
    }
}

static bool transform(struct hr_jpeg *jpeg, int32_t mcu, int32_t count)
{
    const struct hr_jpeg_scan *scan = &jpeg->scan;
    bool good = true;
    int32_t b;

    assert(count <= HR_JPEG_BATCH);
    for (b = 0; b < scan->block_count; b++) {
        const struct hr_jpeg_block *block = &scan->block[b];
        const struct hr_jpeg_plane *p = &jpeg->plane[block->component];
        ptrdiff_t row =
            (block->groups - p->groups) / (HR_JPEG_GROUPS_ROW * HR_JPEG_GROUP);

        if (block->x != 0 || block->want == HR_JPEG_NOTHING)
            continue;
        good &= jpeg->kernels->idct[p->log2](
            block->groups, p->quant, hr__divide_up(count * block->step_x, 4),
            p->strip + (HR_JPEG_KEPT + row * p->size) * p->stride +
                (ptrdiff_t)(mcu - jpeg->mx0) * p->mcu_width,
            p->stride);
    }
    return good;
}

/* Moves the rows to keep, making space for the next strip. */
static void keep_rows(struct hr_jpeg *jpeg, int32_t my)
{
    int i;

    for (i = 0; i < jpeg->header.components; i++) {
        struct hr_jpeg_plane *p = &jpeg->plane[i];

        p->top = my * p->mcu_height;
        if (!p->wanted)
            continue;
        if (hr__jpeg_retains_strips(jpeg))
            p->strip = p->whole + (my - jpeg->my0) * p->mcu_height * p->stride;
        else if (my > jpeg->my0)
            memmove(p->strip, p->strip + p->mcu_height * p->stride,
                    (size_t)(HR_JPEG_KEPT * p->stride));
    }
}

/* Decodes the MCUs that are next in the data. */
static bool decode_range(struct hr_jpeg *jpeg, int32_t my, int32_t from, int32_t to)
{
    int32_t mx;

    assert(from >= jpeg->mx0 && to <= jpeg->mx1);
    for (mx = from; mx < to; mx += HR_JPEG_BATCH) {
        int32_t left = to - mx;
        int32_t count = left < HR_JPEG_BATCH ? left : HR_JPEG_BATCH;

        jpeg->scan.first = 0;
        if (!hr__jpeg_advance(jpeg, my, mx, mx + count, jpeg->kernels->decode) ||
            !transform(jpeg, mx, count))
            return false;
    }
    return true;
}

static bool decode_row(struct hr_jpeg *jpeg, int32_t my)
{
    bool (*skip)(struct hr_jpeg_scan *, int32_t) = jpeg->kernels->skip;
    bool known = my < jpeg->known;
    int32_t at = 0, from, to;

    keep_rows(jpeg, my);
    set_wants(jpeg, my);
    for (from = jpeg->mx0; hr__jpeg_find_unseen(jpeg, my, &from, &to); from = at = to)
        if ((known ? !hr__jpeg_seek(jpeg, my, from)
                   : !hr__jpeg_advance(jpeg, my, at, from, skip)) ||
            !decode_range(jpeg, my, from, to))
            return false;
    hr__jpeg_copy_seen(jpeg, my);
    if (hr__jpeg_is_covered(jpeg) ||
        (known && (my + 1 < jpeg->known || my + 1 == jpeg->my1)))
        return true;
    if (known && at == 0 && !hr__jpeg_seek(jpeg, my, at = jpeg->mx0))
        return false;
    return hr__jpeg_advance(jpeg, my, at, jpeg->mcus_x, skip);
}

/* ---- strips to pixels ---- */

/* Samples of a row from column x; beyond the photo, the first and last rows repeat. */
static const uint8_t *sample_row(const struct hr_jpeg_plane *p, int32_t x, int32_t y)
{
    int32_t last = p->height - 1;

    y = y < 0 ? 0 : y > last ? last : y;
    assert(y >= p->top - HR_JPEG_KEPT && y < p->top + p->mcu_height && x >= p->first);
    return p->strip + (y - p->top + HR_JPEG_KEPT) * p->stride + (x - p->first);
}

static void repeat(const uint8_t *in, uint8_t *out, int32_t n)
{
    int32_t i;

    for (i = 0; i < n; i++)
        out[2 * i] = out[2 * i + 1] = in[i];
}

/* The chroma of pixel row y from column jpeg->x; written to `out` if it must be
 * upsampled. */
static const uint8_t *
chroma_row(struct hr_jpeg *jpeg, const struct hr_jpeg_plane *p, int32_t y, uint8_t *out)
{
    const struct hr_jpeg_kernels *kernels = jpeg->kernels;
    int32_t n = p->x1 - p->x0, near_y = p->tall ? y >> 1 : y;
    bool above = (y & 1) == 0;
    const uint8_t *near = sample_row(p, p->x0, near_y), *far = near;

    if (!p->wide && !(p->tall && p->triangle))
        return near + (jpeg->x - p->x0);
    if (p->tall && p->triangle)
        far = sample_row(p, p->x0, above ? near_y - 1 : near_y + 1);
    if (!p->wide)
        kernels->between(near, far, above ? 1 : 2, out, n);
    else if (!p->triangle)
        repeat(near, out, n);
    else if (p->tall)
        kernels->wider_between(near, far, jpeg->sums, out, n);
    else
        kernels->wider(near, jpeg->sums, out, n);
    return out + (jpeg->x - (p->wide ? 2 * p->x0 : p->x0));
}

static void put_row(struct hr_jpeg *jpeg, int32_t y)
{
    size_t bytes = (size_t)jpeg->width * (size_t)jpeg->channels;
    uint8_t *out = jpeg->pixels + (size_t)(y - jpeg->y) * bytes;
    const uint8_t *luma = sample_row(&jpeg->plane[0], jpeg->x, y);
    const uint8_t *cb = jpeg->gray, *cr = jpeg->gray;

    assert(y >= jpeg->y && y < jpeg->y + jpeg->height);
    if (jpeg->channels == 1) {
        memcpy(out, luma, bytes);
        return;
    }
    if (jpeg->header.components == 3) {
        cb = chroma_row(jpeg, &jpeg->plane[1], y, jpeg->row[0]);
        cr = chroma_row(jpeg, &jpeg->plane[2], y, jpeg->row[1]);
    }
    jpeg->kernels->rgb(luma, cb, cr, out, jpeg->width);
}

/* Number of pixel rows that the strips up to MCU row `my` suffice for: after the window's
 * last MCU row, all; before that, an odd row waits for the sample below it. */
static int32_t rows_ready(const struct hr_jpeg *jpeg, int32_t my)
{
    const struct hr_jpeg_component *c = &jpeg->header.component[0];
    int32_t ready = (my + 1) * jpeg->plane[0].mcu_height;
    bool waits = c->v == 2 && jpeg->header.components == 3 && jpeg->plane[1].tall &&
                 jpeg->plane[1].triangle;
    int32_t end = jpeg->y + jpeg->height;

    if (my + 1 == jpeg->my1)
        return end;
    ready -= waits ? 1 : 0;
    return ready < end ? ready : end;
}

static bool decode_rows(struct hr_jpeg *jpeg)
{
    int32_t my, y = jpeg->y;

    if (!hr__jpeg_is_covered(jpeg) && jpeg->my0 >= jpeg->known &&
        !hr__jpeg_reach(jpeg, jpeg->my0))
        return false;
    for (my = jpeg->my0; my < jpeg->my1; my++) {
        int32_t ready;

        if (!decode_row(jpeg, my))
            return false;
        ready = jpeg->planar ? 0 : rows_ready(jpeg, my);
        for (; y < ready; y++)
            put_row(jpeg, y);
    }
    if (hr__jpeg_is_covered(jpeg))
        return true;
    if (jpeg->my1 == jpeg->mcus_y && jpeg->my1 > jpeg->known)
        return hr__jpeg_is_exhausted(&jpeg->scan);
    return hr__jpeg_bits_left(&jpeg->scan) >= 0;
}

/* ---- entry points ---- */

enum hr_err
hr__jpeg_prepare(struct hr_jpeg *jpeg, const struct hr_image_job *job, bool planar)
{
    const struct hr_jpeg_header *header = &jpeg->header;

    if (!hr__jpeg_parse(job->data, job->bytes, &jpeg->header) ||
        header->width != job->info->width || header->height != job->info->height ||
        header->components != job->info->channels)
        return HR_ERR_UNSUPPORTED;
    jpeg->kernels = hr__jpeg_kernels();
    jpeg->planar = planar;
    hr__jpeg_place(jpeg, job);
    if (!hr__jpeg_data_may_suffice(jpeg))
        return HR_ERR_UNSUPPORTED;
    hr__jpeg_find_seen(jpeg, job->request->seen);
    if (!hr__jpeg_set_index(jpeg, hr__jpeg_is_covered(jpeg) ? NULL : job->request->index,
                            job->arena) ||
        !hr__jpeg_reserve(jpeg))
        return HR_ERR_MEMORY;
    if (hr__jpeg_is_covered(jpeg))
        return HR_OK;
    return hr__jpeg_begin(jpeg) ? HR_OK : HR_ERR_UNSUPPORTED;
}

/* Sets where the kept strips are. */
static bool place_strips(struct hr_jpeg *jpeg, struct hr_arena *arena)
{
    int i;

    if (jpeg->within != NULL) {
        hr__jpeg_use_seen_planes(jpeg);
        return true;
    }
    for (i = 0; i < jpeg->header.components; i++) {
        struct hr_jpeg_plane *p = &jpeg->plane[i];
        int32_t rows = HR_JPEG_KEPT + (jpeg->my1 - jpeg->my0) * p->mcu_height;

        if (!p->wanted)
            continue;
        p->whole = hr__arena_alloc(arena, (size_t)p->stride * (size_t)rows);
        if (p->whole == NULL)
            return false;
    }
    return true;
}

enum hr_err hr__jpeg_window(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                            struct hr_image_part *ret_part)
{
    size_t row_bytes;

    HR_TRY(hr__jpeg_prepare(jpeg, job, false));
    if (hr__jpeg_retains_strips(jpeg) && !place_strips(jpeg, job->arena))
        return HR_ERR_MEMORY;
    row_bytes = (size_t)jpeg->width * (size_t)jpeg->channels;
    jpeg->pixels = hr__arena_alloc(job->arena, row_bytes * (size_t)jpeg->height);
    if (jpeg->pixels == NULL)
        return HR_ERR_MEMORY;
    if (jpeg->header.components == 1 && jpeg->channels == 3)
        memset(jpeg->gray, 128, (size_t)jpeg->width);
    if (!decode_rows(jpeg))
        return HR_ERR_UNSUPPORTED;
    hr__jpeg_keep_index(jpeg);
    hr__jpeg_add_seen(jpeg);
    hr__image_part_set(ret_part, jpeg->pixels, jpeg->width, jpeg->height, jpeg->channels,
                       row_bytes, jpeg->x, jpeg->y, job->request->scale_log2);
    return HR_OK;
}

static struct hr_pixels show_plane(const struct hr_jpeg *jpeg, int i)
{
    const struct hr_jpeg_plane *p = &jpeg->plane[i];
    ptrdiff_t row = HR_JPEG_KEPT + p->y0 - jpeg->my0 * p->mcu_height;

    return (struct hr_pixels){.data = p->whole + row * p->stride + (p->x0 - p->first),
                              .dtype = HR_U8,
                              .width = p->x1 - p->x0,
                              .height = p->y1 - p->y0,
                              .channels = 1,
                              .row_stride = p->stride,
                              .pixel_stride = 1,
                              .channel_stride = 1};
}

enum hr_err hr__jpeg_planes(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                            struct hr_image_planes *ret_planes)
{
    struct hr_image_planes planes = {.scale_log2 = job->request->scale_log2};
    const struct hr_jpeg_plane *chroma = &jpeg->plane[1];
    int i;

    HR_TRY(hr__jpeg_prepare(jpeg, job, true));
    if (!place_strips(jpeg, job->arena))
        return HR_ERR_MEMORY;
    if (!decode_rows(jpeg))
        return HR_ERR_UNSUPPORTED;
    hr__jpeg_keep_index(jpeg);
    hr__jpeg_add_seen(jpeg);
    planes.ycc.gray = jpeg->channels == 1 || jpeg->header.components == 1;
    planes.x = jpeg->x;
    planes.y = jpeg->y;
    for (i = 0; i < (planes.ycc.gray ? 1 : 3); i++)
        planes.ycc.plane[i] = show_plane(jpeg, i);
    if (!planes.ycc.gray) {
        planes.ycc.shift_x = chroma->wide ? 1 : 0;
        planes.ycc.shift_y = chroma->tall ? 1 : 0;
        planes.ycc.chroma_x = chroma->x0 * (1 << planes.ycc.shift_x) - jpeg->x;
        planes.ycc.chroma_y = chroma->y0 * (1 << planes.ycc.shift_y) - jpeg->y;
    }
    *ret_planes = planes;
    return HR_OK;
}
