/*
 * store/records_write.c - writing files of records.
 */
#include "store/records.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"

#define HEAD sizeof(struct hr_records_head)

struct hr_records_writer {
    struct hr_file_writer *file;
    struct hr_compressor *compressor; /* or NULL */
    struct hr_str schema, index, packed;
    uint64_t at, records;
    uint64_t indexed,
        link; /* records that the index at `link` and those before it list */
};

static enum hr_err put(struct hr_records_writer *writer, const void *data, size_t bytes,
                       struct hr_error *reterr)
{
    writer->at += bytes;
    return hr__file_write(writer->file, data, bytes, reterr);
}

/* A frame with these contents, a multiple of HR_RECORDS_ALIGN bytes. `head` has its kind,
 * number, link and raw_bytes; the rest is set. */
static enum hr_err
put_frame(struct hr_records_writer *writer, struct hr_records_head *head,
          const void *data, size_t bytes, struct hr_error *reterr)
{
    assert(bytes % HR_RECORDS_ALIGN == 0);
    assert(head->compression != HR_COMPRESSION_NONE || head->raw_bytes <= bytes);
    memcpy(head->magic, HR_RECORDS_MAGIC, sizeof head->magic);
    head->version = HR_RECORDS_VERSION;
    head->bytes = bytes;
    head->checksum = hr__hash64(data, bytes, 0);
    head->head_checksum =
        hr__hash64(head, offsetof(struct hr_records_head, head_checksum), 0);
    HR_TRY(put(writer, head, sizeof *head, reterr));
    return put(writer, data, bytes, reterr);
}

static enum hr_err fill_up(struct hr_str *text, struct hr_error *reterr)
{
    static const char zeros[HR_RECORDS_ALIGN];

    hr__str_add_bytes(text, zeros, -text->length % HR_RECORDS_ALIGN);
    return hr__str_ok(text)
               ? HR_OK
               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a file of records");
}

/* A frame with this text, filled up with zeros. */
static enum hr_err
put_text(struct hr_records_writer *writer, struct hr_records_head *head,
         struct hr_str *text, struct hr_error *reterr)
{
    head->raw_bytes = text->length;
    HR_TRY(fill_up(text, reterr));
    return put_frame(writer, head, hr__str_text(text), text->length, reterr);
}

static enum hr_err put_schema(struct hr_records_writer *writer, struct hr_error *reterr)
{
    struct hr_records_head head = {.kind = HR_RECORDS_SCHEMA};
    struct hr_str text;
    enum hr_err code;

    hr__str_init(&text);
    hr__str_add_bytes(&text, hr__str_text(&writer->schema), writer->schema.length);
    code = put_text(writer, &head, &text, reterr);
    hr__str_finish(&text);
    return code;
}

/* Copies what is whole of the file at `path`. */
static enum hr_err
put_whole(struct hr_records_writer *writer, const char *path,
          const struct hr_records_whole *whole, struct hr_error *reterr)
{
    struct hr_window window = {0};
    enum hr_err code = hr__window_open(&window, path, reterr);

    while (code == HR_OK && writer->at < whole->bytes) {
        uint64_t left = whole->bytes - writer->at;
        size_t bytes = left < HR_WINDOW_MAX ? (size_t)left : HR_WINDOW_MAX;
        const void *data;

        code = hr__window_get(&window, writer->at, bytes, &data, reterr);
        if (code == HR_OK)
            code = put(writer, data, bytes, reterr);
    }
    hr__window_finish(&window);
    writer->records = writer->indexed = whole->records;
    writer->link = whole->index;
    return code;
}

static void finish(struct hr_records_writer *writer)
{
    hr__str_finish(&writer->schema);
    hr__str_finish(&writer->index);
    hr__str_finish(&writer->packed);
    hr__free(writer);
}

static enum hr_err begin(const char *path, const void *schema, size_t schema_bytes,
                         struct hr_compressor *compressor,
                         struct hr_records_writer **ret_writer, struct hr_error *reterr)
{
    struct hr_records_writer *writer = hr__calloc(1, sizeof *writer);
    enum hr_err code;

    if (writer == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a file of records");
    hr__str_init(&writer->schema);
    hr__str_init(&writer->index);
    hr__str_init(&writer->packed);
    writer->compressor = compressor;
    hr__str_add_bytes(&writer->schema, schema, schema_bytes);
    code = hr__str_ok(&writer->schema)
               ? hr__file_begin(path, &writer->file, reterr)
               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a file of records");
    if (code == HR_OK)
        *ret_writer = writer;
    else
        hr__records_abort(writer);
    return code;
}

/* The writer if its first bytes were written. */
static enum hr_err begun(struct hr_records_writer *writer, enum hr_err code,
                         struct hr_records_writer **ret_writer)
{
    if (code == HR_OK)
        *ret_writer = writer;
    else
        hr__records_abort(writer);
    return code;
}

enum hr_err
hr__records_create(const char *path, const void *schema, size_t schema_bytes,
                   struct hr_compressor *compressor,
                   struct hr_records_writer **ret_writer, struct hr_error *reterr)
{
    struct hr_records_writer *writer = NULL;

    HR_TRY(begin(path, schema, schema_bytes, compressor, &writer, reterr));
    return begun(writer, put_schema(writer, reterr), ret_writer);
}

enum hr_err
hr__records_extend(const char *path, const struct hr_records_whole *whole,
                   const void *schema, size_t schema_bytes,
                   struct hr_compressor *compressor,
                   struct hr_records_writer **ret_writer, struct hr_error *reterr)
{
    struct hr_records_writer *writer = NULL;

    HR_TRY(begin(path, schema, schema_bytes, compressor, &writer, reterr));
    return begun(writer, put_whole(writer, path, whole, reterr), ret_writer);
}

uint64_t hr__records_written(const struct hr_records_writer *writer)
{
    return writer->at;
}

/* Compresses the contents of a frame if that makes it smaller. A block of LZ4 does not
 * say how long it is, so its length comes first. */
static enum hr_err
compress(struct hr_records_writer *writer, struct hr_records_head *head,
         const void **data, size_t *bytes, struct hr_error *reterr)
{
    enum hr_compression kind = hr__compressor_kind(writer->compressor);
    uint64_t length;
    const char *block;
    size_t packed, before = kind == HR_COMPRESSION_LZ4 ? sizeof length : 0;

    HR_TRY(hr__compress(writer->compressor, *data, *bytes, &block, &packed, reterr));
    length = packed;
    packed += before;
    if (length == 0 || packed + -packed % HR_RECORDS_ALIGN >= *bytes)
        return HR_OK;
    hr__str_clear(&writer->packed);
    hr__str_add_bytes(&writer->packed, &length, before);
    hr__str_add_bytes(&writer->packed, block, (size_t)length);
    HR_TRY(fill_up(&writer->packed, reterr));
    head->compression = (uint8_t)kind;
    *data = writer->packed.text;
    *bytes = writer->packed.length;
    return HR_OK;
}

enum hr_err hr__records_add(struct hr_records_writer *writer, const void *data,
                            size_t bytes, struct hr_error *reterr)
{
    struct hr_records_head head = {
        .kind = HR_RECORDS_RECORD, .number = writer->records, .raw_bytes = bytes};
    struct hr_records_entry entry = {.at = writer->at};

    if (bytes / HR_RECORDS_ALIGN >= UINT32_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "a record of %zu bytes is too large",
                        bytes);
    if (writer->compressor != NULL)
        HR_TRY(compress(writer, &head, &data, &bytes, reterr));
    HR_TRY(put_frame(writer, &head, data, bytes, reterr));
    entry.blocks = (uint32_t)((sizeof head + bytes) / HR_RECORDS_ALIGN);
    entry.check = (uint32_t)head.checksum;
    hr__str_add_bytes(&writer->index, &entry, sizeof entry);
    writer->records++;
    return HR_OK;
}

/* The index, then the end. */
static enum hr_err put_index(struct hr_records_writer *writer, struct hr_error *reterr)
{
    struct hr_records_head head = {
        .kind = HR_RECORDS_INDEX, .number = writer->indexed, .link = writer->link};
    struct hr_records_head end = {
        .kind = HR_RECORDS_END, .number = writer->records, .link = writer->at};
    uint64_t sizes[2] = {writer->records - writer->indexed, writer->schema.length};
    struct hr_str text;
    enum hr_err code;

    hr__str_init(&text);
    hr__str_add_bytes(&text, sizes, sizeof sizes);
    hr__str_add_bytes(&text, hr__str_text(&writer->index), writer->index.length);
    hr__str_add_bytes(&text, hr__str_text(&writer->schema), writer->schema.length);
    code = hr__str_ok(&writer->index)
               ? put_text(writer, &head, &text, reterr)
               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory for an index");
    hr__str_finish(&text);
    if (code != HR_OK)
        return code;
    return put_frame(writer, &end, NULL, 0, reterr);
}

enum hr_err hr__records_commit(struct hr_records_writer *writer, uint64_t *ret_bytes,
                               struct hr_error *reterr)
{
    struct hr_file_writer *file = writer->file;
    enum hr_err code = put_index(writer, reterr);

    if (code != HR_OK) {
        hr__records_abort(writer);
        return code;
    }
    *ret_bytes = writer->at;
    finish(writer);
    return hr__file_commit(file, reterr);
}

void hr__records_abort(struct hr_records_writer *writer)
{
    if (writer == NULL)
        return;
    hr__file_abort(writer->file);
    finish(writer);
}
