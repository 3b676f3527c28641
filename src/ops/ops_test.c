/*
 * ops/ops_test.c - every op's description; sources, orders, fields, filters.
 */
#include "op/ragged.h"
#include "ops/ops_test_util.h"

#include <pthread.h>

TEST(every_op_is_described)
{
    size_t count;
    const struct hr_op *const *ops = hr__op_list(&count);

    CHECK(count > 30);
    for (size_t i = 0; i < count; i++) {
        const struct hr_op *op = ops[i];
        CHECK(i == 0 || strcmp(ops[i - 1]->name, op->name) < 0);
        CHECK(op->summary != NULL && op->summary[0] != '\0' && op->version > 0);
        CHECK(op->infer != NULL);
        CHECK((op->open == NULL && op->prepare == NULL) == (op->close == NULL));
        CHECK(!(op->traits & HR_TRAIT_PURE) || !(op->traits & HR_TRAIT_RANDOM));
        CHECK(!(op->traits & HR_TRAIT_AFFINE) || (op->traits & HR_TRAIT_POINTWISE));
        CHECK((op->kind == HR_OP_ORDER) == (op->order.map != NULL));
        CHECK(op->kind != HR_OP_SEQUENCE || op->sequence.add != NULL);
        CHECK(op->sequence.add == NULL ||
              (op->sequence.begin != NULL && op->sequence.end != NULL));
        CHECK((op->kind == HR_OP_EXPAND && op->code == NULL) ==
              (op->expand.child != NULL));
        CHECK((op->kind == HR_OP_SOURCE) == (op->source.count != NULL));
        for (size_t k = 0; k < op->param_count; k++) {
            const struct hr_param *p = &op->params[k];
            CHECK(p->help != NULL && p->help[strlen(p->help) - 1] != '.');
            CHECK(!p->required || p->fallback == NULL);
        }
    }
}

TEST(defaults_of_every_op_parse)
{
    size_t count;
    const struct hr_op *const *ops = hr__op_list(&count);

    for (size_t i = 0; i < count; i++) {
        void *params = calloc(1, ops[i]->params_size + 1);
        bool required = false;
        struct hr_doc *canonical = NULL;
        struct hr_error error = {0};
        for (size_t k = 0; k < ops[i]->param_count; k++)
            required |= ops[i]->params[k].required;
        if (!required)
            CHECK_OK(hr__params_parse(ops[i]->params, ops[i]->param_count, NULL, params,
                                      ops[i]->params_size, &canonical, &error));
        hr__doc_destroy(canonical);
        free(params);
    }
}

static struct bench b;

static int64_t number(const char *field)
{
    return *(const int64_t *)bench_value(&b, field)->data;
}

TEST(range_counts)
{
    bench_init(&b);
    b.id.index = 3;
    CHECK_OK(bench_op(&b, "source.range", "{n: 10, start: 5, step: -2}"));
    CHECK_EQ_INT(number("value"), -1);
    CHECK_EQ_INT(b.schema.records, 10);
    bench_finish(&b);
}

static const char *temp_file(const char *name, const void *data, size_t bytes)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", check_temp_dir(), name);
    CHECK_OK(hr__file_replace(path, data, bytes, NULL));
    return path;
}

/* Two pictures of 2 x 2 and their labels. */
static const unsigned char pictures[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0,  2,
                                         0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 70, 8};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 200, 3};

TEST(idx_gives_pictures_and_labels)
{
    char path[512], params[1200];
    struct hr_value *image;

    bench_init(&b);
    snprintf(path, sizeof path, "%s",
             temp_file("pictures.idx", pictures, sizeof pictures));
    snprintf(params, sizeof params, "{path: %s, labels: %s}", path,
             temp_file("labels.idx", labels, sizeof labels));
    b.id.index = 1;
    CHECK_OK(bench_op(&b, "source.idx", params));
    image = bench_value(&b, "image");
    CHECK_EQ_INT(image->ndim, 3);
    CHECK_EQ_INT(image->dims[2], 1);
    CHECK_BYTES(image->data, pictures + 20, 4);
    CHECK_EQ_INT(number("label"), 3);
    CHECK_EQ_INT(b.schema.records, 2);
    CHECK_EQ_INT(b.schema.fields[0].meaning, HR_MEANING_IMAGE_U8);
    bench_clear(&b);
    b.id.index = 0;
    CHECK_OK(bench_op(&b, "source.idx", params));
    CHECK_EQ_INT(number("label"), 200);
    bench_clear(&b);
    snprintf(params, sizeof params, "{path: %s}", path);
    CHECK_OK(bench_op(&b, "source.idx", params));
    CHECK_EQ_INT(b.schema.count, 1);
    bench_clear(&b);
    b.id.index = 2;
    CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "source.idx", params));
    bench_clear(&b);
    snprintf(params, sizeof params, "{path: %s, labels: %s}", path, path);
    CHECK_ERR(HR_ERR_SHAPE, bench_op(&b, "source.idx", params));
    snprintf(params, sizeof params, "{path: %s, labels: %s}", path,
             temp_file("fewer.idx", "\0\0\x08\1\0\0\0\1\7", 9));
    CHECK_ERR(HR_ERR_SHAPE, bench_op(&b, "source.idx", params));
    bench_finish(&b);
}

static void line_is(const char *path, const char *more, uint64_t index, const char *line)
{
    char params[600];
    struct hr_value *value;

    snprintf(params, sizeof params, "{path: %s%s}", path, more);
    bench_clear(&b);
    b.id.index = index;
    CHECK_OK(bench_op(&b, "source.list", params));
    value = bench_value(&b, "text");
    CHECK_EQ_INT(value->bytes, strlen(line));
    CHECK_BYTES(value->data, line, strlen(line));
}

TEST(list_gives_lines_without_their_endings)
{
    const char *path;
    char many[20000];
    size_t length = 0;

    bench_init(&b);
    path = temp_file("lines.txt", "one\r\n\ntwo\nlast", 14);
    line_is(path, "", 0, "one");
    line_is(path, "", 1, "");
    line_is(path, "", 3, "last");
    line_is(path, ", skip_empty: true", 1, "two");
    bench_clear(&b);
    b.id.index = 4;
    {
        char params[600];
        snprintf(params, sizeof params, "{path: %s}", path);
        CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "source.list", params));
        b.id.index = 3;
        snprintf(params, sizeof params, "{path: %s, skip_empty: true}", path);
        CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "source.list", params));
    }
    for (int i = 0; i < 1000; i++)
        length += (size_t)snprintf(many + length, sizeof many - length, "%s%d\n",
                                   i % 3 ? "" : "\n", i);
    path = temp_file("many.txt", many, length);
    line_is(path, ", skip_empty: true", 777, "777");
    line_is(path, ", skip_empty: true", 999, "999");
    path = temp_file("empty.txt", "", 0);
    bench_clear(&b);
    CHECK_ERR(HR_ERR_NOT_FOUND, bench_op(&b, "source.list", "{path: /nowhere/at/all}"));
    CHECK_ERR(HR_ERR_TYPE, bench_op(&b, "source.list", "{path: /tmp}"));
    bench_finish(&b);
}

TEST(files_have_bytes_labels_and_paths)
{
    char params[600], path[600];
    const char *dir = check_temp_dir();

    bench_init(&b);
    snprintf(path, sizeof path,
             "mkdir -p %s/set/cat %s/set/dog && echo meow > "
             "%s/set/cat/a.jpg && echo woof > %s/set/dog/b.png && echo "
             "no > %s/set/dog/c.txt",
             dir, dir, dir, dir, dir);
    CHECK_EQ_INT(system(path), 0);
    snprintf(params, sizeof params, "{path: %s/set, labels: folder, paths: true}", dir);
    b.id.index = 1;
    CHECK_OK(bench_op(&b, "source.files", params));
    CHECK_EQ_INT(number("label"), 1);
    CHECK_BYTES(bench_value(&b, "data")->data, "woof\n", 5);
    CHECK(bench_value(&b, "path")->bytes > 9);
    bench_clear(&b);
    snprintf(params, sizeof params, "{path: %s/set}", dir);
    CHECK_OK(bench_op(&b, "source.files", params));
    CHECK_EQ_INT(b.schema.count, 1);
    bench_clear(&b);
    snprintf(params, sizeof params, "{path: %s/set, field: label}", dir);
    CHECK(bench_op(&b, "source.files", params) != HR_OK);
    bench_finish(&b);
}

/* The engine asks for ranges before records run: they must equal what apply() reads. */
TEST(files_are_read_ahead_where_they_live)
{
    const struct bench_node *files;
    char params[600], path[600], uri[600];
    struct hr_range range;
    uint64_t offset;

    bench_init(&b);
    snprintf(path, sizeof path, "mkdir -p %s/ahead && echo a > %s/ahead/a.jpg",
             check_temp_dir(), check_temp_dir());
    CHECK_EQ_INT(system(path), 0);
    snprintf(params, sizeof params, "{path: %s/ahead}", check_temp_dir());
    b.id.index = 0;
    CHECK_OK(bench_op(&b, "source.files", params));
    files = &b.nodes[b.node_count - 1];
    CHECK(files->op->source.ahead(files->params, files->state, 0, 0, &range));
    CHECK_EQ_INT(range.offset, 0);
    CHECK(range.bytes == HR_RANGE_REST);
    CHECK(files->op->source.locate(files->params, files->state, 0, uri, sizeof uri,
                                   &offset));
    CHECK_EQ_STR(range.uri, uri);
    CHECK_HAS(uri, "ahead/a.jpg");
    CHECK(!files->op->source.ahead(files->params, files->state, 0, 1, &range));
    CHECK(!files->op->source.ahead(files->params, files->state, 1, 0, &range));
    bench_finish(&b);
}

static const struct hr_op *order;
static struct bench_node node;

static void open_order(const char *name, const char *params)
{
    struct hr_open open = {.error = &b.error};

    CHECK_OK(bench_parse(&b, &node, name, params));
    order = node.op;
    open.params = node.params;
    if (order->open != NULL)
        CHECK_OK(order->open(&open, &node.state));
}

static uint64_t mapped(uint64_t n, uint64_t at, struct hr_record_id *id)
{
    return order->order.map(node.params, node.state, n, at, id, 3);
}

static void is_permutation(uint64_t n, uint64_t window)
{
    bool *seen = calloc(n, 1);
    uint64_t fixed = 0;

    for (uint64_t at = 0; at < n; at++) {
        struct hr_record_id id = {.seed = 5, .draw_epoch = 2};
        uint64_t to = mapped(n, at, &id);
        CHECK(to < n && !seen[to]);
        CHECK(window == 0 || to / window == at / window);
        seen[to] = true;
        fixed += to == at;
    }
    CHECK(n < 100 || fixed < n / 4);
    free(seen);
}

TEST(shuffle_permutes_globally_and_in_windows)
{
    static const uint64_t counts[] = {1, 2, 7, 4095, 4096, 4097, 20000};
    struct hr_record_id one = {.seed = 5}, two = {.seed = 5, .draw_epoch = 1};
    int same = 0;

    bench_init(&b);
    open_order("order.shuffle", NULL);
    for (size_t i = 0; i < 7; i++)
        is_permutation(counts[i], 0);
    for (uint64_t at = 0; at < 1000; at++)
        same += mapped(1000, at, &one) == mapped(1000, at, &two);
    CHECK(same < 20);
    bench_node_finish(&node);
    open_order("order.shuffle", "{window: 100}");
    is_permutation(1050, 100);
    bench_node_finish(&node);
    open_order("order.shuffle", "{window: 5000, seed: 9}");
    is_permutation(12000, 5000);
    bench_node_finish(&node);
    bench_finish(&b);
}

/* Batches that were taken apart: each record shows an eighth of a buffer. */
TEST(a_window_keeps_only_the_bytes_of_its_records)
{
    enum { RECORDS = 40, PARTS = 8, BYTES = 10000 };
    struct hr_schema schema = {.count = 1};
    struct hr_sequence_begin begin = {.input = &schema, .output = &schema};
    enum hr_sequence_verdict verdict = HR_SEQUENCE_PASS;
    struct hr_buffer *batch = NULL;
    struct hr_pool_stats stats;
    void *window = NULL;

    bench_init(&b);
    open_order("order.shuffle", "{window: 40}");
    begin.params = node.params;
    begin.state = node.state;
    begin.pool = b.thread.pool;
    begin.error = &b.error;
    CHECK_OK(order->sequence.begin(&begin, &window));
    for (int i = 0; i < RECORDS; i++) {
        struct hr_value value = {0};
        struct hr_sequence_record record = {.values = &value, .records = 1};

        CHECK_OK(hr_pool_get(b.thread.pool, (size_t)PARTS * BYTES, &batch));
        memset(hr_buffer_data(batch), i, (size_t)PARTS * BYTES);
        hr__value_set_tensor(&value, HR_U8, 3, (const int64_t[]){100, 50, 2},
                             (char *)hr_buffer_data(batch) + BYTES, batch);
        value.layout = HR_LAYOUT_CHW;
        CHECK_OK(order->sequence.add(window, &record, &verdict, &b.error));
        CHECK_EQ_INT(value.kind, HR_VALUE_NONE);
    }
    CHECK_EQ_INT(verdict, HR_SEQUENCE_READY);
    hr_pool_stats(b.thread.pool, &stats);
    CHECK(stats.used_bytes < 2 * RECORDS * BYTES);
    for (bool more = true, any; more;) {
        struct hr_value value = {0};
        struct hr_sequence_record record = {.values = &value, .records = 1};

        CHECK_OK(order->sequence.next(window, &record, &any, &more, &b.error));
        CHECK(any && value.bytes == BYTES && value.layout == HR_LAYOUT_CHW);
        CHECK_EQ_INT(((char *)value.data)[0], ((char *)value.data)[BYTES - 1]);
        hr__value_clear(&value);
    }
    order->sequence.end(window);
    bench_node_finish(&node);
    bench_finish(&b);
}

/* How many of n positions two nodes of an open order map alike. */
static uint64_t mapped_alike(uint64_t n, uint64_t seed, uint64_t other_seed)
{
    uint64_t same = 0;

    for (uint64_t at = 0; at < n; at++) {
        struct hr_record_id one = {.seed = seed, .draw_epoch = 3};
        struct hr_record_id two = {.seed = other_seed, .draw_epoch = 3};

        same += order->order.map(node.params, node.state, n, at, &one, 1) ==
                order->order.map(node.params, node.state, n, at, &two, 2);
    }
    return same;
}

TEST(shuffles_of_one_seed_give_one_order_whatever_their_nodes)
{
    uint64_t n = 1000 + check_seed() % 9000;

    bench_init(&b);
    open_order("order.shuffle", "{seed: 0}");
    CHECK(order->order.draws_by_params(node.params));
    CHECK(mapped_alike(n, 5, 5) == n);
    CHECK(mapped_alike(n, 5, 6) < n / 10);
    bench_node_finish(&node);
    open_order("order.shuffle", NULL);
    CHECK(!order->order.draws_by_params(node.params));
    CHECK(mapped_alike(n, 5, 5) < n / 10);
    bench_node_finish(&node);
    bench_finish(&b);
}

/* Sums over three epochs and several lengths, which compete for cached permutations. */
static void *shuffle_thread(void *user)
{
    uint64_t *sum = user;

    *sum = 0;
    for (uint64_t at = 0; at < 60000; at++) {
        struct hr_record_id id = {.seed = 5, .draw_epoch = (uint32_t)(at / 5 % 12)};
        *sum = *sum * 31 + mapped(at % 2 ? 1000 : 9000, at % 1000, &id);
    }
    return NULL;
}

TEST(shuffle_gives_the_same_from_many_threads)
{
    pthread_t threads[4];
    uint64_t sums[4], alone;

    bench_init(&b);
    open_order("order.shuffle", NULL);
    for (int i = 0; i < 4; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, shuffle_thread, &sums[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    shuffle_thread(&alone);
    for (int i = 0; i < 4; i++)
        CHECK(sums[i] == alone);
    bench_node_finish(&node);
    bench_finish(&b);
}

/* The verdict of the sequencer of `order` on record `at`. */
static enum hr_sequence_verdict verdict_on(int at, bool *ret_ended)
{
    struct hr_sequence_begin begin = {
        .params = node.params, .world = 1, .error = &b.error};
    bool (*ended)(const void *) = order->sequence.ended;
    struct hr_sequence_record record = {.records = 1};
    enum hr_sequence_verdict verdict = HR_SEQUENCE_PASS;
    void *sequencer = NULL;

    CHECK_OK(order->sequence.begin(&begin, &sequencer));
    for (int i = 0; i <= at; i++)
        CHECK_OK(order->sequence.add(sequencer, &record, &verdict, &b.error));
    CHECK_EQ_INT(order->sequence.number(sequencer), at + 1);
    *ret_ended = ended != NULL && ended(sequencer);
    order->sequence.end(sequencer);
    return verdict;
}

TEST(take_skip_and_repeat_choose_positions)
{
    struct hr_record_id id = {.epoch = 4, .draw_epoch = 4};
    bool ended;

    bench_init(&b);
    open_order("order.take", "{count: 5}");
    CHECK_EQ_INT(order->order.count(node.params, node.state, 3), 3);
    CHECK_EQ_INT(order->order.count(node.params, node.state, 30), 5);
    CHECK_EQ_INT(verdict_on(3, &ended), HR_SEQUENCE_PASS);
    CHECK(!ended);
    CHECK_EQ_INT(verdict_on(4, &ended), HR_SEQUENCE_PASS);
    CHECK(ended);
    CHECK_EQ_INT(verdict_on(5, &ended), HR_SEQUENCE_DROP);
    bench_node_finish(&node);
    open_order("order.skip", "{count: 5}");
    CHECK_EQ_INT(order->order.count(node.params, node.state, 3), 0);
    CHECK_EQ_INT(mapped(30, 2, &id), 7);
    CHECK_EQ_INT(verdict_on(4, &ended), HR_SEQUENCE_DROP);
    bench_node_finish(&node);
    open_order("order.repeat", "{count: 3}");
    CHECK_EQ_INT(order->order.count(node.params, node.state, 10), 30);
    CHECK_EQ_INT(mapped(10, 27, &id), 7);
    CHECK_EQ_INT(id.draw_epoch, 14);
    CHECK_EQ_INT(id.epoch, 4);
    bench_node_finish(&node);
    bench_finish(&b);
}

TEST(shards_cover_all_records_once)
{
    static const char *const evens[] = {"none", "drop", "repeat"};
    static const uint64_t totals[] = {10, 9, 12};

    bench_init(&b);
    for (int even = 0; even < 3; even++) {
        int seen[10] = {0};
        uint64_t total = 0;
        for (int rank = 0; rank < 3; rank++) {
            char params[80];
            struct hr_record_id id = {0};
            uint64_t count;
            snprintf(params, sizeof params, "{rank: %d, world: 3, even: %s}", rank,
                     evens[even]);
            open_order("order.shard", params);
            count = order->order.count(node.params, node.state, 10);
            total += count;
            for (uint64_t at = 0; at < count; at++)
                seen[mapped(10, at, &id)]++;
            bench_node_finish(&node);
        }
        CHECK_EQ_INT(total, totals[even]);
        for (int i = 0; i < 9; i++)
            CHECK(seen[i] == 1 || (even == 2 && seen[i] == 2 && i < 2));
        CHECK_EQ_INT(seen[9], even != 1);
    }
    bench_finish(&b);
}

TEST(fields_are_selected_dropped_and_renamed)
{
    bench_init(&b);
    CHECK_OK(bench_op(&b, "source.range", "{n: 9, start: 4, field: a}"));
    CHECK_OK(bench_op(&b, "source.range", "{n: 9, start: 5, field: b}"));
    CHECK_OK(bench_op(&b, "record.rename", "{fields: {a: b, b: a}}"));
    CHECK_EQ_INT(number("a"), 5);
    CHECK_EQ_INT(number("b"), 4);
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "record.rename", "{fields: {a: b}}"));
    CHECK_ERR(HR_ERR_NOT_FOUND, bench_op(&b, "record.rename", "{fields: {z: b}}"));
    CHECK_OK(bench_op(&b, "record.select", "{fields: [b, a]}"));
    CHECK_EQ_STR(b.schema.fields[0].name, "b");
    CHECK_ERR(HR_ERR_ARGUMENT, bench_op(&b, "record.select", "{fields: [a, a]}"));
    CHECK_OK(bench_op(&b, "record.drop", "{fields: a}"));
    CHECK_EQ_INT(b.schema.count, 1);
    CHECK_EQ_INT(number("b"), 4);
    bench_finish(&b);
}

TEST(filters_read_values_and_sizes)
{
    static uint8_t levels[6 * 4];

    bench_init(&b);
    CHECK_OK(bench_op(&b, "source.range", "{n: 9, start: 4, field: label}"));
    bench_put_image(&b, "image", HR_U8, 6, 4, 1, levels);
    CHECK_OK(
        bench_op(&b, "record.filter", "{expr: \"label < 5 and image.height >= 6\"}"));
    CHECK(!b.dropped);
    CHECK_OK(bench_op(&b, "image.center_crop", "{size: 3}"));
    CHECK_OK(bench_op(&b, "record.filter", "{expr: \"height > 3\"}"));
    CHECK(b.dropped);
    CHECK_EQ_INT(bench_value(&b, "image")->kind, HR_VALUE_DEFERRED);
    CHECK(bench_op(&b, "record.filter", "{expr: \"label + 1\"}") != HR_OK);
    CHECK(bench_op(&b, "record.filter", "{expr: \"nothing > 1\"}") != HR_OK);
    bench_finish(&b);
}

TEST(zip_joins_schemas_and_refuses_equal_names)
{
    struct hr_schema inputs[2] = {
        {.count = 1, .records = 9},
        {.count = 1, .records = 9}
    };
    struct hr_schema out = {0};
    struct hr_infer infer = {
        .inputs = inputs, .input_count = 2, .output = &out, .error = &b.error};

    bench_init(&b);
    snprintf(inputs[0].fields[0].name, sizeof inputs[0].fields[0].name, "x");
    snprintf(inputs[1].fields[0].name, sizeof inputs[1].fields[0].name, "x");
    CHECK_OK(bench_parse(&b, &node, "flow.zip", NULL));
    infer.params = node.params;
    CHECK_ERR(HR_ERR_GRAPH, node.op->infer(&infer));
    CHECK_HAS(b.error.message, "prefix");
    bench_node_finish(&node);
    CHECK_OK(bench_parse(&b, &node, "flow.zip", "{prefix: [a_, b_]}"));
    infer.params = node.params;
    CHECK_OK(node.op->infer(&infer));
    CHECK_EQ_INT(out.count, 2);
    CHECK_EQ_STR(out.fields[1].name, "b_x");
    bench_node_finish(&node);
    bench_finish(&b);
}

TEST(batches_gain_a_dimension_and_lose_it_again)
{
    struct hr_schema out = {.count = 2, .records = 10};
    struct hr_infer infer = {
        .inputs = &out, .input_count = 1, .output = &out, .error = &b.error};

    bench_init(&b);
    out.fields[0] = (struct hr_field){.name = "x", .dtype = HR_F32, .ndim = 1};
    hr__dim_set(&out.fields[0].dims[0], 5);
    out.fields[1] = (struct hr_field){.name = "t", .kind = HR_FIELD_BYTES};
    CHECK_OK(bench_parse(&b, &node, "batch.stack", "{size: 4}"));
    infer.params = node.params;
    CHECK_OK(node.op->infer(&infer));
    CHECK_EQ_INT(out.fields[0].ndim, 2);
    CHECK_EQ_INT(out.fields[0].dims[0].size, HR_DIM_UNKNOWN);
    CHECK_EQ_INT(out.fields[1].kind, HR_FIELD_STRINGS);
    CHECK_EQ_INT(out.batch_rank, 1);
    bench_node_finish(&node);
    CHECK_OK(bench_parse(&b, &node, "batch.unbatch", NULL));
    CHECK_OK(node.op->infer(&infer));
    CHECK_EQ_INT(out.fields[0].dims[0].size, 5);
    CHECK_EQ_INT(out.fields[1].kind, HR_FIELD_BYTES);
    CHECK_ERR(HR_ERR_GRAPH, node.op->infer(&infer));
    bench_node_finish(&node);
    bench_finish(&b);
}

TEST(unbatch_shows_rows_and_strings)
{
    float rows[6] = {1, 2, 3, 4, 5, 6};
    int64_t dims[2] = {2, 3}, offsets[3] = {0, 2, 5};
    struct hr_ragged ragged = {.levels = 1, .splits = {offsets}};
    struct hr_value parents[2] = {{0}}, children[2] = {{0}}, *bound = &parents[0];
    struct hr_op_ctx ctx = {
        .fields = &bound, .field_count = 1, .error = &b.error, .thread = &b.thread};
    uint64_t count;

    bench_init(&b);
    hr__value_set_tensor(&parents[0], HR_F32, 2, dims, rows, NULL);
    parents[1] = (struct hr_value){.kind = HR_VALUE_RAGGED,
                                   .dtype = HR_U8,
                                   .ndim = 1,
                                   .strings = true,
                                   .data = "abcde",
                                   .dims = {2},
                                   .u.ragged = &ragged};
    CHECK_OK(bench_parse(&b, &node, "batch.unbatch", NULL));
    CHECK_OK(node.op->expand.count(&ctx, &count));
    CHECK_EQ_INT(count, 2);
    CHECK_OK(node.op->expand.child(&ctx, 1, parents, children, 2));
    CHECK_EQ_INT(children[0].dims[0], 3);
    CHECK(((float *)children[0].data)[2] == 6);
    CHECK_EQ_INT(children[0].bytes, 12);
    CHECK_EQ_INT(children[1].bytes, 3);
    CHECK_BYTES(children[1].data, "cde", 3);
    CHECK_ERR(HR_ERR_SHAPE, node.op->expand.child(&ctx, 2, parents, children, 2));
    bench_node_finish(&node);
    bench_finish(&b);
}

TEST(unbatch_refuses_fields_with_fewer_or_more_records)
{
    static const int64_t sizes[][2] = {
        {4, 1},
        {1, 4},
        {4, 0},
        {0, 4}
    };
    int64_t numbers[4] = {1, 2, 3, 4};
    struct hr_value values[2] = {{.kind = HR_VALUE_NONE}};
    struct hr_value *bound[] = {&values[0], &values[1]};
    struct hr_op_ctx ctx = {
        .fields = bound, .field_count = 2, .error = &b.error, .thread = &b.thread};
    struct hr_open open = {.input = &b.schema, .output = &b.schema, .error = &b.error};
    uint64_t count = 0;

    bench_init(&b);
    bench_put(&b, "x");
    bench_put(&b, "y");
    CHECK_OK(bench_parse(&b, &node, "batch.unbatch", NULL));
    CHECK_OK(node.op->open(&open, &node.state));
    ctx.state = node.state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        hr__value_set_tensor(&values[0], HR_I64, 1, &sizes[i][0], numbers, NULL);
        hr__value_set_tensor(&values[1], HR_I64, 1, &sizes[i][1], numbers, NULL);
        CHECK_ERR(HR_ERR_SHAPE, node.op->expand.count(&ctx, &count));
    }
    CHECK_EQ_STR(b.error.message, "the fields of a batch have different numbers of "
                                  "records: \"x\" has 0, and \"y\" 4");
    hr__value_set_tensor(&values[0], HR_I64, 1, &sizes[0][0], numbers, NULL);
    CHECK_OK(node.op->expand.count(&ctx, &count));
    CHECK_EQ_INT(count, 4);
    bench_node_finish(&node);
    bench_finish(&b);
}

TEST(debug_ops_fail_and_wait_as_their_parameters_say)
{
    bench_init(&b);
    b.id.index = 4;
    CHECK_OK(bench_op(&b, "debug.fail", "{every: 3, at: [5, 9]}"));
    CHECK_ERR(HR_ERR_FORMAT, bench_op(&b, "debug.fail", "{every: 5, message: ouch}"));
    CHECK_HAS(b.error.message, "ouch");
    CHECK_ERR(HR_ERR_FORMAT, bench_op(&b, "debug.fail", "{at: 4}"));
    CHECK_ERR(HR_ERR_FORMAT, bench_op(&b, "debug.fail", "{probability: 1}"));
    CHECK_OK(bench_op(&b, "debug.sleep", "{ms: 1}"));
    CHECK_OK(bench_op(&b, "debug.spin", "{us: 100}"));
    CHECK_OK(bench_op(&b, "debug.identity", NULL));
    bench_finish(&b);
}

TEST(inflated_bytes_repeat)
{
    static const struct {
        const char *params, *bytes;
    } cases[] = {
        {NULL,             "abcdeabcdeab"  },
        {"{factor: 1}",    "abcde"         },
        {"{factor: 0.5}",  "ab"            },
        {"{factor: 0}",    ""              },
        {"{factor: 2.99}", "abcdeabcdeabcd"},
    };

    bench_init(&b);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench_clear(&b);
        bench_put_bytes(&b, "data", "abcde", 5);
        CHECK_OK(bench_op(&b, "debug.inflate", cases[i].params));
        CHECK_EQ_INT(bench_value(&b, "data")->bytes, strlen(cases[i].bytes));
        CHECK_BYTES(bench_value(&b, "data")->data, cases[i].bytes,
                    strlen(cases[i].bytes));
    }
    bench_clear(&b);
    bench_put_bytes(&b, "data", "", 0);
    CHECK_OK(bench_op(&b, "debug.inflate", NULL));
    CHECK_EQ_INT(bench_value(&b, "data")->bytes, 0);
    CHECK_ERR(HR_ERR_RANGE, bench_op(&b, "debug.inflate", "{factor: 1e9}"));
    bench_finish(&b);
}
