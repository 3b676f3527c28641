/*
 * net/tenants.c - see tenants.h.
 */
#include "net/tenants.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/file.h"
#include "wire/frame.h"

#define FILE_MAX ((size_t)1 << 20)
#define SPACES " \t\r"

/* The line that a message is about. */
struct place {
    const char *path;
    unsigned line;
};

static enum hr_err
wrong(const struct place *at, const char *what, struct hr_error *reterr)
{
    return hr__fail(reterr, HR_ERR_FORMAT,
                    "%s:%u: %s; a line is: NAME TOKEN [runs=N] [weight=N]", at->path,
                    at->line, what);
}

static bool is_name(const char *text)
{
    size_t bytes = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_.");

    return bytes > 0 && bytes <= HR_TENANT_NAME_MAX && text[bytes] == '\0';
}

/* False unless it is a number from 1 to `most`. */
static bool take_number(const char *text, uint32_t most, uint32_t *ret)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < 1 || number > most)
        return false;
    *ret = (uint32_t)number;
    return true;
}

static enum hr_err take_option(const char *word, const struct place *at,
                               struct hr_tenant *tenant, struct hr_error *reterr)
{
    if (strncmp(word, "runs=", 5) == 0)
        return take_number(word + 5, HR_TENANT_RUNS_MAX, &tenant->runs_max)
                   ? HR_OK
                   : wrong(at, "runs is 1 to 65536", reterr);
    if (strncmp(word, "weight=", 7) == 0)
        return take_number(word + 7, HR_FRAME_WEIGHT_MAX, &tenant->weight_max)
                   ? HR_OK
                   : wrong(at, "weight is 1 to 100", reterr);
    return wrong(at, "what follows the token is runs=N or weight=N", reterr);
}

static enum hr_err take_line(char *line, const struct place *at, struct hr_tenant *tenant,
                             struct hr_error *reterr)
{
    char *rest = NULL, *word = strtok_r(line, SPACES, &rest);

    if (!is_name(word))
        return wrong(at, "a name has 1 to 64 letters, digits, '-', '_' and '.'", reterr);
    memcpy(tenant->name, word, strlen(word) + 1);
    word = strtok_r(NULL, SPACES, &rest);
    if (word == NULL)
        return wrong(at, "the token is missing", reterr);
    if (hr__token_take(word, at->path, &tenant->token, reterr) != HR_OK)
        return wrong(at, "a token has 16 to 255 printable characters", reterr);
    while ((word = strtok_r(NULL, SPACES, &rest)) != NULL)
        HR_TRY(take_option(word, at, tenant, reterr));
    return HR_OK;
}

static enum hr_err
check_new(const struct hr_tenants *tenants, const struct hr_token *own,
          const struct hr_tenant *tenant, const struct place *at, struct hr_error *reterr)
{
    if (tenants->count == HR_TENANTS_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT, "%s:%u: more than %u tenants", at->path,
                        at->line, HR_TENANTS_MAX);
    for (size_t i = 0; i < tenants->count; i++)
        if (strcmp(tenants->items[i].name, tenant->name) == 0)
            return wrong(at, "the name is there before", reterr);
    if (hr__tenants_find(tenants, tenant->token.text, tenant->token.bytes) != NULL ||
        hr__token_is(own, tenant->token.text, tenant->token.bytes))
        return wrong(at, "the token is another tenant's, or the service's own", reterr);
    return HR_OK;
}

static enum hr_err read_lines(char *text, const struct hr_token *own, struct place *at,
                              struct hr_tenants *tenants, struct hr_error *reterr)
{
    size_t room = 0;

    for (char *line = text, *next; line != NULL; line = next) {
        struct hr_tenant tenant = {.weight_max = 1};

        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        at->line++;
        line += strspn(line, SPACES);
        if (*line == '\0' || *line == '#')
            continue;
        HR_TRY(take_line(line, at, &tenant, reterr));
        HR_TRY(check_new(tenants, own, &tenant, at, reterr));
        if (!hr__array_room(&tenants->items, tenants->count, &room, tenants->count + 1,
                            sizeof *tenants->items))
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        tenants->items[tenants->count++] = tenant;
    }
    return HR_OK;
}

enum hr_err hr__tenants_load(const char *path, const struct hr_token *own,
                             struct hr_tenants *ret_tenants, struct hr_error *reterr)
{
    struct place at = {.path = path};
    struct hr_tenants tenants = {0};
    enum hr_err code;
    size_t bytes;
    char *text;

    if (own->bytes == 0)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a service with tenants needs a token of its own, which they do "
                        "not have (--token-file)");
    HR_TRY(hr__file_read(path, FILE_MAX, &text, &bytes, reterr));
    if (strlen(text) != bytes)
        code = hr__fail(reterr, HR_ERR_FORMAT, "%s: it has a byte of zero", path);
    else
        code = read_lines(text, own, &at, &tenants, reterr);
    hr__free(text);
    if (code == HR_OK)
        *ret_tenants = tenants;
    else
        hr__tenants_finish(&tenants);
    return code;
}

void hr__tenants_finish(struct hr_tenants *tenants)
{
    hr__free(tenants->items);
    *tenants = (struct hr_tenants){0};
}

const struct hr_tenant *
hr__tenants_find(const struct hr_tenants *tenants, const void *text, size_t bytes)
{
    const struct hr_tenant *found = NULL;

    for (size_t i = 0; i < tenants->count; i++)
        if (hr__token_is(&tenants->items[i].token, text, bytes))
            found = &tenants->items[i];
    return found;
}
