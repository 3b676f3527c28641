/*
 * text_file.h - reads a small text file that an option names.
 */
#ifndef BIN_TEXT_FILE_H
#define BIN_TEXT_FILE_H

/* All of the file ("-": standard input), terminated; free() it. `what` it should be ("a
 * plan") is for the message about a file of 4 MB or more, or with zero bytes. Returns a
 * cli_exit code; prints the reason on failure. */
int text_file_read(const char *path, const char *what, char **ret_text);

#endif
