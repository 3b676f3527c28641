/*
 * store/reader_uring.c - reading ahead with io_uring: one thread, many files in flight.
 *
 * The thread is the only one that submits: a request's completion is run in the context
 * of the thread that submitted it, and the threads that decode should not be interrupted
 * for it (nor would their requests outlive them). Others wake it through an eventfd that
 * is itself read by the ring. A file goes open (ring), fstat and the cached part (plain
 * calls, which do not wait), the rest (ring), close (plain).
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/reader_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct hr_reader_ring {
    struct io_uring uring;
    int event_fd;
    uint64_t event_value; /* where the ring reads event_fd into */
    bool sleeping;        /* under the reader's lock: waits for events only */
    bool event_armed, cancelled;
    uint32_t in_flight; /* requests that the ring works on */
    pthread_t thread;
};

void hr__reader_ring_kick(struct hr_reader *reader)
{
    struct hr_reader_ring *ring = reader->ring;
    uint64_t one = 1;

    if (!ring->sleeping)
        return;
    ring->sleeping = false;
    if (write(ring->event_fd, &one, sizeof one) < 0)
        return; /* only when the counter is full: then it is awake */
}

/* There is always room: each request has one entry at a time, and the event one more. */
static struct io_uring_sqe *entry(struct hr_reader_ring *ring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);

    if (sqe == NULL) {
        io_uring_submit(&ring->uring);
        sqe = io_uring_get_sqe(&ring->uring);
    }
    return sqe;
}

static void end_request(struct hr_reader *reader, struct hr_request *request, bool ok)
{
    struct hr_buffer *buffer = request->buffer;

    if (request->fd >= 0)
        close(request->fd);
    request->fd = -1;
    request->buffer = NULL;
    if (!ok)
        hr_buffer_unref(buffer);
    reader->ring->in_flight--;
    pthread_mutex_lock(&reader->lock);
    hr__reader_complete(reader, request, ok ? buffer : NULL, request->waited);
    pthread_mutex_unlock(&reader->lock);
}

static void submit_open(struct hr_reader *reader, struct hr_request *request)
{
    struct io_uring_sqe *sqe;

    reader->ring->in_flight++;
    sqe = hr__fault(HR_FAULT_OPEN) ? NULL : entry(reader->ring);
    if (sqe == NULL) {
        end_request(reader, request, false);
        return;
    }
    io_uring_prep_openat(sqe, AT_FDCWD, request->range.uri,
                         O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    io_uring_sqe_set_data(sqe, request);
}

static void submit_read(struct hr_reader *reader, struct hr_request *request)
{
    size_t left = hr_buffer_bytes(request->buffer) - request->done_bytes;
    struct io_uring_sqe *sqe = hr__fault(HR_FAULT_READ) ? NULL : entry(reader->ring);
    char *data = hr_buffer_data(request->buffer);

    if (sqe == NULL) {
        end_request(reader, request, false);
        return;
    }
    io_uring_prep_read(sqe, request->fd, data + request->done_bytes,
                       left < (1u << 30) ? (unsigned)left : 1u << 30,
                       request->done_bytes);
    io_uring_sqe_set_data(sqe, request);
}

/* A buffer for `bytes` within the budget, or NULL. */
static struct hr_buffer *
get_buffer(struct hr_reader *reader, struct hr_request *request, size_t bytes)
{
    struct hr_buffer *buffer = NULL;
    bool allowed;

    pthread_mutex_lock(&reader->lock);
    allowed = hr__reader_reserve(reader, request, bytes);
    pthread_mutex_unlock(&reader->lock);
    if (!allowed || hr__reader_get_buffer(reader, bytes, &buffer) != HR_OK)
        return NULL;
    return buffer;
}

/* The file is open: read what is cached, and let the ring read the rest. */
static void begin_reading(struct hr_reader *reader, struct hr_request *request)
{
    size_t bytes;
    int64_t cached = 0;

    if (hr__reader_check_file(reader, request->fd, request->range.uri, &bytes, NULL) !=
            HR_OK ||
        (request->buffer = get_buffer(reader, request, bytes)) == NULL) {
        end_request(reader, request, false);
        return;
    }
    if (bytes > 0)
        cached = hr__reader_read_cached(request->fd, hr_buffer_data(request->buffer),
                                        bytes, 0);
    request->done_bytes = cached > 0 ? (size_t)cached : 0;
    request->waited = request->done_bytes < bytes;
    if (request->done_bytes == bytes)
        end_request(reader, request, true);
    else
        submit_read(reader, request);
}

static void go_on_reading(struct hr_reader *reader, struct hr_request *request, int got)
{
    if (got == -EINTR || got == -EAGAIN) {
        /* some file systems refuse to go async on O_NONBLOCK files */
        (void)fcntl(request->fd, F_SETFL, 0);
        submit_read(reader, request);
        return;
    }
    if (got <= 0) {
        end_request(reader, request, false);
        return;
    }
    request->done_bytes += (size_t)got;
    if (request->done_bytes == hr_buffer_bytes(request->buffer))
        end_request(reader, request, true);
    else
        submit_read(reader, request);
}

static void handle(struct hr_reader *reader, struct hr_request *request, int result)
{
    bool opened = request->fd >= 0;

    if (!opened && result >= 0)
        request->fd = result;
    if (request->fd < 0 || atomic_load(&reader->stop))
        end_request(reader, request, false);
    else if (!opened)
        begin_reading(reader, request);
    else
        go_on_reading(reader, request, result);
}

static void arm_event(struct hr_reader_ring *ring)
{
    struct io_uring_sqe *sqe;

    if (ring->event_armed || (sqe = entry(ring)) == NULL)
        return;
    io_uring_prep_read(sqe, ring->event_fd, &ring->event_value, sizeof ring->event_value,
                       0);
    io_uring_sqe_set_data(sqe, NULL);
    ring->event_armed = true;
}

/* Ask the kernel to give up what the ring works on; what it cannot give up ends by
 * itself. */
static void cancel_all(struct hr_reader *reader)
{
    struct hr_reader_ring *ring = reader->ring;

    ring->cancelled = true;
    for (uint32_t i = 0; i < reader->depth; i++) {
        struct io_uring_sqe *sqe;

        if (reader->requests[i].state != HR_REQUEST_RUNNING ||
            (sqe = entry(ring)) == NULL)
            continue;
        io_uring_prep_cancel(sqe, &reader->requests[i], 0);
        io_uring_sqe_set_data(sqe, ring);
    }
}

/* Hand what is queued to the ring; true when there is reason to go on. */
static bool accept_queued(struct hr_reader *reader)
{
    struct hr_reader_ring *ring = reader->ring;
    struct hr_request *request;

    pthread_mutex_lock(&reader->lock);
    while (!atomic_load(&reader->stop) &&
           (request = hr__reader_next_queued(reader)) != NULL) {
        pthread_mutex_unlock(&reader->lock);
        submit_open(reader, request);
        pthread_mutex_lock(&reader->lock);
    }
    ring->sleeping = !atomic_load(&reader->stop);
    pthread_mutex_unlock(&reader->lock);
    return !atomic_load(&reader->stop) || ring->in_flight > 0;
}

static void reap(struct hr_reader *reader)
{
    struct hr_reader_ring *ring = reader->ring;
    struct io_uring_cqe *cqe;

    while (io_uring_peek_cqe(&ring->uring, &cqe) == 0) {
        struct hr_request *request = io_uring_cqe_get_data(cqe);
        int result = cqe->res;

        io_uring_cqe_seen(&ring->uring, cqe);
        if (request == NULL)
            ring->event_armed = false;
        else if ((void *)request != (void *)ring) /* an answer to cancel_all */
            handle(reader, request, result);
    }
}

static void *run(void *user)
{
    struct hr_reader *reader = user;
    struct hr_reader_ring *ring = reader->ring;

    while (accept_queued(reader)) {
        if (atomic_load(&reader->stop) && !ring->cancelled)
            cancel_all(reader);
        arm_event(ring);
        io_uring_submit_and_wait(&ring->uring, 1);
        reap(reader);
    }
    return NULL;
}

static enum hr_err
open_ring(struct hr_reader_ring *ring, uint32_t depth, struct hr_error *reterr)
{
    unsigned entries = 8;
    int result;

    while (entries < depth + 8)
        entries *= 2;
    ring->event_fd = hr__fault(HR_FAULT_OPEN) ? -1 : eventfd(0, EFD_CLOEXEC);
    if (ring->event_fd < 0)
        return hr__fail(reterr, HR_ERR_IO, "cannot open an eventfd");
    result = io_uring_queue_init(entries, &ring->uring, 0);
    if (result == 0)
        return HR_OK;
    close(ring->event_fd);
    return hr__fail_errno(reterr, HR_ERR_UNSUPPORTED, -result,
                          "io_uring is not to be had");
}

static void close_ring(struct hr_reader_ring *ring)
{
    io_uring_queue_exit(&ring->uring);
    close(ring->event_fd);
    hr__free(ring);
}

enum hr_err hr__reader_ring_start(struct hr_reader *reader, struct hr_error *reterr)
{
    struct hr_reader_ring *ring = hr__calloc(1, sizeof *ring);
    enum hr_err err;

    if (ring == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    err = open_ring(ring, reader->depth, reterr);
    if (err != HR_OK) {
        hr__free(ring);
        return err;
    }
    reader->ring = ring;
    err = hr__thread_start(&ring->thread, "hr-ring", run, reader, reterr);
    if (err != HR_OK) {
        close_ring(ring);
        reader->ring = NULL;
    }
    return err;
}

void hr__reader_ring_stop(struct hr_reader *reader)
{
    pthread_join(reader->ring->thread, NULL);
    close_ring(reader->ring);
    reader->ring = NULL;
}
