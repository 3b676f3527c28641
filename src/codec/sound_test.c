/*
 * codec/sound_test.c - formats by content: what libsndfile wrote comes back, whole and in
 * windows; damaged files are refused.
 */
#include "codec/sound.h"

#include <stdlib.h>

#include "core/rng.h"
#include "tests/support/check.h"
#include "tests/support/wav.h"

static enum hr_err
decode(const void *data, size_t bytes, uint64_t start, uint64_t frames,
       struct hr_arena *arena, struct hr_sound_part *part, struct hr_error *error)
{
    struct hr_sound_request request = {start, frames, 1 << 20, 0};

    memset(error, 0, sizeof *error);
    hr__arena_init(arena);
    return hr__sound_decode(arena, data, bytes, &request, part, error);
}

TEST(what_is_no_sound_is_named)
{
    static const struct {
        const char *data, *words;
    } cases[] = {
        {"",                      "an empty file"              },
        {"<!doctype html>",       "an HTML or XML page"        },
        {"\x89PNG\r\n",           "a PNG image"                },
        {"\xff\xd8\xff\xe0 JFIF", "a JPEG image"               },
        {"RIFF....AVI ",          "no sound file that is known"},
        {"hello",                 "no sound file that is known"},
        {"fLaC and no more",      "looks like a FLAC file"     },
        {"OggS",                  "Ogg"                        },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hr_sound_part part;
        struct hr_arena arena;
        struct hr_error error;

        CHECK(decode(cases[i].data, strlen(cases[i].data), 0, 0, &arena, &part, &error) !=
              HR_OK);
        CHECK_HAS(error.message, cases[i].words);
        hr__arena_finish(&arena);
    }
}

TEST(more_samples_than_the_limit_are_refused)
{
    struct wav_head head = {1, 2, 8000, 16, 0};
    struct hr_sound_request request = {0, 0, 199, 0};
    struct hr_sound_part part;
    struct hr_error error = {0};
    struct hr_arena arena;
    struct hr_str file;
    char samples[400] = {0};

    hr__arena_init(&arena);
    wav_file(&file, &head, samples, sizeof samples);
    CHECK_ERR(HR_ERR_LIMIT,
              hr__sound_decode(&arena, file.text, file.length, &request, &part, &error));
    CHECK_HAS(error.message, "100 frames of 2 channels are more than the limit of 199");
    request.frames = 99;
    CHECK_OK(hr__sound_decode(&arena, file.text, file.length, &request, &part, &error));
    hr__arena_finish(&arena);
    hr__str_finish(&file);
}

#ifdef HR_SNDFILE

#include <sndfile.h>

#define FRAMES 9000
#define CHANNELS 2

/* A file in memory that libsndfile writes. */
struct made {
    struct hr_str bytes;
    sf_count_t at;
};

static sf_count_t made_bytes(void *user)
{
    return (sf_count_t)((struct made *)user)->bytes.length;
}

static sf_count_t made_seek(sf_count_t offset, int whence, void *user)
{
    struct made *m = user;

    m->at = offset + (whence == SEEK_CUR   ? m->at
                      : whence == SEEK_END ? made_bytes(m)
                                           : 0);
    return m->at;
}

static sf_count_t made_read(void *to, sf_count_t count, void *user)
{
    struct made *m = user;
    sf_count_t left = made_bytes(m) - m->at;

    count = count < left ? count : left;
    memcpy(to, m->bytes.text + m->at, (size_t)count);
    m->at += count;
    return count;
}

static sf_count_t made_write(const void *from, sf_count_t count, void *user)
{
    struct made *m = user;

    while (made_bytes(m) < m->at + count)
        hr__str_add_bytes(&m->bytes, "\0", 1);
    memcpy(m->bytes.text + m->at, from, (size_t)count);
    m->at += count;
    return count;
}

static sf_count_t made_tell(void *user)
{
    return ((struct made *)user)->at;
}

/* Tones, of which lossy formats keep most. */
static double level(int frame, int channel)
{
    return 0.4 * sin(frame * (0.02 + 0.013 * channel)) + 0.2 * sin(frame * 0.11);
}

static void make_file(struct made *m, int format, int rate)
{
    static SF_VIRTUAL_IO io = {made_bytes, made_seek, made_read, made_write, made_tell};
    static short samples[FRAMES * CHANNELS];
    SF_INFO info = {.samplerate = rate, .channels = CHANNELS, .format = format};
    SNDFILE *file;

    memset(m, 0, sizeof *m);
    hr__str_init(&m->bytes);
    for (int i = 0; i < FRAMES * CHANNELS; i++)
        samples[i] = (short)(level(i / CHANNELS, i % CHANNELS) * 32768);
    file = sf_open_virtual(&io, SFM_WRITE, &info, m);
    CHECK(file != NULL);
    CHECK_EQ_INT(sf_writef_short(file, samples, FRAMES), FRAMES);
    CHECK_EQ_INT(sf_close(file), 0);
}

/* Layer III in libsndfile 1.1 and later; earlier headers lack the enumerators. */
enum { MP3 = 0x230082 };

static const struct {
    int format, rate;
    double tolerance; /* of a sample; MP3 moves the sound, so 0 skips the comparison */
} written[] = {
    {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 44100, 1e-9},
    {SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 8000,  1e-9},
    {SF_FORMAT_OGG | SF_FORMAT_VORBIS,  16000, 0.05},
    {SF_FORMAT_OGG | SF_FORMAT_OPUS,    48000, 0.05},
    {SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 22050, 1e-9},
    {MP3,                               44100, 0   }, /* MPEG 1 */
    {MP3,                               16000, 0   }, /* MPEG 2 */
    {MP3,                               8000,  0   }, /* MPEG 2.5 */
};

static bool can_write(int format, int rate)
{
    SF_INFO info = {.samplerate = rate, .channels = CHANNELS, .format = format};

    return sf_format_check(&info) == SF_TRUE;
}

TEST(formats_of_libsndfile_are_found_by_content_and_decoded)
{
    for (size_t k = 0; k < sizeof written / sizeof written[0]; k++) {
        struct hr_sound_part part;
        struct hr_arena arena;
        struct hr_error error;
        struct made m;

        if (!can_write(written[k].format, written[k].rate))
            continue;
        make_file(&m, written[k].format, written[k].rate);
        CHECK_OK(decode(m.bytes.text, m.bytes.length, 0, 0, &arena, &part, &error));
        CHECK_EQ_INT(part.rate, written[k].rate);
        CHECK_EQ_INT(part.channels, CHANNELS);
        CHECK_EQ_INT(part.frames, FRAMES);
        for (int i = 1000; i < FRAMES - 1000 && written[k].tolerance > 0; i++)
            for (int c = 0; c < CHANNELS; c++)
                CHECK_NEAR(part.data[c * part.frames + i],
                           (short)(level(i, c) * 32768) / 32768.0, written[k].tolerance);
        hr__arena_finish(&arena);
        hr__str_finish(&m.bytes);
    }
}

/* Of FLAC: a decoder of lossy formats that begins in the middle may round differently. */
TEST(a_window_has_the_samples_of_the_whole)
{
    struct hr_sound_part whole, part;
    struct hr_arena arena, other;
    struct hr_error error;
    struct hr_rng rng;
    struct made m;

    hr__rng_init(&rng, check_seed(), 0, 0);
    make_file(&m, SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000);
    CHECK_OK(decode(m.bytes.text, m.bytes.length, 0, 0, &arena, &whole, &error));
    for (int round = 0; round < 100; round++) {
        uint64_t start = hr__rng_below(&rng, FRAMES);
        uint64_t frames = 1 + hr__rng_below(&rng, 6000);
        int64_t want = (int64_t)(frames < FRAMES - start ? frames : FRAMES - start);

        CHECK_OK(
            decode(m.bytes.text, m.bytes.length, start, frames, &other, &part, &error));
        CHECK_EQ_INT(part.frames, want);
        for (int c = 0; c < CHANNELS; c++)
            CHECK_BYTES(part.data + c * want, whole.data + c * FRAMES + start,
                        (size_t)want * sizeof(float));
        hr__arena_finish(&other);
    }
    CHECK_ERR(HR_ERR_RANGE,
              decode(m.bytes.text, m.bytes.length, FRAMES, 1, &other, &part, &error));
    hr__arena_finish(&other);
    hr__arena_finish(&arena);
    hr__str_finish(&m.bytes);
}

/* libsndfile alone reads what is left of it. */
TEST(an_ogg_file_that_is_cut_short_or_damaged_is_refused)
{
    struct hr_sound_part part;
    struct hr_arena arena;
    struct hr_error error;
    struct hr_rng rng;
    struct made m;

    hr__rng_init(&rng, check_seed(), 0, 0);
    make_file(&m, SF_FORMAT_OGG | SF_FORMAT_VORBIS, 16000);
    for (size_t bytes = 4; bytes < m.bytes.length; bytes += 97) {
        CHECK_ERR(HR_ERR_FORMAT,
                  decode(m.bytes.text, bytes, 0, 0, &arena, &part, &error));
        CHECK_HAS(error.message, "cut short");
        hr__arena_finish(&arena);
        CHECK_ERR(HR_ERR_FORMAT,
                  decode(m.bytes.text, bytes, 100, 10, &arena, &part, &error));
        hr__arena_finish(&arena);
    }
    for (int round = 0; round < 200; round++) {
        char *byte = m.bytes.text + 4 + hr__rng_below(&rng, m.bytes.length - 4);
        char bit = (char)(1 << hr__rng_below(&rng, 8));

        *byte ^= bit;
        CHECK_ERR(HR_ERR_FORMAT,
                  decode(m.bytes.text, m.bytes.length, 0, 0, &arena, &part, &error));
        CHECK_HAS(error.message, "offset");
        hr__arena_finish(&arena);
        *byte ^= bit;
    }
    hr__str_add_bytes(&m.bytes, "TAG", 3);
    CHECK_OK(decode(m.bytes.text, m.bytes.length, 0, 0, &arena, &part, &error));
    CHECK_EQ_INT(part.frames, FRAMES);
    hr__arena_finish(&arena);
    hr__str_finish(&m.bytes);
}

TEST(a_flac_file_that_is_cut_short_is_refused_wherever_it_ends)
{
    struct hr_sound_part part;
    struct hr_arena arena;
    struct hr_error error;
    struct made m;

    make_file(&m, SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000);
    for (size_t bytes = 0; bytes < m.bytes.length; bytes += 97) {
        void *copy = malloc(bytes + 1);

        memcpy(copy, m.bytes.text, bytes);
        CHECK(decode(copy, bytes, 0, 0, &arena, &part, &error) != HR_OK);
        CHECK(error.message[0] != '\0');
        hr__arena_finish(&arena);
        free(copy);
    }
    hr__str_finish(&m.bytes);
}

#endif
