/*
 * core/cpu_test.c - instruction sets, CPUs available to the process, resident memory.
 */
#include "core/clock.h"
#include "core/cpu.h"
#include "core/file.h"
#include "tests/support/check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(the_limit_lowers_but_never_raises)
{
    enum hr_isa best;

    hr__isa_limit(HR_ISA_AVX512);
    best = hr__isa();
    for (int isa = HR_ISA_C; isa <= HR_ISA_AVX512; isa++) {
        hr__isa_limit((enum hr_isa)isa);
        CHECK((int)hr__isa() <= isa && hr__isa() <= best);
    }
    hr__isa_limit(HR_ISA_C);
    CHECK_EQ_STR(hr__isa_name(hr__isa()), "c");
#if defined(__x86_64__)
    hr__isa_limit(HR_ISA_NEON);
    CHECK_EQ_INT(hr__isa(), HR_ISA_C);
#endif
    hr__isa_limit(HR_ISA_AVX512);
    CHECK_EQ_INT(hr__isa(), best);
}

TEST(the_model_has_a_name_that_fits)
{
    char text[64], small[4];

    CHECK(strlen(hr__cpu_model(text, sizeof text)) > 0 && strchr(text, '\n') == NULL);
    CHECK(strncmp(hr__cpu_model(small, sizeof small), text, 3) == 0);
}

TEST(the_affinity_mask_counts)
{
    cpu_set_t old, one;
    int first = 0;

    CHECK(hr__cpu_count() >= 1);
    CHECK_EQ_INT(sched_getaffinity(0, sizeof old, &old), 0);
    while (!CPU_ISSET(first, &old))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK_EQ_INT(sched_setaffinity(0, sizeof one, &one), 0);
    CHECK_EQ_INT(hr__cpu_count(), 1);
    sched_setaffinity(0, sizeof old, &old);
}

static void put(const char *root, const char *folders, const char *name, const char *text)
{
    char path[1024];

    snprintf(path, sizeof path, "%s%s", root, folders);
    for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        CHECK(mkdir(path, 0777) == 0 || errno == EEXIST);
        *at = '/';
    }
    CHECK(mkdir(path, 0777) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s%s/%s", root, folders, name);
    CHECK_OK(hr__file_replace(path, text, strlen(text), NULL));
}

TEST(the_least_quota_up_the_tree_counts)
{
    char root[512];

    snprintf(root, sizeof root, "%s/v2", check_temp_dir());
    put(root, "/a/b", "cpu.max", "max 100000\n");
    CHECK_EQ_INT(hr__cgroup_cpus("0::/a/b\n", root), 0);
    put(root, "/a", "cpu.max", "250000 100000\n");
    CHECK_EQ_INT(hr__cgroup_cpus("0::/a/b\n", root), 3);
    put(root, "/a/b", "cpu.max", "100000 100000\n");
    CHECK_EQ_INT(hr__cgroup_cpus("0::/a/b\n", root), 1);
    CHECK_EQ_INT(hr__cgroup_cpus("0::/elsewhere\n", root), 0);
    put(root, "", "cpu.max", "400000 100000");
    CHECK_EQ_INT(hr__cgroup_cpus("0::/host/path/unseen\n", root), 4);
}

TEST(the_old_hierarchy_counts)
{
    static const char groups[] =
        "12:cpuset:/x\n4:cpu,cpuacct:/g/h\n1:name=systemd:/y\n0::/\n";
    char root[512];

    snprintf(root, sizeof root, "%s/v1", check_temp_dir());
    put(root, "/cpu/g/h", "cpu.cfs_quota_us", "-1\n");
    put(root, "/cpu/g/h", "cpu.cfs_period_us", "100000\n");
    CHECK_EQ_INT(hr__cgroup_cpus(groups, root), 0);
    put(root, "/cpu/g", "cpu.cfs_quota_us", "150000\n");
    put(root, "/cpu/g", "cpu.cfs_period_us", "100000\n");
    CHECK_EQ_INT(hr__cgroup_cpus(groups, root), 2);
}

TEST(broken_group_files_mean_no_quota)
{
    char root[512];

    snprintf(root, sizeof root, "%s/bad", check_temp_dir());
    put(root, "/", "cpu.max", "0 0");
    CHECK_EQ_INT(hr__cgroup_cpus("0::/", root), 0);
    put(root, "/", "cpu.max", "-5 x");
    CHECK_EQ_INT(hr__cgroup_cpus("0::/\n\n:::\nnonsense", root), 0);
    CHECK_EQ_INT(hr__cgroup_cpus("", root), 0);
}

TEST(limits_of_memory_count_in_both_hierarchies)
{
    char root[512];

    snprintf(root, sizeof root, "%s/memory", check_temp_dir());
    put(root, "/a/b", "memory.max", "max\n");
    CHECK_EQ_INT(hr__cgroup_memory("0::/a/b\n", root), 0);
    put(root, "/a", "memory.max", "3145729\n");
    CHECK_EQ_INT(hr__cgroup_memory("0::/a/b\n", root), 3 << 20);
    put(root, "/memory/g", "memory.limit_in_bytes", "9223372036854771712\n");
    CHECK_EQ_INT(hr__cgroup_memory("3:memory:/g\n", root), 0);
    put(root, "/memory/g", "memory.limit_in_bytes", "1048576\n");
    CHECK_EQ_INT(hr__cgroup_memory("4:blkio,memory:/g\n2:cpu:/g\n", root), 1 << 20);
    CHECK_EQ_INT(hr__cgroup_memory("4:memory2:/g\n", root), 0);
    CHECK(hr__memory_bytes() > 1 << 20);
}

TEST(what_is_left_of_a_limit_is_free_memory)
{
    char root[512];

    snprintf(root, sizeof root, "%s/left", check_temp_dir());
    put(root, "/a/b", "memory.max", "max\n");
    put(root, "/a/b", "memory.current", "1048576\n");
    CHECK_EQ_INT(hr__cgroup_memory_free("0::/a/b\n", root), 0);
    put(root, "/a", "memory.max", "10485760\n");
    CHECK_EQ_INT(hr__cgroup_memory_free("0::/a/b\n", root), 10 << 20);
    put(root, "/a", "memory.current", "9437184\n");
    CHECK_EQ_INT(hr__cgroup_memory_free("0::/a/b\n", root), 1 << 20);
    put(root, "/a", "memory.stat", "anon 5\nactive_file 7\ninactive_file 4194304\n");
    CHECK_EQ_INT(hr__cgroup_memory_free("0::/a/b\n", root), 5 << 20);
    put(root, "/a/b", "memory.max", "2097152\n");
    CHECK_EQ_INT(hr__cgroup_memory_free("0::/a/b\n", root), 1 << 20);
    put(root, "/a", "memory.stat", "inactive_file x");
    put(root, "/a", "memory.current", "99999999\n");
    CHECK_EQ_INT(hr__cgroup_memory_free("0::/a\n", root), 1 << 20);
    put(root, "/memory/g", "memory.limit_in_bytes", "4194304\n");
    put(root, "/memory/g", "memory.usage_in_bytes", "3145728\n");
    put(root, "/memory/g", "memory.stat",
        "inactive_file 9\ntotal_inactive_file 1048576\n");
    CHECK_EQ_INT(hr__cgroup_memory_free("4:memory:/g\n", root), 2 << 20);
    CHECK(hr__memory_free_bytes() > 0);
    CHECK(hr__memory_free_bytes() <= hr__memory_bytes());
}

TEST(resident_memory_is_known)
{
    CHECK(hr__rss_bytes() > 100000);
    CHECK(hr__rss_peak_bytes() >= hr__rss_bytes() / 2);
}

TEST(stolen_time_is_the_eighth_number)
{
    CHECK_EQ_INT(hr__cpu_parse_steal("cpu  1 2 3 4 5 6 7 8 9 0\ncpu0 1 1 1 1 1 1 1 1\n"),
                 80000000);
    CHECK_EQ_INT(hr__cpu_parse_steal("cpu  1 2 3 4 5 6 7\n"), 0);
    CHECK_EQ_INT(hr__cpu_parse_steal("intr 1 2 3 4 5 6 7 8\n"), 0);
    CHECK_EQ_INT(hr__cpu_parse_steal(""), 0);
}

TEST(a_watch_says_how_long_its_thread_computed)
{
    struct hr_cpu_watch watch = {0};
    struct hr_cpu_use use;
    uint64_t begin_ns, cpu_ns;

    if (access("/proc/thread-self/schedstat", R_OK) != 0) {
        printf("# the system does not say\n");
        hr__cpu_watch_begin(&watch);
        CHECK(!hr__cpu_watch_end(&watch, &use));
        return;
    }
    hr__cpu_watch_begin(&watch);
    begin_ns = hr__cpu_thread_ns();
    do
        cpu_ns = hr__cpu_thread_ns() - begin_ns;
    while (cpu_ns < 50000000);
    CHECK(hr__cpu_watch_end(&watch, &use));
    CHECK(use.cpu_ns >= cpu_ns && use.cpu_ns < 2 * cpu_ns);
    hr__cpu_watch_begin(&watch);
    usleep(100000);
    CHECK(hr__cpu_watch_end(&watch, &use));
    CHECK(use.cpu_ns < cpu_ns); /* asleep */
    hr__cpu_watch_close(&watch);
    hr__cpu_watch_close(&watch);
}

/* A thread that has to share its core: parts of 1 ms of CPU time. */
static void *watch_parts(void *user)
{
    struct hr_cpu_watch watch = {0};
    struct hr_cpu_use use;
    int *known = user;

    for (int i = 0; i < 50; i++) {
        uint64_t until;

        hr__cpu_watch_begin(&watch);
        until = hr__cpu_thread_ns() + 1000000;
        while (hr__cpu_thread_ns() < until)
            continue;
        if (!hr__cpu_watch_end(&watch, &use))
            continue;
        CHECK(hr__ticks_to_ns(use.ticks) + 2e6 >= (double)(use.cpu_ns + use.delay_ns));
        ++*known;
    }
    hr__cpu_watch_close(&watch);
    return NULL;
}

TEST(a_watched_part_is_as_long_as_what_its_thread_did_in_it)
{
    pthread_t threads[8];
    int known[8] = {0};

    if (access("/proc/thread-self/schedstat", R_OK) != 0)
        check_skip("the system does not say how long threads wait for cores");
    for (int i = 0; i < 8; i++)
        CHECK_EQ_INT(pthread_create(&threads[i], NULL, watch_parts, &known[i]), 0);
    for (int i = 0; i < 8; i++) {
        CHECK_EQ_INT(pthread_join(threads[i], NULL), 0);
        CHECK(known[i] > 25);
    }
}

TEST(time_without_a_core_only_grows)
{
    uint64_t before = hr__cpu_delay_ns();

    for (int i = 0; i < 10; i++)
        sched_yield();
    CHECK(hr__cpu_delay_ns() >= before);
}
