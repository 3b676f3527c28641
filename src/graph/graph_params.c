/*
 * graph/graph_params.c - the parameters that a graph file declares, and ${name}.
 *
 * A parameter has a type, and its value (the caller's, else the default) is converted to
 * it before any substitution, so that `-p size=abc` fails at the parameter and not at an
 * op that uses it. A value that is exactly "${name}" becomes the typed value; within a
 * longer text only scalars can be substituted.
 */
#include "graph/graph_private.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

static enum hr_err no_memory(struct hr_error *error)
{
    return hr__fail(error, HR_ERR_MEMORY, "out of memory");
}

static const char *const types[] = {"int",  "float", "bool",  "string", "path",
                                    "enum", "list",  "bytes", "dtype",  "any"};
static const char *const keys[] = {"type", "default", "help", "choices", "required"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_among(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0)
            return true;
    }
    return false;
}

/* Fails with the nearest known word, or with all of them. */
static enum hr_err
wrong_word(const struct hr_graph *graph, int line, int column, const char *what,
           const char *word, const char *const *words, size_t count,
           struct hr_error *reterr)
{
    const char *near = hr__nearest(word, words, count);
    struct hr_str all;

    hr__str_init(&all);
    for (size_t i = 0; near == NULL && i < count; i++)
        hr__str_addf(&all, "%s%s", i > 0 ? ", " : "", words[i]);
    hr__fail_at(reterr, HR_ERR_GRAPH, graph->file, line, column,
                "%s \"%.63s\" is not known; %s%s%s", what, word,
                near != NULL ? "did you mean \"" : "there are: ",
                near != NULL ? near : hr__str_text(&all), near != NULL ? "\"?" : "");
    hr__str_finish(&all);
    return HR_ERR_GRAPH;
}

static const char *type_of(const struct hr_doc *value)
{
    switch (value->kind) {
    case HR_DOC_INT:
        return "int";
    case HR_DOC_DOUBLE:
        return "float";
    case HR_DOC_BOOL:
        return "bool";
    case HR_DOC_STRING:
        return "string";
    case HR_DOC_LIST:
        return "list";
    default:
        return "any";
    }
}

static bool is_bytes(const struct hr_doc *value)
{
    uint64_t bytes;

    if (value->kind == HR_DOC_STRING)
        return hr__bytes_parse(value->as.string.text, &bytes) && bytes <= INT64_MAX;
    return value->kind == HR_DOC_INT && value->as.integer >= 0;
}

/* Converts a value to its declared type in place; false if it has another type. */
static bool fit(struct hr_doc *value, const char *type)
{
    if (value->kind == HR_DOC_NULL || strcmp(type, "any") == 0)
        return true;
    if (strcmp(type, "int") == 0 && value->kind == HR_DOC_DOUBLE &&
        fabs(value->as.number) < 9e18 && value->as.number == floor(value->as.number)) {
        value->kind = HR_DOC_INT;
        value->as.integer = (int64_t)value->as.number;
    }
    if (strcmp(type, "float") == 0 && value->kind == HR_DOC_INT) {
        value->kind = HR_DOC_DOUBLE;
        value->as.number = (double)value->as.integer;
    }
    if (strcmp(type, "path") == 0)
        return value->kind == HR_DOC_STRING;
    if (strcmp(type, "dtype") == 0)
        return value->kind == HR_DOC_STRING &&
               hr_dtype_from_name(value->as.string.text) != HR_DTYPE_NONE;
    if (strcmp(type, "bytes") == 0)
        return is_bytes(value);
    if (strcmp(type, "enum") == 0)
        return value->kind != HR_DOC_LIST && value->kind != HR_DOC_MAP;
    return strcmp(type, type_of(value)) == 0;
}

static bool is_chosen(const struct hr_doc *choices, const struct hr_doc *value)
{
    if (choices == NULL || value->kind == HR_DOC_NULL)
        return true;
    for (size_t i = 0; i < choices->as.list.count; i++) {
        if (hr__doc_equal(choices->as.list.items[i], value))
            return true;
    }
    return false;
}

/* Appends a scalar as text; false for lists, maps and null. */
static bool scalar_text(const struct hr_doc *value, struct hr_str *out)
{
    switch (value->kind) {
    case HR_DOC_STRING:
        hr__str_add_bytes(out, value->as.string.text, value->as.string.length);
        return true;
    case HR_DOC_INT:
        hr__str_addf(out, "%lld", (long long)value->as.integer);
        return true;
    case HR_DOC_DOUBLE:
        hr__str_add_double(out, value->as.number);
        return true;
    case HR_DOC_BOOL:
        hr__str_add(out, value->as.boolean ? "true" : "false");
        return true;
    default:
        return false;
    }
}

/* Parses a value that the caller gave as text. Unquoted strings are taken literally. */
static struct hr_doc *
parse_override(const char *text, const char *type, struct hr_error *reterr)
{
    size_t length = strlen(text);
    bool quoted =
        length >= 2 && (text[0] == '"' || text[0] == '\'') && text[length - 1] == text[0];
    bool word = strcmp(type, "string") == 0 || strcmp(type, "path") == 0 ||
                strcmp(type, "dtype") == 0;
    struct hr_doc *value;

    if (quoted || (!word && (text[0] == '[' || text[0] == '{')))
        return hr__param_flow(text, reterr);
    value = word ? hr__doc_string(text) : hr__doc_scalar(text, length);
    if (value == NULL)
        no_memory(reterr);
    return value;
}

static enum hr_err
check_value(const struct hr_graph *graph, const struct hr_graph_declared *d,
            const struct hr_doc *choices, struct hr_doc *value, int line, int column,
            struct hr_error *reterr)
{
    struct hr_str all;
    char text[128];
    bool fits = fit(value, d->type);

    assert(d->type != NULL);
    if (fits && is_chosen(choices, value))
        return HR_OK;
    if (reterr != NULL)
        snprintf(reterr->param, sizeof reterr->param, "%s", d->name);
    if (!fits)
        return hr__fail_at(reterr, HR_ERR_TYPE, graph->file, line, column,
                           "parameter \"%s\" is declared as %s, and this is %s", d->name,
                           d->type, hr__param_value_text(value, text, sizeof text));
    assert(choices != NULL);
    hr__str_init(&all);
    for (size_t i = 0; i < choices->as.list.count; i++) {
        hr__str_add(&all, i > 0 ? ", " : "");
        scalar_text(choices->as.list.items[i], &all);
    }
    hr__fail_at(reterr, HR_ERR_RANGE, graph->file, line, column,
                "parameter \"%s\" must be one of %s, not %s", d->name, hr__str_text(&all),
                hr__param_value_text(value, text, sizeof text));
    hr__str_finish(&all);
    return HR_ERR_RANGE;
}

/* Reads the keys of {type: ..., default: ..., ...}. */
static enum hr_err read_keys(const struct hr_graph *graph, struct hr_graph_declared *d,
                             const struct hr_doc *map, struct hr_error *reterr)
{
    const struct hr_doc *type = hr__doc_get(map, "type");
    const struct hr_doc *choices = hr__doc_get(map, "choices");
    const struct hr_doc *required = hr__doc_get(map, "required");
    const struct hr_doc *help = hr__doc_get(map, "help");
    const struct hr_doc *fallback = hr__doc_get(map, "default");
    static const struct {
        const char *key;
        enum hr_doc_kind kind;
    } kinds[] = {
        {"type",     HR_DOC_STRING},
        {"help",     HR_DOC_STRING},
        {"choices",  HR_DOC_LIST  },
        {"required", HR_DOC_BOOL  }
    };

    for (size_t i = 0; i < map->as.map.count; i++) {
        const struct hr_doc_pair *pair = &map->as.map.pairs[i];

        if (!is_among(pair->key, keys, COUNT(keys)))
            return wrong_word(graph, pair->line, pair->column, "key", pair->key, keys,
                              COUNT(keys), reterr);
        for (size_t k = 0; k < COUNT(kinds); k++) {
            if (strcmp(kinds[k].key, pair->key) == 0 &&
                pair->value->kind != kinds[k].kind)
                return hr__fail_at(reterr, HR_ERR_TYPE, graph->file, pair->line,
                                   pair->column,
                                   "\"%s\" of parameter \"%s\" must be a %s", pair->key,
                                   d->name, hr__doc_kind_name(kinds[k].kind));
        }
    }
    if (type != NULL && !is_among(type->as.string.text, types, COUNT(types)))
        return wrong_word(graph, type->line, type->column, "type", type->as.string.text,
                          types, COUNT(types), reterr);
    d->type = type != NULL       ? type->as.string.text
              : choices != NULL  ? "enum"
              : fallback != NULL ? type_of(fallback)
                                 : "string";
    d->help = help != NULL ? help->as.string.text : NULL;
    d->required = required != NULL ? required->as.boolean : fallback == NULL;
    return HR_OK;
}

static enum hr_err keep_fallback(struct hr_graph_declared *d, const struct hr_doc *value,
                                 struct hr_error *reterr)
{
    struct hr_str text;

    if (value->kind == HR_DOC_NULL)
        return HR_OK;
    hr__str_init(&text);
    if (!scalar_text(value, &text))
        hr__doc_print_json(value, false, &text);
    d->fallback = hr__str_take(&text);
    return d->fallback != NULL ? HR_OK : no_memory(reterr);
}

static enum hr_err keep_choices(struct hr_graph_declared *d, const struct hr_doc *choices,
                                struct hr_error *reterr)
{
    size_t count = choices != NULL ? choices->as.list.count : 0;

    if (count == 0)
        return HR_OK;
    d->choices = hr__calloc(count, sizeof *d->choices);
    if (d->choices == NULL)
        return no_memory(reterr);
    for (; d->choice_count < count; d->choice_count++) {
        struct hr_str text;

        hr__str_init(&text);
        if (!scalar_text(choices->as.list.items[d->choice_count], &text))
            hr__doc_print_json(choices->as.list.items[d->choice_count], false, &text);
        d->choices[d->choice_count] = hr__str_take(&text);
        if (d->choices[d->choice_count] == NULL)
            return no_memory(reterr);
    }
    return HR_OK;
}

/* The value given last for this name, or NULL. */
static const char *
given_text(const struct hr_graph_param *given, size_t count, const char *name)
{
    while (count > 0) {
        count--;
        if (strcmp(given[count].name, name) == 0)
            return given[count].value;
    }
    return NULL;
}

static enum hr_err
declare_one(struct hr_graph *graph, struct hr_graph_declared *d,
            const struct hr_doc_pair *pair, const char *text, struct hr_error *reterr)
{
    const struct hr_doc *fallback = pair->value, *choices = NULL;
    bool map = pair->value->kind == HR_DOC_MAP;

    if (map) {
        HR_TRY(read_keys(graph, d, pair->value, reterr));
        fallback = hr__doc_get(pair->value, "default");
        choices = hr__doc_get(pair->value, "choices");
        HR_TRY(keep_choices(d, choices, reterr));
    } else {
        d->type = type_of(pair->value);
    }
    d->value = fallback != NULL ? hr__doc_copy(fallback) : hr__doc_new(HR_DOC_NULL);
    if (d->value == NULL)
        return no_memory(reterr);
    HR_TRY(check_value(graph, d, choices, d->value,
                       fallback != NULL ? fallback->line : pair->line,
                       fallback != NULL ? fallback->column : pair->column, reterr));
    HR_TRY(keep_fallback(d, d->value, reterr));
    if (text != NULL) {
        struct hr_doc *value = parse_override(text, d->type, reterr);

        if (value == NULL) {
            if (reterr != NULL)
                snprintf(reterr->param, sizeof reterr->param, "%s", d->name);
            hr__error_prefix(reterr, "parameter \"%s\"", d->name);
            return reterr != NULL ? reterr->code : HR_ERR_FORMAT;
        }
        hr__doc_destroy(d->value);
        d->value = value;
        d->overridden = true;
        return check_value(graph, d, choices, value, 0, 0, reterr);
    }
    if (!d->required)
        return HR_OK;
    if (reterr != NULL)
        snprintf(reterr->param, sizeof reterr->param, "%s", d->name);
    return hr__fail_at(reterr, HR_ERR_ARGUMENT, graph->file, pair->line, pair->column,
                       "parameter \"%s\" needs a value%s%s%s: give it with -p %s=...",
                       d->name, d->help != NULL ? " (" : "",
                       d->help != NULL ? d->help : "", d->help != NULL ? ")" : "",
                       d->name);
}

static enum hr_err check_given(const struct hr_graph *graph, const struct hr_doc *params,
                               const struct hr_graph_param *given, size_t given_count,
                               struct hr_error *reterr)
{
    const char *names[64];
    size_t count = 0;

    for (; params != NULL && count < params->as.map.count && count < COUNT(names);
         count++)
        names[count] = params->as.map.pairs[count].key;
    for (size_t i = 0; i < given_count; i++) {
        if (params != NULL && hr__doc_get(params, given[i].name) != NULL)
            continue;
        if (reterr != NULL)
            snprintf(reterr->param, sizeof reterr->param, "%s", given[i].name);
        if (count == 0)
            return hr__fail_at(reterr, HR_ERR_ARGUMENT, graph->file, 0, 0,
                               "the file declares no parameters, so \"%.63s\" cannot be "
                               "set",
                               given[i].name);
        wrong_word(graph, 0, 0, "parameter", given[i].name, names, count, reterr);
        if (reterr != NULL)
            reterr->code = HR_ERR_ARGUMENT;
        return HR_ERR_ARGUMENT;
    }
    return HR_OK;
}

enum hr_err hr__graph_declare(struct hr_graph *graph, const struct hr_doc *params,
                              const struct hr_graph_param *given, size_t given_count,
                              struct hr_error *reterr)
{
    struct hr_graph_private *private = graph->private;

    if (params != NULL && params->kind == HR_DOC_NULL)
        params = NULL;
    if (params != NULL && params->kind != HR_DOC_MAP)
        return hr__fail_at(reterr, HR_ERR_TYPE, graph->file, params->line, params->column,
                           "\"params\" must be a map of names, not a %s",
                           hr__doc_kind_name(params->kind));
    assert(private->declared == NULL);
    HR_TRY(check_given(graph, params, given, given_count, reterr));
    if (params == NULL || params->as.map.count == 0)
        return HR_OK;
    private->declared = hr__calloc(params->as.map.count, sizeof *private->declared);
    if (private->declared == NULL)
        return no_memory(reterr);
    for (size_t i = 0; i < params->as.map.count; i++) {
        const struct hr_doc_pair *pair = &params->as.map.pairs[i];
        struct hr_graph_declared *d = &private->declared[private->declared_count++];

        d->name = pair->key;
        HR_TRY(declare_one(graph, d, pair, given_text(given, given_count, pair->key),
                           reterr));
    }
    return HR_OK;
}

void hr__graph_declared_finish(struct hr_graph_private *private)
{
    for (size_t i = 0; i < private->declared_count; i++) {
        for (size_t k = 0; k < private->declared[i].choice_count; k++)
            hr__free(private->declared[i].choices[k]);
        hr__free(private->declared[i].choices);
        hr__free(private->declared[i].fallback);
        hr__doc_destroy(private->declared[i].value);
    }
    hr__free(private->declared);
}

enum hr_err hr__graph_param_info(const struct hr_graph *graph, size_t at,
                                 struct hr_graph_param_info *ret_info)
{
    const struct hr_graph_declared *d;

    if (at >= graph->private->declared_count)
        return HR_ERR_RANGE;
    d = &graph->private->declared[at];
    *ret_info = (struct hr_graph_param_info){
        .name = d->name,
        .type = d->type,
        .fallback = d->fallback,
        .help = d->help,
        .required = d->required,
        .choices = (const char *const *)d->choices,
        .choice_count = d->choice_count,
    };
    return HR_OK;
}

/* ---- ${name} ---- */

/* The declared parameter whose name is the `length` bytes at `text`. */
static enum hr_err
find_declared(const struct hr_graph *graph, const struct hr_doc *at, const char *text,
              size_t length, const struct hr_graph_declared **ret,
              struct hr_error *reterr)
{
    const struct hr_graph_private *private = graph->private;
    const char *names[64];
    char name[64];
    size_t count = 0;

    for (size_t i = 0; i < private->declared_count; i++) {
        const char *declared = private->declared[i].name;

        if (strlen(declared) == length && memcmp(declared, text, length) == 0) {
            *ret = &private->declared[i];
            return HR_OK;
        }
        if (count < COUNT(names))
            names[count++] = declared;
    }
    snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), text);
    if (count == 0)
        return hr__fail_at(reterr, HR_ERR_GRAPH, graph->file, at->line, at->column,
                           "\"${%s}\": the file declares no parameters", name);
    return wrong_word(graph, at->line, at->column, "parameter", name, names, count,
                      reterr);
}

static enum hr_err replace_in_text(const struct hr_graph *graph, const struct hr_doc *at,
                                   struct hr_str *out, struct hr_error *reterr)
{
    const char *text = at->as.string.text, *end = text + at->as.string.length;

    while (text < end) {
        const struct hr_graph_declared *d;
        const char *close;

        if (end - text >= 3 && memcmp(text, "$${", 3) == 0) {
            hr__str_add(out, "${");
            text += 3;
            continue;
        }
        if (end - text < 2 || memcmp(text, "${", 2) != 0) {
            hr__str_add_bytes(out, text++, 1);
            continue;
        }
        close = memchr(text, '}', (size_t)(end - text));
        if (close == NULL)
            return hr__fail_at(reterr, HR_ERR_GRAPH, graph->file, at->line, at->column,
                               "\"${\" without \"}\"; write \"$${\" for the characters "
                               "themselves");
        HR_TRY(
            find_declared(graph, at, text + 2, (size_t)(close - text - 2), &d, reterr));
        if (!scalar_text(d->value, out))
            return hr__fail_at(reterr, HR_ERR_GRAPH, graph->file, at->line, at->column,
                               "parameter \"%s\" is a %s and cannot be part of a text",
                               d->name, hr__doc_kind_name(d->value->kind));
        text = close + 1;
    }
    return HR_OK;
}

static void set_place(struct hr_doc *doc, const struct hr_doc *like)
{
    doc->line = like->line;
    doc->column = like->column;
    for (size_t i = 0; doc->kind == HR_DOC_LIST && i < doc->as.list.count; i++)
        set_place(doc->as.list.items[i], like);
    for (size_t i = 0; doc->kind == HR_DOC_MAP && i < doc->as.map.count; i++)
        set_place(doc->as.map.pairs[i].value, like);
}

static enum hr_err
substitute_text(const struct hr_graph *graph, const struct hr_doc *written,
                struct hr_doc **ret, struct hr_error *reterr)
{
    const char *text = written->as.string.text;
    size_t length = written->as.string.length;
    struct hr_doc *made = NULL;
    struct hr_str out;
    enum hr_err code;

    if (length > 3 && memcmp(text, "${", 2) == 0 &&
        memchr(text, '}', length) == text + length - 1) {
        const struct hr_graph_declared *d;

        HR_TRY(find_declared(graph, written, text + 2, length - 3, &d, reterr));
        made = hr__doc_copy(d->value);
    } else {
        hr__str_init(&out);
        code = replace_in_text(graph, written, &out, reterr);
        if (code == HR_OK && hr__str_ok(&out))
            made = hr__doc_string_n(hr__str_text(&out), out.length);
        hr__str_finish(&out);
        if (code != HR_OK)
            return code;
    }
    if (made == NULL)
        return no_memory(reterr);
    set_place(made, written);
    *ret = made;
    return HR_OK;
}

/* Substitutes in place; on failure the caller destroys `doc`. */
static enum hr_err substitute_inside(const struct hr_graph *graph, struct hr_doc **doc,
                                     struct hr_error *reterr)
{
    struct hr_doc *made = NULL;

    switch ((*doc)->kind) {
    case HR_DOC_STRING:
        if (memchr((*doc)->as.string.text, '$', (*doc)->as.string.length + 1) == NULL)
            return HR_OK;
        HR_TRY(substitute_text(graph, *doc, &made, reterr));
        hr__doc_destroy(*doc);
        *doc = made;
        return HR_OK;
    case HR_DOC_LIST:
        for (size_t i = 0; i < (*doc)->as.list.count; i++)
            HR_TRY(substitute_inside(graph, &(*doc)->as.list.items[i], reterr));
        return HR_OK;
    case HR_DOC_MAP:
        for (size_t i = 0; i < (*doc)->as.map.count; i++)
            HR_TRY(substitute_inside(graph, &(*doc)->as.map.pairs[i].value, reterr));
        return HR_OK;
    default:
        return HR_OK;
    }
}

enum hr_err
hr__graph_substitute(const struct hr_graph *graph, const struct hr_doc *written,
                     struct hr_doc **ret_doc, struct hr_error *reterr)
{
    struct hr_doc *made = hr__doc_copy(written);
    enum hr_err code;

    if (made == NULL)
        return no_memory(reterr);
    code = substitute_inside(graph, &made, reterr);
    if (code != HR_OK)
        hr__doc_destroy(made);
    else
        *ret_doc = made;
    return code;
}
