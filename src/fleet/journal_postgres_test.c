/*
 * fleet/journal_postgres_test.c - the journal in a server of PostgreSQL, which others
 * use, too, and which goes away.
 */
#include "fleet/journal_test_util.h"

#include <dlfcn.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "tests/support/server.h"

static const char *address;

/* libpq without the driver. */
static struct {
    __typeof__(PQconnectdb) *connectdb;
    __typeof__(PQexec) *exec;
    __typeof__(PQresultStatus) *resultStatus;
    __typeof__(PQclear) *clear;
    __typeof__(PQfinish) *finish;
} pq;

static void find(void *library, const char *name, void *to)
{
    void *symbol = dlsym(library, name);

    CHECK(symbol != NULL);
    memcpy(to, &symbol, sizeof symbol);
}

static void begin_server(void)
{
    void *library = dlopen("libpq.so.5", RTLD_NOW);

    if (library == NULL)
        SKIP("there is no libpq");
    if (address != NULL)
        return;
    address = postgres_start();
    find(library, "PQconnectdb", &pq.connectdb);
    find(library, "PQexec", &pq.exec);
    find(library, "PQresultStatus", &pq.resultStatus);
    find(library, "PQclear", &pq.clear);
    find(library, "PQfinish", &pq.finish);
}

static void query(const char *text)
{
    PGconn *conn = pq.connectdb(address);
    PGresult *result = pq.exec(conn, text);

    CHECK(pq.resultStatus(result) == PGRES_COMMAND_OK ||
          pq.resultStatus(result) == PGRES_TUPLES_OK);
    pq.clear(result);
    pq.finish(conn);
}

static const char *new_place(void)
{
    query("SET client_min_messages = error; DROP SCHEMA IF EXISTS headrace_journal "
          "CASCADE");
    return address;
}

#define END_SESSIONS                                                                     \
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"                             \
    " WHERE application_name = 'headrace dispatcher'"

TEST(a_restored_binder_is_the_one_that_was_journalled)
{
    begin_server();
    check_restored(new_place, 3);
}

TEST(jobs_are_found_and_forgotten_when_nobody_uses_them)
{
    begin_server();
    check_jobs(new_place);
}

TEST(one_of_two_dispatchers_has_the_journal)
{
    struct hr_journal *first, *second;
    struct hr_journal_job job = job_of(), found;
    struct hr_error error = {0};

    begin_server();
    first = open_in(new_place());
    CHECK_OK(hr__journal_open(address, false, &second, &error));
    CHECK(!hr__journal_is_lost(first) && hr__journal_is_lost(second));
    CHECK_OK(hr__journal_add(first, &job, &error));
    CHECK_ERR(HR_ERR_IO, hr__journal_recover(second, &error));
    CHECK_HAS(error.message, "another dispatcher has the journal");
    CHECK_ERR(HR_ERR_IO, hr__journal_find(second, JOB, &found, &error));
    CHECK_ERR(HR_ERR_IO, hr__journal_touch(second, JOB, &error));
    hr__journal_close(first);
    recover(second);
    CHECK_OK(hr__journal_find(second, JOB, &found, &error));
    hr__journal_close(second);
}

/* Whether the last event has rows for the journal. */
static bool writes(void)
{
    for (size_t i = 0; i < actions.count; i++)
        if (actions.items[i].kind == HR_ACTION_JOURNAL)
            return true;
    return false;
}

/* A dispatcher that is taken to be dead, and lives. */
TEST(who_lost_the_journal_writes_no_more)
{
    struct hr_journal *first, *second;
    struct hr_error error = {0};
    struct hr_binder other;

    begin_server();
    hr__rng_init(&rng, check_seed(), 0, 0);
    begin();
    first = open_in(new_place());
    add_names(first);
    for (int i = 0; i < 10; i++) {
        act();
        CHECK_OK(hr__journal_write(first, &binder, &actions, &error));
    }
    restore(first, &other);
    query(END_SESSIONS);
    second = open_in(address);
    do
        act();
    while (!writes());
    CHECK_ERR(HR_ERR_IO, hr__journal_write(first, &binder, &actions, &error));
    CHECK_HAS(error.message, "the journal in PostgreSQL");
    CHECK(hr__journal_is_lost(first));
    hr__bind_finish(&binder);
    restore(second, &binder);
    CHECK(agree(&binder, &other));
    hr__bind_finish(&other);
    hr__bind_finish(&binder);
    hr__journal_close(first);
    hr__journal_close(second);
}

/* Ends the sessions a moment later. */
static void *end_sessions(void *user)
{
    nanosleep(&(struct timespec){.tv_nsec = *(long *)user}, NULL);
    query(END_SESSIONS);
    return NULL;
}

/* Follows the binder until sessions end; false if the job did before. */
static bool fail_once(struct hr_journal *journal)
{
    long wait_ns = (long)below(30000000);
    struct held before, after, now;
    struct hr_error error = {0};
    struct hr_binder other;
    pthread_t thread;
    bool failed = false;

    CHECK_EQ_INT(pthread_create(&thread, NULL, end_sessions, &wait_ns), 0);
    while (!failed && !hr__bind_is_done(&binder)) {
        before = held_by(&binder);
        act();
        failed = hr__journal_write(journal, &binder, &actions, &error) != HR_OK;
    }
    CHECK_EQ_INT(pthread_join(thread, NULL), 0);
    after = held_by(&binder);
    if (failed) {
        CHECK_EQ_INT(error.code, HR_ERR_IO);
        recover(journal);
        restore(journal, &other);
        now = held_by(&other);
        CHECK(same(&now, &before) || same(&now, &after));
        hr__bind_finish(&other);
    }
    return failed;
}

TEST(a_session_that_ends_at_any_moment_leaves_whole_events)
{
    int failed = 0;

    begin_server();
    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int trial = 0; trial < 10; trial++) {
        struct hr_journal *journal = open_in(new_place());

        begin();
        add_names(journal);
        failed += fail_once(journal);
        hr__bind_finish(&binder);
        hr__journal_close(journal);
    }
    CHECK(failed > 0);
}

static void check_refused_place(const char *where, enum hr_err code, const char *part)
{
    struct hr_journal *journal = NULL;
    struct hr_error error = {0};

    CHECK_ERR(code, hr__journal_open(where, false, &journal, &error));
    CHECK_HAS(error.message, part);
    CHECK(strstr(error.message, "secret") == NULL);
    CHECK(journal == NULL);
}

TEST(what_is_no_journal_or_cannot_be_reached_is_refused)
{
    begin_server();
    hr__journal_close(open_in(new_place()));
    query("UPDATE headrace_journal.about SET version = 9");
    check_refused_place(address, HR_ERR_UNSUPPORTED, "of version 9");
    new_place();
    query("CREATE SCHEMA headrace_journal; CREATE TABLE headrace_journal.job (id TEXT)");
    check_refused_place(address, HR_ERR_FORMAT, "is damaged");
    check_refused_place("postgresql://me:secret@127.0.0.1:1/jobs", HR_ERR_IO,
                        "cannot reach the journal in PostgreSQL dbname=jobs "
                        "host=127.0.0.1 port=1: ");
    check_refused_place("postgresql://me:secret@h:port/jobs", HR_ERR_IO, "port");
    check_refused_place("postgresql://[::1", HR_ERR_ARGUMENT,
                        "the journal's address is none");
    new_place();
}
