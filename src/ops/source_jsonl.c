/*
 * source.jsonl - JSON lines: an object a line, its members are fields.
 *
 * Lines are found as for source.lines and parsed when they are read (store/table_json.c).
 */
#include "ops/row_source.h"

#include "core/alloc.h"
#include "core/str.h"
#include "store/lines.h"

struct jsonl {
    struct hr_row_params row;
};

static const struct hr_param jsonl_params[] = {
    HR_P_PATH(struct hr_row_params, path, .required = true, .not_identity = true,
              .help = "a file; or several: \"part-{000..099}.jsonl\", a pattern such as "
                      "\"part-*.jsonl\", or a folder of .jsonl files"),
    HR_P_ROW_COLUMNS,
    HR_P_ROW_TYPES,
    HR_P_ROW_MAX_BYTES,
    HR_P_SHARDS(struct hr_row_params),
};

/* ---- rows ---- */

struct members {
    const struct hr_row_source *source;
    hr_row_cell_fn *each;
    void *user;
    size_t next;
};

/* hr_json_member_fn */
static enum hr_err take_member(void *user, const struct hr_json_member *member)
{
    struct members *m = user;
    int column =
        hr__row_source_column(m->source, member->key, member->key_bytes, m->next);
    struct hr_row_cell cell = {.at = (size_t)member->column - 1,
                               .bytes = member->bytes,
                               .text = member->text,
                               .seen = member->seen};

    if (column < 0)
        return HR_OK;
    m->next = (size_t)column + 1;
    cell.column = (size_t)column;
    return m->each(m->user, &cell);
}

/* Where the text is no UTF-8; `bytes` if it is. */
static size_t check_utf8(const char *text, size_t bytes)
{
    size_t at = 0, length;

    while (at < bytes) {
        length =
            (unsigned char)text[at] < 0x80 ? 1 : hr__utf8_length(text + at, bytes - at);
        if (length == 0)
            return at;
        at += length;
    }
    return at;
}

static enum hr_err
jsonl_parse(const struct hr_row_source *source, struct hr_thread *thread, const char *row,
            size_t bytes, hr_row_cell_fn *each, void *user, size_t *ret_at,
            struct hr_error *reterr)
{
    struct members members = {source, each, user, 0};
    struct hr_error why;
    size_t invalid = check_utf8(row, bytes);
    enum hr_err code;

    hr__error_init(&why);
    (void)thread;
    if (invalid < bytes) {
        *ret_at = invalid;
        return hr__fail(reterr, HR_ERR_FORMAT, "no JSON object: invalid UTF-8");
    }
    code = hr__json_members(row, bytes, take_member, &members, &why);
    if (why.message[0] == '\0')
        return code; /* fine, or told by `each` */
    *ret_at = why.column > 0 ? (size_t)why.column - 1 : 0;
    return hr__fail(reterr, code, "%s", why.message);
}

static const struct hr_row_format format = {.json = true, .parse = jsonl_parse};

/* ---- hooks ---- */

static void jsonl_close(void *state)
{
    hr__row_source_finish(state);
    hr__shard_source_close(state);
}

static enum hr_err
jsonl_prepare(const void *params, void **ret_state, struct hr_error *error)
{
    const struct jsonl *p = params;
    struct hr_lines_scan scan = {.skip = HR_LINES_SKIP_BLANK};
    struct hr_packed_limits packed = hr__unpack_limits(&p->row.shards);
    const struct hr_shard_saving saving = {.format = hr__lines_format(scan.skip),
                                           .path = p->row.shards.index};
    struct hr_row_source *source;
    struct hr_table table = {0};
    void *made;
    enum hr_err code;

    HR_TRY(hr__shard_source_open(p->row.path, ".jsonl", hr__lines_scan, &scan, &packed,
                                 &saving, sizeof *source, &made, error));
    source = made;
    source->format = &format;
    code = hr__row_source_choose(source, &p->row, NULL, 0, &table, error);
    if (code == HR_OK)
        code = hr__row_source_types(source, &table, error);
    hr__table_finish(&table);
    if (code == HR_OK)
        *ret_state = source;
    else
        jsonl_close(source);
    return code;
}

const struct hr_op hr_op_source_jsonl = {
    .name = "source.jsonl",
    .summary = "the rows of JSON lines files, with typed fields",
    .doc =
        "Each line is one JSON object, in UTF-8; blank lines do not count, and neither "
        "does a byte order mark. The members that `columns` names become fields: int64, "
        "float64, bool, text, or json (any value, as compact JSON). Types that are not "
        "declared follow from all lines, which are read once for it when the graph is "
        "checked: whole numbers are int64, any other numbers make float64, lists and "
        "objects json; texts and numbers in one column are an error. A whole number that "
        "does not fit an int64 is a bad record, unless the column is declared as "
        "float64, "
        "or as json, which keeps its digits; those inside lists and objects become "
        "float64.\n\n"
        "A line that is no object, a value of another type and a missing value (null, or "
        "no such key) without a default are bad records, whose message names file, line, "
        "byte and column. Lines can be read in any order, so shuffle, split, shard and "
        "resume work as for files; 8 bytes of memory are kept per line. The identity "
        "of the source is the contents of its files.\n\n" HR_SHARD_INDEX_DOC
        "\n\n" HR_UNPACK_DOC,
    .version = 1,
    .kind = HR_OP_SOURCE,
    .traits = HR_TRAIT_PURE,
    HR_PARAMS(jsonl_params, struct jsonl),
    .binds = hr__row_source_binds,
    .infer = hr__row_source_infer,
    .open = hr__row_source_open,
    .close = jsonl_close,
    .identity = hr__shard_source_identity,
    .apply = hr__row_source_apply,
    .prepare = jsonl_prepare,
    .source = HR_ROW_SOURCE,
    .memory = HR_SHARD_MEMORY,
};
