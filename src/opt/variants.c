/*
 * opt/variants.c - see variants.h.
 */
#include "opt/variants.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "op/code_table.h"

/* Rates that differ by less are equal; so is time under the lock that differs by less
 * than this part of a record's CPU time. */
#define EQUAL 1.02
#define EQUAL_LOCK 0.01

struct choosing {
    const struct hr_graph *graph;
    struct hr_opt_settings settings;
    bool code_only;
    const struct hr_cost_fact *facts;
    const struct hr_cost_machine *machine;
    uint32_t nodes[HR_GRAPH_NODES_MAX]; /* candidates */
    size_t count, room;                 /* of these; for sets */
    struct hr_variants *found;
    struct hr_error *error;
};

static const struct hr_code_use *use_of(const struct choosing *c, uint32_t node)
{
    return hr__node_code(&c->graph->nodes[node]);
}

/* ---- candidates ---- */

/* Why the step stays where it is; NULL: it may move. */
static const char *refusal(const struct choosing *c, uint32_t node, const bool *remote)
{
    const struct hr_code_use *use = use_of(c, node);

    if (remote[node])
        return "runs on the service's workers";
    if (use->variant == HR_CODE_INLINE)
        return "as written: variant: inline, one call at a time";
    if (use->variant == HR_CODE_PROCESSES)
        return "as written: variant: processes";
    if (use->code->stays != NULL)
        return use->code->stays;
    if (c->graph->codes->host.start == NULL)
        return "nothing here can start worker processes";
    if (!c->facts[node].variants)
        return "the profile does not know what it costs in other variants: measure again";
    if (c->settings.threads < 0)
        return "all work in the caller's thread, as asked";
    return NULL;
}

static enum hr_err find_candidates(struct choosing *c)
{
    bool remote[HR_GRAPH_NODES_MAX] = {false};
    struct hr_variants *found = c->found;

    found->steps = hr__calloc(c->graph->count, sizeof *found->steps);
    if (found->steps == NULL)
        return hr__fail(c->error, HR_ERR_MEMORY, "out of memory");
    if (c->settings.remote != NULL)
        hr__graph_before(c->graph, *c->settings.remote, remote);
    for (uint32_t i = 0; i < c->graph->count; i++) {
        struct hr_variant_step *step = &found->steps[found->step_count];
        const char *why;

        if (use_of(c, i) == NULL)
            continue;
        found->step_count++;
        step->node = i;
        why = refusal(c, i, remote);
        if (why != NULL)
            snprintf(step->reason, sizeof step->reason, "%s", why);
        else
            c->nodes[c->count++] = i;
    }
    return HR_OK;
}

/* CPU time of a candidate, by its number, per record of the source. */
static double candidate_ns(const struct choosing *c, size_t i)
{
    const struct hr_cost_fact *fact = &c->facts[c->nodes[i]];

    return fact->records * fact->cpu_ns;
}

/* ---- sets ---- */

static void count_slices(const struct choosing *c, struct hr_variant_set *one)
{
    for (uint32_t i = 0; i < c->graph->count; i++) {
        const struct hr_graph_node *n = &c->graph->nodes[i];

        if (one->processes[i] && (n->input_count != 1 || !one->processes[n->inputs[0]]))
            one->slices++;
    }
    for (size_t i = 0; i < c->count; i++) {
        const struct hr_cost_fact *fact = &c->facts[c->nodes[i]];

        if (!one->processes[c->nodes[i]] && use_of(c, c->nodes[i])->code->enter != NULL)
            one->lock_ns += fact->records * fact->cpu_ns * (1 - fact->parallel);
    }
}

static enum hr_err predict(struct choosing *c, struct hr_variant_set *one)
{
    struct hr_plan plan;
    struct hr_cost cost;
    enum hr_err code;

    count_slices(c, one);
    c->settings.processes = one->processes;
    HR_TRY(hr__plan_make(c->graph, &c->settings, &plan, c->error));
    code = hr__cost_plan(&plan, c->facts, c->machine, &cost, c->error);
    hr__plan_finish(&plan);
    if (code != HR_OK)
        return code;
    one->rate = cost.rate;
    one->cpu_ns = cost.cpu_ns;
    memcpy(one->reason, cost.reason, sizeof one->reason);
    hr__cost_finish(&cost);
    return HR_OK;
}

static bool is_tried(const struct choosing *c, const bool *processes)
{
    const struct hr_variants *found = c->found;

    for (size_t i = 0; i < found->set_count; i++)
        if (memcmp(found->sets[i].processes, processes,
                   c->graph->count * sizeof *processes) == 0)
            return true;
    return false;
}

/* Predicts a set unless it was. Takes over `processes`. */
static enum hr_err add_case(struct choosing *c, bool *processes, size_t count)
{
    struct hr_variants *found = c->found;

    if (is_tried(c, processes)) {
        hr__free(processes);
        return HR_OK;
    }
    if (found->set_count == c->room) {
        size_t room = c->room > 0 ? 2 * c->room : 16;
        struct hr_variant_set *grown =
            hr__realloc(found->sets, room * sizeof *found->sets);

        if (grown == NULL) {
            hr__free(processes);
            return hr__fail(c->error, HR_ERR_MEMORY, "out of memory");
        }
        found->sets = grown;
        c->room = room;
    }
    found->sets[found->set_count] =
        (struct hr_variant_set){.processes = processes, .count = count};
    return predict(c, &found->sets[found->set_count++]);
}

/* Adds the built-in steps that stand between two steps in processes to them; returns
 * whether there are any. */
static bool fill_gaps(const struct choosing *c, bool *processes)
{
    bool filled = false;

    for (size_t i = 0; i < c->count; i++) {
        uint32_t at = c->nodes[i], from;

        if (!processes[at] || c->graph->nodes[at].input_count != 1)
            continue;
        from = c->graph->nodes[at].inputs[0];
        while (use_of(c, from) == NULL && c->graph->nodes[from].input_count == 1 &&
               hr__op_is_portable(c->graph->nodes[from].op))
            from = c->graph->nodes[from].inputs[0];
        if (use_of(c, from) == NULL || !processes[from])
            continue;
        for (uint32_t k = c->graph->nodes[at].inputs[0]; k != from;
             k = c->graph->nodes[k].inputs[0])
            filled = processes[k] = true;
    }
    return filled;
}

/* The candidates of `chosen`, one entry each, and the same with what is between them. */
static enum hr_err add_set(struct choosing *c, const bool *chosen)
{
    for (int filled = 0; filled < (c->code_only ? 1 : 2); filled++) {
        bool *processes = hr__calloc(c->graph->count, sizeof *processes);
        size_t count = 0;

        if (processes == NULL)
            return hr__fail(c->error, HR_ERR_MEMORY, "out of memory");
        for (size_t i = 0; i < c->count; i++) {
            processes[c->nodes[i]] = chosen[i];
            count += chosen[i];
        }
        if (filled && !fill_gaps(c, processes)) {
            hr__free(processes);
            return HR_OK;
        }
        HR_TRY(add_case(c, processes, count));
    }
    return HR_OK;
}

/* All sets of these candidates, at most HR_VARIANT_SETS_MAX, given by their numbers. */
static enum hr_err add_subsets(struct choosing *c, const size_t *numbers, size_t count)
{
    bool chosen[HR_GRAPH_NODES_MAX] = {false};

    assert(count <= HR_VARIANT_SETS_MAX);
    for (unsigned set = 0; set < 1u << count; set++) {
        for (size_t i = 0; i < count; i++)
            chosen[numbers[i]] = (set >> i & 1) != 0;
        HR_TRY(add_set(c, chosen));
    }
    return HR_OK;
}

/* Adds the sets of the candidates whose CPU time is the largest. */
static enum hr_err add_heaviest(struct choosing *c)
{
    size_t numbers[HR_VARIANT_SETS_MAX], count = 0;

    for (size_t i = 0; i < c->count; i++) {
        double ns = candidate_ns(c, i);
        size_t at = count;

        for (; at > 0 && ns > candidate_ns(c, numbers[at - 1]); at--)
            if (at < HR_VARIANT_SETS_MAX)
                numbers[at] = numbers[at - 1];
        if (at < HR_VARIANT_SETS_MAX)
            numbers[at] = i;
        count += count < HR_VARIANT_SETS_MAX;
    }
    return add_subsets(c, numbers, count);
}

/* Consecutive candidates. */
struct slice {
    size_t from, to; /* [from, to) */
    double rate;
};

/* Adds a slice, and puts it in the place of `best` if it is faster. */
static enum hr_err
add_slice(struct choosing *c, size_t from, size_t to, struct slice *best)
{
    bool chosen[HR_GRAPH_NODES_MAX] = {false};
    size_t at = c->found->set_count;

    for (size_t i = from; i < to; i++)
        chosen[i] = true;
    HR_TRY(add_set(c, chosen));
    for (; at < c->found->set_count; at++)
        if (c->found->sets[at].rate > best->rate)
            *best = (struct slice){from, to, c->found->sets[at].rate};
    return HR_OK;
}

/* Moves the ends of the best slice by `by` candidates while that is faster, at most once
 * in each direction. */
static enum hr_err move_ends(struct choosing *c, size_t by, struct slice *best)
{
    if (best->from >= by)
        HR_TRY(add_slice(c, best->from - by, best->to, best));
    if (best->from + by < best->to)
        HR_TRY(add_slice(c, best->from + by, best->to, best));
    if (best->from + by < best->to)
        HR_TRY(add_slice(c, best->from, best->to - by, best));
    if (best->to + by <= c->count)
        HR_TRY(add_slice(c, best->from, best->to + by, best));
    return HR_OK;
}

/* Slices that end at HR_VARIANT_BORDERS_MAX places, between which candidates take about
 * the same CPU time; then the ends of the best one move by less and less. */
static enum hr_err add_slices(struct choosing *c)
{
    size_t borders[HR_VARIANT_BORDERS_MAX + 1], count = 0, widest = 1;
    struct slice best = {.rate = -1};
    double all = 0, ns = 0;

    for (size_t i = 0; i < c->count; i++)
        all += candidate_ns(c, i);
    borders[count++] = 0;
    for (size_t i = 1; i < c->count && count < HR_VARIANT_BORDERS_MAX; i++) {
        ns += candidate_ns(c, i - 1);
        if (c->count <= HR_VARIANT_BORDERS_MAX ||
            ns >= all * (double)count / HR_VARIANT_BORDERS_MAX)
            borders[count++] = i;
    }
    borders[count] = c->count;
    for (size_t from = 0; from < count; from++) {
        size_t width = borders[from + 1] - borders[from];

        widest = width > widest ? width : widest;
        for (size_t to = from; to < count; to++)
            HR_TRY(add_slice(c, borders[from], borders[to + 1], &best));
    }
    for (size_t by = widest / 2; by > 0; by /= 2)
        HR_TRY(move_ends(c, by, &best));
    return HR_OK;
}

static enum hr_err add_sets(struct choosing *c)
{
    HR_TRY(add_heaviest(c));
    return c->count > HR_VARIANT_SETS_MAX ? add_slices(c) : HR_OK;
}

/* ---- the choice ---- */

static int by_rate(const void *a, const void *b)
{
    const struct hr_variant_set *x = a, *y = b;

    if (x->rate != y->rate)
        return x->rate > y->rate ? -1 : 1;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return (x->cpu_ns > y->cpu_ns) - (x->cpu_ns < y->cpu_ns);
}

static bool moves(const struct choosing *c, const struct hr_variant_set *one)
{
    for (uint32_t i = 0; i < c->graph->count; i++)
        if (one->processes[i])
            return true;
    return false;
}

/* Of two sets that are as fast as each other: fewer borders, less time under the lock,
 * which the consumer may need too, fewer steps in processes, less work. */
static bool is_simpler(const struct hr_variant_set *a, const struct hr_variant_set *b)
{
    if (a->slices != b->slices)
        return a->slices < b->slices;
    if (fabs(a->lock_ns - b->lock_ns) > EQUAL_LOCK * b->cpu_ns)
        return a->lock_ns < b->lock_ns;
    if (a->count != b->count)
        return a->count < b->count;
    return a->cpu_ns < b->cpu_ns;
}

/* Of the sets that are as fast as the best and gain enough, the simplest; the written one
 * if the best does not. */
static size_t best_of(const struct hr_variants *found)
{
    const struct hr_variant_set *sets = found->sets;
    double least = HR_VARIANT_GAIN * sets[found->written].rate;
    size_t best = 0;

    if (sets[0].rate < least)
        return found->written;
    for (size_t i = 1; i < found->set_count; i++)
        if (sets[i].rate * EQUAL >= sets[0].rate && sets[i].rate >= least &&
            is_simpler(&sets[i], &sets[best]))
            best = i;
    return best;
}

/* Sorts the sets, the chosen one first. */
static void sort(struct choosing *c)
{
    struct hr_variants *found = c->found;
    struct hr_variant_set chosen;
    size_t best;

    qsort(found->sets, found->set_count, sizeof *found->sets, by_rate);
    for (size_t i = 0; i < found->set_count; i++)
        if (!moves(c, &found->sets[i]))
            found->written = i;
    best = best_of(found);
    chosen = found->sets[best];
    memmove(&found->sets[1], &found->sets[0], best * sizeof chosen);
    found->sets[0] = chosen;
    found->written = best == found->written  ? 0
                     : found->written < best ? found->written + 1
                                             : found->written;
}

static void describe(const struct choosing *c, struct hr_variant_step *step)
{
    const struct hr_cost_fact *fact = &c->facts[step->node];
    double process_ns = fact->process_ns;
    const char *word = "measured";

    if (process_ns <= 0) {
        double bytes = fact->bytes_in + fact->kept * fact->bytes_out;

        word = "estimated";
        process_ns = fact->cpu_ns + c->machine->transfer_ns +
                     (c->machine->copy > 0 ? bytes / c->machine->copy * 1e9 : 0);
    }
    snprintf(step->reason, sizeof step->reason,
             "a record takes %.3g us, %.0f %% of it with the lock that other threads "
             "need; %.3g us in a worker process, transfer included (%s)",
             fact->cpu_ns * 1e-3,
             use_of(c, step->node)->code->enter != NULL ? 100 * (1 - fact->parallel) : 0,
             process_ns * 1e-3, word);
}

static void describe_all(struct choosing *c)
{
    struct hr_variants *found = c->found;

    for (size_t i = 0; i < found->step_count; i++) {
        struct hr_variant_step *step = &found->steps[i];
        const struct hr_code_use *use = use_of(c, step->node);

        if (step->reason[0] == '\0')
            describe(c, step);
        step->variant =
            use->variant == HR_CODE_PROCESSES || found->sets[0].processes[step->node]
                ? HR_PLAN_PROCESSES
            : use->variant == HR_CODE_INLINE || c->settings.threads < 0 ? HR_PLAN_INLINE
                                                                        : HR_PLAN_THREADS;
    }
}

enum hr_err
hr__variants_choose(const struct hr_graph *graph, const struct hr_opt_settings *settings,
                    bool code_only, const struct hr_cost_fact *facts,
                    const struct hr_cost_machine *machine, struct hr_variants *ret,
                    struct hr_error *reterr)
{
    struct hr_variants found = {.sets = NULL};
    struct choosing *c = hr__calloc(1, sizeof *c);
    enum hr_err code;

    assert(graph->frozen && settings->processes == NULL);
    if (c == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    c->graph = graph;
    c->settings = *settings;
    c->code_only = code_only;
    c->facts = facts;
    c->machine = machine;
    c->found = &found;
    c->error = reterr;
    code = find_candidates(c);
    if (code == HR_OK)
        code = add_sets(c);
    if (code == HR_OK) {
        sort(c);
        describe_all(c);
        *ret = found;
    } else {
        hr__variants_finish(&found);
    }
    hr__free(c);
    return code;
}

void hr__variants_finish(struct hr_variants *variants)
{
    for (size_t i = 0; i < variants->set_count; i++)
        hr__free(variants->sets[i].processes);
    hr__free(variants->sets);
    hr__free(variants->steps);
    *variants = (struct hr_variants){.sets = NULL};
}
