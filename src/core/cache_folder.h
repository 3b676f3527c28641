/*
 * core/cache_folder.h - the folder where Headrace keeps what it learnt for later runs of
 * the same user: $HEADRACE_CACHE, else $XDG_CACHE_HOME/headrace, else ~/.cache/headrace.
 * Everything in it may be deleted at any time.
 */
#ifndef HR_CORE_CACHE_FOLDER_H
#define HR_CORE_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headrace/base.h"

/* Whether $HEADRACE_CACHE is set and empty: nothing is to be kept. */
bool hr__cache_is_off(void);

/* The folder's path, which may not exist yet; free it with hr__free. An empty variable,
 * and a relative $XDG_CACHE_HOME or $HOME, count as not set. HR_ERR_NOT_FOUND if no
 * variable gives a folder. */
HR_CHECK enum hr_err hr__cache_folder(char **ret_path, struct hr_error *reterr);

/* The path of a file in it, `name`, which may contain '/'; free it with hr__free. Makes
 * the missing folders above the file, with mode 0700. */
HR_CHECK enum hr_err
hr__cache_file(const char *name, char **ret_path, struct hr_error *reterr);

/* Removes the oldest files of the folder `path` beyond these limits. */
void hr__evict_files(const char *path, size_t files_max, uint64_t bytes_max);

#endif
