/*
 * store/voc_test.c - what Pascal VOC's files say, and what is wrong with others.
 */
#include "store/voc.h"

#include <string.h>

#include "core/alloc.h"
#include "core/str.h"
#include "store/xml.h"
#include "tests/support/check.h"

static struct hr_voc voc;
static struct hr_error error;
static struct hr_class_set set;
static struct hr_classes names;

static void open_classes(void)
{
    for (size_t i = 0; i < HR_VOC_CLASSES; i++)
        CHECK_EQ_INT(hr__class_add(&set, hr__voc_classes[i], strlen(hr__voc_classes[i])),
                     i);
    CHECK_OK(hr__class_close(&set, NULL, &names));
}

static void close_classes(void)
{
    hr__class_set_free(&set);
    hr__classes_free(&names);
    memset(&set, 0, sizeof set);
}

static enum hr_err parse(const char *text, struct hr_voc_options options)
{
    memset(&error, 0, sizeof error);
    options.classes = &set;
    options.names = &names;
    return hr__voc_parse(text, strlen(text), "some.xml", &options, &voc, &error);
}

#define BOX                                                                              \
    "<bndbox><xmin>1</xmin><ymin>2.5</ymin><xmax>500</xmax><ymax>3</ymax></bndbox>"
#define OBJECT(inner) "<object>" inner "</object>"
#define FILE_OF(inner) "<annotation><folder>VOC2012</folder>\n" inner "</annotation>"

/* In the order that VOC2012 has, with parts whose names and boxes are their own. */
static const char whole[] = "\xef\xbb\xbf<?xml version=\"1.0\"?>\r\n" FILE_OF(
    "<size><depth>3</depth><height> 375 </height>\r\n<width>500</width></size>"
    "<segmented>1</segmented>" OBJECT(
        "<part><name>head</name><bndbox><xmin>9</xmin></bndbox></part>"
        "<name>\n person\n</name><actions><jumping>1</jumping></actions>"
        "<difficult>1</difficult>" BOX "<part><bndbox><xmax>7</xmax></bndbox></part>")
        OBJECT("<bndbox><ymax>9</ymax><xmax>8</xmax><xmin>8</xmin><ymin>9</ymin></bndbox>"
               "<truncated>1</truncated><difficult>0</difficult><name>aeroplane</name>"
               "<pose>Unspecified</pose>")
            OBJECT("<name>tv&#109;onitor</name>" BOX "<truncated>Unspecified</truncated>"
                   "<difficult/>"));

static void check_box(size_t i, float x1, float y1, float x2, float y2)
{
    const float *box = voc.objects[i].box;

    CHECK(box[0] == x1 && box[1] == y1 && box[2] == x2 && box[3] == y2);
}

TEST(objects_with_boxes_that_count_from_0)
{
    open_classes();
    CHECK_OK(parse(whole, (struct hr_voc_options){0}));
    CHECK_EQ_INT(voc.width, 500);
    CHECK_EQ_INT(voc.height, 375);
    CHECK_EQ_INT(voc.count, 3);
    CHECK_EQ_INT(voc.objects[0].label, 14);
    CHECK_EQ_INT(voc.objects[1].label, 0);
    CHECK_EQ_INT(voc.objects[2].label, 19);
    CHECK(voc.objects[0].difficult && !voc.objects[0].truncated);
    CHECK(!voc.objects[1].difficult && voc.objects[1].truncated);
    CHECK(!voc.objects[2].difficult && !voc.objects[2].truncated);
    check_box(0, 0, 1.5f, 500, 3);
    check_box(1, 7, 8, 8, 9); /* one pixel */
    hr__voc_finish(&voc);
    CHECK_OK(parse(whole, (struct hr_voc_options){.drop_difficult = true, .raw = true}));
    CHECK_EQ_INT(voc.count, 2);
    check_box(0, 8, 9, 8, 9);
    check_box(1, 1, 2.5f, 500, 3);
    hr__voc_finish(&voc);
    close_classes();
}

TEST(a_picture_without_objects_and_without_a_size)
{
    open_classes();
    CHECK_OK(parse("<annotation/>", (struct hr_voc_options){0}));
    CHECK_EQ_INT(voc.count, 0);
    CHECK_EQ_INT(voc.width, 0);
    hr__voc_finish(&voc);
    CHECK_OK(parse(FILE_OF("<size><width>0</width><height>?</height></size>"),
                   (struct hr_voc_options){0}));
    CHECK_EQ_INT(voc.height, 0);
    hr__voc_finish(&voc);
    close_classes();
}

TEST(names_are_found)
{
    struct hr_class_set found = {0};
    struct hr_classes classes;
    uint32_t ranks[3];

    CHECK_OK(parse(whole, (struct hr_voc_options){.found = &found}));
    hr__voc_finish(&voc);
    CHECK_EQ_INT(found.count, 3);
    CHECK_OK(hr__class_close(&found, ranks, &classes));
    CHECK_EQ_STR(classes.names[0], "aeroplane");
    CHECK_EQ_STR(classes.names[2], "tvmonitor");
    hr__classes_free(&classes);
    hr__class_set_free(&found);
}

TEST(what_is_wrong_is_named_with_line_and_object)
{
    static const struct {
        const char *text, *words;
        int line;
    } cases[] = {
        {"",                                                                           "no element found",                   1},
        {"<annotation>\n<object>",                                                     "no element found",                   2},
        {"<annotation>\n<object></annotation>",                                        "mismatched tag",                     2},
        {"{\"a\": 1}",                                                                 "no well-formed XML",                 1},
        {"<html/>",                                                                    "was expected, not <html>",           1},
        {FILE_OF(OBJECT(BOX)),                                                         "object 1 has no <name>",             2},
        {FILE_OF(OBJECT("<name> </name>" BOX)),                                        "object 1 has an empty name",         2},
        {FILE_OF(OBJECT("<name>cat</name>")),                                          "object 1 (\"cat\") has no <bndbox>", 2},
        {FILE_OF(OBJECT("<name>cat</name><name>dog</name>" BOX)),                      "has two names",                      2},
        {FILE_OF(OBJECT("<name>cat</name>" BOX BOX)),                                  "has two <bndbox>",                   2},
        {FILE_OF(OBJECT("<name>cat</name>" BOX) "\n" OBJECT("<name>cart</name>" BOX)),
         "object 2: \"cart\" is not among the 20 given classes; did you mean \"car\"?",                                      3},
        {FILE_OF(OBJECT("<name>dog</name>\n<bndbox><xmin>1</xmin></bndbox>")),
         "object 1 (\"dog\") has no <ymin> in its <bndbox>",                                                                 3},
        {FILE_OF(OBJECT("<name>dog</name><bndbox><xmin>1,5</xmin></bndbox>")),
         "has \"1,5\" as its xmin, which is no number",                                                                      2},
        {FILE_OF(OBJECT("<name>dog</name><bndbox><xmin>nan</xmin></bndbox>")),
         "no number",                                                                                                        2},
        {FILE_OF(OBJECT("<name>dog</name><bndbox><xmin>1e99</xmin></bndbox>")),
         "no number",                                                                                                        2},
        {FILE_OF(OBJECT("<name>dog</name><difficult>yes</difficult>" BOX)),
         "has \"yes\" as its difficult, which is no number",                                                                 2},
        {FILE_OF(
             OBJECT("<name>dog</name><bndbox><xmin>9</xmin><ymin>1</ymin><xmax>8</xmax>"
                    "<ymax>2</ymax></bndbox>")),
         "has a xmax of 8, which is less than its xmin of 9",                                                                2},
        {"<!DOCTYPE annotation [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>"
         "<annotation>&b;</annotation>",                                      "document type",                      1},
    };

    open_classes();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse(cases[i].text, (struct hr_voc_options){0}) != HR_ERR_FORMAT)
            check_failed(__FILE__, __LINE__, "case %zu: %s", i, error.message);
        CHECK_HAS(error.message, cases[i].words);
        CHECK_HAS(error.message, "some.xml:");
        CHECK_EQ_INT(error.line, cases[i].line);
        hr__voc_finish(&voc);
    }
    close_classes();
}

TEST(depth_and_texts_are_bounded)
{
    struct hr_str text;

    open_classes();
    hr__str_init(&text);
    hr__str_add(&text, "<annotation>");
    for (int i = 0; i < HR_XML_DEPTH_MAX; i++)
        hr__str_add(&text, "<a>");
    CHECK_ERR(HR_ERR_LIMIT, parse(hr__str_text(&text), (struct hr_voc_options){0}));
    CHECK_HAS(error.message, "more than 64 deep");
    hr__voc_finish(&voc);
    hr__str_clear(&text);
    hr__str_add(&text, "<annotation><object><name>");
    for (int i = 0; i <= HR_XML_TEXT_MAX; i++)
        hr__str_add(&text, "a");
    hr__str_add(&text, "</name></object></annotation>");
    CHECK_ERR(HR_ERR_LIMIT, parse(hr__str_text(&text), (struct hr_voc_options){0}));
    CHECK_HAS(error.message, "longer than 12288 bytes");
    hr__voc_finish(&voc);
    CHECK_ERR(HR_ERR_LIMIT,
              hr__voc_parse(text.text, HR_VOC_BYTES_MAX + 1, "a.xml",
                            &(struct hr_voc_options){.classes = &set, .names = &names},
                            &voc, &error));
    hr__voc_finish(&voc);
    hr__str_finish(&text);
    close_classes();
}

static void check_list(const char *text, const char *const *wanted, size_t count)
{
    struct hr_voc_list list;

    CHECK_OK(hr__voc_list(text, strlen(text), "train.txt", &list, &error));
    CHECK_EQ_INT(list.count, count);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ_STR(list.names[i], wanted[i]);
    hr__voc_list_finish(&list);
}

TEST(lists_of_names)
{
    struct hr_voc_list list;

    check_list("", NULL, 0);
    check_list("\n \r\n\n", NULL, 0);
    check_list("a", (const char *const[]){"a"}, 1);
    check_list("\xef\xbb\xbf"
               "2007_000032\r\n\r\n  a picture 1 \nb 0",
               (const char *const[]){"2007_000032", "a picture 1", "b 0"}, 3);
    check_list("000012 -1\n000017  1\n000023  0\n", /* aeroplane_train.txt */
               (const char *const[]){"000017", "000023"}, 2);
    CHECK_ERR(HR_ERR_FORMAT, hr__voc_list("a -1\n\nb -1", 10, "cat.txt", &list, &error));
    CHECK_HAS(error.message, "cat.txt: every name is followed by -1");
    hr__voc_list_finish(&list);
    CHECK_ERR(HR_ERR_FORMAT, hr__voc_list("a\nb\0c\n", 6, "train.txt", &list, &error));
    CHECK_HAS(error.message, "train.txt:2:1: the name of a picture contains a NUL byte");
    hr__voc_list_finish(&list);
}
