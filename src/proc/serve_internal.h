/*
 * proc/serve_internal.h - the peer's side in parts: serve.c (hello, requests),
 * serve_record.c (one record through its steps, and what user code asks for), serve_op.c
 * (ops of ours), serve_result.c (what goes home).
 */
#ifndef HR_PROC_SERVE_INTERNAL_H
#define HR_PROC_SERVE_INTERNAL_H

#include "core/arena.h"
#include "op/code_call.h"
#include "op/op.h"
#include "op/thread.h"
#include "proc/event.h"
#include "proc/request.h"
#include "proc/shm.h"

/* Where the bytes of a slot's value lie. */
enum hr_serve_where {
    HR_SERVE_INPUT,   /* in `in`; `at` is the input's number */
    HR_SERVE_OUT,     /* in `out`, at offset `at` */
    HR_SERVE_SCRATCH, /* in memory of our own */
};
struct hr_serve_place {
    enum hr_serve_where where;
    size_t at;
};

struct hr_server;

struct hr_serve_step {
    struct hr_code_call call; /* first */
    struct hr_server *server;
    const struct hr_proc_step *step;

    /* User code. */
    const struct hr_code *code; /* NULL: unknown here */
    bool enters;                /* first of the steps whose code has this lock */
    void *token;

    /* An op. */
    const struct hr_op *op;
    struct hr_doc *canonical; /* holds the strings of the parameters */
    struct hr_op_ctx ctx;
};

struct hr_server {
    struct hr_event event;
    struct hr_shm ins[HR_PROC_CHANNELS], outs[HR_PROC_CHANNELS];
    struct hr_shm *in, *out; /* of the request's channel */
    struct hr_arena lasting; /* the program and what is made from it */
    struct hr_thread thread; /* its arena is scratch of the last records */
    struct hr_proc_program program;
    struct hr_proc_map map;
    struct hr_serve_step *steps;
    struct hr_value *values;       /* of the slots */
    struct hr_value *loaded;       /* of the inputs, as they came */
    struct hr_serve_place *places; /* of the slots */
    size_t *columns; /* per slot: 1 + the result whose column it fills, 0: none */
    bool *results;   /* per slot: comes back as the user code makes it */
    bool has_ops;    /* some steps are ops: values may own memory and change */
    struct hr_error error;
    uint32_t replaced; /* see struct hr_code_record */

    uint64_t cpu_ns; /* of this thread, when it answered last */

    /* The request. */
    uint32_t count, at;
    struct hr_record_id id;                 /* of the record, for ops */
    const struct hr_record_id *place_of_id; /* the same, in `in` */
    size_t out_at, out_max;                 /* the next free byte of `out`, and the end */
    bool full;                              /* a record found no room */
    bool stopped;                           /* a record said HR_ERR_CANCELLED */
    char *detail;
    struct hr_wire_value *children; /* of the record's expansion: count x results */
    size_t child_room;

    /* What records cost per node, by a sample of all so far. */
    struct hr_charge *charges; /* of the record that is timed */
    double *spent;             /* ns, of all timed records */
    struct hr_fit *costs;      /* of those of this request */
    uint64_t worked_ns, worked_records;
    uint32_t dice; /* which records are timed */
};

/* The words that belong to the peer. */
static inline struct hr_proc_out_head *hr__serve_head(const struct hr_server *server)
{
    return (struct hr_proc_out_head *)server->outs[0].base;
}

/* serve_record.c: fill in what does not change from record to record. */
HR_CHECK enum hr_err hr__serve_prepare(struct hr_server *server, struct hr_error *reterr);

/* At the start of a request: the values of inputs in columns. */
void hr__serve_begin(struct hr_server *server);

/* Runs record number server->at and writes down what became of it. False when it found no
 * room in `out`: then it is not done. */
bool hr__serve_record(struct hr_server *server);

/* serve_op.c: find the op of a step, read its parameters, open its state; and back. */
HR_CHECK enum hr_err
hr__serve_op_open(struct hr_server *server, struct hr_serve_step *step,
                  struct hr_error *reterr);
void hr__serve_op_close(struct hr_serve_step *step);

/* Runs the op on the record's values. *ret_drop: a filter ended the record. */
HR_CHECK enum hr_err
hr__serve_op_run(struct hr_server *server, struct hr_serve_step *step, bool *ret_drop,
                 struct hr_error *reterr);

/* Runs an expansion: describes all children. */
HR_CHECK enum hr_err
hr__serve_op_expand(struct hr_server *server, struct hr_serve_step *step,
                    uint64_t *ret_children, struct hr_error *reterr);

/* serve_result.c: room in `out`; HR_ERR_LIMIT sets server->full. */
HR_CHECK enum hr_err hr__serve_room(struct hr_server *server, size_t bytes,
                                    size_t *ret_at, struct hr_error *reterr);

/* What the parent needs to find result `result`, which is `value`, at `place`. */
HR_CHECK enum hr_err
hr__serve_describe(struct hr_server *server, size_t result, struct hr_value *value,
                   struct hr_serve_place *place, struct hr_wire_value *ret_wire,
                   struct hr_error *reterr);

/* The results of the record to their columns and descriptors. */
HR_CHECK enum hr_err hr__serve_pack(struct hr_server *server, struct hr_error *reterr);

/* Room for the descriptors of one more child. */
HR_CHECK enum hr_err
hr__serve_child_room(struct hr_server *server, uint64_t child,
                     struct hr_wire_value **ret_row, struct hr_error *reterr);

/* The descriptors of all children to `out`. */
HR_CHECK enum hr_err
hr__serve_pack_children(struct hr_server *server, uint64_t children,
                        struct hr_proc_status *status, struct hr_error *reterr);

#endif
