/*
 * store/walk.h - the objects below a folder in the order of their names, for stores that
 * have folders.
 */
#ifndef HR_STORE_WALK_H
#define HR_STORE_WALK_H

#include "store/store.h"

/* What a folder holds. */
struct hr_walk_names;

/* Adds a file or a folder; HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__walk_add(struct hr_walk_names *names, const char *name, bool is_folder);

/* Adds the names of the folder `path`, in any order; links count as what they lead to.
 * HR_ERR_MEMORY needs no message. */
typedef enum hr_err hr_walk_read_fn(void *own, const char *path,
                                    struct hr_walk_names *names, struct hr_error *reterr);

/* As hr__store_list, for the folder `path`, which `read` reads. */
HR_CHECK enum hr_err
hr__walk(const char *path, hr_walk_read_fn *read, void *own, hr_store_visit_fn *visit,
         void *user, struct hr_error *reterr);

#endif
