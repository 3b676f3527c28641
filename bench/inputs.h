/*
 * inputs.h - the graphs of examples/ with their data: found beside a folder of photos, or
 * made.
 */
#ifndef BENCH_INPUTS_H
#define BENCH_INPUTS_H

#include "measure.h"

enum input {
    PHOTOS,
    LABELLED, /* photos in folders */
    SOUNDS,
    TEXT,     /* lines, with GPT-2's tokenizer */
    PIECES,   /* lines, with a SentencePiece model */
    MESSAGES, /* files of lines, in folders */
    DIGITS,   /* a folder with MNIST */
    IDX,      /* its files */
    RECORDS,  /* photos in a TFRecord file */
    SCENES,   /* photos with COCO's annotations */
    NUMBERS,  /* needs no data */
    INPUTS
};

struct input_graph {
    const char *name, *graph; /* graph: below examples/, without ".yaml" */
    enum input input;
};
extern const struct input_graph input_graphs[];
extern const size_t input_graph_count;

/* Finds the data beside bench->dir, the photos, and makes the rest. */
void inputs_find(struct bench *bench);
/* Removes what another program must not find. */
void inputs_remove(void);

/* False if the data of these graphs is not there. */
bool input_is_there(enum input input);

/* The parameters of graphs with this input; the strings live as long as the program. */
#define INPUT_PARAMS_MAX 4
size_t input_params(enum input input, struct hr_graph_param params[INPUT_PARAMS_MAX]);

#endif
