/*
 * tokens.vocab_lookup - words to their ids in a vocabulary.
 *
 * The vocabulary is the node's state, which all threads share. The words and ids, not the
 * path, are part of the fingerprint.
 */
#include "codec/vocab.h"
#include "core/alloc.h"
#include "core/file.h"
#include "op/op.h"
#include "op/ragged.h"

#include <string.h>

struct lookup {
    const char *field, *to, *path, *unknown;
    bool skip_unknown;
};

static const struct hr_param lookup_params[] = {
    HR_P_PATH(struct lookup, path, .required = true, .not_identity = true,
              .help =
                  "the vocabulary: a word per line, whose id is the number of the line "
                  "from 0; or, if it ends in .json, an object of words and ids"),
    HR_P_STRING(struct lookup, unknown,
                .help = "the word of the vocabulary whose id all unknown words get; left "
                        "out, an unknown word is an error"),
    HR_P_BOOL(struct lookup, skip_unknown, .fallback = "false",
              .help = "leave unknown words out of lists"),
    HR_P_FIELD(struct lookup, field, .fallback = "words", .access = HR_ACCESS_TAKE,
               .help = "the field with the words, or with one word; it is dropped"),
    HR_P_FIELD(struct lookup, to, .fallback = "tokens", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes the ids"),
};

enum { FIELD_FROM, FIELD_TO };

static enum hr_err lookup_infer(struct hr_infer *infer)
{
    const struct lookup *p = infer->params;
    const struct hr_field *from = hr__schema_get(&infer->inputs[0], p->field);
    struct hr_field *to = infer->fields[FIELD_TO];
    struct hr_field ids = {.kind = HR_FIELD_TENSOR, .dtype = HR_I32};
    bool list = from->kind == HR_FIELD_STRINGS && from->levels == 1;

    if (from->kind != HR_FIELD_BYTES && !list)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must be a list of byte strings (text.split "
                              "makes one) or one byte string",
                              p->field);
    if (p->skip_unknown && (!list || p->unknown != NULL))
        return hr__infer_fail(infer, "skip_unknown", HR_ERR_ARGUMENT,
                              list ? "give either unknown or skip_unknown"
                                   : "one word cannot be left out");
    ids.ndim = list;
    if (list)
        ids.dims[0] = from->dims[0];
    if (p->skip_unknown)
        hr__dim_unknown(&ids.dims[0], "tokens");
    memcpy(ids.name, to->name, sizeof ids.name);
    ids.slot = to->slot;
    *to = ids;
    return HR_OK;
}

/* ---- state ---- */

struct state {
    struct hr_vocab *vocab;
    int32_t unknown; /* or -1 */
};

static void lookup_close(void *state)
{
    hr__vocab_destroy(((struct state *)state)->vocab);
    hr__free(state);
}

static enum hr_err
read_vocab(const struct lookup *p, struct state *state, struct hr_error *error)
{
    struct hr_tokenizer_file file = {.name = p->path};
    enum hr_err err;
    char *data;

    HR_TRY(hr__file_read(p->path, HR_TOKENIZER_FILE_MAX, &data, &file.bytes, error));
    file.data = data;
    err = hr__vocab_read(&file, &state->vocab, error);
    hr__free(data);
    if (err != HR_OK)
        return err;
    state->unknown = p->unknown != NULL
                         ? hr__vocab_find(state->vocab, p->unknown, strlen(p->unknown))
                         : -1;
    if (p->unknown != NULL && state->unknown < 0)
        return hr__fail(error, HR_ERR_NOT_FOUND,
                        "the word \"%.100s\" for unknown words is not in %s", p->unknown,
                        p->path);
    return HR_OK;
}

static enum hr_err lookup_open(const struct hr_open *open, void **ret_state)
{
    struct state *state = hr__calloc(1, sizeof *state);
    enum hr_err err;

    if (state == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    err = read_vocab(open->params, state, open->error);
    if (err != HR_OK) {
        lookup_close(state);
        return err;
    }
    *ret_state = state;
    return HR_OK;
}

static void
lookup_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct hr_hash128 hash = hr__vocab_hash(((const struct state *)state)->vocab);

    (void)params;
    hr__hasher_add(hasher, &hash, sizeof hash);
}

/* ---- records ---- */

static enum hr_err
find(struct hr_op_ctx *ctx, const char *word, size_t bytes, int32_t *ret_id)
{
    const struct lookup *p = ctx->params;
    const struct state *state = ctx->state;

    *ret_id = hr__vocab_find(state->vocab, word, bytes);
    if (*ret_id < 0)
        *ret_id = state->unknown;
    if (*ret_id < 0 && !p->skip_unknown)
        return hr__fail(ctx->error, HR_ERR_NOT_FOUND,
                        "the word \"%.*s\" is not in %s: give the word that stands for "
                        "unknown ones as `unknown`, or skip_unknown",
                        (int)(bytes < 100 ? bytes : 100), word, p->path);
    return HR_OK;
}

static enum hr_err find_list(struct hr_op_ctx *ctx, const struct hr_value *words)
{
    const int64_t *splits = words->u.ragged->splits[0];
    int64_t count = 0;
    void *memory;

    HR_TRY(hr__op_alloc(ctx, (size_t)words->dims[0] * sizeof(int32_t), &memory));
    for (int64_t i = 0; i < words->dims[0]; i++) {
        int32_t id;

        HR_TRY(find(ctx, (const char *)words->data + splits[i],
                    (size_t)(splits[i + 1] - splits[i]), &id));
        if (id >= 0)
            ((int32_t *)memory)[count++] = id;
    }
    hr__value_clear(ctx->fields[FIELD_FROM]);
    hr__value_set_tensor(ctx->fields[FIELD_TO], HR_I32, 1, &count, memory, NULL);
    return HR_OK;
}

static enum hr_err lookup_apply(struct hr_op_ctx *ctx)
{
    const struct hr_value *words = ctx->fields[FIELD_FROM];
    void *memory;

    if (words->kind == HR_VALUE_RAGGED)
        return find_list(ctx, words);
    HR_TRY(hr__op_alloc(ctx, sizeof(int32_t), &memory));
    HR_TRY(find(ctx, words->data, words->bytes, memory));
    hr__value_clear(ctx->fields[FIELD_FROM]);
    hr__value_set_tensor(ctx->fields[FIELD_TO], HR_I32, 0, NULL, memory, NULL);
    return HR_OK;
}

const struct hr_op hr_op_tokens_vocab_lookup = {
    .name = "tokens.vocab_lookup",
    .summary = "words to their ids in a vocabulary",
    .doc =
        "A list of byte strings to int32 `[n]`, or one byte string to an int32 scalar. "
        "Words are compared byte by byte. In a file of lines, line ends are LF or CRLF, "
        "a byte order mark at the start is skipped, and a word may occur once. The "
        "words and ids, not the path, are part of the fingerprint.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(lookup_params, struct lookup),
    .infer = lookup_infer,
    .open = lookup_open,
    .close = lookup_close,
    .identity = lookup_identity,
    .apply = lookup_apply,
};
