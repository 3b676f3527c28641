/*
 * fuzz/fuzz_s3.c - any bytes as an answer of S3: refused with a message, or a list whose
 * keys are texts, or an error in one line.
 *
 * The first byte is the number of keys that are read, and the room for the error.
 */
#include <stdlib.h>
#include <string.h>

#include "store/s3_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static bool count_down(void *user, const char *key, size_t key_bytes, uint64_t bytes)
{
    int *left = user;

    (void)bytes;
    if (*left < 0 || key_bytes == 0 || strlen(key) != key_bytes)
        abort();
    return (*left)-- > 0;
}

static void read_list(const char *xml, size_t bytes, int keys)
{
    struct hr_error error = {0};
    struct hr_str next;
    enum hr_err err;

    hr__str_init(&next);
    err = hr__s3_parse_list(xml, bytes, count_down, &keys, &next, &error);
    if (err != HR_OK && (err == HR_ERR_MEMORY || error.message[0] == '\0'))
        abort();
    if (err == HR_OK && keys < 0 && next.length > 0)
        abort();
    hr__str_finish(&next);
}

static void read_error(const char *xml, size_t bytes, size_t room)
{
    char *text = malloc(room);

    if (text == NULL)
        abort();
    if (hr__s3_parse_error(xml, bytes, text, room))
        for (const char *at = text; *at != '\0'; at++)
            if ((unsigned char)*at < ' ' || *at == 0x7f)
                abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    read_list((const char *)data + 1, bytes - 1, data[0]);
    read_error((const char *)data + 1, bytes - 1, (size_t)data[0] + 1);
    return 0;
}
