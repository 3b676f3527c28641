/*
 * core/file.h - whole files, read and replaced, through the fault door.
 */
#ifndef HR_CORE_FILE_H
#define HR_CORE_FILE_H

#include "headrace/base.h"

/* Read all of `path` (at most `bytes_max`, else HR_ERR_LIMIT) into fresh memory with a
 * NUL behind it; hr__free it. */
HR_CHECK enum hr_err hr__file_read(const char *path, size_t bytes_max, char **ret_data,
                                   size_t *ret_bytes, struct hr_error *reterr);

/* Map all of the regular file `path` for reading; munmap it. *ret_data is NULL for an
 * empty file. It must not be cut shorter while it is mapped. HR_ERR_NOT_FOUND, HR_ERR_IO,
 * or HR_ERR_TYPE for what is no regular file. */
HR_CHECK enum hr_err hr__file_map(const char *path, void **ret_data, size_t *ret_bytes,
                                  struct hr_error *reterr);

/* Write a temporary file beside `path`, fsync it and rename it over `path`; on failure
 * nothing is left behind and `path` is as before. */
HR_CHECK enum hr_err hr__file_replace(const char *path, const void *data, size_t bytes,
                                      struct hr_error *reterr);

/* Same in pieces: begin gives a writer, commit renames, abort (also of NULL) removes.
 * Both end the writer, a failed commit too. After a failed write, abort. The new file has
 * the mode of the old one; a symbolic link at `path` is replaced, not followed. */
struct hr_file_writer;
HR_CHECK enum hr_err hr__file_begin(const char *path, struct hr_file_writer **ret_writer,
                                    struct hr_error *reterr);
HR_CHECK enum hr_err hr__file_write(struct hr_file_writer *writer, const void *data,
                                    size_t bytes, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__file_commit(struct hr_file_writer *writer, struct hr_error *reterr);
void hr__file_abort(struct hr_file_writer *writer);

#endif
