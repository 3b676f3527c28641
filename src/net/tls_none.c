/*
 * net/tls_none.c - tls.h in a build without OpenSSL: settings are refused, so no link is
 * ever made.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/error.h"
#include "net/tls.h"

static bool is_given(const char *given, const char *variable)
{
    if (given == NULL)
        given = getenv(variable);
    return given != NULL && given[0] != '\0';
}

enum hr_err hr__tls_open(const struct hr_tls_files *files, unsigned uses,
                         struct hr_tls **ret_tls, struct hr_error *reterr)
{
    *ret_tls = NULL;
    if (!is_given(files->cert, "HEADRACE_TLS_CERT") &&
        !is_given(files->key, "HEADRACE_TLS_KEY") &&
        !((uses & HR_TLS_CONNECTS) && is_given(files->ca, "HEADRACE_TLS_CA")) &&
        !((uses & HR_TLS_CONNECTS) && is_given(files->name, "HEADRACE_TLS_NAME")) &&
        !((uses & HR_TLS_LISTENS) &&
          is_given(files->client_ca, "HEADRACE_TLS_CLIENT_CA")))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "this library was built without OpenSSL, which TLS needs");
}

void hr__tls_close(struct hr_tls *tls)
{
    (void)tls;
}

bool hr__tls_asks_clients(const struct hr_tls *tls)
{
    (void)tls;
    return false;
}

enum hr_err hr__tls_link(struct hr_tls *tls, int fd, const char *address,
                         struct hr_tls_link **ret_link, struct hr_error *reterr)
{
    (void)tls;
    (void)fd;
    (void)address;
    (void)ret_link;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED, "there is no TLS");
}

void hr__tls_unlink(struct hr_tls_link *link)
{
    (void)link;
}

enum hr_err
hr__tls_shake(struct hr_tls_link *link, bool *ret_done, struct hr_error *reterr)
{
    (void)link;
    (void)ret_done;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED, "there is no TLS");
}

ssize_t hr__tls_read(struct hr_tls_link *link, const struct iovec *parts, size_t count)
{
    (void)link;
    (void)parts;
    (void)count;
    errno = ENOTSUP;
    return -1;
}

bool hr__tls_has_more(const struct hr_tls_link *link)
{
    (void)link;
    return false;
}

ssize_t hr__tls_write(struct hr_tls_link *link, const struct iovec *parts, size_t count)
{
    return hr__tls_read(link, parts, count);
}

size_t hr__tls_waiting(const struct hr_tls_link *link)
{
    (void)link;
    return 0;
}

void hr__tls_say_end(struct hr_tls_link *link)
{
    (void)link;
}

const struct hr_error *hr__tls_failure(const struct hr_tls_link *link)
{
    static const struct hr_error none = {.code = HR_ERR_UNSUPPORTED};

    (void)link;
    return &none;
}
