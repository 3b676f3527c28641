/*
 * store/unpack.c - gzip and zlib by zlib, zstd by libzstd, which is loaded when the first
 * such file comes.
 */
#include "store/unpack.h"

#include <string.h>
#include <strings.h>
#include <zlib.h>

#ifdef HR_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include "core/alloc.h"
#include "core/error.h"
#include "core/library.h"

#define ZLIB_TRAILER 4 /* Adler-32 */

struct hr_unpack {
    enum hr_packing packing;
    z_stream deflate;
    bool is_open;       /* deflate is initialised */
    bool raw;           /* decoding began at a mark: the wrapper is ours to skip */
    unsigned trailer;   /* bytes of it that are left; raw only */
    unsigned char last; /* the byte that was read last */
#ifdef HR_ZSTD
    ZSTD_DStream *zstd;
#endif
    bool large_window;
};

#ifdef HR_ZSTD
/* libzstd's functions. */
static struct {
    __typeof__(ZSTD_createDStream) *create;
    __typeof__(ZSTD_freeDStream) *free;
    __typeof__(ZSTD_DCtx_reset) *reset;
    __typeof__(ZSTD_decompressStream) *decompress;
    __typeof__(ZSTD_isError) *is_error;
    __typeof__(ZSTD_getErrorName) *error_name;
    __typeof__(ZSTD_getErrorCode) *error_code;
    __typeof__(ZSTD_getFrameContentSize) *content_size;
} zstd;

static const struct hr_symbol symbols[] = {
    {"ZSTD_createDStream",       &zstd.create      },
    {"ZSTD_freeDStream",         &zstd.free        },
    {"ZSTD_DCtx_reset",          &zstd.reset       },
    {"ZSTD_decompressStream",    &zstd.decompress  },
    {"ZSTD_isError",             &zstd.is_error    },
    {"ZSTD_getErrorName",        &zstd.error_name  },
    {"ZSTD_getErrorCode",        &zstd.error_code  },
    {"ZSTD_getFrameContentSize", &zstd.content_size},
};

static struct hr_library library = HR_LIBRARY("libzstd.so.1", "libzstd1", symbols);
#endif

/* ---- names ---- */

static uint32_t read_u32(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

enum hr_packing hr__packing_of(const void *data, size_t bytes)
{
    const unsigned char *at = data;

    if (bytes < HR_PACKING_MAGIC)
        return HR_PACKING_NONE;
    if (at[0] == 0x1f && at[1] == 0x8b && at[2] == 8 && (at[3] & 0xe0) == 0)
        return HR_PACKING_GZIP;
    /* a frame, or one to skip */
    if (read_u32(at) == 0xfd2fb528u || (read_u32(at) & ~15u) == 0x184d2a50u)
        return HR_PACKING_ZSTD;
    return HR_PACKING_NONE;
}

bool hr__packing_is_zlib(const void *data, size_t bytes)
{
    const unsigned char *at = data;

    return bytes >= 2 && (at[0] & 15) == 8 && at[0] >> 4 <= 7 && (at[1] & 32) == 0 &&
           (at[0] * 256 + at[1]) % 31 == 0;
}

enum hr_packing hr__packing_of_name(const char *name)
{
    static const struct {
        const char *ending;
        enum hr_packing packing;
    } known[] = {
        {".gz",   HR_PACKING_GZIP},
        {".tgz",  HR_PACKING_GZIP},
        {".zst",  HR_PACKING_ZSTD},
        {".tzst", HR_PACKING_ZSTD},
    };
    size_t length = strlen(name);

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t ending = strlen(known[i].ending);

        if (length > ending && strcasecmp(name + length - ending, known[i].ending) == 0)
            return known[i].packing;
    }
    return HR_PACKING_NONE;
}

const char *hr__packing_name(enum hr_packing packing)
{
    static const char *const names[] = {"plain", "gzip", "zlib", "zstd", "deflate"};

    return names[packing];
}

struct hr_gzip_trailer hr__gzip_trailer(const void *data)
{
    const unsigned char *at = data;

    return (struct hr_gzip_trailer){read_u32(at), read_u32(at + 4)};
}

uint64_t hr__zstd_length(const void *data, size_t bytes)
{
#ifdef HR_ZSTD
    uint64_t length = zstd.content_size(data, bytes);

    return length < ZSTD_CONTENTSIZE_ERROR ? length : 0;
#else
    (void)data, (void)bytes;
    return 0;
#endif
}

/* ---- life ---- */

enum hr_err hr__unpack_create(enum hr_packing packing, struct hr_unpack **ret_unpack,
                              struct hr_error *reterr)
{
    struct hr_unpack *unpack;

#ifdef HR_ZSTD
    if (packing == HR_PACKING_ZSTD)
        HR_TRY(hr__library_load(&library, reterr));
#else
    if (packing == HR_PACKING_ZSTD)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "this build reads no zstd: install libzstd-dev and build again, "
                        "or unpack the file (unzstd)");
#endif
    unpack = hr__calloc(1, sizeof *unpack);
    if (unpack == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    unpack->packing = packing;
    *ret_unpack = unpack;
    return HR_OK;
}

void hr__unpack_destroy(struct hr_unpack *unpack)
{
    if (unpack == NULL)
        return;
    if (unpack->is_open)
        inflateEnd(&unpack->deflate);
#ifdef HR_ZSTD
    if (unpack->zstd != NULL)
        zstd.free(unpack->zstd);
#endif
    hr__free(unpack);
}

/* ---- deflate ---- */

static voidpf allocate(voidpf user, uInt count, uInt bytes)
{
    (void)user;
    return hr__calloc(count, bytes);
}

static void release(voidpf user, voidpf block)
{
    (void)user;
    hr__free(block);
}

static enum hr_err
start_deflate(struct hr_unpack *unpack, bool raw, struct hr_error *reterr)
{
    int bits = raw || unpack->packing == HR_PACKING_DEFLATE ? -15
               : unpack->packing == HR_PACKING_GZIP         ? 15 + 16
                                                            : 15;
    int code;

    if (unpack->is_open) {
        code = inflateReset2(&unpack->deflate, bits);
    } else {
        unpack->deflate = (z_stream){.zalloc = allocate, .zfree = release};
        code = inflateInit2(&unpack->deflate, bits);
        unpack->is_open = code == Z_OK;
    }
    unpack->raw = raw;
    unpack->trailer =
        raw ? unpack->packing == HR_PACKING_GZIP ? HR_GZIP_TRAILER : ZLIB_TRAILER : 0;
    return code == Z_OK ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

enum hr_err
hr__unpack_resume(struct hr_unpack *unpack, unsigned char bits, unsigned char value,
                  const void *window, size_t window_bytes, struct hr_error *reterr)
{
    HR_TRY(start_deflate(unpack, true, reterr));
    if ((bits > 0 && inflatePrime(&unpack->deflate, bits, value) != Z_OK) ||
        inflateSetDictionary(&unpack->deflate, window, (uInt)window_bytes) != Z_OK)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

void hr__unpack_mark(struct hr_unpack *unpack, struct hr_unpack_mark *ret_mark)
{
    uInt bytes = sizeof ret_mark->window;

    ret_mark->bits = (unsigned char)(unpack->deflate.data_type & 7);
    ret_mark->value = (unsigned char)(unpack->last >> (8 - ret_mark->bits));
    if (inflateGetDictionary(&unpack->deflate, ret_mark->window, &bytes) != Z_OK)
        bytes = 0;
    ret_mark->window_bytes = bytes;
}

/* What follows a deflate stream that was entered at a mark. */
static void skip_trailer(struct hr_unpack *unpack, struct hr_unpack_io *io)
{
    size_t bytes = io->in_bytes < unpack->trailer ? io->in_bytes : unpack->trailer;

    io->in += bytes;
    io->in_bytes -= bytes;
    unpack->trailer -= (unsigned)bytes;
}

static enum hr_err
run_deflate(struct hr_unpack *unpack, bool marks, struct hr_unpack_io *io,
            enum hr_unpack_event *ret_event, struct hr_error *reterr)
{
    z_stream *stream = &unpack->deflate;
    size_t in = io->in_bytes < UINT32_MAX ? io->in_bytes : UINT32_MAX;
    size_t out = io->out_bytes < UINT32_MAX ? io->out_bytes : UINT32_MAX;
    int code;

    stream->next_in = (unsigned char *)(uintptr_t)io->in;
    stream->avail_in = (uInt)in;
    stream->next_out = io->out;
    stream->avail_out = (uInt)out;
    code = inflate(stream, marks ? Z_BLOCK : Z_NO_FLUSH);
    if (stream->avail_in < in)
        unpack->last = stream->next_in[-1];
    io->in += in - stream->avail_in;
    io->in_bytes -= in - stream->avail_in;
    io->out += out - stream->avail_out;
    io->out_bytes -= out - stream->avail_out;
    *ret_event = HR_UNPACK_MORE;
    if (code == Z_STREAM_END)
        *ret_event = HR_UNPACK_END;
    else if (code == Z_MEM_ERROR)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    else if (code != Z_OK && code != Z_BUF_ERROR)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s",
                        code == Z_NEED_DICT   ? "it needs a dictionary"
                        : stream->msg != NULL ? stream->msg
                                              : "invalid data");
    else if (marks && (stream->data_type & 0xc0) == 0x80)
        *ret_event = HR_UNPACK_MARK;
    return HR_OK;
}

/* ---- zstd ---- */

#ifdef HR_ZSTD
static enum hr_err start_zstd(struct hr_unpack *unpack, struct hr_error *reterr)
{
    if (unpack->zstd == NULL)
        unpack->zstd = zstd.create();
    if (unpack->zstd == NULL ||
        zstd.is_error(zstd.reset(unpack->zstd, ZSTD_reset_session_only)))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

static enum hr_err run_zstd(struct hr_unpack *unpack, struct hr_unpack_io *io,
                            enum hr_unpack_event *ret_event, struct hr_error *reterr)
{
    ZSTD_inBuffer in = {io->in, io->in_bytes, 0};
    ZSTD_outBuffer out = {io->out, io->out_bytes, 0};
    size_t code = zstd.decompress(unpack->zstd, &out, &in);

    io->in += in.pos;
    io->in_bytes -= in.pos;
    io->out += out.pos;
    io->out_bytes -= out.pos;
    *ret_event = code == 0 ? HR_UNPACK_END : HR_UNPACK_MORE;
    if (!zstd.is_error(code))
        return HR_OK;
    if (zstd.error_code(code) == ZSTD_error_memory_allocation)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    unpack->large_window =
        zstd.error_code(code) == ZSTD_error_frameParameter_windowTooLarge;
    if (unpack->large_window)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "its window is larger than 128 MiB: compress it again, with "
                        "--long=27 at most");
    return hr__fail(reterr, HR_ERR_FORMAT, "%s", zstd.error_name(code));
}
#endif

/* ---- both ---- */

enum hr_err hr__unpack_begin(struct hr_unpack *unpack, struct hr_error *reterr)
{
#ifdef HR_ZSTD
    if (unpack->packing == HR_PACKING_ZSTD)
        return start_zstd(unpack, reterr);
#endif
    return start_deflate(unpack, false, reterr);
}

enum hr_err hr__unpack_run(struct hr_unpack *unpack, bool marks, struct hr_unpack_io *io,
                           enum hr_unpack_event *ret_event, struct hr_error *reterr)
{
#ifdef HR_ZSTD
    if (unpack->packing == HR_PACKING_ZSTD)
        return run_zstd(unpack, io, ret_event, reterr);
#endif
    HR_TRY(run_deflate(unpack, marks, io, ret_event, reterr));
    if (*ret_event != HR_UNPACK_END || !unpack->raw)
        return HR_OK;
    skip_trailer(unpack, io);
    if (unpack->trailer > 0)
        *ret_event = HR_UNPACK_MORE;
    return HR_OK;
}

bool hr__unpack_window_is_large(const struct hr_unpack *unpack)
{
    return unpack->large_window;
}

uint32_t hr__unpack_checksum(const struct hr_unpack *unpack)
{
    return (uint32_t)unpack->deflate.adler;
}

enum hr_err hr__unpack_all(enum hr_packing packing, const void *data, size_t bytes,
                           void *to, size_t room, struct hr_error *reterr)
{
    struct hr_unpack_io io = {data, bytes, to, room};
    enum hr_unpack_event event = HR_UNPACK_MORE;
    struct hr_unpack *unpacker = NULL;
    enum hr_err code;

    HR_TRY(hr__unpack_create(packing, &unpacker, reterr));
    code = hr__unpack_begin(unpacker, reterr);
    if (code == HR_OK)
        code = hr__unpack_run(unpacker, false, &io, &event, reterr);
    hr__unpack_destroy(unpacker);
    if (code == HR_OK && (event != HR_UNPACK_END || io.out_bytes > 0))
        code = hr__fail(reterr, HR_ERR_FORMAT, "it unpacks to another size");
    return code;
}
