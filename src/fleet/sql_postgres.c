/*
 * fleet/sql_postgres.c - a journal in a database of PostgreSQL, which several dispatchers
 * may share: one of them has it at a time.
 *
 * Whoever has an advisory lock of the database's has the journal. The lock belongs to the
 * session that writes, so a dispatcher that lost its session, or that another one took to
 * be dead, writes no more: its transaction ends with the session. A session that is lost
 * is lost at the next statement; nothing is sent twice.
 *
 * No call waits longer than WAIT_MS for the server: the dispatcher has other runs. A lost
 * session is opened again without waiting, a step for each call of recover().
 */
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/str.h"
#include "fleet/postgres.h"
#include "fleet/sql.h"

#define VERSION 2
#define WAIT_MS 5000u     /* for an answer */
#define OPEN_MS 10000u    /* for a connection, when the journal is opened */
#define RETRY_MS 1000u    /* between attempts to connect, or to get the lock */
#define LOCK "1213352458" /* "HRJ\n" */
#define MS ((uint64_t)1000000)

/* In a schema of its own, so that it may share the database. Timeouts also end what a
 * dispatcher has left: without a keepalive its session, and the lock, would stay for
 * hours after the death of its host. */
static const char session[] =
    "SET client_min_messages = warning; SET search_path = headrace_journal;"
    "SET statement_timeout = 5000; SET lock_timeout = 5000;"
    "SET idle_in_transaction_session_timeout = 15000; SET synchronous_commit = on;"
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2;"
    "SET tcp_keepalives_count = 3";

static const char schema[] =
    "BEGIN;"
    "CREATE SCHEMA IF NOT EXISTS headrace_journal;"
    "CREATE TABLE about (version BIGINT NOT NULL);"
    "INSERT INTO about VALUES (2);"
    "CREATE TABLE job (id BIGINT PRIMARY KEY, \"end\" BIGINT NOT NULL,"
    " split BIGINT NOT NULL, first BIGINT NOT NULL, name TEXT NOT NULL,"
    " tenant TEXT NOT NULL, used BIGINT NOT NULL);"
    "CREATE TABLE consumer (job BIGINT NOT NULL, rank BIGINT NOT NULL,"
    " name TEXT NOT NULL, generation BIGINT NOT NULL, nonce BIGINT NOT NULL,"
    " committed BIGINT NOT NULL, PRIMARY KEY (job, rank));"
    "CREATE TABLE split (job BIGINT NOT NULL, number BIGINT NOT NULL,"
    " owner BIGINT NOT NULL, committed BIGINT NOT NULL, PRIMARY KEY (job, number));"
    "CREATE TABLE mark (number BIGINT NOT NULL);"
    "COMMIT";

enum state {
    AWAY,       /* no connection; the next attempt is due at `retry_ns` */
    CONNECTING, /* until `retry_ns` */
    WAITING,    /* connected; another dispatcher has the journal */
    HELD,       /* this one has it */
};

struct postgres {
    struct hr_sql sql;
    enum state state;
    PGconn *conn;
    PostgresPollingStatusType wants; /* CONNECTING: what its socket waits for */
    uint64_t retry_ns;
    struct hr_str address; /* with a password, perhaps */
    struct hr_str place;   /* for messages */
    struct hr_error why;   /* not HELD: why */
    const struct hr_sql_statements *statements;
};

static struct postgres *of(struct hr_sql *sql)
{
    return (struct postgres *)sql;
}

/* ---- failures ---- */

/* The first line of a message of libpq. */
static void copy_line(char *to, size_t room, const char *text)
{
    size_t length = strcspn(text, "\n");

    if (strncmp(text, "ERROR:  ", 8) == 0) {
        text += 8;
        length -= 8;
    }
    snprintf(to, room, "%.*s", (int)length, text);
}

/* The session is over; so nobody may take this side to have the journal. */
static void leave(struct postgres *p, const char *what)
{
    char line[200];

    copy_line(line, sizeof line, what);
    hr__fail(&p->why, HR_ERR_IO, "cannot reach the journal in %s: %s",
             hr__str_text(&p->place), line);
    hr__postgres.finish(p->conn);
    p->conn = NULL;
    p->state = AWAY;
    p->retry_ns = hr__now_ns() + RETRY_MS * MS;
}

static enum hr_err say_why(const struct postgres *p, struct hr_error *reterr)
{
    assert(p->state != HELD && p->why.code != HR_OK);
    if (reterr != NULL)
        *reterr = p->why;
    return p->why.code;
}

static enum hr_err
damaged(const struct postgres *p, const char *why, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_FORMAT,
                    "the journal in %s is damaged (%s): restore a copy of its schema "
                    "headrace_journal, or drop it and begin its jobs again",
                    hr__str_text(&p->place), why);
}

/* The server refuses a statement. */
static enum hr_err
refused(const struct postgres *p, const PGresult *result, struct hr_error *reterr)
{
    const char *state = hr__postgres.resultErrorField(result, PG_DIAG_SQLSTATE);
    char line[200];

    copy_line(line, sizeof line, hr__postgres.resultErrorMessage(result));
    if (state == NULL)
        state = "";
    /* Undefined objects, wrong types, and what the server calls corrupted. */
    if (strncmp(state, "42P", 3) == 0 || strncmp(state, "4270", 4) == 0 ||
        strncmp(state, "XX00", 4) == 0)
        return damaged(p, line, reterr);
    return hr__fail(reterr, HR_ERR_IO, "cannot read or write the journal in %s: %s",
                    hr__str_text(&p->place), line);
}

/* ---- statements ---- */

static bool wait_for(const struct postgres *p, short events, uint64_t until_ns)
{
    uint64_t now = hr__now_ns();
    struct pollfd fd = {.fd = hr__postgres.socket(p->conn), .events = events};
    int ms = now < until_ns ? (int)((until_ns - now + MS - 1) / MS) : 0;

    return poll(&fd, 1, ms) > 0;
}

/* The result of what was sent; NULL, and the session is over, if none comes. The last one
 * of several. */
static PGresult *receive(struct postgres *p)
{
    uint64_t until = hr__now_ns() + WAIT_MS * MS;
    PGresult *last = NULL, *result;

    for (;;) {
        while (hr__postgres.isBusy(p->conn)) {
            if (!wait_for(p, POLLIN, until)) {
                hr__postgres.clear(last);
                leave(p, "it does not answer");
                return NULL;
            }
            if (!hr__postgres.consumeInput(p->conn)) {
                hr__postgres.clear(last);
                leave(p, hr__postgres.errorMessage(p->conn));
                return NULL;
            }
        }
        result = hr__postgres.getResult(p->conn);
        if (result == NULL)
            break;
        hr__postgres.clear(last);
        last = result;
    }
    if (last == NULL || hr__postgres.status(p->conn) != CONNECTION_OK) {
        hr__postgres.clear(last);
        leave(p, hr__postgres.errorMessage(p->conn));
        return NULL;
    }
    return last;
}

/* The answer to what was sent (0: it could not be), which must have rows or be a success
 * without. The caller clears *ret_result. */
static enum hr_err
answer(struct postgres *p, int sent, PGresult **ret_result, struct hr_error *reterr)
{
    PGresult *result = sent ? receive(p) : NULL;
    ExecStatusType status;
    enum hr_err code;

    if (!sent)
        leave(p, hr__postgres.errorMessage(p->conn));
    if (result == NULL)
        return say_why(p, reterr);
    status = hr__postgres.resultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        *ret_result = result;
        return HR_OK;
    }
    code = refused(p, result, reterr);
    hr__postgres.clear(result);
    return code;
}

static enum hr_err execute(struct postgres *p, const char *text, struct hr_error *reterr)
{
    PGresult *result = NULL;

    HR_TRY(answer(p, hr__postgres.sendQuery(p->conn, text), &result, reterr));
    hr__postgres.clear(result);
    return HR_OK;
}

/* The value of one row and column. */
static enum hr_err
ask(struct postgres *p, const char *text, char *to, size_t room, struct hr_error *reterr)
{
    PGresult *result = NULL;

    HR_TRY(answer(p, hr__postgres.sendQuery(p->conn, text), &result, reterr));
    if (hr__postgres.ntuples(result) == 1 && hr__postgres.nfields(result) == 1)
        snprintf(to, room, "%s", hr__postgres.getvalue(result, 0, 0));
    else
        to[0] = '\0';
    hr__postgres.clear(result);
    return HR_OK;
}

#define NAME_ROOM 24

static void name_statement(char name[static NAME_ROOM], size_t at)
{
    snprintf(name, NAME_ROOM, "s%zu", at);
}

static enum hr_err prepare(struct postgres *p, struct hr_error *reterr)
{
    for (size_t i = 0; i < p->statements->count; i++) {
        PGresult *result = NULL;
        char name[NAME_ROOM], text[400];

        assert(strlen(p->statements->texts[i]) < sizeof text);
        snprintf(text, sizeof text, "%s", p->statements->texts[i]);
        for (char *at = text; (at = strchr(at, '?')) != NULL;)
            *at = '$';
        name_statement(name, i);
        HR_TRY(answer(p, hr__postgres.sendPrepare(p->conn, name, text, 0, NULL), &result,
                      reterr));
        hr__postgres.clear(result);
    }
    return HR_OK;
}

/* ---- the connection and the lock ---- */

/* Notices are not for the dispatcher's output. */
static void drop_notice(void *user, const char *text)
{
    (void)user;
    (void)text;
}

/* Begins to connect. libpq takes the address where a name of a database may be. */
static void dial(struct postgres *p)
{
    static const char *const names[] = {"dbname", "application_name", NULL};
    const char *const values[] = {hr__str_text(&p->address), "headrace dispatcher", NULL};

    p->conn = hr__postgres.connectStartParams(names, values, 1);
    p->state = CONNECTING;
    p->wants = PGRES_POLLING_WRITING;
    p->retry_ns = hr__now_ns() + WAIT_MS * MS;
    if (p->conn == NULL)
        leave(p, "out of memory");
    else if (hr__postgres.status(p->conn) == CONNECTION_BAD)
        leave(p, hr__postgres.errorMessage(p->conn));
    else
        (void)hr__postgres.setNoticeProcessor(p->conn, drop_notice, NULL);
}

/* Takes the steps that need no waiting. */
static void connect_on(struct postgres *p, uint64_t until_ns)
{
    while (p->state == CONNECTING) {
        short events = p->wants == PGRES_POLLING_READING ? POLLIN : POLLOUT;

        if (!wait_for(p, events, until_ns)) {
            if (hr__now_ns() >= p->retry_ns)
                leave(p, "it does not answer");
            return;
        }
        p->wants = hr__postgres.connectPoll(p->conn);
        if (p->wants == PGRES_POLLING_FAILED)
            leave(p, hr__postgres.errorMessage(p->conn));
        else if (p->wants == PGRES_POLLING_OK)
            return;
    }
}

static enum hr_err check_version(struct postgres *p, struct hr_error *reterr)
{
    char version[32];

    HR_TRY(ask(p, "SELECT max(version) FROM about", version, sizeof version, reterr));
    if (strtol(version, NULL, 10) == VERSION)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "the journal in %s is of version %s; this release knows version %d",
                    hr__str_text(&p->place), version, VERSION);
}

/* Gets the journal, if nobody else has it. */
static enum hr_err take(struct postgres *p, struct hr_error *reterr)
{
    char got[8];

    if (p->state == CONNECTING)
        HR_TRY(execute(p, session, reterr));
    HR_TRY(ask(p, "SELECT pg_try_advisory_lock(" LOCK ")", got, sizeof got, reterr));
    if (strcmp(got, "t") != 0) {
        p->state = WAITING;
        p->retry_ns = hr__now_ns() + RETRY_MS * MS;
        hr__fail(&p->why, HR_ERR_IO, "another dispatcher has the journal in %s",
                 hr__str_text(&p->place));
        return say_why(p, reterr);
    }
    HR_TRY(ask(p, "SELECT to_regclass('headrace_journal.about') IS NULL", got, sizeof got,
               reterr));
    if (strcmp(got, "t") == 0)
        HR_TRY(execute(p, schema, reterr));
    HR_TRY(check_version(p, reterr));
    HR_TRY(prepare(p, reterr));
    p->state = HELD;
    return HR_OK;
}

static bool postgres_is_lost(const struct hr_sql *sql)
{
    return ((const struct postgres *)sql)->state != HELD;
}

/* Connects until `until_ns` at most, and takes the journal. */
static enum hr_err reach(struct postgres *p, uint64_t until_ns, struct hr_error *reterr)
{
    struct hr_error error = {0};
    enum hr_err code;

    assert(p->state != HELD);
    if (p->state != CONNECTING && hr__now_ns() < p->retry_ns)
        return say_why(p, reterr);
    if (p->state == AWAY)
        dial(p);
    if (p->state == CONNECTING) {
        connect_on(p, until_ns);
        if (p->state == CONNECTING && p->wants != PGRES_POLLING_OK)
            return hr__fail(reterr, HR_ERR_IO, "connecting to the journal in %s",
                            hr__str_text(&p->place));
    }
    if (p->state == AWAY)
        return say_why(p, reterr);
    code = take(p, &error);
    if (code != HR_OK && p->state != WAITING && p->state != AWAY)
        leave(p, ""); /* its tables cannot be used */
    if (code != HR_OK) {
        p->why = error;
        return say_why(p, reterr);
    }
    return HR_OK;
}

static enum hr_err postgres_recover(struct hr_sql *sql, struct hr_error *reterr)
{
    return reach(of(sql), 0, reterr);
}

/* ---- what a journal does ---- */

static enum hr_err use(const struct postgres *p, struct hr_error *reterr)
{
    return p->state == HELD ? HR_OK : say_why(p, reterr);
}

/* All transactions are durable: the server's death must not undo what was told. */
static enum hr_err
postgres_begin(struct hr_sql *sql, bool durable, struct hr_error *reterr)
{
    (void)durable;
    HR_TRY(use(of(sql), reterr));
    return execute(of(sql), "BEGIN", reterr);
}

static enum hr_err postgres_commit(struct hr_sql *sql, struct hr_error *reterr)
{
    HR_TRY(use(of(sql), reterr));
    return execute(of(sql), "COMMIT", reterr);
}

static void postgres_roll_back(struct hr_sql *sql)
{
    struct postgres *p = of(sql);
    struct hr_error error = {0};

    if (p->state == HELD && execute(p, "ROLLBACK", &error) != HR_OK && p->state == HELD)
        leave(p, error.message);
}

#define WRONG_ROWS "wrong rows"
#define INT8 20 /* pg_type.dat: the types of numbers */
#define INT4 23

static enum hr_err read_rows(const struct postgres *p, const PGresult *result,
                             hr_sql_row_fn *row, void *user, struct hr_error *reterr)
{
    int count = hr__postgres.nfields(result);

    assert(count <= (int)HR_SQL_VALUES_MAX);
    for (int r = 0; r < hr__postgres.ntuples(result); r++) {
        struct hr_sql_value values[HR_SQL_VALUES_MAX] = {{0}};

        for (int i = 0; i < count; i++) {
            unsigned type = hr__postgres.ftype(result, i);
            const char *text = hr__postgres.getvalue(result, r, i);

            if (hr__postgres.getisnull(result, r, i))
                return damaged(p, WRONG_ROWS, reterr);
            if (type == INT8 || type == INT4)
                values[i].number = (uint64_t)strtoll(text, NULL, 10);
            else
                values[i].text = text;
        }
        HR_TRY(row(user, values, reterr));
    }
    return HR_OK;
}

static enum hr_err
postgres_run(struct hr_sql *sql, size_t statement, const struct hr_sql_value *values,
             size_t count, hr_sql_row_fn *row, void *user, struct hr_error *reterr)
{
    struct postgres *p = of(sql);
    const char *texts[HR_SQL_VALUES_MAX];
    char numbers[HR_SQL_VALUES_MAX][24], name[NAME_ROOM];
    PGresult *result = NULL;
    enum hr_err code = HR_OK;

    assert(count <= HR_SQL_VALUES_MAX);
    HR_TRY(use(p, reterr));
    for (size_t i = 0; i < count; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)values[i].number);
        texts[i] = values[i].text != NULL ? values[i].text : numbers[i];
    }
    name_statement(name, statement);
    HR_TRY(answer(
        p,
        hr__postgres.sendQueryPrepared(p->conn, name, (int)count, texts, NULL, NULL, 0),
        &result, reterr));
    if (row != NULL)
        code = read_rows(p, result, row, user, reterr);
    hr__postgres.clear(result);
    return code;
}

static enum hr_err postgres_damaged(const struct hr_sql *sql, struct hr_error *reterr)
{
    return damaged((const struct postgres *)sql, WRONG_ROWS, reterr);
}

static void postgres_close(struct hr_sql *sql)
{
    struct postgres *p = of(sql);

    if (p->conn != NULL)
        hr__postgres.finish(p->conn);
    hr__str_finish(&p->address);
    hr__str_finish(&p->place);
    hr__free(p);
}

static const struct hr_sql_kind kind = {.begin = postgres_begin,
                                        .commit = postgres_commit,
                                        .roll_back = postgres_roll_back,
                                        .run = postgres_run,
                                        .damaged = postgres_damaged,
                                        .is_lost = postgres_is_lost,
                                        .recover = postgres_recover,
                                        .close = postgres_close};

/* ---- opening ---- */

/* The host, port and database of an address, for messages: no password. */
static enum hr_err find_place(struct postgres *p, struct hr_error *reterr)
{
    char *why = NULL;
    PQconninfoOption *options =
        hr__postgres.conninfoParse(hr__str_text(&p->address), &why);

    if (options == NULL) {
        char line[200];

        copy_line(line, sizeof line, why != NULL ? why : "out of memory");
        hr__postgres.freemem(why);
        return hr__fail(reterr, HR_ERR_ARGUMENT, "the journal's address is none: %s",
                        line);
    }
    hr__str_addf(&p->place, "PostgreSQL");
    for (const PQconninfoOption *o = options; o->keyword != NULL; o++)
        if (o->val != NULL &&
            (strcmp(o->keyword, "host") == 0 || strcmp(o->keyword, "port") == 0 ||
             strcmp(o->keyword, "dbname") == 0))
            hr__str_addf(&p->place, " %s=%s", o->keyword, o->val);
    hr__postgres.conninfoFree(options);
    return hr__str_ok(&p->place) ? HR_OK
                                 : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

/* Waits for the connection; not for another dispatcher. */
static enum hr_err first(struct postgres *p, struct hr_error *reterr)
{
    uint64_t until = hr__now_ns() + OPEN_MS * MS;
    enum hr_err code;

    dial(p);
    do
        code = reach(p, until, reterr);
    while (p->state == CONNECTING && hr__now_ns() < until);
    return p->state == WAITING ? HR_OK : code;
}

static enum hr_err init(struct postgres *p, const char *address, struct hr_error *reterr)
{
    HR_TRY(hr__postgres_load(reterr));
    hr__str_addf(&p->address, "%s", address);
    if (!hr__str_ok(&p->address))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(find_place(p, reterr));
    return first(p, reterr);
}

enum hr_err
hr__postgres_open(const char *address, const struct hr_sql_statements *statements,
                  struct hr_sql **ret_sql, struct hr_error *reterr)
{
    struct postgres *p = hr__calloc(1, sizeof *p);
    enum hr_err code;

    if (p == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    p->sql.kind = &kind;
    p->statements = statements;
    hr__str_init(&p->address);
    hr__str_init(&p->place);
    code = init(p, address, reterr);
    if (code != HR_OK) {
        postgres_close(&p->sql);
        return code;
    }
    *ret_sql = &p->sql;
    return HR_OK;
}
