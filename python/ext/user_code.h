/*
 * user_code.h - what the files of user code share: user_code.c (calls), code_registry.c
 * (functions and who owns them), code_exceptions.c (how calls fail).
 */
#ifndef PYTHON_USER_CODE_H
#define PYTHON_USER_CODE_H

#include "ext.h"

/* A thread that calls user code. */
struct ext_thread {
    struct ext_call *current;
    /* What `maker` made for records that follow: items[next] is of record indices[next].
     * `items` is NULL after a failure: these records are made one by one. */
    const struct ext_code *maker; /* NULL: nothing is there */
    PyObject *items;
    uint64_t *indices;
    size_t next, count;
    unsigned long long calls;
    unsigned long ident; /* 0 before its first call */
    bool foreign;        /* the engine made this thread */
};

/* A call in progress; on the stack of its thread. */
struct ext_call {
    struct ext_call *next, **prev; /* in the registry's list */
    struct ext_call *outer;        /* of the same thread */
    struct ext_registry *registry; /* kept alive by the code that is called */
    struct hr_code_call *call;
    struct ext_thread *thread;
    unsigned long long number; /* among the calls of this thread */
    unsigned forks;
    bool interrupted; /* by ext_registry_interrupt */
    bool ended;       /* user code has, and may no longer be interrupted */
    bool several;     /* it makes several records; there is no current one */
};

/* ---- user_code.c ---- */

/* The innermost call of this thread, or NULL. */
struct ext_call *ext_call_current(void);

/* For struct hr_code. */
void *ext_code_enter(void *user);
void ext_code_leave(void *user, void *token);
enum hr_err ext_code_call(void *user, struct hr_code_call *call, struct hr_error *reterr);
enum hr_err ext_code_key(void *user, size_t output, uint64_t index, char *text,
                         size_t room, size_t *ret_bytes, struct hr_error *reterr);

/* ---- code_registry.c ---- */

/* In a forked child, forgets the calls and runs of the parent, whose threads do not exist
 * here. The registry is locked. */
void ext_registry_settle(struct ext_registry *registry);
/* The call's user code has raised: from now on nothing is raised in this thread, which
 * runs Python code of its own. An exception raised in an import could leave the
 * interpreter's import lock held by a thread that is gone. */
void ext_call_end(struct ext_call *frame);

/* ---- code_exceptions.c ---- */

/* Whether a call raised what the run must end with. If several runs share the code, it is
 * not known which. The registry is locked. */
static inline bool ext_registry_is_due(const struct ext_registry *registry)
{
    return registry->fatal != NULL && registry->runs < 2;
}

/* The exception that is set ends the call: turns it into an error, and keeps it. */
enum hr_err
ext_call_fail(struct ext_call *frame, enum hr_err code, struct hr_error *reterr);
/* The same outside of a call, for what makes keys. */
enum hr_err ext_key_fail(struct ext_registry *registry, struct hr_error *reterr);

#endif
