/*
 * image_seek.c - connects the decodes of a photo with the store of seek points.
 *
 * The key is a hash of all bytes: 5 us for 100 kB, out of 330 us for a window with an
 * index entry. Nothing cheaper is as safe: a change above the window moves the pixels
 * inside it too. Views that need the whole photo, and small files, do not use seek
 * points.
 */
#include "ops/image_job.h"

#include <string.h>

#define BYTES_MIN 4096

/* In pixels, so that the photo's orientation does not matter. */
static bool shows_part(const struct hr_image *image)
{
    double full = (double)image->full_width * image->full_height;
    double shown = full > 0 ? (double)image->width * image->height / full : 1;

    return shown * image->box_width * image->box_height <
           (double)image->info->width * image->info->height;
}

static void look_up(struct hr_image_photo *photo, const struct hr_image *image,
                    struct hr_arena *arena)
{
    const uint8_t *kept;
    size_t bytes;

    photo->known = true;
    photo->key = hr__hash128(image->encoded, image->encoded_bytes);
    if (hr__seek_find(photo->seek, photo->key, arena, &kept, &bytes) &&
        hr__jpeg_index_unpack(arena, kept, bytes, &photo->index) == HR_OK)
        photo->rows_kept = photo->index.rows;
    photo->found = photo->rows_kept > 0;
}

static uint32_t share_of(const struct hr_jpeg_index *index, int32_t mcus)
{
    return (uint32_t)((int64_t)HR_SEEK_WHOLE * mcus / (index->mcus_x * index->mcus_y));
}

void hr__image_seek_share(const struct hr_image *image, struct hr_arena *arena)
{
    struct hr_image_photo *photo = image->photo;

    if (photo == NULL || photo->seen != NULL || image->info->format != HR_IMAGE_JPEG)
        return;
    photo->seen = hr__arena_alloc(arena, sizeof *photo->seen);
    if (photo->seen != NULL)
        memset(photo->seen, 0, sizeof *photo->seen);
}

void hr__image_seek_begin(const struct hr_image *image, struct hr_arena *arena,
                          struct hr_image_view *view)
{
    struct hr_image_photo *photo = image->photo;

    view->seen = photo->seen;
    if (photo->seek == NULL || image->info->format != HR_IMAGE_JPEG ||
        image->encoded_bytes < BYTES_MIN || !shows_part(image))
        return;
    if (!photo->known)
        look_up(photo, image, arena);
    photo->index.would = 0;
    view->index = &photo->index;
}

/* A damaged index has been emptied and may cover fewer rows than before. */
void hr__image_seek_end(const struct hr_image *image, struct hr_arena *arena,
                        const struct hr_image_view *view)
{
    struct hr_image_photo *photo = image->photo;
    const struct hr_jpeg_index *index = view->index;
    uint8_t *packed;

    if (index != NULL && photo->found && index->would > 0)
        hr__seek_count(photo->seek, share_of(index, index->went),
                       share_of(index, index->would));
    if (index == NULL || index->rows == 0 || index->rows == photo->rows_kept)
        return;
    packed = hr__arena_alloc(arena, hr__jpeg_index_room(index));
    if (packed == NULL)
        return;
    hr__seek_put(photo->seek, photo->key, packed, hr__jpeg_index_pack(index, packed),
                 (uint32_t)((int64_t)HR_SEEK_WHOLE * index->rows / index->mcus_y));
    photo->rows_kept = index->rows;
}
