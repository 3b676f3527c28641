/*
 * probe.c - see probe.h. Photos and sounds are known by how their bytes begin.
 */
#include "probe.h"
#include "cli.h"
#include "data_file.h"
#include "headrace/engine.h"

#include <string.h>

static bool begins(const char *data, int64_t bytes, const char *with, size_t length)
{
    return bytes >= (int64_t)length && memcmp(data, with, length) == 0;
}

static bool is_riff(const char *data, int64_t bytes, const char *kind)
{
    return bytes >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, kind, 4) == 0;
}

static bool is_photo(const char *data, int64_t bytes)
{
    return begins(data, bytes, "\xff\xd8\xff", 3) ||
           begins(data, bytes, "\x89PNG\r\n\x1a\n", 8) || is_riff(data, bytes, "WEBP");
}

/* MP3 without tags: a frame of layer III, of MPEG 1, 2 or 2.5. */
static bool is_mp3(const char *data, int64_t bytes)
{
    return bytes >= 2 && data[0] == '\xff' &&
           strchr("\xfa\xfb\xf2\xf3\xe2\xe3", data[1]) && data[1] != '\0';
}

static bool is_sound(const char *data, int64_t bytes)
{
    return is_riff(data, bytes, "WAVE") || begins(data, bytes, "fLaC", 4) ||
           begins(data, bytes, "OggS", 4) || begins(data, bytes, "ID3", 3) ||
           is_mp3(data, bytes);
}

/* The first photo and the first sound among the byte strings of a record. */
static void look_at_record(const struct hr_batch *batch, struct probe *probe)
{
    struct hr_field_view view;

    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        const char *data;
        int64_t bytes;

        if (hr_batch_field(batch, i, &view) != HR_OK || view.dtype != HR_DTYPE_NONE ||
            view.levels > 1 || view.text)
            continue;
        data = (const char *)view.data + view.offsets[0];
        bytes = view.offsets[1] - view.offsets[0];
        if (probe->photo[0] == '\0' && is_photo(data, bytes))
            snprintf(probe->photo, sizeof(probe->photo), "%s", view.name);
        if (probe->sound[0] == '\0' && is_sound(data, bytes))
            snprintf(probe->sound, sizeof(probe->sound), "%s", view.name);
    }
}

static void look_at_fields(const struct hr_graph *graph, struct probe *probe)
{
    struct hr_field_info field;
    size_t used = 0;

    for (size_t i = 0; hr_graph_field_info(graph, 0, i, &field) == HR_OK; i++) {
        const char *type = field.dtype != HR_DTYPE_NONE ? hr_dtype_name(field.dtype)
                           : field.text                 ? "text"
                                                        : "bytes";

        if (used < sizeof(probe->fields))
            used += (size_t)snprintf(probe->fields + used, sizeof(probe->fields) - used,
                                     "%s%s %s", i > 0 ? ", " : "", field.name, type);
        if (field.dtype == HR_DTYPE_NONE)
            continue;
        probe->ragged |= field.ragged;
        for (int d = 0; d < field.ndim; d++)
            probe->ragged |= field.dims[d] < 0;
    }
}

int probe_file(const char *op, const char *path, struct probe *ret_probe)
{
    struct hr_iter_options options;
    struct hr_graph *graph = NULL;
    struct hr_iter *iter = NULL;
    struct hr_batch *batch = NULL;
    struct hr_error error = {0};
    int code = data_file_open(op, path, NULL, &graph);

    *ret_probe = (struct probe){.ragged = false};
    if (code != CLI_OK)
        return code;
    look_at_fields(graph, ret_probe);
    hr_iter_options_init(&options);
    options.records_max = 1;
    options.threads = 1;
    options.on_error = HR_ON_ERROR_SKIP;
    if (hr_iter_open(graph, &options, &iter, &error) == HR_OK &&
        hr_iter_next(iter, &batch, &error) == HR_OK)
        look_at_record(batch, ret_probe);
    hr_batch_unref(batch);
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return CLI_OK;
}
