/*
 * tests/support/pipeline.h - graphs and profiles for tests, from the text of a pipeline.
 * A failure fails the test with the message.
 */
#ifndef TESTS_SUPPORT_PIPELINE_H
#define TESTS_SUPPORT_PIPELINE_H

#include "headrace/profile.h"

/* The graph of the lines after `pipeline:`, each "  - op: {...}\n". hr_graph_unref() it.
 */
struct hr_graph *pipeline_graph(const char *pipeline);
/* The same, frozen. */
struct hr_graph *pipeline_frozen(const char *pipeline);

/* Measures the graph for at most about half a second. hr_profile_free() it. */
struct hr_profile *pipeline_profile(struct hr_graph *graph);

#endif
