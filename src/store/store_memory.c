/*
 * store/store_memory.c - objects in memory, and the example of a store.
 *
 * What a store must do: open an object by name, say how many bytes it has and give it an
 * identity that is another one after its contents changed; read a range; list names in
 * the order of their bytes. What it may leave to store.c and store_threads.c: retries,
 * loading and mapping whole objects, keeping several reads in flight. This one leaves out
 * all of that but the map, which shows the bytes where they lie.
 *
 * The table is one sorted array under a lock. An open object holds a reference to its
 * bytes, so a put or a remove does not disturb those that read it.
 */
#include "store/store_memory.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/thread.h"
#include "headrace/buffer.h"
#include "store/store_internal.h"
#include <assert.h>
#include <string.h>

#define SCHEME "mem://"

struct item {
    char *name;
    struct hr_buffer *bytes;
    uint64_t version; /* of all puts of the process: no two are equal */
};

static struct {
    pthread_mutex_t lock;
    struct item *items; /* sorted by name */
    size_t count, room;
    uint64_t puts;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The place of the name, or where it would go; lock held. */
static size_t place_of(const char *name, bool *ret_found)
{
    size_t low = 0, high = memory.count;

    hr__assert_locked(&memory.lock);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, memory.items[middle].name);

        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_found = false;
    return low;
}

/* ---- contents ---- */

static enum hr_err
name_of(const char *uri, const char **ret_name, struct hr_error *reterr)
{
    const char *name = uri + sizeof SCHEME - 1;
    size_t bytes = strlen(uri);

    if (strncmp(uri, SCHEME, sizeof SCHEME - 1) != 0 || *name == '\0' || *name == '/' ||
        uri[bytes - 1] == '/' || bytes >= HR_URI_MAX)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "%s is not mem://NAME", uri);
    *ret_name = name;
    return HR_OK;
}

/* Takes over name and bytes; false: no memory. Lock held. */
static bool insert(size_t at, char *name, struct hr_buffer *bytes)
{
    if (memory.count == memory.room) {
        size_t room = memory.room > 0 ? 2 * memory.room : 16;
        struct item *items = hr__realloc(memory.items, room * sizeof *items);

        if (items == NULL)
            return false;
        memory.items = items;
        memory.room = room;
    }
    assert(at <= memory.count);
    memmove(&memory.items[at + 1], &memory.items[at],
            (memory.count - at) * sizeof *memory.items);
    memory.items[at] = (struct item){name, bytes, ++memory.puts};
    memory.count++;
    return true;
}

enum hr_err
hr__memory_put(const char *uri, const void *data, size_t bytes, struct hr_error *reterr)
{
    struct hr_buffer *copy = NULL, *old = NULL;
    char *own = NULL;
    const char *name = NULL;
    bool found, kept;
    size_t at;

    HR_TRY(name_of(uri, &name, reterr));
    copy = hr_buffer_create(bytes);
    own = hr__strdup(name);
    kept = copy != NULL && own != NULL;
    if (kept && bytes > 0)
        memcpy(hr_buffer_data(copy), data, bytes);
    pthread_mutex_lock(&memory.lock);
    at = place_of(name, &found);
    if (kept && found) {
        old = memory.items[at].bytes;
        memory.items[at].bytes = copy;
        memory.items[at].version = ++memory.puts;
    } else if (kept) {
        kept = insert(at, own, copy);
    }
    pthread_mutex_unlock(&memory.lock);
    hr_buffer_unref(kept ? old : copy);
    if (!kept || found)
        hr__free(own);
    return kept ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory for %s", uri);
}

bool hr__memory_remove(const char *uri)
{
    struct item old = {NULL, NULL, 0};
    const char *name = NULL;
    bool found;
    size_t at;

    if (name_of(uri, &name, NULL) != HR_OK)
        return false;
    pthread_mutex_lock(&memory.lock);
    at = place_of(name, &found);
    if (found) {
        old = memory.items[at];
        memory.count--;
        memmove(&memory.items[at], &memory.items[at + 1],
                (memory.count - at) * sizeof *memory.items);
    }
    if (memory.count == 0) {
        hr__free(memory.items);
        memory.items = NULL;
        memory.room = 0;
    }
    pthread_mutex_unlock(&memory.lock);
    hr__free(old.name);
    hr_buffer_unref(old.bytes);
    return found;
}

/* ---- the store ---- */

static enum hr_err
memory_open(const char *name, struct hr_object *object, struct hr_error *reterr)
{
    struct hr_buffer *bytes = NULL;
    uint64_t version = 0;
    bool found;
    size_t at;

    pthread_mutex_lock(&memory.lock);
    at = place_of(name, &found);
    if (found && !hr__fault(HR_FAULT_OPEN)) {
        bytes = hr_buffer_ref(memory.items[at].bytes);
        version = memory.items[at].version;
    }
    pthread_mutex_unlock(&memory.lock);
    if (bytes == NULL) {
        hr__store_note(reterr, object->uri);
        return hr__fail(reterr, found ? HR_ERR_IO : HR_ERR_NOT_FOUND, "cannot open %s%s",
                        object->uri, found ? "" : ": no object has that name");
    }
    object->as.own = bytes;
    object->bytes = hr_buffer_bytes(bytes);
    object->identity = hr__hash128(&version, sizeof version);
    return HR_OK;
}

static void memory_close(struct hr_object *object)
{
    hr_buffer_unref(object->as.own);
}

static enum hr_err memory_read(struct hr_object *object, uint64_t offset, void *data,
                               size_t bytes, size_t *ret_got, struct hr_error *reterr)
{
    (void)reterr;
    assert(offset <= object->bytes && bytes <= object->bytes - offset);
    memcpy(data, (const char *)hr_buffer_data(object->as.own) + offset, bytes);
    *ret_got = bytes;
    return HR_OK;
}

static int64_t
memory_read_ready(struct hr_object *object, uint64_t offset, void *data, size_t bytes)
{
    size_t got;

    if (hr__fault(HR_FAULT_READ))
        return 0;
    return memory_read(object, offset, data, bytes, &got, NULL) == HR_OK ? (int64_t)got
                                                                         : 0;
}

static enum hr_err
memory_map(struct hr_object *object, struct hr_store_map *map, struct hr_error *reterr)
{
    (void)reterr;
    map->own = hr_buffer_ref(object->as.own);
    map->data = map->bytes > 0 ? hr_buffer_data(map->own) : NULL;
    return HR_OK;
}

static void memory_unmap(struct hr_store_map *map)
{
    hr_buffer_unref(map->own);
}

/* Names below the folder, one at a time: visit may put and remove. */
static enum hr_err memory_list(const char *name, hr_store_visit_fn *visit, void *user,
                               struct hr_error *reterr)
{
    char folder[HR_URI_MAX], next[HR_URI_MAX];
    size_t bytes = strlen(name);
    bool any = false, found, more = true;

    while (bytes > 0 && name[bytes - 1] == '/')
        bytes--;
    if (bytes + 2 > sizeof folder)
        return hr__fail(reterr, HR_ERR_LIMIT, "the name of a folder is too long");
    memcpy(folder, name, bytes);
    folder[bytes++] = '/';
    folder[bytes] = '\0';
    memcpy(next, folder, bytes + 1);
    if (bytes == 1) /* the root: all names */
        bytes = 0, next[0] = '\0';
    while (more) {
        uint64_t size = 0;
        size_t at;

        pthread_mutex_lock(&memory.lock);
        at = place_of(next, &found);
        at += found && any;
        more = at < memory.count && strncmp(memory.items[at].name, folder, bytes) == 0;
        if (more) {
            memcpy(next, memory.items[at].name, strlen(memory.items[at].name) + 1);
            size = hr_buffer_bytes(memory.items[at].bytes);
        }
        pthread_mutex_unlock(&memory.lock);
        any |= more;
        more = more && visit(user, next + bytes, strlen(next) - bytes, size);
    }
    if (any)
        return HR_OK;
    return hr__fail(reterr, HR_ERR_NOT_FOUND, "there are no objects in mem://%s", name);
}

const struct hr_store hr_store_memory = {
    .scheme = "mem",
    .gives = "memory of the process",
    .open = memory_open,
    .close = memory_close,
    .read = memory_read,
    .read_ready = memory_read_ready,
    .map = memory_map,
    .unmap = memory_unmap,
    .list = memory_list,
};
