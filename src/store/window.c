/*
 * store/window.c - an object through a buffer.
 */
#include "store/window.h"

#include <string.h>

#include "core/alloc.h"
#include "core/error.h"

#define AHEAD_MIN ((size_t)4 << 10)

enum hr_err
hr__window_open(struct hr_window *window, const char *uri, struct hr_error *reterr)
{
    size_t length = strlen(uri);
    enum hr_err code;

    if (strcmp(window->uri, uri) == 0) {
        hr__window_use(window, &window->own);
        return HR_OK;
    }
    hr__window_use(window, NULL);
    if (window->uri[0] != '\0')
        hr__store_close(&window->own);
    window->uri[0] = '\0';
    if (length == 0 || length >= sizeof window->uri)
        return hr__fail(reterr, HR_ERR_LIMIT, "the path of a file is too long");
    memcpy(window->uri, uri, length + 1);
    code = hr__store_open(window->uri, &window->own, reterr);
    if (code == HR_OK)
        hr__window_use(window, &window->own);
    else
        window->uri[0] = '\0';
    return code;
}

void hr__window_use(struct hr_window *window, struct hr_object *object)
{
    if (window->object == object)
        return;
    window->object = object;
    window->bytes = window->ahead = 0;
}

void hr__window_finish(struct hr_window *window)
{
    if (window->uri[0] != '\0')
        hr__store_close(&window->own);
    hr__free(window->data);
    memset(window, 0, sizeof *window);
}

static enum hr_err
make_room(struct hr_window *window, size_t bytes, struct hr_error *reterr)
{
    size_t room = bytes > HR_WINDOW_MAX ? bytes : HR_WINDOW_MAX;
    char *data;

    if (bytes <= window->room && window->room > 0)
        return HR_OK;
    data = hr__aligned_alloc(64, room);
    if (data == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for %zu bytes of %s", bytes,
                        window->object->uri);
    hr__free(window->data);
    window->data = data;
    window->room = room;
    window->bytes = 0;
    return HR_OK;
}

/* Bytes to read: more with each read that continues, or nearly, where the last one ended,
 * and no more than asked for after one that did not. */
static size_t choose(struct hr_window *window, uint64_t offset, size_t bytes)
{
    uint64_t end = window->at + window->bytes, left = window->object->bytes - offset;
    bool forward = offset >= window->at && offset <= end + HR_WINDOW_MAX;

    if (!forward)
        window->ahead = 0;
    else
        window->ahead = window->ahead > 0 ? 2 * window->ahead : AHEAD_MIN;
    if (window->ahead > HR_WINDOW_MAX)
        window->ahead = HR_WINDOW_MAX;
    if (bytes < window->ahead)
        bytes = window->ahead;
    return bytes < left ? bytes : (size_t)left;
}

enum hr_err hr__window_get(struct hr_window *window, uint64_t offset, size_t bytes,
                           const void **ret_data, struct hr_error *reterr)
{
    enum hr_err code;
    size_t size;
    bool waited;

    if (offset >= window->at && offset - window->at <= window->bytes &&
        bytes <= window->bytes - (offset - window->at)) {
        *ret_data = window->data + (offset - window->at);
        return HR_OK;
    }
    if (offset > window->object->bytes || bytes > window->object->bytes - offset)
        return hr__fail(reterr, HR_ERR_RANGE,
                        "%s: ends at byte %llu, before %zu bytes at byte %llu",
                        window->object->uri, (unsigned long long)window->object->bytes,
                        bytes, (unsigned long long)offset);
    HR_TRY(make_room(window, bytes, reterr));
    size = choose(window, offset, bytes);
    window->at = offset;
    window->bytes = 0;
    code =
        hr__store_read(window->object, offset, window->data, size, NULL, &waited, reterr);
    if (code == HR_ERR_FORMAT && size > bytes) { /* perhaps damage after what is wanted */
        size = bytes;
        code = hr__store_read(window->object, offset, window->data, size, NULL, &waited,
                              reterr);
    }
    if (code != HR_OK)
        return code;
    window->bytes = size;
    *ret_data = window->data;
    return HR_OK;
}
