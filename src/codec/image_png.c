/*
 * codec/image_png.c - PNG through libpng.
 *
 * All colour types and depths are output as u8: 16 bits are truncated to the high byte,
 * palettes and small depths expanded, gamma ignored (as in Pillow). Labels are the
 * numbers in the file, one byte each. Rows outside the
 * window are decoded into a scratch row, and the file is always read to its end: a wrong
 * bit inside the deflate stream shows only in the checksums after it, and must not pass
 * as pixels. Interlaced images are decoded whole.
 *
 * libpng allocates through core/alloc. It does not parse ancillary chunks other than tRNS
 * (their checksums are still verified), so decompression bombs in them have no effect.
 * Not supported: animation (the default image is decoded), colour profiles.
 */
#include "codec/image_png.h"
#include "codec/image_priv.h"
#include "core/alloc.h"
#include "core/error.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#define SIGNATURE_BYTES 8
#define HEADER_END 33      /* signature and IHDR chunk */
#define SIDE_MAX 0x7FFFFFF /* keeps row sizes far from overflow */
#define DEFLATE_RATIO 1032 /* maximum expansion of deflate */

/* ---- the header, read without libpng ---- */

static bool is_depth(int colour, int depth)
{
    switch (colour) {
    case PNG_COLOR_TYPE_GRAY:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case PNG_COLOR_TYPE_PALETTE:
        return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case PNG_COLOR_TYPE_RGB:
    case PNG_COLOR_TYPE_GRAY_ALPHA:
    case PNG_COLOR_TYPE_RGB_ALPHA:
        return depth == 8 || depth == 16;
    default:
        return false;
    }
}

/* Scans the chunks for what the header chunk does not say: transparency and EXIF. */
static void scan_chunks(const uint8_t *data, size_t bytes, bool *ret_transparent,
                        int32_t *ret_orientation)
{
    size_t at = HEADER_END;
    bool seen_exif = false, seen_pixels = false;

    while (bytes - at >= 12) {
        size_t length = hr__be32(data + at);
        const uint8_t *type = data + at + 4;

        if (length > bytes - at - 12)
            return;
        if (memcmp(type, "tRNS", 4) == 0) {
            *ret_transparent |= !seen_pixels;
        } else if (memcmp(type, "IDAT", 4) == 0) {
            seen_pixels = true;
        } else if (memcmp(type, "eXIf", 4) == 0 && !seen_exif) {
            *ret_orientation = hr__exif_orientation_prefixed(type + 4, length);
            seen_exif = true;
        } else if (memcmp(type, "IEND", 4) == 0) {
            return;
        }
        at += length + 12;
    }
}

enum hr_err hr__png_probe(const uint8_t *data, size_t bytes,
                          struct hr_image_info *ret_info, struct hr_error *reterr)
{
    struct hr_image_info info = {.format = HR_IMAGE_PNG, .orientation = 1};
    const uint8_t *header = data + SIGNATURE_BYTES;
    bool transparent = false;
    int colour;

    if (bytes < HEADER_END)
        return hr__fail(reterr, HR_ERR_FORMAT, "PNG header is cut off");
    if (hr__be32(header) != 13 || memcmp(header + 4, "IHDR", 4) != 0)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "PNG does not begin with its header chunk");
    colour = header[17];
    info.bit_depth = header[16];
    if (hr__be32(header + 8) == 0 || hr__be32(header + 12) == 0 ||
        !is_depth(colour, info.bit_depth) || header[18] != 0 || header[19] != 0 ||
        header[20] > 1)
        return hr__fail(reterr, HR_ERR_FORMAT, "PNG header is damaged");
    if (hr__be32(header + 8) > SIDE_MAX || hr__be32(header + 12) > SIDE_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "PNG is %ux%u, at most %d per side are supported",
                        hr__be32(header + 8), hr__be32(header + 12), SIDE_MAX);
    info.width = (int32_t)hr__be32(header + 8);
    info.height = (int32_t)hr__be32(header + 12);
    scan_chunks(data, bytes, &transparent, &info.orientation);
    info.channels = (colour & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
    if ((colour & PNG_COLOR_MASK_ALPHA) != 0 || transparent)
        info.channels++;
    info.palette = colour == PNG_COLOR_TYPE_PALETTE;
    info.whole = header[20] == 1; /* interlaced */
    *ret_info = info;
    return HR_OK;
}

/* ---- decoding ---- */

struct png_job {
    const struct hr_image_job *job;
    png_structp png;
    png_infop info;
    size_t at; /* bytes read */
    struct hr_png_fault fault;
    int channels_in, channels_out; /* of libpng's rows; of the result */
    size_t row_bytes;              /* of libpng's rows */
    uint8_t *rows;                 /* the rows to keep */
    uint8_t *scratch;              /* one row to discard */
};

_Noreturn void hr__png_on_error(png_structp png, png_const_charp text)
{
    struct hr_png_fault *fault = png_get_error_ptr(png);

    if (fault->code == HR_OK)
        fault->code = fault->blame;
    snprintf(fault->text, sizeof fault->text, "%s", text);
    png_longjmp(png, 1);
}

void hr__png_on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

png_voidp hr__png_allocate(png_structp png, png_alloc_size_t bytes)
{
    struct hr_png_fault *fault = png_get_mem_ptr(png);
    void *block = hr__malloc(bytes);

    if (block == NULL)
        fault->code = HR_ERR_MEMORY;
    return block;
}

void hr__png_release(png_structp png, png_voidp block)
{
    (void)png;
    hr__free(block);
}

enum hr_err hr__png_report(const struct hr_png_fault *fault, struct hr_error *reterr)
{
    if (fault->code == HR_OK)
        return HR_OK;
    return hr__fail(reterr, fault->code, "PNG: %s",
                    fault->code == HR_ERR_MEMORY ? "out of memory" : fault->text);
}

static void png_take(png_structp png, png_bytep out, size_t bytes)
{
    struct png_job *p = png_get_io_ptr(png);

    if (bytes > p->job->bytes - p->at)
        png_error(png, "the file is cut off");
    memcpy(out, p->job->data + p->at, bytes);
    p->at += bytes;
}

static void limit_chunks(png_structp png)
{
    static const png_byte skipped[] = "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0"
                                      "pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0"
                                      "zTXt";

    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, skipped,
                                (int)(sizeof skipped / 5));
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_user_limits(png, SIDE_MAX, SIDE_MAX);
}

static void expand(struct png_job *p)
{
    png_structp png = p->png;
    enum hr_image_channels wanted = p->job->request->channels;
    int colour = png_get_color_type(png, p->info);

    png_set_strip_16(png);
    png_set_expand(png);
    if (wanted != HR_CHANNELS_UNCHANGED)
        png_set_strip_alpha(png);
    if (wanted == HR_CHANNELS_RGB && (colour & PNG_COLOR_MASK_COLOR) == 0)
        png_set_gray_to_rgb(png);
}

static void choose_rows(struct png_job *p)
{
    png_structp png = p->png;
    enum hr_image_channels wanted = p->job->request->channels;

    if (wanted == HR_CHANNELS_LABELS)
        png_set_packing(png);
    else
        expand(p);
    png_set_interlace_handling(png);
    png_read_update_info(png, p->info);
    p->channels_in = png_get_channels(png, p->info);
    p->row_bytes = png_get_rowbytes(png, p->info);
    if (wanted == HR_CHANNELS_UNCHANGED && p->channels_in != p->job->info->channels)
        png_error(png, "misplaced transparency chunk");
    p->channels_out = wanted == HR_CHANNELS_GRAY ? 1 : p->channels_in;
}

static void check_header(struct png_job *p)
{
    const struct hr_image_info *expected = p->job->info;
    uint64_t raw_max = (uint64_t)p->job->bytes * DEFLATE_RATIO;

    if (png_get_image_width(p->png, p->info) != (png_uint_32)expected->width ||
        png_get_image_height(p->png, p->info) != (png_uint_32)expected->height)
        png_error(p->png, "the header was read differently when probed");
    if (png_get_rowbytes(p->png, p->info) > raw_max / (uint64_t)expected->height)
        png_error(p->png, "the file is too short for its dimensions");
}

static void *take_memory(struct png_job *p, size_t bytes)
{
    void *block = hr__arena_alloc(p->job->arena, bytes);

    if (block == NULL) {
        p->fault.code = HR_ERR_MEMORY;
        png_error(p->png, "out of memory");
    }
    return block;
}

/* Runs all passes over the whole image; libpng fills in the pixels of each pass. */
static void read_interlaced(struct png_job *p)
{
    int32_t y, height = p->job->info->height;
    int pass;

    p->rows = take_memory(p, p->row_bytes * (size_t)height);
    for (pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
        for (y = 0; y < height; y++)
            png_read_row(p->png, p->rows + p->row_bytes * (size_t)y, NULL);
    p->rows += p->row_bytes * (size_t)p->job->request->y;
}

static void read_straight(struct png_job *p)
{
    const struct hr_image_request *request = p->job->request;
    int32_t y;

    p->rows = take_memory(p, p->row_bytes * (size_t)request->height);
    p->scratch = take_memory(p, p->row_bytes);
    for (y = 0; y < p->job->info->height; y++) {
        int32_t row = y - request->y;
        bool kept = row >= 0 && row < request->height;

        png_read_row(p->png, kept ? p->rows + p->row_bytes * (size_t)row : p->scratch,
                     NULL);
    }
}

static void read_png(struct png_job *p)
{
    png_set_read_fn(p->png, p, png_take);
    limit_chunks(p->png);
    png_read_info(p->png, p->info);
    check_header(p);
    choose_rows(p);
    if (png_get_interlace_type(p->png, p->info) != PNG_INTERLACE_NONE)
        read_interlaced(p);
    else
        read_straight(p);
    png_read_end(p->png, NULL);
}

static void set_part(struct png_job *p, struct hr_image_part *ret_part)
{
    const struct hr_image_request *request = p->job->request;
    int32_t y;

    if (p->channels_out < p->channels_in)
        for (y = 0; y < request->height; y++) {
            uint8_t *row = p->rows + p->row_bytes * (size_t)y;

            hr__image_luma(row, p->channels_in, row, (size_t)p->job->info->width);
        }
    hr__image_part_set(ret_part, p->rows + (ptrdiff_t)request->x * p->channels_out,
                       request->width, request->height, p->channels_out, p->row_bytes,
                       request->x, request->y, 0);
}

/* setjmp is called in a function without locals, so that longjmp clobbers none. */
static void try_png(struct png_job *p)
{
    if (setjmp(png_jmpbuf(p->png)) == 0)
        read_png(p);
}

enum hr_err hr__png_decode(const struct hr_image_job *job, struct hr_image_part *ret_part)
{
    struct png_job p = {.job = job, .fault.blame = HR_ERR_FORMAT};

    p.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &p.fault, hr__png_on_error,
                                     hr__png_on_warning, &p.fault, hr__png_allocate,
                                     hr__png_release);
    if (p.png != NULL)
        p.info = png_create_info_struct(p.png);
    if (p.info != NULL)
        try_png(&p);
    else
        p.fault.code = HR_ERR_MEMORY;
    png_destroy_read_struct(&p.png, &p.info, NULL);
    HR_TRY(hr__png_report(&p.fault, job->reterr));
    set_part(&p, ret_part);
    return HR_OK;
}
