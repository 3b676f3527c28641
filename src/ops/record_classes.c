/*
 * record.classes - gives names to the numbers of a field of class numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/doc.h"
#include "op/op.h"

struct named {
    const char *field;
    const struct hr_doc *classes; /* a list of texts */
};

static const struct hr_param classes_params[] = {
    HR_P_FIELD(struct named, field, .required = true, .access = HR_ACCESS_UPDATE,
               .help = "the field with class numbers: integers of any shape"),
    HR_P_TEXTS(struct named, classes, .required = true, .items_min = 1,
               .items_max = 1 << 24,
               .help = "names of the classes in the order of their numbers, from 0"),
};

/* The state: the names, which are the parameter's. */
struct names {
    struct hr_field_classes classes;
    const char *texts[];
};

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* HR_ERR_ARGUMENT if a name is there twice; leaves the names in their order. */
static enum hr_err check_twice(const struct names *names, struct hr_error *error)
{
    size_t count = names->classes.count;
    const char **sorted = hr__malloc(count * sizeof *sorted);
    enum hr_err code = HR_OK;

    if (sorted == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    memcpy(sorted, names->texts, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_texts);
    for (size_t i = 1; code == HR_OK && i < count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            code = hr__fail(error, HR_ERR_ARGUMENT, "two classes are called \"%s\"",
                            sorted[i]);
    hr__free(sorted);
    if (code != HR_OK)
        snprintf(error->param, sizeof error->param, "classes");
    return code;
}

static enum hr_err
classes_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct named *p = params;
    size_t count = p->classes->as.list.count;
    struct names *names = hr__malloc(sizeof *names + count * sizeof *names->texts);
    enum hr_err code;

    if (names == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++)
        names->texts[i] = p->classes->as.list.items[i]->as.string.text;
    names->classes = (struct hr_field_classes){names->texts, count};
    code = check_twice(names, error);
    if (code == HR_OK)
        *ret_state = names;
    else
        hr__free(names);
    return code;
}

static enum hr_err classes_infer(struct hr_infer *infer)
{
    const struct names *names = infer->state;
    struct hr_field *field = infer->fields[0];
    char text[128];

    if ((field->kind != HR_FIELD_TENSOR && field->kind != HR_FIELD_RAGGED) ||
        !hr__dtype_is_integer(field->dtype))
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" is %s; class numbers are integers",
                              field->name, hr__field_text(field, text, sizeof text));
    field->meaning = HR_MEANING_LABEL;
    field->layout = HR_LAYOUT_NONE; /* class numbers are no pixels, also of a mask */
    field->classes = &names->classes;
    return HR_OK;
}

static enum hr_err classes_apply(struct hr_op_ctx *ctx)
{
    ctx->fields[0]->layout = HR_LAYOUT_NONE;
    return HR_OK;
}

const struct hr_op hr_op_record_classes = {
    .name = "record.classes",
    .summary = "name the classes whose numbers a field has",
    .doc = "For labels that come as numbers: in tables, arrays and data sets in Python. "
           "States, `inspect` and contact sheets then have the names, and resuming with "
           "others, or mixing with a source that numbers classes otherwise, is refused. "
           "The numbers stay as they are and are not checked: -1 for a record without a "
           "label is fine.",
    .version = 2,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY | HR_TRAIT_BATCHED,
    HR_PARAMS(classes_params, struct named),
    .prepare = classes_prepare,
    .infer = classes_infer,
    .close = hr__free,
    .apply = classes_apply,
};
