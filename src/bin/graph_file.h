/*
 * graph_file.h - what run, inspect, explain and bench share: a graph file and the options
 * of an iterator.
 */
#ifndef BIN_GRAPH_FILE_H
#define BIN_GRAPH_FILE_H

#include "cli.h"
#include "headrace/engine.h"

/* Load the graph with -p values. Returns a cli_exit code; has printed what is wrong. */
int graph_file_load(const char *path, const struct cli_params *params,
                    struct hr_graph **ret_graph);

/* Same, and freeze it. */
int graph_file_open(const char *path, const struct cli_params *params,
                    struct hr_graph **ret_graph);

/* --help-params: the parameters that the file declares, also when required ones are
 * missing on the command line. */
int graph_file_help(const char *path, const struct cli_params *params);

/* The parameters of a loaded graph as a table on stdout. */
void graph_file_print_params(const struct hr_graph *graph);

/* inspect_json.c: parameters, nodes and fields as one JSON object on stdout. */
void graph_file_print_json(const struct hr_graph *graph, const char *path);

#endif
