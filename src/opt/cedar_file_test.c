/*
 * opt/cedar_file_test.c - cedar's files: read, refused with the place of what is wrong,
 * printed, joined with each other.
 */
#include "tests/support/check.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/str.h"
#include "opt/cedar_file.h"

#define STATS                                                                            \
    "baseline:\n"                                                                        \
    "  throughput: 10\n"                                                                 \
    "  latencies: {3: 1, 2: 1, 1: 1, 0: 1}\n"                                            \
    "  input_sizes: {3: 0, 2: 1, 1: 10, 0: 10}\n"                                        \
    "  output_sizes: {3: 1, 2: 10, 1: 10, 0: 1}\n"                                       \
    "offloads:\n"                                                                        \
    "  RAY: {2: {throughput: 12.5, latencies: {}}}\n"                                    \
    "  SMP: {}\n"                                                                        \
    "tf_fuse: {throughput: 77}\n"                                                        \
    "disk_info: {read_latency: 8.0e-09, write_latency: 2.5e-08}\n"
#define LOGICAL                                                                          \
    "logical_plan:\n"                                                                    \
    "  graph: {3: '2', 2: '1', 1: '0', 0: ''}\n"                                         \
    "  pipes:\n"                                                                         \
    "    0: {name: MapperPipe_shrink, tag: s, depends_on: [grow]}\n"                     \
    "    1: {name: MapperPipe_keep, is_random: true}\n"                                  \
    "    2: {name: MapperPipe_grow, tag: grow}\n"                                        \
    "    3: {name: IterSourcePipe}\n"

static void read_stats(const char *text, struct hr_cedar_measures *ret_measures)
{
    struct hr_error error = {0};

    if (hr__cedar_measures_parse(text, strlen(text), "s.yml", ret_measures, &error) !=
        HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
}

static void read_plan(const char *text, struct hr_cedar_plan *ret_plan)
{
    struct hr_error error = {0};

    if (hr__cedar_plan_parse(text, strlen(text), "p.yml", ret_plan, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
}

/* The text with one part replaced. */
static char *with(const char *text, const char *part, const char *other)
{
    const char *at = strstr(text, part);
    struct hr_str made;

    CHECK(at != NULL);
    hr__str_init(&made);
    hr__str_add_bytes(&made, text, (size_t)(at - text));
    hr__str_add(&made, other);
    hr__str_add(&made, at + strlen(part));
    return hr__str_take(&made);
}

/* ---- statistics ---- */

TEST(statistics_are_read)
{
    struct hr_cedar_measures measures;
    const struct hr_cedar_measure *pipe;

    read_stats(STATS, &measures);
    CHECK_EQ_INT(measures.pipe_count, 4);
    CHECK(measures.rate == 10 && measures.tf_rate == 77);
    CHECK(measures.disk_read == 8e-9 && measures.disk_write == 2.5e-8);
    pipe = hr__cedar_measure(&measures, 2);
    CHECK(pipe->latency_ns == 1 && pipe->bytes_in == 1 && pipe->bytes_out == 10);
    CHECK(pipe->rates[HR_CEDAR_RAY] == 12.5 && pipe->rates[HR_CEDAR_SMP] == 0);
    CHECK(hr__cedar_measure(&measures, 4) == NULL);
    read_stats("{\"baseline\": {\"throughput\": 1.5, \"latencies\": {\"0\": 2}, "
               "\"input_sizes\": {\"0\": 0}, \"output_sizes\": {\"0\": 7}}}",
               &measures);
    CHECK(measures.pipe_count == 1 && measures.disk_read == -1);
}

static void check_stats_error(const char *part, const char *other, const char *message)
{
    struct hr_cedar_measures measures;
    struct hr_error error = {0};
    char *text = with(STATS, part, other);

    if (hr__cedar_measures_parse(text, strlen(text), "s.yml", &measures, &error) == HR_OK)
        check_failed(__FILE__, __LINE__, "\"%s\" is accepted", other);
    CHECK_HAS(error.message, message);
    CHECK_HAS(error.message, "s.yml:");
    CHECK(error.line > 0 && error.column > 0);
    hr__free(text);
}

TEST(statistics_that_are_wrong_are_refused_with_their_place)
{
    check_stats_error("baseline:", "basline:",
                      "s.yml:1:1: key \"basline\" is not known; "
                      "did you mean \"baseline\"?");
    check_stats_error("  throughput: 10\n", "", "\"throughput\" is missing");
    check_stats_error("throughput: 10", "throughput: 0",
                      "s.yml:2:15: \"throughput\" must "
                      "be a number above 0");
    check_stats_error("throughput: 10", "throughput: fast", "must be a number, not");
    check_stats_error("throughput: 10", "throughput: .nan", "not nan");
    check_stats_error("latencies: {3: 1, 2: 1, 1: 1, 0: 1}", "latencies: {}", "empty");
    check_stats_error("latencies: {3: 1", "latencies: {3: -1",
                      "\"3\" must be a number from 0");
    check_stats_error("latencies: {3: 1", "latencies: {x: 1", "\"x\" is no pipe");
    check_stats_error("latencies: {3: 1", "latencies: {03: 1", "\"03\" is no pipe");
    check_stats_error("latencies: {3: 1,", "latencies: {",
                      "pipe 3 is in \"input_sizes\" "
                      "but not in \"latencies\"");
    check_stats_error("input_sizes: {3: 0,", "input_sizes: {",
                      "s.yml:4:16: pipe 3 is missing in \"input_sizes\"");
    check_stats_error("output_sizes: {3: 1, 2: 10, 1: 10, 0: 1}", "output_sizes: 3",
                      "\"output_sizes\" must be a map");
    check_stats_error("RAY:", "RAI:", "did you mean \"RAY\"?");
    check_stats_error("{2: {throughput: 12.5", "{7: {throughput: 12.5",
                      "pipe 7 was offloaded to RAY but is not in the baseline");
    check_stats_error("throughput: 12.5, ", "", "\"throughput\" is missing");
    check_stats_error("throughput: 12.5, ", "throughput: 12.5, x: 1, ", "key \"x\"");
    check_stats_error("SMP: {}", "SMP: []", "\"SMP\" must be a map");
    check_stats_error("{throughput: 77}", "77", "\"tf_fuse\" must be a map");
    check_stats_error("read_latency: 8.0e-09, ", "", "\"read_latency\" is missing");
    check_stats_error("2.5e-08", "slow", "\"write_latency\" must be a number");
    check_stats_error(STATS, "- 1\n", "no statistics of cedar");
}

TEST(statistics_read_back_as_printed)
{
    struct hr_cedar_measures measures, read;
    struct hr_str text;

    read_stats(STATS, &measures);
    measures.pipes[1].latency_ns = 1e-5;
    measures.pipes[1].bytes_in = 1e17;
    hr__str_init(&text);
    hr__cedar_measures_print(&measures, &text);
    /* as YAML 1.1, which cedar reads, has numbers */
    CHECK_HAS(hr__str_text(&text), "2: 1.0e-05\n");
    CHECK_HAS(hr__str_text(&text), "2: {throughput: 12.5}\n");
    CHECK_HAS(hr__str_text(&text), "SMP: {}\n");
    CHECK_HAS(hr__str_text(&text), "read_latency: 8.0e-09\n");
    read_stats(hr__str_text(&text), &read);
    CHECK_EQ_INT(read.pipe_count, measures.pipe_count);
    for (size_t i = 0; i < read.pipe_count; i++) {
        const struct hr_cedar_measure *a = &read.pipes[i], *b = &measures.pipes[i];

        CHECK(a->id == b->id && a->latency_ns == b->latency_ns);
        CHECK(a->bytes_in == b->bytes_in && a->bytes_out == b->bytes_out);
        CHECK_BYTES(a->rates, b->rates, sizeof a->rates);
    }
    CHECK(read.rate == 10 && read.tf_rate == 77 && read.disk_write == 2.5e-8);
    hr__str_finish(&text);
}

/* ---- plans ---- */

#define PHYSICAL                                                                         \
    "physical_plan:\n"                                                                   \
    "  graph: {3: '5', 5: '0', 0: '4', 4: ''}\n"                                         \
    "  n_local_workers: 8\n"                                                             \
    "  pipes:\n"                                                                         \
    "    0: {name: MapperPipe_shrink, variant: TF, "                                     \
    "variant_ctx: {variant_type: TF, num_parallel_calls: null}}\n"                       \
    "    1: {name: MapperPipe_keep, variant: INPROCESS}\n"                               \
    "    2: {name: MapperPipe_grow, variant: INPROCESS}\n"                               \
    "    3: {name: IterSourcePipe, variant: INPROCESS}\n"                                \
    "    4: {name: PrefetcherPipe, variant: INPROCESS}\n"                                \
    "    5: {name: FusedPipe, fused_pipes: [2, 1], variant: RAY, variant_ctx: "          \
    "{variant_type: RAY, n_actors: 4, max_inflight: 396, use_threads: true}}\n"

TEST(a_plan_is_read)
{
    const struct hr_cedar_entry *fused;
    struct hr_cedar_plan plan;

    read_plan(PHYSICAL LOGICAL, &plan);
    CHECK(plan.logical.entry_count == 4 && plan.physical.entry_count == 6);
    CHECK_EQ_INT(plan.physical.drivers, 8);
    CHECK_BYTES(plan.physical.chain, ((int64_t[]){3, 5, 0, 4}), 4 * sizeof(int64_t));
    fused = hr__cedar_entry(&plan.physical, 5);
    CHECK(fused->variant == HR_CEDAR_RAY && fused->fused_count == 2);
    CHECK(fused->fused[0] == 2 && fused->fused[1] == 1 && fused->has_context);
    CHECK_EQ_INT(fused->numbers[HR_CEDAR_N_ACTORS], 4);
    CHECK_EQ_INT(fused->numbers[HR_CEDAR_USE_THREADS], 1);
    CHECK(fused->numbers[HR_CEDAR_N_PROCS] == HR_CEDAR_UNSET);
    CHECK_EQ_INT(plan.logical.entries[1].hints[HR_CEDAR_IS_RANDOM], 1);
    CHECK_EQ_INT(plan.logical.entries[1].hints[HR_CEDAR_FIX], -1);
    hr__cedar_plan_finish(&plan);
    read_plan("logical_plan: {graph: {1: 0, 0: }, pipes: {1: {name: a}, 0: {name: b}}}",
              &plan);
    CHECK_EQ_INT(plan.logical.chain_count, 2);
    hr__cedar_plan_finish(&plan);
}

static void check_plan_error(const char *part, const char *other, const char *message)
{
    struct hr_cedar_plan plan;
    struct hr_error error = {0};
    char *text = with(PHYSICAL LOGICAL, part, other);

    if (hr__cedar_plan_parse(text, strlen(text), "p.yml", &plan, &error) == HR_OK)
        check_failed(__FILE__, __LINE__, "\"%s\" is accepted", other);
    CHECK_HAS(error.message, message);
    CHECK_HAS(error.message, "p.yml:");
    CHECK(error.line > 0 && error.column > 0);
    hr__free(text);
}

TEST(plans_that_are_wrong_are_refused_with_their_place)
{
    check_plan_error("physical_plan", "fysical_plan", "p.yml:1:1: key \"fysical_plan\"");
    check_plan_error("n_local_workers: 8", "n_local_workers: 0", "must be 1 to");
    check_plan_error("n_local_workers: 8", "n_local_workers: x", "a whole number");
    check_plan_error("n_local_workers", "n_workers", "\"n_workers\" is not known");
    check_plan_error("graph: {3: '5'", "graph: {3: '5,0'",
                     "p.yml:2:14: pipe 3 feeds "
                     "several pipes");
    check_plan_error("graph: {3: '5'", "graph: {3: '9'", "pipe 9 is not under \"pipes\"");
    check_plan_error("graph: {3: '5'", "graph: {9: '5'", "pipe 9 is not under \"pipes\"");
    check_plan_error("graph: {3: '5'", "graph: {3: x", "the id of the next pipe");
    check_plan_error("0: '4', 4: ''", "0: '4', 4: '3'", "not one chain");
    check_plan_error("5: '0', 0: '4', 4: ''", "5: '', 0: '4', 4: ''", "not one chain");
    check_plan_error("5: '0', 0: '4', 4: ''", "5: '0', 0: '5', 4: ''", "not one chain");
    check_plan_error("3: '5', 5: '0', 0: '4', 4: ''", "3: '5', 5: '4', 4: ''",
                     "pipe 0 (MapperPipe_shrink) must be in \"graph\" or in one "
                     "\"fused_pipes\", and is in 0 places");
    check_plan_error("fused_pipes: [2, 1]", "fused_pipes: [2, 1, 1]", "is in 2 places");
    check_plan_error("fused_pipes: [2, 1]", "fused_pipes: [2, 7]", "fused pipe 7 is not");
    check_plan_error("fused_pipes: [2, 1]", "fused_pipes: [2, 1, 5]",
                     "fused pipe 5 is a fused pipe itself");
    check_plan_error("fused_pipes: [2, 1]", "fused_pipes: []", "has 0 pipes");
    check_plan_error("fused_pipes: [2, 1]", "fused_pipes: [a]", "a list of ids");
    check_plan_error("variant: RAY,", "variant: RAI,", "did you mean \"RAY\"?");
    check_plan_error("variant_type: RAY", "variant_type: SMP",
                     "\"variant_type\" is SMP, but the variant is RAY");
    check_plan_error("variant_type: RAY, ", "", "\"variant_type\" is missing");
    check_plan_error("n_actors: 4", "n_actors: -4", "\"n_actors\" must be 1 to");
    check_plan_error("n_actors: 4", "n_actors: many", "a whole number");
    check_plan_error("n_actors: 4", "actors: 4", "did you mean \"n_actors\"?");
    check_plan_error("use_threads: true", "use_threads: 1", "true or false");
    check_plan_error("{name: FusedPipe, ", "{", "\"name\" is missing");
    check_plan_error("name: FusedPipe", "name: ''", "\"name\" is empty");
    check_plan_error("is_random: true", "is_random: 1", "true or false");
    check_plan_error("is_random: true", "random: true", "\"random\" is not known");
    check_plan_error("depends_on: [grow]", "depends_on: grow", "a list of tags");
    check_plan_error("depends_on: [grow]", "depends_on: [[]]", "a list of tags");
    check_plan_error("tag: s", "tag: 5", "\"tag\" must be a string");
    check_plan_error(PHYSICAL LOGICAL, "[]", "no plan of cedar");
}

TEST(a_plan_reads_back_as_printed)
{
    struct hr_cedar_plan plan;
    struct hr_str text, again;

    hr__str_init(&text);
    hr__str_init(&again);
    read_plan(PHYSICAL LOGICAL, &plan);
    hr__cedar_plan_print(&plan, &text);
    CHECK_HAS(hr__str_text(&text), "graph: {3: '5', 5: '0', 0: '4', 4: ''}");
    CHECK_HAS(hr__str_text(&text), "fused_pipes: [2, 1]");
    CHECK_HAS(hr__str_text(&text), "n_actors: 4, max_inflight: 396, use_threads: true");
    CHECK_HAS(hr__str_text(&text), "tag: \"s\", depends_on: [\"grow\"]");
    hr__cedar_plan_finish(&plan);
    read_plan(hr__str_text(&text), &plan);
    hr__cedar_plan_print(&plan, &again);
    CHECK_EQ_STR(hr__str_text(&text), hr__str_text(&again));
    hr__cedar_plan_finish(&plan);
    hr__str_finish(&text);
    hr__str_finish(&again);
}

/* ---- both ---- */

TEST(statistics_get_names_and_hints)
{
    struct hr_cedar_pipeline pipeline;
    struct hr_cedar_measures measures;
    struct hr_cedar_plan plan;
    const struct hr_cedar_pipe *pipes = pipeline.pipes;

    read_stats(STATS, &measures);
    read_plan(LOGICAL, &plan);
    CHECK_OK(hr__cedar_join(&measures, "s.yml", &plan, "p.yml", &pipeline, NULL));
    CHECK_EQ_INT(pipeline.stats.pipe_count, 4);
    CHECK_EQ_STR(pipes[0].name, "IterSourcePipe");
    CHECK(pipes[0].fixed && !pipes[0].fusable && !pipes[1].fixed && pipes[1].fusable);
    CHECK(pipes[2].random && !pipes[1].random);
    CHECK_EQ_INT(pipes[3].depends_on, 2);
    CHECK(pipes[1].rates[HR_CEDAR_RAY] == 12.5);
    CHECK((pipes[1].variants >> HR_CEDAR_RAY & 1) != 0);
    CHECK((pipes[0].variants >> HR_CEDAR_RAY & 1) == 0);
    hr__cedar_plan_finish(&plan);
}

TEST(pipes_are_known_by_the_beginning_of_their_names)
{
    static const char text[] =
        "physical_plan:\n  pipes:\n"
        "    9: {name: PrefetcherPipe, variant: INPROCESS}\n"
        "    0: {name: 'BatcherPipe(batch_size=1)'}\n"
        "    1: {name: 'MapperPipe_ToTensor()'}\n"
        "    2: {name: ImageReaderPipe, tf_py_func: true, fix: true}\n"
        "    3: {name: LocalFSListerPipe}\n";
    struct hr_cedar_pipeline pipeline;
    struct hr_cedar_measures measures;
    struct hr_cedar_plan plan;
    const struct hr_cedar_pipe *pipes = pipeline.pipes;

    read_stats(STATS, &measures);
    measures.pipes[2].rates[HR_CEDAR_TF_RAY] = 5; /* pipe 1 */
    read_plan(text, &plan);
    CHECK_OK(hr__cedar_join(&measures, "s.yml", &plan, "p.yml", &pipeline, NULL));
    CHECK_EQ_INT(pipeline.stats.pipe_count, 4);
    CHECK((pipes[0].variants >> HR_CEDAR_RAY_DS & 1) != 0);
    CHECK(pipes[1].fixed && !pipes[1].fusable && pipes[1].py_function && pipes[1].tf);
    CHECK((pipes[1].variants >> HR_CEDAR_RAY & 1) == 0);
    CHECK(pipes[2].kept && pipes[2].tf && !pipes[2].fixed);
    CHECK((pipes[2].variants >> HR_CEDAR_TF_RAY & 1) != 0);
    CHECK(pipes[3].batches && pipes[3].fixed && !pipes[3].fusable);
    hr__cedar_plan_finish(&plan);
}

static void check_join_error(const char *part, const char *other, const char *message)
{
    struct hr_cedar_pipeline pipeline;
    struct hr_cedar_measures measures;
    struct hr_cedar_plan plan;
    struct hr_error error = {0};
    char *text = with(LOGICAL, part, other);

    read_stats(STATS, &measures);
    read_plan(text, &plan);
    if (hr__cedar_join(&measures, "s.yml", &plan, "p.yml", &pipeline, &error) == HR_OK)
        check_failed(__FILE__, __LINE__, "\"%s\" is accepted", other);
    CHECK_HAS(error.message, message);
    CHECK_HAS(error.message, "p.yml");
    hr__cedar_plan_finish(&plan);
    hr__free(text);
}

TEST(names_that_do_not_fit_the_statistics_are_refused)
{
    check_join_error("[grow]", "[grov]", "did you mean \"grow\"?");
    check_join_error("[grow]", "[8]", "there is no pipe 8");
    check_join_error("[grow]", "[s]", "is not before");
    check_join_error("[grow]", "[MapperPipe_keep_2]", "no pipe has the tag");
    check_join_error("is_random: true", "tag: grow", "more than one pipe has the tag");
    check_join_error("{3: '2', 2: '1', 1: '0', 0: ''}\n  pipes:\n",
                     "{7: '3', 3: '2', 2: '1', 1: '0', 0: ''}\n  pipes:\n"
                     "    7: {name: first}\n",
                     "pipe 7 (first) is not in the statistics s.yml");
    check_join_error("graph: {3: '2', 2: '1', 1: '0', 0: ''}\n  pipes:\n"
                     "    0: {name: MapperPipe_shrink, tag: s, depends_on: [grow]}\n",
                     "pipes:\n", "the statistics s.yml have pipe 0, which is missing");
}

TEST(a_plan_that_was_made_serves_as_names_again)
{
    struct hr_cedar_pipeline pipeline, again;
    struct hr_cedar_options options;
    struct hr_cedar_result result, second;
    struct hr_cedar_measures measures;
    struct hr_cedar_plan plan, made;
    struct hr_str text;

    read_stats(STATS, &measures);
    read_plan(LOGICAL, &plan);
    CHECK_OK(hr__cedar_join(&measures, "s.yml", &plan, "p.yml", &pipeline, NULL));
    hr__cedar_options_init(&options);
    options.cache_samples = 10;
    CHECK_OK(hr__cedar_optimize(&pipeline.stats, &options, &result, NULL));
    CHECK_OK(hr__cedar_plan_make(&pipeline, &result, &made, NULL));
    hr__str_init(&text);
    hr__cedar_plan_print(&made, &text);
    hr__cedar_plan_finish(&made);
    CHECK_HAS(hr__str_text(&text), "name: \"PrefetcherPipe\", variant: INPROCESS");
    CHECK_HAS(hr__str_text(&text), "name: \"ObjectDiskCachePipe\"");
    read_plan(hr__str_text(&text), &made);
    CHECK_OK(hr__cedar_join(&measures, "s.yml", &made, "m.yml", &again, NULL));
    CHECK_OK(hr__cedar_optimize(&again.stats, &options, &second, NULL));
    CHECK(second.orders == result.orders && second.cost_ms == result.cost_ms);
    CHECK_BYTES(second.order, result.order, 4);
    hr__cedar_plan_finish(&made);
    hr__cedar_plan_finish(&plan);
    hr__str_finish(&text);
}

TEST(files_without_memory_are_errors)
{
    static const char text[] = PHYSICAL LOGICAL;
    struct hr_cedar_measures measures;
    struct hr_cedar_plan plan;
    enum hr_err codes[2] = {HR_ERR_MEMORY, HR_ERR_MEMORY};

    for (uint64_t nth = 1; codes[0] != HR_OK || codes[1] != HR_OK; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        codes[0] = hr__cedar_plan_parse(text, sizeof text - 1, "p.yml", &plan, NULL);
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        codes[1] =
            hr__cedar_measures_parse(STATS, sizeof STATS - 1, "s.yml", &measures, NULL);
        hr__fault_arm(0, 0);
        CHECK(codes[0] == HR_OK || codes[0] == HR_ERR_MEMORY);
        CHECK(codes[1] == HR_OK || codes[1] == HR_ERR_MEMORY);
        if (codes[0] == HR_OK)
            hr__cedar_plan_finish(&plan);
    }
}
