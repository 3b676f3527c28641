/*
 * explain_accuracy.c - headrace explain --accuracy: predicted beside measured, per graph.
 */
#include "cli.h"
#include "explain_predict.h"
#include "term.h"

#include <string.h>

static void print_line(const struct hr_accuracy *a, int width)
{
    printf("%-*s %6zu %8.1f %% %8.1f %% %8.1f %% %8.1f %%\n", width,
           a->name != NULL ? a->name : "all graphs", a->runs, 100 * a->rate[0],
           100 * a->rate[1], 100 * a->cpu[0], 100 * a->cpu[1]);
}

static void print_all(const struct hr_accuracies *kept)
{
    struct hr_accuracy a;
    int width = 10;

    for (size_t i = 1; hr_accuracies_get(kept, i, &a) == HR_OK; i++)
        if ((int)strlen(a.name) > width)
            width = (int)strlen(a.name);
    printf("%s%-*s %6s %21s %21s%s\n", term_bold(stdout), width, "", "", "records/s",
           "CPU per record", term_plain(stdout));
    printf("%s%-*s %6s %10s %10s %10s %10s%s\n", term_bold(stdout), width, "graph",
           "runs", "median", "90 %", "median", "90 %", term_plain(stdout));
    for (size_t i = 1; hr_accuracies_get(kept, i, &a) == HR_OK; i++)
        print_line(&a, width);
    if (hr_accuracies_get(kept, 0, &a) == HR_OK)
        print_line(&a, width);
    printf("\nhow far predictions were from what was measured; the last line is over the "
           "medians of the graphs\n");
}

static void print_errors(struct json *json, const char *key, const double errors[2])
{
    json_open(json, key, '{');
    json_double(json, "median", errors[0]);
    json_double(json, "p90", errors[1]);
    json_close(json, '}');
}

static void print_members(struct json *json, const struct hr_accuracy *a)
{
    json_u64(json, "runs", a->runs);
    print_errors(json, "rate", a->rate);
    print_errors(json, "cpu", a->cpu);
}

static void print_json(const struct hr_accuracies *kept)
{
    struct json json = {.out = stdout};
    struct hr_accuracy a;

    json_open(&json, NULL, '{');
    if (hr_accuracies_get(kept, 0, &a) == HR_OK)
        print_members(&json, &a);
    json_open(&json, "graphs", '[');
    for (size_t i = 1; hr_accuracies_get(kept, i, &a) == HR_OK; i++) {
        json_open(&json, NULL, '{');
        json_text(&json, "name", a.name);
        json_text(&json, "graph", a.graph);
        print_members(&json, &a);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    json_end(&json);
}

int explain_accuracy(bool json)
{
    struct hr_accuracies *kept = NULL;
    struct hr_error error = {0};
    struct hr_accuracy first;

    if (hr_accuracies_read(&kept, &error) != HR_OK)
        return cli_library_failed(&error);
    if (json)
        print_json(kept);
    else if (hr_accuracies_get(kept, 1, &first) == HR_OK)
        print_all(kept);
    else
        printf(
            "no run was predicted yet: headrace run GRAPH --profile FILE keeps how well "
            "that went\n");
    hr_accuracies_free(kept);
    return CLI_OK;
}
