/*
 * codec/jpeg_seen.h - reuses what earlier decodes of the same photo produced.
 *
 * Two views of a photo overlap. A caller that requests several windows of one file passes
 * the same hr_jpeg_seen each time (image.h: `seen` of a request): the samples of each
 * decode stay in the arena, and later decodes at the same scale copy the MCUs found there
 * instead of decoding them again. What is not found is decoded, so the pixels equal those
 * of a single decode, whatever the order and number of windows.
 *
 * Whole MCUs are kept, with all components of a row. A gray window keeps luma only and
 * serves gray requests only. From the eighth decode on, a decode reuses parts but adds
 * none.
 */
#ifndef HR_CODEC_JPEG_SEEN_H
#define HR_CODEC_JPEG_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_JPEG_SEEN_MAX 7

struct hr_jpeg_seen_part {
    int32_t scale_log2, planes;
    bool low;                   /* decoded from low frequencies only */
    int32_t mx0, mx1, my0, my1; /* MCUs */
    uint8_t *samples[3];        /* of MCU (mx0, my0); context rows precede it */
    ptrdiff_t stride[3];
};

/* {0} initially. Owns nothing: all decodes must use the same arena. */
struct hr_jpeg_seen {
    int32_t count;
    struct hr_jpeg_seen_part part[HR_JPEG_SEEN_MAX];
};

#endif
