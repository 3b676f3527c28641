/*
 * fuzz/replay.c - runs a fuzz target over the files of a folder, without libFuzzer: the
 * corpus as a test of `make check`. A target aborts when it finds something.
 */
#include "core/alloc.h"
#include "core/file.h"

#include <dirent.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t bytes_max);

/* Linked by targets with a mutator of their own; never called. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t bytes_max)
{
    (void)data;
    (void)bytes_max;
    return bytes;
}

static int replay(const char *folder, const char *name)
{
    char path[4096], *data;
    struct hr_error error = {0};
    size_t bytes;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (hr__file_read(path, 1 << 30, &data, &bytes, &error) != HR_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    fprintf(stderr, "%s\n", path); /* the last line names the input that aborts */
    (void)LLVMFuzzerTestOneInput((const uint8_t *)data, bytes);
    hr__free(data);
    return 0;
}

int main(int count, char **arguments)
{
    const struct dirent *entry;
    DIR *folder;
    int failed = 0, files = 0;

    (void)LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    folder = count == 2 ? opendir(arguments[1]) : NULL;
    if (folder == NULL) {
        fprintf(stderr, "usage: replay FOLDER\n");
        return 2;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        failed += replay(arguments[1], entry->d_name);
        files++;
    }
    closedir(folder);
    return failed > 0 || files == 0;
}
