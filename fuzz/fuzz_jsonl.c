/*
 * fuzz/fuzz_jsonl.c - any bytes as a line of JSON: the quick parser and the strict one
 * agree about what is an object, and a table takes it or stays as it is.
 */
#include "core/doc.h"
#include "store/table.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* hr_json_member_fn */
static enum hr_err count_member(void *user, const struct hr_json_member *member)
{
    if (member->key == NULL || (member->bytes > 0 && member->text == NULL) ||
        member->column < 1)
        abort();
    ++*(size_t *)user;
    return HR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_table table = {.types_only = true, .json = true};
    const char *line = (const char *)data;
    struct hr_doc *doc = NULL;
    size_t members = 0;
    enum hr_err code;

    if (memchr(data, '\n', bytes) != NULL || memchr(data, '\0', bytes) != NULL)
        return 0;
    code = hr__json_members(line, bytes, count_member, &members, NULL);
    if (hr__doc_parse(line, bytes, "x.json", &doc, NULL) == HR_OK &&
        (code == HR_OK) != (doc->kind == HR_DOC_MAP))
        abort();
    if (doc != NULL && code == HR_OK && doc->as.map.count != members)
        abort();
    hr__doc_destroy(doc);
    if ((hr__table_add_json(&table, 1, line, bytes, NULL) == HR_OK) != (code == HR_OK))
        abort();
    if (table.rows != (code == HR_OK) ||
        table.column_count != (code == HR_OK ? members : 0))
        abort();
    hr__table_finish(&table);
    return 0;
}
