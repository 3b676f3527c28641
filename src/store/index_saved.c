/*
 * store/index_saved.c - a saved index: docs/formats/source-index.md.
 *
 * Nothing in the file is trusted: the bounds of every section are checked, a checksum
 * over each, then every offset that a later read would follow. A file that passes is used
 * in place, so opening it costs one pass over the bytes. One that does not is ignored and
 * the folders are walked; the caller gets no error.
 */
#include "core/alloc.h"
#include "core/error.h"
#include "store/index_internal.h"

#include <string.h>

#define RECORD_UNSURE 1u
#define META_HAS_LABELS 1u

enum { KIND_META = 1, KIND_FOLDERS, KIND_FOLDER_NAMES, KIND_OFFSETS, KIND_NAMES, KINDS };

struct meta {
    struct hr_hash128 options, identity;
    uint64_t files, flags;
};

struct hr_index_record {
    uint64_t ino;
    int64_t mtime_ns;
    uint64_t offsets_at; /* first of files + 1 offsets, when files > 0 */
    uint64_t names_at;
    uint32_t names_bytes, files, parent, name_at;
    uint16_t name_bytes, prefix_bytes, suffix_bytes, flags;
    uint32_t skipped, zero;
};
_Static_assert(sizeof(struct meta) == 48 && sizeof(struct hr_index_record) == 64,
               "the layout of the file");

static enum hr_err damaged(struct hr_error *reterr, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "not an intact index: %s", what);
}

/* Fills `found` by kind; other kinds are ignored. */
static enum hr_err
find_sections(const char *data, size_t bytes, const struct hr_index_section *found[KINDS],
              struct hr_error *reterr)
{
    const struct hr_index_section *sections;
    uint32_t count;

    HR_TRY(hr__index_parts_check(data, bytes, &sections, &count, reterr));
    for (uint32_t i = 0; i < count; i++) {
        const struct hr_index_section *section = &sections[i];

        if (section->kind == 0 || section->kind >= KINDS)
            continue;
        if (found[section->kind] != NULL)
            return damaged(reterr, "a section comes twice");
        if (section->checksum !=
            hr__index_part_checksum(section->kind, data + section->at, section->bytes))
            return damaged(reterr, "the checksum of a section differs");
        found[section->kind] = section;
    }
    for (int kind = KIND_META; kind < KINDS; kind++) {
        if (found[kind] == NULL)
            return damaged(reterr, "a section is missing");
    }
    return HR_OK;
}

/* Returns whether the names of one folder's files lie inside the sections. */
static bool
files_are_inside(const struct hr_index_saved *saved, const struct hr_index_record *record)
{
    size_t shared = (size_t)record->prefix_bytes + record->suffix_bytes;
    const uint32_t *offset;

    if (record->files == 0)
        return true;
    if (record->offsets_at > saved->offset_count ||
        saved->offset_count - record->offsets_at < (uint64_t)record->files + 1 ||
        record->names_at > saved->names_bytes ||
        record->names_bytes > saved->names_bytes - record->names_at ||
        shared >= HR_INDEX_PATH_MAX)
        return false;
    offset = saved->offsets + record->offsets_at;
    if (offset[0] != shared || offset[record->files] > record->names_bytes)
        return false;
    for (uint32_t i = 0; i < record->files; i++) {
        if (offset[i] > offset[i + 1] ||
            offset[i + 1] - offset[i] >= HR_INDEX_PATH_MAX - shared ||
            offset[i + 1] - offset[i] + shared == 0)
            return false;
    }
    return true;
}

static bool name_is_plain(const char *name, size_t bytes)
{
    return bytes > 0 && memchr(name, '/', bytes) == NULL &&
           memchr(name, '\0', bytes) == NULL && !(bytes == 1 && name[0] == '.') &&
           !(bytes == 2 && name[0] == '.' && name[1] == '.');
}

/* Records are stored level by level, siblings in order, so the children of a folder are
 * contiguous and no folder precedes its parent. */
static bool record_is_placed(const struct hr_index_saved *saved, uint32_t at)
{
    const struct hr_index_record *record = &saved->records[at], *before;
    const char *name;

    if (record->name_at > saved->folder_names_bytes ||
        record->name_bytes > saved->folder_names_bytes - record->name_at)
        return false;
    if (at == 0)
        return record->name_bytes == 0;
    name = saved->folder_names + record->name_at;
    if (record->parent >= at || !name_is_plain(name, record->name_bytes))
        return false;
    if (at == 1)
        return true;
    before = record - 1;
    return before->parent < record->parent ||
           (before->parent == record->parent &&
            hr__index_compare_folders(saved->folder_names + before->name_at,
                                      before->name_bytes, name, record->name_bytes) < 0);
}

static enum hr_err
check_records(struct hr_index_saved *saved, uint64_t files, struct hr_error *reterr)
{
    uint32_t count = saved->record_count;
    uint64_t found = 0; /* below 2^24 times 2^32 */

    for (uint32_t i = 0; i < count; i++) {
        if (!record_is_placed(saved, i) || !files_are_inside(saved, &saved->records[i]))
            return damaged(reterr, "a folder's record is wrong");
        found += saved->records[i].files;
    }
    if (found != files)
        return damaged(reterr, "the number of files is wrong");
    if (memchr(saved->names, '/', saved->names_bytes) != NULL ||
        memchr(saved->names, '\0', saved->names_bytes) != NULL)
        return damaged(reterr, "a name holds a slash");
    saved->first_child = hr__malloc(((size_t)count + 1) * sizeof *saved->first_child);
    if (saved->first_child == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0, child = 1; i <= count; i++) {
        while (i > 0 && child < count && saved->records[child].parent < i)
            child++;
        saved->first_child[i] = child;
    }
    return HR_OK;
}

enum hr_err
hr__index_saved_parse(const void *data, size_t bytes, struct hr_index_saved *ret_saved,
                      struct hr_error *reterr)
{
    const struct hr_index_section *found[KINDS] = {NULL};
    struct hr_index_saved saved = {0};
    const struct meta *meta;
    const char *base = data;

    HR_TRY(find_sections(base, bytes, found, reterr));
    meta = (const void *)(base + found[KIND_META]->at);
    if (found[KIND_META]->bytes < sizeof *meta ||
        found[KIND_FOLDERS]->bytes % sizeof *saved.records != 0 ||
        found[KIND_FOLDERS]->bytes == 0 ||
        found[KIND_FOLDERS]->bytes / sizeof *saved.records > HR_INDEX_FOLDERS_MAX)
        return damaged(reterr, "a section has a wrong size");
    saved.options = meta->options;
    saved.identity = meta->identity;
    saved.identity_has_labels = (meta->flags & META_HAS_LABELS) != 0;
    saved.records = (const void *)(base + found[KIND_FOLDERS]->at);
    saved.record_count = (uint32_t)(found[KIND_FOLDERS]->bytes / sizeof *saved.records);
    saved.folder_names = base + found[KIND_FOLDER_NAMES]->at;
    saved.folder_names_bytes = found[KIND_FOLDER_NAMES]->bytes;
    saved.offsets = (const void *)(base + found[KIND_OFFSETS]->at);
    saved.offset_count = found[KIND_OFFSETS]->bytes / sizeof *saved.offsets;
    saved.names = base + found[KIND_NAMES]->at;
    saved.names_bytes = found[KIND_NAMES]->bytes;
    HR_TRY(check_records(&saved, meta->files, reterr));
    *ret_saved = saved;
    return HR_OK;
}

enum hr_err hr__index_saved_open(const char *path, struct hr_index_saved *ret_saved,
                                 struct hr_error *reterr)
{
    struct hr_index_map map = {0};
    enum hr_err err;

    HR_TRY(hr__index_map(path, &map, reterr));
    err = hr__index_saved_parse(map.data, map.bytes, ret_saved, reterr);
    if (err == HR_OK)
        ret_saved->map = map;
    else
        hr__index_unmap(&map);
    return err;
}

void hr__index_saved_close(struct hr_index_saved *saved)
{
    hr__index_unmap(&saved->map);
    hr__free(saved->first_child);
    memset(saved, 0, sizeof *saved);
}

bool hr__index_saved_is_current(const struct hr_index_saved *saved, uint32_t record,
                                uint64_t ino, int64_t mtime_ns)
{
    const struct hr_index_record *r = &saved->records[record];

    return r->ino == ino && r->mtime_ns == mtime_ns && (r->flags & RECORD_UNSURE) == 0;
}

const char *hr__index_saved_folder_name(const struct hr_index_saved *saved,
                                        uint32_t record, size_t *ret_bytes)
{
    *ret_bytes = saved->records[record].name_bytes;
    return saved->folder_names + saved->records[record].name_at;
}

void hr__index_saved_names(const struct hr_index_saved *saved, uint32_t record,
                           struct hr_index_folder *folder)
{
    const struct hr_index_record *r = &saved->records[record];

    folder->skipped = r->skipped;
    if (r->files == 0)
        return;
    folder->names = (struct hr_index_names){
        .offset = saved->offsets + r->offsets_at,
        .pool = saved->names + r->names_at,
        .pool_bytes = r->names_bytes,
        .count = r->files,
        .prefix_bytes = r->prefix_bytes,
        .suffix_bytes = r->suffix_bytes,
    };
}

bool hr__index_saved_same(const struct hr_index_saved *saved, uint32_t record,
                          const struct hr_index_folder *folder)
{
    const struct hr_index_record *r = &saved->records[record];
    const struct hr_index_names *names = &folder->names;

    return r->ino == folder->ino && r->mtime_ns == folder->mtime_ns &&
           (r->flags & RECORD_UNSURE) == (folder->unsure ? RECORD_UNSURE : 0) &&
           r->files == names->count && r->skipped == folder->skipped &&
           saved->first_child[record + 1] - saved->first_child[record] ==
               folder->child_count &&
           (names->count == 0 ||
            (r->names_bytes == names->pool_bytes &&
             r->prefix_bytes == names->prefix_bytes &&
             r->suffix_bytes == names->suffix_bytes &&
             memcmp(saved->offsets + r->offsets_at, names->offset,
                    ((size_t)names->count + 1) * sizeof *names->offset) == 0 &&
             memcmp(saved->names + r->names_at, names->pool, names->pool_bytes) == 0));
}

uint32_t hr__index_saved_find_child(const struct hr_index_saved *saved, uint32_t record,
                                    const char *name, size_t bytes)
{
    uint32_t low, high;

    if (record == HR_INDEX_NO_RECORD)
        return HR_INDEX_NO_RECORD;
    low = saved->first_child[record];
    high = saved->first_child[record + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        size_t other_bytes;
        const char *other = hr__index_saved_folder_name(saved, middle, &other_bytes);
        int order = hr__index_compare_folders(name, bytes, other, other_bytes);

        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return HR_INDEX_NO_RECORD;
}

/* What will be written: the folders level by level, and the sizes of their parts. */
struct plan {
    const struct hr_index_folder **folders;
    uint32_t count;
    size_t folder_names_bytes, offset_count, names_bytes;
};

/* Their contents. */
struct parts {
    struct hr_index_record *records;
    uint32_t *offsets;
    char *folder_names, *names;
};

static enum hr_err plan_save(const struct hr_index *index, struct plan *plan)
{
    plan->folders = hr__malloc(index->tree.folders * sizeof(struct hr_index_folder *));
    if (plan->folders == NULL)
        return HR_ERR_MEMORY;
    plan->folders[plan->count++] = index->tree.root;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct hr_index_folder *folder = plan->folders[i];

        for (uint32_t c = 0; c < folder->child_count; c++)
            plan->folders[plan->count++] = folder->children[c];
        plan->folder_names_bytes += folder->name_bytes;
        if (folder->names.count > 0)
            plan->offset_count += (size_t)folder->names.count + 1;
        plan->names_bytes += folder->names.pool_bytes;
    }
    return plan->folder_names_bytes > UINT32_MAX ? HR_ERR_LIMIT : HR_OK;
}

static void write_parts(const struct plan *plan, const struct parts *parts)
{
    struct hr_index_record *records = parts->records;
    char *folder_names = parts->folder_names;
    uint32_t *offsets = parts->offsets;
    char *names = parts->names;
    size_t folder_names_at = 0, offsets_at = 0, names_at = 0;
    uint32_t next_child = 1;

    for (uint32_t i = 0; i < plan->count; i++) {
        const struct hr_index_folder *folder = plan->folders[i];
        const struct hr_index_names *from = &folder->names;
        uint32_t parent = records[i].parent; /* set when the parent was written */

        for (uint32_t c = 0; c < folder->child_count; c++)
            records[next_child++].parent = i;
        records[i] = (struct hr_index_record){
            .ino = folder->ino,
            .mtime_ns = folder->mtime_ns,
            .offsets_at = offsets_at,
            .names_at = names_at,
            .names_bytes = from->pool_bytes,
            .files = from->count,
            .parent = parent,
            .name_at = (uint32_t)folder_names_at,
            .name_bytes = (uint16_t)folder->name_bytes,
            .prefix_bytes = from->prefix_bytes,
            .suffix_bytes = from->suffix_bytes,
            .flags = folder->unsure ? RECORD_UNSURE : 0,
            .skipped = folder->skipped,
        };
        memcpy(folder_names + folder_names_at, folder->name, folder->name_bytes);
        folder_names_at += folder->name_bytes;
        if (from->count == 0)
            continue;
        memcpy(offsets + offsets_at, from->offset,
               ((size_t)from->count + 1) * sizeof *offsets);
        offsets_at += (size_t)from->count + 1;
        memcpy(names + names_at, from->pool, from->pool_bytes);
        names_at += from->pool_bytes;
    }
}

static enum hr_err make_parts(const struct plan *plan, struct parts *parts)
{
    parts->records = hr__calloc(plan->count, sizeof *parts->records);
    parts->offsets = hr__malloc((plan->offset_count + 1) * sizeof *parts->offsets);
    parts->folder_names = hr__malloc(plan->folder_names_bytes + 1);
    parts->names = hr__malloc(plan->names_bytes + 1);
    if (parts->records == NULL || parts->offsets == NULL || parts->folder_names == NULL ||
        parts->names == NULL)
        return HR_ERR_MEMORY;
    write_parts(plan, parts);
    return HR_OK;
}

static void free_parts(struct parts *parts)
{
    hr__free(parts->records);
    hr__free(parts->offsets);
    hr__free(parts->folder_names);
    hr__free(parts->names);
}

static enum hr_err
write_file(const struct hr_index *index, const struct plan *plan,
           const struct parts *parts, const char *path, struct hr_error *reterr)
{
    struct meta meta = {index->options_hash, index->identity, index->count,
                        index->labels_count ? META_HAS_LABELS : 0};
    const struct hr_index_piece pieces[KINDS - 1] = {
        {&meta,               sizeof meta                          },
        {parts->records,      plan->count * sizeof *parts->records },
        {parts->folder_names, plan->folder_names_bytes             },
        {parts->offsets,      plan->offset_count * sizeof(uint32_t)},
        {parts->names,        plan->names_bytes                    },
    };
    struct hr_index_part sections[KINDS - 1];

    for (uint32_t i = 0; i < KINDS - 1; i++)
        sections[i] = (struct hr_index_part){KIND_META + i, &pieces[i], 1};
    return hr__index_parts_write(path, sections, KINDS - 1, reterr);
}

enum hr_err
hr__index_save(const struct hr_index *index, const char *path, struct hr_error *reterr)
{
    struct plan plan = {0};
    struct parts parts = {0};
    enum hr_err err;

    if (index->is_list)
        return hr__fail(
            reterr, HR_ERR_UNSUPPORTED,
            "only the index of a local folder is saved, and none made from a list");
    err = plan_save(index, &plan);
    if (err == HR_OK)
        err = make_parts(&plan, &parts);
    if (err == HR_OK)
        err = write_file(index, &plan, &parts, path, reterr);
    else
        hr__fail(reterr, err, "saving %s: %s", path, hr_err_text(err));
    free_parts(&parts);
    hr__free(plan.folders);
    return err;
}
