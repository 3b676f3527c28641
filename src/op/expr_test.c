/*
 * op/expr_test.c - the condition language: precedence, types, members, errors with their
 * column.
 */
#include "op/expr.h"

#include "core/alloc.h"
#include "op/schema.h"
#include "tests/support/check.h"

static void put_image(struct hr_schema *schema, const char *name)
{
    struct hr_field *f = hr__schema_put(schema, name);

    f->kind = HR_FIELD_TENSOR;
    f->dtype = HR_U8;
    f->ndim = 3;
    f->meaning = HR_MEANING_IMAGE_U8;
    f->layout = HR_LAYOUT_HWC;
    hr__dim_unknown(&f->dims[0], "height");
    hr__dim_unknown(&f->dims[1], "width");
    hr__dim_set(&f->dims[2], 3);
}

/* label: int32, score: float32, good: bool, path: text, image: an image, boxes [n, 4] */
static struct hr_schema test_schema(void)
{
    struct hr_schema schema = {0};

    hr__schema_put(&schema, "label")->dtype = HR_I32;
    hr__schema_put(&schema, "score")->dtype = HR_F32;
    hr__schema_put(&schema, "good")->dtype = HR_BOOL;
    hr__schema_put(&schema, "path")->kind = HR_FIELD_BYTES;
    put_image(&schema, "image");
    hr__schema_put(&schema, "boxes")->ndim = 2;
    hr__schema_find(&schema, "boxes")->dtype = HR_F32;
    return schema;
}

/* Operands by what the reference asks for: label 7, score 0.5, good true, path "a/b.jpg",
 * height 480, width 640, channels 3, any length 7. */
static void fill(const struct hr_expr *expr, struct hr_operand *operands)
{
    size_t count, field_count;
    const struct hr_expr_ref *refs = hr__expr_refs(expr, &count);
    const char *const *fields = hr__expr_fields(expr, &field_count);
    static const int64_t sizes[] = {0, 480, 640, 3, 7};

    for (size_t i = 0; i < count; i++) {
        operands[i].kind = refs[i].kind;
        CHECK(refs[i].field < field_count);
        if (refs[i].member != HR_MEMBER_VALUE)
            operands[i].as.integer = sizes[refs[i].member];
        else if (strcmp(fields[refs[i].field], "label") == 0)
            operands[i].as.integer = 7;
        else if (refs[i].kind == HR_OPERAND_FLOAT)
            operands[i].as.number = 0.5;
        else if (refs[i].kind == HR_OPERAND_BOOL)
            operands[i].as.boolean = true;
        else {
            operands[i].as.string.text = "a/b.jpg!";
            operands[i].as.string.length = 7;
        }
    }
}

static enum hr_err run(const char *text, struct hr_operand *ret, struct hr_error *error)
{
    struct hr_schema schema = test_schema();
    struct hr_operand operands[HR_EXPR_REFS_MAX];
    struct hr_expr *expr;
    enum hr_err code = hr__expr_parse(text, &expr, error);

    if (code != HR_OK)
        return code;
    code = hr__expr_check(expr, &schema, error);
    if (code == HR_OK) {
        fill(expr, operands);
        code = hr__expr_eval(expr, operands, ret, error);
    }
    hr__expr_destroy(expr);
    return code;
}

static bool truth_of(const char *text)
{
    struct hr_operand result;
    struct hr_error error = {0};

    if (run(text, &result, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s: %s", text, error.message);
    CHECK_EQ_INT(result.kind, HR_OPERAND_BOOL);
    return result.as.boolean;
}

#define TRUE(text) CHECK(truth_of(text))
#define FALSE(text) CHECK(!truth_of(text))

static int64_t int_of(const char *text)
{
    struct hr_operand result;

    CHECK_OK(run(text, &result, NULL));
    CHECK_EQ_INT(result.kind, HR_OPERAND_INT);
    return result.as.integer;
}

static void refused(const char *text, enum hr_err code, int column, const char *words)
{
    struct hr_error error = {0};
    struct hr_operand result;

    CHECK_ERR(code, run(text, &result, &error));
    CHECK_HAS(error.message, words);
    if (error.column != column)
        check_failed(__FILE__, __LINE__, "%s: column %d (%s), not %d", text, error.column,
                     error.message, column);
}

TEST(comparisons_and_logic_follow_precedence)
{
    TRUE("label < 10 and image.height >= 64");
    TRUE("label == 7 or label == 8 and false");
    FALSE("(label == 7 or label == 8) and false");
    TRUE("not label < 5");
    FALSE("not label > 5 and good");
    TRUE("not not good");
    TRUE("1 + 2 * 3 == 7");
    TRUE("(1 + 2) * 3 == 9");
    TRUE("10 - 3 - 2 == 5");
    TRUE("-2 * -3 == 6");
    TRUE("score * 2 == 1");
    TRUE("label != 6");
    TRUE("good == true");
}

TEST(integers_stay_integers_and_truncate)
{
    CHECK_EQ_INT(int_of("7 / 2"), 3);
    CHECK_EQ_INT(int_of("-7 / 2"), -3);
    CHECK_EQ_INT(int_of("-7 % 3"), -1);
    CHECK_EQ_INT(int_of("(0 - 9223372036854775807 - 1) % -1"), 0);
    CHECK_EQ_INT(int_of("9223372036854775807"), INT64_MAX);
    CHECK_EQ_INT(int_of("-9223372036854775808"), INT64_MIN);
    CHECK_EQ_INT(int_of("-009223372036854775808"), INT64_MIN);
    FALSE("0 - 9223372036854775807 == -9223372036854775808");
    TRUE("0 - 9223372036854775807 > -9223372036854775808");
    TRUE("0 - 9223372036854775807 - 1 == - 9223372036854775808");
    FALSE("0 - 9223372036854775807 in [-9223372036854775808]");
    TRUE("0 - 9223372036854775807 - 1 in [1, -9223372036854775808]");
    TRUE("-9223372036854775808.0 == -9223372036854775808");
    TRUE("9223372036854775807 < 9223372036854775808.0");
    FALSE("9223372036854775807 == 9223372036854775808.0");
    FALSE("9007199254740993 == 9007199254740992.0");
    TRUE("9007199254740993 > 9007199254740992.0");
    TRUE("9007199254740992.0 < 9007199254740993");
    FALSE("9007199254740993 in [9007199254740992.0]");
    TRUE("-3 > -3.5");
    TRUE("3 < 3.5");
    TRUE("3.5 > 3");
    TRUE("-4 < -3.5");
    TRUE("3 == 3.0");
    TRUE("7 / 2.0 == 3.5");
    TRUE("7.5 % 2 == 1.5");
}

TEST(strings_compare_by_bytes_and_take_both_quotes)
{
    TRUE("path == 'a/b.jpg'");
    TRUE("path != \"a/b\"");
    TRUE("path > 'a/b'");
    TRUE("path < 'b'");
    TRUE("'it\\'s' == \"it's\"");
    TRUE("'a\\\\n' != 'a\\n'");
    TRUE("path.length == 7");
}

TEST(membership_looks_through_literals)
{
    TRUE("label in [1, 7, 9]");
    FALSE("label in [-7, 8]");
    TRUE("label not in [1, 2]");
    TRUE("path in ['x', 'a/b.jpg']");
    TRUE("score in [0.5]");
    TRUE("not label in [1]");
}

TEST(sizes_of_the_only_image_need_no_field_name)
{
    TRUE("height == 480 and width == 640 and channels == 3");
    TRUE("width * height >= 300000");
    TRUE("image.length == 7 and boxes.length == 7");
}

TEST(references_are_distinct_and_fields_too)
{
    struct hr_schema schema = test_schema();
    struct hr_expr *expr;
    size_t refs, fields;
    const char *const *names;

    CHECK_OK(hr__expr_parse("height > 1 and image.height < 9 and width > 1 and label > 1",
                            &expr, NULL));
    CHECK_OK(hr__expr_check(expr, &schema, NULL));
    hr__expr_refs(expr, &refs);
    names = hr__expr_fields(expr, &fields);
    CHECK_EQ_INT(refs, 3);
    CHECK_EQ_INT(fields, 2);
    CHECK_EQ_STR(names[0], "image");
    CHECK_EQ_STR(names[1], "label");
    CHECK_EQ_INT(hr__expr_kind(expr), HR_OPERAND_BOOL);
    hr__expr_destroy(expr);
}

TEST(a_field_of_that_name_wins_over_the_member)
{
    struct hr_schema schema = test_schema();
    struct hr_expr *expr;
    size_t count;

    hr__schema_put(&schema, "height")->dtype = HR_F64;
    CHECK_OK(hr__expr_parse("height > 1", &expr, NULL));
    CHECK_OK(hr__expr_check(expr, &schema, NULL));
    CHECK_EQ_INT(hr__expr_refs(expr, &count)[0].kind, HR_OPERAND_FLOAT);
    hr__expr_destroy(expr);
}

TEST(two_images_make_a_bare_size_ambiguous)
{
    struct hr_schema schema = test_schema();
    struct hr_error error = {0};
    struct hr_expr *expr;
    size_t count;

    put_image(&schema, "mask");
    CHECK_OK(hr__expr_parse("height > 1", &expr, NULL));
    CHECK_ERR(HR_ERR_GRAPH, hr__expr_check(expr, &schema, &error));
    CHECK_EQ_STR(error.message,
                 "column 1: there are several images; write image.height or "
                 "mask.height");
    hr__expr_refs(expr, &count);
    CHECK_EQ_INT(count, 0);
    hr__expr_destroy(expr);
}

TEST(wrong_text_is_refused_where_it_is_wrong)
{
    refused("", HR_ERR_FORMAT, 1, "ends too early");
    refused("label <", HR_ERR_FORMAT, 8, "ends too early");
    refused("label = 3", HR_ERR_FORMAT, 7, "write \"==\"");
    refused("a && b", HR_ERR_FORMAT, 3, "write \"and\"");
    refused("0 < label < 5", HR_ERR_FORMAT, 11, "cannot be chained");
    refused("(label < 5", HR_ERR_FORMAT, 11, "\")\" is missing");
    refused("label < 5 good", HR_ERR_FORMAT, 11, "\"and\" missing");
    refused("path == 'abc", HR_ERR_FORMAT, 9, "no end");
    refused("path == 'abc\\", HR_ERR_FORMAT, 9, "no end");
    refused("label in 3", HR_ERR_FORMAT, 10, "wants a list");
    refused("label in [score]", HR_ERR_FORMAT, 11, "numbers, strings");
    refused("label in []", HR_ERR_FORMAT, 11, "numbers, strings");
    refused("label < 1x", HR_ERR_FORMAT, 9, "no number");
    refused("label ? 1", HR_ERR_FORMAT, 7, "no meaning");
}

TEST(wrong_types_and_names_are_refused_by_the_check)
{
    refused("lable < 3", HR_ERR_GRAPH, 1, "did you mean \"label\"? Fields here: label, ");
    refused("label < 3 and image.heigth > 2", HR_ERR_GRAPH, 15,
            "did you mean \"height\"?");
    refused("imag.height > 2", HR_ERR_GRAPH, 1, "did you mean \"image\"?");
    refused("image > 2", HR_ERR_TYPE, 1, "uint8 [height, width, 3]");
    refused("label.height > 2", HR_ERR_TYPE, 1, "not an image, so it has no height");
    refused("label.length > 2", HR_ERR_TYPE, 1, "has no length");
    refused("path < 3", HR_ERR_TYPE, 6, "a string cannot be compared with an int");
    refused("good < true", HR_ERR_TYPE, 6, "bools have no order");
    refused("not label", HR_ERR_TYPE, 5, "wants a condition, and this is an int");
    refused("label and good", HR_ERR_TYPE, 1, "\"and\" wants conditions");
    refused("path + 1 == 2", HR_ERR_TYPE, 1, "arithmetic wants numbers");
    refused("label in [1, 'a']", HR_ERR_TYPE, 14,
            "an int cannot be compared with a string");
}

TEST(division_by_zero_and_overflow_are_errors)
{
    refused("1 / (label - 7) == 1", HR_ERR_RANGE, 3, "division by zero");
    refused("1.0 / 0 == 1", HR_ERR_RANGE, 5, "division by zero");
    refused("1 % 0 == 1", HR_ERR_RANGE, 3, "division by zero");
    refused("9223372036854775807 + label > 1", HR_ERR_RANGE, 21, "integer overflow");
    refused("(0 - 9223372036854775807 - 1) / -1 > 1", HR_ERR_RANGE, 31, "overflow");
    refused("-(0 - 9223372036854775807 - 1) > 1", HR_ERR_RANGE, 1, "overflow");
    refused("1 < - -9223372036854775808", HR_ERR_RANGE, 5, "overflow");
    TRUE("good or 1 / (label - 7) == 1"); /* never evaluated */
}

/* `head` and then `part` so many times; static. */
static const char *repeated(const char *head, const char *part, int count)
{
    static char text[4096];
    int length = snprintf(text, sizeof text, "%s", head);

    for (int i = 0; i < count; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "%s", part);
    return text;
}

TEST(depth_and_size_are_bounded)
{
    refused(repeated("", "(", 1000), HR_ERR_LIMIT, 65, "nested more than 64");
    refused(repeated("", "not ", 200), HR_ERR_LIMIT, 64 * 4 + 1, "nested");
    refused(repeated("1", "+1", 500), HR_ERR_LIMIT, 256, "more than 256 parts");
}

TEST(a_failed_allocation_leaks_nothing)
{
    for (uint64_t n = 1; n < 20; n++) {
        struct hr_operand result;
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, n);
        code = run("label < 10 and lable > 1.5", &result, NULL);
        hr__fault_arm(0, 0);
        CHECK(code == HR_ERR_MEMORY || code == HR_ERR_GRAPH);
    }
}
