/*
 * api/jpeg_entries_api.c - seek points of include/headrace/jpeg.h: an index of the codec
 * with the hash of its photo.
 *
 * Serialised form, little-endian: "HRJPEGE1", size (8) and hash (16) of the photo, size
 * of the index (8), XXH3-128 of all the preceding bytes and the index (16), the index.
 * The codec can safely read any bytes as an index; the checksum is for reporting damage.
 */
#include "api/jpeg_api.h"

#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"

#include <string.h>

#define MAGIC "HRJPEGE1"
#define AT_BYTES 8
#define AT_HASH 16
#define AT_SIZE 32
#define AT_CHECK 40
#define HEAD 56
#define FILE_BYTES_MAX ((size_t)1 << 32)

struct hr_jpeg_entries {
    struct hr_arena arena; /* for the index's rows */
    struct hr_jpeg_index index;
    uint8_t *saved; /* the serialised form; the index's points are in it */
    size_t saved_bytes;
    size_t photo_bytes,
        scan_at; /* scan_at: where the photo's entropy-coded data begins */
    struct hr_hash128 photo;
    int32_t mcu_width, mcu_height;
};

static void put_le64(uint8_t *to, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t le64(const uint8_t *p)
{
    uint64_t v = 0;

    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static void put_hash(uint8_t *to, struct hr_hash128 hash)
{
    put_le64(to, hash.low);
    put_le64(to + 8, hash.high);
}

static struct hr_hash128 get_hash(const uint8_t *p)
{
    return (struct hr_hash128){.low = le64(p), .high = le64(p + 8)};
}

/* Over everything except itself. */
static struct hr_hash128 checksum(const uint8_t *saved, size_t bytes)
{
    struct hr_hash128 head = hr__hash128(saved, AT_CHECK);
    struct hr_hash128 rest = hr__hash128(saved + HEAD, bytes - HEAD);
    uint8_t both[32];

    put_hash(both, head);
    put_hash(both + 16, rest);
    return hr__hash128(both, sizeof both);
}

void hr_jpeg_entries_destroy(struct hr_jpeg_entries *entries)
{
    if (entries == NULL)
        return;
    hr__arena_finish(&entries->arena);
    hr__free(entries->saved);
    hr__free(entries);
}

/* ---- deserialising ---- */

static enum hr_err
check_saved(const uint8_t *saved, size_t bytes, struct hr_error *reterr)
{
    if (bytes < HEAD || memcmp(saved, MAGIC, 8) != 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "not a file of JPEG seek points");
    if (le64(saved + AT_SIZE) != bytes - HEAD ||
        !hr__hash_equal(get_hash(saved + AT_CHECK), checksum(saved, bytes)))
        return hr__fail(
            reterr, HR_ERR_FORMAT,
            "the seek points are damaged (checksum mismatch); create them again");
    return HR_OK;
}

static enum hr_err check_photo(size_t bytes, struct hr_hash128 hash, const void *data,
                               size_t data_bytes, struct hr_error *reterr)
{
    if (bytes == data_bytes && hr__hash_equal(hash, hr__hash128(data, data_bytes)))
        return HR_OK;
    return hr__fail(
        reterr, HR_ERR_STATE,
        "the seek points were made from a different file than this photo; create "
        "them again");
}

/* Takes ownership of `saved`, which has been checked against this photo. */
static enum hr_err
adopt(uint8_t *saved, size_t saved_bytes, const void *data, size_t bytes,
      struct hr_jpeg_entries **ret_entries, struct hr_error *reterr)
{
    struct hr_jpeg_entries *entries;
    struct hr_jpeg_header header;
    enum hr_err err;

    if (!hr__jpeg_parse(data, bytes, &header))
        return hr__fail(reterr, HR_ERR_FORMAT, "the photo cannot have seek points");
    entries = hr__calloc(1, sizeof *entries);
    if (entries == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for seek points");
    hr__arena_init(&entries->arena);
    entries->photo_bytes = bytes;
    entries->photo = get_hash(saved + AT_HASH);
    entries->scan_at = (size_t)(header.scan - (const uint8_t *)data);
    entries->mcu_width = 8 * header.component[0].h;
    entries->mcu_height = 8 * header.component[0].v;
    err = hr__jpeg_index_unpack(&entries->arena, saved + HEAD, saved_bytes - HEAD,
                                &entries->index);
    /* The index must be complete, so that decoding never writes to what threads share;
     * and all rows must lie inside the photo, which follows from the last one. */
    if (err == HR_OK &&
        (entries->index.rows != entries->index.mcus_y ||
         entries->index.row[entries->index.rows - 1].at > bytes - entries->scan_at))
        err = HR_ERR_FORMAT;
    if (err != HR_OK) {
        hr_jpeg_entries_destroy(entries);
        return hr__fail(reterr, err, "the seek points do not cover the whole photo");
    }
    entries->saved = saved;
    entries->saved_bytes = saved_bytes;
    *ret_entries = entries;
    return HR_OK;
}

enum hr_err hr_jpeg_entries_parse(const void *saved, size_t saved_bytes, const void *data,
                                  size_t bytes, struct hr_jpeg_entries **ret_entries,
                                  struct hr_error *reterr)
{
    uint8_t *copy;
    enum hr_err err;

    if (saved == NULL || data == NULL || ret_entries == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "an argument is NULL");
    HR_TRY(check_saved(saved, saved_bytes, reterr));
    HR_TRY(check_photo(le64((const uint8_t *)saved + AT_BYTES),
                       get_hash((const uint8_t *)saved + AT_HASH), data, bytes, reterr));
    copy = hr__malloc(saved_bytes);
    if (copy == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for seek points");
    memcpy(copy, saved, saved_bytes);
    err = adopt(copy, saved_bytes, data, bytes, ret_entries, reterr);
    if (err != HR_OK)
        hr__free(copy);
    return err;
}

enum hr_err
hr_jpeg_entries_load(const char *path, const void *data, size_t bytes,
                     struct hr_jpeg_entries **ret_entries, struct hr_error *reterr)
{
    char *saved;
    size_t saved_bytes;
    enum hr_err err;

    if (path == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "path must not be NULL");
    HR_TRY(hr__file_read(path, FILE_BYTES_MAX, &saved, &saved_bytes, reterr));
    err = hr_jpeg_entries_parse(saved, saved_bytes, data, bytes, ret_entries, reterr);
    hr__free(saved);
    return err;
}

/* ---- creating ---- */

static uint8_t *
pack(const struct hr_jpeg_index *index, const void *data, size_t bytes, size_t *ret_bytes)
{
    uint8_t *saved = hr__malloc(HEAD + hr__jpeg_index_room(index));
    size_t size;

    if (saved == NULL)
        return NULL;
    size = hr__jpeg_index_pack(index, saved + HEAD);
    memcpy(saved, MAGIC, 8);
    put_le64(saved + AT_BYTES, bytes);
    put_hash(saved + AT_HASH, hr__hash128(data, bytes));
    put_le64(saved + AT_SIZE, size);
    put_hash(saved + AT_CHECK, checksum(saved, HEAD + size));
    *ret_bytes = HEAD + size;
    return saved;
}

static enum hr_err
make(struct hr_jpeg_worker *worker, const void *data, size_t bytes, int32_t step,
     struct hr_jpeg_entries **ret_entries, struct hr_error *reterr)
{
    struct hr_jpeg_info info;
    struct hr_jpeg_index index;
    uint8_t *saved;
    size_t saved_bytes;
    enum hr_err err;

    HR_TRY(hr_jpeg_read_info(data, bytes, &info, reterr));
    if (worker->own == NULL)
        worker->own = hr__jpeg_create();
    if (worker->own == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for seek points");
    err = hr__jpeg_index_make(worker->own, &worker->arena, data, bytes, step, &index);
    if (err == HR_ERR_MEMORY)
        return hr__fail(reterr, err, "out of memory for seek points");
    if (err != HR_OK)
        return hr__fail(reterr, err, "this photo cannot have seek points: %s",
                        info.reason[0] != '\0' ? info.reason
                        : info.restart != 0    ? "it has restart markers"
                                               : "its data is damaged or too large");
    saved = pack(&index, data, bytes, &saved_bytes);
    if (saved == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for seek points");
    err = adopt(saved, saved_bytes, data, bytes, ret_entries, reterr);
    if (err != HR_OK)
        hr__free(saved);
    return err;
}

enum hr_err
hr_jpeg_entries_make(struct hr_jpeg_worker *worker, const void *data, size_t bytes,
                     int32_t step, struct hr_jpeg_entries **ret_entries,
                     struct hr_error *reterr)
{
    enum hr_err err;

    if (worker == NULL || data == NULL || ret_entries == NULL || step < 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "an argument is NULL or negative");
    err = make(worker, data, bytes, step, ret_entries, reterr);
    hr__arena_reset(&worker->arena);
    return err;
}

/* ---- using ---- */

void hr_jpeg_entries_store(const struct hr_jpeg_entries *entries, void *to)
{
    memcpy(to, entries->saved, entries->saved_bytes);
}

enum hr_err hr_jpeg_entries_save(const struct hr_jpeg_entries *entries, const char *path,
                                 struct hr_error *reterr)
{
    if (entries == NULL || path == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "an argument is NULL");
    return hr__file_replace(path, entries->saved, entries->saved_bytes, reterr);
}

void hr_jpeg_entries_describe(const struct hr_jpeg_entries *entries,
                              struct hr_jpeg_entries_info *ret_info)
{
    *ret_info = (struct hr_jpeg_entries_info){.step = entries->index.step,
                                              .rows = entries->index.rows,
                                              .mcu_height = entries->mcu_height,
                                              .bytes = entries->saved_bytes};
}

size_t hr_jpeg_entries_skip(const struct hr_jpeg_entries *entries,
                            const struct hr_jpeg_window *window)
{
    const struct hr_jpeg_index *index = &entries->index;
    int64_t top = window->y / entries->mcu_height, below = index->rows;
    size_t from, to = entries->photo_bytes;

    if (window->height > 0)
        below = ((int64_t)window->y + window->height - 1) / entries->mcu_height + 1;
    if (window->y < 0 || top >= index->rows || window->height < 0)
        return 0;
    from = index->row[top].at;
    if (below < index->rows)
        to = entries->scan_at + index->row[below].at;
    return entries->photo_bytes - (to - entries->scan_at - from);
}

enum hr_err hr__jpeg_entries_use(const struct hr_jpeg_entries *entries, const void *data,
                                 size_t bytes, struct hr_jpeg_index *ret_index,
                                 struct hr_error *reterr)
{
    *ret_index = (struct hr_jpeg_index){.step = 0};
    if (entries == NULL)
        return HR_OK;
    HR_TRY(check_photo(entries->photo_bytes, entries->photo, data, bytes, reterr));
    *ret_index = entries->index;
    return HR_OK;
}
