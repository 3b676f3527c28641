/*
 * tests/contract/bucketed_test.c - batch.bucket: batches hold records of one bucket,
 * every record once; the same batches in every way to run a graph.
 */
#include "tests/contract/contract.h"

#include "core/file.h"

static struct outcome_job
job_of(int lines, int words, const char *before, const char *after)
{
    char nodes[2000];

    snprintf(nodes, sizeof nodes, "%s%s%s", before, contract_bytes(), after);
    return contract_lines(lines, words, nodes);
}

#define FAIL "  - debug.fail: {probability: 0.1}\n"

TEST(buckets_have_one_digest)
{
    outcome_free(contract_check(
        job_of(90, 9, "  - order.shuffle: {}\n" FAIL,
               "  - batch.bucket: {boundaries: [8, 20], size: 4, lengths: [tokens]}\n")));
}

TEST(buckets_of_elements_after_a_filter_have_one_digest)
{
    outcome_free(contract_check(job_of(
        70, 9, FAIL "  - record.filter: {expr: \"text.length != 9\"}\n",
        "  - batch.bucket: {boundaries: [6, 16, 40], elements: 90, multiple: 4}\n")));
}

TEST(buckets_between_sequencers_have_one_digest)
{
    outcome_free(contract_check(contract_lines(
        60, 9,
        FAIL "  - batch.bucket: {by: text, boundaries: [9], size: [3, 2]}\n"
             "  - batch.unbatch: {}\n  - order.skip: {count: 2}\n"
             "  - order.shuffle: {window: 4}\n" FAIL
             "  - batch.bucket: {by: text, boundaries: [5, 12], elements: 60, too_long: "
             "drop}\n")));
}

/* Enough batches that states name the records in buckets. */
TEST(records_in_buckets_are_made_again)
{
    struct outcome_job job =
        job_of(80, 9,
               "  - order.shuffle: {}\n" FAIL "  - record.filter: {expr: "
               "\"text.length != 9\"}\n",
               "  - batch.bucket: {boundaries: [8, 20, 35], size: 2}\n");

    outcome_free(contract_check(job));
}

TEST(batches_padded_to_boundaries_have_one_digest)
{
    outcome_free(contract_check(job_of(
        60, 7, FAIL,
        "  - batch.bucket: {boundaries: [9, 25], size: [5, 3, 1], drop_last: true,\n"
        "      pad_to: boundary, too_long: drop}\n")));
}

/* A rank's batches; the last round of a bucket may have no record for it. */
TEST(coordinated_buckets_of_a_rank_have_one_digest)
{
    static const struct {
        int64_t rank, world;
        enum hr_even even;
        const char *bucket;
    } cases[] = {
        {1, 3, HR_EVEN_NONE,   "boundaries: [8, 20], size: [3, 2, 1]"    },
        {2, 3, HR_EVEN_REPEAT, "boundaries: [8, 20, 40], elements: 90"   },
        {6, 7, HR_EVEN_REPEAT, "boundaries: [8, 20], size: 2"            },
        {0, 4, HR_EVEN_DROP,   "boundaries: [12, 30], size: 2, value: -2"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome_job job;
        char node[200];

        snprintf(node, sizeof node, "  - batch.bucket: {%s, coordinated: true}\n",
                 cases[i].bucket);
        job = job_of(70, 9, "  - order.shuffle: {}\n" FAIL, node);
        job.options.rank = cases[i].rank;
        job.options.world = cases[i].world;
        job.options.even = cases[i].even;
        outcome_free(contract_check(job));
    }
}

/* ---- what batches hold ---- */

/* A graph over a file of these lines. */
static struct outcome_job job_over(const char *lines, const char *after)
{
    static char graph[2000];
    char path[512];

    snprintf(path, sizeof path, "%s/some.txt", check_temp_dir());
    CHECK_OK(hr__file_replace(path, lines, strlen(lines), NULL));
    snprintf(graph, sizeof graph,
             "headrace: 1\npipeline:\n  - source.list: {path: '%s'}\n%s%s", path,
             contract_bytes(), after);
    return contract_job(graph);
}

/* The batches of one epoch as lines of text, a blank between rows. */
static const char *batches_of(const char *lines, const char *params)
{
    struct contract_batches batches;
    static char text[4000];
    char node[200];
    struct outcome_job job;
    size_t at = 0;

    snprintf(node, sizeof node, "  - batch.bucket: {value: 46, %s}\n", params);
    job = job_over(lines, node);
    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t b = 0; b < batches.count; b++) {
        struct hr_field_view tokens = contract_field(batches.items[b], "tokens");
        const int32_t *token = tokens.data;

        for (int64_t i = 0; i < tokens.dims[0]; i++) {
            for (int64_t k = 0; k < tokens.dims[1]; k++)
                text[at++] = (char)*token++;
            text[at++] = i + 1 < tokens.dims[0] ? ' ' : '\n';
        }
    }
    text[at] = '\0';
    contract_drop(&batches);
    return text;
}

static const char lines[] = "a\ndddd\nbbbbbb\nbb\nccc\neeeeee\ne\nff\nggggg\n";

TEST(a_full_bucket_is_output_at_once_and_the_rest_in_order_of_length)
{
    CHECK_EQ_STR(batches_of(lines, "boundaries: [3, 5], size: 2"), "a. bb\n"
                                                                   "dddd ccc.\n"
                                                                   "bbbbbb eeeeee\n"
                                                                   "e. ff\n"
                                                                   "ggggg\n");
    CHECK_EQ_STR(batches_of(lines, "boundaries: [3, 5], size: [3, 2, 4]"),
                 "dddd ccc.\n"
                 "a. bb e.\n"
                 "ff\n"
                 "bbbbbb eeeeee ggggg.\n");
    CHECK_EQ_STR(batches_of(lines, "boundaries: [3, 5], size: 2, drop_last: true"),
                 "a. bb\n"
                 "dddd ccc.\n"
                 "bbbbbb eeeeee\n"
                 "e. ff\n");
}

TEST(a_bucket_is_output_before_it_has_too_many_elements)
{
    CHECK_EQ_STR(batches_of(lines, "boundaries: [3, 5], elements: 8"), "bbbbbb\n"
                                                                       "dddd ccc.\n"
                                                                       "eeeeee\n"
                                                                       "a. bb e. ff\n"
                                                                       "ggggg\n");
    /* Two of one item would be followed by none of four. */
    CHECK_EQ_STR(batches_of("a\na\nbbbb\nc\n", "boundaries: [9], elements: 6"), "a a\n"
                                                                                "bbbb\n"
                                                                                "c\n");
    CHECK_EQ_STR(batches_of(lines, "boundaries: [3, 5], elements: 8, multiple: 4"),
                 "bbbbbb..\n"
                 "a... bb..\n"
                 "dddd ccc.\n"
                 "eeeeee..\n"
                 "e... ff..\n"
                 "ggggg...\n");
}

TEST(batches_are_padded_to_the_longest_length_of_their_bucket)
{
    CHECK_EQ_STR(batches_of(lines, "boundaries: [4, 6, 7], size: 2, pad_to: boundary"),
                 "a.. bb.\n"
                 "bbbbbb eeeeee\n"
                 "ccc e..\n"
                 "dddd. ggggg\n"
                 "ff.\n");
    CHECK_EQ_STR(batches_of(lines, "boundaries: [4, 6], size: 3, pad_to: boundary, "
                                   "too_long: drop, multiple: 4"),
                 "a... bb.. ccc.\n"
                 "e... ff..\n"
                 "dddd.... ggggg...\n");
}

TEST(empty_records_count_as_one_element)
{
    CHECK_EQ_STR(batches_of("\n\n\n\nabc\n", "boundaries: [1], elements: 3"), "  \n"
                                                                              "abc\n"
                                                                              "\n");
}

/* ---- what is refused ---- */

static void check_refused(enum hr_err code, const char *params, const char *words)
{
    char node[300];
    struct outcome_job job;
    struct outcome *o;

    snprintf(node, sizeof node, "  - batch.bucket: {%s}\n", params);
    job = job_over("aaa\nbbbbbbbb\n", node);
    job.options.on_error = HR_ON_ERROR_FAIL;
    o = outcome_run(&job);
    if (code != o->code || strstr(o->error.message, words) == NULL)
        check_failed(__FILE__, __LINE__, "%s: %s", params, o->error.message);
    CHECK_EQ_STR(o->error.op, "batch.bucket");
    if (code == HR_ERR_SHAPE && o->error.line == 0)
        CHECK_EQ_INT(o->error.record, 2);
    outcome_free(o);
}

TEST(what_cannot_be_bucketed_is_refused)
{
    check_refused(HR_ERR_ARGUMENT, "boundaries: [4, 4], size: 2", "4 follows 4");
    check_refused(HR_ERR_ARGUMENT, "boundaries: [4, 9], size: [2, 3]",
                  "2 boundaries make 3 buckets, but there are 2 sizes");
    check_refused(HR_ERR_ARGUMENT, "boundaries: 4", "either `size` or `elements`");
    check_refused(HR_ERR_ARGUMENT, "boundaries: 4, size: 2, elements: 3", "not both");
    check_refused(HR_ERR_GRAPH, "boundaries: 4, size: 2, by: ids", "ids");
    check_refused(HR_ERR_SHAPE, "boundaries: 4, size: 2, dim: 1", "has 1 dimension");
    check_refused(HR_ERR_SHAPE, "boundaries: 4, elements: 7",
                  "\"tokens\" is 8, padded 8");
    check_refused(HR_ERR_SHAPE, "boundaries: 4, size: 2, pad_to: boundary",
                  "the last boundary 4");
}
