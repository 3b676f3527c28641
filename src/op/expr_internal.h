/*
 * op/expr_internal.h - the tree of a condition, shared by reading, checking and
 * evaluating it.
 */
#ifndef HR_OP_EXPR_INTERNAL_H
#define HR_OP_EXPR_INTERNAL_H

#include "op/expr.h"
#include "op/schema.h"

#define HR_EXPR_NODES_MAX 256 /* bounds the depth of every recursion over the tree */
#define HR_EXPR_DEPTH_MAX 64  /* of parentheses and prefixes */

enum hr_expr_what {
    HR_EXPR_LITERAL,
    HR_EXPR_NAME,
    HR_EXPR_OR,
    HR_EXPR_AND,
    HR_EXPR_NOT,
    HR_EXPR_LT,
    HR_EXPR_LE,
    HR_EXPR_GT,
    HR_EXPR_GE,
    HR_EXPR_EQ,
    HR_EXPR_NE,
    HR_EXPR_IN, /* left in the literals `right`, `right` + 1, ... (`count` of them) */
    HR_EXPR_ADD,
    HR_EXPR_SUB,
    HR_EXPR_MUL,
    HR_EXPR_DIV,
    HR_EXPR_MOD,
    HR_EXPR_NEG,
};

struct hr_expr_node {
    enum hr_expr_what what;
    enum hr_operand_kind kind; /* LITERAL, and all nodes once checked */
    int column;
    uint16_t left, right, count; /* positions of children */
    uint16_t ref;                /* NAME, once checked */
    struct hr_operand literal;
    const char *name; /* NAME: as written, with dots */
};

struct hr_expr {
    char *text;    /* a copy */
    char *strings; /* names and unescaped strings, NUL-terminated */
    size_t strings_used;
    struct hr_expr_node nodes[HR_EXPR_NODES_MAX];
    size_t count;
    uint16_t root;
    /* checked: */
    struct hr_expr_ref refs[HR_EXPR_REFS_MAX];
    size_t ref_count;
    char names[HR_EXPR_REFS_MAX][HR_FIELD_NAME_MAX + 1];
    const char *fields[HR_EXPR_REFS_MAX];
    size_t field_count;
};

/* Sets the column and puts it before the message. */
enum hr_err hr__expr_fail(struct hr_error *error, enum hr_err code, int column,
                          const char *format, ...) HR_PRINTF(4, 5);

double hr__operand_double(const struct hr_operand *operand); /* of a number */
/* -1, 0, 1, or 2 when a NaN makes them unordered. */
int hr__operand_compare(const struct hr_operand *a, const struct hr_operand *b);
/* Whether a comparison is true of what hr__operand_compare() gives. */
bool hr__expr_holds(enum hr_expr_what what, int order);

#endif
