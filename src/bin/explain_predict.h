/*
 * explain_predict.h - what `headrace explain --profile` compares: the graph as written,
 * in the order that is cheapest, and on another machine.
 */
#ifndef BIN_EXPLAIN_PREDICT_H
#define BIN_EXPLAIN_PREDICT_H

#include "explain.h"
#include "headrace/predict.h"

#define COLUMNS_MAX 3
#define DECISIONS_MAX 4

struct explain_column {
    char title[160];
    struct hr_graph *graph; /* a reference */
    struct hr_prediction *prediction;
};

/* What was chosen, and the best of what was not. Rates in records/s. */
struct explain_decision {
    const char *what;               /* "order" */
    char chosen[96], runner_up[96]; /* runner_up: "" if there was no choice */
    double rate, runner_rate;
};

struct explain_predictions {
    const char *graph_path, *profile_path;
    struct explain_column columns[COLUMNS_MAX]; /* before, after; the last: what if */
    size_t column_count;
    size_t chosen; /* the column of the order that is cheapest */
    struct explain_decision decisions[DECISIONS_MAX];
    size_t decision_count;
    char note[320];                 /* why there is no cheaper order, or "" */
    struct hr_cache_places *places; /* for a cache; NULL: not asked */
    int64_t epochs;                 /* that it was asked for */
};

/* explain_what_if.c: `words` are more of what --what-if takes. Returns a cli_exit code;
 * prints the reason on failure. */
int explain_what_if(const struct cli_params *given, const char *const *words,
                    size_t count, struct hr_machine *ret_machine);

/* explain_predict.c: predicts and prints, or writes the page. Returns a cli_exit code. */
int explain_predict(struct hr_graph *graph, const struct explain_options *options,
                    const struct cli_rest *rest);

/* explain_print.c. A rate in records/s, "-" for one without limit; returns `text`. */
const char *explain_rate(double rate, char *text, size_t room);
void explain_print(const struct explain_predictions *predictions);
void explain_print_json(const struct explain_predictions *predictions);

/* explain_html.c: one page without scripts or anything from elsewhere. */
int explain_html(const struct explain_predictions *predictions, const char *path);

/* explain_accuracy.c: how well predictions held. Returns a cli_exit code. */
int explain_accuracy(bool json);

#endif
