/*
 * codec/image.c - format detection and the checks that all formats share.
 *
 * Detects the format and dispatches to image_jpeg.c, image_png.c, image_webp.c or
 * image_pnm.c. For a file of another kind the error names what it looks like: "not
 * supported" alone would send people to a hex editor.
 */
#include "codec/image_priv.h"
#include "core/alloc.h"
#include "core/error.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#define PIXELS_MAX ((uint64_t)1 << 28)

struct hr_image_decoder {
    struct hr_jpeg_decoder *jpeg; /* created on the first JPEG */
};

/* ---- format detection ---- */

static bool starts(const uint8_t *data, size_t bytes, const char *magic, size_t length)
{
    return bytes >= length && memcmp(data, magic, length) == 0;
}

static bool is_pnm(const uint8_t *data, size_t bytes)
{
    return bytes >= 3 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6' &&
           (data[2] == '#' || data[2] == ' ' || (data[2] >= '\t' && data[2] <= '\r'));
}

enum hr_image_format hr__image_sniff(const void *data, size_t bytes)
{
    const uint8_t *d = data;

    if (starts(d, bytes, "\xFF\xD8\xFF", 3))
        return HR_IMAGE_JPEG;
    if (starts(d, bytes, "\x89PNG\r\n\x1A\n", 8))
        return HR_IMAGE_PNG;
    if (bytes >= 12 && starts(d, bytes, "RIFF", 4) && memcmp(d + 8, "WEBP", 4) == 0)
        return HR_IMAGE_WEBP;
    if (is_pnm(d, bytes))
        return HR_IMAGE_PNM;
    return HR_IMAGE_UNKNOWN;
}

const char *hr__image_format_name(enum hr_image_format format)
{
    static const char *const names[] = {"unknown", "JPEG", "PNG", "WebP", "PNM"};

    return (size_t)format < sizeof names / sizeof names[0] ? names[format] : names[0];
}

static bool is_html(const uint8_t *data, size_t bytes)
{
    size_t i = 0;

    if (starts(data, bytes, "\xEF\xBB\xBF", 3))
        i = 3;
    while (i < bytes && i < 64 &&
           (data[i] == ' ' || (data[i] >= '\t' && data[i] <= '\r')))
        i++;
    if (bytes - i < 5)
        return false;
    return strncasecmp((const char *)data + i, "<html", 5) == 0 ||
           strncasecmp((const char *)data + i, "<!doc", 5) == 0;
}

/* The name for an ISO media file's brand (its "ftyp" box). */
static const char *name_of_brand(const uint8_t *brand)
{
    if (memcmp(brand, "avif", 4) == 0 || memcmp(brand, "avis", 4) == 0)
        return "AVIF";
    if (memcmp(brand, "hei", 3) == 0 || memcmp(brand, "hev", 3) == 0 ||
        memcmp(brand, "mif1", 4) == 0 || memcmp(brand, "msf1", 4) == 0)
        return "HEIC";
    return "an MP4 or QuickTime file";
}

static const char *name_of_other(const uint8_t *data, size_t bytes)
{
    static const struct {
        const char *name, *magic;
        size_t length;
    } known[] = {
        {"GIF",                        "GIF8",                    4 },
        {"BMP",                        "BM",                      2 },
        {"TIFF",                       "II*\0",                   4 },
        {"TIFF",                       "MM\0*",                   4 },
        {"JPEG XL",                    "\xFF\x0A",                2 },
        {"JPEG XL",                    "\0\0\0\x0CJXL ",          8 },
        {"JPEG 2000",                  "\0\0\0\x0CjP  ",          8 },
        {"JPEG 2000",                  "\xFF\x4F\xFF\x51",        4 },
        {"Photoshop",                  "8BPS",                    4 },
        {"OpenEXR",                    "\x76\x2F\x31\x01",        4 },
        {"PAM",                        "P7",                      2 },
        {"PFM",                        "PF",                      2 },
        {"an icon",                    "\0\0\1\0",                4 },
        {"SVG",                        "<svg",                    4 },
        {"an XML file",                "<?xml",                   5 },
        {"PDF",                        "%PDF",                    4 },
        {"a zip archive",              "PK\3\4",                  4 },
        {"a gzip file",                "\x1F\x8B",                2 },
        {"a NumPy array",              "\x93NUMPY",               6 },
        {"a Git LFS pointer",          "version https://git-lfs", 23},
        {"a PNG damaged by text mode", "\x89PNG\n",               5 },
    };
    size_t i;

    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (starts(data, bytes, known[i].magic, known[i].length))
            return known[i].name;
    if (bytes >= 12 && memcmp(data + 4, "ftyp", 4) == 0)
        return name_of_brand(data + 8);
    if (is_html(data, bytes))
        return "an HTML page";
    return NULL;
}

static bool is_zero(const uint8_t *data, size_t bytes)
{
    return data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0;
}

static enum hr_err
fail_unknown(const uint8_t *data, size_t bytes, struct hr_error *reterr)
{
    const char *name;

    if (bytes == 0)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "not an image: empty file");
    if (is_zero(data, bytes))
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "not an image: all %zu bytes are zero", bytes);
    name = name_of_other(data, bytes);
    if (name != NULL)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "not a JPEG, PNG, WebP or PNM image: it looks like %s", name);
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "not a JPEG, PNG, WebP or PNM image: it starts with %02X %02X",
                    data[0], bytes > 1 ? data[1] : 0U);
}

enum hr_err hr__image_probe(const void *data, size_t bytes,
                            struct hr_image_info *ret_info, struct hr_error *reterr)
{
    switch (hr__image_sniff(data, bytes)) {
    case HR_IMAGE_JPEG:
        return hr__jpeg_probe(data, bytes, ret_info, reterr);
    case HR_IMAGE_PNG:
        return hr__png_probe(data, bytes, ret_info, reterr);
    case HR_IMAGE_WEBP:
        return hr__webp_probe(data, bytes, ret_info, reterr);
    case HR_IMAGE_PNM:
        return hr__pnm_probe(data, bytes, ret_info, reterr);
    case HR_IMAGE_UNKNOWN:
        break;
    }
    return fail_unknown(data, bytes, reterr);
}

/* ---- decoding ---- */

enum hr_err hr__image_decoder_create(struct hr_image_decoder **ret_decoder)
{
    struct hr_image_decoder *decoder = hr__calloc(1, sizeof *decoder);

    if (decoder == NULL)
        return HR_ERR_MEMORY;
    *ret_decoder = decoder;
    return HR_OK;
}

void hr__image_decoder_destroy(struct hr_image_decoder *decoder)
{
    if (decoder == NULL)
        return;
    hr__jpeg_decoder_destroy(decoder->jpeg);
    hr__free(decoder);
}

enum hr_err
hr__image_check_labels(const struct hr_image_info *info, struct hr_error *reterr)
{
    const char *what = info->format != HR_IMAGE_PNG ? "is no PNG"
                       : info->palette              ? NULL
                       : info->channels != 1        ? "has colours or transparency"
                       : info->bit_depth > 8        ? "has 16 bits per pixel"
                                                    : NULL;

    if (what == NULL)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "this %s file %s: labels are read from PNG files with a palette, or "
                    "gray ones of up to 8 bits",
                    hr__image_format_name(info->format), what);
}

static enum hr_err
check_request(const struct hr_image_info *info, const struct hr_image_request *request,
              struct hr_error *reterr)
{
    uint64_t limit = request->pixels_max != 0 ? request->pixels_max : PIXELS_MAX;
    uint64_t pixels = (uint64_t)info->width * (uint64_t)info->height;

    if (info->width <= 0 || info->height <= 0 || request->scale_log2 < 0 ||
        request->scale_log2 > 3 || request->x < 0 || request->y < 0 ||
        request->width <= 0 || request->height <= 0 ||
        request->width > info->width - request->x ||
        request->height > info->height - request->y)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "window %dx%d at (%d, %d), scale 1/2^%d, of a %dx%d image",
                        request->width, request->height, request->x, request->y,
                        request->scale_log2, info->width, info->height);
    if (pixels > limit)
        return hr__fail(reterr, HR_ERR_LIMIT, "%s has %dx%d pixels, the limit is %llu",
                        hr__image_format_name(info->format), info->width, info->height,
                        (unsigned long long)limit);
    return request->channels == HR_CHANNELS_LABELS ? hr__image_check_labels(info, reterr)
                                                   : HR_OK;
}

static enum hr_err need_jpeg(struct hr_image_decoder *decoder, struct hr_error *reterr)
{
    if (decoder->jpeg == NULL)
        decoder->jpeg = hr__jpeg_decoder_create();
    if (decoder->jpeg == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

static enum hr_err
decode_jpeg(struct hr_image_decoder *decoder, const struct hr_image_job *job,
            struct hr_image_part *ret_part)
{
    HR_TRY(need_jpeg(decoder, job->reterr));
    return hr__jpeg_decode(decoder->jpeg, job, ret_part);
}

enum hr_err
hr__image_decode_planes(struct hr_image_decoder *decoder, struct hr_arena *arena,
                        const void *data, size_t bytes, const struct hr_image_info *info,
                        const struct hr_image_request *request,
                        struct hr_image_planes *ret_planes, struct hr_error *reterr)
{
    struct hr_image_job job = {arena, data, bytes, info, request, reterr};

    if (info->format != HR_IMAGE_JPEG)
        return HR_ERR_UNSUPPORTED;
    HR_TRY(check_request(info, request, reterr));
    HR_TRY(need_jpeg(decoder, reterr));
    return hr__jpeg_decode_planes(decoder->jpeg, &job, ret_planes);
}

enum hr_err
hr__image_decode(struct hr_image_decoder *decoder, struct hr_arena *arena,
                 const void *data, size_t bytes, const struct hr_image_info *info,
                 const struct hr_image_request *request, struct hr_image_part *ret_part,
                 struct hr_error *reterr)
{
    struct hr_image_job job = {arena, data, bytes, info, request, reterr};

    HR_TRY(check_request(info, request, reterr));
    if (hr__image_sniff(data, bytes) != info->format)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "the data differs from what was probed");
    switch (info->format) {
    case HR_IMAGE_JPEG:
        return decode_jpeg(decoder, &job, ret_part);
    case HR_IMAGE_PNG:
        return hr__png_decode(&job, ret_part);
    case HR_IMAGE_WEBP:
        return hr__webp_decode(&job, ret_part);
    case HR_IMAGE_PNM:
        return hr__pnm_decode(&job, ret_part);
    case HR_IMAGE_UNKNOWN:
        break;
    }
    return fail_unknown(data, bytes, reterr);
}

/* ---- shared by the formats ---- */

int32_t
hr__image_channels_out(const struct hr_image_info *info, enum hr_image_channels channels)
{
    switch (channels) {
    case HR_CHANNELS_RGB:
        return 3;
    case HR_CHANNELS_GRAY:
    case HR_CHANNELS_LABELS:
        return 1;
    case HR_CHANNELS_UNCHANGED:
        break;
    }
    return info->cmyk ? 3 : info->channels;
}

void hr__image_part_set(struct hr_image_part *part, void *data, int32_t width,
                        int32_t height, int32_t channels, size_t row_stride, int32_t x,
                        int32_t y, int32_t scale_log2)
{
    assert(width > 0 && height > 0 && row_stride >= (size_t)width * (size_t)channels);
    *part = (struct hr_image_part){
        .pixels = hr__pixels_u8(data, width, height, channels),
        .x = x,
        .y = y,
        .scale_log2 = scale_log2,
    };
    part->pixels.row_stride = (int64_t)row_stride;
}

void hr__image_luma(const uint8_t *colour, int step, uint8_t *gray, size_t count)
{
    size_t i;

    assert(step == 3 || step == 4);
    for (i = 0; i < count; i++) {
        const uint8_t *p = colour + i * (size_t)step;

        gray[i] =
            (uint8_t)((19595U * p[0] + 38470U * p[1] + 7471U * p[2] + 0x8000U) >> 16);
    }
}
