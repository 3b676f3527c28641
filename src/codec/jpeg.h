/*
 * codec/jpeg.h - a baseline JPEG decoder for windows of training photos.
 *
 * It accepts what nearly all photos are (Huffman-coded, 8 bits, gray or YCbCr, one scan,
 * common sampling) and declines everything else, before or while decoding. Declining is
 * cheap; libjpeg-turbo then decodes, and its messages are the ones reported. What it
 * accepts equals libjpeg-turbo's islow decode with fancy upsampling, byte for byte.
 * docs/decisions/0010-own-jpeg.md says why it exists.
 */
#ifndef HR_CODEC_JPEG_H
#define HR_CODEC_JPEG_H

#include "codec/image_priv.h"
#include "codec/jpeg_index.h"
#include "codec/jpeg_seen.h"

/* Which decoder is used for JPEG. */
enum hr_jpeg_path {
    HR_JPEG_AUTO,    /* our own where it accepts and is faster, else libjpeg-turbo */
    HR_JPEG_LIBJPEG, /* always libjpeg-turbo */
    HR_JPEG_OWN,     /* only our own: what it declines gives HR_ERR_UNSUPPORTED */
};

/* Set by hr__jpeg_path_force, else by HEADRACE_JPEG=libjpeg|own (read once), else AUTO.
 * Forcing is for tests and benchmarks. */
enum hr_jpeg_path hr__jpeg_path(void);
void hr__jpeg_path_force(enum hr_jpeg_path path);

/* Tables and buffers for one thread. Buffers grow with the photos and are freed some time
 * after a peak. */
struct hr_jpeg;
HR_CHECK struct hr_jpeg *hr__jpeg_create(void);
void hr__jpeg_destroy(struct hr_jpeg *jpeg);

/* Decodes job->request's window. HR_ERR_UNSUPPORTED: declined, without a message.
 * HR_ERR_MEMORY: out of memory. Neither changes *ret_part or the request's index. */
HR_CHECK enum hr_err hr__jpeg_window(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                                     struct hr_image_part *ret_part);

/*
 * Decodes the window as stored: luma and chroma at their own resolutions, without
 * upsampling or conversion, in the arena. plane[0] is exactly the window and begins at
 * scaled pixel (x, y); the others cover it. Chroma sample (i, j) covers the luma samples
 * of plane[0] from ((i << shift_x) + chroma_x, (j << shift_y) + chroma_y), two in a
 * direction whose shift is 1. A request for gray gets luma only.
 *
 * At full size the samples equal libjpeg-turbo's islow. At a half or a quarter they equal
 * its reduced transforms applied to the photo without coefficients above the lowest 4x4
 * or 2x2 frequencies (zigzag index 24, 4): reading the others would cost a quarter of the
 * time, for detail finer than the samples.
 */
HR_CHECK enum hr_err hr__jpeg_planes(struct hr_jpeg *jpeg, const struct hr_image_job *job,
                                     struct hr_image_planes *ret_planes);

#endif
