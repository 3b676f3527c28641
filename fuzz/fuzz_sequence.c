/*
 * fuzz/fuzz_sequence.c - any text as the saved state of an op that sees records in order:
 * refused with a message, or the op runs on from it. The first byte chooses the op.
 */
#include "tests/support/sequencer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct hr_graph *graphs[SEQUENCER_CASES];
    static struct hr_pool *pool;
    struct sequencer s;
    struct hr_str text;
    size_t at;

    if (bytes < 1)
        return 0;
    at = data[0] % SEQUENCER_CASES;
    if (pool == NULL && (pool = hr_pool_create(0)) == NULL)
        abort();
    if (graphs[at] == NULL &&
        (graphs[at] = sequencer_graph(&sequencer_cases[at])) == NULL)
        abort();
    sequencer_init(&s, graphs[at], pool);
    if (s.op->restore == NULL)
        return 0;
    if (sequencer_begin(&s, 0) != HR_OK)
        abort();
    hr__str_init(&text);
    hr__str_add_bytes(&text, (const char *)data + 1, bytes - 1);
    if (sequencer_restore(&s, hr__str_text(&text)) != HR_OK) {
        if (s.error.message[0] == '\0')
            abort();
    } else {
        for (int64_t i = 0; i < 20; i++)
            if (sequencer_add(&s, i) != HR_OK)
                abort();
        if (sequencer_flush(&s) != HR_OK)
            abort();
    }
    hr__str_finish(&text);
    sequencer_end(&s);
    return 0;
}
