/*
 * record_options.h - which records a command reads and what it does with bad ones, the
 * same in run and pack.
 */
#ifndef BIN_RECORD_OPTIONS_H
#define BIN_RECORD_OPTIONS_H

#include "cli.h"
#include "headrace/engine.h"

struct record_options {
    int64_t epochs, limit, seed, epoch_first;
    int errors; /* enum hr_on_error */
    int64_t errors_max;
    const char *bad_records;
};

/* Rows of an option table; AT(field) is the command's own offset macro, and its struct
 * has a member `records`. --epochs is the command's own row. */
/* clang-format off */
#define RECORD_OPTIONS                                                                   \
    {"limit", 0, CLI_INT, AT(records.limit), "RECORDS",                                  \
     "stop after this many records"},                                                    \
    {"seed", 0, CLI_INT, AT(records.seed), "S",                                          \
     "seed for order and augmentation; default 0"},                                      \
    {"epoch", 0, CLI_INT, AT(records.epoch_first), "E",                                  \
     "number of the first epoch; default 0", 0, UINT32_MAX},                             \
    {"errors", 0, CLI_CHOICE, AT(records.errors), "fail|skip|substitute",                \
     "what to do on a bad record; default fail"},                                        \
    {"errors-max", 0, CLI_INT, AT(records.errors_max), "N",                              \
     "fail after this many bad records; default 1 + 1 % of all, at least 100"},          \
    {"bad-records", 0, CLI_TEXT, AT(records.bad_records), "FILE",                        \
     "append each bad record to FILE, one JSON object per line"}
/* clang-format on */

#define RECORD_DEFAULTS                                                                  \
    {                                                                                    \
        .epochs = 1                                                                      \
    }

void record_options_set(const struct record_options *options,
                        struct hr_iter_options *ret);

#endif
