/*
 * fleet/loan.h - batches in shared memory, between a worker and a client on one host.
 *
 * The worker's engine makes large tensors in segments (core/buffer.h), which the client
 * maps once and reads in place. A SHARED frame has the rest of a parcel and says where
 * its tensors lie; the worker keeps them until the client sends RELEASE, when the last
 * batch that refers to them is gone, or the connection ends. The kernel frees a segment
 * with its last mapping, so no process leaves any behind, however it ends.
 *
 * Clients may write to their batches. A tensor that several of them have (shelf.h) is
 * mapped by each as a copy of its own (MAP_PRIVATE), of which the kernel copies the pages
 * that are written to.
 *
 * Both belong to one user. The client does not trust the worker's numbers: it checks
 * what it maps, and that it cannot shrink.
 */
#ifndef HR_FLEET_LOAN_H
#define HR_FLEET_LOAN_H

#include "core/buffer.h"
#include "fleet/parcel.h"
#include "net/net.h"

/* The body of a SHARED frame: a table of pieces, then the parcel's written part, at a
 * multiple of 64 bytes. */
struct hr_loan_head {
    uint32_t count, zero; /* pieces, at most HR_SCHEMA_FIELDS_MAX */
};
struct hr_loan_piece {
    uint64_t offset, bytes; /* multiples of 64; of the segment */
    uint32_t segment;
    uint32_t common; /* 1: other clients read it, too; 0: none does */
};

/* ---- the worker (lend.c): what a connection's client holds; under the net's lock ----
 */

#define HR_LEND_BYTES_MAX ((size_t)512 << 20) /* that a client may hold */

struct hr_loan;
struct hr_lender {
    uint64_t told[HR_SEGMENTS_MAX]; /* ids of the segments that the client has */
    uint64_t frames;
    size_t bytes;
    struct hr_loan *first, *last;
};

/* Sends the pieces as a SHARED frame if they lie in segments of the pool, the connection
 * passes descriptors, and the client does not hold too much; false: not sent. `common`:
 * other clients have, had or will have some of it. */
bool hr__lend(struct hr_lender *lender, struct hr_net *net, uint32_t peer,
              struct hr_pool *pool, const struct hr_frame *data,
              const struct hr_parcel_pieces *pieces, bool common);
void hr__lend_release(struct hr_lender *lender, uint64_t frame);
void hr__lend_finish(struct hr_lender *lender);

/* ---- the client (borrow.c) ---- */

/* Where loans go when their last batch is gone, in any thread. */
struct hr_desk;
/* `wake` is called without a lock of the desk's user, until hr__desk_close(). NULL when
 * out of memory. */
struct hr_desk *hr__desk_create(void (*wake)(void *user), void *user);
void hr__desk_close(struct hr_desk *desk);
/* Takes a loan that has come back; false: there is none. */
bool hr__desk_take(struct hr_desk *desk, uint64_t *ret_connection, uint64_t *ret_frame);

/* A connection to a worker. */
struct hr_mapping;
struct hr_borrower {
    struct hr_mapping *mappings[HR_SEGMENTS_MAX];
    uint64_t connection, frames;
};

/* Maps a segment, or forgets one if `bytes` is 0. The descriptor is taken over; -1: none.
 * HR_ERR_FORMAT, HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__borrow_segment(struct hr_borrower *borrower, uint32_t index,
                                        uint64_t bytes, int fd, struct hr_error *reterr);

/* The body of a SHARED frame: the parcel's written part as a buffer that keeps all of it
 * and that the caller owns, and its other payloads. HR_ERR_FORMAT, HR_ERR_MEMORY. */
struct hr_borrowed {
    struct hr_buffer *buffer;
    size_t far_count, far_bytes;
    struct hr_wire_far far[HR_SCHEMA_FIELDS_MAX];
};
HR_CHECK enum hr_err
hr__borrow(struct hr_borrower *borrower, struct hr_desk *desk, struct hr_buffer *body,
           struct hr_borrowed *ret_borrowed, struct hr_error *reterr);
void hr__borrow_finish(struct hr_borrower *borrower);

#endif
