/*
 * ops/audio_test.c - the ops on sound, one record at a time.
 */
#include "ops/ops_test_util.h"

#include <math.h>

#include "codec/wav.h"
#include "tests/support/wav.h"

static struct bench b;
static struct hr_str file;

/* A record with a WAV file of 16-bit samples: frame * 10 + channel, as a ramp. */
static void begin(uint32_t channels, uint32_t rate, int frames)
{
    struct wav_head head = {1, channels, rate, 16, 0};
    int16_t samples[4000];

    CHECK(frames * (int)channels <= 4000);
    for (int i = 0; i < frames * (int)channels; i++)
        samples[i] = (int16_t)(i / (int)channels * 10 + i % (int)channels);
    hr__str_finish(&file);
    wav_file(&file, &head, samples, (size_t)frames * channels * 2);
    if (b.thread.pool == NULL)
        bench_init(&b);
    bench_clear(&b);
    bench_put_bytes(&b, "data", file.text, file.length);
}

static void end(void)
{
    bench_finish(&b);
    memset(&b, 0, sizeof b);
    hr__str_finish(&file);
}

static double sample(int64_t channel, int64_t frame)
{
    const struct hr_value *value = bench_value(&b, "audio");
    const char *at = value->data;

    if (value->ndim > 1)
        at += channel * value->strides[value->ndim - 2];
    at += frame * value->strides[value->ndim - 1];
    return (double)*(const float *)(const void *)at * 32768;
}

static int64_t frames(void)
{
    const struct hr_value *value = bench_value(&b, "audio");

    return value->dims[value->ndim - 1];
}

#define REFUSED(code, op, params, words)                                                 \
    do {                                                                                 \
        CHECK_ERR(code, bench_op(&b, op, params));                                       \
        CHECK_HAS(b.error.message, words);                                               \
    } while (0)

TEST(a_file_becomes_samples_by_channel_and_its_rate)
{
    begin(2, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK(bench_field(&b, "data") == NULL);
    CHECK_EQ_INT(bench_field(&b, "audio")->rate, 0);
    CHECK_EQ_INT(*(int64_t *)bench_value(&b, "rate")->data, 8000);
    CHECK_EQ_INT(bench_value(&b, "audio")->dims[0], 2);
    CHECK_EQ_INT(frames(), 50);
    for (int i = 0; i < 50; i++)
        CHECK(sample(0, i) == i * 10 && sample(1, i) == i * 10 + 1);
    end();
}

TEST(a_window_is_decoded_alone)
{
    begin(2, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", "{start: 20, frames: 5}"));
    CHECK_EQ_INT(frames(), 5);
    for (int i = 0; i < 5; i++)
        CHECK(sample(1, i) == (20 + i) * 10 + 1);
    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", "{start: 48, frames: 5}"));
    CHECK_EQ_INT(frames(), 2);
    begin(1, 8000, 50);
    REFUSED(HR_ERR_RANGE, "audio.decode", "{start: 50}",
            "the file has 50 frames, and `start` is 50");
    end();
}

TEST(rates_never_mix_unnoticed)
{
    begin(1, 8000, 50);
    REFUSED(HR_ERR_FORMAT, "audio.decode", "{rate: 16000}",
            "the file has 8000 Hz, and `rate` says that all have 16000");
    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_EQ_INT(bench_field(&b, "audio")->rate, 8000);
    begin(1, 8000, 900);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    REFUSED(HR_ERR_TYPE, "audio.mel", NULL,
            "a mel spectrogram needs one: put "
            "audio.resample before it");
    REFUSED(HR_ERR_TYPE, "audio.spectrogram", NULL, "a spectrogram needs one");
    REFUSED(HR_ERR_TYPE, "batch.pad", "{size: 2}", "cannot share a batch");
    CHECK_OK(bench_op(&b, "audio.resample", "{rate: 16000}"));
    CHECK_EQ_INT(bench_field(&b, "audio")->rate, 16000);
    CHECK_EQ_INT(*(int64_t *)bench_value(&b, "rate")->data, 16000);
    CHECK_EQ_INT(frames(), 1800);
    CHECK_OK(bench_op(&b, "audio.mel", NULL));
    end();
}

TEST(a_resampler_wants_to_know_the_rate)
{
    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate_to: hz}"));
    REFUSED(HR_ERR_GRAPH, "audio.resample", "{rate: 16000}",
            "there is no field \"rate\" that says which: name it as `rate_field`");
    CHECK_OK(bench_op(&b, "audio.resample", "{rate: 4000, rate_field: hz}"));
    CHECK_EQ_INT(*(int64_t *)bench_value(&b, "hz")->data, 4000);
    CHECK_OK(bench_op(&b, "record.drop", "{fields: hz}"));
    CHECK_OK(bench_op(&b, "audio.resample", "{rate: 8000, filter: torchaudio}"));
    CHECK_OK(bench_op(&b, "audio.resample", "{rate: 8000}"));
    CHECK_EQ_INT(frames(), 50);
    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    *(int64_t *)bench_value(&b, "rate")->data = -5;
    REFUSED(HR_ERR_RANGE, "audio.resample", "{rate: 16000}", "-5 Hz is no rate");
    end();
}

/* One node, and more rates than it keeps tables for. */
TEST(more_rates_than_are_kept_are_resampled_too)
{
    struct hr_value *values[2];
    struct bench_node node;
    struct hr_op_ctx ctx = {.fields = values, .field_count = 2};

    begin(1, 8000, 200);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(
        bench_parse(&b, &node, "audio.resample", "{rate: 7000, filter: torchaudio}"));
    CHECK_OK(bench_bind(&b, &node));
    CHECK_OK(bench_infer(&b, &node, values));
    CHECK_OK(bench_apply(&b, &node, values));
    for (uint32_t rate = 1000; rate < 1040; rate++) {
        begin(1, rate, 200);
        CHECK_OK(bench_op(&b, "audio.decode", NULL));
        values[0] = bench_value(&b, "audio");
        values[1] = bench_value(&b, "rate");
        ctx.params = node.params;
        ctx.state = node.state;
        ctx.thread = &b.thread;
        ctx.error = &b.error;
        CHECK_OK(node.op->apply(&ctx));
        CHECK_EQ_INT(frames(), (200 * 7000 + rate - 1) / rate);
        CHECK_EQ_INT(*(int64_t *)values[1]->data, 7000);
    }
    bench_node_finish(&node);
    end();
}

TEST(what_is_no_sound_is_refused_with_its_name)
{
    static const float nan_sample[] = {0, NAN};
    struct wav_head head = {3, 1, 8000, 32, 0};

    begin(1, 8000, 4);
    REFUSED(HR_ERR_TYPE, "audio.mono", "{field: data}", "put audio.decode before it");
    file.text[20] = 85;
    REFUSED(HR_ERR_UNSUPPORTED, "audio.decode", NULL, "MPEG audio");
    memcpy(file.text, "fLaC", 4);
    CHECK(bench_op(&b, "audio.decode", NULL) != HR_OK);
    CHECK_HAS(b.error.message, "the data looks like a FLAC file");
    memcpy(file.text, "oops", 4);
    REFUSED(HR_ERR_UNSUPPORTED, "audio.decode", NULL, "no sound file that is known");
    bench_clear(&b);
    bench_put_bytes(&b, "data", "", 0);
    REFUSED(HR_ERR_UNSUPPORTED, "audio.decode", NULL, "an empty file");
    REFUSED(HR_ERR_ARGUMENT, "audio.decode", "{rate_to: audio}", "a field of its own");
    begin(1, 8000, 4);
    hr__str_finish(&file);
    wav_file(&file, &head, nan_sample, sizeof nan_sample);
    bench_clear(&b);
    bench_put_bytes(&b, "data", file.text, file.length);
    REFUSED(HR_ERR_FORMAT, "audio.decode", NULL,
            "frame 1 of channel 0 is not a finite number");
    CHECK_OK(bench_op(&b, "source.range", "{n: 3}"));
    REFUSED(HR_ERR_TYPE, "audio.gain", "{field: value, db: 3}",
            "field \"value\" is int64, not a sound: declare it samples with record.kind");
    REFUSED(HR_ERR_TYPE, "audio.log", "{field: value}", "this needs a float32 tensor");
    end();
}

TEST(samples_are_a_kind_with_a_rate)
{
    begin(1, 8000, 900);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    REFUSED(HR_ERR_ARGUMENT, "record.kind", "{field: audio, kind: samples}",
            "samples need a rate");
    REFUSED(HR_ERR_ARGUMENT, "record.kind", "{field: audio, kind: boxes, rate: 5}", "");
    CHECK_OK(bench_op(&b, "record.kind", "{field: audio, kind: samples, rate: 9000}"));
    CHECK_OK(bench_op(&b, "audio.mel", NULL));
    begin(1, 8000, 900);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(bench_op(&b, "tensor.cast", "{field: audio, dtype: float64}"));
    REFUSED(HR_ERR_TYPE, "audio.mono", NULL,
            "is float64 [channels, frames], not a sound");
    end();
}

TEST(channels_are_averaged)
{
    begin(2, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.mono", NULL));
    CHECK_EQ_INT(bench_value(&b, "audio")->ndim, 1);
    for (int i = 0; i < 50; i++)
        CHECK_NEAR(sample(0, i), i * 10 + 0.5, 0);
    CHECK_OK(bench_op(&b, "audio.mono", NULL));
    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.mono", NULL));
    CHECK_EQ_INT(bench_value(&b, "audio")->ndim, 1);
    CHECK_NEAR(sample(0, 7), 70, 0);
    end();
}

TEST(a_gain_multiplies)
{
    double sum = 0;

    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.gain", "{db: 20}"));
    CHECK_NEAR(sample(0, 7), 700, 1e-3);
    for (int i = 0; i < 200; i++) {
        begin(1, 8000, 50);
        b.id.index = (uint64_t)i;
        CHECK_OK(bench_op(&b, "audio.decode", NULL));
        CHECK_OK(bench_op(&b, "audio.gain", "{db: [-6, 6]}"));
        CHECK(fabs(20 * log10(sample(0, 7) / 70)) <= 6.001);
        sum += 20 * log10(sample(0, 7) / 70);
    }
    CHECK_NEAR(sum / 200, 0, 1.5);
    REFUSED(HR_ERR_RANGE, "audio.gain", "{db: [6, -6]}",
            "the smaller number comes first");
    end();
}

TEST(sounds_are_padded_to_a_length_or_a_multiple)
{
    static const struct {
        const char *params;
        int frames, from;
    } cases[] = {
        {"{frames: 60}",               60, 0 },
        {"{frames: 60, side: start}",  60, 10},
        {"{frames: 61, side: both}",   61, 5 },
        {"{multiple: 16}",             64, 0 },
        {"{frames: 65, multiple: 16}", 80, 0 },
        {"{frames: 20}",               50, 0 },
        {"{frames: 20, multiple: 25}", 50, 0 },
    };

    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        begin(2, 8000, 50);
        CHECK_OK(bench_op(&b, "audio.decode", NULL));
        CHECK_OK(bench_op(&b, "audio.pad", cases[k].params));
        CHECK_EQ_INT(frames(), cases[k].frames);
        for (int i = 0; i < cases[k].frames; i++) {
            int at = i - cases[k].from;

            CHECK(sample(1, i) == (at >= 0 && at < 50 ? at * 10 + 1 : 0));
        }
    }
    REFUSED(HR_ERR_ARGUMENT, "audio.pad", NULL, "it pads nothing");
    end();
}

TEST(a_crop_has_its_length_whatever_the_sound_has)
{
    bool seen[31] = {false};

    for (int i = 0; i < 400; i++) {
        int from;

        begin(2, 8000, 50);
        b.id.index = (uint64_t)i;
        CHECK_OK(bench_op(&b, "audio.decode", NULL));
        CHECK_OK(bench_op(&b, "audio.crop", "{frames: 20}"));
        CHECK_EQ_INT(bench_field(&b, "audio")->dims[1].size, 20);
        from = (int)(sample(0, 0) / 10);
        CHECK(from >= 0 && from <= 30);
        seen[from] = true;
        for (int k = 0; k < 20; k++)
            CHECK(sample(1, k) == (from + k) * 10 + 1);
    }
    for (int i = 0; i <= 30; i++)
        CHECK(seen[i]);
    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.crop", "{frames: 40, at: end}"));
    CHECK(sample(0, 0) == 100);
    CHECK_OK(bench_op(&b, "audio.crop", "{frames: 20, at: center}"));
    CHECK(sample(0, 0) == 200);
    CHECK_OK(bench_op(&b, "audio.crop", "{frames: 10, at: start}"));
    CHECK(sample(0, 0) == 200);
    CHECK_OK(bench_op(&b, "audio.crop", "{frames: 15}"));
    CHECK(sample(0, 9) == 290 && sample(0, 10) == 0 && sample(0, 14) == 0);
    end();
}

/* Silence, a ramp, silence. */
static void begin_quiet(int before, int loud, int after)
{
    struct wav_head head = {1, 1, 8000, 16, 0};
    int16_t samples[4000] = {0};

    begin(1, 8000, 1);
    for (int i = 0; i < loud; i++)
        samples[before + i] = (int16_t)(i % 2 ? 8000 : -8000);
    hr__str_finish(&file);
    wav_file(&file, &head, samples, (size_t)(before + loud + after) * 2);
    bench_clear(&b);
    bench_put_bytes(&b, "data", file.text, file.length);
}

TEST(silence_is_trimmed_as_librosa_does)
{
    begin_quiet(1000, 500, 800);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.trim", "{frame: 64, hop: 16}"));
    /* Frames of 64 about multiples of 16 that meet [1000, 1500): 976 to 1520. */
    CHECK_EQ_INT(frames(), 1536 - 976);
    CHECK(sample(0, 1000 - 976) == -8000);
    CHECK_OK(bench_op(&b, "audio.trim", NULL));
    begin_quiet(300, 0, 0);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.trim", NULL));
    CHECK_EQ_INT(frames(), 300);
    begin_quiet(0, 0, 0);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.trim", NULL));
    CHECK_EQ_INT(frames(), 0);
    end();
}

TEST(spectra_have_the_announced_shape)
{
    begin(2, 8000, 900);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(bench_op(&b, "audio.crop", "{frames: 800}"));
    CHECK_OK(bench_op(&b, "audio.mel", "{n_mels: 20, n_fft: 200, hop: 80}"));
    CHECK_EQ_INT(bench_field(&b, "audio")->ndim, 3);
    CHECK_EQ_INT(bench_field(&b, "audio")->dims[1].size, 20);
    CHECK_EQ_INT(bench_field(&b, "audio")->dims[2].size, 11);
    CHECK_OK(bench_op(&b, "audio.db", NULL));
    REFUSED(HR_ERR_TYPE, "audio.gain", "{db: 1}", "not a sound");
    begin(1, 8000, 300);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    REFUSED(HR_ERR_RANGE, "audio.spectrogram", "{n_fft: 200, win: 201}",
            "a window of 201 samples is larger than the transform");
    REFUSED(HR_ERR_RANGE, "audio.mel", "{f_min: 4000}", "the bands end at 4000 Hz");
    REFUSED(HR_ERR_UNSUPPORTED, "audio.spectrogram", "{n_fft: 2062}", "prime factor");
    REFUSED(HR_ERR_SHAPE, "audio.spectrogram", "{center: false}",
            "a sound of 300 samples is too short for a frame of 400");
    end();
}

/* A spectrum of 2 channels, 20 bands and 11 frames, all numbers -100 dB or more. */
static void begin_mel(uint64_t index)
{
    begin(2, 8000, 800);
    b.id.index = index;
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(bench_op(&b, "audio.mel", "{n_mels: 20, n_fft: 200, hop: 80}"));
    CHECK_OK(bench_op(&b, "audio.db", NULL));
}

/* Number of places that are 1e9 in both channels, for each row or column. */
static int count_masked(bool time)
{
    const float *data = bench_value(&b, "audio")->data;
    int masked = 0;

    for (int at = 0; at < (time ? 11 : 20); at++) {
        int ones = 0, most = 2 * (time ? 20 : 11);

        for (int i = 0; i < most; i++) {
            int row = time ? i : i / 11 * 20 + at, column = time ? at : i % 11;

            ones += data[row * 11 + column] == 1e9f;
        }
        CHECK(ones == 0 || ones == most);
        masked += ones == most;
    }
    return masked;
}

TEST(masks_blank_whole_rows_or_columns_of_all_channels)
{
    bool widths[2][6] = {{false}};

    for (uint64_t i = 0; i < 300; i++)
        for (int time = 0; time < 2; time++) {
            int masked;

            begin_mel(i);
            CHECK_OK(bench_op(&b, time ? "audio.time_mask" : "audio.freq_mask",
                              "{max: 5, value: 1e9}"));
            masked = count_masked(time);
            CHECK(masked <= 5);
            widths[time][masked] = true;
        }
    for (int i = 0; i < 6; i++)
        CHECK(widths[0][i] && widths[1][i]);
    for (uint64_t i = 0; i < 50; i++) {
        begin_mel(i);
        CHECK_OK(bench_op(&b, "audio.time_mask", "{max: 99, share: 0.2, value: 1e9}"));
        CHECK(count_masked(true) <= 2);
        CHECK_OK(bench_op(&b, "audio.freq_mask", "{max: 99, count: 3}"));
    }
    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(bench_op(&b, "audio.mono", NULL));
    REFUSED(HR_ERR_SHAPE, "audio.time_mask", "{max: 5}", "a spectrum has rows and time");
    end();
}

TEST(cepstra_are_the_cosine_transform_of_the_bands)
{
    float before[2 * 20 * 11];
    const float *after;

    begin_mel(0);
    memcpy(before, bench_value(&b, "audio")->data, sizeof before);
    REFUSED(HR_ERR_RANGE, "audio.mfcc", "{n_mfcc: 21}", "21 coefficients of 20 bands");
    CHECK_OK(bench_op(&b, "audio.mfcc", "{n_mfcc: 13}"));
    CHECK_EQ_INT(bench_value(&b, "audio")->dims[1], 13);
    after = bench_value(&b, "audio")->data;
    for (int i = 0; i < 2 * 13 * 11; i++) {
        int channel = i / 143, k = i / 11 % 13, t = i % 11;
        double sum = 0;

        for (int m = 0; m < 20; m++)
            sum += (double)before[(channel * 20 + m) * 11 + t] *
                   cos(3.14159265358979 / 20 * (m + 0.5) * k) * sqrt((k ? 2 : 1) / 20.0);
        CHECK_NEAR(after[i], sum, 1e-3);
    }
    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    REFUSED(HR_ERR_SHAPE, "audio.mfcc", NULL, "no known number of bands: put audio.mel");
    end();
}

TEST(decibels_and_logarithms_are_what_they_say)
{
    begin(1, 8000, 300);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(
        bench_op(&b, "audio.db", "{of: magnitude, amin: 1e-5, ref: 0.5, top_db: 40}"));
    for (int i = 0; i < 300; i++) {
        double x = i * 10 / 32768.0, top = 20 * log10(2990 / 32768.0 / 0.5);
        double want = 20 * log10(fmax(x, 1e-5) / 0.5);

        CHECK_NEAR(sample(0, i) / 32768, fmax(want, top - 40), 1e-4);
    }
    begin(1, 8000, 300);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.log", "{offset: 0.001, base: 10}"));
    for (int i = 0; i < 300; i++)
        CHECK_NEAR(sample(0, i) / 32768, log10(i * 10 / 32768.0 + 0.001), 1e-5);
    end();
}

TEST(mel_bands_of_a_spectrum_are_those_of_the_sound)
{
    float *want, *got;
    size_t bytes;

    for (int size = 200; size < 202; size++) {
        char params[80];

        begin(2, 8000, 800);
        CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
        snprintf(params, sizeof params, "{n_mels: 20, n_fft: %d, hop: 80, norm: true}",
                 size);
        CHECK_OK(bench_op(&b, "audio.mel", params));
        want = bench_bytes(&b, "audio", &bytes);
        begin(2, 8000, 800);
        CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
        snprintf(params, sizeof params, "{n_fft: %d, hop: 80}", size);
        CHECK_OK(bench_op(&b, "audio.spectrogram", params));
        snprintf(params, sizeof params, "{rate: 8000, n_mels: 20, n_fft: %d, norm: true}",
                 size);
        CHECK_OK(bench_op(&b, "audio.mel_scale", params));
        CHECK_EQ_INT(bench_field(&b, "audio")->dims[1].size, 20);
        got = bench_bytes(&b, "audio", &bytes);
        for (size_t i = 0; i < bytes / sizeof *got; i++)
            CHECK_NEAR(got[i], want[i], 1e-5 * (1 + fabsf(want[i])));
        free(want);
        free(got);
    }
    REFUSED(HR_ERR_RANGE, "audio.mel_scale", "{rate: 8000, n_fft: 300}",
            "a transform of 300 samples gives 151 bins");
    begin(1, 8000, 800);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    REFUSED(HR_ERR_SHAPE, "audio.mel_scale", "{rate: 8000}",
            "no known number of bins: put audio.spectrogram before it");
    CHECK_OK(bench_op(&b, "audio.spectrogram", NULL));
    REFUSED(HR_ERR_RANGE, "audio.mel_scale", "{rate: 8000, f_min: 4000}",
            "the bands end at 4000 Hz");
    end();
}

/* ---- perturbations ---- */

TEST(speed_draws_one_of_its_factors)
{
    int64_t lengths[3] = {0};

    for (uint64_t i = 0; i < 200; i++) {
        begin(2, 8000, 1000);
        b.id.index = i;
        CHECK_OK(bench_op(&b, "audio.decode", NULL));
        CHECK_OK(bench_op(&b, "audio.speed", "{factors: [0.5, 1, 1.25]}"));
        CHECK(frames() == 2000 || frames() == 1000 || frames() == 800);
        lengths[frames() == 2000 ? 0 : frames() == 1000 ? 1 : 2]++;
        if (frames() == 1000)
            CHECK(sample(1, 7) == 71);
    }
    for (int i = 0; i < 3; i++)
        CHECK(lengths[i] > 30);
    begin(1, 8000, 50);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    REFUSED(HR_ERR_RANGE, "audio.speed", "{factors: [1, 0.12345]}",
            "factor 0.12345 has more than three decimals");
    REFUSED(HR_ERR_RANGE, "audio.speed", "{factors: 0}", "factors");
    CHECK_OK(bench_op(&b, "audio.speed", "{factors: 2}"));
    CHECK_EQ_INT(frames(), 25);
    begin(1, 8000, 0);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.speed", "{factors: 2}"));
    CHECK_EQ_INT(frames(), 0);
    end();
}

TEST(stretched_sounds_have_the_announced_length)
{
    begin(2, 8000, 900);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.crop", "{frames: 800}"));
    CHECK_OK(bench_op(&b, "audio.time_stretch", "{rate: 0.8, n_fft: 256}"));
    CHECK_EQ_INT(bench_field(&b, "audio")->dims[1].size, 1000);
    CHECK_EQ_INT(frames(), 1000);
    for (uint64_t i = 0; i < 50; i++) {
        begin(1, 8000, 400);
        b.id.index = i;
        CHECK_OK(bench_op(&b, "audio.decode", NULL));
        CHECK_OK(bench_op(&b, "audio.time_stretch", "{rate: [0.5, 2], n_fft: 64}"));
        CHECK(frames() >= 200 && frames() <= 800);
    }
    begin(1, 8000, 0);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    CHECK_OK(bench_op(&b, "audio.time_stretch", "{rate: 0.5}"));
    CHECK_EQ_INT(frames(), 0);
    REFUSED(HR_ERR_RANGE, "audio.time_stretch", "{rate: [2, 1]}", "smaller number");
    REFUSED(HR_ERR_RANGE, "audio.time_stretch", "{rate: 0}", "rate");
    REFUSED(HR_ERR_RANGE, "audio.time_stretch", "{rate: 1, n_fft: 255}", "must be even");
    REFUSED(HR_ERR_RANGE, "audio.time_stretch", "{rate: 1, n_fft: 64, win: 65}",
            "larger than the transform");
    REFUSED(HR_ERR_RANGE, "audio.time_stretch", "{rate: 1, n_fft: 64, hop: 65}", "gaps");
    REFUSED(HR_ERR_UNSUPPORTED, "audio.time_stretch", "{rate: 1, n_fft: 2062}",
            "prime factor");
    end();
}

TEST(a_shift_of_pitch_keeps_the_length)
{
    bool seen[5] = {false};

    for (uint64_t i = 0; i < 60; i++) {
        float first;

        begin(1, 8000, 700);
        b.id.index = i;
        CHECK_OK(bench_op(&b, "audio.decode", NULL));
        CHECK_OK(bench_op(&b, "audio.pitch", "{steps: [-2, 2], n_fft: 128}"));
        CHECK_EQ_INT(frames(), 700);
        first = (float)sample(0, 350);
        for (int steps = -2; steps <= 2; steps++) {
            char params[64];

            begin(1, 8000, 700);
            CHECK_OK(bench_op(&b, "audio.decode", NULL));
            snprintf(params, sizeof params, "{steps: %d, n_fft: 128}", steps);
            CHECK_OK(bench_op(&b, "audio.pitch", params));
            seen[steps + 2] = seen[steps + 2] || (float)sample(0, 350) == first;
            if (steps == 0)
                CHECK(sample(0, 350) == 3500);
        }
    }
    for (int i = 0; i < 5; i++)
        CHECK(seen[i]);
    REFUSED(HR_ERR_RANGE, "audio.pitch", "{steps: [2, -2]}", "smaller number");
    REFUSED(HR_ERR_RANGE, "audio.pitch", "{steps: 61}", "five octaves");
    REFUSED(HR_ERR_RANGE, "audio.pitch", "{steps: [-40, 40], octave: 120}",
            "81 different steps");
    end();
}

/* A file of one channel of a constant level; returns its path. */
static const char *write_constant(const char *name, uint32_t rate, int count, int level)
{
    static char path[512];
    struct wav_head head = {1, 1, rate, 16, 0};
    int16_t samples[4000];
    struct hr_str made;

    for (int i = 0; i < count; i++)
        samples[i] = (int16_t)level;
    hr__str_init(&made);
    wav_file(&made, &head, samples, (size_t)count * 2);
    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(path, made.text, made.length, NULL));
    hr__str_finish(&made);
    return path;
}

#define BANK_OP(op, more)                                                                \
    (snprintf(params, sizeof params, "{path: '%s'" more "}", path),                      \
     bench_op(&b, op, params))

TEST(noise_is_as_loud_as_asked_and_repeats)
{
    const char *path = write_constant("noise 1.wav", 8000, 30, 1000);
    char params[700];

    begin(2, 8000, 100);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(BANK_OP("audio.noise", ", snr: 20"));
    for (int i = 0; i < 100; i++) { /* mean power of the ramps: 573^2 */
        CHECK_NEAR(sample(0, i) - i * 10, 57.36, 0.1);
        CHECK_NEAR(sample(1, i) - i * 10 - 1, 57.36, 0.1);
    }
    begin(1, 8000, 100);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(BANK_OP("audio.noise", ", p: 0"));
    CHECK(sample(0, 7) == 70);
    begin_quiet(100, 0, 0);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(BANK_OP("audio.noise", ""));
    CHECK(sample(0, 7) == 0);
    path = write_constant("silence.wav", 8000, 30, 0);
    begin(1, 8000, 100);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(BANK_OP("audio.noise", ""));
    CHECK(sample(0, 7) == 70);
    end();
}

TEST(what_is_wrong_with_files_that_are_mixed_in_is_said)
{
    const char *path = write_constant("empty.wav", 8000, 0, 0);
    char params[700];

    begin(1, 8000, 100);
    CHECK_OK(bench_op(&b, "audio.decode", NULL));
    REFUSED(HR_ERR_TYPE, "audio.noise", "{path: x.wav}", "noise needs one");
    REFUSED(HR_ERR_TYPE, "audio.reverb", NULL, "a room needs one");
    begin(1, 8000, 100);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    REFUSED(HR_ERR_NOT_FOUND, "audio.noise", "{path: /absent/x.wav}", "/absent");
    CHECK_ERR(HR_ERR_FORMAT, BANK_OP("audio.noise", ""));
    CHECK_HAS(b.error.message, "empty.wav: the file has no samples");
    path = write_constant("long.wav", 8000, 300, 5);
    CHECK_ERR(HR_ERR_LIMIT, BANK_OP("audio.noise", ", samples_max: 299"));
    CHECK_HAS(b.error.message, "long.wav");
    REFUSED(HR_ERR_RANGE, "audio.noise", "{path: x, snr: [3, 2]}", "smaller number");
    REFUSED(HR_ERR_RANGE, "audio.reverb", "{rt60: [3, 2]}", "smaller number");
    REFUSED(HR_ERR_RANGE, "audio.reverb", "{drr: [3, 2]}", "smaller number");
    end();
}

TEST(a_room_from_a_file_is_a_convolution_in_place)
{
    const char *path;
    char params[700];

    path = write_constant("room.wav", 8000, 4, 100); /* 0.5, 0.5, 0.5, 0.5 */
    begin(2, 8000, 100);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(BANK_OP("audio.reverb", ""));
    CHECK_EQ_INT(frames(), 100);
    CHECK_NEAR(sample(0, 0), 0, 1e-2);
    CHECK_NEAR(sample(0, 1), 5, 1e-2);
    for (int i = 3; i < 100; i++)
        CHECK_NEAR(sample(1, i), 20 * i - 30 + 2, 1e-2);
    path = write_constant("one.wav", 16000, 1, 9); /* resampled: a short tone */
    begin(1, 8000, 100);
    CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
    CHECK_OK(BANK_OP("audio.reverb", ""));
    CHECK_NEAR(sample(0, 50), 500, 1e-2);
    end();
}

TEST(drawn_rooms_have_the_asked_direct_sound)
{
    double sums[2] = {0};

    for (uint64_t i = 0; i < 20; i++) {
        begin_quiet(0, 1, 3000);
        b.id.index = i;
        CHECK_OK(bench_op(&b, "audio.decode", "{rate: 8000}"));
        CHECK_OK(bench_op(&b, "audio.reverb", "{rt60: 0.2, drr: 6}"));
        CHECK_EQ_INT(frames(), 3001);
        for (int k = 1; k < 1601; k++)
            sums[1] += pow(sample(0, k) / 8000, 2);
        sums[0] += pow(sample(0, 0) / 8000, 2);
        CHECK(fabs(sample(0, 1700)) < 1);
    }
    CHECK_NEAR(10 * log10(sums[0] / sums[1]), 6, 0.1);
    CHECK_NEAR(sums[0] + sums[1], 20, 0.01);
    end();
}
