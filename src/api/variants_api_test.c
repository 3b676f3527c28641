/*
 * api/variants_api_test.c - user code in C is measured under a lock and in worker
 * processes, and moves there if that pays. Peers are threads of this process.
 */
#include "headrace/variants.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "headrace/code.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#define BUSY_NS 100000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int served; /* threads that serve */

static void *enter(void *user)
{
    (void)user;
    pthread_mutex_lock(&lock);
    return NULL;
}

static void leave(void *user, void *token)
{
    (void)user;
    (void)token;
    pthread_mutex_unlock(&lock);
}

static void work(uint64_t ns)
{
    uint64_t from = hr__cpu_thread_ns();

    while (hr__cpu_thread_ns() - from < ns)
        continue;
}

static enum hr_err answer(struct hr_code_call *call, struct hr_error *reterr)
{
    struct hr_field_view view;
    void *memory;
    enum hr_err code = hr_code_input(call, 0, &view);

    if (code == HR_OK)
        code = hr_code_room(call, 0, HR_I64, 0, NULL, &memory, reterr);
    if (code == HR_OK)
        memcpy(memory, view.data, 8);
    return code;
}

/* Holds the lock for all of its work, or releases it as NumPy does. */
static enum hr_err hold(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    (void)user;
    work(BUSY_NS);
    return answer(call, reterr);
}

static enum hr_err release(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    (void)user;
    pthread_mutex_unlock(&lock);
    work(BUSY_NS);
    pthread_mutex_lock(&lock);
    return answer(call, reterr);
}

static const struct hr_code codes[] = {
    {.identity = "hold",    .call = hold,    .enter = enter, .leave = leave},
    {.identity = "release", .call = release, .enter = enter, .leave = leave},
};

/* In a peer, which has a lock of its own. */
static enum hr_err alone(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    (void)user;
    work(BUSY_NS);
    return answer(call, reterr);
}

static const struct hr_code *find(void *user, const char *name)
{
    static const struct hr_code code = {.identity = "alone", .call = alone};

    (void)user;
    (void)name;
    return &code;
}

static void *serve(void *user)
{
    int fd = (int)(intptr_t)user;
    enum hr_err code = hr_code_serve(fd, find, NULL, NULL);

    close(fd);
    atomic_fetch_sub(&served, 1);
    return (void *)(intptr_t)code;
}

static enum hr_err start(void *user, int fd, int64_t *ret_id, struct hr_error *reterr)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    pthread_t thread;

    (void)user;
    (void)reterr;
    CHECK(copy >= 0);
    atomic_fetch_add(&served, 1);
    CHECK(pthread_create(&thread, NULL, serve, (void *)(intptr_t)copy) == 0);
    pthread_detach(thread);
    *ret_id = 1;
    return HR_OK;
}

static void end(void *user, int64_t id)
{
    (void)user;
    (void)id;
}

static enum hr_err prepare(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    static const struct hr_code_host host = {.start = start, .kill = end};

    (void)user;
    for (size_t i = 0; i < 2; i++)
        CHECK_OK(hr_graph_code(graph, codes[i].identity, &codes[i], reterr));
    return hr_graph_code_host(graph, &host, reterr);
}

static struct hr_graph *graph_of(const char *code)
{
    struct outcome_job job;
    struct hr_error error = {0};
    struct hr_graph *graph;
    char text[512];

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.range: {n: 1000}\n"
             "  - code.map: {code: %s, fields: value, outputs: [\"x: int64\"]}\n"
             "  - batch.stack: {size: 4}\n",
             code);
    job = outcome_job_text(text);
    job.prepare = prepare;
    graph = outcome_graph(&job, &error);
    if (graph == NULL)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return graph;
}

static struct hr_profile *profile_of(struct hr_graph *graph, struct hr_profile_info *info)
{
    struct hr_profile_options options;
    struct hr_profile *profile;

    hr_profile_options_init(&options);
    options.seconds_max = 2;
    CHECK_OK(hr_graph_profile(graph, &options, &profile, NULL));
    CHECK_OK(hr_profile_node(profile, 1, info));
    for (int i = 0; i < 2000 && atomic_load(&served) > 0; i++)
        usleep(5000);
    CHECK_EQ_INT(atomic_load(&served), 0);
    return profile;
}

static struct hr_variant_choice *
choose(struct hr_graph *graph, const struct hr_profile *profile, double cores)
{
    struct hr_variant_options options;
    struct hr_variant_choice *choice;
    struct hr_error error = {0};

    hr_variant_options_init(&options);
    options.machine.cores = cores;
    if (hr_graph_choose_variants(graph, profile, &options, &choice, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return choice;
}

TEST(code_that_holds_its_lock_moves_if_there_are_cores)
{
    struct hr_graph *graph = graph_of("hold");
    struct hr_variant_choice *choice;
    struct hr_variant_node node;
    struct hr_variant_case way;
    struct hr_profile_info info;
    struct hr_profile *profile = profile_of(graph, &info);
    char *plan;

    CHECK(info.serial > 0.8 && info.serial <= 1);
    CHECK(info.process_ns > 0.5 * BUSY_NS);
    choice = choose(graph, profile, 4);
    CHECK_OK(hr_variant_choice_node(choice, 0, &node));
    CHECK_EQ_STR(node.node, "code.map");
    CHECK(node.moved && node.variant == HR_VARIANT_PROCESSES);
    CHECK_ERR(HR_ERR_RANGE, hr_variant_choice_node(choice, 1, &node));
    CHECK_OK(hr_variant_choice_case(choice, 0, &way));
    CHECK_EQ_STR(way.processes, "code.map");
    CHECK(way.gain > 1.05); /* of costs that a busy machine disturbs */
    CHECK_OK(hr_variant_choice_case(choice, 1, &way));
    CHECK_EQ_STR(way.processes, "");
    CHECK(way.gain == 1);
    CHECK_ERR(HR_ERR_RANGE, hr_variant_choice_case(choice, 2, &way));
    CHECK_OK(hr_variant_choice_plan(choice, &plan, NULL));
    CHECK_HAS(plan, "variant: processes");
    hr_free(plan);
    hr_variant_choice_free(choice);
    choice = choose(graph, profile, 1);
    CHECK_OK(hr_variant_choice_node(choice, 0, &node));
    CHECK(!node.moved && node.variant == HR_VARIANT_THREADS);
    hr_variant_choice_free(choice);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(code_that_releases_its_lock_stays)
{
    struct hr_graph *graph = graph_of("release");
    struct hr_variant_choice *choice;
    struct hr_variant_node node;
    struct hr_profile_info info;
    struct hr_profile *profile = profile_of(graph, &info);

    CHECK(info.serial >= 0 && info.serial < 0.3);
    choice = choose(graph, profile, 2);
    CHECK_OK(hr_variant_choice_node(choice, 0, &node));
    CHECK(!node.moved);
    CHECK_HAS(node.reason, "with the lock that other threads need");
    hr_variant_choice_free(choice);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(arguments_are_checked)
{
    struct hr_graph *graph = graph_of("hold");
    struct hr_variant_choice *choice;
    struct hr_variant_options options;
    struct hr_profile *profile;
    struct hr_error error = {0};
    static const char other[] =
        "{\"headrace_profile\": 1, \"graph\": \"00000000000000000000000000000001\", "
        "\"library\": \"0\", \"variant\": \"inline\", \"fused\": true, \"seconds\": 1, "
        "\"machine\": {\"cpu\": \"x\", \"isa\": \"c\", \"cores\": 2, \"copy\": null, "
        "\"crowd\": null, \"disk\": null}, \"nodes\": [{\"node\": \"a\", \"op\": \"b\", "
        "\"fingerprint\": \"00000000000000000000000000000002\", \"measured\": 1, "
        "\"records_in\": 1, \"records_out\": 1, \"cpu_ns\": 1, \"wait_ns\": 0, "
        "\"deviation_ns\": 0, \"bytes_in\": 0, \"bytes_out\": 0, \"fixed\": null, "
        "\"width\": null}]}";

    CHECK_OK(hr_profile_parse(other, strlen(other), "p", &profile, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_choose_variants(NULL, profile, NULL, &choice, &error));
    CHECK_ERR(HR_ERR_STATE,
              hr_graph_choose_variants(graph, profile, NULL, &choice, &error));
    hr_variant_options_init(&options);
    options.machine.cores = 0.5;
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr_graph_choose_variants(graph, profile, &options, &choice, &error));
    CHECK_HAS(error.message, "cores");
    hr_profile_free(profile);
    hr_graph_unref(graph);
}
