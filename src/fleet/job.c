/*
 * fleet/job.c - see job.h.
 */
#include "fleet/job.h"

#include <string.h>

#include "core/doc.h"
#include "core/error.h"
#include "core/hash.h"
#include "op/op.h"
#include "wire/frame.h"

static const char *const evens[] = {"none", "drop", "repeat"};
static const char *const units[] = {"batch", "record"};
static const char *const on_errors[] = {"fail", "skip", "substitute"};
#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

uint64_t hr__job_id(const void *text, size_t bytes)
{
    return hr__hash64(text, bytes, 0);
}

static enum hr_err refuse_code(const struct hr_graph *graph, struct hr_error *reterr)
{
    for (uint32_t i = 0; i < graph->count; i++) {
        if (graph->nodes[i].op->code == NULL)
            continue;
        hr__fail(reterr, HR_ERR_UNSUPPORTED,
                 "the graph travels to workers, your code does not: run a graph with "
                 "user code without the service");
        hr__graph_blame(graph, i, reterr);
        return HR_ERR_UNSUPPORTED;
    }
    return HR_OK;
}

/* ---- writing ---- */

static void
print(const char *graph_text, const char *fingerprint, const struct hr_iter_options *o,
      const char *name, bool records, struct hr_str *out)
{
    hr__str_addf(out, "{\"headrace_job\":%d,\"name\":", HR_JOB_VERSION);
    hr__str_add_json(out, name, strlen(name));
    if (o->service_consumer != NULL)
        hr__str_add(out, ",\"consumers\":true");
    hr__str_addf(out,
                 ",\"fingerprint\":\"%s\",\"seed\":%llu,\"epochs\":%lld,"
                 "\"epoch_first\":%lld,\"records_max\":%lld,\"rank\":%lld,"
                 "\"world\":%lld,\"even\":\"%s\",\"errors\":\"%s\","
                 "\"errors_max\":%lld,\"unit\":\"%s\",\"graph\":",
                 fingerprint, (unsigned long long)o->seed, (long long)o->epochs,
                 (long long)o->epoch_first, (long long)o->records_max, (long long)o->rank,
                 (long long)o->world, evens[o->even], on_errors[o->on_error],
                 (long long)o->errors_max, units[records]);
    hr__str_add_json(out, graph_text, strlen(graph_text));
    hr__str_add(out, "}");
}

enum hr_err
hr__job_print(const struct hr_graph *graph, const struct hr_iter_options *options,
              const char *name, bool records, struct hr_str *out, struct hr_error *reterr)
{
    char fingerprint[HR_FINGERPRINT_BYTES];
    char *text;

    if (name[0] == '\0' || strlen(name) > HR_JOB_NAME_MAX ||
        !hr__frame_is_plain(name, strlen(name)))
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a job's name has 1 to %u bytes, of UTF-8 without control "
                        "characters",
                        HR_JOB_NAME_MAX);
    HR_TRY(refuse_code(graph, reterr));
    HR_TRY(hr_graph_fingerprint(graph, fingerprint));
    HR_TRY(hr__graph_print(graph, HR_GRAPH_YAML, &text, reterr));
    print(text, fingerprint, options, name, records, out);
    hr_free(text);
    if (!hr__str_ok(out))
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    if (out->length > HR_FRAME_JOB_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "the graph is too large for a service: %zu bytes as text, at "
                        "most %u",
                        out->length, HR_FRAME_JOB_MAX);
    return HR_OK;
}

/* ---- reading ---- */

static enum hr_err damaged(struct hr_error *reterr, const char *key)
{
    return hr__fail(reterr, HR_ERR_FORMAT,
                    "a job is damaged: \"%s\" is missing or out of range", key);
}

static enum hr_err get(const struct hr_doc *doc, const char *key, int64_t *ret_value,
                       struct hr_error *reterr)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value == NULL || value->kind != HR_DOC_INT || value->as.integer < 0)
        return damaged(reterr, key);
    *ret_value = value->as.integer;
    return HR_OK;
}

static enum hr_err
get_word(const struct hr_doc *doc, const char *key, const char *const *words,
         size_t count, int *ret_number, struct hr_error *reterr)
{
    const char *word = hr__doc_get_string(doc, key);

    for (size_t i = 0; word != NULL && i < count; i++)
        if (strcmp(word, words[i]) == 0) {
            *ret_number = (int)i;
            return HR_OK;
        }
    return damaged(reterr, key);
}

static enum hr_err get_options(const struct hr_doc *doc, struct hr_iter_options *options,
                               struct hr_error *reterr)
{
    struct hr_iter_options o = *options;
    int64_t seed = 0;
    int even = 0, on_error = 0;

    HR_TRY(get(doc, "seed", &seed, reterr));
    HR_TRY(get(doc, "epochs", &o.epochs, reterr));
    HR_TRY(get(doc, "epoch_first", &o.epoch_first, reterr));
    HR_TRY(get(doc, "records_max", &o.records_max, reterr));
    HR_TRY(get(doc, "rank", &o.rank, reterr));
    HR_TRY(get(doc, "world", &o.world, reterr));
    HR_TRY(get(doc, "errors_max", &o.errors_max, reterr));
    HR_TRY(get_word(doc, "even", evens, COUNT(evens), &even, reterr));
    HR_TRY(get_word(doc, "errors", on_errors, COUNT(on_errors), &on_error, reterr));
    o.seed = (uint64_t)seed;
    o.even = (enum hr_even)even;
    o.on_error = (enum hr_on_error)on_error;
    *options = o;
    return HR_OK;
}

static enum hr_err
get_graph(const struct hr_doc *doc, struct hr_job *ret_job, struct hr_error *reterr)
{
    const char *text = hr__doc_get_string(doc, "graph");
    const char *fingerprint = hr__doc_get_string(doc, "fingerprint");
    struct hr_graph *graph = NULL;
    int unit = 0;
    enum hr_err code;

    HR_TRY(get_word(doc, "unit", units, COUNT(units), &unit, reterr));
    if (text == NULL)
        return damaged(reterr, "graph");
    if (fingerprint == NULL || strlen(fingerprint) != HR_FINGERPRINT_BYTES - 1)
        return damaged(reterr, "fingerprint");
    HR_TRY(hr__graph_parse(text, strlen(text), "job.yaml", NULL, 0, &graph, reterr));
    code = refuse_code(graph, reterr);
    if (code != HR_OK) {
        hr__graph_unref(graph);
        return code;
    }
    ret_job->graph = graph;
    ret_job->records = unit == 1;
    memcpy(ret_job->fingerprint, fingerprint, HR_FINGERPRINT_BYTES);
    return HR_OK;
}

static enum hr_err check_version(const struct hr_doc *doc, struct hr_error *reterr)
{
    int64_t version = 0;

    HR_TRY(get(doc, "headrace_job", &version, reterr));
    if (version == HR_JOB_VERSION)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_UNSUPPORTED,
                    "the job is of version %lld; this release knows version %d: "
                    "install the same release everywhere",
                    (long long)version, HR_JOB_VERSION);
}

static enum hr_err get_name(const struct hr_doc *doc, char ret_name[HR_JOB_NAME_MAX + 1],
                            struct hr_error *reterr)
{
    const struct hr_doc *name = hr__doc_get(doc, "name");

    if (name == NULL || name->kind != HR_DOC_STRING || name->as.string.length == 0 ||
        name->as.string.length > HR_JOB_NAME_MAX ||
        !hr__frame_is_plain(name->as.string.text, name->as.string.length))
        return damaged(reterr, "name");
    memcpy(ret_name, name->as.string.text, name->as.string.length + 1);
    return HR_OK;
}

static enum hr_err
get_consumers(const struct hr_doc *doc, bool *ret, struct hr_error *reterr)
{
    const struct hr_doc *value = hr__doc_get(doc, "consumers");

    if (value != NULL && value->kind != HR_DOC_BOOL)
        return damaged(reterr, "consumers");
    *ret = value != NULL && value->as.boolean;
    return HR_OK;
}

static enum hr_err
add_kin(const struct hr_doc *doc, struct hr_str *out, struct hr_error *reterr)
{
    for (size_t i = 0; i < doc->as.map.count; i++) {
        const struct hr_doc_pair *pair = &doc->as.map.pairs[i];

        if (strcmp(pair->key, "name") == 0 || strcmp(pair->key, "epochs") == 0)
            continue;
        hr__str_add_json(out, pair->key, strlen(pair->key));
        hr__doc_print_json(pair->value, false, out);
    }
    return hr__str_ok(out) ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

enum hr_err hr__job_head(const char *text, size_t bytes, struct hr_job_head *ret_head,
                         struct hr_str *kin, struct hr_error *reterr)
{
    struct hr_job_head head = {.consumers = false};
    struct hr_doc *doc;
    enum hr_err code;

    HR_TRY(hr__doc_parse(text, bytes, "job.json", &doc, reterr));
    code = check_version(doc, reterr);
    if (code == HR_OK)
        code = get_name(doc, head.name, reterr);
    if (code == HR_OK)
        code = get_consumers(doc, &head.consumers, reterr);
    if (code == HR_OK && kin != NULL)
        code = add_kin(doc, kin, reterr);
    hr__doc_destroy(doc);
    if (code == HR_OK)
        *ret_head = head;
    return code;
}

enum hr_err hr__job_parse(const char *text, size_t bytes, struct hr_job *ret_job,
                          struct hr_iter_options *options, struct hr_error *reterr)
{
    struct hr_iter_options read = *options;
    struct hr_doc *doc;
    enum hr_err code;

    HR_TRY(hr__doc_parse(text, bytes, "job.json", &doc, reterr));
    code = check_version(doc, reterr);
    if (code == HR_OK)
        code = get_options(doc, &read, reterr);
    if (code == HR_OK)
        code = get_graph(doc, ret_job, reterr);
    if (code == HR_OK)
        *options = read;
    hr__doc_destroy(doc);
    return code;
}
