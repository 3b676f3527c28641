/*
 * ops/arrow_files.c - the record batches of Arrow files and streams.
 *
 * A file is a stream with a mark before it and a footer after it, which repeats where the
 * messages are: it is not needed. What cannot be read any further is one bad record.
 */
#include "ops/arrow_files.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bisect.h"
#include "core/buffer.h"
#include "core/error.h"
#include "core/str.h"
#include "store/unpack.h"

#define FILE_MARK "ARROW1\0\0"
#define FILE_MARK_BYTES 8

/* ---- life ---- */

void hr__arrow_files_close(struct hr_arrow_files *files)
{
    for (size_t i = 0; i < HR_ARROW_LOADED_MAX; i++)
        hr_buffer_unref(files->loaded[i].buffer);
    for (size_t i = 0; i < files->dictionary_count; i++)
        hr_buffer_unref(files->dictionaries[i].buffer);
    for (size_t i = 0; i < files->group_count; i++)
        hr__free(files->groups[i].damage);
    for (size_t i = 0; i < files->file_count; i++)
        hr__store_unmap(&files->files[i].map);
    hr__shards_finish(&files->shards);
    hr__free(files->files);
    hr__free(files->groups);
    hr__free(files->places);
    hr__free(files->dictionaries);
    hr_pool_unref(files->pool);
    pthread_mutex_destroy(&files->mutex);
    hr__free(files);
}

/* ---- buffers that are loaded ---- */

static uint64_t stored_bytes(const struct hr_arrow_extent *extent, const uint8_t *data,
                             enum hr_arrow_codec codec)
{
    uint64_t bytes = 0;

    if (codec == HR_ARROW_PLAIN || extent->bytes == 0)
        return extent->bytes;
    if (extent->bytes < 8)
        return UINT64_MAX;
    memcpy(&bytes, data, 8); /* little-endian */
    return bytes == UINT64_MAX ? extent->bytes - 8 : bytes;
}

static enum hr_err unpack(const uint8_t *data, uint64_t bytes, void *to, uint64_t room,
                          struct hr_error *reterr)
{
    enum hr_err code =
        hr__unpack_all(HR_PACKING_ZSTD, data, (size_t)bytes, to, (size_t)room, reterr);

    if (code == HR_ERR_FORMAT)
        hr__error_prefix(reterr, "a compressed buffer is damaged");
    return code;
}

/* The extents of a place, to go over them. */
static void extents_of(struct hr_arrow_place *place, struct hr_arrow_extent *extents[5])
{
    extents[0] = &place->validity;
    extents[1] = &place->struct_validity;
    extents[2] = &place->offsets;
    extents[3] = &place->data;
    extents[4] = &place->child_validity;
}

/* Bytes from the start of the body that places use: from and to. */
static void
span_of(struct hr_arrow_place *places, size_t count, uint64_t *ret_from, uint64_t *ret_to)
{
    *ret_from = UINT64_MAX;
    *ret_to = 0;
    for (size_t i = 0; i < count; i++) {
        struct hr_arrow_extent *extents[5];

        extents_of(&places[i], extents);
        for (size_t k = 0; k < 5; k++) {
            if (extents[k]->bytes == 0)
                continue;
            if (extents[k]->at < *ret_from)
                *ret_from = extents[k]->at;
            if (extents[k]->at + extents[k]->bytes > *ret_to)
                *ret_to = extents[k]->at + extents[k]->bytes;
        }
    }
    if (*ret_from > *ret_to)
        *ret_from = *ret_to;
}

struct load {
    struct hr_pool *pool;
    const struct hr_arrow_file *file;
    uint64_t body;
    enum hr_arrow_codec codec;
    const struct hr_arrow_column *columns;
    const struct hr_arrow_place *places;
    size_t count;
    bool is_values; /* of a dictionary */
    uint64_t bytes_max;
    struct hr_error *error;
};

/* Copies or unpacks the extents of `raw`, which begins at byte `from` of the body. */
static enum hr_err fill_buffer(const struct load *load, const uint8_t *raw, uint64_t from,
                               struct hr_buffer **ret_buffer)
{
    uint64_t head = load->count * sizeof *load->places, total, at;
    struct hr_arrow_place *places;
    char *data;

    total = head = (head + 63) / 64 * 64;
    for (size_t i = 0; i < load->count; i++) {
        struct hr_arrow_place place = load->places[i];
        struct hr_arrow_extent *extents[5];

        extents_of(&place, extents);
        for (size_t k = 0; k < 5; k++) {
            uint64_t bytes = stored_bytes(
                extents[k], extents[k]->bytes > 0 ? raw + (extents[k]->at - from) : NULL,
                load->codec);

            if (bytes > load->bytes_max || total > load->bytes_max)
                return hr__fail(load->error, HR_ERR_LIMIT,
                                "a batch takes more memory than batch_max (%llu bytes)",
                                (unsigned long long)load->bytes_max);
            total += (bytes + 63) / 64 * 64;
        }
    }
    if (hr_pool_get(load->pool, (size_t)total, ret_buffer) != HR_OK)
        return hr__fail(load->error, HR_ERR_MEMORY, "out of memory for %llu bytes",
                        (unsigned long long)total);
    data = hr_buffer_data(*ret_buffer);
    places = (struct hr_arrow_place *)(void *)data;
    memcpy(places, load->places, load->count * sizeof *places);
    at = head;
    for (size_t i = 0; i < load->count; i++) {
        struct hr_arrow_extent *extents[5];

        extents_of(&places[i], extents);
        for (size_t k = 0; k < 5; k++) {
            const uint8_t *source =
                extents[k]->bytes > 0 ? raw + (extents[k]->at - from) : NULL;
            uint64_t bytes = stored_bytes(extents[k], source, load->codec);

            if (load->codec == HR_ARROW_PLAIN && bytes > 0)
                memcpy(data + at, source, (size_t)bytes);
            else if (bytes > 0 && bytes == extents[k]->bytes - 8 &&
                     memcmp(source, "\377\377\377\377\377\377\377\377", 8) == 0)
                memcpy(data + at, source + 8, (size_t)bytes);
            else if (bytes > 0)
                HR_TRY(unpack(source + 8, extents[k]->bytes - 8, data + at, bytes,
                              load->error));
            *extents[k] = (struct hr_arrow_extent){at, bytes};
            at += (bytes + 63) / 64 * 64;
        }
        HR_TRY(
            hr__arrow_check(&load->columns[i], &places[i], load->is_values, load->error));
    }
    return HR_OK;
}

static enum hr_err
read_span(const struct load *load, uint64_t from, uint64_t to, uint8_t **ret_raw)
{
    struct hr_object object;
    enum hr_err code;
    bool waited;

    HR_TRY(hr__store_open(load->file->uri, &object, load->error));
    *ret_raw = hr__malloc((size_t)(to - from) + 1);
    if (!hr__hash_equal(object.identity, load->file->identity))
        code = hr__fail(load->error, HR_ERR_STATE,
                        "%s changed since the graph was opened", load->file->uri);
    else if (*ret_raw == NULL)
        code = hr__fail(load->error, HR_ERR_MEMORY, "out of memory for %llu bytes",
                        (unsigned long long)(to - from));
    else
        code = hr__store_read(&object, load->body + from, *ret_raw, (size_t)(to - from),
                              NULL, &waited, load->error);
    hr__store_close(&object);
    return code;
}

static enum hr_err load_buffers(const struct load *load, struct hr_buffer **ret_buffer)
{
    uint8_t *owned = NULL;
    const uint8_t *raw;
    uint64_t from, to;
    enum hr_err code = HR_OK;

    *ret_buffer = NULL;
    if (load->codec == HR_ARROW_LZ4)
        return hr__fail(load->error, HR_ERR_UNSUPPORTED,
                        "%s is compressed by LZ4, which is not read: write it "
                        "uncompressed or with zstd",
                        load->file->uri);
    span_of((struct hr_arrow_place *)(uintptr_t)load->places, load->count, &from, &to);
    if (load->file->is_mapped)
        raw = (const uint8_t *)load->file->map.data + load->body + from;
    else {
        code = read_span(load, from, to, &owned);
        raw = owned;
    }
    if (code == HR_OK)
        code = fill_buffer(load, raw, from, ret_buffer);
    if (code != HR_OK) {
        hr_buffer_unref(*ret_buffer);
        *ret_buffer = NULL;
    }
    hr__free(owned);
    return code;
}

/* ---- opening ---- */

struct open {
    struct hr_arrow_files *files;
    struct hr_arrow_file *file;
    struct hr_window *window;
    struct hr_arrow_schema schema;
    struct hr_hasher *hasher;
    const struct hr_names *names;
    char *meta; /* of the message */
    size_t meta_room, meta_bytes;
    uint64_t at; /* where the next message begins */
    struct hr_error *error;
};

static enum hr_err no_memory(struct open *open)
{
    return hr__fail(open->error, HR_ERR_MEMORY, "out of memory for the batches of %s",
                    open->file->uri);
}

static enum hr_err
add_group(struct open *open, uint64_t rows, uint64_t body, enum hr_arrow_codec codec)
{
    struct hr_arrow_files *files = open->files;

    if (!hr__array_room(&files->groups, files->group_count, &files->group_room, 1,
                        sizeof *files->groups))
        return no_memory(open);
    files->groups[files->group_count++] =
        (struct hr_arrow_group){.first = files->records,
                                .body = body,
                                .file = (uint32_t)(open->file - files->files),
                                .codec = codec,
                                .places = files->place_count,
                                .dictionaries = files->dictionary_count};
    files->records += rows;
    return HR_OK;
}

/* A record that is bad stands for what could not be read. */
static enum hr_err add_damage(struct open *open, uint64_t at, const char *why)
{
    char text[sizeof((struct hr_error *)0)->message];

    snprintf(text, sizeof text, "%s: byte %llu: %s", open->file->uri,
             (unsigned long long)at, why);
    HR_TRY(add_group(open, 1, 0, HR_ARROW_PLAIN));
    open->files->groups[open->files->group_count - 1].damage = hr__strdup(text);
    return open->files->groups[open->files->group_count - 1].damage != NULL
               ? HR_OK
               : no_memory(open);
}

static enum hr_err read_schema(struct open *open)
{
    struct hr_arrow_files *files = open->files;

    hr__arrow_schema_finish(&open->schema);
    HR_TRY(
        hr__arrow_schema_read(open->meta, open->meta_bytes, &open->schema, open->error));
    return hr__columns_find(&files->columns, open->names, open->file->uri,
                            open->schema.leaves, open->schema.leaf_count,
                            open->file->leaves, open->error);
}

/* ---- messages ---- */

static enum hr_err add_batch(struct open *open, uint64_t at, uint64_t body)
{
    struct hr_arrow_files *files = open->files;
    struct hr_error why = {0};
    struct hr_arrow_batch batch;
    enum hr_err code = hr__arrow_batch_read(open->meta, open->meta_bytes, &batch, &why);

    if (!hr__array_room(&files->places, files->place_count, &files->place_room,
                        files->columns.count, sizeof *files->places))
        return no_memory(open);
    if (code == HR_OK && batch.rows == 0)
        return HR_OK;
    if (code == HR_OK && batch.codec == HR_ARROW_LZ4)
        return hr__fail(open->error, HR_ERR_UNSUPPORTED,
                        "%s: it is compressed by LZ4, which is not read: write it "
                        "uncompressed or with zstd",
                        open->file->uri);
    if (code == HR_OK)
        code = hr__arrow_batch_place(open->meta, open->meta_bytes, &open->schema,
                                     open->file->leaves, files->columns.count,
                                     files->places + files->place_count, &why);
    if (code == HR_OK && (uint64_t)batch.rows > (UINT64_MAX >> 3) - files->records)
        code = hr__fail(&why, HR_ERR_FORMAT, "more rows than can be counted");
    if (code != HR_OK)
        return add_damage(open, at, why.message);
    HR_TRY(add_group(open, (uint64_t)batch.rows, body, batch.codec));
    files->place_count += files->columns.count;
    return HR_OK;
}

static enum hr_err
add_dictionary(struct open *open, size_t column, uint64_t body, enum hr_arrow_codec codec)
{
    struct hr_arrow_files *files = open->files;
    struct hr_arrow_place place;
    struct hr_arrow_dictionary *made;
    struct load load = {.pool = files->pool,
                        .file = open->file,
                        .body = body,
                        .codec = codec,
                        .columns = &files->columns.items[column],
                        .places = &place,
                        .count = 1,
                        .is_values = true,
                        .bytes_max = files->batch_max,
                        .error = open->error};

    HR_TRY(hr__arrow_dictionary_place(open->meta, open->meta_bytes,
                                      &files->columns.items[column], &place,
                                      open->error));
    if (!hr__array_room(&files->dictionaries, files->dictionary_count,
                        &files->dictionary_room, 1, sizeof *files->dictionaries))
        return no_memory(open);
    made = &files->dictionaries[files->dictionary_count];
    *made = (struct hr_arrow_dictionary){.file = (uint32_t)(open->file - files->files),
                                         .column = column};
    if (open->file->is_mapped && codec == HR_ARROW_PLAIN) {
        hr__arrow_view(&place, (const char *)open->file->map.data + body, &made->view);
    } else {
        HR_TRY(load_buffers(&load, &made->buffer));
        hr__arrow_view(hr_buffer_data(made->buffer), hr_buffer_data(made->buffer),
                       &made->view);
    }
    files->dictionary_count++;
    return HR_OK;
}

static enum hr_err add_dictionaries(struct open *open, uint64_t body)
{
    struct hr_arrow_batch batch;

    HR_TRY(hr__arrow_batch_read(open->meta, open->meta_bytes, &batch, open->error));
    for (size_t i = 0; i < open->files->columns.count; i++) {
        const struct hr_arrow_leaf *leaf = &open->schema.leaves[open->file->leaves[i]];

        if (!leaf->column.has_dictionary || leaf->dictionary != batch.dictionary)
            continue;
        if (batch.is_delta)
            return hr__fail(open->error, HR_ERR_UNSUPPORTED,
                            "the dictionary of column \"%s\" grows (a delta): write it "
                            "whole",
                            leaf->column.name);
        HR_TRY(add_dictionary(open, i, body, batch.codec));
    }
    return HR_OK;
}

/* Reads the metadata at open->at; *ret_meta 0: the stream ends here. */
static enum hr_err read_message(struct open *open, size_t *ret_meta)
{
    uint64_t left = open->window->object->bytes - open->at;
    const void *data;

    *ret_meta = 0;
    if (left == 0)
        return HR_OK;
    if (left < HR_ARROW_HEAD) {
        uint64_t zeros = 0;

        HR_TRY(hr__window_get(open->window, open->at, (size_t)left, &data, open->error));
        return memcmp(data, &zeros, (size_t)left) == 0
                   ? HR_OK
                   : hr__fail(open->error, HR_ERR_FORMAT, "the file is cut");
    }
    HR_TRY(hr__window_get(open->window, open->at, HR_ARROW_HEAD, &data, open->error));
    HR_TRY(hr__arrow_head(data, ret_meta, open->error));
    if (*ret_meta > left - HR_ARROW_HEAD)
        return hr__fail(open->error, HR_ERR_FORMAT, "the file is cut in a message");
    HR_TRY(hr__window_get(open->window, open->at + HR_ARROW_HEAD, *ret_meta, &data,
                          open->error));
    if (*ret_meta > open->meta_room) {
        hr__free(open->meta);
        open->meta = hr__malloc(*ret_meta);
        open->meta_room = open->meta != NULL ? *ret_meta : 0;
        if (open->meta == NULL)
            return no_memory(open);
    }
    if (*ret_meta > 0)
        memcpy(open->meta, data, *ret_meta);
    open->meta_bytes = *ret_meta;
    return HR_OK;
}

/* One message; *ret_end: it was the last one. */
static enum hr_err walk_message(struct open *open, bool *ret_end)
{
    struct hr_arrow_message message;
    uint64_t at = open->at, body, size = open->window->object->bytes;
    size_t meta;

    HR_TRY(read_message(open, &meta));
    *ret_end = meta == 0;
    if (meta == 0)
        return HR_OK;
    HR_TRY(hr__arrow_message(open->meta, meta, &message, open->error));
    body = at + HR_ARROW_HEAD + meta;
    if (message.body > size - body)
        return hr__fail(open->error, HR_ERR_FORMAT, "the file is cut in a body");
    hr__hasher_add(open->hasher, open->meta, meta);
    open->at = body + message.body;
    if (message.type == HR_ARROW_SCHEMA || open->schema.nodes == NULL) {
        if (message.type != HR_ARROW_SCHEMA || open->schema.nodes != NULL)
            return hr__fail(open->error, HR_ERR_FORMAT,
                            open->schema.nodes != NULL ? "a second schema" : "no schema");
        return read_schema(open);
    }
    if (message.type == HR_ARROW_DICTIONARY)
        return add_dictionaries(open, body);
    return message.type == HR_ARROW_BATCH ? add_batch(open, at, body) : HR_OK;
}

static enum hr_err
refuse(const struct open *open, enum hr_err code, uint64_t at, const struct hr_error *why)
{
    memcpy(open->error->param, why->param, sizeof why->param);
    if (strstr(why->message, open->file->uri) != NULL)
        return hr__fail(open->error, code, "%s", why->message);
    return hr__fail(open->error, code, "%s: byte %llu: %s", open->file->uri,
                    (unsigned long long)at, why->message);
}

/* Without a schema the file is refused; later damage is a bad record. */
static enum hr_err walk(struct open *open)
{
    struct hr_error *error = open->error;

    for (bool end = false; !end;) {
        bool has_schema = open->schema.nodes != NULL;
        struct hr_error why = {0};
        uint64_t at = open->at;
        enum hr_err code;

        open->error = &why;
        code = walk_message(open, &end);
        open->error = error;
        if (code == HR_OK)
            continue;
        if (!has_schema || (code != HR_ERR_FORMAT && code != HR_ERR_LIMIT))
            return refuse(open, code, at, &why);
        HR_TRY(add_damage(open, at, why.message));
        end = open->at == at; /* where the next message begins is not known */
    }
    return open->schema.nodes != NULL
               ? HR_OK
               : hr__fail(error, HR_ERR_FORMAT, "%s: it is no Arrow file or stream",
                          open->file->uri);
}

/* hr_shard_read_fn */
static enum hr_err read_file(void *user, size_t at, struct hr_window *window,
                             struct hr_hasher *hasher, struct hr_error *reterr)
{
    struct open *open = user;
    struct hr_arrow_file *file = &open->files->files[at];
    const void *mark;

    open->file = file;
    open->window = window;
    open->hasher = hasher;
    open->at = 0;
    file->identity = window->object->identity;
    HR_TRY(hr__columns_map(window, at, &file->map, &file->is_mapped, reterr));
    if (window->object->bytes >= FILE_MARK_BYTES) {
        HR_TRY(hr__window_get(window, 0, FILE_MARK_BYTES, &mark, reterr));
        if (memcmp(mark, FILE_MARK, FILE_MARK_BYTES) == 0)
            open->at = FILE_MARK_BYTES;
    }
    hr__arrow_schema_finish(&open->schema);
    return walk(open);
}

static enum hr_err
find_files(struct hr_arrow_files *files, const char *pattern, struct hr_error *reterr)
{
    HR_TRY(hr__shards_find(pattern, ".arrow", false, &files->shards, reterr));
    files->files = hr__shards_items(&files->shards, sizeof *files->files, reterr);
    if (files->files == NULL)
        return HR_ERR_MEMORY;
    files->file_count = files->shards.count;
    return HR_OK;
}

enum hr_err hr__arrow_files_open(const char *pattern, const struct hr_names *columns,
                                 uint64_t batch_max, struct hr_arrow_files **ret_files,
                                 struct hr_error *reterr)
{
    struct hr_arrow_files *files = hr__calloc(1, sizeof *files);
    struct open open = {.files = files, .names = columns, .error = reterr};
    enum hr_err code;

    if (files == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    pthread_mutex_init(&files->mutex, NULL);
    files->batch_max = batch_max;
    files->pool = hr_pool_create(0);
    code = files->pool != NULL ? find_files(files, pattern, reterr)
                               : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (code == HR_OK)
        code =
            hr__shards_read(&files->shards, read_file, &open, &files->identity, reterr);
    if (code == HR_OK)
        *ret_files = files;
    else
        hr__arrow_files_close(files);
    hr__arrow_schema_finish(&open.schema);
    hr__free(open.meta);
    return code;
}

/* ---- records ---- */

static size_t find_group(const struct hr_arrow_files *files, uint64_t index)
{
    return HR_BISECT(files->groups, files->group_count, first, index);
}

const struct hr_arrow_group *
hr__arrow_files_group(const struct hr_arrow_files *files, uint64_t index)
{
    return &files->groups[find_group(files, index)];
}

/* A reference to the batch's buffer if it is in the cache. */
static struct hr_buffer *find_loaded(struct hr_arrow_files *files, size_t group)
{
    struct hr_buffer *found = NULL;

    pthread_mutex_lock(&files->mutex);
    for (size_t i = 0; i < HR_ARROW_LOADED_MAX && found == NULL; i++)
        if (files->loaded[i].buffer != NULL && files->loaded[i].group == group) {
            files->loaded[i].used = ++files->uses;
            found = hr_buffer_ref(files->loaded[i].buffer);
        }
    pthread_mutex_unlock(&files->mutex);
    return found;
}

/* The entry that is free, or was used longest ago. */
static struct hr_arrow_loaded *oldest(struct hr_arrow_files *files, bool used_only)
{
    struct hr_arrow_loaded *found = NULL;

    for (size_t i = 0; i < HR_ARROW_LOADED_MAX; i++) {
        struct hr_arrow_loaded *entry = &files->loaded[i];

        if (used_only && entry->buffer == NULL)
            continue;
        if (found == NULL || entry->buffer == NULL || entry->used < found->used)
            found = entry;
        if (entry->buffer == NULL)
            break;
    }
    return found;
}

static void drop(struct hr_arrow_files *files, struct hr_arrow_loaded *entry)
{
    if (entry->buffer == NULL)
        return;
    files->loaded_bytes -= hr_buffer_bytes(entry->buffer);
    hr_buffer_unref(entry->buffer);
    entry->buffer = NULL;
}

/* Batches that are dropped make room for the next ones: memory that is freed and
 * allocated again and again stays with the system's allocator. */
void hr__arrow_files_limit(struct hr_arrow_files *files, uint64_t cache_bytes,
                           bool strict)
{
    size_t keep;

    pthread_mutex_lock(&files->mutex);
    files->cache_bytes = cache_bytes;
    while (files->loaded_bytes > cache_bytes)
        drop(files, oldest(files, true));
    keep = (size_t)(cache_bytes + files->loaded_max);
    pthread_mutex_unlock(&files->mutex);
    hr__pool_keep(files->pool, !strict ? 0 : keep > 0 ? keep : 1);
}

/* A thread has a batch, and loads one, whose stored bytes may be as many. */
void hr__arrow_files_kept(struct hr_arrow_files *files, struct hr_op_kept *ret_kept)
{
    uint64_t batch = 0;

    ret_kept->fixed = files->group_room * sizeof *files->groups +
                      files->place_room * sizeof *files->places +
                      files->dictionary_room * sizeof *files->dictionaries;
    for (size_t i = 0; i < files->dictionary_count; i++)
        if (files->dictionaries[i].buffer != NULL)
            ret_kept->fixed += hr_buffer_bytes(files->dictionaries[i].buffer);
    pthread_mutex_lock(&files->mutex);
    batch = files->loaded_max;
    pthread_mutex_unlock(&files->mutex);
    ret_kept->least = batch;
    ret_kept->thread = 2 * batch;
}

static void
keep_loaded(struct hr_arrow_files *files, size_t group, struct hr_buffer *buffer)
{
    struct hr_arrow_loaded *entry;
    bool known = false;

    pthread_mutex_lock(&files->mutex);
    for (size_t i = 0; i < HR_ARROW_LOADED_MAX; i++) /* by another thread meanwhile */
        known =
            known || (files->loaded[i].buffer != NULL && files->loaded[i].group == group);
    while (!known && files->loaded_bytes > 0 &&
           files->loaded_bytes + hr_buffer_bytes(buffer) > files->cache_bytes)
        drop(files, oldest(files, true));
    if (!known) {
        entry = oldest(files, false);
        drop(files, entry);
        *entry = (struct hr_arrow_loaded){group, hr_buffer_ref(buffer), ++files->uses};
        files->loaded_bytes += hr_buffer_bytes(buffer);
        if (hr_buffer_bytes(buffer) > files->loaded_max)
            files->loaded_max = hr_buffer_bytes(buffer);
    }
    pthread_mutex_unlock(&files->mutex);
}

static bool
is_in_place(const struct hr_arrow_files *files, const struct hr_arrow_group *group)
{
    return files->files[group->file].is_mapped && group->codec == HR_ARROW_PLAIN;
}

enum hr_err hr__arrow_files_row(struct hr_arrow_files *files, uint64_t index,
                                struct hr_arrow_row *ret_row, struct hr_error *reterr)
{
    size_t at = find_group(files, index);
    const struct hr_arrow_group *group = &files->groups[at];
    const struct hr_arrow_file *file = &files->files[group->file];
    const struct hr_arrow_place *places;

    *ret_row = (struct hr_arrow_row){
        .group = group, .file = file, .row = (int64_t)(index - group->first)};
    if (group->damage != NULL)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s", group->damage);
    places = files->places + group->places;
    ret_row->places = places;
    if (is_in_place(files, group)) {
        ret_row->body = (const char *)file->map.data + group->body;
        return HR_OK;
    }
    ret_row->buffer = find_loaded(files, at);
    if (ret_row->buffer == NULL) {
        struct hr_error why = {0};
        struct load load = {
            files->pool,          file,   group->body,          group->codec,
            files->columns.items, places, files->columns.count, false,
            files->batch_max,     &why};
        enum hr_err code = load_buffers(&load, &ret_row->buffer);

        if (code != HR_OK)
            return hr__fail(reterr, code, "%s: byte %llu: %s", file->uri,
                            (unsigned long long)group->body, why.message);
        keep_loaded(files, at, ret_row->buffer);
    }
    ret_row->body = hr_buffer_data(ret_row->buffer);
    ret_row->places = ret_row->body;
    return HR_OK;
}

enum hr_err hr__arrow_files_cell(const struct hr_arrow_files *files,
                                 const struct hr_arrow_row *row, size_t column,
                                 struct hr_arrow_cell *ret_cell, struct hr_error *reterr)
{
    struct hr_arrow_view view;

    hr__arrow_view(&row->places[column], row->body, &view);
    /* the last one before the batch counts */
    for (size_t i = row->group->dictionaries;
         files->columns.items[column].has_dictionary && i > 0 && view.dictionary == NULL;
         i--) {
        const struct hr_arrow_dictionary *dictionary = &files->dictionaries[i - 1];

        if (dictionary->file == row->group->file && dictionary->column == column)
            view.dictionary = &dictionary->view;
    }
    return hr__arrow_cell(&files->columns.items[column], &view, row->row, ret_cell,
                          reterr);
}

uint64_t hr__arrow_files_size(const struct hr_arrow_files *files, uint64_t index)
{
    const struct hr_arrow_group *group = hr__arrow_files_group(files, index);
    const struct hr_arrow_file *file = &files->files[group->file];
    struct hr_arrow_row row = {
        .group = group, .file = file, .row = (int64_t)(index - group->first)};
    uint64_t bytes = 0;

    if (group->damage != NULL || !is_in_place(files, group))
        return 0;
    row.places = files->places + group->places;
    row.body = (const char *)file->map.data + group->body;
    for (size_t i = 0; i < files->columns.count; i++) {
        const struct hr_arrow_column *column = &files->columns.items[i];
        struct hr_arrow_cell cell;

        if (hr__arrow_files_cell(files, &row, i, &cell, NULL) == HR_OK && !cell.is_null)
            bytes += cell.bytes + (uint64_t)cell.count * column->width;
    }
    return bytes;
}

void hr__arrow_files_run(const struct hr_arrow_files *files,
                         const struct hr_arrow_row *row, size_t column,
                         struct hr_arrow_cell *ret_cell, uint64_t *ret_rows)
{
    struct hr_arrow_view view;

    hr__arrow_view(&row->places[column], row->body, &view);
    hr__arrow_run(&files->columns.items[column], &view, row->row, ret_cell, ret_rows);
}
