/*
 * codec/sentencepiece_normal.c - the normaliser of SentencePiece: the rule with the
 * longest match at each place, then spaces.
 */
#include "codec/sentencepiece_priv.h"
#include "core/alloc.h"
#include "core/str.h"

#include <string.h>

/* ---- rules ---- */

static uint32_t label_of(uint32_t unit)
{
    return unit & 0x800000FFU;
}

static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & 0x200) >> 6);
}

static bool has_leaf(uint32_t unit)
{
    return (unit >> 8 & 1) != 0;
}

/* The unit that a byte leads to from the place of a unit's children, or 0. */
static uint32_t child_of(const struct hr_charsmap *rules, uint32_t children, uint8_t byte)
{
    uint32_t at = children ^ byte;

    return at < rules->unit_count && label_of(rules->units[at]) == byte
               ? rules->units[at] | 0x80000000U
               : 0;
}

#define MATCHES_MAX 32 /* as the library has room for */

const char *
hr__charsmap_find(const struct hr_charsmap *rules, const uint8_t *text, size_t bytes,
                  enum hr_charsmap_match match, size_t *ret_length)
{
    uint32_t at = offset_of(rules->units[0]);
    const char *found = NULL;
    int matches = 0;

    for (size_t i = 0; i < bytes && matches < MATCHES_MAX; i++) {
        uint32_t unit = child_of(rules, at, text[i]), value;

        if (unit == 0)
            break;
        at = (at ^ text[i]) ^ offset_of(unit & 0x7FFFFFFFU);
        if (!has_leaf(unit))
            continue;
        value = at < rules->unit_count ? rules->units[at] & 0x7FFFFFFFU : UINT32_MAX;
        if (value >= rules->text_bytes)
            break;
        found = rules->texts + value;
        *ret_length = i + 1;
        matches++;
        if (match == HR_MATCH_SHORTEST)
            break;
    }
    return found;
}

size_t hr__sentencepiece_user(const struct hr_sentencepiece *m, const uint8_t *text,
                              size_t bytes)
{
    uint32_t node = 0;
    size_t length = 0;

    if (m->user.nodes == NULL)
        return 0;
    for (size_t i = 0; i < bytes && hr__trie_step(&m->user, &node, text[i]); i++)
        if (m->user.nodes[node].value >= 0)
            length = i + 1;
    return length;
}

/* Whether no rule begins with the byte, or only with the byte and one that is not ASCII.
 */
static bool is_plain(const struct hr_charsmap *rules, uint8_t byte)
{
    uint32_t unit, at;

    if (rules->units == NULL)
        return true;
    at = offset_of(rules->units[0]);
    unit = child_of(rules, at, byte);
    if (unit == 0)
        return true;
    at = (at ^ byte) ^ offset_of(unit & 0x7FFFFFFFU);
    if (has_leaf(unit))
        return false;
    for (unsigned next = 0; next < 0x80; next++)
        if (child_of(rules, at, (uint8_t)next) != 0)
            return false;
    return true;
}

void hr__sentencepiece_prepare(struct hr_sentencepiece *m)
{
    for (unsigned byte = 0; byte < 0x80; byte++) {
        uint32_t node = 0;

        m->plain[byte] =
            is_plain(&m->rules, (uint8_t)byte) &&
            (m->user.nodes == NULL || !hr__trie_step(&m->user, &node, (uint8_t)byte));
    }
}

/* ---- text ---- */

struct normalize {
    const struct hr_sentencepiece *m;
    struct hr_normal *to;
    const uint8_t *text, *end;
    bool after_space; /* further spaces are removed */
};

/* What the start of the text becomes. */
struct part {
    const uint8_t *text;
    size_t bytes, taken;
};

static struct part next_part(const struct normalize *n, const uint8_t *at)
{
    static const uint8_t replacement[] = {0xEF, 0xBF, 0xBD};
    size_t left = (size_t)(n->end - at), length;
    const char *found = NULL;

    length = hr__sentencepiece_user(n->m, at, left);
    if (length > 0)
        return (struct part){at, length, length};
    if (n->m->rules.units != NULL)
        found = hr__charsmap_find(&n->m->rules, at, left, HR_MATCH_LONGEST, &length);
    if (found != NULL)
        return (struct part){(const uint8_t *)found, strlen(found), length};
    length = hr__utf8_length((const char *)at, left);
    return length == 0 ? (struct part){replacement, sizeof replacement, 1}
                       : (struct part){at, length, length};
}

/* Places in the text are 32 bits: longer ones are as if there were no memory. */
static bool reserve(struct hr_normal *to, size_t more)
{
    if (to->bytes + more > UINT32_MAX - HR_NORMAL_SLACK)
        return false;
    return to->room - to->bytes >= more + HR_NORMAL_SLACK ||
           hr__array_room(&to->text, to->bytes, &to->room, more + HR_NORMAL_SLACK, 1);
}

static bool ends_with_space(const struct hr_normal *to, const char *space, size_t bytes)
{
    return to->bytes >= bytes && memcmp(to->text + to->bytes - bytes, space, bytes) == 0;
}

static const char *space_of(const struct hr_sentencepiece *m)
{
    return m->escape_spaces ? HR_SPACE : " ";
}

/* A word begins at a space after something else. */
static bool add_space(struct normalize *n)
{
    struct hr_normal *to = n->to;
    const char *space = space_of(n->m);
    size_t bytes = strlen(space);

    if (n->m->by_word && to->bytes > 0 && !ends_with_space(to, space, bytes)) {
        if (to->word_count == to->word_room &&
            !hr__array_room(&to->words, to->word_count, &to->word_room, 1,
                            sizeof *to->words))
            return false;
        to->words[to->word_count++] = (uint32_t)to->bytes;
    }
    memcpy(to->text + to->bytes, space, bytes);
    to->bytes += bytes;
    return true;
}

static bool add_part(struct normalize *n, struct part part)
{
    const uint8_t *at = part.text, *end = at + part.bytes;

    while (n->after_space && at < end && *at == ' ')
        at++;
    if (at == end)
        return true;
    if (!reserve(n->to, HR_SPACE_BYTES * part.bytes))
        return false;
    n->after_space = n->m->remove_spaces && end[-1] == ' ';
    for (; at < end; at++) {
        if (*at != ' ')
            n->to->text[n->to->bytes++] = *at;
        else if (!add_space(n))
            return false;
    }
    return true;
}

/* The bytes of the text that become themselves. */
static const uint8_t *add_plain(struct normalize *n, const uint8_t *at)
{
    const bool *plain = n->m->plain;
    uint8_t *to = n->to->text + n->to->bytes, *start = to;

    while (n->end - at >= 2 && *at != ' ' && plain[*at] && at[1] < 0x80)
        *to++ = *at++;
    if (to != start) {
        n->after_space = false;
        n->to->bytes += (size_t)(to - start);
    }
    return at;
}

static bool add_text(struct normalize *n, const uint8_t *at)
{
    bool plain_space = n->m->plain[' '];

    while (at < n->end) {
        if (!reserve(n->to, (size_t)(n->end - at) + HR_SPACE_BYTES))
            return false;
        at = add_plain(n, at);
        if (plain_space && n->end - at >= 2 && *at == ' ' && at[1] < 0x80) {
            if (!n->after_space && !add_space(n))
                return false;
            n->after_space = n->m->remove_spaces;
            at++;
        } else if (at < n->end) {
            struct part part = next_part(n, at);

            if (!add_part(n, part))
                return false;
            at += part.taken;
        }
    }
    return true;
}

static void remove_spaces_at_end(struct normalize *n)
{
    const char *space = space_of(n->m);
    size_t bytes = strlen(space);

    while (ends_with_space(n->to, space, bytes))
        n->to->bytes -= bytes;
    while (n->to->word_count > 1 && n->to->words[n->to->word_count - 1] >= n->to->bytes)
        n->to->word_count--;
}

enum hr_err
hr__sentencepiece_normalize(const struct hr_sentencepiece *m, const uint8_t *text,
                            size_t bytes, struct hr_normal *normal)
{
    struct normalize n = {.m = m, .to = normal, .end = text + bytes};
    const uint8_t *at = text;

    normal->bytes = normal->word_count = 0;
    if (!reserve(normal, 2 * HR_SPACE_BYTES) ||
        !hr__array_room(&normal->words, 0, &normal->word_room, 1, sizeof *normal->words))
        return HR_ERR_MEMORY;
    while (m->remove_spaces && at < n.end) {
        struct part part = next_part(&n, at);

        if (part.bytes != 1 || part.text[0] != ' ')
            break;
        at += part.taken;
    }
    if (at == n.end)
        return HR_OK;
    normal->words[normal->word_count++] = 0;
    if (!m->space_suffix && m->dummy_prefix && !add_space(&n))
        return HR_ERR_MEMORY;
    n.after_space = m->remove_spaces;
    if (!add_text(&n, at))
        return HR_ERR_MEMORY;
    if (m->remove_spaces)
        remove_spaces_at_end(&n);
    if (!reserve(normal, HR_SPACE_BYTES))
        return HR_ERR_MEMORY;
    if (m->space_suffix && m->dummy_prefix && !add_space(&n))
        return HR_ERR_MEMORY;
    return HR_OK;
}

void hr__normal_finish(struct hr_normal *normal)
{
    hr__free(normal->text);
    hr__free(normal->words);
    *normal = (struct hr_normal){NULL};
}
