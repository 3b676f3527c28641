/*
 * fuzz/fuzz_sentencepiece.c - any bytes as a SentencePiece model: refused with a message,
 * or it encodes any text to ids that it decodes.
 */
#include "codec/sentencepiece.h"
#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void encode(struct hr_tokenizer *t, const void *text, size_t bytes)
{
    struct hr_tokens ids = {NULL}, again = {NULL};
    size_t count = 0;
    char *back;

    if (hr_tokenizer_append(t, text, bytes, &ids, NULL) != HR_OK ||
        hr_tokenizer_append(t, text, bytes, &again, NULL) != HR_OK ||
        ids.count != again.count ||
        (ids.count > 0 && memcmp(ids.ids, again.ids, ids.count * sizeof *ids.ids) != 0))
        abort();
    if (hr_tokenizer_decode(t, ids.ids, ids.count, NULL, 0, &count, NULL) != HR_OK &&
        count == 0)
        abort();
    back = hr__malloc(count + 1);
    if (back == NULL ||
        hr_tokenizer_decode(t, ids.ids, ids.count, back, count, &count, NULL) != HR_OK)
        abort();
    hr__free(back);
    hr_tokens_finish(&ids);
    hr_tokens_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char text[] =
        " the  water\twheel <sep>1872 don't\n\xC3\xA9\xE3\x80\x80\xEF\xAC\x81\xFF\xE4 E";
    const struct hr_tokenizer_file file = {(const char *)data, bytes, "x.model"};
    struct hr_tokenizer *t = NULL;
    struct hr_error error = {0};

    if (hr__sentencepiece_read(&file, &t, &error) != HR_OK) {
        if (error.message[0] == '\0')
            abort();
        return 0;
    }
    encode(t, text, sizeof text);
    encode(t, data, bytes);
    hr_tokenizer_destroy(t);
    return 0;
}
