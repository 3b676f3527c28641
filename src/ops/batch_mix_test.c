/*
 * ops/batch_mix_test.c - batch.mixup and batch.cutmix on small batches, and what they
 * refuse.
 */
#include "ops/ops_test_util.h"

#include <math.h>

static struct bench b;

#define REFUSED(err, name, params, words)                                                \
    do {                                                                                 \
        memset(&b.error, 0, sizeof b.error);                                             \
        CHECK_ERR(err, bench_op(&b, name, params));                                      \
        CHECK_HAS(b.error.message, words);                                               \
    } while (0)

/* Three images of 4 x 4 pixels, of the levels 0, 1 and 2, and their labels. */
static void put_batch(enum hr_dtype dtype, enum hr_layout layout)
{
    static uint8_t bytes[3 * 16 * 3];
    static float floats[3 * 16 * 3];
    static int64_t labels[3] = {4, 0, 2};
    bool chw = layout == HR_LAYOUT_CHW;
    int64_t dims[4] = {3, chw ? 3 : 4, 4, chw ? 4 : 3};
    struct hr_field *field;

    bench_clear(&b);
    for (int i = 0; i < 144; i++) {
        bytes[i] = (uint8_t)(i / 48);
        floats[i] = (float)(i / 48);
    }
    hr__value_set_tensor(bench_put(&b, "image"), dtype, 4, dims,
                         dtype == HR_U8 ? (void *)bytes : floats, NULL);
    bench_value(&b, "image")->layout = (uint8_t)layout;
    field = bench_field(&b, "image");
    field->dtype = dtype;
    field->ndim = 4;
    field->meaning = dtype == HR_U8 ? HR_MEANING_IMAGE_U8 : HR_MEANING_IMAGE_UNIT;
    field->layout = layout;
    for (int i = 0; i < 4; i++)
        hr__dim_set(&field->dims[i], dims[i]);
    hr__value_set_tensor(bench_put(&b, "label"), HR_I64, 1, dims, labels, NULL);
    field = bench_field(&b, "label");
    field->dtype = HR_I64;
    field->ndim = 1;
    hr__dim_set(&field->dims[0], 3);
    b.schema.batch_rank = 1;
}

/* Labels 4, 0 and 2 of 5, each with `share`, the one before with the rest. */
static void check_labels(double share)
{
    static const int own[3] = {4, 0, 2};
    size_t bytes;
    float *rows = bench_bytes(&b, "label", &bytes);

    CHECK_EQ_INT(bytes, 15 * sizeof(float));
    for (int i = 0; i < 15; i++)
        CHECK_NEAR(rows[i],
                   i % 5 == own[i / 5]             ? share
                   : i % 5 == own[(i / 5 + 2) % 3] ? 1 - share
                                                   : 0,
                   1e-6);
    free(rows);
}

TEST(mixup_blends_each_image_with_the_one_before)
{
    static const float before[3] = {2, 0, 1};
    double sum = 0;

    bench_init(&b);
    for (int id = 0; id < 200; id++) {
        size_t bytes;
        float *got, share;

        put_batch(HR_F32, id % 2 ? HR_LAYOUT_CHW : HR_LAYOUT_HWC);
        b.id.index = (uint64_t)id;
        CHECK_OK(bench_op(&b, "batch.mixup", "{num_classes: 5}"));
        got = bench_bytes(&b, "image", &bytes);
        share = got[48]; /* of an image of 1, with one of 0 before it */
        for (int i = 0; i < 144; i++)
            CHECK_NEAR(got[i], (float)(i / 48) * share + before[i / 48] * (1 - share),
                       1e-6);
        check_labels((double)share);
        sum += (double)share;
        free(got);
    }
    CHECK_NEAR(sum / 200, 0.5, 0.1);
    bench_finish(&b);
}

TEST(mixup_takes_probabilities)
{
    static float rows[6] = {1, 0, 0, 1, 0.5f, 0.5f};
    int64_t dims[2] = {3, 2};
    struct hr_field *field;
    size_t bytes;
    float *got;

    bench_init(&b);
    for (int pass = 0; pass < 2; pass++) {
        put_batch(HR_F32, HR_LAYOUT_HWC);
        hr__value_set_tensor(bench_value(&b, "label"), HR_F32, 2, dims, rows, NULL);
        field = bench_field(&b, "label");
        field->dtype = HR_F32;
        field->ndim = 2;
        hr__dim_set(&field->dims[1], 2);
        if (pass == 1) {
            REFUSED(HR_ERR_SHAPE, "batch.mixup", "{num_classes: 3}",
                    "leave num_classes out");
            break;
        }
        CHECK_OK(bench_op(&b, "batch.mixup", NULL));
        got = bench_bytes(&b, "label", &bytes);
        CHECK_NEAR(got[0], 0.5f + 0.5f * got[3], 1e-6); /* got[3] is the share */
        CHECK_NEAR(got[2], 1 - got[3], 1e-6);
        CHECK_NEAR(got[5], 1 - 0.5f * got[3], 1e-6);
        free(got);
    }
    bench_finish(&b);
}

/* The rectangle has the levels of the image before; its area decides the labels. */
TEST(cutmix_copies_a_rectangle)
{
    int whole = 0, part = 0;

    bench_init(&b);
    for (int id = 0; id < 300; id++) {
        bool chw = id % 2;
        int taken = 0;
        size_t bytes;
        uint8_t *got;

        put_batch(HR_U8, chw ? HR_LAYOUT_CHW : HR_LAYOUT_HWC);
        b.id.index = (uint64_t)id;
        CHECK_OK(bench_op(&b, "batch.cutmix", "{num_classes: 5}"));
        got = bench_bytes(&b, "image", &bytes);
        CHECK_EQ_INT(bytes, 144);
        for (int i = 0; i < 144; i++) {
            int image = i / 48, pixel = chw ? i % 16 : i % 48 / 3;
            int first = chw ? pixel : 3 * pixel;
            bool moved = got[i] != image;

            CHECK_EQ_INT(got[i], moved ? (image + 2) % 3 : image);
            CHECK_EQ_INT(moved, got[first] != 0); /* as in the first image */
            taken += moved;
        }
        check_labels(1 - taken / 144.0);
        whole += taken == 0;
        part += taken > 0 && taken < 144;
        free(got);
    }
    CHECK(whole > 0 && part > 50);
    bench_finish(&b);
}

TEST(mixes_name_what_they_cannot_do)
{
    static float boxes[12];
    struct hr_field *field;

    bench_init(&b);
    put_batch(HR_U8, HR_LAYOUT_HWC);
    REFUSED(HR_ERR_TYPE, "batch.mixup", "{num_classes: 5}", "tensor.cast");
    REFUSED(HR_ERR_ARGUMENT, "batch.cutmix", NULL, "num_classes is needed");
    REFUSED(HR_ERR_RANGE, "batch.cutmix", "{num_classes: 5, alpha: 0}", "alpha");
    REFUSED(HR_ERR_RANGE, "batch.cutmix", "{num_classes: 4}",
            "record 0 of the batch has class 4");
    put_batch(HR_U8, HR_LAYOUT_HWC);
    REFUSED(HR_ERR_TYPE, "batch.cutmix", "{num_classes: 5, field: label, label: image}",
            "not an image");
    bench_field(&b, "label")->dtype = HR_F64;
    REFUSED(HR_ERR_TYPE, "batch.cutmix", "{num_classes: 5}", "labels are int64");
    put_batch(HR_U8, HR_LAYOUT_HWC);
    b.schema.batch_rank = 0;
    REFUSED(HR_ERR_GRAPH, "batch.cutmix", "{num_classes: 5}", "after batch.stack");
    put_batch(HR_U8, HR_LAYOUT_HWC);
    bench_field(&b, "image")->kind = HR_FIELD_RAGGED;
    REFUSED(HR_ERR_SHAPE, "batch.cutmix", "{num_classes: 5}", "image.resize");
    put_batch(HR_U8, HR_LAYOUT_HWC);
    hr__value_set_tensor(bench_put(&b, "boxes"), HR_F32, 3, (int64_t[]){3, 1, 4}, boxes,
                         NULL);
    field = bench_field(&b, "boxes");
    field->dtype = HR_F32;
    field->ndim = 3;
    field->meaning = HR_MEANING_BOXES;
    REFUSED(HR_ERR_TYPE, "batch.cutmix", "{num_classes: 5}", "record.drop");
    bench_finish(&b);
}
