/*
 * store/lmdb.c - pages of an LMDB file: two meta pages, a B+ tree for each database, and
 * runs of overflow pages for large values.
 */
#include "store/lmdb.h"

#include <string.h>

#include "core/alloc.h"
#include "core/bisect.h"
#include "core/error.h"

#define MAGIC 0xBEEFC0DEu
#define VERSION 1
#define HEAD 16 /* bytes of a page's header, and of a node's: */
#define NODE 8
#define DB_BYTES 48
#define META_BYTES 136 /* after the page's header */
#define DEPTH_MAX 32
#define PAGE_MIN 512
#define PAGE_MAX 65536
#define SAMPLE ((size_t)64 << 10)
#define NO_PAGE UINT64_MAX

enum {
    PAGE_BRANCH = 1,
    PAGE_LEAF = 2,
    PAGE_OVERFLOW = 4,
    PAGE_META = 8,
    PAGE_FIXED = 32
};
enum { NODE_BIG = 1, NODE_DATABASE = 2, NODE_DUPLICATES = 4 };
enum { DB_DUPLICATES = 4 };

struct leaf {
    uint64_t first; /* its first entry */
    uint64_t page;
};

struct database {
    uint32_t flags;
    uint32_t depth;
    uint64_t entries, root;
};

struct hr_lmdb {
    const uint8_t *data;
    size_t bytes;
    uint32_t page_bytes;
    uint64_t pages; /* in the file */
    uint64_t seen;  /* pages of the tree so far */
    struct leaf *leaves;
    size_t leaf_count, leaf_room;
    uint64_t count;
    bool has_databases; /* some entry describes a database */
    struct hr_hash128 identity;
    struct hr_error *error; /* while it is opened */
};

static uint16_t get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const uint8_t *at)
{
    return get16(at) | (uint32_t)get16(at + 2) << 16;
}

static uint64_t get64(const uint8_t *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

/* ---- pages and nodes ---- */

static enum hr_err damaged(struct hr_error *reterr, uint64_t page, const char *what)
{
    return hr__fail(reterr, HR_ERR_FORMAT, "page %llu is damaged: %s",
                    (unsigned long long)page, what);
}

/* A page of this kind, whose nodes' offsets lie inside it. */
static enum hr_err get_page(const struct hr_lmdb *lmdb, uint64_t number, unsigned kind,
                            const uint8_t **ret_page, struct hr_error *reterr)
{
    const uint8_t *page;

    if (number >= lmdb->pages)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "page %llu lies outside the file: it is cut, or damaged",
                        (unsigned long long)number);
    page = lmdb->data + number * lmdb->page_bytes;
    if (get64(page) != number)
        return damaged(reterr, number, "it has another page's number");
    if ((get16(page + 10) & (PAGE_BRANCH | PAGE_LEAF | PAGE_OVERFLOW | PAGE_META)) !=
        kind)
        return damaged(reterr, number, "it is of another kind");
    if (kind != PAGE_OVERFLOW &&
        (get16(page + 12) < HEAD || get16(page + 12) > lmdb->page_bytes))
        return damaged(reterr, number, "its header");
    *ret_page = page;
    return HR_OK;
}

static uint32_t node_count(const uint8_t *page)
{
    return (uint32_t)(get16(page + 12) - HEAD) / 2;
}

/* Node `at` (< node_count) and its key lie inside the page; NULL: they do not. */
static const uint8_t *
get_node(const struct hr_lmdb *lmdb, const uint8_t *page, uint32_t at)
{
    uint32_t offset = get16(page + HEAD + 2 * at);

    if (offset < HEAD || offset + NODE > lmdb->page_bytes ||
        offset + NODE + get16(page + offset + 6) > lmdb->page_bytes)
        return NULL;
    return page + offset;
}

static unsigned node_flags(const uint8_t *node)
{
    return get16(node + 4);
}

static enum hr_err
get_big(const struct hr_lmdb *lmdb, const uint8_t *reference, size_t bytes,
        const uint8_t **ret_data, struct hr_error *reterr)
{
    uint64_t number = get64(reference), pages;
    const uint8_t *page;

    HR_TRY(get_page(lmdb, number, PAGE_OVERFLOW, &page, reterr));
    pages = get32(page + 12);
    if (pages > lmdb->pages - number || bytes + HEAD > pages * lmdb->page_bytes)
        return damaged(reterr, number, "a value is larger than its pages");
    *ret_data = page + HEAD;
    return HR_OK;
}

static enum hr_err
get_entry(const struct hr_lmdb *lmdb, uint64_t number, const uint8_t *page, uint32_t at,
          struct hr_lmdb_entry *ret_entry, struct hr_error *reterr)
{
    const uint8_t *node = get_node(lmdb, page, at), *value;
    bool is_big = node != NULL && (node_flags(node) & NODE_BIG) != 0;
    size_t key_bytes, bytes, room;

    if (node == NULL)
        return damaged(reterr, number, "an entry lies outside it");
    key_bytes = get16(node + 6);
    bytes = get32(node);
    value = node + NODE + key_bytes;
    room = (size_t)(page + lmdb->page_bytes - value);
    if (room < (is_big ? sizeof(uint64_t) : bytes))
        return damaged(reterr, number, "a value lies outside it");
    if (is_big)
        HR_TRY(get_big(lmdb, value, bytes, &value, reterr));
    *ret_entry = (struct hr_lmdb_entry){(const char *)node + NODE, (const char *)value,
                                        key_bytes, bytes};
    return HR_OK;
}

/* ---- the tree ---- */

static enum hr_err add_leaf(struct hr_lmdb *lmdb, uint64_t number, const uint8_t *page)
{
    uint32_t count = node_count(page);

    if (count == 0)
        return damaged(lmdb->error, number, "it is empty");
    if ((get16(page + 10) & PAGE_FIXED) != 0)
        return damaged(lmdb->error, number, "it is of another kind");
    if (!hr__array_room(&lmdb->leaves, lmdb->leaf_count, &lmdb->leaf_room, 1,
                        sizeof *lmdb->leaves))
        return hr__fail(lmdb->error, HR_ERR_MEMORY, "out of memory");
    for (uint32_t i = 0; i < count && !lmdb->has_databases; i++) {
        const uint8_t *node = get_node(lmdb, page, i);

        lmdb->has_databases = node != NULL && (node_flags(node) & NODE_DATABASE) != 0;
    }
    lmdb->leaves[lmdb->leaf_count++] = (struct leaf){lmdb->count, number};
    lmdb->count += count;
    return HR_OK;
}

/* Adds the leaves below a page. No page is seen twice in a sound tree, so a damaged one
 * with a loop ends. */
static enum hr_err walk(struct hr_lmdb *lmdb, uint64_t number, uint32_t depth)
{
    const uint8_t *page;

    if (lmdb->seen++ >= lmdb->pages)
        return damaged(lmdb->error, number, "the tree leads back to it");
    HR_TRY(
        get_page(lmdb, number, depth == 1 ? PAGE_LEAF : PAGE_BRANCH, &page, lmdb->error));
    if (depth == 1)
        return add_leaf(lmdb, number, page);
    for (uint32_t i = 0; i < node_count(page); i++) {
        const uint8_t *node = get_node(lmdb, page, i);

        if (node == NULL)
            return damaged(lmdb->error, number, "an entry lies outside it");
        HR_TRY(walk(lmdb, get32(node) | (uint64_t)node_flags(node) << 32, depth - 1));
    }
    return HR_OK;
}

static enum hr_err list_leaves(struct hr_lmdb *lmdb, const struct database *database)
{
    lmdb->seen = lmdb->count = lmdb->leaf_count = 0;
    lmdb->has_databases = false;
    if ((database->flags & DB_DUPLICATES) != 0)
        return hr__fail(lmdb->error, HR_ERR_UNSUPPORTED,
                        "the database has several values for a key (MDB_DUPSORT), which "
                        "is not read: copy it into one without that flag");
    if (database->depth > DEPTH_MAX)
        return hr__fail(lmdb->error, HR_ERR_FORMAT, "a tree of %u levels: it is damaged",
                        (unsigned)database->depth);
    if (database->root != NO_PAGE && database->depth > 0)
        HR_TRY(walk(lmdb, database->root, database->depth));
    if (lmdb->count != database->entries)
        return hr__fail(lmdb->error, HR_ERR_FORMAT,
                        "its pages have %llu entries, its description %llu: it is "
                        "damaged",
                        (unsigned long long)lmdb->count,
                        (unsigned long long)database->entries);
    return HR_OK;
}

/* ---- meta pages ---- */

static struct database read_database(const uint8_t *at)
{
    return (struct database){.flags = get16(at + 4),
                             .depth = get16(at + 6),
                             .entries = get64(at + 32),
                             .root = get64(at + 40)};
}

/* The meta page at `offset`, after its header; NULL: there is none. */
static const uint8_t *meta_at(const struct hr_lmdb *lmdb, size_t offset)
{
    const uint8_t *page;

    if (lmdb->bytes < HEAD + META_BYTES || offset > lmdb->bytes - HEAD - META_BYTES)
        return NULL;
    page = lmdb->data + offset;
    if ((get16(page + 10) & PAGE_META) == 0 || get32(page + HEAD) != MAGIC)
        return NULL;
    return page + HEAD;
}

static uint32_t page_bytes_of(const uint8_t *meta)
{
    uint32_t bytes = get32(meta + 24);

    return bytes >= PAGE_MIN && bytes <= PAGE_MAX && (bytes & (bytes - 1)) == 0 ? bytes
                                                                                : 0;
}

/* The newer of both; the first page may be torn, then the second is looked for. */
static const uint8_t *find_meta(struct hr_lmdb *lmdb)
{
    const uint8_t *first = meta_at(lmdb, 0), *second = NULL;

    if (first != NULL && page_bytes_of(first) == 0)
        first = NULL;
    if (first != NULL)
        second = meta_at(lmdb, page_bytes_of(first));
    for (uint32_t bytes = PAGE_MIN; first == NULL && second == NULL && bytes <= PAGE_MAX;
         bytes *= 2) {
        second = meta_at(lmdb, bytes);
        if (second != NULL && page_bytes_of(second) != bytes)
            second = NULL;
    }
    if (first != NULL && second != NULL && page_bytes_of(second) == page_bytes_of(first))
        return get64(second + 128) > get64(first + 128) ? second : first;
    return first != NULL ? first : second;
}

static enum hr_err read_meta(struct hr_lmdb *lmdb, const uint8_t **ret_meta)
{
    const uint8_t *meta = find_meta(lmdb);

    if (meta == NULL)
        return hr__fail(lmdb->error, HR_ERR_FORMAT,
                        "it is no LMDB file of a 64-bit little-endian machine, or its "
                        "meta pages are damaged");
    if (get32(meta + 4) != VERSION)
        return hr__fail(lmdb->error, HR_ERR_UNSUPPORTED,
                        "version %u of LMDB's format; version %d is read",
                        (unsigned)get32(meta + 4), VERSION);
    lmdb->page_bytes = page_bytes_of(meta);
    lmdb->pages = lmdb->bytes / lmdb->page_bytes;
    *ret_meta = meta;
    return HR_OK;
}

/* ---- databases ---- */

/* The next entry from (*leaf, *at) on that is the description of a named database, or
 * HR_ERR_END. */
static enum hr_err next_database(const struct hr_lmdb *lmdb, size_t *leaf, uint32_t *at,
                                 struct hr_lmdb_entry *ret_entry)
{
    for (; *leaf < lmdb->leaf_count; ++*leaf, *at = 0) {
        uint64_t number = lmdb->leaves[*leaf].page;
        const uint8_t *page = lmdb->data + number * lmdb->page_bytes;

        while (*at < node_count(page)) {
            uint32_t k = (*at)++;
            const uint8_t *node = get_node(lmdb, page, k);

            if (node == NULL || (node_flags(node) & NODE_DATABASE) == 0)
                continue;
            HR_TRY(get_entry(lmdb, number, page, k, ret_entry, lmdb->error));
            if (ret_entry->value_bytes == DB_BYTES)
                return HR_OK;
        }
    }
    return HR_ERR_END;
}

/* As many as find room. */
static void add_names(const struct hr_lmdb *lmdb, char *names, size_t room)
{
    size_t used = 0, leaf = 0;
    uint32_t at = 0;
    struct hr_lmdb_entry entry;

    names[0] = '\0';
    while (next_database(lmdb, &leaf, &at, &entry) == HR_OK &&
           used + entry.key_bytes + 3 <= room) {
        if (used > 0) {
            memcpy(names + used, ", ", 2);
            used += 2;
        }
        memcpy(names + used, entry.key, entry.key_bytes);
        used += entry.key_bytes;
        names[used] = '\0';
    }
}

/* The description of a named database, which is an entry of the unnamed one. */
static enum hr_err
find_database(const struct hr_lmdb *lmdb, const char *name, struct database *ret_database)
{
    size_t leaf = 0;
    uint32_t at = 0;
    struct hr_lmdb_entry entry;
    char names[256];
    enum hr_err code;

    while ((code = next_database(lmdb, &leaf, &at, &entry)) == HR_OK) {
        if (entry.key_bytes != strlen(name) ||
            memcmp(entry.key, name, entry.key_bytes) != 0)
            continue;
        *ret_database = read_database((const uint8_t *)entry.value);
        return HR_OK;
    }
    if (code != HR_ERR_END)
        return code;
    add_names(lmdb, names, sizeof names);
    return hr__fail(lmdb->error, HR_ERR_NOT_FOUND, "no database is called \"%.80s\"%s%s",
                    name, names[0] != '\0' ? "; there are: " : "", names);
}

static enum hr_err
open_database(struct hr_lmdb *lmdb, const char *name, struct database *database)
{
    char names[256];

    HR_TRY(list_leaves(lmdb, database));
    if (name[0] != '\0') {
        HR_TRY(find_database(lmdb, name, database));
        return list_leaves(lmdb, database);
    }
    if (!lmdb->has_databases)
        return HR_OK;
    add_names(lmdb, names, sizeof names);
    return hr__fail(lmdb->error, HR_ERR_UNSUPPORTED,
                    "it has named databases: say with database which one is meant: %s",
                    names);
}

static enum hr_err
identify(struct hr_lmdb *lmdb, const uint8_t *meta, const struct database *database)
{
    struct hr_hasher *hasher = hr__hasher_create();
    size_t bytes = lmdb->bytes < SAMPLE ? lmdb->bytes : SAMPLE;
    size_t places[] = {0, (lmdb->bytes - bytes) / 2, lmdb->bytes - bytes};

    if (hasher == NULL)
        return hr__fail(lmdb->error, HR_ERR_MEMORY, "out of memory");
    hr__hasher_add(hasher, meta + 128, sizeof(uint64_t));
    hr__hasher_add(hasher, &database->entries, sizeof database->entries);
    hr__hasher_add(hasher, &database->root, sizeof database->root);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        hr__hasher_add(hasher, lmdb->data + places[i], bytes);
    lmdb->identity = hr__hasher_value(hasher);
    hr__hasher_destroy(hasher);
    return HR_OK;
}

/* ---- life and entries ---- */

enum hr_err hr__lmdb_open(const void *data, size_t bytes, const char *database,
                          struct hr_lmdb **ret_lmdb, struct hr_error *reterr)
{
    struct hr_lmdb *lmdb = hr__calloc(1, sizeof *lmdb);
    struct database described;
    const uint8_t *meta = NULL;
    enum hr_err code;

    if (lmdb == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    lmdb->data = data;
    lmdb->bytes = bytes;
    lmdb->error = reterr;
    code = read_meta(lmdb, &meta);
    if (code == HR_OK) {
        described = read_database(meta + 24 + DB_BYTES);
        code = open_database(lmdb, database, &described);
    }
    if (code == HR_OK)
        code = identify(lmdb, meta, &described);
    lmdb->error = NULL;
    if (code == HR_OK)
        *ret_lmdb = lmdb;
    else
        hr__lmdb_close(lmdb);
    return code;
}

void hr__lmdb_close(struct hr_lmdb *lmdb)
{
    if (lmdb == NULL)
        return;
    hr__free(lmdb->leaves);
    hr__free(lmdb);
}

uint64_t hr__lmdb_count(const struct hr_lmdb *lmdb)
{
    return lmdb->count;
}

struct hr_hash128 hr__lmdb_identity(const struct hr_lmdb *lmdb)
{
    return lmdb->identity;
}

static const struct leaf *find_leaf(const struct hr_lmdb *lmdb, uint64_t at)
{
    return &lmdb->leaves[HR_BISECT(lmdb->leaves, lmdb->leaf_count, first, at)];
}

enum hr_err hr__lmdb_entry(const struct hr_lmdb *lmdb, uint64_t at,
                           struct hr_lmdb_entry *ret_entry, struct hr_error *reterr)
{
    const struct leaf *leaf = find_leaf(lmdb, at);

    return get_entry(lmdb, leaf->page, lmdb->data + leaf->page * lmdb->page_bytes,
                     (uint32_t)(at - leaf->first), ret_entry, reterr);
}

uint64_t hr__lmdb_entry_bytes(const struct hr_lmdb *lmdb, uint64_t at)
{
    const struct leaf *leaf = find_leaf(lmdb, at);
    const uint8_t *page = lmdb->data + leaf->page * lmdb->page_bytes;
    const uint8_t *node = get_node(lmdb, page, (uint32_t)(at - leaf->first));

    return node != NULL ? (uint64_t)get16(node + 6) + get32(node) : 0;
}
