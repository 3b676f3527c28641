/*
 * wire/schema_test.c - names of classes to bytes and back, and bytes that lie.
 */
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "wire/schema.h"

static const char *const animals[] = {"cat", "", "Hund \xc3\xa4"};
static const char *const things[] = {"sky"};
static const struct hr_field_classes of_label = {animals, 3}, of_mask = {things, 1};

static struct hr_field field(const char *name, const struct hr_field_classes *classes)
{
    struct hr_field made = {.kind = HR_FIELD_TENSOR, .dtype = HR_I64, .classes = classes};

    snprintf(made.name, sizeof made.name, "%s", name);
    return made;
}

static void make(struct hr_schema *schema, struct hr_str *text)
{
    schema->fields[0] = field("label", &of_label);
    schema->fields[1] = field("number", NULL);
    schema->fields[2] = field("mask", &of_mask);
    schema->count = 3;
    hr__str_init(text);
    hr__wire_classes_write(schema, text);
    CHECK(hr__str_ok(text));
}

/* A copy of exactly `bytes` bytes, so that ASan sees a read behind them. */
static enum hr_err read_copy(const char *text, size_t bytes, struct hr_schema *schema,
                             struct hr_wire_classes *classes, char **ret_copy)
{
    struct hr_wire_input in = {NULL, bytes, false};

    *ret_copy = malloc(bytes);
    CHECK(bytes == 0 || *ret_copy != NULL);
    if (bytes > 0)
        memcpy(*ret_copy, text, bytes);
    in.at = *ret_copy;
    for (size_t i = 0; i < schema->count; i++)
        schema->fields[i].classes = NULL;
    return hr__wire_classes_read(&in, schema, classes);
}

TEST(names_of_classes_come_back)
{
    struct hr_schema schema = {0};
    struct hr_wire_classes classes;
    struct hr_str text;
    char *copy;

    make(&schema, &text);
    CHECK_EQ_INT(text.length, 2 * 8 + 4 + 1 + 8 + 4);
    CHECK_OK(read_copy(hr__str_text(&text), text.length, &schema, &classes, &copy));
    CHECK(schema.fields[1].classes == NULL);
    CHECK_EQ_INT(schema.fields[0].classes->count, 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ_STR(schema.fields[0].classes->names[i], animals[i]);
    CHECK_EQ_INT(schema.fields[2].classes->count, 1);
    CHECK_EQ_STR(schema.fields[2].classes->names[0], "sky");
    hr__wire_classes_finish(&classes);
    free(copy);
    hr__str_finish(&text);
}

/* What a name refers to is inside of the text, whatever it says. */
static void check_inside(const struct hr_schema *schema, const char *text, size_t bytes)
{
    for (size_t i = 0; i < schema->count; i++)
        for (size_t k = 0;
             schema->fields[i].classes != NULL && k < schema->fields[i].classes->count;
             k++) {
            const char *name = schema->fields[i].classes->names[k];

            CHECK(name >= text && name + strlen(name) < text + bytes);
        }
}

TEST(names_that_are_cut_or_changed_are_refused_or_inside_of_the_text)
{
    struct hr_schema schema = {0};
    struct hr_wire_classes classes;
    struct hr_str text;
    enum hr_err code;
    char *copy;
    struct timespec now;
    unsigned seed;

    clock_gettime(CLOCK_REALTIME, &now);
    seed = (unsigned)now.tv_nsec;
    printf("# seed %u\n", seed);
    srand(seed);
    make(&schema, &text);
    for (size_t bytes = 1; bytes < text.length; bytes++) {
        code = read_copy(hr__str_text(&text), bytes, &schema, &classes, &copy);
        CHECK_EQ_INT(code, bytes == 8 + 13 ? HR_OK : HR_ERR_FORMAT); /* the first field */
        hr__wire_classes_finish(&classes);
        free(copy);
    }
    for (int i = 0; i < 2000; i++) {
        size_t at = (size_t)rand() % text.length;
        char old = text.text[at];

        text.text[at] = (char)rand();
        code = read_copy(hr__str_text(&text), text.length, &schema, &classes, &copy);
        CHECK(code == HR_OK || code == HR_ERR_FORMAT);
        if (code == HR_OK)
            check_inside(&schema, copy, text.length);
        hr__wire_classes_finish(&classes);
        free(copy);
        text.text[at] = old;
    }
    hr__str_finish(&text);
}

TEST(names_of_what_is_no_class_number_and_of_a_field_twice_are_refused)
{
    struct hr_schema schema = {0};
    struct hr_wire_classes classes;
    struct hr_str text;
    char *copy;

    make(&schema, &text);
    schema.fields[0].dtype = HR_F32;
    CHECK_ERR(HR_ERR_FORMAT,
              read_copy(hr__str_text(&text), text.length, &schema, &classes, &copy));
    hr__wire_classes_finish(&classes);
    free(copy);
    hr__str_finish(&text);
    make(&schema, &text);
    hr__wire_classes_write(&schema, &text);
    CHECK_ERR(HR_ERR_FORMAT,
              read_copy(hr__str_text(&text), text.length, &schema, &classes, &copy));
    hr__wire_classes_finish(&classes);
    free(copy);
    hr__str_finish(&text);
}
