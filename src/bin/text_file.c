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
        code = cli_usage("%s is not %s", is_input ? "standard input" : path, what);
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
