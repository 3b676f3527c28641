/*
 * net/token.h - the secret that the processes of a service share.
 *
 * The side that connects sends it in an AUTH frame before anything else; the listener
 * compares it. It travels as it is: on a network that others can read, TLS has to protect
 * it (docs/service.md).
 */
#ifndef HR_NET_TOKEN_H
#define HR_NET_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "headrace/base.h"
#include "wire/frame.h"

#define HR_TOKEN_MIN 16u /* bytes */

struct hr_token {
    size_t bytes; /* 0: there is none */
    char text[HR_FRAME_TOKEN_MAX + 1];
};

/* Reads it from the file `path`, or if that is NULL from the file that the environment
 * variable HEADRACE_TOKEN_FILE names, or from HEADRACE_TOKEN; there may be none. White
 * space around it is ignored. HR_ERR_IO, HR_ERR_NOT_FOUND, HR_ERR_MEMORY; HR_ERR_FORMAT
 * unless it has 16 to 255 printable characters without spaces. Messages do not show it.
 */
HR_CHECK enum hr_err
hr__token_load(const char *path, struct hr_token *ret_token, struct hr_error *reterr);

/* The token that a text is, without the white space around it; `from` is named in
 * messages. HR_ERR_FORMAT. */
HR_CHECK enum hr_err hr__token_take(const char *text, const char *from,
                                    struct hr_token *ret_token, struct hr_error *reterr);

/* In a time that does not depend on where they differ. */
bool hr__token_is(const struct hr_token *token, const void *text, size_t bytes);

/* HR_ERR_ARGUMENT if somebody beyond this machine could connect to `listen`
 * ("host:port") without a token, unless `insecure`. HR_ERR_NOT_FOUND. */
HR_CHECK enum hr_err
hr__token_check_listen(const struct hr_token *token, const char *listen, bool insecure,
                       struct hr_error *reterr);

#endif
