/*
 * image.auto_augment - one of 25 pairs of steps, that a search found for a data set.
 *
 * The pairs are those of Cubuk et al., "AutoAugment: Learning Augmentation Strategies
 * from Data", CVPR 2019, as torchvision has them.
 */
#include "ops/augment.h"
#include "ops/image_turn.h"

#define PAIRS 25
#define BINS 10

struct part {
    uint8_t kind, tenths, bin; /* probability in tenths */
};

static const struct part imagenet[PAIRS][2] = {
    {{HR_AUGMENT_POSTERIZE, 4, 8}, {HR_AUGMENT_ROTATE, 6, 9}       },
    {{HR_AUGMENT_SOLARIZE, 6, 5},  {HR_AUGMENT_AUTO_CONTRAST, 6, 0}},
    {{HR_AUGMENT_EQUALIZE, 8, 0},  {HR_AUGMENT_EQUALIZE, 6, 0}     },
    {{HR_AUGMENT_POSTERIZE, 6, 7}, {HR_AUGMENT_POSTERIZE, 6, 6}    },
    {{HR_AUGMENT_EQUALIZE, 4, 0},  {HR_AUGMENT_SOLARIZE, 2, 4}     },
    {{HR_AUGMENT_EQUALIZE, 4, 0},  {HR_AUGMENT_ROTATE, 8, 8}       },
    {{HR_AUGMENT_SOLARIZE, 6, 3},  {HR_AUGMENT_EQUALIZE, 6, 0}     },
    {{HR_AUGMENT_POSTERIZE, 8, 5}, {HR_AUGMENT_EQUALIZE, 10, 0}    },
    {{HR_AUGMENT_ROTATE, 2, 3},    {HR_AUGMENT_SOLARIZE, 6, 8}     },
    {{HR_AUGMENT_EQUALIZE, 6, 0},  {HR_AUGMENT_POSTERIZE, 4, 6}    },
    {{HR_AUGMENT_ROTATE, 8, 8},    {HR_AUGMENT_COLOR, 4, 0}        },
    {{HR_AUGMENT_ROTATE, 4, 9},    {HR_AUGMENT_EQUALIZE, 6, 0}     },
    {{HR_AUGMENT_EQUALIZE, 0, 0},  {HR_AUGMENT_EQUALIZE, 8, 0}     },
    {{HR_AUGMENT_INVERT, 6, 0},    {HR_AUGMENT_EQUALIZE, 10, 0}    },
    {{HR_AUGMENT_COLOR, 6, 4},     {HR_AUGMENT_CONTRAST, 10, 8}    },
    {{HR_AUGMENT_ROTATE, 8, 8},    {HR_AUGMENT_COLOR, 10, 2}       },
    {{HR_AUGMENT_COLOR, 8, 8},     {HR_AUGMENT_SOLARIZE, 8, 7}     },
    {{HR_AUGMENT_SHARPNESS, 4, 7}, {HR_AUGMENT_INVERT, 6, 0}       },
    {{HR_AUGMENT_SHEAR_X, 6, 5},   {HR_AUGMENT_EQUALIZE, 10, 0}    },
    {{HR_AUGMENT_COLOR, 4, 0},     {HR_AUGMENT_EQUALIZE, 6, 0}     },
    {{HR_AUGMENT_EQUALIZE, 4, 0},  {HR_AUGMENT_SOLARIZE, 2, 4}     },
    {{HR_AUGMENT_SOLARIZE, 6, 5},  {HR_AUGMENT_AUTO_CONTRAST, 6, 0}},
    {{HR_AUGMENT_INVERT, 6, 0},    {HR_AUGMENT_EQUALIZE, 10, 0}    },
    {{HR_AUGMENT_COLOR, 6, 4},     {HR_AUGMENT_CONTRAST, 10, 8}    },
    {{HR_AUGMENT_EQUALIZE, 8, 0},  {HR_AUGMENT_EQUALIZE, 6, 0}     },
};

static const struct part cifar10[PAIRS][2] = {
    {{HR_AUGMENT_INVERT, 1, 0},        {HR_AUGMENT_CONTRAST, 2, 6}     },
    {{HR_AUGMENT_ROTATE, 7, 2},        {HR_AUGMENT_TRANSLATE_X, 3, 9}  },
    {{HR_AUGMENT_SHARPNESS, 8, 1},     {HR_AUGMENT_SHARPNESS, 9, 3}    },
    {{HR_AUGMENT_SHEAR_Y, 5, 8},       {HR_AUGMENT_TRANSLATE_Y, 7, 9}  },
    {{HR_AUGMENT_AUTO_CONTRAST, 5, 0}, {HR_AUGMENT_EQUALIZE, 9, 0}     },
    {{HR_AUGMENT_SHEAR_Y, 2, 7},       {HR_AUGMENT_POSTERIZE, 3, 7}    },
    {{HR_AUGMENT_COLOR, 4, 3},         {HR_AUGMENT_BRIGHTNESS, 6, 7}   },
    {{HR_AUGMENT_SHARPNESS, 3, 9},     {HR_AUGMENT_BRIGHTNESS, 7, 9}   },
    {{HR_AUGMENT_EQUALIZE, 6, 0},      {HR_AUGMENT_EQUALIZE, 5, 0}     },
    {{HR_AUGMENT_CONTRAST, 6, 7},      {HR_AUGMENT_SHARPNESS, 6, 5}    },
    {{HR_AUGMENT_COLOR, 7, 7},         {HR_AUGMENT_TRANSLATE_X, 5, 8}  },
    {{HR_AUGMENT_EQUALIZE, 3, 0},      {HR_AUGMENT_AUTO_CONTRAST, 4, 0}},
    {{HR_AUGMENT_TRANSLATE_Y, 4, 3},   {HR_AUGMENT_SHARPNESS, 2, 6}    },
    {{HR_AUGMENT_BRIGHTNESS, 9, 6},    {HR_AUGMENT_COLOR, 2, 8}        },
    {{HR_AUGMENT_SOLARIZE, 5, 2},      {HR_AUGMENT_INVERT, 0, 0}       },
    {{HR_AUGMENT_EQUALIZE, 2, 0},      {HR_AUGMENT_AUTO_CONTRAST, 6, 0}},
    {{HR_AUGMENT_EQUALIZE, 2, 0},      {HR_AUGMENT_EQUALIZE, 6, 0}     },
    {{HR_AUGMENT_COLOR, 9, 9},         {HR_AUGMENT_EQUALIZE, 6, 0}     },
    {{HR_AUGMENT_AUTO_CONTRAST, 8, 0}, {HR_AUGMENT_SOLARIZE, 2, 8}     },
    {{HR_AUGMENT_BRIGHTNESS, 1, 3},    {HR_AUGMENT_COLOR, 7, 0}        },
    {{HR_AUGMENT_SOLARIZE, 4, 5},      {HR_AUGMENT_AUTO_CONTRAST, 9, 0}},
    {{HR_AUGMENT_TRANSLATE_Y, 9, 9},   {HR_AUGMENT_TRANSLATE_Y, 7, 9}  },
    {{HR_AUGMENT_AUTO_CONTRAST, 9, 0}, {HR_AUGMENT_SOLARIZE, 8, 3}     },
    {{HR_AUGMENT_EQUALIZE, 8, 0},      {HR_AUGMENT_INVERT, 1, 0}       },
    {{HR_AUGMENT_TRANSLATE_Y, 7, 9},   {HR_AUGMENT_AUTO_CONTRAST, 9, 0}},
};

static const struct part svhn[PAIRS][2] = {
    {{HR_AUGMENT_SHEAR_X, 9, 4},  {HR_AUGMENT_INVERT, 2, 0}       },
    {{HR_AUGMENT_SHEAR_Y, 9, 8},  {HR_AUGMENT_INVERT, 7, 0}       },
    {{HR_AUGMENT_EQUALIZE, 6, 0}, {HR_AUGMENT_SOLARIZE, 6, 6}     },
    {{HR_AUGMENT_INVERT, 9, 0},   {HR_AUGMENT_EQUALIZE, 6, 0}     },
    {{HR_AUGMENT_EQUALIZE, 6, 0}, {HR_AUGMENT_ROTATE, 9, 3}       },
    {{HR_AUGMENT_SHEAR_X, 9, 4},  {HR_AUGMENT_AUTO_CONTRAST, 8, 0}},
    {{HR_AUGMENT_SHEAR_Y, 9, 8},  {HR_AUGMENT_INVERT, 4, 0}       },
    {{HR_AUGMENT_SHEAR_Y, 9, 5},  {HR_AUGMENT_SOLARIZE, 2, 6}     },
    {{HR_AUGMENT_INVERT, 9, 0},   {HR_AUGMENT_AUTO_CONTRAST, 8, 0}},
    {{HR_AUGMENT_EQUALIZE, 6, 0}, {HR_AUGMENT_ROTATE, 9, 3}       },
    {{HR_AUGMENT_SHEAR_X, 9, 4},  {HR_AUGMENT_SOLARIZE, 3, 3}     },
    {{HR_AUGMENT_SHEAR_Y, 8, 8},  {HR_AUGMENT_INVERT, 7, 0}       },
    {{HR_AUGMENT_EQUALIZE, 9, 0}, {HR_AUGMENT_TRANSLATE_Y, 6, 6}  },
    {{HR_AUGMENT_INVERT, 9, 0},   {HR_AUGMENT_EQUALIZE, 6, 0}     },
    {{HR_AUGMENT_CONTRAST, 3, 3}, {HR_AUGMENT_ROTATE, 8, 4}       },
    {{HR_AUGMENT_INVERT, 8, 0},   {HR_AUGMENT_TRANSLATE_Y, 0, 2}  },
    {{HR_AUGMENT_SHEAR_Y, 7, 6},  {HR_AUGMENT_SOLARIZE, 4, 8}     },
    {{HR_AUGMENT_INVERT, 6, 0},   {HR_AUGMENT_ROTATE, 8, 4}       },
    {{HR_AUGMENT_SHEAR_Y, 3, 7},  {HR_AUGMENT_TRANSLATE_X, 9, 3}  },
    {{HR_AUGMENT_SHEAR_X, 1, 6},  {HR_AUGMENT_INVERT, 6, 0}       },
    {{HR_AUGMENT_SOLARIZE, 7, 2}, {HR_AUGMENT_TRANSLATE_Y, 6, 7}  },
    {{HR_AUGMENT_SHEAR_Y, 8, 4},  {HR_AUGMENT_INVERT, 8, 0}       },
    {{HR_AUGMENT_SHEAR_X, 7, 9},  {HR_AUGMENT_TRANSLATE_Y, 8, 3}  },
    {{HR_AUGMENT_SHEAR_Y, 8, 5},  {HR_AUGMENT_AUTO_CONTRAST, 7, 0}},
    {{HR_AUGMENT_SHEAR_X, 7, 2},  {HR_AUGMENT_INVERT, 1, 0}       },
};

static const struct part (*const policies[])[2] = {imagenet, cifar10, svhn};
static const char *const policy_names[] = {"imagenet", "cifar10", "svhn", NULL};

struct auto_augment {
    struct hr_names field; /* first, for HR_MOVE_STATE */
    int policy;
    struct hr_augment_how how;
};

static const struct hr_param auto_augment_params[] = {
    HR_P_ENUM(struct auto_augment, policy, .fallback = "imagenet", .names = policy_names,
              .help = "the data set whose pairs of steps are taken"),
    HR_P_AUGMENT(struct auto_augment, "nearest"),
    HR_P_IN(HR_PARAM_INT, struct auto_augment, how, mask_fill, HR_P_MASK_FILL_SETTINGS),
    HR_P_MOVED(struct auto_augment),
};

static enum hr_err auto_augment_infer(struct hr_infer *infer)
{
    const struct auto_augment *p = infer->params;

    return hr__infer_augment(infer, &p->how);
}

static enum hr_err auto_augment_apply(struct hr_op_ctx *ctx)
{
    const struct auto_augment *p = ctx->params;
    const struct part *pair;
    struct hr_augment_step steps[2];
    int32_t width, height, channels;
    struct hr_rng rng;
    int64_t count = 0;

    HR_TRY(hr__image_size(ctx, 0, &width, &height, &channels));
    hr__op_rng(ctx, &rng);
    pair = policies[p->policy][hr__rng_below(&rng, PAIRS)];
    for (int i = 0; i < 2; i++)
        if (hr__rng_below(&rng, 10) < pair[i].tenths)
            steps[count++] =
                hr__augment_draw(&hr__augment_space, (enum hr_augment_kind)pair[i].kind,
                                 pair[i].bin, BINS, width, height, &rng);
    return hr__augment(ctx, steps, count, &p->how);
}

const struct hr_op hr_op_image_auto_augment = {
    .name = "image.auto_augment",
    .summary = "two random changes of a pair that was found for a data set",
    .doc =
        "Like torchvision's AutoAugment: draws one of the policy's 25 pairs; each of its "
        "two changes has a probability and a strength. What is said of levels and of "
        "other fields at image.rand_augment holds here.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM,
    HR_PARAMS(auto_augment_params, struct auto_augment),
    HR_MOVE_STATE,
    .infer = auto_augment_infer,
    .apply = auto_augment_apply,
};
