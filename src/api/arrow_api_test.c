/*
 * api/arrow_api_test.c - arrays as another library would make them, as a source.
 */
#include "api/arrow_abi.h"
#include "headrace/arrow.h"
#include "headrace/engine.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

/* Two batches of three columns: int32, text, and lists of uint32. */
#define COLUMNS 3
static const int32_t numbers[] = {7, -1, 2, -3, 4};
static const int32_t offsets[] = {0, 1, 1, 4, 6, 9};
static const char text[] = "abbbccddd";
static const int32_t ends[] = {0, 2, 2, 3, 4, 4};
static const uint32_t items[] = {1, 4294967295u, 3, 4};
static const uint8_t valid[] = {0xff};
static const uint8_t one_null[] = {0xfe};
static const char *const formats[] = {"i", "u", "+l"};
static const char *const names[] = {"number", "text", "list"};

static int released, next_batch, nulls;
static const char *wrong_format;

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release != NULL)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    free(schema->children);
    schema->release = NULL;
}

static struct ArrowSchema *make_schema(const char *format, const char *name, int children)
{
    struct ArrowSchema *schema = calloc(1, sizeof *schema);

    schema->format = format;
    schema->name = name;
    schema->n_children = children;
    schema->children = calloc((size_t)children + 1, sizeof(void *));
    schema->release = release_schema;
    return schema;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct ArrowSchema *schema = make_schema("+s", "", COLUMNS);

    (void)stream;
    for (int i = 0; i < COLUMNS; i++)
        schema->children[i] = make_schema(formats[i], names[i], i == 2);
    schema->children[2]->children[0] = make_schema("I", "item", 0);
    if (wrong_format != NULL)
        schema->children[0]->format = wrong_format;
    *out = *schema;
    free(schema);
    return 0;
}

static void release_array(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
        free(array->children[i]);
    }
    released += array->n_children == COLUMNS;
    free(array->children);
    free((void *)(uintptr_t)array->buffers);
    array->release = NULL;
}

static struct ArrowArray *
make_array(int64_t offset, int64_t length, int children, const void *a, const void *b)
{
    struct ArrowArray *array = calloc(1, sizeof *array);

    array->length = length;
    array->offset = offset;
    array->null_count = -1; /* unknown */
    array->n_buffers = 3;
    array->n_children = children;
    array->buffers = calloc(3, sizeof(void *));
    array->buffers[0] = nulls && children == 0 ? one_null : valid;
    array->buffers[1] = a;
    array->buffers[2] = b;
    array->children = calloc((size_t)children + 1, sizeof(void *));
    array->release = release_array;
    return array;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    int64_t offset = next_batch == 0 ? 0 : 2, length = next_batch == 0 ? 2 : 3;
    struct ArrowArray *array;

    (void)stream;
    if (next_batch == 2)
        return 0;
    next_batch++;
    array = make_array(0, length, COLUMNS, NULL, NULL);
    array->children[0] = make_array(offset, length, 0, numbers, NULL);
    array->children[1] = make_array(offset, length, 0, offsets, text);
    array->children[2] = make_array(offset, length, 1, ends, NULL);
    array->children[2]->children[0] = make_array(0, 4, 0, items, NULL);
    *out = *array;
    free(array);
    return 0;
}

static int fail(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    (void)stream, (void)out;
    return 5;
}

static const char *last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the disk is gone";
}

static void release_stream(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

static struct ArrowArrayStream stream_of_two(void)
{
    released = next_batch = 0;
    return (struct ArrowArrayStream){get_schema, get_next, last_error, release_stream,
                                     NULL};
}

static struct hr_graph *graph_of(struct hr_arrow *arrow, const char *outputs)
{
    struct hr_graph *graph = hr_graph_create();
    struct hr_node node;
    struct hr_code code;
    char params[300];

    hr_arrow_code(arrow, &code);
    code.identity = "some rows";
    CHECK_OK(hr_graph_code(graph, "rows", &code, NULL));
    snprintf(params, sizeof params,
             "{\"code\": \"rows\", \"count\": %llu, \"outputs\": %s}",
             (unsigned long long)hr_arrow_count(arrow), outputs);
    CHECK_OK(hr_graph_add(graph, "code.source", NULL, NULL, 0, params, &node, NULL));
    CHECK_OK(hr_graph_add(graph, "batch.stack", NULL, &node, 1,
                          "{\"size\": 10, \"ragged\": true}", &node, NULL));
    return graph;
}

static const char outputs[] = "[\"n: int64\", \"t: text\", \"l: int64[-1]\"]";

/* The field of the only batch of a run. */
static void
read_field(struct hr_batch *batch, const char *name, struct hr_field_view *view)
{
    CHECK_OK(hr_batch_find(batch, name, view));
}

static void check_rows(const int64_t *rows, size_t count)
{
    struct ArrowArrayStream stream = stream_of_two();
    struct hr_iter_options options;
    struct hr_field_view view;
    struct hr_arrow *arrow;
    struct hr_graph *graph;
    struct hr_batch *batch;
    struct hr_iter *iter;
    size_t records = rows != NULL ? count : 5;

    CHECK_OK(hr_arrow_create(&stream, rows, count, &arrow, NULL));
    CHECK(stream.release == NULL);
    CHECK_EQ_INT(hr_arrow_count(arrow), records);
    graph = graph_of(arrow, outputs);
    hr_arrow_unref(arrow);
    CHECK_OK(hr_graph_freeze(graph, NULL));
    hr_iter_options_init(&options);
    CHECK_OK(hr_iter_open(graph, &options, &iter, NULL));
    CHECK_OK(hr_iter_next(iter, &batch, NULL));
    read_field(batch, "n", &view);
    CHECK_EQ_INT(view.dims[0], records);
    for (size_t i = 0; i < records; i++)
        CHECK_EQ_INT(((const int64_t *)view.data)[i],
                     numbers[rows != NULL ? rows[i] : (int64_t)i]);
    hr_batch_unref(batch);
    CHECK_EQ_INT(released, 0);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    CHECK_EQ_INT(released, 2);
}

TEST(rows_of_arrays_are_records)
{
    static const int64_t rows[] = {4, 0, 0, 3};

    check_rows(NULL, 0);
    check_rows(rows, 4);
}

static void
check_key(const struct hr_code *code, size_t output, uint64_t index, const char *expected)
{
    size_t bytes = 0, length = strlen(expected);
    char key[8];

    memset(key, '?', sizeof key);
    CHECK_OK(code->key(code->user, output, index, key, 2, &bytes, NULL));
    CHECK_EQ_INT(bytes, length);
    CHECK_EQ_INT(key[2], '?');
    CHECK_OK(code->key(code->user, output, index, key, sizeof key, &bytes, NULL));
    CHECK(memcmp(key, expected, length) == 0);
}

TEST(numbers_and_texts_are_keys)
{
    static const int64_t rows[] = {4, 0, 1, 3};
    struct ArrowArrayStream stream = stream_of_two();
    struct hr_arrow *arrow;
    struct hr_code code;
    char room[8];
    size_t bytes;

    CHECK_OK(hr_arrow_create(&stream, rows, 4, &arrow, NULL));
    hr_arrow_code(arrow, &code);
    hr_arrow_unref(arrow);
    CHECK_EQ_INT(code.keys, 3); /* not the lists */
    check_key(&code, 0, 0, "4");
    check_key(&code, 0, 3, "-3");
    check_key(&code, 1, 0, "ddd");
    check_key(&code, 1, 2, "");
    CHECK_ERR(HR_ERR_RANGE, code.key(code.user, 0, 4, room, 8, &bytes, NULL));
    code.release(code.user);
    CHECK_EQ_INT(released, 2);
}

static void check_refused(enum hr_err code, const int64_t *rows, const char *words)
{
    struct ArrowArrayStream stream = stream_of_two();
    struct hr_error error = {0};
    struct hr_arrow *arrow;

    CHECK_ERR(code, hr_arrow_create(&stream, rows, rows != NULL, &arrow, &error));
    CHECK_HAS(error.message, words);
    CHECK(stream.release == NULL);
    CHECK_EQ_INT(released, next_batch);
}

TEST(what_cannot_be_read_is_refused_and_released)
{
    static const int64_t outside[] = {5}, negative[] = {-1};
    struct ArrowArrayStream stream = stream_of_two();
    struct hr_error error = {0};
    struct hr_arrow *arrow;

    check_refused(HR_ERR_RANGE, outside, "there is no row 5 of 5");
    check_refused(HR_ERR_RANGE, negative, "there is no row -1");
    wrong_format = "+m";
    check_refused(HR_ERR_UNSUPPORTED, NULL, "\"number\" is a map");
    wrong_format = NULL;
    nulls = 1;
    check_refused(HR_ERR_UNSUPPORTED, NULL, "\"number\" has nulls");
    nulls = 0;
    stream.get_next = fail;
    CHECK_ERR(HR_ERR_IO, hr_arrow_create(&stream, NULL, 0, &arrow, &error));
    CHECK_HAS(error.message, "the disk is gone");
    CHECK_ERR(HR_ERR_ARGUMENT, hr_arrow_create(&stream, NULL, 0, &arrow, &error));
}
