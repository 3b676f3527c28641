/*
 * node_table.h - what the nodes of a run did and cost, for people and for programs.
 *
 * A node's time is CPU time, that of its worker processes included; shares are of the sum
 * over nodes. Time that it waited (for files, processes, locks, a core) is not part of
 * it.
 */
#ifndef BIN_NODE_TABLE_H
#define BIN_NODE_TABLE_H

#include "headrace/engine.h"
#include "out.h"

/* Prints a line per node on stdout. */
void node_table_print(const struct hr_iter *iter);

/* Writes the member "nodes" of an object. */
void node_table_json(struct json *json, const struct hr_iter *iter);

#endif
