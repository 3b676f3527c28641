/*
 * engine/code_keys_test.c - what the records of a source in user code are known by before
 * they are made.
 */
#include "engine/code_test_util.h"

#define RECORDS 60
#define LONG 300 /* bytes of a name, more than most keys have */

/* The output "name" of record i, and its key. */
static size_t write_name(uint64_t i, char *text, size_t room)
{
    char name[LONG + 1];

    memset(name, '-', LONG);
    snprintf(name + LONG - 8, 9, "name %03d", (int)(i % 7));
    memcpy(text, name, room < LONG ? room : LONG);
    return LONG;
}

struct keys {
    struct world world;
    atomic_int asked;
    enum hr_err code; /* of record `fails` */
    uint64_t fails;
};

static enum hr_err
call_named(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    uint64_t index = hr_code_index(call);
    int64_t bytes = LONG;
    void *room;

    (void)user;
    CHECK_OK(put_int(call, 0, (int64_t)index, reterr));
    CHECK_OK(hr_code_room(call, 1, HR_DTYPE_NONE, 1, &bytes, &room, reterr));
    write_name(index, room, LONG);
    return HR_OK;
}

static enum hr_err give_key(void *user, size_t output, uint64_t index, char *text,
                            size_t room, size_t *ret_bytes, struct hr_error *reterr)
{
    struct keys *keys = user;

    CHECK_EQ_INT(output, 1);
    CHECK(index < RECORDS);
    CHECK_EQ_INT(keys->world.entered, keys->world.left + 1);
    atomic_fetch_add(&keys->asked, 1);
    if (index == keys->fails && keys->code != HR_OK) {
        snprintf(reterr->message, sizeof reterr->message, "the register is closed");
        return reterr->code = keys->code;
    }
    *ret_bytes = write_name(index, text, room);
    return HR_OK;
}

static enum hr_err give_named(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    struct hr_code code = {.identity = "named",
                           .user = user,
                           .call = call_named,
                           .enter = enter,
                           .leave = leave,
                           .keys = (uint64_t)1 << 1,
                           .key = give_key};

    return hr_graph_code(graph, "named", &code, reterr);
}

#define NAMED                                                                            \
    "  - code.source: {code: named, count: 60, outputs: ['value: int64', 'name: "        \
    "text']}\n"
#define PART(part, by)                                                                   \
    "  - order.split: {fractions: [0.5, 0.5], part: " part ", seed: 4, by: " by "}\n"

static struct outcome *run_named(struct keys *keys, const char *graph)
{
    struct outcome_job job = outcome_job_with(graph, 1, NULL);

    job.prepare = give_named;
    job.user = keys;
    job.first = true;
    return outcome_run(&job);
}

/* Marks which records a part has. */
static void mark(struct keys *keys, const char *graph, int part, int *part_of)
{
    struct outcome *o = run_named(keys, graph);
    struct hr_field_view view;

    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_OK(hr_batch_find(o->first, "value", &view));
    CHECK_EQ_INT(view.dims[0], o->records);
    for (int64_t i = 0; i < o->records; i++) {
        int64_t value = ((const int64_t *)view.data)[i];

        CHECK(value >= 0 && value < RECORDS);
        CHECK_EQ_INT(part_of[value], -1);
        part_of[value] = part;
    }
    outcome_free(o);
}

#define WHOLE BATCH(60)
#define BOTH(by) GRAPH(NAMED PART("0", by) WHOLE), GRAPH(NAMED PART("1", by) WHOLE)

static void divide(struct keys *keys, int *part_of)
{
    static const char *const graphs[] = {BOTH("name")};

    memset(part_of, -1, RECORDS * sizeof *part_of);
    for (int part = 0; part < 2; part++)
        mark(keys, graphs[part], part, part_of);
    for (int i = 0; i < RECORDS; i++)
        CHECK(part_of[i] == 0 || part_of[i] == 1);
}

TEST(records_with_equal_keys_are_in_one_part)
{
    struct keys keys = {.code = HR_OK};
    int part_of[RECORDS], second = 0;

    divide(&keys, part_of);
    CHECK_EQ_INT(keys.asked, 2 * 2 * RECORDS); /* a name is longer than most keys */
    for (int i = 0; i < RECORDS; i++) {
        CHECK_EQ_INT(part_of[i], part_of[i % 7]);
        second += part_of[i];
    }
    CHECK(second > 0 && second < RECORDS);
}

TEST(a_record_without_a_value_is_known_by_its_number)
{
    struct keys keys = {.code = HR_ERR_NOT_FOUND, .fails = 8};
    int part_of[RECORDS];

    divide(&keys, part_of);
    for (int i = 0; i < RECORDS; i++)
        CHECK(i == 8 || part_of[i] == part_of[i % 7]);
}

TEST(a_key_that_fails_is_an_error)
{
    struct keys keys = {.code = HR_ERR_IO, .fails = 8};
    struct outcome *o = run_named(&keys, GRAPH(NAMED PART("0", "name") WHOLE));

    CHECK_ERR(HR_ERR_IO, o->code);
    CHECK_HAS(o->error.message, "the register is closed");
    outcome_free(o);
}

TEST(other_fields_of_the_code_are_not_known)
{
    struct keys keys = {.code = HR_OK};
    struct outcome *o = run_named(&keys, GRAPH(NAMED PART("0", "value") WHOLE));

    CHECK_ERR(HR_ERR_ARGUMENT, o->code);
    CHECK_HAS(o->error.message, "its \"value\" is not known; known are: name, index");
    outcome_free(o);
}
