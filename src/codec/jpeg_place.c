/*
 * codec/jpeg_place.c - which MCUs and samples a window needs, and the memory for them.
 *
 * Scaled decoding uses smaller transforms, and where libjpeg does so, larger ones for
 * chroma instead of upsampling. All memory that grows with the photo, except the output,
 * is in one block that is kept between photos.
 */
#include "codec/jpeg_state.h"
#include "core/alloc.h"

#include <string.h>

#define STRIDE_ROUND 64 /* of rows in the strips */
/* Free a block that has been four times too large for this many photos. */
#define PATIENCE 256

struct hr_jpeg *hr__jpeg_create(void)
{
    struct hr_jpeg *jpeg = hr__aligned_alloc(64, sizeof *jpeg);

    if (jpeg != NULL)
        memset(jpeg, 0, sizeof *jpeg);
    return jpeg;
}

void hr__jpeg_destroy(struct hr_jpeg *jpeg)
{
    if (jpeg == NULL)
        return;
    hr__free(jpeg->block);
    hr__free(jpeg);
}

/* ---- geometry ---- */

/* libjpeg's rule: chroma uses a larger transform where that replaces upsampling in both
 * directions. Then its choice of upsampling; very narrow rows are replicated. */
static void place_plane(struct hr_jpeg *jpeg, int i, int scale_log2)
{
    const struct hr_jpeg_header *header = &jpeg->header;
    const struct hr_jpeg_component *c = &header->component[i], *luma = header->component;
    struct hr_jpeg_plane *p = &jpeg->plane[i];
    int32_t size = 8 >> scale_log2;

    p->log2 = 3 - scale_log2;
    while (p->log2 < 3 && luma->h * size % (c->h * 2 << p->log2) == 0 &&
           luma->v * size % (c->v * 2 << p->log2) == 0)
        p->log2++;
    p->size = 1 << p->log2;
    p->mcu_width = c->h * p->size;
    p->mcu_height = c->v * p->size;
    p->wide = p->mcu_width < luma->h * size;
    p->tall = p->mcu_height < luma->v * size;
    p->width = hr__divide_up(header->width * p->mcu_width, luma->h * 8);
    p->height = hr__divide_up(header->height * p->mcu_height, luma->v * 8);
    p->triangle = !jpeg->planar && size > 1 && (!p->wide || p->width > 2);
}

static void place_window(struct hr_jpeg *jpeg, const struct hr_image_request *request)
{
    int k = request->scale_log2;
    int32_t up = (1 << k) - 1;

    jpeg->x = request->x >> k;
    jpeg->y = request->y >> k;
    jpeg->width = ((request->x + request->width + up) >> k) - jpeg->x;
    jpeg->height = ((request->y + request->height + up) >> k) - jpeg->y;
}

/* Samples in one direction that pixels [at, at + size) need. The triangle filter needs
 * one more sample. Vertically, libjpeg reads on for both rows of a sample; so do we, to
 * detect the same damage. */
static void need(int32_t at, int32_t size, int32_t full, bool doubled, bool triangle,
                 int32_t *ret_from, int32_t *ret_to)
{
    int32_t from = at, to = at + size;

    if (doubled) {
        from = (at >> 1) - (triangle ? 1 : 0);
        to = ((at + size - 1) >> 1) + 1 + (triangle ? 1 : 0);
    }
    *ret_from = from > 0 ? from : 0;
    *ret_to = to < full ? to : full;
}

static void need_mcus(struct hr_jpeg *jpeg)
{
    int i;

    jpeg->mx0 = jpeg->my0 = INT32_MAX;
    jpeg->mx1 = jpeg->my1 = 0;
    for (i = 0; i < jpeg->header.components; i++) {
        struct hr_jpeg_plane *p = &jpeg->plane[i];
        int32_t mx0, mx1, my0, my1;

        if (!p->wanted)
            continue;
        need(jpeg->x, jpeg->width, p->width, p->wide, p->triangle, &p->x0, &p->x1);
        need(jpeg->y, jpeg->height, p->height, p->tall, p->triangle, &p->y0, &p->y1);
        mx0 = p->x0 / p->mcu_width;
        mx1 = hr__divide_up(p->x1, p->mcu_width);
        my0 = p->y0 / p->mcu_height;
        my1 = hr__divide_up(p->y1, p->mcu_height);
        jpeg->my0 = my0 < jpeg->my0 ? my0 : jpeg->my0;
        jpeg->my1 = my1 > jpeg->my1 ? my1 : jpeg->my1;
        jpeg->mx0 = mx0 < jpeg->mx0 ? mx0 : jpeg->mx0;
        jpeg->mx1 = mx1 > jpeg->mx1 ? mx1 : jpeg->mx1;
    }
    /* Read what libjpeg reads, to detect the same damage. */
    jpeg->my1 = hr__divide_up(jpeg->my1, jpeg->header.mcu_rows_per_read) *
                jpeg->header.mcu_rows_per_read;
    jpeg->my1 = jpeg->my1 < jpeg->mcus_y ? jpeg->my1 : jpeg->mcus_y;
}

void hr__jpeg_place(struct hr_jpeg *jpeg, const struct hr_image_job *job)
{
    const struct hr_jpeg_header *header = &jpeg->header;
    int i;

    jpeg->mcus_x = hr__divide_up(header->width, 8 * header->component[0].h);
    jpeg->mcus_y = hr__divide_up(header->height, 8 * header->component[0].v);
    jpeg->channels = hr__image_channels_out(job->info, job->request->channels);
    jpeg->scale_log2 = job->request->scale_log2;
    jpeg->planes = jpeg->channels == 3 ? header->components : 1;
    place_window(jpeg, job->request);
    for (i = 0; i < header->components; i++) {
        place_plane(jpeg, i, job->request->scale_log2);
        jpeg->plane[i].wanted = i == 0 || jpeg->channels == 3;
    }
    need_mcus(jpeg);
}

bool hr__jpeg_data_may_suffice(const struct hr_jpeg *jpeg)
{
    const struct hr_jpeg_component *luma = jpeg->header.component;
    int64_t blocks = (int64_t)jpeg->mcus_x * jpeg->mcus_y *
                     (luma->h * luma->v + jpeg->header.components - 1);

    return blocks / 4 <= jpeg->header.data_end - jpeg->header.scan;
}

/* ---- memory ---- */

static uint8_t *part(uint8_t *block, size_t at)
{
    return block != NULL ? block + at : NULL;
}

/* Lays out the block; with a NULL block, only returns its size. */
static size_t lay_out(struct hr_jpeg *jpeg, uint8_t *block)
{
    size_t at = 0, row = (size_t)jpeg->width + 2 * HR_JPEG_SLACK;
    int i;

    for (i = 0; i < jpeg->header.components; i++) {
        struct hr_jpeg_plane *p = &jpeg->plane[i];
        int32_t mcus = hr__divide_up(jpeg->mx1 - jpeg->mx0, 4) * 4;

        if (jpeg->seen !=
            NULL) /* a range may start anywhere, and extends to whole groups */
            mcus += 4;

        p->first = jpeg->mx0 * p->mcu_width;
        p->stride = hr__divide_up(mcus * p->mcu_width + 1, STRIDE_ROUND) * STRIDE_ROUND;
        p->strip = part(block, at);
        if (p->wanted && !hr__jpeg_retains_strips(jpeg))
            at += (size_t)p->stride * (size_t)(HR_JPEG_KEPT + p->mcu_height);
    }
    at += HR_JPEG_SLACK;
    for (i = 0; i < 2; i++, at += row)
        jpeg->row[i] = part(block, at);
    jpeg->gray = part(block, at);
    at += row;
    at = (at + 63) & ~(size_t)63;
    jpeg->sums = (uint16_t *)(void *)part(block, at);
    at += 2 * row;
    jpeg->unstuffed = part(block, at);
    return at + jpeg->unstuffed_bytes;
}

bool hr__jpeg_reserve(struct hr_jpeg *jpeg)
{
    size_t bytes;

    jpeg->unstuffed_bytes =
        (size_t)(jpeg->header.data_end - jpeg->header.scan) + HR_JPEG_PAD + HR_JPEG_SLACK;
    bytes = lay_out(jpeg, NULL);
    jpeg->idle = bytes > jpeg->block_bytes / 4 ? 0 : jpeg->idle + 1;
    if (bytes > jpeg->block_bytes || jpeg->idle > PATIENCE) {
        size_t more = bytes + bytes / 4;

        hr__free(jpeg->block);
        jpeg->block_bytes = 0;
        jpeg->idle = 0;
        jpeg->block = hr__aligned_alloc(64, (more + 63) & ~(size_t)63);
        if (jpeg->block == NULL)
            return false;
        jpeg->block_bytes = more;
    }
    lay_out(jpeg, jpeg->block);
    return true;
}
