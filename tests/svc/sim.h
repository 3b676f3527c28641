/*
 * tests/svc/sim.h - the service in one process: roles of src/svc on a fake clock and a
 * fake network, driven by a seed.
 *
 * A schedule is a random sequence of steps: deliver a message, make a frame, take
 * records, save a checkpoint, connect, let time pass, and faults: crash any process
 * (also between two actions of an event), cut or block a connection, lose a message,
 * forget a peer, let another client claim a rank. Messages keep their order on a
 * connection. A cut drops a random tail of what is on its way; the rest arrives later,
 * also after newer connections' messages and, in some schedules, in any order. Then
 * faults end, and the service must finish. What the sides exchange are the bytes of
 * wire/frame.h.
 */
#ifndef HR_TESTS_SVC_SIM_H
#define HR_TESTS_SVC_SIM_H

#include "core/arena.h"
#include "core/rng.h"
#include "svc/action.h"
#include "svc/mutant.h"

#define SIM_WORKERS 8
#define SIM_CLIENTS 4
#define SIM_PROCS (1 + SIM_WORKERS + SIM_CLIENTS)
#define SIM_DISPATCHER 0
#define SIM_WORKER 1                          /* the first */
#define SIM_CLIENT (SIM_WORKER + SIM_WORKERS) /* the first */
#define SIM_CONNS 250
#define SIM_RECORDS 256 /* of an epoch, at most */
#define SIM_MS 1000000u

#define SIM_JOB 0x17u
#define SIM_PAYLOAD 8u /* bytes of a record */

struct sim_message {
    struct sim_message *next;
    uint32_t bytes;
    char data[];
};

struct sim_queue {
    struct sim_message *first, *last;
    uint32_t count;
};

/* Numbered from 1 on, for both sides. Side 0 made the connection. */
struct sim_conn {
    bool used, open;
    int side[2];
    bool gone[2]; /* the side was told that it is lost, or has crashed */
    struct sim_queue to[2];
};

struct sim_proc {
    bool alive;
    uint64_t back_at_ns; /* when dead: restarts */
    uint32_t starts;
};

/* What a schedule is like: drawn from its seed. */
struct sim_shape {
    uint32_t workers, clients, splits, split, frame_positions;
    uint32_t team; /* workers of a client; 0: all */
    uint64_t end;  /* records */
    uint64_t window;
    size_t budget;
    bool ordered;
    uint32_t faulty_steps; /* then all is quiet */
    uint32_t crash, cut;   /* per 10,000 steps */
    uint32_t block, lose;  /* per 10,000 */
    uint32_t between;      /* crash between two actions, per 10,000 */
    uint32_t single_crash; /* step of the only crash, or 0 */
    uint32_t resize;       /* step at which the clients change their number, or 0 */
    uint32_t forget;       /* spurious evictions, per 10,000 */
    uint32_t late;         /* what remains of a dead connection waits, per 10,000 */
    uint32_t
        silent_ms; /* a peer that is not heard is taken for lost, until all is quiet */
    bool any_order, roll_back;
};

struct sim;

/* A design: what its processes do. Frames and payloads are valid during the call. */
struct sim_design {
    const char *name;
    void (*draw)(struct sim *sim); /* adjusts the shape */
    void (*start)(struct sim *sim, int proc);
    void (*stop)(struct sim *sim, int proc);
    /* Whether a client connects to a worker; NULL: to all. */
    bool (*uses)(struct sim *sim, int client, int worker);
    void (*connected)(struct sim *sim, int proc, hr_peer peer, int other);
    void (*lost)(struct sim *sim, int proc, hr_peer peer);
    void (*frame)(struct sim *sim, int proc, hr_peer peer, const struct hr_frame *frame,
                  const char *payload, size_t bytes);
    void (*tick)(struct sim *sim, int proc);
    bool (*work)(struct sim *sim, int proc); /* false: nothing to do */
    void (*tell)(struct sim *sim, hr_peer client,
                 const struct hr_action_workers *workers); /* by the dispatcher */
    void (*resize)(struct sim *sim);
    void (*forget)(struct sim *sim);
    bool (*is_done)(struct sim *sim);
    void (*finish)(struct sim *sim); /* checks and frees */
};

struct sim {
    const struct sim_design *design;
    void *state; /* the design's */
    struct sim_shape shape;
    struct hr_rng rng;
    struct hr_arena arena;
    uint64_t seed, now;
    uint32_t step, crashes;
    bool quiet, verbose;
    struct sim_proc procs[SIM_PROCS];
    struct sim_conn conns[SIM_CONNS + 1];
    hr_peer link[SIM_PROCS][SIM_PROCS]; /* the live connection of a side, as it knows */
    uint64_t blocked[SIM_PROCS][SIM_PROCS]; /* until; a < b */
    uint32_t top;                           /* connections beyond were never used */
    struct hr_actions actions;
    const char *failure; /* NULL: none */
    char text[256];
    /* The journal of the dispatcher. */
    struct hr_row *rows;
    uint32_t row_count, row_room;
};

extern const struct sim_design sim_a, sim_b;

/* Runs a schedule. False when an invariant was broken: sim->failure. */
bool sim_run(struct sim *sim, const struct sim_design *design, uint64_t seed,
             bool verbose);
/* Frees what the runs keep. */
void sim_finish(struct sim *sim);

/* ---- inside ---- */

/* sim_shape.c: draws the shape from the seed. */
void sim_draw(struct sim *sim);

/* ---- for the designs ---- */

/* After what time a peer that is not heard is taken for lost: soon, while there are
 * faults; then later than any message takes. */
static inline uint64_t sim_silent_ns(const struct sim *sim)
{
    return (uint64_t)(sim->quiet ? 150 : sim->shape.silent_ms) * SIM_MS;
}

uint32_t sim_below(struct sim *sim, uint32_t n);
void sim_fail(struct sim *sim, const char *format, ...) HR_PRINTF(2, 3);
void sim_trace(struct sim *sim, const char *format, ...) HR_PRINTF(2, 3);
void sim_send_data(struct sim *sim, int from, hr_peer peer, const struct hr_frame *frame,
                   const void *payload, size_t bytes);
void sim_crash(struct sim *sim, int proc);
/* Closes a connection, which loses a random part of what is on its way. */
void sim_cut(struct sim *sim, hr_peer peer);
/* Carries out sim->actions as the process, which may crash between two. */
void sim_perform(struct sim *sim, int proc);
/* Bytes on their way to a process on connections that are open. */
size_t sim_bytes_to(const struct sim *sim, int proc);

static inline bool sim_is_worker(int proc)
{
    return proc >= SIM_WORKER && proc < SIM_CLIENT;
}

static inline bool sim_is_client(int proc)
{
    return proc >= SIM_CLIENT;
}

/* Whether a process connects to another one. */
static inline bool sim_uses(struct sim *sim, int from, int to)
{
    return !sim_is_client(from) || to == SIM_DISPATCHER || sim->design->uses == NULL ||
           sim->design->uses(sim, from, to);
}

#endif
