/*
 * fleet/control_read_test.c - what a dispatcher's control port answers, as a program gets
 * it.
 */
#include "fleet/control.h"

#include <string.h>

#include "tests/support/check.h"

#define CONSUMER                                                                         \
    "{\"job\":\"train\",\"consumer\":\"a\",\"connected\":true,\"generation\":3,"         \
    "\"checkpoint\":7,\"splits\":5,\"splits_taken\":2}"
#define STATUS_WITH(journal_, consumers_)                                                \
    "{\"version\":\"0.1.0\",\"address\":\"127.0.0.1:7070\",\"connections\":2,"           \
    "\"connections_max\":1024,\"clients\":1,\"worker_count\":0,\"job_count\":4,"         \
    "\"jobs_max\":256,\"consumer_count\":2,\"positions_finished\":9,"                    \
    "\"journal\":" journal_                                                              \
    ",\"uptime_seconds\":1.5,\"workers\":[],\"jobs\":[]" consumers_ "}"
#define FOUND_JOURNAL STATUS_WITH("\"found\"", ",\"consumers\":[]")
#define STATUS(consumers_) STATUS_WITH("\"lost\"", consumers_)

static enum hr_err
read_status(const char *text, struct hr_control_status **ret, struct hr_error *reterr)
{
    return hr__control_read_status(text, strlen(text), ret, reterr);
}

TEST(a_status_has_its_consumers)
{
    static const char text[] =
        STATUS(",\"consumers\":[" CONSUMER
               ",{\"job\":\"train\",\"consumer\":\"b\",\"connected\":false,"
               "\"generation\":1,\"checkpoint\":0,\"splits\":0,\"splits_taken\":0}]");
    struct hr_control_status *s = NULL;

    CHECK_OK(read_status(text, &s, NULL));
    CHECK_EQ_INT(s->consumer_count, 2);
    CHECK_EQ_STR(s->consumers[0].job, "train");
    CHECK_EQ_STR(s->consumers[0].name, "a");
    CHECK(s->consumers[0].connected && !s->consumers[1].connected);
    CHECK_EQ_INT(s->consumers[0].generation, 3);
    CHECK_EQ_INT(s->consumers[0].checkpoint, 7);
    CHECK_EQ_INT(s->consumers[0].splits, 5);
    CHECK_EQ_INT(s->consumers[0].splits_taken, 2);
    CHECK_EQ_STR(s->consumers[1].name, "b");
    CHECK_EQ_INT(s->jobs_known, 4);
    CHECK_EQ_INT(s->journal, HR_CONTROL_JOURNAL_LOST);
    CHECK_EQ_INT(s->worker_count + s->job_count, 0);
    hr__control_status_free(s);
}

TEST(a_status_with_wrong_consumers_is_refused_by_name)
{
    static const struct {
        const char *text, *word;
    } cases[] = {
        {FOUND_JOURNAL,                                               "\"journal\""  },
        {STATUS(""),                                                  "\"consumers\""},
        {STATUS(",\"consumers\":{}"),                                 "\"consumers\""},
        {STATUS(",\"consumers\":[7]"),                                "\"job\""      },
        {STATUS(",\"consumers\":[" CONSUMER ",{\"job\":\"train\"}]"), "\"consumer\"" },
        {STATUS(",\"consumers\":[{\"job\":\"train\",\"consumer\":\"a\","
                "\"connected\":1}]"),
         "\"connected\""                                                             },
        {STATUS(",\"consumers\":[{\"job\":\"train\",\"consumer\":\"a\","
                "\"connected\":true,\"generation\":-1}]"),
         "\"generation\""                                                            },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hr_control_status *s = NULL;
        struct hr_error error = {0};

        CHECK_EQ_INT(read_status(cases[i].text, &s, &error), HR_ERR_FORMAT);
        CHECK(s == NULL && strstr(error.message, cases[i].word) != NULL);
    }
}
