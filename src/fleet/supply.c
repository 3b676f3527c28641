/*
 * fleet/supply.c - see supply.h.
 *
 * Parcels are kept in the order of their positions until no record of theirs is in the
 * engine's first stage. Any thread of the engine that needs more pulls them, one at a
 * time.
 */
#include "fleet/supply.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/kill_point.h"
#include "engine/engine.h"
#include "fleet/cut.h"
#include "fleet/fleet.h"
#include "fleet/job.h"
#include "fleet/parcel.h"
#include "fleet/remote.h"

#define LOOK_NS (50 * HR_FLEET_MS) /* at whether the run stops */
/* Smaller values leave their parcel when they are kept: a record in a shuffle window must
 * not hold a frame of 256 kB. */
#define OWN_BYTES ((size_t)64 << 10)
#define BUDGET_PART 4u /* of the run's memory: received, and not in the engine yet */

struct piece {
    struct hr_pulled pulled;
    struct piece *next;
};

struct hr_supply {
    struct hr_feed feed;
    struct hr_graph *prefix;
    const struct hr_schema *schema;
    struct hr_iter_options options, own; /* of the engine; of the service's run */
    char job[HR_JOB_NAME_MAX + 50];      /* of ranks that all read all records */
    char explained[sizeof((struct hr_iter_stats *)NULL)->cut];
    struct hr_outputs outputs; /* of that; set when it begins */
    pthread_mutex_t lock;
    pthread_cond_t more;
    /* Guarded by the lock. */
    int refs;                 /* the iterator and the engine */
    struct hr_remote *remote; /* NULL before it begins and after it is closed */
    bool pulling;             /* a thread does, without the lock */
    uint64_t next;            /* position after the last piece */
    struct piece *first, *last;
    struct hr_error error; /* that ended it */
};

/* ---- pieces, under the lock ---- */

static void drop_first(struct hr_supply *s)
{
    struct piece *piece = s->first;

    s->first = piece->next;
    if (s->first == NULL)
        s->last = NULL;
    hr__parcel_close(piece->pulled.parcel);
    hr__free(piece);
}

static void drop_below(struct hr_supply *s, uint64_t floor)
{
    while (s->first != NULL &&
           s->first->pulled.position + s->first->pulled.count <= floor)
        drop_first(s);
}

static enum hr_err
add(struct hr_supply *s, const struct hr_pulled *pulled, struct hr_error *reterr)
{
    struct piece *piece = hr__calloc(1, sizeof *piece);

    if (piece == NULL) {
        hr__parcel_close(pulled->parcel);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    assert(pulled->position == s->next);
    piece->pulled = *pulled;
    s->next += pulled->count;
    if (s->last != NULL)
        s->last->next = piece;
    else
        s->first = piece;
    s->last = piece;
    return HR_OK;
}

static uint64_t number_of(const struct hr_supply *s, const struct hr_feed_place *place)
{
    const struct hr_outputs *o = &s->outputs;

    return (place->epoch - (uint64_t)o->options.epoch_first) * o->batches +
           place->position;
}

/* ---- for the engine ---- */

static enum hr_err
begin(void *user, const struct hr_feed_place *place, struct hr_error *reterr)
{
    struct hr_supply *s = user;
    struct hr_remote *remote;

    HR_TRY(hr__outputs_init(&s->outputs, s->prefix, &s->own, reterr));
    s->next = number_of(s, place);
    s->next = s->next < s->outputs.end ? s->next : s->outputs.end;
    HR_TRY(hr__remote_open_records(s->prefix, &s->own, s->next, &remote, reterr));
    s->remote = remote;
    return HR_OK;
}

/* Under the lock, which it releases meanwhile. */
static void pull(struct hr_supply *s)
{
    struct hr_pulled pulled = {0};
    struct hr_error error = {0};
    enum hr_err code;

    s->pulling = true;
    pthread_mutex_unlock(&s->lock);
    code = hr__remote_pull(s->remote, hr__now_ns() + LOOK_NS, &pulled, &error);
    pthread_mutex_lock(&s->lock);
    s->pulling = false;
    if (code == HR_OK && pulled.parcel != NULL) {
        HR_KILL_POINT("records.pulled");
        code = add(s, &pulled, &error);
    }
    if (code == HR_ERR_END)
        code = hr__fail(&error, HR_ERR_INTERNAL, "the service's run ended too early");
    if (code != HR_OK)
        s->error = error;
    pthread_cond_broadcast(&s->more);
}

static enum hr_err
wait_for(void *user, const struct hr_feed_place *to, const struct hr_feed_place *floor,
         const atomic_bool *stop, struct hr_error *reterr)
{
    struct hr_supply *s = user;
    enum hr_err code = HR_OK;

    pthread_mutex_lock(&s->lock);
    drop_below(s, number_of(s, floor));
    while (code == HR_OK && s->next <= number_of(s, to)) {
        if (atomic_load(stop) || s->remote == NULL) {
            code = HR_ERR_CANCELLED;
        } else if (s->error.code != HR_OK) {
            code = s->error.code;
            if (reterr != NULL)
                *reterr = s->error;
        } else if (s->pulling) {
            pthread_cond_wait(&s->more, &s->lock);
        } else {
            pull(s);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* Small values are the parcel's while their record is in the first stage. */
static void loosen(struct hr_value *values, size_t count)
{
    for (size_t f = 0; f < count; f++) {
        if (values[f].bytes >= OWN_BYTES || values[f].kind == HR_VALUE_RAGGED)
            continue;
        hr_buffer_unref(values[f].owner);
        values[f].owner = NULL;
    }
}

static enum hr_err get(void *user, const struct hr_feed_place *place,
                       struct hr_value *values, bool *ret_failed, struct hr_error *reterr)
{
    struct hr_supply *s = user;
    uint64_t number = number_of(s, place);
    struct piece *piece;
    enum hr_err code;

    pthread_mutex_lock(&s->lock);
    piece = s->first;
    while (piece != NULL && number - piece->pulled.position >= piece->pulled.count)
        piece = piece->next;
    assert(piece != NULL);
    code = hr__parcel_get_record(piece->pulled.parcel,
                                 piece->pulled.skip +
                                     (size_t)(number - piece->pulled.position),
                                 s->schema, values, ret_failed, reterr);
    pthread_mutex_unlock(&s->lock);
    if (code == HR_OK && !*ret_failed)
        loosen(values, s->schema->count);
    return code;
}

/* ---- life ---- */

static void drop(void *user)
{
    struct hr_supply *s = user;
    bool last;

    pthread_mutex_lock(&s->lock);
    last = --s->refs == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    while (s->first != NULL)
        drop_first(s);
    hr__graph_unref(s->prefix);
    pthread_cond_destroy(&s->more);
    pthread_mutex_destroy(&s->lock);
    hr__free(s);
}

static enum hr_err check_options(const struct hr_graph *graph,
                                 const struct hr_iter_options *o, struct hr_error *reterr)
{
    uint32_t divider = o->world > 1 ? hr__engine_divider(graph) : HR_NO_NODE;
    const struct hr_graph_node *n;

    if (o->plan != NULL)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "a service cannot do this yet: a plan; leave the option out, or "
                        "run the graph without the service");
    if (divider == HR_NO_NODE)
        return HR_OK;
    n = &graph->nodes[divider];
    if (hr__sequence_ranks(&n->op->sequence, n->params) == HR_RANKS_ROUNDS)
        return HR_OK;
    hr__fail(reterr, HR_ERR_UNSUPPORTED,
             "a service cannot do this yet: ranks divide what it makes, so each would "
             "have the service make all records; run the graph without the service");
    hr__graph_blame(graph, divider, reterr);
    return HR_ERR_UNSUPPORTED;
}

/* Divides what is asked of the run between the service's and the engine's. */
static void divide(struct hr_supply *s, const struct hr_iter_options *options)
{
    uint64_t part = options->memory_bytes / BUDGET_PART;

    s->options = s->own = *options;
    s->options.memory_bytes -= part;
    s->options.service = s->options.service_job = s->options.service_after = NULL;
    s->options.service_token_file = NULL;
    s->options.service_tls_ca = s->options.service_tls_name = NULL;
    s->options.service_tls_cert = s->options.service_tls_key = NULL;
    s->options.service_compress = NULL;
    s->own.memory_bytes = part;
    s->own.on_error = HR_ON_ERROR_FAIL; /* each record of its own */
    s->own.errors_max = s->own.records_max = 0;
    s->own.ledger = s->own.state = s->own.service_after = NULL;
    s->own.trace = false;
    s->own.ordered = true;
    s->own.demand = 0;
    s->own.timeout_ns = 0;
}

/* Where ranks divide what the last part makes, each has a run of all records. */
static void take_all(struct hr_supply *s)
{
    if (s->own.service_job != NULL) {
        snprintf(s->job, sizeof s->job, "%s, rank %lld of %lld", s->own.service_job,
                 (long long)s->own.rank, (long long)s->own.world);
        s->own.service_job = s->job;
    }
    s->own.rank = 0;
    s->own.world = 1;
    s->own.even = HR_EVEN_NONE;
}

enum hr_err hr__supply_open(const struct hr_graph *graph, uint32_t after,
                            const struct hr_iter_options *options,
                            struct hr_supply **ret_supply, struct hr_error *reterr)
{
    struct hr_supply *s;
    struct hr_cut cut;

    HR_TRY(check_options(graph, options, reterr));
    HR_TRY(hr__cut_find(graph, after, &cut, reterr));
    s = hr__calloc(1, sizeof *s);
    if (s == NULL) {
        hr__graph_unref(cut.prefix);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    s->refs = 1;
    s->prefix = cut.prefix;
    s->schema = &cut.prefix->nodes[cut.prefix->output].schema;
    s->feed = (struct hr_feed){cut.node, s, begin, wait_for, get, drop};
    hr__cut_explain(graph, cut.node, after != HR_CUT_FREE, s->explained,
                    sizeof s->explained);
    divide(s, options);
    if (options->world > 1 && hr__engine_divider(graph) != HR_NO_NODE)
        take_all(s);
    *ret_supply = s;
    return HR_OK;
}

void hr__supply_close(struct hr_supply *s)
{
    struct hr_remote *remote;

    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    while (s->pulling)
        pthread_cond_wait(&s->more, &s->lock);
    remote = s->remote;
    s->remote = NULL;
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->lock);
    hr__remote_close(remote);
    drop(s);
}

const struct hr_feed *hr__supply_feed(struct hr_supply *s)
{
    pthread_mutex_lock(&s->lock);
    s->refs++;
    pthread_mutex_unlock(&s->lock);
    return &s->feed;
}

const struct hr_iter_options *hr__supply_options(const struct hr_supply *s)
{
    return &s->options;
}

void hr__supply_stats(struct hr_supply *s, struct hr_iter_stats *ret_stats)
{
    memcpy(ret_stats->cut, s->explained, sizeof ret_stats->cut);
    if (s->remote != NULL)
        hr__remote_waits(s->remote, ret_stats);
}
