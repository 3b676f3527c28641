/*
 * codec/sound_priv.h - between the formats of sound.
 */
#ifndef HR_CODEC_SOUND_PRIV_H
#define HR_CODEC_SOUND_PRIV_H

#include "codec/sound.h"

/* Checks a file's rate and frames against the request, and allocates ret_part for the
 * window. */
HR_CHECK enum hr_err
hr__sound_begin(struct hr_arena *arena, const struct hr_sound_request *request,
                uint64_t frames, int32_t channels, int32_t rate,
                struct hr_sound_part *ret_part, struct hr_error *reterr);

/* Floats of files can be anything; HR_ERR_FORMAT names the first that is not finite. */
HR_CHECK enum hr_err
hr__sound_check_finite(const struct hr_sound_part *part, struct hr_error *reterr);

#ifdef HR_SNDFILE
/* libsndfile's version, once it is loaded. */
HR_CHECK enum hr_err
hr__sndfile_version(const char **ret_version, struct hr_error *reterr);

/* Checks that pages follow each other up to one that is marked as the end, and with
 * `checksums` also their checksums. *ret_bytes, the size of the data, becomes the size
 * without what follows the end. HR_ERR_FORMAT says at which byte the file is damaged or
 * cut short. */
HR_CHECK enum hr_err hr__ogg_check(const void *data, size_t *ret_bytes, bool checksums,
                                   struct hr_error *reterr);

/* By libsndfile. */
HR_CHECK enum hr_err
hr__sndfile_decode(struct hr_arena *arena, const void *data, size_t bytes,
                   const char *looks, const struct hr_sound_request *request,
                   struct hr_sound_part *ret_part, struct hr_error *reterr);
#endif

#endif
