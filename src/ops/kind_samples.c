/*
 * kind_samples.c - sound: float32, the last dim is time, those before it are channels.
 * The field knows its rate; 0 means that records may differ, and then neither a spectrum
 * nor a batch is made of it.
 */
#include "ops/kinds.h"

static bool samples_accepts(const struct hr_field *field)
{
    return field->dtype == HR_F32 && field->ndim >= 1;
}

const struct hr_kind hr__kind_samples = {
    .name = "samples",
    .wants = "float32 [..., frames]",
    .meaning = HR_MEANING_SAMPLES,
    .meaning_last = HR_MEANING_SAMPLES,
    .accepts = samples_accepts,
};
