/*
 * api/profile_saved_test.c - saved profiles: found again, merged, replaced when damaged,
 * bounded, and written by two processes at a time.
 */
#include "headrace/profile.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/profile_saved.h"
#include "core/alloc.h"
#include "core/cache_folder.h"
#include "core/file.h"
#include "core/str.h"
#include "tests/support/check.h"
#include "tests/support/pipeline.h"

#define PIPELINE                                                                         \
    "  - source.range: {n: 400}\n  - debug.spin: {us: 5}\n  - batch.stack: {size: 4}\n"
#define LONGER                                                                           \
    "  - source.range: {n: 400}\n  - debug.spin: {us: 5}\n  - debug.identity: {}\n"      \
    "  - batch.stack: {size: 4}\n"

/* A folder of its own for each test, which does not exist yet. */
static const char *new_folder(void)
{
    static char path[512];
    static int number;

    snprintf(path, sizeof path, "%s/saved%d/deep/er", check_temp_dir(), number++);
    return path;
}

/* The files of a folder; the path of the first one in `path`. */
static size_t files_in(const char *folder, char path[512])
{
    DIR *open = opendir(folder);
    struct dirent *entry;
    size_t count = 0;

    while (open != NULL && (entry = readdir(open)) != NULL)
        if (entry->d_name[0] != '.' && count++ == 0 && path != NULL)
            snprintf(path, 512, "%.200s/%.255s", folder, entry->d_name);
    if (open != NULL)
        closedir(open);
    return count;
}

static void
save(struct hr_graph *graph, const struct hr_profile *profile, const char *folder)
{
    struct hr_error error = {0};

    if (hr_profile_save(profile, graph, folder, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
}

static struct hr_profile *load(struct hr_graph *graph, const char *folder)
{
    struct hr_profile *profile = NULL;
    struct hr_error error = {0};

    if (hr_profile_load(graph, NULL, folder, &profile, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
    return profile;
}

TEST(a_saved_profile_is_found_again)
{
    const char *folder = new_folder();
    struct hr_graph *graph = pipeline_graph(PIPELINE), *same = pipeline_graph(PIPELINE);
    struct hr_profile *profile = pipeline_profile(graph), *found;
    struct hr_profile_options options;
    struct hr_error error = {0};

    CHECK_ERR(HR_ERR_NOT_FOUND, hr_profile_load(graph, NULL, folder, &found, &error));
    CHECK_HAS(error.message, "no profile of node 'source.range' (source.range) is saved");
    save(graph, profile, folder);
    CHECK_EQ_INT(files_in(folder, NULL), 3);
    found = load(same, folder);
    CHECK(hr__profile_equal(profile, found));
    CHECK(hr_profile_measured(found) == profile->nodes[0].measured);
    hr_profile_free(found);
    hr_profile_options_init(&options); /* costs of composed nodes are others */
    options.fuse = true;
    CHECK_ERR(HR_ERR_NOT_FOUND, hr_profile_load(graph, &options, folder, &found, NULL));
    options.fuse = false;
    options.variant = HR_VARIANT_THREADS;
    CHECK_ERR(HR_ERR_NOT_FOUND, hr_profile_load(graph, &options, folder, &found, NULL));
    hr_profile_free(profile);
    hr_graph_unref(graph);
    hr_graph_unref(same);
}

TEST(an_edit_leaves_the_nodes_before_it_valid)
{
    const char *folder = new_folder();
    struct hr_graph *graph = pipeline_graph(PIPELINE), *edited = pipeline_graph(LONGER);
    struct hr_profile *profile = pipeline_profile(graph), *found;
    struct hr_error error = {0};

    save(graph, profile, folder);
    CHECK_ERR(HR_ERR_NOT_FOUND, hr_profile_load(edited, NULL, folder, &found, &error));
    CHECK_HAS(error.message, "'debug.identity'");
    hr_profile_free(profile);
    profile = pipeline_profile(edited);
    save(edited, profile, folder);
    CHECK_EQ_INT(files_in(folder, NULL), 3 + 2);
    found = load(edited, folder);
    CHECK_EQ_INT(found->node_count, 4);
    CHECK(found->nodes[1].records_in > profile->nodes[1].records_in); /* of both */
    CHECK_EQ_INT(found->nodes[2].records_in, profile->nodes[2].records_in);
    hr_profile_free(found);
    hr_profile_free(profile);
    hr_graph_unref(graph);
    hr_graph_unref(edited);
}

/* Bytes of a file changed at random, and files cut short: nothing worse than "damaged",
 * and the next save puts it right. */
TEST(damaged_files_are_ignored_and_replaced)
{
    const char *folder = new_folder();
    struct hr_graph *graph = pipeline_graph(PIPELINE);
    struct hr_profile *profile = pipeline_profile(graph), *found = NULL;
    unsigned seed = (unsigned)check_seed();
    char path[512], *text = NULL;
    size_t bytes = 0;

    save(graph, profile, folder);
    CHECK_EQ_INT(files_in(folder, path), 3);
    CHECK_OK(hr__file_read(path, 1 << 20, &text, &bytes, NULL));
    for (int i = 0; i < 60; i++) {
        struct hr_error error = {0};
        char *damaged = hr__strndup(text, bytes);
        size_t length = i < 20 ? (size_t)rand_r(&seed) % bytes : bytes;
        enum hr_err code;

        damaged[(size_t)rand_r(&seed) % bytes] = (char)rand_r(&seed);
        CHECK_OK(hr__file_replace(path, damaged, length, NULL));
        hr__free(damaged);
        code = hr_profile_load(graph, NULL, folder, &found, &error);
        if (code == HR_OK) {
            hr_profile_free(found);
        } else {
            CHECK_EQ_INT(code, HR_ERR_FORMAT);
            CHECK_HAS(error.message, "will be replaced");
            CHECK_HAS(error.message, path);
        }
    }
    CHECK_OK(hr__file_replace(path, "no profile", 10, NULL));
    save(graph, profile, folder);
    found = load(graph, folder);
    hr_profile_free(found);
    hr__free(text);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

/* A file of another node under a node's name, as two equal hashes would give. */
TEST(a_file_of_another_node_is_ignored)
{
    const char *folder = new_folder();
    struct hr_graph *graph = pipeline_graph(PIPELINE), *other;
    struct hr_profile *profile = pipeline_profile(graph), *found;
    char path[512], *text = NULL, strange[512], there[512];
    struct hr_error error = {0};
    size_t bytes = 0;

    save(graph, profile, folder);
    files_in(folder, path);
    snprintf(strange, sizeof strange, "%s/strange", check_temp_dir());
    other = pipeline_graph("  - source.range: {n: 7}\n");
    hr_profile_free(profile);
    profile = pipeline_profile(other);
    save(other, profile, strange);
    files_in(strange, there);
    CHECK_OK(hr__file_read(there, 1 << 20, &text, &bytes, NULL));
    CHECK_OK(hr__file_replace(path, text, bytes, NULL));
    CHECK_ERR(HR_ERR_FORMAT, hr_profile_load(graph, NULL, folder, &found, &error));
    CHECK_HAS(error.message, "it is of another node");
    hr__free(text);
    hr_profile_free(profile);
    hr_graph_unref(graph);
    hr_graph_unref(other);
}

TEST(a_folder_that_cannot_be_written_is_harmless)
{
    struct hr_graph *graph = pipeline_graph(PIPELINE);
    struct hr_profile *profile = pipeline_profile(graph), *found;
    char path[512], below[600];
    struct hr_error error = {0};

    snprintf(path, sizeof path, "%s/plain", check_temp_dir());
    CHECK_OK(hr__file_replace(path, "x", 1, NULL));
    snprintf(below, sizeof below, "%s/profiles", path);
    CHECK_ERR(HR_ERR_IO, hr_profile_save(profile, graph, below, &error));
    CHECK_HAS(error.message, "HEADRACE_CACHE");
    CHECK_HAS(error.message, path);
    CHECK_ERR(HR_ERR_NOT_FOUND, hr_profile_load(graph, NULL, below, &found, &error));
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(the_environment_names_the_folder)
{
    static const char *const names[] = {"HEADRACE_CACHE", "XDG_CACHE_HOME", "HOME"};
    static const char *const folders[] = {"profiles", "headrace/profiles",
                                          ".cache/headrace/profiles"};
    struct hr_graph *graph = pipeline_graph(PIPELINE);
    struct hr_profile *profile = pipeline_profile(graph), *found;
    struct hr_error error = {0};
    char path[512], folder[600];

    for (int i = 0; i < 3; i++)
        unsetenv(names[i]);
    CHECK_ERR(HR_ERR_NOT_FOUND, hr_profile_save(profile, graph, NULL, &error));
    CHECK_HAS(error.message, "there is no cache folder");
    for (int i = 2; i >= 0; i--) { /* each goes before those that are set already */
        snprintf(path, sizeof path, "%s/env%d", check_temp_dir(), i);
        setenv(names[i], path, 1);
        save(graph, profile, NULL);
        snprintf(folder, sizeof folder, "%s/%s", path, folders[i]);
        CHECK_EQ_INT(files_in(folder, NULL), 3);
    }
    setenv("HEADRACE_CACHE", "", 1);
    CHECK_ERR(HR_ERR_NOT_FOUND, hr_profile_load(graph, NULL, NULL, &found, &error));
    unsetenv("HEADRACE_CACHE");
    setenv("XDG_CACHE_HOME", "relative", 1); /* which is to be ignored */
    found = load(graph, NULL);
    hr_profile_free(found);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(the_oldest_files_go)
{
    const char *folder = new_folder();
    struct hr_graph *graph = pipeline_graph(PIPELINE);
    struct hr_profile *profile = pipeline_profile(graph);
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char first[512], other[512];
    struct stat about;

    save(graph, profile, folder);
    CHECK_EQ_INT(files_in(folder, first), 3);
    CHECK_EQ_INT(utimensat(AT_FDCWD, first, old, 0), 0);
    hr__evict_files(folder, 3, 1 << 20);
    CHECK_EQ_INT(files_in(folder, NULL), 3);
    hr__evict_files(folder, 2, 1 << 20);
    CHECK_EQ_INT(files_in(folder, other), 2);
    CHECK(stat(first, &about) != 0);
    CHECK_EQ_INT(stat(other, &about), 0);
    hr__evict_files(folder, 9, (uint64_t)about.st_size);
    CHECK(files_in(folder, NULL) <= 1);
    hr__evict_files(folder, 0, 0);
    CHECK_EQ_INT(files_in(folder, NULL), 0);
    hr__evict_files("/nowhere at all", 0, 0);
    save(graph, profile, folder);
    CHECK_EQ_INT(files_in(folder, NULL), 3);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

/* Whatever they write in turns, each file is whole at any moment. */
TEST(processes_save_at_the_same_time)
{
    const char *folder = new_folder();
    struct hr_graph *graph = pipeline_graph(PIPELINE);
    struct hr_profile *profile = pipeline_profile(graph), *found;
    struct hr_error error = {0};
    pid_t children[3];
    int status;

    save(graph, profile, folder);
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            for (int n = 0; n < 20; n++)
                if (hr_profile_save(profile, graph, folder, NULL) != HR_OK)
                    _exit(1);
            _exit(0);
        }
    }
    for (int n = 0; n < 50; n++) {
        if (hr_profile_load(graph, NULL, folder, &found, &error) != HR_OK)
            check_failed(__FILE__, __LINE__, "%s", error.message);
        hr_profile_free(found);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(waitpid(children[i], &status, 0), children[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK_EQ_INT(files_in(folder, NULL), 3);
    found = load(graph, folder);
    CHECK(found->nodes[1].records_in >= 2 * profile->nodes[1].records_in);
    hr_profile_free(found);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}

TEST(failing_allocations_and_writes_lose_nothing)
{
    const char *folder = new_folder();
    struct hr_graph *graph = pipeline_graph(PIPELINE);
    struct hr_profile *profile = pipeline_profile(graph), *found = NULL;
    static const unsigned kinds[] = {HR_FAULT_ALLOC, HR_FAULT_OPEN | HR_FAULT_WRITE};
    enum hr_err code;

    save(graph, profile, folder);
    for (size_t k = 0; k < 2; k++)
        for (uint64_t nth = 1;; nth++) {
            hr__fault_arm(kinds[k], nth);
            code = hr_profile_save(profile, graph, folder, NULL);
            hr__fault_arm(0, 0);
            hr_profile_free(load(graph, folder));
            if (code == HR_OK)
                break;
        }
    for (uint64_t nth = 1;; nth++) {
        hr__fault_arm(HR_FAULT_ALLOC, nth);
        code = hr_profile_load(graph, NULL, folder, &found, NULL);
        hr__fault_arm(0, 0);
        if (code == HR_OK)
            break;
        CHECK_EQ_INT(code, HR_ERR_MEMORY);
    }
    hr_profile_free(found);
    hr_profile_free(profile);
    hr_graph_unref(graph);
}
