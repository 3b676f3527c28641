/*
 * cmd_run.c - headrace run: runs a graph as fast as the machine allows, and measures it.
 *
 * Batches are dropped (or digested) on receipt: this is the loader alone, without a
 * trainer. State is saved between batches only, so the saved position is always just
 * after a delivered batch.
 */
#include "arrays_out.h"
#include "checkpoint.h"
#include "core/kill_point.h"
#include "graph_file.h"
#include "out.h"
#include "profile_file.h"
#include "progress.h"
#include "run.h"
#include "stop.h"
#include "term.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define RATE_MAX 1e15        /* predicted; more is no prediction */
#define WAIT_NS 250000000ull /* then a run of a service looks what it waits for */
#define WARM_BATCHES 3       /* the default budget's number of batches in flight */

struct instant {
    double wall, cpu; /* seconds */
    uint64_t records;
};

struct run {
    const struct run_options *options;
    struct hr_graph *graph;
    struct hr_iter *iter;
    struct hr_prediction *prediction; /* with --profile */
    struct hr_digest *digest;
    FILE *batch_digests;
    struct arrays_out *arrays; /* with --output */
    char *state;               /* contents of the state file to resume from */
    struct progress progress;
    struct run_result result;
    uint64_t batches, records;
    uint64_t saved;      /* batches in the last commit of a consumer */
    struct instant warm; /* when WARM_BATCHES had arrived */
};

#define AT(field) offsetof(struct run_options, field)

/* clang-format off */
static const struct cli_option run_table[] = {
    CLI_OPTION_PARAM,
    CLI_OPTION_HELP_PARAMS,
    {"epochs", 0, CLI_INT, AT(records.epochs), "N",
     "number of epochs, 0 for endless; default 1"},
    RECORD_OPTIONS,
    PLAN_OPTIONS,
    {"demand", 0, CLI_INT, AT(demand), "RATE",
     "records per second to make, with the fewest threads that can; default: as many as "
     "all threads make", 1, INT32_MAX},
    {"state", 0, CLI_TEXT, AT(state), "FILE",
     "resume from FILE if it exists, and save the position there at the end and on "
     "Ctrl-C; a finished run keeps it, so that running again has nothing left to do"},
    {"save-every", 0, CLI_INT, AT(save_every), "N",
     "also save the state every N batches; default 0: only at the end"},
    {"rank", 0, CLI_INT, AT(rank), "R",
     "rank of this consumer, with --world", 0, UINT32_MAX},
    {"world", 0, CLI_INT, AT(world), "W",
     "number of consumers that split the records", 0, UINT32_MAX},
    {"even", 0, CLI_CHOICE, AT(even), "none|drop|repeat|pad",
     "how to split records that do not divide evenly: some ranks get one more (default), the "
     "remainder is dropped, or ranks are filled up with records from the beginning, which pad "
     "marks in a field \"valid\""},
    {"service", 0, CLI_TEXT, AT(service), "HOST:PORT,...",
     "let the workers of this dispatcher (headrace dispatcher) make the batches; of several, the "
     "next one when one is gone"},
    {"service-after", 0, CLI_TEXT, AT(after), "NODE",
     "with --service: workers run the graph up to this node, this process the rest; "
     "default: as far as workers can"},
    {"job", 0, CLI_TEXT, AT(job), "NAME",
     "with --service: name of the run; another one of this name is refused meanwhile"},
    {"consumer", 0, CLI_TEXT, AT(consumer), "NAME",
     "with --job and --state: be one of several runs that consume the job between them, first come, "
     "first served; NAME is the same after a restart"},
    {"weight", 0, CLI_INT, AT(weight), "N",
     "with --service: the run's share of the workers relative to other runs, 1 to 100; default 1", 1, 100},
    {"token-file", 0, CLI_TEXT, AT(token_file), "FILE",
     "with --service: file with its token; default: HEADRACE_TOKEN_FILE or "
     "HEADRACE_TOKEN of the environment"},
    {"tls-ca", 0, CLI_TEXT, AT(tls_ca), "FILE",
     "with --service: talk TLS, and trust certificates that a CA in FILE signed, PEM; default: "
     "HEADRACE_TLS_CA"},
    {"tls-name", 0, CLI_TEXT, AT(tls_name), "NAME",
     "that these certificates are for; default: HEADRACE_TLS_NAME, else the host that it connects to"},
    {"tls-cert", 0, CLI_TEXT, AT(tls_cert), "FILE",
     "certificate of this run, if the service asks for one; PEM, with its chain; default: "
     "HEADRACE_TLS_CERT of the environment"},
    {"tls-key", 0, CLI_TEXT, AT(tls_key), "FILE",
     "its private key, PEM, without a passphrase; default: HEADRACE_TLS_KEY"},
    {"service-compress", 0, CLI_TEXT, AT(service_compress), "HOW",
     "with --service: how workers may compress what they send over TCP: auto (default), none, lz4, zstd"},
    {"profile", 0, CLI_TEXT, AT(profile), "FILE",
     "predict the run by FILE (headrace profile --fuse -o), and keep how well that went for "
     "headrace explain --accuracy"},
    {"no-cache", 0, CLI_FLAG, AT(no_cache), NULL,
     "make every record, as if the graph had no flow.cache, and keep none"},
    {"digest", 0, CLI_FLAG, AT(digest), NULL,
     "print an XXH3-128 of all delivered bytes, in delivery order"},
    {"batch-digests", 0, CLI_TEXT, AT(batch_digests), "FILE",
     "append a line per batch to FILE: epoch, number of records, digest"},
    {"output", 'o', CLI_TEXT, AT(output), "OUT",
     "write all records as NumPy arrays: OUT.npz with an array per field, or a folder OUT of "
     ".npy files; it must not exist"},
    {"json", 0, CLI_FLAG, AT(json), NULL,
     "print one JSON object and nothing else on stdout"},
    {"trace", 0, CLI_TEXT, AT(trace), "FILE",
     "write a Chrome/Perfetto trace of the run to FILE"},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL,
     "no progress output, no report"},
};

static const struct cli_example run_examples[] = {
    {"headrace run examples/vision_rrc.yaml -p data=photos",
     "one epoch over a folder of photos, with a progress bar and a report"},
    {"headrace run photos",
     "a folder of photos without a graph: prints the graph that it makes, and runs it"},
    {"headrace run examples/noop.yaml -p n=10000000 --threads 1 --json",
     "the engine's own overhead, as JSON"},
    {"headrace run train.yaml --epochs 90 --state run.state --save-every 100",
     "stop it with Ctrl-C or kill it; the same command resumes"},
    {"headrace run train.yaml --service 127.0.0.1:7070 --state run.state",
     "the same batches, made by the workers of a service"},
    {"headrace run train.yaml --service 127.0.0.1:7070 --job train --consumer a --state a.state",
     "one of several that get all batches once between them"},
    {"headrace run train.yaml --demand 2000",
     "how many threads 2,000 records per second need on this machine"},
    {"headrace run features.yaml -o features.npz",
     "numpy.load(\"features.npz\")[\"image\"] has all records of the field image"},
    {"headrace run train.yaml --errors skip --bad-records bad.jsonl",
     "skip damaged photos and list them"},
};
/* clang-format on */

/* ---- digest ---- */

/* As little-endian int64. */
static void
digest_numbers(struct hr_digest *digest, const int64_t *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint8_t bytes[8];

        for (int b = 0; b < 8; b++)
            bytes[b] = (uint8_t)((uint64_t)numbers[i] >> (8 * b));
        hr_digest_add(digest, bytes, sizeof(bytes));
    }
}

enum hr_err run_digest_batch(struct hr_digest *digest, const struct hr_batch *batch)
{
    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        struct hr_field_view view;
        enum hr_err code = hr_batch_field(batch, i, &view);
        int64_t items;

        if (code != HR_OK)
            return code;
        items = view.dims[0];
        hr_digest_add(digest, view.data, view.bytes);
        for (int l = 0; l < view.levels; l++) {
            digest_numbers(digest, view.splits[l], items + 1);
            if (l + 1 < view.levels)
                items = view.splits[l][items];
        }
        if (view.shapes != NULL)
            digest_numbers(digest, view.shapes, items * view.item_ndim);
    }
    return HR_OK;
}

static int digest_line(struct run *run, const struct hr_batch *batch)
{
    struct hr_digest *digest = hr_digest_create();
    enum hr_err code = HR_ERR_MEMORY;
    char text[33];

    if (digest != NULL)
        code = run_digest_batch(digest, batch);
    if (code == HR_OK) {
        hr_digest_text(digest, text);
        fprintf(run->batch_digests, "%lld %lld %s\n", (long long)hr_batch_epoch(batch),
                (long long)hr_batch_records(batch), text);
        if (fflush(run->batch_digests) != 0)
            code = HR_ERR_IO;
    }
    hr_digest_destroy(digest);
    if (code == HR_ERR_IO)
        return cli_failed("cannot write %s: %s", run->options->batch_digests,
                          strerror(errno));
    return code == HR_OK ? CLI_OK : cli_failed("%s", hr_err_text(code));
}

/* ---- state ---- */

static int load_state(struct run *run)
{
    const char *path = run->options->state;
    FILE *file;
    size_t room = 1 << 20, length;

    if (path == NULL || run->options->consumer != NULL)
        return CLI_OK;
    file = fopen(path, "rb");
    if (file == NULL && errno == ENOENT)
        return CLI_OK;
    if (file == NULL)
        return cli_failed("cannot read %s: %s", path, strerror(errno));
    run->state = malloc(room);
    length = run->state != NULL ? fread(run->state, 1, room - 1, file) : 0;
    fclose(file);
    if (run->state == NULL)
        return cli_failed("out of memory");
    if (length == 0 || length == room - 1)
        return cli_usage("%s is not the state of a run; remove it to start over", path);
    run->state[length] = '\0';
    run->result.resumed = true;
    return CLI_OK;
}

typedef enum hr_err
iter_text_fn(const struct hr_iter *iter, char **ret_text, struct hr_error *reterr);

/* Writes the text returned by `get_text` to the file `path`; does nothing if `path` is
 * NULL. */
static int write_text(const struct run *run, const char *path, iter_text_fn *get_text)
{
    struct hr_error error = {0};
    char *text = NULL;
    int code;

    if (path == NULL)
        return CLI_OK;
    if (get_text(run->iter, &text, &error) != HR_OK)
        return cli_library(&error);
    code = out_replace(path, text);
    hr_free(text);
    return code;
}

static int save_state(struct run *run)
{
    if (run->options->consumer != NULL) {
        if (run->saved == run->batches)
            return CLI_OK;
        run->saved = run->batches;
        return checkpoint_commit(run->iter, run->options->state, &run->progress);
    }
    return write_text(run, run->options->state, hr_iter_save);
}

/* ---- the run ---- */

static int check_outputs(struct run *run)
{
    const struct run_options *o = run->options;
    int code = CLI_OK;

    if (o->state != NULL)
        code = out_probe(o->state);
    if (code == CLI_OK && o->trace != NULL)
        code = out_probe(o->trace);
    if (code == CLI_OK && o->batch_digests != NULL) {
        run->batch_digests = fopen(o->batch_digests, "a");
        if (run->batch_digests == NULL)
            code = cli_failed("cannot write %s: %s", o->batch_digests, strerror(errno));
    }
    if (code == CLI_OK && o->world > 0 && o->rank >= o->world)
        code = cli_usage("--rank must be less than --world: %lld is not less than %lld",
                         (long long)o->rank, (long long)o->world);
    if (code == CLI_OK && o->world == 0 && o->rank > 0)
        code = cli_usage("--rank needs --world");
    if (code == CLI_OK && o->world == 0 && o->even != HR_EVEN_NONE)
        code = cli_usage("--even needs --rank and --world");
    if (code == CLI_OK && o->service == NULL && o->job != NULL)
        code = cli_usage("--job needs --service");
    if (code == CLI_OK && o->consumer != NULL &&
        (o->service == NULL || o->job == NULL || o->state == NULL))
        code = cli_usage("--consumer needs --service, --job and --state FILE");
    if (code == CLI_OK && o->service == NULL && o->after != NULL)
        code = cli_usage("--service-after needs --service");
    if (code == CLI_OK && o->service == NULL && o->weight > 0)
        code = cli_usage("--weight needs --service");
    if (code == CLI_OK && o->service == NULL && o->service_compress != NULL)
        code = cli_usage("--service-compress needs --service");
    if (code == CLI_OK && o->save_every > 0 && o->state == NULL)
        code = cli_usage("--save-every needs --state FILE");
    if (code == CLI_OK && o->output != NULL && o->state != NULL)
        code = cli_usage("--output and --state exclude each other: arrays are written "
                         "whole or not at all");
    return code;
}

static void iter_options(const struct run *run, struct hr_iter_options *ret)
{
    const struct run_options *o = run->options;

    hr_iter_options_init(ret);
    record_options_set(&o->records, ret);
    ret->state = run->state;
    ret->trace = o->trace != NULL;
    ret->uncached = o->no_cache;
    ret->rank = o->rank;
    ret->world = o->world;
    ret->even = (enum hr_even)o->even;
    ret->demand = (double)o->demand;
    ret->service = o->service;
    ret->service_job = o->job;
    ret->service_consumer = o->consumer;
    ret->service_weight = o->weight;
    ret->service_after = o->after;
    ret->service_token_file = o->token_file;
    ret->service_tls_ca = o->tls_ca;
    ret->service_tls_name = o->tls_name;
    ret->service_tls_cert = o->tls_cert;
    ret->service_tls_key = o->tls_key;
    ret->service_compress = o->service_compress;
}

/* As the run is planned. */
static int predict(struct run *run, const struct hr_iter_options *options)
{
    struct hr_profile *profile = NULL;
    struct hr_predict_options asked;
    struct hr_error error = {0};
    int code = CLI_OK;

    if (run->options->profile == NULL)
        return CLI_OK;
    hr_predict_options_init(&asked);
    asked.run = options;
    code = profile_file_read(run->options->profile, &profile);
    if (code == CLI_OK &&
        hr_graph_predict(run->graph, profile, &asked, &run->prediction, &error) != HR_OK)
        code = cli_library(&error);
    hr_profile_free(profile);
    return code;
}

static int open_run(struct run *run)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    char *plan = NULL;
    int code;

    iter_options(run, &options);
    code = plan_options_set(&run->options->plan, &options, &plan);
    if (code == CLI_OK)
        code = predict(run, &options);
    if (code == CLI_OK && hr_iter_open(run->graph, &options, &run->iter, &error) != HR_OK)
        code = cli_library(&error);
    free(plan);
    if (code != CLI_OK)
        return code;
    if (run->result.resumed && !run->options->quiet)
        fprintf(stderr, "headrace: resuming from %s\n", run->options->state);
    run->progress.epochs = run->options->records.epochs;
    run->progress.limit = run->options->records.limit;
    run->progress.epoch_first = run->options->records.epoch_first;
    return CLI_OK;
}

static struct instant now(const struct run *run)
{
    struct hr_iter_stats stats;
    struct timespec cpu;

    hr_iter_stats(run->iter, &stats);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (struct instant){term_now(),
                            (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9 +
                                stats.worker_seconds,
                            run->records};
}

static int handle_batch(struct run *run, const struct hr_batch *batch)
{
    int code = CLI_OK;

    run->batches++;
    run->records += (uint64_t)hr_batch_records(batch);
    if (run->batches == WARM_BATCHES) {
        run->warm = now(run);
        if (run->prediction != NULL)
            hr_prediction_start(run->prediction, run->iter);
    }
    if (run->digest != NULL && run_digest_batch(run->digest, batch) != HR_OK)
        code = cli_failed("cannot read a batch");
    if (code == CLI_OK && run->arrays != NULL)
        code = arrays_out_add(run->arrays, batch);
    if (code == CLI_OK && run->batch_digests != NULL)
        code = digest_line(run, batch);
    HR_KILL_POINT("batch.noted");
    if (code == CLI_OK && run->options->save_every > 0 &&
        run->batches % (uint64_t)run->options->save_every == 0)
        code = save_state(run);
    progress_run(&run->progress, run->iter);
    return code;
}

/* One of several consumers commits when nothing comes before that. *ret_code: a cli_exit
 * code, if that failed. */
static enum hr_err commit_if_due(struct run *run, int *ret_code, struct hr_error *reterr)
{
    while (run->options->consumer != NULL) {
        bool due = false;
        enum hr_err code = hr_iter_commit_due(run->iter, WAIT_NS, &due, reterr);

        if (code == HR_OK && due)
            *ret_code = save_state(run);
        if (code == HR_OK && (!due || *ret_code != CLI_OK))
            return HR_OK;
        if (code != HR_OK && code != HR_ERR_TIMEOUT)
            return code;
        progress_wait(&run->progress, run->iter);
    }
    return HR_OK;
}

/* The next batch. A run of a service says meanwhile what it waits for. */
static enum hr_err
next_batch(struct run *run, struct hr_batch **ret_batch, struct hr_error *reterr)
{
    enum hr_err code;

    if (run->options->service == NULL)
        return hr_iter_next(run->iter, ret_batch, reterr);
    for (;;) {
        code = hr_iter_next_for(run->iter, WAIT_NS, ret_batch, reterr);
        if (code != HR_OK || *ret_batch != NULL)
            return code;
        progress_wait(&run->progress, run->iter);
    }
}

/* Receives all batches; sets result.status. */
static int run_batches(struct run *run)
{
    struct hr_error error = {0};
    enum hr_err code = HR_OK;
    int taken = CLI_OK;

    while (taken == CLI_OK) {
        struct hr_batch *batch = NULL;

        code = commit_if_due(run, &taken, &error);
        if (code == HR_OK && taken == CLI_OK)
            code = next_batch(run, &batch, &error);
        if (code != HR_OK || taken != CLI_OK)
            break;
        taken = handle_batch(run, batch);
        hr_batch_unref(batch);
    }
    progress_clear(&run->progress);
    if (taken == CLI_OK && code == HR_ERR_END) {
        run->result.status = "complete";
        return CLI_OK;
    }
    if (taken == CLI_OK && code == HR_ERR_CANCELLED && stop_requested()) {
        run->result.status = "interrupted";
        return CLI_INTERRUPTED;
    }
    run->result.status = "failed";
    if (taken != CLI_OK)
        return taken;
    snprintf(run->result.message, sizeof(run->result.message), "%s",
             error.message[0] ? error.message : hr_err_text(code));
    return cli_library_failed(&error);
}

static void measure(struct run *run)
{
    struct run_result *result = &run->result;
    struct instant end = now(run);
    struct rusage usage;

    result->cpu_seconds = end.cpu;
    if (run->batches > WARM_BATCHES) {
        result->steady_records = end.records - run->warm.records;
        result->steady_seconds = end.wall - run->warm.wall;
        result->steady_cpu_seconds = end.cpu - run->warm.cpu;
    }
    getrusage(RUSAGE_SELF, &usage);
    result->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

/* A failure to keep it is no failure of the run. */
static void keep_prediction(struct run *run)
{
    struct run_result *result = &run->result;
    struct hr_error error = {0};
    enum hr_err code = HR_OK;
    bool limited;

    if (run->prediction == NULL)
        return;
    hr_prediction_info(run->prediction, &result->prediction);
    if (result->steady_records > 0)
        code = hr_prediction_keep(run->prediction, run->iter,
                                  (int64_t)result->steady_records, result->graph_path,
                                  &result->measured, &error);
    limited = result->prediction.rate < RATE_MAX;
    result->predicted = limited && result->measured.records > 0;
    if (code != HR_OK)
        fprintf(stderr, "headrace: the measurement is not kept: %s\n", error.message);
    else if (limited && !result->measured.kept && !run->options->quiet)
        fprintf(stderr,
                "headrace: the run was too short to be kept for headrace explain "
                "--accuracy: it is measured from batch %d on, for 0.2 s or more\n",
                WARM_BATCHES + 1);
}

static void report(struct run *run, int code)
{
    const struct run_options *o = run->options;

    if (run->digest != NULL) {
        hr_digest_text(run->digest, run->result.digest);
        run->result.has_digest = true;
    }
    if (o->json)
        run_report_json(run->iter, run->graph, &run->result);
    else if (!o->quiet)
        run_report(run->iter, &run->result);
    else if (run->digest != NULL)
        printf("%s\n", run->result.digest);
    if (!o->json && !o->quiet && run->result.output != NULL)
        arrays_out_report(run->arrays);
    fflush(stdout);
    if (code == CLI_INTERRUPTED && !o->quiet)
        fprintf(stderr, "headrace: interrupted after %llu records%s%s%s\n",
                (unsigned long long)run->records,
                o->state != NULL    ? "; run the same command again to resume from "
                : o->output != NULL ? "; nothing is written to "
                                    : "",
                o->state != NULL ? o->state : "", o->output != NULL ? o->output : "");
}

/* If the state was already at the end, the run succeeds but does nothing: says so. */
static void report_already_complete(const struct run *run, int code)
{
    if (code == CLI_OK && run->result.resumed && run->records == 0 &&
        !run->options->quiet && run->options->consumer == NULL)
        fprintf(stderr,
                "headrace: the run of %s is already complete; remove the file to start "
                "over\n",
                run->options->state);
}

/* A failure to write a file must not hide that the run itself failed. */
static int combine_codes(int code, int other)
{
    return code == CLI_OK || code == CLI_INTERRUPTED ? (other != CLI_OK ? other : code)
                                                     : code;
}

static int resume_consumer(struct run *run)
{
    int code;

    if (run->options->consumer == NULL)
        return CLI_OK;
    code = checkpoint_resume(run->iter, run->options->state, &run->progress,
                             &run->result.resumed);
    if (code != CLI_OK)
        run->result.status = code == CLI_INTERRUPTED ? "interrupted" : "failed";
    return code;
}

static int write_arrays(struct run *run)
{
    int code = arrays_out_commit(run->arrays);

    if (code == CLI_OK)
        run->result.output = run->options->output;
    else
        run->result.status = "failed";
    return code;
}

static int run_graph(struct run *run, const char *path)
{
    int code = check_outputs(run);

    if (code == CLI_OK)
        code = load_state(run);
    if (code == CLI_OK)
        code = graph_file_load(path, &run->options->params, &run->graph);
    if (code == CLI_OK && run->options->digest) {
        run->digest = hr_digest_create();
        if (run->digest == NULL)
            code = cli_failed("out of memory");
    }
    progress_begin(&run->progress, run->options->quiet, NULL);
    if (code == CLI_OK && run->options->output != NULL)
        code = arrays_out_begin(run->options->output, &run->arrays);
    if (code == CLI_OK)
        code = open_run(run);
    if (code != CLI_OK)
        return code;
    stop_watch(run->iter);
    code = resume_consumer(run);
    if (code == CLI_OK)
        code = run_batches(run);
    measure(run);
    keep_prediction(run);
    if (code == CLI_OK && run->arrays != NULL)
        code = write_arrays(run);
    code = combine_codes(code, save_state(run));
    code = combine_codes(code, write_text(run, run->options->trace, hr_iter_trace));
    report(run, code);
    report_already_complete(run, code);
    stop_unwatch();
    return code;
}

static int run_run(void *values, const struct cli_rest *rest)
{
    const struct run_options *options = values;
    struct run run = {.options = options, .result.graph_path = rest->words[0]};
    int code;

    code = graph_file_propose(rest->words[0], options->quiet || options->help_params);
    if (code != CLI_OK)
        return code;
    if (options->help_params)
        return graph_file_help(rest->words[0], &options->params);
    code = run_graph(&run, rest->words[0]);
    hr_iter_close(run.iter);
    hr_graph_unref(run.graph);
    hr_prediction_free(run.prediction);
    hr_digest_destroy(run.digest);
    arrays_out_end(run.arrays);
    if (run.batch_digests != NULL)
        fclose(run.batch_digests);
    free(run.state);
    return code;
}

static const struct run_options run_defaults = {.plan = PLAN_DEFAULTS,
                                                .records = RECORD_DEFAULTS};

const struct cli_command cmd_run = {
    .name = "run",
    .summary = "run a graph and report speed and memory",
    .args = "GRAPH|DATA",
    .args_min = 1,
    .args_max = 1,
    .text =
        "Runs the graph file GRAPH (YAML or JSON; - for standard input) and reports "
        "throughput, memory use and the time of each node. For DATA, a folder or a file "
        "of records, it makes a graph as headrace init does, prints and runs it. Batches "
        "are measured and dropped: this is the loader "
        "without a trainer; or written as NumPy arrays with --output. A field whose "
        "records differ in size, and texts, become three arrays: FIELD with all "
        "elements, "
        "FIELD_splits (record i is FIELD[splits[i]:splits[i + 1]]), and FIELD_shapes if "
        "records have two dimensions or more. The first Ctrl-C stops cleanly and saves "
        "the state if "
        "--state is given; the second kills the process.",
    CLI_OPTIONS(run_table, struct run_options),
    CLI_EXAMPLES(run_examples),
    .defaults = &run_defaults,
    .run = run_run,
};
