/*
 * fleet/sqlite.c - see sqlite.h.
 */
#include "fleet/sqlite.h"

#include "core/library.h"

struct hr_sqlite hr__sqlite;

#define SYMBOL(name_) {"sqlite3_" #name_, &hr__sqlite.name_},
static const struct hr_symbol symbols[] = {HR_SQLITE_FUNCTIONS(SYMBOL)};
#undef SYMBOL

static struct hr_library library = HR_LIBRARY("libsqlite3.so.0", "libsqlite3-0", symbols);

enum hr_err hr__sqlite_load(struct hr_error *reterr)
{
    return hr__library_load(&library, reterr);
}
