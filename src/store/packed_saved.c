/*
 * store/packed_saved.c - what the opening of a compressed file has found, as bytes, so
 * that the next opening decodes nothing: docs/formats/source-index.md.
 *
 * Bytes may lie. Cuts are checked for what reading relies on: they go forward, a block
 * has room for what is between two of them, and windows have the size of deflate's.
 * Decoding from a false place gives errors or wrong bytes, as a changed file would.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "store/packed_internal.h"

struct head {
    uint32_t packing, zero;
    uint64_t bytes, cuts; /* unpacked; the cuts follow, then their windows */
};

struct saved_cut {
    uint64_t out, in;
    uint32_t window_bytes;
    uint8_t kind, bits, value, zero;
};

_Static_assert(sizeof(struct head) == 24 && sizeof(struct saved_cut) == 24,
               "the layout of the file");

void *hr__packed_save(const struct hr_packed *packed, size_t *ret_bytes)
{
    struct head head = {.packing = (uint32_t)packed->packing,
                        .bytes = packed->strict.bytes,
                        .cuts = packed->cut_count};
    size_t bytes = sizeof head + packed->cut_count * sizeof(struct saved_cut), all;
    char *data, *window;

    if (packed->damage_count > 0)
        return NULL;
    all = bytes;
    for (size_t i = 0; i < packed->cut_count; i++)
        all += packed->cuts[i].window_bytes;
    all = (all + 7) / 8 * 8;
    data = hr__calloc(1, all);
    if (data == NULL)
        return NULL;
    memcpy(data, &head, sizeof head);
    window = data + bytes;
    for (size_t i = 0; i < packed->cut_count; i++) {
        const struct hr_packed_cut *cut = &packed->cuts[i];
        bool mark = cut->kind == HR_PACKED_MARK;
        struct saved_cut made = {.out = cut->out,
                                 .in = cut->in,
                                 .window_bytes = mark ? cut->window_bytes : 0,
                                 .kind = (uint8_t)cut->kind,
                                 .bits = cut->bits,
                                 .value = cut->value};

        memcpy(data + sizeof head + i * sizeof made, &made, sizeof made);
        if (made.window_bytes > 0)
            memcpy(window, cut->window, made.window_bytes);
        window += made.window_bytes;
    }
    *ret_bytes = all;
    return data;
}

bool hr__packed_is_damaged(const struct hr_packed *packed)
{
    return packed->damage_count > 0;
}

/* Whether reading can rely on the cut that follows `last` (NULL: it is the first). */
static bool is_possible(const struct saved_cut *cut, const struct saved_cut *last,
                        uint64_t file_bytes)
{
    if (last == NULL)
        return cut->out == 0 && cut->in == 0 && cut->kind == HR_PACKED_STREAM;
    return cut->out > last->out && cut->out - last->out <= HR_PACKED_BLOCK_ROOM &&
           cut->in >= last->in && cut->in <= file_bytes && cut->kind <= HR_PACKED_MARK &&
           cut->bits < 8 &&
           cut->window_bytes <= (cut->kind == HR_PACKED_MARK ? HR_UNPACK_WINDOW : 0);
}

/* HR_ERR_FORMAT: the bytes are not as they are written. */
static enum hr_err
add_cuts(struct hr_packed *packed, const struct head *head, const char *at, size_t left)
{
    struct saved_cut cut, last;
    const char *window = at + head->cuts * sizeof cut;

    if (head->cuts == 0 || head->cuts > left / sizeof cut)
        return HR_ERR_FORMAT;
    left -= head->cuts * sizeof cut;
    if (!hr__array_room(&packed->cuts, 0, &packed->cut_room, head->cuts,
                        sizeof *packed->cuts) ||
        !hr__array_room(&packed->blocks, 0, &packed->block_room, head->cuts,
                        sizeof *packed->blocks))
        return HR_ERR_MEMORY;
    for (uint64_t i = 0; i < head->cuts; i++, at += sizeof cut) {
        struct hr_packed_cut *made = &packed->cuts[i];

        memcpy(&cut, at, sizeof cut);
        if (!is_possible(&cut, i > 0 ? &last : NULL, packed->file_bytes) ||
            cut.window_bytes > left)
            return HR_ERR_FORMAT;
        *made = (struct hr_packed_cut){.out = cut.out,
                                       .in = cut.in,
                                       .kind = (enum hr_packed_cut_kind)cut.kind,
                                       .bits = cut.bits,
                                       .value = cut.value,
                                       .window_bytes = (uint16_t)cut.window_bytes};
        if (cut.kind == HR_PACKED_MARK) {
            made->window = hr__malloc(cut.window_bytes + 1);
            if (made->window == NULL)
                return HR_ERR_MEMORY;
            memcpy(made->window, window, cut.window_bytes);
            packed->cache->mark_count++;
        }
        packed->blocks[packed->cut_count++] = NULL;
        window += cut.window_bytes;
        left -= cut.window_bytes;
        last = cut;
    }
    return last.out == head->bytes && left < 8 ? HR_OK : HR_ERR_FORMAT;
}

static bool is_allowed(const struct hr_packed_limits *limits, const struct head *head,
                       uint64_t file_bytes)
{
    return head->bytes <= limits->bytes_max &&
           (head->bytes <= HR_PACKED_RATIO_FROM ||
            head->bytes / limits->ratio_max <= file_bytes);
}

/* Whether the build and the machine can decode it. */
static enum hr_err can_unpack(enum hr_packing packing)
{
    struct hr_unpack *unpack = NULL;

    HR_TRY(hr__unpack_create(packing, &unpack, NULL));
    hr__unpack_destroy(unpack);
    return HR_OK;
}

enum hr_err hr__packed_restore(struct hr_packed_cache *cache, const char *uri,
                               const struct hr_object *file, const void *data,
                               size_t bytes, struct hr_packed **ret_packed)
{
    struct hr_packed *packed;
    struct head head;
    enum hr_err code;

    if (bytes < sizeof head)
        return HR_ERR_FORMAT;
    memcpy(&head, data, sizeof head);
    if (head.packing < HR_PACKING_GZIP || head.packing > HR_PACKING_ZSTD ||
        !is_allowed(&cache->limits, &head, file->bytes))
        return HR_ERR_FORMAT;
    HR_TRY(can_unpack((enum hr_packing)head.packing));
    packed = hr__calloc(1, sizeof *packed);
    if (packed == NULL)
        return HR_ERR_MEMORY;
    *packed = (struct hr_packed){.cache = cache,
                                 .uri = uri,
                                 .packing = (enum hr_packing)head.packing,
                                 .file_bytes = file->bytes,
                                 .next = cache->files};
    cache->files = packed;
    packed->strict.identity = file->identity;
    code = add_cuts(packed, &head, (const char *)data + sizeof head, bytes - sizeof head);
    if (code != HR_OK) {
        hr__packed_close(packed);
        return code;
    }
    hr__packed_set_objects(packed, head.bytes);
    while (cache->mark_count >= HR_PACKED_MARKS_MAX)
        hr__packed_thin(cache);
    *ret_packed = packed;
    return HR_OK;
}
