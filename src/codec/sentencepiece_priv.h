/*
 * codec/sentencepiece_priv.h - a model's tables, shared by the sentencepiece_*.c files.
 */
#ifndef HR_CODEC_SENTENCEPIECE_PRIV_H
#define HR_CODEC_SENTENCEPIECE_PRIV_H

#include "codec/sentencepiece.h"
#include "codec/trie.h"

#define HR_PIECE_MAX 1024 /* bytes; bounds the time that a position of a text takes */
#define HR_SPACE "\xE2\x96\x81"
#define HR_SPACE_BYTES 3

enum hr_piece_type {
    HR_PIECE_NORMAL = 1,
    HR_PIECE_UNKNOWN,
    HR_PIECE_CONTROL,
    HR_PIECE_USER,
    HR_PIECE_UNUSED,
    HR_PIECE_BYTE,
};

struct hr_piece {
    uint32_t start, bytes; /* in `text` */
    float score;
    uint32_t rank; /* bpe: 0 is the highest score; equal for equal scores */
    uint8_t type, byte;
};

/* The rules of a normaliser: a double array of darts-clone, whose values are places of
 * texts that end with a zero byte. */
struct hr_charsmap {
    uint32_t *units; /* NULL: no rules */
    size_t unit_count;
    char *texts; /* the last byte is zero */
    size_t text_bytes;
};

/* Reads the rules as a model file has them, at least 1 byte. HR_ERR_FORMAT,
 * HR_ERR_MEMORY. Finish it also after failure. */
HR_CHECK enum hr_err
hr__charsmap_read(struct hr_charsmap *rules, const uint8_t *data, size_t bytes);
void hr__charsmap_finish(struct hr_charsmap *rules);

/* The text of the longest rule that `text` begins with, or of the shortest; NULL if there
 * is none. Rules that lead outside of the tables match nothing. */
enum hr_charsmap_match { HR_MATCH_LONGEST, HR_MATCH_SHORTEST };
const char *
hr__charsmap_find(const struct hr_charsmap *rules, const uint8_t *text, size_t bytes,
                  enum hr_charsmap_match match, size_t *ret_length);

struct hr_sentencepiece {
    bool merges; /* bpe, else unigram */
    bool dummy_prefix, remove_spaces, escape_spaces, space_suffix, byte_fallback;
    uint8_t *text; /* of all pieces */
    struct hr_piece *pieces;
    uint32_t count;
    int32_t unknown;
    int32_t byte_ids[256]; /* byte_fallback */
    char *unknown_surface; /* what the unknown piece is decoded to */
    struct hr_trie trie;   /* of normal, user-defined and unused pieces */
    struct hr_trie user;   /* of user-defined pieces; without nodes if there are none */
    struct hr_charsmap rules; /* of the normaliser */
    float unknown_score;      /* unigram */
    bool has_unused;
    /* Words, which begin with spaces, can be encoded one by one: no piece goes on after
     * them. */
    bool by_word;
    /* Bytes that become themselves if an ASCII byte follows. */
    bool plain[256];
};

/* ---- sentencepiece_normal.c ---- */

/* Fills in `plain`. */
void hr__sentencepiece_prepare(struct hr_sentencepiece *m);

/* Text in normal form and where its words begin, the first at 0. Zero-initialise. */
struct hr_normal {
    uint8_t *text; /* HR_NORMAL_SLACK bytes can be read after it */
    size_t bytes, room;
    uint32_t *words;
    size_t word_count, word_room;
};
#define HR_NORMAL_SLACK 32

/* HR_ERR_MEMORY only. */
HR_CHECK enum hr_err
hr__sentencepiece_normalize(const struct hr_sentencepiece *m, const uint8_t *text,
                            size_t bytes, struct hr_normal *normal);
void hr__normal_finish(struct hr_normal *normal);

/* Bytes of the character at `text`, by its first byte. */
static inline size_t hr__piece_char(uint8_t first, size_t left)
{
    size_t bytes = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;

    return bytes < left ? bytes : left;
}

/* Bytes of the longest user-defined piece that the text begins with, or 0. */
size_t hr__sentencepiece_user(const struct hr_sentencepiece *m, const uint8_t *text,
                              size_t bytes);

#endif
