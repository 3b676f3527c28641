/*
 * net/address.c - see address.h.
 */
#include "net/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "net/net.h"

/* Splits the text at its last colon; false if that gives no host and port. */
static bool split(const char *text, char *host, const char **ret_port)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;

    if (length == 0 || length >= HR_NET_ADDRESS_MAX ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 ||
        colon[1] == '\0' || strtoul(colon + 1, NULL, 10) > UINT16_MAX)
        return false;
    if (text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    *ret_port = colon + 1;
    return length > 0;
}

enum hr_err hr__address_check(const char *text, struct hr_error *reterr)
{
    char host[HR_NET_ADDRESS_MAX];
    const char *port;

    if (split(text, host, &port))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "'%s' is not an address: write HOST:PORT, as 127.0.0.1:7070", text);
}

/* `flags`: further ones for getaddrinfo(). */
static enum hr_err
parse(const char *text, int flags, struct sockaddr_storage *ret_address,
      socklen_t *ret_bytes, struct hr_error *reterr)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *found = NULL;
    char host[HR_NET_ADDRESS_MAX];
    const char *port;
    int failed;

    if (!split(text, host, &port))
        return hr__address_check(text, reterr);
    failed = getaddrinfo(host, port, &hints, &found);
    if (failed != 0)
        return hr__fail(reterr, HR_ERR_NOT_FOUND, "cannot look up '%s': %s", text,
                        gai_strerror(failed));
    memcpy(ret_address, found->ai_addr, found->ai_addrlen);
    *ret_bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return HR_OK;
}

enum hr_err hr__address_parse(const char *text, struct sockaddr_storage *ret_address,
                              socklen_t *ret_bytes, struct hr_error *reterr)
{
    return parse(text, 0, ret_address, ret_bytes, reterr);
}

enum hr_err
hr__address_parse_number(const char *text, struct sockaddr_storage *ret_address,
                         socklen_t *ret_bytes, struct hr_error *reterr)
{
    return parse(text, AI_NUMERICHOST, ret_address, ret_bytes, reterr);
}

void hr__address_parts(const struct sockaddr_storage *address, socklen_t bytes,
                       char *ret_host, size_t room, uint16_t *ret_port)
{
    char port[NI_MAXSERV] = "0";

    ret_host[0] = '\0';
    (void)getnameinfo((const struct sockaddr *)address, bytes, ret_host, (socklen_t)room,
                      port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    *ret_port = (uint16_t)strtoul(port, NULL, 10);
}

void hr__address_print(const struct sockaddr_storage *address, socklen_t bytes, char *to,
                       size_t room)
{
    char host[NI_MAXHOST], port[NI_MAXSERV];

    to[0] = '\0';
    if (getnameinfo((const struct sockaddr *)address, bytes, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    snprintf(to, room, address->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

bool hr__address_is_same_host(const struct sockaddr_storage *own,
                              const struct sockaddr_storage *peer)
{
    const struct sockaddr_in *own4 = (const void *)own, *peer4 = (const void *)peer;
    const struct sockaddr_in6 *own6 = (const void *)own, *peer6 = (const void *)peer;

    if (own->ss_family != peer->ss_family)
        return false;
    if (own->ss_family == AF_INET)
        return own4->sin_addr.s_addr == peer4->sin_addr.s_addr ||
               ntohl(own4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return own->ss_family == AF_INET6 &&
           memcmp(&own6->sin6_addr, &peer6->sin6_addr, sizeof own6->sin6_addr) == 0;
}
