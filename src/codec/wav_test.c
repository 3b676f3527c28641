/*
 * codec/wav_test.c - every coding, windows, and headers that lie.
 */
#include "codec/wav.h"

#include <stdlib.h>

#include "core/rng.h"
#include "tests/support/check.h"
#include "tests/support/wav.h"

#define FRAMES 37

static const struct {
    uint32_t tag, bits;
    enum hr_sample_coding coding;
} codings[] = {
    {1,      8,  HR_SAMPLE_U8 },
    {1,      16, HR_SAMPLE_S16},
    {1,      24, HR_SAMPLE_S24},
    {1,      32, HR_SAMPLE_S32},
    {3,      32, HR_SAMPLE_F32},
    {3,      64, HR_SAMPLE_F64},
    {0xfffe, 16, HR_SAMPLE_S16},
};

/* Bytes of one sample, for full scale times `x`. */
static void put_sample(struct hr_str *out, enum hr_sample_coding coding, double x)
{
    float f = (float)x;

    switch (coding) {
    case HR_SAMPLE_U8:
        wav_number(out, (uint64_t)(int64_t)(x * 128 + 128), 1);
        break;
    case HR_SAMPLE_S16:
        wav_number(out, (uint64_t)(int64_t)(x * 0x1p15), 2);
        break;
    case HR_SAMPLE_S24:
        wav_number(out, (uint64_t)(int64_t)(x * 0x1p23), 3);
        break;
    case HR_SAMPLE_S32:
        wav_number(out, (uint64_t)(int64_t)(x * 0x1p31), 4);
        break;
    case HR_SAMPLE_F32:
        hr__str_add_bytes(out, &f, sizeof f);
        break;
    case HR_SAMPLE_F64:
        hr__str_add_bytes(out, &x, sizeof x);
        break;
    }
}

/* A multiple of 1/128, which all codings hold. */
static double level(size_t frame, size_t channel)
{
    return (double)((int)((frame * 29 + channel * 71) % 256) - 128) / 128;
}

static void
make_file(struct hr_str *out, size_t coding, uint32_t channels, uint32_t extra)
{
    struct wav_head head = {codings[coding].tag, channels, 8000, codings[coding].bits,
                            extra};
    struct hr_str samples;

    hr__str_init(&samples);
    for (size_t i = 0; i < FRAMES; i++)
        for (size_t c = 0; c < channels; c++)
            put_sample(&samples, codings[coding].coding, level(i, c));
    wav_file(out, &head, samples.text, samples.length);
    hr__str_finish(&samples);
}

static void
check_window(const struct hr_wav *wav, const void *data, size_t first, size_t count)
{
    float out[3 * FRAMES];

    hr__wav_read(wav, data, first, count, out, count);
    for (size_t c = 0; c < (size_t)wav->channels; c++)
        for (size_t i = 0; i < count; i++)
            CHECK_NEAR(out[c * count + i], level(first + i, c), 0);
}

TEST(every_coding_is_read_whole_and_in_windows)
{
    for (size_t k = 0; k < sizeof codings / sizeof codings[0]; k++)
        for (uint32_t channels = 1; channels <= 3; channels++) {
            struct hr_str file;
            struct hr_wav wav;

            make_file(&file, k, channels, (uint32_t)k);
            CHECK_OK(hr__wav_probe(file.text, file.length, &wav, NULL));
            CHECK_EQ_INT(wav.coding, codings[k].coding);
            CHECK_EQ_INT(wav.channels, channels);
            CHECK_EQ_INT(wav.rate, 8000);
            CHECK_EQ_INT(wav.frames, FRAMES);
            for (size_t first = 0; first <= FRAMES; first += 4)
                check_window(&wav, file.text, first,
                             FRAMES - first < 9 ? FRAMES - first : 9);
            check_window(&wav, file.text, 0, FRAMES);
            hr__str_finish(&file);
        }
}

/* A copy of its own size, so that ASan sees reads beyond it. */
static enum hr_err
probe(const struct hr_str *file, size_t bytes, struct hr_wav *wav, struct hr_error *error)
{
    void *copy = malloc(bytes + (bytes == 0));
    enum hr_err err;

    memcpy(copy, file->text, bytes);
    memset(error, 0, sizeof *error);
    err = hr__wav_probe(copy, bytes, wav, error);
    free(copy);
    return err;
}

TEST(a_file_that_is_cut_short_is_refused_wherever_it_ends)
{
    struct hr_error error;
    struct hr_str file;
    struct hr_wav wav;

    make_file(&file, 1, 2, 7);
    for (size_t bytes = 0; bytes < file.length; bytes++) {
        CHECK_ERR(HR_ERR_FORMAT, probe(&file, bytes, &wav, &error));
        CHECK_HAS(error.message, "WAV, offset ");
    }
    CHECK_HAS(error.message, "cut short: 148 bytes of samples are announced, 147 are");
    hr__str_finish(&file);
}

#define REFUSED(code, at, number, bytes, words)                                          \
    do {                                                                                 \
        uint64_t wrong_ = (number), right_;                                              \
        memcpy(&right_, file.text + (at), sizeof right_);                                \
        memcpy(file.text + (at), &wrong_, bytes);                                        \
        CHECK_ERR(code, probe(&file, file.length, &wav, &error));                        \
        CHECK_HAS(error.message, words);                                                 \
        memcpy(file.text + (at), &right_, sizeof right_);                                \
    } while (0)

TEST(wrong_headers_are_refused_with_the_offset)
{
    struct hr_error error;
    struct hr_str file;
    struct hr_wav wav;

    make_file(&file, 1, 2, 0);
    REFUSED(HR_ERR_FORMAT, 0, 0, 1, "offset 0: it does not begin like a WAV file");
    REFUSED(HR_ERR_FORMAT, 16, 15, 4, "offset 20: a format chunk of 15 bytes");
    REFUSED(HR_ERR_FORMAT, 16, 1u << 31, 4, "offset 12: a chunk of 2147483648 bytes");
    REFUSED(HR_ERR_UNSUPPORTED, 20, 2, 2, "offset 20: format 0x2 (Microsoft ADPCM)");
    REFUSED(HR_ERR_UNSUPPORTED, 20, 77, 2, "offset 20: format 0x4d (a coding that");
    REFUSED(HR_ERR_FORMAT, 20, 0xfffe, 2, "offset 20: an extensible format of 16 bytes");
    REFUSED(HR_ERR_FORMAT, 22, 0, 2, "offset 22: 0 channels");
    REFUSED(HR_ERR_FORMAT, 22, 1025, 2, "offset 22: 1025 channels");
    REFUSED(HR_ERR_FORMAT, 22, 3, 2, "offset 32: frames of 4 bytes for 3 channels of 16");
    REFUSED(HR_ERR_FORMAT, 24, 0, 4, "offset 24: a rate of 0 Hz");
    REFUSED(HR_ERR_FORMAT, 24, UINT32_MAX, 4, "offset 24: a rate of 4294967295 Hz");
    REFUSED(HR_ERR_UNSUPPORTED, 34, 12, 2, "offset 20: integers of 12 bits");
    REFUSED(HR_ERR_UNSUPPORTED, 34, 0, 2, "integers of 0 bits");
    REFUSED(HR_ERR_FORMAT, 36, 0x20746d66, 4, "offset 44: a second format chunk");
    REFUSED(HR_ERR_FORMAT, 36, 0, 4, "the file ends without a data chunk");
    REFUSED(HR_ERR_FORMAT, 40, 147, 4, "offset 40: 147 bytes of samples are no multiple");
    REFUSED(HR_ERR_FORMAT, 12, 0x61746164, 4, "offset 12: samples before the format");
    hr__str_finish(&file);
}

TEST(samples_of_unknown_size_end_with_the_file)
{
    struct hr_str file;
    struct hr_error error;
    struct hr_wav wav;

    make_file(&file, 1, 2, 0);
    memset(file.text + 40, 0xff, 4);
    CHECK_OK(probe(&file, file.length - 1, &wav, &error));
    CHECK_EQ_INT(wav.frames, FRAMES - 1);
    memset(file.text + 40, 0, 4);
    CHECK_OK(probe(&file, file.length, &wav, &error));
    CHECK_EQ_INT(wav.frames, 0);
    hr__str_finish(&file);
}

TEST(rf64_has_the_size_in_its_first_chunk)
{
    struct wav_head head = {1, 1, 48000, 16, 0};
    struct hr_str small, file;
    struct hr_error error;
    struct hr_wav wav;

    wav_begin(&small, &head);
    hr__str_init(&file);
    wav_chunk(&file, "RF64", UINT32_MAX);
    hr__str_add_bytes(&file, "WAVE", 4);
    wav_chunk(&file, "ds64", 28);
    wav_number(&file, 0, 8);
    wav_number(&file, 6, 8);
    wav_number(&file, 3, 8);
    wav_number(&file, 0, 4);
    hr__str_add_bytes(&file, small.text + 12, small.length - 12);
    wav_chunk(&file, "data", UINT32_MAX);
    hr__str_add_bytes(&file, "abcdefgh", 8);
    CHECK_OK(probe(&file, file.length, &wav, &error));
    CHECK_EQ_INT(wav.frames, 3);
    file.text[28] = 10; /* more than there is */
    CHECK_ERR(HR_ERR_FORMAT, probe(&file, file.length, &wav, &error));
    CHECK_HAS(error.message, "cut short: 10 bytes of samples are announced, 8 are there");
    memset(file.text + 28, 0xff, 8);
    CHECK_ERR(HR_ERR_FORMAT, probe(&file, file.length, &wav, &error));
    hr__str_finish(&small);
    hr__str_finish(&file);
}

TEST(a_damaged_byte_anywhere_never_reads_beyond_the_file)
{
    struct hr_error error;
    struct hr_str file;
    struct hr_rng rng;
    struct hr_wav wav;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 20000; round++) {
        float out[FRAMES * 8];

        make_file(&file, hr__rng_below(&rng, 7), 1 + (uint32_t)hr__rng_below(&rng, 3), 3);
        for (uint64_t n = 1 + hr__rng_below(&rng, 3); n > 0; n--)
            file.text[hr__rng_below(&rng, 80)] = (char)hr__rng_below(&rng, 256);
        if (probe(&file, file.length, &wav, &error) == HR_OK) {
            uint64_t size = hr__sample_bytes(wav.coding) * (uint64_t)wav.channels;

            CHECK(wav.data <= file.length);
            CHECK(wav.frames * size <= file.length - wav.data);
            if (wav.channels <= 8 && wav.frames > 0)
                hr__wav_read(&wav, file.text, wav.frames - 1, 1, out, 1);
        } else {
            CHECK_HAS(error.message, "WAV, offset ");
        }
        hr__str_finish(&file);
    }
}
