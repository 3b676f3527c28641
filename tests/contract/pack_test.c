/*
 * tests/contract/pack_test.c - tokens.pack: rows hold each list once, where the fit says;
 * the same rows in every way to run a graph.
 */
#include "tests/contract/contract.h"

#include "core/file.h"
#include "graph/graph.h"

static struct outcome_job
job_of(int lines, int words, const char *before, const char *after)
{
    char nodes[2000];

    snprintf(nodes, sizeof nodes, "%s%s%s", before, contract_bytes(), after);
    return contract_lines(lines, words, nodes);
}

#define FAIL "  - debug.fail: {probability: 0.1}\n"

TEST(packed_rows_have_one_digest)
{
    outcome_free(contract_check(job_of(90, 5, "  - order.shuffle: {}\n" FAIL,
                                       "  - tokens.pack: {length: 40, bins: 3}\n" FAIL
                                       "  - batch.stack: {size: 3}\n")));
}

TEST(rows_shorter_than_lists_have_one_digest)
{
    outcome_free(
        contract_check(job_of(50, 9, "",
                              "  - tokens.pack: {length: 7, bins: 2, fit: first}\n"
                              "  - batch.stack: {size: 5}\n")));
}

TEST(rows_are_shuffled_counted_and_packed_again)
{
    outcome_free(contract_check(
        job_of(60, 5, "  - record.filter: {expr: \"text.length != 9\"}\n",
               "  - tokens.pack: {length: 30, value: -1}\n"
               "  - order.skip: {count: 2}\n  - order.shuffle: {window: 4}\n"
               "  - tokens.pack: {length: 100, bins: 2}\n"
               "  - batch.stack: {size: 2}\n")));
}

/* ---- what rows hold ---- */

/* A graph over a file of these lines. */
static struct outcome_job job_over(const char *lines, const char *after)
{
    static char graph[2000];
    char path[512];

    snprintf(path, sizeof path, "%s/some.txt", check_temp_dir());
    CHECK_OK(hr__file_replace(path, lines, strlen(lines), NULL));
    snprintf(graph, sizeof graph,
             "headrace: 1\npipeline:\n  - source.list: {path: '%s'}\n%s%s"
             "  - batch.stack: {size: 100}\n",
             path, contract_bytes(), after);
    return contract_job(graph);
}

/* The rows of one epoch as lines of text, `.` for filling, and after each its segments.
 */
static const char *rows_of(const char *lines, const char *after)
{
    struct outcome_job job = job_over(lines, after);
    struct contract_batches batches;
    static char text[4000];
    size_t at = 0;

    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t b = 0; b < batches.count; b++) {
        struct hr_field_view tokens = contract_field(batches.items[b], "tokens");
        struct hr_field_view segments = contract_field(batches.items[b], "segment_ids");
        const int32_t *token = tokens.data, *segment = segments.data;

        CHECK_EQ_INT(hr_batch_field_count(batches.items[b]), 3);
        for (int64_t i = 0; i < tokens.dims[0]; i++) {
            for (int64_t k = 0; k < tokens.dims[1]; k++)
                text[at++] = (char)*token++;
            text[at++] = ' ';
            for (int64_t k = 0; k < tokens.dims[1]; k++)
                text[at++] = (char)('0' + *segment++);
            text[at++] = '\n';
        }
    }
    text[at] = '\0';
    contract_drop(&batches);
    return text;
}

#define PACK(more) "  - tokens.pack: {length: 8, value: 46" more "}\n"

TEST(a_list_goes_into_the_row_that_it_fills_most)
{
    static const char lines[] = "aaaaa\nbbbbbb\ncc\nddd\ne\n";

    CHECK_EQ_STR(rows_of(lines, PACK("")), "bbbbbbcc 11111122\n"
                                           "aaaaaddd 11111222\n"
                                           "e....... 10000000\n");
    CHECK_EQ_STR(rows_of(lines, PACK(", fit: first")), "aaaaacce 11111223\n"
                                                       "bbbbbb.. 11111100\n"
                                                       "ddd..... 11100000\n");
}

TEST(the_fullest_row_is_closed_when_no_more_may_be_open)
{
    CHECK_EQ_STR(rows_of("aaa\nbbbbbb\ncccccc\ndd\neeeee\n", PACK(", bins: 2")),
                 "bbbbbb.. 11111100\n"
                 "ccccccdd 11111122\n"
                 "aaaeeeee 11122222\n");
    CHECK_EQ_STR(rows_of("aaa\nbbbbbb\ncccccc\n", PACK(", bins: 1")),
                 "aaa..... 11100000\n"
                 "bbbbbb.. 11111100\n"
                 "cccccc.. 11111100\n");
}

TEST(long_lists_are_split_and_empty_ones_leave_no_trace)
{
    CHECK_EQ_STR(rows_of("x\n\nabcdefghijklmnopqrs\n\nyyyyy\n", PACK("")),
                 "abcdefgh 11111111\n"
                 "ijklmnop 11111111\n"
                 "xqrs.... 12220000\n"
                 "yyyyy... 11111000\n");
    CHECK_EQ_STR(rows_of("abcdefgh\n", PACK("")), "abcdefgh 11111111\n");
    CHECK_EQ_STR(rows_of("abc\n", "  - tokens.pack: {length: 1}\n"), "a 1\nb 1\nc 1\n");
    CHECK_EQ_STR(rows_of("\n", PACK("")), "");
}

#define LINES 200
#define LENGTH 64

struct seen {
    const char *text;
    bool lines[LINES];
};

/* Finds a line with these letters that was not found before. */
static bool find_line(struct seen *seen, const int32_t *letters, int64_t count)
{
    const char *line = seen->text;

    for (int i = 0; i < LINES; i++, line = strchr(line, '\n') + 1) {
        bool same = !seen->lines[i] && (int64_t)strcspn(line, "\n") == count;

        for (int64_t k = 0; k < count && same; k++)
            same = line[k] == (char)letters[k];
        if (same)
            return seen->lines[i] = true;
    }
    return false;
}

static void check_row(struct seen *seen, const int32_t *tokens, const int32_t *segments,
                      const int32_t *positions)
{
    int32_t last = 0;

    for (int64_t k = 0, from; k < LENGTH;) {
        for (from = k; k < LENGTH && segments[k] == segments[from]; k++)
            CHECK_EQ_INT(positions[k], segments[k] > 0 ? k - from : 0);
        if (segments[from] > 0) {
            CHECK_EQ_INT(segments[from], ++last);
            CHECK(find_line(seen, tokens + from, k - from));
            continue;
        }
        CHECK_EQ_INT(k, LENGTH);
        for (; from < k; from++)
            CHECK_EQ_INT(tokens[from], 7);
    }
}

static void check_rows(struct seen *seen, const struct hr_batch *batch)
{
    struct hr_field_view tokens = contract_field(batch, "tokens");
    struct hr_field_view segments = contract_field(batch, "segment_ids");
    struct hr_field_view positions = contract_field(batch, "positions");

    CHECK(tokens.ndim == 2 && tokens.dims[1] == LENGTH && tokens.dtype == HR_I32);
    CHECK(segments.dtype == HR_I32 && positions.dtype == HR_I32);
    for (int64_t i = 0; i < tokens.dims[0] * LENGTH; i += LENGTH)
        check_row(seen, (const int32_t *)tokens.data + i,
                  (const int32_t *)segments.data + i,
                  (const int32_t *)positions.data + i);
}

static void check_fit(const char *params)
{
    struct seen seen = {NULL};
    struct contract_batches batches;
    struct outcome_job job;
    char nodes[200];

    snprintf(nodes, sizeof nodes,
             "  - tokens.pack: {length: 64, value: 7, %s}\n  - batch.stack: {size: 4}\n",
             params);
    job = job_of(LINES, 5, "", nodes);
    (void)contract_text(LINES, 5, &seen.text);
    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t i = 0; i < batches.count; i++)
        check_rows(&seen, batches.items[i]);
    contract_drop(&batches);
    for (int i = 0; i < LINES; i++, seen.text = strchr(seen.text, '\n') + 1)
        CHECK(seen.lines[i] == (seen.text[0] != '\n'));
}

/* Lines of at most five words are shorter than a row. */
TEST(rows_hold_every_list_once)
{
    check_fit("bins: 5");
    check_fit("bins: 5, fit: first");
    check_fit("bins: 0, overflow: refuse");
}

/* ---- what is refused ---- */

static void check_refused(enum hr_err code, const char *node, const char *words)
{
    struct outcome_job job = job_over("aaaaaaaaaaaa\n", node);
    struct outcome *o;

    job.options.on_error = HR_ON_ERROR_FAIL;
    o = outcome_run(&job);
    CHECK_ERR(code, o->code);
    CHECK_HAS(o->error.message, words);
    outcome_free(o);
}

TEST(what_cannot_be_packed_is_refused)
{
    check_refused(HR_ERR_SHAPE, PACK(", overflow: refuse"), "overflow: split");
    check_refused(HR_ERR_TYPE,
                  "  - tensor.cast: {field: tokens, dtype: float32}\n" PACK(""),
                  "must be a list of integers");
    check_refused(HR_ERR_LIMIT, "  - tokens.pack: {length: 1024, bins: 1000}\n",
                  "holds at most");
    check_refused(HR_ERR_GRAPH, PACK(", positions: segment_ids"), "segment_ids");
    check_refused(HR_ERR_RANGE, "  - tokens.pack: {length: 0}\n", "length");
}

TEST(a_list_that_is_refused_is_named)
{
    struct outcome_job job = job_over("a\naaaaaaaaaaaa\n", PACK(", overflow: refuse"));
    struct outcome *o = outcome_run(&job);

    CHECK_ERR(HR_ERR_SHAPE, o->code);
    CHECK_EQ_INT(o->error.record, 2);
    CHECK_HAS(o->error.file, "some.txt");
    outcome_free(o);
}

TEST(long_rows_are_packed_without_naming_bins)
{
    struct outcome_job job;
    struct outcome *o;
    struct hr_str lines;

    hr__str_init(&lines);
    for (int i = 0; i < 40; i++) {
        for (int k = 0; k < 8000; k++)
            hr__str_addf(&lines, "%c", 'a' + k % 26);
        hr__str_add(&lines, "\n");
    }
    job = job_over(lines.text, "  - tokens.pack: {length: 8192}\n");
    job.options.epochs = 1;
    job.states = true;
    o = outcome_run(&job);
    CHECK_ERR(HR_ERR_END, o->code);
    CHECK_EQ_INT(o->records, 40);
    outcome_free(o);
    hr__str_finish(&lines);
}
