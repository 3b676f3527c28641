/*
 * ops/stack_test.c - joining records: stacked, padded, ragged, strings.
 */
#include "op/ragged.h"
#include "ops/stack.h"
#include "tests/support/check.h"

/* Three 1-d int16 tensors of lengths 2, 0 and 3, and their field. */
struct lists {
    struct hr_schema schema;
    int16_t data[3][3];
    struct hr_value values[3];
    struct hr_pool *pool;
};

static void lists_init(struct lists *l)
{
    static const int64_t lengths[3] = {2, 0, 3};
    struct hr_field *field;

    memset(l, 0, sizeof *l);
    l->schema.count = 1;
    field = &l->schema.fields[0];
    snprintf(field->name, sizeof field->name, "ids");
    field->dtype = HR_I16;
    field->ndim = 1;
    field->dims[0].size = HR_DIM_UNKNOWN;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            l->data[i][k] = (int16_t)(10 * i + k);
        hr__value_set_tensor(&l->values[i], HR_I16, 1, &lengths[i], l->data[i], NULL);
    }
    l->pool = hr_pool_create(0);
}

TEST(ragged_lists_keep_their_lengths)
{
    struct lists l;
    struct hr_value value = {0};
    struct hr_stack_spec spec = {.size = 3, .ragged = true};
    static const int16_t all[] = {0, 1, 20, 21, 22};

    lists_init(&l);
    CHECK_OK(
        hr__stack_join(l.pool, &l.schema, 3, NULL, l.values, 1, &spec, &value, NULL));
    CHECK_EQ_INT(value.kind, HR_VALUE_RAGGED);
    CHECK_EQ_INT(value.dtype, HR_I16);
    CHECK_EQ_INT(value.dims[0], 3);
    CHECK_EQ_INT(value.u.ragged->splits[0][1], 2);
    CHECK_EQ_INT(value.u.ragged->splits[0][2], 2);
    CHECK_EQ_INT(value.u.ragged->splits[0][3], 5);
    CHECK_BYTES(value.data, all, sizeof all);
    hr__value_clear(&value);
    hr_pool_unref(l.pool);
}

TEST(padded_lists_get_the_longest_length_rounded_up)
{
    struct lists l;
    struct hr_value value = {0};
    struct hr_stack_spec spec = {
        .size = 3, .pad = true, .pad_value = -1, .pad_multiple = 4};
    static const int16_t all[] = {0, 1, -1, -1, -1, -1, -1, -1, 20, 21, 22, -1};

    lists_init(&l);
    CHECK_OK(
        hr__stack_join(l.pool, &l.schema, 3, NULL, l.values, 1, &spec, &value, NULL));
    CHECK_EQ_INT(value.ndim, 2);
    CHECK_EQ_INT(value.dims[1], 4);
    CHECK_BYTES(value.data, all, sizeof all);
    hr__value_clear(&value);
    hr_pool_unref(l.pool);
}

TEST(lists_of_differing_length_are_not_stacked)
{
    struct lists l;
    struct hr_value value = {0};
    struct hr_stack_spec spec = {.size = 3};
    struct hr_error error = {0};

    lists_init(&l);
    CHECK_ERR(HR_ERR_SHAPE, hr__stack_join(l.pool, &l.schema, 3, NULL, l.values, 1, &spec,
                                           &value, &error));
    CHECK_HAS(error.message, "'ids' is [2] in one record and [0] in another");
    hr_pool_unref(l.pool);
}

TEST(floats_of_sixteen_bits_are_padded_with_the_right_bits)
{
    struct lists l;
    struct hr_value value = {0};
    struct hr_stack_spec spec = {
        .size = 3, .pad = true, .pad_value = 1.5, .pad_multiple = 1};

    lists_init(&l);
    for (int i = 0; i < 3; i++)
        l.values[i].dtype = HR_F16;
    CHECK_OK(
        hr__stack_join(l.pool, &l.schema, 3, NULL, l.values, 1, &spec, &value, NULL));
    CHECK_EQ_INT(((const uint16_t *)value.data)[3], 0x3e00);
    hr__value_clear(&value);
    for (int i = 0; i < 3; i++)
        l.values[i].dtype = HR_BF16;
    CHECK_OK(
        hr__stack_join(l.pool, &l.schema, 3, NULL, l.values, 1, &spec, &value, NULL));
    CHECK_EQ_INT(((const uint16_t *)value.data)[3], 0x3fc0);
    hr__value_clear(&value);
    hr_pool_unref(l.pool);
}
