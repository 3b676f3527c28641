/*
 * net/tenants_test.c - files of tenants: what they say, and what is refused with its
 * line.
 */
#include "net/tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check.h"

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbb"
#define OWN "0123456789abcdef"

static char path[] = "/tmp/headrace-tenants-XXXXXX";
static struct hr_token own;

static enum hr_err
load(const char *text, size_t bytes, struct hr_tenants *ret, struct hr_error *reterr)
{
    int fd;
    enum hr_err code;

    memset(path + sizeof path - 7, 'X', 6);
    fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, text, bytes) == (ssize_t)bytes);
    close(fd);
    CHECK_OK(hr__token_take(OWN, "test", &own, NULL));
    code = hr__tenants_load(path, &own, ret, reterr);
    unlink(path);
    return code;
}

TEST(tenants_have_names_tokens_and_limits)
{
    static const char text[] =
        "# who may run\n\nvision " A " runs=2 weight=5\r\n\tspeech\t" B;
    struct hr_tenants tenants = {0};

    CHECK_OK(load(text, sizeof text - 1, &tenants, NULL));
    CHECK_EQ_INT(tenants.count, 2);
    CHECK_EQ_STR(tenants.items[0].name, "vision");
    CHECK_EQ_INT(tenants.items[0].runs_max, 2);
    CHECK_EQ_INT(tenants.items[0].weight_max, 5);
    CHECK_EQ_STR(tenants.items[1].name, "speech");
    CHECK_EQ_INT(tenants.items[1].runs_max, 0);
    CHECK_EQ_INT(tenants.items[1].weight_max, 1);
    CHECK(hr__tenants_find(&tenants, A, 16) == &tenants.items[0]);
    CHECK(hr__tenants_find(&tenants, B, 16) == &tenants.items[1]);
    CHECK(hr__tenants_find(&tenants, OWN, 16) == NULL);
    CHECK(hr__tenants_find(&tenants, B, 15) == NULL);
    hr__tenants_finish(&tenants);
}

TEST(an_empty_file_has_no_tenants)
{
    struct hr_tenants tenants = {0};

    CHECK_OK(load("# nobody\n", 9, &tenants, NULL));
    CHECK_EQ_INT(tenants.count, 0);
    CHECK(hr__tenants_find(&tenants, "", 0) == NULL);
    hr__tenants_finish(&tenants);
}

TEST(lines_that_are_wrong_are_named_and_show_no_token)
{
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"vision",                  ":1: the token is missing"         },
        {"vi$ion " A,               ":1: a name has"                   },
        {"\nvision short",          ":2: a token has 16 to 255"        },
        {"vision " A " run=2",      ":1: what follows the token"       },
        {"vision " A " runs=0",     ":1: runs is 1 to 65536"           },
        {"vision " A " runs=-1",    ":1: runs is 1 to 65536"           },
        {"vision " A " runs=9x",    ":1: runs is 1 to 65536"           },
        {"vision " A " weight=0",   ":1: weight is 1 to 100"           },
        {"vision " A " weight=101", ":1: weight is 1 to 100"           },
        {"vision " A "\nvision " B, ":2: the name is there before"     },
        {"vision " A "\nspeech " A, ":2: the token is another tenant's"},
        {"vision " OWN,             ":1: the token is another tenant's"},
    };
    struct hr_tenants tenants = {0};
    struct hr_error error = {0};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_ERR(HR_ERR_FORMAT,
                  load(wrong[i].text, strlen(wrong[i].text), &tenants, &error));
        CHECK_HAS(error.message, wrong[i].part);
        CHECK(strstr(error.message, "aaaa") == NULL);
        CHECK(tenants.items == NULL);
    }
    CHECK_ERR(HR_ERR_FORMAT, load("vision \0", 8, &tenants, &error));
    CHECK_ERR(HR_ERR_NOT_FOUND, hr__tenants_load("/nowhere/x", &own, &tenants, &error));
    CHECK_ERR(HR_ERR_ARGUMENT,
              hr__tenants_load("/nowhere/x", &(struct hr_token){0}, &tenants, &error));
    CHECK_HAS(error.message, "--token-file");
}
