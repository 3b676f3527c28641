/*
 * core/cpu.c - see cpu.h.
 *
 * Files of /proc and /sys are read in one call into a stack buffer. One that does not fit
 * or does not parse means "no limit" or "unknown", never an error.
 */
#include "core/cpu.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const isa_names[] = {
    [HR_ISA_C] = "c",
    [HR_ISA_NEON] = "neon",
    [HR_ISA_AVX2] = "avx2",
    [HR_ISA_AVX512] = "avx512",
};

static atomic_int isa_chosen = -1;

#if defined(__x86_64__)
/* __builtin_cpu_supports also checks that the kernel saves the registers; clang 14 does
 * not accept "f16c" there. */
static bool has_avx2(void)
{
    unsigned a, b, c = 0, d;

    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & 1U << 29) != 0 &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("pclmul");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi");
}
#endif

enum hr_isa hr__isa_machine(void)
{
#if defined(__x86_64__)
    if (!has_avx2())
        return HR_ISA_C;
    return has_avx512() ? HR_ISA_AVX512 : HR_ISA_AVX2;
#elif defined(__aarch64__)
    return HR_ISA_NEON;
#else
    return HR_ISA_C;
#endif
}

/* The best this machine has at or below `isa`. No machine has both NEON and AVX. */
static enum hr_isa at_most(enum hr_isa isa)
{
    enum hr_isa best = hr__isa_machine();

    if (isa >= best)
        return best;
    return isa == HR_ISA_NEON ? HR_ISA_C : isa;
}

static enum hr_isa requested_isa(void)
{
    const char *wish = getenv("HEADRACE_ISA");

    for (int i = 0; wish != NULL && i <= HR_ISA_AVX512; i++) {
        if (strcmp(wish, isa_names[i]) == 0)
            return at_most((enum hr_isa)i);
    }
    return at_most(HR_ISA_AVX512);
}

enum hr_isa hr__isa(void)
{
    int isa = atomic_load_explicit(&isa_chosen, memory_order_relaxed);

    if (isa < 0) {
        int unset = -1;

        isa = (int)requested_isa();
        if (!atomic_compare_exchange_strong(&isa_chosen, &unset, isa))
            isa = unset;
    }
    return (enum hr_isa)isa;
}

void hr__isa_limit(enum hr_isa isa)
{
    atomic_store_explicit(&isa_chosen, (int)at_most(isa), memory_order_relaxed);
}

const char *hr__isa_name(enum hr_isa isa)
{
    return (unsigned)isa <= HR_ISA_AVX512 ? isa_names[isa] : "unknown";
}

static bool read_text(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (fd < 0)
        return false;
    got = read(fd, text, room - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static int whole_cpus(double quota, double period)
{
    double cpus = quota / period;
    int whole = cpus > 1e6 ? 1000000 : (int)cpus;

    if (!(quota > 0) || !(period > 0))
        return 0;
    whole += (double)whole < cpus;
    return whole;
}

#define MIB ((uint64_t)1 << 20)

/* "max 100000" or "150000 100000"; 0 = no limit. */
static int quota_v2(const char *folder)
{
    char path[4096 + 32], text[128];
    double quota, period;

    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_text(path, text, sizeof text) ||
        sscanf(text, "%lf %lf", &quota, &period) != 2)
        return 0;
    return whole_cpus(quota, period);
}

static int quota_v1(const char *folder)
{
    char path[4096 + 32], text[128];
    double quota, period;

    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_text(path, text, sizeof text))
        return 0;
    quota = strtod(text, NULL);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_text(path, text, sizeof text))
        return 0;
    period = strtod(text, NULL);
    return whole_cpus(quota, period);
}

static int tighter_limit(int a, int b)
{
    if (a <= 0 || b <= 0)
        return a > b ? a : b;
    return a < b ? a : b;
}

/* The smallest quota between `group` under `mount` and the mount itself. In a container
 * the path may be the host's and not exist here; the mount's own quota still counts. */
static int walk_up(const char *mount, const char *group, int (*quota)(const char *folder))
{
    char folder[4096];
    size_t root = strlen(mount);
    int cpus = 0, length = snprintf(folder, sizeof folder, "%s%s", mount, group);

    if (length < 0 || (size_t)length >= sizeof folder)
        return quota(mount);
    for (;;) {
        char *slash;

        cpus = tighter_limit(cpus, quota(folder));
        slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < root)
            return cpus;
        *slash = '\0';
    }
}

/* MiB, rounded down; "max", or what is larger than any memory: 0. */
static int memory_in(const char *folder, const char *name)
{
    char path[4096 + 32], text[128];
    double bytes;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!read_text(path, text, sizeof text))
        return 0;
    bytes = strtod(text, NULL);
    if (!(bytes >= 1) || bytes > 1e15)
        return 0;
    return bytes < MIB ? 1 : (int)(bytes / MIB);
}

static int memory_v2(const char *folder)
{
    return memory_in(folder, "memory.max");
}

static int memory_v1(const char *folder)
{
    return memory_in(folder, "memory.limit_in_bytes");
}

/* Bytes of the line `name` of the folder's memory.stat; 0 without one. */
static double memory_stat(const char *folder, const char *name)
{
    char path[4096 + 32], text[8192];
    const char *line = text;
    size_t length = strlen(name);

    snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (!read_text(path, text, sizeof text))
        return 0;
    while (strncmp(line, name, length) != 0 || line[length] != ' ') {
        line = strchr(line, '\n');
        if (line == NULL)
            return 0;
        line++;
    }
    return strtod(line + length, NULL);
}

/* MiB of the limit that are free, or hold a cache of files that nobody used lately. */
static int memory_left(const char *folder, int limit, const char *used, const char *cache)
{
    int left = limit - memory_in(folder, used) + (int)(memory_stat(folder, cache) / MIB);

    if (limit == 0)
        return 0;
    return left < 1 ? 1 : left < limit ? left : limit;
}

static int memory_free_v2(const char *folder)
{
    return memory_left(folder, memory_v2(folder), "memory.current", "inactive_file");
}

static int memory_free_v1(const char *folder)
{
    return memory_left(folder, memory_v1(folder), "memory.usage_in_bytes",
                       "total_inactive_file");
}

/* What a cgroup limits: how a folder says it, by version of the hierarchy. */
struct controller {
    const char *name;
    int (*v2)(const char *folder);
    int (*v1)(const char *folder);
};
static const struct controller cpu_controller = {"cpu", quota_v2, quota_v1};
static const struct controller memory_controller = {"memory", memory_v2, memory_v1};
static const struct controller memory_free_controller = {"memory", memory_free_v2,
                                                         memory_free_v1};

/* Whether the comma-separated names up to `end` have this one. */
static bool has_name(const char *names, const char *end, const char *name)
{
    size_t length = strlen(name);

    while (names < end) {
        size_t part = strcspn(names, ",:");

        if (part == length && strncmp(names, name, length) == 0)
            return true;
        names += part + 1;
    }
    return false;
}

/* One line of /proc/self/cgroup: "0::/group" (v2) or "3:cpu,cpuacct:/group" (v1). */
static int
line_limit(const char *line, const char *sys_root, const struct controller *controller)
{
    const char *names = strchr(line, ':'), *group;
    char mount[1024];

    if (names == NULL || (group = strchr(++names, ':')) == NULL)
        return 0;
    if (group == names) {
        int limit = walk_up(sys_root, group + 1, controller->v2);

        snprintf(mount, sizeof mount, "%s/unified", sys_root);
        return tighter_limit(limit, walk_up(mount, group + 1, controller->v2));
    }
    if (!has_name(names, group, controller->name))
        return 0;
    snprintf(mount, sizeof mount, "%s/%s", sys_root, controller->name);
    return walk_up(mount, group + 1, controller->v1);
}

static int
least_limit(const char *groups, const char *sys_root, const struct controller *controller)
{
    char line[2048];
    int limit = 0;

    while (*groups != '\0') {
        size_t length = strcspn(groups, "\n");

        if (length < sizeof line) {
            memcpy(line, groups, length);
            line[length] = '\0';
            limit = tighter_limit(limit, line_limit(line, sys_root, controller));
        }
        groups += length + (groups[length] == '\n');
    }
    return limit;
}

int hr__cgroup_cpus(const char *groups, const char *sys_root)
{
    return least_limit(groups, sys_root, &cpu_controller);
}

uint64_t hr__cgroup_memory(const char *groups, const char *sys_root)
{
    return (uint64_t)least_limit(groups, sys_root, &memory_controller) * MIB;
}

uint64_t hr__cgroup_memory_free(const char *groups, const char *sys_root)
{
    return (uint64_t)least_limit(groups, sys_root, &memory_free_controller) * MIB;
}

uint64_t hr__memory_free_bytes(void)
{
    char groups[8192], text[4096];
    uint64_t bytes = 0, left = 0;
    const char *line;

    if (read_text("/proc/meminfo", text, sizeof text) &&
        (line = strstr(text, "MemAvailable:")) != NULL)
        bytes = strtoull(line + strlen("MemAvailable:"), NULL, 10) << 10;
    if (read_text("/proc/self/cgroup", groups, sizeof groups))
        left = hr__cgroup_memory_free(groups, "/sys/fs/cgroup");
    return left > 0 && (left < bytes || bytes == 0) ? left : bytes;
}

uint64_t hr__memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    char groups[8192];
    uint64_t limit = 0;

    if (read_text("/proc/self/cgroup", groups, sizeof groups))
        limit = hr__cgroup_memory(groups, "/sys/fs/cgroup");
    return limit > 0 && (limit < bytes || bytes == 0) ? limit : bytes;
}

int hr__cpu_affinity(void)
{
    unsigned long mask[1024]; /* 65536 CPUs; cpu_set_t stops at 1024 */
    int cpus;

    memset(mask, 0, sizeof mask);
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) != 0)
        return (int)sysconf(_SC_NPROCESSORS_ONLN);
    cpus = CPU_COUNT_S(sizeof mask, (cpu_set_t *)mask);
    return cpus;
}

int hr__cpu_quota(void)
{
    char groups[8192];

    if (!read_text("/proc/self/cgroup", groups, sizeof groups))
        return 0;
    return hr__cgroup_cpus(groups, "/sys/fs/cgroup");
}

int hr__cpu_count(void)
{
    int cpus = tighter_limit(hr__cpu_affinity(), hr__cpu_quota());

    return cpus > 0 ? cpus : 1;
}

/* Of the text of a thread's schedstat: how long it was ready to run without a core. */
static bool parse_delay(const char *text, uint64_t *ret_ns)
{
    unsigned long long cpu, delay;

    if (sscanf(text, "%llu %llu", &cpu, &delay) != 2)
        return false;
    *ret_ns = delay;
    return true;
}

uint64_t hr__cpu_delay_ns(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    uint64_t delay;
    uint64_t sum = 0;

    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[320], text[128];

        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
        if (task->d_name[0] != '.' && read_text(path, text, sizeof text) &&
            parse_delay(text, &delay))
            sum += delay;
    }
    if (tasks != NULL)
        closedir(tasks);
    return sum;
}

uint64_t hr__cpu_parse_steal(const char *stat)
{
    unsigned long long steps;

    /* user, nice, system, idle, iowait, irq, softirq, steal; in 1/100 s */
    if (sscanf(stat, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steps) != 1)
        return 0;
    return steps * HR_CPU_STEAL_STEP_NS;
}

uint64_t hr__cpu_steal_ns(void)
{
    char text[256];

    return read_text("/proc/stat", text, sizeof text) ? hr__cpu_parse_steal(text) : 0;
}

/* Time that a thread is ready without a core may pass between the readings, and would
 * then be in one of them only: they are taken again if they took long. */
#define WATCH_NS 1e6
#define WATCH_TRIES 3

/* Returns false if the system does not say. A file that cannot be read once is given up:
 * the end of a part needs its begin. The CPU time in the file is that of the scheduler's
 * last tick, so it is not used. */
static bool use_so_far(struct hr_cpu_watch *watch, struct hr_cpu_use *ret_use)
{
    char text[128];
    ssize_t length;

    *ret_use = (struct hr_cpu_use){0};
    if (watch->file == 0) {
        int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

        watch->file = fd >= 0 ? fd + 1 : -1;
    }
    if (watch->file < 0)
        return false;
    for (int i = 0; i < WATCH_TRIES; i++) {
        ret_use->ticks = hr__ticks();
        length = pread(watch->file - 1, text, sizeof text - 1, 0);
        text[length > 0 ? length : 0] = '\0';
        if (!parse_delay(text, &ret_use->delay_ns)) {
            hr__cpu_watch_close(watch);
            watch->file = -1;
            return false;
        }
        ret_use->cpu_ns = hr__cpu_thread_ns();
        if (hr__ticks_to_ns(hr__ticks() - ret_use->ticks) < WATCH_NS)
            return true;
    }
    return false;
}

void hr__cpu_watch_begin(struct hr_cpu_watch *watch)
{
    watch->known = use_so_far(watch, &watch->begin);
}

bool hr__cpu_watch_end(struct hr_cpu_watch *watch, struct hr_cpu_use *ret_use)
{
    bool known = use_so_far(watch, ret_use) && watch->known;

    if (!known)
        return false;
    ret_use->ticks -= watch->begin.ticks;
    ret_use->cpu_ns -= watch->begin.cpu_ns;
    ret_use->delay_ns -= watch->begin.delay_ns;
    return true;
}

void hr__cpu_watch_close(struct hr_cpu_watch *watch)
{
    if (watch->file > 0)
        close(watch->file - 1);
    *watch = (struct hr_cpu_watch){0};
}

uint64_t hr__cpu_switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nvcsw : 0;
}

uint64_t hr__rss_bytes(void)
{
    unsigned long long pages, resident;
    char text[256];

    if (!read_text("/proc/self/statm", text, sizeof text) ||
        sscanf(text, "%llu %llu", &pages, &resident) != 2)
        return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t hr__rss_peak_bytes(void)
{
    char text[8192];
    const char *line;

    /* Not getrusage: its peak survives exec, so a child would report its parent's. */
    if (!read_text("/proc/self/status", text, sizeof text))
        return 0;
    line = strstr(text, "\nVmHWM:");
    return line != NULL ? strtoull(line + 7, NULL, 10) * 1024 : 0;
}

const char *hr__cpu_model(char *text, size_t room)
{
    char info[8192];
    const char *line, *value = NULL;

    if (read_text("/proc/cpuinfo", info, sizeof info) &&
        (line = strstr(info, "model name")) != NULL)
        value = strchr(line, ':');
    if (value == NULL) {
        snprintf(text, room, "unknown");
        return text;
    }
    value += 1 + strspn(value + 1, " \t");
    snprintf(text, room, "%.*s", (int)strcspn(value, "\n"), value);
    return text;
}
