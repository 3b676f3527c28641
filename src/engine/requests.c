/*
 * engine/requests.c - describes a segment to its worker process: which values of the row
 * are sent, which steps run there, and which values come back. Read-only once made.
 *
 * Slots of the row map to slots of the request. Inputs are what the steps read before any
 * of them made it. Results are what they made and a later step or the batch uses; a value
 * that the next step edits comes back as its description.
 */
#include <assert.h>
#include <string.h>

#include "core/str.h"
#include "engine/program.h"

struct packer {
    struct hr_program *p;
    struct hr_segment *segment;
    const struct hr_graph *graph;
    struct hr_proc_program *program;
    uint16_t *known; /* slot of the row -> slot of the request + 1 */
    bool *made;      /* slot of the row: a step so far has made it */
    bool failed;     /* out of memory */
};

static void *zalloc(struct packer *k, size_t count, size_t size)
{
    void *memory = hr__arena_zalloc(&k->p->arena, (count + 1) * size);

    k->failed = k->failed || memory == NULL;
    return memory;
}

static const struct hr_graph_node *node_of(const struct packer *k, size_t at)
{
    return &k->graph->nodes[hr__program_step(k->p, at)->node];
}

static bool lists(const uint16_t *list, size_t count, uint16_t slot)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == slot)
            return true;
    return false;
}

/* ---- what a step reads and writes ---- */

static bool reads(enum hr_param_access access)
{
    return access == HR_ACCESS_READ || access == HR_ACCESS_UPDATE ||
           access == HR_ACCESS_TAKE;
}

static bool writes(enum hr_param_access access)
{
    return access == HR_ACCESS_UPDATE || access == HR_ACCESS_WRITE;
}

static const struct hr_field *find_value(const struct hr_schema *schema, int value)
{
    for (size_t i = 0; i < schema->count; i++)
        if (schema->fields[i].slot == value)
            return &schema->fields[i];
    return NULL;
}

/* The field of a value where it enters the node; an alias has its origin's field. */
static const struct hr_field *
field_before(const struct packer *k, const struct hr_graph_node *n, int value)
{
    const struct hr_field *field = NULL;

    for (size_t i = 0; i < n->alias_count; i++)
        if (n->aliases[i].to == value)
            value = n->aliases[i].from;
    for (size_t i = 0; i < n->input_count && field == NULL; i++)
        field = find_value(&k->graph->nodes[n->inputs[i]].schema, value);
    return field;
}

/* Whether the record at this step is the parent of an expansion, which reads all its
 * fields. */
static bool is_parent(const struct packer *k, size_t at)
{
    const struct hr_step *step = hr__program_step(k->p, at);

    return at == k->p->step_count && step->code == NULL;
}

/* ---- inputs ---- */

static void add_input(struct packer *k, const struct hr_field **fields, uint16_t slot,
                      const struct hr_field *field)
{
    if (k->made[slot] || k->known[slot] != 0)
        return;
    assert(field != NULL);
    k->segment->inputs[k->program->input_count] = slot;
    fields[k->program->input_count++] = field;
    k->known[slot] = (uint16_t)++k->program->slot_count;
}

static void step_inputs(struct packer *k, const struct hr_field **fields, size_t at)
{
    const struct hr_step *step = hr__program_step(k->p, at);
    const struct hr_graph_node *n = node_of(k, at);

    /* Aliases of the first step are made before anything is sent. */
    for (size_t i = 0; at > k->segment->from && i < step->alias_count; i++) {
        add_input(k, fields, step->alias[2 * i], field_before(k, n, n->aliases[i].from));
        k->made[step->alias[2 * i + 1]] = true;
    }
    for (size_t i = 0; i < step->field_count; i++)
        if (reads(n->field_access[i]))
            add_input(k, fields, step->fields[i],
                      field_before(k, n, hr__graph_bound_value(k->graph, n, i)));
    for (size_t f = 0; is_parent(k, at) && f < k->p->out_count; f++)
        add_input(k, fields, k->p->out[f].slot, k->p->out[f].field);
    for (size_t i = 0; i < step->field_count; i++)
        if (writes(n->field_access[i]))
            k->made[step->fields[i]] = true;
}

static void pack_inputs(struct packer *k)
{
    const struct hr_field **fields =
        zalloc(k, k->p->slot_count, sizeof(struct hr_field *));

    k->segment->inputs = zalloc(k, k->p->slot_count, sizeof(uint16_t));
    if (k->failed)
        return;
    for (size_t i = k->segment->from; i < k->segment->to; i++)
        step_inputs(k, fields, i);
    k->program->input_fields = fields;
}

static bool writes_slot(const struct hr_step *step, uint16_t slot)
{
    for (size_t i = 0; i < step->field_count; i++)
        if (step->fields[i] == slot && writes(step->access[i]))
            return true;
    return false;
}

/* Whether a step of the segment needs the input made: user code does, since the threads
 * on this side decode in parallel; an op makes it from a description. But what a step
 * makes and does not write does not come back, so it must be made before it is sent. */
static bool is_made_here(const struct packer *k, uint16_t slot)
{
    bool made = false;

    for (size_t i = k->segment->from; i < k->segment->to; i++) {
        const struct hr_step *step = hr__program_step(k->p, i);

        made = made || lists(step->before, step->before_count, slot);
        if (made && step->code != NULL)
            return true;
        if (writes_slot(step, slot))
            return false;
    }
    return made && (hr__program_result(k->p, slot) != 0 ||
                    hr__program_touches(k->p, k->segment->to, slot));
}

static void pack_made(struct packer *k)
{
    struct hr_segment *segment = k->segment;

    segment->made = zalloc(k, k->program->input_count, sizeof *segment->made);
    for (size_t i = 0; !k->failed && i < k->program->input_count; i++)
        if (is_made_here(k, segment->inputs[i]))
            segment->made[segment->made_count++] = segment->inputs[i];
}

/* ---- steps ---- */

static uint16_t number(struct packer *k, uint16_t slot)
{
    if (k->known[slot] == 0)
        k->known[slot] = (uint16_t)++k->program->slot_count;
    return (uint16_t)(k->known[slot] - 1);
}

static struct hr_proc_slots numbers(struct packer *k, const uint16_t *slots, size_t count)
{
    uint16_t *to = zalloc(k, count, sizeof *to);

    for (size_t i = 0; to != NULL && i < count; i++)
        to[i] = number(k, slots[i]);
    return (struct hr_proc_slots){to, to != NULL ? count : 0};
}

static void
pack_code(struct packer *k, const struct hr_step *step, struct hr_proc_step *packed)
{
    const struct hr_code_use *use = step->code;
    const struct hr_field **fields = zalloc(k, use->input_count, sizeof *fields);

    if (k->failed)
        return;
    for (size_t i = 0; i < use->input_count; i++)
        fields[i] = &use->fields[i];
    packed->code = use->name;
    packed->input_count = use->input_count;
    packed->output_count = use->output_count;
    packed->inputs = numbers(k, step->fields, use->input_count).at;
    packed->outputs = numbers(k, step->fields + use->input_count, use->output_count).at;
    packed->input_fields = fields;
    packed->output_fields = use->output_fields;
}

static const char *canonical_text(struct packer *k, const struct hr_graph_node *n)
{
    struct hr_str text;
    char *copy;

    hr__str_init(&text);
    hr__doc_print_canonical(n->canonical, &text);
    copy = hr__str_ok(&text) ? zalloc(k, text.length, 1) : NULL;
    if (copy != NULL)
        memcpy(copy, hr__str_text(&text), text.length);
    k->failed = k->failed || copy == NULL;
    hr__str_finish(&text);
    return copy;
}

static void pack_op(struct packer *k, const struct hr_step *step, size_t at,
                    struct hr_proc_step *packed)
{
    const struct hr_graph_node *n = node_of(k, at);
    uint16_t *parents = zalloc(k, k->p->out_count, sizeof *parents);

    assert(hr__op_is_portable(step->op));
    packed->op = step->op->name;
    packed->params = canonical_text(k, n);
    packed->input = n->input_count > 0 ? &k->graph->nodes[n->inputs[0]].schema : NULL;
    packed->output = &n->schema;
    packed->fields = numbers(k, step->fields, step->field_count);
    for (size_t f = 0; !k->failed && f < k->p->out_count; f++)
        parents[f] = k->p->out[f].slot;
    if (!k->failed && is_parent(k, at))
        packed->parents = numbers(k, parents, k->p->out_count);
}

static void pack_step(struct packer *k, struct hr_proc_step *packed, size_t at)
{
    const struct hr_step *step = hr__program_step(k->p, at);

    packed->node = k->graph->nodes[step->node].name;
    packed->draw_id = step->draw_id;
    packed->when = step->when;
    packed->when_count = step->when_count;
    packed->kind = step->op->kind;
    packed->number = step->node;
    if (at > k->segment->from)
        packed->alias = numbers(k, step->alias, 2 * (size_t)step->alias_count);
    if (step->code != NULL)
        pack_code(k, step, packed);
    else
        pack_op(k, step, at, packed);
    packed->before = numbers(k, step->before, step->before_count);
    packed->after = numbers(k, step->after, step->after_count);
    packed->early = step->early;
    packed->clear = numbers(k, step->clear, step->clear_count);
}

/* ---- results ---- */

struct results {
    uint16_t *slots;
    const struct hr_field **fields;
    uint8_t *forms;
};

/* How the slot comes back: by the first later step that uses it, or the end of the stage.
 * Only where the graph has a deferred value may the worker process send one. */
static enum hr_proc_form
form_of(const struct packer *k, uint16_t slot, const struct hr_field *field)
{
    if (!hr__field_may_defer(field))
        return HR_PROC_MADE;
    for (size_t i = k->segment->to; i < k->p->step_count; i++) {
        const struct hr_step *step = hr__program_step(k->p, i);

        if (lists(step->alias, 2 * (size_t)step->alias_count, slot))
            return HR_PROC_DESCRIBED;
        if (!lists(step->fields, step->field_count, slot))
            continue;
        if (lists(step->before, step->before_count, slot))
            return HR_PROC_MADE_EARLY;
        return step->op->traits & HR_TRAIT_DEFERS ? HR_PROC_DESCRIBED : HR_PROC_MADE;
    }
    return k->p->plan->describes && hr__program_result(k->p, slot) != 0
               ? HR_PROC_DESCRIBED
               : HR_PROC_MADE_EARLY;
}

static void add_result(struct packer *k, struct results *r, uint16_t slot,
                       const struct hr_field *field)
{
    size_t at = 0;

    if (hr__program_result(k->p, slot) == 0 &&
        !hr__program_touches(k->p, k->segment->to, slot))
        return;
    while (at < k->program->result_count && k->segment->results[at] != slot)
        at++;
    if (at == k->program->result_count)
        k->program->result_count++;
    assert(field != NULL);
    k->segment->results[at] = slot;
    r->slots[at] = number(k, slot);
    r->fields[at] = field; /* of the last step that writes it */
    r->forms[at] = (uint8_t)form_of(k, slot, field);
}

static void step_results(struct packer *k, struct results *r, size_t at)
{
    const struct hr_step *step = hr__program_step(k->p, at);
    const struct hr_graph_node *n = node_of(k, at);

    for (size_t i = 0; at > k->segment->from && i < step->alias_count; i++) {
        const struct hr_field *field = find_value(&n->schema, n->aliases[i].to);

        add_result(k, r, step->alias[2 * i + 1],
                   field != NULL ? field : field_before(k, n, n->aliases[i].to));
    }
    for (size_t i = 0; i < step->field_count; i++)
        if (writes(n->field_access[i]))
            add_result(k, r, step->fields[i],
                       find_value(&n->schema, hr__graph_bound_value(k->graph, n, i)));
}

/* The results of an expansion: user code fills its outputs for each child, an op all
 * fields. */
static void child_results(struct packer *k, struct results *r)
{
    const struct hr_step *step = &k->p->expand;
    const struct hr_code_use *use = step->code;

    for (size_t f = 0; f < k->p->child_count; f++) {
        assert(use == NULL || f < use->output_count);
        k->segment->results[f] = k->p->children[f].slot;
        r->fields[f] = use != NULL ? use->output_fields[f] : k->p->children[f].field;
        r->slots[f] = use != NULL ? number(k, step->fields[use->input_count + f]) : 0;
    }
    k->program->result_count = k->p->child_count;
}

static void pack_results(struct packer *k)
{
    size_t most = k->p->slot_count + k->p->child_count;
    struct results r = {zalloc(k, most, sizeof *r.slots),
                        zalloc(k, most, sizeof *r.fields),
                        zalloc(k, most, sizeof *r.forms)};

    k->segment->results = zalloc(k, most, sizeof(uint16_t));
    if (k->failed)
        return;
    if (k->segment->to > k->p->step_count)
        child_results(k, &r);
    for (size_t i = k->segment->from;
         k->segment->to <= k->p->step_count && i < k->segment->to; i++)
        step_results(k, &r, i);
    k->program->results = r.slots;
    k->program->result_fields = r.fields;
    k->program->forms = r.forms;
}

bool hr__segment_pack(struct hr_program *p, struct hr_segment *segment,
                      const struct hr_graph *graph)
{
    struct packer k = {.p = p, .segment = segment, .graph = graph};
    size_t count = (size_t)(segment->to - segment->from);
    struct hr_proc_step *steps = zalloc(&k, count, sizeof *steps);

    k.program = segment->program = zalloc(&k, 1, sizeof *k.program);
    k.known = zalloc(&k, p->slot_count, sizeof *k.known);
    k.made = zalloc(&k, p->slot_count, sizeof *k.made);
    if (k.failed)
        return false;
    pack_inputs(&k);
    pack_made(&k);
    for (size_t i = 0; !k.failed && i < count; i++)
        pack_step(&k, &steps[i], segment->from + i);
    k.program->steps = steps;
    k.program->step_count = count;
    k.program->nodes = (uint32_t)graph->count;
    if (!k.failed)
        pack_results(&k);
    return !k.failed;
}
