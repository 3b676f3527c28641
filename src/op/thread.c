/*
 * op/thread.c - a thread's private things, as ops reach them.
 *
 * A thread keeps its objects in a list: there are two or three of them, and the one that
 * was used last stands first.
 */
#include "op/op.h"

#include "core/alloc.h"
#include "core/clock.h"
#include "op/thread.h"

struct hr_thread_object {
    const struct hr_thread_class *class;
    void *object;
    struct hr_thread_object *next;
};

enum hr_err
hr__thread_object(struct hr_thread *thread, const struct hr_thread_class *class,
                  void **ret_object, struct hr_error *reterr)
{
    struct hr_thread_object **at = &thread->objects, *entry;
    enum hr_err code;

    while (*at != NULL && (*at)->class != class)
        at = &(*at)->next;
    entry = *at;
    if (entry != NULL) {
        *at = entry->next;
    } else {
        entry = hr__calloc(1, sizeof *entry);
        if (entry == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        entry->class = class;
        code = class->create(&entry->object, reterr);
        if (code != HR_OK) {
            hr__free(entry);
            return code;
        }
    }
    entry->next = thread->objects;
    thread->objects = entry;
    *ret_object = entry->object;
    return HR_OK;
}

void hr__thread_objects_destroy(struct hr_thread *thread)
{
    while (thread->objects != NULL) {
        struct hr_thread_object *entry = thread->objects;

        thread->objects = entry->next;
        entry->class->destroy(entry->object);
        hr__free(entry);
    }
}

void hr__thread_charge(struct hr_thread *thread, uint32_t node)
{
    uint64_t now;

    if (thread->charge_ticks == NULL)
        return;
    now = hr__ticks();
    thread->charge_ticks[thread->charge_node] += now - thread->charge_since;
    thread->charge_since = now;
    thread->charge_node = node;
}

enum hr_err hr__op_alloc(struct hr_op_ctx *ctx, size_t bytes, void **ret_memory)
{
    void *memory = hr__arena_alloc(&ctx->thread->arena, bytes);

    if (memory == NULL)
        return hr__fail(ctx->error, HR_ERR_MEMORY,
                        "out of memory for %zu bytes of a record", bytes);
    *ret_memory = memory;
    return HR_OK;
}
