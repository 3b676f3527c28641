/*
 * codec/sentencepiece_read.c - model files: the message ModelProto of
 * sentencepiece_model.proto.
 */
#include "codec/proto.h"
#include "codec/sentencepiece_priv.h"
#include "core/alloc.h"
#include "core/error.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)16 << 20) /* bytes of all pieces */
#define UNKNOWN_PENALTY 10.0f

enum { MODEL_PIECE = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3, MODEL_DENORMALIZER = 5 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum { TRAINER_TYPE = 3, TRAINER_SUFFIX = 24, TRAINER_BYTES = 35, TRAINER_SURFACE = 44 };
enum { TYPE_UNIGRAM = 1, TYPE_BPE = 2 };
enum { NORMAL_RULES = 2, NORMAL_PREFIX = 3, NORMAL_REMOVE = 4, NORMAL_ESCAPE = 5 };

struct read {
    const struct hr_tokenizer_file *file;
    struct hr_sentencepiece *m;
    size_t text_bytes, text_room, piece_room;
    uint64_t type;
    struct hr_proto_bytes rules, surface;
    bool denormalizer;
    struct hr_error *error;
};

static enum hr_err no_memory(const struct read *r)
{
    return hr__fail(r->error, HR_ERR_MEMORY, "%s: out of memory", r->file->name);
}

static enum hr_err malformed(const struct read *r, const uint8_t *at)
{
    return hr__fail(r->error, HR_ERR_FORMAT,
                    "%s: no SentencePiece model, or a damaged one: malformed at byte %zu",
                    r->file->name, (size_t)(at - (const uint8_t *)r->file->data));
}

static enum hr_err
fail_piece(const struct read *r, enum hr_err code, uint32_t id, const char *why)
{
    const struct hr_piece *piece = &r->m->pieces[id];

    return hr__fail(r->error, code, "%s: piece %u \"%.*s\" %s", r->file->name, id,
                    (int)(piece->bytes < 60 ? piece->bytes : 60),
                    (const char *)r->m->text + piece->start, why);
}

/* ---- the message ---- */

static enum hr_err
put_piece(struct read *r, struct hr_proto_bytes text, const struct hr_piece *piece)
{
    struct hr_sentencepiece *m = r->m;
    size_t bytes = (size_t)(text.end - text.at);

    if (m->count >= HR_TOKENIZER_IDS_MAX || bytes > HR_PIECE_MAX ||
        r->text_bytes + bytes > TEXT_MAX)
        return hr__fail(r->error, HR_ERR_LIMIT,
                        "%s: more than %d pieces, a piece of more than %d bytes, or "
                        "more than %zu bytes of all pieces",
                        r->file->name, HR_TOKENIZER_IDS_MAX, HR_PIECE_MAX, TEXT_MAX);
    if (!hr__array_room(&m->pieces, m->count, &r->piece_room, 1, sizeof *m->pieces) ||
        !hr__array_room(&m->text, r->text_bytes, &r->text_room, bytes + 1, 1))
        return no_memory(r);
    if (bytes > 0)
        memcpy(m->text + r->text_bytes, text.at, bytes);
    m->pieces[m->count] = *piece;
    m->pieces[m->count].start = (uint32_t)r->text_bytes;
    m->pieces[m->count].bytes = (uint32_t)bytes;
    r->text_bytes += bytes;
    m->count++;
    return HR_OK;
}

static enum hr_err read_piece(struct read *r, struct hr_proto_bytes in)
{
    struct hr_piece piece = {.type = HR_PIECE_NORMAL};
    struct hr_proto_bytes text = {NULL, NULL};
    struct hr_proto_field field;

    while (in.at < in.end) {
        const uint8_t *at = in.at;

        if (!hr__proto_field(&in, &field))
            return malformed(r, at);
        if (field.number == PIECE_TEXT && field.wire == HR_WIRE_BYTES)
            text = field.bytes;
        else if (field.number == PIECE_SCORE && field.wire == HR_WIRE_32)
            memcpy(&piece.score, field.bytes.at, sizeof piece.score);
        else if (field.number == PIECE_TYPE && field.wire == HR_WIRE_VARINT &&
                 field.varint >= HR_PIECE_NORMAL && field.varint <= HR_PIECE_BYTE)
            piece.type = (uint8_t)field.varint;
        else if (field.number <= PIECE_TYPE)
            return malformed(r, at);
    }
    return put_piece(r, text, &piece);
}

static enum hr_err read_trainer(struct read *r, struct hr_proto_bytes in)
{
    struct hr_proto_field field;

    while (in.at < in.end) {
        const uint8_t *at = in.at;

        if (!hr__proto_field(&in, &field))
            return malformed(r, at);
        if (field.number == TRAINER_SURFACE && field.wire == HR_WIRE_BYTES)
            r->surface = field.bytes;
        if (field.wire != HR_WIRE_VARINT)
            continue;
        if (field.number == TRAINER_TYPE)
            r->type = field.varint;
        else if (field.number == TRAINER_SUFFIX)
            r->m->space_suffix = field.varint != 0;
        else if (field.number == TRAINER_BYTES)
            r->m->byte_fallback = field.varint != 0;
    }
    return HR_OK;
}

static enum hr_err read_normalizer(struct read *r, struct hr_proto_bytes in)
{
    struct hr_proto_field field;

    while (in.at < in.end) {
        const uint8_t *at = in.at;

        if (!hr__proto_field(&in, &field))
            return malformed(r, at);
        if (field.number == NORMAL_RULES && field.wire == HR_WIRE_BYTES)
            r->rules = field.bytes;
        if (field.wire != HR_WIRE_VARINT)
            continue;
        if (field.number == NORMAL_PREFIX)
            r->m->dummy_prefix = field.varint != 0;
        else if (field.number == NORMAL_REMOVE)
            r->m->remove_spaces = field.varint != 0;
        else if (field.number == NORMAL_ESCAPE)
            r->m->escape_spaces = field.varint != 0;
    }
    return HR_OK;
}

static enum hr_err read_denormalizer(struct read *r, struct hr_proto_bytes in)
{
    struct hr_proto_field field;

    while (in.at < in.end) {
        const uint8_t *at = in.at;

        if (!hr__proto_field(&in, &field))
            return malformed(r, at);
        r->denormalizer |= field.number == NORMAL_RULES && field.wire == HR_WIRE_BYTES &&
                           field.bytes.at < field.bytes.end;
    }
    return HR_OK;
}

static enum hr_err read_model(struct read *r)
{
    const uint8_t *data = (const uint8_t *)r->file->data;
    struct hr_proto_bytes in = {data, data + r->file->bytes};
    struct hr_proto_field field;

    while (in.at < in.end) {
        const uint8_t *at = in.at;

        if (!hr__proto_field(&in, &field) ||
            (field.number <= MODEL_DENORMALIZER && field.wire != HR_WIRE_BYTES))
            return malformed(r, at);
        if (field.number == MODEL_PIECE)
            HR_TRY(read_piece(r, field.bytes));
        else if (field.number == MODEL_TRAINER)
            HR_TRY(read_trainer(r, field.bytes));
        else if (field.number == MODEL_NORMALIZER)
            HR_TRY(read_normalizer(r, field.bytes));
        else if (field.number == MODEL_DENORMALIZER)
            HR_TRY(read_denormalizer(r, field.bytes));
    }
    return HR_OK;
}

/* ---- tables ---- */

static enum hr_err check_kind(struct read *r)
{
    static const char *const names[] = {"", "unigram", "bpe", "word", "char"};

    if (r->type != TYPE_UNIGRAM && r->type != TYPE_BPE)
        return hr__fail(r->error, HR_ERR_UNSUPPORTED,
                        "%s: models of type %s are not supported, only unigram and bpe",
                        r->file->name, r->type < 5 ? names[r->type] : "unknown");
    if (r->denormalizer)
        return hr__fail(r->error, HR_ERR_UNSUPPORTED,
                        "%s: models with a denormalizer are not supported",
                        r->file->name);
    r->m->merges = r->type == TYPE_BPE;
    return HR_OK;
}

/* The byte of "<0x41>", or -1. */
static int byte_of(const uint8_t *text, size_t bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *high, *low;

    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' || text[3] == 0 ||
        text[4] == 0)
        return -1;
    high = strchr(digits, text[3]);
    low = strchr(digits, text[4]);
    return high != NULL && low != NULL ? (int)(16 * (high - digits) + (low - digits))
                                       : -1;
}

static enum hr_err check_piece(struct read *r, uint32_t id)
{
    struct hr_sentencepiece *m = r->m;
    struct hr_piece *piece = &m->pieces[id];
    const uint8_t *text = m->text + piece->start;

    if (piece->bytes == 0 || memchr(text, 0, piece->bytes) != NULL)
        return fail_piece(r, HR_ERR_FORMAT, id, "is empty or has a zero byte");
    if (!isfinite(piece->score))
        return fail_piece(r, HR_ERR_FORMAT, id, "has a score that is no number");
    if (piece->type == HR_PIECE_UNKNOWN) {
        if (m->unknown >= 0)
            return fail_piece(r, HR_ERR_FORMAT, id, "is a second unknown piece");
        m->unknown = (int32_t)id;
    }
    if (piece->type == HR_PIECE_BYTE) {
        int byte = byte_of(text, piece->bytes);

        if (byte < 0 || !m->byte_fallback)
            return fail_piece(r, HR_ERR_FORMAT, id,
                              "is a byte, but its name is not like <0x41>, or the model "
                              "has no byte_fallback");
        piece->byte = (uint8_t)byte;
        m->byte_ids[byte] = (int32_t)id;
    }
    m->has_unused |= piece->type == HR_PIECE_UNUSED;
    return HR_OK;
}

static enum hr_err check_pieces(struct read *r)
{
    for (uint32_t id = 0; id < r->m->count; id++)
        HR_TRY(check_piece(r, id));
    if (r->m->unknown < 0)
        return hr__fail(r->error, HR_ERR_FORMAT, "%s: the model has no unknown piece",
                        r->file->name);
    for (int i = 0; i < 256 && r->m->byte_fallback; i++)
        if (r->m->byte_ids[i] < 0)
            return hr__fail(r->error, HR_ERR_FORMAT,
                            "%s: byte_fallback without a piece for byte 0x%02X",
                            r->file->name, (unsigned)i);
    return HR_OK;
}

/* A trie of the pieces of some types. */
static enum hr_err
build_trie(struct read *r, unsigned types, struct hr_trie_key *keys, struct hr_trie *trie)
{
    const struct hr_sentencepiece *m = r->m;
    int32_t twice = 0;
    size_t count = 0;
    enum hr_err err;

    for (uint32_t id = 0; id < m->count; id++)
        if ((types >> m->pieces[id].type & 1) != 0)
            keys[count++] = (struct hr_trie_key){m->text + m->pieces[id].start,
                                                 m->pieces[id].bytes, (int32_t)id};
    err = hr__trie_build(trie, keys, count, &twice);
    if (err == HR_ERR_FORMAT)
        return fail_piece(r, err, (uint32_t)twice, "is defined twice");
    return err == HR_OK ? HR_OK : no_memory(r);
}

#define TYPES_TEXT (1U << HR_PIECE_NORMAL | 1U << HR_PIECE_USER | 1U << HR_PIECE_UNUSED)

static enum hr_err build_tries(struct read *r)
{
    struct hr_sentencepiece *m = r->m;
    struct hr_trie_key *keys = hr__malloc((m->count + (size_t)1) * sizeof *keys);
    bool any_user = false;
    enum hr_err err;

    if (keys == NULL)
        return no_memory(r);
    for (uint32_t id = 0; id < m->count; id++)
        any_user |= m->pieces[id].type == HR_PIECE_USER;
    err = build_trie(r, TYPES_TEXT, keys, &m->trie);
    if (err == HR_OK && any_user)
        err = build_trie(r, 1U << HR_PIECE_USER, keys, &m->user);
    hr__free(keys);
    return err;
}

static int compare_scores(const void *a, const void *b)
{
    const struct hr_piece *x = *(struct hr_piece *const *)a;
    const struct hr_piece *y = *(struct hr_piece *const *)b;

    return (x->score < y->score) - (x->score > y->score);
}

static enum hr_err rank_scores(struct read *r)
{
    struct hr_sentencepiece *m = r->m;
    struct hr_piece **order = hr__malloc((m->count + (size_t)1) * sizeof *order);

    if (order == NULL)
        return no_memory(r);
    for (uint32_t id = 0; id < m->count; id++)
        order[id] = &m->pieces[id];
    qsort(order, m->count, sizeof *order, compare_scores);
    for (uint32_t i = 1; i < m->count; i++)
        order[i]->rank = order[i - 1]->rank + (order[i]->score < order[i - 1]->score);
    hr__free(order);
    return HR_OK;
}

static void find_scores(struct hr_sentencepiece *m)
{
    float least = FLT_MAX;

    for (uint32_t id = 0; id < m->count; id++)
        if (m->pieces[id].type == HR_PIECE_NORMAL && m->pieces[id].score < least)
            least = m->pieces[id].score;
    m->unknown_score = least - UNKNOWN_PENALTY;
}

/* Whether a piece has a space after another character. */
static bool goes_on(const uint8_t *text, size_t bytes)
{
    bool other = false;

    for (size_t at = 0; at < bytes;) {
        bool space = bytes - at >= HR_SPACE_BYTES &&
                     memcmp(text + at, HR_SPACE, HR_SPACE_BYTES) == 0;

        if (space && other)
            return true;
        other |= !space;
        at += space ? HR_SPACE_BYTES : 1;
    }
    return false;
}

static bool is_by_word(const struct hr_sentencepiece *m)
{
    if (!m->escape_spaces || (m->merges && m->has_unused))
        return false;
    for (uint32_t id = 0; id < m->count; id++)
        if ((TYPES_TEXT >> m->pieces[id].type & 1) != 0 &&
            goes_on(m->text + m->pieces[id].start, m->pieces[id].bytes))
            return false;
    return true;
}

enum hr_err
hr__charsmap_read(struct hr_charsmap *rules, const uint8_t *data, size_t bytes)
{
    uint32_t trie_bytes;

    if (bytes < sizeof trie_bytes)
        return HR_ERR_FORMAT;
    memcpy(&trie_bytes, data, sizeof trie_bytes);
    bytes -= sizeof trie_bytes;
    data += sizeof trie_bytes;
    if (trie_bytes >= bytes || trie_bytes < sizeof *rules->units ||
        data[bytes - 1] != '\0')
        return HR_ERR_FORMAT;
    rules->unit_count = trie_bytes / sizeof *rules->units;
    rules->text_bytes = bytes - trie_bytes;
    rules->units = hr__malloc(trie_bytes);
    rules->texts = hr__malloc(rules->text_bytes);
    if (rules->units == NULL || rules->texts == NULL)
        return HR_ERR_MEMORY;
    memcpy(rules->units, data, rules->unit_count * sizeof *rules->units);
    memcpy(rules->texts, data + trie_bytes, rules->text_bytes);
    return HR_OK;
}

void hr__charsmap_finish(struct hr_charsmap *rules)
{
    hr__free(rules->units);
    hr__free(rules->texts);
    *rules = (struct hr_charsmap){0};
}

static enum hr_err read_rules(struct read *r)
{
    size_t bytes = (size_t)(r->rules.end - r->rules.at);
    enum hr_err err;

    if (bytes == 0)
        return HR_OK;
    err = hr__charsmap_read(&r->m->rules, r->rules.at, bytes);
    if (err == HR_ERR_FORMAT)
        return malformed(r, r->rules.at);
    return err == HR_OK ? HR_OK : no_memory(r);
}

static enum hr_err read_surface(struct read *r)
{
    static const char usual[] = " \xE2\x81\x87 ";
    bool given = r->surface.at != NULL;
    size_t bytes = given ? (size_t)(r->surface.end - r->surface.at) : sizeof usual - 1;

    r->m->unknown_surface =
        hr__strndup(given ? (const char *)r->surface.at : usual, bytes);
    return r->m->unknown_surface != NULL ? HR_OK : no_memory(r);
}

static enum hr_err build(struct read *r)
{
    HR_TRY(check_kind(r));
    HR_TRY(check_pieces(r));
    HR_TRY(read_rules(r));
    HR_TRY(read_surface(r));
    HR_TRY(build_tries(r));
    HR_TRY(rank_scores(r));
    find_scores(r->m);
    r->m->by_word = is_by_word(r->m);
    hr__sentencepiece_prepare(r->m);
    return HR_OK;
}

enum hr_err
hr__sentencepiece_read(const struct hr_tokenizer_file *file,
                       struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct read r = {.file = file, .type = TYPE_UNIGRAM, .error = reterr};
    struct hr_sentencepiece *m = hr__calloc(1, sizeof *m);
    enum hr_err err;

    if (m == NULL)
        return no_memory(&r);
    m->dummy_prefix = m->remove_spaces = m->escape_spaces = true;
    m->unknown = -1;
    memset(m->byte_ids, 0xFF, sizeof m->byte_ids);
    r.m = m;
    err = read_model(&r);
    if (err == HR_OK)
        err = build(&r);
    if (err != HR_OK) {
        hr__sentencepiece_kind.destroy(m);
        return err;
    }
    return hr__tokenizer_create(&hr__sentencepiece_kind, m, m->count,
                                hr__hash128(file->data, file->bytes), ret_tokenizer,
                                reterr);
}
