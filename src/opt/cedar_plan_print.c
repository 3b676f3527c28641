/*
 * opt/cedar_plan_print.c - cedar's plans as YAML: keys are numbers, successors strings,
 * as cedar expects them.
 */
#include <string.h>

#include "core/doc.h"
#include "core/str.h"
#include "opt/cedar_file.h"

static void add_text(struct hr_str *out, const char *key, const char *text)
{
    hr__str_add(out, key);
    hr__str_add_json(out, text, strlen(text));
}

static void add_context(const struct hr_cedar_entry *entry, struct hr_str *out)
{
    hr__str_addf(out, ", variant_ctx: {variant_type: %s",
                 hr__cedar_variants[entry->variant]);
    for (int i = 0; i < HR_CEDAR_NUMBERS; i++) {
        int64_t number = entry->numbers[i];

        if (number == HR_CEDAR_UNSET)
            continue;
        if (i >= HR_CEDAR_USE_THREADS)
            hr__str_addf(out, ", %s: %s", hr__cedar_numbers[i],
                         number != 0 ? "true" : "false");
        else
            hr__str_addf(out, ", %s: %lld", hr__cedar_numbers[i], (long long)number);
    }
    hr__str_add(out, "}");
}

static void add_depends(const struct hr_doc *list, struct hr_str *out)
{
    hr__str_add(out, ", depends_on: [");
    for (size_t i = 0; i < list->as.list.count; i++) {
        const struct hr_doc *item = list->as.list.items[i];

        hr__str_add(out, i > 0 ? ", " : "");
        if (item->kind == HR_DOC_INT)
            hr__str_addf(out, "%lld", (long long)item->as.integer);
        else
            hr__str_add_json(out, item->as.string.text, item->as.string.length);
    }
    hr__str_add(out, "]");
}

static void add_hints(const struct hr_cedar_entry *entry, struct hr_str *out)
{
    const char *comma = "";

    if (entry->tag != NULL)
        add_text(out, ", tag: ", entry->tag);
    for (int i = 0; i < HR_CEDAR_HINTS; i++)
        if (entry->hints[i] >= 0)
            hr__str_addf(out, ", %s: %s", hr__cedar_hints[i],
                         entry->hints[i] != 0 ? "true" : "false");
    if (entry->depends_on != NULL)
        add_depends(entry->depends_on, out);
    if (entry->variants == 0)
        return;
    hr__str_add(out, ", variants: [");
    for (int v = HR_CEDAR_INPROCESS; v < HR_CEDAR_VARIANTS; v++)
        if ((entry->variants >> v & 1) != 0) {
            hr__str_addf(out, "%s%s", comma, hr__cedar_variants[v]);
            comma = ", ";
        }
    hr__str_add(out, "]");
}

static void add_entry(const struct hr_cedar_entry *entry, struct hr_str *out)
{
    hr__str_addf(out, "    %lld: ", (long long)entry->id);
    add_text(out, "{name: ", entry->name);
    if (entry->variant != HR_CEDAR_NONE)
        hr__str_addf(out, ", variant: %s", hr__cedar_variants[entry->variant]);
    if (entry->fused_count > 0) {
        hr__str_add(out, ", fused_pipes: [");
        for (size_t i = 0; i < entry->fused_count; i++)
            hr__str_addf(out, "%s%lld", i > 0 ? ", " : "", (long long)entry->fused[i]);
        hr__str_add(out, "]");
    }
    if (entry->has_context)
        add_context(entry, out);
    add_hints(entry, out);
    hr__str_add(out, "}\n");
}

static void
add_section(const struct hr_cedar_section *section, const char *key, struct hr_str *out)
{
    if (section->entry_count == 0)
        return;
    hr__str_addf(out, "%s:\n", key);
    if (section->chain_count > 0) {
        hr__str_add(out, "  graph: {");
        for (size_t i = 0; i + 1 < section->chain_count; i++)
            hr__str_addf(out, "%lld: '%lld', ", (long long)section->chain[i],
                         (long long)section->chain[i + 1]);
        hr__str_addf(out, "%lld: ''}\n",
                     (long long)section->chain[section->chain_count - 1]);
    }
    if (section->drivers != HR_CEDAR_UNSET)
        hr__str_addf(out, "  n_local_workers: %lld\n", (long long)section->drivers);
    hr__str_add(out, "  pipes:\n");
    for (size_t i = 0; i < section->entry_count; i++)
        add_entry(&section->entries[i], out);
}

void hr__cedar_plan_print(const struct hr_cedar_plan *plan, struct hr_str *out)
{
    add_section(&plan->physical, "physical_plan", out);
    add_section(&plan->logical, "logical_plan", out);
}
