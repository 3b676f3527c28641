/*
 * proc/proc_test.c - trips to real worker processes.
 *
 * A peer is this program again: a constructor sees the variable that the host of the
 * tests sets, serves, and ends before any test would run. Peers are numbered, so that
 * code can die in the first ones only.
 */
#include "proc/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "op/code.h"
#include "proc/proc_internal.h"
#include "tests/support/check.h"

#define PEER_FD 100
#define TELL_FD 101

extern char **environ;

/* ---- the peer ---- */

static int generation; /* number of this peer */

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
    struct hr_code_record record;
    enum hr_err code;

    (void)user;
    hr_code_record(call, &record);
    code = give_number(call, 0, (int64_t)record.key[0], error);
    return code == HR_OK ? give_number(call, 1, (int64_t)record.key[1], error) : code;
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

    if (v == 7 && generation < (int)(intptr_t)user)
        raise(SIGKILL);
    return give_number(call, 0, v + 1, error);
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

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

static void *scribble(void *user)
{
    uint64_t state = (uint64_t)getpid();
    char *out = find_out(16384);

    (void)user;
    while (out != NULL)
        out[draw(&state) % 16384] = (char)draw(&state);
    return NULL;
}

/* Another thread of this peer writes everywhere while results are read. */
static enum hr_err
code_scribble(void *user, struct hr_code_call *call, struct hr_error *error)
{
    static bool started;
    pthread_t thread;

    if (!started)
        pthread_create(&thread, NULL, scribble, NULL);
    started = true;
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
    {"hang",      NULL,         code_hang,     NULL, NULL, NULL},
    {"stop",      NULL,         code_stop,     NULL, NULL, NULL},
    {"slow",      NULL,         code_slow,     NULL, NULL, NULL},
    {"grow",      NULL,         code_grow,     NULL, NULL, NULL},
    {"scribble",  NULL,         code_scribble, NULL, NULL, NULL},
    {"spoil",     NULL,         code_spoil,    NULL, NULL, NULL},
};

static const struct hr_code *find_code(void *user, const char *name)
{
    (void)user;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(codes[i].identity, name) == 0)
            return &codes[i];
    return NULL;
}

__attribute__((constructor)) static void peer(void)
{
    const char *number = getenv("HR_PROC_TEST_PEER");
    struct hr_error error = {0};

    if (number == NULL)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing stays when a test is killed */
    generation = (int)strtol(number, NULL, 10);
    if (getenv("HR_PROC_TEST_SHORT") != NULL)
        _exit(3);
    _exit(hr_code_serve(PEER_FD, find_code, NULL, &error) == HR_OK ? 0 : 1);
}

/* ---- the host ---- */

#define PEERS_MAX 4096
static pid_t peers[PEERS_MAX];
static int peer_count;
static pid_t peer_last; /* under kill_lock; 0 once it was killed */
static pthread_mutex_t kill_lock = PTHREAD_MUTEX_INITIALIZER;
static int tell_fd = -1; /* peers get it as TELL_FD */
static int generation_next;

static enum hr_err
host_start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    char *argv[] = {(char *)"proc_test", NULL}, number[64];
    char *envp[] = {number, NULL, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int failed;

    (void)reterr;
    snprintf(number, sizeof number, "HR_PROC_TEST_PEER=%d", generation_next++);
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

static void host_kill(void *user, int64_t id)
{
    (void)user;
    kill((pid_t)id, SIGKILL);
}

static const struct hr_code_host host = {NULL, host_start, host_kill, NULL};

/* Every peer ends after the close, however busy the machine is; how many by themselves.
 */
static int reap(void)
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
    generation_next = 0;
    CHECK_EQ_INT(late, 0);
    return polite;
}

/* ---- trips ---- */

static int count_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

static struct hr_field number_field(const char *name)
{
    struct hr_field field = {.kind = HR_FIELD_TENSOR, .dtype = HR_I64};

    snprintf(field.name, sizeof field.name, "%s", name);
    return field;
}

static struct hr_field bytes_field(const char *name)
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

/* One step from `count` fields to as many of the same kind. */
struct single {
    struct hr_field in[4], out[4];
    const struct hr_field *in_list[4], *out_list[4];
    uint16_t inputs[4], outputs[4];
    struct hr_proc_step step;
    struct hr_proc_trip trip;
};

static void single_make(struct single *s, const char *code, enum hr_op_kind kind,
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
                                    .node_id = 3,
                                    .kind = kind,
                                    .input_count = in_count,
                                    .output_count = out_count,
                                    .inputs = s->inputs,
                                    .outputs = s->outputs,
                                    .output_fields = s->out_list};
    s->trip = (struct hr_proc_trip){.slot_count = in_count + out_count,
                                    .input_count = in_count,
                                    .input_fields = s->in_list,
                                    .steps = &s->step,
                                    .step_count = 1,
                                    .result_count = out_count,
                                    .results = s->outputs};
}

static void single_numbers(struct single *s, const char *code)
{
    s->in[0] = number_field("in");
    s->out[0] = number_field("out");
    single_make(s, code, HR_OP_MAP, 1, 1);
}

struct numbers {
    int64_t values[600];
    struct hr_value inputs[600];
    struct hr_proc_record records[600];
};

static struct numbers *numbers_make(size_t count)
{
    struct numbers *n = calloc(1, sizeof *n);

    for (size_t i = 0; i < count; i++) {
        n->values[i] = (int64_t)i;
        hr__value_set_tensor(&n->inputs[i], HR_I64, 0, NULL, &n->values[i], NULL);
        n->records[i].id = (struct hr_record_id){1, 2, i, i};
        n->records[i].inputs = &n->inputs[i];
    }
    return n;
}

static int64_t number(const struct hr_proc_record *record, size_t at)
{
    CHECK_EQ_INT(record->code, HR_OK);
    CHECK_EQ_INT(record->results[at].kind, HR_VALUE_TENSOR);
    CHECK_EQ_INT(record->results[at].dtype, HR_I64);
    return *(const int64_t *)record->results[at].data;
}

TEST(columns_go_through_map_and_back)
{
    int fds = count_fds();
    struct single s = {0};
    struct numbers *n = numbers_make(600);
    struct hr_proc_stats stats;
    struct hr_error error = {0};
    struct hr_proc *proc;

    single_numbers(&s, "add");
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    for (size_t count = 1; count <= 600; count = count * 5 / 2 + 1) {
        CHECK_OK(hr__proc_run(proc, n->records, count, &error));
        for (size_t i = 0; i < count; i++)
            CHECK_EQ_INT(number(&n->records[i], 0), (int64_t)i + 1);
    }
    hr__proc_stats(proc, &stats);
    CHECK(stats.shared_bytes > 600 * 16 && stats.shared_bytes < 200000);
    CHECK_EQ_INT(stats.replaced, 0);
    hr__proc_close(proc);
    CHECK_EQ_INT(reap(), 1);
    CHECK_EQ_INT(count_fds(), fds);
    free(n);
}

/* source -> map -> filter -> map over slots; results: the source's slot and the last. */
TEST(several_steps_share_a_trip)
{
    struct hr_field f[4] = {number_field("a"), number_field("b"), number_field("c")};
    const struct hr_field *out[3] = {&f[0], &f[1], &f[2]};
    uint16_t slots[3] = {0, 1, 2}, results[2] = {0, 2};
    struct hr_proc_step steps[4] = {
        {"source", "s", 0, HR_OP_SOURCE, 0, 1, NULL,      &slots[0], &out[0]},
        {"add",    "m", 1, HR_OP_MAP,    1, 1, &slots[0], &slots[1], &out[1]},
        {"add",    "n", 2, HR_OP_MAP,    1, 1, &slots[1], &slots[2], &out[2]},
        {"even",   "f", 3, HR_OP_FILTER, 1, 0, &slots[2], NULL,      NULL   },
    };
    struct hr_proc_trip trip = {.slot_count = 3,
                                .steps = steps,
                                .step_count = 4,
                                .result_count = 2,
                                .results = results};
    struct numbers *n = numbers_make(20);
    struct hr_error error = {0};
    struct hr_proc *proc;

    CHECK_OK(hr__proc_open(&host, &trip, 0, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 20, &error));
    for (size_t i = 0; i < 20; i++) {
        if (i >= 10) {
            CHECK_EQ_INT(n->records[i].code, HR_ERR_END);
            continue;
        }
        CHECK(!n->records[i].drop);
        CHECK_EQ_INT(number(&n->records[i], 0), 2 * (int64_t)i);
        CHECK_EQ_INT(number(&n->records[i], 1), 2 * (int64_t)i + 2);
    }
    hr__proc_close(proc);
    steps[3].inputs = &slots[1];
    CHECK_OK(hr__proc_open(&host, &trip, 0, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 5, &error));
    for (size_t i = 0; i < 5; i++)
        CHECK(n->records[i].drop);
    hr__proc_close(proc);
    CHECK_EQ_INT(reap(), 2);
    free(n);
}

TEST(random_keys_are_those_of_the_record)
{
    struct single s = {0};
    struct numbers *n = numbers_make(40);
    struct hr_error error = {0};
    struct hr_proc *proc;

    s.out[0] = number_field("k0");
    s.out[1] = number_field("k1");
    single_make(&s, "key", HR_OP_MAP, 0, 2);
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 40, &error));
    for (size_t i = 0; i < 40; i++) {
        struct hr_code_call call = {.id = &n->records[i].id, .node_id = 3, .node = "x"};
        struct hr_code_record record;

        hr__code_record(&call, &record);
        CHECK_EQ_INT(number(&n->records[i], 0), (int64_t)record.key[0]);
        CHECK_EQ_INT(number(&n->records[i], 1), (int64_t)record.key[1]);
    }
    hr__proc_close(proc);
    reap();
    free(n);
}

/* A large array, a transposed view of one, a string and a ragged column. */
struct mixed {
    struct single s;
    float *array;
    int64_t offsets[4];
    int32_t items[6];
    struct hr_value inputs[8][4];
    struct hr_proc_record records[8];
};

static struct mixed *mixed_make(const char *code, size_t fields)
{
    struct mixed *m = calloc(1, sizeof *m);
    int64_t dims[2] = {100, 200};

    m->s.in[0] = m->s.out[0] = tensor_field("array", HR_F32, 100, 200);
    m->s.in[1] = m->s.out[1] = tensor_field("view", HR_F32, -1, -1);
    m->s.in[2] = m->s.out[2] = bytes_field("text");
    m->s.in[3] = m->s.out[3] = (struct hr_field){.name = "ragged",
                                                 .kind = HR_FIELD_RAGGED,
                                                 .dtype = HR_I32,
                                                 .ndim = 1,
                                                 .dims = {{.size = -1}}};
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
        v[3].u.offsets = m->offsets;
        m->records[i].inputs = v;
    }
    return m;
}

static void mixed_check(const struct mixed *m, size_t fields)
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
        CHECK_BYTES(r[3].u.offsets, m->offsets, sizeof m->offsets);
        CHECK_BYTES(r[3].data, m->items, sizeof m->items);
    }
}

static void mixed_free(struct mixed *m)
{
    free(m->array);
    free(m);
}

TEST(arrays_strings_and_ragged_columns_are_passed_on)
{
    struct mixed *m = mixed_make("pass", 4);
    struct hr_error error = {0};
    struct hr_proc *proc;

    CHECK_OK(hr__proc_open(&host, &m->s.trip, 0, NULL, &proc, &error));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(hr__proc_run(proc, m->records, 8, &error));
        mixed_check(m, 4);
        CHECK(m->records[1].results[0].data != m->inputs[1][0].data);
        CHECK(m->records[1].results[0].shared);
    }
    hr__proc_close(proc);
    CHECK_EQ_INT(reap(), 1);
    mixed_free(m);
}

TEST(arrays_and_strings_are_made)
{
    struct mixed *m = mixed_make("copy", 3);
    struct hr_error error = {0};
    struct hr_proc *proc;

    CHECK_OK(hr__proc_open(&host, &m->s.trip, 0, NULL, &proc, &error));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(hr__proc_run(proc, m->records, 8, &error));
        mixed_check(m, 3);
    }
    hr__proc_close(proc);
    CHECK_EQ_INT(reap(), 1);
    mixed_free(m);
}

TEST(a_bound_splits_the_chunk_and_changes_no_result)
{
    size_t bounds[] = {240000, 400000, 700000, 4000000};

    for (size_t k = 0; k < 4; k++)
        for (int copy = 0; copy < 2; copy++) {
            struct mixed *m = mixed_make(copy ? "copy" : "pass", 3);
            struct hr_error error = {0};
            struct hr_proc_stats stats;
            struct hr_proc *proc;

            if (copy && bounds[k] < 400000)
                bounds[k] = 400000;
            CHECK_OK(hr__proc_open(&host, &m->s.trip, bounds[k], NULL, &proc, &error));
            for (int i = 0; i < 3; i++) {
                CHECK_OK(hr__proc_run(proc, m->records, 8, &error));
                mixed_check(m, 3);
            }
            hr__proc_stats(proc, &stats);
            CHECK(stats.shared_bytes <= bounds[k]);
            hr__proc_close(proc);
            mixed_free(m);
        }
    reap();
}

TEST(a_record_beyond_the_bound_is_bad_and_the_others_are_done)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct hr_error error = {0};
    struct hr_proc *proc;

    s.in[0] = number_field("in");
    s.out[0] = bytes_field("p");
    s.out[1] = bytes_field("q");
    single_make(&s, "grow", HR_OP_MAP, 1, 2);
    n->values[4] = 300000;
    n->values[9] = 60000;
    CHECK_OK(hr__proc_open(&host, &s.trip, 200000, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 10, &error));
    for (int i = 0; i < 10; i++) {
        CHECK_EQ_INT(n->records[i].code, i == 4 ? HR_ERR_LIMIT : HR_OK);
        if (i != 4)
            CHECK_EQ_INT(n->records[i].results[1].bytes, n->values[i]);
    }
    CHECK_HAS(n->records[4].error.message, "200000 bytes");
    CHECK_HAS(n->records[4].error.message, "memory_bytes");
    hr__proc_close(proc);
    reap();
    free(n);
}

static uint64_t pages_held(const struct hr_proc *proc)
{
    struct stat in, out;

    fstat(proc->in.fd, &in);
    fstat(proc->out.fd, &out);
    return (uint64_t)(in.st_blocks + out.st_blocks) * 512;
}

TEST(memory_grows_under_a_call_and_a_peak_is_given_back)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct hr_error error = {0};
    struct hr_proc *proc;

    s.in[0] = number_field("in");
    s.out[0] = bytes_field("p");
    s.out[1] = bytes_field("q");
    single_make(&s, "grow", HR_OP_MAP, 1, 2);
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 10; i++)
            n->values[i] = round == 3 ? 1000000 + i : 100 + i;
        CHECK_OK(hr__proc_run(proc, n->records, 10, &error));
        for (int i = 0; i < 10; i++) {
            const struct hr_value *r = n->records[i].results;

            CHECK_EQ_INT(r[0].bytes, n->values[i]);
            CHECK_EQ_INT(((const char *)r[0].data)[r[0].bytes - 1], 'p');
            CHECK_EQ_INT(((const char *)r[1].data)[0], 'q');
            CHECK_EQ_INT(((const char *)r[1].data)[r[1].bytes - 1], 'q');
        }
        if (round == 3)
            CHECK(pages_held(proc) > 20000000);
    }
    CHECK(pages_held(proc) < 200000);
    hr__proc_close(proc);
    reap();
    free(n);
}

TEST(expansions_give_children_with_the_parents_fields)
{
    struct single s = {0};
    uint16_t results[3] = {1, 2, 0};
    struct numbers *n = numbers_make(20);
    struct hr_error error = {0};
    struct hr_proc *proc;

    s.in[0] = number_field("in");
    s.out[0] = number_field("number");
    s.out[1] = bytes_field("text");
    single_make(&s, "children", HR_OP_EXPAND, 1, 2);
    s.trip.results = results;
    s.trip.result_count = 3;
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 20, &error));
    for (int64_t i = 0; i < 20; i++) {
        const struct hr_proc_record *record = &n->records[i];

        CHECK_EQ_INT(record->code, HR_OK);
        CHECK_EQ_INT(record->child_count, i);
        for (int64_t c = 0; c < i; c++) {
            const struct hr_value *child = record->results + 3 * c;

            CHECK_EQ_INT(*(const int64_t *)child[0].data, i * 10 + c);
            CHECK_EQ_INT(child[1].bytes, c);
            if (c > 0)
                CHECK_EQ_INT(((const char *)child[1].data)[c - 1], 'a' + c);
            CHECK_EQ_INT(*(const int64_t *)child[2].data, i);
        }
    }
    hr__proc_close(proc);
    reap();
    free(n);
}

TEST(errors_come_with_code_parameter_and_detail)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct hr_error error = {0};
    struct hr_proc *proc;

    single_numbers(&s, "fail");
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 10, &error));
    for (int64_t i = 0; i < 10; i++) {
        if (i % 3 != 0) {
            CHECK_EQ_INT(number(&n->records[i], 0), i);
            CHECK(n->records[i].detail == NULL);
            continue;
        }
        CHECK_EQ_INT(n->records[i].code, HR_ERR_RANGE);
        CHECK_EQ_INT(n->records[i].error.code, HR_ERR_RANGE);
        CHECK_HAS(n->records[i].error.message, "is a multiple of 3");
        CHECK_EQ_STR(n->records[i].error.param, "number");
        CHECK_EQ_STR(n->records[i].error.node, "mine");
        CHECK_EQ_INT(strlen(n->records[i].detail), i == 3 ? HR_PROC_DETAIL_MAX : 10);
        hr__free(n->records[i].detail);
    }
    hr__proc_close(proc);
    reap();
    free(n);
}

TEST(code_that_breaks_its_contract_is_told_so)
{
    static const char *const words[] = {"made no output 'out'", "declared as int64",
                                        "declared as int64", "returned 77",
                                        "only a source may"};
    static const enum hr_err want[] = {HR_ERR_STATE, HR_ERR_SHAPE, HR_ERR_TYPE,
                                       HR_ERR_INTERNAL, HR_ERR_STATE};
    struct single s = {0};
    struct numbers *n = numbers_make(5);
    struct hr_error error = {0};
    struct hr_proc *proc;

    single_numbers(&s, "forgets");
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 5, &error));
    for (int i = 0; i < 5; i++) {
        CHECK_EQ_INT(n->records[i].code, want[i]);
        CHECK_HAS(n->records[i].error.message, words[i]);
    }
    hr__proc_close(proc);
    reap();
    free(n);
}

TEST(an_unknown_name_is_the_error_of_every_record)
{
    struct single s = {0};
    struct numbers *n = numbers_make(5);
    struct hr_error error = {0};
    struct hr_proc *proc;

    single_numbers(&s, "nobody");
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 5, &error));
    for (int i = 0; i < 5; i++) {
        CHECK_EQ_INT(n->records[i].code, HR_ERR_NOT_FOUND);
        CHECK_HAS(n->records[i].error.message, "no code named 'nobody'");
    }
    hr__proc_close(proc);
    reap();
    free(n);
}

TEST(a_peer_that_dies_once_or_twice_is_replaced_and_nothing_is_lost)
{
    for (int deaths = 1; deaths <= 2; deaths++) {
        int fds = count_fds();
        struct single s = {0};
        struct numbers *n = numbers_make(300);
        struct hr_proc_stats stats;
        struct hr_error error = {0};
        struct hr_proc *proc;

        single_numbers(&s, deaths == 1 ? "die_once" : "die_twice");
        CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
        CHECK_OK(hr__proc_run(proc, n->records, 300, &error));
        for (int64_t i = 0; i < 300; i++)
            CHECK_EQ_INT(number(&n->records[i], 0), i + 1);
        hr__proc_stats(proc, &stats);
        CHECK_EQ_INT(stats.replaced, deaths);
        hr__proc_close(proc);
        CHECK_EQ_INT(reap(), 1);
        CHECK_EQ_INT(count_fds(), fds);
        free(n);
    }
}

TEST(a_record_that_kills_three_peers_is_bad_by_itself)
{
    struct single s = {0};
    struct numbers *n = numbers_make(300);
    struct hr_error error = {0};
    struct hr_proc *proc;

    single_numbers(&s, "die");
    n->values[200] = 7;
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 300, &error));
    for (int64_t i = 0; i < 300; i++) {
        if (i != 7 && i != 200) {
            CHECK_EQ_INT(number(&n->records[i], 0), i + 1);
            continue;
        }
        CHECK_EQ_INT(n->records[i].code, HR_ERR_IO);
        CHECK_HAS(n->records[i].error.message, "worker process died");
        CHECK_EQ_STR(n->records[i].error.node, "mine");
    }
    hr__proc_close(proc);
    reap();
    free(n);
}

/* Kills at random moments, but never three peers in a row: then their record is bad, or
 * the run is given up. A kill that comes too late for its run is the first of the next.
 */
struct killer {
    uint64_t naps_ns; /* naps are shorter */
    int kills, left;  /* under kill_lock; left: in this run */
};

static void *killer(void *user)
{
    struct killer *k = user;
    uint64_t state = 99;

    for (int kills = 0; kills < 50;) {
        uint64_t ns = draw(&state) % k->naps_ns;
        struct timespec nap = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

        nanosleep(&nap, NULL);
        pthread_mutex_lock(&kill_lock);
        if (k->left > 0 && peer_last > 0 && kill(peer_last, SIGKILL) == 0) {
            peer_last = 0;
            k->left--;
            k->kills++;
        }
        kills = k->kills;
        pthread_mutex_unlock(&kill_lock);
    }
    return NULL;
}

static void allow_kills(struct killer *k)
{
    pthread_mutex_lock(&kill_lock);
    k->left = peer_last > 0 ? 2 : 1;
    pthread_mutex_unlock(&kill_lock);
}

TEST(fifty_kills_at_random_moments_lose_nothing)
{
    struct killer k = {0};
    int fds = count_fds();
    struct single s = {0};
    struct numbers *n = numbers_make(60);
    struct hr_error error = {0};
    struct hr_proc *proc;
    pthread_t thread;

    single_numbers(&s, "slow");
    k.naps_ns = hr__now_ns();
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    k.naps_ns = 3 * (hr__now_ns() - k.naps_ns) + 10000000; /* most come to their work */
    pthread_create(&thread, NULL, killer, &k);
    do {
        allow_kills(&k);
        CHECK_OK(hr__proc_run(proc, n->records, 60, &error));
        for (int64_t i = 0; i < 60; i++) {
            CHECK_EQ_INT(n->records[i].code, HR_OK);
            CHECK_EQ_INT(number(&n->records[i], 0), i + 1);
        }
    } while (pthread_tryjoin_np(thread, NULL) != 0);
    CHECK_EQ_INT(k.kills, 50);
    hr__proc_close(proc);
    reap();
    CHECK_EQ_INT(count_fds(), fds);
    free(n);
}

struct canceller {
    int told; /* the read end of tell_fd */
    atomic_bool cancel;
};

static void *cancel_when_told(void *user)
{
    struct canceller *c = user;
    char byte;

    CHECK_EQ_INT(read(c->told, &byte, 1), 1);
    atomic_store(&c->cancel, true);
    return NULL;
}

TEST(a_call_that_hangs_is_cancelled_and_its_process_ended)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct canceller c = {0};
    struct hr_error error = {0};
    struct hr_proc *proc;
    pthread_t thread;
    int ends[2];

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    c.told = ends[0];
    tell_fd = ends[1];
    single_numbers(&s, "hang");
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, &c.cancel, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 5, &error));
    pthread_create(&thread, NULL, cancel_when_told, &c);
    CHECK_ERR(HR_ERR_CANCELLED, hr__proc_run(proc, n->records, 10, &error));
    pthread_join(thread, NULL);
    hr__proc_close(proc);
    CHECK_EQ_INT(reap(), 0);
    tell_fd = -1;
    close(ends[0]);
    close(ends[1]);
    free(n);
}

TEST(code_that_says_cancelled_ends_the_run)
{
    struct single s = {0};
    struct numbers *n = numbers_make(10);
    struct hr_error error = {0};
    struct hr_proc *proc;

    single_numbers(&s, "stop");
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    CHECK_ERR(HR_ERR_CANCELLED, hr__proc_run(proc, n->records, 10, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 5, &error));
    hr__proc_close(proc);
    CHECK_EQ_INT(reap(), 1);
    free(n);
}

static enum hr_err
host_cannot(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    (void)user;
    (void)fd;
    (void)ret_id;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED, "no processes here");
}

TEST(a_host_that_cannot_start_is_reported)
{
    int fds = count_fds();
    struct hr_code_host none = {NULL, host_cannot, host_kill, NULL};
    struct hr_code_host brief = host;
    struct single s = {0};
    struct hr_error error = {0};
    struct hr_proc *proc = NULL;

    single_numbers(&s, "add");
    CHECK_ERR(HR_ERR_UNSUPPORTED, hr__proc_open(&none, &s.trip, 0, NULL, &proc, &error));
    CHECK_HAS(error.message, "no processes here");
    brief.user = (void *)"HR_PROC_TEST_SHORT=1";
    CHECK_ERR(HR_ERR_IO, hr__proc_open(&brief, &s.trip, 0, NULL, &proc, &error));
    CHECK_HAS(error.message, "ended before it was ready");
    CHECK(proc == NULL);
    reap();
    CHECK_EQ_INT(count_fds(), fds);
}

/* ---- peers that lie ---- */

TEST(a_peer_that_writes_nonsense_costs_its_record_only)
{
    struct single s = {0};
    struct numbers *n = numbers_make(20);
    struct hr_error error = {0};
    struct hr_proc *proc;

    single_numbers(&s, "spoil");
    CHECK_OK(hr__proc_open(&host, &s.trip, 0, NULL, &proc, &error));
    CHECK_OK(hr__proc_run(proc, n->records, 20, &error));
    for (int64_t i = 0; i < 20; i++)
        CHECK(n->records[i].code == HR_ERR_IO || number(&n->records[i], 0) == i + 1);
    CHECK_OK(hr__proc_run(proc, n->records, 5, &error));
    for (int64_t i = 0; i < 5; i++)
        CHECK_EQ_INT(number(&n->records[i], 0), i + 1);
    hr__proc_close(proc);
    reap();
    free(n);
}

/* Every byte that a result shows can be read. */
static uint64_t look_at(const struct hr_proc_record *records, size_t count,
                        size_t result_count, bool expand)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        size_t values = result_count * (expand ? records[i].child_count : 1);

        if (records[i].code != HR_OK) {
            sum += strlen(records[i].error.message) +
                   (records[i].detail != NULL ? strlen(records[i].detail) : 0);
            hr__free(records[i].detail);
            continue;
        }
        for (size_t r = 0; r < values && !records[i].drop; r++) {
            const struct hr_value *value = &records[i].results[r];
            const unsigned char *bytes = value->data;

            for (size_t b = 0; b < value->bytes; b += 61)
                sum += bytes[b];
            if (value->bytes > 0)
                sum += bytes[value->bytes - 1];
            if (value->kind == HR_VALUE_RAGGED)
                sum += (uint64_t)value->u.offsets[value->dims[0]];
        }
    }
    return sum;
}

TEST(a_peer_that_scribbles_while_it_is_read_harms_nobody)
{
    struct mixed *m = mixed_make("scribble", 3);
    struct hr_error error = {0};
    struct hr_proc *proc;
    uint64_t from = hr__now_ns(), sum = 0;

    CHECK_OK(hr__proc_open(&host, &m->s.trip, 0, NULL, &proc, &error));
    while (hr__now_ns() - from < 1500000000u && peer_count < PEERS_MAX - 100) {
        enum hr_err code = hr__proc_run(proc, m->records, 8, &error);

        CHECK(code == HR_OK || code == HR_ERR_IO || code == HR_ERR_CANCELLED);
        if (code == HR_OK)
            sum += look_at(m->records, 8, 3, false);
    }
    CHECK(sum != 0);
    hr__proc_close(proc);
    reap();
    mixed_free(m);
}

/* A parent without a peer, so that the bytes of an answer can be made up. */
static void lone_open(struct hr_proc *proc, const struct hr_proc_trip *trip)
{
    *proc = (struct hr_proc){.trip = trip, .bytes_max = SIZE_MAX};
    hr__arena_init(&proc->arena);
    CHECK_OK(hr__proc_map_init(&proc->map, trip));
    CHECK_OK(hr__area_create(&proc->in, 1 << 21, NULL));
    CHECK_OK(hr__area_create(&proc->out, 65536, NULL));
}

static void lone_close(struct hr_proc *proc)
{
    hr__area_close(&proc->in);
    hr__area_close(&proc->out);
    hr__proc_map_finish(&proc->map);
    hr__arena_finish(&proc->arena);
}

/* An answer that is nearly right: numbers near the borders of what is allowed. */
static uint64_t odd_number(uint64_t *state)
{
    static const uint64_t odd[] = {
        0,     1,      3,         64,         4096,
        65536, 65472,  65535,     1u << 31,   UINT32_MAX,
        200,   100,    20000,     UINT64_MAX, (uint64_t)1 << 62,
        80000, 131072, INT64_MAX, 6400};

    return draw(state) % 3 == 0 ? draw(state)
                                : odd[draw(state) % (sizeof odd / sizeof odd[0])];
}

/* What an honest peer would have said. */
static void make_sound(const struct hr_proc *proc)
{
    const struct hr_proc_map *map = &proc->map;
    struct hr_proc_value number = {
        .place = 32768,
        .kind = HR_VALUE_TENSOR,
        .dtype = HR_F32,
        .ndim = 2,
        .dims = {100, 200}
    };

    memset(proc->out.base, 0, proc->out.bytes);
    for (size_t i = 0; i < 8; i++) {
        struct hr_proc_status status = {.children = map->expand ? i : 0, .place = 16384};

        memcpy(proc->out.base + map->status + i * sizeof status, &status, sizeof status);
        for (size_t r = 0; r < map->result_count && !map->expand; r++) {
            struct hr_proc_value passed = {.place = r, .where = HR_PROC_PASSED};

            memcpy(proc->out.base + map->results[r].at + i * map->results[r].step,
                   r == 0 && i % 2 == 0 ? &number : &passed, sizeof passed);
        }
    }
    for (size_t k = 0; k < 64; k++) {
        struct hr_proc_value passed = {.place = k % 2, .where = HR_PROC_PASSED};

        memcpy(proc->out.base + 16384 + k * sizeof passed, k % 4 == 0 ? &number : &passed,
               sizeof passed);
    }
}

/* Up to five changes, to numbers near the borders of what is allowed. */
static void spoil(char *out, size_t end, uint64_t *state)
{
    for (uint64_t k = draw(state) % 6; k > 0; k--) {
        size_t from = draw(state) % 3 == 0 ? 16384 : HR_PROC_HEAD;
        size_t room = from == 16384 ? 4096 : end - from;
        uint64_t number = odd_number(state);
        size_t at = from + draw(state) % room / 8 * 8;

        switch (draw(state) % 3) {
        case 0:
            memcpy(out + at, &number, 8);
            break;
        case 1:
            number = (uint64_t)(0 - draw(state) % 18); /* a code, perhaps */
            memcpy(out + at, &number, 4);
            break;
        default:
            out[at + draw(state) % 8] = (char)(draw(state) % 14);
        }
    }
}

static void fuzz_take(struct mixed *m, uint64_t seed, size_t result_count)
{
    uint64_t state = seed, sound = 0, refused = 0;
    struct hr_proc proc;

    lone_open(&proc, &m->s.trip);
    CHECK_OK(hr__area_reach(&proc.out, 1 << 17, true, NULL));
    CHECK_OK(hr__proc_put(&proc, m->records, 8, NULL));
    for (int round = 0; round < 6000; round++) {
        const char *nonsense = NULL;
        struct hr_error error = {0};
        size_t taken = 0, end = proc.map.out_end;
        enum hr_err code;

        make_sound(&proc);
        spoil(proc.out.base, end, &state);
        hr__arena_reset(&proc.arena);
        for (int i = 0; i < 8; i++)
            m->records[i].detail = NULL;
        code = hr__proc_take(&proc, m->records, 8, &taken, &nonsense, &error);
        CHECK(code == HR_OK || code == HR_ERR_CANCELLED || code == HR_ERR_MEMORY);
        if (code != HR_OK) {
            for (int i = 0; i < 8; i++)
                hr__free(m->records[i].detail);
            continue;
        }
        CHECK((taken == 8) == (nonsense == NULL));
        refused += nonsense != NULL;
        for (size_t i = 0; i < taken; i++)
            sound += m->records[i].code == HR_OK;
        look_at(m->records, taken, result_count, proc.map.expand);
        for (size_t i = taken; i < 8; i++)
            hr__free(m->records[i].detail);
    }
    CHECK(sound > 6000 && refused > 600);
    lone_close(&proc);
}

TEST(made_up_answers_never_lead_outside)
{
    struct mixed *m = mixed_make("pass", 4);

    for (uint64_t seed = 1; seed <= 3; seed++)
        fuzz_take(m, seed, 4);
    mixed_free(m);
    m = mixed_make("children", 2);
    m->s.step.kind = HR_OP_EXPAND;
    for (uint64_t seed = 1; seed <= 3; seed++)
        fuzz_take(m, seed, 2);
    mixed_free(m);
}

TEST(a_trip_survives_its_journey_and_spoiled_ones_are_refused)
{
    struct mixed *m = mixed_make("pass", 4);
    struct hr_proc_trip trip;
    struct hr_arena arena;
    struct hr_error error = {0};
    struct hr_str text;
    uint64_t state = 5;
    char *spoiled;

    hr__arena_init(&arena);
    hr__str_init(&text);
    hr__proc_trip_write(&m->s.trip, &text);
    CHECK_OK(hr__proc_trip_read(text.text, text.length, &arena, &trip, &error));
    CHECK_EQ_INT(trip.slot_count, 8);
    CHECK_EQ_STR(trip.steps[0].code, "pass");
    CHECK_EQ_STR(trip.steps[0].output_fields[2]->name, "text");
    CHECK_EQ_INT(trip.results[3], 7);
    for (size_t cut = 0; cut < text.length; cut += 7)
        CHECK_ERR(HR_ERR_FORMAT,
                  hr__proc_trip_read(text.text, cut, &arena, &trip, &error));
    spoiled = malloc(text.length);
    for (int k = 0; k < 3000; k++) {
        memcpy(spoiled, text.text, text.length);
        for (int b = 0; b < 3; b++)
            spoiled[draw(&state) % text.length] = (char)draw(&state);
        hr__arena_reset(&arena);
        (void)!hr__proc_trip_read(spoiled, text.length, &arena, &trip, &error);
    }
    free(spoiled);
    hr__str_finish(&text);
    hr__arena_finish(&arena);
    mixed_free(m);
}

TEST(serving_a_socket_that_is_closed_or_says_nonsense_ends)
{
    struct hr_error error = {0};
    int ends[2];

    CHECK_ERR(HR_ERR_ARGUMENT, hr_code_serve(-1, find_code, NULL, &error));
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 ? HR_OK : HR_ERR_IO);
    close(ends[0]);
    CHECK_OK(hr_code_serve(ends[1], find_code, NULL, &error));
    close(ends[1]);
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 ? HR_OK : HR_ERR_IO);
    CHECK_EQ_INT(send(ends[0], "hello", 5, 0), 5);
    CHECK_ERR(HR_ERR_FORMAT, hr_code_serve(ends[1], find_code, NULL, &error));
    close(ends[0]);
    close(ends[1]);
}
