/*
 * proc/proc.c - the parent's side: requests, and what happens when a peer dies.
 *
 * The records of a run are split into requests: one, unless memory is tight or the peer
 * dies. When a request ends early, the records before the running one are complete; their
 * results are copied, and the next request starts at that record. A record at which two
 * peers in a row died is sent alone; if it kills a third one, it is bad. The peer runs
 * requests in order, so a death belongs to the oldest one, which is always waited for
 * first; the request of the other channel is sent to the successor again.
 *
 * Left out: detecting death within microseconds with a robust futex. End of file comes
 * only after the kernel has freed the peer's memory, 0.3 s for 4 GiB.
 */
#include "proc/proc_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"

#define RECENT_REQUESTS 64 /* requests between two looks at the peak use */

/* ---- memory ---- */

/* Returns memory that only a peak needed, and the mappings before the last growth, whose
 * pages count twice as resident. Only between requests, when no results of the channel
 * are in use. */
static void give_back(struct hr_proc *proc)
{
    hr__shm_unmap_old(&proc->in);
    hr__shm_unmap_old(&proc->out);
    if (++proc->requests < RECENT_REQUESTS)
        return;
    if (proc->in_held > 2 * proc->in_recent) {
        hr__shm_trim(&proc->in, proc->in_recent);
        proc->in_held = proc->in_recent;
    }
    if (proc->out_held > 2 * proc->out_recent) {
        hr__shm_trim(&proc->out, proc->out_recent);
        proc->out_held = proc->out_recent;
    }
    proc->requests = 0;
    proc->in_recent = proc->out_recent = HR_PROC_SHM_START;
}

/* Gives `in` this many bytes and `out` the rest of the limit. HR_ERR_LIMIT if `in` alone
 * exceeds it. */
static enum hr_err share_out(struct hr_proc *proc, size_t in_bytes, size_t *ret_out_max,
                             struct hr_error *reterr)
{
    if (in_bytes >= proc->bytes_max)
        return HR_ERR_LIMIT;
    if (in_bytes < proc->in_held && proc->in_held > proc->bytes_max / 2) {
        hr__shm_trim(&proc->in, in_bytes);
        proc->in_held = in_bytes;
    }
    HR_TRY(hr__shm_map(&proc->in, in_bytes, true, reterr));
    if (in_bytes > proc->in_held)
        proc->in_held = in_bytes;
    *ret_out_max =
        proc->bytes_max == SIZE_MAX ? SIZE_MAX : proc->bytes_max - proc->in_held;
    if (proc->out_held > *ret_out_max) {
        hr__shm_trim(&proc->out, HR_PROC_HEAD);
        proc->out_held = HR_PROC_HEAD;
    }
    if (in_bytes > proc->in_recent)
        proc->in_recent = in_bytes;
    return HR_OK;
}

static void count_out(struct hr_proc *proc, uint64_t used)
{
    size_t bytes = used < proc->out.bytes ? (size_t)used : proc->out.bytes;

    if (bytes > proc->out_held)
        proc->out_held = bytes;
    if (bytes > proc->out_recent)
        proc->out_recent = bytes;
}

/* ---- a request ---- */

enum trip_end {
    REQUEST_DONE,
    REQUEST_FULL, /* the record after those done did not fit */
    REQUEST_DIED, /* at the record after those done, if `blamed` */
};

struct request_result {
    enum trip_end end;
    size_t done;
    bool blamed;
    uint32_t step;
    const char *nonsense; /* the peer lives but cannot be believed */
};

/* Sends the next request of the channel: as many records as fit together. */
static enum hr_err post(struct hr_proc *proc, struct hr_error *reterr)
{
    struct hr_proc_progress *progress = &proc->progress;
    struct hr_proc_record *first = progress->records + progress->done;
    size_t left = progress->alone ? 1 : progress->count - progress->done;
    size_t bytes, id_bytes, out_max = 0;
    size_t n = hr__proc_fit(proc, first, left, &id_bytes, &bytes);
    struct hr_proc_in_head *in, *words;
    struct hr_peer *peer = proc->peer;
    enum hr_err code = share_out(proc, bytes, &out_max, reterr);

    assert(progress->done < progress->count && n > 0 && n <= left);
    progress->posted = 0;
    progress->under_way = code == HR_ERR_LIMIT;
    if (code == HR_ERR_LIMIT)
        return HR_OK;
    HR_TRY(code);
    HR_TRY(hr__proc_put(proc, first, n, id_bytes, reterr));
    in = hr__proc_in_head(proc);
    in->count = (uint32_t)n;
    in->id_bytes = (uint32_t)id_bytes;
    in->bytes = bytes;
    in->out_max = out_max;
    progress->posted = n;
    progress->under_way = true;
    progress->request = ++peer->request;
    words = hr__peer_in_head(peer);
    words->channels[progress->request % HR_PROC_CHANNELS] = proc->channel;
    hr__event_signal(&peer->event, &words->request, progress->request,
                     &hr__peer_out_head(peer)->sleeping);
    return HR_OK;
}

/* After a peer died: the records before the one it was running are complete. */
static void look_back(struct hr_proc *proc, struct request_result *result)
{
    const struct hr_proc_out_head *head = hr__peer_out_head(proc->peer);
    uint64_t running = atomic_load(&head->running);

    *result = (struct request_result){.end = REQUEST_DIED};
    if (running >> 32 != proc->progress.request ||
        (uint32_t)running >= proc->progress.posted)
        return;
    if (hr__shm_map_all(&proc->out, NULL) != HR_OK ||
        proc->map.results.end > proc->out.bytes)
        return;
    result->blamed = true;
    result->done = (uint32_t)running;
    result->step = atomic_load(&head->running_step);
}

/* The peer may write nonsense, and while we read: then its times are nonsense, and no
 * more than that. */
static void add_time(struct hr_proc_time *sum, const struct hr_proc_time *theirs)
{
    struct hr_proc_time time;

    memcpy(&time, theirs, sizeof time);
    sum->wall_ns += time.wall_ns;
    if (time.cost.weight >= 0 && time.cost.weight < 1e15 && time.cost.y >= 0 &&
        time.cost.y < 1e30 && time.cost.yy >= 0 && time.cost.yy < 1e60 &&
        time.cost.ww >= 0 && time.cost.ww < 1e30)
        hr__fit_merge(&sum->cost, &(struct hr_fit){.weight = time.cost.weight,
                                                   .y = time.cost.y,
                                                   .yy = time.cost.yy,
                                                   .ww = time.cost.ww});
}

/* `out` holds the parts of the request that both sides compute. */
static void count_time(struct hr_proc *proc)
{
    const struct hr_proc_time *times =
        (const struct hr_proc_time *)(proc->out.base + proc->map.times);

    assert(proc->map.results.end <= proc->out.bytes);
    for (uint32_t i = 0; i < proc->map.nodes; i++)
        add_time(&proc->times[i], &times[i]);
}

/* Reads the peer's answer. */
static void receive(struct hr_proc *proc, struct request_result *result)
{
    struct hr_proc_out_head *head = hr__proc_out_head(proc);
    uint64_t used = *(volatile uint64_t *)&head->used;
    uint32_t done = *(volatile uint32_t *)&head->done;
    size_t count = proc->progress.posted;
    bool full = *(volatile uint32_t *)&head->full != 0;

    proc->stats.work_ns += *(volatile uint64_t *)&head->work_ns;
    proc->stats.cpu_ns += *(volatile uint64_t *)&head->cpu_ns;
    *result =
        (struct request_result){.end = full ? REQUEST_FULL : REQUEST_DONE, .done = done};
    if (done > count || (done < count) != full)
        *result =
            (struct request_result){.end = REQUEST_DIED, .nonsense = "its own numbers"};
    else if (done > 0 && (used < proc->map.results.end ||
                          hr__shm_map(&proc->out, used, false, NULL) != HR_OK))
        *result =
            (struct request_result){.end = REQUEST_DIED, .nonsense = "its own numbers"};
    else if (done > 0)
        count_time(proc);
    count_out(proc, used);
}

/* Tells the watcher which record the peer is at; the peer may write nonsense there. */
static void tell_at(const struct hr_peer *peer)
{
    const struct hr_proc_out_head *head = hr__peer_out_head(peer);
    uint64_t running = atomic_load(&head->running);
    uint32_t record = (uint32_t)running, step = atomic_load(&head->running_step);

    if (peer->at == NULL || step >= peer->program->step_count)
        return;
    for (int i = 0; i < HR_PROC_CHANNELS; i++) {
        const struct hr_proc_progress *progress = &peer->channels[i]->progress;

        if (progress->under_way && progress->request == running >> 32 &&
            record < progress->posted)
            peer->at(peer->at_user, peer->program->steps[step].number,
                     progress->records[progress->done + record].id);
    }
}

/* Waits until the peer has answered the request. Also HR_EVENT_ENDED, with *ret_nonsense
 * set, if its counter is impossible. */
static enum hr_event_outcome wait_for(struct hr_proc *proc, bool *ret_nonsense)
{
    struct hr_peer *peer = proc->peer;
    unsigned unanswered = HR_PROC_CHANNELS;

    *ret_nonsense = false;
    for (;;) {
        struct hr_proc_out_head *words = hr__peer_out_head(peer);
        unsigned seen = atomic_load(&words->response);
        enum hr_event_outcome verdict;

        if (peer->request - seen > unanswered) {
            *ret_nonsense = true;
            return HR_EVENT_ENDED;
        }
        unanswered = peer->request - seen;
        if (unanswered <= peer->request - proc->progress.request)
            return HR_EVENT_SIGNALLED;
        verdict = hr__event_wait(&peer->event, &words->response, seen,
                                 &hr__peer_in_head(peer)->sleeping, peer->cancel);
        if (verdict == HR_EVENT_LATE) {
            tell_at(peer);
            continue;
        }
        if (verdict != HR_EVENT_SIGNALLED)
            return verdict;
        unanswered--;
    }
}

/* Waits for the outcome of the request and takes its results. */
static enum hr_err
collect(struct hr_proc *proc, struct request_result *result, struct hr_error *reterr)
{
    struct hr_proc_progress *progress = &proc->progress;
    struct hr_proc_record *first = progress->records + progress->done;
    uint64_t from = hr__now_ns();
    enum hr_event_outcome verdict;
    const char *nonsense;
    bool lies;
    size_t taken;

    assert(progress->under_way && progress->done < progress->count);
    if (progress->posted == 0) {
        progress->under_way = false;
        *result = (struct request_result){.end = REQUEST_FULL};
        return HR_OK;
    }
    verdict = wait_for(proc, &lies);
    proc->stats.wait_ns += hr__now_ns() - from;
    progress->under_way = false;
    if (verdict == HR_EVENT_CANCELLED) {
        proc->peer->broken = true;
        return hr__peer_fail_cancelled(reterr);
    }
    if (lies)
        *result =
            (struct request_result){.end = REQUEST_DIED, .nonsense = "its own numbers"};
    else if (verdict == HR_EVENT_ENDED)
        look_back(proc, result);
    else
        receive(proc, result);
    if (result->done == 0)
        return HR_OK;
    HR_TRY(hr__proc_take(proc, first, result->done, &taken, &nonsense, reterr));
    if (nonsense != NULL)
        *result = (struct request_result){
            .end = REQUEST_DIED, .done = taken, .blamed = true, .nonsense = nonsense};
    return HR_OK;
}

/* ---- progress through the records ---- */

static void bad_record(struct hr_proc *proc, struct hr_proc_progress *progress,
                       enum hr_err code, uint32_t step)
{
    struct hr_proc_record *record = &progress->records[progress->done++];

    assert(progress->done <= progress->count && code < HR_OK);
    record->error.code = code;
    record->code = code;
    record->drop = false;
    record->failed_step = step;
    record->failed_node = proc->program->steps[step].number;
    record->child_count = 0;
    record->results = NULL;
    progress->alone = false;
    progress->deaths = 0;
}

/* The next record exceeds the memory limit by itself: it is bad. */
static void too_large(struct hr_proc *proc, struct hr_proc_progress *progress)
{
    struct hr_error *error = &progress->records[progress->done].error;

    memset(error, 0, sizeof *error);
    hr__fail(error, HR_ERR_LIMIT,
             "a record's inputs and outputs do not fit the %zu bytes of memory that are "
             "shared with a worker process; raise memory_bytes",
             proc->bytes_max);
    bad_record(proc, progress, HR_ERR_LIMIT, 0);
}

static void fail_record(struct hr_proc *proc, struct hr_proc_progress *progress,
                        const struct request_result *result)
{
    struct hr_error *error = &progress->records[progress->done].error;
    uint32_t step = result->step < proc->program->step_count ? result->step : 0;
    const char *node =
        proc->program->step_count > 0 ? proc->program->steps[step].node : "";
    char text[HR_PEER_ENDED];

    memset(error, 0, sizeof *error);
    if (result->nonsense != NULL)
        hr__fail(error, HR_ERR_IO,
                 "worker process gave nonsense (%s) for this record, %d times in a row",
                 result->nonsense, HR_PROC_DEATHS_MAX);
    else
        hr__fail(error, HR_ERR_IO,
                 "worker process died in the code of node '%s' at this record, %d times "
                 "in a row%s",
                 node, HR_PROC_DEATHS_MAX, hr__peer_ended(proc->peer, text, sizeof text));
    snprintf(error->node, sizeof error->node, "%s", node);
    bad_record(proc, progress, HR_ERR_IO, step);
}

/* A run that fails has no results. */
static void forget(struct hr_proc_progress *progress)
{
    for (size_t i = 0; i < progress->count; i++) {
        hr__free(progress->records[i].detail);
        progress->records[i].detail = NULL;
    }
    progress->under_way = false;
}

static void post_again(struct hr_proc *proc)
{
    struct hr_proc_progress *progress = &proc->progress;

    if (!progress->under_way)
        return;
    progress->code = post(proc, &progress->error);
    if (progress->code != HR_OK)
        forget(progress);
}

/* Replaces the peer. Requests of both channels that were under way are sent to the new
 * one, that of `first` first. */
static enum hr_err
begin_again(struct hr_peer *peer, struct hr_proc *first, struct hr_error *reterr)
{
    hr__peer_part(peer, true);
    peer->replaced++;
    HR_TRY(hr__peer_begin(peer, reterr));
    post_again(first);
    for (int i = 0; i < HR_PROC_CHANNELS; i++)
        if (peer->channels[i] != first)
            post_again(peer->channels[i]);
    return first->progress.code;
}

static enum hr_err after_death(struct hr_proc *proc, const struct request_result *result,
                               struct hr_error *reterr)
{
    struct hr_proc_progress *progress = &proc->progress;
    char text[HR_PEER_ENDED];

    if (!result->blamed && result->nonsense == NULL) {
        if (++progress->lost == HR_PROC_DEATHS_MAX)
            return hr__fail(reterr, HR_ERR_IO,
                            "worker processes die before they begin, %d in a row%s",
                            HR_PROC_DEATHS_MAX,
                            hr__peer_ended(proc->peer, text, sizeof text));
        return HR_OK;
    }
    progress->lost = 0;
    progress->deaths = progress->done == progress->at ? progress->deaths + 1 : 1;
    progress->at = progress->done;
    progress->alone = progress->deaths == HR_PROC_DEATHS_MAX - 1;
    if (progress->deaths == HR_PROC_DEATHS_MAX)
        fail_record(proc, progress, result);
    return HR_OK;
}

/* Receives the outcome of a request, and sends the next one unless all is done. */
static enum hr_err step_on(struct hr_proc *proc, struct hr_error *reterr)
{
    struct hr_proc_progress *progress = &proc->progress;
    struct hr_proc_record *first = progress->records + progress->done;
    size_t left = progress->count - progress->done;
    struct request_result result = {0};

    if (hr__peer_cancelled(proc->peer)) {
        proc->peer->broken = true; /* the request may be running */
        return hr__peer_fail_cancelled(reterr);
    }
    if (proc->peer->event.fd < 0)
        return begin_again(proc->peer, proc, reterr);
    HR_TRY(collect(proc, &result, reterr));
    progress->done += result.done;
    if (result.done > 0 && result.done < left)
        HR_TRY(hr__proc_keep(proc, first, result.done, reterr));
    if (result.end == REQUEST_DIED) {
        HR_TRY(after_death(proc, &result, reterr));
    } else if (result.end == REQUEST_FULL && result.done == 0) {
        if (progress->alone || left == 1)
            too_large(proc, progress);
        else
            progress->alone = true;
    } else {
        progress->alone = false;
    }
    progress->under_way = progress->done < progress->count;
    if (result.end == REQUEST_DIED)
        return begin_again(proc->peer, proc, reterr);
    return progress->under_way ? post(proc, reterr) : HR_OK;
}

static void finish(struct hr_proc *proc)
{
    struct hr_proc_progress *progress = &proc->progress;

    while (progress->code == HR_OK && progress->under_way)
        progress->code = step_on(proc, &progress->error);
    if (progress->code != HR_OK)
        forget(progress);
}

/* Receives the outcome of an older request of the other channel first, and copies its
 * results, which would be lost if the peer were replaced. */
static void finish_older(struct hr_proc *proc)
{
    for (int i = 0; i < HR_PROC_CHANNELS; i++) {
        struct hr_proc *other = proc->peer->channels[i];
        struct hr_proc_progress *progress = &other->progress;

        if (other == proc || !progress->under_way ||
            (int)(progress->request - proc->progress.request) > 0)
            continue;
        finish(other);
        if (progress->code == HR_OK)
            progress->code = hr__proc_keep(other, progress->records, progress->count,
                                           &progress->error);
    }
}

enum hr_err hr__proc_begin(struct hr_proc *proc, struct hr_proc_record *records,
                           size_t count, struct hr_error *reterr)
{
    struct hr_proc_progress *progress = &proc->progress;
    struct hr_peer *peer = proc->peer;

    assert(!progress->under_way);
    memset(progress, 0, offsetof(struct hr_proc_progress, error));
    memset(proc->times, 0, proc->map.nodes * sizeof *proc->times);
    progress->records = records;
    progress->count = count;
    progress->at = SIZE_MAX;
    hr__arena_reset(&proc->arena);
    for (size_t i = 0; i < count; i++)
        records[i].detail = NULL;
    if (peer->broken || peer->event.fd < 0)
        HR_TRY(begin_again(peer, proc, reterr));
    else
        give_back(proc);
    return count > 0 ? post(proc, reterr) : HR_OK;
}

enum hr_err hr__proc_end(struct hr_proc *proc, struct hr_error *reterr)
{
    struct hr_proc_progress *progress = &proc->progress;

    if (progress->under_way)
        finish_older(proc);
    finish(proc);
    if (progress->code != HR_OK && reterr != NULL)
        *reterr = progress->error;
    return progress->code;
}

enum hr_err hr__proc_run(struct hr_proc *proc, struct hr_proc_record *records,
                         size_t count, struct hr_error *reterr)
{
    HR_TRY(hr__proc_begin(proc, records, count, reterr));
    return hr__proc_end(proc, reterr);
}

/* ---- open, close ---- */

static enum hr_err
check_program(const struct hr_proc_program *program, struct hr_error *reterr)
{
    bool sound = program->step_count > 0 && program->slot_count <= UINT16_MAX;

    for (size_t s = 0; sound && s < program->step_count; s++)
        sound = program->steps[s].kind != HR_OP_EXPAND || s + 1 == program->step_count;
    for (size_t s = 0; sound && s < program->step_count; s++)
        sound = program->steps[s].number < program->nodes &&
                (program->steps[s].code == NULL) != (program->steps[s].op == NULL);
    for (size_t i = 0; sound && i < program->result_count; i++)
        sound = program->result_fields[i] != NULL;
    return sound ? HR_OK
                 : hr__fail(reterr, HR_ERR_INTERNAL, "a worker's request is malformed");
}

/* Nothing has been started yet. */
static enum hr_err make_channels(struct hr_peer *peer, size_t bytes_max)
{
    for (uint32_t i = 0; i < HR_PROC_CHANNELS; i++) {
        struct hr_proc *proc = peer->channels[i] = hr__calloc(1, sizeof *proc);

        if (proc == NULL)
            return HR_ERR_MEMORY;
        proc->peer = peer;
        proc->channel = i;
        proc->program = peer->program;
        proc->bytes_max = bytes_max > 0 ? bytes_max : SIZE_MAX;
        proc->in.fd = proc->out.fd = -1;
        proc->in_recent = proc->out_recent = HR_PROC_SHM_START;
        hr__arena_init(&proc->arena);
        HR_TRY(hr__proc_map_init(&proc->map, peer->program));
        proc->times = hr__calloc(peer->program->nodes, sizeof *proc->times);
        if (proc->times == NULL)
            return HR_ERR_MEMORY;
    }
    return HR_OK;
}

static void peer_destroy(struct hr_peer *peer)
{
    for (int i = 0; i < HR_PROC_CHANNELS && peer->channels[i] != NULL; i++) {
        hr__proc_map_finish(&peer->channels[i]->map);
        hr__arena_finish(&peer->channels[i]->arena);
        hr__free(peer->channels[i]->times);
        hr__free(peer->channels[i]);
    }
    hr__free(peer);
}

enum hr_err
hr__proc_open(const struct hr_code_host *host, const struct hr_proc_program *program,
              size_t bytes_max, const atomic_bool *cancel, struct hr_proc **ret_proc,
              struct hr_error *reterr)
{
    struct hr_peer *peer;
    enum hr_err code;

    HR_TRY(check_program(program, reterr));
    peer = hr__calloc(1, sizeof *peer);
    if (peer == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a worker process");
    *peer = (struct hr_peer){
        .host = host, .program = program, .cancel = cancel, .event = {.fd = -1}};
    code = make_channels(peer, bytes_max);
    if (code != HR_OK)
        hr__fail(reterr, code, "out of memory for a worker process");
    else
        code = hr__peer_begin(peer, reterr);
    if (code != HR_OK) {
        peer_destroy(peer);
        return code;
    }
    *ret_proc = peer->channels[0];
    return HR_OK;
}

struct hr_proc *hr__proc_channel(struct hr_proc *proc, unsigned channel)
{
    return proc->peer->channels[channel % HR_PROC_CHANNELS];
}

void hr__proc_watch(struct hr_proc *proc,
                    void (*at)(void *user, uint32_t node, const struct hr_record_id *id),
                    void *user)
{
    proc->peer->at = at;
    proc->peer->at_user = user;
}

void hr__proc_close(struct hr_proc *proc)
{
    struct hr_peer *peer;
    bool busy;

    if (proc == NULL)
        return;
    peer = proc->peer;
    busy = peer->broken;
    for (int i = 0; i < HR_PROC_CHANNELS; i++)
        busy = busy || peer->channels[i]->progress.under_way;
    hr__peer_part(peer, busy);
    peer_destroy(peer);
}

void hr__proc_stats(const struct hr_proc *proc, struct hr_proc_stats *ret_stats)
{
    const struct hr_peer *peer = proc->peer;
    struct hr_proc_stats sum = {.replaced = peer->replaced};

    for (int i = 0; i < HR_PROC_CHANNELS; i++) {
        sum.shared_bytes += peer->channels[i]->in_held + peer->channels[i]->out_held;
        sum.wait_ns += peer->channels[i]->stats.wait_ns;
        sum.work_ns += peer->channels[i]->stats.work_ns;
        sum.cpu_ns += peer->channels[i]->stats.cpu_ns;
    }
    *ret_stats = sum;
}

const struct hr_proc_time *hr__proc_times(const struct hr_proc *proc)
{
    return proc->times;
}
