/*
 * op/param_test.c - parameter tables: every type, its borders, and the words of every
 * refusal.
 */
#include "op/param.h"

#include "core/alloc.h"
#include "tests/support/check.h"

struct all {
    int64_t size, memory, plain;
    double p, gain, limit;
    bool on;
    const char *path, *text, *field, *to;
    int filter, dtype;
    struct hr_ints crops;
    struct hr_floats mean;
    struct hr_names fields;
    struct hr_pairs rename;
};

static const char *const filters[] = {"nearest", "bilinear", "bicubic", NULL};
static const struct hr_param_alias means[] = {
    {"imagenet", "[0.485, 0.456, 0.406]"},
    {"half",     "0.5"                  },
    {NULL,       NULL                   }
};

static const struct hr_param table[] = {
    HR_P_INT(struct all, size, .required = true, HR_RANGE(1, 1000),
             .help = "side length"),
    HR_P_BYTES(struct all, memory, .fallback = "64MB", HR_MIN(0)),
    HR_P_INT(struct all, plain),
    HR_P_FLOAT(struct all, p, .fallback = "0.5", HR_RANGE(0, 1)),
    HR_P_FLOAT(struct all, gain, .fallback = "1", HR_MIN(0), .min_open = true),
    HR_P_FLOAT(struct all, limit, .fallback = "1", HR_RANGE(0, INFINITY)),
    HR_P_BOOL(struct all, on, .fallback = "true"),
    HR_P_PATH(struct all, path, .not_identity = true),
    HR_P_STRING(struct all, text, .fallback = "12"),
    HR_P_FIELD(struct all, field, .fallback = "image", .access = HR_ACCESS_UPDATE),
    HR_P_FIELD(struct all, to, .access = HR_ACCESS_WRITE),
    HR_P_ENUM(struct all, filter, .fallback = "bilinear", .names = filters),
    HR_P_DTYPE(struct all, dtype, .fallback = "float32"),
    HR_P_INTS(struct all, crops, .items_min = 1, .items_max = 2, HR_MIN(0)),
    HR_P_FLOATS(struct all, mean, .fallback = "imagenet", .aliases = means),
    HR_P_FIELDS(struct all, fields, .fallback = "[data, label]",
                .access = HR_ACCESS_READ),
    HR_P_MAP(struct all, rename),
};
#define TABLE table, sizeof table / sizeof table[0]

static struct hr_doc *kept; /* holds the strings of the last parse */

static enum hr_err parse(const char *text, struct all *params, struct hr_error *error)
{
    struct hr_doc *map = NULL, *canonical = NULL;
    enum hr_err code;

    CHECK_OK(hr__doc_parse(text, strlen(text), "t.yaml", &map, NULL));
    code = hr__params_parse(TABLE, map, params, sizeof *params, &canonical, error);
    hr__doc_destroy(map); /* params need only the canonical tree */
    if (code == HR_OK) {
        hr__doc_destroy(kept);
        kept = canonical;
    } else {
        CHECK(canonical == NULL);
    }
    return code;
}

static void refused(const char *text, enum hr_err code, const char *param, int column,
                    const char *words)
{
    struct hr_error error = {0};
    struct all params;
    struct all before;

    memset(&params, 7, sizeof params);
    memcpy(&before, &params, sizeof before);
    CHECK_ERR(code, parse(text, &params, &error));
    CHECK_EQ_STR(error.message, words);
    CHECK_EQ_STR(error.param, param);
    CHECK_EQ_INT(error.column, column);
    CHECK_EQ_INT(error.line, column > 0 ? 1 : 0);
    CHECK_BYTES(&params, &before, sizeof params);
}

TEST(defaults_are_parsed_like_values)
{
    struct all params;

    CHECK_OK(parse("size: 5", &params, NULL));
    CHECK_EQ_INT(params.size, 5);
    CHECK_EQ_INT(params.memory, 64000000);
    CHECK_EQ_INT(params.plain, 0);
    CHECK_NEAR(params.p, 0.5, 0);
    CHECK(params.on);
    CHECK(params.path == NULL);
    CHECK_EQ_STR(params.text, "12");
    CHECK_EQ_STR(params.field, "image");
    CHECK(params.to == NULL);
    CHECK_EQ_INT(params.filter, 1);
    CHECK_EQ_INT(params.dtype, HR_F32);
    CHECK_EQ_INT(params.crops.count, 0);
    CHECK_EQ_INT(params.mean.count, 3);
    CHECK_NEAR(params.mean.values[1], 0.456, 0);
    CHECK_EQ_INT(params.fields.count, 2);
    CHECK_EQ_STR(params.fields.values[1], "label");
    CHECK_EQ_INT(params.rename.count, 0);
}

TEST(values_of_every_type_are_taken)
{
    struct all params;

    CHECK_OK(
        parse("{\"size\": 7.0, \"memory\": \"1KiB\", \"p\": 1, \"limit\": 3, \"on\": "
              "false, \"path\": \"/x\", \"to\": \"out\", \"filter\": \"bicubic\", "
              "\"dtype\": \"uint8\", \"crops\": 3, \"mean\": \"half\", \"fields\": "
              "\"one\", \"rename\": {\"a\": \"b\"}, \"text\": null}",
              &params, NULL));
    CHECK_EQ_INT(params.size, 7);
    CHECK_EQ_INT(params.memory, 1024);
    CHECK_NEAR(params.p, 1, 0);
    CHECK(!params.on);
    CHECK_EQ_STR(params.path, "/x");
    CHECK_EQ_STR(params.to, "out");
    CHECK_EQ_STR(params.text, "12");
    CHECK_EQ_INT(params.filter, 2);
    CHECK_EQ_INT(params.dtype, HR_U8);
    CHECK_EQ_INT(params.crops.count, 1);
    CHECK_EQ_INT(params.crops.values[0], 3);
    CHECK_EQ_INT(params.mean.count, 1);
    CHECK_NEAR(params.mean.values[0], 0.5, 0);
    CHECK_EQ_STR(params.fields.values[0], "one");
    CHECK_EQ_STR(params.rename.keys[0], "a");
    CHECK_EQ_STR(params.rename.values[0], "b");
}

TEST(canonical_forms_of_equal_parameters_are_equal)
{
    static const char *const same[] = {
        "size: 5", "size: 5.0", "{\"size\": 5, \"p\": 0.5, \"filter\": \"bilinear\"}",
        "mean: [0.485, 0.456, 0.406]\nsize: 5\nmemory: 64000000\nfields: [data, label]"};
    struct all params;
    struct hr_str first, text;

    hr__str_init(&first);
    hr__str_init(&text);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        CHECK_OK(parse(same[i], &params, NULL));
        hr__str_clear(&text);
        hr__doc_print_json(kept, false, &text);
        if (i == 0)
            hr__str_add(&first, hr__str_text(&text));
        CHECK_EQ_STR(hr__str_text(&text), hr__str_text(&first));
    }
    CHECK(strstr(hr__str_text(&first), "\"crops\"") <
          strstr(hr__str_text(&first), "\"dtype\""));
    hr__str_finish(&first);
    hr__str_finish(&text);
}

TEST(unknown_names_are_refused_with_the_nearest)
{
    struct hr_error error = {0};
    struct all params;

    CHECK_ERR(HR_ERR_ARGUMENT, parse("size: 3\nfiltr: 4", &params, &error));
    CHECK_HAS(error.message, "parameter \"filtr\" is not known; did you mean \"filter\"? "
                             "It takes size, memory, plain, p, ");
    CHECK_EQ_INT(error.line, 2);
    CHECK_EQ_INT(error.column, 1);
    CHECK_EQ_STR(error.param, "filtr");
}

TEST(wrong_values_are_refused_in_words)
{
    refused("size: big", HR_ERR_TYPE, "size", 7,
            "parameter \"size\" wants an int, not the string \"big\"");
    refused("size: 1.5", HR_ERR_TYPE, "size", 7,
            "parameter \"size\" wants an int, not the float 1.5");
    refused("size: 1e300", HR_ERR_TYPE, "size", 7,
            "parameter \"size\" wants an int, not the float 1e+300");
    refused("size: 0", HR_ERR_RANGE, "size", 7,
            "parameter \"size\" must be 1 to 1000, not 0");
    refused("size: [1]", HR_ERR_TYPE, "size", 7,
            "parameter \"size\" wants an int, not a list");
}

/* The same beside the one that is required. */
static void refused_value(const char *pair, enum hr_err code, const char *param,
                          int column, const char *words)
{
    char text[256];

    snprintf(text, sizeof text, "%s\nsize: 1", pair);
    refused(text, code, param, column, words);
}

TEST(wrong_values_of_other_types_are_refused_in_words)
{
    refused_value("p: 1.5", HR_ERR_RANGE, "p", 4,
                  "parameter \"p\" must be 0 to 1, not 1.5");
    refused_value("gain: 0", HR_ERR_RANGE, "gain", 7,
                  "parameter \"gain\" must be more than 0, not 0");
    refused_value("gain: .inf", HR_ERR_RANGE, "gain", 7,
                  "parameter \"gain\" must be finite, not infinite");
    refused_value("limit: .nan", HR_ERR_RANGE, "limit", 8,
                  "parameter \"limit\" must be finite, not nan");
    refused_value("on: yes", HR_ERR_TYPE, "on", 5,
                  "parameter \"on\" wants a bool, not the string \"yes\"");
    refused_value("on: 1", HR_ERR_TYPE, "on", 5,
                  "parameter \"on\" wants a bool, not the int 1");
    refused_value("path: 2012", HR_ERR_TYPE, "path", 7,
                  "parameter \"path\" wants a path, not the int 2012; put it in quotes");
    refused_value("filter: bilinaer", HR_ERR_RANGE, "filter", 9,
                  "parameter \"filter\" must be one of nearest, bilinear, bicubic, not "
                  "\"bilinaer\"; did you mean \"bilinear\"?");
    refused_value("memory: lots", HR_ERR_TYPE, "memory", 9,
                  "parameter \"memory\" wants a count of bytes, not the string \"lots\"");
    refused_value("crops: [1, 2, 3]", HR_ERR_RANGE, "crops", 8,
                  "parameter \"crops\" must have 1 to 2 items, not 3");
    refused_value("crops: []", HR_ERR_RANGE, "crops", 8,
                  "parameter \"crops\" must have 1 to 2 items, not 0");
    refused_value("crops: [1, -2]", HR_ERR_RANGE, "crops", 12,
                  "parameter \"crops\" must be 1 to 2 items, each at least 0, not -2");
    refused_value("crops: [1, x]", HR_ERR_TYPE, "crops", 12,
                  "parameter \"crops\" wants a list of ints, not the string \"x\"");
    refused_value(
        "mean: imagnet", HR_ERR_TYPE, "mean", 7,
        "parameter \"mean\" wants a list of floats, not the string \"imagnet\"; "
        "did you mean \"imagenet\"?");
    refused_value("field: \"\"", HR_ERR_RANGE, "field", 8,
                  "parameter \"field\" must be a field name of 1 to 63 bytes, not 0");
    refused_value("text: \"a\\0b\"", HR_ERR_RANGE, "text", 7,
                  "parameter \"text\" must not hold a NUL byte");
    refused_value("rename: [a]", HR_ERR_TYPE, "rename", 9,
                  "parameter \"rename\" wants a map, not a list");
    refused_value("rename: {a: 1}", HR_ERR_TYPE, "rename", 13,
                  "parameter \"rename\" wants a text for \"a\", not the int 1");
}

TEST(infinity_passes_where_the_range_says_so)
{
    struct all params;

    CHECK_OK(parse("size: 1\nlimit: .inf", &params, NULL));
    CHECK(isinf(params.limit));
}

TEST(a_required_parameter_is_asked_for)
{
    struct hr_doc *canonical = NULL;
    struct hr_error error = {0};
    struct all params;

    CHECK_ERR(HR_ERR_ARGUMENT,
              hr__params_parse(TABLE, NULL, &params, sizeof params, &canonical, &error));
    CHECK_EQ_STR(error.message, "parameter \"size\" is required (side length)");
    CHECK_ERR(HR_ERR_ARGUMENT, parse("size: null", &params, &error));
}

TEST(parameters_must_be_a_map)
{
    struct hr_error error = {0};
    struct all params;

    CHECK_ERR(HR_ERR_TYPE, parse("[1]", &params, &error));
    CHECK_HAS(error.message, "must be a map {name: value}, not a list");
}

TEST(fields_are_bound_in_table_order_and_absent_ones_left_out)
{
    const char *names[8];
    enum hr_param_access access[8];
    struct all params;

    CHECK_OK(parse("size: 1\nfields: [a, b]", &params, NULL));
    CHECK_EQ_INT(hr__params_bindings(TABLE, &params, names, access, 8), 3);
    CHECK_EQ_STR(names[0], "image");
    CHECK_EQ_INT(access[0], HR_ACCESS_UPDATE);
    CHECK_EQ_STR(names[2], "b");
    CHECK_EQ_INT(access[2], HR_ACCESS_READ);
    CHECK_OK(parse("size: 1\nto: x", &params, NULL));
    CHECK_EQ_INT(hr__params_bindings(TABLE, &params, names, access, 1), 4);
}

TEST(ranges_read_like_sentences)
{
    static const char *const expected[] = {"1 to 1000", "at least 0", "", "0 to 1",
                                           "more than 0"};
    struct hr_str text;

    hr__str_init(&text);
    for (size_t i = 0; i < 5; i++) {
        hr__str_clear(&text);
        hr__param_range_text(&table[i], &text);
        CHECK_EQ_STR(hr__str_text(&text), expected[i]);
    }
    hr__str_clear(&text);
    hr__param_range_text(&table[13], &text);
    CHECK_EQ_STR(hr__str_text(&text), "1 to 2 items, each at least 0");
    hr__str_finish(&text);
}

TEST(flow_text_is_one_value_and_cannot_bring_keys)
{
    struct hr_error error = {0};
    struct hr_doc *doc = hr__param_flow("{a: [1, 2], b: c}", NULL);

    CHECK(doc != NULL);
    CHECK_EQ_INT(doc->kind, HR_DOC_MAP);
    hr__doc_destroy(doc);
    CHECK(hr__param_flow("1\nw: 2", &error) == NULL);
    CHECK_HAS(error.message, "is not one value");
}

TEST(a_failed_allocation_leaks_nothing_and_leaves_params)
{
    struct hr_doc *map, *canonical = NULL;
    const char *text = "{size: 7.0, mean: imagenet, fields: [a, b], rename: {a: b}}";
    bool done = false;

    map = hr__param_flow(text, NULL);
    for (uint64_t n = 1; !done; n++) {
        struct hr_error error = {0};
        struct all params = {.size = 99};
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, n);
        code = hr__params_parse(TABLE, map, &params, sizeof params, &canonical, &error);
        hr__fault_arm(0, 0);
        done = code == HR_OK;
        if (!done) {
            CHECK_ERR(HR_ERR_MEMORY, code);
            CHECK_ERR(HR_ERR_MEMORY, error.code);
            CHECK_EQ_INT(params.size, 99);
        }
    }
    hr__doc_destroy(canonical);
    hr__doc_destroy(map);
    hr__doc_destroy(kept);
    kept = NULL;
}
