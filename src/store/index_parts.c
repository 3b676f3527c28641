/*
 * store/index_parts.c - header and table of a saved index, and replacing some sections.
 */
#include "store/index_parts.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are used in place");

#define MAGIC "HRINDEX"
#define VERSION 1u
#define SECTIONS_MAX 64u
#define ALIGN 64u
/* Files up to this size are read when they are mapped; larger ones as they are used. */
#define POPULATE_BYTES ((size_t)64 << 20)

struct header {
    char magic[8];
    uint32_t version, section_count;
    uint64_t file_bytes;
    uint64_t checksum; /* of the above and the section table */
    uint8_t zero[32];
};
_Static_assert(sizeof(struct header) == 64 && sizeof(struct hr_index_section) == 32,
               "the layout of the file");

static enum hr_err damaged(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "not an intact index: %s", what);
}

static uint64_t
header_checksum(const struct header *header, const struct hr_index_section *sections)
{
    uint64_t first = hr__hash64(header, offsetof(struct header, checksum), VERSION);

    return hr__hash64(sections, header->section_count * sizeof *sections, first);
}

uint64_t hr__index_part_checksum(uint32_t kind, const void *data, size_t bytes)
{
    return hr__hash64(data, bytes, kind);
}

enum hr_err hr__index_parts_check(const void *data, size_t bytes,
                                  const struct hr_index_section **ret_sections,
                                  uint32_t *ret_count, struct hr_error *reterr)
{
    const struct header *header = data;
    const struct hr_index_section *sections;
    uint64_t room = bytes;

    if (bytes < sizeof *header || memcmp(header->magic, MAGIC, sizeof MAGIC) != 0)
        return damaged(reterr, "it does not begin as one");
    if (header->version != VERSION)
        return damaged(reterr, "another version");
    if (header->file_bytes != bytes || header->section_count > SECTIONS_MAX ||
        header->section_count * sizeof *sections > bytes - sizeof *header)
        return damaged(reterr, "cut short");
    sections = (const void *)(header + 1);
    if (header->checksum != header_checksum(header, sections))
        return damaged(reterr, "the checksum of the header differs");
    for (uint32_t i = 0; i < header->section_count; i++) {
        if (sections[i].at > bytes || sections[i].bytes > bytes - sections[i].at ||
            sections[i].at % ALIGN != 0)
            return damaged(reterr, "a section lies outside");
        /* Sections that shared bytes would be copied one by one into a larger file. */
        if (sections[i].bytes > room)
            return damaged(reterr, "sections overlap");
        room -= sections[i].bytes;
    }
    *ret_sections = sections;
    *ret_count = header->section_count;
    return HR_OK;
}

/* errno, or 0; map->data is NULL for an empty file. */
static int map_file(const char *path, struct hr_index_map *map)
{
    struct stat info;
    int fd = -1, errnum = 0;

    errno = EACCES;
    if (!hr__fault(HR_FAULT_OPEN))
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno;
    errno = EIO;
    if (hr__fault(HR_FAULT_READ) || fstat(fd, &info) != 0) {
        errnum = errno;
    } else if (S_ISREG(info.st_mode) && info.st_size > 0) {
        int populate = (size_t)info.st_size <= POPULATE_BYTES ? MAP_POPULATE : 0;

        map->bytes = (size_t)info.st_size;
        map->data = mmap(NULL, map->bytes, PROT_READ, MAP_PRIVATE | populate, fd, 0);
        if (map->data == MAP_FAILED)
            errnum = errno;
    }
    close(fd);
    return errnum;
}

enum hr_err
hr__index_map(const char *path, struct hr_index_map *ret_map, struct hr_error *reterr)
{
    struct hr_index_map map = {0};
    int errnum = map_file(path, &map);

    if (errnum != 0)
        return hr__fail_errno(reterr, errnum == ENOENT ? HR_ERR_NOT_FOUND : HR_ERR_IO,
                              errnum, "cannot read %s", path);
    if (map.data == NULL)
        return damaged(reterr, "empty, or not a file");
    *ret_map = map;
    return HR_OK;
}

void hr__index_unmap(struct hr_index_map *map)
{
    if (map->data != NULL)
        munmap(map->data, map->bytes);
    *map = (struct hr_index_map){0};
}

/* ---- writing ---- */

struct plan {
    struct hr_index_map old;
    struct hr_index_section sections[SECTIONS_MAX];
    struct hr_index_piece kept[SECTIONS_MAX]; /* of the sections after the given ones */
    uint32_t count, given;
    uint64_t end;
};

static void add_section(struct plan *plan, const struct hr_index_section *section)
{
    struct hr_index_section *s = &plan->sections[plan->count++];

    *s = *section;
    s->at = (plan->end + ALIGN - 1) / ALIGN * ALIGN;
    plan->end = s->at + s->bytes;
}

static bool is_given(const struct plan *plan, uint32_t kind)
{
    for (uint32_t i = 0; i < plan->given; i++)
        if (plan->sections[i].kind == kind)
            return true;
    return false;
}

/* The sections of the present file that are not replaced. */
static void
plan_kept(struct plan *plan, const struct hr_index_section *sections, uint32_t count)
{
    for (uint32_t i = 0; i < count && plan->count < SECTIONS_MAX; i++) {
        if (is_given(plan, sections[i].kind))
            continue;
        plan->kept[plan->count] = (struct hr_index_piece){
            (const char *)plan->old.data + sections[i].at, sections[i].bytes};
        add_section(plan, &sections[i]);
    }
}

static void make_plan(struct plan *plan, const char *path,
                      const struct hr_index_part *parts, size_t count)
{
    const struct hr_index_section *sections = NULL;
    uint32_t old_count = 0;

    for (size_t i = 0; i < count; i++) {
        const struct hr_index_piece *pieces = parts[i].pieces;
        struct hr_index_section section = {
            .kind = parts[i].kind,
            .checksum =
                hr__index_part_checksum(parts[i].kind, pieces[0].data, pieces[0].bytes)};

        for (size_t k = 0; k < parts[i].piece_count; k++)
            section.bytes += pieces[k].bytes;
        plan->sections[plan->count++] = section;
    }
    plan->given = plan->count;
    if (hr__index_map(path, &plan->old, NULL) != HR_OK ||
        hr__index_parts_check(plan->old.data, plan->old.bytes, &sections, &old_count,
                              NULL) != HR_OK)
        old_count = 0;
    /* Offsets depend on the length of the table: the first pass counts, the second
     * places. */
    plan_kept(plan, sections, old_count);
    plan->end = sizeof(struct header) + plan->count * sizeof *plan->sections;
    plan->count = 0;
    while (plan->count < plan->given)
        add_section(plan, &plan->sections[plan->count]);
    plan_kept(plan, sections, old_count);
}

struct output {
    struct hr_file_writer *writer;
    uint64_t at;
};

static enum hr_err
put(struct output *out, const void *data, size_t bytes, struct hr_error *reterr)
{
    out->at += bytes;
    return bytes > 0 ? hr__file_write(out->writer, data, bytes, reterr) : HR_OK;
}

static enum hr_err fill_up(struct output *out, uint64_t at, struct hr_error *reterr)
{
    static const char zeros[ALIGN];

    return put(out, zeros, (size_t)(at - out->at), reterr);
}

static enum hr_err
put_head(struct output *out, const struct plan *plan, struct hr_error *reterr)
{
    struct header header = {.magic = MAGIC,
                            .version = VERSION,
                            .section_count = plan->count,
                            .file_bytes = plan->end};

    header.checksum = header_checksum(&header, plan->sections);
    HR_TRY(put(out, &header, sizeof header, reterr));
    return put(out, plan->sections, plan->count * sizeof *plan->sections, reterr);
}

static enum hr_err put_all(struct output *out, const struct plan *plan,
                           const struct hr_index_part *parts, struct hr_error *reterr)
{
    HR_TRY(put_head(out, plan, reterr));
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct hr_index_piece *pieces =
            i < plan->given ? parts[i].pieces : &plan->kept[i];
        size_t count = i < plan->given ? parts[i].piece_count : 1;

        HR_TRY(fill_up(out, plan->sections[i].at, reterr));
        for (size_t k = 0; k < count; k++)
            HR_TRY(put(out, pieces[k].data, pieces[k].bytes, reterr));
    }
    return HR_OK;
}

enum hr_err hr__index_parts_write(const char *path, const struct hr_index_part *parts,
                                  size_t count, struct hr_error *reterr)
{
    struct plan plan = {0};
    struct output out = {0};
    enum hr_err err;

    if (count > SECTIONS_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "too many sections");
    err = hr__file_begin(path, &out.writer, reterr);
    if (err != HR_OK)
        return err;
    make_plan(&plan, path, parts, count);
    err = put_all(&out, &plan, parts, reterr);
    if (err == HR_OK)
        err = hr__file_commit(out.writer, reterr);
    else
        hr__file_abort(out.writer);
    hr__index_unmap(&plan.old);
    return err;
}
