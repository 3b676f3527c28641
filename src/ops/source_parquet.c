/*
 * source.parquet - the rows of Parquet files.
 */
#include "ops/column_source.h"
#include "ops/parquet_files.h"
#include "ops/parquet_where.h"

struct params {
    struct hr_column_params columns;
    int64_t page_max, page_cache;
    const char *where;
};

static const struct hr_param parquet_params[] = {
    HR_P_PATH(struct hr_column_params, path, .required = true, .not_identity = true,
              .help = "a file; or several: \"data-{00000..00003}.parquet\", a pattern "
                      "such as \"train/*.parquet\", or a folder of .parquet files"),
    HR_P_COLUMN_COLUMNS,
    HR_P_COLUMN_FILL,
    HR_P_BYTES(struct params, page_max, .fallback = "1GiB", HR_RANGE(1, 1LL << 50),
               .unit = "bytes", .not_identity = true,
               .help = "a page that takes more memory is not read, and so is a column of "
                       "a row group that is larger, if the file is not local"),
    HR_P_BYTES(struct params, page_cache, .fallback = "256MiB", HR_RANGE(0, 1LL << 50),
               .unit = "bytes", .not_identity = true,
               .help = "decoded pages that are kept in memory, but at least 8 for each "
                       "column: a shuffled epoch is fast where all of them fit"),
    HR_P_STRING(struct params, where, .fallback = "",
                .help = "a condition on the chosen columns, such as \"lang == 'en' and "
                        "score > 0.5\": other rows are dropped, and row groups whose "
                        "statistics show that they have none are not read"),
};

static enum hr_err
begin_row(void *files, struct hr_column_row *row, struct hr_error *reterr)
{
    const struct hr_parquet_files *own = files;

    HR_TRY(hr__parquet_files_row(own, row->index, row->thread, &row->as.parquet, reterr));
    row->uri = own->files[row->as.parquet.group->file].uri;
    row->first = row->as.parquet.group->first;
    row->count = row->as.parquet.group->rows;
    return HR_OK;
}

static void move_row(struct hr_column_row *row, uint64_t index)
{
    row->index = row->as.parquet.index = index;
    row->as.parquet.row = index - row->first;
}

static enum hr_err read_cell(void *files, struct hr_column_row *row, size_t column,
                             struct hr_arrow_cell *ret_cell, struct hr_buffer **ret_owner,
                             struct hr_error *reterr)
{
    return hr__parquet_files_cell(files, &row->as.parquet, column, ret_cell, ret_owner,
                                  reterr);
}

static enum hr_err
read_run(void *files, struct hr_column_row *row, size_t column,
         struct hr_arrow_cell *ret_cell, uint64_t *ret_rows, struct hr_error *reterr)
{
    return hr__parquet_files_run(files, &row->as.parquet, column, ret_cell, ret_rows,
                                 reterr);
}

static void end_row(struct hr_column_row *row)
{
    hr__parquet_row_finish(&row->as.parquet);
}

static void add_where(const struct hr_column_row *row, struct hr_str *out)
{
    hr__str_addf(out, "row %llu of row group %u", (unsigned long long)row->as.parquet.row,
                 (unsigned)row->as.parquet.group->number);
}

static void close_files(void *files)
{
    hr__parquet_files_close(files);
}

static const struct hr_column_format parquet_format = {.begin = begin_row,
                                                       .move = move_row,
                                                       .cell = read_cell,
                                                       .run = read_run,
                                                       .end = end_row,
                                                       .where = add_where,
                                                       .close = close_files};

static enum hr_err
parquet_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct params *p = params;
    struct hr_parquet_files *files;
    struct hr_column_source *source;

    HR_TRY(hr__parquet_files_open(p->columns.path, &p->columns.columns,
                                  (uint64_t)p->page_max, p->where[0] != '\0', &files,
                                  error));
    files->cache_bytes = (uint64_t)p->page_cache;
    HR_TRY(hr__column_source_create(&parquet_format, files, &files->columns,
                                    files->records, files->identity, ret_state, error));
    source = *ret_state;
    hr__str_addf(&source->note, "%zu row group%s", files->group_count,
                 files->group_count == 1 ? "" : "s");
    return HR_OK;
}

static enum hr_err parquet_open(const struct hr_open *open, void **ret_state)
{
    const struct params *p = open->params;
    struct hr_column_source *source = *ret_state;

    HR_TRY(hr__column_source_open(open, ret_state));
    if (p->where[0] == '\0')
        return HR_OK;
    HR_TRY(hr__column_source_where(source, p->where, open->output, open->error));
    hr__parquet_where_skip(source);
    return HR_OK;
}

static void parquet_kept(const void *params, const void *state, uint64_t budget,
                         struct hr_op_kept *ret_kept)
{
    const struct params *p = params;
    const struct hr_column_source *source = state;

    hr__parquet_files_kept(source->files, ret_kept);
    ret_kept->most = hr__cache_worth((uint64_t)p->page_cache, budget);
}

static void parquet_limit(const void *params, void *state, uint64_t bytes)
{
    const struct params *p = params;
    struct hr_column_source *source = state;

    hr__parquet_files_limit(source->files,
                            hr__cache_limit((uint64_t)p->page_cache, bytes),
                            bytes < UINT64_MAX);
}

static void parquet_tell(const void *state, struct hr_str *out)
{
    const struct hr_column_source *source = state;
    const struct hr_parquet_files *files = source->files;

    if (source->where != NULL)
        hr__str_addf(out, "%zu of %zu row groups are skipped by where", files->skipped,
                     files->skipped + files->group_count);
}

static bool parquet_drops(const void *params)
{
    return ((const struct params *)params)->where[0] != '\0';
}

/* The first column of the record's row group. */
static bool parquet_locate(const void *params, const void *made, uint64_t index,
                           char *uri, size_t room, uint64_t *ret_offset)
{
    const struct hr_parquet_files *files = ((const struct hr_column_source *)made)->files;
    struct hr_parquet_row row;

    (void)params;
    if (index >= files->records)
        return false;
    if (hr__parquet_files_row(files, index, NULL, &row, NULL) != HR_OK)
        return false;
    return hr__column_source_place(files->files[row.group->file].uri,
                                   row.group->parts[0].chunk.at, uri, room, ret_offset);
}

static bool parquet_ahead(const void *params, const void *made, uint64_t index, int part,
                          struct hr_range *ret_range)
{
    const struct hr_column_source *state = made;

    (void)params;
    return index < state->records &&
           hr__parquet_files_ahead(state->files, index, part, ret_range);
}

const struct hr_op hr_op_source_parquet = {
    .name = "source.parquet",
    .summary = "the rows of Apache Parquet files",
    .doc =
        "Reads what pyarrow, pandas, polars, Spark, DuckDB and Hugging Face write: data "
        "pages of both versions, all encodings of today, uncompressed or compressed by "
        "snappy, zstd, gzip or lz4_raw. Only the chosen columns are read. Bool, integers "
        "and floats become numbers, strings text, binary byte strings, lists of numbers "
        "tensors of one dimension. uint32 and uint64 become int64, and a row with a "
        "larger number is a bad record. Dates, times and timestamps become integers; "
        "explain says in which unit. The columns of a struct become fields called "
        "\"struct.column\", so a Hugging Face image is `image.bytes` and `image.path`. "
        "Decimals, INT96, maps and other nested columns are refused by name; those "
        "beside "
        "them can be chosen. A row with a null is a bad record unless `fill` says what "
        "it "
        "becomes.\n\n"
        "Local files are mapped into memory; values of uncompressed pages are used in "
        "place. A page is decoded when one of its rows is wanted, and kept in "
        "`page_cache`: rows in order need each page once, a shuffled epoch is fast where "
        "all fit. Of a list in pages of version 1 (pyarrow's default), which may end "
        "anywhere, the column of a row group is decoded as a whole. Of files in other "
        "stores, the chosen columns of a row group are fetched when one of its rows is "
        "wanted. Rows can be read in any order, so shuffle, split, shard and resume work "
        "as for files.\n\n"
        "`where` is a condition as of record.filter, on fields of the source: the "
        "records "
        "are those of a record.filter directly after it. Row groups are skipped where "
        "the "
        "statistics of the footer show that the condition is false for every row: their "
        "bytes are not read, and damage or nulls in other columns of their rows is not "
        "found. Of other rows, the columns that the condition reads are decoded first. "
        "Nulls without `fill`, NaN and missing statistics keep a row group. The number "
        "of "
        "records is then known only at the end, but order.shuffle, order.split, "
        "order.repeat and shards still choose among all rows of the row groups that are "
        "left; order.take and order.skip count the rows for which the condition "
        "holds.\n\n"
        "Checksums of pages are checked where the writer has written some "
        "(`write_page_checksum` in pyarrow). The rows of a damaged page are bad records; "
        "where the header of a page is damaged, those after it in its row group are, "
        "too. "
        "A file with a damaged footer is refused. The identity of the source is the "
        "footers, and the first, middle and last 64 KiB of each file.",
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY,
    HR_PARAMS(parquet_params, struct params),
    .binds = hr__column_source_binds,
    .infer = hr__column_source_infer,
    .open = parquet_open,
    .close = hr__column_source_close,
    .identity = hr__column_source_identity,
    .apply = hr__column_source_apply,
    .prepare = parquet_prepare,
    .source = {.note = hr__column_source_note,
               .count = hr__column_source_count,
               .drops = parquet_drops,
               .apply_rows = hr__column_source_apply_rows,
               .locate = parquet_locate,
               .ahead = parquet_ahead,
               .key_name = hr__column_source_key_name,
               .key = hr__column_source_key},
    .learner.tell = parquet_tell,
    .memory = {.kept = parquet_kept, .limit = parquet_limit        },
};
