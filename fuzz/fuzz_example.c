/*
 * fuzz/fuzz_example.c - any bytes as a tf.train.Example: every feature is read whole,
 * into as much memory as its count says.
 */
#include "codec/example.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_example_feature feature;
    struct hr_example_walk walk;

    hr__example_begin(&walk, data, bytes);
    while (hr__example_next(&walk, &feature)) {
        int64_t count = hr__example_count(&feature);
        void *memory;

        if (count < 0 || feature.kind == HR_EXAMPLE_NONE)
            continue;
        if ((uint64_t)count > bytes)
            abort(); /* an item takes a byte at least */
        memory = calloc((size_t)count, feature.kind == HR_EXAMPLE_FLOATS ? sizeof(float)
                                       : feature.kind == HR_EXAMPLE_INTS
                                           ? sizeof(int64_t)
                                           : sizeof(struct hr_proto_bytes));
        if (memory == NULL)
            continue;
        if (feature.kind == HR_EXAMPLE_INTS)
            hr__example_ints(&feature, memory);
        else if (feature.kind == HR_EXAMPLE_FLOATS)
            hr__example_floats(&feature, memory);
        else
            hr__example_strings(&feature, memory);
        free(memory);
    }
    return 0;
}
