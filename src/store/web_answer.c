/*
 * store/web_answer.c - what servers answer: headers, bodies, and how an attempt ended.
 *
 * What a server says about a range is checked against what was asked for before a byte of
 * it is taken.
 */
#include "store/web_internal.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"

#define HEADER_BYTES_MAX ((size_t)64 << 10) /* of one response */
#define DRAIN_BYTES (64u << 10)             /* read and dropped, to keep a connection */
#define RETRY_AFTER_MAX_S 30                /* what a server may ask for */

/* ---- headers ---- */

static bool is_header(const char *line, size_t bytes, const char *name,
                      const char **value, size_t *value_bytes)
{
    size_t length = strlen(name), end = bytes;

    if (bytes <= length || line[length] != ':' || strncasecmp(line, name, length) != 0)
        return false;
    length++;
    while (length < end && (line[length] == ' ' || line[length] == '\t'))
        length++;
    while (end > length && strchr(" \t\r\n", line[end - 1]) != NULL)
        end--;
    *value = line + length;
    *value_bytes = end - length;
    return true;
}

/* Decimal digits at *at, before `end`. */
static bool read_number(const char **at, const char *end, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *from = *at;

    while (*at < end && **at >= '0' && **at <= '9' && *at - from < 19)
        value = value * 10 + (uint64_t)(*(*at)++ - '0');
    *ret_value = value;
    return *at > from;
}

/* "bytes 0-9/10"; with status 416 the size alone, after a star. */
static void
read_content_range(struct hr_web_response *response, const char *at, size_t bytes)
{
    const char *end = at + bytes;
    bool any;

    if (bytes < 6 || strncasecmp(at, "bytes ", 6) != 0)
        return;
    at += 6;
    any = at < end && *at == '*';
    if (any)
        at++;
    else if (!read_number(&at, end, &response->first) || at == end || *at++ != '-' ||
             !read_number(&at, end, &response->last))
        return;
    if (at == end || *at++ != '/')
        return;
    response->has_range = read_number(&at, end, &response->total) && at == end;
}

static void copy_text(char *to, size_t room, const char *from, size_t bytes)
{
    bytes = bytes < room ? bytes : room - 1;
    memcpy(to, from, bytes);
    to[bytes] = '\0';
}

void hr__web_forget_response(struct hr_web_response *response)
{
    *response =
        (struct hr_web_response){.length = HR_BYTES_UNKNOWN, .total = HR_BYTES_UNKNOWN};
}

size_t hr__web_take_header(char *line, size_t one, size_t bytes, void *user)
{
    struct hr_web_attempt *attempt = user;
    struct hr_web_response *response = &attempt->response;
    const char *value;
    size_t value_bytes;
    uint64_t number;

    assert(one == 1);
    (void)one;
    attempt->heard_ns = hr__now_ns();
    if (bytes >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* of a redirect, or the last */
        size_t header_bytes = response->header_bytes;

        hr__web_forget_response(response);
        response->header_bytes = header_bytes;
        (void)hr__curl.easy_getinfo(attempt->easy, CURLINFO_RESPONSE_CODE,
                                    &response->status);
    }
    response->header_bytes += bytes;
    if (response->header_bytes > HEADER_BYTES_MAX) {
        attempt->err =
            hr__fail(&attempt->why, HR_ERR_LIMIT,
                     "the server sends more than %zu bytes of headers", HEADER_BYTES_MAX);
        return 0;
    }
    if (is_header(line, bytes, "content-length", &value, &value_bytes)) {
        if (read_number(&value, value + value_bytes, &number))
            response->length = number;
    } else if (is_header(line, bytes, "content-range", &value, &value_bytes)) {
        read_content_range(response, value, value_bytes);
    } else if (is_header(line, bytes, "etag", &value, &value_bytes)) {
        copy_text(response->tag, sizeof response->tag, value, value_bytes);
    } else if (is_header(line, bytes, "last-modified", &value, &value_bytes)) {
        copy_text(response->modified, sizeof response->modified, value, value_bytes);
    } else if (is_header(line, bytes, "retry-after", &value, &value_bytes)) {
        if (read_number(&value, value + value_bytes, &number))
            response->retry_after_s =
                number < RETRY_AFTER_MAX_S ? number : RETRY_AFTER_MAX_S;
    }
    return bytes;
}

/* ---- answers ---- */

static struct hr_hash128
identity_of(const struct hr_web_response *response, uint64_t total)
{
    char text[sizeof response->tag + sizeof response->modified + 32];
    const char *version = response->tag[0] != '\0' ? response->tag : response->modified;
    int bytes = snprintf(text, sizeof text, "%llu %s", (unsigned long long)total,
                         total > 0 ? version : "");

    return hr__hash128(text, (size_t)bytes);
}

/* The object is now known, or was: it must be the same one. */
static enum hr_err meet_object(struct hr_web_attempt *attempt, uint64_t total)
{
    struct hr_web_request *request = attempt->request;
    struct hr_hash128 identity = identity_of(&attempt->response, total);
    void *data = NULL;

    if (request->begun) {
        if (hr__hash_equal(identity, request->identity))
            return HR_OK;
        return hr__fail(&attempt->why, HR_ERR_FORMAT, "%s changed while it was read",
                        request->uri);
    }
    request->object_bytes = total;
    request->identity = identity;
    request->lasting = attempt->response.tag[0] != '\0';
    request->need = 0;
    if (request->want == HR_WEB_RANGE) {
        struct hr_error *error = request->error;
        enum hr_err err;

        request->error = &attempt->why; /* room fills it in */
        err = request->room(request, &data);
        request->error = error;
        HR_TRY(err);
    }
    request->data = data;
    request->begun = true;
    return HR_OK;
}

static enum hr_err
lie(struct hr_web_attempt *attempt, const char *what, uint64_t got, uint64_t wanted)
{
    return hr__fail(&attempt->why, HR_ERR_FORMAT,
                    "cannot read %s: the server sends %s %llu instead of %llu",
                    attempt->request->uri, what, (unsigned long long)got,
                    (unsigned long long)wanted);
}

uint64_t hr__web_wanted_first(const struct hr_web_attempt *attempt)
{
    return attempt->request->want == HR_WEB_LOOK
               ? 0
               : attempt->request->offset + attempt->from;
}

/* 206: the range must be the one that was asked for. */
static enum hr_err check_range(struct hr_web_attempt *attempt)
{
    const struct hr_web_response *r = &attempt->response;
    const struct hr_web_request *request = attempt->request;

    if (!r->has_range)
        return hr__fail(&attempt->why, HR_ERR_FORMAT,
                        "cannot read %s: the server answers 206 without a Content-Range "
                        "that says the size",
                        request->uri);
    if (r->first != hr__web_wanted_first(attempt))
        return lie(attempt, "bytes from", r->first, hr__web_wanted_first(attempt));
    if (r->last < r->first || r->last >= r->total)
        return lie(attempt, "a range that ends at", r->last, r->total - 1);
    if (r->length != HR_BYTES_UNKNOWN && r->length != r->last - r->first + 1)
        return lie(attempt, "a length of", r->length, r->last - r->first + 1);
    return meet_object(attempt, r->total);
}

/* 200: all of the object, although a range may have been asked for. */
static enum hr_err check_whole(struct hr_web_attempt *attempt)
{
    const struct hr_web_response *r = &attempt->response;
    struct hr_web_request *request = attempt->request;
    uint64_t whole_bytes = hr__web_whole_bytes();

    if (r->length == HR_BYTES_UNKNOWN)
        return hr__fail(&attempt->why, HR_ERR_UNSUPPORTED,
                        "cannot read %s: the server does not say how long it is",
                        request->uri);
    attempt->skip = hr__web_wanted_first(attempt);
    if (attempt->skip > 0 && r->length > whole_bytes)
        return hr__fail(&attempt->why, HR_ERR_UNSUPPORTED,
                        "cannot read %s: the server does not serve ranges, and its %llu "
                        "bytes are more than HEADRACE_HTTP_WHOLE_BYTES = %llu",
                        request->uri, (unsigned long long)r->length,
                        (unsigned long long)whole_bytes);
    return meet_object(attempt, r->length);
}

enum hr_err hr__web_check_response(struct hr_web_attempt *attempt)
{
    const struct hr_web_response *r = &attempt->response;
    struct hr_web_request *request = attempt->request;
    enum hr_err err = HR_OK;

    attempt->checked = true;
    attempt->answered = r->status == 200 || r->status == 206;
    if (request->want == HR_WEB_TEXT)
        return HR_OK;
    if (r->status == 206)
        err = check_range(attempt);
    else if (r->status == 200)
        err = check_whole(attempt);
    else if (r->status == 416 && r->has_range) {
        attempt->answered = true;
        err = meet_object(attempt, r->total);
    }
    if (err == HR_OK && attempt->answered)
        request->has_ranges = r->status != 200;
    return err;
}

static bool take_text(struct hr_web_attempt *attempt, const char *data, size_t bytes)
{
    struct hr_web_request *request = attempt->request;

    if (bytes > request->bytes - request->text.length) {
        attempt->err = hr__fail(&attempt->why, HR_ERR_LIMIT,
                                "cannot read %s: the answer has more than %llu bytes",
                                request->uri, (unsigned long long)request->bytes);
        return false;
    }
    hr__str_add_bytes(&request->text, data, bytes);
    if (!hr__str_ok(&request->text))
        attempt->err = hr__fail(&attempt->why, HR_ERR_MEMORY, "out of memory");
    return attempt->err == HR_OK;
}

/* False if so much more follows than is wanted that the connection is better given up. */
static bool take_range(struct hr_web_attempt *attempt, const char *data, size_t bytes)
{
    struct hr_web_request *request = attempt->request;
    uint64_t skip = attempt->skip < bytes ? attempt->skip : bytes;
    uint64_t length = attempt->response.length, more;
    size_t left = request->need - attempt->at, use = bytes - (size_t)skip;

    attempt->skip -= skip;
    attempt->body_bytes += bytes;
    if (use > left)
        use = left;
    if (use > 0)
        memcpy(request->data + attempt->at, data + skip, use);
    attempt->at += use;
    attempt->unused += bytes - skip - use;
    if (attempt->at > request->got)
        request->got = attempt->at;
    more = length != HR_BYTES_UNKNOWN && length > attempt->body_bytes
               ? length - attempt->body_bytes
               : 0;
    return attempt->at < request->need || attempt->unused + more <= DRAIN_BYTES;
}

/* What a failed request says about it. */
static bool take_error(struct hr_web_attempt *attempt, const char *data, size_t bytes)
{
    size_t room = sizeof attempt->error_body - attempt->error_bytes;
    size_t use = bytes < room ? bytes : room;

    memcpy(attempt->error_body + attempt->error_bytes, data, use);
    attempt->error_bytes += use;
    return use == bytes;
}

size_t hr__web_take_body(char *data, size_t one, size_t bytes, void *user)
{
    struct hr_web_attempt *attempt = user;
    bool more;

    assert(one == 1);
    (void)one;
    attempt->heard_ns = hr__now_ns();
    if (!attempt->checked && hr__web_body_waits(attempt))
        return CURL_WRITEFUNC_PAUSE;
    attempt->bodies->bytes += bytes;
    hr__web_count(&hr__web_counts.bytes, bytes);
    attempt->broken = hr__fault(HR_FAULT_READ);
    if (attempt->broken)
        return 0;
    if (!attempt->checked)
        attempt->err = hr__web_check_response(attempt);
    if (attempt->err != HR_OK)
        return 0;
    if (!attempt->answered || attempt->response.status == 416)
        more = take_error(attempt, data, bytes);
    else if (attempt->request->want == HR_WEB_TEXT)
        more = take_text(attempt, data, bytes);
    else
        more = take_range(attempt, data, bytes);
    return more ? bytes : 0;
}

/* ---- how attempts end ---- */

bool hr__web_may_pass(const struct hr_web_attempt *attempt, CURLcode code)
{
    long status = attempt->response.status;

    if (attempt->stalled || attempt->broken)
        return true;
    if (status >= 300 && !attempt->answered)
        return status == 408 || status == 429 || (status >= 500 && status != 501);
    switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_OK: /* the body ended before the range did */
        return true;
    default:
        return false;
    }
}

static enum hr_err code_of(long status)
{
    return status == 404 || status == 410 ? HR_ERR_NOT_FOUND : HR_ERR_IO;
}

enum hr_err
hr__web_explain(struct hr_web_attempt *attempt, CURLcode code, uint64_t stall_ns)
{
    const struct hr_web_request *request = attempt->request;
    struct hr_error *why = &attempt->why;
    long status = attempt->response.status;
    char said[300] = "";

    if (attempt->stalled)
        return hr__fail(why, HR_ERR_IO, "cannot read %s: the server was silent for %g s",
                        request->uri, (double)stall_ns / 1e9);
    if (status != 0 && !attempt->answered && code != CURLE_TOO_MANY_REDIRECTS) {
        bool any = request->kind->explain != NULL &&
                   request->kind->explain(attempt->error_body, attempt->error_bytes, said,
                                          sizeof said);

        return hr__fail(why, code_of(status), "cannot read %s: HTTP status %ld%s%s",
                        request->uri, status, any ? ", " : "", any ? said : "");
    }
    if (code == CURLE_OK || code == CURLE_PARTIAL_FILE)
        return hr__fail(why, HR_ERR_IO, "cannot read %s: the body ended early",
                        request->uri);
    return hr__fail(why, HR_ERR_IO, "cannot read %s: %s", request->uri,
                    attempt->curl_error[0] != '\0' ? attempt->curl_error
                                                   : hr__curl.easy_strerror(code));
}

bool hr__web_is_complete(const struct hr_web_attempt *attempt, CURLcode code)
{
    const struct hr_web_request *request = attempt->request;

    if (!attempt->answered || attempt->err != HR_OK)
        return false;
    if (request->want == HR_WEB_TEXT)
        return code == CURLE_OK;
    return attempt->at == request->need;
}
