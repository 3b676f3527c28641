/*
 * data_file.c - see data_file.h.
 */
#include "data_file.h"
#include "cli.h"
#include "out.h"

#include <stdlib.h>
#include <string.h>

/* Whether the first `length` bytes of a path end so; they are a name at least. */
static bool ends_in(const char *path, size_t length, const char *ending)
{
    size_t bytes = strlen(ending);

    return length > bytes && strncasecmp(path + length - bytes, ending, bytes) == 0;
}

/* The length of a path without the ending of a compressed file. */
static size_t unpacked_length(const char *path)
{
    static const char *const endings[] = {".gz", ".zst", ".zlib"};
    size_t length = strlen(path);

    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (ends_in(path, length, endings[i]))
            return length - strlen(endings[i]);
    return length;
}

const char *data_file_source(const char *path)
{
    static const char *const endings[][2] = {
        {".records",  "source.records" },
        {".tar",      "source.tar"     },
        {".tgz",      "source.tar"     },
        {".tfrecord", "source.tfrecord"},
        {".txt",      "source.lines"   },
        {".jsonl",    "source.jsonl"   },
        {".csv",      "source.csv"     },
        {".arrow",    "source.arrow"   },
        {".parquet",  "source.parquet" },
        {".npy",      "source.npy"     },
        {".npz",      "source.npy"     },
        {".mdb",      "source.lmdb"    },
        {".h5",       "source.hdf5"    },
        {".hdf5",     "source.hdf5"    },
    };
    size_t length = unpacked_length(path);

    if (strstr(path, ".tfrecord-") != NULL &&
        strchr(strstr(path, ".tfrecord-"), '/') == NULL)
        return "source.tfrecord"; /* train.tfrecord-00000-of-00008 */
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (ends_in(path, length, endings[i][0]))
            return endings[i][1];
    return NULL;
}

/* {"path": PATH, "index": INDEX}; free() it. NULL when out of memory. */
static char *params_of(const char *path, const char *index)
{
    char *text = NULL;
    size_t bytes;
    struct json json = {.out = open_memstream(&text, &bytes)};

    if (json.out == NULL)
        return NULL;
    json_open(&json, NULL, '{');
    json_text(&json, "path", path);
    if (index != NULL)
        json_text(&json, "index", index);
    json_close(&json, '}');
    fclose(json.out);
    return text;
}

int data_file_open(const char *op, const char *path, const char *index,
                   struct hr_graph **ret_graph)
{
    struct hr_graph *graph = hr_graph_create();
    char *params = params_of(path, index);
    struct hr_error error = {0};
    struct hr_node node;
    int code = CLI_OK;

    if (graph == NULL || params == NULL)
        code = cli_failed("out of memory");
    else if (hr_graph_add(graph, op, NULL, NULL, 0, params, &node, &error) != HR_OK ||
             hr_graph_freeze(graph, &error) != HR_OK)
        code = cli_library(&error);
    free(params);
    if (code == CLI_OK)
        *ret_graph = graph;
    else
        hr_graph_unref(graph);
    return code;
}
