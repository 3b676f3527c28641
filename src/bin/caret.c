/*
 * caret.c - see caret.h. A line that is wider than the terminal is shown around the
 * place.
 *
 * Widths are counted in characters: names of operators and parameters are ASCII, so only
 * a line with wide characters before the place has its caret too far left.
 */
#include "caret.h"
#include "out.h"
#include "term.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FRAME_WIDTH 16 /* the line's number and dots */
#define LINE_BYTES_MAX 65536
#define SKIP_LINES_MAX 10000000

static struct {
    const char *name, *text;
} kept;

void caret_keep(const char *name, const char *text)
{
    kept.name = name;
    kept.text = text;
}

/* A pipe is not opened: it has been read, and opening it again could wait for ever. */
static FILE *open_text(const char *file)
{
    struct stat info;

    if (kept.name != NULL && strcmp(kept.name, file) == 0)
        return fmemopen((void *)(uintptr_t)kept.text, strlen(kept.text), "r");
    return stat(file, &info) == 0 && S_ISREG(info.st_mode) ? fopen(file, "r") : NULL;
}

/* Line `number` of the file without its end; NULL if there is none. free() it. */
static char *read_line(const char *file, int number)
{
    FILE *in = number <= SKIP_LINES_MAX ? open_text(file) : NULL;
    char *line = malloc(LINE_BYTES_MAX);
    bool found = in != NULL && line != NULL;

    for (int i = 1; found && i <= number; i++) {
        size_t length;

        found = fgets(line, LINE_BYTES_MAX, in) != NULL;
        length = found ? strlen(line) : 0;
        if (found && (length == 0 || line[length - 1] != '\n') && !feof(in))
            found = false; /* too long to show, or a zero byte */
    }
    if (in != NULL)
        fclose(in);
    if (!found) {
        free(line);
        return NULL;
    }
    line[strcspn(line, "\r\n")] = '\0';
    return line;
}

/* Characters in a line; 0 if it is not text. */
static int count_characters(const char *line)
{
    int count = 0;

    for (size_t at = 0; line[at] != '\0'; count++) {
        size_t length = out_utf8_length((const unsigned char *)line + at);
        unsigned char c = (unsigned char)line[at];

        if (length == 0 || (c < 0x20 && c != '\t') || c == 0x7f)
            return 0;
        at += length;
    }
    return count;
}

/* Characters of the word at `word`: a quoted string, else up to a mark of YAML. */
static int word_width(const char *word)
{
    char quote = word[0] == '"' || word[0] == '\'' ? word[0] : '\0';
    size_t at = out_utf8_length((const unsigned char *)word);
    int width = 1;

    if (word[0] == '\0' || strchr(" \t,:{}[]", word[0]) != NULL)
        return 1;
    while (word[at] != '\0') {
        if (quote != '\0' ? word[at] == quote : strchr(" \t,:{}[]#", word[at]) != NULL)
            break;
        at += out_utf8_length((const unsigned char *)word + at);
        width++;
    }
    if (quote != '\0')
        width = word[at] == quote ? width + 1 : 1;
    return width;
}

/* The place of character `number`, which counts from 0. */
static const char *character(const char *line, int number)
{
    while (number-- > 0 && *line != '\0')
        line += out_utf8_length((const unsigned char *)line);
    return line;
}

static void put_part(FILE *out, const char *line, int from, int to)
{
    const char *at = character(line, from), *end = character(line, to);

    for (; at < end; at++)
        fputc(*at == '\t' ? ' ' : *at, out);
}

void caret_print(FILE *out, const char *file, int line, int column)
{
    char *text = line > 0 && column > 0 && file[0] != '\0' ? read_line(file, line) : NULL;
    int room = term_width(out) - FRAME_WIDTH, count, width, from = 0, to;

    if (text == NULL)
        return;
    count = count_characters(text);
    if (count > 0 && column <= count + 1) {
        const char *bold = term_red(out), *dim = term_dim(out), *plain = term_plain(out);

        width = word_width(character(text, column - 1));
        if (count > room && column - 1 + width > room)
            from = column - 1 - room / 3 < count - room ? column - 1 - room / 3
                                                        : count - room;
        to = from + room < count ? from + room : count;
        width = column - 1 + width > to && to >= column ? to - column + 1 : width;
        fprintf(out, "%s%7d |%s %s", dim, line, plain, from > 0 ? "..." : "");
        put_part(out, text, from, to);
        fprintf(out, "%s\n%s%7s |%s %*s%s^", to < count ? "..." : "", dim, "", plain,
                column - 1 - from + (from > 0 ? 3 : 0), "", bold);
        for (int i = 1; i < width; i++)
            fputc('~', out);
        fprintf(out, "%s\n", plain);
    }
    free(text);
}
