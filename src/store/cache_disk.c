/*
 * store/cache_disk.c - a cache in a folder, shared by processes
 * (docs/formats/cache.md).
 *
 * Each process that adds anything has a segment: a file of values and a file of entries,
 * both only appended to. An entry is written after its value, so what a reader finds is
 * whole even if the writer was killed at any point; after a power cut the checksums tell.
 * Nobody writes to another one's segment, so no lock is held while values are written.
 */
#include "store/cache_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/file.h"
#include "core/kill_point.h"

/* Segments of others are looked at no more often than this. */
#define LOOK_NS ((uint64_t)250 * 1000 * 1000)
/* Entries that are read at once. */
#define ENTRIES 512
/* Without a budget this part of the disk is left free. */
#define DISK_PART 20
/* Bytes after which the disk, and other caches in the folder, are looked at again. */
#define LOOK_BYTES ((uint64_t)64 << 20)

/* The files' first 64 bytes, and an entry. Little-endian, without padding. */
struct head {
    char magic[8];
    uint32_t version, zero;
    uint64_t zeros[6];
};
struct entry {
    uint64_t key[2];
    uint64_t at, bytes; /* bytes 0: a mark */
    uint64_t when;      /* nanoseconds since 1970 */
    uint32_t value_crc, zero;
    uint64_t zeros;
    uint32_t zeros32, crc; /* of the 60 bytes before it */
};
_Static_assert(sizeof(struct head) == 64 && sizeof(struct entry) == 64,
               "the format has no padding");

static const char magic[8] = {'H', 'R', 'C', 'A', 'C', 'H', 'E', '\0'};
#define VERSION 1u

static char *path_of(const struct hr_cache *cache, const char *name, const char *end)
{
    struct hr_str path;

    hr__str_init(&path);
    hr__str_addf(&path, "%s/%s%s", cache->own_folder, name, end);
    return hr__str_take(&path);
}

static int open_at(const char *path, int flags)
{
    if (path == NULL || hr__fault(HR_FAULT_OPEN)) {
        errno = path == NULL ? ENOMEM : EMFILE;
        return -1;
    }
    return open(path, flags | O_CLOEXEC, 0666);
}

static int
open_file(const struct hr_cache *cache, const char *name, const char *end, int flags)
{
    char *path = path_of(cache, name, end);
    int fd = open_at(path, flags);
    int errnum = errno;

    hr__free(path);
    errno = errnum;
    return fd;
}

/* ---- reading ---- */

/* Bytes read, fewer at the end of the file; -1. */
static ssize_t read_at(int fd, void *to, size_t bytes, uint64_t at)
{
    size_t got = 0;

    while (got < bytes) {
        ssize_t n = hr__fault(HR_FAULT_READ)
                        ? -1
                        : pread(fd, (char *)to + got, bytes - got, (off_t)(at + got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -1 : (ssize_t)got;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

bool hr__cache_folder_read(const struct hr_cache_entry *entry, void *to)
{
    const struct hr_cache_segment *segment = entry->unit;
    bool whole = read_at(segment->values, to, (size_t)entry->bytes, entry->at) ==
                     (ssize_t)entry->bytes &&
                 hr__crc32c(0, to, (size_t)entry->bytes) == entry->crc;

    HR_KILL_POINT("cache.read");
    return whole;
}

static uint64_t counted(uint64_t bytes)
{
    return sizeof(struct entry) + ((bytes + HR_CACHE_ALIGN - 1) & ~(HR_CACHE_ALIGN - 1));
}

/* Whether the entry is intact and its value lies within a file of `values` bytes. */
static bool is_whole(const struct entry *entry, uint64_t values)
{
    return hr__crc32c(0, entry, offsetof(struct entry, crc)) == entry->crc &&
           (entry->bytes == 0 || /* a mark may be beyond the last value */
            (entry->at <= values && entry->bytes <= values - entry->at));
}

/* A damaged entry is ignored: the file goes on after it. */
static void add_entry(struct hr_cache *cache, struct hr_cache_segment *segment,
                      const struct entry *from, uint64_t values)
{
    struct hr_cache_entry entry = {
        .key = {from->key[0], from->key[1]},
        .unit = segment,
        .at = from->at,
        .bytes = from->bytes,
        .when = from->when,
        .crc = from->value_crc,
    };

    if (!is_whole(from, values)) {
        atomic_fetch_add(&cache->damaged, 1);
        return;
    }
    if (hr__cache_add(cache, &entry)) /* without memory it is not found */
        atomic_fetch_add(&cache->bytes, counted(from->bytes));
}

/* Takes in the entries that were added since. Called under the lock, as all that reads
 * the folder. */
static void
read_entries(struct hr_cache *cache, struct hr_cache_segment *segment, struct entry *room)
{
    for (;;) {
        ssize_t got =
            read_at(segment->index, room, ENTRIES * sizeof *room, segment->read);
        size_t count = got > 0 ? (size_t)got / sizeof *room : 0;
        struct stat values = {0}; /* after the entries: their values are written before */

        if (fstat(segment->values, &values) != 0)
            return;
        for (size_t i = 0; i < count; i++)
            add_entry(cache, segment, &room[i], (uint64_t)values.st_size);
        segment->read += count * sizeof *room;
        if (count < ENTRIES)
            return;
    }
}

static void segment_destroy(struct hr_cache_segment *segment)
{
    if (segment->values >= 0)
        close(segment->values);
    if (segment->index >= 0)
        close(segment->index);
    hr__free(segment);
}

static struct hr_cache_segment *
segment_open(const struct hr_cache *cache, const char *name, int flags)
{
    struct hr_cache_segment *segment = hr__calloc(1, sizeof *segment);

    if (segment == NULL)
        return NULL;
    snprintf(segment->name, sizeof segment->name, "%.47s", name);
    segment->index = -1;
    segment->values = open_file(cache, name, ".values", flags);
    if (segment->values >= 0)
        segment->index =
            open_file(cache, name, ".index", flags | (flags & O_CREAT ? O_APPEND : 0));
    if (segment->index >= 0)
        return segment;
    segment_destroy(segment);
    return NULL;
}

/* Whether the file of entries begins as it should; a segment that has no head yet is
 * looked at again later. */
static bool has_head(const struct hr_cache_segment *segment)
{
    struct head head;

    return read_at(segment->index, &head, sizeof head, 0) == sizeof head &&
           memcmp(head.magic, magic, sizeof magic) == 0 && head.version == VERSION;
}

static void add_segment(struct hr_cache *cache, const char *name)
{
    struct hr_cache_segment *segment = cache->segments;

    while (segment != NULL && strcmp(segment->name, name) != 0)
        segment = segment->next;
    if (segment != NULL)
        return;
    segment = segment_open(cache, name, O_RDONLY);
    if (segment == NULL)
        return;
    if (!has_head(segment)) {
        segment_destroy(segment);
        return;
    }
    segment->read = sizeof(struct head);
    segment->next = cache->segments;
    cache->segments = segment;
}

static void look(struct hr_cache *cache)
{
    struct entry *room = hr__malloc(ENTRIES * sizeof *room);
    DIR *folder = room != NULL ? opendir(cache->own_folder) : NULL;
    struct dirent *item;

    while (folder != NULL && (item = readdir(folder)) != NULL) {
        char *end = strrchr(item->d_name, '.');

        if (end == NULL || strcmp(end, ".index") != 0 ||
            (size_t)(end - item->d_name) >= sizeof cache->segments->name)
            continue;
        *end = '\0';
        add_segment(cache, item->d_name);
    }
    if (folder != NULL)
        closedir(folder);
    for (struct hr_cache_segment *s = cache->segments; room != NULL && s != NULL;
         s = s->next)
        if (!s->own)
            read_entries(cache, s, room);
    hr__free(room);
    atomic_store(&cache->looked_ns, hr__now_ns());
}

void hr__cache_folder_look(struct hr_cache *cache)
{
    if (hr__now_ns() - atomic_load_explicit(&cache->looked_ns, memory_order_relaxed) <
            LOOK_NS ||
        pthread_mutex_trylock(&cache->lock) != 0)
        return;
    look(cache);
    pthread_mutex_unlock(&cache->lock);
}

/* ---- writing ---- */

static bool write_at(int fd, const void *from, size_t bytes, uint64_t at)
{
    size_t put = 0;

    while (put < bytes) {
        ssize_t n;

        if (hr__fault(HR_FAULT_WRITE)) {
            errno = ENOSPC;
            return false;
        }
        n = pwrite(fd, (const char *)from + put, bytes - put, (off_t)(at + put));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        put += (size_t)n;
    }
    return true;
}

/* The files of this process; NULL if they cannot be made. Called under the lock. */
static struct hr_cache_segment *own_segment(struct hr_cache *cache)
{
    struct head head = {.version = VERSION};
    struct hr_cache_segment *segment = NULL;
    char name[sizeof segment->name];

    if (cache->own != NULL && cache->own_pid == getpid())
        return cache->own;
    if (cache->own != NULL) { /* the parent's, since a fork */
        cache->own->own = false;
        cache->own->read = sizeof head;
    }
    memcpy(head.magic, magic, sizeof magic);
    for (int i = 0; segment == NULL && i < 16; i++) {
        snprintf(name, sizeof name, "%016llx-%x", (unsigned long long)hr__wall_ns(),
                 (unsigned)getpid());
        segment = segment_open(cache, name, O_RDWR | O_CREAT | O_EXCL);
        if (segment == NULL && errno != EEXIST)
            return NULL;
    }
    if (segment == NULL)
        return NULL;
    if (!write_at(segment->index, &head, sizeof head, 0)) {
        segment_destroy(segment);
        return NULL;
    }
    HR_KILL_POINT("cache.begun");
    segment->own = true;
    segment->next = cache->segments;
    cache->segments = segment;
    cache->own_pid = getpid();
    return cache->own = segment;
}

static bool disk_has_room(const struct hr_cache *cache)
{
    struct statvfs disk;

    return statvfs(cache->own_folder, &disk) != 0 ||
           disk.f_bavail > disk.f_blocks / DISK_PART;
}

/* Looks at the disk, or at the other caches in the folder, now and then. */
static void look_around(struct hr_cache *cache, uint64_t bytes)
{
    if (cache->looked_at > 0 && bytes < cache->looked_at + LOOK_BYTES)
        return;
    cache->looked_at = bytes + 1;
    if (cache->bytes_max == 0)
        cache->disk_full = !disk_has_room(cache);
    else
        cache->others = hr__cache_others(cache->folder, cache->own_folder);
}

/* Whether `need` more bytes fit, after removing other caches; counts them. */
static bool make_room(struct hr_cache *cache, uint64_t need)
{
    uint64_t bytes = atomic_load(&cache->bytes) + need;

    look_around(cache, bytes);
    if (cache->disk_full || (cache->bytes_max > 0 && bytes > cache->bytes_max))
        return false;
    while (cache->bytes_max > 0 && bytes + cache->others > cache->bytes_max) {
        if (hr__cache_evict(cache->folder, cache->own_folder) == 0)
            return false;
        atomic_fetch_add(&cache->evicted, 1);
        cache->others = hr__cache_others(cache->folder, cache->own_folder);
    }
    atomic_fetch_add(&cache->bytes, need);
    return true;
}

/* Reserves room in the process's segment. NULL, and the cache is full, if there is none.
 */
static struct hr_cache_segment *
reserve(struct hr_cache *cache, size_t bytes, uint64_t *ret_at)
{
    struct hr_cache_segment *segment = NULL;
    bool room;
    int errnum;

    pthread_mutex_lock(&cache->lock);
    room = make_room(cache, counted(bytes));
    if (room)
        segment = own_segment(cache);
    errnum = errno;
    pthread_mutex_unlock(&cache->lock);
    if (!room && cache->bytes_max > 0)
        hr__cache_used_up(cache);
    else if (!room)
        hr__cache_fill(cache, "less than %d %% of the disk is free", 100 / DISK_PART);
    else if (segment == NULL)
        hr__cache_fill(cache, "no file can be made in it: %s", strerror(errnum));
    if (segment != NULL)
        *ret_at = atomic_fetch_add(&segment->end, counted(bytes) - sizeof(struct entry));
    return segment;
}

static bool append(struct hr_cache_segment *segment, const struct entry *entry)
{
    if (hr__fault(HR_FAULT_WRITE)) {
        errno = ENOSPC;
        return false;
    }
    HR_KILL_POINT("cache.valued");
    return write(segment->index, entry, sizeof *entry) == (ssize_t)sizeof *entry;
}

void hr__cache_folder_put(struct hr_cache *cache, struct hr_hash128 key, const void *data,
                          size_t bytes)
{
    struct hr_cache_entry entry = {.key = key, .bytes = bytes, .when = hr__wall_ns()};
    struct entry written = {
        {key.low, key.high},
        0, bytes, entry.when, 0, 0, 0, 0, 0
    };
    struct hr_cache_segment *segment = reserve(cache, bytes, &written.at);

    if (segment == NULL)
        return;
    entry.unit = segment;
    entry.at = written.at;
    entry.crc = written.value_crc = bytes > 0 ? hr__crc32c(0, data, bytes) : 0;
    written.crc = hr__crc32c(0, &written, offsetof(struct entry, crc));
    if ((bytes > 0 && !write_at(segment->values, data, bytes, written.at)) ||
        !append(segment, &written)) {
        hr__cache_fill(cache, "it cannot be written: %s", strerror(errno));
        return;
    }
    HR_KILL_POINT("cache.entered");
    if (!hr__cache_add(cache, &entry))
        hr__cache_fill(cache, "there is no memory for its table");
}

/* ---- life ---- */

enum hr_err hr__cache_folder_open(struct hr_cache *cache, struct hr_hash128 of,
                                  struct hr_error *reterr)
{
    char name[HR_CACHE_NAME_BYTES];
    struct hr_str path;

    HR_TRY(hr__file_make_folder(cache->folder, 0777, reterr));
    hr__cache_name(of, name);
    hr__str_init(&path);
    hr__str_addf(&path, "%s/%s", cache->folder, name);
    cache->own_folder = hr__str_take(&path);
    if (cache->own_folder == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a cache");
    HR_TRY(hr__cache_keep(cache->own_folder, &cache->folder_lock, reterr));
    pthread_mutex_lock(&cache->lock);
    look(cache);
    pthread_mutex_unlock(&cache->lock);
    return HR_OK;
}

void hr__cache_folder_close(struct hr_cache *cache)
{
    while (cache->segments != NULL) {
        struct hr_cache_segment *segment = cache->segments;

        cache->segments = segment->next;
        segment_destroy(segment);
    }
    if (cache->folder_lock >= 0)
        close(cache->folder_lock);
}
