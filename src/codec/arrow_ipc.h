/*
 * codec/arrow_ipc.h - messages of Arrow's IPC format, as files and streams hold them.
 *
 * A message is 8 bytes of head, metadata (a flatbuffer), and a body of buffers. The few
 * tables that are needed are read here, each position checked against the metadata, and
 * each buffer against the body.
 */
#ifndef HR_CODEC_ARROW_IPC_H
#define HR_CODEC_ARROW_IPC_H

#include "codec/arrow.h"

#define HR_ARROW_HEAD 8 /* bytes before the metadata */
#define HR_ARROW_META_MAX ((size_t)256 << 20)

/* The head of a message: bytes of its metadata; 0 at the end of a stream.
 * HR_ERR_FORMAT, HR_ERR_LIMIT, HR_ERR_UNSUPPORTED; messages name no file. */
HR_CHECK enum hr_err
hr__arrow_head(const void *head, size_t *ret_meta, struct hr_error *reterr);

enum hr_arrow_message_type {
    HR_ARROW_OTHER,
    HR_ARROW_SCHEMA,
    HR_ARROW_DICTIONARY,
    HR_ARROW_BATCH,
};
struct hr_arrow_message {
    enum hr_arrow_message_type type;
    uint64_t body; /* bytes */
};
HR_CHECK enum hr_err
hr__arrow_message(const void *meta, size_t bytes, struct hr_arrow_message *ret_message,
                  struct hr_error *reterr);

/* A node in the order of the buffers of a batch. */
struct hr_arrow_node {
    uint8_t buffers;
    bool has_views; /* and as many as the batch says */
};

struct hr_arrow_schema {
    struct hr_arrow_leaf *leaves;
    size_t leaf_count, leaf_room;
    struct hr_arrow_node *nodes;
    size_t node_count, node_room;
};

/* Reads a message of type SCHEMA; ends with hr__arrow_schema_finish(), also after a
 * failure, of what the caller has zeroed. */
HR_CHECK enum hr_err
hr__arrow_schema_read(const void *meta, size_t bytes, struct hr_arrow_schema *ret_schema,
                      struct hr_error *reterr);
void hr__arrow_schema_finish(struct hr_arrow_schema *schema);

/* Where a column's buffers lie in the body. */
struct hr_arrow_extent {
    uint64_t at, bytes; /* bytes 0: there is none */
};
struct hr_arrow_place {
    int64_t rows, child_rows;
    struct hr_arrow_extent validity, struct_validity, offsets, data, child_validity;
};
enum hr_arrow_codec { HR_ARROW_PLAIN, HR_ARROW_LZ4, HR_ARROW_ZSTD };

/* A message of type BATCH or, of the values of a dictionary, DICTIONARY. */
struct hr_arrow_batch {
    int64_t rows;
    enum hr_arrow_codec codec;
    int64_t dictionary; /* DICTIONARY: its id */
    bool is_delta;
};
HR_CHECK enum hr_err
hr__arrow_batch_read(const void *meta, size_t bytes, struct hr_arrow_batch *ret_batch,
                     struct hr_error *reterr);

/* Places `count` leaves of the schema, by number. Buffers lie in the body, and, unless
 * they are compressed, are large enough for their rows. */
HR_CHECK enum hr_err
hr__arrow_batch_place(const void *meta, size_t bytes,
                      const struct hr_arrow_schema *schema, const size_t *leaves,
                      size_t count, struct hr_arrow_place *ret_places,
                      struct hr_error *reterr);
/* The values of a dictionary of such a column. */
HR_CHECK enum hr_err
hr__arrow_dictionary_place(const void *meta, size_t bytes,
                           const struct hr_arrow_column *column,
                           struct hr_arrow_place *ret_place, struct hr_error *reterr);

/* HR_ERR_FORMAT if buffers of these sizes are too small for the rows. */
HR_CHECK enum hr_err
hr__arrow_check(const struct hr_arrow_column *column, const struct hr_arrow_place *place,
                bool is_values, struct hr_error *reterr);

/* The view of buffers at `body`. */
void hr__arrow_view(const struct hr_arrow_place *place, const void *body,
                    struct hr_arrow_view *ret_view);

#endif
