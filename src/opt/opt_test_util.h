/*
 * opt/opt_test_util.h - user code for graphs of tests, which is never called.
 */
#ifndef HR_OPT_OPT_TEST_UTIL_H
#define HR_OPT_OPT_TEST_UTIL_H

#include "headrace/code.h"

/* Code that runs under a lock of its own. */
extern const struct hr_code opt_test_locked;

/* Adds "locked" and "free", code without a lock, to a graph. */
enum hr_err opt_test_add_code(struct hr_graph *graph, struct hr_error *reterr);

#endif
