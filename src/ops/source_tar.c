/*
 * source.tar - records of tar archives, by the convention of WebDataset.
 *
 * Headers are read when the graph is opened (store/tar.h), so that records can be taken
 * in any order, and again when a record is read.
 */
#include "ops/shard_rows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "store/tar.h"

struct tar {
    const char *path;
    struct hr_pairs fields;
    bool keys;
    const char *key_field;
    struct hr_shard_params shards;
};

static const struct hr_param tar_params[] = {
    HR_P_PATH(struct tar, path, .required = true, .not_identity = true,
              .help =
                  "an archive; or several: \"train-{000..099}.tar\", \"{a,b}.tar\", a "
                  "pattern such as \"shards/*.tar\", or a folder"),
    HR_P_MAP(struct tar, fields,
             .help = "field: the ending of its member, or several that stand for each "
                     "other, as in {image: jpg|jpeg|png, label: cls}; default: the "
                     "members of the first record, each named after its ending"),
    HR_P_BOOL(struct tar, keys, .fallback = "false",
              .help = "add the key of each record as a field"),
    HR_P_FIELD(struct tar, key_field, .fallback = "key",
               .help = "the field that holds the key, when keys are wanted"),
    HR_P_SHARDS(struct tar),
};

struct ending {
    const char *text; /* of the fields */
    size_t bytes;
    int field;
    bool integer;
};

struct state {
    struct hr_shard_source source;
    struct hr_pairs found; /* fields of the first record; the strings are the state's */
    struct ending *endings;
    size_t count;
};

/* What the parameter says, else what the first record has: then there is a state. */
static const struct hr_pairs *fields_of(const struct tar *p, const struct state *state)
{
    assert(p->fields.count > 0 || state != NULL);
    return p->fields.count > 0 ? &p->fields : &state->found;
}

/* ---- endings ---- */

/* What a member's bytes become, by its ending. */
enum content { CONTENT_BYTES, CONTENT_IMAGE, CONTENT_TEXT, CONTENT_INTEGER };

static bool is_one_of(const char *ending, size_t bytes, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == bytes && strncasecmp(*list, ending, bytes) == 0)
            return true;
    return false;
}

/* By the part behind the last dot: "seg.png" is an image. */
static enum content content_of(const char *ending, size_t bytes)
{
    static const char *const images[] = {"jpg", "jpeg", "png", "webp", "ppm",
                                         "pgm", "pbm",  "pnm", NULL};
    static const char *const texts[] = {"txt",  "text",  "transcript",
                                        "json", "jsonl", NULL};
    static const char *const integers[] = {"cls",   "cls2", "class", "count",
                                           "index", "inx",  "id",    NULL};
    const char *dot = memrchr(ending, '.', bytes);
    const char *last = dot != NULL ? dot + 1 : ending;
    size_t length = (size_t)(ending + bytes - last);

    if (is_one_of(last, length, integers))
        return CONTENT_INTEGER;
    if (is_one_of(last, length, images))
        return CONTENT_IMAGE;
    return is_one_of(last, length, texts) ? CONTENT_TEXT : CONTENT_BYTES;
}

/* The next of "a|b|c" from *at on; false if there is none. */
static bool next_ending(const char **at, const char **ret_ending, size_t *ret_bytes)
{
    if (*at == NULL)
        return false;
    *ret_ending = *at;
    *ret_bytes = strcspn(*at, "|");
    *at = (*at)[*ret_bytes] == '|' ? *at + *ret_bytes + 1 : NULL;
    return true;
}

static bool is_ending(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return a_bytes == b_bytes &&
           (memcmp(a, b, a_bytes) == 0 || strncasecmp(a, b, a_bytes) == 0);
}

static bool takes(const char *endings, const char *ending, size_t bytes)
{
    const char *one;
    size_t length;

    while (next_ending(&endings, &one, &length))
        if (is_ending(one, length, ending, bytes))
            return true;
    return false;
}

/* ---- schema ---- */

/* Bound are the key, if it is wanted, then the members' fields. */
static size_t member_field(const struct tar *p, size_t at)
{
    return p->keys + at;
}

static enum hr_err
tar_binds(const void *params, const void *state, const struct hr_schema *input,
          struct hr_bindings *bindings, struct hr_error *error)
{
    const struct hr_pairs *fields = fields_of(params, state);
    const struct tar *p = params;

    (void)input;
    if (p->keys)
        HR_TRY(hr__bind(bindings, p->key_field, HR_ACCESS_WRITE, error));
    for (int i = 0; i < fields->count; i++) {
        if (p->keys && strcmp(fields->keys[i], p->key_field) == 0) {
            memcpy(error->param, "key_field", sizeof "key_field");
            return hr__fail(error, HR_ERR_ARGUMENT,
                            "\"%s\" is a field of a member already: name another field "
                            "for keys",
                            p->key_field);
        }
        HR_TRY(hr__bind(bindings, fields->keys[i], HR_ACCESS_WRITE, error));
    }
    return HR_OK;
}

/* What the members of field `at` become: what all of its endings mean, else bytes. */
static enum hr_err
infer_content(struct hr_infer *infer, int at, enum content *ret_content)
{
    const struct hr_pairs *fields = fields_of(infer->params, infer->state);
    const char *rest = fields->values[at], *ending;
    enum content first = content_of(rest, strcspn(rest, "|"));
    size_t bytes;

    *ret_content = first;
    while (next_ending(&rest, &ending, &bytes)) {
        enum content content = content_of(ending, bytes);

        if (bytes == 0 || ending[0] == '.')
            return hr__infer_fail(infer, "fields", HR_ERR_ARGUMENT,
                                  "\"%s\": an ending is written without a dot before it, "
                                  "such as jpg or seg.png",
                                  fields->values[at]);
        if ((content == CONTENT_INTEGER) != (first == CONTENT_INTEGER))
            return hr__infer_fail(infer, "fields", HR_ERR_ARGUMENT,
                                  "\"%s\": some of these endings mean integers, some "
                                  "bytes",
                                  fields->values[at]);
        if (content != first)
            *ret_content = CONTENT_BYTES;
        for (int i = 0; i < at; i++)
            if (takes(fields->values[i], ending, bytes))
                return hr__infer_fail(infer, "fields", HR_ERR_ARGUMENT,
                                      "\"%.*s\" is the ending of two fields", (int)bytes,
                                      ending);
    }
    return HR_OK;
}

static enum hr_err infer_field(struct hr_infer *infer, int at)
{
    static const enum hr_meaning meanings[] = {
        [CONTENT_BYTES] = HR_MEANING_NONE,
        [CONTENT_IMAGE] = HR_MEANING_ENCODED,
        [CONTENT_TEXT] = HR_MEANING_TEXT,
        [CONTENT_INTEGER] = HR_MEANING_LABEL,
    };
    struct hr_field *field = infer->fields[member_field(infer->params, (size_t)at)];
    enum content content;

    HR_TRY(infer_content(infer, at, &content));
    field->kind = content == CONTENT_INTEGER ? HR_FIELD_TENSOR : HR_FIELD_BYTES;
    field->dtype = content == CONTENT_INTEGER ? HR_I64 : field->dtype;
    field->meaning = meanings[content];
    return HR_OK;
}

static enum hr_err tar_infer(struct hr_infer *infer)
{
    const struct tar *p = infer->params;
    const struct hr_pairs *fields = fields_of(p, infer->state);

    assert(infer->field_count == (size_t)(fields->count + p->keys));
    for (int i = 0; i < fields->count; i++)
        HR_TRY(infer_field(infer, i));
    if (p->keys) {
        infer->fields[0]->kind = HR_FIELD_BYTES;
        infer->fields[0]->meaning = HR_MEANING_TEXT;
    }
    infer->output->records = -1;
    return HR_OK;
}

/* ---- state ---- */

static void tar_close(void *made)
{
    struct state *state = made;

    for (int i = 0; i < state->found.count; i++) {
        hr__free((void *)(uintptr_t)state->found.keys[i]);
        hr__free((void *)(uintptr_t)state->found.values[i]);
    }
    hr__free(state->endings);
    hr__shard_source_close(state);
}

struct look {
    struct hr_window window;
    struct hr_tar_member member;
};

/* Reads headers of a record up to the next member that has an ending, from *at on.
 * HR_ERR_END after the last. */
static enum hr_err
next_member(struct hr_window *window, uint64_t *at, uint64_t end,
            struct hr_tar_member *member, uint64_t *ret_head, size_t *ret_key,
            size_t *ret_ending, struct hr_error *error)
{
    while (*at < end) {
        enum hr_err code = hr__tar_look(window, *at, end, member, error, error);

        if (code != HR_OK) /* damage, or the end of the archive */
            return code == HR_ERR_RANGE || code == HR_ERR_END ? HR_ERR_FORMAT : code;
        *ret_head = *at;
        *at += member->next;
        if (hr__tar_key(member, ret_key, ret_ending))
            return HR_OK;
    }
    return HR_ERR_END;
}

/* ---- fields that the first record has ---- */

/* "seg.png" -> "seg_png", in lower case: the field's name, or with `dots` its ending. */
static char *name_of(const char *ending, size_t bytes, bool dots)
{
    bool digit = !dots && ending[0] >= '0' && ending[0] <= '9';
    char *name = hr__calloc(1, bytes + 2);

    for (size_t i = 0; name != NULL && i < bytes; i++) {
        unsigned char c = (unsigned char)ending[i];

        c = (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        if (!dots && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
            c = '_';
        name[i + digit] = (char)c;
    }
    if (name != NULL && digit)
        name[0] = '_';
    return name;
}

static enum hr_err add_found(struct hr_pairs *found, const char *ending, size_t bytes,
                             struct hr_error *error)
{
    char *name, *value;

    for (int i = 0; i < found->count; i++)
        if (is_ending(found->values[i], strlen(found->values[i]), ending, bytes))
            return HR_OK; /* reading the record says that there are two */
    if (found->count == HR_LIST_MAX)
        return hr__fail(error, HR_ERR_LIMIT,
                        "the first record has more than %d members: name those that are "
                        "wanted with fields={name: ending}",
                        HR_LIST_MAX);
    name = name_of(ending, bytes, false);
    value = name_of(ending, bytes, true);
    if (name == NULL || value == NULL) {
        hr__free(name);
        hr__free(value);
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    }
    found->keys[found->count] = name;
    found->values[found->count++] = value;
    return HR_OK;
}

static enum hr_err find_fields(struct state *state, struct hr_window *window,
                               struct hr_tar_member *member, struct hr_error *error)
{
    struct hr_shard_place place;
    struct hr_error why = {0};
    size_t key, ending;
    uint64_t at, head;
    enum hr_err code;

    HR_TRY(hr__shard_source_look(state, 0, window, &place, error));
    at = place.offset;
    while ((code = next_member(window, &at, place.offset + place.bytes, member, &head,
                               &key, &ending, &why)) == HR_OK)
        HR_TRY(add_found(&state->found, member->name + key + 1, ending, error));
    if (code == HR_ERR_END && state->found.count > 0)
        return HR_OK;
    if (code != HR_ERR_END && code != HR_ERR_FORMAT)
        return hr__fail(error, code, "%s", why.message);
    return hr__fail(error, HR_ERR_FORMAT,
                    "%s: byte %llu: the first record is damaged, so it does not tell the "
                    "fields: name them with fields={name: ending}",
                    place.uri, (unsigned long long)place.offset);
}

/* Lists the endings of all fields; counts only while there is no room. */
static void list_endings(const struct hr_pairs *fields, struct state *state)
{
    const char *text;
    size_t bytes;

    state->count = 0;
    for (int i = 0; i < fields->count; i++)
        for (const char *rest = fields->values[i]; next_ending(&rest, &text, &bytes);) {
            if (state->endings != NULL)
                state->endings[state->count] = (struct ending){
                    text, bytes, i, content_of(text, bytes) == CONTENT_INTEGER};
            state->count++;
        }
}

static enum hr_err
open_shards(const struct tar *p, void **ret_state, struct hr_error *error)
{
    struct hr_packed_limits packed = hr__unpack_limits(&p->shards);
    const struct hr_shard_saving saving = {.format = "tar 2", .path = p->shards.index};

    return hr__shard_source_open(p->path, ".tar", hr__tar_scan, NULL, &packed, &saving,
                                 sizeof(struct state), ret_state, error);
}

static enum hr_err
refuse_empty(const struct tar *p, const struct state *state, struct hr_error *error)
{
    const char *first = hr__shard_index_first(state->source.index);

    return hr__fail(error, HR_ERR_FORMAT,
                    "%s: there is no record that could tell the fields: name them with "
                    "fields={name: ending}",
                    first != NULL ? first : p->path);
}

static enum hr_err
tar_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct tar *p = params;
    struct look *look;
    void *made = NULL;
    enum hr_err code;

    if (p->fields.count > 0)
        return HR_OK;
    HR_TRY(open_shards(p, &made, error));
    look = hr__calloc(1, sizeof *look);
    if (look == NULL)
        code = hr__fail(error, HR_ERR_MEMORY, "out of memory");
    else if (hr__shard_source_count(params, made) == 0)
        code = refuse_empty(p, made, error);
    else
        code = find_fields(made, &look->window, &look->member, error);
    if (look != NULL)
        hr__window_finish(&look->window);
    hr__free(look);
    if (code == HR_OK)
        *ret_state = made;
    else
        tar_close(made);
    return code;
}

static enum hr_err tar_open(const struct hr_open *open, void **ret_state)
{
    const struct tar *p = open->params;
    const struct hr_pairs *fields;
    void *made = *ret_state;
    struct state *state;

    if (made == NULL)
        HR_TRY(open_shards(p, &made, open->error));
    state = made;
    fields = fields_of(p, state);
    list_endings(fields, state);
    state->endings = hr__calloc(state->count + 1, sizeof *state->endings);
    if (state->endings == NULL) {
        if (*ret_state == NULL)
            tar_close(made);
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    }
    list_endings(fields, state);
    *ret_state = made;
    return HR_OK;
}

/* ---- keys ---- */

/* The integer at `data`, with spaces at its end. */
static bool parse_integer(const char *data, size_t bytes, int64_t *ret_number)
{
    char text[32], *end;

    while (bytes > 0 && strchr(" \t\r\n", data[bytes - 1]) != NULL)
        bytes--;
    if (bytes == 0 || bytes >= sizeof text)
        return false;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    errno = 0;
    *ret_number = strtoll(text, &end, 10);
    return end == text + bytes && errno == 0;
}

/* The number of the i-th field whose members are integers or texts; that of `fields` when
 * there are no more, and *i is what is left then. */
static int field_of_key(const struct hr_pairs *fields, size_t *i)
{
    for (int at = 0; at < fields->count; at++) {
        const char *ending = fields->values[at];
        enum content content = content_of(ending, strcspn(ending, "|"));

        if ((content == CONTENT_INTEGER || content == CONTENT_TEXT) && (*i)-- == 0)
            return at;
    }
    return fields->count;
}

/* Integers and texts, the key if it is a field, and last the key as "path". */
static const char *tar_key_name(const void *params, const void *state, size_t i)
{
    const struct tar *p = params;
    const struct hr_pairs *fields = fields_of(p, state);
    int field = field_of_key(fields, &i);

    if (field < fields->count)
        return fields->keys[field];
    if (p->keys && i-- == 0)
        return p->key_field;
    return i == 0 ? "path" : NULL;
}

static enum hr_err add_member(const struct hr_tar_member *member, const char *endings,
                              struct hr_window *window, uint64_t at, struct hr_str *out,
                              struct hr_error *error)
{
    const void *data;
    int64_t number;

    if (member->bytes > SIZE_MAX / 2)
        return hr__fail(error, HR_ERR_FORMAT, "the archive ends in a member");
    HR_TRY(
        hr__window_get(window, at + member->data, (size_t)member->bytes, &data, error));
    if (content_of(endings, strcspn(endings, "|")) != CONTENT_INTEGER)
        hr__str_add_bytes(out, data, (size_t)member->bytes);
    else if (parse_integer(data, (size_t)member->bytes, &number))
        hr__str_addf(out, "%lld", (long long)number);
    else
        return hr__fail(error, HR_ERR_FORMAT, "it is no integer");
    return HR_OK;
}

/* Reads headers up to the member with one of the endings, NULL: the key; and that member.
 */
static enum hr_err
look_up(const char *endings, struct hr_window *window, const struct hr_shard_place *place,
        struct hr_tar_member *member, struct hr_str *out, struct hr_error *error)
{
    uint64_t at = place->offset, end = place->offset + place->bytes, head;
    size_t key, ending;
    enum hr_err code;

    while ((code = next_member(window, &at, end, member, &head, &key, &ending, error)) ==
           HR_OK) {
        if (endings == NULL) {
            hr__str_add_bytes(out, member->name, key);
            return HR_OK;
        }
        if (takes(endings, member->name + key + 1, ending))
            return add_member(member, endings, window, head, out, error);
    }
    return code == HR_ERR_END ? hr__fail(error, HR_ERR_FORMAT, "it has no such member")
                              : code;
}

static enum hr_err tar_key(const void *params, const void *state, size_t i,
                           uint64_t index, struct hr_str *out, struct hr_error *error)
{
    const struct hr_pairs *fields = fields_of(params, state);
    int field = field_of_key(fields, &i);
    struct look *look = hr__calloc(1, sizeof *look);
    struct hr_shard_place place;
    enum hr_err code;

    if (look == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    code = hr__shard_source_look(state, index, &look->window, &place, error);
    if (code == HR_OK)
        code = look_up(field < fields->count ? fields->values[field] : NULL,
                       &look->window, &place, &look->member, out, error);
    hr__window_finish(&look->window);
    hr__free(look);
    return hr__shard_source_key(code, index, out);
}

/* ---- records ---- */

static enum hr_err
fail_member(struct hr_op_ctx *ctx, const struct hr_shard_record *record, uint64_t at,
            const char *what)
{
    return hr__fail(ctx->error, HR_ERR_FORMAT, "%s: byte %llu: %s", record->place.uri,
                    (unsigned long long)(record->place.offset + at), what);
}

/* Where in the shard. */
static unsigned long long byte_of(const struct hr_shard_record *record, const char *data)
{
    return record->place.offset + (uint64_t)(data - (const char *)record->data);
}

static enum hr_err
set_integer(struct hr_op_ctx *ctx, const struct hr_shard_record *record, const char *data,
            size_t bytes, const char *name, struct hr_value *value)
{
    int64_t *number;
    void *memory;

    HR_TRY(hr__op_alloc(ctx, sizeof *number, &memory));
    number = memory;
    if (parse_integer(data, bytes, number)) {
        hr__value_set_tensor(value, HR_I64, 0, NULL, number, NULL);
        return HR_OK;
    }
    return hr__fail(ctx->error, HR_ERR_FORMAT,
                    "%s: byte %llu: member '%s' is no integer: \"%.*s\"",
                    record->place.uri, byte_of(record, data), name,
                    bytes < 32 ? (int)bytes : 32, data);
}

/* Sets the field that takes members with this ending, if one does. */
static enum hr_err set_member(struct hr_op_ctx *ctx, const struct hr_shard_record *record,
                              const struct hr_tar_member *member, const char *ending,
                              size_t bytes, const char *data)
{
    const struct state *state = ctx->state;

    for (size_t i = 0; i < state->count; i++) {
        const struct ending *one = &state->endings[i];
        struct hr_value *value =
            ctx->fields[member_field(ctx->params, (size_t)one->field)];

        if (!is_ending(one->text, one->bytes, ending, bytes))
            continue;
        if (value->kind != HR_VALUE_NONE)
            return hr__fail(ctx->error, HR_ERR_FORMAT,
                            "%s: byte %llu: member '%s' is the second one for field '%s'",
                            record->place.uri, byte_of(record, data), member->name,
                            fields_of(ctx->params, state)->keys[one->field]);
        if (one->integer)
            return set_integer(ctx, record, data, (size_t)member->bytes, member->name,
                               value);
        return hr__shard_source_bytes(ctx, record, data, (size_t)member->bytes, value);
    }
    return HR_OK;
}

static enum hr_err
set_key(struct hr_op_ctx *ctx, const struct hr_tar_member *member, size_t bytes)
{
    const struct tar *p = ctx->params;
    void *memory;

    if (!p->keys || ctx->fields[0]->kind != HR_VALUE_NONE)
        return HR_OK;
    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    memcpy(memory, member->name, bytes);
    hr__value_set_bytes(ctx->fields[0], memory, bytes, NULL);
    return HR_OK;
}

static enum hr_err
read_members(struct hr_op_ctx *ctx, const struct hr_shard_record *record)
{
    struct hr_tar_member member;
    struct hr_error why;
    size_t key, ending, need;

    hr__error_init(&why);
    for (uint64_t at = 0; at < record->place.bytes; at += member.next) {
        enum hr_err code = hr__tar_parse(
            record->data + at, (size_t)(record->place.bytes - at), &member, &need, &why);

        if (code != HR_OK)
            return fail_member(ctx, record, at,
                               code == HR_ERR_FORMAT ? why.message
                                                     : "the archive ends in a header");
        if (member.data + member.bytes > record->place.bytes - at)
            return fail_member(ctx, record, at, "the archive ends in a member");
        if (!hr__tar_key(&member, &key, &ending))
            continue;
        HR_TRY(set_key(ctx, &member, key));
        HR_TRY(set_member(ctx, record, &member, member.name + key + 1, ending,
                          record->data + at + member.data));
    }
    return HR_OK;
}

static enum hr_err
check_complete(struct hr_op_ctx *ctx, const struct hr_shard_record *record)
{
    const struct hr_pairs *fields = fields_of(ctx->params, ctx->state);

    for (int i = 0; i < fields->count; i++)
        if (ctx->fields[member_field(ctx->params, (size_t)i)]->kind == HR_VALUE_NONE)
            return hr__fail(ctx->error, HR_ERR_FORMAT,
                            "%s: byte %llu: the record has no member '%s' for field '%s'",
                            record->place.uri, (unsigned long long)record->place.offset,
                            fields->values[i], fields->keys[i]);
    return HR_OK;
}

static enum hr_err tar_make(struct hr_op_ctx *ctx, const struct hr_shard_record *record)
{
    HR_TRY(read_members(ctx, record));
    return check_complete(ctx, record);
}

static enum hr_err tar_apply(struct hr_op_ctx *ctx)
{
    return hr__shard_source_make(ctx, tar_make);
}

static uint32_t tar_apply_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows)
{
    return hr__shard_source_rows(ctx, rows, tar_make);
}

const struct hr_op hr_op_source_tar = {
    .name = "source.tar",
    .summary = "records of tar archives, as WebDataset packs them",
    .doc =
        "Members that follow each other and have the same key are one record: the key is "
        "the name up to the first dot of its last part, the ending is what follows it. "
        "Each field takes the member with its ending (case ignored); members that no "
        "field takes are ignored, and a record that lacks one is bad. Without `fields`, "
        "the members of the first record are the fields, each named after its ending: "
        "\"seg.png\" is seg_png. Members whose "
        "ending is cls, cls2, class, count, index, inx or id are decimal integers and "
        "become int64; all others are bytes. Records can be read in any order, so "
        "shuffle, shard and resume work as for files. A damaged header costs the records "
        "that it lies in, and a sparse member is a bad record. Links, folders and "
        "members "
        "without an ending belong to no record. The identity of the source is the names "
        "and sizes of the "
        "members: a member whose bytes change but not its size goes "
        "unnoticed.\n\n" HR_SHARD_INDEX_DOC "\n\n" HR_UNPACK_DOC,
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(tar_params, struct tar),
    .infer = tar_infer,
    .binds = tar_binds,
    .open = tar_open,
    .close = tar_close,
    .identity = hr__shard_source_identity,
    .apply = tar_apply,
    .prepare = tar_prepare,
    .source = {.count = hr__shard_source_count,
               .apply_rows = tar_apply_rows,
               .rows_own = true,
               .locate = hr__shard_source_locate,
               .ahead = hr__shard_source_ahead,
               .size = hr__shard_source_size,
               .key_name = tar_key_name,
               .key = tar_key},
    .memory = HR_SHARD_MEMORY,
};
