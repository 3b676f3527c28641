/*
 * dump.c - runs a graph and writes every delivered tensor as a NumPy file.
 *
 *     dump GRAPH DIR SEED
 *
 * A record's field becomes DIR/NNNNN_FIELD.npy; NNNNN is the number of the batch. Byte
 * strings and ragged fields are skipped. Only for comparing with other libraries, hence
 * it uses just the public headers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <headrace/engine.h>

static const char *descr(enum hr_dtype dtype)
{
    switch (dtype) {
    case HR_U8:
        return "|u1";
    case HR_I32:
        return "<i4";
    case HR_I64:
        return "<i8";
    case HR_F32:
        return "<f4";
    case HR_F64:
        return "<f8";
    default:
        return NULL;
    }
}

/* Writes the elements in C order for any strides. */
static void
write_elements(FILE *file, const struct hr_field_view *view, int dim, const char *at)
{
    if (dim == view->ndim) {
        fwrite(at, hr_dtype_size(view->dtype), 1, file);
        return;
    }
    for (int64_t i = 0; i < view->dims[dim]; i++)
        write_elements(file, view, dim + 1, at + i * view->strides[dim]);
}

static int write_field(const char *path, const struct hr_field_view *view)
{
    char head[512];
    int length =
        snprintf(head, sizeof(head), "{'descr': '%s', 'fortran_order': False, 'shape': (",
                 descr(view->dtype));
    FILE *file = fopen(path, "wb");
    unsigned char size[2];

    if (file == NULL)
        return -1;
    for (int i = 0; i < view->ndim; i++)
        length += snprintf(head + length, sizeof(head) - (size_t)length, "%lld,",
                           (long long)view->dims[i]);
    length += snprintf(head + length, sizeof(head) - (size_t)length, ")}");
    while ((length + 11) % 64 != 0)
        head[length++] = ' ';
    head[length++] = '\n';
    size[0] = (unsigned char)length;
    size[1] = (unsigned char)(length >> 8);
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fwrite(size, 1, 2, file);
    fwrite(head, 1, (size_t)length, file);
    write_elements(file, view, 0, view->data);
    return fclose(file);
}

static int dump_batch(const struct hr_batch *batch, const char *dir, int number)
{
    struct hr_field_view view;

    for (size_t i = 0; i < hr_batch_field_count(batch); i++) {
        char path[4096];

        if (hr_batch_field(batch, i, &view) != HR_OK || view.offsets != NULL ||
            descr(view.dtype) == NULL)
            continue;
        snprintf(path, sizeof(path), "%s/%05d_%s.npy", dir, number, view.name);
        if (write_field(path, &view) != 0) {
            perror(path);
            return -1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct hr_graph *graph = NULL;
    struct hr_iter_options options;
    struct hr_iter *iter = NULL;
    struct hr_batch *batch;
    struct hr_error error = {0};
    enum hr_err code;
    int number = 0;

    if (argc != 4) {
        fprintf(stderr, "usage: dump GRAPH DIR SEED\n");
        return 2;
    }
    hr_iter_options_init(&options);
    options.seed = strtoull(argv[3], NULL, 10);
    code = hr_graph_load(argv[1], NULL, 0, &graph, &error);
    if (code == HR_OK)
        code = hr_iter_open(graph, &options, &iter, &error);
    while (code == HR_OK && (code = hr_iter_next(iter, &batch, &error)) == HR_OK) {
        if (dump_batch(batch, argv[2], number++) != 0)
            code = HR_ERR_IO;
        hr_batch_unref(batch);
    }
    if (code != HR_ERR_END)
        fprintf(stderr, "dump: %s\n",
                error.message[0] ? error.message : hr_err_text(code));
    hr_iter_close(iter);
    hr_graph_unref(graph);
    return code == HR_ERR_END ? 0 : 1;
}
