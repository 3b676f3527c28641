/*
 * api/pack_api.c - hr_pack(): a packer (api/packer.c) and the iterator that feeds it.
 */
#include "core/error.h"
#include "headrace/pack.h"

#define POLL_NS 200000000u /* between calls of `progress` while a batch is awaited */

struct packing {
    struct hr_packer *packer;
    struct hr_iter *iter;
    const struct hr_pack_options *options;
    uint64_t done, expected; /* records; 0: not known */
    struct hr_error *error;
};

static bool stopped(const struct packing *p)
{
    const struct hr_pack_options *o = p->options;

    return o->progress != NULL && !o->progress(o->user, p->done, p->expected);
}

static enum hr_err take(struct packing *p, const struct hr_batch *batch)
{
    char *state = NULL;
    enum hr_err code;
    bool mark;

    HR_TRY(hr_packer_add(p->packer, batch, &mark, p->error));
    p->done++;
    if (!mark)
        return HR_OK;
    HR_TRY(hr_iter_save(p->iter, &state, p->error));
    code = hr_packer_mark(p->packer, state, p->error);
    hr_free(state);
    return code;
}

static enum hr_err run(struct packing *p)
{
    for (;;) {
        struct hr_batch *batch = NULL;
        enum hr_err code;

        if (stopped(p))
            return hr__fail(p->error, HR_ERR_CANCELLED, "stopped");
        code = hr_iter_next_for(p->iter, POLL_NS, &batch, p->error);
        if (code == HR_ERR_END)
            return hr_packer_finish(p->packer, p->error);
        if (code == HR_OK && batch != NULL)
            code = take(p, batch);
        hr_batch_unref(batch);
        if (code != HR_OK)
            return code;
    }
}

static enum hr_err
open_run(struct packing *p, struct hr_graph *graph, const struct hr_iter_options *options)
{
    struct hr_iter_options from = *options;
    struct hr_epoch_size size;

    from.state = hr_packer_state(p->packer);
    HR_TRY(hr_graph_epoch_size(graph, &from, &size, p->error));
    if (size.records >= 0)
        p->expected = (uint64_t)size.records * (uint64_t)options->epochs;
    return hr_iter_open(graph, &from, &p->iter, p->error);
}

static uint64_t errors_of(const struct hr_iter *iter)
{
    struct hr_iter_stats stats;

    hr_iter_stats(iter, &stats);
    return stats.errors;
}

enum hr_err hr_pack(struct hr_graph *graph, const struct hr_iter_options *options,
                    const struct hr_pack_options *pack, struct hr_pack_result *ret_result,
                    struct hr_error *reterr)
{
    struct packing p = {.options = pack, .error = reterr};
    struct hr_pack_result result;
    enum hr_err code;

    HR_TRY(hr_packer_open(graph, options, pack, &p.packer, reterr));
    hr_packer_result(p.packer, &result);
    p.done = result.records - result.records_earlier;
    code = hr_packer_complete(p.packer) ? HR_OK : open_run(&p, graph, options);
    if (p.iter != NULL)
        code = run(&p);
    hr_packer_result(p.packer, &result);
    result.errors = p.iter != NULL ? errors_of(p.iter) : 0;
    if (ret_result != NULL && (code == HR_OK || code == HR_ERR_CANCELLED))
        *ret_result = result;
    hr_iter_close(p.iter);
    hr_packer_close(p.packer);
    return code;
}
