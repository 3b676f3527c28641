/*
 * store/records_test.c - files of records: as the page says, whole, damaged, cut, and
 * with more appended.
 */
#include "codec/lz.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/rng.h"
#include "store/records.h"
#include "store/store_memory.h"
#include "tests/support/check.h"

#include <stdlib.h>

static const char uri[] = "mem://test.records";
static struct hr_rng rng;
static struct hr_error error;

static uint32_t below(uint32_t limit)
{
    return (uint32_t)hr__rng_below(&rng, limit);
}

/* ---- a file in memory ---- */

#define RECORDS_MAX 40

struct file {
    struct hr_str bytes;
    size_t records;
    uint64_t at[RECORDS_MAX + 1], index; /* frames; the last one is the index */
};

/* A frame, written as docs/formats/container.md has it. */
static void put_frame(struct hr_str *out, int kind, uint64_t number, uint64_t link,
                      const void *data, size_t bytes)
{
    uint64_t words[8] = {
        0, 1 | (uint64_t)kind << 32, number, (bytes + 63) / 64 * 64, bytes, link};
    char *padded = hr__calloc(1, bytes + 64);

    memcpy(words, "HRFRAME", 8);
    if (bytes > 0)
        memcpy(padded, data, bytes);
    words[6] = hr__hash64(padded, (size_t)words[3], 0);
    words[7] = hr__hash64(words, 56, 0);
    hr__str_add_bytes(out, words, 64);
    hr__str_add_bytes(out, padded, (size_t)words[3]);
    hr__free(padded);
}

/* An index of the records from `first` on, and the end. */
static void put_index(struct file *file, size_t first, uint64_t link)
{
    struct hr_str text;
    uint64_t words[2] = {file->records - first, 6};

    hr__str_init(&text);
    hr__str_add_bytes(&text, words, sizeof words);
    for (size_t i = first; i < file->records; i++) {
        uint32_t entry[4] = {(uint32_t)file->at[i], 0, 0, 0};

        memcpy(&entry[3], file->bytes.text + file->at[i] + 48, 4);
        memcpy(&entry[2], file->bytes.text + file->at[i] + 24, 4);
        entry[2] = entry[2] / 64 + 1;
        hr__str_add_bytes(&text, entry, sizeof entry);
    }
    hr__str_add(&text, "schema");
    file->index = file->bytes.length;
    put_frame(&file->bytes, 3, first, link, text.text, text.length);
    put_frame(&file->bytes, 4, file->records, file->index, NULL, 0);
    hr__str_finish(&text);
}

static void put_records(struct file *file, size_t count)
{
    char data[1024];

    for (size_t i = 0; i < count; i++) {
        size_t bytes = 64 * below(sizeof data / 64 + 1);

        for (size_t k = 0; k < bytes; k++)
            data[k] = (char)hr__rng_u32(&rng);
        file->at[file->records] = file->bytes.length;
        put_frame(&file->bytes, 2, file->records++, 0, data, bytes);
    }
}

static void make(struct file *file, size_t count)
{
    hr__rng_init(&rng, check_seed(), (uint32_t)count, 0);
    *file = (struct file){0};
    hr__str_init(&file->bytes);
    put_frame(&file->bytes, 1, 0, 0, "schema", 6);
    put_records(file, count);
    put_index(file, 0, 0);
}

/* ---- reading it ---- */

struct found {
    struct hr_shard_index *index;
    uint64_t count, damaged;
};

static enum hr_err find(const void *data, size_t bytes, struct found *found)
{
    struct hr_records_scan scan = {0};
    struct hr_str schema;
    enum hr_err code;

    error = (struct hr_error){0};
    *found = (struct found){0};
    hr__str_init(&schema);
    hr__str_add(&schema, "schema");
    scan.schema = &schema;
    CHECK_OK(hr__memory_put(uri, data, bytes, NULL));
    code = hr__shard_index_open(uri, ".records", hr__records_scan, &scan, NULL, NULL,
                                &found->index, &error);
    hr__str_finish(&schema);
    if (code != HR_OK)
        return code;
    found->count = hr__shard_index_count(found->index);
    found->damaged = scan.damaged;
    return HR_OK;
}

/* Reads the record; its contents must be those of `file`, if it is whole. */
static bool is_whole(const struct file *file, const char *data, const struct found *found,
                     uint64_t at)
{
    struct hr_records_contents got;
    struct hr_shard_place place;

    hr__shard_index_place(found->index, at, &place);
    error = (struct hr_error){0};
    if (hr__records_check(data + place.offset, place.bytes, &got, &error) != HR_OK)
        return false;
    CHECK_EQ_INT(got.packed_bytes, 0);
    for (size_t i = 0; i < file->records; i++)
        if (file->at[i] == place.offset) {
            CHECK_BYTES(got.data, file->bytes.text + place.offset + 64, got.bytes);
            return true;
        }
    check_failed(__FILE__, __LINE__, "a record at byte %llu was never written",
                 (unsigned long long)place.offset);
}

static size_t
count_whole(const struct file *file, const char *data, const struct found *found)
{
    size_t whole = 0;

    for (uint64_t i = 0; i < found->count; i++)
        whole += is_whole(file, data, found, i);
    return whole;
}

/* ---- tests ---- */

TEST(a_file_is_read_as_the_page_says)
{
    struct hr_hash128 identity;
    struct found found;
    struct file file;

    make(&file, 20);
    CHECK_OK(find(file.bytes.text, file.bytes.length, &found));
    CHECK_EQ_INT(found.count, 20);
    CHECK_EQ_INT(found.damaged, 0);
    CHECK_EQ_INT(count_whole(&file, file.bytes.text, &found), 20);
    identity = hr__shard_index_identity(found.index);
    hr__shard_index_close(found.index);
    /* without an index it is the same data, as the end alone says how much there is */
    file.bytes.length = (size_t)file.index;
    put_frame(&file.bytes, 4, 20, 0, NULL, 0);
    CHECK_OK(find(file.bytes.text, file.bytes.length, &found));
    CHECK_EQ_INT(found.count, 20);
    CHECK_EQ_INT(found.damaged, 1);
    CHECK(hr__hash_equal(identity, hr__shard_index_identity(found.index)));
    hr__shard_index_close(found.index);
    hr__str_finish(&file.bytes);
}

TEST(the_writer_writes_what_the_page_says)
{
    struct hr_records_writer *writer;
    char path[512], *text;
    struct file file;
    uint64_t bytes;
    size_t length;

    make(&file, 30);
    snprintf(path, sizeof path, "%s/a.records", check_temp_dir());
    CHECK_OK(hr__records_create(path, "schema", 6, NULL, &writer, NULL));
    for (size_t i = 0; i < file.records; i++) {
        const char *frame = file.bytes.text + file.at[i];
        uint64_t size;

        memcpy(&size, frame + 24, 8);
        CHECK_EQ_INT(hr__records_written(writer), file.at[i]);
        CHECK_OK(hr__records_add(writer, frame + 64, (size_t)size, NULL));
    }
    CHECK_OK(hr__records_commit(writer, &bytes, NULL));
    CHECK_OK(hr__file_read(path, (size_t)1 << 30, &text, &length, NULL));
    CHECK_EQ_INT(length, file.bytes.length);
    CHECK_EQ_INT(length, bytes);
    CHECK_BYTES(text, file.bytes.text, length);
    hr__free(text);
    hr__str_finish(&file.bytes);
}

TEST(what_is_appended_is_read_too)
{
    struct found found;
    struct file file;
    uint64_t link;

    make(&file, 7);
    for (int more = 0; more < 3; more++) {
        size_t first = file.records;

        link = file.index;
        put_records(&file, 4);
        put_index(&file, first, link);
        CHECK_OK(find(file.bytes.text, file.bytes.length, &found));
        CHECK_EQ_INT(found.count, file.records);
        CHECK_EQ_INT(found.damaged, 0);
        CHECK_EQ_INT(count_whole(&file, file.bytes.text, &found), file.records);
        hr__shard_index_close(found.index);
    }
    hr__str_finish(&file.bytes);
}

static enum hr_err verify(const void *data, size_t bytes, uint64_t until,
                          const char *fields, struct hr_records_whole *whole)
{
    struct hr_window window = {0};
    struct hr_str schema;
    enum hr_err code;

    error = (struct hr_error){0};
    hr__str_init(&schema);
    hr__str_add(&schema, fields);
    CHECK_OK(hr__memory_put(uri, data, bytes, NULL));
    CHECK_OK(hr__window_open(&window, uri, NULL));
    code = hr__records_verify(&window, &schema, until, whole, &error);
    hr__window_finish(&window);
    hr__str_finish(&schema);
    return code;
}

TEST(the_writer_appends_what_the_page_says)
{
    struct hr_records_whole whole;
    char path[512], *text;
    struct file file;
    size_t length;

    make(&file, 5);
    snprintf(path, sizeof path, "%s/b.records", check_temp_dir());
    CHECK_OK(hr__file_replace(path, file.bytes.text, file.bytes.length, NULL));
    for (int more = 0; more < 4; more++) {
        struct hr_records_writer *writer = NULL;
        size_t first = file.records, before = file.bytes.length;
        uint64_t link = file.index, bytes;

        /* nothing, too, and from the bytes of before while there are more */
        put_records(&file, (size_t)more);
        put_index(&file, first, link);
        for (int twice = 0; twice < 2; twice++) {
            CHECK_OK(hr__file_read(path, (size_t)1 << 30, &text, &length, NULL));
            CHECK_OK(verify(text, length, before, "schema", &whole));
            hr__free(text);
            CHECK_EQ_INT(whole.records, first);
            CHECK_EQ_INT(whole.index, link);
            CHECK_OK(hr__records_extend(path, &whole, "schema", 6, NULL, &writer, NULL));
            for (size_t i = first; i < file.records; i++) {
                const char *frame = file.bytes.text + file.at[i];
                uint64_t size;

                memcpy(&size, frame + 24, 8);
                CHECK_OK(hr__records_add(writer, frame + 64, (size_t)size, NULL));
            }
            CHECK_OK(hr__records_commit(writer, &bytes, NULL));
            CHECK_OK(hr__file_read(path, (size_t)1 << 30, &text, &length, NULL));
            CHECK_EQ_INT(length, file.bytes.length);
            CHECK_BYTES(text, file.bytes.text, length);
            hr__free(text);
        }
    }
    hr__str_finish(&file.bytes);
}

TEST(only_a_file_all_of_which_is_whole_is_appended_to)
{
    struct hr_records_whole whole;
    struct file file;
    char *data;

    make(&file, 6);
    put_records(&file, 3);
    put_index(&file, 6, file.index);
    data = hr__malloc(file.bytes.length);
    CHECK_OK(verify(file.bytes.text, file.bytes.length, 0, "schema", &whole));
    CHECK_EQ_INT(whole.records, 9);
    CHECK_ERR(HR_ERR_TYPE,
              verify(file.bytes.text, file.bytes.length, 0, "shema", &whole));
    CHECK_HAS(error.message, "other fields");
    for (size_t at = 0; at < file.bytes.length; at++) {
        memcpy(data, file.bytes.text, file.bytes.length);
        data[at] ^= (char)(1 << below(8));
        CHECK(verify(data, file.bytes.length, 0, "schema", &whole) != HR_OK);
        CHECK_HAS(error.message, "byte");
    }
    for (size_t bytes = 0; bytes < file.bytes.length; bytes++)
        if (verify(file.bytes.text, bytes, 0, "schema", &whole) == HR_OK)
            CHECK_EQ_INT(whole.records, 6); /* the end before the one that is cut off */
    hr__free(data);
    hr__str_finish(&file.bytes);
}

TEST(a_damaged_byte_anywhere_is_found_and_costs_one_record)
{
    struct found found;
    struct file file;
    char *data;

    make(&file, 12);
    data = hr__malloc(file.bytes.length);
    for (size_t at = 0; at < file.bytes.length; at++) {
        bool in_record = at >= file.at[0] && at < file.index;
        size_t whole;

        memcpy(data, file.bytes.text, file.bytes.length);
        data[at] ^= (char)(1 << below(8));
        CHECK_OK(find(data, file.bytes.length, &found));
        whole = count_whole(&file, data, &found);
        if (whole != file.records - in_record ||
            (found.count == whole && found.damaged == 0))
            check_failed(__FILE__, __LINE__, "byte %zu: %zu whole of %llu, %llu damaged",
                         at, whole, (unsigned long long)found.count,
                         (unsigned long long)found.damaged);
        hr__shard_index_close(found.index);
    }
    hr__free(data);
    hr__str_finish(&file.bytes);
}

TEST(a_cut_file_is_read_up_to_its_last_whole_record_and_says_so)
{
    struct found found;
    struct file file;

    make(&file, 12);
    for (size_t bytes = 128; bytes < file.bytes.length; bytes++) {
        size_t whole = 0;

        while (whole < file.records &&
               (whole + 1 < file.records ? file.at[whole + 1] : file.index) <= bytes)
            whole++;
        CHECK_OK(find(file.bytes.text, bytes, &found));
        CHECK_EQ_INT(count_whole(&file, file.bytes.text, &found), whole);
        CHECK_EQ_INT(found.count, whole + 1);
        CHECK(!is_whole(&file, file.bytes.text, &found, whole));
        CHECK_HAS(error.message, "end");
        hr__shard_index_close(found.index);
    }
    CHECK_ERR(HR_ERR_FORMAT, find(file.bytes.text, 127, &found));
    CHECK_ERR(HR_ERR_FORMAT, find("some text", 9, &found));
    CHECK_ERR(HR_ERR_FORMAT, find("", 0, &found));
    CHECK_HAS(error.message, "no file of records");
    hr__str_finish(&file.bytes);
}

TEST(other_versions_and_ways_of_compression_are_refused_by_name)
{
    struct found found;
    struct file file;
    uint64_t words[8];

    make(&file, 1);
    memcpy(words, file.bytes.text + file.at[0], 64);
    words[1] |= (uint64_t)3 << 40;
    words[7] = hr__hash64(words, 56, 0);
    memcpy(file.bytes.text + file.at[0], words, 64);
    CHECK_OK(find(file.bytes.text, file.bytes.length, &found));
    CHECK(!is_whole(&file, file.bytes.text, &found, 0));
    CHECK_HAS(error.message, "compressed");
    hr__shard_index_close(found.index);
    file.bytes.length = 0;
    put_frame(&file.bytes, 1, 0, 0, "schema", 6);
    memcpy(words, file.bytes.text, 64);
    words[1] += 1;
    words[7] = hr__hash64(words, 56, 0);
    memcpy(file.bytes.text, words, 64);
    CHECK_ERR(HR_ERR_UNSUPPORTED, find(file.bytes.text, file.bytes.length, &found));
    CHECK_HAS(error.message, "version 2");
    hr__str_finish(&file.bytes);
}

/* A file of `count` records, of which every second one is random bytes. */
static char *write_compressed(struct hr_compressor *compressor, char *const *contents,
                              const size_t *sizes, size_t count, size_t *ret_bytes)
{
    struct hr_records_writer *writer;
    char path[512], *text;
    uint64_t bytes;

    snprintf(path, sizeof path, "%s/compressed.records", check_temp_dir());
    CHECK_OK(hr__records_create(path, "schema", 6, compressor, &writer, NULL));
    for (size_t i = 0; i < count; i++)
        CHECK_OK(hr__records_add(writer, contents[i], sizes[i], NULL));
    CHECK_OK(hr__records_commit(writer, &bytes, NULL));
    CHECK_OK(hr__file_read(path, (size_t)1 << 30, &text, ret_bytes, NULL));
    return text;
}

/* A caller of hr__lz4_unpack. */
static enum hr_err
unpack(struct hr_unpack *zstd, const struct hr_records_contents *contents, char *to)
{
    if (contents->compression == HR_COMPRESSION_ZSTD)
        return hr__records_unpack(zstd, contents, to, NULL);
    return hr__lz4_unpack(contents->data, contents->packed_bytes, to, contents->bytes)
               ? HR_OK
               : HR_ERR_FORMAT;
}

static void check_compressed(enum hr_compression kind, int level)
{
    struct hr_compressor *compressor = NULL;
    struct hr_records_contents got;
    struct hr_shard_place place;
    struct hr_unpack *zstd = NULL;
    struct found found;
    char *contents[20], *text, room[66 * 64];
    size_t sizes[20], bytes, packed = 0;

    if (hr__compressor_create(kind, level, &compressor, NULL) != HR_OK)
        return; /* this machine has no such library */
    for (size_t i = 0; i < 20; i++) {
        sizes[i] = 64 * below(65);
        contents[i] = hr__calloc(1, sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++)
            contents[i][k] = (char)(i % 2 == 0 ? hr__rng_u32(&rng) : below(3));
    }
    text = write_compressed(compressor, contents, sizes, 20, &bytes);
    CHECK_OK(find(text, bytes, &found));
    CHECK_EQ_INT(found.count, 20);
    if (kind == HR_COMPRESSION_ZSTD)
        CHECK_OK(hr__unpack_create(HR_PACKING_ZSTD, &zstd, NULL));
    for (size_t i = 0; i < 20; i++) {
        hr__shard_index_place(found.index, i, &place);
        CHECK_OK(hr__records_check(text + place.offset, place.bytes, &got, NULL));
        CHECK_EQ_INT(got.bytes, sizes[i]);
        CHECK(got.packed_bytes == 0 || got.compression == kind);
        packed += got.packed_bytes > 0;
        CHECK(got.packed_bytes == 0 || got.packed_bytes < sizes[i]);
        if (got.packed_bytes > 0)
            CHECK_OK(unpack(zstd, &got, room));
        CHECK_BYTES(got.packed_bytes > 0 ? room : got.data, contents[i], sizes[i]);
        /* more and less than was written */
        for (int more = -1; more <= 1 && got.packed_bytes > 0; more += 2) {
            struct hr_records_contents lie = got;

            lie.bytes += (size_t)(64 * more);
            CHECK_ERR(HR_ERR_FORMAT, unpack(zstd, &lie, room));
        }
    }
    CHECK(packed > 0 && packed <= 10);
    hr__unpack_destroy(zstd);
    hr__compressor_destroy(compressor);
    hr__shard_index_close(found.index);
    for (size_t i = 0; i < 20; i++)
        hr__free(contents[i]);
    hr__free(text);
}

TEST(compressed_records_unpack_to_what_was_written)
{
    hr__rng_init(&rng, check_seed(), 0, 1);
    for (int level = 1; level <= HR_ZSTD_LEVEL_MAX; level += 6)
        check_compressed(HR_COMPRESSION_ZSTD, level);
    for (int level = 1; level <= HR_LZ4_LEVEL_MAX; level++)
        check_compressed(HR_COMPRESSION_LZ4, level);
}

/* A block of LZ4 that says it is longer than its frame. */
TEST(a_length_of_lz4_is_compared_with_its_frame)
{
    char frame[192] = {0};
    struct hr_records_contents got;
    struct hr_records_head head = {.magic = HR_RECORDS_MAGIC,
                                   .version = 1,
                                   .kind = HR_RECORDS_RECORD,
                                   .compression = HR_COMPRESSION_LZ4,
                                   .bytes = 128,
                                   .raw_bytes = 1000};

    for (uint64_t length = 0; length <= 122; length++) {
        memcpy(frame + 64, &length, sizeof length);
        head.checksum = hr__hash64(frame + 64, 128, 0);
        head.head_checksum = hr__hash64(&head, 56, 0);
        memcpy(frame, &head, sizeof head);
        if (length == 0 || length > 120) {
            CHECK_ERR(HR_ERR_FORMAT, hr__records_check(frame, 192, &got, &error));
            CHECK_HAS(error.message, "a block of LZ4");
        } else {
            CHECK_OK(hr__records_check(frame, 192, &got, &error));
            CHECK_EQ_INT(got.packed_bytes, length);
        }
    }
}
