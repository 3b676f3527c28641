/*
 * core/alloc_test.c - fault injection, allocation counts, aligned pages.
 */
#include "core/alloc.h"
#include "tests/support/check.h"

TEST(the_nth_call_of_an_armed_kind_fails_and_no_other)
{
    void *a, *b, *c;

    hr__fault_arm(HR_FAULT_ALLOC, 2);
    a = hr__malloc(8);
    b = hr__malloc(8);
    CHECK(!hr__fault(HR_FAULT_OPEN));
    c = hr__malloc(8);
    CHECK_EQ_INT(hr__fault_calls(), 3);
    hr__fault_arm(0, 0);
    CHECK(a != NULL && b == NULL && c != NULL);
    hr__free(a);
    hr__free(c);
    CHECK(!hr__fault(HR_FAULT_ALLOC));
}

TEST(a_failed_realloc_leaves_the_old_block)
{
    char *block = hr__strdup("kept");

    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK(hr__realloc(block, 1000) == NULL);
    hr__fault_arm(0, 0);
    CHECK_EQ_STR(block, "kept");
    hr__free(block);
}

TEST(allocations_are_counted_and_empty_ones_are_not_null)
{
    uint64_t before = hr__alloc_count();
    void *block = hr__malloc(0), *aligned = hr__aligned_alloc(64, 0);

    CHECK(block != NULL && aligned != NULL);
    CHECK_EQ_INT(hr__alloc_count() - before, 2);
    hr__free(block);
    hr__free(aligned);
}

TEST(bytes_that_a_thread_has_allocated_are_counted)
{
    int64_t before = hr__alloc_live();
    char *block = hr__calloc(10, 10000), *pages = hr__pages_alloc(HR_PAGES_MIN);

    CHECK(block != NULL && pages != NULL);
    CHECK(hr__alloc_live() - before >= 100000 + (int64_t)HR_PAGES_MIN);
    block = hr__realloc(block, 300000);
    CHECK(hr__alloc_live() - before >= 300000 + (int64_t)HR_PAGES_MIN);
    CHECK(hr__alloc_live() - before < 400000 + (int64_t)HR_PAGES_MIN);
    hr__free(block);
    hr__pages_free(pages, HR_PAGES_MIN);
    CHECK(hr__alloc_live() == before);
}

TEST(strndup_stops_at_nul_and_at_length)
{
    char *a = hr__strndup("abcdef", 3), *b = hr__strndup("ab", 10);

    CHECK_EQ_STR(a, "abc");
    CHECK_EQ_STR(b, "ab");
    hr__free(a);
    hr__free(b);
}

TEST(pages_are_aligned_to_two_megabytes_and_zero)
{
    size_t bytes = 3 * HR_PAGES_MIN + 5;
    char *pages = hr__pages_alloc(bytes);

    CHECK(pages != NULL);
    CHECK_EQ_INT((uintptr_t)pages % HR_PAGES_MIN, 0);
    CHECK(pages[0] == 0 && pages[bytes - 1] == 0);
    memset(pages, 1, bytes);
    hr__pages_free(pages, bytes);
    CHECK(hr__pages_alloc(SIZE_MAX - 5) == NULL);
}
