/*
 * fuzz/fuzz_settings.c - any text as a file of settings: every name and value lies in the
 * text, without line ends and white space around it.
 */
#include "src/bin/settings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const char *text, size_t bytes, const char *word)
{
    if (word < text || word + strlen(word) > text + bytes || strpbrk(word, "\n") != NULL)
        abort();
    if (word[0] != '\0' && (strchr(" \t\r", word[0]) != NULL ||
                            strchr(" \t\r", word[strlen(word) - 1]) != NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1), *at = text;
    struct settings_line line;
    int number = 0, before = 0;

    if (text == NULL)
        abort();
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    while (settings_next(&at, &number, &line) == 1) {
        if (line.number <= before || line.number != number || line.name[0] == '\0')
            abort();
        before = number;
        check(text, bytes, line.name);
        check(text, bytes, line.value);
    }
    free(text);
    return 0;
}
