/*
 * codec/example.h - tf.train.Example: named lists of bytes, floats or integers, in the
 * wire format of Protocol Buffers (tensorflow/core/example/feature.proto).
 *
 * Pure functions on bytes: nothing is allocated, and nothing is read outside of them.
 */
#ifndef HR_CODEC_EXAMPLE_H
#define HR_CODEC_EXAMPLE_H

#include "codec/proto.h"

enum hr_example_kind {
    HR_EXAMPLE_NONE, /* an empty feature */
    HR_EXAMPLE_BYTES,
    HR_EXAMPLE_FLOATS,
    HR_EXAMPLE_INTS,
};

struct hr_example_feature {
    struct hr_proto_bytes name;
    enum hr_example_kind kind;
    struct hr_proto_bytes list;
};

/* A walk over the features of an example, in its order. */
struct hr_example_walk {
    struct hr_proto_bytes example, features;
    bool malformed; /* the walk ended there */
};
void hr__example_begin(struct hr_example_walk *walk, const void *data, size_t bytes);
/* False at the end. A name that comes twice means its last feature. */
bool hr__example_next(struct hr_example_walk *walk,
                      struct hr_example_feature *ret_feature);

/* Items of a feature; -1 if its list is malformed. */
int64_t hr__example_count(const struct hr_example_feature *feature);

/* Store the items of a feature of that kind, of which hr__example_count() says how many
 * there are. */
void hr__example_ints(const struct hr_example_feature *feature, int64_t *to);
void hr__example_floats(const struct hr_example_feature *feature, float *to);
void hr__example_strings(const struct hr_example_feature *feature,
                         struct hr_proto_bytes *to);

#endif
