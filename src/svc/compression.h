/*
 * svc/compression.h - when a worker compresses what it sends to a client.
 *
 * Compression pays where the link is what limits the records per second: it costs the
 * worker's CPU and the client's. So it is chosen by what was measured: how fast the
 * link takes bytes, what making a byte costs, and what compressing a sample costs and
 * saves. A choice is then put to the test: unless more bytes per second are delivered
 * with it than before, it is dropped, and not tried again for a while. Without a choice
 * frames are plain, and nothing is compressed where the link does not limit.
 *
 * Pure: the caller measures, and says what time it is. Bytes are those before
 * compression unless they are called bytes of the wire.
 */
#ifndef HR_SVC_COMPRESSION_H
#define HR_SVC_COMPRESSION_H

#include "headrace/base.h"
#include "store/compress.h"

/* Sets of kinds: bits 1 << enum hr_compression. */
#define HR_COMPRESSION_BIT(kind) (1u << (kind))
#define HR_COMPRESSION_ALL 7u
#define HR_COMPRESSION_KINDS 3u

/* "auto", "none", "lz4", "zstd": the kinds that are allowed; 0 for another text. NULL is
 * "auto". */
unsigned hr__compression_set(const char *name);
/* "none", "zstd", "lz4". */
const char *hr__compression_name(enum hr_compression kind);

/* What a kind does, measured. */
struct hr_compression_cost {
    double ratio;              /* bytes of the wire per byte; 0: unknown */
    double pack_ns, unpack_ns; /* CPU time per byte; for none of it 0 */
};

/* What is known about a connection. */
struct hr_compression_link {
    double wire_ns; /* that the link takes for a byte of the wire; 0: it takes all */
    double make_ns; /* CPU time of making a byte */
    unsigned makers, cpus; /* threads that make; CPUs for these and for compressing */
};

/* The time for a byte with this kind: that of the slowest of making, compressing, the
 * link, and decompressing. */
double hr__compression_time(const struct hr_compression_link *link,
                            const struct hr_compression_cost *cost);

/* The kind to use after `now`, of those that are allowed: another one only if it is
 * clearly faster. `costs` by kind. */
enum hr_compression
hr__compression_best(const struct hr_compression_link *link,
                     const struct hr_compression_cost costs[HR_COMPRESSION_KINDS],
                     unsigned allowed, enum hr_compression now);

/* ---- the choice for one connection ---- */

/* What happened since the last review. */
struct hr_compression_window {
    uint64_t ns;
    uint64_t bytes;      /* of frames that were handed to the connection */
    uint64_t busy_ns;    /* time for which something was on its way */
    uint64_t busy_bytes; /* of the wire, delivered in that time */
    uint64_t make_ns;    /* CPU time of the process but for compressing, */
    uint64_t made_bytes; /* and what it made in that time, for all clients */
    /* Since the connection began, bytes of the wire: handed to it, and delivered. */
    uint64_t handed, delivered;
};

#define HR_COMPRESSION_REVIEW_NS 500000000u /* between reviews, at least */

struct hr_compression_choice {
    unsigned allowed;
    enum hr_compression now;
    struct hr_compression_cost costs[HR_COMPRESSION_KINDS];
    uint64_t measured_ns[HR_COMPRESSION_KINDS]; /* when; 0: never */
    struct hr_compression_link link;
    uint64_t link_ns;             /* when wire_ns was measured */
    unsigned busy_windows;        /* in a row */
    double plain_rate;            /* bytes per ns before it was chosen */
    uint64_t settled;             /* bytes of the wire that were handed over before */
    uint64_t judged_ns;           /* the test ends; 0: not begun, or passed */
    uint64_t test_ns, test_bytes; /* of its windows after the first */
    bool tested;                  /* it passed */
    uint64_t trust_ns;            /* until the link is measured again */
    /* By kind: not tried until then, as it did not pass; and for how long the next time.
     */
    uint64_t rest_until_ns[HR_COMPRESSION_KINDS], rest_ns[HR_COMPRESSION_KINDS];
};

/* If `allowed` has one kind, that is used always; `makers`, `cpus` as above. */
void hr__compression_begin(struct hr_compression_choice *choice, unsigned allowed,
                           unsigned makers, unsigned cpus);
/* Whether it is worth measuring what this kind does with the next frame. */
bool hr__compression_wants(const struct hr_compression_choice *choice,
                           enum hr_compression kind, uint64_t now);
void hr__compression_measured(struct hr_compression_choice *choice,
                              enum hr_compression kind,
                              const struct hr_compression_cost *cost, uint64_t now);
/* The kind cannot be used, such as without memory. */
void hr__compression_forbid(struct hr_compression_choice *choice,
                            enum hr_compression kind);
/* Chooses; true if the choice changed. */
bool hr__compression_review(struct hr_compression_choice *choice,
                            const struct hr_compression_window *window, uint64_t now);

#endif
