/*
 * fuzz/fuzz_record.c - any bytes as a block of records. The lengths and the schema's
 * hash are put right first, so that mutations reach the checks after them; accepted
 * values are read whole, described images are made.
 */
#include "core/alloc.h"
#include "op/ragged.h"
#include "op/thread.h"
#include "wire/record.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint64_t read_value(struct hr_thread *thread, struct hr_value *value)
{
    uint64_t sum = 0;

    if (value->kind == HR_VALUE_DEFERRED && hr__value_count(value) < 1 << 20 &&
        hr__value_force(thread, value, NULL, NULL) != HR_OK)
        return 0;
    if (value->kind != HR_VALUE_TENSOR)
        for (size_t i = 0; value->data != NULL && i < value->bytes; i++)
            sum += ((const uint8_t *)value->data)[i];
    if (value->kind == HR_VALUE_RAGGED)
        for (int64_t i = 0; i <= value->dims[0]; i++)
            sum += (uint64_t)value->u.ragged->splits[0][i];
    return sum;
}

static void read_block(const void *data, size_t bytes, struct hr_thread *thread)
{
    struct hr_value values[HR_SCHEMA_FIELDS_MAX];
    struct hr_wire_block block;
    struct hr_record_id id;
    volatile uint64_t sum = 0;

    if (hr__wire_block_open(&block, data, bytes, NULL, NULL, &thread->arena, 8, NULL) ==
        HR_OK)
        for (size_t i = 0; i < block.count && i < 16; i++) {
            if (hr__wire_block_get(&block, i, &id, values, NULL) != HR_OK)
                continue;
            for (size_t f = 0; f < block.layout.count; f++)
                sum += read_value(thread, &values[f]);
        }
    (void)sum;
    hr__wire_block_close(&block);
}

static void mend(uint8_t *data, size_t bytes)
{
    uint64_t length = bytes;
    struct hr_hash128 hash;
    uint32_t schema_bytes;

    memcpy(data + 16, &length, 8);
    memcpy(&schema_bytes, data + 32, 4);
    if (schema_bytes > bytes - 64)
        return;
    hash = hr__hash128(data + 64, schema_bytes);
    memcpy(data + 40, &hash.low, 8);
    memcpy(data + 48, &hash.high, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_thread thread = {0};
    uint8_t *copy = hr__aligned_alloc(64, bytes + 1);

    if (copy == NULL)
        return 0;
    memcpy(copy, data, bytes);
    if (bytes >= 64)
        mend(copy, bytes);
    hr__arena_init(&thread.arena);
    read_block(copy, bytes, &thread);
    hr__thread_objects_destroy(&thread);
    hr__arena_finish(&thread.arena);
    hr__free(copy);
    return 0;
}
