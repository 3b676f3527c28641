/*
 * codec/jpeg_seen.h - what earlier decodes of a photo have made, for the next one.
 *
 * Two views of a photo overlap. Who asks for windows of one file again and again gives
 * them one hr_jpeg_seen (image.h: `seen` of a request): the samples of each decode stay
 * in the arena, and a later one at the same scale takes the MCUs that it finds there
 * instead of decoding them. What it does not find it decodes, so nothing depends on order
 * or number of the windows, and the pixels are those of a decode alone.
 *
 * Whole MCUs are kept, all components of a row. A gray window has luma only and is of use
 * to gray ones. An eighth decode and those behind it take, and leave nothing.
 */
#ifndef HR_CODEC_JPEG_SEEN_H
#define HR_CODEC_JPEG_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_JPEG_SEEN_MAX 7

struct hr_jpeg_seen_part {
    int32_t scale_log2, planes;
    bool low;                   /* made of low frequencies only */
    int32_t mx0, mx1, my0, my1; /* MCUs */
    uint8_t *samples[3];        /* of MCU (mx0, my0); rows of context are above it */
    ptrdiff_t stride[3];
};

/* {0} at first. Nothing here owns anything: the arena must be that of all decodes. */
struct hr_jpeg_seen {
    int32_t count;
    struct hr_jpeg_seen_part part[HR_JPEG_SEEN_MAX];
};

#endif
