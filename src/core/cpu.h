/*
 * core/cpu.h - what the processor supports, and how many CPUs this process may use.
 */
#ifndef HR_CORE_CPU_H
#define HR_CORE_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In order of preference. Kernels pick the best they have at or below hr__isa(). */
enum hr_isa {
    HR_ISA_C = 0,
    HR_ISA_NEON = 1,
    HR_ISA_AVX2 = 2,   /* AVX2, FMA, F16C, BMI2, PCLMULQDQ */
    HR_ISA_AVX512 = 3, /* F, BW, DQ, VL, VBMI */
};

/* The best this machine has, unless HEADRACE_ISA=c|neon|avx2|avx512 lowers it (read
 * once). */
enum hr_isa hr__isa(void);
/* For tests and benchmarks: use at most `isa` from now on, never more than the machine
 * has. */
void hr__isa_limit(enum hr_isa isa);
/* The best this machine has, whatever is set. */
enum hr_isa hr__isa_machine(void);
const char *hr__isa_name(enum hr_isa isa);

/* The processor's model name, for people and to tell machines apart; "unknown". Returns
 * `text`. */
const char *hr__cpu_model(char *text, size_t room);

/* CPUs that this process may use: the smaller of the affinity mask and the cgroup v1/v2
 * quota (rounded up), at least 1. */
int hr__cpu_count(void);
/* The affinity mask alone; 0 or less if it is unknown. */
int hr__cpu_affinity(void);
/* The quota of this process alone, rounded up; 0 if there is none. */
int hr__cpu_quota(void);
/* The quota alone, rounded up; 0 if there is none. `groups` is the text of
 * /proc/self/cgroup, `sys_root` the folder where the hierarchies are mounted. */
int hr__cgroup_cpus(const char *groups, const char *sys_root);

/* How long the process's threads that now exist were ready to run but had no core, in ns;
 * 0 if the system does not say. */
uint64_t hr__cpu_delay_ns(void);

/* What a thread did in a part of its time, in ns: it computed; it was ready to run but
 * had no core. */
struct hr_cpu_use {
    uint64_t ticks; /* that part, as of hr__ticks() */
    uint64_t cpu_ns, delay_ns;
};

/* Measures a thread's use of cores. */
struct hr_cpu_watch {
    int file; /* 1 + a descriptor; 0: not open yet; -1: the system does not say */
    bool known;
    struct hr_cpu_use begin;
};

/* From the first call to the second, of the thread that used the watch first. Returns
 * false if the system does not say, or kept the thread from reading all at one time. */
void hr__cpu_watch_begin(struct hr_cpu_watch *watch);
bool hr__cpu_watch_end(struct hr_cpu_watch *watch, struct hr_cpu_use *ret_use);
/* By any thread. The watch is as at first. */
void hr__cpu_watch_close(struct hr_cpu_watch *watch);

/* How long a hypervisor ran others on this machine's cores while they had work, all cores
 * together, since the machine started, in ns; it grows in steps of HR_CPU_STEAL_STEP_NS.
 * 0 if the system does not say. The second reads the text of /proc/stat. */
#define HR_CPU_STEAL_STEP_NS 10000000u
uint64_t hr__cpu_steal_ns(void);
uint64_t hr__cpu_parse_steal(const char *stat);

/* Times that the calling thread has slept for something: a lock, a file, a timer. */
uint64_t hr__cpu_switches(void);

/* Memory that this process may use, in bytes: the machine's, or the cgroup's limit if
 * that is less; 0 if unknown. The second is the limit alone, 0 without one, with
 * arguments as above. */
uint64_t hr__memory_bytes(void);
uint64_t hr__cgroup_memory(const char *groups, const char *sys_root);

/* The part of that memory that is free now or holds reclaimable file cache, in bytes; 0
 * if unknown. The second returns what the cgroup's limit leaves, at least 1 MiB, or 0
 * without a limit. */
uint64_t hr__memory_free_bytes(void);
uint64_t hr__cgroup_memory_free(const char *groups, const char *sys_root);

/* Current and peak resident memory of the process, in bytes; 0 if unknown. */
uint64_t hr__rss_bytes(void);
uint64_t hr__rss_peak_bytes(void);

#endif
