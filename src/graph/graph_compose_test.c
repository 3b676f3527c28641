/*
 * graph/graph_compose_test.c - composition: a graph in, its groups out as text; what the
 * fingerprint covers of them, and what it does not.
 *
 * A line is a node: its name, "<group" when another node heads its group, "close" or
 * "relaxed" when that group may not be split, "!" and the fields that are made before it,
 * "*" when all that it is given is.
 */
#include "graph/graph.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "tests/support/check.h"

#define HEAD "headrace: 1\npipeline:\n"
#define RANGE "  - source.range: {n: 8}\n    name: range\n"

static const char *folder(void)
{
    static char root[400];
    char path[512];
    FILE *file;

    if (root[0] != '\0')
        return root;
    snprintf(root, sizeof root, "%s/photos", check_temp_dir());
    mkdir(root, 0777);
    snprintf(path, sizeof path, "%s/1.jpg", root);
    file = fopen(path, "w");
    CHECK(file != NULL);
    fputs("no photo", file);
    fclose(file);
    return root;
}

/* A graph over photos: `decode` is its parameters, `tail` what follows. */
static struct hr_graph *photos(const char *decode, const char *tail)
{
    struct hr_graph *graph = NULL;
    struct hr_error error = {0};
    char text[4096];

    snprintf(text, sizeof text,
             HEAD "  - source.files: {path: '%s'}\n    name: files\n"
                  "  - image.decode: {%s}\n    name: decode\n%s",
             folder(), decode, tail);
    if (hr_graph_parse(text, strlen(text), "test.yaml", NULL, 0, &graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s in\n%s", error.message, text);
    return graph;
}

static struct hr_graph *frozen(struct hr_graph *graph)
{
    struct hr_error error = {0};

    if (hr_graph_freeze(graph, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return graph;
}

static const char *const strictness[] = {"", " close", " relaxed"};

static bool makes_all(const struct hr_graph_node *n)
{
    return n->op->kind == HR_OP_EXPAND || n->op->kind == HR_OP_SEQUENCE ||
           (n->op->kind == HR_OP_ORDER && !n->by_number);
}

static const char *groups(const struct hr_graph *graph)
{
    static char text[4096];
    size_t at = 0;

    for (size_t i = 0; i < graph->count; i++) {
        const struct hr_graph_node *n = &graph->nodes[i];

        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i == 0 ? "" : "\n",
                               n->name);
        if (n->group != i)
            at += (size_t)snprintf(text + at, sizeof text - at, " <%s",
                                   graph->nodes[n->group].name);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s",
                               strictness[n->strictness], makes_all(n) ? " *" : "");
        for (size_t f = 0; f < n->field_count; f++)
            if (n->made[f].before)
                at += (size_t)snprintf(text + at, sizeof text - at, " !%s",
                                       n->field_names[f]);
    }
    return text;
}

static void check_groups(const char *decode, const char *tail, const char *expected)
{
    struct hr_graph *graph = frozen(photos(decode, tail));

    CHECK_EQ_STR(groups(graph), expected);
    hr_graph_unref(graph);
}

static struct hr_hash128 fingerprint(const struct hr_graph *graph)
{
    return graph->nodes[graph->output].fingerprint;
}

static bool same(struct hr_hash128 a, struct hr_hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

#define RESIZE "  - image.resize: {size: 32}\n    name: resize\n"
#define FLIP "  - image.flip: {}\n    name: flip\n"
#define BLUR "  - image.gaussian_blur: {size: 3}\n    name: blur\n"
#define NORMALIZE "  - image.normalize: {mean: imagenet, std: imagenet}\n    name: norm\n"
#define BATCH "  - batch.stack: {size: 4}\n    name: batch\n"

TEST(edits_join_the_group_of_the_decode)
{
    check_groups("", RESIZE FLIP NORMALIZE BATCH,
                 "files\ndecode close\nresize <decode close\nflip <decode close\n"
                 "norm <decode close\nbatch *");
    check_groups("mode: exact", RESIZE FLIP BATCH,
                 "files\ndecode\nresize <decode\nflip <decode\nbatch *");
    check_groups("mode: fast", FLIP, "files\ndecode relaxed\nflip <decode relaxed");
}

TEST(a_group_ends_where_bytes_are_needed)
{
    check_groups("", RESIZE BLUR FLIP NORMALIZE,
                 "files\ndecode close\nresize <decode close\nblur !image\nflip\n"
                 "norm <flip");
}

TEST(a_second_resampling_begins_a_group)
{
    check_groups("",
                 RESIZE FLIP "  - image.resize: {size: 16}\n    name: again\n" NORMALIZE,
                 "files\ndecode close\nresize <decode close\nflip <decode close\n"
                 "again !image\nnorm <again");
}

TEST(filters_and_nodes_of_other_fields_change_no_group)
{
    check_groups("",
                 "  - record.filter: {expr: \"image.width > 4\"}\n    name: filter\n"
                 "  - debug.identity: {}\n    name: identity\n"
                 "  - record.rename: {fields: {image: photo}}\n    name: rename\n"
                 "  - image.resize: {size: 32, field: photo}\n    name: resize\n",
                 "files\ndecode close\nfilter\nidentity\nrename\nresize <decode close");
}

TEST(what_spans_records_is_given_made_values)
{
    check_groups("",
                 "  - record.filter: {expr: \"image.width > 4\"}\n    name: filter\n"
                 "  - order.shuffle: {window: 4}\n    name: window\n" RESIZE BATCH,
                 "files\ndecode close\nfilter\nwindow *\nresize\nbatch *");
}

TEST(each_branch_of_a_fork_continues_the_group)
{
    check_groups("",
                 RESIZE "    inputs: [decode]\n" FLIP "    inputs: [decode]\n"
                        "  - flow.zip: {prefix: [a_, b_]}\n    name: zip\n"
                        "    inputs: [resize, flip]\n"
                        "  - image.gaussian_blur: {size: 3, field: b_image}\n"
                        "    name: blur\n"
                        "  - image.resize: {size: 8, field: b_image}\n    name: small\n"
                        "  - image.flip: {field: a_image}\n    name: last\n",
                 "files\ndecode close\nresize <decode close\nflip <decode close\nzip\n"
                 "blur !b_image\nsmall\nlast <decode close");
}

TEST(what_is_no_image_is_in_no_group)
{
    struct hr_graph *graph = NULL;
    static const char text[] =
        HEAD RANGE "  - tensor.cast: {field: value, dtype: int32}\n    name: cast\n";

    CHECK_OK(hr_graph_parse(text, sizeof text - 1, "test.yaml", NULL, 0, &graph, NULL));
    CHECK_EQ_STR(groups(frozen(graph)), "range\ncast");
    CHECK_EQ_STR(graph->nodes[1].reason, "");
    hr_graph_unref(graph);
}

TEST(reasons_name_the_field_and_the_head)
{
    struct hr_graph *graph = frozen(photos("", RESIZE NORMALIZE BLUR FLIP));
    static const char *const reasons[] = {
        "",
        "begins a description of 'image'",
        "composed with 'decode': only the window is decoded and resampled",
        "composed with 'decode': it is one multiply and add in the store",
        "needs pixels: 'image' is made before it, by the group of 'decode'",
        "begins a description of 'image'",
    };

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        CHECK_EQ_STR(graph->nodes[i].reason, reasons[i]);
    hr_graph_unref(graph);
}

/* ---- fingerprints ---- */

/* The fingerprint of decode, resize, blur with the rewrite "make" at `node`; 0: none. */
static struct hr_hash128 rewritten(const char *decode, uint32_t node)
{
    struct hr_graph *graph = photos(decode, RESIZE FLIP BLUR);
    struct hr_hash128 made;

    if (node > 0)
        CHECK_OK(hr__graph_make_after(graph, node));
    made = fingerprint(frozen(graph));
    hr_graph_unref(graph);
    return made;
}

TEST(a_rewrite_that_changes_bytes_makes_another_graph)
{
    CHECK(!same(rewritten("", 0), rewritten("", 1)));
    CHECK(!same(rewritten("", 0), rewritten("", 2)));
    CHECK(!same(rewritten("", 1), rewritten("", 2)));
    CHECK(!same(rewritten("mode: fast", 0), rewritten("mode: fast", 1)));
}

TEST(a_rewrite_that_changes_no_byte_leaves_the_fingerprint)
{
    for (uint32_t node = 1; node < 4; node++)
        CHECK(same(rewritten("mode: exact", 0), rewritten("mode: exact", node)));
    CHECK(
        same(rewritten("", 0), rewritten("", 4))); /* the blur's result is made anyway */
}

TEST(a_rewrite_ends_the_group)
{
    struct hr_graph *graph = photos("", RESIZE FLIP);

    CHECK_OK(hr__graph_make_after(graph, 1));
    CHECK_EQ_STR(groups(frozen(graph)), "files\ndecode close\nresize\nflip <resize");
    CHECK_EQ_INT(graph->rewrites[0].strictness, HR_STRICTNESS_CLOSE);
    CHECK_HAS(graph->nodes[1].reason, "rewrite 'make', close");
    CHECK(!hr__graph_may_split(graph, 1) && hr__graph_may_split(graph, 2));
    hr_graph_unref(graph);
}

TEST(a_failed_allocation_leaves_the_graph_to_be_frozen_again)
{
    for (uint64_t nth = 1;; nth++) {
        struct hr_graph *graph = photos("", RESIZE FLIP BLUR BATCH);
        enum hr_err code;

        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr_graph_freeze(graph, NULL);
        hr__fault_arm(0, 0);
        if (code == HR_OK) {
            hr_graph_unref(graph);
            return;
        }
        CHECK_EQ_INT(frozen(graph)->nodes[2].group, 1);
        hr_graph_unref(graph);
    }
}
