/*
 * cli.h - commands and options as tables.
 *
 * A command is one table: its options, arguments, description and examples. The parser,
 * --help, the man page and shell completion all read that table, so they cannot disagree.
 * Values are stored by offset in the command's struct, which starts as a copy of its
 * defaults; lists in it are freed when the command returns.
 */
#ifndef BIN_CLI_H
#define BIN_CLI_H

#include "headrace/graph.h"
#include <stdio.h>

/* The exit status of the process. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,        /* the request was valid but failed */
    CLI_USAGE = 2,         /* the command line or graph is wrong; nothing was done */
    CLI_INTERRUPTED = 130, /* Ctrl-C or SIGTERM, after an orderly stop */
};

enum cli_type {
    CLI_FLAG,   /* bool, no argument */
    CLI_BOOL,   /* bool: true, false, yes, no, on, off, 1, 0 */
    CLI_TEXT,   /* const char * */
    CLI_INT,    /* int64_t between min and max */
    CLI_BYTES,  /* int64_t: "64", "64k", "1.5MB", "2GiB" */
    CLI_CHOICE, /* int: position among the words of `arg`, which are separated by | */
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
    const char *arg; /* describes the argument; NULL for flags */
    const char *help;
    int64_t min, max; /* INT; max 0: no maximum */
};

struct cli_example {
    const char *command, *what;
};

/* The positional arguments; they point into argv. */
#define CLI_WORDS_MAX 8192
struct cli_rest {
    const char *words[CLI_WORDS_MAX];
    size_t count;
};

struct cli_command {
    const char *name, *summary;
    const char *args; /* positional arguments in the usage line, or "" */
    size_t args_min, args_max;
    const char *complete; /* how a shell completes positional arguments: a list of words,
                             or $(a command); NULL: files */
    const char *text;     /* a paragraph for --help and the man page */
    const struct cli_option *options;
    size_t option_count;
    const struct cli_example *examples;
    size_t example_count;
    const void *defaults; /* of the options' struct; NULL: all zero */
    /* Options may come from --config FILE and the environment, too (settings.h), unless
     * the command line has the option of this name; NULL: they may not. The command has
     * the options CLI_OPTION_CONFIG and CLI_OPTION_SHOW_CONFIG. */
    const char *settings_unless;
    size_t values_bytes; /* of the options' struct */
    /* Runs the command with the options' struct filled in; returns a cli_exit code. */
    int (*run)(void *values, const struct cli_rest *rest);
};

/* Initialises members of a cli_command from its option table and the type of its
 * struct. */
#define CLI_OPTIONS(table, type)                                                         \
    .options = (table), .option_count = sizeof(table) / sizeof((table)[0]),              \
    .values_bytes = sizeof(type)
#define CLI_EXAMPLES(table)                                                              \
    .examples = (table), .example_count = sizeof(table) / sizeof((table)[0])

/* Options shared by several commands; AT(field) is the command's own offset macro. */
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
#define CLI_OPTION_CONFIG                                                                \
    {                                                                                    \
        "config", 0, CLI_TEXT, AT(config), "FILE",                                       \
            "settings, a line `option: value` for each, as on the command line without " \
            "dashes; variables HEADRACE_COMMAND_OPTION win over it, the command line "   \
            "over both"                                                                  \
    }
#define CLI_OPTION_SHOW_CONFIG                                                           \
    {                                                                                    \
        "show-config", 0, CLI_FLAG, AT(show_config), NULL,                               \
            "print the settings that result, as such a file, and exit"                   \
    }
#define CLI_OPTION_JSON                                                                  \
    {                                                                                    \
        "json", 0, CLI_FLAG, AT(json), NULL, "print one JSON object on stdout"           \
    }

/* The options that all commands have besides their own and --help; `offset` is in
 * another struct, of which cli.c keeps the only one. */
#define CLI_COMMON_COUNT 1
extern const struct cli_option cli_common[CLI_COMMON_COUNT];

/* All commands in the order of the overview; ends with NULL. */
extern const struct cli_command *const cli_commands[];
const struct cli_command *cli_find(const char *name);

/* Prints the settings of a command as a file for --config. Returns CLI_OK. */
int cli_show_settings(const struct cli_command *command, const void *values);

/* Parses argv (after the command's name) by the command's table, then runs the command,
 * or prints help or an error. Returns a cli_exit code. */
int cli_run(const struct cli_command *command, int argc, char **argv);

/* The number of bytes that `text` begins with ("64k", "1.5MB", "2GiB"), as CLI_BYTES
 * takes it; *ret_end is after it, and `text` if it begins with none. */
double cli_bytes(const char *text, char **ret_end);

/* Print "headrace: ..." as one line on stderr; return CLI_USAGE or CLI_FAILED. */
int cli_usage(const char *format, ...) HR_PRINTF(1, 2);
int cli_failed(const char *format, ...) HR_PRINTF(1, 2);

/* Prints a library error, and the line of the text file that it is about (caret.h);
 * returns CLI_USAGE if the graph or an argument is wrong, CLI_FAILED if something outside
 * failed. */
int cli_library(const struct hr_error *error);

/* The same for an error during a run: always returns CLI_FAILED. */
int cli_library_failed(const struct hr_error *error);

/* Edits from one word to the other: letters inserted, removed, replaced, or two
 * neighbours exchanged. 64 if a word is longer than that. */
size_t cli_distance(const char *a, const char *b);

/* Writes "; did you mean X?" for the nearest of `names` to `text`, or "". */
const char *cli_nearest(const char *wrong, const char *const *names, size_t count,
                        char *text, size_t room);

/* cli_doc.c: the tables as text. */
void cli_print_help(const struct cli_command *command, FILE *out);
void cli_print_overview(FILE *out);
void cli_print_man(FILE *out);

/* cli_complete.c: the tables as a shell script; false if the shell is not bash, zsh or
 * fish. */
bool cli_print_completion(const char *shell, FILE *out);

#endif
