/*
 * store/packed_decoder.c - a decoder of a compressed file, which is at a place in it.
 */
#include "store/packed_internal.h"

#include "core/alloc.h"
#include "core/error.h"
#include "store/store_internal.h"

#define INPUT_BYTES ((size_t)128 << 10)
#define INPUT_REMOTE_BYTES ((size_t)2 << 20)

static void decoder_close_file(struct hr_packed_decoder *decoder)
{
    if (decoder->is_open)
        hr__store_close(&decoder->object);
    decoder->is_open = false;
}

void hr__packed_decoder_destroy(struct hr_packed_decoder *decoder)
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

enum hr_err
hr__packed_decoder_create(struct hr_packed *packed,
                          struct hr_packed_decoder **ret_decoder, struct hr_error *reterr)
{
    struct hr_packed_decoder *decoder = hr__calloc(1, sizeof *decoder);
    enum hr_err code;

    if (decoder == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = decoder_set(decoder, packed, reterr);
    if (code == HR_OK)
        *ret_decoder = decoder;
    else
        hr__packed_decoder_destroy(decoder);
    return code;
}

void hr__packed_decoder_seek(struct hr_packed_decoder *decoder, uint64_t in, uint64_t out)
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

enum hr_err hr__packed_decoder_go(struct hr_packed_decoder *decoder, size_t at,
                                  struct hr_error *reterr)
{
    const struct hr_packed_cut *cut = &decoder->packed->cuts[at];

    hr__packed_decoder_seek(decoder, cut->in, cut->out);
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

enum hr_err
hr__packed_decoder_run(struct hr_packed_decoder *decoder, bool marks, unsigned char *to,
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
