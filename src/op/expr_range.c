/*
 * op/expr_range.c - interval arithmetic over the tree of a condition.
 *
 * The range of a bool is [must be true, may be true]. The order of two ranges is a
 * set of the answers that hr__operand_compare() may give.
 */
#include "op/expr_range.h"

#include <assert.h>
#include <math.h>

#include "op/expr_internal.h"

struct range {
    struct hr_operand_range is;
    bool fails; /* evaluation may fail */
};

struct hr_operand_range hr__operand_any(enum hr_operand_kind kind)
{
    struct hr_operand_range any = {.low.kind = kind, .high.kind = kind};

    switch (kind) {
    case HR_OPERAND_INT:
        any.low.as.integer = INT64_MIN;
        any.high.as.integer = INT64_MAX;
        break;
    case HR_OPERAND_FLOAT:
        any.low.as.number = -INFINITY;
        any.high.as.number = INFINITY;
        any.nan = true;
        break;
    case HR_OPERAND_BOOL:
        any.high.as.boolean = true;
        break;
    case HR_OPERAND_STRING:
        any.low.as.string.text = any.high.as.string.text = "";
        any.open = true;
        break;
    }
    return any;
}

struct hr_operand_range
hr__operand_join(const struct hr_operand_range *a, const struct hr_operand_range *b)
{
    struct hr_operand_range join = *a;

    assert(a->low.kind == b->low.kind);
    if (hr__operand_compare(&b->low, &a->low) == -1)
        join.low = b->low;
    if (hr__operand_compare(&b->high, &a->high) == 1)
        join.high = b->high;
    join.open = a->open || b->open;
    join.nan = a->nan || b->nan;
    return join;
}

/* ---- orders ---- */

enum { BELOW = 1, EQUAL = 2, ABOVE = 4, UNORDERED = 8 };

static unsigned
orders_of(const struct hr_operand_range *a, const struct hr_operand_range *b)
{
    bool below = b->open || hr__operand_compare(&a->low, &b->high) == -1;
    bool above = a->open || hr__operand_compare(&a->high, &b->low) == 1;
    bool a_reaches = a->open || hr__operand_compare(&b->low, &a->high) <= 0;
    bool b_reaches = b->open || hr__operand_compare(&a->low, &b->high) <= 0;

    return (below ? BELOW : 0) | (above ? ABOVE : 0) |
           (a_reaches && b_reaches ? EQUAL : 0) | (a->nan || b->nan ? UNORDERED : 0);
}

static void set_truth(struct range *range, bool may_be_false, bool may_be_true)
{
    range->is = hr__operand_any(HR_OPERAND_BOOL);
    range->is.low.as.boolean = !may_be_false;
    range->is.high.as.boolean = may_be_true;
}

static bool may_be(const struct range *range, bool value)
{
    return value ? range->is.high.as.boolean : !range->is.low.as.boolean;
}

static void set_comparison(struct range *range, enum hr_expr_what what, unsigned orders)
{
    static const int answers[] = {-1, 0, 1, 2};
    bool yes = false, no = false;

    for (unsigned i = 0; i < 4; i++) {
        bool holds = hr__expr_holds(what, answers[i]);

        yes = yes || (holds && (orders >> i & 1) != 0);
        no = no || (!holds && (orders >> i & 1) != 0);
    }
    set_truth(range, no, yes);
}

/* ---- arithmetic ---- */

static bool add_integers(enum hr_expr_what what, int64_t a, int64_t b, int64_t *ret)
{
    return what == HR_EXPR_ADD   ? !__builtin_add_overflow(a, b, ret)
           : what == HR_EXPR_SUB ? !__builtin_sub_overflow(a, b, ret)
                                 : !__builtin_mul_overflow(a, b, ret);
}

/* Of + - * the extremes lie at the ends of the ranges. */
static void
set_integers(struct range *range, enum hr_expr_what what,
             const struct hr_operand_range *a, const struct hr_operand_range *b)
{
    int64_t least = INT64_MAX, most = INT64_MIN;

    for (int i = 0; i < 4; i++) {
        const struct hr_operand *x = i % 2 == 0 ? &a->low : &a->high;
        const struct hr_operand *y = i / 2 == 0 ? &b->low : &b->high;
        int64_t made;

        if (!add_integers(what, x->as.integer, y->as.integer, &made)) {
            range->is = hr__operand_any(HR_OPERAND_INT);
            range->fails = true;
            return;
        }
        least = made < least ? made : least;
        most = made > most ? made : most;
    }
    range->is = hr__operand_any(HR_OPERAND_INT);
    range->is.low.as.integer = least;
    range->is.high.as.integer = most;
}

static void
set_doubles(struct range *range, enum hr_expr_what what, const struct hr_operand_range *a,
            const struct hr_operand_range *b)
{
    double least = INFINITY, most = -INFINITY;

    range->is = hr__operand_any(HR_OPERAND_FLOAT);
    for (int i = 0; i < 4; i++) {
        double x = hr__operand_double(i % 2 == 0 ? &a->low : &a->high);
        double y = hr__operand_double(i / 2 == 0 ? &b->low : &b->high);
        double made = what == HR_EXPR_ADD ? x + y : what == HR_EXPR_SUB ? x - y : x * y;

        if (isnan(made))
            return;
        least = fmin(least, made);
        most = fmax(most, made);
    }
    range->is.low.as.number = least;
    range->is.high.as.number = most;
}

/* Whether dividing by the range may fail: by zero, or INT64_MIN by -1. */
static bool divides_badly(const struct hr_operand_range *by)
{
    if (by->low.kind == HR_OPERAND_INT)
        return by->low.as.integer <= 0 && by->high.as.integer >= -1;
    return by->low.as.number <= 0 && by->high.as.number >= 0;
}

static void set_arithmetic(struct range *range, const struct hr_expr_node *node,
                           const struct range *a, const struct range *b)
{
    if (node->what == HR_EXPR_DIV || node->what == HR_EXPR_MOD) {
        range->is = hr__operand_any(node->kind);
        range->fails = range->fails || divides_badly(&b->is);
    } else if (node->kind == HR_OPERAND_INT) {
        set_integers(range, node->what, &a->is, &b->is);
    } else {
        set_doubles(range, node->what, &a->is, &b->is);
    }
}

static void set_negative(struct range *range, const struct range *inner)
{
    struct hr_operand low = inner->is.low, high = inner->is.high;

    *range = *inner;
    if (low.kind == HR_OPERAND_FLOAT) {
        range->is.low.as.number = -high.as.number;
        range->is.high.as.number = -low.as.number;
    } else if (low.as.integer == INT64_MIN) {
        range->is = hr__operand_any(HR_OPERAND_INT);
        range->fails = true;
    } else {
        range->is.low.as.integer = -high.as.integer;
        range->is.high.as.integer = -low.as.integer;
    }
}

/* ---- the tree ---- */

struct walk {
    const struct hr_expr *expr;
    const struct hr_operand_range *ranges;
};

static struct range range_of(const struct walk *walk, uint16_t at);

static struct hr_operand_range only(const struct hr_operand *value)
{
    struct hr_operand_range range = {.low = *value, .high = *value};

    range.nan = value->kind == HR_OPERAND_FLOAT && isnan(value->as.number);
    if (range.nan)
        return hr__operand_any(HR_OPERAND_FLOAT);
    return range;
}

static void
set_in(const struct walk *walk, const struct hr_expr_node *node, struct range *range)
{
    struct range left = range_of(walk, node->left);
    bool yes = false, always = false;

    for (uint16_t i = 0; i < node->count; i++) {
        struct hr_operand_range item = only(&walk->expr->nodes[node->right + i].literal);
        unsigned orders = orders_of(&left.is, &item);

        yes = yes || (orders & EQUAL) != 0;
        always = always || orders == EQUAL;
    }
    range->fails = left.fails;
    set_truth(range, !always, yes);
}

/* The right side is evaluated only if the left one does not decide. */
static void
set_logic(const struct walk *walk, const struct hr_expr_node *node, struct range *range)
{
    bool decides = node->what == HR_EXPR_OR;
    struct range left = range_of(walk, node->left), right = {0};
    bool reached = may_be(&left, !decides);
    bool may_decide = may_be(&left, decides), may_not = false;

    if (reached) {
        right = range_of(walk, node->right);
        may_decide = may_decide || may_be(&right, decides);
        may_not = may_be(&right, !decides);
    }
    range->fails = left.fails || (reached && right.fails);
    set_truth(range, decides ? may_not : may_decide, decides ? may_decide : may_not);
}

static void
set_binary(const struct walk *walk, const struct hr_expr_node *node, struct range *range)
{
    struct range left = range_of(walk, node->left), right = range_of(walk, node->right);

    range->fails = left.fails || right.fails;
    if (node->what <= HR_EXPR_NE)
        set_comparison(range, node->what, orders_of(&left.is, &right.is));
    else
        set_arithmetic(range, node, &left, &right);
}

static struct range range_of(const struct walk *walk, uint16_t at)
{
    const struct hr_expr_node *node = &walk->expr->nodes[at];
    struct range range = {0}, inner;

    switch (node->what) {
    case HR_EXPR_LITERAL:
        range.is = only(&node->literal);
        break;
    case HR_EXPR_NAME:
        range.is = walk->ranges[node->ref];
        break;
    case HR_EXPR_AND:
    case HR_EXPR_OR:
        set_logic(walk, node, &range);
        break;
    case HR_EXPR_NOT:
        inner = range_of(walk, node->left);
        range.fails = inner.fails;
        set_truth(&range, may_be(&inner, true), may_be(&inner, false));
        break;
    case HR_EXPR_IN:
        set_in(walk, node, &range);
        break;
    case HR_EXPR_NEG:
        inner = range_of(walk, node->left);
        set_negative(&range, &inner);
        break;
    default:
        set_binary(walk, node, &range);
    }
    return range;
}

bool hr__expr_never(const struct hr_expr *expr, const struct hr_operand_range *ranges)
{
    struct walk walk = {.expr = expr, .ranges = ranges};
    struct range root = range_of(&walk, expr->root);

    assert(root.is.low.kind == HR_OPERAND_BOOL);
    return !root.fails && !may_be(&root, true);
}
