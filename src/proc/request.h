/*
 * proc/request.h - what lies where in the memory that both sides share.
 *
 * A channel has two regions: `in` is written by the parent (the peer maps it read-only),
 * `out` by the peer. Each begins with a head; after it lie, for a request of n records,
 * the parts that both sides compute from the program and n alone (hr__proc_map_lay), and
 * then payloads, which descriptors point to. Identities, columns, descriptors and
 * payloads are those of the record codec (wire/layout.h, wire/value.h). A peer has two
 * channels, so that a request lies ready while it works on the one before; requests are
 * numbered and run in their order, whatever their channel. Words that belong to the peer
 * (marked) count in the heads of channel 0. Heads are never stored or sent: both sides
 * are the same library, and the hello refuses another one.
 */
#ifndef HR_PROC_REQUEST_H
#define HR_PROC_REQUEST_H

#include <stdatomic.h>

#include "core/str.h"
#include "proc/proc.h"
#include "wire/layout.h"

#define HR_PROC_MAGIC 0x68727063u
#define HR_PROC_VERSION 5u
#define HR_PROC_CHANNELS 2
#define HR_PROC_HEAD 4096 /* bytes that a head takes */
#define HR_PROC_DETAIL_MAX 65536
#define HR_PROC_COUNT_MAX HR_WIRE_RECORDS_MAX /* records of a request */
#define HR_PROC_NODES_MAX 65536

struct hr_proc_in_head {
    atomic_uint request;  /* peer: number of the last request; written last */
    atomic_uint sleeping; /* peer: the parent waits on the socket */
    uint32_t channels[HR_PROC_CHANNELS]; /* peer: of request n, at n % HR_PROC_CHANNELS */
    uint32_t count;
    uint32_t id_bytes; /* of an identity */
    uint64_t bytes;    /* of `in` that matter */
    uint64_t out_max;  /* bytes that `out` may take */
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
    uint64_t work_ns, cpu_ns;
};

/* What became of a record. `place`: of its error when it failed, else of the descriptors
 * of its children (EXPAND). */
struct hr_proc_status {
    int32_t code;
    uint16_t step;
    uint8_t drop, zero;
    uint64_t place, children;
};

struct hr_proc_failure {
    struct hr_error error;
    uint32_t node;         /* at fault */
    uint32_t detail_bytes; /* of text after it */
};

struct hr_proc_map {
    struct hr_wire_layout inputs, results;
    bool expand;    /* results have no lanes: children bring descriptors */
    uint32_t nodes; /* of the graph */
    /* Of the request laid last: */
    size_t id_bytes, times, status;
};

/* The lanes of a request, not laid yet. HR_ERR_MEMORY; finish it also then. */
HR_CHECK enum hr_err
hr__proc_map_init(struct hr_proc_map *map, const struct hr_proc_program *program);
void hr__proc_map_finish(struct hr_proc_map *map);
void hr__proc_map_lay(struct hr_proc_map *map, size_t count, size_t id_bytes);

/* program.c: the program as bytes, and back; what is read lives in the arena. Reading
 * checks that every number is in its range and that steps read only what was made. */
void hr__proc_program_write(const struct hr_proc_program *program, struct hr_str *out);
HR_CHECK enum hr_err
hr__proc_program_read(const void *bytes, size_t count, struct hr_arena *arena,
                      struct hr_proc_program *ret_program, struct hr_error *reterr);

/* The first message, parent to peer, with the regions' descriptors (in and out, channel
 * by channel); and the peer's answer. */
struct hr_proc_hello {
    uint32_t magic, version;
    uint64_t program_bytes; /* after the head of channel 0's `in` */
    uint64_t replaced;      /* see struct hr_code_record */
};
struct hr_proc_ready {
    uint32_t magic, version;
    int32_t code;
    char message[256];
};

#endif
