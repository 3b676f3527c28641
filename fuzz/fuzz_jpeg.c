/*
 * fuzz/fuzz_jpeg.c - our JPEG decoder against libjpeg-turbo: what ours accepts, the other
 * decodes to the same bytes.
 *
 * The last byte of the input chooses channels, scale and instruction set, the four before
 * it the window; so every mutation of a photo tries another one. The Huffman data of a
 * mutated photo mostly stays decodable, which is what reaches the odd coefficients.
 */
#include "codec/image.h"
#include "codec/jpeg.h"
#include "core/cpu.h"

#include <stdlib.h>
#include <string.h>

#define PIXELS_MAX (1 << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void choose(struct hr_image_request *request, const struct hr_image_info *info,
                   const uint8_t *last)
{
    bool all = last[-1] % 3 == 0;

    request->channels = (enum hr_image_channels)(last[0] % 3);
    request->scale_log2 = last[0] / 3 % 4;
    request->x = all ? 0 : last[-1] % info->width;
    request->y = all ? 0 : last[-2] % info->height;
    request->width = all ? info->width : 1 + last[-3] % (info->width - request->x);
    request->height = all ? info->height : 1 + last[-4] % (info->height - request->y);
}

static void compare(const struct hr_image_part *own, const struct hr_image_part *theirs)
{
    const struct hr_pixels *a = &own->pixels, *b = &theirs->pixels;
    int32_t y;

    if (a->channels != b->channels || a->width != b->width || a->height != b->height ||
        own->x != theirs->x || own->y != theirs->y)
        abort();
    for (y = 0; y < a->height; y++)
        if (memcmp((const uint8_t *)a->data + y * a->row_stride,
                   (const uint8_t *)b->data + y * b->row_stride,
                   (size_t)a->width * (size_t)a->channels) != 0)
            abort();
}

static void decode(struct hr_image_decoder *decoder, struct hr_arena *arena,
                   const uint8_t *data, size_t bytes, const struct hr_image_info *info)
{
    static const enum hr_isa isas[] = {HR_ISA_AVX512, HR_ISA_AVX2, HR_ISA_C};
    struct hr_image_request request = {.pixels_max = PIXELS_MAX};
    struct hr_image_part own, theirs;
    struct hr_error error = {0};

    choose(&request, info, data + bytes - 1);
    hr__isa_limit(isas[data[bytes - 1] / 12 % 3]);
    hr__jpeg_path_force(HR_JPEG_OWN);
    if (hr__image_decode(decoder, arena, data, bytes, info, &request, &own, &error) !=
        HR_OK)
        return;
    hr__jpeg_path_force(HR_JPEG_LIBJPEG);
    if (hr__image_decode(decoder, arena, data, bytes, info, &request, &theirs, &error) !=
        HR_OK)
        abort();
    compare(&own, &theirs);
}

/* With an index the window is the same, also with one that knows rows down to another
 * window and is completed; planes have no counterpart here, but the sanitizers look on.
 */
static void decode_parts(struct hr_jpeg *jpeg, const struct hr_image_job *job)
{
    struct hr_image_request request = *job->request;
    struct hr_image_job again = *job;
    struct hr_image_planes planes;
    struct hr_jpeg_index index = {0};
    struct hr_image_part plain, indexed;

    if (hr__jpeg_planes(jpeg, job, &planes) == HR_OK && planes.ycc.plane[0].height <= 0)
        abort();
    if (hr__jpeg_window(jpeg, job, &plain) != HR_OK)
        return;
    again.request = &request;
    request.index = &index;
    index.step = job->data[job->bytes - 3] % 9;
    request.height -= request.height * (job->data[job->bytes - 4] % 4) / 4;
    if (hr__jpeg_window(jpeg, &again, &indexed) != HR_OK)
        abort();
    request.height = job->request->height;
    if (hr__jpeg_window(jpeg, &again, &indexed) != HR_OK)
        abort();
    compare(&plain, &indexed);
}

static void decode_alone(struct hr_arena *arena, const uint8_t *data, size_t bytes,
                         const struct hr_image_info *info)
{
    struct hr_image_request request = {0};
    struct hr_error error = {0};
    struct hr_image_job job = {arena, data, bytes, info, &request, &error};
    struct hr_jpeg *jpeg;

    if ((int64_t)info->width * info->height > PIXELS_MAX)
        return;
    choose(&request, info, data + bytes - 1);
    jpeg = hr__jpeg_create();
    if (jpeg != NULL)
        decode_parts(jpeg, &job);
    hr__jpeg_destroy(jpeg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_image_decoder *decoder;
    struct hr_image_info info;
    struct hr_error error = {0};
    struct hr_arena arena;

    if (bytes < 5 || hr__image_sniff(data, bytes) != HR_IMAGE_JPEG ||
        hr__image_probe(data, bytes, &info, &error) != HR_OK)
        return 0;
    if (hr__image_decoder_create(&decoder) != HR_OK)
        return 0;
    hr__arena_init(&arena);
    decode(decoder, &arena, data, bytes, &info);
    if (data[bytes - 2] % 4 == 0)
        decode_alone(&arena, data, bytes, &info);
    hr__arena_finish(&arena);
    hr__image_decoder_destroy(decoder);
    return 0;
}
