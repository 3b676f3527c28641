/*
 * store/tar.h - headers of tar archives, and the records of archives by the convention of
 * WebDataset.
 *
 * Read are POSIX ustar and pax, GNU tar with long names and large sizes, and archives
 * from before ustar; sparse members are refused. Members that follow each other and have
 * the same key are one record. The key is the name up to the first dot after the last
 * slash, the rest is the ending: "train/0001.seg.png" is "seg.png" of "train/0001".
 */
#ifndef HR_STORE_TAR_H
#define HR_STORE_TAR_H

#include "core/hash.h"
#include "store/store.h"

#define HR_TAR_BLOCK 512
#define HR_TAR_NAME_MAX 1024 /* bytes, with the NUL; longer ones are HR_ERR_FORMAT */
#define HR_TAR_HEAD_MAX ((size_t)64 << 10) /* bytes of a header with its extensions */

/* Offsets are from the beginning of the header, its extensions included. */
struct hr_tar_member {
    bool file;            /* a regular file; else a folder, a link or a device */
    uint64_t data, bytes; /* its contents */
    uint64_t next;        /* the next header */
    size_t name_bytes;
    char name[HR_TAR_NAME_MAX];
};

/*
 * Reads the header at `data`, of which `have` bytes are there. HR_ERR_END: a block of
 * zeros, which ends an archive; HR_ERR_RANGE: *ret_need bytes are needed, at most
 * HR_TAR_HEAD_MAX; HR_ERR_FORMAT. Messages name no file.
 */
HR_CHECK enum hr_err
hr__tar_parse(const void *data, size_t have, struct hr_tar_member *ret_member,
              size_t *ret_need, struct hr_error *reterr);

/* The lengths of a name's key and of its ending, which follows after a dot. False: the
 * member belongs to no record (no ending, an empty stem, or "__name__" at the top). */
bool hr__tar_key(const struct hr_tar_member *member, size_t *ret_key, size_t *ret_ending);

/*
 * The records of archives, in their order. Made once, then read by any thread. Takes 16
 * bytes per record.
 *
 * A damaged header costs the records that it lies in: its record reaches to the next
 * header that is whole, and is found to be damaged when it is read.
 */
struct hr_tar_index;

/* HR_ERR_FORMAT for a file without a tar header, HR_ERR_UNSUPPORTED for a compressed one;
 * HR_ERR_NOT_FOUND, HR_ERR_IO, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__tar_index_open(const char *const *uris, size_t count, struct hr_tar_index **ret_index,
                   struct hr_error *reterr);
void hr__tar_index_close(struct hr_tar_index *index); /* NULL is fine */

uint64_t hr__tar_index_count(const struct hr_tar_index *index);

/* A hash of the keys, endings and sizes of all members, in order. */
struct hr_hash128 hr__tar_index_identity(const struct hr_tar_index *index);

/* Where record `at` (< count) lies: from its first header to the end of its last member.
 * *ret_uri is the index's. */
void hr__tar_index_record(const struct hr_tar_index *index, uint64_t at,
                          const char **ret_uri, struct hr_hash128 *ret_identity,
                          uint64_t *ret_offset, uint64_t *ret_bytes);

#endif
