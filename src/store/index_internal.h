/*
 * store/index_internal.h - shared by the files index*.c.
 *
 * A folder keeps the names of its files sorted and packed: their common prefix and suffix
 * are stored once, the rest in one run of bytes with 32-bit offsets. Photos of one class
 * ("n01440764_10026.JPEG") take about ten bytes each this way, and a name is found
 * without unpacking others. A saved index holds the same bytes.
 */
#ifndef HR_STORE_INDEX_INTERNAL_H
#define HR_STORE_INDEX_INTERNAL_H

#include "store/classes.h"
#include "store/index.h"
#include "store/index_parts.h"

#define HR_INDEX_PATH_MAX 4096 /* bytes of any path below root, with its NUL */
#define HR_INDEX_FOLDERS_MAX (1u << 24)
#define HR_INDEX_NO_RECORD UINT32_MAX

/* Which folders and files belong to the index: segments of a pattern, matched as a set of
 * states, so that a folder is entered only if something below it can match. */
struct hr_index_segment {
    const char *text;
    size_t bytes;
    bool any_depth; /* two stars */
};
struct hr_index_pattern {
    char *base; /* folder where the walk begins; "" is the working directory */
    char *text; /* the segments' storage */
    struct hr_index_segment *segments;
    uint32_t segment_count; /* 1..64; the last is never any_depth */
    char **suffixes;        /* lower case */
    size_t *suffix_bytes;
    size_t suffix_count;
    struct hr_hash128 hash; /* of all of the above but base */
    bool is_glob;
};
enum hr_err
hr__index_pattern_init(struct hr_index_pattern *pattern,
                       const struct hr_index_options *options, struct hr_error *reterr);
void hr__index_pattern_finish(struct hr_index_pattern *pattern);
uint64_t hr__index_pattern_start(const struct hr_index_pattern *pattern);
/* States inside folder `name`; 0: nothing there can match. */
uint64_t hr__index_pattern_enter(const struct hr_index_pattern *pattern, uint64_t states,
                                 const char *name, size_t bytes);
bool hr__index_pattern_accepts(const struct hr_index_pattern *pattern, uint64_t states,
                               const char *name, size_t bytes);
bool hr__glob_match(const char *glob, size_t glob_bytes, const char *name, size_t bytes);

/* `pool` holds prefix, suffix, then the middles; middle i is offset[i]..offset[i + 1]. */
struct hr_index_names {
    const uint32_t *offset;
    const char *pool;
    uint32_t pool_bytes, count;
    uint16_t prefix_bytes, suffix_bytes;
};

struct hr_index_folder {
    struct hr_index_folder *parent, *next; /* next: in the list of all, and of work */
    struct hr_index_folder **children;     /* sorted as "name/" */
    struct hr_index_names names;
    void *block; /* storage of names; NULL: they are in the map */
    uint64_t states, dev, ino;
    int64_t mtime_ns;
    size_t heap_bytes;
    uint32_t child_count, skipped;
    uint32_t record; /* its record in the saved index, or HR_INDEX_NO_RECORD */
    uint32_t number; /* its label, for root's children with folder labels */
    bool unsure;     /* its time does not show whether it changed */
    bool rescanned;
    size_t name_bytes;
    char name[]; /* NUL-terminated; "" for root */
};

/* Copies name `at` to `name` (room for HR_INDEX_PATH_MAX) and returns its length. Safe
 * for any offsets. */
size_t hr__index_name(const struct hr_index_names *names, uint32_t at, char *name);

/* Copies the path below root to `path`, without NUL, and returns its length; SIZE_MAX if
 * it is longer than `room`. */
size_t
hr__index_folder_path(const struct hr_index_folder *folder, char *path, size_t room);
struct hr_index_folder *
hr__index_folder_create(struct hr_index_folder *parent, const char *name, size_t bytes);
void hr__index_folder_destroy(struct hr_index_folder *folder);
/* memcmp order of "name/". */
int hr__index_compare_folders(const char *a, size_t a_bytes, const char *b,
                              size_t b_bytes);

/* What one thread needs to read folders: buffers that are reused. */
struct hr_index_entry {
    uint64_t key; /* first eight bytes after the common prefix, big-endian */
    const char *name;
    uint32_t at, bytes;
};
struct hr_index_bytes {
    char *data;
    size_t bytes, room;
};
struct hr_index_lister {
    const struct hr_index_pattern *pattern;
    const atomic_bool *cancel;
    int root_fd;
    const char *root; /* for messages */
    char *dents;
    struct hr_index_bytes text; /* names of files, not terminated */
    struct hr_index_entry *files;
    size_t file_count, file_room;
    struct hr_index_folder **folders; /* found; owned until handed over */
    size_t folder_count, folder_room;
};
enum hr_err
hr__index_lister_init(struct hr_index_lister *lister, struct hr_error *reterr);
void hr__index_lister_finish(struct hr_index_lister *lister);
/* Reads `folder` from the file system: fills in names, children and times. */
enum hr_err
hr__index_list_folder(struct hr_index_lister *lister, struct hr_index_folder *folder,
                      struct hr_error *reterr);
/* Sorts lister->files and packs them into folder->names. */
enum hr_err hr__index_pack(struct hr_index_lister *lister, struct hr_index_folder *folder,
                           struct hr_error *reterr);

/* A saved index, mapped and checked. */
struct hr_index_record;
struct hr_index_saved {
    struct hr_index_map map;
    const struct hr_index_record *records;
    uint32_t record_count;
    const char *folder_names;
    size_t folder_names_bytes;
    const uint32_t *offsets;
    size_t offset_count;
    const char *names;
    size_t names_bytes;
    uint32_t *first_child; /* record_count + 1: children of i are [i], [i + 1) */
    struct hr_hash128 options, identity;
    bool identity_has_labels;
};
/* HR_ERR_NOT_FOUND: no such file; HR_ERR_FORMAT: damaged. */
enum hr_err hr__index_saved_open(const char *path, struct hr_index_saved *ret_saved,
                                 struct hr_error *reterr);
/* The same for 64-byte aligned bytes in memory, which remain the caller's (map stays
 * NULL). */
enum hr_err
hr__index_saved_parse(const void *data, size_t bytes, struct hr_index_saved *ret_saved,
                      struct hr_error *reterr);
void hr__index_saved_close(struct hr_index_saved *saved);
bool hr__index_saved_same(const struct hr_index_saved *saved, uint32_t record,
                          const struct hr_index_folder *folder);
bool hr__index_saved_is_current(const struct hr_index_saved *saved, uint32_t record,
                                uint64_t ino, int64_t mtime_ns);
void hr__index_saved_names(const struct hr_index_saved *saved, uint32_t record,
                           struct hr_index_folder *folder);
const char *hr__index_saved_folder_name(const struct hr_index_saved *saved,
                                        uint32_t record, size_t *ret_bytes);
uint32_t hr__index_saved_find_child(const struct hr_index_saved *saved, uint32_t record,
                                    const char *name, size_t bytes);

/* Walks from root with several threads; unchanged folders are taken from `saved` (or
 * NULL). */
struct hr_index_tree {
    struct hr_index_folder *root;
    struct hr_index_folder *all; /* linked by next */
    uint64_t files, folders, rescanned, skipped;
    size_t heap_bytes;
    bool differs; /* from the saved index */
    bool stale;   /* saved contradicts the file system: walk again without it */
};
enum hr_err
hr__index_walk(const struct hr_index_options *options,
               const struct hr_index_pattern *pattern, const struct hr_index_saved *saved,
               struct hr_index_tree *ret_tree, struct hr_error *reterr);
void hr__index_tree_finish(struct hr_index_tree *tree);

/* Listed files: rows of a table. */
struct hr_index_list {
    struct hr_table table;
    int path, label; /* columns; label -1: none */
    int64_t *labels; /* of a TEXT label column */
};
/* Checks that every path can be one. */
enum hr_err
hr__index_list_check(const struct hr_index_list *list, struct hr_error *reterr);
/* Compares the paths with the files that are there, and removes lines without one if they
 * are to be skipped. */
enum hr_err
hr__index_list_match(struct hr_index_list *list, const struct hr_index_options *options,
                     struct hr_index_stats *stats, struct hr_error *reterr);
/* Numbers the labels. `set` holds the classes known before. */
enum hr_err
hr__index_list_labels(struct hr_index_list *list, const struct hr_index_options *options,
                      struct hr_class_set *set, struct hr_classes *classes,
                      struct hr_error *reterr);
const char *
hr__index_list_path(const struct hr_index_list *list, uint64_t at, size_t *ret_bytes);
void hr__index_list_finish(struct hr_index_list *list);

/* options->classes as a set and as a value. HR_ERR_ARGUMENT for one given twice. */
enum hr_err
hr__index_given_classes(const struct hr_index_options *options, struct hr_class_set *set,
                        struct hr_classes *ret_classes, struct hr_error *reterr);
/* Appends what to say of a class that is not among the given ones. */
struct hr_str;
void hr__index_class_tail(const struct hr_classes *classes, const char *wrong,
                          struct hr_str *out);

/* What the store of the pattern's base lists, as a table of path and, with folder labels,
 * label. `set` receives the folders, which are classes even without a file. */
enum hr_err hr__index_list_store(const struct hr_index_options *options,
                                 const struct hr_index_pattern *pattern,
                                 struct hr_index_list *list, struct hr_class_set *set,
                                 uint64_t *ret_skipped, struct hr_error *reterr);

/* HR_ERR_ARGUMENT: `count` files lie in root itself, where folders give the labels. */
enum hr_err hr__index_unlabelled(const char *name, size_t bytes, const char *root,
                                 uint64_t count, struct hr_error *reterr);

/* Consecutive files of one folder, between those of its subfolders. */
struct hr_index_run {
    uint64_t start; /* position of its first file */
    const struct hr_index_folder *folder;
    uint32_t first; /* in folder->names */
    int32_t label;
};

struct hr_index {
    atomic_uint refs;
    char *prefix; /* root with a slash, or "" */
    size_t prefix_bytes;
    uint64_t count;
    struct hr_index_tree tree;
    struct hr_index_saved saved;
    struct hr_index_run *runs; /* one more than run_count: the last is the end */
    size_t run_count;
    struct hr_classes classes;
    bool folder_labels, is_list; /* is_list: names are in `list`, else in `tree` */
    bool labels_count; /* in the identity of a tree. A saved index does not have those
                          that follow from given classes */
    struct hr_index_list list;
    struct hr_hash128 identity, options_hash;
    struct hr_index_stats stats;
};

/* Makes the runs of files, in the order of their paths. HR_ERR_MEMORY, as the next. */
enum hr_err hr__index_order(struct hr_index *index, struct hr_error *reterr);
/* Computes the identity: see index_identity.c. */
enum hr_err hr__index_identify(struct hr_index *index, struct hr_error *reterr);

#endif
