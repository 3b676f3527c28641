/*
 * codec/jpeg_index.c - seek points into the entropy-coded data: collected during a
 * decode, used to start a later one at its window.
 *
 * A decode with an index has two phases. Known rows are entered at the point before the
 * window. From the first unknown row on, it reads MCU by MCU as without an index, pausing
 * where a point is wanted; recording one costs about 10 ns.
 *
 * Offsets are kept both as in the file, where copying begins, and without stuffed zeros,
 * so that all points of a window are found in one copy. Whatever an index says, reads
 * stay within the data: points are checked against its bounds, and decoding is safe from
 * any bit.
 */
#include "codec/jpeg_state.h"
#include "core/error.h"

#include <assert.h>
#include <string.h>

/* MCUs between points. For photos of 500x375 with a point every 4, 8, 16, 32 MCUs, or
 * only at row starts, the index takes 3.6, 1.9, 1.0, 0.6, 0.3 % of the file, and a window
 * 76, 79, 81, 84, 84 % of the time without an index. On longer rows the MCUs skipped
 * after a point matter less. */
#define STEP 8
#define STEP_LARGE 16
#define LARGE_MCUS 8192
#define POINT_BYTES_MAX 11             /* 5 for the bits, 2 for each predictor */
#define DATA_BYTES_MAX ((1 << 29) - 1) /* so that a bit offset (three more bits) fits */

/* ---- variable-length numbers, 7 bits per byte, low bits first ---- */

static uint8_t *put_number(uint8_t *to, uint32_t value)
{
    for (; value >= 128; value >>= 7)
        *to++ = (uint8_t)(value | 128);
    *to++ = (uint8_t)value;
    return to;
}

static uint8_t *put_signed(uint8_t *to, int32_t value)
{
    return put_number(to, (uint32_t)value << 1 ^ (uint32_t)(value >> 31));
}

/* Returns 0 past the end; valid data never relies on that. */
static uint32_t get_number(const uint8_t **at, const uint8_t *end)
{
    uint32_t value = 0;

    for (unsigned shift = 0; shift < 35 && *at < end; shift += 7) {
        uint32_t byte = *(*at)++;

        value |= (byte & 127) << (shift & 31);
        if (byte < 128)
            break;
    }
    return value;
}

static int32_t get_signed(const uint8_t **at, const uint8_t *end)
{
    uint32_t value = get_number(at, end);

    return (int32_t)(value >> 1 ^ (0 - (value & 1)));
}

/* ---- opening an index ---- */

static int32_t points_of_row(const struct hr_jpeg_index *index)
{
    return hr__divide_up(index->mcus_x, index->step) - 1;
}

static int32_t choose_step(const struct hr_jpeg *jpeg, int32_t wanted)
{
    int32_t step = wanted;

    if (step <= 0)
        step = jpeg->mcus_x * jpeg->mcus_y > LARGE_MCUS ? STEP_LARGE : STEP;
    return step < jpeg->mcus_x ? step : jpeg->mcus_x;
}

/* Bytes of the points of `rows` rows at most. */
static size_t room_of_points(const struct hr_jpeg_index *index, int32_t rows)
{
    return (size_t)rows * (size_t)points_of_row(index) * POINT_BYTES_MAX;
}

/* True if the index matches the photo. An index from a file may contain anything: its
 * points must leave space for those of the unknown rows. */
static bool fits(const struct hr_jpeg *jpeg, const struct hr_jpeg_index *index)
{
    return index->mcus_x == jpeg->mcus_x && index->mcus_y == jpeg->mcus_y &&
           index->components == jpeg->header.components && index->step > 0 &&
           index->rows <= jpeg->mcus_y &&
           index->points_bytes <= room_of_points(index, index->rows);
}

/* Reserves all rows and keeps the known ones. */
static bool grow(struct hr_jpeg_index *index, struct hr_arena *arena)
{
    size_t rows = (size_t)index->mcus_y, room = room_of_points(index, index->mcus_y) + 1;
    struct hr_jpeg_row *row;
    uint8_t *points;

    if ((size_t)index->rows_room >= rows && index->points_room >= room)
        return true;
    row = hr__arena_alloc(arena, rows * sizeof *row);
    points = hr__arena_alloc(arena, room);
    if (row == NULL || points == NULL)
        return false;
    if (index->rows > 0)
        memcpy(row, index->row, (size_t)index->rows * sizeof *row);
    if (index->points_bytes > 0)
        memcpy(points, index->points, index->points_bytes);
    index->row = row;
    index->rows_room = index->mcus_y;
    index->points = points;
    index->points_room = room;
    return true;
}

bool hr__jpeg_set_index(struct hr_jpeg *jpeg, struct hr_jpeg_index *index,
                        struct hr_arena *arena)
{
    jpeg->index = NULL;
    jpeg->known = 0;
    jpeg->records_points = false;
    if (index == NULL || jpeg->header.restart != 0 ||
        jpeg->header.data_end - jpeg->header.scan > DATA_BYTES_MAX)
        return true;
    if (index->rows == 0)
        *index = (struct hr_jpeg_index){.mcus_x = jpeg->mcus_x,
                                        .mcus_y = jpeg->mcus_y,
                                        .components = jpeg->header.components,
                                        .step = choose_step(jpeg, index->step)};
    if (!fits(jpeg, index))
        return true;
    jpeg->records_points = jpeg->my1 > index->rows;
    if (jpeg->records_points && !grow(index, arena))
        return false;
    jpeg->index = index;
    jpeg->known = index->rows;
    jpeg->points_bytes = index->points_bytes;
    return true;
}

/* ---- seeking ---- */

/* Copies from the first row that is entered by its point to the row below the window, or
 * to the end of the data if unknown rows follow. The copy may split a stuffed byte pair
 * at its end, but not one that is needed. */
bool hr__jpeg_open_index(struct hr_jpeg *jpeg)
{
    const struct hr_jpeg_index *index = jpeg->index;
    int32_t my = jpeg->read0 < jpeg->known ? jpeg->read0 : jpeg->known - 1;
    int32_t below = jpeg->my1 > jpeg->known ? jpeg->my1 : jpeg->read1;
    const struct hr_jpeg_row *first = &index->row[my];
    const uint8_t *from = jpeg->header.scan, *end = jpeg->header.data_end, *marker;
    size_t bytes = (size_t)(end - from);
    uint8_t *unstuffed_end;

    if (below < jpeg->known) {
        size_t last = (size_t)index->row[below].at + 2;

        end = from + (last < bytes ? last : bytes);
    }
    if (first->at >= (size_t)(end - from))
        return false;
    marker =
        jpeg->kernels->unstuff(from + first->at, end, jpeg->unstuffed, &unstuffed_end);
    if (marker == NULL && end == jpeg->header.data_end)
        return false;
    memset(unstuffed_end, 0, HR_JPEG_PAD);
    jpeg->scan.at = jpeg->unstuffed;
    jpeg->scan.end = unstuffed_end;
    jpeg->scan.left = 0;
    jpeg->base = first->unstuffed;
    jpeg->segment_left = INT32_MAX;
    return true;
}

bool hr__jpeg_seek(struct hr_jpeg *jpeg, int32_t my, int32_t mx)
{
    const struct hr_jpeg_index *index = jpeg->index;
    const struct hr_jpeg_row *row = &index->row[my];
    const uint8_t *point = index->points + row->points_at;
    const uint8_t *end = index->points + index->points_bytes;
    struct hr_jpeg_scan *scan = &jpeg->scan;
    uint64_t bits = 8 * (uint64_t)row->unstuffed + row->bit;
    int32_t n, i;

    for (i = 0; i < 3; i++)
        scan->predictor[i] = row->predictor[i];
    for (n = mx / index->step; n > 0; n--) {
        bits += get_number(&point, end);
        for (i = 0; i < index->components; i++)
            scan->predictor[i] = (int16_t)((uint32_t)scan->predictor[i] +
                                           (uint32_t)get_signed(&point, end));
    }
    bits -= 8 * (uint64_t)jpeg->base;
    if (bits / 8 >= (uint64_t)(scan->end - jpeg->unstuffed))
        return false;
    scan->at = jpeg->unstuffed + bits / 8 + 1;
    scan->bits = (uint64_t)scan->at[-1] << (56 + bits % 8);
    scan->left = 8U - bits % 8;
    return hr__jpeg_run(jpeg, mx % index->step, jpeg->kernels->skip);
}

/* ---- recording ---- */

static void record_point(struct hr_jpeg *jpeg, int32_t my, int32_t mx)
{
    const struct hr_jpeg_scan *scan = &jpeg->scan;
    struct hr_jpeg_index *index = jpeg->index;
    uint64_t bits = 8 * ((uint64_t)jpeg->base + (uint64_t)(scan->at - jpeg->unstuffed)) -
                    (uint64_t)scan->left;
    int i;

    assert(my >= jpeg->known && my < index->mcus_y && mx % index->step == 0);
    if (mx == 0) {
        struct hr_jpeg_row *row = &index->row[my];

        *row = (struct hr_jpeg_row){.unstuffed = (uint32_t)(bits / 8),
                                    .points_at = (uint32_t)jpeg->points_bytes,
                                    .bit = (uint8_t)(bits % 8)};
        for (i = 0; i < 3; i++)
            row->predictor[i] = (int16_t)scan->predictor[i];
    } else {
        uint8_t *to = index->points + jpeg->points_bytes;

        to = put_number(to, (uint32_t)(bits - jpeg->noted_bits));
        for (i = 0; i < index->components; i++)
            to = put_signed(to, scan->predictor[i] - jpeg->noted_predictor[i]);
        jpeg->points_bytes = (size_t)(to - index->points);
    }
    jpeg->noted_bits = bits;
    memcpy(jpeg->noted_predictor, scan->predictor, sizeof jpeg->noted_predictor);
}

bool hr__jpeg_advance(struct hr_jpeg *jpeg, int32_t my, int32_t mx, int32_t to,
                      bool (*mcus)(struct hr_jpeg_scan *, int32_t))
{
    int32_t step, over;

    if (!jpeg->records_points || my < jpeg->known)
        return hr__jpeg_run(jpeg, to - mx, mcus);
    step = jpeg->index->step;
    for (over = mx % step; mx < to; over = 0) {
        int32_t count = to - mx < step - over ? to - mx : step - over;

        if (over == 0)
            record_point(jpeg, my, mx);
        if (!mcus(&jpeg->scan, count)) /* no restart marker can follow */
            return false;
        jpeg->scan.first += count;
        jpeg->went += count;
        mx += count;
    }
    return true;
}

bool hr__jpeg_reach(struct hr_jpeg *jpeg, int32_t my)
{
    bool (*skip)(struct hr_jpeg_scan *, int32_t) = jpeg->kernels->skip;
    int32_t at = jpeg->known;

    assert(my >= jpeg->known);
    if (at > 0) {
        int32_t mx = points_of_row(jpeg->index) * jpeg->index->step;

        if (!hr__jpeg_seek(jpeg, at - 1, mx) ||
            !hr__jpeg_advance(jpeg, at - 1, mx, jpeg->mcus_x, skip))
            return false;
    }
    for (; at < my; at++)
        if (!hr__jpeg_advance(jpeg, at, 0, jpeg->mcus_x, skip))
            return false;
    return true;
}

/* Counts the stuffed zeros: one after each 0xFF of the unstuffed data. */
static size_t count_stuffed(const uint8_t *data, size_t bytes)
{
    typedef uint8_t wide __attribute__((vector_size(16)));
    size_t count = 0, i = 0;

    while (i + sizeof(wide) <= bytes) {
        wide sums = {0}, next;

        for (int k = 0; k < UINT8_MAX && i + sizeof next <= bytes;
             k++, i += sizeof next) {
            memcpy(&next, data + i, sizeof next);
            sums -= (wide)(next == 0xFF);
        }
        for (size_t k = 0; k < sizeof sums; k++)
            count += sums[k];
    }
    for (; i < bytes; i++)
        count += data[i] == 0xFF;
    return count;
}

void hr__jpeg_keep_index(struct hr_jpeg *jpeg)
{
    struct hr_jpeg_index *index = jpeg->index;
    const struct hr_jpeg_row *above = NULL;

    if (index == NULL)
        return;
    index->went = jpeg->went;
    index->would = jpeg->my1 * jpeg->mcus_x;
    if (!jpeg->records_points)
        return;
    if (jpeg->known > 0)
        above = &index->row[jpeg->known - 1];
    for (int32_t my = jpeg->known; my < jpeg->my1; my++) {
        struct hr_jpeg_row *row = &index->row[my];
        uint32_t from = above != NULL ? above->unstuffed : 0;

        row->at = (above != NULL ? above->at : 0) + row->unstuffed - from;
        row->at += (uint32_t)count_stuffed(jpeg->unstuffed + from - jpeg->base,
                                           row->unstuffed - from);
        above = row;
    }
    index->rows = jpeg->my1;
    index->points_bytes = jpeg->points_bytes;
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
    struct hr_jpeg_index index = {.step = step == 0 ? INT32_MAX : step};
    struct hr_image_info info;
    struct hr_image_request request = {.width = 1, .height = 1, .index = &index};
    struct hr_image_job job = {arena, data, bytes, &info, &request, NULL};

    if (hr__jpeg_probe(data, bytes, &info, NULL) != HR_OK)
        return HR_ERR_UNSUPPORTED;
    request.x = info.width - 1;
    request.y = info.height - 1;
    HR_TRY(hr__jpeg_prepare(jpeg, &job, true));
    need_skips(jpeg);
    if (jpeg->index == NULL || !hr__jpeg_reach(jpeg, jpeg->mcus_y) ||
        !hr__jpeg_is_exhausted(&jpeg->scan))
        return HR_ERR_UNSUPPORTED;
    hr__jpeg_keep_index(jpeg);
    *ret_index = index;
    return HR_OK;
}

/* ---- serialisation ---- */

#define FORM 1
#define HEAD_BYTES_MAX 26 /* version, 4 numbers about the photo, size of the points */
#define ROW_BYTES_MAX 27
#define MCUS_MAX 8192 /* in a row or column of the largest JPEG */

size_t hr__jpeg_index_room(const struct hr_jpeg_index *index)
{
    return HEAD_BYTES_MAX + (size_t)index->rows * ROW_BYTES_MAX + index->points_bytes;
}

/* The header, then each row as differences from the one above, then the points. */
size_t hr__jpeg_index_pack(const struct hr_jpeg_index *index, uint8_t *to)
{
    struct hr_jpeg_row above = {0};
    uint8_t *at = to;

    *at++ = FORM;
    *at++ = (uint8_t)index->components;
    at = put_number(at, (uint32_t)index->mcus_x);
    at = put_number(at, (uint32_t)index->mcus_y);
    at = put_number(at, (uint32_t)index->step);
    at = put_number(at, (uint32_t)index->rows);
    for (int32_t my = 0; my < index->rows; my++) {
        const struct hr_jpeg_row *row = &index->row[my];
        uint32_t unstuffed = row->unstuffed - above.unstuffed;

        at = put_number(at, unstuffed << 3 | row->bit);
        at = put_number(at, row->at - above.at - unstuffed);
        at = put_number(at, row->points_at - above.points_at);
        for (int i = 0; i < index->components; i++)
            at = put_signed(at, row->predictor[i] - above.predictor[i]);
        above = *row;
    }
    memcpy(at, index->points, index->points_bytes);
    return (size_t)(at - to) + index->points_bytes;
}

/* Offsets only grow from row to row: later code subtracts them. */
static bool get_row(const uint8_t **at, const uint8_t *end, int32_t components,
                    const struct hr_jpeg_row *above, struct hr_jpeg_row *ret_row)
{
    uint32_t place = get_number(at, end), stuffed = get_number(at, end);
    struct hr_jpeg_row row = {.bit = place & 7};

    if (__builtin_add_overflow(above->unstuffed, place >> 3, &row.unstuffed) ||
        __builtin_add_overflow(above->at, place >> 3, &row.at) ||
        __builtin_add_overflow(row.at, stuffed, &row.at) ||
        __builtin_add_overflow(above->points_at, get_number(at, end), &row.points_at))
        return false;
    for (int i = 0; i < components; i++)
        row.predictor[i] =
            (int16_t)((uint32_t)above->predictor[i] + (uint32_t)get_signed(at, end));
    *ret_row = row;
    return true;
}

enum hr_err hr__jpeg_index_unpack(struct hr_arena *arena, const uint8_t *data,
                                  size_t bytes, struct hr_jpeg_index *ret_index)
{
    const uint8_t *at = data + 2, *end = data + bytes;
    struct hr_jpeg_row above = {0};
    struct hr_jpeg_index index;

    if (bytes < 2 || data[0] != FORM || (data[1] != 1 && data[1] != 3))
        return HR_ERR_FORMAT;
    index = (struct hr_jpeg_index){.components = data[1]};
    index.mcus_x = (int32_t)get_number(&at, end);
    index.mcus_y = (int32_t)get_number(&at, end);
    index.step = (int32_t)get_number(&at, end);
    index.rows = index.rows_room = (int32_t)get_number(&at, end);
    if (index.mcus_x < 1 || index.mcus_x > MCUS_MAX || index.mcus_y < 1 ||
        index.mcus_y > MCUS_MAX || index.step < 1 || index.step > index.mcus_x ||
        index.rows < 1 || index.rows > index.mcus_y)
        return HR_ERR_FORMAT;
    index.row = hr__arena_alloc(arena, (size_t)index.rows * sizeof *index.row);
    if (index.row == NULL)
        return HR_ERR_MEMORY;
    for (int32_t my = 0; my < index.rows; my++) {
        if (!get_row(&at, end, index.components, &above, &index.row[my]))
            return HR_ERR_FORMAT;
        above = index.row[my];
    }
    index.points = (uint8_t *)(uintptr_t)at;
    index.points_bytes = (size_t)(end - at);
    if (above.points_at > index.points_bytes) /* the largest of all rows */
        return HR_ERR_FORMAT;
    *ret_index = index;
    return HR_OK;
}
