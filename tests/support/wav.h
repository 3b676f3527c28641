/*
 * tests/support/wav.h - writes WAV files into a struct hr_str, right ones and wrong ones.
 */
#ifndef HR_TESTS_WAV_H
#define HR_TESTS_WAV_H

#include <string.h>

#include "core/str.h"

struct wav_head {
    uint32_t tag, channels, rate, bits;
    uint32_t extra; /* bytes of a chunk before the samples; 0: none */
};

static inline void wav_number(struct hr_str *out, uint64_t number, size_t bytes)
{
    hr__str_add_bytes(out, &number, bytes); /* little-endian, like the machine */
}

static inline void wav_chunk(struct hr_str *out, const char *name, uint64_t bytes)
{
    hr__str_add_bytes(out, name, 4);
    wav_number(out, bytes, 4);
}

/* "RIFF" and the format chunk; tag 0xfffe: extensible, of PCM. */
static inline void wav_begin(struct hr_str *out, const struct wav_head *head)
{
    bool extensible = head->tag == 0xfffe;

    hr__str_init(out);
    wav_chunk(out, "RIFF", 0);
    hr__str_add_bytes(out, "WAVE", 4);
    wav_chunk(out, "fmt ", extensible ? 40 : 16);
    wav_number(out, head->tag, 2);
    wav_number(out, head->channels, 2);
    wav_number(out, head->rate, 4);
    wav_number(out, (uint64_t)head->rate * head->channels * head->bits / 8, 4);
    wav_number(out, head->channels * head->bits / 8, 2);
    wav_number(out, head->bits, 2);
    if (extensible) {
        wav_number(out, 22, 2);
        wav_number(out, head->bits, 2);
        wav_number(out, 0, 4);
        hr__str_add_bytes(out, "\1\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 16);
    }
    if (head->extra > 0) {
        wav_chunk(out, "LIST", head->extra);
        for (uint32_t i = 0; i < head->extra + head->extra % 2; i++)
            wav_number(out, 'x', 1);
    }
}

/* The whole file of these samples. */
static inline void wav_file(struct hr_str *out, const struct wav_head *head,
                            const void *samples, size_t bytes)
{
    uint32_t riff;

    wav_begin(out, head);
    wav_chunk(out, "data", bytes);
    hr__str_add_bytes(out, samples, bytes);
    riff = (uint32_t)out->length - 8;
    memcpy(out->text + 4, &riff, sizeof riff);
}

#endif
