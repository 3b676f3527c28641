/*
 * codec/image_pnm.c - PBM, PGM and PPM (P1 to P6), plain and raw.
 *
 * Samples are scaled from 0..maxval to 0..255, rounded half up. If maxval is above 255
 * they are scaled to 0..65535 first and truncated to the high byte, so that maxval 65535
 * means value >> 8. Only the first image of a file is read. Not supported: PAM (P7), PFM.
 */
#include "codec/image_priv.h"
#include "core/error.h"

#include <string.h>

struct pnm {
    const uint8_t *data;
    size_t bytes, at; /* at: just after the header once read_header returns */
    int kind;         /* 1..6 */
    uint32_t width, height, maxval;
};

static bool is_space(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(struct pnm *pnm)
{
    while (pnm->at < pnm->bytes) {
        if (pnm->data[pnm->at] == '#')
            while (pnm->at < pnm->bytes && pnm->data[pnm->at] != '\n' &&
                   pnm->data[pnm->at] != '\r')
                pnm->at++;
        else if (is_space(pnm->data[pnm->at]))
            pnm->at++;
        else
            return;
    }
}

/* Reads a decimal number up to `limit`, after white space and comments. */
static bool read_number(struct pnm *pnm, uint32_t limit, uint32_t *ret_value)
{
    uint32_t value = 0;
    size_t start;

    skip_space(pnm);
    for (start = pnm->at; pnm->at < pnm->bytes; pnm->at++) {
        uint32_t digit = pnm->data[pnm->at] - (uint32_t)'0';

        if (digit > 9)
            break;
        value = value * 10 + digit;
        if (value > limit)
            return false;
    }
    *ret_value = value;
    return pnm->at > start;
}

static bool is_bitmap(const struct pnm *pnm)
{
    return pnm->kind == 1 || pnm->kind == 4;
}

static bool is_plain(const struct pnm *pnm)
{
    return pnm->kind <= 3;
}

static int32_t channels_of(const struct pnm *pnm)
{
    return pnm->kind == 3 || pnm->kind == 6 ? 3 : 1;
}

static enum hr_err read_header(struct pnm *pnm, struct hr_error *reterr)
{
    pnm->kind = pnm->data[1] - '0';
    pnm->at = 2;
    pnm->maxval = 1;
    if (!read_number(pnm, 1U << 30, &pnm->width) ||
        !read_number(pnm, 1U << 30, &pnm->height) ||
        (!is_bitmap(pnm) && !read_number(pnm, 65535, &pnm->maxval)))
        return hr__fail(reterr, HR_ERR_FORMAT, "PNM header is damaged");
    if (pnm->width == 0 || pnm->height == 0 || pnm->maxval == 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "PNM is %ux%u with maximum %u", pnm->width,
                        pnm->height, pnm->maxval);
    if (pnm->at == pnm->bytes || !is_space(pnm->data[pnm->at]))
        return hr__fail(reterr, HR_ERR_FORMAT, "PNM header is cut off");
    pnm->at++;
    return HR_OK;
}

static int32_t depth_of(const struct pnm *pnm)
{
    if (is_bitmap(pnm))
        return 1;
    return pnm->maxval > 255 ? 16 : 8;
}

enum hr_err hr__pnm_probe(const uint8_t *data, size_t bytes,
                          struct hr_image_info *ret_info, struct hr_error *reterr)
{
    struct pnm pnm = {.data = data, .bytes = bytes};

    HR_TRY(read_header(&pnm, reterr));
    *ret_info = (struct hr_image_info){
        .format = HR_IMAGE_PNM,
        .width = (int32_t)pnm.width,
        .height = (int32_t)pnm.height,
        .channels = channels_of(&pnm),
        .bit_depth = depth_of(&pnm),
        .orientation = 1,
    };
    return HR_OK;
}

static uint8_t to_u8(const struct pnm *pnm, uint32_t value)
{
    uint32_t maxval = pnm->maxval;

    if (maxval == 255)
        return (uint8_t)value;
    if (maxval < 255)
        return (uint8_t)((value * 510 + maxval) / (2 * maxval));
    return (uint8_t)((((uint64_t)value * 131070 + maxval) / (2 * maxval)) >> 8);
}

static uint64_t raw_row_bytes(const struct pnm *pnm)
{
    uint64_t samples = (uint64_t)pnm->width * (uint64_t)channels_of(pnm);

    if (is_bitmap(pnm))
        return (samples + 7) / 8;
    return pnm->maxval > 255 ? 2 * samples : samples;
}

/* Reads samples [first, first + count) of a raw row; false if one is above maxval. */
static bool raw_row(const struct pnm *pnm, const uint8_t *row, size_t first, size_t count,
                    uint8_t *out)
{
    size_t i;

    for (i = first; i < first + count; i++, out++) {
        uint32_t value;

        if (is_bitmap(pnm))
            value = 1 ^ (row[i / 8] >> (7 - i % 8) & 1);
        else
            value = pnm->maxval > 255 ? hr__be16(row + 2 * i) : row[i];
        if (value > pnm->maxval)
            return false;
        *out = to_u8(pnm, value);
    }
    return true;
}

static bool plain_sample(struct pnm *pnm, uint8_t *out)
{
    uint32_t value;

    if (!is_bitmap(pnm)) {
        if (!read_number(pnm, pnm->maxval, &value))
            return false;
        *out = to_u8(pnm, value);
        return true;
    }
    skip_space(pnm); /* bits may follow each other without space */
    if (pnm->at == pnm->bytes || (pnm->data[pnm->at] | 1) != '1')
        return false;
    *out = pnm->data[pnm->at++] == '1' ? 0 : 255;
    return true;
}

/* Plain samples have variable width, so everything up to the window's last row is
 * read. */
static enum hr_err read_plain(struct pnm *pnm, const struct hr_image_request *request,
                              uint8_t *out, struct hr_error *reterr)
{
    size_t channels = (size_t)channels_of(pnm), row_samples = pnm->width * channels;
    size_t first = (size_t)request->x * channels;
    size_t last = first + (size_t)request->width * channels;
    int32_t y;
    size_t i;

    for (y = 0; y < request->y + request->height; y++)
        for (i = 0; i < row_samples; i++) {
            uint8_t value;

            if (!plain_sample(pnm, &value))
                return hr__fail(reterr, HR_ERR_FORMAT,
                                "PNM: invalid or missing sample in row %d", y);
            if (y >= request->y && i >= first && i < last)
                *out++ = value;
        }
    return HR_OK;
}

static enum hr_err read_raw(struct pnm *pnm, const struct hr_image_request *request,
                            uint8_t *out, struct hr_error *reterr)
{
    size_t channels = (size_t)channels_of(pnm), row_bytes = raw_row_bytes(pnm);
    size_t first = (size_t)request->x * channels;
    size_t count = (size_t)request->width * channels;
    int32_t y;

    for (y = request->y; y < request->y + request->height; y++, out += count)
        if (!raw_row(pnm, pnm->data + pnm->at + row_bytes * (size_t)y, first, count, out))
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "PNM: a sample in row %d is above the file's maximum", y);
    return HR_OK;
}

/* The least size of the data: a plain sample takes at least one byte. */
static uint64_t bytes_needed(const struct pnm *pnm)
{
    if (is_plain(pnm))
        return (uint64_t)pnm->width * pnm->height * (uint64_t)channels_of(pnm);
    return raw_row_bytes(pnm) * pnm->height;
}

static void to_channels(uint8_t *in, int32_t channels_in, uint8_t *out,
                        int32_t channels_out, size_t count)
{
    size_t i;

    if (channels_out < channels_in)
        hr__image_luma(in, 3, out, count);
    else if (channels_out > channels_in)
        for (i = 0; i < count; i++)
            memset(out + 3 * i, in[i], 3);
    else if (out != in)
        memcpy(out, in, count * (size_t)channels_in);
}

enum hr_err hr__pnm_decode(const struct hr_image_job *job, struct hr_image_part *ret_part)
{
    const struct hr_image_request *request = job->request;
    struct pnm pnm = {.data = job->data, .bytes = job->bytes};
    size_t count = (size_t)request->width * (size_t)request->height;
    int32_t channels_in, channels_out;
    uint8_t *samples, *out;

    HR_TRY(read_header(&pnm, job->reterr));
    if (pnm.width != (uint32_t)job->info->width ||
        pnm.height != (uint32_t)job->info->height)
        return hr__fail(job->reterr, HR_ERR_ARGUMENT,
                        "the data differs from what was probed");
    if (bytes_needed(&pnm) > pnm.bytes - pnm.at)
        return hr__fail(job->reterr, HR_ERR_FORMAT, "PNM: the file is cut off");
    channels_in = channels_of(&pnm);
    channels_out = hr__image_channels_out(job->info, request->channels);
    samples = hr__arena_alloc(job->arena, count * (size_t)channels_in);
    out = channels_out > channels_in
              ? hr__arena_alloc(job->arena, count * (size_t)channels_out)
              : samples;
    if (samples == NULL || out == NULL)
        return hr__fail(job->reterr, HR_ERR_MEMORY, "out of memory");
    if (is_plain(&pnm))
        HR_TRY(read_plain(&pnm, request, samples, job->reterr));
    else
        HR_TRY(read_raw(&pnm, request, samples, job->reterr));
    to_channels(samples, channels_in, out, channels_out, count);
    hr__image_part_set(ret_part, out, request->width, request->height, channels_out,
                       (size_t)request->width * (size_t)channels_out, request->x,
                       request->y, 0);
    return HR_OK;
}
