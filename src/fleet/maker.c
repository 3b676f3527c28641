/*
 * fleet/maker.c - a worker's batches: runs ranges of their jobs on the engine, and sends
 * them in the order in which the role wants them.
 *
 * One thread. The engine's threads make the batches; this one packs and sends them. While
 * a range runs, the next lease's is opened, so that the engine's threads go on. While a
 * frame waits for a batch, those of other clients are made that need not wait.
 */
#include "fleet/worker.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/kill_point.h"
#include "fleet/parcel.h"

#define FRAME_BYTES ((size_t)256 << 10) /* small batches are sent together up to this */
#define FRAME_POSITIONS_MAX 256u
#define WAITING_BYTES ((size_t)8 << 20) /* for a client, or two frames */
#define FRAME_NS (10 * HR_FLEET_MS)     /* then a frame takes no more batches */
#define PATIENCE_NS (10 * HR_FLEET_MS)  /* a batch may take, until others get theirs */
#define NICE_STEP 1.25                  /* of the cores that a thread gets: sched(7) */
#define LOOK_MIN_NS HR_FLEET_MS         /* between looks at whether others want some */
#define PACK_MIN 8                      /* records; fewer do not pay */
#define PACK_NS (2 * HR_FLEET_MS)       /* in which a pack of them came, one by one */
#define KEEP_NS 2000.0 /* of CPU for a record: to keep what takes less costs more */
#define LOOK_MAX_NS (50 * HR_FLEET_MS) /* and at whether to stop */
/* How long the threads of a range have to end, which others wait for; and those of all
 * ranges and openings, when the worker stops. */
#define CLOSE_NS (50 * HR_FLEET_MS)
#define STOP_NS (2000 * HR_FLEET_MS)

_Static_assert(FRAME_POSITIONS_MAX <= HR_PARCEL_ITEMS_MAX, "they fit in a frame");

static bool is_stopping(const struct hr_worker_process *w)
{
    return __atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE);
}

/* ---- ranges ---- */

/* Under the lock, unlike the engine's end. */
static void drop_hold(struct hr_worker_process *w, struct hr_worker_job *job)
{
    hr__net_lock(w->base.net);
    job->holds--;
    hr__worker_job_release(w, job);
    hr__net_unlock(w->base.net);
}

/* A thread that is still in user code or a read after this time is left behind, and frees
 * the engine. */
static void close_range(struct hr_worker_process *w, struct hr_worker_range *range,
                        uint64_t within_ns)
{
    struct hr_worker_job *job = range->job;

    if (job == NULL)
        return;
    (void)!hr__engine_stop(range->engine, within_ns, NULL);
    hr__engine_close(range->engine);
    hr__graph_rest(range->packed != NULL ? range->packed : job->graph);
    hr_batch_unref(range->rows);
    *range = (struct hr_worker_range){0};
    drop_hold(w, job);
}

/* Asks all engines to stop, before one is waited for. */
static void ask_all(struct hr_worker_process *w)
{
    for (size_t i = 0; i < HR_WORKER_RANGES; i++)
        if (w->ranges[i].job != NULL)
            (void)!hr__engine_stop(w->ranges[i].engine, 0, NULL);
}

static void close_all(struct hr_worker_process *w, uint64_t until)
{
    for (size_t i = 0; i < HR_WORKER_RANGES; i++) {
        uint64_t now = hr__now_ns();

        close_range(w, &w->ranges[i], until > now ? until - now : 0);
    }
}

/* A range that nobody waits for, or NULL. Under the lock. */
static struct hr_worker_range *find_idle(struct hr_worker_process *w)
{
    for (size_t i = 0; i < HR_WORKER_RANGES; i++) {
        struct hr_worker_range *range = &w->ranges[i];

        if (range->job != NULL && range->job->peers == 0 && !range->waits)
            return range;
    }
    return NULL;
}

/* Ends those whose clients are gone. */
static void close_idle(struct hr_worker_process *w)
{
    struct hr_worker_range *idle;

    do {
        hr__net_lock(w->base.net);
        idle = find_idle(w);
        hr__net_unlock(w->base.net);
        if (idle != NULL)
            close_range(w, idle, CLOSE_NS);
    } while (idle != NULL);
}

/* Clients of equal jobs share their ranges. */
static struct hr_worker_range *
find_range(struct hr_worker_process *w, const struct hr_worker_job *job, uint64_t next)
{
    for (size_t i = 0; i < HR_WORKER_RANGES; i++)
        if (w->ranges[i].job == job && w->ranges[i].next == next)
            return &w->ranges[i];
    return NULL;
}

/* By how many steps the threads of the job's ranges stand back, so that cores follow the
 * weights of the clients that are here: a step is a factor of NICE_STEP. Under the lock.
 */
static int nice_of(const struct hr_worker_process *w, const struct hr_worker_job *job)
{
    uint32_t own = 1, most = 1;

    for (hr_peer i = 1; i <= w->role.top; i++) {
        const struct hr_serve_client *client = &w->role.clients[i];

        if (!client->joined)
            continue;
        most = client->weight > most ? client->weight : most;
        if (w->peers[i].job == job && client->weight > own)
            own = client->weight;
    }
    return (int)lround(log((double)most / own) / log(NICE_STEP));
}

/* NULL if all are in use, while a frame waits. */
static struct hr_worker_range *free_range(struct hr_worker_process *w)
{
    struct hr_worker_range *oldest = NULL;

    close_idle(w);
    for (size_t i = 0; i < HR_WORKER_RANGES; i++) {
        struct hr_worker_range *range = &w->ranges[i];

        if (range->job == NULL)
            return range;
        if (!range->waits && !(w->waits && range->begun) &&
            (oldest == NULL || range->used < oldest->used))
            oldest = range;
    }
    assert(oldest != NULL || w->waits);
    if (oldest != NULL)
        close_range(w, oldest, CLOSE_NS);
    return oldest;
}

/* Opens a range at `next`, up to `until` or the end of the epoch; NULL: none is free. */
static enum hr_err
open_range(struct hr_worker_process *w, struct hr_worker_job *job, uint64_t next,
           uint64_t until, struct hr_worker_range **ret_range, struct hr_error *reterr)
{
    struct hr_worker_range *range = free_range(w);
    struct hr_graph *packed;
    uint64_t within, epoch_end;
    int nice;

    *ret_range = NULL;
    if (range == NULL)
        return HR_OK;
    hr__net_lock(w->base.net);
    nice = nice_of(w, job);
    packed = job->packed;
    hr__net_unlock(w->base.net);
    (void)hr__outputs_epoch(&job->outputs, next, &within);
    epoch_end = next - within + job->outputs.batches;
    until = until < epoch_end ? until : epoch_end;
    HR_TRY(hr__outputs_open(&job->outputs, packed, next, until, job->pool, nice,
                            &range->engine, reterr));
    range->job = job;
    range->packed = packed;
    range->first = range->next = next;
    range->until = until;
    range->opened_ns = hr__now_ns();
    range->nice = nice;
    range->used = ++w->clock;
    hr__net_lock(w->base.net);
    job->holds++;
    hr__net_unlock(w->base.net);
    HR_KILL_POINT("range.opened");
    *ret_range = range;
    return HR_OK;
}

/* ---- batches ---- */

static bool serve_next(struct hr_worker_process *w);

/* A batch, or the pack that it is a row of. Owns a reference. */
struct item {
    struct hr_batch *batch;
    bool is_row;
    int64_t row;
};

/* Who waits for a batch. */
struct asker {
    uint32_t client;
    uint64_t serial;   /* of its connection */
    uint64_t until_ns; /* then the frame takes no more batches */
    bool is_late;      /* that time has come */
    uint64_t run_ns;   /* of runs that ended: as in struct hr_serve_took */
};

static bool is_here(struct hr_worker_process *w, const struct asker *asker)
{
    bool here;

    hr__net_lock(w->base.net);
    here = w->peers[asker->client].serial == asker->serial;
    hr__net_unlock(w->base.net);
    return here;
}

/* One frame of another client, if it wants one and its batch is there. */
static bool serve_another(struct hr_worker_process *w, struct hr_worker_range *range)
{
    bool served;

    w->waits = range->waits = true;
    hr__net_lock(w->base.net);
    served = serve_next(w);
    hr__net_unlock(w->base.net);
    w->waits = range->waits = false;
    return served;
}

/* The engine's next batch. Others are served while it is long in coming, else a run of
 * slow batches would stop all others of its workers. NULL: it is not there yet, and
 * another frame waits already. HR_ERR_CANCELLED: nobody waits for it any more. */
static enum hr_err
next_batch(struct hr_worker_process *w, struct hr_worker_range *range,
           struct asker *asker, struct hr_batch **ret_batch, struct hr_error *reterr)
{
    struct hr_batch *batch = NULL;
    enum hr_err code = HR_OK;
    uint64_t wait_ns = PATIENCE_NS;

    while (code == HR_OK && batch == NULL) {
        if (is_stopping(w))
            return hr__fail(reterr, HR_ERR_CANCELLED, "the worker stops");
        code = hr__engine_next(range->engine, hr__now_ns() + wait_ns, &batch, reterr);
        if (code != HR_OK || batch != NULL || w->waits)
            break;
        if (!is_here(w, asker))
            return hr__fail(reterr, HR_ERR_CANCELLED, "the client is gone");
        if (serve_another(w, range))
            wait_ns = 0;
        else
            wait_ns = wait_ns == 0            ? LOOK_MIN_NS
                      : wait_ns < LOOK_MAX_NS ? 2 * wait_ns
                                              : wait_ns;
    }
    asker->is_late = hr__now_ns() >= asker->until_ns;
    if (code == HR_ERR_END)
        code = hr__fail(reterr, HR_ERR_INTERNAL, "a run ended before batch %llu of it",
                        (unsigned long long)range->next);
    if (code == HR_OK)
        *ret_batch = batch;
    return code;
}

/* A pack could not be made: the batches that are left are made one by one, so that those
 * before a bad record are delivered and its error comes in its place. */
static enum hr_err unpack_range(struct hr_worker_range *range, struct hr_error *reterr)
{
    struct hr_worker_job *job = range->job;
    struct hr_engine *engine;

    HR_TRY(hr__outputs_open(&job->outputs, NULL, range->next, range->until, job->pool,
                            range->nice, &engine, reterr));
    (void)!hr__engine_stop(range->engine, CLOSE_NS, NULL);
    hr__engine_close(range->engine);
    hr__graph_rest(range->packed);
    range->engine = engine;
    range->packed = NULL;
    return HR_OK;
}

/* As next_batch(), for batches that may be rows of packs. */
static enum hr_err
next_item(struct hr_worker_process *w, struct hr_worker_range *range, struct asker *asker,
          struct item *ret_item, struct hr_error *reterr)
{
    enum hr_err code = HR_OK;

    if (range->rows == NULL) {
        code = next_batch(w, range, asker, &ret_item->batch, reterr);
        if (range->packed != NULL && code != HR_OK && code != HR_ERR_CANCELLED) {
            HR_TRY(unpack_range(range, reterr));
            *reterr = (struct hr_error){0}; /* the bad record's turn may be much later */
            code = next_batch(w, range, asker, &ret_item->batch, reterr);
        }
        if (range->packed == NULL || ret_item->batch == NULL)
            return code;
        HR_KILL_POINT("pack.made");
        range->rows = ret_item->batch;
        range->row = 0;
    }
    ret_item->is_row = true;
    ret_item->row = range->row++;
    ret_item->batch = range->rows;
    if (range->row == hr_batch_records(range->rows))
        range->rows = NULL;
    else
        hr_batch_ref(range->rows);
    return HR_OK;
}

/* A range has ended: whether its records came fast enough for packs. */
static void
consider_packs(struct hr_worker_process *w, const struct hr_worker_range *range)
{
    struct hr_worker_job *job = range->job;
    uint64_t size, ns = hr__now_ns() - range->opened_ns;

    if (job->packing)
        return;
    size = hr__outputs_pack_size(&job->outputs, FRAME_BYTES, FRAME_POSITIONS_MAX);
    if (size < PACK_MIN || (double)ns * (double)size >
                               (double)PACK_NS * (double)(range->until - range->first))
        return;
    hr__net_lock(w->base.net);
    hr__worker_pack(w, job, size);
    hr__net_unlock(w->base.net);
}

/* The CPU time that a range has used. */
static double used_ns(const struct hr_worker_range *range)
{
    const struct hr_graph *graph =
        range->packed != NULL ? range->packed : range->job->graph;
    double seconds = 0;

    for (size_t i = 0; i < graph->count; i++) {
        struct hr_node_stats stats;

        if (hr__engine_node_stats(range->engine, i, &stats) == HR_OK)
            seconds += stats.seconds;
    }
    return seconds * 1e9;
}

/* A range has ended. */
static void measure_range(struct hr_worker_process *w,
                          const struct hr_worker_range *range, struct asker *asker)
{
    struct hr_worker_job *job = range->job;
    int cores = hr__cpu_count();
    double ns = used_ns(range);

    if (w->threads > 0 && w->threads < cores)
        cores = w->threads;
    asker->run_ns += (uint64_t)(ns / cores);
    consider_packs(w, range);
    job->cheap = job->packing && ns < KEEP_NS * (double)(range->until - range->first);
}

/* No batch: it is not there yet, and another frame waits already, perhaps for it. */
static enum hr_err
make_item(struct hr_worker_process *w, struct hr_worker_job *job, struct asker *asker,
          uint64_t number, uint64_t until, struct item *ret_item, struct hr_error *reterr)
{
    struct hr_worker_range *range = find_range(w, job, number);
    enum hr_err code;

    *ret_item = (struct item){.batch = NULL};
    if (number >= job->outputs.end)
        return hr__fail(reterr, HR_ERR_RANGE, "the run has no batch %llu",
                        (unsigned long long)number);
    if (range == NULL)
        HR_TRY(open_range(w, job, number, until, &range, reterr));
    if (range == NULL || range->waits) /* for this batch, for another client */
        return HR_OK;
    code = next_item(w, range, asker, ret_item, reterr);
    range->used = ++w->clock;
    range->begun = code == HR_OK && ret_item->batch == NULL;
    if (range->begun)
        return HR_OK;
    range->next++;
    if (code == HR_OK && range->next == range->until)
        measure_range(w, range, asker);
    if (code != HR_OK || range->next == range->until)
        close_range(w, range, CLOSE_NS);
    return code;
}

static bool
is_kept(struct hr_worker_process *w, const struct hr_worker_job *job, uint64_t number)
{
    bool kept;

    hr__net_lock(w->base.net);
    kept = hr__shelf_has(&job->shelf, number);
    hr__net_unlock(w->base.net);
    return kept;
}

/* Opens the range that will follow the task's, if it is leased, so that the engine has
 * work while this one ends. Failure shows when the range is needed. */
static void open_ahead(struct hr_worker_process *w, struct hr_worker_job *job,
                       const struct hr_serve_lease *next)
{
    struct hr_worker_range *range;

    if (next->until > next->at && next->at < job->outputs.end &&
        find_range(w, job, next->at) == NULL && !is_kept(w, job, next->at))
        (void)!open_range(w, job, next->at, next->until, &range, NULL);
}

/* A frame in the making. */
struct making {
    struct asker asker;
    uint32_t follower; /* of the job's kept batches */
    bool is_shared;    /* what is made is kept for the job's other clients */
    bool common;       /* one of the frame's batches was or is kept for them */
    struct hr_batch *batches[FRAME_POSITIONS_MAX]; /* NULL: that one failed */
    struct hr_parcel_item items[FRAME_POSITIONS_MAX];
    uint32_t count;
    struct hr_error last;  /* that no batch follows */
    struct hr_error error; /* of the item that is added; to clear it for each is slow */
};

/* The next item failed. Batches end with its error; of a bad record the client learns
 * only that, and others follow. */
static void add_failure(struct making *m, bool bare)
{
    if (bare && m->error.record > 0)
        m->items[m->count].error = NULL;
    else
        m->last = m->error;
    m->error = (struct hr_error){0};
}

/* The first items are those that were made for other clients. */
static void take_kept(struct hr_worker_process *w, struct making *m,
                      struct hr_worker_job *job, const struct hr_serve_task *task)
{
    const struct hr_worker_peer *peer = &w->peers[task->client];

    hr__net_lock(w->base.net);
    m->follower = peer->serial == m->asker.serial && peer->follows ? peer->follower
                                                                   : HR_SHELF_NOBODY;
    m->is_shared = job->peers > 1 && !job->cheap;
    while (m->count < task->count) {
        struct hr_batch *batch =
            hr__shelf_take(&job->shelf, task->position + m->count, m->follower);

        if (batch == NULL)
            break;
        m->common = true;
        m->batches[m->count] = batch;
        m->items[m->count] = (struct hr_parcel_item){.batch = batch, .error = &m->last};
        m->count++;
    }
    w->shared += m->count;
    hr__net_unlock(w->base.net);
}

/* Others may need the batch that was made for this client. They get one of its own. */
static enum hr_err
keep(struct hr_worker_process *w, struct making *m, struct hr_worker_job *job,
     uint64_t number, struct item *item, struct hr_error *reterr)
{
    if (item->is_row) {
        struct hr_batch *batch = hr__batch_row(item->batch, item->row);

        if (batch == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        hr_batch_unref(item->batch);
        *item = (struct item){.batch = batch};
    }
    hr__net_lock(w->base.net);
    m->common |= hr__shelf_put(&job->shelf, &w->keep, number, m->follower, item->batch);
    hr__net_unlock(w->base.net);
    return HR_OK;
}

/* False if it is not there yet, and the frame must end. */
static bool add_item(struct hr_worker_process *w, struct making *m,
                     struct hr_worker_job *job, const struct hr_serve_task *task)
{
    struct item item = {.batch = NULL};

    m->items[m->count] = (struct hr_parcel_item){.error = &m->last};
    if (m->last.code == HR_OK) {
        uint64_t number = task->position + m->count;
        enum hr_err code;

        code = make_item(w, job, &m->asker, number, task->until, &item, &m->error);
        if (code == HR_OK && item.batch == NULL)
            return false;
        if (code == HR_OK && m->is_shared)
            code = keep(w, m, job, number, &item, &m->error);
        if (code != HR_OK)
            add_failure(m, job->outputs.bare);
        m->batches[m->count] = item.batch;
        m->items[m->count].batch = code == HR_OK ? item.batch : NULL;
        m->items[m->count].is_row = code == HR_OK && item.is_row;
        m->items[m->count].row = item.row;
    }
    m->count++;
    return true;
}

static void write_pieces(struct hr_worker_process *w, struct making *m,
                         const struct hr_schema *records, struct hr_parcel_pieces *pieces,
                         struct hr_error *reterr)
{
    if (hr__parcel_write(m->items, m->count, records, w->pool, pieces, reterr) == HR_OK)
        return;
    for (uint32_t i = 0; i < m->count; i++)
        m->items[i] = (struct hr_parcel_item){.error = reterr};
    (void)!hr__parcel_write(m->items, m->count, records, w->pool, pieces, NULL);
}

/* How many of a task's positions there are: fewer than it wants if the next batch is not
 * there yet. */
struct made {
    uint32_t count;
    bool common; /* some are other clients', too */
    uint64_t run_ns;
};

/* No pieces if nothing was made, if the worker stops, if the client of this serial is
 * gone, or without memory. */
static struct made make_parcel(struct hr_worker_process *w, struct hr_worker_job *job,
                               const struct hr_serve_task *task, uint64_t serial,
                               const struct hr_serve_lease *next,
                               struct hr_parcel_pieces *pieces, struct hr_error *reterr)
{
    const struct hr_schema *schema = &job->graph->nodes[job->graph->output].schema;
    struct making *m = hr__calloc(1, sizeof *m);
    struct made made = {.count = task->count};

    if (m == NULL) {
        hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        return made;
    }
    m->asker = (struct asker){
        .client = task->client, .serial = serial, .until_ns = hr__now_ns() + FRAME_NS};
    take_kept(w, m, job, task);
    if (find_range(w, job, task->position) != NULL)
        open_ahead(w, job, next);
    while (m->count < task->count && !m->asker.is_late && add_item(w, m, job, task)) {
    }
    if (m->last.code == HR_ERR_CANCELLED) /* nobody is there to read it */
        *reterr = m->last;
    else if (m->count > 0)
        write_pieces(w, m, job->outputs.bare ? schema : NULL, pieces, reterr);
    for (uint32_t i = 0; i < m->count; i++)
        hr_batch_unref(m->batches[i]);
    made = (struct made){m->count, m->common, m->asker.run_ns};
    hr__free(m);
    return made;
}

/* ---- sending ---- */

/* The open lease of the same client that follows a task. */
static struct hr_serve_lease
lease_after(const struct hr_worker *role, const struct hr_serve_task *task)
{
    struct hr_serve_lease best = {0};

    for (uint32_t i = 0; i < role->lease_count; i++) {
        const struct hr_serve_lease *lease = &role->leases[i];

        if (lease->job == task->job && lease->rank == task->rank &&
            lease->id != task->lease && lease->at >= task->until &&
            lease->at < lease->until && (best.until == 0 || lease->at < best.at))
            best = *lease;
    }
    return best;
}

/* Small batches travel together. */
static void learn_size(struct hr_worker_process *w, struct hr_worker_job *job,
                       const struct hr_serve_task *task, size_t bytes)
{
    size_t fits = FRAME_BYTES / (bytes / task->count + 1);

    fits = fits > 1 ? fits : 1;
    job->frame_positions =
        (uint32_t)(fits < FRAME_POSITIONS_MAX ? fits : FRAME_POSITIONS_MAX);
    w->role.clients[task->client].frame_positions = job->frame_positions;
}

/* Sends the body of a COMPRESSED frame instead of the parcel; returns its size. */
static size_t send_compressed(struct hr_worker_process *w, uint32_t client,
                              const struct hr_frame *data, struct hr_buffer *body)
{
    const struct hr_net_part part = {hr_buffer_data(body), hr_buffer_bytes(body), body};
    struct hr_frame frame = *data;

    frame.type = HR_FRAME_COMPRESSED;
    hr__net_send_body(w->base.net, client, &frame, &part, 1);
    return part.bytes;
}

/* Under the lock; the client is the one that the task was for. */
static size_t
send_parcel(struct hr_worker_process *w, struct hr_worker_job *job,
            const struct hr_serve_task *task, const struct hr_parcel_pieces *pieces,
            bool common, const struct hr_squeeze *squeeze)
{
    const struct hr_frame frame = {.type = HR_FRAME_DATA,
                                   .position = task->position,
                                   .count = task->count,
                                   .generation = task->generation};
    size_t bytes = pieces->bytes, sent = bytes, most;

    if (squeeze->body != NULL)
        sent = send_compressed(w, task->client, &frame, squeeze->body);
    else if (!hr__lend(&w->peers[task->client].lender, w->base.net, task->client,
                       job->pool, &frame, pieces, common))
        hr__net_send_body(w->base.net, task->client, &frame, pieces->parts,
                          pieces->count);
    most = 2 * sent > WAITING_BYTES ? 2 * sent : WAITING_BYTES;
    learn_size(w, job, task, bytes);
    hr__squeeze_end(w, task->client, squeeze, bytes, sent);
    w->role.clients[task->client].full =
        hr__net_queued(w->base.net, task->client) + sent > most;
    return bytes;
}

/* The role must not want anything for it until it is lost. */
static void
refuse(struct hr_worker_process *w, uint32_t client, const struct hr_error *error)
{
    hr__fleet_refuse(w->base.net, client, error);
    w->role.clients[client].full = true;
}

/* Nothing of it is made now. */
static void put_off(struct hr_worker_process *w, struct hr_serve_task *task)
{
    hr__serve_shorten(&w->role, task, 0);
    hr__serve_sent(&w->role, task, 0, (struct hr_serve_took){0}, &w->actions);
}

/* One frame; false if nothing of it is there yet. Under the lock, which it releases while
 * it works. */
static bool serve(struct hr_worker_process *w, struct hr_serve_task *task)
{
    struct made made = {.count = task->count};
    struct hr_serve_took others = w->served, took;
    struct hr_worker_job *job = w->peers[task->client].job;
    uint64_t serial = w->peers[task->client].serial;
    uint64_t began_ns = hr__now_ns(), began_cpu_ns = hr__cpu_thread_ns();
    struct hr_serve_lease next = lease_after(&w->role, task);
    struct hr_parcel_pieces pieces;
    struct hr_squeeze squeeze;
    struct hr_error error = {0};
    size_t bytes = 0;

    if (!hr__worker_has_opened(w, task->client)) {
        put_off(w, task);
        return true;
    }
    pieces.count = 0;
    job->holds++;
    hr__squeeze_begin(w, task->client, &squeeze);
    hr__net_unlock(w->base.net);
    if (job->error.code == HR_OK)
        made = make_parcel(w, job, task, serial, &next, &pieces, &error);
    hr__squeeze_run(w, &squeeze, &pieces);
    HR_KILL_POINT("frame.made");
    hr__net_lock(w->base.net);
    if (made.count < task->count)
        hr__serve_shorten(&w->role, task, made.count);
    if (w->peers[task->client].serial == serial) {
        if (pieces.count > 0)
            bytes = send_parcel(w, job, task, &pieces, made.common, &squeeze);
        else if (made.count > 0)
            refuse(w, task->client, job->error.code != HR_OK ? &job->error : &error);
    }
    HR_KILL_POINT("frame.queued");
    took.ns = hr__now_ns() - began_ns - (w->served.ns - others.ns);
    took.work_ns =
        hr__cpu_thread_ns() - began_cpu_ns - (w->served.work_ns - others.work_ns);
    took.run_ns = made.run_ns;
    w->served.ns += took.ns;
    w->served.work_ns += took.work_ns;
    hr__serve_sent(&w->role, task, bytes, took, &w->actions);
    hr__parcel_drop(&pieces);
    hr_buffer_unref(squeeze.body);
    job->holds--;
    hr__worker_job_release(w, job);
    return made.count > 0;
}

/* False if nothing can be sent now. Under the lock, as serve(). */
static bool serve_next(struct hr_worker_process *w)
{
    struct hr_serve_task task;
    bool served = hr__serve_next(&w->role, &task, &w->actions);

    hr__fleet_perform(w->base.net, &w->actions);
    if (served)
        served = serve(w, &task);
    hr__fleet_perform(w->base.net, &w->actions);
    return served;
}

void *hr__worker_make(void *user)
{
    struct hr_worker_process *w = user;
    struct hr_net *net = w->base.net;
    uint64_t until;

    hr__net_lock(net);
    while (!is_stopping(w)) {
        if (serve_next(w))
            continue;
        if (find_idle(w) == NULL) {
            pthread_cond_wait(&w->work, hr__net_mutex(net));
            continue;
        }
        hr__net_unlock(net);
        close_idle(w);
        hr__net_lock(net);
    }
    hr__net_unlock(net);
    until = hr__now_ns() + STOP_NS;
    ask_all(w);
    hr__worker_end_openings(w, until);
    close_all(w, until);
    hr__squeezer_finish(&w->squeezer);
    return NULL;
}
