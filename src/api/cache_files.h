/*
 * api/cache_files.h - caches that keep images as files: image.encode, flow.cache and
 * image.decode, in this order.
 */
#ifndef HR_API_CACHE_FILES_H
#define HR_API_CACHE_FILES_H

#include "graph/graph.h"
#include "opt/cache_point.h"

/* What the records after each node of the graph, which is frozen, would take as JPEGs of
 * this quality, and what encoding and decoding them costs: of some records that are made
 * for it. `ret_files` has room for one per node; those of nodes without such an image, or
 * whose records could not be made in time, are zeros. */
HR_CHECK enum hr_err
hr__cache_files(const struct hr_graph *graph, int quality,
                struct hr_cache_file *ret_files, struct hr_error *reterr);

/* The graph with image.encode, a flow.cache and image.decode after the node, whose record
 * has such an image. Takes ownership of the cache's parameters. Not frozen. */
HR_CHECK enum hr_err
hr__cache_insert_file(struct hr_graph *graph, uint32_t node, int quality,
                      struct hr_doc *given, struct hr_graph **ret_graph,
                      struct hr_error *reterr);

#endif
