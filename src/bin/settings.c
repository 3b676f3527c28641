/*
 * settings.c - see settings.h. Pure functions on text: fuzz/fuzz_settings.c.
 */
#include "settings.h"

#include <stdio.h>
#include <string.h>

#define SPACES " \t\r"

static char *trim(char *text)
{
    size_t length;

    text += strspn(text, SPACES);
    length = strlen(text);
    while (length > 0 && strchr(SPACES, text[length - 1]) != NULL)
        text[--length] = '\0';
    return text;
}

int settings_next(char **at, int *line, struct settings_line *ret)
{
    while (*at != NULL && **at != '\0') {
        char *text = *at, *end = strchr(text, '\n'), *colon;

        *at = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
        ret->number = ++*line;
        text = trim(text);
        if (text[0] == '\0' || text[0] == '#')
            continue;
        colon = strchr(text, ':');
        if (colon == NULL || colon == text)
            return -1;
        *colon = '\0';
        ret->name = trim(text);
        ret->value = trim(colon + 1);
        return ret->name[0] != '\0' ? 1 : -1;
    }
    return 0;
}

const char *
settings_variable(const char *command, const char *option, char *to, size_t room)
{
    snprintf(to, room, "HEADRACE_%s_%s", command, option);
    for (char *at = to; *at != '\0'; at++) {
        if (*at >= 'a' && *at <= 'z')
            *at = (char)(*at - 'a' + 'A');
        if (*at == '-')
            *at = '_';
    }
    return to;
}
