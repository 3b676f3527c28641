/*
 * ops/tokenizer_files.c - the files of tokenizers.
 */
#include "ops/tokenizer_files.h"
#include "codec/sentencepiece.h"
#include "codec/tokenizer_json.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"

#include <string.h>

const char *const hr__tokenizer_patterns[] = {
#define PATTERN_NAME(name, value) [value] = #name,
    HR_TOKENIZER_PATTERNS(PATTERN_NAME)
#undef PATTERN_NAME
        NULL,
};

bool hr__tokenizer_files_any(const struct hr_tokenizer_files *files)
{
    return files->json != NULL || files->ranks != NULL || files->encoder != NULL ||
           files->merges != NULL;
}

enum hr_err
hr__tokenizer_files_infer(struct hr_infer *infer, const struct hr_tokenizer_files *files)
{
    if ((files->json != NULL) + (files->ranks != NULL) + (files->encoder != NULL) != 1)
        return hr__infer_fail(infer, "json", HR_ERR_ARGUMENT,
                              "give the files of one tokenizer: json, or ranks and "
                              "pattern, or encoder and merges");
    if ((files->encoder != NULL) != (files->merges != NULL))
        return hr__infer_fail(infer, "merges", HR_ERR_ARGUMENT,
                              "encoder and merges are two files of one tokenizer: give "
                              "both");
    return HR_OK;
}

enum hr_err hr__tokenizer_files_open(const struct hr_tokenizer_files *files,
                                     void **ret_state, struct hr_error *error)
{
    struct hr_tokenizer *tokenizer = NULL;

    if (files->json != NULL)
        HR_TRY(hr_tokenizer_from_json(files->json, &tokenizer, error));
    else if (files->ranks != NULL)
        HR_TRY(hr_tokenizer_from_tiktoken(
            files->ranks, (enum hr_tokenizer_pattern)files->pattern, &tokenizer, error));
    else
        HR_TRY(hr_tokenizer_from_gpt2(files->encoder, files->merges, &tokenizer, error));
    *ret_state = tokenizer;
    return HR_OK;
}

/* The state if the model is of this kind. */
static enum hr_err take_kind(struct hr_tokenizer *tokenizer, const char *path,
                             const char *kind, void **ret_state, struct hr_error *error)
{
    const char *name = hr__tokenizer_kind(tokenizer)->name;

    if (strcmp(name, kind) != 0) {
        hr_tokenizer_destroy(tokenizer);
        return hr__fail(error, HR_ERR_UNSUPPORTED,
                        "%s: the model is %s, not %s: another text.tokenize_ op takes it",
                        path, name, kind);
    }
    *ret_state = tokenizer;
    return HR_OK;
}

enum hr_err hr__tokenizer_json_open(const char *path, const char *kind, void **ret_state,
                                    struct hr_error *error)
{
    struct hr_tokenizer *tokenizer = NULL;

    HR_TRY(hr_tokenizer_from_json(path, &tokenizer, error));
    return take_kind(tokenizer, path, kind, ret_state, error);
}

/* A model file begins with the number of a field, which is no brace. */
enum hr_err hr__unigram_open(const char *model, void **ret_state, struct hr_error *error)
{
    struct hr_tokenizer_file file = {.name = model};
    struct hr_tokenizer *tokenizer = NULL;
    enum hr_err err;
    char *data;
    bool json;

    HR_TRY(hr__file_read(model, HR_TOKENIZER_FILE_MAX, &data, &file.bytes, error));
    file.data = data;
    json = data[strspn(data, " \t\r\n")] == '{';
    err = json ? hr__tokenizer_read_json(&file, &tokenizer, error)
               : hr__sentencepiece_read(&file, &tokenizer, error);
    hr__free(data);
    if (err != HR_OK || !json) {
        *ret_state = tokenizer;
        return err;
    }
    return take_kind(tokenizer, model, "Unigram", ret_state, error);
}

void hr__tokenizer_close(void *state)
{
    hr_tokenizer_destroy(state);
}

void hr__tokenizer_kept(const void *params, const void *state, uint64_t budget,
                        struct hr_op_kept *ret_kept)
{
    (void)params, (void)budget;
    ret_kept->thread = hr__tokenizer_thread_bytes(state);
}

void hr__tokenizer_identity(const void *params, const void *state,
                            struct hr_hasher *hasher)
{
    const struct hr_hash128 hash = hr__tokenizer_hash(state);

    (void)params;
    hr__hasher_add(hasher, &hash, sizeof hash);
}

enum { FIELD_FROM, FIELD_TO };

enum hr_err hr__tokenizer_apply(struct hr_op_ctx *ctx)
{
    struct hr_value *text = ctx->fields[FIELD_FROM];
    size_t room = text->bytes + HR_TOKENIZER_ROOM_MORE, count = 0;
    enum hr_err err;
    int64_t dims[1];
    void *ids;

    if (text->kind != HR_VALUE_BYTES)
        return hr__fail(ctx->error, HR_ERR_TYPE, "the field has no text to tokenize");
    HR_TRY(hr__op_alloc(ctx, room * sizeof(int32_t), &ids));
    err = hr_tokenizer_encode(ctx->state, text->data, text->bytes, ids, room, &count,
                              ctx->error);
    if (err == HR_ERR_LIMIT && count > room) { /* rules made the text longer */
        HR_TRY(hr__op_alloc(ctx, count * sizeof(int32_t), &ids));
        err = hr_tokenizer_encode(ctx->state, text->data, text->bytes, ids, count, &count,
                                  ctx->error);
    }
    HR_TRY(err);
    hr__value_clear(text);
    dims[0] = (int64_t)count;
    hr__value_set_tensor(ctx->fields[FIELD_TO], HR_I32, 1, dims, ids, NULL);
    return HR_OK;
}
