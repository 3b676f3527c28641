/*
 * store/compress.c - see compress.h.
 *
 * The functions of liblz4 are declared here, as their ABI has been the same since
 * 2014: so every build can load it, also one that was made without its headers.
 */
#include "store/compress.h"

#include <assert.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/library.h"

#ifdef HR_ZSTD
#include <zstd.h>
#endif

struct hr_compressor {
    enum hr_compression kind;
    int level;
    void *context; /* of zstd */
    char *out;
    size_t room;
};

/* ---- zstd ---- */

#ifdef HR_ZSTD
static struct {
    __typeof__(ZSTD_createCCtx) *create;
    __typeof__(ZSTD_freeCCtx) *free;
    __typeof__(ZSTD_compressCCtx) *compress;
    __typeof__(ZSTD_compressBound) *bound;
    __typeof__(ZSTD_isError) *is_error;
    __typeof__(ZSTD_getErrorName) *error_name;
    __typeof__(ZSTD_versionString) *version;
} zstd;

static const struct hr_symbol zstd_symbols[] = {
    {"ZSTD_createCCtx",    &zstd.create    },
    {"ZSTD_freeCCtx",      &zstd.free      },
    {"ZSTD_compressCCtx",  &zstd.compress  },
    {"ZSTD_compressBound", &zstd.bound     },
    {"ZSTD_isError",       &zstd.is_error  },
    {"ZSTD_getErrorName",  &zstd.error_name},
    {"ZSTD_versionString", &zstd.version   },
};

static struct hr_library libzstd = HR_LIBRARY("libzstd.so.1", "libzstd1", zstd_symbols);

static enum hr_err open_zstd(void **ret_context, struct hr_error *reterr)
{
    HR_TRY(hr__library_load(&libzstd, reterr));
    *ret_context = zstd.create();
    return *ret_context != NULL ? HR_OK
                                : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static void close_zstd(void *context)
{
    zstd.free(context);
}

static size_t zstd_bound(size_t bytes)
{
    return zstd.bound(bytes);
}

static enum hr_err run_zstd(const struct hr_compressor *compressor, const void *data,
                            size_t bytes, size_t *ret_bytes, struct hr_error *reterr)
{
    size_t written = zstd.compress(compressor->context, compressor->out, compressor->room,
                                   data, bytes, compressor->level);

    if (zstd.is_error(written))
        return hr__fail(reterr, HR_ERR_MEMORY, "zstd: %s", zstd.error_name(written));
    *ret_bytes = written;
    return HR_OK;
}

enum hr_err hr__zstd_version(char *text, size_t room, struct hr_error *reterr)
{
    HR_TRY(hr__library_load(&libzstd, reterr));
    snprintf(text, room, "%s", zstd.version());
    return HR_OK;
}
#else
static enum hr_err open_zstd(void **ret_context, struct hr_error *reterr)
{
    (void)ret_context;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "this build has no zstd: install libzstd-dev and build again");
}

static void close_zstd(void *context)
{
    (void)context;
}

static size_t zstd_bound(size_t bytes)
{
    return bytes;
}

static enum hr_err run_zstd(const struct hr_compressor *compressor, const void *data,
                            size_t bytes, size_t *ret_bytes, struct hr_error *reterr)
{
    (void)compressor, (void)data, (void)bytes, (void)ret_bytes;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED, "this build has no zstd");
}

enum hr_err hr__zstd_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)text, (void)room;
    return hr__library_left_out("libzstd-dev", reterr);
}
#endif

/* ---- LZ4 ---- */

#define LZ4_BYTES_MAX 0x7E000000 /* of a block, before it is compressed */
#define LZ4_FAST_LEVELS 2        /* 1 and 2, as of the command lz4 */

static struct {
    int (*fast)(const char *data, char *to, int bytes, int room, int acceleration);
    int (*high)(const char *data, char *to, int bytes, int room, int level);
    int (*bound)(int bytes);
    const char *(*version)(void);
} lz4;

static const struct hr_symbol lz4_symbols[] = {
    {"LZ4_compress_fast", &lz4.fast   },
    {"LZ4_compress_HC",   &lz4.high   },
    {"LZ4_compressBound", &lz4.bound  },
    {"LZ4_versionString", &lz4.version},
};

static struct hr_library liblz4 = HR_LIBRARY("liblz4.so.1", "liblz4-1", lz4_symbols);

static enum hr_err run_lz4(const struct hr_compressor *compressor, const void *data,
                           size_t bytes, size_t *ret_bytes, struct hr_error *reterr)
{
    int room = (int)compressor->room, level = compressor->level;
    int written = level <= LZ4_FAST_LEVELS
                      ? lz4.fast(data, compressor->out, (int)bytes, room,
                                 1 + LZ4_FAST_LEVELS - level)
                      : lz4.high(data, compressor->out, (int)bytes, room, level);

    if (written <= 0)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for LZ4");
    *ret_bytes = (size_t)written;
    return HR_OK;
}

enum hr_err hr__lz4_version(char *text, size_t room, struct hr_error *reterr)
{
    HR_TRY(hr__library_load(&liblz4, reterr));
    snprintf(text, room, "%s", lz4.version());
    return HR_OK;
}

/* ---- both ---- */

static enum hr_err open_library(struct hr_compressor *compressor, struct hr_error *reterr)
{
    return compressor->kind == HR_COMPRESSION_LZ4
               ? hr__library_load(&liblz4, reterr)
               : open_zstd(&compressor->context, reterr);
}

enum hr_err
hr__compressor_create(enum hr_compression kind, int level,
                      struct hr_compressor **ret_compressor, struct hr_error *reterr)
{
    struct hr_compressor *compressor = hr__calloc(1, sizeof *compressor);
    enum hr_err code;

    assert(kind == HR_COMPRESSION_ZSTD || kind == HR_COMPRESSION_LZ4);
    if (compressor == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    compressor->kind = kind;
    compressor->level = level;
    code = open_library(compressor, reterr);
    if (code == HR_OK)
        *ret_compressor = compressor;
    else
        hr__free(compressor);
    return code;
}

void hr__compressor_destroy(struct hr_compressor *compressor)
{
    if (compressor == NULL)
        return;
    if (compressor->kind == HR_COMPRESSION_ZSTD)
        close_zstd(compressor->context);
    hr__free(compressor->out);
    hr__free(compressor);
}

enum hr_compression hr__compressor_kind(const struct hr_compressor *compressor)
{
    return compressor->kind;
}

enum hr_err
hr__compress(struct hr_compressor *compressor, const void *data, size_t bytes,
             const char **ret_packed, size_t *ret_bytes, struct hr_error *reterr)
{
    bool is_lz4 = compressor->kind == HR_COMPRESSION_LZ4;
    size_t most;

    if (is_lz4 && bytes > LZ4_BYTES_MAX) {
        *ret_packed = NULL;
        *ret_bytes = 0;
        return HR_OK;
    }
    most = is_lz4 ? (size_t)lz4.bound((int)bytes) : zstd_bound(bytes);
    if (most > compressor->room) {
        hr__free(compressor->out);
        compressor->out = hr__malloc(most);
        compressor->room = compressor->out != NULL ? most : 0;
    }
    if (compressor->out == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (is_lz4)
        HR_TRY(run_lz4(compressor, data, bytes, ret_bytes, reterr));
    else
        HR_TRY(run_zstd(compressor, data, bytes, ret_bytes, reterr));
    *ret_packed = compressor->out;
    return HR_OK;
}
