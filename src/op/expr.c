/*
 * op/expr.c - giving the names of a condition their fields and types, and evaluating it.
 *
 * All questions of type are settled by the check, so evaluation is a walk over the tree
 * with a switch per node. Comparing an integer with a float is done in double.
 */
#include "op/expr_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/str.h"

/* ---- check ---- */

struct check {
    struct hr_expr *expr;
    struct hr_schema *schema; /* only looked at */
    struct hr_error *error;
};

static const char *const members[] = {"height", "width", "channels", "length"};
#define MEMBER_COUNT (sizeof members / sizeof members[0])

static const char *kind_name(enum hr_operand_kind kind)
{
    static const char *const names[] = {"an int", "a float", "a bool", "a string"};

    return names[kind];
}

static bool is_number(enum hr_operand_kind kind)
{
    return kind == HR_OPERAND_INT || kind == HR_OPERAND_FLOAT;
}

/* HR_MEMBER_VALUE when it is no member. */
static enum hr_member member_of(const char *word)
{
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (strcmp(members[i], word) == 0)
            return (enum hr_member)(HR_MEMBER_HEIGHT + i);
    }
    return HR_MEMBER_VALUE;
}

static enum hr_err
unknown_field(struct check *c, const struct hr_expr_node *node, const char *name)
{
    const char *names[HR_SCHEMA_FIELDS_MAX], *near;
    struct hr_str all;

    hr__str_init(&all);
    for (size_t i = 0; i < c->schema->count; i++) {
        names[i] = c->schema->fields[i].name;
        hr__str_addf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    near = hr__nearest(name, names, c->schema->count);
    hr__expr_fail(c->error, HR_ERR_GRAPH, node->column,
                  "there is no field \"%.63s\"%s%s%s here: %s", name,
                  near != NULL ? "; did you mean \"" : "; fields",
                  near != NULL ? near : "", near != NULL ? "\"? Fields" : "",
                  hr__str_text(&all));
    hr__str_finish(&all);
    return HR_ERR_GRAPH;
}

/* The only image field, for bare `height`. */
static enum hr_err
only_image(struct check *c, const struct hr_expr_node *node, struct hr_field **ret_field)
{
    struct hr_field *found = NULL;

    for (size_t i = 0; i < c->schema->count; i++) {
        struct hr_field *field = &c->schema->fields[i];

        if (!hr__field_is_image(field))
            continue;
        if (found != NULL)
            return hr__expr_fail(c->error, HR_ERR_GRAPH, node->column,
                                 "there are several images; write %s.%s or %s.%s",
                                 found->name, node->name, field->name, node->name);
        found = field;
    }
    if (found == NULL)
        return unknown_field(c, node, node->name);
    *ret_field = found;
    return HR_OK;
}

/* Which field and which part of it a name means. */
static enum hr_err resolve(struct check *c, const struct hr_expr_node *node,
                           struct hr_field **ret_field, enum hr_member *ret_member)
{
    struct hr_field *field = hr__schema_find(c->schema, node->name);
    const char *dot = strrchr(node->name, '.'), *near;
    char head[HR_FIELD_NAME_MAX + 1];

    *ret_member = HR_MEMBER_VALUE;
    if (field != NULL) {
        *ret_field = field;
        return HR_OK;
    }
    if (dot == NULL) {
        *ret_member = member_of(node->name);
        if (*ret_member == HR_MEMBER_VALUE || *ret_member == HR_MEMBER_LENGTH)
            return unknown_field(c, node, node->name);
        return only_image(c, node, ret_field);
    }
    snprintf(head, sizeof head, "%.*s", (int)(dot - node->name), node->name);
    *ret_field = hr__schema_find(c->schema, head);
    if (*ret_field == NULL)
        return unknown_field(c, node, head);
    *ret_member = member_of(dot + 1);
    if (*ret_member != HR_MEMBER_VALUE)
        return HR_OK;
    near = hr__nearest(dot + 1, members, MEMBER_COUNT);
    return hr__expr_fail(c->error, HR_ERR_GRAPH, node->column,
                         "field \"%s\" has no \"%.63s\"%s%s%s", head, dot + 1,
                         near != NULL ? "; did you mean \""
                                      : "; there are height, width, "
                                        "channels, length",
                         near != NULL ? near : "", near != NULL ? "\"?" : "");
}

static enum hr_err
type_of(struct check *c, const struct hr_expr_node *node, const struct hr_field *field,
        enum hr_member member, enum hr_operand_kind *ret_kind)
{
    bool scalar = field->kind == HR_FIELD_TENSOR && field->ndim == 0;
    bool bytes = field->kind == HR_FIELD_BYTES;
    char text[128];

    hr__field_text(field, text, sizeof text);
    *ret_kind = HR_OPERAND_INT;
    if (member == HR_MEMBER_LENGTH) {
        if (bytes || (field->kind == HR_FIELD_TENSOR && field->ndim > 0))
            return HR_OK;
        return hr__expr_fail(c->error, HR_ERR_TYPE, node->column,
                             "field \"%s\" is %s, which has no length", field->name,
                             text);
    }
    if (member != HR_MEMBER_VALUE) {
        if (hr__field_has_pixels(field))
            return HR_OK;
        return hr__expr_fail(c->error, HR_ERR_TYPE, node->column,
                             "field \"%s\" is %s, not an image, so it has no %s",
                             field->name, text, members[member - HR_MEMBER_HEIGHT]);
    }
    if (bytes) {
        *ret_kind = HR_OPERAND_STRING;
        return HR_OK;
    }
    if (!scalar)
        return hr__expr_fail(c->error, HR_ERR_TYPE, node->column,
                             "field \"%s\" is %s; only single numbers and strings can be "
                             "compared, or its sizes, such as %s.%s",
                             field->name, text, field->name,
                             hr__field_has_pixels(field) ? "height" : "length");
    switch (field->dtype) {
    case HR_BOOL:
        *ret_kind = HR_OPERAND_BOOL;
        break;
    case HR_F16:
    case HR_BF16:
    case HR_F32:
    case HR_F64:
        *ret_kind = HR_OPERAND_FLOAT;
        break;
    default:
        break;
    }
    return HR_OK;
}

static size_t add_field(struct hr_expr *expr, const char *name)
{
    size_t i = 0;

    while (i < expr->field_count && strcmp(expr->fields[i], name) != 0)
        i++;
    if (i < expr->field_count)
        return i;
    assert(i < HR_EXPR_REFS_MAX && strlen(name) <= HR_FIELD_NAME_MAX);
    memcpy(expr->names[i], name, strlen(name) + 1);
    expr->fields[i] = expr->names[i];
    return expr->field_count++;
}

static enum hr_err check_name(struct check *c, struct hr_expr_node *node)
{
    struct hr_expr *expr = c->expr;
    struct hr_field *field = NULL;
    enum hr_member member;
    size_t at = 0, i = 0;

    HR_TRY(resolve(c, node, &field, &member));
    HR_TRY(type_of(c, node, field, member, &node->kind));
    while (i < expr->ref_count &&
           (expr->refs[i].member != member ||
            strcmp(expr->fields[expr->refs[i].field], field->name) != 0))
        i++;
    if (i == HR_EXPR_REFS_MAX)
        return hr__expr_fail(c->error, HR_ERR_LIMIT, node->column,
                             "the expression reads more than %d values",
                             HR_EXPR_REFS_MAX);
    if (i == expr->ref_count) {
        at = add_field(expr, field->name);
        expr->refs[expr->ref_count++] =
            (struct hr_expr_ref){.field = at, .member = member, .kind = node->kind};
    }
    node->ref = (uint16_t)i;
    return HR_OK;
}

static enum hr_err want(struct check *c, const struct hr_expr_node *node,
                        const struct hr_expr_node *part, bool ok, const char *wants)
{
    if (ok)
        return HR_OK;
    return hr__expr_fail(c->error, HR_ERR_TYPE, part->column,
                         "%s wants %s, and this is %s",
                         node->what == HR_EXPR_AND   ? "\"and\""
                         : node->what == HR_EXPR_OR  ? "\"or\""
                         : node->what == HR_EXPR_NOT ? "\"not\""
                                                     : "arithmetic",
                         wants, kind_name(part->kind));
}

static enum hr_err
comparable(struct check *c, const struct hr_expr_node *node, const struct hr_expr_node *a,
           const struct hr_expr_node *b, bool ordered)
{
    bool numbers = is_number(a->kind) && is_number(b->kind);
    bool same = a->kind == b->kind && (!ordered || a->kind == HR_OPERAND_STRING);

    if (numbers || same)
        return HR_OK;
    if (a->kind == b->kind)
        return hr__expr_fail(c->error, HR_ERR_TYPE, node->column,
                             "bools have no order; compare them with == or !=");
    return hr__expr_fail(c->error, HR_ERR_TYPE, node->column,
                         "%s cannot be compared with %s", kind_name(a->kind),
                         kind_name(b->kind));
}

static enum hr_err check_node(struct check *c, uint16_t at);

static enum hr_err check_in(struct check *c, struct hr_expr_node *node)
{
    struct hr_expr_node *nodes = c->expr->nodes;

    HR_TRY(check_node(c, node->left));
    for (uint16_t i = 0; i < node->count; i++)
        HR_TRY(comparable(c, &nodes[node->right + i], &nodes[node->left],
                          &nodes[node->right + i], false));
    node->kind = HR_OPERAND_BOOL;
    return HR_OK;
}

static enum hr_err check_binary(struct check *c, struct hr_expr_node *node)
{
    const struct hr_expr_node *a = &c->expr->nodes[node->left];
    const struct hr_expr_node *b = &c->expr->nodes[node->right];
    bool logic = node->what == HR_EXPR_AND || node->what == HR_EXPR_OR;

    HR_TRY(check_node(c, node->left));
    HR_TRY(check_node(c, node->right));
    if (logic) {
        HR_TRY(want(c, node, a, a->kind == HR_OPERAND_BOOL, "conditions"));
        HR_TRY(want(c, node, b, b->kind == HR_OPERAND_BOOL, "conditions"));
    } else if (node->what <= HR_EXPR_NE) {
        HR_TRY(comparable(c, node, a, b, node->what < HR_EXPR_EQ));
    } else {
        HR_TRY(want(c, node, a, is_number(a->kind), "numbers"));
        HR_TRY(want(c, node, b, is_number(b->kind), "numbers"));
        node->kind = a->kind == HR_OPERAND_INT && b->kind == HR_OPERAND_INT
                         ? HR_OPERAND_INT
                         : HR_OPERAND_FLOAT;
        return HR_OK;
    }
    node->kind = HR_OPERAND_BOOL;
    return HR_OK;
}

static enum hr_err check_node(struct check *c, uint16_t at)
{
    struct hr_expr_node *node = &c->expr->nodes[at];
    const struct hr_expr_node *inner = &c->expr->nodes[node->left];

    assert(at < c->expr->count);
    switch (node->what) {
    case HR_EXPR_LITERAL:
        return HR_OK;
    case HR_EXPR_NAME:
        return check_name(c, node);
    case HR_EXPR_IN:
        return check_in(c, node);
    case HR_EXPR_NOT:
        HR_TRY(check_node(c, node->left));
        node->kind = HR_OPERAND_BOOL;
        return want(c, node, inner, inner->kind == HR_OPERAND_BOOL, "a condition");
    case HR_EXPR_NEG:
        HR_TRY(check_node(c, node->left));
        node->kind = inner->kind;
        return want(c, node, inner, is_number(inner->kind), "numbers");
    default:
        return check_binary(c, node);
    }
}

enum hr_err hr__expr_check(struct hr_expr *expr, const struct hr_schema *schema,
                           struct hr_error *reterr)
{
    struct check c = {
        .expr = expr, .schema = (struct hr_schema *)(uintptr_t)schema, .error = reterr};
    enum hr_err code;

    expr->ref_count = 0;
    expr->field_count = 0;
    code = check_node(&c, expr->root);
    if (code != HR_OK) {
        expr->ref_count = 0;
        expr->field_count = 0;
    }
    return code;
}

enum hr_operand_kind hr__expr_kind(const struct hr_expr *expr)
{
    return expr->nodes[expr->root].kind;
}

const char *const *hr__expr_fields(const struct hr_expr *expr, size_t *ret_count)
{
    *ret_count = expr->field_count;
    return expr->fields;
}

const struct hr_expr_ref *hr__expr_refs(const struct hr_expr *expr, size_t *ret_count)
{
    *ret_count = expr->ref_count;
    return expr->refs;
}

/* ---- evaluate ---- */

struct eval {
    const struct hr_expr *expr;
    const struct hr_operand *operands;
    struct hr_error *error;
};

double hr__operand_double(const struct hr_operand *operand)
{
    return operand->kind == HR_OPERAND_INT ? (double)operand->as.integer
                                           : operand->as.number;
}

static struct hr_operand truth(bool value)
{
    return (struct hr_operand){.kind = HR_OPERAND_BOOL, .as.boolean = value};
}

/* Exactly: an integer is not rounded. */
static int compare_mixed(int64_t a, double b)
{
    int64_t whole;

    if (isnan(b))
        return 2;
    if (b >= 0x1p63)
        return -1;
    if (b < -0x1p63)
        return 1;
    whole = (int64_t)b; /* toward zero */
    if (a != whole)
        return a < whole ? -1 : 1;
    return b > (double)whole ? -1 : b < (double)whole;
}

int hr__operand_compare(const struct hr_operand *a, const struct hr_operand *b)
{
    double x, y;
    int order;

    if (a->kind == HR_OPERAND_STRING) {
        size_t la = a->as.string.length, lb = b->as.string.length;
        size_t shorter = la < lb ? la : lb;

        order = shorter > 0 ? memcmp(a->as.string.text, b->as.string.text, shorter) : 0;
        if (order != 0)
            return order < 0 ? -1 : 1;
        return la < lb ? -1 : la > lb;
    }
    if (a->kind == HR_OPERAND_BOOL)
        return (int)a->as.boolean - (int)b->as.boolean;
    if (a->kind == HR_OPERAND_INT && b->kind == HR_OPERAND_INT)
        return a->as.integer < b->as.integer ? -1 : a->as.integer > b->as.integer;
    if (a->kind == HR_OPERAND_INT)
        return compare_mixed(a->as.integer, b->as.number);
    if (b->kind == HR_OPERAND_INT) {
        order = compare_mixed(b->as.integer, a->as.number);
        return order == 2 ? 2 : -order;
    }
    x = a->as.number;
    y = b->as.number;
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

bool hr__expr_holds(enum hr_expr_what what, int order)
{
    switch (what) {
    case HR_EXPR_LT:
        return order == -1;
    case HR_EXPR_LE:
        return order == -1 || order == 0;
    case HR_EXPR_GT:
        return order == 1;
    case HR_EXPR_GE:
        return order == 1 || order == 0;
    case HR_EXPR_EQ:
        return order == 0;
    default:
        return order != 0;
    }
}

static enum hr_err integers(const struct eval *e, const struct hr_expr_node *node,
                            int64_t a, int64_t b, int64_t *ret)
{
    bool overflow = false;

    switch (node->what) {
    case HR_EXPR_ADD:
        overflow = __builtin_add_overflow(a, b, ret);
        break;
    case HR_EXPR_SUB:
        overflow = __builtin_sub_overflow(a, b, ret);
        break;
    case HR_EXPR_MUL:
        overflow = __builtin_mul_overflow(a, b, ret);
        break;
    default:
        if (b == 0)
            return hr__expr_fail(e->error, HR_ERR_RANGE, node->column,
                                 "division by zero");
        if (b == -1) /* INT64_MIN / -1 traps on some machines */
            overflow = node->what == HR_EXPR_DIV && __builtin_sub_overflow(0, a, ret);
        else
            *ret = node->what == HR_EXPR_DIV ? a / b : a % b;
        if (b == -1 && node->what == HR_EXPR_MOD)
            *ret = 0;
    }
    if (overflow)
        return hr__expr_fail(e->error, HR_ERR_RANGE, node->column, "integer overflow");
    return HR_OK;
}

static enum hr_err doubles(const struct eval *e, const struct hr_expr_node *node,
                           double a, double b, double *ret)
{
    bool divides = node->what == HR_EXPR_DIV || node->what == HR_EXPR_MOD;

    if (divides && b == 0)
        return hr__expr_fail(e->error, HR_ERR_RANGE, node->column, "division by zero");
    *ret = node->what == HR_EXPR_ADD   ? a + b
           : node->what == HR_EXPR_SUB ? a - b
           : node->what == HR_EXPR_MUL ? a * b
           : node->what == HR_EXPR_DIV ? a / b
                                       : fmod(a, b);
    return HR_OK;
}

static enum hr_err eval(const struct eval *e, uint16_t at, struct hr_operand *ret);

static enum hr_err
eval_in(const struct eval *e, const struct hr_expr_node *node, struct hr_operand *ret)
{
    struct hr_operand left;
    bool found = false;

    HR_TRY(eval(e, node->left, &left));
    for (uint16_t i = 0; i < node->count && !found; i++)
        found = hr__operand_compare(&left, &e->expr->nodes[node->right + i].literal) == 0;
    *ret = truth(found);
    return HR_OK;
}

static enum hr_err eval_arithmetic(const struct eval *e, const struct hr_expr_node *node,
                                   struct hr_operand *ret)
{
    struct hr_operand a, b, made = {.kind = node->kind};

    HR_TRY(eval(e, node->left, &a));
    HR_TRY(eval(e, node->right, &b));
    if (node->what <= HR_EXPR_NE)
        made = truth(hr__expr_holds(node->what, hr__operand_compare(&a, &b)));
    else if (node->kind == HR_OPERAND_INT)
        HR_TRY(integers(e, node, a.as.integer, b.as.integer, &made.as.integer));
    else
        HR_TRY(doubles(e, node, hr__operand_double(&a), hr__operand_double(&b),
                       &made.as.number));
    *ret = made;
    return HR_OK;
}

static enum hr_err eval_negative(const struct eval *e, const struct hr_expr_node *node,
                                 struct hr_operand *ret)
{
    HR_TRY(eval(e, node->left, ret));
    if (ret->kind == HR_OPERAND_FLOAT)
        ret->as.number = -ret->as.number;
    else if (__builtin_sub_overflow(0, ret->as.integer, &ret->as.integer))
        return hr__expr_fail(e->error, HR_ERR_RANGE, node->column, "integer overflow");
    return HR_OK;
}

static enum hr_err eval(const struct eval *e, uint16_t at, struct hr_operand *ret)
{
    const struct hr_expr_node *node = &e->expr->nodes[at];

    assert(at < e->expr->count);
    switch (node->what) {
    case HR_EXPR_LITERAL:
        *ret = node->literal;
        return HR_OK;
    case HR_EXPR_NAME:
        assert(node->ref < e->expr->ref_count);
        *ret = e->operands[node->ref];
        return HR_OK;
    case HR_EXPR_AND:
    case HR_EXPR_OR:
        HR_TRY(eval(e, node->left, ret));
        if (ret->as.boolean == (node->what == HR_EXPR_OR))
            return HR_OK;
        return eval(e, node->right, ret);
    case HR_EXPR_NOT:
        HR_TRY(eval(e, node->left, ret));
        ret->as.boolean = !ret->as.boolean;
        return HR_OK;
    case HR_EXPR_IN:
        return eval_in(e, node, ret);
    case HR_EXPR_NEG:
        return eval_negative(e, node, ret);
    default:
        return eval_arithmetic(e, node, ret);
    }
}

enum hr_err hr__expr_eval(const struct hr_expr *expr, const struct hr_operand *operands,
                          struct hr_operand *ret_result, struct hr_error *reterr)
{
    struct eval e = {.expr = expr, .operands = operands, .error = reterr};
    struct hr_operand result;

    assert(operands != NULL || expr->ref_count == 0);
    HR_TRY(eval(&e, expr->root, &result));
    *ret_result = result;
    return HR_OK;
}
