/*
 * source.lmdb - the entries of an LMDB environment.
 */
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/str.h"
#include "op/op.h"
#include "store/lmdb.h"
#include "store/store.h"

struct params {
    const char *path, *database, *key, *value;
};

static const struct hr_param lmdb_params[] = {
    HR_P_PATH(struct params, path, .required = true, .not_identity = true,
              .help = "the folder of an environment, or its data.mdb file"),
    HR_P_STRING(struct params, database, .fallback = "",
                .help = "the name of a database in it; default: the unnamed one"),
    HR_P_FIELD(struct params, key, .fallback = "key", .access = HR_ACCESS_WRITE,
               .help = "the field that holds an entry's key"),
    HR_P_FIELD(struct params, value, .fallback = "value", .access = HR_ACCESS_WRITE,
               .help = "the field that holds an entry's value"),
};

struct source {
    struct hr_store_map map;
    struct hr_lmdb *lmdb;
    char uri[HR_URI_MAX];
};

static enum hr_err lmdb_infer(struct hr_infer *infer)
{
    infer->fields[0]->kind = infer->fields[1]->kind = HR_FIELD_BYTES;
    infer->output->records = -1;
    return HR_OK;
}

static void lmdb_close(void *state)
{
    struct source *source = state;

    hr__lmdb_close(source->lmdb);
    hr__store_unmap(&source->map);
    hr__free(source);
}

/* The file of an environment. */
static enum hr_err
find_file(struct source *source, const char *path, struct hr_error *error)
{
    const char *local, *file = "";
    struct stat st;

    if (hr__store_is_remote(path, &local))
        return hr__fail(error, HR_ERR_UNSUPPORTED,
                        "%s: an LMDB file is mapped into memory, so it must be local: "
                        "copy it, or pack its records (headrace pack)",
                        path);
    if (stat(local, &st) == 0 && S_ISDIR(st.st_mode))
        file = "/data.mdb";
    if (strlen(local) + strlen(file) >= sizeof source->uri)
        return hr__fail(error, HR_ERR_LIMIT, "the path of a file is too long");
    memcpy(source->uri, local, strlen(local) + 1);
    memcpy(source->uri + strlen(local), file, strlen(file) + 1);
    return HR_OK;
}

static enum hr_err
open_file(struct source *source, const struct params *p, struct hr_error *error)
{
    struct hr_error why = {0};
    enum hr_err code;

    HR_TRY(find_file(source, p->path, error));
    HR_TRY(hr__store_map(source->uri, &source->map, error));
    code = hr__lmdb_open(source->map.data, source->map.bytes, p->database, &source->lmdb,
                         &why);
    return code == HR_OK ? HR_OK
                         : hr__fail(error, code, "%s: %s", source->uri, why.message);
}

static enum hr_err lmdb_open(const struct hr_open *open, void **ret_state)
{
    struct source *source = hr__calloc(1, sizeof *source);
    enum hr_err code;

    if (source == NULL)
        return hr__fail(open->error, HR_ERR_MEMORY, "out of memory");
    code = open_file(source, open->params, open->error);
    if (code == HR_OK)
        *ret_state = source;
    else
        lmdb_close(source);
    return code;
}

static void lmdb_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    struct hr_hash128 hash = hr__lmdb_identity(((const struct source *)state)->lmdb);

    (void)params;
    hr__hasher_add(hasher, &hash.low, sizeof hash.low);
    hr__hasher_add(hasher, &hash.high, sizeof hash.high);
}

static uint64_t lmdb_count(const void *params, const void *state)
{
    (void)params;
    return hr__lmdb_count(((const struct source *)state)->lmdb);
}

static enum hr_err get_entry(const struct source *source, uint64_t index,
                             struct hr_lmdb_entry *ret_entry, struct hr_error *error)
{
    enum hr_err code;

    if (index >= hr__lmdb_count(source->lmdb))
        return hr__fail(error, HR_ERR_RANGE, "there is no record %llu",
                        (unsigned long long)index);
    code = hr__lmdb_entry(source->lmdb, index, ret_entry, error);
    if (code != HR_OK)
        hr__error_prefix(error, "%s", source->uri);
    return code;
}

static enum hr_err lmdb_apply(struct hr_op_ctx *ctx)
{
    struct hr_lmdb_entry entry;

    HR_TRY(get_entry(ctx->state, ctx->id->index, &entry, ctx->error));
    hr__value_set_bytes(ctx->fields[0], entry.key, entry.key_bytes, NULL);
    hr__value_set_bytes(ctx->fields[1], entry.value, entry.value_bytes, NULL);
    ctx->fields[0]->shared = ctx->fields[1]->shared = true;
    return HR_OK;
}

static bool lmdb_locate(const void *params, const void *state, uint64_t index, char *uri,
                        size_t room, uint64_t *ret_offset)
{
    const struct source *source = state;
    struct hr_lmdb_entry entry;
    size_t length = strlen(source->uri);

    (void)params;
    if (length >= room || get_entry(source, index, &entry, NULL) != HR_OK)
        return false;
    memcpy(uri, source->uri, length + 1);
    *ret_offset = (uint64_t)(entry.value - (const char *)source->map.data);
    return true;
}

static uint64_t lmdb_size(const void *params, const void *state, uint64_t index)
{
    const struct hr_lmdb *lmdb = ((const struct source *)state)->lmdb;

    (void)params;
    return index < hr__lmdb_count(lmdb) ? hr__lmdb_entry_bytes(lmdb, index) : 0;
}

static const char *lmdb_key_name(const void *params, const void *state, size_t i)
{
    (void)state;
    return i == 0 ? ((const struct params *)params)->key : NULL;
}

/* A damaged record is known by its number. */
static enum hr_err lmdb_key(const void *params, const void *state, size_t i,
                            uint64_t index, struct hr_str *out, struct hr_error *error)
{
    struct hr_lmdb_entry entry;
    enum hr_err code = get_entry(state, index, &entry, error);

    (void)params, (void)i;
    if (code == HR_ERR_FORMAT) {
        hr__str_addf(out, "%llu", (unsigned long long)index);
        return code;
    }
    if (code == HR_OK)
        hr__str_add_bytes(out, entry.key, entry.key_bytes);
    return code;
}

const struct hr_op hr_op_source_lmdb = {
    .name = "source.lmdb",
    .summary = "the entries of an LMDB environment, as bytes",
    .doc =
        "Entries in the order of their keys, of the newest whole transaction. They can "
        "be "
        "read in any order, so shuffle, split, shard and resume work as for files. The "
        "file is mapped into memory and values are used in place: opening reads the "
        "pages "
        "with keys, not large values. No lock file is made or looked at, so the file may "
        "be read-only, and must not be written while it is read.\n\n"
        "Files of 64-bit little-endian machines are read, with pages of any size. "
        "Databases with several values for a key (MDB_DUPSORT) are refused. Where the "
        "environment has named databases, `database` says which one. LMDB has no "
        "checksums: a page whose structure is damaged is found, a changed byte of a "
        "value "
        "is not. The identity of the source is the transaction, the number of entries, "
        "and the first, middle and last 64 KiB of the file.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(lmdb_params, struct params),
    .infer = lmdb_infer,
    .open = lmdb_open,
    .close = lmdb_close,
    .identity = lmdb_identity,
    .apply = lmdb_apply,
    .source = {.count = lmdb_count,
               .locate = lmdb_locate,
               .size = lmdb_size,
               .key_name = lmdb_key_name,
               .key = lmdb_key},
};
