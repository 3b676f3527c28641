/*
 * store/unpack.h - gzip, zlib, deflate and zstd streams, from bytes to bytes.
 *
 * A compressed file is a sequence of streams (members of gzip, frames of zstd). Decoding
 * begins at a stream, or inside a deflate stream at a mark: between two of its blocks,
 * with the bytes before it that matches may refer to.
 */
#ifndef HR_STORE_UNPACK_H
#define HR_STORE_UNPACK_H

#include "headrace/base.h"

enum hr_packing {
    HR_PACKING_NONE,
    HR_PACKING_GZIP,
    HR_PACKING_ZLIB,
    HR_PACKING_ZSTD,
    HR_PACKING_DEFLATE, /* without a wrapper: a member of a ZIP file */
};

#define HR_PACKING_MAGIC 4 /* bytes that hr__packing_of looks at */
#define HR_UNPACK_WINDOW 32768

/* What begins with these bytes: gzip, zstd, or none of them. zlib has no magic: see
 * hr__packing_is_zlib. */
enum hr_packing hr__packing_of(const void *data, size_t bytes);
/* Whether zlib may begin so; so may other data, once in 31 times 16. */
bool hr__packing_is_zlib(const void *data, size_t bytes);
/* What the ending of a name says: ".gz", ".tgz", ".zst", ".tzst". */
enum hr_packing hr__packing_of_name(const char *name);
const char *hr__packing_name(enum hr_packing packing);

/* The last bytes of a member of gzip (RFC 1952). */
struct hr_gzip_trailer {
    uint32_t checksum; /* CRC-32 of what it unpacks to */
    uint32_t length;   /* of that, modulo 4 GiB */
};
#define HR_GZIP_TRAILER 8
struct hr_gzip_trailer hr__gzip_trailer(const void *data);

/* The bytes that a frame of zstd unpacks to, by its first bytes (RFC 8878); 0: they do
 * not say. After hr__unpack_create(HR_PACKING_ZSTD). */
uint64_t hr__zstd_length(const void *data, size_t bytes);
#define HR_ZSTD_HEADER 18 /* bytes that it looks at */

struct hr_unpack;

/* HR_ERR_MEMORY; HR_ERR_UNSUPPORTED if the build reads no zstd, or libzstd is not there.
 */
HR_CHECK enum hr_err
hr__unpack_create(enum hr_packing packing, struct hr_unpack **ret_unpack,
                  struct hr_error *reterr);
void hr__unpack_destroy(struct hr_unpack *unpack); /* NULL is fine */

/* Input and output of a call; both move on. */
struct hr_unpack_io {
    const unsigned char *in;
    size_t in_bytes;
    unsigned char *out;
    size_t out_bytes;
};

enum hr_unpack_event {
    HR_UNPACK_MORE, /* input or room is used up */
    HR_UNPACK_MARK, /* between two blocks */
    HR_UNPACK_END,  /* the stream has ended, and its checksum is right */
};

/* Inside a deflate stream. Decoding begins at the byte after those that were read, with
 * the lowest `bits` bits of `value`. */
struct hr_unpack_mark {
    unsigned char bits, value;
    size_t window_bytes;
    unsigned char window[HR_UNPACK_WINDOW];
};

/* The next input begins a stream; or follows a mark of one. */
HR_CHECK enum hr_err hr__unpack_begin(struct hr_unpack *unpack, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__unpack_resume(struct hr_unpack *unpack, unsigned char bits, unsigned char value,
                  const void *window, size_t window_bytes, struct hr_error *reterr);

/* Decodes until an event; HR_UNPACK_MARK only with `marks`. A checksum is checked where a
 * stream was decoded from its beginning. HR_ERR_FORMAT: damaged, the message says how and
 * names no file; what was decoded before is in the output. */
HR_CHECK enum hr_err
hr__unpack_run(struct hr_unpack *unpack, bool marks, struct hr_unpack_io *io,
               enum hr_unpack_event *ret_event, struct hr_error *reterr);
/* Whether it failed because the stream asks for a window of more than 128 MiB, as damaged
 * ones may. */
bool hr__unpack_window_is_large(const struct hr_unpack *unpack);
/* Of gzip and zlib: the checksum of what was decoded, after a stream that failed at its
 * end or has ended. */
uint32_t hr__unpack_checksum(const struct hr_unpack *unpack);
/* Unpacks one stream that holds exactly `room` bytes. The errors of hr__unpack_create and
 * hr__unpack_run, and HR_ERR_FORMAT for another size. */
HR_CHECK enum hr_err
hr__unpack_all(enum hr_packing packing, const void *data, size_t bytes, void *to,
               size_t room, struct hr_error *reterr);
/* After HR_UNPACK_MARK. */
void hr__unpack_mark(struct hr_unpack *unpack, struct hr_unpack_mark *ret_mark);

#endif
