/*
 * ops_find.h - the operators that words describe.
 */
#ifndef BIN_OPS_FIND_H
#define BIN_OPS_FIND_H

#include "cli.h"

/* Marks in `ret_found`, an entry for each of the `count` operators, those that the words
 * name: the operator of that name if there is one word, else all whose name or summary
 * contains every word, in any case; those made for tests only if `all`. Returns how many.
 */
size_t ops_find(const struct cli_rest *words, bool all, bool *ret_found, size_t count);

/* Prints that nothing was found, with names that are near to the words. Returns
 * CLI_USAGE. */
int ops_find_failed(const struct cli_rest *words);

#endif
