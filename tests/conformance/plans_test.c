/*
 * tests/conformance/plans_test.c - graph in, plan out, as text.
 *
 * Each tests/golden/plans/NAME.yaml is a graph whose first line has the optimizer's
 * options; NAME.plan next to it is the plan, or the message with which it is rejected.
 * Fingerprints are removed, so that a new version of an op changes no plan.
 * HEADRACE_GOLDEN_UPDATE=1 rewrites them (make golden-update).
 */
#include <dirent.h>
#include <stdlib.h>

#include "core/str.h"
#include "headrace/code.h"
#include "opt/memory.h"
#include "opt/opt.h"
#include "tests/conformance/photos.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

#define FILE_MAX ((size_t)1 << 16)

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, FILE_MAX);
    size_t length;

    CHECK(text != NULL);
    if (file == NULL)
        return text;
    length = fread(text, 1, FILE_MAX - 1, file);
    CHECK(length < FILE_MAX - 1);
    fclose(file);
    return text;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");

    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ_INT(fclose(file), 0);
}

/* ---- options ---- */

static enum hr_err call_never(void *user, struct hr_code_call *call, struct hr_error *e)
{
    (void)user;
    (void)call;
    (void)e;
    return HR_ERR_INTERNAL;
}

static struct hr_graph *load(const char *path, struct hr_error *error)
{
    const struct hr_graph_param photos = {"photos", photos_good()};
    const struct hr_code code = {.identity = "f", .call = call_never};
    struct hr_graph *graph = NULL;
    char *text = read_text(path);
    bool has_photos = strstr(text, "${photos}") != NULL;
    char *params = strstr(text, "pipeline:");
    struct hr_str whole;

    CHECK(params != NULL);
    hr__str_init(&whole);
    hr__str_add_bytes(&whole, text, (size_t)(params - text));
    hr__str_add(&whole, has_photos ? "params:\n  photos: {type: path}\n" : "");
    hr__str_add(&whole, params);
    if (hr_graph_parse(hr__str_text(&whole), whole.length, path, &photos, has_photos,
                       &graph, error) != HR_OK ||
        hr_graph_code(graph, "f", &code, error) != HR_OK ||
        hr_graph_freeze(graph, error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error->message);
    hr__str_finish(&whole);
    free(text);
    return graph;
}

static uint32_t node_of(const struct hr_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return i;
    check_failed(__FILE__, __LINE__, "no node has the name %s", name);
}

struct request {
    struct hr_opt_settings settings;
    uint64_t memory; /* the budget */
    uint32_t cuts[8];
};

static void
ask(struct request *r, const struct hr_graph *graph, const char *key, char *value)
{
    struct hr_opt_settings *s = &r->settings;

    if (strcmp(key, "threads") == 0) {
        s->threads = atoi(value) > 0 ? atoi(value) : -1;
    } else if (strcmp(key, "fuse") == 0) {
        s->fuse = strcmp(value, "true") == 0;
    } else if (strcmp(key, "ordered") == 0) {
        s->ordered = strcmp(value, "true") == 0;
    } else if (strcmp(key, "memory") == 0) {
        CHECK(hr__bytes_parse(value, &r->memory));
    } else if (strcmp(key, "cuts") == 0) {
        char *rest = NULL;

        for (char *name = strtok_r(value, ",", &rest); name != NULL;
             name = strtok_r(NULL, ",", &rest))
            r->cuts[s->cut_count++] = node_of(graph, name);
        s->cuts = r->cuts;
    } else {
        check_failed(__FILE__, __LINE__, "unknown option \"%s\"", key);
    }
}

/* Parses the first line: "# key=value key=value". */
static void ask_all(struct request *r, const struct hr_graph *graph, const char *path)
{
    char *text = read_text(path), *rest = NULL;

    *r = (struct request){
        .settings = {.cpus = 2, .threads = 2, .ordered = true, .fuse = true}
    };
    text[strcspn(text, "\n")] = '\0';
    for (char *word = strtok_r(text + 1, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');

        CHECK(value != NULL);
        *value = '\0';
        ask(r, graph, word, value + 1);
    }
    free(text);
}

/* ---- the plan as text ---- */

static enum hr_err make(const struct hr_graph *graph, const struct request *r,
                        struct hr_plan *ret_plan, struct hr_error *error)
{
    struct hr_sizes sizes;
    enum hr_err code;

    HR_TRY(hr__plan_make(graph, &r->settings, ret_plan, error));
    if (r->memory == 0)
        return HR_OK;
    ret_plan->memory.budget = r->memory;
    hr__sizes_estimate(ret_plan, NULL, &sizes);
    code = hr__plan_divide(ret_plan, &sizes, 0, false, error);
    if (code != HR_OK)
        hr__plan_finish(ret_plan);
    return code;
}

static void
print(const struct hr_graph *graph, const struct request *r, struct hr_str *out)
{
    struct hr_error error = {0};
    struct hr_plan plan;
    struct hr_str text;
    const char *graph_line, *rest;

    if (make(graph, r, &plan, &error) != HR_OK) {
        hr__str_addf(out, "%s\n", error.message);
        return;
    }
    hr__str_init(&text);
    hr__plan_print(&plan, HR_GRAPH_YAML, &text);
    CHECK(hr__str_ok(&text));
    graph_line = strstr(hr__str_text(&text), "graph: ");
    CHECK(graph_line != NULL);
    rest = strchr(graph_line, '\n');
    hr__str_add_bytes(out, hr__str_text(&text),
                      (size_t)(graph_line - hr__str_text(&text)));
    hr__str_addf(out, "graph: its fingerprint%s", rest);
    hr__str_finish(&text);
    hr__plan_finish(&plan);
}

static void check_case(const char *folder, const char *name, int length)
{
    bool update = getenv("HEADRACE_GOLDEN_UPDATE") != NULL;
    struct hr_error error = {0};
    char path[1024], golden[1024];
    struct hr_graph *graph;
    struct request request;
    struct hr_str out;
    char *wanted;

    snprintf(path, sizeof path, "%s/%.*s.yaml", folder, length, name);
    snprintf(golden, sizeof golden, "%s/%.*s.plan", folder, length, name);
    graph = load(path, &error);
    ask_all(&request, graph, path);
    hr__str_init(&out);
    print(graph, &request, &out);
    wanted = read_text(golden);
    if (update)
        write_text(golden, hr__str_text(&out));
    else if (strcmp(wanted, hr__str_text(&out)) != 0)
        check_failed(__FILE__, __LINE__, "the plan of %s is\n%s", path,
                     hr__str_text(&out));
    free(wanted);
    hr__str_finish(&out);
    hr_graph_unref(graph);
}

/* A cut between steps that share a decode: the description crosses it, so the decode is
 * still one of the window, at the scale that the resize asks for. */
static void check_cut(const char *mode, uint32_t after)
{
    struct outcome_job job = outcome_job_text(NULL);
    struct hr_opt_settings settings = {
        .threads = 2, .ordered = true, .fuse = true, .cuts = &after, .cut_count = 1};
    struct outcome *whole, *cut;
    struct hr_graph *graph;
    struct hr_plan plan;
    struct hr_str text;
    char words[1024];

    snprintf(words, sizeof words,
             "headrace: 1\npipeline:\n  - source.files: {path: '%s'}\n"
             "  - image.decode: {mode: %s}\n  - image.center_crop: {size: 20}\n"
             "  - image.random_resized_crop: {size: 24}\n"
             "  - image.flip: {}\n  - image.normalize: {mean: half, std: half}\n"
             "  - tensor.layout: {order: chw}\n  - batch.stack: {size: 10}\n",
             photos_good(), mode);
    job.text = words;
    whole = outcome_run(&job);
    CHECK_ERR(HR_ERR_END, whole->code);
    graph = outcome_graph(&job, NULL);
    CHECK(graph != NULL);
    CHECK_OK(hr_graph_freeze(graph, NULL));
    CHECK_OK(hr__plan_make(graph, &settings, &plan, NULL));
    CHECK(plan.stage_count == 2 && plan.stages[0].describes);
    hr__str_init(&text);
    hr__plan_print(&plan, HR_GRAPH_YAML, &text);
    job.options.plan = hr__str_text(&text);
    cut = outcome_run(&job);
    outcome_check_same(whole, cut, 0, graph->nodes[after].name);
    outcome_free(cut);
    outcome_free(whole);
    hr__plan_finish(&plan);
    hr__str_finish(&text);
    hr_graph_unref(graph);
}

TEST(a_cut_inside_a_group_carries_the_description)
{
    for (uint32_t after = 1; after < 6; after++) {
        check_cut("exact", after);
        check_cut("close", after);
    }
}

TEST(graphs_have_the_plans_that_are_written_beside_them)
{
    struct dirent **entries;
    char folder[512];
    int count, cases = 0;

    snprintf(folder, sizeof folder, "%s/tests/golden/plans", check_source_dir());
    count = scandir(folder, &entries, NULL, alphasort);
    CHECK(count > 0);
    for (int i = 0; i < count; i++) {
        size_t length = strlen(entries[i]->d_name);

        if (length > 5 && strcmp(entries[i]->d_name + length - 5, ".yaml") == 0) {
            check_case(folder, entries[i]->d_name, (int)length - 5);
            cases++;
        }
        free(entries[i]);
    }
    free(entries);
    CHECK(cases > 5);
}
