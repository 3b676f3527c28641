/*
 * audio.time_mask - blanks out random stretches of time of a spectrum.
 */
#include "ops/audio_mask.h"

static const struct hr_param time_mask_params[] = {HR_P_MASK("frames")};

static enum hr_err time_mask_apply(struct hr_op_ctx *ctx)
{
    return hr__mask_apply(ctx, true);
}

const struct hr_op hr_op_audio_time_mask = {
    .name = "audio.time_mask",
    .summary = "blank out random stretches of time of a spectrum",
    .doc = "SpecAugment. Widths are drawn from 0 to the largest, both possible, then "
           "places; all channels have the same masks. torchaudio.transforms.TimeMasking "
           "never draws the largest width and makes one mask.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(time_mask_params, struct hr_mask),
    .infer = hr__mask_infer,
    .apply = time_mask_apply,
};
