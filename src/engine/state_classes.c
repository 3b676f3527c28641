/*
 * engine/state_classes.c - the names of classes in a state, so that resuming with others
 * is refused by naming the difference. The fingerprint alone would only say that there is
 * one.
 */
#include "engine/state.h"

#include <string.h>

#include "core/doc.h"
#include "core/error.h"
#include "graph/graph.h"

#define CLASSES_MAX 4096 /* of a field; more would make every state large */

static void print_field(const struct hr_graph_node *n, const struct hr_field *field,
                        bool first, struct hr_str *out)
{
    const struct hr_field_classes *classes = field->classes;

    hr__str_add(out, first ? ",\"classes\":[{\"node\":" : ",{\"node\":");
    hr__str_add_json(out, n->name, strlen(n->name));
    hr__str_add(out, ",\"field\":");
    hr__str_add_json(out, field->name, strlen(field->name));
    hr__str_add(out, ",\"names\":[");
    for (size_t i = 0; i < classes->count; i++) {
        hr__str_add(out, i > 0 ? "," : "");
        hr__str_add_json(out, classes->names[i], strlen(classes->names[i]));
    }
    hr__str_add(out, "]}");
}

/* Whether the classes are the node's, and not those of a field that comes in. */
static bool names_them(const struct hr_graph *graph, const struct hr_graph_node *n,
                       const struct hr_field_classes *classes)
{
    for (size_t i = 0; i < n->input_count; i++) {
        const struct hr_schema *schema = &graph->nodes[n->inputs[i]].schema;

        for (size_t k = 0; k < schema->count; k++)
            if (schema->fields[k].classes == classes)
                return false;
    }
    return true;
}

void hr__state_print_classes(const struct hr_graph *graph, struct hr_str *out)
{
    bool first = true;

    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];

        for (size_t k = 0; k < n->schema.count; k++) {
            const struct hr_field *field = &n->schema.fields[k];

            if (field->classes == NULL || field->classes->count > CLASSES_MAX ||
                !names_them(graph, n, field->classes))
                continue;
            print_field(n, field, first, out);
            first = false;
        }
    }
    hr__str_add(out, first ? "" : "]");
}

/* The classes that the graph has where those of `item` were, or NULL. */
static const struct hr_field_classes *
classes_here(const struct hr_graph *graph, const struct hr_doc *item)
{
    const char *node = hr__doc_get_string(item, "node");
    const char *field = hr__doc_get_string(item, "field");

    for (size_t i = 0; node != NULL && field != NULL && i < graph->count; i++) {
        const struct hr_schema *schema = &graph->nodes[i].schema;

        for (size_t k = 0; strcmp(graph->nodes[i].name, node) == 0 && k < schema->count;
             k++) {
            if (strcmp(schema->fields[k].name, field) == 0)
                return schema->fields[k].classes;
        }
    }
    return NULL;
}

static bool is_name(const struct hr_doc *doc, const char *name)
{
    return doc->kind == HR_DOC_STRING && strcmp(doc->as.string.text, name) == 0;
}

static enum hr_err
check_item(const struct hr_doc *item, const struct hr_field_classes *here,
           struct hr_error *reterr)
{
    const struct hr_doc *names = hr__doc_get(item, "names");
    size_t count, at = 0;

    if (here == NULL || names == NULL || names->kind != HR_DOC_LIST)
        return HR_OK;
    count = names->as.list.count;
    while (at < count && at < here->count &&
           is_name(names->as.list.items[at], here->names[at]))
        at++;
    if (at == count && at == here->count)
        return HR_OK;
    return hr__fail(
        reterr, HR_ERR_STATE,
        "the iterator state was saved with other classes of field \"%s\": class %zu "
        "%s%s%s "
        "then, and %s%s%s now (%zu classes then, %zu now). Give node '%s' the classes "
        "of then (classes: [...]), or begin again without a state",
        hr__doc_get_string(item, "field"), at, at < count ? "was \"" : "did not exist",
        at < count && names->as.list.items[at]->kind == HR_DOC_STRING
            ? names->as.list.items[at]->as.string.text
            : "",
        at < count ? "\"" : "", at < here->count ? "is \"" : "does not exist",
        at < here->count ? here->names[at] : "", at < here->count ? "\"" : "", count,
        here->count, hr__doc_get_string(item, "node"));
}

enum hr_err hr__state_check_classes(const struct hr_graph *graph,
                                    const struct hr_doc *classes, struct hr_error *reterr)
{
    if (classes == NULL || classes->kind != HR_DOC_LIST)
        return HR_OK;
    for (size_t i = 0; i < classes->as.list.count; i++) {
        const struct hr_doc *item = classes->as.list.items[i];

        HR_TRY(check_item(item, classes_here(graph, item), reterr));
    }
    return HR_OK;
}
