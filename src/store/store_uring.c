/*
 * store/store_uring.c - files by io_uring: one thread, many reads in flight.
 *
 * The thread is the only one that submits: a completion runs in the context of the thread
 * that submitted it, and the threads that decode should not be interrupted for it (nor
 * would their reads outlive them). Others wake it through an eventfd that is itself read
 * by the ring. A file goes open (ring), fstat and the cached part (plain calls, which do
 * not wait), the rest (ring), close (plain).
 */
#include "core/alloc.h"
#include "core/error.h"
#include "core/thread.h"
#include "store/store_internal.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define READ_MAX (1u << 30) /* bytes of one entry */

struct ring {
    struct io_uring uring;
    int event_fd;
    uint64_t event_value; /* where the ring reads event_fd into */
    bool sleeping;        /* under the channel's lock: waits for events only */
    bool event_armed, cancelled;
    /* What the ring works on, linked by next. */
    struct hr_store_read *running;
    uint32_t running_count;
    pthread_t thread;
};

static void kick(struct hr_channel *channel)
{
    struct ring *ring = channel->own;
    uint64_t one = 1;

    if (!ring->sleeping)
        return;
    ring->sleeping = false;
    if (write(ring->event_fd, &one, sizeof one) < 0)
        return; /* only when the counter is full: then it is awake */
}

/* There is always room: each read has one entry at a time, and the event one more. */
static struct io_uring_sqe *entry(struct ring *ring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);

    if (sqe == NULL) {
        io_uring_submit(&ring->uring);
        sqe = io_uring_get_sqe(&ring->uring);
    }
    return sqe;
}

static void end_read(struct ring *ring, struct hr_store_read *read, enum hr_err err)
{
    struct hr_store_read **link = &ring->running;

    assert(ring->running_count > 0);
    while (*link != read)
        link = &(*link)->next;
    *link = read->next;
    ring->running_count--;
    if (read->object.as.fd >= 0)
        hr__store_close(&read->object);
    read->done(read, err);
}

static void fail_read(struct ring *ring, struct hr_store_read *read, int errnum)
{
    hr__store_note(read->error, read->range->uri);
    hr__fail_errno(read->error, HR_ERR_IO, errnum,
                   "cannot read %s (at byte %llu of %llu)", read->range->uri,
                   (unsigned long long)(read->range->offset + read->got),
                   (unsigned long long)read->object.bytes);
    end_read(ring, read, HR_ERR_IO);
}

static const char *path_of(const struct hr_store_read *read)
{
    const char *path = read->range->uri;

    (void)hr__store_is_remote(read->range->uri, &path);
    return path;
}

static void submit_open(struct ring *ring, struct hr_store_read *read)
{
    struct io_uring_sqe *sqe = hr__fault(HR_FAULT_OPEN) ? NULL : entry(ring);

    read->object.uri = read->range->uri;
    read->object.as.fd = -1;
    read->next = ring->running;
    ring->running = read;
    ring->running_count++;
    if (sqe == NULL) {
        fail_read(ring, read, EACCES);
        return;
    }
    io_uring_prep_openat(sqe, AT_FDCWD, path_of(read), HR_STORE_FILE_FLAGS, 0);
    io_uring_sqe_set_data(sqe, read);
}

static void submit_read(struct ring *ring, struct hr_store_read *read)
{
    struct io_uring_sqe *sqe = hr__fault(HR_FAULT_READ) ? NULL : entry(ring);
    size_t left = read->bytes - read->got;

    if (sqe == NULL) {
        fail_read(ring, read, EIO);
        return;
    }
    io_uring_prep_read(sqe, read->object.as.fd, read->data + read->got,
                       left < READ_MAX ? (unsigned)left : READ_MAX,
                       read->range->offset + read->got);
    io_uring_sqe_set_data(sqe, read);
}

/* The file is open: read what is cached, and let the ring read the rest. */
static void begin_reading(struct ring *ring, struct hr_store_read *read)
{
    const struct hr_store *store = read->object.store;
    int64_t ready = 0;
    enum hr_err err = hr__store_file_look(&read->object, read->error);

    if (err == HR_OK)
        err = hr__store_begin(read);
    if (err != HR_OK) {
        end_read(ring, read, err);
        return;
    }
    if (read->bytes > 0)
        ready = store->read_ready(&read->object, read->range->offset, read->data,
                                  read->bytes);
    read->got = ready > 0 ? (size_t)ready : 0;
    read->waited = read->got < read->bytes;
    if (read->got == read->bytes)
        end_read(ring, read, HR_OK);
    else
        submit_read(ring, read);
}

static void end_whole(struct ring *ring, struct hr_store_read *read)
{
    if (read->object.store->is_same(&read->object)) {
        end_read(ring, read, HR_OK);
        return;
    }
    hr__store_note(read->error, read->range->uri);
    end_read(ring, read,
             hr__fail(read->error, HR_ERR_FORMAT, "%s changed while it was read",
                      read->range->uri));
}

static void continue_reading(struct ring *ring, struct hr_store_read *read, int got)
{
    if (got == -EINTR || got == -EAGAIN) {
        /* some file systems refuse to go async on O_NONBLOCK files */
        (void)fcntl(read->object.as.fd, F_SETFL, 0);
        submit_read(ring, read);
        return;
    }
    if (got < 0) {
        fail_read(ring, read, -got);
        return;
    }
    read->got += (size_t)got;
    if (got == 0)
        end_read(ring, read,
                 hr__store_ended_early(&read->object, read->range->offset + read->got,
                                       read->error));
    else if (read->got == read->bytes)
        end_whole(ring, read);
    else
        submit_read(ring, read);
}

static void handle(struct hr_channel *channel, struct hr_store_read *read, int result)
{
    struct ring *ring = channel->own;
    bool opened = read->object.as.fd >= 0;

    if (!opened && result >= 0)
        read->object.as.fd = result;
    if (atomic_load(&channel->stop))
        end_read(ring, read, HR_ERR_CANCELLED);
    else if (read->object.as.fd < 0)
        end_read(ring, read,
                 hr__store_file_open_failed(-result, read->range->uri, read->error));
    else if (!opened)
        begin_reading(ring, read);
    else
        continue_reading(ring, read, result);
}

static void arm_event(struct ring *ring)
{
    struct io_uring_sqe *sqe;

    if (ring->event_armed || (sqe = entry(ring)) == NULL)
        return;
    io_uring_prep_read(sqe, ring->event_fd, &ring->event_value, sizeof ring->event_value,
                       0);
    io_uring_sqe_set_data(sqe, NULL);
    ring->event_armed = true;
}

/* Asks the kernel to cancel the running reads; those that it cannot cancel complete. */
static void cancel_all(struct ring *ring)
{
    ring->cancelled = true;
    for (struct hr_store_read *r = ring->running; r != NULL; r = r->next) {
        struct io_uring_sqe *sqe = entry(ring);

        if (sqe == NULL)
            continue;
        io_uring_prep_cancel(sqe, r, 0);
        io_uring_sqe_set_data(sqe, ring);
    }
}

/* Hand what is queued to the ring; true while there is something to wait for. */
static bool accept_queued(struct hr_channel *channel)
{
    struct ring *ring = channel->own;
    struct hr_store_read *read;

    pthread_mutex_lock(&channel->lock);
    while (!atomic_load(&channel->stop) && ring->running_count < channel->depth &&
           (read = hr__channel_next(channel)) != NULL) {
        pthread_mutex_unlock(&channel->lock);
        read->object.store = channel->store;
        submit_open(ring, read);
        pthread_mutex_lock(&channel->lock);
    }
    ring->sleeping = !atomic_load(&channel->stop);
    pthread_mutex_unlock(&channel->lock);
    return !atomic_load(&channel->stop) || ring->running_count > 0;
}

static void reap(struct hr_channel *channel)
{
    struct ring *ring = channel->own;
    struct io_uring_cqe *cqe;

    while (io_uring_peek_cqe(&ring->uring, &cqe) == 0) {
        struct hr_store_read *read = io_uring_cqe_get_data(cqe);
        int result = cqe->res;

        io_uring_cqe_seen(&ring->uring, cqe);
        if (read == NULL)
            ring->event_armed = false;
        else if ((void *)read != (void *)ring) /* an answer to cancel_all */
            handle(channel, read, result);
    }
}

static void *run(void *user)
{
    struct hr_channel *channel = user;
    struct ring *ring = channel->own;

    while (accept_queued(channel)) {
        if (atomic_load(&channel->stop) && !ring->cancelled)
            cancel_all(ring);
        arm_event(ring);
        io_uring_submit_and_wait(&ring->uring, 1);
        reap(channel);
    }
    return NULL;
}

static enum hr_err open_ring(struct ring *ring, uint32_t depth, struct hr_error *reterr)
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
                          "io_uring is not available");
}

enum hr_err hr__store_check_uring(struct hr_error *reterr)
{
    struct io_uring uring;
    int result = io_uring_queue_init(8, &uring, 0);

    if (result == 0)
        io_uring_queue_exit(&uring);
    else if (result == -ENOMEM)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "the limit of locked memory is too low: raise it (ulimit -l)");
    else if (result == -ENOSYS)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "the kernel has none, or the container hides it");
    else if (result < 0)
        return hr__fail_errno(reterr, HR_ERR_UNSUPPORTED, -result,
                              "not allowed: see the container's seccomp profile and "
                              "sysctl kernel.io_uring_disabled");
    return HR_OK;
}

static void close_ring(struct ring *ring)
{
    io_uring_queue_exit(&ring->uring);
    close(ring->event_fd);
    hr__free(ring);
}

static void stop(struct hr_channel *channel)
{
    struct ring *ring = channel->own;

    pthread_join(ring->thread, NULL);
    close_ring(ring);
}

static const struct hr_channel_kind by_uring = {HR_CHANNEL_URING, kick, stop};

enum hr_err hr__channel_start_uring(struct hr_channel *channel, struct hr_error *reterr)
{
    struct ring *ring = hr__calloc(1, sizeof *ring);
    enum hr_err err;

    if (ring == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    err = open_ring(ring, channel->depth, reterr);
    if (err != HR_OK) {
        hr__free(ring);
        return err;
    }
    channel->kind = &by_uring;
    channel->own = ring;
    err = hr__thread_start(&ring->thread, "hr-ring", run, channel, reterr);
    if (err != HR_OK)
        close_ring(ring);
    return err;
}
