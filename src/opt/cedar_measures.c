/*
 * opt/cedar_measures.c - reads and prints cedar's statistics.
 */
#include <string.h>

#include "core/str.h"
#include "opt/cedar_form.h"

/* ---- reading ---- */

struct parse {
    struct hr_form form;
    struct hr_cedar_measures *measures;
};

static struct hr_cedar_measure *find(const struct parse *p, int64_t id)
{
    for (size_t i = 0; i < p->measures->pipe_count; i++)
        if (p->measures->pipes[i].id == id)
            return &p->measures->pipes[i];
    return NULL;
}

static enum hr_err
check_keys(const struct parse *p, const struct hr_doc *map, const char *const *names)
{
    struct hr_form_keys keys = {.count = 0};

    for (; *names != NULL; names++)
        hr__form_add_key(&keys, *names);
    return hr__form_check_keys(&p->form, map, &keys);
}

static const char *const run_keys[] = {"throughput", "latencies", "input_sizes",
                                       "output_sizes", NULL};

/* ---- the baseline ---- */

static enum hr_err read_ids(const struct parse *p, const struct hr_doc *map)
{
    struct hr_cedar_measures *measures = p->measures;

    if (map->as.map.count == 0)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, map, "\"latencies\" is empty");
    if (map->as.map.count > HR_CEDAR_PIPES_MAX)
        return HR_FORM_FAIL(&p->form, HR_ERR_LIMIT, map,
                            "\"latencies\" has %zu pipes; at most %d", map->as.map.count,
                            HR_CEDAR_PIPES_MAX);
    for (size_t i = 0; i < map->as.map.count; i++) {
        struct hr_cedar_measure *pipe = &measures->pipes[i];

        *pipe = (struct hr_cedar_measure){.id = 0};
        HR_TRY(hr__cedar_key(&p->form, &map->as.map.pairs[i], &pipe->id));
        measures->pipe_count++;
    }
    return HR_OK;
}

/* One number for each pipe, at this offset of struct hr_cedar_measure. */
static enum hr_err read_numbers(const struct parse *p, const struct hr_doc *baseline,
                                const char *key, size_t offset)
{
    const struct hr_doc *map = NULL;
    uint64_t seen = 0;

    HR_TRY(hr__form_need(&p->form, baseline, key, HR_DOC_MAP, "a map", &map));
    for (size_t i = 0; i < map->as.map.count; i++) {
        const struct hr_doc_pair *pair = &map->as.map.pairs[i];
        struct hr_cedar_measure *pipe;
        int64_t id = 0;

        HR_TRY(hr__cedar_key(&p->form, pair, &id));
        pipe = find(p, id);
        if (pipe == NULL)
            return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, pair,
                                "pipe %s is in \"%s\" but not in \"latencies\"",
                                pair->key, key);
        seen |= (uint64_t)1 << (pipe - p->measures->pipes);
        HR_TRY(hr__cedar_amount(&p->form, pair->value, pair->key, false,
                                (double *)((char *)pipe + offset)));
    }
    for (size_t i = 0; i < p->measures->pipe_count; i++)
        if ((seen >> i & 1) == 0)
            return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, map,
                                "pipe %lld is missing in \"%s\"",
                                (long long)p->measures->pipes[i].id, key);
    return HR_OK;
}

static enum hr_err read_baseline(const struct parse *p, const struct hr_doc *root)
{
    const struct hr_doc *baseline = NULL, *latencies = NULL;

    HR_TRY(hr__form_need(&p->form, root, "baseline", HR_DOC_MAP, "a map", &baseline));
    HR_TRY(check_keys(p, baseline, run_keys));
    HR_TRY(hr__cedar_need(&p->form, baseline, "throughput", true, &p->measures->rate));
    HR_TRY(
        hr__form_need(&p->form, baseline, "latencies", HR_DOC_MAP, "a map", &latencies));
    HR_TRY(read_ids(p, latencies));
    HR_TRY(read_numbers(p, baseline, "latencies",
                        offsetof(struct hr_cedar_measure, latency_ns)));
    HR_TRY(read_numbers(p, baseline, "input_sizes",
                        offsetof(struct hr_cedar_measure, bytes_in)));
    return read_numbers(p, baseline, "output_sizes",
                        offsetof(struct hr_cedar_measure, bytes_out));
}

/* ---- the rest ---- */

/* The throughput of a run whose other numbers cedar does not read. */
static enum hr_err read_rate(const struct parse *p, const struct hr_doc *run,
                             const char *what, double *ret_rate)
{
    if (run->kind != HR_DOC_MAP)
        return hr__form_wrong_type(&p->form, run, what, "a map");
    HR_TRY(check_keys(p, run, run_keys));
    return hr__cedar_need(&p->form, run, "throughput", true, ret_rate);
}

static enum hr_err read_backend(const struct parse *p, const struct hr_doc *offloads,
                                enum hr_cedar_variant variant)
{
    const struct hr_doc *map = NULL;

    HR_TRY(hr__form_get(&p->form, offloads, hr__cedar_variants[variant], HR_DOC_MAP,
                        "a map", &map));
    for (size_t i = 0; map != NULL && i < map->as.map.count; i++) {
        const struct hr_doc_pair *pair = &map->as.map.pairs[i];
        struct hr_cedar_measure *pipe;
        int64_t id = 0;

        HR_TRY(hr__cedar_key(&p->form, pair, &id));
        pipe = find(p, id);
        if (pipe == NULL)
            return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, pair,
                                "pipe %s was offloaded to %s but is not in the baseline",
                                pair->key, hr__cedar_variants[variant]);
        HR_TRY(read_rate(p, pair->value, pair->key, &pipe->rates[variant]));
    }
    return HR_OK;
}

static const enum hr_cedar_variant backends[] = {HR_CEDAR_RAY, HR_CEDAR_TF_RAY,
                                                 HR_CEDAR_SMP};
#define BACKENDS (sizeof backends / sizeof backends[0])

static enum hr_err read_offloads(const struct parse *p, const struct hr_doc *root)
{
    const struct hr_doc *offloads = NULL;
    struct hr_form_keys keys = {.count = 0};

    HR_TRY(hr__form_get(&p->form, root, "offloads", HR_DOC_MAP, "a map", &offloads));
    if (offloads == NULL)
        return HR_OK;
    for (size_t i = 0; i < BACKENDS; i++)
        hr__form_add_key(&keys, hr__cedar_variants[backends[i]]);
    HR_TRY(hr__form_check_keys(&p->form, offloads, &keys));
    for (size_t i = 0; i < BACKENDS; i++)
        HR_TRY(read_backend(p, offloads, backends[i]));
    return HR_OK;
}

static enum hr_err read_disk(const struct parse *p, const struct hr_doc *root)
{
    static const char *const keys[] = {"read_latency", "write_latency", NULL};
    double *numbers[] = {&p->measures->disk_read, &p->measures->disk_write};
    const struct hr_doc *disk = NULL;

    HR_TRY(hr__form_get(&p->form, root, "disk_info", HR_DOC_MAP, "a map", &disk));
    if (disk == NULL)
        return HR_OK;
    HR_TRY(check_keys(p, disk, keys));
    for (size_t i = 0; keys[i] != NULL; i++)
        HR_TRY(hr__cedar_need(&p->form, disk, keys[i], false, numbers[i]));
    return HR_OK;
}

static enum hr_err read_all(const struct parse *p, const struct hr_doc *root)
{
    static const char *const keys[] = {"baseline", "offloads", "tf_fuse", "disk_info",
                                       NULL};
    const struct hr_doc *fused;

    if (root->kind != HR_DOC_MAP)
        return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, root,
                            "these are no statistics of cedar: the key \"baseline\" is "
                            "missing");
    HR_TRY(check_keys(p, root, keys));
    HR_TRY(read_baseline(p, root));
    HR_TRY(read_offloads(p, root));
    fused = hr__doc_get(root, "tf_fuse");
    if (fused != NULL)
        HR_TRY(read_rate(p, fused, "tf_fuse", &p->measures->tf_rate));
    return read_disk(p, root);
}

enum hr_err
hr__cedar_measures_parse(const char *text, size_t bytes, const char *name,
                         struct hr_cedar_measures *ret_measures, struct hr_error *reterr)
{
    struct hr_cedar_measures measures = {.disk_read = -1, .disk_write = -1};
    struct parse parse = {
        {name, reterr},
        &measures
    };
    struct hr_doc *root;
    enum hr_err code;

    HR_TRY(hr__doc_parse(text, bytes, name, &root, reterr));
    code = read_all(&parse, root);
    hr__doc_destroy(root);
    if (code == HR_OK)
        *ret_measures = measures;
    return code;
}

const struct hr_cedar_measure *
hr__cedar_measure(const struct hr_cedar_measures *measures, int64_t id)
{
    for (size_t i = 0; i < measures->pipe_count; i++)
        if (measures->pipes[i].id == id)
            return &measures->pipes[i];
    return NULL;
}

/* ---- printing ---- */

/* YAML 1.1, which cedar reads, takes "1e-05" for a text and "1.0e-05" for a number. */
static void add_number(struct hr_str *out, double number)
{
    struct hr_str text;
    const char *exponent;

    hr__str_init(&text);
    hr__str_add_double(&text, number);
    out->failed = out->failed || text.failed;
    exponent = strchr(hr__str_text(&text), 'e');
    if (exponent != NULL && strchr(hr__str_text(&text), '.') == NULL)
        hr__str_addf(out, "%.*s.0%s", (int)(exponent - hr__str_text(&text)),
                     hr__str_text(&text), exponent);
    else
        hr__str_add(out, hr__str_text(&text));
    hr__str_finish(&text);
}

static void add_numbers(const struct hr_cedar_measures *measures, const char *key,
                        size_t offset, struct hr_str *out)
{
    hr__str_addf(out, "  %s:\n", key);
    for (size_t i = 0; i < measures->pipe_count; i++) {
        const struct hr_cedar_measure *pipe = &measures->pipes[i];

        hr__str_addf(out, "    %lld: ", (long long)pipe->id);
        add_number(out, *(const double *)((const char *)pipe + offset));
        hr__str_add(out, "\n");
    }
}

static void add_backend(const struct hr_cedar_measures *measures,
                        enum hr_cedar_variant variant, struct hr_str *out)
{
    bool any = false;

    hr__str_addf(out, "  %s:", hr__cedar_variants[variant]);
    for (size_t i = 0; i < measures->pipe_count; i++) {
        double rate = measures->pipes[i].rates[variant];

        if (rate == 0)
            continue;
        hr__str_addf(out, "\n    %lld: {throughput: ", (long long)measures->pipes[i].id);
        add_number(out, rate);
        hr__str_add(out, "}");
        any = true;
    }
    hr__str_add(out, any ? "\n" : " {}\n");
}

static void add_line(struct hr_str *out, const char *key, double number)
{
    hr__str_add(out, key);
    add_number(out, number);
    hr__str_add(out, "\n");
}

void hr__cedar_measures_print(const struct hr_cedar_measures *measures,
                              struct hr_str *out)
{
    add_line(out, "baseline:\n  throughput: ", measures->rate);
    add_numbers(measures, "latencies", offsetof(struct hr_cedar_measure, latency_ns),
                out);
    add_numbers(measures, "input_sizes", offsetof(struct hr_cedar_measure, bytes_in),
                out);
    add_numbers(measures, "output_sizes", offsetof(struct hr_cedar_measure, bytes_out),
                out);
    hr__str_add(out, "offloads:\n");
    for (size_t i = 0; i < BACKENDS; i++)
        add_backend(measures, backends[i], out);
    if (measures->tf_rate > 0)
        add_line(out, "tf_fuse:\n  throughput: ", measures->tf_rate);
    if (measures->disk_read >= 0) {
        add_line(out, "disk_info:\n  read_latency: ", measures->disk_read);
        add_line(out, "  write_latency: ", measures->disk_write);
    }
}
