/*
 * headrace/system.h - what this build and this machine offer: for reports of bugs and for
 * checks before a long run.
 */
#ifndef HR_SYSTEM_H
#define HR_SYSTEM_H

#include "headrace/base.h"

HR_BEGIN_DECLS

struct hr_machine_info {
    char cpu[128];   /* the processor's model; "unknown" */
    const char *isa; /* instruction set of the kernels: "c", "neon", "avx2", ... */
    const char
        *isa_machine;      /* the best that the machine has; HEADRACE_ISA lowers `isa` */
    int cpus;              /* threads of a run by default: the smaller of the next two */
    int cpus_affinity;     /* CPUs that the process may run on */
    int cpus_quota;        /* the cgroup's quota, rounded up; 0: none */
    uint64_t memory_bytes; /* that the process may use: the machine's, or the
                              cgroup's limit if that is less */
    uint64_t memory_free_bytes; /* of it, now; a cache of files counts as free */
    char
        cache_folder[1024]; /* where profiles and indexes are kept; "" if there is none */
};

/* Fills in *ret_info. What cannot be found out is empty or 0. */
HR_API void hr_machine_info(struct hr_machine_info *ret_info);

enum hr_part_state {
    HR_PART_READY,
    HR_PART_MISSING,   /* this build uses it, and it cannot be loaded or is not allowed */
    HR_PART_NOT_BUILT, /* left out of this build */
};

struct hr_part_info {
    const char *kind;  /* "library", "system" (of the kernel), or "store" */
    const char *name;  /* "libpng"; a store's is its scheme */
    const char *gives; /* what it is for */
    enum hr_part_state state;
    char version[64];  /* "" if it has none, or is not ready */
    char problem[512]; /* unless ready: why not, and what to do */
};

/* The i-th part: libraries that data are read with, then what the kernel offers, then
 * stores. Loads the library to see whether it can be used. HR_ERR_RANGE past the end. */
HR_API HR_CHECK enum hr_err hr_part_info(size_t at, struct hr_part_info *ret_info);

HR_END_DECLS

#endif
