/*
 * engine/done.c - layers of records done ahead of others, and their text form.
 */
#include "engine/done.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define WORLD_MAX 1000000u

void hr__done_finish(struct hr_done *done)
{
    for (size_t i = 0; i < done->count; i++)
        hr__free(done->layers[i].ends);
    hr__free(done->layers);
    memset(done, 0, sizeof *done);
}

static uint64_t layer_end(const struct hr_done_layer *layer)
{
    uint64_t furthest = 0;

    for (uint64_t r = 0; r < layer->world; r++) {
        uint64_t end = layer->ends[r].positions + (layer->ends[r].children > 0);

        furthest = end > furthest ? end : furthest;
    }
    return layer->base + furthest * layer->world;
}

enum hr_err hr__done_add(struct hr_done *done, uint64_t base, uint64_t world,
                         const struct hr_done_end *ends)
{
    struct hr_done_layer *grown =
        hr__realloc(done->layers, (done->count + 1) * sizeof *grown);
    struct hr_done_layer *layer;
    uint64_t end;

    if (grown == NULL)
        return HR_ERR_MEMORY;
    done->layers = grown;
    layer = &grown[done->count];
    *layer = (struct hr_done_layer){.base = base, .world = world};
    layer->ends = hr__malloc(world * sizeof *ends);
    if (layer->ends == NULL)
        return HR_ERR_MEMORY;
    memcpy(layer->ends, ends, world * sizeof *ends);
    done->count++;
    end = layer_end(layer);
    done->end = end > done->end ? end : done->end;
    return HR_OK;
}

bool hr__done_has(const struct hr_done *done, uint64_t position, uint64_t *ret_children)
{
    *ret_children = 0;
    if (position >= done->end)
        return false;
    for (size_t i = 0; i < done->count; i++) {
        const struct hr_done_layer *layer = &done->layers[i];
        const struct hr_done_end *end;
        uint64_t at;

        if (position < layer->base)
            continue;
        end = &layer->ends[(position - layer->base) % layer->world];
        at = (position - layer->base) / layer->world;
        if (at < end->positions)
            return true;
        if (at == end->positions && end->children > *ret_children)
            *ret_children = end->children;
    }
    return false;
}

void hr__done_print(const struct hr_done *done, uint64_t base, struct hr_str *out)
{
    const char *comma = "";

    hr__str_add(out, "\"done\":[");
    for (size_t i = 0; i < done->count; i++) {
        const struct hr_done_layer *layer = &done->layers[i];
        uint64_t children = 0;

        if (layer_end(layer) <= base)
            continue;
        hr__str_addf(out, "%s[%llu,%llu", comma, (unsigned long long)layer->base,
                     (unsigned long long)layer->world);
        for (uint64_t r = 0; r < layer->world; r++) {
            hr__str_addf(out, ",%llu", (unsigned long long)layer->ends[r].positions);
            children |= layer->ends[r].children;
        }
        for (uint64_t r = 0; children > 0 && r < layer->world; r++)
            hr__str_addf(out, ",%llu", (unsigned long long)layer->ends[r].children);
        hr__str_add(out, "]");
        comma = ",";
    }
    hr__str_add(out, "]");
}

static uint64_t number(const struct hr_doc *list, size_t at)
{
    const struct hr_doc *item = list->as.list.items[at];

    return item->kind == HR_DOC_INT && item->as.integer >= 0 ? (uint64_t)item->as.integer
                                                             : UINT64_MAX;
}

static enum hr_err damaged(struct hr_error *reterr)
{
    return hr__fail(
        reterr, HR_ERR_FORMAT,
        "the iterator state is damaged: \"done\" must be a list of lists of a "
        "base, a world, and a number or two for each of its ranks");
}

static enum hr_err
parse_layer(const struct hr_doc *list, struct hr_done *done, struct hr_error *reterr)
{
    struct hr_done_end *ends;
    size_t count = list->kind == HR_DOC_LIST ? list->as.list.count : 0;
    uint64_t base = count > 2 ? number(list, 0) : UINT64_MAX;
    uint64_t world = count > 2 ? number(list, 1) : 0;
    enum hr_err code = HR_OK;

    if (base > HR_STATE_NUMBER_MAX || world == 0 || world > WORLD_MAX ||
        (count != 2 + world && count != 2 + 2 * world))
        return damaged(reterr);
    ends = hr__calloc(world, sizeof *ends);
    if (ends == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (uint64_t r = 0; code == HR_OK && r < world; r++) {
        ends[r].positions = number(list, 2 + r);
        ends[r].children = count > 2 + world ? number(list, 2 + world + r) : 0;
        if (ends[r].positions > HR_STATE_NUMBER_MAX / world ||
            ends[r].children > HR_STATE_NUMBER_MAX)
            code = damaged(reterr);
    }
    if (code == HR_OK && (code = hr__done_add(done, base, world, ends)) != HR_OK)
        hr__fail(reterr, code, "out of memory");
    hr__free(ends);
    return code;
}

enum hr_err hr__done_parse(const struct hr_doc *doc, struct hr_done *ret_done,
                           struct hr_error *reterr)
{
    struct hr_done done = {0};
    enum hr_err code = HR_OK;

    if (doc == NULL || doc->kind != HR_DOC_LIST)
        return damaged(reterr);
    for (size_t i = 0; code == HR_OK && i < doc->as.list.count; i++)
        code = parse_layer(doc->as.list.items[i], &done, reterr);
    if (code != HR_OK) {
        hr__done_finish(&done);
        return code;
    }
    *ret_done = done;
    return HR_OK;
}
