/*
 * label_file.c - see label_file.h.
 *
 * Looks at the first rows only, and by the simplest rules: the source reads the whole
 * table by those of docs/labels.md, and says what is wrong with it.
 */
#include "label_file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define TABLES_MAX 16
#define BASES_MAX 64
#define CELLS_MAX 64
#define ROWS_MAX 6 /* that are looked at, with the header */
#define HEAD_BYTES 65536

struct row {
    char cells[CELLS_MAX][LABEL_NAME_MAX]; /* "" if longer */
    char names[CELLS_MAX][LABEL_NAME_MAX]; /* JSON lines: of the members */
    size_t count;
};

struct names {
    char items[BASES_MAX][256];
    size_t count;
};

static bool is_json(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL &&
           (strcasecmp(dot, ".jsonl") == 0 || strcasecmp(dot, ".ndjson") == 0);
}

static bool is_table(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot != NULL && (strcasecmp(dot, ".csv") == 0 || is_json(name));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int training_first(const void *a, const void *b)
{
    bool first = strcasestr(a, "train") != NULL, second = strcasestr(b, "train") != NULL;

    return first != second ? (int)second - (int)first : strcmp(a, b);
}

/* Tables, or folders, directly in the folder. */
static void list(const char *folder, bool tables, struct names *names, size_t most)
{
    DIR *opened = opendir(folder);
    const struct dirent *entry;

    names->count = 0;
    while (opened != NULL && names->count < most && (entry = readdir(opened)) != NULL) {
        char path[1536];
        struct stat info;

        if (entry->d_name[0] == '.' || (tables && !is_table(entry->d_name)))
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode) == !tables)
            snprintf(names->items[names->count++], sizeof(names->items[0]), "%s",
                     entry->d_name);
    }
    if (opened != NULL)
        closedir(opened);
    qsort(names->items, names->count, sizeof(names->items[0]),
          tables ? training_first : by_name);
}

static void put(char (*cell)[LABEL_NAME_MAX], size_t *length, char c)
{
    if (*length < LABEL_NAME_MAX)
        (*cell)[(*length)++] = c;
}

/* Ends a cell; one that is too long is left empty. */
static void end_cell(char (*cell)[LABEL_NAME_MAX], size_t length)
{
    while (length > 0 && length < LABEL_NAME_MAX && (*cell)[length - 1] == ' ')
        length--;
    (*cell)[length < LABEL_NAME_MAX ? length : 0] = '\0';
}

/* A line of CSV; quotes go no further than its end. Returns the next line. */
static const char *read_csv(const char *at, struct row *row)
{
    row->count = 0;
    while (row->count < CELLS_MAX) {
        char(*cell)[LABEL_NAME_MAX] = &row->cells[row->count++];
        size_t length = 0;
        bool quoted = false;

        at += strspn(at, " ");
        for (; *at != '\0' && *at != '\n' && (quoted || *at != ','); at++) {
            if (*at == '"' && quoted && at[1] == '"')
                put(cell, &length, *at++);
            else if (*at == '"')
                quoted = !quoted;
            else if (*at != '\r')
                put(cell, &length, *at);
        }
        end_cell(cell, length);
        if (*at != ',')
            break;
        at++;
    }
    at += strcspn(at, "\n");
    return at + (*at == '\n');
}

/* The string at a quote, up to the next; returns what is after it, NULL if it has escapes
 * or no end. */
static const char *read_string(const char *at, char (*text)[LABEL_NAME_MAX])
{
    size_t length = strcspn(at + 1, "\"\\\n");

    if (at[1 + length] != '"')
        return NULL;
    snprintf(*text, sizeof(*text), "%.*s", length < LABEL_NAME_MAX ? (int)length : 0,
             at + 1);
    return at + length + 2;
}

/* The members of an object in a line, up to the first that is not a name with a text,
 * number or word. Returns the next line. */
static const char *read_json(const char *at, struct row *row)
{
    const char *end = at + strcspn(at, "\n");

    row->count = 0;
    at += strspn(at, " \t");
    while (row->count < CELLS_MAX && (*at == '{' || *at == ',')) {
        at += 1 + strspn(at + 1, " \t");
        if (*at != '"' || (at = read_string(at, &row->names[row->count])) == NULL)
            break;
        at += strspn(at, " \t");
        at += *at == ':';
        at += strspn(at, " \t");
        row->cells[row->count][0] = '\0';
        if (*at == '"' && (at = read_string(at, &row->cells[row->count])) == NULL)
            break;
        at += strcspn(at, ",}\n[{\"");
        row->count++;
    }
    return end + (*end == '\n');
}

static bool is_file(const char *base, const char *name)
{
    char path[2048];
    struct stat info;

    if (name[0] == '\0' ||
        (size_t)snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : base,
                         name[0] == '/' ? "" : "/", name) >= sizeof(path))
        return false;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* The first cell that names a file; CELLS_MAX if none does. */
static size_t find_path(const struct row *row, const char *base)
{
    for (size_t i = 0; i < row->count; i++)
        if (is_file(base, row->cells[i]))
            return i;
    return CELLS_MAX;
}

/* Copies the name that looks like that of labels, or that of the only other column. */
static void
choose_label(const char (*names)[LABEL_NAME_MAX], size_t count, size_t path, char *to)
{
    static const char *const words[] = {"label", "class",    "target", "category",
                                        "y",     "class_id", "labels", "text"};

    to[0] = '\0';
    for (size_t w = 0; w < sizeof(words) / sizeof(*words) && to[0] == '\0'; w++)
        for (size_t i = 0; i < count; i++)
            if (i != path && strcasecmp(names[i], words[w]) == 0)
                memcpy(to, names[i], LABEL_NAME_MAX);
    if (to[0] == '\0' && count == 2)
        memcpy(to, names[1 - path], LABEL_NAME_MAX);
}

/* Sets the columns if a row names a file below `base`. `rows` has the header first. */
static bool fits(const struct row *rows, size_t count, bool json, const char *base,
                 struct label_file *found)
{
    for (size_t i = 0; i < count; i++) {
        size_t path = find_path(&rows[i], base);
        bool header = json || i > 0;
        const struct row *head = json ? &rows[i] : &rows[0];

        if (path == CELLS_MAX || (header && path >= head->count))
            continue;
        if (!header && rows[0].count > 2)
            return false; /* without a header the columns are path and label */
        found->path_column[0] = found->label_column[0] = '\0';
        if (header) {
            const char(*names)[LABEL_NAME_MAX] = json ? head->names : head->cells;

            memcpy(found->path_column, names[path], LABEL_NAME_MAX);
            choose_label(names, head->count, path, found->label_column);
        }
        return true;
    }
    return false;
}

static size_t read_rows(const char *path, bool json, struct row *rows)
{
    FILE *file = fopen(path, "r");
    char *text = malloc(HEAD_BYTES + 1);
    size_t bytes = file != NULL && text != NULL ? fread(text, 1, HEAD_BYTES, file) : 0;
    size_t count = 0;

    if (text != NULL) {
        const char *at = text;

        text[bytes] = '\0';
        at += strncmp(at, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        while (*at != '\0' && count < ROWS_MAX)
            at = json ? read_json(at, &rows[count++]) : read_csv(at, &rows[count++]);
    }
    if (file != NULL)
        fclose(file);
    free(text);
    return count;
}

/* Tries the folder itself as a base, then those in it. */
static bool try_table(const char *folder, const char *name, const struct names *bases,
                      struct row *rows, struct label_file *found)
{
    bool json = is_json(name);
    size_t count;

    snprintf(found->path, sizeof(found->path), "%s/%s", folder, name);
    snprintf(found->base, sizeof(found->base), "%s", folder);
    count = read_rows(found->path, json, rows);
    for (size_t i = 0; i <= bases->count; i++) {
        if (fits(rows, count, json, found->base, found))
            return true;
        if (i < bases->count)
            snprintf(found->base, sizeof(found->base), "%s/%s", folder, bases->items[i]);
    }
    return false;
}

bool label_file_find(const char *folder, struct label_file *ret_found)
{
    struct names *names = calloc(2, sizeof(*names));
    struct row *rows = calloc(ROWS_MAX, sizeof(*rows));
    bool found = false;

    if (names != NULL && rows != NULL) {
        list(folder, true, &names[0], TABLES_MAX);
        list(folder, false, &names[1], BASES_MAX);
        for (size_t i = 0; i < names[0].count && !found; i++)
            found = try_table(folder, names[0].items[i], &names[1], rows, ret_found);
    }
    free(names);
    free(rows);
    return found;
}
