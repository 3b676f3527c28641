/*
 * codec/jpeg_decode.c - a window of a baseline JPEG: which MCUs it needs, and from their
 * samples to pixels.
 *
 * MCUs before the window are passed over by the bits alone, those in it are decoded in
 * batches, and nothing below it is read. A row of MCUs becomes a strip of samples per
 * component; pixel rows are made as soon as the samples above and below them are there,
 * and the last rows of a strip stay for the next one. Scaled decoding takes smaller
 * transforms, and larger ones for chroma instead of upsampling where libjpeg does so.
 *
 * Everything that grows with the photo lies in one block that is kept between photos.
 */
#include "codec/jpeg.h"
#include "codec/jpeg_priv.h"
#include "core/alloc.h"
#include "core/error.h"

#include <string.h>

#define KEPT 2          /* rows of the strip before, ahead of each strip */
#define STRIDE_ROUND 64 /* of the strips' rows */
#define GROUPS_ROW (HR_JPEG_BATCH * 2 / 4) /* in a row of blocks of a batch */
#define GROUPS_MAX (3 * GROUPS_ROW * 2)
#define SLACK 128 /* what the inner loops may touch behind a row */
/* A buffer that has been four times too large for so many photos is given back. */
#define PATIENCE 256

/* One component of the photo at the scale of the request. */
struct plane {
    int32_t log2, size;    /* of its blocks after the transform */
    int32_t width, height; /* samples of the whole photo */
    int32_t mcu_width, mcu_height;
    bool wide, tall; /* it must be doubled in that direction */
    bool triangle;   /* by the triangle filter, else by repetition */
    bool wanted;     /* gray does without chroma */
    int32_t x0, x1;  /* samples that the window needs */
    int32_t y0, y1;
    int32_t first; /* sample column of the strip's first */
    ptrdiff_t stride;
    uint8_t *strip; /* KEPT rows, then those of a row of MCUs */
    uint8_t *whole; /* all strips, when planes are asked for */
    int32_t top;    /* row of the photo at strip's row KEPT */
    int16_t quant[64];
    int16_t *groups; /* coefficients of a batch: v rows of GROUPS_ROW groups */
};

struct hr_jpeg {
    struct hr_jpeg_header header;
    const struct hr_jpeg_kernels *kernels;
    struct hr_jpeg_scan scan;
    const uint8_t *segment; /* where the data goes on, behind a restart marker; or NULL */
    int32_t segment_left;   /* MCUs before the next restart */
    int32_t restarts;
    uint8_t *unstuffed;
    size_t unstuffed_bytes;

    struct plane plane[3];
    int32_t mcus_x, mcus_y;      /* of the photo */
    int32_t mx0, mx1, my0, my1;  /* that the window needs */
    int32_t x, y, width, height; /* the window in scaled pixels */
    int32_t channels;
    bool planar; /* planes are asked for, not pixels */
    uint8_t *pixels;
    uint8_t *row[2]; /* an upsampled row of each chroma component */
    uint16_t *sums;
    uint8_t *gray; /* a row of 128: the chroma of a gray photo */

    uint8_t *block; /* holds the above */
    size_t block_bytes;
    uint32_t idle; /* photos since the block was needed in full */

    struct hr_jpeg_table dc[4], ac[4];
    _Alignas(64) int16_t groups[GROUPS_MAX * HR_JPEG_GROUP];
};

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

static int32_t divide_up(int32_t a, int32_t b)
{
    return (a + b - 1) / b;
}

/* libjpeg's rule: chroma takes a larger transform as long as that replaces upsampling in
 * both directions. Then come its choices of upsampling; a very narrow row is repeated. */
static void place_plane(struct hr_jpeg *jpeg, int i, int scale_log2)
{
    const struct hr_jpeg_header *header = &jpeg->header;
    const struct hr_jpeg_component *c = &header->component[i], *luma = header->component;
    struct plane *p = &jpeg->plane[i];
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
    p->width = divide_up(header->width * p->mcu_width, luma->h * 8);
    p->height = divide_up(header->height * p->mcu_height, luma->v * 8);
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

/* Samples of a direction that pixels [at, at + size) need. The triangle filter looks one
 * sample further; vertically libjpeg reads on for both rows of a sample, and so do we, to
 * see the same damage. */
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
        struct plane *p = &jpeg->plane[i];
        int32_t mx0, mx1, my0, my1;

        if (!p->wanted)
            continue;
        need(jpeg->x, jpeg->width, p->width, p->wide, p->triangle, &p->x0, &p->x1);
        need(jpeg->y, jpeg->height, p->height, p->tall, p->triangle, &p->y0, &p->y1);
        mx0 = p->x0 / p->mcu_width;
        mx1 = divide_up(p->x1, p->mcu_width);
        my0 = p->y0 / p->mcu_height;
        my1 = divide_up(p->y1, p->mcu_height);
        jpeg->my0 = my0 < jpeg->my0 ? my0 : jpeg->my0;
        jpeg->my1 = my1 > jpeg->my1 ? my1 : jpeg->my1;
        jpeg->mx0 = mx0 < jpeg->mx0 ? mx0 : jpeg->mx0;
        jpeg->mx1 = mx1 > jpeg->mx1 ? mx1 : jpeg->mx1;
    }
}

static void place(struct hr_jpeg *jpeg, const struct hr_image_job *job)
{
    const struct hr_jpeg_header *header = &jpeg->header;
    int i;

    jpeg->mcus_x = divide_up(header->width, 8 * header->component[0].h);
    jpeg->mcus_y = divide_up(header->height, 8 * header->component[0].v);
    jpeg->channels = hr__image_channels_out(job->info, job->request->channels);
    place_window(jpeg, job->request);
    for (i = 0; i < header->components; i++) {
        place_plane(jpeg, i, job->request->scale_log2);
        jpeg->plane[i].wanted = i == 0 || jpeg->channels == 3;
    }
    need_mcus(jpeg);
}

/* ---- memory ---- */

static uint8_t *part(uint8_t *block, size_t at)
{
    return block != NULL ? block + at : NULL;
}

/* Lay out the block; with a NULL block this only measures. */
static size_t lay_out(struct hr_jpeg *jpeg, uint8_t *block)
{
    size_t at = 0, row = (size_t)jpeg->width + 2 * SLACK;
    int i;

    for (i = 0; i < jpeg->header.components; i++) {
        struct plane *p = &jpeg->plane[i];
        int32_t mcus = divide_up(jpeg->mx1 - jpeg->mx0, 4) * 4;

        p->first = jpeg->mx0 * p->mcu_width;
        p->stride = divide_up(mcus * p->mcu_width + 1, STRIDE_ROUND) * STRIDE_ROUND;
        p->strip = part(block, at);
        if (p->wanted && !jpeg->planar)
            at += (size_t)p->stride * (size_t)(KEPT + p->mcu_height);
    }
    at += SLACK;
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

static bool reserve(struct hr_jpeg *jpeg)
{
    size_t bytes;

    jpeg->unstuffed_bytes =
        (size_t)(jpeg->header.data_end - jpeg->header.scan) + HR_JPEG_PAD + SLACK;
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

/* ---- entropy-coded data ---- */

/* Unstuff up to the next marker. False without one: libjpeg would miss it. */
static bool open_segment(struct hr_jpeg *jpeg)
{
    struct hr_jpeg_scan *scan = &jpeg->scan;
    uint8_t *end;

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

/* Bits that the data had and that were not taken; negative when more were taken. */
static ptrdiff_t bits_over(const struct hr_jpeg_scan *scan)
{
    return 8 * (scan->end - scan->at) + (ptrdiff_t)scan->left;
}

/* Behind the last MCU of a segment: less than a byte may be left. */
static bool is_used_up(const struct hr_jpeg_scan *scan)
{
    return bits_over(scan) >= 0 && bits_over(scan) < 8;
}

static bool restart(struct hr_jpeg *jpeg)
{
    if (!is_used_up(&jpeg->scan) || jpeg->segment[1] != 0xD0 + jpeg->restarts % 8)
        return false;
    jpeg->restarts++;
    jpeg->segment += 2;
    return open_segment(jpeg);
}

static bool
run(struct hr_jpeg *jpeg, int64_t count, bool (*mcus)(struct hr_jpeg_scan *, int32_t))
{
    while (count > 0) {
        int32_t some;

        if (jpeg->segment_left == 0 && !restart(jpeg))
            return false;
        some = count < jpeg->segment_left ? (int32_t)count : jpeg->segment_left;
        if (!mcus(&jpeg->scan, some))
            return false;
        count -= some;
        if (jpeg->header.restart != 0)
            jpeg->segment_left -= some;
    }
    return true;
}

/* Whether any block is passed over: all are wanted in whole photos only. */
static bool skips_blocks(const struct hr_jpeg *jpeg)
{
    const struct plane *p = jpeg->plane;
    int i;

    for (i = 0; i < jpeg->header.components; i++)
        if (p[i].size == 1 || !p[i].wanted)
            return true;
    return jpeg->width < p[0].width || jpeg->height < p[0].height;
}

static bool make_tables(struct hr_jpeg *jpeg)
{
    const struct hr_jpeg_header *header = &jpeg->header;
    bool skips = skips_blocks(jpeg);
    int i, k;

    for (i = 0; i < header->components; i++) {
        const struct hr_jpeg_component *c = &header->component[i];
        struct plane *p = &jpeg->plane[i];

        if (!hr__jpeg_table_make(&jpeg->dc[c->dc], header->dc[c->dc], false) ||
            !hr__jpeg_table_make(&jpeg->ac[c->ac], header->ac[c->ac], true))
            return false;
        if (skips && !jpeg->ac[c->ac].skips)
            jpeg->kernels->make_skip(&jpeg->ac[c->ac]);
        for (k = 0; k < 64; k++)
            p->quant[k] = (int16_t)header->quant[c->quant][k];
        jpeg->scan.dc_max[i] = 4080 / p->quant[0];
    }
    return true;
}

/* The blocks of an MCU in their order in the data. */
static void list_blocks(struct hr_jpeg *jpeg)
{
    struct hr_jpeg_scan *scan = &jpeg->scan;
    int16_t *groups = jpeg->groups;
    int i, x, y;

    scan->block_count = 0;
    for (i = 0; i < jpeg->header.components; i++) {
        const struct hr_jpeg_component *c = &jpeg->header.component[i];

        jpeg->plane[i].groups = groups;
        for (y = 0; y < c->v; y++, groups += GROUPS_ROW * HR_JPEG_GROUP)
            for (x = 0; x < c->h; x++)
                scan->block[scan->block_count++] = (struct hr_jpeg_block){
                    .dc = &jpeg->dc[c->dc],
                    .ac = &jpeg->ac[c->ac],
                    .component = i,
                    .x = x,
                    .step_x = c->h,
                    .groups = groups,
                };
    }
}

static bool begin(struct hr_jpeg *jpeg)
{
    jpeg->restarts = 0;
    jpeg->segment = jpeg->header.scan;
    list_blocks(jpeg);
    memset(jpeg->groups, 0, sizeof jpeg->groups);
    return make_tables(jpeg) && open_segment(jpeg);
}

/* ---- rows of MCUs to strips ---- */

/* Which blocks matter in row `my`: a row may be there for the chroma below the window
 * only. */
static void set_wants(struct hr_jpeg *jpeg, int32_t my)
{
    struct hr_jpeg_scan *scan = &jpeg->scan;
    int32_t b;

    for (b = 0; b < scan->block_count; b++) {
        struct hr_jpeg_block *block = &scan->block[b];
        const struct plane *p = &jpeg->plane[block->component];
        int32_t top = my * p->mcu_height;

        if (!p->wanted || top >= p->y1 || top + p->mcu_height <= p->y0)
            block->want = HR_JPEG_NOTHING;
        else
            block->want = p->size == 1 ? HR_JPEG_DC : HR_JPEG_ALL;
    }
}

static void transform(struct hr_jpeg *jpeg, int32_t mcu, int32_t count)
{
    const struct hr_jpeg_scan *scan = &jpeg->scan;
    int32_t b;

    for (b = 0; b < scan->block_count; b++) {
        const struct hr_jpeg_block *block = &scan->block[b];
        const struct plane *p = &jpeg->plane[block->component];
        ptrdiff_t row = (block->groups - p->groups) / (GROUPS_ROW * HR_JPEG_GROUP);

        if (block->x != 0 || block->want == HR_JPEG_NOTHING)
            continue;
        jpeg->kernels->idct[p->log2](block->groups, p->quant,
                                     divide_up(count * block->step_x, 4),
                                     p->strip + (KEPT + row * p->size) * p->stride +
                                         (ptrdiff_t)(mcu - jpeg->mx0) * p->mcu_width,
                                     p->stride);
    }
}

/* Make room for a strip. */
static void keep_rows(struct hr_jpeg *jpeg, int32_t my)
{
    int i;

    for (i = 0; i < jpeg->header.components; i++) {
        struct plane *p = &jpeg->plane[i];

        p->top = my * p->mcu_height;
        if (jpeg->planar)
            p->strip = p->whole + (my - jpeg->my0) * p->mcu_height * p->stride;
        else if (my > jpeg->my0 && p->wanted)
            memmove(p->strip, p->strip + p->mcu_height * p->stride,
                    (size_t)(KEPT * p->stride));
    }
}

static bool decode_row(struct hr_jpeg *jpeg, int32_t my)
{
    const struct hr_jpeg_kernels *kernels = jpeg->kernels;
    int32_t mx;

    keep_rows(jpeg, my);
    set_wants(jpeg, my);
    if (!run(jpeg, jpeg->mx0, kernels->skip))
        return false;
    for (mx = jpeg->mx0; mx < jpeg->mx1; mx += HR_JPEG_BATCH) {
        int32_t left = jpeg->mx1 - mx;
        int32_t count = left < HR_JPEG_BATCH ? left : HR_JPEG_BATCH;

        if (!run(jpeg, count, kernels->decode))
            return false;
        transform(jpeg, mx, count);
    }
    return run(jpeg, jpeg->mcus_x - jpeg->mx1, kernels->skip);
}

/* ---- strips to pixels ---- */

/* Samples of a row from column x on; beyond the photo the first and last row repeat. */
static const uint8_t *sample_row(const struct plane *p, int32_t x, int32_t y)
{
    int32_t last = p->height - 1;

    y = y < 0 ? 0 : y > last ? last : y;
    return p->strip + (y - p->top + KEPT) * p->stride + (x - p->first);
}

static void repeat(const uint8_t *in, uint8_t *out, int32_t n)
{
    int32_t i;

    for (i = 0; i < n; i++)
        out[2 * i] = out[2 * i + 1] = in[i];
}

/* The chroma of pixel row y from column jpeg->x on; `out` is used when it has to be made.
 */
static const uint8_t *
chroma_row(struct hr_jpeg *jpeg, const struct plane *p, int32_t y, uint8_t *out)
{
    const struct hr_jpeg_kernels *kernels = jpeg->kernels;
    int32_t n = p->x1 - p->x0, near_y = p->tall ? y >> 1 : y;
    bool above = (y & 1) == 0;
    const uint8_t *near = sample_row(p, p->x0, near_y), *far = near;

    if (!p->wide && !(p->tall && p->triangle))
        return near + (jpeg->x - p->x0);
    if (p->tall)
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

/* Pixel rows that the strips up to MCU row `my` suffice for: all of the window behind
 * its last one; before that an odd row waits for the sample below it. */
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

    if (!run(jpeg, (int64_t)jpeg->my0 * jpeg->mcus_x, jpeg->kernels->skip))
        return false;
    for (my = jpeg->my0; my < jpeg->my1; my++) {
        int32_t ready;

        if (!decode_row(jpeg, my))
            return false;
        ready = jpeg->planar ? 0 : rows_ready(jpeg, my);
        for (; y < ready; y++)
            put_row(jpeg, y);
    }
    if (jpeg->my1 == jpeg->mcus_y)
        return is_used_up(&jpeg->scan);
    return bits_over(&jpeg->scan) >= 0;
}

/* ---- the door ---- */

/* Each block takes two bits at least; a header that promises more would only take memory.
 */
static bool is_promise_kept(const struct hr_jpeg *jpeg)
{
    const struct hr_jpeg_component *luma = jpeg->header.component;
    int64_t blocks = (int64_t)jpeg->mcus_x * jpeg->mcus_y *
                     (luma->h * luma->v + jpeg->header.components - 1);

    return blocks / 4 <= jpeg->header.data_end - jpeg->header.scan;
}

/* All up to the entropy-coded data. */
static enum hr_err
prepare(struct hr_jpeg *jpeg, const struct hr_image_job *job, bool planar)
{
    const struct hr_jpeg_header *header = &jpeg->header;

    if (!hr__jpeg_parse(job->data, job->bytes, &jpeg->header) ||
        header->width != job->info->width || header->height != job->info->height ||
        header->components != job->info->channels)
        return HR_ERR_UNSUPPORTED;
    jpeg->kernels = hr__jpeg_kernels();
    jpeg->planar = planar;
    place(jpeg, job);
    if (!is_promise_kept(jpeg))
        return HR_ERR_UNSUPPORTED;
    if (!reserve(jpeg))
        return HR_ERR_MEMORY;
    return begin(jpeg) ? HR_OK : HR_ERR_UNSUPPORTED;
}

enum hr_err hr__jpeg_window(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                            struct hr_image_part *ret_part)
{
    size_t row_bytes;

    HR_TRY(prepare(jpeg, job, false));
    row_bytes = (size_t)jpeg->width * (size_t)jpeg->channels;
    jpeg->pixels = hr__arena_alloc(job->arena, row_bytes * (size_t)jpeg->height);
    if (jpeg->pixels == NULL)
        return HR_ERR_MEMORY;
    if (jpeg->header.components == 1 && jpeg->channels == 3)
        memset(jpeg->gray, 128, (size_t)jpeg->width);
    if (!decode_rows(jpeg))
        return HR_ERR_UNSUPPORTED;
    hr__image_part_set(ret_part, jpeg->pixels, jpeg->width, jpeg->height, jpeg->channels,
                       row_bytes, jpeg->x, jpeg->y, job->request->scale_log2);
    return HR_OK;
}

static bool alloc_planes(struct hr_jpeg *jpeg, struct hr_arena *arena)
{
    int i;

    for (i = 0; i < jpeg->header.components; i++) {
        struct plane *p = &jpeg->plane[i];
        int32_t rows = KEPT + (jpeg->my1 - jpeg->my0) * p->mcu_height;

        if (!p->wanted)
            continue;
        p->whole = hr__arena_alloc(arena, (size_t)p->stride * (size_t)rows);
        if (p->whole == NULL)
            return false;
    }
    return true;
}

static struct hr_pixels show_plane(const struct hr_jpeg *jpeg, int i)
{
    const struct plane *p = &jpeg->plane[i];
    ptrdiff_t row = KEPT + p->y0 - jpeg->my0 * p->mcu_height;

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
                            struct hr_jpeg_planes *ret_planes)
{
    struct hr_jpeg_planes planes = {.scale_log2 = job->request->scale_log2};
    const struct plane *chroma = &jpeg->plane[1];
    int i;

    HR_TRY(prepare(jpeg, job, true));
    if (!alloc_planes(jpeg, job->arena))
        return HR_ERR_MEMORY;
    if (!decode_rows(jpeg))
        return HR_ERR_UNSUPPORTED;
    planes.gray = jpeg->channels == 1 || jpeg->header.components == 1;
    planes.x = jpeg->x;
    planes.y = jpeg->y;
    for (i = 0; i < (planes.gray ? 1 : 3); i++)
        planes.plane[i] = show_plane(jpeg, i);
    if (!planes.gray) {
        planes.shift_x = chroma->wide ? 1 : 0;
        planes.shift_y = chroma->tall ? 1 : 0;
        planes.chroma_x = chroma->x0 * (1 << planes.shift_x) - jpeg->x;
        planes.chroma_y = chroma->y0 * (1 << planes.shift_y) - jpeg->y;
    }
    *ret_planes = planes;
    return HR_OK;
}
