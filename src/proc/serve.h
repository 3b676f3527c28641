/*
 * proc/serve.h - the loop of a worker process; see headrace/code.h, hr_code_serve.
 */
#ifndef HR_PROC_SERVE_H
#define HR_PROC_SERVE_H

#include "headrace/code.h"

HR_CHECK enum hr_err
hr__proc_serve(int fd, const struct hr_code *(*find)(void *user, const char *name),
               void *user, struct hr_error *reterr);

#endif
