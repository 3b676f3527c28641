/*
 * explain_measure.c - headrace explain --measure: how a mode changes the user's own
 * records, and what it costs.
 *
 * The graph runs once per mode with the same seed, hence the same order, crops and
 * jitter. The modes alternate batch by batch in this thread, so that their times are
 * comparable. An extra pass in mode fast comes first, so that no mode waits for the disk.
 * Compared are the delivered tensors, not the decoder's planes: the user trains on the
 * former.
 */
#include "explain.h"
#include "out.h"
#include "picture.h"
#include "progress.h"
#include "stop.h"
#include "term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIELDS_MAX 16
#define BATCH 25 /* records per turn */

/* How far a field differs from mode exact, in its own units. */
struct distance {
    double sum, worst_record, worst_value;
    int64_t worst_at; /* the record, counted from 0 in delivery order */
};

struct field {
    char name[64];
    bool whole;       /* levels stored as bytes */
    double magnitude; /* the largest absolute value in mode exact */
    struct distance from_exact[EXPLAIN_MODES];
};

struct mode {
    struct hr_graph *graph;
    struct hr_iter *iter;
    struct hr_batch *batch;
    double seconds;       /* CPU time */
    uint64_t substituted; /* substituted records up to the last turn */
};

struct measure {
    const struct explain_options *options;
    const struct hr_graph *graph;
    const char *path;
    struct mode modes[EXPLAIN_MODES];
    struct field fields[FIELDS_MAX];
    size_t field_count;
    int64_t turns, seen, records; /* seen: in every mode; records: also compared */
    struct progress progress;
};

/* ---- differences ---- */

/* True for images and other planes; labels and boxes do not depend on the mode. */
static bool is_compared(const struct hr_field_view *view)
{
    switch (view->dtype) {
    case HR_U8:
    case HR_F16:
    case HR_BF16:
    case HR_F32:
    case HR_F64:
        return view->offsets == NULL && view->ndim >= 3;
    default:
        return false;
    }
}

static bool same_shape(const struct hr_field_view *a, const struct hr_field_view *b)
{
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;

    for (int d = 0; same && d < a->ndim; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

static struct field *field_of(struct measure *measure, const struct hr_field_view *view)
{
    struct field *field = measure->fields;

    for (size_t i = 0; i < measure->field_count; i++, field++)
        if (strcmp(field->name, view->name) == 0)
            return field;
    if (measure->field_count == FIELDS_MAX)
        return NULL;
    measure->field_count++;
    snprintf(field->name, sizeof(field->name), "%s", view->name);
    field->whole = view->dtype == HR_U8;
    return field;
}

static void
compare_record(struct field *field, int mode, const struct hr_field_view *exact,
               const struct hr_field_view *other, int64_t record, int64_t number)
{
    struct distance *d = &field->from_exact[mode];
    struct picture_walk one, two;
    const void *a, *b;
    double sum = 0, worst = 0, count = 0;

    picture_walk_begin(&one, exact, record);
    picture_walk_begin(&two, other, record);
    while ((a = picture_walk_next(&one)) != NULL &&
           (b = picture_walk_next(&two)) != NULL) {
        double value = picture_element(exact->dtype, a);
        double difference = fabs(value - picture_element(other->dtype, b));

        field->magnitude = fmax(field->magnitude, fabs(value));
        sum += difference;
        worst = fmax(worst, difference);
        count++;
    }
    sum /= count > 0 ? count : 1;
    d->sum += sum;
    d->worst_value = fmax(d->worst_value, worst);
    if (sum > d->worst_record) {
        d->worst_record = sum;
        d->worst_at = number;
    }
}

static int compare_batches(struct measure *measure, int mode)
{
    const struct hr_batch *exact = measure->modes[0].batch;
    const struct hr_batch *other = measure->modes[mode].batch;
    struct hr_field_view a, b;

    for (size_t i = 0; hr_batch_field(exact, i, &a) == HR_OK; i++) {
        struct field *field = is_compared(&a) ? field_of(measure, &a) : NULL;

        if (field == NULL)
            continue;
        if (hr_batch_find(other, a.name, &b) != HR_OK || !same_shape(&a, &b))
            return cli_failed("field '%s' has a different shape in mode %s than in mode "
                              "exact: cannot compare them",
                              a.name, explain_modes[mode]);
        for (int64_t r = 0; r < a.dims[0]; r++)
            compare_record(field, mode, &a, &b, r, measure->records + r);
    }
    return CLI_OK;
}

/* ---- turns ---- */

static int open_mode(struct measure *measure, int at)
{
    struct mode *mode = &measure->modes[at];
    struct hr_iter_options options;
    struct hr_error error = {0};
    int code = explain_graph_in(measure->graph, explain_modes[at], BATCH, &mode->graph);

    if (code != CLI_OK)
        return code;
    hr_iter_options_init(&options);
    options.variant = HR_VARIANT_INLINE;
    options.seed = (uint64_t)measure->options->seed;
    options.records_max = measure->options->records;
    options.on_error = HR_ON_ERROR_SUBSTITUTE;
    options.memory_bytes = (uint64_t)measure->options->plan.memory_bytes;
    options.fuse = !measure->options->plan.no_fuse;
    if (hr_iter_open(mode->graph, &options, &mode->iter, &error) != HR_OK)
        return cli_library(&error);
    return CLI_OK;
}

/* CPU time of this thread, which does all the work; less affected by other load than wall
 * time. */
static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Receives the next batch of every mode; *ret_end if there is none. */
static int take_turn(struct measure *measure, bool *ret_end)
{
    struct hr_error error = {0};
    int ended = 0;

    for (int i = 0; i < EXPLAIN_MODES; i++) {
        struct mode *mode = &measure->modes[(measure->turns + i) % EXPLAIN_MODES];
        double began = cpu_seconds();
        enum hr_err code = hr_iter_next(mode->iter, &mode->batch, &error);

        if (code != HR_OK && code != HR_ERR_END)
            return cli_library_failed(&error);
        ended += code == HR_ERR_END;
        mode->seconds += cpu_seconds() - began;
    }
    *ret_end = ended == EXPLAIN_MODES;
    for (int i = 1; ended < EXPLAIN_MODES && i < EXPLAIN_MODES; i++)
        if (ended > 0 || hr_batch_records(measure->modes[i].batch) !=
                             hr_batch_records(measure->modes[0].batch))
            return cli_failed("the modes give different numbers of records: cannot "
                              "compare them");
    return CLI_OK;
}

/* True if, in this turn, all modes substituted the same number of bad records. */
static bool same_substitutions(struct measure *measure)
{
    uint64_t turn[EXPLAIN_MODES];
    bool alike = true;

    for (int i = 0; i < EXPLAIN_MODES; i++) {
        struct hr_iter_stats stats;

        hr_iter_stats(measure->modes[i].iter, &stats);
        turn[i] = stats.substituted - measure->modes[i].substituted;
        measure->modes[i].substituted = stats.substituted;
        alike = alike && turn[i] == turn[0];
    }
    return alike;
}

static int compare_turn(struct measure *measure)
{
    int64_t records = hr_batch_records(measure->modes[0].batch);
    int code = CLI_OK;

    measure->turns++;
    measure->seen += records;
    if (!same_substitutions(measure))
        return CLI_OK;
    for (int i = 1; i < EXPLAIN_MODES && code == CLI_OK; i++)
        code = compare_batches(measure, i);
    measure->records += records;
    return code;
}

static void close_mode(struct mode *mode)
{
    hr_batch_unref(mode->batch);
    hr_iter_close(mode->iter);
    hr_graph_unref(mode->graph);
    *mode = (struct mode){0};
}

static void show_progress(struct measure *measure, int64_t done)
{
    progress_count(&measure->progress, (uint64_t)done,
                   2 * (uint64_t)measure->options->records);
}

/* Runs all records in the fastest mode. */
static int warm_up(struct measure *measure)
{
    struct mode *mode = &measure->modes[EXPLAIN_MODES - 1];
    struct hr_error error = {0};
    int code = open_mode(measure, EXPLAIN_MODES - 1);
    enum hr_err ended = HR_OK;
    int64_t done = 0;

    while (code == CLI_OK && ended == HR_OK && !stop_requested()) {
        ended = hr_iter_next(mode->iter, &mode->batch, &error);
        if (ended == HR_OK)
            done += hr_batch_records(mode->batch);
        else if (ended != HR_ERR_END)
            code = cli_library_failed(&error);
        hr_batch_unref(mode->batch);
        mode->batch = NULL;
        show_progress(measure, done);
    }
    close_mode(mode);
    return code;
}

static int run_modes(struct measure *measure)
{
    bool end = false;
    int code = warm_up(measure);

    for (int i = 0; i < EXPLAIN_MODES && code == CLI_OK; i++)
        code = open_mode(measure, i);
    while (code == CLI_OK && !end) {
        if (stop_requested())
            return CLI_INTERRUPTED;
        code = take_turn(measure, &end);
        if (code == CLI_OK && !end)
            code = compare_turn(measure);
        for (int i = 0; i < EXPLAIN_MODES; i++) {
            hr_batch_unref(measure->modes[i].batch);
            measure->modes[i].batch = NULL;
        }
        show_progress(measure, measure->options->records + measure->seen);
    }
    return code;
}

/* ---- report ---- */

/* Levels of 255 per unit of the field, or 0 if its values are not within 0..1.
 * Subtracting a mean keeps them within 1 of 0, and a blur or resize may overshoot a
 * little. */
static double levels_of(const struct field *field)
{
    if (field->whole)
        return 1;
    return field->magnitude <= 1.5 ? 255 : 0;
}

static double us_per_record(const struct measure *measure, int mode)
{
    return measure->modes[mode].seconds * 1e6 / (double)measure->seen;
}

static void print_field(const struct measure *measure, const struct field *field)
{
    double levels = levels_of(field), unit = levels > 0 ? levels : 1;

    printf("\n%sField %s%s, differences from mode exact in %s\n", term_bold(stdout),
           field->name, term_plain(stdout),
           levels > 0 ? "grey levels of 255"
                      : "units of the output (before dividing by std)");
    printf("  %-8s %10s %14s %14s\n", "mode", "mean", "worst record", "worst value");
    for (int i = 1; i < EXPLAIN_MODES; i++) {
        const struct distance *d = &field->from_exact[i];

        printf("  %-8s %10.3f %14.3f %14.2f", explain_modes[i],
               unit * d->sum / (double)measure->records, unit * d->worst_record,
               unit * d->worst_value);
        if (d->worst_record > 0)
            printf("   (record %lld)", (long long)d->worst_at);
        printf("\n");
    }
}

static void print_nodes(const struct measure *measure)
{
    struct hr_node_info node;
    const char *comma = "";

    for (size_t i = 0; i < hr_graph_node_count(measure->graph); i++)
        if (explain_has_modes(measure->graph, i) &&
            hr_graph_node_info(measure->graph, i, &node) == HR_OK) {
            printf("%s%s", comma, node.name);
            comma = ", ";
        }
}

static void print_times(const struct measure *measure)
{
    double exact = us_per_record(measure, 0);
    char count[32];

    printf("%s%s%s: %s records, seed %lld; mode set on ", term_bold(stdout),
           measure->path, term_plain(stdout),
           term_count(count, sizeof(count), (uint64_t)measure->records),
           (long long)measure->options->seed);
    print_nodes(measure);
    printf("\n\n  %-8s %14s %10s\n", "mode", "CPU us/record", "speed");
    for (int i = 0; i < EXPLAIN_MODES; i++)
        printf("  %-8s %14.0f %9.2fx\n", explain_modes[i], us_per_record(measure, i),
               exact / us_per_record(measure, i));
    printf("%s  one thread, modes alternating, files in the page cache%s\n",
           term_dim(stdout), term_plain(stdout));
}

static void print_table(const struct measure *measure)
{
    print_times(measure);
    for (size_t i = 0; i < measure->field_count; i++)
        print_field(measure, &measure->fields[i]);
    if (measure->seen > measure->records)
        printf("\n%lld records not compared: some of them are bad in one mode "
               "but not in another\n",
               (long long)(measure->seen - measure->records));
}

static void json_distance(struct json *json, const struct measure *measure, int mode,
                          const struct field *field)
{
    const struct distance *d = &field->from_exact[mode];
    double levels = levels_of(field), unit = levels > 0 ? levels : 1;

    json_open(json, NULL, '{');
    json_text(json, "field", field->name);
    json_text(json, "unit", levels > 0 ? "grey levels" : "output");
    json_double(json, "mean", unit * d->sum / (double)measure->records);
    json_double(json, "worst_record", unit * d->worst_record);
    json_i64(json, "worst_record_at", d->worst_at);
    json_double(json, "worst_value", unit * d->worst_value);
    json_close(json, '}');
}

static void print_json(const struct measure *measure)
{
    struct json json = {.out = stdout};
    struct hr_node_info node;

    json_open(&json, NULL, '{');
    json_text(&json, "graph", measure->path);
    json_i64(&json, "records", measure->records);
    json_i64(&json, "not_compared", measure->seen - measure->records);
    json_i64(&json, "seed", measure->options->seed);
    json_open(&json, "nodes", '[');
    for (size_t i = 0; hr_graph_node_info(measure->graph, i, &node) == HR_OK; i++)
        if (explain_has_modes(measure->graph, i))
            json_text(&json, NULL, node.name);
    json_close(&json, ']');
    json_open(&json, "modes", '[');
    for (int m = 0; m < EXPLAIN_MODES; m++) {
        json_open(&json, NULL, '{');
        json_text(&json, "mode", explain_modes[m]);
        json_double(&json, "cpu_us_per_record", us_per_record(measure, m));
        json_open(&json, "from_exact", '[');
        for (size_t i = 0; m > 0 && i < measure->field_count; i++)
            json_distance(&json, measure, m, &measure->fields[i]);
        json_close(&json, ']');
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    json_end(&json);
}

static int check_measurable(const struct hr_graph *graph)
{
    for (size_t i = 0; i < hr_graph_node_count(graph); i++)
        if (explain_has_modes(graph, i))
            return CLI_OK;
    return cli_usage("no op of this graph has the modes exact, close and fast: "
                     "there is nothing to measure");
}

static void finish(struct measure *measure)
{
    for (int i = 0; i < EXPLAIN_MODES; i++)
        close_mode(&measure->modes[i]);
    free(measure);
}

int explain_measure(const struct hr_graph *graph, const struct explain_options *options,
                    const char *path)
{
    struct measure *measure = calloc(1, sizeof(*measure));
    int code = check_measurable(graph);

    if (measure == NULL)
        return cli_failed("out of memory");
    measure->options = options;
    measure->graph = graph;
    measure->path = path;
    progress_begin(&measure->progress, options->quiet, "records");
    stop_watch(NULL);
    if (code == CLI_OK)
        code = run_modes(measure);
    progress_clear(&measure->progress);
    stop_unwatch();
    if (code == CLI_OK && measure->field_count == 0)
        code = cli_usage("this graph outputs no image or other tensor of two dimensions: "
                         "there is nothing to compare");
    if (code == CLI_OK && options->json)
        print_json(measure);
    else if (code == CLI_OK)
        print_table(measure);
    finish(measure);
    return code;
}
