/*
 * fleet/roster_test.c - which workers a client uses, list by list.
 */
#include "fleet/roster.h"

#include <stdio.h>
#include <string.h>

#include "svc/svc_test_util.h"

static struct hr_roster roster;

static void take(const char *text, uint64_t now)
{
    hr__roster_take(&roster, text, strlen(text), now, fresh());
}

static struct hr_roster_worker *at(const char *address)
{
    for (size_t i = 0; i < HR_ROSTER_MAX; i++)
        if (roster.workers[i].address != NULL &&
            strcmp(roster.workers[i].address, address) == 0)
            return &roster.workers[i];
    return NULL;
}

static size_t closed(void)
{
    size_t count = 0;

    for (size_t i = 0; i < actions.count; i++)
        count += actions.items[i].kind == HR_ACTION_CLOSE;
    return count;
}

TEST(a_worker_that_is_not_listed_is_forgotten_or_lingers)
{
    take("a:1\nb:2\n", 0);
    CHECK(at("a:1")->listed && at("b:2")->listed);
    at("a:1")->peer = 7;
    CHECK(hr__roster_find(&roster, 7) == at("a:1"));
    take("c:3\n", 10);
    CHECK(!at("a:1")->listed && at("c:3")->listed);
    hr__roster_expire(&roster, 10, fresh());
    CHECK(at("a:1") != NULL && at("b:2") == NULL);
    CHECK_EQ_INT(actions.count, 0);
    hr__roster_expire(&roster, 10 + HR_ROSTER_LINGER_NS, fresh());
    CHECK(place_of(HR_ACTION_CLOSE, 7) == 0);
    hr__roster_expire(&roster, 11 + HR_ROSTER_LINGER_NS, fresh());
    CHECK_EQ_INT(actions.count, 0); /* `lost` follows */
    hr__roster_finish(&roster);
}

TEST(a_worker_that_is_listed_again_keeps_its_connection)
{
    take("a:1\n", 0);
    at("a:1")->peer = 7;
    take("b:2\n", 10);
    take("b:2\na:1\n", 20);
    CHECK(at("a:1")->listed);
    CHECK_EQ_INT(at("a:1")->peer, 7);
    hr__roster_expire(&roster, 20 + HR_ROSTER_LINGER_NS, fresh());
    CHECK_EQ_INT(actions.count, 0);
    hr__roster_finish(&roster);
}

/* Takes a list of `count` workers, from number `from` on. */
static void take_many(int from, size_t count, uint64_t now)
{
    char text[2048];
    size_t length = 0;

    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "w:%d\n",
                                   from + (int)i);
    hr__roster_take(&roster, text, length, now, fresh());
}

TEST(a_listed_worker_takes_the_place_of_the_one_that_lingers_longest)
{
    char name[16];

    take_many(0, HR_FLEET_TEAM_MAX, 0);
    for (uint32_t i = 0; i < HR_FLEET_TEAM_MAX; i++)
        roster.workers[i].peer = i + 1;
    take_many(8, HR_FLEET_TEAM_MAX, 10); /* 0 to 7 linger, and 8 are new */
    CHECK_EQ_INT(closed(), 0);
    for (size_t i = 0; i < HR_ROSTER_MAX; i++)
        if (roster.workers[i].address != NULL && roster.workers[i].peer == 0)
            roster.workers[i].peer = 100 + (uint32_t)i;
    take_many(20, HR_FLEET_TEAM_MAX, 20); /* 12 are new, and there are 8 places */
    CHECK_EQ_INT(closed(), 4);
    for (uint32_t i = 0; i < 4; i++)
        CHECK(at("w:0") == NULL && place_of(HR_ACTION_CLOSE, i + 1) >= 0);
    for (int i = 20; i < 20 + (int)HR_FLEET_TEAM_MAX; i++) {
        snprintf(name, sizeof name, "w:%d", i);
        CHECK(at(name) != NULL && at(name)->listed);
    }
    hr__roster_finish(&roster);
}

TEST(lines_that_are_no_addresses_are_passed_over)
{
    char text[400] = "a:1\n\n";

    memset(text + 5, 'x', 300);
    snprintf(text + 305, sizeof text - 305, "\nb:2\nno-end");
    hr__roster_take(&roster, text, strlen(text), 0, fresh());
    hr__roster_take(&roster, "a:1\nb\0:2\n", 9, 0, fresh());
    CHECK(at("a:1")->listed && !at("b:2")->listed);
    CHECK(at("no-end") == NULL && at("b") == NULL);
    hr__roster_finish(&roster);
}
