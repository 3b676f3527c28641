/*
 * op/expr_parse.c - reading a condition: a tokenizer of one character ahead, and one
 * function per level of precedence.
 *
 * The tree is an array of fixed size, so text of any length and nesting is refused
 * before it costs memory or stack.
 */
#include "op/expr_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/doc.h"
#include "core/error.h"

enum token {
    TOKEN_END,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_NAME,
    TOKEN_WORD, /* and or not in true false */
    TOKEN_SIGN, /* < <= == + ( , ... */
};

struct parser {
    struct hr_expr *expr;
    const char *at; /* after the token */
    enum token token;
    const char *text; /* of the token */
    size_t length;
    struct hr_operand literal; /* NUMBER, STRING */
    const char *name;          /* NAME */
    int depth;
    struct hr_error *error;
};

enum hr_err hr__expr_fail(struct hr_error *error, enum hr_err code, int column,
                          const char *format, ...)
{
    char message[512];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (error != NULL)
        error->column = column;
    return hr__fail(error, code, "column %d: %s", column, message);
}

static int column_of(const struct parser *p, const char *at)
{
    assert(at >= p->expr->text);
    return (int)(at - p->expr->text) + 1;
}

static enum hr_err fail(struct parser *p, const char *at, const char *message)
{
    return hr__expr_fail(p->error, HR_ERR_FORMAT, column_of(p, at), "%s", message);
}

/* ---- tokens ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           ((unsigned char)c >= 0x80);
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c) || c == '.';
}

static enum hr_err read_number(struct parser *p)
{
    const char *at = p->text;
    struct hr_doc *value;

    while (is_digit(*at) || *at == '.' ||
           ((*at == '+' || *at == '-') && (at[-1] == 'e' || at[-1] == 'E')) ||
           is_name_start(*at))
        at++;
    p->at = at;
    p->length = (size_t)(at - p->text);
    value = hr__doc_scalar(p->text, p->length);
    if (value == NULL)
        return hr__fail(p->error, HR_ERR_MEMORY, "out of memory");
    p->token = TOKEN_NUMBER;
    p->literal.kind = value->kind == HR_DOC_INT ? HR_OPERAND_INT : HR_OPERAND_FLOAT;
    if (value->kind == HR_DOC_INT)
        p->literal.as.integer = value->as.integer;
    else if (value->kind == HR_DOC_DOUBLE)
        p->literal.as.number = value->as.number;
    else
        p->token = TOKEN_END;
    hr__doc_destroy(value);
    return p->token == TOKEN_NUMBER ? HR_OK : fail(p, p->text, "this is no number");
}

static char unescaped(char c)
{
    return (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
}

static enum hr_err read_string(struct parser *p)
{
    char quote = *p->text, *out = p->expr->strings + p->expr->strings_used;
    const char *at = p->text + 1;

    p->literal.kind = HR_OPERAND_STRING;
    p->literal.as.string.text = out;
    for (; *at != quote; at++) {
        bool escaped = *at == '\\';

        if (escaped)
            at++;
        if (*at == '\0')
            return fail(p, p->text, "the string has no end");
        *out++ = escaped ? unescaped(*at) : *at;
    }
    p->literal.as.string.length = (size_t)(out - p->literal.as.string.text);
    *out++ = '\0';
    p->expr->strings_used = (size_t)(out - p->expr->strings);
    p->token = TOKEN_STRING;
    p->at = at + 1;
    p->length = (size_t)(p->at - p->text);
    return HR_OK;
}

static void read_name(struct parser *p)
{
    static const char *const words[] = {"and", "or", "not", "in", "true", "false"};
    char *out = p->expr->strings + p->expr->strings_used;

    while (is_name(*p->at))
        p->at++;
    p->length = (size_t)(p->at - p->text);
    p->token = TOKEN_NAME;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == p->length && memcmp(words[i], p->text, p->length) == 0)
            p->token = TOKEN_WORD;
    }
    if (p->token == TOKEN_WORD)
        return;
    memcpy(out, p->text, p->length);
    out[p->length] = '\0';
    p->name = out;
    p->expr->strings_used += p->length + 1;
}

static enum hr_err read_sign(struct parser *p)
{
    static const char *const signs[] = {"<=", ">=", "==", "!=", "<", ">", "+", "-",
                                        "*",  "/",  "%",  "(",  ")", "[", "]", ","};
    static const struct {
        const char *sign, *hint;
    } hints[] = {
        {"&&", "write \"and\""           },
        {"||", "write \"or\""            },
        {"!",  "write \"not\", or \"!=\""},
        {"=",  "write \"==\" to compare" }
    };

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (strncmp(signs[i], p->text, strlen(signs[i])) == 0) {
            p->token = TOKEN_SIGN;
            p->length = strlen(signs[i]);
            p->at = p->text + p->length;
            return HR_OK;
        }
    }
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        if (strncmp(hints[i].sign, p->text, strlen(hints[i].sign)) == 0)
            return fail(p, p->text, hints[i].hint);
    }
    return fail(p, p->text, "this character has no meaning here");
}

static enum hr_err next(struct parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
    p->text = p->at;
    p->length = 0;
    if (*p->at == '\0') {
        p->token = TOKEN_END;
        return HR_OK;
    }
    if (is_digit(*p->at) || (*p->at == '.' && is_digit(p->at[1])))
        return read_number(p);
    if (*p->at == '"' || *p->at == '\'')
        return read_string(p);
    if (!is_name_start(*p->at))
        return read_sign(p);
    read_name(p);
    return HR_OK;
}

static bool is(const struct parser *p, enum token token, const char *text)
{
    return p->token == token && strlen(text) == p->length &&
           memcmp(text, p->text, p->length) == 0;
}

/* ---- tree ---- */

static enum hr_err make(struct parser *p, enum hr_expr_what what, const char *at,
                        uint16_t left, uint16_t right, uint16_t *ret_node)
{
    struct hr_expr_node *node;

    if (p->expr->count == HR_EXPR_NODES_MAX)
        return hr__expr_fail(p->error, HR_ERR_LIMIT, column_of(p, at),
                             "the expression has more than %d parts", HR_EXPR_NODES_MAX);
    assert(left <= p->expr->count && right <= p->expr->count);
    *ret_node = (uint16_t)p->expr->count;
    node = &p->expr->nodes[p->expr->count++];
    *node = (struct hr_expr_node){
        .what = what, .column = column_of(p, at), .left = left, .right = right};
    return HR_OK;
}

static enum hr_err parse_or(struct parser *p, uint16_t *ret_node);

static enum hr_err
make_literal(struct parser *p, const struct hr_operand *literal, uint16_t *ret_node)
{
    HR_TRY(make(p, HR_EXPR_LITERAL, p->text, 0, 0, ret_node));
    p->expr->nodes[*ret_node].kind = literal->kind;
    p->expr->nodes[*ret_node].literal = *literal;
    return next(p);
}

static enum hr_err parse_operand(struct parser *p, uint16_t *ret_node)
{
    struct hr_operand truth = {.kind = HR_OPERAND_BOOL};

    if (p->token == TOKEN_NUMBER || p->token == TOKEN_STRING)
        return make_literal(p, &p->literal, ret_node);
    if (is(p, TOKEN_WORD, "true") || is(p, TOKEN_WORD, "false")) {
        truth.as.boolean = p->length == 4;
        return make_literal(p, &truth, ret_node);
    }
    if (p->token == TOKEN_NAME) {
        HR_TRY(make(p, HR_EXPR_NAME, p->text, 0, 0, ret_node));
        p->expr->nodes[*ret_node].name = p->name;
        return next(p);
    }
    if (is(p, TOKEN_SIGN, "(")) {
        HR_TRY(next(p));
        HR_TRY(parse_or(p, ret_node));
        if (!is(p, TOKEN_SIGN, ")"))
            return fail(p, p->text, "\")\" is missing");
        return next(p);
    }
    return fail(p, p->text,
                p->token == TOKEN_END ? "the expression ends too early"
                                      : "a field, a number or a string is missing here");
}

static enum hr_err enter(struct parser *p)
{
    if (++p->depth > HR_EXPR_DEPTH_MAX)
        return hr__expr_fail(p->error, HR_ERR_LIMIT, column_of(p, p->text),
                             "the expression is nested more than %d deep",
                             HR_EXPR_DEPTH_MAX);
    return HR_OK;
}

/* After a minus: turns 9223372036854775808, which is read as a double, into INT64_MIN.
 * Returns false for other tokens. */
static bool take_least(struct parser *p)
{
    static const char least[] = "9223372036854775808";
    const char *digits = p->text;

    if (p->token != TOKEN_NUMBER)
        return false;
    digits += strspn(digits, "0");
    if (p->at - digits != sizeof least - 1 ||
        memcmp(digits, least, sizeof least - 1) != 0)
        return false;
    p->literal = (struct hr_operand){.kind = HR_OPERAND_INT, .as.integer = INT64_MIN};
    return true;
}

static enum hr_err parse_unary(struct parser *p, uint16_t *ret_node)
{
    const char *at = p->text;
    uint16_t inner;
    enum hr_err code;

    HR_TRY(enter(p));
    if (!is(p, TOKEN_SIGN, "-")) {
        code = parse_operand(p, ret_node);
    } else {
        HR_TRY(next(p));
        if (take_least(p)) {
            code = parse_operand(p, ret_node);
        } else {
            HR_TRY(parse_unary(p, &inner));
            code = make(p, HR_EXPR_NEG, at, inner, 0, ret_node);
        }
    }
    assert(p->depth > 0);
    p->depth--;
    return code;
}

struct level {
    const char *sign;
    enum hr_expr_what what;
};

static const struct level products[] = {
    {"*",  HR_EXPR_MUL},
    {"/",  HR_EXPR_DIV},
    {"%",  HR_EXPR_MOD},
    {NULL, 0          }
};
static const struct level sums[] = {
    {"+",  HR_EXPR_ADD},
    {"-",  HR_EXPR_SUB},
    {NULL, 0          }
};
static const struct level orders[] = {
    {"<",  HR_EXPR_LT},
    {"<=", HR_EXPR_LE},
    {">",  HR_EXPR_GT},
    {">=", HR_EXPR_GE},
    {"==", HR_EXPR_EQ},
    {"!=", HR_EXPR_NE},
    {NULL, 0         }
};

static const struct level *find_level(const struct parser *p, const struct level *levels)
{
    while (levels->sign != NULL && !is(p, TOKEN_SIGN, levels->sign))
        levels++;
    return levels->sign != NULL ? levels : NULL;
}

static enum hr_err parse_arithmetic(struct parser *p, bool sum, uint16_t *ret_node)
{
    const struct level *level;
    uint16_t right;

    HR_TRY(sum ? parse_arithmetic(p, false, ret_node) : parse_unary(p, ret_node));
    while ((level = find_level(p, sum ? sums : products)) != NULL) {
        const char *at = p->text;

        HR_TRY(next(p));
        HR_TRY(sum ? parse_arithmetic(p, false, &right) : parse_unary(p, &right));
        HR_TRY(make(p, level->what, at, *ret_node, right, ret_node));
    }
    return HR_OK;
}

static enum hr_err parse_item(struct parser *p)
{
    uint16_t item;
    bool minus = is(p, TOKEN_SIGN, "-");

    if (minus) {
        HR_TRY(next(p));
        if (p->token != TOKEN_NUMBER)
            return fail(p, p->text, "a number is missing after \"-\"");
        if (p->literal.kind == HR_OPERAND_INT)
            p->literal.as.integer = -p->literal.as.integer; /* it is not negative */
        else if (!take_least(p))
            p->literal.as.number = -p->literal.as.number;
    }
    if (p->token != TOKEN_NUMBER && p->token != TOKEN_STRING &&
        !is(p, TOKEN_WORD, "true") && !is(p, TOKEN_WORD, "false"))
        return fail(p, p->text, "a list holds numbers, strings, true and false only");
    return parse_operand(p, &item);
}

/* Literals are stored contiguously. */
static enum hr_err
parse_list(struct parser *p, const char *at, uint16_t left, uint16_t *ret_node)
{
    uint16_t first = (uint16_t)p->expr->count, count = 0;

    if (!is(p, TOKEN_SIGN, "["))
        return fail(p, p->text, "\"in\" wants a list: in [1, 2, 3]");
    do {
        HR_TRY(next(p));
        HR_TRY(parse_item(p));
        count++;
    } while (is(p, TOKEN_SIGN, ","));
    if (!is(p, TOKEN_SIGN, "]"))
        return fail(p, p->text, "\"]\" is missing");
    HR_TRY(next(p));
    HR_TRY(make(p, HR_EXPR_IN, at, left, first, ret_node));
    p->expr->nodes[*ret_node].count = count;
    return HR_OK;
}

static enum hr_err parse_membership(struct parser *p, uint16_t *ret_node)
{
    const char *at = p->text;
    bool negated = is(p, TOKEN_WORD, "not");

    if (negated)
        HR_TRY(next(p));
    if (!is(p, TOKEN_WORD, "in"))
        return fail(p, p->text, "\"in\" is missing after \"not\"");
    HR_TRY(next(p));
    HR_TRY(parse_list(p, at, *ret_node, ret_node));
    return negated ? make(p, HR_EXPR_NOT, at, *ret_node, 0, ret_node) : HR_OK;
}

static enum hr_err parse_comparison(struct parser *p, uint16_t *ret_node)
{
    const struct level *level;
    const char *at;
    uint16_t right;

    HR_TRY(parse_arithmetic(p, true, ret_node));
    if (is(p, TOKEN_WORD, "in") || is(p, TOKEN_WORD, "not"))
        return parse_membership(p, ret_node);
    level = find_level(p, orders);
    if (level == NULL)
        return HR_OK;
    at = p->text;
    HR_TRY(next(p));
    HR_TRY(parse_arithmetic(p, true, &right));
    if (find_level(p, orders) != NULL)
        return fail(p, p->text, "comparisons cannot be chained; write a < b and b < c");
    return make(p, level->what, at, *ret_node, right, ret_node);
}

static enum hr_err parse_not(struct parser *p, uint16_t *ret_node)
{
    const char *at = p->text;
    uint16_t inner;
    enum hr_err code;

    if (!is(p, TOKEN_WORD, "not"))
        return parse_comparison(p, ret_node);
    HR_TRY(enter(p));
    HR_TRY(next(p));
    HR_TRY(parse_not(p, &inner));
    code = make(p, HR_EXPR_NOT, at, inner, 0, ret_node);
    p->depth--;
    return code;
}

static enum hr_err parse_and(struct parser *p, uint16_t *ret_node)
{
    uint16_t right;

    HR_TRY(parse_not(p, ret_node));
    while (is(p, TOKEN_WORD, "and")) {
        const char *at = p->text;

        HR_TRY(next(p));
        HR_TRY(parse_not(p, &right));
        HR_TRY(make(p, HR_EXPR_AND, at, *ret_node, right, ret_node));
    }
    return HR_OK;
}

static enum hr_err parse_or(struct parser *p, uint16_t *ret_node)
{
    uint16_t right;

    HR_TRY(parse_and(p, ret_node));
    while (is(p, TOKEN_WORD, "or")) {
        const char *at = p->text;

        HR_TRY(next(p));
        HR_TRY(parse_and(p, &right));
        HR_TRY(make(p, HR_EXPR_OR, at, *ret_node, right, ret_node));
    }
    return HR_OK;
}

static enum hr_err parse_all(struct parser *p)
{
    HR_TRY(next(p));
    HR_TRY(parse_or(p, &p->expr->root));
    if (p->token != TOKEN_END)
        return fail(p, p->text, "nothing is expected here; is \"and\" missing?");
    return HR_OK;
}

enum hr_err
hr__expr_parse(const char *text, struct hr_expr **ret_expr, struct hr_error *reterr)
{
    struct hr_expr *expr = hr__calloc(1, sizeof *expr);
    struct parser p = {.expr = expr, .error = reterr};
    enum hr_err code;

    if (expr == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    expr->text = hr__strdup(text);
    expr->strings = hr__malloc(2 * strlen(text) + 2); /* each name gains a NUL */
    if (expr->text == NULL || expr->strings == NULL) {
        hr__expr_destroy(expr);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    p.at = expr->text;
    code = parse_all(&p);
    if (code != HR_OK)
        hr__expr_destroy(expr);
    else
        *ret_expr = expr;
    return code;
}

void hr__expr_destroy(struct hr_expr *expr)
{
    if (expr == NULL)
        return;
    hr__free(expr->text);
    hr__free(expr->strings);
    hr__free(expr);
}
