#include "codec/sentencepiece_test_util.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define SPACE "\xE2\x96\x81"
#define TOY_BYTES 8 /* of a drawn piece, at most */

static void put_number(struct hr_str *out, uint64_t number)
{
    do {
        uint8_t byte = (uint8_t)((number & 127) | (number > 127 ? 128 : 0));

        hr__str_add_bytes(out, &byte, 1);
        number >>= 7;
    } while (number > 0);
}

void toy_bytes(struct hr_str *out, unsigned field, const void *bytes, size_t count)
{
    put_number(out, field << 3 | 2);
    put_number(out, count);
    hr__str_add_bytes(out, bytes, count);
}

void toy_varint(struct hr_str *out, unsigned field, uint64_t number)
{
    put_number(out, field << 3);
    put_number(out, number);
}

static void put_piece(struct hr_str *out, const char *text, float score, int type)
{
    struct hr_str piece;

    hr__str_init(&piece);
    toy_bytes(&piece, 1, text, strlen(text));
    put_number(&piece, 2 << 3 | 5);
    hr__str_add_bytes(&piece, &score, sizeof score);
    if (type != TOY_NORMAL)
        toy_varint(&piece, 3, (uint64_t)type);
    toy_bytes(out, 1, piece.text, piece.length);
    hr__str_finish(&piece);
}

/* ---- rules ---- */

#define BLOCKS 64

/* A double array of darts-clone with a block of 256 units for each node's children. */
struct array {
    uint32_t units[BLOCKS * 256];
    uint32_t blocks;
};

/* The unit that `byte` leads to from the node at `node`, made if it is not there. */
static uint32_t child_of(struct array *a, uint32_t node, uint8_t byte)
{
    uint32_t base;

    if (a->units[node] >> 10 == 0) {
        CHECK(a->blocks < BLOCKS);
        a->units[node] |= (node ^ 256 * a->blocks) << 10;
        a->blocks++;
    }
    base = node ^ a->units[node] >> 10;
    a->units[base + byte] |= byte;
    return base + byte;
}

static void put_rules(struct hr_str *out, const struct toy_rule *rules)
{
    struct array *a = calloc(1, sizeof *a);
    struct hr_str texts, map;
    uint32_t bytes;

    hr__str_init(&texts);
    hr__str_init(&map);
    a->blocks = 1;
    for (; rules->from != NULL; rules++) {
        uint32_t node = 0;

        for (const char *at = rules->from; *at != '\0'; at++)
            node = child_of(a, node, (uint8_t)*at);
        a->units[child_of(a, node, 0)] = 1U << 31 | (uint32_t)texts.length;
        a->units[node] |= 1U << 8;
        hr__str_add_bytes(&texts, rules->to, strlen(rules->to) + 1);
    }
    bytes = a->blocks * 1024;
    hr__str_add_bytes(&map, &bytes, sizeof bytes);
    hr__str_add_bytes(&map, a->units, bytes);
    hr__str_add_bytes(&map, texts.text, texts.length);
    toy_bytes(out, 2, map.text, map.length);
    hr__str_finish(&texts);
    hr__str_finish(&map);
    free(a);
}

void toy_write(const struct toy *toy, struct hr_str *out)
{
    struct hr_str message;

    hr__str_init(out);
    hr__str_init(&message);
    for (const struct toy_piece *p = toy->pieces; p->text != NULL; p++)
        put_piece(out, p->text, p->score, p->type);
    for (unsigned byte = 0; byte < 256 && toy->bytes; byte++) {
        char name[8];

        snprintf(name, sizeof name, "<0x%02X>", byte);
        put_piece(out, name, 0, TOY_BYTE);
    }
    toy_varint(&message, 3, toy->bpe ? 2 : 1);
    if (toy->suffix)
        toy_varint(&message, 24, 1);
    if (toy->bytes)
        toy_varint(&message, 35, 1);
    toy_bytes(out, 2, message.text, message.length);
    hr__str_clear(&message);
    if (toy->rules != NULL)
        put_rules(&message, toy->rules);
    if (toy->no_prefix)
        toy_varint(&message, 3, 0);
    if (toy->keep_spaces)
        toy_varint(&message, 4, 0);
    toy_bytes(out, 3, hr__str_text(&message), message.length);
    hr__str_finish(&message);
}

/* ---- drawn models ---- */

static const struct toy_piece *find_piece(const struct toy_drawn *drawn, const char *text)
{
    for (const struct toy_piece *p = drawn->pieces; p->text != NULL; p++)
        if (strcmp(p->text, text) == 0)
            return p;
    return NULL;
}

void toy_draw(struct toy_drawn *drawn, bool bpe, struct hr_rng *rng)
{
    static const char *const singles[] = {SPACE, "a", "b", "c", "d"};
    size_t count = 1;

    memset(drawn, 0, sizeof *drawn);
    drawn->pieces[0] = (struct toy_piece){"<unk>", 0, TOY_UNKNOWN};
    while (count < TOY_DRAWN) {
        char *text = drawn->texts[count];
        unsigned letters = 2 + (unsigned)hr__rng_below(rng, 3);
        float score = -1 - (float)hr__rng_below(rng, 1000) / 64;

        if (count <= 5)
            snprintf(text, sizeof drawn->texts[0], "%s", singles[count - 1]);
        else if (hr__rng_below(rng, 3) == 0)
            snprintf(text, sizeof drawn->texts[0], SPACE);
        for (unsigned i = 0; i < letters && count > 5; i++)
            snprintf(text + strlen(text), sizeof drawn->texts[0] - strlen(text), "%s",
                     singles[1 + hr__rng_below(rng, 4)]);
        if (find_piece(drawn, text) != NULL) {
            text[0] = '\0';
            continue;
        }
        /* Scores of bpe differ, and those of unigram may be equal. */
        drawn->pieces[count] =
            (struct toy_piece){text, bpe ? -(float)count : score, TOY_NORMAL};
        count++;
    }
}

static size_t char_bytes(const char *text)
{
    return (uint8_t)text[0] >= 0xE0 ? 3 : 1;
}

/* The id of the first `bytes` bytes of a text, or 0. */
static int32_t id_of(const struct toy_drawn *drawn, const char *text, size_t bytes)
{
    char copy[TOY_BYTES + 1];
    const struct toy_piece *p;

    if (bytes > TOY_BYTES)
        return 0;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    p = find_piece(drawn, copy);
    return p != NULL ? (int32_t)(p - drawn->pieces) : 0;
}

/* The best way to each place, from all that lead there. */
static size_t
encode_unigram(const struct toy_drawn *drawn, const char *text, int32_t *ids)
{
    size_t bytes = strlen(text), count = 0;
    float *scores = calloc(bytes + 1, sizeof *scores), least = 0;
    size_t *from = calloc(bytes + 1, sizeof *from);
    int32_t *best = calloc(bytes + 1, sizeof *best);

    for (const struct toy_piece *p = drawn->pieces + 1; p->text != NULL; p++)
        least = p->score < least ? p->score : least;
    for (size_t end = 1; end <= bytes; end++) {
        best[end] = -1;
        for (size_t at = end > TOY_BYTES ? end - TOY_BYTES : 0; at < end; at++) {
            int32_t id = id_of(drawn, text + at, end - at);
            float score = scores[at] + (id > 0 ? drawn->pieces[id].score : least - 10);

            if ((at > 0 && best[at] < 0) ||
                (id == 0 && end - at != char_bytes(text + at)))
                continue;
            if (best[end] >= 0 && score <= scores[end])
                continue;
            best[end] = id;
            scores[end] = score;
            from[end] = at;
        }
    }
    for (size_t at = bytes; at > 0; at = from[at])
        count++;
    for (size_t at = bytes, i = count; at > 0; at = from[at])
        ids[--i] = best[at];
    free(scores);
    free(from);
    free(best);
    return count;
}

/* Merges the best pair in each step. `ends` are the ends of the pieces. */
static size_t encode_bpe(const struct toy_drawn *drawn, const char *text, int32_t *ids)
{
    size_t *ends = calloc(strlen(text) + 2, sizeof *ends), count = 0;

    for (size_t at = 0; text[at] != '\0'; at = ends[count])
        ends[++count] = at + char_bytes(text + at);
    for (;;) {
        int32_t best = 0;
        size_t at = 0;

        for (size_t i = 1; i < count; i++) {
            int32_t id = id_of(drawn, text + ends[i - 1], ends[i + 1] - ends[i - 1]);

            if (id > 0 && (best == 0 || id < best)) { /* lower ids have higher scores */
                best = id;
                at = i;
            }
        }
        if (best == 0)
            break;
        memmove(&ends[at], &ends[at + 1], (count - at) * sizeof *ends);
        count--;
    }
    for (size_t i = 0; i < count; i++)
        ids[i] = id_of(drawn, text + ends[i], ends[i + 1] - ends[i]);
    free(ends);
    return count;
}

size_t toy_encode(const struct toy_drawn *drawn, bool bpe, const char *text, int32_t *ids)
{
    struct hr_str normal;
    size_t count, kept = 0;

    hr__str_init(&normal);
    for (size_t at = 0; text[at] != '\0';) {
        size_t word = strcspn(text + at, " ");

        if (word > 0)
            hr__str_add(&normal, SPACE);
        hr__str_add_bytes(&normal, text + at, word);
        at += word;
        at += strspn(text + at, " ");
    }
    count = bpe ? encode_bpe(drawn, hr__str_text(&normal), ids)
                : encode_unigram(drawn, hr__str_text(&normal), ids);
    for (size_t i = 0; i < count; i++) /* a run of unknown pieces is one */
        if (ids[i] != 0 || kept == 0 || ids[kept - 1] != 0)
            ids[kept++] = ids[i];
    hr__str_finish(&normal);
    return kept;
}
