/*
 * engine/close.c - ends a run in bounded time, whatever user code does.
 *
 * A thread is inside the engine while it works for it: the engine's threads from start to
 * end, the consumer's during hr_iter_next. Stopping waits for them to leave. User code
 * may never return, so closing waits for CLOSE_NS at most; after that, the last thread to
 * leave frees the engine.
 */
#include "engine/run.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/str.h"
#include "core/thread.h"

#define CLOSE_NS ((uint64_t)2000000000)
#define NAMED_MAX 4 /* threads, in messages */
/* Time for what a thread does after leaving, such as destructors of thread-local objects.
 */
#define JOIN_NS ((uint64_t)500000000)

/* ---- inside ---- */

void hr__engine_enter(struct hr_runner *runner)
{
    hr__engine_assert_locked(runner->engine);
    assert(!runner->inside && !runner->engine->closed);
    runner->inside = true;
    runner->engine->inside++;
}

static void destroy(struct hr_engine *engine)
{
    for (int i = 0; engine->runners != NULL && i <= engine->thread_count; i++)
        hr__runner_finish(&engine->runners[i]);
    hr__free(engine->runners);
    for (; engine->out_count > 0; engine->out_count--) {
        hr_batch_unref(engine->out[engine->out_head]);
        hr__place_clear(&engine->out_place[engine->out_head]);
        engine->out_head = (engine->out_head + 1) % HR_OUT_MAX;
    }
    hr__place_clear(&engine->place);
    for (size_t i = 0; i < engine->stage_count; i++)
        hr__stage_finish(&engine->stages[i]);
    hr__reader_destroy(engine->reader);
    hr_pool_unref(engine->pool);
    hr__ledger_finish(&engine->ledger);
    for (size_t i = 0; i < engine->stage_count; i++)
        hr__marks_finish(&engine->stages[i].marks);
    hr__done_finish(&engine->done);
    hr__rerun_finish(&engine->rerun);
    hr__plan_finish(&engine->plan);
    hr__free(engine->detail);
    if (engine->feed != NULL)
        engine->feed->close(engine->feed->user);
    hr_graph_unref(engine->graph);
    pthread_cond_destroy(&engine->work);
    pthread_cond_destroy(&engine->ready);
    pthread_cond_destroy(&engine->left);
    pthread_mutex_destroy(&engine->lock);
    pthread_mutex_destroy(&engine->host_lock);
    hr__free(engine);
}

void hr__engine_leave(struct hr_runner *runner)
{
    struct hr_engine *engine = runner->engine;
    bool last;

    assert(runner->inside && engine->inside > 0);
    runner->inside = false;
    engine->inside--;
    last = engine->closed && engine->inside == 0;
    pthread_cond_broadcast(&engine->left);
    pthread_mutex_unlock(&engine->lock);
    if (last)
        destroy(engine);
}

/* ---- stopping ---- */

/* Whether the calling thread is inside, and so would wait for itself. Under the lock. */
static bool is_own_code(const struct hr_engine *engine)
{
    for (int i = 0; i <= engine->thread_count; i++)
        if (engine->runners[i].inside &&
            pthread_equal(engine->runners[i].handle, pthread_self()))
            return true;
    return false;
}

static const char *code_name(const struct hr_graph_node *node)
{
    const struct hr_code_use *use = hr__node_code(node);

    return use != NULL ? use->name : node->op->name;
}

/* "thread 'hr-thread-1' in user code 'f' of node 'map' (code.map) at record 20"; fills
 * the parts of *reterr (may be NULL) unless another thread has. */
static void
name_thread(const struct hr_runner *runner, struct hr_str *words, struct hr_error *reterr)
{
    uint32_t at = atomic_load(&runner->code_node);
    uint64_t record = atomic_load(&runner->code_record);
    const struct hr_graph_node *node;
    char name[16] = "?";
    bool waits;

    (void)pthread_getname_np(runner->handle, name, sizeof name);
    hr__str_addf(words, "thread '%s'", name);
    if (at == 0)
        return;
    node = &runner->engine->graph->nodes[at - 1];
    waits = atomic_load(&runner->code_since) == UINT64_MAX;
    hr__str_addf(words, " %s user code '%.99s' of node '%s' (%s)",
                 waits ? "waiting for" : "in", code_name(node), node->name,
                 node->op->name);
    if (record != UINT64_MAX)
        hr__str_addf(words, " at record %llu", (unsigned long long)record);
    if (reterr == NULL || reterr->node[0] != '\0')
        return;
    snprintf(reterr->node, sizeof reterr->node, "%s", node->name);
    snprintf(reterr->op, sizeof reterr->op, "%s", node->op->name);
    reterr->record = record != UINT64_MAX ? (int64_t)record + 1 : 0;
}

/* The thread that has been in the same user code at longest; -1 if none is in any. */
static int longest_in_code(const struct hr_engine *engine)
{
    uint64_t since = UINT64_MAX;
    int longest = -1;

    for (int i = 0; i <= engine->thread_count; i++) {
        const struct hr_runner *runner = &engine->runners[i];

        if (runner->inside && atomic_load(&runner->code_node) != 0 &&
            atomic_load(&runner->code_since) < since) {
            since = atomic_load(&runner->code_since);
            longest = i;
        }
    }
    return longest;
}

/* Names the first `count` threads that are inside, that which has been in user code at
 * longest first: the engine cannot know which of them the others wait for. Under the
 * lock. */
static void name_threads(const struct hr_engine *engine, int count, struct hr_str *words,
                         struct hr_error *parts)
{
    int longest = longest_in_code(engine), named = 0, inside = 0;

    if (longest >= 0 && longest < count) {
        name_thread(&engine->runners[longest], words, parts);
        named++;
    }
    for (int i = 0; i < count; i++) {
        inside += engine->runners[i].inside;
        if (!engine->runners[i].inside || i == longest || named >= NAMED_MAX)
            continue;
        if (named++ > 0)
            hr__str_add(words, "; ");
        name_thread(&engine->runners[i], words, parts);
    }
    if (inside > named)
        hr__str_addf(words, "; and %d more", inside - named);
}

static enum hr_err name_stuck(const struct hr_engine *engine, struct hr_error *reterr)
{
    struct hr_error parts = {0};
    struct hr_str words;

    hr__str_init(&words);
    name_threads(engine, engine->thread_count + 1, &words, &parts);
    hr__fail(&parts, HR_ERR_LIMIT, "still running: %s", hr__str_text(&words));
    hr__str_finish(&words);
    if (reterr != NULL)
        *reterr = parts;
    return HR_ERR_LIMIT;
}

void hr__engine_time_out(const struct hr_engine *engine, struct hr_error *error)
{
    struct hr_str words;

    hr__str_init(&words);
    name_threads(engine, engine->thread_count, &words, error);
    hr__fail(error, HR_ERR_TIMEOUT, "no batch came within %g s; running: %s",
             (double)engine->options.timeout_ns / 1e9, hr__str_text(&words));
    hr__str_finish(&words);
}

enum hr_err
hr__engine_stop(struct hr_engine *engine, uint64_t timeout_ns, struct hr_error *reterr)
{
    uint64_t now = hr__now_ns();
    uint64_t until = timeout_ns < UINT64_MAX / 2 ? now + timeout_ns : UINT64_MAX / 2;
    enum hr_err code = HR_OK;

    pthread_mutex_lock(&engine->lock);
    atomic_store(&engine->stop, true);
    atomic_store(&engine->cancelled, true); /* ends waits for worker processes */
    engine->stop_asked = true;
    pthread_cond_broadcast(&engine->work);
    pthread_cond_broadcast(&engine->ready);
    while (engine->inside > 0 && !is_own_code(engine) && now < until) {
        hr__cond_wait(&engine->left, &engine->lock, until);
        now = hr__now_ns();
    }
    if (engine->inside > 0)
        code = name_stuck(engine, reterr);
    pthread_mutex_unlock(&engine->lock);
    return code;
}

/* ---- closing ---- */

/* Ends the worker processes of threads that have left; threads inside may use theirs. Not
 * under the lock, since the host may wait for an interpreter. While a thread is starting
 * a process the host is busy: then the last thread to leave does this. */
static void finish_idle(struct hr_engine *engine)
{
    if (pthread_mutex_trylock(&engine->host_lock) != 0)
        return;
    pthread_mutex_unlock(&engine->host_lock);
    for (int i = 0; i <= engine->thread_count; i++) {
        bool inside;

        pthread_mutex_lock(&engine->lock);
        inside = engine->runners[i].inside;
        pthread_mutex_unlock(&engine->lock);
        if (!inside)
            hr__runner_finish(&engine->runners[i]);
    }
}

static void join_threads(struct hr_engine *engine)
{
    for (int i = 0; engine->runners != NULL && i < engine->thread_count; i++)
        if (engine->runners[i].started)
            hr__thread_join_for(engine->runners[i].handle, JOIN_NS);
}

/* Under the lock, since the last thread to leave frees the runners. */
static void detach_threads(struct hr_engine *engine)
{
    for (int i = 0; i < engine->thread_count; i++)
        if (engine->runners[i].started)
            pthread_detach(engine->runners[i].handle);
}

void hr__engine_close(struct hr_engine *engine)
{
    bool last;

    if (engine == NULL)
        return;
    if (engine->runners != NULL &&
        hr__engine_stop(engine, engine->stop_asked ? 0 : CLOSE_NS, NULL) != HR_OK)
        finish_idle(engine);
    pthread_mutex_lock(&engine->lock);
    assert(!engine->closed);
    engine->closed = true;
    last = engine->inside == 0;
    if (!last)
        detach_threads(engine);
    pthread_mutex_unlock(&engine->lock);
    if (!last)
        return;
    join_threads(engine);
    destroy(engine);
}
