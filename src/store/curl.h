/*
 * store/curl.h - libcurl's functions, which are loaded when a request needs them.
 */
#ifndef HR_STORE_CURL_H
#define HR_STORE_CURL_H

#include <curl/curl.h>

#include "headrace/base.h"

/* Of a function F(name): one member for each that is used, named without `curl_`. */
#define HR_CURL_FUNCTIONS(F)                                                             \
    F(easy_cleanup)                                                                      \
    F(easy_getinfo)                                                                      \
    F(easy_init)                                                                         \
    F(easy_pause)                                                                        \
    F(easy_reset)                                                                        \
    F(easy_setopt)                                                                       \
    F(easy_strerror)                                                                     \
    F(global_init)                                                                       \
    F(multi_add_handle)                                                                  \
    F(multi_cleanup)                                                                     \
    F(multi_info_read)                                                                   \
    F(multi_init)                                                                        \
    F(multi_perform)                                                                     \
    F(multi_poll)                                                                        \
    F(multi_remove_handle)                                                               \
    F(multi_setopt)                                                                      \
    F(multi_wakeup)                                                                      \
    F(slist_append)                                                                      \
    F(slist_free_all)                                                                    \
    F(version_info)

#define HR_CURL_MEMBER(name_) __typeof__(curl_##name_) *name_;
struct hr_curl {
    HR_CURL_FUNCTIONS(HR_CURL_MEMBER)
};
#undef HR_CURL_MEMBER

extern struct hr_curl hr__curl;

/* Fills hr__curl. HR_ERR_UNSUPPORTED if there is no libcurl, or an older one than 7.85.
 * Thread-safe. */
HR_CHECK enum hr_err hr__curl_load(struct hr_error *reterr);

#endif
