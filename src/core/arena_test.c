/*
 * core/arena_test.c - rounds without allocations, memory freed after a peak, poisoning.
 */
#include "core/alloc.h"
#include "core/arena.h"
#include "core/poison.h"
#include "tests/support/check.h"

#include <stdint.h>
#include <sys/mman.h>

static void use(struct hr_arena *arena, size_t pieces, size_t bytes)
{
    for (size_t i = 0; i < pieces; i++) {
        char *piece = hr__arena_alloc(arena, bytes + i % 7);

        CHECK(piece != NULL);
        CHECK_EQ_INT((uintptr_t)piece % (bytes + i % 7 < 64 ? 16 : 64), 0);
        memset(piece, (int)i, bytes + i % 7);
    }
}

TEST(the_second_equal_round_allocates_nothing)
{
    struct hr_arena arena;
    uint64_t before;

    hr__arena_init(&arena);
    for (int round = 0; round < 2; round++) {
        use(&arena, 100, 5000);
        use(&arena, 100, 3);
        hr__arena_reset(&arena);
    }
    before = hr__alloc_count();
    for (int round = 0; round < 100; round++) {
        use(&arena, 100, 5000);
        use(&arena, 100, 3);
        hr__arena_reset(&arena);
    }
    CHECK_EQ_INT(hr__alloc_count(), before);
    hr__arena_finish(&arena);
}

TEST(memory_of_a_peak_is_freed)
{
    struct hr_arena arena;

    hr__arena_init(&arena);
    use(&arena, 100, 1 << 20);
    hr__arena_reset(&arena);
    for (int round = 0; round < 600; round++) {
        use(&arena, 10, 1000);
        hr__arena_reset(&arena);
    }
    CHECK(arena.end - arena.at < 1 << 20);
    hr__arena_finish(&arena);
}

/* Pages of the piece that are in memory. */
static size_t resident(const char *piece, size_t bytes)
{
    uintptr_t from = ((uintptr_t)piece + 4095) & ~(uintptr_t)4095;
    size_t count = ((uintptr_t)piece + bytes - from) / 4096, pages = 0;
    unsigned char *in = hr__malloc(count);

    CHECK(in != NULL && mincore((void *)from, count * 4096, in) == 0);
    for (size_t i = 0; i < count; i++)
        pages += in[i] & 1;
    hr__free(in);
    return pages;
}

TEST(a_block_that_is_too_small_keeps_only_what_the_round_uses_of_it)
{
    const size_t bytes = 8 << 20, used = 1 << 20;
    struct hr_arena arena;
    char *piece;

    hr__arena_init(&arena);
    piece = hr__arena_alloc(&arena, bytes);
    CHECK(piece != NULL);
    memset(piece, 1, bytes);
    CHECK(resident(piece, bytes) >= bytes / 4096 - 1);
    hr__arena_reset(&arena);
    CHECK(hr__arena_alloc(&arena, used) == piece);
    memset(piece, 2, used);
    CHECK(hr__arena_alloc(&arena, bytes) != NULL);
    CHECK_EQ_INT(resident(piece + used + 4096, bytes - used - 8192), 0);
    for (size_t i = 0; i < used; i++)
        CHECK_EQ_INT(piece[i], 2);
    hr__arena_finish(&arena);
}

TEST(a_small_piece_after_a_large_one_takes_little)
{
    struct hr_arena arena;

    hr__arena_init(&arena);
    CHECK(hr__arena_alloc(&arena, 32 << 20) != NULL);
    CHECK(hr__arena_alloc(&arena, 100) != NULL);
    CHECK(arena.end - arena.at <= 4 << 20);
    hr__arena_finish(&arena);
}

TEST(pieces_do_not_overlap_and_zalloc_is_zero)
{
    struct hr_arena arena;
    unsigned char *piece[1000];

    hr__arena_init(&arena);
    for (int i = 0; i < 1000; i++) {
        piece[i] = hr__arena_alloc(&arena, (size_t)i);
        CHECK(piece[i] != NULL);
        memset(piece[i], i & 255, (size_t)i);
    }
    for (int i = 0; i < 1000; i++) {
        for (int j = 0; j < i; j++)
            CHECK_EQ_INT(piece[i][j], i & 255);
    }
    hr__arena_reset(&arena);
    piece[0] = hr__arena_zalloc(&arena, 100000);
    for (int i = 0; i < 100000; i++)
        CHECK_EQ_INT(piece[0][i], 0);
    CHECK(hr__arena_alloc(&arena, SIZE_MAX) == NULL);
    hr__arena_finish(&arena);
}

TEST(a_failed_allocation_leaves_the_arena_usable)
{
    struct hr_arena arena;

    hr__arena_init(&arena);
    use(&arena, 1, 100);
    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK(hr__arena_alloc(&arena, 1 << 20) == NULL);
    hr__fault_arm(0, 0);
    use(&arena, 10, 10000);
    hr__arena_finish(&arena);
    hr__arena_finish(&arena);
}

#ifdef HR_HAS_ASAN
TEST(pieces_are_poisoned_after_a_reset_and_beyond_their_end)
{
    struct hr_arena arena;
    char *piece;

    hr__arena_init(&arena);
    piece = hr__arena_alloc(&arena, 100);
    CHECK(!__asan_address_is_poisoned(piece + 99));
    CHECK(__asan_address_is_poisoned(piece + 100 + 4));
    hr__arena_reset(&arena);
    CHECK(__asan_address_is_poisoned(piece));
    hr__arena_finish(&arena);
}
#endif
