/*
 * fleet/remote_internal.h - private interface between remote.c, a client on connections,
 * and consumer.c, its role where it is one of several consumers of its job.
 */
#ifndef HR_FLEET_REMOTE_INTERNAL_H
#define HR_FLEET_REMOTE_INTERNAL_H

#include <stdatomic.h>

#include "fleet/remote.h"
#include "fleet/roster.h"
#include "svc/claim.h"
#include "svc/client.h"

#define HR_REMOTE_WORKERS (HR_ROSTER_MAX + 16u) /* connections, also closing ones */
#define HR_REMOTE_PIECES (2 * HR_FLEET_WINDOW)  /* frames that are held */
#define HR_REMOTE_BUDGET                                                                 \
    ((size_t)256 << 20) /* bytes of batches held and on their way                        \
                         */
#define HR_REMOTE_JOIN_NS                                                                \
    (10000 * HR_FLEET_MS) /* to be accepted by the dispatcher at first */

struct hr_consumer;

struct hr_remote {
    /* Fixed. */
    struct hr_graph *graph; /* a reference */
    struct hr_outputs outputs;
    struct hr_str job;
    char *address; /* of the dispatcher, or of several: */
    struct hr_fleet_list addresses;
    char *state; /* that it resumed from, or NULL */
    struct hr_net *net;
    pthread_t thread;
    uint64_t open_ns;
    uint32_t weight; /* against other runs */
    atomic_bool cancelled;
    /* Guarded by the net's lock. */
    pthread_cond_t ready;
    /* Of two roles it has one: the consumer's if there is one, else a client's. */
    struct hr_cursor cursor;
    struct hr_client client;
    struct hr_consumer *consumer; /* or NULL */
    struct hr_actions actions;
    struct hr_desk *desk;
    struct hr_pool *pool;     /* of parcels that came compressed */
    uint64_t last_connection; /* to a worker */
    struct hr_roster roster;
    uint32_t dispatcher; /* its connection, made or not; 0: none */
    size_t at;           /* which of the addresses that is, or the next one */
    uint64_t retry_ns;
    uint64_t patient_ns;   /* the run fails if it is not accepted in JOIN_NS from here */
    bool full;             /* the dispatcher said so on this connection */
    bool joined;           /* was accepted once */
    struct hr_error error; /* that ends the run; code 0: none */
    struct hr_error last;  /* the last trouble, for when nothing comes */
    uint32_t told_by;      /* the connection whose ERROR that is, or 0 */
    /* The consumer's. */
    struct hr_parcel *parcel; /* that it reads from, or NULL: all of what was taken */
    struct hr_taken taken;    /* what is left of it */
    bool ended, broken;       /* the end was delivered; a batch could not be read */
    uint64_t number;          /* batches delivered, those before the state included */
    uint64_t first_batch_ns, wait_ns, bytes, start_number;
    uint64_t waiting_ns; /* since when it waits for a batch; 0: it does not */
};

/* Under the lock: ends the run after what was received before. */
void hr__remote_fail(struct hr_remote *r, const struct hr_error *error);
void hr__remote_perform(struct hr_remote *r);
/* Waits under the lock, up to `until_ns`. */
void hr__remote_wait(struct hr_remote *r, uint64_t until_ns);
/* Under the lock: the error of a batch that did not come in time. */
enum hr_err hr__remote_time_out(const struct hr_remote *r, struct hr_error *reterr);

/* ---- consumer.c; under the lock, unless it says otherwise ---- */

/* The role of options.service_consumer; NULL and HR_OK without. Not under the lock. */
HR_CHECK enum hr_err
hr__consumer_open(struct hr_remote *r, const struct hr_iter_options *options,
                  unsigned kinds, struct hr_error *reterr);
void hr__consumer_close(struct hr_consumer *consumer);

void hr__consumer_connected(struct hr_remote *r, uint32_t peer);
void hr__consumer_lost(struct hr_remote *r, uint32_t peer);
bool hr__consumer_data(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame,
                       size_t bytes, struct hr_parcel *parcel);
void hr__consumer_frame(struct hr_remote *r, uint32_t peer, const struct hr_frame *frame);
void hr__consumer_tick(struct hr_remote *r, uint64_t now);
bool hr__consumer_has_joined(const struct hr_consumer *consumer);
/* Whether a refusal by the dispatcher or a worker is for now only. */
const struct hr_credit *hr__consumer_credit(const struct hr_consumer *consumer);

/* Not under the lock: as the functions of remote.h. */
HR_CHECK enum hr_err
hr__consumer_next(struct hr_remote *r, uint64_t until_ns, struct hr_batch **ret_batch,
                  struct hr_error *reterr);
HR_CHECK enum hr_err
hr__consumer_save(struct hr_remote *r, struct hr_str *out, struct hr_error *reterr);
void hr__consumer_stats(struct hr_remote *r, struct hr_iter_stats *ret_stats);

#endif
