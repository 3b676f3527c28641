/*
 * What the nodes of a graph cost, their cheapest order, and where a cache pays. The first
 * two run the graph for seconds, so they release the interpreter's lock, and take it
 * several times per second to serve signals.
 */
#include "ext.h"

#include <string.h>

#include "headrace/cache.h"
#include "headrace/optimize.h"
#include "headrace/variants.h"

/* What the library's progress function needs. */
struct running {
    PyThreadState *released; /* while the library runs */
    PyObject *tick;          /* called in between, or None */
    bool raised;             /* by a signal's handler, or by `tick` */
};

static bool look_around(void *user, uint64_t done, uint64_t all)
{
    struct running *running = user;

    (void)done, (void)all;
    PyEval_RestoreThread(running->released);
    running->raised = PyErr_CheckSignals() < 0;
    if (!running->raised && running->tick != Py_None) {
        PyObject *result = PyObject_CallFunction(running->tick, NULL);

        running->raised = result == NULL;
        Py_XDECREF(result);
    }
    running->released = PyEval_SaveThread();
    return !running->raised;
}

/* The exception of a run that failed. */
static PyObject *
fail(struct ext_graph *graph, const struct running *running, const struct hr_error *error)
{
    if (running->raised)
        Py_XDECREF(ext_fatal_take(graph->registry)); /* nobody asks for it */
    else
        ext_raise_failure(graph->registry, error, NULL);
    return NULL;
}

/* Freezes the graph and takes a reference to it, which can be used without the lock: a
 * frozen graph never changes. NULL with an exception set. */
static struct hr_graph *take_frozen(struct ext_graph *graph)
{
    struct hr_error error = {0};
    struct hr_graph *handle;
    enum hr_err code;

    if (ext_graph_lock(graph) < 0)
        return NULL;
    handle = graph->graph;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_graph_freeze(handle, &error);
    Py_END_ALLOW_THREADS;
    hr_graph_ref(handle);
    ext_graph_unlock(graph);
    if (code == HR_OK)
        return handle;
    hr_graph_unref(handle);
    ext_raise_failure(graph->registry, &error, NULL);
    return NULL;
}

/* ---- costs ---- */

/* The text of a profile. */
static enum hr_err
profile_text(struct hr_graph *graph, const struct hr_profile_options *options,
             char **ret_text, struct hr_error *reterr)
{
    struct hr_profile *profile = NULL;
    enum hr_err code = hr_graph_profile(graph, options, &profile, reterr);

    if (code == HR_OK)
        code = hr_profile_print(profile, ret_text, reterr);
    hr_profile_free(profile);
    return code;
}

PyObject *ext_graph_profile(PyObject *self, PyObject *args)
{
    struct ext_graph *graph = (struct ext_graph *)self;
    struct hr_profile_options options;
    struct running running = {.tick = Py_None};
    unsigned long long seed;
    struct hr_error error = {0};
    struct hr_graph *handle;
    long long records;
    char *text = NULL;
    enum hr_err code;
    int is_inline, fuse;

    hr_profile_options_init(&options);
    if (!PyArg_ParseTuple(args, "KLddpip:profile", &seed, &records, &options.seconds_max,
                          &options.width, &is_inline, &options.threads, &fuse))
        return NULL;
    options.seed = seed;
    options.records_max = records;
    options.variant = is_inline ? HR_VARIANT_INLINE : HR_VARIANT_THREADS;
    options.fuse = fuse != 0;
    options.progress = look_around;
    options.user = &running;
    handle = take_frozen(graph);
    if (handle == NULL)
        return NULL;
    ext_registry_begin(graph->registry);
    running.released = PyEval_SaveThread();
    code = profile_text(handle, &options, &text, &error);
    PyEval_RestoreThread(running.released);
    hr_graph_unref(handle);
    if (code != HR_OK)
        fail(graph, &running, &error);
    ext_registry_end(graph->registry);
    return code == HR_OK ? ext_take_text(text) : NULL;
}

/* ---- saved profiles ---- */

PyObject *ext_graph_profile_save(PyObject *self, PyObject *args)
{
    struct ext_graph *graph = (struct ext_graph *)self;
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};
    struct hr_graph *handle;
    const char *text;
    Py_ssize_t bytes;
    enum hr_err code;

    if (!PyArg_ParseTuple(args, "s#:profile_save", &text, &bytes) ||
        (handle = take_frozen(graph)) == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_profile_parse(text, (size_t)bytes, "the profile", &profile, &error);
    if (code == HR_OK)
        code = hr_profile_save(profile, handle, NULL, &error);
    hr_profile_free(profile);
    hr_graph_unref(handle);
    Py_END_ALLOW_THREADS;
    if (code != HR_OK)
        return ext_raise(graph->registry->state, &error, NULL, NULL);
    Py_RETURN_NONE;
}

PyObject *ext_check_profile(PyObject *module, PyObject *args)
{
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};
    const char *text, *name;
    Py_ssize_t bytes;
    enum hr_err code;

    if (!PyArg_ParseTuple(args, "s#s:check_profile", &text, &bytes, &name))
        return NULL;
    code = hr_profile_parse(text, (size_t)bytes, name, &profile, &error);
    hr_profile_free(profile);
    if (code != HR_OK)
        return ext_raise(PyModule_GetState(module), &error, NULL, NULL);
    Py_RETURN_NONE;
}

PyObject *ext_graph_profile_load(PyObject *self, PyObject *args)
{
    struct ext_graph *graph = (struct ext_graph *)self;
    struct hr_profile_options options;
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};
    struct hr_graph *handle;
    char *text = NULL;
    enum hr_err code;
    int is_inline, fuse;

    if (!PyArg_ParseTuple(args, "pp:profile_load", &is_inline, &fuse) ||
        (handle = take_frozen(graph)) == NULL)
        return NULL;
    hr_profile_options_init(&options);
    options.variant = is_inline ? HR_VARIANT_INLINE : HR_VARIANT_THREADS;
    options.fuse = fuse != 0;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_profile_load(handle, &options, NULL, &profile, &error);
    if (code == HR_OK)
        code = hr_profile_print(profile, &text, &error);
    hr_profile_free(profile);
    hr_graph_unref(handle);
    Py_END_ALLOW_THREADS;
    return code == HR_OK ? ext_take_text(text)
                         : ext_raise(graph->registry->state, &error, NULL, NULL);
}

/* ---- order ---- */

static enum hr_err
find_order(struct hr_graph *graph, const char *text, size_t bytes,
           const struct hr_optimize_options *options, struct hr_graph **ret_graph,
           struct hr_optimize_result *result, struct hr_error *reterr)
{
    struct hr_profile *profile = NULL;
    enum hr_err code = hr_profile_parse(text, bytes, "the profile", &profile, reterr);

    if (code == HR_OK)
        code = hr_graph_optimize(graph, profile, options, ret_graph, result, reterr);
    hr_profile_free(profile);
    return code;
}

/* Takes over `found`, which is the graph itself if it stays as it is. */
static PyObject *
result_tuple(PyObject *self, struct hr_graph *found, const struct hr_optimize_result *r)
{
    PyObject *graph, *about;

    if (found == ((struct ext_graph *)self)->graph) {
        hr_graph_unref(found);
        graph = Py_NewRef(self);
    } else {
        graph = ext_graph_reordered(self, found);
    }
    if (graph == NULL)
        return NULL;
    about = Py_BuildValue(
        "{s:n,s:i,s:N,s:d,s:d,s:L,s:d,s:d,s:d,s:N}", "moved", (Py_ssize_t)r->moved,
        "needs", (int)r->needs, "best", PyBool_FromLong(r->best), "written_ns",
        r->written_ns, "predicted_ns", r->predicted_ns, "records", (long long)r->records,
        "difference", r->difference, "written_run_ns", r->written_run_ns, "run_ns",
        r->run_ns, "dropped",
        PyUnicode_DecodeUTF8(r->dropped, (Py_ssize_t)strlen(r->dropped), "replace"));
    if (about == NULL)
        Py_CLEAR(graph);
    return about != NULL ? Py_BuildValue("(NN)", graph, about) : NULL;
}

PyObject *ext_graph_optimize(PyObject *self, PyObject *args)
{
    struct ext_graph *graph = (struct ext_graph *)self;
    struct hr_optimize_options options;
    struct hr_optimize_result result = {0};
    struct running running = {.raised = false};
    struct hr_graph *handle, *found = NULL;
    struct hr_error error = {0};
    unsigned long long seed;
    long long records;
    const char *text;
    Py_ssize_t bytes;
    int rule, strictness;
    enum hr_err code;

    hr_optimize_options_init(&options);
    if (!PyArg_ParseTuple(args, "s#iiLKO:optimize", &text, &bytes, &rule, &strictness,
                          &records, &seed, &running.tick))
        return NULL;
    options.rule = (enum hr_rule)rule;
    options.strictness = (enum hr_strictness)strictness;
    options.records_max = records;
    options.seed = seed;
    options.progress = look_around;
    options.user = &running;
    handle = take_frozen(graph);
    if (handle == NULL)
        return NULL;
    ext_registry_begin(graph->registry);
    running.released = PyEval_SaveThread();
    code = find_order(handle, text, (size_t)bytes, &options, &found, &result, &error);
    PyEval_RestoreThread(running.released);
    hr_graph_unref(handle);
    if (code != HR_OK)
        fail(graph, &running, &error);
    ext_registry_end(graph->registry);
    return code == HR_OK ? result_tuple(self, found, &result) : NULL;
}

/* ---- caches ---- */

static PyObject *place_of(const struct hr_cache_place *place)
{
    static const char *const variants[] = {"threads", "inline", "processes"};

    return Py_BuildValue(
        "{s:z,s:s,s:N,s:s,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:s,s:z}", "after", place->node,
        "where",
        place->node == NULL ? ""
        : place->in_folder  ? "folder"
                            : "memory",
        "chosen", PyBool_FromLong(place->chosen), "variant", variants[place->variant],
        "entry_bytes", place->entry_bytes, "total_bytes", place->total_bytes, "part",
        place->part, "fill_rate", place->fill_rate, "hit_rate", place->hit_rate, "rate",
        place->rate, "gain", place->gain, "refused",
        place->refused != NULL ? place->refused : "", "image", place->image);
}

/* Frees the places. */
static PyObject *list_of(struct hr_cache_places *places)
{
    PyObject *list = PyList_New(0);
    struct hr_cache_place place;

    for (size_t i = 0; list != NULL && hr_cache_places_get(places, i, &place) == HR_OK;
         i++) {
        PyObject *one = place_of(&place);

        if (one == NULL || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    hr_cache_places_free(places);
    return list;
}

PyObject *ext_graph_caches(PyObject *self, PyObject *args)
{
    struct ext_graph *graph = (struct ext_graph *)self;
    struct hr_optimize_options order;
    struct hr_cache_options options;
    struct hr_cache_places *places = NULL;
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};
    struct hr_graph *handle, *found = NULL;
    long long epochs, memory, folder_bytes, refresh;
    const char *text;
    Py_ssize_t bytes;
    int rule, strictness, allowed;
    enum hr_err code;

    hr_cache_options_init(&options);
    hr_optimize_options_init(&order);
    if (!PyArg_ParseTuple(args, "s#iiLLzLLii:caches", &text, &bytes, &rule, &strictness,
                          &epochs, &memory, &options.folder, &folder_bytes, &refresh,
                          &options.quality, &allowed) ||
        (handle = take_frozen(graph)) == NULL)
        return NULL;
    options.epochs = epochs;
    options.memory = memory;
    options.folder_bytes = folder_bytes;
    options.refresh = refresh;
    order.rule = (enum hr_rule)rule;
    order.strictness = (enum hr_strictness)strictness;
    options.order = &order;
    options.strictness = (enum hr_strictness)allowed;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_profile_parse(text, (size_t)bytes, "the profile", &profile, &error);
    if (code == HR_OK)
        code = hr_graph_propose_cache(handle, profile, &options, &found, &places, &error);
    hr_profile_free(profile);
    hr_graph_unref(found);
    hr_graph_unref(handle);
    Py_END_ALLOW_THREADS;
    return code == HR_OK ? list_of(places)
                         : ext_raise(graph->registry->state, &error, NULL, NULL);
}

/* ---- variants ---- */

static const char *const variant_names[] = {"threads", "inline", "processes"};

static PyObject *nodes_of(const struct hr_variant_choice *choice)
{
    PyObject *list = PyList_New(0);
    struct hr_variant_node node;

    for (size_t i = 0; list != NULL && hr_variant_choice_node(choice, i, &node) == HR_OK;
         i++) {
        PyObject *one = Py_BuildValue("{s:s,s:s,s:N,s:s}", "node", node.node, "variant",
                                      variant_names[node.variant], "moved",
                                      PyBool_FromLong(node.moved), "reason", node.reason);

        if (one == NULL || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *cases_of(const struct hr_variant_choice *choice)
{
    PyObject *list = PyList_New(0);
    struct hr_variant_case found;

    for (size_t i = 0; list != NULL && hr_variant_choice_case(choice, i, &found) == HR_OK;
         i++) {
        PyObject *one = Py_BuildValue(
            "{s:s,s:d,s:d,s:d,s:s}", "processes", found.processes, "rate", found.rate,
            "cpu_ns", found.cpu_ns, "gain", found.gain, "reason", found.reason);

        if (one == NULL || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

/* Frees the choice. */
static PyObject *choice_tuple(struct hr_variant_choice *choice)
{
    PyObject *nodes = nodes_of(choice);
    PyObject *cases = nodes != NULL ? cases_of(choice) : NULL;

    hr_variant_choice_free(choice);
    if (cases != NULL)
        return Py_BuildValue("(NN)", nodes, cases);
    Py_XDECREF(nodes);
    return NULL;
}

PyObject *ext_graph_variants(PyObject *self, PyObject *args)
{
    struct ext_graph *graph = (struct ext_graph *)self;
    struct hr_optimize_options order;
    struct hr_variant_options options;
    struct hr_iter_options run;
    struct hr_variant_choice *choice = NULL;
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};
    struct hr_graph *handle;
    const char *text;
    Py_ssize_t bytes;
    int rule, strictness;
    enum hr_err code;

    hr_variant_options_init(&options);
    hr_optimize_options_init(&order);
    hr_iter_options_init(&run);
    if (!PyArg_ParseTuple(args, "s#iii:variants", &text, &bytes, &rule, &strictness,
                          &run.threads) ||
        (handle = take_frozen(graph)) == NULL)
        return NULL;
    order.rule = (enum hr_rule)rule;
    order.strictness = (enum hr_strictness)strictness;
    options.order = &order;
    options.run = &run;
    options.code_only = true;
    Py_BEGIN_ALLOW_THREADS;
    code = hr_profile_parse(text, (size_t)bytes, "the profile", &profile, &error);
    if (code == HR_OK)
        code = hr_graph_choose_variants(handle, profile, &options, &choice, &error);
    hr_profile_free(profile);
    hr_graph_unref(handle);
    Py_END_ALLOW_THREADS;
    return code == HR_OK ? choice_tuple(choice)
                         : ext_raise(graph->registry->state, &error, NULL, NULL);
}
