/*
 * graph_file.h - shared by run, pack, inspect, explain and bench: loading a graph file.
 */
#ifndef BIN_GRAPH_FILE_H
#define BIN_GRAPH_FILE_H

#include "cli.h"
#include "headrace/engine.h"

/* If `path` is data (propose.h), makes a graph for it, which the functions below then
 * load as `path`, and prints it on stderr unless `quiet`. Returns a cli_exit code; prints
 * the reason on failure. */
int graph_file_propose(const char *path, bool quiet);

/* Loads the graph with -p values; "-" is standard input. Returns a cli_exit code; prints
 * the reason on failure. */
int graph_file_load(const char *path, const struct cli_params *params,
                    struct hr_graph **ret_graph);

/* The same, then freezes it. */
int graph_file_open(const char *path, const struct cli_params *params,
                    struct hr_graph **ret_graph);

/* A graph of node `node` of an unfrozen graph and all that it reads from. Nodes keep
 * their names, hence their random draws. */
int graph_file_cut(const struct hr_graph *graph, size_t node,
                   struct hr_graph **ret_graph);

/* --help-params: prints the parameters that the file declares, even if required ones are
 * missing on the command line. */
int graph_file_help(const char *path, const struct cli_params *params);

/* Prints "name=" for each parameter that the file declares, and "name=value" for each
 * value where there are few: what shells complete -p with. */
int graph_file_complete(const char *path);

/* Prints the parameters of a loaded graph as a table on stdout. */
void graph_file_print_params(const struct hr_graph *graph);

/* inspect_json.c: prints parameters, nodes and fields as one JSON object on stdout. */
void graph_file_print_json(const struct hr_graph *graph, const char *path);

/* How a graph or a plan is written to a file of this name (NULL: to stdout): as JSON if
 * it ends in .json, else as YAML. */
enum hr_graph_format graph_file_format(const char *path);

#endif
