/*
 * progress.c - the progress bar. Rates are smoothed over about two seconds for
 * readability, and the time left is computed from the smoothed rate.
 */
#include "progress.h"
#include "stop.h"
#include "term.h"

#include <math.h>
#include <string.h>

#define LIVE_SECONDS 0.1
#define PLAIN_SECONDS 5.0
#define SMOOTH_SECONDS 2.0
#define WAIT_SECONDS 0.5

void progress_begin(struct progress *progress, bool quiet, const char *what)
{
    *progress = (struct progress){.quiet = quiet, .what = what};
    progress->live = !quiet && term_is_live(stderr);
    progress->began = progress->drawn = progress->waited = term_now();
}

void progress_clear(struct progress *progress)
{
    if (progress->live && progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}

static bool is_due(struct progress *progress, double now)
{
    double wait = progress->live ? LIVE_SECONDS : PLAIN_SECONDS;

    return !progress->quiet && now - progress->drawn >= wait;
}

static void
measure(struct progress *progress, double now, uint64_t records, uint64_t bytes)
{
    double passed = now - progress->drawn;
    double rate = (double)(records - progress->records) / passed;
    double bytes_rate = (double)(bytes - progress->bytes) / passed;
    double keep = progress->rate > 0 ? exp(-passed / SMOOTH_SECONDS) : 0;

    progress->rate = keep * progress->rate + (1 - keep) * rate;
    progress->bytes_rate = keep * progress->bytes_rate + (1 - keep) * bytes_rate;
    progress->records = records;
    progress->bytes = bytes;
    progress->drawn = now;
}

/* Draws a line, truncated to the terminal. `fraction` < 0: unknown. */
static void
draw(struct progress *progress, double fraction, const char *head, const char *tail)
{
    char bar[256], line[1024];

    progress->shown = true;
    if (!progress->live) {
        if (fraction >= 0)
            fprintf(stderr, "headrace: %s, %.0f %%, %s\n", head, fraction * 100, tail);
        else
            fprintf(stderr, "headrace: %s, %s\n", head, tail);
        return;
    }
    if (fraction >= 0 && term_width(stderr) >= 60)
        snprintf(line, sizeof(line), "\r%s |%s%s%s| %3.0f %% %s", head,
                 term_green(stderr), term_bar(bar, sizeof(bar), fraction, 20),
                 term_plain(stderr), fraction * 100, tail);
    else
        snprintf(line, sizeof(line), "\r%s, %s", head, tail);
    /* lets the terminal truncate: switches wrapping off around the line */
    fprintf(stderr, "\033[?7l%s\033[K\033[?7h", line);
    fflush(stderr);
}

static double
all_records(const struct progress *progress, const struct hr_iter_stats *stats)
{
    double all = -1;

    if (stats->epoch_records >= 0 && progress->epochs > 0)
        all = (double)stats->epoch_records * (double)progress->epochs;
    if (progress->limit > 0 && (all < 0 || (double)progress->limit < all))
        all = (double)progress->limit;
    return all;
}

static double
done_records(const struct progress *progress, const struct hr_iter_stats *stats)
{
    if (progress->limit > 0 || stats->epoch_records < 0)
        return (double)stats->records;
    return (double)(stats->epoch - progress->epoch_first) * (double)stats->epoch_records +
           (double)stats->epoch_done;
}

void progress_run(struct progress *progress, const struct hr_iter *iter)
{
    struct hr_iter_stats stats;
    double now = term_now(), all, done, fraction = -1;
    char head[64], tail[256], rate[24], bytes[24], eta[40] = "", used[80] = "";

    if (!is_due(progress, now))
        return;
    hr_iter_stats(iter, &stats);
    measure(progress, now, stats.records, stats.bytes);
    all = all_records(progress, &stats);
    done = done_records(progress, &stats);
    if (all > 0) {
        fraction = done / all > 1 ? 1 : done / all;
        if (progress->rate > 0) {
            char left[24];

            term_seconds(left, sizeof(left), (all - all * fraction) / progress->rate);
            snprintf(eta, sizeof(eta), ", %s left", left);
        }
    }
    if (stats.demand > 0)
        snprintf(used, sizeof(used), ", %d of %d threads", stats.threads_used,
                 stats.threads);
    if (stats.demand > 0 && stats.processes > 0)
        snprintf(used + strlen(used), sizeof(used) - strlen(used), ", %d of %d processes",
                 stats.processes_used, stats.processes);
    snprintf(head, sizeof(head), "epoch %lld", (long long)stats.epoch);
    snprintf(tail, sizeof(tail), "%s records/s, %s/s%s%s, %llu ready, %llu errors",
             term_count(rate, sizeof(rate), (uint64_t)progress->rate),
             term_bytes(bytes, sizeof(bytes), progress->bytes_rate), eta, used,
             (unsigned long long)stats.batches_ready, (unsigned long long)stats.errors);
    draw(progress, fraction, head, tail);
}

void progress_wait(struct progress *progress, const struct hr_iter *iter)
{
    double now = term_now();
    struct hr_iter_stats stats;

    if (progress->quiet || now - progress->waited < WAIT_SECONDS)
        return;
    hr_iter_stats(iter, &stats);
    progress->waited = now;
    if (strcmp(stats.waits_for, progress->waits) == 0)
        return;
    snprintf(progress->waits, sizeof(progress->waits), "%s", stats.waits_for);
    progress_clear(progress);
    if (stats.waits_for[0] != '\0')
        fprintf(stderr, "headrace: waits %s\n", stats.waits_for);
}

bool progress_count(void *user, uint64_t done, uint64_t all)
{
    struct progress *progress = user;
    double now = term_now();
    char head[64], tail[128], rate[24], eta[40] = "";

    if (!is_due(progress, now))
        return !stop_requested();
    measure(progress, now, done, 0);
    if (all > done && progress->rate > 0) {
        char left[24];

        term_seconds(left, sizeof(left), (double)(all - done) / progress->rate);
        snprintf(eta, sizeof(eta), ", %s left", left);
    }
    snprintf(head, sizeof(head), "%llu %s", (unsigned long long)done, progress->what);
    snprintf(tail, sizeof(tail), "%s/s%s",
             term_count(rate, sizeof(rate), (uint64_t)progress->rate), eta);
    draw(progress, all > 0 ? (double)done / (double)all : -1, head, tail);
    return !stop_requested();
}
