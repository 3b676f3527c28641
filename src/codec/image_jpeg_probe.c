/*
 * codec/image_jpeg_probe.c - reads the header of a JPEG without a decoder.
 *
 * Markers are found as libjpeg finds them. What neither decoder can read is rejected here
 * by name: arithmetic coding, 12 bits, lossless, two components. Of EXIF only the
 * orientation is read.
 */
#include "codec/image_priv.h"
#include "core/error.h"

#include <stdio.h>
#include <string.h>

#include <jpeglib.h> /* for its limits */

/* Finds the next marker at or after *at as libjpeg does, skipping stray bytes and fill
 * bytes. Returns 0 at the end of the data; otherwise *at is just after the marker. */
static int next_marker(const uint8_t *data, size_t bytes, size_t *at)
{
    size_t i = *at;

    for (;;) {
        const uint8_t *ff = i < bytes ? memchr(data + i, 0xFF, bytes - i) : NULL;

        if (ff == NULL)
            return 0;
        i = (size_t)(ff - data) + 1;
        while (i < bytes && data[i] == 0xFF)
            i++;
        if (i == bytes)
            return 0;
        if (data[i++] != 0) {
            *at = i;
            return data[i - 1];
        }
    }
}

static enum hr_err
check_frame(const struct hr_image_info *info, size_t segment, struct hr_error *reterr)
{
    if (segment != 8 + 3 * (size_t)info->channels)
        return hr__fail(reterr, HR_ERR_FORMAT, "JPEG frame header has a wrong length");
    if (info->width == 0 || info->height == 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "JPEG is %dx%d", info->width,
                        info->height);
    if (info->width > JPEG_MAX_DIMENSION || info->height > JPEG_MAX_DIMENSION)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "JPEG is %dx%d, the format allows at most %d per side",
                        info->width, info->height, (int)JPEG_MAX_DIMENSION);
    if (info->bit_depth != 8)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "JPEG with %d bits per sample",
                        info->bit_depth);
    if (info->channels != 1 && info->channels != 3 && info->channels != 4)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "JPEG with %d components",
                        info->channels);
    return HR_OK;
}

/* Whether all coefficients are held until the last scan: not if one scan has all
 * components, from first to last. `p` points at the length of the scan's header. */
static bool has_many_scans(const uint8_t *p, size_t bytes, int frame,
                           const struct hr_image_info *info)
{
    return frame == 0xC2 || (bytes > 2 && p[2] < info->channels);
}

/* Sets the samples per pixel from the sampling factors, which begin at `p`. */
static void count_samples(const uint8_t *p, struct hr_image_info *info)
{
    int across = 1, down = 1, sum = 0;

    for (int32_t i = 0; i < info->channels; i++, p += 3) {
        int h = p[1] >> 4, v = p[1] & 15;

        across = h > across ? h : across;
        down = v > down ? v : down;
        sum += h * v;
    }
    info->samples = (double)sum / (across * down);
}

/* Reads the frame header of marker SOFn; `p` points at its length, whose value is
 * `segment`. */
static enum hr_err read_frame(int marker, const uint8_t *p, size_t segment,
                              struct hr_image_info *info, struct hr_error *reterr)
{
    if (marker == 0xC3 || marker == 0xC7 || marker == 0xCB || marker == 0xCF)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "lossless JPEG");
    if (marker > 0xC8)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "arithmetic-coded JPEG");
    if (marker > 0xC2)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "hierarchical JPEG");
    if (segment < 8)
        return hr__fail(reterr, HR_ERR_FORMAT, "JPEG frame header has a wrong length");
    if (info->width != 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "JPEG has two frame headers");
    info->bit_depth = p[2];
    info->height = (int32_t)hr__be16(p + 3);
    info->width = (int32_t)hr__be16(p + 5);
    info->channels = p[7];
    info->cmyk = p[7] == 4;
    HR_TRY(check_frame(info, segment, reterr));
    count_samples(p + 8, info);
    return HR_OK;
}

static bool is_frame(int marker)
{
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 &&
           marker != 0xCC;
}

static bool is_restart(int marker)
{
    return marker >= JPEG_RST0 && marker <= JPEG_RST0 + 7;
}

/* Markers without a length. */
static bool is_bare(int marker)
{
    return is_restart(marker) || marker == 0x01;
}

/* Markers that libjpeg accepts in a header: DHT, DAC, DQT, DNL, DRI, APPn, COM. */
static bool is_known(int marker)
{
    return marker == 0xC4 || marker == 0xCC || (marker >= 0xDB && marker <= 0xDD) ||
           (marker >= 0xE0 && marker <= 0xEF) || marker == 0xFE;
}

static bool is_exif(int marker, const uint8_t *p, size_t segment)
{
    return marker == 0xE1 && segment >= 8 && memcmp(p + 2, "Exif\0\0", 6) == 0;
}

enum hr_err hr__jpeg_probe(const uint8_t *data, size_t bytes,
                           struct hr_image_info *ret_info, struct hr_error *reterr)
{
    struct hr_image_info info = {.format = HR_IMAGE_JPEG};
    size_t at = 2;
    int frame = 0;

    for (;;) {
        int marker = next_marker(data, bytes, &at);
        size_t segment;

        if (is_bare(marker))
            continue;
        if (marker == 0xD9)
            return hr__fail(reterr, HR_ERR_FORMAT, "JPEG ends before its first scan");
        if (marker == 0xDA)
            break;
        segment = bytes - at >= 2 ? hr__be16(data + at) : 0;
        if (marker == 0 || segment > bytes - at || bytes - at < 2)
            return hr__fail(reterr, HR_ERR_FORMAT, "JPEG header is cut off");
        if (segment < 2 || !(is_known(marker) || is_frame(marker)))
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "JPEG header is damaged at byte %zu (marker 0x%02X)", at - 2,
                            (unsigned)marker);
        if (is_frame(marker)) {
            HR_TRY(read_frame(marker, data + at, segment, &info, reterr));
            frame = marker;
        } else if (info.orientation == 0 && is_exif(marker, data + at, segment)) {
            info.orientation = hr__exif_orientation(data + at + 8, segment - 8);
        }
        at += segment;
    }
    if (info.width == 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "JPEG has no frame header");
    if (info.orientation == 0)
        info.orientation = 1;
    if (has_many_scans(data + at, bytes - at, frame, &info)) /* 16 bits each */
        info.held_bytes =
            (uint64_t)(2 * info.samples * (double)info.width * (double)info.height);
    *ret_info = info;
    return HR_OK;
}
