/*
 * source.tar - records of tar archives, by the convention of WebDataset.
 *
 * Headers are read when the graph is opened (store/tar.h), so that records can be taken
 * in any order. A small record is read through the thread's window, which reads ahead
 * while records follow each other; a large one through the reader, which can fetch it
 * early. Each record's headers are checked again when it is read.
 */
#include "op/op.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "store/reader.h"
#include "store/shards.h"
#include "store/tar.h"
#include "store/window.h"

/* Records from this size on are read through the reader. */
#define LARGE_BYTES ((uint64_t)32 << 10)

struct tar {
    const char *path;
    struct hr_pairs fields;
    bool keys;
    const char *key_field;
};

static const struct hr_param tar_params[] = {
    HR_P_PATH(struct tar, path, .required = true, .not_identity = true,
              .help =
                  "an archive; or several: \"train-{000..099}.tar\", \"{a,b}.tar\", a "
                  "pattern such as \"shards/*.tar\", or a folder"),
    HR_P_MAP(struct tar, fields, .required = true,
             .help = "field: the ending of its member, or several that stand for each "
                     "other, as in {image: jpg|jpeg|png, label: cls}"),
    HR_P_BOOL(struct tar, keys, .fallback = "false",
              .help = "add the key of each record as a field"),
    HR_P_FIELD(struct tar, key_field, .fallback = "key", .access = HR_ACCESS_WRITE,
               .help = "the field that holds the key, when keys are wanted"),
};

enum { FIELD_KEY, FIELD_FIRST };

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

static bool takes(const char *endings, const char *ending, size_t bytes)
{
    const char *one;
    size_t length;

    while (next_ending(&endings, &one, &length))
        if (length == bytes && strncasecmp(one, ending, bytes) == 0)
            return true;
    return false;
}

/* ---- schema ---- */

static enum hr_err tar_binds(const void *params, const struct hr_schema *input,
                             struct hr_bindings *bindings, struct hr_error *error)
{
    const struct tar *p = params;

    (void)input;
    for (int i = 0; i < p->fields.count; i++)
        HR_TRY(hr__bind(bindings, p->fields.keys[i], HR_ACCESS_WRITE, error));
    return HR_OK;
}

/* What the members of field `at` become: what all of its endings mean, else bytes. */
static enum hr_err
infer_content(struct hr_infer *infer, int at, enum content *ret_content)
{
    const struct tar *p = infer->params;
    const char *rest = p->fields.values[at], *ending;
    enum content first = content_of(rest, strcspn(rest, "|"));
    size_t bytes;

    *ret_content = first;
    while (next_ending(&rest, &ending, &bytes)) {
        enum content content = content_of(ending, bytes);

        if (bytes == 0 || ending[0] == '.')
            return hr__infer_fail(infer, "fields", HR_ERR_ARGUMENT,
                                  "\"%s\": an ending is written without a dot before it, "
                                  "such as jpg or seg.png",
                                  p->fields.values[at]);
        if ((content == CONTENT_INTEGER) != (first == CONTENT_INTEGER))
            return hr__infer_fail(infer, "fields", HR_ERR_ARGUMENT,
                                  "\"%s\": some of these endings mean integers, some "
                                  "bytes",
                                  p->fields.values[at]);
        if (content != first)
            *ret_content = CONTENT_BYTES;
        for (int i = 0; i < at; i++)
            if (takes(p->fields.values[i], ending, bytes))
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
    const struct tar *p = infer->params;
    struct hr_field *field = infer->fields[FIELD_FIRST + at];
    enum content content;

    HR_TRY(infer_content(infer, at, &content));
    if (field == infer->fields[FIELD_KEY] && p->keys)
        return hr__infer_fail(infer, "key_field", HR_ERR_ARGUMENT,
                              "\"%s\" is a field of a member already", field->name);
    field->kind = content == CONTENT_INTEGER ? HR_FIELD_TENSOR : HR_FIELD_BYTES;
    field->dtype = content == CONTENT_INTEGER ? HR_I64 : field->dtype;
    field->meaning = meanings[content];
    return HR_OK;
}

static enum hr_err tar_infer(struct hr_infer *infer)
{
    const struct tar *p = infer->params;
    struct hr_field *key = infer->fields[FIELD_KEY];

    assert(infer->field_count == (size_t)(FIELD_FIRST + p->fields.count));
    key->kind = HR_FIELD_BYTES;
    key->meaning = HR_MEANING_TEXT;
    for (int i = 0; i < p->fields.count; i++)
        HR_TRY(infer_field(infer, i));
    infer->output->records = -1;
    if (!p->keys)
        hr__schema_remove(infer->output, (size_t)(key - infer->output->fields));
    return HR_OK;
}

/* ---- state ---- */

static enum hr_err tar_open(const struct hr_open *open, void **ret_state)
{
    const struct tar *p = open->params;
    struct hr_shards shards = {0};
    struct hr_tar_index *index = NULL;
    enum hr_err code = hr__shards_find(p->path, ".tar", &shards, open->error);

    if (code == HR_OK)
        code = hr__tar_index_open((const char *const *)shards.uris, shards.count, &index,
                                  open->error);
    hr__shards_finish(&shards);
    if (code != HR_OK)
        return code;
    *ret_state = index;
    return HR_OK;
}

static void tar_close(void *state)
{
    hr__tar_index_close(state);
}

static uint64_t tar_count(const void *params, const void *state)
{
    (void)params;
    return hr__tar_index_count(state);
}

static void tar_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    struct hr_hash128 hash = hr__tar_index_identity(state);

    (void)params;
    hr__hasher_add(hasher, &hash.low, sizeof hash.low);
    hr__hasher_add(hasher, &hash.high, sizeof hash.high);
}

static bool tar_locate(const void *params, const void *state, uint64_t index, char *uri,
                       size_t room, uint64_t *ret_offset)
{
    struct hr_hash128 identity;
    const char *shard;
    uint64_t bytes;
    size_t length;

    (void)params;
    if (index >= hr__tar_index_count(state))
        return false;
    hr__tar_index_record(state, index, &shard, &identity, ret_offset, &bytes);
    length = strlen(shard);
    if (length >= room)
        return false;
    memcpy(uri, shard, length + 1);
    return true;
}

/* Where a record lies; false if its shard's name is too long for a range. */
static bool
range_of(const struct hr_tar_index *index, uint64_t at, struct hr_range *ret_range)
{
    const char *uri;
    size_t length;

    hr__tar_index_record(index, at, &uri, &ret_range->identity, &ret_range->offset,
                         &ret_range->bytes);
    length = strlen(uri);
    if (length >= sizeof ret_range->uri)
        return false;
    memcpy(ret_range->uri, uri, length + 1);
    return true;
}

static bool tar_ahead(const void *params, const void *state, uint64_t index,
                      struct hr_range *ret_range)
{
    (void)params;
    return index < hr__tar_index_count(state) && range_of(state, index, ret_range) &&
           ret_range->bytes >= LARGE_BYTES;
}

/* ---- records ---- */

static enum hr_err window_create(void **ret_object, struct hr_error *reterr)
{
    *ret_object = hr__calloc(1, sizeof(struct hr_window));
    return *ret_object != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static void window_destroy(void *object)
{
    hr__window_finish(object);
    hr__free(object);
}

static const struct hr_thread_class window_class = {"tar window", window_create,
                                                    window_destroy};

/* The bytes of a record, and the buffer that they are in; without one they are valid
 * until the thread's next record. */
struct record {
    const char *uri;
    uint64_t offset, bytes;
    const char *data;
    struct hr_buffer *owner;
};

static enum hr_err read_large(struct hr_op_ctx *ctx, struct record *record)
{
    struct hr_range range; /* 4 kB, not cleared */

    if (!range_of(ctx->state, ctx->id->index, &range))
        return hr__fail(ctx->error, HR_ERR_LIMIT, "the path of a file is too long");
    HR_TRY(hr__reader_take(ctx->thread->reader, &range, &record->owner, ctx->error));
    record->data = hr_buffer_data(record->owner);
    return HR_OK;
}

static enum hr_err
read_small(struct hr_op_ctx *ctx, struct hr_hash128 identity, struct record *record)
{
    struct hr_window *window;
    const void *data;
    void *object;

    HR_TRY(hr__thread_object(ctx->thread, &window_class, &object, ctx->error));
    window = object;
    HR_TRY(hr__window_open(window, record->uri, ctx->error));
    if (window->object.identity.low != identity.low ||
        window->object.identity.high != identity.high)
        return hr__fail(ctx->error, HR_ERR_STATE, "%s changed since the graph was opened",
                        record->uri);
    HR_TRY(
        hr__window_get(window, record->offset, (size_t)record->bytes, &data, ctx->error));
    record->data = data;
    return HR_OK;
}

static enum hr_err fail_member(struct hr_op_ctx *ctx, const struct record *record,
                               uint64_t at, const char *what)
{
    return hr__fail(ctx->error, HR_ERR_FORMAT, "%s: byte %llu: %s", record->uri,
                    (unsigned long long)(record->offset + at), what);
}

static enum hr_err set_integer(struct hr_op_ctx *ctx, const char *data, size_t bytes,
                               const char *name, struct hr_value *value)
{
    char text[32], *end;
    int64_t *number;
    void *memory;

    while (bytes > 0 && strchr(" \t\r\n", data[bytes - 1]) != NULL)
        bytes--;
    if (bytes > 0 && bytes < sizeof text) {
        memcpy(text, data, bytes);
        text[bytes] = '\0';
        HR_TRY(hr__op_alloc(ctx, sizeof *number, &memory));
        number = memory;
        errno = 0;
        *number = strtoll(text, &end, 10);
        if (end == text + bytes && errno == 0) {
            hr__value_set_tensor(value, HR_I64, 0, NULL, number, NULL);
            return HR_OK;
        }
    }
    return hr__fail(ctx->error, HR_ERR_FORMAT, "member '%s' is no integer: \"%.*s\"",
                    name, bytes < 32 ? (int)bytes : 32, data);
}

static enum hr_err set_bytes(struct hr_op_ctx *ctx, const struct record *record,
                             const char *data, size_t bytes, struct hr_value *value)
{
    void *memory;

    if (record->owner != NULL) {
        hr__value_set_bytes(value, data, bytes, hr_buffer_ref(record->owner));
        value->shared = true;
        return HR_OK;
    }
    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    memcpy(memory, data, bytes);
    hr__value_set_bytes(value, memory, bytes, NULL);
    return HR_OK;
}

/* Sets the field that takes members with this ending, if one does. */
static enum hr_err set_member(struct hr_op_ctx *ctx, const struct record *record,
                              const struct hr_tar_member *member, const char *ending,
                              size_t ending_bytes, const char *data)
{
    const struct tar *p = ctx->params;

    for (int i = 0; i < p->fields.count; i++) {
        struct hr_value *value = ctx->fields[FIELD_FIRST + i];

        if (!takes(p->fields.values[i], ending, ending_bytes))
            continue;
        if (value->kind != HR_VALUE_NONE)
            return hr__fail(ctx->error, HR_ERR_FORMAT,
                            "member '%s' is the second one for field '%s'", member->name,
                            p->fields.keys[i]);
        if (content_of(ending, ending_bytes) == CONTENT_INTEGER)
            return set_integer(ctx, data, (size_t)member->bytes, member->name, value);
        return set_bytes(ctx, record, data, (size_t)member->bytes, value);
    }
    return HR_OK;
}

static enum hr_err
set_key(struct hr_op_ctx *ctx, const struct hr_tar_member *member, size_t bytes)
{
    const struct tar *p = ctx->params;
    void *memory;

    if (!p->keys || ctx->fields[FIELD_KEY]->kind != HR_VALUE_NONE)
        return HR_OK;
    HR_TRY(hr__op_alloc(ctx, bytes + 1, &memory));
    memcpy(memory, member->name, bytes);
    hr__value_set_bytes(ctx->fields[FIELD_KEY], memory, bytes, NULL);
    return HR_OK;
}

static enum hr_err read_members(struct hr_op_ctx *ctx, const struct record *record)
{
    struct hr_tar_member member;
    struct hr_error why = {0};
    size_t key, ending, need;

    for (uint64_t at = 0; at < record->bytes; at += member.next) {
        enum hr_err code = hr__tar_parse(record->data + at, (size_t)(record->bytes - at),
                                         &member, &need, &why);

        if (code != HR_OK)
            return fail_member(ctx, record, at,
                               code == HR_ERR_FORMAT ? why.message
                                                     : "the archive ends in a header");
        if (member.data + member.bytes > record->bytes - at)
            return fail_member(ctx, record, at, "the archive ends in a member");
        if (!hr__tar_key(&member, &key, &ending))
            continue;
        HR_TRY(set_key(ctx, &member, key));
        HR_TRY(set_member(ctx, record, &member, member.name + key + 1, ending,
                          record->data + at + member.data));
    }
    return HR_OK;
}

static enum hr_err check_complete(struct hr_op_ctx *ctx, const struct record *record)
{
    const struct tar *p = ctx->params;

    for (int i = 0; i < p->fields.count; i++)
        if (ctx->fields[FIELD_FIRST + i]->kind == HR_VALUE_NONE)
            return hr__fail(ctx->error, HR_ERR_FORMAT,
                            "%s: byte %llu: the record has no member '%s' for field '%s'",
                            record->uri, (unsigned long long)record->offset,
                            p->fields.values[i], p->fields.keys[i]);
    return HR_OK;
}

static enum hr_err tar_apply(struct hr_op_ctx *ctx)
{
    struct record record = {0};
    struct hr_hash128 identity;
    enum hr_err code;

    if (ctx->id->index >= hr__tar_index_count(ctx->state))
        return hr__fail(ctx->error, HR_ERR_RANGE, "there is no record %llu",
                        (unsigned long long)ctx->id->index);
    hr__tar_index_record(ctx->state, ctx->id->index, &record.uri, &identity,
                         &record.offset, &record.bytes);
    code = record.bytes >= LARGE_BYTES ? read_large(ctx, &record)
                                       : read_small(ctx, identity, &record);
    if (code == HR_OK)
        code = read_members(ctx, &record);
    if (code == HR_OK)
        code = check_complete(ctx, &record);
    hr_buffer_unref(record.owner);
    return code;
}

const struct hr_op hr_op_source_tar = {
    .name = "source.tar",
    .summary = "records of tar archives, as WebDataset packs them",
    .doc =
        "Members that follow each other and have the same key are one record: the key is "
        "the name up to the first dot of its last part, the ending is what follows it. "
        "Each field takes the member with its ending (case ignored); members that no "
        "field takes are ignored, and a record that lacks one is bad. Members whose "
        "ending is cls, cls2, class, count, index, inx or id are decimal integers and "
        "become int64; all others are bytes. Records can be read in any order, so "
        "shuffle, "
        "shard and resume work as for files; compressed archives are refused. A damaged "
        "header costs the records that it lies in. The identity of the source is the "
        "names "
        "and sizes of the members: a member whose bytes change but not its size goes "
        "unnoticed.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(tar_params, struct tar),
    .infer = tar_infer,
    .binds = tar_binds,
    .open = tar_open,
    .close = tar_close,
    .identity = tar_identity,
    .apply = tar_apply,
    .source = {.count = tar_count, .locate = tar_locate, .ahead = tar_ahead},
};
