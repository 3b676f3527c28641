/*
 * audio.decode - makes samples of a sound file's bytes, or of a window of it.
 */
#include <stdio.h>
#include <string.h>

#include "codec/sound.h"
#include "ops/audio.h"

_Static_assert(HR_WAV_RATE_MAX == HR_RATE_MAX, "a file's rate fits a field");

struct decode {
    const char *field, *to, *rate_to;
    int64_t rate, start, frames, samples_max;
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
    HR_P_INT(struct decode, samples_max, .fallback = "268435456", HR_RANGE(1, 1LL << 40),
             .unit = "samples", .help = "refuse what decodes to more, in all channels"),
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

static enum hr_err decode_apply(struct hr_op_ctx *ctx)
{
    const struct decode *p = ctx->params;
    const struct hr_value *from = ctx->fields[FIELD_FROM];
    const struct hr_sound_request request = {.start = (uint64_t)p->start,
                                             .frames = (uint64_t)p->frames,
                                             .samples_max = (uint64_t)p->samples_max,
                                             .rate = (int32_t)p->rate};
    struct hr_sound_part part;
    int64_t dims[2];
    void *rate;

    if (from->kind != HR_VALUE_BYTES)
        return hr__fail(ctx->error, HR_ERR_TYPE, "the field has no bytes to decode");
    HR_TRY(hr__sound_decode(&ctx->thread->arena, from->data, from->bytes, &request, &part,
                            ctx->error));
    HR_TRY(hr__op_alloc(ctx, sizeof(int64_t), &rate));
    *(int64_t *)rate = part.rate;
    dims[0] = part.channels;
    dims[1] = part.frames;
    hr__value_clear(ctx->fields[FIELD_FROM]);
    hr__value_set_tensor(ctx->fields[FIELD_TO], HR_F32, 2, dims, part.data, NULL);
    hr__value_set_tensor(ctx->fields[FIELD_RATE], HR_I64, 0, NULL, rate, NULL);
    return HR_OK;
}

const struct hr_op hr_op_audio_decode = {
    .name = "audio.decode",
    .summary = "decode a WAV, FLAC, Ogg or MP3 file to samples",
    .doc =
        "Outputs float32 `[channels, frames]` in -1..1, as torchaudio.load does, and the "
        "file's rate as an int64. The format is found by content. WAV files of 8, 16, 24 "
        "and 32-bit integers and of 32 and 64-bit floats are read, plain, extensible or "
        "RF64; FLAC, Ogg (Vorbis, Opus) and MP3 by the machine's libsndfile: samples of "
        "lossy formats depend on its version. `start` and `frames` decode a "
        "window of a long file and nothing else of it. Rates never mix unnoticed: unless "
        "`rate` is given, the sounds may differ in it, and spectra and batches refuse "
        "them "
        "until audio.resample has given them one. A malformed header, a file that is cut "
        "short, and floats that are not finite are errors; so is a wrong checksum in an "
        "Ogg file of which all is decoded.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(decode_params, struct decode),
    .infer = decode_infer,
    .apply = decode_apply,
};
