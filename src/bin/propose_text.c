/*
 * propose_text.c - a proposed graph as YAML with comments.
 *
 * The comments are for somebody who sees a graph for the first time: what each step is
 * for, and what one would change about it.
 */
#include "out.h"
#include "propose.h"

#include <stdlib.h>
#include <string.h>

/* As JSON, which YAML reads. */
static void put_quoted(FILE *out, const char *text)
{
    struct json json = {.out = out};

    json_text(&json, NULL, text);
}

bool propose_quote(char *to, size_t room, const char *text)
{
    FILE *out = fmemopen(to, room, "w");
    struct json json = {.out = out};
    char *escaped = malloc(2 * strlen(text) + 1), *at = escaped;
    bool fits = out != NULL && escaped != NULL;

    for (; escaped != NULL && *text != '\0'; text++) { /* "${" would be a parameter */
        if (text[0] == '$' && text[1] == '{')
            *at++ = '$';
        *at++ = *text;
    }
    if (fits) {
        *at = '\0';
        json_text(&json, NULL, escaped);
        fits = ftell(out) + 1 < (long)room;
    }
    if (out != NULL)
        fits = fclose(out) == 0 && fits;
    free(escaped);
    return fits;
}

static void put_param(FILE *out, const struct propose_param *param)
{
    fprintf(out, "  %s: {type: path, default: ", param->name);
    put_quoted(out, param->value);
    fprintf(out, ", help: \"%s\"}\n", param->help);
}

static bool has_pixels(const struct proposal *p)
{
    return p->photo != NULL || p->image;
}

static void put_head(FILE *out, const struct proposal *p)
{
    fprintf(out, "# %s\n", p->title);
    for (size_t i = 0; i < 2; i++)
        if (p->notes[i][0] != '\0')
            fprintf(out, "# %s\n", p->notes[i]);
    fputs("#\n"
          "# headrace inspect GRAPH shows the fields after each step and a few records,\n"
          "# headrace ops NAME an operator's parameters. -p batch=16 sets a parameter.\n"
          "headrace: 1\nparams:\n",
          out);
    for (size_t i = 0; i < p->param_count; i++)
        put_param(out, &p->params[i]);
    if (p->photo != NULL)
        fprintf(out,
                "  size: {type: int, default: %d, help: \"side of the square that "
                "photos become, in pixels\"}\n",
                p->boxes || p->mask ? 320 : 224);
    if (p->sound != NULL)
        fputs("  rate: {type: int, default: 16000, help: \"samples per second that all "
              "sounds get\"}\n",
              out);
    fprintf(out, "  batch: {type: int, default: %d, help: \"records per batch\"}\n",
            p->boxes || p->mask ? 16 : 64);
}

static void put_source(FILE *out, const struct proposal *p)
{
    fputs("pipeline:\n", out);
    if (p->about != NULL)
        fprintf(out, "  # %s\n", p->about);
    fprintf(out, "  - %s: {%s}\n", p->source, p->arguments);
    fputs("  # Another order in every epoch, the same for the same seed.\n"
          "  - order.shuffle\n",
          out);
}

/* The field of an op, unless it is the default `data`. */
static void put_decode(FILE *out, const char *op, const char *field)
{
    char quoted[160];

    if (strcmp(field, "data") == 0 || !propose_quote(quoted, sizeof(quoted), field))
        fprintf(out, "  - %s\n", op);
    else
        fprintf(out, "  - %s: {field: %s}\n", op, quoted);
}

static void put_detection(FILE *out)
{
    fputs("  # Augmentation: boxes and labels move with the photo. For validation keep "
          "image.resize only.\n"
          "  - image.iou_crop: {field: [image, boxes]}\n"
          "  - boxes.sanitize\n"
          "  - image.flip: {field: [image, boxes]}\n"
          "  - image.resize: {size: \"${size}\", field: [image, boxes]}\n",
          out);
}

static void put_segmentation(FILE *out)
{
    fputs("  - image.decode: {field: mask, to: mask, color: labels}\n"
          "  # Augmentation: the mask moves with the photo.\n"
          "  - image.random_resized_crop: {size: \"${size}\", scale: [0.25, 1], field: "
          "[image, mask]}\n"
          "  - image.flip: {field: [image, mask]}\n",
          out);
}

static void put_classification(FILE *out)
{
    fputs("  # Augmentation. For validation write these two instead:\n"
          "  #   - image.resize_shortest: {size: 256}\n"
          "  #   - image.center_crop: {size: \"${size}\"}\n"
          "  - image.random_resized_crop: {size: \"${size}\"}\n"
          "  - image.flip\n",
          out);
}

static void put_photo(FILE *out, const struct proposal *p)
{
    fputs("  # Bytes of the file to an RGB image. Only pixels that the crop keeps are "
          "made.\n",
          out);
    put_decode(out, "image.decode", p->photo);
    if (p->boxes)
        put_detection(out);
    else if (p->mask)
        put_segmentation(out);
    else
        put_classification(out);
    fputs(
        "  # 0..255 to float32 with ImageNet's mean and deviation, channels first as in "
        "PyTorch.\n"
        "  - image.normalize: {mean: imagenet, std: imagenet}\n"
        "  - tensor.layout: {order: chw}\n",
        out);
}

static void put_sound(FILE *out, const struct proposal *p)
{
    fputs("  # Bytes of the file to float32 samples in -1..1.\n", out);
    put_decode(out, "audio.decode", p->sound);
    fputs(
        "  - audio.mono\n"
        "  - audio.resample: {rate: \"${rate}\"}\n"
        "  # Log-mel spectra, 25 ms every 10 ms at 16 kHz. Without them the batches hold "
        "samples.\n"
        "  - audio.mel: {n_fft: 400, hop: 160, n_mels: 80}\n"
        "  - audio.db: {top_db: 80}\n",
        out);
}

static void put_batch(FILE *out, const struct proposal *p)
{
    if (p->sound != NULL)
        fputs("  # Padded to the longest of the batch.\n"
              "  - batch.pad: {size: \"${batch}\"}\n",
              out);
    else if (p->ragged || p->boxes)
        fputs("  # Records differ in size: tensors are stored one after the other, with "
              "offsets.\n"
              "  - batch.stack: {size: \"${batch}\", ragged: true}\n",
              out);
    else
        fputs("  - batch.stack: {size: \"${batch}\"}\n", out);
}

char *propose_text(const struct proposal *proposal)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    put_head(out, proposal);
    put_source(out, proposal);
    if (proposal->photo != NULL)
        put_photo(out, proposal);
    else if (proposal->sound != NULL)
        put_sound(out, proposal);
    else if (has_pixels(proposal))
        fputs("  - tensor.cast: {dtype: float32}\n  - tensor.layout: {order: chw}\n",
              out);
    put_batch(out, proposal);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
