/*
 * proc/proc.h - records to a worker process and back.
 *
 * A thread of the engine that meets steps with `variant: processes` has one worker
 * process for each run of them. It sends a chunk of records at once: their inputs lie in
 * memory that both sides have mapped (a memfd: the kernel frees it with the last
 * process), a short message on a Unix socket says go, and the answer comes the same way.
 * The peer runs hr_code_serve: user code by its name, and ops of ours as the engine runs
 * them. Values travel in the record codec (wire/): arrays are copied once and read in
 * place, small fixed-size fields travel as columns, so a record of a few numbers costs a
 * few bytes, and a deferred value travels as its description. The end of a peer is
 * noticed at once (end of file on the socket); it is replaced through the host, and the
 * chunk is sent again.
 */
#ifndef HR_PROC_PROC_H
#define HR_PROC_PROC_H

#include <stdatomic.h>

#include "core/fit.h"
#include "headrace/code.h"
#include "op/op.h"
#include "op/when.h"

struct hr_proc_slots {
    const uint16_t *at;
    size_t count;
};

/* A step of a request: user code, or an op of ours. Slots number the values of a request:
 * its inputs first, then what its steps make. */
struct hr_proc_step {
    const char *code;     /* user code: the name given to hr_graph_code; else NULL */
    const char *node;     /* node name, for messages */
    uint64_t draw_id;     /* stable id of the node, the key of its random draws */
    enum hr_op_kind kind; /* SOURCE, MAP, FILTER, EXPAND (only as the last step) */

    /* User code: what it declares. */
    size_t input_count, output_count;
    const uint16_t *inputs;                      /* slots */
    const uint16_t *outputs;                     /* slots */
    const struct hr_field *const *output_fields; /* as declared */
    const struct hr_field *const *input_fields;

    /* An op that is portable (hr__op_is_portable). */
    const char *op;
    const char *params;                     /* canonical JSON */
    const struct hr_schema *input, *output; /* what its open() may look at, or NULL */
    struct hr_proc_slots fields;            /* bound fields, as in hr_op_ctx */
    struct hr_proc_slots parents;           /* EXPAND: what children are made of */

    const struct hr_when *when; /* what decides whether it runs */
    size_t when_count;

    /* Both. */
    uint32_t number;             /* of the node, below the program's `nodes` */
    struct hr_proc_slots alias;  /* pairs from, to: made alike before the step */
    struct hr_proc_slots before; /* deferred values that are made before the step, */
    struct hr_proc_slots after;  /* and after it */
    bool early;                  /* the latter as by hr__value_force_early */
    struct hr_proc_slots clear;  /* what the step takes out of the record */
};

/* How a result comes back. */
enum hr_proc_form {
    HR_PROC_MADE,
    HR_PROC_MADE_EARLY, /* made, or as its description if that fails: a later step needs
                           it, which may not run for the record */
    HR_PROC_DESCRIBED,  /* as it is: deferred values are described */
};

struct hr_proc_program {
    size_t slot_count;
    size_t input_count; /* slots [0, input_count) are sent */
    const struct hr_field *const *input_fields;
    const struct hr_proc_step *steps;
    size_t step_count;
    size_t result_count; /* slots that come back, in this order; of each child */
    const uint16_t *results;
    const struct hr_field *const *result_fields;
    const uint8_t *forms; /* per result: enum hr_proc_form; NULL: all are made */
    uint32_t nodes;       /* of the graph */
};

static inline enum hr_proc_form
hr__proc_form(const struct hr_proc_program *program, size_t result)
{
    return program->forms != NULL ? (enum hr_proc_form)program->forms[result]
                                  : HR_PROC_MADE;
}

/* A record of a chunk. Inputs are of any kind; deferred ones are described. */
struct hr_proc_record {
    const struct hr_record_id *id;
    const struct hr_value *inputs; /* input_count */
    /* Out: */
    struct hr_value *results; /* result_count values; they show shared memory that stays
                                 as it is until the next hr__proc_run, owner NULL */
    uint64_t child_count;     /* EXPAND: results holds child_count times result_count */
    char *detail;             /* long text about an error (hr_code_detail), or NULL; the
                                 caller hr__frees it */
    enum hr_err code;         /* HR_OK, or of the record; HR_ERR_END from a source */
    uint32_t failed_step;     /* the one that ended the record */
    uint32_t failed_node;     /* at fault, when code is not HR_OK */
    bool drop;
    struct hr_error error; /* when code is not HR_OK; last, since it is large */
};

struct hr_proc;

/* Starts a peer through the host and sends it the program, which is borrowed.
 * `bytes_max` bounds the shared memory of a channel (0: none). *cancel is looked at while
 * waiting; may be NULL. Several of these may share a host; its start and kill are then
 * called by several threads, and the caller keeps them apart. */
HR_CHECK enum hr_err
hr__proc_open(const struct hr_code_host *host, const struct hr_proc_program *program,
              size_t bytes_max, const atomic_bool *cancel, struct hr_proc **ret_proc,
              struct hr_error *reterr);

/* Runs `count` records. Fails only when no peer can do the work: the host cannot start
 * one, memory is out, HR_ERR_CANCELLED. A record whose peer died three times in a row is
 * bad by itself (HR_ERR_IO, "worker process died ...") and the rest of the chunk is done.
 */
HR_CHECK enum hr_err hr__proc_run(struct hr_proc *proc, struct hr_proc_record *records,
                                  size_t count, struct hr_error *reterr);

/*
 * The same in two halves: what was begun is done while the caller does something else. A
 * peer has two channels, each with memory of its own, so that the records of one are
 * ready when it has done those of the other. Results of a channel stay until that
 * channel's next begin. Every begin that went well is followed by an end before the next
 * one, or by close; records and their inputs stay as they are until then.
 */
struct hr_proc *hr__proc_channel(struct hr_proc *proc, unsigned channel); /* modulo two */
HR_CHECK enum hr_err hr__proc_begin(struct hr_proc *proc, struct hr_proc_record *records,
                                    size_t count, struct hr_error *reterr);
HR_CHECK enum hr_err hr__proc_end(struct hr_proc *proc, struct hr_error *reterr);

/* While the caller waits for the peer, and every few milliseconds, `at` is called with
 * the node and the record that the peer is at. Set after hr__proc_open. */
void hr__proc_watch(struct hr_proc *proc,
                    void (*at)(void *user, uint32_t node, const struct hr_record_id *id),
                    void *user);

/* End the peer (at once when it is in the middle of a call) and free, all channels. NULL
 * is fine. */
void hr__proc_close(struct hr_proc *proc);

/* For stats: bytes of shared memory, peers replaced, ns waited; ns that the peer worked,
 * and its CPU time in them. */
struct hr_proc_stats {
    size_t shared_bytes;
    uint64_t replaced, wait_ns, work_ns, cpu_ns;
};
void hr__proc_stats(const struct hr_proc *proc, struct hr_proc_stats *ret_stats);

/* What the channel's latest run took in the peer, per node of the graph: wall time, in
 * all work_ns, divided by a sample of its records; and y of `cost`: their CPU ns in the
 * node (x is 0). Until the channel's next begin. */
struct hr_proc_time {
    uint64_t wall_ns;
    struct hr_fit cost;
};
const struct hr_proc_time *hr__proc_times(const struct hr_proc *proc);

#endif
