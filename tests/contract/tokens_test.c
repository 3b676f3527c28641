/*
 * tests/contract/tokens_test.c - the library's ops on text, run in every way: lists of
 * ids of any length through batches, worker processes, plans and resumes.
 */
#include "codec/bpe_test_util.h"
#include "tests/contract/contract.h"

#include <stdlib.h>

#include "core/file.h"
#include "graph/graph.h"

#define LINES 60

static struct tiny tiny;

/* Node text.tokenize_bpe with files in `folder`, which are written. */
static const char *tokenize_node(const char *folder, uint64_t stream)
{
    static char node[1400];
    struct hr_rng rng;
    struct hr_str text;
    char path[512];

    hr__rng_init(&rng, check_seed(), 0, stream);
    tiny_draw(&tiny, &rng);
    tiny_ranks(&tiny, &text);
    snprintf(path, sizeof path, "%s/%s.tiktoken", check_temp_dir(), folder);
    CHECK_OK(hr__file_replace(path, text.text, text.length, NULL));
    hr__str_finish(&text);
    snprintf(node, sizeof node, "  - text.tokenize_bpe: {ranks: '%s'}\n", path);
    return node;
}

static struct outcome_job job_after(const char *node, const char *more)
{
    char nodes[3000];

    snprintf(nodes, sizeof nodes, "%s%s", node, more);
    return contract_lines(LINES, 9, nodes);
}

TEST(ids_in_ragged_batches_have_one_digest)
{
    outcome_free(contract_check(job_after(tokenize_node("a", 1),
                                          "  - order.shuffle: {window: 16}\n"
                                          "  - debug.fail: {probability: 0.1}\n"
                                          "  - batch.stack: {size: 4, ragged: true}\n")));
}

TEST(ids_in_padded_batches_have_one_digest)
{
    outcome_free(contract_check(job_after(tokenize_node("a", 1),
                                          "  - tokens.truncate: {length: 9}\n"
                                          "  - tokens.add: {begin: 7, end: 8}\n"
                                          "  - batch.pad: {size: 4}\n")));
}

TEST(padded_ids_have_one_digest)
{
    outcome_free(contract_check(job_after(
        tokenize_node("a", 1), "  - tokens.truncate: {length: 30}\n"
                               "  - tokens.pad: {length: 32, mask: true, lengths: true}\n"
                               "  - debug.fail: {probability: 0.1}\n"
                               "  - batch.stack: {size: 4}\n")));
}

/* Words in a list, and a vocabulary of some of them. */
TEST(words_and_their_ids_have_one_digest)
{
    static const char words[] = "?\nwater\nwheel\nmill.\nno\n";
    char nodes[1500], path[512];

    snprintf(path, sizeof path, "%s/words.txt", check_temp_dir());
    CHECK_OK(hr__file_replace(path, words, sizeof words - 1, NULL));
    snprintf(nodes, sizeof nodes,
             "  - text.strip: {}\n  - text.lower: {}\n"
             "  - text.normalize: {form: nfkc}\n  - text.split: {separator: ' '}\n"
             "  - debug.fail: {probability: 0.1}\n"
             "  - tokens.vocab_lookup: {path: '%s', unknown: '?'}\n"
             "  - batch.pad: {size: 4}\n",
             path);
    outcome_free(contract_check(job_after("  - order.shuffle: {}\n", nodes)));
    outcome_free(contract_check(
        job_after("  - text.split: {empty: false}\n", "  - batch.stack: {size: 4}\n")));
}

TEST(vectors_and_texts_have_one_digest)
{
    static const char dict[] =
        "{'descr': '<f8', 'fortran_order': False, 'shape': (600, 3), }\n";
    char nodes[2000], path[512], *file = calloc(1, 20000);
    const char *tokenize = tokenize_node("a", 1);
    const char *files = strchr(tokenize, '{');

    memcpy(file, "\x93NUMPY\x01", 7);
    file[8] = sizeof dict - 1;
    memcpy(file + 10, dict, sizeof dict - 1);
    for (int i = 0; i < 1800; i++)
        memcpy(file + 10 + sizeof dict - 1 + 8 * i, &(double){i / 7.0}, 8);
    snprintf(path, sizeof path, "%s/table.npy", check_temp_dir());
    CHECK_OK(hr__file_replace(path, file, 10 + sizeof dict - 1 + 14400, NULL));
    free(file);
    snprintf(nodes, sizeof nodes,
             "  - tokens.embed: {table: '%s'}\n  - debug.fail: {probability: 0.1}\n"
             "  - text.detokenize: %s  - batch.pad: {size: 4}\n",
             path, files);
    outcome_free(contract_check(job_after(tokenize, nodes)));
}

TEST(word_pieces_have_one_digest)
{
    static const char pieces[] = "[UNK]\nwat\n##er\nhead\n##waters\n.\nno\n";
    char nodes[1500], path[512];

    snprintf(path, sizeof path, "%s/pieces.txt", check_temp_dir());
    CHECK_OK(hr__file_replace(path, pieces, sizeof pieces - 1, NULL));
    snprintf(nodes, sizeof nodes,
             "  - text.tokenize_wordpiece: {vocab: '%s'}\n"
             "  - debug.fail: {probability: 0.1}\n  - batch.pad: {size: 4}\n",
             path);
    outcome_free(contract_check(job_after("  - order.shuffle: {}\n", nodes)));
}

TEST(pieces_of_models_have_one_digest)
{
    static const char *const models[] = {"unigram", "bpe", "bytes"};
    char nodes[1500];

    for (int i = 0; i < 3; i++) {
        snprintf(nodes, sizeof nodes,
                 "  - text.tokenize_unigram: {model: "
                 "'%s/fuzz/corpus/sentencepiece/%s'}\n"
                 "  - debug.fail: {probability: 0.1}\n  - batch.pad: {size: 4}\n",
                 check_source_dir(), models[i]);
        outcome_free(contract_check(job_after("  - order.shuffle: {}\n", nodes)));
    }
}

TEST(masked_ids_have_one_digest)
{
    outcome_free(contract_check(
        job_after(tokenize_node("a", 1),
                  "  - debug.fail: {probability: 0.1}\n"
                  "  - tokens.mask: {mask_id: 3, vocab_size: 300, probability: 0.4}\n"
                  "  - tokens.pack: {length: 40, bins: 3}\n"
                  "  - tokens.mask: {mask_id: 4, random: 0, labels: more}\n"
                  "  - batch.stack: {size: 4}\n")));
}

TEST(batches_hold_the_ids_of_their_lines)
{
    struct outcome_job job =
        job_after(tokenize_node("a", 1), "  - batch.stack: {size: 7, ragged: true}\n");
    struct contract_batches batches;
    int32_t want[2000];
    const char *at;
    size_t seen = 0;

    (void)contract_text(LINES, 9, &at);
    job.options.epochs = 1;
    contract_take(&job, &batches);
    for (size_t i = 0; i < batches.count; i++) {
        struct hr_field_view tokens = contract_field(batches.items[i], "tokens");

        CHECK(tokens.levels == 1 && tokens.item_ndim == 1 && tokens.dtype == HR_I32);
        for (int64_t k = 0; k < tokens.dims[0]; k++, seen++) {
            size_t length = strcspn(at, "\n");
            size_t count = tiny_encode(&tiny, true, (const uint8_t *)at, length, want);

            CHECK_EQ_INT(tokens.splits[0][k + 1] - tokens.splits[0][k], count);
            CHECK_BYTES((const int32_t *)tokens.data + tokens.splits[0][k], want,
                        count * sizeof want[0]);
            at += length + 1;
        }
    }
    CHECK_EQ_INT(seen, LINES);
    contract_drop(&batches);
}

/* The fingerprint of the graph with the files of a stream of random numbers. */
static void fingerprint(const char *folder, uint64_t stream, char text[33])
{
    struct outcome_job job = job_after(tokenize_node(folder, stream),
                                       "  - batch.stack: {size: 4, ragged: true}\n");
    struct hr_error error = {0};
    struct hr_graph *graph = outcome_graph(&job, &error);

    CHECK(graph != NULL);
    CHECK_OK(hr_graph_freeze(graph, &error));
    CHECK_OK(hr_graph_fingerprint(graph, text));
    hr_graph_unref(graph);
}

TEST(fingerprints_cover_what_the_files_contain_and_not_where_they_are)
{
    char first[33], moved[33], other[33];

    fingerprint("a", 1, first);
    fingerprint("b", 1, moved);
    fingerprint("a", 2, other);
    CHECK_EQ_STR(first, moved);
    CHECK(strcmp(first, other) != 0);
}
