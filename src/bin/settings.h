/*
 * settings.h - options of long-running commands from a file and from the environment.
 *
 * The file has a line `name: value` for each, named as on the command line without the
 * dashes. Empty lines and lines that begin with # are skipped; white space around names
 * and values is ignored; nothing is quoted. Variables are named after command and option:
 * HEADRACE_DISPATCHER_HELLO_TIMEOUT. The command line wins over the environment, that
 * over the file.
 */
#ifndef BIN_SETTINGS_H
#define BIN_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#define SETTINGS_MAX 65536u /* bytes of a file */

struct settings_line {
    char *name, *value; /* NUL-terminated, in the text */
    int number;         /* from 1 */
};

/* Takes the next line with a setting off `*at`, which it changes, and counts lines in
 * *line. 1: there is one; 0: the end; -1: a line has no colon or no name. */
int settings_next(char **at, int *line, struct settings_line *ret);

/* The name of the variable for an option: HEADRACE_, command, option, in capitals.
 * Returns `to`. */
const char *
settings_variable(const char *command, const char *option, char *to, size_t room);

#endif
