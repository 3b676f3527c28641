/*
 * store/store_s3.c - objects of S3 and what speaks its protocol: "s3://bucket/key".
 *
 * The bytes of a key mean themselves. The configuration (s3_config.h) is read again with
 * each open and each list, so that credentials may be renewed; requests in flight sign
 * with the latest.
 */
#include "core/error.h"
#include "store/store_internal.h"
#include <string.h>

#ifdef HR_HTTP
#include "core/alloc.h"
#include "core/clock.h"
#include "store/s3_config.h"
#include "store/s3_xml.h"
#include "store/sigv4.h"
#include "store/store_web.h"

#define UNRESERVED "-._~"
#define PAGE_BYTES_MAX ((uint64_t)16 << 20) /* of an answer with up to 1000 keys */
#define BUCKET_BYTES_MAX 255

static struct {
    pthread_mutex_t mutex;
    struct hr_s3_config config;
    bool read;
} latest = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static enum hr_err renew_config(struct hr_error *reterr)
{
    struct hr_s3_config config;

    HR_TRY(hr__s3_config_read(&config, reterr));
    pthread_mutex_lock(&latest.mutex);
    latest.config = config;
    latest.read = true;
    pthread_mutex_unlock(&latest.mutex);
    return HR_OK;
}

static enum hr_err get_config(struct hr_s3_config *ret_config, struct hr_error *reterr)
{
    bool read;

    pthread_mutex_lock(&latest.mutex);
    read = latest.read;
    *ret_config = latest.config;
    pthread_mutex_unlock(&latest.mutex);
    return read ? HR_OK : hr__s3_config_read(ret_config, reterr);
}

/* ---- names ---- */

struct name {
    const char *bucket, *key; /* key: after the slash, "" if there is none */
    size_t bucket_bytes;
};

/* A bucket's name becomes part of the host. */
static enum hr_err
split_name(const char *uri, struct name *ret_name, struct hr_error *reterr)
{
    const char *bucket = uri + strlen("s3://");
    size_t bytes = strcspn(bucket, "/");

    if (bytes == 0 || bytes > BUCKET_BYTES_MAX || strlen(uri) >= HR_URI_MAX ||
        strspn(bucket,
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") <
            bytes)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "%.200s is not s3://BUCKET/KEY with letters, digits, '.', '-' and "
            "'_' in BUCKET",
            uri);
    *ret_name = (struct name){bucket, bucket + bytes + (bucket[bytes] == '/'), bytes};
    return HR_OK;
}

/* ---- requests ---- */

static void add_host(struct hr_str *host, const struct hr_s3_config *c,
                     const struct name *name, const char **ret_scheme)
{
    const char *end = strstr(c->endpoint, "://");

    *ret_scheme = end != NULL && end - c->endpoint == 4 ? "http://" : "https://";
    if (!c->is_path_style)
        hr__str_addf(host, "%.*s.", (int)name->bucket_bytes, name->bucket);
    if (end != NULL)
        hr__str_add(host, end + 3);
    else
        hr__str_addf(host, "s3.%s.amazonaws.com", c->region);
}

static void add_path(struct hr_str *path, const struct hr_s3_config *c,
                     const struct name *name, const char *query)
{
    hr__str_add(path, "/");
    if (c->is_path_style)
        hr__str_addf(path, "%.*s/", (int)name->bucket_bytes, name->bucket);
    if (query == NULL)
        hr__web_encode(path, name->key, strlen(name->key), UNRESERVED "/");
}

static enum hr_err prepare(const char *uri, const char *query, struct hr_web_get *get,
                           struct hr_error *reterr)
{
    struct hr_s3_config c;
    struct hr_str host, path;
    const char *scheme;
    struct name name = {0};

    HR_TRY(split_name(uri, &name, reterr));
    HR_TRY(get_config(&c, reterr));
    hr__str_init(&host);
    hr__str_init(&path);
    add_host(&host, &c, &name, &scheme);
    add_path(&path, &c, &name, query);
    if (!c.anonymous) {
        struct hr_sigv4 signature = {.key = c.key,
                                     .secret = c.secret,
                                     .token = c.token,
                                     .region = c.region,
                                     .host = hr__str_text(&host),
                                     .path = hr__str_text(&path),
                                     .query = query != NULL ? query : "",
                                     .wall_ns = hr__wall_ns()};

        hr__sigv4_headers(&signature, &get->headers);
    }
    hr__str_addf(&get->url, "%s%s%s%s%s", scheme, hr__str_text(&host),
                 hr__str_text(&path), query != NULL ? "?" : "",
                 query != NULL ? query : "");
    get->url.failed |= host.failed | path.failed;
    get->redirects = false; /* a signature is for one host */
    hr__str_finish(&host);
    hr__str_finish(&path);
    return HR_OK;
}

static const struct hr_web_kind s3 = {prepare, hr__s3_parse_error};

static enum hr_err
s3_open(const char *name, struct hr_object *object, struct hr_error *reterr)
{
    struct name parts = {0};

    (void)name;
    HR_TRY(split_name(object->uri, &parts, reterr));
    if (*parts.key == '\0')
        return hr__fail(reterr, HR_ERR_TYPE, "%s is a bucket, not an object",
                        object->uri);
    HR_TRY(renew_config(reterr));
    return hr__web_open(&s3, object, reterr);
}

static enum hr_err s3_read(struct hr_object *object, uint64_t offset, void *data,
                           size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    return hr__web_read(&s3, object, offset, data, bytes, ret_got, reterr);
}

static enum hr_err s3_fetch(struct hr_store_read *read)
{
    return hr__web_fetch_range(&s3, read);
}

static enum hr_err s3_start(struct hr_channel *channel, struct hr_error *reterr)
{
    return hr__web_start(&s3, channel, reterr);
}

/* ---- lists ---- */

struct listing {
    hr_store_visit_fn *visit;
    void *user;
    const char *uri;
    struct hr_error *error;
    size_t prefix_bytes;
    struct hr_str prefix, last; /* key before this one */
    bool any, stopped;
    enum hr_err err;
};

static bool take_key(void *user, const char *key, size_t bytes, uint64_t size)
{
    struct listing *l = user;
    size_t prefix = l->prefix.length;

    if (bytes < prefix || memcmp(key, hr__str_text(&l->prefix), prefix) != 0 ||
        (l->any && strcmp(key, hr__str_text(&l->last)) <= 0)) {
        l->err = hr__fail(l->error, HR_ERR_FORMAT,
                          "cannot list %s: the server's list is not in order", l->uri);
        return false;
    }
    if (bytes >= HR_URI_MAX) {
        l->err =
            hr__fail(l->error, HR_ERR_LIMIT, "cannot list %s: a key is too long", l->uri);
        return false;
    }
    l->any = true;
    hr__str_clear(&l->last);
    hr__str_add_bytes(&l->last, key, bytes);
    if (bytes > prefix) /* the key of the folder itself is left out */
        l->stopped = !l->visit(l->user, key + prefix, bytes - prefix, size);
    return !l->stopped;
}

static void
add_query(struct hr_str *query, const struct hr_str *token, const struct hr_str *prefix)
{
    if (token->length > 0) {
        hr__str_add(query, "continuation-token=");
        hr__web_encode(query, hr__str_text(token), token->length, UNRESERVED);
        hr__str_add(query, "&");
    }
    hr__str_add(query, "encoding-type=url&list-type=2&prefix=");
    hr__web_encode(query, hr__str_text(prefix), prefix->length, UNRESERVED);
}

static enum hr_err list_page(struct listing *l, struct hr_str *token)
{
    struct hr_web_request request = {.kind = &s3,
                                     .uri = l->uri,
                                     .want = HR_WEB_TEXT,
                                     .bytes = PAGE_BYTES_MAX,
                                     .error = l->error};
    struct hr_str query;
    enum hr_err err;

    hr__str_init(&query);
    hr__str_init(&request.text);
    add_query(&query, token, &l->prefix);
    request.query = hr__str_text(&query);
    err = hr__str_ok(&query) ? hr__web_fetch(&request) : HR_ERR_MEMORY;
    if (err == HR_OK)
        err = hr__s3_parse_list(hr__str_text(&request.text), request.text.length,
                                take_key, l, token, l->error);
    hr__str_finish(&request.text);
    hr__str_finish(&query);
    return err;
}

static enum hr_err list_pages(struct listing *l)
{
    struct hr_str token, before;
    enum hr_err err;

    hr__str_init(&token);
    hr__str_init(&before);
    do {
        hr__str_clear(&before);
        hr__str_add(&before, hr__str_text(&token));
        err = list_page(l, &token);
        if (err == HR_OK)
            err = l->err;
        if (err == HR_OK && token.length > 0 &&
            strcmp(hr__str_text(&token), hr__str_text(&before)) == 0)
            err =
                hr__fail(l->error, HR_ERR_FORMAT,
                         "cannot list %s: the server repeats a part of its list", l->uri);
    } while (err == HR_OK && token.length > 0 && !l->stopped);
    hr__str_finish(&before);
    hr__str_finish(&token);
    return err;
}

static enum hr_err
s3_list(const char *name, hr_store_visit_fn *visit, void *user, struct hr_error *reterr)
{
    struct listing l = {
        .visit = visit, .user = user, .uri = name - strlen("s3://"), .error = reterr};
    struct name parts = {0};
    size_t bytes;
    enum hr_err err;

    HR_TRY(split_name(l.uri, &parts, reterr));
    HR_TRY(renew_config(reterr));
    hr__str_init(&l.prefix);
    hr__str_init(&l.last);
    bytes = strlen(parts.key);
    while (bytes > 0 && parts.key[bytes - 1] == '/')
        bytes--;
    hr__str_add_bytes(&l.prefix, parts.key, bytes);
    if (bytes > 0)
        hr__str_add(&l.prefix, "/");
    err = hr__str_ok(&l.prefix) ? list_pages(&l) : HR_ERR_MEMORY;
    if (err == HR_OK && !l.any) {
        hr__store_note(reterr, l.uri);
        err = hr__fail(reterr, HR_ERR_NOT_FOUND, "there are no objects in %s", l.uri);
    }
    hr__str_finish(&l.prefix);
    hr__str_finish(&l.last);
    return err;
}

const struct hr_store hr_store_s3 = {
    .scheme = "s3",
    .gives = "buckets",
    .check = hr__store_check_http,
    .open = s3_open,
    .close = hr__web_close,
    .read = s3_read,
    .list = s3_list,
    .fetch = s3_fetch,
    .start = s3_start,
    .retries = true,
};
#else
/* See hr__store_without_http. */
const struct hr_store hr_store_s3 = {.scheme = "s3",
                                     .gives = "buckets",
                                     .check = hr__store_check_http,
                                     .open = hr__store_without_http};
#endif
