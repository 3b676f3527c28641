/*
 * net/lookup.h - looks up hosts' names in threads: a name server may take half a minute,
 * and getaddrinfo() cannot be interrupted.
 *
 * A thread that nobody waits for any more ends on its own.
 */
#ifndef HR_NET_LOOKUP_H
#define HR_NET_LOOKUP_H

#include <stdint.h>
#include <sys/socket.h>

#include "headrace/base.h"

/* Lookups under way, and those that ended and were not asked for. Zero: none. Used by one
 * thread at a time. */
struct hr_lookups {
    struct hr_lookup *first;
    uint32_t count;
};

/* Where "host:port" is. A number is known at once; for a name, the first call waits up to
 * `patience_ns`, and further ones do not. HR_ERR_TIMEOUT: not known yet; ask again.
 * HR_ERR_LIMIT: too many lookups are under way. Else as hr__address_parse(). */
HR_CHECK enum hr_err
hr__look_up(struct hr_lookups *lookups, const char *address, uint64_t patience_ns,
            struct sockaddr_storage *ret_address, socklen_t *ret_bytes,
            struct hr_error *reterr);

void hr__lookups_finish(struct hr_lookups *lookups);

#endif
