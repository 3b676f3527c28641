/*
 * wire/record_test.c - records to bytes and back: any value of any schema, a block made
 * by hand as docs/formats/record.md describes it, and bytes that lie.
 */
#include "tests/support/check.h"

#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "op/ragged.h"
#include "wire/record.h"

static uint64_t fresh_seed(void)
{
    struct timespec now;
    uint64_t seed;

    clock_gettime(CLOCK_REALTIME, &now);
    seed = (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
    printf("# seed %llu\n", (unsigned long long)seed);
    return seed;
}

static uint64_t draw(uint64_t *dice)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    return *dice ^ *dice >> 29;
}

static uint32_t pick(uint64_t *dice, uint32_t n)
{
    return (uint32_t)((draw(dice) >> 16) % n);
}

static void *aligned(size_t bytes)
{
    void *memory;

    CHECK(posix_memalign(&memory, HR_WIRE_ALIGN, bytes + 1) == 0);
    return memory;
}

/* ---- random records ---- */

#define FIELDS 6
#define RECORDS 9

struct world {
    struct hr_schema schema;
    struct hr_wire_record records[RECORDS];
    struct hr_value values[RECORDS][FIELDS];
    struct hr_arena arena;
};

static const enum hr_dtype dtypes[] = {HR_U8,  HR_I16, HR_I32,  HR_I64, HR_F16, HR_BF16,
                                       HR_F32, HR_F64, HR_BOOL, HR_I8,  HR_U16};

static void random_field(uint64_t *dice, struct hr_field *field)
{
    field->kind = (enum hr_field_kind)pick(dice, 4);
    field->meaning = (enum hr_meaning)pick(dice, HR_MEANING_SAMPLES + 1);
    if (field->meaning == HR_MEANING_SAMPLES)
        field->rate = (int32_t)pick(dice, 1 << 20);
    if (field->kind == HR_FIELD_RAGGED || field->kind == HR_FIELD_STRINGS)
        field->levels = 1 + (int)pick(dice, 3);
    if (field->kind == HR_FIELD_BYTES || field->kind == HR_FIELD_STRINGS)
        return;
    field->dtype = dtypes[pick(dice, 11)];
    field->ndim = field->kind == HR_FIELD_RAGGED ? 1 : (int)pick(dice, 5);
    field->layout = (enum hr_layout)pick(dice, 3);
    for (int i = 0; i < field->ndim; i++) {
        if (pick(dice, 2) || field->kind == HR_FIELD_RAGGED)
            hr__dim_unknown(&field->dims[i], "some name");
        else
            hr__dim_set(&field->dims[i], pick(dice, 6));
    }
}

static void *random_bytes(struct world *w, uint64_t *dice, size_t bytes)
{
    uint8_t *memory = hr__arena_alloc(&w->arena, bytes + 1);

    for (size_t i = 0; i < bytes; i++)
        memory[i] = (uint8_t)pick(dice, 256);
    return memory;
}

/* A tensor, half of the time with its first two dims the other way round in memory. */
static void random_tensor(struct world *w, uint64_t *dice, const struct hr_field *field,
                          struct hr_value *value)
{
    int64_t dims[HR_MAX_DIMS], count = 1, size = (int64_t)hr_dtype_size(field->dtype);

    for (int i = 0; i < field->ndim; i++) {
        dims[i] = field->dims[i].size < 0 ? pick(dice, 7) : field->dims[i].size;
        count *= dims[i];
    }
    hr__value_set_tensor(value, field->dtype, field->ndim, dims,
                         random_bytes(w, dice, (size_t)(count * size)), NULL);
    value->layout = (uint8_t)field->layout;
    if (field->ndim < 2 || pick(dice, 2) == 0)
        return;
    value->strides[0] = value->strides[1];
    value->strides[1] = value->strides[0] * dims[0];
}

static int64_t random_splits(struct world *w, uint64_t *dice, int64_t items,
                             unsigned most, const int64_t **ret_splits)
{
    int64_t *splits = hr__arena_alloc(&w->arena, ((size_t)items + 1) * sizeof *splits);

    splits[0] = 0;
    for (int64_t i = 0; i < items; i++)
        splits[i + 1] = splits[i] + (int64_t)pick(dice, most);
    *ret_splits = splits;
    return splits[items];
}

/* Shapes of one row, whose size is that of the item. */
static const int64_t *
flat_shapes(struct world *w, const struct hr_ragged *r, int64_t items)
{
    const int64_t *splits = r->splits[r->levels - 1];
    int64_t *shapes = hr__arena_alloc(
        &w->arena, ((size_t)items * (size_t)r->item_ndim + 1) * sizeof *shapes);

    for (int64_t i = 0; i < items * r->item_ndim; i++)
        shapes[i] = i % r->item_ndim == 0
                        ? splits[i / r->item_ndim + 1] - splits[i / r->item_ndim]
                        : 1;
    return shapes;
}

static void random_ragged(struct world *w, uint64_t *dice, const struct hr_field *field,
                          struct hr_value *value)
{
    bool strings = field->kind == HR_FIELD_STRINGS;
    size_t size = strings ? 1 : hr_dtype_size(field->dtype);
    int64_t count = (int64_t)pick(dice, 6), items = count, below = count;
    struct hr_ragged *r = hr__arena_zalloc(&w->arena, sizeof *r);

    r->levels = field->levels;
    r->item_ndim = strings ? 0 : 1 + (int)pick(dice, 3);
    for (int i = 0; i < r->levels; i++) {
        items = below;
        below = random_splits(w, dice, items, 5, &r->splits[i]);
    }
    if (r->item_ndim > 1)
        r->shapes = flat_shapes(w, r, items);
    *value = (struct hr_value){
        .kind = HR_VALUE_RAGGED,
        .dtype = strings ? HR_U8 : (uint8_t)field->dtype,
        .ndim = 1,
        .strings = strings,
        .bytes = (size_t)below * size,
        .u.ragged = r,
        .dims = {count},
    };
    value->data = random_bytes(w, dice, value->bytes);
}

static void check_ragged(const struct hr_value *a, const struct hr_value *b)
{
    const struct hr_ragged *x = a->u.ragged, *y = b->u.ragged;
    size_t items = 0;

    CHECK_EQ_INT(x->levels, y->levels);
    CHECK_EQ_INT(x->item_ndim, y->item_ndim);
    for (int i = 0; i < x->levels; i++) {
        items = (size_t)hr__ragged_items(a, i);
        CHECK_BYTES(x->splits[i], y->splits[i], (items + 1) * sizeof(int64_t));
    }
    if (x->item_ndim > 1)
        CHECK_BYTES(x->shapes, y->shapes, items * (size_t)x->item_ndim * sizeof(int64_t));
}

static void random_value(struct world *w, uint64_t *dice, const struct hr_field *field,
                         struct hr_value *value)
{
    size_t bytes = pick(dice, 200);

    if (field->kind == HR_FIELD_TENSOR)
        random_tensor(w, dice, field, value);
    else if (field->kind == HR_FIELD_BYTES)
        hr__value_set_bytes(value, random_bytes(w, dice, bytes), bytes, NULL);
    else
        random_ragged(w, dice, field, value);
}

static struct world *world_make(uint64_t *dice)
{
    struct world *w = calloc(1, sizeof *w);
    char name[16];

    hr__arena_init(&w->arena);
    w->schema.records = -1;
    for (int f = 0; f < FIELDS; f++) {
        snprintf(name, sizeof name, "field%d", f);
        random_field(dice, hr__schema_put(&w->schema, name));
    }
    for (size_t i = 0; i < RECORDS; i++) {
        struct hr_record_id *id = &w->records[i].id;

        id->seed = draw(dice);
        id->index = draw(dice) % HR_INDEX_MAX;
        id->position = draw(dice);
        id->epoch = pick(dice, 1u << 31);
        id->draw_epoch = (uint32_t)draw(dice);
        id->depth = pick(dice, 3) ? 0 : pick(dice, HR_CHILD_DEPTH_MAX + 1);
        for (uint32_t d = 0; d < id->depth; d++)
            id->child[d] = (uint32_t)draw(dice);
        w->records[i].values = w->values[i];
        for (int f = 0; f < FIELDS; f++)
            random_value(w, dice, &w->schema.fields[f], &w->values[i][f]);
    }
    return w;
}

static void world_free(struct world *w)
{
    hr__arena_finish(&w->arena);
    free(w);
}

/* A block is the same whatever was in its memory. */
static void *encode(struct world *w, size_t count, bool schema_inside, size_t *ret_bytes)
{
    struct hr_wire_writer writer;
    void *block, *other;

    CHECK_OK(hr__wire_writer_init(&writer, &w->schema, schema_inside, NULL));
    *ret_bytes = hr__wire_block_bytes(&writer, w->records, count);
    block = aligned(*ret_bytes);
    other = aligned(*ret_bytes);
    memset(other, 0xee, *ret_bytes);
    CHECK_OK(hr__wire_block_write(&writer, w->records, count, block, NULL));
    CHECK_OK(hr__wire_block_write(&writer, w->records, count, other, NULL));
    CHECK_BYTES(block, other, *ret_bytes);
    free(other);
    hr__wire_writer_finish(&writer);
    return block;
}

static void check_same(const struct hr_value *a, const struct hr_value *b)
{
    size_t bytes = a->bytes;
    char *x, *y;

    CHECK_EQ_INT(a->kind, b->kind);
    CHECK_EQ_INT(a->dtype, b->kind == HR_VALUE_BYTES ? a->dtype : b->dtype);
    CHECK_EQ_INT(a->ndim, b->ndim);
    CHECK_EQ_INT(a->strings, b->strings);
    CHECK_EQ_INT(a->layout, b->layout);
    CHECK_BYTES(a->dims, b->dims, a->ndim * sizeof a->dims[0]);
    if (a->kind == HR_VALUE_TENSOR) {
        bytes = (size_t)hr__value_count(a) * hr_dtype_size((enum hr_dtype)a->dtype);
        CHECK((uintptr_t)b->data % 64 == 0 || bytes <= HR_WIRE_COLUMN_MAX);
        x = malloc(bytes + 1);
        y = malloc(bytes + 1);
        hr__value_copy(a, x);
        hr__value_copy(b, y);
        CHECK_BYTES(x, y, bytes);
        free(x);
        free(y);
        return;
    }
    CHECK_EQ_INT(a->bytes, b->bytes);
    CHECK_BYTES(a->data, b->data, bytes);
    if (a->kind == HR_VALUE_RAGGED)
        check_ragged(a, b);
}

static void check_schema(const struct hr_schema *a, const struct hr_schema *b)
{
    CHECK_EQ_INT(a->count, b->count);
    CHECK_EQ_INT(a->records, b->records);
    for (size_t i = 0; i < a->count; i++) {
        const struct hr_field *x = &a->fields[i], *y = &b->fields[i];

        CHECK_EQ_STR(x->name, y->name);
        CHECK(x->kind == y->kind && x->dtype == y->dtype && x->ndim == y->ndim &&
              x->meaning == y->meaning && x->layout == y->layout && x->rate == y->rate);
        for (int d = 0; d < x->ndim; d++) {
            CHECK_EQ_INT(x->dims[d].size, y->dims[d].size);
            CHECK_EQ_STR(x->dims[d].name, y->dims[d].name);
        }
    }
}

TEST(random_records_come_back_as_they_were)
{
    uint64_t dice = fresh_seed();
    int runs = 300;

    while (runs-- > 0) {
        struct world *w = world_make(&dice);
        size_t count = pick(&dice, RECORDS + 1), bytes;
        bool inside = pick(&dice, 2);
        void *data = encode(w, count, inside, &bytes);
        struct hr_buffer *owner = hr_buffer_wrap(data, bytes, free, data);
        struct hr_wire_block block;

        CHECK_OK(hr__wire_block_open(&block, data, bytes, owner,
                                     inside ? NULL : &w->schema, &w->arena, 0, NULL));
        hr_buffer_unref(owner);
        CHECK_EQ_INT(block.count, count);
        check_schema(&w->schema, block.schema);
        for (size_t i = 0; i < count; i++) {
            struct hr_value values[FIELDS];
            struct hr_record_id id = {0};

            CHECK_OK(hr__wire_block_get(&block, i, &id, values, NULL));
            CHECK(memcmp(&id, &w->records[i].id, sizeof id) == 0);
            for (int f = 0; f < FIELDS; f++) {
                check_same(&w->values[i][f], &values[f]);
                CHECK(values[f].shared && values[f].owner == owner);
                hr__value_clear(&values[f]);
            }
        }
        hr__wire_block_close(&block);
        world_free(w);
    }
}

TEST(equal_records_give_equal_bytes)
{
    uint64_t dice = fresh_seed();
    struct world *w;
    void *a, *b;
    size_t a_bytes, b_bytes;

    w = world_make(&dice);
    a = encode(w, RECORDS, true, &a_bytes);
    b = encode(w, RECORDS, true, &b_bytes);
    CHECK_EQ_INT(a_bytes, b_bytes);
    /* Gaps between payloads are not defined; all else is. */
    CHECK_BYTES(a, b, 64);
    free(a);
    free(b);
    world_free(w);
}

/* ---- a block made by hand ---- */

static void put(uint8_t **at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (uint8_t)(number >> (8 * i));
}

static void put_text(uint8_t **at, const char *text)
{
    memcpy(*at, text, strlen(text));
    *at += strlen(text);
}

/* The example of docs/formats/record.md: one record of a label and a caption. */
static size_t make_by_hand(uint8_t block[512])
{
    uint8_t *at = block + 64, *schema = at;
    struct hr_hash128 hash;
    size_t schema_bytes;

    memset(block, 0, 512);
    put(&at, 1, 8); /* records of an epoch */
    put(&at, 2, 4); /* fields */
    put(&at, 0, 4); /* batch rank */
    put(&at, 0, 1), put(&at, 4, 1), put(&at, 0, 1), put(&at, 3, 1), put(&at, 0, 1);
    put(&at, 0, 1), put(&at, 5, 1),
        put_text(&at, "label"); /* tensor of int64, no dims, a label */
    put(&at, 1, 1), put(&at, 0, 1), put(&at, 0, 1), put(&at, 2, 1), put(&at, 0, 1);
    put(&at, 0, 1), put(&at, 7, 1), put_text(&at, "caption"); /* bytes, text */
    schema_bytes = (size_t)(at - schema);
    CHECK_EQ_INT(schema_bytes, 42);
    hash = hr__hash128(schema, schema_bytes);
    at = block;
    put_text(&at, "HRRECORD");
    put(&at, 1, 4);   /* version */
    put(&at, 40, 4);  /* bytes of an identity */
    put(&at, 448, 8); /* bytes of the block */
    put(&at, 1, 4);   /* records */
    put(&at, 2, 4);   /* fields */
    put(&at, schema_bytes, 4);
    put(&at, 0, 4);
    put(&at, hash.low, 8);
    put(&at, hash.high, 8);
    at = block + 128; /* the identity */
    put(&at, 7, 8), put(&at, 3, 8), put(&at, 41, 8), put(&at, 2, 4), put(&at, 2, 4);
    at = block + 192; /* the column of labels */
    put(&at, (uint64_t)-5, 8);
    at = block + 256; /* the descriptor of the caption */
    put(&at, 384, 8), put(&at, 5, 8), put(&at, 0, 8), put(&at, HR_VALUE_BYTES, 1);
    at = block + 384;
    put_text(&at, "hello");
    return 448;
}

TEST(a_block_made_by_hand_is_read)
{
    _Alignas(64) uint8_t bytes[512];
    size_t count = make_by_hand(bytes);
    struct hr_value values[2];
    struct hr_wire_block block;
    struct hr_record_id id;
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK_OK(hr__wire_block_open(&block, bytes, count, NULL, NULL, &arena, 0, NULL));
    CHECK_EQ_INT(block.count, 1);
    CHECK_OK(hr__wire_block_get(&block, 0, &id, values, NULL));
    CHECK_EQ_INT(id.seed, 7);
    CHECK_EQ_INT(id.position, 3);
    CHECK_EQ_INT(id.index, 41);
    CHECK_EQ_INT(id.epoch, 2);
    CHECK_EQ_INT(*(const int64_t *)values[0].data, -5);
    CHECK_EQ_INT(values[1].bytes, 5);
    CHECK_BYTES(values[1].data, "hello", 5);
    CHECK((const uint8_t *)values[1].data == bytes + 384);
    hr__wire_block_close(&block);
    hr__arena_finish(&arena);
}

TEST(another_version_and_other_lengths_are_refused_with_words)
{
    _Alignas(64) uint8_t bytes[512];
    size_t count = make_by_hand(bytes);
    struct hr_wire_block block;
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_FORMAT,
              hr__wire_block_open(&block, bytes, count - 1, NULL, NULL, NULL, 0, &error));
    CHECK_HAS(error.message, "length");
    hr__wire_block_close(&block);
    bytes[8] = 2;
    CHECK_ERR(HR_ERR_UNSUPPORTED,
              hr__wire_block_open(&block, bytes, count, NULL, NULL, NULL, 0, &error));
    CHECK_HAS(error.message, "version 2");
    hr__wire_block_close(&block);
    bytes[0] = 'x';
    CHECK_ERR(HR_ERR_FORMAT,
              hr__wire_block_open(&block, bytes, count, NULL, NULL, NULL, 0, &error));
    CHECK_HAS(error.message, "HRRECORD");
    hr__wire_block_close(&block);
}

TEST(a_block_of_another_schema_is_refused)
{
    uint64_t dice = fresh_seed();
    struct world *w, *other;
    struct hr_wire_block block;
    size_t bytes;
    void *data;

    w = world_make(&dice);
    other = world_make(&dice);
    snprintf(other->schema.fields[0].name, 8, "else");
    data = encode(w, 3, false, &bytes);
    CHECK_ERR(HR_ERR_FORMAT,
              hr__wire_block_open(&block, data, bytes, NULL, NULL, &w->arena, 0, NULL));
    hr__wire_block_close(&block);
    CHECK_ERR(HR_ERR_FORMAT, hr__wire_block_open(&block, data, bytes, NULL,
                                                 &other->schema, &w->arena, 0, NULL));
    hr__wire_block_close(&block);
    free(data);
    world_free(w);
    world_free(other);
}

TEST(values_that_are_not_what_the_schema_says_are_refused)
{
    struct hr_schema schema = {0};
    struct hr_wire_writer writer;
    struct hr_value value = {0};
    struct hr_wire_record record = {.values = &value};
    struct hr_error error = {0};
    int64_t number = 3;
    void *to = aligned(4096);

    *hr__schema_put(&schema, "label") =
        (struct hr_field){.name = "label", .kind = HR_FIELD_TENSOR, .dtype = HR_I64};
    CHECK_OK(hr__wire_writer_init(&writer, &schema, true, NULL));
    hr__value_set_tensor(&value, HR_I32, 0, NULL, &number, NULL);
    CHECK_ERR(HR_ERR_TYPE, hr__wire_block_write(&writer, &record, 1, to, &error));
    CHECK_HAS(error.message, "'label'");
    value.kind = HR_VALUE_NONE;
    CHECK_ERR(HR_ERR_TYPE, hr__wire_block_write(&writer, &record, 1, to, &error));
    hr__wire_writer_finish(&writer);
    free(to);
}

/* ---- bytes that lie ---- */

static void read_all(const void *data, size_t bytes, struct hr_arena *arena)
{
    struct hr_value values[HR_SCHEMA_FIELDS_MAX];
    struct hr_wire_block block;
    struct hr_record_id id;
    uint64_t sum = 0;

    if (hr__wire_block_open(&block, data, bytes, NULL, NULL, arena, 10, NULL) == HR_OK) {
        for (size_t i = 0; i < block.count && i < 100; i++) {
            if (hr__wire_block_get(&block, i, &id, values, NULL) != HR_OK)
                continue;
            for (size_t f = 0; f < block.layout.count; f++)
                for (size_t k = 0; k < values[f].bytes; k++)
                    sum += ((const uint8_t *)values[f].data)[k];
        }
    }
    hr__wire_block_close(&block);
    CHECK(sum != 1);
}

/* A changed schema gets its hash right, so that the checks after the hash are reached. */
static void mend_hash(uint8_t *data, size_t bytes)
{
    struct hr_hash128 hash;
    uint32_t schema_bytes;

    memcpy(&schema_bytes, data + 32, 4);
    if (schema_bytes > bytes - 64)
        return;
    hash = hr__hash128(data + 64, schema_bytes);
    memcpy(data + 40, &hash.low, 8);
    memcpy(data + 48, &hash.high, 8);
}

TEST(changed_bytes_never_lead_outside_of_the_block)
{
    uint64_t dice = fresh_seed();
    int runs = 3000;

    while (runs > 0) {
        struct world *w = world_make(&dice);
        size_t bytes;
        uint8_t *whole = encode(w, 4, true, &bytes);

        for (int k = 0; k < 100; k++, runs--) {
            size_t cut = pick(&dice, 8) == 0 ? pick(&dice, (uint32_t)bytes) : bytes;
            uint8_t *copy = aligned(cut); /* exactly, so that ASan sees the end */
            uint64_t length = cut;

            memcpy(copy, whole, cut);
            for (uint32_t i = 0; cut > 64 && i < 1 + pick(&dice, 3); i++)
                copy[16 + pick(&dice, (uint32_t)cut - 16)] ^=
                    (uint8_t)(1 << pick(&dice, 8));
            if (cut > 64 && pick(&dice, 2)) {
                memcpy(copy + 16, &length, 8);
                mend_hash(copy, cut);
            }
            read_all(copy, cut, &w->arena);
            free(copy);
        }
        free(whole);
        world_free(w);
    }
}

/* Changes number `at` of the 8-byte numbers of the caption's descriptor. */
static enum hr_err read_with(size_t at, uint64_t number)
{
    _Alignas(64) uint8_t bytes[512];
    size_t count = make_by_hand(bytes);
    struct hr_value values[2];
    struct hr_wire_block block;
    struct hr_record_id id;
    struct hr_arena arena;
    enum hr_err code;

    hr__arena_init(&arena);
    memcpy(bytes + 256 + 8 * at, &number, 8);
    CHECK_OK(hr__wire_block_open(&block, bytes, count, NULL, NULL, &arena, 0, NULL));
    code = hr__wire_block_get(&block, 0, &id, values, NULL);
    hr__wire_block_close(&block);
    hr__arena_finish(&arena);
    return code;
}

TEST(places_and_sizes_are_checked_without_overflow)
{
    CHECK_OK(read_with(0, 384));
    CHECK_OK(read_with(1, 64));
    CHECK_ERR(HR_ERR_FORMAT, read_with(0, 385));
    CHECK_ERR(HR_ERR_FORMAT, read_with(0, 448));
    CHECK_ERR(HR_ERR_FORMAT, read_with(0, UINT64_MAX - 63));
    CHECK_ERR(HR_ERR_FORMAT, read_with(1, 65));
    CHECK_ERR(HR_ERR_FORMAT, read_with(1, UINT64_MAX));
    CHECK_ERR(HR_ERR_FORMAT, read_with(3, HR_VALUE_TENSOR));
    CHECK_ERR(HR_ERR_FORMAT, read_with(3, HR_VALUE_RAGGED | (uint64_t)1 << 40));
    CHECK_ERR(HR_ERR_FORMAT, read_with(3, HR_VALUE_DEFERRED));
    CHECK_ERR(HR_ERR_FORMAT, read_with(3, 5));
    CHECK_ERR(HR_ERR_FORMAT, read_with(3, HR_VALUE_BYTES | (uint64_t)1 << 48));
}

TEST(every_allocation_may_fail)
{
    uint64_t dice = fresh_seed();
    struct world *w;
    bool failed = true;

    w = world_make(&dice);
    for (uint64_t nth = 1; failed; nth++) {
        struct hr_wire_writer writer;
        struct hr_wire_block block = {0};
        struct hr_value values[FIELDS];
        struct hr_record_id id;
        size_t bytes = 0;
        void *data = NULL;
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr__wire_writer_init(&writer, &w->schema, true, NULL);
        if (code == HR_OK) {
            bytes = hr__wire_block_bytes(&writer, w->records, RECORDS);
            data = aligned(bytes);
            code = hr__wire_block_write(&writer, w->records, RECORDS, data, NULL);
        }
        hr__wire_writer_finish(&writer);
        if (code == HR_OK)
            code =
                hr__wire_block_open(&block, data, bytes, NULL, NULL, &w->arena, 0, NULL);
        if (code == HR_OK)
            code = hr__wire_block_get(&block, 0, &id, values, NULL);
        failed = hr__fault_calls() >= nth;
        hr__fault_arm(0, 0);
        CHECK_EQ_INT(code, failed ? HR_ERR_MEMORY : HR_OK);
        hr__wire_block_close(&block);
        free(data);
    }
    world_free(w);
}
