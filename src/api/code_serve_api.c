/*
 * api/code_serve_api.c - headrace/code.h: hr_code_serve, run in the worker process.
 */
#include "core/error.h"
#include "proc/serve.h"

enum hr_err
hr_code_serve(int fd, const struct hr_code *(*find)(void *user, const char *name),
              void *user, struct hr_error *reterr)
{
    if (fd < 0 || find == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "%s",
                        find == NULL ? "find must not be NULL" : "fd must be a socket");
    return hr__proc_serve(fd, find, user, reterr);
}
