/*
 * codec/unigram.c - Unigram models of Hugging Face's library: text to ids and back.
 */
#include "codec/unigram_priv.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"

#include <string.h>

#define NOWHERE UINT32_MAX
#define KEPT_MAX ((size_t)1 << 20) /* bytes that a buffer keeps between calls */

static void destroy(void *user)
{
    struct hr_unigram *m = user;

    if (m == NULL)
        return;
    for (size_t i = 0; i < m->step_count; i++)
        hr__step_finish(&m->steps[i]);
    hr__free(m->text);
    hr__free(m->tokens);
    hr__trie_finish(&m->trie);
    hr__free(m->decode_from);
    hr__free(m->decode_to);
    hr__free(m);
}

/* ---- state of a thread ---- */

/* Words that were seen, padded with zeros; the last byte is the length. */
#define WORD_MAX 23
#define WORD_IDS 9
#define WORDS ((size_t)1 << 15)

struct word {
    uint8_t key[WORD_MAX + 1]; /* zero: empty */
    uint32_t count;
    int32_t ids[WORD_IDS];
};
_Static_assert(sizeof(struct word) == 64, "a cache line");
#define WORDS_BYTES (sizeof(struct word) * WORDS)

/* The best way to a place of a word. */
struct best {
    double score;
    int32_t id;
    uint32_t start; /* NOWHERE: no way leads here */
};

struct state {
    const struct hr_unigram *m;
    struct word *words;
    struct hr_step_text text, other; /* what steps read and write */
    struct best *best;
    size_t best_room;
    struct hr_tokens *tokens;
};

static void end(void *user)
{
    struct state *s = user;

    if (s == NULL)
        return;
    hr__pages_free(s->words, WORDS_BYTES);
    hr__free(s->text.data);
    hr__free(s->other.data);
    hr__free(s->best);
    hr__free(s);
}

static void *begin(const void *model)
{
    struct state *s = hr__calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->m = model;
    s->words = hr__pages_alloc(WORDS_BYTES);
    if (s->words == NULL) {
        end(s);
        return NULL;
    }
    return s;
}

/* ---- one word ---- */

static bool add_id(struct state *s, int32_t id)
{
    if (s->tokens->count == s->tokens->room && !hr__tokens_room(s->tokens, 1))
        return false;
    s->tokens->ids[s->tokens->count++] = id;
    return true;
}

/* Text that no token covers: its bytes, if there are tokens for all of them. */
static bool add_unknown(struct state *s, const uint8_t *text, size_t bytes)
{
    int32_t id = hr__trie_find(&s->m->trie, text, bytes);
    size_t known = 0;

    if (id >= 0)
        return add_id(s, id);
    while (known < bytes && s->m->byte_ids[text[known]] >= 0)
        known++;
    if (known < bytes)
        return add_id(s, s->m->unknown);
    for (size_t i = 0; i < bytes; i++)
        if (!add_id(s, s->m->byte_ids[text[i]]))
            return false;
    return true;
}

static inline void offer(struct best *to, double score, int32_t id, uint32_t start)
{
    if (to->start == NOWHERE || score > to->score)
        *to = (struct best){score, id, start};
}

static void find_best(const struct hr_unigram *m, const uint8_t *word, uint32_t bytes,
                      struct best *best)
{
    for (uint32_t i = 0; i <= bytes; i++)
        best[i].start = NOWHERE;
    best[0].score = 0;
    for (uint32_t at = 0, length; at < bytes; at += length) {
        uint32_t node = 0;
        bool single = false;

        length = (uint32_t)hr__piece_char(word[at], bytes - at);
        for (uint32_t i = at; i < bytes && hr__trie_step(&m->trie, &node, word[i]); i++) {
            int32_t id = m->trie.nodes[node].value;

            if (id < 0)
                continue;
            offer(&best[i + 1], m->tokens[id].score + best[at].score, id, at);
            single |= i + 1 - at == length;
        }
        if (!single)
            offer(&best[at + length], m->unknown_score + best[at].score, m->unknown, at);
    }
}

/* Turns the list of tokens around: `start` becomes where the token that begins there
 * ends. */
static void reverse(struct best *best, uint32_t bytes)
{
    uint32_t next = bytes, at = bytes;

    while (at > 0) {
        uint32_t start = best[at].start;

        best[at].start = next;
        next = at;
        at = start;
    }
    best[0].start = next;
}

static bool encode_new(struct state *s, const uint8_t *word, uint32_t bytes)
{
    uint32_t first = 0; /* of a run of unknown tokens */
    struct best *best;

    if (s->best_room < bytes + (size_t)1) {
        hr__free(s->best);
        s->best_room = bytes + bytes / 2 + (size_t)64;
        s->best = hr__malloc(s->best_room * sizeof *best);
        if (s->best == NULL) {
            s->best_room = 0;
            return false;
        }
    }
    best = s->best;
    find_best(s->m, word, bytes, best);
    reverse(best, bytes);
    for (uint32_t at = 0; at < bytes;) {
        uint32_t next = best[at].start;
        bool unknown = best[next].id == s->m->unknown;

        if (!unknown && first < at && !add_unknown(s, word + first, at - first))
            return false;
        if (!unknown) {
            if (!add_id(s, best[next].id))
                return false;
            first = next;
        }
        at = next;
    }
    return first == bytes || add_unknown(s, word + first, bytes - first);
}

static bool encode_word(struct state *s, const uint8_t *word, size_t bytes)
{
    uint8_t key[WORD_MAX + 1] = {0};
    size_t before = s->tokens->count, count;
    uint64_t parts[3], hash;
    struct word *slot;

    if (bytes > UINT32_MAX - 2)
        return false;
    if (bytes == 0)
        return true;
    if (bytes > WORD_MAX)
        return encode_new(s, word, (uint32_t)bytes);
    memcpy(key, word, bytes);
    key[WORD_MAX] = (uint8_t)bytes;
    memcpy(parts, key, sizeof parts);
    hash = parts[0] * 0x9E3779B97F4A7C15;
    hash = (hash ^ hash >> 32 ^ parts[1]) * 0xD6E8FEB86659FD93;
    hash = (hash ^ hash >> 32 ^ parts[2]) * 0x9E3779B97F4A7C15;
    slot = &s->words[hash >> 32 & (WORDS - 1)];
    if (memcmp(slot->key, key, sizeof key) == 0) {
        if (!hr__tokens_room(s->tokens, slot->count))
            return false;
        memcpy(s->tokens->ids + before, slot->ids, slot->count * sizeof slot->ids[0]);
        s->tokens->count += slot->count;
        return true;
    }
    if (!encode_new(s, word, (uint32_t)bytes))
        return false;
    count = s->tokens->count - before;
    if (count > WORD_IDS)
        return true;
    memcpy(slot->key, key, sizeof key);
    memcpy(slot->ids, s->tokens->ids + before, count * sizeof slot->ids[0]);
    slot->count = (uint32_t)count;
    return true;
}

/* ---- text ---- */

static bool begins(const uint8_t *text, size_t bytes, const char *mark, size_t mark_bytes)
{
    return bytes >= mark_bytes && memcmp(text, mark, mark_bytes) == 0;
}

/* Sets s->other to the text with marks for spaces, and one before it. */
static bool add_marks(struct state *s, const uint8_t *text, size_t bytes)
{
    const struct hr_unigram *m = s->m;
    struct hr_step_text *to = &s->other;
    bool marked = begins(text, bytes, m->mark, m->mark_bytes) || text[0] == ' ';
    size_t from = 0;

    to->bytes = 0;
    if (!marked && m->prepend != HR_PREPEND_NEVER &&
        !hr__step_add(to, m->mark, m->mark_bytes))
        return false;
    for (size_t at = 0; at < bytes; at++) {
        if (text[at] != ' ')
            continue;
        if (!hr__step_add(to, text + from, at - from) ||
            !hr__step_add(to, m->mark, m->mark_bytes))
            return false;
        from = at + 1;
    }
    return hr__step_add(to, text + from, bytes - from);
}

/* A part of the text without white space, or all of it. */
static bool encode_part(struct state *s, const uint8_t *text, size_t bytes)
{
    const struct hr_unigram *m = s->m;
    size_t from = 0;

    if (!m->metaspace)
        return encode_word(s, text, bytes);
    if (!add_marks(s, text, bytes))
        return false;
    text = s->other.data;
    bytes = s->other.bytes;
    for (size_t at = 1; m->split && at < bytes; at++) {
        if (!begins(text + at, bytes - at, m->mark, m->mark_bytes))
            continue;
        if (!encode_word(s, text + from, at - from))
            return false;
        from = at;
    }
    return encode_word(s, text + from, bytes - from);
}

static bool encode_text(struct state *s)
{
    const uint8_t *text = s->text.data;
    size_t bytes = s->text.bytes, at = 0;

    if (bytes == 0)
        return true;
    if (!s->m->by_white)
        return encode_part(s, text, bytes);
    while ((at += hr__text_white_start(text + at, bytes - at)) < bytes) {
        size_t length = hr__text_until_white(text + at, bytes - at);

        if (!encode_part(s, text + at, length))
            return false;
        at += length;
    }
    return true;
}

static void trim(struct hr_step_text *text)
{
    if (text->room <= KEPT_MAX)
        return;
    hr__free(text->data);
    *text = (struct hr_step_text){NULL};
}

static enum hr_err
encode(void *user, const uint8_t *text, size_t bytes, struct hr_tokens *tokens)
{
    struct state *s = user;
    size_t before = tokens->count;
    bool done;

    s->tokens = tokens;
    s->text.bytes = s->other.bytes = 0;
    s->text.limit = s->other.limit = HR_STEP_GROWTH * (bytes + 16);
    done = hr__step_well_formed(text, bytes, &s->text);
    for (size_t i = 0; done && i < s->m->step_count; i++) {
        struct hr_step_text made = s->other;

        done = hr__step_run(&s->m->steps[i], &s->text, &made);
        s->other = s->text;
        s->text = made;
    }
    done = done && encode_text(s);
    if (!done)
        tokens->count = before;
    trim(&s->text);
    trim(&s->other);
    if (s->best_room > KEPT_MAX / sizeof *s->best) {
        hr__free(s->best);
        s->best = NULL;
        s->best_room = 0;
    }
    return done ? HR_OK : HR_ERR_MEMORY;
}

/* ---- decoding ---- */

struct decode {
    const struct hr_unigram *m;
    struct hr_text_out *out;
    size_t left; /* characters that Strip may still remove */
};

static void put(struct decode *d, const void *text, size_t bytes)
{
    size_t strip = strlen(d->m->decode_strip);

    while (d->left > 0 && bytes > 0) {
        if (!begins(text, bytes, d->m->decode_strip, strip)) {
            d->left = 0;
            break;
        }
        text = (const char *)text + strip;
        bytes -= strip;
        d->left--;
    }
    hr__text_out(d->out, text, bytes);
}

/* The text with `from` replaced by `to`. */
static void put_replaced(struct decode *d, const uint8_t *text, size_t bytes,
                         const char *from, const char *to)
{
    size_t length = strlen(from), kept = 0;

    for (size_t at = 0; at + length <= bytes;) {
        if (memcmp(text + at, from, length) != 0) {
            at++;
            continue;
        }
        put(d, text + kept, at - kept);
        put(d, to, strlen(to));
        kept = at += length;
    }
    put(d, text + kept, bytes - kept);
}

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of a token like "<0x41>", or -1. */
static int byte_of(const struct hr_unigram *m, int32_t id)
{
    const uint8_t *text = m->text + m->tokens[id].start;

    if (m->tokens[id].bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' ||
        digit_of(text[3]) < 0 || digit_of(text[4]) < 0)
        return -1;
    return 16 * digit_of(text[3]) + digit_of(text[4]);
}

/* Writes a run of tokens that are bytes, and returns their number: the text that they
 * are, or U+FFFD for each if it is not well-formed. */
static size_t put_bytes(struct decode *d, const int32_t *ids, size_t count)
{
    size_t run = 0, pending = 0;
    char window[4];
    bool whole = true;

    for (; run < count && byte_of(d->m, ids[run]) >= 0; run++) {
        window[pending++] = (char)byte_of(d->m, ids[run]);
        if (hr__utf8_length(window, pending) > 0)
            pending = 0;
        whole &= pending < sizeof window;
        pending %= sizeof window;
    }
    whole &= pending == 0;
    for (size_t i = 0; i < run; i++) {
        char byte = (char)byte_of(d->m, ids[i]);

        put(d, whole ? &byte : "\xEF\xBF\xBD", whole ? 1 : 3);
    }
    return run;
}

static void put_token(struct decode *d, int32_t id, bool first)
{
    const struct hr_unigram *m = d->m;
    const struct hr_token *token = &m->tokens[id];
    const uint8_t *text = m->text + token->start;

    if (m->decoder == HR_DECODE_WORDS && !first)
        put(d, " ", 1);
    if (m->decoder == HR_DECODE_METASPACE)
        put_replaced(d, text, token->bytes, m->decode_mark,
                     first && !m->decode_first ? "" : " ");
    else if (m->decode_from != NULL)
        put_replaced(d, text, token->bytes, m->decode_from, m->decode_to);
    else
        put(d, text, token->bytes);
}

static enum hr_err decode(const void *model, const int32_t *ids, size_t count,
                          struct hr_text_out *out, struct hr_error *reterr)
{
    const struct hr_unigram *m = model;
    struct decode d = {m, out, m->decode_left};

    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= m->count || m->tokens[ids[i]].bytes == 0)
            return hr__fail(reterr, HR_ERR_RANGE, "id %d at position %zu is no token",
                            (int)ids[i], i);
    for (size_t i = 0; i < count;) {
        size_t run = m->decode_bytes ? put_bytes(&d, ids + i, count - i) : 0;

        i += run;
        if (run == 0)
            put_token(&d, ids[i], i == 0);
        i += run == 0;
    }
    return HR_OK;
}

const struct hr_tokenizer_kind hr__unigram_kind = {
    .name = "Unigram",
    .state_bytes = WORDS_BYTES,
    .destroy = destroy,
    .begin = begin,
    .end = end,
    .encode = encode,
    .decode = decode,
};
