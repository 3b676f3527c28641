/*
 * wire/frame.h - the frames of the service: a header of 32 bytes, then a payload.
 *
 * A frame carries records (DATA), a text, or one control message. Both sides of a
 * connection distrust each other: every number is checked against its limit before use,
 * fields that a type does not use must be zero, and hashes cover header and payload. A
 * body is followed by its hash, which grows run by run: both sides hash bytes while they
 * are in cache, and a header is sent before its body was read. Where what carries a frame
 * cannot damage it, the bytes of the body are left out of the hash.
 * Pure functions on bytes; what the messages mean is in svc/. docs/formats/frame.md has
 * the bytes.
 */
#ifndef HR_WIRE_FRAME_H
#define HR_WIRE_FRAME_H

#include <sys/uio.h>

#include "core/error.h"

#define HR_FRAME_VERSION 7u
#define HR_FRAME_HEAD 32u            /* bytes of a header */
#define HR_FRAME_TAIL 8u             /* bytes after a body */
#define HR_FRAME_RUN (1u << 18)      /* bytes of a body that are hashed at once */
#define HR_FRAME_DATA_MAX (1u << 30) /* payload of DATA */
#define HR_FRAME_LARGE (1u << 20)   /* payload of a DATA that is acknowledged: RECEIVED */
#define HR_FRAME_RANGES_MAX 64u     /* of one message */
#define HR_FRAME_JOB_MAX (1u << 22) /* payload of JOB */
#define HR_FRAME_LIST_MAX (1u << 20) /* payload of WORKERS */
#define HR_FRAME_TOKEN_MAX 255u      /* payload of AUTH */
#define HR_FRAME_NAME_MAX 128u       /* payload of CONSUMER */
#define HR_FRAME_TEXT_MAX 255u       /* of an ERROR, without the terminating NUL */
#define HR_FRAME_POSITION_MAX ((uint64_t)1 << 60) /* sums of a few do not wrap */
#define HR_FRAME_KINDS_MAX 7u         /* the largest set of kinds of compression */
#define HR_FRAME_WORLD_MAX (1u << 20) /* consumers of a job */
#define HR_FRAME_WEIGHT_MAX 100u
/* The largest control payload: LEASE with all its ranges. */
#define HR_FRAME_CONTROL_MAX (16u + 16u * HR_FRAME_RANGES_MAX)

/* X(name, value): values are part of the format. */
#define HR_FRAMES(X)                                                                     \
    X(HELLO, 1)       /* client or worker: who I am; a client's cursor */                \
    X(WELCOME, 2)     /* the answer: your generation */                                  \
    X(PROGRESS, 3)    /* client: cursor in memory; worker: still there */                \
    X(ACK, 4)         /* client: durable cursor */                                       \
    X(LEASE, 5)       /* dispatcher to worker: make these ranges */                      \
    X(BIND, 6)        /* dispatcher to client: these ranges are yours */                 \
    X(DATA, 7)        /* worker to client: records */                                    \
    X(FINISHED, 8)    /* worker to dispatcher: these ranges were sent */                 \
    X(CREDIT, 9)      /* client to worker: bytes that it may send */                     \
    X(COMMIT, 10)     /* client to dispatcher: a checkpoint lies ready */                \
    X(COMMITTED, 11)  /* the answer: it counts */                                        \
    X(ERROR, 12)      /* refused, with the reason */                                     \
    X(GOODBYE, 13)    /* I leave; a worker finishes what it has */                       \
    X(JOB, 14)        /* client: what is to be made */                                   \
    X(WORKERS, 15)    /* worker: my address; dispatcher: those to use */                 \
    X(AUTH, 16)       /* client or worker, first: the token */                           \
    X(SEGMENT, 17)    /* worker to client on one host: memory, as a descriptor */        \
    X(SHARED, 18)     /* the same: records whose large tensors lie in segments */        \
    X(RELEASE, 19)    /* client to worker: a SHARED frame's memory is free again */      \
    X(COMPRESSED, 20) /* worker to client: as DATA, compressed */                        \
    X(TRAFFIC, 21)    /* worker to dispatcher: what compression does */                  \
    X(CONSUMER, 22)   /* client to dispatcher: which consumer of its job I am */         \
    X(RECEIVED, 23)   /* client to worker: large bodies have come whole */

enum hr_frame_type {
#define HR_FRAME_ENUM(name, value) HR_FRAME_##name = (value),
    HR_FRAMES(HR_FRAME_ENUM)
#undef HR_FRAME_ENUM
};

enum hr_frame_role {
    HR_FRAME_CLIENT = 1,
    HR_FRAME_WORKER = 2,
};

/* Positions from `from` up to but excluding `until`. */
struct hr_frame_range {
    uint64_t from, until;
};

struct hr_frame_head {
    enum hr_frame_type type;
    uint32_t bytes; /* of the payload */
    uint64_t position;
    uint32_t count, generation;
    uint64_t hash;
};

/* A message. Header fields and payload fields that its type does not use are zero. */
struct hr_frame {
    enum hr_frame_type type;
    uint64_t position; /* HELLO, WELCOME, PROGRESS, ACK, DATA, SHARED, COMPRESSED;
                          WELCOME to an independent consumer: its rank;
                          CREDIT: cursor; JOB: number of positions; RELEASE: number of the
                          frame; RECEIVED: large bodies so far */
    uint32_t
        count; /* DATA, SHARED, COMPRESSED: positions; SEGMENT: its index; HELLO:
                  leases    that a worker holds at once, or the kinds of compression
                  that a client    takes: bits 1 << enum hr_compression; TRAFFIC: those
                  in use; LEASE, BIND,    FINISHED, COMMIT: ranges; WORKERS: lines;
                  PROGRESS of an independent consumer: its ranges that it has taken */
    uint32_t generation; /* of the client; 0: none yet */
    uint64_t job;        /* HELLO, WELCOME, LEASE, BIND, FINISHED */
    union {
        struct {
            uint64_t nonce;       /* drawn at the start of the process */
            uint64_t base;        /* first position of this membership */
            uint32_t membership;  /* raised by each change of `world` */
            uint32_t world, rank; /* consumers of the job; this one */
            uint32_t role;        /* enum hr_frame_role */
            uint32_t weight;      /* of a client against others, at least 1 */
            uint32_t zero;
        } hello;
        struct {
            uint64_t nonce;     /* that of the HELLO */
            uint64_t committed; /* number of the last committed checkpoint, or 0 */
            uint64_t window;    /* positions beyond the cursor that may be leased; to an
                                   independent consumer: number of the journal */
        } welcome;
        struct {
            uint32_t rank;
            uint32_t ttl_ms;  /* LEASE */
            uint32_t work_us; /* FINISHED: that it took the worker; 0: unknown */
            struct hr_frame_range ranges[HR_FRAME_RANGES_MAX];
        } lease; /* LEASE, BIND, FINISHED: ascending and disjoint */
        struct {
            uint64_t total; /* bytes since the connection began */
        } credit;
        struct {
            uint64_t id;
            struct hr_frame_range ranges[HR_FRAME_RANGES_MAX]; /* COMMIT */
        } commit;                                              /* COMMIT, COMMITTED */
        struct {
            uint64_t bytes; /* 0: there is none any more */
        } segment;
        struct {
            uint64_t made, sent; /* bytes of DATA over TCP so far: before compression, and
                                    as they were sent */
        } traffic;
        struct {
            enum hr_err code;
            char text[HR_FRAME_TEXT_MAX + 1]; /* what is not plain is read as '?' */
        } error;
    } u;
};

/* Length of the UTF-8 character at `bytes` (`count` >= 1); 0 if it is invalid or a
 * control character, which could rewrite a terminal or a log. */
size_t hr__frame_plain(const char *bytes, size_t count);
/* Whether a text has nothing else. */
bool hr__frame_is_plain(const char *text, size_t bytes);

/* "HELLO", ...; NULL for an unknown type. */
const char *hr__frame_name(enum hr_frame_type type);

/* Whether the payload is a body of any size up to its type's limit, which frames carry
 * without looking into it: DATA, SHARED, COMPRESSED, JOB, WORKERS, AUTH, CONSUMER. */
bool hr__frame_has_body(enum hr_frame_type type);

/* Whether one that takes it acknowledges such a body where bodies are hashed: DATA and
 * COMPRESSED of HR_FRAME_LARGE bytes and more. */
bool hr__frame_is_large(enum hr_frame_type type, size_t body_bytes);

/* Writes a message without a body to `to`, which has room for HR_FRAME_HEAD +
 * HR_FRAME_CONTROL_MAX bytes; returns its size. The message must be valid. */
size_t hr__frame_write(const struct hr_frame *frame, void *to);

/* Writes the header of a frame with a body of `bytes` bytes, at most what its type
 * allows. Returns its hash, which the body's begins with. */
uint64_t hr__frame_write_body(const struct hr_frame *frame, size_t bytes, void *to);

/* The hash of a body after `bytes` more bytes; of each call but the last a multiple of
 * HR_FRAME_RUN. It follows the body as HR_FRAME_TAIL bytes. */
uint64_t hr__frame_sum(uint64_t sum, const void *body, size_t bytes);
/* The same, of at most HR_FRAME_RUN bytes in parts. */
uint64_t hr__frame_sum_parts(uint64_t sum, const struct iovec *parts, size_t count);

/* Reads a header of HR_FRAME_HEAD bytes. HR_ERR_FORMAT; HR_ERR_UNSUPPORTED for another
 * version; HR_ERR_LIMIT for a payload larger than its type allows. The hash is checked
 * here if a body follows. */
HR_CHECK enum hr_err hr__frame_read_head(const void *from, struct hr_frame_head *ret_head,
                                         struct hr_error *reterr);

/* Reads the message whose header hr__frame_read_head() read from `from`; the payload of
 * head->bytes bytes follows at `payload`, and after a body its hash. HR_ERR_FORMAT. */
HR_CHECK enum hr_err
hr__frame_read(const void *from, const struct hr_frame_head *head, const void *payload,
               struct hr_frame *ret_frame, struct hr_error *reterr);

/* The message of a frame whose body has the hash `sum`, with the HR_FRAME_TAIL bytes that
 * followed it. HR_ERR_FORMAT. */
HR_CHECK enum hr_err
hr__frame_read_body(const struct hr_frame_head *head, uint64_t sum, const void *tail,
                    struct hr_frame *ret_frame, struct hr_error *reterr);

#endif
