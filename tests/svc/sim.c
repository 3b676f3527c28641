/*
 * tests/svc/sim.c - the network, the clock, and the schedule.
 */
#include "tests/svc/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define STEPS_MAX 60000u /* of a schedule; more are stuck */

uint32_t sim_below(struct sim *sim, uint32_t n)
{
    return (uint32_t)((uint64_t)hr__rng_u32(&sim->rng) * n >> 32);
}

static bool happens(struct sim *sim, uint32_t per_10000)
{
    return per_10000 > 0 && sim_below(sim, 10000) < per_10000;
}

void sim_fail(struct sim *sim, const char *format, ...)
{
    va_list args;

    if (sim->failure != NULL)
        return;
    va_start(args, format);
    vsnprintf(sim->text, sizeof sim->text, format, args);
    va_end(args);
    sim->failure = sim->text;
}

void sim_trace(struct sim *sim, const char *format, ...)
{
    va_list args;

    if (!sim->verbose)
        return;
    printf("# %5u %8.1f ", sim->step, (double)sim->now / SIM_MS);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

static const char *name_of(int proc, char *text)
{
    if (proc == SIM_DISPATCHER)
        return "D";
    snprintf(text, 16, "%c%d", sim_is_worker(proc) ? 'W' : 'C',
             proc - (sim_is_worker(proc) ? SIM_WORKER : SIM_CLIENT));
    return text;
}

static bool exists(const struct sim *sim, int proc)
{
    if (sim_is_worker(proc))
        return proc - SIM_WORKER < (int)sim->shape.workers;
    return !sim_is_client(proc) || proc - SIM_CLIENT < (int)sim->shape.clients;
}

/* ---- queues ---- */

static void push(struct sim *sim, struct sim_queue *queue, const void *head,
                 size_t head_bytes, const void *payload, size_t bytes)
{
    struct sim_message *m = hr__arena_alloc(&sim->arena, sizeof *m + head_bytes + bytes);

    if (m == NULL)
        abort();
    m->next = NULL;
    m->bytes = (uint32_t)(head_bytes + bytes);
    memcpy(m->data, head, head_bytes);
    if (bytes > 0)
        memcpy(m->data + head_bytes, payload, bytes);
    if (queue->first == NULL)
        queue->first = m;
    else
        queue->last->next = m;
    queue->last = m;
    queue->count++;
}

/* Removes the message at `at`. */
static struct sim_message *pull(struct sim_queue *queue, uint32_t at)
{
    struct sim_message **link = &queue->first, *m, *before = NULL;

    while (at-- > 0) {
        before = *link;
        link = &(*link)->next;
    }
    m = *link;
    *link = m->next;
    if (queue->last == m)
        queue->last = before;
    queue->count--;
    return m;
}

static void truncate_queue(struct sim_queue *queue, uint32_t count)
{
    while (queue->count > count)
        pull(queue, count);
}

/* ---- connections ---- */

static int side_of(const struct sim_conn *conn, int proc)
{
    return conn->side[1] == proc;
}

static void drop_if_gone(struct sim_conn *conn)
{
    if (!conn->open && conn->gone[0] && conn->gone[1])
        conn->used = false;
}

/* Both sides learn of it when they have received what is left. */
static void cut(struct sim *sim, struct sim_conn *conn, bool lose)
{
    if (!conn->open)
        return;
    conn->open = false;
    for (int i = 0; i < 2 && lose; i++)
        truncate_queue(&conn->to[i], sim_below(sim, conn->to[i].count + 1));
}

static void side_is_gone(struct sim_conn *conn, int side)
{
    conn->gone[side] = true;
    truncate_queue(&conn->to[side], 0);
    drop_if_gone(conn);
}

static bool is_blocked(const struct sim *sim, int a, int b)
{
    return sim->blocked[a < b ? a : b][a < b ? b : a] > sim->now;
}

static void connect_procs(struct sim *sim, int from, int to)
{
    char a[16], b[16];
    hr_peer peer = 1;

    if (!sim->procs[from].alive || !sim->procs[to].alive || is_blocked(sim, from, to))
        return;
    while (peer <= SIM_CONNS && sim->conns[peer].used)
        peer++;
    if (peer > SIM_CONNS)
        return;
    if (peer > sim->top)
        sim->top = peer;
    sim->conns[peer] = (struct sim_conn){
        .used = true, .open = true, .side = {from, to}
    };
    sim->link[from][to] = peer;
    sim_trace(sim, "%s connects to %s: %u", name_of(from, a), name_of(to, b), peer);
    sim->design->connected(sim, from, peer, to);
    sim_perform(sim, from);
}

static void
trace_frame(struct sim *sim, const char *what, int from, int to, const struct hr_frame *f)
{
    char a[16], b[16];

    if (!sim->verbose)
        return;
    sim_trace(sim, "%s %s > %s %s position %llu count %u generation %u%s%s", what,
              name_of(from, a), name_of(to, b), hr__frame_name(f->type),
              (unsigned long long)f->position, f->count, f->generation,
              f->type == HR_FRAME_ERROR ? " " : "",
              f->type == HR_FRAME_ERROR ? f->u.error.text : "");
    if (f->type == HR_FRAME_CREDIT)
        sim_trace(sim, "    up to %llu bytes", (unsigned long long)f->u.credit.total);
    if (f->type == HR_FRAME_LEASE || f->type == HR_FRAME_BIND ||
        f->type == HR_FRAME_FINISHED)
        for (uint32_t i = 0; i < f->count; i++)
            sim_trace(sim, "    %llu..%llu",
                      (unsigned long long)f->u.lease.ranges[i].from,
                      (unsigned long long)f->u.lease.ranges[i].until);
}

static void
send_frame(struct sim *sim, int from, hr_peer peer, const struct hr_frame *frame)
{
    struct sim_conn *conn = &sim->conns[peer];
    char bytes[HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX];
    size_t size;

    if (!conn->used || !conn->open)
        return;
    trace_frame(sim, "send", from, conn->side[!side_of(conn, from)], frame);
    size = hr__frame_write(frame, bytes);
    push(sim, &conn->to[!side_of(conn, from)], bytes, size, NULL, 0);
}

void sim_send_data(struct sim *sim, int from, hr_peer peer, const struct hr_frame *frame,
                   const void *payload, size_t bytes)
{
    struct sim_conn *conn = &sim->conns[peer];
    char head[HR_FRAME_HEAD], *body;
    uint64_t sum;

    if (!conn->used || !conn->open)
        return;
    trace_frame(sim, "send", from, conn->side[!side_of(conn, from)], frame);
    body = malloc(bytes + HR_FRAME_TAIL);
    if (body == NULL)
        abort();
    memcpy(body, payload, bytes);
    sum = hr__frame_sum(hr__frame_write_body(frame, bytes, head), payload, bytes);
    memcpy(body + bytes, &sum, HR_FRAME_TAIL);
    push(sim, &conn->to[!side_of(conn, from)], head, sizeof head, body,
         bytes + HR_FRAME_TAIL);
    free(body);
}

size_t sim_bytes_to(const struct sim *sim, int proc)
{
    size_t bytes = 0;

    for (uint32_t i = 1; i <= sim->top; i++) {
        const struct sim_conn *conn = &sim->conns[i];

        if (!conn->used || !conn->open ||
            (conn->side[0] != proc && conn->side[1] != proc))
            continue;
        for (const struct sim_message *m = conn->to[side_of(conn, proc)].first; m != NULL;
             m = m->next)
            if (m->data[3] == HR_FRAME_DATA)
                bytes += m->bytes - HR_FRAME_HEAD - HR_FRAME_TAIL;
    }
    return bytes;
}

/* ---- processes ---- */

void sim_crash(struct sim *sim, int proc)
{
    char text[16];

    if (!sim->procs[proc].alive)
        return;
    sim_trace(sim, "crash %s", name_of(proc, text));
    sim->crashes++;
    sim->procs[proc].alive = false;
    sim->procs[proc].back_at_ns = sim->now;
    if (sim_below(sim, 2) == 0)
        sim->procs[proc].back_at_ns += SIM_MS * sim_below(sim, 60);
    sim->actions.count = 0;
    for (uint32_t i = 1; i <= sim->top; i++) {
        struct sim_conn *conn = &sim->conns[i];

        if (!conn->used || (conn->side[0] != proc && conn->side[1] != proc))
            continue;
        cut(sim, conn, true);
        side_is_gone(conn, side_of(conn, proc));
    }
    memset(sim->link[proc], 0, sizeof sim->link[proc]);
    sim->design->stop(sim, proc);
    if (proc != SIM_DISPATCHER || !sim->shape.roll_back)
        return;
    for (uint32_t i = sim_below(sim, sim->row_count + 1), kept = i; i < sim->row_count;
         i++) {
        if (!sim->rows[i].lazy && !HR_MUTANT(JOURNAL_TAIL_LOST))
            sim->rows[kept++] = sim->rows[i];
        if (i + 1 == sim->row_count)
            sim->row_count = kept;
    }
}

static void start(struct sim *sim, int proc)
{
    char text[16];

    sim_trace(sim, "start %s", name_of(proc, text));
    sim->procs[proc].alive = true;
    sim->procs[proc].starts++;
    sim->design->start(sim, proc);
}

static void journal(struct sim *sim, const struct hr_row *row)
{
    if (sim->row_count == sim->row_room) {
        sim->row_room = sim->row_room == 0 ? 64 : 2 * sim->row_room;
        sim->rows = hr__realloc(sim->rows, sim->row_room * sizeof *sim->rows);
        if (sim->rows == NULL)
            abort();
    }
    sim->rows[sim->row_count++] = *row;
}

/* Roles expect to hear of the loss of a connection that they closed themselves, too. */
static void close_conn(struct sim *sim, hr_peer peer)
{
    if (sim->conns[peer].used)
        cut(sim, &sim->conns[peer], false);
}

void sim_cut(struct sim *sim, hr_peer peer)
{
    cut(sim, &sim->conns[peer], true);
}

void sim_perform(struct sim *sim, int proc)
{
    uint32_t between = sim->quiet ? 0 : sim->shape.between;

    for (size_t i = 0; i < sim->actions.count; i++) {
        const struct hr_action *action = &sim->actions.items[i];

        if (happens(sim, between)) {
            sim_crash(sim, proc);
            return;
        }
        if (action->kind == HR_ACTION_SEND)
            send_frame(sim, proc, action->peer, &action->u.frame);
        if (action->kind == HR_ACTION_JOURNAL)
            journal(sim, &action->u.row);
        if (action->kind == HR_ACTION_CLOSE)
            close_conn(sim, action->peer);
        if (action->kind == HR_ACTION_TELL)
            sim->design->tell(sim, action->peer, &action->u.workers);
    }
    sim->actions.count = 0;
}

/* ---- steps ---- */

static void tell_lost(struct sim *sim, hr_peer peer, int side)
{
    struct sim_conn *conn = &sim->conns[peer];
    int proc = conn->side[side], other = conn->side[!side];

    if (sim->link[proc][other] == peer)
        sim->link[proc][other] = 0;
    side_is_gone(conn, side);
    sim->design->lost(sim, proc, peer);
    sim_perform(sim, proc);
}

static void deliver_message(struct sim *sim, hr_peer peer, int side)
{
    struct sim_conn *conn = &sim->conns[peer];
    struct sim_queue *queue = &conn->to[side];
    uint32_t at = !conn->open && sim->shape.any_order ? sim_below(sim, queue->count) : 0;
    const struct sim_message *m = pull(queue, at);
    struct hr_frame_head head;
    struct hr_frame frame;

    if (hr__frame_read_head(m->data, &head, NULL) != HR_OK ||
        hr__frame_read(m->data, &head, m->data + HR_FRAME_HEAD, &frame, NULL) != HR_OK) {
        sim_fail(sim, "a frame does not read back");
        return;
    }
    if (!sim->quiet && !hr__frame_has_body(frame.type) && happens(sim, sim->shape.lose)) {
        trace_frame(sim, "lose", conn->side[!side], conn->side[side], &frame);
        return;
    }
    trace_frame(sim, "take", conn->side[!side], conn->side[side], &frame);
    sim->design->frame(sim, conn->side[side], peer, &frame, m->data + HR_FRAME_HEAD,
                       head.bytes);
    sim_perform(sim, conn->side[side]);
}

/* Delivers a message or the news of a loss; false if there is none. */
static bool deliver(struct sim *sim)
{
    uint32_t count = 2 * sim->top, from = count > 0 ? sim_below(sim, count) : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = from + i < count ? from + i : from + i - count;
        hr_peer peer = 1 + at / 2;
        struct sim_conn *conn = &sim->conns[peer];
        int side = (int)(at % 2);

        if (!conn->used || conn->gone[side] ||
            (conn->to[side].count == 0 && conn->open) ||
            (!conn->open && !sim->quiet && happens(sim, sim->shape.late)) ||
            is_blocked(sim, conn->side[0], conn->side[1]))
            continue;
        if (conn->to[side].count > 0)
            deliver_message(sim, peer, side);
        else
            tell_lost(sim, peer, side);
        return true;
    }
    return false;
}

static void reconnect(struct sim *sim)
{
    int from = SIM_WORKER + (int)sim_below(sim, SIM_PROCS - 1);
    int to = sim_is_client(from) ? (int)sim_below(sim, 1 + sim->shape.workers) : 0;

    if (exists(sim, from) && sim->link[from][to] == 0 && sim_uses(sim, from, to))
        connect_procs(sim, from, to);
}

static void reconnect_all(struct sim *sim)
{
    for (int from = SIM_WORKER; from < SIM_PROCS; from++)
        for (int to = 0; to <= (sim_is_client(from) ? (int)sim->shape.workers : 0); to++)
            if (exists(sim, from) && sim->link[from][to] == 0 && sim_uses(sim, from, to))
                connect_procs(sim, from, to);
}

static void restart(struct sim *sim)
{
    for (int i = 0; i < SIM_PROCS; i++)
        if (exists(sim, i) && !sim->procs[i].alive &&
            sim->procs[i].back_at_ns <= sim->now)
            start(sim, i);
}

/* While there are faults, some are too busy to look at the clock. */
static void tick_all(struct sim *sim)
{
    for (int i = 0; i < SIM_PROCS; i++)
        if (sim->procs[i].alive && (sim->quiet || sim_below(sim, 3) == 0)) {
            sim->design->tick(sim, i);
            sim_perform(sim, i);
        }
}

static void pass_time(struct sim *sim, uint64_t ns)
{
    sim->now += ns;
    restart(sim);
    tick_all(sim);
}

static int some_proc(struct sim *sim)
{
    int proc;

    do
        proc = (int)sim_below(sim, SIM_PROCS);
    while (!exists(sim, proc));
    return proc;
}

static void crash_some(struct sim *sim)
{
    if (sim_below(sim, 4) > 0) {
        sim_crash(sim, some_proc(sim));
        return;
    }
    for (uint32_t set = sim_below(sim, 1u << SIM_PROCS), i = 0; i < SIM_PROCS; i++)
        if (set >> i & 1 && exists(sim, (int)i))
            sim_crash(sim, (int)i);
}

static void faults(struct sim *sim)
{
    const struct sim_shape *shape = &sim->shape;

    if (shape->single_crash == sim->step || happens(sim, shape->crash))
        crash_some(sim);
    if (happens(sim, shape->cut) && sim->top > 0) {
        struct sim_conn *conn = &sim->conns[1 + sim_below(sim, sim->top)];

        if (conn->used)
            cut(sim, conn, true);
    }
    if (happens(sim, shape->block)) {
        int a = some_proc(sim), b = some_proc(sim);

        sim->blocked[a < b ? a : b][a < b ? b : a] =
            sim->now + SIM_MS * sim_below(sim, 400);
    }
    if (happens(sim, shape->forget))
        sim->design->forget(sim);
    if (shape->resize == sim->step)
        sim->design->resize(sim);
}

static bool work(struct sim *sim)
{
    uint32_t from = sim_below(sim, SIM_PROCS);

    for (uint32_t i = 0; i < SIM_PROCS; i++) {
        int proc = (int)((from + i) % SIM_PROCS);

        if (sim->procs[proc].alive && sim->design->work(sim, proc)) {
            sim_perform(sim, proc);
            return true;
        }
        sim_perform(sim, proc);
    }
    return false;
}

static void step(struct sim *sim)
{
    bool busy = false;

    sim->step++;
    if (!sim->quiet && sim->step > sim->shape.faulty_steps) {
        sim_trace(sim, "quiet");
        sim->quiet = true;
        memset(sim->blocked, 0, sizeof sim->blocked);
    }
    if (!sim->quiet)
        faults(sim);
    switch (sim_below(sim, 8)) {
    case 0:
        reconnect(sim);
        return;
    case 1:
        pass_time(sim, SIM_MS / 4 * sim_below(sim, sim->quiet ? 8 : 32));
        return;
    case 2:
    case 3:
    case 4:
        busy = work(sim);
        break;
    default:
        busy = deliver(sim);
        break;
    }
    if (busy || deliver(sim) || work(sim))
        return;
    reconnect_all(sim);
    pass_time(sim, 20 * SIM_MS);
}

/* ---- a schedule ---- */

static void
reset(struct sim *sim, const struct sim_design *design, uint64_t seed, bool verbose)
{
    hr__rng_init(&sim->rng, seed, 0, 0);
    sim->design = design;
    sim->seed = seed;
    sim->verbose = verbose;
    sim->now = 1000 * SIM_MS;
    sim->step = sim->crashes = sim->top = sim->row_count = 0;
    sim->quiet = false;
    sim->failure = NULL;
    sim->actions.count = 0;
    memset(sim->procs, 0, sizeof sim->procs);
    memset(sim->conns, 0, sizeof sim->conns);
    memset(sim->link, 0, sizeof sim->link);
    memset(sim->blocked, 0, sizeof sim->blocked);
    hr__arena_reset(&sim->arena);
}

bool sim_run(struct sim *sim, const struct sim_design *design, uint64_t seed,
             bool verbose)
{
    if (sim->actions.items == NULL) {
        hr__arena_init(&sim->arena);
        if (hr__actions_init(&sim->actions, NULL) != HR_OK)
            abort();
    }
    reset(sim, design, seed, verbose);
    sim_draw(sim);
    sim_trace(sim,
              "%u workers, %u clients, %llu records in splits of %u, %s, window %llu, "
              "budget %zu",
              sim->shape.workers, sim->shape.clients, (unsigned long long)sim->shape.end,
              sim->shape.split, sim->shape.ordered ? "ordered" : "unordered",
              (unsigned long long)sim->shape.window, sim->shape.budget);
    for (int i = 0; i < SIM_PROCS; i++)
        if (exists(sim, i))
            start(sim, i);
    while (sim->failure == NULL && !(sim->quiet && design->is_done(sim))) {
        if (sim->step == STEPS_MAX)
            sim_fail(sim, "stuck");
        step(sim);
    }
    for (int i = 0; i < SIM_PROCS; i++)
        if (sim->procs[i].alive) {
            sim->design->stop(sim, i);
            sim->procs[i].alive = false;
        }
    design->finish(sim);
    return sim->failure == NULL;
}

void sim_finish(struct sim *sim)
{
    if (sim->actions.items != NULL)
        hr__arena_finish(&sim->arena);
    hr__actions_finish(&sim->actions);
    hr__free(sim->rows);
    sim->rows = NULL;
}
