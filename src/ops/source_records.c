/*
 * source.records - records of Headrace's own container (docs/formats/container.md).
 *
 * The fields are those of the first file's schema, which is read when the graph is
 * checked; all other files must have the same. A large record is used where it was read
 * to, a small one is copied once, as a whole.
 */
#include "ops/shard_rows.h"

#include <assert.h>
#include <string.h>

#include "codec/lz.h"
#include "core/alloc.h"
#include "core/str.h"
#include "store/records.h"
#include "store/shards.h"
#include "wire/record.h"

struct records {
    const char *path;
    int64_t unpacked_max;
};

static const struct hr_param records_params[] = {
    HR_P_PATH(struct records, path, .required = true, .not_identity = true,
              .help =
                  "a file; or several: \"train-{000..099}.records\", a pattern such as "
                  "\"packed/train-*.records\", or a folder of .records files"),
    HR_P(HR_PARAM_BYTES, struct records, unpacked_max, .fallback = "1GiB",
         HR_RANGE(1, 1LL << 50), .unit = "bytes", .not_identity = true,
         .help = "a compressed record that unpacks to more is bad"),
};

struct state {
    struct hr_shard_source source;
    struct hr_str text; /* of the schema */
    struct hr_schema schema;
    struct hr_wire_classes classes; /* which the schema refers to */
    struct hr_wire_reader reader;
    bool ragged; /* a field is */
    uint64_t unpacked_max;
    char *note;
};

static void records_close(void *made)
{
    struct state *state = made;

    hr__wire_reader_finish(&state->reader);
    hr__wire_classes_finish(&state->classes);
    hr__str_finish(&state->text);
    hr__free(state->note);
    hr__shard_source_close(state);
}

/* ---- schema ---- */

static enum hr_err
parse_schema(struct state *state, const char *uri, struct hr_error *error)
{
    struct hr_wire_input in = {hr__str_text(&state->text), state->text.length, false};
    enum hr_err code = hr__wire_schema_read(&in, &state->schema) ? HR_OK : HR_ERR_FORMAT;

    if (code == HR_OK)
        code = hr__wire_classes_read(&in, &state->schema, &state->classes);
    if (code != HR_OK)
        return hr__fail(error, code, "%s: %s", uri,
                        code == HR_ERR_MEMORY ? "no memory for the names of its classes"
                                              : "its schema is malformed");
    for (size_t i = 0; i < state->schema.count; i++)
        state->ragged |= state->schema.fields[i].levels > 0;
    for (size_t i = 0; i < state->schema.count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(state->schema.fields[i].name, state->schema.fields[k].name) == 0)
                return hr__fail(error, HR_ERR_FORMAT, "%s: two fields are named '%s'",
                                uri, state->schema.fields[i].name);
    if (state->schema.count == 0 || state->schema.batch_rank > 0)
        return hr__fail(error, HR_ERR_FORMAT, "%s: it holds no records with fields", uri);
    return hr__wire_reader_init(&state->reader, &state->schema, error);
}

/* The schema of the first file. */
static enum hr_err
read_schema(struct state *state, const char *pattern, struct hr_error *error)
{
    struct hr_window *window = hr__calloc(1, sizeof *window);
    struct hr_shards shards = {0};
    bool damaged;
    enum hr_err code;

    if (window == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    code = hr__shards_find(pattern, HR_RECORDS_ENDING, false, &shards, error);
    if (code == HR_OK)
        code = hr__window_open(window, shards.uris[0], error);
    if (code == HR_OK)
        code = hr__records_schema(window, &state->text, &damaged, error);
    if (code == HR_OK)
        code = parse_schema(state, shards.uris[0], error);
    hr__shards_finish(&shards);
    hr__window_finish(window);
    hr__free(window);
    return code;
}

static enum hr_err
records_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct records *p = params;
    struct state *state = hr__calloc(1, sizeof *state);
    enum hr_err code;

    if (state == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    hr__str_init(&state->text);
    state->unpacked_max = (uint64_t)p->unpacked_max;
    code = read_schema(state, p->path, error);
    if (code == HR_OK)
        *ret_state = state;
    else
        records_close(state);
    return code;
}

static enum hr_err
records_binds(const void *params, const void *made, const struct hr_schema *input,
              struct hr_bindings *bindings, struct hr_error *error)
{
    const struct state *state = made;

    (void)params;
    (void)input;
    for (size_t i = 0; i < state->schema.count; i++)
        HR_TRY(hr__bind(bindings, state->schema.fields[i].name, HR_ACCESS_WRITE, error));
    return HR_OK;
}

static enum hr_err records_infer(struct hr_infer *infer)
{
    const struct state *state = infer->state;

    assert(infer->field_count == state->schema.count);
    for (size_t i = 0; i < infer->field_count; i++) {
        int slot = infer->fields[i]->slot;

        *infer->fields[i] = state->schema.fields[i];
        infer->fields[i]->slot = slot;
    }
    infer->output->records = -1;
    return HR_OK;
}

/* ---- state ---- */

static enum hr_err records_open(const struct hr_open *open, void **ret_state)
{
    const struct records *p = open->params;
    struct state *state = *ret_state;
    struct hr_records_scan scan = {.schema = &state->text};
    struct hr_str note;

    HR_TRY(hr__shard_index_open(p->path, HR_RECORDS_ENDING, hr__records_scan, &scan, NULL,
                                NULL, &state->source.index, open->error));
    if (scan.damaged == 0)
        return HR_OK;
    hr__str_init(&note);
    hr__str_addf(&note,
                 "files whose schema or index is damaged or missing: %llu (their records "
                 "were found without it; pack them again)",
                 (unsigned long long)scan.damaged);
    if (!hr__str_ok(&note)) {
        hr__str_finish(&note);
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    }
    state->note = hr__str_take(&note);
    return HR_OK;
}

static const char *records_note(const void *state)
{
    return ((const struct state *)state)->note;
}

/* ---- keys ---- */

/* Numbers and byte strings that no decoder reads. */
static bool is_key(const struct hr_field *field)
{
    if (field->kind == HR_FIELD_BYTES)
        return field->meaning != HR_MEANING_ENCODED;
    return field->kind == HR_FIELD_TENSOR && field->ndim == 0 &&
           hr__has_number_text(field->dtype);
}

static const struct hr_field *key_field(const struct state *state, size_t i)
{
    for (size_t f = 0; f < state->schema.count; f++)
        if (is_key(&state->schema.fields[f]) && i-- == 0)
            return &state->schema.fields[f];
    return NULL;
}

static const char *records_key_name(const void *params, const void *made, size_t i)
{
    const struct hr_field *field = key_field(made, i);

    (void)params;
    return field != NULL ? field->name : NULL;
}

static enum hr_err
check_unpacked(const struct state *state, const struct hr_records_contents *contents,
               struct hr_error *error)
{
    if (contents->bytes <= state->unpacked_max)
        return HR_OK;
    return hr__fail(error, HR_ERR_LIMIT,
                    "a compressed record unpacks to %zu bytes, which are more than "
                    "unpacked_max (%llu)",
                    contents->bytes, (unsigned long long)state->unpacked_max);
}

/* The name of the class whose number the value is; NULL: it is no such number. */
static const char *class_name(const struct hr_field *field, const void *data)
{
    int64_t number;

    if (field->classes == NULL || field->kind != HR_FIELD_TENSOR)
        return NULL;
    number = hr__integer_at(field->dtype, data);
    return number >= 0 && (uint64_t)number < field->classes->count
               ? field->classes->names[number]
               : NULL;
}

/* Adds the value that lies at `at` in the contents of a record. */
static void add_value(const struct hr_field *field, const void *data, size_t bytes,
                      struct hr_str *out)
{
    const char *name = class_name(field, data);

    if (name != NULL)
        hr__str_add(out, name);
    else if (field->kind == HR_FIELD_TENSOR)
        hr__number_text(out, field->dtype, data);
    else
        hr__str_add_bytes(out, data, bytes);
}

static enum hr_err
unpack_lz4(const struct hr_records_contents *contents, void *to, struct hr_error *error)
{
    if (hr__lz4_unpack(contents->data, contents->packed_bytes, to, contents->bytes))
        return HR_OK;
    return hr__fail(error, HR_ERR_FORMAT,
                    "a record does not unpack to the %zu bytes that its head says",
                    contents->bytes);
}

/* Adds the value of a record that is compressed, from all of it. */
static enum hr_err
unpack_and_look_up(const struct state *state, const struct hr_field *field,
                   const struct hr_records_contents *contents, struct hr_str *out,
                   struct hr_error *error)
{
    char *data = hr__malloc(contents->bytes + HR_LZ_SLACK);
    struct hr_unpack *unpack = NULL;
    uint64_t at, bytes;
    enum hr_err code;

    if (data == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    code = contents->compression == HR_COMPRESSION_LZ4
               ? unpack_lz4(contents, data, error)
               : hr__unpack_create(HR_PACKING_ZSTD, &unpack, error);
    if (code == HR_OK && unpack != NULL)
        code = hr__records_unpack(unpack, contents, data, error);
    if (code == HR_OK)
        code = hr__wire_reader_locate(&state->reader, data, contents->bytes,
                                      (size_t)(field - state->schema.fields), &at, &bytes,
                                      error);
    if (code == HR_OK)
        add_value(field, data + at, (size_t)bytes, out);
    hr__unpack_destroy(unpack);
    hr__free(data);
    return code;
}

/* Adds the value without reading the rest of the record, unless that is compressed. */
static enum hr_err
look_up(const struct state *state, const struct hr_field *field, struct hr_window *window,
        const struct hr_shard_place *place, struct hr_str *out, struct hr_error *error)
{
    size_t head = sizeof(struct hr_records_head), front, block;
    struct hr_records_contents contents;
    struct hr_records_head frame;
    uint64_t at, bytes;
    const void *data;

    HR_TRY(hr__window_get(window, place->offset,
                          place->bytes < head ? (size_t)place->bytes : head, &data,
                          error));
    if (place->bytes < head)
        return hr__fail(error, HR_ERR_FORMAT, "it is cut");
    HR_TRY(hr__records_head_get(data, &frame, error));
    if (frame.compression != HR_COMPRESSION_NONE) {
        HR_TRY(hr__window_get(window, place->offset, (size_t)place->bytes, &data, error));
        HR_TRY(hr__records_check(data, place->bytes, &contents, error));
        HR_TRY(check_unpacked(state, &contents, error));
        return unpack_and_look_up(state, field, &contents, out, error);
    }
    block = (size_t)place->bytes - head;
    front = hr__wire_reader_front(&state->reader);
    HR_TRY(hr__window_get(window, place->offset + head, front < block ? front : block,
                          &data, error));
    HR_TRY(hr__wire_reader_locate(&state->reader, data, block,
                                  (size_t)(field - state->schema.fields), &at, &bytes,
                                  error));
    HR_TRY(
        hr__window_get(window, place->offset + head + at, (size_t)bytes, &data, error));
    add_value(field, data, (size_t)bytes, out);
    return HR_OK;
}

/* Checksums are for those who read the record: damage gives a key of some kind. */
static enum hr_err records_key(const void *params, const void *made, size_t i,
                               uint64_t index, struct hr_str *out, struct hr_error *error)
{
    struct hr_window *window = hr__calloc(1, sizeof *window);
    struct hr_shard_place place;
    enum hr_err code;

    (void)params;
    if (window == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    code = hr__shard_source_look(made, index, window, &place, error);
    if (code == HR_OK)
        code = look_up(made, key_field(made, i), window, &place, out, error);
    hr__window_finish(window);
    hr__free(window);
    return hr__shard_source_key(code, index, out);
}

/* ---- records ---- */

/* A small record lies in a window, from which its values are copied. Splits of ragged
 * values are in it, too, so with those it is copied as a whole. */
static enum hr_err copy_whole(struct hr_op_ctx *ctx, const char **data, size_t bytes)
{
    void *copy;

    HR_TRY(
        hr__op_alloc(ctx, bytes + HR_WIRE_ALIGN, &copy)); /* aligned from 64 bytes on */
    memcpy(copy, *data, bytes);
    *data = copy;
    return HR_OK;
}

static enum hr_err copy_value(struct hr_op_ctx *ctx, struct hr_value *value)
{
    void *copy;

    HR_TRY(hr__op_alloc(ctx, value->bytes + 1, &copy));
    if (value->bytes > 0)
        memcpy(copy, value->data, value->bytes);
    value->data = copy;
    value->shared = false;
    return HR_OK;
}

/* Sets the fields to values in `data`: in `owner`; or, if that is NULL, valid until the
 * thread's next record, or in its arena. */
static enum hr_err set_fields(struct hr_op_ctx *ctx, struct hr_buffer *owner,
                              bool in_arena, const char *data, size_t bytes)
{
    const struct state *state = ctx->state;
    bool aligned = (uintptr_t)data % HR_WIRE_ALIGN == 0;
    bool copied = in_arena || state->ragged || !aligned;
    struct hr_wire_single single;

    assert(aligned || !in_arena);
    if (!aligned)
        owner = NULL; /* it does not keep a copy */
    if (!in_arena && copied && owner == NULL)
        HR_TRY(copy_whole(ctx, &data, bytes));
    HR_TRY(hr__wire_reader_open(&state->reader, data, bytes, &ctx->thread->arena, &single,
                                ctx->error));
    for (size_t i = 0; i < ctx->field_count; i++) {
        HR_TRY(hr__wire_single_get(&single, i, ctx->fields[i], ctx->error));
        if (owner != NULL)
            ctx->fields[i]->owner = hr_buffer_ref(owner);
        else if (!copied)
            HR_TRY(copy_value(ctx, ctx->fields[i]));
    }
    return HR_OK;
}

static enum hr_err create_unpack(void **ret_object, struct hr_error *reterr)
{
    struct hr_unpack *unpack;

    HR_TRY(hr__unpack_create(HR_PACKING_ZSTD, &unpack, reterr));
    *ret_object = unpack;
    return HR_OK;
}

static void destroy_unpack(void *object)
{
    hr__unpack_destroy(object);
}

static const struct hr_thread_class unpack_class = {"zstd decoder", create_unpack,
                                                    destroy_unpack};

_Static_assert(HR_WIRE_ALIGN >= HR_LZ_SLACK, "room for what LZ4 writes beyond");

/* The contents, unpacked into the thread's arena. */
static enum hr_err
unpack(struct hr_op_ctx *ctx, const struct hr_records_contents *contents,
       const char **ret_data, struct hr_error *error)
{
    void *object, *data;

    HR_TRY(check_unpacked(ctx->state, contents, error));
    if (hr__op_alloc(ctx, contents->bytes + HR_WIRE_ALIGN, &data) != HR_OK)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory for a compressed record");
    *ret_data = data;
    if (contents->compression == HR_COMPRESSION_LZ4)
        return unpack_lz4(contents, data, error);
    HR_TRY(hr__thread_object(ctx->thread, &unpack_class, &object, error));
    return hr__records_unpack(object, contents, data, error);
}

static enum hr_err
records_make(struct hr_op_ctx *ctx, const struct hr_shard_record *record)
{
    struct hr_records_contents contents = {0};
    struct hr_error why;
    const char *data;
    enum hr_err code;
    bool packed;

    hr__error_init(&why);
    code = hr__records_check(record->data, record->place.bytes, &contents, &why);
    packed = code == HR_OK && contents.packed_bytes > 0;
    data = contents.data;
    if (packed)
        code = unpack(ctx, &contents, &data, &why);
    if (code == HR_OK)
        return set_fields(ctx, packed ? NULL : record->owner, packed, data,
                          contents.bytes);
    return hr__fail(ctx->error, code, "%s: byte %llu: %s", record->place.uri,
                    (unsigned long long)record->place.offset, why.message);
}

static enum hr_err records_apply(struct hr_op_ctx *ctx)
{
    return hr__shard_source_make(ctx, records_make);
}

static uint32_t
records_apply_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows)
{
    return hr__shard_source_rows(ctx, rows, records_make);
}

const struct hr_op hr_op_source_records = {
    .name = "source.records",
    .summary = "records of files that headrace pack has written",
    .doc =
        "Reads Headrace's own container: every field of every record with its type, "
        "shape and meaning, and the names of its classes, as it was at the end of the "
        "graph that was packed. Records "
        "can be read in any order, so shuffle, shard and resume work as for files. Each "
        "record has a checksum, which is checked: damage costs the records that it lies "
        "in. Records that were packed with --zstd or --lz4 are unpacked. A file whose "
        "schema or "
        "index is damaged is still read whole; a file without "
        "an end (its writer was interrupted, or it was cut) is read up to its last whole "
        "record, and one more record, which is bad, says so. The identity of the source "
        "is the sizes and checksums of its records, hence its contents, however they "
        "are divided over files.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(records_params, struct records),
    .binds = records_binds,
    .infer = records_infer,
    .open = records_open,
    .close = records_close,
    .identity = hr__shard_source_identity,
    .apply = records_apply,
    .prepare = records_prepare,
    .source = {.note = records_note,
               .count = hr__shard_source_count,
               .apply_rows = records_apply_rows,
               .rows_own = true,
               .locate = hr__shard_source_locate,
               .ahead = hr__shard_source_ahead,
               .size = hr__shard_source_size,
               .key_name = records_key_name,
               .key = records_key},
    .memory = HR_SHARD_MEMORY,
};
