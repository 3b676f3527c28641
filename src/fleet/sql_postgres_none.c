/*
 * fleet/sql_postgres_none.c - a build without libpq.
 */
#include "core/library.h"
#include "fleet/sql.h"

enum hr_err
hr__postgres_open(const char *address, const struct hr_sql_statements *statements,
                  struct hr_sql **ret_sql, struct hr_error *reterr)
{
    (void)address;
    (void)statements;
    *ret_sql = NULL;
    return hr__library_left_out("libpq-dev", reterr);
}
