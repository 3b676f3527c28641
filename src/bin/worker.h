/*
 * worker.h - worker processes for runs of the command.
 */
#ifndef BIN_WORKER_H
#define BIN_WORKER_H

#include "headrace/graph.h"

/* Lets runs of the graph start workers (headrace worker). Must precede freeze. Returns a
 * cli_exit code. */
int worker_host(struct hr_graph *graph);

#endif
