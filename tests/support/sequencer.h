/*
 * tests/support/sequencer.h - runs the hooks of an op that sees records in order
 * (op/sequence.h) without an engine: for the conformance test and the fuzzer.
 *
 * Record i is made from its number by the schema: numbers, lists, texts of differing
 * length. Included by single-file programs; its functions are static.
 */
#ifndef HR_TESTS_SEQUENCER_H
#define HR_TESTS_SEQUENCER_H

#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/str.h"
#include "graph/graph.h"
#include "op/op.h"
#include "op/ragged.h"
#include "store/store_memory.h"

/* Lists of five numbers. */
#define LISTS                                                                            \
    "headrace: 1\npipeline:\n  - source.range: {n: 100}\n"                               \
    "  - tensor.one_hot: {field: value, classes: 5}\n"                                   \
    "  - tensor.cast: {field: value, dtype: int32}\n"

/* Every op of the library that has sequence.add, as the last node of a graph. */
static const struct sequencer_case {
    const char *op, *text;
} sequencer_cases[] = {
    {"batch.bucket",  "headrace: 1\npipeline:\n  - source.list: {path: 'mem://lines'}\n"
                     "  - batch.bucket: {by: text, boundaries: [2, 4], size: 3}\n" },
    {"batch.bucket",  "headrace: 1\npipeline:\n  - source.list: {path: 'mem://lines'}\n"
                     "  - batch.bucket: {by: text, boundaries: [3], elements: 9}\n"},
    {"batch.pad",
     "headrace: 1\npipeline:\n  - source.range: {n: 100}\n  - batch.pad: {size: 4}\n"                  },
    {"batch.stack",
     "headrace: 1\npipeline:\n  - source.range: {n: 100}\n  - batch.stack: {size: 4}\n"                },
    {"batch.stack",   "headrace: 1\npipeline:\n  - source.list: {path: 'mem://lines'}\n"
                    "  - batch.stack: {size: 5, drop_last: true}\n"                 },
    {"flow.window",
     "headrace: 1\npipeline:\n  - source.range: {n: 100}\n  - flow.window: {size: 4}\n"                },
    {"flow.window",   "headrace: 1\npipeline:\n  - source.list: {path: 'mem://lines'}\n"
                    "  - flow.window: {size: 3, stride: 5, drop_last: false}\n"     },
    {"order.shard",   "headrace: 1\npipeline:\n  - source.range: {n: 100}\n"
                    "  - order.shard: {rank: 1, world: 3}\n"                        },
    {"order.shuffle", "headrace: 1\npipeline:\n  - source.range: {n: 100}\n"
                      "  - order.shuffle: {window: 6}\n"                          },
    {"order.skip",
     "headrace: 1\npipeline:\n  - source.range: {n: 100}\n  - order.skip: {count: 7}\n"                },
    {"order.take",
     "headrace: 1\npipeline:\n  - source.range: {n: 100}\n  - order.take: {count: 23}\n"               },
    {"tokens.pack",   LISTS "  - tokens.pack: {field: value, length: 16, bins: 2}\n"                   },
    {"tokens.pack",   LISTS "  - tokens.pack: {field: value, length: 4, bins: 3}\n"                    },
};
#undef LISTS
#define SEQUENCER_CASES (sizeof sequencer_cases / sizeof sequencer_cases[0])
#define SEQUENCER_OUTPUTS 256

struct sequencer {
    const struct hr_graph_node *node;
    const struct hr_schema *input;
    const struct hr_op_sequence *op;
    struct hr_pool *pool;
    void *state;
    bool ended;
    uint64_t outputs[SEQUENCER_OUTPUTS]; /* hashes */
    size_t count;
    struct hr_error error;
};

/* NULL when it cannot be made. */
static inline struct hr_graph *sequencer_graph(const struct sequencer_case *c)
{
    struct hr_graph *graph = NULL;

    if (hr__memory_put("mem://lines", "a\nb\n", 4, NULL) != HR_OK ||
        hr_graph_parse(c->text, strlen(c->text), "test.yaml", NULL, 0, &graph, NULL) !=
            HR_OK ||
        hr_graph_freeze(graph, NULL) != HR_OK) {
        hr_graph_unref(graph);
        return NULL;
    }
    return graph;
}

static inline void
sequencer_init(struct sequencer *s, const struct hr_graph *graph, struct hr_pool *pool)
{
    memset(s, 0, sizeof *s);
    s->node = &graph->nodes[graph->output];
    s->input = &graph->nodes[s->node->inputs[0]].schema;
    s->op = &s->node->op->sequence;
    s->pool = pool;
}

static inline enum hr_err sequencer_begin(struct sequencer *s, uint32_t epoch)
{
    struct hr_sequence_begin begin = {.params = s->node->params,
                                      .world = 1,
                                      .state = s->node->state,
                                      .input = s->input,
                                      .output = &s->node->schema,
                                      .pool = s->pool,
                                      .seed = 7,
                                      .draw_id = s->node->draw_id,
                                      .epoch = epoch,
                                      .error = &s->error};

    s->ended = false;
    s->count = 0;
    return s->op->begin(&begin, &s->state);
}

static inline bool sequencer_has_ended(const struct sequencer *s)
{
    return s->op->ended != NULL && s->op->ended(s->state);
}

static inline enum hr_err sequencer_restore(struct sequencer *s, const char *text)
{
    enum hr_err code = s->op->restore(s->state, text, &s->error);

    s->ended = code == HR_OK && sequencer_has_ended(s);
    return code;
}

static inline void sequencer_end(struct sequencer *s)
{
    if (s->state != NULL)
        s->op->end(s->state);
    s->state = NULL;
}

static inline uint64_t
sequencer_hash(const struct hr_sequence_record *record, size_t fields)
{
    uint64_t hash = hr__hash64(&record->id.position, sizeof record->id.position, 0);

    hash =
        hr__hash64(record->id.child, record->id.depth * sizeof record->id.child[0], hash);
    hash = hr__hash64(&record->records, sizeof record->records, hash);
    for (size_t f = 0; f < fields; f++) {
        const struct hr_value *v = &record->values[f];

        hash = hr__hash64(v->dims, v->ndim * sizeof v->dims[0], hash);
        hash = hr__hash64(v->data, v->bytes, hash);
        if (v->kind == HR_VALUE_RAGGED)
            hash = hr__hash64(v->u.ragged->splits[0], ((size_t)v->dims[0] + 1) * 8, hash);
    }
    return hash;
}

static inline void
sequencer_note(struct sequencer *s, struct hr_sequence_record *record, size_t fields)
{
    if (s->count == SEQUENCER_OUTPUTS)
        abort();
    s->outputs[s->count++] = sequencer_hash(record, fields);
}

static inline void sequencer_clear(struct hr_value *values, size_t count)
{
    for (size_t f = 0; f < count; f++)
        hr__value_clear(&values[f]);
}

static inline enum hr_err sequencer_drain(struct sequencer *s)
{
    size_t fields = s->node->schema.count;
    bool more = s->op->next != NULL;

    while (more) {
        struct hr_value values[HR_SCHEMA_FIELDS_MAX] = {0};
        struct hr_sequence_record record = {.values = values, .records = 1};
        bool any = false;
        enum hr_err code = s->op->next(s->state, &record, &any, &more, &s->error);

        if (code == HR_OK && any)
            sequencer_note(s, &record, fields);
        sequencer_clear(values, fields);
        if (code != HR_OK)
            return code;
    }
    return HR_OK;
}

static inline enum hr_err
sequencer_value(struct sequencer *s, const struct hr_field *field, int64_t number,
                struct hr_value *ret_value)
{
    struct hr_buffer *buffer;
    size_t bytes = field->kind == HR_FIELD_BYTES ? (size_t)(number % 5)
                                                 : (size_t)hr__field_bytes(field);
    enum hr_err code = hr_pool_get(s->pool, bytes, &buffer);

    if (code != HR_OK)
        return code;
    memset(hr_buffer_data(buffer), (int)(number % 100), bytes);
    if (field->kind == HR_FIELD_BYTES)
        hr__value_set_bytes(ret_value, hr_buffer_data(buffer), bytes, buffer);
    else
        hr__value_set_tensor(ret_value, field->dtype, field->ndim,
                             &(int64_t){field->dims[0].size}, hr_buffer_data(buffer),
                             buffer);
    return HR_OK;
}

/* Input number `number`, and all outputs that follow from it. */
static inline enum hr_err sequencer_add(struct sequencer *s, int64_t number)
{
    struct hr_value values[HR_SCHEMA_FIELDS_MAX] = {0};
    struct hr_sequence_record record = {
        .values = values,
        .id = {.seed = 7, .position = (uint64_t)number, .index = (uint64_t)number},
        .records = 1
    };
    enum hr_sequence_verdict verdict = HR_SEQUENCE_DROP;
    enum hr_err code = HR_OK;

    if (s->ended)
        return HR_OK;
    for (size_t f = 0; f < s->input->count && code == HR_OK; f++)
        code = sequencer_value(s, &s->input->fields[f], number, &values[f]);
    if (code == HR_OK)
        code = s->op->add(s->state, &record, &verdict, &s->error);
    if (code == HR_OK && verdict == HR_SEQUENCE_PASS)
        sequencer_note(s, &record, s->input->count);
    sequencer_clear(values, s->input->count);
    s->ended = sequencer_has_ended(s);
    return code == HR_OK && verdict == HR_SEQUENCE_READY ? sequencer_drain(s) : code;
}

static inline enum hr_err sequencer_flush(struct sequencer *s)
{
    enum hr_err code = HR_OK;

    if (s->op->flush != NULL)
        code = s->op->flush(s->state, HR_FLUSH_EPOCH, &s->error);
    return code == HR_OK ? sequencer_drain(s) : code;
}

/* False while it holds what it cannot write down. */
static inline bool sequencer_save(const struct sequencer *s, struct hr_str *out)
{
    return hr__sequence_save(s->op, s->state, out);
}

#endif
