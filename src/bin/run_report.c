/*
 * run_report.c - what a run did, for people and for programs.
 */
#include "node_table.h"
#include "out.h"
#include "run.h"
#include "term.h"

#include <stdio.h>
#include <string.h>

static void print_summary(const struct hr_iter_stats *s, const struct run_result *result)
{
    char records[32], batches[32], bytes[24], seconds[24], rate[32], speed[24];
    char first[24], cpu[24], rss[24];
    double passed = s->seconds > 0 ? s->seconds : 1e-9;

    printf(
        "%s%s records%s in %s batch%s, %s in %s: %s%s records/s%s, %s/s\n",
        term_bold(stdout), term_count(records, sizeof(records), s->records),
        term_plain(stdout), term_count(batches, sizeof(batches), s->batches),
        s->batches == 1 ? "" : "es", term_bytes(bytes, sizeof(bytes), (double)s->bytes),
        term_seconds(seconds, sizeof(seconds), s->seconds), term_bold(stdout),
        term_count(rate, sizeof(rate), (uint64_t)((double)s->records / passed + 0.5)),
        term_plain(stdout), term_bytes(speed, sizeof(speed), (double)s->bytes / passed));
    printf("first batch after %s; CPU %s in %d thread%s; peak memory %s\n",
           term_seconds(first, sizeof(first), s->first_batch_seconds),
           term_seconds(cpu, sizeof(cpu), result->cpu_seconds), s->threads,
           s->threads == 1 ? "" : "s",
           term_bytes(rss, sizeof(rss), (double)result->peak_rss_bytes));
    if (s->cut[0] != '\0')
        printf("%s\n", s->cut);
    if (s->processes > 0)
        printf("%d of %d worker processes used, %d alive\n", s->processes_used,
               s->processes, s->processes_alive);
    if (s->demand > 0)
        printf("demand of %g records/s: %d thread%s used, %u change%s%s%s\n", s->demand,
               s->threads_used, s->threads_used == 1 ? "" : "s", s->thread_changes,
               s->thread_changes == 1 ? "" : "s", s->threads_reason[0] ? "; " : "",
               s->threads_reason);
    if (s->errors > 0 || s->substituted > 0)
        printf("%llu bad record%s, %llu substituted\n", (unsigned long long)s->errors,
               s->errors == 1 ? "" : "s", (unsigned long long)s->substituted);
}

static void print_prediction(const struct run_result *result)
{
    char predicted[32], measured[32], cpu[24], cpu_measured[24];

    printf(
        "predicted %s records/s, measured %s once it was under way and without the time "
        "that other programs had the cores; CPU per record %s, measured %s\n",
        term_count(predicted, sizeof(predicted),
                   (uint64_t)(result->prediction.rate + 0.5)),
        term_count(measured, sizeof(measured), (uint64_t)(result->measured.rate + 0.5)),
        term_seconds(cpu, sizeof(cpu), result->prediction.cpu_ns * 1e-9),
        term_seconds(cpu_measured, sizeof(cpu_measured), result->measured.cpu_ns * 1e-9));
}

void run_report(const struct hr_iter *iter, const struct run_result *result)
{
    struct hr_iter_stats stats;

    hr_iter_stats(iter, &stats);
    print_summary(&stats, result);
    if (result->predicted)
        print_prediction(result);
    if (stats.records > 0 && stats.node_count > 0) { /* else a service's workers know */
        putchar('\n');
        node_table_print(iter);
    }
    if (result->has_digest)
        printf("\ndigest %s\n", result->digest);
}

static void json_stats(struct json *json, const struct hr_iter_stats *s,
                       const struct run_result *result)
{
    json_u64(json, "records", s->records);
    json_u64(json, "batches", s->batches);
    json_u64(json, "bytes", s->bytes);
    json_double(json, "seconds", s->seconds);
    json_double(json, "records_per_second",
                s->seconds > 0 ? (double)s->records / s->seconds : 0);
    json_double(json, "first_batch_seconds", s->first_batch_seconds);
    json_double(json, "cpu_seconds", result->cpu_seconds);
    json_u64(json, "peak_rss_bytes", result->peak_rss_bytes);
    json_open(json, "steady", '{');
    json_u64(json, "records", result->steady_records);
    json_double(json, "seconds", result->steady_seconds);
    json_double(json, "cpu_seconds", result->steady_cpu_seconds);
    json_close(json, '}');
    json_u64(json, "errors", s->errors);
    json_text(json, "digest", result->has_digest ? result->digest : NULL);
    json_u64(json, "substituted", s->substituted);
    json_double(json, "wait_seconds", s->wait_seconds);
    json_double(json, "blocked_seconds", s->blocked_seconds);
    json_u64(json, "memory_bytes", s->memory_bytes);
    json_u64(json, "memory_peak_bytes", s->memory_peak_bytes);
    json_i64(json, "threads", s->threads);
    json_i64(json, "threads_used", s->threads_used);
    json_i64(json, "processes", s->processes);
    json_i64(json, "processes_used", s->processes_used);
    json_i64(json, "processes_alive", s->processes_alive);
    json_double(json, "demand", s->demand);
    json_u64(json, "thread_changes", s->thread_changes);
    json_text(json, "threads_reason", s->threads_reason[0] ? s->threads_reason : NULL);
    json_text(json, "cut", s->cut[0] ? s->cut : NULL);
    json_i64(json, "epoch", s->epoch);
}

static void json_prediction(struct json *json, const struct run_result *result)
{
    json_open(json, "prediction", '{');
    json_double(json, "rate", result->prediction.rate);
    json_double(json, "cpu_ns", result->prediction.cpu_ns);
    json_text(json, "limit", result->prediction.limit);
    json_double(json, "measured_rate", result->measured.rate);
    json_double(json, "measured_cpu_ns", result->measured.cpu_ns);
    json_double(json, "delay_seconds", result->measured.delay_seconds);
    json_close(json, '}');
}

void run_report_json(const struct hr_iter *iter, const struct hr_graph *graph,
                     const struct run_result *result)
{
    struct json json = {.out = stdout};
    struct hr_iter_stats stats;
    char fingerprint[HR_FINGERPRINT_BYTES];

    hr_iter_stats(iter, &stats);
    json_open(&json, NULL, '{');
    json_text(&json, "graph", result->graph_path);
    if (hr_graph_fingerprint(graph, fingerprint) == HR_OK)
        json_text(&json, "fingerprint", fingerprint);
    json_text(&json, "status", result->status);
    if (result->message[0] != '\0')
        json_text(&json, "error", result->message);
    json_bool(&json, "resumed", result->resumed);
    json_text(&json, "output", result->output);
    json_stats(&json, &stats, result);
    if (result->predicted)
        json_prediction(&json, result);
    node_table_json(&json, iter);
    json_close(&json, '}');
    json_end(&json);
}
