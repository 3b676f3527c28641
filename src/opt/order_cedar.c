/*
 * opt/order_cedar.c - which of several cheapest orders cedar takes, without listing them.
 *
 * cedar lists the orders of a sequence as follows. For each order of all steps but the
 * last one, `o`: that order and then `o`; and, when its own last step `t` shows up for
 * the first time and may swap with `o`: all orders of the sequence with `o` in the place
 * of `t`, and then `t`. Two facts follow. The first order that ends with `t` is the
 * sequence with `t` moved to its end. And of two such steps, neither of them `o`, the one
 * that stands later in the sequence shows up first. So the first of the cheapest orders
 * is found by comparing two candidates at each step, from the last one on.
 */
#include <assert.h>
#include <string.h>

#include "opt/order_sets.h"

/* After so many comparisons the last step stays; cedar would not end before. */
#define CALLS_MAX ((uint32_t)1 << 20)

struct section {
    size_t from;
    struct hr_order_window window;
    struct hr_order_sets sets;
};

struct search {
    struct section sections[HR_ORDER_STEPS_MAX];
    size_t section_count;
    uint8_t section_of[HR_ORDER_STEPS_MAX]; /* by step */
    uint32_t calls;
};

static size_t place_of(const uint8_t *sequence, size_t count, uint8_t step)
{
    size_t at = 0;

    while (at < count && sequence[at] != step)
        at++;
    assert(at < count);
    return at;
}

/* Moves the step at a place to the end. */
static void move_to_end(uint8_t *sequence, size_t count, size_t at)
{
    uint8_t step = sequence[at];

    memmove(sequence + at, sequence + at + 1, count - at - 1);
    sequence[count - 1] = step;
}

/* Whether cedar lists `order` before the first order of the sequence that ends with the
 * step at `place`, or `order` is that. */
static bool is_listed_before(const uint8_t *sequence, size_t count, const uint8_t *order,
                             size_t place)
{
    uint8_t other[HR_ORDER_STEPS_MAX];

    /* Drop the last steps that the order shares with the sequence. */
    while (memcmp(order, sequence, count) != 0) {
        if (place == count - 1)
            return false; /* the other is the sequence, which comes first */
        if (order[count - 1] != sequence[count - 1]) {
            memcpy(other, sequence, count);
            move_to_end(other, count, place);
            return memcmp(order, other, count) == 0 ||
                   place_of(sequence, count, order[count - 1]) > place;
        }
        count--;
    }
    return true;
}

/* The place of the step that shows up first among those but the last one that a cheapest
 * order of the sequence may end with, or -1; *ret_last says so of the last one. */
static int
find_end(const struct search *s, const uint8_t *sequence, size_t count, bool *ret_last)
{
    const struct section *section = &s->sections[s->section_of[sequence[count - 1]]];
    size_t from = section->from, at = count;
    uint32_t set = 0;

    for (size_t i = from; i < count; i++)
        set |= 1U << (sequence[i] - from);
    *ret_last = hr__order_sets_may_end(&section->sets, set,
                                       (uint32_t)(sequence[count - 1] - from));
    for (at = count - 1; at-- > from;)
        if (hr__order_sets_may_end(&section->sets, set, (uint32_t)(sequence[at] - from)))
            return (int)at;
    return -1;
}

/* Puts the sequence into the first of its cheapest orders. */
static void take_first(struct search *s, uint8_t *sequence, size_t count)
{
    for (; count > 1; count--) {
        uint8_t last = sequence[count - 1], rest[HR_ORDER_STEPS_MAX];
        bool ends = false;
        int place = find_end(s, sequence, count, &ends);

        assert(ends || place >= 0);
        if (place < 0 || (ends && s->calls == CALLS_MAX))
            continue;
        if (ends) {
            s->calls++;
            memcpy(rest, sequence, count - 1);
            take_first(s, rest, count - 1);
            if (is_listed_before(sequence, count - 1, rest, (size_t)place)) {
                memcpy(sequence, rest, count - 1);
                return;
            }
        }
        move_to_end(sequence, count, (size_t)place);
        assert(sequence[count - 2] == last);
        (void)last;
    }
}

static enum hr_err
prepare(const struct hr_order_chain *chain, struct search *s, struct hr_error *reterr)
{
    uint8_t written[HR_ORDER_STEPS_MAX];

    for (size_t i = 0; i < chain->step_count; i++)
        written[i] = (uint8_t)i;
    for (size_t from = 0, to; from < chain->step_count; from = to) {
        struct section *section = &s->sections[s->section_count];

        to = hr__order_section_end(chain, from);
        section->from = from;
        hr__order_window(chain, written, from, to, &section->window);
        HR_TRY(hr__order_sets(&section->window, &section->sets, reterr));
        for (size_t i = from; i < to; i++)
            s->section_of[i] = (uint8_t)s->section_count;
        s->section_count++;
    }
    return HR_OK;
}

static bool is_exact(const struct hr_order_chain *chain)
{
    for (size_t from = 0, to; from < chain->step_count; from = to) {
        to = hr__order_section_end(chain, from);
        if (to - from > HR_ORDER_EXACT_MAX)
            return false;
    }
    return true;
}

enum hr_err hr__order_cedar(const struct hr_order_chain *chain,
                            struct hr_order *ret_order, struct hr_error *reterr)
{
    struct hr_order made = {.best = true};
    struct search s = {.section_count = 0};
    enum hr_err code;

    if (!is_exact(chain))
        return hr__order_find(chain, ret_order, reterr);
    code = prepare(chain, &s, reterr);
    if (code == HR_OK) {
        for (size_t i = 0; i < chain->step_count; i++)
            made.steps[i] = (uint8_t)i;
        take_first(&s, made.steps, chain->step_count);
        assert(hr__order_is_legal(chain, made.steps));
        made.ns = hr__order_ns(chain, made.steps);
        *ret_order = made;
    }
    for (size_t i = 0; i < s.section_count; i++)
        hr__order_sets_finish(&s.sections[i].sets);
    return code;
}
