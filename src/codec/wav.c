/*
 * codec/wav.c - the chunks of a WAV file up to its samples.
 *
 * Every size that the file states is compared with what is left of the file, as 64-bit
 * numbers, before it is used.
 */
#include "codec/wav.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

#define UNKNOWN_SIZE UINT32_MAX

enum { TAG_PCM = 1, TAG_FLOAT = 3, TAG_EXTENSIBLE = 0xfffe };

/* All of a sub-format's GUID but its first two bytes, which are a tag. */
static const uint8_t guid_tail[14] = {0, 0, 0,    0, 0x10, 0,    0x80,
                                      0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};

struct reader {
    const uint8_t *data;
    uint64_t bytes, at;
    bool is_rf64, has_format;
    uint64_t data_bytes; /* as ds64 says; 0: there was none */
    uint32_t frame_bytes;
    struct hr_wav *wav;
    struct hr_error *error;
};

static uint32_t u16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32(const uint8_t *at)
{
    return u16(at) | u16(at + 2) << 16;
}

static uint64_t u64(const uint8_t *at)
{
    return u32(at) | (uint64_t)u32(at + 4) << 32;
}

bool hr__wav_sniff(const void *data, size_t bytes)
{
    const char *text = data;

    return bytes >= 12 &&
           (memcmp(text, "RIFF", 4) == 0 || memcmp(text, "RF64", 4) == 0) &&
           memcmp(text + 8, "WAVE", 4) == 0;
}

#define FAIL(r, at, ...) fail(r, HR_ERR_FORMAT, at, __VA_ARGS__)

static enum hr_err HR_PRINTF(4, 5)
    fail(const struct reader *r, enum hr_err code, uint64_t at, const char *format, ...)
{
    char why[200];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return hr__fail(r->error, code, "WAV, offset %llu: %s", (unsigned long long)at, why);
}

static const char *tag_name(uint32_t tag)
{
    switch (tag) {
    case 2:
        return "Microsoft ADPCM";
    case 6:
        return "A-law";
    case 7:
        return "mu-law";
    case 0x11:
        return "IMA ADPCM";
    case 0x31:
        return "GSM 6.10";
    case 0x50:
    case 0x55:
        return "MPEG audio";
    default:
        return "a coding that is not known";
    }
}

static enum hr_err set_coding(struct reader *r, uint64_t at, uint32_t tag, uint32_t bits)
{
    static const enum hr_sample_coding pcm[] = {HR_SAMPLE_U8, HR_SAMPLE_S16,
                                                HR_SAMPLE_S24, HR_SAMPLE_S32};

    if (tag == TAG_PCM && bits % 8 == 0 && bits >= 8 && bits <= 32)
        r->wav->coding = pcm[bits / 8 - 1];
    else if (tag == TAG_FLOAT && (bits == 32 || bits == 64))
        r->wav->coding = bits == 32 ? HR_SAMPLE_F32 : HR_SAMPLE_F64;
    else if (tag == TAG_PCM || tag == TAG_FLOAT)
        return fail(r, HR_ERR_UNSUPPORTED, at, "%s of %u bits are not supported",
                    tag == TAG_PCM ? "integers" : "floats", bits);
    else
        return fail(r, HR_ERR_UNSUPPORTED, at,
                    "format 0x%x (%s) is not supported; PCM and floats are", tag,
                    tag_name(tag));
    return HR_OK;
}

/* The format chunk, whose body is `size` bytes at `at`. */
static enum hr_err read_format(struct reader *r, uint64_t at, uint64_t size)
{
    const uint8_t *body = r->data + at;
    uint32_t tag, channels, rate, bits;

    if (r->has_format)
        return FAIL(r, at, "a second format chunk");
    if (size < 16)
        return FAIL(r, at, "a format chunk of %llu bytes; it has at least 16",
                    (unsigned long long)size);
    tag = u16(body);
    channels = u16(body + 2);
    rate = u32(body + 4);
    r->frame_bytes = u16(body + 12);
    bits = u16(body + 14);
    if (tag == TAG_EXTENSIBLE) {
        if (size < 40 || u16(body + 16) < 22)
            return FAIL(r, at, "an extensible format of %llu bytes; it has at least 40",
                        (unsigned long long)size);
        tag = u16(body + 24);
        if (memcmp(body + 26, guid_tail, sizeof guid_tail) != 0)
            return fail(r, HR_ERR_UNSUPPORTED, at + 24, "a sub-format that is not known");
    }
    HR_TRY(set_coding(r, at, tag, bits));
    if (channels == 0 || channels > HR_WAV_CHANNELS_MAX)
        return FAIL(r, at + 2, "%u channels; supported are 1 to %d", channels,
                    HR_WAV_CHANNELS_MAX);
    if (rate == 0 || rate > HR_WAV_RATE_MAX)
        return FAIL(r, at + 4, "a rate of %u Hz; supported are 1 to %d", rate,
                    HR_WAV_RATE_MAX);
    if (r->frame_bytes != channels * (bits / 8))
        return FAIL(r, at + 12, "frames of %u bytes for %u channels of %u bits",
                    r->frame_bytes, channels, bits);
    r->wav->channels = (int32_t)channels;
    r->wav->rate = (int32_t)rate;
    r->has_format = true;
    return HR_OK;
}

/* The samples, whose chunk says `size`. */
static enum hr_err read_data(struct reader *r, uint64_t at, uint32_t stated)
{
    uint64_t left = r->bytes - at, size = stated;

    if (!r->has_format)
        return FAIL(r, at - 8, "samples before the format chunk");
    if (r->is_rf64 && stated == UNKNOWN_SIZE && r->data_bytes > 0)
        size = r->data_bytes;
    else if (stated == UNKNOWN_SIZE)
        size = left - left % r->frame_bytes;
    if (size > left)
        return FAIL(r, at,
                    "the file is cut short: %llu bytes of samples are announced, "
                    "%llu are there",
                    (unsigned long long)size, (unsigned long long)left);
    if (size % r->frame_bytes != 0)
        return FAIL(r, at - 4, "%llu bytes of samples are no multiple of a frame's %u",
                    (unsigned long long)size, r->frame_bytes);
    r->wav->data = at;
    r->wav->frames = size / r->frame_bytes;
    return HR_OK;
}

static enum hr_err read_chunks(struct reader *r)
{
    for (;;) {
        const uint8_t *head = r->data + r->at;
        uint64_t body = r->at + 8, left, size;

        if (r->bytes - r->at < 8)
            return FAIL(r, r->at, "the file ends without a data chunk");
        left = r->bytes - body;
        size = u32(head + 4);
        if (memcmp(head, "data", 4) == 0)
            return read_data(r, body, u32(head + 4));
        if (size > left)
            return FAIL(r, r->at, "a chunk of %llu bytes; %llu are left",
                        (unsigned long long)size, (unsigned long long)left);
        if (memcmp(head, "fmt ", 4) == 0)
            HR_TRY(read_format(r, body, size));
        if (memcmp(head, "ds64", 4) == 0 && r->is_rf64 && size >= 24)
            r->data_bytes = u64(r->data + body + 8);
        size += size % 2; /* chunks begin at even offsets */
        if (size > left)
            size = left;
        r->at = body + size;
    }
}

enum hr_err hr__wav_probe(const void *data, size_t bytes, struct hr_wav *ret_wav,
                          struct hr_error *reterr)
{
    struct reader r = {
        .data = data, .bytes = bytes, .at = 12, .wav = ret_wav, .error = reterr};

    *ret_wav = (struct hr_wav){0};
    if (!hr__wav_sniff(data, bytes))
        return FAIL(&r, 0, "it does not begin like a WAV file");
    r.is_rf64 = memcmp(data, "RF64", 4) == 0;
    return read_chunks(&r);
}

void hr__wav_read(const struct hr_wav *wav, const void *data, uint64_t first,
                  uint64_t count, float *out, size_t stride)
{
    size_t size = hr__sample_bytes(wav->coding), channels = (size_t)wav->channels;
    const char *from = (const char *)data + wav->data + first * size * channels;

    assert(first <= wav->frames && count <= wav->frames - first);
    for (size_t c = 0; c < channels; c++)
        hr__samples_to_f32(wav->coding, from + c * size, channels, out + c * stride,
                           (size_t)count);
}
