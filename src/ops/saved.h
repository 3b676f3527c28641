/*
 * ops/saved.h - the state of a sequencer as text: numbers, identities and bytes, each
 * followed by a blank.
 */
#ifndef HR_OPS_SAVED_H
#define HR_OPS_SAVED_H

#include "op/record_id.h"

/* Characters that the parts take, at most. */
#define HR_SAVED_NUMBER_MAX 21
#define HR_SAVED_ID_MAX (4 * HR_SAVED_NUMBER_MAX + HR_CHILD_DEPTH_MAX * 11)
#define HR_SAVED_BYTES_MAX(bytes) (((bytes) + 2) / 3 * 4 + 1)

void hr__saved_add(struct hr_str *out, uint64_t number);
/* All but the seed and the epoch, which are the run's. */
void hr__saved_add_id(struct hr_str *out, const struct hr_record_id *id);
/* In base64, the last group filled with zeros. */
void hr__saved_add_bytes(struct hr_str *out, const void *data, size_t bytes);

/* Each reads what the function above wrote and moves *at past it; false if the text is
 * anything else, or the number above `most`. The id may have one more child. */
bool hr__saved_take(const char **at, uint64_t most, uint64_t *ret_number);
bool hr__saved_take_id(const char **at, uint64_t seed, uint32_t epoch,
                       struct hr_record_id *ret_id);
bool hr__saved_take_bytes(const char **at, void *data, size_t bytes);

#endif
