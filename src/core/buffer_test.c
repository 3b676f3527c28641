/*
 * core/buffer_test.c - owned and wrapped memory, views.
 */
#include "core/alloc.h"
#include "headrace/buffer.h"
#include "tests/support/check.h"

static void count_release(void *user)
{
    ++*(int *)user;
}

TEST(a_buffer_is_aligned_and_writable_until_shared)
{
    static const size_t sizes[] = {0, 1, 64, 100000, 2 << 20, (2 << 20) + 1};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct hr_buffer *buffer = hr_buffer_create(sizes[i]);

        CHECK(buffer != NULL);
        CHECK_EQ_INT((uintptr_t)hr_buffer_data(buffer) % HR_BUFFER_ALIGN, 0);
        CHECK_EQ_INT(hr_buffer_bytes(buffer), sizes[i]);
        memset(hr_buffer_data(buffer), 1, sizes[i]);
        CHECK(hr_buffer_is_writable(buffer));
        CHECK(hr_buffer_ref(buffer) == buffer);
        CHECK(!hr_buffer_is_writable(buffer));
        hr_buffer_unref(buffer);
        CHECK(hr_buffer_is_writable(buffer));
        hr_buffer_unref(buffer);
    }
    hr_buffer_unref(NULL);
}

TEST(foreign_memory_is_released_once_by_the_last_reference)
{
    char data[10];
    int released = 0;
    struct hr_buffer *buffer = hr_buffer_wrap(data, 10, count_release, &released);

    hr_buffer_ref(buffer);
    hr_buffer_unref(buffer);
    CHECK_EQ_INT(released, 0);
    hr_buffer_unref(buffer);
    CHECK_EQ_INT(released, 1);
    buffer = hr_buffer_wrap(data, 10, NULL, NULL);
    hr_buffer_unref(buffer);
}

TEST(a_failed_wrap_releases_nothing)
{
    int released = 0;
    char data[1];

    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK(hr_buffer_wrap(data, 1, count_release, &released) == NULL);
    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK(hr_buffer_create(10) == NULL);
    hr__fault_arm(HR_FAULT_ALLOC, 2);
    CHECK(hr_buffer_create(4 << 20) == NULL);
    hr__fault_arm(0, 0);
    CHECK_EQ_INT(released, 0);
}

TEST(a_view_keeps_its_parent_alive_and_must_lie_inside)
{
    int released = 0;
    char data[100];
    struct hr_buffer *root = hr_buffer_wrap(data, 100, count_release, &released);
    struct hr_buffer *view = hr_buffer_view(root, 10, 80);
    struct hr_buffer *inner = hr_buffer_view(view, 5, 75);

    CHECK(hr_buffer_data(inner) == data + 15);
    CHECK_EQ_INT(hr_buffer_bytes(inner), 75);
    CHECK(hr_buffer_view(view, 5, 76) == NULL);
    CHECK(hr_buffer_view(view, 81, 0) == NULL);
    CHECK(hr_buffer_view(root, 1, SIZE_MAX) == NULL);
    hr_buffer_unref(root);
    CHECK(!hr_buffer_is_writable(inner));
    hr_buffer_unref(view);
    CHECK(hr_buffer_is_writable(inner));
    CHECK_EQ_INT(released, 0);
    hr_buffer_unref(inner);
    CHECK_EQ_INT(released, 1);
}
