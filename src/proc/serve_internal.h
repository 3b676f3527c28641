/*
 * proc/serve_internal.h - the peer's side in parts: serve.c (hello, requests),
 * serve_record.c (one record through its steps, and what user code asks for).
 */
#ifndef HR_PROC_SERVE_INTERNAL_H
#define HR_PROC_SERVE_INTERNAL_H

#include "core/arena.h"
#include "op/code_call.h"
#include "proc/event.h"
#include "proc/shm.h"
#include "proc/wire.h"

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
    const struct hr_code *code; /* NULL: nobody has it */
    const struct hr_proc_step *step;
    bool enters; /* first of the steps whose code has this lock */
    void *token;
};

struct hr_server {
    struct hr_event event;
    struct hr_shm ins[HR_PROC_CHANNELS], outs[HR_PROC_CHANNELS];
    struct hr_shm *in, *out; /* of the request's channel */
    struct hr_arena lasting; /* the request and what is made from it */
    struct hr_arena scratch; /* of a record */
    bool scratch_used;
    struct hr_proc_program program;
    struct hr_proc_map map;
    struct hr_serve_step *steps;
    struct hr_value *values;       /* of the slots */
    struct hr_serve_place *places; /* likewise */
    size_t *columns; /* per slot: 1 + the result whose column it fills, 0: none */
    bool *results;   /* per slot: comes back */

    /* The request. */
    uint32_t count, at;
    size_t out_at, out_max; /* the next free byte of `out`, and the end */
    bool full;              /* a record found no room */
    bool stopped;           /* a record said HR_ERR_CANCELLED */
    char *detail;
    struct hr_proc_value *children; /* of the record's expansion: count x results */
    size_t child_room;
};

/* The words that belong to the peer. */
static inline struct hr_proc_out_head *hr__serve_head(const struct hr_server *server)
{
    return (struct hr_proc_out_head *)server->outs[0].base;
}

/* Fill in what does not change from record to record. */
HR_CHECK enum hr_err hr__serve_prepare(struct hr_server *server);

/* At the start of a request: the values of inputs in columns. */
void hr__serve_begin(struct hr_server *server);

/* Do record number server->at and write down what became of it. False when it found no
 * room in `out`: then nothing is written. */
bool hr__serve_record(struct hr_server *server);

#endif
