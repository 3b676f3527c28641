/*
 * net/evhttp.h - the functions of libevent's HTTP, which are loaded when needed.
 */
#ifndef HR_NET_EVHTTP_H
#define HR_NET_EVHTTP_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include "headrace/base.h"

/* Of a function F(name): one member for each that is used. */
#define HR_EVHTTP_FUNCTIONS(F)                                                           \
    F(bufferevent_decref)                                                                \
    F(bufferevent_getcb)                                                                 \
    F(bufferevent_getfd)                                                                 \
    F(bufferevent_incref)                                                                \
    F(bufferevent_socket_new)                                                            \
    F(evbuffer_add)                                                                      \
    F(evbuffer_free)                                                                     \
    F(evbuffer_get_length)                                                               \
    F(evbuffer_new)                                                                      \
    F(evbuffer_remove)                                                                   \
    F(evconnlistener_disable)                                                            \
    F(evconnlistener_enable)                                                             \
    F(evhttp_accept_socket_with_handle)                                                  \
    F(evhttp_add_header)                                                                 \
    F(evhttp_bound_socket_get_listener)                                                  \
    F(evhttp_connection_base_new)                                                        \
    F(evhttp_connection_free)                                                            \
    F(evhttp_connection_get_bufferevent)                                                 \
    F(evhttp_connection_set_closecb)                                                     \
    F(evhttp_connection_set_max_body_size)                                               \
    F(evhttp_find_header)                                                                \
    F(evhttp_free)                                                                       \
    F(evhttp_make_request)                                                               \
    F(evhttp_new)                                                                        \
    F(evhttp_request_get_command)                                                        \
    F(evhttp_request_get_connection)                                                     \
    F(evhttp_request_get_evhttp_uri)                                                     \
    F(evhttp_request_get_input_buffer)                                                   \
    F(evhttp_request_get_input_headers)                                                  \
    F(evhttp_request_get_output_buffer)                                                  \
    F(evhttp_request_get_output_headers)                                                 \
    F(evhttp_request_get_response_code)                                                  \
    F(evhttp_request_new)                                                                \
    F(evhttp_request_set_error_cb)                                                       \
    F(evhttp_send_reply)                                                                 \
    F(evhttp_send_reply_chunk_with_cb)                                                   \
    F(evhttp_send_reply_end)                                                             \
    F(evhttp_send_reply_start)                                                           \
    F(evhttp_set_allowed_methods)                                                        \
    F(evhttp_set_bevcb)                                                                  \
    F(evhttp_set_gencb)                                                                  \
    F(evhttp_set_max_body_size)                                                          \
    F(evhttp_set_max_headers_size)                                                       \
    F(evhttp_set_timeout)                                                                \
    F(evhttp_uri_get_path)                                                               \
    F(evhttp_uri_get_query)

#define HR_EVHTTP_MEMBER(name_) __typeof__(name_) *name_;
struct hr_evhttp {
    HR_EVHTTP_FUNCTIONS(HR_EVHTTP_MEMBER)
};
#undef HR_EVHTTP_MEMBER

extern struct hr_evhttp hr__evhttp;

/* Fills hr__evhttp and hr__event. HR_ERR_UNSUPPORTED. Thread-safe. */
HR_CHECK enum hr_err hr__evhttp_load(struct hr_error *reterr);

#endif
