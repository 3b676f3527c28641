/*
 * proc/program.c - the program of a worker process as bytes, and back.
 *
 * The parent starts the peer, so what comes is honest; but reading checks every number,
 * since a program may come over a wire one day, and a mistake is found at once.
 */
#include <assert.h>
#include <string.h>

#include "proc/request.h"
#include "wire/record.h"

struct program_head {
    uint32_t wire_version, error_bytes;
    char library[32];
    uint64_t slot_count, input_count, step_count, result_count, nodes;
};

/* Texts have their NUL; 0 bytes: there is none. */
struct step_head {
    uint64_t draw_id;
    uint32_t kind, number, input_count, output_count;
    uint32_t code_bytes, node_bytes, op_bytes, params_bytes;
    uint32_t field_count, parent_count, alias_count, before_count, after_count,
        clear_count;
    uint32_t has_input, has_output; /* schemas */
    uint32_t early, when_count;
};

static struct program_head own_head(void)
{
    struct program_head head = {.wire_version = HR_WIRE_VERSION,
                                .error_bytes = sizeof(struct hr_error)};

    strncpy(head.library, hr_version(), sizeof head.library - 1);
    return head;
}

/* ---- writing ---- */

static uint32_t text_bytes(const char *text)
{
    return text != NULL ? (uint32_t)strlen(text) + 1 : 0;
}

static void write_slots(struct hr_str *out, const uint16_t *slots, size_t count)
{
    hr__str_add_bytes(out, slots, count * sizeof *slots);
}

static void
write_fields(struct hr_str *out, const struct hr_field *const *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hr__wire_field_write(fields[i], out);
}

static void write_step(const struct hr_proc_step *step, struct hr_str *out)
{
    const struct step_head head = {
        .draw_id = step->draw_id,
        .kind = (uint32_t)step->kind,
        .number = step->number,
        .input_count = (uint32_t)step->input_count,
        .output_count = (uint32_t)step->output_count,
        .code_bytes = text_bytes(step->code),
        .node_bytes = text_bytes(step->node),
        .op_bytes = text_bytes(step->op),
        .params_bytes = text_bytes(step->params),
        .field_count = (uint32_t)step->fields.count,
        .parent_count = (uint32_t)step->parents.count,
        .alias_count = (uint32_t)step->alias.count,
        .before_count = (uint32_t)step->before.count,
        .after_count = (uint32_t)step->after.count,
        .clear_count = (uint32_t)step->clear.count,
        .has_input = step->input != NULL,
        .has_output = step->output != NULL,
        .early = step->early,
        .when_count = (uint32_t)step->when_count,
    };

    assert((step->code == NULL) != (step->op == NULL));
    hr__str_add_bytes(out, &head, sizeof head);
    hr__str_add_bytes(out, step->code, head.code_bytes);
    hr__str_add_bytes(out, step->node, head.node_bytes);
    hr__str_add_bytes(out, step->op, head.op_bytes);
    hr__str_add_bytes(out, step->params, head.params_bytes);
    write_slots(out, step->inputs, step->input_count);
    write_slots(out, step->outputs, step->output_count);
    write_fields(out, step->input_fields, step->input_count);
    write_fields(out, step->output_fields, step->output_count);
    write_slots(out, step->fields.at, step->fields.count);
    write_slots(out, step->parents.at, step->parents.count);
    write_slots(out, step->alias.at, step->alias.count);
    write_slots(out, step->before.at, step->before.count);
    write_slots(out, step->after.at, step->after.count);
    write_slots(out, step->clear.at, step->clear.count);
    hr__str_add_bytes(out, step->when, step->when_count * sizeof *step->when);
    if (step->input != NULL)
        hr__wire_schema_write(step->input, out);
    if (step->output != NULL)
        hr__wire_schema_write(step->output, out);
}

void hr__proc_program_write(const struct hr_proc_program *program, struct hr_str *out)
{
    struct program_head head = own_head();

    head.slot_count = program->slot_count;
    head.input_count = program->input_count;
    head.step_count = program->step_count;
    head.result_count = program->result_count;
    head.nodes = program->nodes;
    hr__str_add_bytes(out, &head, sizeof head);
    write_fields(out, program->input_fields, program->input_count);
    for (size_t s = 0; s < program->step_count; s++)
        write_step(&program->steps[s], out);
    write_slots(out, program->results, program->result_count);
    write_fields(out, program->result_fields, program->result_count);
    for (size_t i = 0; i < program->result_count; i++)
        hr__str_add_bytes(out, &(uint8_t){(uint8_t)hr__proc_form(program, i)}, 1);
}

/* ---- reading ---- */

struct program_reader {
    struct hr_wire_input in;
    struct hr_arena *arena;
    uint64_t slot_count;
    bool no_memory;
};

static void fail(struct program_reader *reader)
{
    reader->in.failed = true;
}

/* Room for `count` items of `size` bytes, or NULL. No item takes less than one byte of
 * what is left. */
static void *
room(struct program_reader *reader, uint64_t count, size_t size, size_t least)
{
    void *items;

    if (reader->in.failed || count > reader->in.left / least) {
        fail(reader);
        return NULL;
    }
    items = hr__arena_zalloc(reader->arena, (size_t)count * size + 1);
    if (items == NULL) {
        reader->no_memory = true;
        fail(reader);
    }
    return items;
}

static const char *read_text(struct program_reader *reader, uint32_t bytes)
{
    char *text;

    if (bytes == 0)
        return NULL;
    text = room(reader, bytes, 1, 1);
    if (text == NULL)
        return NULL;
    if (hr__wire_take(&reader->in, text, bytes) && text[bytes - 1] != '\0')
        fail(reader);
    return text;
}

static const struct hr_field *const *
read_fields(struct program_reader *reader, uint64_t count)
{
    struct hr_field *fields = room(reader, count, sizeof *fields, 6);
    const struct hr_field **list = room(reader, count, sizeof *list, 1);

    for (size_t i = 0; !reader->in.failed && i < count; i++) {
        hr__wire_field_read(&reader->in, &fields[i]);
        list[i] = &fields[i];
    }
    return list;
}

static const uint16_t *read_list(struct program_reader *reader, uint64_t count)
{
    uint16_t *slots = room(reader, count, sizeof *slots, sizeof *slots);

    if (slots == NULL)
        return NULL;
    hr__wire_take(&reader->in, slots, (size_t)count * sizeof *slots);
    for (size_t i = 0; i < count; i++)
        if (slots[i] >= reader->slot_count)
            fail(reader);
    return slots;
}

static struct hr_proc_slots read_slots(struct program_reader *reader, uint32_t count)
{
    const uint16_t *list = read_list(reader, count);

    return (struct hr_proc_slots){list, list != NULL ? count : 0};
}

static const struct hr_when *read_when(struct program_reader *reader, uint64_t count)
{
    struct hr_when *when = NULL;

    if (count > 0)
        when = room(reader, count, sizeof *when, sizeof *when);
    if (when != NULL)
        hr__wire_take(&reader->in, when, (size_t)count * sizeof *when);
    return when;
}

static const struct hr_schema *read_schema(struct program_reader *reader, uint32_t has)
{
    struct hr_schema *schema;

    if (has == 0)
        return NULL;
    schema = room(reader, 1, sizeof *schema, 1);
    if (schema != NULL)
        hr__wire_schema_read(&reader->in, schema);
    return schema;
}

static bool head_is_sound(const struct step_head *head, uint64_t nodes, bool last)
{
    bool kind = head->kind == HR_OP_SOURCE || head->kind == HR_OP_MAP ||
                head->kind == HR_OP_FILTER || (head->kind == HR_OP_EXPAND && last);

    return kind && head->input_count <= HR_SCHEMA_FIELDS_MAX &&
           head->output_count <= HR_SCHEMA_FIELDS_MAX && head->number < nodes &&
           (head->code_bytes > 0) != (head->op_bytes > 0) && head->node_bytes > 0 &&
           head->alias_count % 2 == 0 && head->when_count <= HR_WHEN_MAX;
}

static void read_step(struct program_reader *reader, uint64_t nodes, bool last,
                      struct hr_proc_step *step)
{
    struct step_head head;

    if (!hr__wire_take(&reader->in, &head, sizeof head))
        return;
    if (!head_is_sound(&head, nodes, last)) {
        fail(reader);
        return;
    }
    step->draw_id = head.draw_id;
    step->number = head.number;
    step->kind = (enum hr_op_kind)head.kind;
    step->input_count = head.input_count;
    step->output_count = head.output_count;
    step->code = read_text(reader, head.code_bytes);
    step->node = read_text(reader, head.node_bytes);
    step->op = read_text(reader, head.op_bytes);
    step->params = read_text(reader, head.params_bytes);
    step->inputs = read_list(reader, head.input_count);
    step->outputs = read_list(reader, head.output_count);
    step->input_fields = read_fields(reader, head.input_count);
    step->output_fields = read_fields(reader, head.output_count);
    step->fields = read_slots(reader, head.field_count);
    step->parents = read_slots(reader, head.parent_count);
    step->alias = read_slots(reader, head.alias_count);
    step->before = read_slots(reader, head.before_count);
    step->after = read_slots(reader, head.after_count);
    step->early = head.early != 0;
    step->clear = read_slots(reader, head.clear_count);
    step->when = read_when(reader, head.when_count);
    step->when_count = step->when != NULL ? (size_t)head.when_count : 0;
    step->input = read_schema(reader, head.has_input);
    step->output = read_schema(reader, head.has_output);
}

/* What user code reads has been made, by it or an op before; what it makes is new. */
static bool flows(const struct hr_proc_program *program, struct hr_arena *arena)
{
    bool *made = hr__arena_zalloc(arena, program->slot_count + 1);

    if (made == NULL)
        return false;
    memset(made, 1, program->input_count);
    for (size_t s = 0; s < program->step_count; s++) {
        const struct hr_proc_step *step = &program->steps[s];

        for (size_t i = 0; i < step->alias.count; i += 2) {
            if (!made[step->alias.at[i]])
                return false;
            made[step->alias.at[i + 1]] = true;
        }
        for (size_t i = 0; i < step->input_count; i++)
            if (!made[step->inputs[i]])
                return false;
        for (size_t i = 0; i < step->output_count; i++) {
            if (made[step->outputs[i]])
                return false;
            made[step->outputs[i]] = true;
        }
        for (size_t i = 0; i < step->fields.count; i++)
            made[step->fields.at[i]] = true; /* what its op checks when it runs */
    }
    for (size_t i = 0; i < program->result_count; i++)
        if (!made[program->results[i]] &&
            program->steps[program->step_count - 1].kind != HR_OP_EXPAND)
            return false;
    return true;
}

static enum hr_err check_head(const struct program_head *head, struct hr_error *reterr)
{
    struct program_head own = own_head();

    if (memcmp(head, &own, offsetof(struct program_head, slot_count)) != 0)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the worker process runs another build of headrace (%s) than "
                        "the process that started it (%.31s)",
                        own.library, head->library);
    if (head->slot_count > UINT16_MAX || head->input_count > head->slot_count ||
        head->step_count == 0 || head->step_count > UINT16_MAX ||
        head->nodes > HR_PROC_NODES_MAX)
        return hr__fail(reterr, HR_ERR_FORMAT, "the request is malformed");
    return HR_OK;
}

static void read_forms(struct program_reader *reader, struct hr_proc_program *program)
{
    uint8_t *forms = room(reader, program->result_count, sizeof *forms, 1);

    for (size_t i = 0; !reader->in.failed && i < program->result_count; i++)
        if (hr__wire_take(&reader->in, &forms[i], 1) && forms[i] > HR_PROC_DESCRIBED)
            fail(reader);
    program->forms = forms;
}

enum hr_err
hr__proc_program_read(const void *bytes, size_t count, struct hr_arena *arena,
                      struct hr_proc_program *ret_program, struct hr_error *reterr)
{
    struct program_reader reader = {
        .in = {bytes, count, false},
          .arena = arena
    };
    struct hr_proc_program program = {0};
    struct hr_proc_step *steps;
    struct program_head head;

    if (hr__wire_take(&reader.in, &head, sizeof head))
        HR_TRY(check_head(&head, reterr));
    reader.slot_count = program.slot_count = head.slot_count;
    program.input_count = head.input_count;
    program.step_count = head.step_count;
    program.result_count = head.result_count;
    program.nodes = (uint32_t)head.nodes;
    program.input_fields = read_fields(&reader, head.input_count);
    program.steps = steps =
        room(&reader, head.step_count, sizeof *steps, sizeof(struct step_head));
    for (size_t s = 0; !reader.in.failed && s < head.step_count; s++)
        read_step(&reader, head.nodes, s + 1 == head.step_count, &steps[s]);
    program.results = read_list(&reader, head.result_count);
    program.result_fields = read_fields(&reader, head.result_count);
    read_forms(&reader, &program);
    if (reader.no_memory)
        return hr__fail(reterr, HR_ERR_MEMORY, "out of memory for a worker process");
    if (reader.in.failed || reader.in.left != 0 || !flows(&program, arena))
        return hr__fail(reterr, HR_ERR_FORMAT, "the request is malformed");
    *ret_program = program;
    return HR_OK;
}
