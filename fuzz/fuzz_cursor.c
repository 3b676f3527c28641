/*
 * fuzz/fuzz_cursor.c - any text as the checkpoint of a client: refused with a message, or
 * resumed, saved and merged, and the saved one is read again as the same.
 */
#include "svc/cursor.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Opens a cursor at the text; false if it is refused. */
static bool open_at(const char *text, struct hr_cursor *cursor)
{
    struct hr_cursor_options options = {.window = 100, .budget = 1000, .pieces = 8};
    struct hr_cursor_saved saved = {0};
    struct hr_error error = {0};

    if (hr__cursor_parse(text, &options, &saved, &error) != HR_OK) {
        if (error.message[0] == '\0')
            abort();
        return false;
    }
    if (hr__cursor_init(cursor, &options, &error) != HR_OK)
        abort();
    hr__cursor_resume(cursor, &saved);
    return true;
}

static void check(struct hr_cursor *cursor)
{
    uint64_t position = hr__cursor_position(cursor), local;
    struct hr_cursor again;
    struct hr_taken taken;
    struct hr_str text, merged;
    const char *texts[1];
    bool kept;

    hr__str_init(&text);
    hr__str_init(&merged);
    if (hr__cursor_save(cursor, &text, NULL) != HR_OK)
        abort();
    texts[0] = hr__str_text(&text);
    (void)!hr__cursor_merge(texts, 1, &merged, NULL);
    if (!open_at(texts[0], &again) || hr__cursor_position(&again) != position)
        abort();
    if (hr__share_owns(&again.options.share, position, 1, &local)) {
        if (hr__cursor_accept(&again, position, 1, 1, false, &kept, &kept, NULL) !=
                HR_OK ||
            !kept || !hr__cursor_take(&again, 1, &taken) || taken.position != position)
            abort();
    }
    hr__cursor_finish(&again);
    hr__str_finish(&text);
    hr__str_finish(&merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = hr__strndup((const char *)data, bytes);
    struct hr_cursor cursor;

    if (text == NULL)
        return 0;
    if (open_at(text, &cursor)) {
        check(&cursor);
        hr__cursor_finish(&cursor);
    }
    hr__free(text);
    return 0;
}
