/*
 * ops/ordinal.c - the state of a sequencer that counts.
 */
#include "ops/ordinal.h"

#include <assert.h>

#include "core/alloc.h"

/* Sums of a few of these do not wrap. */
#define ORDINAL_MAX ((uint64_t)1 << 60)

enum hr_err hr__ordinal_begin(const struct hr_sequence_begin *begin, void **sequencer)
{
    struct hr_ordinal *o = *sequencer;

    assert(begin->world > 0);
    if (o == NULL)
        o = hr__calloc(1, sizeof *o);
    if (o == NULL)
        return hr__fail(begin->error, HR_ERR_MEMORY, "out of memory");
    *o = (struct hr_ordinal){
        .params = begin->params, .rank = begin->rank, .world = begin->world};
    *sequencer = o;
    return HR_OK;
}

enum hr_sequence_ranks hr__ordinal_ranks(const void *params)
{
    (void)params;
    return HR_RANKS_OUTPUTS;
}

uint64_t hr__ordinal_number(const void *sequencer)
{
    return ((const struct hr_ordinal *)sequencer)->next;
}

enum hr_err hr__saved_number(const char *text, uint64_t most, uint64_t *ret_number,
                             struct hr_error *error)
{
    uint64_t number = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9' && number <= most; at++)
        number = 10 * number + (uint64_t)(*at - '0');
    if (at == text || *at != '\0' || number > most)
        return hr__fail(error, HR_ERR_FORMAT, "the state \"%.40s\" is not a count", text);
    *ret_number = number;
    return HR_OK;
}

enum hr_err hr__ordinal_restore(void *sequencer, const char *text, struct hr_error *error)
{
    return hr__saved_number(text, ORDINAL_MAX, &((struct hr_ordinal *)sequencer)->next,
                            error);
}

void hr__ordinal_end(void *sequencer)
{
    hr__free(sequencer);
}
