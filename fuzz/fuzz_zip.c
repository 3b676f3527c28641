/*
 * fuzz/fuzz_zip.c - any bytes as a ZIP file: refused with a message, or all members are
 * inside the file, and are unpacked or refused.
 */
#include "core/alloc.h"
#include "store/store_memory.h"
#include "store/zip.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void unpack(struct hr_window *window, const struct hr_zip_member *member)
{
    struct hr_error error = {0};
    void *to;

    if (member->at > window->object->bytes ||
        member->bytes > window->object->bytes - member->at || member->name[0] == '\0')
        abort();
    if (member->unpacked > 1 << 20)
        return;
    to = hr__malloc((size_t)member->unpacked + 1);
    if (to != NULL && hr__zip_unpack(window, member, to, &error) != HR_OK &&
        error.message[0] == '\0')
        abort();
    hr__free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char uri[] = "mem://fuzz.npz";
    static struct hr_window window;
    struct hr_zip zip = {0};
    struct hr_error error = {0};

    if (hr__memory_put(uri, data, bytes, NULL) != HR_OK)
        return 0;
    if (hr__window_open(&window, uri, &error) == HR_OK &&
        hr__zip_read(&window, &zip, &error) == HR_OK) {
        for (size_t i = 0; i < zip.count && i < 16; i++)
            unpack(&window, &zip.members[i]);
    } else if (error.message[0] == '\0') {
        abort();
    }
    hr__zip_finish(&zip);
    hr__window_finish(&window);
    window = (struct hr_window){0};
    return 0;
}
