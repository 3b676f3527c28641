/*
 * store/packed.c - compressed files as objects of their unpacked bytes.
 *
 * Blocks lie between cuts. A cut is resumable where a stream or a mark is; the others
 * only bound the size of a block. A decoder that has made a block stays at the cut after
 * it, for the next one. A thread that needs a block which another thread is decoding
 * makes the block after it meanwhile, if decoding can begin there: so a gzip file is
 * decoded by all threads that read it.
 */
#include "store/packed_internal.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bisect.h"
#include "core/error.h"
#include "store/store_internal.h"

#define DECODERS_MAX 4 /* that wait for the next block, of all files */
#define BLOCKS_LEAST 4
/* Of a decoder: its window of the file, and what libraries take for streams that were
 * packed with their default levels. */
#define DECODER_BYTES ((uint64_t)1 << 20)
_Static_assert(HR_PACKED_LEAST == BLOCKS_LEAST * HR_PACKED_BLOCK_ROOM, "blocks");
_Static_assert(HR_PACKED_DECODERS == DECODERS_MAX * DECODER_BYTES, "decoders");
_Static_assert(HR_PACKED_THREAD == HR_PACKED_BLOCK_ROOM + DECODER_BYTES,
               "a block and a decoder");

/* ---- the cache; lock held ---- */

void hr__packed_block_free(struct hr_packed_cache *cache, struct hr_packed_block *block)
{
    cache->block_count--;
    hr__free(block->data);
    hr__free(block);
}

struct hr_packed_block *hr__packed_block_take(struct hr_packed_cache *cache)
{
    struct hr_packed_block *block = (void *)cache->blocks.oldest;

    while (block != NULL && block->users > 0)
        block = (void *)block->link.newer;
    if (block != NULL && cache->block_count >= cache->blocks_max) {
        hr__lru_remove(&cache->blocks, &block->link);
        block->packed->blocks[block->cut] = NULL;
        return block;
    }
    block = hr__calloc(1, sizeof *block);
    if (block == NULL)
        return NULL;
    block->data = hr__malloc(HR_PACKED_BLOCK_ROOM);
    if (block->data == NULL) {
        hr__free(block);
        return NULL;
    }
    cache->block_count++;
    return block;
}

struct hr_packed_block *hr__packed_block_claim(struct hr_packed *packed, size_t cut)
{
    struct hr_packed_block *block = hr__packed_block_take(packed->cache);

    if (block == NULL)
        return NULL;
    block->packed = packed;
    block->cut = cut;
    block->users = 0;
    block->ready = false;
    packed->blocks[cut] = block;
    return block;
}

void hr__packed_block_settle(struct hr_packed_block *block, bool ready, size_t bytes)
{
    struct hr_packed_cache *cache = block->packed->cache;

    block->ready = ready;
    block->bytes = bytes;
    if (ready) {
        hr__lru_add(&cache->blocks, &block->link);
    } else {
        block->packed->blocks[block->cut] = NULL;
        hr__packed_block_free(cache, block);
    }
    pthread_cond_broadcast(&cache->changed);
}

/* ---- cuts ---- */

size_t hr__packed_resumable(const struct hr_packed *packed, size_t cut)
{
    while (packed->cuts[cut].kind == HR_PACKED_PLAIN)
        cut--;
    return cut;
}

void hr__packed_cut_drop(struct hr_packed *packed)
{
    struct hr_packed_cut *cut = &packed->cuts[--packed->cut_count];
    struct hr_packed_block *block = packed->blocks[packed->cut_count];

    if (block != NULL) {
        hr__lru_remove(&packed->cache->blocks, &block->link);
        hr__packed_block_free(packed->cache, block);
    }
    packed->cache->mark_count -= cut->kind == HR_PACKED_MARK;
    hr__free(cut->window);
}

void hr__packed_thin(struct hr_packed_cache *cache)
{
    cache->span *= 2;
    for (struct hr_packed *packed = cache->files; packed != NULL; packed = packed->next) {
        uint64_t last = 0;

        for (size_t i = 0; i < packed->cut_count; i++) {
            struct hr_packed_cut *cut = &packed->cuts[i];

            if (cut->kind == HR_PACKED_MARK && cut->out - last < cache->span) {
                hr__free(cut->window);
                cut->window = NULL;
                cut->kind = HR_PACKED_PLAIN;
                cache->mark_count--;
            }
            if (cut->kind != HR_PACKED_PLAIN)
                last = cut->out;
        }
    }
}

/* ---- decoding blocks ---- */

/* Makes the block at the decoder's cut. Where the stream is damaged and no longer gives
 * bytes, HR_PACKED_FILL. */
static enum hr_err decode_block(struct hr_packed_decoder *decoder, unsigned char *to,
                                size_t bytes, struct hr_error *reterr)
{
    struct hr_packed *packed = decoder->packed;
    size_t done = 0;

    while (done < bytes) {
        const struct hr_packed_damage *damage = decoder->damage < packed->damage_count
                                                    ? &packed->damages[decoder->damage]
                                                    : NULL;
        size_t most = bytes - done, got = 0;
        enum hr_unpack_event event;
        bool end = false;
        enum hr_err code;

        if (damage != NULL && decoder->out >= damage->begin) {
            most = damage->end - decoder->out < most
                       ? (size_t)(damage->end - decoder->out)
                       : most;
            memset(to + done, HR_PACKED_FILL, most);
            done += most;
            if (decoder->out + most == damage->end)
                hr__packed_decoder_seek(decoder, damage->next, damage->end);
            else
                decoder->out += most;
            continue;
        }
        if (damage != NULL && damage->begin - decoder->out < most)
            most = (size_t)(damage->begin - decoder->out);
        code = hr__packed_decoder_run(decoder, false, to + done, most, &got, &event, &end,
                                      reterr);
        done += got;
        if (code == HR_ERR_FORMAT || end)
            return hr__fail(reterr, HR_ERR_STATE, "%s changed since the graph was opened",
                            packed->uri);
        if (code != HR_OK)
            return code;
    }
    return HR_OK;
}

static size_t block_bytes(const struct hr_packed *packed, size_t cut)
{
    return (size_t)(packed->cuts[cut + 1].out - packed->cuts[cut].out);
}

/* Makes the blocks from the decoder's cut to `cut`; lock held, but not meanwhile. Blocks
 * that are there, or that another thread makes, are decoded into scratch memory. */
static enum hr_err
produce(struct hr_packed_decoder *decoder, size_t cut, struct hr_error *reterr)
{
    struct hr_packed *packed = decoder->packed;
    struct hr_packed_cache *cache = packed->cache;
    enum hr_err code = HR_OK;

    for (; code == HR_OK && decoder->cut <= cut;) {
        size_t at = decoder->cut;
        bool own = packed->blocks[at] == NULL;
        struct hr_packed_block *block =
            own ? hr__packed_block_claim(packed, at) : hr__packed_block_take(cache);

        if (block == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory to unpack %s",
                            packed->uri);
        pthread_mutex_unlock(&cache->lock);
        code = decode_block(decoder, block->data, block_bytes(packed, at), reterr);
        pthread_mutex_lock(&cache->lock);
        if (own)
            hr__packed_block_settle(block, code == HR_OK, block_bytes(packed, at));
        else
            hr__packed_block_free(cache, block);
        decoder->cut = at + 1;
    }
    return code;
}

static void drop_decoder(struct hr_packed_cache *cache, struct hr_packed_decoder *decoder)
{
    struct hr_packed_decoder **link = &cache->decoders;

    while (*link != decoder)
        link = &(*link)->next;
    *link = decoder->next;
    hr__packed_decoder_destroy(decoder);
}

/* Keeps the decoders that were used last. */
static void trim_decoders(struct hr_packed_cache *cache)
{
    struct hr_packed_decoder *decoder = cache->decoders, *last = NULL;
    size_t idle = 0;

    for (; decoder != NULL; decoder = decoder->next)
        if (!decoder->busy) {
            last = decoder;
            idle++;
        }
    if (idle > DECODERS_MAX)
        drop_decoder(cache, last);
}

/* The decoder to make block `cut` with, busy from now on. NULL, and HR_OK: another
 * thread's decoder will come by. */
static enum hr_err
choose_decoder(struct hr_packed *packed, size_t cut,
               struct hr_packed_decoder **ret_decoder, struct hr_error *reterr)
{
    struct hr_packed_cache *cache = packed->cache;
    struct hr_packed_decoder *best = NULL;
    size_t from = hr__packed_resumable(packed, cut);
    bool coming = false;
    enum hr_err code;

    *ret_decoder = NULL;
    for (struct hr_packed_decoder *one = cache->decoders; one != NULL; one = one->next) {
        if (one->packed != packed || one->cut < from || one->cut > cut)
            continue;
        if (one->busy)
            coming = true;
        else if (best == NULL || best->cut < one->cut)
            best = one;
    }
    if (best == NULL && coming)
        return HR_OK;
    if (best != NULL && !hr__store_is_same(&best->object)) {
        drop_decoder(cache, best);
        best = NULL;
    }
    if (best == NULL) {
        HR_TRY(hr__packed_decoder_create(packed, &best, reterr));
        code = hr__packed_decoder_go(best, from, reterr);
        if (code != HR_OK) {
            hr__packed_decoder_destroy(best);
            return code;
        }
        best->next = cache->decoders;
        cache->decoders = best;
    }
    best->busy = true;
    *ret_decoder = best;
    return HR_OK;
}

/* Makes block `cut`, if no other thread is about to; *ret_made is false then. */
static enum hr_err
make_block(struct hr_packed *packed, size_t cut, bool *ret_made, struct hr_error *reterr)
{
    struct hr_packed_cache *cache = packed->cache;
    struct hr_packed_decoder *decoder;
    enum hr_err code;

    HR_TRY(choose_decoder(packed, cut, &decoder, reterr));
    *ret_made = decoder != NULL;
    if (decoder == NULL)
        return HR_OK;
    code = produce(decoder, cut, reterr);
    decoder->busy = false;
    if (code != HR_OK)
        drop_decoder(cache, decoder);
    else
        trim_decoders(cache);
    pthread_cond_broadcast(&cache->changed);
    return code;
}

/* A block after `cut` that can be made while another thread makes `cut`, where the file
 * is read forward. */
static size_t find_next(const struct hr_packed *packed, size_t cut)
{
    size_t ahead = packed->cache->blocks_max / 4, at;

    if (cut > 0 && packed->blocks[cut - 1] == NULL)
        return 0;
    for (at = cut + 1; at < packed->cut_count - 1 && at <= cut + ahead; at++)
        if (packed->blocks[at] == NULL && packed->cuts[at].kind != HR_PACKED_PLAIN)
            return at;
    return 0;
}

/* The block, in use; lock held, but not while it is made. */
static enum hr_err get_block(struct hr_packed *packed, size_t cut,
                             struct hr_packed_block **ret_block, struct hr_error *reterr)
{
    struct hr_packed_cache *cache = packed->cache;
    struct hr_packed_block *block;

    while ((block = packed->blocks[cut]) == NULL || !block->ready) {
        size_t next = block != NULL ? find_next(packed, cut) : 0;
        bool made = false;

        if (block == NULL)
            HR_TRY(make_block(packed, cut, &made, reterr));
        else if (next > 0 && make_block(packed, next, &made, NULL) != HR_OK)
            made = true; /* who needs it reports the error */
        if (!made)
            pthread_cond_wait(&cache->changed, &cache->lock);
    }
    hr__lru_use(&cache->blocks, &block->link);
    block->users++;
    *ret_block = block;
    return HR_OK;
}

/* ---- reading ---- */

/* The cut that begins the block with byte `at`. */
static size_t find_cut(const struct hr_packed *packed, uint64_t at)
{
    return HR_BISECT(packed->cuts, packed->cut_count - 1, out, at);
}

static enum hr_err read_packed(struct hr_packed *packed, uint64_t offset, char *to,
                               size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    struct hr_packed_cache *cache = packed->cache;
    size_t cut = find_cut(packed, offset);
    enum hr_err code = HR_OK;

    for (; *ret_got < bytes; cut++) {
        struct hr_packed_block *block;
        size_t at = (size_t)(offset + *ret_got - packed->cuts[cut].out), part;

        pthread_mutex_lock(&cache->lock);
        code = get_block(packed, cut, &block, reterr);
        pthread_mutex_unlock(&cache->lock);
        if (code != HR_OK)
            return code;
        part =
            block->bytes - at < bytes - *ret_got ? block->bytes - at : bytes - *ret_got;
        memcpy(to + *ret_got, block->data + at, part);
        *ret_got += part;
        pthread_mutex_lock(&cache->lock);
        block->users--;
        pthread_mutex_unlock(&cache->lock);
    }
    return HR_OK;
}

enum hr_err hr__packed_check(const struct hr_packed *packed, uint64_t offset,
                             size_t bytes, struct hr_error *reterr)
{
    for (size_t i = 0; i < packed->damage_count; i++) {
        const struct hr_packed_damage *damage = &packed->damages[i];

        if (offset >= damage->end || offset + bytes <= damage->begin)
            continue;
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "%s: byte %llu of the file: %s: bytes %llu to %llu of what it "
                        "unpacks to are lost",
                        packed->uri, (unsigned long long)damage->in, damage->why,
                        (unsigned long long)damage->begin,
                        (unsigned long long)damage->end);
    }
    return HR_OK;
}

static enum hr_err strict_read(struct hr_object *object, uint64_t offset, void *data,
                               size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    HR_TRY(hr__packed_check(object->as.own, offset, bytes, reterr));
    return read_packed(object->as.own, offset, data, bytes, ret_got, reterr);
}

static enum hr_err scanned_read(struct hr_object *object, uint64_t offset, void *data,
                                size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    return read_packed(object->as.own, offset, data, bytes, ret_got, reterr);
}

/* No thread knows before how long it takes. */
static int64_t
cannot_tell(struct hr_object *object, uint64_t offset, void *data, size_t bytes)
{
    (void)object, (void)offset, (void)data, (void)bytes;
    return -1;
}

static void close_nothing(struct hr_object *object)
{
    (void)object; /* hr__packed_close does */
}

static bool is_same(const struct hr_object *object)
{
    const struct hr_packed *packed = object->as.own;

    return packed->file == NULL || hr__store_is_same(packed->file);
}

/* Not in the table of schemes: such objects are made here. Reads of the file retry. */
static const struct hr_store strict_store = {.scheme = "packed",
                                             .close = close_nothing,
                                             .read = strict_read,
                                             .retries = true,
                                             .is_same = is_same,
                                             .read_ready = cannot_tell};
static const struct hr_store scanned_store = {.scheme = "packed",
                                              .close = close_nothing,
                                              .read = scanned_read,
                                              .retries = true,
                                              .is_same = is_same,
                                              .read_ready = cannot_tell};

void hr__packed_set_objects(struct hr_packed *packed, uint64_t bytes)
{
    packed->strict.bytes = bytes;
    packed->strict.store = &strict_store;
    packed->strict.uri = packed->uri;
    packed->strict.as.own = packed;
    packed->scanned = packed->strict;
    packed->scanned.store = &scanned_store;
}

void hr__packed_watch(struct hr_packed *packed, const struct hr_object *file)
{
    packed->file = file;
}

struct hr_object *hr__packed_object(struct hr_packed *packed)
{
    return &packed->strict;
}

struct hr_object *hr__packed_scanned(struct hr_packed *packed)
{
    return &packed->scanned;
}

size_t hr__packed_entries(const struct hr_packed *packed)
{
    size_t count = 0;

    for (size_t i = 0; i + 1 < packed->cut_count; i++)
        count += packed->cuts[i].kind != HR_PACKED_PLAIN;
    return count;
}

/* ---- life ---- */

enum hr_err
hr__packed_look(const struct hr_packed_limits *limits, const char *uri, const void *data,
                size_t bytes, enum hr_packing *ret_packing, struct hr_error *reterr)
{
    enum hr_packing named = hr__packing_of_name(uri);
    bool plain = limits->is_plain != NULL && limits->is_plain(data, bytes);

    *ret_packing = plain ? HR_PACKING_NONE : hr__packing_of(data, bytes);
    if (*ret_packing == HR_PACKING_NONE && !plain && limits->is_plain != NULL &&
        hr__packing_is_zlib(data, bytes))
        *ret_packing = HR_PACKING_ZLIB;
    if (*ret_packing != HR_PACKING_NONE || named == HR_PACKING_NONE)
        return HR_OK;
    return hr__fail(
        reterr, HR_ERR_FORMAT,
        "%s: byte 0: its name says %s, and it %s: its beginning is damaged, or "
        "it has the wrong name",
        uri, hr__packing_name(named), bytes == 0 ? "is empty" : "does not begin so");
}

static size_t blocks_within(uint64_t bytes)
{
    size_t blocks = (size_t)(bytes / HR_PACKED_BLOCK_ROOM);

    return blocks > BLOCKS_LEAST ? blocks : BLOCKS_LEAST;
}

void hr__packed_cache_limit(struct hr_packed_cache *cache, uint64_t bytes)
{
    struct hr_packed_block *block, *next;

    pthread_mutex_lock(&cache->lock);
    cache->blocks_max = blocks_within(bytes);
    for (block = (void *)cache->blocks.oldest;
         block != NULL && cache->block_count > cache->blocks_max; block = next) {
        next = (void *)block->link.newer;
        if (block->users > 0)
            continue;
        hr__lru_remove(&cache->blocks, &block->link);
        block->packed->blocks[block->cut] = NULL;
        hr__packed_block_free(cache, block);
    }
    pthread_mutex_unlock(&cache->lock);
}

enum hr_err
hr__packed_cache_create(const struct hr_packed_limits *limits,
                        struct hr_packed_cache **ret_cache, struct hr_error *reterr)
{
    struct hr_packed_cache *cache = hr__calloc(1, sizeof *cache);

    if (cache == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    cache->limits = *limits;
    cache->span = HR_PACKED_BLOCK_BYTES;
    cache->blocks_max = blocks_within(limits->cache_bytes);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->changed, NULL);
    *ret_cache = cache;
    return HR_OK;
}

void hr__packed_cache_destroy(struct hr_packed_cache *cache)
{
    if (cache == NULL)
        return;
    assert(cache->files == NULL && cache->decoders == NULL && cache->block_count == 0);
    pthread_mutex_destroy(&cache->lock);
    pthread_cond_destroy(&cache->changed);
    hr__free(cache);
}

void hr__packed_close(struct hr_packed *packed)
{
    struct hr_packed_cache *cache;
    struct hr_packed **link;
    struct hr_packed_decoder *next;

    if (packed == NULL)
        return;
    cache = packed->cache;
    for (struct hr_packed_decoder *one = cache->decoders; one != NULL; one = next) {
        next = one->next;
        if (one->packed == packed)
            drop_decoder(cache, one);
    }
    while (packed->cut_count > 0)
        hr__packed_cut_drop(packed);
    link = &cache->files;
    while (*link != packed)
        link = &(*link)->next;
    *link = packed->next;
    hr__free(packed->cuts);
    hr__free(packed->blocks);
    hr__free(packed->damages);
    hr__free(packed);
}
