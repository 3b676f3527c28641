/*
 * api/pack_format.c - the formats of hr_pack().
 */
#include "api/pack_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "store/tar.h"
#include "store/tfrecord.h"

void hr__pack_shard_finish(struct hr_pack_shard *shard)
{
    hr__wire_writer_finish(&shard->wire);
    hr__str_finish(&shard->schema_text);
    hr__compressor_destroy(shard->compressor);
    hr__free(shard->block);
}

/* ---- the container ---- */

static enum hr_err records_check(const struct hr_schema *schema, struct hr_error *reterr)
{
    (void)schema;
    (void)reterr;
    return HR_OK;
}

/* What the file's first frame holds: the schema, then the names of classes. */
static enum hr_err begin_wire(struct hr_pack_shard *shard, struct hr_error *reterr)
{
    const struct hr_str *schema = &shard->wire.schema_bytes;
    struct hr_str *text = &shard->schema_text;

    if (shard->wire.schema != NULL)
        return HR_OK;
    HR_TRY(hr__wire_writer_init(&shard->wire, shard->schema, false, reterr));
    hr__str_add_bytes(text, hr__str_text(schema), schema->length);
    hr__wire_classes_write(shard->schema, text);
    if (!hr__str_ok(text))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a file of records");
    if (text->length > HR_RECORDS_SCHEMA_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "the names of all classes take %zu bytes, more than the %zu that "
                        "a file of records has for them",
                        text->length - schema->length, HR_RECORDS_SCHEMA_MAX);
    return HR_OK;
}

static enum hr_err
records_open(struct hr_pack_shard *shard, const char *path, struct hr_error *reterr)
{
    const struct hr_str *schema = &shard->schema_text;

    HR_TRY(begin_wire(shard, reterr));
    if (shard->kept.bytes > 0)
        HR_TRY(hr__records_extend(path, &shard->kept, hr__str_text(schema),
                                  schema->length, shard->compressor, &shard->records,
                                  reterr));
    else
        HR_TRY(hr__records_create(path, hr__str_text(schema), schema->length,
                                  shard->compressor, &shard->records, reterr));
    shard->bytes = hr__records_written(shard->records);
    return HR_OK;
}

static enum hr_err records_keep(struct hr_pack_shard *shard, const char *path,
                                uint64_t bytes, struct hr_error *reterr)
{
    struct hr_window window = {0};
    enum hr_err code;

    HR_TRY(begin_wire(shard, reterr));
    code = hr__window_open(&window, path, reterr);
    if (code == HR_OK)
        code =
            hr__records_verify(&window, &shard->schema_text, bytes, &shard->kept, reterr);
    hr__window_finish(&window);
    return code;
}

static bool grow_block(struct hr_pack_shard *shard, size_t bytes)
{
    if (bytes <= shard->room)
        return true;
    hr__free(shard->block);
    shard->room = 2 * bytes;
    shard->block = hr__aligned_alloc(HR_WIRE_ALIGN, hr__wire_align(shard->room));
    if (shard->block == NULL)
        shard->room = 0;
    return shard->block != NULL;
}

static enum hr_err records_add(struct hr_pack_shard *shard, uint64_t number,
                               struct hr_value *values, struct hr_error *reterr)
{
    struct hr_wire_record record = {
        .id = {.position = number, .index = number},
          .values = values
    };
    size_t bytes = hr__wire_block_bytes(&shard->wire, &record, 1);

    if (!grow_block(shard, bytes))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a record");
    HR_TRY(hr__wire_block_write(&shard->wire, &record, 1, shard->block, reterr));
    HR_TRY(hr__records_add(shard->records, shard->block, bytes, reterr));
    shard->bytes = hr__records_written(shard->records);
    return HR_OK;
}

static enum hr_err records_commit(struct hr_pack_shard *shard, struct hr_error *reterr)
{
    struct hr_records_writer *writer = shard->records;

    shard->records = NULL;
    return hr__records_commit(writer, &shard->bytes, reterr);
}

static void records_abort(struct hr_pack_shard *shard)
{
    hr__records_abort(shard->records);
    shard->records = NULL;
}

const struct hr_pack_class hr__pack_records = {
    .name = "records",
    .ending = HR_RECORDS_ENDING,
    .check = records_check,
    .open = records_open,
    .keep = records_keep,
    .add = records_add,
    .commit = records_commit,
    .abort = records_abort,
};

/* ---- files without an index ---- */

static enum hr_err
file_open(struct hr_pack_shard *shard, const char *path, struct hr_error *reterr)
{
    shard->bytes = 0;
    return hr__file_begin(path, &shard->file, reterr);
}

static enum hr_err file_add(struct hr_pack_shard *shard, const void *data, size_t bytes,
                            struct hr_error *reterr)
{
    shard->bytes += bytes;
    return hr__file_write(shard->file, data, bytes, reterr);
}

static enum hr_err file_commit(struct hr_pack_shard *shard, struct hr_error *reterr)
{
    struct hr_file_writer *file = shard->file;

    shard->file = NULL;
    return hr__file_commit(file, reterr);
}

static void file_abort(struct hr_pack_shard *shard)
{
    hr__file_abort(shard->file);
    shard->file = NULL;
}

/* ---- tar ---- */

static bool is_number(const struct hr_field *field)
{
    return field->kind == HR_FIELD_TENSOR && field->ndim == 0 && field->dtype == HR_I64;
}

/* What a member's name ends with, for people and for programs that go by it. */
static const char *suffix_of(const struct hr_field *field, const char *data, size_t bytes)
{
    if (field->meaning == HR_MEANING_TEXT)
        return ".txt";
    if (field->meaning != HR_MEANING_ENCODED || bytes < 12)
        return "";
    if (memcmp(data, "\xff\xd8\xff", 3) == 0)
        return ".jpg";
    if (memcmp(data, "\x89PNG", 4) == 0)
        return ".png";
    if (memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
        return ".webp";
    return data[0] == 'P' && data[1] >= '1' && data[1] <= '6' ? ".pnm" : "";
}

static enum hr_err tar_check(const struct hr_schema *schema, struct hr_error *reterr)
{
    char text[128];

    for (size_t i = 0; i < schema->count; i++) {
        const struct hr_field *field = &schema->fields[i];

        if (strpbrk(field->name, "/\\.") != NULL)
            return hr__fail(
                reterr, HR_ERR_UNSUPPORTED,
                "field '%s': a name in a tar archive has no dots and slashes: "
                "put record.rename before the end",
                field->name);
        if (field->kind != HR_FIELD_BYTES && !is_number(field))
            return hr__fail(
                reterr, HR_ERR_UNSUPPORTED,
                "field '%s' is %s; a tar archive holds byte strings and "
                "int64 numbers: use the format records, or put record.drop before "
                "the end",
                field->name, hr__field_text(field, text, sizeof text));
    }
    return HR_OK;
}

static enum hr_err add_member(struct hr_pack_shard *shard, const char *name,
                              const void *data, size_t bytes, struct hr_error *reterr)
{
    static const char zeros[HR_TAR_BLOCK];
    char head[HR_TAR_BLOCK];

    HR_TRY(hr__tar_head(name, bytes, head, reterr));
    HR_TRY(file_add(shard, head, sizeof head, reterr));
    HR_TRY(file_add(shard, data, bytes, reterr));
    return file_add(shard, zeros, -bytes % HR_TAR_BLOCK, reterr);
}

static enum hr_err tar_add(struct hr_pack_shard *shard, uint64_t number,
                           struct hr_value *values, struct hr_error *reterr)
{
    for (size_t i = 0; i < shard->schema->count; i++) {
        const struct hr_field *field = &shard->schema->fields[i];
        const struct hr_value *value = &values[i];
        char name[128], digits[32];
        const void *data = value->data;
        size_t bytes = value->bytes;

        if (is_number(field)) {
            int64_t label;

            memcpy(&label, value->data, sizeof label);
            bytes = (size_t)snprintf(digits, sizeof digits, "%" PRId64, label);
            data = digits;
        }
        snprintf(name, sizeof name, "%08" PRIu64 ".%s%s", number, field->name,
                 is_number(field) ? ".cls" : suffix_of(field, data, bytes));
        HR_TRY(add_member(shard, name, data, bytes, reterr));
    }
    return HR_OK;
}

static enum hr_err tar_commit(struct hr_pack_shard *shard, struct hr_error *reterr)
{
    static const char zeros[2 * HR_TAR_BLOCK];
    enum hr_err code = file_add(shard, zeros, sizeof zeros, reterr);

    if (code == HR_OK)
        return file_commit(shard, reterr);
    file_abort(shard);
    return code;
}

const struct hr_pack_class hr__pack_tar = {
    .name = "tar",
    .ending = ".tar",
    .check = tar_check,
    .open = file_open,
    .add = tar_add,
    .commit = tar_commit,
    .abort = file_abort,
};

/* ---- TFRecord ---- */

static enum hr_err tfrecord_check(const struct hr_schema *schema, struct hr_error *reterr)
{
    if (schema->count == 1 && schema->fields[0].kind == HR_FIELD_BYTES)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "a TFRecord file holds one byte string per record: put record.select "
                    "before the end, or use the format records");
}

static enum hr_err tfrecord_add(struct hr_pack_shard *shard, uint64_t number,
                                struct hr_value *values, struct hr_error *reterr)
{
    char head[HR_TFRECORD_HEAD], tail[HR_TFRECORD_TAIL];

    (void)number;
    hr__tfrecord_frame(values[0].data, values[0].bytes, head, tail);
    HR_TRY(file_add(shard, head, sizeof head, reterr));
    HR_TRY(file_add(shard, values[0].data, values[0].bytes, reterr));
    return file_add(shard, tail, sizeof tail, reterr);
}

const struct hr_pack_class hr__pack_tfrecord = {
    .name = "tfrecord",
    .ending = ".tfrecord",
    .check = tfrecord_check,
    .open = file_open,
    .add = tfrecord_add,
    .commit = file_commit,
    .abort = file_abort,
};
