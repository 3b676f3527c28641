/*
 * fleet/parcel_test.c - batches and failures to bytes and back; bytes that lie.
 */
#include "fleet/parcel.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "engine/engine_test_util.h"
#include "op/ragged.h"

#define BATCHES 5

static struct hr_pool *pool;

static void start(void)
{
    if (pool == NULL)
        pool = hr_pool_create(0);
}

/* Batches of numbers, texts and lists of lists. */
static size_t make(struct hr_batch **batches)
{
    struct hr_graph *graph;
    struct hr_iter *iter;
    char text[1024];
    size_t count = 0;

    snprintf(text, sizeof text,
             GRAPH("  - source.lines: {path: %s/README.md}\n"
                   "  - order.take: {count: 37}\n"
                   "  - text.split: {to: parts}\n" BATCH(8)),
             check_source_dir());
    graph = load(text);

    CHECK_OK(hr_iter_open(graph, NULL, &iter, NULL));
    while (count < BATCHES && hr_iter_next(iter, &batches[count], NULL) == HR_OK)
        count++;
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return count;
}

/* A batch of a tensor of `rows` x 2400 bytes, beside its numbers. */
static struct hr_batch *make_wide(size_t rows)
{
    struct hr_batch *batch = NULL;
    struct hr_graph *graph;
    struct hr_iter *iter;
    char text[512];

    snprintf(text, sizeof text,
             GRAPH("  - source.range: {n: 600, field: label}\n"
                   "  - tensor.one_hot: {classes: 600}\n"
                   "  - batch.stack: {size: %zu}\n"),
             rows);
    graph = load(text);
    CHECK_OK(hr_iter_open(graph, NULL, &iter, NULL));
    CHECK_OK(hr_iter_next(iter, &batch, NULL));
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return batch;
}

/* Writes items as they arrive: in one piece. */
static enum hr_err write_one(const struct hr_parcel_item *items, size_t count,
                             struct hr_buffer **ret_buffer, struct hr_error *reterr)
{
    struct hr_parcel_pieces pieces;
    struct hr_buffer *buffer;
    size_t at = 0;

    HR_TRY(hr__parcel_write(items, count, NULL, pool, &pieces, reterr));
    buffer = hr_buffer_create(pieces.bytes);
    for (size_t i = 0; buffer != NULL && i < pieces.count; i++) {
        memcpy((char *)hr_buffer_data(buffer) + at, pieces.parts[i].data,
               pieces.parts[i].bytes);
        at += pieces.parts[i].bytes;
    }
    CHECK(buffer == NULL || at == pieces.bytes);
    hr__parcel_drop(&pieces);
    *ret_buffer = buffer;
    return buffer != NULL ? HR_OK : HR_ERR_MEMORY;
}

/* Reads one item. */
static enum hr_err
read_one(struct hr_buffer *buffer, size_t count, size_t at, int64_t records,
         struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_parcel *parcel;
    enum hr_err code;

    HR_TRY(hr__parcel_open(buffer, count, NULL, 0, &parcel, reterr));
    code = hr__parcel_get(parcel, at, records, ret_batch, reterr);
    hr__parcel_close(parcel);
    return code;
}

static void check_equal(const struct hr_batch *a, const struct hr_batch *b)
{
    CHECK_EQ_INT(hr_batch_records(a), hr_batch_records(b));
    CHECK_EQ_INT(hr_batch_field_count(a), hr_batch_field_count(b));
    for (size_t i = 0; i < hr_batch_field_count(a); i++) {
        struct hr_field_view x, y;

        CHECK_OK(hr_batch_field(a, i, &x));
        CHECK_OK(hr_batch_field(b, i, &y));
        CHECK_EQ_STR(x.name, y.name);
        CHECK_EQ_INT(x.dtype, y.dtype);
        CHECK_EQ_INT(x.text, y.text);
        CHECK_EQ_INT(x.bytes, y.bytes);
        CHECK_EQ_INT(x.levels, y.levels);
        CHECK_EQ_INT(memcmp(x.data, y.data, x.bytes), 0);
        for (int d = 0; d < x.ndim; d++)
            CHECK_EQ_INT(x.dims[d], y.dims[d]);
        for (int l = 0, items = (int)x.dims[0]; l < x.levels; l++) {
            CHECK_EQ_INT(memcmp(x.splits[l], y.splits[l], 8 * ((size_t)items + 1)), 0);
            items = (int)x.splits[l][items];
        }
    }
}

/* Records of lines, the second of which failed. */
static struct hr_buffer *write_records(struct hr_schema *schema)
{
    struct hr_value values[2][2] = {0};
    struct hr_batch *batches[2];
    struct hr_parcel_item items[3];
    struct hr_parcel_pieces pieces;
    struct hr_buffer *buffer;
    static char text[] = "a line", other[] = "";
    static int64_t numbers[] = {5, 6};

    hr__value_set_bytes(&values[0][0], text, 6, NULL);
    hr__value_set_bytes(&values[1][0], other, 0, NULL);
    for (size_t i = 0; i < 2; i++) {
        batches[i] = hr__batch_create(schema, NULL);
        hr__value_set_tensor(&values[i][1], HR_I64, 0, NULL, &numbers[i], NULL);
        memcpy(batches[i]->values, values[i], sizeof values[i]);
    }
    items[0] = (struct hr_parcel_item){.batch = batches[0]};
    items[1] = (struct hr_parcel_item){.batch = NULL};
    items[2] = (struct hr_parcel_item){.batch = batches[1]};
    CHECK_OK(hr__parcel_write(items, 3, schema, pool, &pieces, NULL));
    CHECK_EQ_INT(pieces.count, 1);
    buffer = hr_buffer_create(pieces.bytes);
    memcpy(hr_buffer_data(buffer), pieces.parts[0].data, pieces.bytes);
    hr__parcel_drop(&pieces);
    for (size_t i = 0; i < 2; i++)
        hr_batch_unref(batches[i]);
    return buffer;
}

TEST(records_travel_as_they_are_and_a_bad_one_ends_nothing)
{
    struct hr_schema schema = {
        .records = -1,
        .count = 2,
        .fields = {{.name = "text", .kind = HR_FIELD_BYTES, .meaning = HR_MEANING_TEXT},
                   {.name = "number", .dtype = HR_I64}}
    };
    struct hr_value values[2] = {0};
    struct hr_error error = {0};
    struct hr_parcel *parcel;
    struct hr_buffer *buffer;
    struct hr_batch *batch;
    bool failed = false;

    start();
    buffer = write_records(&schema);
    CHECK_OK(hr__parcel_open(buffer, 3, NULL, 0, &parcel, NULL));
    hr_buffer_unref(buffer);
    CHECK_OK(hr__parcel_get_record(parcel, 1, &schema, values, &failed, NULL));
    CHECK(failed);
    CHECK_ERR(HR_ERR_FORMAT, hr__parcel_get(parcel, 1, 1, &batch, &error));
    CHECK_HAS(error.message, "a record instead of a batch");
    CHECK_OK(hr__parcel_get_record(parcel, 2, &schema, values, &failed, NULL));
    CHECK(!failed);
    CHECK_EQ_INT(values[0].bytes, 0);
    CHECK_EQ_INT(*(int64_t *)values[1].data, 6);
    hr__value_clear(&values[0]);
    hr__value_clear(&values[1]);
    CHECK_OK(hr__parcel_get_record(parcel, 0, &schema, values, &failed, NULL));
    schema.fields[1].dtype = HR_I32; /* from another worker, say */
    CHECK_ERR(HR_ERR_FORMAT,
              hr__parcel_get_record(parcel, 2, &schema, &(struct hr_value[2]){0}[0],
                                    &failed, &error));
    CHECK_HAS(error.message, "another schema");
    hr__parcel_close(parcel);
    CHECK_EQ_INT(memcmp(values[0].data, "a line", 6), 0); /* outlives it */
    hr__value_clear(&values[0]);
    hr__value_clear(&values[1]);
}

TEST(batches_come_back_in_place_and_outlive_the_parcel)
{
    struct hr_batch *batches[BATCHES], *read[BATCHES];
    struct hr_parcel_item items[BATCHES];
    struct hr_parcel *parcel;
    struct hr_buffer *buffer;
    size_t count;

    start();
    count = make(batches);
    CHECK_EQ_INT(count, BATCHES);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct hr_parcel_item){.batch = batches[i]};
    CHECK_OK(write_one(items, count, &buffer, NULL));
    CHECK_OK(hr__parcel_open(buffer, count, NULL, 0, &parcel, NULL));
    hr_buffer_unref(buffer);
    for (size_t k = 0; k < count; k++) { /* from the middle on, then the first ones */
        size_t i = (k + count / 2) % count;

        CHECK_OK(hr__parcel_get(parcel, i, hr_batch_records(batches[i]), &read[i], NULL));
    }
    hr__parcel_close(parcel);
    for (size_t i = 0; i < count; i++) {
        check_equal(batches[i], read[i]);
        hr_batch_unref(batches[i]);
        hr_batch_unref(read[i]);
    }
}

/* Rows of two packs beside a batch of one record and a failure. */
TEST(rows_of_packs_come_back_as_batches_of_one_record)
{
    struct hr_batch *packs[2] = {make_wide(7), make_wide(40)}, *read;
    struct hr_batch *single = hr__batch_row(packs[0], 6);
    const struct hr_error failed = {.code = HR_ERR_IO, .message = "x"};
    struct hr_parcel_item items[20];
    struct hr_error error = {0};
    struct hr_buffer *buffer;
    size_t count = 0;

    start();
    for (int64_t i = 2; i < 6; i++)
        items[count++] = (struct hr_parcel_item){packs[0], NULL, true, i};
    items[count++] = (struct hr_parcel_item){.batch = single};
    for (int64_t i = 0; i < 3; i++)
        items[count++] = (struct hr_parcel_item){packs[1], NULL, true, i};
    for (int64_t i = 9; i < 12; i++) /* not neighbours of those before */
        items[count++] = (struct hr_parcel_item){packs[1], NULL, true, i};
    items[count++] = (struct hr_parcel_item){.error = &failed};
    CHECK_OK(write_one(items, count, &buffer, NULL));
    for (size_t i = 0; i + 1 < count; i++) {
        struct hr_batch *row = items[i].is_row
                                   ? hr__batch_row(packs[i >= 5], items[i].row)
                                   : hr_batch_ref(single);

        CHECK_OK(read_one(buffer, count, i, 1, &read, NULL));
        check_equal(row, read);
        hr_batch_unref(row);
        hr_batch_unref(read);
        CHECK_ERR(HR_ERR_FORMAT, read_one(buffer, count, i, 2, &read, &error));
        CHECK_HAS(error.message, "wrong number of records");
    }
    CHECK_ERR(HR_ERR_IO, read_one(buffer, count, count - 1, 1, &read, NULL));
    hr_buffer_unref(buffer);
    hr_batch_unref(single);
    for (size_t i = 0; i < 2; i++)
        hr_batch_unref(packs[i]);
}

TEST(neighbouring_rows_are_sent_from_where_they_lie)
{
    struct hr_batch *pack = make_wide(64);
    struct hr_parcel_item items[48];
    struct hr_parcel_pieces pieces;

    start();
    for (int64_t i = 0; i < 48; i++)
        items[i] = (struct hr_parcel_item){pack, NULL, true, 8 + i};
    CHECK_OK(hr__parcel_write(items, 48, NULL, pool, &pieces, NULL));
    CHECK_EQ_INT(pieces.count, 2);
    CHECK_EQ_INT(pieces.parts[1].bytes, (size_t)48 * 2400);
    hr__parcel_drop(&pieces);
    hr_batch_unref(pack);
}

TEST(a_failure_comes_back_as_the_same_error)
{
    struct hr_error error =
                        {
                            .code = HR_ERR_FORMAT,
                            .record = 8,
                            .epoch = 2,
                            .position = 77,
                            .offset = 5,
                            .depth = 2,
                            .children = {3, 4},
                            .node = "decode",
                            .op = "image.decode",
                            .param = "field",
                            .file = "a.jpg",
                            .message = "node 'decode': a.jpg is cut",
                            .raised = "builtins:ValueError"
    },
                    read = {0};
    const struct hr_parcel_item item = {.error = &error};
    struct hr_batch *batch = NULL;
    struct hr_buffer *buffer;

    start();
    CHECK_OK(write_one(&item, 1, &buffer, NULL));
    CHECK_ERR(HR_ERR_FORMAT, read_one(buffer, 1, 0, 1, &batch, &read));
    CHECK_EQ_INT(memcmp(&error, &read, sizeof read), 0);
    hr_buffer_unref(buffer);
}

TEST(a_batch_of_another_size_is_refused)
{
    struct hr_batch *batches[BATCHES], *read = NULL;
    struct hr_error error = {0};
    struct hr_buffer *buffer;
    size_t count;

    start();
    count = make(batches);
    CHECK_OK(write_one(&(struct hr_parcel_item){.batch = batches[0]}, 1, &buffer, NULL));
    CHECK_ERR(HR_ERR_FORMAT, read_one(buffer, 1, 0, 7, &read, &error));
    CHECK_HAS(error.message, "wrong number of records");
    CHECK_ERR(HR_ERR_FORMAT, read_one(buffer, 2, 0, 8, &read, &error));
    CHECK_HAS(error.message, "number of batches");
    hr_buffer_unref(buffer);
    for (size_t i = 0; i < count; i++)
        hr_batch_unref(batches[i]);
}

TEST(any_changed_byte_is_an_error_or_harmless)
{
    struct hr_batch *batches[BATCHES], *wide = make_wide(4), *read;
    const struct hr_error failed = {.code = HR_ERR_IO, .message = "x"};
    struct hr_parcel_item items[4];
    struct hr_buffer *buffer;
    struct hr_rng rng;
    size_t count;

    start();
    hr__rng_init(&rng, check_seed(), 0, 0);
    count = make(batches);
    items[0] = (struct hr_parcel_item){.batch = batches[0]};
    items[1] = (struct hr_parcel_item){.error = &failed};
    items[2] = (struct hr_parcel_item){wide, NULL, true, 1};
    items[3] = (struct hr_parcel_item){wide, NULL, true, 2};
    CHECK_OK(write_one(items, 4, &buffer, NULL));
    for (int trial = 0; trial < 3000; trial++) {
        struct hr_buffer *copy = hr_buffer_create(hr_buffer_bytes(buffer));
        size_t top = trial % 2 == 0 ? 600 : hr_buffer_bytes(buffer);
        size_t at = hr__rng_below(
            &rng, top < hr_buffer_bytes(buffer) ? top : hr_buffer_bytes(buffer));

        CHECK(copy != NULL);
        memcpy(hr_buffer_data(copy), hr_buffer_data(buffer), hr_buffer_bytes(buffer));
        ((char *)hr_buffer_data(copy))[at] ^= (char)(1 << hr__rng_below(&rng, 8));
        for (size_t i = 0; i < 4; i++)
            if (read_one(copy, 4, i, i == 0 ? 8 : 1, &read, NULL) == HR_OK)
                hr_batch_unref(read);
        hr_buffer_unref(copy);
    }
    hr_buffer_unref(buffer);
    hr_batch_unref(wide);
    for (size_t i = 0; i < count; i++)
        hr_batch_unref(batches[i]);
}

static void fail_allocations(const struct hr_parcel_item *item, int64_t records)
{
    struct hr_batch *read;

    struct hr_buffer *warm;

    CHECK_OK(
        write_one(item, 1, &warm, NULL)); /* the pool has what it needs from now on */
    hr_buffer_unref(warm);
    for (uint64_t nth = 1;; nth++) {
        struct hr_buffer *buffer = NULL;
        enum hr_err code;
        uint64_t calls;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = write_one(item, 1, &buffer, NULL);
        if (code == HR_OK)
            code = read_one(buffer, 1, 0, records, &read, NULL);
        calls = hr__fault_calls();
        hr__fault_arm(0, 0);
        if (code == HR_OK)
            hr_batch_unref(read);
        hr_buffer_unref(buffer);
        if (calls < nth)
            break;
        CHECK_ERR(HR_ERR_MEMORY, code);
    }
}

TEST(failing_allocations_are_errors)
{
    struct hr_batch *batches[BATCHES], *wide = make_wide(4);
    size_t count;

    start();
    count = make(batches);
    fail_allocations(&(struct hr_parcel_item){.batch = batches[0]}, 8);
    fail_allocations(&(struct hr_parcel_item){wide, NULL, true, 2}, 1);
    hr_batch_unref(wide);
    for (size_t i = 0; i < count; i++)
        hr_batch_unref(batches[i]);
}

TEST(large_tensors_are_sent_from_where_they_lie)
{
    const size_t rows[] = {10, 27, 28, 29, 512};

    start();
    for (size_t i = 0; i < 5; i++) {
        struct hr_batch *batch = make_wide(rows[i]), *read;
        struct hr_parcel_pieces pieces;
        struct hr_buffer *buffer;
        const struct hr_parcel_item item = {.batch = batch};
        bool far = rows[i] * 2400 >= 65536 && rows[i] * 2400 % 64 == 0;

        CHECK_OK(hr__parcel_write(&item, 1, NULL, pool, &pieces, NULL));
        CHECK_EQ_INT(pieces.count, far ? 2 : 1);
        hr__parcel_drop(&pieces);
        CHECK_OK(write_one(&item, 1, &buffer, NULL));
        CHECK_OK(read_one(buffer, 1, 0, (int64_t)rows[i], &read, NULL));
        check_equal(batch, read);
        hr_buffer_unref(buffer);
        hr_batch_unref(batch);
        hr_batch_unref(read);
    }
}
