/*
 * ops/code_common.c - shared by the four ops of user code.
 *
 * The code is opaque: its inputs and outputs are declared in the parameters, so schemas
 * are known before any of it runs. Inputs that are named are used up: they are dropped
 * from the record unless the code outputs them. If none is named the code reads all
 * fields, and all stay except those that it outputs.
 */
#include "ops/code_common.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

const char *const hr__code_variants[] = {
    [HR_CODE_THREADS] = "threads",
    [HR_CODE_INLINE] = "inline",
    [HR_CODE_PROCESSES] = "processes",
    NULL,
};

/* ---- declarations ---- */

static enum hr_err
malformed(const char *text, const char *why, const char *at, struct hr_error *error)
{
    return hr__fail(error, HR_ERR_FORMAT,
                    "output \"%.100s\": %s at \"%.40s\"; write it as \"label: int64\", "
                    "\"image: float32[3, height, 224]\" or \"text: bytes\"",
                    text, why, at);
}

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t");
}

/* Copies letters, digits and '_' to `word`. Returns NULL if there are none or too many.
 */
static const char *take_word(const char *at, char *word, size_t room)
{
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789_");

    if (length == 0 || length >= room)
        return NULL;
    memcpy(word, at, length);
    word[length] = '\0';
    return skip_space(at + length);
}

static const char *take_dim(const char *at, struct hr_dim *dim)
{
    char word[HR_DIM_NAME_MAX + 1], *end;
    const char *next = take_word(at, word, sizeof word);
    long long size;

    if (next == NULL) {
        if (strncmp(at, "-1", 2) != 0)
            return NULL;
        hr__dim_unknown(dim, "");
        return skip_space(at + 2);
    }
    if (word[0] < '0' || word[0] > '9') {
        hr__dim_unknown(dim, word);
        return next;
    }
    size = strtoll(word, &end, 10);
    if (*end != '\0' || strlen(word) > 18)
        return NULL;
    hr__dim_set(dim, size);
    return next;
}

static enum hr_err take_dims(const char *text, const char *at, struct hr_field *field,
                             const char **ret_end, struct hr_error *error)
{
    at = skip_space(at + 1);
    while (*at != ']') {
        const char *dim = at;

        if (field->ndim == HR_MAX_DIMS)
            return malformed(text, "too many dimensions", at, error);
        at = take_dim(at, &field->dims[field->ndim]);
        if (at == NULL)
            return malformed(text, "no size, name or -1", dim, error);
        field->ndim++;
        if (*at == ',')
            at = skip_space(at + 1);
        else if (*at != ']')
            return malformed(text, "no ',' or ']'", at, error);
    }
    *ret_end = skip_space(at + 1);
    return HR_OK;
}

/* "bytes", "text", "strings[n]", "ragged int32[n]", "ragged float32[n, boxes, 4]",
 * "float32[3, 4]". */
static enum hr_err take_type(const char *text, const char *at, struct hr_field *field,
                             struct hr_error *error)
{
    char word[32];
    const char *next = take_word(at, word, sizeof word);

    if (next != NULL && strcmp(word, "ragged") == 0) {
        field->kind = HR_FIELD_RAGGED;
        at = next;
        next = take_word(at, word, sizeof word);
    }
    if (next == NULL)
        return malformed(text, "no type", at, error);
    if (strcmp(word, "bytes") == 0 || strcmp(word, "text") == 0) {
        field->kind = HR_FIELD_BYTES;
        field->meaning = word[0] == 't' ? HR_MEANING_TEXT : HR_MEANING_NONE;
    } else if (strcmp(word, "strings") == 0) {
        field->kind = HR_FIELD_STRINGS;
    } else {
        field->dtype = hr_dtype_from_name(word);
        if (field->dtype == HR_DTYPE_NONE)
            return malformed(text, "no type of this name", at, error);
    }
    if (*next == '[' && field->kind != HR_FIELD_BYTES)
        HR_TRY(take_dims(text, next, field, &next, error));
    if (*next != '\0')
        return malformed(text, "more than a type", next, error);
    if (field->kind == HR_FIELD_STRINGS && field->ndim != 1)
        return malformed(text, "a batch of strings has one dimension", at, error);
    if (field->kind == HR_FIELD_RAGGED && field->ndim < 1)
        return malformed(text, "a ragged batch has at least one dimension", at, error);
    field->levels = field->kind == HR_FIELD_STRINGS || field->kind == HR_FIELD_RAGGED;
    if (field->kind == HR_FIELD_RAGGED && field->ndim == 1)
        hr__dim_unknown(&field->dims[field->ndim++], "length");
    return HR_OK;
}

enum hr_err
hr__code_declaration(const char *text, struct hr_field *ret_field, struct hr_error *error)
{
    const char *colon = strrchr(text, ':'), *end = colon, *at = skip_space(text);
    struct hr_field field = {0};

    if (colon == NULL)
        return malformed(text, "no ':'", "", error);
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (end == at || end - at > HR_FIELD_NAME_MAX)
        return malformed(text, "no name of 1 to 63 bytes", at, error);
    memcpy(field.name, at, (size_t)(end - at));
    HR_TRY(take_type(text, skip_space(colon + 1), &field, error));
    *ret_field = field;
    return HR_OK;
}

/* ---- fields ---- */

static enum hr_err parse_outputs(const struct hr_code_params *p, struct hr_field *fields,
                                 struct hr_error *error)
{
    for (int i = 0; i < p->outputs.count; i++) {
        enum hr_err code = hr__code_declaration(p->outputs.values[i], &fields[i], error);

        for (int k = 0; code == HR_OK && k < i; k++)
            if (strcmp(fields[k].name, fields[i].name) == 0)
                code = hr__fail(error, HR_ERR_ARGUMENT, "output \"%s\" is named twice",
                                fields[i].name);
        if (code != HR_OK) {
            memcpy(error->param, "outputs", sizeof "outputs");
            return code;
        }
    }
    return HR_OK;
}

static bool is_output(const struct hr_code_params *p, const struct hr_field *outputs,
                      const char *name)
{
    for (int i = 0; i < p->outputs.count; i++)
        if (strcmp(outputs[i].name, name) == 0)
            return true;
    return false;
}

static size_t input_count(const struct hr_code_params *p, const struct hr_schema *input)
{
    return p->fields.count > 0 || input == NULL ? (size_t)p->fields.count : input->count;
}

static const char *
input_name(const struct hr_code_params *p, const struct hr_schema *input, size_t at)
{
    return p->fields.count > 0 ? p->fields.values[at] : input->fields[at].name;
}

/* A filter has no outputs and drops no fields. */
static enum hr_err
add_bindings(const struct hr_code_params *p, const struct hr_schema *input,
             const struct hr_field *outputs, struct hr_bindings *bindings,
             struct hr_error *error)
{
    for (size_t i = 0; i < input_count(p, input); i++) {
        const char *name = input_name(p, input, i);
        bool take =
            p->outputs.count > 0 && (p->fields.count > 0 || is_output(p, outputs, name));

        for (size_t k = 0; k < i; k++)
            if (strcmp(input_name(p, input, k), name) == 0)
                return hr__fail(error, HR_ERR_ARGUMENT, "field \"%s\" is named twice",
                                name);
        HR_TRY(hr__bind(bindings, name, take ? HR_ACCESS_TAKE : HR_ACCESS_READ, error));
    }
    for (int i = 0; i < p->outputs.count; i++)
        HR_TRY(hr__bind(bindings, outputs[i].name, HR_ACCESS_WRITE, error));
    return HR_OK;
}

enum hr_err
hr__code_binds(const void *params, const void *state, const struct hr_schema *input,
               struct hr_bindings *bindings, struct hr_error *error)
{
    const struct hr_code_params *p = params;
    struct hr_field *outputs = hr__calloc((size_t)p->outputs.count + 1, sizeof *outputs);
    enum hr_err code;

    (void)state;
    if (outputs == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    code = parse_outputs(p, outputs, error);
    if (code == HR_OK)
        code = add_bindings(p, input, outputs, bindings, error);
    hr__free(outputs);
    return code;
}

static bool named(const struct hr_dim *dim, const char *name)
{
    return dim->size == HR_DIM_UNKNOWN && strcmp(dim->name, name) == 0;
}

static bool may_be_channels(const struct hr_dim *dim)
{
    return dim->size == 1 || dim->size == 3 || dim->size == 4;
}

/* The layout that follows from dims named height and width. `first` is the first dim
 * after those of the batch. */
static enum hr_layout named_layout(const struct hr_field *f, int first)
{
    const struct hr_dim *d = &f->dims[first];

    if (f->kind != HR_FIELD_TENSOR || f->ndim != first + 3)
        return HR_LAYOUT_NONE;
    return named(&d[0], "height") && named(&d[1], "width")   ? HR_LAYOUT_HWC
           : named(&d[1], "height") && named(&d[2], "width") ? HR_LAYOUT_CHW
                                                             : HR_LAYOUT_NONE;
}

/* The layout of an image whose channels are the dim of 1, 3 or 4; `old` if that is
 * ambiguous. */
static enum hr_layout
short_end(const struct hr_field *f, enum hr_layout old, bool unknown_fits)
{
    const struct hr_dim *last = &f->dims[f->ndim - 1], *first = &f->dims[f->ndim - 3];
    bool hwc = may_be_channels(last) || (unknown_fits && last->size < 0);
    bool chw = may_be_channels(first) || (unknown_fits && first->size < 0);

    if (hwc && chw)
        return old;
    return hwc ? HR_LAYOUT_HWC : chw ? HR_LAYOUT_CHW : HR_LAYOUT_NONE;
}

/* Byte strings are declared as "bytes" or "text", so text may become bytes. */
static bool is_declared_bytes(const struct hr_field *f, const struct hr_field *old)
{
    return f->kind == HR_FIELD_BYTES && old->meaning == HR_MEANING_TEXT;
}

/* Other meanings are not declared. A field that had this name, dtype and number of dims
 * before keeps its meaning, and an image stays one while its dims fit an image. Dims
 * named height and width make an image, as does the name `image` for uint8. */
static void
give_meaning(struct hr_field *f, const struct hr_schema *input, int batch_rank)
{
    const struct hr_field *old = input != NULL ? hr__schema_get(input, f->name) : NULL;
    enum hr_layout layout = named_layout(f, batch_rank);
    bool floats = f->dtype == HR_F32 || f->dtype == HR_F16 || f->dtype == HR_BF16;

    if (old != NULL && old->kind == f->kind && old->dtype == f->dtype &&
        old->ndim == f->ndim) {
        bool image = hr__field_has_pixels(old);

        if (image && layout == HR_LAYOUT_NONE)
            layout = short_end(f, old->layout, true);
        f->layout = image ? layout : HR_LAYOUT_NONE;
        if (f->meaning == HR_MEANING_NONE && (!image || layout != HR_LAYOUT_NONE) &&
            !is_declared_bytes(f, old))
            f->meaning = old->meaning;
        return;
    }
    if (layout == HR_LAYOUT_NONE && f->kind == HR_FIELD_TENSOR && f->dtype == HR_U8 &&
        f->ndim == batch_rank + 3 && strcmp(f->name, "image") == 0)
        layout = short_end(f, HR_LAYOUT_HWC, false);
    if (layout == HR_LAYOUT_NONE || (f->dtype != HR_U8 && !floats))
        return;
    f->meaning = floats ? HR_MEANING_IMAGE_NORMAL : HR_MEANING_IMAGE_U8;
    f->layout = layout;
}

enum hr_err hr__code_infer(struct hr_infer *infer, bool alone)
{
    const struct hr_code_params *p = infer->params;
    size_t count = (size_t)p->outputs.count, reads = infer->field_count - count;
    struct hr_field *made = hr__calloc(count + 1, sizeof *made);
    enum hr_err code;

    if (made == NULL)
        return hr__infer_fail(infer, NULL, HR_ERR_MEMORY, "out of memory");
    code = parse_outputs(p, made, infer->error);
    for (size_t i = 0; code == HR_OK && i < count; i++) {
        give_meaning(&made[i], infer->inputs, infer->output->batch_rank);
        *infer->fields[reads + i] = made[i];
    }
    if (code == HR_OK && alone) {
        memset(infer->output->fields, 0, sizeof infer->output->fields);
        memcpy(infer->output->fields, made, count * sizeof *made);
        infer->output->count = count;
    }
    hr__free(made);
    return code;
}

/* ---- state ---- */

enum hr_err hr__code_open(const struct hr_open *open, void **ret_state)
{
    const struct hr_code_params *p = open->params;
    size_t inputs = input_count(p, open->input), outputs = (size_t)p->outputs.count;
    struct hr_code_use *use;
    const struct hr_code *code;
    enum hr_err err;

    HR_TRY(hr__code_table_find(open->codes, p->code, &code, open->error));
    use = hr__calloc(1, sizeof *use + (inputs + outputs) * sizeof use->fields[0]);
    if (use == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < inputs; i++) {
        use->fields[i] = *hr__schema_get(open->input, input_name(p, open->input, i));
        use->input_fields[i] = &use->fields[i];
    }
    err = parse_outputs(p, &use->fields[inputs], open->error);
    if (err != HR_OK) {
        hr__free(use);
        return err;
    }
    for (size_t i = 0; i < outputs; i++) {
        struct hr_field *field = &use->fields[inputs + i];

        *field = *hr__schema_get(open->output, field->name);
        use->output_fields[i] = field;
    }
    use->input_count = inputs;
    use->output_count = outputs;
    use->code = code;
    use->name = p->code;
    use->variant = (enum hr_code_variant)p->variant;
    pthread_mutex_init(&use->lock, NULL);
    *ret_state = use;
    return HR_OK;
}

void hr__code_close(void *state)
{
    struct hr_code_use *use = state;

    pthread_mutex_destroy(&use->lock);
    hr__free(use);
}

void hr__code_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct hr_code_use *use = state;

    (void)params;
    hr__hasher_add(hasher, use->code->identity, strlen(use->code->identity) + 1);
}

const struct hr_code_use *hr__code_use(const void *state)
{
    return state;
}
