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
#include "codec/jpeg_index.h"
#include "codec/jpeg_seen.h"

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

/* Decode job->request's window. HR_ERR_UNSUPPORTED: declined, without a message;
 * HR_ERR_MEMORY: so it is. Neither touches *ret_part or what the request's index knows.
 */
HR_CHECK enum hr_err hr__jpeg_window(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                                     struct hr_image_part *ret_part);

/*
 * The window as the file has it: luma and chroma at their own resolutions, without
 * upsampling or conversion, in the arena. plane[0] is exactly the window and begins at
 * scaled pixel (x, y); the others cover it. Sample (i, j) of chroma stands for the luma
 * samples from ((i << shift_x) + chroma_x, (j << shift_y) + chroma_y) of plane[0] on, two
 * in a direction whose shift is 1. A request for gray gets luma alone.
 *
 * At full size the samples are those of libjpeg-turbo's islow. At a half or a quarter
 * they are those of its reduced transforms for a photo that has no coefficients above the
 * lowest 4x4 or 2x2 frequencies (zigzag index 24, 4): reading the others costs a quarter
 * of the time, and what they would add is finer than the samples.
 */
HR_CHECK enum hr_err hr__jpeg_planes(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                                     struct hr_image_planes *ret_planes);

#endif
