/*
 * graph/graph_ops_test.c - graphs of the real operators: they freeze, have fingerprints,
 * and leak nothing.
 */
#include "graph/graph.h"

#include "core/alloc.h"
#include "tests/support/check.h"

#include <sys/stat.h>

static const char example[] =
    "headrace: 1\n"
    "params:\n"
    "  data: {type: path, help: \"a folder of photos, one subfolder per label\"}\n"
    "  size: {type: int, default: 224}\n"
    "pipeline:\n"
    "  - source.files: {path: \"${data}\", labels: folder}\n"
    "  - order.shuffle: {}\n"
    "  - image.decode: {}\n"
    "  - image.random_resized_crop: {size: \"${size}\"}\n"
    "  - image.flip: {p: 0.5}\n"
    "  - image.normalize: {mean: imagenet, std: imagenet}\n"
    "  - tensor.layout: {order: chw, keep_position: true}\n"
    "  - batch.stack: {size: 256}\n";

/* Two class folders with two files each; names are all that freezing looks at. */
static const char *photos(void)
{
    static char root[400];
    char path[512];

    if (root[0] != '\0')
        return root;
    snprintf(root, sizeof root, "%s/photos", check_temp_dir());
    mkdir(root, 0777);
    for (int i = 0; i < 4; i++) {
        FILE *file;

        snprintf(path, sizeof path, "%s/%s", root, i < 2 ? "cat" : "dog");
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/%s/%d.jpg", root, i < 2 ? "cat" : "dog", i);
        file = fopen(path, "w");
        CHECK(file != NULL);
        fputs("no photo", file);
        fclose(file);
    }
    return root;
}

static enum hr_err
load(const char *text, const char *size, struct hr_graph **ret, struct hr_error *error)
{
    const struct hr_graph_param params[] = {
        {"data", photos()},
        {"size", size    }
    };

    return hr_graph_parse(text, strlen(text), "photos.yaml", params, 2, ret, error);
}

TEST(the_example_of_the_design_freezes)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    struct hr_field_info field;
    size_t last;

    CHECK_OK(load(example, "96", &graph, &error));
    if (hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK_EQ_INT(hr_graph_record_count(graph), 4);
    last = hr_graph_node_count(graph) - 1;
    for (size_t i = 0; i < hr_graph_field_count(graph, last); i++) {
        CHECK_OK(hr_graph_field_info(graph, last, i, &field));
        if (strcmp(field.name, "image") == 0)
            break;
    }
    CHECK_EQ_STR(field.name, "image");
    CHECK_EQ_INT(field.dtype, HR_F32);
    CHECK_EQ_INT(field.ndim, 4);
    CHECK_EQ_INT(field.dims[1], 3);
    CHECK_EQ_INT(field.dims[2], 96);
    hr_graph_unref(graph);
}

TEST(the_same_graph_built_by_calls_has_the_same_fingerprint)
{
    static const char *const ops[][2] = {
        {"source.files",              NULL                                                     },
        {"order.shuffle",             NULL                                                     },
        {"image.decode",              NULL                                                     },
        {"image.random_resized_crop", "size: 96"                                               },
        {"image.flip",                NULL                                                     },
        {"image.normalize",           "mean: [0.485, 0.456, 0.406]\nstd: [0.229, 0.224, 0.225]"},
        {"tensor.layout",             "{\"order\": \"chw\"}"                                   },
        {"batch.stack",               "size: 256"                                              },
    };
    char a[HR_FINGERPRINT_BYTES], b[HR_FINGERPRINT_BYTES], source[512];
    struct hr_graph *graph = NULL, *built = hr_graph_create();
    struct hr_error error = {0};
    struct hr_node node = {0};

    CHECK_OK(load(example, "96", &graph, &error));
    CHECK_OK(hr_graph_freeze(graph, &error));
    CHECK_OK(hr_graph_fingerprint(graph, a));
    hr_graph_unref(graph);
    snprintf(source, sizeof source, "{path: '%s', labels: folder}", photos());
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (hr_graph_add(built, ops[i][0], NULL, &node, i > 0, i > 0 ? ops[i][1] : source,
                         &node, &error) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s", error.message);
    }
    CHECK_OK(hr_graph_freeze(built, &error));
    CHECK_OK(hr_graph_fingerprint(built, b));
    CHECK_EQ_STR(a, b);
    hr_graph_unref(built);
}

static void wrong(const char *without, const char *words)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    char text[sizeof example];
    const char *cut = strstr(example, without);
    size_t head = (size_t)(cut - example);

    snprintf(text, sizeof text, "%.*s%s", (int)head, example, strchr(cut, '\n') + 1);
    CHECK_OK(load(text, "96", &graph, &error));
    CHECK(hr_graph_freeze(graph, &error) != HR_OK);
    CHECK_HAS(error.message, words);
    hr_graph_unref(graph);
}

TEST(a_forgotten_decode_is_named)
{
    wrong("  - image.decode", "photos.yaml:8:5: node 'image.random_resized_crop' "
                              "(image.random_resized_crop): there is no field \"image\"; "
                              "fields here: data, label; put image.decode before it");
}

TEST(a_failed_allocation_anywhere_with_real_operators_leaks_nothing)
{
    bool done = false;

    photos();
    for (uint64_t n = 1; !done; n++) {
        struct hr_graph *graph = NULL;
        struct hr_error error = {0};
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, n);
        code = load(example, "96", &graph, &error);
        if (code == HR_OK)
            code = hr_graph_freeze(graph, &error);
        hr__fault_arm(0, 0);
        done = code == HR_OK;
        if (!done && code != HR_ERR_MEMORY)
            check_failed(__FILE__, __LINE__, "allocation %d: %s: %s", (int)n,
                         hr_err_name(code), error.message);
        hr_graph_unref(graph);
    }
}
