/*
 * net/event.h - libevent's functions, which are loaded when a connection needs them.
 */
#ifndef HR_NET_EVENT_H
#define HR_NET_EVENT_H

#include <event2/event.h>

#include "headrace/base.h"

/* Of a function F(name): one member for each that is used, named without `event_`. */
#define HR_EVENT_FUNCTIONS(F)                                                            \
    F(active)                                                                            \
    F(add)                                                                               \
    F(base_free)                                                                         \
    F(base_loop)                                                                         \
    F(base_loopbreak)                                                                    \
    F(base_new)                                                                          \
    F(del)                                                                               \
    F(free)                                                                              \
    F(get_version)                                                                       \
    F(new)

#define HR_EVENT_MEMBER(name_) __typeof__(event_##name_) *name_;
struct hr_event {
    HR_EVENT_FUNCTIONS(HR_EVENT_MEMBER)
};
#undef HR_EVENT_MEMBER

extern struct hr_event hr__event;

/* Fills hr__event. HR_ERR_UNSUPPORTED if there is no libevent. Thread-safe. */
HR_CHECK enum hr_err hr__event_load(struct hr_error *reterr);

#endif
