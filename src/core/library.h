/*
 * core/library.h - shared libraries that are loaded when they are first needed.
 *
 * For large libraries that most runs do without: linking libcurl costs every process, the
 * worker processes too, 5 ms at its start.
 */
#ifndef HR_CORE_LIBRARY_H
#define HR_CORE_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "headrace/base.h"

struct hr_symbol {
    const char *name;
    void *to; /* where the function's pointer goes */
};

struct hr_library {
    const char *file;    /* with the version of its ABI: "libcurl.so.4" */
    const char *package; /* of Debian, for the error */
    const struct hr_symbol *symbols;
    size_t symbol_count;
    pthread_mutex_t mutex; /* PTHREAD_MUTEX_INITIALIZER */
    bool loaded;
};

/* An initialiser; `symbols_` is an array. */
#define HR_LIBRARY(file_, package_, symbols_)                                            \
    {                                                                                    \
        .file = (file_), .package = (package_), .symbols = (symbols_),                   \
        .symbol_count = sizeof(symbols_) / sizeof *(symbols_),                           \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                               \
    }

/* Loads it and fills the pointers, unless that was done. HR_ERR_UNSUPPORTED if it is not
 * installed or lacks a function, naming the package; a later call tries again. It stays
 * loaded until the process ends. If it uses OpenSSL and is the first to do so, exit()
 * does not tear OpenSSL down, so that threads may still use it. Thread-safe. */
HR_CHECK enum hr_err
hr__library_load(struct hr_library *library, struct hr_error *reterr);

/* HR_ERR_STATE, for what this build has no library for: it lacked these of Debian's
 * packages. */
HR_CHECK enum hr_err hr__library_left_out(const char *packages, struct hr_error *reterr);

#endif
