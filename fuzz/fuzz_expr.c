/*
 * fuzz/fuzz_expr.c - any text as a condition: parse, check, evaluate.
 *
 * The text is checked against a schema with one field of each kind; an expression that
 * passes is evaluated twice with operands made from the input, with equal results.
 */
#include "op/expr.h"

#include <stdlib.h>
#include <string.h>

#include "op/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct hr_schema schema;

static void make_schema(void)
{
    struct hr_field *image = hr__schema_put(&schema, "image");

    image->dtype = HR_U8;
    image->ndim = 3;
    image->meaning = HR_MEANING_IMAGE_U8;
    image->layout = HR_LAYOUT_HWC;
    hr__schema_put(&schema, "label")->dtype = HR_I32;
    hr__schema_put(&schema, "score")->dtype = HR_F32;
    hr__schema_put(&schema, "good")->dtype = HR_BOOL;
    hr__schema_put(&schema, "path")->kind = HR_FIELD_BYTES;
}

static void
fill(const struct hr_expr *expr, const char *text, struct hr_operand *operands)
{
    size_t count, length = strlen(text);
    const struct hr_expr_ref *refs = hr__expr_refs(expr, &count);

    for (size_t i = 0; i < count; i++) {
        operands[i].kind = refs[i].kind;
        if (refs[i].kind == HR_OPERAND_INT)
            operands[i].as.integer =
                (int64_t)((uint64_t)(length + i) * (i % 2 ? INT64_MAX / 7 : 1));
        else if (refs[i].kind == HR_OPERAND_FLOAT)
            operands[i].as.number = (double)length / 3;
        else if (refs[i].kind == HR_OPERAND_BOOL)
            operands[i].as.boolean = length % 2 != 0;
        else {
            operands[i].as.string.text = text;
            operands[i].as.string.length = length / 2;
        }
    }
}

static void evaluate(struct hr_expr *expr, const char *text)
{
    struct hr_operand operands[HR_EXPR_REFS_MAX], a, b;
    struct hr_error error = {0};
    enum hr_err code;

    fill(expr, text, operands);
    code = hr__expr_eval(expr, operands, &a, &error);
    if (code != hr__expr_eval(expr, operands, &b, NULL))
        abort();
    if (code == HR_OK && (a.kind != b.kind || a.kind != hr__expr_kind(expr)))
        abort();
    if (code != HR_OK && (code != HR_ERR_RANGE || error.column < 1))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    struct hr_error error = {0};
    struct hr_expr *expr;

    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (schema.count == 0)
        make_schema();
    if (hr__expr_parse(text, &expr, &error) == HR_OK) {
        if (hr__expr_check(expr, &schema, &error) == HR_OK)
            evaluate(expr, text);
        hr__expr_destroy(expr);
    } else if (error.column < 1 || error.message[0] == '\0') {
        abort();
    }
    free(text);
    return 0;
}
