/*
 * store/store_http.c - objects by URL: "http://" and "https://".
 *
 * The name is sent as it is written, except that bytes which no URL has (spaces, braces,
 * bytes beyond ASCII, '#') are percent-encoded. There are no lists: HTTP has none.
 */
#include "core/error.h"
#include "core/library.h"
#include "store/store_internal.h"
#include <stdio.h>
#include <string.h>

#ifdef HR_HTTP
#include "store/curl.h"
#include "store/store_web.h"

/* Parameters by which a signed URL is known. */
static const char *const secrets[] = {
    "X-Amz-Signature",  "X-Amz-Credential", "X-Amz-Security-Token",
    "X-Goog-Signature", "Signature",        "sig"};

static bool is_signed(const char *query)
{
    while (query != NULL) {
        size_t bytes = strcspn(++query, "=&");

        for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++)
            if (strlen(secrets[i]) == bytes && strncasecmp(secrets[i], query, bytes) == 0)
                return true;
        query = strchr(query, '&');
    }
    return false;
}

/* URIs are named in messages, ledgers and graph files, so they must hold no secret. */
static enum hr_err check_uri(const char *uri, struct hr_error *reterr)
{
    const char *host = strstr(uri, "://") + 3, *query = strchr(host, '?');
    size_t bytes = strcspn(host, "/?#");

    if (memchr(host, '@', bytes) != NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a URI must not contain a user name or password: it appears in "
                        "messages and ledgers");
    if (is_signed(query))
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "%.*s: a URI must not contain a signature: it appears in messages "
            "and ledgers; read the bucket by s3://",
            (int)(query - uri), uri);
    if (bytes == 0 || strlen(uri) >= HR_URI_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "%.200s is not http://HOST/NAME", uri);
    return HR_OK;
}

static enum hr_err prepare(const char *uri, const char *query, struct hr_web_get *get,
                           struct hr_error *reterr)
{
    const char *name = strstr(uri, "://") + 3;

    (void)query;
    HR_TRY(check_uri(uri, reterr));
    name += strcspn(name, "/?");
    hr__str_add_bytes(&get->url, uri, (size_t)(name - uri));
    hr__web_encode(&get->url, name, strlen(name), "-._~:/?@!$&'()*+,;=%[]");
    return HR_OK;
}

static const struct hr_web_kind http = {prepare, NULL};

static enum hr_err
http_open(const char *name, struct hr_object *object, struct hr_error *reterr)
{
    (void)name;
    HR_TRY(check_uri(object->uri, reterr));
    return hr__web_open(&http, object, reterr);
}

static enum hr_err http_read(struct hr_object *object, uint64_t offset, void *data,
                             size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    return hr__web_read(&http, object, offset, data, bytes, ret_got, reterr);
}

static enum hr_err http_fetch(struct hr_store_read *read)
{
    return hr__web_fetch_range(&http, read);
}

static enum hr_err http_start(struct hr_channel *channel, struct hr_error *reterr)
{
    return hr__web_start(&http, channel, reterr);
}

enum hr_err hr__store_curl_version(char *text, size_t room, struct hr_error *reterr)
{
    HR_TRY(hr__curl_load(reterr));
    snprintf(text, room, "%s", hr__curl.version_info(CURLVERSION_NOW)->version);
    return HR_OK;
}
#else
enum hr_err hr__store_curl_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)text;
    (void)room;
    return hr__library_left_out("libcurl4-openssl-dev and libexpat1-dev", reterr);
}

enum hr_err hr__store_without_http(const char *name, struct hr_object *object,
                                   struct hr_error *reterr)
{
    (void)name;
    hr__store_note(reterr, object->uri);
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "cannot open %s: this build has no libcurl (install "
                    "libcurl4-openssl-dev and libexpat1-dev, and build again)",
                    object->uri);
}
#endif

enum hr_err hr__store_check_http(struct hr_error *reterr)
{
    char version[64];

    return hr__store_curl_version(version, sizeof version, reterr);
}

#ifdef HR_HTTP
#define HTTP_STORE(scheme_)                                                              \
    {                                                                                    \
        .scheme = scheme_, .gives = "web servers", .check = hr__store_check_http,        \
        .open = http_open, .close = hr__web_close, .read = http_read,                    \
        .fetch = http_fetch, .start = http_start, .retries = true                        \
    }
#else
#define HTTP_STORE(scheme_)                                                              \
    {                                                                                    \
        .scheme = scheme_, .gives = "web servers", .check = hr__store_check_http,        \
        .open = hr__store_without_http                                                   \
    }
#endif

const struct hr_store hr_store_http = HTTP_STORE("http");
const struct hr_store hr_store_https = HTTP_STORE("https");
