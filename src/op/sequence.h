/*
 * op/sequence.h - ops that see records in order: batchers, windows, packers, take and
 * skip after a filter.
 *
 * The engine calls these hooks from one thread at a time, in the order of the records,
 * and knows nothing else about the op. An op holds a bounded number of records or bytes;
 * what it holds is part of the iterator's state: either save() writes it down, or, for an
 * op whose `replays` is set, the engine makes it again by running the same inputs.
 *
 *     begin      an epoch begins
 *     add        a record; the verdict says what becomes of it
 *     next       while the op has records to give (HR_SEQUENCE_READY, or after flush)
 *     flush      the epoch ends: next() gives what is still held
 *     save or number, restore, end
 */
#ifndef HR_OP_SEQUENCE_H
#define HR_OP_SEQUENCE_H

#include "core/error.h"
#include "core/str.h"
#include "headrace/engine.h"
#include "op/record_id.h"
#include "op/schema.h"
#include "op/value.h"

enum hr_sequence_verdict {
    HR_SEQUENCE_PASS,  /* the record is an output as it is */
    HR_SEQUENCE_DROP,  /* it is no output; its values are left to the caller */
    HR_SEQUENCE_HELD,  /* its values were taken */
    HR_SEQUENCE_READY, /* HELD, and next() has outputs to give */
};

/* A record on its way through sequencers: values in the order of the schema. */
struct hr_sequence_record {
    struct hr_value *values;
    struct hr_record_id id;
    int64_t records; /* 1; of a batch: how many it has */
};

/* What begin() may look at. Everything outlives the sequencer but `error`. */
struct hr_sequence_begin {
    const void *params;
    void *state;                            /* of the op's open() */
    const struct hr_schema *input, *output; /* before and after the node */
    struct hr_pool *pool;
    uint64_t seed;
    uint64_t draw_id; /* of the node, for random draws */
    uint32_t epoch;
    uint64_t rank, world; /* 0 of 1, but for the node of which ranks divide the outputs */
    enum hr_even even;    /* with ranks */
    struct hr_error *error; /* never NULL */
};

/* What ranks may divide of a node. */
enum hr_sequence_ranks {
    HR_RANKS_INPUTS,  /* its inputs, as its outputs */
    HR_RANKS_OUTPUTS, /* only its outputs, because what it makes of records depends on
                         which are neighbours, or are the first: of every `world` outputs
                         it gives number `rank` (hr_sequence_begin) */
    HR_RANKS_ROUNDS,  /* only its outputs, which come in rounds of one for each rank: it
                         gives this rank's. Ranks have equally many rounds, and after
                         equally many they have seen the same inputs; but with
                         HR_EVEN_NONE rounds at the end of an epoch may miss some ranks */
};

enum hr_sequence_flush {
    HR_FLUSH_EPOCH, /* no more records in this epoch */
    HR_FLUSH_LIMIT, /* the run's limit on records is reached: give what is held */
};

/* Outputs that are runs of `size` consecutive inputs. */
struct hr_sequence_runs {
    int64_t size;
    bool drop_last; /* a shorter run at the end of an epoch is dropped */
};

struct hr_op_sequence {
    /* Start an epoch. *sequencer is NULL the first time and what the first call made
     * afterwards; nothing is held then. */
    HR_CHECK enum hr_err (*begin)(const struct hr_sequence_begin *begin,
                                  void **sequencer);
    /* Called only when next() has nothing to give. Values may be moved out of the row,
     * whose slots are then NONE. *error (never NULL) is set on failure. */
    HR_CHECK enum hr_err (*add)(void *sequencer, struct hr_sequence_record *record,
                                enum hr_sequence_verdict *ret_verdict,
                                struct hr_error *error);
    /* Optional, the same for `count` records whose fields all have fixed sizes: field f
     * of record i lies at columns[f] + i * hr__field_bytes(). *ret_taken of them, at
     * least one, are copied; the verdict is HELD or READY. */
    HR_CHECK enum hr_err (*add_rows)(void *sequencer, const struct hr_record_id *ids,
                                     char *const *columns, uint32_t count,
                                     uint32_t *ret_taken,
                                     enum hr_sequence_verdict *ret_verdict,
                                     struct hr_error *error);
    /* Optional: no later record of the epoch is needed. Asked after add() and restore().
     */
    bool (*ended)(const void *sequencer);
    /* The next output, into record->values (all NONE on entry). *ret_any: there was one;
     * *ret_more: there are more. NULL for ops that only pass and drop. */
    HR_CHECK enum hr_err (*next)(void *sequencer, struct hr_sequence_record *record,
                                 bool *ret_any, bool *ret_more, struct hr_error *error);
    /* What is held is to come out of next(), or is dropped. NULL: nothing is held. */
    HR_CHECK enum hr_err (*flush)(void *sequencer, enum hr_sequence_flush why,
                                  struct hr_error *error);
    /* Append the state as text, at most HR_SEQUENCE_STATE_MAX bytes, nothing for the
     * state after begin(). With `replays`, false while records are held; without, false
     * at most while next() has outputs to give. NULL: there is no state, or there is
     * `number`. */
    bool (*save)(const void *sequencer, struct hr_str *out);
    /* Instead of save(), for ops without next(): the state is one number, 0 after
     * begin(), that increases with every record. Its text is the number in decimal. */
    uint64_t (*number)(const void *sequencer);
    /* After begin(). HR_ERR_FORMAT when the text is damaged. */
    HR_CHECK enum hr_err (*restore)(void *sequencer, const char *text,
                                    struct hr_error *error);
    void (*end)(void *sequencer); /* never NULL */
    /* Bytes held in buffers, for the memory budget; NULL: too few to count. */
    uint64_t (*held_bytes)(const void *sequencer);
    /* Records held that flush(HR_FLUSH_LIMIT) would give. For ops with `runs` only: of
     * others a resumed run could not repeat the flush. NULL: the run ends with the output
     * that reaches the limit. */
    uint64_t (*held_records)(const void *sequencer);

    /* With `replays`, where what is held does not depend on what passed since: appends
     * the positions (hr_record_id) of the records held, each followed by a blank. A run
     * resumes by adding these in order, which gives no output. False if they are not
     * known by their positions, as children are not. NULL: all inputs are run again. */
    bool (*held)(const void *sequencer, struct hr_str *out);

    /* Input records held at most, those that make up an output included; NULL: 0. `input`
     * is their schema, with the largest sizes where these are known; `state` is open()'s.
     * An estimate where the number depends on the data. */
    uint64_t (*holds)(const void *params, const void *state,
                      const struct hr_schema *input);
    /* For ops without `runs` that join records: how many records of the sizes in `input`
     * are as large as an output, at most. NULL: no output is larger than an input. */
    uint64_t (*joins)(const void *params, const void *state,
                      const struct hr_schema *input);
    bool replays; /* it holds records that save() does not write down */
    enum hr_sequence_ranks (*ranks)(const void *params); /* NULL: HR_RANKS_INPUTS */
    /* An output has the identity of one of its inputs: of the first, or of its own. With
     * `numbers` it is a child of that input, with a number (hr__record_child), because
     * several outputs may begin in one. */
    bool numbers;

    /* How many of n records the outputs hold in all (a batch holds all of its records),
     * n < HR_COUNT_UNKNOWN. NULL: known only at the end. */
    uint64_t (*count)(const void *params, uint64_t n);
    /* A fixed-size field of a record given to add() is copied, never taken. Each output
     * is a run of consecutive inputs joined field by field. Where the engine
     * knows the places of records beforehand it has them written there, and calls join
     * in place of the hooks above. NULL: not so. */
    void (*runs)(const void *params, struct hr_sequence_runs *ret_runs);
    /* The joined values of `records` records (at least 1), in the order of the output's
     * schema, which begins with the fields of `schema`: a field with a column is its
     * first rows (the reference moves to the value), all others are joined of rows[f],
     * rows[f + stride], ..., which stay the caller's. On failure values may be partly
     * made, and the caller clears them. */
    HR_CHECK enum hr_err (*join)(const void *params, struct hr_pool *pool,
                                 const struct hr_schema *schema, int64_t records,
                                 struct hr_buffer **columns, const struct hr_value *rows,
                                 size_t stride, struct hr_value *ret_values,
                                 struct hr_error *error);
    /* With these parameters the op can work on a sequence at all (a shuffle needs a
     * window). NULL: always. */
    bool (*possible)(const void *params);
};

#define HR_SEQUENCE_STATE_MAX ((size_t)1 << 20)

static inline enum hr_sequence_ranks
hr__sequence_ranks(const struct hr_op_sequence *op, const void *params)
{
    return op->ranks != NULL ? op->ranks(params) : HR_RANKS_INPUTS;
}

/* Appends the state as text. False while the sequencer holds records that it cannot write
 * down. */
static inline bool hr__sequence_save(const struct hr_op_sequence *op,
                                     const void *sequencer, struct hr_str *out)
{
    uint64_t number = op->number != NULL ? op->number(sequencer) : 0;

    if (number > 0)
        hr__str_addf(out, "%llu", (unsigned long long)number);
    return op->save != NULL ? op->save(sequencer, out) : !op->replays;
}

#endif
