/*
 * fleet/squeeze.c - compression of a worker's frames: svc/compression.h decides, this
 * measures, and compresses in the maker's thread.
 */
#include <string.h>

#include "core/clock.h"
#include "core/cpu.h"
#include "fleet/worker.h"

#define TELL_NS (500 * HR_FLEET_MS) /* between TRAFFIC frames */

#define PLAIN HR_COMPRESSION_BIT(HR_COMPRESSION_NONE)

enum hr_err hr__squeeze_open(struct hr_worker_process *w, const char *compress,
                             struct hr_error *reterr)
{
    unsigned wanted = hr__compression_set(compress), can = hr__compressed_writes();
    int cpus = hr__cpu_count();

    if (wanted == 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "compression is auto, none, lz4 or zstd, not '%.40s'", compress);
    w->kinds = wanted & can;
    w->cpus = cpus > 0 ? (unsigned)cpus : 1;
    if (w->kinds == 0)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "this worker cannot compress by %s: its library is not "
                        "installed (headrace doctor)",
                        compress);
    return HR_OK;
}

void hr__squeeze_client(struct hr_worker_process *w, uint32_t peer, unsigned kinds)
{
    struct hr_worker_link *link = &w->peers[peer].link;
    unsigned allowed = w->kinds & kinds;
    unsigned makers = w->threads > 0 ? (unsigned)w->threads : w->cpus;

    if (link->reviewed_ns != 0)
        return; /* it has said so before */
    if (allowed == 0 || hr__net_is_local(w->base.net, peer))
        allowed = PLAIN;
    *link = (struct hr_worker_link){
        .reviewed_ns = hr__now_ns(), .cpu_ns = hr__cpu_process_ns(), .made = w->made};
    hr__compression_begin(&link->choice, allowed, makers < w->cpus ? makers : w->cpus,
                          w->cpus);
}

/* ---- the dispatcher ---- */

void hr__squeeze_tell(struct hr_worker_process *w, uint64_t now)
{
    struct hr_frame frame = {.type = HR_FRAME_TRAFFIC};

    if (now - w->told_ns < TELL_NS)
        return;
    for (uint32_t i = 1; i <= w->peers_max; i++)
        if (w->peers[i].link.reviewed_ns != 0 && !hr__net_is_local(w->base.net, i))
            frame.count |= HR_COMPRESSION_BIT(w->peers[i].link.choice.now);
    if (frame.count == w->told_kinds && w->tcp_made == w->told_made &&
        w->shared == w->told_shared)
        return;
    w->told_ns = now;
    w->told_kinds = frame.count;
    w->told_made = w->tcp_made;
    w->told_shared = w->shared;
    frame.position = w->shared;
    frame.u.traffic.made = w->tcp_made;
    frame.u.traffic.sent = w->tcp_sent;
    hr__worker_tell(w, &frame);
}

/* ---- the maker ---- */

/* What happened since the last review. */
static void review(struct hr_worker_process *w, uint32_t peer, uint64_t now)
{
    struct hr_worker_link *link = &w->peers[peer].link;
    uint64_t cpu_ns = hr__cpu_process_ns() - w->squeeze_ns;
    struct hr_compression_window window = {.ns = now - link->reviewed_ns,
                                           .bytes = link->bytes,
                                           .make_ns = cpu_ns - link->cpu_ns,
                                           .made_bytes = w->made - link->made};
    struct hr_net_traffic traffic;

    hr__net_traffic(w->base.net, peer, &traffic);
    if (traffic.handed < link->traffic.handed)
        return; /* the connection is gone */
    window.busy_ns = traffic.busy_ns - link->traffic.busy_ns;
    window.busy_bytes = traffic.delivered - link->traffic.delivered;
    window.handed = traffic.handed;
    window.delivered = traffic.delivered;
    (void)hr__compression_review(&link->choice, &window, now);
    link->reviewed_ns = now;
    link->bytes = 0;
    link->traffic = traffic;
    link->cpu_ns = cpu_ns;
    link->made = w->made;
}

void hr__squeeze_begin(struct hr_worker_process *w, uint32_t peer,
                       struct hr_squeeze *ret_squeeze)
{
    struct hr_worker_link *link = &w->peers[peer].link;
    uint64_t now = hr__now_ns();

    *ret_squeeze = (struct hr_squeeze){0};
    if (link->reviewed_ns == 0 || link->choice.allowed == PLAIN)
        return;
    if (now - link->reviewed_ns >= HR_COMPRESSION_REVIEW_NS)
        review(w, peer, now);
    ret_squeeze->kind = link->choice.now;
    for (unsigned kind = 1; kind < HR_COMPRESSION_KINDS; kind++)
        if (hr__compression_wants(&link->choice, (enum hr_compression)kind, now))
            ret_squeeze->samples |= HR_COMPRESSION_BIT(kind);
}

static void note(struct hr_squeeze *squeeze, enum hr_compression kind, enum hr_err code)
{
    if (code == HR_OK)
        squeeze->measured |= HR_COMPRESSION_BIT(kind);
    else
        squeeze->failed |= HR_COMPRESSION_BIT(kind);
}

static void compress(struct hr_worker_process *w, struct hr_squeeze *squeeze,
                     const struct hr_parcel_pieces *pieces)
{
    struct hr_compression_cost *cost = &squeeze->costs[squeeze->kind];
    uint64_t begin = hr__cpu_thread_ns();

    note(squeeze, squeeze->kind,
         hr__compressed_write(&w->squeezer, squeeze->kind, pieces, w->pool,
                              &squeeze->body, NULL));
    cost->ratio = squeeze->body != NULL
                      ? (double)hr_buffer_bytes(squeeze->body) / (double)pieces->bytes
                      : 1;
    cost->pack_ns = (double)(hr__cpu_thread_ns() - begin) / (double)pieces->bytes;
}

void hr__squeeze_run(struct hr_worker_process *w, struct hr_squeeze *squeeze,
                     const struct hr_parcel_pieces *pieces)
{
    uint64_t begin;

    if (pieces->count == 0 ||
        (squeeze->kind == HR_COMPRESSION_NONE && squeeze->samples == 0))
        return;
    begin = hr__cpu_thread_ns();
    for (unsigned kind = 1; kind < HR_COMPRESSION_KINDS; kind++)
        if (squeeze->samples & HR_COMPRESSION_BIT(kind))
            note(squeeze, (enum hr_compression)kind,
                 hr__compressed_sample(&w->squeezer, (enum hr_compression)kind, pieces,
                                       &squeeze->costs[kind], NULL));
    if (squeeze->kind != HR_COMPRESSION_NONE)
        compress(w, squeeze, pieces);
    squeeze->ns = hr__cpu_thread_ns() - begin;
}

void hr__squeeze_end(struct hr_worker_process *w, uint32_t peer,
                     const struct hr_squeeze *squeeze, size_t bytes, size_t sent)
{
    struct hr_worker_link *link = &w->peers[peer].link;
    uint64_t now = hr__now_ns();

    w->made += bytes;
    w->squeeze_ns += squeeze->ns;
    link->bytes += bytes;
    if (!hr__net_is_local(w->base.net, peer)) {
        w->tcp_made += bytes;
        w->tcp_sent += sent;
    }
    for (unsigned kind = 1; kind < HR_COMPRESSION_KINDS; kind++) {
        if (squeeze->measured & HR_COMPRESSION_BIT(kind))
            hr__compression_measured(&link->choice, (enum hr_compression)kind,
                                     &squeeze->costs[kind], now);
        if (squeeze->failed & HR_COMPRESSION_BIT(kind))
            hr__compression_forbid(&link->choice, (enum hr_compression)kind);
    }
}
