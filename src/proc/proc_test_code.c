/*
 * proc/proc_test_code.c - the code that peers of the tests have, by name: honest, broken,
 * deadly and lying pieces.
 */
#include "proc/proc_test_util.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proc/request.h"

int peer_number;

static int64_t number_of(const struct hr_code_call *call, size_t at)
{
    struct hr_field_view view;

    if (at >= hr_code_input_count(call) || hr_code_input(call, at, &view) != HR_OK ||
        view.dtype != HR_I64 || view.ndim != 0)
        return INT64_MIN;
    return *(const int64_t *)view.data;
}

static enum hr_err
give_number(struct hr_code_call *call, size_t at, int64_t value, struct hr_error *error)
{
    void *memory;
    enum hr_err code = hr_code_room(call, at, HR_I64, 0, NULL, &memory, error);

    if (code == HR_OK)
        *(int64_t *)memory = value;
    return code;
}

static enum hr_err code_add(void *user, struct hr_code_call *call, struct hr_error *error)
{
    (void)user;
    return give_number(call, 0, number_of(call, 0) + 1, error);
}

static enum hr_err
code_even(void *user, struct hr_code_call *call, struct hr_error *error)
{
    (void)user;
    (void)error;
    hr_code_keep(call, number_of(call, 0) % 2 == 0);
    return HR_OK;
}

static enum hr_err
code_pass(void *user, struct hr_code_call *call, struct hr_error *error)
{
    enum hr_err code = HR_OK;

    (void)user;
    for (size_t i = 0; i < hr_code_output_count(call) && code == HR_OK; i++)
        code = hr_code_pass(call, i, i, error);
    return code;
}

static enum hr_err copy_one(struct hr_code_call *call, size_t at, struct hr_error *error)
{
    struct hr_field_view view;
    enum hr_err code = hr_code_input(call, at, &view);
    void *memory = NULL;

    if (code == HR_OK)
        code = hr_code_room(call, at, view.dtype, view.ndim, view.dims, &memory, error);
    if (code == HR_OK && view.bytes > 0)
        memcpy(memory, view.data, view.bytes);
    return code;
}

static enum hr_err
code_copy(void *user, struct hr_code_call *call, struct hr_error *error)
{
    enum hr_err code = HR_OK;

    (void)user;
    for (size_t i = 0; i < hr_code_output_count(call) && code == HR_OK; i++)
        code = copy_one(call, i, error);
    return code;
}

static enum hr_err
code_source(void *user, struct hr_code_call *call, struct hr_error *error)
{
    struct hr_code_record record;

    (void)user;
    hr_code_record(call, &record);
    if (record.index >= 10)
        return HR_ERR_END;
    return give_number(call, 0, (int64_t)record.index * 2, error);
}

static enum hr_err code_key(void *user, struct hr_code_call *call, struct hr_error *error)
{
    uint64_t key[2];
    enum hr_err code;

    (void)user;
    hr_code_key(call, key);
    code = give_number(call, 0, (int64_t)key[0], error);
    return code == HR_OK ? give_number(call, 1, (int64_t)key[1], error) : code;
}

/* v children: v * 10 + c, and a string of c letters; every output of child 1 passes. */
static enum hr_err
code_children(void *user, struct hr_code_call *call, struct hr_error *error)
{
    int64_t v = number_of(call, 0);

    (void)user;
    for (int64_t c = 0; c < v; c++) {
        enum hr_err code = hr_code_child(call, error);
        void *memory;

        if (code == HR_OK)
            code = give_number(call, 0, v * 10 + c, error);
        if (code == HR_OK)
            code = hr_code_room(call, 1, HR_DTYPE_NONE, 1, &c, &memory, error);
        if (code != HR_OK)
            return code;
        memset(memory, 'a' + (int)c, (size_t)c);
    }
    return HR_OK;
}

static enum hr_err
code_fail(void *user, struct hr_code_call *call, struct hr_error *error)
{
    int64_t v = number_of(call, 0);
    char *text;

    (void)user;
    if (v % 3 != 0)
        return give_number(call, 0, v, error);
    text = calloc(1, 200001);
    memset(text, 'x', v == 3 ? 200000 : 10);
    hr_code_detail(call, text);
    free(text);
    error->code = HR_ERR_RANGE;
    snprintf(error->message, sizeof error->message, "%lld is a multiple of 3",
             (long long)v);
    snprintf(error->param, sizeof error->param, "number");
    return HR_ERR_RANGE;
}

static enum hr_err
code_forgets(void *user, struct hr_code_call *call, struct hr_error *error)
{
    int64_t v = number_of(call, 0), dims[1] = {3};
    void *memory;

    (void)user;
    if (v == 0)
        return HR_OK;
    if (v == 1)
        return hr_code_room(call, 0, HR_I64, 1, dims, &memory, error);
    if (v == 2)
        return hr_code_room(call, 0, HR_F32, 0, NULL, &memory, error);
    if (v == 3)
        return (enum hr_err)77;
    return HR_ERR_END;
}

/* Dies at 7: in every peer, or in the first one or two. */
static enum hr_err code_die(void *user, struct hr_code_call *call, struct hr_error *error)
{
    int64_t v = number_of(call, 0);

    if (v == 7 && peer_number < (int)(intptr_t)user)
        raise(SIGKILL);
    return give_number(call, 0, v + 1, error);
}

/* Dies at 1 until it has been replaced twice; gives how often it was replaced. */
static enum hr_err
code_replaced(void *user, struct hr_code_call *call, struct hr_error *error)
{
    struct hr_code_record record;

    (void)user;
    hr_code_record(call, &record);
    if (number_of(call, 0) == 1 && record.replaced < 2)
        raise(SIGKILL);
    return give_number(call, 0, record.replaced, error);
}

static enum hr_err
code_hang(void *user, struct hr_code_call *call, struct hr_error *error)
{
    (void)user;
    if (number_of(call, 0) == 5) {
        if (write(TELL_FD, "", 1) < 0)
            return HR_ERR_IO;
        for (;;)
            pause();
    }
    return give_number(call, 0, 0, error);
}

static enum hr_err
code_stop(void *user, struct hr_code_call *call, struct hr_error *error)
{
    (void)user;
    if (number_of(call, 0) == 5)
        return HR_ERR_CANCELLED;
    return give_number(call, 0, 0, error);
}

static enum hr_err
code_slow(void *user, struct hr_code_call *call, struct hr_error *error)
{
    (void)user;
    usleep(200);
    return give_number(call, 0, number_of(call, 0) + 1, error);
}

/* A string of that many bytes. */
static enum hr_err
code_grow(void *user, struct hr_code_call *call, struct hr_error *error)
{
    int64_t v = number_of(call, 0);
    void *memory, *second;
    enum hr_err code = hr_code_room(call, 0, HR_DTYPE_NONE, 1, &v, &memory, error);

    (void)user;
    if (code == HR_OK) /* growing once more must not move what was given before */
        code = hr_code_room(call, 1, HR_DTYPE_NONE, 1, &v, &second, error);
    if (code != HR_OK)
        return code;
    memset(memory, 'p', (size_t)v);
    memset(second, 'q', (size_t)v);
    return HR_OK;
}

/* The memory that the parent reads, mapped once more, as an intruder would. */
static char *find_out(size_t bytes)
{
    int found = -1;
    void *out;

    for (int fd = 3; fd < 64; fd++) {
        char path[64], target[64] = "";

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof target - 1) > 0 &&
            strstr(target, "memfd:headrace") != NULL)
            found = fd; /* the second of two */
    }
    out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, found, 0);
    return out != MAP_FAILED ? out : NULL;
}

static void *scribble(void *user)
{
    uint64_t state = (uint64_t)getpid();
    char *out = user;

    while (out != NULL)
        out[draw(&state) % 16384] = (char)draw(&state);
    return NULL;
}

/* Another thread of this peer writes everywhere while results are read. */
static enum hr_err
code_scribble(void *user, struct hr_code_call *call, struct hr_error *error)
{
    static char *out;
    pthread_t thread;

    if (out == NULL) {
        out = find_out(16384);
        if (out != NULL)
            pthread_create(&thread, NULL, scribble, out);
    }
    return code_copy(user, call, error);
}

/* Writes over its statuses, from record 5 on. */
static enum hr_err
code_spoil(void *user, struct hr_code_call *call, struct hr_error *error)
{
    char *out = find_out(16384);

    (void)user;
    if (number_of(call, 0) == 6 && out != NULL) {
        struct hr_proc_status status = {.code = -9999};

        memcpy(out + HR_PROC_HEAD + 5 * sizeof status, &status, sizeof status);
    }
    return give_number(call, 0, number_of(call, 0) + 1, error);
}

static const struct hr_code codes[] = {
    {"add",       NULL,         code_add,      NULL, NULL, NULL},
    {"even",      NULL,         code_even,     NULL, NULL, NULL},
    {"pass",      NULL,         code_pass,     NULL, NULL, NULL},
    {"copy",      NULL,         code_copy,     NULL, NULL, NULL},
    {"source",    NULL,         code_source,   NULL, NULL, NULL},
    {"key",       NULL,         code_key,      NULL, NULL, NULL},
    {"children",  NULL,         code_children, NULL, NULL, NULL},
    {"fail",      NULL,         code_fail,     NULL, NULL, NULL},
    {"forgets",   NULL,         code_forgets,  NULL, NULL, NULL},
    {"die_once",  (void *)1,    code_die,      NULL, NULL, NULL},
    {"die_twice", (void *)2,    code_die,      NULL, NULL, NULL},
    {"die",       (void *)1000, code_die,      NULL, NULL, NULL},
    {"replaced",  NULL,         code_replaced, NULL, NULL, NULL},
    {"hang",      NULL,         code_hang,     NULL, NULL, NULL},
    {"stop",      NULL,         code_stop,     NULL, NULL, NULL},
    {"slow",      NULL,         code_slow,     NULL, NULL, NULL},
    {"grow",      NULL,         code_grow,     NULL, NULL, NULL},
    {"scribble",  NULL,         code_scribble, NULL, NULL, NULL},
    {"spoil",     NULL,         code_spoil,    NULL, NULL, NULL},
};

const struct hr_code *peer_find_code(void *user, const char *name)
{
    (void)user;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(codes[i].identity, name) == 0)
            return &codes[i];
    return NULL;
}
