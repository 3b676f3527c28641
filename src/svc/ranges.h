/*
 * svc/ranges.h - which ranges of a consumer are leased, to whom, since when.
 *
 * In memory only: a lease is a hint. Any may be lost, repeated or given to two workers;
 * what was delivered is known to the client alone. Ranges may overlap. The table has a
 * fixed size; when it is full nothing more is leased.
 */
#ifndef HR_SVC_RANGES_H
#define HR_SVC_RANGES_H

#include "svc/action.h"

struct hr_lease {
    uint64_t from, until; /* local positions */
    hr_peer worker;
    uint64_t issued_ns, deadline_ns;
    uint64_t work_ns; /* that it takes the worker, as it was estimated */
    bool served;      /* the worker says that it sent all */
    bool hedged;      /* a second worker has it too */
    bool known;       /* the worker makes or made it for an equal job: no work */
};

struct hr_ranges {
    struct hr_lease *items; /* by `from` */
    size_t count, room;
};

HR_CHECK enum hr_err
hr__ranges_init(struct hr_ranges *ranges, size_t room, struct hr_error *reterr);
void hr__ranges_finish(struct hr_ranges *ranges);

/* There must be room. */
void hr__ranges_add(struct hr_ranges *ranges, const struct hr_lease *lease);
void hr__ranges_remove(struct hr_ranges *ranges, size_t at);

/* The first positions in [from, limit) that no lease covers; false if there are none. */
bool hr__ranges_gap(const struct hr_ranges *ranges, uint64_t from, uint64_t limit,
                    struct hr_frame_range *ret_gap);

#endif
