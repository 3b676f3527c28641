/*
 * opt/cedar.h - the optimizer of cedar (Zhao et al., "cedar: Optimized and Unified
 * Machine Learning Input Data Pipelines", VLDB 2024) as a pure function: from the
 * statistics that cedar measures to the plan that it makes of them, and to the one that a
 * search over orders, caches and placements together makes under the same model of cost.
 *
 * The model: a pipe takes the part of the pipeline's time that its CPU time has of that
 * of all pipes, and time and bytes are linear in the bytes that reach a pipe. Names,
 * hints and statistics are cedar's; docs/formats/cedar.md explains them.
 */
#ifndef HR_OPT_CEDAR_H
#define HR_OPT_CEDAR_H

#include "core/error.h"

#define HR_CEDAR_PIPES_MAX 64

/* How a pipe runs; numbered and named as in cedar. */
enum hr_cedar_variant {
    HR_CEDAR_NONE,
    HR_CEDAR_INPROCESS,
    HR_CEDAR_MULTIPROCESS,
    HR_CEDAR_MULTITHREADED,
    HR_CEDAR_SMP,    /* worker processes of this machine */
    HR_CEDAR_RAY,    /* actors, here or elsewhere */
    HR_CEDAR_TF,     /* tf.data */
    HR_CEDAR_TF_RAY, /* tf.data in actors */
    HR_CEDAR_RAY_DS, /* Ray Data: the whole pipeline, in its source */
    HR_CEDAR_VARIANTS
};
extern const char *const hr__cedar_variants[HR_CEDAR_VARIANTS]; /* [0]: "" */

/* A pipe in the written order: what was measured, and what the user said of it. */
struct hr_cedar_pipe {
    const char *name;  /* for messages; not copied */
    double latency_ns; /* CPU time of a sample */
    double bytes_in, bytes_out;
    /* Samples per second of the whole pipeline with this pipe alone moved to the variant;
     * 0: not measured, so that it is not moved there. */
    double rates[HR_CEDAR_VARIANTS];
    uint64_t depends_on; /* bit i: pipe i, written before this one, stays before it */
    uint32_t variants;   /* bit v: it may run as variant v */
    bool fixed;          /* swaps with no pipe */
    bool random;         /* no cache after it */
    bool tf;             /* a TensorFlow op; of a source: pipes can be fused into it */
    bool py_function;    /* a tf.py_function */
    bool batches;        /* gathers samples: may stand in a pipeline of TensorFlow ops */
    bool fusable;        /* can share a call with its neighbours */
    bool kept;           /* is never offloaded */
};

struct hr_cedar_stats {
    const struct hr_cedar_pipe *pipes; /* the source first; its bytes_in is ignored */
    size_t pipe_count;                 /* 1 to HR_CEDAR_PIPES_MAX */
    double rate;    /* samples per second of the pipeline as written, in one process */
    double tf_rate; /* of the pipeline fused into a TensorFlow source; 0: not measured */
    double disk_read; /* seconds per byte; -1: not measured */
};

struct hr_cedar_options {
    int cpus;      /* of this machine */
    double demand; /* samples per second that are wanted; 0: as many as possible */
    bool reorder, offload, fusion, prefetch, drivers; /* passes that run */
    uint64_t cache_samples; /* of an epoch: consider a cache of them; 0: none */
    double disk_free;       /* bytes that a cache may take */
    /* Choose order, cache and placement together; false: one after the other, as cedar
     * does. */
    bool joint;
};
/* cedar's defaults: 8 CPUs, all passes, no cache. */
void hr__cedar_options_init(struct hr_cedar_options *options);

enum hr_cedar_kind { HR_CEDAR_PIPES, HR_CEDAR_CACHE, HR_CEDAR_PREFETCH };

/* What runs as one pipe. */
struct hr_cedar_stage {
    enum hr_cedar_kind kind;
    enum hr_cedar_variant variant;
    uint8_t pipes[HR_CEDAR_PIPES_MAX]; /* numbers, in the order of application */
    uint8_t pipe_count;                /* 0: a cache or prefetcher */
    bool autotune;                     /* TF: parallel calls as TensorFlow sees fit */
    int workers;                       /* actors or processes; 0: the variant has none */
    int in_flight;    /* at most this many samples in it, and as many waiting after it */
    int submit_batch; /* samples of a request; 0: the variant has none */
};

struct hr_cedar_result {
    double orders;        /* that are legal; HUGE_VAL: too many to count */
    double written_ms;    /* of one sample on one core, as written */
    double order_ms;      /* as ordered */
    double cost_ms;       /* as ordered, cached, fused and offloaded */
    bool best;            /* no legal plan is cheaper, as far as `joint` goes */
    bool drivers_refused; /* too many bytes to send from process to process */
    int drivers;          /* processes that run the pipeline */
    uint8_t order[HR_CEDAR_PIPES_MAX];
    int cache_after; /* place in the order; -1: no cache */
    size_t slices;   /* stages that are offloaded */
    struct hr_cedar_stage stages[HR_CEDAR_PIPES_MAX + 2];
    size_t stage_count;
};

/* HR_ERR_RANGE or HR_ERR_LIMIT names the pipe whose numbers make no sense; HR_ERR_STATE:
 * a cache needs disk_read. */
HR_CHECK enum hr_err
hr__cedar_optimize(const struct hr_cedar_stats *stats,
                   const struct hr_cedar_options *options,
                   struct hr_cedar_result *ret_result, struct hr_error *reterr);

#endif
