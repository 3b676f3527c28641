/*
 * ops/parquet_pages.c - the pages of a column of a row group: where they are, and their
 * rows.
 */
#include "ops/parquet_units.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "codec/lz.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/error.h"
#include "store/unpack.h"

/* ---- pages ---- */

/* Begins a message: which column of which row group. */
static void add_place(const struct hr_parquet_make *make, struct hr_error *error)
{
    hr__error_prefix(error, "%s: row group %u, column \"%s\"",
                     make->files->files[make->group->file].uri,
                     (unsigned)make->group->number,
                     make->files->columns.items[make->column].name);
}

static enum hr_err check_crc(const struct hr_parquet_header *header, const uint8_t *data,
                             struct hr_error *reterr)
{
    if (!header->has_crc || (uint32_t)crc32_z(0, data, header->stored) == header->crc)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_FORMAT, "a damaged page: its checksum is wrong");
}

static enum hr_err unpack(int codec, const uint8_t *data, size_t bytes, uint8_t *to,
                          size_t room, struct hr_error *reterr)
{
    bool good = true;

    switch (codec) {
    case HR_PARQUET_SNAPPY:
        good = hr__snappy_unpack(data, bytes, to, room);
        break;
    case HR_PARQUET_LZ4:
        good = hr__lz4_unpack(data, bytes, to, room);
        break;
    case HR_PARQUET_GZIP:
        return hr__unpack_all(HR_PACKING_GZIP, data, bytes, to, room, reterr);
    case HR_PARQUET_ZSTD:
        return hr__unpack_all(HR_PACKING_ZSTD, data, bytes, to, room, reterr);
    default:
        good = false;
    }
    return good ? HR_OK
                : hr__fail(reterr, HR_ERR_FORMAT, "a damaged page: its %s block",
                           hr__parquet_codec_name(codec));
}

/* Where the values of a page are; *ret_owned: their memory, or NULL. */
static enum hr_err
open_page(const struct hr_parquet_make *make, const struct hr_parquet_header *header,
          const uint8_t *data, struct hr_parquet_body *ret_body,
          struct hr_buffer **ret_owned, struct hr_error *reterr)
{
    size_t levels = (size_t)header->def_bytes + header->rep_bytes;
    size_t bytes = header->stored - levels, room = header->unpacked - levels;
    int codec = make->part->chunk.codec;

    *ret_owned = NULL;
    HR_TRY(check_crc(header, data, reterr));
    *ret_body = (struct hr_parquet_body){data, data + levels, room};
    if (codec == HR_PARQUET_PLAIN || !header->is_packed)
        return bytes == room ? HR_OK
                             : hr__fail(reterr, HR_ERR_FORMAT,
                                        "a damaged page: its sizes differ although it "
                                        "is not compressed");
    if (room > make->files->page_max)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "a page of %zu bytes, which is more than page_max", room);
    if (room == 0)
        return HR_OK;
    if (hr_pool_get(make->files->pool, room + HR_LZ_SLACK, ret_owned) != HR_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for %zu bytes", room);
    ret_body->values = hr_buffer_data(*ret_owned);
    return unpack(codec, data + levels, bytes, hr_buffer_data(*ret_owned), room, reterr);
}

static void release_made(void *user)
{
    struct hr_parquet_made *made = user;

    hr__parquet_page_finish(&made->page);
    hr_buffer_unref(made->body);
    hr_buffer_unref(made->dictionary);
    hr_buffer_unref(made->raw);
    hr__free(made);
}

/* Decodes the page at `data`, and appends it. */
static enum hr_err add_page(struct hr_parquet_make *make, struct hr_parquet_made *made,
                            const struct hr_parquet_header *header, const uint8_t *data,
                            struct hr_error *reterr)
{
    const struct hr_parquet_file *file = &make->files->files[make->group->file];
    const struct hr_parquet_page *dictionary = NULL;
    struct hr_parquet_body body;
    enum hr_err code = open_page(make, header, data, &body, &made->body, reterr);

    if (made->dictionary != NULL)
        dictionary =
            &((const struct hr_parquet_made *)hr_buffer_data(made->dictionary))->page;
    if (code == HR_OK)
        code = hr__parquet_decode(&make->files->columns.items[make->column],
                                  &file->storages[make->column], header, &body,
                                  dictionary, make->files->page_max, &made->page, reterr);
    if (made->body != NULL && made->page.shows_body)
        made->page.bytes += body.bytes;
    if (made->body != NULL && !made->page.shows_body) {
        hr_buffer_unref(made->body);
        made->body = NULL;
    }
    return code;
}

static enum hr_err
wrap(struct hr_parquet_made *made, enum hr_err code, struct hr_error *error,
     struct hr_buffer **ret_buffer, uint64_t *ret_bytes)
{
    *ret_bytes = made->page.bytes + sizeof *made;
    if (made->body != NULL || !made->page.shows_body) {
        hr_buffer_unref(made->raw);
        made->raw = NULL;
    }
    if (code == HR_OK) {
        *ret_buffer = hr_buffer_wrap(made, sizeof *made, release_made, made);
        if (*ret_buffer != NULL)
            return HR_OK;
        code = hr__fail(error, HR_ERR_MEMORY, "out of memory");
    }
    release_made(made);
    return code;
}

/* hr_parquet_make_fn: the dictionary of a part. */
static enum hr_err make_dictionary(struct hr_parquet_make *make,
                                   struct hr_buffer **ret_buffer, uint64_t *ret_bytes)
{
    const struct hr_parquet_part *part = make->part;
    struct hr_parquet_header header;
    struct hr_parquet_made *made = hr__calloc(1, sizeof *made);
    struct hr_error why = {0};
    const uint8_t *data;
    enum hr_err code;

    if (made == NULL)
        return hr__fail(make->error, HR_ERR_MEMORY, "out of memory");
    code = hr__parquet_raw_get(make, &data, &made->raw);
    if (code != HR_OK) {
        release_made(made);
        return code;
    }
    data += part->dictionary_at;
    code = hr__parquet_header(data, (size_t)(part->dictionary_end - part->dictionary_at),
                              &header, &why);
    if (code == HR_OK)
        code = add_page(make, made, &header, data + header.head, &why);
    if (code != HR_OK) {
        (void)hr__fail(make->error, code, "the dictionary: %s", why.message);
        add_place(make, make->error);
    }
    return wrap(made, code, make->error, ret_buffer, ret_bytes);
}

/* Rows of a span in the group: from, and to before. */
uint64_t hr__parquet_span_end(const struct hr_parquet_part *part,
                              const struct hr_parquet_span *span)
{
    return span + 1 < part->spans + part->span_count ? span[1].first : part->readable;
}

static enum hr_err add_pages(struct hr_parquet_make *make, struct hr_parquet_made *made,
                             const uint8_t *data, struct hr_error *reterr)
{
    const struct hr_parquet_span *span = make->span;

    for (uint64_t at = span->at; at < span->end;) {
        struct hr_parquet_header header;

        HR_TRY(hr__parquet_header(data + at, (size_t)(span->end - at), &header, reterr));
        at += header.head;
        if (header.kind == HR_PARQUET_DATA || header.kind == HR_PARQUET_DATA_2)
            HR_TRY(add_page(make, made, &header, data + at, reterr));
        at += header.stored;
    }
    return made->page.rows == hr__parquet_span_end(make->part, span) - span->first
               ? HR_OK
               : hr__fail(reterr, HR_ERR_FORMAT,
                          "a damaged page: it has %llu rows where %llu are expected",
                          (unsigned long long)made->page.rows,
                          (unsigned long long)(hr__parquet_span_end(make->part, span) -
                                               span->first));
}

/* Damage is remembered, so that not each of its rows decodes the page again. */
static void remember(struct hr_parquet_make *make)
{
    pthread_mutex_lock(&make->files->mutex);
    if (make->span->damage == NULL)
        make->span->damage = hr__strdup(make->error->message);
    pthread_mutex_unlock(&make->files->mutex);
}

/* Begins the message with the rows. */
static enum hr_err name_rows(struct hr_parquet_make *make, enum hr_err code)
{
    const struct hr_parquet_span *span = make->span;

    hr__error_prefix(make->error, "rows %llu to %llu (byte %llu)",
                     (unsigned long long)span->first,
                     (unsigned long long)hr__parquet_span_end(make->part, span) - 1,
                     (unsigned long long)(make->part->chunk.at + span->at));
    add_place(make, make->error);
    return code;
}

/* hr_parquet_make_fn: the rows of a span. */
enum hr_err hr__parquet_span_make(struct hr_parquet_make *make,
                                  struct hr_buffer **ret_buffer, uint64_t *ret_bytes)
{
    struct hr_parquet_part *part = make->part;
    struct hr_parquet_made *made = hr__calloc(1, sizeof *made);
    const uint8_t *data;
    enum hr_err code;

    if (made == NULL)
        return hr__fail(make->error, HR_ERR_MEMORY, "out of memory");
    code = hr__parquet_raw_get(make, &data, &made->raw);
    if (code == HR_OK && part->dictionary_end > part->dictionary_at)
        code = hr__parquet_unit_get(make, &part->dictionary, make_dictionary,
                                    &made->dictionary);
    if (code == HR_OK) {
        code = add_pages(make, made, data, make->error);
        if (code != HR_OK)
            code = name_rows(make, code);
    }
    if (code == HR_ERR_FORMAT)
        remember(make);
    __atomic_add_fetch(&make->files->decoded, 1, __ATOMIC_RELAXED);
    return wrap(made, code, make->error, ret_buffer, ret_bytes);
}

/* ---- the pages of a part ---- */

struct walk {
    const struct hr_parquet_make *make;
    struct hr_parquet_part part; /* what is found */
    size_t span_room;
    uint64_t values, rows;
    uint32_t pages[HR_PARQUET_ENCODINGS];
    uint16_t encodings;
    bool has_crc;
};

static bool is_dictionary(int encoding)
{
    return encoding == HR_PARQUET_ENC_PLAIN_DICTIONARY ||
           encoding == HR_PARQUET_ENC_RLE_DICTIONARY;
}

static enum hr_err add_span(struct walk *walk, uint64_t at, uint64_t end, bool joins)
{
    struct hr_parquet_part *part = &walk->part;

    if (joins && part->span_count > 0) {
        part->spans[0].end = end;
        return HR_OK;
    }
    if (!hr__array_room(&part->spans, part->span_count, &walk->span_room, 1,
                        sizeof *part->spans))
        return hr__fail(walk->make->error, HR_ERR_MEMORY, "out of memory");
    part->spans[part->span_count++] =
        (struct hr_parquet_span){.first = walk->rows, .at = at, .end = end};
    return HR_OK;
}

/* A page at byte `at` of the part. */
static enum hr_err
add_header(struct walk *walk, uint64_t at, const struct hr_parquet_header *header)
{
    const struct hr_parquet_make *make = walk->make;
    const struct hr_parquet_storage *storage =
        &make->files->files[make->group->file].storages[make->column];
    uint64_t end = at + header->head + header->stored;
    bool old = header->kind == HR_PARQUET_DATA;

    walk->has_crc = walk->has_crc || header->has_crc;
    if (header->kind == HR_PARQUET_DICTIONARY && walk->part.dictionary_end == 0) {
        walk->part.dictionary_at = at;
        walk->part.dictionary_end = end;
    }
    if (header->kind != HR_PARQUET_DATA_2 && !old)
        return HR_OK;
    if (header->encoding < HR_PARQUET_ENCODINGS) {
        walk->pages[header->encoding]++;
        walk->encodings |= (uint16_t)(1u << header->encoding);
    }
    HR_TRY(add_span(walk, at, end, storage->is_list && old));
    walk->values += header->values;
    if (!storage->is_list)
        walk->rows += header->values;
    else if (!old)
        walk->rows += header->rows;
    return HR_OK;
}

static uint32_t coded_pages(const uint32_t pages[HR_PARQUET_ENCODINGS])
{
    return pages[HR_PARQUET_ENC_PLAIN_DICTIONARY] + pages[HR_PARQUET_ENC_RLE_DICTIONARY];
}

/* Headers have no checksum. Where pages have, what the footer says of their encodings is
 * compared, so that a damaged header is found, too. */
static bool has_encodings(const struct walk *walk)
{
    const struct hr_parquet_chunk *chunk = &walk->make->part->chunk;

    for (int i = 0; i < HR_PARQUET_ENCODINGS && walk->has_crc; i++) {
        if (is_dictionary(i))
            continue;
        if ((walk->encodings >> i & 1) != 0 && (chunk->encodings >> i & 1) == 0)
            return false;
        if (chunk->has_pages && walk->pages[i] != chunk->pages[i])
            return false;
    }
    return !walk->has_crc || !chunk->has_pages ||
           coded_pages(walk->pages) == coded_pages(chunk->pages);
}

static void set_damage(struct walk *walk, const char *why)
{
    struct hr_error error = {0};

    (void)hr__fail(&error, HR_ERR_FORMAT, "%s", why);
    add_place(walk->make, &error);
    walk->part.damage = hr__strdup(error.message);
}

static void check_walk(struct walk *walk)
{
    const struct hr_parquet_make *make = walk->make;
    bool joined = walk->part.span_count > 0 && walk->rows == 0; /* a list of old pages */
    char text[160];

    if (joined)
        walk->rows = make->group->rows;
    if (walk->values == (uint64_t)make->part->chunk.values &&
        walk->rows == make->group->rows && has_encodings(walk))
        return;
    snprintf(text, sizeof text,
             "its pages have %llu values and %llu rows, the footer says %lld and %llu: a "
             "header is damaged",
             (unsigned long long)walk->values, (unsigned long long)walk->rows,
             (long long)make->part->chunk.values, (unsigned long long)make->group->rows);
    walk->rows = 0;
    set_damage(walk, text);
}

/* Finds the pages; what cannot be read is damage of the part, and no error. */
static enum hr_err walk_pages(struct walk *walk, const uint8_t *data)
{
    const struct hr_parquet_chunk *chunk = &walk->make->part->chunk;
    uint64_t at = 0;

    while (at < chunk->bytes && walk->values < (uint64_t)chunk->values) {
        struct hr_parquet_header header;
        struct hr_error why = {0};

        if (hr__parquet_header(data + at, (size_t)(chunk->bytes - at), &header, &why) !=
            HR_OK) {
            char text[200];

            if (walk->rows == 0) /* of a list: none is whole */
                walk->part.span_count = 0;
            snprintf(text, sizeof text, "rows from %llu on (byte %llu): %.100s",
                     (unsigned long long)walk->rows, (unsigned long long)(chunk->at + at),
                     why.message);
            set_damage(walk, text);
            return HR_OK;
        }
        HR_TRY(add_header(walk, at, &header));
        at += header.head + (uint64_t)header.stored;
    }
    check_walk(walk);
    return HR_OK;
}

/* Gives the part what the walk found, unless another thread has. */
static void publish(struct hr_parquet_make *make, struct walk *walk)
{
    struct hr_parquet_part *part = make->part;

    pthread_mutex_lock(&make->files->mutex);
    if (!atomic_load_explicit(&part->is_ready, memory_order_relaxed)) {
        part->spans = walk->part.spans;
        part->span_count = walk->part.span_count;
        part->damage = walk->part.damage;
        part->readable = walk->rows;
        part->dictionary_at = walk->part.dictionary_at;
        part->dictionary_end = walk->part.dictionary_end;
        walk->part.spans = NULL;
        walk->part.damage = NULL;
        atomic_store_explicit(&part->is_ready, true, memory_order_release);
    }
    pthread_mutex_unlock(&make->files->mutex);
}

enum hr_err hr__parquet_part_prepare(struct hr_parquet_make *make)
{
    struct walk walk = {.make = make};
    struct hr_buffer *owner = NULL;
    const uint8_t *data;
    enum hr_err code;

    if (atomic_load_explicit(&make->part->is_ready, memory_order_acquire))
        return HR_OK;
    HR_TRY(hr__parquet_raw_get(make, &data, &owner));
    code = walk_pages(&walk, data);
    if (code == HR_OK)
        publish(make, &walk);
    hr__free(walk.part.spans);
    hr__free(walk.part.damage);
    hr_buffer_unref(owner);
    return code;
}
