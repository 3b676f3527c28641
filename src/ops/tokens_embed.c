/*
 * tokens.embed - token ids to rows of a table in a .npy file.
 *
 * The file is mapped, so all threads and processes of the machine share one copy in the
 * page cache. Its contents, not its path, are part of the fingerprint.
 */
#include "codec/npy.h"
#include "core/alloc.h"
#include "core/file.h"
#include "op/op.h"

#include <string.h>
#include <sys/mman.h>

struct embed {
    const char *field, *to, *table;
};

static const struct hr_param embed_params[] = {
    HR_P_PATH(struct embed, table, .required = true, .not_identity = true,
              .help = "a .npy file with a matrix: row i is the vector of id i"),
    HR_P_FIELD(struct embed, field, .fallback = "tokens", .access = HR_ACCESS_READ,
               .help = "the field with the ids"),
    HR_P_FIELD(struct embed, to, .fallback = "embeddings", .access = HR_ACCESS_WRITE,
               .help = "the field that becomes their vectors"),
};

enum { FIELD_IDS, FIELD_TO };

struct table {
    void *map;
    size_t map_bytes;
    const char *rows;
    struct hr_npy npy;
    size_t row_bytes;
};

/* ---- the file ---- */

static void embed_close(void *state)
{
    struct table *t = state;

    if (t->map != NULL)
        (void)munmap(t->map, t->map_bytes);
    hr__free(t);
}

static enum hr_err read_table(struct table *t, const char *path, struct hr_error *error)
{
    struct hr_npy *npy = &t->npy;

    HR_TRY(hr__file_map(path, &t->map, &t->map_bytes, error));
    HR_TRY(hr__npy_read(t->map, t->map_bytes, t->map_bytes, path, npy, error));
    if (npy->ndim != 2 || npy->dims[0] == 0 || npy->dims[1] == 0)
        return hr__fail(error, HR_ERR_SHAPE,
                        "%s: a table must be a matrix with rows and columns", path);
    if (!hr__npy_is_plain(npy))
        return hr__fail(error, HR_ERR_UNSUPPORTED,
                        "%s: a table must be little-endian and not of uint32 or uint64: "
                        "save it as another dtype",
                        path);
    if (npy->fortran)
        return hr__fail(error, HR_ERR_UNSUPPORTED,
                        "%s: its columns are stored one after the other: save "
                        "numpy.ascontiguousarray of it",
                        path);
    t->rows = (const char *)t->map + npy->start;
    t->row_bytes = (size_t)npy->dims[1] * hr_dtype_size(npy->dtype);
    return HR_OK;
}

static enum hr_err
open_table(const char *path, struct table **ret_table, struct hr_error *error)
{
    struct table *t = hr__calloc(1, sizeof *t);
    enum hr_err err;

    if (t == NULL)
        return hr__fail(error, HR_ERR_MEMORY, "out of memory");
    err = read_table(t, path, error);
    if (err == HR_OK)
        *ret_table = t;
    else
        embed_close(t);
    return err;
}

static enum hr_err embed_open(const struct hr_open *open, void **ret_state)
{
    const struct embed *p = open->params;
    struct table *t = NULL;

    HR_TRY(open_table(p->table, &t, open->error));
    *ret_state = t;
    return HR_OK;
}

static void
embed_identity(const void *params, const void *state, struct hr_hasher *hasher)
{
    const struct table *t = state;

    (void)params;
    hr__hasher_add(hasher, &t->npy.dtype, sizeof t->npy.dtype);
    hr__hasher_add(hasher, t->npy.dims, 2 * sizeof t->npy.dims[0]);
    hr__hasher_add(hasher, t->rows, t->npy.bytes);
}

/* ---- records ---- */

static enum hr_err set_schema(struct hr_infer *infer, const struct table *t)
{
    const struct hr_field *ids = infer->fields[FIELD_IDS];
    struct hr_field *to = infer->fields[FIELD_TO];

    to->dtype = t->npy.dtype;
    to->ndim = ids->ndim + 1;
    memcpy(to->dims, ids->dims, (size_t)ids->ndim * sizeof *to->dims);
    hr__dim_set(&to->dims[ids->ndim], t->npy.dims[1]);
    return HR_OK;
}

/* The length of a row is part of the schema, so the header is read here, too. */
static enum hr_err embed_infer(struct hr_infer *infer)
{
    const struct embed *p = infer->params;
    const struct hr_field *ids = infer->fields[FIELD_IDS];
    struct table *t = NULL;
    enum hr_err err;

    if (ids->kind != HR_FIELD_TENSOR || (ids->dtype != HR_I32 && ids->dtype != HR_I64) ||
        ids->ndim == HR_MAX_DIMS)
        return hr__infer_fail(infer, "field", HR_ERR_TYPE,
                              "field \"%s\" must hold ids, int32 or int64", ids->name);
    if (infer->state != NULL)
        return set_schema(infer, infer->state);
    HR_TRY(open_table(p->table, &t, infer->error));
    err = set_schema(infer, t);
    embed_close(t);
    return err;
}

static enum hr_err
copy_rows(struct hr_op_ctx *ctx, const void *ids, bool wide, int64_t count, char *to)
{
    const struct embed *p = ctx->params;
    const struct table *t = ctx->state;

    for (int64_t i = 0; i < count; i++, to += t->row_bytes) {
        int64_t id = wide ? ((const int64_t *)ids)[i] : ((const int32_t *)ids)[i];

        if (id < 0 || id >= t->npy.dims[0])
            return hr__fail(ctx->error, HR_ERR_RANGE,
                            "id %lld is no row of %s, which has %lld", (long long)id,
                            p->table, (long long)t->npy.dims[0]);
        memcpy(to, t->rows + (size_t)id * t->row_bytes, t->row_bytes);
    }
    return HR_OK;
}

static enum hr_err embed_apply(struct hr_op_ctx *ctx)
{
    const struct table *t = ctx->state;
    const struct hr_value *ids = ctx->fields[FIELD_IDS];
    int64_t count = hr__value_count(ids), dims[HR_MAX_DIMS];
    size_t bytes;
    void *memory, *dense = ids->data;

    if (!hr__value_contiguous(ids)) {
        HR_TRY(hr__op_alloc(ctx, ids->bytes, &dense));
        hr__value_copy(ids, dense);
    }
    if (__builtin_mul_overflow((size_t)count, t->row_bytes, &bytes))
        return hr__fail(ctx->error, HR_ERR_LIMIT, "%lld vectors are larger than memory",
                        (long long)count);
    HR_TRY(hr__op_result(ctx, FIELD_TO, bytes, &memory));
    HR_TRY(copy_rows(ctx, dense, ids->dtype == HR_I64, count, memory));
    memcpy(dims, ids->dims, ids->ndim * sizeof *dims);
    dims[ids->ndim] = t->npy.dims[1];
    hr__value_set_tensor(ctx->fields[FIELD_TO], t->npy.dtype, ids->ndim + 1, dims, memory,
                         NULL);
    return HR_OK;
}

const struct hr_op hr_op_tokens_embed = {
    .name = "tokens.embed",
    .summary = "token ids to the rows of a table",
    .doc =
        "Ids `[...]`, int32 or int64, to `[..., columns]` in the table's dtype. An id "
        "that is no row is an error. The table is a matrix in a .npy file (C order), "
        "which is mapped: threads and processes share it, and it must not be changed "
        "or cut while in use. Its contents, not its path, are part of the fingerprint, "
        "so freezing the graph reads all of it once.",
    .version = 1,
    .kind = HR_OP_MAP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_GROWS,
    HR_PARAMS(embed_params, struct embed),
    .infer = embed_infer,
    .open = embed_open,
    .close = embed_close,
    .identity = embed_identity,
    .apply = embed_apply,
    .placed = true,
};
