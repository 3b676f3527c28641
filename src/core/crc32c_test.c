/*
 * core/crc32c_test.c - known values, and all instruction sets against each other.
 */
#include "core/crc32c.h"
#include "core/rng.h"
#include "tests/support/check.h"
#include "tests/support/isas.h"

/* RFC 3720, B.4 */
TEST(known_values)
{
    unsigned char bytes[32];

    for (int i = 0; i < TEST_ISAS; i++) {
        hr__isa_limit(test_isas[i]);
        CHECK(hr__crc32c(0, "123456789", 9) == 0xe3069283);
        memset(bytes, 0, sizeof bytes);
        CHECK(hr__crc32c(0, bytes, 32) == 0x8a9136aa);
        memset(bytes, 255, sizeof bytes);
        CHECK(hr__crc32c(0, bytes, 32) == 0x62a8ab43);
        for (int k = 0; k < 32; k++)
            bytes[k] = (unsigned char)k;
        CHECK(hr__crc32c(0, bytes, 32) == 0x46dd794e);
        CHECK(hr__crc32c(7, bytes, 0) == 7);
    }
    hr__isa_limit(test_isas[TEST_ISAS - 1]);
}

TEST(pieces_give_the_sum_of_the_whole)
{
    static unsigned char bytes[3000];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)hr__rng_u32(&rng);
    for (int round = 0; round < 300; round++) {
        size_t from = hr__rng_below(&rng, 64);
        size_t length = hr__rng_below(&rng, sizeof bytes - from);
        size_t cut = hr__rng_below(&rng, length + 1);
        uint32_t whole;

        hr__isa_limit(HR_ISA_C);
        whole = hr__crc32c(0, bytes + from, length);
        hr__isa_limit(test_isas[TEST_ISAS - 1]);
        CHECK(hr__crc32c(0, bytes + from, length) == whole);
        CHECK(hr__crc32c(hr__crc32c(0, bytes + from, cut), bytes + from + cut,
                         length - cut) == whole);
    }
}
