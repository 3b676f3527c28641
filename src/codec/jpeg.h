/*
 * codec/jpeg.h - a baseline JPEG decoder made for windows of training photos.
 *
 * It takes what nearly all photos are (Huffman-coded, 8 bits, gray or YCbCr, one scan,
 * common sampling) and declines everything else and every oddity, before or while
 * decoding. Who declines costs little; libjpeg-turbo then decodes and its words stand.
 * What it accepts equals libjpeg-turbo's islow decode with fancy upsampling, byte for
 * byte. docs/decisions/0010-own-jpeg.md says why it exists.
 */
#ifndef HR_CODEC_JPEG_H
#define HR_CODEC_JPEG_H

#include "codec/image_priv.h"

/* Which decoder takes JPEGs. */
enum hr_jpeg_path {
    HR_JPEG_AUTO,    /* our own where it accepts and is faster, else libjpeg-turbo */
    HR_JPEG_LIBJPEG, /* libjpeg-turbo always */
    HR_JPEG_OWN,     /* our own only: what it declines is HR_ERR_UNSUPPORTED */
};

/* Chosen by hr__jpeg_path_force, else by HEADRACE_JPEG=libjpeg|own (read once), else
 * AUTO. Forcing is for tests and benches. */
enum hr_jpeg_path hr__jpeg_path(void);
void hr__jpeg_path_force(enum hr_jpeg_path path);

/* Tables and buffers of one thread. Buffers grow with the photos and are given back when
 * a peak is long past. */
struct hr_jpeg;
HR_CHECK struct hr_jpeg *hr__jpeg_create(void);
void hr__jpeg_destroy(struct hr_jpeg *jpeg);

/*
 * Places in the data where decoding can begin: one for each row of MCUs, or every `step`
 * MCUs of a row as well. With it a window costs what it holds, not what lies before it.
 * An index belongs to the bytes it was made from; with others it is safe, and the pixels
 * are wrong or declined, so keep it by the content's hash.
 */
struct hr_jpeg_point {
    uint32_t at;        /* byte of the entropy-coded data, from its begin in the file */
    uint32_t unstuffed; /* the same without the stuffed zeros */
    int16_t predictor[3];
    uint8_t bit; /* of that byte, 0 the highest */
};
struct hr_jpeg_index {
    int32_t mcus_x, mcus_y;
    int32_t step, points_x;             /* MCUs between points, points in a row */
    const struct hr_jpeg_point *points; /* points_x * mcus_y */
};

/* Go through all of a file once; points in `arena`. `step` 0: one per row.
 * HR_ERR_UNSUPPORTED: declined, as also files with restart markers; HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__jpeg_index_make(struct hr_jpeg *jpeg, struct hr_arena *arena, const void *data,
                    size_t bytes, int32_t step, struct hr_jpeg_index *ret_index);

/* Use an index in the next decode, that one only. */
void hr__jpeg_index_use(struct hr_jpeg *jpeg, const struct hr_jpeg_index *index);

/* Decode job->request's window. HR_ERR_UNSUPPORTED: declined,
 * without a message; HR_ERR_MEMORY: so it is. Neither touches *ret_part. */
HR_CHECK enum hr_err hr__jpeg_window(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                                     struct hr_image_part *ret_part);

/*
 * The window as the file has it: luma and chroma at their own resolutions, without
 * upsampling or conversion, in the arena. plane[0] is exactly the window and begins at
 * scaled pixel (x, y); the others cover it. Sample (i, j) of chroma stands for the luma
 * samples from ((i << shift_x) + chroma_x, (j << shift_y) + chroma_y) of plane[0] on, two
 * in a direction whose shift is 1. A request for gray gets luma alone.
 */
HR_CHECK enum hr_err hr__jpeg_planes(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                                     struct hr_image_planes *ret_planes);

#endif
