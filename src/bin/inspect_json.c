/*
 * inspect_json.c - headrace inspect --json: what is known about a frozen graph before
 * data is read. Record values are not included.
 */
#include "graph_file.h"
#include "out.h"

static void json_params(struct json *json, const struct hr_graph *graph)
{
    struct hr_graph_param_info info;

    json_open(json, "params", '[');
    for (size_t i = 0; hr_graph_param_info(graph, i, &info) == HR_OK; i++) {
        json_open(json, NULL, '{');
        json_text(json, "name", info.name);
        json_text(json, "type", info.type);
        json_text(json, "default", info.fallback);
        if (info.choice_count > 0) {
            json_open(json, "choices", '[');
            for (size_t k = 0; k < info.choice_count; k++)
                json_text(json, NULL, info.choices[k]);
            json_close(json, ']');
        }
        json_text(json, "help", info.help);
        json_bool(json, "required", info.required);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_field(struct json *json, const struct hr_field_info *field)
{
    json_open(json, NULL, '{');
    json_text(json, "name", field->name);
    json_text(json, "dtype",
              field->dtype == HR_DTYPE_NONE ? "bytes" : hr_dtype_name(field->dtype));
    json_bool(json, "ragged", field->ragged);
    json_open(json, "dims", '[');
    for (int i = 0; i < field->ndim; i++)
        json_i64(json, NULL, field->dims[i]);
    json_close(json, ']');
    json_open(json, "dim_names", '[');
    for (int i = 0; i < field->ndim; i++)
        json_text(json, NULL, field->dim_names[i]);
    json_close(json, ']');
    json_open(json, "classes", '[');
    for (size_t i = 0; i < field->class_count; i++)
        json_text(json, NULL, field->classes[i]);
    json_close(json, ']');
    json_close(json, '}');
}

static void json_node(struct json *json, const struct hr_graph *graph, size_t at)
{
    struct hr_node_info node;
    struct hr_field_info field;

    if (hr_graph_node_info(graph, at, &node) != HR_OK)
        return;
    json_open(json, NULL, '{');
    json_text(json, "node", node.name);
    json_text(json, "op", node.op);
    json_text(json, "note", node.note);
    json_open(json, "inputs", '[');
    for (size_t i = 0; i < node.input_count; i++)
        json_u64(json, NULL, node.inputs[i].id);
    json_close(json, ']');
    json_open(json, "fields", '[');
    for (size_t i = 0; i < hr_graph_field_count(graph, at); i++)
        if (hr_graph_field_info(graph, at, i, &field) == HR_OK)
            json_field(json, &field);
    json_close(json, ']');
    json_close(json, '}');
}

void graph_file_print_json(const struct hr_graph *graph, const char *path)
{
    struct json json = {.out = stdout};
    char fingerprint[HR_FINGERPRINT_BYTES];
    int64_t records = hr_graph_record_count(graph);

    json_open(&json, NULL, '{');
    json_text(&json, "graph", path);
    if (hr_graph_fingerprint(graph, fingerprint) == HR_OK)
        json_text(&json, "fingerprint", fingerprint);
    if (records >= 0)
        json_i64(&json, "records", records);
    else
        json_text(&json, "records", NULL);
    json_params(&json, graph);
    json_open(&json, "nodes", '[');
    for (size_t i = 0; i < hr_graph_node_count(graph); i++)
        json_node(&json, graph, i);
    json_close(&json, ']');
    json_close(&json, '}');
    json_end(&json);
}
