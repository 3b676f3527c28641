/*
 * graph/profile_test.c - profiles as text, every field damaged; nodes found in a graph;
 * two profiles as one.
 */
#include "graph/profile_items.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/str.h"
#include "tests/support/check.h"
#include "tests/support/outcome.h"

/* A value that the item allows: often an end of its range. */
static void draw(const struct hr_profile_item *item, struct hr_rng *rng, void *object)
{
    char *at = (char *)object + item->offset;
    double ends[] = {0, item->max, 0.5 * item->max, item->max * hr__rng_double(rng)};
    double number = ends[hr__rng_below(rng, 4)];
    uint64_t wide = (uint64_t)number;
    uint32_t narrow = (uint32_t)hr__rng_below(rng, 4);
    struct hr_hash128 hash = {hr__rng_u64(rng), hr__rng_u64(rng)};

    if (item->type == HR_PROFILE_PERHAPS && hr__rng_below(rng, 2) == 0)
        number = HR_PROFILE_UNKNOWN;
    if (item->type == HR_PROFILE_U32)
        narrow = (uint32_t)number;
    switch (item->type) {
    case HR_PROFILE_TEXT:
        for (size_t i = hr__rng_below(rng, (uint64_t)item->max); i-- > 0;)
            *at++ = (char)(1 + hr__rng_below(rng, 127));
        *at = '\0';
        return;
    case HR_PROFILE_HASH:
        memcpy(at, &hash, sizeof hash);
        return;
    case HR_PROFILE_BOOL:
        *(bool *)at = hr__rng_below(rng, 2) == 0;
        return;
    case HR_PROFILE_U64:
        memcpy(at, &wide, sizeof wide);
        return;
    case HR_PROFILE_U32:
    case HR_PROFILE_VARIANT:
        memcpy(at, &narrow, sizeof narrow);
        return;
    default:
        memcpy(at, &number, sizeof number);
    }
}

static void
draw_items(const struct hr_profile_table *table, struct hr_rng *rng, void *object)
{
    for (size_t i = 0; i < table->count; i++)
        draw(&table->items[i], rng, object);
}

static struct hr_profile drawn(struct hr_rng *rng)
{
    struct hr_profile profile = {.node_count = 0};
    size_t count = 1 + hr__rng_below(rng, 5);
    char name[32];

    draw_items(&hr__profile_top, rng, &profile);
    draw_items(&hr__profile_where, rng, &profile.machine);
    for (size_t i = 0; i < count; i++) {
        struct hr_profile_node *node;

        snprintf(name, sizeof name, "n\"%u\xc3\xa4", hr__rng_u32(rng));
        node = hr__profile_add(&profile, name, i % 2 == 0 ? "a.b" : "c");
        CHECK(node != NULL);
        draw_items(&hr__profile_node, rng, node);
    }
    return profile;
}

static void print(const struct hr_profile *profile, struct hr_str *text)
{
    hr__str_init(text);
    hr__profile_print(profile, text);
    CHECK(hr__str_ok(text));
}

static struct hr_profile read_back(const struct hr_profile *profile)
{
    struct hr_profile read;
    struct hr_error error = {0};
    struct hr_str text;

    print(profile, &text);
    if (hr__profile_parse(hr__str_text(&text), text.length, "p.json", &read, &error) !=
        HR_OK)
        check_failed(__FILE__, __LINE__, "%s in\n%s", error.message, hr__str_text(&text));
    hr__str_finish(&text);
    return read;
}

static struct hr_profile copy_of(const struct hr_profile *profile)
{
    struct hr_profile copy = read_back(profile);

    CHECK(hr__profile_equal(profile, &copy));
    return copy;
}

TEST(a_profile_reads_back_equal)
{
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 0, 0);
    for (int round = 0; round < 200; round++) {
        struct hr_profile profile = drawn(&rng), read = copy_of(&profile);

        hr__profile_finish(&read);
        hr__profile_finish(&profile);
    }
}

static void
check_compared(const struct hr_profile_table *table, const struct hr_profile *profile,
               struct hr_profile *other, void *object, struct hr_rng *rng)
{
    unsigned char before[1024];

    for (size_t i = 0; i < table->count; i++) {
        const struct hr_profile_item *item = &table->items[i];
        size_t bytes = item->type == HR_PROFILE_TEXT   ? (size_t)item->max
                       : item->type == HR_PROFILE_HASH ? sizeof(struct hr_hash128)
                       : item->type == HR_PROFILE_BOOL ? 1
                       : item->type == HR_PROFILE_U32 || item->type == HR_PROFILE_VARIANT
                           ? 4
                           : 8;
        char *at = (char *)object + item->offset;

        memcpy(before, at, bytes);
        for (int k = 0; k < 100 && hr__profile_equal(profile, other); k++)
            draw(item, rng, object);
        if (hr__profile_equal(profile, other))
            check_failed(__FILE__, __LINE__, "%s is not compared", item->key);
        memcpy(at, before, bytes);
    }
}

TEST(every_member_is_compared)
{
    struct hr_profile profile, other;
    struct hr_rng rng;

    hr__rng_init(&rng, check_seed(), 1, 0);
    profile = drawn(&rng);
    other = copy_of(&profile);
    check_compared(&hr__profile_top, &profile, &other, &other, &rng);
    check_compared(&hr__profile_where, &profile, &other, &other.machine, &rng);
    check_compared(&hr__profile_node, &profile, &other, &other.nodes[0], &rng);
    hr__profile_finish(&profile);
    hr__profile_finish(&other);
}

/* ---- damage ---- */

static const char good[] =
    "{\n\"headrace_profile\": 4,\n\"graph\": \"99aa06d3014798d86001c324468d497f\",\n"
    "\"library\": \"0.1.0\",\n\"variant\": \"inline\",\n\"fused\": false,\n"
    "\"seconds\": 2.5,\n\"machine\": {\n\"cpu\": \"x\",\n\"isa\": \"avx2\",\n"
    "\"cores\": 2,\n\"copy\": 5e9,\n\"crowd\": 1.1,\n\"disk\": null,\n"
    "\"transfer_ns\": 300,\n\"transfer\": 3e9\n},\n\"nodes\": "
    "[\n{\n\"node\": \"a\",\n\"op\": \"source.range\",\n"
    "\"fingerprint\": \"00000000000000000000000000000001\",\n\"measured\": 1764000000,\n"
    "\"records_in\": 10,\n\"records_out\": 9,\n\"cpu_ns\": 1500,\n\"wait_ns\": 0.5,\n"
    "\"deviation_ns\": 3,\n\"bytes_in\": 0,\n\"bytes_out\": 8,\n\"fixed\": null,\n"
    "\"width\": 0.04,\n\"serial\": 0.9,\n\"process_ns\": 1700,\n\"crowd\": "
    "1.2,\n\"ordered\": 0.7\n}\n]\n}\n";

static enum hr_err parse(const char *text, struct hr_error *error)
{
    struct hr_profile profile;
    enum hr_err code;

    memset(error, 0, sizeof *error);
    code = hr__profile_parse(text, strlen(text), "p.json", &profile, error);
    if (code == HR_OK)
        hr__profile_finish(&profile);
    return code;
}

/* The line of `good` with this key, without its comma. */
static const char *line_of(const char *key, size_t *ret_length)
{
    char text[64];
    const char *at;

    snprintf(text, sizeof text, "\"%s\": ", key);
    at = strstr(good, text);
    CHECK(at != NULL);
    *ret_length = strcspn(at, ",\n");
    return at;
}

static int line_number(const char *at)
{
    int line = 1;

    for (const char *p = good; p < at; p++)
        line += *p == '\n';
    return line;
}

/* `good` with another value for the key. */
static void check_refused(const char *key, const char *value)
{
    char text[2048], wants[64];
    struct hr_error error;
    size_t length;
    const char *at = line_of(key, &length);

    snprintf(text, sizeof text, "%.*s\"%s\": %s%s", (int)(at - good), good, key, value,
             at + length);
    if (parse(text, &error) == HR_OK)
        check_failed(__FILE__, __LINE__, "accepted %s: %s", key, value);
    CHECK(error.line >= line_number(at) && error.column >= 1);
    CHECK_EQ_STR(error.file, "p.json");
    snprintf(wants, sizeof wants, "\"%s", key);
    CHECK_HAS(error.message, wants);
    CHECK(strncmp(error.message, "p.json:", 7) == 0);
}

static const char *const keys[] = {"headrace_profile",
                                   "graph",
                                   "library",
                                   "variant",
                                   "fused",
                                   "seconds",
                                   "cpu",
                                   "isa",
                                   "cores",
                                   "copy",
                                   "crowd",
                                   "disk",
                                   "transfer_ns",
                                   "transfer",
                                   "node",
                                   "op",
                                   "fingerprint",
                                   "measured",
                                   "records_in",
                                   "records_out",
                                   "cpu_ns",
                                   "wait_ns",
                                   "deviation_ns",
                                   "bytes_in",
                                   "bytes_out",
                                   "fixed",
                                   "width",
                                   "serial",
                                   "process_ns",
                                   "crowd",
                                   "ordered"};

TEST(a_missing_or_unknown_key_is_named)
{
    struct hr_error error;
    char text[2048], wants[64];

    CHECK_OK(parse(good, &error));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t length;
        const char *at = line_of(keys[i], &length);
        bool last = at[length] != ',';
        size_t before = (size_t)(at - good);

        if (last) /* without the comma before it */
            for (before--; good[before] != ','; before--)
                continue;
        snprintf(text, sizeof text, "%.*s%s", (int)before, good, at + length + !last);
        CHECK(parse(text, &error) < 0);
        snprintf(wants, sizeof wants, "%s", keys[i]);
        CHECK_HAS(error.message, wants);
        CHECK_HAS(error.message, "missing");
        CHECK(error.line >= 1);
    }
    snprintf(text, sizeof text, "{\"header\": 1, %s", good + 1);
    CHECK_ERR(HR_ERR_FORMAT, parse(text, &error));
    CHECK_HAS(error.message, "\"header\" is not known");
}

TEST(a_value_of_the_wrong_type_or_range_is_named)
{
    static const char *const numbers[] = {"seconds",      "cpu_ns",   "wait_ns",
                                          "deviation_ns", "bytes_in", "bytes_out"};
    static const char *const counts[] = {"cores", "measured", "records_in",
                                         "records_out"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        check_refused(keys[i], "[]");
        check_refused(keys[i], "{\"a\": 1}");
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        check_refused(numbers[i], "-1");
        check_refused(numbers[i], "1e999");
        check_refused(numbers[i], "null");
        check_refused(numbers[i], "\"5\"");
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_refused(counts[i], "-1");
        check_refused(counts[i], "9223372036854775807");
        check_refused(counts[i], "1.5");
        check_refused(counts[i], "null");
    }
    check_refused("fixed", "1.01");
    check_refused("fixed", "-1");
    check_refused("width", "-1");
    check_refused("serial", "1.01");
    check_refused("process_ns", "-1");
    check_refused("crowd", "\"much\"");
    check_refused("transfer", "-1");
    check_refused("copy", "-1");
    check_refused("disk", "1e19");
    check_refused("fused", "1");
    check_refused("variant", "\"gpu\"");
    check_refused("graph", "\"99aa\"");
    check_refused("fingerprint", "\"0000000000000000000000000000000g\"");
    check_refused("isa", "\"a name that is too long for it\"");
    check_refused("node", "\"a\\u0000b\"");
    check_refused("node", "\"\"");
    check_refused("op", "\"\"");
}

/* `text` without the last line of a key, and without the comma before it if it is the
 * last. */
static void remove_line(char *text, const char *key)
{
    char wanted[64], *at = NULL, *end;

    snprintf(wanted, sizeof wanted, "\"%s\": ", key);
    for (char *found = text; (found = strstr(found, wanted)) != NULL; found++)
        at = found;
    CHECK(at != NULL);
    end = at + strcspn(at, ",\n");
    if (*end == ',')
        end += 2;
    else
        for (at--; *at != ','; at--)
            continue;
    memmove(at, end, strlen(end) + 1);
}

TEST(a_profile_of_version_1_is_read)
{
    struct hr_profile profile;
    struct hr_error error = {0};
    char text[2048];

    snprintf(text, sizeof text, "%s", good);
    strstr(text, "\"headrace_profile\": 4")[strlen("\"headrace_profile\": ")] = '1';
    CHECK_ERR(HR_ERR_FORMAT, parse(text, &error)); /* it has keys of later versions */
    CHECK_HAS(error.message, "\"transfer_ns\" is not known");
    remove_line(text, "transfer_ns");
    remove_line(text, "transfer");
    remove_line(text, "serial");
    remove_line(text, "process_ns");
    remove_line(text, "crowd");
    remove_line(text, "ordered");
    if (hr__profile_parse(text, strlen(text), "p.json", &profile, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    CHECK(profile.nodes[0].serial == HR_PROFILE_UNKNOWN &&
          profile.nodes[0].process_ns == HR_PROFILE_UNKNOWN &&
          profile.nodes[0].crowd == HR_PROFILE_UNKNOWN &&
          profile.nodes[0].ordered == HR_PROFILE_UNKNOWN);
    CHECK(profile.machine.transfer == HR_PROFILE_UNKNOWN &&
          profile.nodes[0].width == 0.04);
    hr__profile_finish(&profile);
}

TEST(another_version_is_refused)
{
    struct hr_error error;

    CHECK_ERR(HR_ERR_UNSUPPORTED, parse("{\"headrace_profile\": 5}", &error));
    CHECK_HAS(error.message, "p.json:1:22: the profile has format version 5");
    CHECK_ERR(HR_ERR_FORMAT, parse("[]", &error));
    CHECK_HAS(error.message, "this is no profile");
}

TEST(any_cut_of_the_text_is_refused)
{
    struct hr_error error;
    char text[2048];

    for (size_t length = 0; length + 2 < strlen(good); length++) {
        snprintf(text, sizeof text, "%.*s", (int)length, good);
        CHECK(parse(text, &error) < 0);
        CHECK(error.line >= 1 && error.message[0] != '\0');
    }
}

TEST(without_memory_nothing_is_read_or_printed)
{
    struct hr_error error;
    struct hr_profile profile;
    struct hr_str text;

    CHECK_OK(hr__profile_parse(good, strlen(good), "p.json", &profile, NULL));
    for (uint64_t nth = 1;; nth++) {
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = parse(good, &error);
        hr__fault_arm(0, 0);
        if (code == HR_OK)
            break;
        CHECK_EQ_INT(code, HR_ERR_MEMORY);
    }
    for (uint64_t nth = 1;; nth++) {
        bool ok;

        hr__str_init(&text);
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        hr__profile_print(&profile, &text);
        hr__fault_arm(0, 0);
        ok = hr__str_ok(&text);
        hr__str_finish(&text);
        if (ok)
            break;
    }
    hr__profile_finish(&profile);
}

/* ---- nodes of a graph ---- */

static struct hr_graph *graph_of(const char *text)
{
    struct outcome_job job = outcome_job_text(text);
    struct hr_graph *graph = outcome_graph(&job, NULL);

    CHECK(graph != NULL);
    CHECK_OK(hr_graph_freeze(graph, NULL));
    return graph;
}

static struct hr_profile profile_of(const struct hr_graph *graph)
{
    struct hr_profile profile = {.node_count = 0};

    for (size_t i = 0; i < graph->count; i++) {
        struct hr_profile_node *node =
            hr__profile_add(&profile, graph->nodes[i].name, graph->nodes[i].op->name);

        CHECK(node != NULL);
        node->fingerprint = graph->nodes[i].fingerprint;
        node->cpu_ns = (double)i;
    }
    return profile;
}

TEST(an_edit_invalidates_only_what_it_changes)
{
    struct hr_graph *graph = graph_of(
        "headrace: 1\npipeline:\n  - source.range: {n: 50}\n  - debug.identity: {}\n"
        "  - record.filter: {expr: \"value % 3 != 1\"}\n  - batch.stack: {size: 8}\n");
    struct hr_graph *edited = graph_of(
        "headrace: 1\npipeline:\n  - source.range: {n: 50}\n"
        "  - debug.identity: {}\n    name: again\n"
        "  - record.filter: {expr: \"value % 3 != 2\"}\n  - batch.stack: {size: 8}\n");
    struct hr_profile profile = profile_of(graph);
    const struct hr_profile_node *nodes[4];

    CHECK_EQ_INT(hr__profile_match(graph, &profile, nodes), 4);
    for (size_t i = 0; i < 4; i++)
        CHECK(nodes[i] == &profile.nodes[i]);
    CHECK_EQ_INT(hr__profile_match(edited, &profile, nodes), 2);
    CHECK(nodes[0] == &profile.nodes[0] && nodes[1] == &profile.nodes[1]);
    CHECK(nodes[2] == NULL && nodes[3] == NULL);
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
    hr_graph_unref(edited);
}

TEST(equal_nodes_are_told_apart_by_name)
{
    struct hr_graph *graph =
        graph_of("headrace: 1\npipeline:\n  - source.range: {n: 50}\n    name: s\n"
                 "  - debug.identity: {}\n    name: a\n    inputs: s\n"
                 "  - debug.identity: {}\n    name: b\n    inputs: s\n"
                 "  - record.rename: {fields: {value: other}}\n    name: r\n"
                 "  - flow.zip: {}\n    inputs: [a, r]\n");
    struct hr_profile profile = profile_of(graph);
    const struct hr_profile_node *nodes[5];

    CHECK_EQ_INT(hr__profile_match(graph, &profile, nodes), 5);
    for (size_t i = 0; i < 5; i++)
        CHECK(nodes[i] == &profile.nodes[i]);
    hr__profile_finish(&profile);
    hr_graph_unref(graph);
}

/* ---- merging ---- */

static struct hr_profile one_node(double cpu_ns, uint64_t records, uint64_t measured)
{
    struct hr_profile profile;

    CHECK_OK(hr__profile_parse(good, strlen(good), "p.json", &profile, NULL));
    profile.nodes[0].cpu_ns = cpu_ns;
    profile.nodes[0].deviation_ns = 0;
    profile.nodes[0].records_in = profile.nodes[0].records_out = records;
    profile.nodes[0].measured = measured;
    return profile;
}

TEST(merged_costs_are_weighted_by_records_and_age)
{
    struct hr_profile a = one_node(100, 300, 5), b = one_node(200, 100, 5);
    struct hr_profile young = one_node(300, 400, 5 + HR_PROFILE_HALF_LIFE);

    CHECK_OK(hr__profile_merge(&a, &b, NULL));
    CHECK_EQ_INT(a.node_count, 1);
    CHECK_EQ_INT(a.nodes[0].records_in, 400);
    CHECK_NEAR(a.nodes[0].cpu_ns, 125, 1e-9);
    CHECK_NEAR(a.nodes[0].deviation_ns, 100 * sqrt(0.25 * 0.75), 1e-9);
    CHECK_OK(hr__profile_merge(&a, &young, NULL));
    CHECK_NEAR(a.nodes[0].cpu_ns, (125 * 200 + 300 * 400) / 600.0, 1e-9);
    CHECK(a.nodes[0].measured == young.nodes[0].measured);
    hr__profile_finish(&a);
    hr__profile_finish(&b);
    hr__profile_finish(&young);
}

TEST(merging_ignores_measured_rates_and_fills_in_missing_ones)
{
    struct hr_profile a = one_node(100, 300, 5), b = one_node(200, 100, 5);

    a.machine.crowd = 0;
    b.machine.copy = 6e9;
    b.machine.crowd = 1.5;
    b.machine.disk = 7e8;
    CHECK_OK(hr__profile_merge(&a, &b, NULL));
    CHECK(a.machine.copy == 5e9 && a.machine.crowd == 1.5 && a.machine.disk == 7e8);
    b.machine.cores++;
    CHECK_ERR(HR_ERR_STATE, hr__profile_merge(&a, &b, NULL));
    hr__profile_finish(&a);
    hr__profile_finish(&b);
}

TEST(merging_keeps_the_nodes_of_both)
{
    struct hr_profile a = one_node(100, 300, 5), b = one_node(200, 100, 5);
    struct hr_profile_node *more = hr__profile_add(&b, "more", "a.b");

    CHECK(more != NULL);
    more->fingerprint.low = 77;
    more->records_in = 3;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        struct hr_profile before = copy_of(&a);

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        CHECK_ERR(HR_ERR_MEMORY, hr__profile_merge(&a, &b, NULL));
        hr__fault_arm(0, 0);
        CHECK(hr__profile_equal(&a, &before));
        hr__profile_finish(&before);
    }
    CHECK_OK(hr__profile_merge(&a, &b, NULL));
    CHECK_EQ_INT(a.node_count, 2);
    CHECK_EQ_STR(a.nodes[1].name, "more");
    CHECK_EQ_INT(a.nodes[1].records_in, 3);
    hr__profile_finish(&a);
    hr__profile_finish(&b);
}

TEST(profiles_of_other_machines_do_not_merge)
{
    struct hr_profile a = one_node(100, 300, 5), b = one_node(200, 100, 5);
    struct hr_error error = {0};

    b.machine.cores++;
    CHECK_ERR(HR_ERR_STATE, hr__profile_merge(&a, &b, &error));
    CHECK_HAS(error.message, "\"cores\"");
    b.machine.cores--;
    b.fused = true;
    CHECK_ERR(HR_ERR_STATE, hr__profile_merge(&a, &b, &error));
    CHECK_HAS(error.message, "\"fused\"");
    CHECK_NEAR(a.nodes[0].cpu_ns, 100, 0);
    hr__profile_finish(&a);
    hr__profile_finish(&b);
}

TEST(this_machine_has_a_name)
{
    struct hr_profile_machine machine;

    hr__profile_machine(&machine);
    CHECK(machine.cpu[0] != '\0' && machine.isa[0] != '\0' && machine.cores >= 1);
}
