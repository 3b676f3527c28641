/*
 * node_table.c - what the nodes of a run did and cost.
 */
#include "node_table.h"
#include "term.h"

#include <math.h>
#include <string.h>

static size_t node_count(const struct hr_iter *iter)
{
    struct hr_iter_stats stats;

    hr_iter_stats(iter, &stats);
    return stats.node_count;
}

static double node_seconds(const struct hr_iter *iter, size_t count)
{
    struct hr_node_stats node;
    double all = 0;

    for (size_t i = 0; i < count; i++)
        if (hr_iter_node_stats(iter, i, &node) == HR_OK)
            all += node.seconds;
    return all;
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

static void print_node(const struct hr_node_stats *node, int width, double all)
{
    double share = all > 0 ? node->seconds / all : 0;
    char records[32], each[24], spread[24], wait[24], bar[128], flow[64];

    printf("%-*s %11s %9s %9s  %s%s%s %3.0f %% %9s %19s  %s%s%s\n", width, node->node,
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

void node_table_print(const struct hr_iter *iter)
{
    size_t count = node_count(iter);
    double all = node_seconds(iter, count);
    struct hr_node_stats node;
    int width = 4;

    for (size_t i = 0; i < count; i++)
        if (hr_iter_node_stats(iter, i, &node) == HR_OK && (int)strlen(node.node) > width)
            width = (int)strlen(node.node);
    printf("%s%-*s %11s %9s %9s  %-14s %9s %19s  %s%s\n", term_bold(stdout), width,
           "node", "records", "CPU each", "+-", "share of CPU", "waited",
           "bytes in > out", "composed into", term_plain(stdout));
    for (size_t i = 0; i < count; i++)
        if (hr_iter_node_stats(iter, i, &node) == HR_OK)
            print_node(&node, width, all);
    for (size_t i = 0; i < count; i++)
        if (hr_iter_node_stats(iter, i, &node) == HR_OK && node.note[0] != '\0')
            printf("\n%s: %s\n", node.node, node.note);
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
    json_double(json, "ordered_seconds", node->ordered_seconds);
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
    if (node->note[0] != '\0')
        json_text(json, "note", node->note);
    json_close(json, '}');
}

void node_table_json(struct json *json, const struct hr_iter *iter)
{
    size_t count = node_count(iter);
    struct hr_node_stats node;

    json_open(json, "nodes", '[');
    for (size_t i = 0; i < count; i++)
        if (hr_iter_node_stats(iter, i, &node) == HR_OK)
            json_node(json, &node);
    json_close(json, ']');
}
