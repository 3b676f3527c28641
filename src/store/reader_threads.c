/*
 * store/reader_threads.c - reading ahead with a few threads that block: what io_uring
 * does where it is allowed.
 *
 * Opening a cold file waits for the disk as reading does, so a thread carries a file
 * through from open to close.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/reader_internal.h"
#include <unistd.h>

/* Lock held on entry and exit, not while reading. The size is known only by reading;
 * what turns out to be over the budget is dropped then, so at most one file a thread is
 * held beyond it, for a moment. */
static void fetch(struct hr_reader *reader, struct hr_request *request)
{
    struct hr_buffer *buffer = NULL;
    bool waited = false;
    enum hr_err err;

    pthread_mutex_unlock(&reader->lock);
    err = hr__reader_read_file(reader, request->range.uri, &reader->stop, &buffer,
                               &waited, NULL);
    pthread_mutex_lock(&reader->lock);
    if (err == HR_OK && !hr__reader_reserve(reader, request, hr_buffer_bytes(buffer))) {
        hr_buffer_unref(buffer);
        buffer = NULL;
    }
    hr__reader_complete(reader, request, buffer, waited);
}

static void *run(void *user)
{
    struct hr_reader *reader = user;

    pthread_mutex_lock(&reader->lock);
    while (!atomic_load(&reader->stop)) {
        struct hr_request *request = hr__reader_next_queued(reader);

        if (request != NULL)
            fetch(reader, request);
        else
            pthread_cond_wait(&reader->work, &reader->lock);
    }
    pthread_mutex_unlock(&reader->lock);
    return NULL;
}

enum hr_err hr__reader_threads_start(struct hr_reader *reader, struct hr_error *reterr)
{
    uint32_t wanted = reader->thread_count;

    reader->thread_count = 0;
    reader->threads = hr__calloc(wanted, sizeof *reader->threads);
    if (reader->threads == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    while (reader->thread_count < wanted) {
        enum hr_err err = hr__thread_start(&reader->threads[reader->thread_count],
                                           "hr-read", run, reader, reterr);

        if (err != HR_OK && reader->thread_count == 0) {
            hr__free(reader->threads);
            reader->threads = NULL;
            return err;
        }
        if (err != HR_OK)
            break; /* fewer threads do it too */
        reader->thread_count++;
    }
    return HR_OK;
}

void hr__reader_threads_stop(struct hr_reader *reader)
{
    for (uint32_t i = 0; i < reader->thread_count; i++)
        pthread_join(reader->threads[i], NULL);
    hr__free(reader->threads);
    reader->threads = NULL;
}
