/*
 * look.c - see look.h. Counts only: what is in the files is for the sources to say.
 */
#include "look.h"
#include "cli.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAMES_MAX 200000
#define DEPTH_MAX 16

struct walk {
    struct look *look;
    char path[LOOK_PATH_MAX * 2]; /* of the folder that is read */
    size_t root; /* bytes of the path of the first folder, with a slash */
    char parents[LOOK_KINDS][LOOK_PATH_MAX]; /* of the first file that was found */
    uint64_t names;
};

static const struct {
    const char *ending;
    enum look_kind kind;
} endings[] = {
    {"records",  LOOK_RECORDS },
    {"tar",      LOOK_TAR     },
    {"tgz",      LOOK_TAR     },
    {"tzst",     LOOK_TAR     },
    {"tfrecord", LOOK_TFRECORD},
    {"parquet",  LOOK_PARQUET },
    {"arrow",    LOOK_ARROW   },
    {"mdb",      LOOK_LMDB    },
    {"npy",      LOOK_NPY     },
    {"npz",      LOOK_NPY     },
    {"jpg",      LOOK_PHOTO   },
    {"jpeg",     LOOK_PHOTO   },
    {"png",      LOOK_PHOTO   },
    {"webp",     LOOK_PHOTO   },
    {"ppm",      LOOK_PHOTO   },
    {"pgm",      LOOK_PHOTO   },
    {"pbm",      LOOK_PHOTO   },
    {"pnm",      LOOK_PHOTO   },
    {"wav",      LOOK_SOUND   },
    {"flac",     LOOK_SOUND   },
    {"ogg",      LOOK_SOUND   },
    {"opus",     LOOK_SOUND   },
    {"mp3",      LOOK_SOUND   },
    {"jsonl",    LOOK_JSONL   },
    {"csv",      LOOK_CSV     },
    {"json",     LOOK_JSON    },
    {"txt",      LOOK_TEXT    },
};

/* Bytes of a name before the ending of a compressed file. */
static size_t unpacked_bytes(const char *name)
{
    const char *dot = strrchr(name, '.');
    bool packed =
        dot != NULL && (strcasecmp(dot, ".gz") == 0 || strcasecmp(dot, ".zst") == 0);

    return packed ? (size_t)(dot - name) : strlen(name);
}

static bool is_about(const char *name)
{
    static const char *const words[] = {"readme", "licen", "copying", "requirements",
                                        "changelog"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strncasecmp(name, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* MNIST's names: "train-images-idx3-ubyte", or with a dot before idx3. */
static bool is_idx(const char *name, size_t bytes)
{
    static const char form[] = "idx0-ubyte";
    size_t length = sizeof(form) - 1;
    const char *at = name + bytes - length;

    return bytes > length && (at[-1] == '-' || at[-1] == '.') &&
           memcmp(at, form, 3) == 0 && isdigit((unsigned char)at[3]) &&
           memcmp(at + 4, form + 4, length - 4) == 0;
}

/* Writes the ending in small letters; "" if there is none. */
static enum look_kind kind_of(const char *name, char *ending, size_t room)
{
    size_t bytes = unpacked_bytes(name), from = bytes, length = 0;

    ending[0] = '\0';
    if (is_idx(name, bytes))
        return LOOK_IDX;
    if (strstr(name, LOOK_NUMBERED_TFRECORD) != NULL)
        return LOOK_TFRECORD;
    while (from > 0 && name[from - 1] != '.')
        from--;
    if (from > 1)
        for (; from + length < bytes && length + 1 < room; length++)
            ending[length] = (char)tolower((unsigned char)name[from + length]);
    ending[length] = '\0';
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (strcmp(ending, endings[i].ending) == 0)
            return endings[i].kind;
    return LOOK_OTHER;
}

enum look_kind look_kind(const char *path)
{
    const char *slash = strrchr(path, '/');
    char ending[12];

    return kind_of(slash != NULL ? slash + 1 : path, ending, sizeof(ending));
}

static void add_ending(struct look_files *files, const char *ending)
{
    for (size_t i = 0; i < files->ending_count; i++)
        if (strcmp(files->endings[i], ending) == 0)
            return;
    if (files->ending_count < LOOK_ENDINGS_MAX)
        snprintf(files->endings[files->ending_count++], sizeof(files->endings[0]), "%s",
                 ending);
}

static void add_file(struct walk *walk, const char *name, int depth)
{
    char ending[12], relative[LOOK_PATH_MAX];
    enum look_kind kind = kind_of(name, ending, sizeof(ending));
    struct look_files *files = &walk->look->kinds[kind];
    const char *parent = walk->path + walk->root;
    int bytes = snprintf(relative, sizeof(relative), "%s%s", parent, name);

    if (is_about(name) || bytes < 0 || (size_t)bytes >= sizeof(relative))
        return;
    if (files->count == 0)
        snprintf(walk->parents[kind], sizeof(walk->parents[kind]), "%s", parent);
    files->scattered |= strcmp(walk->parents[kind], parent) != 0;
    if (files->count++ == 0 || strcmp(relative, files->first) < 0)
        memcpy(files->first, relative, (size_t)bytes + 1);
    files->top += depth == 0;
    add_ending(files, ending);
}

static bool is_train(const char *name)
{
    return strcasecmp(name, "train") == 0 || strcasecmp(name, "training") == 0;
}

/* Whether a folder is named as a part of a data set rather than as a class. */
static bool is_part(const char *name)
{
    static const char *const words[] = {"val",  "valid",   "validation", "test",
                                        "eval", "testing", "dev"};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (strcasecmp(name, words[i]) == 0)
            return true;
    return is_train(name);
}

static void read_folder(struct walk *walk, int depth);

/* The folder `name` in the one that is read. */
static void enter(struct walk *walk, const char *name, int depth)
{
    size_t bytes = strlen(walk->path), more = strlen(name);
    uint64_t before[LOOK_KINDS];

    if (bytes + more + 2 > sizeof(walk->path) || depth + 1 >= DEPTH_MAX)
        return;
    for (int i = 0; i < LOOK_KINDS; i++)
        before[i] = walk->look->kinds[i].count;
    memcpy(walk->path + bytes, name, more);
    memcpy(walk->path + bytes + more, "/", 2);
    read_folder(walk, depth + 1);
    walk->path[bytes] = '\0';
    for (int i = 0; depth == 0 && i < LOOK_KINDS; i++) {
        struct look_files *files = &walk->look->kinds[i];

        files->folders += files->count > before[i];
        files->parts += files->count > before[i] && is_part(name);
    }
    if (depth == 0 && is_train(name))
        snprintf(walk->look->train, sizeof(walk->look->train), "%s", name);
}

static bool is_folder(const struct walk *walk, const struct dirent *entry)
{
    char path[sizeof(walk->path) + 256];
    struct stat info;

    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    snprintf(path, sizeof(path), "%s%s", walk->path, entry->d_name);
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void read_folder(struct walk *walk, int depth)
{
    DIR *folder = opendir(walk->path);
    const struct dirent *entry;

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        walk->look->cut |= walk->names >= NAMES_MAX;
        if (walk->names++ >= NAMES_MAX)
            break;
        if (is_folder(walk, entry))
            enter(walk, entry->d_name, depth);
        else
            add_file(walk, entry->d_name, depth);
    }
    if (folder != NULL)
        closedir(folder);
}

bool look_join(char *to, size_t room, const char *folder, const char *name)
{
    size_t bytes = strlen(folder), more = strlen(name);

    if (bytes + more + 2 > room) {
        to[0] = '\0';
        return false;
    }
    memcpy(to, folder, bytes + 1);
    if (more > 0) {
        to[bytes] = '/';
        memcpy(to + bytes + 1, name, more + 1);
    }
    return true;
}

int look_at(const char *folder, struct look *ret_look)
{
    struct walk *walk = calloc(1, sizeof(*walk));
    DIR *opened = opendir(folder);
    int code = CLI_OK;

    memset(ret_look, 0, sizeof(*ret_look));
    if (opened == NULL)
        code = cli_usage("cannot read %s: %s", folder, strerror(errno));
    else if (walk == NULL)
        code = cli_failed("out of memory");
    else if (strlen(folder) >= LOOK_PATH_MAX)
        code = cli_usage("the path '%.60s...' is too long", folder);
    if (code == CLI_OK) {
        walk->look = ret_look;
        walk->root = (size_t)snprintf(walk->path, sizeof(walk->path), "%s%s", folder,
                                      folder[strlen(folder) - 1] == '/' ? "" : "/");
        read_folder(walk, 0);
    }
    if (opened != NULL)
        closedir(opened);
    free(walk);
    return code;
}
