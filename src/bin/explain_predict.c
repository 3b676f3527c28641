/*
 * explain_predict.c - headrace explain --profile: the predictions, and what was decided
 * between.
 */
#include "explain_predict.h"
#include "profile_file.h"

#include <stdlib.h>
#include <string.h>

struct predicting {
    const struct explain_options *options;
    struct hr_graph *graph;
    struct hr_profile *profile;
    struct hr_iter_options run;
    struct hr_machine machine; /* of --what-if */
    struct explain_predictions *made;
};

static struct hr_predict_options
asked(const struct predicting *p, const struct hr_machine *machine)
{
    struct hr_predict_options options;

    hr_predict_options_init(&options);
    options.run = &p->run;
    if (machine != NULL)
        options.machine = *machine;
    return options;
}

static struct explain_column *
add_column(struct predicting *p, struct hr_graph *graph, struct hr_prediction *prediction)
{
    struct explain_column *column = &p->made->columns[p->made->column_count++];

    column->graph = graph;
    column->prediction = prediction;
    return column;
}

static double rate_of(const struct hr_prediction *prediction)
{
    struct hr_prediction_info info;

    hr_prediction_info(prediction, &info);
    return info.rate;
}

/* ---- columns ---- */

static enum hr_err
predict_order(const struct predicting *p, enum hr_rule rule,
              const struct hr_machine *machine, struct hr_graph **ret_graph,
              struct hr_prediction **ret_prediction, struct hr_error *error)
{
    struct hr_predict_options options = asked(p, machine);
    struct hr_optimize_options order;

    hr_optimize_options_init(&order);
    order.rule = rule;
    order.strictness = (enum hr_strictness)p->options->strictness;
    return hr_graph_predict_order(p->graph, p->profile, &order, &options, ret_graph,
                                  ret_prediction, error);
}

static bool same_order(const struct hr_graph *a, const struct hr_graph *b)
{
    struct hr_node_info x, y;

    for (size_t i = 0;
         hr_graph_node_info(a, i, &x) == HR_OK && hr_graph_node_info(b, i, &y) == HR_OK;
         i++)
        if (strcmp(x.name, y.name) != 0)
            return false;
    return true;
}

static int add_written(struct predicting *p)
{
    struct hr_prediction *prediction = NULL;
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    if (predict_order(p, HR_RULE_WRITTEN, NULL, &graph, &prediction, &error) != HR_OK)
        return cli_library(&error);
    snprintf(add_column(p, graph, prediction)->title, 160, "as written");
    return CLI_OK;
}

/* A plan is of the order that it was made for. */
static void add_order(struct predicting *p)
{
    struct hr_prediction *prediction = NULL;
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    if (p->run.plan != NULL)
        return;
    if (predict_order(p, HR_RULE_HEADRACE, NULL, &graph, &prediction, &error) != HR_OK) {
        snprintf(p->made->note, sizeof(p->made->note),
                 "the cheapest order cannot be planned: %.250s", error.message);
        return;
    }
    if (!same_order(p->graph, graph)) {
        p->made->chosen = 1;
        snprintf(add_column(p, graph, prediction)->title, 160, "cheapest order");
        return;
    }
    hr_prediction_free(prediction);
    hr_graph_unref(graph);
}

/* The words of --what-if, as a heading. */
static void add_words(const struct cli_params *given, const struct cli_rest *rest,
                      char *title, size_t room)
{
    size_t at = 0;

    for (size_t i = 0; i < given->count && at < room; i++)
        at += (size_t)snprintf(title + at, room - at, "%s%s=%s", at > 0 ? " " : "",
                               given->items[i].name, given->items[i].value);
    for (size_t i = 1; i < rest->count && at < room; i++)
        at += (size_t)snprintf(title + at, room - at, " %s", rest->words[i]);
}

static int add_what_if(struct predicting *p, const struct cli_rest *rest)
{
    enum hr_rule rule = p->made->chosen > 0 ? HR_RULE_HEADRACE : HR_RULE_WRITTEN;
    struct hr_prediction *prediction = NULL;
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    struct explain_column *column;

    if (p->options->what_if.count == 0)
        return CLI_OK;
    if (predict_order(p, rule, &p->machine, &graph, &prediction, &error) != HR_OK)
        return cli_library(&error);
    column = add_column(p, graph, prediction);
    add_words(&p->options->what_if, rest, column->title, sizeof(column->title));
    return CLI_OK;
}

/* ---- decisions ---- */

static const struct explain_column *chosen(const struct predicting *p)
{
    return &p->made->columns[p->made->chosen];
}

static struct explain_decision *decide(struct predicting *p, const char *what)
{
    struct explain_decision *d = &p->made->decisions[p->made->decision_count++];

    d->what = what;
    d->rate = rate_of(chosen(p)->prediction);
    return d;
}

/* Takes an alternative that is faster than those before it. */
static void consider(struct explain_decision *d, const struct hr_prediction *prediction,
                     const char *name)
{
    double rate = rate_of(prediction);

    if (d->runner_up[0] != '\0' && rate <= d->runner_rate)
        return;
    d->runner_rate = rate;
    snprintf(d->runner_up, sizeof(d->runner_up), "%s", name);
}

/* What another rule makes of the order, if that is one that was not seen yet. */
static void consider_rule(const struct predicting *p, enum hr_rule rule, const char *name,
                          struct explain_decision *d)
{
    struct hr_prediction *prediction = NULL;
    struct hr_graph *graph = NULL;

    if (predict_order(p, rule, NULL, &graph, &prediction, NULL) != HR_OK)
        return;
    if (!same_order(graph, p->graph) && !same_order(graph, chosen(p)->graph))
        consider(d, prediction, name);
    hr_prediction_free(prediction);
    hr_graph_unref(graph);
}

static void decide_order(struct predicting *p)
{
    struct explain_decision *d = decide(p, "order");

    snprintf(d->chosen, sizeof(d->chosen), "%s", chosen(p)->title);
    if (p->made->chosen > 0)
        consider(d, p->made->columns[0].prediction, "as written");
    consider_rule(p, HR_RULE_PECAN, "Pecan's rule", d);
    consider_rule(p, HR_RULE_CEDAR, "cedar's rule", d);
}

/* The same order, run in another way; NULL if it cannot be. */
static struct hr_prediction *
otherwise(const struct predicting *p, int threads, enum hr_variant variant)
{
    struct predicting other = *p;
    struct hr_prediction *prediction = NULL;
    struct hr_graph *graph = NULL;

    other.run.threads = threads;
    other.run.variant = variant;
    if (predict_order(&other, p->made->chosen > 0 ? HR_RULE_HEADRACE : HR_RULE_WRITTEN,
                      NULL, &graph, &prediction, NULL) != HR_OK)
        return NULL;
    hr_graph_unref(graph);
    return prediction;
}

static void decide_threads(struct predicting *p)
{
    struct explain_decision *d = decide(p, "threads");
    struct hr_prediction_info info;

    hr_prediction_info(chosen(p)->prediction, &info);
    snprintf(d->chosen, sizeof(d->chosen), "%d", info.threads);
    for (int i = 0; i < 2; i++) {
        int threads = i == 0 ? info.threads / 2 : 2 * info.threads;
        struct hr_prediction *prediction =
            threads > 0 ? otherwise(p, threads, (enum hr_variant)p->run.variant) : NULL;
        char name[16];

        snprintf(name, sizeof(name), "%d", threads);
        if (prediction != NULL)
            consider(d, prediction, name);
        hr_prediction_free(prediction);
    }
}

static void decide_variant(struct predicting *p)
{
    static const char *const names[] = {"threads", "inline", "processes"};
    struct explain_decision *d = decide(p, "variant");

    snprintf(d->chosen, sizeof(d->chosen), "%s", names[p->run.variant]);
    for (int i = 0; i < 3; i++) {
        struct hr_prediction *prediction =
            i != (int)p->run.variant ? otherwise(p, p->run.threads, (enum hr_variant)i)
                                     : NULL;

        if (prediction != NULL)
            consider(d, prediction, names[i]);
        hr_prediction_free(prediction);
    }
}

/* Rates are means over the epochs. */
static int decide_cache(struct predicting *p)
{
    struct hr_optimize_options order;
    struct explain_predictions *made = p->made;
    struct explain_decision *d;
    struct hr_cache_place place;
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};

    if (p->options->cache.epochs == 0)
        return CLI_OK;
    hr_optimize_options_init(&order);
    order.strictness = (enum hr_strictness)p->options->strictness;
    if (cache_propose(p->graph, p->profile, &p->options->cache, order.strictness,
                      made->chosen > 0 ? &order : NULL, &graph, &made->places,
                      &error) != HR_OK)
        return cli_library(&error);
    hr_graph_unref(graph);
    made->epochs = p->options->cache.epochs;
    d = &made->decisions[made->decision_count++];
    *d = (struct explain_decision){.what = "cache"};
    if (cache_chosen(made->places, &place)) {
        cache_place_text(&place, d->chosen, sizeof(d->chosen));
        d->rate = place.rate;
    }
    if (cache_runner_up(made->places, &place)) {
        cache_place_text(&place, d->runner_up, sizeof(d->runner_up));
        d->runner_rate = place.rate;
    }
    return CLI_OK;
}

/* ---- all ---- */

static int predict_all(struct predicting *p, const struct cli_rest *rest)
{
    int code = add_written(p);

    if (code != CLI_OK)
        return code;
    add_order(p);
    if (p->run.plan == NULL) {
        decide_order(p);
        decide_threads(p);
        decide_variant(p);
    }
    code = p->run.plan == NULL ? decide_cache(p) : CLI_OK;
    return code == CLI_OK ? add_what_if(p, rest) : code;
}

static int
show(const struct explain_predictions *made, const struct explain_options *options)
{
    int code = options->html != NULL ? explain_html(made, options->html) : CLI_OK;

    if (code == CLI_OK && options->json)
        explain_print_json(made);
    else if (code == CLI_OK && !options->quiet)
        explain_print(made);
    return code;
}

static void finish(struct explain_predictions *made)
{
    hr_cache_places_free(made->places);
    for (size_t i = 0; i < made->column_count; i++) {
        hr_prediction_free(made->columns[i].prediction);
        hr_graph_unref(made->columns[i].graph);
    }
}

int explain_predict(struct hr_graph *graph, const struct explain_options *options,
                    const struct cli_rest *rest)
{
    struct explain_predictions made = {.graph_path = rest->words[0],
                                       .profile_path = options->profile};
    struct predicting p = {.options = options, .graph = graph, .made = &made};
    char *plan = NULL;
    int code;

    hr_iter_options_init(&p.run);
    code =
        explain_what_if(&options->what_if, rest->words + 1, rest->count - 1, &p.machine);
    if (code == CLI_OK)
        code = plan_options_set(&options->plan, &p.run, &plan);
    if (code == CLI_OK)
        code = profile_file_read(options->profile, &p.profile);
    if (code == CLI_OK)
        code = predict_all(&p, rest);
    if (code == CLI_OK)
        code = show(&made, options);
    finish(&made);
    hr_profile_free(p.profile);
    free(plan);
    return code;
}
