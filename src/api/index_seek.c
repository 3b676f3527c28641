/*
 * api/index_seek.c - hr_index_seek: records seek points for all photos of a folder.
 *
 * The calling thread and further threads take files one by one. After each round of files
 * the seek points are saved and their memory is freed, so memory use is bounded by a
 * round for a folder of any size, and a killed run loses at most one round.
 */
#include "api/dataset_index.h"
#include "codec/jpeg.h"
#include "core/alloc.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/thread.h"
#include "headrace/dataset.h"
#include "store/seek.h"
#include "store/store.h"

#include <sched.h>
#include <stdatomic.h>

#define THREADS_MAX 64
#define ROUND_FILES ((uint64_t)1 << 16)
#define FILE_BYTES_MAX ((size_t)1 << 30)
#define STEP_CHOSEN (-1)

struct pass {
    struct hr_index *index;
    struct hr_seek *seek;
    atomic_uint_fast64_t next;
    uint64_t end, all; /* of the round; of the folder */
    atomic_bool stop;
    hr_progress_fn *progress;
    void *user;
};

struct seek_thread {
    struct pass *pass;
    struct hr_jpeg *jpeg;
    struct hr_arena arena;
    pthread_t thread;
};

static bool has_entry(struct seek_thread *thread, struct hr_hash128 key)
{
    struct hr_jpeg_index index;
    const uint8_t *data;
    size_t bytes;

    return hr__seek_find(thread->pass->seek, key, &thread->arena, &data, &bytes) &&
           hr__jpeg_index_unpack(&thread->arena, data, bytes, &index) == HR_OK &&
           index.rows == index.mcus_y;
}

/* Unreadable files and unsupported JPEGs are ignored; the run that uses them reports
 * them. */
static void index_photo(struct seek_thread *thread, const void *data, size_t bytes)
{
    struct hr_hash128 key = hr__hash128(data, bytes);
    struct hr_jpeg_index index;
    uint8_t *packed;
    size_t packed_bytes;

    if (has_entry(thread, key) ||
        hr__jpeg_index_make(thread->jpeg, &thread->arena, data, bytes, STEP_CHOSEN,
                            &index) != HR_OK)
        return;
    packed = hr__arena_alloc(&thread->arena, hr__jpeg_index_room(&index));
    if (packed == NULL)
        return;
    packed_bytes = hr__jpeg_index_pack(&index, packed);
    for (int tries = 0; tries < 1000; tries++) {
        if (hr__seek_put(thread->pass->seek, key, packed, packed_bytes, HR_SEEK_WHOLE))
            return;
        sched_yield(); /* another thread holds that part of the store */
    }
}

static void index_file(struct seek_thread *thread, uint64_t at)
{
    char path[HR_URI_MAX], *data;
    size_t bytes;

    if (hr__index_path(thread->pass->index, at, path, sizeof path, NULL) != HR_OK ||
        hr__store_load(path, FILE_BYTES_MAX, &data, &bytes, NULL) != HR_OK)
        return;
    index_photo(thread, data, bytes);
    hr__free(data);
    hr__arena_reset(&thread->arena);
}

/* Processes files until none is left. Only the calling thread reports progress. */
static void index_files(struct seek_thread *thread, hr_progress_fn *progress)
{
    struct pass *pass = thread->pass;

    while (!pass->stop) {
        uint64_t at = atomic_fetch_add(&pass->next, 1);

        if (at >= pass->end)
            break;
        index_file(thread, at);
        if (progress != NULL && !progress(pass->user, at + 1, pass->all))
            pass->stop = true;
    }
}

static void *thread_main(void *user)
{
    index_files(user, NULL);
    return NULL;
}

static enum hr_err
run_round(struct seek_thread *threads, int count, struct hr_error *reterr)
{
    enum hr_err err = HR_OK;
    int started = 1;

    for (; err == HR_OK && started < count; started++) {
        err = hr__thread_start(&threads[started].thread, "seek", thread_main,
                               &threads[started], reterr);
        if (err != HR_OK)
            break;
    }
    if (err == HR_OK)
        index_files(&threads[0], threads[0].pass->progress);
    else
        threads[0].pass->stop = true;
    for (int i = 1; i < started; i++)
        pthread_join(threads[i].thread, NULL);
    return err;
}

static enum hr_err
run(struct pass *pass, struct seek_thread *threads, int count, struct hr_error *reterr)
{
    enum hr_err err = HR_OK;
    uint64_t at;

    for (at = 0; err == HR_OK && at < pass->all && !pass->stop; at = pass->end) {
        pass->next = at;
        pass->end = pass->all - at > ROUND_FILES ? at + ROUND_FILES : pass->all;
        err = run_round(threads, count, reterr);
        hr__seek_save(pass->seek);
    }
    if (err == HR_OK && pass->stop)
        err = hr__fail(reterr, HR_ERR_CANCELLED,
                       "stopped; the seek points found so far are saved");
    return err;
}

static enum hr_err run_threads(struct pass *pass, int count, struct hr_error *reterr)
{
    struct seek_thread threads[THREADS_MAX] = {
        {NULL, NULL, {0}, 0}
    };
    enum hr_err err = HR_OK;

    for (int i = 0; i < count; i++) {
        threads[i].pass = pass;
        threads[i].jpeg = hr__jpeg_create();
        hr__arena_init(&threads[i].arena);
        if (threads[i].jpeg == NULL)
            err = HR_ERR_MEMORY;
    }
    if (err == HR_OK)
        err = run(pass, threads, count, reterr);
    else
        hr__fail(reterr, err, "out of memory");
    for (int i = 0; i < count; i++) {
        hr__jpeg_destroy(threads[i].jpeg);
        hr__arena_finish(&threads[i].arena);
    }
    return err;
}

enum hr_err
hr_index_seek(const char *root, const char *path, int threads, hr_progress_fn *progress,
              void *user, struct hr_index_seek_result *ret_result,
              struct hr_error *reterr)
{
    struct pass pass = {.progress = progress, .user = user};
    struct hr_seek_stats stats;
    enum hr_err err;

    if (root == NULL || path == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "hr_index_seek needs a folder and a path");
    if (threads <= 0)
        threads = hr__cpu_count();
    HR_TRY(hr__api_index_open(root, path, &pass.index, reterr));
    pass.all = hr__index_count(pass.index);
    err = hr__seek_create(path, UINT64_MAX / 2, &pass.seek, reterr);
    if (err == HR_OK)
        err = run_threads(&pass, threads < THREADS_MAX ? threads : THREADS_MAX, reterr);
    if (err == HR_OK) {
        hr__seek_stats(pass.seek, &stats);
        if (stats.save_failed)
            err = hr__fail(reterr, HR_ERR_IO, "cannot write %s", path);
        else if (ret_result != NULL)
            *ret_result =
                (struct hr_index_seek_result){pass.all, stats.entries, stats.bytes};
    }
    hr__seek_unref(pass.seek);
    hr__index_unref(pass.index);
    return err;
}
