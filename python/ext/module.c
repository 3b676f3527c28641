/*
 * The module headrace._headrace: its functions, its state, and its globals.
 *
 * Sub-interpreters are refused: user code runs in threads that the engine made, and
 * PyGILState_Ensure, all that the limited API has for them, knows the main interpreter
 * only (docs/decisions/0012).
 */
#include "ext.h"

#include <pthread.h>

static atomic_long counts[EXT_KINDS];
static atomic_uint forks;

void ext_count(enum ext_kind kind, int by)
{
    atomic_fetch_add_explicit(&counts[kind], by, memory_order_relaxed);
}

unsigned ext_forks(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

static void count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
    ext_iters_forked();
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

struct ext_state *ext_state_of(PyObject *module)
{
    return PyModule_GetState(module);
}

struct ext_state *ext_state(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

/* ---- functions ---- */

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(hr_version());
}

static PyObject *live_objects(PyObject *module, PyObject *unused)
{
    static const char *const names[EXT_KINDS] = {
        [EXT_GRAPH] = "graph",   [EXT_ITER] = "iter",     [EXT_BATCH] = "batch",
        [EXT_FIELD] = "field",   [EXT_DIGEST] = "digest", [EXT_CODE] = "code",
        [EXT_HOLD] = "hold",     [EXT_EXPORT] = "export", [EXT_TOKENIZER] = "tokenizer",
        [EXT_PACKER] = "packer",
    };
    PyObject *all = PyDict_New();

    (void)module, (void)unused;
    for (int i = 0; all != NULL && i < EXT_KINDS; i++) {
        PyObject *count = PyLong_FromLong(atomic_load(&counts[i]));

        if (count == NULL || PyDict_SetItemString(all, names[i], count) < 0)
            Py_CLEAR(all);
        Py_XDECREF(count);
    }
    return all;
}

static PyMethodDef functions[] = {
    {"version",          version,            METH_NOARGS,  "version() -> str\n--\n\nVersion of the library."},
    {"op_list",          ext_op_list,        METH_NOARGS,
     "op_list() -> list[OpInfo]\n--\n\nAll ops with their parameters, in order of name."                    },
    {"parts",            ext_parts,          METH_NOARGS,
     "parts() -> list[PartInfo]\n--\n\n"
     "Libraries and stores with their versions; loads those that are loaded when "
     "needed."                                                                                              },
    {"arrow_rows",       ext_arrow_rows,     METH_VARARGS,
     "arrow_rows(stream, rows) -> object\n--\n\n"
     "Rows of an Arrow stream (a capsule), as the attribute `arrow` of a source's "
     "function."                                                                                            },
    {"serve",            ext_serve,          METH_VARARGS,
     "serve(fd, find, begin=None)\n--\n\n"
     "Serve calls of user code on a socket until the other side closes it."                                 },
    {"current_record",   ext_current_record, METH_NOARGS,
     "current_record() -> tuple | None\n--\n\n"
     "(seed, epoch, index, key0, key1, node, call, replaced) of the record in the hands\n"
     "of user code in this thread."                                                                         },
    {"digest_batch",     ext_digest_batch,   METH_VARARGS,
     "digest_batch(digest, batch)\n--\n\n"
     "Add a batch to a digest as `headrace run --digest` does."                                             },
    {"merge_states",     ext_merge_states,   METH_O,
     "merge_states(states) -> str\n--\n\nOne state of those of all ranks of a world."                       },
    {"check_profile",    ext_check_profile,  METH_VARARGS,
     "check_profile(text, name)\n--\n\nRaise the first error of a profile, with its "
     "place in file `name`."                                                                                },
    {"free_memory",      ext_free_memory,    METH_NOARGS,
     "free_memory() -> int\n--\n\nBytes that this process may use and that are free "
     "now; 0 if unknown."                                                                                   },
    {"live_objects",     live_objects,       METH_NOARGS,
     "live_objects() -> dict[str, int]\n--\n\nHandles alive by class, for leak tests."                      },
    {"_close_iterators", ext_iters_close,    METH_NOARGS,
     "Close all iterators; runs at the end of the interpreter."                                             },
    {NULL,               NULL,               0,            NULL                                             },
};

/* ---- life ---- */

static int refuse_subinterpreters(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)
        return 0;
    PyErr_SetString(PyExc_ImportError,
                    "headrace cannot be imported in a sub-interpreter: user code runs in "
                    "threads of the engine, which reach the main interpreter only");
    return -1;
}

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **ret_type)
{
    *ret_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *ret_type == NULL ? -1 : PyModule_AddType(module, *ret_type);
}

/* The engine's threads must have ended before the interpreter does. */
static int close_at_exit(PyObject *module)
{
    PyObject *atexit = PyImport_ImportModule("atexit"), *close, *done = NULL;

    close = PyObject_GetAttrString(module, "_close_iterators");
    if (atexit != NULL && close != NULL)
        done = PyObject_CallMethod(atexit, "register", "O", close);
    Py_XDECREF(atexit);
    Py_XDECREF(close);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int module_exec(PyObject *module)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct ext_state *state = ext_state_of(module);

    if (refuse_subinterpreters() < 0)
        return -1;
    pthread_once(&once, watch_forks);
    state->error = ext_error_create(module);
    if (state->error == NULL ||
        PyModule_AddObjectRef(module, "Error", state->error) < 0 ||
        add_type(module, &ext_graph_spec, &state->graph) < 0 ||
        add_type(module, &ext_iter_spec, &state->iter) < 0 ||
        add_type(module, &ext_batch_spec, &state->batch) < 0 ||
        add_type(module, &ext_field_spec, &state->field) < 0 ||
        add_type(module, &ext_digest_spec, &state->digest) < 0 ||
        add_type(module, &ext_tokenizer_spec, &state->tokenizer) < 0 ||
        add_type(module, &ext_packer_spec, &state->packer) < 0)
        return -1;
    return close_at_exit(module);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct ext_state *state = ext_state_of(module);

    Py_VISIT(state->error);
    Py_VISIT(state->graph);
    Py_VISIT(state->iter);
    Py_VISIT(state->batch);
    Py_VISIT(state->field);
    Py_VISIT(state->digest);
    Py_VISIT(state->tokenizer);
    Py_VISIT(state->packer);
    Py_VISIT(state->ndarray);
    Py_VISIT(state->asarray);
    for (int i = 0; i < EXT_DTYPES; i++)
        Py_VISIT(state->dtypes[i]);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct ext_state *state = ext_state_of(module);

    Py_CLEAR(state->error);
    Py_CLEAR(state->graph);
    Py_CLEAR(state->iter);
    Py_CLEAR(state->batch);
    Py_CLEAR(state->field);
    Py_CLEAR(state->digest);
    Py_CLEAR(state->tokenizer);
    Py_CLEAR(state->packer);
    Py_CLEAR(state->ndarray);
    Py_CLEAR(state->asarray);
    for (int i = 0; i < EXT_DTYPES; i++)
        Py_CLEAR(state->dtypes[i]);
    return 0;
}

static void module_free(void *module)
{
    if (ext_state_of(module) != NULL)
        module_clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec        },
#ifdef Py_GIL_DISABLED
    {Py_mod_gil,  Py_MOD_GIL_NOT_USED},
#endif
    {0,           NULL               },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "headrace._headrace",
    .m_doc = "Handles of libheadrace as Python objects, and nothing that decides.",
    .m_size = sizeof(struct ext_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__headrace(void);
PyMODINIT_FUNC PyInit__headrace(void)
{
    return PyModuleDef_Init(&definition);
}
