/*
 * net/address.h - "host:port" as text and as a socket's address.
 */
#ifndef HR_NET_ADDRESS_H
#define HR_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "headrace/base.h"

/* HR_ERR_ARGUMENT for a text that is no "host:port" or "[v6]:port", ports above 65535
 * included. */
HR_CHECK enum hr_err hr__address_check(const char *text, struct hr_error *reterr);

/* Looks "host:port" or "[v6]:port" up; the host may be a name, which may take long
 * (lookup.h). HR_ERR_ARGUMENT for a wrong form, HR_ERR_NOT_FOUND for an unknown host. */
HR_CHECK enum hr_err
hr__address_parse(const char *text, struct sockaddr_storage *ret_address,
                  socklen_t *ret_bytes, struct hr_error *reterr);

/* The same without a lookup: HR_ERR_NOT_FOUND for a name. */
HR_CHECK enum hr_err
hr__address_parse_number(const char *text, struct sockaddr_storage *ret_address,
                         socklen_t *ret_bytes, struct hr_error *reterr);

/* Its numeric host, without brackets, and its port. */
void hr__address_parts(const struct sockaddr_storage *address, socklen_t bytes,
                       char *ret_host, size_t room, uint16_t *ret_port);

/* Writes "host:port" with a numeric host. */
void hr__address_print(const struct sockaddr_storage *address, socklen_t bytes, char *to,
                       size_t room);

/* Whether the addresses of the two ends of a connection are of one host. */
bool hr__address_is_same_host(const struct sockaddr_storage *own,
                              const struct sockaddr_storage *peer);

#endif
