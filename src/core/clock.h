/*
 * core/clock.h - the only source of time.
 */
#ifndef HR_CORE_CLOCK_H
#define HR_CORE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

/* Monotonic time; wall-clock time since 1970; CPU time of the process and of the
 * thread. */
uint64_t hr__now_ns(void);
uint64_t hr__wall_ns(void);
uint64_t hr__cpu_process_ns(void);
uint64_t hr__cpu_thread_ns(void);
/* Of a thread that has not been joined; 0 if it has ended. */
uint64_t hr__cpu_other_thread_ns(pthread_t thread);

/* A cheap monotonic counter (the TSC where invariant, else hr__now_ns), and its
 * conversion to nanoseconds. In the first second of a process the length of a tick
 * becomes better known: what is compared is converted by one. */
uint64_t hr__ticks(void);
double hr__ticks_to_ns(uint64_t ticks);
double hr__tick_ns(void);

#endif
