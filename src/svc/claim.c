/*
 * svc/claim.c - claims, their records, and commits.
 */
#include "svc/claim.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "svc/client.h"
#include "svc/mutant.h"

#define EARLY_BEATS 10u

enum hr_err
hr__claims_init(struct hr_claims *claims, const struct hr_claims_options *options,
                struct hr_error *reterr)
{
    assert(options->weight >= 1 && options->weight <= HR_FRAME_WEIGHT_MAX);
    memset(claims, 0, sizeof *claims);
    claims->options = *options;
    claims->pieces = hr__calloc(options->pieces_max, sizeof *claims->pieces);
    if (claims->pieces == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(
        hr__credit_init(&claims->credit, options->workers_max, options->budget, reterr));
    if (options->parts > 0)
        claims->credit.parts = options->parts;
    return HR_OK;
}

void hr__claims_finish(struct hr_claims *claims)
{
    hr__credit_finish(&claims->credit);
    hr__free(claims->pieces);
    memset(claims, 0, sizeof *claims);
}

static struct hr_claim_piece pull(struct hr_claims *claims)
{
    struct hr_claim_piece piece = claims->pieces[claims->first];

    claims->first = (claims->first + 1) % claims->options.pieces_max;
    claims->piece_count--;
    claims->bytes -= piece.bytes;
    return piece;
}

/* An early frame that is not early any more. */
static struct hr_claim_piece pull_early(struct hr_claims *claims, uint32_t at)
{
    struct hr_claim_piece piece = claims->early[at];

    claims->early_count--;
    memmove(&claims->early[at], &claims->early[at + 1],
            (claims->early_count - at) * sizeof claims->early[0]);
    memmove(&claims->early_ns[at], &claims->early_ns[at + 1],
            (claims->early_count - at) * sizeof claims->early_ns[0]);
    claims->bytes -= piece.bytes;
    return piece;
}

void *hr__claims_expired(struct hr_claims *claims, uint64_t now)
{
    for (uint32_t i = 0; i < claims->early_count; i++)
        if (now - claims->early_ns[i] > EARLY_BEATS * claims->options.beat_ns)
            return pull_early(claims, i).payload;
    return NULL;
}

void *hr__claims_drop(struct hr_claims *claims)
{
    if (claims->early_count > 0)
        return pull_early(claims, 0).payload;
    return claims->piece_count > 0 ? pull(claims).payload : NULL;
}

/* ---- telling ---- */

static struct hr_credit_use use_of(const struct hr_claims *claims)
{
    return (struct hr_credit_use){.generation = claims->generation,
                                  .held = claims->bytes};
}

static void give_credit(struct hr_claims *claims, struct hr_actions *actions)
{
    const struct hr_credit_use use = use_of(claims);

    hr__credit_give(&claims->credit, &use, actions);
}

static void
hello(const struct hr_claims *claims, hr_peer peer, struct hr_actions *actions)
{
    struct hr_frame *frame;

    if (hr__actions_left(actions) == 0)
        return;
    frame = hr__send(actions, peer, HR_FRAME_HELLO);
    frame->count = claims->options.kinds;
    frame->generation = claims->generation;
    frame->job = claims->options.job;
    frame->u.hello.nonce = claims->options.nonce;
    frame->u.hello.world = claims->options.rank + 1;
    frame->u.hello.rank = claims->options.rank;
    frame->u.hello.role = HR_FRAME_CLIENT;
    frame->u.hello.weight = claims->options.weight;
}

static void join(const struct hr_claims *claims, struct hr_credit_worker *worker,
                 struct hr_actions *actions)
{
    if (worker->joined || claims->generation == 0)
        return;
    hello(claims, worker->peer, actions);
    worker->joined = true;
    worker->welcomed = false;
}

static void send_commit(const struct hr_claims *claims, struct hr_actions *actions)
{
    struct hr_frame *frame;

    if (claims->state != HR_CLAIMS_JOINED || hr__actions_left(actions) == 0)
        return;
    frame = hr__send(actions, claims->dispatcher, HR_FRAME_COMMIT);
    frame->generation = claims->generation;
    frame->u.commit.id = claims->pending;
    for (uint32_t i = 0; i < claims->count; i++) {
        const struct hr_claim *claim = &claims->claims[i];

        if (claim->pending > claim->committed)
            frame->u.commit.ranges[frame->count++] =
                (struct hr_frame_range){claim->committed, claim->pending};
    }
}

void hr__claims_commit(struct hr_claims *claims, struct hr_actions *actions)
{
    assert(claims->resolved && claims->pending == 0);
    claims->pending = claims->committed + 1;
    for (uint32_t i = 0; i < claims->count; i++)
        claims->claims[i].pending = claims->claims[i].taken;
    send_commit(claims, actions);
}

/* ---- connections ---- */

void hr__claims_connected(struct hr_claims *claims, hr_peer peer, enum hr_frame_role role,
                          uint64_t now, struct hr_actions *actions)
{
    struct hr_credit_worker *worker;

    if (role != HR_FRAME_WORKER) {
        claims->dispatcher = peer;
        claims->told_ns = now;
        if (claims->state != HR_CLAIMS_REPLACED) {
            claims->state = HR_CLAIMS_APART;
            hello(claims, peer, actions);
        }
        return;
    }
    worker = hr__credit_add(&claims->credit, peer, actions);
    if (worker == NULL)
        return;
    join(claims, worker, actions);
    give_credit(claims, actions);
}

void hr__claims_lost(struct hr_claims *claims, hr_peer peer)
{
    hr__credit_remove(&claims->credit, peer);
    if (claims->dispatcher != peer)
        return;
    claims->dispatcher = 0;
    if (claims->state == HR_CLAIMS_JOINED)
        claims->state = HR_CLAIMS_APART;
}

/* The lowest position that was bound and has not come; beyond all if there is none. */
static uint64_t missing(const struct hr_claims *claims)
{
    for (uint32_t i = 0; i < claims->count; i++)
        if (claims->claims[i].received < claims->claims[i].until)
            return claims->claims[i].received;
    return HR_FRAME_POSITION_MAX;
}

/* How far it has got. */
static void report(const struct hr_claims *claims, struct hr_actions *actions)
{
    struct hr_frame *frame;

    if (claims->state != HR_CLAIMS_JOINED || hr__actions_left(actions) == 0)
        return;
    frame = hr__send(actions, claims->dispatcher, HR_FRAME_PROGRESS);
    frame->position = missing(claims);
    frame->generation = claims->generation;
    for (uint32_t i = 0; i < claims->count; i++) {
        const struct hr_claim *claim = &claims->claims[i];

        /* What is in a COMMIT is no longer bound when this arrives. */
        frame->count += claim->taken == claim->until &&
                        (claims->pending == 0 || claim->pending < claim->until);
    }
}

void hr__claims_tick(struct hr_claims *claims, uint64_t now, struct hr_actions *actions)
{
    const struct hr_credit_use use = use_of(claims);

    if (claims->dispatcher == 0 || claims->state == HR_CLAIMS_REPLACED ||
        now - claims->told_ns < claims->options.beat_ns)
        return;
    claims->told_ns = now;
    if (claims->state != HR_CLAIMS_JOINED) {
        hello(claims, claims->dispatcher, actions);
        return;
    }
    if (claims->pending != 0)
        send_commit(claims, actions);
    report(claims, actions);
    give_credit(claims, actions); /* for what has expired since */
    for (size_t i = 0; i < claims->credit.room; i++) {
        struct hr_credit_worker *worker = &claims->credit.workers[i];

        if (worker->peer == 0)
            continue;
        if (!worker->welcomed)
            hello(claims, worker->peer, actions);
        hr__credit_remind(worker, &use, actions);
    }
}

/* ---- joining ---- */

static enum hr_claims_do stop(struct hr_claims *claims, enum hr_err code, const char *why)
{
    claims->state = HR_CLAIMS_REPLACED;
    hr__fail(&claims->error, code, "the dispatcher refuses this client: %s", why);
    return HR_CLAIMS_STOP;
}

enum hr_claims_do
hr__claims_resolve(struct hr_claims *claims, uint64_t saved, uint64_t aside)
{
    assert(claims->resolved);
    if (HR_MUTANT(CHECKPOINT_FIRST)) {
        claims->committed = saved;
        return HR_CLAIMS_NOTHING;
    }
    if (claims->committed == saved)
        return aside != 0 ? HR_CLAIMS_KEEP : HR_CLAIMS_NOTHING;
    if (claims->committed == aside)
        return HR_CLAIMS_RENAME;
    claims->state = HR_CLAIMS_REPLACED;
    if (saved == 0)
        hr__fail(&claims->error, HR_ERR_STATE,
                 "checkpoint %llu of this consumer is committed: resume from it, or take "
                 "another name for a new consumer",
                 (unsigned long long)claims->committed);
    else
        hr__fail(&claims->error, HR_ERR_STATE,
                 "this is checkpoint %llu of the consumer, and checkpoint %llu is the "
                 "one that was committed last: resume from that one, or take another "
                 "name for a new consumer",
                 (unsigned long long)saved, (unsigned long long)claims->committed);
    return HR_CLAIMS_STOP;
}

static enum hr_claims_do welcome(struct hr_claims *claims, const struct hr_frame *frame,
                                 struct hr_actions *actions)
{
    if (frame->u.welcome.nonce != claims->options.nonce || frame->generation == 0 ||
        claims->state == HR_CLAIMS_REPLACED)
        return HR_CLAIMS_NOTHING;
    if (claims->journal != 0 && claims->journal != frame->u.welcome.window) {
        claims->state = HR_CLAIMS_REPLACED;
        hr__fail(&claims->error, HR_ERR_STATE,
                 "the dispatcher has another journal than the one with this consumer's "
                 "checkpoints: give dispatchers that share it");
        return HR_CLAIMS_STOP;
    }
    claims->journal = frame->u.welcome.window;
    if (claims->generation != 0 && claims->generation != frame->generation)
        return stop(claims, HR_ERR_CANCELLED, "it was evicted");
    if (!claims->resolved)
        claims->committed = frame->u.welcome.committed;
    claims->resolved = true;
    claims->state = HR_CLAIMS_JOINED;
    claims->generation = frame->generation;
    claims->options.rank = (uint32_t)frame->position;
    for (size_t i = 0; i < claims->credit.room; i++)
        if (claims->credit.workers[i].peer != 0)
            join(claims, &claims->credit.workers[i], actions);
    give_credit(claims, actions);
    if (claims->pending != 0)
        send_commit(claims, actions);
    return HR_CLAIMS_NOTHING;
}

/* ---- ranges ---- */

static void remove_claim(struct hr_claims *claims, uint32_t i)
{
    claims->count--;
    memmove(&claims->claims[i], &claims->claims[i + 1],
            (claims->count - i) * sizeof claims->claims[0]);
}

/* A range that is known keeps its place. */
static void claim_range(struct hr_claims *claims, struct hr_frame_range range)
{
    uint32_t i = 0;

    while (i < claims->count && claims->claims[i].until < range.until)
        i++;
    if ((i < claims->count && claims->claims[i].until == range.until) ||
        claims->count == HR_FRAME_RANGES_MAX)
        return;
    memmove(&claims->claims[i + 1], &claims->claims[i],
            (claims->count - i) * sizeof claims->claims[0]);
    claims->claims[i] =
        (struct hr_claim){range.from, range.from, range.from, range.from, range.until};
    claims->count++;
}

static enum hr_claims_do committed(struct hr_claims *claims, const struct hr_frame *frame,
                                   struct hr_actions *actions)
{
    if (claims->pending == 0 || frame->u.commit.id != claims->pending)
        return HR_CLAIMS_NOTHING;
    claims->committed = claims->pending;
    claims->pending = 0;
    for (uint32_t i = claims->count; i-- > 0;) {
        claims->claims[i].committed = claims->claims[i].pending;
        if (claims->claims[i].committed == claims->claims[i].until)
            remove_claim(claims, i);
    }
    report(claims, actions);
    return HR_CLAIMS_RENAME;
}

static bool is_idle(const struct hr_claims *claims)
{
    for (uint32_t i = 0; i < claims->count; i++)
        if (claims->claims[i].taken < claims->claims[i].until)
            return false;
    return true;
}

static enum hr_claims_do refused(struct hr_claims *claims, const struct hr_frame *frame)
{
    /* HR_ERR_IO: its journal fails now. On the next connection, again. */
    if (hr__client_is_passing(frame->u.error.code) || frame->u.error.code == HR_ERR_IO) {
        claims->state = claims->generation == 0 ? HR_CLAIMS_REFUSED : HR_CLAIMS_APART;
        return HR_CLAIMS_NOTHING;
    }
    return stop(claims, frame->u.error.code, frame->u.error.text);
}

/* The claim that waits for a position of the frame; NULL if none does. */
static struct hr_claim *find(struct hr_claims *claims, uint64_t position, uint32_t count)
{
    for (uint32_t i = 0; i < claims->count; i++) {
        struct hr_claim *claim = &claims->claims[i];

        if (claim->received < claim->until && position <= claim->received &&
            claim->received - position < count)
            return claim;
    }
    return NULL;
}

/* Keeps the part of a frame that a claim waits for; false if there is no room. */
static bool
keep(struct hr_claims *claims, struct hr_claim *claim, struct hr_claim_piece piece)
{
    size_t at = (claims->first + claims->piece_count) % claims->options.pieces_max;
    uint64_t end = piece.position + piece.count;

    if (claims->piece_count == claims->options.pieces_max)
        return false;
    end = end < claim->until ? end : claim->until;
    piece.skip = (uint32_t)(claim->received - piece.position);
    piece.position = claim->received;
    piece.count = (uint32_t)(end - claim->received);
    claims->pieces[at] = piece;
    claims->piece_count++;
    claims->bytes += piece.bytes;
    claim->received = end;
    return true;
}

/* Early frames of ranges that are known by now. */
static void adopt(struct hr_claims *claims)
{
    for (uint32_t i = 0; i < claims->early_count;) {
        const struct hr_claim_piece *early = &claims->early[i];
        struct hr_claim *claim = find(claims, early->position, early->count);

        if (claim == NULL || claims->piece_count == claims->options.pieces_max) {
            i++;
            continue;
        }
        (void)keep(claims, claim, pull_early(claims, i));
        i = 0;
    }
}

/* Keeps a frame of no range that is known. */
static bool keep_early(struct hr_claims *claims, const struct hr_claim_piece *piece)
{
    for (uint32_t i = 0; i < claims->count; i++)
        if (piece->position < claims->claims[i].until &&
            piece->position + piece->count > claims->claims[i].committed)
            return false;
    if (claims->early_count == HR_CLAIMS_EARLY)
        return false;
    claims->early[claims->early_count] = *piece;
    claims->early_ns[claims->early_count++] = claims->told_ns;
    claims->bytes += piece->bytes;
    return true;
}

enum hr_claims_do
hr__claims_frame(struct hr_claims *claims, hr_peer peer, const struct hr_frame *frame,
                 struct hr_actions *actions)
{
    struct hr_credit_worker *worker = hr__credit_find(&claims->credit, peer);

    if (worker != NULL && frame->type == HR_FRAME_WELCOME)
        worker->welcomed = frame->generation == claims->generation;
    if (peer != claims->dispatcher)
        return HR_CLAIMS_NOTHING;
    if (frame->type == HR_FRAME_WELCOME)
        return welcome(claims, frame, actions);
    if (frame->type == HR_FRAME_ERROR)
        return refused(claims, frame);
    if (claims->state != HR_CLAIMS_JOINED || frame->generation != claims->generation)
        return HR_CLAIMS_NOTHING;
    if (frame->type == HR_FRAME_COMMITTED)
        return committed(claims, frame, actions);
    if (frame->type == HR_FRAME_PROGRESS) {
        claims->idle = is_idle(claims);
        claims->done = claims->idle && frame->position == claims->options.end;
    }
    if (frame->type == HR_FRAME_BIND)
        claims->idle = false;
    for (uint32_t i = 0; frame->type == HR_FRAME_BIND && i < frame->count; i++)
        claim_range(claims, frame->u.lease.ranges[i]);
    adopt(claims);
    return HR_CLAIMS_NOTHING;
}

/* ---- records ---- */

void hr__claims_data(struct hr_claims *claims, hr_peer peer, const struct hr_frame *frame,
                     size_t bytes, void *payload, bool *ret_kept,
                     struct hr_actions *actions)
{
    struct hr_credit_worker *worker = hr__credit_find(&claims->credit, peer);
    const struct hr_claim_piece piece = {frame->position, frame->count, 0,
                                         bytes,           payload,      false};
    struct hr_claim *claim;

    *ret_kept = false;
    if (worker == NULL)
        return;
    worker->received += bytes;
    worker->silent = false;
    if (frame->generation == claims->generation) {
        claim = find(claims, frame->position, frame->count);
        *ret_kept =
            claim != NULL ? keep(claims, claim, piece) : keep_early(claims, &piece);
    }
    give_credit(claims, actions);
}

/* The first records of the first piece. */
static struct hr_claim_piece cut(struct hr_claims *claims, uint32_t most)
{
    struct hr_claim_piece *first = &claims->pieces[claims->first], piece = *first;

    if (piece.count <= most) {
        piece.last = true;
        (void)pull(claims);
        return piece;
    }
    piece.count = most;
    first->position += most;
    first->skip += most;
    first->count -= most;
    return piece;
}

bool hr__claims_take(struct hr_claims *claims, uint32_t most,
                     struct hr_claim_piece *ret_piece, struct hr_actions *actions)
{
    if (claims->piece_count == 0)
        return false;
    *ret_piece = cut(claims, most);
    for (uint32_t i = 0; i < claims->count; i++) {
        struct hr_claim *claim = &claims->claims[i];

        if (claim->taken == claim->until || ret_piece->position != claim->taken)
            continue;
        claim->taken += ret_piece->count;
        if (claim->taken == claim->until)
            report(claims, actions); /* there is room for another range */
    }
    if (ret_piece->last)
        give_credit(claims, actions);
    return true;
}

uint64_t hr__claims_uncommitted(const struct hr_claims *claims)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < claims->count; i++)
        count += claims->claims[i].taken - claims->claims[i].pending;
    return count;
}
