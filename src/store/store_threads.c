/*
 * store/store_threads.c - reads in flight by a few threads that block: for stores without
 * a way of their own, and for files where io_uring is not allowed.
 *
 * Opening a cold file waits for the disk as reading does, so a thread carries a read
 * through from open to close.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/store_internal.h"

static void *run(void *user)
{
    struct hr_channel *channel = user;

    pthread_mutex_lock(&channel->lock);
    while (!atomic_load(&channel->stop)) {
        struct hr_store_read *read = hr__channel_next(channel);

        if (read == NULL) {
            pthread_cond_wait(&channel->work, &channel->lock);
            continue;
        }
        pthread_mutex_unlock(&channel->lock);
        read->done(read, hr__store_fetch(read, &channel->stop));
        pthread_mutex_lock(&channel->lock);
    }
    pthread_mutex_unlock(&channel->lock);
    return NULL;
}

static void kick(struct hr_channel *channel)
{
    pthread_cond_signal(&channel->work);
}

static void stop(struct hr_channel *channel)
{
    pthread_t *threads = channel->own;

    for (uint32_t i = 0; i < channel->thread_count; i++)
        pthread_join(threads[i], NULL);
    hr__free(threads);
}

static const struct hr_channel_kind by_threads = {HR_CHANNEL_THREADS, kick, stop};

enum hr_err hr__channel_start_threads(struct hr_channel *channel, struct hr_error *reterr)
{
    uint32_t wanted = channel->thread_count;
    pthread_t *threads = hr__calloc(wanted, sizeof *threads);

    if (threads == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    channel->kind = &by_threads;
    channel->own = threads;
    channel->thread_count = 0;
    while (channel->thread_count < wanted) {
        enum hr_err err = hr__thread_start(&threads[channel->thread_count], "hr-read",
                                           run, channel, reterr);

        if (err != HR_OK && channel->thread_count == 0) {
            hr__free(threads);
            return err;
        }
        if (err != HR_OK)
            break; /* fewer threads do it too */
        channel->thread_count++;
    }
    return HR_OK;
}
