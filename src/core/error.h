/*
 * core/error.h - filling a struct hr_error.
 */
#ifndef HR_CORE_ERROR_H
#define HR_CORE_ERROR_H

#include "headrace/base.h"

/* Set code and message (printf) unless `error` is NULL, leaving the other parts; returns
 * `code`. Written once, where the fault is known: an error that already has a code is
 * overwritten. */
enum hr_err hr__fail(struct hr_error *error, enum hr_err code, const char *format, ...)
    HR_PRINTF(3, 4);

/* Same for a failed system call: appends ": " and the text of `errnum`. */
enum hr_err hr__fail_errno(struct hr_error *error, enum hr_err code, int errnum,
                           const char *format, ...) HR_PRINTF(4, 5);

/* Put `prefix` (printf) and ": " before the message. Does nothing when error is NULL. */
void hr__error_prefix(struct hr_error *error, const char *format, ...) HR_PRINTF(2, 3);

/* Return early on failure; only where nothing is held. */
#define HR_TRY(expression)                                                               \
    do {                                                                                 \
        enum hr_err hr_try_ = (expression);                                              \
        if (hr_try_ != HR_OK)                                                            \
            return hr_try_;                                                              \
    } while (0)

#endif
