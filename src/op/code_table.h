/*
 * op/code_table.h - the user's code as a graph holds it, and as a node uses it.
 *
 * A table belongs to a graph and to its copies in other orders. It does not change once
 * the graph is frozen, so the pointers into it that opened nodes hold are good for as
 * long as one of these graphs.
 */
#ifndef HR_OP_CODE_TABLE_H
#define HR_OP_CODE_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "headrace/code.h"
#include "op/schema.h"

struct hr_code_entry {
    char *name, *identity, *stays;
    struct hr_code code; /* its strings are those above */
};

struct hr_code_table {
    atomic_uint refs;
    struct hr_code_entry *entries;
    size_t count;
    struct hr_code_host host; /* start is NULL when there is none */
};

/* An empty table with one reference. NULL when out of memory. */
HR_CHECK struct hr_code_table *hr__code_table_create(void);
/* Add or drop a reference; the last one releases all code and the host. NULL is fine for
 * the latter. Thread-safe. */
struct hr_code_table *hr__code_table_ref(struct hr_code_table *table);
void hr__code_table_unref(struct hr_code_table *table);

/* See hr_graph_code, hr_graph_code_host. */
HR_CHECK enum hr_err
hr__code_table_add(struct hr_code_table *table, const char *name,
                   const struct hr_code *code, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__code_table_host(struct hr_code_table *table, const struct hr_code_host *host,
                    struct hr_error *reterr);

/* On failure the message says how code is registered, with the nearest name. */
HR_CHECK enum hr_err
hr__code_table_find(const struct hr_code_table *table, const char *name,
                    const struct hr_code **ret_code, struct hr_error *reterr);

enum hr_code_variant {
    HR_CODE_THREADS,
    HR_CODE_INLINE, /* never two calls of the node at once */
    HR_CODE_PROCESSES,
};

/* A code node, opened. Its bound fields are the inputs, then the outputs. */
struct hr_code_use {
    const struct hr_code *code;
    const char *name; /* of the code */
    enum hr_code_variant variant;
    pthread_mutex_t lock; /* INLINE: held around a run of calls */
    size_t input_count, output_count;
    const struct hr_field *input_fields[HR_SCHEMA_FIELDS_MAX];
    const struct hr_field *output_fields[HR_SCHEMA_FIELDS_MAX];
    struct hr_field fields[]; /* inputs, outputs: what the two lists point into */
};

#endif
