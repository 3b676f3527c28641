/*
 * core/hash_test.c - known answers; hashing in pieces equals hashing at once.
 */
#include "core/alloc.h"
#include "core/hash.h"
#include "core/rng.h"
#include "tests/support/check.h"
#include "tests/support/isas.h"

TEST(known_answers)
{
    char text[HR_HASH_TEXT_BYTES];

    /* XXH128 of the empty input, as printed by `xxh128sum`. */
    hr__hash_text(hr__hash128("", 0), text);
    CHECK_EQ_STR(text, "99aa06d3014798d86001c324468d497f");
    CHECK(hr__hash64("", 0, 0) == 0x2D06800538D394C2);
    CHECK(hr__hash64("a", 1, 0) != hr__hash64("a", 1, 1));
}

TEST(a_hash_reads_back_from_its_text)
{
    struct hr_hash128 hash = hr__hash128("a", 1), read = {0, 0};
    char text[HR_HASH_TEXT_BYTES + 1] = "";

    hr__hash_text(hash, text);
    CHECK(hr__hash_parse(text, &read) && hr__hash_equal(hash, read));
    text[32] = '0';
    CHECK(!hr__hash_parse(text, &read));
    text[31] = '\0';
    CHECK(!hr__hash_parse(text, &read));
    CHECK(!hr__hash_parse("", &read));
    CHECK(!hr__hash_parse("99AA06D3014798D86001C324468D497F", &read));
}

TEST(pieces_hash_like_the_whole)
{
    struct hr_hasher *hasher = hr__hasher_create();
    char data[5000];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 31);
    for (size_t at = 0, step = 0; at < sizeof data; at += step, step++)
        hr__hasher_add(hasher, data + at,
                       step < sizeof data - at ? step : sizeof data - at);
    CHECK(hr__hash_equal(hr__hasher_value(hasher), hr__hash128(data, sizeof data)));
    hr__hasher_destroy(hasher);
    hr__hasher_destroy(NULL);
    hr__fault_arm(HR_FAULT_ALLOC, 1);
    CHECK(hr__hasher_create() == NULL);
    hr__fault_arm(0, 0);
}

TEST(every_instruction_set_gives_the_same)
{
    static unsigned char data[3000];
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)hr__rng_u32(&rng);
    for (int round = 0; round < 1000; round++) {
        size_t from = hr__rng_below(&rng, 64);
        size_t bytes = hr__rng_below(&rng, sizeof data - from);
        uint64_t seed = round % 8 == 0 ? 0 : hr__rng_u32(&rng), wanted;
        size_t first = hr__rng_below(&rng, bytes + 1);
        size_t second = hr__rng_below(&rng, bytes - first + 1);
        const struct iovec parts[] = {
            {data + from,                  first                 },
            {data + from + first,          second                },
            {data + from + first + second, bytes - first - second},
        };
        struct hr_hash128 wide;

        hr__isa_limit(HR_ISA_C);
        wanted = hr__hash64(data + from, bytes, seed);
        wide = hr__hash128(data + from, bytes);
        for (int i = 0; i < TEST_ISAS; i++) {
            hr__isa_limit(test_isas[i]);
            CHECK(hr__hash64(data + from, bytes, seed) == wanted);
            CHECK(hr__hash64_parts(parts, 3, seed) == wanted);
            CHECK(hr__hash_equal(hr__hash128(data + from, bytes), wide));
        }
    }
}
