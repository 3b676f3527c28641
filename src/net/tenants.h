/*
 * net/tenants.h - tenants of a service: users with a token of their own and a quota.
 *
 * A file with a line per tenant: its name, its token, `runs=N` for the runs that it may
 * have at a time, and `weight=N` for the most that one of them may weigh. Empty lines,
 * and those that begin with '#', are ignored.
 */
#ifndef HR_NET_TENANTS_H
#define HR_NET_TENANTS_H

#include "net/token.h"

#define HR_TENANT_NAME_MAX 64u /* bytes */
#define HR_TENANTS_MAX 1024u
#define HR_TENANT_RUNS_MAX 65536u

struct hr_tenant {
    char name[HR_TENANT_NAME_MAX + 1]; /* of letters, digits, '-', '_', '.' */
    struct hr_token token;
    uint32_t runs_max;   /* 0: as many as there is room for */
    uint32_t weight_max; /* of a run; at least 1 */
};

struct hr_tenants {
    struct hr_tenant *items;
    size_t count;
};

/* `own` is the service's token; a service with tenants must have one. HR_ERR_IO,
 * HR_ERR_NOT_FOUND, HR_ERR_MEMORY; HR_ERR_FORMAT, HR_ERR_LIMIT with file and line, which
 * show no token. */
HR_CHECK enum hr_err
hr__tenants_load(const char *path, const struct hr_token *own,
                 struct hr_tenants *ret_tenants, struct hr_error *reterr);
void hr__tenants_finish(struct hr_tenants *tenants);

/* The tenant with this token, or NULL. Compares with every tenant's, so that the time
 * tells nothing. */
const struct hr_tenant *
hr__tenants_find(const struct hr_tenants *tenants, const void *text, size_t bytes);

#endif
