/*
 * codec/tokenizer_json.c - see codec/tokenizer_json.h.
 */
#include "codec/tokenizer_json.h"
#include "codec/bpe.h"
#include "codec/unigram.h"
#include "codec/wordpiece.h"
#include "core/error.h"

#include <string.h>

bool hr__json_is_absent(const struct hr_doc *doc)
{
    return doc == NULL || doc->kind == HR_DOC_NULL ||
           (doc->kind == HR_DOC_STRING && doc->as.string.length == 0);
}

bool hr__json_bool(const struct hr_doc *map, const char *key, bool fallback)
{
    const struct hr_doc *doc = hr__doc_get(map, key);

    return doc != NULL && doc->kind == HR_DOC_BOOL ? doc->as.boolean : fallback;
}

bool hr__json_is_type(const struct hr_doc *doc, const char *type)
{
    const char *text = hr__doc_get_string(doc, "type");

    return text != NULL && strcmp(text, type) == 0;
}

/* Files of old versions of the library have models without a type. */
static const char *type_of(const struct hr_doc *model)
{
    const char *type = hr__doc_get_string(model, "type");

    if (type != NULL)
        return type;
    if (hr__doc_get(model, "merges") != NULL)
        return "BPE";
    return hr__doc_get(model, "unk_id") != NULL ? "Unigram" : "WordPiece";
}

static enum hr_err
read_model(const struct hr_tokenizer_file *file, const struct hr_doc *doc,
           struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    const struct hr_doc *model = hr__doc_get(doc, "model");
    const char *type;

    if (model == NULL || model->kind != HR_DOC_MAP)
        return hr__fail_in(reterr, HR_ERR_FORMAT, file->name, doc->line, doc->column,
                           "expected a tokenizer.json with a map model.vocab");
    type = type_of(model);
    if (strcmp(type, "BPE") == 0)
        return hr__bpe_read_json(file, doc, ret_tokenizer, reterr);
    if (strcmp(type, "WordPiece") == 0)
        return hr__wordpiece_read_json(file, doc, ret_tokenizer, reterr);
    if (strcmp(type, "Unigram") == 0)
        return hr__unigram_read_json(file, doc, ret_tokenizer, reterr);
    return hr__fail_in(
        reterr, HR_ERR_UNSUPPORTED, file->name, model->line, model->column,
        "model.type %.60s is not supported, only BPE, WordPiece and Unigram", type);
}

enum hr_err
hr__tokenizer_read_json(const struct hr_tokenizer_file *file,
                        struct hr_tokenizer **ret_tokenizer, struct hr_error *reterr)
{
    struct hr_doc *doc;
    enum hr_err err;

    HR_TRY(hr__doc_parse(file->data, file->bytes, file->name, &doc, reterr));
    err = read_model(file, doc, ret_tokenizer, reterr);
    hr__doc_destroy(doc);
    return err;
}
