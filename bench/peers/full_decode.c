/*
 * full_decode.c - the baseline: libjpeg-turbo decodes every whole photo to RGB, and
 * nothing else happens.
 *
 *     full_decode DIR THREADS SECONDS
 *
 * The compressed bytes are in memory before the clock starts. Each pass decodes each
 * photo once, so that a warm branch predictor gives no advantage; passes repeat until
 * SECONDS have elapsed. Prints one JSON object. Files that are not JPEG are skipped.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <jpeglib.h>

struct photo {
    unsigned char *data;
    size_t bytes;
};

struct trap {
    struct jpeg_error_mgr base;
    jmp_buf back;
};

static struct photo *photos;
static size_t photo_count, photo_room;
static atomic_size_t taken; /* photos taken by a thread in this pass */
static atomic_size_t broken;

static double now_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void *need(void *memory)
{
    if (memory == NULL)
        die("full_decode");
    return memory;
}

static void load_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    struct photo photo;

    if (file == NULL || fstat(fileno(file), &st) != 0)
        die(path);
    photo.bytes = (size_t)st.st_size;
    photo.data = need(malloc(photo.bytes + 1));
    if (fread(photo.data, 1, photo.bytes, file) != photo.bytes)
        die(path);
    fclose(file);
    if (photo.bytes < 3 || photo.data[0] != 0xff || photo.data[1] != 0xd8) {
        free(photo.data);
        return;
    }
    if (photo_count == photo_room) {
        photo_room = 2 * photo_room + 64;
        photos = need(realloc(photos, photo_room * sizeof(*photos)));
    }
    photos[photo_count++] = photo;
}

static void load_folder(const char *dir)
{
    struct dirent **names;
    int count = scandir(dir, &names, NULL, alphasort);

    if (count < 0)
        die(dir);
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct stat st;

        snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && stat(path, &st) == 0) {
            if (S_ISDIR(st.st_mode))
                load_folder(path);
            else
                load_file(path);
        }
        free(names[i]);
    }
    free(names);
}

static void on_error(j_common_ptr jpeg)
{
    longjmp(((struct trap *)jpeg->err)->back, 1);
}

static void on_message(j_common_ptr jpeg)
{
    (void)jpeg;
}

struct image {
    unsigned char *data;
    size_t room;
};

static void decode(struct jpeg_decompress_struct *jpeg, const struct photo *photo,
                   struct image *image)
{
    size_t row_bytes, bytes;

    jpeg_mem_src(jpeg, photo->data, (unsigned long)photo->bytes);
    jpeg_read_header(jpeg, TRUE);
    if (jpeg->num_components < 4)
        jpeg->out_color_space = JCS_RGB;
    jpeg_start_decompress(jpeg);
    row_bytes = (size_t)jpeg->output_width * (size_t)jpeg->output_components;
    bytes = row_bytes * jpeg->output_height;
    if (bytes > image->room) {
        image->data = need(realloc(image->data, bytes));
        image->room = bytes;
    }
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW rows[8];

        for (size_t i = 0; i < 8; i++)
            rows[i] = image->data + row_bytes * (jpeg->output_scanline + i);
        jpeg_read_scanlines(jpeg, rows, 8);
    }
    jpeg_finish_decompress(jpeg);
}

static void *pass(void *unused)
{
    struct jpeg_decompress_struct jpeg;
    struct trap trap;
    struct image image = {NULL, 0};
    size_t at;

    (void)unused;
    jpeg.err = jpeg_std_error(&trap.base);
    trap.base.error_exit = on_error;
    trap.base.output_message = on_message;
    jpeg_create_decompress(&jpeg);
    while ((at = atomic_fetch_add(&taken, 1)) < photo_count) {
        if (setjmp(trap.back) == 0) {
            decode(&jpeg, &photos[at], &image);
        } else {
            jpeg_abort_decompress(&jpeg);
            atomic_fetch_add(&broken, 1);
        }
    }
    jpeg_destroy_decompress(&jpeg);
    free(image.data);
    return NULL;
}

static void run_pass(int threads)
{
    pthread_t ids[64];

    atomic_store(&taken, 0);
    for (int i = 1; i < threads; i++)
        if (pthread_create(&ids[i], NULL, pass, NULL) != 0)
            die("pthread_create");
    pass(NULL);
    for (int i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
}

int main(int argc, char **argv)
{
    int threads = argc == 4 ? (int)strtol(argv[2], NULL, 10) : 0;
    double seconds = argc == 4 ? strtod(argv[3], NULL) : 0, start, took;
    size_t passes = 0;
    struct rusage use;
    double cpu;

    if (threads < 1 || threads > 64) {
        fprintf(stderr, "usage: full_decode DIR THREADS SECONDS\n");
        return 2;
    }
    load_folder(argv[1]);
    if (photo_count == 0) {
        fprintf(stderr, "full_decode: no JPEG files in %s\n", argv[1]);
        return 1;
    }
    getrusage(RUSAGE_SELF, &use);
    cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
          1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    start = now_seconds();
    do {
        run_pass(threads);
        passes++;
        took = now_seconds() - start;
    } while (took < seconds);
    getrusage(RUSAGE_SELF, &use);
    cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
          1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) - cpu;
    printf("{\"records\": %zu, \"seconds\": %.6f, \"rate\": %.3f, \"cpu_seconds\": %.6f, "
           "\"broken\": %zu}\n",
           passes * photo_count, took, (double)(passes * photo_count) / took, cpu,
           atomic_load(&broken));
    return 0;
}
