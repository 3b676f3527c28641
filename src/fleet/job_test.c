/*
 * fleet/job_test.c - jobs to text and back.
 */
#include "fleet/job.h"

#include "core/alloc.h"
#include "tests/support/check.h"

static struct hr_graph *parse(const char *text)
{
    struct hr_graph *graph = NULL;

    CHECK_OK(hr_graph_parse(text, strlen(text), "test.yaml", NULL, 0, &graph, NULL));
    return graph;
}

TEST(a_job_comes_back_with_its_graph_and_options)
{
    struct hr_graph *graph = parse("headrace: 1\n"
                                   "params:\n  n: {type: int, default: 7}\n"
                                   "pipeline:\n  - source.range: {n: \"${n}\"}\n"
                                   "  - order.shuffle: {}\n  - batch.stack: {size: 2}\n");
    char own[HR_FINGERPRINT_BYTES];
    struct hr_iter_options options, read;
    struct hr_job job;
    struct hr_str text;

    hr_iter_options_init(&options);
    options.seed = 12;
    options.epochs = 3;
    options.epoch_first = 4;
    options.records_max = 5;
    options.rank = 1;
    options.world = 2;
    options.even = HR_EVEN_REPEAT;
    options.on_error = HR_ON_ERROR_SUBSTITUTE;
    options.errors_max = 6;
    CHECK_OK(hr_graph_freeze(graph, NULL));
    hr__str_init(&text);
    CHECK_OK(hr__job_print(graph, &options, "my \"run\"", true, &text, NULL));
    hr_iter_options_init(&read);
    CHECK_OK(hr__job_parse(hr__str_text(&text), text.length, &job, &read, NULL));
    CHECK(job.records);
    CHECK_EQ_INT(memcmp(&options, &read, sizeof read), 0);
    CHECK_OK(hr_graph_freeze(job.graph, NULL));
    CHECK_OK(hr_graph_fingerprint(job.graph, own));
    CHECK_EQ_STR(own, job.fingerprint);
    hr_graph_unref(job.graph);
    hr_graph_unref(graph);
    hr__str_finish(&text);
}

static void refused(const char *text, enum hr_err code, const char *part)
{
    struct hr_iter_options options, before;
    struct hr_error error = {0};
    struct hr_job job = {0};

    hr_iter_options_init(&options);
    before = options;
    CHECK_ERR(code, hr__job_parse(text, strlen(text), &job, &options, &error));
    CHECK_HAS(error.message, part);
    CHECK(job.graph == NULL);
    CHECK_EQ_INT(memcmp(&options, &before, sizeof before), 0);
}

#define OPTIONS                                                                          \
    "\"seed\":0,\"epochs\":1,\"epoch_first\":0,\"records_max\":0,\"rank\":0,"            \
    "\"world\":1,\"errors_max\":0,\"even\":\"none\",\"errors\":\"fail\","                \
    "\"unit\":\"record\","                                                               \
    "\"fingerprint\":\"0123456789abcdef0123456789abcdef\","

TEST(what_is_no_job_is_refused_with_the_reason)
{
    refused("", HR_ERR_FORMAT, "");
    refused("{}", HR_ERR_FORMAT, "\"headrace_job\"");
    refused("{\"headrace_job\":1}", HR_ERR_UNSUPPORTED, "version 1");
    refused("{\"headrace_job\":2,\"seed\":-1}", HR_ERR_FORMAT, "\"seed\"");
    refused("{\"headrace_job\":2," OPTIONS "\"x\":1}", HR_ERR_FORMAT, "\"graph\"");
    refused("{\"headrace_job\":2," OPTIONS
            "\"graph\":\"headrace: 1\\npipeline:\\n  - source.rnge: {n: 1}\\n\"}",
            HR_ERR_NOT_FOUND, "source.range");
    refused("{\"headrace_job\":2," OPTIONS
            "\"graph\":\"headrace: 1\\npipeline:\\n  - source.range: {n: 1}\\n"
            "  - code.map: {code: f, outputs: ['x: int64']}\\n\"}",
            HR_ERR_UNSUPPORTED, "your code does not");
}

TEST(names_are_plain_texts)
{
    static const char *const wrong[] = {"", "\x1b[31m", "two\nlines", "\xff", "\xc2\x80"};
    struct hr_job_head head;
    char text[128];
    struct hr_graph *graph = parse("headrace: 1\npipeline:\n  - source.range: {n: 5}\n");
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_str job;

    hr_iter_options_init(&options);
    hr__str_init(&job);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_ERR(HR_ERR_ARGUMENT,
                  hr__job_print(graph, &options, wrong[i], false, &job, &error));
        CHECK_HAS(error.message, "control characters");
    }
    snprintf(text, sizeof text, "{\"headrace_job\":2,\"name\":\"a\\u001b[2J\"}");
    CHECK_ERR(HR_ERR_FORMAT, hr__job_head(text, strlen(text), &head, NULL, &error));
    snprintf(text, sizeof text, "{\"headrace_job\":2,\"name\":\"\"}");
    CHECK_ERR(HR_ERR_FORMAT, hr__job_head(text, strlen(text), &head, NULL, &error));
    snprintf(text, sizeof text, "{\"headrace_job\":2,\"name\":\"a\",\"consumers\":1}");
    CHECK_ERR(HR_ERR_FORMAT, hr__job_head(text, strlen(text), &head, NULL, &error));
    snprintf(text, sizeof text, "{\"headrace_job\":2,\"name\":\"a\",\"consumers\":true}");
    CHECK_OK(hr__job_head(text, strlen(text), &head, NULL, &error));
    CHECK(head.consumers);
    snprintf(text, sizeof text, "{\"headrace_job\":2,\"name\":\"Zug 7 \\u00fc\"}");
    CHECK_OK(hr__job_head(text, strlen(text), &head, NULL, &error));
    CHECK_EQ_STR(head.name, "Zug 7 \xc3\xbc");
    hr__str_finish(&job);
    hr_graph_unref(graph);
}

TEST(a_graph_with_user_code_is_refused_before_it_travels)
{
    struct hr_graph *graph = parse("headrace: 1\npipeline:\n  - source.range: {n: 5}\n  "
                                   "- code.map: {code: f, outputs: [\"x: int64\"]}\n");
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_str text;

    hr_iter_options_init(&options);
    hr__str_init(&text);
    CHECK_ERR(HR_ERR_UNSUPPORTED,
              hr__job_print(graph, &options, "a", false, &text, &error));
    CHECK_HAS(error.message, "code.map");
    CHECK_HAS(error.message, "without the service");
    hr__str_finish(&text);
    hr_graph_unref(graph);
}

static void add_kin(struct hr_graph *graph, const struct hr_iter_options *options,
                    const char *name, struct hr_str *out)
{
    struct hr_job_head head;
    struct hr_str job;

    hr__str_init(&job);
    hr__str_init(out);
    CHECK_OK(hr__job_print(graph, options, name, false, &job, NULL));
    CHECK_OK(hr__job_head(hr__str_text(&job), job.length, &head, out, NULL));
    hr__str_finish(&job);
}

TEST(jobs_that_read_the_same_batches_are_kin)
{
    struct hr_graph *graph = parse("headrace: 1\npipeline:\n  - source.range: {n: 5}\n");
    struct hr_iter_options options;
    struct hr_job_head head;
    struct hr_str kin, other;

    CHECK_OK(hr_graph_freeze(graph, NULL));
    hr_iter_options_init(&options);
    add_kin(graph, &options, "a", &kin);
    options.epochs = 7;
    options.threads = 3;
    options.memory_bytes = 1 << 20;
    add_kin(graph, &options, "another", &other);
    CHECK_EQ_STR(hr__str_text(&kin), hr__str_text(&other));
    hr__str_finish(&other);
    options.seed = 1;
    add_kin(graph, &options, "a", &other);
    CHECK(strcmp(hr__str_text(&kin), hr__str_text(&other)) != 0);
    hr__str_finish(&other);
    options.seed = 0;
    options.service_consumer = "gpu1"; /* it is not said which */
    add_kin(graph, &options, "a", &other);
    CHECK_HAS(hr__str_text(&other), "\"consumers\"true");
    hr__str_finish(&other);
    CHECK_ERR(HR_ERR_FORMAT, hr__job_head("[]", 2, &head, &other, NULL));
    hr__str_finish(&kin);
    hr_graph_unref(graph);
}
