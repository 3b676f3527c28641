/*
 * fleet/events.h - a log of what happened in a process of the service: one JSON object
 * per line, appended to a file (docs/formats/events.md).
 *
 * Logging never fails the service: lines that cannot be written are counted.
 */
#ifndef HR_FLEET_EVENTS_H
#define HR_FLEET_EVENTS_H

#include "core/error.h"

struct hr_events;

/* HR_ERR_IO, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__events_open(const char *path, struct hr_events **ret_events, struct hr_error *reterr);
void hr__events_close(struct hr_events *events);

/* Appends an event with up to three texts: pairs of a key and a value, ended by NULL.
 * `events` NULL: does nothing. */
void hr__events_add(struct hr_events *events, const char *event, ...)
    __attribute__((sentinel));

uint64_t hr__events_lost(const struct hr_events *events);

#endif
