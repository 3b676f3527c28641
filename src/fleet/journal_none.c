/*
 * fleet/journal_none.c - journal.h in a build without SQLite: none is ever opened.
 */
#include "core/error.h"
#include "fleet/journal.h"

static enum hr_err refuse(struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "this library was built without SQLite, which a journal needs");
}

enum hr_err hr__journal_open(const char *where, bool power,
                             struct hr_journal **ret_journal, struct hr_error *reterr)
{
    (void)where;
    (void)power;
    *ret_journal = NULL;
    return refuse(reterr);
}

void hr__journal_close(struct hr_journal *journal)
{
    (void)journal;
}

uint64_t hr__journal_number(const struct hr_journal *journal)
{
    (void)journal;
    return 0;
}

bool hr__journal_is_lost(const struct hr_journal *journal)
{
    (void)journal;
    return false;
}

enum hr_err hr__journal_recover(struct hr_journal *journal, struct hr_error *reterr)
{
    (void)journal;
    return refuse(reterr);
}

enum hr_err hr__journal_find(struct hr_journal *journal, uint64_t id,
                             struct hr_journal_job *ret_job, struct hr_error *reterr)
{
    (void)journal;
    (void)id;
    (void)ret_job;
    return refuse(reterr);
}

enum hr_err hr__journal_add(struct hr_journal *journal, const struct hr_journal_job *job,
                            struct hr_error *reterr)
{
    (void)journal;
    (void)job;
    return refuse(reterr);
}

enum hr_err hr__journal_name(struct hr_journal *journal, uint64_t job, uint32_t rank,
                             const char *name, struct hr_error *reterr)
{
    (void)journal;
    (void)job;
    (void)rank;
    (void)name;
    return refuse(reterr);
}

enum hr_err
hr__journal_restore(struct hr_journal *journal, struct hr_binder *binder,
                    hr_journal_named_fn *named, void *user, struct hr_error *reterr)
{
    (void)journal;
    (void)binder;
    (void)named;
    (void)user;
    return refuse(reterr);
}

enum hr_err hr__journal_write(struct hr_journal *journal, const struct hr_binder *binder,
                              const struct hr_actions *actions, struct hr_error *reterr)
{
    (void)journal;
    (void)binder;
    (void)actions;
    return refuse(reterr);
}

enum hr_err
hr__journal_touch(struct hr_journal *journal, uint64_t id, struct hr_error *reterr)
{
    (void)journal;
    (void)id;
    return refuse(reterr);
}

enum hr_err
hr__journal_expire(struct hr_journal *journal, uint64_t seconds, struct hr_error *reterr)
{
    (void)journal;
    (void)seconds;
    return refuse(reterr);
}
