/*
 * codec/sentencepiece_encode.c - text to ids and back.
 *
 * Unigram adds scores in float from the start of the text, as the library does, so which
 * of two nearly equal ways through a word is better can depend on what is before it. A
 * thread remembers the ids of words together with the greatest total score before them
 * for which rounding cannot change the ids.
 */
#include "codec/heap.h"
#include "codec/sentencepiece_priv.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"

#include <math.h>
#include <string.h>

#define NOWHERE UINT32_MAX
#define TOTAL_MIN (-1e5F)
#define KEPT_MAX ((size_t)1 << 20) /* bytes that a buffer keeps between calls */

/* ---- words that were seen ---- */

#define WORD_MAX 23 /* bytes */
#define WORD_IDS 4
#define WAYS 2
#define SETS_LOG2 16 /* 8 MiB */

/* A word padded with zeros; its length is the last byte. */
#define PARTS 3
struct key {
    uint64_t parts[PARTS];
};
_Static_assert(sizeof(struct key) == WORD_MAX + 1, "a word and its length");
_Static_assert(sizeof(struct key) <= HR_NORMAL_SLACK, "keys are read after the text");

struct word {
    struct key key; /* zero: empty */
    float limit;    /* for total scores before the word that are less in size */
    uint32_t count;
    int32_t ids[WORD_IDS];
    float scores[WORD_IDS];
};
_Static_assert(sizeof(struct word) == 64, "a cache line");

/* ---- state of a thread ---- */

/* The best way to a place of a word; `second` is the score of the next best. */
struct best {
    float score, second;
    int32_t id;
    uint32_t start; /* NOWHERE: no way leads here */
};

/* A symbol of bpe: bytes of the text that are one piece, or became part of another. */
struct symbol {
    uint32_t start, bytes; /* 0 bytes: part of another */
    uint32_t before, after;
    uint32_t rank; /* of the piece of this symbol and the next; NOWHERE: none */
    int32_t id, pair_id;
    bool frozen; /* user-defined: not merged */
};

struct state {
    const struct hr_sentencepiece *m;
    struct word *words; /* [1 << SETS_LOG2][WAYS] */
    struct hr_normal normal;
    void *scratch; /* of the longest word: struct best, or struct symbol and a heap */
    size_t scratch_bytes;
    uint32_t
        *splits; /* [count], if the model has unused pieces: bytes of the left part */
    /* of the text at hand */
    struct hr_tokens *tokens;
    float total;                     /* score */
    bool after_unknown, any_unknown; /* piece before; since the start of the word */
};

#define WORDS_BYTES (sizeof(struct word) * WAYS << SETS_LOG2)

static void end(void *user)
{
    struct state *s = user;

    if (s == NULL)
        return;
    hr__pages_free(s->words, WORDS_BYTES);
    hr__normal_finish(&s->normal);
    hr__free(s->scratch);
    hr__free(s->splits);
    hr__free(s);
}

static void *begin(const void *model)
{
    struct state *s = hr__calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->m = model;
    s->words = hr__pages_alloc(WORDS_BYTES);
    s->splits = hr__calloc(s->m->has_unused ? s->m->count : 1, sizeof *s->splits);
    if (s->words == NULL || s->splits == NULL) {
        end(s);
        return NULL;
    }
    return s;
}

static bool scratch_room(struct state *s, size_t bytes)
{
    if (s->scratch_bytes >= bytes)
        return true;
    hr__free(s->scratch);
    s->scratch = hr__malloc(bytes + bytes / 2);
    s->scratch_bytes = s->scratch != NULL ? bytes + bytes / 2 : 0;
    return s->scratch != NULL;
}

/* ---- ids ---- */

static bool add_id(struct state *s, int32_t id)
{
    if (s->tokens->count == s->tokens->room && !hr__tokens_room(s->tokens, 1))
        return false;
    s->tokens->ids[s->tokens->count++] = id;
    return true;
}

/* A piece of the text. Unknown ones are spelt in bytes, or a run of them is one id. */
static bool add_piece(struct state *s, const uint8_t *text, size_t bytes, int32_t id)
{
    const struct hr_sentencepiece *m = s->m;
    bool unknown = id == m->unknown, again = unknown && s->after_unknown;

    s->after_unknown = unknown;
    s->any_unknown |= unknown;
    if (!unknown)
        return add_id(s, id);
    if (!m->byte_fallback)
        return again || add_id(s, id);
    for (size_t i = 0; i < bytes; i++)
        if (!add_id(s, m->byte_ids[text[i]]))
            return false;
    return true;
}

/* ---- unigram ---- */

static inline void offer(struct best *to, float score, int32_t id, uint32_t start)
{
    if (to->start == NOWHERE || score > to->score) {
        float second = to->start == NOWHERE ? -INFINITY : to->score;

        *to = (struct best){score, second, id, start};
    } else if (score > to->second) {
        to->second = score;
    }
}

/* Offers the pieces that begin at `at`, where a way of total score `total` leads. */
static void offer_pieces(const struct hr_sentencepiece *m, const uint8_t *word,
                         uint32_t bytes, uint32_t at, struct best *best)
{
    size_t length = hr__piece_char(word[at], bytes - at);
    float total = best[at].score;
    uint32_t node = 0;
    bool single = false;

    for (uint32_t i = at; i < bytes && hr__trie_step(&m->trie, &node, word[i]); i++) {
        int32_t id = m->trie.nodes[node].value;
        const struct hr_piece *piece;
        float score;

        if (id < 0 || m->pieces[id].type == HR_PIECE_UNUSED)
            continue;
        piece = &m->pieces[id];
        score =
            piece->type == HR_PIECE_USER ? (float)(0.1 * (double)(i - at)) : piece->score;
        offer(&best[i + 1], score + total, id, at);
        single |= i + 1 - at == length;
    }
    if (!single)
        offer(&best[at + length], m->unknown_score + total, m->unknown, at);
}

/* Starts from a total score of zero again, as the library does, where float has become
 * too coarse. No way leads further than a piece is long. */
static void lift(struct best *best, uint32_t bytes)
{
    float by = best[0].score;

    for (uint32_t i = 0; i <= bytes && i <= HR_PIECE_MAX; i++) {
        best[i].score -= by;
        best[i].second -= by;
    }
}

/* What the choice of pieces for a word left open. */
struct margin {
    double least;   /* between a place's best way and the next best */
    double largest; /* size of a score from the start of the word */
    unsigned chars;
};

/* The best pieces of a word, from its end to its start as a list in `start`. */
static void find_best(const struct state *s, const uint8_t *word, uint32_t bytes,
                      struct best *best, struct margin *ret_margin)
{
    for (uint32_t i = 0; i <= bytes; i++)
        best[i] = (struct best){.start = NOWHERE};
    best[0] = (struct best){s->total, -INFINITY, 0, 0};
    *ret_margin = (struct margin){INFINITY, 0, 0};
    for (uint32_t at = 0; at < bytes;) {
        double score = fabs((double)best[at].score - (double)s->total);

        ret_margin->largest = score > ret_margin->largest ? score : ret_margin->largest;
        ret_margin->chars++;
        if (best[at].score < TOTAL_MIN)
            lift(best + at, bytes - at);
        offer_pieces(s->m, word, bytes, at, best);
        at += (uint32_t)hr__piece_char(word[at], bytes - at);
    }
}

/* Turns the list around: `start` becomes the end of the piece that begins at a place.
 * Returns the number of pieces. */
static unsigned reverse(struct best *best, uint32_t bytes, struct margin *margin)
{
    uint32_t next = bytes, at = bytes;
    unsigned count = 0;

    while (at > 0) {
        uint32_t start = best[at].start;
        double gap = (double)best[at].score - (double)best[at].second;

        margin->least = gap < margin->least ? gap : margin->least;
        best[at].start = next;
        next = at;
        at = start;
        count++;
    }
    best[0].start = next;
    return count;
}

/* The total score before a word for which rounding cannot change its pieces: each of two
 * ways through it is a sum of at most `chars` terms, each rounded by a part 2^-24 of a
 * total. Half of the margin is left for what the margin itself was rounded by. */
static float find_limit(const struct margin *margin, float total)
{
    double part = 4 * ((double)margin->chars + 1) * 0x1p-24;
    double here = (fabs((double)total) + margin->largest) * part;
    double limit = fmin(margin->least / 2 / part, -(double)TOTAL_MIN);

    return margin->least / 2 > here ? (float)(limit - margin->largest - 1) : 0;
}

static bool
encode_unigram(struct state *s, const uint8_t *word, uint32_t bytes, struct word *slot)
{
    size_t first = s->tokens->count;
    bool plain = true;
    struct margin margin;
    struct best *best;
    float total = s->total;
    unsigned count;

    if (!scratch_room(s, (bytes + 1) * sizeof *best))
        return false;
    best = s->scratch;
    find_best(s, word, bytes, best, &margin);
    s->total = best[bytes].score;
    count = reverse(best, bytes, &margin);
    for (uint32_t at = 0, k = 0; k < count; k++) {
        uint32_t next = best[at].start;
        int32_t id = best[next].id;

        plain &= s->m->pieces[id].type == HR_PIECE_NORMAL;
        if (!add_piece(s, word + at, next - at, id))
            return false;
        at = next;
    }
    if (slot == NULL || !plain || count > WORD_IDS)
        return true;
    slot->limit = find_limit(&margin, total);
    slot->count = count;
    for (unsigned i = 0; i < count; i++) {
        slot->ids[i] = s->tokens->ids[first + i];
        slot->scores[i] = s->m->pieces[slot->ids[i]].score;
    }
    return true;
}

/* ---- bpe ---- */

static const uint8_t *text_of(const struct state *s)
{
    return s->normal.text;
}

static void
rank_pair(struct state *s, struct hr_heap *heap, struct symbol *symbols, uint32_t at)
{
    struct symbol *left = &symbols[at], *right;
    uint32_t bytes;

    left->rank = NOWHERE;
    if (left->after == NOWHERE)
        return;
    right = &symbols[left->after];
    bytes = left->bytes + right->bytes;
    if (left->frozen || right->frozen || bytes > HR_PIECE_MAX)
        return;
    left->pair_id = hr__trie_find(&s->m->trie, text_of(s) + left->start, bytes);
    if (left->pair_id < 0)
        return;
    left->rank = s->m->pieces[left->pair_id].rank;
    hr__heap_push(heap, (uint64_t)left->rank << 32 | at);
    if (s->m->pieces[left->pair_id].type == HR_PIECE_UNUSED)
        s->splits[left->pair_id] = left->bytes;
}

static void
merge_at(struct state *s, struct hr_heap *heap, struct symbol *symbols, uint32_t at)
{
    struct symbol *left = &symbols[at], *right = &symbols[left->after];

    left->bytes += right->bytes;
    left->id = left->pair_id;
    left->after = right->after;
    right->bytes = 0;
    right->rank = NOWHERE;
    if (left->after != NOWHERE)
        symbols[left->after].before = at;
    if (left->before != NOWHERE)
        rank_pair(s, heap, symbols, left->before);
    rank_pair(s, heap, symbols, at);
}

/* The id of a character or user-defined piece, or of the unknown piece. */
static int32_t
find_id(const struct hr_sentencepiece *m, const uint8_t *text, size_t bytes)
{
    int32_t id = hr__trie_find(&m->trie, text, bytes);

    return id < 0 ? m->unknown : id;
}

/* A symbol's id; unused pieces are taken apart again, and unused characters are unknown.
 */
static bool add_symbol(struct state *s, const uint8_t *text, uint32_t bytes, int32_t id)
{
    const struct hr_sentencepiece *m = s->m;

    while (m->pieces[id].type == HR_PIECE_UNUSED &&
           bytes > hr__piece_char(text[0], bytes)) {
        uint32_t left = s->splits[id];

        if (!add_symbol(s, text, left, find_id(m, text, left)))
            return false;
        text += left;
        bytes -= left;
        id = find_id(m, text, bytes);
    }
    return add_piece(s, text, bytes,
                     m->pieces[id].type == HR_PIECE_UNUSED ? m->unknown : id);
}

static uint32_t
split_word(struct state *s, const uint8_t *word, uint32_t bytes, struct symbol *symbols)
{
    uint32_t count = 0;

    for (uint32_t at = 0; at < bytes; count++) {
        size_t length = hr__sentencepiece_user(s->m, word + at, bytes - at);
        bool frozen = length > 0;

        if (!frozen)
            length = hr__piece_char(word[at], bytes - at);
        symbols[count] = (struct symbol){.start = (uint32_t)(word - text_of(s)) + at,
                                         .bytes = (uint32_t)length,
                                         .before = count - 1,
                                         .after = count + 1,
                                         .id = find_id(s->m, word + at, length),
                                         .frozen = frozen};
        at += (uint32_t)length;
    }
    if (count > 0)
        symbols[count - 1].after = NOWHERE;
    return count;
}

/* Each merge pushes at most two pairs and removes a symbol, so 3 items per symbol
 * suffice. */
static bool
encode_bpe(struct state *s, const uint8_t *word, uint32_t bytes, struct word *slot)
{
    size_t first = s->tokens->count, per_byte = sizeof(struct symbol) + 24, added;
    struct hr_heap heap = {NULL};
    struct symbol *symbols;
    uint32_t count;

    if (!scratch_room(s, bytes * per_byte))
        return false;
    heap.items = s->scratch;
    symbols = (struct symbol *)(heap.items + 3 * (size_t)bytes);
    count = split_word(s, word, bytes, symbols);
    for (uint32_t i = 0; i < count; i++)
        rank_pair(s, &heap, symbols, i);
    while (heap.count > 0) {
        uint64_t item = hr__heap_pop(&heap);
        uint32_t at = (uint32_t)item;

        if (symbols[at].bytes > 0 && symbols[at].rank == item >> 32)
            merge_at(s, &heap, symbols, at);
    }
    for (uint32_t at = 0; at != NOWHERE && count > 0; at = symbols[at].after)
        if (!add_symbol(s, text_of(s) + symbols[at].start, symbols[at].bytes,
                        symbols[at].id))
            return false;
    added = s->tokens->count - first;
    if (slot == NULL || s->any_unknown || added > WORD_IDS)
        return true;
    slot->limit = INFINITY;
    slot->count = (uint32_t)added;
    memcpy(slot->ids, s->tokens->ids + first, added * sizeof slot->ids[0]);
    memset(slot->scores, 0, sizeof slot->scores);
    return true;
}

/* ---- text ---- */

static inline struct key key_of(const uint8_t *word, size_t bytes)
{
    struct key key;

    memcpy(&key, word, sizeof key);
    for (size_t i = 0; i < PARTS; i++) {
        size_t left = bytes > 8 * i ? bytes - 8 * i : 0;

        key.parts[i] = left >= 8 ? key.parts[i] : key.parts[i] & ((1ULL << 8 * left) - 1);
    }
    key.parts[PARTS - 1] |= (uint64_t)bytes << 56;
    return key;
}

static inline bool same(const struct key *a, const struct key *b)
{
    return ((a->parts[0] ^ b->parts[0]) | (a->parts[1] ^ b->parts[1]) |
            (a->parts[2] ^ b->parts[2])) == 0;
}

static inline struct word *set_of(const struct state *s, const struct key *key)
{
    uint64_t hash = key->parts[0] * 0x9E3779B97F4A7C15;

    hash = (hash ^ hash >> 32 ^ key->parts[1]) * 0xD6E8FEB86659FD93;
    hash = (hash ^ hash >> 32 ^ key->parts[2]) * 0x9E3779B97F4A7C15;
    return s->words + (hash >> (64 - SETS_LOG2)) * WAYS;
}

static bool
encode_word(struct state *s, const uint8_t *word, uint32_t bytes, struct word *slot)
{
    s->any_unknown = false;
    return s->m->merges ? encode_bpe(s, word, bytes, slot)
                        : encode_unigram(s, word, bytes, slot);
}

/* The ids of a word that was seen; false if it has to be encoded. */
static inline bool add_seen(struct state *s, const struct word *seen)
{
    float total = s->total;

    if (!(fabsf(total) < seen->limit))
        return false;
    memcpy(s->tokens->ids + s->tokens->count, seen->ids, sizeof seen->ids);
    s->tokens->count += seen->count;
    for (uint32_t i = 0; i < seen->count; i++)
        total += seen->scores[i];
    s->total = total;
    s->after_unknown = false;
    return true;
}

/* A word without an entry, or whose entry does not hold here. */
static __attribute__((noinline)) bool
encode_new(struct state *s, const uint8_t *word, uint32_t bytes, const struct key *key)
{
    struct word *set = set_of(s, key), fresh = {.count = 0};
    unsigned way = 0;

    if (!encode_word(s, word, bytes, &fresh))
        return false;
    if (fresh.count == 0)
        return true;
    while (way < WAYS && set[way].count != 0 && !same(&set[way].key, key))
        way++;
    /* A full set: the victim depends on the word, so that words take turns. */
    if (way == WAYS)
        way = (unsigned)(key->parts[0] * 0x9E3779B97F4A7C15 >> 40) % WAYS;
    fresh.key = *key;
    set[way] = fresh;
    return true;
}

static bool encode_words(struct state *s)
{
    const struct hr_normal *n = &s->normal;

    for (size_t i = 0; i < n->word_count; i++) {
        uint32_t from = n->words[i];
        size_t to = i + 1 < n->word_count ? n->words[i + 1] : n->bytes;
        size_t bytes = to - from;
        const uint8_t *word = n->text + from;
        const struct word *set;
        struct key key;

        if (bytes > WORD_MAX || !s->m->by_word) {
            if (!encode_word(s, word, (uint32_t)bytes, NULL))
                return false;
            continue;
        }
        key = key_of(word, bytes);
        set = set_of(s, &key);
        if (s->tokens->room - s->tokens->count < WORD_IDS &&
            !hr__tokens_room(s->tokens, WORD_IDS))
            return false;
        if (same(&set[0].key, &key) && add_seen(s, &set[0]))
            continue;
        if (same(&set[1].key, &key) && add_seen(s, &set[1]))
            continue;
        if (bytes > 0 && !encode_new(s, word, (uint32_t)bytes, &key))
            return false;
    }
    return true;
}

/* Buffers of a long text are not kept. */
static void trim(struct state *s)
{
    if (s->normal.room > KEPT_MAX || s->normal.word_room > KEPT_MAX / 4)
        hr__normal_finish(&s->normal);
    if (s->scratch_bytes > KEPT_MAX) {
        hr__free(s->scratch);
        s->scratch = NULL;
        s->scratch_bytes = 0;
    }
}

static enum hr_err
encode(void *user, const uint8_t *text, size_t bytes, struct hr_tokens *tokens)
{
    struct state *s = user;
    size_t before = tokens->count;
    enum hr_err err;

    s->tokens = tokens;
    s->total = 0;
    s->after_unknown = false;
    err = hr__sentencepiece_normalize(s->m, text, bytes, &s->normal);
    if (err == HR_OK && !encode_words(s))
        err = HR_ERR_MEMORY;
    if (err != HR_OK)
        tokens->count = before;
    trim(s);
    return err;
}

/* ---- decoding ---- */

/* Spaces instead of U+2581. */
static void put_text(struct hr_text_out *out, const uint8_t *text, size_t bytes)
{
    size_t from = 0;

    for (size_t at = 0; at + HR_SPACE_BYTES <= bytes;) {
        if (memcmp(text + at, HR_SPACE, HR_SPACE_BYTES) != 0) {
            at++;
            continue;
        }
        hr__text_out(out, text + from, at - from);
        hr__text_out(out, " ", 1);
        at = from = at + HR_SPACE_BYTES;
    }
    hr__text_out(out, text + from, bytes - from);
}

/* Writes the characters of `count` byte pieces; U+FFFD for bytes that are none. */
static void put_bytes(const struct hr_sentencepiece *m, const int32_t *ids, size_t count,
                      struct hr_text_out *out)
{
    for (size_t at = 0; at < count;) {
        char bytes[4];
        size_t have = 0, length;

        for (; have < sizeof bytes && at + have < count; have++)
            bytes[have] = (char)m->pieces[ids[at + have]].byte;
        length = hr__utf8_length(bytes, have);
        if (length == 0)
            hr__text_out(out, "\xEF\xBF\xBD", 3);
        else
            hr__text_out(out, bytes, length);
        at += length == 0 ? 1 : length;
    }
}

static enum hr_err check_ids(const struct hr_sentencepiece *m, const int32_t *ids,
                             size_t count, struct hr_error *reterr)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= m->count)
            return hr__fail(reterr, HR_ERR_RANGE, "id %d at position %zu is no token",
                            (int)ids[i], i);
    return HR_OK;
}

/* The space that was put before the text is removed, and with remove_spaces all before
 * the first piece with another character. */
static enum hr_err decode(const void *model, const int32_t *ids, size_t count,
                          struct hr_text_out *out, struct hr_error *reterr)
{
    const struct hr_sentencepiece *m = model;
    bool at_start = m->dummy_prefix || m->remove_spaces, seen = false;
    size_t start = out->bytes;

    HR_TRY(check_ids(m, ids, count, reterr));
    for (size_t i = 0; i < count;) {
        const struct hr_piece *piece = &m->pieces[ids[i]];
        const uint8_t *text = m->text + piece->start;
        size_t bytes = piece->bytes, run = 0;

        while (i + run < count && m->pieces[ids[i + run]].type == HR_PIECE_BYTE)
            run++;
        if (run > 0) {
            put_bytes(m, ids + i, run, out);
            i += run;
            continue;
        }
        i++;
        at_start = at_start && !seen && out->bytes == start;
        seen = false;
        if (piece->type == HR_PIECE_CONTROL)
            continue;
        if (piece->type == HR_PIECE_UNKNOWN) {
            hr__text_out(out, m->unknown_surface, strlen(m->unknown_surface));
            continue;
        }
        if (at_start && bytes >= HR_SPACE_BYTES &&
            memcmp(text, HR_SPACE, HR_SPACE_BYTES) == 0) {
            text += HR_SPACE_BYTES;
            bytes -= HR_SPACE_BYTES;
            seen = !m->remove_spaces;
        }
        put_text(out, text, bytes);
    }
    return HR_OK;
}

static void destroy(void *model)
{
    struct hr_sentencepiece *m = model;

    if (m == NULL)
        return;
    hr__free(m->text);
    hr__free(m->pieces);
    hr__free(m->unknown_surface);
    hr__charsmap_finish(&m->rules);
    hr__trie_finish(&m->trie);
    hr__trie_finish(&m->user);
    hr__free(m);
}

const struct hr_tokenizer_kind hr__sentencepiece_kind = {
    .name = "SentencePiece",
    .state_bytes = WORDS_BYTES,
    .destroy = destroy,
    .begin = begin,
    .end = end,
    .encode = encode,
    .decode = decode,
};
