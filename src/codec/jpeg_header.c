/*
 * codec/jpeg_header.c - parses the header of a JPEG up to its only scan (T.81, annex B).
 *
 * Accepts only what it understands completely and declines the rest without a reason:
 * libjpeg-turbo then reports what is wrong with a file. The colour space follows
 * libjpeg's rule: a JFIF marker means YCbCr, otherwise an Adobe marker decides, otherwise
 * the component ids. RGB is declined.
 */
#include "codec/jpeg_priv.h"

#include <string.h>

#define QUANT_MAX 4095 /* real photos have smaller steps; larger ones would overflow */

const uint8_t hr__jpeg_natural[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* A marker segment's data, after its length. */
struct segment {
    const uint8_t *at;
    size_t bytes;
};

static int32_t be16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

static bool read_quant(struct segment s, struct hr_jpeg_header *header)
{
    while (s.bytes > 0) {
        int wide = s.at[0] >> 4, id = s.at[0] & 15, i;
        size_t bytes = 1 + (wide != 0 ? 128 : 64);

        if (wide > 1 || id > 3 || s.bytes < bytes)
            return false;
        for (i = 0; i < 64; i++) {
            int32_t q = wide != 0 ? be16(s.at + 1 + 2 * i) : s.at[1 + i];

            if (q == 0 || q > QUANT_MAX)
                return false;
            header->quant[id][hr__jpeg_natural[i]] = (uint16_t)q;
        }
        s.at += bytes;
        s.bytes -= bytes;
    }
    return true;
}

static bool read_huffman(struct segment s, struct hr_jpeg_header *header)
{
    while (s.bytes > 0) {
        size_t symbols = 0, i;
        int id;

        if (s.bytes < 17)
            return false;
        id = s.at[0] & 15;
        for (i = 1; i <= 16; i++)
            symbols += s.at[i];
        if (s.at[0] >> 4 > 1 || id > 3 || symbols > 256 || s.bytes < 17 + symbols)
            return false;
        *(s.at[0] >> 4 != 0 ? &header->ac[id] : &header->dc[id]) = s.at + 1;
        s.at += 17 + symbols;
        s.bytes -= 17 + symbols;
    }
    return true;
}

/* Chroma must be sampled once per MCU, luma once or twice in each direction. */
static bool is_sampling_known(const struct hr_jpeg_header *header)
{
    const struct hr_jpeg_component *c = header->component;
    int i;

    if (c[0].h < 1 || c[0].h > 2 || c[0].v < 1 || c[0].v > 2)
        return false;
    for (i = 1; i < header->components; i++)
        if (c[i].h != 1 || c[i].v != 1 || c[i].id == c[0].id)
            return false;
    return header->components == 1 || c[1].id != c[2].id;
}

static bool read_frame(struct segment s, struct hr_jpeg_header *header)
{
    int i;

    if (header->components != 0 || s.bytes < 6 || s.at[0] != 8)
        return false;
    header->height = be16(s.at + 1);
    header->width = be16(s.at + 3);
    header->components = s.at[5];
    if ((header->components != 1 && header->components != 3) ||
        s.bytes != 6 + 3 * (size_t)header->components || header->width == 0 ||
        header->height == 0)
        return false;
    for (i = 0; i < header->components; i++) {
        const uint8_t *p = s.at + 6 + 3 * i;
        struct hr_jpeg_component c = {.id = p[0], .h = p[1] >> 4, .v = p[1] & 15};

        if (p[2] > 3)
            return false;
        c.quant = p[2];
        header->component[i] = c;
    }
    if (!is_sampling_known(header))
        return false;
    /* A single component is not interleaved: its sampling factors matter only for how
     * many rows of blocks libjpeg reads at once. */
    header->mcu_rows_per_read = header->components == 1 ? header->component[0].v : 1;
    if (header->components == 1)
        header->component[0].h = header->component[0].v = 1;
    return true;
}

static bool read_scan(struct segment s, struct hr_jpeg_header *header)
{
    int n = header->components, i;

    if (n == 0 || s.bytes != 4 + 2 * (size_t)n || s.at[0] != n)
        return false;
    for (i = 0; i < n; i++) {
        struct hr_jpeg_component *c = &header->component[i];
        const uint8_t *p = s.at + 1 + 2 * i;

        c->dc = p[1] >> 4;
        c->ac = p[1] & 15;
        if (p[0] != c->id || c->dc > 3 || c->ac > 3 || header->dc[c->dc] == NULL ||
            header->ac[c->ac] == NULL || header->quant[c->quant][0] == 0)
            return false;
    }
    return memcmp(s.at + 1 + 2 * n, "\0\x3F\0", 3) == 0;
}

static void read_app(int marker, struct segment s, struct hr_jpeg_header *header)
{
    if (marker == 0xE0 && s.bytes >= 14 && memcmp(s.at, "JFIF", 5) == 0)
        header->jfif = true;
    if (marker == 0xEE && s.bytes >= 12 && memcmp(s.at, "Adobe", 5) == 0) {
        header->adobe = true;
        header->adobe_transform = s.at[11];
    }
}

static bool read_segment(int marker, struct segment s, struct hr_jpeg_header *header)
{
    switch (marker) {
    case 0xC0:
    case 0xC1:
        return read_frame(s, header);
    case 0xC4:
        return read_huffman(s, header);
    case 0xDA:
        return read_scan(s, header);
    case 0xDB:
        return read_quant(s, header);
    case 0xDD:
        header->restart = s.bytes == 2 ? be16(s.at) : 0;
        return s.bytes == 2;
    case 0xFE:
        return true;
    default:
        read_app(marker, s, header);
        return marker >= 0xE0 && marker <= 0xEF;
    }
}

static bool is_colour_known(const struct hr_jpeg_header *header)
{
    const struct hr_jpeg_component *c = header->component;

    if (header->components == 1 || header->jfif)
        return true;
    if (header->adobe)
        return header->adobe_transform != 0;
    return !(c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B');
}

bool hr__jpeg_parse(const uint8_t *data, size_t bytes, struct hr_jpeg_header *ret_header)
{
    struct hr_jpeg_header header = {.data_end = data + bytes};
    size_t at = 2;

    while (bytes >= 4 && at <= bytes - 4 && data[at] == 0xFF) {
        int marker = data[at + 1];
        size_t length = (size_t)be16(data + at + 2);
        struct segment segment = {data + at + 4, length - 2};

        if (length < 2 || length > bytes - at - 2 ||
            !read_segment(marker, segment, &header))
            return false;
        at += 2 + length;
        if (marker == 0xDA) {
            header.scan = data + at;
            *ret_header = header;
            return is_colour_known(&header);
        }
    }
    return false;
}
