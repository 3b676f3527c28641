/*
 * engine/merge.c - merges the states that all ranks of a world saved at the same step
 * into one, for any world.
 *
 * It begins at the first record that is not done and lists the later ones that are
 * (struct hr_done). The graph is not needed.
 */
#include "engine/engine.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

struct merge {
    struct hr_doc **docs;
    struct hr_saved *saved; /* by rank */
    size_t count;
    struct hr_saved *starts; /* of ranks that have made no step yet */
    size_t start_count;
};

/* Whether the state was saved before the rank's first step, and so repeats what the rank
 * started from: a state that suits any rank. Moves it to the start of that. */
static bool is_start(const struct merge *m, struct hr_saved *one)
{
    uint64_t passed;

    if (one->world == m->count || (one->world > 0 && !one->even) ||
        __builtin_mul_overflow(one->end_position, one->world, &passed) ||
        passed > HR_STATE_NUMBER_MAX)
        return false;
    one->base += passed;
    one->position = one->child = one->end_position = one->end_child = 0;
    one->node_count = 0;
    return true;
}

static enum hr_err
place(struct merge *m, const struct hr_saved *one, size_t at, struct hr_error *reterr)
{
    if (one->world != m->count)
        return hr__fail(reterr, HR_ERR_STATE,
                        "states cannot be merged: state %zu of %zu: it is of a world of "
                        "%llu ranks, and the states of all of them are needed",
                        at + 1, m->count, (unsigned long long)one->world);
    if (one->rank >= m->count)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "states cannot be merged: state %zu of %zu: it is damaged: rank "
                        "%llu of %llu",
                        at + 1, m->count, (unsigned long long)one->rank,
                        (unsigned long long)one->world);
    if (m->saved[one->rank].fingerprint != NULL)
        return hr__fail(reterr, HR_ERR_STATE,
                        "states cannot be merged: state %zu of %zu: it is of rank %llu, "
                        "as another of them is",
                        at + 1, m->count, (unsigned long long)one->rank);
    m->saved[one->rank] = *one;
    return HR_OK;
}

static enum hr_err
parse(struct merge *m, const char *text, size_t at, struct hr_error *reterr)
{
    struct hr_saved one = {0};
    enum hr_err code = text != NULL ? hr__doc_parse(text, strlen(text), "the state",
                                                    &m->docs[at], reterr)
                                    : hr__fail(reterr, HR_ERR_ARGUMENT, "it is missing");

    if (code == HR_OK)
        code = hr__saved_parse(m->docs[at], &one, reterr);
    if (code != HR_OK) {
        hr__error_prefix(reterr, "states cannot be merged: state %zu of %zu", at + 1,
                         m->count);
        return code;
    }
    if (is_start(m, &one)) {
        m->starts[m->start_count++] = one;
        return HR_OK;
    }
    code = place(m, &one, at, reterr);
    if (code != HR_OK)
        hr__done_finish(&one.done);
    return code;
}

/* Fills in the initial state of ranks that have none. */
static void place_starts(struct merge *m)
{
    for (size_t r = 0; r < m->count; r++)
        if (m->saved[r].fingerprint == NULL)
            m->saved[r] = m->starts[--m->start_count];
}

static enum hr_err check(const struct merge *m, struct hr_error *reterr)
{
    const struct hr_saved *first = &m->saved[0];

    for (size_t r = 0; r < m->count; r++) {
        const struct hr_saved *one = &m->saved[r];

        if (!one->moves)
            return hr__fail(
                reterr, HR_ERR_STATE,
                "states cannot be merged: windows of records, batches by length, and "
                "after a filter a window shuffle, take or skip (or batches that are "
                "taken apart) tie a state to its rank and world");
        if (strcmp(one->fingerprint, first->fingerprint) != 0 || one->seed != first->seed)
            return hr__fail(reterr, HR_ERR_STATE,
                            "states cannot be merged: ranks 0 and %zu ran different "
                            "graphs, data sets or seeds",
                            r);
        if (one->epoch != first->epoch)
            return hr__fail(reterr, HR_ERR_STATE,
                            "states cannot be merged: rank 0 is in epoch %llu, rank "
                            "%zu in epoch %llu; save all ranks at the same step",
                            (unsigned long long)first->epoch, r,
                            (unsigned long long)one->epoch);
        if (one->base != first->base || !hr__done_equal(&one->done, &first->done))
            return hr__fail(reterr, HR_ERR_STATE,
                            "states cannot be merged: ranks 0 and %zu began the epoch at "
                            "different places",
                            r);
    }
    return HR_OK;
}

/* Adds to the first state's done records what all ranks did since they began, and sets
 * *ret_base to where the new world begins. */
static enum hr_err add_done(struct merge *m, uint64_t *ret_base, struct hr_error *reterr)
{
    struct hr_saved *first = &m->saved[0];
    struct hr_done *done = &first->done;

    for (size_t r = 0; r < m->count; r++) {
        const struct hr_saved *one = &m->saved[r];
        uint64_t from = first->base + r;

        HR_TRY(hr__done_add(done, from, one->end_position, m->count, reterr));
        HR_TRY(hr__done_add_children(done, from + one->end_position * m->count,
                                     one->end_child, reterr));
    }
    HR_TRY(hr__done_normalise(done, reterr));
    *ret_base = hr__done_first_open(done, first->base);
    hr__done_cut(done, *ret_base);
    return HR_OK;
}

static void print(const struct merge *m, uint64_t base, struct hr_str *out)
{
    const struct hr_saved *first = &m->saved[0];
    uint64_t records = 0;

    for (size_t r = 0; r < m->count; r++)
        if (m->saved[r].records > records)
            records = m->saved[r].records;
    hr__str_addf(out, "{\"headrace_state\":%d,\"fingerprint\":", HR_STATE_VERSION);
    hr__str_add_json(out, first->fingerprint, strlen(first->fingerprint));
    hr__str_addf(out,
                 ",\"seed\":%llu,\"epoch\":%llu,\"base\":%llu,\"position\":0,"
                 "\"child\":0,\"world\":0,\"rank\":0,\"records\":%llu,\"moves\":true,"
                 "\"even\":%s,\"end\":[0,0]",
                 (unsigned long long)first->seed, (unsigned long long)first->epoch,
                 (unsigned long long)base, (unsigned long long)records,
                 hr__done_is_empty(&first->done) ? "true" : "false");
    if (!hr__done_is_empty(&first->done)) {
        hr__str_add(out, ",");
        hr__done_print(&first->done, out);
    }
    if (first->classes != NULL) {
        hr__str_add(out, ",\"classes\":");
        hr__doc_print_json(first->classes, false, out);
    }
    hr__str_add(out, "}");
}

static void finish(struct merge *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->saved != NULL)
            hr__done_finish(&m->saved[i].done);
        if (m->docs != NULL)
            hr__doc_destroy(m->docs[i]);
    }
    for (size_t i = 0; i < m->start_count; i++)
        hr__done_finish(&m->starts[i].done);
    hr__free(m->starts);
    hr__free(m->saved);
    hr__free(m->docs);
}

enum hr_err hr__state_merge(const char *const *states, size_t count, struct hr_str *out,
                            struct hr_error *reterr)
{
    struct merge m = {.docs = hr__calloc(count, sizeof *m.docs),
                      .saved = hr__calloc(count, sizeof *m.saved),
                      .starts = hr__calloc(count, sizeof *m.starts),
                      .count = count};
    uint64_t base = 0;
    enum hr_err code = HR_OK;

    if (m.docs == NULL || m.saved == NULL || m.starts == NULL)
        code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; code == HR_OK && i < count; i++)
        code = parse(&m, states[i], i, reterr);
    if (code == HR_OK) {
        place_starts(&m);
        code = check(&m, reterr);
    }
    if (code == HR_OK && (code = add_done(&m, &base, reterr)) != HR_OK)
        hr__error_prefix(reterr, "states cannot be merged");
    if (code == HR_OK) {
        print(&m, base, out);
        if (!hr__str_ok(out))
            code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    finish(&m);
    return code;
}
