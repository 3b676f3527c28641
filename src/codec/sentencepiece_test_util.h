/*
 * codec/sentencepiece_test_util.h - SentencePiece model files written piece by piece, and
 * what their tokenizers must return, worked out the slow way.
 */
#ifndef HR_CODEC_SENTENCEPIECE_TEST_UTIL_H
#define HR_CODEC_SENTENCEPIECE_TEST_UTIL_H

#include "codec/sentencepiece.h"
#include "core/rng.h"
#include "core/str.h"

/* Types of pieces, as in the file. */
enum { TOY_NORMAL = 1, TOY_UNKNOWN, TOY_CONTROL, TOY_USER, TOY_UNUSED, TOY_BYTE };

struct toy_piece {
    const char *text;
    float score;
    int type;
};

#define TOY_END                                                                          \
    {                                                                                    \
        NULL, 0, 0                                                                       \
    }

struct toy_rule {
    const char *from, *to;
};

struct toy {
    const struct toy_piece *pieces; /* the last has no text */
    const struct toy_rule *rules;   /* the last has no text; NULL: none */
    bool bpe, bytes;                /* bytes: byte_fallback, 256 pieces after `pieces` */
    bool no_prefix, keep_spaces, suffix;
};

/* Writes the file; initialises `out`, which the caller finishes. */
void toy_write(const struct toy *toy, struct hr_str *out);

/* Appends fields of a message. */
void toy_bytes(struct hr_str *out, unsigned field, const void *bytes, size_t count);
void toy_varint(struct hr_str *out, unsigned field, uint64_t number);

/* Pieces drawn at random over the letters a to d and spaces, all of which are pieces. */
#define TOY_DRAWN 60
struct toy_drawn {
    struct toy_piece pieces[TOY_DRAWN + 1];
    char texts[TOY_DRAWN][32];
};
void toy_draw(struct toy_drawn *drawn, bool bpe, struct hr_rng *rng);

/* The ids of words of the letters a to e, of which e is no piece, by trying every way.
 * Returns their number. */
size_t
toy_encode(const struct toy_drawn *drawn, bool bpe, const char *text, int32_t *ids);

#endif
