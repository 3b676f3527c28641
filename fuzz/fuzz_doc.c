/*
 * fuzz/fuzz_doc.c - any bytes as YAML and as JSON: no crash, and a document prints to
 * text that parses to an equal one.
 *
 * By hand: clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Iinclude -Isrc
 * fuzz/fuzz_doc.c src/core/[a-z]*.c (without the tests) -lyaml -lxxhash -lm
 */
#include "core/doc.h"
#include "core/str.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void demand(bool condition, const char *what, const struct hr_str *text)
{
    if (condition)
        return;
    fprintf(stderr, "%s:\n%s\n", what, hr__str_text(text));
    abort();
}

/* NaN has no form in JSON: it becomes null there. */
static bool has_nan(const struct hr_doc *doc)
{
    bool found = doc->kind == HR_DOC_DOUBLE && doc->as.number != doc->as.number;

    for (size_t i = 0; doc->kind == HR_DOC_LIST && i < doc->as.list.count; i++)
        found |= has_nan(doc->as.list.items[i]);
    for (size_t i = 0; doc->kind == HR_DOC_MAP && i < doc->as.map.count; i++)
        found |= has_nan(doc->as.map.pairs[i].value);
    return found;
}

static void
check_text(const struct hr_doc *doc, const char *name, const struct hr_str *text)
{
    struct hr_error error = {0};
    struct hr_doc *back = NULL;

    demand(hr__str_ok(text), "not printed", text);
    if (hr__doc_parse(text->text, text->length, name, &back, &error) != HR_OK)
        demand(false, error.message, text);
    demand(hr__doc_equal(doc, back), "not equal", text);
    hr__doc_destroy(back);
}

static void check_forms(const struct hr_doc *doc)
{
    struct hr_str text;

    hr__str_init(&text);
    hr__doc_print_yaml(doc, &text);
    check_text(doc, "back.yaml", &text);
    if (!has_nan(doc)) {
        for (int pretty = 0; pretty < 2; pretty++) {
            hr__str_clear(&text);
            hr__doc_print_json(doc, pretty != 0, &text);
            check_text(doc, "back.json", &text);
        }
        hr__str_clear(&text);
        hr__doc_print_canonical(doc, &text);
        check_text(doc, "canonical.json", &text);
    }
    hr__str_finish(&text);
}

static void check_as(const char *name, const uint8_t *data, size_t bytes)
{
    struct hr_error error = {0};
    struct hr_doc *doc = NULL, *copy;

    if (hr__doc_parse((const char *)data, bytes, name, &doc, &error) != HR_OK) {
        if (doc != NULL || error.message[0] == '\0' || error.line < 1 || error.column < 1)
            abort();
        return;
    }
    copy = hr__doc_copy(doc);
    if (copy == NULL || !hr__doc_equal(doc, copy))
        abort();
    hr__doc_destroy(doc);
    check_forms(copy);
    hr__doc_destroy(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    check_as("in.yaml", data, bytes);
    check_as("in.json", data, bytes);
    return 0;
}
