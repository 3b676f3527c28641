/*
 * fleet/journal.c - rows of binders as tables of a database (sql.h).
 *
 * A table per kind of thing instead of a list of rows: what is committed is deleted, so
 * the journal does not grow with the length of a job, and a restart reads a window of
 * splits.
 */
#include "fleet/journal.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/kill_point.h"
#include "fleet/fleet.h"
#include "fleet/sql.h"

enum statement {
    FIND_NUMBER,
    ADD_NUMBER,
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
    [FIND_NUMBER] = "SELECT number FROM mark",
    [ADD_NUMBER] = "INSERT INTO mark (number) VALUES (?1)",
    [FIND_JOB] = "SELECT \"end\", split, first, name, tenant FROM job WHERE id = ?1",
    [ADD_JOB] = "INSERT INTO job (id, \"end\", split, first, name, tenant, used)"
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

struct hr_journal {
    struct hr_sql *sql;
    uint64_t number; /* 0: it is not known, and the journal is lost */
};

static bool is_lost(const struct hr_journal *j)
{
    return j->sql->kind->is_lost != NULL && j->sql->kind->is_lost(j->sql);
}

static uint64_t now_s(void)
{
    return hr__wall_ns() / 1000000000u;
}

/* ---- statements and transactions ---- */

#define NUMBER(number_) ((struct hr_sql_value){.number = (number_)})
#define TEXT(text_) ((struct hr_sql_value){.text = (text_)})

/* Of a statement that returns no rows. */
static enum hr_err
step(struct hr_journal *j, enum statement which, const struct hr_sql_value *values,
     size_t count, struct hr_error *reterr)
{
    return j->sql->kind->run(j->sql, which, values, count, NULL, NULL, reterr);
}
#define STEP(j, which, reterr, ...)                                                      \
    step((j), (which), (const struct hr_sql_value[]){__VA_ARGS__},                       \
         sizeof(struct hr_sql_value[]){__VA_ARGS__} / sizeof(struct hr_sql_value),       \
         (reterr))

static enum hr_err damaged(const struct hr_journal *j, struct hr_error *reterr)
{
    return j->sql->kind->damaged(j->sql, reterr);
}

/* `durable`: it survives a power cut. */
static enum hr_err begin(struct hr_journal *j, bool durable, struct hr_error *reterr)
{
    return j->sql->kind->begin(j->sql, durable, reterr);
}

/* Ends it: commits if `code` is HR_OK. Returns that, or why it cannot be committed. */
static enum hr_err end(struct hr_journal *j, enum hr_err code, struct hr_error *reterr)
{
    if (code == HR_OK) {
        HR_KILL_POINT("journal.filled");
        code = j->sql->kind->commit(j->sql, reterr);
    }
    if (code != HR_OK)
        j->sql->kind->roll_back(j->sql);
    else
        HR_KILL_POINT("journal.written");
    return code;
}

/* ---- opening ---- */

#define NUMBER_MAX HR_FRAME_POSITION_MAX

static enum hr_err
read_number(void *user, const struct hr_sql_value *values, struct hr_error *reterr)
{
    struct hr_journal *j = user;

    if (values[0].text != NULL || values[0].number == 0 || values[0].number >= NUMBER_MAX)
        return damaged(j, reterr);
    j->number = values[0].number;
    return HR_OK;
}

/* Draws it for a new journal. */
static enum hr_err find_number(struct hr_journal *j, struct hr_error *reterr)
{
    uint64_t number;

    assert(j->number == 0);
    HR_TRY(j->sql->kind->run(j->sql, FIND_NUMBER, NULL, 0, read_number, j, reterr));
    if (j->number != 0)
        return HR_OK;
    HR_TRY(hr__fleet_nonce(&number, reterr));
    number = number % (NUMBER_MAX - 1) + 1;
    HR_TRY(begin(j, true, reterr));
    HR_TRY(end(j, STEP(j, ADD_NUMBER, reterr, NUMBER(number)), reterr));
    j->number = number;
    return HR_OK;
}

static bool is_address(const char *where)
{
    return strncmp(where, "postgresql://", 13) == 0 ||
           strncmp(where, "postgres://", 11) == 0;
}

enum hr_err hr__journal_open(const char *where, bool power,
                             struct hr_journal **ret_journal, struct hr_error *reterr)
{
    static const struct hr_sql_statements statements = {texts, STATEMENTS};
    struct hr_journal *j = hr__calloc(1, sizeof *j);
    enum hr_err code;

    if (j == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = is_address(where)
               ? hr__postgres_open(where, &statements, &j->sql, reterr)
               : hr__sqlite_open(where, power, &statements, &j->sql, reterr);
    if (code != HR_OK) {
        hr__free(j);
        return code;
    }
    if (!is_lost(j))
        code = find_number(j, reterr);
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
    j->sql->kind->close(j->sql);
    hr__free(j);
}

uint64_t hr__journal_number(const struct hr_journal *j)
{
    assert(j->number != 0);
    return j->number;
}

bool hr__journal_is_lost(const struct hr_journal *j)
{
    return j->number == 0 || is_lost(j);
}

enum hr_err hr__journal_recover(struct hr_journal *j, struct hr_error *reterr)
{
    j->number = 0; /* another one may be in its place */
    if (is_lost(j))
        HR_TRY(j->sql->kind->recover(j->sql, reterr));
    return find_number(j, reterr);
}

/* ---- jobs ---- */

/* Where rows of a statement go. */
struct reading {
    const struct hr_journal *journal;
    struct hr_journal_job *job;
    bool found;
    struct hr_binder *binder;
    hr_journal_named_fn *named;
    void *user;
    uint32_t rank;
};

/* HR_ERR_FORMAT if it is none, or too long. */
static enum hr_err copy_text(const struct hr_journal *j, const char *text, char *to,
                             size_t room, struct hr_error *reterr)
{
    if (text == NULL || strlen(text) >= room)
        return damaged(j, reterr);
    memcpy(to, text, strlen(text) + 1);
    return HR_OK;
}

static enum hr_err
read_job(void *user, const struct hr_sql_value *values, struct hr_error *reterr)
{
    struct reading *r = user;

    r->found = true;
    r->job->end = values[0].number;
    r->job->split = values[1].number;
    r->job->first = values[2].number;
    HR_TRY(
        copy_text(r->journal, values[3].text, r->job->name, sizeof r->job->name, reterr));
    return copy_text(r->journal, values[4].text, r->job->tenant, sizeof r->job->tenant,
                     reterr);
}

enum hr_err hr__journal_find(struct hr_journal *j, uint64_t id,
                             struct hr_journal_job *ret_job, struct hr_error *reterr)
{
    struct hr_journal_job job = {.id = id};
    struct reading reading = {.journal = j, .job = &job};

    HR_TRY(
        j->sql->kind->run(j->sql, FIND_JOB, &NUMBER(id), 1, read_job, &reading, reterr));
    if (!reading.found)
        return HR_ERR_NOT_FOUND;
    *ret_job = job;
    return HR_OK;
}

enum hr_err hr__journal_add(struct hr_journal *j, const struct hr_journal_job *job,
                            struct hr_error *reterr)
{
    HR_TRY(begin(j, true, reterr));
    return end(j,
               STEP(j, ADD_JOB, reterr, NUMBER(job->id), NUMBER(job->end),
                    NUMBER(job->split), TEXT(job->name), TEXT(job->tenant),
                    NUMBER(now_s())),
               reterr);
}

enum hr_err hr__journal_name(struct hr_journal *j, uint64_t job, uint32_t rank,
                             const char *name, struct hr_error *reterr)
{
    HR_TRY(begin(j, true, reterr));
    return end(j, STEP(j, ADD_CONSUMER, reterr, NUMBER(job), NUMBER(rank), TEXT(name)),
               reterr);
}

/* ---- rows ---- */

static enum hr_err write_bind(struct hr_journal *j, const struct hr_binder *binder,
                              const struct hr_row *row, struct hr_error *reterr)
{
    uint64_t number = row->ranges[0].from / binder->options.split;

    return STEP(j, BIND, reterr, NUMBER(row->job), NUMBER(number), NUMBER(row->rank + 1),
                NUMBER(row->ranges[0].from - number * binder->options.split));
}

static enum hr_err write_commit(struct hr_journal *j, const struct hr_binder *binder,
                                const struct hr_row *row, struct hr_error *reterr)
{
    uint64_t split = binder->options.split;

    HR_TRY(STEP(j, COMMIT_CONSUMER, reterr, NUMBER(row->job), NUMBER(row->rank),
                NUMBER(row->number)));
    for (uint32_t i = 0; i < row->count; i++) {
        struct hr_frame_range range = row->ranges[i];

        while (range.from < range.until) {
            uint64_t number = range.from / split, next = (number + 1) * split;
            uint64_t until = range.until < next ? range.until : next;

            HR_TRY(STEP(j, COMMIT_SPLIT, reterr, NUMBER(row->job), NUMBER(number),
                        NUMBER(until - number * split)));
            range.from = until;
        }
    }
    HR_TRY(STEP(j, FORGET_SPLITS, reterr, NUMBER(row->job), NUMBER(binder->first)));
    return STEP(j, MOVE_FIRST, reterr, NUMBER(row->job), NUMBER(binder->first),
                NUMBER(now_s()));
}

static enum hr_err write_row(struct hr_journal *j, const struct hr_binder *binder,
                             const struct hr_row *row, struct hr_error *reterr)
{
    if (row->kind == HR_ROW_BIND)
        return write_bind(j, binder, row, reterr);
    if (row->kind == HR_ROW_COMMIT)
        return write_commit(j, binder, row, reterr);
    assert(row->kind == HR_ROW_GENERATION || row->kind == HR_ROW_EVICT);
    HR_TRY(STEP(j, GENERATION, reterr, NUMBER(row->job), NUMBER(row->rank),
                NUMBER(row->generation), NUMBER(row->number)));
    if (row->kind == HR_ROW_EVICT)
        return STEP(j, UNBIND, reterr, NUMBER(row->job), NUMBER(row->rank + 1));
    return STEP(j, TOUCH, reterr, NUMBER(row->job), NUMBER(now_s()));
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
read_consumer(void *user, const struct hr_sql_value *values, struct hr_error *reterr)
{
    struct reading *r = user;
    struct hr_row row = {.kind = HR_ROW_GENERATION, .job = r->binder->options.job};

    row.rank = r->rank;
    row.generation = (uint32_t)values[2].number;
    row.number = values[3].number;
    if (values[1].text == NULL || values[0].number != r->rank)
        return damaged(r->journal, reterr);
    HR_TRY(r->named(r->user, r->rank, values[1].text, reterr));
    HR_TRY(hr__bind_replay(r->binder, &row, reterr));
    row.kind = HR_ROW_COMMIT;
    row.number = values[4].number;
    r->rank++;
    return hr__bind_replay(r->binder, &row, reterr);
}

/* A row of the table as the rows of the journal that led to it. */
static enum hr_err
read_split(void *user, const struct hr_sql_value *values, struct hr_error *reterr)
{
    const struct reading *r = user;
    struct hr_binder *binder = r->binder;
    uint64_t number = values[0].number, owner = values[1].number,
             committed = values[2].number;
    uint32_t rank = owner > 0 ? (uint32_t)owner - 1 : 0;
    uint64_t from = number * binder->options.split;
    struct hr_row row = {.kind = HR_ROW_BIND, .job = binder->options.job, .count = 1};

    if (owner > binder->options.consumers || committed > binder->options.split ||
        number > binder->splits)
        return damaged(r->journal, reterr);
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

enum hr_err
hr__journal_restore(struct hr_journal *j, struct hr_binder *binder,
                    hr_journal_named_fn *named, void *user, struct hr_error *reterr)
{
    struct reading reading = {
        .journal = j, .binder = binder, .named = named, .user = user};
    const struct hr_sql_value id = NUMBER(binder->options.job);
    struct hr_journal_job job;

    HR_TRY(hr__journal_find(j, id.number, &job, reterr));
    HR_TRY(hr__bind_restore(binder, job.first, reterr));
    HR_TRY(j->sql->kind->run(j->sql, LIST_CONSUMERS, &id, 1, read_consumer, &reading,
                             reterr));
    return j->sql->kind->run(j->sql, LIST_SPLITS, &id, 1, read_split, &reading, reterr);
}

/* ---- its size ---- */

enum hr_err hr__journal_touch(struct hr_journal *j, uint64_t id, struct hr_error *reterr)
{
    HR_TRY(begin(j, false, reterr));
    return end(j, STEP(j, TOUCH, reterr, NUMBER(id), NUMBER(now_s())), reterr);
}

enum hr_err
hr__journal_expire(struct hr_journal *j, uint64_t seconds, struct hr_error *reterr)
{
    uint64_t now = now_s(), before = now > seconds ? now - seconds : 0;
    enum hr_err code;

    HR_TRY(begin(j, false, reterr));
    code = STEP(j, EXPIRE_SPLITS, reterr, NUMBER(before));
    if (code == HR_OK)
        code = STEP(j, EXPIRE_CONSUMERS, reterr, NUMBER(before));
    if (code == HR_OK)
        code = STEP(j, EXPIRE_JOBS, reterr, NUMBER(before));
    return end(j, code, reterr);
}
