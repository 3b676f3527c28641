/*
 * api/packer.c - include/headrace/pack.h: shards, and how far the work has got.
 *
 * Where a shard ends depends on the records alone, so threads and interruptions do not
 * change the files. PREFIX.json holds the iterator's state after the last shard that it
 * counts. A later packer resumes from it, and rewrites a shard that an interrupted one
 * had renamed but not yet recorded there.
 *
 * Appending changes no file in place: a shard that takes more records is copied, and the
 * copy takes its name when it is complete. Until PREFIX.json counts it, it also says how
 * many bytes of that shard are older ("kept").
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

static const struct hr_pack_class *const classes[] = {
    [HR_PACK_RECORDS] = &hr__pack_records,
    [HR_PACK_TAR] = &hr__pack_tar,
    [HR_PACK_TFRECORD] = &hr__pack_tfrecord,
};
#define CLASSES (sizeof(classes) / sizeof(classes[0]))

struct hr_packer {
    struct hr_graph *graph;
    const struct hr_pack_class *class;
    char *folder, *prefix;
    uint64_t shard_bytes, shard_records_max; /* where a shard ends */
    int zstd_level, lz4_level;
    bool append;
    char lock_path[HR_URI_MAX];
    int lock;               /* of the shards with this prefix; -1: not taken */
    struct hr_str settings; /* what a packer that continues must have in common */
    struct hr_str fields;   /* of the records, as text */
    char *state;            /* of the iterator, when resuming */
    bool complete;          /* nothing is left to do */
    bool unmarked;          /* a shard has ended; hr_packer_mark() is due */

    struct hr_schema schema; /* of the records, however many */
    struct hr_pool *pool;
    struct hr_value values[HR_SCHEMA_FIELDS_MAX];
    struct hr_pack_shard shard;
    uint64_t shard_records; /* that this packer has added to the shard */
    uint64_t kept;          /* as the manifest has it */
    struct hr_pack_result result;
    struct hr_error *error; /* of the call in progress */
};

void hr_pack_options_init(struct hr_pack_options *options)
{
    if (options != NULL)
        *options = (struct hr_pack_options){.shard_bytes = SHARD_BYTES};
}

/* ---- names ---- */

static bool
path_of(const struct hr_packer *packer, const char *rest, char path[HR_URI_MAX])
{
    int length =
        snprintf(path, HR_URI_MAX, "%s/%s%s", packer->folder, packer->prefix, rest);

    return length > 0 && length < HR_URI_MAX;
}

static enum hr_err
shard_path(const struct hr_packer *packer, uint64_t number, char path[HR_URI_MAX])
{
    char rest[64];

    snprintf(rest, sizeof rest, "-%06llu%s", (unsigned long long)number,
             packer->class->ending);
    return path_of(packer, rest, path)
               ? HR_OK
               : hr__fail(packer->error, HR_ERR_LIMIT, "the path of a shard is too long");
}

static bool is_prefix(const char *prefix)
{
    size_t length = strlen(prefix);

    return length > 0 && length <= PREFIX_MAX && prefix[0] != '.' &&
           strpbrk(prefix, "/\\{},*?[]") == NULL;
}

/* ---- how far the work has got ---- */

static enum hr_err set_settings(struct hr_packer *packer, const struct hr_iter_options *o)
{
    char fingerprint[HR_FINGERPRINT_BYTES];

    HR_TRY(hr_graph_fingerprint(packer->graph, fingerprint));
    hr__str_addf(
        &packer->settings,
        "graph %s, format %s, %llu bytes and %llu records in a shard, seed %llu, "
        "epochs %lld from %lld, limit %lld, bad records %d, rank %lld of %lld",
        fingerprint, packer->class->name, (unsigned long long)packer->shard_bytes,
        (unsigned long long)packer->shard_records_max, (unsigned long long)o->seed,
        (long long)o->epochs, (long long)o->epoch_first, (long long)o->records_max,
        (int)o->on_error, (long long)o->rank, (long long)(o->world > 1 ? o->world : 1));
    if (packer->zstd_level > 0)
        hr__str_addf(&packer->settings, ", zstd %d", packer->zstd_level);
    if (packer->lz4_level > 0)
        hr__str_addf(&packer->settings, ", lz4 %d", packer->lz4_level);
    return hr__str_ok(&packer->settings) ? HR_OK : HR_ERR_MEMORY;
}

static enum hr_err set_fields(struct hr_packer *packer)
{
    const struct hr_schema *schema = packer->shard.schema;
    char text[256];

    for (size_t i = 0; i < schema->count; i++)
        hr__str_addf(&packer->fields, "%s%s: %s", i > 0 ? ", " : "",
                     schema->fields[i].name,
                     hr__field_text(&schema->fields[i], text, sizeof text));
    return hr__str_ok(&packer->fields) ? HR_OK : HR_ERR_MEMORY;
}

static bool get_number(const struct hr_doc *doc, const char *key, uint64_t *ret_number)
{
    const struct hr_doc *value = hr__doc_get(doc, key);

    if (value == NULL || value->kind != HR_DOC_INT || value->as.integer < 0)
        return false;
    *ret_number = (uint64_t)value->as.integer;
    return true;
}

/* Whether what the manifest describes can be appended to now: it is complete, or nothing
 * was added since it was. */
static bool is_settled(const struct hr_packer *packer, const char *state)
{
    return packer->complete || (state == NULL && packer->result.shards > 0 &&
                                packer->result.records == packer->result.records_earlier);
}

static enum hr_err begin_append(struct hr_packer *packer, const struct hr_doc *doc,
                                const char *settings, const char *path)
{
    const char *state = hr__doc_get_string(doc, "state");
    const char *fields = hr__doc_get_string(doc, "fields");

    if (!is_settled(packer, state))
        return hr__fail(packer->error, HR_ERR_STATE,
                        "%s: other work is not finished (%s; now %s): run that again, "
                        "then append, or choose another prefix",
                        path, settings, hr__str_text(&packer->settings));
    if (fields == NULL || strcmp(fields, hr__str_text(&packer->fields)) != 0)
        return hr__fail(packer->error, HR_ERR_TYPE,
                        "%s: the records there have the fields \"%s\", and these have "
                        "\"%s\": make them equal, or choose another prefix",
                        path, fields != NULL ? fields : "",
                        hr__str_text(&packer->fields));
    packer->complete = false;
    packer->result.records_earlier = packer->result.records;
    return HR_OK;
}

static enum hr_err
read_manifest(struct hr_packer *packer, const struct hr_doc *doc, const char *path)
{
    const char *settings = hr__doc_get_string(doc, "settings");
    const char *state = hr__doc_get_string(doc, "state");
    const struct hr_doc *complete = hr__doc_get(doc, "complete");
    bool same;

    if (settings == NULL || complete == NULL || complete->kind != HR_DOC_BOOL ||
        !get_number(doc, "shards", &packer->result.shards) ||
        !get_number(doc, "records", &packer->result.records) ||
        !get_number(doc, "bytes", &packer->result.bytes))
        return hr__fail(packer->error, HR_ERR_STATE,
                        "%s was not written by headrace pack: choose another folder or "
                        "prefix",
                        path);
    packer->complete = complete->as.boolean;
    (void)get_number(doc, "earlier", &packer->result.records_earlier);
    (void)get_number(doc, "kept", &packer->kept);
    same = strcmp(settings, hr__str_text(&packer->settings)) == 0;
    if (packer->append && (packer->complete || !same))
        return begin_append(packer, doc, settings, path);
    if (!same)
        return hr__fail(packer->error, HR_ERR_STATE,
                        "%s belongs to other work (%s; now %s): choose another folder or "
                        "prefix, or remove it and its shards",
                        path, settings, hr__str_text(&packer->settings));
    packer->result.resumed = true;
    if (state == NULL)
        return HR_OK;
    packer->state = hr__strdup(state);
    return packer->state != NULL
               ? HR_OK
               : hr__fail(packer->error, HR_ERR_MEMORY, "out of memory");
}

static enum hr_err load_manifest(struct hr_packer *packer)
{
    char path[HR_URI_MAX], *text = NULL;
    struct hr_doc *doc = NULL;
    size_t bytes;
    enum hr_err code;

    if (!path_of(packer, ".json", path))
        return hr__fail(packer->error, HR_ERR_LIMIT,
                        "the path of the folder is too long");
    code = hr__file_read(path, MANIFEST_MAX, &text, &bytes, NULL);
    if (code == HR_ERR_NOT_FOUND)
        return HR_OK;
    if (code != HR_OK)
        return hr__fail(packer->error, code, "cannot read %s", path);
    code = hr__doc_parse(text, bytes, path, &doc, packer->error);
    if (code == HR_OK)
        code = read_manifest(packer, doc, path);
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

/* `state` is the iterator's after the last shard, NULL if there is none or no record
 * left.
 */
static enum hr_err save_manifest(struct hr_packer *packer, const char *state)
{
    char path[HR_URI_MAX];
    struct hr_str text;
    enum hr_err code;

    hr__str_init(&text);
    hr__str_add(&text, "{\n");
    add_json(&text, "settings", hr__str_text(&packer->settings));
    add_json(&text, "fields", hr__str_text(&packer->fields));
    if (state != NULL)
        add_json(&text, "state", state);
    hr__str_addf(&text, "  \"shards\": %llu,\n  \"records\": %llu,\n  \"bytes\": %llu,\n",
                 (unsigned long long)packer->result.shards,
                 (unsigned long long)packer->result.records,
                 (unsigned long long)packer->result.bytes);
    if (packer->result.records_earlier > 0)
        hr__str_addf(&text, "  \"earlier\": %llu,\n",
                     (unsigned long long)packer->result.records_earlier);
    if (packer->shard.kept.bytes > 0 && !packer->complete)
        hr__str_addf(&text, "  \"kept\": %llu,\n",
                     (unsigned long long)packer->shard.kept.bytes);
    hr__str_addf(&text, "  \"complete\": %s\n}\n", packer->complete ? "true" : "false");
    if (!hr__str_ok(&text) || !path_of(packer, ".json", path))
        code = hr__fail(packer->error, HR_ERR_MEMORY, "out of memory");
    else
        code = hr__file_replace(path, hr__str_text(&text), text.length, packer->error);
    hr__str_finish(&text);
    return code;
}

/* ---- shards ---- */

static enum hr_err open_shard(struct hr_packer *packer)
{
    bool more = packer->shard.kept.bytes > 0; /* the last shard is to have more */
    char path[HR_URI_MAX];

    HR_TRY(shard_path(packer, packer->result.shards - more, path));
    HR_TRY(packer->class->open(&packer->shard, path, packer->error));
    packer->shard.open = true;
    packer->shard_records = 0;
    return HR_OK;
}

static enum hr_err close_shard(struct hr_packer *packer)
{
    packer->shard.open = false;
    HR_TRY(packer->class->commit(&packer->shard, packer->error));
    packer->result.shards += packer->shard.kept.bytes == 0;
    packer->result.records += packer->shard_records;
    packer->result.bytes += packer->shard.bytes - packer->shard.kept.bytes;
    packer->shard.kept = (struct hr_records_whole){0};
    return HR_OK;
}

static bool is_full(const struct hr_packer *packer, uint64_t bytes, uint64_t records)
{
    return bytes >= packer->shard_bytes ||
           (packer->shard_records_max > 0 && records >= packer->shard_records_max);
}

static enum hr_err add_record(struct hr_packer *packer, const struct hr_batch *batch)
{
    size_t count = packer->shard.schema->count;
    enum hr_err code = HR_OK;

    for (size_t f = 0; code == HR_OK && f < count; f++)
        code = hr__batch_item(&batch->values[f], 0, packer->pool, &packer->values[f],
                              packer->error);
    if (code == HR_OK)
        code = packer->class->add(&packer->shard,
                                  packer->result.records + packer->shard_records,
                                  packer->values, packer->error);
    for (size_t f = 0; f < count; f++)
        hr__value_clear(&packer->values[f]);
    return code;
}

/* What a call that was killed has left: "part-000003.tar.tmp-...", "part.json.tmp-...".
 */
static bool is_leftover(const struct hr_packer *packer, const char *name)
{
    size_t length = strlen(packer->prefix);
    const char *ending = ".json";

    if (strncmp(name, packer->prefix, length) != 0)
        return false;
    name += length;
    if (name[0] == '-' && strspn(name + 1, "0123456789") >= 6) {
        name += 1 + strspn(name + 1, "0123456789");
        ending = packer->class->ending;
    }
    length = strlen(ending);
    return strncmp(name, ending, length) == 0 && strncmp(name + length, ".tmp-", 5) == 0;
}

static void remove_leftovers(const struct hr_packer *packer)
{
    DIR *folder = opendir(packer->folder);
    const struct dirent *entry;

    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL)
        if (is_leftover(packer, entry->d_name))
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

static enum hr_err check_exists(const char *path, struct hr_error *why)
{
    struct hr_object object;

    HR_TRY(hr__store_open(path, &object, why));
    hr__store_close(&object);
    return HR_OK;
}

/* Checks the last shard, which an append leaves as it is if it is full. If an interrupted
 * append has replaced it already, `kept` of its bytes are older. */
static enum hr_err keep_shard(struct hr_packer *packer)
{
    struct hr_records_whole *kept = &packer->shard.kept;
    struct hr_error why = {0};
    char path[HR_URI_MAX];
    enum hr_err code;

    if (packer->result.shards == 0 || (packer->result.resumed && packer->kept == 0))
        return HR_OK;
    HR_TRY(shard_path(packer, packer->result.shards - 1, path));
    if (packer->class->keep != NULL)
        code = packer->class->keep(&packer->shard, path, packer->kept, &why);
    else
        code = check_exists(path, &why);
    if (code == HR_ERR_FORMAT || code == HR_ERR_NOT_FOUND || code == HR_ERR_UNSUPPORTED)
        return hr__fail(packer->error, code,
                        "nothing is appended to the last shard: %s: bring back the file "
                        "as it was, or choose another prefix",
                        why.message);
    if (code != HR_OK)
        return hr__fail(packer->error, code, "%s", why.message);
    if (!packer->result.resumed && is_full(packer, kept->bytes, kept->records))
        *kept = (struct hr_records_whole){0};
    return HR_OK;
}

/* Two packers would remove each other's unfinished shards. */
static enum hr_err lock_shards(struct hr_packer *packer)
{
    struct hr_error why = {0};
    enum hr_err code;
    int length;

    length = snprintf(packer->lock_path, sizeof packer->lock_path, "%s/.%s.lock",
                      packer->folder, packer->prefix);
    if (length < 0 || (size_t)length >= sizeof packer->lock_path)
        return hr__fail(packer->error, HR_ERR_LIMIT,
                        "the path of the folder is too long");
    code = hr__file_lock(packer->lock_path, &packer->lock, &why);
    if (code == HR_ERR_STATE)
        return hr__fail(packer->error, HR_ERR_STATE,
                        "shards '%s' in %s are being written by other work: wait for its "
                        "end, or choose another folder or prefix",
                        packer->prefix, packer->folder);
    return code == HR_OK ? HR_OK : hr__fail(packer->error, code, "%s", why.message);
}

static void unlock_shards(struct hr_packer *packer)
{
    if (packer->lock >= 0)
        hr__file_unlock(packer->lock_path, packer->lock);
    packer->lock = -1;
}

/* Says whose the shards are before there is one. */
static enum hr_err claim_folder(struct hr_packer *packer)
{
    char path[HR_URI_MAX];

    HR_TRY(keep_shard(packer));
    remove_leftovers(packer);
    if (packer->result.resumed)
        return HR_OK;
    HR_TRY(shard_path(packer, packer->result.shards, path));
    if (check_exists(path, NULL) == HR_OK)
        return hr__fail(packer->error, HR_ERR_STATE,
                        "%s exists already, and nothing says where it is from: choose "
                        "another folder or prefix",
                        path);
    return save_manifest(packer, NULL);
}

static enum hr_err finish_work(struct hr_packer *packer)
{
    if (!packer->shard.open && packer->result.shards == 0)
        HR_TRY(open_shard(packer)); /* an empty one, which says what its fields are */
    if (packer->shard.open)
        HR_TRY(close_shard(packer));
    packer->complete = true;
    HR_TRY(save_manifest(packer, NULL));
    unlock_shards(packer);
    return HR_OK;
}

/* ---- what was asked for ---- */

static enum hr_err check_schema(struct hr_packer *packer)
{
    const struct hr_graph_node *output;

    HR_TRY(hr_graph_freeze(packer->graph, packer->error));
    output = &packer->graph->nodes[packer->graph->output];
    if (output->schema.batch_rank > 0)
        return hr__fail(packer->error, HR_ERR_UNSUPPORTED,
                        "node '%s' ends in batches, and shards hold records: end the "
                        "graph before it joins records",
                        output->name);
    packer->schema = output->schema;
    packer->schema.records = -1;
    packer->shard.schema = &packer->schema;
    return packer->class->check(&packer->schema, packer->error);
}

static enum hr_err check_level(const struct hr_pack_options *pack, const char *name,
                               int level, int most, struct hr_error *reterr)
{
    if (level >= 0 && level <= most && (level == 0 || pack->format == HR_PACK_RECORDS))
        return HR_OK;
    return hr__fail(reterr, HR_ERR_ARGUMENT,
                    "%s is 1 to %d, or 0 for no compression, and only the container's "
                    "records can be compressed; compress other files as a whole, with "
                    "zstd or gzip",
                    name, most);
}

static enum hr_err
check(const struct hr_iter_options *run, const struct hr_pack_options *pack,
      const char *prefix, struct hr_error *reterr)
{
    if ((int)pack->format < 0 || (size_t)pack->format >= CLASSES)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "format %d is not one of pack.h",
                        (int)pack->format);
    if (pack->folder == NULL || pack->folder[0] == '\0')
        return hr__fail(reterr, HR_ERR_ARGUMENT, "hr_pack needs a folder");
    if (!is_prefix(prefix))
        return hr__fail(
            reterr, HR_ERR_ARGUMENT,
            "prefix '%.80s': it has 1 to %d bytes, does not begin with a dot, "
            "and contains no slash and none of {}*?[],",
            prefix, PREFIX_MAX);
    HR_TRY(check_level(pack, "zstd_level", pack->zstd_level, HR_ZSTD_LEVEL_MAX, reterr));
    HR_TRY(check_level(pack, "lz4_level", pack->lz4_level, HR_LZ4_LEVEL_MAX, reterr));
    if (pack->zstd_level > 0 && pack->lz4_level > 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "records are compressed by zstd or by LZ4, not by both: leave "
                        "zstd_level or lz4_level at 0");
    if (!run->ordered || run->state != NULL || run->even != HR_EVEN_NONE ||
        run->epochs < 1)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "hr_pack writes records in order, of a number of epochs, and "
                        "keeps its own state: leave ordered, state and even as "
                        "hr_iter_options_init sets them, and epochs above 0");
    return HR_OK;
}

static enum hr_err set_up(struct hr_packer *packer, const struct hr_iter_options *run,
                          const struct hr_pack_options *pack, const char *prefix)
{
    uint64_t added;

    packer->class = classes[pack->format];
    packer->folder = hr__strdup(pack->folder);
    packer->prefix = hr__strdup(prefix);
    packer->shard_bytes = pack->shard_bytes > 0 ? pack->shard_bytes : SHARD_BYTES;
    packer->shard_records_max = pack->shard_records;
    packer->zstd_level = pack->zstd_level;
    packer->lz4_level = pack->lz4_level;
    packer->append = pack->append;
    packer->pool = hr_pool_create(0);
    if (packer->folder == NULL || packer->prefix == NULL || packer->pool == NULL)
        return hr__fail(packer->error, HR_ERR_MEMORY, "out of memory");
    HR_TRY(check_schema(packer));
    if (packer->zstd_level > 0)
        HR_TRY(hr__compressor_create(HR_COMPRESSION_ZSTD, packer->zstd_level,
                                     &packer->shard.compressor, packer->error));
    if (packer->lz4_level > 0)
        HR_TRY(hr__compressor_create(HR_COMPRESSION_LZ4, packer->lz4_level,
                                     &packer->shard.compressor, packer->error));
    if (set_settings(packer, run) != HR_OK || set_fields(packer) != HR_OK)
        return hr__fail(packer->error, HR_ERR_MEMORY, "out of memory");
    HR_TRY(lock_shards(packer));
    HR_TRY(load_manifest(packer));
    if (packer->complete) {
        unlock_shards(packer);
        return HR_OK;
    }
    HR_TRY(claim_folder(packer));
    /* A call that was killed had written all, but not said so. */
    added = packer->result.records - packer->result.records_earlier;
    return run->records_max > 0 && added >= (uint64_t)run->records_max
               ? finish_work(packer)
               : HR_OK;
}

/* ---- the interface ---- */

enum hr_err hr_packer_open(struct hr_graph *graph, const struct hr_iter_options *options,
                           const struct hr_pack_options *pack,
                           struct hr_packer **ret_packer, struct hr_error *reterr)
{
    const char *prefix;
    struct hr_packer *packer;
    enum hr_err code;

    if (graph == NULL || options == NULL || pack == NULL || ret_packer == NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "hr_packer_open needs all arguments");
    prefix = pack->prefix != NULL ? pack->prefix : "part";
    HR_TRY(check(options, pack, prefix, reterr));
    packer = hr__calloc(1, sizeof *packer);
    if (packer == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    hr__str_init(&packer->settings);
    hr__str_init(&packer->fields);
    packer->graph = hr_graph_ref(graph);
    packer->lock = -1;
    packer->error = reterr;
    code = set_up(packer, options, pack, prefix);
    if (code != HR_OK) {
        hr_packer_close(packer);
        return code;
    }
    *ret_packer = packer;
    return HR_OK;
}

const char *hr_packer_state(const struct hr_packer *packer)
{
    return packer->state;
}

bool hr_packer_complete(const struct hr_packer *packer)
{
    return packer->complete;
}

enum hr_err hr_packer_add(struct hr_packer *packer, const struct hr_batch *batch,
                          bool *ret_mark, struct hr_error *reterr)
{
    packer->error = reterr;
    *ret_mark = false;
    if (packer->complete || packer->unmarked)
        return hr__fail(reterr, HR_ERR_STATE, "%s",
                        packer->complete ? "all records are written"
                                         : "hr_packer_mark() is due");
    if (hr_batch_records(batch) != 1 || batch->field_count != packer->shard.schema->count)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "this is no record of the graph that the packer was opened for");
    if (!packer->shard.open)
        HR_TRY(open_shard(packer));
    HR_TRY(add_record(packer, batch));
    packer->shard_records++;
    packer->result.records_now++;
    if (is_full(packer, packer->shard.bytes,
                packer->shard.kept.records + packer->shard_records)) {
        HR_TRY(close_shard(packer));
        *ret_mark = packer->unmarked = true;
    }
    return HR_OK;
}

enum hr_err
hr_packer_mark(struct hr_packer *packer, const char *state, struct hr_error *reterr)
{
    packer->error = reterr;
    if (!packer->unmarked)
        return hr__fail(reterr, HR_ERR_STATE, "no shard has ended");
    HR_TRY(save_manifest(packer, state));
    packer->unmarked = false;
    return HR_OK;
}

enum hr_err hr_packer_finish(struct hr_packer *packer, struct hr_error *reterr)
{
    packer->error = reterr;
    return packer->complete ? HR_OK : finish_work(packer);
}

void hr_packer_result(const struct hr_packer *packer, struct hr_pack_result *ret_result)
{
    *ret_result = packer->result;
}

void hr_packer_close(struct hr_packer *packer)
{
    if (packer == NULL)
        return;
    if (packer->shard.open)
        packer->class->abort(&packer->shard);
    unlock_shards(packer);
    hr__pack_shard_finish(&packer->shard);
    hr_pool_unref(packer->pool);
    hr__str_finish(&packer->settings);
    hr__str_finish(&packer->fields);
    hr__free(packer->state);
    hr__free(packer->folder);
    hr__free(packer->prefix);
    hr_graph_unref(packer->graph);
    hr__free(packer);
}
