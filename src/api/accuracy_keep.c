/*
 * api/accuracy_keep.c - include/headrace/predict.h, predicted and measured: pairs as
 * lines of JSON in the user's cache folder. Appending is one write, so runs may end at
 * once.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/prediction.h"
#include "core/alloc.h"
#include "core/cache_folder.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/str.h"

#define LEAST_SECONDS 0.2

/* ---- measuring ---- */

/* Of this process, and of the run's worker processes. */
static uint64_t cpu_ns_of(const struct hr_iter *iter)
{
    struct hr_iter_stats stats = {0};

    if (iter != NULL)
        hr_iter_stats(iter, &stats);
    return hr__cpu_process_ns() + (uint64_t)(stats.worker_seconds * 1e9);
}

void hr_prediction_start(struct hr_prediction *prediction, const struct hr_iter *iter)
{
    prediction->began_ns = hr__now_ns();
    prediction->cpu_ns = cpu_ns_of(iter);
    prediction->delay_ns = hr__cpu_delay_ns();
}

/* What a record waits for, by the prediction, in seconds. */
static double record_waits(const struct hr_prediction *p)
{
    double ns = 0;

    for (size_t i = 0; i < p->graph->count; i++)
        ns += p->cost.nodes[i].wait_ns;
    return ns * 1e-9;
}

/*
 * How long it would have taken without other programs: threads that were ready would have
 * had a core, so that everything but the waits for files would have been shorter in the
 * same proportion, the time in which threads slept for each other too. It would not have
 * been faster than its cores.
 */
static double undisturbed(const struct hr_prediction *p, const struct hr_measured *m)
{
    double threads = p->threads > 0 ? p->threads : 1;
    double cores = fmin(threads, hr__cpu_count());
    double own = m->cpu_seconds + record_waits(p) * (double)m->records;
    double part = own > 0 ? own / (own + m->delay_seconds) : 1;

    return fmax(m->seconds * part, fmin(m->cpu_seconds / cores, m->seconds));
}

static void measure(const struct hr_prediction *p, const struct hr_iter *iter,
                    int64_t records, struct hr_measured *ret_measured)
{
    uint64_t delay_ns = hr__cpu_delay_ns();
    struct hr_measured m = {
        .records = records,
        .seconds = (double)(hr__now_ns() - p->began_ns) * 1e-9,
        .cpu_seconds = (double)(cpu_ns_of(iter) - p->cpu_ns) * 1e-9,
    };

    if (delay_ns > p->delay_ns)
        m.delay_seconds = (double)(delay_ns - p->delay_ns) * 1e-9;
    if (records > 0) {
        m.rate = (double)records / undisturbed(p, &m);
        m.cpu_ns = m.cpu_seconds / (double)records * 1e9;
    }
    *ret_measured = m;
}

static void add_number(struct hr_str *line, const char *key, double value)
{
    hr__str_addf(line, ", \"%s\": ", key);
    hr__str_add_double(line, value);
}

static void print_pair(const struct hr_prediction *p, const struct hr_measured *m,
                       const char *name, struct hr_str *line)
{
    char fingerprint[HR_HASH_TEXT_BYTES];

    hr__hash_text(p->graph->nodes[p->graph->output].fingerprint, fingerprint);
    hr__str_addf(line, "{\"graph\": \"%s\", \"name\": ", fingerprint);
    hr__str_add_json(line, name, strlen(name));
    hr__str_addf(line, ", \"time\": %llu, \"threads\": %d, \"records\": %lld",
                 (unsigned long long)(hr__wall_ns() / 1000000000u), p->threads,
                 (long long)m->records);
    add_number(line, "seconds", m->seconds);
    add_number(line, "cpu_seconds", m->cpu_seconds);
    add_number(line, "delay_seconds", m->delay_seconds);
    add_number(line, "rate", m->rate);
    add_number(line, "cpu_ns", m->cpu_ns);
    add_number(line, "predicted_rate", p->cost.rate);
    add_number(line, "predicted_cpu_ns", p->cost.cpu_ns);
    hr__str_addf(line, ", \"limit\": \"%s\"}\n", hr__cost_limit_text(p->cost.limit));
}

/* ---- the file ---- */

/* A file that cannot be put aside grows further; it is read only to its limit. */
static void put_aside(const char *path)
{
    struct stat info;
    char *to;

    if (stat(path, &info) != 0 || info.st_size < (off_t)HR_ACCURACY_BYTES)
        return;
    to = hr__accuracy_older(path);
    if (to != NULL)
        (void)rename(path, to);
    hr__free(to);
}

static enum hr_err
append(const char *path, const struct hr_str *line, struct hr_error *reterr)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    ssize_t wrote = -1;

    if (fd >= 0)
        wrote = write(fd, line->text, line->length);
    if (fd >= 0 && close(fd) != 0)
        wrote = -1;
    return wrote == (ssize_t)line->length
               ? HR_OK
               : hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot write %s", path);
}

static enum hr_err keep(const struct hr_str *line, struct hr_error *reterr)
{
    char *path = NULL;
    enum hr_err code;

    if (!hr__str_ok(line))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    HR_TRY(hr__cache_file(HR_ACCURACY_FILE, &path, reterr));
    put_aside(path);
    code = append(path, line, reterr);
    hr__free(path);
    return code;
}

enum hr_err
hr_prediction_keep(struct hr_prediction *prediction, const struct hr_iter *iter,
                   int64_t records, const char *name, struct hr_measured *ret_measured,
                   struct hr_error *reterr)
{
    struct hr_measured measured;
    struct hr_str line;
    enum hr_err code = HR_OK;

    if (prediction == NULL || name == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "prediction and name must not be NULL");
    if (prediction->began_ns == 0)
        return hr__fail(reterr, HR_ERR_STATE,
                        "hr_prediction_start() was not called: nothing was measured");
    measure(prediction, iter, records, &measured);
    if (measured.seconds >= LEAST_SECONDS && records > 0 &&
        prediction->cost.rate != HUGE_VAL) {
        hr__str_init(&line);
        print_pair(prediction, &measured, name, &line);
        code = keep(&line, reterr);
        hr__str_finish(&line);
        measured.kept = code == HR_OK;
    }
    if (ret_measured != NULL)
        *ret_measured = measured;
    return code;
}
