/*
 * api/service_api.c - include/headrace/service.h: checks arguments; src/fleet does the
 * work.
 */
#include "headrace/service.h"

#include <string.h>

#include "core/error.h"
#include "svc/action.h"
#ifdef HR_SERVICE
#include "fleet/service.h"
#endif

#define PEERS_MAX 1024u
#define JOBS_MAX 256u
#define PEERS_LIMIT 65536u
#define HELLO_NS 10000000000u
#define DRAIN_NS 30000000000u
#define JOURNAL_NS ((uint64_t)30 * 86400 * 1000000000u)
#define EVICT_NS 60000000000u
#define KEEP_BYTES ((uint64_t)512 << 20)

void hr_dispatcher_options_init(struct hr_dispatcher_options *options)
{
    *options = (struct hr_dispatcher_options){.listen = "127.0.0.1:0",
                                              .peers_max = PEERS_MAX,
                                              .jobs_max = JOBS_MAX,
                                              .workers_per_run = HR_ACTION_WORKERS_MAX,
                                              .hello_ns = HELLO_NS,
                                              .journal_ns = JOURNAL_NS,
                                              .evict_ns = EVICT_NS};
}

void hr_worker_options_init(struct hr_worker_options *options)
{
    *options = (struct hr_worker_options){.listen = "127.0.0.1:0",
                                          .peers_max = PEERS_MAX,
                                          .hello_ns = HELLO_NS,
                                          .drain_ns = DRAIN_NS,
                                          .keep_bytes = KEEP_BYTES};
}

static enum hr_err check_limit(const char *what, uint32_t value, struct hr_error *reterr)
{
    if (value >= 1 && value <= PEERS_LIMIT)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_ARGUMENT, "%s must be 1 to %u, not %u", what,
                    PEERS_LIMIT, value);
}

#ifdef HR_SERVICE

enum hr_err hr_dispatcher_open(const struct hr_dispatcher_options *options,
                               struct hr_service **ret_service, struct hr_error *reterr)
{
    if (options == NULL || options->listen == NULL || ret_service == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "options.listen and ret_service must not be NULL");
    HR_TRY(check_limit("peers_max", options->peers_max, reterr));
    HR_TRY(check_limit("jobs_max", options->jobs_max, reterr));
    if (options->workers_per_run < 1 || options->workers_per_run > HR_ACTION_WORKERS_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "workers_per_run must be 1 to %u, not %u", HR_ACTION_WORKERS_MAX,
                        options->workers_per_run);
    return hr__dispatcher_open(options, ret_service, reterr);
}

enum hr_err hr_worker_open(const struct hr_worker_options *options,
                           struct hr_service **ret_service, struct hr_error *reterr)
{
    if (options == NULL || options->listen == NULL || options->dispatcher == NULL ||
        ret_service == NULL)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "options.dispatcher, options.listen and ret_service must not be NULL");
    if (options->threads < 0 || options->threads > 4096)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "threads must be 0 to 4096, not %d",
                        options->threads);
    HR_TRY(check_limit("peers_max", options->peers_max, reterr));
    return hr__worker_open(options, ret_service, reterr);
}

const char *hr_service_address(const struct hr_service *service)
{
    return service != NULL ? hr__net_address(service->net) : "";
}

enum hr_err hr_service_run(struct hr_service *service, struct hr_error *reterr)
{
    if (service == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "service must not be NULL");
    if (service->begin != NULL)
        HR_TRY(service->begin(service, reterr));
    hr__net_run(service->net);
    if (service->end != NULL)
        service->end(service);
    if (service->error.code != HR_OK && reterr != NULL)
        *reterr = service->error;
    return service->error.code;
}

void hr_service_stop(struct hr_service *service)
{
    if (service != NULL)
        hr__net_stop(service->net);
}

void hr_service_drain(struct hr_service *service)
{
    if (service == NULL)
        return;
    __atomic_store_n(&service->drains, true, __ATOMIC_RELEASE);
    if (service->can_drain)
        hr__net_wake(service->net);
    else
        hr__net_stop(service->net);
}

const char *hr_service_control_address(const struct hr_service *service)
{
    return service != NULL && service->control != NULL ? service->control : "";
}

void hr_service_close(struct hr_service *service)
{
    struct hr_net *net;

    if (service == NULL)
        return;
    net = service->net;
    service->close(service);
    hr__net_close(net);
}

#else

static enum hr_err refuse(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "this library was built without libevent, which the service needs");
}

enum hr_err hr_dispatcher_open(const struct hr_dispatcher_options *options,
                               struct hr_service **ret_service, struct hr_error *reterr)
{
    HR_TRY(check_limit("peers_max", options->peers_max, reterr));
    (void)ret_service;
    return refuse(reterr);
}

enum hr_err hr_worker_open(const struct hr_worker_options *options,
                           struct hr_service **ret_service, struct hr_error *reterr)
{
    HR_TRY(check_limit("peers_max", options->peers_max, reterr));
    (void)ret_service;
    return refuse(reterr);
}

const char *hr_service_address(const struct hr_service *service)
{
    (void)service;
    return "";
}

enum hr_err hr_service_run(struct hr_service *service, struct hr_error *reterr)
{
    (void)service;
    return refuse(reterr);
}

void hr_service_stop(struct hr_service *service)
{
    (void)service;
}

void hr_service_drain(struct hr_service *service)
{
    (void)service;
}

const char *hr_service_control_address(const struct hr_service *service)
{
    (void)service;
    return "";
}

void hr_service_close(struct hr_service *service)
{
    (void)service;
}

#endif
