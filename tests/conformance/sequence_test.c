/*
 * tests/conformance/sequence_test.c - every op that sees records in order does what
 * op/sequence.h says of its hooks, called without an engine.
 */
#include "core/alloc.h"
#include "core/rng.h"
#include "tests/support/check.h"
#include "tests/support/sequencer.h"

#define INPUTS 40

static struct hr_pool *pool;
static struct hr_graph *graph;

#define EACH(c)                                                                          \
    for (const struct sequencer_case *c = sequencer_cases;                               \
         c < sequencer_cases + SEQUENCER_CASES && open_case(c); close_case(), c++)

static bool open_case(const struct sequencer_case *c)
{
    pool = hr_pool_create(0);
    graph = sequencer_graph(c);
    CHECK(pool != NULL && graph != NULL);
    CHECK_EQ_STR(graph->nodes[graph->output].op->name, c->op);
    return true;
}

static void close_case(void)
{
    hr_graph_unref(graph);
    hr_pool_unref(pool);
}

static void feed(struct sequencer *s, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        CHECK_OK(sequencer_add(s, i));
}

static void run_whole(struct sequencer *s, uint32_t epoch)
{
    CHECK_OK(sequencer_begin(s, epoch));
    feed(s, 0, INPUTS);
    CHECK_OK(sequencer_flush(s));
}

TEST(every_sequencer_has_a_case)
{
    size_t count, at = 0;
    const struct hr_op *const *ops = hr__op_list(&count);

    for (size_t i = 0; i < count; i++) {
        if (ops[i]->sequence.add == NULL)
            continue;
        while (at < SEQUENCER_CASES && strcmp(sequencer_cases[at].op, ops[i]->name) < 0)
            at++;
        if (at == SEQUENCER_CASES || strcmp(sequencer_cases[at].op, ops[i]->name) != 0)
            check_failed(__FILE__, __LINE__, "%s has no case", ops[i]->name);
    }
}

/* After `at` inputs; false if its state cannot be saved there. */
static bool resumes(const struct sequencer *whole, int64_t at, const char *name)
{
    struct sequencer first, rest;
    struct hr_str text;
    bool saved;

    sequencer_init(&first, graph, pool);
    sequencer_init(&rest, graph, pool);
    hr__str_init(&text);
    CHECK_OK(sequencer_begin(&first, 0));
    feed(&first, 0, at);
    saved = sequencer_save(&first, &text);
    CHECK(saved || first.op->replays);
    CHECK(text.length <= HR_SEQUENCE_STATE_MAX && (at > 0 || text.length == 0));
    CHECK_OK(sequencer_begin(&rest, 0));
    if (saved && text.length > 0)
        CHECK_OK(sequencer_restore(&rest, hr__str_text(&text)));
    CHECK(!saved || rest.ended == first.ended);
    feed(&rest, at, INPUTS);
    CHECK_OK(sequencer_flush(&rest));
    if (saved &&
        (first.count + rest.count != whole->count ||
         memcmp(first.outputs, whole->outputs, first.count * 8) != 0 ||
         memcmp(rest.outputs, whole->outputs + first.count, rest.count * 8) != 0))
        check_failed(__FILE__, __LINE__, "%s differs after %lld inputs", name,
                     (long long)at);
    CHECK_OK(sequencer_flush(&first));
    sequencer_end(&first);
    sequencer_end(&rest);
    hr__str_finish(&text);
    return saved;
}

TEST(a_saved_state_leads_to_the_same_outputs)
{
    EACH(c)
    {
        struct sequencer whole;
        int saves = 0;

        sequencer_init(&whole, graph, pool);
        run_whole(&whole, 0);
        CHECK(whole.count > 0);
        for (int64_t at = 0; at <= INPUTS; at++)
            saves += resumes(&whole, at, c->op);
        CHECK(saves > 1);
        sequencer_end(&whole);
    }
}

TEST(a_flush_leaves_nothing_and_begin_starts_a_clean_epoch)
{
    EACH(c)
    {
        struct sequencer used, fresh;
        struct hr_str text;
        size_t before;

        sequencer_init(&used, graph, pool);
        sequencer_init(&fresh, graph, pool);
        run_whole(&used, 0);
        before = used.count;
        CHECK_OK(sequencer_drain(&used));
        CHECK_EQ_INT(used.count, before);
        hr__str_init(&text);
        CHECK(sequencer_save(&used, &text));
        hr__str_finish(&text);
        if (used.op->held_records != NULL)
            CHECK_EQ_INT(used.op->held_records(used.state), 0);
        run_whole(&used, 1);
        run_whole(&fresh, 1);
        CHECK_EQ_INT(used.count, fresh.count);
        CHECK_BYTES(used.outputs, fresh.outputs, fresh.count * 8);
        sequencer_end(&used);
        sequencer_end(&fresh);
    }
}

TEST(it_holds_no_more_inputs_than_it_says)
{
    EACH(c)
    {
        struct sequencer s;
        uint64_t most;

        sequencer_init(&s, graph, pool);
        most =
            s.op->holds != NULL ? s.op->holds(s.node->params, s.node->state, s.input) : 0;
        CHECK_OK(sequencer_begin(&s, 0));
        for (int64_t i = 0; i < INPUTS; i++) {
            feed(&s, i, i + 1);
            if (s.op->held_records != NULL)
                CHECK(s.op->held_records(s.state) <= most);
        }
        CHECK_OK(sequencer_flush(&s));
        sequencer_end(&s);
    }
}

static enum hr_err run_until_failure(struct sequencer *s)
{
    enum hr_err code = sequencer_begin(s, 0);

    for (int64_t i = 0; i < INPUTS && code == HR_OK; i++)
        code = sequencer_add(s, i);
    return code == HR_OK ? sequencer_flush(s) : code;
}

/* What is lost shows under ASan. */
TEST(a_failing_allocation_ends_the_run_and_leaks_nothing)
{
    EACH(c)
    {
        enum hr_err code = HR_ERR_MEMORY;

        for (uint64_t nth = 1; code != HR_OK; nth++) {
            struct sequencer s;

            hr_pool_trim(pool);
            sequencer_init(&s, graph, pool);
            hr__fault_arm(HR_FAULT_ALLOC, nth);
            code = run_until_failure(&s);
            hr__fault_arm(0, 0);
            CHECK(code == HR_OK || code == HR_ERR_MEMORY);
            sequencer_end(&s);
        }
    }
}

static void check_refused(const char *name, const char *text, bool must)
{
    struct sequencer s;
    enum hr_err code;

    sequencer_init(&s, graph, pool);
    if (s.op->restore == NULL)
        return;
    CHECK_OK(sequencer_begin(&s, 0));
    code = sequencer_restore(&s, text);
    if ((must && code == HR_OK) || (code != HR_OK && s.error.message[0] == '\0'))
        check_failed(__FILE__, __LINE__, "%s: \"%s\" gives %s (%s)", name, text,
                     hr_err_name(code), s.error.message);
    CHECK(code == HR_OK || code == HR_ERR_FORMAT);
    if (code == HR_OK) {
        feed(&s, 0, INPUTS);
        CHECK_OK(sequencer_flush(&s));
    }
    sequencer_end(&s);
}

TEST(hostile_states_are_refused)
{
    static const char *const texts[] = {
        "",
        "x",
        "-1",
        " 1",
        "1 ",
        "+1",
        "0x10",
        "1e3",
        "1.0",
        "1,2",
        "1\n",
        "\xff",
        "99999999999999999999999999999",
        "18446744073709551616",
    };
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    EACH(c)
    {
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            check_refused(c->op, texts[i], true);
        for (int i = 0; i < 500; i++) {
            char text[32] = {0};
            uint64_t length = 1 + hr__rng_below(&rng, sizeof text - 2);

            for (uint64_t k = 0; k < length; k++)
                text[k] = "0123456789 -,x"[hr__rng_below(&rng, 14)];
            check_refused(c->op, text, false);
        }
    }
}
