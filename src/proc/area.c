/*
 * proc/area.c - memory shared by descriptor.
 */
#include "proc/area.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"

#define PAGE 4096

static enum hr_err map(struct hr_area *area, size_t bytes, struct hr_error *reterr)
{
    int access = area->writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *base = MAP_FAILED;

    errno = ENOMEM;
    if (!hr__fault(HR_FAULT_ALLOC) && area->old_count < HR_AREA_OLD_MAX)
        base = mmap(NULL, bytes, access, MAP_SHARED, area->fd, 0);
    if (base == MAP_FAILED)
        return hr__fail_errno(reterr, HR_ERR_MEMORY, errno,
                              "cannot map %zu bytes of shared memory", bytes);
    if (area->base != NULL)
        area->old[area->old_count++] = (struct hr_area_mapping){area->base, area->bytes};
    area->base = base;
    area->bytes = bytes;
    return HR_OK;
}

static enum hr_err lengthen(struct hr_area *area, size_t bytes, struct hr_error *reterr)
{
    bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    errno = ENOMEM;
    if (hr__fault(HR_FAULT_ALLOC) || ftruncate(area->fd, (off_t)bytes) != 0)
        return hr__fail_errno(reterr, HR_ERR_MEMORY, errno,
                              "no memory for %zu bytes shared with a worker process",
                              bytes);
    return map(area, bytes, reterr);
}

enum hr_err hr__area_create(struct hr_area *area, size_t bytes, struct hr_error *reterr)
{
    enum hr_err code = HR_ERR_IO;

    *area = (struct hr_area){.fd = -1, .writable = true};
    errno = EMFILE;
    if (!hr__fault(HR_FAULT_OPEN))
        area->fd = memfd_create("headrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (area->fd >= 0 && fcntl(area->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        code = lengthen(area, bytes, reterr);
    else
        hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot make shared memory");
    if (code != HR_OK)
        hr__area_close(area);
    return code;
}

enum hr_err
hr__area_adopt(struct hr_area *area, int fd, bool writable, struct hr_error *reterr)
{
    enum hr_err code;

    *area = (struct hr_area){.fd = fd, .writable = writable};
    code = hr__area_reach_end(area, reterr);
    if (code != HR_OK)
        hr__area_close(area);
    return code;
}

void hr__area_close(struct hr_area *area)
{
    hr__area_settle(area);
    if (area->base != NULL)
        munmap(area->base, area->bytes);
    if (area->fd >= 0)
        close(area->fd);
    *area = (struct hr_area){.fd = -1};
}

static enum hr_err
file_bytes(const struct hr_area *area, size_t *ret_bytes, struct hr_error *reterr)
{
    struct stat stat;

    if (fstat(area->fd, &stat) != 0 || stat.st_size < PAGE)
        return hr__fail(reterr, HR_ERR_FORMAT, "shared memory is too short");
    *ret_bytes = (size_t)stat.st_size;
    return HR_OK;
}

enum hr_err
hr__area_reach(struct hr_area *area, size_t bytes, bool grow, struct hr_error *reterr)
{
    size_t length;

    if (bytes <= area->bytes)
        return HR_OK;
    HR_TRY(file_bytes(area, &length, reterr));
    if (bytes <= length)
        return map(area, length, reterr);
    if (!grow)
        return hr__fail(reterr, HR_ERR_FORMAT, "shared memory is too short");
    return lengthen(area, bytes > 2 * length ? bytes : 2 * length, reterr);
}

enum hr_err hr__area_reach_end(struct hr_area *area, struct hr_error *reterr)
{
    size_t length;

    HR_TRY(file_bytes(area, &length, reterr));
    return length > area->bytes ? map(area, length, reterr) : HR_OK;
}

void hr__area_settle(struct hr_area *area)
{
    while (area->old_count > 0) {
        area->old_count--;
        munmap(area->old[area->old_count].base, area->old[area->old_count].bytes);
    }
}

void hr__area_trim(struct hr_area *area, size_t keep)
{
    keep = (keep + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (keep < area->bytes)
        fallocate(area->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)keep,
                  (off_t)(area->bytes - keep));
}
