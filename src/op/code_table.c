/*
 * op/code_table.c - see code_table.h. A graph has a handful of pieces of code: a list.
 */
#include "op/code_table.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"
#include "core/error.h"
#include "core/str.h"

#define NAME_MAX_BYTES 63

static enum hr_err check_name(const char *name, struct hr_error *reterr)
{
    size_t length = strlen(name);

    if (length == 0 || length > NAME_MAX_BYTES)
        return hr__fail(reterr, HR_ERR_ARGUMENT,
                        "a name of code has 1 to %d bytes, not %zu", NAME_MAX_BYTES,
                        length);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20)
            return hr__fail(reterr, HR_ERR_ARGUMENT,
                            "a name of code must not hold control characters");
    return HR_OK;
}

static const struct hr_code_entry *
find(const struct hr_code_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->entries[i].name, name) == 0)
            return &table->entries[i];
    return NULL;
}

enum hr_err hr__code_table_add(struct hr_code_table *table, const char *name,
                               const struct hr_code *code, struct hr_error *reterr)
{
    struct hr_code_entry *grown, made = {.code = *code};

    assert(code->call != NULL && code->identity != NULL);
    assert(code->keys == 0 || code->key != NULL);
    HR_TRY(check_name(name, reterr));
    if (find(table, name) != NULL)
        return hr__fail(reterr, HR_ERR_ARGUMENT, "the graph has code \"%s\" already",
                        name);
    grown = hr__realloc(table->entries, (table->count + 1) * sizeof *grown);
    if (grown == NULL)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    table->entries = grown;
    made.name = hr__strdup(name);
    made.identity = hr__strdup(code->identity);
    made.stays = code->stays != NULL ? hr__strdup(code->stays) : NULL;
    made.code.identity = made.identity;
    made.code.stays = made.stays;
    if (made.name == NULL || made.identity == NULL ||
        (code->stays != NULL && made.stays == NULL)) {
        hr__free(made.name);
        hr__free(made.identity);
        hr__free(made.stays);
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
    }
    grown[table->count++] = made;
    return HR_OK;
}

enum hr_err hr__code_table_host(struct hr_code_table *table,
                                const struct hr_code_host *host, struct hr_error *reterr)
{
    if (table->host.start != NULL)
        return hr__fail(reterr, HR_ERR_STATE,
                        "the graph has a host for worker processes already");
    assert(host->start != NULL && host->kill != NULL);
    table->host = *host;
    return HR_OK;
}

static void destroy(struct hr_code_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        struct hr_code_entry *entry = &table->entries[i];

        if (entry->code.release != NULL)
            entry->code.release(entry->code.user);
        hr__free(entry->name);
        hr__free(entry->identity);
        hr__free(entry->stays);
    }
    if (table->host.release != NULL)
        table->host.release(table->host.user);
    hr__free(table->entries);
    hr__free(table);
}

struct hr_code_table *hr__code_table_create(void)
{
    struct hr_code_table *table = hr__calloc(1, sizeof *table);

    if (table != NULL)
        atomic_init(&table->refs, 1);
    return table;
}

struct hr_code_table *hr__code_table_ref(struct hr_code_table *table)
{
    unsigned before = atomic_fetch_add_explicit(&table->refs, 1, memory_order_relaxed);

    assert(before > 0); /* the caller holds one */
    (void)before;
    return table;
}

void hr__code_table_unref(struct hr_code_table *table)
{
    if (table == NULL)
        return;
    assert(atomic_load_explicit(&table->refs, memory_order_relaxed) > 0);
    if (atomic_fetch_sub_explicit(&table->refs, 1, memory_order_acq_rel) == 1)
        destroy(table);
}

enum hr_err hr__code_table_find(const struct hr_code_table *table, const char *name,
                                const struct hr_code **ret_code, struct hr_error *reterr)
{
    const struct hr_code_entry *entry = find(table, name);
    const char *names[64], *near;
    size_t count = 0;

    if (entry != NULL) {
        *ret_code = &entry->code;
        return HR_OK;
    }
    for (; count < table->count && count < 64; count++)
        names[count] = table->entries[count].name;
    near = hr__nearest(name, names, count);
    return hr__fail(
        reterr, HR_ERR_NOT_FOUND,
        "the code \"%.63s\" is not registered%s%s%s: a graph with user code runs in the "
        "program that registers it with hr_graph_code() before freezing (in Python, with "
        ".map(function) and similar methods)",
        name, near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
        near != NULL ? "\"?" : "");
}
