/*
 * ops/join_pairs.h - which records of two inputs have equal keys.
 */
#ifndef HR_OPS_JOIN_PAIRS_H
#define HR_OPS_JOIN_PAIRS_H

#include "op/op.h"
#include "ops/join_table.h"

enum { HR_JOIN_LEFT, HR_JOIN_RIGHT };

/* Pairs in the order of the left input, and for one left record in that of the right
 * input. */
struct hr_join_pairs {
    uint64_t count, alone;                  /* alone: those without a right record */
    uint32_t *at[2];                        /* position in each input, or HR_JOIN_NONE */
    uint64_t records[2], used[2], empty[2]; /* of each input; empty: without a key */
};

/* Reads the keys of an input. */
struct hr_join_reader {
    const struct hr_keys *keys;
    const char *by;
    bool integers;
    struct hr_str text;
    int64_t number; /* the last key */
};

/* Lists the pairs of records with equal keys; with `all`, left records without one come
 * alone. Without, fails if there are no pairs and both inputs have records. `pairs` is
 * zeroed; call hr__join_pairs_finish() also after failure. */
HR_CHECK enum hr_err
hr__join_pairs_make(struct hr_join_reader *left, struct hr_join_reader *right, bool all,
                    struct hr_join_pairs *pairs, struct hr_error *error);
void hr__join_pairs_finish(struct hr_join_pairs *pairs);

#endif
