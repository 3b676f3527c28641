/*
 * source.arrow - the rows of Arrow files and streams.
 */
#include "ops/arrow_files.h"
#include "ops/column_source.h"

#include "core/error.h"
#include "core/str.h"
#include "store/store.h"

struct params {
    struct hr_column_params columns;
    int64_t batch_max, batch_cache;
};

static const struct hr_param arrow_params[] = {
    HR_P_PATH(struct hr_column_params, path, .required = true, .not_identity = true,
              .help = "a file; or several: \"data-{00000..00003}.arrow\", a pattern such "
                      "as \"train/data-*.arrow\", or a folder of .arrow files"),
    HR_P_COLUMN_COLUMNS,
    HR_P_COLUMN_FILL,
    HR_P_BYTES(struct params, batch_max, .fallback = "4GiB", HR_RANGE(1, 1LL << 50),
               .unit = "bytes", .not_identity = true,
               .help = "a record batch that takes more memory is not read; those of "
                       "local files that are not compressed take none"),
    HR_P_BYTES(struct params, batch_cache, .fallback = "256MiB", HR_RANGE(0, 1LL << 50),
               .unit = "bytes", .not_identity = true,
               .help = "of files that are compressed or not local: record batches that "
                       "are kept in memory, at most 64"),
};

static enum hr_err
begin_row(void *files, struct hr_column_row *row, struct hr_error *reterr)
{
    struct hr_arrow_row *own = &row->as.arrow;
    enum hr_err code = hr__arrow_files_row(files, row->index, own, reterr);

    row->uri = own->file->uri;
    row->first = row->index - (uint64_t)own->row;
    row->count =
        own->group->damage == NULL && code == HR_OK ? (uint64_t)own->places[0].rows : 1;
    return code;
}

static void move_row(struct hr_column_row *row, uint64_t index)
{
    row->index = index;
    row->as.arrow.row = (int64_t)(index - row->first);
}

static enum hr_err read_cell(void *files, struct hr_column_row *row, size_t column,
                             struct hr_arrow_cell *ret_cell, struct hr_buffer **ret_owner,
                             struct hr_error *reterr)
{
    const struct hr_arrow_row *own = &row->as.arrow;
    enum hr_err code = hr__arrow_files_cell(files, own, column, ret_cell, reterr);

    if (code != HR_OK)
        hr__error_prefix(reterr, "%s: byte %llu", row->uri,
                         (unsigned long long)own->group->body);
    *ret_owner = own->buffer;
    return code;
}

static enum hr_err
read_run(void *files, struct hr_column_row *row, size_t column,
         struct hr_arrow_cell *ret_cell, uint64_t *ret_rows, struct hr_error *reterr)
{
    (void)reterr;
    hr__arrow_files_run(files, &row->as.arrow, column, ret_cell, ret_rows);
    return HR_OK;
}

static void end_row(struct hr_column_row *row)
{
    hr_buffer_unref(row->as.arrow.buffer);
}

static void add_where(const struct hr_column_row *row, struct hr_str *out)
{
    hr__str_addf(out, "row %lld of the batch at byte %llu", (long long)row->as.arrow.row,
                 (unsigned long long)row->as.arrow.group->body);
}

static void close_files(void *files)
{
    hr__arrow_files_close(files);
}

static const struct hr_column_format arrow_format = {.begin = begin_row,
                                                     .move = move_row,
                                                     .cell = read_cell,
                                                     .run = read_run,
                                                     .end = end_row,
                                                     .where = add_where,
                                                     .close = close_files};

/* A folder that the datasets library saved a DatasetDict to has a folder for each split:
 * together they would be one data set of training and test records. */
static enum hr_err refuse_splits(const char *folder, struct hr_error *error)
{
    const char *path;
    struct hr_object object;
    struct hr_str uri;
    enum hr_err code;

    if (hr__store_is_remote(folder, &path))
        return HR_OK;
    hr__str_init(&uri);
    hr__str_addf(&uri, "%s/dataset_dict.json", path);
    code = hr__str_ok(&uri) ? hr__store_open(hr__str_text(&uri), &object, NULL)
                            : HR_ERR_MEMORY;
    hr__str_finish(&uri);
    if (code != HR_OK)
        return HR_OK;
    hr__store_close(&object);
    return hr__fail(error, HR_ERR_ARGUMENT,
                    "%s has several splits (its dataset_dict.json lists them): name the "
                    "folder of one, such as %s/train",
                    folder, folder);
}

static enum hr_err
arrow_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct params *p = params;
    struct hr_arrow_files *files;

    HR_TRY(refuse_splits(p->columns.path, error));
    HR_TRY(hr__arrow_files_open(p->columns.path, &p->columns.columns,
                                (uint64_t)p->batch_max, &files, error));
    files->cache_bytes = (uint64_t)p->batch_cache;
    return hr__column_source_create(&arrow_format, files, &files->columns, files->records,
                                    files->identity, ret_state, error);
}

/* The body of the record's batch. */
static bool arrow_locate(const void *params, const void *made, uint64_t index, char *uri,
                         size_t room, uint64_t *ret_offset)
{
    const struct hr_arrow_files *files = ((const struct hr_column_source *)made)->files;
    const struct hr_arrow_group *group;

    (void)params;
    if (index >= files->records)
        return false;
    group = hr__arrow_files_group(files, index);
    return hr__column_source_place(files->files[group->file].uri, group->body, uri, room,
                                   ret_offset);
}

/* Of more than these, offsets are spread over too much of the files. */
#define SIZED_ROWS ((uint64_t)4 << 20)
#define SIZED_BATCHES 4096

static uint64_t arrow_size(const void *params, const void *made, uint64_t index)
{
    const struct hr_arrow_files *files = ((const struct hr_column_source *)made)->files;

    (void)params;
    if (index >= files->records || files->records > SIZED_ROWS ||
        files->group_count > SIZED_BATCHES)
        return 0;
    return hr__arrow_files_size(files, index);
}

static void arrow_kept(const void *params, const void *made, uint64_t budget,
                       struct hr_op_kept *ret_kept)
{
    const struct params *p = params;

    hr__arrow_files_kept(((const struct hr_column_source *)made)->files, ret_kept);
    ret_kept->most = hr__cache_worth((uint64_t)p->batch_cache, budget);
}

static void arrow_limit(const void *params, void *made, uint64_t bytes)
{
    const struct params *p = params;

    hr__arrow_files_limit(((const struct hr_column_source *)made)->files,
                          hr__cache_limit((uint64_t)p->batch_cache, bytes),
                          bytes < UINT64_MAX);
}

const struct hr_op hr_op_source_arrow = {
    .name = "source.arrow",
    .summary = "the rows of Apache Arrow files and streams",
    .doc =
        "Reads Arrow's IPC format, as files (`.arrow`, Feather 2) and as streams, which "
        "Hugging Face `datasets` saves. Bool, integers and floats become numbers, utf8 "
        "text, binary byte strings, lists of numbers tensors of one dimension; "
        "dictionary-encoded text is text. uint32 and uint64 become int64, and a row with "
        "a larger number is a bad record. Dates, times, timestamps and durations become "
        "integers; explain says in which unit. The columns of a struct become fields "
        "called \"struct.column\", so a Hugging Face image is `image.bytes` and "
        "`image.path`. Other types are refused by name. A row with a null is a bad "
        "record "
        "unless `fill` says what it becomes.\n\n"
        "Local files are mapped into memory and used in place. Record batches of other "
        "stores, and those compressed by zstd, are loaded when one of their rows is "
        "wanted and kept in `batch_cache`; rows in order need one batch at a time, a "
        "shuffled epoch is fast where all fit. LZ4 is refused. Rows can be read in any "
        "order, so shuffle, split, shard and resume work as for files.\n\n"
        "Arrow has no checksums: damage to offsets, dictionaries and metadata is found, "
        "damage to numbers and text is not. A batch whose metadata are damaged is one "
        "bad "
        "record, and so is the rest of a file that is cut. The identity of the source is "
        "the metadata of all batches, and the first, middle and last 64 KiB of each "
        "file.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(arrow_params, struct params),
    .binds = hr__column_source_binds,
    .infer = hr__column_source_infer,
    .open = hr__column_source_open,
    .close = hr__column_source_close,
    .identity = hr__column_source_identity,
    .apply = hr__column_source_apply,
    .prepare = arrow_prepare,
    .source = {.apply_rows = hr__column_source_apply_rows,
               .note = hr__column_source_note,
               .count = hr__column_source_count,
               .locate = arrow_locate,
               .size = arrow_size,
               .key_name = hr__column_source_key_name,
               .key = hr__column_source_key},
    .memory = {.kept = arrow_kept,                     .limit = arrow_limit            },
};
