/*
 * svc/compression_test.c - when compression is chosen, on links and CPUs that are
 * imitated: time, bytes and queues are numbers.
 */
#include "svc/compression.h"

#include <string.h>

#include "tests/support/check.h"

#define MS ((uint64_t)1000000)
#define NONE HR_COMPRESSION_NONE
#define ZSTD HR_COMPRESSION_ZSTD
#define LZ4 HR_COMPRESSION_LZ4

/* Texts: zstd is slower and smaller. */
static const struct hr_compression_cost texts[] = {
    [ZSTD] = {0.30, 2.5, 1.0},
    [LZ4] = {0.45, 1.5, 0.6},
};
static const struct hr_compression_cost photos[] = {
    [ZSTD] = {1.0, 2.0, 0.1},
    [LZ4] = {1.0, 0.5, 0.1},
};

static struct hr_compression_link link_of(double wire_ns, double make_ns)
{
    return (struct hr_compression_link){wire_ns, make_ns, 2, 2};
}

TEST(names_are_sets)
{
    CHECK_EQ_INT(hr__compression_set(NULL), HR_COMPRESSION_ALL);
    CHECK_EQ_INT(hr__compression_set("auto"), HR_COMPRESSION_ALL);
    CHECK_EQ_INT(hr__compression_set("zstd"), HR_COMPRESSION_BIT(ZSTD));
    CHECK_EQ_INT(hr__compression_set("none"), HR_COMPRESSION_BIT(NONE));
    CHECK_EQ_INT(hr__compression_set("gzip"), 0);
    for (unsigned kind = 0; kind < HR_COMPRESSION_KINDS; kind++)
        CHECK_EQ_INT(hr__compression_set(hr__compression_name((enum hr_compression)kind)),
                     HR_COMPRESSION_BIT(kind));
}

TEST(a_byte_takes_as_long_as_the_slowest_part)
{
    const struct hr_compression_link link = link_of(80, 10);

    CHECK_EQ_INT(hr__compression_time(&link, &texts[ZSTD]), 24); /* the link */
    CHECK_EQ_INT(hr__compression_time(&link, &(struct hr_compression_cost){0.1, 50, 1}),
                 50);
    CHECK_EQ_INT(hr__compression_time(&link, &(struct hr_compression_cost){0.1, 1, 60}),
                 60);
    CHECK_EQ_INT(/* making and compressing share the CPUs */
                 hr__compression_time(&link, &(struct hr_compression_cost){0.1, 30, 1}),
                 30);
    CHECK_EQ_INT(hr__compression_time(&(const struct hr_compression_link){0, 40, 1, 2},
                                      &(struct hr_compression_cost){0.1, 8, 1}),
                 40); /* another CPU compresses */
}

TEST(slow_links_compress_and_fast_ones_do_not)
{
    const struct hr_compression_link slow = link_of(80, 1), gigabit = link_of(8, 1),
                                     fast = link_of(0.8, 0.5), free_ = link_of(0, 1);

    CHECK_EQ_INT(hr__compression_best(&slow, texts, HR_COMPRESSION_ALL, NONE), ZSTD);
    CHECK_EQ_INT(hr__compression_best(&gigabit, texts, HR_COMPRESSION_ALL, NONE), ZSTD);
    CHECK_EQ_INT(hr__compression_best(&fast, texts, HR_COMPRESSION_ALL, NONE), NONE);
    CHECK_EQ_INT(hr__compression_best(&free_, texts, HR_COMPRESSION_ALL, NONE), NONE);
    CHECK_EQ_INT(hr__compression_best(&slow, photos, HR_COMPRESSION_ALL, NONE), NONE);
    /* between them the faster kind wins */
    CHECK_EQ_INT(hr__compression_best(&(const struct hr_compression_link){4, 0.1, 1, 2},
                                      texts, HR_COMPRESSION_ALL, NONE),
                 LZ4);
}

TEST(only_kinds_that_are_allowed_and_measured_are_chosen)
{
    const struct hr_compression_link slow = link_of(80, 1);
    struct hr_compression_cost costs[HR_COMPRESSION_KINDS];

    memcpy(costs, texts, sizeof costs);
    CHECK_EQ_INT(hr__compression_best(&slow, costs, HR_COMPRESSION_BIT(NONE), NONE),
                 NONE);
    CHECK_EQ_INT(hr__compression_best(&slow, costs,
                                      HR_COMPRESSION_BIT(NONE) | HR_COMPRESSION_BIT(LZ4),
                                      NONE),
                 LZ4);
    costs[ZSTD].ratio = 0;
    CHECK_EQ_INT(hr__compression_best(&slow, costs, HR_COMPRESSION_ALL, NONE), LZ4);
}

TEST(workers_whose_cpus_limit_do_not_compress)
{
    const struct hr_compression_link busy = link_of(8, 100);

    CHECK_EQ_INT(hr__compression_best(&busy, texts, HR_COMPRESSION_ALL, NONE), NONE);
    CHECK_EQ_INT(hr__compression_best(&busy, texts, HR_COMPRESSION_ALL, ZSTD), NONE);
}

TEST(a_choice_stays_within_a_margin)
{
    struct hr_compression_cost costs[HR_COMPRESSION_KINDS] = {
        [ZSTD] = {0.90, 1, 1}
    };
    const struct hr_compression_link link = link_of(80, 1);

    CHECK_EQ_INT(hr__compression_best(&link, costs, HR_COMPRESSION_ALL, NONE), NONE);
    CHECK_EQ_INT(hr__compression_best(&link, costs, HR_COMPRESSION_ALL, ZSTD), ZSTD);
    costs[ZSTD].ratio = 0.98;
    CHECK_EQ_INT(hr__compression_best(&link, costs, HR_COMPRESSION_ALL, ZSTD), NONE);
    costs[ZSTD] = (struct hr_compression_cost){0.50, 1, 1};
    costs[LZ4] = (struct hr_compression_cost){0.48, 1, 1};
    CHECK_EQ_INT(hr__compression_best(&link, costs, HR_COMPRESSION_ALL, ZSTD), ZSTD);
    costs[LZ4].ratio = 0.40;
    CHECK_EQ_INT(hr__compression_best(&link, costs, HR_COMPRESSION_ALL, ZSTD), LZ4);
}

/* ---- over time ---- */

/* A worker, a link and a client in steps of half a second. */
struct world {
    struct hr_compression_choice choice;
    const struct hr_compression_cost *costs; /* as they are */
    double wire_ns, make_ns, client_ns;      /* per byte; the client's consumer */
    double hidden_ns[HR_COMPRESSION_KINDS];  /* the same, that no measurement shows */
    uint64_t now, handed, delivered, samples, changes;
};

static void
begin(struct world *w, double wire_ns, const struct hr_compression_cost *costs)
{
    *w = (struct world){
        .costs = costs, .wire_ns = wire_ns, .make_ns = 1, .now = 1000 * MS};
    hr__compression_begin(&w->choice, HR_COMPRESSION_ALL, 2, 2);
}

static void step(struct world *w)
{
    const struct hr_compression_cost plain = {1, 0, 0};
    enum hr_compression kind = w->choice.now;
    const struct hr_compression_cost *cost = kind != NONE ? &w->costs[kind] : &plain;
    const struct hr_compression_link link = {w->wire_ns, w->make_ns, 2, 2};
    double ns = 500e6, time = hr__compression_time(&link, cost), wire;
    struct hr_compression_window window = {.ns = (uint64_t)ns};

    time += w->hidden_ns[kind];
    time = time > w->client_ns ? time : w->client_ns;
    wire = ns / time * cost->ratio;
    window.bytes = window.made_bytes = (uint64_t)(ns / time);
    window.busy_ns = (uint64_t)(wire * w->wire_ns);
    window.busy_bytes = (uint64_t)wire;
    window.make_ns = (uint64_t)(ns / time * w->make_ns);
    w->delivered += window.bytes;
    w->handed += window.busy_bytes;
    window.handed = w->handed;
    window.delivered = w->handed;
    w->now += window.ns;
    w->changes += hr__compression_review(&w->choice, &window, w->now);
    for (unsigned k = 0; k < HR_COMPRESSION_KINDS; k++) {
        bool sample = hr__compression_wants(&w->choice, (enum hr_compression)k, w->now);

        w->samples += sample;
        if (sample || (k != NONE && k == w->choice.now))
            hr__compression_measured(&w->choice, (enum hr_compression)k, &w->costs[k],
                                     w->now);
    }
}

static void steps(struct world *w, int count)
{
    for (int i = 0; i < count; i++)
        step(w);
}

TEST(a_slow_link_is_found_within_seconds_and_stays_compressed)
{
    struct world w;

    begin(&w, 80, texts);
    steps(&w, 4);
    CHECK_EQ_INT(w.choice.now, ZSTD);
    steps(&w, 2400);
    CHECK_EQ_INT(w.choice.now, ZSTD);
    CHECK_EQ_INT(w.changes, 1);
    CHECK(w.choice.tested);
}

TEST(a_link_that_does_not_limit_costs_not_even_a_sample)
{
    struct world w;

    begin(&w, 0.1, texts);
    steps(&w, 1000);
    CHECK_EQ_INT(w.choice.now, NONE);
    CHECK_EQ_INT(w.samples, 0);
    begin(&w, 80, texts); /* a slow link, and a consumer that takes less */
    w.client_ns = 300;
    steps(&w, 1000);
    CHECK_EQ_INT(w.samples + w.changes, 0);
}

TEST(photos_on_a_slow_link_are_sampled_now_and_then)
{
    struct world w;

    begin(&w, 80, photos);
    steps(&w, 1000);
    CHECK_EQ_INT(w.choice.now, NONE);
    CHECK(w.samples > 10);
    CHECK(w.samples <= 2 * 1000 / 10 + 2);
}

TEST(a_link_that_becomes_fast_is_noticed)
{
    struct world w;

    begin(&w, 80, texts);
    steps(&w, 100);
    CHECK_EQ_INT(w.choice.now, ZSTD);
    w.wire_ns = 0.1;
    steps(&w, 800);
    CHECK_EQ_INT(w.choice.now, NONE);
    w.wire_ns = 80;
    steps(&w, 20);
    CHECK_EQ_INT(w.choice.now, ZSTD);
}

TEST(what_does_not_deliver_more_is_dropped_and_tried_ever_less_often)
{
    struct world w, plain;

    begin(&w, 80, texts);
    w.hidden_ns[ZSTD] = w.hidden_ns[LZ4] = 100; /* in the client, say */
    steps(&w, 2400);
    begin(&plain, 80, photos);
    steps(&plain, 2400);
    CHECK(w.changes >= 2);
    CHECK(w.changes <= 32); /* of both kinds */
    CHECK((double)w.delivered > 0.95 * (double)plain.delivered);
}

TEST(the_other_kind_is_tried_when_one_does_not_deliver)
{
    struct world w;

    begin(&w, 80, texts);
    w.hidden_ns[ZSTD] = 100;
    steps(&w, 30);
    CHECK_EQ_INT(w.choice.now, LZ4);
    CHECK(w.choice.tested);
}

TEST(consumers_that_take_less_than_the_link_carries_end_it)
{
    struct world w;

    begin(&w, 80, texts);
    steps(&w, 20);
    CHECK_EQ_INT(w.choice.now, ZSTD);
    w.client_ns = 100;
    steps(&w, 100);
    CHECK_EQ_INT(w.choice.now, NONE);
    w.client_ns = 0;
    steps(&w, 20);
    CHECK_EQ_INT(w.choice.now, ZSTD);
}

TEST(a_single_kind_is_used_always_unless_it_fails)
{
    struct world w;

    begin(&w, 0.1, texts);
    hr__compression_begin(&w.choice, HR_COMPRESSION_BIT(LZ4), 2, 2);
    CHECK_EQ_INT(w.choice.now, LZ4);
    steps(&w, 10);
    CHECK_EQ_INT(w.choice.now, LZ4);
    CHECK_EQ_INT(w.samples, 0);
    hr__compression_forbid(&w.choice, LZ4);
    steps(&w, 10);
    CHECK_EQ_INT(w.choice.now, NONE);
}

TEST(a_kind_that_fails_is_replaced)
{
    struct world w;

    begin(&w, 80, texts);
    steps(&w, 10);
    CHECK_EQ_INT(w.choice.now, ZSTD);
    hr__compression_forbid(&w.choice, ZSTD);
    CHECK_EQ_INT(w.choice.now, NONE);
    steps(&w, 10);
    CHECK_EQ_INT(w.choice.now, LZ4);
}
