/*
 * profile_file.h - profiles in files and in the folder of saved ones.
 */
#ifndef BIN_PROFILE_FILE_H
#define BIN_PROFILE_FILE_H

#include "headrace/profile.h"

/* Reads a profile that an option names. Returns a cli_exit code; prints the reason on
 * failure. */
int profile_file_read(const char *path, struct hr_profile **ret_profile);

/* The saved profile of a graph, or NULL. Reports a damaged one on stderr unless `quiet`.
 */
struct hr_profile *profile_saved(struct hr_graph *graph,
                                 const struct hr_profile_options *options, bool quiet);

/* Saves a profile. Reports failure on stderr unless `quiet`: it costs only time. */
void profile_keep(const struct hr_profile *profile, struct hr_graph *graph, bool quiet);

#endif
