/*
 * graph/profile.c - the members of a profile, the nodes of a graph in it, and two
 * profiles as one.
 */
#include "graph/profile.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/str.h"
#include "graph/profile_items.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define EXACT_MAX 0x1p53 /* whole numbers that a double holds */
#define NS_MAX 1e18

/* clang-format off */
#define AT(member) offsetof(struct hr_profile, member)
static const struct hr_profile_item top[] = {
    {"graph",        HR_PROFILE_HASH,    AT(graph), 0},
    {"library",      HR_PROFILE_TEXT,    AT(library), sizeof((struct hr_profile *)0)->library},
    {"variant",      HR_PROFILE_VARIANT, AT(variant), 0},
    {"fused",        HR_PROFILE_BOOL,    AT(fused), 1},
    {"seconds",      HR_PROFILE_DOUBLE,  AT(seconds), NS_MAX},
};
#undef AT

#define AT(member) offsetof(struct hr_profile_machine, member)
static const struct hr_profile_item where[] = {
    {"cpu",          HR_PROFILE_TEXT,    AT(cpu), sizeof((struct hr_profile_machine *)0)->cpu},
    {"isa",          HR_PROFILE_TEXT,    AT(isa), sizeof((struct hr_profile_machine *)0)->isa},
    {"cores",        HR_PROFILE_U32,     AT(cores), 1 << 20},
    {"copy",         HR_PROFILE_PERHAPS, AT(copy), NS_MAX},
    {"crowd",        HR_PROFILE_PERHAPS, AT(crowd), NS_MAX},
    {"disk",         HR_PROFILE_PERHAPS, AT(disk), NS_MAX},
    {"transfer_ns",  HR_PROFILE_PERHAPS, AT(transfer_ns), NS_MAX, 2},
    {"transfer",     HR_PROFILE_PERHAPS, AT(transfer), NS_MAX, 2},
};
#undef AT

#define AT(member) offsetof(struct hr_profile_node, member)
static const struct hr_profile_item node[] = {
    {"fingerprint",  HR_PROFILE_HASH,    AT(fingerprint), 0},
    {"measured",     HR_PROFILE_U64,     AT(measured), EXACT_MAX},
    {"records_in",   HR_PROFILE_U64,     AT(records_in), EXACT_MAX},
    {"records_out",  HR_PROFILE_U64,     AT(records_out), EXACT_MAX},
    {"cpu_ns",       HR_PROFILE_DOUBLE,  AT(cpu_ns), NS_MAX},
    {"wait_ns",      HR_PROFILE_DOUBLE,  AT(wait_ns), NS_MAX},
    {"deviation_ns", HR_PROFILE_DOUBLE,  AT(deviation_ns), NS_MAX},
    {"bytes_in",     HR_PROFILE_DOUBLE,  AT(bytes_in), NS_MAX},
    {"bytes_out",    HR_PROFILE_DOUBLE,  AT(bytes_out), NS_MAX},
    {"fixed",        HR_PROFILE_PERHAPS, AT(fixed), 1},
    {"width",        HR_PROFILE_PERHAPS, AT(width), NS_MAX},
    {"serial",       HR_PROFILE_PERHAPS, AT(serial), 1, 2},
    {"process_ns",   HR_PROFILE_PERHAPS, AT(process_ns), NS_MAX, 2},
    {"crowd",        HR_PROFILE_PERHAPS, AT(crowd), NS_MAX, 3},
    {"ordered",      HR_PROFILE_PERHAPS, AT(ordered), 1, 4},
};
#undef AT
/* clang-format on */

const struct hr_profile_table hr__profile_top = {top, COUNT(top)};
const struct hr_profile_table hr__profile_where = {where, COUNT(where)};
const struct hr_profile_table hr__profile_node = {node, COUNT(node)};

int64_t hr__profile_item_int(const struct hr_profile_item *item, const void *object)
{
    const char *at = (const char *)object + item->offset;
    uint64_t wide;
    uint32_t narrow;

    if (item->type == HR_PROFILE_BOOL)
        return *(const bool *)at;
    if (item->type == HR_PROFILE_U64) {
        memcpy(&wide, at, sizeof wide);
        return (int64_t)wide;
    }
    assert(item->type == HR_PROFILE_U32 || item->type == HR_PROFILE_VARIANT);
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

double hr__profile_item_double(const struct hr_profile_item *item, const void *object)
{
    double value;

    assert(item->type == HR_PROFILE_DOUBLE || item->type == HR_PROFILE_PERHAPS);
    memcpy(&value, (const char *)object + item->offset, sizeof value);
    return value;
}

void hr__profile_finish(struct hr_profile *profile)
{
    if (profile == NULL)
        return;
    for (size_t i = 0; i < profile->node_count; i++) {
        hr__free(profile->nodes[i].name);
        hr__free(profile->nodes[i].op);
    }
    hr__free(profile->nodes);
    memset(profile, 0, sizeof *profile);
}

void hr__profile_machine(struct hr_profile_machine *ret_machine)
{
    struct hr_profile_machine machine = {.cores = (uint32_t)hr__cpu_count(),
                                         .copy = HR_PROFILE_UNKNOWN,
                                         .crowd = HR_PROFILE_UNKNOWN,
                                         .disk = HR_PROFILE_UNKNOWN,
                                         .transfer_ns = HR_PROFILE_UNKNOWN,
                                         .transfer = HR_PROFILE_UNKNOWN};

    hr__cpu_model(machine.cpu, sizeof machine.cpu);
    snprintf(machine.isa, sizeof machine.isa, "%s", hr__isa_name(hr__isa()));
    *ret_machine = machine;
}

struct hr_profile_node *
hr__profile_add(struct hr_profile *profile, const char *name, const char *op)
{
    size_t bytes = (profile->node_count + 1) * sizeof *profile->nodes;
    struct hr_profile_node *nodes = hr__realloc(profile->nodes, bytes), *n;

    if (nodes == NULL)
        return NULL;
    profile->nodes = nodes;
    n = &nodes[profile->node_count];
    *n = (struct hr_profile_node){.name = hr__strdup(name),
                                  .op = hr__strdup(op),
                                  .fixed = HR_PROFILE_UNKNOWN,
                                  .width = HR_PROFILE_UNKNOWN,
                                  .serial = HR_PROFILE_UNKNOWN,
                                  .process_ns = HR_PROFILE_UNKNOWN,
                                  .crowd = HR_PROFILE_UNKNOWN,
                                  .ordered = HR_PROFILE_UNKNOWN};
    if (n->name == NULL || n->op == NULL) {
        hr__free(n->name);
        hr__free(n->op);
        return NULL;
    }
    profile->node_count++;
    return n;
}

/* ---- comparing ---- */

static bool item_equal(const struct hr_profile_item *item, const void *a, const void *b)
{
    const char *from = (const char *)a + item->offset;
    const char *to = (const char *)b + item->offset;

    switch (item->type) {
    case HR_PROFILE_TEXT:
        return strcmp(from, to) == 0;
    case HR_PROFILE_HASH:
        return memcmp(from, to, sizeof(struct hr_hash128)) == 0;
    case HR_PROFILE_DOUBLE:
    case HR_PROFILE_PERHAPS:
        return hr__profile_item_double(item, a) == hr__profile_item_double(item, b);
    default:
        return hr__profile_item_int(item, a) == hr__profile_item_int(item, b);
    }
}

/* The first member that differs, or NULL. */
static const struct hr_profile_item *
differing(const struct hr_profile_table *table, const void *a, const void *b)
{
    for (size_t i = 0; i < table->count; i++)
        if (!item_equal(&table->items[i], a, b))
            return &table->items[i];
    return NULL;
}

bool hr__profile_equal(const struct hr_profile *a, const struct hr_profile *b)
{
    if (a->node_count != b->node_count || differing(&hr__profile_top, a, b) != NULL ||
        differing(&hr__profile_where, &a->machine, &b->machine) != NULL)
        return false;
    for (size_t i = 0; i < a->node_count; i++)
        if (strcmp(a->nodes[i].name, b->nodes[i].name) != 0 ||
            strcmp(a->nodes[i].op, b->nodes[i].op) != 0 ||
            differing(&hr__profile_node, &a->nodes[i], &b->nodes[i]) != NULL)
            return false;
    return true;
}

/* ---- finding ---- */

static struct hr_profile_node *
find(const struct hr_profile *profile, struct hr_hash128 fingerprint, const char *name)
{
    struct hr_profile_node *found = NULL;

    for (size_t i = 0; i < profile->node_count; i++) {
        struct hr_profile_node *n = &profile->nodes[i];

        if (!hr__hash_equal(n->fingerprint, fingerprint))
            continue;
        if (strcmp(n->name, name) == 0)
            return n;
        if (found == NULL)
            found = n;
    }
    return found;
}

size_t hr__profile_match(const struct hr_graph *graph, const struct hr_profile *profile,
                         const struct hr_profile_node **ret_nodes)
{
    size_t found = 0;

    assert(graph->frozen);
    for (size_t i = 0; i < graph->count; i++) {
        ret_nodes[i] = find(profile, graph->nodes[i].fingerprint, graph->nodes[i].name);
        found += ret_nodes[i] != NULL;
    }
    return found;
}

enum hr_err hr__profile_lacks(const struct hr_profile *profile,
                              const struct hr_graph_node *of, struct hr_error *reterr)
{
    (void)hr__fail(reterr, HR_ERR_STATE,
                   "the profile knows nothing of node '%s' (%s): the graph has changed "
                   "there or before; profile it again",
                   of->name, of->op->name);
    if (profile->file[0] != '\0')
        hr__error_prefix(reterr, "%s", profile->file);
    return HR_ERR_STATE;
}

/* ---- merging ---- */

/* The weight of a measurement that is `seconds` older than the other one. */
static double weight_of(const struct hr_profile_node *n, uint64_t seconds)
{
    return (double)n->records_in * exp2(-(double)seconds / (double)HR_PROFILE_HALF_LIFE);
}

static double mean(double a, double b, double share)
{
    return a + (b - a) * share;
}

/* The same where one of them, or both, may be unknown. */
static double known_mean(double a, double b, double share)
{
    return a < 0 ? b : b < 0 ? a : mean(a, b, share);
}

/* The half-width of the mean of two independent measurements. */
static double merged_width(const struct hr_profile_node *a,
                           const struct hr_profile_node *b, double share)
{
    double cpu_ns = mean(a->cpu_ns, b->cpu_ns, share);

    if (a->width < 0 || b->width < 0 || cpu_ns <= 0)
        return a->width < 0 ? b->width : a->width;
    return hypot((1 - share) * a->width * a->cpu_ns, share * b->width * b->cpu_ns) /
           cpu_ns;
}

/* Of the records of both: their own spread, and that of the two means. */
static double merged_deviation(const struct hr_profile_node *a,
                               const struct hr_profile_node *b, double share)
{
    double apart = (a->cpu_ns - b->cpu_ns) * sqrt(share * (1 - share));

    return hypot(hypot(a->deviation_ns * sqrt(1 - share), b->deviation_ns * sqrt(share)),
                 apart);
}

/* At most what a profile holds. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b < (uint64_t)EXACT_MAX ? a + b : (uint64_t)EXACT_MAX;
}

static void merge_node(struct hr_profile_node *a, const struct hr_profile_node *b)
{
    uint64_t newest = a->measured > b->measured ? a->measured : b->measured;
    double weight = weight_of(b, newest - b->measured);
    double share = weight / (weight + weight_of(a, newest - a->measured));

    if (b->records_in == 0)
        return;
    a->width = merged_width(a, b, share);
    a->deviation_ns = merged_deviation(a, b, share);
    a->fixed = known_mean(a->fixed, b->fixed, share);
    a->serial = known_mean(a->serial, b->serial, share);
    a->process_ns = known_mean(a->process_ns, b->process_ns, share);
    a->crowd = known_mean(a->crowd, b->crowd, share);
    a->ordered = known_mean(a->ordered, b->ordered, share);
    a->cpu_ns = mean(a->cpu_ns, b->cpu_ns, share);
    a->wait_ns = mean(a->wait_ns, b->wait_ns, share);
    a->bytes_in = mean(a->bytes_in, b->bytes_in, share);
    a->bytes_out = mean(a->bytes_out, b->bytes_out, share);
    a->records_in = sum(a->records_in, b->records_in);
    a->records_out = sum(a->records_out, b->records_out);
    a->measured = newest;
}

static void
merge_rates(struct hr_profile_machine *machine, const struct hr_profile_machine *other)
{
    machine->copy = machine->copy > 0 ? machine->copy : other->copy;
    machine->crowd = machine->crowd > 0 ? machine->crowd : other->crowd;
    machine->disk = machine->disk > 0 ? machine->disk : other->disk;
    machine->transfer_ns =
        machine->transfer_ns > 0 ? machine->transfer_ns : other->transfer_ns;
    machine->transfer = machine->transfer > 0 ? machine->transfer : other->transfer;
}

/* What tells machines apart, without the rates that were measured. */
static const struct hr_profile_item *
other_machine(const struct hr_profile *a, const struct hr_profile *b)
{
    for (size_t i = 0; i < hr__profile_where.count; i++) {
        const struct hr_profile_item *item = &hr__profile_where.items[i];

        if (item->type != HR_PROFILE_PERHAPS &&
            !item_equal(item, &a->machine, &b->machine))
            return item;
    }
    return NULL;
}

static enum hr_err check_alike(const struct hr_profile *a, const struct hr_profile *b,
                               struct hr_error *error)
{
    const struct hr_profile_item *item = other_machine(a, b);

    for (size_t i = 0; item == NULL && i < hr__profile_top.count; i++) {
        const struct hr_profile_item *other = &hr__profile_top.items[i];

        if (other->offset != offsetof(struct hr_profile, graph) &&
            other->type != HR_PROFILE_DOUBLE && !item_equal(other, a, b))
            item = other;
    }
    if (item == NULL)
        return HR_OK;
    return hr__fail(error, HR_ERR_STATE,
                    "profiles with a different \"%s\" cannot be merged; measure again "
                    "(headrace profile)",
                    item->key);
}

enum hr_err hr__profile_merge(struct hr_profile *profile, const struct hr_profile *other,
                              struct hr_error *reterr)
{
    size_t count = profile->node_count;

    assert(profile != other);
    HR_TRY(check_alike(profile, other, reterr));
    for (size_t i = 0; i < other->node_count; i++) {
        const struct hr_profile_node *from = &other->nodes[i];
        struct hr_profile_node copy = *from, *n;

        if (find(profile, from->fingerprint, from->name) != NULL)
            continue;
        n = hr__profile_add(profile, from->name, from->op);
        if (n == NULL)
            goto out_of_memory;
        copy.name = n->name;
        copy.op = n->op;
        *n = copy;
    }
    for (size_t i = 0; i < other->node_count; i++) {
        const struct hr_profile_node *from = &other->nodes[i];
        struct hr_profile_node *n = find(profile, from->fingerprint, from->name);

        if (n < profile->nodes + count)
            merge_node(n, from);
    }
    merge_rates(&profile->machine, &other->machine);
    profile->seconds = fmin(profile->seconds + other->seconds, NS_MAX);
    return HR_OK;
out_of_memory:
    while (profile->node_count > count) {
        profile->node_count--;
        hr__free(profile->nodes[profile->node_count].name);
        hr__free(profile->nodes[profile->node_count].op);
    }
    return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}
