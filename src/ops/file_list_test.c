/*
 * ops/file_list_test.c - files that a parameter lists.
 */
#include "ops/file_list.h"

#include <string.h>

#include "core/alloc.h"
#include "core/doc.h"
#include "tests/support/check.h"

static struct hr_doc *list_of(const char *const *paths, size_t count)
{
    struct hr_doc *list = hr__doc_new(HR_DOC_LIST);

    for (size_t i = 0; i < count; i++)
        CHECK_OK(hr__doc_append(list, hr__doc_string(paths[i])));
    return list;
}

static void
check_cell(const struct hr_table *table, int column, uint64_t row, const char *expected)
{
    size_t bytes;
    const char *text = hr__table_text(&table->columns[column], row, &bytes);

    CHECK(bytes == strlen(expected) && memcmp(text, expected, bytes) == 0);
}

TEST(files_are_rows_with_their_first_folder)
{
    static const char *const paths[] = {"dog/deep/3.jpg", "cat/1.jpg", "cat/1.jpg"};
    struct hr_doc *list = list_of(paths, 3);
    struct hr_table table = {0}, plain = {0};

    CHECK_OK(hr__file_list_table(list, true, &table, NULL));
    CHECK_EQ_INT(table.rows, 3);
    check_cell(&table, HR_FILE_LIST_PATH, 0, "dog/deep/3.jpg");
    check_cell(&table, HR_FILE_LIST_LABEL, 0, "dog");
    check_cell(&table, HR_FILE_LIST_LABEL, 2, "cat");
    CHECK_OK(hr__file_list_table(list, false, &plain, NULL));
    CHECK(plain.rows == 3 && plain.column_count == 1);
    hr__table_finish(&table);
    hr__table_finish(&plain);
    hr__doc_destroy(list);
}

static void refused(const char *path, bool folder_labels, const char *words)
{
    const char *const paths[] = {"a/b.jpg", path};
    struct hr_doc *list = list_of(paths, 2);
    struct hr_table table = {0};
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_ARGUMENT, hr__file_list_table(list, folder_labels, &table, &error));
    CHECK(strstr(error.message, "files: item 2, ") != NULL);
    CHECK(strstr(error.message, words) != NULL);
    hr__table_finish(&table);
    hr__doc_destroy(list);
}

TEST(wrong_paths_are_named)
{
    refused("", false, "is empty");
    refused("/a/b.jpg", false, "\"/a/b.jpg\", begins with a slash");
    refused("b.jpg", true, "lies in no folder");
}

TEST(a_list_survives_every_failed_allocation)
{
    static const char *const paths[] = {"a/1.jpg", "b/2.jpg"};
    struct hr_doc *list = list_of(paths, 2);
    enum hr_err code = HR_ERR_MEMORY;

    for (int n = 1; code != HR_OK; n++) {
        struct hr_table table = {0};

        CHECK(n < 100);
        hr__fault_arm(HR_FAULT_ALLOC, n);
        code = hr__file_list_table(list, true, &table, NULL);
        hr__fault_arm(0, 0);
        CHECK(code == HR_OK || code == HR_ERR_MEMORY);
        hr__table_finish(&table);
    }
    hr__doc_destroy(list);
}
