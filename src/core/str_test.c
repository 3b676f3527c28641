/*
 * core/str_test.c - growing strings, and numbers, names and bytes as text.
 */
#include "core/alloc.h"
#include "core/rng.h"
#include "core/str.h"
#include "tests/support/check.h"

#include <locale.h>
#include <stdlib.h>

TEST(a_string_grows_is_taken_and_is_empty_again)
{
    struct hr_str str;
    char *taken;

    hr__str_init(&str);
    CHECK_EQ_STR(hr__str_text(&str), "");
    hr__str_add(&str, "a");
    hr__str_addf(&str, "%d-%s", 12, "x");
    hr__str_add_bytes(&str, "\0z", 2);
    CHECK_EQ_INT(str.length, 7);
    CHECK_BYTES(hr__str_text(&str), "a12-x\0z", 8);
    taken = hr__str_take(&str);
    CHECK_BYTES(taken, "a12-x\0z", 8);
    hr__free(taken);
    CHECK_EQ_STR(hr__str_text(&str), "");
    for (int i = 0; i < 1000; i++)
        hr__str_addf(&str, "%d,", i);
    CHECK_EQ_INT(str.length, 10 * 2 + 90 * 3 + 900 * 4);
    hr__str_clear(&str);
    CHECK_EQ_INT(str.length, 0);
    hr__str_finish(&str);
    taken = hr__str_take(&str);
    CHECK_EQ_STR(taken, "");
    hr__free(taken);
}

TEST(a_failed_append_marks_the_string_and_take_gives_nothing)
{
    struct hr_str str;

    for (uint64_t nth = 1; nth <= 2; nth++) {
        hr__str_init(&str);
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        hr__str_add(&str, "0123456789");
        for (int i = 0; i < 20; i++)
            hr__str_addf(&str, "%d", 1000000 + i);
        hr__fault_arm(0, 0);
        hr__str_add(&str, "more");
        CHECK(!hr__str_ok(&str));
        CHECK(hr__str_take(&str) == NULL);
        hr__str_finish(&str);
    }
}

static const char *json(const char *bytes, size_t count)
{
    static char text[200];
    struct hr_str str;

    hr__str_init(&str);
    hr__str_add_json(&str, bytes, count);
    CHECK(str.length < sizeof text);
    snprintf(text, sizeof text, "%s", hr__str_text(&str));
    hr__str_finish(&str);
    return text;
}

TEST(json_strings_are_escaped_and_bad_bytes_replaced)
{
    CHECK_EQ_STR(json("a\"\\\n\t\x01\0", 7), "\"a\\\"\\\\\\n\\t\\u0001\\u0000\"");
    CHECK_EQ_STR(json("\xC3\xA9\xF0\x9F\x98\x80", 6), "\"\xC3\xA9\xF0\x9F\x98\x80\"");
    CHECK_EQ_STR(json("\xFF\xC3", 2), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
    CHECK_EQ_STR(json("\xED\xA0\x80", 3), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    CHECK_EQ_STR(json("\xE2\x80\xA8\xC2\x85\x7F", 6), "\"\\u2028\\u0085\\u007f\"");
}

TEST(utf8_lengths_refuse_overlong_and_out_of_range)
{
    CHECK_EQ_INT(hr__utf8_length("a", 1), 1);
    CHECK_EQ_INT(hr__utf8_length("\xC0\x80", 2), 0);
    CHECK_EQ_INT(hr__utf8_length("\xE0\x80\x80", 3), 0);
    CHECK_EQ_INT(hr__utf8_length("\xF4\x8F\xBF\xBF", 4), 4);
    CHECK_EQ_INT(hr__utf8_length("\xF4\x90\x80\x80", 4), 0);
    CHECK_EQ_INT(hr__utf8_length("\xF0\x9F\x98\x80", 3), 0);
}

static const char *number(double value)
{
    static char text[64];
    struct hr_str str;

    hr__str_init(&str);
    hr__str_add_double(&str, value);
    snprintf(text, sizeof text, "%s", hr__str_text(&str));
    hr__str_finish(&str);
    return text;
}

TEST(doubles_are_short_and_read_back_equal)
{
    struct hr_rng rng;

    CHECK_EQ_STR(number(0.1), "0.1");
    CHECK_EQ_STR(number(1e-5), "1e-05");
    CHECK_EQ_STR(number(3), "3");
    CHECK_EQ_STR(number(-0.0), "-0");
    CHECK_EQ_STR(number(1.0 / 3), "0.3333333333333333");
    CHECK_EQ_STR(number(-(double)INFINITY), "-inf");
    hr__rng_init(&rng, 3, 0, 0);
    for (int i = 0; i < 2000; i++) {
        union {
            uint64_t bits;
            double value;
        } x = {.bits = hr__rng_u64(&rng)};
        double back;

        if (!isfinite(x.value))
            continue;
        CHECK(hr__double_parse(number(x.value), strlen(number(x.value)), &back));
        CHECK(back == x.value);
    }
}

TEST(numbers_do_not_follow_the_locale)
{
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    double value = 0;
    bool found = false;

    for (int i = 0; i < 3 && !found; i++)
        found = setlocale(LC_NUMERIC, commas[i]) != NULL;
    if (!found)
        printf("# skipped: no locale with a decimal comma\n");
    CHECK_EQ_STR(number(0.5), "0.5");
    CHECK(hr__double_parse("0.25", 4, &value));
    CHECK(!hr__double_parse("0,25", 4, &value));
    setlocale(LC_NUMERIC, "C");
    CHECK(value == 0.25);
}

TEST(double_parse_takes_whole_decimal_texts_only)
{
    static const char *const bad[] = {"",    "x",  "1x", "0x10", "nan",
                                      "inf", "1e", ".",  " 1"};
    double value = 7;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!hr__double_parse(bad[i], strlen(bad[i]), &value));
    CHECK(value == 7);
    CHECK(hr__double_parse("-1.5e3x", 6, &value) && value == -1500);
    CHECK(hr__double_parse("1e999", 5, &value) && isinf(value));
}

TEST(the_nearest_name_is_near)
{
    static const char *const names[] = {"image.crop", "image.flip", "size", "p", "std"};

    CHECK_EQ_STR(hr__nearest("image.corp", names, 5), "image.crop");
    CHECK_EQ_STR(hr__nearest("Size", names, 5), "size");
    CHECK_EQ_STR(hr__nearest("szie", names, 5), "size");
    CHECK(hr__nearest("q", names, 5) == NULL);
    CHECK(hr__nearest("batch.stack", names, 5) == NULL);
    CHECK(hr__nearest("", names, 5) == NULL);
    CHECK(hr__nearest("x", names, 0) == NULL);
}

TEST(bytes_are_written_in_decimal_units)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } known[] = {
        {0,          "0 B"    },
        {999,        "999 B"  },
        {1000,       "1 kB"   },
        {1500,       "1.5 kB" },
        {999949,     "1 MB"   },
        {1000000,    "1 MB"   },
        {1234567,    "1.2 MB" },
        {123456789,  "123 MB" },
        {1500000000, "1.5 GB" },
        {UINT64_MAX, "18.4 EB"},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char text[32];

        CHECK_EQ_STR(hr__bytes_text(text, sizeof text, known[i].bytes), known[i].text);
    }
}

TEST(bytes_are_read_in_both_units)
{
    static const char *const bad[] = {
        "", "k", "-1", "1.5.2", "1 X", "1kk", "99999999999T", "1e3", ".5"};
    uint64_t bytes = 0;

    CHECK(hr__bytes_parse("64", &bytes) && bytes == 64);
    CHECK(hr__bytes_parse("64k", &bytes) && bytes == 64000);
    CHECK(hr__bytes_parse("1.5MB", &bytes) && bytes == 1500000);
    CHECK(hr__bytes_parse("2GiB", &bytes) && bytes == (uint64_t)2 << 30);
    CHECK(hr__bytes_parse("1 Ti", &bytes) && bytes == (uint64_t)1 << 40);
    CHECK(hr__bytes_parse("18446744073709551615", &bytes) == false ||
          bytes == UINT64_MAX);
    CHECK(hr__bytes_parse("9007199254740993", &bytes) && bytes == 9007199254740993);
    bytes = 5;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!hr__bytes_parse(bad[i], &bytes));
    CHECK_EQ_INT(bytes, 5);
}
