/*
 * tests/conformance/photos.h - folders of photos for whole-pipeline tests.
 */
#ifndef HR_TESTS_PHOTOS_H
#define HR_TESTS_PHOTOS_H

#define PHOTOS 64

/* Path of a folder of 64 synthetic photos of mixed sizes in 4 classes, created on first
 * use; and of a second one in which every `every`-th is damaged (100: one of them). */
const char *photos_good(void);
const char *photos_broken(int every);

#endif
