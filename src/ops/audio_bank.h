/*
 * ops/audio_bank.h - shared by the ops that mix other sounds in: files that are read when
 * the graph is opened and stay in memory.
 */
#ifndef HR_OPS_AUDIO_BANK_H
#define HR_OPS_AUDIO_BANK_H

#include "op/op.h"

/* `path`, `suffix` and `samples_max`; `what` completes "files with". */
#define HR_P_BANK(struct_, what, required_)                                              \
    HR_P_PATH(struct_, path, .not_identity = true, .required = (required_),              \
              .help = "files with " what ": one, a folder, or a pattern such as "        \
                      "\"sounds/*.wav\""),                                               \
        HR_P_STRING(struct_, suffix, .fallback = "wav", .not_identity = true,            \
                    .help = "ending of the names in a folder"),                          \
        HR_P_INT(struct_, samples_max, .fallback = "67108864", HR_RANGE(1, 1LL << 40),   \
                 .unit = "samples", .not_identity = true,                                \
                 .help = "refuse files that have more together; they stay in memory, "   \
                         "four bytes a sample")

struct hr_bank_sound {
    float *data;
    int64_t frames; /* at least 1 */
};

/* Read-only once open. */
struct hr_bank {
    size_t count;
    struct hr_bank_sound *sounds;
    int64_t longest;
    struct hr_hash128 hash; /* of all samples */
};

/* Reads the files in the order of their names; channels are averaged, and sounds of
 * another rate resampled to `rate`. Errors name the file. */
HR_CHECK enum hr_err
hr__bank_open(const char *path, const char *suffix, int32_t rate, int64_t samples_max,
              struct hr_bank **ret_bank, struct hr_error *error);
void hr__bank_close(struct hr_bank *bank); /* NULL is allowed */

#endif
