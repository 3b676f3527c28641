/*
 * cache_report.h - where a cache pays, for headrace optimize and explain: the options
 * that ask, the question, and the answer as text and JSON.
 */
#ifndef BIN_CACHE_REPORT_H
#define BIN_CACHE_REPORT_H

#include "cli.h"
#include "headrace/cache.h"
#include "out.h"

struct cache_ask {
    int64_t epochs; /* 0: not asked */
    int64_t memory; /* 0: none; CACHE_MEMORY_DEFAULT */
    int64_t folder_bytes, refresh, quality;
    const char *folder;
};
#define CACHE_MEMORY_DEFAULT (-1)
#define CACHE_ASK_DEFAULTS                                                               \
    {                                                                                    \
        .memory = CACHE_MEMORY_DEFAULT                                                   \
    }

/* clang-format off */
#define CACHE_ASK_AT(type, member, field) (offsetof(type, member) + offsetof(struct cache_ask, field))
#define CACHE_ASK_OPTIONS(type, member)                                                                      \
    {"epochs", 0, CLI_INT, CACHE_ASK_AT(type, member, epochs), "N",                                          \
     "see where a cache pays if the job makes N more epochs", 1, 1000000000},                                \
    {"cache-memory", 0, CLI_BYTES, CACHE_ASK_AT(type, member, memory), "BYTES",                              \
     "with --epochs: a cache in memory may take BYTES, 0: there is none; default a quarter of the machine's memory", \
     0, INT64_MAX},                                                                                          \
    {"cache-folder", 0, CLI_TEXT, CACHE_ASK_AT(type, member, folder), "FOLDER",                              \
     "with --epochs: a cache may also be kept in FOLDER"},                                                   \
    {"cache-bytes", 0, CLI_BYTES, CACHE_ASK_AT(type, member, folder_bytes), "BYTES",                         \
     "with --cache-folder: it may take BYTES; default all but a twentieth of the disk", 0, INT64_MAX},       \
    {"refresh", 0, CLI_INT, CACHE_ASK_AT(type, member, refresh), "K",                                        \
     "with --epochs: random draws before the cache may stay the same for K epochs; default: no cache after " \
     "ops that draw", 1, 1000000000},                                                                        \
    {"cache-quality", 0, CLI_INT, CACHE_ASK_AT(type, member, quality), "Q",                                  \
     "with --epochs: images in a cache may be kept as JPEGs of quality Q, which take less room and change "  \
     "levels a little; default: as they are", 1, 100}
/* clang-format on */

/* Returns a cli_exit code; prints what does not fit together. */
int cache_ask_check(const struct cache_ask *ask);

/* hr_graph_propose_cache(), which leaves no folder behind; `order` may be NULL. */
enum hr_err
cache_propose(struct hr_graph *graph, const struct hr_profile *profile,
              const struct cache_ask *ask, enum hr_strictness strictness,
              const struct hr_optimize_options *order, struct hr_graph **ret_graph,
              struct hr_cache_places **ret_places, struct hr_error *error);

/* "after 'decode' in memory", "none". Returns `text`. */
const char *cache_place_text(const struct hr_cache_place *place, char *text, size_t room);

/* The place that was chosen, and the best of the others that is not refused. Return false
 * if there is none. */
bool cache_chosen(const struct hr_cache_places *places, struct hr_cache_place *ret_place);
bool cache_runner_up(const struct hr_cache_places *places,
                     struct hr_cache_place *ret_place);

/* Nothing if `places` is NULL. The second writes the member "caches". */
void cache_report_print(const struct hr_cache_places *places, int64_t epochs);
void cache_report_json(struct json *json, const struct hr_cache_places *places);

#endif
