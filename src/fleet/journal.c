/*
 * fleet/journal.c - rows of binders as tables of SQLite.
 *
 * A table per kind of thing instead of a list of rows: what is committed is deleted, so
 * the file does not grow with the length of a job, and a restart reads a window of
 * splits. WAL with one connection: a commit is a write without fsync
 * (synchronous=NORMAL), which survives SIGKILL, or with one (FULL), which survives a
 * power cut.
 */
#include "fleet/journal.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/kill_point.h"
#include "fleet/sqlite.h"

#define APPLICATION 1213352458 /* "HRJ\n" */
#define VERSION 1

enum statement {
    FIND_JOB,
    ADD_JOB,
    ADD_CONSUMER,
    LIST_CONSUMERS,
    LIST_SPLITS,
    BIND,
    COMMIT_SPLIT,
    COMMIT_CONSUMER,
    GENERATION,
    UNBIND,
    FORGET_SPLITS,
    MOVE_FIRST,
    TOUCH,
    EXPIRE_SPLITS,
    EXPIRE_CONSUMERS,
    EXPIRE_JOBS,
    STATEMENTS
};

static const char *const texts[STATEMENTS] = {
    [FIND_JOB] = "SELECT end, split, first, name, tenant FROM job WHERE id = ?1",
    [ADD_JOB] = "INSERT INTO job (id, end, split, first, name, tenant, used)"
                " VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6)",
    [ADD_CONSUMER] =
        "INSERT INTO consumer (job, rank, name, generation, nonce, committed)"
        " VALUES (?1, ?2, ?3, 0, 0, 0)",
    [LIST_CONSUMERS] = "SELECT rank, name, generation, nonce, committed FROM consumer"
                       " WHERE job = ?1 ORDER BY rank",
    [LIST_SPLITS] = "SELECT number, owner, committed FROM split WHERE job = ?1"
                    " ORDER BY number",
    [BIND] = "INSERT INTO split (job, number, owner, committed) VALUES (?1, ?2, ?3, ?4)"
             " ON CONFLICT (job, number) DO UPDATE SET owner = excluded.owner",
    [COMMIT_SPLIT] = "UPDATE split SET committed = ?3 WHERE job = ?1 AND number = ?2",
    [COMMIT_CONSUMER] = "UPDATE consumer SET committed = ?3 WHERE job = ?1 AND rank = ?2",
    [GENERATION] = "UPDATE consumer SET generation = ?3, nonce = ?4"
                   " WHERE job = ?1 AND rank = ?2",
    [UNBIND] = "UPDATE split SET owner = 0 WHERE job = ?1 AND owner = ?2",
    [FORGET_SPLITS] = "DELETE FROM split WHERE job = ?1 AND number < ?2",
    [MOVE_FIRST] = "UPDATE job SET first = ?2, used = ?3 WHERE id = ?1",
    [TOUCH] = "UPDATE job SET used = ?2 WHERE id = ?1",
    [EXPIRE_SPLITS] = "DELETE FROM split WHERE job IN"
                      " (SELECT id FROM job WHERE used < ?1)",
    [EXPIRE_CONSUMERS] = "DELETE FROM consumer WHERE job IN"
                         " (SELECT id FROM job WHERE used < ?1)",
    [EXPIRE_JOBS] = "DELETE FROM job WHERE used < ?1",
};

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
    "PRAGMA application_id = 1213352458;"
    "PRAGMA user_version = 1;"
    "COMMIT";

struct hr_journal {
    sqlite3 *db;
    struct hr_str path;
    bool power;
    bool full; /* synchronous is FULL now, else NORMAL */
    sqlite3_stmt *statements[STATEMENTS];
};

static uint64_t now_s(void)
{
    return hr__wall_ns() / 1000000000u;
}

/* ---- SQLite ---- */

static enum hr_err failed(const struct hr_journal *j, int code, struct hr_error *reterr)
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

static enum hr_err run(struct hr_journal *j, const char *text, struct hr_error *reterr)
{
    int code = hr__sqlite.exec(j->db, text, NULL, NULL, NULL);

    return code == SQLITE_OK ? HR_OK : failed(j, code, reterr);
}

/* With numbers for its parameters from ?1 on. */
static sqlite3_stmt *
get(struct hr_journal *j, enum statement which, const uint64_t *numbers, int count)
{
    sqlite3_stmt *s = j->statements[which];

    for (int i = 0; i < count; i++)
        (void)hr__sqlite.bind_int64(s, i + 1, (sqlite3_int64)numbers[i]);
    return s;
}
#define GET(j, which, ...)                                                               \
    get((j), (which), (const uint64_t[]){__VA_ARGS__},                                   \
        (int)(sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t)))

static void set_text(sqlite3_stmt *s, int at, const char *text)
{
    (void)hr__sqlite.bind_text(s, at, text, -1, SQLITE_STATIC);
}

/* Of a statement that returns no rows. */
static enum hr_err step(struct hr_journal *j, sqlite3_stmt *s, struct hr_error *reterr)
{
    int code = hr__sqlite.step(s);
    enum hr_err err = code == SQLITE_DONE ? HR_OK : failed(j, code, reterr);

    (void)hr__sqlite.reset(s);
    return err;
}

static uint64_t number_of(sqlite3_stmt *s, int column)
{
    return (uint64_t)hr__sqlite.column_int64(s, column);
}

/* HR_ERR_FORMAT if it is too long. */
static enum hr_err copy_text(const struct hr_journal *j, sqlite3_stmt *s, int column,
                             char *to, size_t room, struct hr_error *reterr)
{
    const char *text = (const char *)hr__sqlite.column_text(s, column);

    if (text == NULL || strlen(text) >= room)
        return failed(j, SQLITE_CORRUPT, reterr);
    memcpy(to, text, strlen(text) + 1);
    return HR_OK;
}

/* The number that a text of one row and column gives. */
static enum hr_err
ask(struct hr_journal *j, const char *text, int64_t *ret_number, struct hr_error *reterr)
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

/* `durable`: it survives a power cut. */
static enum hr_err begin(struct hr_journal *j, bool durable, struct hr_error *reterr)
{
    bool full = durable || j->power;

    if (full != j->full)
        HR_TRY(run(j, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                   reterr));
    j->full = full;
    return run(j, "BEGIN IMMEDIATE", reterr);
}

/* Ends it: commits if `code` is HR_OK. Returns that, or why it cannot be committed. */
static enum hr_err end(struct hr_journal *j, enum hr_err code, struct hr_error *reterr)
{
    if (code == HR_OK) {
        HR_KILL_POINT("journal.filled");
        code = run(j, "COMMIT", reterr);
    }
    if (code != HR_OK)
        (void)hr__sqlite.exec(j->db, "ROLLBACK", NULL, NULL, NULL);
    else
        HR_KILL_POINT("journal.written");
    return code;
}

/* ---- opening ---- */

static enum hr_err check_kind(struct hr_journal *j, struct hr_error *reterr)
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
    if (version != VERSION)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "the journal %s is of version %lld; this release knows version "
                        "%d",
                        hr__str_text(&j->path), (long long)version, VERSION);
    return HR_OK;
}

static enum hr_err check_pages(struct hr_journal *j, struct hr_error *reterr)
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

static enum hr_err prepare(struct hr_journal *j, struct hr_error *reterr)
{
    for (int i = 0; i < STATEMENTS; i++) {
        int code = hr__sqlite.prepare_v2(j->db, texts[i], -1, &j->statements[i], NULL);

        if (code == SQLITE_ERROR) /* the tables are not those of the schema */
            code = SQLITE_CORRUPT;
        if (code != SQLITE_OK)
            return failed(j, code, reterr);
    }
    return HR_OK;
}

static enum hr_err init(struct hr_journal *j, const char *folder, struct hr_error *reterr)
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
    return prepare(j, reterr);
}

enum hr_err hr__journal_open(const char *folder, bool power,
                             struct hr_journal **ret_journal, struct hr_error *reterr)
{
    struct hr_journal *j = hr__calloc(1, sizeof *j);
    enum hr_err code;

    if (j == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__str_init(&j->path);
    j->power = power;
    code = init(j, folder, reterr);
    if (code != HR_OK) {
        hr__journal_close(j);
        return code;
    }
    *ret_journal = j;
    return HR_OK;
}

void hr__journal_close(struct hr_journal *j)
{
    if (j == NULL)
        return;
    for (int i = 0; i < STATEMENTS; i++)
        if (j->statements[i] != NULL)
            (void)hr__sqlite.finalize(j->statements[i]);
    if (j->db != NULL)
        (void)hr__sqlite.close(j->db);
    hr__str_finish(&j->path);
    hr__free(j);
}

/* ---- jobs ---- */

enum hr_err hr__journal_find(struct hr_journal *j, uint64_t id,
                             struct hr_journal_job *ret_job, struct hr_error *reterr)
{
    sqlite3_stmt *s = GET(j, FIND_JOB, id);
    struct hr_journal_job job = {.id = id};
    int code = hr__sqlite.step(s);
    enum hr_err err = code == SQLITE_ROW    ? HR_OK
                      : code == SQLITE_DONE ? HR_ERR_NOT_FOUND
                                            : failed(j, code, reterr);

    if (err == HR_OK) {
        job.end = number_of(s, 0);
        job.split = number_of(s, 1);
        job.first = number_of(s, 2);
        err = copy_text(j, s, 3, job.name, sizeof job.name, reterr);
    }
    if (err == HR_OK)
        err = copy_text(j, s, 4, job.tenant, sizeof job.tenant, reterr);
    if (err == HR_OK)
        *ret_job = job;
    (void)hr__sqlite.reset(s);
    return err;
}

enum hr_err hr__journal_add(struct hr_journal *j, const struct hr_journal_job *job,
                            struct hr_error *reterr)
{
    sqlite3_stmt *s = GET(j, ADD_JOB, job->id, job->end, job->split);

    (void)hr__sqlite.bind_int64(s, 6, (sqlite3_int64)now_s());
    set_text(s, 4, job->name);
    set_text(s, 5, job->tenant);
    HR_TRY(begin(j, true, reterr));
    return end(j, step(j, s, reterr), reterr);
}

enum hr_err hr__journal_name(struct hr_journal *j, uint64_t job, uint32_t rank,
                             const char *name, struct hr_error *reterr)
{
    sqlite3_stmt *s = GET(j, ADD_CONSUMER, job, rank);

    set_text(s, 3, name);
    HR_TRY(begin(j, true, reterr));
    return end(j, step(j, s, reterr), reterr);
}

/* ---- rows ---- */

static enum hr_err write_bind(struct hr_journal *j, const struct hr_binder *binder,
                              const struct hr_row *row, struct hr_error *reterr)
{
    uint64_t number = row->ranges[0].from / binder->options.split;

    return step(j,
                GET(j, BIND, row->job, number, row->rank + 1,
                    row->ranges[0].from - number * binder->options.split),
                reterr);
}

static enum hr_err write_commit(struct hr_journal *j, const struct hr_binder *binder,
                                const struct hr_row *row, struct hr_error *reterr)
{
    uint64_t split = binder->options.split;

    HR_TRY(step(j, GET(j, COMMIT_CONSUMER, row->job, row->rank, row->number), reterr));
    for (uint32_t i = 0; i < row->count; i++) {
        struct hr_frame_range range = row->ranges[i];

        while (range.from < range.until) {
            uint64_t number = range.from / split, next = (number + 1) * split;
            uint64_t until = range.until < next ? range.until : next;

            HR_TRY(step(j, GET(j, COMMIT_SPLIT, row->job, number, until - number * split),
                        reterr));
            range.from = until;
        }
    }
    HR_TRY(step(j, GET(j, FORGET_SPLITS, row->job, binder->first), reterr));
    return step(j, GET(j, MOVE_FIRST, row->job, binder->first, now_s()), reterr);
}

static enum hr_err write_row(struct hr_journal *j, const struct hr_binder *binder,
                             const struct hr_row *row, struct hr_error *reterr)
{
    if (row->kind == HR_ROW_BIND)
        return write_bind(j, binder, row, reterr);
    if (row->kind == HR_ROW_COMMIT)
        return write_commit(j, binder, row, reterr);
    assert(row->kind == HR_ROW_GENERATION || row->kind == HR_ROW_EVICT);
    HR_TRY(step(j, GET(j, GENERATION, row->job, row->rank, row->generation, row->number),
                reterr));
    if (row->kind == HR_ROW_EVICT)
        return step(j, GET(j, UNBIND, row->job, row->rank + 1), reterr);
    return step(j, GET(j, TOUCH, row->job, now_s()), reterr);
}

enum hr_err hr__journal_write(struct hr_journal *j, const struct hr_binder *binder,
                              const struct hr_actions *actions, struct hr_error *reterr)
{
    enum hr_err code = HR_OK;
    bool any = false, durable = false;

    for (size_t i = 0; i < actions->count; i++) {
        const struct hr_action *action = &actions->items[i];

        if (action->kind != HR_ACTION_JOURNAL)
            continue;
        any = true;
        durable = durable || action->u.row.kind == HR_ROW_GENERATION;
    }
    if (!any)
        return HR_OK;
    HR_TRY(begin(j, durable, reterr));
    for (size_t i = 0; code == HR_OK && i < actions->count; i++)
        if (actions->items[i].kind == HR_ACTION_JOURNAL)
            code = write_row(j, binder, &actions->items[i].u.row, reterr);
    return end(j, code, reterr);
}

/* ---- restoring ---- */

static enum hr_err
restore_consumers(struct hr_journal *j, struct hr_binder *binder,
                  hr_journal_named_fn *named, void *user, struct hr_error *reterr)
{
    sqlite3_stmt *s = GET(j, LIST_CONSUMERS, binder->options.job);
    enum hr_err code = HR_OK;
    int got = hr__sqlite.step(s);

    for (uint32_t rank = 0; code == HR_OK && got == SQLITE_ROW; rank++) {
        struct hr_row row = {.kind = HR_ROW_GENERATION, .job = binder->options.job};
        const char *name = (const char *)hr__sqlite.column_text(s, 1);

        row.rank = rank;
        row.generation = (uint32_t)number_of(s, 2);
        row.number = number_of(s, 3);
        if (name == NULL || number_of(s, 0) != rank)
            code = failed(j, SQLITE_CORRUPT, reterr);
        if (code == HR_OK)
            code = named(user, rank, name, reterr);
        if (code == HR_OK)
            code = hr__bind_replay(binder, &row, reterr);
        row.kind = HR_ROW_COMMIT;
        row.number = number_of(s, 4);
        if (code == HR_OK)
            code = hr__bind_replay(binder, &row, reterr);
        got = hr__sqlite.step(s);
    }
    (void)hr__sqlite.reset(s);
    if (code != HR_OK || got == SQLITE_DONE)
        return code;
    return failed(j, got, reterr);
}

/* A row of the table as the rows of the journal that led to it. */
static enum hr_err
restore_split(struct hr_journal *j, struct hr_binder *binder, uint64_t number,
              uint64_t owner, uint64_t committed, struct hr_error *reterr)
{
    uint32_t rank = owner > 0 ? (uint32_t)owner - 1 : 0;
    uint64_t from = number * binder->options.split;
    struct hr_row row = {.kind = HR_ROW_BIND, .job = binder->options.job, .count = 1};

    if (owner > binder->options.consumers || committed > binder->options.split ||
        number > binder->splits)
        return failed(j, SQLITE_CORRUPT, reterr);
    row.rank = rank;
    row.ranges[0] = (struct hr_frame_range){from, from + 1};
    if (owner > 0)
        HR_TRY(hr__bind_replay(binder, &row, reterr));
    if (committed == 0)
        return HR_OK;
    row.kind = HR_ROW_COMMIT;
    row.generation = binder->consumers[rank].generation;
    row.number = binder->consumers[rank].committed;
    row.ranges[0].until = from + committed;
    return hr__bind_replay(binder, &row, reterr);
}

static enum hr_err
restore_splits(struct hr_journal *j, struct hr_binder *binder, struct hr_error *reterr)
{
    sqlite3_stmt *s = GET(j, LIST_SPLITS, binder->options.job);
    enum hr_err code = HR_OK;
    int got = hr__sqlite.step(s);

    for (; code == HR_OK && got == SQLITE_ROW; got = hr__sqlite.step(s))
        code = restore_split(j, binder, number_of(s, 0), number_of(s, 1), number_of(s, 2),
                             reterr);
    (void)hr__sqlite.reset(s);
    if (code != HR_OK || got == SQLITE_DONE)
        return code;
    return failed(j, got, reterr);
}

enum hr_err
hr__journal_restore(struct hr_journal *j, struct hr_binder *binder,
                    hr_journal_named_fn *named, void *user, struct hr_error *reterr)
{
    struct hr_journal_job job;

    HR_TRY(hr__journal_find(j, binder->options.job, &job, reterr));
    HR_TRY(hr__bind_restore(binder, job.first, reterr));
    HR_TRY(restore_consumers(j, binder, named, user, reterr));
    return restore_splits(j, binder, reterr);
}

/* ---- its size ---- */

enum hr_err hr__journal_touch(struct hr_journal *j, uint64_t id, struct hr_error *reterr)
{
    HR_TRY(begin(j, false, reterr));
    return end(j, step(j, GET(j, TOUCH, id, now_s()), reterr), reterr);
}

enum hr_err
hr__journal_expire(struct hr_journal *j, uint64_t seconds, struct hr_error *reterr)
{
    uint64_t now = now_s(), before = now > seconds ? now - seconds : 0;
    enum hr_err code;

    HR_TRY(begin(j, false, reterr));
    code = step(j, GET(j, EXPIRE_SPLITS, before), reterr);
    if (code == HR_OK)
        code = step(j, GET(j, EXPIRE_CONSUMERS, before), reterr);
    if (code == HR_OK)
        code = step(j, GET(j, EXPIRE_JOBS, before), reterr);
    return end(j, code, reterr);
}
