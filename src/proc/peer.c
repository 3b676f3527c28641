/*
 * proc/peer.c - a worker process from its start to its end.
 *
 * Every peer gets memory of its own, so that a dying one cannot write into its
 * successor's.
 */
#include "proc/proc_internal.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"

#define POLL_MS 20

bool hr__peer_cancelled(const struct hr_peer *peer)
{
    return peer->cancel != NULL && atomic_load(peer->cancel);
}

enum hr_err hr__peer_fail_cancelled(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_CANCELLED, "cancelled");
}

void hr__peer_part(struct hr_peer *peer, bool kill)
{
    if (peer->event.fd >= 0) {
        if (kill && peer->host->kill != NULL)
            peer->host->kill(peer->host->user, peer->id);
        close(peer->event.fd);
        peer->event.fd = -1;
    }
    for (int i = 0; i < HR_PROC_CHANNELS; i++) {
        struct hr_proc *proc = peer->channels[i];

        hr__shm_close(&proc->in);
        hr__shm_close(&proc->out);
        proc->in_held = proc->out_held = 0;
    }
}

const char *hr__peer_ended(const struct hr_peer *peer, char *text, size_t room)
{
    static const char start[] = "; the last one ";
    size_t length = sizeof start - 1;

    assert(room > length);
    memcpy(text, start, sizeof start);
    if (peer->event.fd >= 0 && peer->host->ended != NULL)
        peer->host->ended(peer->host->user, peer->id, text + length, room - length);
    if (text[length] == '\0')
        text[0] = '\0';
    return text;
}

static enum hr_err
send_hello(struct hr_peer *peer, size_t program_bytes, struct hr_error *reterr)
{
    struct hr_proc_hello hello = {HR_PROC_MAGIC, HR_PROC_VERSION, program_bytes,
                                  peer->replaced};
    int fds[2 * HR_PROC_CHANNELS];
    union {
        char room[CMSG_SPACE(sizeof fds)];
        struct cmsghdr head;
    } control = {{0}};
    struct iovec part = {&hello, sizeof hello};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    ssize_t sent;

    assert(peer->event.fd >= 0);
    for (int i = 0; i < HR_PROC_CHANNELS; i++) {
        assert(peer->channels[i]->in.fd >= 0 && peer->channels[i]->out.fd >= 0);
        fds[2 * i] = peer->channels[i]->in.fd;
        fds[2 * i + 1] = peer->channels[i]->out.fd;
    }
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(rights), fds, sizeof fds);
    do
        sent = sendmsg(peer->event.fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EPIPE && errno != ECONNRESET)
        return hr__fail_errno(reterr, HR_ERR_IO, errno,
                              "cannot talk to a worker process");
    return HR_OK; /* the end of a peer is seen when waiting for its answer */
}

/* Returns HR_ERR_END if the peer has ended. */
static enum hr_err receive_ready(struct hr_peer *peer, struct hr_proc_ready *ready)
{
    struct pollfd poller = {.fd = peer->event.fd, .events = POLLIN};

    for (;;) {
        ssize_t got = recv(peer->event.fd, ready, sizeof *ready, MSG_DONTWAIT);

        if (got == (ssize_t)sizeof *ready)
            return HR_OK;
        if (got >= 0 || (errno != EAGAIN && errno != EINTR))
            return HR_ERR_END;
        if (hr__peer_cancelled(peer))
            return HR_ERR_CANCELLED;
        poll(&poller, 1, POLL_MS);
    }
}

static enum hr_err
shake_hands(struct hr_peer *peer, size_t program_bytes, struct hr_error *reterr)
{
    struct hr_proc_ready ready;
    enum hr_err code;

    HR_TRY(send_hello(peer, program_bytes, reterr));
    code = receive_ready(peer, &ready);
    if (code == HR_ERR_CANCELLED)
        return hr__peer_fail_cancelled(reterr);
    if (code != HR_OK)
        return HR_ERR_END;
    if (ready.magic != HR_PROC_MAGIC || ready.version != HR_PROC_VERSION)
        return hr__fail(reterr, HR_ERR_IO,
                        "the worker process runs another version of headrace");
    if (ready.code == HR_OK)
        return HR_OK;
    code = ready.code >= HR_ERR_DENIED && ready.code < 0 ? (enum hr_err)ready.code
                                                         : HR_ERR_IO;
    return hr__fail(reterr, code, "the worker process refused to work: %.*s",
                    (int)strnlen(ready.message, sizeof ready.message), ready.message);
}

static enum hr_err
make_shm(struct hr_proc *proc, size_t in_bytes, struct hr_error *reterr)
{
    size_t start = HR_PROC_SHM_START;

    HR_TRY(hr__shm_create(&proc->in, in_bytes > start ? in_bytes : start, reterr));
    HR_TRY(hr__shm_create(&proc->out, start, reterr));
    proc->in_held = in_bytes;
    proc->out_held = HR_PROC_HEAD;
    return HR_OK;
}

static enum hr_err
start(struct hr_peer *peer, const struct hr_str *program, struct hr_error *reterr)
{
    int ends[2];
    enum hr_err code;

    for (int i = 0; i < HR_PROC_CHANNELS; i++)
        HR_TRY(make_shm(peer->channels[i], HR_PROC_HEAD + (i == 0 ? program->length : 0),
                        reterr));
    memcpy(peer->channels[0]->in.base + HR_PROC_HEAD, hr__str_text(program),
           program->length);
    peer->request = 0;
    peer->broken = false;
    errno = EMFILE;
    if (hr__fault(HR_FAULT_OPEN) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno,
                              "cannot make a socket for a worker process");
    code = peer->host->start(peer->host->user, ends[1], &peer->id, reterr);
    close(ends[1]);
    if (code != HR_OK) {
        close(ends[0]);
        return code;
    }
    peer->event = (struct hr_event){.fd = ends[0], .look = true};
    return shake_hands(peer, program->length, reterr);
}

enum hr_err hr__peer_begin(struct hr_peer *peer, struct hr_error *reterr)
{
    enum hr_err code = HR_ERR_END;
    struct hr_str program;

    assert(peer->event.fd < 0); /* no peer is running */
    hr__str_init(&program);
    hr__proc_program_write(peer->program, &program);
    if (!hr__str_ok(&program))
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a worker process");
    for (int i = 0; i < HR_PROC_DEATHS_MAX && code == HR_ERR_END; i++) {
        code = hr__peer_cancelled(peer) ? hr__peer_fail_cancelled(reterr)
                                        : start(peer, &program, reterr);
        if (code != HR_OK)
            hr__peer_part(peer, true);
    }
    hr__str_finish(&program);
    if (code == HR_ERR_END)
        code = hr__fail(reterr, HR_ERR_IO,
                        "the worker process ended before it was ready, %d times",
                        HR_PROC_DEATHS_MAX);
    return code;
}
