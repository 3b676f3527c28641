/*
 * ops/tokenizer_files.h - the files of tokenizers: parameters and state of the ops that
 * use one.
 */
#ifndef HR_OPS_TOKENIZER_FILES_H
#define HR_OPS_TOKENIZER_FILES_H

#include "codec/tokenizer.h"
#include "op/op.h"

/* A member `files` of the op's parameters. */
struct hr_tokenizer_files {
    const char *json, *ranks, *encoder, *merges;
    int pattern;
};

extern const char *const hr__tokenizer_patterns[];

#define HR_P_TOKENIZER_FILES(struct_)                                                    \
    {.name = "json",                                                                     \
     .type = HR_PARAM_PATH,                                                              \
     .offset = offsetof(struct_, files.json),                                            \
     .not_identity = true,                                                               \
     .help = "Hugging Face's tokenizer.json"},                                           \
        {.name = "ranks",                                                                \
         .type = HR_PARAM_PATH,                                                          \
         .offset = offsetof(struct_, files.ranks),                                       \
         .not_identity = true,                                                           \
         .help = "or a rank file of tiktoken"},                                          \
        {.name = "pattern",                                                              \
         .type = HR_PARAM_ENUM,                                                          \
         .offset = offsetof(struct_, files.pattern),                                     \
         .fallback = "r50k",                                                             \
         .names = hr__tokenizer_patterns,                                                \
         .not_identity = true,                                                           \
         .help = "with ranks: how text is split into words"},                            \
        {.name = "encoder",                                                              \
         .type = HR_PARAM_PATH,                                                          \
         .offset = offsetof(struct_, files.encoder),                                     \
         .not_identity = true,                                                           \
         .help = "or GPT-2's encoder.json, with merges"},                                \
    {                                                                                    \
        .name = "merges", .type = HR_PARAM_PATH,                                         \
        .offset = offsetof(struct_, files.merges), .not_identity = true,                 \
        .help = "GPT-2's vocab.bpe, with encoder"                                        \
    }

bool hr__tokenizer_files_any(const struct hr_tokenizer_files *files);

/* Fails unless the files of one tokenizer are given. */
HR_CHECK enum hr_err
hr__tokenizer_files_infer(struct hr_infer *infer, const struct hr_tokenizer_files *files);

/* Reads them; the state of the op is a struct hr_tokenizer. */
HR_CHECK enum hr_err hr__tokenizer_files_open(const struct hr_tokenizer_files *files,
                                              void **ret_state, struct hr_error *error);

/* The same for a tokenizer.json whose model is of a kind, "WordPiece". */
HR_CHECK enum hr_err hr__tokenizer_json_open(const char *path, const char *kind,
                                             void **ret_state, struct hr_error *error);

/* The same for a SentencePiece model, or a tokenizer.json of a Unigram model. */
HR_CHECK enum hr_err
hr__unigram_open(const char *model, void **ret_state, struct hr_error *error);

void hr__tokenizer_close(void *state);
/* hr_op_memory.kept. */
void hr__tokenizer_kept(const void *params, const void *state, uint64_t budget,
                        struct hr_op_kept *ret_kept);
void hr__tokenizer_identity(const void *params, const void *state,
                            struct hr_hasher *hasher);

/* An apply function for ops whose fields are a text and the ids that it becomes. */
HR_CHECK enum hr_err hr__tokenizer_apply(struct hr_op_ctx *ctx);

#endif
