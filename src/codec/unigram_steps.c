/*
 * codec/unigram_steps.c - the normalisers of Hugging Face's library, as far as files of
 * Unigram models have them.
 */
#include "codec/unicode.h"
#include "codec/unigram_priv.h"
#include "core/alloc.h"
#include "core/str.h"

#include <string.h>

#include "codec/grapheme.def"

/* As tools/gen-unicode numbers them. */
enum hr_grapheme {
    G_OTHER,
    G_CR,
    G_LF,
    G_CONTROL,
    G_EXTEND,
    G_ZWJ,
    G_SPACING,
    G_PREPEND,
    G_REGION,
    G_L,
    G_V,
    G_T,
    G_LV,
    G_LVT,
    G_PICTURE,
    G_CONSONANT,
};
#define G_CLASS 15u
#define G_LINKER 16u /* between consonants */
#define G_LINKED 32u /* around a linker */
#define G_ACCENT 64u

static uint8_t properties_of(uint32_t code)
{
    return grapheme_at[grapheme_blocks[code >> HR_CHAR_BLOCK_BITS]]
                      [code & ((1u << HR_CHAR_BLOCK_BITS) - 1)];
}

bool hr__step_add(struct hr_step_text *to, const void *data, size_t bytes)
{
    if (bytes > to->limit - to->bytes ||
        !hr__array_room(&to->data, to->bytes, &to->room, bytes + 1, 1))
        return false;
    if (bytes > 0)
        memcpy(to->data + to->bytes, data, bytes);
    to->bytes += bytes;
    return true;
}

bool hr__step_well_formed(const uint8_t *text, size_t bytes, struct hr_step_text *to)
{
    size_t from = 0;

    for (size_t at = 0; at < bytes;) {
        size_t length = hr__utf8_length((const char *)text + at, bytes - at);

        if (length > 0) {
            at += length;
            continue;
        }
        if (!hr__step_add(to, text + from, at - from) ||
            !hr__step_add(to, "\xEF\xBF\xBD", 3))
            return false;
        from = ++at;
    }
    return hr__step_add(to, text + from, bytes - from);
}

/* ---- graphemes ---- */

/* What a cluster has been so far, for the character that may join it. */
struct cluster {
    unsigned last;        /* class of the last character */
    bool picture, joined; /* a picture and Extend; and then a ZWJ */
    bool consonant, linked;
    bool region; /* one, which another joins */
};

static void cluster_add(struct cluster *c, unsigned properties)
{
    unsigned class = properties & G_CLASS;
    bool was_picture = c->picture;

    c->picture = class == G_PICTURE || (was_picture && class == G_EXTEND);
    c->joined = was_picture && class == G_ZWJ;
    if (class == G_CONSONANT) {
        c->consonant = true;
        c->linked = false;
    } else if ((properties & (G_LINKER | G_LINKED)) == 0) {
        c->consonant = c->linked = false;
    } else if ((properties & G_LINKER) != 0) {
        c->linked = c->consonant;
    }
    c->region = class == G_REGION && !(c->last == G_REGION && c->region);
    c->last = class;
}

/* Unicode's rules GB3 to GB13 (UAX #29). */
static bool cluster_takes(const struct cluster *c, unsigned properties)
{
    unsigned last = c->last, next = properties & G_CLASS;

    if (last == G_CR || last == G_LF || last == G_CONTROL)
        return last == G_CR && next == G_LF;
    if (next == G_CR || next == G_LF || next == G_CONTROL)
        return false;
    if (next == G_EXTEND || next == G_ZWJ || next == G_SPACING || last == G_PREPEND)
        return true;
    if (last == G_L)
        return next == G_L || next == G_V || next == G_LV || next == G_LVT;
    if (last == G_LV || last == G_V)
        return next == G_V || next == G_T;
    if (last == G_LVT || last == G_T)
        return next == G_T;
    if (next == G_CONSONANT)
        return c->consonant && c->linked;
    if (next == G_PICTURE)
        return c->joined;
    return next == G_REGION && last == G_REGION && c->region;
}

/* Where the cluster at `at` ends. */
static size_t cluster_end(const uint8_t *text, size_t bytes, size_t at)
{
    struct cluster c = {0};

    cluster_add(&c, properties_of(hr__text_code(text, bytes, &at)));
    while (at < bytes) {
        size_t next = at;
        unsigned properties = properties_of(hr__text_code(text, bytes, &next));

        if (!cluster_takes(&c, properties))
            break;
        cluster_add(&c, properties);
        at = next;
    }
    return at;
}

/* ---- SentencePiece's rules ---- */

#define CLUSTER_MAX 6 /* bytes; clusters of fewer are looked up as a whole */

static bool add_mapped(const struct hr_charsmap *rules, const uint8_t *text, size_t bytes,
                       struct hr_step_text *to, bool *ret_found)
{
    size_t length = 0;
    const char *found = NULL;

    if (text[0] != '\0') /* ends a text there */
        found = hr__charsmap_find(rules, text, bytes, HR_MATCH_SHORTEST, &length);
    *ret_found = found != NULL;
    return found == NULL || hr__step_add(to, found, strlen(found));
}

/* A cluster becomes the text of the shortest rule that it begins with, all of it; or each
 * of its characters does. */
static bool run_charsmap(const struct hr_charsmap *rules, const struct hr_step_text *from,
                         struct hr_step_text *to)
{
    const uint8_t *text = from->data;
    size_t end;

    for (size_t at = 0; at < from->bytes; at = end) {
        bool found = false;

        end = cluster_end(text, from->bytes, at);
        if (end - at < CLUSTER_MAX && !add_mapped(rules, text + at, end - at, to, &found))
            return false;
        for (size_t next = at; !found && at < end; at = next) {
            bool mapped;

            (void)hr__text_code(text, end, &next);
            if (!add_mapped(rules, text + at, next - at, to, &mapped) ||
                (!mapped && !hr__step_add(to, text + at, next - at)))
                return false;
        }
    }
    return true;
}

/* ---- the others ---- */

static bool run_form(enum hr_normal_form form, const struct hr_step_text *from,
                     struct hr_step_text *to)
{
    size_t count;
    uint32_t *codes;
    bool done;

    if (hr__text_is_normal(from->data, from->bytes, form))
        return hr__step_add(to, from->data, from->bytes);
    count = hr__text_decomposed(from->data, from->bytes, form);
    codes = hr__malloc((2 * count + 1) * sizeof *codes);
    done = codes != NULL && hr__array_room(&to->data, 0, &to->room, 4 * count + 1, 1);
    if (done)
        to->bytes =
            hr__text_normalize(from->data, from->bytes, form, codes, count, to->data);
    hr__free(codes);
    return done;
}

static bool run_lower(const struct hr_step_text *from, struct hr_step_text *to)
{
    if (!hr__array_room(&to->data, 0, &to->room, HR_TEXT_LOWER_ROOM(from->bytes), 1))
        return false;
    to->bytes = hr__text_lower(from->data, from->bytes, to->data);
    return true;
}

static bool run_accents(const struct hr_step_text *from, struct hr_step_text *to)
{
    size_t kept = 0, next;

    for (size_t at = 0; at < from->bytes; at = next) {
        next = at;
        if ((properties_of(hr__text_code(from->data, from->bytes, &next)) & G_ACCENT) ==
            0)
            continue;
        if (!hr__step_add(to, from->data + kept, at - kept))
            return false;
        kept = next;
    }
    return hr__step_add(to, from->data + kept, from->bytes - kept);
}

static bool run_strip(const struct hr_step *step, const struct hr_step_text *from,
                      struct hr_step_text *to)
{
    size_t start = step->left ? hr__text_white_start(from->data, from->bytes) : 0;
    size_t bytes = from->bytes - start;

    if (step->right && bytes > 0)
        bytes -= hr__text_white_end(from->data + start, bytes);
    return hr__step_add(to, from->data + start, bytes);
}

/* Bytes at the start of the text that are replaced, or 0. */
static size_t match(const struct hr_step *step, const uint8_t *text, size_t bytes)
{
    size_t run = 0;

    if (step->kind == HR_STEP_REPLACE)
        return step->from_bytes <= bytes &&
                       memcmp(text, step->from, step->from_bytes) == 0
                   ? step->from_bytes
                   : 0;
    while (run < bytes && text[run] == ' ')
        run++;
    return run >= 2 ? run : 0;
}

static bool run_replace(const struct hr_step *step, const struct hr_step_text *from,
                        struct hr_step_text *to)
{
    size_t kept = 0;

    for (size_t at = 0; at < from->bytes;) {
        size_t taken = match(step, from->data + at, from->bytes - at);

        if (taken == 0) {
            at++;
            continue;
        }
        if (!hr__step_add(to, from->data + kept, at - kept) ||
            !hr__step_add(to, step->to, step->to_bytes))
            return false;
        kept = at += taken;
    }
    return hr__step_add(to, from->data + kept, from->bytes - kept);
}

bool hr__step_run(const struct hr_step *step, const struct hr_step_text *from,
                  struct hr_step_text *to)
{
    to->bytes = 0;
    if (from->bytes == 0)
        return true;
    switch (step->kind) {
    case HR_STEP_CHARSMAP:
        return run_charsmap(&step->rules, from, to);
    case HR_STEP_FORM:
        return run_form(step->form, from, to);
    case HR_STEP_LOWER:
        return run_lower(from, to);
    case HR_STEP_ACCENTS:
        return run_accents(from, to);
    case HR_STEP_STRIP:
        return run_strip(step, from, to);
    default:
        return run_replace(step, from, to);
    }
}

void hr__step_finish(struct hr_step *step)
{
    hr__free(step->from);
    hr__free(step->to);
    hr__charsmap_finish(&step->rules);
}
