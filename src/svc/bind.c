/*
 * svc/bind.c - the events of independent consumers: who is who, commits, evictions.
 *
 * bind_grant.c binds splits and leases them.
 */
#include "svc/bind.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "svc/bind_internal.h"
#include "svc/mutant.h"

/* ---- setup ---- */

enum hr_err hr__bind_init(struct hr_binder *binder, const struct hr_bind_options *options,
                          struct hr_error *reterr)
{
    memset(binder, 0, sizeof *binder);
    if (options->split == 0 || options->window == 0 || options->ahead == 0 ||
        options->consumers == 0 || options->consumers > HR_BIND_CONSUMERS_MAX ||
        options->end > HR_FRAME_POSITION_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "job %016llx: split, window or number of consumers is out of "
                        "range",
                        (unsigned long long)options->job);
    binder->options = *options;
    binder->splits = options->end / options->split + (options->end % options->split > 0);
    binder->window = hr__calloc(options->window, sizeof *binder->window);
    binder->consumers = hr__calloc(options->consumers, sizeof *binder->consumers);
    binder->peers = hr__calloc(options->peers_max + 1, sizeof *binder->peers);
    if (binder->window == NULL || binder->consumers == NULL || binder->peers == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

void hr__bind_finish(struct hr_binder *binder)
{
    hr__free(binder->window);
    hr__free(binder->consumers);
    hr__free(binder->peers);
    memset(binder, 0, sizeof *binder);
}

/* ---- splits ---- */

static void unbind(struct hr_binder *binder, struct hr_bind_split *split)
{
    struct hr_bind_consumer *consumer = &binder->consumers[split->owner - 1];

    hr__bind_end_lease(binder, split);
    consumer->bound--;
    consumer->taken -= consumer->taken > 0;
    split->owner = 0;
}

/* Committed splits leave the window. */
static void advance(struct hr_binder *binder)
{
    while (binder->first < binder->splits &&
           hr__bind_at(binder, binder->first)->committed ==
               hr__bind_size(binder, binder->first)) {
        memset(hr__bind_at(binder, binder->first), 0, sizeof *binder->window);
        binder->first++;
    }
}

static void commit_range(struct hr_binder *binder, struct hr_frame_range range)
{
    while (range.from < range.until) {
        uint64_t number = range.from / binder->options.split;
        uint64_t begin = number * binder->options.split;
        uint64_t end = begin + hr__bind_size(binder, number);
        uint64_t until = range.until < end ? range.until : end;
        struct hr_bind_split *split;

        if (number >= hr__bind_limit(binder))
            return;
        split = hr__bind_at(binder, number);
        if (number >= binder->first && until - begin > split->committed)
            split->committed = until - begin;
        if (number >= binder->first && until == end && split->owner != 0)
            unbind(binder, split);
        range.from = until;
    }
}

struct hr_bind_work hr__bind_work(const struct hr_binder *binder, hr_peer worker)
{
    uint64_t done = binder->first * binder->options.split, end = binder->options.end;
    struct hr_bind_work work = {.committed = done < end ? done : end};

    for (uint64_t n = binder->first; n < hr__bind_limit(binder); n++) {
        const struct hr_bind_split *split = hr__bind_at(binder, n);
        struct hr_frame_range rest = hr__bind_rest(binder, n);

        work.committed += split->committed;
        if (split->worker == 0 || split->served ||
            (worker != 0 && split->worker != worker))
            continue;
        work.leased += rest.until - rest.from;
        work.leases++;
    }
    return work;
}

/* ---- consumers ---- */

static void end_leases_of(struct hr_binder *binder, uint32_t rank, bool also_bindings)
{
    for (uint64_t n = binder->first; n < hr__bind_limit(binder); n++) {
        struct hr_bind_split *split = hr__bind_at(binder, n);

        if (split->owner != rank + 1)
            continue;
        if (also_bindings)
            unbind(binder, split);
        else
            hr__bind_end_lease(binder, split);
    }
}

static void raise(struct hr_binder *binder, uint32_t rank, uint64_t nonce,
                  enum hr_row_kind kind, struct hr_actions *actions)
{
    struct hr_bind_consumer *consumer = &binder->consumers[rank];
    struct hr_row *row = hr__journal(actions, kind, binder->options.job);
    bool same = (HR_MUTANT(REJOIN_SAME_GENERATION) && kind == HR_ROW_GENERATION) ||
                (HR_MUTANT(EVICT_SAME_GENERATION) && kind == HR_ROW_EVICT);

    if (consumer->generation == 0 || !same)
        consumer->generation = ++binder->generation;
    consumer->nonce = nonce;
    row->rank = rank;
    row->generation = consumer->generation;
    row->number = nonce;
}

void hr__bind_evict(struct hr_binder *binder, uint32_t rank, uint64_t now,
                    struct hr_actions *actions)
{
    struct hr_bind_consumer *consumer = &binder->consumers[rank];

    if (consumer->nonce == 0)
        return;
    raise(binder, rank, HR_MUTANT(EVICT_SAME_GENERATION) ? consumer->nonce : 0,
          HR_ROW_EVICT, actions);
    end_leases_of(binder, rank, true);
    if (!HR_MUTANT(EVICT_SAME_GENERATION))
        consumer->peer = 0;
    hr__bind_grant(binder, now, actions);
}

/* Whether this incarnation may be the consumer; refuses it if not. */
static bool admit(struct hr_binder *binder, hr_peer peer, const struct hr_frame *frame,
                  uint64_t now, struct hr_actions *actions)
{
    const struct hr_bind_consumer *consumer = &binder->consumers[frame->u.hello.rank];

    if (frame->u.hello.nonce == consumer->nonce)
        return true;
    if (frame->generation > binder->generation) {
        hr__refuse(actions, peer, HR_ERR_CANCELLED,
                   "it is known to another journal: give dispatchers that share one");
        return false;
    }
    if (frame->generation != 0) {
        hr__refuse(actions, peer, HR_ERR_CANCELLED,
                   "it was evicted or replaced; go back to its committed checkpoint");
        return false;
    }
    if (consumer->peer != 0 && consumer->peer != peer &&
        now - consumer->acted_ns < binder->options.silent_ns) {
        hr__refuse(actions, peer, HR_ERR_STATE,
                   "it is held by a client that is alive; stop it, or wait until it is "
                   "silent");
        return false;
    }
    return true;
}

static void
tell_all_bound(const struct hr_binder *binder, uint32_t rank, struct hr_actions *actions)
{
    const struct hr_bind_consumer *consumer = &binder->consumers[rank];
    struct hr_frame *frame;

    if (consumer->bound == 0)
        return;
    frame = hr__send(actions, consumer->peer, HR_FRAME_BIND);
    frame->generation = consumer->generation;
    frame->job = binder->options.job;
    frame->u.lease.rank = rank;
    for (uint64_t n = binder->first; n < hr__bind_limit(binder); n++)
        if (hr__bind_at(binder, n)->owner == rank + 1)
            frame->u.lease.ranges[frame->count++] = hr__bind_rest(binder, n);
}

static void
hello_client(struct hr_binder *binder, hr_peer peer, const struct hr_frame *frame,
             uint64_t now, struct hr_actions *actions)
{
    uint32_t rank = frame->u.hello.rank;
    struct hr_bind_peer *p = &binder->peers[peer];
    struct hr_bind_consumer *consumer;
    struct hr_frame *answer;

    if (frame->job != binder->options.job || rank >= binder->options.consumers ||
        (p->role != 0 && p->rank != rank)) {
        hr__refuse(actions, peer, HR_ERR_NOT_FOUND,
                   "job %016llx has no consumer of rank %u here",
                   (unsigned long long)frame->job, rank);
        return;
    }
    if (!admit(binder, peer, frame, now, actions))
        return;
    consumer = &binder->consumers[rank];
    if (frame->u.hello.nonce != consumer->nonce) {
        raise(binder, rank, frame->u.hello.nonce, HR_ROW_GENERATION, actions);
        end_leases_of(binder, rank, false);
        consumer->taken = 0;
    }
    p->role = HR_FRAME_CLIENT;
    p->rank = rank;
    consumer->peer = peer;
    consumer->weight = frame->u.hello.weight;
    consumer->acted_ns = now;
    answer = hr__send(actions, peer, HR_FRAME_WELCOME);
    answer->generation = consumer->generation;
    answer->job = frame->job;
    answer->position = rank;
    answer->u.welcome.nonce = frame->u.hello.nonce;
    answer->u.welcome.committed = consumer->committed;
    answer->u.welcome.window = binder->options.journal;
    tell_all_bound(binder, rank, actions);
    hr__bind_grant(binder, now, actions);
}

/* ---- commits ---- */

/* Whether a range begins where its consumer has committed to, and is its own. */
static bool
may_commit(const struct hr_binder *binder, uint32_t rank, struct hr_frame_range range)
{
    while (range.from < range.until) {
        uint64_t number = range.from / binder->options.split;
        struct hr_frame_range rest;

        if (number < binder->first || number >= hr__bind_limit(binder) ||
            hr__bind_at(binder, number)->owner != rank + 1)
            return false;
        rest = hr__bind_rest(binder, number);
        if (range.from != rest.from)
            return false;
        range.from = range.until < rest.until ? range.until : rest.until;
    }
    return true;
}

static bool
is_valid(const struct hr_binder *binder, uint32_t rank, const struct hr_frame *frame)
{
    if (HR_MUTANT(EVICT_SAME_GENERATION) || HR_MUTANT(BIND_AFTER_LEASE))
        return true; /* else the ranges would give it away */
    for (uint32_t i = 0; i < frame->count; i++)
        if (!may_commit(binder, rank, frame->u.commit.ranges[i]))
            return false;
    return true;
}

static void answer_commit(const struct hr_bind_consumer *consumer, hr_peer peer,
                          struct hr_actions *actions)
{
    struct hr_frame *frame = hr__send(actions, peer, HR_FRAME_COMMITTED);

    frame->generation = consumer->generation;
    frame->u.commit.id = consumer->committed;
}

static void commit(struct hr_binder *binder, hr_peer peer, uint32_t rank,
                   const struct hr_frame *frame, uint64_t now, struct hr_actions *actions)
{
    struct hr_bind_consumer *consumer = &binder->consumers[rank];
    struct hr_row *row;

    if (frame->u.commit.id == consumer->committed) { /* the answer was lost */
        answer_commit(consumer, peer, actions);
        return;
    }
    if (frame->u.commit.id != consumer->committed + 1 || !is_valid(binder, rank, frame)) {
        hr__refuse(actions, peer, HR_ERR_CANCELLED,
                   "checkpoint %llu does not follow from checkpoint %llu; go back to "
                   "that one",
                   (unsigned long long)frame->u.commit.id,
                   (unsigned long long)consumer->committed);
        return;
    }
    row = hr__journal(actions, HR_ROW_COMMIT, binder->options.job);
    row->rank = rank;
    row->generation = consumer->generation;
    row->number = frame->u.commit.id;
    row->count = frame->count;
    memcpy(row->ranges, frame->u.commit.ranges, frame->count * sizeof row->ranges[0]);
    consumer->committed = frame->u.commit.id;
    for (uint32_t i = 0; i < frame->count; i++) {
        const struct hr_frame_range *range = &frame->u.commit.ranges[i];

        commit_range(binder, *range);
        binder->counts.positions_taken += range->until - range->from;
    }
    advance(binder);
    answer_commit(consumer, peer, actions);
    hr__bind_grant(binder, now, actions);
}

/* ---- events ---- */

/* The client waits for a position that was sent long ago: it was lost on its way. */
static void
serve_again(struct hr_binder *binder, uint32_t rank, uint64_t position, uint64_t now)
{
    uint64_t number = position / binder->options.split;
    struct hr_bind_split *split;

    if (number < binder->first || number >= hr__bind_limit(binder))
        return;
    split = hr__bind_at(binder, number);
    if (split->owner == rank + 1 && split->served && split->deadline_ns <= now)
        hr__bind_end_lease(binder, split);
}

/* The consumer has taken all that is bound to it: whether it may get more before it
 * commits, it would have by now. */
static void tell_idle(const struct hr_binder *binder, uint32_t rank, hr_peer peer,
                      struct hr_actions *actions)
{
    const struct hr_bind_consumer *consumer = &binder->consumers[rank];
    struct hr_frame *frame;

    if (consumer->bound > consumer->taken || hr__actions_left(actions) == 0)
        return;
    frame = hr__send(actions, peer, HR_FRAME_PROGRESS);
    frame->generation = consumer->generation;
    frame->position = hr__bind_is_done(binder) ? binder->options.end
                                               : binder->first * binder->options.split;
}

static void
from_client(struct hr_binder *binder, hr_peer peer, const struct hr_frame *frame,
            uint64_t now, struct hr_actions *actions)
{
    uint32_t rank = binder->peers[peer].rank;
    struct hr_bind_consumer *consumer = &binder->consumers[rank];

    if (frame->generation == 0 || frame->generation != consumer->generation) {
        hr__refuse(actions, peer, HR_ERR_CANCELLED,
                   "it was evicted or replaced; go back to its committed checkpoint");
        return;
    }
    if (consumer->peer != peer) { /* a message on an older connection came later */
        consumer->peer = peer;
        tell_all_bound(binder, rank, actions);
    }
    consumer->acted_ns = now;
    if (frame->type == HR_FRAME_COMMIT) {
        commit(binder, peer, rank, frame, now, actions);
        return;
    }
    serve_again(binder, rank, frame->position, now);
    consumer->taken = frame->count < consumer->bound ? frame->count : consumer->bound;
    hr__bind_grant(binder, now, actions);
    if (frame->position == HR_FRAME_POSITION_MAX)
        tell_idle(binder, rank, peer, actions);
}

/* It leaves in good order: others get at once what it has not committed. */
static void
leave(struct hr_binder *binder, hr_peer peer, uint64_t now, struct hr_actions *actions)
{
    uint32_t rank = binder->peers[peer].rank;

    if (binder->consumers[rank].peer == peer)
        hr__bind_evict(binder, rank, now, actions);
}

static void finished(struct hr_binder *binder, hr_peer peer, const struct hr_frame *frame,
                     uint64_t now, struct hr_actions *actions)
{
    for (uint32_t i = 0; i < frame->count; i++) {
        uint64_t number = frame->u.lease.ranges[i].from / binder->options.split;
        struct hr_bind_split *split;

        if (number < binder->first || number >= hr__bind_limit(binder))
            continue;
        split = hr__bind_at(binder, number);
        if (split->worker != peer || split->served ||
            binder->consumers[split->owner - 1].generation != frame->generation)
            continue;
        split->served = true;
        split->deadline_ns = now + binder->options.served_ns;
        binder->counts.leases_finished++;
        binder->counts.positions_finished += split->leased;
        binder->peers[peer].finished += split->leased;
        binder->peers[peer].held--;
        binder->peers[peer].doubt = 0;
    }
    hr__bind_grant(binder, now, actions);
}

static void
hello_worker(struct hr_binder *binder, hr_peer peer, const struct hr_frame *frame,
             uint64_t now, struct hr_actions *actions)
{
    struct hr_frame *answer = hr__send(actions, peer, HR_FRAME_WELCOME);

    answer->u.welcome.nonce = frame->u.hello.nonce;
    binder->peers[peer].role = HR_FRAME_WORKER;
    binder->peers[peer].slots = frame->count;
    hr__bind_grant(binder, now, actions);
}

void hr__bind_frame(struct hr_binder *binder, hr_peer peer, const struct hr_frame *frame,
                    uint64_t now, struct hr_actions *actions)
{
    struct hr_bind_peer *p = &binder->peers[peer];

    assert(peer > 0 && peer <= binder->options.peers_max && actions->count == 0);
    p->heard_ns = now;
    if (frame->type == HR_FRAME_HELLO && frame->u.hello.role == HR_FRAME_CLIENT &&
        p->role != HR_FRAME_WORKER)
        hello_client(binder, peer, frame, now, actions);
    else if (frame->type == HR_FRAME_HELLO && frame->u.hello.role == HR_FRAME_WORKER &&
             p->role != HR_FRAME_CLIENT)
        hello_worker(binder, peer, frame, now, actions);
    else if (p->role == HR_FRAME_CLIENT &&
             (frame->type == HR_FRAME_COMMIT || frame->type == HR_FRAME_PROGRESS))
        from_client(binder, peer, frame, now, actions);
    else if (p->role == HR_FRAME_CLIENT && frame->type == HR_FRAME_GOODBYE)
        leave(binder, peer, now, actions);
    else if (p->role == HR_FRAME_WORKER && frame->type == HR_FRAME_FINISHED)
        finished(binder, peer, frame, now, actions);
    else if (p->role == HR_FRAME_WORKER && frame->type == HR_FRAME_GOODBYE)
        p->leaving = true;
    else if (p->role != HR_FRAME_WORKER || frame->type != HR_FRAME_PROGRESS)
        hr__refuse(actions, peer, HR_ERR_STATE, "a %s frame is not expected here",
                   hr__frame_name(frame->type));
}

static void forget(struct hr_binder *binder, hr_peer peer)
{
    struct hr_bind_peer *p = &binder->peers[peer];

    for (uint64_t n = binder->first;
         p->role == HR_FRAME_WORKER && n < hr__bind_limit(binder); n++)
        if (hr__bind_at(binder, n)->worker == peer)
            hr__bind_end_lease(binder, hr__bind_at(binder, n));
    if (p->role == HR_FRAME_CLIENT && binder->consumers[p->rank].peer == peer)
        binder->consumers[p->rank].peer = 0;
    memset(p, 0, sizeof *p);
}

void hr__bind_lost(struct hr_binder *binder, hr_peer peer, uint64_t now,
                   struct hr_actions *actions)
{
    forget(binder, peer);
    hr__bind_grant(binder, now, actions);
}

static void expire(struct hr_binder *binder, uint64_t now)
{
    for (uint64_t n = binder->first; n < hr__bind_limit(binder); n++) {
        struct hr_bind_split *split = hr__bind_at(binder, n);

        if (split->worker == 0 || split->served || split->deadline_ns > now)
            continue;
        binder->peers[split->worker].doubt++;
        binder->counts.leases_expired++;
        hr__bind_end_lease(binder, split);
    }
}

void hr__bind_tick(struct hr_binder *binder, uint64_t now, struct hr_actions *actions)
{
    for (size_t i = 1; i <= binder->options.peers_max; i++)
        if (binder->peers[i].role != 0 &&
            hr__actions_left(actions) > HR_ACTIONS_MAX / 2 &&
            now - binder->peers[i].heard_ns >= binder->options.silent_ns) {
            hr__close(actions, (hr_peer)i);
            forget(binder, (hr_peer)i);
        }
    expire(binder, now);
    for (uint32_t r = 0; r < binder->options.consumers; r++)
        if (binder->consumers[r].peer == 0 && binder->consumers[r].bound > 0 &&
            hr__actions_left(actions) > HR_ACTIONS_MAX / 4 &&
            now - binder->consumers[r].acted_ns >= binder->options.absent_ns)
            hr__bind_evict(binder, r, now, actions);
    hr__bind_grant(binder, now, actions);
}

/* ---- the journal ---- */

static bool fits(const struct hr_binder *binder, const struct hr_row *row)
{
    if (row->job != binder->options.job || row->rank >= binder->options.consumers ||
        row->count > HR_FRAME_RANGES_MAX)
        return false;
    for (uint32_t i = 0; i < row->count; i++)
        if (row->ranges[i].from >= row->ranges[i].until ||
            row->ranges[i].until > binder->options.end ||
            row->ranges[i].from / binder->options.split >= hr__bind_limit(binder))
            return false;
    return true;
}

enum hr_err
hr__bind_restore(struct hr_binder *binder, uint64_t first, struct hr_error *reterr)
{
    if (first > binder->splits)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the journal of job %016llx begins beyond its end",
                        (unsigned long long)binder->options.job);
    binder->first = first;
    return HR_OK;
}

enum hr_err hr__bind_replay(struct hr_binder *binder, const struct hr_row *row,
                            struct hr_error *reterr)
{
    struct hr_bind_consumer *consumer = &binder->consumers[row->rank];

    if (!fits(binder, row))
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the journal of job %016llx has a row that does not fit",
                        (unsigned long long)binder->options.job);
    if (row->kind == HR_ROW_BIND) {
        uint64_t number = row->ranges[0].from / binder->options.split;

        if (number >= binder->first && hr__bind_at(binder, number)->owner == 0)
            hr__bind_own(binder, number, row->rank);
        return HR_OK;
    }
    if (row->generation > binder->generation)
        binder->generation = row->generation;
    consumer->generation = row->generation;
    if (row->kind == HR_ROW_EVICT)
        end_leases_of(binder, row->rank, true);
    if (row->kind == HR_ROW_COMMIT) {
        consumer->committed = row->number;
        for (uint32_t i = 0; i < row->count; i++)
            commit_range(binder, row->ranges[i]);
        advance(binder);
        return HR_OK;
    }
    consumer->nonce = row->number;
    return HR_OK;
}
