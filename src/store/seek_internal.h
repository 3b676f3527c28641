/*
 * store/seek_internal.h - shared by seek.c (memory) and seek_saved.c (the section).
 */
#ifndef HR_STORE_SEEK_INTERNAL_H
#define HR_STORE_SEEK_INTERNAL_H

#include "store/index_parts.h"
#include "store/seek.h"

/* One of the section's records, sorted by key; see the format. */
struct hr_seek_record {
    struct hr_hash128 key;
    uint64_t at, checksum;
    uint32_t bytes, done;
};
/* Sums of hr__seek_count. */
struct hr_seek_use {
    uint64_t count, went, would;
};
struct hr_seek_head {
    uint64_t count, checksum; /* of the records; of all that follows it */
    struct hr_seek_use use;
};

/* The section of a mapped file; {0}: none. */
struct hr_seek_section {
    struct hr_index_map map;
    const char *base; /* `at` of a record counts from here */
    size_t bytes;
    const struct hr_seek_record *records;
    uint64_t count;
    uint64_t entry_bytes, done; /* sums over the records */
    struct hr_seek_use use;
};

/* An entry to be written, in memory or in a section. */
struct hr_seek_item {
    struct hr_seek_record record; /* but for `at` */
    const void *data;
};

/* Of an entry; covers the key too, so that entries cannot be exchanged. */
uint64_t hr__seek_checksum(struct hr_hash128 key, const void *data, size_t bytes);
/* The order of records: below 0, 0, above 0. */
int hr__seek_compare(struct hr_hash128 a, struct hr_hash128 b);

/* The section of an index in memory, which must outlive it; {0} when it has none.
 * HR_ERR_FORMAT: damaged or dishonest. */
HR_CHECK enum hr_err hr__seek_section_parse(const void *data, size_t bytes,
                                            struct hr_seek_section *ret_section);

/* *ret_damaged: the file is there but is not used. */
void hr__seek_section_open(const char *path, struct hr_seek_section *ret_section,
                           bool *ret_damaged);
void hr__seek_section_close(struct hr_seek_section *section);
/* find returns NULL if there is no such record; data, if its bytes are damaged. */
const struct hr_seek_record *
hr__seek_section_find(const struct hr_seek_section *section, struct hr_hash128 key);
const void *hr__seek_section_data(const struct hr_seek_section *section,
                                  const struct hr_seek_record *record);

/* Replaces the section of the file by these items, which are sorted here, merged with the
 * entries of `old` that none of them supersedes; `use` is added to its sums. */
HR_CHECK enum hr_err
hr__seek_section_write(const char *path, struct hr_seek_item *items, size_t count,
                       const struct hr_seek_use *use, const struct hr_seek_section *old);

#endif
