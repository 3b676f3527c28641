/*
 * codec/text_test.c - lower case, white space and normal forms. python/tests/test_text.py
 * compares every character with Python's.
 */
#include "codec/text.h"
#include "core/rng.h"
#include "tests/support/check.h"

#include <stdlib.h>

static const char *normal(const char *text, size_t bytes, enum hr_normal_form form)
{
    size_t count = hr__text_decomposed((const uint8_t *)text, bytes, form);
    uint32_t *codes = malloc((2 * count + 1) * sizeof *codes);
    static uint8_t out[4096];

    CHECK(4 * count < sizeof out);
    out[hr__text_normalize((const uint8_t *)text, bytes, form, codes, count, out)] = 0;
    free(codes);
    return (const char *)out;
}

#define NORMAL(form, text, want) CHECK_EQ_STR(normal(text, strlen(text), form), want)

TEST(normal_forms_of_letters_with_marks)
{
    NORMAL(HR_NFD, "\u00e9\u1ed9", "e\u0301o\u0323\u0302");
    NORMAL(HR_NFC, "e\u0301o\u0302\u0323", "\u00e9\u1ed9");
    NORMAL(HR_NFC, "\u0301e", "\u0301e");
    NORMAL(HR_NFC, "a\u0323\u0301\u0302", "\u1ea1\u0301\u0302");
    NORMAL(HR_NFC, "\u0344", "\u0308\u0301"); /* never composed again */
    NORMAL(HR_NFKC, "\ufb01\u2460\uff21\u3000", "fi1A ");
    NORMAL(HR_NFC, "\ufb01", "\ufb01");
    NORMAL(HR_NFKD, "\u1e9b\u0323", "s\u0323\u0307");
    NORMAL(HR_NFKC, "\u1e9b\u0323", "\u1e69");
    NORMAL(HR_NFC, "", "");
}

TEST(normal_forms_of_syllables)
{
    NORMAL(HR_NFD, "\uac00\uac01\ud7a3",
           "\u1100\u1161\u1100\u1161\u11a8\u1112\u1175\u11c2");
    NORMAL(HR_NFC, "\u1100\u1161\u11a8", "\uac01");
    NORMAL(HR_NFC, "\uac00\u11a8", "\uac01");
    NORMAL(HR_NFC, "\uac00\u11a7", "\uac00\u11a7");
    NORMAL(HR_NFC, "\u1100\u1161\u0301", "\uac00\u0301");
}

TEST(bytes_that_are_no_characters_stay)
{
    NORMAL(HR_NFC,
           "\xff"
           "e\u0301\x80\u0301",
           "\xff\u00e9\x80\u0301");
    NORMAL(HR_NFKD, "\xed\xa0\x80\xc3", "\xed\xa0\x80\xc3");
}

/* The run of marks takes linear time, and keeps the order of equal classes. */
TEST(long_runs_of_marks_are_sorted)
{
    size_t marks = 200000, bytes = 1 + 4 * marks, made;
    uint8_t *text = malloc(bytes), *out = malloc(4 * (2 * marks + 1));
    uint32_t *codes = malloc(2 * (2 * marks + 1) * sizeof *codes);

    text[0] = 'q';
    for (size_t i = 0; i < marks; i++)
        memcpy(text + 1 + 4 * i, "\u0301\u0323", 4); /* above, below */
    made = hr__text_normalize(text, bytes, HR_NFD, codes,
                              hr__text_decomposed(text, bytes, HR_NFD), out);
    CHECK_EQ_INT(made, bytes);
    for (size_t i = 0; i < marks; i++) {
        CHECK_BYTES(out + 1 + 2 * i, "\u0323", 2);
        CHECK_BYTES(out + 1 + 2 * marks + 2 * i, "\u0301", 2);
    }
    free(text);
    free(out);
    free(codes);
}

TEST(what_looks_normal_is)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int i = 0; i < 2000; i++) {
        char text[64] = {0};
        uint64_t length = hr__rng_below(&rng, sizeof text - 1);

        for (uint64_t k = 0; k < length; k++)
            text[k] =
                (char)(1 + hr__rng_below(&rng, hr__rng_below(&rng, 2) ? 127 : 0xCB));
        for (int form = HR_NFC; form <= HR_NFKD; form++)
            if (hr__text_is_normal((uint8_t *)text, length, (enum hr_normal_form)form))
                CHECK_EQ_STR(normal(text, length, (enum hr_normal_form)form), text);
    }
}

static void check_lower(const char *text, const char *want)
{
    uint8_t out[100];
    size_t bytes = strlen(text), made = hr__text_lower((const uint8_t *)text, bytes, out);

    CHECK(made <= HR_TEXT_LOWER_ROOM(bytes));
    CHECK_EQ_INT(made, strlen(want));
    CHECK_BYTES(out, want, made);
}

TEST(lower_case_of_characters)
{
    check_lower("", "");
    check_lower("Az@[", "az@[");
    check_lower("\u00c9\u0394\u03a3\u0416\U00010400",
                "\u00e9\u03b4\u03c3\u0436\U00010428");
    check_lower("\u0130", "i\u0307");
    check_lower("\u023a\u023e", "\u2c65\u2c66"); /* longer than before */
    check_lower("\u1e9e\u212a", "\u00dfk");
    check_lower("\xc3\xff\xc9Q", "\xc3\xff\xc9q");
}

static void check_white(const char *text, size_t start, size_t end)
{
    CHECK_EQ_INT(hr__text_white_start((const uint8_t *)text, strlen(text)), start);
    CHECK_EQ_INT(hr__text_white_end((const uint8_t *)text, strlen(text)), end);
}

TEST(white_space_at_both_ends)
{
    check_white("", 0, 0);
    check_white(" \t\r\n", 4, 4);
    check_white("\u3000a b\u00a0\u2028", 3, 5);
    check_white("\u200bx\ufeff", 0, 0);
    check_white("\x80 \x80", 0, 0);
    check_white("\xe3\x80 \x80\x80", 0, 0);
    CHECK_EQ_INT(hr__text_until_white((const uint8_t *)"ab\u3000c", 6), 2);
    CHECK_EQ_INT(hr__text_until_white((const uint8_t *)"ab", 2), 2);
}
