/*
 * store/csv_scan_test.c - where the records of CSV files lie: as the parser sees them, in
 * pieces of any size, and after damage.
 */
#include "core/alloc.h"
#include "core/rng.h"
#include "core/str.h"
#include "store/csv_scan.h"
#include "store/store_memory.h"
#include "tests/support/check.h"

static const char uri[] = "mem://csv_scan_test.csv";
static struct hr_error error;

static struct hr_shard_index *
open_index(const char *text, size_t bytes, struct hr_csv_scan *scan)
{
    struct hr_shard_index *index;

    CHECK_OK(hr__memory_put(uri, text, bytes, NULL));
    if (hr__shard_index_open(uri, ".csv", hr__csv_scan, scan, NULL, NULL, &index,
                             &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return index;
}

/* Cells with all that quotes are for. */
static void draw_cell(struct hr_rng *rng, char delimiter, struct hr_str *out)
{
    static const char *const parts[] = {"\n", "\r\n", "\"\"", ",",     ";",
                                        "x",  " ",    "word", "\"\"\n"};
    bool quoted = hr__rng_below(rng, 3) == 0;

    hr__str_add(out, hr__rng_below(rng, 8) == 0 ? " " : "");
    hr__str_add(out, quoted ? "\"" : "");
    for (uint64_t left = hr__rng_below(rng, 5); left > 0; left--) {
        const char *part = parts[hr__rng_below(rng, sizeof parts / sizeof parts[0])];

        if (quoted || (strpbrk(part, "\n\r\"") == NULL && part[0] != delimiter))
            hr__str_add(out, part);
    }
    if (hr__rng_below(rng, 2000) == 0)
        for (uint64_t left = hr__rng_below(rng, 60000); left > 0; left--)
            hr__str_add(out, "0123456789");
    hr__str_add(out, quoted ? "\"" : "");
}

static void draw_file(struct hr_rng *rng, char delimiter, struct hr_str *out)
{
    uint64_t rows = hr__rng_below(rng, 3000);

    hr__str_add(out, hr__rng_below(rng, 2) ? "\xef\xbb\xbf" : "");
    for (uint64_t i = 0; i < rows; i++) {
        for (uint64_t left = hr__rng_below(rng, 4); left > 0; left--) {
            draw_cell(rng, delimiter, out);
            hr__str_add_bytes(out, &delimiter, 1);
        }
        draw_cell(rng, delimiter, out);
        hr__str_add(out, hr__rng_below(rng, 2) ? "\n" : "\r\n");
    }
    if (hr__rng_below(rng, 2))
        draw_cell(rng, delimiter, out);
}

/* The parser over the whole text gives the records that the index has. */
static void check_file(const struct hr_str *text, char delimiter)
{
    struct hr_csv_scan scan = {
        .delimiter = delimiter, .header = HR_CSV_NO, .bytes_max = 1 << 20};
    struct hr_shard_index *index = open_index(hr__str_text(text), text->length, &scan);
    size_t bom = text->length >= 3 && text->text[0] == '\xef' ? 3 : 0;
    struct hr_csv csv = {.path = uri, .error = &error, .delimiter = delimiter};
    uint64_t row = 0;

    csv.at = hr__str_text(text) + bom;
    csv.end = hr__str_text(text) + text->length;
    for (;;) {
        struct hr_shard_place place;
        uint64_t from, line;

        if (hr__csv_next(&csv) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s", error.message);
        if (csv.count == 0)
            break;
        CHECK(row < hr__shard_index_count(index));
        hr__shard_index_place(index, row, &place);
        CHECK_EQ_INT(place.offset + place.bytes, (size_t)(csv.at - text->text));
        CHECK(csv.cells[0].bytes == 0 || csv.cells[0].text < text->text ||
              csv.cells[0].text > csv.end ||
              csv.cells[0].text >= text->text + place.offset);
        hr__shard_index_line(index, row, &from, &line);
        for (; row % 61 == 0 && from < place.offset; from++)
            line += text->text[from] == '\n';
        if (row % 61 == 0)
            CHECK_EQ_INT(line, csv.cells[0].line);
        row++;
    }
    CHECK_EQ_INT(row, hr__shard_index_count(index));
    hr__csv_finish(&csv);
    hr__csv_scan_finish(&scan);
    hr__shard_index_close(index);
}

TEST(records_lie_where_the_parser_sees_them)
{
    static const char delimiters[] = {',', ';', '\t', '|'};
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int i = 0; i < 16; i++) {
        char delimiter = delimiters[i % 4];
        struct hr_str text;

        hr__str_init(&text);
        draw_file(&rng, delimiter, &text);
        check_file(&text, delimiter);
        hr__str_finish(&text);
    }
}

/* Every beginning of a record is too little, or is all of it. */
TEST(a_record_is_found_once_all_of_it_is_there)
{
    static const char *const records[] = {
        "a,b\n",       "a,\"b\nc\",d\r\n", "\"a\"\"\"\n",
        " \"x\" ,y\n", "\"\r\n\n\"\r\n",   "a\"b,c\n",
    };
    size_t lines;

    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        size_t bytes = strlen(records[i]);

        for (size_t have = 0; have < bytes; have++)
            CHECK_EQ_INT(hr__csv_record(records[i], have, false, ',', &lines), 0);
        CHECK_EQ_INT(hr__csv_record(records[i], bytes, false, ',', &lines), bytes);
    }
}

static void check_rows(const char *text, size_t limit, const size_t *ends, size_t count)
{
    struct hr_csv_scan scan = {.header = HR_CSV_NO, .bytes_max = limit};
    struct hr_shard_index *index = open_index(text, strlen(text), &scan);
    struct hr_shard_place place;

    CHECK_EQ_INT(hr__shard_index_count(index), count);
    for (size_t i = 0; i < count; i++) {
        hr__shard_index_place(index, i, &place);
        CHECK_EQ_INT(place.offset + place.bytes, ends[i]);
    }
    hr__csv_scan_finish(&scan);
    hr__shard_index_close(index);
}

TEST(a_damaged_quote_costs_its_line)
{
    check_rows("a,\"b\nc,d\ne,\"f\"\n", 100, (size_t[]){5, 9, 15},
               3); /* closed inside a cell */
    check_rows("a,\"b\nc,d\ne,f", 100, (size_t[]){5, 9, 12}, 3); /* never closed */
    check_rows("a,\"b\"x\nc,d\n", 100, (size_t[]){7, 11}, 2);
    check_rows("a,b\"\nc,d\n", 100, (size_t[]){5, 9}, 2);
}

/* A line that is longer than the limit, and than any block, is one record. */
TEST(a_quote_that_is_not_closed_within_the_limit_costs_its_line)
{
    size_t bytes = 3 * HR_WINDOW_MAX;
    char *text = hr__malloc(bytes + 1);

    CHECK(text != NULL);
    memset(text, 'x', bytes);
    text[0] = '"';
    text[bytes - 11] = '\n';
    text[bytes - 6] = '\n';
    text[bytes] = '\0';
    check_rows(text, 100, (size_t[]){bytes - 10, bytes - 5, bytes}, 3);
    text[10] = '\n';
    check_rows(text, 100, (size_t[]){11, bytes - 10, bytes - 5, bytes}, 4);
    hr__free(text);
}

static enum hr_err scan_two(const char *first, const char *second,
                            enum hr_csv_header header, size_t *ret_records)
{
    struct hr_csv_scan scan = {.header = header, .bytes_max = 1 << 20};
    struct hr_shard_index *index;
    enum hr_err code;

    CHECK_OK(hr__memory_put("mem://csvs/1.csv", first, strlen(first), NULL));
    CHECK_OK(hr__memory_put("mem://csvs/2.csv", second, strlen(second), NULL));
    code = hr__shard_index_open("mem://csvs", ".csv", hr__csv_scan, &scan, NULL, NULL,
                                &index, &error);
    if (code == HR_OK) {
        *ret_records = hr__shard_index_count(index);
        hr__shard_index_close(index);
    }
    hr__csv_scan_finish(&scan);
    return code;
}

TEST(every_file_has_the_header_of_the_first)
{
    size_t records = 0;

    CHECK_OK(scan_two("a,b\n1,2\n", "\n\"a\", b\r\n3,4\n5,6", HR_CSV_AUTO, &records));
    CHECK_EQ_INT(records, 3);
    CHECK_OK(scan_two("1,2\n", "3,4\n", HR_CSV_AUTO, &records));
    CHECK_EQ_INT(records, 2);
    CHECK_OK(scan_two("1,2\n", "1,2\n5,6\n", HR_CSV_YES, &records));
    CHECK_EQ_INT(records, 1);
    CHECK_OK(scan_two("a,b\n", "c,d\n", HR_CSV_NO, &records));
    CHECK_EQ_INT(records, 2);
    CHECK_OK(scan_two("a,b\n1,2\n", "", HR_CSV_AUTO, &records));
    CHECK_EQ_INT(records, 1);
    CHECK_ERR(HR_ERR_FORMAT, scan_two("a,b\n1,2\n", "\nb,a\n", HR_CSV_AUTO, &records));
    CHECK_HAS(error.message, "2.csv:2: the header differs");
    CHECK_ERR(HR_ERR_FORMAT, scan_two("a,a\n", "", HR_CSV_AUTO, &records));
    CHECK_HAS(error.message, "1.csv:1:3: two columns are called \"a\"");
}
