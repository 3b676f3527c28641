/*
 * store/coco_test.c - what COCO's annotations say, and what is wrong with others.
 */
#include "store/coco.h"

#include "core/alloc.h"
#include "core/str.h"
#include "tests/support/check.h"

#include <string.h>

static struct hr_coco coco;
static struct hr_error error;

static enum hr_err parse(const char *text, const struct hr_coco_options *options)
{
    static const struct hr_coco_options all = {0};

    memset(&error, 0, sizeof error);
    return hr__coco_parse(text, strlen(text), "some.json",
                          options != NULL ? options : &all, &coco, &error);
}

#define CATEGORIES                                                                       \
    "\"categories\": [{\"id\": 90, \"name\": \"cat\"}, "                                 \
    "{\"supercategory\": \"x\", \"id\": 18, \"name\": \"d\\u00f6g\"}]"
#define IMAGES                                                                           \
    "\"images\": [{\"id\": 9, \"file_name\": \"b.jpg\"}, "                               \
    "{\"id\": 700, \"file_name\": \"no boxes.jpg\"}, "                                   \
    "{\"file_name\": \"a.jpg\", \"id\": 4, \"width\": 640}]"
#define BOX(id, image, category, box)                                                    \
    "{\"segmentation\": [[1, 2], {\"a\": \"]\"}], \"id\": " #id                          \
    ", \"image_id\": " #image ", \"category_id\": " #category ", \"bbox\": " box "}"
#define FILE_OF(boxes) "{" CATEGORIES ", \"annotations\": [" boxes "], " IMAGES "}"

static const char whole[] = FILE_OF(BOX(1, 9, 18, "[10.5, 4, 20, 30.25]") ", " BOX(
    7, 4, 90, "[1, 2, 3, 4], \"iscrowd\": 1, \"area\": 5.5") ", " BOX(3, 9, 90,
                                                                      "[0,0,0,0]"));

TEST(boxes_and_categories_of_images_in_order_of_id)
{
    CHECK_OK(parse(whole, NULL));
    CHECK_EQ_INT(coco.image_count, 3);
    CHECK_EQ_STR(coco.images[0].name, "a.jpg");
    CHECK_EQ_STR(coco.images[1].name, "b.jpg");
    CHECK_EQ_INT(coco.images[2].id, 700);
    CHECK_EQ_INT(coco.images[0].count, 1);
    CHECK_EQ_INT(coco.images[1].count, 2);
    CHECK_EQ_INT(coco.images[2].count, 0);
    CHECK_EQ_INT(coco.category_count, 2);
    CHECK_EQ_STR(coco.categories[0], "d\xc3\xb6g");
    CHECK_EQ_STR(coco.categories[1], "cat");
    CHECK_EQ_INT(coco.objects[0].id, 7);
    CHECK(coco.objects[0].crowd && coco.objects[0].area == 5.5);
    CHECK_EQ_INT(coco.objects[0].label, 1);
    CHECK_EQ_INT(coco.objects[1].label, 0);
    CHECK(coco.objects[1].box[0] == 10.5f && coco.objects[1].box[1] == 4 &&
          coco.objects[1].box[2] == 30.5f && coco.objects[1].box[3] == 34.25f);
    CHECK(coco.objects[1].area == 605 && !coco.objects[1].crowd);
    CHECK_EQ_INT(coco.objects[2].id, 3);
    hr__coco_finish(&coco);
}

TEST(crowds_and_images_without_boxes_are_left_out)
{
    CHECK_OK(parse(whole, &(struct hr_coco_options){.drop_empty = true}));
    CHECK_EQ_INT(coco.image_count, 2);
    hr__coco_finish(&coco);
    CHECK_OK(parse(whole, &(struct hr_coco_options){.drop_crowd = true}));
    CHECK_EQ_INT(coco.image_count, 3);
    CHECK_EQ_INT(coco.images[0].count, 0);
    hr__coco_finish(&coco);
    CHECK_OK(
        parse(whole, &(struct hr_coco_options){.drop_crowd = true, .drop_empty = true}));
    CHECK_EQ_INT(coco.image_count, 1);
    CHECK_EQ_STR(coco.images[0].name, "b.jpg");
    CHECK_EQ_INT(coco.images[0].count, 2);
    hr__coco_finish(&coco);
}

TEST(given_classes_number_the_categories)
{
    static const char *const some[] = {"bird", "cat"};

    CHECK_OK(parse(whole, &(struct hr_coco_options){.classes = some, .class_count = 2}));
    CHECK_EQ_INT(coco.category_count, 2);
    CHECK_EQ_STR(coco.categories[0], "bird");
    CHECK_EQ_INT(coco.objects[0].label, 1);
    CHECK(coco.images[0].fault == NULL);
    CHECK_HAS(coco.images[1].fault, "not among `classes`");
    CHECK_EQ_INT(coco.images[1].fault_id, 1);
    hr__coco_finish(&coco);
}

static void check_fault(const char *text, const char *words)
{
    CHECK_OK(parse(text, NULL));
    CHECK_EQ_INT(coco.images[1].fault_id, 12);
    CHECK_HAS(coco.images[1].fault, words);
    CHECK(coco.images[0].fault == NULL && coco.images[2].fault == NULL);
    hr__coco_finish(&coco);
}

TEST(a_bad_annotation_is_the_fault_of_its_image)
{
    check_fault(FILE_OF(BOX(12, 9, 18, "[1, 2, 3]")), "4 numbers");
    check_fault(FILE_OF(BOX(12, 9, 18, "[1, 2, 3, 4, 5]")), "4 numbers");
    check_fault(FILE_OF(BOX(12, 9, 18, "[]")), "4 numbers");
    check_fault(FILE_OF(BOX(12, 9, 18, "null")), "no bbox");
    check_fault(FILE_OF(BOX(12, 9, 18, "[1, NaN, 3, 4]")), "finite");
    check_fault(FILE_OF(BOX(12, 9, 18, "[1, 1e999, 3, 4]")), "finite");
    check_fault(FILE_OF(BOX(12, 9, 18, "[1, \"2\", 3, 4]")), "finite");
    check_fault(FILE_OF(BOX(12, 9, 18, "[1, 2, -3, 4]")), "negative");
    check_fault(FILE_OF(BOX(12, 9, 5, "[1, 2, 3, 4]")), "category is not listed");
    check_fault("{" CATEGORIES ", " IMAGES
                ", \"annotations\": [{\"id\": 12, \"image_id\": 9}]}",
                "no category_id");
}

#define REFUSED(text, words)                                                             \
    do {                                                                                 \
        CHECK_ERR(HR_ERR_FORMAT, parse(text, NULL));                                     \
        CHECK_HAS(error.message, words);                                                 \
        CHECK_HAS(error.message, "some.json");                                           \
        hr__coco_finish(&coco);                                                          \
    } while (0)

TEST(what_is_wrong_with_the_file_is_an_error_with_its_place)
{
    REFUSED("", "unexpected end");
    REFUSED("[]", "some.json:1:1");
    REFUSED("{}", "no list \"images\"");
    REFUSED("{\"images\": {}}", "some.json:1:12");
    REFUSED("{\"images\": []} x", "something follows");
    REFUSED("{\"images\": [],\n  \"annotations\" []}", "some.json:2:17");
    REFUSED("{\"images\": [{\"id\": 1}]}", "no file_name");
    REFUSED("{\"images\": [{\"file_name\": \"a\"}]}", "no id");
    REFUSED("{\"images\": [{\"id\": \"1\", \"file_name\": \"a\"}]}", "whole number");
    REFUSED("{\"images\": [{\"id\": 1.5, \"file_name\": \"a\"}]}", "whole number");
    REFUSED("{\"images\": [{\"id\": 1, \"file_name\": \"a\\u0000\"}]}", "NUL");
    REFUSED("{\"images\": [{\"id\": 1, \"file_name\": \"\xff\"}]}", "valid JSON string");
    REFUSED("{\"images\": [{\"id\": 1, \"file_name\": \"a\"}, "
            "{\"id\": 1, \"file_name\": \"b\"}]}",
            "two images have the id 1");
    REFUSED("{\"images\": [], \"categories\": [{\"id\": 1, \"name\": \"a\"}, "
            "{\"id\": 1, \"name\": \"b\"}]}",
            "two categories have the id 1");
    REFUSED("{\"images\": [], \"categories\": [{\"id\": 1, \"name\": \"a\"}, "
            "{\"id\": 3, \"name\": \"a\"}]}",
            "categories 1 and 3 are both called \"a\"");
    REFUSED(FILE_OF(BOX(12, 5, 18, "[1, 2, 3, 4]")),
            "annotation 12 is of image 5, which is not listed");
    REFUSED("{\"images\": [], \"annotations\": [{\"image_id\": 1}]}", "no id");
    REFUSED("{\"images\": [], \"annotations\": [{\"id\": 1}]}", "no image_id");
}

TEST(a_file_cut_short_anywhere_is_an_error)
{
    for (size_t bytes = 0; bytes + 1 < sizeof whole; bytes++) {
        const struct hr_coco_options options = {0};
        char *part = hr__malloc(bytes + 1);

        memcpy(part, whole, bytes); /* exactly as long, for sanitizers */
        CHECK_ERR(HR_ERR_FORMAT,
                  hr__coco_parse(part, bytes, "some.json", &options, &coco, NULL));
        hr__coco_finish(&coco);
        hr__free(part);
    }
}

TEST(byte_order_marks_and_line_ends_do_not_matter)
{
    CHECK_OK(parse("\xef\xbb\xbf{\r\n\t\"images\" : [ ] ,\r\n\"categories\":[]\r\n}\r\n",
                   NULL));
    CHECK_EQ_INT(coco.image_count, 0);
    hr__coco_finish(&coco);
}
