/*
 * store/store_memory.h - objects in memory: "mem://NAME".
 *
 * For tests, and to read what a program has made without writing it to disk. Objects
 * belong to the process and live until they are removed; a put replaces an object, and
 * readers that had opened the old one keep its bytes. Thread-safe.
 */
#ifndef HR_STORE_STORE_MEMORY_H
#define HR_STORE_STORE_MEMORY_H

#include "headrace/base.h"

/* Keep a copy of the bytes under `uri`. HR_ERR_ARGUMENT unless it is mem://NAME, with a
 * NAME that neither begins nor ends with a slash; HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__memory_put(const char *uri, const void *data, size_t bytes, struct hr_error *reterr);

/* Remove the object; false: there was none. */
bool hr__memory_remove(const char *uri);

#endif
