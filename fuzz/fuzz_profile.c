/*
 * fuzz/fuzz_profile.c - any text as a profile: refused with a message, or printed, read
 * back equal, merged with itself, and read back again.
 */
#include "graph/profile.h"

#include <stdlib.h>
#include <string.h>

#include "core/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(struct hr_profile *profile)
{
    struct hr_profile read;
    struct hr_str text;

    hr__str_init(&text);
    hr__profile_print(profile, &text);
    if (!hr__str_ok(&text) || hr__profile_parse(hr__str_text(&text), text.length,
                                                "again.json", &read, NULL) != HR_OK)
        abort();
    if (!hr__profile_equal(profile, &read) ||
        hr__profile_merge(profile, &read, NULL) != HR_OK)
        abort();
    hr__profile_finish(&read);
    hr__str_clear(&text);
    hr__profile_print(profile, &text);
    if (!hr__str_ok(&text) || hr__profile_parse(hr__str_text(&text), text.length,
                                                "merged.json", &read, NULL) != HR_OK)
        abort();
    hr__profile_finish(&read);
    hr__str_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_error error = {0};
    struct hr_profile profile;

    if (hr__profile_parse((const char *)data, bytes, "fuzz.json", &profile, &error) !=
        HR_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    check(&profile);
    hr__profile_finish(&profile);
    return 0;
}
