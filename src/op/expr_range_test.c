/*
 * op/expr_range_test.c - conditions of which only bounds are known: chosen cases, and
 * drawn conditions against their values at operands within the bounds.
 */
#include "op/expr_range.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "core/str.h"
#include "op/schema.h"
#include "tests/support/check.h"

/* label: int64, score: float64, good: bool, word: text */
static struct hr_expr *checked(const char *text)
{
    struct hr_schema schema = {0};
    struct hr_error error = {0};
    struct hr_expr *expr;

    hr__schema_put(&schema, "label")->dtype = HR_I64;
    hr__schema_put(&schema, "score")->dtype = HR_F64;
    hr__schema_put(&schema, "good")->dtype = HR_BOOL;
    hr__schema_put(&schema, "word")->kind = HR_FIELD_BYTES;
    CHECK_OK(hr__expr_parse(text, &expr, &error));
    if (hr__expr_check(expr, &schema, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s: %s", text, error.message);
    return expr;
}

static struct hr_operand integer(int64_t value)
{
    return (struct hr_operand){.kind = HR_OPERAND_INT, .as.integer = value};
}

static struct hr_operand number(double value)
{
    return (struct hr_operand){.kind = HR_OPERAND_FLOAT, .as.number = value};
}

static struct hr_operand word(const char *text)
{
    struct hr_operand made = {.kind = HR_OPERAND_STRING};

    made.as.string.text = text;
    made.as.string.length = strlen(text);
    return made;
}

/* label 10 to 20, score 0.5 to 1 or NaN, good true, words "b" to "d". */
static bool never(const char *text)
{
    struct hr_expr *expr = checked(text);
    struct hr_operand_range ranges[HR_EXPR_REFS_MAX];
    const struct hr_expr_ref *refs;
    size_t count;
    bool answer;

    refs = hr__expr_refs(expr, &count);
    for (size_t i = 0; i < count; i++) {
        ranges[i] = hr__operand_any(refs[i].kind);
        if (refs[i].member != HR_MEMBER_VALUE)
            continue;
        if (refs[i].kind == HR_OPERAND_INT) {
            ranges[i].low = integer(10);
            ranges[i].high = integer(20);
        } else if (refs[i].kind == HR_OPERAND_FLOAT) {
            ranges[i].low = number(0.5);
            ranges[i].high = number(1);
        } else if (refs[i].kind == HR_OPERAND_STRING) {
            ranges[i].low = word("b");
            ranges[i].high = word("d");
            ranges[i].open = false;
        } else {
            ranges[i].low.as.boolean = true;
        }
    }
    answer = hr__expr_never(expr, ranges);
    hr__expr_destroy(expr);
    return answer;
}

#define NEVER(text) CHECK(never(text))
#define MAYBE(text) CHECK(!never(text))

TEST(comparisons_with_bounds)
{
    NEVER("label < 10");
    MAYBE("label <= 10");
    NEVER("label > 20");
    NEVER("label == 9");
    MAYBE("label == 15");
    MAYBE("label != 15");
    NEVER("label in [1, 2, 21]");
    MAYBE("label in [1, 12]");
    NEVER("not label not in [1, 2]");
    NEVER("word == 'a'");
    NEVER("word > 'd'");
    MAYBE("word > 'cz'");
    NEVER("word >= 'da'");
    NEVER("good == false");
    NEVER("not good");
    NEVER("label < 9.5");
    MAYBE("word.length > 7");
    NEVER("word.length < -9223372036854775807 - 1");
}

TEST(nan_may_be_among_floats)
{
    NEVER("score > 2");
    NEVER("score == 3");
    MAYBE("not score < 2");
    MAYBE("score != 0.75");
    MAYBE("not score >= 0");
}

TEST(arithmetic_and_logic)
{
    NEVER("label * 2 > 40");
    NEVER("-label > -10");
    NEVER("label - 5 * 2 < 0");
    NEVER("label + score > 21");
    NEVER("label < 10 or score > 2");
    NEVER("label > 5 and score > 2");
    MAYBE("label < 10 or score > 0.9");
    NEVER("label < 10 and label / (label - 15) > 2"); /* the right side is not reached */
}

/* A record of which the condition fails is bad, not dropped. */
TEST(what_may_fail_is_kept)
{
    MAYBE("label / (label - 15) > 2 and label < 10");
    MAYBE("label * 4611686018427387904 < 0 and label < 10");
    MAYBE("label % (label - 15) > 2 and false");
    NEVER("label % 7 > 2 and false");
}

/* ---- drawn conditions ---- */

static const char *const words[] = {"", "a", "aa", "ab", "b", "ba", "c"};
#define WORDS (sizeof words / sizeof words[0])

static void add_number(struct hr_rng *rng, struct hr_str *out, int depth)
{
    static const char *const signs[] = {"+", "-", "*", "/", "%"};

    switch (hr__rng_below(rng, depth > 0 ? 6 : 3)) {
    case 0:
        hr__str_addf(out, "label");
        return;
    case 1:
        hr__str_addf(out, "score");
        return;
    case 2:
        hr__str_addf(out, "%d", (int)hr__rng_below(rng, 9));
        return;
    case 3:
        hr__str_addf(out, "-");
        add_number(rng, out, depth - 1);
        return;
    default:
        hr__str_addf(out, "(");
        add_number(rng, out, depth - 1);
        hr__str_addf(out, " %s ", signs[hr__rng_below(rng, 5)]);
        add_number(rng, out, depth - 1);
        hr__str_addf(out, ")");
    }
}

static void add_condition(struct hr_rng *rng, struct hr_str *out, int depth)
{
    static const char *const signs[] = {"<", "<=", ">", ">=", "==", "!="};
    const char *sign = signs[hr__rng_below(rng, 6)];

    switch (hr__rng_below(rng, depth > 0 ? 8 : 5)) {
    case 0:
        hr__str_addf(out, "good");
        return;
    case 1:
        hr__str_addf(out, "word %s '%s'", sign, words[hr__rng_below(rng, WORDS)]);
        return;
    case 2:
        hr__str_addf(out, "label %s [%d, %d]", hr__rng_below(rng, 2) ? "in" : "not in",
                     (int)hr__rng_below(rng, 9), (int)hr__rng_below(rng, 9));
        return;
    case 3:
    case 4:
        add_number(rng, out, 2);
        hr__str_addf(out, " %s ", sign);
        add_number(rng, out, 1);
        return;
    case 5:
        hr__str_addf(out, "not (");
        add_condition(rng, out, depth - 1);
        break;
    default:
        hr__str_addf(out, "(");
        add_condition(rng, out, depth - 1);
        hr__str_addf(out, hr__rng_below(rng, 2) ? " and " : " or ");
        add_condition(rng, out, depth - 1);
    }
    hr__str_addf(out, ")");
}

static struct hr_operand draw(struct hr_rng *rng, enum hr_operand_kind kind)
{
    int64_t small = (int64_t)hr__rng_below(rng, 12) - 3;

    switch (kind) {
    case HR_OPERAND_INT:
        return integer(hr__rng_below(rng, 20) > 0 ? small : INT64_MAX - 3 + small % 4);
    case HR_OPERAND_FLOAT:
        return number(hr__rng_below(rng, 20) > 0 ? (double)small / 2 : INFINITY);
    case HR_OPERAND_STRING:
        return word(words[hr__rng_below(rng, WORDS)]);
    default:
        return (struct hr_operand){.kind = HR_OPERAND_BOOL, .as.boolean = small % 2 != 0};
    }
}

/* Draws operands and the range that holds them: values[i][k] of reference k. */
#define VALUES 12
static void draw_operands(struct hr_rng *rng, const struct hr_expr *expr,
                          struct hr_operand values[VALUES][HR_EXPR_REFS_MAX],
                          struct hr_operand_range *ranges)
{
    size_t count;
    const struct hr_expr_ref *refs = hr__expr_refs(expr, &count);

    for (size_t k = 0; k < count; k++) {
        bool nan = refs[k].kind == HR_OPERAND_FLOAT && hr__rng_below(rng, 2) == 0;
        uint64_t distinct = 1 + hr__rng_below(rng, 3);

        for (size_t i = 0; i < VALUES; i++) {
            struct hr_operand_range one = {0};

            values[i][k] =
                i < distinct ? draw(rng, refs[k].kind) : values[i - distinct][k];
            one.low = one.high = values[i][k];
            ranges[k] = i == 0 ? one : hr__operand_join(&ranges[k], &one);
        }
        if (nan)
            values[hr__rng_below(rng, VALUES)][k] = number(NAN);
        ranges[k].nan = nan;
        if (hr__rng_below(rng, 10) == 0)
            ranges[k] = hr__operand_any(refs[k].kind);
    }
}

TEST(what_is_never_true_is_false_at_every_value)
{
    struct hr_rng rng;
    int nevers = 0;

    hr__rng_init(&rng, check_seed(), 0, 1);
    for (int round = 0; round < 20000; round++) {
        struct hr_operand values[VALUES][HR_EXPR_REFS_MAX], result;
        struct hr_operand_range ranges[HR_EXPR_REFS_MAX];
        struct hr_expr *expr;
        struct hr_str text;

        hr__str_init(&text);
        add_condition(&rng, &text, 3);
        expr = checked(hr__str_text(&text));
        draw_operands(&rng, expr, values, ranges);
        if (hr__expr_never(expr, ranges)) {
            nevers++;
            for (size_t i = 0; i < VALUES; i++)
                if (hr__expr_eval(expr, values[i], &result, NULL) != HR_OK ||
                    result.as.boolean)
                    check_failed(__FILE__, __LINE__, "%s at value %zu",
                                 hr__str_text(&text), i);
        }
        hr__expr_destroy(expr);
        hr__str_finish(&text);
    }
    CHECK(nevers > 1000);
}
