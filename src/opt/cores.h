/*
 * opt/cores.h - how fast threads are that share cores while they also wait: for files,
 * for a network, for worker processes. Pure.
 *
 * A closed queueing network of two stations, waits (each thread has its own) and cores
 * (which share their time equally among what is ready to run, other programs included);
 * see Lazowska et al., Quantitative System Performance, 1984, chapter 8.
 */
#ifndef HR_OPT_CORES_H
#define HR_OPT_CORES_H

struct hr_cores_load {
    double wait_ns; /* of a record, without that for a core; >= 0 */
    double cpu_ns;  /* of a record; >= 0, and one of the two > 0 */
    double cores;   /* > 0, or 0: any number */
    double others;  /* threads of other programs that are always ready to run */
};

/* Records per second of `threads` threads. */
double hr__cores_rate(const struct hr_cores_load *load, int threads);

/* The `others` with which a record of `threads` threads waits `delay_ns` for a core, at
 * most 64 for each core; 0 if the threads alone make it wait that long. load->others is
 * not used. */
double hr__cores_others(const struct hr_cores_load *load, int threads, double delay_ns);

#endif
