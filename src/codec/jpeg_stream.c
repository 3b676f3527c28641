/*
 * codec/jpeg_stream.c - the entropy-coded data: tables, segments between restart markers,
 * and iteration over MCUs.
 */
#include "codec/jpeg_state.h"

#include <assert.h>
#include <string.h>

/* Unstuffs up to the next marker. False if there is none: libjpeg would report that. */
static bool open_segment(struct hr_jpeg *jpeg)
{
    struct hr_jpeg_scan *scan = &jpeg->scan;
    uint8_t *end;

    assert(jpeg->segment != NULL);
    jpeg->segment = jpeg->kernels->unstuff(jpeg->segment, jpeg->header.data_end,
                                           jpeg->unstuffed, &end);
    if (jpeg->segment == NULL)
        return false;
    memset(end, 0, HR_JPEG_PAD);
    scan->at = jpeg->unstuffed;
    scan->end = end;
    scan->bits = scan->left = 0;
    memset(scan->predictor, 0, sizeof scan->predictor);
    jpeg->segment_left = jpeg->header.restart != 0 ? jpeg->header.restart : INT32_MAX;
    return true;
}

ptrdiff_t hr__jpeg_bits_left(const struct hr_jpeg_scan *scan)
{
    return 8 * (scan->end - scan->at) + (ptrdiff_t)scan->left;
}

bool hr__jpeg_is_exhausted(const struct hr_jpeg_scan *scan)
{
    return hr__jpeg_bits_left(scan) >= 0 && hr__jpeg_bits_left(scan) < 8;
}

static bool restart(struct hr_jpeg *jpeg)
{
    assert(jpeg->header.restart != 0);
    if (!hr__jpeg_is_exhausted(&jpeg->scan) ||
        jpeg->segment[1] != 0xD0 + jpeg->restarts % 8)
        return false;
    jpeg->restarts++;
    jpeg->segment += 2;
    return open_segment(jpeg);
}

bool hr__jpeg_run(struct hr_jpeg *jpeg, int64_t count,
                  bool (*mcus)(struct hr_jpeg_scan *, int32_t))
{
    assert(count >= 0);
    while (count > 0) {
        int32_t some;

        if (jpeg->segment_left == 0 && !restart(jpeg))
            return false;
        some = count < jpeg->segment_left ? (int32_t)count : jpeg->segment_left;
        if (!mcus(&jpeg->scan, some))
            return false;
        jpeg->scan.first += some;
        jpeg->went += some;
        count -= some;
        if (jpeg->header.restart != 0)
            jpeg->segment_left -= some;
    }
    return true;
}

/* True if some blocks are skipped: false only for whole photos. */
static bool skips_blocks(const struct hr_jpeg *jpeg)
{
    const struct hr_jpeg_plane *p = jpeg->plane;
    int i;

    for (i = 0; i < jpeg->header.components; i++)
        if (p[i].size == 1 || (p[i].size < 8 && hr__jpeg_is_low(jpeg)) || !p[i].wanted)
            return true;
    return jpeg->width < p[0].width || jpeg->height < p[0].height;
}

/* Bits of AC values that cannot exceed HR_JPEG_VALUE_MAX with any step of the photo. */
static int size_allowed(const struct hr_jpeg_header *header)
{
    int32_t max = 0;
    int size = 1, i, k;

    for (i = 0; i < header->components; i++)
        for (k = 1; k < 64; k++)
            if (header->quant[header->component[i].quant][k] > max)
                max = header->quant[header->component[i].quant][k];
    while (size < 10 && ((2 << size) - 1) * max <= HR_JPEG_VALUE_MAX)
        size++;
    return size;
}

static bool make_tables(struct hr_jpeg *jpeg)
{
    const struct hr_jpeg_header *header = &jpeg->header;
    bool skips = skips_blocks(jpeg);
    int size_max = size_allowed(header), i, k;

    for (i = 0; i < header->components; i++) {
        const struct hr_jpeg_component *c = &header->component[i];
        struct hr_jpeg_plane *p = &jpeg->plane[i];

        if (!hr__jpeg_table_make(&jpeg->dc[c->dc], header->dc[c->dc], 0) ||
            !hr__jpeg_table_make(&jpeg->ac[c->ac], header->ac[c->ac], size_max))
            return false;
        if (skips && !jpeg->ac[c->ac].skips)
            jpeg->kernels->make_skip(&jpeg->ac[c->ac]);
        for (k = 0; k < 64; k++)
            p->quant[k] = (int16_t)header->quant[c->quant][k];
        jpeg->scan.dc_max[i] = 4080 / p->quant[0];
    }
    return true;
}

/* Lists the blocks of an MCU in the order of the data. */
static void list_blocks(struct hr_jpeg *jpeg)
{
    struct hr_jpeg_scan *scan = &jpeg->scan;
    int16_t *groups = jpeg->groups;
    int i, x, y;

    scan->block_count = 0;
    for (i = 0; i < jpeg->header.components; i++) {
        const struct hr_jpeg_component *c = &jpeg->header.component[i];

        jpeg->plane[i].groups = groups;
        for (y = 0; y < c->v; y++, groups += HR_JPEG_GROUPS_ROW * HR_JPEG_GROUP)
            for (x = 0; x < c->h; x++)
                scan->block[scan->block_count++] = (struct hr_jpeg_block){
                    .dc = &jpeg->dc[c->dc],
                    .ac = &jpeg->ac[c->ac],
                    .component = i,
                    .x = x,
                    .step_x = c->h,
                    .groups = groups,
                    .quant = jpeg->plane[i].quant,
                };
    }
}

bool hr__jpeg_begin(struct hr_jpeg *jpeg)
{
    jpeg->restarts = 0;
    jpeg->went = 0;
    jpeg->segment = jpeg->header.scan;
    list_blocks(jpeg);
    memset(jpeg->groups, 0, sizeof jpeg->groups);
    if (!make_tables(jpeg))
        return false;
    jpeg->base = 0;
    return jpeg->known > 0 ? hr__jpeg_open_index(jpeg) : open_segment(jpeg);
}
