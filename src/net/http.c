/*
 * net/http.c - the server: evhttp in a loop of its own.
 *
 * evhttp of libevent 2.1 has no limit of connections. So each gets a bufferevent of which
 * this file holds a second reference: when evhttp has let go of it, which shows as a
 * missing callback, the connection is gone; while there are too many, the listener
 * rests. evhttp's timeouts begin again with each byte, so while it rests this file closes
 * connections that have not sent a whole request for as long.
 */
#include "net/http.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/library.h"
#include "core/thread.h"
#include "net/evhttp.h"
#include "net/net_internal.h"

#define CONNECTIONS_MAX 64u
#define HEAD_MAX 8192
#define BODY_MAX 65536
#define SILENT_S 5
#define LOOK_US 20000 /* between looks at whether connections are gone */

struct hr_evhttp hr__evhttp;

#define SYMBOL(name_) {#name_, &hr__evhttp.name_},
static const struct hr_symbol symbols[] = {HR_EVHTTP_FUNCTIONS(SYMBOL)};
#undef SYMBOL

static struct hr_library library =
    HR_LIBRARY("libevent_extra-2.1.so.7", "libevent-extra-2.1-7", symbols);

enum hr_err hr__evhttp_load(struct hr_error *reterr)
{
    HR_TRY(hr__event_load(reterr));
    return hr__library_load(&library, reterr);
}

struct connection {
    struct bufferevent *events; /* a reference */
    uint64_t since_ns;          /* its last request, or when it came */
    bool shut;
};

struct hr_http {
    struct hr_net *net;
    struct hr_http_options options;
    pthread_t thread;
    bool started;
    int stop_fd; /* readable: the loop ends */
    struct event_base *base;
    struct event *on_stop, *on_look;
    struct evhttp *server;
    struct evconnlistener *listener;
    struct connection connections[CONNECTIONS_MAX];
    size_t count;
    bool rests; /* the listener is disabled */
    char address[HR_NET_ADDRESS_MAX];
};

/* ---- connections ---- */

static bool is_gone(struct bufferevent *connection)
{
    bufferevent_data_cb read = NULL, write = NULL;
    bufferevent_event_cb event = NULL;
    void *user = NULL;

    hr__evhttp.bufferevent_getcb(connection, &read, &write, &event, &user);
    return read == NULL && write == NULL && event == NULL;
}

static void collect(struct hr_http *http)
{
    for (size_t i = http->count; i-- > 0;)
        if (is_gone(http->connections[i].events)) {
            hr__evhttp.bufferevent_decref(http->connections[i].events);
            http->connections[i] = http->connections[--http->count];
        }
}

/* The bufferevent of a new connection. NULL: evhttp makes one itself, which is not
 * counted. */
static struct bufferevent *on_connection(struct event_base *base, void *user)
{
    struct hr_http *http = user;
    struct bufferevent *connection;

    if (http->count == CONNECTIONS_MAX)
        return NULL;
    connection = hr__evhttp.bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (connection == NULL)
        return NULL;
    hr__evhttp.bufferevent_incref(connection);
    http->connections[http->count++] =
        (struct connection){.events = connection, .since_ns = hr__now_ns()};
    if (http->count == CONNECTIONS_MAX && http->listener != NULL) {
        hr__evhttp.evconnlistener_disable(http->listener);
        http->rests = true;
    }
    return connection;
}

/* Ends connections that have taken a place for SILENT_S since their last request, such as
 * those that send or read a byte now and then. */
static void end_slow(struct hr_http *http)
{
    uint64_t now = hr__now_ns();

    for (size_t i = 0; i < http->count; i++) {
        struct connection *c = &http->connections[i];

        if (c->shut || now - c->since_ns < SILENT_S * 1000000000ull)
            continue;
        c->shut = true; /* evhttp sees its end */
        (void)shutdown(hr__evhttp.bufferevent_getfd(c->events), SHUT_RDWR);
    }
}

/* Resumes accepting when connections are gone. */
static void on_look(evutil_socket_t fd, short what, void *user)
{
    struct hr_http *http = user;

    (void)fd;
    (void)what;
    collect(http);
    if (http->rests)
        end_slow(http);
    if (http->rests && http->count < CONNECTIONS_MAX &&
        hr__evhttp.evconnlistener_enable(http->listener) == 0)
        http->rests = false;
}

/* ---- requests ---- */

static void fail(struct hr_http_answer *answer, int status, const char *message)
{
    answer->status = status;
    hr__str_addf(&answer->body, "{\"error\":\"%s\"}\n", message);
}

static bool
may_pass(const struct hr_http *http, struct evhttp_request *request, const char *path)
{
    const struct hr_token *token = &http->options.token;
    const char *given = hr__evhttp.evhttp_find_header(
        hr__evhttp.evhttp_request_get_input_headers(request), "Authorization");

    if (token->bytes == 0)
        return true;
    for (const char *const *open = http->options.open; *open != NULL; open++)
        if (strcmp(path, *open) == 0)
            return true;
    return given != NULL && strncmp(given, "Bearer ", 7) == 0 &&
           hr__token_is(token, given + 7, strlen(given + 7));
}

/* A request whose head evhttp has read. */
static void answer_request(struct hr_http *http, struct evhttp_request *request,
                           struct hr_http_answer *answer)
{
    const struct evhttp_uri *uri = hr__evhttp.evhttp_request_get_evhttp_uri(request);
    const char *path = hr__evhttp.evhttp_uri_get_path(uri);
    const char *query = hr__evhttp.evhttp_uri_get_query(uri);
    struct evbuffer *in = hr__evhttp.evhttp_request_get_input_buffer(request);
    size_t bytes = hr__evhttp.evbuffer_get_length(in);
    struct hr_http_request asked = {
        .post = hr__evhttp.evhttp_request_get_command(request) == EVHTTP_REQ_POST,
        .path = path != NULL && path[0] != '\0' ? path : "/",
        .query = query != NULL ? query : "",
        .body_bytes = bytes};
    char *body;

    if (!may_pass(http, request, asked.path)) {
        fail(answer, 401, "a token is needed: send it as Authorization: Bearer");
        return;
    }
    body = hr__calloc(1, bytes + 1);
    if (body == NULL) {
        fail(answer, 503, "out of memory");
        return;
    }
    hr__evhttp.evbuffer_remove(in, body, bytes);
    asked.body = body;
    http->options.answer(http->options.user, &asked, answer);
    hr__free(body);
}

/* ---- answers in pieces ---- */

/* An answer of which pieces are missing. */
struct rest {
    struct hr_http *http;
    struct evhttp_request *request;
    hr_http_more_fn *more; /* NULL: all were made */
    struct hr_http_place place;
};

/* The connection ends before the answer. evhttp has left the request to us if it knows no
 * connection any more. */
static void on_end(struct evhttp_connection *connection, void *user)
{
    struct rest *rest = user;

    (void)connection;
    if (hr__evhttp.evhttp_request_get_connection(rest->request) == NULL)
        hr__evhttp.evhttp_send_reply_end(rest->request); /* frees it */
    hr__free(rest);
}

static void end_reply(struct rest *rest)
{
    struct evhttp_connection *connection =
        hr__evhttp.evhttp_request_get_connection(rest->request);

    hr__evhttp.evhttp_connection_set_closecb(connection, NULL, NULL);
    hr__evhttp.evhttp_send_reply_end(rest->request);
    hr__free(rest);
}

static void on_sent(struct evhttp_connection *connection, void *user);

/* A text that is not empty. Without memory the answer ends here, and is no JSON. */
static void send_piece(struct rest *rest, const struct hr_str *text)
{
    struct evbuffer *piece = hr__evhttp.evbuffer_new();
    bool ok = piece != NULL && hr__str_ok(text) &&
              hr__evhttp.evbuffer_add(piece, hr__str_text(text), text->length) == 0;

    if (ok)
        hr__evhttp.evhttp_send_reply_chunk_with_cb(rest->request, piece, on_sent, rest);
    else
        end_reply(rest);
    if (piece != NULL)
        hr__evhttp.evbuffer_free(piece);
}

/* The system has taken all so far. */
static void on_sent(struct evhttp_connection *connection, void *user)
{
    struct rest *rest = user;
    struct hr_http *http = rest->http;
    struct hr_str text;

    (void)connection;
    if (rest->more == NULL) {
        end_reply(rest);
        return;
    }
    hr__str_init(&text);
    hr__net_lock_first(http->net);
    if (!rest->more(http->options.user, &rest->place, &text))
        rest->more = NULL;
    hr__net_unlock(http->net);
    send_piece(rest, &text);
    hr__str_finish(&text);
}

/* Sends the first piece. False if it cannot, and nothing was sent. */
static bool begin_reply(struct hr_http *http, struct evhttp_request *request,
                        const struct hr_http_answer *answer)
{
    struct rest *rest = hr__calloc(1, sizeof *rest);

    if (rest == NULL || !hr__str_ok(&answer->body)) {
        hr__free(rest);
        return false;
    }
    *rest = (struct rest){http, request, answer->more, answer->place};
    hr__evhttp.evhttp_connection_set_closecb(
        hr__evhttp.evhttp_request_get_connection(request), on_end, rest);
    hr__evhttp.evhttp_send_reply_start(request, answer->status, NULL);
    send_piece(rest, &answer->body);
    return true;
}

/* ---- the server ---- */

/* All at once; without memory an error. */
static void reply(struct evhttp_request *request, const struct hr_http_answer *answer)
{
    struct evbuffer *out = hr__evhttp.evhttp_request_get_output_buffer(request);
    bool head = hr__evhttp.evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
    int status = answer->status;

    if (answer->more != NULL || !hr__str_ok(&answer->body) ||
        (!head && hr__evhttp.evbuffer_add(out, hr__str_text(&answer->body),
                                          answer->body.length) != 0))
        status = 503;
    hr__evhttp.evhttp_send_reply(request, status, NULL, NULL);
}

static void note_request(struct hr_http *http, struct evhttp_request *request)
{
    const struct bufferevent *events = hr__evhttp.evhttp_connection_get_bufferevent(
        hr__evhttp.evhttp_request_get_connection(request));

    for (size_t i = 0; i < http->count; i++)
        if (http->connections[i].events == events)
            http->connections[i].since_ns = hr__now_ns();
}

static void on_request(struct evhttp_request *request, void *user)
{
    struct hr_http *http = user;
    struct hr_http_answer answer = {.status = 200, .type = "application/json"};
    struct evkeyvalq *headers = hr__evhttp.evhttp_request_get_output_headers(request);

    note_request(http, request);
    hr__str_init(&answer.body);
    hr__net_lock_first(http->net);
    answer_request(http, request, &answer);
    if (answer.more != NULL &&
        !answer.more(http->options.user, &answer.place, &answer.body))
        answer.more = NULL;
    hr__net_unlock(http->net);
    if (hr__evhttp.evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
        answer.more = NULL;  /* it has no body */
    if (answer.more != NULL) /* HTTP/1.0 has no chunks: the end of the body */
        (void)hr__evhttp.evhttp_add_header(headers, "Connection", "close");
    (void)hr__evhttp.evhttp_add_header(headers, "Content-Type", answer.type);
    (void)hr__evhttp.evhttp_add_header(headers, "Cache-Control", "no-store");
    if (answer.status == 401)
        (void)hr__evhttp.evhttp_add_header(headers, "WWW-Authenticate", "Bearer");
    if (answer.more == NULL || !begin_reply(http, request, &answer))
        reply(request, &answer);
    hr__str_finish(&answer.body);
}

/* ---- its life ---- */

static enum hr_err listen_at(struct hr_http *http, struct hr_error *reterr)
{
    struct evhttp_bound_socket *bound;
    int fd;

    HR_TRY(hr__net_open_listener(http->options.listen, &fd, http->address,
                                 sizeof http->address, reterr));
    bound = hr__evhttp.evhttp_accept_socket_with_handle(http->server, fd);
    if (bound == NULL) {
        close(fd);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    http->listener = hr__evhttp.evhttp_bound_socket_get_listener(bound);
    return HR_OK;
}

static void on_stop(evutil_socket_t fd, short what, void *user)
{
    struct hr_http *http = user;

    (void)fd;
    (void)what;
    hr__event.base_loopbreak(http->base);
}

static enum hr_err open_loop(struct hr_http *http, struct hr_error *reterr)
{
    const struct timeval look = {0, LOOK_US};

    http->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (http->stop_fd < 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot make an eventfd");
    http->base = hr__event.base_new();
    if (http->base == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "cannot make an event loop");
    http->on_stop = hr__event.new(http->base, http->stop_fd, EV_READ, on_stop, http);
    http->on_look = hr__event.new(http->base, -1, EV_PERSIST, on_look, http);
    http->server = hr__evhttp.evhttp_new(http->base);
    if (http->on_stop == NULL || http->on_look == NULL || http->server == NULL ||
        hr__event.add(http->on_stop, NULL) != 0 ||
        hr__event.add(http->on_look, &look) != 0)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

static void *serve(void *user)
{
    hr__event.base_loop(((struct hr_http *)user)->base, 0);
    return NULL;
}

static enum hr_err open_server(struct hr_http *http, struct hr_error *reterr)
{
    HR_TRY(open_loop(http, reterr));
    hr__evhttp.evhttp_set_gencb(http->server, on_request, http);
    hr__evhttp.evhttp_set_bevcb(http->server, on_connection, http);
    hr__evhttp.evhttp_set_timeout(http->server, SILENT_S);
    hr__evhttp.evhttp_set_max_headers_size(http->server, HEAD_MAX);
    hr__evhttp.evhttp_set_max_body_size(http->server, BODY_MAX);
    hr__evhttp.evhttp_set_allowed_methods(http->server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD |
                                                            EVHTTP_REQ_POST);
    return listen_at(http, reterr);
}

enum hr_err hr__http_open(struct hr_net *net, const struct hr_http_options *options,
                          struct hr_http **ret_http, struct hr_error *reterr)
{
    struct hr_http *http;
    enum hr_err code;

    HR_TRY(hr__evhttp_load(reterr));
    http = hr__calloc(1, sizeof *http);
    if (http == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    http->net = net;
    http->options = *options;
    http->stop_fd = -1;
    code = open_server(http, reterr);
    if (code != HR_OK) {
        hr__http_close(http);
        return code;
    }
    *ret_http = http;
    return HR_OK;
}

enum hr_err hr__http_start(struct hr_http *http, struct hr_error *reterr)
{
    HR_TRY(hr__thread_start(&http->thread, "headrace-http", serve, http, reterr));
    http->started = true;
    return HR_OK;
}

void hr__http_stop(struct hr_http *http)
{
    const uint64_t one = 1;

    if (http == NULL || !http->started)
        return;
    http->started = false;
    (void)!write(http->stop_fd, &one, sizeof one);
    pthread_join(http->thread, NULL);
}

void hr__http_close(struct hr_http *http)
{
    if (http == NULL)
        return;
    hr__http_stop(http);
    if (http->server != NULL)
        hr__evhttp.evhttp_free(http->server);
    for (size_t i = 0; i < http->count; i++)
        hr__evhttp.bufferevent_decref(http->connections[i].events);
    if (http->on_look != NULL)
        hr__event.free(http->on_look);
    if (http->on_stop != NULL)
        hr__event.free(http->on_stop);
    if (http->base != NULL)
        hr__event.base_free(http->base);
    if (http->stop_fd >= 0)
        close(http->stop_fd);
    hr__free(http);
}

const char *hr__http_address(const struct hr_http *http)
{
    return http->address;
}
