/*
 * explain_compare.c - how a mode changes the user's own records, and what it costs.
 *
 * The graph runs once per mode with the same seed, hence the same order, crops and
 * jitter. The modes alternate batch by batch in this thread, so that their times are
 * comparable. Compared are the delivered tensors, not the decoder's planes: the user
 * trains on the former.
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

struct explain_compare {
    const struct explain_options *options;
    const struct hr_graph *graph;
    struct mode modes[EXPLAIN_MODES];
    struct field fields[FIELDS_MAX];
    size_t field_count;
    double (*seconds)[EXPLAIN_MODES]; /* CPU time of each turn */
    double *ratios;                   /* scratch, one per turn */
    size_t turns, turns_room;
    int64_t seen, records; /* seen: in every mode; records: also compared */
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

static struct field *
field_of(struct explain_compare *compare, const struct hr_field_view *view)
{
    struct field *field = compare->fields;

    for (size_t i = 0; i < compare->field_count; i++, field++)
        if (strcmp(field->name, view->name) == 0)
            return field;
    if (compare->field_count == FIELDS_MAX)
        return NULL;
    compare->field_count++;
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

static int compare_batches(struct explain_compare *compare, int mode)
{
    const struct hr_batch *exact = compare->modes[0].batch;
    const struct hr_batch *other = compare->modes[mode].batch;
    struct hr_field_view a, b;

    for (size_t i = 0; hr_batch_field(exact, i, &a) == HR_OK; i++) {
        struct field *field = is_compared(&a) ? field_of(compare, &a) : NULL;

        if (field == NULL)
            continue;
        if (hr_batch_find(other, a.name, &b) != HR_OK || !same_shape(&a, &b))
            return cli_failed("field '%s' has a different shape in mode %s than in mode "
                              "exact: cannot compare them",
                              a.name, explain_modes[mode]);
        for (int64_t r = 0; r < a.dims[0]; r++)
            compare_record(field, mode, &a, &b, r, compare->records + r);
    }
    return CLI_OK;
}

/* ---- turns ---- */

static int open_mode(struct explain_compare *compare, int at)
{
    struct mode *mode = &compare->modes[at];
    struct hr_iter_options options;
    struct hr_error error = {0};
    int code = explain_graph_in(compare->graph, explain_modes[at], BATCH, &mode->graph);

    if (code != CLI_OK)
        return code;
    hr_iter_options_init(&options);
    options.variant = HR_VARIANT_INLINE;
    options.uncached = true;
    options.seed = (uint64_t)compare->options->seed;
    options.records_max = compare->options->records;
    options.on_error = HR_ON_ERROR_SUBSTITUTE;
    options.memory_bytes = (uint64_t)compare->options->plan.memory_bytes;
    options.fuse = !compare->options->plan.no_fuse;
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

static int make_room(struct explain_compare *compare)
{
    size_t room = compare->turns_room > 0 ? 2 * compare->turns_room : 64;
    void *seconds, *ratios;

    if (compare->turns < compare->turns_room)
        return CLI_OK;
    seconds = realloc(compare->seconds, room * sizeof(*compare->seconds));
    compare->seconds = seconds != NULL ? seconds : compare->seconds;
    ratios = realloc(compare->ratios, room * sizeof(*compare->ratios));
    compare->ratios = ratios != NULL ? ratios : compare->ratios;
    if (seconds == NULL || ratios == NULL)
        return cli_failed("out of memory");
    compare->turns_room = room;
    return CLI_OK;
}

/* Receives the next batch of every mode; *ret_end if there is none. */
static int take_turn(struct explain_compare *compare, bool *ret_end)
{
    struct hr_error error = {0};
    int ended = 0, no_room = make_room(compare);

    if (no_room != CLI_OK)
        return no_room;
    for (size_t i = 0; i < EXPLAIN_MODES; i++) {
        size_t at = (compare->turns + i) % EXPLAIN_MODES;
        struct mode *mode = &compare->modes[at];
        double began = cpu_seconds();
        enum hr_err code = hr_iter_next(mode->iter, &mode->batch, &error);

        if (code != HR_OK && code != HR_ERR_END)
            return cli_library_failed(&error);
        ended += code == HR_ERR_END;
        compare->seconds[compare->turns][at] = cpu_seconds() - began;
        mode->seconds += compare->seconds[compare->turns][at];
    }
    *ret_end = ended == EXPLAIN_MODES;
    for (int i = 1; ended < EXPLAIN_MODES && i < EXPLAIN_MODES; i++)
        if (ended > 0 || hr_batch_records(compare->modes[i].batch) !=
                             hr_batch_records(compare->modes[0].batch))
            return cli_failed("the modes give different numbers of records: cannot "
                              "compare them");
    return CLI_OK;
}

/* True if, in this turn, all modes substituted the same number of bad records. */
static bool same_substitutions(struct explain_compare *compare)
{
    uint64_t turn[EXPLAIN_MODES];
    bool alike = true;

    for (int i = 0; i < EXPLAIN_MODES; i++) {
        struct hr_iter_stats stats;

        hr_iter_stats(compare->modes[i].iter, &stats);
        turn[i] = stats.substituted - compare->modes[i].substituted;
        compare->modes[i].substituted = stats.substituted;
        alike = alike && turn[i] == turn[0];
    }
    return alike;
}

static int compare_turn(struct explain_compare *compare)
{
    int64_t records = hr_batch_records(compare->modes[0].batch);
    int code = CLI_OK;

    compare->turns++;
    compare->seen += records;
    if (!same_substitutions(compare))
        return CLI_OK;
    for (int i = 1; i < EXPLAIN_MODES && code == CLI_OK; i++)
        code = compare_batches(compare, i);
    compare->records += records;
    return code;
}

static void close_mode(struct mode *mode)
{
    hr_batch_unref(mode->batch);
    hr_iter_close(mode->iter);
    hr_graph_unref(mode->graph);
    *mode = (struct mode){0};
}

static int run_modes(struct explain_compare *compare)
{
    bool end = false;
    int code = CLI_OK;

    for (int i = 0; i < EXPLAIN_MODES && code == CLI_OK; i++)
        code = open_mode(compare, i);
    while (code == CLI_OK && !end) {
        if (stop_requested())
            return CLI_INTERRUPTED;
        code = take_turn(compare, &end);
        if (code == CLI_OK && !end)
            code = compare_turn(compare);
        for (int i = 0; i < EXPLAIN_MODES; i++) {
            hr_batch_unref(compare->modes[i].batch);
            compare->modes[i].batch = NULL;
        }
        progress_count(&compare->progress, (uint64_t)compare->seen,
                       (uint64_t)compare->options->records);
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

static double us_per_record(const struct explain_compare *compare, int mode)
{
    return compare->modes[mode].seconds * 1e6 / fmax(1, (double)compare->seen);
}

static void print_field(const struct explain_compare *compare, const struct field *field)
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
               unit * d->sum / (double)compare->records, unit * d->worst_record,
               unit * d->worst_value);
        if (d->worst_record > 0)
            printf("   (record %lld)", (long long)d->worst_at);
        printf("\n");
    }
}

static void print_nodes(const struct explain_compare *compare)
{
    struct hr_node_info node;
    const char *comma = "";

    for (size_t i = 0; i < hr_graph_node_count(compare->graph); i++)
        if (explain_has_modes(compare->graph, i) &&
            hr_graph_node_info(compare->graph, i, &node) == HR_OK) {
            printf("%s%s", comma, node.name);
            comma = ", ";
        }
}

static int by_value(const void *a, const void *b)
{
    double one = *(const double *)a, two = *(const double *)b;

    return (one > two) - (one < two);
}

/* The speed of a mode relative to mode exact: the median over the turns, and the middle
 * half of them. */
struct speed {
    double median, low, high;
};

static struct speed speed_of(const struct explain_compare *compare, int mode)
{
    double *ratios = compare->ratios;
    size_t count = compare->turns;

    for (size_t i = 0; i < count; i++)
        ratios[i] = compare->seconds[i][0] / fmax(compare->seconds[i][mode], 1e-9);
    if (count == 0)
        return (struct speed){0};
    qsort(ratios, count, sizeof(*ratios), by_value);
    return (struct speed){.median = (ratios[count / 2] + ratios[(count - 1) / 2]) / 2,
                          .low = ratios[count / 4],
                          .high = ratios[count - 1 - count / 4]};
}

static void print_times(const struct explain_compare *compare)
{
    struct speed speed;
    char count[32];

    printf("%s%s records%s, seed %lld; mode set on ", term_bold(stdout),
           term_count(count, sizeof(count), (uint64_t)compare->records),
           term_plain(stdout), (long long)compare->options->seed);
    print_nodes(compare);
    printf("\n\n  %-8s %14s %10s   %s\n", "mode", "CPU us/record", "speed",
           "middle half");
    for (int i = 0; i < EXPLAIN_MODES; i++) {
        speed = speed_of(compare, i);
        printf("  %-8s %14.0f %9.2fx", explain_modes[i], us_per_record(compare, i),
               speed.median);
        if (i > 0)
            printf("   %.2fx to %.2fx", speed.low, speed.high);
        printf("\n");
    }
    printf("%s  one thread, files in the page cache; speed: median of turns of %d "
           "records%s\n",
           term_dim(stdout), BATCH, term_plain(stdout));
}

void explain_compare_print(const struct explain_compare *compare)
{
    if (compare->field_count == 0) {
        printf("The modes are not compared: %s\n",
               compare->records == 0 ? "there are no records"
                                     : "the graph outputs no image or other tensor of "
                                       "two or more dimensions");
        return;
    }
    print_times(compare);
    for (size_t i = 0; i < compare->field_count; i++)
        print_field(compare, &compare->fields[i]);
    if (compare->seen > compare->records)
        printf("\n%lld records not compared: some of them are bad in one mode "
               "but not in another\n",
               (long long)(compare->seen - compare->records));
}

static void json_distance(struct json *json, const struct explain_compare *compare,
                          int mode, const struct field *field)
{
    const struct distance *d = &field->from_exact[mode];
    double levels = levels_of(field), unit = levels > 0 ? levels : 1;

    json_open(json, NULL, '{');
    json_text(json, "field", field->name);
    json_text(json, "unit", levels > 0 ? "grey levels" : "output");
    json_double(json, "mean", unit * d->sum / (double)compare->records);
    json_double(json, "worst_record", unit * d->worst_record);
    json_i64(json, "worst_record_at", d->worst_at);
    json_double(json, "worst_value", unit * d->worst_value);
    json_close(json, '}');
}

void explain_compare_json(struct json *json, const struct explain_compare *compare)
{
    struct hr_node_info node;
    struct speed speed;

    json_i64(json, "records", compare->records);
    json_i64(json, "not_compared", compare->seen - compare->records);
    json_open(json, "mode_nodes", '[');
    for (size_t i = 0; hr_graph_node_info(compare->graph, i, &node) == HR_OK; i++)
        if (explain_has_modes(compare->graph, i))
            json_text(json, NULL, node.name);
    json_close(json, ']');
    json_open(json, "modes", '[');
    for (int m = 0; m < EXPLAIN_MODES; m++) {
        json_open(json, NULL, '{');
        json_text(json, "mode", explain_modes[m]);
        json_double(json, "cpu_us_per_record", us_per_record(compare, m));
        speed = speed_of(compare, m);
        json_double(json, "speed", speed.median);
        json_double(json, "speed_low", speed.low);
        json_double(json, "speed_high", speed.high);
        json_open(json, "from_exact", '[');
        for (size_t i = 0; m > 0 && i < compare->field_count; i++)
            json_distance(json, compare, m, &compare->fields[i]);
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
}

static bool has_modes(const struct hr_graph *graph)
{
    for (size_t i = 0; i < hr_graph_node_count(graph); i++)
        if (explain_has_modes(graph, i))
            return true;
    return false;
}

void explain_compare_finish(struct explain_compare *compare)
{
    if (compare == NULL)
        return;
    for (int i = 0; i < EXPLAIN_MODES; i++)
        close_mode(&compare->modes[i]);
    free(compare->seconds);
    free(compare->ratios);
    free(compare);
}

int explain_compare_run(const struct hr_graph *graph,
                        const struct explain_options *options,
                        struct explain_compare **ret_compare)
{
    struct explain_compare *compare;
    int code;

    *ret_compare = NULL;
    if (!has_modes(graph))
        return CLI_OK;
    *ret_compare = compare = calloc(1, sizeof(*compare));
    if (compare == NULL)
        return cli_failed("out of memory");
    compare->options = options;
    compare->graph = graph;
    progress_begin(&compare->progress, options->quiet, "records");
    code = run_modes(compare);
    progress_clear(&compare->progress);
    return code;
}
