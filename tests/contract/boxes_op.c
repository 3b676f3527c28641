/*
 * tests/contract/boxes_op.c - two ops: one makes a mask and boxes for a photo, the other
 * draws once and moves the photo, its mask and its boxes together.
 */
#include "tests/contract/contract.h"

#include <stdio.h>

#include "headrace/dataset.h"
#include "ops/move.h"

/* ---- test.outline: a mask and boxes of the photo's size, which is not decoded ---- */

struct outline {
    const char *image, *mask, *boxes;
};

static const struct hr_param outline_params[] = {
    HR_P_FIELD(struct outline, image, .fallback = "image", .access = HR_ACCESS_READ,
               .help = "a photo"),
    HR_P_FIELD(struct outline, mask, .fallback = "mask", .access = HR_ACCESS_WRITE,
               .help = "labels from 1"),
    HR_P_FIELD(struct outline, boxes, .fallback = "boxes", .access = HR_ACCESS_WRITE,
               .help = "up to 4 boxes"),
};

static enum hr_err outline_infer(struct hr_infer *infer)
{
    struct hr_field *mask = infer->fields[1], *boxes = infer->fields[2];

    HR_TRY(hr__infer_image(infer, 0));
    mask->dtype = HR_U8;
    mask->ndim = 3;
    hr__dim_unknown(&mask->dims[0], "height");
    hr__dim_unknown(&mask->dims[1], "width");
    hr__dim_set(&mask->dims[2], 1);
    boxes->dtype = HR_F32;
    boxes->ndim = 2;
    hr__dim_unknown(&boxes->dims[0], "boxes");
    hr__dim_set(&boxes->dims[1], 4);
    return HR_OK;
}

static void draw_box(struct hr_rng *rng, int64_t width, int64_t height, float *box)
{
    box[0] = (float)hr__rng_uniform(rng, 0, (double)width);
    box[1] = (float)hr__rng_uniform(rng, 0, (double)height);
    box[2] = (float)hr__rng_uniform(rng, box[0], (double)width);
    box[3] = (float)hr__rng_uniform(rng, box[1], (double)height);
}

static enum hr_err outline_apply(struct hr_op_ctx *ctx)
{
    int64_t height = ctx->fields[0]->dims[0], width = ctx->fields[0]->dims[1], count;
    void *labels, *boxes;
    struct hr_rng rng;

    hr__op_rng(ctx, &rng);
    count = (int64_t)hr__rng_below(&rng, 5);
    HR_TRY(hr__op_alloc(ctx, (size_t)(height * width), &labels));
    HR_TRY(hr__op_alloc(ctx, (size_t)count * 4 * sizeof(float) + 1, &boxes));
    for (int64_t i = 0; i < height * width; i++)
        ((uint8_t *)labels)[i] =
            (uint8_t)(i % width * 3 / width + 4 * (i / width % 9)) | 1;
    for (int64_t i = 0; i < count; i++)
        draw_box(&rng, width, height, (float *)boxes + i * 4);
    hr__value_set_tensor(ctx->fields[1], HR_U8, 3, (int64_t[]){height, width, 1}, labels,
                         NULL);
    hr__value_set_tensor(ctx->fields[2], HR_F32, 2, (int64_t[]){count, 4}, boxes, NULL);
    return HR_OK;
}

static const struct hr_op outline_op = {
    .name = "test.outline",
    .summary = "a mask and boxes for a photo",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_DEFERS,
    HR_PARAMS(outline_params, struct outline),
    .infer = outline_infer,
    .apply = outline_apply,
};
CONTRACT_OP(outline_op)

/* ---- test.quarter: one quarter of the image, perhaps turned by half a turn ---- */

struct quarter {
    struct hr_names field;
};

static const struct hr_param quarter_params[] = {HR_P_MOVED(struct quarter)};

static enum hr_err quarter_infer(struct hr_infer *infer)
{
    HR_TRY(hr__infer_moved(infer));
    hr__infer_moved_size(infer, HR_DIM_UNKNOWN, HR_DIM_UNKNOWN);
    return HR_OK;
}

static enum hr_err quarter_apply(struct hr_op_ctx *ctx)
{
    struct hr_move move;
    struct hr_rng rng;
    int32_t width, height;

    HR_TRY(hr__move_begin(ctx, &move));
    hr__op_rng(ctx, &rng);
    width = move.width / 2;
    height = move.height / 2;
    hr__move_crop(&move, (int32_t)hr__rng_below(&rng, 2) * width,
                  (int32_t)hr__rng_below(&rng, 2) * height, width, height);
    move.flip_x = move.flip_y = hr__rng_below(&rng, 2) == 1;
    return hr__move(ctx, &move);
}

static const struct hr_op quarter_op = {
    .name = "test.quarter",
    .summary = "a quarter of an image and of what belongs to it",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_GEOMETRIC | HR_TRAIT_DEFERS,
    HR_PARAMS(quarter_params, struct quarter),
    HR_MOVE_STATE,
    .infer = quarter_infer,
    .apply = quarter_apply,
};
CONTRACT_OP(quarter_op)

/* ---- graphs ---- */

#define PHOTOS 24
#define MADE "  - test.outline: {}\n"
#define DECLARED                                                                         \
    "  - record.kind: {field: mask, kind: mask}\n"                                       \
    "  - record.kind: {field: boxes, kind: boxes}\n"
#define STACK "  - batch.stack: {size: 5, ragged: true}\n"

static char graph_text[4096];

static const char *photos(void)
{
    static const struct hr_synth_photos what = {.seed = 5,
                                                .count = PHOTOS,
                                                .classes = 2,
                                                .width = 90,
                                                .height = 60,
                                                .vary = true};
    static char dir[512];

    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "%s/photos", check_temp_dir());
        CHECK_OK(hr_synth_photos(dir, &what, NULL, NULL, NULL));
    }
    return dir;
}

/* Photos in this mode, and steps after them in which `fields` stands for $. Mask and
 * boxes are plain numbers where the image moves alone: else they would be left behind. */
static struct outcome_job job_of(const char *mode, const char *steps, const char *fields)
{
    size_t length = (size_t)snprintf(
        graph_text, sizeof graph_text,
        "headrace: 1\npipeline:\n  - source.files: {path: '%s'}\n  - order.shuffle: {}\n"
        "  - image.decode: {mode: %s}\n" MADE "%s",
        photos(), mode, strcmp(fields, "image") == 0 ? "" : DECLARED);

    for (const char *at = steps; *at != '\0'; at++)
        length += (size_t)snprintf(graph_text + length, sizeof graph_text - length,
                                   "%.*s", *at == '$' ? (int)strlen(fields) : 1,
                                   *at == '$' ? fields : at);
    CHECK(length < sizeof graph_text);
    return contract_job(graph_text);
}

#define CHAIN                                                                            \
    "  - debug.fail: {probability: 0.1}\n"                                               \
    "  - test.quarter: {field: $}\n"                                                     \
    "  - image.random_resized_crop: {size: [16, 20], field: $}\n"                        \
    "  - image.flip: {field: $}\n"                                                       \
    "  - image.normalize: {mean: imagenet, std: imagenet}\n" STACK
#define ALL "[image, mask, boxes]"

TEST(an_image_its_mask_and_its_boxes_have_one_digest)
{
    outcome_free(contract_check(job_of("exact", CHAIN, ALL)));
}

TEST(so_have_those_of_photos_decoded_at_a_reduced_scale)
{
    outcome_free(contract_check(job_of("close", CHAIN, ALL)));
}

TEST(so_have_those_that_are_resized_twice_and_blurred_between)
{
    outcome_free(contract_check(job_of("close",
                                       "  - image.resize_shortest: {size: 40, field: $}\n"
                                       "  - image.random_crop: {size: 30, field: $}\n"
                                       "  - image.gaussian_blur: {size: 3}\n"
                                       "  - image.resize: {size: 21, field: $}\n"
                                       "  - test.quarter: {field: $}\n" STACK,
                                       ALL)));
}

TEST(so_have_those_of_windows_that_overlap_a_box)
{
    outcome_free(contract_check(
        job_of("close",
               "  - image.zoom_out: {fill: [9, 8, 7], side_range: [1, 2], field: $}\n"
               "  - image.iou_crop: {field: $}\n"
               "  - image.cover_crop: {scale: [0.3, 1], field: $}\n"
               "  - image.scale_jitter: {size: 40, scale: [0.5, 1.5], field: $}\n"
               "  - image.fixed_size_crop: {size: [40, 50], field: $}\n"
               "  - boxes.sanitize: {rows: [], image: image}\n"
               "  - image.photometric_distort: {}\n"
               "  - image.resize: {size: 21, field: $}\n"
               "  - boxes.convert: {to: cxcywh}\n" STACK,
               ALL)));
}

/* The image's bytes are those of a graph in which it moves alone. */
static void check_image(const char *mode)
{
    struct outcome_job job = job_of(mode, CHAIN, ALL);
    struct contract_batches together, alone;

    job.options.epochs = 1;
    contract_take(&job, &together);
    job = job_of(mode, CHAIN, "image");
    job.options.epochs = 1;
    contract_take(&job, &alone);
    CHECK_EQ_INT(together.count, alone.count);
    for (size_t i = 0; i < alone.count; i++) {
        struct hr_field_view a = contract_field(alone.items[i], "image");
        struct hr_field_view t = contract_field(together.items[i], "image");
        size_t bytes = sizeof(float);

        CHECK_EQ_INT(a.ndim, t.ndim);
        for (int k = 0; k < a.ndim; k++) {
            CHECK_EQ_INT(a.dims[k], t.dims[k]);
            bytes *= (size_t)a.dims[k];
        }
        CHECK(a.dtype == HR_F32 && bytes > 1000);
        CHECK_BYTES(a.data, t.data, bytes);
    }
    contract_drop(&together);
    contract_drop(&alone);
}

TEST(an_image_has_the_same_bytes_when_others_move_with_it)
{
    check_image("exact");
    check_image("close");
}
