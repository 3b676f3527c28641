/*
 * explain_print.c - predictions as a table, and as JSON.
 */
#include "explain_predict.h"
#include "term.h"

#include <math.h>
#include <string.h>

#define COLUMN 26
#define RATE_MAX 1e15 /* more is no limit */

const char *explain_rate(double rate, char *text, size_t room)
{
    if (rate < RATE_MAX)
        return term_count(text, room, (uint64_t)(rate + 0.5));
    snprintf(text, room, "-");
    return text;
}

typedef const char *
cell_fn(const struct hr_prediction_info *info, char *text, size_t room);

static const char *
rate_cell(const struct hr_prediction_info *info, char *text, size_t room)
{
    return explain_rate(info->rate, text, room);
}

static const char *
limit_cell(const struct hr_prediction_info *info, char *text, size_t room)
{
    snprintf(text, room, "%s", info->limit);
    return text;
}

static const char *
cpu_cell(const struct hr_prediction_info *info, char *text, size_t room)
{
    return term_seconds(text, room, info->cpu_ns * 1e-9);
}

static const char *
busy_cell(const struct hr_prediction_info *info, char *text, size_t room)
{
    snprintf(text, room, "%.1f of %d thread%s", info->busy, info->threads,
             info->threads == 1 ? "" : "s");
    return text;
}

static const char *
memory_cell(const struct hr_prediction_info *info, char *text, size_t room)
{
    char bytes[24];

    snprintf(text, room, "%s%s", term_bytes(bytes, sizeof(bytes), (double)info->memory),
             info->fits ? "" : ", too much");
    return text;
}

static const char *
price_cell(const struct hr_prediction_info *info, char *text, size_t room)
{
    snprintf(text, room, "%.4g", info->price);
    return info->price > 0 ? text : "-";
}

static void
print_row(const struct explain_predictions *p, int width, const char *name, cell_fn *cell)
{
    printf("%-*s", width, name);
    for (size_t i = 0; i < p->column_count; i++) {
        struct hr_prediction_info info;
        char text[64];

        hr_prediction_info(p->columns[i].prediction, &info);
        printf(" %*s", COLUMN, cell(&info, text, sizeof(text)));
    }
    putchar('\n');
}

/* Rates of the limits that are not the least one. */
static void print_limits(const struct explain_predictions *p, int width)
{
    const char *limit;
    double rate;

    for (size_t at = 0;
         hr_prediction_limit(p->columns[0].prediction, at, &limit, &rate) == HR_OK;
         at++) {
        printf("  %-*s", width - 2, limit);
        for (size_t i = 0; i < p->column_count; i++) {
            char text[32] = "-";

            if (hr_prediction_limit(p->columns[i].prediction, at, &limit, &rate) == HR_OK)
                explain_rate(rate, text, sizeof(text));
            printf(" %*s", COLUMN, text);
        }
        putchar('\n');
    }
}

/* The node of that name; false if there is none. */
static bool find(const struct hr_prediction *prediction, const char *name,
                 struct hr_prediction_node *ret_node)
{
    for (size_t i = 0; hr_prediction_node(prediction, i, ret_node) == HR_OK; i++)
        if (strcmp(ret_node->node, name) == 0)
            return true;
    return false;
}

static void print_node(const struct explain_predictions *p, int width, const char *name)
{
    printf("%-*s", width, name);
    for (size_t i = 0; i < p->column_count; i++) {
        struct hr_prediction_node node;
        char cpu[24], bar[64], cell[128];

        if (!find(p->columns[i].prediction, name, &node))
            continue;
        snprintf(cell, sizeof(cell), "%s %3.0f %%",
                 term_seconds(cpu, sizeof(cpu), node.cpu_ns * 1e-9), 100 * node.share);
        printf(" %s %*s", term_bar(bar, sizeof(bar), node.share, 10), COLUMN - 11, cell);
    }
    putchar('\n');
}

static void print_nodes(const struct explain_predictions *p, int width)
{
    const struct hr_prediction *order = p->columns[p->chosen].prediction;
    struct hr_prediction_node node;

    printf("\n%s%-*s", term_bold(stdout), width, "CPU per record");
    for (size_t i = 0; i < p->column_count; i++)
        printf(" %*.*s", COLUMN, COLUMN, p->columns[i].title);
    printf("%s\n", term_plain(stdout));
    for (size_t i = 0; hr_prediction_node(order, i, &node) == HR_OK; i++)
        print_node(p, width, node.node);
}

static void print_decisions(const struct explain_predictions *p)
{
    if (p->decision_count > 0)
        putchar('\n');
    for (size_t i = 0; i < p->decision_count; i++) {
        const struct explain_decision *d = &p->decisions[i];

        if (d->runner_up[0] == '\0')
            printf("%s: %s; no other is faster\n", d->what, d->chosen);
        else
            printf("%s: %s; %.2f times the rate of the next best, %s\n", d->what,
                   d->chosen, d->rate / d->runner_rate, d->runner_up);
    }
}

void explain_print(const struct explain_predictions *p)
{
    struct hr_prediction_node node;
    struct hr_prediction_info info;
    int width = 22;

    for (size_t i = 0; hr_prediction_node(p->columns[0].prediction, i, &node) == HR_OK;
         i++)
        if ((int)strlen(node.node) > width)
            width = (int)strlen(node.node);
    printf("%s%s%s by %s\n\n", term_bold(stdout), p->graph_path, term_plain(stdout),
           p->profile_path);
    printf("%s%-*s", term_bold(stdout), width, "");
    for (size_t i = 0; i < p->column_count; i++)
        printf(" %*.*s", COLUMN, COLUMN, p->columns[i].title);
    printf("%s\n", term_plain(stdout));
    print_row(p, width, "records/s", rate_cell);
    print_row(p, width, "limited by", limit_cell);
    print_limits(p, width);
    print_row(p, width, "CPU per record", cpu_cell);
    print_row(p, width, "cores that compute", busy_cell);
    print_row(p, width, "memory at most", memory_cell);
    print_row(p, width, "price of a million", price_cell);
    print_nodes(p, width);
    for (size_t i = 0; i < p->column_count; i++) {
        hr_prediction_info(p->columns[i].prediction, &info);
        printf("%s%s: %s\n", i == 0 ? "\n" : "", p->columns[i].title, info.reason);
    }
    print_decisions(p);
    cache_report_print(p->places, p->epochs);
    if (p->note[0] != '\0')
        printf("%s\n", p->note);
}

/* ---- JSON ---- */

static void json_perhaps(struct json *json, const char *key, double value)
{
    if (value > 0 && value < HUGE_VAL)
        json_double(json, key, value);
    else
        json_text(json, key, NULL);
}

static void json_limits(struct json *json, const struct hr_prediction *prediction)
{
    const char *limit;
    double rate;

    json_open(json, "limits", '{');
    for (size_t i = 0; hr_prediction_limit(prediction, i, &limit, &rate) == HR_OK; i++)
        json_perhaps(json, limit, rate);
    json_close(json, '}');
}

static void json_nodes(struct json *json, const struct hr_prediction *prediction)
{
    struct hr_prediction_node node;

    json_open(json, "nodes", '[');
    for (size_t i = 0; hr_prediction_node(prediction, i, &node) == HR_OK; i++) {
        json_open(json, NULL, '{');
        json_text(json, "node", node.node);
        json_text(json, "op", node.op);
        json_double(json, "cpu_ns", node.cpu_ns);
        json_double(json, "wait_ns", node.wait_ns);
        json_double(json, "share", node.share);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_column(struct json *json, const struct explain_column *column)
{
    struct hr_prediction_info info;

    hr_prediction_info(column->prediction, &info);
    json_open(json, NULL, '{');
    json_text(json, "title", column->title);
    json_perhaps(json, "rate", info.rate);
    json_double(json, "cpu_ns", info.cpu_ns);
    json_double(json, "busy", info.busy);
    json_i64(json, "threads", info.threads);
    json_text(json, "limit", info.limit);
    json_text(json, "node", info.node);
    json_text(json, "reason", info.reason);
    json_u64(json, "memory_bytes", info.memory);
    json_bool(json, "fits", info.fits);
    json_perhaps(json, "price_per_million", info.price);
    json_limits(json, column->prediction);
    json_nodes(json, column->prediction);
    json_close(json, '}');
}

void explain_print_json(const struct explain_predictions *p)
{
    struct json json = {.out = stdout};

    json_open(&json, NULL, '{');
    json_text(&json, "graph", p->graph_path);
    json_text(&json, "profile", p->profile_path);
    json_open(&json, "predictions", '[');
    for (size_t i = 0; i < p->column_count; i++)
        json_column(&json, &p->columns[i]);
    json_close(&json, ']');
    json_open(&json, "decisions", '[');
    for (size_t i = 0; i < p->decision_count; i++) {
        const struct explain_decision *d = &p->decisions[i];

        json_open(&json, NULL, '{');
        json_text(&json, "what", d->what);
        json_text(&json, "chosen", d->chosen);
        json_perhaps(&json, "rate", d->rate);
        json_text(&json, "runner_up", d->runner_up[0] != '\0' ? d->runner_up : NULL);
        json_perhaps(&json, "runner_up_rate", d->runner_rate);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    cache_report_json(&json, p->places);
    json_text(&json, "note", p->note[0] != '\0' ? p->note : NULL);
    json_close(&json, '}');
    json_end(&json);
}
