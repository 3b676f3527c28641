/*
 * meter_test.c - the meter against what the system says: sums of CPU time over nodes,
 * means of nodes whose cost varies, counts and bytes. All times are CPU times and ratios,
 * so that load on the machine does not matter.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "tests/conformance/photos.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/peers.h"

#define NODES_MAX 20

static const struct hr_code *find_none(void *user, const char *name)
{
    (void)user;
    (void)name;
    return NULL;
}

__attribute__((constructor)) static void be_a_peer(void)
{
    if (peers_argument() != NULL)
        peers_serve(find_none, NULL);
}

struct measured {
    size_t count;
    struct hr_node_stats nodes[NODES_MAX];
    char names[NODES_MAX][64];
    double cpu, open_cpu;   /* what the system says, since open; and of open itself */
    double sum, worker_sum; /* what the nodes say */
    double workers;         /* what the run says of worker processes */
    double outside;         /* the consumer's own: giving batches back, in wall time */
    int64_t records;
};

#define CLOCKS_DIFFER 0.002 /* that of the process and rusage */

static double cpu_seconds(int who)
{
    struct rusage usage;

    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void read_nodes(const struct hr_iter *iter, struct measured *m)
{
    struct hr_iter_stats stats;

    hr_iter_stats(iter, &stats);
    m->count = stats.node_count;
    CHECK(m->count <= NODES_MAX);
    for (size_t i = 0; i < m->count; i++) {
        struct hr_node_stats *node = &m->nodes[i];

        CHECK_OK(hr_iter_node_stats(iter, i, node));
        snprintf(m->names[i], sizeof m->names[i], "%s", node->node);
        m->sum += node->seconds;
        m->worker_sum += node->worker_seconds;
        CHECK(isfinite(node->seconds) && node->seconds >= 0);
        CHECK(node->ordered_seconds >= 0 && node->ordered_seconds <= node->seconds);
        CHECK(isfinite(node->record_ns_variance) && node->record_ns_variance >= 0);
        CHECK(isfinite(node->byte_ns) && isfinite(node->wait_seconds));
    }
}

/* Runs the job and drops its batches; after each the consumer computes for that long. */
static struct measured measure_with(const struct outcome_job *job, uint64_t compute_ns)
{
    struct measured m = {0};
    struct hr_iter *iter = NULL;
    struct hr_batch *batch;
    struct hr_error error = {0};
    struct hr_graph *graph = outcome_graph(job, &error);
    struct hr_iter_stats stats;
    double before;
    enum hr_err code;

    CHECK(graph != NULL);
    before = cpu_seconds(RUSAGE_SELF);
    CHECK_OK(hr_iter_open(graph, &job->options, &iter, &error));
    m.cpu = cpu_seconds(RUSAGE_SELF);
    m.open_cpu = m.cpu - before;
    while ((code = hr_iter_next(iter, &batch, &error)) == HR_OK) {
        uint64_t began = hr__now_ns();

        m.records += hr_batch_records(batch);
        hr_batch_unref(batch);
        while (hr__now_ns() - began < compute_ns)
            ;
        m.outside += 1e-9 * (double)(hr__now_ns() - began);
    }
    if (code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    m.cpu = cpu_seconds(RUSAGE_SELF) - m.cpu;
    hr_iter_stats(iter, &stats);
    m.workers = stats.worker_seconds;
    stats.cpu_seconds -= stats.worker_seconds;
    CHECK(stats.cpu_seconds >= m.cpu - CLOCKS_DIFFER);
    CHECK(stats.cpu_seconds <= cpu_seconds(RUSAGE_SELF) - before + CLOCKS_DIFFER);
    read_nodes(iter, &m);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return m;
}

static struct measured measure(const struct outcome_job *job)
{
    return measure_with(job, 0);
}

static const struct hr_node_stats *node(const struct measured *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->names[i], name) == 0)
            return &m->nodes[i];
    check_failed(__FILE__, __LINE__, "no node %s", name);
    abort();
}

/* A part of `wanted` at most away from it. */
#define CHECK_WITHIN(part, value, wanted)                                                \
    CHECK_NEAR((double)(value), (double)(wanted), (part)*fabs((double)(wanted)))

/* ---- sums ---- */

/* Threads work while hr_iter_open returns: that may count or not. */
static void check_sum(const char *what, const struct measured *m)
{
    if (m->sum < 0.95 * (m->cpu - m->outside) || m->sum > 1.02 * (m->cpu + m->open_cpu))
        check_failed(__FILE__, __LINE__, "%s: nodes say %.4f s, the system %.4f s", what,
                     m->sum, m->cpu);
}

/* Epochs enough for a tenth of a second, so that a tick of the clock does not show. */
static void
check_example(const char *name, struct hr_graph_param *params, size_t count, int epochs)
{
    char path[256];
    struct outcome_job job = outcome_job_text("");

    snprintf(path, sizeof path, "%s/examples/%s.yaml", check_source_dir(), name);
    job.path = path;
    job.text = NULL;
    for (size_t i = 0; i < count; i++)
        job.params[i] = params[i];
    job.param_count = count;
    job.options.epochs = epochs;
    for (int threads = 0; threads <= 2; threads += 2) {
        struct measured m;
        char what[64];

        outcome_job_threads(&job, threads);
        m = measure(&job);
        snprintf(what, sizeof what, "%s, %d threads", name, threads);
        check_sum(what, &m);
    }
}

TEST(nodes_sum_to_the_cpu_time_of_noop)
{
    struct hr_graph_param n = {"n", "3000000"};

    check_example("noop", &n, 1, 1);
}

TEST(nodes_sum_to_the_cpu_time_of_photos)
{
    struct hr_graph_param data = {"data", photos_good()};

    check_example("vision_rrc", &data, 1, 3);
    check_example("vision_eval", &data, 1, 3);
    check_example("simclr", &data, 1, 2);
    check_example("simclr_views", &data, 1, 1);
}

/* The consumer makes the batches itself and computes between them: that CPU time is not
 * taken for that of records which wait. */
TEST(a_consumer_that_computes_hides_no_wait)
{
    struct outcome_job job =
        outcome_job_text("headrace: 1\npipeline:\n  - source.range: {n: 30}\n"
                         "  - debug.sleep: {ms: 2}\n  - batch.stack: {size: 1}\n");
    struct measured m;
    const struct hr_node_stats *sleep;

    outcome_job_threads(&job, 0);
    m = measure_with(&job, 5000000);
    sleep = node(&m, "debug.sleep");
    CHECK(sleep->wait_seconds > 0.9 * 30 * 0.002);
    CHECK(sleep->seconds < 0.2 * sleep->wait_seconds);
}

/* ---- means ---- */

#define SPIN "  - debug.spin: {us: %d, every: %d, factor: %d}\n"

static struct measured spin(int n, const int *a, const int *b, int threads)
{
    struct outcome_job job;
    char text[512];

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.range: {n: %d}\n" SPIN SPIN
             "  - batch.stack: {size: 64}\n",
             n, a[0], a[1], a[2], b[0], b[1], b[2]);
    job = outcome_job_text(text);
    outcome_job_threads(&job, threads);
    return measure(&job);
}

/* Mean of what is asked for, in ns. */
static double wanted(const int *spin)
{
    return 1000.0 * spin[0] *
           (spin[1] > 0 ? (spin[1] - 1 + spin[2]) / (double)spin[1] : 1);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

#define RUNS 7

static double median(double values[RUNS])
{
    qsort(values, RUNS, sizeof values[0], compare_doubles);
    return values[RUNS / 2];
}

/* A spin takes longer than it is asked to, by the time of reading a clock, which depends
 * on what else the machine does but is the same for both nodes of a run. Medians, since
 * the kernel charges a thread for interrupts: one of 0.6 ms in a sampled record counts as
 * eight, and what one node has too much the other has too little. */
static void check_varying(int n, const int *a, const int *b)
{
    for (int threads = 0; threads <= 2; threads += 2) {
        double first[RUNS], second[RUNS];

        for (size_t i = 0; i < RUNS; i++) {
            struct measured m = spin(n, a, b, threads);
            const struct hr_node_stats *one = node(&m, "debug.spin");
            const struct hr_node_stats *two = node(&m, "debug.spin2");
            double more = (one->record_ns + two->record_ns - wanted(a) - wanted(b)) / 2;

            CHECK_EQ_INT(one->records, n);
            CHECK(more > 0);
            check_sum("spin", &m);
            first[i] = one->record_ns / (wanted(a) + more);
            second[i] = two->record_ns / (wanted(b) + more);
        }
        CHECK_WITHIN(0.05, median(first), 1);
        CHECK_WITHIN(0.15, median(second), 1);
    }
}

/* One record in ten costs 100 times as much as the others. */
TEST(short_records_that_vary_have_the_mean_that_is_true)
{
    check_varying(20000, (int[]){1, 10, 100}, (int[]){5, 0, 1});
}

TEST(long_records_that_vary_have_the_mean_that_is_true)
{
    check_varying(400, (int[]){50, 10, 100}, (int[]){100, 0, 1});
}

/* The first record of a block is the dear one: chosen by place, it would be all, a ratio
 * of 33, or none, one of 0.38. An interrupt of 0.6 ms in one of the cheap records has
 * half of the variance of the dear ones: the run with the fewest of them decides. */
TEST(a_pattern_does_not_show)
{
    struct outcome_job job =
        outcome_job_text("headrace: 1\npipeline:\n  - source.range: {n: 40960}\n"
                         "  - debug.spin: {us: 1, every: 64, factor: 100}\n"
                         "  - debug.spin: {us: 3}\n"
                         "  - batch.stack: {size: 64}\n");
    double mean_us = (63 + 100) / 64.0, seconds[RUNS], variance[RUNS], least = INFINITY;

    for (size_t i = 0; i < RUNS; i++) {
        struct measured m = measure(&job);
        const struct hr_node_stats *dear = node(&m, "debug.spin");
        const struct hr_node_stats *cheap = node(&m, "debug.spin2");

        seconds[i] = dear->seconds / cheap->seconds;
        variance[i] = dear->record_ns_variance;
        least = fmin(least, cheap->record_ns_variance);
    }
    CHECK_WITHIN(0.20, median(seconds), (mean_us + 0.25) / 3.25);
    CHECK(median(variance) > 10 * least);
}

/* ---- counts ---- */

TEST(every_kind_of_node_reports)
{
    struct outcome_job job =
        outcome_job_text("headrace: 1\npipeline:\n  - source.range: {n: 100000}\n"
                         "  - order.shuffle: {}\n"
                         "  - batch.stack: {size: 100}\n"
                         "  - batch.unbatch: {}\n"
                         "  - record.filter: {expr: \"value % 4 == 0\"}\n"
                         "  - batch.stack: {size: 50}\n"
                         "    name: last\n");

    for (int threads = 0; threads <= 2; threads += 2) {
        struct measured m;

        outcome_job_threads(&job, threads);
        m = measure(&job);
        CHECK_EQ_INT(m.records, 25000);
        CHECK_EQ_INT(node(&m, "source.range")->records, 100000);
        CHECK_EQ_INT(node(&m, "order.shuffle")->records, 100000);
        CHECK_EQ_INT(node(&m, "batch.stack")->records, 100000);
        CHECK_EQ_INT(node(&m, "batch.stack")->records_out, 1000);
        CHECK_EQ_INT(node(&m, "batch.unbatch")->records, 1000);
        CHECK_EQ_INT(node(&m, "batch.unbatch")->records_out, 100000);
        CHECK_EQ_INT(node(&m, "record.filter")->records, 100000);
        CHECK_EQ_INT(node(&m, "record.filter")->dropped, 75000);
        CHECK_EQ_INT(node(&m, "record.filter")->records_out, 25000);
        CHECK_EQ_INT(node(&m, "last")->records, 25000);
        CHECK_EQ_INT(node(&m, "last")->records_out, 500);
        for (size_t i = 0; i < m.count; i++)
            if (m.nodes[i].seconds <= 0)
                check_failed(__FILE__, __LINE__, "%s reports no time", m.names[i]);
        check_sum("all kinds", &m);
    }
}

static const char *write_numbers(int count)
{
    static char path[512];
    char head[128] = "\x93NUMPY\x01";
    FILE *file;

    snprintf(path, sizeof path, "%s/numbers.npy", check_temp_dir());
    file = fopen(path, "wb");
    CHECK(file != NULL);
    head[8] = 118; /* bytes of the text that follows */
    snprintf(head + 10, sizeof head - 10,
             "{'descr': '<i8', 'fortran_order': False, 'shape': (%d,)}", count);
    memset(head + strlen(head + 10) + 10, ' ', sizeof head - strlen(head + 10) - 10);
    head[sizeof head - 1] = '\n';
    CHECK(fwrite(head, sizeof head, 1, file) == 1);
    for (int64_t i = 0; i < count; i++)
        CHECK(fwrite(&i, sizeof i, 1, file) == 1);
    CHECK(fclose(file) == 0);
    return path;
}

TEST(records_made_at_once_are_charged_to_their_source)
{
    struct outcome_job job;
    char text[1024];

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.npy: {path: '%s'}\n"
             "  - order.shuffle: {}\n  - batch.stack: {size: 1000}\n",
             write_numbers(100000));
    job = outcome_job_text(text);
    job.options.epochs = 3;
    for (int threads = 0; threads <= 2; threads += 2) {
        const struct hr_node_stats *source;
        struct measured m;

        outcome_job_threads(&job, threads);
        m = measure(&job);
        source = node(&m, "source.npy");
        CHECK_EQ_INT(source->records, 300000);
        CHECK_EQ_INT(node(&m, "order.shuffle")->records, 300000);
        CHECK_WITHIN(0.001, source->bytes_written, 8 * 300000);
        CHECK_WITHIN(0.001, node(&m, "batch.stack")->bytes_read, 8 * 300000);
        CHECK(source->seconds > node(&m, "order.shuffle")->seconds);
        CHECK(node(&m, "order.shuffle")->seconds > 0 && source->record_ns > 0);
        check_sum("rows", &m);
    }
}

/* The consumer has the last batch before the thread that output it has counted it. */
TEST(at_the_end_everything_is_counted)
{
    for (int i = 0; i < 300; i++) {
        struct outcome_job job =
            outcome_job_text("headrace: 1\npipeline:\n  - source.range: {n: 1000}\n"
                             "  - batch.stack: {size: 100}\n    name: last\n");
        struct measured m;

        job.options.records_max = i % 2 == 0 ? 200 : 0;
        outcome_job_threads(&job, 1 + i % 3);
        m = measure(&job);
        CHECK_EQ_INT(m.records, i % 2 == 0 ? 200 : 1000);
        CHECK(node(&m, "last")->records >= (uint64_t)m.records);
    }
}

struct reading {
    struct hr_iter *iter;
    atomic_bool stop;
    uint64_t times;
};

static void *read_all(void *user)
{
    struct reading *r = user;

    for (; !atomic_load(&r->stop); r->times++) {
        struct hr_iter_stats stats;
        struct hr_node_stats node;
        uint64_t last = 0;
        char *trace;

        hr_iter_stats(r->iter, &stats);
        for (size_t i = stats.node_count; i-- > 0; last = node.records) {
            CHECK_OK(hr_iter_node_stats(r->iter, i, &node));
            CHECK(node.records >= last); /* a record passes earlier nodes first */
        }
        CHECK_OK(hr_iter_trace(r->iter, &trace, NULL));
        hr_free(trace);
    }
    return NULL;
}

/* A copy is made under the lock: what is read belongs together at any time. */
TEST(stats_and_trace_may_be_read_while_records_run)
{
    struct outcome_job job =
        outcome_job_text("headrace: 1\npipeline:\n  - source.range: {n: 300000}\n"
                         "  - debug.identity: {}\n"
                         "  - record.filter: {expr: \"value % 3 != 1\"}\n");
    struct hr_error error = {0};
    struct hr_graph *graph = outcome_graph(&job, &error);
    struct reading reading = {0};
    struct hr_batch *batch;
    pthread_t reader;
    enum hr_err code;

    outcome_job_threads(&job, 2);
    job.options.trace = true;
    CHECK_OK(hr_iter_open(graph, &job.options, &reading.iter, &error));
    CHECK(pthread_create(&reader, NULL, read_all, &reading) == 0);
    while ((code = hr_iter_next(reading.iter, &batch, &error)) == HR_OK)
        hr_batch_unref(batch);
    CHECK_ERR(HR_ERR_END, code);
    atomic_store(&reading.stop, true);
    CHECK(pthread_join(reader, NULL) == 0);
    CHECK(reading.times > 0);
    hr_iter_close(reading.iter);
    hr_graph_unref(graph);
}

TEST(inputs_are_no_outputs)
{
    struct outcome_job job =
        outcome_job_text("headrace: 1\npipeline:\n  - source.range: {n: 10000}\n"
                         "  - record.filter: {expr: \"value >= 0\"}\n"
                         "  - tensor.cast: {field: value, dtype: float32}\n"
                         "  - batch.stack: {size: 100}\n");
    struct measured m = measure(&job);
    const struct hr_node_stats *source = node(&m, "source.range");
    const struct hr_node_stats *filter = node(&m, "record.filter");
    const struct hr_node_stats *cast = node(&m, "tensor.cast");

    CHECK_EQ_INT(source->bytes_in, 0);
    CHECK_EQ_INT(source->bytes_written, 80000);
    CHECK_EQ_INT(filter->bytes_read, 80000);
    CHECK_EQ_INT(filter->bytes_out, 0);
    CHECK_EQ_INT(cast->bytes_in, 80000);
    CHECK_EQ_INT(cast->bytes_updated, 40000);
    CHECK_EQ_INT(cast->bytes_written, 0);
    CHECK_EQ_INT(node(&m, "batch.stack")->bytes_read, 40000);
}

/* ---- worker processes ---- */

static struct peers peers;

static enum hr_err
prepare_peers(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    (void)user;
    return peers_host(&peers, graph, reterr);
}

TEST(worker_processes_say_what_each_step_took)
{
    struct outcome_job job =
        outcome_job_text("headrace: 1\npipeline:\n  - source.range: {n: 2000}\n"
                         "  - debug.spin: {us: 100}\n"
                         "  - debug.spin: {us: 20, every: 10, factor: 100}\n"
                         "  - batch.stack: {size: 50}\n");
    const struct hr_node_stats *first, *second;
    struct measured m;
    double children;

    peers_init(&peers, "spin");
    job.prepare = prepare_peers;
    outcome_job_threads(&job, 2);
    job.options.variant = HR_VARIANT_PROCESSES;
    children = cpu_seconds(RUSAGE_CHILDREN);
    m = measure(&job);
    peers_finish(&peers);
    children = cpu_seconds(RUSAGE_CHILDREN) - children;
    first = node(&m, "debug.spin");
    second = node(&m, "debug.spin2");
    CHECK_EQ_INT(first->records, 2000);
    /* Starting them is no node's time. */
    CHECK_WITHIN(0.01, m.worker_sum, m.workers);
    CHECK(m.worker_sum >= children * 0.85 && m.worker_sum <= children * 1.01);
    CHECK_WITHIN(0.10, first->worker_seconds, 2000 * 100e-6);
    CHECK_WITHIN(0.10, second->worker_seconds, 2000 * 20e-6 * 10.9);
    CHECK_WITHIN(0.05, m.sum - m.worker_sum, m.cpu);
}
