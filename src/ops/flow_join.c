/*
 * flow.join - joins the records of two inputs that have equal keys.
 *
 * open() reads the keys of both inputs and lists, for each pair of records with equal
 * keys, their positions, in 4 bytes each. Pairs are in the order of the left input, and
 * for one left record in that of the right input. The keys of the right input are kept
 * meanwhile, in a hash table of groups of records with equal keys (join_table.h); those
 * of the left input are looked up, a block at a time.
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "ops/join_table.h"
#include "ops/joined.h"

struct join {
    const char *on, *left_on, *right_on;
    bool integers;
    struct hr_names prefix;
};

static const struct hr_param join_params[] = {
    HR_P_STRING(struct join, on,
                .help =
                    "the key, if it has the same name in both inputs: a field that the "
                    "source knows before it reads a record (a column, a label, an "
                    "integer or a text of an archive), path, stem or index, as for "
                    "order.split"),
    HR_P_STRING(struct join, left_on, .help = "the key of the first input"),
    HR_P_STRING(struct join, right_on, .help = "the key of the second input"),
    HR_P_BOOL(struct join, integers, .fallback = "false",
              .help = "read keys that are texts as decimal integers, so that the file "
                      "000123.jpg, by its stem, is the number 123"),
    HR_P_JOINED_PREFIX(struct join),
};

enum { LEFT, RIGHT };

struct pairs {
    uint64_t count;
    uint32_t *at[2];                        /* position in each input */
    uint64_t records[2], used[2], empty[2]; /* of each input; empty: without a key */
};

/* ---- before any data ---- */

static enum hr_err join_check(const void *params, struct hr_error *error)
{
    const struct join *p = params;

    if (p->on != NULL && p->left_on == NULL && p->right_on == NULL)
        return HR_OK;
    if (p->on == NULL && p->left_on != NULL && p->right_on != NULL)
        return HR_OK;
    snprintf(error->param, sizeof error->param, "%s",
             p->on != NULL || p->right_on == NULL ? "on" : "left_on");
    if (p->on != NULL)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "it has `on` and `%s`: give `on` alone, or left_on and right_on",
                        p->left_on != NULL ? "left_on" : "right_on");
    return hr__fail(error, HR_ERR_ARGUMENT,
                    "it has no key for %s: give `on`, or left_on and right_on",
                    p->left_on != NULL    ? "the second input"
                    : p->right_on != NULL ? "the first input"
                                          : "its inputs");
}

static const char *join_by(const void *params, size_t input, const char **ret_param)
{
    const struct join *p = params;

    *ret_param = p->on != NULL ? "on" : input == LEFT ? "left_on" : "right_on";
    if (p->on != NULL)
        return p->on;
    return input == LEFT ? p->left_on : p->right_on;
}

static enum hr_err join_infer(struct hr_infer *infer)
{
    const struct join *p = infer->params;
    const struct pairs *pairs = infer->state;

    HR_TRY(hr__joined_begin(infer, &p->prefix));
    for (size_t i = 0; i < infer->input_count; i++) {
        const struct hr_schema *in = &infer->inputs[i];

        for (size_t k = 0; k < in->count; k++) {
            if (i == RIGHT && p->on != NULL && strcmp(in->fields[k].name, p->on) == 0 &&
                hr__schema_get(&infer->inputs[LEFT], p->on) != NULL)
                continue; /* both are equal */
            HR_TRY(hr__joined_add(infer, &in->fields[k], &p->prefix, i));
        }
    }
    infer->output->records = pairs != NULL ? (int64_t)pairs->count : -1;
    return HR_OK;
}

static enum hr_err join_apply(struct hr_op_ctx *ctx)
{
    (void)ctx;
    return HR_OK;
}

/* ---- keys ---- */

struct reader {
    const struct hr_keys *keys;
    const char *by;
    bool integers;
    struct hr_str text;
    int64_t number; /* the last key */
};

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
static enum hr_err read_key(struct reader *r, uint64_t at, const char **ret_key,
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
static enum hr_err read_block(struct block *block, struct reader *r,
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

static enum hr_err fill_table(struct hr_join_table *t, struct reader *reader,
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
static void add_pairs(struct pairs *pairs, struct hr_join_table *t, uint32_t group)
{
    pairs->used[LEFT]++;
    if (t->last[group] != HR_JOIN_NONE) /* the first time */
        pairs->used[RIGHT] += t->size[group];
    t->last[group] = HR_JOIN_NONE;
    pairs->count += t->size[group];
}

/* Finds the group of each left record; counts pairs. `keys` is for those of a block. */
static enum hr_err match(struct hr_join_table *t, struct reader *left,
                         const struct reader *right, struct hr_join_keys *keys,
                         uint32_t *groups, struct pairs *pairs, struct hr_error *error)
{
    struct block block;

    for (block.from = 0; block.from < left->keys->count; block.from += block.count) {
        keys->length = 0;
        HR_TRY(read_block(&block, left, t, keys, 0, &pairs->empty[LEFT], error));
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
            if (pairs->count > UINT32_MAX)
                return hr__fail(error, HR_ERR_LIMIT,
                                "there are more than %lu pairs of records with equal "
                                "keys: the \"%s\" of record %llu of '%s' alone is that "
                                "of %lu records of '%s'",
                                (unsigned long)UINT32_MAX, left->by,
                                (unsigned long long)(block.from + i), left->keys->of,
                                (unsigned long)t->size[group], right->keys->of);
        }
    }
    return HR_OK;
}

static enum hr_err
list(const struct hr_join_table *t, const uint32_t *groups, struct pairs *pairs)
{
    size_t filled = 0;

    for (int side = LEFT; side <= RIGHT; side++) {
        pairs->at[side] = hr__malloc(((size_t)pairs->count + 1) * sizeof **pairs->at);
        if (pairs->at[side] == NULL)
            return HR_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < pairs->records[LEFT]; i++) {
        for (uint32_t k = groups[i]; k != HR_JOIN_NONE; k = t->next[k]) {
            pairs->at[LEFT][filled] = i;
            pairs->at[RIGHT][filled++] = k;
        }
    }
    return HR_OK;
}

/* Appends the first key of the input, for a message. */
static void add_sample(const struct reader *r, struct hr_str *out)
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

static enum hr_err
refuse_none(const struct reader *left, const struct reader *right, struct hr_error *error)
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

static enum hr_err
make_pairs(struct hr_join_table *t, struct reader *left, struct reader *right,
           struct pairs *pairs, struct hr_error *error)
{
    uint32_t *groups = hr__malloc(((size_t)left->keys->count + 1) * sizeof *groups);
    struct hr_join_keys keys = {0};
    enum hr_err code = HR_OK;

    if (groups == NULL || !hr__join_keys_init(&keys, BLOCK, left->integers))
        code = hr__fail(error, HR_ERR_MEMORY, "out of memory for its pairs");
    if (code == HR_OK)
        code = fill_table(t, right, &pairs->empty[RIGHT], error);
    if (code == HR_OK)
        code = match(t, left, right, &keys, groups, pairs, error);
    if (code == HR_OK && pairs->count == 0 && left->keys->count > 0 &&
        right->keys->count > 0)
        code = refuse_none(left, right, error);
    if (code == HR_OK && list(t, groups, pairs) != HR_OK)
        code = hr__fail(error, HR_ERR_MEMORY, "out of memory for its %llu pairs",
                        (unsigned long long)pairs->count);
    hr__join_keys_finish(&keys);
    hr__free(groups);
    return code;
}

/* ---- hooks ---- */

static void join_close(void *state)
{
    struct pairs *pairs = state;

    hr__free(pairs->at[LEFT]);
    hr__free(pairs->at[RIGHT]);
    hr__free(pairs);
}

static const char *type_name(enum hr_key_type type)
{
    return type == HR_KEY_INTEGER ? "an integer" : "a text";
}

static enum hr_err check_keys(const struct join *p, const struct reader *left,
                              const struct reader *right, struct hr_error *error)
{
    for (size_t i = LEFT; i <= RIGHT; i++) {
        const struct reader *r = i == LEFT ? left : right;
        const char *param;

        (void)join_by(p, i, &param);
        snprintf(error->param, sizeof error->param, "%s", param);
        if (r->keys->count >= UINT32_MAX)
            return hr__fail(error, HR_ERR_LIMIT,
                            "fewer than %lu records can be joined, and '%s' has %llu",
                            (unsigned long)UINT32_MAX, r->keys->of,
                            (unsigned long long)r->keys->count);
        if (r->keys->type == HR_KEY_OTHER)
            return hr__fail(error, HR_ERR_ARGUMENT,
                            "the \"%s\" of '%s' is neither an integer nor a text", r->by,
                            r->keys->of);
    }
    if (left->keys->type != right->keys->type && !p->integers)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "the \"%s\" of '%s' is %s and the \"%s\" of '%s' is %s, so none "
                        "are equal: \"integers: true\" reads texts as decimal integers",
                        left->by, left->keys->of, type_name(left->keys->type), right->by,
                        right->keys->of, type_name(right->keys->type));
    error->param[0] = '\0';
    return HR_OK;
}

static enum hr_err join_open(const struct hr_open *open, void **ret_state)
{
    const struct join *p = open->params;
    struct reader readers[2];
    struct hr_join_table table = {0};
    struct pairs *pairs;
    enum hr_err code;

    for (size_t i = LEFT; i <= RIGHT; i++) {
        const char *param;

        readers[i] = (struct reader){
            .keys = open->keys[i],
            .by = join_by(p, i, &param),
            .integers = p->integers || open->keys[i]->type == HR_KEY_INTEGER,
        };
        hr__str_init(&readers[i].text);
    }
    HR_TRY(check_keys(p, &readers[LEFT], &readers[RIGHT], open->error));
    pairs = hr__calloc(1, sizeof *pairs);
    if (pairs == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = LEFT; i <= RIGHT; i++)
        pairs->records[i] = open->keys[i]->count;
    code = make_pairs(&table, &readers[LEFT], &readers[RIGHT], pairs, open->error);
    hr__join_table_finish(&table);
    for (size_t i = LEFT; i <= RIGHT; i++)
        hr__str_finish(&readers[i].text);
    if (code == HR_OK)
        *ret_state = pairs;
    else
        join_close(pairs);
    return code;
}

static void join_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct pairs *pairs = state;

    (void)params;
    for (int side = LEFT; side <= RIGHT; side++)
        hr__hasher_add(hasher, pairs->at[side],
                       (size_t)pairs->count * sizeof *pairs->at[side]);
}

static uint64_t join_count(const void *state)
{
    return ((const struct pairs *)state)->count;
}

static uint64_t join_map(const void *state, size_t input, uint64_t at)
{
    const struct pairs *pairs = state;

    return at < pairs->count ? pairs->at[input][at] : 0;
}

static void join_kept(const void *params, const void *state, uint64_t budget,
                      struct hr_op_kept *ret_kept)
{
    const struct pairs *pairs = state;

    (void)params, (void)budget;
    ret_kept->fixed = pairs->count * 2 * sizeof **pairs->at;
}

static void join_tell(const void *state, struct hr_str *out)
{
    static const char *const sides[] = {"left", "right"};
    const struct pairs *pairs = state;

    hr__str_addf(out, "%llu pairs", (unsigned long long)pairs->count);
    for (int i = LEFT; i <= RIGHT; i++) {
        hr__str_addf(out, "%s %llu of %llu %s records", i == LEFT ? ":" : " with",
                     (unsigned long long)pairs->used[i],
                     (unsigned long long)pairs->records[i], sides[i]);
        if (pairs->empty[i] > 0)
            hr__str_addf(out, " (%llu without a key)",
                         (unsigned long long)pairs->empty[i]);
    }
}

const struct hr_op hr_op_flow_join = {
    .name = "flow.join",
    .summary = "join the records of two inputs that have equal keys",
    .doc =
        "An inner join, as `merge` of pandas: one record for each pair of equal keys, in "
        "the order of the first input, and for one record there in the order of the "
        "second. A record without a match is left out; `headrace explain` says how many "
        "of each input are used. A key that is null matches nothing; a damaged record "
        "whose key cannot be read is an error. Keys are integers or texts, and those of "
        "both inputs must be the same kind. They are read once, when the graph is "
        "opened: "
        "each pair takes 8 bytes of memory, which a budget counts. While they are read, "
        "a "
        "record of the second input takes 24 to 40 bytes and its key, one of the first 4 "
        "bytes: put the smaller table second.\n\n"
        "Keys are read from the sources, under the names they have there: a rename or "
        "cast before the join has no effect on them. The output has the field `on` "
        "once; other names that both inputs have need a `prefix`. Both inputs must know "
        "their number of records: filters, expansions, batches and shuffles come after "
        "it, and a shuffle costs the same there. Steps before it run for each joined "
        "record, with the same random draws for a record that is joined twice; steps "
        "after it draw anew for each. "
        "To join by position instead, see flow.zip.",
    .version = 1,
    .kind = HR_OP_ZIP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY | HR_TRAIT_DEFERS,
    .inputs_min = 2,
    .inputs_max = 2,
    HR_PARAMS(join_params, struct join),
    .check = join_check,
    .infer = join_infer,
    .open = join_open,
    .close = join_close,
    .identity = join_identity,
    .apply = join_apply,
    .zip = {.by = join_by, .count = join_count, .map = join_map},
    .learner.tell = join_tell,
    .memory.kept = join_kept,
};
