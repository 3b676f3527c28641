/*
 * codec/image_encode.c - pixels to JPEG and PNG bytes.
 *
 * For tools, tests and synthetic data, not for the hot path: few settings, the whole
 * image in memory. Output grows in a core/alloc block, so the caller frees it with
 * hr__free.
 */
#include "codec/image_png.h"
#include "codec/image_priv.h"
#include "core/alloc.h"
#include "core/error.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#define FIRST_BYTES 16384

struct output {
    uint8_t *data;
    size_t bytes, room;
};

static bool output_grow(struct output *output, size_t room)
{
    uint8_t *data = hr__realloc(output->data, room);

    if (data == NULL)
        return false;
    output->data = data;
    output->room = room;
    return true;
}

static enum hr_err
check_pixels(const struct hr_pixels *pixels, int channels_max, struct hr_error *reterr)
{
    if (pixels->dtype != HR_U8 || pixels->width < 1 || pixels->height < 1 ||
        pixels->channels < 1 || pixels->channels > channels_max ||
        pixels->pixel_stride != pixels->channels)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "cannot encode %dx%d pixels with %d channels: they must be "
                        "interleaved uint8",
                        pixels->width, pixels->height, pixels->channels);
    return HR_OK;
}

static const uint8_t *row_of(const struct hr_pixels *pixels, int32_t y)
{
    return (const uint8_t *)pixels->data + y * pixels->row_stride;
}

/* ---- JPEG ---- */

struct jpeg_encoder {
    struct jpeg_error_mgr errors; /* first: libjpeg's `err` points here */
    struct jpeg_destination_mgr target;
    struct jpeg_compress_struct info;
    struct output output;
    jmp_buf escape;
    enum hr_err code;
    char text[JMSG_LENGTH_MAX];
};

static _Noreturn void jpeg_failed(j_common_ptr common)
{
    struct jpeg_encoder *encoder = (struct jpeg_encoder *)common->err;

    common->err->format_message(common, encoder->text);
    encoder->code = HR_ERR_ARGUMENT;
    longjmp(encoder->escape, 1);
}

static void jpeg_quiet(j_common_ptr common)
{
    (void)common;
}

static void jpeg_no_memory(j_compress_ptr info)
{
    struct jpeg_encoder *encoder = (struct jpeg_encoder *)info->err;

    snprintf(encoder->text, sizeof encoder->text, "out of memory");
    encoder->code = HR_ERR_MEMORY;
    longjmp(encoder->escape, 1);
}

static void target_point(struct jpeg_encoder *encoder)
{
    encoder->target.next_output_byte = encoder->output.data + encoder->output.bytes;
    encoder->target.free_in_buffer = encoder->output.room - encoder->output.bytes;
}

static void target_begin(j_compress_ptr info)
{
    struct jpeg_encoder *encoder = (struct jpeg_encoder *)info->err;

    if (!output_grow(&encoder->output, FIRST_BYTES))
        jpeg_no_memory(info);
    target_point(encoder);
}

/* libjpeg calls this when the block is full and ignores free_in_buffer. */
static boolean target_more(j_compress_ptr info)
{
    struct jpeg_encoder *encoder = (struct jpeg_encoder *)info->err;

    encoder->output.bytes = encoder->output.room;
    if (!output_grow(&encoder->output, 2 * encoder->output.room))
        jpeg_no_memory(info);
    target_point(encoder);
    return TRUE;
}

static void target_end(j_compress_ptr info)
{
    struct jpeg_encoder *encoder = (struct jpeg_encoder *)info->err;

    encoder->output.bytes = encoder->output.room - encoder->target.free_in_buffer;
}

static void set_options(struct jpeg_encoder *encoder, const struct hr_pixels *pixels,
                        const struct hr_jpeg_options *options)
{
    struct jpeg_compress_struct *info = &encoder->info;

    info->image_width = (JDIMENSION)pixels->width;
    info->image_height = (JDIMENSION)pixels->height;
    info->input_components = pixels->channels;
    info->in_color_space = pixels->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, options->quality, TRUE);
    if (pixels->channels == 3) {
        info->comp_info[0].h_samp_factor = options->sampling_x;
        info->comp_info[0].v_samp_factor = options->sampling_y;
    }
    info->optimize_coding = options->optimise;
    info->restart_in_rows = options->restart_rows;
    if (options->progressive)
        jpeg_simple_progression(info);
}

static void write_jpeg(struct jpeg_encoder *encoder, const struct hr_pixels *pixels,
                       const struct hr_jpeg_options *options)
{
    struct jpeg_compress_struct *info = &encoder->info;

    jpeg_create_compress(info);
    info->dest = &encoder->target;
    set_options(encoder, pixels, options);
    jpeg_start_compress(info, TRUE);
    while (info->next_scanline < info->image_height) {
        union {
            const uint8_t *in;
            JSAMPROW row; /* libjpeg only reads it */
        } row = {.in = row_of(pixels, (int32_t)info->next_scanline)};

        jpeg_write_scanlines(info, &row.row, 1);
    }
    jpeg_finish_compress(info);
}

static void try_jpeg(struct jpeg_encoder *encoder, const struct hr_pixels *pixels,
                     const struct hr_jpeg_options *options)
{
    if (setjmp(encoder->escape) == 0)
        write_jpeg(encoder, pixels, options);
    jpeg_destroy_compress(&encoder->info);
}

static enum hr_err
check_options(const struct hr_pixels *pixels, const struct hr_jpeg_options *options,
              struct hr_error *reterr)
{
    bool sampled = (options->sampling_x == 1 || options->sampling_x == 2 ||
                    options->sampling_x == 4) &&
                   (options->sampling_y == 1 || options->sampling_y == 2);

    HR_TRY(check_pixels(pixels, 3, reterr));
    if (pixels->channels == 2)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "JPEG needs 1 or 3 channels, not 2");
    if (options->quality < 1 || options->quality > 100 || options->restart_rows < 0 ||
        (pixels->channels == 3 && !sampled))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "invalid JPEG options: quality %d, sampling %dx%d, restart %d",
                        options->quality, options->sampling_x, options->sampling_y,
                        options->restart_rows);
    return HR_OK;
}

enum hr_err hr__image_encode_jpeg(const struct hr_pixels *pixels,
                                  const struct hr_jpeg_options *options, void **ret_data,
                                  size_t *ret_bytes, struct hr_error *reterr)
{
    struct jpeg_encoder encoder = {.code = HR_OK};

    HR_TRY(check_options(pixels, options, reterr));
    encoder.info.err = jpeg_std_error(&encoder.errors);
    encoder.errors.error_exit = jpeg_failed;
    encoder.errors.output_message = jpeg_quiet;
    encoder.target.init_destination = target_begin;
    encoder.target.empty_output_buffer = target_more;
    encoder.target.term_destination = target_end;
    try_jpeg(&encoder, pixels, options);
    if (encoder.code != HR_OK) {
        hr__free(encoder.output.data);
        return hr__fail(reterr, encoder.code, "JPEG: %s", encoder.text);
    }
    *ret_data = encoder.output.data;
    *ret_bytes = encoder.output.bytes;
    return HR_OK;
}

/* ---- PNG ---- */

struct png_encoder {
    png_structp png;
    png_infop info;
    struct output output;
    struct hr_png_fault fault;
};

static void png_put(png_structp png, png_bytep data, size_t bytes)
{
    struct png_encoder *encoder = png_get_io_ptr(png);
    struct output *output = &encoder->output;
    size_t room = output->room > 0 ? output->room : FIRST_BYTES;

    while (room - output->bytes < bytes)
        room *= 2;
    if (room != output->room && !output_grow(output, room)) {
        encoder->fault.code = HR_ERR_MEMORY;
        png_error(png, "out of memory");
    }
    memcpy(output->data + output->bytes, data, bytes);
    output->bytes += bytes;
}

static void png_flushed(png_structp png)
{
    (void)png;
}

static void write_png(struct png_encoder *encoder, const struct hr_pixels *pixels)
{
    static const int colours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                  PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    int32_t y;

    png_set_write_fn(encoder->png, encoder, png_put, png_flushed);
    png_set_user_limits(encoder->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(encoder->png, encoder->info, (png_uint_32)pixels->width,
                 (png_uint_32)pixels->height, 8, colours[pixels->channels - 1],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(encoder->png, encoder->info);
    for (y = 0; y < pixels->height; y++)
        png_write_row(encoder->png, row_of(pixels, y));
    png_write_end(encoder->png, NULL);
}

/* setjmp is called in a function without locals, so that longjmp clobbers none. */
static void try_png(struct png_encoder *encoder, const struct hr_pixels *pixels)
{
    if (setjmp(png_jmpbuf(encoder->png)) == 0)
        write_png(encoder, pixels);
}

enum hr_err hr__image_encode_png(const struct hr_pixels *pixels, void **ret_data,
                                 size_t *ret_bytes, struct hr_error *reterr)
{
    struct png_encoder encoder = {.fault.blame = HR_ERR_ARGUMENT};
    enum hr_err code;

    HR_TRY(check_pixels(pixels, 4, reterr));
    encoder.png = png_create_write_struct_2(
        PNG_LIBPNG_VER_STRING, &encoder.fault, hr__png_on_error, hr__png_on_warning,
        &encoder.fault, hr__png_allocate, hr__png_release);
    if (encoder.png != NULL)
        encoder.info = png_create_info_struct(encoder.png);
    if (encoder.info != NULL)
        try_png(&encoder, pixels);
    else
        encoder.fault.code = HR_ERR_MEMORY;
    png_destroy_write_struct(&encoder.png, &encoder.info);
    code = hr__png_report(&encoder.fault, reterr);
    if (code != HR_OK) {
        hr__free(encoder.output.data);
        return code;
    }
    *ret_data = encoder.output.data;
    *ret_bytes = encoder.output.bytes;
    return HR_OK;
}
