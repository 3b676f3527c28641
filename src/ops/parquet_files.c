/*
 * ops/parquet_files.c - the rows of Parquet files, by column.
 */
#include "ops/parquet_files.h"

#include "core/alloc.h"
#include "core/bisect.h"
#include "core/buffer.h"
#include "core/error.h"
#include "ops/parquet_units.h"

/* ---- life ---- */

static void close_part(struct hr_parquet_part *part)
{
    for (size_t i = 0; i < part->span_count; i++) {
        hr_buffer_unref(part->spans[i].unit.buffer);
        hr__free(part->spans[i].damage);
    }
    hr_buffer_unref(part->dictionary.buffer);
    hr_buffer_unref(part->raw.buffer);
    hr__free(part->spans);
    hr__free(part->damage);
    hr__free(part->bounds);
}

static void close_group(struct hr_parquet_files *files, struct hr_parquet_group *group)
{
    for (size_t k = 0; k < files->columns.count; k++)
        close_part(&group->parts[k]);
    hr__free(group->parts);
}

void hr__parquet_files_close(struct hr_parquet_files *files)
{
    for (size_t i = 0; i < files->group_count; i++)
        close_group(files, &files->groups[i]);
    for (size_t i = 0; i < files->file_count; i++)
        hr__store_unmap(&files->files[i].map);
    hr__shards_finish(&files->shards);
    hr__free(files->files);
    hr__free(files->groups);
    if (files->pool != NULL)
        hr_pool_unref(files->pool);
    pthread_mutex_destroy(&files->mutex);
    pthread_cond_destroy(&files->changed);
    hr__free(files);
}

static void drop_bounds(struct hr_parquet_files *files, struct hr_parquet_group *group)
{
    for (size_t k = 0; k < files->columns.count; k++) {
        hr__free(group->parts[k].bounds);
        group->parts[k].bounds = NULL;
    }
}

void hr__parquet_files_skip(struct hr_parquet_files *files, hr_parquet_skips *skips,
                            void *user)
{
    size_t kept = 0;

    files->records = 0;
    for (size_t i = 0; i < files->group_count; i++) {
        struct hr_parquet_group *group = &files->groups[i];

        if (skips(group, user)) {
            close_group(files, group);
            continue;
        }
        drop_bounds(files, group);
        group->first = files->records;
        files->records += group->rows;
        files->groups[kept++] = *group;
    }
    files->skipped = files->group_count - kept;
    files->group_count = kept;
}

/* ---- rows ---- */

/* Where a thread had its last cell of a column from: no lock is needed while rows follow
 * each other. */
struct pin {
    uint64_t first, count; /* records */
    struct hr_buffer *buffer;
};

/* Of one data set. The iterator that the thread belongs to holds the graph, so no other
 * set comes to lie at this address. */
struct hr_parquet_pins {
    const struct hr_parquet_files *files;
    const struct hr_parquet_group *group;
    struct hr_parquet_pins *next;
    struct pin pins[HR_SCHEMA_FIELDS_MAX];
};

static enum hr_err create_pins(void **ret_object, struct hr_error *reterr)
{
    *ret_object = hr__calloc(1, sizeof(struct hr_parquet_pins *));
    return *ret_object != NULL ? HR_OK : hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
}

static void destroy_pins(void *object)
{
    struct hr_parquet_pins **first = object;

    while (*first != NULL) {
        struct hr_parquet_pins *pins = *first;

        *first = pins->next;
        for (size_t i = 0; i < HR_SCHEMA_FIELDS_MAX; i++)
            hr_buffer_unref(pins->pins[i].buffer);
        hr__free(pins);
    }
    hr__free(first);
}

static const struct hr_thread_class pins_class = {"pages of Parquet files", create_pins,
                                                  destroy_pins};

static enum hr_err
find_pins(const struct hr_parquet_files *files, struct hr_thread *thread,
          struct hr_parquet_pins **ret_pins, struct hr_error *reterr)
{
    struct hr_parquet_pins **first, *pins;
    void *object;

    HR_TRY(hr__thread_object(thread, &pins_class, &object, reterr));
    first = object;
    for (pins = *first; pins != NULL && pins->files != files;)
        pins = pins->next;
    if (pins == NULL) {
        pins = hr__calloc(1, sizeof *pins);
        if (pins == NULL)
            return hr__fail(reterr, HR_ERR_MEMORY, "out of memory");
        pins->files = files;
        pins->group = files->groups;
        pins->next = *first;
        *first = pins;
    }
    *ret_pins = pins;
    return HR_OK;
}

enum hr_err hr__parquet_files_row(const struct hr_parquet_files *files, uint64_t index,
                                  struct hr_thread *thread,
                                  struct hr_parquet_row *ret_row, struct hr_error *reterr)
{
    const struct hr_parquet_group *group = files->groups;

    *ret_row = (struct hr_parquet_row){.index = index, .thread = thread};
    if (thread != NULL) {
        HR_TRY(find_pins(files, thread, &ret_row->pins, reterr));
        group = ret_row->pins->group;
    }
    if (index - group->first >= group->rows)
        group =
            &files->groups[HR_BISECT(files->groups, files->group_count, first, index)];
    if (thread != NULL)
        ret_row->pins->group = group;
    ret_row->group = group;
    ret_row->row = index - group->first;
    return HR_OK;
}

void hr__parquet_row_finish(struct hr_parquet_row *row)
{
    hr_buffer_unref(row->held);
    row->held = NULL;
}

/* ---- cells ---- */

static struct hr_parquet_span *find_span(const struct hr_parquet_part *part, uint64_t row)
{
    return &part->spans[HR_BISECT(part->spans, part->span_count, first, row)];
}

/* Another thread decodes the span: decodes the one after it meanwhile, if nobody does. */
static void help(const struct hr_parquet_make *busy)
{
    struct hr_parquet_make make = *busy;
    struct hr_parquet_files *files = make.files;
    struct hr_buffer *buffer = NULL;
    struct hr_error ignored = {0};
    bool mine;

    make.error = &ignored;
    if (++make.span == make.part->spans + make.part->span_count) {
        if (++make.group == files->groups + files->group_count ||
            !files->files[make.group->file].is_mapped)
            return;
        make.part = &make.group->parts[make.column];
        if (hr__parquet_part_prepare(&make) != HR_OK || make.part->readable == 0)
            return;
        make.span = make.part->spans;
    }
    pthread_mutex_lock(&files->mutex);
    mine = make.span->unit.buffer == NULL && !make.span->unit.busy &&
           make.span->damage == NULL && files->cached_bytes < files->cache_bytes;
    if (mine)
        make.span->unit.busy = true;
    pthread_mutex_unlock(&files->mutex);
    if (mine && hr__parquet_unit_make(&make, &make.span->unit, hr__parquet_span_make,
                                      &buffer) == HR_OK)
        hr_buffer_unref(buffer);
}

/* A reference to the rows of make->span. */
static enum hr_err get_span(struct hr_parquet_make *make, struct hr_buffer **ret_buffer)
{
    struct hr_parquet_files *files = make->files;
    struct hr_parquet_span *span = make->span;
    const char *damage;
    bool busy;

    pthread_mutex_lock(&files->mutex);
    *ret_buffer = hr__parquet_unit_find(files, &span->unit);
    busy = span->unit.busy;
    damage = span->damage; /* never changes again */
    pthread_mutex_unlock(&files->mutex);
    if (*ret_buffer != NULL)
        return HR_OK;
    if (damage != NULL)
        return hr__fail(make->error, HR_ERR_FORMAT, "%s", damage);
    if (busy)
        help(make);
    return hr__parquet_unit_get(make, &span->unit, hr__parquet_span_make, ret_buffer);
}

/* Finds the page of a cell: *ret_first is its first row's record. */
static enum hr_err
find_page(struct hr_parquet_files *files, struct hr_parquet_row *row, size_t column,
          struct hr_buffer **ret_buffer, uint64_t *ret_first, struct hr_error *reterr)
{
    struct hr_parquet_make make = {.files = files,
                                   .group = row->group,
                                   .part = &row->group->parts[column],
                                   .column = column,
                                   .reader =
                                       row->thread != NULL ? row->thread->reader : NULL,
                                   .error = reterr};
    struct hr_buffer **held = &row->held;

    HR_TRY(hr__parquet_part_prepare(&make));
    if (row->row >= make.part->readable)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s", make.part->damage);
    make.span = find_span(make.part, row->row);
    HR_TRY(get_span(&make, ret_buffer));
    *ret_first = row->group->first + make.span->first;
    if (row->pins != NULL) {
        struct pin *pin = &row->pins->pins[column];

        pin->first = *ret_first;
        pin->count = hr__parquet_span_end(make.part, make.span) - make.span->first;
        held = &pin->buffer;
    }
    hr_buffer_unref(*held);
    *held = *ret_buffer;
    return HR_OK;
}

/* The page of a cell, in *ret_buffer, and records that it has. */
static enum hr_err
take_page(struct hr_parquet_files *files, struct hr_parquet_row *row, size_t column,
          struct hr_buffer **ret_buffer, uint64_t *ret_first, struct hr_error *reterr)
{
    const struct pin *pin = row->pins != NULL ? &row->pins->pins[column] : NULL;

    if (pin == NULL || row->index - pin->first >= pin->count)
        return find_page(files, row, column, ret_buffer, ret_first, reterr);
    *ret_buffer = pin->buffer;
    *ret_first = pin->first;
    return HR_OK;
}

enum hr_err
hr__parquet_files_cell(struct hr_parquet_files *files, struct hr_parquet_row *row,
                       size_t column, struct hr_arrow_cell *ret_cell,
                       struct hr_buffer **ret_owner, struct hr_error *reterr)
{
    const struct hr_parquet_made *made;
    uint64_t first = 0;
    enum hr_err code;

    HR_TRY(take_page(files, row, column, ret_owner, &first, reterr));
    made = hr_buffer_data(*ret_owner);
    code = hr__parquet_cell(&files->columns.items[column], &made->page,
                            row->index - first, ret_cell, reterr);
    if (code != HR_OK)
        hr__error_prefix(reterr, "%s: row group %u, column \"%s\": row %llu",
                         files->files[row->group->file].uri, (unsigned)row->group->number,
                         files->columns.items[column].name, (unsigned long long)row->row);
    return code;
}

enum hr_err
hr__parquet_files_run(struct hr_parquet_files *files, struct hr_parquet_row *row,
                      size_t column, struct hr_arrow_cell *ret_cell, uint64_t *ret_rows,
                      struct hr_error *reterr)
{
    struct hr_buffer *buffer;
    uint64_t first = 0;

    HR_TRY(take_page(files, row, column, &buffer, &first, reterr));
    hr__parquet_run(&files->columns.items[column],
                    &((const struct hr_parquet_made *)hr_buffer_data(buffer))->page,
                    row->index - first, ret_cell, ret_rows);
    return HR_OK;
}

/* Whether the part has to be fetched before a row of it is there. */
static bool
is_missing(struct hr_parquet_files *files, struct hr_parquet_part *part, uint64_t row)
{
    bool ready = atomic_load_explicit(&part->is_ready, memory_order_acquire);
    bool missing;

    pthread_mutex_lock(&files->mutex);
    missing =
        part->raw.buffer == NULL && !part->raw.busy &&
        (!ready || (row < part->readable && find_span(part, row)->unit.buffer == NULL));
    pthread_mutex_unlock(&files->mutex);
    return missing;
}

bool hr__parquet_files_ahead(struct hr_parquet_files *files, uint64_t index, int part,
                             struct hr_range *ret_range)
{
    struct hr_parquet_row row;

    if (hr__parquet_files_row(files, index, NULL, &row, NULL) != HR_OK ||
        files->files[row.group->file].is_mapped)
        return false;
    for (size_t i = 0; i < files->columns.count; i++) {
        struct hr_parquet_make make = {
            .files = files, .group = row.group, .part = &row.group->parts[i]};

        if (!is_missing(files, make.part, row.row) || part-- > 0)
            continue;
        hr__parquet_raw_range(&make, ret_range);
        return true;
    }
    return false;
}
