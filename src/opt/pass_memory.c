/*
 * opt/pass_memory.c - divides one budget in bytes among everything that holds records.
 *
 * The division starts from the defaults (batches and blocks that keep all threads busy,
 * queues of two blocks) and reduces what is least useful until the sum fits: first
 * read-ahead, then batches, the blocks of the largest stage, and threads. The remainder
 * goes into more batches ahead. All sizes are those of the largest record, so the sum
 * holds for any mixture of records.
 */
#include "opt/memory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/str.h"

/* Small batches are made ahead up to this many bytes. */
#define AHEAD_BATCH_BYTES ((uint64_t)4 << 20)
/* Making such a batch takes so long that a pause before it is negligible. */
#define LARGE_BATCH_BYTES ((uint64_t)64 << 20)
/* A training loop usually releases its batch within this time of taking the next. */
#define RELEASE_WAIT_NS 20000000u
/* Resident size of the program and its libraries before the first record. */
#define PROGRAM_BYTES ((uint64_t)8 << 20)
#define READ_AHEAD_BYTES ((uint64_t)16 << 20)
#define READ_AHEAD_LEAST ((uint64_t)1 << 20)
#define READ_AHEAD_FILES 64
/* One direction of a channel, at least; each process has two channels. */
#define CHANNEL_BYTES ((uint64_t)2 << 20)
#define CHANNELS 4
/* Limits on a block and a queue without a budget. */
#define BLOCK_BYTES ((uint64_t)32 << 20)
#define QUEUE_BYTES ((uint64_t)64 << 20)
#define QUEUE_RECORDS_LEAST 16

struct division {
    struct hr_plan *plan;
    const struct hr_sizes *sizes;
    struct hr_op_kept kept; /* by all nodes */
};

static uint64_t input_bytes(const struct division *d, size_t stage)
{
    const struct hr_stage_sizes *before;

    if (stage == 0)
        return 0;
    before = &d->sizes->stages[stage - 1];
    return before->batch > 0 ? before->batch : before->item;
}

static uint64_t output_bytes(const struct division *d)
{
    const struct hr_stage_sizes *last = &d->sizes->stages[d->plan->stage_count - 1];

    return last->batch > 0 ? last->batch : last->item;
}

/* Threads that run records, including the consumer's if it may help. */
static uint64_t runners(const struct hr_plan *plan)
{
    return (uint64_t)plan->threads + (plan->threads == 0 || plan->help_ns > 0);
}

/* Sequences of steps in worker processes: a thread has one process for each. */
static uint64_t stage_process_runs(const struct hr_plan_stage *stage)
{
    uint64_t count = 0;
    bool inside = false;

    for (size_t k = 0; k < stage->step_count; k++) {
        bool process = stage->steps[k].variant == HR_PLAN_PROCESSES;

        count += process && !inside;
        inside = process;
    }
    return count + (!inside && stage->expand != HR_NO_NODE &&
                    stage->expand_variant == HR_PLAN_PROCESSES);
}

static uint64_t process_runs(const struct hr_plan *plan)
{
    uint64_t count = 0;

    for (size_t i = 0; i < plan->stage_count; i++)
        count += stage_process_runs(&plan->stages[i]);
    return count;
}

/* A request has at least one record, however large. */
static uint64_t channel_bytes(const struct division *d)
{
    uint64_t bytes = CHANNEL_BYTES;

    for (size_t i = 0; i < d->plan->stage_count; i++) {
        uint64_t in = input_bytes(d, i), out = d->sizes->stages[i].result;

        if (stage_process_runs(&d->plan->stages[i]) == 0)
            continue;
        bytes = in > bytes ? in : bytes;
        bytes = out > bytes ? out : bytes;
    }
    return bytes;
}

/* ---- defaults ---- */

static uint32_t wanted_block(const struct division *d, size_t at)
{
    const struct hr_plan_stage *stage = &d->plan->stages[at];
    const struct hr_stage_sizes *s = &d->sizes->stages[at];
    uint64_t each = s->result > input_bytes(d, at) ? s->result : input_bytes(d, at);
    uint32_t records = s->result >= 65536 ? 8 : s->result >= 4096 ? 32 : 256;

    if (stage->direct) {
        const struct hr_graph_node *n = &d->plan->graph->nodes[stage->sequence[0]];
        struct hr_sequence_runs runs = {0};

        n->op->sequence.runs(n->params, &runs);
        return (uint32_t)runs.size;
    }
    while (records > 1 && hr__bytes_times(records, each) > BLOCK_BYTES)
        records /= 2;
    return records;
}

static uint32_t wanted_queue(const struct division *d, size_t at)
{
    uint32_t records = 2 * d->plan->stages[at].memory.block_records;

    if (at == 0)
        return 0;
    records = records > QUEUE_RECORDS_LEAST ? records : QUEUE_RECORDS_LEAST;
    while (records > 2 && hr__bytes_times(records, input_bytes(d, at)) > QUEUE_BYTES)
        records /= 2;
    return records;
}

/* Records in progress per thread, so that a slow one does not leave other threads idle:
 * batches are delivered in order. */
#define RECORDS_PER_THREAD 2

/* Batches of a direct first stage whose records keep all threads busy; else 1. */
static uint64_t busy_batches(const struct division *d)
{
    uint64_t records = RECORDS_PER_THREAD * (uint64_t)d->plan->threads, size;

    if (!d->plan->stages[0].direct || records == 0)
        return 1;
    size = wanted_block(d, 0);
    return (records + size - 1) / size;
}

/* Batches complete and in progress: two by default, so that with the consumer's there are
 * three; more when they are small or have few records; none complete where they are large
 * and worker processes take memory as well. */
static uint32_t wanted_batches(const struct division *d)
{
    uint64_t count = AHEAD_BATCH_BYTES / output_bytes(d);
    uint64_t least = busy_batches(d) + (d->plan->memory.release_wait_ns == 0);

    count = count > least ? count : least;
    return count < HR_PLAN_BATCHES_MAX ? (uint32_t)count : HR_PLAN_BATCHES_MAX;
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void want(struct division *d, uint64_t read_ahead, bool running)
{
    struct hr_plan *plan = d->plan;
    struct hr_plan_memory *m = &plan->memory;
    bool requests = process_runs(plan) > 0;

    m->batch = output_bytes(d);
    m->program = PROGRAM_BYTES;
    m->kept = hr__bytes_plus(d->kept.fixed, d->kept.most);
    m->channel = requests ? channel_bytes(d) : 0;
    m->scratch = 0;
    m->read_ahead = read_ahead > 0 ? read_ahead : READ_AHEAD_BYTES;
    m->read_ahead_files = READ_AHEAD_FILES;
    m->release_wait_ns =
        requests && m->budget == 0 && plan->threads > 0 && m->batch >= LARGE_BATCH_BYTES
            ? RELEASE_WAIT_NS
            : 0;
    m->batches_ahead = wanted_batches(d);
    for (size_t i = 0; i < plan->stage_count; i++) {
        struct hr_plan_stage *stage = &plan->stages[i];
        struct hr_plan_stage_memory old = stage->memory, *now = &stage->memory;

        now->block_records = wanted_block(d, i);
        now->block_count = stage->direct ? m->batches_ahead : (uint32_t)plan->threads + 2;
        now->queue_records = wanted_queue(d, i);
        if (running) {
            now->block_records = least_of(now->block_records, old.block_records);
            now->block_count = least_of(now->block_count, old.block_count);
            now->queue_records = least_of(now->queue_records, old.queue_records);
        }
        if (d->sizes->stages[i].scratch > m->scratch)
            m->scratch = d->sizes->stages[i].scratch;
    }
    m->scratch = hr__bytes_plus(m->scratch, d->kept.thread);
    if (!plan->stages[0].direct)
        m->batches_ahead -= m->batches_ahead > 1;
}

/* ---- bytes ---- */

/* Rows whose shapes differ wait beside the batch that is made of them. */
static bool gathers_rows(const struct hr_plan *plan, const struct hr_plan_stage *stage)
{
    const struct hr_graph_node *nodes = plan->graph->nodes;
    const struct hr_schema *schema;
    uint32_t batch = hr__plan_stage_batch(plan, stage);

    if (batch == HR_NO_NODE)
        return false;
    schema = &nodes[nodes[batch].inputs[0]].schema;
    for (size_t i = 0; i < schema->count; i++)
        if (schema->fields[i].kind != HR_FIELD_TENSOR ||
            hr__field_bytes(&schema->fields[i]) < 0)
            return true;
    return false;
}

/* The node of the stage's sequence that holds most records and joins no runs of them. */
static uint32_t window_node(const struct hr_plan *plan, const struct hr_plan_stage *stage)
{
    uint32_t most = HR_NO_NODE;
    uint64_t records = 0;

    for (size_t i = 0; i < stage->sequence_count; i++) {
        const struct hr_graph_node *n = &plan->graph->nodes[stage->sequence[i]];
        uint64_t held = hr__node_holds(n, &plan->graph->nodes[n->inputs[0]].schema);

        if (held <= records)
            continue;
        records = held;
        most = stage->sequence[i];
    }
    return most;
}

/* A record that a node of the stage's sequence holds. */
static uint64_t held_each(const struct division *d, size_t at)
{
    const struct hr_plan *plan = d->plan;
    uint32_t node = window_node(plan, &plan->stages[at]);
    uint64_t item = d->sizes->stages[at].item;

    if (node == HR_NO_NODE)
        return item;
    node = plan->graph->nodes[node].inputs[0];
    return item + hr__values_bytes(plan->graph->nodes[node].schema.count);
}

static uint64_t held_bytes(const struct division *d, size_t at)
{
    const struct hr_plan_stage *stage = &d->plan->stages[at];
    const struct hr_stage_sizes *s = &d->sizes->stages[at];
    bool rows = gathers_rows(d->plan, stage);

    if (stage->direct)
        return rows ? s->batch : 0;
    return hr__bytes_plus(hr__bytes_times(s->held, held_each(d, at)),
                          hr__bytes_times(rows ? 2 : 1, s->batch));
}

/* Whether results are the inputs, without a copy. */
static bool passes_inputs(const struct hr_plan *plan, const struct hr_plan_stage *stage)
{
    for (size_t i = 0; i < stage->step_count; i++)
        if (stage->steps[i].variant == HR_PLAN_PROCESSES ||
            !(plan->graph->nodes[stage->steps[i].node].op->traits & HR_TRAIT_ZERO_COPY))
            return false;
    return stage->expand == HR_NO_NODE;
}

/* A record in a block is its input, then its result; while it runs, both. What a batch
 * was taken apart into keeps all of it in memory beside the next one. */
static uint64_t block_bytes(const struct division *d, size_t at)
{
    const struct hr_plan_stage *stage = &d->plan->stages[at];
    const struct hr_stage_sizes *s = &d->sizes->stages[at];
    uint64_t in = input_bytes(d, at), out = s->result;
    uint64_t records = (uint64_t)stage->memory.block_records * stage->memory.block_count;

    if (stage->direct)
        return hr__bytes_times(stage->memory.block_count, s->batch);
    if (passes_inputs(d->plan, stage))
        return hr__bytes_times(records, in > out ? in : out);
    return hr__bytes_plus(
        hr__bytes_times(records, in > out ? in : out),
        hr__bytes_times(least_of(stage->memory.block_records, (uint32_t)runners(d->plan)),
                        in > out ? out : in));
}

/* What is no buffer of records. */
static uint64_t fixed_bytes(const struct hr_plan *plan)
{
    const struct hr_plan_memory *m = &plan->memory;
    uint64_t threads = runners(plan);

    return hr__bytes_plus(
        hr__bytes_plus(hr__bytes_plus(m->program, m->kept),
                       hr__bytes_times(threads, m->scratch)),
        hr__bytes_times(process_runs(plan) * CHANNELS * threads, m->channel));
}

uint64_t hr__plan_record_bytes(const struct hr_plan *plan)
{
    uint64_t fixed = fixed_bytes(plan);

    return plan->memory.budget > fixed ? plan->memory.budget - fixed : 1;
}

void hr__plan_sum(struct hr_plan *plan)
{
    struct hr_plan_memory *m = &plan->memory;

    m->total = hr__bytes_plus(fixed_bytes(plan), hr__bytes_plus(m->read_ahead, m->batch));
    if (!plan->stages[0].direct)
        m->total = hr__bytes_plus(m->total, hr__bytes_times(m->batches_ahead, m->batch));
    for (size_t i = 0; i < plan->stage_count; i++) {
        const struct hr_plan_stage_memory *s = &plan->stages[i].memory;

        m->total = hr__bytes_plus(m->total, s->block_bytes);
        m->total =
            hr__bytes_plus(m->total, hr__bytes_plus(s->queue_bytes, s->held_bytes));
    }
}

/* Sets the members that are in bytes from those that are counts; returns their sum. */
static uint64_t sum(struct division *d)
{
    struct hr_plan *plan = d->plan;

    for (size_t i = 0; i < plan->stage_count; i++) {
        struct hr_plan_stage_memory *s = &plan->stages[i].memory;

        if (plan->stages[i].direct)
            s->block_count = plan->memory.batches_ahead;
        s->block_bytes = block_bytes(d, i);
        s->queue_bytes = hr__bytes_times(s->queue_records, input_bytes(d, i));
        s->held_bytes = held_bytes(d, i);
    }
    hr__plan_sum(plan);
    return plan->memory.total;
}

/* ---- reducing ---- */

static uint64_t in_flight(const struct hr_plan_stage *stage)
{
    return (uint64_t)stage->memory.block_records * stage->memory.block_count;
}

/* The stage with the most bytes in blocks and queue among those that have more than
 * `keep` records in flight or more than one in the queue; NULL if there is none. */
static struct hr_plan_stage *largest_stage(struct division *d, uint32_t keep)
{
    struct hr_plan_stage *best = NULL;
    uint64_t most = 0;

    for (size_t i = 0; i < d->plan->stage_count; i++) {
        struct hr_plan_stage *stage = &d->plan->stages[i];
        uint64_t bytes = stage->memory.block_bytes + stage->memory.queue_bytes;

        if (stage->direct ||
            (in_flight(stage) <= keep && stage->memory.queue_records <= 1))
            continue;
        if (best == NULL || bytes > most) {
            best = stage;
            most = bytes;
        }
    }
    return best;
}

static bool shrink_stage(struct division *d, uint32_t keep)
{
    struct hr_plan_stage *stage = largest_stage(d, keep);
    struct hr_plan_stage_memory *m;

    if (stage == NULL)
        return false;
    m = &stage->memory;
    if (m->queue_records > 1 &&
        (m->queue_bytes >= m->block_bytes || in_flight(stage) <= keep))
        m->queue_records /= 2;
    else if (m->block_records > 1 && m->block_records >= m->block_count)
        m->block_records /= 2;
    else
        m->block_count -= 1;
    return true;
}

/* Reduces what is least useful by one step. False if nothing can be reduced further. */
static bool shrink(struct division *d, bool keep_read_ahead)
{
    struct hr_plan *plan = d->plan;
    struct hr_plan_memory *m = &plan->memory;
    uint64_t kept_least = hr__bytes_plus(d->kept.fixed, d->kept.least);

    if (!keep_read_ahead && m->read_ahead > READ_AHEAD_LEAST &&
        m->read_ahead > m->budget / 8) {
        m->read_ahead /= 2;
    } else if (m->kept > kept_least && m->kept > m->budget / 2) {
        m->kept -= (m->kept - kept_least + 1) / 2;
    } else if (m->batches_ahead > 2) {
        m->batches_ahead--;
    } else if (shrink_stage(d, 2 * (uint32_t)runners(plan))) {
        return true;
    } else if (m->batches_ahead > 1) {
        m->batches_ahead--;
    } else if (plan->threads > 1) {
        plan->threads--;
    } else if (plan->help_ns > 0 && plan->threads > 0) {
        plan->help_ns = 0;
    } else if (shrink_stage(d, 1)) {
        return true;
    } else if (!keep_read_ahead && m->read_ahead > READ_AHEAD_LEAST) {
        m->read_ahead = READ_AHEAD_LEAST;
    } else if (m->kept > kept_least) {
        m->kept -= (m->kept - kept_least + 1) / 2;
    } else {
        return false;
    }
    return true;
}

/* ---- the division ---- */

/* The sum with everything reduced as far as possible. In a copy: threads read parts of
 * the plan that the division leaves alone. */
static uint64_t least(const struct division *d, bool keep_read_ahead)
{
    struct hr_plan reduced = *d->plan;
    struct division of_reduced = {&reduced, d->sizes, d->kept};

    while (shrink(&of_reduced, keep_read_ahead))
        (void)sum(&of_reduced);
    return sum(&of_reduced);
}

/* A short figure, rounded up: given as the budget it is enough. Units beyond TB cannot be
 * parsed. */
static const char *round_up(char *text, size_t room, uint64_t bytes)
{
    const uint64_t tera = 1000000000000;
    uint64_t parsed = 0, value = bytes;

    if (bytes >= 999 * tera) {
        snprintf(text, room, "%llu TB", (unsigned long long)(bytes / tera + 1));
        return text;
    }
    while (!hr__bytes_parse(hr__bytes_text(text, room, value), &parsed) || parsed < bytes)
        value += value / 256 + 1;
    return text;
}

/* Names the largest single item of the least budget. */
static void blame(const struct division *d, char *text, size_t room)
{
    const struct hr_plan *plan = d->plan;
    const struct hr_graph_node *nodes = plan->graph->nodes;
    const char *what = "the program itself", *name = NULL;
    uint64_t most = PROGRAM_BYTES;

    for (uint32_t i = 0; i < plan->graph->count; i++) {
        struct hr_op_kept kept = hr__plan_kept(plan, i);
        uint64_t bytes =
            hr__bytes_plus(kept.thread, hr__bytes_plus(kept.fixed, kept.least));

        if (bytes > most) {
            most = bytes;
            what = "what is kept by";
            name = nodes[i].name;
        }
    }
    for (size_t i = 0; i < plan->stage_count; i++) {
        const struct hr_plan_stage *stage = &plan->stages[i];
        const struct hr_stage_sizes *s = &d->sizes->stages[i];
        uint64_t window = hr__bytes_times(s->held, held_each(d, i));

        if (s->scratch > most) {
            most = s->scratch;
            what = "work on one record, up to";
            name = nodes[stage->last].name;
        }
        if (s->result > most) {
            most = s->result;
            what = "a record after";
            name = nodes[stage->expand != HR_NO_NODE ? stage->expand : stage->last].name;
        }
        if (s->batch > most) {
            most = s->batch;
            what = "a batch of";
            name = nodes[hr__plan_stage_batch(plan, stage)].name;
        }
        if (window > most) {
            most = window;
            what = "the window of";
            name = nodes[window_node(plan, stage)].name;
        }
    }
    hr__bytes_text(text, room, most);
    snprintf(text + strlen(text), room - strlen(text), " of it %s%s%s%s", what,
             name != NULL ? " '" : "", name != NULL ? name : "", name != NULL ? "'" : "");
}

static enum hr_err too_small(const struct division *d, struct hr_error *reterr)
{
    const struct hr_plan_memory *m = &d->plan->memory;
    char have[32], need[32], most[160];

    hr__bytes_text(have, sizeof have, m->budget);
    round_up(need, sizeof need, m->least);
    blame(d, most, sizeof most);
    return hr__fail(reterr, HR_ERR_LIMIT,
                    "a memory budget of %s is too small: one thread, one record in each "
                    "stage and two batches need at least %s (%s); give more, or make "
                    "batches or records smaller",
                    have, need, most);
}

static void grow_batches(struct division *d)
{
    struct hr_plan_memory *m = &d->plan->memory;

    while (m->batches_ahead < HR_PLAN_BATCHES_MAX && m->total + m->batch <= m->budget) {
        m->batches_ahead++;
        (void)sum(d);
    }
}

static void give_stage_reason(const struct division *d, size_t at)
{
    struct hr_plan_stage *stage = &d->plan->stages[at];
    const struct hr_stage_sizes *s = &d->sizes->stages[at];
    char record[32], input[32], queue[64] = "";

    hr__bytes_text(record, sizeof record, s->result);
    if (at > 0)
        snprintf(queue, sizeof queue, ", in the queue of %s",
                 hr__bytes_text(input, sizeof input, input_bytes(d, at)));
    snprintf(stage->memory.reason, sizeof stage->memory.reason,
             "records are up to %s after the steps%s%s", record, queue,
             stage->direct ? "; a block is a batch" : "");
}

static void give_reasons(const struct division *d, int threads, bool measured)
{
    struct hr_plan *plan = d->plan;
    struct hr_plan_memory *m = &plan->memory;
    char total[32], budget[32];
    const char *by = measured ? "measured sizes" : "sizes estimated from schemas";

    hr__bytes_text(total, sizeof total, m->total);
    if (m->budget > 0)
        snprintf(m->reason, sizeof m->reason, "%s of the budget of %s are divided, by %s",
                 total, hr__bytes_text(budget, sizeof budget, m->budget), by);
    else
        snprintf(m->reason, sizeof m->reason,
                 "no budget was given: the defaults add up to %s, by %s", total, by);
    for (size_t i = 0; i < plan->stage_count; i++)
        give_stage_reason(d, i);
    if (plan->threads < threads)
        snprintf(plan->threads_reason, sizeof plan->threads_reason,
                 "%d fit the memory budget, of %d wanted", plan->threads, threads);
}

enum hr_err hr__plan_divide(struct hr_plan *plan, const struct hr_sizes *sizes,
                            uint64_t read_ahead, bool running, struct hr_error *reterr)
{
    struct division d = {plan, sizes, hr__plan_kept_all(plan)};
    struct hr_plan_memory *m = &plan->memory;
    int threads = plan->threads;

    assert(plan->stage_count > 0);
    want(&d, read_ahead, running);
    (void)sum(&d);
    m->least = least(&d, read_ahead > 0);
    if (m->budget > 0 && m->budget < m->least)
        return too_small(&d, reterr);
    while (m->budget > 0 && m->total > m->budget && shrink(&d, read_ahead > 0))
        (void)sum(&d);
    assert(m->budget == 0 || m->total <= m->budget);
    if (m->budget > 0 && !running)
        grow_batches(&d);
    m->measured = sizes->stages[0].records > 0;
    give_reasons(&d, threads, m->measured);
    return HR_OK;
}
