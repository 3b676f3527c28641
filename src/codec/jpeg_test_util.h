/*
 * codec/jpeg_test_util.h - generated photos, and comparison of our JPEG decoder with
 * libjpeg-turbo: windows on both paths, planes with its raw data.
 */
#ifndef HR_CODEC_JPEG_TEST_UTIL_H
#define HR_CODEC_JPEG_TEST_UTIL_H

#include "codec/image_test_util.h"
#include "codec/jpeg.h"
#include "codec/jpeg_priv.h"
#include "tests/support/isas.h"

#include <stdio.h>

#include <jpeglib.h>

#if JPEG_LIB_VERSION >= 70
#define SCALED_SIZE(component) ((component)->DCT_v_scaled_size)
#else
#define SCALED_SIZE(component) ((component)->DCT_scaled_size)
#endif

/* Decodes one window on both paths. Returns false if ours declined. */
static inline bool
compare(struct bench *bench, const void *data, size_t bytes,
        const struct hr_image_info *info, const struct hr_image_request *request)
{
    struct hr_image_part own, theirs;
    struct hr_error error = {0};
    enum hr_err err;
    int32_t y;

    hr__jpeg_path_force(HR_JPEG_OWN);
    err = hr__image_decode(bench->decoder, &bench->arena, data, bytes, info, request,
                           &own, &error);
    hr__jpeg_path_force(HR_JPEG_LIBJPEG);
    if (err == HR_ERR_UNSUPPORTED) {
        hr__arena_reset(&bench->arena);
        return false;
    }
    CHECK_OK(err);
    CHECK_OK(hr__image_decode(bench->decoder, &bench->arena, data, bytes, info, request,
                              &theirs, &error));
    hr__jpeg_path_force(HR_JPEG_AUTO);
    CHECK_EQ_INT(own.x, theirs.x);
    CHECK_EQ_INT(own.y, theirs.y);
    CHECK_EQ_INT(own.pixels.width, theirs.pixels.width);
    CHECK_EQ_INT(own.pixels.height, theirs.pixels.height);
    CHECK_EQ_INT(own.pixels.channels, theirs.pixels.channels);
    for (y = 0; y < own.pixels.height; y++)
        CHECK_BYTES((uint8_t *)own.pixels.data + y * own.pixels.row_stride,
                    (uint8_t *)theirs.pixels.data + y * theirs.pixels.row_stride,
                    (size_t)(own.pixels.width * own.pixels.channels));
    hr__arena_reset(&bench->arena);
    return true;
}

/* Compares the whole photo and `count` random windows at a scale, cycling through the
 * kinds of channels. */
static inline void compare_windows(struct bench *bench, const void *data, size_t bytes,
                                   int scale_log2, int count)
{
    struct hr_image_info info;
    struct hr_error error = {0};
    int i;

    CHECK_OK(hr__image_probe(data, bytes, &info, &error));
    for (i = 0; i <= count; i++) {
        struct hr_image_request request = whole(&info);
        int32_t small = draw(bench, 3) == 0 ? 9 : INT32_MAX;

        request.scale_log2 = scale_log2;
        request.channels = i % 4 == 3 ? HR_CHANNELS_GRAY : HR_CHANNELS_RGB;
        if (i > 0) {
            request.x = draw(bench, info.width);
            request.y = draw(bench, info.height);
            request.width = 1 + draw(bench, info.width - request.x) % small;
            request.height = 1 + draw(bench, info.height - request.y) % small;
        }
        CHECK(compare(bench, data, bytes, &info, &request));
    }
}

/* The planes that libjpeg outputs. */
#define RAW_STRIDE 8192
struct raw {
    uint8_t *plane[3];
    int32_t width[3], height[3];
};

/* The last zigzag index used for planes, by the size of the component's blocks. */
static inline int last_index(const jpeg_component_info *component)
{
    int size = SCALED_SIZE(component);

    return size == 4 ? 24 : size == 2 ? 4 : 63;
}

static inline void zero_above(j_decompress_ptr info, jvirt_barray_ptr rows,
                              const jpeg_component_info *component, int last)
{
    for (JDIMENSION y = 0; y < component->height_in_blocks; y++) {
        JBLOCKROW row =
            info->mem->access_virt_barray((j_common_ptr)info, rows, y, 1, TRUE)[0];

        for (JDIMENSION x = 0; x < component->width_in_blocks; x++)
            for (int k = last + 1; k < 64; k++)
                row[x][hr__jpeg_natural[k]] = 0;
    }
}

static inline void ignore_message(j_common_ptr info, int level)
{
    (void)info, (void)level;
}

/* The photo without the coefficients that planes at this scale ignore; the caller frees
 * it. */
static inline uint8_t *
cut_coefficients(const uint8_t *data, size_t bytes, int scale_log2, size_t *ret_bytes)
{
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr errors;
    jvirt_barray_ptr *rows;
    unsigned char *made = NULL;
    unsigned long made_bytes = 0;
    int last[3];

    in.err = out.err = jpeg_std_error(&errors);
    errors.emit_message = ignore_message;
    jpeg_create_decompress(&in);
    jpeg_create_compress(&out);
    jpeg_mem_src(&in, data, (unsigned long)bytes);
    jpeg_read_header(&in, TRUE);
    in.scale_denom = 1U << scale_log2;
    jpeg_calc_output_dimensions(&in);
    for (int i = 0; i < in.num_components; i++)
        last[i] = last_index(&in.comp_info[i]);
    in.scale_denom = 1; /* libjpeg 8 would otherwise write the photo at that size */
    jpeg_calc_output_dimensions(&in);
    rows = jpeg_read_coefficients(&in);
    for (int i = 0; i < in.num_components; i++)
        zero_above(&in, rows[i], &in.comp_info[i], last[i]);
    jpeg_mem_dest(&out, &made, &made_bytes);
    jpeg_copy_critical_parameters(&in, &out);
    out.optimize_coding = TRUE;
    jpeg_write_coefficients(&out, rows);
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
    jpeg_finish_decompress(&in);
    jpeg_destroy_decompress(&in);
    *ret_bytes = made_bytes;
    return made;
}

static inline void
read_raw(struct raw *raw, const uint8_t *data, size_t bytes, int scale_log2)
{
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    int32_t i, y, top = 0;

    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, data, (unsigned long)bytes);
    jpeg_read_header(&info, TRUE);
    info.raw_data_out = TRUE;
    info.scale_denom = 1U << scale_log2;
    jpeg_start_decompress(&info);
    for (i = 0; i < info.num_components; i++) {
        raw->plane[i] = malloc((size_t)RAW_STRIDE * (info.image_height + 16));
        CHECK(raw->plane[i] != NULL && info.image_width < RAW_STRIDE - 64);
        raw->width[i] = (int32_t)info.comp_info[i].downsampled_width;
        raw->height[i] = (int32_t)info.comp_info[i].downsampled_height;
    }
    while (info.output_scanline < info.output_height) {
        JSAMPROW rows[3][16];
        JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};

        for (i = 0; i < info.num_components; i++) {
            const jpeg_component_info *c = &info.comp_info[i];
            int32_t height = c->v_samp_factor * SCALED_SIZE(c);

            for (y = 0; y < height; y++)
                rows[i][y] = raw->plane[i] + (top * height + y) * RAW_STRIDE;
        }
        jpeg_read_raw_data(&info, planes, 16);
        top++;
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
}

/* Checks that a plane equals libjpeg's from (x, y) on. */
static inline void check_plane(const struct hr_pixels *plane, const struct raw *raw,
                               int i, int32_t x, int32_t y)
{
    int32_t row;

    CHECK(x >= 0 && y >= 0 && plane->width > 0 && plane->height > 0);
    CHECK(x + plane->width <= raw->width[i] && y + plane->height <= raw->height[i]);
    for (row = 0; row < plane->height; row++)
        CHECK_BYTES((uint8_t *)plane->data + row * plane->row_stride,
                    raw->plane[i] + (y + row) * RAW_STRIDE + x, (size_t)plane->width);
}

static inline void
check_planes(const struct hr_image_planes *planes, const struct raw *raw)
{
    int32_t step_x = 1 << planes->ycc.shift_x, step_y = 1 << planes->ycc.shift_y;
    int32_t x = planes->x + planes->ycc.chroma_x, y = planes->y + planes->ycc.chroma_y;

    check_plane(&planes->ycc.plane[0], raw, 0, planes->x, planes->y);
    if (planes->ycc.gray)
        return;
    CHECK(planes->ycc.chroma_x <= 0 && planes->ycc.chroma_x > -step_x);
    CHECK(planes->ycc.chroma_y <= 0 && planes->ycc.chroma_y > -step_y);
    CHECK(planes->ycc.plane[1].width * step_x + planes->ycc.chroma_x >=
          planes->ycc.plane[0].width);
    CHECK(planes->ycc.plane[1].height * step_y + planes->ycc.chroma_y >=
          planes->ycc.plane[0].height);
    CHECK_EQ_INT(x % step_x, 0);
    CHECK_EQ_INT(y % step_y, 0);
    check_plane(&planes->ycc.plane[1], raw, 1, x / step_x, y / step_y);
    check_plane(&planes->ycc.plane[2], raw, 2, x / step_x, y / step_y);
}

static inline void compare_planes(struct bench *bench, const uint8_t *data, size_t bytes,
                                  int scale_log2, int count)
{
    struct hr_jpeg *jpeg = hr__jpeg_create();
    struct raw raw = {{NULL}, {0}, {0}};
    struct hr_image_info info;
    struct hr_error error = {0};
    uint8_t *cut;
    size_t cut_bytes;
    int i;

    CHECK(jpeg != NULL);
    CHECK_OK(hr__image_probe(data, bytes, &info, &error));
    cut = cut_coefficients(data, bytes, scale_log2, &cut_bytes);
    read_raw(&raw, cut, cut_bytes, scale_log2);
    free(cut);
    for (i = 0; i <= count; i++) {
        struct hr_image_request request = whole(&info);
        struct hr_image_job job = {&bench->arena, data, bytes, &info, &request, &error};
        struct hr_image_planes planes;

        request.scale_log2 = scale_log2;
        if (i == count)
            request.channels = HR_CHANNELS_GRAY;
        if (i > 0) {
            request.x = draw(bench, info.width);
            request.y = draw(bench, info.height);
            request.width = 1 + draw(bench, info.width - request.x);
            request.height = 1 + draw(bench, info.height - request.y);
        }
        CHECK_OK(hr__jpeg_planes(jpeg, &job, &planes));
        CHECK_EQ_INT(planes.ycc.gray, i == count || info.channels == 1);
        check_planes(&planes, &raw);
        hr__arena_reset(&bench->arena);
    }
    for (i = 0; i < 3; i++)
        free(raw.plane[i]);
    hr__jpeg_destroy(jpeg);
}

/* A generated photo; free() its data. `info` is set by make_photo. */
struct photo {
    uint8_t *data;
    size_t bytes;
    struct hr_image_info info;
};

/* A picture written by our encoder; NULL or zeros in `options` mean quality 85, full
 * chroma. */
static inline struct photo
make_photo(struct bench *bench, const struct hr_jpeg_options *options, int32_t width,
           int32_t height, int32_t channels)
{
    struct hr_pixels pixels = make_picture(bench, width, height, channels);
    struct hr_jpeg_options full = {0};
    struct hr_error error = {0};
    struct photo photo;
    void *data = NULL;

    if (options != NULL)
        full = *options;
    full.quality = full.quality == 0 ? 85 : full.quality;
    full.sampling_x = full.sampling_x == 0 ? 1 : full.sampling_x;
    full.sampling_y = full.sampling_y == 0 ? 1 : full.sampling_y;
    CHECK_OK(hr__image_encode_jpeg(&pixels, &full, &data, &photo.bytes, &error));
    CHECK_OK(hr__image_probe(data, photo.bytes, &photo.info, &error));
    photo.data = data;
    free(pixels.data);
    return photo;
}

/* A picture that our encoder cannot write: `set` changes libjpeg's settings after the
 * size and the defaults. */
static inline struct photo
make_photo_with(const struct hr_pixels *pixels,
                void (*set)(struct jpeg_compress_struct *info, const void *user),
                const void *user)
{
    static const J_COLOR_SPACE spaces[] = {0, JCS_GRAYSCALE, 0, JCS_RGB, JCS_CMYK};
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    struct photo photo = {NULL};
    unsigned long bytes = 0;

    info.err = jpeg_std_error(&errors);
    errors.emit_message = ignore_message;
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &photo.data, &bytes);
    info.image_width = (JDIMENSION)pixels->width;
    info.image_height = (JDIMENSION)pixels->height;
    info.input_components = pixels->channels;
    info.in_color_space = spaces[pixels->channels];
    jpeg_set_defaults(&info);
    set(&info, user);
    jpeg_start_compress(&info, TRUE);
    for (int32_t y = 0; y < pixels->height; y++) {
        JSAMPROW row = (uint8_t *)pixels->data + y * pixels->row_stride;

        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    photo.bytes = bytes;
    return photo;
}

static inline void check_same(const struct hr_pixels *a, const struct hr_pixels *b)
{
    CHECK_EQ_INT(a->width, b->width);
    CHECK_EQ_INT(a->height, b->height);
    for (int32_t y = 0; y < a->height; y++)
        CHECK_BYTES((uint8_t *)a->data + y * a->row_stride,
                    (uint8_t *)b->data + y * b->row_stride,
                    (size_t)a->width * (size_t)a->channels);
}

#endif
