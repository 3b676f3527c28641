/*
 * tests/contract/contract.h - operators written outside the library.
 *
 * Each NAME_op.c in this folder is an operator and its tests, and needs no change
 * anywhere else: what the library promises to its own operators must hold for them, too.
 * CONTRACT_OP() adds the op to the registry of the program and of its worker processes;
 * contract_check() runs a graph in every way that must not change its bytes.
 */
#ifndef HR_TESTS_CONTRACT_H
#define HR_TESTS_CONTRACT_H

#include "op/op.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

void contract_add(const struct hr_op *op);

#define CONTRACT_OP(op)                                                                  \
    __attribute__((constructor(101))) static void contract_add_##op(void)                \
    {                                                                                    \
        contract_add(&(op));                                                             \
    }

/* A job with two epochs and a seed of this run, which skips bad records and lists them.
 */
struct outcome_job contract_job(const char *text);

/*
 * Checks that the graph gives one series of batches, and one ledger, inline, in 1, 2 and
 * 8 threads, with every step in worker processes, without composition, with a cut after
 * every node that allows one, with its plan as text, and resumed after every batch, under
 * the same plan and under others. Returns the outcome of the inline run.
 */
struct outcome *contract_check(struct outcome_job job);

/* All batches of an inline run, for looking into; unref them with contract_drop(). */
struct contract_batches {
    size_t count;
    struct hr_batch *items[1024];
};
void contract_take(const struct outcome_job *job, struct contract_batches *ret_batches);
void contract_drop(struct contract_batches *batches);
struct hr_field_view contract_field(const struct hr_batch *batch, const char *name);

/* A file of `lines` lines of up to `words_max` words, which are drawn from this run's
 * seed; some sentences end within a line, some lines are empty. Returns its path, and the
 * lines in *ret_text as one string (in static memory, valid until the next call). */
const char *contract_text(int lines, int words_max, const char **ret_text);

/* A line of a graph: text.tokenize_bpe whose tokens are the bytes of a text, with their
 * values as ids. */
const char *contract_bytes(void);

/* A job over these lines, followed by `nodes`; in static memory, valid until the next
 * call. */
struct outcome_job contract_lines(int lines, int words_max, const char *nodes);

#endif
