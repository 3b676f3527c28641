/*
 * order.split - the records of one part of the data.
 *
 * A record belongs to the part whose interval of [0, 1) contains the hash of its key, so
 * neither other records nor the run's seed decide it. The positions of the part's records
 * are listed when the graph is opened, in 4 bytes each.
 */
#include <ctype.h>
#include <locale.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "op/op.h"

struct split {
    struct hr_floats fractions;
    int64_t part, seed;
    const char *by, *group;
};

#define SUM_TOLERANCE 1e-6 /* of fractions, whose sum is rounded */
#define GROUP_MAX 255      /* bytes of a regular expression */

static const struct hr_param split_params[] = {
    HR_P_FLOATS(struct split, fractions, .required = true, HR_RANGE(0, 1),
                .min_open = true, .max_open = true, .items_min = 2,
                .items_max = HR_LIST_MAX,
                .help = "the sizes of all parts; they add up to 1"),
    HR_P_INT(struct split, part, .required = true, HR_RANGE(0, HR_LIST_MAX - 1),
             .help = "the part to keep, from 0"),
    HR_P_INT(struct split, seed, .fallback = "0", HR_RANGE(0, 9e15),
             .help = "decides, with a record's key, which part it is in; the run's seed "
                     "does not"),
    HR_P_STRING(struct split, by, .fallback = "path",
                .help =
                    "the key: path (of the file, below the source's folder; in an "
                    "archive the record's key), stem (the file's name without its "
                    "ending), a field that is known before a record is read (a label, a "
                    "column, a number or a text of an archive, or what steps before the "
                    "split make of these), or index (the record's number in the "
                    "source)"),
    HR_P_STRING(struct split, group,
                .help = "a regular expression (POSIX, extended: [0-9], not \\d, and no "
                        ".*?): what it matches in the key is used in place of the key, "
                        "so that \"^[^/]+\" keeps the "
                        "files of a folder together"),
};

struct part {
    uint64_t of, count, room; /* records before it; records */
    uint32_t *positions;
    int number, parts;
};

static enum hr_err split_check(const void *params, struct hr_error *error)
{
    const struct split *p = params;
    double sum = 0;

    for (int i = 0; i < p->fractions.count; i++)
        sum += p->fractions.values[i];
    snprintf(error->param, sizeof error->param, "fractions");
    if (sum < 1 - SUM_TOLERANCE)
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "the fractions add up to %g, not 1: add one of %g for the "
                        "records that are left",
                        sum, 1 - sum);
    if (sum > 1 + SUM_TOLERANCE)
        return hr__fail(error, HR_ERR_ARGUMENT, "the fractions add up to %g, not 1", sum);
    snprintf(error->param, sizeof error->param, "part");
    if (p->part >= p->fractions.count)
        return hr__fail(error, HR_ERR_RANGE, "part %lld of %d parts: parts count from 0",
                        (long long)p->part, p->fractions.count);
    snprintf(error->param, sizeof error->param, "group");
    if (p->group != NULL && strlen(p->group) > GROUP_MAX)
        return hr__fail(error, HR_ERR_LIMIT, "a regular expression has at most %d bytes",
                        GROUP_MAX);
    return HR_OK;
}

static enum hr_err split_infer(struct hr_infer *infer)
{
    const struct part *part = infer->state;

    infer->output->records = part != NULL ? (int64_t)part->count : -1;
    return HR_OK;
}

/* ---- which part a key is in ---- */

struct chooser {
    const struct split *params;
    regex_t group; /* if there is one */
    double from, to;
};

/* The end of a bracket expression that begins at `at`, or where a Perl class stands in it
 * (\d), which POSIX takes for two characters. */
static const char *bracket_end(const char *at)
{
    at += at[1] == '^' ? 2 : 1;
    at += *at == ']';
    for (; *at != '\0' && *at != ']'; at++) {
        if (*at == '\\' && at[1] != '\0' && strchr("dDwWsS", at[1]) != NULL)
            return at;
        if (*at == '[' && at[1] == ':' && strstr(at, ":]") != NULL)
            at = strstr(at, ":]") + 1;
    }
    return at;
}

/* Where a pattern uses what Perl and Python know and POSIX takes for something else, so
 * that it would cut other groups than were meant: \d, .*?, (?:x). NULL: nowhere. */
static const char *find_perl(const char *pattern)
{
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at == '\\') {
            at++;
            if (isalpha((unsigned char)*at) && strchr("wWsSbB", *at) == NULL)
                return at - 1;
            if (*at == '\0')
                return NULL;
        } else if (*at == '[') {
            at = bracket_end(at);
            if (*at == '\\')
                return at;
            if (*at == '\0')
                return NULL;
        } else if (strchr("*+?}(", *at) != NULL &&
                   (at[1] == '?' || (*at != '(' && at[1] == '+'))) {
            return at;
        }
    }
    return NULL;
}

static enum hr_err compile_group(struct chooser *c, struct hr_error *error)
{
    const char *perl;
    char why[160];
    int code;

    if (c->params->group == NULL)
        return HR_OK;
    perl = find_perl(c->params->group);
    if (perl != NULL) {
        snprintf(error->param, sizeof error->param, "group");
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "\"%s\" has \"%.2s\" at %d, which POSIX does not know: write "
                        "[0-9] for a digit, [A-Za-z0-9_] in brackets for \\w, and [^_]+ "
                        "for all before the next _",
                        c->params->group, perl, (int)(perl - c->params->group) + 1);
    }
    code = regcomp(&c->group, c->params->group, REG_EXTENDED);
    if (code == 0)
        return HR_OK;
    regerror(code, &c->group, why, sizeof why);
    snprintf(error->param, sizeof error->param, "group");
    return hr__fail(error, HR_ERR_ARGUMENT, "\"%s\" is no regular expression: %s",
                    c->params->group, why);
}

/* Replaces the key by the part of it that names the group. */
static enum hr_err
cut_key(const struct chooser *c, const char **key, size_t *bytes, struct hr_error *error)
{
    regmatch_t match;

    if (c->params->group == NULL)
        return HR_OK;
    if (regexec(&c->group, *key, 1, &match, 0) != 0) {
        snprintf(error->param, sizeof error->param, "group");
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "\"%s\" matches nothing in the %s \"%s\", so it is in no group",
                        c->params->group, c->params->by, *key);
    }
    *key += match.rm_so;
    *bytes = (size_t)(match.rm_eo - match.rm_so);
    return HR_OK;
}

static bool is_chosen(const struct chooser *c, const char *key, size_t bytes)
{
    uint64_t hash = hr__hash64(key, bytes, (uint64_t)c->params->seed);
    double at = (double)(hash >> 11) * 0x1p-53;

    return at >= c->from && at < c->to;
}

static bool add_position(struct part *part, uint32_t at)
{
    size_t room = (size_t)part->room;

    if (!hr__array_room(&part->positions, (size_t)part->count, &room, 1,
                        sizeof *part->positions))
        return false;
    part->room = room;
    part->positions[part->count++] = at;
    return true;
}

static enum hr_err choose(const struct chooser *c, const struct hr_keys *keys,
                          struct part *part, struct hr_error *error)
{
    enum hr_err code = HR_OK;
    struct hr_str text;

    hr__str_init(&text);
    for (uint64_t at = 0; code == HR_OK && at < keys->count; at++) {
        const char *key;
        size_t bytes;

        code = keys->get(keys, at, &text, error);
        if (code != HR_OK && code != HR_ERR_NOT_FOUND && code != HR_ERR_FORMAT)
            break; /* without a key, or damaged: by what it is known all the same */
        key = hr__str_text(&text);
        bytes = text.length;
        code = cut_key(c, &key, &bytes, error);
        if (code == HR_OK && is_chosen(c, key, bytes) &&
            !add_position(part, (uint32_t)at))
            code = hr__fail(error, HR_ERR_MEMORY, "out of memory for the list of a part");
    }
    hr__str_finish(&text);
    return code;
}

static void set_bounds(struct chooser *c)
{
    const struct split *p = c->params;

    c->from = 0;
    for (int i = 0; i < p->part; i++)
        c->from += p->fractions.values[i];
    c->to = p->part + 1 < p->fractions.count ? c->from + p->fractions.values[p->part] : 2;
}

/* ---- hooks ---- */

static const char *split_by(const void *params, const char **ret_param)
{
    *ret_param = "by";
    return ((const struct split *)params)->by;
}

static void split_close(void *state)
{
    struct part *part = state;

    hr__free(part->positions);
    hr__free(part);
}

static enum hr_err fill(const struct split *p, const struct hr_keys *keys,
                        struct part *part, struct hr_error *error)
{
    struct chooser chooser = {.params = p};
    enum hr_err code;

    HR_TRY(compile_group(&chooser, error));
    set_bounds(&chooser);
    code = choose(&chooser, keys, part, error);
    if (p->group != NULL)
        regfree(&chooser.group);
    if (code == HR_OK && part->count == 0 && keys->count > 0)
        code = hr__fail(error, HR_ERR_ARGUMENT,
                        "none of the %llu records is in part %d: choose another seed or "
                        "a larger fraction, or split %s",
                        (unsigned long long)keys->count, part->number,
                        p->group != NULL || strcmp(p->by, "path") != 0
                            ? "by a key that differs between more records"
                            : "more records");
    return code;
}

static enum hr_err split_open(const struct hr_open *open, void **ret_state)
{
    const struct split *p = open->params;
    locale_t plain, before;
    struct part *part;
    enum hr_err code;

    if (open->keys[0]->count > UINT32_MAX)
        return hr__fail(open->error, HR_ERR_LIMIT,
                        "at most %lu records can be split, and these are %llu",
                        (unsigned long)UINT32_MAX,
                        (unsigned long long)open->keys[0]->count);
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    part = hr__calloc(1, sizeof *part);
    if (part == NULL || plain == (locale_t)0) {
        hr__free(part);
        if (plain != (locale_t)0)
            freelocale(plain);
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    }
    part->of = open->keys[0]->count;
    part->number = (int)p->part;
    part->parts = p->fractions.count;
    before = uselocale(plain); /* regular expressions mean bytes, on every machine */
    code = fill(p, open->keys[0], part, open->error);
    uselocale(before);
    freelocale(plain);
    if (code == HR_OK)
        *ret_state = part;
    else
        split_close(part);
    return code;
}

static uint64_t split_count(const void *params, const void *state, uint64_t n)
{
    const struct part *part = state;

    (void)params;
    return n < part->count ? n : part->count;
}

static uint64_t split_map(const void *params, void *state, uint64_t n, uint64_t at,
                          struct hr_record_id *id, uint64_t draw_id)
{
    (void)params, (void)n, (void)id, (void)draw_id;
    return ((const struct part *)state)->positions[at];
}

static bool split_same(const void *state, const void *other)
{
    const struct part *a = state, *b = other;

    return a->count == b->count &&
           (a->count == 0 || memcmp(a->positions, b->positions,
                                    (size_t)a->count * sizeof *a->positions) == 0);
}

static void split_tell(const void *state, struct hr_str *out)
{
    const struct part *part = state;

    hr__str_addf(out, "part %d of 0 to %d: %llu of %llu records (%.1f %%)", part->number,
                 part->parts - 1, (unsigned long long)part->count,
                 (unsigned long long)part->of,
                 part->of > 0 ? 100.0 * (double)part->count / (double)part->of : 0.0);
}

const struct hr_op hr_op_order_split = {
    .name = "order.split",
    .summary = "one part of the data, such as the training set",
    .doc =
        "Graphs with equal `fractions`, `seed`, `by` and `group`, and each `part` in one "
        "of them, divide the records: every record is in exactly one part, in every "
        "epoch, whatever the run's seed and the ranks. The hash of a record's key "
        "decides, so records keep their part when others are added or removed, and "
        "records with equal keys are always in one part: `by: label` puts each class as "
        "a whole into one. Parts have about the sizes that `fractions` says, the more "
        "records (or groups) the closer; `headrace explain` shows them. A fraction that "
        "is cut in two leaves the other parts as they are.\n\n"
        "Keys are texts: numbers in decimal, names of classes rather than their numbers. "
        "A key is a field of the records that reach this node, under its name here. Its "
        "values must "
        "be known before any record is read: those of the source, or what steps before "
        "the split make of its numbers and texts, such as text.lower, tensor.cast or "
        "record.rename. These steps run once for each key when the graph is opened. A "
        "field that your own functions or random steps make, or that the record must be "
        "read for, is refused: split before they change it. Where no field has the name, "
        "it is that of a key of the source: path, stem, index, or a field that was "
        "dropped.\n\n"
        "Sources know keys without decoding or reading whole records: files their paths, "
        "labels and columns; archives the key of a record as `path`, and its integers "
        "and texts; packed records their numbers and texts; code.source what the code "
        "says that it knows, such as the columns of a frame in Python. A damaged record "
        "is known by its number, and reading it reports the damage. With `index`, "
        "records keep their part only if others are added after them. The split comes "
        "before any shuffle, filter or batch.",
    .version = 1,
    .kind = HR_OP_ORDER,
    .traits = HR_TRAIT_PURE | HR_TRAIT_SHRINKS,
    HR_PARAMS(split_params, struct split),
    .check = split_check,
    .infer = split_infer,
    .open = split_open,
    .close = split_close,
    .order = {.count = split_count, .map = split_map, .by = split_by, .same = split_same},
    .learner.tell = split_tell,
};
