/*
 * fleet/sql.h - the databases that can keep a journal (journal.h): one connection, of one
 * thread, with the journal's tables and prepared statements.
 */
#ifndef HR_FLEET_SQL_H
#define HR_FLEET_SQL_H

#include "headrace/base.h"

#define HR_SQL_VALUES_MAX 8u

/* A parameter, or a column of a row. */
struct hr_sql_value {
    uint64_t number;  /* kept as a signed number */
    const char *text; /* NULL: a number */
};

/* Called for each row; the values are valid until it returns. An error ends the
 * statement. */
typedef enum hr_err
hr_sql_row_fn(void *user, const struct hr_sql_value *values, struct hr_error *reterr);

struct hr_sql {
    const struct hr_sql_kind *kind;
};

/*
 * Functions fail with HR_ERR_IO if the database cannot be used now, with HR_ERR_FORMAT if
 * it is damaged, and with HR_ERR_MEMORY.
 */
struct hr_sql_kind {
    /* A transaction. `durable`: it survives a power cut. One of which `commit` fails is
     * to be rolled back, too. */
    HR_CHECK enum hr_err (*begin)(struct hr_sql *sql, bool durable,
                                  struct hr_error *reterr);
    HR_CHECK enum hr_err (*commit)(struct hr_sql *sql, struct hr_error *reterr);
    void (*roll_back)(struct hr_sql *sql);

    /* Runs a statement by its number. `row` is NULL if it returns no rows. */
    HR_CHECK enum hr_err (*run)(struct hr_sql *sql, size_t statement,
                                const struct hr_sql_value *values, size_t count,
                                hr_sql_row_fn *row, void *user, struct hr_error *reterr);

    /* Fails because the rows cannot be those of a journal. */
    enum hr_err (*damaged)(const struct hr_sql *sql, struct hr_error *reterr);

    /* journal.h; NULL: never lost. */
    bool (*is_lost)(const struct hr_sql *sql);
    HR_CHECK enum hr_err (*recover)(struct hr_sql *sql, struct hr_error *reterr);

    void (*close)(struct hr_sql *sql);
};

/* Texts of statements in SQLite's form, with ?1 and on for parameters. */
struct hr_sql_statements {
    const char *const *texts;
    size_t count;
};

/* sql_sqlite.c: a file in a folder, which is made if it is missing. As hr__journal_open.
 */
HR_CHECK enum hr_err hr__sqlite_open(const char *folder, bool power,
                                     const struct hr_sql_statements *statements,
                                     struct hr_sql **ret_sql, struct hr_error *reterr);

/* sql_postgres.c: a database at an address, "postgresql://...". Waits up to 10 s for a
 * connection. HR_ERR_ARGUMENT for an address that is none. */
HR_CHECK enum hr_err
hr__postgres_open(const char *address, const struct hr_sql_statements *statements,
                  struct hr_sql **ret_sql, struct hr_error *reterr);

#endif
