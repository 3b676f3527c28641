/*
 * svc/cursor_state.c - checkpoints of clients: written, read, merged for another number
 * of consumers.
 */
#include "svc/cursor.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

/* ---- writing ---- */

static void print(const struct hr_cursor_options *o, uint64_t position,
                  const struct hr_done *done, struct hr_str *out)
{
    const struct hr_share *share = &o->share;

    hr__str_addf(out,
                 "{\"headrace_cursor\":%d,\"job\":\"%016llx\",\"membership\":%u,"
                 "\"world\":%u,\"rank\":%u,\"base\":%llu,\"end\":%llu,\"split\":%llu,"
                 "\"position\":%llu,\"ordered\":%s",
                 HR_CURSOR_VERSION, (unsigned long long)o->job, o->membership,
                 share->world, share->rank, (unsigned long long)share->base,
                 (unsigned long long)share->end, (unsigned long long)share->split,
                 (unsigned long long)position, o->ordered ? "true" : "false");
    if (!hr__done_is_empty(done)) {
        hr__str_add(out, ",");
        hr__done_print(done, out);
    }
    hr__str_add(out, "}");
}

/* Adds the owned positions [from, until) as runs of the epoch. */
static enum hr_err add_local(const struct hr_share *share, uint64_t from, uint64_t until,
                             struct hr_done *done, struct hr_error *reterr)
{
    while (from < until) {
        uint64_t run = hr__share_run(share, from);

        run = run < until - from ? run : until - from;
        HR_TRY(hr__done_add(done, hr__share_position(share, from), run, 1, reterr));
        from += run;
    }
    return HR_OK;
}

static bool is_taken(const struct hr_cursor *cursor, uint64_t local, size_t *piece)
{
    uint64_t bit = local & (cursor->room - 1);

    if (!(cursor->have[bit / 64] >> bit % 64 & 1))
        return false;
    while (*piece < cursor->piece_count &&
           cursor->pieces[*piece].from + cursor->pieces[*piece].count <= local)
        ++*piece;
    return *piece == cursor->piece_count || cursor->pieces[*piece].from > local;
}

/* What was taken beyond `next`. */
static enum hr_err
add_taken(const struct hr_cursor *cursor, struct hr_done *done, struct hr_error *reterr)
{
    uint64_t end = cursor->next + cursor->options.window, from = 0;
    bool inside = false;
    size_t piece = 0;

    end = end < cursor->size ? end : cursor->size;
    for (uint64_t at = cursor->next; at <= end; at++) {
        bool taken = at < end && is_taken(cursor, at, &piece);

        if (taken && !inside)
            from = at;
        if (!taken && inside)
            HR_TRY(add_local(&cursor->options.share, from, at, done, reterr));
        inside = taken;
    }
    return HR_OK;
}

static enum hr_err
add_done(const struct hr_done *from, struct hr_done *done, struct hr_error *reterr)
{
    for (size_t i = 0; i < from->run_count; i++)
        HR_TRY(hr__done_add(done, from->runs[i].from, from->runs[i].count,
                            from->runs[i].step, reterr));
    return HR_OK;
}

enum hr_err hr__cursor_save(const struct hr_cursor *cursor, struct hr_str *out,
                            struct hr_error *reterr)
{
    uint64_t position = hr__cursor_position(cursor);
    struct hr_done done = {0};
    enum hr_err code = add_done(&cursor->done, &done, reterr);

    if (code == HR_OK)
        code = add_taken(cursor, &done, reterr);
    if (code == HR_OK)
        code = hr__done_normalise(&done, reterr);
    if (code == HR_OK) {
        hr__done_cut(&done, position);
        print(&cursor->options, position, &done, out);
        if (!hr__str_ok(out))
            code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    hr__done_finish(&done);
    return code;
}

/* ---- reading ---- */

static enum hr_err damaged(const char *key, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_FORMAT,
                    "the checkpoint of a client is damaged: \"%s\" is missing or out of "
                    "range",
                    key);
}

static enum hr_err read_number(const struct hr_doc *doc, const char *key, uint64_t most,
                               uint64_t *ret_number, struct hr_error *reterr)
{
    const struct hr_doc *item = hr__doc_get(doc, key);

    if (item == NULL || item->kind != HR_DOC_INT || item->as.integer < 0 ||
        (uint64_t)item->as.integer > most)
        return damaged(key, reterr);
    *ret_number = (uint64_t)item->as.integer;
    return HR_OK;
}

static enum hr_err
read_job(const struct hr_doc *doc, uint64_t *ret_job, struct hr_error *reterr)
{
    static const char digits[] = "0123456789abcdef";
    const struct hr_doc *item = hr__doc_get(doc, "job");
    uint64_t job = 0;

    if (item == NULL || item->kind != HR_DOC_STRING || item->as.string.length != 16)
        return damaged("job", reterr);
    for (size_t i = 0; i < 16; i++) {
        const char *digit = memchr(digits, item->as.string.text[i], 16);

        if (digit == NULL)
            return damaged("job", reterr);
        job = job << 4 | (uint64_t)(digit - digits);
    }
    *ret_job = job;
    return HR_OK;
}

static enum hr_err read_share(const struct hr_doc *doc, struct hr_cursor_options *o,
                              uint64_t *ret_position, struct hr_error *reterr)
{
    struct hr_share *share = &o->share;
    uint64_t number = 0;

    HR_TRY(read_number(doc, "membership", UINT32_MAX, &number, reterr));
    o->membership = (uint32_t)number;
    HR_TRY(read_number(doc, "world", UINT32_MAX, &number, reterr));
    share->world = (uint32_t)number;
    if (number == 0)
        return damaged("world", reterr);
    HR_TRY(read_number(doc, "rank", number - 1, &number, reterr));
    share->rank = (uint32_t)number;
    HR_TRY(read_number(doc, "end", HR_STATE_NUMBER_MAX, &share->end, reterr));
    HR_TRY(read_number(doc, "base", share->end, &share->base, reterr));
    HR_TRY(read_number(doc, "split", HR_STATE_NUMBER_MAX, &share->split, reterr));
    if (share->split == 0)
        return damaged("split", reterr);
    return read_number(doc, "position", share->end, ret_position, reterr);
}

static enum hr_err
read_done(const struct hr_doc *doc, struct hr_done *ret_done, struct hr_error *reterr)
{
    const struct hr_doc *runs = hr__doc_get(doc, "done");

    if (runs == NULL)
        return HR_OK;
    return hr__done_parse(runs, NULL, ret_done, reterr);
}

static enum hr_err parse(const struct hr_doc *doc, struct hr_cursor_options *o,
                         struct hr_cursor_saved *saved, struct hr_error *reterr)
{
    const struct hr_doc *ordered;
    uint64_t version = 0;

    if (doc->kind != HR_DOC_MAP)
        return damaged("headrace_cursor", reterr);
    HR_TRY(read_number(doc, "headrace_cursor", UINT32_MAX, &version, reterr));
    if (version != HR_CURSOR_VERSION)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                        "the checkpoint of a client is of version %llu; this release "
                        "reads version %d",
                        (unsigned long long)version, HR_CURSOR_VERSION);
    HR_TRY(read_job(doc, &o->job, reterr));
    HR_TRY(read_share(doc, o, &saved->position, reterr));
    ordered = hr__doc_get(doc, "ordered");
    if (ordered == NULL || ordered->kind != HR_DOC_BOOL)
        return damaged("ordered", reterr);
    o->ordered = ordered->as.boolean;
    return read_done(doc, &saved->done, reterr);
}

enum hr_err hr__cursor_parse(const char *text, struct hr_cursor_options *options,
                             struct hr_cursor_saved *ret_saved, struct hr_error *reterr)
{
    struct hr_cursor_options read = *options;
    struct hr_cursor_saved saved = {0};
    struct hr_doc *doc;
    enum hr_err code;

    HR_TRY(hr__doc_parse(text, strlen(text), "checkpoint", &doc, reterr));
    code = parse(doc, &read, &saved, reterr);
    hr__doc_destroy(doc);
    if (code != HR_OK) {
        hr__done_finish(&saved.done);
        return code;
    }
    *options = read;
    *ret_saved = saved;
    return HR_OK;
}

/* ---- merging ---- */

struct merge {
    struct hr_cursor_options options; /* of the first */
    uint64_t lowest;                  /* position */
    uint64_t *positions;              /* by rank; UINT64_MAX: not there yet */
    struct hr_done done;
};

static enum hr_err
add_rank(struct merge *m, const struct hr_cursor_options *o,
         const struct hr_cursor_saved *saved, size_t count, struct hr_error *reterr)
{
    const struct hr_share *a = &m->options.share, *b = &o->share;

    if (m->options.job != o->job || m->options.membership != o->membership ||
        b->world != count || a->base != b->base || a->end != b->end ||
        a->split != b->split || m->options.ordered != o->ordered)
        return hr__fail(reterr, HR_ERR_STATE,
                        "checkpoints cannot be merged: all must be of one job and "
                        "membership, and of all of its %u ranks; %zu are given",
                        a->world, count);
    if (m->positions[b->rank] != UINT64_MAX)
        return hr__fail(reterr, HR_ERR_STATE,
                        "checkpoints cannot be merged: two are of rank %u", b->rank);
    m->positions[b->rank] = saved->position;
    if (saved->position < m->lowest)
        m->lowest = saved->position;
    return add_done(&saved->done, &m->done, reterr);
}

static enum hr_err
read_all(struct merge *m, const char *const *texts, size_t count, struct hr_error *reterr)
{
    for (size_t i = 0; i < count; i++) {
        struct hr_cursor_options o = m->options;
        struct hr_cursor_saved saved;
        enum hr_err code;

        HR_TRY(hr__cursor_parse(texts[i], &o, &saved, reterr));
        if (i == 0)
            m->options = o;
        code = add_rank(m, &o, &saved, count, reterr);
        hr__done_finish(&saved.done);
        HR_TRY(code);
    }
    return HR_OK;
}

/* All ranks have taken what they own below the lowest position; the others' lead is
 * added. The new base is the first position that nobody took. */
static enum hr_err close_gaps(struct merge *m, struct hr_error *reterr)
{
    struct hr_share share = m->options.share;

    for (uint32_t rank = 0; rank < share.world; rank++) {
        share.rank = rank;
        HR_TRY(add_local(&share, hr__share_below(&share, m->lowest),
                         hr__share_below(&share, m->positions[rank]), &m->done, reterr));
    }
    HR_TRY(hr__done_normalise(&m->done, reterr));
    m->lowest = hr__done_first_open(&m->done, m->lowest);
    m->lowest = m->lowest < share.end ? m->lowest : share.end;
    hr__done_cut(&m->done, m->lowest);
    return HR_OK;
}

static enum hr_err merge(struct merge *m, const char *const *texts, size_t count,
                         struct hr_str *out, struct hr_error *reterr)
{
    HR_TRY(read_all(m, texts, count, reterr));
    HR_TRY(close_gaps(m, reterr));
    m->options.membership++;
    m->options.share.base = m->lowest;
    m->options.share.world = 1;
    m->options.share.rank = 0;
    print(&m->options, m->lowest, &m->done, out);
    if (!hr__str_ok(out))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    return HR_OK;
}

enum hr_err hr__cursor_merge(const char *const *texts, size_t count, struct hr_str *out,
                             struct hr_error *reterr)
{
    struct merge m = {.lowest = UINT64_MAX};
    enum hr_err code;

    m.positions = hr__malloc((count > 0 ? count : 1) * sizeof *m.positions);
    if (m.positions == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    memset(m.positions, 0xff, count * sizeof *m.positions);
    code = count > 0
               ? merge(&m, texts, count, out, reterr)
               : hr__fail(reterr, HR_ERR_ARGUMENT, "there is no checkpoint to merge");
    hr__done_finish(&m.done);
    hr__free(m.positions);
    return code;
}
