/*
 * ops/audio.h - shared by the ops on sound: fields of the kind samples, float32, whose
 * last dim is time and whose other dims are channels.
 */
#ifndef HR_OPS_AUDIO_H
#define HR_OPS_AUDIO_H

#include "op/op.h"

/* `field`, of ops that change a sound or make something else of it. */
#define HR_P_AUDIO(struct_)                                                              \
    HR_P_FIELD(struct_, field, .fallback = "audio", .access = HR_ACCESS_UPDATE,          \
               .help = "the field with the sound")

/* `filter` (enum hr_rate_filter) of ops that change the rate. */
extern const char *const hr__rate_filters[];
#define HR_P_RATE_FILTER(struct_)                                                        \
    HR_P_ENUM(struct_, filter, .fallback = "hq", .names = hr__rate_filters,              \
              .help = "hq: as good as soxr's HQ; torchaudio: the numbers of "            \
                      "torchaudio.functional.resample, faster and with aliases")

/* A number of such an interval, or the only one. */
double hr__draw_from(struct hr_rng *rng, const struct hr_floats *interval);

/* infer: the field is a sound. */
HR_CHECK enum hr_err hr__infer_sound(struct hr_infer *infer, size_t field);
/* infer: and all records have one rate. `what` names what needs it: "a mel spectrogram".
 */
HR_CHECK enum hr_err
hr__infer_rate(struct hr_infer *infer, size_t field, const char *what);
/* infer: the field is a float32 tensor with a dim, whatever it means; what it becomes is
 * no sound. */
HR_CHECK enum hr_err hr__infer_numbers(struct hr_infer *infer, size_t field);
/* The last dim of a field. */
struct hr_dim *hr__field_frames(struct hr_field *field);

/* A record's sound: `channels` runs of `frames` floats, one after the other. */
struct hr_sound {
    const float *data;
    int64_t channels, frames;
};

/* The field's sound; in the arena if the value has gaps. */
HR_CHECK enum hr_err
hr__sound_read(struct hr_op_ctx *ctx, size_t field, struct hr_sound *ret_sound);

/* Replaces the field's value by `data`: the same channels, each `rows` x `frames`
 * numbers; `rows` 0: no dim for rows. */
void hr__sound_replace(struct hr_op_ctx *ctx, size_t field, int64_t rows, int64_t frames,
                       float *data);

/* Arena memory for a result of `channels` times `frames` floats, and `more` after them.
 */
HR_CHECK enum hr_err hr__sound_alloc(struct hr_op_ctx *ctx, int64_t channels,
                                     int64_t frames, int64_t more, float **ret_data);

/* The field's numbers, and memory for as many: in the arena, or in place. */
HR_CHECK enum hr_err hr__numbers_write(struct hr_op_ctx *ctx, size_t field,
                                       struct hr_sound *ret_sound, float **ret_data);

/* Replaces the field's value, whose sound is `sound`, by that at another rate. */
struct hr_polyphase; /* kernel/polyphase.h */
HR_CHECK enum hr_err
hr__sound_resample(struct hr_op_ctx *ctx, size_t field, const struct hr_sound *sound,
                   const struct hr_polyphase *polyphase);

#endif
