/*
 * opt/cedar_place.c - see cedar_place.h.
 */
#include "opt/cedar_place.h"

#include <math.h>
#include <string.h>

static double alone_ms(const struct hr_cedar_path *path, size_t from, size_t to)
{
    double ms = 0;

    for (size_t i = from; i < to; i++)
        ms += path->ms[i];
    return ms;
}

/* The end of the places that can share a slice with this one, which can be offloaded. */
static size_t
slices_end(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
           size_t from, enum hr_cedar_variant variant)
{
    size_t end = hr__cedar_run_end(model, path, from, variant);

    return model->options->fusion && end > from ? end : from + 1;
}

static bool is_worthwhile(const struct hr_cedar_model *model,
                          const struct hr_cedar_path *path, size_t from, size_t to)
{
    double part = 0;

    for (size_t i = from; i < to; i++)
        part += model->parts[path->order[i]];
    return part >= HR_CEDAR_PART_MIN;
}

/* ---- cedar's ---- */

/* Without a prefetcher cedar does not see the pipes that can be fused at the end. */
static size_t
seen_end(const struct hr_cedar_model *model, const struct hr_cedar_path *path)
{
    size_t end = model->count;

    if (model->options->prefetch || !model->options->fusion)
        return end;
    while (end > 1 && model->stats->pipes[path->order[end - 1]].fusable &&
           (int)end - 1 != path->cache)
        end--;
    return end;
}

/* Whether a member gains by itself. */
static bool
is_candidate(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
             size_t from, size_t to, enum hr_cedar_variant variant)
{
    for (size_t i = from; i < to; i++)
        if (hr__cedar_left_ms(model, path, i, variant) < path->ms[i])
            return true;
    return false;
}

struct choice {
    size_t from, to;
    double saved;
};

static void
look_at(const struct hr_cedar_model *model, const struct hr_cedar_path *path, size_t from,
        size_t to, enum hr_cedar_variant variant, struct choice *best)
{
    double saved;

    if (!is_candidate(model, path, from, to, variant))
        return;
    saved = alone_ms(path, from, to) - hr__cedar_slice_ms(model, path, from, to, variant);
    if (saved > best->saved + HR_CEDAR_SAME * path->total_ms)
        *best = (struct choice){from, to, saved};
}

/* The slice that saves most among places that are not taken. */
static struct choice
find_slice(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
           enum hr_cedar_variant variant, uint64_t taken)
{
    struct choice best = {.saved = 0};
    size_t seen = seen_end(model, path);

    for (size_t from = 1; from < seen; from++) {
        size_t end;

        if (!hr__cedar_may_offload(model, path, from, variant))
            continue;
        end = slices_end(model, path, from, variant);
        for (size_t to = from + 1; to <= end && (taken >> (to - 1) & 1) == 0; to++)
            look_at(model, path, from, to, variant, &best);
    }
    return best;
}

void hr__cedar_place(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
                     enum hr_cedar_variant variant, struct hr_cedar_places *ret_places)
{
    uint64_t taken = 0, begins = 0;
    uint8_t ends[HR_CEDAR_PIPES_MAX];
    struct choice found;

    *ret_places = (struct hr_cedar_places){.ms = path->total_ms};
    if (variant == HR_CEDAR_NONE)
        return;
    while ((found = find_slice(model, path, variant, taken)).saved > 0) {
        for (size_t i = found.from; i < found.to; i++)
            taken |= (uint64_t)1 << i;
        if (!is_worthwhile(model, path, found.from, found.to))
            continue;
        begins |= (uint64_t)1 << found.from;
        ends[found.from] = (uint8_t)found.to;
        ret_places->ms -= found.saved;
    }
    for (size_t i = 0; i < model->count; i++)
        if ((begins >> i & 1) != 0)
            ret_places->slices[ret_places->count++] =
                (struct hr_cedar_slice){(uint8_t)i, ends[i]};
}

/* ---- the best ---- */

/* By place: what the places before it take at least, and where the last slice begins, the
 * place itself if the last one is in no slice; and what is left of it when offloaded. */
struct table {
    double least[HR_CEDAR_PIPES_MAX + 1], left[HR_CEDAR_PIPES_MAX];
    uint8_t begins[HR_CEDAR_PIPES_MAX + 1];
};

static void improve(struct table *table, size_t at, double ms, size_t begins, double same)
{
    if (ms >= table->least[at] - same)
        return;
    table->least[at] = ms;
    table->begins[at] = (uint8_t)begins;
}

/* Slices [from, to) for all `to` up to `end`; as for cedar, a member must gain alone: the
 * model's credit for bytes between pipes is no reason to move them. */
static void
try_slices(const struct hr_cedar_model *model, const struct hr_cedar_path *path,
           size_t from, size_t end, struct table *table)
{
    double between = 0, left = 0, part = 0;
    bool gains = false;

    for (size_t to = from + 1; to <= end; to++) {
        double ends = path->bytes_in[from] + path->bytes_out[to - 1];
        double left_ms = table->left[to - 1];

        if (to - 1 > from)
            between += 2 * path->bytes_in[to - 1];
        gains = gains || left_ms < path->ms[to - 1];
        left += left_ms;
        part += model->parts[path->order[to - 1]];
        if (gains && part >= HR_CEDAR_PART_MIN)
            improve(table, to,
                    table->least[from] +
                        (ends > 0 ? left * ends / (ends + between) : left),
                    from, HR_CEDAR_SAME * path->total_ms);
    }
}

void hr__cedar_place_best(const struct hr_cedar_model *model,
                          const struct hr_cedar_path *path, enum hr_cedar_variant variant,
                          struct hr_cedar_places *ret_places)
{
    struct table table = {.least = {0}};
    double rest = path->total_ms - alone_ms(path, 0, model->count);

    for (size_t i = 0; i < model->count; i++) {
        table.least[i + 1] = HUGE_VAL;
        if (variant != HR_CEDAR_NONE && hr__cedar_may_offload(model, path, i, variant))
            table.left[i] = hr__cedar_left_ms(model, path, i, variant);
    }
    for (size_t from = 0; from < model->count; from++) {
        improve(&table, from + 1, table.least[from] + path->ms[from], from + 1, 0);
        if (variant != HR_CEDAR_NONE && hr__cedar_may_offload(model, path, from, variant))
            try_slices(model, path, from, slices_end(model, path, from, variant), &table);
    }
    *ret_places = (struct hr_cedar_places){.ms = rest + table.least[model->count]};
    for (size_t at = model->count; at > 0;) {
        if (table.begins[at] == at) {
            at--;
            continue;
        }
        memmove(ret_places->slices + 1, ret_places->slices,
                ret_places->count++ * sizeof *ret_places->slices);
        ret_places->slices[0] = (struct hr_cedar_slice){table.begins[at], (uint8_t)at};
        at = table.begins[at];
    }
}
