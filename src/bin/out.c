/*
 * out.c - atomic file replacement: a reader sees the old file or the complete new one.
 * And JSON output.
 */
#include "out.h"
#include "cli.h"
#include "core/kill_point.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name under which a whole file is in the folder for a moment before it replaces
 * `path`: "FOLDER/.NAME.headrace". */
static void set_whole_name(struct out *out)
{
    const char *slash = strrchr(out->path, '/');
    int folder = slash != NULL ? (int)(slash + 1 - out->path) : 0;

    snprintf(out->temp, sizeof(out->temp), "%.*s.%.200s.headrace", folder, out->path,
             out->path + folder);
}

/* A file without a name, of which nothing is left if the process is killed; -1 where the
 * file system has none. */
static int open_unnamed(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[sizeof(((struct out *)NULL)->path)] = ".";

    if (access("/proc/self/fd", X_OK) != 0) /* it could not be given a name */
        return -1;
    if (slash != NULL)
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash + 1 - path), path);
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

static int open_named(struct out *out)
{
    mode_t mask;
    int fd;

    snprintf(out->temp, sizeof(out->temp), "%s.XXXXXX", out->path);
    fd = mkstemp(out->temp);
    if (fd < 0) {
        out->temp[0] = '\0';
        return -1;
    }
    mask = umask(0); /* mkstemp makes private files; give these the usual permissions */
    umask(mask);
    (void)fchmod(fd, 0666 & ~mask);
    return fd;
}

/* A device, pipe or socket. */
static bool is_special(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

int out_begin(struct out *out, const char *path)
{
    int fd;

    *out = (struct out){0};
    if (strlen(path) >= sizeof(out->path))
        return cli_usage("the path '%.60s...' is too long", path);
    strncpy(out->path, path, sizeof(out->path) - 1);
    out->in_place = is_special(path);
    if (out->in_place) {
        fd = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        fd = open_unnamed(path);
        if (fd < 0)
            fd = open_named(out);
    }
    if (fd < 0)
        return cli_failed("cannot write %s: %s", path, strerror(errno));
    out->file = fdopen(fd, "w");
    if (out->file == NULL) {
        close(fd);
        out_abort(out);
        return cli_failed("out of memory");
    }
    return CLI_OK;
}

/* Replaces the path by a file without a name. That of a process that was killed here is
 * removed, as that of another one that writes the same path: all such files are whole.
 * Returns an errno. */
static int replace_by_unnamed(struct out *out)
{
    char from[64];
    int error = EEXIST;

    snprintf(from, sizeof(from), "/proc/self/fd/%d", fileno(out->file));
    set_whole_name(out);
    for (int tries = 0; tries < 100 && (error == EEXIST || error == ENOENT); tries++) {
        error = 0;
        if (linkat(AT_FDCWD, from, AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW) != 0)
            error = errno;
        HR_KILL_POINT("out.named");
        if (error == 0 && rename(out->temp, out->path) != 0)
            error = errno;
        if (error == EEXIST)
            unlink(out->temp);
    }
    if (error == 0)
        out->temp[0] = '\0';
    return error;
}

int out_commit(struct out *out)
{
    int error = 0;

    if (fflush(out->file) != 0 || ferror(out->file) ||
        (!out->in_place && fsync(fileno(out->file)) != 0))
        error = errno != 0 ? errno : EIO;
    HR_KILL_POINT("out.synced");
    if (error == 0 && out->temp[0] == '\0' && !out->in_place)
        error = replace_by_unnamed(out);
    if (fclose(out->file) != 0 && error == 0)
        error = errno;
    out->file = NULL;
    if (error == 0 && out->temp[0] != '\0' && rename(out->temp, out->path) != 0)
        error = errno;
    if (error == 0)
        out->temp[0] = '\0';
    HR_KILL_POINT("out.replaced");
    out_abort(out);
    return error == 0 ? CLI_OK
                      : cli_failed("cannot write %s: %s", out->path, strerror(error));
}

void out_abort(struct out *out)
{
    if (out->file != NULL)
        fclose(out->file);
    if (out->temp[0] != '\0')
        unlink(out->temp);
    out->file = NULL;
    out->temp[0] = '\0';
}

int out_replace(const char *path, const char *text)
{
    struct out out;
    int code = out_begin(&out, path);

    if (code != CLI_OK)
        return code;
    fputs(text, out.file);
    return out_commit(&out);
}

/* Of the folder that the path's last name is in. */
static bool stat_folder(const char *path, struct stat *ret_info)
{
    const char *slash = strrchr(path, '/');
    char folder[sizeof(((struct out *)NULL)->path)] = ".";

    if (slash != NULL && (size_t)(slash + 1 - path) >= sizeof(folder))
        return false;
    if (slash != NULL)
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash + 1 - path), path);
    return stat(folder, ret_info) == 0;
}

bool out_is_same(const char *a, const char *b)
{
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    struct stat in_a, in_b;

    if (strcmp(slash_a != NULL ? slash_a + 1 : a, slash_b != NULL ? slash_b + 1 : b) != 0)
        return false;
    return !is_special(a) && stat_folder(a, &in_a) && stat_folder(b, &in_b) &&
           in_a.st_dev == in_b.st_dev && in_a.st_ino == in_b.st_ino;
}

int out_probe(const char *path)
{
    struct out out;
    struct stat info;
    int code;

    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return cli_failed("cannot write %s: it is a folder", path);
    if (is_special(path)) /* opening a pipe waits for its reader */
        return access(path, W_OK) == 0
                   ? CLI_OK
                   : cli_failed("cannot write %s: %s", path, strerror(errno));
    code = out_begin(&out, path);
    out_abort(&out);
    return code;
}

int out_folder(const char *path)
{
    char part[2048];
    struct stat info;

    if (strlen(path) >= sizeof(part))
        return cli_usage("the path '%.60s...' is too long", path);
    for (size_t i = 1; path[i - 1] != '\0'; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return cli_failed("cannot make the folder %s: %s", part, strerror(errno));
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return cli_failed("cannot write to %s: it is not a folder", path);
    return CLI_OK;
}

/* Length of the UTF-8 character at `text`, 0 if invalid. */
size_t out_utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80                       ? 1
                    : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
                    : text[0] >= 0xe0 && text[0] <= 0xef ? 3
                    : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                         : 0;

    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

static void put_string(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    fputc('"', out);
    while (*at != '\0') {
        size_t length = out_utf8_length(at);

        if (length == 0)
            fputs("\xef\xbf\xbd", out);
        else if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20)
            fprintf(out, "\\u%04x", *at);
        else
            fwrite(at, 1, length, out);
        at += length == 0 ? 1 : length;
    }
    fputc('"', out);
}

static void put_key(struct json *json, const char *key)
{
    if (json->comma)
        fputs(", ", json->out);
    json->comma = true;
    if (key != NULL) {
        put_string(json->out, key);
        fputs(": ", json->out);
    }
}

void json_open(struct json *json, const char *key, char bracket)
{
    put_key(json, key);
    fputc(bracket, json->out);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    fputc(bracket, json->out);
    json->comma = true;
}

void json_text(struct json *json, const char *key, const char *text)
{
    put_key(json, key);
    if (text == NULL)
        fputs("null", json->out);
    else
        put_string(json->out, text);
}

void json_u64(struct json *json, const char *key, uint64_t value)
{
    put_key(json, key);
    fprintf(json->out, "%llu", (unsigned long long)value);
}

void json_i64(struct json *json, const char *key, int64_t value)
{
    put_key(json, key);
    fprintf(json->out, "%lld", (long long)value);
}

void json_double(struct json *json, const char *key, double value)
{
    put_key(json, key);
    if (value - value != 0) /* JSON has no infinity or NaN */
        fputs("null", json->out);
    else
        fprintf(json->out, "%.9g", value);
}

void json_bool(struct json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_end(struct json *json)
{
    fputc('\n', json->out);
    json->comma = false;
}
