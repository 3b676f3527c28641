/*
 * fleet/roster.h - the workers that a client uses: those that the dispatcher lists, and
 * for a while those that it listed before.
 *
 * What a worker has sent may still be on its way when it is no longer listed, so its
 * connection is closed HR_ROSTER_LINGER_NS later, or when a listed worker needs the
 * place.
 */
#ifndef HR_FLEET_ROSTER_H
#define HR_FLEET_ROSTER_H

#include "fleet/fleet.h"
#include "fleet/loan.h"

#define HR_ROSTER_MAX (HR_FLEET_TEAM_MAX + 16u)
#define HR_ROSTER_LINGER_NS (5000 * HR_FLEET_MS)

struct hr_roster_worker {
    char *address;               /* NULL: free */
    uint32_t peer;               /* made or not; 0: none */
    struct hr_borrower borrower; /* of a worker on this host */
    uint64_t retry_ns;
    bool listed;      /* by the dispatcher, the last time */
    uint64_t left_ns; /* when it was listed no more */
};

struct hr_roster {
    struct hr_roster_worker workers[HR_ROSTER_MAX];
};

void hr__roster_finish(struct hr_roster *roster);

/* The worker of a connection; NULL if there is none. */
struct hr_roster_worker *hr__roster_find(struct hr_roster *roster, uint32_t peer);

/* Takes the dispatcher's list: one address per line. Connections that lose their place
 * are closed; there must be room for HR_FLEET_TEAM_MAX actions. */
void hr__roster_take(struct hr_roster *roster, const char *text, size_t bytes,
                     uint64_t now, struct hr_actions *actions);

/* Forgets workers that are not listed, or closes their connections when they have
 * lingered. */
void hr__roster_expire(struct hr_roster *roster, uint64_t now,
                       struct hr_actions *actions);

#endif
