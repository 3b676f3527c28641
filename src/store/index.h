/*
 * store/index.h - the names of the files of a data set, in a fixed order.
 *
 * An index is a value: it is made once by walking folders (or by reading a list), never
 * changes, and may be read by any thread. A file is identified by its position; positions
 * follow the bytes of the path below the root, so they agree on every machine. An index
 * takes about ten bytes per file, and a saved one opens without reading unchanged
 * folders. Files are not opened or stat'ed: one that is gone is reported when it is read.
 */
#ifndef HR_STORE_INDEX_H
#define HR_STORE_INDEX_H

#include "core/hash.h"
#include "headrace/base.h"
#include "store/classes.h"
#include "store/table.h"
#include <stdatomic.h>

struct hr_index;

struct hr_index_options {
    /* A folder, its URI (store.h), or a pattern such as "photos/?x/[a-d]*.jpg"; a segment
     * that is exactly two stars stands for any number of folders. A root that exists is
     * never taken as a pattern. Required. */
    const char *root;
    /* Accept only names with one of these endings (".jpg"), ASCII case ignored; 0: all
     * files. Listed files may have any name. */
    const char *const *suffixes;
    size_t suffix_count;
    bool recursive; /* also folders below root; ignored with a pattern */
    /* label = rank of the first folder below root among the sorted folder names there, as
     * in torchvision's ImageFolder; files directly in root are then an error. */
    bool folder_labels;
    /* Names of classes in the order of their numbers, or NULL: those found, sorted. A
     * class that is not among them is HR_ERR_ARGUMENT. */
    const char *const *classes;
    size_t class_count;
    /* Or NULL. A table (store/table.h) whose used column `path_column` lists the files,
     * which keep its order; paths are relative to root unless they begin with '/'.
     * Excludes patterns. The index takes it over, also on failure. */
    struct hr_table *table;
    int path_column, label_column; /* label_column -1: no labels */
    /* The table is the caller's word: its files are not looked up, and others below root
     * are not missed. */
    bool listed;
    /* Files below root without a line, and lines without a file: skipped, or
     * HR_ERR_NOT_FOUND, which names the first. */
    bool skip_unlisted, skip_missing;
    /* Or NULL. Path of a saved index: used when it fits and is whole, rewritten when
     * folders changed, made when absent. Ignored for folders that are not local. Failing
     * to write it is no error and appears in the stats only. Best kept outside of root:
     * writing it there changes a folder, which each open then reads again. */
    const char *saved;
    int threads;               /* 0: one per available CPU */
    const atomic_bool *cancel; /* or NULL; true makes open return HR_ERR_CANCELLED */
    /* Or NULL. Called from time to time by the opening thread with the files found so
     * far. */
    void (*progress)(uint64_t count, void *user);
    void *progress_user;
};

/* Find the files. HR_ERR_NOT_FOUND when there are none; HR_ERR_IO names the folder that
 * could not be read. The options are copied. */
HR_CHECK enum hr_err hr__index_open(const struct hr_index_options *options,
                                    struct hr_index **ret_index, struct hr_error *reterr);

/* Thread-safe reference count; the last unref frees; NULL is fine. */
struct hr_index *hr__index_ref(struct hr_index *index);
void hr__index_unref(struct hr_index *index);

/* Files. */
uint64_t hr__index_count(const struct hr_index *index);

/* The path of file `at` (< count), root joined, NUL-terminated, into `path`; *ret_length
 * (or NULL) without the NUL. HR_ERR_LIMIT when it does not fit into `room`. */
HR_CHECK enum hr_err hr__index_path(const struct hr_index *index, uint64_t at, char *path,
                                    size_t room, size_t *ret_length);

/* The bytes at the beginning of that path that are root's, with the slash: 0 for a list's
 * absolute path. */
size_t hr__index_root_bytes(const struct hr_index *index, uint64_t at);

/* The number of file `at`'s class, or its label if these are whole numbers; -1 when there
 * are none. */
int64_t hr__index_label(const struct hr_index *index, uint64_t at);

/* The table that the index was made from, file `at` being its row `at`; or NULL. */
const struct hr_table *hr__index_table(const struct hr_index *index);

/* The names of the classes; none without labels and with labels that are numbers. */
const struct hr_classes *hr__index_classes(const struct hr_index *index);

/* A hash of relative paths, their order, labels, class names and other used columns. It
 * does not depend on root, on times, or on how the files were found. */
struct hr_hash128 hr__index_identity(const struct hr_index *index);

/* Write to `path` as docs/formats/source-index.md says. HR_ERR_UNSUPPORTED for an index
 * made from a list or of another store. */
HR_CHECK enum hr_err
hr__index_save(const struct hr_index *index, const char *path, struct hr_error *reterr);

struct hr_index_stats {
    uint64_t folders;           /* in the index, root included */
    uint64_t folders_rescanned; /* read from the file system by this open */
    uint64_t skipped;           /* entries that are neither file nor folder, and looping
                                   links; names left out by suffix or dot do not count */
    uint64_t unlisted, missing; /* files without a line, lines without a file */
    uint64_t bytes_resident;    /* heap and map together */
    bool from_saved;            /* a saved index was used, at least for some folders */
    bool saved_damaged;         /* it existed but was damaged: rebuilt */
    bool save_failed;           /* options.saved could not be written */
};
void hr__index_stats(const struct hr_index *index, struct hr_index_stats *ret_stats);

#endif
