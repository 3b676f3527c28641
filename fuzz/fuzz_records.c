/*
 * fuzz/fuzz_records.c - any bytes as a file of records. Checksums are put right first, so
 * that mutations reach the checks after them. What the index finds must lie inside the
 * file, in order; records of the file's schema are read whole.
 */
#include "codec/lz.h"
#include "core/alloc.h"
#include "core/hash.h"
#include "store/records.h"
#include "store/store_memory.h"
#include "wire/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char uri[] = "mem://fuzz.records";

/* The bytes of the schema, behind which are the names of classes. */
static size_t schema_bytes(const char *data, size_t bytes)
{
    struct hr_wire_input in = {data, bytes, false};
    struct hr_schema *schema = hr__calloc(1, sizeof *schema);
    bool read = schema != NULL && hr__wire_schema_read(&in, schema);

    hr__free(schema);
    return read ? bytes - in.left : bytes;
}

/* The checksums of all frames that follow each other from the beginning, and of the
 * schema that records name. */
static void mend(char *data, size_t bytes)
{
    struct hr_records_head head;
    struct hr_hash128 schema = {0, 0};

    for (size_t at = 0; bytes - at >= sizeof head; at += sizeof head + head.bytes) {
        memcpy(&head, data + at, sizeof head);
        if (head.bytes > bytes - at - sizeof head || head.bytes % 64 != 0)
            return;
        if (at == 0 && head.raw_bytes <= head.bytes)
            schema = hr__hash128(data + sizeof head,
                                 schema_bytes(data + sizeof head, head.raw_bytes));
        if (head.kind == HR_RECORDS_RECORD && head.bytes >= 64)
            memcpy(data + at + sizeof head + 40, &schema, sizeof schema);
        head.checksum = hr__hash64(data + at + sizeof head, head.bytes, 0);
        head.head_checksum =
            hr__hash64(&head, offsetof(struct hr_records_head, head_checksum), 0);
        memcpy(data + at, &head, sizeof head);
    }
}

static void read_record(const struct hr_wire_reader *reader, size_t fields,
                        const char *data, size_t bytes)
{
    struct hr_value value = {0};
    struct hr_wire_single single;
    struct hr_arena arena;
    volatile uint64_t sum = 0;

    if ((uintptr_t)data % HR_WIRE_ALIGN != 0)
        return;
    hr__arena_init(&arena);
    if (hr__wire_reader_open(reader, data, bytes, &arena, &single, NULL) == HR_OK)
        for (size_t f = 0; f < fields; f++)
            if (hr__wire_single_get(&single, f, &value, NULL) == HR_OK &&
                value.kind != HR_VALUE_TENSOR)
                for (size_t i = 0; i < value.bytes; i++)
                    sum += ((const uint8_t *)value.data)[i];
    (void)sum;
    hr__arena_finish(&arena);
}

static void unpack(const struct hr_records_contents *contents)
{
    struct hr_unpack *zstd = NULL;
    volatile char sum = 0;
    char *room;

    if (contents->bytes > 1 << 20 ||
        hr__unpack_create(HR_PACKING_ZSTD, &zstd, NULL) != HR_OK)
        return;
    room = hr__calloc(1, contents->bytes + HR_LZ_SLACK);
    if (room != NULL && (contents->compression == HR_COMPRESSION_LZ4
                             ? hr__lz4_unpack(contents->data, contents->packed_bytes,
                                              room, contents->bytes)
                             : hr__records_unpack(zstd, contents, room, NULL) == HR_OK))
        for (size_t i = 0; i < contents->bytes; i++) /* all of it is set */
            sum ^= room[i];
    (void)sum;
    hr__free(room);
    hr__unpack_destroy(zstd);
}

static void read_names(const struct hr_schema *schema)
{
    volatile size_t sum = 0;

    for (size_t f = 0; f < schema->count; f++)
        for (size_t i = 0;
             schema->fields[f].classes != NULL && i < schema->fields[f].classes->count;
             i++)
            sum += strlen(schema->fields[f].classes->names[i]);
    (void)sum;
}

static void read_all(const char *data, size_t bytes, const struct hr_shard_index *index,
                     const struct hr_str *text)
{
    struct hr_wire_input in = {hr__str_text(text), text->length, false};
    struct hr_schema *schema = hr__calloc(1, sizeof *schema);
    struct hr_wire_classes classes = {0};
    struct hr_wire_reader reader;
    bool typed;

    if (schema == NULL)
        return;
    typed = hr__wire_schema_read(&in, schema) &&
            hr__wire_classes_read(&in, schema, &classes) == HR_OK &&
            hr__wire_reader_init(&reader, schema, NULL) == HR_OK;
    if (typed)
        read_names(schema);
    for (uint64_t i = 0; i < hr__shard_index_count(index); i++) {
        struct hr_records_contents found;
        struct hr_shard_place place;

        hr__shard_index_place(index, i, &place);
        if (place.offset > bytes || place.bytes > bytes - place.offset)
            abort();
        if (hr__records_check(data + place.offset, place.bytes, &found, NULL) != HR_OK)
            continue;
        if (found.packed_bytes > 0)
            unpack(&found);
        else if (typed)
            read_record(&reader, schema->count, found.data, found.bytes);
    }
    if (typed)
        hr__wire_reader_finish(&reader);
    hr__wire_classes_finish(&classes);
    hr__free(schema);
}

static void read_file(const char *data, size_t bytes)
{
    struct hr_window *window = hr__calloc(1, sizeof *window);
    struct hr_records_scan scan = {0};
    struct hr_shard_index *index;
    struct hr_str text;
    bool damaged;

    hr__str_init(&text);
    scan.schema = &text;
    if (window != NULL && hr__window_open(window, uri, NULL) == HR_OK &&
        hr__records_schema(window, &text, &damaged, NULL) == HR_OK &&
        hr__shard_index_open(uri, ".records", hr__records_scan, &scan, NULL, NULL, &index,
                             NULL) == HR_OK) {
        read_all(data, bytes, index, &text);
        hr__shard_index_close(index);
    }
    hr__window_finish(window);
    hr__free(window);
    hr__str_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *copy = hr__aligned_alloc(64, bytes + 64);

    if (copy == NULL)
        return 0;
    memcpy(copy, data, bytes);
    if (bytes > 0 && data[bytes - 1] % 4 != 0) /* else as it is */
        mend(copy, bytes);
    if (hr__memory_put(uri, copy, bytes, NULL) == HR_OK)
        read_file(copy, bytes);
    hr__free(copy);
    return 0;
}
