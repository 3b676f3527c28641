/*
 * tests/conformance/identity_test.c - a record is the same record in every run: its
 * random draws stay while other nodes come and go, and a bad one has the same identity,
 * file and line of the ledger in every stage, variant, world, and after a kill.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/doc.h"
#include "core/file.h"
#include "opt/opt.h"
#include "tests/conformance/photos.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"
#include "tests/support/peers.h"

/* ---- draws ---- */

#define PHOTOS_HEAD                                                                      \
    "headrace: 1\nparams:\n  data: {type: path}\npipeline:\n"                            \
    "  - source.files: {path: \"${data}\", labels: folder}\n"
#define SHUFFLE "  - order.shuffle: {}\n"
#define DECODE "  - image.decode: {mode: exact}\n"
#define CROP "  - image.random_resized_crop: {size: 24}\n"
#define FLIP "  - image.flip: {p: 0.5}\n"
#define JITTER "  - image.color_jitter: {brightness: 0.4}\n"
#define BLUR "  - image.gaussian_blur: {size: 5, sigma: [0.1, 2.0]}\n"
#define CAST "  - tensor.cast: {dtype: uint8}\n"
#define GRAY_NEVER "  - image.grayscale: {p: 0, channels: 3}\n"
#define FILTER_NONE "  - record.filter: {expr: \"label >= 0\"}\n"
#define TAKE_ALL "  - order.take: {count: 1000000}\n"
#define WINDOW "  - order.shuffle: {window: 16}\n"
#define BATCH "  - batch.stack: {size: 7}\n"

static struct outcome *run_photos(const char *text)
{
    struct outcome_job job = outcome_job_with(text, 2, NULL);

    job.states = false;
    job.params[job.param_count++] = (struct hr_graph_param){"data", photos_good()};
    return outcome_run(&job);
}

TEST(nodes_that_change_nothing_change_no_draws_of_others)
{
    static const struct {
        const char *words, *text;
    } cases[] = {
        {"a cast before all",
         PHOTOS_HEAD SHUFFLE DECODE CAST CROP FLIP JITTER BLUR BATCH                                                               },
        {"casts between",
         PHOTOS_HEAD SHUFFLE DECODE CROP CAST FLIP CAST JITTER BLUR BATCH                                                          },
        {"another random op",
         PHOTOS_HEAD SHUFFLE DECODE GRAY_NEVER CROP FLIP JITTER BLUR BATCH                                                         },
        {"a filter",                        PHOTOS_HEAD SHUFFLE FILTER_NONE DECODE CROP FLIP JITTER BLUR BATCH                     },
        {"an order op",                     PHOTOS_HEAD TAKE_ALL SHUFFLE DECODE CROP FLIP JITTER BLUR BATCH                        },
        {"another place of a flip",
         PHOTOS_HEAD SHUFFLE DECODE CROP JITTER FLIP BLUR BATCH                                                                    },
        {"a named node that draws nothing", PHOTOS_HEAD SHUFFLE
         "  - image.decode: {mode: exact}\n    name: mine\n" CROP FLIP JITTER BLUR BATCH},
    };
    struct outcome *whole =
        run_photos(PHOTOS_HEAD SHUFFLE DECODE CROP FLIP JITTER BLUR BATCH);

    CHECK_EQ_INT(whole->records, PHOTOS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct outcome *other = run_photos(cases[i].text);

        outcome_check_same(whole, other, 0, cases[i].words);
        outcome_free(other);
    }
    outcome_free(whole);
}

TEST(another_name_or_place_among_its_kind_gives_other_draws)
{
    static const char *const texts[] = {
        PHOTOS_HEAD DECODE CROP "  - image.flip: {p: 0.5}\n    name: mine\n" BATCH,
        PHOTOS_HEAD DECODE CROP "  - image.flip: {p: 0}\n" FLIP BATCH,
    };
    struct outcome *whole = run_photos(PHOTOS_HEAD DECODE CROP FLIP BATCH);

    for (size_t i = 0; i < 2; i++) {
        struct outcome *other = run_photos(texts[i]);

        CHECK_EQ_INT(other->records, PHOTOS);
        CHECK(outcome_difference(whole, other, 0) != NULL);
        outcome_free(other);
    }
    outcome_free(whole);
}

TEST(nodes_before_a_window_change_nothing_of_its_order)
{
    static const char *const texts[] = {
        PHOTOS_HEAD TAKE_ALL FILTER_NONE WINDOW BATCH,
        PHOTOS_HEAD FILTER_NONE "  - debug.identity: {}\n" WINDOW BATCH,
    };
    struct outcome *whole = run_photos(PHOTOS_HEAD FILTER_NONE WINDOW BATCH);

    CHECK_EQ_INT(whole->records, PHOTOS);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct outcome *other = run_photos(texts[i]);

        outcome_check_same(whole, other, 0, texts[i]);
        outcome_free(other);
    }
    outcome_free(whole);
}

TEST(a_window_has_another_order_in_each_epoch)
{
    struct outcome_job job =
        outcome_job_text("headrace: 1\npipeline:\n  - source.range: {n: 96}\n"
                         "  - record.filter: {expr: \"value >= 0\"}\n" WINDOW
                         "  - batch.stack: {size: 8}\n");
    struct outcome *o;

    job.options.epochs = 2;
    o = outcome_run(&job);
    CHECK_EQ_INT(o->batches, 24);
    for (size_t i = 0; i < 12; i++)
        CHECK(o->hashes[i] != o->hashes[12 + i]);
    outcome_free(o);
}

/* ---- the ledger: graphs with bad records in every stage ---- */

static enum hr_err
call_map(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    uint64_t key[2];

    (void)user;
    hr_code_key(call, key);
    if (key[0] % 9 == 0) {
        hr_code_detail(call, "Traceback: line 1");
        reterr->code = HR_ERR_RANGE;
        snprintf(reterr->message, sizeof reterr->message, "not this one");
        return HR_ERR_RANGE;
    }
    return hr_code_pass(call, 0, 0, reterr);
}

static enum hr_err
call_expand(void *user, struct hr_code_call *call, struct hr_error *reterr)
{
    struct hr_code_record record;

    (void)user;
    hr_code_record(call, &record);
    for (uint64_t i = 0; i < 1 + record.index % 3; i++) {
        enum hr_err code = hr_code_child(call, reterr);

        if (code == HR_OK)
            code = hr_code_pass(call, 0, 0, reterr);
        if (code != HR_OK)
            return code;
    }
    return HR_OK;
}

static const struct hr_code pieces[] = {
    {.identity = "fails now and then", .call = call_map   },
    {.identity = "one to three",       .call = call_expand},
};

static const struct hr_code *find_piece(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "map") == 0      ? &pieces[0]
           : strcmp(name, "expand") == 0 ? &pieces[1]
                                         : NULL;
}

__attribute__((constructor)) static void serve(void)
{
    if (peers_argument() != NULL)
        peers_serve(find_piece, NULL);
}

static struct peers peers;
static bool has_peers, in_processes; /* and whether all ops run there */
static bool alone;                   /* no step shares work with another */
static const char *planned;          /* the plan's text; NULL: the one that is made */

static enum hr_err prepare(void *user, struct hr_graph *graph, struct hr_error *reterr)
{
    enum hr_err code = hr_graph_code(graph, "map", &pieces[0], reterr);

    if (code == HR_OK)
        code = hr_graph_code(graph, "expand", &pieces[1], reterr);
    if (code == HR_OK && *(const bool *)user)
        code = peers_host(&peers, graph, reterr);
    return code;
}

#define NUMBERS                                                                          \
    "headrace: 1\npipeline:\n  - source.range: {n: 150}\n  - order.shuffle: {}\n"
#define FAIL "  - debug.fail: {probability: 0.1}\n"
#define MAP "  - code.map: {code: map, fields: value, outputs: \"value: int64\"}\n"
#define EXPAND                                                                           \
    "  - code.expand: {code: expand, fields: value, outputs: \"value: int64\"}\n"
#define FILTER "  - record.filter: {expr: \"value % 5 != 2\"}\n"
#define BATCH_4 "  - batch.stack: {size: 4}\n"
#define UNBATCH "  - batch.unbatch: {}\n"

/* Bad records before and after a filter, in user code, among children of children and
 * among what was in batches. */
static const char all_stages[] =
    NUMBERS FAIL FILTER FAIL MAP EXPAND FAIL MAP EXPAND FAIL BATCH_4 UNBATCH MAP FAIL
    "  - batch.stack: {size: 3}\n";

/* The same without batches in the middle: records of a batch depend on the world. */
static const char all_worlds[] =
    NUMBERS FAIL FILTER MAP EXPAND FAIL EXPAND MAP FAIL BATCH_4;

static char ledger[512];

static struct outcome_job ledger_job(const char *text, int threads)
{
    struct hr_iter_options options;
    struct outcome_job job;

    hr_iter_options_init(&options);
    snprintf(ledger, sizeof ledger, "%s/ledger", check_temp_dir());
    options.on_error = HR_ON_ERROR_SKIP;
    options.errors_max = 10000;
    options.epochs = 2;
    options.seed = 11;
    options.ledger = ledger;
    options.fuse = !alone;
    options.plan = planned;
    if (in_processes)
        options.variant = HR_VARIANT_PROCESSES;
    job = outcome_job_with(text, threads, &options);
    job.prepare = prepare;
    job.user = &has_peers;
    return job;
}

static char *read_ledger(void)
{
    size_t bytes;
    char *text;

    CHECK_OK(hr__file_read(ledger, 1 << 24, &text, &bytes, NULL));
    unlink(ledger);
    return text;
}

/* Reports the first line that differs. */
static void check_same(const char *made, const char *whole)
{
    size_t same = 0, begin, line = 1;

    while (made[same] != '\0' && made[same] == whole[same])
        same++;
    if (made[same] == whole[same])
        return;
    for (begin = same; begin > 0 && whole[begin - 1] != '\n'; begin--)
        continue;
    for (size_t i = 0; i < begin; i++)
        line += whole[i] == '\n';
    check_failed(__FILE__, __LINE__, "line %zu is\n  %.*s, not\n  %.*s", line,
                 (int)strcspn(made + begin, "\n"), made + begin,
                 (int)strcspn(whole + begin, "\n"), whole + begin);
}

/* The ledger of a whole run. */
static char *ledger_of(const char *text, int threads, size_t lines_min)
{
    struct outcome_job job = ledger_job(text, threads);
    struct outcome *o;
    size_t lines = 0;
    char *made;

    job.states = false;
    o = outcome_run(&job);
    if (o->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", o->error.message);
    made = read_ledger();
    for (const char *at = made; *at != '\0'; at++)
        lines += *at == '\n';
    CHECK_EQ_INT((long)o->stats.errors, (long)lines);
    CHECK(lines >= lines_min);
    outcome_free(o);
    return made;
}

TEST(the_ledger_is_the_same_in_every_variant)
{
    char *whole = ledger_of(all_stages, 0, 100), processes[4096];

    CHECK_HAS(whole, "\"children\":[]");
    CHECK_HAS(whole, "\"node\":\"debug.fail4\"");
    CHECK_HAS(whole, "\"node\":\"code.map3\"");
    CHECK_HAS(whole, "\"detail\":\"Traceback: line 1\"");
    for (int threads = 1; threads <= 8; threads *= 2) {
        char *other = ledger_of(all_stages, threads, 100);

        check_same(other, whole);
        hr__free(other);
    }
    peers_init(&peers, "serve");
    has_peers = true;
    peers_text(all_stages, processes, sizeof processes);
    for (int threads = 0; threads <= 2; threads += 2) {
        char *other = ledger_of(processes, threads, 100);

        check_same(other, whole);
        hr__free(other);
    }
    has_peers = false;
    peers_finish(&peers);
    hr__free(whole);
}

/* Damage shows when the header is read, or when pixels are made, which other nodes ask
 * for. */
TEST(a_photo_that_cannot_be_decoded_is_a_fault_of_the_decoder_in_every_variant)
{
    char text[1024], *whole, *other;

    snprintf(text, sizeof text,
             "headrace: 1\npipeline:\n  - source.files: {path: '%s', labels: folder}\n"
             "  - image.decode: {mode: exact}\n"
             "  - image.random_crop: {size: 20}\n"
             "  - image.resize: {size: 16}\n"
             "  - image.gaussian_blur: {size: 3}\n"
             "  - batch.stack: {size: 4}\n",
             photos_broken(5));
    whole = ledger_of(text, 0, 2 * 12);
    CHECK_HAS(whole, "\"node\":\"image.decode\"");
    CHECK(strstr(whole, "\"node\":\"image.r") == NULL);
    CHECK(strstr(whole, "\"node\":\"image.g") == NULL);
    other = ledger_of(text, 2, 2 * 12);
    check_same(other, whole);
    hr__free(other);
    peers_init(&peers, "serve");
    has_peers = in_processes = true;
    for (int threads = 0; threads <= 2; threads += 2) {
        other = ledger_of(text, threads, 2 * 12);
        check_same(other, whole);
        hr__free(other);
    }
    has_peers = in_processes = false;
    peers_finish(&peers);
    hr__free(whole);
}

/* A photo counts as bad when a node needs pixels that cannot be made, not when a plan
 * makes them earlier: some of these photos are dropped, or fail for another reason,
 * before. Some of these nodes need pixels, others only edit a description. */
static const char *const between[] = {
    "record.filter: {expr: 'label != 3'}", "debug.fail: {every: 2}",
    "image.center_crop: {size: 8}", "record.filter: {expr: 'image.height > 0'}",
    "code.map: {code: map, fields: label, outputs: 'label: int64'}"};

static const char *const after[] = {"image.resize: {size: [16, 16]}",
                                    "image.gaussian_blur: {size: 3}"};

static void damaged_text(size_t i, size_t k, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "headrace: 1\npipeline:\n"
             "  - source.files: {path: '%s', labels: folder}\n"
             "  - image.decode: {mode: exact}\n"
             "  - %s\n"
             "  - %s\n"
             "  - image.resize: {size: [16, 16]}\n"
             "  - batch.stack: {size: 4}\n",
             photos_broken(5), between[i], after[k]);
}

TEST(a_photo_fails_at_the_same_node_however_early_its_pixels_are_made)
{
    for (size_t i = 0; i < 2 * sizeof between / sizeof *between; i++) {
        char text[1024], *whole;

        damaged_text(i / 2, i % 2, text, sizeof text);
        whole = ledger_of(text, 0, 1);
        peers_init(&peers, "serve");
        for (int threads = 0; threads <= 2; threads++)
            for (int way = 0; way < 4; way++) {
                char *other;

                alone = way % 2 == 1;
                has_peers = in_processes = way >= 2;
                other = ledger_of(text, threads, 1);
                check_same(other, whole);
                hr__free(other);
            }
        alone = has_peers = in_processes = false;
        peers_finish(&peers);
        hr__free(whole);
    }
}

/* The ledger of a run by the plan that these settings give. */
static char *ledger_by(const char *text, const struct hr_opt_settings *settings)
{
    struct outcome_job job = ledger_job(text, settings->threads);
    struct hr_error error = {0};
    struct hr_graph *graph = outcome_graph(&job, &error);
    struct hr_plan plan;
    struct hr_str out;
    char *made;

    CHECK(graph != NULL);
    CHECK_OK(hr_graph_freeze(graph, &error));
    CHECK_OK(hr__plan_make(graph, settings, &plan, &error));
    hr__str_init(&out);
    hr__plan_print(&plan, HR_GRAPH_YAML, &out);
    planned = hr__str_text(&out);
    made = ledger_of(text, settings->threads, 1);
    planned = NULL;
    hr__str_finish(&out);
    hr__plan_finish(&plan);
    hr_graph_unref(graph);
    return made;
}

/* Nodes 1 to 4 are the decoder and those after it. */
TEST(a_photo_fails_at_the_same_node_wherever_a_plan_cuts)
{
    for (size_t i = 0; i < 2 * sizeof between / sizeof *between; i++) {
        char text[1024], *whole;

        damaged_text(i / 2, i % 2, text, sizeof text);
        whole = ledger_of(text, 0, 1);
        peers_init(&peers, "serve");
        has_peers = true;
        for (uint32_t mask = 0; mask < 32; mask++) {
            uint32_t cut = 1 + mask % 4;
            bool away[6] = {false};
            struct hr_opt_settings settings = {.threads = (int)mask % 3,
                                               .cpus = 2,
                                               .ordered = true,
                                               .fuse = mask % 5 != 0,
                                               .cuts = &cut,
                                               .cut_count = mask < 16,
                                               .processes = away};
            char *other;

            for (uint32_t node = 1; node <= 4; node++)
                away[node] = (mask >> (node - 1) & 1) != 0 && mask >= 4;
            other = ledger_by(text, &settings);
            check_same(other, whole);
            hr__free(other);
        }
        has_peers = false;
        peers_finish(&peers);
        hr__free(whole);
    }
}

/* ---- states, kills, worlds ---- */

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lines in alphabetical order, each once. */
static char *sorted(char *text)
{
    size_t count = 0, length = 0, bytes = strlen(text) + 2;
    char **lines = calloc(bytes, sizeof *lines), *made = calloc(bytes, 1), *save;
    const char *last = "";

    CHECK(lines != NULL && made != NULL);
    for (char *at = strtok_r(text, "\n", &save); at != NULL;
         at = strtok_r(NULL, "\n", &save))
        lines[count++] = at;
    qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(lines[i], last) == 0)
            continue;
        length += (size_t)snprintf(made + length, bytes - length, "%s\n", lines[i]);
        last = lines[i];
    }
    free(lines);
    hr__free(text);
    return made;
}

static struct hr_iter *
open_iter(struct hr_graph *graph, struct outcome_job *job, const char *state)
{
    struct hr_iter *iter;

    job->options.state = state;
    CHECK_OK(hr_iter_open(graph, &job->options, &iter, NULL));
    return iter;
}

/* Takes up to `batches` batches; false at the end. */
static bool take(struct hr_iter *iter, int batches)
{
    for (int i = 0; i < batches; i++) {
        struct hr_batch *batch;
        enum hr_err code = hr_iter_next(iter, &batch, NULL);

        if (code == HR_ERR_END)
            return false;
        CHECK_OK(code);
        hr_batch_unref(batch);
    }
    return true;
}

TEST(a_run_that_is_saved_and_closed_lists_each_record_once)
{
    struct outcome_job job = ledger_job(all_stages, 2);
    struct hr_graph *graph = outcome_graph(&job, NULL);
    char *whole = ledger_of(all_stages, 0, 100), *state = NULL, *made;
    bool more = true;

    for (int turn = 0; more; turn++) {
        struct hr_iter *iter;

        outcome_job_threads(&job, turn % 3);
        iter = open_iter(graph, &job, state);
        hr_free(state);
        more = take(iter, 1 + turn % 5);
        CHECK_OK(hr_iter_save(iter, &state, NULL));
        hr_iter_close(iter);
    }
    made = read_ledger();
    check_same(made, whole);
    hr_free(state);
    hr__free(made);
    hr__free(whole);
    hr_graph_unref(graph);
}

/* Runs `batches` batches from `state`, writes down the state half way, and dies. */
static _Noreturn void run_and_die(struct hr_graph *graph, struct outcome_job *job,
                                  const char *state, int batches, const char *path)
{
    struct hr_iter *iter = open_iter(graph, job, state);
    char *saved;
    FILE *file;

    (void)take(iter, batches / 2);
    if (hr_iter_save(iter, &saved, NULL) != HR_OK || (file = fopen(path, "w")) == NULL)
        _exit(1);
    fputs(saved, file);
    fclose(file);
    (void)take(iter, batches - batches / 2);
    kill(getpid(), SIGKILL);
    _exit(1);
}

TEST(a_killed_run_lists_the_same_records)
{
    struct outcome_job job = ledger_job(all_stages, 2);
    struct hr_graph *graph = outcome_graph(&job, NULL);
    char *whole = sorted(ledger_of(all_stages, 0, 100)), *state = NULL, *made;
    char path[600];
    struct hr_iter *iter;

    snprintf(path, sizeof path, "%s/state", check_temp_dir());
    for (int turn = 0; turn < 4; turn++) {
        int status;
        size_t bytes;
        pid_t child = fork();

        if (child == 0)
            run_and_die(graph, &job, state, 12 + turn, path);
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        hr__free(state);
        CHECK_OK(hr__file_read(path, 1 << 20, &state, &bytes, NULL));
    }
    iter = open_iter(graph, &job, state);
    CHECK(!take(iter, 100000));
    hr_iter_close(iter);
    made = sorted(read_ledger());
    check_same(made, whole);
    hr__free(state);
    free(made);
    free(whole);
    hr_graph_unref(graph);
}

TEST(all_ranks_together_list_what_one_lists)
{
    char *whole = sorted(ledger_of(all_worlds, 0, 100));

    for (int64_t world = 2; world <= 5; world += 3) {
        char *made;

        for (int64_t rank = 0; rank < world; rank++) {
            struct outcome_job job = ledger_job(all_worlds, (int)rank % 3);
            struct outcome *o;

            job.states = false;
            job.options.rank = rank;
            job.options.world = world;
            o = outcome_run(&job);
            CHECK_EQ_INT(o->code, HR_ERR_END);
            outcome_free(o);
        }
        made = sorted(read_ledger());
        check_same(made, whole);
        free(made);
    }
    free(whole);
}

/* ---- substitutes, ends, files ---- */

TEST(substitutes_are_listed_alike_and_once)
{
    char *whole = NULL;

    for (int threads = 0; threads <= 8; threads = threads * 2 + (threads == 0)) {
        struct outcome_job job =
            ledger_job(NUMBERS FAIL FILTER MAP EXPAND BATCH_4, threads);
        struct outcome *o;
        char *made;

        job.states = false;
        job.options.on_error = HR_ON_ERROR_SUBSTITUTE;
        o = outcome_run(&job);
        CHECK_EQ_INT(o->code, HR_ERR_END);
        made = read_ledger();
        if (whole == NULL)
            whole = made;
        check_same(made, whole);
        CHECK_HAS(made, "substituted");
        if (made != whole)
            hr__free(made);
        outcome_free(o);
    }
    hr__free(whole);
}

TEST(a_run_that_fails_lists_the_record_it_fails_with)
{
    for (int threads = 0; threads <= 8; threads = threads * 2 + (threads == 0)) {
        struct outcome_job job = ledger_job(all_worlds, threads);
        struct outcome *o;
        char *made;

        job.states = false;
        job.options.on_error = HR_ON_ERROR_FAIL;
        o = outcome_run(&job);
        CHECK(o->code != HR_ERR_END && o->error.record > 0);
        made = read_ledger();
        CHECK_HAS(made, "\"outcome\":\"failed\"");
        CHECK_HAS(made, o->error.node);
        CHECK(strchr(made, '\n') == made + strlen(made) - 1);
        hr__free(made);
        outcome_free(o);
    }
}

/* Damaged photos that are decoded in the first stage and after a filter. */
TEST(a_file_is_named_in_every_stage)
{
    static const char *const texts[] = {
        PHOTOS_HEAD SHUFFLE DECODE CROP BATCH,
        PHOTOS_HEAD SHUFFLE FILTER_NONE DECODE CROP BATCH,
    };
    size_t lines = 0;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct outcome_job job = ledger_job(texts[i], 2);
        struct outcome *o;
        char *made, *save;

        job.states = false;
        job.params[job.param_count++] = (struct hr_graph_param){"data", photos_broken(5)};
        o = outcome_run(&job);
        if (o->code != HR_ERR_END)
            check_failed(__FILE__, __LINE__, "%s", o->error.message);
        made = read_ledger();
        for (char *at = strtok_r(made, "\n", &save); at != NULL;
             at = strtok_r(NULL, "\n", &save)) {
            struct hr_doc *doc;
            const char *file;

            CHECK_OK(hr__doc_parse(at, strlen(at), "line.json", &doc, NULL));
            file = hr__doc_get_string(doc, "file");
            CHECK(file != NULL && access(file, R_OK) == 0);
            CHECK_HAS(hr__doc_get_string(doc, "message"), file);
            hr__doc_destroy(doc);
            lines++;
        }
        hr__free(made);
        outcome_free(o);
    }
    CHECK(lines >= 2 * 2 * (PHOTOS / 5));
}

/* The identity of a batch, and of what was in it, is that of its first record, which need
 * not be the damaged one. */
TEST(after_a_batch_the_message_names_the_batch)
{
    struct outcome_job job = ledger_job(
        PHOTOS_HEAD "  - batch.stack: {size: 4}\n" UNBATCH DECODE CROP BATCH, 2);
    struct outcome *o;
    char *made;

    job.states = false;
    job.params[job.param_count++] = (struct hr_graph_param){"data", photos_broken(5)};
    o = outcome_run(&job);
    if (o->code != HR_ERR_END)
        check_failed(__FILE__, __LINE__, "%s", o->error.message);
    made = read_ledger();
    CHECK_HAS(made, "(in the batch that begins with ");
    CHECK_HAS(made, ", child 3)");
    hr__free(made);
    outcome_free(o);
}

/* Spans have the identity in every stage, for children and over ranks. */
TEST(the_trace_has_the_identities_of_records)
{
    struct outcome_job job = ledger_job(all_worlds, 2);
    struct hr_graph *graph = outcome_graph(&job, NULL);
    struct hr_iter *iter;
    char *json;

    job.options.trace = true;
    job.options.rank = 1;
    job.options.world = 2;
    iter = open_iter(graph, &job, NULL);
    CHECK(!take(iter, 100000));
    CHECK_OK(hr_iter_trace(iter, &json, NULL));
    CHECK_HAS(json, "\"epoch\":1,\"position\":149,");
    CHECK(strstr(json, "\"position\":148,") == NULL); /* of the other rank */
    CHECK_HAS(json, "\"cat\":\"stage 3\"");
    CHECK_HAS(json, "\"children\":[0,0]}");
    hr_free(json);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    unlink(ledger);
}
