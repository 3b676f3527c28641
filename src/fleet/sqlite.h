/*
 * fleet/sqlite.h - SQLite's functions, which are loaded when a journal needs them.
 */
#ifndef HR_FLEET_SQLITE_H
#define HR_FLEET_SQLITE_H

#include <sqlite3.h>

#include "headrace/base.h"

/* Of a function F(name): one member for each that is used, named without `sqlite3_`. */
#define HR_SQLITE_FUNCTIONS(F)                                                           \
    F(bind_int64)                                                                        \
    F(bind_text)                                                                         \
    F(close)                                                                             \
    F(column_count)                                                                      \
    F(column_int64)                                                                      \
    F(column_text)                                                                       \
    F(column_type)                                                                       \
    F(errmsg)                                                                            \
    F(exec)                                                                              \
    F(finalize)                                                                          \
    F(libversion)                                                                        \
    F(open_v2)                                                                           \
    F(prepare_v2)                                                                        \
    F(reset)                                                                             \
    F(step)

#define HR_SQLITE_MEMBER(name_) __typeof__(sqlite3_##name_) *name_;
struct hr_sqlite {
    HR_SQLITE_FUNCTIONS(HR_SQLITE_MEMBER)
};
#undef HR_SQLITE_MEMBER

extern struct hr_sqlite hr__sqlite;

/* Fills hr__sqlite. HR_ERR_UNSUPPORTED if there is no SQLite. Thread-safe. */
HR_CHECK enum hr_err hr__sqlite_load(struct hr_error *reterr);

#endif
