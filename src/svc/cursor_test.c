/*
 * svc/cursor_test.c - cursors against lists of records: frames in any order, twice, cut
 * anywhere; checkpoints at any moment; merged for any world.
 */
#include "svc/cursor.h"

#include "core/alloc.h"
#include "core/rng.h"
#include "tests/support/check.h"

#define RECORDS 400
#define RANKS 4

static struct hr_rng rng;

static uint32_t below(uint64_t n)
{
    return (uint32_t)hr__rng_below(&rng, n);
}

static void start(void)
{
    hr__rng_init(&rng, check_seed(), 0, 0);
}

static struct hr_cursor_options plain(void)
{
    return (struct hr_cursor_options){
        .job = 0xabcdef0123456789,
        .share = {.base = 0, .end = 100, .split = 10, .world = 1, .rank = 0},
        .window = 32,
        .budget = 1000,
        .pieces = 8,
        .ordered = true
    };
}

static void close_cursor(struct hr_cursor *cursor)
{
    while (hr__cursor_drop(cursor) != NULL)
        ;
    hr__cursor_finish(cursor);
}

static void open_at(struct hr_cursor *cursor, const char *text, uint32_t world,
                    uint32_t rank, bool divide)
{
    struct hr_cursor_options options = plain();
    struct hr_cursor_saved saved;

    options.window = 1 + below(60);
    options.budget = 1 + below(600);
    CHECK_OK(hr__cursor_parse(text, &options, &saved, NULL));
    if (divide) {
        options.share.world = world;
        options.share.rank = rank;
    }
    CHECK_OK(hr__cursor_init(cursor, &options, NULL));
    hr__cursor_resume(cursor, &saved);
}

static char *save(const struct hr_cursor *cursor)
{
    struct hr_error error = {0};
    struct hr_str text;

    hr__str_init(&text);
    if (hr__cursor_save(cursor, &text, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return hr__str_take(&text);
}

/* Offers a frame at a random place, most often near the cursor. */
static void offer(struct hr_cursor *cursor)
{
    static char payload;
    const struct hr_share *share = &cursor->options.share;
    uint64_t near = cursor->next + below(cursor->options.window + 5), local, run;
    uint32_t count;
    bool kept;

    if (cursor->size == 0)
        return;
    local = below(5) == 0 ? below(cursor->size) : near;
    if (below(3) == 0)
        local = cursor->next;
    if (local >= cursor->size)
        return;
    run = hr__share_run(share, local);
    count = 1 + below(run < 12 ? run : 12);
    CHECK_OK(hr__cursor_accept(cursor, hr__share_position(share, local), count,
                               1 + below(40), false, &payload, &kept, NULL));
    CHECK(cursor->bytes <= cursor->options.budget + 40);
    CHECK(cursor->piece_count <= cursor->options.pieces + 1);
}

/* What was taken in the surviving history. */
struct history {
    uint8_t taken[RECORDS], committed[RECORDS];
    uint64_t last, committed_last;
    bool any, committed_any;
};

static void take(struct hr_cursor *cursor, struct history *h, uint32_t most)
{
    struct hr_taken taken;

    if (!hr__cursor_take(cursor, most, &taken))
        return;
    CHECK(taken.count > 0 && taken.count <= most);
    for (uint32_t i = 0; i < taken.count; i++) {
        uint64_t p = taken.position + i;

        CHECK_EQ_INT(h->taken[p]++, 0);
        if (cursor->options.ordered && h->any)
            CHECK(p > h->last);
        h->last = p;
        h->any = true;
    }
}

static void commit(struct history *h)
{
    memcpy(h->committed, h->taken, sizeof h->taken);
    h->committed_last = h->last;
    h->committed_any = h->any;
}

static void go_back(struct history *h)
{
    memcpy(h->taken, h->committed, sizeof h->taken);
    h->last = h->committed_last;
    h->any = h->committed_any;
}

/* Runs a rank for some steps, with checkpoints and crashes; returns its checkpoint. */
static char *run(char *text, uint32_t world, uint32_t rank, bool divide, uint32_t steps,
                 struct history *h)
{
    struct hr_cursor cursor;

    open_at(&cursor, text, world, rank, divide);
    for (uint32_t i = 0; i < steps || (steps == 0 && !hr__cursor_is_at_end(&cursor));
         i++) {
        offer(&cursor);
        if (below(2) == 0)
            take(&cursor, h, 1 + below(5));
        if (below(40) == 0) {
            hr__free(text);
            text = save(&cursor);
            commit(h);
        } else if (below(60) == 0) {
            close_cursor(&cursor);
            open_at(&cursor, text, world, rank, divide && strstr(text, "\"world\":1,"));
            go_back(h);
        }
    }
    hr__free(text);
    text = save(&cursor);
    commit(h);
    close_cursor(&cursor);
    return text;
}

static void random_epoch(bool ordered)
{
    struct hr_cursor_options options = plain();
    uint32_t world = 1;
    struct history total = {0};
    struct hr_cursor cursor;
    char *text;

    options.ordered = ordered;
    options.share.end = below(RECORDS + 1);
    options.share.split = 1 + below(20);
    CHECK_OK(hr__cursor_init(&cursor, &options, NULL));
    text = save(&cursor);
    close_cursor(&cursor);
    for (int membership = 0; membership < 4; membership++) {
        char *texts[RANKS];
        struct hr_error error = {0};
        struct hr_str merged;

        world = 1 + below(RANKS);
        for (uint32_t rank = 0; rank < world; rank++) {
            struct history h = {0};

            memcpy(h.taken, total.taken, sizeof h.taken);
            commit(&h);
            texts[rank] = run(hr__strdup(text), world, rank, true,
                              membership == 3 ? 0 : 1 + below(150), &h);
            memcpy(total.taken, h.taken, sizeof h.taken);
        }
        hr__str_init(&merged);
        if (hr__cursor_merge((const char *const *)texts, world, &merged, &error) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s", error.message);
        for (uint32_t rank = 0; rank < world; rank++)
            hr__free(texts[rank]);
        hr__free(text);
        text = hr__str_take(&merged);
    }
    for (uint64_t p = 0; p < options.share.end; p++)
        CHECK_EQ_INT(total.taken[p], 1);
    hr__free(text);
}

TEST(an_epoch_in_order_gives_each_record_once_through_crashes_and_other_worlds)
{
    start();
    for (int trial = 0; trial < 150; trial++)
        random_epoch(true);
}

TEST(an_epoch_in_any_order_gives_each_record_once_through_crashes_and_other_worlds)
{
    start();
    for (int trial = 0; trial < 150; trial++)
        random_epoch(false);
}

TEST(the_frame_at_the_cursor_is_accepted_whatever_is_held)
{
    struct hr_cursor_options options = plain();
    struct hr_cursor cursor;
    struct hr_taken taken;
    char payload;
    bool kept;

    options.budget = 100;
    CHECK_OK(hr__cursor_init(&cursor, &options, NULL));
    CHECK_OK(hr__cursor_accept(&cursor, 10, 5, 80, false, &payload, &kept, NULL));
    CHECK(kept);
    CHECK_OK(hr__cursor_accept(&cursor, 15, 5, 30, false, &payload, &kept, NULL));
    CHECK(!kept);
    CHECK_OK(hr__cursor_accept(&cursor, 40, 1, 1, false, &payload, &kept, NULL));
    CHECK(!kept); /* beyond the window */
    CHECK(!hr__cursor_take(&cursor, 100, &taken));
    CHECK_OK(hr__cursor_accept(&cursor, 0, 10, 500, false, &payload, &kept, NULL));
    CHECK(kept);
    CHECK_EQ_INT(cursor.bytes, 580);
    CHECK(hr__cursor_take(&cursor, 4, &taken));
    CHECK(!taken.last && taken.position == 0 && taken.count == 4 && taken.skip == 0);
    CHECK(hr__cursor_take(&cursor, 100, &taken));
    CHECK(taken.last && taken.position == 4 && taken.count == 6 && taken.skip == 4);
    CHECK(hr__cursor_take(&cursor, 100, &taken));
    CHECK_EQ_INT(cursor.bytes, 0);
    CHECK_EQ_INT(hr__cursor_position(&cursor), 15);
    hr__cursor_finish(&cursor);
}

TEST(of_a_frame_only_what_is_missing_is_kept)
{
    struct hr_cursor_options options = plain();
    struct hr_cursor cursor;
    struct hr_taken taken;
    char payload;
    bool kept;

    options.ordered = false;
    CHECK_OK(hr__cursor_init(&cursor, &options, NULL));
    CHECK_OK(hr__cursor_accept(&cursor, 4, 2, 1, false, &payload, &kept, NULL));
    CHECK(kept && hr__cursor_take(&cursor, 9, &taken));
    CHECK_OK(hr__cursor_accept(&cursor, 2, 3, 1, false, &payload, &kept, NULL));
    CHECK(kept && hr__cursor_take(&cursor, 9, &taken));
    CHECK(taken.position == 2 && taken.count == 2 && taken.skip == 0);
    CHECK_OK(hr__cursor_accept(&cursor, 4, 4, 1, false, &payload, &kept, NULL));
    CHECK(kept && hr__cursor_take(&cursor, 9, &taken));
    CHECK(taken.position == 6 && taken.count == 2 && taken.skip == 2);
    CHECK_OK(hr__cursor_accept(&cursor, 2, 6, 1, false, &payload, &kept, NULL));
    CHECK(!kept);
    CHECK_EQ_INT(hr__cursor_position(&cursor), 0);
    hr__cursor_finish(&cursor);
}

TEST(positions_of_others_are_an_error)
{
    struct hr_cursor_options options = plain();
    struct hr_error error = {0};
    struct hr_cursor cursor;
    bool kept;

    options.share.world = 2;
    CHECK_OK(hr__cursor_init(&cursor, &options, NULL));
    CHECK_ERR(HR_ERR_FORMAT,
              hr__cursor_accept(&cursor, 12, 1, 1, false, &kept, &kept, &error));
    CHECK_EQ_STR(error.message, "a worker sent 1 positions from 12 on, which rank 0 of 2 "
                                "does not own");
    CHECK_ERR(HR_ERR_FORMAT,
              hr__cursor_accept(&cursor, 8, 3, 1, false, &kept, &kept, NULL));
    CHECK_ERR(HR_ERR_FORMAT,
              hr__cursor_accept(&cursor, 98, 3, 1, false, &kept, &kept, NULL));
    CHECK_ERR(HR_ERR_FORMAT,
              hr__cursor_accept(&cursor, 8, 0, 1, false, &kept, &kept, NULL));
    hr__cursor_finish(&cursor);
    options.window = 0;
    CHECK_ERR(HR_ERR_ARGUMENT, hr__cursor_init(&cursor, &options, &error));
    hr__cursor_finish(&cursor);
}

#define HEAD "{\"headrace_cursor\":1,\"job\":\"0000000000000017\",\"membership\":0,"
#define GOOD                                                                             \
    HEAD "\"world\":2,\"rank\":%d,\"base\":0,\"end\":40,\"split\":5,\"position\":%d,"    \
         "\"ordered\":%s}"

TEST(damaged_checkpoints_are_refused_with_the_key)
{
    static const struct {
        const char *text, *part;
        enum hr_err code;
    } cases[] = {
        {"[]",                                                                            "headrace_cursor", HR_ERR_FORMAT     },
        {"{\"headrace_cursor\":2}",                                                       "version 2",       HR_ERR_UNSUPPORTED},
        {"{\"headrace_cursor\":1,\"job\":\"17\"}",                                        "\"job\"",         HR_ERR_FORMAT     },
        {"{\"headrace_cursor\":1,\"job\":\"000000000000001G\"}",                          "\"job\"",
         HR_ERR_FORMAT                                                                                                         },
        {HEAD "\"world\":0}",                                                             "\"world\"",       HR_ERR_FORMAT     },
        {HEAD "\"world\":2,\"rank\":2}",                                                  "\"rank\"",        HR_ERR_FORMAT     },
        {HEAD "\"world\":2,\"rank\":1,\"end\":-1}",                                       "\"end\"",         HR_ERR_FORMAT     },
        {HEAD "\"world\":2,\"rank\":1,\"end\":9,\"base\":10}",                            "\"base\"",        HR_ERR_FORMAT     },
        {HEAD "\"world\":2,\"rank\":1,\"end\":9,\"base\":0,\"split\":0}",                 "\"split\"",
         HR_ERR_FORMAT                                                                                                         },
        {HEAD "\"world\":2,\"rank\":1,\"end\":9,\"base\":0,\"split\":5,\"position\":10}",
         "\"position\"",                                                                                     HR_ERR_FORMAT     },
        {HEAD "\"world\":2,\"rank\":1,\"end\":9,\"base\":0,\"split\":5,\"position\":1}",
         "\"ordered\"",                                                                                      HR_ERR_FORMAT     },
        {HEAD "\"world\":2,\"rank\":1,\"end\":9,\"base\":0,\"split\":5,\"position\":1,"
              "\"ordered\":true,\"done\":[[1]]}",                                "\"done\"",        HR_ERR_FORMAT     },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hr_cursor_options options = plain();
        struct hr_cursor_saved saved;
        struct hr_error error = {0};

        CHECK_ERR(cases[i].code,
                  hr__cursor_parse(cases[i].text, &options, &saved, &error));
        CHECK_HAS(error.message, cases[i].part);
    }
}

TEST(checkpoints_that_do_not_belong_together_are_not_merged)
{
    char a[300], b[300], c[300];
    const char *pair[2] = {a, b};
    struct hr_error error = {0};
    struct hr_str out;

    snprintf(a, sizeof a, GOOD, 0, 12, "true");
    snprintf(b, sizeof b, GOOD, 1, 7, "true");
    snprintf(c, sizeof c, GOOD, 1, 7, "false");
    hr__str_init(&out);
    CHECK_OK(hr__cursor_merge(pair, 2, &out, &error));
    /* Rank 0 took 0..4 and 10, 11; rank 1 took 5 and 6. */
    CHECK_EQ_STR(
        hr__str_text(&out),
        "{\"headrace_cursor\":1,\"job\":\"0000000000000017\",\"membership\":1,"
        "\"world\":1,\"rank\":0,\"base\":7,\"end\":40,\"split\":5,\"position\":7,"
        "\"ordered\":true,\"done\":[[10,2]]}");
    hr__str_finish(&out);
    CHECK_ERR(HR_ERR_STATE, hr__cursor_merge(pair, 1, &out, &error));
    CHECK_HAS(error.message, "1 are given");
    pair[1] = a;
    CHECK_ERR(HR_ERR_STATE, hr__cursor_merge(pair, 2, &out, &error));
    CHECK_HAS(error.message, "two are of rank 0");
    pair[1] = c;
    CHECK_ERR(HR_ERR_STATE, hr__cursor_merge(pair, 2, &out, &error));
    CHECK_ERR(HR_ERR_ARGUMENT, hr__cursor_merge(pair, 0, &out, &error));
}

static enum hr_err everything(void)
{
    struct hr_cursor_options options = plain();
    struct hr_cursor_saved saved;
    struct hr_cursor cursor;
    struct hr_str text, merged;
    const char *texts[1];
    enum hr_err code;

    hr__str_init(&text);
    hr__str_init(&merged);
    options.ordered = false;
    code = hr__cursor_init(&cursor, &options, NULL);
    if (code == HR_OK) {
        struct hr_taken taken;
        bool kept;

        CHECK_OK(hr__cursor_accept(&cursor, 3, 2, 1, false, &kept, &kept, NULL));
        CHECK(hr__cursor_take(&cursor, 9, &taken));
        code = hr__cursor_save(&cursor, &text, NULL);
    }
    texts[0] = hr__str_text(&text);
    if (code == HR_OK)
        code = hr__cursor_merge(texts, 1, &merged, NULL);
    if (code == HR_OK)
        code = hr__cursor_parse(hr__str_text(&merged), &options, &saved, NULL);
    if (code == HR_OK)
        hr__done_finish(&saved.done);
    hr__cursor_finish(&cursor);
    hr__str_finish(&text);
    hr__str_finish(&merged);
    return code;
}

TEST(failed_allocations_are_reported_and_leak_nothing)
{
    for (uint64_t nth = 1;; nth++) {
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = everything();
        if (hr__fault_calls() < nth) {
            hr__fault_arm(HR_FAULT_ALLOC, 0);
            CHECK_OK(code);
            CHECK(nth > 10);
            return;
        }
        hr__fault_arm(HR_FAULT_ALLOC, 0);
        CHECK(code == HR_ERR_MEMORY || code == HR_OK); /* some are dispensable */
    }
}
