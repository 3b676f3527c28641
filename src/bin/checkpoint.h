/*
 * checkpoint.h - the state file of a run that is one of several consumers of its job
 * (headrace run --consumer), and its commits.
 *
 * State n is written aside, to "FILE.n", then committed, then renamed to FILE. A run that
 * starts again asks the dispatcher which number counts, and takes that file.
 */
#ifndef BIN_CHECKPOINT_H
#define BIN_CHECKPOINT_H

#include "headrace/engine.h"
#include "progress.h"

/* Waits for the dispatcher's answer, puts the file that counts in place, and resumes the
 * run from it. *ret_resumed: there is one. Returns a cli_exit code, and prints why it
 * failed; CLI_INTERRUPTED after Ctrl-C. */
int checkpoint_resume(struct hr_iter *iter, const char *path, struct progress *progress,
                      bool *ret_resumed);

/* Commits all batches that the run has delivered. */
int checkpoint_commit(struct hr_iter *iter, const char *path, struct progress *progress);

#endif
