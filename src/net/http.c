/*
 * net/http.c - the server: evhttp in the loop of a net.
 *
 * evhttp of libevent 2.1 has no limit of connections. So each gets a bufferevent of which
 * this file holds a second reference: when evhttp has let go of it, which shows as a
 * missing callback, the connection is gone; while there are too many, the listener
 * rests.
 */
#include "net/http.h"

#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/library.h"
#include "net/evhttp.h"
#include "net/net_internal.h"

#define CONNECTIONS_MAX 64u
#define HEAD_MAX 8192
#define BODY_MAX 65536
#define SILENT_S 5

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

struct hr_http {
    struct hr_net *net;
    struct hr_http_options options;
    struct evhttp *server;
    struct evconnlistener *listener;
    struct bufferevent *connections[CONNECTIONS_MAX];
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
        if (is_gone(http->connections[i])) {
            hr__evhttp.bufferevent_decref(http->connections[i]);
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
    http->connections[http->count++] = connection;
    if (http->count == CONNECTIONS_MAX && http->listener != NULL) {
        hr__evhttp.evconnlistener_disable(http->listener);
        http->rests = true;
    }
    return connection;
}

void hr__http_tick(struct hr_http *http)
{
    if (http == NULL)
        return;
    collect(http);
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
    const char *path =
        hr__evhttp.evhttp_uri_get_path(hr__evhttp.evhttp_request_get_evhttp_uri(request));
    struct evbuffer *in = hr__evhttp.evhttp_request_get_input_buffer(request);
    size_t bytes = hr__evhttp.evbuffer_get_length(in);
    struct hr_http_request asked = {
        .post = hr__evhttp.evhttp_request_get_command(request) == EVHTTP_REQ_POST,
        .path = path != NULL && path[0] != '\0' ? path : "/",
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

static void on_request(struct evhttp_request *request, void *user)
{
    struct hr_http *http = user;
    struct hr_http_answer answer = {.status = 200, .type = "application/json"};
    struct evbuffer *out = hr__evhttp.evhttp_request_get_output_buffer(request);
    struct evkeyvalq *headers = hr__evhttp.evhttp_request_get_output_headers(request);

    hr__str_init(&answer.body);
    hr__net_lock(http->net);
    answer_request(http, request, &answer);
    hr__net_unlock(http->net);
    if (!hr__str_ok(&answer.body) ||
        hr__evhttp.evbuffer_add(out, hr__str_text(&answer.body), answer.body.length) != 0)
        answer.status = 503;
    (void)hr__evhttp.evhttp_add_header(headers, "Content-Type", answer.type);
    (void)hr__evhttp.evhttp_add_header(headers, "Cache-Control", "no-store");
    if (answer.status == 401)
        (void)hr__evhttp.evhttp_add_header(headers, "WWW-Authenticate", "Bearer");
    hr__evhttp.evhttp_send_reply(request, answer.status, NULL, NULL);
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
    http->server = hr__evhttp.evhttp_new(net->base);
    if (http->server == NULL) {
        hr__free(http);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    hr__evhttp.evhttp_set_gencb(http->server, on_request, http);
    hr__evhttp.evhttp_set_bevcb(http->server, on_connection, http);
    hr__evhttp.evhttp_set_timeout(http->server, SILENT_S);
    hr__evhttp.evhttp_set_max_headers_size(http->server, HEAD_MAX);
    hr__evhttp.evhttp_set_max_body_size(http->server, BODY_MAX);
    hr__evhttp.evhttp_set_allowed_methods(http->server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD |
                                                            EVHTTP_REQ_POST);
    code = listen_at(http, reterr);
    if (code != HR_OK) {
        hr__http_close(http);
        return code;
    }
    *ret_http = http;
    return HR_OK;
}

void hr__http_close(struct hr_http *http)
{
    if (http == NULL)
        return;
    hr__evhttp.evhttp_free(http->server);
    for (size_t i = 0; i < http->count; i++)
        hr__evhttp.bufferevent_decref(http->connections[i]);
    hr__free(http);
}

const char *hr__http_address(const struct hr_http *http)
{
    return http->address;
}
