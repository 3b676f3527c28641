/*
 * fleet/journal.h - what a dispatcher of independent consumers (svc/bind.h) must not
 * lose: the fold of its rows, in a SQLite file.
 *
 * Of a job it holds the consumers by name with their generations and committed
 * checkpoints, and the splits that are bound or committed in part. Splits before the
 * first uncommitted one are gone, so a job takes at most a window of them. One connection
 * in one thread; the file is locked against a second dispatcher. docs/formats/journal.md
 * has the tables.
 *
 * All functions fail with HR_ERR_IO if the file cannot be read or written (a full disk),
 * and with HR_ERR_FORMAT if it is damaged. Then nothing was changed.
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

/* Opens the journal in a folder, which is made if it is missing. `power`: BIND and COMMIT
 * survive a power cut, too, at the price of an fsync each; GENERATION and names do in any
 * case. HR_ERR_STATE: another dispatcher uses it; HR_ERR_FORMAT: it is damaged, or no
 * journal; HR_ERR_UNSUPPORTED: it is of a later release, or there is no SQLite. */
HR_CHECK enum hr_err
hr__journal_open(const char *folder, bool power, struct hr_journal **ret_journal,
                 struct hr_error *reterr);
/* NULL is allowed. */
void hr__journal_close(struct hr_journal *journal);

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

/* Writes the version of SQLite. HR_ERR_STATE if this build leaves it out,
 * HR_ERR_UNSUPPORTED if it cannot be loaded. */
HR_CHECK enum hr_err hr__sqlite_version(char *text, size_t room, struct hr_error *reterr);

#endif
