/*
 * op/op.h - the contract of an operator.
 *
 * An operator is one file with one global symbol: a const struct hr_op, and one line in
 * ops/ops.def. It declares its parameters (op/param.h), its traits, how it changes the
 * schema, and what it does to one record. The optimizer and the engine read nothing else:
 * a pass or an executor that asks for an op by name is a bug.
 *
 * An op is called by many threads at once. It sees its parameters and its state (both
 * read-only once opened, or locked by itself), the record's bound fields, a thread
 * context for scratch, and a stream of random numbers that belongs to (seed, epoch,
 * record, node). It keeps nothing between records.
 */
#ifndef HR_OP_OP_H
#define HR_OP_OP_H

#include "core/arena.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/rng.h"
#include "headrace/graph.h"
#include "op/param.h"
#include "op/record_id.h"
#include "op/schema.h"
#include "op/sequence.h"
#include "op/value.h"

/* What happens to the number of records. */
enum hr_op_kind {
    HR_OP_SOURCE,   /* makes records out of an index */
    HR_OP_ORDER,    /* chooses and orders records by number, looks at none */
    HR_OP_MAP,      /* one to one */
    HR_OP_FILTER,   /* one to one or none */
    HR_OP_EXPAND,   /* one to any number; children are numbered */
    HR_OP_SEQUENCE, /* many to many, in order: batches, packers, windows */
    HR_OP_ZIP,      /* one of each input to one */
    HR_OP_MERGE,    /* one of one input: chosen by number */
};

/*
 * Traits: what the optimizer may believe of an op. What is not said is not so. Each is
 * read by a pass or checked for every op in ops_traits_test.c and pixel_traits_test.c,
 * most by both. Every op is PURE or RANDOM.
 */
enum hr_trait {
    HR_TRAIT_PURE = 1 << 0,   /* the same fields in give the same fields out */
    HR_TRAIT_RANDOM = 1 << 1, /* draws from the record's stream, else pure */

    /* MAP ops on images: how a pixel of the result comes about. */
    HR_TRAIT_POINTWISE = 1 << 2, /* from the same pixel, all of its channels */
    HR_TRAIT_AFFINE = 1 << 3, /* POINTWISE, and per channel x * a + b: may join a store */
    HR_TRAIT_GEOMETRIC = 1 << 4,  /* it is a pixel of the input, and no other one's */
    HR_TRAIT_RESAMPLING = 1 << 5, /* interpolated between pixels */

    HR_TRAIT_DTYPE = 1 << 6,  /* may change the dtype of a field */
    HR_TRAIT_LAYOUT = 1 << 7, /* may change the order of dimensions */

    HR_TRAIT_DECODES = 1 << 8,    /* bytes to a deferred tensor, in windows */
    HR_TRAIT_DEFERS = 1 << 9,     /* a deferred input stays so: at most its description is
                                     edited */
    HR_TRAIT_ZERO_COPY = 1 << 10, /* the result shows the input's bytes, or the file's */

    /* Bytes of a record, or of an epoch, with usual parameters. */
    HR_TRAIT_SHRINKS = 1 << 11, /* fewer after it than before */
    HR_TRAIT_GROWS = 1 << 12,   /* more */

    HR_TRAIT_IDENTITY = 1 << 13, /* changes nothing at all */
    HR_TRAIT_SHARDS = 1 << 14,   /* ORDER: splits the records over ranks; must be the last
                                    ORDER op */
    HR_TRAIT_BATCHED = 1 << 15,  /* takes batches as well as records */
    HR_TRAIT_TEST_ONLY = 1 << 16, /* debug.*: listed only when asked for */

    /* MAP ops on images, too: interpolated between pixels, and filled where there are
     * none. */
    HR_TRAIT_WARPS = 1 << 17,
    HR_TRAIT_CROPS = 1 << 18, /* from a part of the image: the rest changes nothing */
};

struct hr_op;

/* ---- before any data: schema ---- */

struct hr_infer {
    const struct hr_op *op;
    const void *params;
    const struct hr_schema *inputs; /* input_count of them */
    size_t input_count;
    struct hr_schema
        *output; /* starts as a copy of inputs[0]; empty for a source. Written fields are
                  * already there (zeroed when new), taken ones still are */
    struct hr_field *
        *fields; /* the op's bound fields in `output`, in table order, FIELDS unrolled */
    size_t field_count;
    struct hr_error *error; /* never NULL; node, op are filled in by the caller */
    const void *state;      /* what prepare made, or NULL; once the graph is
                             * frozen, what open() made */
};

/* Fields that an op binds by itself; see hr_op.binds. */
struct hr_binding {
    char name[HR_FIELD_NAME_MAX + 1];
    enum hr_param_access access;
};
#define HR_BINDINGS_MAX (2 * HR_SCHEMA_FIELDS_MAX)
struct hr_bindings {
    size_t count;
    struct hr_binding items[HR_BINDINGS_MAX];
};

/* One more binding; HR_ERR_LIMIT beyond HR_BINDINGS_MAX. */
HR_CHECK enum hr_err hr__bind(struct hr_bindings *bindings, const char *name,
                              enum hr_param_access access, struct hr_error *error);

/* ---- per record ---- */

/* An object that a thread keeps between records, made on first use (a decoder, tables).
 */
struct hr_thread_class {
    const char *name;
    HR_CHECK enum hr_err (*create)(void **ret_object, struct hr_error *reterr);
    void (*destroy)(void *object);
};

struct hr_charge;
struct hr_reader;
struct hr_range; /* store/store.h */

/* A thread's private things. The engine owns it. */
struct hr_thread {
    struct hr_arena arena;    /* until the record is delivered */
    struct hr_reader *reader; /* ranges of objects, page-cached or read ahead; NULL in a
                                 worker process, where no source reads */
    struct hr_pool *pool;     /* buffers that outlive the record */
    bool describes; /* records are only described: forcing a deferred value fails and
                       clears this */
    bool surveys;   /* ops draw what takes the most memory, not what is the record's */
    /* 1 + the node that asked for what a deferred value could not be made of: the error
     * of its force is that node's. 0: none; who reads it sets it back. */
    uint32_t failed_node;
    struct hr_thread_object *objects;
    struct hr_charge *charges; /* per node; NULL when this record is not timed. See
                                  op/thread.h, as for the rest */
    uint32_t charge_node;
    bool charge_clock;
    uint64_t charge_since, charge_cpu_since;
    uint64_t charge_price, charge_cpu_price;
    /* Or NULL. Called with each part of a timed record; begin and end in ticks. */
    void (*part)(struct hr_thread *thread, uint32_t node, uint64_t begin, uint64_t end);
};

/* The thread's object of this class. */
HR_CHECK enum hr_err
hr__thread_object(struct hr_thread *thread, const struct hr_thread_class *class,
                  void **ret_object, struct hr_error *reterr);

/* While a deferred value is forced, time belongs to the node that asked for that part.
 * Ends the running part and begins one of `node`. Costs nothing when the record is not
 * timed. */
void hr__thread_charge(struct hr_thread *thread, uint32_t node);

struct hr_when; /* op/when.h */

/* Where a result is stored in the end. */
struct hr_op_place {
    void *data; /* NULL: not known */
    size_t bytes;
};

struct hr_op_ctx {
    const void *params;
    void *state; /* made by open(); NULL without */
    struct hr_value *
        *fields; /* bound fields in table order; WRITE fields that are new are NONE */
    size_t field_count;
    struct hr_op_place *places; /* of the fields' new values; NULL: of none */
    const struct hr_record_id *id;
    struct hr_thread *thread;
    uint32_t node;              /* number of the node in its graph */
    uint64_t draw_id;           /* stable id of the node, the key of its draws */
    const struct hr_when *when; /* the draws that decide whether it runs (op/when.h) */
    size_t when_count;
    bool drop;              /* FILTER, and a SOURCE that drops, sets it: the record ends
                               here */
    struct hr_error *error; /* never NULL */
};

/* The record's stream of random numbers for this node. */
void hr__op_rng(const struct hr_op_ctx *ctx, struct hr_rng *ret_rng);

/* Arena memory for results and scratch; on failure sets ctx->error. */
HR_CHECK enum hr_err hr__op_alloc(struct hr_op_ctx *ctx, size_t bytes, void **ret_memory);

/* Memory for the new value of bound field `field`, all of it, without an owner: in the
 * batch if the record's place there is known, else in the arena. Only aligned to the
 * elements. The op sets `placed`. */
HR_CHECK enum hr_err
hr__op_result(struct hr_op_ctx *ctx, size_t field, size_t bytes, void **ret_memory);

/* ---- state ---- */

struct hr_code_table; /* op/code_table.h */
struct hr_code_use;

enum hr_key_type {
    HR_KEY_TEXT,    /* also names of classes and files */
    HR_KEY_INTEGER, /* in decimal */
    HR_KEY_OTHER,   /* such as floats */
};

/* What the records of an input are known by before they are read. */
struct hr_keys {
    uint64_t count; /* records */
    const char *of; /* name of the input */
    enum hr_key_type type;
    /* Replaces *key by the key of the record at position `at` (< count).
     * HR_ERR_NOT_FOUND if the record has no such value, HR_ERR_FORMAT if it is damaged or
     * a step that makes the key fails: *key is then what it is known by all the same. */
    HR_CHECK enum hr_err (*get)(const struct hr_keys *keys, uint64_t at,
                                struct hr_str *key, struct hr_error *error);
};

/* What an op's open() may look at. */
struct hr_open {
    const void *params;
    const struct hr_schema *input;  /* of the first input; NULL for a source */
    const struct hr_schema *output; /* after the node */
    struct hr_code_table *codes;    /* the code that the graph was given */
    const char *side_file;          /* of the nearest node above that has one, or NULL */
    void *twin; /* state of another node of this op, below the same source,
                   that is open already; or NULL. For what they share. */
    /* Of an op with order.by the keys of its input, with zip.by those of each; else NULL.
     */
    const struct hr_keys *const *keys;
    struct hr_error *error; /* never NULL */
};

/* What a node learnt from records, for later ones. */
struct hr_kept {
    uint64_t entries, bytes;
    uint64_t hits, misses; /* times that one was looked for */
};

/* Count of a SOURCE whose number of records is known only at its end. */
#define HR_COUNT_UNKNOWN (UINT64_MAX >> 2)

/* ---- hooks by what an op is ---- */

/* Records that hr_op_source.apply_rows makes. */
struct hr_source_rows {
    const uint64_t *indices; /* `count` of them, in any order */
    uint32_t count;
    /* By bound field. A field with a column has a fixed size: its bytes of record i go to
     * columns[f] + i * hr__field_bytes(). Without (NULL) the value of record i is
     * values[f][i * stride], NONE on entry. Neither: a field that infer() removed. */
    char *const *columns;
    struct hr_value *const *values;
    size_t stride;
};

/* SOURCE: an op that makes records out of an index. */
struct hr_op_source {
    /* What was found when the source was opened, for people; NULL: nothing to say. The
     * text is the state's. */
    const char *(*note)(const void *state);
    /* The parameter that fixes the names of the classes that it found (a list), so that a
     * printed graph has them; NULL: none. */
    const char *classes_param;
    bool (*open_ended)(const void *params); /* count gives HR_COUNT_UNKNOWN; may be NULL
                                             */
    uint64_t (*count)(const void *params, const void *state);
    /* Whether apply() may drop records, as that of a FILTER does; NULL: never. Then count
     * gives the records that it is called for. */
    bool (*drops)(const void *params);
    /* Optional: makes many records in one call, with the bytes that apply() gives, where
     * no step follows and none is dropped. Returns how many, from the first on, are made;
     * apply() is then called for the one after them, and reports its error if it is bad.
     * Values may lie in the thread's arena. `id` and `fields` of the context are not set.
     */
    uint32_t (*apply_rows)(struct hr_op_ctx *ctx, const struct hr_source_rows *rows);
    /* The values of apply_rows have owners where they are long, so a call may be for more
     * of them than the arena has room for. */
    bool rows_own;
    /* Where a record lies, as a URI and an offset in bytes; false when it lies in no
     * object. */
    bool (*locate)(const void *params, const void *state, uint64_t index, char *uri,
                   size_t room, uint64_t *ret_offset);
    /* The URI of file `at`, from 0, of those that apply() reads for record `index` beside
     * the one that locate() names; false: no more. NULL: none. */
    bool (*beside)(const void *params, const void *state, uint64_t index, int at,
                   char *uri, size_t room);
    /* Part `part`, from 0, of what apply() will read for record `index`, so that the
     * engine can fetch it early; false: no more. NULL for sources that read nothing
     * record by record. */
    bool (*ahead)(const void *params, const void *state, uint64_t index, int part,
                  struct hr_range *ret_range);
    /* Bytes of what apply() will read for record `index`, where they are known without
     * reading it; 0: they are not. NULL: what `ahead` says. */
    uint64_t (*size)(const void *params, const void *state, uint64_t index);
    /* What a record is known by before it is read: the name of the i-th such key ("path",
     * fields such as "label"), NULL after the last. NULL: only by its number. */
    const char *(*key_name)(const void *params, const void *state, size_t i);
    /* Whether the records are files in the order of their names, not in one that the user
     * gave. NULL: no. */
    bool (*in_name_order)(const void *params);
    /* Its key "path" is below its folder, and so not the text of its field "path". */
    bool path_below;
    /* Appends the i-th key of record `index`, a text: that of a number is decimal, that
     * of a class its name, so that it stays the same when records are added.
     * HR_ERR_NOT_FOUND: the record has no such value; HR_ERR_FORMAT: it is damaged. What
     * was appended is then what it is known by all the same. */
    HR_CHECK enum hr_err (*key)(const void *params, const void *state, size_t i,
                                uint64_t index, struct hr_str *out,
                                struct hr_error *error);
};

/* ORDER: an op that chooses records by number. */
struct hr_op_order {
    /* How many of n records remain; n < HR_COUNT_UNKNOWN. */
    uint64_t (*count)(const void *params, const void *state, uint64_t n);
    /* The name of the key that records are chosen by, a field of theirs, one of their
     * source's or "index", their number there, and of the parameter that says so; open()
     * then gets the keys. It gives NULL if only their count is asked for. Nothing before
     * such an op may order at random. NULL: they are chosen by position. */
    const char *(*by)(const void *params, const char **ret_param);
    /* With `by`: whether both states choose the same positions. */
    bool (*same)(const void *state, const void *other);
    /* Which input position the output position `at` is. Reads seed and draw_epoch of
     * `id`; may change draw_epoch (repeat). `state` is open()'s, `draw_id` the node's. */
    uint64_t (*map)(const void *params, void *state, uint64_t n, uint64_t at,
                    struct hr_record_id *id, uint64_t draw_id);
    /* RANDOM: with these parameters the draws do not depend on `draw_id`, so that nodes
     * with equal parameters give equal numbers of records the same order. NULL: never. */
    bool (*draws_by_params)(const void *params);
    /* Passes over the records in an epoch, by whose number map multiplies draw_epoch.
     * NULL: one. */
    uint64_t (*passes)(const void *params);
    /* SHARDS: this rank, and the number of ranks. */
    void (*share)(const void *params, uint64_t *ret_rank, uint64_t *ret_world);
};

/* ZIP: an op that joins one record of each input. */
struct hr_op_zip {
    /* Inputs in different random orders are meant. NULL: they are refused. */
    bool (*unpaired)(const void *params);
    /* The name of the key by which records of input `input` are joined, as in
     * hr_op_order.by; open() then gets the keys.
     * Nothing before such an op may order at random, and its records have numbers of
     * their own. NULL: joined by position. */
    const char *(*by)(const void *params, size_t input, const char **ret_param);
    /* With `by`: how many records there are. */
    uint64_t (*count)(const void *state);
    /* With `by`: the position in `input` of the record that is joined into number `at`;
     * HR_INDEX_NONE: an optional input has none. */
    uint64_t (*map)(const void *state, size_t input, uint64_t at);
    /* With `by`: whether some records have none of the input; never the first. NULL: all
     * have one of each. */
    bool (*optional)(const void *params, size_t input);
    /* Makes, in the arena, the value of field number `field` of the output, which is that
     * of an optional input without a record. Called before apply(). */
    HR_CHECK enum hr_err (*fill)(struct hr_op_ctx *ctx, size_t field,
                                 struct hr_value *value);
};

/* The inputs of a MERGE. */
struct hr_merge_inputs {
    const uint64_t *counts; /* records of each */
    size_t count;
};

/* MERGE: an op whose every record is one of one of its inputs. It has no apply. */
struct hr_op_merge {
    /* How many records there are. */
    HR_CHECK enum hr_err (*count)(const void *params,
                                  const struct hr_merge_inputs *inputs,
                                  uint64_t *ret_count, struct hr_error *error);
    /* Which record of which input the output position `at`, of n, is. Reads seed and
     * draw_epoch of `id`; with `passes`, changes draw_epoch. */
    size_t (*map)(const void *params, const struct hr_merge_inputs *inputs, uint64_t n,
                  uint64_t passes, uint64_t at, struct hr_record_id *id, uint64_t draw_id,
                  uint64_t *ret_at);
    /* Most passes over an input in an epoch of n records, by which map multiplies
     * draw_epoch. NULL: one. */
    uint64_t (*passes)(const void *params, const struct hr_merge_inputs *inputs,
                       uint64_t n);
    /* As in struct hr_op_order. */
    bool (*draws_by_params)(const void *params);
    /* Records of the inputs alternate, so parameters and counts decide which is where. */
    bool alternates;
};

/* EXPAND: an op that makes many records of one. */
struct hr_op_expand {
    /* Number of children of the record in the fields. */
    HR_CHECK enum hr_err (*count)(struct hr_op_ctx *ctx, uint64_t *ret_count);
    /* Make child `at` of it: `parents` are the fields of the input schema in order (all
     * made), `children` the `count` fields of the output schema, NONE on entry. All of
     * them are to be made: in the arena, or showing a parent's bytes with a reference to
     * its owner. */
    HR_CHECK enum hr_err (*child)(struct hr_op_ctx *ctx, uint64_t at,
                                  const struct hr_value *parents,
                                  struct hr_value *children, size_t count);
};

/* An op whose state learns from records what makes later ones cheaper. */
struct hr_op_learner {
    /* A file beside the data in which nodes below may keep what they learn about it;
     * NULL: none. Sources have it; the others use it (hr_open.side_file). */
    const char *(*side_file)(const void *params);
    /* An iterator over the graph has ended: write down what was learnt. Other iterators
     * may run. */
    void (*rest)(void *state);
    /* An epoch has ended and more follow: the same without making anyone wait. */
    void (*pause)(void *state);
    /* What the state holds of what it learnt. */
    void (*keeps)(const void *state, struct hr_kept *ret_kept);
    /* Appends a line for explain about what the state holds; nothing when there is
     * nothing to say. */
    void (*tell)(const void *state, struct hr_str *out);
    /* Appends what the user of a run should know and would not expect; mostly nothing. */
    void (*warn)(const void *state, struct hr_str *out);
};

/* What an op with hr_op_cache knows of a record. */
enum hr_cached {
    HR_CACHED_NO,
    HR_CACHED_YES,
    HR_CACHED_DROPPED, /* a node before this one dropped it */
};

/* Memory that a node's state keeps between records, in bytes. */
struct hr_op_kept {
    uint64_t fixed;  /* tables that stay */
    uint64_t least;  /* of its cache: less would not work */
    uint64_t most;   /* of its cache: what it is worth in a run with this budget */
    uint64_t thread; /* of each thread that runs records, beside its arena */
};

/*
 * An op whose state keeps more than a few kB: a cache, an index, windows of threads. A
 * run with a memory budget counts it, and divides what it has for caches among them.
 */
struct hr_op_memory {
    /* Members are zeros on entry. Sizes that depend on the data are the largest seen so
     * far. Any thread. NULL: little. */
    void (*kept)(const void *params, const void *state, uint64_t budget,
                 struct hr_op_kept *ret_kept);
    /* From now on the cache keeps at most this; UINT64_MAX: what its parameters say. Any
     * thread; of several runs the last one decides. NULL: it has no such cache. */
    void (*limit)(const void *params, void *state, uint64_t bytes);
};

/* What the cache of a source is worth in a run with a budget: `most` is its parameter. */
static inline uint64_t hr__cache_worth(uint64_t most, uint64_t budget)
{
    return most < budget / 2 ? most : budget / 2;
}

/* What it may keep: hr_op_memory.limit. */
static inline uint64_t hr__cache_limit(uint64_t most, uint64_t bytes)
{
    return most < bytes ? most : bytes;
}

#define HR_DRAWS_ONCE UINT32_MAX

/* What a cache's records are. */
struct hr_cache_of {
    struct hr_hash128
        fingerprint; /* of what makes them; orders of records do not count */
    bool drawn;      /* at random: they differ by seed and draw_epoch, too */
    bool stamped;    /* of files: they differ by stamp, too */
};

/*
 * MAP: an op that remembers the records that pass it, bound to all fields. apply()
 * remembers one. Before the first step that runs only for this node, the engine asks
 * find(): if it knows the record, none of the steps up to this node run. All are called
 * by any thread.
 */
struct hr_op_cache {
    /* The graph is frozen. NULL for an op that is no cache. */
    void (*begin)(void *state, const struct hr_cache_of *of);
    /* An iterator is opened. `bytes` may be taken of memory; 0: it has no budget. */
    HR_CHECK enum hr_err (*start)(void *state, uint64_t bytes, struct hr_error *error);
    /* Whether its records are to be known by the files that they are made of, too, so
     * that a file which was overwritten is read again. */
    bool (*stamps)(const void *params);
    /* Sets the bound fields to those of record ctx->id if it is known. */
    enum hr_cached (*find)(struct hr_op_ctx *ctx);
    /* Whether find() would know the record. */
    bool (*holds)(void *state, const struct hr_record_id *id);
    /* The record of the context was dropped before this node. */
    void (*dropped)(struct hr_op_ctx *ctx);
    /* For how many epochs random draws before the node stay the same; 0: there may be
     * none; HR_DRAWS_ONCE: all. */
    uint32_t (*draws_for)(const void *params);
};

/* ---- the descriptor ---- */

struct hr_op {
    const char *name;    /* "image.crop" */
    const char *summary; /* one line for lists */
    const char *doc;     /* Markdown for the op's page: semantics, differences from
                            torchvision; may be NULL */
    uint32_t version;    /* part of the fingerprint: bump it when output bytes change */
    enum hr_op_kind kind;
    uint32_t traits;
    const struct hr_param *params;
    size_t param_count, params_size;
    size_t inputs_min, inputs_max; /* 0, 0 means: none for SOURCE, else 1 */

    /* Checks what the table cannot and the parameters alone decide, such as a sum, when
     * the node is added. On failure error->param names the parameter. NULL: nothing. */
    HR_CHECK enum hr_err (*check)(const void *params, struct hr_error *error);

    /* Makes the state that the schema follows from (the columns of a table), before binds
     * and infer; open, if there is one, completes it. NULL: the parameters suffice. */
    HR_CHECK enum hr_err (*prepare)(const void *params, void **ret_state,
                                    struct hr_error *error);

    /* Check what needs the input (relations between parameters and fields, shapes,
     * meanings), and turn the input schema into the output schema. */
    HR_CHECK enum hr_err (*infer)(struct hr_infer *infer);

    /* Fields that the op touches although no FIELD parameter names them (those of an
     * expression); they are bound after the table's. `state` is what prepare made,
     * or NULL; `input` is NULL for a source. NULL: none. */
    HR_CHECK enum hr_err (*binds)(const void *params, const void *state,
                                  const struct hr_schema *input,
                                  struct hr_bindings *bindings, struct hr_error *error);

    /* Make shared read-only state out of the parameters; NULL when none is needed.
     * *ret_state is what prepare made, or NULL, and stays as it is on failure.
     * close gets what either made, never NULL. Sources look at their data here. */
    HR_CHECK enum hr_err (*open)(const struct hr_open *open, void **ret_state);
    void (*close)(void *state);

    /* Hashes what output bytes depend on beside the parameters: names, sizes or content
     * of a source's data, the identity of the user's code. NULL: nothing. */
    void (*identity)(const void *params, const void *state, struct hr_hasher *hasher);

    /* MAP: apply takes memory for tensors that it makes from hr__op_result. */
    bool placed;

    /* SOURCE, MAP, FILTER, ZIP: do one record. On failure ctx->error is set and fields
     * are in any valid state. */
    HR_CHECK enum hr_err (*apply)(struct hr_op_ctx *ctx);

    /* DEFERS: how a value that is made after later edits of its description differs from
     * one that is made at once and edited then, in the group that this node heads: a
     * photo that is decoded at a reduced scale because a resize follows. NULL: not at
     * all. */
    enum hr_strictness (*composes)(const void *params);

    /* DEFERS: pixels that apply may make all the same of an image with this field, in
     * bytes; NULL: none. */
    uint64_t (*frames)(const void *params, struct hr_field *field);

    /* MAP of images whose sides infer leaves open: turns the largest sides before the
     * node into the largest after it. With `one` they are of one image; else of all, the
     * tallest and the widest. NULL: none is longer than the diagonal before. */
    void (*largest)(const void *params, bool one, int64_t *height, int64_t *width);

    /* The user's code, for ops that are nothing else: then apply and expand are NULL
     * and the engine makes the calls, a run of records at a time (op/code_table.h). */
    const struct hr_code_use *(*code)(const void *state);

    struct hr_op_source source;
    struct hr_op_order order;
    struct hr_op_zip zip;
    struct hr_op_merge merge;
    struct hr_op_expand expand;
    struct hr_op_sequence sequence; /* SEQUENCE; ORDER where the count is not known */
    struct hr_op_learner learner;
    struct hr_op_cache cache; /* MAP */
    struct hr_op_memory memory;
};

/* ---- registry ---- */

/* All ops in order of name; count. */
const struct hr_op *const *hr__op_list(size_t *ret_count);
const struct hr_op *hr__op_find(const char *name);

/* Whether the op can run in another process or on another machine: what it does follows
 * from its parameters, the record and the record's identity. Not so: ops that order,
 * join, batch or remember records, sources that look at data when they are opened, and
 * user code, which goes to another process by its name. */
bool hr__op_is_portable(const struct hr_op *op);

/* Whether apply() may drop records. */
bool hr__op_drops(const struct hr_op *op, const void *params);

/* Fails with the nearest name. */
HR_CHECK enum hr_err
hr__op_get(const char *name, const struct hr_op **ret_op, struct hr_error *reterr);

/* MERGE: checks that all inputs have the fields of the first, and makes new values of
 * them. */
HR_CHECK enum hr_err hr__infer_merge(struct hr_infer *infer);

/* Removes a bound field from the output, for optional fields of a source. Later fields
 * move up, so pointers in `fields` to them are no longer valid. */
void hr__infer_remove(struct hr_infer *infer, size_t field);

/* Helpers for infer functions: each fails with a message that names field and op. */
HR_CHECK enum hr_err
hr__infer_image(struct hr_infer *infer, size_t field); /* any image */
HR_CHECK enum hr_err
hr__infer_levels(struct hr_infer *infer, size_t field); /* image, not normalised */
/* That the least number of an interval, [least, most] or [both], is not above the other.
 */
HR_CHECK enum hr_err hr__infer_order(struct hr_infer *infer, const char *param,
                                     const struct hr_floats *interval);
HR_CHECK enum hr_err
hr__infer_fail(struct hr_infer *infer, const char *param, enum hr_err code,
               const char *format, ...) HR_PRINTF(4, 5);

#define HR_PARAMS(table, type)                                                           \
    .params = (table), .param_count = sizeof(table) / sizeof((table)[0]),                \
    .params_size = sizeof(type)

#endif
