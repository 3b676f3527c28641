/*
 * tests/conformance/photos.h - folders of photos for whole-pipeline tests.
 */
#ifndef HR_TESTS_PHOTOS_H
#define HR_TESTS_PHOTOS_H

#define PHOTOS 64

/* The path of a folder of 64 synthesised photos of mixed sizes in 4 classes, made on
 * first use; of a second one in which every `every`-th is damaged (100: one of them). */
const char *photos_good(void);
const char *photos_broken(int every);

#endif
