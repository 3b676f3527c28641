/*
 * store/index_parts.h - a saved index as a file of sections, whatever they mean.
 *
 * Several owners keep sections in one file: names (index_saved.c), places to begin
 * decoding at (seek.c); where the records of shards lie (shard_saved.c). Each reads and
 * replaces its own; all others are carried along as they are. A file is replaced by
 * rename, so readers and writers need no lock: the last writer wins, and what another
 * wrote in between is lost, not damaged. The layout is docs/formats/source-index.md.
 */
#ifndef HR_STORE_INDEX_PARTS_H
#define HR_STORE_INDEX_PARTS_H

#include "headrace/base.h"

/* Kinds 1 to 5 are index_saved.c's. */
#define HR_INDEX_KIND_SEEK 6u
#define HR_INDEX_KIND_SHARDS 7u /* shard_saved.c */

struct hr_index_section {
    uint32_t kind, flags;
    uint64_t at, bytes, checksum;
};

/* HR_ERR_FORMAT unless the header is intact and all sections lie inside. Their contents
 * are not checked. *ret_sections points into `data`. */
HR_CHECK enum hr_err hr__index_parts_check(const void *data, size_t bytes,
                                           const struct hr_index_section **ret_sections,
                                           uint32_t *ret_count, struct hr_error *reterr);

/* The checksum of a section's bytes, or of their beginning; its kind decides which. */
uint64_t hr__index_part_checksum(uint32_t kind, const void *data, size_t bytes);

/* A file in memory, read only. HR_ERR_NOT_FOUND if there is none, HR_ERR_FORMAT if it is
 * empty or not a file. unmap of {0} is fine. */
struct hr_index_map {
    void *data;
    size_t bytes;
};
HR_CHECK enum hr_err
hr__index_map(const char *path, struct hr_index_map *ret_map, struct hr_error *reterr);
void hr__index_unmap(struct hr_index_map *map);

/* Contents come in pieces, so that large ones need not be copied together. The checksum
 * covers the first one. */
struct hr_index_piece {
    const void *data;
    size_t bytes;
};
struct hr_index_part {
    uint32_t kind;
    const struct hr_index_piece *pieces;
    size_t piece_count;
};

/* Rewrites the file with these sections, followed by the sections of other kinds that it
 * had. */
HR_CHECK enum hr_err
hr__index_parts_write(const char *path, const struct hr_index_part *parts, size_t count,
                      struct hr_error *reterr);

#endif
