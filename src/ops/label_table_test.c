/*
 * ops/label_table_test.c - which column of a labels file is what, and what is refused.
 */
#include "core/file.h"
#include "core/str.h"
#include "ops/label_table.h"
#include "tests/support/check.h"

static const char *const all[] = {"*"};

static struct hr_label_names names(const char *path, const char *label)
{
    return (struct hr_label_names){
        .path = path,
        .label = label,
        .more = all,
        .more_count = 1,
        .taken = {"data", "label", "path"},
    };
}

static const char *file(const char *text)
{
    static char path[600];

    snprintf(path, sizeof path, "%s/labels.csv", check_temp_dir());
    CHECK_OK(hr__file_replace(path, text, strlen(text), NULL));
    return path;
}

TEST(columns_are_found_by_name)
{
    struct hr_label_names wanted = names("file", "class");
    struct hr_label_table t = {0};
    struct hr_schema schema = {0};
    struct hr_field *field = hr__schema_put(&schema, "x");
    struct hr_str note;

    hr__str_init(&note);
    CHECK_OK(hr__label_table_read(file("n,class,file,t,\n1,7,a.jpg,x,\n2.5,8,b.jpg,y,\n"),
                                  &wanted, &t, NULL));
    CHECK_EQ_INT(t.path, 2);
    CHECK_EQ_INT(t.label, 1);
    CHECK_EQ_INT(t.more_count, 2);
    CHECK_EQ_STR(hr__label_table_more(&t, 1)->name, "t");
    hr__label_table_label(&t, field);
    CHECK(field->dtype == HR_I64 && field->meaning == HR_MEANING_LABEL);
    hr__label_table_field(hr__label_table_more(&t, 0), field);
    CHECK(field->kind == HR_FIELD_TENSOR && field->dtype == HR_F64);
    hr__label_table_field(hr__label_table_more(&t, 1), field);
    CHECK(field->kind == HR_FIELD_BYTES && field->meaning == HR_MEANING_TEXT);
    hr__label_table_note(&t, &t.table, &note);
    CHECK_HAS(hr__str_text(&note), "paths from \"file\", labels from \"class\" (int64)");
    CHECK_HAS(hr__str_text(&note), "columns without a name, left out: 1");
    hr__str_finish(&note);
    hr__label_table_finish(&t);
}

static void check_refused(const char *text, struct hr_label_names wanted, int line,
                          int column, const char *what)
{
    struct hr_label_table t = {0};
    struct hr_error error = {0};
    enum hr_err err = hr__label_table_read(file(text), &wanted, &t, &error);

    CHECK(err != HR_OK && err == error.code);
    CHECK_HAS(error.message, what);
    CHECK_EQ_INT(error.line, line);
    CHECK_EQ_INT(error.column, column);
    hr__label_table_finish(&t);
}

TEST(what_is_not_named_is_refused_with_the_candidates)
{
    static const char *const wait[] = {"wait"}, *const path[] = {"path"};
    struct hr_label_names more = names("path", "label");

    check_refused("path,class\na.jpg,1\n", names("path", "label"), 1, 1,
                  "no column is called \"label\"; the columns are \"path\", \"class\"");
    check_refused("filename,class\na.jpg,1\n", names("path", "label"), 1, 1,
                  "set path_column to the one that holds paths");
    check_refused("path,labels\na.jpg,1\n", names("path", "label"), 1, 1,
                  "did you mean \"labels\"?");
    check_refused("a.jpg,1\n", names("file", "label"), 1, 1, "there is no header");
    check_refused("a.jpg,1\n", names("path", "class"), 1, 1, "there is no header");
    check_refused("a.jpg\n", names("path", "label"), 1, 0, "1 columns and no header");
    check_refused("a.jpg,1,2\n", names("path", "label"), 1, 0, "3 columns and no header");
    check_refused("path,label\n", names("path", "path"), 0, 0, "are both \"path\"");
    check_refused("", names("path", "label"), 0, 0, "is empty");
    check_refused("path,label,data\n", names("path", "label"), 1, 12,
                  "rename that one with field");
    check_refused("path;label\na.jpg;1\n", names("path", "label"), 1, 1,
                  "separated by semicolons: write a comma");
    check_refused("path\tlabel\na.jpg\t1\n", names("path", "label"), 1, 1, "by tabs");
    more.more = wait;
    check_refused("path,label,weight\n", more, 1, 1, "no column is called \"wait\"");
    more.more = path;
    check_refused("path,label\n", more, 0, 0, "is the column of the paths already");
}

TEST(a_damaged_column_of_numbers_is_no_column_of_classes)
{
    struct hr_label_names given = names("path", "label");
    struct hr_label_table t = {0};

    check_refused(
        "path,label\na,0.5\nb,inf\n", names("path", "label"), 3, 3,
        "column \"label\": a text, and other lines have numbers with fractions");
    check_refused("path,label\na,nan\nb,NA\n", names("path", "label"), 2, 3,
                  "the value is missing, as all others are");
    given.classes = true;
    CHECK_OK(
        hr__label_table_read(file("path,label\na,1.6\nb,electric\n"), &given, &t, NULL));
    CHECK(hr__label_table_has_classes(&t));
    hr__label_table_finish(&t);
    given.classes = false;
    CHECK_OK(
        hr__label_table_read(file("path,label\na,7\nb,x\nc,NA\n"), &given, &t, NULL));
    CHECK(hr__label_table_has_classes(&t));
    hr__label_table_finish(&t);
}

TEST(a_record_has_at_most_64_fields)
{
    struct hr_str text;

    hr__str_init(&text);
    hr__str_add(&text, "path,label");
    for (int i = 0; i < HR_SCHEMA_FIELDS_MAX + 1; i++)
        hr__str_addf(&text, ",c%d", i);
    check_refused(hr__str_text(&text), names("path", "label"), 1, 246, "more columns");
    hr__str_finish(&text);
}
