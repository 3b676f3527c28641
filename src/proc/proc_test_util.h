/*
 * proc/proc_test_util.h - what the tests of requests share: a host whose peers are the
 * test program again, requests of one step, records of numbers and of arrays.
 *
 * The functions end the test where something fails.
 */
#ifndef HR_PROC_PROC_TEST_UTIL_H
#define HR_PROC_PROC_TEST_UTIL_H

#include "op/ragged.h"
#include "tests/support/check.h"

#include <pthread.h>
#include <sys/types.h>

#include "proc/proc.h"

/* ---- peers ---- */

#define PEERS_MAX 4096
#define TELL_FD 101

/* In a peer: how many were started before it. Code may die in the first ones only. */
extern int peer_number;

/* The code of peers: hr_code_find_fn. */
const struct hr_code *peer_find_code(void *user, const char *name);

/* Starts peers; `user` is NULL, or a variable for their environment. */
extern const struct hr_code_host host;
void host_kill(void *user, int64_t id);

extern int peer_count; /* started since the last reap() */
extern int tell_fd;    /* peers get it as TELL_FD; -1: none */
extern pthread_mutex_t kill_lock;
extern pid_t peer_last; /* under kill_lock; 0 once it was killed */

/* Wait for every peer, which ends soon after the close, however busy the machine is: how
 * many ended by themselves. */
int reap(void);

/* ---- requests ---- */

struct hr_proc *open_program(const struct hr_proc_program *program, size_t bytes_max);
void run_program(struct hr_proc *proc, struct hr_proc_record *records, size_t count);
int close_program(struct hr_proc *proc); /* reap() */

struct hr_field number_field(const char *name); /* an int64 */
struct hr_field bytes_field(const char *name);

/* A request of one step; zeros, then the fields in[] and out[], then single_make. */
struct single {
    struct hr_field in[4], out[4];
    const struct hr_field *in_list[4], *out_list[4];
    uint16_t inputs[4], outputs[4];
    struct hr_proc_step step;
    struct hr_proc_program program;
};

void single_make(struct single *s, const char *code, enum hr_op_kind kind,
                 size_t in_count, size_t out_count);
void single_numbers(struct single *s, const char *code); /* a number to a number */

/* Records of a number each, 0, 1, ...; free() them. */
struct numbers {
    int64_t values[600];
    struct hr_value inputs[600];
    struct hr_record_id ids[600];
    struct hr_proc_record records[600];
};

struct numbers *numbers_make(size_t count);

/* Result `at` of a record that went well. */
int64_t number(const struct hr_proc_record *record, size_t at);

/* Eight records: a large array, a transposed view of one, a string, a ragged column. */
struct mixed {
    struct single s; /* passes the first `fields` of them on */
    float *array;
    int64_t offsets[4];
    struct hr_ragged ragged;
    int32_t items[6];
    struct hr_value inputs[8][4];
    struct hr_record_id ids[8];
    struct hr_proc_record records[8];
};

struct mixed *mixed_make(const char *code, size_t fields);
void mixed_check(const struct mixed *m, size_t fields); /* the results are the inputs */
void mixed_free(struct mixed *m);

uint64_t draw(uint64_t *state);

#endif
