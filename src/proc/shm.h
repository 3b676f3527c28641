/*
 * proc/shm.h - memory shared by descriptor.
 *
 * A memfd that can grow and never shrink (sealed), so that no peer can take pages away
 * from under the parent; what a peak took is given back by punching holes. Growing maps
 * the file again and keeps the older, shorter mapping until hr__shm_unmap_old: pointers
 * that user code holds stay good.
 */
#ifndef HR_PROC_SHM_H
#define HR_PROC_SHM_H

#include "core/error.h"

#define HR_SHM_OLD_MAX 48 /* doublings */

struct hr_shm_mapping {
    char *base;
    size_t bytes;
};

struct hr_shm {
    int fd;
    char *base;
    size_t bytes; /* mapped; the file has at least as many */
    bool writable;
    struct hr_shm_mapping old[HR_SHM_OLD_MAX];
    size_t old_count;
};

/* A new one of at least `bytes`; or one that came as a descriptor, which is taken over
 * (also on failure). */
HR_CHECK enum hr_err
hr__shm_create(struct hr_shm *shm, size_t bytes, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__shm_adopt(struct hr_shm *shm, int fd, bool writable, struct hr_error *reterr);
void hr__shm_close(struct hr_shm *shm);

/* Map at least `bytes`; `grow`: making the file longer if need be, at least doubling it.
 * Without it a file that is too short is HR_ERR_FORMAT. */
HR_CHECK enum hr_err
hr__shm_map(struct hr_shm *shm, size_t bytes, bool grow, struct hr_error *reterr);

/* Map all of the file. */
HR_CHECK enum hr_err hr__shm_map_all(struct hr_shm *shm, struct hr_error *reterr);

/* Unmap what growing has left. */
void hr__shm_unmap_old(struct hr_shm *shm);

/* Returns the pages after `keep` to the system. */
void hr__shm_trim(struct hr_shm *shm, size_t keep);

#endif
