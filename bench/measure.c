/*
 * measure.c - see measure.h.
 */
#include "measure.h"

#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

#include "core/cpu.h"
#include "headrace/dataset.h"

#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

static cpu_set_t cpus_given;

void bench_die(const char *text, ...)
{
    va_list args;

    fprintf(stderr, "bench: ");
    va_start(args, text);
    vfprintf(stderr, text, args);
    va_end(args);
    fprintf(stderr, "\n");
    exit(1);
}

void bench_must(enum hr_err code, const struct hr_error *error)
{
    if (code != HR_OK)
        bench_die("%s", error->message[0] != '\0' ? error->message : hr_err_text(code));
}

/* ---- clocks and CPUs ---- */

static double seconds_of(clockid_t clock)
{
    struct timespec t = {0};

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bench_now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double bench_cpu_seconds(void)
{
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

double bench_cpu_of(pid_t pid)
{
    clockid_t clock;

    return clock_getcpuclockid(pid, &clock) == 0 ? seconds_of(clock) : 0;
}

void bench_pin(int cpus)
{
    cpu_set_t set = cpus_given;
    int kept = 0;

    for (int i = 0; cpus > 0 && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set) && kept++ >= cpus)
            CPU_CLR(i, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        bench_die("cannot choose CPUs");
}

int bench_cpus(void)
{
    return CPU_COUNT(&cpus_given);
}

/* ---- the machine ---- */

static void cpu_model(char *text, size_t room)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];

    snprintf(text, room, "unknown CPU");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *value = strchr(line, ':');

        if (strncmp(line, "model name", 10) != 0 || value == NULL)
            continue;
        snprintf(text, room, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (file != NULL)
        fclose(file);
}

static void note_machine(struct bench *bench)
{
    double load[1] = {0};
    struct utsname system;
    char model[128];

    cpu_model(model, sizeof(model));
    uname(&system);
    (void)getloadavg(load, 1);
    bench_fact(bench, "cpu", "%s", model);
    bench_fact(bench, "cores", "%d", bench_cpus());
    bench_fact(bench, "isa", "%s", hr__isa_name(hr__isa()));
    bench_fact(bench, "kernel", "%s", system.release);
    bench_fact(bench, "headrace", "%s", hr_version());
    bench_fact(bench, "compiler", "%s", __VERSION__);
#ifdef LIBJPEG_TURBO_VERSION
    bench_fact(bench, "libjpeg-turbo", "%s", STRING(LIBJPEG_TURBO_VERSION));
#endif
    bench_fact(bench, "load at start", "%.1f%s", load[0],
               load[0] > .5 ? " (machine is loaded: prefer ratios and CPU time)" : "");
}

static _Noreturn void usage(const struct bench *bench, int code)
{
    fprintf(code == 0 ? stdout : stderr,
            "%s - %s\nusage: %s [DIR] [--json] [--rounds N]\n", bench->name, bench->what,
            bench->name);
    exit(code);
}

void bench_init(struct bench *bench, int argc, char **argv, const char *name,
                const char *what, const char *unit)
{
    memset(bench, 0, sizeof(*bench));
    bench->name = name;
    bench->what = what;
    bench->unit = unit;
    bench->rounds = 5;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            usage(bench, 0);
        else if (strcmp(argv[i], "--json") == 0)
            bench->json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            bench->rounds = (int)strtol(argv[++i], NULL, 10);
        else if (argv[i][0] != '-' && bench->dir == NULL)
            bench->dir = argv[i];
        else
            usage(bench, 2);
    }
    if (bench->rounds < 1 || bench->rounds > ROUNDS_MAX)
        usage(bench, 2);
    if (sched_getaffinity(0, sizeof(cpus_given), &cpus_given) != 0)
        bench_die("cannot read the CPU affinity");
    note_machine(bench);
}

/* ---- figures ---- */

static bool same_group(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static const struct bench_row *find(const struct bench *bench, const char *name)
{
    for (int i = 0; i < bench->row_count; i++)
        if (same_group(bench->rows[i].group, bench->group) &&
            strcmp(bench->rows[i].name, name) == 0)
            return &bench->rows[i];
    return NULL;
}

static const struct bench_row *
first_of_group(const struct bench *bench, const struct bench_row *row)
{
    while (row > bench->rows && same_group(row[-1].group, row->group))
        row--;
    return row;
}

void bench_group(struct bench *bench, const char *group)
{
    bench->group = group;
}

void bench_add(struct bench *bench, const char *name, double wall, double cpu)
{
    struct bench_row *row = (struct bench_row *)find(bench, name);

    if (row == NULL) {
        if (bench->row_count == ROWS_MAX)
            bench_die("too many rows");
        row = &bench->rows[bench->row_count++];
        snprintf(row->name, sizeof(row->name), "%s", name);
        row->group = bench->group;
    }
    if (row->count == ROUNDS_MAX)
        return;
    row->wall[row->count] = wall;
    row->cpu[row->count++] = cpu;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_middle(const double *values, int count, double spread[2])
{
    double sorted[ROUNDS_MAX];

    spread[0] = spread[1] = 0;
    if (count == 0)
        return 0;
    memcpy(sorted, values, (size_t)count * sizeof(double));
    qsort(sorted, (size_t)count, sizeof(double), by_size);
    spread[0] = sorted[0];
    spread[1] = sorted[count - 1];
    return (sorted[count / 2] + sorted[(count - 1) / 2]) / 2;
}

double bench_median(const struct bench *bench, const char *name)
{
    const struct bench_row *row = find(bench, name);
    double spread[2];

    return row != NULL ? bench_middle(row->wall, row->count, spread) : 0;
}

double bench_median_cpu(const struct bench *bench, const char *name)
{
    const struct bench_row *row = find(bench, name);
    double spread[2];

    return row != NULL ? bench_middle(row->cpu, row->count, spread) : 0;
}

static double ratio_of(const struct bench_row *a, const struct bench_row *b, bool cpu,
                       double ret_spread[2])
{
    double ratios[ROUNDS_MAX];
    int count = a->count < b->count ? a->count : b->count;

    for (int i = 0; i < count; i++)
        ratios[i] = cpu ? a->cpu[i] / b->cpu[i] : a->wall[i] / b->wall[i];
    return bench_middle(ratios, count, ret_spread);
}

double bench_ratio(const struct bench *bench, const char *a, const char *b, bool cpu,
                   double ret_spread[2])
{
    const struct bench_row *one = find(bench, a), *two = find(bench, b);

    ret_spread[0] = ret_spread[1] = 0;
    return one != NULL && two != NULL ? ratio_of(one, two, cpu, ret_spread) : 0;
}

static struct bench_claim *
new_claim(struct bench *bench, const char *what, bool at_least, double limit)
{
    struct bench_claim *claim = &bench->claims[bench->claim_count];

    if (bench->claim_count++ == CLAIMS_MAX)
        bench_die("too many claims");
    snprintf(claim->what, sizeof(claim->what), "%s", what);
    claim->at_least = at_least;
    claim->limit = limit;
    return claim;
}

void bench_claim_ratio(struct bench *bench, const char *what, const char *a,
                       const char *b, bool cpu, bool at_least, double limit)
{
    struct bench_claim *claim = new_claim(bench, what, at_least, limit);

    claim->value = bench_ratio(bench, a, b, cpu, claim->spread);
}

void bench_claim_value(struct bench *bench, const char *what, double value, bool at_least,
                       double limit)
{
    struct bench_claim *claim = new_claim(bench, what, at_least, limit);

    claim->value = claim->spread[0] = claim->spread[1] = value;
}

void bench_fact(struct bench *bench, const char *key, const char *text, ...)
{
    struct bench_fact *fact = &bench->facts[bench->fact_count];
    va_list args;

    if (bench->fact_count++ == FACTS_MAX)
        bench_die("too many facts");
    snprintf(fact->key, sizeof(fact->key), "%s", key);
    va_start(args, text);
    vsnprintf(fact->text, sizeof(fact->text), text, args);
    va_end(args);
}

/* ---- reports ---- */

static bool reached(const struct bench_claim *claim)
{
    return claim->at_least ? claim->value >= claim->limit : claim->value <= claim->limit;
}

static void print_row(const struct bench *bench, const struct bench_row *row)
{
    const struct bench_row *base = first_of_group(bench, row);
    double spread[2], cpu_spread[2], of_spread[2];
    double value = bench_middle(row->wall, row->count, spread);
    double cpu = bench_middle(row->cpu, row->count, cpu_spread);
    char range[48];

    snprintf(range, sizeof(range), "%.4g to %.4g", spread[0], spread[1]);
    if (row == base && row->group != NULL)
        printf("\n  %s\n", row->group);
    printf("  %-34s %10.5g  %-20s %6.2f", row->name, value, range,
           ratio_of(row, base, false, of_spread));
    if (cpu > 0 && bench->cpu_heading != NULL)
        printf("  %10.5g %6.2f", cpu, ratio_of(row, base, true, of_spread));
    printf("\n");
}

static void print_table(const struct bench *bench)
{
    printf("%s: %s\n", bench->name, bench->what);
    for (int i = 0; i < bench->fact_count; i++)
        printf("  %-16s %s\n", bench->facts[i].key, bench->facts[i].text);
    printf("\n  %-34s %10s  %-20s %6s", "", bench->unit, "min to max", "ratio");
    if (bench->cpu_heading != NULL)
        printf("  %10s %6s", bench->cpu_heading, "ratio");
    printf("\n");
    for (int i = 0; i < bench->row_count; i++)
        print_row(bench, &bench->rows[i]);
    printf(
        "  medians of %d rounds, alternating; ratios to the first row%s, within rounds\n",
        bench->rounds, bench->rows[0].group != NULL ? " of each group" : "");
    for (int i = 0; i < bench->claim_count; i++) {
        const struct bench_claim *claim = &bench->claims[i];

        printf("%s  %-62s %8.4g (%.4g to %.4g), claim %s %g: %s\n", i == 0 ? "\n" : "",
               claim->what, claim->value, claim->spread[0], claim->spread[1],
               claim->at_least ? ">=" : "<=", claim->limit,
               reached(claim) ? "reached" : "NOT REACHED");
    }
}

static void print_text(const char *text)
{
    putchar('"');
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            putchar('\\');
        if ((unsigned char)*at >= ' ')
            putchar(*at);
    }
    putchar('"');
}

static void print_rounds(const char *key, const double *values, int count)
{
    double spread[2], median = bench_middle(values, count, spread);

    if (spread[0] < 0)
        return;
    printf(",\"%s\":{\"median\":%.9g,\"least\":%.9g,\"greatest\":%.9g,\"rounds\":[", key,
           median, spread[0], spread[1]);
    for (int i = 0; i < count; i++)
        printf("%s%.9g", i > 0 ? "," : "", values[i]);
    printf("]}");
}

static void print_json(const struct bench *bench)
{
    printf("{\"bench\":\"%s\",\"unit\":\"%s\",\"machine\":{", bench->name, bench->unit);
    for (int i = 0; i < bench->fact_count; i++) {
        printf("%s", i > 0 ? "," : "");
        print_text(bench->facts[i].key);
        printf(":");
        print_text(bench->facts[i].text);
    }
    printf("},\"rows\":[");
    for (int i = 0; i < bench->row_count; i++) {
        const struct bench_row *row = &bench->rows[i];

        printf("%s{\"name\":", i > 0 ? "," : "");
        print_text(row->name);
        if (row->group != NULL) {
            printf(",\"group\":");
            print_text(row->group);
        }
        print_rounds("value", row->wall, row->count);
        print_rounds("cpu", row->cpu, row->count);
        printf("}");
    }
    printf("],\"claims\":[");
    for (int i = 0; i < bench->claim_count; i++) {
        const struct bench_claim *claim = &bench->claims[i];

        printf("%s{\"what\":", i > 0 ? "," : "");
        print_text(claim->what);
        printf(
            ",\"value\":%.9g,\"least\":%.9g,\"greatest\":%.9g,\"%s\":%g,\"reached\":%s}",
            claim->value, claim->spread[0], claim->spread[1],
            claim->at_least ? "at_least" : "at_most", claim->limit,
            reached(claim) ? "true" : "false");
    }
    printf("]}\n");
}

void bench_print(const struct bench *bench)
{
    if (bench->json)
        print_json(bench);
    else
        print_table(bench);
}

/* ---- tools ---- */

void bench_path(char *path, size_t room, const char *name)
{
    char exe[4096];
    ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    char *slash;

    if (length <= 0)
        bench_die("cannot find the program's own path");
    exe[length] = '\0';
    slash = strrchr(exe, '/');
    *slash = '\0';
    if ((size_t)snprintf(path, room, "%s/%s", exe, name) >= room)
        bench_die("the build folder's path is too long");
}

const char *bench_photos(struct bench *bench, char *path, size_t room)
{
    struct hr_synth_photos what = {.count = 500, .classes = 10, .vary = true};
    struct hr_error error = {0};

    if (bench->dir != NULL) {
        bench_fact(bench, "photos", "%s", bench->dir);
        return bench->dir;
    }
    bench_path(path, room, "photos");
    bench_fact(bench, "photos", "500 synthetic photos");
    bench_must(hr_synth_photos(path, &what, NULL, NULL, &error), &error);
    return path;
}

struct hr_graph *
bench_example(const char *name, const struct hr_graph_param *params, size_t count)
{
    struct hr_error error = {0};
    struct hr_graph *graph = NULL;
    char path[4096];

    snprintf(path, sizeof(path), "%s/examples/%s.yaml", BENCH_SOURCE_ROOT, name);
    bench_must(hr_graph_load(path, params, count, &graph, &error), &error);
    return graph;
}

void bench_add_run(struct bench *bench, const char *row, struct hr_graph *graph,
                   const struct hr_iter_options *options, int64_t records)
{
    double wall = bench_now(), cpu = bench_cpu_seconds();
    struct hr_error error = {0};
    struct hr_iter *iter = NULL;
    struct hr_batch *batch = NULL;
    enum hr_err code;

    bench_must(hr_iter_open(graph, options, &iter, &error), &error);
    while ((code = hr_iter_next(iter, &batch, &error)) == HR_OK)
        hr_batch_unref(batch);
    if (code != HR_ERR_END)
        bench_must(code, &error);
    hr_iter_close(iter);
    wall = bench_now() - wall;
    cpu = bench_cpu_seconds() - cpu;
    bench_add(bench, row, wall * 1e9 / (double)records, cpu * 1e9 / (double)records);
}

double bench_child(char *line, size_t room, const char *const *args)
{
    extern char **environ;
    posix_spawn_file_actions_t actions;
    int ends[2], status;
    double began = bench_now(), took;
    FILE *out;
    pid_t pid;

    if (pipe(ends) != 0)
        bench_die("cannot make a pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    if (posix_spawn(&pid, args[0], &actions, NULL, (char *const *)args, environ) != 0)
        bench_die("cannot start %s", args[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out = fdopen(ends[0], "r");
    if (out == NULL || fgets(line, (int)room, out) == NULL)
        bench_die("%s printed nothing", args[0]);
    took = bench_now() - began;
    line[strcspn(line, "\n")] = '\0';
    fclose(out);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        bench_die("%s failed", args[0]);
    return took;
}
