/*
 * proc/request.c - the layout of a request.
 */
#include "proc/request.h"

#include <assert.h>

enum hr_err
hr__proc_map_init(struct hr_proc_map *map, const struct hr_proc_program *program)
{
    *map = (struct hr_proc_map){.nodes = program->nodes};
    map->expand = program->step_count > 0 &&
                  program->steps[program->step_count - 1].kind == HR_OP_EXPAND;
    HR_TRY(hr__wire_layout_init(&map->inputs, program->input_fields, program->input_count,
                                true));
    return hr__wire_layout_init(&map->results, program->result_fields,
                                program->result_count, !map->expand);
}

void hr__proc_map_finish(struct hr_proc_map *map)
{
    hr__wire_layout_finish(&map->inputs);
    hr__wire_layout_finish(&map->results);
}

void hr__proc_map_lay(struct hr_proc_map *map, size_t count, size_t id_bytes)
{
    size_t end;

    assert(count <= HR_PROC_COUNT_MAX && id_bytes <= HR_WIRE_ID_BYTES_MAX);
    map->id_bytes = id_bytes;
    hr__wire_lay(&map->inputs, HR_PROC_HEAD, count, id_bytes);
    map->times = HR_PROC_HEAD;
    map->status = hr__wire_align(map->times + map->nodes * sizeof(struct hr_proc_time));
    end = hr__wire_align(map->status + count * sizeof(struct hr_proc_status));
    hr__wire_lay(&map->results, end, map->expand ? 0 : count, 0);
}
