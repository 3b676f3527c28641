/*
 * fleet/journal.h - what a dispatcher of independent consumers (svc/bind.h) must not
 * lose: the fold of its rows, in a SQLite file or in a database of PostgreSQL.
 *
 * Of a job it holds the consumers by name with their generations and committed
 * checkpoints, and the splits that are bound or committed in part. Splits before the
 * first uncommitted one are gone, so a job takes at most a window of them. One connection
 * in one thread. docs/formats/journal.md has the tables.
 *
 * One dispatcher at a time has a journal. A file is locked against a second one. Of those
 * that share a database, one has it, and the others are there for when it is gone: for
 * them, and for one that lost its connection, the journal is lost.
 *
 * All functions fail with HR_ERR_IO if the journal cannot be read or written (a full
 * disk), or is lost, and with HR_ERR_FORMAT if it is damaged. Then nothing was changed,
 * unless the connection was lost while it was committed.
 */
#ifndef HR_FLEET_JOURNAL_H
#define HR_FLEET_JOURNAL_H

#include "fleet/job.h"
#include "net/tenants.h"
#include "svc/bind.h"

#define HR_JOURNAL_FILE "journal.sqlite"

struct hr_journal;

struct hr_journal_job {
    uint64_t id, end, split; /* as of struct hr_bind_options */
    uint64_t first;          /* split that is not committed */
    char name[HR_JOB_NAME_MAX + 1];
    char tenant[HR_TENANT_NAME_MAX + 1]; /* "": none */
};

/* Opens the journal in a folder, which is made if it is missing, or in the database at an
 * address, "postgresql://...". `power`: in a folder, BIND and COMMIT survive a power cut,
 * too, at the price of an fsync each; GENERATION and names do in any case, and in a
 * database all does. HR_ERR_STATE: another dispatcher uses the folder; HR_ERR_FORMAT: it
 * is damaged, or no journal; HR_ERR_UNSUPPORTED: it is of a later release, or there is no
 * SQLite or libpq; HR_ERR_ARGUMENT: the address is none. */
HR_CHECK enum hr_err
hr__journal_open(const char *where, bool power, struct hr_journal **ret_journal,
                 struct hr_error *reterr);
/* NULL is allowed. */
void hr__journal_close(struct hr_journal *journal);

/* Its number, which is drawn when it is made; not of one that is lost. Two dispatchers
 * share a journal if it is the same. */
uint64_t hr__journal_number(const struct hr_journal *journal);

/* Whether another dispatcher may have written to it: what was read of it is out of date,
 * and it can only be closed or recovered. */
bool hr__journal_is_lost(const struct hr_journal *journal);
/* Gets a lost one back if that needs no waiting; else fails with HR_ERR_IO, and is to be
 * called again. */
HR_CHECK enum hr_err
hr__journal_recover(struct hr_journal *journal, struct hr_error *reterr);

/* HR_ERR_NOT_FOUND, without a message. */
HR_CHECK enum hr_err
hr__journal_find(struct hr_journal *journal, uint64_t id, struct hr_journal_job *ret_job,
                 struct hr_error *reterr);
HR_CHECK enum hr_err
hr__journal_add(struct hr_journal *journal, const struct hr_journal_job *job,
                struct hr_error *reterr);

/* Gives a consumer its rank, the next one of its job. */
HR_CHECK enum hr_err
hr__journal_name(struct hr_journal *journal, uint64_t job, uint32_t rank,
                 const char *name, struct hr_error *reterr);

/* Restores a binder that was initialised with a found job; calls `named` for each
 * consumer, in order of ranks. */
typedef enum hr_err
hr_journal_named_fn(void *user, uint32_t rank, const char *name, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__journal_restore(struct hr_journal *journal, struct hr_binder *binder,
                    hr_journal_named_fn *named, void *user, struct hr_error *reterr);

/* Writes the rows among a binder's actions, all or none. */
HR_CHECK enum hr_err
hr__journal_write(struct hr_journal *journal, const struct hr_binder *binder,
                  const struct hr_actions *actions, struct hr_error *reterr);

/* A job is in use. Removes the jobs that have not been, written to or touched, for
 * `seconds`. */
HR_CHECK enum hr_err
hr__journal_touch(struct hr_journal *journal, uint64_t id, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__journal_expire(struct hr_journal *journal, uint64_t seconds, struct hr_error *reterr);

/* Writes the version of SQLite or libpq. HR_ERR_STATE if this build leaves it out,
 * HR_ERR_UNSUPPORTED if it cannot be loaded. */
HR_CHECK enum hr_err hr__sqlite_version(char *text, size_t room, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__postgres_version(char *text, size_t room, struct hr_error *reterr);

#endif
