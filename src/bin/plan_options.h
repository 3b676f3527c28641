/*
 * plan_options.h - the options that decide a plan, the same in run, explain and plan.
 */
#ifndef BIN_PLAN_OPTIONS_H
#define BIN_PLAN_OPTIONS_H

#include "cli.h"
#include "headrace/engine.h"

struct plan_options {
    int64_t threads, memory_bytes, ahead_bytes;
    int variant; /* enum hr_variant */
    bool ordered, no_fuse;
    const char *file; /* a plan to run; NULL: make one */
};

/* Rows of an option table; AT(field) is the command's own offset macro, and its struct
 * has a member `plan`. */
/* clang-format off */
#define PLAN_OPTIONS                                                                     \
    {"plan", 0, CLI_TEXT, AT(plan.file), "FILE",                                         \
     "use the plan in FILE (headrace plan) instead of making one"},                      \
    {"threads", 0, CLI_INT, AT(plan.threads), "N",                                       \
     "number of threads; default: the CPUs that this process may use", 0, 4096},         \
    {"variant", 0, CLI_CHOICE, AT(plan.variant), "threads|inline|processes",             \
     "where to run: in threads (default), in the calling thread, or in worker "          \
     "processes where a step supports it"},                                              \
    {"ordered", 0, CLI_BOOL, AT(plan.ordered), "BOOL",                                   \
     "deliver batches in order (default) or as they complete"},                          \
    {"no-fuse", 0, CLI_FLAG, AT(plan.no_fuse), NULL,                                     \
     "run every node by itself, for comparison, where that changes no byte"},            \
    {"memory", 0, CLI_BYTES, AT(plan.memory_bytes), "BYTES",                             \
     "memory budget for batches, read-ahead and scratch; default: three batches, more " \
     "if these hold fewer than two records per thread"},                                 \
    {"ahead", 0, CLI_BYTES, AT(plan.ahead_bytes), "BYTES",                               \
     "part of the budget for read-ahead; default: automatic"}
/* clang-format on */

#define PLAN_DEFAULTS                                                                    \
    {                                                                                    \
        .ordered = true                                                                  \
    }

/* Copies the options to *ret. *ret_text is the text of the plan file or NULL; free() it
 * once the iterator is open. Returns a cli_exit code and prints the reason on failure. A
 * plan file and the other options exclude each other. */
int plan_options_set(const struct plan_options *options, struct hr_iter_options *ret,
                     char **ret_text);

#endif
