/*
 * fleet/borrow.c - the client's side of fleet/loan.h.
 */
#include "fleet/loan.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "wire/value.h"

#define OPEN_FILES_MAX 256u

/* ---- the desk ---- */

/* A tensor of a loan: in a segment's mapping, or in one of its own. */
struct piece {
    struct hr_mapping *mapping; /* a reference, or NULL */
    char *own;
    size_t own_bytes;
};

struct borrow {
    struct borrow *next; /* when it has come back */
    struct hr_desk *desk;
    uint64_t connection, frame;
    struct hr_buffer *body;
    size_t count;
    struct piece pieces[HR_SCHEMA_FIELDS_MAX];
};

struct hr_desk {
    pthread_mutex_t lock;
    void (*wake)(void *user);
    void *user;
    struct borrow *first; /* that came back */
    size_t refs;          /* the owner's, and one for each loan that is out */
    bool closed;
};

struct hr_desk *hr__desk_create(void (*wake)(void *user), void *user)
{
    struct hr_desk *desk = hr__calloc(1, sizeof *desk);

    if (desk == NULL)
        return NULL;
    pthread_mutex_init(&desk->lock, NULL);
    desk->wake = wake;
    desk->user = user;
    desk->refs = 1;
    return desk;
}

/* Under the lock, which it releases. */
static void unref_desk(struct hr_desk *desk)
{
    bool last = --desk->refs == 0;

    pthread_mutex_unlock(&desk->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&desk->lock);
    hr__free(desk);
}

void hr__desk_close(struct hr_desk *desk)
{
    uint64_t connection, frame;

    if (desk == NULL)
        return;
    while (hr__desk_take(desk, &connection, &frame))
        continue;
    pthread_mutex_lock(&desk->lock);
    desk->closed = true;
    while (desk->first != NULL) {
        struct borrow *borrow = desk->first;

        desk->first = borrow->next;
        desk->refs--;
        hr__free(borrow);
    }
    unref_desk(desk);
}

bool hr__desk_take(struct hr_desk *desk, uint64_t *ret_connection, uint64_t *ret_frame)
{
    struct borrow *borrow;

    pthread_mutex_lock(&desk->lock);
    borrow = desk->first;
    if (borrow != NULL) {
        desk->first = borrow->next;
        desk->refs--;
    }
    pthread_mutex_unlock(&desk->lock);
    if (borrow == NULL)
        return false;
    *ret_connection = borrow->connection;
    *ret_frame = borrow->frame;
    hr__free(borrow);
    return true;
}

/* ---- segments ---- */

struct hr_mapping {
    atomic_size_t refs;
    char *base;
    size_t bytes;
    int fd; /* -1: too many are open */
};

static atomic_uint open_files; /* that mappings of this process keep */

static void unref_mapping(struct hr_mapping *mapping)
{
    if (mapping == NULL || atomic_fetch_sub(&mapping->refs, 1) > 1)
        return;
    munmap(mapping->base, mapping->bytes);
    if (mapping->fd >= 0) {
        close(mapping->fd);
        atomic_fetch_sub(&open_files, 1);
    }
    hr__free(mapping);
}

/* Keeps the file open for mappings of parts of it, unless there are many: descriptors are
 * the program's. */
static void keep_file(struct hr_mapping *mapping, int fd)
{
    mapping->fd = -1;
    if (atomic_fetch_add(&open_files, 1) < OPEN_FILES_MAX)
        mapping->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (mapping->fd < 0)
        atomic_fetch_sub(&open_files, 1);
}

static enum hr_err malformed(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "a worker's shared memory is malformed: %s",
                    what);
}

/* Memory that another process could cut would end this one when it is read. */
static enum hr_err check_file(int fd, uint64_t bytes, struct hr_error *reterr)
{
    struct stat file;
    int seals;

    if (fd < 0)
        return malformed(reterr, "a segment came without its descriptor");
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return malformed(reterr, "a segment can shrink");
    if (fstat(fd, &file) != 0 || file.st_size < 0 || (uint64_t)file.st_size < bytes)
        return malformed(reterr, "a segment is shorter than announced");
    return HR_OK;
}

static enum hr_err
map(int fd, uint64_t bytes, struct hr_mapping **ret_mapping, struct hr_error *reterr)
{
    struct hr_mapping *mapping;

    HR_TRY(check_file(fd, bytes, reterr));
    mapping = hr__calloc(1, sizeof *mapping);
    if (mapping == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    atomic_init(&mapping->refs, 1);
    mapping->bytes = (size_t)bytes;
    mapping->base = mmap(NULL, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapping->base == MAP_FAILED) {
        hr__free(mapping);
        return hr__fail(reterr, HR_ERR_MEMORY, "cannot map %llu bytes of shared memory",
                        (unsigned long long)bytes);
    }
    keep_file(mapping, fd);
    *ret_mapping = mapping;
    return HR_OK;
}

enum hr_err hr__borrow_segment(struct hr_borrower *borrower, uint32_t index,
                               uint64_t bytes, int fd, struct hr_error *reterr)
{
    struct hr_mapping *mapping = NULL;
    enum hr_err code = HR_OK;

    if (index >= HR_SEGMENTS_MAX)
        code = malformed(reterr, "the number of a segment");
    else if (bytes > 0)
        code = map(fd, bytes, &mapping, reterr);
    if (fd >= 0)
        close(fd);
    if (code != HR_OK)
        return code;
    unref_mapping(borrower->mappings[index]);
    borrower->mappings[index] = mapping;
    return HR_OK;
}

void hr__borrow_finish(struct hr_borrower *borrower)
{
    for (size_t i = 0; i < HR_SEGMENTS_MAX; i++)
        unref_mapping(borrower->mappings[i]);
    *borrower = (struct hr_borrower){0};
}

/* ---- loans ---- */

static void end_pieces(struct borrow *borrow)
{
    for (size_t i = 0; i < borrow->count; i++) {
        unref_mapping(borrow->pieces[i].mapping);
        if (borrow->pieces[i].own != NULL)
            munmap(borrow->pieces[i].own, borrow->pieces[i].own_bytes);
    }
}

/* The last batch is gone. */
static void give_back(void *user)
{
    struct borrow *borrow = user;
    struct hr_desk *desk = borrow->desk;

    hr_buffer_unref(borrow->body);
    end_pieces(borrow);
    pthread_mutex_lock(&desk->lock);
    if (desk->closed) {
        hr__free(borrow);
        unref_desk(desk);
        return;
    }
    borrow->next = desk->first;
    desk->first = borrow;
    desk->wake(desk->user);
    pthread_mutex_unlock(&desk->lock);
}

/* A copy of the tensor, which this process may write to: of the pages that it does write
 * to, or without the file of all. */
static enum hr_err map_own(const struct hr_mapping *mapping, size_t offset, size_t bytes,
                           struct piece *piece, char **ret_data, struct hr_error *reterr)
{
    size_t skip = offset % (size_t)sysconf(_SC_PAGESIZE);
    int flags = MAP_PRIVATE | MAP_NORESERVE | (mapping->fd < 0 ? MAP_ANONYMOUS : 0);

    piece->own_bytes = skip + bytes;
    piece->own = mmap(NULL, piece->own_bytes, PROT_READ | PROT_WRITE, flags, mapping->fd,
                      mapping->fd < 0 ? 0 : (off_t)(offset - skip));
    if (piece->own == MAP_FAILED) {
        piece->own = NULL;
        return hr__fail(reterr, HR_ERR_MEMORY, "cannot map %zu bytes of a batch",
                        piece->own_bytes);
    }
    if (mapping->fd < 0)
        memcpy(piece->own + skip, mapping->base + offset, bytes);
    *ret_data = piece->own + skip;
    return HR_OK;
}

static enum hr_err
find_piece(const struct hr_borrower *borrower, const struct hr_loan_piece *piece,
           struct borrow *borrow, struct hr_borrowed *ret, struct hr_error *reterr)
{
    struct hr_mapping *mapping =
        piece->segment < HR_SEGMENTS_MAX ? borrower->mappings[piece->segment] : NULL;
    char *data;

    if (mapping == NULL || piece->common > 1 || piece->bytes == 0 ||
        piece->offset % HR_WIRE_ALIGN != 0 || piece->bytes % HR_WIRE_ALIGN != 0 ||
        !hr__wire_inside(mapping->bytes, piece->offset, piece->bytes) ||
        piece->bytes > HR_FRAME_DATA_MAX - ret->far_bytes)
        return malformed(reterr, "a tensor lies outside of its segment");
    data = mapping->base + piece->offset;
    if (piece->common) {
        HR_TRY(map_own(mapping, (size_t)piece->offset, (size_t)piece->bytes,
                       &borrow->pieces[borrow->count], &data, reterr));
    } else {
        atomic_fetch_add(&mapping->refs, 1);
        borrow->pieces[borrow->count].mapping = mapping;
    }
    borrow->count++;
    ret->far[ret->far_count++] =
        (struct hr_wire_far){.bytes = (size_t)piece->bytes, .data = data};
    ret->far_bytes += (size_t)piece->bytes;
    return HR_OK;
}

/* Fills in the pieces. Returns where the parcel begins in *ret_skip. */
static enum hr_err
read_table(const struct hr_borrower *borrower, const struct hr_buffer *body,
           struct borrow *borrow, struct hr_borrowed *ret, size_t *ret_skip,
           struct hr_error *reterr)
{
    const char *bytes = hr_buffer_data(body);
    size_t room = hr_buffer_bytes(body), end;
    struct hr_loan_piece piece;
    struct hr_loan_head head;

    if (room < sizeof head)
        return malformed(reterr, "a frame is too short");
    memcpy(&head, bytes, sizeof head);
    end = hr__wire_align(sizeof head + (size_t)head.count * sizeof piece);
    if (head.zero != 0 || head.count == 0 || head.count > HR_SCHEMA_FIELDS_MAX ||
        end > room)
        return malformed(reterr, "a frame's table");
    for (uint32_t i = 0; i < head.count; i++) {
        memcpy(&piece, bytes + sizeof head + i * sizeof piece, sizeof piece);
        HR_TRY(find_piece(borrower, &piece, borrow, ret, reterr));
    }
    *ret_skip = end;
    return HR_OK;
}

enum hr_err
hr__borrow(struct hr_borrower *borrower, struct hr_desk *desk, struct hr_buffer *body,
           struct hr_borrowed *ret_borrowed, struct hr_error *reterr)
{
    struct borrow *borrow = hr__calloc(1, sizeof *borrow);
    size_t skip = 0;
    enum hr_err code;

    *ret_borrowed = (struct hr_borrowed){0};
    if (borrow == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    code = read_table(borrower, body, borrow, ret_borrowed, &skip, reterr);
    if (code == HR_OK) {
        ret_borrowed->buffer =
            hr_buffer_wrap((char *)hr_buffer_data(body) + skip,
                           hr_buffer_bytes(body) - skip, give_back, borrow);
        if (ret_borrowed->buffer == NULL)
            code = hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    if (code != HR_OK) {
        end_pieces(borrow);
        hr__free(borrow);
        return code;
    }
    borrow->body = hr_buffer_ref(body);
    borrow->desk = desk;
    borrow->connection = borrower->connection;
    borrow->frame = ++borrower->frames;
    pthread_mutex_lock(&desk->lock);
    desk->refs++;
    pthread_mutex_unlock(&desk->lock);
    return HR_OK;
}
