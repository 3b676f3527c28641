/*
 * fleet/consumer.c - a client that is one of several independent consumers of its job:
 * svc/claim.h on the connections of remote.c.
 *
 * Its state says which checkpoint of the consumer it belongs to; what was consumed up to
 * there the dispatcher knows. docs/formats/state.md has the keys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/doc.h"
#include "core/kill_point.h"
#include "engine/batch.h"
#include "fleet/job.h"
#include "fleet/parcel.h"
#include "fleet/remote_internal.h"
#include "wire/frame.h"

#define STATE_VERSION 2

struct hr_consumer {
    char *name, *job; /* of the run */
    uint64_t job_id;
    struct hr_claims claims;
    uint64_t
        resumed;  /* number of the checkpoint that the trainer resumed from; 0: none */
    bool settled; /* it is the one that counts */
    bool ended;   /* the end was delivered */
    /* Delivered up to that checkpoint by earlier incarnations; by this one. */
    uint64_t batches_before, records_before, batches, records;
    int64_t epoch; /* of the last batch */
};

/* ---- opening ---- */

static enum hr_err check(const struct hr_iter_options *o, struct hr_error *reterr)
{
    size_t length = strlen(o->service_consumer);
    const char *wrong = o->service_job == NULL ? "the name of the job, which all of its "
                                                 "consumers give"
                        : o->world > 1 ? "no ranks: the next batches go to the first "
                                         "one with room"
                                       : NULL;

    if (length == 0 || length > HR_FRAME_NAME_MAX ||
        !hr__frame_is_plain(o->service_consumer, length))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a consumer's name has 1 to %u bytes, of UTF-8 without control "
                        "characters",
                        HR_FRAME_NAME_MAX);
    if (wrong != NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "several consumers of one job need %s",
                        wrong);
    return HR_OK;
}

static enum hr_err init(struct hr_remote *r, const struct hr_iter_options *options,
                        unsigned kinds, struct hr_error *reterr)
{
    struct hr_consumer *c = r->consumer;
    struct hr_claims_options claims = {
        .job = hr__job_id(hr__str_text(&r->job), r->job.length),
        .end = r->outputs.end,
        .workers_max = HR_REMOTE_WORKERS,
        .parts = HR_FLEET_TEAM_MAX,
        .pieces_max = HR_REMOTE_PIECES,
        .budget = options->memory_bytes > 0 ? options->memory_bytes : HR_REMOTE_BUDGET,
        .beat_ns = HR_FLEET_BEAT_NS,
        .kinds = kinds,
        .weight = r->weight};

    HR_TRY(check(options, reterr));
    c->name = hr__strdup(options->service_consumer);
    c->job = hr__strdup(options->service_job);
    if (c->name == NULL || c->job == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    c->job_id = claims.job;
    HR_TRY(hr__fleet_nonce(&claims.nonce, reterr));
    HR_TRY(hr__claims_init(&c->claims, &claims, reterr));
    return options->state != NULL ? hr__remote_resume(r, options->state, reterr) : HR_OK;
}

enum hr_err hr__consumer_open(struct hr_remote *r, const struct hr_iter_options *options,
                              unsigned kinds, struct hr_error *reterr)
{
    if (options->service_consumer == NULL)
        return HR_OK;
    r->consumer = hr__calloc(1, sizeof *r->consumer);
    if (r->consumer == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return init(r, options, kinds, reterr);
}

void hr__consumer_close(struct hr_consumer *c)
{
    struct hr_parcel *held;

    if (c == NULL)
        return;
    while ((held = hr__claims_drop(&c->claims)) != NULL)
        hr__parcel_close(held);
    hr__claims_finish(&c->claims);
    hr__free(c->name);
    hr__free(c->job);
    hr__free(c);
}

/* ---- states ---- */

/* The number of a member, or -1. */
static int64_t number_of(const struct hr_doc *doc, const char *key)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    return value != NULL && value->kind == HR_DOC_INT ? value->as.integer : -1;
}

/* A number as 16 digits. */
static bool read_hex(const char *text, uint64_t *ret_number)
{
    char *end = NULL;

    *ret_number = strtoull(text, &end, 16);
    return strlen(text) == 16 && *end == '\0' && *ret_number != 0;
}

static enum hr_err
read_state(struct hr_consumer *c, const struct hr_doc *doc, struct hr_error *reterr)
{
    const char *consumer = hr__doc_get_string(doc, "consumer"),
               *job = hr__doc_get_string(doc, "job"),
               *run = hr__doc_get_string(doc, "run"),
               *journal = hr__doc_get_string(doc, "journal");
    int64_t version = number_of(doc, "headrace_consumer"),
            checkpoint = number_of(doc, "checkpoint"),
            batches = number_of(doc, "batches"), records = number_of(doc, "records");
    uint64_t number;
    char id[17];

    if (version != STATE_VERSION)
        return hr__fail(reterr, version < 0 ? HR_ERR_STATE : HR_ERR_UNSUPPORTED,
                        "this is not a state of version %d of one of several consumers",
                        STATE_VERSION);
    if (consumer == NULL || job == NULL || run == NULL || journal == NULL ||
        !read_hex(journal, &number) || checkpoint < 1 || batches < 0 || records < 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "the state of a consumer is damaged");
    if (strcmp(consumer, c->name) != 0 || strcmp(job, c->job) != 0)
        return hr__fail(reterr, HR_ERR_STATE,
                        "the state is of consumer '%.60s' of job '%.60s', not of '%.60s' "
                        "of '%.60s'",
                        consumer, job, c->name, c->job);
    snprintf(id, sizeof id, "%016llx", (unsigned long long)c->job_id);
    if (strcmp(run, id) != 0)
        return hr__fail(reterr, HR_ERR_STATE,
                        "the state is of a job '%.60s' with another graph, data, seed or "
                        "options",
                        job);
    c->claims.journal = number;
    c->resumed = (uint64_t)checkpoint;
    c->batches_before = (uint64_t)batches;
    c->records_before = (uint64_t)records;
    return HR_OK;
}

/* HR_ERR_STATE for a run of another kind. */
static enum hr_err check_kind(const struct hr_remote *r, struct hr_error *reterr)
{
    if (r->consumer != NULL)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_STATE,
                    "this run has its job for itself: only one of several consumers "
                    "(service_consumer) commits");
}

enum hr_err
hr__remote_resume(struct hr_remote *r, const char *state, struct hr_error *reterr)
{
    struct hr_doc *doc;
    enum hr_err code;

    HR_TRY(check_kind(r, reterr));
    if (r->consumer->settled)
        return hr__fail(reterr, HR_ERR_STATE,
                        "a run resumes from a state before its first batch");
    HR_TRY(hr__doc_parse(state, strlen(state), "the state", &doc, reterr));
    code = read_state(r->consumer, doc, reterr);
    hr__doc_destroy(doc);
    return code;
}

enum hr_err
hr__consumer_save(struct hr_remote *r, struct hr_str *out, struct hr_error *reterr)
{
    struct hr_consumer *c = r->consumer;
    char fingerprint[HR_FINGERPRINT_BYTES];
    uint64_t number, journal;
    bool known;

    hr__net_lock(r->net);
    known = c->claims.resolved;
    number = c->claims.committed + 1;
    journal = c->claims.journal;
    hr__net_unlock(r->net);
    if (!known)
        return hr__fail(reterr, HR_ERR_STATE,
                        "the dispatcher has not said yet which checkpoint counts");
    HR_TRY(hr_graph_fingerprint(r->graph, fingerprint));
    hr__str_addf(out, "{\"headrace_consumer\": %d, \"fingerprint\": \"%s\", \"job\": ",
                 STATE_VERSION, fingerprint);
    hr__str_add_json(out, c->job, strlen(c->job));
    hr__str_addf(out, ", \"run\": \"%016llx\", \"journal\": \"%016llx\", \"consumer\": ",
                 (unsigned long long)c->job_id, (unsigned long long)journal);
    hr__str_add_json(out, c->name, strlen(c->name));
    hr__str_addf(out, ", \"checkpoint\": %llu, \"batches\": %llu, \"records\": %llu}",
                 (unsigned long long)number,
                 (unsigned long long)(c->batches_before + c->batches),
                 (unsigned long long)(c->records_before + c->records));
    return hr__str_ok(out) ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

/* ---- events ---- */

void hr__consumer_connected(struct hr_remote *r, uint32_t peer)
{
    const struct hr_frame frame = {.type = HR_FRAME_CONSUMER};
    struct hr_consumer *c = r->consumer;
    bool worker = peer != r->dispatcher;

    if (!worker)
        hr__fleet_send_text(r->net, peer, &frame, c->name, strlen(c->name));
    hr__claims_connected(&c->claims, peer, worker ? HR_FRAME_WORKER : 0, hr__now_ns(),
                         &r->actions);
}

void hr__consumer_lost(struct hr_remote *r, uint32_t peer)
{
    hr__claims_lost(&r->consumer->claims, peer);
}

bool hr__consumer_data(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame,
                       size_t bytes, struct hr_parcel *parcel)
{
    bool kept;

    hr__claims_data(&r->consumer->claims, peer, frame, bytes, parcel, &kept, &r->actions);
    return kept;
}

void hr__consumer_frame(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame)
{
    struct hr_claims *claims = &r->consumer->claims;
    enum hr_claims_do what = hr__claims_frame(claims, peer, frame, &r->actions);

    if (what == HR_CLAIMS_RENAME)
        HR_KILL_POINT("commit.known");
    if (what == HR_CLAIMS_STOP)
        hr__remote_fail(r, &claims->error);
    pthread_cond_signal(&r->ready);
}

void hr__consumer_tick(struct hr_remote *r, uint64_t now)
{
    struct hr_claims *claims = &r->consumer->claims;
    struct hr_parcel *expired;

    hr__claims_tick(claims, now, &r->actions);
    while ((expired = hr__claims_expired(claims, now)) != NULL)
        hr__parcel_close(expired);
}

bool hr__consumer_has_joined(const struct hr_consumer *c)
{
    return c->claims.state == HR_CLAIMS_JOINED;
}

const struct hr_credit *hr__consumer_credit(const struct hr_consumer *c)
{
    return &c->claims.credit;
}

/* ---- waiting; under the lock ---- */

/* Why the run cannot go on. HR_OK: it can. */
static enum hr_err ended(const struct hr_remote *r, struct hr_error *reterr)
{
    if (r->error.code == HR_OK)
        return HR_OK;
    if (reterr != NULL)
        *reterr = r->error;
    return r->error.code;
}

static enum hr_err wait(struct hr_remote *r, uint64_t until_ns)
{
    if (hr__now_ns() >= until_ns)
        return HR_ERR_TIMEOUT; /* of this call: it may be called again */
    hr__remote_wait(r, until_ns);
    return HR_OK;
}

/* Waits until the dispatcher has said which checkpoint counts. */
static enum hr_err
resolve(struct hr_remote *r, uint64_t until_ns, struct hr_error *reterr)
{
    while (!r->consumer->claims.resolved) {
        HR_TRY(ended(r, reterr));
        if (atomic_load(&r->cancelled))
            return hr__fail(reterr, HR_ERR_CANCELLED, "the run was cancelled");
        HR_TRY(wait(r, until_ns));
    }
    return ended(r, reterr);
}

/* Once it is known: the trainer's must be that one. */
static enum hr_err settle(struct hr_remote *r, struct hr_error *reterr)
{
    struct hr_consumer *c = r->consumer;

    if (c->settled)
        return HR_OK;
    if (hr__claims_resolve(&c->claims, c->resumed, 0) == HR_CLAIMS_STOP) {
        hr__remote_fail(r, &c->claims.error);
        return ended(r, reterr);
    }
    c->settled = true;
    return HR_OK;
}

enum hr_err hr__remote_committed(struct hr_remote *r, uint64_t until_ns,
                                 uint64_t *ret_number, struct hr_error *reterr)
{
    enum hr_err code;

    HR_TRY(check_kind(r, reterr));
    hr__net_lock(r->net);
    code = resolve(r, until_ns, reterr);
    if (code == HR_OK)
        *ret_number = r->consumer->claims.committed;
    hr__net_unlock(r->net);
    return code;
}

/* ---- taking ---- */

/* Waits until there is a batch, or a commit is due, or all is done. Without any of them
 * HR_ERR_TIMEOUT when the clock shows `until_ns`. */
static enum hr_err look(struct hr_remote *r, uint64_t until_ns, struct hr_error *reterr)
{
    struct hr_claims *claims = &r->consumer->claims;
    uint64_t limit = r->outputs.options.timeout_ns, give_up;

    if (r->waiting_ns == 0)
        r->waiting_ns = hr__now_ns();
    give_up = limit > 0 && limit < UINT64_MAX - r->waiting_ns ? r->waiting_ns + limit
                                                              : UINT64_MAX;
    for (;;) {
        uint64_t now = hr__now_ns();

        HR_TRY(ended(r, reterr));
        if (atomic_load(&r->cancelled))
            return hr__fail(reterr, HR_ERR_CANCELLED, "the run was cancelled");
        if (claims->resolved)
            HR_TRY(settle(r, reterr));
        if (r->consumer->settled &&
            (claims->piece_count > 0 || claims->done || hr__claims_is_due(claims)))
            break;
        if (now >= give_up)
            return hr__remote_time_out(r, reterr);
        if (now >= until_ns)
            return HR_ERR_TIMEOUT;
        hr__remote_wait(r, until_ns < give_up ? until_ns : give_up);
    }
    r->waiting_ns = 0;
    return HR_OK;
}

enum hr_err hr__remote_commit_due(struct hr_remote *r, uint64_t until_ns, bool *ret_due,
                                  struct hr_error *reterr)
{
    enum hr_err code;

    HR_TRY(check_kind(r, reterr));
    hr__net_lock(r->net);
    code = look(r, until_ns, reterr);
    if (code == HR_OK)
        *ret_due = r->consumer->claims.piece_count == 0 &&
                   hr__claims_is_due(&r->consumer->claims);
    hr__net_unlock(r->net);
    return code;
}

static enum hr_err take(struct hr_remote *r, uint64_t until_ns,
                        struct hr_claim_piece *ret_piece, struct hr_error *reterr)
{
    struct hr_claims *claims = &r->consumer->claims;

    HR_TRY(look(r, until_ns, reterr));
    if (hr__claims_take(claims, 1, ret_piece, &r->actions)) {
        HR_KILL_POINT("split.taken");
        hr__remote_perform(r);
        return HR_OK;
    }
    if (claims->done) {
        r->consumer->ended = true;
        return HR_ERR_END;
    }
    return hr__fail(reterr, HR_ERR_STATE,
                    "%llu batches are taken and not committed, and no more come before "
                    "they are: write a checkpoint and commit it",
                    (unsigned long long)hr__claims_uncommitted(claims));
}

static enum hr_err read_batch(struct hr_remote *r, const struct hr_claim_piece *piece,
                              struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_consumer *c = r->consumer;
    struct hr_parcel *parcel = piece->payload;
    uint64_t records = hr__outputs_records(&r->outputs, piece->position), within;
    struct hr_batch *batch = NULL;
    enum hr_err code =
        hr__parcel_get(parcel, piece->skip, (int64_t)records, &batch, reterr);

    if (piece->last)
        hr__parcel_close(parcel);
    if (code != HR_OK)
        return code;
    batch->epoch = (int64_t)hr__outputs_epoch(&r->outputs, piece->position, &within);
    c->epoch = batch->epoch;
    c->batches++;
    c->records += records;
    r->bytes += batch->bytes;
    if (r->first_batch_ns == 0)
        r->first_batch_ns = hr__now_ns();
    *ret_batch = batch;
    return HR_OK;
}

/* A batch that cannot be read is counted as taken: it stays failed. */
static enum hr_err
break_off(struct hr_remote *r, const struct hr_error *error, struct hr_error *reterr)
{
    enum hr_err code;

    hr__net_lock(r->net);
    hr__remote_fail(r, error);
    code = ended(r, reterr);
    hr__net_unlock(r->net);
    return code;
}

enum hr_err hr__consumer_next(struct hr_remote *r, uint64_t until_ns,
                              struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_claim_piece piece;
    struct hr_error error = {0};
    enum hr_err code;

    hr__net_lock(r->net);
    code = take(r, until_ns, &piece, &error);
    hr__net_unlock(r->net);
    if (code == HR_ERR_TIMEOUT && error.code == HR_OK)
        return HR_OK; /* no batch by then */
    if (code != HR_OK) {
        if (reterr != NULL)
            *reterr = error;
        return code;
    }
    if (read_batch(r, &piece, ret_batch, &error) != HR_OK)
        return break_off(r, &error, reterr);
    return HR_OK;
}

/* ---- committing ---- */

/* Waits for the answer. After a cancel it waits a little longer, so that what was written
 * aside can still count. */
static enum hr_err
wait_commit(struct hr_remote *r, uint64_t until_ns, struct hr_error *reterr)
{
    uint64_t most = hr__now_ns() + HR_REMOTE_JOIN_NS;

    while (r->consumer->claims.pending != 0) {
        HR_TRY(ended(r, reterr));
        if (atomic_load(&r->cancelled) && hr__now_ns() >= most)
            return hr__fail(reterr, HR_ERR_CANCELLED,
                            "the run was cancelled, and the dispatcher at %s has not "
                            "answered the commit: it may count or not",
                            r->address);
        HR_TRY(wait(r, until_ns));
    }
    return HR_OK;
}

enum hr_err
hr__remote_commit(struct hr_remote *r, uint64_t until_ns, struct hr_error *reterr)
{
    struct hr_consumer *c = r->consumer;
    enum hr_err code;

    HR_TRY(check_kind(r, reterr));
    hr__net_lock(r->net);
    code = resolve(r, until_ns, reterr);
    if (code == HR_OK)
        code = settle(r, reterr);
    if (code == HR_OK && c->claims.pending == 0) {
        hr__claims_commit(&c->claims, &r->actions);
        hr__remote_perform(r);
        HR_KILL_POINT("commit.asked");
    }
    if (code == HR_OK)
        code = wait_commit(r, until_ns, reterr);
    hr__net_unlock(r->net);
    return code;
}

/* ---- statistics ---- */

void hr__consumer_stats(struct hr_remote *r, struct hr_iter_stats *ret)
{
    const struct hr_consumer *c = r->consumer;
    bool waits;

    ret->records = c->records;
    ret->batches = c->batches;
    ret->bytes = r->bytes;
    ret->seconds = (double)(hr__now_ns() - r->open_ns) * 1e-9;
    ret->wait_seconds = (double)r->wait_ns * 1e-9;
    if (r->first_batch_ns > 0)
        ret->first_batch_seconds = (double)(r->first_batch_ns - r->open_ns) * 1e-9;
    ret->epoch = c->epoch;
    ret->epoch_records = -1; /* others have the rest */
    hr__net_lock(r->net);
    ret->memory_bytes = c->claims.bytes;
    ret->batches_ready = c->claims.piece_count;
    waits = c->claims.piece_count == 0 || c->claims.pending != 0;
    hr__net_unlock(r->net);
    if (!c->ended && waits)
        hr__remote_waits(r, ret);
}
