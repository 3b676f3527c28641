/*
 * ops_find.c - see ops_find.h.
 */
#include "ops_find.h"
#include "headrace/op.h"

#include <string.h>

#define NEAR_MAX 6  /* names that are suggested */
#define EDITS_MAX 2 /* of a word to a part of them */

static bool has_word(const struct hr_op_info *info, const char *word)
{
    return strcasestr(info->name, word) != NULL ||
           strcasestr(info->summary, word) != NULL;
}

static bool has_words(const struct hr_op_info *info, const struct cli_rest *words)
{
    for (size_t i = 0; i < words->count; i++)
        if (!has_word(info, words->words[i]))
            return false;
    return true;
}

size_t ops_find(const struct cli_rest *words, bool all, bool *ret_found, size_t count)
{
    struct hr_op_info info;
    size_t exact, found = 0;

    if (words->count == 1 && hr_op_find(words->words[0], &exact, NULL) == HR_OK) {
        for (size_t i = 0; i < count; i++)
            ret_found[i] = i == exact;
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        ret_found[i] = hr_op_info(i, &info) == HR_OK && (all || !info.test_only) &&
                       has_words(&info, words);
        found += ret_found[i];
    }
    return found;
}

/* Edits from the word to the nearest part of the name, between '.' and '_'. */
static size_t part_distance(const char *name, const char *word)
{
    size_t least = 64;

    while (*name != '\0') {
        char part[64];
        size_t length = strcspn(name, "._"), edits;

        snprintf(part, sizeof(part), "%.*s", (int)length, name);
        edits = cli_distance(word, part);
        least = edits < least && edits < length ? edits : least;
        name += length + (name[length] != '\0');
    }
    return least;
}

/* Writes the names of operators with a part at that distance; returns how many. */
static size_t near_names(const char *word, size_t edits, char *text, size_t room)
{
    struct hr_op_info info;
    size_t used = 0, found = 0;

    for (size_t i = 0; found < NEAR_MAX && hr_op_info(i, &info) == HR_OK; i++)
        if (!info.test_only && part_distance(info.name, word) == edits)
            used += (size_t)snprintf(text + used, room - used, "%s%s",
                                     found++ > 0 ? ", " : "", info.name);
    return found;
}

int ops_find_failed(const struct cli_rest *words)
{
    const char *word = words->words[0];
    struct hr_error error = {0};
    char near[NEAR_MAX * 66];
    size_t at;

    if (words->count > 1)
        return cli_usage("no operator has all of these words in its name or summary "
                         "(headrace ops lists all)");
    for (size_t edits = 1; edits <= EDITS_MAX; edits++)
        if (near_names(word, edits, near, sizeof(near)) > 0)
            return cli_usage("no operator has '%s' in its name or summary; near: %s",
                             word, near);
    if (hr_op_find(word, &at, &error) != HR_OK)
        return cli_usage("%s (headrace ops lists all)", error.message);
    return CLI_USAGE;
}
