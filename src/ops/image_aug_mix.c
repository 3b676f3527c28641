/*
 * image.aug_mix - a weighted mean of the image and of several chains of random steps on
 * it.
 *
 * The other fields of a record cannot follow: each chain moves its image elsewhere.
 */
#include "kernel/mix.h"
#include "ops/augment.h"
#include "ops/image_levels.h"
#include "ops/image_turn.h"

#define CHAINS_MAX 64
#define STEPS_MAX 64
#define BINS 10

struct aug_mix {
    const char *field;
    int64_t severity, mixture_width, chain_depth;
    double alpha;
    bool all_ops;
    struct hr_augment_how how;
};

static const struct hr_augment_space space = {.shear = 0.3,
                                              .shift = 1.0 / 3,
                                              .shift_of_side = true,
                                              .turn = 30,
                                              .factor = 0.9,
                                              .bits = 4,
                                              .bits_less = 4};

static const struct hr_param aug_mix_params[] = {
    HR_P_INT(struct aug_mix, severity, .fallback = "3", HR_RANGE(1, BINS),
             .help = "number of magnitudes, of 10 from none to the greatest, that are "
                     "drawn from"),
    HR_P_INT(struct aug_mix, mixture_width, .fallback = "3", HR_RANGE(1, CHAINS_MAX),
             .help = "number of chains"),
    HR_P_INT(struct aug_mix, chain_depth, .fallback = "-1", HR_RANGE(-1, STEPS_MAX),
             .help = "steps of a chain; 0 or -1: 1 to 3, drawn"),
    HR_P_FLOAT(struct aug_mix, alpha, .fallback = "1", .has_min = true, .min = 0,
               .min_open = true, .has_max = true, .max = 1e6,
               .help = "parameter of the distributions of the weights"),
    HR_P_BOOL(struct aug_mix, all_ops, .fallback = "true",
              .help = "brightness, color, contrast and sharpness are drawn as well"),
    HR_P_AUGMENT(struct aug_mix, "bilinear"),
    HR_P_IMAGE(struct aug_mix),
};

static enum hr_err aug_mix_infer(struct hr_infer *infer)
{
    const struct aug_mix *p = infer->params;

    return hr__infer_augment(infer, &p->how);
}

static int draw_chain(const struct aug_mix *p, const struct hr_pixels *image,
                      struct hr_rng *rng, struct hr_augment_step *ret_steps)
{
    static const enum hr_augment_kind some[] = {
        HR_AUGMENT_SHEAR_X,     HR_AUGMENT_SHEAR_Y,       HR_AUGMENT_TRANSLATE_X,
        HR_AUGMENT_TRANSLATE_Y, HR_AUGMENT_ROTATE,        HR_AUGMENT_POSTERIZE,
        HR_AUGMENT_SOLARIZE,    HR_AUGMENT_AUTO_CONTRAST, HR_AUGMENT_EQUALIZE,
    };
    int depth = p->chain_depth > 0 ? (int)p->chain_depth : 1 + (int)hr__rng_below(rng, 3);

    for (int i = 0; i < depth; i++) {
        enum hr_augment_kind kind =
            p->all_ops
                ? (enum hr_augment_kind)(1 + hr__rng_below(rng, HR_AUGMENT_KINDS - 1))
                : some[hr__rng_below(rng, sizeof some / sizeof some[0])];
        int64_t bin = (int64_t)hr__rng_below(rng, (uint64_t)p->severity);

        ret_steps[i] =
            hr__augment_draw(&space, kind, bin, BINS, image->width, image->height, rng);
    }
    return depth;
}

/* Adds the image in the field, of the size of `sum`. */
static enum hr_err add_image(struct hr_op_ctx *ctx, float weight, float *sum, size_t n)
{
    struct hr_pixels pixels;

    HR_TRY(hr__image_read(ctx, 0, &pixels));
    hr__mix_add(pixels.data, weight, sum, n);
    return HR_OK;
}

static enum hr_err aug_mix_apply(struct hr_op_ctx *ctx)
{
    const struct aug_mix *p = ctx->params;
    struct hr_augment_step steps[STEPS_MAX];
    double image_and_chains[2], shares[CHAINS_MAX];
    struct hr_pixels pixels;
    struct hr_value image;
    struct hr_rng rng;
    void *sum;
    size_t n;

    hr__op_rng(ctx, &rng);
    hr__rng_dirichlet(&rng, p->alpha, 2, image_and_chains);
    hr__rng_dirichlet(&rng, p->alpha, (int)p->mixture_width, shares);
    HR_TRY(hr__image_own(ctx, 0, &pixels)); /* in the arena, without gaps */
    image = *ctx->fields[0];
    n = (size_t)pixels.width * (size_t)pixels.height * (size_t)pixels.channels;
    HR_TRY(hr__op_alloc(ctx, n * sizeof(float), &sum));
    hr__mix_begin(pixels.data, (float)image_and_chains[0], sum, n);
    for (int64_t i = 0; i < p->mixture_width; i++) {
        int depth = draw_chain(p, &pixels, &rng, steps);

        *ctx->fields[0] = image;
        HR_TRY(hr__augment(ctx, steps, depth, &p->how));
        HR_TRY(add_image(ctx, (float)shares[i] * (float)image_and_chains[1], sum, n));
    }
    *ctx->fields[0] = image;
    hr__mix_end(sum, pixels.data, n);
    return HR_OK;
}

const struct hr_op hr_op_image_aug_mix = {
    .name = "image.aug_mix",
    .summary = "mix the image with chains of random changes of it",
    .doc = "Like torchvision's AugMix: `mixture_width` chains of changes, as those of "
           "image.rand_augment, are run on the image; the result is a mean of the image "
           "and of their results by drawn weights, truncated to whole levels. Masks, "
           "boxes and points cannot follow.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(aug_mix_params, struct aug_mix),
    .infer = aug_mix_infer,
    .apply = aug_mix_apply,
};
