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
#include "store/window.h"

#define INPUT_BYTES ((size_t)128 << 10)
#define INPUT_REMOTE_BYTES ((size_t)2 << 20)
#define DECODERS_MAX 4 /* that wait for the next block, of all files */
#define BLOCKS_LEAST 4
/* Of a decoder: its window of the file, and what libraries take for streams that were
 * packed with their default levels. */
#define DECODER_BYTES ((uint64_t)1 << 20)
_Static_assert(HR_PACKED_LEAST == BLOCKS_LEAST * HR_PACKED_BLOCK_ROOM, "blocks");
_Static_assert(HR_PACKED_DECODERS == DECODERS_MAX * DECODER_BYTES, "decoders");
_Static_assert(HR_PACKED_THREAD == HR_PACKED_BLOCK_ROOM + DECODER_BYTES,
               "a block and a decoder");
#define ROUND 512 /* damage of unknown length is made a multiple: blocks of tar */
#define CUT_BYTES ((uint64_t)256 << 10)    /* that do not count where a file ends early */
#define CUT_GZIP_BYTES ((uint64_t)1 << 20) /* gzip: of streams that are longer */
#define CUT_GZIP_RATIO 16
#define TRIED_RATIO 16 /* bytes decoded in search of streams, by those of the file */
#define FILL 255 /* what cannot be decoded: no format takes it for data or its end */

struct hr_packed_decoder {
    struct hr_packed *packed;
    struct hr_unpack *unpack;
    enum hr_packing packing;
    struct hr_object object; /* if is_open */
    bool is_open, busy;
    bool between; /* a stream begins next */
    size_t cut;   /* of the block that is made next */
    uint64_t in, out;
    size_t damage; /* the next one */
    unsigned char *input;
    size_t room, used, have;        /* of the input */
    struct hr_packed_decoder *next; /* older */
};

/* ---- decoders ---- */

static void decoder_close_file(struct hr_packed_decoder *decoder)
{
    if (decoder->is_open)
        hr__store_close(&decoder->object);
    decoder->is_open = false;
}

static void decoder_destroy(struct hr_packed_decoder *decoder)
{
    if (decoder == NULL)
        return;
    decoder_close_file(decoder);
    hr__unpack_destroy(decoder->unpack);
    hr__free(decoder->input);
    hr__free(decoder);
}

static enum hr_err decoder_set(struct hr_packed_decoder *decoder,
                               struct hr_packed *packed, struct hr_error *reterr)
{
    const char *path;
    size_t room =
        hr__store_is_remote(packed->uri, &path) ? INPUT_REMOTE_BYTES : INPUT_BYTES;
    bool same;

    decoder->packed = packed;
    if (decoder->unpack != NULL && decoder->packing != packed->packing) {
        hr__unpack_destroy(decoder->unpack);
        decoder->unpack = NULL;
    }
    if (decoder->unpack == NULL)
        HR_TRY(hr__unpack_create(packed->packing, &decoder->unpack, reterr));
    decoder->packing = packed->packing;
    if (decoder->room < room) {
        hr__free(decoder->input);
        decoder->room = 0;
        decoder->input = hr__malloc(room);
        if (decoder->input == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        decoder->room = room;
    }
    HR_TRY(hr__store_open(packed->uri, &decoder->object, reterr));
    decoder->is_open = true;
    same = packed->file_bytes == 0 ||
           hr__hash_equal(decoder->object.identity, packed->strict.identity);
    if (same)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_STATE, "%s changed since the graph was opened",
                    packed->uri);
}

/* A decoder of the file, at no place yet. */
static enum hr_err
decoder_create(struct hr_packed *packed, struct hr_packed_decoder **ret_decoder,
               struct hr_error *reterr)
{
    struct hr_packed_decoder *decoder = hr__calloc(1, sizeof *decoder);
    enum hr_err code;

    if (decoder == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = decoder_set(decoder, packed, reterr);
    if (code == HR_OK)
        *ret_decoder = decoder;
    else
        decoder_destroy(decoder);
    return code;
}

/* Where the decoder is in the file. */
static void decoder_seek(struct hr_packed_decoder *decoder, uint64_t in, uint64_t out)
{
    decoder->in = in;
    decoder->out = out;
    decoder->used = decoder->have = 0;
    decoder->between = true;
    decoder->damage = 0;
    while (decoder->damage < decoder->packed->damage_count &&
           decoder->packed->damages[decoder->damage].end <= out)
        decoder->damage++;
}

/* Goes to a cut that is resumable. */
static enum hr_err
decoder_go(struct hr_packed_decoder *decoder, size_t at, struct hr_error *reterr)
{
    const struct hr_packed_cut *cut = &decoder->packed->cuts[at];

    decoder_seek(decoder, cut->in, cut->out);
    decoder->cut = at;
    if (cut->kind != HR_PACKED_MARK)
        return HR_OK;
    decoder->between = false;
    return hr__unpack_resume(decoder->unpack, cut->bits, cut->value, cut->window,
                             cut->window_bytes, reterr);
}

/* Input, if there is more; *ret_end at the end of the file. */
static enum hr_err
decoder_fill(struct hr_packed_decoder *decoder, bool *ret_end, struct hr_error *reterr)
{
    uint64_t left = decoder->object.bytes - decoder->in;
    size_t bytes = left < decoder->room ? (size_t)left : decoder->room;
    bool waited;

    *ret_end = false;
    if (decoder->used < decoder->have)
        return HR_OK;
    decoder->used = decoder->have = 0;
    *ret_end = bytes == 0;
    if (bytes == 0)
        return HR_OK;
    HR_TRY(hr__store_read(&decoder->object, decoder->in, decoder->input, bytes, NULL,
                          &waited, reterr));
    decoder->have = bytes;
    return HR_OK;
}

/* Decodes up to `bytes` bytes to `to`, to an event or the end of the file. */
static enum hr_err
decoder_run(struct hr_packed_decoder *decoder, bool marks, unsigned char *to,
            size_t bytes, size_t *ret_bytes, enum hr_unpack_event *ret_event,
            bool *ret_end, struct hr_error *reterr)
{
    struct hr_unpack_io io;
    enum hr_err code;

    *ret_bytes = 0;
    *ret_event = HR_UNPACK_MORE;
    HR_TRY(decoder_fill(decoder, ret_end, reterr));
    if (decoder->between)
        HR_TRY(hr__unpack_begin(decoder->unpack, reterr));
    decoder->between = false;
    io = (struct hr_unpack_io){decoder->input + decoder->used,
                               decoder->have - decoder->used, to, bytes};
    code = hr__unpack_run(decoder->unpack, marks, &io, ret_event, reterr);
    decoder->in += decoder->have - decoder->used - io.in_bytes;
    decoder->used = decoder->have - io.in_bytes;
    *ret_bytes = bytes - io.out_bytes;
    decoder->out += *ret_bytes;
    decoder->between = code == HR_OK && *ret_event == HR_UNPACK_END;
    /* what was decoded may still have to be given out */
    *ret_end = *ret_end && *ret_bytes == 0 && *ret_event == HR_UNPACK_MORE;
    return code;
}

/* ---- the cache; lock held ---- */

static void free_block(struct hr_packed_cache *cache, struct hr_packed_block *block)
{
    cache->block_count--;
    hr__free(block->data);
    hr__free(block);
}

/* A block that nobody needs, or a new one. Neither is in the table of a file. */
static struct hr_packed_block *take_block(struct hr_packed_cache *cache)
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

/* Enters a block that is about to be decoded. */
static struct hr_packed_block *claim_block(struct hr_packed *packed, size_t cut)
{
    struct hr_packed_block *block = take_block(packed->cache);

    if (block == NULL)
        return NULL;
    block->packed = packed;
    block->cut = cut;
    block->users = 0;
    block->ready = false;
    packed->blocks[cut] = block;
    return block;
}

static void settle_block(struct hr_packed_block *block, bool ready, size_t bytes)
{
    struct hr_packed_cache *cache = block->packed->cache;

    block->ready = ready;
    block->bytes = bytes;
    if (ready) {
        hr__lru_add(&cache->blocks, &block->link);
    } else {
        block->packed->blocks[block->cut] = NULL;
        free_block(cache, block);
    }
    pthread_cond_broadcast(&cache->changed);
}

/* ---- decoding blocks ---- */

/* Makes the block at the decoder's cut. Where the stream is damaged and no longer gives
 * bytes, FILL. */
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
            memset(to + done, FILL, most);
            done += most;
            if (decoder->out + most == damage->end)
                decoder_seek(decoder, damage->next, damage->end);
            else
                decoder->out += most;
            continue;
        }
        if (damage != NULL && damage->begin - decoder->out < most)
            most = (size_t)(damage->begin - decoder->out);
        code = decoder_run(decoder, false, to + done, most, &got, &event, &end, reterr);
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
        struct hr_packed_block *block = own ? claim_block(packed, at) : take_block(cache);

        if (block == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory to unpack %s",
                            packed->uri);
        pthread_mutex_unlock(&cache->lock);
        code = decode_block(decoder, block->data, block_bytes(packed, at), reterr);
        pthread_mutex_lock(&cache->lock);
        if (own)
            settle_block(block, code == HR_OK, block_bytes(packed, at));
        else
            free_block(cache, block);
        decoder->cut = at + 1;
    }
    return code;
}

/* The last cut up to `cut` where decoding can begin. */
static size_t resumable(const struct hr_packed *packed, size_t cut)
{
    while (packed->cuts[cut].kind == HR_PACKED_PLAIN)
        cut--;
    return cut;
}

static void drop_decoder(struct hr_packed_cache *cache, struct hr_packed_decoder *decoder)
{
    struct hr_packed_decoder **link = &cache->decoders;

    while (*link != decoder)
        link = &(*link)->next;
    *link = decoder->next;
    decoder_destroy(decoder);
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
    size_t from = resumable(packed, cut);
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
        HR_TRY(decoder_create(packed, &best, reterr));
        code = decoder_go(best, from, reterr);
        if (code != HR_OK) {
            decoder_destroy(best);
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

/* ---- opening: cuts ---- */

struct opening {
    struct hr_packed *packed;
    struct hr_packed_decoder *decoder;
    struct hr_window window;       /* of the file, for what is no stream */
    struct hr_packed_block *block; /* of the last cut */
    size_t filled;
    bool spoiled;   /* it lacks its first bytes */
    uint64_t safe;  /* decoded when CUT_BYTES of the file were left */
    uint64_t tried; /* bytes that find_stream() decoded in vain */
    struct hr_unpack_mark mark;
    struct hr_error why;
    struct hr_error *error;
};

static enum hr_err no_memory(struct opening *opening)
{
    return hr__fail(opening->error, HR_ERR_MEMORY, "out of memory to unpack %s",
                    opening->packed->uri);
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

static void end_block(struct opening *opening)
{
    if (opening->block != NULL)
        settle_block(opening->block, opening->filled > 0 && !opening->spoiled,
                     opening->filled);
    opening->block = NULL;
    opening->filled = 0;
    opening->spoiled = false;
}

static bool keep_window(struct opening *opening, struct hr_packed_cut *cut)
{
    const struct hr_unpack_mark *mark = &opening->mark;

    cut->window = hr__malloc(mark->window_bytes + 1);
    if (cut->window == NULL)
        return false;
    memcpy(cut->window, mark->window, mark->window_bytes);
    cut->window_bytes = (uint16_t)mark->window_bytes;
    cut->bits = mark->bits;
    cut->value = mark->value;
    return true;
}

/* Ends the block at the decoder's place, and begins the next one. */
static enum hr_err add_cut(struct opening *opening, enum hr_packed_cut_kind kind)
{
    struct hr_packed *packed = opening->packed;
    struct hr_packed_cut cut = {
        .out = opening->decoder->out, .in = opening->decoder->in, .kind = kind};

    end_block(opening);
    if (!hr__array_room(&packed->cuts, packed->cut_count, &packed->cut_room, 1,
                        sizeof *packed->cuts) ||
        !hr__array_room(&packed->blocks, packed->cut_count, &packed->block_room, 1,
                        sizeof(struct hr_packed_block *)) ||
        (kind == HR_PACKED_MARK && !keep_window(opening, &cut)))
        return no_memory(opening);
    packed->blocks[packed->cut_count] = NULL;
    packed->cuts[packed->cut_count++] = cut;
    if (kind == HR_PACKED_MARK && ++packed->cache->mark_count >= HR_PACKED_MARKS_MAX)
        hr__packed_thin(packed->cache);
    opening->block = claim_block(packed, packed->cut_count - 1);
    return opening->block != NULL ? HR_OK : no_memory(opening);
}

static void drop_cut(struct hr_packed *packed)
{
    struct hr_packed_cut *cut = &packed->cuts[--packed->cut_count];
    struct hr_packed_block *block = packed->blocks[packed->cut_count];

    if (block != NULL) {
        hr__lru_remove(&packed->cache->blocks, &block->link);
        free_block(packed->cache, block);
    }
    packed->cache->mark_count -= cut->kind == HR_PACKED_MARK;
    hr__free(cut->window);
}

/* Forgets what was decoded from `out` on. */
static enum hr_err roll_back(struct opening *opening, uint64_t out)
{
    struct hr_packed *packed = opening->packed;
    size_t last = packed->cut_count - 1;

    if (packed->cuts[last].out > out) {
        opening->spoiled = true;
        end_block(opening);
        for (; packed->cuts[last].out > out; last--)
            drop_cut(packed);
        opening->block = packed->blocks[last];
        if (opening->block != NULL) {
            hr__lru_remove(&packed->cache->blocks, &opening->block->link);
        } else {
            opening->spoiled = true;
            opening->block = claim_block(packed, last);
        }
        if (opening->block == NULL)
            return no_memory(opening);
    }
    opening->decoder->out = out;
    opening->filled = (size_t)(out - packed->cuts[last].out);
    return HR_OK;
}

/* Bytes since the last cut where decoding can begin. */
static uint64_t since_resumable(const struct opening *opening)
{
    const struct hr_packed *packed = opening->packed;

    return opening->decoder->out -
           packed->cuts[resumable(packed, packed->cut_count - 1)].out;
}

/* After each event: a cut where one is due. A stream that ends a little after a plain cut
 * gets one of its own: else streams of about a block's size would have none. */
static enum hr_err maybe_cut(struct opening *opening, enum hr_unpack_event event)
{
    if (event == HR_UNPACK_END && opening->filled > 0 &&
        since_resumable(opening) >= HR_PACKED_BLOCK_BYTES)
        return add_cut(opening, HR_PACKED_STREAM);
    if (opening->filled == HR_PACKED_BLOCK_ROOM)
        return add_cut(opening, HR_PACKED_PLAIN);
    if (opening->filled < HR_PACKED_BLOCK_BYTES || event != HR_UNPACK_MARK ||
        since_resumable(opening) < opening->packed->cache->span)
        return HR_OK;
    hr__unpack_mark(opening->decoder->unpack, &opening->mark);
    return add_cut(opening, HR_PACKED_MARK);
}

static enum hr_err check_limits(struct opening *opening)
{
    const struct hr_packed_limits *limits = &opening->packed->cache->limits;
    const struct hr_packed_decoder *decoder = opening->decoder;

    if (decoder->out > limits->bytes_max)
        return hr__fail(opening->error, HR_ERR_LIMIT,
                        "%s unpacks to more than unpacked_max (%llu bytes): raise it if "
                        "the file is what it should be",
                        opening->packed->uri, (unsigned long long)limits->bytes_max);
    if (decoder->out > HR_PACKED_RATIO_FROM &&
        decoder->out / limits->ratio_max > decoder->in)
        return hr__fail(opening->error, HR_ERR_LIMIT,
                        "%s: its first %llu bytes unpack to %llu, more than ratio_max "
                        "(%llu) times as many: raise it if the file is what it should be",
                        opening->packed->uri, (unsigned long long)decoder->in,
                        (unsigned long long)decoder->out,
                        (unsigned long long)limits->ratio_max);
    return HR_OK;
}

/* ---- opening: streams ---- */

enum outcome { OUTCOME_WHOLE, OUTCOME_DAMAGED, OUTCOME_CUT_SHORT };

/* Decodes the stream at the decoder's place; opening->why says what is wrong with it. */
static enum hr_err walk_stream(struct opening *opening, enum outcome *ret_outcome)
{
    struct hr_packed_decoder *decoder = opening->decoder;
    bool marks = opening->packed->packing != HR_PACKING_ZSTD, end = false;
    enum hr_unpack_event event = HR_UNPACK_MORE;

    *ret_outcome = OUTCOME_WHOLE;
    while (event != HR_UNPACK_END) {
        size_t got;
        enum hr_err code = decoder_run(
            decoder, marks, opening->block->data + opening->filled,
            HR_PACKED_BLOCK_ROOM - opening->filled, &got, &event, &end, &opening->why);

        opening->filled += got;
        if (decoder->in + CUT_BYTES <= decoder->object.bytes)
            opening->safe = decoder->out;
        HR_TRY(check_limits(opening));
        if (code == HR_ERR_FORMAT || end) {
            *ret_outcome = end ? OUTCOME_CUT_SHORT : OUTCOME_DAMAGED;
            return HR_OK;
        }
        if (code != HR_OK)
            return hr__fail(opening->error, code, "%s: %s", opening->packed->uri,
                            opening->why.message);
        HR_TRY(maybe_cut(opening, event));
    }
    return HR_OK;
}

/* Whether a whole stream begins at `at`. */
static enum hr_err try_stream(struct opening *opening, uint64_t at, bool *ret_whole)
{
    const struct hr_packed_limits *limits = &opening->packed->cache->limits;
    struct hr_packed_decoder *decoder;
    struct hr_packed_block *scratch = take_block(opening->packed->cache);
    enum hr_unpack_event event = HR_UNPACK_MORE;
    bool end = false;
    enum hr_err code;
    size_t got;

    *ret_whole = false;
    if (scratch == NULL)
        return no_memory(opening);
    code = decoder_create(opening->packed, &decoder, opening->error);
    if (code == HR_OK) {
        decoder_seek(decoder, at, 0);
        while (code == HR_OK && event != HR_UNPACK_END && !end &&
               decoder->out <= limits->bytes_max)
            code = decoder_run(decoder, false, scratch->data, HR_PACKED_BLOCK_ROOM, &got,
                               &event, &end, NULL);
        *ret_whole = code == HR_OK && event == HR_UNPACK_END;
        opening->tried += *ret_whole ? 0 : decoder->out + 1;
        decoder_destroy(decoder);
        if (code == HR_ERR_FORMAT || code == HR_ERR_LIMIT)
            code = HR_OK;
    }
    free_block(opening->packed->cache, scratch);
    return code;
}

/* The next place from `at` on where a whole stream begins, or the end. By chance a place
 * looks like a beginning once in 16 MiB; a file that is made to have many is given up. */
static enum hr_err find_stream(struct opening *opening, uint64_t at, uint64_t *ret_at)
{
    uint64_t end = opening->decoder->object.bytes;
    bool whole = opening->packed->packing == HR_PACKING_ZLIB;

    for (*ret_at = end; end - at >= HR_PACKING_MAGIC && !whole &&
                        opening->tried <= TRIED_RATIO * end + HR_PACKED_RATIO_FROM;
         at++) {
        const void *data;

        HR_TRY(hr__window_get(&opening->window, at, HR_PACKING_MAGIC, &data,
                              opening->error));
        if (hr__packing_of(data, HR_PACKING_MAGIC) != opening->packed->packing)
            continue;
        HR_TRY(try_stream(opening, at, &whole));
        if (whole)
            *ret_at = at;
    }
    return HR_OK;
}

/* How many bytes a damaged member of gzip had, modulo 4 GiB: its last four bytes say so.
 * 0: not known. */
static enum hr_err
read_length(struct opening *opening, uint64_t begin, uint64_t end, uint64_t *ret_length)
{
    const unsigned char *at;
    const void *data;

    *ret_length = 0;
    if (opening->packed->packing != HR_PACKING_GZIP || end - begin < 18)
        return HR_OK;
    HR_TRY(hr__window_get(&opening->window, end - 4, 4, &data, opening->error));
    at = data;
    *ret_length = (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
                  (uint64_t)at[3] << 24;
    if (*ret_length / 1032 > end - begin) /* deflate cannot */
        *ret_length = 0;
    return HR_OK;
}

/* FILL to where the damage ends. */
static enum hr_err add_fill(struct opening *opening, uint64_t end)
{
    struct hr_packed_decoder *decoder = opening->decoder;

    while (decoder->out < end) {
        size_t bytes = HR_PACKED_BLOCK_ROOM - opening->filled;

        if (end - decoder->out < bytes)
            bytes = (size_t)(end - decoder->out);
        memset(opening->block->data + opening->filled, FILL, bytes);
        opening->filled += bytes;
        decoder->out += bytes;
        HR_TRY(maybe_cut(opening, HR_UNPACK_MORE));
    }
    return HR_OK;
}

/* Of a stream that has not ended where the file does: how far what was decoded is right.
 * Damage makes a stream run on for a few blocks at most, and then is noticed. The last
 * bytes of a whole member of gzip say how long it is: those of one that is cut short are
 * any number. */
static enum hr_err
find_trusted(struct opening *opening, uint64_t in, uint64_t out, uint64_t *ret_trusted)
{
    const struct hr_packed_decoder *decoder = opening->decoder;
    uint64_t bytes = decoder->object.bytes - in, decoded = decoder->out - out, length;

    *ret_trusted = opening->safe > out ? opening->safe : out;
    if (opening->packed->packing != HR_PACKING_GZIP || bytes > CUT_GZIP_BYTES)
        return HR_OK;
    HR_TRY(read_length(opening, in, decoder->object.bytes, &length));
    if (length / CUT_GZIP_RATIO > decoded || length < decoded / CUT_GZIP_RATIO)
        *ret_trusted = decoder->out;
    return HR_OK;
}

/* Of the stream that begins at these places; goes to the next one. */
static enum hr_err
add_damage(struct opening *opening, uint64_t in, uint64_t out, bool cut_short)
{
    struct hr_packed *packed = opening->packed;
    struct hr_packed_decoder *decoder = opening->decoder;
    struct hr_packed_damage damage = {.in = decoder->in, .next = decoder->object.bytes};
    uint64_t length = 0, trusted = out;

    memcpy(damage.why, opening->why.message, sizeof damage.why - 1);
    /* one that has run on over whole streams is not cut short */
    HR_TRY(find_stream(opening, in + 1, &damage.next));
    cut_short = cut_short && damage.next == decoder->object.bytes;
    if (!cut_short)
        HR_TRY(read_length(opening, in, damage.next, &length));
    if (cut_short)
        HR_TRY(find_trusted(opening, in, out, &trusted));
    if (!packed->cache->limits.checked)
        HR_TRY(roll_back(opening, trusted));
    damage.begin = decoder->out;
    damage.end = out + length;
    if (damage.end <= damage.begin) /* a whole block: nobody reads a part as padding */
        damage.end = damage.begin + 3 * ROUND - (damage.begin - out) % ROUND;
    if (!hr__array_room(&packed->damages, packed->damage_count, &packed->damage_room, 1,
                        sizeof *packed->damages))
        return no_memory(opening);
    packed->damages[packed->damage_count++] = damage;
    HR_TRY(add_fill(opening, damage.end));
    decoder_seek(decoder, damage.next, damage.end);
    return HR_OK;
}

/* Whether nothing but zeros follows, as tapes and some copies have it. */
static enum hr_err is_padding(struct opening *opening, uint64_t at, bool *ret_padding)
{
    uint64_t end = opening->decoder->object.bytes;

    *ret_padding = true;
    while (at < end && *ret_padding) {
        size_t bytes = end - at < HR_WINDOW_MAX ? (size_t)(end - at) : HR_WINDOW_MAX;
        const unsigned char *from;
        const void *data;

        HR_TRY(hr__window_get(&opening->window, at, bytes, &data, opening->error));
        from = data;
        for (size_t i = 0; i < bytes && *ret_padding; i++)
            *ret_padding = from[i] == 0;
        at += bytes;
    }
    return HR_OK;
}

/* Whether a stream of this kind begins at the decoder's place. */
static enum hr_err is_stream(struct opening *opening, bool *ret_stream)
{
    const struct hr_packed_decoder *decoder = opening->decoder;
    uint64_t left = decoder->object.bytes - decoder->in;
    size_t bytes = left < HR_PACKING_MAGIC ? (size_t)left : HR_PACKING_MAGIC;
    const void *data;

    HR_TRY(hr__window_get(&opening->window, decoder->in, bytes, &data, opening->error));
    *ret_stream = opening->packed->packing == HR_PACKING_ZLIB
                      ? decoder->in == 0
                      : hr__packing_of(data, bytes) == opening->packed->packing;
    return HR_OK;
}

static enum hr_err walk(struct opening *opening)
{
    struct hr_packed_decoder *decoder = opening->decoder;
    const char *name = hr__packing_name(opening->packed->packing);

    while (decoder->in < decoder->object.bytes) {
        enum outcome outcome = OUTCOME_DAMAGED;
        uint64_t in = decoder->in, out = decoder->out;
        bool stream, padding = false;

        HR_TRY(is_stream(opening, &stream));
        if (!stream)
            HR_TRY(is_padding(opening, in, &padding));
        if (padding)
            return HR_OK;
        if (stream)
            HR_TRY(walk_stream(opening, &outcome));
        else
            hr__fail(&opening->why, HR_ERR_FORMAT, "no %s stream begins here", name);
        if (outcome == OUTCOME_WHOLE)
            continue;
        if (outcome == OUTCOME_CUT_SHORT)
            hr__fail(&opening->why, HR_ERR_FORMAT, "the file ends inside of a %s stream",
                     name);
        HR_TRY(add_damage(opening, in, out, outcome == OUTCOME_CUT_SHORT));
    }
    return HR_OK;
}

static enum hr_err open_file(struct hr_packed *packed, struct opening *opening)
{
    const struct hr_object *object;
    enum hr_err code;

    HR_TRY(decoder_create(packed, &opening->decoder, opening->error));
    object = &opening->decoder->object;
    packed->strict.identity = object->identity;
    packed->file_bytes = object->bytes;
    hr__window_use(&opening->window, &opening->decoder->object);
    decoder_seek(opening->decoder, 0, 0);
    HR_TRY(add_cut(opening, HR_PACKED_STREAM));
    code = walk(opening);
    if (code == HR_OK && opening->filled > 0)
        code = add_cut(opening, HR_PACKED_PLAIN);
    end_block(opening);
    HR_TRY(code);
    hr__packed_set_objects(packed, opening->decoder->out);
    return HR_OK;
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
        free_block(cache, block);
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

enum hr_err
hr__packed_open(struct hr_packed_cache *cache, const char *uri, enum hr_packing packing,
                struct hr_packed **ret_packed, struct hr_error *reterr)
{
    struct hr_packed *packed = hr__calloc(1, sizeof *packed);
    struct opening *opening = hr__calloc(1, sizeof *opening);
    enum hr_err code = HR_ERR_MEMORY;

    if (packed != NULL && opening != NULL) {
        *packed = (struct hr_packed){
            .cache = cache, .uri = uri, .packing = packing, .next = cache->files};
        cache->files = packed;
        opening->packed = packed;
        opening->error = reterr;
        code = open_file(packed, opening);
        hr__window_finish(&opening->window);
        decoder_destroy(opening->decoder);
    } else {
        hr__free(packed);
        packed = NULL;
        hr__fail(reterr, code, "out of memory");
    }
    hr__free(opening);
    if (code == HR_OK)
        *ret_packed = packed;
    else
        hr__packed_close(packed);
    return code;
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
        drop_cut(packed);
    link = &cache->files;
    while (*link != packed)
        link = &(*link)->next;
    *link = packed->next;
    hr__free(packed->cuts);
    hr__free(packed->blocks);
    hr__free(packed->damages);
    hr__free(packed);
}
