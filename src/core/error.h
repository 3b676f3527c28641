/*
 * core/error.h - filling in a struct hr_error.
 */
#ifndef HR_CORE_ERROR_H
#define HR_CORE_ERROR_H

#include <stddef.h>
#include <string.h>

#include "headrace/base.h"

/* Makes an error empty. For errors of single records: {0} would write all 2 kB. */
static inline void hr__error_init(struct hr_error *error)
{
    memset(error, 0, offsetof(struct hr_error, node));
    error->node[0] = error->op[0] = error->param[0] = '\0';
    error->file[0] = error->message[0] = error->raised[0] = '\0';
}

/* Sets code and message (printf format) and leaves the other members; does nothing if
 * `error` is NULL. Returns `code`. Called once, where the failure is detected: it
 * overwrites an earlier error. */
enum hr_err hr__fail(struct hr_error *error, enum hr_err code, const char *format, ...)
    HR_PRINTF(3, 4);

/* The same for a failed system call: appends ": " and the text of `errnum`. */
enum hr_err hr__fail_errno(struct hr_error *error, enum hr_err code, int errnum,
                           const char *format, ...) HR_PRINTF(4, 5);

/* Prepends a prefix (printf format) and ": " to the message. Does nothing if `error` is
 * NULL. */
void hr__error_prefix(struct hr_error *error, const char *format, ...) HR_PRINTF(2, 3);

/* Returns early on failure; only where there is nothing to release. */
#define HR_TRY(expression)                                                               \
    do {                                                                                 \
        enum hr_err hr_try_ = (expression);                                              \
        if (hr_try_ != HR_OK)                                                            \
            return hr_try_;                                                              \
    } while (0)

/* An error at a place in a file of text: sets file, line and column (0: unknown), and a
 * message that begins with them. Returns `code`. */
enum hr_err hr__fail_in(struct hr_error *error, enum hr_err code, const char *path,
                        int line, int column, const char *format, ...) HR_PRINTF(6, 7);

#endif
