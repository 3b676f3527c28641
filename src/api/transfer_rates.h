/*
 * api/transfer_rates.h - what it costs to send records to a worker process and back, for
 * profiles.
 */
#ifndef HR_API_TRANSFER_RATES_H
#define HR_API_TRANSFER_RATES_H

#include "graph/profile.h"

/* Measures machine->transfer_ns and machine->transfer in some 50 ms, with the requests
 * that runs send and a thread in the place of the worker process. What cannot be measured
 * stays HR_PROFILE_UNKNOWN. */
void hr__transfer_rates(struct hr_profile_machine *machine);

#endif
