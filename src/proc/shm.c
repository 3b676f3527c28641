/*
 * proc/shm.c - memory shared by descriptor.
 */
#include "proc/shm.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"

#define PAGE 4096

static enum hr_err map(struct hr_shm *shm, size_t bytes, struct hr_error *reterr)
{
    int access = shm->writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *base = MAP_FAILED;

    assert(shm->fd >= 0 && bytes > shm->bytes);
    errno = ENOMEM;
    if (!hr__fault(HR_FAULT_ALLOC) && shm->old_count < HR_SHM_OLD_MAX)
        base = mmap(NULL, bytes, access, MAP_SHARED, shm->fd, 0);
    if (base == MAP_FAILED)
        return hr__fail_errno(reterr, HR_ERR_MEMORY, errno,
                              "cannot map %zu bytes of shared memory", bytes);
    if (shm->base != NULL)
        shm->old[shm->old_count++] = (struct hr_shm_mapping){shm->base, shm->bytes};
    shm->base = base;
    shm->bytes = bytes;
    return HR_OK;
}

static enum hr_err lengthen(struct hr_shm *shm, size_t bytes, struct hr_error *reterr)
{
    assert(shm->writable);
    bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    errno = ENOMEM;
    if (hr__fault(HR_FAULT_ALLOC) || ftruncate(shm->fd, (off_t)bytes) != 0)
        return hr__fail_errno(reterr, HR_ERR_MEMORY, errno,
                              "no memory for %zu bytes shared with a worker process",
                              bytes);
    return map(shm, bytes, reterr);
}

enum hr_err hr__shm_create(struct hr_shm *shm, size_t bytes, struct hr_error *reterr)
{
    enum hr_err code = HR_ERR_IO;

    *shm = (struct hr_shm){.fd = -1, .writable = true};
    errno = EMFILE;
    if (!hr__fault(HR_FAULT_OPEN))
        shm->fd = memfd_create("headrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (shm->fd >= 0 && fcntl(shm->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        code = lengthen(shm, bytes, reterr);
    else
        hr__fail_errno(reterr, HR_ERR_IO, errno, "cannot make shared memory");
    if (code != HR_OK)
        hr__shm_close(shm);
    return code;
}

enum hr_err
hr__shm_adopt(struct hr_shm *shm, int fd, bool writable, struct hr_error *reterr)
{
    enum hr_err code;

    *shm = (struct hr_shm){.fd = fd, .writable = writable};
    code = hr__shm_map_all(shm, reterr);
    if (code != HR_OK)
        hr__shm_close(shm);
    return code;
}

void hr__shm_close(struct hr_shm *shm)
{
    hr__shm_unmap_old(shm);
    if (shm->base != NULL)
        munmap(shm->base, shm->bytes);
    if (shm->fd >= 0)
        close(shm->fd);
    *shm = (struct hr_shm){.fd = -1};
}

static enum hr_err
file_bytes(const struct hr_shm *shm, size_t *ret_bytes, struct hr_error *reterr)
{
    struct stat stat;

    if (fstat(shm->fd, &stat) != 0 || stat.st_size < PAGE)
        return hr__fail(reterr, HR_ERR_FORMAT, "shared memory is too short");
    *ret_bytes = (size_t)stat.st_size;
    return HR_OK;
}

enum hr_err
hr__shm_map(struct hr_shm *shm, size_t bytes, bool grow, struct hr_error *reterr)
{
    size_t length;

    if (bytes <= shm->bytes)
        return HR_OK;
    HR_TRY(file_bytes(shm, &length, reterr));
    if (bytes <= length)
        return map(shm, length, reterr);
    if (!grow)
        return hr__fail(reterr, HR_ERR_FORMAT, "shared memory is too short");
    return lengthen(shm, bytes > 2 * length ? bytes : 2 * length, reterr);
}

enum hr_err hr__shm_map_all(struct hr_shm *shm, struct hr_error *reterr)
{
    size_t length;

    HR_TRY(file_bytes(shm, &length, reterr));
    return length > shm->bytes ? map(shm, length, reterr) : HR_OK;
}

void hr__shm_unmap_old(struct hr_shm *shm)
{
    while (shm->old_count > 0) {
        shm->old_count--;
        munmap(shm->old[shm->old_count].base, shm->old[shm->old_count].bytes);
    }
}

void hr__shm_trim(struct hr_shm *shm, size_t keep)
{
    assert(shm->writable);
    keep = (keep + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (keep < shm->bytes)
        fallocate(shm->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)keep,
                  (off_t)(shm->bytes - keep));
}
