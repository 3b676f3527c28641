/*
 * api/accuracy_read.c - include/headrace/predict.h, how well predictions held: reads the
 * lines that accuracy_keep.c appends, and sums them up by graph.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/prediction.h"
#include "core/alloc.h"
#include "core/cache_folder.h"
#include "core/doc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"

char *hr__accuracy_older(const char *path)
{
    struct hr_str text;
    char *made;

    hr__str_init(&text);
    hr__str_addf(&text, "%s.1", path);
    made = hr__str_take(&text);
    hr__str_finish(&text);
    return made;
}

/* ---- reading ---- */

/* The errors of a graph's runs. */
struct graph_runs {
    char *name, *graph;
    double *rate, *cpu; /* each of `count` */
    size_t count, rate_room, cpu_room;
};

struct hr_accuracies {
    struct graph_runs *graphs;
    size_t count;
};

void hr_accuracies_free(struct hr_accuracies *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->count; i++) {
        hr__free(a->graphs[i].name);
        hr__free(a->graphs[i].graph);
        hr__free(a->graphs[i].rate);
        hr__free(a->graphs[i].cpu);
    }
    hr__free(a->graphs);
    hr__free(a);
}

static struct graph_runs *
graph_of(struct hr_accuracies *a, const char *graph, const char *name)
{
    struct graph_runs *grown, *made;

    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->graphs[i].graph, graph) == 0)
            return &a->graphs[i];
    grown = hr__realloc(a->graphs, (a->count + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    a->graphs = grown;
    made = &grown[a->count];
    *made = (struct graph_runs){.name = hr__strdup(name), .graph = hr__strdup(graph)};
    a->count++; /* also if these are NULL: freed with the rest */
    return made->name != NULL && made->graph != NULL ? made : NULL;
}

/* False if it is missing or not above 0. */
static bool number(const struct hr_doc *map, const char *key, double *ret)
{
    const struct hr_doc *value = hr__doc_get(map, key);

    if (value == NULL || (value->kind != HR_DOC_INT && value->kind != HR_DOC_DOUBLE))
        return false;
    *ret = value->kind == HR_DOC_INT ? (double)value->as.integer : value->as.number;
    return *ret > 0 && *ret < HUGE_VAL;
}

static double apart(double predicted, double measured)
{
    return fabs(predicted - measured) / measured;
}

/* Damaged lines are left out. */
static enum hr_err take_pair(struct hr_accuracies *a, const struct hr_doc *map)
{
    double rate, cpu_ns, predicted_rate, predicted_cpu_ns;
    const char *graph, *name;
    struct graph_runs *runs;

    if (map->kind != HR_DOC_MAP || !number(map, "rate", &rate) ||
        !number(map, "cpu_ns", &cpu_ns) ||
        !number(map, "predicted_rate", &predicted_rate) ||
        !number(map, "predicted_cpu_ns", &predicted_cpu_ns))
        return HR_OK;
    rate = apart(predicted_rate, rate);
    cpu_ns = apart(predicted_cpu_ns, cpu_ns);
    if (!(rate < HUGE_VAL && cpu_ns < HUGE_VAL))
        return HR_OK;
    graph = hr__doc_get_string(map, "graph");
    name = hr__doc_get_string(map, "name");
    if (graph == NULL || name == NULL)
        return HR_OK;
    runs = graph_of(a, graph, name);
    if (runs == NULL ||
        !hr__array_room(&runs->rate, runs->count, &runs->rate_room, 1, sizeof rate) ||
        !hr__array_room(&runs->cpu, runs->count, &runs->cpu_room, 1, sizeof cpu_ns))
        return HR_ERR_MEMORY;
    runs->rate[runs->count] = rate;
    runs->cpu[runs->count++] = cpu_ns;
    return HR_OK;
}

static enum hr_err take_lines(struct hr_accuracies *a, const char *text)
{
    enum hr_err code = HR_OK;

    while (code == HR_OK && *text != '\0') {
        size_t length = strcspn(text, "\n");
        struct hr_doc *line = NULL;

        code = hr__doc_parse(text, length, HR_ACCURACY_FILE, &line, NULL);
        if (code == HR_OK)
            code = take_pair(a, line);
        else if (code != HR_ERR_MEMORY)
            code = HR_OK;
        hr__doc_destroy(line);
        text += length + (text[length] == '\n');
    }
    return code;
}

/* A file that is not there has no lines. */
static enum hr_err
take_file(struct hr_accuracies *a, const char *path, struct hr_error *reterr)
{
    struct hr_error error = {0};
    char *text = NULL;
    size_t bytes;
    enum hr_err code = hr__file_read(path, 2 * HR_ACCURACY_BYTES, &text, &bytes, &error);

    if (code == HR_ERR_NOT_FOUND)
        return HR_OK;
    if (code == HR_OK && take_lines(a, text) != HR_OK)
        code = hr__fail(&error, HR_ERR_MEMORY, "out of memory");
    hr__free(text);
    if (code != HR_OK && reterr != NULL)
        *reterr = error;
    return code;
}

static enum hr_err take_files(struct hr_accuracies *a, struct hr_error *reterr)
{
    char *path = NULL, *before;
    enum hr_err code;

    HR_TRY(hr__cache_file(HR_ACCURACY_FILE, &path, reterr));
    before = hr__accuracy_older(path);
    code = before != NULL ? take_file(a, before, reterr)
                          : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (code == HR_OK)
        code = take_file(a, path, reterr);
    hr__free(before);
    hr__free(path);
    return code;
}

enum hr_err
hr_accuracies_read(struct hr_accuracies **ret_accuracies, struct hr_error *reterr)
{
    struct hr_accuracies *a;
    enum hr_err code;

    if (ret_accuracies == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "ret_accuracies must not be NULL");
    a = hr__calloc(1, sizeof *a);
    if (a == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = take_files(a, reterr);
    if (code != HR_OK)
        hr_accuracies_free(a);
    else
        *ret_accuracies = a;
    return code;
}

struct hr_accuracies *hr__accuracies_parse(const char *text)
{
    struct hr_accuracies *a = hr__calloc(1, sizeof *a);

    if (a == NULL || take_lines(a, text) == HR_OK)
        return a;
    hr_accuracies_free(a);
    return NULL;
}

/* ---- summaries ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts the values; the median and the 90th percentile, between neighbours by line. */
static void summarise(double *values, size_t count, double ret[2])
{
    static const double at[] = {0.5, 0.9};

    qsort(values, count, sizeof *values, by_value);
    for (int i = 0; i < 2; i++) {
        double place = at[i] * (double)(count - 1);
        size_t below = (size_t)place, above = below + 1 < count ? below + 1 : below;

        ret[i] =
            values[below] + (place - (double)below) * (values[above] - values[below]);
    }
}

/* Over the medians of all graphs. */
static enum hr_err sum_up(const struct hr_accuracies *a, struct hr_accuracy *ret)
{
    double *medians = hr__calloc(2 * a->count + 1, sizeof *medians), one[2];

    *ret = (struct hr_accuracy){.name = NULL, .graph = ""};
    if (medians == NULL)
        return HR_ERR_MEMORY;
    for (size_t i = 0; i < a->count; i++) {
        const struct graph_runs *runs = &a->graphs[i];

        ret->runs += runs->count;
        summarise(runs->rate, runs->count, one);
        medians[i] = one[0];
        summarise(runs->cpu, runs->count, one);
        medians[a->count + i] = one[0];
    }
    if (a->count > 0) {
        summarise(medians, a->count, ret->rate);
        summarise(medians + a->count, a->count, ret->cpu);
    }
    hr__free(medians);
    return HR_OK;
}

enum hr_err hr_accuracies_get(const struct hr_accuracies *accuracies, size_t at,
                              struct hr_accuracy *ret_accuracy)
{
    const struct graph_runs *runs;

    if (accuracies == NULL || ret_accuracy == NULL)
        return HR_ERR_ARGUMENT;
    if (at > accuracies->count)
        return HR_ERR_RANGE;
    if (at == 0)
        return sum_up(accuracies, ret_accuracy);
    runs = &accuracies->graphs[at - 1];
    *ret_accuracy = (struct hr_accuracy){
        .name = runs->name, .graph = runs->graph, .runs = runs->count};
    summarise(runs->rate, runs->count, ret_accuracy->rate);
    summarise(runs->cpu, runs->count, ret_accuracy->cpu);
    return HR_OK;
}
