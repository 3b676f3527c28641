/*
 * store/window.h - an object through a buffer, for many small reads that mostly go
 * forward. Used by one thread at a time.
 */
#ifndef HR_STORE_WINDOW_H
#define HR_STORE_WINDOW_H

#include "store/store.h"

#define HR_WINDOW_MAX ((size_t)256 << 10) /* bytes read ahead at most */

struct hr_window {
    struct hr_object *object; /* what is read: `own`, or another; NULL: nothing */
    struct hr_object own;     /* open if `uri` is not empty */
    char uri[HR_URI_MAX];
    char *data;
    size_t room, bytes; /* `bytes` of the object from `at` are in `data` */
    uint64_t at;
    size_t ahead; /* grows while reads go forward; 0 after one that did not */
};

/* Opens the object, unless it is the one that is open. The window is zeroed before its
 * first use. */
HR_CHECK enum hr_err
hr__window_open(struct hr_window *window, const char *uri, struct hr_error *reterr);
/* The same for an open object, which stays the caller's and outlives its use. */
void hr__window_use(struct hr_window *window, struct hr_object *object);
void hr__window_finish(struct hr_window *window);

/* `bytes` bytes from `offset`; *ret_data is valid until the next call, and aligned to 64
 * if all offsets asked for are. HR_ERR_RANGE: not inside the object. */
HR_CHECK enum hr_err
hr__window_get(struct hr_window *window, uint64_t offset, size_t bytes,
               const void **ret_data, struct hr_error *reterr);

#endif
