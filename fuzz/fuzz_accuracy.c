/*
 * fuzz/fuzz_accuracy.c - any text as a file of predictions and measurements: damage is
 * left out, and what is left has errors that are not negative.
 */
#include "api/prediction.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const double errors[2])
{
    if (!(errors[0] >= 0 && errors[1] >= errors[0]))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    struct hr_accuracies *kept;
    struct hr_accuracy a;

    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    kept = hr__accuracies_parse(text);
    for (size_t i = 0; kept != NULL && hr_accuracies_get(kept, i, &a) == HR_OK; i++) {
        check(a.rate);
        check(a.cpu);
    }
    hr_accuracies_free(kept);
    free(text);
    return 0;
}
