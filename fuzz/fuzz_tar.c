/*
 * fuzz/fuzz_tar.c - any bytes as a tar archive. With an odd first byte the checksums of
 * all blocks that may be headers are made right first. What the index finds is parsed.
 */
#include "core/alloc.h"
#include "store/store_memory.h"
#include "store/tar.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void repair(char *text, size_t bytes)
{
    for (size_t at = 0; at + HR_TAR_BLOCK <= bytes; at += HR_TAR_BLOCK) {
        unsigned sum = ' ' * 8;

        if (memcmp(text + at + 257, "ustar", 5) != 0)
            continue;
        for (size_t i = 0; i < HR_TAR_BLOCK; i++)
            sum += i >= 148 && i < 156 ? 0 : (unsigned char)text[at + i];
        snprintf(text + at + 148, 8, "%06o", sum);
    }
}

static void parse_record(const char *text, uint64_t bytes)
{
    struct hr_tar_member member;
    size_t need, key, ending;

    for (uint64_t at = 0; at < bytes; at += member.next) {
        if (hr__tar_parse(text + at, (size_t)(bytes - at), &member, &need, NULL) != HR_OK)
            return;
        assert(member.name_bytes < HR_TAR_NAME_MAX && member.next >= member.data);
        if (hr__tar_key(&member, &key, &ending) && key + 1 + ending != member.name_bytes)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char uri[] = "mem://fuzz.tar";
    struct hr_shard_index *index;
    char *text;

    if (bytes < 1 || (text = malloc(bytes - 1)) == NULL)
        return 0;
    memcpy(text, data + 1, --bytes);
    if (data[0] % 2 == 1)
        repair(text, bytes);
    if (hr__memory_put(uri, text, bytes, NULL) == HR_OK &&
        hr__shard_index_open(uri, ".tar", hr__tar_scan, NULL, NULL, NULL, &index, NULL) ==
            HR_OK) {
        for (uint64_t i = 0; i < hr__shard_index_count(index); i++) {
            struct hr_shard_place place;

            hr__shard_index_place(index, i, &place);
            if (place.offset > bytes || place.bytes > bytes - place.offset)
                abort();
            parse_record(text + place.offset, place.bytes);
        }
        hr__shard_index_close(index);
    }
    free(text);
    return 0;
}
