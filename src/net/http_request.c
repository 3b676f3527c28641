/*
 * net/http_request.c - one request and its answer, in a loop of its own.
 */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "net/address.h"
#include "net/event.h"
#include "net/evhttp.h"
#include "net/http.h"
#include "net/sigpipe.h"

#define ANSWER_MAX (64 << 20)
#define MESSAGE_MAX 400 /* of an error's answer that is shown */

struct exchange {
    struct hr_str *body;
    int status; /* 0: there was no answer */
    bool failed, timed_out;
    struct event_base *base;
};

static void on_answer(struct evhttp_request *request, void *user)
{
    struct exchange *x = user;

    if (request != NULL) {
        struct evbuffer *in = hr__evhttp.evhttp_request_get_input_buffer(request);
        char piece[4096];
        int got;

        x->status = hr__evhttp.evhttp_request_get_response_code(request);
        while ((got = hr__evhttp.evbuffer_remove(in, piece, sizeof piece)) > 0)
            hr__str_add_bytes(x->body, piece, (size_t)got);
    }
    hr__event.base_loopbreak(x->base);
}

static void on_error(enum evhttp_request_error error, void *user)
{
    struct exchange *x = user;

    x->failed = true;
    x->timed_out = error == EVREQ_HTTP_TIMEOUT;
}

static void on_time(evutil_socket_t fd, short what, void *user)
{
    struct exchange *x = user;

    (void)fd;
    (void)what;
    x->timed_out = true;
    hr__event.base_loopbreak(x->base);
}

/* Takes over nothing; the connection owns the request once it is made. */
static enum hr_err
send_request(struct evhttp_connection *connection, struct exchange *x,
             const char *address, const struct hr_token *token, const char *path,
             const char *body, struct hr_error *reterr)
{
    struct evhttp_request *request = hr__evhttp.evhttp_request_new(on_answer, x);
    struct evkeyvalq *headers;
    char bearer[HR_FRAME_TOKEN_MAX + 16];
    int failed;

    if (request == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__evhttp.evhttp_request_set_error_cb(request, on_error);
    headers = hr__evhttp.evhttp_request_get_output_headers(request);
    failed = hr__evhttp.evhttp_add_header(headers, "Host", address) |
             hr__evhttp.evhttp_add_header(headers, "Connection", "close");
    if (token->bytes > 0) {
        snprintf(bearer, sizeof bearer, "Bearer %s", token->text);
        failed |= hr__evhttp.evhttp_add_header(headers, "Authorization", bearer);
    }
    if (body != NULL) {
        failed |=
            hr__evhttp.evhttp_add_header(headers, "Content-Type", "application/json");
        failed |= hr__evhttp.evbuffer_add(
            hr__evhttp.evhttp_request_get_output_buffer(request), body, strlen(body));
    }
    failed |= hr__evhttp.evhttp_make_request(
        connection, request, body != NULL ? EVHTTP_REQ_POST : EVHTTP_REQ_GET, path);
    return failed == 0 ? HR_OK
                       : hr__fail(reterr, HR_ERR_IO, "cannot connect to %s", address);
}

static enum hr_err judge(const struct exchange *x, const char *address, const char *path,
                         struct hr_error *reterr)
{
    const char *text = hr__str_text(x->body);
    size_t length = strcspn(text, "\n");
    enum hr_err code = x->status == 401   ? HR_ERR_DENIED
                       : x->status == 404 ? HR_ERR_NOT_FOUND
                       : x->status < 500  ? HR_ERR_ARGUMENT
                                          : HR_ERR_STATE;

    if (x->timed_out && x->status == 0)
        return hr__fail(reterr, HR_ERR_TIMEOUT, "%s does not answer in time", address);
    if (x->status == 0)
        return hr__fail(reterr, HR_ERR_IO,
                        "cannot connect to %s; the dispatcher there must have been "
                        "started with --control",
                        address);
    if (!hr__str_ok(x->body))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (x->status == 200)
        return HR_OK;
    return hr__fail(reterr, code, "%s%s answers %d: %.*s", address, path, x->status,
                    (int)(length < MESSAGE_MAX ? length : MESSAGE_MAX), text);
}

static enum hr_err
run(struct exchange *x, const char *host, uint16_t port, const char *address,
    const struct hr_token *token, const char *path, const char *body, uint64_t timeout_ns,
    struct hr_error *reterr)
{
    const struct timeval limit = {(time_t)(timeout_ns / 1000000000),
                                  (suseconds_t)(timeout_ns % 1000000000 / 1000)};
    struct evhttp_connection *connection =
        hr__evhttp.evhttp_connection_base_new(x->base, NULL, host, port);
    struct event *timer = hr__event.new(x->base, -1, 0, on_time, x);
    enum hr_err code;

    if (connection == NULL || timer == NULL || hr__event.add(timer, &limit) != 0) {
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    } else {
        hr__evhttp.evhttp_connection_set_max_body_size(connection, ANSWER_MAX);
        code = send_request(connection, x, address, token, path, body, reterr);
        if (code == HR_OK) {
            hr__event.base_loop(x->base, 0);
            code = judge(x, address, path, reterr);
        }
    }
    if (connection != NULL)
        hr__evhttp.evhttp_connection_free(connection);
    if (timer != NULL)
        hr__event.free(timer);
    return code;
}

enum hr_err hr__http_request(const char *address, const struct hr_token *token,
                             const char *path, const char *body, uint64_t timeout_ns,
                             struct hr_str *ret_body, struct hr_error *reterr)
{
    struct exchange x = {.body = ret_body};
    struct sockaddr_storage to;
    char host[HR_NET_ADDRESS_MAX];
    socklen_t bytes;
    uint16_t port;
    struct hr_pipe_guard guard;
    enum hr_err code;

    HR_TRY(hr__address_parse(address, &to, &bytes, reterr));
    HR_TRY(hr__evhttp_load(reterr));
    hr__address_parts(&to, bytes, host, sizeof host, &port);
    x.base = hr__event.base_new();
    if (x.base == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "cannot make an event loop");
    hr__pipe_guard(&guard);
    code = run(&x, host, port, address, token, path, body, timeout_ns, reterr);
    hr__pipe_unguard(&guard);
    hr__event.base_free(x.base);
    return code;
}
