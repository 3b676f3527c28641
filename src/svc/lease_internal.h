/*
 * svc/lease_internal.h - private interface between lease.c and lease_grant.c.
 */
#ifndef HR_SVC_LEASE_INTERNAL_H
#define HR_SVC_LEASE_INTERNAL_H

#include "svc/lease.h"

/* Ends a lease: its worker and consumer no longer count it. */
void hr__lease_end(struct hr_dispatcher *d, struct hr_lease_consumer *consumer,
                   size_t at);

struct hr_share hr__lease_share(const struct hr_lease_job *job, uint32_t rank);

/* Leases what may be leased: to this worker only (0: to any), for this consumer only
 * (NULL: for any). Hedges where a worker has nothing else to do. */
void hr__lease_grant(struct hr_dispatcher *d, hr_peer only_worker,
                     struct hr_lease_consumer *only_consumer, uint64_t now,
                     struct hr_actions *actions);

#endif
