/*
 * record_options.c - passes the options of the records to the library.
 */
#include "record_options.h"

void record_options_set(const struct record_options *options, struct hr_iter_options *ret)
{
    ret->seed = (uint64_t)options->seed;
    ret->epochs = options->epochs;
    ret->epoch_first = options->epoch_first;
    ret->records_max = options->limit;
    ret->on_error = (enum hr_on_error)options->errors;
    ret->errors_max = options->errors_max;
    ret->ledger = options->bad_records;
}
