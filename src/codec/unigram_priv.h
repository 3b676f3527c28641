/*
 * codec/unigram_priv.h - a Unigram model's tables, shared by the unigram*.c files.
 */
#ifndef HR_CODEC_UNIGRAM_PRIV_H
#define HR_CODEC_UNIGRAM_PRIV_H

#include "codec/sentencepiece_priv.h"
#include "codec/text.h"
#include "codec/unigram.h"

/* ---- unigram_steps.c: normalisers ---- */

enum hr_step_kind {
    HR_STEP_CHARSMAP, /* Precompiled */
    HR_STEP_FORM,     /* NFC and so on */
    HR_STEP_LOWER,
    HR_STEP_ACCENTS, /* StripAccents */
    HR_STEP_STRIP,
    HR_STEP_REPLACE, /* a string */
    HR_STEP_SPACES,  /* Replace of the pattern " {2,}" */
};

struct hr_step {
    enum hr_step_kind kind;
    enum hr_normal_form form; /* FORM */
    bool left, right;         /* STRIP */
    char *from, *to;          /* REPLACE, SPACES (`to`); texts */
    size_t from_bytes, to_bytes;
    struct hr_charsmap rules; /* CHARSMAP */
};

struct hr_step_text {
    uint8_t *data;
    size_t bytes, room;
    size_t limit; /* more bytes are as if there were no memory */
};

/* A text of a file's steps has at most as many bytes per byte of the text given. */
#define HR_STEP_GROWTH 256

/* Adds to a text; false when out of memory. */
bool hr__step_add(struct hr_step_text *to, const void *data, size_t bytes);

/* Adds the text with U+FFFD for each byte that is not part of a well-formed character. */
bool hr__step_well_formed(const uint8_t *text, size_t bytes, struct hr_step_text *to);

/* Sets *to to what a step makes of well-formed text, which is well-formed. False when out
 * of memory. */
bool hr__step_run(const struct hr_step *step, const struct hr_step_text *from,
                  struct hr_step_text *to);

void hr__step_finish(struct hr_step *step);

/* ---- the model ---- */

#define HR_STEPS_MAX 32

enum hr_prepend { HR_PREPEND_ALWAYS, HR_PREPEND_FIRST, HR_PREPEND_NEVER };

enum hr_unigram_decoder {
    HR_DECODE_WORDS,     /* none: tokens with spaces between them */
    HR_DECODE_METASPACE, /* `mark` becomes a space */
    HR_DECODE_CHAIN,     /* Replace, ByteFallback, Fuse, Strip: those that are set */
};

struct hr_unigram {
    struct hr_step steps[HR_STEPS_MAX];
    size_t step_count;

    bool by_white;  /* WhitespaceSplit */
    bool metaspace; /* spaces become `mark`, which is put before words */
    bool split;     /* at each mark */
    enum hr_prepend prepend;
    char mark[5];
    size_t mark_bytes;

    uint8_t *text; /* of all tokens */
    struct hr_token {
        uint32_t start, bytes; /* in `text`; 0 bytes: no token has this id */
        double score;
    } * tokens;
    uint32_t count; /* tokens and ids that are none */
    struct hr_trie trie;
    int32_t unknown, byte_ids[256]; /* -1: there is none; all are if not byte_fallback */
    double unknown_score;

    enum hr_unigram_decoder decoder;
    char decode_mark[5]; /* METASPACE */
    bool decode_first;   /* METASPACE: marks of the first token are spaces, too */
    char *decode_from, *decode_to; /* CHAIN: Replace; or NULL */
    bool decode_bytes;             /* CHAIN: ByteFallback */
    char decode_strip[5]; /* CHAIN: up to `decode_left` of it are removed at the start */
    size_t decode_left;
};

extern const struct hr_tokenizer_kind hr__unigram_kind;

#endif
