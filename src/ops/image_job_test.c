/*
 * ops/image_job_test.c - composed edits give the bytes of edits made one by one; windows,
 * orientation, scales.
 */
#include "ops/image_edit_test_util.h"

#include "core/cpu.h"
#include "kernel/half.h"

static void *run_chain(struct bench *b, const void *data, size_t bytes, uint64_t chain,
                       const char *mode, bool force_each, size_t *ret_bytes, char *trace)
{
    struct hr_rng rng;
    char text[64];

    bench_clear(b);
    b->force_each = force_each;
    b->id.index = chain;
    bench_put_bytes(b, "data", data, bytes);
    snprintf(text, sizeof text, "{mode: %s, orientation: true}", mode);
    CHECK_OK(bench_op(b, "image.decode", text));
    hr__rng_init(&rng, 7, 0, chain);
    trace[0] = '\0';
    random_edits(b, &rng, 7, trace);
    return bench_bytes(b, "image", ret_bytes);
}

static void compare_chains(struct bench *b, const void *data, size_t bytes,
                           uint64_t first, uint64_t last)
{
    char trace[2048];

    for (uint64_t i = first; i < last; i++) {
        size_t one_bytes, all_bytes, c_bytes;
        void *one = run_chain(b, data, bytes, i, "exact", true, &one_bytes, trace);
        void *all = run_chain(b, data, bytes, i, "exact", false, &all_bytes, trace);
        CHECK_EQ_INT(one_bytes, all_bytes);
        if (memcmp(one, all, one_bytes) != 0)
            check_failed(__FILE__, __LINE__, "chain %llu differs: %s",
                         (unsigned long long)i, trace);
        for (int level = 0; level < 2; level++) {
            void *plain;
            hr__isa_limit(level == 0 ? HR_ISA_C : HR_ISA_AVX2);
            plain = run_chain(b, data, bytes, i, "exact", false, &c_bytes, trace);
            hr__isa_limit(HR_ISA_AVX512);
            CHECK_EQ_INT(c_bytes, all_bytes);
            if (memcmp(plain, all, all_bytes) != 0)
                check_failed(__FILE__, __LINE__, "chain %llu differs by ISA: %s",
                             (unsigned long long)i, trace);
            free(plain);
        }
        free(one);
        free(all);
    }
}

TEST(random_chains_of_edits_give_the_bytes_of_edits_made_one_by_one)
{
    struct bench b;

    bench_init(&b);
    for (int kind = 0; kind < 4; kind++) {
        size_t bytes;
        void *data = jpeg(kind % 2 ? 131 : 96, kind % 2 ? 90 : 128, 1 + kind / 2,
                          kind == 3, &bytes);
        compare_chains(&b, data, bytes, (uint64_t)kind * 150, (uint64_t)kind * 150 + 150);
        hr__free(data);
    }
    bench_finish(&b);
}

/* The same from a tensor of 61 x 84 pixels. */
static void *run_pixels(struct bench *b, enum hr_dtype dtype, void *pixels,
                        uint64_t chain, bool force_each, size_t *ret_bytes, char *trace)
{
    struct hr_rng rng;

    bench_clear(b);
    b->force_each = force_each;
    b->id.index = chain;
    bench_put_image(b, "image", dtype, 61, 84, 3, pixels);
    hr__rng_init(&rng, check_seed(), 2, chain);
    trace[0] = '\0';
    random_edits(b, &rng, 5, trace);
    return bench_bytes(b, "image", ret_bytes);
}

TEST(random_chains_of_edits_of_pixels_give_the_bytes_of_edits_made_one_by_one)
{
    static const enum hr_dtype dtypes[] = {HR_U8, HR_F32, HR_F16, HR_BF16};
    float levels[61 * 84 * 3];
    struct bench b;

    for (size_t i = 0; i < 61 * 84 * 3; i++)
        levels[i] = (float)(i * i % 255) / 255;
    bench_init(&b);
    for (uint64_t i = 0; i < 2000; i++) {
        enum hr_dtype dtype = dtypes[i % 4];
        void *pixels = malloc(sizeof levels), *one, *all;
        size_t one_bytes, all_bytes;
        char trace[2048];

        memcpy(pixels, levels, sizeof levels);
        if (dtype == HR_F16)
            hr__f32_to_f16(levels, pixels, 61 * 84 * 3);
        else if (dtype == HR_BF16)
            hr__f32_to_bf16(levels, pixels, 61 * 84 * 3);
        one = run_pixels(&b, dtype, pixels, i, true, &one_bytes, trace);
        all = run_pixels(&b, dtype, pixels, i, false, &all_bytes, trace);
        CHECK_EQ_INT(one_bytes, all_bytes);
        if (memcmp(one, all, one_bytes) != 0)
            check_failed(__FILE__, __LINE__, "chain %llu of %s differs: %s",
                         (unsigned long long)i, hr_dtype_name(dtype), trace);
        free(one);
        free(all);
        bench_clear(&b);
        free(pixels);
    }
    bench_finish(&b);
}

/* A window of a resize of pixels that are made, or of a photo. */
static void *run_window(struct bench *b, const void *data, size_t bytes, uint64_t chain,
                        bool force_each, size_t *ret_bytes, char *trace)
{
    static const char *const filters[] = {"nearest", "bilinear", "bicubic", "box",
                                          "lanczos"};
    static const char *const makers[] = {"image.grayscale", "image.flip", "image.pad",
                                         "tensor.cast", "image.decode"};
    static const char *const made[] = {"{p: 1}", "{p: 0.5}", "{padding: 3}",
                                       "{dtype: float32}", NULL};
    struct hr_rng rng;
    uint32_t maker, width, height;
    char text[160];

    hr__rng_init(&rng, check_seed(), 1, chain);
    maker = pick(&rng, 5);
    width = pick(&rng, 3) == 0 ? 2 + pick(&rng, 200) : 32u << pick(&rng, 3);
    height = pick(&rng, 3) == 0 ? 2 + pick(&rng, 200) : 32u << pick(&rng, 3);
    bench_clear(b);
    b->force_each = force_each;
    b->id.index = chain;
    bench_put_bytes(b, "data", data, bytes);
    CHECK_OK(bench_op(b, "image.decode", "{mode: exact}"));
    if (made[maker] != NULL)
        CHECK_OK(bench_op(b, makers[maker], made[maker]));
    snprintf(text, sizeof text, "{size: [%u, %u], interpolation: %s, antialias: %s}",
             height, width, filters[pick(&rng, 5)], pick(&rng, 4) ? "true" : "false");
    snprintf(trace, 2048, "%s; image.resize %s", makers[maker], text);
    CHECK_OK(bench_op(b, "image.resize", text));
    for (uint32_t crops = 1 + pick(&rng, 2); crops > 0; crops--) {
        const char *op = pick(&rng, 2) ? "image.center_crop" : "image.random_crop";

        if (pick(&rng, 3) == 0)
            CHECK_OK(bench_op(b, "image.flip", "{p: 0.5}"));
        width -= pick(&rng, width) * pick(&rng, 2);
        height -= pick(&rng, height) * pick(&rng, 2);
        snprintf(text, sizeof text, "{size: [%u, %u]}", height, width);
        snprintf(trace + strlen(trace), 2048 - strlen(trace), "; %s %s", op, text);
        CHECK_OK(bench_op(b, op, text));
    }
    return bench_bytes(b, "image", ret_bytes);
}

TEST(a_window_of_a_resize_has_the_bytes_of_the_whole_resize)
{
    struct bench b;
    size_t bytes;
    void *data = jpeg(140, 136, 2, false, &bytes);

    bench_init(&b);
    for (uint64_t i = 0; i < 600; i++) {
        size_t one_bytes, all_bytes;
        char trace[2048];
        void *one = run_window(&b, data, bytes, i, true, &one_bytes, trace);
        void *all = run_window(&b, data, bytes, i, false, &all_bytes, trace);

        CHECK_EQ_INT(one_bytes, all_bytes);
        if (memcmp(one, all, one_bytes) != 0)
            check_failed(__FILE__, __LINE__, "chain %llu differs: %s",
                         (unsigned long long)i, trace);
        free(one);
        free(all);
    }
    hr__free(data);
    bench_finish(&b);
}

/* Insert an APP1 segment that says the orientation. */
static void *
with_orientation(const void *data, size_t bytes, int orientation, size_t *ret_bytes)
{
    const uint8_t exif[] = {
        0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0,
        'M',  'M',  0, 42, 0,   0,   0,   8,   0, 1,
        1,    0x12, 0, 3,  0,   0,   0,   1,   0, (uint8_t)orientation,
        0,    0,    0, 0,  0,   0};
    char *out = malloc(bytes + sizeof exif);

    memcpy(out, data, 2);
    memcpy(out + 2, exif, sizeof exif);
    memcpy(out + 2 + sizeof exif, (const char *)data + 2, bytes - 2);
    *ret_bytes = bytes + sizeof exif;
    return out;
}

TEST(every_orientation_composes_too)
{
    struct bench b;
    size_t bytes;
    void *data = jpeg(131, 90, 2, false, &bytes);

    bench_init(&b);
    for (int orientation = 2; orientation <= 8; orientation++) {
        size_t turned_bytes;
        void *turned = with_orientation(data, bytes, orientation, &turned_bytes);
        compare_chains(&b, turned, turned_bytes, (uint64_t)orientation * 1000,
                       (uint64_t)orientation * 1000 + 40);
        free(turned);
    }
    hr__free(data);
    bench_finish(&b);
}

/* Where the stored pixel (x, y) of a 131 x 90 photo is seen. */
static size_t seen_at(int orientation, int x, int y)
{
    int w = 131, h = 90;
    int column[9] = {0, x, w - 1 - x, w - 1 - x, x, y, h - 1 - y, h - 1 - y, y};
    int row[9] = {0, y, y, h - 1 - y, h - 1 - y, x, x, w - 1 - x, w - 1 - x};

    return (size_t)(row[orientation] * (orientation >= 5 ? h : w) + column[orientation]);
}

TEST(orientation_shows_each_stored_pixel_where_exif_says)
{
    size_t bytes, turned_bytes, plain_bytes, seen_bytes;
    void *data = jpeg(131, 90, 1, true, &bytes);
    struct bench b;
    uint8_t *plain;

    bench_init(&b);
    bench_put_bytes(&b, "data", data, bytes);
    CHECK_OK(bench_op(&b, "image.decode", "{color: gray}"));
    plain = bench_bytes(&b, "image", &plain_bytes);
    for (int orientation = 1; orientation <= 8; orientation++) {
        void *turned = with_orientation(data, bytes, orientation, &turned_bytes);
        uint8_t *seen;
        bench_clear(&b);
        bench_put_bytes(&b, "data", turned, turned_bytes);
        CHECK_OK(bench_op(&b, "image.decode", "{color: gray, orientation: true}"));
        CHECK_EQ_INT(bench_value(&b, "image")->dims[0], orientation >= 5 ? 131 : 90);
        seen = bench_bytes(&b, "image", &seen_bytes);
        CHECK_EQ_INT(seen_bytes, plain_bytes);
        for (int y = 0; y < 90; y++)
            for (int x = 0; x < 131; x++)
                CHECK_EQ_INT(seen[seen_at(orientation, x, y)], plain[y * 131 + x]);
        free(seen);
        free(turned);
    }
    free(plain);
    hr__free(data);
    bench_finish(&b);
}

static double mean_difference(const uint8_t *a, const uint8_t *b, size_t count, int *most)
{
    double sum = 0;

    *most = 0;
    for (size_t i = 0; i < count; i++) {
        int difference = abs(a[i] - b[i]);
        sum += difference;
        *most = difference > *most ? difference : *most;
    }
    return sum / (double)count;
}

TEST(reduced_scales_are_close_to_the_exact_image)
{
    static const char *const modes[] = {"exact", "close", "fast"};
    size_t bytes, turned_bytes, count = 0;
    void *data = jpeg(645, 487, 2, false, &bytes);
    uint8_t *images[3];
    struct bench b;
    int most;

    bench_init(&b);
    for (int orientation = 1; orientation <= 8; orientation++) {
        void *turned = with_orientation(data, bytes, orientation, &turned_bytes);
        for (int i = 0; i < 3; i++) {
            char text[64];
            bench_clear(&b);
            bench_put_bytes(&b, "data", turned, turned_bytes);
            snprintf(text, sizeof text, "{mode: %s, orientation: true}", modes[i]);
            CHECK_OK(bench_op(&b, "image.decode", text));
            CHECK_OK(bench_op(&b, "image.center_crop", "{size: [401, 399]}"));
            CHECK_OK(bench_op(&b, "image.resize", "{size: 90}"));
            images[i] = bench_bytes(&b, "image", &count);
        }
        CHECK(mean_difference(images[0], images[1], count, &most) < 2.5);
        CHECK(mean_difference(images[0], images[2], count, &most) < 3.5);
        CHECK(memcmp(images[0], images[1], count) != 0);
        for (int i = 0; i < 3; i++)
            free(images[i]);
        free(turned);
    }
    hr__free(data);
    bench_finish(&b);
}

TEST(taps_stop_at_an_earlier_crop)
{
    uint8_t levels[4 * 8 * 1];
    struct bench b;
    size_t bytes;
    uint8_t *out;

    for (int i = 0; i < 32; i++)
        levels[i] = i % 8 < 4 ? 200 : 0;
    bench_init(&b);
    bench_put_image(&b, "image", HR_U8, 4, 8, 1, levels);
    /* The middle four columns are 200 200 0 0; then only the two of 200 are left. */
    CHECK_OK(bench_op(&b, "image.center_crop", "{size: 4}"));
    CHECK_OK(bench_op(&b, "image.flip", "{p: 1}"));
    CHECK_OK(bench_op(&b, "image.random_crop", "{size: [4, 4]}"));
    CHECK_OK(bench_op(&b, "image.resize", "{size: [4, 8]}"));
    out = bench_bytes(&b, "image", &bytes);
    CHECK_EQ_INT(out[0], 0);
    CHECK_EQ_INT(out[7], 200);
    free(out);
    bench_finish(&b);
}

/* Another field that shows the image. */
static void fork_image(struct bench *b, const char *name)
{
    struct hr_value *copy = bench_put(b, name);
    struct hr_field *field = bench_field(b, name), kept = *field;

    *field = *bench_field(b, "image");
    field->slot = kept.slot;
    memcpy(field->name, kept.name, sizeof kept.name);
    hr__value_alias(copy, bench_value(b, "image"));
}

TEST(two_sights_of_one_image_are_edited_apart)
{
    size_t bytes, left_bytes, right_bytes;
    void *data = jpeg(64, 48, 1, false, &bytes);
    uint8_t *left, *right;
    struct bench b;

    bench_init(&b);
    bench_put_bytes(&b, "data", data, bytes);
    CHECK_OK(bench_op(&b, "image.decode", NULL));
    fork_image(&b, "other");
    CHECK_OK(bench_op(&b, "image.center_crop", "{size: 16}"));
    CHECK_OK(bench_op(&b, "image.flip", "{field: other, p: 1}"));
    left = bench_bytes(&b, "image", &left_bytes);
    right = bench_bytes(&b, "other", &right_bytes);
    CHECK_EQ_INT(left_bytes, 16 * 16 * 3);
    CHECK_EQ_INT(right_bytes, 64 * 48 * 3);
    free(left);
    free(right);
    hr__free(data);
    bench_finish(&b);
}

/* A crop of view `v` of record b->id, the same each time. */
static void crop_view(struct bench *b, const char *field, unsigned v)
{
    char text[160];

    b->node = 100 + 10 * v;
    if ((b->id.index + v) % 3 == 0)
        snprintf(text, sizeof text, "{field: %s, size: [%u, %u]}", field, 140 + 7 * v,
                 90);
    else
        snprintf(text, sizeof text, "{field: %s, size: [40, 60], scale: [0.3, 1]}",
                 field);
    CHECK_OK(bench_op(
        b, (b->id.index + v) % 3 == 0 ? "image.random_crop" : "image.random_resized_crop",
        text));
    snprintf(text, sizeof text, "{field: %s}", field);
    CHECK_OK(bench_op(b, "image.flip", text));
}

#define VIEWS 4
static const char *const view_names[VIEWS] = {"image", "v1", "v2", "v3"};

/* Views of one decode: all described before the first is made, or one after the other. */
static void check_views(struct bench *b, const void *data, size_t bytes, const char *how,
                        bool together)
{
    size_t alone_bytes[VIEWS], view_bytes[VIEWS];
    uint8_t *alone[VIEWS], *views[VIEWS];

    for (unsigned v = 0; v < VIEWS; v++) {
        bench_clear(b);
        bench_put_bytes(b, "data", data, bytes);
        CHECK_OK(bench_op(b, "image.decode", how));
        crop_view(b, "image", v);
        alone[v] = bench_bytes(b, "image", &alone_bytes[v]);
    }
    bench_clear(b);
    bench_put_bytes(b, "data", data, bytes);
    CHECK_OK(bench_op(b, "image.decode", how));
    for (unsigned v = 1; v < VIEWS; v++)
        fork_image(b, view_names[v]);
    for (unsigned v = 0; v < VIEWS; v++) {
        crop_view(b, view_names[v], v);
        if (!together)
            views[v] = bench_bytes(b, view_names[v], &view_bytes[v]);
    }
    for (unsigned v = 0; v < VIEWS; v++) {
        if (together)
            views[v] = bench_bytes(b, view_names[v], &view_bytes[v]);
        CHECK_EQ_INT(view_bytes[v], alone_bytes[v]);
        CHECK_BYTES(views[v], alone[v], alone_bytes[v]);
        free(views[v]);
        free(alone[v]);
    }
}

TEST(views_of_one_decode_are_those_of_a_decode_each)
{
    static const char *const modes[] = {"exact", "close", "fast"};
    struct bench b;
    char how[80];

    bench_init(&b);
    for (unsigned i = 0; i < 48; i++) {
        size_t bytes;
        void *data = jpeg(240 + 9 * (int32_t)(i % 7), 170, 1 + i % 2, i % 8 == 7, &bytes);

        snprintf(how, sizeof how, "{mode: %s, color: %s%s}", modes[i % 3],
                 i % 5 == 4 ? "gray" : "rgb", i % 6 == 5 ? ", seek_bytes: 0" : "");
        CHECK(bytes > 4096);
        b.id.index = i;
        check_views(&b, data, bytes, how, i % 4 < 2);
        hr__free(data);
    }
    bench_finish(&b);
}

TEST(damaged_and_foreign_bytes_are_refused_without_a_leak)
{
    size_t bytes;
    void *data = jpeg(64, 48, 1, false, &bytes);
    struct bench b;

    bench_init(&b);
    bench_put_bytes(&b, "data", "GIF89a", 6);
    CHECK_ERR(HR_ERR_UNSUPPORTED, bench_op(&b, "image.decode", NULL));
    bench_clear(&b);
    bench_put_bytes(&b, "data", data, bytes / 2);
    CHECK_OK(bench_op(&b, "image.decode", NULL));
    CHECK_ERR(HR_ERR_FORMAT, bench_op(&b, "image.gaussian_blur", "{size: 3}"));
    bench_clear(&b);
    bench_put_bytes(&b, "data", data, bytes);
    CHECK_ERR(HR_ERR_LIMIT, bench_op(&b, "image.decode", "{pixels_max: 100}"));
    hr__free(data);
    bench_finish(&b);
}

static enum hr_err try_chain(struct bench *b, const void *data, size_t bytes)
{
    struct hr_value *value;

    bench_put_bytes(b, "data", data, bytes);
    HR_TRY(bench_op(b, "image.decode", "{orientation: true}"));
    HR_TRY(bench_op(b, "image.random_resized_crop", "{size: 30}"));
    HR_TRY(bench_op(b, "image.color_jitter", "{brightness: 0.3, contrast: 0.3}"));
    HR_TRY(bench_op(b, "image.pad", "{padding: 3}"));
    HR_TRY(bench_op(b, "image.rotate", "{degrees: 20, interpolation: bilinear}"));
    HR_TRY(bench_op(b, "image.gaussian_blur", "{size: 5}"));
    HR_TRY(bench_op(b, "image.normalize", "{mean: half, std: half, dtype: float16}"));
    HR_TRY(bench_op(b, "tensor.layout", "{order: chw}"));
    value = bench_value(b, "image");
    return hr__value_force(&b->thread, value, NULL, &b->error);
}

TEST(running_out_of_memory_anywhere_is_an_error_and_no_leak)
{
    size_t bytes, turned_bytes;
    void *data = jpeg(131, 90, 2, false, &bytes);
    void *turned = with_orientation(data, bytes, 6, &turned_bytes);
    enum hr_err err = HR_ERR_MEMORY;
    int failures = 0;

    for (uint64_t nth = 1; err != HR_OK && nth < 2000; nth++) {
        struct bench b;
        bench_init(&b);
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        err = try_chain(&b, turned, turned_bytes);
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        if (err != HR_OK && err != HR_ERR_MEMORY)
            check_failed(__FILE__, __LINE__, "%s: %s", hr_err_name(err), b.error.message);
        CHECK(err == HR_OK || b.error.message[0] != '\0');
        failures += err != HR_OK;
        bench_finish(&b);
    }
    CHECK_OK(err);
    CHECK(failures > 10);
    free(turned);
    hr__free(data);
}

TEST(records_after_the_first_few_allocate_nothing)
{
    size_t bytes;
    void *data = jpeg(131, 90, 2, false, &bytes);
    struct hr_value *values[1], value = {0};
    struct bench_node nodes[2];
    struct bench b;
    uint64_t before = 0;

    bench_init(&b);
    values[0] = &value;
    CHECK_OK(bench_parse(&b, &nodes[0], "image.random_resized_crop",
                         "{size: 40, scale: [1, 1]}"));
    CHECK_OK(bench_parse(&b, &nodes[1], "image.normalize", "{mean: half, std: half}"));
    for (uint64_t i = 0; i < 200; i++) {
        const struct hr_image_begin how = {.mode = HR_MODE_CLOSE};
        struct hr_record_id id = {.seed = 1, .index = i};
        struct hr_op_ctx ctx = {.fields = values,
                                .field_count = 1,
                                .id = &id,
                                .thread = &b.thread,
                                .error = &b.error};
        if (i == 100)
            before = hr__alloc_count();
        CHECK_OK(hr__image_begin(&ctx, 0, data, bytes, &how));
        for (int k = 0; k < 2; k++) {
            ctx.params = nodes[k].params;
            CHECK_OK(nodes[k].op->apply(&ctx));
        }
        CHECK_OK(hr__value_force(&b.thread, &value, NULL, &b.error));
        hr__value_clear(&value);
        hr__arena_reset(&b.thread.arena);
    }
    CHECK_EQ_INT(hr__alloc_count(), before);
    bench_node_finish(&nodes[0]);
    bench_node_finish(&nodes[1]);
    hr__free(data);
    bench_finish(&b);
}
