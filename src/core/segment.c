/*
 * core/segment.c - memory of a pool that can be passed to another process (buffer.h).
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/buffer.h"

static int create_file(size_t bytes)
{
    int fd = memfd_create("headrace-batch", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 &&
        (ftruncate(fd, (off_t)bytes) != 0 ||
         fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

struct hr_memory_segment *hr__segment_create(size_t bytes)
{
    static atomic_uint_fast64_t last_id;
    struct hr_memory_segment *segment = hr__calloc(1, sizeof *segment);
    void *data = MAP_FAILED;

    if (segment == NULL)
        return NULL;
    segment->fd = create_file(bytes);
    if (segment->fd >= 0)
        data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
    if (data == MAP_FAILED) {
        if (segment->fd >= 0)
            close(segment->fd);
        hr__free(segment);
        return NULL;
    }
    segment->id = atomic_fetch_add(&last_id, 1) + 1;
    segment->bytes = bytes;
    segment->base = data;
    return segment;
}

void hr__segment_free(struct hr_memory_segment *segment)
{
    munmap(segment->base, segment->bytes);
    close(segment->fd);
    hr__free(segment);
}

const struct hr_memory_segment *
hr__buffer_segment(const struct hr_buffer *buffer, size_t *ret_offset)
{
    const struct hr_buffer *root = hr__buffer_root(buffer);
    const struct hr_memory_segment *segment = root->user;

    if (root->kind != HR_BUFFER_POOLED || segment == NULL)
        return NULL;
    *ret_offset = (size_t)((const char *)buffer->data - segment->base);
    return segment;
}
