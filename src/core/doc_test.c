/*
 * core/doc_test.c - YAML and JSON: values and errors with their positions, and limits.
 */
#include "core/alloc.h"
#include "core/doc.h"
#include "core/str.h"
#include "tests/support/check.h"

#include <stdlib.h>

static struct hr_doc *parse(const char *name, const char *text)
{
    struct hr_error error = {0};
    struct hr_doc *doc = NULL;

    if (hr__doc_parse(text, strlen(text), name, &doc, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return doc;
}

static const char *message(const char *name, const char *text)
{
    static struct hr_error error;
    struct hr_doc *doc = NULL;

    memset(&error, 0, sizeof error);
    CHECK(hr__doc_parse(text, strlen(text), name, &doc, &error) < 0);
    CHECK(doc == NULL);
    CHECK(error.line >= 1 && error.column >= 1);
    CHECK_EQ_STR(error.file, name);
    return error.message;
}

static const char *json_of(const struct hr_doc *doc)
{
    static char text[4096];
    struct hr_str str;

    hr__str_init(&str);
    hr__doc_print_json(doc, false, &str);
    CHECK(str.length < sizeof text);
    snprintf(text, sizeof text, "%s", hr__str_text(&str));
    hr__str_finish(&str);
    return text;
}

static void check_reads_as(const char *name, const char *text, const char *json)
{
    struct hr_doc *doc = parse(name, text);

    CHECK_EQ_STR(json_of(doc), json);
    hr__doc_destroy(doc);
}

static const char graph[] = "headrace: 1 # version\n"
                            "params:\n"
                            "  data: {type: path, help: \"a folder\"}\n"
                            "pipeline:\n"
                            "  - source.files: {path: \"${data}\", labels: folder}\n"
                            "  - image.flip:\n"
                            "      p: 0.5\n";

TEST(a_graph_file_reads_with_positions)
{
    struct hr_doc *doc = parse("g.yaml", graph);
    const struct hr_doc *data = hr__doc_get(hr__doc_get(doc, "params"), "data");
    const struct hr_doc *list = hr__doc_get(doc, "pipeline"), *flip;

    CHECK_EQ_INT(hr__doc_get(doc, "headrace")->as.integer, 1);
    CHECK_EQ_STR(hr__doc_get_string(data, "help"), "a folder");
    CHECK(hr__doc_get(data, "help")->quoted && !hr__doc_get(data, "type")->quoted);
    CHECK_EQ_INT(data->line, 3);
    CHECK_EQ_INT(data->column, 9);
    CHECK_EQ_INT(list->as.list.count, 2);
    flip = hr__doc_get(list->as.list.items[1], "image.flip");
    CHECK_EQ_INT(list->as.list.items[1]->as.map.pairs[0].line, 6);
    CHECK_EQ_INT(list->as.list.items[1]->as.map.pairs[0].column, 5);
    CHECK(hr__doc_get(flip, "p")->as.number == 0.5);
    CHECK_EQ_INT(hr__doc_get(flip, "p")->column, 10);
    hr__doc_destroy(doc);
}

TEST(json_has_the_same_positions)
{
    struct hr_doc *doc = parse("x.json", "{\"\xC3\xA9\": [1,\n  {\"b\": null}]}");
    const struct hr_doc *list = hr__doc_get(doc, "\xC3\xA9"),
                        *map = list->as.list.items[1];

    CHECK_EQ_INT(list->line, 1);
    CHECK_EQ_INT(list->column, 7);
    CHECK_EQ_INT(map->line, 2);
    CHECK_EQ_INT(map->column, 3);
    CHECK_EQ_INT(map->as.map.pairs[0].column, 4);
    CHECK_EQ_INT(map->as.map.pairs[0].value->column, 9);
    hr__doc_destroy(doc);
}

TEST(plain_scalars_follow_the_core_schema)
{
    static const char *const known[][2] = {
        {"",                     "null"                  },
        {"~",                    "null"                  },
        {"Null",                 "null"                  },
        {"true",                 "true"                  },
        {"FALSE",                "false"                 },
        {"yes",                  "\"yes\""               },
        {"12",                   "12"                    },
        {"-012",                 "-12"                   },
        {"+3",                   "3"                     },
        {"0x1F",                 "31"                    },
        {"0o17",                 "15"                    },
        {"0x",                   "\"0x\""                },
        {"0xg",                  "\"0xg\""               },
        {"1.",                   "1.0"                   },
        {".5",                   "0.5"                   },
        {"1e3",                  "1000.0"                },
        {"1e",                   "\"1e\""                },
        {"-.inf",                "-1e999"                },
        {".nan",                 "null"                  },
        {"1_000",                "\"1_000\""             },
        {"1:30",                 "\"1:30\""              },
        {".",                    "\".\""                 },
        {"-",                    "\"-\""                 },
        {"+",                    "\"+\""                 },
        {"- 1",                  "\"- 1\""               },
        {"inf",                  "\"inf\""               },
        {"-9223372036854775808", "-9223372036854775808"  },
        {"9223372036854775807",  "9223372036854775807"   },
        {"9223372036854775808",  "9.223372036854776e+18" },
        {"0x8000000000000000",   "\"0x8000000000000000\""},
        {"-.nan",                "\"-.nan\""             },
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct hr_doc *doc = hr__doc_scalar(known[i][0], strlen(known[i][0]));

        CHECK_EQ_STR(json_of(doc), known[i][1]);
        hr__doc_destroy(doc);
    }
}

TEST(quoted_and_block_scalars_are_strings)
{
    check_reads_as("x.yaml", "a: \"12\"\nb: 'true'\nc: |\n  1\nd: !!str 5\ne: 5",
                   "{\"a\":\"12\",\"b\":\"true\",\"c\":\"1\\n\",\"d\":\"5\",\"e\":5}");
}

TEST(json_values)
{
    check_reads_as(
        "x.json",
        " [1, -0, 2.50, 1E+2, true, false, null, \"\\u00e9\\ud83d\\ude00\\/\\u0000\"] ",
        "[1,0,2.5,100.0,true,false,null,\"\xC3\xA9\xF0\x9F\x98\x80/\\u0000\"]");
    check_reads_as("x.json", "{}", "{}");
    check_reads_as("text", "{\"a\":{\"b\":[[],{}]}}", "{\"a\":{\"b\":[[],{}]}}");
    check_reads_as("x.json", "\xEF\xBB\xBF[18446744073709551615]",
                   "[1.8446744073709552e+19]");
}

TEST(json_is_strict)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "[",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "[01]",
        "[1.]",
        "[.5]",
        "[+1]",
        "[1e]",
        "[--1]",
        "[NaN]",
        "['a']",
        "[\"a]",
        "[\"\\x\"]",
        "[\"\\u12g4\"]",
        "[\"\\ud800\"]",
        "[\"\\ud800\\u0041\"]",
        "[\"\\udc00\"]",
        "[\"\n\"]",
        "[\"\xFF\"]",
        "[1] 2",
        "[1 2]",
        "{\"a\" 1}",
        "{\"a\":}",
        "[tru]",
        "{\"a\\u0000\":1}",
        "// x\n1",
        "[\"\\",
        "-",
        "\"",
        "[\"\\u12",
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(message("x.json", bad[i]) != NULL);
    CHECK_EQ_STR(message("x.json", "{\"a\": 1,\n \"b\" 2}"), "x.json:2:6: expected ':'");
    CHECK_EQ_STR(message("x.json", "[1,\n"), "x.json:2:1: unexpected end of text");
}

TEST(duplicate_keys_are_refused_where_they_stand)
{
    CHECK_EQ_STR(message("g.yaml", "a: 1\nb: {size: 1,\n  size: 2}\n"),
                 "g.yaml:3:3: duplicate key \"size\" (first at line 2)");
    CHECK_EQ_STR(message("g.json", "{\"a\": 1, \"b\": 2,\n \"a\": 3}"),
                 "g.json:2:2: duplicate key \"a\" (first at line 1)");
}

TEST(yaml_faults_have_positions)
{
    CHECK_HAS(message("g.yaml", "a: [1, 2\nb: 3\n"), "g.yaml:2:");
    CHECK_HAS(message("g.yaml", "a: b: c\n"),
              "g.yaml:1:5: mapping values are not allowed");
    CHECK_EQ_STR(message("g.yaml", "a: 1\nb: \x01\n"),
                 "g.yaml:2:4: control characters are not allowed");
    CHECK_HAS(message("g.yaml", "a: \xFF\n"), "g.yaml:1:4: invalid");
    CHECK_EQ_STR(message("g.yaml", "[a]: 1\n"),
                 "g.yaml:1:1: a key must be a plain or quoted scalar");
    CHECK_EQ_STR(message("g.yaml", "a: 1\n---\nb: 2\n"),
                 "g.yaml:2:1: expected a single document");
    CHECK_HAS(message("g.yaml", "a: !!binary x\n"), "g.yaml:1:4: tag ");
    CHECK_HAS(message("g.yaml", "<<: x\n"), "merge keys");
    CHECK_HAS(message("g.yaml", "\"a\\0b\": x\n"), "NUL");
}

TEST(an_empty_yaml_text_is_null)
{
    check_reads_as("g.yaml", "", "null");
    check_reads_as("g.yaml", "# only a comment\n", "null");
    check_reads_as("g.yaml", "---\n", "null");
}

TEST(aliases_copy_their_anchor)
{
    check_reads_as("g.yaml", "a: &x {b: [1, s]}\nc: *x\nd: &x 2\ne: *x\n",
                   "{\"a\":{\"b\":[1,\"s\"]},\"c\":{\"b\":[1,\"s\"]},\"d\":2,\"e\":2}");
    CHECK_HAS(message("g.yaml", "a: *x\n"), "g.yaml:1:4: alias *x has no");
    CHECK_HAS(message("g.yaml", "a: &x [*x]\n"), "alias *x has no");
}

TEST(billion_laughs_end_at_the_limit)
{
    struct hr_error error = {0};
    struct hr_doc *doc = NULL;
    struct hr_str text;

    hr__str_init(&text);
    hr__str_add(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 10; i++) {
        hr__str_addf(&text, "a%d: &a%d [", i, i);
        for (int j = 0; j < 10; j++)
            hr__str_addf(&text, "*a%d%s", i - 1, j < 9 ? ", " : "]\n");
    }
    CHECK_ERR(HR_ERR_LIMIT,
              hr__doc_parse(text.text, text.length, "l.yaml", &doc, &error));
    CHECK_HAS(error.message, "makes the document too large");
    hr__str_finish(&text);
}

TEST(a_long_string_cannot_be_copied_without_bound)
{
    struct hr_error error = {0};
    struct hr_doc *doc = NULL;
    struct hr_str text;

    hr__str_init(&text);
    hr__str_add(&text, "- &x ");
    for (int i = 0; i < 100000; i++)
        hr__str_add(&text, "0123456789");
    for (int i = 0; i < 100; i++)
        hr__str_add(&text, "\n- *x");
    CHECK_ERR(HR_ERR_LIMIT,
              hr__doc_parse(text.text, text.length, "l.yaml", &doc, &error));
    hr__str_finish(&text);
}

static enum hr_err parse_nested(const char *name, int depth)
{
    struct hr_doc *doc = NULL;
    struct hr_str text;
    enum hr_err err;

    hr__str_init(&text);
    for (int i = 0; i < depth; i++)
        hr__str_add(&text, "[");
    for (int i = 0; i < depth; i++)
        hr__str_add(&text, "]");
    err = hr__doc_parse(text.text, text.length, name, &doc, NULL);
    hr__str_finish(&text);
    hr__doc_destroy(doc);
    return err;
}

TEST(depth_is_limited)
{
    CHECK_OK(parse_nested("x.json", 64));
    CHECK_OK(parse_nested("x.yaml", 64));
    CHECK_ERR(HR_ERR_LIMIT, parse_nested("x.json", 65));
    CHECK_ERR(HR_ERR_LIMIT, parse_nested("x.yaml", 65));
    CHECK_ERR(HR_ERR_LIMIT, parse_nested("x.json", 100000));
    CHECK_ERR(HR_ERR_LIMIT, parse_nested("x.yaml", 100000));
    CHECK_ERR(HR_ERR_LIMIT, hr__doc_parse("", (size_t)65 << 20, "x", NULL, NULL));
}

TEST(values_are_limited_and_many_keys_are_quick)
{
    struct hr_doc *doc = NULL;
    struct hr_str text;

    hr__str_init(&text);
    hr__str_add(&text, "[0");
    for (int i = 0; i < 1000000; i++)
        hr__str_add_bytes(&text, ",0", 2);
    hr__str_add(&text, "]");
    CHECK_ERR(HR_ERR_LIMIT, hr__doc_parse(text.text, text.length, "x.json", &doc, NULL));
    hr__str_clear(&text);
    for (int i = 0; i < 100000; i++)
        hr__str_addf(&text, "%s\"%d\":0", i > 0 ? "," : "{", i);
    hr__str_add(&text, "}");
    CHECK_OK(hr__doc_parse(text.text, text.length, "x.json", &doc, NULL));
    CHECK_EQ_INT(doc->as.map.count, 100000);
    hr__doc_destroy(doc);
    hr__str_finish(&text);
}

/* One of everything that a printer could get wrong. */
static struct hr_doc *make_hard(void)
{
    static const char *const strings[] = {
        "",
        "null",
        "~",
        "12",
        "0x1",
        "1e3",
        ".inf",
        "true",
        "a b",
        " a",
        "a ",
        "a: b",
        "a #b",
        "- a",
        "-",
        "?",
        "...",
        "---",
        "%x",
        "&x",
        "*x",
        "!x",
        "|",
        "@x",
        "`x",
        "{",
        "[]",
        "${data}",
        "line\nbreak",
        "\ttab",
        "quote\"s'",
        "back\\slash",
        "\xC3\xA9",
        "\xE2\x80\xA8",
        "\xC2\x85",
        "\xEF\xBB\xBF",
        "\x7F\x01",
        "\xF0\x9F\x98\x80",
        "<<",
        "=",
        "a,b",
        "path/to.jpg",
        "y",
        "1_0",
        "\xEF\xBF\xBF",
    };
    static const double numbers[] = {0,     -0.0,   1,    3,    0.1, 1e-5,
                                     1e300, 5e-324, 1e15, 1e20, -2.5};
    struct hr_doc *map = hr__doc_new(HR_DOC_MAP), *list = hr__doc_new(HR_DOC_LIST);
    struct hr_doc *keys = hr__doc_new(HR_DOC_MAP);
    char longest[2001];

    memset(longest, 'k', 2000);
    longest[2000] = '\0';
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        CHECK_OK(hr__doc_append(list, hr__doc_string(strings[i])));
        CHECK_OK(hr__doc_set(keys, strings[i], hr__doc_int((int64_t)i)));
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        CHECK_OK(hr__doc_append(list, hr__doc_double(numbers[i])));
    CHECK_OK(hr__doc_append(list, hr__doc_double((double)INFINITY)));
    CHECK_OK(hr__doc_append(list, hr__doc_double(-(double)INFINITY)));
    CHECK_OK(hr__doc_append(list, hr__doc_int(INT64_MIN)));
    CHECK_OK(hr__doc_append(list, hr__doc_string_n("a\0b", 3)));
    CHECK_OK(hr__doc_append(list, hr__doc_string(longest)));
    CHECK_OK(hr__doc_append(list, hr__doc_bool(true)));
    CHECK_OK(hr__doc_append(list, hr__doc_new(HR_DOC_NULL)));
    CHECK_OK(hr__doc_append(list, hr__doc_new(HR_DOC_LIST)));
    CHECK_OK(hr__doc_append(list, hr__doc_new(HR_DOC_MAP)));
    CHECK_OK(hr__doc_append(list, hr__doc_copy(keys)));
    CHECK_OK(hr__doc_append(list, hr__doc_copy(list)));
    CHECK_OK(hr__doc_set(keys, longest, hr__doc_copy(list)));
    CHECK_OK(hr__doc_set(map, "list", list));
    CHECK_OK(hr__doc_set(map, "keys", keys));
    return map;
}

static void
check_round(const struct hr_doc *doc, const char *name, const struct hr_str *text)
{
    struct hr_error error = {0};
    struct hr_doc *back = NULL;
    struct hr_str again;

    CHECK(hr__str_ok(text));
    if (hr__doc_parse(text->text, text->length, name, &back, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s in\n%s", error.message, text->text);
    if (!hr__doc_equal(doc, back))
        check_failed(__FILE__, __LINE__, "changed by %s:\n%s", name, text->text);
    hr__str_init(&again);
    hr__doc_print_json(back, false, &again);
    hr__doc_destroy(back);
    CHECK_OK(hr__doc_parse(again.text, again.length, ".json", &back, NULL));
    hr__str_finish(&again);
    /* Kinds as well as values. */
    hr__str_init(&again);
    if (strcmp(name, "x.yaml") == 0)
        hr__doc_print_yaml(back, &again);
    else
        hr__doc_print_json(back, strcmp(name, "pretty.json") == 0, &again);
    CHECK_EQ_STR(hr__str_text(&again), hr__str_text(text));
    hr__str_finish(&again);
    hr__doc_destroy(back);
}

TEST(printed_text_reads_back_equal)
{
    struct hr_doc *hard = make_hard();
    struct hr_str text;

    hr__str_init(&text);
    hr__doc_print_json(hard, false, &text);
    check_round(hard, "x.json", &text);
    hr__str_clear(&text);
    hr__doc_print_json(hard, true, &text);
    check_round(hard, "pretty.json", &text);
    hr__str_clear(&text);
    hr__doc_print_yaml(hard, &text);
    check_round(hard, "x.yaml", &text);
    hr__str_finish(&text);
    hr__doc_destroy(hard);
}

TEST(yaml_is_printed_as_people_write_it)
{
    struct hr_doc *doc = parse("g.yaml", graph);
    struct hr_str text;

    hr__str_init(&text);
    hr__doc_print_yaml(doc, &text);
    CHECK_EQ_STR(hr__str_text(&text), "headrace: 1\n"
                                      "params:\n"
                                      "  data:\n"
                                      "    type: path\n"
                                      "    help: \"a folder\"\n"
                                      "pipeline:\n"
                                      "  - source.files:\n"
                                      "      path: ${data}\n"
                                      "      labels: folder\n"
                                      "  - image.flip:\n"
                                      "      p: 0.5\n");
    hr__str_finish(&text);
    hr__doc_destroy(doc);
}

static const char *canonical(const char *json)
{
    static char text[500];
    struct hr_doc *doc = parse("x.json", json);
    struct hr_str str;

    hr__str_init(&str);
    hr__doc_print_canonical(doc, &str);
    snprintf(text, sizeof text, "%s", hr__str_text(&str));
    hr__str_finish(&str);
    hr__doc_destroy(doc);
    return text;
}

TEST(the_canonical_form_sorts_keys_and_writes_whole_numbers_as_integers)
{
    CHECK_EQ_STR(canonical("{\"b\": 1.0, \"a\": {\"z\": [0.5, -0.0, 1e3], \"B\": null}}"),
                 "{\"a\":{\"B\":null,\"z\":[0.5,0,1000]},\"b\":1}");
    CHECK_EQ_STR(canonical("[1e20, 1e300, -9223372036854775808.0]"),
                 "[1e+20,1e+300,-9223372036854775808]");
}

TEST(equality_ignores_order_and_kind_of_number)
{
    struct hr_doc *a = parse("x.json", "{\"a\": 1, \"b\": [2.0]}");
    struct hr_doc *b = parse("x.yaml", "b: [2]\na: 1.0\n");
    struct hr_doc *c = parse("x.yaml", "b: [2]\nc: 1\n");
    struct hr_doc *large = hr__doc_int(INT64_MAX), *rounded = hr__doc_double(0x1p63);

    CHECK(hr__doc_equal(a, b) && !hr__doc_equal(b, c) && !hr__doc_equal(large, rounded));
    hr__doc_destroy(a);
    hr__doc_destroy(b);
    hr__doc_destroy(c);
    hr__doc_destroy(large);
    hr__doc_destroy(rounded);
}

TEST(getters_are_safe_on_other_kinds)
{
    struct hr_doc *doc = parse("x.yaml", "[1]");

    CHECK(hr__doc_get(doc, "a") == NULL && hr__doc_get(NULL, "a") == NULL);
    CHECK(hr__doc_get_string(doc, "a") == NULL);
    CHECK_EQ_STR(hr__doc_kind_name(HR_DOC_MAP), "map");
    hr__doc_destroy(doc);
    hr__doc_destroy(NULL);
}

static enum hr_err round_trip(const char *name, const char *input)
{
    struct hr_doc *doc = NULL, *copy = NULL;
    enum hr_err err = hr__doc_parse(input, strlen(input), name, &doc, NULL);
    struct hr_str text;

    if (err != HR_OK) {
        CHECK(doc == NULL);
        return err;
    }
    hr__str_init(&text);
    copy = hr__doc_copy(doc);
    if (copy != NULL)
        err = hr__doc_set(copy, "more", hr__doc_string("x"));
    else
        err = HR_ERR_MEMORY;
    if (err == HR_OK) {
        hr__doc_print_json(copy, true, &text);
        hr__doc_print_yaml(copy, &text);
        hr__doc_print_canonical(copy, &text);
        err = hr__str_ok(&text) ? HR_OK : HR_ERR_MEMORY;
    }
    hr__str_finish(&text);
    hr__doc_destroy(copy);
    hr__doc_destroy(doc);
    return err;
}

static void torture(const char *name, const char *input)
{
    uint64_t nth = 1;

    for (enum hr_err err = HR_ERR_MEMORY; err != HR_OK; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        err = round_trip(name, input);
        CHECK(err == HR_OK || err == HR_ERR_MEMORY);
        CHECK(err == HR_ERR_MEMORY || hr__fault_calls() < nth);
        hr__fault_arm(0, 0);
        CHECK(nth < 3000);
    }
    CHECK(nth > 30);
}

TEST(any_allocation_may_fail)
{
    torture("g.yaml", graph);
    torture("h.yaml", "a: &x {b: [1, \"s t\", 3, 4, 5]}\nc: *x\n");
    torture("x.json",
            "{\"a\": [1, \"text\", {\"b\": 2.5, \"c\": null}], \"d\": \"\\u00e9\"}");
}
