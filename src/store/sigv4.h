/*
 * store/sigv4.h - AWS Signature Version 4 of a GET with an empty body.
 */
#ifndef HR_STORE_SIGV4_H
#define HR_STORE_SIGV4_H

#include "core/str.h"

struct hr_sigv4 {
    const char *key, *secret, *token; /* token: "" for none */
    const char *region;
    const char *host;  /* as sent: with the port unless it is the usual one */
    const char *path;  /* percent-encoded */
    const char *query; /* percent-encoded, sorted by name; "" for none */
    uint64_t wall_ns;  /* since 1970 */
};

/* Appends the headers to send besides Host, as lines "name: value\n". */
void hr__sigv4_headers(const struct hr_sigv4 *request, struct hr_str *headers);

#endif
