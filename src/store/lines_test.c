/*
 * store/lines_test.c - the lines of text files, wherever blocks and files end.
 */
#include "core/rng.h"
#include "core/str.h"
#include "store/lines.h"
#include "store/store_memory.h"
#include "tests/support/check.h"

#include <stdlib.h>

static const char uri[] = "mem://lines_test.txt";

static struct hr_shard_index *open_index(const struct hr_str *text, bool skip_empty)
{
    struct hr_lines_scan scan = {skip_empty ? HR_LINES_SKIP_EMPTY : HR_LINES_SKIP_NONE};
    struct hr_shard_index *index;

    CHECK_OK(hr__memory_put(uri, hr__str_text(text), text->length, NULL));
    CHECK_OK(hr__shard_index_open(uri, ".txt", hr__lines_scan, &scan, NULL, NULL, &index,
                                  NULL));
    return index;
}

/* Line by line, without a search for bytes. */
static void check_lines(const struct hr_str *text, bool skip_empty)
{
    struct hr_shard_index *index = open_index(text, skip_empty);
    size_t begin = hr__bom_bytes(hr__str_text(text), text->length);
    uint64_t line = 0;

    for (size_t at = begin; at < text->length; at++) {
        size_t end = at;
        struct hr_shard_place place;

        if (text->text[at] != '\n' && at + 1 < text->length)
            continue;
        end += text->text[at] != '\n';
        end -= end > begin && text->text[end - 1] == '\r';
        if (end > begin || !skip_empty) {
            CHECK(line < hr__shard_index_count(index));
            hr__shard_index_place(index, line++, &place);
            CHECK_EQ_INT(place.offset, begin);
            CHECK_EQ_INT(place.offset + place.bytes, at + 1);
            CHECK_EQ_INT(hr__line_length(text->text + begin, place.bytes), end - begin);
        }
        begin = at + 1;
    }
    CHECK_EQ_INT(line, hr__shard_index_count(index));
    hr__shard_index_close(index);
}

static void check_text(const char *bytes, size_t length)
{
    struct hr_str text;

    hr__str_init(&text);
    hr__str_add_bytes(&text, bytes, length);
    check_lines(&text, false);
    check_lines(&text, true);
    hr__str_finish(&text);
}

TEST(each_line_is_a_record_whatever_its_ending)
{
    static const char *const texts[] = {
        "",
        "\n",
        "\r\n",
        "\r",
        "a",
        "a\n",
        "a\r\n",
        "a\n\r",
        "a\r\r\n",
        "\n\na\n\n",
        "\r\n\r\n",
        "\xef\xbb\xbf",
        "\xef\xbb\xbf\n",
        "a\r",
        "\xef\xbb\xbf\r\na",
        "\xef\xbb",
        "\xff\xfe\n\x80",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_text(texts[i], strlen(texts[i]));
    check_text("\0\n\0\0", 4);
}

/* Endings, marks and empty lines, more often than in any text. */
static void draw_text(struct hr_rng *rng, size_t bytes, struct hr_str *text)
{
    static const char *const words[] = {"\n",   "\r", "\r\n", "\xef\xbb\xbf",
                                        "word", " ",  "\n\n"};
    uint64_t long_ones = hr__rng_below(rng, 3);

    while (text->length < bytes) {
        hr__str_add(text, words[hr__rng_below(rng, sizeof words / sizeof words[0])]);
        for (uint64_t left = long_ones * hr__rng_below(rng, 200); left > 0; left--)
            hr__str_add(text, "x");
    }
}

TEST(lines_that_cross_blocks_are_found)
{
    struct hr_str text;
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int i = 0; i < 30; i++) {
        hr__str_init(&text);
        draw_text(&rng, hr__rng_below(&rng, 3 * HR_WINDOW_MAX), &text);
        check_lines(&text, false);
        check_lines(&text, true);
        hr__str_finish(&text);
    }
    for (int shift = -3; shift <= 3; shift++) { /* an ending on each side of the border */
        hr__str_init(&text);
        for (size_t k = 0; k < HR_WINDOW_MAX - 2 + (size_t)(shift + 3) - 3; k++)
            hr__str_add_bytes(&text, "x", 1);
        hr__str_add(&text, "\r\n\r\nlast");
        check_lines(&text, false);
        check_lines(&text, true);
        hr__str_finish(&text);
    }
}

/* More than 24 bits of length do not fit an entry of the index. */
TEST(a_line_of_20_megabytes_is_one_record)
{
    struct hr_shard_index *index;
    struct hr_shard_place place;
    struct hr_str text;
    size_t bytes = (size_t)20 << 20;
    char *filled;

    hr__str_init(&text);
    hr__str_add(&text, "first\n");
    filled = calloc(1, bytes);
    CHECK(filled != NULL);
    memset(filled, 'x', bytes);
    hr__str_add_bytes(&text, filled, bytes);
    hr__str_add(&text, "\nlast");
    free(filled);
    index = open_index(&text, false);
    CHECK_EQ_INT(hr__shard_index_count(index), 3);
    hr__shard_index_place(index, 1, &place);
    CHECK_EQ_INT(place.offset, 6);
    CHECK_EQ_INT(place.bytes, bytes + 1);
    hr__shard_index_place(index, 2, &place);
    CHECK_EQ_INT(place.offset, bytes + 7);
    CHECK_EQ_INT(place.bytes, 4);
    hr__shard_index_close(index);
    hr__str_finish(&text);
}

TEST(the_identity_of_lines_is_their_contents_and_where_files_end)
{
    static const char *const texts[][2] = {
        {"a\nb",    "c\n" },
        {"a\nb\n",  "c\n" },
        {"a\nbc\n", ""    },
        {"a\n",     "bc\n"},
        {"a\r\nb",  "c\n" },
    };
    struct hr_hash128 seen[5];

    for (int i = 0; i < 5; i++) {
        struct hr_lines_scan scan = {0};
        struct hr_shard_index *index;

        CHECK_OK(
            hr__memory_put("mem://two/1.txt", texts[i][0], strlen(texts[i][0]), NULL));
        CHECK_OK(
            hr__memory_put("mem://two/2.txt", texts[i][1], strlen(texts[i][1]), NULL));
        CHECK_OK(hr__shard_index_open("mem://two", ".txt", hr__lines_scan, &scan, NULL,
                                      NULL, &index, NULL));
        seen[i] = hr__shard_index_identity(index);
        for (int k = 0; k < i; k++)
            CHECK(!hr__hash_equal(seen[i], seen[k]));
        hr__shard_index_close(index);
    }
}

TEST(compressed_files_are_refused_and_text_that_begins_like_them_is_not)
{
    struct hr_lines_scan scan = {0};
    struct hr_error error = {0};
    struct hr_shard_index *index;

    CHECK_OK(hr__memory_put(uri, "\x1f\x8b\x08\0\0", 5, NULL));
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__shard_index_open(uri, ".txt", hr__lines_scan, &scan,
                                                       NULL, NULL, &index, &error));
    CHECK_HAS(error.message, "lines_test.txt is compressed");
    CHECK_OK(hr__memory_put(uri, "\x28\xb5\x2f\xfd\0", 5, NULL));
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__shard_index_open(uri, ".txt", hr__lines_scan, &scan,
                                                       NULL, NULL, &index, &error));
    check_text("x^2 + 1\n", 8); /* zlib begins like this, too */
}
