/*
 * net/version.c - see version.h.
 */
#include "net/version.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/library.h"

#ifdef HR_SERVICE
#include "net/event.h"

enum hr_err hr__event_version(char *text, size_t room, struct hr_error *reterr)
{
    const char *version;

    HR_TRY(hr__event_load(reterr));
    version = hr__event.get_version();
    snprintf(text, room, "%.*s", (int)strcspn(version, "-"), version); /* 2.1.12-stable */
    return HR_OK;
}
#else
enum hr_err hr__event_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)text;
    (void)room;
    return hr__library_left_out("libevent-dev", reterr);
}
#endif

#ifdef HR_TLS
#include "net/ssl.h"

enum hr_err hr__ssl_version(char *text, size_t room, struct hr_error *reterr)
{
    HR_TRY(hr__ssl_load(reterr));
    snprintf(text, room, "%s", hr__ssl.OpenSSL_version(OPENSSL_VERSION_STRING));
    return HR_OK;
}
#else
enum hr_err hr__ssl_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)text;
    (void)room;
    return hr__library_left_out("libssl-dev", reterr);
}
#endif
