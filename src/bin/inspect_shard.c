/*
 * inspect_shard.c - headrace inspect FILE: reads a whole file of records. What is bad
 * comes from the ledger of that run, which names the byte.
 */
#include "inspect_shard.h"
#include "cli.h"
#include "data_file.h"
#include "term.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool inspect_is_shard(const char *path)
{
    return data_file_source(path) != NULL;
}

int inspect_shard_open(const char *path, const char *index, struct hr_graph **ret_graph)
{
    return data_file_open(data_file_source(path), path, index, ret_graph);
}

/* Takes the escapes out of a JSON string in place, up to its end. Those of control
 * characters stay as they are. */
static void unescape(char *text)
{
    char *to = text;

    for (; *text != '\0' && *text != '"'; text++) {
        if (*text == '\\' && (text[1] == '"' || text[1] == '\\'))
            text++;
        *to++ = *text;
    }
    *to = '\0';
}

/* Prints the messages of a ledger's lines. */
static void print_ledger(FILE *ledger)
{
    static const char key[] = "\"message\":\"";
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, ledger) > 0) {
        char *from = strstr(line, key);

        if (from == NULL)
            continue;
        from += sizeof(key) - 1;
        unescape(from);
        printf("  %s\n", from);
    }
    free(line);
}

static int
read_all(struct hr_graph *graph, const char *ledger, struct hr_iter_stats *ret_stats)
{
    struct hr_iter_options options;
    struct hr_batch *batch = NULL;
    struct hr_error error = {0};
    struct hr_iter *iter;
    enum hr_err code;

    hr_iter_options_init(&options);
    options.on_error = HR_ON_ERROR_SKIP;
    options.errors_max = INT64_MAX;
    options.ledger = ledger;
    if (hr_iter_open(graph, &options, &iter, &error) != HR_OK)
        return cli_library_failed(&error);
    while ((code = hr_iter_next(iter, &batch, &error)) == HR_OK)
        hr_batch_unref(batch);
    hr_iter_stats(iter, ret_stats);
    hr_iter_close(iter);
    return code == HR_ERR_END ? CLI_OK : cli_library_failed(&error);
}

int inspect_shard_check(struct hr_graph *graph)
{
    char path[] = "/tmp/headrace-inspect-XXXXXX", whole[32];
    int fd = mkstemp(path), code;
    FILE *ledger = fd >= 0 ? fdopen(fd, "r") : NULL;
    struct hr_iter_stats stats = {0};

    if (ledger == NULL) {
        if (fd >= 0)
            close(fd);
        return cli_failed("cannot write %s: %s", path, strerror(errno));
    }
    code = read_all(graph, path, &stats);
    if (code == CLI_OK) {
        printf("\n%s whole record%s, %llu damaged\n",
               term_count(whole, sizeof(whole), stats.records),
               stats.records == 1 ? "" : "s", (unsigned long long)stats.errors);
        print_ledger(ledger);
        code = stats.errors > 0 ? CLI_FAILED : CLI_OK;
    }
    fclose(ledger);
    unlink(path);
    return code;
}
