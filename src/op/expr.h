/*
 * op/expr.h - the small language of conditions: `label < 10 and image.height >= 64`.
 *
 *     or | and | not | < <= > >= == != in | + - | * / % | unary -
 *
 * Operands are integers, floats, strings in quotes, true, false, and names of fields: a
 * scalar tensor is a number or a bool, a byte string is text. `f.height`, `f.width`,
 * `f.channels` are the sizes of image field f, `f.length` is the bytes of a byte string
 * or the first dimension of a tensor. Bare `height`, `width`, `channels` mean the only
 * image field when no field has that name. `x in [1, 2, 3]` compares with a list of
 * literals.
 *
 * An expression is parsed, then checked against a schema, which gives every name a field
 * and a type; nonsense ("abc" < 3, not 5) is refused there, so that evaluation can only
 * fail by division by zero or integer overflow. Integers stay integers; `/` of integers
 * truncates and `%` has the sign of the left side, as in C; with a float on either side
 * both are floats. Evaluation allocates nothing and may be done by many threads.
 */
#ifndef HR_OP_EXPR_H
#define HR_OP_EXPR_H

#include "headrace/base.h"

struct hr_schema;
struct hr_expr;

enum hr_operand_kind {
    HR_OPERAND_INT,
    HR_OPERAND_FLOAT,
    HR_OPERAND_BOOL,
    HR_OPERAND_STRING,
};

struct hr_operand {
    enum hr_operand_kind kind;
    union {
        int64_t integer;
        double number;
        bool boolean;
        struct {
            const char *text; /* need not end with NUL */
            size_t length;
        } string;
    } as;
};

/* Which part of a field a reference wants. All but VALUE and LENGTH are known from the
 * description of a deferred image; LENGTH of an image is its first dimension. */
enum hr_member {
    HR_MEMBER_VALUE, /* the scalar, or the text */
    HR_MEMBER_HEIGHT,
    HR_MEMBER_WIDTH,
    HR_MEMBER_CHANNELS,
    HR_MEMBER_LENGTH,
};

/* One distinct (field, member) of a checked expression. `field` is the position of the
 * field's name in hr__expr_fields(). `kind` is what the operand must be: INT for members
 * and integer tensors, FLOAT for float tensors, BOOL, STRING. */
struct hr_expr_ref {
    size_t field;
    enum hr_member member;
    enum hr_operand_kind kind;
};

#define HR_EXPR_REFS_MAX 32

/* On failure *reterr has column (1-based in `text`) and a message. `text` is copied. */
HR_CHECK enum hr_err
hr__expr_parse(const char *text, struct hr_expr **ret_expr, struct hr_error *reterr);
void hr__expr_destroy(struct hr_expr *expr); /* NULL is fine */

/* Give every name its field and type. May be repeated with another schema. On failure the
 * expression counts as not checked; the message names the nearest field. */
HR_CHECK enum hr_err hr__expr_check(struct hr_expr *expr, const struct hr_schema *schema,
                                    struct hr_error *reterr);

/* What a checked expression gives. */
enum hr_operand_kind hr__expr_kind(const struct hr_expr *expr);

/* Distinct field names a checked expression reads, in order of first use; they live as
 * long as the expression or its next check. */
const char *const *hr__expr_fields(const struct hr_expr *expr, size_t *ret_count);

/* Distinct references, in order of first use; evaluation takes one operand for each. */
const struct hr_expr_ref *hr__expr_refs(const struct hr_expr *expr, size_t *ret_count);

/* Evaluate a checked expression; operands[i] belongs to refs[i]. HR_ERR_RANGE on division
 * by zero and on integer overflow. */
HR_CHECK enum hr_err
hr__expr_eval(const struct hr_expr *expr, const struct hr_operand *operands,
              struct hr_operand *ret_result, struct hr_error *reterr);

#endif
