/*
 * fleet/sql_version.c - versions of journal.h's libraries; in every build.
 */
#include <stdio.h>

#include "core/error.h"
#include "core/library.h"
#include "fleet/journal.h"

#ifdef HR_SQLITE
#include "fleet/sqlite.h"

enum hr_err hr__sqlite_version(char *text, size_t room, struct hr_error *reterr)
{
    HR_TRY(hr__sqlite_load(reterr));
    snprintf(text, room, "%s", hr__sqlite.libversion());
    return HR_OK;
}
#else
enum hr_err hr__sqlite_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)text;
    (void)room;
    return hr__library_left_out("libsqlite3-dev", reterr);
}
#endif

#ifdef HR_POSTGRES
#include "fleet/postgres.h"

enum hr_err hr__postgres_version(char *text, size_t room, struct hr_error *reterr)
{
    int version;

    HR_TRY(hr__postgres_load(reterr));
    version = hr__postgres.libVersion();
    snprintf(text, room, "%d.%d", version / 10000, version % 10000);
    return HR_OK;
}
#else
enum hr_err hr__postgres_version(char *text, size_t room, struct hr_error *reterr)
{
    (void)text;
    (void)room;
    return hr__library_left_out("libpq-dev", reterr);
}
#endif
