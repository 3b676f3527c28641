/*
 * codec/wav.h - reads windows of WAV files that are in memory.
 *
 * PCM of 8, 16, 24 and 32 bits and floats of 32 and 64 bits, plain or
 * WAVE_FORMAT_EXTENSIBLE, in RIFF or RF64 (files of more than 4 GiB). Only the chunks
 * before the samples are looked at.
 */
#ifndef HR_CODEC_WAV_H
#define HR_CODEC_WAV_H

#include <stddef.h>

#include "headrace/base.h"
#include "kernel/samples.h"

#define HR_WAV_CHANNELS_MAX 1024
#define HR_WAV_RATE_MAX 10000000

struct hr_wav {
    enum hr_sample_coding coding;
    int32_t channels, rate; /* rate in frames per second */
    uint64_t data;          /* offset of the first frame */
    uint64_t frames;
};

/* True if the bytes begin like a WAV file. */
bool hr__wav_sniff(const void *data, size_t bytes);

/*
 * Reads the header. All frames are within `bytes` afterwards. A data chunk of unknown
 * size (0xffffffff, as programs write it that cannot seek) ends with the file.
 * HR_ERR_FORMAT with the offset and the reason if the header is malformed or the file is
 * cut short; HR_ERR_UNSUPPORTED names a coding that is not supported.
 */
HR_CHECK enum hr_err hr__wav_probe(const void *data, size_t bytes, struct hr_wav *ret_wav,
                                   struct hr_error *reterr);

/* Writes frames [first, first + count), which must exist, to `out`: channel c at out + c
 * * stride, integers scaled to -1..1 (uint8: (x - 128) / 128). */
void hr__wav_read(const struct hr_wav *wav, const void *data, uint64_t first,
                  uint64_t count, float *out, size_t stride);

#endif
