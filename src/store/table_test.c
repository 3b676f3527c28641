/*
 * store/table_test.c - CSV and JSON lines as tables: syntax, types, and what is refused.
 */
#include "core/alloc.h"
#include "core/rng.h"
#include "core/str.h"
#include "store/table.h"
#include "tests/support/check.h"
#include <stdlib.h>

static struct hr_table table;

static struct hr_table *parse(const char *name, const char *text)
{
    struct hr_error error = {0};

    hr__table_finish(&table);
    if (hr__table_parse(text, strlen(text), name, "path", &table, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return &table;
}

static const char *cell(int column, uint64_t row)
{
    static char text[256];
    size_t bytes;
    const char *at = hr__table_text(&table.columns[column], row, &bytes);

    snprintf(text, sizeof text, "%.*s", (int)bytes, at);
    return text;
}

static struct hr_table_column *use(const char *name)
{
    int at = hr__table_find(&table, name);

    CHECK(at >= 0);
    CHECK_OK(hr__table_use(&table, at, NULL));
    return &table.columns[at];
}

TEST(csv_is_read_as_rfc_4180_says)
{
    parse("a.csv", "\xef\xbb\xbfpath,label\r\n"
                   "\"a,\"\"b\"\"\n.jpg\",\"x\r\ny\"\r\n"
                   "\n"
                   "  c d\t , \" e \"  \n"
                   "\"\",f");
    CHECK(table.header);
    CHECK_EQ_INT(table.rows, 3);
    CHECK_EQ_STR(cell(0, 0), "a,\"b\"\n.jpg");
    CHECK_EQ_STR(cell(1, 0), "x\r\ny");
    CHECK_EQ_STR(cell(0, 1), "c d");
    CHECK_EQ_STR(cell(1, 1), " e ");
    CHECK_EQ_STR(cell(0, 2), "");
    CHECK_EQ_STR(cell(1, 2), "f");
    CHECK_EQ_INT(table.lines[0], 2);
    CHECK_EQ_INT(table.lines[1], 6);
    CHECK_EQ_INT(table.lines[2], 7);
}

TEST(a_first_line_without_numbers_and_file_names_is_a_header)
{
    CHECK(parse("a.csv", "filename,class\na,b\n")->header);
    CHECK(!parse("a.csv", "a.jpg,cat\n")->header);
    CHECK(!parse("a.csv", "a/b,cat\n")->header);
    CHECK(!parse("a.csv", "a,7\n")->header);
    CHECK(parse("a.csv", "PATH,0,1.5\na,1,2\n")->header);
    CHECK_EQ_INT(table.rows, 1);
    CHECK_EQ_INT(parse("a.csv", "")->rows, 0);
    CHECK_EQ_INT(table.column_count, 0);
}

TEST(types_follow_from_whole_columns)
{
    const double *floats;
    const int64_t *ints;

    parse("a.csv", "path,i,f,t,big,word,zip\n"
                   "x,-9223372036854775808,1,7,1,nan,007\n"
                   "y,+5,2.5e-1,b,9223372036854775808,none,1\n"
                   "z,9223372036854775807,-.5,9,3,NA,2\n");
    ints = use("i")->numbers;
    CHECK(ints[0] == INT64_MIN && ints[1] == 5 && ints[2] == INT64_MAX);
    floats = use("f")->numbers;
    CHECK(floats[0] == 1 && floats[1] == 0.25 && floats[2] == -0.5);
    CHECK_EQ_INT(use("t")->type, HR_TABLE_TEXT);
    CHECK_EQ_INT(use("big")->type, HR_TABLE_TEXT);
    CHECK_EQ_STR(cell(4, 1), "9223372036854775808");
    CHECK_EQ_INT(use("word")->type, HR_TABLE_TEXT);
    CHECK_EQ_INT(use("zip")->type, HR_TABLE_INT);
    CHECK_OK(hr__table_use_text(&table, 0, NULL));
}

TEST(both_json_parsers_give_the_same)
{
    static const char *const plain[] = {
        "{\"path\": \"a\", \"n\": 12, \"f\": -0.5e1, \"b\": true}",
        "{\"path\":\"b\",\"n\":-3,\"f\":2,\"b\":false}",
        "\t{ \"b\":true , \"path\":\"c\",\"f\":0.1,\"n\":999999999999999999 }\r",
    };
    static const char *const escaped[] = {
        "{\"p\\u0061th\": \"a\", \"n\": 12, \"f\": -0.5e1, \"b\": true}",
        "{\"path\":\"\\u0062\",\"n\":-3,\"f\":2,\"b\":false}",
        "{\"\\u0062\":true,\"path\":\"c\",\"f\":0.1,\"n\":999999999999999999}",
    };
    struct hr_str text[2] = {{0}, {0}};
    int64_t ints[2][3];
    double floats[2][3];
    bool bools[2][3];

    for (int i = 0; i < 3; i++) {
        hr__str_addf(&text[0], "%s\n", plain[i]);
        hr__str_addf(&text[1], "%s\n\n", escaped[i]);
    }
    for (int k = 0; k < 2; k++) {
        parse(k == 0 ? "a.jsonl" : "no ending", hr__str_text(&text[k]));
        hr__str_finish(&text[k]);
        CHECK_EQ_INT(table.column_count, 4);
        CHECK_EQ_STR(cell(0, 2), "c");
        memcpy(ints[k], use("n")->numbers, sizeof ints[k]);
        memcpy(floats[k], use("f")->numbers, sizeof floats[k]);
        memcpy(bools[k], use("b")->numbers, sizeof bools[k]);
    }
    CHECK(memcmp(ints[0], ints[1], sizeof ints[0]) == 0);
    CHECK(memcmp(floats[0], floats[1], sizeof floats[0]) == 0);
    CHECK(memcmp(bools[0], bools[1], sizeof bools[0]) == 0);
    CHECK(ints[0][2] == 999999999999999999 && floats[0][0] == -5 && !bools[0][1]);
}

TEST(rows_are_removed_from_all_columns)
{
    static const bool keep[] = {false, true, false, true};
    const bool *bools;

    parse("a.jsonl", "{\"path\":\"a\",\"n\":1,\"b\":true,\"x\":null}\n"
                     "{\"path\":\"bb\",\"n\":2,\"b\":false,\"x\":1}\n"
                     "{\"path\":\"c\",\"n\":3,\"b\":true,\"x\":1}\n"
                     "{\"path\":\"dd\",\"n\":4,\"b\":true,\"x\":1}\n");
    CHECK_OK(hr__table_use_text(&table, 0, NULL));
    CHECK_EQ_INT(((const int64_t *)use("n")->numbers)[3], 4);
    bools = use("b")->numbers;
    hr__table_drop_unused(&table);
    hr__table_keep(&table, keep);
    CHECK_EQ_INT(table.rows, 2);
    CHECK_EQ_STR(cell(0, 0), "bb");
    CHECK_EQ_STR(cell(0, 1), "dd");
    CHECK_EQ_INT(((const int64_t *)use("n")->numbers)[1], 4);
    CHECK(!bools[0] && bools[1]);
    CHECK_EQ_INT(table.lines[1], 4);
}

/* The error of reading `text`, or of using its column "label". */
static void check_wrong(const char *name, const char *text, size_t bytes,
                        const char *place, const char *what)
{
    struct hr_error error = {0};
    enum hr_err err;
    char begin[64];

    hr__table_finish(&table);
    err = hr__table_parse(text, bytes, name, "path", &table, &error);
    if (err == HR_OK)
        err = hr__table_use(&table, hr__table_find(&table, "label"), &error);
    CHECK_EQ_INT(err, HR_ERR_FORMAT);
    snprintf(begin, sizeof begin, "%s:%s: ", name, place);
    CHECK(strncmp(error.message, begin, strlen(begin)) == 0 ||
          (fprintf(stderr, "%s\n", error.message), false));
    CHECK_HAS(error.message, what);
    CHECK_EQ_STR(error.file, name);
    CHECK_EQ_INT(error.line, atoi(place));
}

#define CHECK_WRONG(name, text, place, what)                                             \
    check_wrong(name, text, sizeof text - 1, place, what)

TEST(errors_name_file_line_and_column)
{
    CHECK_WRONG("w.jsonl",
                "{\"path\":\"a\",\"label\":1}\n{\"path\":\"b\",\"label\":"
                "-9223372036854775809}\n",
                "2", "\"-9223372036854775809\" is no int64");
    CHECK_WRONG("w.csv", "path,label\nb\n", "2", "1 cells, and 2 in the first line");
    CHECK_WRONG("w.csv", "path,label\na,\"1\n2", "2:3", "is not closed");
    CHECK_WRONG("w.csv", "path,label\n\"a\"x,1\n", "2:4", "follows a closing quote");
    CHECK_WRONG("w.csv", "path,label\n\"\n\nab\"x,1\n", "4:4", "follows a closing quote");
    CHECK_WRONG("w.csv", "path,label\na\"x,1\n", "2:2", "inside a cell without quotes");
    CHECK_WRONG("w.csv", "path,label\ra,1\r", "1:11", "carriage return");
    CHECK_WRONG("w.csv", "path,label\na\0b,1\n", "2", "zero byte");
    CHECK_WRONG("w.csv", "path,label,label\n", "1:12",
                "two columns are called \"label\"");
    CHECK_WRONG("w.csv", "path,label\na,1\nb, \n", "3:4",
                "column \"label\": the value is missing");
    CHECK_WRONG("w.csv", "path,label\na,1\nb,nan\n", "3:3",
                "column \"label\": the value is missing");
    CHECK_WRONG("w.jsonl", "{\"path\":\"a\",\"label\":1}\n\n{\"path\":\"b\"}\n", "3",
                "column \"label\": the value is missing");
    CHECK_WRONG("w.jsonl", "{\"path\":\"a\"}\n{\"path\":\"b\",\"label\":1}\n", "1",
                "column \"label\": the value is missing");
    CHECK_WRONG("w.jsonl", "{\"label\":1}\n{\"label\":null}\n", "2:2", "missing");
    CHECK_WRONG("w.jsonl", "{\"label\":1}\n{\"label\":\"x\"}\n", "2:2",
                "a text, and other lines have numbers");
    CHECK_WRONG("w.jsonl", "{\"label\":true}\n{\"label\":\"x\"}\n", "2:2", "a text");
    CHECK_WRONG("w.jsonl", "{\"label\":true}\n{\"label\":2}\n", "1:2", "true or false");
    CHECK_WRONG("w.jsonl", "{\"label\":[1]}\n", "1:2", "a list");
    CHECK_WRONG("w.jsonl", "{\"label\":1,\"label\":2}\n", "1:12", "no JSON object");
    CHECK_WRONG("w.jsonl", "[1]\n", "1", "no JSON object");
    CHECK_WRONG("w.jsonl", "{\"label\":01}\n", "1:11", "no JSON object");
}

/* Quotes what needs quotes, and sometimes what does not. */
static void add_cell(struct hr_str *out, const char *text, bool quoted)
{
    if (!quoted && strpbrk(text, ",\"\r\n") == NULL) {
        hr__str_add(out, text);
        return;
    }
    hr__str_add(out, "\"");
    for (; *text != '\0'; text++)
        hr__str_addf(out, *text == '"' ? "\"\"" : "%c", *text);
    hr__str_add(out, "\"");
}

TEST(what_is_written_is_read)
{
    static const char letters[] = "ab,\"\r\n.";
    struct hr_rng rng;
    static char cells[40][5][8];

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 300; round++) {
        int rows = 1 + (int)(hr__rng_below(&rng, 40));
        int columns = 1 + (int)(hr__rng_below(&rng, 5));
        struct hr_str text;

        hr__str_init(&text);
        for (int c = 0; c < columns; c++)
            hr__str_addf(&text, c == 0 ? "path" : ",c%d", c);
        for (int r = 0; r < rows; r++) {
            hr__str_add(&text, hr__rng_below(&rng, 2) ? "\n" : "\r\n");
            for (int c = 0; c < columns; c++) {
                int length = (int)(hr__rng_below(&rng, 7));

                for (int i = 0; i < length; i++)
                    cells[r][c][i] = letters[hr__rng_below(&rng, (sizeof letters - 1))];
                cells[r][c][length] = '\0';
                hr__str_add(&text, c > 0 ? "," : "");
                add_cell(&text, cells[r][c], length == 0 || hr__rng_below(&rng, 2) == 0);
            }
        }
        parse("a.csv", hr__str_text(&text));
        CHECK_EQ_INT(table.rows, rows);
        CHECK_EQ_INT(table.column_count, columns);
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++)
                CHECK_EQ_STR(cell(c, (uint64_t)r), cells[r][c]);
        hr__str_finish(&text);
    }
}

TEST(every_allocation_may_fail)
{
    static const char *const texts[] = {"path,n\n\"a\"\"b\",1\nc,2\n",
                                        "{\"path\":\"a\",\"n\":1}\n{\"n\":2.5}"};

    for (int k = 0; k < 2; k++) {
        for (uint64_t nth = 1;; nth++) {
            struct hr_error error = {0};
            struct hr_table made;
            uint64_t calls;
            enum hr_err err;

            hr__fault_arm(HR_FAULT_ALLOC, nth);
            err = hr__table_parse(texts[k], strlen(texts[k]),
                                  k == 0 ? "a.csv" : "a.jsonl", NULL, &made, &error);
            if (err == HR_OK)
                err = hr__table_use(&made, 1, &error);
            calls = hr__fault_calls();
            hr__fault_arm(0, 0);
            CHECK(err == HR_OK || (err == HR_ERR_MEMORY && error.code == err));
            hr__table_finish(&made);
            if (calls < nth)
                break;
        }
    }
}
