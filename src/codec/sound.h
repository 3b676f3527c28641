/*
 * codec/sound.h - encoded sound to samples, in windows, whatever the format.
 *
 * WAV is read by wav.c; FLAC, Ogg (Vorbis, Opus), MP3 and what else it knows by
 * libsndfile, where the build has it (HR_SNDFILE).
 */
#ifndef HR_CODEC_SOUND_H
#define HR_CODEC_SOUND_H

#include "codec/wav.h"
#include "core/arena.h"

struct hr_sound_request {
    uint64_t start;       /* first frame */
    uint64_t frames;      /* at most; 0: all that follow */
    uint64_t samples_max; /* frames times channels; more give HR_ERR_LIMIT */
    int32_t rate;         /* that the file must have; 0: any */
};

/* Samples in the arena: channel c at data + c * frames. */
struct hr_sound_part {
    float *data;
    int32_t channels, rate;
    int64_t frames;
};

/* Writes the version of libsndfile, which is loaded. HR_ERR_STATE if the build is without
 * it, HR_ERR_UNSUPPORTED if it is not installed. */
HR_CHECK enum hr_err hr__sound_version(char *text, size_t room, struct hr_error *reterr);

/*
 * Decodes the window; a file that ends within it gives fewer frames. The format is found
 * by content. HR_ERR_FORMAT if the file is damaged or has another rate,
 * HR_ERR_UNSUPPORTED if it is of no format that this build reads, naming what it looks
 * like, HR_ERR_RANGE if it ends before the window, HR_ERR_LIMIT, HR_ERR_MEMORY.
 */
HR_CHECK enum hr_err
hr__sound_decode(struct hr_arena *arena, const void *data, size_t bytes,
                 const struct hr_sound_request *request, struct hr_sound_part *ret_part,
                 struct hr_error *reterr);

#endif
