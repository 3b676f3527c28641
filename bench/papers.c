/*
 * papers.c - make bench B=papers: each pipeline of examples/papers as it is written
 * (every node alone, photos decoded at full size) and as Headrace composes it, on one
 * thread and two, with the figures that were measured for cedar itself.
 *
 * The argument is the folder of photos; sounds, digits and text are taken from the
 * folders beside it, as in ../shared/data. Pipelines without their data are left out.
 * cedar's figures come from other machines (research/measured.md): they say what it
 * reached there, and no ratio is claimed.
 */
#include "inputs.h"
#include "passes.h"

#include <string.h>

/* What others reach, by name. */
static const struct figure {
    const char *name, *text;
} figures[] = {
    {"cv_torch",  "cedar unoptimised 122/s, its own plan 243, by hand 338, DataLoader 161 "
                 "(measured.md); "
                 "its paper 339 on 8 CPUs"      },
    {"cv_tf",     "cedar's paper 438/s on 8 CPUs, tf.data 435"  },
    {"asr",
     "cedar 235/s, DataLoader 300 (measured.md, other sounds); its paper 106 on 8 CPUs, "
     "on longer ones"                                           },
    {"nlp_torch",
     "cedar unoptimised 6733/s, its own plan 6979, DataLoader 6317, with a plain-Python "
     "BPE "
     "(measured.md); its paper 2960 on 8 CPUs"                  },
    {"nlp_hf_tf", "cedar's paper 1205/s on 8 CPUs"              },
    {"nlp_tf",    "cedar's paper 5696/s on 8 CPUs, tf.data 6230"},
    {"ssd_torch", "cedar's paper 58/s on 8 CPUs, DataLoader 20" },
    {"ssd_tf",    "cedar's paper 162/s on 8 CPUs, tf.data 72"   },
};

/* ---- passes ---- */

/* In mode close, groups of image ops are part of the graph. */
static bool is_photos(const struct input_graph *paper)
{
    return paper->input == PHOTOS || paper->input == LABELLED || paper->input == SCENES;
}

static void run_paper(struct bench *bench, const struct input_graph *paper, int round)
{
    static const char *const rows[2][2] = {
        {"as written, 1 thread",  "composed, 1 thread" },
        {"as written, 2 threads", "composed, 2 threads"},
    };
    struct pass pass = {.graph = paper->graph, .round = round};
    struct hr_graph_param params[INPUT_PARAMS_MAX];

    pass.param_count = input_params(paper->input, params) - 1;
    pass.dir = params[0].value;
    memcpy(pass.params, params + 1, pass.param_count * sizeof(params[0]));
    bench_group(bench, paper->name);
    for (pass.threads = 1; pass.threads <= 2 && pass.threads <= bench_cpus();
         pass.threads++)
        for (int composed = 0; composed < 2; composed++) {
            size_t count = pass.param_count;

            pass.unfused = !composed;
            if (!composed && is_photos(paper))
                pass.params[pass.param_count++] =
                    (struct hr_graph_param){"mode", "exact"};
            pass_run(bench, rows[pass.threads - 1][composed], &pass, NULL, 0);
            pass.param_count = count;
        }
}

static bool is_paper(const struct input_graph *graph)
{
    return strncmp(graph->graph, "papers/", 7) == 0;
}

static void tell_figures(struct bench *bench, const struct input_graph *paper)
{
    if (!input_is_there(paper->input))
        bench_fact(bench, paper->name, "left out: its data is not beside the photos");
    else
        for (size_t k = 0; k < sizeof(figures) / sizeof(figures[0]); k++)
            if (strcmp(figures[k].name, paper->name) == 0)
                bench_fact(bench, paper->name, "%s", figures[k].text);
}

int main(int argc, char **argv)
{
    static struct bench bench;

    bench_init(&bench, argc, argv, "papers",
               "the pipelines of examples/papers, with their own batch sizes",
               "records/s");
    bench.cpu_heading = "per CPU s";
    inputs_find(&bench);
    for (int i = 0; i < bench.rounds; i++)
        for (size_t k = 0; k < input_graph_count; k++)
            if (is_paper(&input_graphs[k]) && input_is_there(input_graphs[k].input))
                run_paper(&bench, &input_graphs[k], i);
    for (size_t k = 0; k < input_graph_count; k++)
        if (is_paper(&input_graphs[k]))
            tell_figures(&bench, &input_graphs[k]);
    inputs_remove();
    bench_print(&bench);
    return 0;
}
