/*
 * arrays_out.c - see arrays_out.h.
 *
 * Elements go straight to a file per field, in a folder beside the target; sizes of
 * records are kept in memory once they differ. The headers are written at the end, when
 * the number of records is known, into room that was left for them.
 */
#include "arrays_out.h"
#include "cli.h"
#include "term.h"
#include "zip_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 256 /* of a .npy file, with padding */
#define PATH_BYTES 2048
#define FILE_PATH_BYTES (PATH_BYTES + 256)

/* Numbers that a file holds once they are all known: splits, shapes. */
struct numbers {
    int64_t *items;
    size_t count, room;
};

struct array {
    char name[128];
    FILE *file;
    enum hr_dtype dtype; /* as the batches have it; NONE: bytes */
    bool text;
    int ndim; /* of a record, without the dimension of records */
    int64_t dims[HR_MAX_DIMS];
    int64_t records, elements;
    bool varies; /* records differ in size: see `splits` */
    struct numbers splits, shapes;
};

struct arrays_out {
    const char *path;
    char folder[PATH_BYTES]; /* where it is written until it is whole */
    struct array *arrays;
    size_t count;
    bool npz, begun, committed;
};

static int failed(const struct arrays_out *out)
{
    return cli_failed("cannot write %s: %s", out->path, strerror(errno));
}

static bool ends_in_npz(const char *path)
{
    size_t length = strlen(path);

    return length > 4 && strcasecmp(path + length - 4, ".npz") == 0;
}

int arrays_out_begin(const char *path, struct arrays_out **ret_out)
{
    struct arrays_out *out;
    size_t length = strlen(path);
    struct stat info;
    mode_t mask;

    if (lstat(path, &info) == 0)
        return cli_usage("%s exists: remove it, or write to another path", path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length + 16 > PATH_BYTES)
        return cli_usage("the path '%.60s...' is too long", path);
    out = calloc(1, sizeof(*out));
    if (out == NULL)
        return cli_failed("out of memory");
    out->path = path;
    out->npz = ends_in_npz(path);
    snprintf(out->folder, sizeof(out->folder), "%.*s.XXXXXX", (int)length, path);
    if (mkdtemp(out->folder) == NULL) {
        int code = failed(out);

        free(out);
        return code;
    }
    mask = umask(0); /* mkdtemp makes private folders; give it the usual permissions */
    umask(mask);
    (void)chmod(out->folder, 0777 & ~mask);
    *ret_out = out;
    return CLI_OK;
}

/* ---- batches ---- */

static bool add_number(struct numbers *numbers, int64_t number)
{
    if (numbers->count == numbers->room) {
        size_t room = numbers->room > 0 ? numbers->room * 2 : 1024;
        int64_t *items = realloc(numbers->items, room * sizeof(*items));

        if (items == NULL)
            return false;
        numbers->items = items;
        numbers->room = room;
    }
    numbers->items[numbers->count++] = number;
    return true;
}

static size_t element_bytes(const struct array *array)
{
    return array->dtype == HR_DTYPE_NONE ? 1 : hr_dtype_size(array->dtype);
}

static int64_t product(const int64_t *dims, int ndim)
{
    int64_t all = 1;

    for (int i = 0; i < ndim; i++)
        all *= dims[i];
    return all;
}

static void file_path(const struct arrays_out *out, const char *name, char *path)
{
    snprintf(path, FILE_PATH_BYTES, "%s/%s.npy", out->folder, name);
}

static int open_file(struct arrays_out *out, const char *name, FILE **ret_file)
{
    static const char zeros[HEADER_BYTES];
    char path[FILE_PATH_BYTES];

    file_path(out, name, path);
    *ret_file = fopen(path, "w+b");
    if (*ret_file == NULL || fwrite(zeros, sizeof(zeros), 1, *ret_file) != 1)
        return failed(out);
    return CLI_OK;
}

static bool is_name_of(const char *name, const char *field, const char *ending)
{
    size_t length = strlen(field);

    return strncmp(name, field, length) == 0 && strcmp(name + length, ending) == 0;
}

/* Refuses names that are no file names, and those of the arrays beside another field. */
static int check_name(const struct arrays_out *out, const char *name)
{
    if (strchr(name, '/') != NULL || strlen(name) >= sizeof(out->arrays[0].name))
        return cli_usage("field '%s' cannot be a file's name: rename it "
                         "(record.rename)",
                         name);
    for (size_t i = 0; i < out->count; i++)
        for (size_t k = 0; k < out->count; k++)
            if (is_name_of(out->arrays[i].name, out->arrays[k].name, "_splits") ||
                is_name_of(out->arrays[i].name, out->arrays[k].name, "_shapes"))
                return cli_usage("field '%s' has the name of an array that --output "
                                 "writes for '%s': rename it (record.rename)",
                                 out->arrays[i].name, out->arrays[k].name);
    return CLI_OK;
}

/* The fields of the first batch. */
static int open_arrays(struct arrays_out *out, const struct hr_batch *batch)
{
    size_t count = hr_batch_field_count(batch);
    int code = CLI_OK;

    out->begun = true;
    out->arrays = calloc(count + 1, sizeof(*out->arrays));
    if (out->arrays == NULL)
        return cli_failed("out of memory");
    for (size_t i = 0; code == CLI_OK && i < count; i++) {
        struct array *array = &out->arrays[i];
        struct hr_field_view view;

        if (hr_batch_field(batch, i, &view) != HR_OK)
            return cli_failed("cannot read a batch");
        snprintf(array->name, sizeof(array->name), "%s", view.name);
        array->dtype = view.dtype;
        array->text = view.text;
        array->varies = view.levels > 0;
        array->ndim = array->varies ? view.item_ndim : view.ndim - 1;
        for (int d = 0; d < array->ndim && !array->varies; d++)
            array->dims[d] = view.dims[d + 1];
        out->count++;
        code = check_name(out, view.name);
        if (code == CLI_OK)
            code = open_file(out, view.name, &array->file);
    }
    return code;
}

/* Notes `count` records of one size. */
static bool add_sizes(struct array *array, const int64_t *dims, int64_t count)
{
    bool fits = array->splits.count > 0 || add_number(&array->splits, 0);

    for (int64_t i = 0; i < count && fits; i++) {
        int64_t last = array->splits.items[array->splits.count - 1];

        fits = add_number(&array->splits, last + product(dims, array->ndim));
        for (int d = 0; d < array->ndim && fits && array->ndim > 1; d++)
            fits = add_number(&array->shapes, dims[d]);
    }
    return fits;
}

/* Notes the records of a batch whose sizes are in the view. */
static bool add_ragged(struct array *array, const struct hr_field_view *view)
{
    bool fits = array->splits.count > 0 || add_number(&array->splits, 0);

    for (int64_t i = 0; i < view->dims[0] && fits; i++) {
        int64_t last = array->splits.items[array->splits.count - 1];

        fits = add_number(&array->splits, last + view->offsets[i + 1] - view->offsets[i]);
        for (int d = 0; d < view->item_ndim && fits && view->shapes != NULL; d++)
            fits = add_number(&array->shapes, view->shapes[i * view->item_ndim + d]);
    }
    return fits;
}

/* Notes the sizes of a batch's records, and that they vary if they do. */
static bool note_sizes(struct array *array, const struct hr_field_view *view)
{
    bool same =
        memcmp(array->dims, view->dims + 1, (size_t)array->ndim * sizeof(int64_t)) == 0;

    if (view->levels > 0)
        return add_ragged(array, view);
    if (!array->varies && same)
        return true;
    if (!array->varies && !add_sizes(array, array->dims, array->records))
        return false;
    array->varies = true;
    return add_sizes(array, view->dims + 1, view->dims[0]);
}

/* bfloat16 is the upper half of a float32. */
static bool write_bfloat16(FILE *file, const uint16_t *from, int64_t count)
{
    uint32_t piece[1024];

    while (count > 0) {
        size_t part = count < 1024 ? (size_t)count : 1024;

        for (size_t i = 0; i < part; i++)
            piece[i] = (uint32_t)from[i] << 16;
        if (fwrite(piece, 4, part, file) != part)
            return false;
        from += part;
        count -= (int64_t)part;
    }
    return true;
}

static int
add_field(struct arrays_out *out, struct array *array, const struct hr_field_view *view)
{
    int ndim = view->levels > 0 ? view->item_ndim : view->ndim - 1;
    size_t bytes = element_bytes(array);
    int64_t first = view->levels > 0 ? view->offsets[0] : 0;
    int64_t count = view->levels > 0 ? view->offsets[view->dims[0]] - first
                                     : product(view->dims, view->ndim);
    const char *data = (const char *)view->data + (size_t)first * bytes;

    if (view->levels > 1)
        return cli_usage("field '%s' is batched more than once, which --output cannot "
                         "write: end the graph with one batcher",
                         view->name);
    if (strcmp(array->name, view->name) != 0 || array->dtype != view->dtype ||
        array->ndim != ndim)
        return cli_failed("batches differ in their fields at '%s', which --output cannot "
                          "write",
                          view->name);
    if (!note_sizes(array, view))
        return cli_failed("out of memory");
    array->records += view->dims[0];
    array->elements += count;
    errno = 0;
    if (array->dtype == HR_BF16 ? !write_bfloat16(array->file, (const void *)data, count)
                                : count > 0 && fwrite(data, bytes, (size_t)count,
                                                      array->file) != (size_t)count)
        return failed(out);
    return CLI_OK;
}

int arrays_out_add(struct arrays_out *out, const struct hr_batch *batch)
{
    int code = out->begun ? CLI_OK : open_arrays(out, batch);

    if (code == CLI_OK && hr_batch_field_count(batch) != out->count)
        code = cli_failed("batches differ in their fields, which --output cannot write");
    for (size_t i = 0; code == CLI_OK && i < out->count; i++) {
        struct hr_field_view view;

        if (hr_batch_field(batch, i, &view) != HR_OK)
            code = cli_failed("cannot read a batch");
        else
            code = add_field(out, &out->arrays[i], &view);
    }
    return code;
}

/* ---- the end ---- */

static const char *npy_type(enum hr_dtype dtype)
{
    static const char *const types[] = {
        [HR_DTYPE_NONE] = "|u1", [HR_U8] = "|u1",   [HR_I16] = "<i2",  [HR_I32] = "<i4",
        [HR_I64] = "<i8",        [HR_F16] = "<f2",  [HR_BF16] = "<f4", [HR_F32] = "<f4",
        [HR_F64] = "<f8",        [HR_BOOL] = "|b1", [HR_I8] = "|i1",   [HR_U16] = "<u2"};

    return types[dtype];
}

/* Writes the header into the room that was left for it. */
static bool write_header(FILE *file, enum hr_dtype dtype, const int64_t *dims, int ndim)
{
    char text[HEADER_BYTES];
    size_t used = 10;

    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = (char)((HEADER_BYTES - 10) & 255);
    text[9] = (char)((HEADER_BYTES - 10) >> 8);
    used += (size_t)snprintf(text + used, sizeof(text) - used,
                             "{'descr': '%s', 'fortran_order': False, 'shape': (",
                             npy_type(dtype));
    for (int i = 0; i < ndim; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%lld%s",
                                 i > 0 ? " " : "", (long long)dims[i],
                                 i + 1 < ndim || ndim == 1 ? "," : "");
    used += (size_t)snprintf(text + used, sizeof(text) - used, "), }");
    memset(text + used, ' ', sizeof(text) - used);
    text[sizeof(text) - 1] = '\n';
    return fseeko(file, 0, SEEK_SET) == 0 && fwrite(text, sizeof(text), 1, file) == 1;
}

/* FIELD_splits, FIELD_shapes. */
static int write_numbers(struct arrays_out *out, const char *field, const char *ending,
                         const struct numbers *numbers, const int64_t *dims, int ndim)
{
    char name[160];
    FILE *file = NULL;
    int code;

    snprintf(name, sizeof(name), "%s%s", field, ending);
    code = open_file(out, name, &file);
    if (code == CLI_OK &&
        ((numbers->count > 0 && fwrite(numbers->items, sizeof(int64_t), numbers->count,
                                       file) != numbers->count) ||
         !write_header(file, HR_I64, dims, ndim)))
        code = failed(out);
    if (file != NULL && fclose(file) != 0 && code == CLI_OK)
        code = failed(out);
    return code;
}

static bool has_shapes(const struct array *array)
{
    return array->varies && array->ndim > 1;
}

static int finish_array(struct arrays_out *out, struct array *array)
{
    int64_t dims[HR_MAX_DIMS + 1] = {array->varies ? array->elements : array->records};
    int64_t splits = array->records + 1, shapes[2] = {array->records, array->ndim};
    int code = CLI_OK;

    for (int d = 0; d < array->ndim; d++)
        dims[d + 1] = array->dims[d];
    if (!write_header(array->file, array->dtype, dims,
                      array->varies ? 1 : array->ndim + 1))
        code = failed(out);
    if (code == CLI_OK && array->varies && array->splits.count == 0 &&
        !add_number(&array->splits, 0))
        code = cli_failed("out of memory");
    if (code == CLI_OK && array->varies)
        code = write_numbers(out, array->name, "_splits", &array->splits, &splits, 1);
    if (code == CLI_OK && has_shapes(array))
        code = write_numbers(out, array->name, "_shapes", &array->shapes, shapes, 2);
    if (fclose(array->file) != 0 && code == CLI_OK)
        code = failed(out);
    array->file = NULL;
    return code;
}

/* Adds a finished file to the archive. */
static int zip_file(struct arrays_out *out, struct zip_out *zip, const char *field,
                    const char *ending)
{
    char path[FILE_PATH_BYTES], name[160], member[176];
    struct stat info;
    FILE *file;
    int code = CLI_OK;

    snprintf(name, sizeof(name), "%s%s", field, ending);
    snprintf(member, sizeof(member), "%s.npy", name);
    file_path(out, name, path);
    file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &info) != 0 ||
        !zip_out_add(zip, member, file, (uint64_t)info.st_size))
        code = failed(out);
    if (file != NULL)
        fclose(file);
    unlink(path);
    return code;
}

static int write_npz(struct arrays_out *out, const char *target)
{
    struct zip_out zip = {.file = fopen(target, "wb")};
    int code = zip.file != NULL ? CLI_OK : failed(out);

    for (size_t i = 0; code == CLI_OK && i < out->count; i++) {
        const struct array *array = &out->arrays[i];

        code = zip_file(out, &zip, array->name, "");
        if (code == CLI_OK && array->varies)
            code = zip_file(out, &zip, array->name, "_splits");
        if (code == CLI_OK && has_shapes(array))
            code = zip_file(out, &zip, array->name, "_shapes");
    }
    if (code == CLI_OK &&
        (!zip_out_finish(&zip) || fflush(zip.file) != 0 || fsync(fileno(zip.file)) != 0))
        code = failed(out);
    if (zip.file != NULL && fclose(zip.file) != 0 && code == CLI_OK)
        code = failed(out);
    zip_out_free(&zip);
    return code;
}

int arrays_out_commit(struct arrays_out *out)
{
    char archive[FILE_PATH_BYTES], target[PATH_BYTES];
    size_t length = strlen(out->folder) - strlen(".XXXXXX");
    int code = CLI_OK;

    if (!out->begun)
        return cli_failed("there were no records, so %s is not written", out->path);
    snprintf(target, sizeof(target), "%.*s", (int)length, out->folder);
    snprintf(archive, sizeof(archive), "%s/.npz", out->folder);
    for (size_t i = 0; code == CLI_OK && i < out->count; i++)
        code = finish_array(out, &out->arrays[i]);
    if (code == CLI_OK && out->npz)
        code = write_npz(out, archive);
    if (code == CLI_OK && rename(out->npz ? archive : out->folder, target) != 0)
        code = failed(out);
    if (code == CLI_OK && out->npz)
        rmdir(out->folder);
    out->committed = code == CLI_OK;
    return code;
}

static void report_array(const char *field, const char *ending, const char *type,
                         const int64_t *dims, int ndim)
{
    char name[160];

    snprintf(name, sizeof(name), "%s%s", field, ending);
    printf("  %-28s %s[", name, type);
    for (int i = 0; i < ndim; i++)
        printf("%s%lld", i > 0 ? ", " : "", (long long)dims[i]);
    printf("]\n");
}

void arrays_out_report(const struct arrays_out *out)
{
    printf("\n%s%s%s\n", term_bold(stdout), out->path, term_plain(stdout));
    for (size_t i = 0; i < out->count; i++) {
        const struct array *array = &out->arrays[i];
        int64_t dims[HR_MAX_DIMS + 1] = {array->varies ? array->elements
                                                       : array->records};
        int64_t splits = array->records + 1, shapes[2] = {array->records, array->ndim};
        const char *type = array->dtype == HR_DTYPE_NONE ? "uint8"
                           : array->dtype == HR_BF16     ? "float32"
                                                         : hr_dtype_name(array->dtype);

        for (int d = 0; d < array->ndim; d++)
            dims[d + 1] = array->dims[d];
        report_array(array->name, "", type, dims, array->varies ? 1 : array->ndim + 1);
        if (array->varies)
            report_array(array->name, "_splits", "int64", &splits, 1);
        if (has_shapes(array))
            report_array(array->name, "_shapes", "int64", shapes, 2);
    }
}

static void
remove_file(const struct arrays_out *out, const char *field, const char *ending)
{
    char path[FILE_PATH_BYTES], name[160];

    snprintf(name, sizeof(name), "%s%s", field, ending);
    file_path(out, name, path);
    unlink(path);
}

void arrays_out_end(struct arrays_out *out)
{
    char archive[FILE_PATH_BYTES];

    for (size_t i = 0; out != NULL && i < out->count; i++) {
        struct array *array = &out->arrays[i];

        if (array->file != NULL)
            fclose(array->file);
        if (!out->committed) {
            remove_file(out, array->name, "");
            remove_file(out, array->name, "_splits");
            remove_file(out, array->name, "_shapes");
        }
        free(array->splits.items);
        free(array->shapes.items);
    }
    if (out != NULL && !out->committed) {
        snprintf(archive, sizeof(archive), "%s/.npz", out->folder);
        unlink(archive);
        rmdir(out->folder);
    }
    if (out != NULL)
        free(out->arrays);
    free(out);
}
