/*
 * text.split - a text to the list of its parts.
 */
#include "codec/text.h"
#include "op/ragged.h"
#include "ops/text.h"

#include <string.h>

struct split {
    const char *field, *to, *separator;
    bool empty;
};

static const struct hr_param split_params[] = {
    HR_P_STRING(struct split, separator,
                .help = "what is between parts, as it is; left out, runs of white space"),
    HR_P_BOOL(struct split, empty, .fallback = "true",
              .help = "with separator: keep parts that are empty"),
    HR_P_FIELD(struct split, field, .fallback = "text", .access = HR_ACCESS_TAKE,
               .help = "the field with the text; it is dropped"),
    HR_P_FIELD(struct split, to, .fallback = "words", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the list of parts"),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err split_infer(struct hr_infer *infer)
{
    const struct split *p = infer->params;
    struct hr_field *to = infer->fields[FIELD_TO];
    struct hr_field words = {
        .kind = HR_FIELD_STRINGS, .levels = 1, .ndim = 1, .meaning = HR_MEANING_TEXT};

    HR_TRY(hr__infer_text(infer));
    if (p->separator != NULL && p->separator[0] == '\0')
        return hr__infer_fail(infer, "separator", HR_ERR_ARGUMENT,
                              "an empty separator is nowhere in a text");
    memcpy(words.name, to->name, sizeof words.name);
    words.slot = to->slot;
    hr__dim_unknown(&words.dims[0], "words");
    *to = words;
    return HR_OK;
}

/* A walk over the parts of a text. `at` is beyond the end after the last one. */
struct walk {
    const char *text, *separator;
    size_t bytes, at, separator_bytes;
    const char *part;
    size_t part_bytes;
};

static void next_between(struct walk *w)
{
    const char *found =
        memmem(w->part, w->bytes - w->at, w->separator, w->separator_bytes);

    w->part_bytes = found != NULL ? (size_t)(found - w->part) : w->bytes - w->at;
    w->at += w->part_bytes + (found != NULL ? w->separator_bytes : 1);
}

static void next_word(struct walk *w)
{
    const uint8_t *text = (const uint8_t *)w->part;
    size_t left = w->bytes - w->at, white = hr__text_white_start(text, left);

    w->part += white;
    w->part_bytes = hr__text_until_white(text + white, left - white);
    w->at += white + w->part_bytes;
    w->at += w->part_bytes == 0;
}

static bool next_part(const struct split *p, struct walk *w)
{
    do {
        if (w->at > w->bytes)
            return false;
        w->part = w->text + w->at;
        if (w->separator != NULL)
            next_between(w);
        else
            next_word(w);
    } while (w->part_bytes == 0 && (w->separator == NULL || !p->empty));
    return true;
}

static enum hr_err split_apply(struct hr_op_ctx *ctx)
{
    const struct split *p = ctx->params;
    struct hr_value *text = ctx->fields[FIELD_FROM];
    struct walk start = {.text = text->bytes > 0 ? text->data : "",
                         .bytes = text->bytes,
                         .separator = p->separator,
                         .separator_bytes =
                             p->separator != NULL ? strlen(p->separator) : 0};
    struct walk walk = start;
    struct hr_ragged *ragged;
    int64_t count = 0, *splits;
    size_t bytes = 0;
    void *memory;
    char *items;

    for (; next_part(p, &walk); count++)
        bytes += walk.part_bytes;
    HR_TRY(hr__op_alloc(ctx, sizeof *ragged + ((size_t)count + 1) * sizeof *splits,
                        &memory));
    ragged = memory;
    splits = (int64_t *)(ragged + 1);
    *ragged = (struct hr_ragged){.levels = 1, .splits = {splits}};
    HR_TRY(hr__op_alloc(ctx, bytes, &memory));
    items = memory;
    splits[0] = 0;
    for (walk = start; next_part(p, &walk); splits++) {
        memcpy(items + splits[0], walk.part, walk.part_bytes);
        splits[1] = splits[0] + (int64_t)walk.part_bytes;
    }
    hr__value_clear(text);
    hr__ragged_set(ctx->fields[FIELD_TO], HR_U8, count, ragged, items, bytes, NULL);
    return HR_OK;
}

const struct hr_op hr_op_text_split = {
    .name = "text.split",
    .summary = "a text to the list of its parts",
    .doc = "A byte string to a list of byte strings. Without `separator` the parts are "
           "what is between white space (Unicode 16.0), none of them empty, as Python's "
           "`str.split` has them. With one they are what is between its occurrences from "
           "the left on: one more than these.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(split_params, struct split),
    .infer = split_infer,
    .apply = split_apply,
};
