/*
 * graph/graph_key_steps.h - keys that nodes make of those that sources know.
 */
#ifndef HR_GRAPH_KEY_STEPS_H
#define HR_GRAPH_KEY_STEPS_H

#include "graph/graph.h"

/* One of a source's keys, as the value of a field. */
struct hr_key_input {
    const struct hr_field *field;
    int value;
    size_t key;
};

/* A node that runs, or (HR_KEY_MOVE) a value that gets another number. */
#define HR_KEY_MOVE UINT32_MAX
struct hr_key_step {
    uint32_t node;
    int from, to;
    size_t bound; /* of a node: where the values of its bound fields begin */
};

/* How the records of one source get their key. */
struct hr_key_steps {
    struct hr_key_input *inputs;
    struct hr_key_step *steps;
    int *values; /* all that are set; 0: discarded */
    size_t input_count, step_count, value_count;
    int result;
};

void hr__key_steps_destroy(struct hr_key_steps *steps);

/* What is still needed of the records at a node, on the way to the source, and the steps
 * that make the key of it, the last one first. */
struct hr_key_need {
    int values[HR_SCHEMA_FIELDS_MAX];
    size_t count;
    struct hr_key_step *steps;
    size_t step_count, room;
    /* For messages: the key, of whose records, and the node that chooses by it; NULL: a
     * join. */
    const char *by, *of, *chooser;
};

/* Needs the value only. hr__key_need_finish() also after failures below. */
void hr__key_need_init(struct hr_key_need *need, int value, const char *by,
                       const char *of, const char *chooser);
void hr__key_need_finish(struct hr_key_need *need);

/* From what is needed after the node to what is needed of its input `input`. Fails if the
 * node makes some of it and cannot do that before records are read. */
HR_CHECK enum hr_err
hr__key_need_before(struct hr_key_need *need, const struct hr_graph *graph, uint32_t node,
                    size_t input, struct hr_error *error);

/* The input of a node with several that the needed values are of; fails if there is none.
 */
HR_CHECK enum hr_err
hr__key_need_input(const struct hr_key_need *need, const struct hr_graph *graph,
                   uint32_t node, size_t *ret_input, struct hr_error *error);

/* The steps from the fields of the source to the value `result`; their keys are left to
 * the caller. NULL if out of memory. */
struct hr_key_steps *
hr__key_steps_create(const struct hr_key_need *need, const struct hr_graph *graph,
                     const struct hr_schema *source, int result);

/* Runs steps. */
struct hr_key_runner;
struct hr_key_runner *hr__key_runner_create(const struct hr_graph *graph);
void hr__key_runner_destroy(struct hr_key_runner *runner);

/* Replaces *key by the key of record `index` of the source. HR_ERR_NOT_FOUND if one of
 * those that it is made of is missing; HR_ERR_FORMAT if one is damaged or a node fails.
 */
HR_CHECK enum hr_err
hr__key_run(struct hr_key_runner *runner, const struct hr_key_steps *steps,
            const struct hr_graph_node *source, uint64_t index, struct hr_str *key,
            struct hr_error *error);

#endif
