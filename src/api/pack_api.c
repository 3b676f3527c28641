/*
 * api/pack_api.c - include/headrace/pack.h.
 *
 * Where a shard ends depends on the records alone, so threads and interruptions do not
 * change the files. PREFIX.json holds the iterator's state after the last shard that it
 * counts. A later call resumes from it, and rewrites a shard that an interrupted call had
 * renamed but not yet recorded there.
 */
#include "headrace/pack.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/pack_format.h"
#include "core/alloc.h"
#include "core/doc.h"
#include "core/error.h"
#include "core/file.h"
#include "core/str.h"
#include "engine/batch.h"
#include "graph/graph.h"
#include "op/ragged.h"
#include "store/store.h"

#define SHARD_BYTES ((uint64_t)256 << 20)
#define PREFIX_MAX 64
#define MANIFEST_MAX ((size_t)4 << 20)
#define POLL_NS 200000000u /* between calls of `progress` while a batch is awaited */

struct pack {
    struct hr_graph *graph;
    const struct hr_pack_options *options;
    const struct hr_pack_class *class;
    const char *prefix;
    uint64_t shard_bytes;
    struct hr_iter_options run;
    struct hr_str settings; /* what a call that continues must have in common */
    char *state;            /* of the iterator, when resuming */
    bool complete;          /* nothing is left to do */
    uint64_t expected;      /* records, 0: not known */

    struct hr_iter *iter;
    struct hr_pool *pool;
    struct hr_value values[HR_SCHEMA_FIELDS_MAX];
    struct hr_pack_shard shard;
    uint64_t shard_records;
    struct hr_pack_result result;
    struct hr_error *error;
};

void hr_pack_options_init(struct hr_pack_options *options)
{
    if (options != NULL)
        *options = (struct hr_pack_options){.shard_bytes = SHARD_BYTES};
}

/* ---- names ---- */

static bool path_of(const struct pack *pack, const char *rest, char path[HR_URI_MAX])
{
    int length =
        snprintf(path, HR_URI_MAX, "%s/%s%s", pack->options->folder, pack->prefix, rest);

    return length > 0 && length < HR_URI_MAX;
}

static bool shard_path(const struct pack *pack, char path[HR_URI_MAX])
{
    char rest[64];

    snprintf(rest, sizeof rest, "-%06llu%s", (unsigned long long)pack->result.shards,
             pack->class->ending);
    return path_of(pack, rest, path);
}

static bool is_prefix(const char *prefix)
{
    size_t length = strlen(prefix);

    return length > 0 && length <= PREFIX_MAX && prefix[0] != '.' &&
           strpbrk(prefix, "/\\{},*?[]") == NULL;
}

/* ---- how far the work has got ---- */

static enum hr_err set_settings(struct pack *pack)
{
    const struct hr_iter_options *o = &pack->run;
    char fingerprint[HR_FINGERPRINT_BYTES];

    HR_TRY(hr_graph_fingerprint(pack->graph, fingerprint));
    hr__str_addf(
        &pack->settings,
        "graph %s, format %s, %llu bytes and %llu records in a shard, seed %llu, "
        "epochs %lld from %lld, limit %lld, bad records %d, rank %lld of %lld",
        fingerprint, pack->class->name, (unsigned long long)pack->shard_bytes,
        (unsigned long long)pack->options->shard_records, (unsigned long long)o->seed,
        (long long)o->epochs, (long long)o->epoch_first, (long long)o->records_max,
        (int)o->on_error, (long long)o->rank, (long long)o->world);
    return hr__str_ok(&pack->settings) ? HR_OK : HR_ERR_MEMORY;
}

static bool get_number(const struct hr_doc *doc, const char *key, uint64_t *ret_number)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value == NULL || value->kind != HR_DOC_INT || value->as.integer < 0)
        return false;
    *ret_number = (uint64_t)value->as.integer;
    return true;
}

static enum hr_err
read_manifest(struct pack *pack, const struct hr_doc *doc, const char *path)
{
    const char *settings = hr__doc_get_string(doc, "settings");
    const char *state = hr__doc_get_string(doc, "state");
    const struct hr_doc *complete = hr__doc_get(doc, "complete");

    if (settings == NULL || complete == NULL || complete->kind != HR_DOC_BOOL ||
        !get_number(doc, "shards", &pack->result.shards) ||
        !get_number(doc, "records", &pack->result.records) ||
        !get_number(doc, "bytes", &pack->result.bytes))
        return hr__fail(pack->error, HR_ERR_STATE,
                        "%s was not written by headrace pack: choose another folder or "
                        "prefix",
                        path);
    if (strcmp(settings, hr__str_text(&pack->settings)) != 0)
        return hr__fail(pack->error, HR_ERR_STATE,
                        "%s belongs to other work (%s; now %s): choose another folder or "
                        "prefix, or remove it and its shards",
                        path, settings, hr__str_text(&pack->settings));
    pack->complete = complete->as.boolean;
    pack->result.resumed = true;
    if (state == NULL)
        return HR_OK;
    pack->state = hr__strdup(state);
    return pack->state != NULL ? HR_OK
                               : hr__fail(pack->error, HR_ERR_MEMORY, "out of memory");
}

static enum hr_err load_manifest(struct pack *pack)
{
    char path[HR_URI_MAX], *text = NULL;
    struct hr_doc *doc = NULL;
    size_t bytes;
    enum hr_err code;

    if (!path_of(pack, ".json", path))
        return hr__fail(pack->error, HR_ERR_LIMIT, "the path of the folder is too long");
    code = hr__file_read(path, MANIFEST_MAX, &text, &bytes, NULL);
    if (code == HR_ERR_NOT_FOUND)
        return HR_OK;
    if (code != HR_OK)
        return hr__fail(pack->error, code, "cannot read %s", path);
    code = hr__doc_parse(text, bytes, path, &doc, pack->error);
    if (code == HR_OK)
        code = read_manifest(pack, doc, path);
    hr__doc_destroy(doc);
    hr__free(text);
    return code;
}

static void add_json(struct hr_str *out, const char *key, const char *text)
{
    hr__str_addf(out, "  \"%s\": ", key);
    hr__str_add_json(out, text, strlen(text));
    hr__str_add(out, ",\n");
}

static enum hr_err save_manifest(struct pack *pack)
{
    char path[HR_URI_MAX], *state = NULL;
    struct hr_str text;
    enum hr_err code = HR_OK;

    if (!pack->complete && pack->result.shards > 0)
        HR_TRY(hr_iter_save(pack->iter, &state, pack->error));
    hr__str_init(&text);
    hr__str_add(&text, "{\n");
    add_json(&text, "settings", hr__str_text(&pack->settings));
    if (state != NULL)
        add_json(&text, "state", state);
    hr__str_addf(
        &text,
        "  \"shards\": %llu,\n  \"records\": %llu,\n  \"bytes\": %llu,\n"
        "  \"complete\": %s\n}\n",
        (unsigned long long)pack->result.shards, (unsigned long long)pack->result.records,
        (unsigned long long)pack->result.bytes, pack->complete ? "true" : "false");
    hr_free(state);
    if (!hr__str_ok(&text) || !path_of(pack, ".json", path))
        code = hr__fail(pack->error, HR_ERR_MEMORY, "out of memory");
    else
        code = hr__file_replace(path, hr__str_text(&text), text.length, pack->error);
    hr__str_finish(&text);
    return code;
}

/* ---- shards ---- */

static enum hr_err open_shard(struct pack *pack)
{
    char path[HR_URI_MAX];

    if (!shard_path(pack, path))
        return hr__fail(pack->error, HR_ERR_LIMIT, "the path of a shard is too long");
    HR_TRY(pack->class->open(&pack->shard, path, pack->error));
    pack->shard.open = true;
    pack->shard_records = 0;
    return HR_OK;
}

static enum hr_err close_shard(struct pack *pack)
{
    pack->shard.open = false;
    HR_TRY(pack->class->commit(&pack->shard, pack->error));
    pack->result.shards++;
    pack->result.records += pack->shard_records;
    pack->result.bytes += pack->shard.bytes;
    return HR_OK;
}

static bool is_full(const struct pack *pack)
{
    return pack->shard.bytes >= pack->shard_bytes ||
           (pack->options->shard_records > 0 &&
            pack->shard_records >= pack->options->shard_records);
}

static enum hr_err add_record(struct pack *pack, const struct hr_batch *batch)
{
    size_t count = pack->shard.schema->count;
    enum hr_err code = HR_OK;

    for (size_t f = 0; code == HR_OK && f < count; f++)
        code = hr__batch_item(&batch->values[f], 0, pack->pool, &pack->values[f],
                              pack->error);
    if (code == HR_OK)
        code = pack->class->add(&pack->shard, pack->result.records + pack->shard_records,
                                pack->values, pack->error);
    for (size_t f = 0; f < count; f++)
        hr__value_clear(&pack->values[f]);
    return code;
}

/* Batches are of one record, because the graph ends in records. */
static enum hr_err take(struct pack *pack, const struct hr_batch *batch)
{
    if (!pack->shard.open)
        HR_TRY(open_shard(pack));
    HR_TRY(add_record(pack, batch));
    pack->shard_records++;
    pack->result.records_now++;
    if (!is_full(pack))
        return HR_OK;
    HR_TRY(close_shard(pack));
    return save_manifest(pack);
}

/* What a call that was killed has left: "part-000003.tar.tmp-...", "part.json.tmp-...".
 */
static bool is_leftover(const struct pack *pack, const char *name)
{
    size_t length = strlen(pack->prefix);
    const char *ending = ".json";

    if (strncmp(name, pack->prefix, length) != 0)
        return false;
    name += length;
    if (name[0] == '-' && strspn(name + 1, "0123456789") >= 6) {
        name += 1 + strspn(name + 1, "0123456789");
        ending = pack->class->ending;
    }
    length = strlen(ending);
    return strncmp(name, ending, length) == 0 && strncmp(name + length, ".tmp-", 5) == 0;
}

static void remove_leftovers(const struct pack *pack)
{
    DIR *folder = opendir(pack->options->folder);
    const struct dirent *entry;

    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL)
        if (is_leftover(pack, entry->d_name))
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

/* Says whose the shards are before there is one. */
static enum hr_err claim_folder(struct pack *pack)
{
    char path[HR_URI_MAX];
    struct hr_object object;

    remove_leftovers(pack);
    if (pack->result.resumed)
        return HR_OK;
    if (shard_path(pack, path) && hr__store_open(path, &object, NULL) == HR_OK) {
        hr__store_close(&object);
        return hr__fail(pack->error, HR_ERR_STATE,
                        "%s exists already, and nothing says where it is from: choose "
                        "another folder or prefix",
                        path);
    }
    return save_manifest(pack);
}

/* ---- the run ---- */

static bool stopped(const struct pack *pack)
{
    const struct hr_pack_options *o = pack->options;

    return o->progress != NULL &&
           !o->progress(o->user, pack->result.records + pack->shard_records,
                        pack->expected);
}

static enum hr_err run(struct pack *pack)
{
    for (;;) {
        struct hr_batch *batch = NULL;
        enum hr_err code;

        if (stopped(pack))
            return hr__fail(pack->error, HR_ERR_CANCELLED, "stopped");
        code = hr_iter_next_for(pack->iter, POLL_NS, &batch, pack->error);
        if (code == HR_ERR_END)
            return HR_OK;
        if (code == HR_OK && batch != NULL)
            code = take(pack, batch);
        hr_batch_unref(batch);
        if (code != HR_OK)
            return code;
    }
}

static enum hr_err finish_work(struct pack *pack)
{
    if (!pack->shard.open && pack->result.shards == 0)
        HR_TRY(open_shard(pack)); /* an empty one, which says what its fields are */
    if (pack->shard.open)
        HR_TRY(close_shard(pack));
    pack->complete = true;
    return save_manifest(pack);
}

static void count_errors(struct pack *pack)
{
    struct hr_iter_stats stats;

    hr_iter_stats(pack->iter, &stats);
    pack->result.errors = stats.errors;
}

static enum hr_err open_run(struct pack *pack)
{
    struct hr_epoch_size size;

    pack->run.state = pack->state;
    HR_TRY(hr_graph_epoch_size(pack->graph, &pack->run, &size, pack->error));
    if (size.records >= 0 && pack->run.epochs > 0)
        pack->expected = (uint64_t)size.records * (uint64_t)pack->run.epochs;
    return hr_iter_open(pack->graph, &pack->run, &pack->iter, pack->error);
}

static enum hr_err work(struct pack *pack)
{
    enum hr_err code;

    if (pack->run.records_max > 0 &&
        pack->result.records >= (uint64_t)pack->run.records_max)
        return finish_work(pack);
    code = open_run(pack);
    if (code != HR_OK)
        return code;
    code = run(pack);
    if (code == HR_OK)
        code = finish_work(pack);
    count_errors(pack);
    if (pack->shard.open)
        pack->class->abort(&pack->shard);
    hr_iter_close(pack->iter);
    return code;
}

/* ---- what was asked for ---- */

static enum hr_err check_schema(struct pack *pack)
{
    const struct hr_graph_node *output;

    HR_TRY(hr_graph_freeze(pack->graph, pack->error));
    output = &pack->graph->nodes[pack->graph->output];
    if (output->schema.batch_rank > 0)
        return hr__fail(pack->error, HR_ERR_UNSUPPORTED,
                        "node '%s' ends in batches, and shards hold records: end the "
                        "graph before it joins records",
                        output->name);
    pack->shard.schema = &output->schema;
    return pack->class->check(&output->schema, pack->error);
}

static enum hr_err check(struct pack *pack)
{
    static const struct hr_pack_class *const classes[] = {
        [HR_PACK_RECORDS] = &hr__pack_records,
        [HR_PACK_TAR] = &hr__pack_tar,
        [HR_PACK_TFRECORD] = &hr__pack_tfrecord,
    };
    const struct hr_pack_options *o = pack->options;

    if ((int)o->format < 0 || (size_t)o->format >= sizeof classes / sizeof *classes)
        return hr__fail(pack->error, HR_ERR_ARGUMENT, "format %d is not one of pack.h",
                        (int)o->format);
    pack->class = classes[o->format];
    pack->prefix = o->prefix != NULL ? o->prefix : "part";
    pack->shard_bytes = o->shard_bytes > 0 ? o->shard_bytes : SHARD_BYTES;
    if (o->folder == NULL || o->folder[0] == '\0')
        return hr__fail(pack->error, HR_ERR_ARGUMENT, "hr_pack needs a folder");
    if (!is_prefix(pack->prefix))
        return hr__fail(
            pack->error, HR_ERR_ARGUMENT,
            "prefix '%.80s': it has 1 to %d bytes, does not begin with a dot, "
            "and contains no slash and none of {}*?[],",
            pack->prefix, PREFIX_MAX);
    if (!pack->run.ordered || pack->run.state != NULL || pack->run.even != HR_EVEN_NONE ||
        pack->run.epochs < 1)
        return hr__fail(pack->error, HR_ERR_ARGUMENT,
                        "hr_pack writes records in order, of a number of epochs, and "
                        "keeps its own state: leave ordered, state and even as "
                        "hr_iter_options_init sets them, and epochs above 0");
    return check_schema(pack);
}

static enum hr_err do_pack(struct pack *pack)
{
    HR_TRY(check(pack));
    if (set_settings(pack) != HR_OK)
        return hr__fail(pack->error, HR_ERR_MEMORY, "out of memory");
    HR_TRY(load_manifest(pack));
    if (pack->complete)
        return HR_OK;
    pack->pool = hr_pool_create(0);
    if (pack->pool == NULL)
        return hr__fail(pack->error, HR_ERR_MEMORY, "out of memory");
    HR_TRY(claim_folder(pack));
    return work(pack);
}

enum hr_err hr_pack(struct hr_graph *graph, const struct hr_iter_options *options,
                    const struct hr_pack_options *pack_options,
                    struct hr_pack_result *ret_result, struct hr_error *reterr)
{
    struct hr_error error = {0};
    struct pack *pack;
    enum hr_err code;

    if (graph == NULL || options == NULL || pack_options == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "hr_pack needs a graph and options");
    pack = hr__calloc(1, sizeof *pack);
    if (pack == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    pack->graph = graph;
    pack->options = pack_options;
    pack->run = *options;
    pack->error = reterr != NULL ? reterr : &error;
    hr__str_init(&pack->settings);
    code = do_pack(pack);
    if (ret_result != NULL && (code == HR_OK || code == HR_ERR_CANCELLED))
        *ret_result = pack->result;
    hr__pack_shard_finish(&pack->shard);
    hr_pool_unref(pack->pool);
    hr__str_finish(&pack->settings);
    hr__free(pack->state);
    hr__free(pack);
    return code;
}
