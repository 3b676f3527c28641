/*
 * caret.h - shows the line of a text file that an error is about, with a caret under the
 * place.
 */
#ifndef BIN_CARET_H
#define BIN_CARET_H

#include <stdio.h>

/* Text that errors name `name` and that no file has: a graph from standard input. Both
 * must stay as they are until the process ends. */
void caret_keep(const char *name, const char *text);

/* Prints two lines about place `line`:`column` of the file, which count from 1, columns
 * in characters. Prints nothing if there is no such place (`line` or `column` 0, an
 * object of a server), or if the line is not text. */
void caret_print(FILE *out, const char *file, int line, int column);

#endif
