/*
 * ops/parquet_files.c - the rows of Parquet files, by column.
 */
#include "ops/parquet_files.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "codec/lz.h"
#include "core/alloc.h"
#include "core/bisect.h"
#include "core/buffer.h"
#include "core/error.h"
#include "ops/parquet_where.h"
#include "store/reader.h"
#include "store/unpack.h"
#include "store/window.h"

#define MAPS_MAX 4096      /* files that are mapped */
#define KEEP_UNITS 8       /* of each column, whatever cache_bytes is */
#define KEEP_UNITS_LEAST 2 /* in a run with a memory budget: a page, its dictionary */
#define UNIT_BYTES ((uint64_t)1 << 20) /* of one, until some were made */
#define TAIL_BYTES 65536               /* that are read for the footer at first */

/* ---- life ---- */

static void close_part(struct hr_parquet_part *part)
{
    for (size_t i = 0; i < part->span_count; i++) {
        hr_buffer_unref(part->spans[i].unit.buffer);
        hr__free(part->spans[i].damage);
    }
    hr_buffer_unref(part->dictionary.buffer);
    hr_buffer_unref(part->raw.buffer);
    hr__free(part->spans);
    hr__free(part->damage);
    hr__free(part->bounds);
}

static void close_group(struct hr_parquet_files *files, struct hr_parquet_group *group)
{
    for (size_t k = 0; k < files->columns.count; k++)
        close_part(&group->parts[k]);
    hr__free(group->parts);
}

void hr__parquet_files_close(struct hr_parquet_files *files)
{
    for (size_t i = 0; i < files->group_count; i++)
        close_group(files, &files->groups[i]);
    for (size_t i = 0; i < files->file_count; i++)
        hr__store_unmap(&files->files[i].map);
    hr__shards_finish(&files->shards);
    hr__free(files->files);
    hr__free(files->groups);
    if (files->pool != NULL)
        hr_pool_unref(files->pool);
    pthread_mutex_destroy(&files->mutex);
    pthread_cond_destroy(&files->changed);
    hr__free(files);
}

static void drop_bounds(struct hr_parquet_files *files, struct hr_parquet_group *group)
{
    for (size_t k = 0; k < files->columns.count; k++) {
        hr__free(group->parts[k].bounds);
        group->parts[k].bounds = NULL;
    }
}

void hr__parquet_files_skip(struct hr_parquet_files *files, hr_parquet_skips *skips,
                            void *user)
{
    size_t kept = 0;

    files->records = 0;
    for (size_t i = 0; i < files->group_count; i++) {
        struct hr_parquet_group *group = &files->groups[i];

        if (skips(group, user)) {
            close_group(files, group);
            continue;
        }
        drop_bounds(files, group);
        group->first = files->records;
        files->records += group->rows;
        files->groups[kept++] = *group;
    }
    files->skipped = files->group_count - kept;
    files->group_count = kept;
}

/* ---- the cache ---- */

/* files->mutex is held. */
static void drop_oldest(struct hr_parquet_files *files)
{
    struct hr_parquet_unit *unit = (void *)files->cached_units.oldest;

    hr__lru_remove(&files->cached_units, &unit->link);
    files->cached_bytes -= unit->bytes;
    files->cached--;
    hr_buffer_unref(unit->buffer);
    unit->buffer = NULL;
}

/* A unit that can be made; each kind of them has a function. */
struct make {
    struct hr_parquet_files *files;
    const struct hr_parquet_group *group;
    struct hr_parquet_part *part;
    size_t column;
    struct hr_reader *reader; /* or NULL */
    struct hr_parquet_span *span;
    struct hr_error *error;
};
typedef enum hr_err
make_fn(struct make *make, struct hr_buffer **ret_buffer, uint64_t *ret_bytes);

/* files->mutex is held. */
static void trim(struct hr_parquet_files *files)
{
    while (files->cached_bytes > files->cache_bytes &&
           files->cached > files->units_least * files->columns.count)
        drop_oldest(files);
}

void hr__parquet_files_limit(struct hr_parquet_files *files, uint64_t cache_bytes,
                             bool strict)
{
    pthread_mutex_lock(&files->mutex);
    files->cache_bytes = cache_bytes;
    files->units_least = strict ? KEEP_UNITS_LEAST : KEEP_UNITS;
    trim(files);
    pthread_mutex_unlock(&files->mutex);
    hr__pool_keep(files->pool, strict ? 1 : 0);
}

/* A thread has a page of each column, and makes one, which takes its bytes as they are
 * stored, as they are unpacked, and as they are decoded. */
void hr__parquet_files_kept(struct hr_parquet_files *files, struct hr_op_kept *ret_kept)
{
    uint64_t unit, columns = files->columns.count;

    pthread_mutex_lock(&files->mutex);
    unit = files->unit_max > 0 ? files->unit_max : UNIT_BYTES;
    pthread_mutex_unlock(&files->mutex);
    ret_kept->fixed = files->group_count *
                      (sizeof *files->groups + columns * sizeof(struct hr_parquet_part));
    ret_kept->least = KEEP_UNITS_LEAST * columns * unit;
    ret_kept->thread = (columns + 2) * unit;
}

/* Makes a unit that this thread has set busy. */
static enum hr_err run_make(struct make *make, struct hr_parquet_unit *unit, make_fn *run,
                            struct hr_buffer **ret_buffer)
{
    struct hr_parquet_files *files = make->files;
    struct hr_buffer *buffer = NULL;
    uint64_t bytes = 0;
    enum hr_err code = run(make, &buffer, &bytes);

    pthread_mutex_lock(&files->mutex);
    unit->busy = false;
    if (code == HR_OK) {
        unit->buffer = hr_buffer_ref(buffer);
        unit->bytes = bytes;
        hr__lru_add(&files->cached_units, &unit->link);
        files->cached_bytes += bytes;
        files->cached++;
        if (bytes > files->unit_max)
            files->unit_max = bytes;
        trim(files);
    }
    pthread_cond_broadcast(&files->changed);
    pthread_mutex_unlock(&files->mutex);
    *ret_buffer = buffer;
    return code;
}

/* A reference to a unit that is in the cache; NULL. files->mutex is held. */
static struct hr_buffer *
find_unit(struct hr_parquet_files *files, struct hr_parquet_unit *unit)
{
    if (unit->buffer == NULL)
        return NULL;
    hr__lru_use(&files->cached_units, &unit->link);
    return hr_buffer_ref(unit->buffer);
}

/* A reference to the unit, which one thread makes while others wait. */
static enum hr_err get_unit(struct make *make, struct hr_parquet_unit *unit, make_fn *run,
                            struct hr_buffer **ret_buffer)
{
    struct hr_parquet_files *files = make->files;

    pthread_mutex_lock(&files->mutex);
    while (unit->buffer == NULL && unit->busy)
        pthread_cond_wait(&files->changed, &files->mutex);
    *ret_buffer = find_unit(files, unit);
    if (*ret_buffer == NULL)
        unit->busy = true;
    pthread_mutex_unlock(&files->mutex);
    return *ret_buffer != NULL ? HR_OK : run_make(make, unit, run, ret_buffer);
}

/* ---- columns of row groups in other stores ---- */

static void set_range(const struct make *make, struct hr_range *ret_range)
{
    const struct hr_parquet_file *file = &make->files->files[make->group->file];

    ret_range->offset = make->part->chunk.at;
    ret_range->bytes = make->part->chunk.bytes;
    ret_range->identity = file->identity;
    memcpy(ret_range->uri, file->uri, strlen(file->uri) + 1);
}

static enum hr_err read_range(struct make *make, const struct hr_range *range, void *to)
{
    struct hr_object object;
    struct hr_buffer *buffer;
    size_t bytes;
    enum hr_err code;
    bool waited;

    if (make->reader != NULL) {
        code = hr__reader_take(make->reader, range, &buffer, make->error);
        if (code == HR_OK) {
            memcpy(to, hr_buffer_data(buffer), (size_t)range->bytes);
            hr_buffer_unref(buffer);
        }
        if (code != HR_ERR_LIMIT)
            return code;
    }
    HR_TRY(hr__range_open(range, &object, &bytes, make->error));
    code = hr__store_read(&object, range->offset, to, bytes, NULL, &waited, make->error);
    hr__store_close(&object);
    return code;
}

/* make_fn: the stored bytes. */
static enum hr_err
fetch(struct make *make, struct hr_buffer **ret_buffer, uint64_t *ret_bytes)
{
    struct hr_range *range = hr__malloc(sizeof *range);
    enum hr_err code;

    if (range == NULL)
        return hr__fail(make->error, HR_ERR_MEMORY, "out of memory");
    set_range(make, range);
    *ret_bytes = range->bytes;
    *ret_buffer = NULL;
    if (range->bytes > make->files->page_max)
        code = hr__fail(make->error, HR_ERR_LIMIT,
                        "%s: row group %u: column \"%s\" is larger than page_max (%llu "
                        "bytes)",
                        range->uri, (unsigned)make->group->number,
                        make->files->columns.items[make->column].name,
                        (unsigned long long)make->files->page_max);
    else if ((*ret_buffer = hr_buffer_create((size_t)range->bytes)) == NULL)
        code = hr__fail(make->error, HR_ERR_MEMORY, "out of memory for %llu bytes",
                        (unsigned long long)range->bytes);
    else
        code = read_range(make, range, hr_buffer_data(*ret_buffer));
    if (code != HR_OK) {
        hr_buffer_unref(*ret_buffer);
        *ret_buffer = NULL;
    }
    hr__free(range);
    return code;
}

/* The stored bytes of the part, in the map or in *ret_owner. */
static enum hr_err
get_raw(struct make *make, const uint8_t **ret_data, struct hr_buffer **ret_owner)
{
    const struct hr_parquet_file *file = &make->files->files[make->group->file];

    *ret_owner = NULL;
    if (file->is_mapped) {
        *ret_data = (const uint8_t *)file->map.data + make->part->chunk.at;
        return HR_OK;
    }
    HR_TRY(get_unit(make, &make->part->raw, fetch, ret_owner));
    *ret_data = hr_buffer_data(*ret_owner);
    return HR_OK;
}

/* ---- pages ---- */

/* Begins a message: which column of which row group. */
static void add_place(const struct make *make, struct hr_error *error)
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
open_page(const struct make *make, const struct hr_parquet_header *header,
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

/* What a unit's buffer holds. */
struct made {
    struct hr_parquet_page page;
    struct hr_buffer *body, *dictionary, *raw; /* that the page shows; or NULL */
};

static void release_made(void *user)
{
    struct made *made = user;

    hr__parquet_page_finish(&made->page);
    hr_buffer_unref(made->body);
    hr_buffer_unref(made->dictionary);
    hr_buffer_unref(made->raw);
    hr__free(made);
}

/* Decodes the page at `data`, and appends it. */
static enum hr_err
add_page(struct make *make, struct made *made, const struct hr_parquet_header *header,
         const uint8_t *data, struct hr_error *reterr)
{
    const struct hr_parquet_file *file = &make->files->files[make->group->file];
    const struct hr_parquet_page *dictionary = NULL;
    struct hr_parquet_body body;
    enum hr_err code = open_page(make, header, data, &body, &made->body, reterr);

    if (made->dictionary != NULL)
        dictionary = &((const struct made *)hr_buffer_data(made->dictionary))->page;
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

static enum hr_err wrap(struct made *made, enum hr_err code, struct hr_error *error,
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

/* make_fn: the dictionary of a part. */
static enum hr_err
make_dictionary(struct make *make, struct hr_buffer **ret_buffer, uint64_t *ret_bytes)
{
    const struct hr_parquet_part *part = make->part;
    struct hr_parquet_header header;
    struct made *made = hr__calloc(1, sizeof *made);
    struct hr_error why = {0};
    const uint8_t *data;
    enum hr_err code;

    if (made == NULL)
        return hr__fail(make->error, HR_ERR_MEMORY, "out of memory");
    code = get_raw(make, &data, &made->raw);
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
static uint64_t
span_end(const struct hr_parquet_part *part, const struct hr_parquet_span *span)
{
    return span + 1 < part->spans + part->span_count ? span[1].first : part->readable;
}

static enum hr_err add_pages(struct make *make, struct made *made, const uint8_t *data,
                             struct hr_error *reterr)
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
    return made->page.rows == span_end(make->part, span) - span->first
               ? HR_OK
               : hr__fail(reterr, HR_ERR_FORMAT,
                          "a damaged page: it has %llu rows where %llu are expected",
                          (unsigned long long)made->page.rows,
                          (unsigned long long)(span_end(make->part, span) - span->first));
}

/* Damage is remembered, so that not each of its rows decodes the page again. */
static void remember(struct make *make)
{
    pthread_mutex_lock(&make->files->mutex);
    if (make->span->damage == NULL)
        make->span->damage = hr__strdup(make->error->message);
    pthread_mutex_unlock(&make->files->mutex);
}

/* Begins the message with the rows. */
static enum hr_err name_rows(struct make *make, enum hr_err code)
{
    const struct hr_parquet_span *span = make->span;

    hr__error_prefix(make->error, "rows %llu to %llu (byte %llu)",
                     (unsigned long long)span->first,
                     (unsigned long long)span_end(make->part, span) - 1,
                     (unsigned long long)(make->part->chunk.at + span->at));
    add_place(make, make->error);
    return code;
}

/* make_fn: the rows of a span. */
static enum hr_err
make_span(struct make *make, struct hr_buffer **ret_buffer, uint64_t *ret_bytes)
{
    struct hr_parquet_part *part = make->part;
    struct made *made = hr__calloc(1, sizeof *made);
    const uint8_t *data;
    enum hr_err code;

    if (made == NULL)
        return hr__fail(make->error, HR_ERR_MEMORY, "out of memory");
    code = get_raw(make, &data, &made->raw);
    if (code == HR_OK && part->dictionary_end > part->dictionary_at)
        code = get_unit(make, &part->dictionary, make_dictionary, &made->dictionary);
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
    const struct make *make;
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
    const struct make *make = walk->make;
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
    const struct make *make = walk->make;
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
static void publish(struct make *make, struct walk *walk)
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

static enum hr_err prepare_part(struct make *make)
{
    struct walk walk = {.make = make};
    struct hr_buffer *owner = NULL;
    const uint8_t *data;
    enum hr_err code;

    if (atomic_load_explicit(&make->part->is_ready, memory_order_acquire))
        return HR_OK;
    HR_TRY(get_raw(make, &data, &owner));
    code = walk_pages(&walk, data);
    if (code == HR_OK)
        publish(make, &walk);
    hr__free(walk.part.spans);
    hr__free(walk.part.damage);
    hr_buffer_unref(owner);
    return code;
}

/* ---- rows ---- */

/* Where a thread had its last cell of a column from: no lock is needed while rows follow
 * each other. */
struct pin {
    uint64_t first, count; /* records */
    struct hr_buffer *buffer;
};

/* Of one data set. The iterator that the thread belongs to holds the graph, so no other
 * set comes to lie at this address. */
struct hr_parquet_pins {
    const struct hr_parquet_files *files;
    const struct hr_parquet_group *group;
    struct hr_parquet_pins *next;
    struct pin pins[HR_SCHEMA_FIELDS_MAX];
};

static enum hr_err create_pins(void **ret_object, struct hr_error *reterr)
{
    *ret_object = hr__calloc(1, sizeof(struct hr_parquet_pins *));
    return *ret_object != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static void destroy_pins(void *object)
{
    struct hr_parquet_pins **first = object;

    while (*first != NULL) {
        struct hr_parquet_pins *pins = *first;

        *first = pins->next;
        for (size_t i = 0; i < HR_SCHEMA_FIELDS_MAX; i++)
            hr_buffer_unref(pins->pins[i].buffer);
        hr__free(pins);
    }
    hr__free(first);
}

static const struct hr_thread_class pins_class = {"pages of Parquet files", create_pins,
                                                  destroy_pins};

static enum hr_err
find_pins(const struct hr_parquet_files *files, struct hr_thread *thread,
          struct hr_parquet_pins **ret_pins, struct hr_error *reterr)
{
    struct hr_parquet_pins **first, *pins;
    void *object;

    HR_TRY(hr__thread_object(thread, &pins_class, &object, reterr));
    first = object;
    for (pins = *first; pins != NULL && pins->files != files;)
        pins = pins->next;
    if (pins == NULL) {
        pins = hr__calloc(1, sizeof *pins);
        if (pins == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        pins->files = files;
        pins->group = files->groups;
        pins->next = *first;
        *first = pins;
    }
    *ret_pins = pins;
    return HR_OK;
}

enum hr_err hr__parquet_files_row(const struct hr_parquet_files *files, uint64_t index,
                                  struct hr_thread *thread,
                                  struct hr_parquet_row *ret_row, struct hr_error *reterr)
{
    const struct hr_parquet_group *group = files->groups;

    *ret_row = (struct hr_parquet_row){.index = index, .thread = thread};
    if (thread != NULL) {
        HR_TRY(find_pins(files, thread, &ret_row->pins, reterr));
        group = ret_row->pins->group;
    }
    if (index - group->first >= group->rows)
        group =
            &files->groups[HR_BISECT(files->groups, files->group_count, first, index)];
    if (thread != NULL)
        ret_row->pins->group = group;
    ret_row->group = group;
    ret_row->row = index - group->first;
    return HR_OK;
}

void hr__parquet_row_finish(struct hr_parquet_row *row)
{
    hr_buffer_unref(row->held);
    row->held = NULL;
}

/* ---- cells ---- */

static struct hr_parquet_span *find_span(const struct hr_parquet_part *part, uint64_t row)
{
    return &part->spans[HR_BISECT(part->spans, part->span_count, first, row)];
}

/* Another thread decodes the span: decodes the one after it meanwhile, if nobody does. */
static void help(const struct make *busy)
{
    struct make make = *busy;
    struct hr_parquet_files *files = make.files;
    struct hr_buffer *buffer = NULL;
    struct hr_error ignored = {0};
    bool mine;

    make.error = &ignored;
    if (++make.span == make.part->spans + make.part->span_count) {
        if (++make.group == files->groups + files->group_count ||
            !files->files[make.group->file].is_mapped)
            return;
        make.part = &make.group->parts[make.column];
        if (prepare_part(&make) != HR_OK || make.part->readable == 0)
            return;
        make.span = make.part->spans;
    }
    pthread_mutex_lock(&files->mutex);
    mine = make.span->unit.buffer == NULL && !make.span->unit.busy &&
           make.span->damage == NULL && files->cached_bytes < files->cache_bytes;
    if (mine)
        make.span->unit.busy = true;
    pthread_mutex_unlock(&files->mutex);
    if (mine && run_make(&make, &make.span->unit, make_span, &buffer) == HR_OK)
        hr_buffer_unref(buffer);
}

/* A reference to the rows of make->span. */
static enum hr_err get_span(struct make *make, struct hr_buffer **ret_buffer)
{
    struct hr_parquet_files *files = make->files;
    struct hr_parquet_span *span = make->span;
    const char *damage;
    bool busy;

    pthread_mutex_lock(&files->mutex);
    *ret_buffer = find_unit(files, &span->unit);
    busy = span->unit.busy;
    damage = span->damage; /* never changes again */
    pthread_mutex_unlock(&files->mutex);
    if (*ret_buffer != NULL)
        return HR_OK;
    if (damage != NULL)
        return hr__fail(make->error, HR_ERR_FORMAT, "%s", damage);
    if (busy)
        help(make);
    return get_unit(make, &span->unit, make_span, ret_buffer);
}

/* Finds the page of a cell: *ret_first is its first row's record. */
static enum hr_err
find_page(struct hr_parquet_files *files, struct hr_parquet_row *row, size_t column,
          struct hr_buffer **ret_buffer, uint64_t *ret_first, struct hr_error *reterr)
{
    struct make make = {.files = files,
                        .group = row->group,
                        .part = &row->group->parts[column],
                        .column = column,
                        .reader = row->thread != NULL ? row->thread->reader : NULL,
                        .error = reterr};
    struct hr_buffer **held = &row->held;

    HR_TRY(prepare_part(&make));
    if (row->row >= make.part->readable)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s", make.part->damage);
    make.span = find_span(make.part, row->row);
    HR_TRY(get_span(&make, ret_buffer));
    *ret_first = row->group->first + make.span->first;
    if (row->pins != NULL) {
        struct pin *pin = &row->pins->pins[column];

        pin->first = *ret_first;
        pin->count = span_end(make.part, make.span) - make.span->first;
        held = &pin->buffer;
    }
    hr_buffer_unref(*held);
    *held = *ret_buffer;
    return HR_OK;
}

/* The page of a cell, in *ret_buffer, and records that it has. */
static enum hr_err
take_page(struct hr_parquet_files *files, struct hr_parquet_row *row, size_t column,
          struct hr_buffer **ret_buffer, uint64_t *ret_first, struct hr_error *reterr)
{
    const struct pin *pin = row->pins != NULL ? &row->pins->pins[column] : NULL;

    if (pin == NULL || row->index - pin->first >= pin->count)
        return find_page(files, row, column, ret_buffer, ret_first, reterr);
    *ret_buffer = pin->buffer;
    *ret_first = pin->first;
    return HR_OK;
}

enum hr_err
hr__parquet_files_cell(struct hr_parquet_files *files, struct hr_parquet_row *row,
                       size_t column, struct hr_arrow_cell *ret_cell,
                       struct hr_buffer **ret_owner, struct hr_error *reterr)
{
    const struct made *made;
    uint64_t first = 0;
    enum hr_err code;

    HR_TRY(take_page(files, row, column, ret_owner, &first, reterr));
    made = hr_buffer_data(*ret_owner);
    code = hr__parquet_cell(&files->columns.items[column], &made->page,
                            row->index - first, ret_cell, reterr);
    if (code != HR_OK)
        hr__error_prefix(reterr, "%s: row group %u, column \"%s\": row %llu",
                         files->files[row->group->file].uri, (unsigned)row->group->number,
                         files->columns.items[column].name, (unsigned long long)row->row);
    return code;
}

enum hr_err
hr__parquet_files_run(struct hr_parquet_files *files, struct hr_parquet_row *row,
                      size_t column, struct hr_arrow_cell *ret_cell, uint64_t *ret_rows,
                      struct hr_error *reterr)
{
    struct hr_buffer *buffer;
    uint64_t first = 0;

    HR_TRY(take_page(files, row, column, &buffer, &first, reterr));
    hr__parquet_run(&files->columns.items[column],
                    &((const struct made *)hr_buffer_data(buffer))->page,
                    row->index - first, ret_cell, ret_rows);
    return HR_OK;
}

/* Whether the part has to be fetched before a row of it is there. */
static bool
is_missing(struct hr_parquet_files *files, struct hr_parquet_part *part, uint64_t row)
{
    bool ready = atomic_load_explicit(&part->is_ready, memory_order_acquire);
    bool missing;

    pthread_mutex_lock(&files->mutex);
    missing =
        part->raw.buffer == NULL && !part->raw.busy &&
        (!ready || (row < part->readable && find_span(part, row)->unit.buffer == NULL));
    pthread_mutex_unlock(&files->mutex);
    return missing;
}

bool hr__parquet_files_ahead(struct hr_parquet_files *files, uint64_t index, int part,
                             struct hr_range *ret_range)
{
    struct hr_parquet_row row;

    if (hr__parquet_files_row(files, index, NULL, &row, NULL) != HR_OK ||
        files->files[row.group->file].is_mapped)
        return false;
    for (size_t i = 0; i < files->columns.count; i++) {
        struct make make = {
            .files = files, .group = row.group, .part = &row.group->parts[i]};

        if (!is_missing(files, make.part, row.row) || part-- > 0)
            continue;
        set_range(&make, ret_range);
        return true;
    }
    return false;
}

/* ---- opening ---- */

struct open {
    struct hr_parquet_files *files;
    struct hr_parquet_file *file;
    struct hr_window *window;
    struct hr_hasher *hasher;
    const struct hr_names *names;
    bool keep_bounds;
    struct hr_error *error;
};

static enum hr_err no_memory(const struct open *open)
{
    return hr__fail(open->error, HR_ERR_MEMORY, "out of memory for the row groups of %s",
                    open->file->uri);
}

/* That the library of a codec is there, before rows are read. */
static enum hr_err check_codec(const struct open *open, int codec)
{
    struct hr_unpack *unpack = NULL;
    struct hr_error why = {0};
    enum hr_err code;

    if (codec != HR_PARQUET_ZSTD || open->files->has_zstd)
        return HR_OK;
    code = hr__unpack_create(HR_PACKING_ZSTD, &unpack, &why);
    if (code != HR_OK)
        return hr__fail(open->error, code, "%s: %s", open->file->uri, why.message);
    hr__unpack_destroy(unpack);
    open->files->has_zstd = true;
    return HR_OK;
}

static enum hr_err
check_chunk(const struct open *open, const struct hr_parquet_chunk *chunk, size_t column,
            int64_t rows)
{
    const char *name = open->files->columns.items[column].name;
    const char *codec = hr__parquet_codec_name(chunk->codec);

    if (chunk->reason != NULL)
        return hr__fail(open->error, HR_ERR_UNSUPPORTED,
                        "%s: column \"%s\" is %s: choose others with columns",
                        open->file->uri, name, chunk->reason);
    if (codec == NULL || chunk->codec == HR_PARQUET_LZO ||
        chunk->codec == HR_PARQUET_BROTLI || chunk->codec == HR_PARQUET_LZ4_HADOOP)
        return hr__fail(open->error, HR_ERR_UNSUPPORTED,
                        "%s: column \"%s\" is compressed by %s, which is not read: write "
                        "it with snappy, zstd, gzip or lz4_raw, or uncompressed",
                        open->file->uri, name,
                        codec != NULL ? codec : "an unknown codec");
    if (chunk->values < rows ||
        (!open->file->storages[column].is_list && chunk->values != rows))
        return hr__fail(open->error, HR_ERR_FORMAT,
                        "%s: damaged Parquet footer: column \"%s\" has %lld values in a "
                        "row group of %lld rows",
                        open->file->uri, name, (long long)chunk->values, (long long)rows);
    return check_codec(open, chunk->codec);
}

static enum hr_err add_group(struct open *open, const struct hr_parquet_meta *meta,
                             size_t number, const size_t *leaves)
{
    struct hr_parquet_files *files = open->files;
    const struct hr_parquet_chunk *chunks = meta->chunks + number * meta->column_count;
    struct hr_parquet_group *group;

    if (meta->groups[number] == 0)
        return HR_OK;
    if (!hr__array_room(&files->groups, files->group_count, &files->group_room, 1,
                        sizeof *files->groups))
        return no_memory(open);
    group = &files->groups[files->group_count];
    *group = (struct hr_parquet_group){
        .first = files->records,
        .rows = (uint64_t)meta->groups[number],
        .file = (uint32_t)(open->file - files->files),
        .number = (uint32_t)number,
        .parts = hr__calloc(files->columns.count, sizeof *group->parts)};
    if (group->parts == NULL)
        return no_memory(open);
    files->group_count++;
    for (size_t i = 0; i < files->columns.count; i++) {
        int node = meta->leaves[leaves[i]].node;

        group->parts[i].chunk = chunks[node];
        HR_TRY(check_chunk(open, &group->parts[i].chunk, i, meta->groups[number]));
        if (!open->keep_bounds)
            continue;
        group->parts[i].bounds = hr__parquet_bounds_create(
            &files->columns.items[i], &open->file->storages[i],
            &meta->stats[number * meta->column_count + (size_t)node],
            meta->orders != NULL ? (enum hr_parquet_order)meta->orders[node]
                                 : HR_PARQUET_ORDER_NONE,
            chunks[node].values);
        if (group->parts[i].bounds == NULL)
            return no_memory(open);
    }
    files->records += group->rows;
    return HR_OK;
}

static enum hr_err use_meta(struct open *open, const struct hr_parquet_meta *meta)
{
    size_t leaves[HR_SCHEMA_FIELDS_MAX];

    HR_TRY(hr__columns_find(&open->files->columns, open->names, open->file->uri,
                            meta->leaves, meta->leaf_count, leaves, open->error));
    for (size_t i = 0; i < open->files->columns.count; i++)
        open->file->storages[i] = meta->storages[leaves[i]];
    for (size_t i = 0; i < meta->group_count; i++)
        HR_TRY(add_group(open, meta, i, leaves));
    return HR_OK;
}

static enum hr_err
read_footer(struct open *open, struct hr_parquet_meta *meta, struct hr_error *reterr)
{
    uint64_t size = open->window->object->bytes;
    const void *data;
    size_t bytes;

    if (size < HR_PARQUET_TAIL + HR_PARQUET_MARK_BYTES)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "it is no Parquet file, which has more than %llu bytes",
                        (unsigned long long)size);
    if (size > TAIL_BYTES) /* one request for most footers */
        HR_TRY(
            hr__window_get(open->window, size - TAIL_BYTES, TAIL_BYTES, &data, reterr));
    HR_TRY(hr__window_get(open->window, size - HR_PARQUET_TAIL, HR_PARQUET_TAIL, &data,
                          reterr));
    HR_TRY(hr__parquet_tail(data, &bytes, reterr));
    if (bytes > size - HR_PARQUET_TAIL)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "a footer of %zu bytes does not lie inside it: it is cut", bytes);
    HR_TRY(hr__window_get(open->window, size - HR_PARQUET_TAIL - bytes, bytes, &data,
                          reterr));
    hr__hasher_add(open->hasher, data, bytes);
    return hr__parquet_meta_read(data, bytes, size, meta, reterr);
}

static enum hr_err open_file(struct open *open, size_t at)
{
    struct hr_parquet_meta meta = {0};
    struct hr_error why = {0};
    const char *path;
    enum hr_err code;

    HR_TRY(hr__window_open(open->window, open->file->uri, open->error));
    open->file->identity = open->window->object->identity;
    if (at < MAPS_MAX && !hr__store_is_remote(open->file->uri, &path)) {
        HR_TRY(hr__store_map(open->file->uri, &open->file->map, open->error));
        open->file->is_mapped = true;
        if (open->file->map.bytes != open->window->object->bytes)
            return hr__fail(open->error, HR_ERR_STATE, "%s changed while it was opened",
                            open->file->uri);
    }
    code = read_footer(open, &meta, &why);
    if (code != HR_OK)
        code = hr__fail(open->error, code, "%s: %s", open->file->uri, why.message);
    else
        code = use_meta(open, &meta);
    hr__parquet_meta_finish(&meta);
    return code == HR_OK ? hr__columns_sample(open->window, open->hasher, open->error)
                         : code;
}

static enum hr_err
find_files(struct hr_parquet_files *files, const char *pattern, struct hr_error *reterr)
{
    HR_TRY(hr__shards_find(pattern, ".parquet", false, &files->shards, reterr));
    files->files = hr__shards_items(&files->shards, sizeof *files->files, reterr);
    if (files->files == NULL)
        return HR_ERR_MEMORY;
    files->file_count = files->shards.count;
    return HR_OK;
}

enum hr_err
hr__parquet_files_open(const char *pattern, const struct hr_names *columns,
                       uint64_t page_max, bool keep_bounds,
                       struct hr_parquet_files **ret_files, struct hr_error *reterr)
{
    struct hr_parquet_files *files = hr__calloc(1, sizeof *files);
    struct open open = {.files = files,
                        .window = hr__calloc(1, sizeof *open.window),
                        .hasher = hr__hasher_create(),
                        .names = columns,
                        .keep_bounds = keep_bounds,
                        .error = reterr};
    enum hr_err code = HR_OK;

    if (files != NULL) {
        pthread_mutex_init(&files->mutex, NULL);
        pthread_cond_init(&files->changed, NULL);
        files->page_max = page_max;
        files->units_least = KEEP_UNITS;
        files->pool = hr_pool_create(0);
    }
    if (files == NULL || files->pool == NULL || open.window == NULL ||
        open.hasher == NULL)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (code == HR_OK)
        code = find_files(files, pattern, reterr);
    for (size_t i = 0; code == HR_OK && i < files->file_count; i++) {
        open.file = &files->files[i];
        code = open_file(&open, i);
    }
    if (code == HR_OK) {
        files->identity = hr__hasher_value(open.hasher);
        *ret_files = files;
    } else if (files != NULL) {
        hr__parquet_files_close(files);
    }
    hr__hasher_destroy(open.hasher);
    if (open.window != NULL)
        hr__window_finish(open.window);
    hr__free(open.window);
    return code;
}
