/*
 * opt/cedar_plan_parse.c - reads cedar's plans, and the hints that a user adds to them.
 */
#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "opt/cedar_form.h"

#define NUMBER_MAX 1000000000

const char *const hr__cedar_numbers[HR_CEDAR_NUMBERS] = {
    [HR_CEDAR_N_PROCS] = "n_procs",
    [HR_CEDAR_N_THREADS] = "n_threads",
    [HR_CEDAR_N_ACTORS] = "n_actors",
    [HR_CEDAR_MAX_INFLIGHT] = "max_inflight",
    [HR_CEDAR_MAX_PREFETCH] = "max_prefetch",
    [HR_CEDAR_SUBMIT_BATCH] = "submit_batch_size",
    [HR_CEDAR_PARALLEL_CALLS] = "num_parallel_calls",
    [HR_CEDAR_USE_THREADS] = "use_threads",
    [HR_CEDAR_DISABLE_PARALLEL] = "disable_torch_parallelism",
};

const char *const hr__cedar_hints[HR_CEDAR_HINTS] = {
    [HR_CEDAR_FIX] = "fix",         [HR_CEDAR_IS_RANDOM] = "is_random",
    [HR_CEDAR_TF_OP] = "tf",        [HR_CEDAR_PY_FUNC] = "tf_py_func",
    [HR_CEDAR_FUSABLE] = "fusable", [HR_CEDAR_BATCH] = "batch",
    [HR_CEDAR_OFFLOAD] = "offload",
};

struct parse {
    struct hr_form form;
    struct hr_cedar_section *section;
};

const struct hr_cedar_entry *
hr__cedar_entry(const struct hr_cedar_section *section, int64_t id)
{
    for (size_t i = 0; i < section->entry_count; i++)
        if (section->entries[i].id == id)
            return &section->entries[i];
    return NULL;
}

/* ---- a pipe ---- */

static enum hr_err need_text(const struct parse *p, const struct hr_doc *map,
                             const char *key, const char **ret_text)
{
    HR_TRY(hr__form_need_text(&p->form, map, key, ret_text));
    if (**ret_text == '\0')
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, hr__doc_get(map, key),
                            "\"%s\" is empty", key);
    return HR_OK;
}

static enum hr_err read_variant(const struct parse *p, const struct hr_doc *value,
                                const char *key, enum hr_cedar_variant *ret_variant)
{
    const char *near;

    if (value->kind != HR_DOC_STRING)
        return hr__form_wrong_type(&p->form, value, key, "the name of a variant");
    for (int v = HR_CEDAR_INPROCESS; v < HR_CEDAR_VARIANTS; v++)
        if (strcmp(hr__cedar_variants[v], value->as.string.text) == 0) {
            *ret_variant = (enum hr_cedar_variant)v;
            return HR_OK;
        }
    near =
        hr__nearest(value->as.string.text, hr__cedar_variants + 1, HR_CEDAR_VARIANTS - 1);
    return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, value,
                        "\"%s\" is no variant: \"%.40s\"%s%s%s", key,
                        value->as.string.text, near != NULL ? "; did you mean \"" : "",
                        near != NULL ? near : "", near != NULL ? "\"?" : "");
}

/* true and false for the switches; null for a number that is left to TensorFlow. */
static enum hr_err read_number(const struct parse *p, const struct hr_doc *context,
                               enum hr_cedar_number which, int64_t *ret_number)
{
    const char *key = hr__cedar_numbers[which];
    const struct hr_doc *value = hr__doc_get(context, key);
    int64_t least = which == HR_CEDAR_PARALLEL_CALLS ? -1 : 1;

    if (value == NULL || (value->kind == HR_DOC_NULL && which == HR_CEDAR_PARALLEL_CALLS))
        return HR_OK;
    if (which >= HR_CEDAR_USE_THREADS) {
        if (value->kind != HR_DOC_BOOL)
            return hr__form_wrong_type(&p->form, value, key, "true or false");
        *ret_number = value->as.boolean;
        return HR_OK;
    }
    if (value->kind != HR_DOC_INT)
        return hr__form_wrong_type(&p->form, value, key, "a whole number");
    if (value->as.integer < least || value->as.integer > NUMBER_MAX)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, value,
                            "\"%s\" must be %lld to %d, not %lld", key, (long long)least,
                            NUMBER_MAX, (long long)value->as.integer);
    *ret_number = value->as.integer;
    return HR_OK;
}

static enum hr_err read_context(const struct parse *p, const struct hr_doc *map,
                                struct hr_cedar_entry *entry)
{
    struct hr_form_keys keys = {.count = 0};
    enum hr_cedar_variant type = HR_CEDAR_NONE;
    const struct hr_doc *context = NULL, *value;

    HR_TRY(hr__form_get(&p->form, map, "variant_ctx", HR_DOC_MAP, "a map", &context));
    if (context == NULL)
        return HR_OK;
    hr__form_add_key(&keys, "variant_type");
    for (int i = 0; i < HR_CEDAR_NUMBERS; i++)
        hr__form_add_key(&keys, hr__cedar_numbers[i]);
    HR_TRY(hr__form_check_keys(&p->form, context, &keys));
    value = hr__doc_get(context, "variant_type");
    if (value == NULL)
        return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, context,
                            "the key \"variant_type\" is missing");
    HR_TRY(read_variant(p, value, "variant_type", &type));
    if (type != entry->variant)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, value,
                            "\"variant_type\" is %s, but the variant is %s",
                            hr__cedar_variants[type], hr__cedar_variants[entry->variant]);
    entry->has_context = true;
    for (int i = 0; i < HR_CEDAR_NUMBERS; i++)
        HR_TRY(read_number(p, context, (enum hr_cedar_number)i, &entry->numbers[i]));
    return HR_OK;
}

static enum hr_err
read_fused(const struct parse *p, const struct hr_doc *map, struct hr_cedar_entry *entry)
{
    const struct hr_doc *list = NULL;

    HR_TRY(
        hr__form_get(&p->form, map, "fused_pipes", HR_DOC_LIST, "a list of ids", &list));
    if (list == NULL)
        return HR_OK;
    if (list->as.list.count == 0 || list->as.list.count > HR_CEDAR_PIPES_MAX)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, list,
                            "\"fused_pipes\" has %zu pipes; 1 to %d", list->as.list.count,
                            HR_CEDAR_PIPES_MAX);
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct hr_doc *item = list->as.list.items[i];

        if (item->kind != HR_DOC_INT || item->as.integer < 0 ||
            item->as.integer > HR_CEDAR_ID_MAX)
            return hr__form_wrong_type(&p->form, item, "fused_pipes", "a list of ids");
        entry->fused[entry->fused_count++] = item->as.integer;
    }
    return HR_OK;
}

static enum hr_err
read_hints(const struct parse *p, const struct hr_doc *map, struct hr_cedar_entry *entry)
{
    const struct hr_doc *list = NULL;

    for (int i = 0; i < HR_CEDAR_HINTS; i++) {
        const struct hr_doc *value = NULL;

        HR_TRY(hr__form_get(&p->form, map, hr__cedar_hints[i], HR_DOC_BOOL,
                            "true or false", &value));
        entry->hints[i] = value == NULL ? -1 : value->as.boolean;
    }
    if (hr__doc_get(map, "tag") != NULL)
        HR_TRY(need_text(p, map, "tag", &entry->tag));
    HR_TRY(hr__form_get(&p->form, map, "depends_on", HR_DOC_LIST, "a list of tags or ids",
                        &entry->depends_on));
    list = entry->depends_on;
    for (size_t i = 0; list != NULL && i < list->as.list.count; i++)
        if (list->as.list.items[i]->kind != HR_DOC_STRING &&
            list->as.list.items[i]->kind != HR_DOC_INT)
            return hr__form_wrong_type(&p->form, list->as.list.items[i], "depends_on",
                                       "a list of tags or ids");
    list = NULL;
    HR_TRY(hr__form_get(&p->form, map, "variants", HR_DOC_LIST, "a list of variants",
                        &list));
    for (size_t i = 0; list != NULL && i < list->as.list.count; i++) {
        enum hr_cedar_variant variant = HR_CEDAR_NONE;

        HR_TRY(read_variant(p, list->as.list.items[i], "variants", &variant));
        entry->variants |= 1U << variant;
    }
    return HR_OK;
}

static enum hr_err read_entry(const struct parse *p, const struct hr_doc_pair *pair,
                              struct hr_cedar_entry *entry)
{
    static const char *const more[] = {"name", "variant",    "variant_ctx", "fused_pipes",
                                       "tag",  "depends_on", "variants"};
    struct hr_form_keys keys = {.count = 0};
    const struct hr_doc *map = pair->value, *variant;

    *entry = (struct hr_cedar_entry){.at = map};
    for (int i = 0; i < HR_CEDAR_NUMBERS; i++)
        entry->numbers[i] = HR_CEDAR_UNSET;
    HR_TRY(hr__cedar_key(&p->form, pair, &entry->id));
    if (map->kind != HR_DOC_MAP)
        return hr__form_wrong_type(&p->form, map, pair->key, "a map");
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        hr__form_add_key(&keys, more[i]);
    for (int i = 0; i < HR_CEDAR_HINTS; i++)
        hr__form_add_key(&keys, hr__cedar_hints[i]);
    HR_TRY(hr__form_check_keys(&p->form, map, &keys));
    HR_TRY(need_text(p, map, "name", &entry->name));
    variant = hr__doc_get(map, "variant");
    if (variant != NULL)
        HR_TRY(read_variant(p, variant, "variant", &entry->variant));
    HR_TRY(read_context(p, map, entry));
    HR_TRY(read_fused(p, map, entry));
    return read_hints(p, map, entry);
}

static enum hr_err read_entries(const struct parse *p, const struct hr_doc *map)
{
    struct hr_cedar_section *section = p->section;
    const struct hr_doc *pipes = NULL;

    HR_TRY(hr__form_need(&p->form, map, "pipes", HR_DOC_MAP, "a map", &pipes));
    if (pipes->as.map.count == 0 || pipes->as.map.count > HR_CEDAR_ENTRIES_MAX)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, pipes,
                            "\"pipes\" has %zu pipes; 1 to %d", pipes->as.map.count,
                            HR_CEDAR_ENTRIES_MAX);
    section->entries = hr__calloc(pipes->as.map.count, sizeof *section->entries);
    if (section->entries == NULL)
        return hr__fail(p->form.error, HR_ERR_MEMORY, "out of memory");
    for (size_t i = 0; i < pipes->as.map.count; i++) {
        HR_TRY(read_entry(p, &pipes->as.map.pairs[i], &section->entries[i]));
        section->entry_count++;
    }
    return HR_OK;
}

/* ---- the graph ---- */

/* The one pipe behind this one, or -1: cedar's graphs are chains, their keys strings. */
static enum hr_err
read_successor(const struct parse *p, const struct hr_doc_pair *pair, int64_t *ret_next)
{
    const struct hr_doc *value = pair->value;
    int64_t next = -1;

    if (value->kind == HR_DOC_INT && value->as.integer >= 0 &&
        value->as.integer <= HR_CEDAR_ID_MAX) {
        next = value->as.integer;
    } else if (value->kind == HR_DOC_STRING &&
               strchr(value->as.string.text, ',') != NULL) {
        return HR_FORM_FAIL(&p->form, HR_ERR_UNSUPPORTED, value,
                            "pipe %s feeds several pipes; only chains are supported",
                            pair->key);
    } else if (value->kind != HR_DOC_NULL &&
               !(value->kind == HR_DOC_STRING &&
                 (value->as.string.length == 0 ||
                  hr__cedar_id(value->as.string.text, &next)))) {
        return hr__form_wrong_type(&p->form, value, pair->key,
                                   "the id of the next pipe, or ''");
    }
    if (next >= 0 && hr__cedar_entry(p->section, next) == NULL)
        return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, value,
                            "pipe %lld is not under \"pipes\"", (long long)next);
    *ret_next = next;
    return HR_OK;
}

struct link {
    int64_t id, next;
    bool is_next; /* of another */
};

static const struct link *find_link(const struct link *links, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++)
        if (links[i].id == id)
            return &links[i];
    return NULL;
}

/* From the one pipe that is behind none, through all. */
static enum hr_err
follow(const struct parse *p, const struct hr_doc *graph, struct link *links)
{
    struct hr_cedar_section *section = p->section;
    size_t count = graph->as.map.count;
    const struct link *at = NULL;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            links[i].is_next = links[i].is_next || links[k].next == links[i].id;
    for (size_t i = 0; i < count; i++)
        if (!links[i].is_next)
            at = &links[i];
    while (at != NULL && section->chain_count < count) {
        section->chain[section->chain_count++] = at->id;
        if (at->next < 0)
            break;
        at = find_link(links, count, at->next);
    }
    if (at == NULL || at->next >= 0 || section->chain_count != count)
        return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, graph,
                            "\"graph\" is not one chain from a source to an output: %zu "
                            "of its %zu pipes are on the way",
                            section->chain_count, count);
    return HR_OK;
}

static enum hr_err read_graph(const struct parse *p, const struct hr_doc *map)
{
    struct link links[HR_CEDAR_ENTRIES_MAX];
    const struct hr_doc *graph = NULL;

    HR_TRY(hr__form_get(&p->form, map, "graph", HR_DOC_MAP, "a map", &graph));
    if (graph == NULL)
        return HR_OK;
    if (graph->as.map.count == 0 || graph->as.map.count > HR_CEDAR_ENTRIES_MAX)
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, graph,
                            "\"graph\" has %zu pipes; 1 to %d", graph->as.map.count,
                            HR_CEDAR_ENTRIES_MAX);
    for (size_t i = 0; i < graph->as.map.count; i++) {
        const struct hr_doc_pair *pair = &graph->as.map.pairs[i];

        links[i] = (struct link){.id = 0};
        HR_TRY(hr__cedar_key(&p->form, pair, &links[i].id));
        if (hr__cedar_entry(p->section, links[i].id) == NULL)
            return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, pair,
                                "pipe %s is not under \"pipes\"", pair->key);
        HR_TRY(read_successor(p, pair, &links[i].next));
    }
    return follow(p, graph, links);
}

/* How often the pipe runs: in the chain, and fused into others. */
static size_t count_uses(const struct hr_cedar_section *section, int64_t id)
{
    size_t uses = 0;

    for (size_t i = 0; i < section->chain_count; i++)
        uses += section->chain[i] == id;
    for (size_t i = 0; i < section->entry_count; i++)
        for (size_t k = 0; k < section->entries[i].fused_count; k++)
            uses += section->entries[i].fused[k] == id;
    return uses;
}

static enum hr_err check_fused(const struct parse *p, const struct hr_cedar_entry *entry)
{
    for (size_t k = 0; k < entry->fused_count; k++) {
        const struct hr_cedar_entry *fused = hr__cedar_entry(p->section, entry->fused[k]);

        if (fused == NULL || fused->fused_count > 0)
            return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, entry->at, "fused pipe %lld %s",
                                (long long)entry->fused[k],
                                fused == NULL ? "is not under \"pipes\""
                                              : "is a fused pipe itself");
    }
    return HR_OK;
}

static enum hr_err check_uses(const struct parse *p)
{
    const struct hr_cedar_section *section = p->section;

    for (size_t i = 0; i < section->entry_count; i++)
        HR_TRY(check_fused(p, &section->entries[i]));
    for (size_t i = 0; i < section->entry_count && section->chain_count > 0; i++) {
        const struct hr_cedar_entry *entry = &section->entries[i];

        if (count_uses(section, entry->id) != 1)
            return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, entry->at,
                                "pipe %lld (%.60s) must be in \"graph\" or in one "
                                "\"fused_pipes\", and is in %zu places",
                                (long long)entry->id, entry->name,
                                count_uses(section, entry->id));
    }
    return HR_OK;
}

/* ---- the file ---- */

static enum hr_err read_section(struct parse *p, const struct hr_doc *root,
                                const char *key, struct hr_cedar_section *section)
{
    const struct hr_doc *map = NULL, *drivers = NULL;
    struct hr_form_keys keys = {.count = 0};

    section->drivers = HR_CEDAR_UNSET;
    HR_TRY(hr__form_get(&p->form, root, key, HR_DOC_MAP, "a map", &map));
    if (map == NULL)
        return HR_OK;
    p->section = section;
    hr__form_add_key(&keys, "graph");
    hr__form_add_key(&keys, "pipes");
    hr__form_add_key(&keys, "n_local_workers");
    HR_TRY(hr__form_check_keys(&p->form, map, &keys));
    HR_TRY(hr__form_get(&p->form, map, "n_local_workers", HR_DOC_INT, "a whole number",
                        &drivers));
    if (drivers != NULL && (drivers->as.integer < 1 || drivers->as.integer > NUMBER_MAX))
        return HR_FORM_FAIL(&p->form, HR_ERR_RANGE, drivers,
                            "\"n_local_workers\" must be 1 to %d, not %lld", NUMBER_MAX,
                            (long long)drivers->as.integer);
    if (drivers != NULL)
        section->drivers = drivers->as.integer;
    HR_TRY(read_entries(p, map));
    HR_TRY(read_graph(p, map));
    return check_uses(p);
}

static enum hr_err
read_plan(struct parse *p, const struct hr_doc *root, struct hr_cedar_plan *plan)
{
    struct hr_form_keys keys = {.count = 0};

    if (root->kind == HR_DOC_MAP) {
        hr__form_add_key(&keys, "physical_plan");
        hr__form_add_key(&keys, "logical_plan");
        HR_TRY(hr__form_check_keys(&p->form, root, &keys));
        HR_TRY(read_section(p, root, "logical_plan", &plan->logical));
        HR_TRY(read_section(p, root, "physical_plan", &plan->physical));
    }
    if (plan->logical.entry_count == 0 && plan->physical.entry_count == 0)
        return HR_FORM_FAIL(&p->form, HR_ERR_FORMAT, root,
                            "this is no plan of cedar: the key \"physical_plan\" or "
                            "\"logical_plan\" is missing");
    return HR_OK;
}

enum hr_err hr__cedar_plan_parse(const char *text, size_t bytes, const char *name,
                                 struct hr_cedar_plan *ret_plan, struct hr_error *reterr)
{
    struct hr_cedar_plan plan = {.doc = NULL};
    struct parse parse = {
        {name, reterr},
        NULL
    };
    enum hr_err code;

    HR_TRY(hr__doc_parse(text, bytes, name, &plan.doc, reterr));
    code = read_plan(&parse, plan.doc, &plan);
    if (code == HR_OK)
        *ret_plan = plan;
    else
        hr__cedar_plan_finish(&plan);
    return code;
}

void hr__cedar_plan_finish(struct hr_cedar_plan *plan)
{
    hr__free(plan->logical.entries);
    hr__free(plan->physical.entries);
    hr__doc_destroy(plan->doc);
    *plan = (struct hr_cedar_plan){.doc = NULL};
}
