/*
 * source.tfrecord - records of TFRecord files.
 *
 * Lengths are read when the graph is opened (store/tfrecord.h), so that records can be
 * taken in any order; both checksums are checked when a record is read.
 */
#include "ops/shard_rows.h"

#include "store/tfrecord.h"

struct tfrecord {
    const char *path, *field;
    struct hr_shard_params shards;
};

static const struct hr_param tfrecord_params[] = {
    HR_P_PATH(struct tfrecord, path, .required = true, .not_identity = true,
              .help = "a file; or several: \"train-{000..099}.tfrecord\", a pattern such "
                      "as \"data/train.tfrecord-*\", or a folder of .tfrecord files"),
    HR_P_FIELD(struct tfrecord, field, .fallback = "data", .access = HR_ACCESS_WRITE,
               .help = "the field that holds a record's data"),
    HR_P_SHARDS(struct tfrecord),
};

static enum hr_err tfrecord_infer(struct hr_infer *infer)
{
    infer->fields[0]->kind = HR_FIELD_BYTES;
    infer->output->records = -1;
    return HR_OK;
}

static enum hr_err tfrecord_open(const struct hr_open *open, void **ret_state)
{
    const struct tfrecord *p = open->params;
    struct hr_packed_limits packed = hr__unpack_limits(&p->shards);
    const struct hr_shard_saving saving = {.format = "tfrecord 1",
                                           .path = p->shards.index};

    packed.checked = true;
    packed.is_plain = hr__tfrecord_begins;
    return hr__shard_source_open(p->path, ".tfrecord", hr__tfrecord_scan, NULL, &packed,
                                 &saving, sizeof(struct hr_shard_source), ret_state,
                                 open->error);
}

static enum hr_err
tfrecord_make(struct hr_op_ctx *ctx, const struct hr_shard_record *record)
{
    const char *data, *wrong;
    size_t bytes;

    wrong = hr__tfrecord_check(record->data, record->place.bytes, &data, &bytes);
    if (wrong == NULL)
        return hr__shard_source_bytes(ctx, record, data, bytes, ctx->fields[0]);
    return hr__fail(ctx->error, HR_ERR_FORMAT, "%s: byte %llu: %s", record->place.uri,
                    (unsigned long long)record->place.offset, wrong);
}

static enum hr_err tfrecord_apply(struct hr_op_ctx *ctx)
{
    return hr__shard_source_make(ctx, tfrecord_make);
}

static uint32_t
tfrecord_apply_rows(struct hr_op_ctx *ctx, const struct hr_source_rows *rows)
{
    return hr__shard_source_rows(ctx, rows, tfrecord_make);
}

const struct hr_op hr_op_source_tfrecord = {
    .name = "source.tfrecord",
    .summary = "records of TFRecord files, as bytes",
    .doc = "Records can be read in any order, so shuffle, shard and resume work as for "
           "files. Checksums are checked: a record whose data is damaged is bad, and a "
           "damaged length costs the record that it belongs to. The identity of the "
           "source is the lengths and checksums of its records, hence its "
           "contents.\n\n" HR_SHARD_INDEX_DOC "\n\n" HR_UNPACK_DOC
           " Files that are compressed as zlib (TensorFlow's `ZLIB`) are read, too. As "
           "records have checksums of their own, those before the damage in a damaged "
           "stream are read.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(tfrecord_params, struct tfrecord),
    .infer = tfrecord_infer,
    .open = tfrecord_open,
    .close = hr__shard_source_close,
    .identity = hr__shard_source_identity,
    .apply = tfrecord_apply,
    .source = {.count = hr__shard_source_count,
               .apply_rows = tfrecord_apply_rows,
               .rows_own = true,
               .locate = hr__shard_source_locate,
               .ahead = hr__shard_source_ahead,
               .size = hr__shard_source_size},
    .memory = HR_SHARD_MEMORY,
};
