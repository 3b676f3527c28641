/*
 * propose.c - see propose.h: what lies at a path, and which source reads it.
 *
 * Layouts that are known by their names come first (Pascal VOC, COCO, IDX, a table beside
 * photos), then the kind of which there are most files. Where records hold bytes, the
 * first one says whether they are photos or sounds (docs/decisions/0050).
 */
#include "propose.h"
#include "coco_file.h"
#include "data_file.h"
#include "label_file.h"
#include "look.h"
#include "out.h"
#include "probe.h"
#include "propose_layouts.h"
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES PROPOSE_PATH_MAX

/* A folder that is looked at, and what is proposed. */
struct site {
    char folder[PATH_BYTES];
    struct look look;
    struct proposal proposal;
    struct label_file labels;
    struct coco_file coco;
    struct probe probe;
};

static const struct kind {
    const char *op, *what;
} kinds[LOOK_KINDS] = {
    [LOOK_RECORDS] = {"source.records",  "packed records"},
    [LOOK_TAR] = {"source.tar",      "tar archives"  },
    [LOOK_TFRECORD] = {"source.tfrecord", "TFRecord files"},
    [LOOK_PARQUET] = {"source.parquet",  "Parquet files" },
    [LOOK_ARROW] = {"source.arrow",    "Arrow files"   },
    [LOOK_LMDB] = {"source.lmdb",     "LMDB"          },
    [LOOK_NPY] = {"source.npy",      "NumPy arrays"  },
    [LOOK_PHOTO] = {"source.files",    "photos"        },
    [LOOK_SOUND] = {"source.files",    "sounds"        },
    [LOOK_JSONL] = {"source.jsonl",    "JSON lines"    },
    [LOOK_CSV] = {"source.csv",      "CSV files"     },
    [LOOK_TEXT] = {"source.lines",    "text files"    },
};

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_medium(const char *path)
{
    enum look_kind kind = look_kind(path);

    return (kind == LOOK_PHOTO || kind == LOOK_SOUND) && access(path, F_OK) == 0;
}

bool propose_is_data(const char *path)
{
    return data_file_source(path) != NULL || is_folder(path) || is_medium(path);
}

/* Set what batches hold from the first record of a file. */
static int use_probe(struct site *site, const char *op, const char *path)
{
    struct proposal *p = &site->proposal;
    int code = probe_file(op, path, &site->probe);

    if (code != CLI_OK)
        return code;
    snprintf(p->notes[0], sizeof(p->notes[0]), "Fields: %.240s", site->probe.fields);
    p->photo = site->probe.photo[0] ? site->probe.photo : NULL;
    p->sound = p->photo == NULL && site->probe.sound[0] ? site->probe.sound : NULL;
    p->ragged = site->probe.ragged;
    return CLI_OK;
}

/* Rows of texts and numbers have nothing that a first record would show, and their
 * sources read all lines to find it. */
static bool has_bytes(const char *op)
{
    return strcmp(op, "source.lines") != 0 && strcmp(op, "source.jsonl") != 0 &&
           strcmp(op, "source.csv") != 0;
}

static void about_records(struct proposal *p)
{
    if (strcmp(p->source, "source.tfrecord") == 0)
        p->about = "For fields of a tf.train.Example put record.parse_example after it.";
    else if (strcmp(p->source, "source.tar") == 0)
        p->about = "Members with one name up to the first dot are a record; each ending "
                   "is a field.";
    else if (strcmp(p->source, "source.csv") == 0 ||
             strcmp(p->source, "source.jsonl") == 0)
        p->about = "Columns become fields; their types follow from all rows.";
    else if (strcmp(p->source, "source.lines") == 0)
        p->about = "Each line is a record. text.tokenize_bpe and others make ids of it.";
}

/* ---- a file ---- */

static int propose_file(struct site *site, const char *path)
{
    struct proposal *p = &site->proposal;

    p->source = data_file_source(path);
    if (p->source == NULL)
        return cli_usage("%s is a single %s: give the folder that it is in", path,
                         look_kind(path) == LOOK_PHOTO ? "photo" : "sound");
    snprintf(p->title, sizeof(p->title), "The records of %.200s",
             strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path);
    snprintf(p->arguments, sizeof(p->arguments), "path: \"${data}\"");
    propose_add_path(p, "data", "the file; also a pattern, or a folder of such files",
                     path, "");
    about_records(p);
    return has_bytes(p->source) ? use_probe(site, p->source, path) : CLI_OK;
}

/* ---- photos and sounds ---- */

/* ", suffixes: [wav, mp3]", unless these are photos, whose endings are the default. */
static void add_suffixes(struct site *site, enum look_kind kind)
{
    struct proposal *p = &site->proposal;
    const struct look_files *files = &site->look.kinds[kind];
    size_t used = strlen(p->arguments);

    if (kind == LOOK_PHOTO)
        return;
    for (size_t i = 0; i < files->ending_count; i++)
        used += (size_t)snprintf(p->arguments + used, sizeof(p->arguments) - used, "%s%s",
                                 i == 0 ? ", suffixes: [" : ", ", files->endings[i]);
    snprintf(p->arguments + used, sizeof(p->arguments) - used, "]");
}

/* ", NAME: "TEXT"" if the text is not the default; false if it does not fit. */
static bool
add_column(struct proposal *p, const char *name, const char *text, const char *usual)
{
    size_t used = strlen(p->arguments);

    if (strcmp(text, usual) == 0)
        return true;
    used += (size_t)snprintf(p->arguments + used, sizeof(p->arguments) - used,
                             ", %s: ", name);
    return used < sizeof(p->arguments) &&
           propose_quote(p->arguments + used, sizeof(p->arguments) - used, text);
}

static void use_media(struct site *site, enum look_kind kind)
{
    struct proposal *p = &site->proposal;

    p->source = "source.files";
    if (kind == LOOK_PHOTO)
        p->photo = "data";
    else
        p->sound = "data";
}

/* Files and lines that do not match would be an error: they are left out if there are
 * some. */
static bool has_unmatched(const struct proposal *proposal)
{
    struct hr_error error = {0};
    struct hr_graph *graph = NULL;
    char *text = propose_text(proposal);
    bool unmatched = false;

    if (text != NULL && hr_graph_parse(text, strlen(text), "proposal.yaml", NULL, 0,
                                       &graph, &error) == HR_OK)
        unmatched = hr_graph_freeze(graph, &error) != HR_OK &&
                    strstr(error.message, "skip") != NULL;
    hr_graph_unref(graph);
    free(text);
    return unmatched;
}

static int propose_table(struct site *site, enum look_kind kind)
{
    struct proposal *p = &site->proposal;
    const struct label_file *labels = &site->labels;
    bool has_header = labels->path_column[0] != '\0';

    use_media(site, kind);
    snprintf(p->title, sizeof(p->title), "%c%s with labels from %.200s",
             kinds[kind].what[0] - 'a' + 'A', kinds[kind].what + 1,
             strrchr(labels->path, '/') + 1);
    snprintf(p->arguments, sizeof(p->arguments),
             "path: \"${data}\", labels: \"${labels}\"");
    if (has_header && (!add_column(p, "path_column", labels->path_column, "path") ||
                       !add_column(p, "label_column", labels->label_column, "label")))
        return cli_usage("the names of the columns of %s are too long", labels->path);
    p->about = "The table decides which files there are. Texts in the label column are "
               "classes, in order of name.";
    if (has_header && labels->label_column[0] == '\0')
        p->about = "The table decides which files there are; its columns become fields. "
                   "Set label_column to the labels.";
    add_suffixes(site, kind);
    propose_add_path(p, "data", "the folder that paths in the table are relative to",
                     labels->base, "");
    propose_add_path(p, "labels", "the table: a line for each file", labels->path, "");
    if (has_unmatched(p)) {
        size_t used = strlen(p->arguments);

        snprintf(p->arguments + used, sizeof(p->arguments) - used, ", skip: both");
        snprintf(p->notes[0], sizeof(p->notes[0]),
                 "Files and lines that do not match are left out (skip: both).");
    }
    return CLI_OK;
}

/* Folders directly below are classes if every file is in one of several. */
static bool has_classes(const struct look_files *files)
{
    return files->top == 0 && files->folders > 1 && files->parts < files->folders;
}

static int propose_media(struct site *site, enum look_kind kind)
{
    struct proposal *p = &site->proposal;
    const struct look_files *files = &site->look.kinds[kind];
    bool classes = has_classes(files);
    char count[32], folders[32];

    use_media(site, kind);
    term_count(count, sizeof(count), files->count);
    term_count(folders, sizeof(folders), files->folders);
    if (classes)
        snprintf(p->title, sizeof(p->title), "%s%s %s in %s folders, one for each class",
                 count, site->look.cut ? " or more" : "", kinds[kind].what, folders);
    else
        snprintf(p->title, sizeof(p->title), "%s%s %s without labels", count,
                 site->look.cut ? " or more" : "", kinds[kind].what);
    snprintf(p->arguments, sizeof(p->arguments), "path: \"${data}\"%s",
             classes ? ", labels: folder" : "");
    p->about = classes ? "The label is the number of the folder, in order of name."
                       : "Labels come from folders (labels: folder) or from a table "
                         "(labels: FILE.csv).";
    add_suffixes(site, kind);
    propose_add_path(p, "data",
                     classes ? "a folder with one folder for each class"
                             : "a folder of files",
                     site->folder, "");
    return CLI_OK;
}

/* ---- files of records ---- */

static int propose_records(struct site *site, enum look_kind kind)
{
    struct proposal *p = &site->proposal;
    const struct look_files *files = &site->look.kinds[kind];
    const char *slash = strrchr(files->first, '/');
    char below[LOOK_PATH_MAX] = "", first[2 * PATH_BYTES], count[32];

    if (files->scattered)
        return cli_usage("%s: the %s lie in several folders: name one of them, such as "
                         "%s/%.*s",
                         site->folder, kinds[kind].what, site->folder,
                         slash != NULL ? (int)(slash - files->first) : 1,
                         slash != NULL ? files->first : ".");
    if (slash != NULL)
        snprintf(below, sizeof(below), "%.*s", (int)(slash - files->first), files->first);
    if (strstr(files->first, LOOK_NUMBERED_TFRECORD) != NULL) /* no ending: a pattern */
        snprintf(below, sizeof(below), "%.*s*%s*",
                 slash != NULL ? (int)(slash - files->first) + 1 : 0, files->first,
                 LOOK_NUMBERED_TFRECORD);
    if (!look_join(first, sizeof(first), site->folder, files->first))
        return cli_usage("the path '%.60s...' is too long", site->folder);
    p->source = kinds[kind].op;
    term_count(count, sizeof(count), files->count);
    snprintf(p->title, sizeof(p->title), "The records of %s %s", count, kinds[kind].what);
    snprintf(p->arguments, sizeof(p->arguments), "path: \"${data}\"");
    propose_add_path(p, "data", "a folder; also a file, or a pattern", site->folder,
                     below);
    about_records(p);
    return has_bytes(p->source) ? use_probe(site, p->source, first) : CLI_OK;
}

/* ---- a folder ---- */

/* The kind of which there are most files that a source reads. */
static enum look_kind most(const struct look *look)
{
    enum look_kind best = LOOK_OTHER;
    uint64_t count = 0;

    for (int i = 0; i < LOOK_OTHER; i++)
        if (kinds[i].op != NULL && look->kinds[i].count > count) {
            count = look->kinds[i].count;
            best = (enum look_kind)i;
        }
    return best;
}

/* "12 .xyz, 3 .json": up to a few endings of what no source reads. */
static void list_unknown(const struct look *look, char *text, size_t room)
{
    static const enum look_kind unknown[] = {LOOK_OTHER, LOOK_JSON};
    size_t used = 0;

    text[0] = '\0';
    for (size_t k = 0; k < 2; k++) {
        const struct look_files *files = &look->kinds[unknown[k]];

        for (size_t i = 0; i < files->ending_count && used < room; i++)
            used += (size_t)snprintf(
                text + used, room - used, "%s%s%s", used > 0 ? ", " : "",
                files->endings[i][0] ? "." : "no ending", files->endings[i]);
    }
}

static int nothing_known(const struct site *site)
{
    char unknown[160];

    list_unknown(&site->look, unknown, sizeof(unknown));
    if (unknown[0] == '\0')
        return cli_usage("%s: there are no files in it", site->folder);
    return cli_usage("%s: no files of a known kind, only %s (see headrace ops source for "
                     "what is read)",
                     site->folder, unknown);
}

/* Whether all files of a kind lie in folders such as train and val. */
static bool has_parts(const struct look_files *files)
{
    return files->count > 0 && files->top == 0 && files->folders > 0 &&
           files->parts == files->folders;
}

/* Looks into the folder of the training set if there are parts. */
static int enter_train(struct site *site)
{
    enum look_kind kind = most(&site->look);
    size_t used = strlen(site->folder);
    char train[sizeof(site->look.train)];

    if (kind == LOOK_OTHER || !has_parts(&site->look.kinds[kind]) ||
        site->look.train[0] == '\0')
        return CLI_OK;
    memcpy(train, site->look.train, sizeof(train));
    if (used + strlen(train) + 2 > sizeof(site->folder))
        return cli_usage("the path '%.60s...' is too long", site->folder);
    site->folder[used] = '/';
    memcpy(site->folder + used + 1, train, strlen(train) + 1);
    snprintf(site->proposal.notes[1], sizeof(site->proposal.notes[1]),
             "Only the training set: set data to another folder for the others.");
    return look_at(site->folder, &site->look);
}

static int decide(struct site *site)
{
    enum look_kind kind = most(&site->look);
    bool media = kind == LOOK_PHOTO || kind == LOOK_SOUND;
    int code;

    if (propose_is_voc(site->folder))
        return propose_voc(&site->proposal, site->folder);
    if (site->look.kinds[LOOK_JSON].count > 0 &&
        coco_file_find(site->folder, &site->coco))
        return propose_coco(&site->proposal, &site->coco);
    if (kind == LOOK_OTHER)
        return site->look.kinds[LOOK_IDX].count > 0
                   ? propose_idx(&site->proposal, site->folder, &site->look)
                   : nothing_known(site);
    if (media && label_file_find(site->folder, &site->labels))
        return propose_table(site, kind);
    code = enter_train(site);
    if (code != CLI_OK)
        return code;
    if (media && label_file_find(site->folder, &site->labels))
        return propose_table(site, kind);
    return media ? propose_media(site, kind) : propose_records(site, kind);
}

static int propose_folder(struct site *site, const char *path)
{
    size_t length = strlen(path);
    int code;

    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= sizeof(site->folder))
        return cli_usage("the path '%.60s...' is too long", path);
    snprintf(site->folder, sizeof(site->folder), "%.*s", (int)length, path);
    code = look_at(site->folder, &site->look);
    return code == CLI_OK ? decide(site) : code;
}

static bool is_utf8(const char *text)
{
    while (*text != '\0') {
        size_t length = out_utf8_length((const unsigned char *)text);

        if (length == 0)
            return false;
        text += length;
    }
    return true;
}

int propose(const char *path, char **ret_text)
{
    struct site *site;
    int code;

    if (!is_utf8(path))
        return cli_usage(
            "the path is not UTF-8, so no graph file can hold it: rename it");
    site = calloc(1, sizeof(*site));
    if (site == NULL)
        return cli_failed("out of memory");
    code = is_folder(path) ? propose_folder(site, path) : propose_file(site, path);
    if (code == CLI_OK && site->proposal.is_long)
        code = cli_usage("the path '%.60s...' is too long", path);
    if (code == CLI_OK) {
        *ret_text = propose_text(&site->proposal);
        code = *ret_text != NULL ? CLI_OK : cli_failed("out of memory");
    }
    free(site);
    return code;
}
