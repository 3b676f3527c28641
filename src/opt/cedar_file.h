/*
 * opt/cedar_file.h - cedar's statistics and plans as text (docs/formats/cedar.md).
 * Nothing in a file is believed: errors have file, line, column and key.
 */
#ifndef HR_OPT_CEDAR_FILE_H
#define HR_OPT_CEDAR_FILE_H

#include "opt/cedar.h"

struct hr_doc;
struct hr_str;

/* ---- statistics ---- */

struct hr_cedar_measure {
    int64_t id;
    double latency_ns, bytes_in, bytes_out;
    double rates[HR_CEDAR_VARIANTS]; /* as in struct hr_cedar_pipe */
};

struct hr_cedar_measures {
    struct hr_cedar_measure pipes[HR_CEDAR_PIPES_MAX]; /* as in the file */
    size_t pipe_count;
    double rate, tf_rate;         /* as in struct hr_cedar_stats */
    double disk_read, disk_write; /* seconds per byte; -1: unknown */
};

HR_CHECK enum hr_err
hr__cedar_measures_parse(const char *text, size_t bytes, const char *name,
                         struct hr_cedar_measures *ret_measures, struct hr_error *reterr);
/* As YAML that cedar reads. Marks `out` as failed when out of memory. */
void hr__cedar_measures_print(const struct hr_cedar_measures *measures,
                              struct hr_str *out);
/* NULL if there is none of this id. */
const struct hr_cedar_measure *
hr__cedar_measure(const struct hr_cedar_measures *measures, int64_t id);

/* ---- plans ---- */

/* Numbers of a variant_ctx. */
enum hr_cedar_number {
    HR_CEDAR_N_PROCS,
    HR_CEDAR_N_THREADS,
    HR_CEDAR_N_ACTORS,
    HR_CEDAR_MAX_INFLIGHT,
    HR_CEDAR_MAX_PREFETCH,
    HR_CEDAR_SUBMIT_BATCH,
    HR_CEDAR_PARALLEL_CALLS,
    HR_CEDAR_USE_THREADS,      /* 0 or 1 */
    HR_CEDAR_DISABLE_PARALLEL, /* 0 or 1 */
    HR_CEDAR_NUMBERS
};
#define HR_CEDAR_UNSET INT64_MIN

/* What a user says of a pipe, beyond cedar's files. */
enum hr_cedar_hint {
    HR_CEDAR_FIX,
    HR_CEDAR_IS_RANDOM,
    HR_CEDAR_TF_OP,
    HR_CEDAR_PY_FUNC,
    HR_CEDAR_FUSABLE,
    HR_CEDAR_BATCH,
    HR_CEDAR_OFFLOAD,
    HR_CEDAR_HINTS
};

struct hr_cedar_entry {
    int64_t id;
    const char *name;
    enum hr_cedar_variant variant; /* NONE: not said */
    bool has_context;
    int64_t numbers[HR_CEDAR_NUMBERS]; /* HR_CEDAR_UNSET: not said */
    int64_t fused[HR_CEDAR_PIPES_MAX]; /* ids, in the order of application */
    size_t fused_count;
    int8_t hints[HR_CEDAR_HINTS];    /* 0, 1; -1: not said */
    uint32_t variants;               /* bits; 0: not said */
    const char *tag;                 /* NULL: not said */
    const struct hr_doc *depends_on; /* a list of tags and ids, or NULL */
    const struct hr_doc *at;         /* in the file; NULL: of none */
};

/* The pipes of a plan, and the way from source to output. */
#define HR_CEDAR_ENTRIES_MAX (2 * HR_CEDAR_PIPES_MAX + 4)
struct hr_cedar_section {
    struct hr_cedar_entry *entries;
    size_t entry_count;
    int64_t chain[HR_CEDAR_ENTRIES_MAX]; /* ids; none: not said */
    size_t chain_count;
    int64_t drivers; /* n_local_workers; HR_CEDAR_UNSET: not said */
};

/* A file has one section or both. */
struct hr_cedar_plan {
    struct hr_cedar_section logical, physical; /* entry_count 0: not there */
    struct hr_doc *doc;                        /* holds the strings; NULL: others do */
};

/* hr__cedar_plan_finish() the result. */
HR_CHECK enum hr_err
hr__cedar_plan_parse(const char *text, size_t bytes, const char *name,
                     struct hr_cedar_plan *ret_plan, struct hr_error *reterr);
void hr__cedar_plan_finish(struct hr_cedar_plan *plan);
/* As YAML that cedar reads; hints are printed too. Marks `out` as failed when out of
 * memory. */
void hr__cedar_plan_print(const struct hr_cedar_plan *plan, struct hr_str *out);

extern const char *const hr__cedar_numbers[HR_CEDAR_NUMBERS]; /* their keys */
extern const char *const hr__cedar_hints[HR_CEDAR_HINTS];

/* NULL if there is none of this id. */
const struct hr_cedar_entry *
hr__cedar_entry(const struct hr_cedar_section *section, int64_t id);

/* Whether cedar's optimizer inserts pipes of this name. */
bool hr__cedar_is_inserted(const char *name);

/* ---- both ---- */

/* A pipeline: statistics with names and hints, in the written order. */
struct hr_cedar_pipeline {
    struct hr_cedar_pipe pipes[HR_CEDAR_PIPES_MAX]; /* names belong to the plan */
    const struct hr_cedar_entry *entries[HR_CEDAR_PIPES_MAX]; /* of the plan */
    struct hr_cedar_stats stats;                              /* of `pipes` */
};

/*
 * Joins statistics and the pipes of a plan: those of its logical section, else those of
 * the physical one, whose written order is that of the ids, from the highest down. Errors
 * name a file: `stats_name` if a pipe of the plan was not measured, `plan_name` else.
 * Points *ret_pipeline into itself and into the plan.
 */
HR_CHECK enum hr_err
hr__cedar_join(const struct hr_cedar_measures *measures, const char *stats_name,
               const struct hr_cedar_plan *plan, const char *plan_name,
               struct hr_cedar_pipeline *ret_pipeline, struct hr_error *reterr);

/* The plan that cedar would write for a result: both sections. Strings belong to the
 * pipeline. hr__cedar_plan_finish() it. */
HR_CHECK enum hr_err
hr__cedar_plan_make(const struct hr_cedar_pipeline *pipeline,
                    const struct hr_cedar_result *result, struct hr_cedar_plan *ret_plan,
                    struct hr_error *reterr);

#endif
