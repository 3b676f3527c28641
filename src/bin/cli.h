/*
 * cli.h - commands and options as tables.
 *
 * A command is one table: its options, arguments, words and examples. The parser, --help,
 * the man page and the shell completion read that table, so none of them can be behind
 * the others. Values go by offset into the command's struct, which begins as a copy of
 * its defaults; lists in it are freed when the command is over.
 */
#ifndef BIN_CLI_H
#define BIN_CLI_H

#include "headrace/graph.h"
#include <stdio.h>

/* What the process ends with. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,        /* it was asked for rightly and went wrong */
    CLI_USAGE = 2,         /* command line or graph are wrong; nothing was done */
    CLI_INTERRUPTED = 130, /* Ctrl-C or SIGTERM, after an orderly stop */
};

enum cli_type {
    CLI_FLAG,   /* bool, no argument */
    CLI_BOOL,   /* bool: true, false, yes, no, on, off, 1, 0 */
    CLI_TEXT,   /* const char * */
    CLI_INT,    /* int64_t between min and max */
    CLI_BYTES,  /* int64_t: "64", "64k", "1.5MB", "2GiB" */
    CLI_CHOICE, /* int: position among the words of `arg`, which are parted by | */
    CLI_PARAM,  /* struct cli_params: name=value, any number of times */
};

struct cli_params {
    struct hr_graph_param *items;
    size_t count;
};

struct cli_option {
    const char *name; /* without dashes */
    char letter;      /* one-letter form, or 0 */
    enum cli_type type;
    size_t offset;
    const char *arg; /* what follows, for people; NULL for flags */
    const char *help;
    int64_t min, max; /* INT; max 0: none */
};

struct cli_example {
    const char *command, *what;
};

/* The words of a command line that are no options; they point into argv. */
#define CLI_WORDS_MAX 8192
struct cli_rest {
    const char *words[CLI_WORDS_MAX];
    size_t count;
};

struct cli_command {
    const char *name, *summary;
    const char *args; /* positional arguments as in the usage line, or "" */
    size_t args_min, args_max;
    const char *complete; /* what its words are for a shell: a list of words, or $(a
                             command); NULL: files */
    const char *text;     /* a paragraph for --help and the man page */
    const struct cli_option *options;
    size_t option_count;
    const struct cli_example *examples;
    size_t example_count;
    const void *defaults; /* of the options' struct; NULL: all zero */
    size_t values_bytes;  /* of the options' struct */
    /* With the options' struct filled in; returns a cli_exit code. */
    int (*run)(void *values, const struct cli_rest *rest);
};

/* Members of a cli_command, from its tables and the type of its options' struct. */
#define CLI_OPTIONS(table, type)                                                         \
    .options = (table), .option_count = sizeof(table) / sizeof((table)[0]),              \
    .values_bytes = sizeof(type)
#define CLI_EXAMPLES(table)                                                              \
    .examples = (table), .example_count = sizeof(table) / sizeof((table)[0])

/* Options that several commands have; AT(field) is the command's own offset macro. */
#define CLI_OPTION_PARAM                                                                 \
    {                                                                                    \
        "param", 'p', CLI_PARAM, AT(params), "name=value",                               \
            "set a parameter of the graph; may be repeated"                              \
    }
#define CLI_OPTION_HELP_PARAMS                                                           \
    {                                                                                    \
        "help-params", 0, CLI_FLAG, AT(help_params), NULL,                               \
            "list the parameters that the graph file declares"                           \
    }
#define CLI_OPTION_JSON                                                                  \
    {                                                                                    \
        "json", 0, CLI_FLAG, AT(json), NULL, "print one JSON object on stdout"           \
    }

/* All commands, in the order of the overview; ends with NULL. */
extern const struct cli_command *const cli_commands[];
const struct cli_command *cli_find(const char *name);

/* Read argv (behind the command's name) by the command's table, then run it; or print the
 * help, or what is wrong. Returns a cli_exit code. */
int cli_run(const struct cli_command *command, int argc, char **argv);

/* "headrace: ..." on stderr, one line; returns CLI_USAGE or CLI_FAILED. */
int cli_usage(const char *format, ...) HR_PRINTF(1, 2);
int cli_failed(const char *format, ...) HR_PRINTF(1, 2);

/* Prints the error of a library call; returns CLI_USAGE when the graph or an argument is
 * at fault, CLI_FAILED when the world is. */
int cli_library(const struct hr_error *error);

/* Same for an error of a run: always CLI_FAILED. */
int cli_library_failed(const struct hr_error *error);

/* "; did you mean X?" for the nearest of `names` into `text`, or "". */
const char *cli_nearest(const char *wrong, const char *const *names, size_t count,
                        char *text, size_t room);

/* cli_doc.c: the tables for people. */
void cli_print_help(const struct cli_command *command, FILE *out);
void cli_print_overview(FILE *out);
void cli_print_man(FILE *out);

/* cli_complete.c: the tables for a shell; false when it is none of bash, zsh, fish. */
bool cli_print_completion(const char *shell, FILE *out);

#endif
