/*
 * run_report.c - what a run did, for people and for programs.
 *
 * A node's time is CPU time, that of its worker processes included; shares are of the sum
 * over nodes. Time that it waited (for files, processes, locks, a core) is not part of
 * it.
 */
#include "out.h"
#include "run.h"
#include "term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double node_seconds(const struct hr_iter *iter, size_t count)
{
    struct hr_node_stats node;
    double all = 0;

    for (size_t i = 0; i < count; i++)
        if (hr_iter_node_stats(iter, i, &node) == HR_OK)
            all += node.seconds;
    return all;
}

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
    if (s->errors > 0 || s->substituted > 0)
        printf("%llu bad record%s, %llu substituted\n", (unsigned long long)s->errors,
               s->errors == 1 ? "" : "s", (unsigned long long)s->substituted);
}

/* "1.2 MB > 588 kB": bytes per record that come in and go out. */
static const char *flow_text(char *text, size_t room, const struct hr_node_stats *node)
{
    double records = node->records > 0 ? (double)node->records : 1;
    char in[24], out[24];

    snprintf(text, room, "%s > %s",
             term_bytes(in, sizeof(in), (double)node->bytes_in / records),
             term_bytes(out, sizeof(out), (double)node->bytes_out / records));
    return text;
}

static void print_node(const struct hr_node_stats *node, double all)
{
    double share = all > 0 ? node->seconds / all : 0;
    char records[32], each[24], spread[24], wait[24], bar[128], flow[64];

    printf("%-24s %11s %9s %9s  %s%s%s %3.0f %% %9s %19s  %s%s%s\n", node->node,
           term_count(records, sizeof(records), node->records),
           term_seconds(each, sizeof(each), node->record_ns * 1e-9),
           term_seconds(spread, sizeof(spread), sqrt(node->record_ns_variance) * 1e-9),
           term_green(stdout), term_bar(bar, sizeof(bar), share, 8), term_plain(stdout),
           share * 100, term_seconds(wait, sizeof(wait), node->wait_seconds),
           flow_text(flow, sizeof(flow), node), term_dim(stdout),
           node->fused_into != NULL && strcmp(node->fused_into, node->node) != 0
               ? node->fused_into
               : "",
           term_plain(stdout));
}

static void print_nodes(const struct hr_iter *iter, size_t count)
{
    double all = node_seconds(iter, count);
    struct hr_node_stats node;

    printf("\n%s%-24s %11s %9s %9s  %-14s %9s %19s  %s%s\n", term_bold(stdout), "node",
           "records", "CPU each", "+-", "share of CPU", "waited", "bytes in > out",
           "composed into", term_plain(stdout));
    for (size_t i = 0; i < count; i++)
        if (hr_iter_node_stats(iter, i, &node) == HR_OK)
            print_node(&node, all);
}

void run_report(const struct hr_iter *iter, const struct run_result *result)
{
    struct hr_iter_stats stats;

    hr_iter_stats(iter, &stats);
    print_summary(&stats, result);
    if (stats.records > 0)
        print_nodes(iter, stats.node_count);
    if (result->has_digest)
        printf("\ndigest %s\n", result->digest);
}

static void json_node(struct json *json, const struct hr_node_stats *node)
{
    json_open(json, NULL, '{');
    json_text(json, "node", node->node);
    json_text(json, "op", node->op);
    json_u64(json, "records", node->records);
    json_u64(json, "records_out", node->records_out);
    json_u64(json, "errors", node->errors);
    json_u64(json, "dropped", node->dropped);
    json_u64(json, "bytes_in", node->bytes_in);
    json_u64(json, "bytes_out", node->bytes_out);
    json_open(json, "bytes", '{');
    json_u64(json, "read", node->bytes_read);
    json_u64(json, "taken", node->bytes_taken);
    json_u64(json, "updated", node->bytes_updated);
    json_u64(json, "written", node->bytes_written);
    json_close(json, '}');
    json_double(json, "seconds", node->seconds);
    json_double(json, "worker_seconds", node->worker_seconds);
    json_double(json, "wait_seconds", node->wait_seconds);
    json_double(json, "record_ns", node->record_ns);
    json_double(json, "record_ns_variance", node->record_ns_variance);
    json_double(json, "byte_ns", node->byte_ns);
    json_text(json, "fused_into", node->fused_into);
    if (node->kept_entries + node->kept_hits + node->kept_misses > 0) {
        json_open(json, "kept", '{');
        json_u64(json, "entries", node->kept_entries);
        json_u64(json, "bytes", node->kept_bytes);
        json_u64(json, "hits", node->kept_hits);
        json_u64(json, "misses", node->kept_misses);
        json_close(json, '}');
    }
    json_close(json, '}');
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
    json_i64(json, "epoch", s->epoch);
}

void run_report_json(const struct hr_iter *iter, const struct hr_graph *graph,
                     const struct run_result *result)
{
    struct json json = {.out = stdout};
    struct hr_iter_stats stats;
    struct hr_node_stats node;
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
    json_stats(&json, &stats, result);
    json_open(&json, "nodes", '[');
    for (size_t i = 0; i < stats.node_count; i++)
        if (hr_iter_node_stats(iter, i, &node) == HR_OK)
            json_node(&json, &node);
    json_close(&json, ']');
    json_close(&json, '}');
    json_end(&json);
}
