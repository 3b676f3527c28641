/*
 * ops/bpe_files.c - the files of a byte-level BPE tokenizer.
 */
#include "ops/bpe_files.h"

const char *const hr__bpe_patterns[] = {
#define PATTERN_NAME(name, value) [value] = #name,
    HR_TOKENIZER_PATTERNS(PATTERN_NAME)
#undef PATTERN_NAME
        NULL,
};

enum hr_err hr__bpe_files_infer(struct hr_infer *infer, const struct hr_bpe_files *files)
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

enum hr_err hr__bpe_files_open(const struct hr_bpe_files *files, void **ret_state,
                               struct hr_error *error)
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

void hr__bpe_files_close(void *state)
{
    hr_tokenizer_destroy(state);
}

void hr__bpe_files_identity(const void *params, const void *state,
                            struct hr_hasher *hasher)
{
    const struct hr_hash128 hash = hr__tokenizer_hash(state);

    (void)params;
    hr__hasher_add(hasher, &hash, sizeof hash);
}
