/*
 * fleet/fleet.h - what dispatcher, worker and client programs share: their limits, and
 * how the actions of a role (svc/action.h) are carried out on connections.
 */
#ifndef HR_FLEET_FLEET_H
#define HR_FLEET_FLEET_H

#include "net/net.h"
#include "svc/action.h"

#define HR_FLEET_MS ((uint64_t)1000000)
#define HR_FLEET_TICK_NS (20 * HR_FLEET_MS)
#define HR_FLEET_BEAT_NS (100 * HR_FLEET_MS)     /* between signs of life */
#define HR_FLEET_SILENT_NS (10000 * HR_FLEET_MS) /* then a peer counts as lost */
#define HR_FLEET_RETRY_NS (100 * HR_FLEET_MS)    /* between attempts to connect */
#define HR_FLEET_FULL_NS (500 * HR_FLEET_MS)     /* the same, to a full dispatcher */
#define HR_FLEET_QUEUE_MAX ((size_t)1 << 20)     /* control messages of a connection */
#define HR_FLEET_WINDOW                                                                  \
    16384u /* positions beyond a client's cursor that may be leased                      \
            */

#define HR_FLEET_TEAM_MAX HR_ACTION_WORKERS_MAX /* workers that a client uses */

/* Addresses of dispatchers, of which each serves by itself: "host:port,host:port". The
 * texts are the list's. HR_ERR_ARGUMENT, HR_ERR_MEMORY. */
#define HR_FLEET_DISPATCHERS 8u
struct hr_fleet_list {
    size_t count;
    char *items[HR_FLEET_DISPATCHERS];
};
HR_CHECK enum hr_err
hr__fleet_list(const char *text, struct hr_fleet_list *ret_list, struct hr_error *reterr);
void hr__fleet_list_finish(struct hr_fleet_list *list);

/* A random number for an incarnation of a process; never 0. HR_ERR_IO. */
HR_CHECK enum hr_err hr__fleet_nonce(uint64_t *ret_nonce, struct hr_error *reterr);

/* Sends and closes in order, and empties the list. Journal rows are passed over: with one
 * consumer per job its HELLO says all that they would (docs/decisions/0047). */
void hr__fleet_perform(struct hr_net *net, struct hr_actions *actions);

/* Sends a text as the body of a frame. */
void hr__fleet_send_text(struct hr_net *net, uint32_t peer, const struct hr_frame *frame,
                         const char *text, size_t bytes);

/* How a process lets others in. */
struct hr_fleet_door {
    const char *listen, *token_file;
    const char *tenants_file; /* or NULL */
    struct hr_tls_files tls;
    unsigned tls_uses; /* HR_TLS_LISTENS, HR_TLS_CONNECTS */
    bool insecure;
};

/* Opens a net that listens; fills in the token and what else of the options comes from
 * files. Refuses to listen beyond this machine where everybody could connect: without a
 * token, without certificates of clients, and not `insecure`. As hr__token_load(),
 * hr__tls_open(), hr__token_check_listen(), hr__tenants_load(), hr__net_open(),
 * hr__net_listen(). *ret_net is set also after some failures: close it. */
HR_CHECK enum hr_err
hr__fleet_open(const struct hr_fleet_door *door, struct hr_net_options *options,
               struct hr_net **ret_net, struct hr_error *reterr);

/* HTTP has no TLS here: with the token it would show what TLS hides. HR_ERR_ARGUMENT if
 * it listens beyond this machine. */
HR_CHECK enum hr_err hr__fleet_check_control(const char *listen, bool has_tls,
                                             bool insecure, struct hr_error *reterr);

/* HR_ERR_DENIED if the client that says this HELLO weighs more than its tenant's (or
 * NULL) may. */
HR_CHECK enum hr_err
hr__fleet_check_weight(const struct hr_tenant *tenant, const struct hr_frame *hello,
                       struct hr_error *reterr);

/* Sends an ERROR with this error, and closes. */
void hr__fleet_refuse(struct hr_net *net, uint32_t peer, const struct hr_error *error);

#endif
