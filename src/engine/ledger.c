/*
 * engine/ledger.c - the ledger of bad records: one JSON object a line, in the order of
 * the records, appended. A line that cannot be written is not worth a run: the counter
 * still tells.
 */
#include "engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"

enum hr_err hr__ledger_open(struct hr_engine *engine, struct hr_error *reterr)
{
    const char *path = engine->options.ledger;

    engine->options.ledger = NULL; /* the caller's memory */
    if (path == NULL)
        return HR_OK;
    if (!hr__fault(HR_FAULT_OPEN))
        engine->ledger_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    else
        errno = EACCES;
    if (engine->ledger_fd < 0)
        return hr__fail_errno(reterr, HR_ERR_IO, errno,
                              "cannot write the list of bad records %s", path);
    return HR_OK;
}

static void add_text(struct hr_str *line, const char *key, const char *text)
{
    hr__str_addf(line, ",\"%s\":", key);
    hr__str_add_json(line, text, strlen(text));
}

void hr__ledger_add(struct hr_engine *engine, const struct hr_bad *bad,
                    const char *outcome)
{
    struct hr_str line;
    const char *text;
    size_t left;

    if (engine->ledger_fd < 0)
        return;
    hr__str_init(&line);
    hr__str_add(&line, "{");
    hr__record_json(&bad->id, &line);
    hr__str_addf(&line, ",\"offset\":%lld", (long long)bad->error.offset);
    add_text(&line, "outcome", outcome);
    add_text(&line, "node", bad->error.node);
    add_text(&line, "op", bad->error.op);
    add_text(&line, "file", bad->error.file);
    add_text(&line, "error", hr_err_name(bad->error.code));
    add_text(&line, "message", bad->error.message);
    if (bad->detail != NULL)
        add_text(&line, "detail", bad->detail);
    hr__str_add(&line, "}\n");
    text = hr__str_text(&line);
    left = hr__str_ok(&line) ? strlen(text) : 0;
    while (left > 0 && !hr__fault(HR_FAULT_WRITE)) {
        ssize_t wrote = write(engine->ledger_fd, text, left);

        if (wrote <= 0)
            break;
        text += wrote;
        left -= (size_t)wrote;
    }
    hr__str_finish(&line);
}
