/*
 * op/value_test.c - values, schemas and workers: what the engine and the ops lean on.
 */
#include "op/value.h"

#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/rng.h"
#include "op/op.h"
#include "op/thread.h"
#include "tests/support/check.h"

TEST(a_set_tensor_is_contiguous_and_owns_its_reference)
{
    struct hr_buffer *buffer = hr_buffer_create(24);
    struct hr_value value = {0}, other = {0};
    const int64_t dims[] = {2, 3};

    hr__value_set_tensor(&value, HR_F32, 2, dims, hr_buffer_data(buffer), buffer);
    CHECK_EQ_INT(value.bytes, 24);
    CHECK_EQ_INT(value.strides[0], 12);
    CHECK(hr__value_contiguous(&value));
    CHECK_EQ_INT(hr__value_count(&value), 6);
    CHECK(hr_buffer_is_writable(buffer));
    hr__value_alias(&other, &value);
    CHECK(value.shared && other.shared);
    CHECK(!hr_buffer_is_writable(buffer));
    hr__value_clear(&value);
    CHECK_EQ_INT(value.kind, HR_VALUE_NONE);
    CHECK(hr_buffer_is_writable(buffer));
    hr__value_clear(&other);
}

TEST(strided_tensors_are_copied_in_order)
{
    int32_t data[24], out[24];
    struct hr_value value = {.kind = HR_VALUE_TENSOR, .dtype = HR_I32, .data = data};

    for (int i = 0; i < 24; i++)
        data[i] = i;
    value.ndim = 3; /* data as [4, 3, 2], seen as its transpose [2, 3, 4] */
    value.dims[0] = 2, value.dims[1] = 3, value.dims[2] = 4;
    value.strides[0] = 4, value.strides[1] = 8, value.strides[2] = 24;
    CHECK(!hr__value_contiguous(&value));
    hr__value_copy(&value, out);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 3; b++)
            for (int c = 0; c < 4; c++)
                CHECK_EQ_INT(out[(a * 3 + b) * 4 + c], c * 6 + b * 2 + a);
}

/* Element by element, by its strides. */
static void
copy_slowly(const struct hr_value *value, int dim, const char *from, char **to)
{
    size_t item = hr_dtype_size((enum hr_dtype)value->dtype);

    if (dim == value->ndim) {
        memcpy(*to, from, item);
        *to += item;
        return;
    }
    for (int64_t i = 0; i < value->dims[dim]; i++)
        copy_slowly(value, dim + 1, from + i * value->strides[dim], to);
}

/* Dims of 1 to 5, as of memory in any order of dims; some have gaps, or are repeated, or
 * run backwards. */
static void draw_tensor(struct hr_rng *rng, char *memory, struct hr_value *ret)
{
    static const enum hr_dtype dtypes[] = {HR_U8, HR_F16, HR_F32, HR_F64};
    int order[4], ndim = (int)hr__rng_below(rng, 5);
    int64_t stride, back = 0;

    *ret = (struct hr_value){.kind = HR_VALUE_TENSOR, .ndim = (uint8_t)ndim};
    ret->dtype = (uint8_t)dtypes[hr__rng_below(rng, 4)];
    stride = (int64_t)hr_dtype_size((enum hr_dtype)ret->dtype);
    for (int i = 0; i < ndim; i++) {
        int k = (int)hr__rng_below(rng, (uint32_t)i + 1);

        order[i] = order[k];
        order[k] = i;
    }
    for (int i = 0; i < ndim; i++) {
        int d = order[i];

        ret->dims[d] = 1 + (int64_t)hr__rng_below(rng, 5);
        ret->strides[d] = hr__rng_below(rng, 5) == 0 ? 0 : stride;
        if (hr__rng_below(rng, 5) == 0) {
            back += (ret->dims[d] - 1) * ret->strides[d];
            ret->strides[d] = -ret->strides[d];
        }
        stride *= ret->dims[d] + (hr__rng_below(rng, 5) == 0);
    }
    ret->data = memory + back;
}

TEST(any_tensor_is_copied_as_element_by_element)
{
    static char memory[6 * 6 * 6 * 6 * 8], slow[5 * 5 * 5 * 5 * 8], fast[sizeof slow];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (char)hr__rng_below(&rng, 256);
    for (int i = 0; i < 20000; i++) {
        struct hr_value value;
        char *end = slow;

        draw_tensor(&rng, memory, &value);
        copy_slowly(&value, 0, value.data, &end);
        memset(fast, 0, sizeof fast);
        hr__value_copy(&value, fast);
        CHECK(memcmp(slow, fast, (size_t)(end - slow)) == 0);
        CHECK(end == slow + sizeof slow || fast[end - slow] == 0);
    }
}

TEST(rows_with_gaps_and_negative_strides_are_copied)
{
    uint8_t data[] = {0, 1, 2, 3, 4, 5, 6, 7}, out[4];
    struct hr_value value = {
        .kind = HR_VALUE_TENSOR,
        .dtype = HR_U8,
        .ndim = 2,
        .data = data + 4,
        .dims = {2,  2},
        .strides = {-4, 1}
    };

    CHECK(!hr__value_contiguous(&value));
    CHECK_OK(hr__value_force(NULL, &value, out, NULL));
    CHECK_BYTES(out, ((uint8_t[]){4, 5, 0, 1}), 4);
}

TEST(empty_and_scalar_tensors_are_contiguous)
{
    const int64_t dims[] = {0, 3};
    struct hr_value value = {0};
    int64_t scalar = 5, out = 0;

    hr__value_set_tensor(&value, HR_F32, 2, dims, NULL, NULL);
    CHECK(hr__value_contiguous(&value));
    hr__value_copy(&value, NULL);
    hr__value_set_tensor(&value, HR_I64, 0, NULL, &scalar, NULL);
    CHECK_EQ_INT(hr__value_count(&value), 1);
    hr__value_copy(&value, &out);
    CHECK_EQ_INT(out, 5);
}

TEST(schemas_find_put_and_remove_by_name)
{
    static struct hr_schema schema;
    char name[8];

    hr__schema_put(&schema, "a")->dtype = HR_U8;
    hr__schema_put(&schema, "b")->dtype = HR_F32;
    CHECK_EQ_INT(hr__schema_put(&schema, "a")->dtype, HR_DTYPE_NONE);
    CHECK_EQ_INT(schema.count, 2);
    hr__schema_put(&schema, schema.fields[1].name)->dtype = HR_I16;
    CHECK_EQ_STR(schema.fields[1].name, "b");
    hr__schema_remove(&schema, 0);
    CHECK_EQ_STR(schema.fields[0].name, "b");
    CHECK(hr__schema_find(&schema, "a") == NULL);
    for (int i = 1; i < HR_SCHEMA_FIELDS_MAX; i++) {
        snprintf(name, sizeof name, "f%d", i);
        CHECK(hr__schema_put(&schema, name) != NULL);
    }
    CHECK(hr__schema_put(&schema, "more") == NULL);
    CHECK(hr__schema_put(&schema, "f1") != NULL);
}

TEST(sizes_of_images_are_found_in_every_layout_and_batch)
{
    struct hr_field f = {.kind = HR_FIELD_TENSOR,
                         .dtype = HR_F32,
                         .ndim = 4,
                         .meaning = HR_MEANING_IMAGE_UNIT,
                         .layout = HR_LAYOUT_CHW};
    char text[64];

    hr__dim_unknown(&f.dims[0], "batch");
    hr__dim_set(&f.dims[1], 3);
    hr__dim_set(&f.dims[2], 10);
    hr__dim_set(&f.dims[3], 20);
    CHECK(hr__field_is_image(&f));
    CHECK_EQ_INT(hr__field_height(&f)->size, 10);
    CHECK_EQ_INT(hr__field_width(&f)->size, 20);
    CHECK_EQ_INT(hr__field_channels(&f)->size, 3);
    CHECK_EQ_STR(hr__field_text(&f, text, sizeof text), "float32 [batch, 3, 10, 20]");
    CHECK_EQ_INT(hr__field_bytes(&f), -1);
    hr__dim_set(&f.dims[0], 2);
    CHECK_EQ_INT(hr__field_bytes(&f), 2 * 3 * 10 * 20 * 4);
    f.dims[0].size = INT64_MAX / 2;
    CHECK_EQ_INT(hr__field_bytes(&f), -1);
    f.layout = HR_LAYOUT_HWC;
    CHECK_EQ_INT(hr__field_channels(&f)->size, 20);
    f.ndim = 0;
    CHECK(!hr__field_is_image(&f));
    CHECK_EQ_STR(hr__field_text(&f, text, sizeof text), "float32");
}

static int made, destroyed;

static enum hr_err make_object(void **ret_object, struct hr_error *reterr)
{
    if (hr__fault(HR_FAULT_OPEN))
        return hr__fail(reterr, HR_ERR_MEMORY, "no object");
    made++;
    *ret_object = &made;
    return HR_OK;
}

static void destroy_object(void *object)
{
    destroyed += object == &made;
}

TEST(worker_objects_are_made_once_and_destroyed_with_it)
{
    static const struct hr_thread_class first = {"a", make_object, destroy_object};
    static const struct hr_thread_class second = {"b", make_object, destroy_object};
    struct hr_thread thread = {0};
    struct hr_error error = {0};
    void *object;

    hr__fault_arm(HR_FAULT_OPEN, 1);
    CHECK_ERR(HR_ERR_MEMORY, hr__thread_object(&thread, &first, &object, &error));
    hr__fault_arm(0, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(hr__thread_object(&thread, &first, &object, &error));
        CHECK_OK(hr__thread_object(&thread, &second, &object, &error));
    }
    CHECK_EQ_INT(made, 2);
    hr__thread_objects_destroy(&thread);
    CHECK_EQ_INT(destroyed, 2);
    CHECK(thread.objects == NULL);
}

TEST(time_is_charged_to_the_running_node)
{
    struct hr_charge charges[3] = {{0}};
    struct hr_thread thread = {.charge_node = 0};
    uint64_t sum = 0, begin;

    hr__thread_charge(&thread, 2); /* not timed: nothing happens */
    CHECK_EQ_INT(thread.charge_node, 0);
    begin = hr__cpu_thread_ns();
    hr__thread_timing_begin(&thread, charges, 0, true);
    while (hr__cpu_thread_ns() < begin + 1000000)
        continue;
    hr__thread_charge(&thread, 2);
    CHECK(charges[0].ticks > 0);
    CHECK(charges[0].cpu_ns >= 900000);
    hr__thread_charge(&thread, 1);
    CHECK_EQ_INT(charges[1].ticks, 0);
    CHECK_EQ_INT(thread.charge_node, 1);
    hr__thread_timing_end(&thread);
    CHECK(thread.charges == NULL);
    for (int i = 0; i < 3; i++)
        sum += charges[i].cpu_ns;
    CHECK(sum <= hr__cpu_thread_ns() - begin);
}
