/*
 * audio.decode - makes samples of a sound file's bytes, or of a window of it.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codec/wav.h"
#include "ops/audio.h"

_Static_assert(HR_WAV_RATE_MAX == HR_RATE_MAX, "a file's rate fits a field");

struct decode {
    const char *field, *to, *rate_to;
    int64_t rate, start, frames;
};

static const struct hr_param decode_params[] = {
    HR_P_FIELD(struct decode, field, .fallback = "data", .access = HR_ACCESS_TAKE,
               .help = "the field with the encoded bytes; it is dropped"),
    HR_P_FIELD(struct decode, to, .fallback = "audio", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the sound"),
    HR_P_FIELD(struct decode, rate_to, .fallback = "rate", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the rate of the file, an int64"),
    HR_P_INT(struct decode, rate, .fallback = "0", HR_RANGE(0, HR_RATE_MAX), .unit = "Hz",
             .help = "the rate that all files have; a file with another one is a bad "
                     "record. 0: any"),
    HR_P_INT(struct decode, start, .fallback = "0", HR_RANGE(0, 1e15), .unit = "frames",
             .help = "the first frame to decode"),
    HR_P_INT(struct decode, frames, .fallback = "0", HR_RANGE(0, 1e15), .unit = "frames",
             .help = "how many to decode at most; 0: all that follow"),
};

enum { FIELD_FROM, FIELD_TO, FIELD_RATE };

static void set_field(struct hr_field *field, enum hr_dtype dtype, int ndim)
{
    struct hr_field old = *field;

    *field = (struct hr_field){
        .kind = HR_FIELD_TENSOR, .dtype = dtype, .ndim = ndim, .slot = old.slot};
    memcpy(field->name, old.name, sizeof field->name);
}

static enum hr_err decode_infer(struct hr_infer *infer)
{
    const struct decode *p = infer->params;
    const struct hr_field *from = infer->fields[FIELD_FROM];
    struct hr_field *to = infer->fields[FIELD_TO], *rate = infer->fields[FIELD_RATE];

    if (to == rate || from == rate)
        return hr__infer_fail(infer, "rate_to", HR_ERR_ARGUMENT,
                              "the rate needs a field of its own");
    if (from != to && from->kind != HR_FIELD_BYTES)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" has no bytes to decode", p->field);
    set_field(to, HR_F32, 2);
    snprintf(to->name, sizeof to->name, "%s", p->to);
    to->meaning = HR_MEANING_SAMPLES;
    to->rate = (int32_t)p->rate;
    hr__dim_unknown(&to->dims[0], "channels");
    hr__dim_unknown(&to->dims[1], "frames");
    set_field(rate, HR_I64, 0);
    snprintf(rate->name, sizeof rate->name, "%s", p->rate_to);
    return HR_OK;
}

/* What bytes that are no WAV file look like, for messages. */
static const char *looks_like(const char *data, size_t bytes)
{
    static const struct {
        const char *magic, *name;
    } formats[] = {
        {"fLaC",     "a FLAC file"          },
        {"OggS",     "an Ogg file"          },
        {"ID3",      "an MP3 file"          },
        {"\xff\xfb", "an MP3 file"          },
        {"RIFX",     "a big-endian WAV file"},
        {"FORM",     "an AIFF file"         },
        {"<",        "an HTML or XML page"  },
    };

    if (bytes == 0)
        return "an empty file";
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        size_t length = strlen(formats[i].magic);

        if (bytes >= length && memcmp(data, formats[i].magic, length) == 0)
            return formats[i].name;
    }
    return "no sound file that is known";
}

static enum hr_err
find_window(struct hr_op_ctx *ctx, const struct hr_wav *wav, uint64_t *ret_count)
{
    const struct decode *p = ctx->params;
    uint64_t start = (uint64_t)p->start, count = (uint64_t)p->frames;

    if (p->rate > 0 && wav->rate != p->rate)
        return hr__fail(ctx->error, HR_ERR_FORMAT,
                        "the file has %d Hz, and `rate` says that all have %lld: leave "
                        "`rate` out and put audio.resample after it",
                        (int)wav->rate, (long long)p->rate);
    if (start > wav->frames || (start == wav->frames && start > 0))
        return hr__fail(ctx->error, HR_ERR_RANGE,
                        "the file has %llu frames, and `start` is %llu",
                        (unsigned long long)wav->frames, (unsigned long long)start);
    *ret_count = wav->frames - start;
    if (count > 0 && count < *ret_count)
        *ret_count = count;
    return HR_OK;
}

/* Files of floats can hold what no sound is. */
static enum hr_err
check_finite(struct hr_op_ctx *ctx, const float *data, int64_t channels, int64_t frames)
{
    for (int64_t i = 0; i < channels * frames; i++)
        if (!isfinite(data[i]))
            return hr__fail(ctx->error, HR_ERR_FORMAT,
                            "frame %lld of channel %lld is not a finite number",
                            (long long)(i % frames), (long long)(i / frames));
    return HR_OK;
}

static enum hr_err
decode_wav(struct hr_op_ctx *ctx, const void *bytes, const struct hr_wav *wav)
{
    const struct decode *p = ctx->params;
    int64_t dims[2] = {wav->channels};
    uint64_t count = 0;
    float *data;
    void *rate;

    HR_TRY(find_window(ctx, wav, &count));
    dims[1] = (int64_t)count;
    HR_TRY(hr__sound_alloc(ctx, dims[0], dims[1], 0, &data));
    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &rate));
    hr__wav_read(wav, bytes, (uint64_t)p->start, count, data, count);
    if (wav->coding == HR_SAMPLE_F32 || wav->coding == HR_SAMPLE_F64)
        HR_TRY(check_finite(ctx, data, dims[0], dims[1]));
    *(int64_t *)rate = wav->rate;
    hr__value_clear(ctx->fields[FIELD_FROM]);
    hr__value_set_tensor(ctx->fields[FIELD_TO], HR_F32, 2, dims, data, NULL);
    hr__value_set_tensor(ctx->fields[FIELD_RATE], HR_I64, 0, NULL, rate, NULL);
    return HR_OK;
}

static enum hr_err decode_apply(struct hr_op_ctx *ctx)
{
    const struct hr_value *from = ctx->fields[FIELD_FROM];
    struct hr_wav wav;

    if (from->kind != HR_VALUE_BYTES)
        return hr__fail(ctx->error, HR_ERR_TYPE, "the field has no bytes to decode");
    if (!hr__wav_sniff(from->data, from->bytes))
        return hr__fail(ctx->error, HR_ERR_UNSUPPORTED,
                        "the data looks like %s; WAV files are supported",
                        looks_like(from->data, from->bytes));
    HR_TRY(hr__wav_probe(from->data, from->bytes, &wav, ctx->error));
    return decode_wav(ctx, from->data, &wav);
}

const struct hr_op hr_op_audio_decode = {
    .name = "audio.decode",
    .summary = "decode a WAV file to samples",
    .doc =
        "Outputs float32 `[channels, frames]` in -1..1, as torchaudio.load does, and the "
        "file's rate as an int64. WAV files of 8, 16, 24 and 32-bit integers and of "
        "32 and 64-bit floats are read, plain, extensible or RF64. `start` and `frames` "
        "read a window of a long file and nothing else of it. Rates never mix "
        "unnoticed: unless `rate` is given, the sounds may differ in it, and mel "
        "spectrograms and batches refuse them until audio.resample has given them one. "
        "A malformed header, a file that is cut short, and floats that are not finite "
        "are "
        "errors.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(decode_params, struct decode),
    .infer = decode_infer,
    .apply = decode_apply,
};
