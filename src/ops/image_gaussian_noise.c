/*
 * image.gaussian_noise - adds normal noise to every level.
 *
 * A normal number is the quantile of 16 random bits, from a table that is made when the
 * graph is frozen and holds the noise in levels: a block of Philox gives eight of them,
 * and no logarithm is taken per pixel.
 */
#include <assert.h>
#include <math.h>

#include "core/alloc.h"
#include "ops/image_levels.h"

struct noise {
    const char *field;
    double mean, sigma;
    bool clip;
};

static const struct hr_param noise_params[] = {
    HR_P_FLOAT(struct noise, mean, .fallback = "0", HR_RANGE(-1, 1),
               .help = "mean of the noise, where white is 1"),
    HR_P_FLOAT(struct noise, sigma, .fallback = "0.1", HR_RANGE(0, 1),
               .help = "standard deviation of the noise, where white is 1"),
    HR_P_BOOL(struct noise, clip, .fallback = "true",
              .help = "keep levels between black and white; without it float32 images go "
                      "beyond, and the levels of uint8 images wrap around"),
    HR_P_IMAGE(struct noise),
};

#define BITS 16
#define COUNT (1 << BITS)

struct noise_state {
    bool bytes; /* the image is uint8 */
    union {
        int16_t levels[COUNT]; /* whole ones of 255, truncated */
        float parts[COUNT];
    } of;
};

static enum hr_err noise_infer(struct hr_infer *infer)
{
    const struct noise *p = infer->params;

    if (p->clip)
        HR_TRY(hr__infer_levels(infer, 0));
    return hr__infer_pixels(infer, 0);
}

/* The number below which the normal distribution has the share `share` > 0.5, by Newton's
 * method from a number near it. */
static double quantile(double share, double near)
{
    const double root = sqrt(2 * acos(-1.0));

    for (int i = 0; i < 8; i++)
        near += (share - 1 + 0.5 * erfc(near / sqrt(2))) * root * exp(near * near / 2);
    return near;
}

static void put(struct noise_state *state, const struct noise *p, int at, double normal)
{
    if (state->bytes)
        state->of.levels[at] = (int16_t)(p->mean * 255 + normal * p->sigma * 255);
    else
        state->of.parts[at] = (float)(p->mean + normal * p->sigma);
}

static enum hr_err noise_open(const struct hr_open *open, void **ret_state)
{
    const struct noise *p = open->params;
    const struct hr_field *field = hr__schema_get(open->input, p->field);
    struct noise_state *state = hr__calloc(1, sizeof *state);
    double normal = 0;

    if (state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory for a table of noise");
    state->bytes = field != NULL && field->dtype == HR_U8;
    for (int i = COUNT / 2; i < COUNT; i++) {
        normal = quantile((i + 0.5) / COUNT, normal);
        put(state, p, i, normal);
        put(state, p, COUNT - 1 - i, -normal);
    }
    *ret_state = state;
    return HR_OK;
}

static void noise_close(void *state)
{
    hr__free(state);
}

static void add_levels(const struct noise_state *state, bool clip, const uint16_t *bits,
                       uint8_t *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int level = row[i] + state->of.levels[bits[i]];

        if (clip)
            level = level < 0 ? 0 : level > 255 ? 255 : level;
        row[i] = (uint8_t)level;
    }
}

static void add_parts(const struct noise_state *state, bool clip, const uint16_t *bits,
                      float *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float level = row[i] + state->of.parts[bits[i]];

        if (clip)
            level = level < 0 ? 0 : level > 1 ? 1 : level;
        row[i] = level;
    }
}

#define WORDS 512

/* Adds noise to a run of levels, 16 random bits each, the lower half of a word first. */
static void add_noise(const struct noise *p, const struct noise_state *state,
                      struct hr_rng *rng, char *row, size_t count)
{
    size_t size = state->bytes ? 1 : sizeof(float);
    uint32_t words[WORDS];
    uint16_t bits[2 * WORDS];

    for (size_t done = 0, next; done < count; done += next) {
        next = count - done < 2 * WORDS ? count - done : 2 * WORDS;
        hr__rng_words(rng, words, (next + 1) / 2);
        for (size_t i = 0; i < (next + 1) / 2; i++) {
            bits[2 * i] = (uint16_t)words[i];
            bits[2 * i + 1] = (uint16_t)(words[i] >> 16);
        }
        if (state->bytes)
            add_levels(state, p->clip, bits, (uint8_t *)row + done * size, next);
        else
            add_parts(state, p->clip, bits, (float *)(void *)(row + done * size), next);
    }
}

static enum hr_err noise_apply(struct hr_op_ctx *ctx)
{
    const struct noise *p = ctx->params;
    const struct noise_state *state = ctx->state;
    struct hr_pixels pixels;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    HR_TRY(hr__image_own(ctx, 0, &pixels));
    assert(state->bytes == (pixels.dtype == HR_U8));
    assert(pixels.row_stride == pixels.width * pixels.pixel_stride);
    assert(state->bytes || pixels.channels == 1 ||
           pixels.channel_stride == pixels.height * pixels.row_stride);
    add_noise(p, state, &rng, pixels.data,
              (size_t)pixels.width * (size_t)pixels.height * (size_t)pixels.channels);
    return HR_OK;
}

const struct hr_op hr_op_image_gaussian_noise = {
    .name = "image.gaussian_noise",
    .summary = "add normal noise to every level",
    .doc =
        "Like torchvision's GaussianNoise: each level of each channel gets noise of its "
        "own, in uint8 images truncated to whole levels. The noise takes 65,536 values, "
        "the quantiles of the normal distribution, so none is further than 4.33 "
        "deviations from the mean.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(noise_params, struct noise),
    .open = noise_open,
    .close = noise_close,
    .infer = noise_infer,
    .apply = noise_apply,
};
