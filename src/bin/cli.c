/*
 * cli.c - parses a command line by its table and reports what is wrong with it: one line,
 * followed by the place if a text file is at fault.
 *
 * Long options may be written --name value or --name=value. Abbreviations are not
 * accepted, so that adding an option never changes what a script means.
 */
#include "cli.h"
#include "caret.h"
#include "settings.h"
#include "term.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void
print_message(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void print_message(const char *format, va_list args)
{
    fflush(stdout);
    fprintf(stderr, "%sheadrace:%s ", term_red(stderr), term_plain(stderr));
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int cli_usage(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(format, args);
    va_end(args);
    return CLI_USAGE;
}

int cli_failed(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(format, args);
    va_end(args);
    return CLI_FAILED;
}

/* The library's message, prefixed by file and position unless it names them already. */
static const char *library_text(const struct hr_error *error, char *text, size_t room)
{
    const char *message = error->message[0] ? error->message : hr_err_text(error->code);
    bool named = error->file[0] == '\0' || strstr(message, error->file) != NULL;

    if (error->line > 0 && !named)
        snprintf(text, room, "%s:%d:%d: %s", error->file, error->line, error->column,
                 message);
    else if (!named)
        snprintf(text, room, "%s: %s", error->file, message);
    else
        snprintf(text, room, "%s", message);
    return text;
}

/* Prints a library error and the line that it is about; returns `code`. */
static int print_library(const struct hr_error *error, int code)
{
    char text[sizeof(error->file) + sizeof(error->message) + 32];

    (void)cli_failed("%s", library_text(error, text, sizeof(text)));
    caret_print(stderr, error->file, error->line, error->column);
    return code;
}

int cli_library(const struct hr_error *error)
{
    switch (error->code) {
    case HR_ERR_IO:
    case HR_ERR_MEMORY:
    case HR_ERR_INTERNAL:
    case HR_ERR_CANCELLED:
    case HR_ERR_TIMEOUT:
        return print_library(error, CLI_FAILED);
    default:
        return print_library(error, CLI_USAGE);
    }
}

int cli_library_failed(const struct hr_error *error)
{
    return print_library(error, CLI_FAILED);
}

size_t cli_distance(const char *a, const char *b)
{
    size_t rows[3][65], length = strlen(b);

    if (length > 64 || strlen(a) > 64)
        return 64;
    for (size_t j = 0; j <= length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= strlen(a); i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);

            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[strlen(a) % 3][length];
}

const char *cli_nearest(const char *wrong, const char *const *names, size_t count,
                        char *text, size_t room)
{
    size_t best = 3;
    const char *name = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t d = cli_distance(wrong, names[i]);

        if (d < best && d < strlen(names[i])) {
            best = d;
            name = names[i];
        }
    }
    text[0] = '\0';
    if (name != NULL)
        snprintf(text, room, "; did you mean %s?", name);
    return text;
}

/* clang-format off */
const struct cli_option cli_common[CLI_COMMON_COUNT] = {
    {"color", 0, CLI_CHOICE, 0, "auto|always|never",
     "use colours; default auto: on a terminal, unless NO_COLOR is set, and elsewhere if "
     "FORCE_COLOR is set"},
};
/* clang-format on */

static int common_values[CLI_COMMON_COUNT]; /* --color */

const struct cli_command *cli_find(const char *name)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

static int unknown_option(const struct cli_command *command, const char *name)
{
    const char *names[64];
    size_t count = 0;
    char nearest[96];

    for (; count < command->option_count && count < 63 - CLI_COMMON_COUNT; count++)
        names[count] = command->options[count].name;
    for (size_t i = 0; i < CLI_COMMON_COUNT; i++)
        names[count++] = cli_common[i].name;
    names[count++] = "help";
    cli_nearest(name, names, count, nearest, sizeof(nearest));
    if (nearest[0] != '\0') { /* the option is shown with its dashes */
        const char *good = nearest + strlen("; did you mean ");

        return cli_usage("unknown option --%s; did you mean --%s", name, good);
    }
    return cli_usage("unknown option --%s (headrace %s --help lists all)", name,
                     command->name);
}

static const struct cli_option *
find_in(const struct cli_option *options, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(options[i].name) == length &&
            memcmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

static const struct cli_option *
find_option(const struct cli_command *command, const char *name, size_t length)
{
    const struct cli_option *option =
        find_in(command->options, command->option_count, name, length);

    return option != NULL ? option : find_in(cli_common, CLI_COMMON_COUNT, name, length);
}

static bool is_common(const struct cli_option *option)
{
    for (size_t i = 0; i < CLI_COMMON_COUNT; i++)
        if (option == &cli_common[i])
            return true;
    return false;
}

static const struct cli_option *
find_letter(const struct cli_command *command, char letter)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (command->options[i].letter == letter)
            return &command->options[i];
    return NULL;
}

/* Where a setting comes from, for messages: "FILE:3: ", "VARIABLE: "; "" for the command
 * line. */
static char setting_place[512];

static int
wrong_value(const struct cli_option *option, const char *value, const char *wanted)
{
    if (setting_place[0] != '\0')
        return cli_usage("%s%s expects %s, not '%s'", setting_place, option->name, wanted,
                         value);
    return cli_usage("--%s expects %s, not '%s'", option->name, wanted, value);
}

static int read_bool(const struct cli_option *option, const char *value, bool *ret)
{
    static const char *const words[] = {"false", "true", "no", "yes",
                                        "off",   "on",   "0",  "1"};

    for (size_t i = 0; i < 8; i++)
        if (strcmp(value, words[i]) == 0) {
            *ret = i % 2 == 1;
            return CLI_OK;
        }
    return wrong_value(option, value, "true or false");
}

static int read_int(const struct cli_option *option, const char *value, int64_t *ret)
{
    char wanted[96], *end;
    long long number;
    bool bounded = option->max != 0;

    errno = 0;
    number = strtoll(value, &end, 10);
    if (end != value && *end == '\0' && errno == 0 && number >= option->min &&
        (!bounded || number <= option->max)) {
        *ret = number;
        return CLI_OK;
    }
    if (bounded)
        snprintf(wanted, sizeof(wanted), "a whole number from %lld to %lld",
                 (long long)option->min, (long long)option->max);
    else
        snprintf(wanted, sizeof(wanted), "a whole number of at least %lld",
                 (long long)option->min);
    return wrong_value(option, value, wanted);
}

double cli_bytes(const char *text, char **ret_end)
{
    static const char units[] = "kMGT";
    double number = strtod(text, ret_end), unit = 1;
    char *end = *ret_end;
    char letter = *end == 'K' ? 'k' : *end;
    const char *found = letter != '\0' ? strchr(units, letter) : NULL;

    if (end != text && found != NULL) {
        for (const char *at = units; at <= found; at++)
            unit *= end[1] == 'i' ? 1024 : 1000;
        end += end[1] == 'i' ? 2 : 1;
    }
    if (end != text && *end == 'B')
        end++;
    *ret_end = end;
    return number * unit;
}

static int read_bytes(const struct cli_option *option, const char *value, int64_t *ret)
{
    double number;
    char *end;

    errno = 0;
    number = cli_bytes(value, &end);
    if (end == value || *end != '\0' || errno != 0 || !(number >= 0) || number > 9e18)
        return wrong_value(option, value, "a number of bytes such as 64MB or 2GiB");
    *ret = (int64_t)number;
    return CLI_OK;
}

static int read_choice(const struct cli_option *option, const char *value, int *ret)
{
    const char *at = option->arg;

    for (int i = 0;; i++) {
        size_t length = strcspn(at, "|");

        if (strlen(value) == length && memcmp(at, value, length) == 0) {
            *ret = i;
            return CLI_OK;
        }
        if (at[length] == '\0')
            return wrong_value(option, value, option->arg);
        at += length + 1;
    }
}

/* Each name may be given once: of two values, one would be ignored. */
static int
read_param(const struct cli_option *option, char *value, struct cli_params *params)
{
    char *equals = strchr(value, '=');
    struct hr_graph_param *items;

    if (equals == NULL || equals == value)
        return wrong_value(option, value, option->arg);
    *equals = '\0';
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(params->items[i].name, value) == 0)
            return cli_usage("--%s: '%s' is given twice, as '%s' and as '%s'",
                             option->name, value, params->items[i].value, equals + 1);
    items = realloc(params->items, (params->count + 1) * sizeof(*items));
    if (items == NULL)
        return cli_failed("out of memory");
    items[params->count++] = (struct hr_graph_param){value, equals + 1};
    params->items = items;
    return CLI_OK;
}

static int read_value(const struct cli_option *option, char *value, void *values)
{
    void *place = (char *)values + option->offset;

    switch (option->type) {
    case CLI_FLAG:
        *(bool *)place = true;
        return CLI_OK;
    case CLI_BOOL:
        return read_bool(option, value, place);
    case CLI_TEXT:
        *(const char **)place = value;
        return CLI_OK;
    case CLI_INT:
        return read_int(option, value, place);
    case CLI_BYTES:
        return read_bytes(option, value, place);
    case CLI_CHOICE:
        return read_choice(option, value, place);
    case CLI_PARAM:
        return read_param(option, value, place);
    }
    return CLI_OK;
}

/* argv[*at] is an option; its argument may be the next word. */
static int read_option(const struct cli_command *command, int argc, char **argv, int *at,
                       void *values)
{
    char *word = argv[*at], *value = NULL;
    const struct cli_option *option;
    bool is_long = word[1] == '-';

    if (is_long) {
        size_t length = strcspn(word + 2, "=");

        option = find_option(command, word + 2, length);
        if (word[2 + length] == '=') {
            value = word + 2 + length + 1;
            word[2 + length] = '\0';
        }
        if (option == NULL)
            return unknown_option(command, word + 2);
    } else {
        option = find_letter(command, word[1]);
        if (option == NULL)
            return cli_usage("unknown option %s (headrace %s --help lists all)", word,
                             command->name);
        if (word[2] != '\0')
            value = word + 2;
    }
    if (option->type == CLI_FLAG && value != NULL)
        return cli_usage("--%s takes no value", option->name);
    if (option->type != CLI_FLAG && value == NULL) {
        if (*at + 1 >= argc)
            return cli_usage("--%s must be followed by %s", option->name, option->arg);
        value = argv[++*at];
    }
    return read_value(option, value, is_common(option) ? common_values : values);
}

static int check_rest(const struct cli_command *command, const struct cli_rest *rest)
{
    if (rest->count < command->args_min)
        return cli_usage("headrace %s expects %s (see headrace %s --help)", command->name,
                         command->args, command->name);
    if (rest->count > command->args_max)
        return cli_usage("unexpected argument '%s' (see headrace %s --help)",
                         rest->words[command->args_max], command->name);
    return CLI_OK;
}

/* CLI_OK with *ret_help set: print the help and ignore everything else. */
static int parse(const struct cli_command *command, int argc, char **argv, void *values,
                 struct cli_rest *rest, bool *ret_help)
{
    bool options = true;
    int code = CLI_OK;

    for (int i = 0; i < argc && code == CLI_OK; i++) {
        const char *word = argv[i];

        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            *ret_help = true;
            return CLI_OK;
        } else if (options && word[0] == '-' && word[1] != '\0') {
            code = read_option(command, argc, argv, &i, values);
        } else if (rest->count == sizeof(rest->words) / sizeof(rest->words[0])) {
            code = cli_usage("too many arguments");
        } else {
            rest->words[rest->count++] = word;
        }
    }
    return code == CLI_OK ? check_rest(command, rest) : code;
}

static void free_values(const struct cli_command *command, void *values)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];

        if (option->type == CLI_PARAM)
            free(((struct cli_params *)((char *)values + option->offset))->items);
    }
    free(values);
}

/* Applies --color before anything is printed about the other words; parse() checks it. */
static void find_colour(int argc, char **argv)
{
    static const char name[] = "--color";
    const size_t length = sizeof(name) - 1;

    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *value = strncmp(argv[i], name, length) != 0 ? NULL
                            : argv[i][length] == '='            ? argv[i] + length + 1
                            : argv[i][length] == '\0' && i + 1 < argc ? argv[i + 1]
                                                                      : NULL;

        if (value != NULL && strcmp(value, "always") == 0)
            term_colour_set(TERM_COLOUR_ALWAYS);
        else if (value != NULL && strcmp(value, "never") == 0)
            term_colour_set(TERM_COLOUR_NEVER);
        else if (value != NULL)
            term_colour_set(TERM_COLOUR_AUTO);
    }
}

/* ---- settings ---- */

/* The argument of --name on the command line, or NULL; *ret_given: it is there. */
static const char *find_word(int argc, char **argv, const char *name, bool *ret_given)
{
    size_t length = strlen(name);

    *ret_given = false;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *word = argv[i];

        if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0 ||
            (word[2 + length] != '\0' && word[2 + length] != '='))
            continue;
        *ret_given = true;
        return word[2 + length] == '=' ? word + 3 + length
               : i + 1 < argc          ? argv[i + 1]
                                       : NULL;
    }
    return NULL;
}

static bool is_setting(const struct cli_command *command, const struct cli_option *option)
{
    return strcmp(option->name, "config") != 0 &&
           strcmp(option->name, "show-config") != 0 &&
           strcmp(option->name, command->settings_unless) != 0;
}

static int set(const struct cli_option *option, char *value, void *values)
{
    int code;

    if (option->type == CLI_FLAG)
        code = read_bool(option, value, (bool *)((char *)values + option->offset));
    else
        code = read_value(option, value, values);
    setting_place[0] = '\0';
    return code;
}

static int set_line(const struct cli_command *command, const char *path,
                    const struct settings_line *line, uint64_t *seen, void *values)
{
    const struct cli_option *option =
        find_in(command->options, command->option_count, line->name, strlen(line->name));
    size_t at;

    if (option == NULL || !is_setting(command, option))
        return cli_usage("%s:%d: headrace %s has no setting '%s'", path, line->number,
                         command->name, line->name);
    at = (size_t)(option - command->options);
    if (*seen >> at & 1)
        return cli_usage("%s:%d: '%s' is there twice", path, line->number, line->name);
    *seen |= (uint64_t)1 << at;
    snprintf(setting_place, sizeof(setting_place), "%s:%d: ", path, line->number);
    return set(option, line->value, values);
}

/* The values point into `text`. */
static int read_settings(const struct cli_command *command, const char *path, char *text,
                         void *values)
{
    struct settings_line line;
    uint64_t seen = 0;
    int number = 0, got, code = CLI_OK;

    while (code == CLI_OK && (got = settings_next(&text, &number, &line)) != 0) {
        if (got < 0)
            return cli_usage("%s:%d: expected a line `option: value`", path, number);
        code = set_line(command, path, &line, &seen, values);
    }
    return code;
}

static int read_file(const char *path, char **ret_text)
{
    FILE *file = fopen(path, "r");
    char *text;
    size_t length;
    int failed;

    if (file == NULL)
        return cli_failed("cannot read %s: %s", path, strerror(errno));
    text = malloc(SETTINGS_MAX + 1);
    length = text != NULL ? fread(text, 1, SETTINGS_MAX + 1, file) : 0;
    failed = ferror(file) ? errno : 0;
    fclose(file);
    if (text == NULL)
        return cli_failed("out of memory");
    if (failed != 0) {
        free(text);
        return cli_failed("cannot read %s: %s", path, strerror(failed));
    }
    if (length > SETTINGS_MAX || memchr(text, '\0', length) != NULL) {
        free(text);
        return cli_usage("%s is no file of settings: it is too large, or not a text",
                         path);
    }
    text[length] = '\0';
    *ret_text = text;
    return CLI_OK;
}

static int read_environment(const struct cli_command *command, void *values)
{
    int code = CLI_OK;

    for (size_t i = 0; code == CLI_OK && i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        char name[128], *value;

        value =
            getenv(settings_variable(command->name, option->name, name, sizeof(name)));
        if (value == NULL || !is_setting(command, option))
            continue;
        snprintf(setting_place, sizeof(setting_place), "%s: ", name);
        code = set(option, value, values);
    }
    return code;
}

/* File and environment; *ret_text must live as long as the values. */
static int find_settings(const struct cli_command *command, int argc, char **argv,
                         void *values, char **ret_text)
{
    char name[128];
    bool given;
    const char *path;
    int code = CLI_OK;

    if (command->settings_unless == NULL)
        return CLI_OK;
    find_word(argc, argv, command->settings_unless, &given);
    if (given)
        return CLI_OK;
    path = find_word(argc, argv, "config", &given);
    if (!given)
        path = getenv(settings_variable(command->name, "config", name, sizeof(name)));
    if (path != NULL && path[0] != '\0')
        code = read_file(path, ret_text);
    if (*ret_text != NULL)
        code = read_settings(command, path, *ret_text, values);
    return code == CLI_OK ? read_environment(command, values) : code;
}

int cli_show_settings(const struct cli_command *command, const void *values)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];
        const char *at = (const char *)values + option->offset;

        if (!is_setting(command, option))
            continue;
        if (option->type == CLI_INT)
            printf("%s: %lld\n", option->name, (long long)*(const int64_t *)at);
        else if (option->type == CLI_FLAG)
            printf("%s: %s\n", option->name, *(const bool *)at ? "true" : "false");
        else if (option->type == CLI_TEXT && *(const char *const *)at != NULL)
            printf("%s: %s\n", option->name, *(const char *const *)at);
        else
            printf("# %s:\n", option->name);
    }
    return CLI_OK;
}

int cli_run(const struct cli_command *command, int argc, char **argv)
{
    void *values = calloc(1, command->values_bytes + 1);
    struct cli_rest rest = {.count = 0};
    bool help = false;
    char *settings = NULL;
    int code;

    if (values == NULL)
        return cli_failed("out of memory");
    if (command->defaults != NULL)
        memcpy(values, command->defaults, command->values_bytes);
    find_colour(argc, argv);
    code = find_settings(command, argc, argv, values, &settings);
    if (code == CLI_OK)
        code = parse(command, argc, argv, values, &rest, &help);
    if (code == CLI_OK && help)
        cli_print_help(command, stdout);
    else if (code == CLI_OK)
        code = command->run(values, &rest);
    free_values(command, values);
    free(settings);
    return code;
}
