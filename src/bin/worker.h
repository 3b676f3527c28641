/*
 * worker.h - worker processes of the command's runs.
 */
#ifndef BIN_WORKER_H
#define BIN_WORKER_H

#include "headrace/graph.h"

/* Lets runs of the graph start workers (headrace worker). Before it is frozen. Returns a
 * cli_exit code. */
int worker_host(struct hr_graph *graph);

#endif
