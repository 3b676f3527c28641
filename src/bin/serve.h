/*
 * serve.h - running a process of the service until Ctrl-C or SIGTERM.
 */
#ifndef BIN_SERVE_H
#define BIN_SERVE_H

#include "headrace/service.h"

/* Lets the process open `connections` files and some more, as far as the system allows. A
 * cli_exit code. */
int serve_allow_connections(int64_t connections);

/* Prints "NAME listens at HOST:PORT", serves, and closes the service. Returns a cli_exit
 * code. */
int serve_until_stopped(struct hr_service *service, const char *name);

#endif
