/*
 * tests/support/http_server.h - an HTTP server of a folder, with faults
 * (http_server.py), that ends with the test program.
 */
#ifndef HR_TESTS_HTTP_SERVER_H
#define HR_TESTS_HTTP_SERVER_H

/* Starts it; returns "http://127.0.0.1:PORT", static storage. Skips the test if there is
 * no python3. */
const char *http_server_start(const char *folder);

#endif
