/*
 * audio_bank.c - reads sounds that ops mix in.
 */
#include "ops/audio_bank.h"

#include <stdio.h>
#include <string.h>

#include "codec/sound.h"
#include "core/alloc.h"
#include "kernel/polyphase.h"
#include "kernel/samples.h"
#include "store/shards.h"
#include "store/store.h"

/* While the files are read. */
struct reading {
    struct hr_bank *bank;
    struct hr_arena arena; /* of one file */
    struct hr_hasher *hasher;
    int32_t rate;
    int64_t left; /* samples that there is room for */
    int64_t samples_max;
};

/* One channel at the wanted rate, in fresh memory. */
static enum hr_err copy_sound(struct reading *r, const struct hr_sound_part *part,
                              struct hr_bank_sound *ret_sound, struct hr_error *error)
{
    struct hr_polyphase *polyphase = NULL;
    int64_t frames = part->frames, room = frames;
    enum hr_err err = HR_OK;
    float *data;

    if (part->rate != r->rate) {
        HR_TRY(hr__polyphase_create(part->rate, r->rate, HR_RATE_HQ, &polyphase, error));
        frames = hr__polyphase_count(polyphase, frames);
        room = hr__polyphase_room(polyphase, part->frames);
    }
    data = hr__malloc((size_t)room * sizeof *data);
    if (data != NULL && polyphase != NULL)
        err = hr__polyphase_run(polyphase, &r->arena, part->data, part->frames, data);
    else if (data != NULL)
        memcpy(data, part->data, (size_t)frames * sizeof *data);
    hr__polyphase_destroy(polyphase);
    if (data == NULL || err != HR_OK) {
        hr__free(data);
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    }
    *ret_sound = (struct hr_bank_sound){data, frames};
    return HR_OK;
}

static enum hr_err decode(struct reading *r, const struct hr_store_map *map,
                          struct hr_bank_sound *ret_sound, struct hr_error *error)
{
    const struct hr_sound_request request = {.samples_max = (uint64_t)r->samples_max};
    struct hr_sound_part part;

    HR_TRY(hr__sound_decode(&r->arena, map->data, map->bytes, &request, &part, error));
    if (part.frames < 1)
        return hr__fail(error, HR_ERR_FORMAT, "the file has no samples");
    hr__samples_mean(part.data, (size_t)part.frames, (size_t)part.channels, part.data,
                     (size_t)part.frames);
    HR_TRY(copy_sound(r, &part, ret_sound, error));
    r->left -= ret_sound->frames;
    if (r->left >= 0)
        return HR_OK;
    hr__free(ret_sound->data);
    return hr__fail(error, HR_ERR_LIMIT,
                    "this and the files before it have more than %lld samples: give "
                    "fewer files, or raise samples_max",
                    (long long)r->samples_max);
}

static enum hr_err read_file(struct reading *r, const char *uri, struct hr_error *error)
{
    struct hr_bank_sound *sound = &r->bank->sounds[r->bank->count];
    struct hr_store_map map;
    enum hr_err err;

    HR_TRY(hr__store_map(uri, &map, error));
    err = decode(r, &map, sound, error);
    hr__store_unmap(&map);
    hr__arena_reset(&r->arena);
    if (err != HR_OK) {
        hr__error_prefix(error, "%s", uri);
        return err;
    }
    r->bank->count++;
    if (sound->frames > r->bank->longest)
        r->bank->longest = sound->frames;
    hr__hasher_add(r->hasher, &sound->frames, sizeof sound->frames);
    hr__hasher_add(r->hasher, sound->data, (size_t)sound->frames * sizeof *sound->data);
    return HR_OK;
}

static enum hr_err
read_files(struct reading *r, const struct hr_shards *shards, struct hr_error *error)
{
    r->bank->sounds = hr__calloc(shards->count, sizeof *r->bank->sounds);
    if (r->bank->sounds == NULL || r->hasher == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < shards->count; i++)
        HR_TRY(read_file(r, shards->uris[i], error));
    r->bank->hash = hr__hasher_value(r->hasher);
    return HR_OK;
}

enum hr_err
hr__bank_open(const char *path, const char *suffix, int32_t rate, int64_t samples_max,
              struct hr_bank **ret_bank, struct hr_error *error)
{
    struct hr_shards shards = {0};
    struct reading r = {.rate = rate, .left = samples_max, .samples_max = samples_max};
    char ending[64];
    enum hr_err err;

    snprintf(ending, sizeof ending, ".%s", suffix + (suffix[0] == '.'));
    r.bank = hr__calloc(1, sizeof *r.bank);
    if (r.bank == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    hr__arena_init(&r.arena);
    r.hasher = hr__hasher_create();
    err = hr__shards_find(path, ending, false, &shards, error);
    if (err == HR_OK)
        err = read_files(&r, &shards, error);
    hr__shards_finish(&shards);
    hr__hasher_destroy(r.hasher);
    hr__arena_finish(&r.arena);
    if (err == HR_OK)
        *ret_bank = r.bank;
    else
        hr__bank_close(r.bank);
    return err;
}

void hr__bank_close(struct hr_bank *bank)
{
    if (bank == NULL)
        return;
    for (size_t i = 0; i < bank->count; i++)
        hr__free(bank->sounds[i].data);
    hr__free(bank->sounds);
    hr__free(bank);
}
