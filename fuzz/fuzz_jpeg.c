/*
 * fuzz/fuzz_jpeg.c - our JPEG decoder against libjpeg-turbo: what ours accepts, the other
 * decodes to the same bytes.
 *
 * The last byte of the input chooses channels, scale and instruction set, the four before
 * it the window; so every mutation of a photo tries another one, and each input is tried
 * with several. Blind mutation mostly breaks a header or brings a marker into the data,
 * which both decoders refuse at once; so three of four mutations here know the format and
 * leave a photo that still decodes, to other coefficients, steps, tables or samplings.
 * The Huffman data of a mutated photo mostly stays decodable.
 *
 * Decoders are kept from input to input, as in training.
 */
#include "codec/image.h"
#include "codec/jpeg.h"
#include "core/cpu.h"

#include <stdlib.h>
#include <string.h>

#define PIXELS_MAX (1 << 16)
#define WINDOWS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t bytes_max);
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t bytes_max, unsigned seed);

/* ---- mutation ---- */

struct photo {
    uint8_t *data;
    size_t bytes, scan; /* where the entropy-coded data begins; 0: nowhere */
    uint64_t state;
};

static uint32_t draw(struct photo *photo, uint32_t n)
{
    photo->state = photo->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((photo->state >> 33) % n);
}

/* A random segment with that marker: its length field's place, 0 when there is none. */
static size_t find(struct photo *photo, int marker, size_t *ret_length)
{
    size_t at = 2, found = 0;
    uint32_t seen = 0;

    while (at + 4 <= photo->bytes && photo->data[at] == 0xFF) {
        size_t length = (size_t)photo->data[at + 2] << 8 | photo->data[at + 3];

        if (length < 2 || at + 2 + length > photo->bytes)
            break;
        if (photo->data[at + 1] == marker && draw(photo, ++seen) == 0) {
            found = at + 2;
            *ret_length = length;
        }
        at += 2 + length;
        if (photo->data[at - length - 1] == 0xDA) {
            photo->scan = at;
            break;
        }
    }
    return found;
}

static void change_scan(struct photo *photo)
{
    uint32_t count = 1 + draw(photo, 4);
    size_t room = photo->bytes - photo->scan;

    if (photo->scan == 0 || room < 12)
        return;
    for (; count > 0; count--) {
        size_t at = photo->scan + draw(photo, (uint32_t)(room - 8));
        uint8_t *p = photo->data + at;

        if (p[0] != 0xFF && (at == photo->scan || p[-1] != 0xFF))
            *p = (uint8_t)draw(photo, 255);
    }
}

static void copy_scan(struct photo *photo)
{
    size_t room = photo->bytes - photo->scan, from, to, count;

    if (photo->scan == 0 || room < 40)
        return;
    count = 1 + draw(photo, 16);
    from = photo->scan + draw(photo, (uint32_t)(room - 30));
    to = photo->scan + draw(photo, (uint32_t)(room - 30));
    memmove(photo->data + to, photo->data + from, count);
}

static void change_steps(struct photo *photo)
{
    static const uint8_t steps[] = {1, 2, 7, 16, 31, 32, 33, 64, 99, 128, 200, 255};
    size_t length, at = find(photo, 0xDB, &length);
    uint8_t step = steps[draw(photo, sizeof steps)];

    if (at == 0 || length < 67)
        return;
    if (draw(photo, 3) == 0)
        memset(photo->data + at + 3, step, 64);
    else
        photo->data[at + 3 + draw(photo, 64)] = step;
}

static void change_frame(struct photo *photo)
{
    static const uint8_t samplings[] = {0x11, 0x21, 0x12, 0x22};
    size_t length, at = find(photo, 0xC0, &length);
    uint8_t *p = photo->data + at;

    if (at == 0 || length < 11)
        return;
    switch (draw(photo, 3)) {
    case 0:
        p[9] = samplings[draw(photo, 4)];
        break;
    case 1:
        p[4] = (uint8_t)(1 + draw(photo, 80));
        break;
    default:
        p[6] = (uint8_t)(1 + draw(photo, 80));
    }
}

static void change_codes(struct photo *photo)
{
    size_t length, at = find(photo, 0xC4, &length);
    uint8_t *symbols = photo->data + at + 19;
    uint32_t count = (uint32_t)length - 19, a, b;

    if (at == 0 || length < 22 || photo->data[at + 2] >> 4 > 1)
        return;
    a = draw(photo, count);
    b = draw(photo, count);
    if (draw(photo, 2) == 0) {
        uint8_t was = symbols[a];

        symbols[a] = symbols[b];
        symbols[b] = was;
    } else if (photo->data[at + 2] >> 4 == 0) {
        symbols[a] = (uint8_t)draw(photo, 12);
    } else {
        symbols[a] = (uint8_t)(draw(photo, 16) << 4 | draw(photo, 11));
    }
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t bytes_max, unsigned seed)
{
    static void (*const changes[])(struct photo *) = {
        change_scan,  change_scan,  change_scan, copy_scan,
        change_steps, change_frame, change_codes};
    struct photo photo = {.data = data, .bytes = bytes, .state = seed};
    size_t length, i;
    uint32_t count;

    draw(&photo, 1);
    if (bytes < 64 || draw(&photo, 4) == 0)
        return LLVMFuzzerMutate(data, bytes, bytes_max);
    (void)find(&photo, 0xDA, &length);
    for (count = 1 + draw(&photo, 3); count > 0; count--)
        changes[draw(&photo, sizeof changes / sizeof changes[0])](&photo);
    for (i = 1; i <= 5; i++)
        if (draw(&photo, 2) == 0)
            data[bytes - i] = (uint8_t)draw(&photo, 256);
    return bytes;
}

/* ---- comparison ---- */

/* The n-th window of an input. */
static void choose(struct hr_image_request *request, const struct hr_image_info *info,
                   const uint8_t *last, unsigned n)
{
    bool all = (last[-1] + n) % WINDOWS == 0;
    unsigned turn = 89 * n;

    request->channels = (enum hr_image_channels)((last[0] + n) % 3);
    request->scale_log2 = (int32_t)((last[0] / 3 + n) % 4);
    request->x = all ? 0 : (int32_t)(last[-1] + turn) % info->width;
    request->y = all ? 0 : (int32_t)(last[-2] + turn) % info->height;
    request->width =
        all ? info->width : 1 + (int32_t)(last[-3] + turn) % (info->width - request->x);
    request->height =
        all ? info->height : 1 + (int32_t)(last[-4] + turn) % (info->height - request->y);
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

static void
decode(struct hr_image_decoder *decoder, struct hr_arena *arena, const uint8_t *data,
       size_t bytes, const struct hr_image_info *info, unsigned n)
{
    static const enum hr_isa isas[] = {HR_ISA_AVX512, HR_ISA_AVX2, HR_ISA_C};
    struct hr_image_request request = {.pixels_max = PIXELS_MAX};
    struct hr_image_part own, theirs;
    struct hr_error error = {0};

    choose(&request, info, data + bytes - 1, n);
    hr__isa_limit(isas[(data[bytes - 1] / 12 + n) % 3]);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct hr_image_decoder *decoder;
    static struct hr_jpeg *jpeg;
    static struct hr_arena arena;
    struct hr_image_info info;
    struct hr_error error = {0};

    if (decoder == NULL && hr__image_decoder_create(&decoder) != HR_OK)
        return 0;
    if (jpeg == NULL && (jpeg = hr__jpeg_create()) == NULL)
        return 0;
    if (bytes < 5 || hr__image_sniff(data, bytes) != HR_IMAGE_JPEG ||
        hr__image_probe(data, bytes, &info, &error) != HR_OK ||
        (int64_t)info.width * info.height > PIXELS_MAX)
        return 0;
    for (unsigned n = 0; n < WINDOWS; n++)
        decode(decoder, &arena, data, bytes, &info, n);
    if (data[bytes - 2] % 2 == 0) {
        struct hr_image_request request = {0};
        struct hr_image_job job = {&arena, data, bytes, &info, &request, &error};

        choose(&request, &info, data + bytes - 1, 0);
        decode_parts(jpeg, &job);
    }
    hr__arena_reset(&arena);
    return 0;
}
