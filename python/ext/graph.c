/*
 * Graphs: building, reading, freezing and describing them.
 *
 * A graph that is not frozen must be used by one thread at a time, and freezing releases
 * the interpreter's lock; so each graph has a lock, which readers take, too. The
 * parameters that a file declares never change.
 */
#include "ext.h"

#include <string.h>

#define INPUTS_MAX 8

static struct ext_graph *of(PyObject *self)
{
    return (struct ext_graph *)self;
}

int ext_graph_lock(struct ext_graph *graph)
{
    unsigned long me = PyThread_get_thread_ident();

    if (atomic_load_explicit(&graph->owner, memory_order_relaxed) == me) {
        ext_fail(graph->registry->state, HR_ERR_STATE, NULL,
                 "the graph is in use further up in this thread");
        return -1;
    }
    if (!PyThread_acquire_lock(graph->lock, NOWAIT_LOCK)) {
        if (graph->forks != ext_forks()) {
            ext_fail(graph->registry->state, HR_ERR_STATE, NULL,
                     "the graph was in use when this process was forked; make one in the "
                     "process that uses it");
            return -1;
        }
        Py_BEGIN_ALLOW_THREADS;
        PyThread_acquire_lock(graph->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS;
    }
    atomic_store_explicit(&graph->owner, me, memory_order_relaxed);
    return 0;
}

void ext_graph_unlock(struct ext_graph *graph)
{
    atomic_store_explicit(&graph->owner, 0, memory_order_relaxed);
    PyThread_release_lock(graph->lock);
}

/* ---- life ---- */

/* Takes over `handle`, which may be NULL for out of memory. `origin`: the graph whose
 * code it uses, or NULL. */
static PyObject *create(PyTypeObject *type, struct hr_graph *handle, PyObject *origin)
{
    struct ext_graph *graph = NULL;

    if (handle == NULL)
        return PyErr_NoMemory();
    graph = (struct ext_graph *)PyType_GenericAlloc(type, 0);
    if (graph == NULL) {
        hr_graph_unref(handle);
        return NULL;
    }
    graph->graph = handle;
    graph->forks = ext_forks();
    graph->registry = origin != NULL ? ext_registry_ref(of(origin)->registry)
                                     : ext_registry_create(PyType_GetModuleState(type));
    graph->origin = Py_XNewRef(origin);
    graph->lock = PyThread_allocate_lock();
    ext_count(EXT_GRAPH, 1);
    if (graph->lock == NULL || graph->registry == NULL) {
        Py_DECREF(graph);
        return PyErr_NoMemory();
    }
    return (PyObject *)graph;
}

PyObject *ext_graph_reordered(PyObject *origin, struct hr_graph *handle)
{
    return create(Py_TYPE(origin), handle, origin);
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (!PyArg_ParseTuple(args, ":Graph"))
        return NULL;
    if (kwargs != NULL && PyDict_Size(kwargs) > 0)
        return PyErr_SetString(PyExc_TypeError, "Graph takes no arguments"), NULL;
    return create(type, hr_graph_create(), NULL);
}

static int graph_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(of(self)->origin); /* which owns the code, if there is one */
    if (of(self)->host != NULL && ext_host_visit(of(self)->host, visit, arg) != 0)
        return -1;
    return of(self)->registry != NULL && of(self)->origin == NULL
               ? ext_registry_visit(of(self)->registry, visit, arg)
               : 0;
}

static int graph_clear(PyObject *self)
{
    if (of(self)->registry != NULL && of(self)->origin == NULL)
        ext_registry_clear(of(self)->registry);
    ext_host_clear(of(self));
    return 0;
}

static void graph_dealloc(PyObject *self)
{
    struct ext_graph *graph = of(self);
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    if (graph->weak != NULL)
        PyObject_ClearWeakRefs(self);
    graph_clear(self);
    hr_graph_unref(graph->graph);
    ext_registry_unref(graph->registry);
    Py_XDECREF(graph->origin);
    if (graph->lock != NULL)
        PyThread_free_lock(graph->lock);
    ext_count(EXT_GRAPH, -1);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* ---- reading ---- */

/* A dict of str to str as the library's parameters; PyMem_Free() it. NULL with an
 * exception set. The dict keeps owning the strings. */
static struct hr_graph_param *read_params(PyObject *dict, size_t *ret_count)
{
    struct hr_graph_param *params;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    size_t count = 0;

    if (!PyDict_Check(dict))
        return PyErr_SetString(PyExc_TypeError, "params is a dict of str"), NULL;
    params = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof *params);
    if (params == NULL)
        return (struct hr_graph_param *)PyErr_NoMemory();
    while (PyDict_Next(dict, &at, &key, &value)) {
        params[count].name = PyUnicode_AsUTF8AndSize(key, NULL);
        params[count].value =
            params[count].name != NULL ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
        if (params[count].value == NULL) {
            PyMem_Free(params);
            return NULL;
        }
        count++;
    }
    *ret_count = count;
    return params;
}

/* A graph from a file, or from `text` if that is not NULL. */
static PyObject *read_graph(PyTypeObject *type, const char *name, const char *text,
                            Py_ssize_t bytes, PyObject *dict)
{
    struct hr_error error = {0};
    struct hr_graph *graph = NULL;
    size_t count = 0;
    enum hr_err code;
    /* The dict may change while the interpreter's lock is released: keep its strings. */
    PyObject *copy = PyDict_Check(dict) ? PyDict_Copy(dict) : Py_NewRef(dict);
    struct hr_graph_param *params = copy != NULL ? read_params(copy, &count) : NULL;

    if (params == NULL) {
        Py_XDECREF(copy);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    code = text != NULL
               ? hr_graph_parse(text, (size_t)bytes, name, params, count, &graph, &error)
               : hr_graph_load(name, params, count, &graph, &error);
    Py_END_ALLOW_THREADS;
    PyMem_Free(params);
    Py_DECREF(copy);
    if (code != HR_OK)
        return ext_raise(PyType_GetModuleState(type), &error, NULL, NULL);
    return create(type, graph, NULL);
}

static PyObject *graph_load(PyObject *type, PyObject *args)
{
    PyObject *path, *params, *graph;

    if (!PyArg_ParseTuple(args, "O&O:load", PyUnicode_FSConverter, &path, &params))
        return NULL;
    graph = read_graph((PyTypeObject *)type, PyBytes_AsString(path), NULL, 0, params);
    Py_DECREF(path);
    return graph;
}

static PyObject *graph_parse(PyObject *type, PyObject *args)
{
    const char *text, *name;
    Py_ssize_t bytes;
    PyObject *params;

    if (!PyArg_ParseTuple(args, "s#sO:parse", &text, &bytes, &name, &params))
        return NULL;
    return read_graph((PyTypeObject *)type, name, text, bytes, params);
}

/* ---- building ---- */

/* -1 with an exception set. */
static Py_ssize_t read_inputs(PyObject *sequence, struct hr_node *inputs)
{
    PyObject *items = PySequence_Tuple(sequence);
    Py_ssize_t count = items != NULL ? PyTuple_Size(items) : -1;

    if (count > INPUTS_MAX) {
        PyErr_Format(PyExc_ValueError, "a node has at most %d inputs", INPUTS_MAX);
        count = -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long id = PyLong_AsUnsignedLong(PyTuple_GetItem(items, i));

        if (PyErr_Occurred() != NULL)
            count = -1;
        else
            inputs[i].id = id > UINT32_MAX ? UINT32_MAX : (uint32_t)id;
    }
    Py_XDECREF(items);
    return count;
}

static PyObject *graph_add(PyObject *self, PyObject *args)
{
    struct hr_node inputs[INPUTS_MAX], node = {0};
    struct hr_error error = {0};
    const char *op, *name, *params;
    PyObject *sequence;
    Py_ssize_t count;
    enum hr_err code;

    if (!PyArg_ParseTuple(args, "szOz:add", &op, &name, &sequence, &params) ||
        (count = read_inputs(sequence, inputs)) < 0 || ext_graph_lock(of(self)) < 0)
        return NULL;
    code = hr_graph_add(of(self)->graph, op, name, inputs, (size_t)count, params, &node,
                        &error);
    ext_graph_unlock(of(self));
    if (code != HR_OK)
        return ext_raise(of(self)->registry->state, &error, NULL, NULL);
    return PyLong_FromUnsignedLong(node.id);
}

static PyObject *graph_code(PyObject *self, PyObject *args)
{
    struct ext_graph *graph = of(self);
    const char *name, *identity, *kind, *stays = NULL;
    struct hr_error error = {0};
    struct hr_code code;
    PyObject *function;
    enum hr_err result;

    if (!PyArg_ParseTuple(args, "sssO|z:code", &name, &identity, &kind, &function,
                          &stays))
        return NULL;
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "%R cannot be called", function);
    if (ext_graph_lock(graph) < 0)
        return NULL;
    if (ext_code_create(graph->registry, kind, function, &code) < 0) {
        ext_graph_unlock(graph);
        return NULL;
    }
    code.identity = identity;
    code.stays = stays;
    result = hr_graph_code(graph->graph, name, &code, &error);
    ext_graph_unlock(graph);
    if (result == HR_OK)
        Py_RETURN_NONE;
    code.release(code.user); /* the function stays with the graph, but is never called */
    return ext_raise(graph->registry->state, &error, NULL, NULL);
}

static PyObject *graph_host(PyObject *self, PyObject *args)
{
    PyObject *start, *kill, *ended;

    if (!PyArg_ParseTuple(args, "OOO:host", &start, &kill, &ended))
        return NULL;
    if (!PyCallable_Check(start) || !PyCallable_Check(kill) || !PyCallable_Check(ended))
        return PyErr_SetString(PyExc_TypeError, "start, kill and ended are functions"),
               NULL;
    if (ext_host_set(of(self), start, kill, ended) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *graph_freeze(PyObject *self, PyObject *unused)
{
    struct hr_error error = {0};
    enum hr_err code;

    (void)unused;
    if (ext_graph_lock(of(self)) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_graph_freeze(of(self)->graph, &error);
    Py_END_ALLOW_THREADS;
    ext_graph_unlock(of(self));
    if (code != HR_OK)
        return ext_raise_failure(of(self)->registry, &error, NULL), NULL;
    Py_RETURN_NONE;
}

/* ---- telling ---- */

PyObject *ext_take_text(char *text)
{
    PyObject *string = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

    hr_free(text);
    return string;
}

static PyObject *graph_fingerprint(PyObject *self, PyObject *unused)
{
    char text[HR_FINGERPRINT_BYTES];
    enum hr_err code;

    (void)unused;
    if (ext_graph_lock(of(self)) < 0)
        return NULL;
    code = hr_graph_fingerprint(of(self)->graph, text);
    ext_graph_unlock(of(self));
    if (code != HR_OK)
        return ext_fail(of(self)->registry->state, HR_ERR_STATE, NULL,
                        "a graph has a fingerprint once it is frozen");
    return PyUnicode_FromString(text);
}

static PyObject *graph_print(PyObject *self, PyObject *args)
{
    struct hr_error error = {0};
    enum hr_graph_format format;
    const char *name;
    char *text = NULL;
    enum hr_err code;

    if (!PyArg_ParseTuple(args, "s:print", &name))
        return NULL;
    format = strcmp(name, "json") == 0 ? HR_GRAPH_JSON : HR_GRAPH_YAML;
    if (format == HR_GRAPH_YAML && strcmp(name, "yaml") != 0)
        return PyErr_SetString(PyExc_ValueError, "format is \"yaml\" or \"json\""), NULL;
    if (ext_graph_lock(of(self)) < 0)
        return NULL;
    code = hr_graph_print(of(self)->graph, format, &text, &error);
    ext_graph_unlock(of(self));
    return code == HR_OK ? ext_take_text(text)
                         : ext_raise(of(self)->registry->state, &error, NULL, NULL);
}

typedef enum hr_err plan_fn(struct hr_graph *graph, const struct hr_iter_options *options,
                            bool json, char **ret_text, struct hr_error *reterr);

/* (options, json) -> the text that `tell` prints about the plan. */
static PyObject *tell_plan(PyObject *self, PyObject *args, plan_fn *tell)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    PyObject *dict, *copy;
    char *text = NULL;
    enum hr_err code;
    int json;

    if (!PyArg_ParseTuple(args, "Op", &dict, &json))
        return NULL;
    copy = ext_options_read(of(self)->registry->state, dict, &options);
    if (copy == NULL)
        return NULL;
    if (ext_graph_lock(of(self)) < 0) {
        Py_DECREF(copy);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    code = tell(of(self)->graph, &options, json != 0, &text, &error);
    Py_END_ALLOW_THREADS;
    ext_graph_unlock(of(self));
    Py_DECREF(copy);
    return code == HR_OK ? ext_take_text(text)
                         : ext_raise(of(self)->registry->state, &error, NULL, NULL);
}

static PyObject *graph_explain(PyObject *self, PyObject *args)
{
    return tell_plan(self, args, hr_graph_explain);
}

static enum hr_err
print_plan(struct hr_graph *graph, const struct hr_iter_options *options, bool json,
           char **ret_text, struct hr_error *reterr)
{
    return hr_graph_plan(graph, options, json ? HR_GRAPH_JSON : HR_GRAPH_YAML, ret_text,
                         reterr);
}

static PyObject *graph_plan(PyObject *self, PyObject *args)
{
    return tell_plan(self, args, print_plan);
}

static PyObject *graph_record_count(PyObject *self, PyObject *unused)
{
    int64_t count;

    (void)unused;
    if (ext_graph_lock(of(self)) < 0)
        return NULL;
    count = hr_graph_record_count(of(self)->graph);
    ext_graph_unlock(of(self));
    return PyLong_FromLongLong(count);
}

static PyObject *graph_epoch_size(PyObject *self, PyObject *args)
{
    struct ext_state *state = of(self)->registry->state;
    struct hr_iter_options options;
    struct hr_epoch_size size;
    struct hr_error error = {0};
    PyObject *dict, *keep;
    enum hr_err code;

    if (!PyArg_ParseTuple(args, "O!:epoch_size", &PyDict_Type, &dict))
        return NULL;
    keep = ext_options_read(state, dict, &options);
    if (keep == NULL)
        return NULL;
    if (ext_graph_lock(of(self)) < 0) {
        Py_DECREF(keep);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    code = hr_graph_epoch_size(of(self)->graph, &options, &size, &error);
    Py_END_ALLOW_THREADS;
    ext_graph_unlock(of(self));
    Py_DECREF(keep);
    if (code != HR_OK)
        return ext_raise(state, &error, NULL, NULL);
    return Py_BuildValue(
        "{s:L,s:L,s:L,s:N,s:N}", "records", (long long)size.records, "batches",
        (long long)size.batches, "batches_least", (long long)size.batches_least, "shards",
        PyBool_FromLong(size.shards), "ranks_differ", PyBool_FromLong(size.ranks_differ));
}

/* ---- lists ---- */

/* Appends and steals `item`; NULL if either is NULL or appending fails. */
static PyObject *append(PyObject *list, PyObject *item)
{
    if (list == NULL || item == NULL || PyList_Append(list, item) < 0)
        Py_CLEAR(list);
    Py_XDECREF(item);
    return list;
}

static PyObject *
node_dict(struct ext_graph *graph, size_t at, const struct hr_node_info *info)
{
    PyObject *inputs = PyList_New(0);
    struct hr_error error = {0};
    char *params = NULL;

    for (size_t i = 0; i < info->input_count; i++)
        inputs = append(inputs, PyLong_FromUnsignedLong(info->inputs[i].id));
    if (inputs == NULL)
        return NULL;
    if (hr_graph_node_params(graph->graph, at, &params, &error) != HR_OK) {
        Py_DECREF(inputs);
        return ext_raise(graph->registry->state, &error, NULL, NULL);
    }
    return Py_BuildValue("{s:s,s:s,s:N,s:N}", "name", info->name, "op", info->op,
                         "inputs", inputs, "params", ext_take_text(params));
}

static PyObject *graph_nodes(PyObject *self, PyObject *unused)
{
    struct hr_node_info info;
    PyObject *list;

    (void)unused;
    if (ext_graph_lock(of(self)) < 0)
        return NULL;
    list = PyList_New(0);
    for (size_t i = 0;
         list != NULL && hr_graph_node_info(of(self)->graph, i, &info) == HR_OK; i++)
        list = append(list, node_dict(of(self), i, &info));
    ext_graph_unlock(of(self));
    return list;
}

static PyObject *field_dict(const struct hr_field_info *info)
{
    PyObject *shape = PyList_New(0), *dims = PyList_New(0), *classes = PyList_New(0);
    const char *dtype = info->dtype != HR_DTYPE_NONE ? hr_dtype_name(info->dtype) : NULL;

    for (int i = 0; i < info->ndim; i++) {
        shape = append(shape, PyLong_FromLongLong(info->dims[i]));
        dims = append(dims, PyUnicode_FromString(
                                info->dim_names[i] != NULL ? info->dim_names[i] : ""));
    }
    for (size_t i = 0; i < info->class_count; i++)
        classes =
            append(classes, PyUnicode_DecodeUTF8(info->classes[i],
                                                 (Py_ssize_t)strlen(info->classes[i]),
                                                 "surrogateescape"));
    if (shape == NULL || dims == NULL || classes == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(dims);
        Py_XDECREF(classes);
        return NULL;
    }
    return Py_BuildValue("{s:s,s:z,s:O,s:O,s:N,s:N,s:N}", "name", info->name, "dtype",
                         dtype, "ragged", info->ragged ? Py_True : Py_False, "text",
                         info->text ? Py_True : Py_False, "shape", shape, "dims", dims,
                         "classes", classes);
}

/* The graph is locked. */
static PyObject *field_list(struct ext_graph *self, Py_ssize_t node)
{
    struct hr_graph *graph = self->graph;
    struct hr_field_info info;
    PyObject *list;

    if (node < 0 || (size_t)node >= hr_graph_node_count(graph))
        return ext_fail(self->registry->state, HR_ERR_RANGE, NULL,
                        "there is no node %zd in a graph of %zu nodes", node,
                        hr_graph_node_count(graph));
    list = PyList_New(0);
    for (size_t i = 0;
         list != NULL && hr_graph_field_info(graph, (size_t)node, i, &info) == HR_OK; i++)
        list = append(list, field_dict(&info));
    return list;
}

static PyObject *graph_fields(PyObject *self, PyObject *args)
{
    Py_ssize_t node;
    PyObject *list;

    if (!PyArg_ParseTuple(args, "n:fields", &node) || ext_graph_lock(of(self)) < 0)
        return NULL;
    list = field_list(of(self), node);
    ext_graph_unlock(of(self));
    return list;
}

static PyObject *graph_params(PyObject *self, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    struct hr_graph_param_info info;

    (void)unused;
    for (size_t i = 0;
         list != NULL && hr_graph_param_info(of(self)->graph, i, &info) == HR_OK; i++)
        list = append(list, Py_BuildValue("{s:s,s:s,s:z,s:z,s:O}", "name", info.name,
                                          "type", info.type, "fallback", info.fallback,
                                          "help", info.help, "required",
                                          info.required ? Py_True : Py_False));
    return list;
}

/* ---- the type ---- */

static PyMethodDef graph_methods[] = {
    {"load",         graph_load,             METH_VARARGS | METH_CLASS,
     "load(path, params) -> Graph\n--\n\nRead a graph file (YAML or JSON)."             },
    {"parse",        graph_parse,            METH_VARARGS | METH_CLASS,
     "parse(text, name, params) -> Graph\n--\n\n"
     "Read a graph from text; `name` stands for the file in messages."                  },
    {"add",          graph_add,              METH_VARARGS,
     "add(op, name, inputs, params) -> int\n--\n\n"
     "Append an op; params is a YAML or JSON map or None. Gives the node's number."     },
    {"code",         graph_code,             METH_VARARGS,
     "code(name, identity, kind, function)\n--\n\n"
     "Give the graph Python code under a name.\n\n"
     "kind is \"source\" (function(index)), \"map\", \"filter\" or \"expand\"\n"
     "(function(*inputs)). Inputs are int, float or bool (0-d tensors), bytes, or\n"
     "numpy arrays that may be kept and written to. Outputs may be int, float, bool, "
     "bytes,\n"
     "str, anything with the buffer protocol or DLPack, or what numpy.asarray takes;\n"
     "a tuple when there are several. An input that is returned as it was is passed on "
     "uncopied."                                                                        },
    {"host",         graph_host,             METH_VARARGS,
     "host(start, kill)\n--\n\n"
     "How to start a worker process: start(fd) -> id and kill(id)."                     },
    {"freeze",       graph_freeze,           METH_NOARGS,
     "freeze()\n--\n\nCheck everything and open the sources; the graph is a value then."},
    {"fingerprint",  graph_fingerprint,      METH_NOARGS,
     "fingerprint() -> str\n--\n\n32 hex digits, equal for graphs with equal records."  },
    {"print",        graph_print,            METH_VARARGS,
     "print(format) -> str\n--\n\nThe graph as \"yaml\" or \"json\"."                   },
    {"nodes",        graph_nodes,            METH_NOARGS,
     "nodes() -> list[NodeInfo]\n--\n\nThe nodes in order of adding."                   },
    {"fields",       graph_fields,           METH_VARARGS,
     "fields(node) -> list[FieldInfo]\n--\n\nA node's fields, once frozen."             },
    {"params",       graph_params,           METH_NOARGS,
     "params() -> list[dict]\n--\n\nParameters that the graph's file declares."         },
    {"record_count", graph_record_count,     METH_NOARGS,
     "record_count() -> int\n--\n\nRecords in an epoch; -1 when only the run tells."    },
    {"epoch_size",   graph_epoch_size,       METH_VARARGS,
     "epoch_size(options) -> dict\n--\n\nWhat a run delivers; see struct hr_epoch_size."},
    {"explain",      graph_explain,          METH_VARARGS,
     "explain(options, json) -> str\n--\n\nThe plan as text, or as JSON."               },
    {"plan",         graph_plan,             METH_VARARGS,
     "plan(options, json) -> str\n--\n\nThe whole plan as YAML or JSON."                },
    {"profile",      ext_graph_profile,      METH_VARARGS,
     "profile(seed, records, seconds, width, inline, threads, fuse) -> str\n--\n\n"
     "What each node costs, as JSON (hr_graph_profile)."                                },
    {"profile_save", ext_graph_profile_save, METH_VARARGS,
     "profile_save(profile)\n--\n\nKeep it in the user's cache folder "
     "(hr_profile_save)."                                                               },
    {"profile_load", ext_graph_profile_load, METH_VARARGS,
     "profile_load(inline, fuse) -> str\n--\n\nWhat is kept there (hr_profile_load)."   },
    {"optimize",     ext_graph_optimize,     METH_VARARGS,
     "optimize(profile, rule, strictness, records, seed, tick) -> (Graph, dict)\n--\n\n"
     "The nodes in the cheapest order (hr_graph_optimize), or the graph itself."        },
    {"caches",       ext_graph_caches,       METH_VARARGS,
     "caches(profile, rule, strictness, epochs, memory, folder, folder_bytes, refresh) "
     "-> "
     "list[dict]\n--\n\nWhere a cache pays (hr_graph_propose_cache), the best first."   },
    {"variants",     ext_graph_variants,     METH_VARARGS,
     "variants(profile, rule, strictness, threads) -> (list[dict], list[dict])\n--\n\n"
     "What runs in worker processes (hr_graph_choose_variants): nodes, cases."          },
    {NULL,           NULL,                   0,                         NULL            },
};

static PyMemberDef graph_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct ext_graph, weak), READONLY,                NULL},
    {NULL,                    0,                           0,                                0,          NULL},
};

static PyType_Slot graph_slots[] = {
    {Py_tp_doc,      "Graph()\n--\n\nAn input pipeline: nodes, each an op with parameters."},
    {Py_tp_new,      graph_new                                                             },
    {Py_tp_dealloc,  graph_dealloc                                                         },
    {Py_tp_traverse, graph_traverse                                                        },
    {Py_tp_clear,    graph_clear                                                           },
    {Py_tp_methods,  graph_methods                                                         },
    {Py_tp_members,  graph_members                                                         },
    {0,              NULL                                                                  },
};

PyType_Spec ext_graph_spec = {
    .name = "headrace._headrace.Graph",
    .basicsize = sizeof(struct ext_graph),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = graph_slots,
};
