#include "store/zstd.h"

#include "core/alloc.h"
#include "core/error.h"
#include "core/library.h"

#ifdef HR_ZSTD
#include <stdio.h>
#include <zstd.h>

/* libzstd's functions. */
static struct {
    __typeof__(ZSTD_createCCtx) *create;
    __typeof__(ZSTD_freeCCtx) *free;
    __typeof__(ZSTD_compressCCtx) *compress;
    __typeof__(ZSTD_compressBound) *bound;
    __typeof__(ZSTD_isError) *is_error;
    __typeof__(ZSTD_getErrorName) *error_name;
    __typeof__(ZSTD_versionString) *version;
} lib;

static const struct hr_symbol symbols[] = {
    {"ZSTD_createCCtx",    &lib.create    },
    {"ZSTD_freeCCtx",      &lib.free      },
    {"ZSTD_compressCCtx",  &lib.compress  },
    {"ZSTD_compressBound", &lib.bound     },
    {"ZSTD_isError",       &lib.is_error  },
    {"ZSTD_getErrorName",  &lib.error_name},
    {"ZSTD_versionString", &lib.version   },
};

static struct hr_library library = HR_LIBRARY("libzstd.so.1", "libzstd1", symbols);

enum hr_err hr__zstd_version(char *text, size_t room, struct hr_error *reterr)
{
    HR_TRY(hr__library_load(&library, reterr));
    snprintf(text, room, "%s", lib.version());
    return HR_OK;
}

struct hr_zstd {
    ZSTD_CCtx *context;
    int level;
    char *out;
    size_t room;
};

enum hr_err hr__zstd_create(int level, struct hr_zstd **ret_zstd, struct hr_error *reterr)
{
    struct hr_zstd *zstd;

    HR_TRY(hr__library_load(&library, reterr));
    zstd = hr__calloc(1, sizeof *zstd);
    if (zstd != NULL)
        zstd->context = lib.create();
    if (zstd == NULL || zstd->context == NULL) {
        hr__free(zstd);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    zstd->level = level;
    *ret_zstd = zstd;
    return HR_OK;
}

void hr__zstd_destroy(struct hr_zstd *zstd)
{
    if (zstd == NULL)
        return;
    lib.free(zstd->context);
    hr__free(zstd->out);
    hr__free(zstd);
}

enum hr_err
hr__zstd_compress(struct hr_zstd *zstd, const void *data, size_t bytes,
                  const char **ret_frame, size_t *ret_bytes, struct hr_error *reterr)
{
    size_t most = lib.bound(bytes), written;

    if (most > zstd->room) {
        hr__free(zstd->out);
        zstd->out = hr__malloc(most);
        zstd->room = zstd->out != NULL ? most : 0;
    }
    if (zstd->out == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    written =
        lib.compress(zstd->context, zstd->out, zstd->room, data, bytes, zstd->level);
    if (lib.is_error(written))
        return hr__fail(reterr, HR_ERR_MEMORY, "zstd: %s", lib.error_name(written));
    *ret_frame = zstd->out;
    *ret_bytes = written;
    return HR_OK;
}

#else

enum hr_err hr__zstd_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)text;
    (void)room;
    return hr__fail(reterr, HR_ERR_STATE,
                    "left out of this build: install libzstd-dev and build again");
}

enum hr_err hr__zstd_create(int level, struct hr_zstd **ret_zstd, struct hr_error *reterr)
{
    (void)level;
    (void)ret_zstd;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "this build has no zstd: install libzstd-dev and build again");
}

void hr__zstd_destroy(struct hr_zstd *zstd)
{
    (void)zstd;
}

enum hr_err
hr__zstd_compress(struct hr_zstd *zstd, const void *data, size_t bytes,
                  const char **ret_frame, size_t *ret_bytes, struct hr_error *reterr)
{
    (void)zstd;
    (void)data;
    (void)bytes;
    (void)ret_frame;
    (void)ret_bytes;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED, "this build has no zstd");
}

#endif
