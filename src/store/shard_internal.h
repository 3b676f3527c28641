/*
 * store/shard_internal.h - shared by shard_index.c (memory) and shard_saved.c (the
 * section of a saved index): docs/formats/source-index.md.
 *
 * A shard's part of the index counts from its own first record, so that it can be saved
 * and used again whatever the other shards are.
 */
#ifndef HR_STORE_SHARD_INTERNAL_H
#define HR_STORE_SHARD_INTERNAL_H

#include "store/index_parts.h"
#include "store/shard_index.h"

/* A record takes 8 bytes: 40 bits of where it begins and 24 of its length. One that does
 * not fit has a place in `large`, and its length here is HR_SHARD_IS_LARGE. */
#define HR_SHARD_LENGTH_BITS 24
#define HR_SHARD_IS_LARGE (((uint64_t)1 << HR_SHARD_LENGTH_BITS) - 1)
#define HR_SHARD_LINES_EVERY 1024

struct hr_shard_extent {
    uint64_t at, bytes;
};

struct hr_shard {
    char *uri;
    struct hr_hash128 key, identity, contents; /* contents: its hash */
    struct hr_object object;                   /* if `open` */
    bool open, lasting, saved; /* saved: its part comes from the saved index */
    struct hr_packed *packed;  /* or NULL */
    uint64_t bytes;            /* of what its records lie in */
    uint64_t first;            /* number of its first record */
    size_t first_large, first_line;
};

struct hr_shard_index {
    struct hr_shard *shards;
    size_t shard_count;
    uint64_t *records;
    struct hr_shard_extent *large;
    uint64_t *lines; /* of every HR_SHARD_LINES_EVERY-th record of a shard */
    size_t count, room, large_count, large_room, line_count, line_room;
    struct hr_hash128 identity;
    struct hr_packed_cache *cache; /* of packed shards; NULL: they are refused */
};

/* What a saved index has of one shard. `at` and `bytes` are a run of its section: words
 * of records, extents of large ones, lines, and how a compressed object is unpacked. */
struct hr_shard_entry {
    struct hr_hash128 key, contents;
    uint64_t at, bytes;
    uint64_t object_bytes, records, large;
    uint64_t checksum; /* of the run */
};
struct hr_shard_head {
    struct hr_hash128 format;
    uint64_t shards, zero;
};

/* The section of a mapped file; {0}: none. */
struct hr_shard_section {
    struct hr_index_map map;
    const char *base; /* `at` of an entry counts from here */
    size_t bytes;
    const struct hr_shard_entry *entries;
    uint64_t count;
};

uint64_t hr__shard_line_count(uint64_t records);

/* The section of a saved index in memory, 64-byte aligned, which must outlive it; {0}
 * when it has none, or one of another format. HR_ERR_FORMAT: damaged or dishonest. */
HR_CHECK enum hr_err
hr__shard_section_parse(const void *data, size_t bytes, struct hr_hash128 format,
                        struct hr_shard_section *ret_section);
/* The same of a file; {0} also if there is none that can be used. */
void hr__shard_section_open(const char *path, struct hr_hash128 format,
                            struct hr_shard_section *ret_section);
void hr__shard_section_close(struct hr_shard_section *section);
/* NULL: there is none. */
const struct hr_shard_entry *
hr__shard_section_find(const struct hr_shard_section *section, struct hr_hash128 key);

/* The checksum that the entry's run ought to have; false if its counts are not those of
 * its bytes, which lie inside the section. */
bool hr__shard_run_checksum(const struct hr_shard_section *section,
                            const struct hr_shard_entry *entry, uint64_t *ret_checksum);

/* How the object of an entry is unpacked, for hr__packed_restore(); empty: it is not.
 * False: the run is damaged. */
bool hr__shard_section_unpacking(const struct hr_shard_section *section,
                                 const struct hr_shard_entry *entry,
                                 struct hr_index_piece *ret_piece);

/* Adds the records of an entry to the index, as those of its last shard, whose object has
 * `bytes` bytes. HR_ERR_FORMAT: the run is damaged, or a record lies outside the object;
 * the index is as before. HR_ERR_MEMORY. */
HR_CHECK enum hr_err hr__shard_section_take(const struct hr_shard_section *section,
                                            const struct hr_shard_entry *entry,
                                            uint64_t bytes, struct hr_shard_index *index);

/* Writes the shards of the index whose identities last. */
HR_CHECK enum hr_err
hr__shard_section_write(const char *path, struct hr_hash128 format,
                        const struct hr_shard_index *index, struct hr_error *reterr);

#endif
