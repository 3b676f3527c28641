/*
 * codec/jpeg_describe.h - describes the header of a JPEG to users.
 */
#ifndef HR_CODEC_JPEG_DESCRIBE_H
#define HR_CODEC_JPEG_DESCRIBE_H

#include "headrace/base.h"

struct hr_jpeg_description {
    int32_t sampling_x, sampling_y; /* 0: chroma components differ from each other */
    int32_t quality;                /* estimated; 0: no table */
    int32_t restart;
    bool baseline;
    const char *reason; /* why our decoder declines it; NULL: it accepts. Static. */
};

/* For data that hr__jpeg_probe accepts. */
void hr__jpeg_describe(const uint8_t *data, size_t bytes,
                       struct hr_jpeg_description *ret_description);

#endif
