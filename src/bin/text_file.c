/*
 * text_file.c - see text_file.h.
 */
#include "text_file.h"
#include "cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES_MAX ((size_t)4 << 20)

/* Says where a text has a NUL, or that it is too long. */
static int no_text(const char *name, const char *what, const char *text, size_t length)
{
    const char *nul = memchr(text, '\0', length), *line = text, *end;
    size_t lines = 1;

    if (nul == NULL)
        return cli_usage("%s is not %s: it is larger than %zu MiB", name, what,
                         TEXT_BYTES_MAX >> 20);
    while ((end = memchr(line, '\n', (size_t)(nul - line))) != NULL) {
        line = end + 1;
        lines++;
    }
    return cli_usage("%s:%zu:%zu: a NUL byte: this is not %s", name, lines,
                     (size_t)(nul - line) + 1, what);
}

int text_file_read(const char *path, const char *what, char **ret_text)
{
    bool is_input = strcmp(path, "-") == 0;
    FILE *file = is_input ? stdin : fopen(path, "rb");
    char *text = malloc(TEXT_BYTES_MAX + 1);
    size_t length =
        file != NULL && text != NULL ? fread(text, 1, TEXT_BYTES_MAX, file) : 0;
    int code = CLI_OK;

    if (file == NULL)
        code = cli_usage("cannot read %s: %s", path, strerror(errno));
    else if (text == NULL)
        code = cli_failed("out of memory");
    else if (ferror(file))
        code = cli_failed("cannot read %s: %s", path, strerror(errno));
    else if (length == TEXT_BYTES_MAX || memchr(text, '\0', length) != NULL)
        code = no_text(is_input ? "<stdin>" : path, what, text, length);
    if (file != NULL && !is_input)
        fclose(file);
    if (code != CLI_OK) {
        free(text);
        return code;
    }
    text[length] = '\0';
    *ret_text = text;
    return CLI_OK;
}
