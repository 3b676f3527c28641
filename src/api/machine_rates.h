/*
 * api/machine_rates.h - how fast this machine copies, and how much slower a core computes
 * while the others do, for profiles.
 */
#ifndef HR_API_MACHINE_RATES_H
#define HR_API_MACHINE_RATES_H

#include "graph/profile.h"

/* Measures machine->copy and machine->crowd on as many threads as there are cores, at
 * most 16, in some 20 ms of each. What cannot be measured stays HR_PROFILE_UNKNOWN. */
void hr__machine_rates(struct hr_profile_machine *machine);

#endif
