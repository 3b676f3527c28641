/*
 * fleet/service.h - a process of the service: a dispatcher or a worker, behind
 * include/headrace/service.h.
 */
#ifndef HR_FLEET_SERVICE_H
#define HR_FLEET_SERVICE_H

#include "fleet/fleet.h"
#include "headrace/service.h"

struct hr_service {
    struct hr_net *net;
    const char *control;   /* address of its HTTP, or NULL */
    bool can_drain;        /* else hr_service_drain() stops it */
    bool drains;           /* by __atomic: hr_service_drain() was called */
    struct hr_error error; /* that ended the loop; code 0: none */
    /* Around the loop: starts and ends threads. NULL: there are none. */
    enum hr_err (*begin)(struct hr_service *service, struct hr_error *reterr);
    void (*end)(struct hr_service *service);
    void (*close)(struct hr_service *service); /* frees it, but for the net */
};

/* HR_ERR_ARGUMENT, HR_ERR_IO, HR_ERR_MEMORY, HR_ERR_UNSUPPORTED. */
HR_CHECK enum hr_err
hr__dispatcher_open(const struct hr_dispatcher_options *options,
                    struct hr_service **ret_service, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__worker_open(const struct hr_worker_options *options, struct hr_service **ret_service,
                struct hr_error *reterr);

#endif
