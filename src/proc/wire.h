/*
 * proc/wire.h - what lies where in the memory that both sides share.
 *
 * A channel has two regions: `in` is written by the parent (the peer maps it read-only),
 * `out` by the peer. Each begins with a head; behind it lie, for a request of n records,
 * the parts that both sides compute from the request and n alone (hr__proc_map_lay), and
 * then bytes of any size, which descriptors point to. A peer has two channels, so that a
 * request lies ready while it does the one before; requests are numbered and done in
 * their order, whatever their channel. Words that belong to the peer (marked) count in
 * the heads of channel 0. Nothing here is kept or sent: both sides are the same library,
 * and the hello refuses another one.
 */
#ifndef HR_PROC_WIRE_H
#define HR_PROC_WIRE_H

#include <stdatomic.h>

#include "core/str.h"
#include "proc/proc.h"

#define HR_PROC_MAGIC 0x68727063u
#define HR_PROC_VERSION 2u
#define HR_PROC_CHANNELS 2
#define HR_PROC_HEAD 4096      /* bytes that a head takes */
#define HR_PROC_COLUMN_MAX 512 /* larger items have descriptors */
#define HR_PROC_DETAIL_MAX 65536
#define HR_PROC_COUNT_MAX (1u << 20) /* records of a request */

struct hr_proc_in_head {
    atomic_uint request;  /* peer: number of the last request; written last */
    atomic_uint sleeping; /* peer: the parent waits on the socket */
    uint32_t channels[HR_PROC_CHANNELS]; /* peer: of request n, at n % HR_PROC_CHANNELS */
    uint32_t count;
    uint64_t bytes;   /* of `in` that matter */
    uint64_t out_max; /* bytes that `out` may take */
};

struct hr_proc_out_head {
    _Alignas(64) atomic_uint response; /* peer: last one answered; written last */
    _Alignas(64) atomic_uint sleeping; /* peer: it waits on the socket */
    /* Peer: request << 32 | record: those before it are complete. And its step. */
    _Alignas(64) _Atomic uint64_t running;
    atomic_uint running_step;
    uint32_t done; /* records, when answered */
    uint32_t full; /* the next one found no room */
    uint64_t used; /* bytes of `out` */
    uint64_t work_ns;
};

/* A value that is no item of a column. */
enum hr_proc_where {
    HR_PROC_MADE,   /* bytes at `place` of the writer's region */
    HR_PROC_PASSED, /* what input number `place` of the record shows */
};
struct hr_proc_value {
    uint64_t place, bytes;
    uint64_t offsets; /* RAGGED: place of dims[0] + 1 of them */
    uint8_t where;    /* enum hr_proc_where */
    uint8_t kind, dtype, ndim, strings;
    int64_t dims[HR_MAX_DIMS];
};

/* What became of a record. `place`: of its error when it failed, else of the descriptors
 * of its children (EXPAND). */
struct hr_proc_status {
    int32_t code;
    uint16_t step;
    uint8_t drop;
    uint64_t place, children;
};

struct hr_proc_failure {
    struct hr_error error;
    uint32_t detail_bytes; /* of text behind it */
};

/* The items of one input or result: item i at `at` + i * `step`. */
struct hr_proc_lane {
    const struct hr_field *field;
    size_t bytes; /* of an item of a column; 0: a struct hr_proc_value each */
    size_t at, step;
};

struct hr_proc_map {
    struct hr_proc_lane *inputs, *results;
    size_t input_count, result_count;
    bool expand; /* results have no lanes: children bring descriptors */
    size_t ids, in_end, status, out_end; /* of the request laid last */
};

/* The lanes of a request, not laid yet. */
HR_CHECK enum hr_err
hr__proc_map_init(struct hr_proc_map *map, const struct hr_proc_program *program);
void hr__proc_map_finish(struct hr_proc_map *map);
void hr__proc_map_lay(struct hr_proc_map *map, size_t count);

/* The declaration of a slot. NULL when nothing makes it. */
const struct hr_field *
hr__proc_slot_field(const struct hr_proc_program *program, size_t slot);

/* The request as bytes, and back; what is read lives in the arena. Reading checks that
 * every number is in its range. */
void hr__proc_program_write(const struct hr_proc_program *program, struct hr_str *out);
HR_CHECK enum hr_err
hr__proc_program_read(const void *bytes, size_t count, struct hr_arena *arena,
                      struct hr_proc_program *ret_program, struct hr_error *reterr);

/* The first message, parent to peer, with the regions' descriptors (in and out, channel
 * by channel); and what the peer answers. */
struct hr_proc_hello {
    uint32_t magic, version;
    uint64_t program_bytes; /* behind the head of channel 0's `in` */
};
struct hr_proc_ready {
    uint32_t magic, version;
    int32_t code;
    char message[256];
};

static inline size_t hr__proc_align(size_t at)
{
    return (at + 63) & ~(size_t)63;
}

#endif
