/*
 * op/thread.h - what the owner of a thread context does beyond what ops may (op.h): the
 * end of its objects, and the timing of a record.
 */
#ifndef HR_OP_THREAD_H
#define HR_OP_THREAD_H

#include "op/op.h"

/* Destroy the objects that ops made in this thread. */
void hr__thread_objects_destroy(struct hr_thread *thread);

/* Bytes that pass a node, by what it does with the field. */
enum hr_charge_bytes {
    HR_BYTES_READ,
    HR_BYTES_TAKEN,
    HR_BYTES_BEFORE, /* of a field that is updated */
    HR_BYTES_AFTER,
    HR_BYTES_WRITTEN,
    HR_BYTES_KINDS,
};

/* What a record that is timed has cost a node so far. */
struct hr_charge {
    uint64_t ticks;  /* of wall time */
    uint64_t cpu_ns; /* by the thread's CPU clock, where it is read */
    uint64_t bytes[HR_BYTES_KINDS];
    bool ran; /* the record came to this node */
};

/*
 * From begin to end, hr__thread_charge divides time over `charges`, one per node,
 * starting with `node`. A record may be timed in several parts; charges add up. The
 * thread's CPU clock is read as well where `clock` is set: that costs 200 ns at each
 * change of node, reading the TSC 8. What the reading costs by itself is left out
 * (hr__thread_calibrate).
 */
void hr__thread_timing_begin(struct hr_thread *thread, struct hr_charge *charges,
                             uint32_t node, bool clock);
void hr__thread_timing_end(struct hr_thread *thread);
void hr__thread_calibrate(struct hr_thread *thread);

#endif
