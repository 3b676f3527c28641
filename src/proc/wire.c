/*
 * proc/wire.c - layouts, and the request as bytes.
 */
#include "proc/wire.h"

#include <string.h>

#include "core/alloc.h"

const struct hr_field *
hr__proc_slot_field(const struct hr_proc_program *program, size_t slot)
{
    if (slot < program->input_count)
        return program->input_fields[slot];
    for (size_t s = 0; s < program->step_count; s++) {
        const struct hr_proc_step *step = &program->steps[s];

        for (size_t i = 0; i < step->output_count; i++)
            if (step->outputs[i] == slot)
                return step->output_fields[i];
    }
    return NULL;
}

static void lane_init(struct hr_proc_lane *lane, const struct hr_field *field, bool wide)
{
    int64_t bytes = field->kind == HR_FIELD_TENSOR ? hr__field_bytes(field) : -1;

    lane->field = field;
    lane->bytes = !wide && bytes > 0 && bytes <= HR_PROC_COLUMN_MAX ? (size_t)bytes : 0;
}

enum hr_err
hr__proc_map_init(struct hr_proc_map *map, const struct hr_proc_program *program)
{
    struct hr_proc_lane *lanes =
        hr__calloc(program->input_count + program->result_count + 1, sizeof *lanes);

    if (lanes == NULL)
        return HR_ERR_MEMORY;
    map->inputs = lanes;
    map->results = lanes + program->input_count;
    map->input_count = program->input_count;
    map->result_count = program->result_count;
    map->expand = program->step_count > 0 &&
                  program->steps[program->step_count - 1].kind == HR_OP_EXPAND;
    for (size_t i = 0; i < map->input_count; i++)
        lane_init(&map->inputs[i], program->input_fields[i], false);
    for (size_t i = 0; i < map->result_count; i++)
        lane_init(&map->results[i], hr__proc_slot_field(program, program->results[i]),
                  map->expand);
    return HR_OK;
}

void hr__proc_map_finish(struct hr_proc_map *map)
{
    hr__free(map->inputs);
    map->inputs = map->results = NULL;
}

/* Columns one after the other, then the rows of descriptors; returns the end. */
static size_t
lay_lanes(struct hr_proc_lane *lanes, size_t lane_count, size_t at, size_t count)
{
    size_t wide = 0, rows;

    for (size_t i = 0; i < lane_count; i++) {
        if (lanes[i].bytes == 0)
            continue;
        lanes[i].at = at;
        lanes[i].step = lanes[i].bytes;
        at = hr__proc_align(at + count * lanes[i].bytes);
    }
    rows = at;
    for (size_t i = 0; i < lane_count; i++)
        if (lanes[i].bytes == 0)
            lanes[i].at = rows + wide++ * sizeof(struct hr_proc_value);
    for (size_t i = 0; i < lane_count; i++)
        if (lanes[i].bytes == 0)
            lanes[i].step = wide * sizeof(struct hr_proc_value);
    return hr__proc_align(rows + count * wide * sizeof(struct hr_proc_value));
}

void hr__proc_map_lay(struct hr_proc_map *map, size_t count)
{
    map->ids = HR_PROC_HEAD;
    map->in_end =
        lay_lanes(map->inputs, map->input_count,
                  hr__proc_align(map->ids + count * sizeof(struct hr_record_id)), count);
    map->status = HR_PROC_HEAD;
    map->out_end = lay_lanes(
        map->results, map->expand ? 0 : map->result_count,
        hr__proc_align(map->status + count * sizeof(struct hr_proc_status)), count);
}

/* ---- the request ---- */

struct program_head {
    uint32_t field_bytes, value_bytes, id_bytes, error_bytes;
    char library[32];
    uint64_t slot_count, input_count, step_count, result_count;
};

struct step_head {
    uint64_t draw_id, kind;
    uint64_t input_count, output_count, code_bytes, node_bytes; /* texts with their NUL */
};

static struct program_head own_head(void)
{
    struct program_head head = {.field_bytes = sizeof(struct hr_field),
                                .value_bytes = sizeof(struct hr_proc_value),
                                .id_bytes = sizeof(struct hr_record_id),
                                .error_bytes = sizeof(struct hr_error)};

    strncpy(head.library, hr_version(), sizeof head.library - 1);
    return head;
}

void hr__proc_program_write(const struct hr_proc_program *program, struct hr_str *out)
{
    struct program_head head = own_head();

    head.slot_count = program->slot_count;
    head.input_count = program->input_count;
    head.step_count = program->step_count;
    head.result_count = program->result_count;
    hr__str_add_bytes(out, &head, sizeof head);
    for (size_t i = 0; i < program->input_count; i++)
        hr__str_add_bytes(out, program->input_fields[i], sizeof(struct hr_field));
    for (size_t s = 0; s < program->step_count; s++) {
        const struct hr_proc_step *step = &program->steps[s];
        struct step_head at = {step->draw_id,          (uint64_t)step->kind,
                               step->input_count,      step->output_count,
                               strlen(step->code) + 1, strlen(step->node) + 1};

        hr__str_add_bytes(out, &at, sizeof at);
        hr__str_add_bytes(out, step->code, at.code_bytes);
        hr__str_add_bytes(out, step->node, at.node_bytes);
        hr__str_add_bytes(out, step->inputs, step->input_count * sizeof(uint16_t));
        hr__str_add_bytes(out, step->outputs, step->output_count * sizeof(uint16_t));
        for (size_t i = 0; i < step->output_count; i++)
            hr__str_add_bytes(out, step->output_fields[i], sizeof(struct hr_field));
    }
    hr__str_add_bytes(out, program->results, program->result_count * sizeof(uint16_t));
}

struct program_reader {
    const char *at;
    size_t left;
    struct hr_arena *arena;
    enum hr_err code; /* of the first that failed */
};

static bool read_bytes(struct program_reader *reader, void *to, size_t bytes)
{
    if (reader->code == HR_OK && bytes > reader->left)
        reader->code = HR_ERR_FORMAT;
    if (reader->code != HR_OK)
        return false;
    if (bytes > 0)
        memcpy(to, reader->at, bytes);
    reader->at += bytes;
    reader->left -= bytes;
    return true;
}

/* `count` items of `size` bytes in the arena, or NULL. */
static void *read_items(struct program_reader *reader, uint64_t count, size_t size)
{
    void *items;

    if (reader->code == HR_OK && count > reader->left / size)
        reader->code = HR_ERR_FORMAT;
    if (reader->code != HR_OK)
        return NULL;
    items = hr__arena_alloc(reader->arena, (size_t)count * size + 1);
    if (items == NULL)
        reader->code = HR_ERR_MEMORY;
    else
        read_bytes(reader, items, (size_t)count * size);
    return items;
}

static const char *read_text(struct program_reader *reader, uint64_t bytes)
{
    char *text = read_items(reader, bytes, 1);

    if (text != NULL && (bytes == 0 || text[bytes - 1] != '\0'))
        reader->code = HR_ERR_FORMAT;
    return text;
}

static bool field_is_sound(struct hr_field *field)
{
    field->name[sizeof field->name - 1] = '\0';
    if ((unsigned)field->kind > HR_FIELD_STRINGS || field->ndim < 0 ||
        field->ndim > HR_MAX_DIMS)
        return false;
    for (int i = 0; i < field->ndim; i++) {
        field->dims[i].name[HR_DIM_NAME_MAX] = '\0';
        if (field->dims[i].size < HR_DIM_UNKNOWN)
            return false;
    }
    return field->kind == HR_FIELD_BYTES || field->kind == HR_FIELD_STRINGS ||
           hr_dtype_size(field->dtype) > 0;
}

static const struct hr_field *const *
read_fields(struct program_reader *reader, uint64_t count)
{
    struct hr_field *fields = read_items(reader, count, sizeof *fields);
    const struct hr_field **list;

    if (fields == NULL)
        return NULL;
    list = hr__arena_alloc(reader->arena, ((size_t)count + 1) * sizeof *list);
    if (list == NULL) {
        reader->code = HR_ERR_MEMORY;
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (!field_is_sound(&fields[i]))
            reader->code = HR_ERR_FORMAT;
        list[i] = &fields[i];
    }
    return list;
}

static const uint16_t *
read_slots(struct program_reader *reader, uint64_t count, uint64_t slot_count)
{
    uint16_t *slots = read_items(reader, count, sizeof *slots);

    for (size_t i = 0; slots != NULL && i < count; i++)
        if (slots[i] >= slot_count)
            reader->code = HR_ERR_FORMAT;
    return slots;
}

static void read_step(struct program_reader *reader, const struct program_head *program,
                      bool last, struct hr_proc_step *step)
{
    struct step_head head;

    if (!read_bytes(reader, &head, sizeof head))
        return;
    step->draw_id = head.draw_id;
    step->kind = (enum hr_op_kind)head.kind;
    step->input_count = head.input_count;
    step->output_count = head.output_count;
    if (head.input_count > HR_SCHEMA_FIELDS_MAX ||
        head.output_count > HR_SCHEMA_FIELDS_MAX ||
        (head.kind != HR_OP_SOURCE && head.kind != HR_OP_MAP &&
         head.kind != HR_OP_FILTER && (head.kind != HR_OP_EXPAND || !last)))
        reader->code = HR_ERR_FORMAT;
    step->code = read_text(reader, head.code_bytes);
    step->node = read_text(reader, head.node_bytes);
    step->inputs = read_slots(reader, head.input_count, program->slot_count);
    step->outputs = read_slots(reader, head.output_count, program->slot_count);
    step->output_fields = read_fields(reader, head.output_count);
}

/* Values flow forwards: what a step or the results read has been made. */
static bool flows(const struct hr_proc_program *program, struct hr_arena *arena)
{
    bool *made = hr__arena_zalloc(arena, program->slot_count + 1);

    if (made == NULL)
        return false;
    memset(made, 1, program->input_count);
    for (size_t s = 0; s < program->step_count; s++) {
        const struct hr_proc_step *step = &program->steps[s];

        for (size_t i = 0; i < step->input_count; i++)
            if (!made[step->inputs[i]])
                return false;
        for (size_t i = 0; i < step->output_count; i++) {
            if (made[step->outputs[i]])
                return false;
            made[step->outputs[i]] = true;
        }
    }
    for (size_t i = 0; i < program->result_count; i++)
        if (!made[program->results[i]])
            return false;
    return true;
}

static enum hr_err check_head(const struct program_head *head, struct hr_error *reterr)
{
    struct program_head own = own_head();

    if (memcmp(head, &own, offsetof(struct program_head, slot_count)) != 0)
        return hr__fail(reterr, HR_ERR_FORMAT,
                        "the worker process runs another build of headrace (%s) than "
                        "the one that started it (%.31s)",
                        own.library, head->library);
    if (head->slot_count > UINT16_MAX || head->input_count > head->slot_count ||
        head->step_count > UINT16_MAX)
        return hr__fail(reterr, HR_ERR_FORMAT, "the request is malformed");
    return HR_OK;
}

enum hr_err
hr__proc_program_read(const void *bytes, size_t count, struct hr_arena *arena,
                      struct hr_proc_program *ret_program, struct hr_error *reterr)
{
    struct program_reader reader = {bytes, count, arena, HR_OK};
    struct hr_proc_program program = {0};
    struct hr_proc_step *steps;
    struct program_head head = {0};

    if (read_bytes(&reader, &head, sizeof head))
        HR_TRY(check_head(&head, reterr));
    program.slot_count = head.slot_count;
    program.input_count = head.input_count;
    program.step_count = head.step_count;
    program.result_count = head.result_count;
    program.input_fields = read_fields(&reader, head.input_count);
    steps = hr__arena_zalloc(arena, (head.step_count + 1) * sizeof *steps);
    if (steps == NULL)
        reader.code = HR_ERR_MEMORY;
    for (size_t s = 0; reader.code == HR_OK && s < head.step_count; s++)
        read_step(&reader, &head, s + 1 == head.step_count, &steps[s]);
    program.steps = steps;
    program.results = read_slots(&reader, head.result_count, head.slot_count);
    if (reader.code == HR_OK && (reader.left != 0 || !flows(&program, arena)))
        reader.code = HR_ERR_FORMAT;
    if (reader.code != HR_OK)
        return hr__fail(reterr, reader.code, "the request %s",
                        reader.code == HR_ERR_MEMORY ? "found no memory"
                                                     : "is malformed");
    *ret_program = program;
    return HR_OK;
}
