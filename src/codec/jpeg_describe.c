/*
 * codec/jpeg_describe.c - describes the header of a JPEG to users.
 *
 * Separate from the parser that decides (jpeg_header.c), which is strict about every
 * byte: this one skips what it does not know, and names the first reason for declining.
 */
#include "codec/jpeg_describe.h"
#include "codec/jpeg_priv.h"

#include <string.h>

struct reading {
    struct hr_jpeg_description d;
    const uint8_t *frame; /* its segment, after the length; NULL: not seen yet */
    size_t frame_bytes;
    int sof, scan_components;
    bool adobe_rgb, has_quant, odd_quant;
};

/* Sum of the quantisation steps of the standard's luma table (T.81, K.1) at a quality, by
 * libjpeg's formula, which other encoders adopted. */
static int32_t sum_of(int quality)
{
    static const uint8_t luma[64] = {
        16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
        14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
        18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
        49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99};
    int32_t scale = quality < 50 ? 5000 / quality : 200 - 2 * quality, sum = 0;

    for (int i = 0; i < 64; i++) {
        int32_t step = (luma[i] * scale + 50) / 100;

        sum += step < 1 ? 1 : step > 255 ? 255 : step;
    }
    return sum;
}

static int32_t quality_of(int32_t sum)
{
    int32_t best = INT32_MAX;
    int quality = 1;

    for (int q = 1; q <= 100; q++) {
        int32_t off = sum_of(q) > sum ? sum_of(q) - sum : sum - sum_of(q);

        if (off <= best) {
            best = off;
            quality = q;
        }
    }
    return quality;
}

/* Table 0 is the luma table in nearly all files. */
static void read_quant(struct reading *r, const uint8_t *at, size_t bytes)
{
    while (bytes >= 65) {
        bool wide = at[0] >> 4 != 0;
        size_t used = wide ? 129 : 65;
        int32_t sum = 0;

        if (bytes < used)
            return;
        for (int i = 0; i < 64; i++) {
            int32_t step = wide ? at[1 + 2 * i] << 8 | at[2 + 2 * i] : at[1 + i];

            r->odd_quant |= step == 0 || step > 4095;
            sum += step;
        }
        if ((at[0] & 15) == 0)
            r->d.quality = quality_of(sum);
        r->has_quant = true;
        at += used;
        bytes -= used;
    }
}

static void read_sampling(struct reading *r)
{
    const uint8_t *c = r->frame + 6;
    int components = r->frame[5], i;

    r->d.sampling_x = c[1] >> 4;
    r->d.sampling_y = c[1] & 15;
    if (components == 1)
        r->d.sampling_x = r->d.sampling_y = 1;
    for (i = 1; i < components && i < 3; i++)
        if (c[3 * i + 1] != 0x11)
            r->d.sampling_x = r->d.sampling_y = 0;
}

static void read_segment(struct reading *r, int marker, const uint8_t *at, size_t bytes)
{
    if (marker == 0xDB)
        read_quant(r, at, bytes);
    else if (marker == 0xDD && bytes >= 2)
        r->d.restart = at[0] << 8 | at[1];
    else if (marker == 0xEE && bytes >= 12 && memcmp(at, "Adobe", 5) == 0)
        r->adobe_rgb = at[11] == 0;
    else if (marker == 0xDA && bytes >= 1)
        r->scan_components = at[0];
    else if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 &&
             marker != 0xCC && r->frame == NULL && bytes >= 6 &&
             bytes >= 6 + 3 * (size_t)at[5] && at[5] > 0) {
        r->frame = at;
        r->frame_bytes = bytes;
        r->sof = marker;
    }
}

static void read_header(struct reading *r, const uint8_t *data, size_t bytes)
{
    size_t at = 2;

    while (at + 4 <= bytes) {
        int marker = data[at + 1];
        size_t length = (size_t)data[at + 2] << 8 | data[at + 3];

        if (data[at] != 0xFF || marker == 0 || marker == 0xFF ||
            (marker >= 0xD0 && marker <= 0xD8)) {
            at++;
            continue;
        }
        if (length < 2 || length > bytes - at - 2)
            return;
        read_segment(r, marker, data + at + 4, length - 2);
        if (marker == 0xDA)
            return;
        at += 2 + length;
    }
}

static bool is_rgb(const struct reading *r)
{
    const uint8_t *c = r->frame + 6;

    return r->adobe_rgb || (c[0] == 'R' && c[3] == 'G' && c[6] == 'B');
}

static const char *reason_of_frame(const struct reading *r)
{
    int components = r->frame[5];

    if (r->sof == 0xC2)
        return "progressive";
    if (r->sof > 0xC8)
        return "arithmetic coding";
    if (r->sof > 0xC2)
        return "lossless or hierarchical";
    if (r->frame[0] != 8)
        return "not 8 bits per sample";
    if (components == 4)
        return "four components (CMYK)";
    if (components == 2)
        return "two components";
    if (r->d.sampling_x < 1 || r->d.sampling_x > 2 || r->d.sampling_y < 1 ||
        r->d.sampling_y > 2)
        return "unusual chroma sampling";
    if (r->scan_components != components)
        return "several scans (progressive)";
    if (components == 3 && is_rgb(r))
        return "RGB instead of luma and chroma";
    return NULL;
}

static const char *reason_of(const struct reading *r)
{
    const char *reason = r->frame != NULL ? reason_of_frame(r) : NULL;

    if (reason != NULL)
        return reason;
    if (!r->has_quant)
        return "missing quantisation table";
    if (r->odd_quant)
        return "quantisation steps of 0 or above 4095";
    return "an unusual or damaged header";
}

void hr__jpeg_describe(const uint8_t *data, size_t bytes,
                       struct hr_jpeg_description *ret_description)
{
    struct reading r = {.frame = NULL};
    struct hr_jpeg_header header;

    read_header(&r, data, bytes);
    if (r.frame != NULL) {
        read_sampling(&r);
        r.d.baseline = (r.sof == 0xC0 || r.sof == 0xC1) && r.frame[0] == 8;
    }
    if (!hr__jpeg_parse(data, bytes, &header))
        r.d.reason = reason_of(&r);
    *ret_description = r.d;
}
