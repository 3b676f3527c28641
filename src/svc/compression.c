/*
 * svc/compression.c - see compression.h.
 */
#include "svc/compression.h"

#include <assert.h>
#include <string.h>

#define SECOND ((uint64_t)1000000000)
/* Another kind must be this much faster: to begin, to stay, to replace one by another. */
#define GAIN_TO_BEGIN 1.15
#define GAIN_TO_STAY 1.05
#define GAIN_TO_CHANGE 1.10
#define PASS 1.05   /* and deliver this many times the bytes of before */
#define LIMITS 0.85 /* of the time: something is on its way where the link limits */
#define WASTED 0.9  /* of the link's bytes: fewer need no compression */
#define TEST_NS (3 * SECOND)
#define REST_NS (30 * SECOND)
#define REST_MAX_NS (600 * SECOND)
#define PAUSE_NS (5 * SECOND) /* plain after a choice that ended as it gained nothing */
#define TRUST_NS (30 * SECOND)
#define TRUST_MAX_NS (300 * SECOND)
#define FRESH_NS (5 * SECOND)      /* a sample is believed for this long */
#define BUSY_WINDOWS 2u            /* a burst is no limit */
#define BUSY_BYTES_MIN (64u << 10) /* to measure a link */

/* ---- names ---- */

static const char *const names[HR_COMPRESSION_KINDS] = {"none", "zstd", "lz4"};

const char *hr__compression_name(enum hr_compression kind)
{
    return names[kind];
}

unsigned hr__compression_set(const char *name)
{
    if (name == NULL || strcmp(name, "auto") == 0)
        return HR_COMPRESSION_ALL;
    for (unsigned kind = 0; kind < HR_COMPRESSION_KINDS; kind++)
        if (strcmp(name, names[kind]) == 0)
            return HR_COMPRESSION_BIT(kind);
    return 0;
}

/* ---- the decision ---- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double hr__compression_time(const struct hr_compression_link *link,
                            const struct hr_compression_cost *cost)
{
    double make = larger(link->make_ns / link->makers,
                         (link->make_ns + cost->pack_ns) / link->cpus);

    /* one thread compresses, and one decompresses */
    return larger(larger(make, link->wire_ns * cost->ratio),
                  larger(cost->pack_ns, cost->unpack_ns));
}

static const struct hr_compression_cost plain = {.ratio = 1};

enum hr_compression
hr__compression_best(const struct hr_compression_link *link,
                     const struct hr_compression_cost costs[HR_COMPRESSION_KINDS],
                     unsigned allowed, enum hr_compression now)
{
    double without = hr__compression_time(link, &plain), best_time = without;
    enum hr_compression best = HR_COMPRESSION_NONE;
    double with = now != best ? hr__compression_time(link, &costs[now]) : without;

    for (unsigned kind = 1; kind < HR_COMPRESSION_KINDS; kind++) {
        double time;

        if (!(allowed & HR_COMPRESSION_BIT(kind)) || costs[kind].ratio <= 0)
            continue;
        time = hr__compression_time(link, &costs[kind]);
        if (time < best_time) {
            best_time = time;
            best = (enum hr_compression)kind;
        }
    }
    if (now == HR_COMPRESSION_NONE)
        return without >= best_time * GAIN_TO_BEGIN ? best : now;
    if (without < with * GAIN_TO_STAY || !(allowed & HR_COMPRESSION_BIT(now)))
        return HR_COMPRESSION_NONE;
    return with >= best_time * GAIN_TO_CHANGE ? best : now;
}

/* ---- the choice ---- */

/* The only kind of a set, or KINDS. */
static unsigned only_kind(unsigned set)
{
    for (unsigned kind = 0; kind < HR_COMPRESSION_KINDS; kind++)
        if (set == HR_COMPRESSION_BIT(kind))
            return kind;
    return HR_COMPRESSION_KINDS;
}

void hr__compression_begin(struct hr_compression_choice *choice, unsigned allowed,
                           unsigned makers, unsigned cpus)
{
    unsigned only = only_kind(allowed);

    assert(makers > 0 && cpus > 0);
    *choice = (struct hr_compression_choice){
        .allowed = allowed,
        .link = {.makers = makers, .cpus = cpus},
        .trust_ns = TRUST_NS
    };

    for (unsigned kind = 0; kind < HR_COMPRESSION_KINDS; kind++)
        choice->rest_ns[kind] = REST_NS;
    if (only < HR_COMPRESSION_KINDS)
        choice->now = (enum hr_compression)only;
}

static bool is_fixed(const struct hr_compression_choice *choice)
{
    return only_kind(choice->allowed) < HR_COMPRESSION_KINDS || choice->allowed == 0;
}

bool hr__compression_wants(const struct hr_compression_choice *choice,
                           enum hr_compression kind, uint64_t now)
{
    if (kind == HR_COMPRESSION_NONE || is_fixed(choice) || kind == choice->now ||
        !(choice->allowed & HR_COMPRESSION_BIT(kind)) ||
        now < choice->rest_until_ns[kind])
        return false;
    if (choice->now == HR_COMPRESSION_NONE && choice->busy_windows == 0)
        return false;
    return choice->measured_ns[kind] == 0 || now - choice->measured_ns[kind] >= FRESH_NS;
}

void hr__compression_measured(struct hr_compression_choice *choice,
                              enum hr_compression kind,
                              const struct hr_compression_cost *cost, uint64_t now)
{
    struct hr_compression_cost *own = &choice->costs[kind];

    if (choice->measured_ns[kind] == 0 || kind != choice->now) {
        *own = *cost;
    } else { /* every frame */
        own->ratio += (cost->ratio - own->ratio) / 8;
        own->pack_ns += (cost->pack_ns - own->pack_ns) / 8;
    }
    choice->measured_ns[kind] = now;
}

/* Plain frames from now on. */
static void end_choice(struct hr_compression_choice *choice)
{
    choice->now = HR_COMPRESSION_NONE;
    choice->busy_windows = 0;
    choice->judged_ns = 0;
    choice->tested = false;
}

void hr__compression_forbid(struct hr_compression_choice *choice,
                            enum hr_compression kind)
{
    choice->allowed &= ~HR_COMPRESSION_BIT(kind);
    if (choice->now == kind)
        end_choice(choice);
}

static void measure_link(struct hr_compression_choice *choice,
                         const struct hr_compression_window *w, uint64_t now)
{
    bool measurable = w->busy_bytes >= BUSY_BYTES_MIN && w->busy_ns >= w->ns / 4;
    bool busy = measurable && (double)w->busy_ns >= LIMITS * (double)w->ns;

    if (measurable) {
        choice->link.wire_ns = (double)w->busy_ns / (double)w->busy_bytes;
        choice->link_ns = now;
    }
    if (w->made_bytes > 0)
        choice->link.make_ns = (double)w->make_ns / (double)w->made_bytes;
    choice->busy_windows = busy ? choice->busy_windows + 1 : 0;
}

/* Returns a time and doubles it for the next use. */
static uint64_t use_time(uint64_t *ns, uint64_t most)
{
    uint64_t now = *ns;

    *ns = now < most / 2 ? 2 * now : most;
    return now;
}

/* Whether the test of the choice goes on, or it passed. */
static bool passes(struct hr_compression_choice *choice,
                   const struct hr_compression_window *w, uint64_t now)
{
    double rate;

    if (choice->tested)
        return true;
    if (w->delivered < choice->settled)
        return true; /* frames from before are on their way */
    if (choice->judged_ns == 0) {
        choice->judged_ns = now + TEST_NS;
        choice->test_ns = choice->test_bytes = 0;
        return true; /* this window is of both */
    }
    choice->test_ns += w->ns;
    choice->test_bytes += w->bytes;
    if (now < choice->judged_ns)
        return true;
    rate = (double)choice->test_bytes / (double)choice->test_ns;
    choice->tested = rate >= choice->plain_rate * PASS;
    if (choice->tested)
        choice->rest_ns[choice->now] = REST_NS;
    return choice->tested;
}

/* Whether plain frames would be delivered as fast as these. */
static bool is_wasted(const struct hr_compression_choice *choice,
                      const struct hr_compression_window *w)
{
    double rate = (double)w->bytes / (double)w->ns;

    return choice->tested && rate * choice->link.wire_ns < WASTED;
}

/* Whether the link was not measured for long: plain frames will show. */
static bool is_stale(struct hr_compression_choice *choice, uint64_t now)
{
    if (now - choice->link_ns < choice->trust_ns)
        return false;
    (void)use_time(&choice->trust_ns, TRUST_MAX_NS);
    return true;
}

static void pause_all(struct hr_compression_choice *choice, uint64_t now)
{
    for (unsigned kind = 1; kind < HR_COMPRESSION_KINDS; kind++)
        if (choice->rest_until_ns[kind] < now + PAUSE_NS)
            choice->rest_until_ns[kind] = now + PAUSE_NS;
    end_choice(choice);
}

/* Kinds that do not rest. */
static unsigned awake(const struct hr_compression_choice *choice, uint64_t now)
{
    unsigned set = choice->allowed;

    for (unsigned kind = 1; kind < HR_COMPRESSION_KINDS; kind++)
        if (now < choice->rest_until_ns[kind])
            set &= ~HR_COMPRESSION_BIT(kind);
    return set;
}

/* The choice is another one, whose test begins. */
static void begin_test(struct hr_compression_choice *choice, enum hr_compression kind,
                       const struct hr_compression_window *w)
{
    choice->now = kind;
    choice->settled = w->handed;
    choice->judged_ns = 0;
    choice->tested = false;
}

static void review_compressed(struct hr_compression_choice *choice,
                              const struct hr_compression_window *w, uint64_t now)
{
    enum hr_compression best;

    if (!passes(choice, w, now)) {
        choice->rest_until_ns[choice->now] =
            now + use_time(&choice->rest_ns[choice->now], REST_MAX_NS);
        end_choice(choice);
        return;
    }
    best = hr__compression_best(&choice->link, choice->costs, awake(choice, now),
                                choice->now);
    if (is_stale(choice, now))
        end_choice(choice);
    else if (best == HR_COMPRESSION_NONE || is_wasted(choice, w))
        pause_all(choice, now);
    else if (best != choice->now)
        begin_test(choice, best, w);
}

static void review_plain(struct hr_compression_choice *choice,
                         const struct hr_compression_window *w, uint64_t now)
{
    enum hr_compression best;

    if (choice->busy_windows < BUSY_WINDOWS)
        return;
    best = hr__compression_best(&choice->link, choice->costs, awake(choice, now),
                                HR_COMPRESSION_NONE);
    if (best == HR_COMPRESSION_NONE)
        return;
    choice->plain_rate = 1 / choice->link.wire_ns;
    begin_test(choice, best, w);
}

bool hr__compression_review(struct hr_compression_choice *choice,
                            const struct hr_compression_window *window, uint64_t now)
{
    enum hr_compression before = choice->now;

    assert(window->ns > 0);
    if (is_fixed(choice))
        return false;
    measure_link(choice, window, now);
    if (before == HR_COMPRESSION_NONE)
        review_plain(choice, window, now);
    else
        review_compressed(choice, window, now);
    return choice->now != before;
}
