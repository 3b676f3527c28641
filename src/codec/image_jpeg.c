/*
 * codec/image_jpeg.c - JPEG: a window, at full size or at 1/2, 1/4, 1/8.
 *
 * Our own decoder (jpeg.h) takes the files it accepts; this file decodes the rest with
 * libjpeg-turbo. Both give the same bytes. libjpeg-turbo transforms only the window's MCU
 * columns, skips the rows above it and stops below it. Its fancy upsampling has no
 * neighbours at the left and right edge of a crop, so we request MARGIN more pixels on
 * each side and drop them; rows need no margin, because jpeg_skip_scanlines reads the
 * context rows it needs. image_jpeg_test.c compares windows with full decodes over all
 * samplings and scales.
 *
 * The decompressor is re-created for each photo (1.2 us including the header, of 780 us
 * for a window): a reused one would apply the tables of one photo to a later one that has
 * none, and pixels would depend on history.
 *
 * Damage: libjpeg's warnings are errors here, except those that say nothing about the
 * data (see is_harmless).
 */
#include "codec/image_priv.h"
#include "codec/jpeg.h"
#include "codec/jpeg_priv.h"
#include "core/alloc.h"
#include "core/error.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

/* Scaled pixels to decode beyond the window, left and right. 1 is too few for a window
 * one pixel wide at the left edge of a 4:2:0 photo. */
#define MARGIN 2
/* A progressive bomb has thousands of scans of a few bytes each, and each takes time
 * proportional to the image; encoders write 10. */
#define SCANS_MAX 500
#define VISITS_MAX ((uint64_t)1 << 30) /* blocks times scans: 6 s of decoding */
#define ROWS_AT_ONCE 16                /* at least libjpeg's largest row group */

struct hr_jpeg_decoder {
    struct jpeg_error_mgr errors; /* first: libjpeg's `err` points here */
    struct jpeg_decompress_struct info;
    struct jpeg_progress_mgr progress;
    struct hr_jpeg *own;
    jmp_buf escape;
    enum hr_err code; /* of the failure; set before longjmp to `escape` */
    char text[JMSG_LENGTH_MAX];
    bool in_scans;   /* the header has been read */
    uint64_t blocks; /* 8x8 blocks in all components */

    /* State of the current decode; here because locals do not survive a longjmp. */
    const struct hr_image_job *job;
    int32_t x, y, width, height; /* window in scaled pixels */
    int32_t crop_x;              /* first column that libjpeg outputs */
    int32_t channels;            /* in each of `rows` */
    size_t row_bytes;            /* of `rows` */
    uint8_t *rows;               /* `height` rows from libjpeg, in the arena */
};

/* ---- errors ---- */

static struct hr_jpeg_decoder *decoder_of(j_common_ptr common)
{
    return (struct hr_jpeg_decoder *)common->err;
}

static _Noreturn void escape(struct hr_jpeg_decoder *decoder, enum hr_err code)
{
    decoder->code = code;
    longjmp(decoder->escape, 1);
}

static _Noreturn void on_error(j_common_ptr common)
{
    struct hr_jpeg_decoder *decoder = decoder_of(common);

    common->err->format_message(common, decoder->text);
    switch (common->err->msg_code) {
    case JERR_OUT_OF_MEMORY:
        escape(decoder, HR_ERR_MEMORY);
#if JPEG_LIB_VERSION < 70 /* later versions have no such message */
    case JERR_ARITH_NOTIMPL:
#endif
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
        escape(decoder, HR_ERR_UNSUPPORTED);
    default:
        escape(decoder, HR_ERR_FORMAT);
    }
}

/* Warnings that do not affect the pixels: an unknown JFIF revision or Adobe transform,
 * odd spectral limits in a sequential scan, and stray bytes in the header or before the
 * end marker. Stray bytes after a scan or before a restart marker mean that the decoder
 * is out of sync with the data; a bogus progression means that a scan is missing. */
static bool is_harmless(const struct hr_jpeg_decoder *decoder)
{
    switch (decoder->errors.msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
        return true;
    case JWRN_EXTRANEOUS_DATA:
        return !decoder->in_scans || decoder->errors.msg_parm.i[1] == JPEG_EOI;
    default:
        return false;
    }
}

static void on_message(j_common_ptr common, int level)
{
    struct hr_jpeg_decoder *decoder = decoder_of(common);

    if (level >= 0 || is_harmless(decoder))
        return;
    common->err->format_message(common, decoder->text);
    escape(decoder, HR_ERR_FORMAT);
}

static void on_output(j_common_ptr common)
{
    (void)common;
}

static void on_progress(j_common_ptr common)
{
    struct hr_jpeg_decoder *decoder = decoder_of(common);
    int scans = decoder->info.input_scan_number;

    if (scans <= SCANS_MAX && (uint64_t)scans * decoder->blocks <= VISITS_MAX)
        return;
    snprintf(decoder->text, sizeof decoder->text, "more than %d scans", scans - 1);
    escape(decoder, HR_ERR_LIMIT);
}

/* ---- creation and destruction ---- */

struct hr_jpeg_decoder *hr__jpeg_decoder_create(void)
{
    struct hr_jpeg_decoder *decoder = hr__calloc(1, sizeof *decoder);

    if (decoder == NULL)
        return NULL;
    decoder->own = hr__jpeg_create();
    if (decoder->own == NULL) {
        hr__free(decoder);
        return NULL;
    }
    jpeg_std_error(&decoder->errors);
    decoder->errors.error_exit = on_error;
    decoder->errors.emit_message = on_message;
    decoder->errors.output_message = on_output;
    decoder->progress.progress_monitor = on_progress;
    return decoder;
}

void hr__jpeg_decoder_destroy(struct hr_jpeg_decoder *decoder)
{
    if (decoder == NULL)
        return;
    hr__jpeg_destroy(decoder->own);
    hr__free(decoder);
}

/* ---- decoding; everything from here to hr__jpeg_decode may longjmp to `escape` ---- */

static _Noreturn void
fail_with(struct hr_jpeg_decoder *decoder, enum hr_err code, const char *text)
{
    snprintf(decoder->text, sizeof decoder->text, "%s", text);
    escape(decoder, code);
}

/* Each 8x8 block of a Huffman-coded frame takes at least one bit in the scan with its DC
 * value, which limits how many blocks the data can hold. Rejects bombs before memory is
 * allocated. */
static void check_data_size(struct hr_jpeg_decoder *decoder)
{
    const struct jpeg_decompress_struct *info = &decoder->info;
    int i;

    decoder->blocks = 0;
    for (i = 0; i < info->num_components; i++)
        decoder->blocks += (uint64_t)info->comp_info[i].width_in_blocks *
                           info->comp_info[i].height_in_blocks;
    if (decoder->blocks / 8 > decoder->job->bytes)
        fail_with(decoder, HR_ERR_FORMAT, "the file is too short for its dimensions");
}

static void read_header(struct hr_jpeg_decoder *decoder)
{
    struct jpeg_decompress_struct *info = &decoder->info;
    const struct hr_image_info *expected = decoder->job->info;

    jpeg_mem_src(info, decoder->job->data, (unsigned long)decoder->job->bytes);
    jpeg_read_header(info, TRUE);
    if (info->image_width != (JDIMENSION)expected->width ||
        info->image_height != (JDIMENSION)expected->height ||
        info->num_components != expected->channels)
        fail_with(decoder, HR_ERR_FORMAT, "the header was read differently when probed");
    if (info->jpeg_color_space == JCS_UNKNOWN)
        fail_with(decoder, HR_ERR_UNSUPPORTED, "unknown colour space");
    check_data_size(decoder);
}

static void choose_output(struct hr_jpeg_decoder *decoder)
{
    struct jpeg_decompress_struct *info = &decoder->info;
    enum hr_image_channels wanted = decoder->job->request->channels;

    info->scale_num = 1;
    info->scale_denom = 1U << decoder->job->request->scale_log2;
    info->dct_method = JDCT_ISLOW;
    info->do_fancy_upsampling = TRUE;
    if (info->num_components == 4)
        info->out_color_space = JCS_CMYK;
    else if (hr__image_channels_out(decoder->job->info, wanted) == 1)
        info->out_color_space = JCS_GRAYSCALE;
    else
        info->out_color_space = JCS_RGB;
}

/* A progressive file whose scans leave low-frequency bits undefined has its blocks
 * smoothed from their neighbours, which a crop would cut off. */
static bool is_smoothed(const struct jpeg_decompress_struct *info)
{
    int i, k;

    if (info->coef_bits == NULL)
        return false;
    for (i = 0; i < info->num_components; i++)
        for (k = 0; k < 10; k++)
            if (info->coef_bits[i][k] != 0)
                return true;
    return false;
}

/* The samplings for which libjpeg-turbo 2.1.5 gives the same pixels in a crop: gray,
 * 4:4:4, 4:2:2, 4:4:0, 4:2:0, 4:1:1, and CMYK with the same factors. For others, such as
 * 2x2 luma with 1x2 and 2x1 chroma, it does not at some scales. */
static bool is_ordinary(const struct jpeg_decompress_struct *info)
{
    int h = info->comp_info[0].h_samp_factor, v = info->comp_info[0].v_samp_factor, i;

    if (info->num_components == 1)
        return true;
    for (i = 1; i < info->num_components; i++) {
        const jpeg_component_info *component = &info->comp_info[i];
        bool is_one = component->h_samp_factor == 1 && component->v_samp_factor == 1;
        bool is_luma = component->h_samp_factor == h && component->v_samp_factor == v;

        if (!(i == 3 ? is_luma : is_one))
            return false;
    }
    return (h <= 2 && v <= 2) || (h == 4 && v == 1);
}

static void place_window(struct hr_jpeg_decoder *decoder)
{
    const struct hr_image_request *request = decoder->job->request;
    int k = request->scale_log2;
    int32_t up = (1 << k) - 1;

    decoder->x = request->x >> k;
    decoder->y = request->y >> k;
    decoder->width = ((request->x + request->width + up) >> k) - decoder->x;
    decoder->height = ((request->y + request->height + up) >> k) - decoder->y;
}

static void crop_columns(struct hr_jpeg_decoder *decoder)
{
    struct jpeg_decompress_struct *info = &decoder->info;
    int32_t full = (int32_t)info->output_width;
    int32_t left = decoder->x > MARGIN ? decoder->x - MARGIN : 0;
    int32_t right = decoder->x + decoder->width;
    JDIMENSION x = (JDIMENSION)left, width;

    right = full - right > MARGIN ? right + MARGIN : full;
    width = (JDIMENSION)(right - left);
    if (left > 0 || right < full)
        jpeg_crop_scanline(info, &x, &width);
    decoder->crop_x = (int32_t)x;
}

/* Reads `rows` rows into decoder->rows; with stride 0, all into its first row. */
static void read_rows(struct hr_jpeg_decoder *decoder, uint32_t rows, size_t stride)
{
    struct jpeg_decompress_struct *info = &decoder->info;
    uint32_t done = 0;

    while (done < rows) {
        JSAMPROW row[ROWS_AT_ONCE];
        uint32_t i, count = rows - done < ROWS_AT_ONCE ? rows - done : ROWS_AT_ONCE;

        for (i = 0; i < count; i++)
            row[i] = decoder->rows + (done + i) * stride;
        done += jpeg_read_scanlines(info, row, count);
    }
}

static void decode_window(struct hr_jpeg_decoder *decoder)
{
    struct jpeg_decompress_struct *info = &decoder->info;
    bool crops;

    jpeg_create_decompress(info);
    info->progress = &decoder->progress;
    read_header(decoder);
    choose_output(decoder);
    decoder->in_scans = true;
    jpeg_start_decompress(info);
    place_window(decoder);
    crops = is_ordinary(info) && !is_smoothed(info);
    decoder->crop_x = 0;
    if (crops)
        crop_columns(decoder);
    decoder->channels = info->output_components;
    decoder->row_bytes = (size_t)info->output_width * (size_t)decoder->channels;
    decoder->rows = hr__arena_alloc(decoder->job->arena,
                                    decoder->row_bytes * (size_t)decoder->height);
    if (decoder->rows == NULL)
        fail_with(decoder, HR_ERR_MEMORY, "out of memory");
    if (!crops)
        read_rows(decoder, (uint32_t)decoder->y, 0);
    else if (decoder->y > 0)
        jpeg_skip_scanlines(info, (JDIMENSION)decoder->y);
    read_rows(decoder, (uint32_t)decoder->height, decoder->row_bytes);
}

/* ---- CMYK ---- */

/* a * b / 255, rounded, like Pillow's MULDIV255. */
static uint8_t mul255(uint32_t a, uint32_t b)
{
    uint32_t t = a * b + 128;

    return (uint8_t)(((t >> 8) + t) >> 8);
}

/* JPEG files store inverted CMYK (Adobe's convention, which Pillow assumes for all): a
 * large stored k is light. */
static void cmyk_to_rgb(uint8_t *pixel, const uint8_t *cmyk)
{
    uint32_t light = cmyk[3];
    int i;

    for (i = 0; i < 3; i++)
        pixel[i] = (uint8_t)(light - mul255(255U - cmyk[i], light));
}

/* Converts the rows to RGB or gray in place; output pixels are smaller, so writes never
 * overtake reads. */
static void convert_cmyk(struct hr_jpeg_decoder *decoder, int32_t channels_out)
{
    int32_t x, y, width = (int32_t)decoder->info.output_width;

    for (y = 0; y < decoder->height; y++) {
        uint8_t *row = decoder->rows + (size_t)y * decoder->row_bytes;

        for (x = 0; x < width; x++)
            cmyk_to_rgb(row + 3 * x, (const uint8_t[4]){row[4 * x], row[4 * x + 1],
                                                        row[4 * x + 2], row[4 * x + 3]});
        if (channels_out == 1)
            hr__image_luma(row, 3, row, (size_t)width);
    }
}

/* ---- entry points ---- */

static void set_part(struct hr_jpeg_decoder *decoder, struct hr_image_part *ret_part)
{
    const struct hr_image_request *request = decoder->job->request;
    int32_t channels = hr__image_channels_out(decoder->job->info, request->channels);
    int32_t margin = decoder->x - decoder->crop_x;

    if (decoder->channels == 4)
        convert_cmyk(decoder, channels);
    hr__image_part_set(ret_part, decoder->rows + (ptrdiff_t)margin * channels,
                       decoder->width, decoder->height, channels, decoder->row_bytes,
                       decoder->x, decoder->y, request->scale_log2);
}

static enum hr_err
decode_libjpeg(struct hr_jpeg_decoder *decoder, const struct hr_image_job *job,
               struct hr_image_part *ret_part)
{
    decoder->job = job;
    decoder->code = HR_OK;
    decoder->in_scans = false;
    memset(&decoder->info, 0, sizeof decoder->info);
    decoder->info.err = &decoder->errors;
    if (setjmp(decoder->escape) == 0) {
        decode_window(decoder);
        set_part(decoder, ret_part);
    } else {
        hr__fail(job->reterr, decoder->code, "JPEG: %s", decoder->text);
    }
    jpeg_destroy_decompress(&decoder->info);
    decoder->job = NULL;
    return decoder->code;
}

/* libjpeg-turbo has SIMD code on every machine. Where ours only has plain C it is slower:
 * 1.0 ms against 0.8 for a window of a photo. */
static bool prefers_own(enum hr_jpeg_path path)
{
    return path == HR_JPEG_OWN ||
           (path == HR_JPEG_AUTO && hr__jpeg_kernels() != &hr__jpeg_kernels_c);
}

/* The decoder may have declined because of a wrong index. Empties the index and returns
 * true if the caller should retry without it. */
static bool drop_index(const struct hr_image_job *job)
{
    struct hr_jpeg_index *index = job->request->index;

    if (index == NULL || index->rows == 0)
        return false;
    *index = (struct hr_jpeg_index){0};
    return true;
}

static enum hr_err
decode_own(struct hr_jpeg_decoder *decoder, const struct hr_image_job *job,
           struct hr_image_part *ret_part)
{
    enum hr_err err;

    do
        err = hr__jpeg_window(decoder->own, job, ret_part);
    while (err == HR_ERR_UNSUPPORTED && drop_index(job));
    return err;
}

enum hr_err
hr__jpeg_decode(struct hr_jpeg_decoder *decoder, const struct hr_image_job *job,
                struct hr_image_part *ret_part)
{
    enum hr_jpeg_path path = hr__jpeg_path();
    enum hr_err err = HR_ERR_UNSUPPORTED;

    if (prefers_own(path))
        err = decode_own(decoder, job, ret_part);
    if (err == HR_ERR_UNSUPPORTED && path != HR_JPEG_OWN)
        return decode_libjpeg(decoder, job, ret_part);
    if (err == HR_ERR_UNSUPPORTED)
        return hr__fail(job->reterr, err,
                        "JPEG: not supported by Headrace's own decoder");
    if (err == HR_ERR_MEMORY)
        return hr__fail(job->reterr, err, "out of memory to decode a JPEG");
    return err;
}

enum hr_err
hr__jpeg_decode_planes(struct hr_jpeg_decoder *decoder, const struct hr_image_job *job,
                       struct hr_image_planes *ret_planes)
{
    enum hr_err err;

    if (hr__jpeg_path() == HR_JPEG_LIBJPEG)
        return HR_ERR_UNSUPPORTED;
    do
        err = hr__jpeg_planes(decoder->own, job, ret_planes);
    while (err == HR_ERR_UNSUPPORTED && drop_index(job));
    return err;
}
