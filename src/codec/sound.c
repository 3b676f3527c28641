/*
 * codec/sound.c - chooses the decoder by the first bytes.
 */
#include "codec/sound_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/library.h"

/* What the bytes look like, for messages; formats of libsndfile's come first. MP3 without
 * tags begins with a frame of layer III of MPEG 1, 2 or 2.5, with or without a checksum.
 */
static const struct {
    const char *magic, *name;
    bool sndfile;
} formats[] = {
    {"fLaC",     "a FLAC file",           true },
    {"OggS",     "an Ogg file",           true },
    {"ID3",      "an MP3 file",           true },
    {"\xff\xfa", "an MP3 file",           true },
    {"\xff\xfb", "an MP3 file",           true },
    {"\xff\xf2", "an MP3 file",           true },
    {"\xff\xf3", "an MP3 file",           true },
    {"\xff\xe2", "an MP3 file",           true },
    {"\xff\xe3", "an MP3 file",           true },
    {"FORM",     "an AIFF file",          true },
    {"RIFX",     "a big-endian WAV file", true },
    {"caff",     "a CAF file",            true },
    {"<",        "an HTML or XML page",   false},
    {"\x89PNG",  "a PNG image",           false},
    {"\xff\xd8", "a JPEG image",          false},
};

static const char *looks_like(const char *data, size_t bytes, bool *ret_sndfile)
{
    *ret_sndfile = false;
    if (bytes == 0)
        return "an empty file";
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        size_t length = strlen(formats[i].magic);

        if (bytes < length || memcmp(data, formats[i].magic, length) != 0)
            continue;
        *ret_sndfile = formats[i].sndfile;
        return formats[i].name;
    }
    return "no sound file that is known";
}

enum hr_err
hr__sound_begin(struct hr_arena *arena, const struct hr_sound_request *request,
                uint64_t frames, int32_t channels, int32_t rate,
                struct hr_sound_part *ret_part, struct hr_error *reterr)
{
    uint64_t count;

    if (request->rate > 0 && rate != request->rate)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the file has %d Hz, and `rate` says that all have %d: leave "
                        "`rate` out and put audio.resample after it",
                        (int)rate, (int)request->rate);
    if (request->start > 0 && request->start >= frames)
        return hr__fail(reterr, HR_ERR_RANGE,
                        "the file has %llu frames, and `start` is %llu",
                        (unsigned long long)frames, (unsigned long long)request->start);
    count = frames - request->start;
    if (request->frames > 0 && request->frames < count)
        count = request->frames;
    if (count > request->samples_max / (uint64_t)channels)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "%llu frames of %d channels are more than the limit of %llu "
                        "samples: decode a window (`frames`) or raise `samples_max`",
                        (unsigned long long)count, (int)channels,
                        (unsigned long long)request->samples_max);
    *ret_part = (struct hr_sound_part){
        .channels = channels, .rate = rate, .frames = (int64_t)count};
    ret_part->data =
        hr__arena_alloc(arena, (size_t)count * (size_t)channels * sizeof(float) + 1);
    if (ret_part->data == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for %llu samples",
                        (unsigned long long)count * (unsigned)channels);
    return HR_OK;
}

enum hr_err
hr__sound_check_finite(const struct hr_sound_part *part, struct hr_error *reterr)
{
    for (int64_t i = 0; i < part->channels * part->frames; i++)
        if (!isfinite(part->data[i]))
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "frame %lld of channel %lld is not a finite number",
                            (long long)(i % part->frames), (long long)(i / part->frames));
    return HR_OK;
}

static enum hr_err
decode_wav(struct hr_arena *arena, const void *data, const struct hr_wav *wav,
           const struct hr_sound_request *request, struct hr_sound_part *ret_part,
           struct hr_error *reterr)
{
    HR_TRY(hr__sound_begin(arena, request, wav->frames, wav->channels, wav->rate,
                           ret_part, reterr));
    hr__wav_read(wav, data, request->start, (uint64_t)ret_part->frames, ret_part->data,
                 (size_t)ret_part->frames);
    if (wav->coding != HR_SAMPLE_F32 && wav->coding != HR_SAMPLE_F64)
        return HR_OK;
    return hr__sound_check_finite(ret_part, reterr);
}

enum hr_err hr__sound_decode(struct hr_arena *arena, const void *data, size_t bytes,
                             const struct hr_sound_request *request,
                             struct hr_sound_part *ret_part, struct hr_error *reterr)
{
    const char *looks;
    struct hr_wav wav;
    bool sndfile;

    if (hr__wav_sniff(data, bytes)) {
        HR_TRY(hr__wav_probe(data, bytes, &wav, reterr));
        return decode_wav(arena, data, &wav, request, ret_part, reterr);
    }
    looks = looks_like(data, bytes, &sndfile);
    if (!sndfile)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "the data looks like %s; WAV, FLAC, Ogg and MP3 files are sound",
                        looks);
#ifdef HR_SNDFILE
    return hr__sndfile_decode(arena, data, bytes, looks, request, ret_part, reterr);
#else
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "the data looks like %s, and this build reads only WAV: build it "
                    "with libsndfile (libsndfile1-dev)",
                    looks);
#endif
}

enum hr_err hr__sound_version(char *text, size_t room, struct hr_error *reterr)
{
#ifdef HR_SNDFILE
    const char *version;

    HR_TRY(hr__sndfile_version(&version, reterr));
    snprintf(text, room, "%s",
             strncmp(version, "libsndfile-", 11) == 0 ? version + 11 : version);
    return HR_OK;
#else
    (void)text;
    (void)room;
    return hr__library_left_out("libsndfile1-dev", reterr);
#endif
}
