/*
 * core/perm_test.c - permutations: bijective, dependent on the key, uniform, and pinned
 * to the order that epochs have today.
 */
#include "core/alloc.h"
#include "core/perm.h"
#include "core/rng.h"
#include "tests/support/check.h"

static uint16_t tables[3][HR_PERM_TABLE];

static void
init(struct hr_perm *perm, uint64_t n, uint64_t seed, uint32_t epoch, uint16_t *table)
{
    struct hr_rng rng;

    hr__rng_init(&rng, seed, epoch, 0);
    hr__perm_init(perm, n, &rng, table);
}

static void
map_run(const struct hr_perm *perm, uint64_t at, size_t count, uint64_t *ret_to)
{
    for (size_t i = 0; i < count; i++)
        ret_to[i] = hr__perm_map(perm, at + i);
}

static void check_bijection(uint64_t n, uint64_t seed)
{
    unsigned char *seen = hr__calloc(n + 1, 1);
    struct hr_perm perm;

    CHECK(seen != NULL);
    init(&perm, n, seed, 3, tables[0]);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t to = hr__perm_map(&perm, i);

        CHECK(to < n && !seen[to]);
        seen[to] = 1;
    }
    hr__free(seen);
}

TEST(every_index_is_hit_once)
{
    static const uint64_t sizes[] = {0,    1,      2,      3,       7,
                                     100,  4095,   4096,   4097,    8191,
                                     8192, 100000, 131073, 1281167, 1 << 20};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_bijection(sizes[i], i);
}

TEST(huge_ranges_stay_inside)
{
    static const uint64_t sizes[] = {((uint64_t)1 << 40) + 1, (uint64_t)1 << 62,
                                     (uint64_t)1 << 63, ((uint64_t)1 << 63) - 1, 5000};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t n = sizes[i], to[131];
        struct hr_perm perm;

        init(&perm, n, 9, 9, tables[0]);
        map_run(&perm, n - 131, 131, to);
        for (uint64_t j = 0; j < 131; j++) {
            CHECK(to[j] < n);
            for (uint64_t k = 0; k < j; k++)
                CHECK(to[k] != to[j]);
        }
    }
}

TEST(seed_and_epoch_both_matter)
{
    uint64_t a[64], b[64];

    for (uint64_t n = 100; n <= 10000; n *= 100) {
        struct hr_perm x, y, z;

        init(&x, n, 1, 1, tables[0]);
        init(&y, n, 1, 2, tables[1]);
        init(&z, n, (uint64_t)1 << 32 | 1, 1, tables[2]);
        map_run(&x, 0, 64, a);
        map_run(&y, 0, 64, b);
        CHECK(memcmp(a, b, sizeof a) != 0);
        map_run(&z, 0, 64, b);
        CHECK(memcmp(a, b, sizeof a) != 0);
    }
}

#define BINS 50

static double chi_z(const unsigned *bins, unsigned count, double draws)
{
    double expected = draws / count, chi = 0;

    for (unsigned i = 0; i < count; i++)
        chi += ((double)bins[i] - expected) * ((double)bins[i] - expected) / expected;
    return (chi - (count - 1)) / sqrt(2.0 * (count - 1));
}

/* Over many keys: where one position maps to, and the difference between two neighbours
 * (modulo n). Too few rounds fail the second with z above 30. */
static void check_uniform(uint64_t n, uint64_t at)
{
    unsigned place[BINS] = {0}, difference[BINS] = {0};
    const unsigned keys = 40000;

    for (uint64_t key = 0; key < keys; key++) {
        struct hr_perm perm;
        uint64_t to[2];

        init(&perm, n, key, 0, tables[0]);
        map_run(&perm, at, 2, to);
        place[to[0] * BINS / n]++;
        difference[(to[1] + n - to[0]) % n * BINS / n]++;
    }
    CHECK(chi_z(place, BINS, keys) < 4);
    CHECK(chi_z(difference, BINS, keys) < 4);
}

TEST(positions_and_differences_are_uniform_over_keys)
{
    check_uniform(4099, 0);
    check_uniform(5000, 4998);
    check_uniform(10000, 1234);
    check_uniform(1281167, 640000);
}

TEST(all_orders_of_a_few_come_about_equally_often)
{
    unsigned seen[24] = {0};

    for (uint64_t key = 0; key < 24000; key++) {
        struct hr_perm perm;
        uint64_t to[4];
        unsigned rank = 0;

        init(&perm, 4, key, 0, tables[0]);
        map_run(&perm, 0, 4, to);
        for (int i = 0; i < 4; i++) {
            unsigned smaller = 0;

            for (int j = i + 1; j < 4; j++)
                smaller += to[j] < to[i];
            rank = rank * (unsigned)(4 - i) + smaller;
        }
        seen[rank]++;
    }
    CHECK(chi_z(seen, 24, 24000) < 4);
}

TEST(the_order_is_pinned)
{
    struct hr_perm perm;

    /* A change here changes every user's epochs: raise the version of order.shuffle with
     * it. */
    init(&perm, 1281167, 42, 7, tables[0]);
    CHECK_EQ_INT(hr__perm_map(&perm, 0), 394404);
    CHECK_EQ_INT(hr__perm_map(&perm, 1281166), 283474);
    init(&perm, 1000, 42, 7, tables[0]);
    CHECK_EQ_INT(hr__perm_map(&perm, 0), 617);
}
