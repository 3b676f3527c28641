/*
 * ops/pixel_traits_test.c - traits about pixels, bytes and descriptions are true.
 *
 * An op gets an image of random levels and several identities to draw with. Pointwise ops
 * are checked by permuting pixels and by changing one, geometric ones by pixels that are
 * all different, affine ones by three levels, those that work in place by where the
 * result lies.
 */
#include "ops/ops_test_util.h"
#include "ops/traits_test_util.h"

#include <math.h>

#include "ops/image_edit_test_util.h"

#define HEIGHT 11
#define WIDTH 14
#define PIXELS (HEIGHT * WIDTH)
#define BYTES (PIXELS * 3)
#define IDS 24 /* identities to draw with */

static struct bench b;

/* A result, contiguous. */
struct result {
    int64_t height, width, channels;
    enum hr_dtype dtype;
    size_t pixel_bytes; /* of all channels */
    unsigned char *data;
};

static void finish(struct result *r)
{
    free(r->data);
}

/* A box with a label, as source.coco gives them; plain numbers for ops that would leave
 * it where it is. */
static void put_boxes(const struct row *row)
{
    bool moves =
        strstr(row->params, "boxes") != NULL || strncmp(row->op, "boxes.", 6) == 0;

    static float boxes[4] = {1, 2, 9, 8};
    static int64_t labels[1] = {0};
    struct hr_field *field;

    hr__value_set_tensor(bench_put(&b, "boxes"), HR_F32, 2, (int64_t[]){1, 4}, boxes,
                         NULL);
    hr__value_set_tensor(bench_put(&b, "labels"), HR_I64, 1, (int64_t[]){1}, labels,
                         NULL);
    bench_value(&b, "boxes")->shared = bench_value(&b, "labels")->shared = true;
    field = bench_field(&b, "boxes");
    field->dtype = HR_F32;
    field->ndim = 2;
    field->meaning = moves ? HR_MEANING_BOXES : HR_MEANING_NONE;
    hr__dim_unknown(&field->dims[0], "boxes");
    hr__dim_set(&field->dims[1], 4);
    field = bench_field(&b, "labels");
    field->dtype = HR_I64;
    field->ndim = 1;
    hr__dim_unknown(&field->dims[0], "boxes");
}

/* Runs the op on an image of uint8, with the draws of identity `id`. Call finish() on the
 * result. */
static struct result apply(const struct row *row, uint8_t *levels, uint64_t id)
{
    struct result r = {0};
    const struct hr_value *value;
    size_t bytes;

    bench_clear(&b);
    bench_put_image(&b, "image", HR_U8, HEIGHT, WIDTH, 3, levels);
    put_boxes(row);
    b.id.index = id;
    if (bench_op(&b, row->op, row->params) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s: %s", row->op, b.error.message);
    value = bench_value(&b, "image");
    r.data = bench_bytes(&b, "image", &bytes);
    r.height = value->dims[0];
    r.width = value->dims[1];
    r.channels = value->dims[2];
    r.dtype = (enum hr_dtype)value->dtype;
    r.pixel_bytes = (size_t)r.channels * hr_dtype_size(r.dtype);
    return r;
}

static const unsigned char *pixel(const struct result *r, int64_t at)
{
    return r->data + (size_t)at * r->pixel_bytes;
}

static double level(const struct result *r, int64_t pixel_at, int64_t channel)
{
    int64_t at = pixel_at * r->channels + channel;
    float f;

    if (r->dtype == HR_U8)
        return r->data[at];
    CHECK_EQ_INT(r->dtype, HR_F32);
    memcpy(&f, r->data + at * 4, 4);
    return f;
}

static void draw_levels(uint8_t *levels, uint64_t seed)
{
    struct hr_rng rng;

    hr__rng_init(&rng, seed, 0, 0);
    for (int i = 0; i < BYTES; i++)
        levels[i] = (uint8_t)hr__rng_below(&rng, 256);
}

static bool is_about_images(const struct row *row, const struct hr_op *op)
{
    return row->before != NULL && strcmp(row->before, PICTURES) == 0 &&
           op->kind == HR_OP_MAP && strncmp(op->name, "record.", 7) != 0 &&
           strcmp(op->name, "tensor.one_hot") != 0 &&
           strcmp(op->name, "image.encode") != 0;
}

#define EACH_WITH(trait, row, op) EACH(row, op) if ((op->traits & (trait)) != 0)

static void setup(void)
{
    bench_init(&b);
    b.id.seed = 1;
}

/* ---- pixels ---- */

static void check_permuted(const struct row *row, uint8_t *levels, uint64_t id)
{
    struct result whole = apply(row, levels, id), other;
    uint8_t moved[BYTES];
    int to[PIXELS];

    for (int i = 0; i < PIXELS; i++) {
        to[i] = (i * 37 + 5) % PIXELS; /* 37 and PIXELS have no common factor */
        memcpy(&moved[to[i] * 3], &levels[i * 3], 3);
    }
    other = apply(row, moved, id);
    CHECK_EQ_INT(whole.height * whole.width, PIXELS);
    CHECK_EQ_INT(other.pixel_bytes, whole.pixel_bytes);
    for (int i = 0; i < PIXELS; i++)
        if (memcmp(pixel(&whole, i), pixel(&other, to[i]), whole.pixel_bytes) != 0)
            check_failed(__FILE__, __LINE__, "%s: pixel %d differs elsewhere", row->op,
                         i);
    finish(&whole);
    finish(&other);
}

static void check_one_changed(const struct row *row, uint8_t *levels, uint64_t id)
{
    struct result whole = apply(row, levels, id), other;
    uint8_t changed[BYTES];
    int at = (int)(id * 31) % PIXELS;

    memcpy(changed, levels, BYTES);
    for (int c = 0; c < 3; c++)
        changed[at * 3 + c] = (uint8_t)(255 - changed[at * 3 + c]);
    other = apply(row, changed, id);
    for (int i = 0; i < PIXELS; i++)
        if (i != at && memcmp(pixel(&whole, i), pixel(&other, i), whole.pixel_bytes) != 0)
            check_failed(__FILE__, __LINE__, "%s: pixel %d depends on pixel %d", row->op,
                         i, at);
    finish(&whole);
    finish(&other);
}

TEST(pointwise_ops_make_each_pixel_from_itself_alone)
{
    uint8_t levels[BYTES];

    setup();
    EACH_WITH(HR_TRAIT_POINTWISE, row, op)
    {
        for (uint64_t id = 0; id < IDS; id++) {
            draw_levels(levels, id);
            check_permuted(row, levels, id);
            check_one_changed(row, levels, id);
        }
    }
    bench_finish(&b);
}

/* x * a + b, per channel: the result of a level in the middle is in the middle. */
TEST(affine_ops_are_a_line_per_channel)
{
    uint8_t levels[BYTES];

    setup();
    EACH_WITH(HR_TRAIT_AFFINE, row, op)
    {
        double at[3][3];

        CHECK((op->traits & HR_TRAIT_POINTWISE) != 0);
        for (int k = 0; k < 3; k++) {
            struct result r;

            memset(levels, 40 + 80 * k, BYTES);
            r = apply(row, levels, 0);
            for (int c = 0; c < 3; c++)
                at[k][c] = level(&r, PIXELS / 2, c);
            finish(&r);
        }
        for (int c = 0; c < 3; c++)
            CHECK_NEAR(at[1][c], (at[0][c] + at[2][c]) / 2, 1e-5);
    }
    bench_finish(&b);
}

/* All pixels differ; each occurs in the output at most once, and no other does. */
TEST(geometric_ops_move_and_drop_pixels_only)
{
    uint8_t levels[BYTES];

    setup();
    for (int i = 0; i < PIXELS; i++) {
        levels[i * 3] = (uint8_t)i;
        levels[i * 3 + 1] = (uint8_t)(255 - i);
        levels[i * 3 + 2] = (uint8_t)(i * 7);
    }
    EACH_WITH(HR_TRAIT_GEOMETRIC, row, op)
    {
        for (uint64_t id = 0; id < IDS; id++) {
            struct result r = apply(row, levels, id);
            bool seen[PIXELS] = {false};

            CHECK_EQ_INT(r.pixel_bytes, 3);
            for (int64_t i = 0; i < r.height * r.width; i++) {
                int from = pixel(&r, i)[0];

                if (from >= PIXELS || memcmp(pixel(&r, i), &levels[from * 3], 3) != 0 ||
                    seen[from])
                    check_failed(__FILE__, __LINE__,
                                 "%s: pixel %d is none of the input's", row->op, (int)i);
                seen[from] = true;
            }
            finish(&r);
        }
    }
    bench_finish(&b);
}

/* A flat image stays flat; levels 0 and 255 give others in between. */
TEST(resampling_ops_interpolate)
{
    uint8_t levels[BYTES];

    setup();
    EACH_WITH(HR_TRAIT_RESAMPLING, row, op)
    {
        struct result r;
        bool between = false;

        memset(levels, 77, BYTES);
        r = apply(row, levels, 1);
        for (int64_t i = 0; i < r.height * r.width; i++)
            CHECK_EQ_INT(level(&r, i, 0), 77);
        finish(&r);
        for (int i = 0; i < BYTES; i++)
            levels[i] = (i / 3 + i / 3 / WIDTH) % 2 == 0 ? 0 : 255;
        r = apply(row, levels, 1);
        for (int64_t i = 0; i < r.height * r.width; i++)
            between = between || (level(&r, i, 0) > 0 && level(&r, i, 0) < 255);
        CHECK(between);
        finish(&r);
    }
    bench_finish(&b);
}

/* No level is outside those of the image and the fill, which is black. */
TEST(ops_that_warp_interpolate_or_fill)
{
    uint8_t levels[BYTES];

    setup();
    EACH_WITH(HR_TRAIT_WARPS, row, op)
    {
        struct result r;
        bool kept = false;

        memset(levels, 0, BYTES);
        r = apply(row, levels, 1);
        for (int64_t i = 0; i < r.height * r.width; i++)
            CHECK_EQ_INT(level(&r, i, 0), 0);
        finish(&r);
        memset(levels, 77, BYTES);
        r = apply(row, levels, 1);
        for (int64_t i = 0; i < r.height * r.width; i++) {
            CHECK(level(&r, i, 0) <= 77);
            kept = kept || level(&r, i, 0) == 77;
        }
        CHECK(kept);
        finish(&r);
    }
    bench_finish(&b);
}

/* Whether the result is the same with other levels in this corner, a third of each side.
 */
static bool is_left_out(const struct row *row, uint64_t id, int corner)
{
    uint8_t levels[BYTES];
    struct result whole, other;
    bool same;

    draw_levels(levels, id);
    whole = apply(row, levels, id);
    for (int y = 0; y < HEIGHT / 3; y++)
        for (int x = 0; x < WIDTH / 3 * 3; x++) {
            int at_y = corner / 2 == 0 ? y : HEIGHT - 1 - y;
            int at_x = corner % 2 == 0 ? x : WIDTH * 3 - 1 - x;

            levels[at_y * WIDTH * 3 + at_x] ^= 0xFF;
        }
    other = apply(row, levels, id);
    same = whole.height == other.height && whole.width == other.width &&
           memcmp(whole.data, other.data,
                  (size_t)(whole.height * whole.width) * whole.pixel_bytes) == 0;
    finish(&whole);
    finish(&other);
    return same;
}

TEST(ops_that_crop_leave_parts_out_and_others_that_move_pixels_do_not)
{
    setup();
    EACH_WITH(HR_TRAIT_CROPS | HR_TRAIT_GEOMETRIC | HR_TRAIT_RESAMPLING, row, op)
    {
        bool left_out = false;

        for (uint64_t id = 0; id < IDS; id++)
            for (int corner = 0; corner < 4; corner++)
                left_out = left_out || is_left_out(row, id, corner);
        if (left_out != ((op->traits & HR_TRAIT_CROPS) != 0))
            check_failed(__FILE__, __LINE__, "%s %s parts of the image out", row->op,
                         left_out ? "leaves" : "does not leave");
    }
    bench_finish(&b);
}

/* ---- memory of results ---- */

/* Also if the record alone uses the input: no op works in place, so any two may use the
 * same input. */
TEST(no_op_writes_over_its_input)
{
    uint8_t levels[BYTES], kept[BYTES];

    setup();
    draw_levels(kept, 3);
    EACH(row, op)
    {
        if (!is_about_images(row, op))
            continue;
        for (uint64_t id = 0; id < IDS; id++) {
            struct result r;

            memcpy(levels, kept, BYTES);
            r = apply(row, levels, id);
            CHECK_BYTES(levels, kept, BYTES);
            finish(&r);
            bench_clear(&b);
            bench_put_image(&b, "image", HR_U8, HEIGHT, WIDTH, 3, levels);
            bench_value(&b, "image")->shared = false;
            CHECK_OK(bench_op(&b, row->op, row->params));
            CHECK_OK(
                hr__value_force(&b.thread, bench_value(&b, "image"), NULL, &b.error));
            CHECK_BYTES(levels, kept, BYTES);
        }
    }
    bench_finish(&b);
}

/* ---- descriptions ---- */

/* A deferred value stays deferred after an op with DEFERS. */
TEST(ops_that_defer_edit_descriptions)
{
    size_t bytes;
    void *photo = jpeg(40, 30, 1, false, &bytes);

    setup();
    EACH_WITH(HR_TRAIT_DEFERS, row, op)
    {
        if (op->kind == HR_OP_ZIP)
            continue;
        bench_clear(&b);
        bench_put_bytes(&b, "data", photo, bytes);
        hr__value_set_tensor(bench_put(&b, "label"), HR_I64, 0, NULL, &(int64_t){0},
                             NULL);
        bench_field(&b, "label")->dtype = HR_I64;
        bench_field(&b, "label")->meaning = HR_MEANING_LABEL;
        put_boxes(row);
        if ((op->traits & HR_TRAIT_DECODES) == 0)
            CHECK_OK(bench_op(&b, "image.decode", "{mode: exact}"));
        if (bench_op(&b, row->op, row->params) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s: %s", row->op, b.error.message);
        if (bench_value(&b, "image")->kind != HR_VALUE_DEFERRED)
            check_failed(__FILE__, __LINE__, "%s makes its image", row->op);
    }
    bench_finish(&b);
    free(photo);
}

/* Decoding a window gives that window of the whole image. */
TEST(ops_that_decode_decode_in_windows)
{
    size_t bytes, all, some;
    void *photo = jpeg(40, 30, 1, false, &bytes);

    setup();
    EACH_WITH(HR_TRAIT_DECODES, row, op)
    {
        unsigned char *whole, *window;

        CHECK((op->traits & HR_TRAIT_DEFERS) != 0);
        bench_clear(&b);
        bench_put_bytes(&b, "data", photo, bytes);
        CHECK_OK(bench_op(&b, row->op, row->params));
        whole = bench_bytes(&b, "image", &all);
        CHECK_OK(bench_op(&b, "image.center_crop", "{size: [10, 20]}"));
        window = bench_bytes(&b, "image", &some);
        CHECK_EQ_INT(some, 10 * 20 * 3);
        for (int y = 0; y < 10; y++)
            CHECK_BYTES(window + y * 60, whole + ((y + 10) * 40 + 10) * 3, 60);
        free(whole);
        free(window);
    }
    bench_finish(&b);
    free(photo);
}

/* ---- nothing copied ---- */

/* Opens an expansion of records that have a list, and a number beside it, as freezing
 * does. The bench's node 0 is the op. */
static const struct bench_node *open_expansion(const struct row *row, const char *params)
{
    struct bench_node *n = &b.nodes[b.node_count++];
    struct hr_value *values[HR_LIST_MAX * 3];
    struct hr_open open = {.input = &n->input, .output = &b.schema, .error = &b.error};

    CHECK_OK(bench_parse(&b, n, row->op, params));
    CHECK_OK(bench_bind(&b, n));
    CHECK_OK(bench_infer(&b, n, values));
    open.params = n->params;
    if (n->op->open != NULL)
        CHECK_OK(n->op->open(&open, &n->state));
    return n;
}

/* Values of a batch of `rank` 1, or of a record for 0: "list" and "beside". */
static void put_list(int rank, int64_t *numbers, int64_t count)
{
    const char *const names[] = {"list", "beside"};

    bench_clear(&b);
    for (int i = 0; i < 2; i++) {
        struct hr_field *field;
        int ndim = i == 0 || rank > 0;

        hr__value_set_tensor(bench_put(&b, names[i]), HR_I64, ndim, &count,
                             numbers + i * count, NULL);
        field = bench_field(&b, names[i]);
        field->dtype = HR_I64;
        field->ndim = ndim;
        if (ndim > 0)
            hr__dim_unknown(&field->dims[0], "items");
    }
    b.schema.batch_rank = rank;
}

/* Children point into the memory of their parent: item i of a list, all of what is
 * beside it; an item of each field of a batch. */
TEST(expansions_that_copy_nothing_show_their_parents_bytes)
{
    int64_t numbers[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    size_t seen = 0;

    setup();
    EACH_WITH(HR_TRAIT_ZERO_COPY, row, op)
    {
        bool lists = op->param_count > 0; /* of records; else it takes batches apart */
        struct hr_op_ctx ctx = {.thread = &b.thread, .error = &b.error};
        const struct bench_node *n;

        if (op->kind != HR_OP_EXPAND)
            continue;
        put_list(lists ? 0 : 1, numbers, 4);
        n = open_expansion(row, lists ? "{fields: list}" : row->params);
        ctx.params = n->params;
        ctx.state = n->state;
        for (uint64_t i = 0; i < 4; i++) {
            struct hr_value children[2] = {{0}};

            CHECK_OK(op->expand.child(&ctx, i, b.values, children, 2));
            if (children[0].data != &numbers[i] ||
                children[1].data != &numbers[lists ? 4 : 4 + i])
                check_failed(__FILE__, __LINE__, "%s copies", row->op);
        }
        seen++;
    }
    CHECK(seen >= 2); /* batch.unbatch and record.flat */
    bench_finish(&b);
}

/* Reading a record again gives the same bytes. */
TEST(sources_that_copy_nothing_show_their_files_bytes)
{
    static const unsigned char pictures[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0,  2,
                                             0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 70, 8};
    char path[512], params[600], arrow[600], parquet[600], lmdb[600];

    snprintf(path, sizeof path, "%s/both.idx", check_temp_dir());
    CHECK_OK(hr__file_replace(path, pictures, sizeof pictures, NULL));
    snprintf(params, sizeof params, "{path: '%s'}", path); /* lines, for a list */
    snprintf(arrow, sizeof arrow, "{path: '%s/fuzz/corpus/arrow/plain'}",
             check_source_dir());
    snprintf(parquet, sizeof parquet, "{path: '%s/fuzz/corpus/parquet/wide'}",
             check_source_dir());
    snprintf(lmdb, sizeof lmdb, "{path: '%s/fuzz/corpus/lmdb/plain'}",
             check_source_dir());
    setup();
    EACH_WITH(HR_TRAIT_ZERO_COPY, row, op)
    {
        struct hr_value *fields[HR_LIST_MAX * 3], again[HR_LIST_MAX * 3] = {{0}};
        const struct bench_node *n = &b.nodes[0];
        struct hr_op_ctx ctx = {.id = &b.id, .thread = &b.thread, .error = &b.error};
        const void *first;

        if (op->kind != HR_OP_SOURCE)
            continue;
        bench_clear(&b);
        CHECK_OK(bench_op(&b, row->op,
                          strcmp(row->op, "source.arrow") == 0     ? arrow
                          : strcmp(row->op, "source.parquet") == 0 ? parquet
                          : strcmp(row->op, "source.lmdb") == 0    ? lmdb
                                                                   : params));
        first = b.values[b.schema.fields[0].slot].data;
        for (size_t i = 0; i < n->count; i++)
            fields[i] = &again[i];
        ctx.params = n->params;
        ctx.state = n->state;
        ctx.fields = fields;
        ctx.field_count = n->count;
        CHECK_OK(op->apply(&ctx));
        if (again[0].data != first)
            check_failed(__FILE__, __LINE__, "%s copies", row->op);
        for (size_t i = 0; i < n->count; i++)
            hr__value_clear(&again[i]);
    }
    bench_finish(&b);
}
