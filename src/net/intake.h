/*
 * net/intake.h - frames from a stream of bytes that arrives in pieces.
 *
 * The header is checked before anything is allocated for its payload, so a peer can make
 * this side hold no more than one payload of the allowed size. Bodies (DATA and texts)
 * lie in buffers of a pool, where a connection reads them directly; all other payloads
 * are small and stay here. Pure: no socket.
 */
#ifndef HR_NET_INTAKE_H
#define HR_NET_INTAKE_H

#include "headrace/buffer.h"
#include "wire/frame.h"

struct hr_intake {
    struct hr_pool *pool;   /* borrowed */
    size_t payload_max;     /* of DATA; larger ones are refused */
    bool guarded;           /* set by the owner: only AUTH is taken now */
    bool sealed;            /* likewise: bodies' bytes are in no hash */
    size_t have;            /* bytes of the current frame, header included */
    struct hr_buffer *data; /* body, or NULL */
    size_t summed;          /* bytes of the body in `sum` */
    uint64_t sum;
    struct hr_frame_head head;
    char tail[HR_FRAME_TAIL]; /* after a body */
    char bytes[HR_FRAME_HEAD + HR_FRAME_CONTROL_MAX];
};

void hr__intake_init(struct hr_intake *in, struct hr_pool *pool, size_t payload_max);
void hr__intake_finish(struct hr_intake *in);

/* Takes bytes up to the end of the current frame and returns their number in *ret_used.
 * If *ret_complete the frame is *ret_frame, and *ret_data its body, which the caller
 * owns, if it has one. HR_ERR_FORMAT, HR_ERR_UNSUPPORTED, HR_ERR_LIMIT, HR_ERR_MEMORY,
 * HR_ERR_DENIED (guarded): nothing after that can be read. */
HR_CHECK enum hr_err
hr__intake_add(struct hr_intake *in, const char *bytes, size_t count, size_t *ret_used,
               bool *ret_complete, struct hr_frame *ret_frame,
               struct hr_buffer **ret_data, struct hr_error *reterr);

/* Where the missing rest of a body may be written directly: its place and size, 0 if
 * there is none. hr__intake_wrote() says how much was. What follows the body comes
 * through hr__intake_add(). */
size_t hr__intake_room(const struct hr_intake *in, char **ret_to);
void hr__intake_wrote(struct hr_intake *in, size_t bytes);

#endif
