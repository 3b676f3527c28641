/*
 * ops/join_pairs.c - which records of two inputs have equal keys.
 *
 * The keys of the right input are kept in a hash table of groups of records with equal
 * keys (join_table.h); those of the left input are looked up, a block at a time.
 */
#include "ops/join_pairs.h"

#include <string.h>

#include "core/alloc.h"
#include "ops/join_table.h"

/* ---- keys ---- */

/* HR_ERR_FORMAT: it is no integer. */
static enum hr_err parse(const char *text, size_t bytes, int64_t *ret_number)
{
    bool minus = bytes > 0 && text[0] == '-';
    size_t at = minus || (bytes > 0 && text[0] == '+') ? 1 : 0;
    int64_t number = 0;

    if (at == bytes)
        return HR_ERR_FORMAT;
    for (; at < bytes; at++) {
        int digit = text[at] - '0';

        if (digit < 0 || digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_sub_overflow(number, digit, &number))
            return HR_ERR_FORMAT;
    }
    if (!minus && number == INT64_MIN)
        return HR_ERR_FORMAT;
    *ret_number = minus ? number : -number;
    return HR_OK;
}

/* The key of record `at`; HR_ERR_NOT_FOUND: it has none. */
static enum hr_err read_key(struct hr_join_reader *r, uint64_t at, const char **ret_key,
                            size_t *ret_bytes, struct hr_error *error)
{
    enum hr_err code = r->keys->get(r->keys, at, &r->text, error);

    if (code == HR_ERR_FORMAT) {
        hr__error_prefix(
            error, "record %llu of '%s' is damaged, so that its \"%s\" is not known",
            (unsigned long long)at, r->keys->of, r->by);
        return code;
    }
    HR_TRY(code);
    *ret_key = hr__str_text(&r->text);
    *ret_bytes = r->text.length;
    if (!r->integers)
        return HR_OK;
    if (parse(*ret_key, *ret_bytes, &r->number) != HR_OK)
        return hr__fail(
            error, HR_ERR_FORMAT,
            "record %llu of '%s' has the \"%s\" \"%.80s\", which is no decimal "
            "integer of 64 bits",
            (unsigned long long)at, r->keys->of, r->by, *ret_key);
    *ret_key = (const char *)&r->number;
    *ret_bytes = sizeof r->number;
    return HR_OK;
}

/* Keys are looked up some at a time, so that the memory of their buckets is on its way
 * from the first key to the last one of a block. */
#define BLOCK 128

struct block {
    uint64_t from, hashes[BLOCK];
    uint32_t count;
    bool has_key[BLOCK];
};

/* Reads the next keys, which become those from `base` on; adds up those without. */
static enum hr_err read_block(struct block *block, struct hr_join_reader *r,
                              const struct hr_join_table *t, struct hr_join_keys *keys,
                              size_t base, uint64_t *empty, struct hr_error *error)
{
    static const char zeros[sizeof(int64_t)];
    uint64_t left = r->keys->count - block->from;

    block->count = left < BLOCK ? (uint32_t)left : BLOCK;
    for (uint32_t i = 0; i < block->count; i++) {
        const char *key = zeros;
        size_t bytes = keys->integers ? sizeof zeros : 0;
        enum hr_err code = read_key(r, block->from + i, &key, &bytes, error);

        if (code != HR_OK && code != HR_ERR_NOT_FOUND)
            return code;
        if (!hr__join_key_add(keys, base + i, key, bytes))
            return hr__fail(error, HR_ERR_MEMORY, "out of memory for the keys of '%s'",
                            r->keys->of);
        block->has_key[i] = code == HR_OK;
        *empty += code != HR_OK;
        block->hashes[i] = hr__hash64(key, bytes, 0);
        hr__join_table_fetch(t, block->hashes[i]);
    }
    return HR_OK;
}

static enum hr_err fill_table(struct hr_join_table *t, struct hr_join_reader *reader,
                              uint64_t *empty, struct hr_error *error)
{
    struct block block;

    if (!hr__join_table_init(t, (size_t)reader->keys->count, reader->integers))
        return hr__fail(error, HR_ERR_MEMORY, "out of memory for the keys of '%s'",
                        reader->keys->of);
    for (block.from = 0; block.from < reader->keys->count; block.from += block.count) {
        HR_TRY(read_block(&block, reader, t, &t->keys, (size_t)block.from, empty, error));
        for (uint32_t i = 0; i < block.count; i++)
            if (block.has_key[i])
                hr__join_table_enter(t, (uint32_t)block.from + i, block.hashes[i]);
    }
    return HR_OK;
}

/* ---- pairs ---- */

/* Adds the pairs of a left record with a group. */
static void
add_pairs(struct hr_join_pairs *pairs, struct hr_join_table *t, uint32_t group)
{
    pairs->used[HR_JOIN_LEFT]++;
    if (t->last[group] != HR_JOIN_NONE) /* the first time */
        pairs->used[HR_JOIN_RIGHT] += t->size[group];
    t->last[group] = HR_JOIN_NONE;
    pairs->count += t->size[group];
}

static enum hr_err refuse_many(const struct hr_join_table *t, uint32_t group, uint64_t at,
                               const struct hr_join_reader *left,
                               const struct hr_join_reader *right, struct hr_error *error)
{
    if (group == HR_JOIN_NONE)
        return hr__fail(error, HR_ERR_LIMIT, "there are more than %lu records",
                        (unsigned long)UINT32_MAX);
    return hr__fail(error, HR_ERR_LIMIT,
                    "there are more than %lu pairs of records with equal keys: the "
                    "\"%s\" of record %llu of '%s' alone is that of %lu records of '%s'",
                    (unsigned long)UINT32_MAX, left->by, (unsigned long long)at,
                    left->keys->of, (unsigned long)t->size[group], right->keys->of);
}

/* Finds the group of each left record; counts pairs, and with `all` records without any.
 * `keys` is for those of a block. */
static enum hr_err
match(struct hr_join_table *t, struct hr_join_reader *left,
      const struct hr_join_reader *right, bool all, struct hr_join_keys *keys,
      uint32_t *groups, struct hr_join_pairs *pairs, struct hr_error *error)
{
    struct block block;

    for (block.from = 0; block.from < left->keys->count; block.from += block.count) {
        keys->length = 0;
        HR_TRY(read_block(&block, left, t, keys, 0, &pairs->empty[HR_JOIN_LEFT], error));
        for (uint32_t i = 0; i < block.count; i++)
            hr__join_table_fetch_group(t, block.hashes[i]);
        for (uint32_t i = 0; i < block.count; i++) {
            size_t bytes;
            const char *key = hr__join_key(keys, i, &bytes);
            uint32_t group = block.has_key[i]
                                 ? hr__join_table_find(t, block.hashes[i], key, bytes)
                                 : HR_JOIN_NONE;

            groups[block.from + i] = group;
            if (group != HR_JOIN_NONE)
                add_pairs(pairs, t, group);
            else
                pairs->alone += all;
            if (pairs->count + pairs->alone > UINT32_MAX)
                return refuse_many(t, group, block.from + i, left, right, error);
        }
    }
    return HR_OK;
}

static enum hr_err
list(const struct hr_join_table *t, const uint32_t *groups, struct hr_join_pairs *pairs)
{
    bool all = pairs->alone > 0;
    size_t filled = 0;

    pairs->count += pairs->alone;

    for (int side = HR_JOIN_LEFT; side <= HR_JOIN_RIGHT; side++) {
        pairs->at[side] = hr__malloc(((size_t)pairs->count + 1) * sizeof **pairs->at);
        if (pairs->at[side] == NULL)
            return HR_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < pairs->records[HR_JOIN_LEFT]; i++) {
        if (all && groups[i] == HR_JOIN_NONE) {
            pairs->at[HR_JOIN_LEFT][filled] = i;
            pairs->at[HR_JOIN_RIGHT][filled++] = HR_JOIN_NONE;
        }
        for (uint32_t k = groups[i]; k != HR_JOIN_NONE; k = t->next[k]) {
            pairs->at[HR_JOIN_LEFT][filled] = i;
            pairs->at[HR_JOIN_RIGHT][filled++] = k;
        }
    }
    return HR_OK;
}

/* Appends the first key of the input, for a message. */
static void add_sample(const struct hr_join_reader *r, struct hr_str *out)
{
    struct hr_error unread = {0};
    struct hr_str text;

    hr__str_init(&text);
    for (uint64_t i = 0; i < r->keys->count; i++) {
        if (r->keys->get(r->keys, i, &text, &unread) != HR_OK)
            continue;
        hr__str_addf(out, ", such as ");
        hr__str_add_json(out, hr__str_text(&text), text.length);
        break;
    }
    hr__str_finish(&text);
}

static enum hr_err refuse_none(const struct hr_join_reader *left,
                               const struct hr_join_reader *right, struct hr_error *error)
{
    struct hr_str one, other;

    hr__str_init(&one);
    hr__str_init(&other);
    add_sample(left, &one);
    add_sample(right, &other);
    hr__fail(error, HR_ERR_ARGUMENT,
             "no \"%s\" of '%s'%s, is a \"%s\" of '%s'%s: no records would be left",
             left->by, left->keys->of, hr__str_text(&one), right->by, right->keys->of,
             hr__str_text(&other));
    hr__str_finish(&one);
    hr__str_finish(&other);
    return HR_ERR_ARGUMENT;
}

enum hr_err
hr__join_pairs_make(struct hr_join_reader *left, struct hr_join_reader *right, bool all,
                    struct hr_join_pairs *pairs, struct hr_error *error)
{
    uint32_t *groups = hr__malloc(((size_t)left->keys->count + 1) * sizeof *groups);
    struct hr_join_keys keys = {0};
    struct hr_join_table table = {0};
    enum hr_err code = HR_OK;

    if (groups == NULL || !hr__join_keys_init(&keys, BLOCK, left->integers))
        code = hr__fail(error, HR_ERR_MEMORY, "out of memory for its pairs");
    if (code == HR_OK)
        code = fill_table(&table, right, &pairs->empty[HR_JOIN_RIGHT], error);
    if (code == HR_OK)
        code = match(&table, left, right, all, &keys, groups, pairs, error);
    if (code == HR_OK && !all && pairs->count == 0 && left->keys->count > 0 &&
        right->keys->count > 0)
        code = refuse_none(left, right, error);
    if (code == HR_OK && list(&table, groups, pairs) != HR_OK)
        code = hr__fail(error, HR_ERR_MEMORY, "out of memory for its %llu pairs",
                        (unsigned long long)pairs->count);
    hr__join_table_finish(&table);
    hr__join_keys_finish(&keys);
    hr__free(groups);
    return code;
}

void hr__join_pairs_finish(struct hr_join_pairs *pairs)
{
    hr__free(pairs->at[HR_JOIN_LEFT]);
    hr__free(pairs->at[HR_JOIN_RIGHT]);
}
