/*
 * struct hr_iter_options from a dict, and the statistics of a run as dicts.
 */
#include "ext.h"

#include <string.h>

enum option_type {
    OPTION_U64,
    OPTION_I64,
    OPTION_INT,
    OPTION_DOUBLE,
    OPTION_BOOL,
    OPTION_TEXT,
    OPTION_VARIANT,
    OPTION_ON_ERROR,
    OPTION_EVEN,
};

static const struct option {
    const char *name;
    enum option_type type;
    size_t at;
} table[] = {
#define OPTION(name, type)                                                               \
    {                                                                                    \
#name, type, offsetof(struct hr_iter_options, name)                              \
    }
    OPTION(seed, OPTION_U64),
    OPTION(epochs, OPTION_I64),
    OPTION(epoch_first, OPTION_I64),
    OPTION(records_max, OPTION_I64),
    OPTION(threads, OPTION_INT),
    OPTION(variant, OPTION_VARIANT),
    OPTION(ordered, OPTION_BOOL),
    OPTION(fuse, OPTION_BOOL),
    OPTION(memory_bytes, OPTION_U64),
    OPTION(ahead_bytes, OPTION_U64),
    OPTION(on_error, OPTION_ON_ERROR),
    OPTION(errors_max, OPTION_I64),
    OPTION(ledger, OPTION_TEXT),
    OPTION(state, OPTION_TEXT),
    OPTION(timeout_ns, OPTION_U64),
    OPTION(trace, OPTION_BOOL),
    OPTION(rank, OPTION_I64),
    OPTION(world, OPTION_I64),
    OPTION(even, OPTION_EVEN),
    OPTION(plan, OPTION_TEXT),
    OPTION(plan_name, OPTION_TEXT),
    OPTION(demand, OPTION_DOUBLE),
    OPTION(service, OPTION_TEXT),
    OPTION(service_after, OPTION_TEXT),
    OPTION(service_job, OPTION_TEXT),
    OPTION(service_token_file, OPTION_TEXT),
    OPTION(service_tls_ca, OPTION_TEXT),
    OPTION(service_tls_name, OPTION_TEXT),
    OPTION(service_tls_cert, OPTION_TEXT),
    OPTION(service_tls_key, OPTION_TEXT),
    OPTION(service_compress, OPTION_TEXT),
    OPTION(service_consumer, OPTION_TEXT),
    OPTION(service_weight, OPTION_I64),
#undef OPTION
};

static const char *const variants[] = {"threads", "inline", NULL};
static const char *const on_errors[] = {"fail", "skip", "substitute", NULL};
static const char *const evens[] = {"none", "drop", "repeat", "pad", NULL};

/* The index of a word in a list; -1 with an exception set. */
static int choose(const char *name, PyObject *value, const char *const *words)
{
    const char *word = PyUnicode_AsUTF8AndSize(value, NULL);

    if (word == NULL)
        return -1;
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    PyErr_Format(PyExc_ValueError, "%s cannot be %R", name, value);
    return -1;
}

/* Sets an exception on failure; the caller checks PyErr_Occurred. */
static void store(const struct option *option, PyObject *value, void *to)
{
    long number;

    switch (option->type) {
    case OPTION_U64:
        *(uint64_t *)to = PyLong_AsUnsignedLongLong(value);
        break;
    case OPTION_I64:
        *(int64_t *)to = PyLong_AsLongLong(value);
        break;
    case OPTION_INT:
        number = PyLong_AsLong(value);
        *(int *)to = number > INT_MAX   ? INT_MAX
                     : number < INT_MIN ? INT_MIN
                                        : (int)number;
        break;
    case OPTION_DOUBLE:
        *(double *)to = PyFloat_AsDouble(value);
        break;
    case OPTION_BOOL:
        *(bool *)to = PyObject_IsTrue(value) > 0;
        break;
    case OPTION_TEXT:
        *(const char **)to =
            value != Py_None ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
        break;
    case OPTION_VARIANT:
        *(enum hr_variant *)to = (enum hr_variant)choose("variant", value, variants);
        break;
    case OPTION_ON_ERROR:
        *(enum hr_on_error *)to = (enum hr_on_error)choose("on_error", value, on_errors);
        break;
    case OPTION_EVEN:
        *(enum hr_even *)to = (enum hr_even)choose("even", value, evens);
        break;
    }
}

static const struct option *find(PyObject *key)
{
    const char *name = PyUnicode_AsUTF8AndSize(key, NULL);

    for (size_t i = 0; name != NULL && i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

PyObject *ext_options_read(struct ext_state *state, PyObject *dict,
                           struct hr_iter_options *ret_options)
{
    PyObject *copy, *key, *value;
    Py_ssize_t at = 0;

    if (!PyDict_Check(dict))
        return PyErr_SetString(PyExc_TypeError, "options is a dict"), NULL;
    copy = PyDict_Copy(dict);
    if (copy == NULL)
        return NULL;
    hr_iter_options_init(ret_options);
    while (PyDict_Next(copy, &at, &key, &value)) {
        const struct option *option = find(key);
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);

        if (option != NULL)
            store(option, value, (char *)ret_options + option->at);
        else if (name != NULL)
            ext_fail(state, HR_ERR_ARGUMENT, name, "there is no option %s", name);
        if (PyErr_Occurred() != NULL) {
            Py_DECREF(copy);
            return NULL;
        }
    }
    return copy;
}

PyObject *ext_iter_stats_dict(const struct hr_iter_stats *s)
{
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:d,s:d,s:d,s:K,s:K,s:K,s:L,s:L,s:L,s:i,s:i,s:"
        "i,"
        "s:i,s:i,s:I,s:d,s:s,s:s,s:s}",
        "records", (unsigned long long)s->records, "batches",
        (unsigned long long)s->batches, "bytes", (unsigned long long)s->bytes, "errors",
        (unsigned long long)s->errors, "substituted", (unsigned long long)s->substituted,
        "seconds", s->seconds, "first_batch_seconds", s->first_batch_seconds,
        "cpu_seconds", s->cpu_seconds, "worker_seconds", s->worker_seconds,
        "wait_seconds", s->wait_seconds, "blocked_seconds", s->blocked_seconds,
        "memory_bytes", (unsigned long long)s->memory_bytes, "memory_peak_bytes",
        (unsigned long long)s->memory_peak_bytes, "batches_ready",
        (unsigned long long)s->batches_ready, "epoch", (long long)s->epoch,
        "epoch_records", (long long)s->epoch_records, "epoch_done",
        (long long)s->epoch_done, "threads", s->threads, "threads_used", s->threads_used,
        "processes", s->processes, "processes_used", s->processes_used, "processes_alive",
        s->processes_alive, "thread_changes", s->thread_changes, "demand", s->demand,
        "threads_reason", s->threads_reason, "waits_for", s->waits_for, "cut", s->cut);
}

static PyObject *node_stats_dict(const struct hr_node_stats *s)
{
    return Py_BuildValue(
        "{s:s,s:s,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:"
        "z,s:"
        "K,s:K,s:K,s:K,s:s}",
        "node", s->node, "op", s->op, "records", (unsigned long long)s->records,
        "records_out", (unsigned long long)s->records_out, "errors",
        (unsigned long long)s->errors, "dropped", (unsigned long long)s->dropped,
        "bytes_in", (unsigned long long)s->bytes_in, "bytes_out",
        (unsigned long long)s->bytes_out, "bytes_read", (unsigned long long)s->bytes_read,
        "bytes_taken", (unsigned long long)s->bytes_taken, "bytes_updated",
        (unsigned long long)s->bytes_updated, "bytes_written",
        (unsigned long long)s->bytes_written, "seconds", s->seconds, "worker_seconds",
        s->worker_seconds, "ordered_seconds", s->ordered_seconds, "wait_seconds",
        s->wait_seconds, "record_ns", s->record_ns, "record_ns_variance",
        s->record_ns_variance, "byte_ns", s->byte_ns, "fused_into", s->fused_into,
        "kept_entries", (unsigned long long)s->kept_entries, "kept_bytes",
        (unsigned long long)s->kept_bytes, "kept_hits", (unsigned long long)s->kept_hits,
        "kept_misses", (unsigned long long)s->kept_misses, "note", s->note);
}

PyObject *ext_node_stats_list(const struct hr_iter *iter)
{
    PyObject *list = PyList_New(0);
    struct hr_iter_stats all;
    struct hr_node_stats stats;

    hr_iter_stats(iter, &all);
    for (size_t i = 0; list != NULL && i < all.node_count; i++) {
        PyObject *node;

        if (hr_iter_node_stats(iter, i, &stats) != HR_OK)
            break;
        node = node_stats_dict(&stats);
        if (node == NULL || PyList_Append(list, node) < 0)
            Py_CLEAR(list);
        Py_XDECREF(node);
    }
    return list;
}
