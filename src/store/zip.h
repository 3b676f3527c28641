/*
 * store/zip.h - the members of ZIP files: stored or deflated, also beyond 4 GiB (zip64).
 */
#ifndef HR_STORE_ZIP_H
#define HR_STORE_ZIP_H

#include "store/window.h"

#define HR_ZIP_MEMBERS_MAX 65536
#define HR_ZIP_MAGIC "PK\3\4"
#define HR_ZIP_MAGIC_EMPTY "PK\5\6" /* of a file without members */

struct hr_zip_member {
    char *name;
    uint32_t crc;
    bool deflated;
    uint64_t at, bytes; /* its bytes in the file */
    uint64_t unpacked;  /* bytes that it unpacks to */
};

struct hr_zip {
    struct hr_zip_member *members; /* in the directory's order, without folders */
    size_t count, room;
};

/* Reads the directory of the window's object; every member lies inside the object. The
 * caller zeroes *ret_zip, and ends with hr__zip_finish(), also after a failure.
 * HR_ERR_FORMAT, HR_ERR_UNSUPPORTED for encrypted members and other methods of
 * compression, HR_ERR_LIMIT, HR_ERR_MEMORY, the store's. */
HR_CHECK enum hr_err
hr__zip_read(struct hr_window *window, struct hr_zip *ret_zip, struct hr_error *reterr);
void hr__zip_finish(struct hr_zip *zip);

/* Reads all of a member and checks its checksum; HR_ERR_FORMAT: damaged. `to` has room
 * for its unpacked bytes; NULL, of a member that is not deflated: it is only checked. */
HR_CHECK enum hr_err
hr__zip_unpack(struct hr_window *window, const struct hr_zip_member *member, void *to,
               struct hr_error *reterr);

#endif
