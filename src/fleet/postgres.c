/*
 * fleet/postgres.c - see postgres.h.
 */
#include "fleet/postgres.h"

#include "core/library.h"

struct hr_postgres hr__postgres;

#define SYMBOL(name_) {"PQ" #name_, &hr__postgres.name_},
static const struct hr_symbol symbols[] = {HR_POSTGRES_FUNCTIONS(SYMBOL)};
#undef SYMBOL

static struct hr_library library = HR_LIBRARY("libpq.so.5", "libpq5", symbols);

enum hr_err hr__postgres_load(struct hr_error *reterr)
{
    return hr__library_load(&library, reterr);
}
