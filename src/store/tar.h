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

#include "store/shard_index.h"

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
 * HR_TAR_HEAD_MAX; HR_ERR_FORMAT: next is where the next header is if the member's own
 * header is whole, else 0. Messages name no file.
 */
HR_CHECK enum hr_err
hr__tar_parse(const void *data, size_t have, struct hr_tar_member *ret_member,
              size_t *ret_need, struct hr_error *reterr);

/* Reads the header at byte `at` of an object whose records end before `end`. HR_ERR_END
 * and HR_ERR_FORMAT as above, with *why (or NULL); HR_ERR_RANGE: it ends after `end`; the
 * window's errors, with *reterr. */
HR_CHECK enum hr_err hr__tar_look(struct hr_window *window, uint64_t at, uint64_t end,
                                  struct hr_tar_member *ret_member, struct hr_error *why,
                                  struct hr_error *reterr);

/* Writes the header of a regular file, as ustar has it; contents follow, filled up with
 * zeros to a multiple of HR_TAR_BLOCK. Always the same bytes: no time, user 0.
 * HR_ERR_LIMIT from 100 bytes of name, or 8 GiB of contents, on. */
HR_CHECK enum hr_err hr__tar_head(const char *name, uint64_t bytes,
                                  char ret_head[HR_TAR_BLOCK], struct hr_error *reterr);

/* The lengths of a name's key and of its ending, which follows after a dot. False: the
 * member belongs to no record (no ending, an empty stem, or "__name__" at the top). */
bool hr__tar_key(const struct hr_tar_member *member, size_t *ret_key, size_t *ret_ending);

/*
 * Finds the records of an archive, for hr__shard_index_open(): each from its first header
 * to the end of its last member. Hashes names and sizes of the members. A damaged header
 * costs the records that it lies in: what lies between it and the next header that is
 * whole is a record of its own, so that reading it reports the damage. So is a member
 * that is refused, with all of its headers: without its extensions it would have another
 * name. HR_ERR_FORMAT for a file without a header.
 */
HR_CHECK enum hr_err hr__tar_scan(struct hr_shard_scan *scan);

#endif
