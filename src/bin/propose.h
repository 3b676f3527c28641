/*
 * propose.h - a graph for data that nobody has described: what headrace init writes, and
 * headrace run runs when it is given the data.
 */
#ifndef BIN_PROPOSE_H
#define BIN_PROPOSE_H

#include "cli.h"

/* Whether the path is data rather than a graph: a folder, or a file whose ending says so
 * (data_file.h), also on a server. */
bool propose_is_data(const char *path);

/* Decides by names and first records what lies there, and writes the graph as YAML with
 * comments, the first of which says what was found. *ret_text: free() it. Returns a
 * cli_exit code; prints the reason on failure. */
int propose(const char *path, char **ret_text);

/* propose_text.c: what the graph is made of, and its text. */

#define PROPOSE_PATH_MAX 2048 /* bytes of a path */

struct propose_param {
    const char *name, *help;
    char value[PROPOSE_PATH_MAX];
};

struct proposal {
    char title[256];    /* what was found */
    char notes[2][256]; /* more about it; "" if there is nothing to say */
    struct propose_param params[3];
    size_t param_count;
    bool is_long;        /* a path does not fit */
    const char *source;  /* the op */
    char arguments[768]; /* of the source, as YAML */
    const char *about;   /* a comment on the source */
    const char *photo;   /* the field with an encoded photo, or NULL */
    const char *sound;   /* the same for sounds */
    bool image;          /* the field `image` is one already */
    bool boxes, mask;    /* photos come with boxes; with masks */
    bool ragged;         /* records differ in size */
};

/* The graph; free() it. NULL when out of memory. */
char *propose_text(const struct proposal *proposal);

/* Writes a text in quotes, as a parameter of a node. Returns false if it does not fit. */
bool propose_quote(char *to, size_t room, const char *text);

#endif
