/*
 * fleet/sql_sqlite.c - a journal in a file of SQLite.
 *
 * WAL with one connection: a commit is a write without fsync (synchronous=NORMAL), which
 * survives SIGKILL, or with one (FULL), which survives a power cut.
 */
#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "fleet/journal.h"
#include "fleet/sql.h"
#include "fleet/sqlite.h"

#define APPLICATION 1213352458 /* "HRJ\n" */
#define VERSION 2

static const char schema[] =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE job (id INTEGER PRIMARY KEY, end INTEGER NOT NULL,"
    " split INTEGER NOT NULL, first INTEGER NOT NULL, name TEXT NOT NULL,"
    " tenant TEXT NOT NULL, used INTEGER NOT NULL);"
    "CREATE TABLE consumer (job INTEGER NOT NULL, rank INTEGER NOT NULL,"
    " name TEXT NOT NULL, generation INTEGER NOT NULL, nonce INTEGER NOT NULL,"
    " committed INTEGER NOT NULL, PRIMARY KEY (job, rank)) WITHOUT ROWID;"
    "CREATE TABLE split (job INTEGER NOT NULL, number INTEGER NOT NULL,"
    " owner INTEGER NOT NULL, committed INTEGER NOT NULL,"
    " PRIMARY KEY (job, number)) WITHOUT ROWID;"
    "CREATE TABLE mark (number INTEGER NOT NULL);"
    "PRAGMA application_id = 1213352458;"
    "PRAGMA user_version = 2;"
    "COMMIT";

static const char from_version_1[] = "BEGIN IMMEDIATE;"
                                     "CREATE TABLE mark (number INTEGER NOT NULL);"
                                     "PRAGMA user_version = 2;"
                                     "COMMIT";

struct sqlite {
    struct hr_sql sql;
    sqlite3 *db;
    struct hr_str path;
    bool power;
    bool full; /* synchronous is FULL now, else NORMAL */
    size_t count;
    sqlite3_stmt *statements[];
};

static struct sqlite *of(struct hr_sql *sql)
{
    return (struct sqlite *)sql;
}

static enum hr_err failed(const struct sqlite *j, int code, struct hr_error *reterr)
{
    const char *path = hr__str_text(&j->path), *why = hr__sqlite.errmsg(j->db);

    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return hr__fail(reterr, HR_ERR_STATE,
                        "another dispatcher uses the journal %s: give each its own "
                        "folder",
                        path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the journal %s is damaged (%s): put a copy in its place, or "
                        "move it away and begin its jobs again",
                        path, why);
    default:
        return hr__fail(reterr, HR_ERR_IO, "cannot read or write the journal %s: %s",
                        path, why);
    }
}

static enum hr_err run(struct sqlite *j, const char *text, struct hr_error *reterr)
{
    int code = hr__sqlite.exec(j->db, text, NULL, NULL, NULL);

    return code == SQLITE_OK ? HR_OK : failed(j, code, reterr);
}

/* The number that a text of one row and column gives. */
static enum hr_err
ask(struct sqlite *j, const char *text, int64_t *ret_number, struct hr_error *reterr)
{
    sqlite3_stmt *s = NULL;
    int code = hr__sqlite.prepare_v2(j->db, text, -1, &s, NULL);

    if (code == SQLITE_OK)
        code = hr__sqlite.step(s);
    if (code == SQLITE_ROW)
        *ret_number = hr__sqlite.column_int64(s, 0);
    (void)hr__sqlite.finalize(s);
    return code == SQLITE_ROW ? HR_OK : failed(j, code, reterr);
}

/* ---- transactions ---- */

static enum hr_err sqlite_begin(struct hr_sql *sql, bool durable, struct hr_error *reterr)
{
    struct sqlite *j = of(sql);
    bool full = durable || j->power;

    if (full != j->full)
        HR_TRY(run(j, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                   reterr));
    j->full = full;
    return run(j, "BEGIN IMMEDIATE", reterr);
}

static enum hr_err sqlite_commit(struct hr_sql *sql, struct hr_error *reterr)
{
    return run(of(sql), "COMMIT", reterr);
}

static void sqlite_roll_back(struct hr_sql *sql)
{
    (void)hr__sqlite.exec(of(sql)->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- statements ---- */

static void set(sqlite3_stmt *s, const struct hr_sql_value *values, size_t count)
{
    for (int i = 0; i < (int)count; i++)
        if (values[i].text != NULL)
            (void)hr__sqlite.bind_text(s, i + 1, values[i].text, -1, SQLITE_STATIC);
        else
            (void)hr__sqlite.bind_int64(s, i + 1, (sqlite3_int64)values[i].number);
}

static void get(sqlite3_stmt *s, struct hr_sql_value values[HR_SQL_VALUES_MAX])
{
    int count = hr__sqlite.column_count(s);

    assert(count <= (int)HR_SQL_VALUES_MAX);
    for (int i = 0; i < count; i++)
        if (hr__sqlite.column_type(s, i) == SQLITE_INTEGER)
            values[i].number = (uint64_t)hr__sqlite.column_int64(s, i);
        else
            values[i].text = (const char *)hr__sqlite.column_text(s, i);
}

static enum hr_err
sqlite_run(struct hr_sql *sql, size_t statement, const struct hr_sql_value *values,
           size_t count, hr_sql_row_fn *row, void *user, struct hr_error *reterr)
{
    struct sqlite *j = of(sql);
    sqlite3_stmt *s = j->statements[statement];
    enum hr_err err = HR_OK;
    int code;

    set(s, values, count);
    code = hr__sqlite.step(s);
    while (err == HR_OK && code == SQLITE_ROW) {
        struct hr_sql_value columns[HR_SQL_VALUES_MAX] = {{0}};

        assert(row != NULL);
        get(s, columns);
        err = row(user, columns, reterr);
        if (err == HR_OK)
            code = hr__sqlite.step(s);
    }
    if (err == HR_OK && code != SQLITE_DONE)
        err = failed(j, code, reterr);
    (void)hr__sqlite.reset(s);
    return err;
}

static enum hr_err sqlite_damaged(const struct hr_sql *sql, struct hr_error *reterr)
{
    return failed((const struct sqlite *)sql, SQLITE_CORRUPT, reterr);
}

static void sqlite_close(struct hr_sql *sql)
{
    struct sqlite *j = of(sql);

    for (size_t i = 0; i < j->count; i++)
        if (j->statements[i] != NULL)
            (void)hr__sqlite.finalize(j->statements[i]);
    if (j->db != NULL)
        (void)hr__sqlite.close(j->db);
    hr__str_finish(&j->path);
    hr__free(j);
}

static const struct hr_sql_kind kind = {.begin = sqlite_begin,
                                        .commit = sqlite_commit,
                                        .roll_back = sqlite_roll_back,
                                        .run = sqlite_run,
                                        .damaged = sqlite_damaged,
                                        .close = sqlite_close};

/* ---- opening ---- */

static enum hr_err check_kind(struct sqlite *j, struct hr_error *reterr)
{
    int64_t application = 0, version = 0, tables = 0;

    HR_TRY(ask(j, "PRAGMA application_id", &application, reterr));
    HR_TRY(ask(j, "PRAGMA user_version", &version, reterr));
    HR_TRY(ask(j, "SELECT count(*) FROM sqlite_master", &tables, reterr));
    if (application == 0 && version == 0 && tables == 0)
        return run(j, schema, reterr);
    if (application != APPLICATION)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s is no journal of a dispatcher",
                        hr__str_text(&j->path));
    if (version == 1)
        return run(j, from_version_1, reterr);
    if (version != VERSION)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "the journal %s is of version %lld; this release knows version "
                        "%d",
                        hr__str_text(&j->path), (long long)version, VERSION);
    return HR_OK;
}

static enum hr_err check_pages(struct sqlite *j, struct hr_error *reterr)
{
    sqlite3_stmt *s = NULL;
    int code = hr__sqlite.prepare_v2(j->db, "PRAGMA quick_check(1)", -1, &s, NULL);
    bool sound;

    if (code == SQLITE_OK)
        code = hr__sqlite.step(s);
    sound = code == SQLITE_ROW &&
            strcmp((const char *)hr__sqlite.column_text(s, 0), "ok") == 0;
    (void)hr__sqlite.finalize(s);
    if (code == SQLITE_ROW)
        code = SQLITE_CORRUPT;
    return sound ? HR_OK : failed(j, code, reterr);
}

static enum hr_err
prepare(struct sqlite *j, const char *const *texts, struct hr_error *reterr)
{
    for (size_t i = 0; i < j->count; i++) {
        int code = hr__sqlite.prepare_v2(j->db, texts[i], -1, &j->statements[i], NULL);

        if (code == SQLITE_ERROR) /* the tables are not those of the schema */
            code = SQLITE_CORRUPT;
        if (code != SQLITE_OK)
            return failed(j, code, reterr);
    }
    return HR_OK;
}

static enum hr_err init(struct sqlite *j, const char *folder, const char *const *texts,
                        struct hr_error *reterr)
{
    int code;

    HR_TRY(hr__sqlite_load(reterr));
    HR_TRY(hr__file_make_folder(folder, 0750, reterr));
    hr__str_addf(&j->path, "%s/" HR_JOURNAL_FILE, folder);
    if (!hr__str_ok(&j->path))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = hr__sqlite.open_v2(
        hr__str_text(&j->path), &j->db,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (j->db == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (code != SQLITE_OK)
        return failed(j, code, reterr);
    /* The lock is kept from the first use on. */
    HR_TRY(run(j, "PRAGMA locking_mode=EXCLUSIVE", reterr));
    HR_TRY(run(j, "PRAGMA journal_mode=WAL", reterr));
    HR_TRY(run(j, "PRAGMA synchronous=FULL", reterr));
    j->full = true;
    HR_TRY(check_kind(j, reterr));
    HR_TRY(check_pages(j, reterr));
    return prepare(j, texts, reterr);
}

enum hr_err hr__sqlite_open(const char *folder, bool power,
                            const struct hr_sql_statements *statements,
                            struct hr_sql **ret_sql, struct hr_error *reterr)
{
    struct sqlite *j =
        hr__calloc(1, sizeof *j + statements->count * sizeof *j->statements);
    enum hr_err code;

    if (j == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    j->sql.kind = &kind;
    j->count = statements->count;
    j->power = power;
    hr__str_init(&j->path);
    code = init(j, folder, statements->texts, reterr);
    if (code != HR_OK) {
        sqlite_close(&j->sql);
        return code;
    }
    *ret_sql = &j->sql;
    return HR_OK;
}
