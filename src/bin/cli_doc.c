/*
 * cli_doc.c - --help and the man page, from the commands' tables.
 */
#include "cli.h"
#include "term.h"

#include <string.h>

static void print_wrapped(FILE *out, const char *text, int indent, int width)
{
    int column = indent;

    while (*text != '\0') {
        size_t length = strcspn(text, " \n");

        if (column > indent && column + 1 + (int)length > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, length, out);
        column += (int)length;
        text += length;
        if (*text == '\n') {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        if (*text != '\0')
            text++;
    }
    fputc('\n', out);
}

/* "-p, --param name=value" */
static void option_text(const struct cli_option *option, char *text, size_t room)
{
    char letter[8] = "";

    if (option->letter != 0)
        snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    snprintf(text, room, "%s--%s%s%s", letter, option->name, option->arg ? " " : "",
             option->arg ? option->arg : "");
}

static void print_option(const struct cli_option *option, FILE *out)
{
    char text[128];

    option_text(option, text, sizeof(text));
    if (strlen(text) > 26)
        fprintf(out, "  %s\n%30s", text, "");
    else
        fprintf(out, "  %-28s", text);
    print_wrapped(out, option->help, 30, 90);
}

static void print_options(const struct cli_command *command, FILE *out)
{
    static const struct cli_option help = {"help",           'h', CLI_FLAG, 0, NULL,
                                           "show this help", 0,   0};

    fprintf(out, "\n%sOptions%s\n", term_bold(out), term_plain(out));
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i], out);
    for (size_t i = 0; i < CLI_COMMON_COUNT; i++)
        print_option(&cli_common[i], out);
    print_option(&help, out);
}

void cli_print_help(const struct cli_command *command, FILE *out)
{
    fprintf(out, "headrace %s - %s\n\nUsage: headrace %s%s%s [options]\n\n",
            command->name, command->summary, command->name, command->args[0] ? " " : "",
            command->args);
    print_wrapped(out, command->text, 0, 90);
    print_options(command, out);
    fprintf(out, "\n%sExamples%s\n", term_bold(out), term_plain(out));
    for (size_t i = 0; i < command->example_count; i++)
        fprintf(out, "  %s\n      %s\n", command->examples[i].command,
                command->examples[i].what);
}

static const char exit_codes[] =
    "0 success\n1 something failed while running: a file, a record, memory\n"
    "2 the command line or the graph is wrong; nothing was run\n"
    "130 stopped cleanly by Ctrl-C or SIGTERM; a dispatcher or worker ends with 0";

void cli_print_overview(FILE *out)
{
    fprintf(out,
            "headrace %s - from a folder of files to training batches\n\n"
            "Usage: headrace COMMAND [arguments] [options]\n\n%sCommands%s\n",
            hr_version(), term_bold(out), term_plain(out));
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        fprintf(out, "  %-12s%s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fprintf(
        out,
        "\nRun headrace COMMAND --help for details and examples.\n\n%sExit codes%s\n  ",
        term_bold(out), term_plain(out));
    print_wrapped(out, exit_codes, 2, 90);
}

/* Escapes text for groff: backslashes, dashes, and leading dots and quotes. */
static void man_text(FILE *out, const char *text)
{
    bool start = true;

    for (; *text != '\0'; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\n')
            fputs("\n.br\n", out);
        else
            fputc(*text, out);
        start = *text == '\n';
    }
    fputc('\n', out);
}

static void man_option(const struct cli_option *option, FILE *out)
{
    char text[128];

    option_text(option, text, sizeof(text));
    fputs(".TP\n.B ", out);
    man_text(out, text);
    man_text(out, option->help);
}

static void man_command(const struct cli_command *command, FILE *out)
{
    fprintf(out, ".SS headrace %s %s\n", command->name, command->args);
    man_text(out, command->text);
    for (size_t i = 0; i < command->option_count; i++)
        man_option(&command->options[i], out);
    for (size_t i = 0; i < command->example_count; i++) {
        fputs(".PP\n", out);
        man_text(out, command->examples[i].what);
        fputs(".PP\n.RS\n.nf\n", out);
        man_text(out, command->examples[i].command);
        fputs(".fi\n.RE\n", out);
    }
}

void cli_print_man(FILE *out)
{
    fprintf(out, ".TH HEADRACE 1 \"\" \"headrace %s\" \"User commands\"\n", hr_version());
    fputs(".SH NAME\nheadrace \\- from a folder of files to training batches\n"
          ".SH SYNOPSIS\n.B headrace\nCOMMAND [arguments] [options]\n"
          ".SH DESCRIPTION\n",
          out);
    man_text(out, "A graph file describes how raw files become training batches: what is "
                  "read, in which order, and which operators process it. Headrace checks "
                  "the graph before any data is read, composes operators so that pixels "
                  "are touched once, and runs it on all CPUs that the process may use.");
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        man_command(cli_commands[i], out);
    fputs(".SH OPTIONS OF ALL COMMANDS\n", out);
    for (size_t i = 0; i < CLI_COMMON_COUNT; i++)
        man_option(&cli_common[i], out);
    fputs(".SH EXIT STATUS\n", out);
    man_text(out, exit_codes);
    fputs(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\n", out);
    man_text(out, "when set and not empty, no colours are used");
    fputs(".TP\n.B FORCE_COLOR\n", out);
    man_text(out, "when set to anything but 0, colours are used even if the output is "
                  "not a terminal; NO_COLOR and --color go before it");
    fputs(".TP\n.B HEADRACE_ISA\n", out);
    man_text(out,
             "c, neon, avx2 or avx512: the highest instruction set to use; the bytes "
             "are the same with any");
}
