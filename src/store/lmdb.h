/*
 * store/lmdb.h - the entries of an LMDB environment, in the order of their keys.
 *
 * Reads the bytes of a data.mdb file as 64-bit little-endian machines write it, in the
 * version of the newest whole transaction. Nothing is trusted: page numbers, offsets and
 * sizes are checked against the file before they are used. No lock file is made or looked
 * at: the file must not be written meanwhile.
 */
#ifndef HR_STORE_LMDB_H
#define HR_STORE_LMDB_H

#include "core/hash.h"
#include "headrace/base.h"

struct hr_lmdb;

struct hr_lmdb_entry {
    const char *key, *value; /* in the file's bytes */
    size_t key_bytes, value_bytes;
};

/* Lists the leaf pages. `data` stays the caller's, and must outlive *ret_lmdb. `database`
 * is the name of a database in the environment; "" is the unnamed one. HR_ERR_FORMAT,
 * HR_ERR_NOT_FOUND, HR_ERR_UNSUPPORTED; messages name no file. */
HR_CHECK enum hr_err hr__lmdb_open(const void *data, size_t bytes, const char *database,
                                   struct hr_lmdb **ret_lmdb, struct hr_error *reterr);
void hr__lmdb_close(struct hr_lmdb *lmdb); /* NULL is fine */

uint64_t hr__lmdb_count(const struct hr_lmdb *lmdb);
/* A hash of the transaction, the database's description, and the beginning, middle and
 * end of the file. */
struct hr_hash128 hr__lmdb_identity(const struct hr_lmdb *lmdb);

/* Entry `at` (< count), by any thread. HR_ERR_FORMAT if it is damaged. */
HR_CHECK enum hr_err
hr__lmdb_entry(const struct hr_lmdb *lmdb, uint64_t at, struct hr_lmdb_entry *ret_entry,
               struct hr_error *reterr);

/* The bytes of entry `at` (< count), by what its leaf says: its value is not touched. */
uint64_t hr__lmdb_entry_bytes(const struct hr_lmdb *lmdb, uint64_t at);

#endif
