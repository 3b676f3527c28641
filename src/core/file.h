/*
 * core/file.h - reading and atomically replacing whole files, with fault injection.
 */
#ifndef HR_CORE_FILE_H
#define HR_CORE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "headrace/base.h"

/* Reads all of `path` (HR_ERR_LIMIT if longer than `bytes_max`) into new memory with a
 * terminating NUL that is not counted. The caller frees it with hr__free. */
HR_CHECK enum hr_err hr__file_read(const char *path, size_t bytes_max, char **ret_data,
                                   size_t *ret_bytes, struct hr_error *reterr);

/* Maps all of the regular file `path` read-only; the caller unmaps it with munmap.
 * *ret_data is NULL for an empty file. The file must not be truncated while mapped.
 * HR_ERR_NOT_FOUND, HR_ERR_IO, or HR_ERR_TYPE if it is not a regular file. */
HR_CHECK enum hr_err hr__file_map(const char *path, void **ret_data, size_t *ret_bytes,
                                  struct hr_error *reterr);

/* Writes a temporary file next to `path`, fsyncs it and renames it to `path`. On failure
 * the temporary file is removed and `path` is unchanged. */
HR_CHECK enum hr_err hr__file_replace(const char *path, const void *data, size_t bytes,
                                      struct hr_error *reterr);

/* The same in steps: begin returns a writer, commit renames, abort (NULL allowed) removes
 * the temporary file. commit and abort free the writer, also if commit fails. After a
 * failed write, abort. Small writes are gathered. The new file keeps the old one's mode;
 * a symbolic link at `path` is replaced, not followed. A device or pipe is written to. */
struct hr_file_writer;
HR_CHECK enum hr_err hr__file_begin(const char *path, struct hr_file_writer **ret_writer,
                                    struct hr_error *reterr);
HR_CHECK enum hr_err hr__file_write(struct hr_file_writer *writer, const void *data,
                                    size_t bytes, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__file_commit(struct hr_file_writer *writer, struct hr_error *reterr);
void hr__file_abort(struct hr_file_writer *writer);

/* Makes the folder `path`, and those above it that are missing. HR_ERR_IO names the one
 * that cannot be made. */
HR_CHECK enum hr_err
hr__file_make_folder(const char *path, mode_t mode, struct hr_error *reterr);

/* Makes the file `path` and locks it, against other processes and other callers in this
 * one, until hr__file_unlock() removes it or the process ends. HR_ERR_STATE if it is
 * locked. Where the file system has no locks it succeeds without one. */
HR_CHECK enum hr_err
hr__file_lock(const char *path, int *ret_lock, struct hr_error *reterr);
void hr__file_unlock(const char *path, int lock);
/* Whether the file that was opened is still the one at `path`: who held the lock before
 * may have removed it. */
bool hr__file_is_at(int fd, const char *path);

#endif
