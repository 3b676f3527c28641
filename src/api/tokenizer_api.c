/*
 * api/tokenizer_api.c - headrace/tokenizer.h: files, arguments, batches of texts.
 */
#include "codec/bpe.h"
#include "codec/sentencepiece.h"
#include "codec/tokenizer_json.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/file.h"
#include "core/thread.h"
#include "headrace/tokenizer.h"

#include <string.h>

/* ---- creation ---- */

bool hr_tokenizer_pattern_find(const char *name, enum hr_tokenizer_pattern *ret_pattern)
{
#define FIND(pattern, value)                                                             \
    if (strcmp(name, #pattern) == 0) {                                                   \
        *ret_pattern = HR_PATTERN_##pattern;                                             \
        return true;                                                                     \
    }
    HR_TOKENIZER_PATTERNS(FIND)
#undef FIND
    return false;
}

static enum hr_err null_argument(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_ARGUMENT, "an argument is NULL");
}

/* The caller frees ret_file->data. */
static enum hr_err
read_file(const char *path, struct hr_tokenizer_file *ret_file, struct hr_error *reterr)
{
    char *data;
    size_t bytes;

    HR_TRY(hr__file_read(path, HR_TOKENIZER_FILE_MAX, &data, &bytes, reterr));
    *ret_file = (struct hr_tokenizer_file){data, bytes, path};
    return HR_OK;
}

static void free_file(struct hr_tokenizer_file *file)
{
    hr__free((char *)(uintptr_t)file->data);
}

enum hr_err
hr_tokenizer_from_gpt2(const char *encoder_json, const char *vocab_bpe,
                       struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct hr_tokenizer_file encoder, merges;
    enum hr_err err;

    if (encoder_json == NULL || vocab_bpe == NULL || ret_tokenizer == NULL)
        return null_argument(reterr);
    HR_TRY(read_file(encoder_json, &encoder, reterr));
    err = read_file(vocab_bpe, &merges, reterr);
    if (err == HR_OK) {
        err = hr__bpe_read_gpt2(&encoder, &merges, ret_tokenizer, reterr);
        free_file(&merges);
    }
    free_file(&encoder);
    return err;
}

enum hr_err
hr_tokenizer_from_tiktoken(const char *path, enum hr_tokenizer_pattern pattern,
                           struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct hr_tokenizer_file file;
    enum hr_err err;

    if (path == NULL || ret_tokenizer == NULL)
        return null_argument(reterr);
    if ((unsigned)pattern > HR_PATTERN_llama3)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "there is no pattern %d", (int)pattern);
    HR_TRY(read_file(path, &file, reterr));
    err = hr__bpe_read_tiktoken(&file, pattern, ret_tokenizer, reterr);
    free_file(&file);
    return err;
}

/* A tokenizer of one file. */
static enum hr_err from_file(const char *path,
                             enum hr_err (*read)(const struct hr_tokenizer_file *file,
                                                 struct hr_tokenizer **ret_tokenizer,
                                                 struct hr_error *reterr),
                             struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct hr_tokenizer_file file;
    enum hr_err err;

    if (path == NULL || ret_tokenizer == NULL)
        return null_argument(reterr);
    HR_TRY(read_file(path, &file, reterr));
    err = read(&file, ret_tokenizer, reterr);
    free_file(&file);
    return err;
}

enum hr_err hr_tokenizer_from_json(const char *path, struct hr_tokenizer **ret_tokenizer,
                                   struct hr_error *reterr)
{
    return from_file(path, hr__tokenizer_read_json, ret_tokenizer, reterr);
}

enum hr_err
hr_tokenizer_from_sentencepiece(const char *path, struct hr_tokenizer **ret_tokenizer,
                                struct hr_error *reterr)
{
    return from_file(path, hr__sentencepiece_read, ret_tokenizer, reterr);
}

/* ---- one text ---- */

static enum hr_err check_text(const void *text, size_t bytes, struct hr_error *reterr)
{
    if (text == NULL && bytes > 0)
        return null_argument(reterr);
    if (bytes > HR_TOKENIZER_TEXT_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "a text of %zu bytes is longer than %zu: split it", bytes,
                        HR_TOKENIZER_TEXT_MAX);
    return HR_OK;
}

static enum hr_err out_of_memory(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static enum hr_err encode(struct hr_tokenizer_cache *cache, const void *text,
                          size_t bytes, struct hr_tokens *tokens)
{
    return hr__tokenizer_kind(cache->tokenizer)
        ->encode(cache->state, text, bytes, tokens);
}

enum hr_err
hr_tokenizer_append(struct hr_tokenizer *tokenizer, const void *text, size_t bytes,
                    struct hr_tokens *tokens, struct hr_error *reterr)
{
    struct hr_tokenizer_cache *cache;
    enum hr_err err;

    if (tokenizer == NULL || tokens == NULL)
        return null_argument(reterr);
    HR_TRY(check_text(text, bytes, reterr));
    cache = hr__tokenizer_take(tokenizer);
    if (cache == NULL)
        return out_of_memory(reterr);
    err = encode(cache, text, bytes, tokens);
    hr__tokenizer_give(cache);
    return err == HR_OK ? HR_OK : out_of_memory(reterr);
}

/* Encodes into the ids of the cache, and copies them if there is room. */
static enum hr_err
encode_and_copy(struct hr_tokenizer_cache *cache, const void *text, size_t bytes,
                int32_t *ids, size_t room, size_t *ret_count, struct hr_error *reterr)
{
    cache->ids.count = 0;
    if (encode(cache, text, bytes, &cache->ids) != HR_OK)
        return out_of_memory(reterr);
    *ret_count = cache->ids.count;
    if (*ret_count > room)
        return hr__fail(reterr, HR_ERR_LIMIT, "the text has %zu ids, room is for %zu",
                        *ret_count, room);
    if (*ret_count > 0)
        memcpy(ids, cache->ids.ids, *ret_count * sizeof *ids);
    return HR_OK;
}

enum hr_err
hr_tokenizer_encode(struct hr_tokenizer *tokenizer, const void *text, size_t bytes,
                    int32_t *ids, size_t room, size_t *ret_count, struct hr_error *reterr)
{
    struct hr_tokens tokens = {ids, 0, room};
    struct hr_tokenizer_cache *cache;
    enum hr_err err;

    if (tokenizer == NULL || (ids == NULL && room > 0) || ret_count == NULL)
        return null_argument(reterr);
    if (hr__tokenizer_kind(tokenizer)->in_place &&
        room >= bytes + HR_TOKENIZER_ROOM_MORE) { /* `ids` is never reallocated */
        err = hr_tokenizer_append(tokenizer, text, bytes, &tokens, reterr);
        if (err == HR_OK)
            *ret_count = tokens.count;
        return err;
    }
    HR_TRY(check_text(text, bytes, reterr));
    cache = hr__tokenizer_take(tokenizer);
    if (cache == NULL)
        return out_of_memory(reterr);
    err = encode_and_copy(cache, text, bytes, ids, room, ret_count, reterr);
    hr__tokenizer_give(cache);
    return err;
}

/* ---- batches ---- */

#define PART_BYTES ((size_t)64 << 10) /* less is not worth a thread */

/* Consecutive texts, which one thread encodes: the first part into the result, the others
 * into memory of their own, from where they are copied. */
struct part {
    struct batch *batch;
    size_t first, end; /* texts */
    struct hr_tokens own;
    size_t mapped; /* bytes of own.ids, if they are pages; else they were allocated */
    size_t at;     /* of its first id in the result */
    enum hr_err err;
};

struct batch {
    struct hr_tokenizer *tokenizer;
    const struct hr_tokenizer_text *texts;
    int64_t *offsets;
    struct hr_tokens *values;
};

/* Encodes the texts of a part; their ends become offsets within the part. */
static void *encode_part(void *user)
{
    struct part *part = user;
    struct batch *batch = part->batch;
    struct hr_tokenizer_cache *cache = hr__tokenizer_take(batch->tokenizer);

    part->err = cache != NULL ? HR_OK : HR_ERR_MEMORY;
    for (size_t i = part->first; i < part->end && part->err == HR_OK; i++) {
        const struct hr_tokenizer_text *text = &batch->texts[i];

        part->err = encode(cache, text->data, text->bytes, &part->own);
        batch->offsets[i + 1] = (int64_t)part->own.count;
    }
    if (cache != NULL)
        hr__tokenizer_give(cache);
    return NULL;
}

static void *copy_part(void *user)
{
    struct part *part = user;
    struct batch *batch = part->batch;

    if (part->own.count > 0)
        memcpy(batch->values->ids + part->at, part->own.ids,
               part->own.count * sizeof *part->own.ids);
    for (size_t i = part->first; i < part->end; i++)
        batch->offsets[i + 1] += (int64_t)part->at;
    return NULL;
}

/* Pages with room for all ids of a part: large ones, if the kernel has them, are faster
 * to get than many small ones. Without them ids are allocated as needed. */
static void map_part(struct part *part)
{
    size_t room = HR_TOKENIZER_ROOM_MORE;

    if (!hr__tokenizer_kind(part->batch->tokenizer)->in_place)
        return;
    for (size_t i = part->first; i < part->end; i++)
        room += part->batch->texts[i].bytes;
    if (room * sizeof *part->own.ids < HR_PAGES_MIN)
        return;
    part->own.ids = hr__pages_alloc(room * sizeof *part->own.ids);
    if (part->own.ids == NULL)
        return;
    part->own.room = room;
    part->mapped = room * sizeof *part->own.ids;
}

static void free_part(struct part *part)
{
    if (part->mapped > 0)
        hr__pages_free(part->own.ids, part->mapped);
    else
        hr_tokens_finish(&part->own);
}

/* Runs a step for `count` > 0 parts, each in a thread if the system gives one. */
static void run_parts(struct part *parts, int count, void *(*step)(void *))
{
    pthread_t threads[HR_TOKENIZER_THREADS_MAX];
    bool started[HR_TOKENIZER_THREADS_MAX];

    for (int i = 1; i < count; i++)
        started[i] =
            hr__thread_start(&threads[i], "hr-tokenize", step, &parts[i], NULL) == HR_OK;
    (void)step(&parts[0]);
    for (int i = 1; i < count; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        else
            (void)step(&parts[i]);
    }
}

/* Parts of about equal bytes. */
static void split_texts(struct batch *batch, size_t count, size_t bytes,
                        struct part *parts, int part_count)
{
    size_t text = 0, seen = 0;

    for (int i = 0; i < part_count; i++) {
        size_t share = bytes / (size_t)part_count * (size_t)(i + 1);

        parts[i] = (struct part){.batch = batch, .first = text};
        while (text < count && (i + 1 == part_count || seen < share))
            seen += batch->texts[text++].bytes;
        parts[i].end = text;
    }
}

/* Copies the ids of the parts after the first to the result. */
static enum hr_err join_parts(struct batch *batch, struct part *parts, int count)
{
    size_t total = parts[0].own.count;

    for (int i = 1; i < count; i++) {
        parts[i].at = total;
        total += parts[i].own.count;
    }
    if (!hr__tokens_room(batch->values, total - batch->values->count))
        return HR_ERR_MEMORY;
    run_parts(parts + 1, count - 1, copy_part);
    batch->values->count = total;
    return HR_OK;
}

static enum hr_err
encode_parts(struct batch *batch, size_t count, size_t bytes, int part_count)
{
    struct part *parts = hr__calloc((size_t)part_count, sizeof *parts);
    enum hr_err err = HR_OK;

    if (parts == NULL)
        return HR_ERR_MEMORY;
    split_texts(batch, count, bytes, parts, part_count);
    parts[0].own = *batch->values; /* where its ids belong */
    for (int i = 1; i < part_count; i++)
        map_part(&parts[i]);
    run_parts(parts, part_count, encode_part);
    *batch->values = parts[0].own;
    for (int i = 0; i < part_count && err == HR_OK; i++)
        err = parts[i].err;
    if (err == HR_OK && part_count > 1)
        err = join_parts(batch, parts, part_count);
    for (int i = 1; i < part_count; i++)
        free_part(&parts[i]);
    hr__free(parts);
    return err;
}

enum hr_err hr_tokenizer_encode_batch(struct hr_tokenizer *tokenizer,
                                      const struct hr_tokenizer_text *texts, size_t count,
                                      int threads, struct hr_tokens *values,
                                      int64_t *offsets, struct hr_error *reterr)
{
    struct batch batch = {tokenizer, texts, offsets, values};
    size_t bytes = 0, most;
    enum hr_err err;

    if (values != NULL)
        values->count = 0;
    if (tokenizer == NULL || (texts == NULL && count > 0) || values == NULL ||
        offsets == NULL)
        return null_argument(reterr);
    if (threads < 0 || threads > HR_TOKENIZER_THREADS_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "threads must be 0 to %d, not %d",
                        HR_TOKENIZER_THREADS_MAX, threads);
    for (size_t i = 0; i < count; i++) {
        HR_TRY(check_text(texts[i].data, texts[i].bytes, reterr));
        bytes += texts[i].bytes;
    }
    offsets[0] = 0;
    most = threads > 0 ? (size_t)threads : (size_t)hr__cpu_count();
    most = most < bytes / PART_BYTES + 1 ? most : bytes / PART_BYTES + 1;
    most = most < HR_TOKENIZER_THREADS_MAX ? most : HR_TOKENIZER_THREADS_MAX;
    err = encode_parts(&batch, count, bytes, (int)most);
    if (err == HR_OK)
        return HR_OK;
    values->count = 0;
    return out_of_memory(reterr);
}

/* ---- decoding ---- */

enum hr_err hr_tokenizer_decode(const struct hr_tokenizer *tokenizer, const int32_t *ids,
                                size_t count, void *text, size_t room, size_t *ret_bytes,
                                struct hr_error *reterr)
{
    struct hr_text_out out = {text, room, 0};

    if (tokenizer == NULL || (ids == NULL && count > 0) || (text == NULL && room > 0) ||
        ret_bytes == NULL)
        return null_argument(reterr);
    HR_TRY(hr__tokenizer_decode(tokenizer, ids, count, &out, reterr));
    *ret_bytes = out.bytes;
    return out.bytes <= room
               ? HR_OK
               : hr__fail(reterr, HR_ERR_LIMIT, "the text has %zu bytes, room is for %zu",
                          out.bytes, room);
}
