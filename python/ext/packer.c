/*
 * Packers: struct hr_packer of headrace/pack.h as an object.
 */
#include "ext.h"
#include "headrace/pack.h"

#include <string.h>

struct ext_packer {
    PyObject_HEAD struct hr_packer *packer; /* NULL when closed */
    atomic_bool busy;                       /* a thread is inside of a call */
    unsigned forks;
};

static struct ext_packer *of(PyObject *self)
{
    return (struct ext_packer *)self;
}

/* -1 with an exception set: closed, or in use. */
static int enter(struct ext_packer *p)
{
    struct ext_state *state = ext_state((PyObject *)p);
    const char *why = NULL;

    if (p->forks != ext_forks())
        why = "the packer was opened before this process was forked";
    else if (atomic_exchange(&p->busy, true))
        why = "another thread uses the packer";
    if (why == NULL && p->packer == NULL) {
        atomic_store(&p->busy, false);
        why = "the packer is closed";
    }
    if (why == NULL)
        return 0;
    ext_fail(state, HR_ERR_STATE, NULL, "%s", why);
    return -1;
}

static void leave(struct ext_packer *p)
{
    atomic_store(&p->busy, false);
}

static void close_packer(struct ext_packer *p)
{
    struct hr_packer *packer = p->packer;

    p->packer = NULL;
    ext_count(EXT_PACKER, -1);
    Py_BEGIN_ALLOW_THREADS;
    hr_packer_close(packer);
    Py_END_ALLOW_THREADS;
}

static PyObject *done(struct ext_packer *p, enum hr_err code, struct hr_error *error)
{
    leave(p);
    if (code != HR_OK)
        return ext_raise(ext_state((PyObject *)p), error, NULL, NULL);
    Py_RETURN_NONE;
}

/* ---- life ---- */

static int choose_format(const char *word, enum hr_pack_format *ret_format)
{
    static const char *const words[] = {
        [HR_PACK_RECORDS] = "records",
        [HR_PACK_TAR] = "tar",
        [HR_PACK_TFRECORD] = "tfrecord",
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i], word) == 0) {
            *ret_format = (enum hr_pack_format)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "format cannot be '%s'", word);
    return -1;
}

/* HR_OK, or an Error set. */
static enum hr_err
open_packer(struct ext_packer *p, struct ext_graph *graph,
            const struct hr_iter_options *options, const struct hr_pack_options *pack)
{
    struct hr_error error = {0};
    enum hr_err code;

    if (ext_graph_lock(graph) < 0)
        return HR_ERR_STATE;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_packer_open(graph->graph, options, pack, &p->packer, &error);
    Py_END_ALLOW_THREADS;
    ext_graph_unlock(graph);
    if (code == HR_OK)
        ext_count(EXT_PACKER, 1);
    else
        ext_raise(ext_state((PyObject *)p), &error, NULL, NULL);
    return code;
}

static PyObject *packer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {
        "graph",         "options",    "folder", "prefix",    "format", "shard_bytes",
        "shard_records", "zstd_level", "append", "lz4_level", NULL};
    struct ext_state *state = PyType_GetModuleState(type);
    unsigned long long shard_bytes, shard_records;
    struct hr_pack_options pack;
    struct hr_iter_options options;
    PyObject *graph, *dict, *copy;
    const char *format;
    struct ext_packer *p;
    int append = 0;

    hr_pack_options_init(&pack);
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O!sssKKipi:Packer", names, state->graph, &graph,
            &PyDict_Type, &dict, &pack.folder, &pack.prefix, &format, &shard_bytes,
            &shard_records, &pack.zstd_level, &append, &pack.lz4_level) ||
        choose_format(format, &pack.format) < 0)
        return NULL;
    pack.shard_bytes = shard_bytes;
    pack.shard_records = shard_records;
    pack.append = append != 0;
    copy = ext_options_read(state, dict, &options);
    if (copy == NULL)
        return NULL;
    p = (struct ext_packer *)PyType_GenericAlloc(type, 0);
    if (p != NULL) {
        p->forks = ext_forks();
        if (open_packer(p, (struct ext_graph *)graph, &options, &pack) != HR_OK)
            Py_CLEAR(p);
    }
    Py_DECREF(copy);
    return (PyObject *)p;
}

/* In a forked process the files are the parent's: nothing is dropped. */
static void packer_dealloc(PyObject *self)
{
    struct ext_packer *p = of(self);
    PyTypeObject *type = Py_TYPE(self);

    if (p->packer != NULL && p->forks == ext_forks())
        close_packer(p);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- calls ---- */

static PyObject *packer_state(PyObject *self, PyObject *unused)
{
    struct ext_packer *p = of(self);
    const char *text;
    PyObject *made;

    (void)unused;
    if (enter(p) < 0)
        return NULL;
    text = hr_packer_state(p->packer);
    made = text != NULL ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
    leave(p);
    return made;
}

static PyObject *packer_complete(PyObject *self, PyObject *unused)
{
    struct ext_packer *p = of(self);
    bool complete;

    (void)unused;
    if (enter(p) < 0)
        return NULL;
    complete = hr_packer_complete(p->packer);
    leave(p);
    return PyBool_FromLong(complete);
}

static PyObject *packer_add(PyObject *self, PyObject *batch)
{
    struct ext_packer *p = of(self);
    struct hr_error error = {0};
    struct hr_batch *record;
    bool mark = false;
    enum hr_err code;

    if (!PyObject_TypeCheck(batch, ext_state(self)->batch))
        return PyErr_Format(PyExc_TypeError, "%R is no batch", batch);
    if (enter(p) < 0)
        return NULL;
    record = ((struct ext_batch *)batch)->hold->batch;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_packer_add(p->packer, record, &mark, &error);
    Py_END_ALLOW_THREADS;
    leave(p);
    return code == HR_OK ? PyBool_FromLong(mark)
                         : ext_raise(ext_state(self), &error, NULL, NULL);
}

static PyObject *packer_mark(PyObject *self, PyObject *state)
{
    const char *text = PyUnicode_AsUTF8AndSize(state, NULL);
    struct ext_packer *p = of(self);
    struct hr_error error = {0};
    enum hr_err code;

    if (text == NULL || enter(p) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_packer_mark(p->packer, text, &error);
    Py_END_ALLOW_THREADS;
    return done(p, code, &error);
}

static PyObject *packer_finish(PyObject *self, PyObject *unused)
{
    struct ext_packer *p = of(self);
    struct hr_error error = {0};
    enum hr_err code;

    (void)unused;
    if (enter(p) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_packer_finish(p->packer, &error);
    Py_END_ALLOW_THREADS;
    return done(p, code, &error);
}

static PyObject *packer_result(PyObject *self, PyObject *unused)
{
    struct ext_packer *p = of(self);
    struct hr_pack_result result;

    (void)unused;
    if (enter(p) < 0)
        return NULL;
    hr_packer_result(p->packer, &result);
    leave(p);
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:K,s:N}", "shards", (unsigned long long)result.shards,
        "records", (unsigned long long)result.records, "records_now",
        (unsigned long long)result.records_now, "bytes", (unsigned long long)result.bytes,
        "records_earlier", (unsigned long long)result.records_earlier, "resumed",
        PyBool_FromLong(result.resumed));
}

static PyObject *packer_close(PyObject *self, PyObject *unused)
{
    struct ext_packer *p = of(self);

    (void)unused;
    if (enter(p) < 0)
        return NULL;
    close_packer(p);
    leave(p);
    Py_RETURN_NONE;
}

/* ---- the type ---- */

static PyMethodDef packer_methods[] = {
    {"state",    packer_state,    METH_NOARGS,
     "state() -> str | None\n--\n\nThe state that the iterator starts from."        },
    {"complete", packer_complete, METH_NOARGS,
     "complete() -> bool\n--\n\nWhether nothing is left to do."                     },
    {"add",      packer_add,      METH_O,
     "add(batch) -> bool\n--\n\nWrite a record; True when mark() comes next."       },
    {"mark",     packer_mark,     METH_O,
     "mark(state)\n--\n\nKeep the iterator's state after a shard."                  },
    {"finish",   packer_finish,   METH_NOARGS, "finish()\n--\n\nEnd the last shard."},
    {"result",   packer_result,   METH_NOARGS,
     "result() -> dict\n--\n\nWhat is written; see struct hr_pack_result."          },
    {"close",    packer_close,    METH_NOARGS,
     "close()\n--\n\nDrop a shard that has not ended."                              },
    {NULL,       NULL,            0,           NULL                                 },
};

static PyType_Slot packer_slots[] = {
    {Py_tp_doc,
     "Packer(graph, options, folder, prefix, format, shard_bytes, shard_records, "
     "zstd_level, append, lz4_level)\n--\n\n"
     "Writes records into shards. One thread at a time."},
    {Py_tp_new,     packer_new                          },
    {Py_tp_dealloc, packer_dealloc                      },
    {Py_tp_methods, packer_methods                      },
    {0,             NULL                                },
};

PyType_Spec ext_packer_spec = {
    .name = "headrace._headrace.Packer",
    .basicsize = sizeof(struct ext_packer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = packer_slots,
};
