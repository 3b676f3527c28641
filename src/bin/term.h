/*
 * term.h - terminal output and human-readable numbers.
 */
#ifndef BIN_TERM_H
#define BIN_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* When to use colours: --color. AUTO: not if NO_COLOR is set, else if FORCE_COLOR is set
 * (to anything but 0), else if `out` is a terminal and TERM is not dumb. Empty variables
 * count as not set. */
enum term_colour {
    TERM_COLOUR_AUTO,
    TERM_COLOUR_ALWAYS,
    TERM_COLOUR_NEVER,
};
void term_colour_set(enum term_colour when);

/* Escape sequences for `out`, or "" without colours. */
const char *term_bold(FILE *out);
const char *term_dim(FILE *out);
const char *term_green(FILE *out);
const char *term_yellow(FILE *out); /* warnings */
const char *term_red(FILE *out);    /* errors */
const char *term_plain(FILE *out);

bool term_is_live(FILE *out); /* a terminal whose current line can be rewritten */
int term_width(FILE *out);    /* columns, 80 if unknown */

/* A bar of block characters (ASCII if the locale is not UTF-8) that fills the fraction
 * `done` of `cells`, padded with spaces. Returns `text`. */
const char *term_bar(char *text, size_t room, double fraction, int cells);

/* "12.3 MB", "1,281,167", "1m 12s", "850 ns". Each returns `text`. */
const char *term_bytes(char *text, size_t room, double bytes);
const char *term_count(char *text, size_t room, uint64_t count);
const char *term_seconds(char *text, size_t room, double seconds);

double term_now(void); /* monotonic seconds */

#endif
