/*
 * proc/proc_test_util.c - peers for the tests, and requests to them.
 *
 * A peer is the test program again: a constructor sees the variable that host_start sets,
 * serves, and ends before any test would run.
 */
#include "proc/proc_test_util.h"

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEER_FD 100

extern char **environ;

/* ---- peers ---- */

__attribute__((constructor)) static void peer(void)
{
    const char *number = getenv("HR_PROC_TEST_PEER");
    struct hr_error error = {0};

    if (number == NULL)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing stays when a test is killed */
    peer_number = (int)strtol(number, NULL, 10);
    if (getenv("HR_PROC_TEST_SHORT") != NULL)
        _exit(3);
    _exit(hr_code_serve(PEER_FD, peer_find_code, NULL, &error) == HR_OK ? 0 : 1);
}

int peer_count, tell_fd = -1;
pid_t peer_last;
pthread_mutex_t kill_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t peers[PEERS_MAX];
static int number_next;

static enum hr_err
host_start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    char *argv[] = {(char *)"proc_test", NULL}, number[64];
    char *envp[] = {number, NULL, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int failed;

    (void)reterr;
    snprintf(number, sizeof number, "HR_PROC_TEST_PEER=%d", number_next++);
    if (user != NULL)
        envp[1] = user;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, PEER_FD);
    if (tell_fd >= 0)
        posix_spawn_file_actions_adddup2(&actions, tell_fd, TELL_FD);
    failed = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    CHECK(!failed && peer_count < PEERS_MAX);
    peers[peer_count++] = pid;
    pthread_mutex_lock(&kill_lock);
    peer_last = pid;
    pthread_mutex_unlock(&kill_lock);
    *ret_id = pid;
    return HR_OK;
}

void host_kill(void *user, int64_t id)
{
    (void)user;
    kill((pid_t)id, SIGKILL);
}

/* Leaves the peer to reap(). */
static void host_ended(void *user, int64_t id, char *text, size_t room)
{
    siginfo_t info = {0};

    (void)user;
    CHECK(waitid(P_PID, (id_t)id, &info, WEXITED | WNOWAIT) == 0);
    snprintf(text, room, "%s %d",
             info.si_code == CLD_EXITED ? "ended with" : "was killed by", info.si_status);
}

const struct hr_code_host host = {
    .start = host_start, .kill = host_kill, .ended = host_ended};

int reap(void)
{
    int polite = 0, late = 0;

    for (int i = 0; i < peer_count; i++) {
        pid_t got = 0;
        int status = -1;

        for (int k = 0; k < 20000 && (got = waitpid(peers[i], &status, WNOHANG)) == 0;
             k++)
            usleep(1000);
        if (got != peers[i]) {
            kill(peers[i], SIGKILL);
            waitpid(peers[i], &status, 0);
            late++;
        }
        polite += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    peer_count = 0;
    number_next = 0;
    CHECK_EQ_INT(late, 0);
    return polite;
}

/* ---- requests ---- */

struct hr_proc *open_program(const struct hr_proc_program *program, size_t bytes_max)
{
    struct hr_error error = {0};
    struct hr_proc *proc = NULL;

    if (hr__proc_open(&host, program, bytes_max, NULL, &proc, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "no request: %s", error.message);
    return proc;
}

void run_program(struct hr_proc *proc, struct hr_proc_record *records, size_t count)
{
    struct hr_error error = {0};

    if (hr__proc_run(proc, records, count, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "the request failed: %s", error.message);
}

int close_program(struct hr_proc *proc)
{
    hr__proc_close(proc);
    return reap();
}

uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

struct hr_field number_field(const char *name)
{
    struct hr_field field = {.kind = HR_FIELD_TENSOR, .dtype = HR_I64};

    snprintf(field.name, sizeof field.name, "%s", name);
    return field;
}

struct hr_field bytes_field(const char *name)
{
    struct hr_field field = {.kind = HR_FIELD_BYTES};

    snprintf(field.name, sizeof field.name, "%s", name);
    return field;
}

static struct hr_field
tensor_field(const char *name, enum hr_dtype dtype, int64_t a, int64_t b)
{
    struct hr_field field = {.kind = HR_FIELD_TENSOR, .dtype = dtype, .ndim = 2};

    snprintf(field.name, sizeof field.name, "%s", name);
    field.dims[0].size = a;
    field.dims[1].size = b;
    return field;
}

void single_make(struct single *s, const char *code, enum hr_op_kind kind,
                 size_t in_count, size_t out_count)
{
    for (size_t i = 0; i < in_count; i++) {
        s->in_list[i] = &s->in[i];
        s->inputs[i] = (uint16_t)i;
    }
    for (size_t i = 0; i < out_count; i++) {
        s->out_list[i] = &s->out[i];
        s->outputs[i] = (uint16_t)(in_count + i);
    }
    s->step = (struct hr_proc_step){.code = code,
                                    .node = "mine",
                                    .draw_id = 3,
                                    .kind = kind,
                                    .input_count = in_count,
                                    .output_count = out_count,
                                    .inputs = s->inputs,
                                    .outputs = s->outputs,
                                    .output_fields = s->out_list,
                                    .input_fields = s->in_list};
    s->program = (struct hr_proc_program){.slot_count = in_count + out_count,
                                          .input_count = in_count,
                                          .input_fields = s->in_list,
                                          .steps = &s->step,
                                          .step_count = 1,
                                          .result_count = out_count,
                                          .results = s->outputs,
                                          .result_fields = s->out_list,
                                          .nodes = 1};
}

void single_numbers(struct single *s, const char *code)
{
    s->in[0] = number_field("in");
    s->out[0] = number_field("out");
    single_make(s, code, HR_OP_MAP, 1, 1);
}

struct numbers *numbers_make(size_t count)
{
    struct numbers *n = calloc(1, sizeof *n);

    for (size_t i = 0; i < count; i++) {
        n->values[i] = (int64_t)i;
        hr__value_set_tensor(&n->inputs[i], HR_I64, 0, NULL, &n->values[i], NULL);
        n->records[i].id = &n->ids[i];
        n->ids[i] = (struct hr_record_id){
            .seed = 1, .position = i, .index = i, .epoch = 2, .draw_epoch = 2};
        n->records[i].inputs = &n->inputs[i];
    }
    return n;
}

int64_t number(const struct hr_proc_record *record, size_t at)
{
    CHECK_EQ_INT(record->code, HR_OK);
    CHECK_EQ_INT(record->results[at].kind, HR_VALUE_TENSOR);
    CHECK_EQ_INT(record->results[at].dtype, HR_I64);
    return *(const int64_t *)record->results[at].data;
}

struct mixed *mixed_make(const char *code, size_t fields)
{
    struct mixed *m = calloc(1, sizeof *m);
    int64_t dims[2] = {100, 200};

    m->s.in[0] = m->s.out[0] = tensor_field("array", HR_F32, 100, 200);
    m->s.in[1] = m->s.out[1] = tensor_field("view", HR_F32, -1, -1);
    m->s.in[2] = m->s.out[2] = bytes_field("text");
    m->s.in[3] = m->s.out[3] = (struct hr_field){
        .name = "ragged",
        .kind = HR_FIELD_RAGGED,
        .levels = 1,
        .dtype = HR_I32,
        .ndim = 2,
        .dims = {{.size = -1}, {.size = -1}}
    };
    single_make(&m->s, code, HR_OP_MAP, 4, fields);
    m->array = calloc(8 * 20000, sizeof(float));
    for (int i = 0; i < 8 * 20000; i++)
        m->array[i] = (float)i;
    memcpy(m->offsets, (int64_t[]){0, 1, 1, 6}, sizeof m->offsets);
    for (int i = 0; i < 6; i++)
        m->items[i] = i * i;
    for (int i = 0; i < 8; i++) {
        struct hr_value *v = m->inputs[i];

        hr__value_set_tensor(&v[0], HR_F32, 2, dims, m->array + 20000 * i, NULL);
        v[1] = v[0];
        v[1].dims[0] = 200;
        v[1].dims[1] = 100 - i;
        v[1].strides[0] = 4;
        v[1].strides[1] = 800;
        hr__value_set_bytes(&v[2], "a string", (size_t)i, NULL);
        v[3] = (struct hr_value){.kind = HR_VALUE_RAGGED,
                                 .dtype = HR_I32,
                                 .ndim = 1,
                                 .data = m->items,
                                 .bytes = sizeof m->items,
                                 .dims = {3}};
        m->ragged =
            (struct hr_ragged){.levels = 1, .item_ndim = 1, .splits = {m->offsets}};
        v[3].u.ragged = &m->ragged;
        m->records[i].id = &m->ids[i];
        m->records[i].inputs = v;
    }
    return m;
}

void mixed_check(const struct mixed *m, size_t fields)
{
    for (int i = 0; i < 8; i++) {
        const struct hr_value *r = m->records[i].results;

        CHECK_EQ_INT(m->records[i].code, HR_OK);
        CHECK_EQ_INT(r[0].ndim, 2);
        CHECK_EQ_INT(r[0].dims[1], 200);
        CHECK_BYTES(r[0].data, m->array + 20000 * i, 80000);
        CHECK_EQ_INT(r[1].dims[1], 100 - i);
        CHECK_EQ_INT(r[1].bytes, 4 * 200 * (100 - i));
        for (int x = 0; x < 200; x += 7)
            CHECK(((const float *)r[1].data)[x * (100 - i) + 5] ==
                  m->array[20000 * i + 200 * 5 + x]);
        CHECK_EQ_INT(r[2].kind, HR_VALUE_BYTES);
        CHECK_EQ_INT(r[2].bytes, i);
        CHECK_BYTES(r[2].data, "a string", i);
        if (fields < 4)
            continue;
        CHECK_EQ_INT(r[3].kind, HR_VALUE_RAGGED);
        CHECK_EQ_INT(r[3].dims[0], 3);
        CHECK_BYTES(r[3].u.ragged->splits[0], m->offsets, sizeof m->offsets);
        CHECK_BYTES(r[3].data, m->items, sizeof m->items);
    }
}

void mixed_free(struct mixed *m)
{
    free(m->array);
    free(m);
}
