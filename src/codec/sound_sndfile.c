/*
 * codec/sound_sndfile.c - FLAC, Ogg and MP3 by libsndfile, from memory. It is loaded when
 * the first such file comes.
 *
 * What a header says of frames is a claim: memory for them is bounded by the caller's
 * limit, and a file that ends early is refused.
 */
#include "codec/sound_priv.h"

#include <sndfile.h>
#include <string.h>

#include "core/error.h"
#include "core/library.h"

#define PIECE 4096 /* frames that are decoded at once */

/* libsndfile's functions. */
static struct {
    __typeof__(sf_close) *close;
    __typeof__(sf_error) *error;
    __typeof__(sf_open_virtual) *open_virtual;
    __typeof__(sf_readf_float) *readf_float;
    __typeof__(sf_seek) *seek;
    __typeof__(sf_version_string) *version;
} sf;

static const struct hr_symbol symbols[] = {
    {"sf_close",          &sf.close       },
    {"sf_error",          &sf.error       },
    {"sf_open_virtual",   &sf.open_virtual},
    {"sf_readf_float",    &sf.readf_float },
    {"sf_seek",           &sf.seek        },
    {"sf_version_string", &sf.version     },
};

static struct hr_library library = HR_LIBRARY("libsndfile.so.1", "libsndfile1", symbols);

/* The file, as libsndfile asks for it. */
struct memory {
    const char *data;
    sf_count_t bytes, at;
};

static sf_count_t memory_bytes(void *user)
{
    return ((struct memory *)user)->bytes;
}

static sf_count_t memory_seek(sf_count_t offset, int whence, void *user)
{
    struct memory *m = user;
    sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? m->at : m->bytes;
    sf_count_t at;

    if (__builtin_add_overflow(base, offset, &at) || at < 0)
        return -1;
    m->at = at;
    return at;
}

static sf_count_t memory_read(void *to, sf_count_t count, void *user)
{
    struct memory *m = user;
    sf_count_t left = m->at < m->bytes ? m->bytes - m->at : 0;

    count = count < left ? count : left;
    if (count <= 0)
        return 0;
    memcpy(to, m->data + m->at, (size_t)count);
    m->at += count;
    return count;
}

static sf_count_t memory_tell(void *user)
{
    return ((struct memory *)user)->at;
}

/* Frames in order, by pieces that are taken apart into channels. */
static enum hr_err read_frames(struct hr_arena *arena, SNDFILE *file,
                               struct hr_sound_part *part, struct hr_error *reterr)
{
    size_t channels = (size_t)part->channels;
    float *piece = hr__arena_alloc(arena, PIECE * channels * sizeof *piece);

    if (piece == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (int64_t at = 0; at < part->frames;) {
        int64_t left = part->frames - at;
        sf_count_t count = sf.readf_float(file, piece, left < PIECE ? left : PIECE);

        if (count <= 0 || sf.error(file) != SF_ERR_NO_ERROR)
            return hr__fail(reterr, HR_ERR_FORMAT,
                            "the file is damaged or cut short after %lld of %lld frames",
                            (long long)at, (long long)part->frames);
        for (size_t c = 0; c < channels; c++)
            hr__samples_to_f32(HR_SAMPLE_F32, piece + c, channels,
                               part->data + c * (size_t)part->frames + at, (size_t)count);
        at += count;
    }
    return hr__sound_check_finite(part, reterr);
}

enum hr_err hr__sndfile_version(const char **ret_version, struct hr_error *reterr)
{
    HR_TRY(hr__library_load(&library, reterr));
    *ret_version = sf.version();
    return HR_OK;
}

enum hr_err hr__sndfile_decode(struct hr_arena *arena, const void *data, size_t bytes,
                               const char *looks, const struct hr_sound_request *request,
                               struct hr_sound_part *ret_part, struct hr_error *reterr)
{
    static SF_VIRTUAL_IO io = {memory_bytes, memory_seek, memory_read, NULL, memory_tell};
    struct memory memory;
    SF_INFO info = {0};
    enum hr_err err = HR_OK;
    SNDFILE *file;

    HR_TRY(hr__library_load(&library, reterr));
    if (bytes >= 4 && memcmp(data, "OggS", 4) == 0)
        HR_TRY(hr__ogg_check(data, &bytes, request->start == 0 && request->frames == 0,
                             reterr));
    memory = (struct memory){data, (sf_count_t)bytes, 0};
    file = sf.open_virtual(&io, SFM_READ, &info, &memory);
    if (file == NULL)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the data looks like %s, and libsndfile cannot read it", looks);
    if (info.channels < 1 || info.channels > HR_WAV_CHANNELS_MAX || info.samplerate < 1 ||
        info.samplerate > HR_WAV_RATE_MAX || info.frames < 0 ||
        info.frames == SF_COUNT_MAX)
        err = hr__fail(reterr, HR_ERR_UNSUPPORTED,
                       "%s of %d channels, %d Hz and %lld frames is not supported", looks,
                       info.channels, info.samplerate, (long long)info.frames);
    if (err == HR_OK)
        err = hr__sound_begin(arena, request, (uint64_t)info.frames, info.channels,
                              info.samplerate, ret_part, reterr);
    if (err == HR_OK && request->start > 0 &&
        sf.seek(file, (sf_count_t)request->start, SEEK_SET) != (sf_count_t)request->start)
        err = hr__fail(reterr, HR_ERR_FORMAT, "frame %llu cannot be reached in %s",
                       (unsigned long long)request->start, looks);
    if (err == HR_OK)
        err = read_frames(arena, file, ret_part, reterr);
    sf.close(file);
    return err;
}
