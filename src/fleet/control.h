/*
 * fleet/control.h - what others wrote: the queries and bodies of the control port's
 * requests, and the bodies of its answers.
 */
#ifndef HR_FLEET_CONTROL_H
#define HR_FLEET_CONTROL_H

#include "headrace/control.h"
#include "net/net.h"

/* Entries of a list that names no limit: what takes a few ms. */
#define HR_CONTROL_LIMIT 1000u
/* For a request of a whole list: as long as it takes. */
#define HR_CONTROL_ALL "?limit=999999999999999999"

/* The part of a list that a request asks for. */
struct hr_control_page {
    uint64_t limit; /* entries */
    uint64_t after; /* `next` of the page before; 0: from the first entry */
};

/* Reads "limit=100&after=7". HR_ERR_ARGUMENT: another parameter, or no number. */
HR_CHECK enum hr_err
hr__control_read_page(const char *query, struct hr_control_page *ret_page,
                      struct hr_error *reterr);

/* The body of a drain: {"worker": "host:port"}. HR_ERR_FORMAT, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__control_read_drain(const char *text, size_t bytes,
                       char ret_worker[HR_NET_ADDRESS_MAX], struct hr_error *reterr);

/* The body of an eviction: {"job": "train", "consumer": "a"}. The same errors. */
struct hr_control_evict {
    char job[129], consumer[129];
};
HR_CHECK enum hr_err
hr__control_read_evict(const char *text, size_t bytes, struct hr_control_evict *ret_evict,
                       struct hr_error *reterr);

/* The answer to /v1/status; free it with hr_control_status_free(). HR_ERR_FORMAT,
 * HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__control_read_status(const char *text, size_t bytes,
                        struct hr_control_status **ret_status, struct hr_error *reterr);
void hr__control_status_free(struct hr_control_status *status);

#endif
