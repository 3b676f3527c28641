/*
 * codec/tokenizer.h - what all tokenizers of headrace/tokenizer.h have in common: a model
 * of some kind, and what threads keep between calls.
 */
#ifndef HR_CODEC_TOKENIZER_H
#define HR_CODEC_TOKENIZER_H

#include "core/hash.h"
#include "headrace/tokenizer.h"

/* A file's bytes and its name for messages. */
struct hr_tokenizer_file {
    const char *data;
    size_t bytes;
    const char *name;
};

/* Text that grows up to the room that there is; what does not fit is only counted. */
struct hr_text_out {
    char *text;
    size_t room, bytes;
};
void hr__text_out(struct hr_text_out *out, const void *bytes, size_t count);

/* Reads padded base64 into at most length / 4 * 3 bytes; their number, 0 if malformed. */
size_t hr__base64_read(const char *text, size_t length, uint8_t *to);

/* A kind of tokenizer. A model is immutable and thread-safe; a state belongs to one
 * thread at a time. */
struct hr_tokenizer_kind {
    const char *name; /* for messages: "byte-level BPE" */
    /* Encoding n bytes into tokens with room for n + HR_TOKENIZER_ROOM_MORE ids never
     * reallocates them. */
    bool in_place;
    size_t state_bytes; /* of a state, besides what the length of a text takes */
    void (*destroy)(void *model);
    void *(*begin)(const void *model); /* a state; NULL when out of memory */
    void (*end)(void *state);
    /* Appends the ids of a text of at most HR_TOKENIZER_TEXT_MAX bytes. On failure,
     * HR_ERR_MEMORY only, `tokens` keeps its ids. */
    enum hr_err (*encode)(void *state, const uint8_t *text, size_t bytes,
                          struct hr_tokens *tokens);
    /* HR_ERR_RANGE for an id that is no token. */
    enum hr_err (*decode)(const void *model, const int32_t *ids, size_t count,
                          struct hr_text_out *out, struct hr_error *reterr);
};
#define HR_TOKENIZER_ROOM_MORE 4

/* Takes over `model`, also on failure. `id_end` is the largest id + 1; `hash` is of all
 * that ids depend on. */
HR_CHECK enum hr_err
hr__tokenizer_create(const struct hr_tokenizer_kind *kind, void *model, uint32_t id_end,
                     struct hr_hash128 hash, struct hr_tokenizer **ret_tokenizer,
                     struct hr_error *reterr);
const struct hr_tokenizer_kind *hr__tokenizer_kind(const struct hr_tokenizer *tokenizer);
const void *hr__tokenizer_model(const struct hr_tokenizer *tokenizer);
/* Bytes that each thread that encodes keeps. */
uint64_t hr__tokenizer_thread_bytes(const struct hr_tokenizer *tokenizer);
struct hr_hash128 hr__tokenizer_hash(const struct hr_tokenizer *tokenizer);

/* A state for the calling thread until it is given back, and ids that it keeps; NULL when
 * out of memory. */
struct hr_tokenizer_cache {
    struct hr_tokenizer *tokenizer;
    void *state;
    struct hr_tokens ids;
};
struct hr_tokenizer_cache *hr__tokenizer_take(struct hr_tokenizer *tokenizer);
void hr__tokenizer_give(struct hr_tokenizer_cache *cache);

/* Room for `more` ids; false when out of memory. */
bool hr__tokens_room(struct hr_tokens *tokens, size_t more);

HR_CHECK enum hr_err
hr__tokenizer_decode(const struct hr_tokenizer *tokenizer, const int32_t *ids,
                     size_t count, struct hr_text_out *out, struct hr_error *reterr);

#endif
