/*
 * term.c - whether to use colours, and human-readable numbers.
 */
#include "term.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

bool term_is_live(FILE *out)
{
    const char *term = getenv("TERM");

    return isatty(fileno(out)) && term != NULL && strcmp(term, "dumb") != 0;
}

static enum term_colour when = TERM_COLOUR_AUTO;

void term_colour_set(enum term_colour wanted)
{
    when = wanted;
}

static bool variable_is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0';
}

static bool has_colours(FILE *out)
{
    if (when != TERM_COLOUR_AUTO)
        return when == TERM_COLOUR_ALWAYS;
    if (variable_is_set("NO_COLOR"))
        return false;
    if (variable_is_set("FORCE_COLOR"))
        return strcmp(getenv("FORCE_COLOR"), "0") != 0;
    return term_is_live(out);
}

static const char *colour(FILE *out, const char *sequence)
{
    return has_colours(out) ? sequence : "";
}

const char *term_bold(FILE *out)
{
    return colour(out, "\033[1m");
}

const char *term_dim(FILE *out)
{
    return colour(out, "\033[2m");
}

const char *term_green(FILE *out)
{
    return colour(out, "\033[32m");
}

const char *term_yellow(FILE *out)
{
    return colour(out, "\033[1;33m");
}

const char *term_red(FILE *out)
{
    return colour(out, "\033[1;31m");
}

const char *term_plain(FILE *out)
{
    return colour(out, "\033[0m");
}

int term_width(FILE *out)
{
    struct winsize size;

    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return 80;
}

const char *term_bar(char *text, size_t room, double fraction, int cells)
{
    bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    const char *full = utf8 ? "\xe2\x96\x88" : "#";
    int filled = fraction > 0 ? (int)(fraction * cells + 0.5) : 0;
    size_t at = 0;

    filled = filled > cells ? cells : filled;
    text[0] = '\0';
    for (int i = 0; i < cells && at + 4 < room; i++) {
        const char *cell = i < filled ? full : " ";

        at += (size_t)snprintf(text + at, room - at, "%s", cell);
    }
    return text;
}

const char *term_bytes(char *text, size_t room, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    int unit = 0;

    while (bytes >= 999.5 && unit < 5) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, room, unit == 0 || bytes >= 99.95 ? "%.0f %s" : "%.1f %s", bytes,
             units[unit]);
    return text;
}

const char *term_count(char *text, size_t room, uint64_t count)
{
    char digits[24];
    size_t length =
        (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
    size_t at = 0;

    for (size_t i = 0; i < length && at + 2 < room; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

const char *term_seconds(char *text, size_t room, double seconds)
{
    if (seconds < 1e-6)
        snprintf(text, room, "%.0f ns", seconds * 1e9);
    else if (seconds < 1e-3)
        snprintf(text, room, "%.1f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(text, room, "%.1f ms", seconds * 1e3);
    else if (seconds < 60)
        snprintf(text, room, "%.1f s", seconds);
    else if (seconds < 3600)
        snprintf(text, room, "%dm %02ds", (int)(seconds / 60), (int)seconds % 60);
    else
        snprintf(text, room, "%dh %02dm", (int)(seconds / 3600),
                 (int)(seconds / 60) % 60);
    return text;
}

double term_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
