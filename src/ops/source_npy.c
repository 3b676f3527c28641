/*
 * source.npy - the items along the first axis of NumPy's arrays: .npy files, and the
 * arrays of .npz files (ZIP) side by side.
 *
 * Headers are read when the graph is checked, so that shapes are known before any data;
 * items are read by ranges. A deflated array has none, so it is unpacked into memory.
 */
#include "ops/shard_source.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "codec/npy.h"
#include "core/alloc.h"
#include "core/bisect.h"
#include "core/str.h"
#include "ops/item_rows.h"
#include "store/shards.h"
#include "store/zip.h"

#define HEAD_MAX (HR_NPY_HEADER_MAX + 16) /* bytes that a header needs at most */
#define SAMPLE_BYTES ((uint64_t)64 << 10)

struct params {
    const char *path;
    struct hr_names arrays;
    const char *field;
    int64_t unpacked_max;
};

static const struct hr_param npy_params[] = {
    HR_P_PATH(struct params, path, .required = true, .not_identity = true,
              .help = "a file; or several: \"part-{000..099}.npy\", a pattern such as "
                      "\"part-*.npz\", or a folder of .npy files, or of .npz files"),
    HR_P_STRINGS(struct params, arrays, .fallback = "[\"*\"]", .items_min = 1,
                 .items_max = HR_LIST_MAX,
                 .help = "the arrays of .npz files that become fields, by name; * stands "
                         "for all"),
    HR_P_FIELD(struct params, field, .fallback = "array", .access = HR_ACCESS_NONE,
               .help = "the field that holds an item of a .npy file"),
    HR_P_BYTES(struct params, unpacked_max, .fallback = "4GiB", HR_RANGE(1, 1LL << 50),
               .unit = "bytes", .not_identity = true,
               .help = "deflated arrays of .npz files are unpacked into memory; files "
                       "whose arrays take more are refused"),
};

struct array {
    struct hr_npy npy;
    uint64_t at;     /* of its items in the file */
    size_t item;     /* bytes of an item there */
    char *memory;    /* of a deflated array: its items; or NULL */
    uint32_t crc;    /* of .npz */
    uint64_t member; /* number of the ZIP member */
};

struct file {
    const char *uri; /* of `shards` */
    struct hr_hash128 identity;
    struct hr_object object; /* if `open` */
    bool open;
    uint64_t first; /* number of its first record */
    bool is_zip;
    char *unpacked[HR_SCHEMA_FIELDS_MAX]; /* members in memory */
    struct array *arrays;                 /* of state.count */
};

struct state {
    struct hr_shards shards;
    struct file *files; /* one for each shard */
    size_t file_count;
    size_t count; /* arrays that become fields */
    char names[HR_SCHEMA_FIELDS_MAX][HR_FIELD_NAME_MAX + 1];
    uint64_t records, unpacked; /* bytes in memory */
    struct hr_hash128 identity;
    struct hr_window keys;
};

static void npy_close(void *made)
{
    struct state *state = made;

    for (size_t i = 0; i < state->file_count; i++) {
        struct file *file = &state->files[i];

        for (size_t k = 0; k < HR_SCHEMA_FIELDS_MAX; k++)
            hr__free(file->unpacked[k]);
        if (file->open)
            hr__store_close(&file->object);
        hr__free(file->arrays);
    }
    hr__shards_finish(&state->shards);
    hr__free(state->files);
    hr__window_finish(&state->keys);
    hr__free(state);
}

/* ---- one array ---- */

static enum hr_err
check_array(const char *name, struct array *array, struct hr_error *error)
{
    const struct hr_npy *npy = &array->npy;

    if (npy->ndim == 0)
        return hr__fail(error, HR_ERR_SHAPE,
                        "%s: it is a single number, and has no first axis", name);
    if (npy->fortran && npy->ndim > 1)
        return hr__fail(error, HR_ERR_UNSUPPORTED,
                        "%s: its items are not stored one after the other "
                        "(fortran_order): save numpy.ascontiguousarray of it",
                        name);
    array->item = npy->element_bytes;
    for (int i = 1; i < npy->ndim; i++)
        if (__builtin_mul_overflow(array->item, (size_t)npy->dims[i], &array->item))
            return hr__fail(error, HR_ERR_LIMIT, "%s: its items are larger than memory",
                            name);
    if (array->item > (size_t)INT64_MAX / 2)
        return hr__fail(error, HR_ERR_LIMIT, "%s: its items are larger than memory",
                        name);
    return HR_OK;
}

/* Of an array that lies at byte `at` of the window's object and is `bytes` long. */
static enum hr_err read_array(struct hr_window *window, const char *name, uint64_t at,
                              uint64_t bytes, struct array *array, struct hr_error *error)
{
    size_t head = bytes < HEAD_MAX ? (size_t)bytes : HEAD_MAX;
    const void *data;

    HR_TRY(hr__window_get(window, at, head, &data, error));
    HR_TRY(hr__npy_read(data, head, bytes, name, &array->npy, error));
    array->at = at + array->npy.start;
    return check_array(name, array, error);
}

/* ---- .npz ---- */

/* Reads the directory; names are those of the arrays, without ".npy". */
static enum hr_err
read_zip(struct hr_window *window, struct hr_zip *zip, struct hr_error *error)
{
    HR_TRY(hr__zip_read(window, zip, error));
    for (size_t i = 0; i < zip->count; i++) {
        char *name = zip->members[i].name;
        size_t length = strlen(name);

        if (length > 4 && strcmp(name + length - 4, ".npy") == 0)
            name[length - 4] = '\0';
    }
    return HR_OK;
}

static size_t find_member(const struct hr_zip *zip, const char *name)
{
    size_t i = 0;

    while (i < zip->count && strcmp(zip->members[i].name, name) != 0)
        i++;
    return i;
}

static enum hr_err add_name(struct state *state, const struct file *file,
                            const char *name, struct hr_error *error)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < state->count; i++)
        if (strcmp(state->names[i], name) == 0)
            return HR_OK;
    if (length == 0 || length > HR_FIELD_NAME_MAX || !hr__utf8_is_valid(name, length))
        return hr__fail(
            error, HR_ERR_ARGUMENT,
            "%s: the name of a field has 1 to %d bytes of UTF-8: leave out array "
            "\"%.80s\" by choosing others with arrays",
            file->uri, HR_FIELD_NAME_MAX, name);
    if (state->count == HR_SCHEMA_FIELDS_MAX)
        return hr__fail(error, HR_ERR_LIMIT,
                        "%s: more arrays than a record can have fields (%d): choose with "
                        "arrays",
                        file->uri, HR_SCHEMA_FIELDS_MAX);
    memcpy(state->names[state->count++], name, length + 1);
    return HR_OK;
}

static enum hr_err unknown_array(const struct file *file, const struct hr_zip *zip,
                                 const char *name, struct hr_error *error)
{
    const char **names = hr__calloc(zip->count + 1, sizeof *names);
    const char *near = NULL;
    struct hr_str all;

    hr__str_init(&all);
    for (size_t i = 0; names != NULL && i < zip->count; i++) {
        names[i] = zip->members[i].name;
        hr__str_addf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    if (names != NULL)
        near = hr__nearest(name, names, zip->count);
    memcpy(error->param, "arrays", sizeof "arrays");
    hr__fail(error, HR_ERR_ARGUMENT,
             "%s: no array is called \"%.80s\"%s%s%s; the arrays are %.400s", file->uri,
             name, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
             near != NULL ? "\"?" : "", zip->count > 0 ? hr__str_text(&all) : "none");
    hr__str_finish(&all);
    hr__free(names);
    return HR_ERR_ARGUMENT;
}

/* Of the first file. */
static enum hr_err
choose_arrays(struct state *state, const struct params *p, const struct file *file,
              const struct hr_zip *zip, struct hr_error *error)
{
    for (int i = 0; i < p->arrays.count; i++) {
        const char *name = p->arrays.values[i];

        for (size_t k = 0; k < zip->count && strcmp(name, "*") == 0; k++)
            HR_TRY(add_name(state, file, zip->members[k].name, error));
        if (strcmp(name, "*") == 0)
            continue;
        if (find_member(zip, name) == zip->count)
            return unknown_array(file, zip, name, error);
        HR_TRY(add_name(state, file, name, error));
    }
    return state->count > 0
               ? HR_OK
               : hr__fail(error, HR_ERR_FORMAT, "%s: it holds no arrays", file->uri);
}

/* Unpacks a deflated array into memory. */
static enum hr_err
unpack_array(struct state *state, const struct params *p, struct hr_window *window,
             const struct hr_zip_member *member, const char *name, struct array *array,
             char **memory, struct hr_error *error)
{
    size_t head;

    if (member->unpacked > (uint64_t)p->unpacked_max - state->unpacked)
        return hr__fail(error, HR_ERR_LIMIT,
                        "%s: it unpacks to %llu bytes, and deflated arrays may take "
                        "unpacked_max (%lld) together: save it by numpy.savez, which "
                        "does not compress",
                        name, (unsigned long long)member->unpacked,
                        (long long)p->unpacked_max);
    *memory = hr__malloc((size_t)member->unpacked + 1);
    if (*memory == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory for %s", name);
    state->unpacked += member->unpacked;
    HR_TRY(hr__zip_unpack(window, member, *memory, error));
    head = member->unpacked < HEAD_MAX ? (size_t)member->unpacked : HEAD_MAX;
    HR_TRY(hr__npy_read(*memory, head, member->unpacked, name, &array->npy, error));
    array->memory = *memory + array->npy.start;
    return check_array(name, array, error);
}

/* NumPy would read the last one. */
static bool is_repeated(const struct hr_zip *zip, size_t at)
{
    for (size_t i = at + 1; i < zip->count; i++)
        if (strcmp(zip->members[i].name, zip->members[at].name) == 0)
            return true;
    return false;
}

static enum hr_err
read_arrays(struct state *state, const struct params *p, struct hr_window *window,
            struct file *file, const struct hr_zip *zip, struct hr_error *error)
{
    for (size_t i = 0; i < state->count; i++) {
        size_t at = find_member(zip, state->names[i]);
        struct array *array = &file->arrays[i];
        const struct hr_zip_member *member = &zip->members[at];
        char name[256];

        if (at == zip->count)
            return unknown_array(file, zip, state->names[i], error);
        if (is_repeated(zip, at))
            return hr__fail(error, HR_ERR_FORMAT,
                            "%s: two arrays are called \"%s\": rewrite the file with "
                            "only one of them",
                            file->uri, state->names[i]);
        snprintf(name, sizeof name, "%.150s: array \"%s\"", file->uri, state->names[i]);
        if (member->deflated)
            HR_TRY(unpack_array(state, p, window, member, name, array, &file->unpacked[i],
                                error));
        else
            HR_TRY(read_array(window, name, member->at, member->bytes, array, error));
        array->crc = member->crc;
        array->member = at;
        if (array->npy.dims[0] != file->arrays[0].npy.dims[0])
            return hr__fail(error, HR_ERR_SHAPE,
                            "%s: arrays \"%s\" and \"%s\" have %lld and %lld items: "
                            "choose with arrays those that belong together",
                            file->uri, state->names[0], state->names[i],
                            (long long)file->arrays[0].npy.dims[0],
                            (long long)array->npy.dims[0]);
    }
    return HR_OK;
}

/* ---- files ---- */

static enum hr_err
make_arrays(const struct state *state, struct file *file, struct hr_error *error)
{
    file->arrays = hr__calloc(state->count, sizeof *file->arrays);
    return file->arrays != NULL ? HR_OK : hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

static enum hr_err
read_npz(struct state *state, const struct params *p, struct hr_window *window,
         struct file *file, struct hr_error *error)
{
    struct hr_zip zip = {0};
    enum hr_err code = read_zip(window, &zip, error);

    if (code == HR_OK && state->count == 0)
        code = choose_arrays(state, p, file, &zip, error);
    if (code == HR_OK)
        code = make_arrays(state, file, error);
    if (code == HR_OK)
        code = read_arrays(state, p, window, file, &zip, error);
    hr__zip_finish(&zip);
    return code;
}

static enum hr_err
read_npy(struct state *state, const struct params *p, struct hr_window *window,
         struct file *file, struct hr_error *error)
{
    if (p->arrays.count != 1 || strcmp(p->arrays.values[0], "*") != 0) {
        memcpy(error->param, "arrays", sizeof "arrays");
        return hr__fail(error, HR_ERR_ARGUMENT,
                        "%s: a .npy file has one array, without a name: leave out arrays",
                        file->uri);
    }
    if (state->count == 0)
        HR_TRY(add_name(state, file, p->field, error));
    HR_TRY(make_arrays(state, file, error));
    return read_array(window, file->uri, 0, window->object->bytes, &file->arrays[0],
                      error);
}

/* All files have items as the first one has. */
static enum hr_err
compare(const struct state *state, const struct file *file, struct hr_error *error)
{
    const struct file *first = &state->files[0];

    for (size_t i = 0; i < state->count; i++) {
        const struct hr_npy *a = &first->arrays[i].npy, *b = &file->arrays[i].npy;

        if (a->dtype != b->dtype || a->ndim != b->ndim ||
            memcmp(a->dims + 1, b->dims + 1, (size_t)(a->ndim - 1) * sizeof *a->dims) !=
                0)
            return hr__fail(error, HR_ERR_SHAPE,
                            "%s: items of \"%s\" differ in dtype or shape from those of "
                            "%s",
                            file->uri, state->names[i], first->uri);
    }
    return HR_OK;
}

static enum hr_err
read_file(struct state *state, const struct params *p, struct hr_window *window,
          struct file *file, struct hr_error *error)
{
    const void *magic;

    HR_TRY(hr__window_open(window, file->uri, error));
    file->identity = window->object->identity;
    if (window->object->bytes >= 4) {
        HR_TRY(hr__window_get(window, 0, 4, &magic, error));
        file->is_zip = memcmp(magic, HR_ZIP_MAGIC, 4) == 0 ||
                       memcmp(magic, HR_ZIP_MAGIC_EMPTY, 4) == 0;
    }
    if (file->is_zip != state->files[0].is_zip)
        return hr__fail(error, HR_ERR_FORMAT,
                        "%s is %s, and %s is not: read them by two sources", file->uri,
                        file->is_zip ? "a .npz file" : "no .npz file",
                        state->files[0].uri);
    HR_TRY(file->is_zip ? read_npz(state, p, window, file, error)
                        : read_npy(state, p, window, file, error));
    HR_TRY(compare(state, file, error));
    file->first = state->records;
    if (__builtin_add_overflow(state->records, (uint64_t)file->arrays[0].npy.dims[0],
                               &state->records) ||
        state->records >= HR_COUNT_UNKNOWN)
        return hr__fail(error, HR_ERR_LIMIT, "%s: more records than can be counted",
                        file->uri);
    return HR_OK;
}

static enum hr_err
read_files(struct state *state, const struct params *p, struct hr_error *error)
{
    struct hr_window *window = hr__calloc(1, sizeof *window);
    enum hr_err code = HR_OK;

    if (window == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < state->file_count && code == HR_OK; i++)
        code = read_file(state, p, window, &state->files[i], error);
    hr__window_finish(window);
    hr__free(window);
    return code;
}

static enum hr_err
find_files(struct state *state, const char *pattern, struct hr_error *error)
{
    HR_TRY(hr__shards_find_either(pattern, ".npy", ".npz", &state->shards, error));
    state->files = hr__shards_items(&state->shards, sizeof *state->files, error);
    if (state->files == NULL)
        return HR_ERR_MEMORY;
    state->file_count = state->shards.count;
    return HR_OK;
}

static enum hr_err
npy_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct params *p = params;
    struct state *state = hr__calloc(1, sizeof *state);
    enum hr_err code;

    if (state == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    code = find_files(state, p->path, error);
    if (code == HR_OK)
        code = read_files(state, p, error);
    if (code == HR_OK)
        *ret_state = state;
    else
        npy_close(state);
    return code;
}

static enum hr_err
npy_binds(const void *params, const void *made, const struct hr_schema *input,
          struct hr_bindings *bindings, struct hr_error *error)
{
    const struct state *state = made;

    (void)params, (void)input;
    for (size_t i = 0; i < state->count; i++)
        HR_TRY(hr__bind(bindings, state->names[i], HR_ACCESS_WRITE, error));
    return HR_OK;
}

static enum hr_err npy_infer(struct hr_infer *infer)
{
    const struct state *state = infer->state;

    assert(infer->field_count == state->count);
    for (size_t i = 0; i < state->count; i++) {
        const struct hr_npy *npy = &state->files[0].arrays[i].npy;
        struct hr_field *field = infer->fields[i];

        field->kind = HR_FIELD_TENSOR;
        field->dtype = npy->dtype;
        field->ndim = npy->ndim - 1;
        for (int d = 1; d < npy->ndim; d++)
            hr__dim_set(&field->dims[d - 1], npy->dims[d]);
    }
    infer->output->records = (int64_t)state->records;
    return HR_OK;
}

/* ---- open: identity, checksums ---- */

static enum hr_err add_sample(struct hr_window *window, struct hr_hasher *hasher,
                              uint64_t at, uint64_t bytes, struct hr_error *error)
{
    const void *data;

    if (bytes > SAMPLE_BYTES)
        bytes = SAMPLE_BYTES;
    HR_TRY(hr__window_get(window, at, (size_t)bytes, &data, error));
    hr__hasher_add(hasher, data, (size_t)bytes);
    return HR_OK;
}

/* A .npy file has no checksum: its beginning, middle and end stand for it. */
static enum hr_err add_samples(struct hr_window *window, const struct array *array,
                               struct hr_hasher *hasher, struct hr_error *error)
{
    uint64_t bytes = array->npy.bytes;

    HR_TRY(add_sample(window, hasher, array->at, bytes, error));
    if (bytes <= SAMPLE_BYTES)
        return HR_OK;
    HR_TRY(
        add_sample(window, hasher, array->at + (bytes - SAMPLE_BYTES) / 2, bytes, error));
    return add_sample(window, hasher, array->at + bytes - SAMPLE_BYTES, bytes, error);
}

/* Stored arrays are checked here, deflated ones were when they were unpacked. */
static enum hr_err check_members(struct hr_window *window, const struct state *state,
                                 const struct file *file, struct hr_error *error)
{
    struct hr_zip zip = {0};
    enum hr_err code = read_zip(window, &zip, error);

    for (size_t i = 0; i < state->count && code == HR_OK; i++) {
        uint64_t at = file->arrays[i].member;

        if (at >= zip.count || zip.members[at].crc != file->arrays[i].crc)
            code = hr__fail(error, HR_ERR_STATE, "%s changed while it was opened",
                            file->uri);
        else if (!zip.members[at].deflated)
            code = hr__zip_unpack(window, &zip.members[at], NULL, error);
    }
    hr__zip_finish(&zip);
    return code;
}

static enum hr_err
open_file(const struct state *state, struct hr_window *window, struct file *file,
          size_t at, struct hr_hasher *hasher, struct hr_error *error)
{
    HR_TRY(hr__window_open(window, file->uri, error));
    if (!hr__hash_equal(window->object->identity, file->identity))
        return hr__fail(error, HR_ERR_STATE, "%s changed while it was opened", file->uri);
    for (size_t i = 0; i < state->count; i++) {
        const struct array *array = &file->arrays[i];

        hr__hasher_add(hasher, array->npy.dims,
                       (size_t)array->npy.ndim * sizeof *array->npy.dims);
        if (file->is_zip)
            hr__hasher_add(hasher, &array->crc, sizeof array->crc);
        else
            HR_TRY(add_samples(window, array, hasher, error));
    }
    if (file->is_zip)
        HR_TRY(check_members(window, state, file, error));
    if (at >= HR_SHARDS_OPEN)
        return HR_OK;
    HR_TRY(hr__store_open(file->uri, &file->object, error));
    file->open = true;
    return hr__hash_equal(file->object.identity, file->identity)
               ? HR_OK
               : hr__fail(error, HR_ERR_STATE, "%s changed while it was opened",
                          file->uri);
}

static enum hr_err npy_open(const struct hr_open *open, void **ret_state)
{
    struct state *state = *ret_state;
    struct hr_window *window = hr__calloc(1, sizeof *window);
    struct hr_hasher *hasher = hr__hasher_create();
    enum hr_err code = HR_OK;

    if (window == NULL || hasher == NULL)
        code = hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < state->file_count && code == HR_OK; i++)
        code = open_file(state, window, &state->files[i], i, hasher, open->error);
    if (code == HR_OK)
        state->identity = hr__hasher_value(hasher);
    hr__hasher_destroy(hasher);
    if (window != NULL)
        hr__window_finish(window);
    hr__free(window);
    return code;
}

static void npy_identity(const void *params, const void *made, struct hr_hasher *hasher)
{
    const struct state *state = made;

    (void)params;
    hr__hasher_add(hasher, &state->identity.low, sizeof state->identity.low);
    hr__hasher_add(hasher, &state->identity.high, sizeof state->identity.high);
}

/* ---- records ---- */

static uint64_t npy_count(const void *params, const void *made)
{
    (void)params;
    return ((const struct state *)made)->records;
}

/* The file of record `index`, which exists. */
static struct file *file_of(const struct state *state, uint64_t index)
{
    return &state->files[HR_BISECT(state->files, state->file_count, first, index)];
}

static void
place_of(struct file *file, size_t at, uint64_t index, struct hr_shard_place *ret_place)
{
    const struct array *array = &file->arrays[at];

    *ret_place =
        (struct hr_shard_place){.uri = file->uri,
                                .identity = file->identity,
                                .object = file->open ? &file->object : NULL,
                                .offset = array->at + (index - file->first) * array->item,
                                .bytes = array->item};
}

static bool npy_locate(const void *params, const void *made, uint64_t index, char *uri,
                       size_t room, uint64_t *ret_offset)
{
    const struct state *state = made;
    struct hr_shard_place place;
    size_t length;

    (void)params;
    if (index >= state->records)
        return false;
    place_of(file_of(state, index), 0, index, &place);
    length = strlen(place.uri);
    if (length >= room)
        return false;
    memcpy(uri, place.uri, length + 1);
    *ret_offset = place.offset;
    return true;
}

/* The largest array of an item is fetched early. */
static bool npy_ahead(const void *params, const void *made, uint64_t index, int part,
                      struct hr_range *ret_range)
{
    const struct state *state = made;
    struct hr_shard_place place;
    struct file *file;
    size_t largest = 0;

    (void)params;
    if (part > 0 || index >= state->records)
        return false;
    file = file_of(state, index);
    for (size_t i = 1; i < state->count; i++)
        if (file->arrays[largest].memory != NULL ||
            (file->arrays[i].memory == NULL &&
             file->arrays[i].item > file->arrays[largest].item))
            largest = i;
    place_of(file, largest, index, &place);
    return file->arrays[largest].memory == NULL && hr__shard_ahead(&place, ret_range);
}

/* The bytes of `count` items in the file; see struct hr_shard_record. */
static enum hr_err read_items(struct hr_op_ctx *ctx, struct file *file, size_t at,
                              uint32_t count, struct hr_shard_record *record)
{
    const struct array *array = &file->arrays[at];
    struct hr_window *windows;

    record->owner = NULL;
    place_of(file, at, ctx->id->index, &record->place);
    record->place.bytes *= count;
    if (array->memory != NULL) {
        record->data = array->memory + (ctx->id->index - file->first) * array->item;
        return HR_OK;
    }
    if (array->item == 0) {
        record->data = "";
        return HR_OK;
    }
    HR_TRY(hr__shard_windows(ctx->thread, &windows, ctx->error));
    return hr__shard_read(ctx, &windows[at], record);
}

/* Where the item can stay: in the reader's buffer, or in memory. */
static bool stays(const struct array *array, const struct hr_shard_record *record)
{
    return hr__npy_is_plain(&array->npy) &&
           (record->owner != NULL || array->memory != NULL) &&
           (uintptr_t)record->data % array->npy.element_bytes == 0;
}

static enum hr_err
set_item(struct hr_op_ctx *ctx, const struct state *state, struct file *file, size_t at)
{
    const struct array *array = &file->arrays[at];
    const struct hr_npy *npy = &array->npy;
    struct hr_value *value = ctx->fields[at];
    size_t count = array->item / npy->element_bytes;
    struct hr_shard_record record;
    enum hr_err code;
    void *memory;

    HR_TRY(read_items(ctx, file, at, 1, &record));
    if (stays(array, &record)) {
        hr__value_set_tensor(value, npy->dtype, npy->ndim - 1, npy->dims + 1,
                             (void *)(uintptr_t)record.data, record.owner);
        value->shared = true;
        return HR_OK;
    }
    code = hr__op_alloc(ctx, count * hr_dtype_size(npy->dtype) + 1, &memory);
    if (code == HR_OK && !hr__npy_convert(npy, record.data, memory, count))
        code = hr__fail(ctx->error, HR_ERR_RANGE,
                        "%s: byte %llu: array \"%s\" has a uint64 that is larger than "
                        "an int64",
                        file->uri, (unsigned long long)record.place.offset,
                        state->names[at]);
    hr_buffer_unref(record.owner);
    if (code == HR_OK)
        hr__value_set_tensor(value, npy->dtype, npy->ndim - 1, npy->dims + 1, memory,
                             NULL);
    return code;
}

static enum hr_err npy_apply(struct hr_op_ctx *ctx)
{
    const struct state *state = ctx->state;
    struct file *file;

    if (ctx->id->index >= state->records)
        return hr__fail(ctx->error, HR_ERR_RANGE, "there is no item %llu",
                        (unsigned long long)ctx->id->index);
    file = file_of(state, ctx->id->index);
    for (size_t i = 0; i < state->count; i++)
        HR_TRY(set_item(ctx, state, file, i));
    return HR_OK;
}

/* ---- many items at once ---- */

static uint64_t file_end(const void *made, uint64_t index)
{
    const struct file *file = file_of(made, index);

    return file->first + (uint64_t)file->arrays[0].npy.dims[0];
}

/* Items that need no conversion. */
static uint32_t fill_items(struct hr_op_ctx *ctx, struct file *file, size_t column,
                           uint32_t count, char *to)
{
    struct hr_shard_place place;
    struct hr_window *windows;

    place_of(file, column, ctx->id->index, &place);
    place.bytes *= count;
    if (hr__shard_windows(ctx->thread, &windows, ctx->error) != HR_OK ||
        hr__shard_fill(ctx, &windows[column], &place, to) != HR_OK)
        return 0;
    return count;
}

/* See hr_item_rows.copy. */
static uint32_t copy_items(struct hr_op_ctx *ctx, const struct hr_source_rows *rows,
                           size_t column, uint32_t row, uint32_t count)
{
    struct hr_record_id id = {.index = rows->indices[row]};
    struct file *file = file_of(ctx->state, id.index);
    const struct array *array = &file->arrays[column];
    size_t elements = array->item / array->npy.element_bytes;
    char *to = rows->columns[column] + row * elements * hr_dtype_size(array->npy.dtype);
    struct hr_shard_record record;
    struct hr_op_ctx own = *ctx;
    bool good;

    own.id = &id;
    if (hr__npy_is_plain(&array->npy) && array->memory == NULL && array->item > 0)
        return fill_items(&own, file, column,
                          hr__item_rows_count(array->item, HR_ITEM_ROWS_FILL, count), to);
    count = hr__item_rows_count(array->item, HR_ITEM_ROWS_WINDOW, count);
    if (read_items(&own, file, column, count, &record) != HR_OK)
        return 0;
    good = hr__npy_convert(&array->npy, record.data, to, elements * count);
    hr_buffer_unref(record.owner);
    return good ? count : 0;
}

static uint32_t npy_apply_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows)
{
    const struct state *state = ctx->state;

    return hr__item_rows(&(struct hr_item_rows){.ctx = ctx,
                                                .rows = rows,
                                                .columns = state->count,
                                                .records = state->records,
                                                .end = file_end,
                                                .copy = copy_items});
}

/* ---- keys ---- */

/* Arrays of one number per record. */
static size_t key_array(const struct state *state, size_t i)
{
    for (size_t k = 0; k < state->count; k++) {
        const struct hr_npy *npy = &state->files[0].arrays[k].npy;

        if (npy->ndim == 1 && hr__has_number_text(npy->dtype) && i-- == 0)
            return k;
    }
    return state->count;
}

static const char *npy_key_name(const void *params, const void *made, size_t i)
{
    const struct state *state = made;
    size_t array = key_array(state, i);

    (void)params;
    return array < state->count ? state->names[array] : NULL;
}

/* The state is const, what its window shows is not part of it. */
static enum hr_err npy_key(const void *params, const void *made, size_t i, uint64_t index,
                           struct hr_str *out, struct hr_error *error)
{
    const struct state *state = made;
    struct hr_window *window = (struct hr_window *)(uintptr_t)&state->keys;
    size_t at = key_array(state, i);
    struct file *file = file_of(state, index);
    const struct array *array = &file->arrays[at];
    struct hr_shard_place place;
    const void *data;
    int64_t number;

    (void)params;
    place_of(file, at, index, &place);
    if (array->memory != NULL) {
        data = array->memory + (index - file->first) * array->item;
    } else {
        HR_TRY(hr__shard_window(window, &place, error));
        HR_TRY(hr__window_get(window, place.offset, array->item, &data, error));
    }
    if (!hr__npy_convert(&array->npy, data, &number, 1)) { /* a bad record */
        hr__str_addf(out, "%llu", (unsigned long long)index);
        return hr__fail(error, HR_ERR_FORMAT, "its number has no value in its dtype");
    }
    hr__number_text(out, array->npy.dtype, &number);
    return HR_OK;
}

const struct hr_op hr_op_source_npy = {
    .name = "source.npy",
    .summary = "the items of NumPy's .npy and .npz files",
    .doc =
        "The items along the first axis become records: a file of shape [1000, 28, 28] "
        "has 1000 records with a field of shape [28, 28]. The arrays of a .npz file that "
        "are chosen, which must have equally many items, become fields of one record "
        "under their names. Bool, integers and floats of up to 64 bits, little-endian "
        "and big-endian; uint32 and uint64 become int64, and an item with a larger "
        "number is a bad record. Arrays in Fortran order, of text, of complex numbers or "
        "of objects are refused. Several files must have items of one dtype and "
        "shape.\n\n"
        "Items are read where they lie in the file, in any order, so shuffle, split, "
        "shard and resume work as for files. Deflated arrays of .npz files "
        "(`numpy.savez_compressed`) are unpacked into memory when the graph is checked. "
        "The arrays of .npz files have checksums: they are read through and checked when "
        "the graph is opened, and a damaged one is refused. A .npy file has none, so "
        "damage to its items cannot be seen; its header is checked. The identity of the "
        "source is the shapes and, of .npz files, the checksums; of .npy files, the "
        "first, middle and last 64 KiB of the items.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(npy_params, struct params),
    .binds = npy_binds,
    .infer = npy_infer,
    .open = npy_open,
    .close = npy_close,
    .identity = npy_identity,
    .apply = npy_apply,
    .prepare = npy_prepare,
    .source = {.apply_rows = npy_apply_rows,
               .count = npy_count,
               .locate = npy_locate,
               .ahead = npy_ahead,
               .key_name = npy_key_name,
               .key = npy_key},
};
