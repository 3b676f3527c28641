/*
 * cmd_ops.c - headrace ops: the operators and their parameters, from the ops' own tables.
 *
 * The pages of docs/ops are written by --markdown, and `make check` compares them, so
 * they always match what the code accepts.
 */
#include "cli.h"
#include "headrace/op.h"
#include "ops_find.h"
#include "out.h"
#include "term.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct ops_options {
    bool json, names, all;
    const char *markdown;
};

#define AT(field) offsetof(struct ops_options, field)

/* clang-format off */
static const struct cli_option ops_table[] = {
    {"all", 'a', CLI_FLAG, AT(all), NULL,
     "include operators made for tests"},
    {"names", 0, CLI_FLAG, AT(names), NULL,
     "print names only, one per line"},
    {"json", 0, CLI_FLAG, AT(json), NULL,
     "print everything as one JSON array"},
    {"markdown", 0, CLI_TEXT, AT(markdown), "DIR",
     "write one Markdown page per operator and README.md into DIR"},
};

static const struct cli_example ops_examples[] = {
    {"headrace ops",
     "list all operators, one line each"},
    {"headrace ops image.random_resized_crop",
     "show an operator's parameters, ranges and defaults"},
    {"headrace ops crop",
     "list the operators with \"crop\" in their name or summary"},
    {"headrace ops random crop",
     "those with both words"},
    {"headrace ops --markdown docs/ops",
     "write the reference pages"},
};
/* clang-format on */

static const char *range_text(size_t at, size_t param, char *text, size_t room)
{
    text[0] = '\0';
    return hr_op_param_range(at, param, text, room);
}

/* Prints the operators that are marked, one line each. */
static void print_list(const struct ops_options *options, const bool *found, size_t count)
{
    struct hr_op_info info;

    for (size_t i = 0; i < count; i++) {
        if (!found[i] || hr_op_info(i, &info) != HR_OK)
            continue;
        if (options->names)
            printf("%s\n", info.name);
        else
            printf("%s%-28s%s %-7s %s\n", term_bold(stdout), info.name,
                   term_plain(stdout), info.kind, info.summary);
    }
}

static void print_param(size_t at, size_t number)
{
    struct hr_param_info param;
    char range[256];

    if (hr_op_param(at, number, &param) != HR_OK)
        return;
    range_text(at, number, range, sizeof(range));
    printf("  %s%-16s%s %s; %s", term_bold(stdout), param.name, term_plain(stdout),
           param.help != NULL ? param.help : "", param.type);
    if (range[0] != '\0')
        printf(", %s", range);
    if (param.unit != NULL)
        printf(", in %s", param.unit);
    if (param.required)
        printf("; required");
    else if (param.fallback != NULL)
        printf("; default %s", param.fallback);
    printf("\n");
}

static void print_one(size_t at)
{
    struct hr_op_info info;
    char traits[256] = "";

    if (hr_op_info(at, &info) != HR_OK)
        return;
    printf("%s%s%s - %s\n\nkind %s, version %u; %s\n", term_bold(stdout), info.name,
           term_plain(stdout), info.summary, info.kind, info.version,
           hr_op_traits(at, traits, sizeof(traits)));
    if (info.doc != NULL)
        printf("\n%s\n", info.doc);
    if (info.param_count > 0)
        printf("\n%sParameters%s\n", term_bold(stdout), term_plain(stdout));
    for (size_t i = 0; i < info.param_count; i++)
        print_param(at, i);
}

/* ---- JSON ---- */

static void json_param(struct json *json, size_t at, size_t number)
{
    struct hr_param_info param;
    char range[256];

    if (hr_op_param(at, number, &param) != HR_OK)
        return;
    json_open(json, NULL, '{');
    json_text(json, "name", param.name);
    json_text(json, "type", param.type);
    json_text(json, "default", param.fallback);
    json_text(json, "range", range_text(at, number, range, sizeof(range)));
    json_text(json, "unit", param.unit);
    json_text(json, "help", param.help);
    json_bool(json, "required", param.required);
    json_close(json, '}');
}

static void json_op(struct json *json, size_t at, const struct hr_op_info *info)
{
    char traits[256] = "";

    json_open(json, NULL, '{');
    json_text(json, "name", info->name);
    json_text(json, "kind", info->kind);
    json_text(json, "summary", info->summary);
    json_text(json, "doc", info->doc);
    json_u64(json, "version", info->version);
    json_bool(json, "test_only", info->test_only);
    json_text(json, "traits", hr_op_traits(at, traits, sizeof(traits)));
    json_open(json, "params", '[');
    for (size_t i = 0; i < info->param_count; i++)
        json_param(json, at, i);
    json_close(json, ']');
    json_close(json, '}');
}

static void print_json(const bool *found, size_t count)
{
    struct json json = {.out = stdout};
    struct hr_op_info info;

    json_open(&json, NULL, '[');
    for (size_t i = 0; i < count; i++)
        if (found[i] && hr_op_info(i, &info) == HR_OK)
            json_op(&json, i, &info);
    json_close(&json, ']');
    json_end(&json);
}

/* ---- Markdown ---- */

/* Writes the text of a table cell, escaping |. */
static void put_cell(FILE *out, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text == '\n' ? ' ' : *text, out);
    }
    fputs(" | ", out);
}

static void markdown_params(FILE *out, size_t at, size_t count)
{
    struct hr_param_info param;
    char range[256];

    if (count == 0) {
        fputs("\nNo parameters.\n", out);
        return;
    }
    fputs("\n| parameter | type | default | range | unit | meaning |\n"
          "|---|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < count; i++) {
        if (hr_op_param(at, i, &param) != HR_OK)
            continue;
        fprintf(out, "| `%s` | ", param.name);
        put_cell(out, param.type);
        if (param.fallback != NULL && !param.required)
            fprintf(out, "`%s` | ", param.fallback[0] ? param.fallback : "\"\"");
        else
            put_cell(out, param.required ? "required" : "");
        put_cell(out, range_text(at, i, range, sizeof(range)));
        put_cell(out, param.unit);
        put_cell(out, param.help);
        fputc('\n', out);
    }
}

static int markdown_op(const char *dir, size_t at, const struct hr_op_info *info)
{
    struct out out;
    char path[2048], traits[256] = "";
    int code;

    snprintf(path, sizeof(path), "%s/%s.md", dir, info->name);
    code = out_begin(&out, path);
    if (code != CLI_OK)
        return code;
    fprintf(out.file,
            "<!-- written by `headrace ops --markdown docs/ops`; edit the operator's "
            "table instead -->\n# %s\n\n",
            info->name);
    fprintf(out.file, "%c%s.\n\n- kind: %s\n- version: %u\n- traits: %s\n",
            toupper((unsigned char)info->summary[0]), info->summary + 1, info->kind,
            info->version, hr_op_traits(at, traits, sizeof(traits)));
    if (info->doc != NULL)
        fprintf(out.file, "\n%s\n", info->doc);
    markdown_params(out.file, at, info->param_count);
    return out_commit(&out);
}

static int print_markdown(const char *dir)
{
    struct hr_op_info info;
    struct out out;
    char path[2048];
    int code = out_folder(dir);

    for (size_t i = 0; code == CLI_OK && hr_op_info(i, &info) == HR_OK; i++)
        code = markdown_op(dir, i, &info);
    snprintf(path, sizeof(path), "%s/README.md", dir);
    if (code == CLI_OK)
        code = out_begin(&out, path);
    if (code != CLI_OK)
        return code;
    fputs("<!-- written by `headrace ops --markdown docs/ops` -->\n# Operators\n\n"
          "| operator | kind | what it does |\n|---|---|---|\n",
          out.file);
    for (size_t i = 0; hr_op_info(i, &info) == HR_OK; i++) {
        fprintf(out.file, "| [%s](%s.md) | %s | ", info.name, info.name, info.kind);
        put_cell(out.file, info.summary);
        fputc('\n', out.file);
    }
    return out_commit(&out);
}

static size_t first_found(const bool *found)
{
    size_t at = 0;

    while (!found[at])
        at++;
    return at;
}

static int ops_run(void *values, const struct cli_rest *rest)
{
    const struct ops_options *options = values;
    size_t count = hr_op_count(), hits;
    bool *found;
    int code = CLI_OK;

    if (options->markdown != NULL)
        return print_markdown(options->markdown);
    found = calloc(count, sizeof(*found));
    if (found == NULL)
        return cli_failed("out of memory");
    hits = ops_find(rest, options->all, found, count);
    if (hits == 0)
        code = ops_find_failed(rest);
    else if (options->json)
        print_json(found, count);
    else if (hits == 1 && !options->names)
        print_one(first_found(found));
    else
        print_list(options, found, count);
    free(found);
    return code;
}

const struct cli_command cmd_ops = {
    .name = "ops",
    .summary = "list the operators, find some by words, or describe one",
    .args = "[NAME | WORD...]",
    .complete = "$(headrace ops --names 2>/dev/null)",
    .args_max = 8,
    .text = "Lists the operators with a summary, or those whose name or summary contains "
            "all WORDs. A single one is described: its parameters with types, ranges, "
            "defaults and units, and its traits, which the optimizer reads.",
    CLI_OPTIONS(ops_table, struct ops_options),
    CLI_EXAMPLES(ops_examples),
    .run = ops_run,
};
