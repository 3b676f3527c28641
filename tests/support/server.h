/*
 * tests/support/server.h - servers for tests, which end with the test program.
 */
#ifndef HR_TESTS_SERVER_H
#define HR_TESTS_SERVER_H

#include <stddef.h>

/* Starts the HTTP server of a folder, with faults (http_server.py); returns
 * "http://127.0.0.1:PORT", static storage. Skips the test if there is no python3. */
const char *http_server_start(const char *folder);

/* Starts GlusterFS in a folder (gluster.py); returns "gluster://HOST/VOLUME", static
 * storage. Skips the test where it cannot run. */
const char *gluster_start(const char *folder);
/* Writes a file of the volume, and the folders above it; removes one. */
void gluster_put(const char *uri, const void *data, size_t bytes);
void gluster_remove(const char *uri);

/* Starts PostgreSQL (postgres.py); returns "postgresql://...", static storage. Skips the
 * test where it cannot run. */
const char *postgres_start(void);

#endif
