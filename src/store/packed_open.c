/*
 * store/packed_open.c - decodes a compressed file once: where blocks begin, and what is
 * damaged.
 */
#include "store/packed_internal.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "store/window.h"

#define ROUND 512 /* damage of unknown length is made a multiple: blocks of tar */
#define CUT_BYTES ((uint64_t)256 << 10)    /* that do not count where a file ends early */
#define CUT_GZIP_BYTES ((uint64_t)1 << 20) /* gzip: of streams that are longer */
#define CUT_GZIP_RATIO 16
#define GZIP_LEAST 18      /* bytes of a member */
#define DEFLATE_RATIO 1032 /* the most that it reaches */
#define TRIED_RATIO 16     /* bytes decoded in search of streams, by those of the file */

/* ---- cuts ---- */

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

static void end_block(struct opening *opening)
{
    if (opening->block != NULL)
        hr__packed_block_settle(opening->block, opening->filled > 0 && !opening->spoiled,
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
    opening->block = hr__packed_block_claim(packed, packed->cut_count - 1);
    return opening->block != NULL ? HR_OK : no_memory(opening);
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
            hr__packed_cut_drop(packed);
        opening->block = packed->blocks[last];
        if (opening->block != NULL) {
            hr__lru_remove(&packed->cache->blocks, &opening->block->link);
        } else {
            opening->spoiled = true;
            opening->block = hr__packed_block_claim(packed, last);
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
           packed->cuts[hr__packed_resumable(packed, packed->cut_count - 1)].out;
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

/* ---- streams ---- */

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
        enum hr_err code = hr__packed_decoder_run(
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
    struct hr_packed_block *scratch = hr__packed_block_take(opening->packed->cache);
    enum hr_unpack_event event = HR_UNPACK_MORE;
    bool end = false;
    enum hr_err code;
    size_t got;

    *ret_whole = false;
    if (scratch == NULL)
        return no_memory(opening);
    code = hr__packed_decoder_create(opening->packed, &decoder, opening->error);
    if (code == HR_OK) {
        hr__packed_decoder_seek(decoder, at, 0);
        while (code == HR_OK && event != HR_UNPACK_END && !end &&
               decoder->out <= limits->bytes_max)
            code = hr__packed_decoder_run(decoder, false, scratch->data,
                                          HR_PACKED_BLOCK_ROOM, &got, &event, &end, NULL);
        *ret_whole = code == HR_OK && event == HR_UNPACK_END;
        opening->tried += *ret_whole ? 0 : decoder->out + 1;
        hr__packed_decoder_destroy(decoder);
        if (code == HR_ERR_FORMAT)
            code = HR_OK;
    }
    hr__packed_block_free(opening->packed->cache, scratch);
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

/* How many bytes a damaged member of gzip had, whose decoding began at `in` and `out`: it
 * says so at its end. But if the checksum there is that of what was decoded, it is the
 * length that is wrong. */
static enum hr_err member_length(struct opening *opening, uint64_t in, uint64_t out,
                                 uint64_t end, uint64_t *ret_length)
{
    const struct hr_packed_decoder *decoder = opening->decoder;
    struct hr_gzip_trailer trailer;
    const void *data;

    HR_TRY(hr__window_get(&opening->window, end - HR_GZIP_TRAILER, HR_GZIP_TRAILER, &data,
                          opening->error));
    trailer = hr__gzip_trailer(data);
    if (decoder->in > in && trailer.checksum == hr__unpack_checksum(decoder->unpack))
        *ret_length = decoder->out - out;
    else if (trailer.length / DEFLATE_RATIO <= end - in)
        *ret_length = trailer.length;
    return HR_OK;
}

/* A frame of zstd may say it at its beginning. */
static enum hr_err frame_length(struct opening *opening, uint64_t in, uint64_t out,
                                uint64_t end, uint64_t *ret_length)
{
    size_t bytes = end - in < HR_ZSTD_HEADER ? (size_t)(end - in) : HR_ZSTD_HEADER;
    uint64_t length;
    const void *data;

    HR_TRY(hr__window_get(&opening->window, in, bytes, &data, opening->error));
    length = hr__zstd_length(data, bytes);
    if (length >= opening->decoder->out - out)
        *ret_length = length;
    return HR_OK;
}

/* How many bytes a damaged stream had; 0: not known, or more than the limits. */
static enum hr_err find_length(struct opening *opening, uint64_t in, uint64_t out,
                               uint64_t end, uint64_t *ret_length)
{
    const struct hr_packed_limits *limits = &opening->packed->cache->limits;

    *ret_length = 0;
    if (opening->packed->packing == HR_PACKING_GZIP && end - in >= GZIP_LEAST)
        HR_TRY(member_length(opening, in, out, end, ret_length));
    else if (opening->packed->packing == HR_PACKING_ZSTD)
        HR_TRY(frame_length(opening, in, out, end, ret_length));
    if (*ret_length > HR_PACKED_RATIO_FROM &&
        (*ret_length / limits->ratio_max > end - in || *ret_length > limits->bytes_max))
        *ret_length = 0;
    return HR_OK;
}

/* HR_PACKED_FILL to where the damage ends. */
static enum hr_err add_fill(struct opening *opening, uint64_t end)
{
    struct hr_packed_decoder *decoder = opening->decoder;

    while (decoder->out < end) {
        size_t bytes = HR_PACKED_BLOCK_ROOM - opening->filled;

        if (end - decoder->out < bytes)
            bytes = (size_t)(end - decoder->out);
        memset(opening->block->data + opening->filled, HR_PACKED_FILL, bytes);
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
    HR_TRY(find_length(opening, in, out, decoder->object.bytes, &length));
    if (length == 0 || length / CUT_GZIP_RATIO > decoded ||
        length < decoded / CUT_GZIP_RATIO)
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
        HR_TRY(find_length(opening, in, out, damage.next, &length));
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
    hr__packed_decoder_seek(decoder, damage.next, damage.end);
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
        bool stream, large, padding = false;

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
        large = in == 0 && hr__unpack_window_is_large(decoder->unpack);
        HR_TRY(add_damage(opening, in, out, outcome == OUTCOME_CUT_SHORT));
        if (large && decoder->in == decoder->object.bytes) /* no stream of it is whole */
            return hr__fail(opening->error, HR_ERR_LIMIT, "%s: %s", opening->packed->uri,
                            opening->why.message);
    }
    return HR_OK;
}

static enum hr_err open_file(struct hr_packed *packed, struct opening *opening)
{
    const struct hr_object *object;
    enum hr_err code;

    HR_TRY(hr__packed_decoder_create(packed, &opening->decoder, opening->error));
    object = &opening->decoder->object;
    packed->strict.identity = object->identity;
    packed->file_bytes = object->bytes;
    hr__window_use(&opening->window, &opening->decoder->object);
    hr__packed_decoder_seek(opening->decoder, 0, 0);
    HR_TRY(add_cut(opening, HR_PACKED_STREAM));
    code = walk(opening);
    if (code == HR_OK && opening->filled > 0)
        code = add_cut(opening, HR_PACKED_PLAIN);
    end_block(opening);
    HR_TRY(code);
    hr__packed_set_objects(packed, opening->decoder->out);
    return HR_OK;
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
        hr__packed_decoder_destroy(opening->decoder);
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
