/*
 * cli_complete.c - the commands' tables as completions for bash, zsh and fish.
 *
 * A command's words are completed by its `complete`: a list of words, or $(a command)
 * that the shell runs. All other words are files.
 */
#include "cli.h"

#include <string.h>

/* The choices of an option as words. */
static void put_choices(const struct cli_option *option, FILE *out)
{
    for (const char *at = option->arg; *at != '\0'; at++)
        fputc(*at == '|' ? ' ' : *at, out);
}

/* ---- bash ---- */

static void bash_values(FILE *out)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        const struct cli_command *command = cli_commands[i];

        if (command->complete != NULL)
            fprintf(out, "    %s:%s) choices=\"%s\" ;;\n", command->name, command->name,
                    command->complete);
        for (size_t j = 0; j < command->option_count; j++) {
            if (command->options[j].type != CLI_CHOICE)
                continue;
            fprintf(out, "    %s:--%s) choices=\"", command->name,
                    command->options[j].name);
            put_choices(&command->options[j], out);
            fputs("\" ;;\n", out);
        }
    }
}

static void bash_options(FILE *out)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        fprintf(out, "    %s) words=\"--help", cli_commands[i]->name);
        for (size_t j = 0; j < cli_commands[i]->option_count; j++)
            fprintf(out, " --%s", cli_commands[i]->options[j].name);
        fputs("\" ;;\n", out);
    }
}

static void print_bash(FILE *out)
{
    fputs("# bash completion of headrace; made by: headrace completion bash\n"
          "_headrace()\n{\n"
          "    local word=\"${COMP_WORDS[COMP_CWORD]}\" before words choices=\n"
          "    before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"",
          out);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", cli_commands[i]->name);
    fputs("\" -- \"$word\"))\n        return\n    fi\n"
          "    case \"${COMP_WORDS[1]}:$before\" in\n",
          out);
    bash_values(out);
    fputs("    esac\n"
          "    if [ -n \"$choices\" ] && [ \"${word#-}\" = \"$word\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n"
          "        return\n    fi\n    case \"${COMP_WORDS[1]}\" in\n",
          out);
    bash_options(out);
    fputs("    esac\n    if [ \"${word#-}\" != \"$word\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n    else\n"
          "        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\n"
          "complete -o filenames -F _headrace headrace\n",
          out);
}

/* ---- zsh ---- */

/* Inside single quotes, inside the brackets of _arguments. */
static void zsh_text(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text) != NULL)
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void zsh_option(const struct cli_option *option, FILE *out)
{
    fprintf(out, " \\\n            '%s--%s[", option->type == CLI_PARAM ? "*" : "",
            option->name);
    zsh_text(option->help, out);
    fputc(']', out);
    if (option->arg != NULL) {
        fputc(':', out);
        zsh_text(option->type == CLI_CHOICE ? option->name : option->arg, out);
        fputc(':', out);
    }
    if (option->type == CLI_CHOICE) {
        fputc('(', out);
        put_choices(option, out);
        fputc(')', out);
    } else if (option->type == CLI_TEXT) {
        fputs("_files", out);
    }
    fputc('\'', out);
}

static void zsh_command(const struct cli_command *command, FILE *out)
{
    fprintf(out, "    %s)\n        _arguments '(-h --help)'{-h,--help}'[show the help]'",
            command->name);
    for (size_t i = 0; i < command->option_count; i++)
        zsh_option(&command->options[i], out);
    if (command->complete != NULL)
        fprintf(out, " \\\n            \"1:name:(%s)\"", command->complete);
    fputs(" \\\n            '*:file:_files' ;;\n", out);
}

static void print_zsh(FILE *out)
{
    fputs("#compdef headrace\n"
          "# zsh completion of headrace; made by: headrace completion zsh\n"
          "_headrace()\n{\n    local -a commands=(\n",
          out);
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        fprintf(out, "        '%s:", cli_commands[i]->name);
        zsh_text(cli_commands[i]->summary, out);
        fputs("'\n", out);
    }
    fputs("    )\n    if (( CURRENT == 2 )); then\n"
          "        _describe command commands\n        return\n    fi\n"
          "    shift words\n    (( CURRENT-- ))\n    case $words[1] in\n",
          out);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        zsh_command(cli_commands[i], out);
    fputs("    esac\n}\n"
          "if [ \"$funcstack[1]\" = _headrace ]; then\n    _headrace \"$@\"\n"
          "else\n    compdef _headrace headrace\nfi\n",
          out);
}

/* ---- fish ---- */

static void fish_text(const char *text, FILE *out)
{
    fputc('\'', out);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void fish_command(const struct cli_command *command, FILE *out)
{
    const char *when = "complete -c headrace -n '__fish_seen_subcommand_from";

    fputs("complete -c headrace -f -n __fish_use_subcommand -a ", out);
    fprintf(out, "%s -d ", command->name);
    fish_text(command->summary, out);
    fprintf(out, "\n%s %s' -s h -l help -d 'show the help'\n", when, command->name);
    if (command->complete != NULL)
        fprintf(out, "%s %s' -f -a \"%s%s\"\n", when, command->name,
                command->complete[0] == '$' ? "" : command->complete,
                command->complete[0] == '$' ? command->complete + 1 : "");
    for (size_t i = 0; i < command->option_count; i++) {
        const struct cli_option *option = &command->options[i];

        fprintf(out, "%s %s' -l %s", when, command->name, option->name);
        if (option->letter != 0)
            fprintf(out, " -s %c", option->letter);
        if (option->type == CLI_CHOICE) {
            fputs(" -x -a '", out);
            put_choices(option, out);
            fputc('\'', out);
        } else if (option->arg != NULL) {
            fputs(" -r", out);
        }
        fputs(" -d ", out);
        fish_text(option->help, out);
        fputc('\n', out);
    }
}

static void print_fish(FILE *out)
{
    fputs("# fish completion of headrace; made by: headrace completion fish\n", out);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        fish_command(cli_commands[i], out);
}

bool cli_print_completion(const char *shell, FILE *out)
{
    if (strcmp(shell, "bash") == 0)
        print_bash(out);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(out);
    else if (strcmp(shell, "fish") == 0)
        print_fish(out);
    else
        return false;
    return true;
}
