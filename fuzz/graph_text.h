/*
 * fuzz/graph_text.h - texts that belong to a graph: the graph, and the text of an input
 * with the graph's fingerprint for "@", so that the checks after that of the fingerprint
 * are reached.
 */
#ifndef HR_FUZZ_GRAPH_TEXT_H
#define HR_FUZZ_GRAPH_TEXT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/str.h"
#include "headrace/engine.h"

/* The frozen graph of `yaml`, made when *kept is NULL. */
static inline struct hr_graph *fuzz_graph(struct hr_graph **kept, const char *yaml)
{
    if (*kept == NULL &&
        (hr_graph_parse(yaml, strlen(yaml), "fuzz.yaml", NULL, 0, kept, NULL) != HR_OK ||
         hr_graph_freeze(*kept, NULL) != HR_OK))
        abort();
    return *kept;
}

/* hr__str_finish() the text. */
static inline void
fuzz_text(struct hr_str *text, struct hr_graph *graph, const uint8_t *data, size_t bytes)
{
    char fingerprint[HR_FINGERPRINT_BYTES];

    if (hr_graph_fingerprint(graph, fingerprint) != HR_OK)
        abort();
    hr__str_init(text);
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '@')
            hr__str_add(text, fingerprint);
        else
            hr__str_add_bytes(text, (const char *)&data[i], 1);
    }
}

#endif
