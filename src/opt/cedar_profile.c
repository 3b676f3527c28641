/*
 * opt/cedar_profile.c - see cedar_profile.h.
 *
 * cedar measures bytes of whole samples, a profile those of the fields that a node reads
 * and writes; both scale what a node costs, so they are taken for each other. A node that
 * reads or writes no bytes passes on those of the node before it.
 */
#include "opt/cedar_profile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- to a profile ---- */

static enum hr_err add_nodes(const struct hr_graph *graph, struct hr_profile *profile,
                             struct hr_error *reterr)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *from = &graph->nodes[i];
        struct hr_profile_node *node =
            hr__profile_add(profile, from->name, from->op->name);

        if (node == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        node->fingerprint = from->fingerprint;
    }
    return HR_OK;
}

/* Pipes of one node follow each other. */
static void add_measure(const struct hr_cedar_measure *pipe, struct hr_profile_node *node)
{
    if (node->records_in == 0)
        node->bytes_in = pipe->bytes_in;
    node->records_in = node->records_out = 1;
    node->bytes_out = pipe->bytes_out;
    node->cpu_ns += pipe->latency_ns;
}

static enum hr_err
find_node(const struct hr_graph *graph, const struct hr_cedar_match *match,
          const struct hr_cedar_measures *measures, size_t *ret_at,
          struct hr_error *reterr)
{
    if (hr__cedar_measure(measures, match->id) == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "%lld=%s: the statistics have no pipe %lld", (long long)match->id,
                        match->node, (long long)match->id);
    for (size_t i = 0; i < graph->count; i++)
        if (strcmp(graph->nodes[i].name, match->node) == 0) {
            *ret_at = i;
            return HR_OK;
        }
    return hr__fail(reterr, HR_ERR_ARGUMENT, "%lld=%s: the graph has no node '%s'",
                    (long long)match->id, match->node, match->node);
}

/* In the order of the pipes, so that pipes of one node are added up from first to last.
 */
static enum hr_err
take_matches(const struct hr_cedar_measures *measures, const int64_t *ids,
             const struct hr_graph *graph, const struct hr_cedar_match *matches,
             size_t match_count, struct hr_profile *profile, struct hr_error *reterr)
{
    size_t at = 0;

    for (size_t i = 0; i < match_count; i++)
        HR_TRY(find_node(graph, &matches[i], measures, &at, reterr));
    for (size_t k = 0; k < measures->pipe_count; k++) {
        size_t nodes = 0;

        for (size_t i = 0; i < match_count; i++) {
            if (matches[i].id != ids[k])
                continue;
            if (nodes++ > 0)
                return hr__fail(reterr, HR_ERR_ARGUMENT, "pipe %lld has several nodes",
                                (long long)ids[k]);
            HR_TRY(find_node(graph, &matches[i], measures, &at, reterr));
            add_measure(hr__cedar_measure(measures, ids[k]), &profile->nodes[at]);
        }
    }
    return HR_OK;
}

static enum hr_err take_all(const struct hr_cedar_measures *measures, const int64_t *ids,
                            const struct hr_graph *graph, struct hr_profile *profile,
                            struct hr_error *reterr)
{
    if (graph->count != measures->pipe_count)
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "the statistics have %zu pipes and the graph %zu nodes: say which "
            "node does the work of which pipe",
            measures->pipe_count, graph->count);
    for (size_t i = 0; i < graph->count; i++)
        add_measure(hr__cedar_measure(measures, ids[i]), &profile->nodes[i]);
    return HR_OK;
}

enum hr_err hr__cedar_to_profile(const struct hr_cedar_measures *measures,
                                 const int64_t *ids, const struct hr_graph *graph,
                                 const struct hr_cedar_match *matches, size_t match_count,
                                 struct hr_profile *ret_profile, struct hr_error *reterr)
{
    struct hr_profile profile = {
        .machine = {.cpu = "unknown", .isa = "unknown", .cores = 1},
        .graph = graph->nodes[graph->output].fingerprint,
        .variant = HR_PLAN_INLINE,
    };
    enum hr_err code;

    snprintf(profile.library, sizeof profile.library, "%s", hr_version());
    code = add_nodes(graph, &profile, reterr);
    if (code == HR_OK)
        code = match_count > 0 ? take_matches(measures, ids, graph, matches, match_count,
                                              &profile, reterr)
                               : take_all(measures, ids, graph, &profile, reterr);
    if (code != HR_OK)
        hr__profile_finish(&profile);
    else
        *ret_profile = profile;
    return code;
}

/* ---- from a profile ---- */

/* Whether records that do not go on are lost, not gathered. */
static bool drops(const struct hr_profile_node *node)
{
    const struct hr_op *op = hr__op_find(node->op);

    return op != NULL && (op->kind == HR_OP_FILTER || op->kind == HR_OP_ORDER);
}

/* Whole records after the node, for each of the source, of which `records` enter it with
 * `bytes` together: what it makes takes the place of what it reads. A node that makes
 * nothing leaves them as they are. Never 0, of which cedar cannot take a part. */
static double
bytes_after(const struct hr_profile_node *node, double records, double bytes)
{
    if (node->bytes_out > 0) /* for each record that enters, in a batch too */
        bytes = fmax(bytes - node->bytes_in * records, 0) + node->bytes_out * records;
    else if (drops(node))
        bytes *= hr__profile_kept(node);
    return fmax(bytes, 1e-9);
}

enum hr_err
hr__cedar_from_profile(const struct hr_profile *profile,
                       struct hr_cedar_measures *ret_measures, struct hr_error *reterr)
{
    struct hr_cedar_measures measures = {.disk_read = -1, .disk_write = -1};
    double records = 1, ns = 0, bytes = 1;

    if (profile->node_count > HR_CEDAR_PIPES_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "%zu nodes; cedar's pipelines have at most "
                        "%d here",
                        profile->node_count, HR_CEDAR_PIPES_MAX);
    for (size_t i = 0; i < profile->node_count; i++) {
        const struct hr_profile_node *node = &profile->nodes[i];
        struct hr_cedar_measure *pipe = &measures.pipes[measures.pipe_count++];

        *pipe = (struct hr_cedar_measure){.id = (int64_t)(profile->node_count - 1 - i)};
        pipe->latency_ns = fmin(node->cpu_ns * records, 1e18);
        ns += hr__profile_wall_ns(node) * records;
        pipe->bytes_in = i > 0 ? bytes : 0;
        bytes = fmin(bytes_after(node, records, i > 0 ? bytes : 0), 1e18);
        pipe->bytes_out = bytes;
        records *= hr__profile_kept(node);
    }
    if (!(ns > 0) || !(ns < HUGE_VAL))
        return hr__fail(reterr, HR_ERR_STATE,
                        "the profile has no times: no node was measured");
    measures.rate = fmin(1e9 / ns, 1e18);
    *ret_measures = measures;
    return HR_OK;
}
