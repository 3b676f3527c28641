/*
 * audio.freq_mask - blanks out random bands of frequencies of a spectrum.
 */
#include "ops/audio_mask.h"

static const struct hr_param freq_mask_params[] = {HR_P_MASK("rows")};

static enum hr_err freq_mask_apply(struct hr_op_ctx *ctx)
{
    return hr__mask_apply(ctx, false);
}

const struct hr_op hr_op_audio_freq_mask = {
    .name = "audio.freq_mask",
    .summary = "blank out random bands of frequencies of a spectrum",
    .doc = "SpecAugment. Widths are drawn from 0 to the largest, both possible, then "
           "places; all channels have the same masks. "
           "torchaudio.transforms.FrequencyMasking "
           "never draws the largest width and makes one mask.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(freq_mask_params, struct hr_mask),
    .infer = hr__mask_infer,
    .apply = freq_mask_apply,
};
