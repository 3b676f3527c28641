/*
 * api/system_api.c - headrace/system.h: what each part says of itself.
 *
 * Libraries that are linked report the version that runs, except libjpeg-turbo, whose
 * interface has none: its version is that of the headers. Libraries that are loaded when
 * needed are loaded here.
 */
#include "headrace/system.h"

#include <liburing.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>
#include <webp/decode.h>
#include <xxhash.h>
#include <yaml.h>
#include <zlib.h>

#include "codec/sound.h"
#include "codec/video.h"
#include "core/alloc.h"
#include "core/cache_folder.h"
#include "core/cpu.h"
#include "fleet/journal.h"
#include "net/version.h"
#include "store/compress.h"
#include "store/store.h"
#include "store/xml.h"

#define TEXT_OF(x_) TEXT_OF_2(x_)
#define TEXT_OF_2(x_) #x_

void hr_machine_info(struct hr_machine_info *ret_info)
{
    struct hr_machine_info info = {
        .isa = hr__isa_name(hr__isa()),
        .isa_machine = hr__isa_name(hr__isa_machine()),
        .cpus = hr__cpu_count(),
        .cpus_affinity = hr__cpu_affinity(),
        .cpus_quota = hr__cpu_quota(),
        .memory_bytes = hr__memory_bytes(),
        .memory_free_bytes = hr__memory_free_bytes(),
    };
    char *folder = NULL;

    if (ret_info == NULL)
        return;
    hr__cpu_model(info.cpu, sizeof info.cpu);
    if (hr__cache_folder(&folder, NULL) == HR_OK)
        snprintf(info.cache_folder, sizeof info.cache_folder, "%s", folder);
    hr__free(folder);
    *ret_info = info;
}

/* Each writes a version, or fails with what is missing. */
typedef enum hr_err version_fn(char *text, size_t room, struct hr_error *reterr);

static enum hr_err write_text(char *text, size_t room, const char *version)
{
    snprintf(text, room, "%s", version);
    return HR_OK;
}

static enum hr_err jpeg_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)reterr;
#ifdef LIBJPEG_TURBO_VERSION
    return write_text(text, room, TEXT_OF(LIBJPEG_TURBO_VERSION));
#else
    return write_text(text, room, "libjpeg " TEXT_OF(JPEG_LIB_VERSION));
#endif
}

static enum hr_err png_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)reterr;
    return write_text(text, room, png_get_libpng_ver(NULL));
}

static enum hr_err webp_version(char *text, size_t room, struct hr_error *reterr)
{
    int version = WebPGetDecoderVersion();

    (void)reterr;
    snprintf(text, room, "%d.%d.%d", version >> 16, version >> 8 & 255, version & 255);
    return HR_OK;
}

static enum hr_err deflate_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)reterr;
    return write_text(text, room, zlibVersion());
}

static enum hr_err libyaml_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)reterr;
    return write_text(text, room, yaml_get_version_string());
}

static enum hr_err xxhash_version(char *text, size_t room, struct hr_error *reterr)
{
    unsigned version = XXH_versionNumber();

    (void)reterr;
    snprintf(text, room, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return HR_OK;
}

static enum hr_err no_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)reterr;
    return write_text(text, room, "");
}

static enum hr_err uring_version(char *text, size_t room, struct hr_error *reterr)
{
    enum hr_err code = hr__store_check_uring(reterr);

    return code == HR_OK ? no_version(text, room, reterr) : code;
}

static const struct {
    const char *kind, *name, *gives;
    version_fn *version;
} parts[] = {
    {"library", "libjpeg-turbo", "JPEGs that our own decoder leaves out",         jpeg_version          },
    {"library", "libpng",        "PNG",                                           png_version           },
    {"library", "libwebp",       "WebP",                                          webp_version          },
    {"library", "libsndfile",    "FLAC, Ogg and MP3; WAV needs no library",
     hr__sound_version                                                                                  },
    {"library", "FFmpeg",        "video",                                         hr__video_version     },
    {"library", "zlib",          "gzip, ZIP and Parquet",                         deflate_version       },
    {"library", "libzstd",       "zstd files, packed records and Parquet",        hr__zstd_version      },
    {"library", "liblz4",        "packed records that are written with LZ4",      hr__lz4_version       },
    {"library", "libcurl",       "http://, https:// and s3://",                   hr__store_curl_version},
    {"library", "libexpat",      "Pascal VOC, and lists of s3://",                hr__xml_version       },
    {"library", "libevent",      "dispatchers, workers and .distribute()",        hr__event_version     },
    {"library", "OpenSSL",       "TLS in a service",                              hr__ssl_version       },
    {"library", "SQLite",        "a dispatcher's journal of consumers",           hr__sqlite_version    },
    {"library", "libpq",         "a journal that dispatchers share",              hr__postgres_version  },
    {"library", "libyaml",       "graph files",                                   libyaml_version       },
    {"library", "xxHash",        "fingerprints and checksums",                    xxhash_version        },
    {"system",  "io_uring",      "many reads in flight; without it threads read",
     uring_version                                                                                      },
};

#define PARTS (sizeof parts / sizeof *parts)

static void
take_state(struct hr_part_info *info, enum hr_err code, const struct hr_error *error)
{
    if (code == HR_OK)
        return;
    info->state = code == HR_ERR_STATE ? HR_PART_NOT_BUILT : HR_PART_MISSING;
    info->version[0] = '\0';
    snprintf(info->problem, sizeof info->problem, "%.*s", (int)sizeof info->problem - 1,
             error->message[0] != '\0' ? error->message : hr_err_text(code));
}

enum hr_err hr_part_info(size_t at, struct hr_part_info *ret_info)
{
    struct hr_part_info info = {.state = HR_PART_READY};
    struct hr_error error = {0};
    enum hr_err code;

    if (ret_info == NULL)
        return HR_ERR_ARGUMENT;
    if (at < PARTS) {
        info.kind = parts[at].kind;
        info.name = parts[at].name;
        info.gives = parts[at].gives;
        code = parts[at].version(info.version, sizeof info.version, &error);
    } else {
        info.kind = "store";
        info.name = hr__store_scheme(at - PARTS, &info.gives);
        if (info.name == NULL)
            return HR_ERR_RANGE;
        code = hr__store_check(at - PARTS, &error);
    }
    take_state(&info, code, &error);
    *ret_info = info;
    return HR_OK;
}
