/*
 * headrace/arrow.h - Apache Arrow arrays of other libraries as a source, in place.
 *
 * Arrays come through Arrow's C data interface (struct ArrowArrayStream), whose structs
 * are declared by its users, not here. They are registered as code that a code.source
 * node names (headrace/code.h):
 *
 *     hr_arrow_create(&stream, NULL, 0, &arrow, &error);
 *     hr_arrow_code(arrow, &code);
 *     code.identity = "table 1";
 *     hr_graph_code(graph, "table", &code, &error);
 *     hr_arrow_unref(arrow);
 */
#ifndef HR_ARROW_H
#define HR_ARROW_H

#include "headrace/code.h"

HR_BEGIN_DECLS

struct hr_arrow;
struct ArrowArrayStream;

/*
 * Takes all record batches of a stream, which is released. Columns are numbers, bools,
 * text, byte strings, dictionaries of these two, and lists of numbers; none has a null.
 * With `rows`, which is copied, record i is row rows[i] of all batches, as if they were
 * one; NULL: row i. HR_ERR_UNSUPPORTED names the column that cannot be read; HR_ERR_RANGE
 * a row that does not exist; HR_ERR_IO: the stream's own error; HR_ERR_MEMORY.
 */
HR_API HR_CHECK enum hr_err
hr_arrow_create(struct ArrowArrayStream *stream, const int64_t *rows, size_t row_count,
                struct hr_arrow **ret_arrow, struct hr_error *reterr);

/* Drops the caller's reference; code keeps its own. NULL is allowed. Any thread: the
 * arrays are released by the one that drops the last reference. */
HR_API void hr_arrow_unref(struct hr_arrow *arrow);

/* How many records there are. */
HR_API uint64_t hr_arrow_count(const struct hr_arrow *arrow);

/* Code for a code.source whose output i is column i, whatever it is called there.
 * Numbers are converted to the declared dtype, int64 or float64 or as they are; others
 * are HR_ERR_TYPE. The caller sets `identity`. The code is thread-safe. Numbers and texts
 * are keys (struct hr_code). */
HR_API void hr_arrow_code(struct hr_arrow *arrow, struct hr_code *ret_code);

HR_END_DECLS

#endif
