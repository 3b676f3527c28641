/*
 * ops/inputs_test_util.h - the files that the rows of traits_test_util.h read.
 */
#ifndef HR_OPS_INPUTS_TEST_UTIL_H
#define HR_OPS_INPUTS_TEST_UTIL_H

/* Replaces names such as ${files} in `text` by paths, of files and folders that the first
 * call makes, the same in each run. The result is in static memory. */
const char *inputs_fill(const char *text);

#endif
