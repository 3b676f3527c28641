/*
 * fuzz/fuzz_wav.c - any bytes as a WAV file. What the header promises must lie in the
 * file, and a window must have the samples of the whole.
 */
#include "codec/wav.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void compare(const struct hr_wav *wav, const uint8_t *data, size_t bytes)
{
    static float whole[SAMPLES_MAX], part[SAMPLES_MAX];
    uint64_t first = data[bytes - 1] % wav->frames, count = wav->frames - first;

    hr__wav_read(wav, data, 0, wav->frames, whole, wav->frames);
    hr__wav_read(wav, data, first, count, part, count);
    for (size_t c = 0; c < (size_t)wav->channels; c++)
        if (memcmp(whole + c * wav->frames + first, part + c * count,
                   count * sizeof *part) != 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_error error = {0};
    struct hr_wav wav;
    uint64_t frame;

    if (hr__wav_probe(data, bytes, &wav, &error) != HR_OK) {
        if (strncmp(error.message, "WAV, offset ", 12) != 0)
            abort();
        return 0;
    }
    frame = hr__sample_bytes(wav.coding) * (uint64_t)wav.channels;
    if (wav.channels < 1 || wav.rate < 1 || wav.data > bytes ||
        wav.frames > (bytes - wav.data) / frame)
        abort();
    if (wav.frames > 0 && wav.frames * (uint64_t)wav.channels <= SAMPLES_MAX)
        compare(&wav, data, bytes);
    return 0;
}
