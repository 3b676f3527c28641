/*
 * cmd_doctor.c - headrace doctor: what this build and this machine offer, for reports of
 * bugs, and what about them costs speed or will fail.
 *
 * The library says what it can use (headrace/system.h); limits of the process are read
 * here. Nothing is changed, and nothing is sent anywhere.
 */
#include "cli.h"
#include "headrace/op.h"
#include "headrace/system.h"
#include "out.h"
#include "term.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FILES_FEW 1024
#define SHM_FEW ((uint64_t)256 << 20)
#define WARNINGS_MAX 16

struct doctor_options {
    bool json;
};

struct limit {
    const char *name;
    uint64_t soft, hard; /* UINT64_MAX: none */
    bool bytes;          /* else a count */
};

struct folder {
    const char *what, *path;
    bool exists, writable;
    uint64_t bytes, bytes_free;
};

struct doctor {
    struct hr_machine_info machine;
    struct utsname system;
    char distribution[128], libc[64];
    long cpus_online;
    struct limit limits[4];
    struct folder folders[3];
    char warnings[WARNINGS_MAX][768];
    size_t warning_count;
};

#define LIMITS (sizeof(((struct doctor *)0)->limits) / sizeof(struct limit))
#define FOLDERS (sizeof(((struct doctor *)0)->folders) / sizeof(struct folder))

#define AT(field) offsetof(struct doctor_options, field)

/* clang-format off */
static const struct cli_option doctor_table[] = {
    CLI_OPTION_JSON,
};

static const struct cli_example doctor_examples[] = {
    {"headrace doctor",
     "what to paste into a report of a bug"},
    {"headrace doctor --json",
     "the same for programs"},
};
/* clang-format on */

static void warn(struct doctor *doctor, const char *format, ...) HR_PRINTF(2, 3);

static void warn(struct doctor *doctor, const char *format, ...)
{
    va_list args;

    if (doctor->warning_count == WARNINGS_MAX)
        return;
    va_start(args, format);
    vsnprintf(doctor->warnings[doctor->warning_count++], sizeof(doctor->warnings[0]),
              format, args);
    va_end(args);
}

/* ---- facts ---- */

/* PRETTY_NAME of /etc/os-release. */
static void read_distribution(char *text, size_t room)
{
    FILE *file = fopen("/etc/os-release", "r");
    char line[256];

    snprintf(text, room, "unknown");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *from = line + strlen("PRETTY_NAME=");

        if (strncmp(line, "PRETTY_NAME=", strlen("PRETTY_NAME=")) != 0)
            continue;
        from += *from == '"';
        from[strcspn(from, "\"\n")] = '\0';
        snprintf(text, room, "%.*s", (int)room - 1, from);
    }
    if (file != NULL)
        fclose(file);
}

static void read_limits(struct doctor *doctor)
{
    static const struct {
        const char *name;
        int resource;
        bool bytes;
    } known[LIMITS] = {
        {"open files",    RLIMIT_NOFILE,  false},
        {"processes",     RLIMIT_NPROC,   false},
        {"locked memory", RLIMIT_MEMLOCK, true },
        {"address space", RLIMIT_AS,      true },
    };

    for (size_t i = 0; i < LIMITS; i++) {
        struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

        (void)getrlimit(known[i].resource, &limit);
        doctor->limits[i] = (struct limit){
            known[i].name, limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur,
            limit.rlim_max == RLIM_INFINITY ? UINT64_MAX : limit.rlim_max,
            known[i].bytes};
    }
}

/* The nearest folder above a path that exists is where it would be made. */
static void look_at_folder(struct folder *folder)
{
    char path[PATH_MAX];
    struct statvfs info;
    char *slash;

    folder->exists = access(folder->path, F_OK) == 0;
    snprintf(path, sizeof(path), "%s", folder->path);
    while (access(path, F_OK) != 0 && (slash = strrchr(path, '/')) != NULL &&
           slash != path)
        *slash = '\0';
    folder->writable = access(path, W_OK | X_OK) == 0;
    if (statvfs(path, &info) == 0) {
        folder->bytes = (uint64_t)info.f_blocks * info.f_frsize;
        folder->bytes_free = (uint64_t)info.f_bavail * info.f_frsize;
    }
}

static void read_folders(struct doctor *doctor)
{
    const char *temporary = getenv("TMPDIR");
    const char *const paths[FOLDERS] = {
        doctor->machine.cache_folder,
        temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp", "/dev/shm"};
    static const char *const what[FOLDERS] = {"cache", "temporary files",
                                              "shared memory"};

    for (size_t i = 0; i < FOLDERS; i++) {
        doctor->folders[i] = (struct folder){.what = what[i], .path = paths[i]};
        if (paths[i][0] != '\0')
            look_at_folder(&doctor->folders[i]);
    }
}

static void read_facts(struct doctor *doctor)
{
    hr_machine_info(&doctor->machine);
    if (uname(&doctor->system) != 0)
        doctor->system = (struct utsname){.sysname = "unknown"};
    read_distribution(doctor->distribution, sizeof(doctor->distribution));
#ifdef _CS_GNU_LIBC_VERSION
    if (confstr(_CS_GNU_LIBC_VERSION, doctor->libc, sizeof(doctor->libc)) == 0)
        doctor->libc[0] = '\0';
#endif
    doctor->cpus_online = sysconf(_SC_NPROCESSORS_ONLN);
    read_limits(doctor);
    read_folders(doctor);
}

/* ---- warnings ---- */

static void check_machine(struct doctor *doctor)
{
    const struct hr_machine_info *machine = &doctor->machine;

    if (strcmp(machine->isa, machine->isa_machine) != 0)
        warn(doctor,
             "HEADRACE_ISA limits the kernels to %s, and this machine has %s: "
             "unset it for speed",
             machine->isa, machine->isa_machine);
    else if (strcmp(machine->isa, "c") == 0)
        warn(doctor, "this machine has no instruction set that the kernels use (AVX2 or "
                     "NEON): expect a fraction of the usual speed");
    if (machine->cpus_quota > 0 && machine->cpus_quota < machine->cpus_affinity)
        warn(doctor,
             "the cgroup allows %d of %d CPUs: raise its quota (docker run "
             "--cpus, resources.limits.cpu) if the run needs more",
             machine->cpus_quota, machine->cpus_affinity);
    if (machine->cpus_affinity > 0 && machine->cpus_affinity < doctor->cpus_online)
        warn(doctor,
             "the process may run on %d of %ld CPUs: see taskset -p $$, or what "
             "your scheduler granted",
             machine->cpus_affinity, doctor->cpus_online);
}

static void check_limits(struct doctor *doctor)
{
    const struct limit *files = &doctor->limits[0];
    const struct folder *cache = &doctor->folders[0], *shm = &doctor->folders[2];
    char size[32];

    if (files->soft < FILES_FEW)
        warn(doctor,
             "only %llu files may be open at once: raise the limit (ulimit -n "
             "%llu) for data sets of many shards",
             (unsigned long long)files->soft,
             (unsigned long long)(files->hard < 65536 ? files->hard : 65536));
    if (cache->path[0] == '\0')
        warn(doctor, "there is no cache folder, so profiles and indexes are not kept: "
                     "set HEADRACE_CACHE or HOME");
    else if (!cache->writable)
        warn(doctor,
             "the cache folder %s cannot be written, so profiles and indexes are "
             "not kept: set HEADRACE_CACHE to a folder that can",
             cache->path);
    if (!shm->exists || shm->bytes < SHM_FEW)
        warn(doctor,
             "/dev/shm holds %s: Headrace does not use it, but workers of "
             "PyTorch's DataLoader need more (docker run --shm-size=1g)",
             term_bytes(size, sizeof(size), shm->exists ? (double)shm->bytes : 0));
}

/* Stores that need something are the choice of few: they are listed, not warned of. */
static void check_parts(struct doctor *doctor)
{
    struct hr_part_info part;

    for (size_t i = 0; hr_part_info(i, &part) == HR_OK; i++)
        if (part.state != HR_PART_READY && strcmp(part.kind, "store") != 0)
            warn(doctor, "%s (%s): %s", part.name, part.gives, part.problem);
}

/* ---- for people ---- */

static void heading(const char *text)
{
    printf("\n%s%s%s\n", term_bold(stdout), text, term_plain(stdout));
}

static void row(const char *name, const char *format, ...) HR_PRINTF(2, 3);

static void row(const char *name, const char *format, ...)
{
    va_list args;

    printf("  %-18s", name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

static void print_machine(const struct doctor *doctor)
{
    const struct hr_machine_info *machine = &doctor->machine;
    char memory[24], left[24], quota[48] = "no quota";

    if (machine->cpus_quota > 0)
        snprintf(quota, sizeof(quota), "quota %d", machine->cpus_quota);
    printf("%sMachine%s\n", term_bold(stdout), term_plain(stdout));
    row("headrace", "%s, %zu operators", hr_version(), hr_op_count());
    row("system", "%s, %s %s %s%s%s", doctor->distribution, doctor->system.sysname,
        doctor->system.release, doctor->system.machine, doctor->libc[0] ? ", " : "",
        doctor->libc);
    row("processor", "%s", machine->cpu);
    row("CPUs", "%d used (%ld in the machine, %d allowed by affinity, %s)", machine->cpus,
        doctor->cpus_online, machine->cpus_affinity, quota);
    row("instruction set", "%s%s%s", machine->isa,
        strcmp(machine->isa, machine->isa_machine) == 0 ? "" : "; the machine has ",
        strcmp(machine->isa, machine->isa_machine) == 0 ? "" : machine->isa_machine);
    row("memory", "%s, %s free",
        term_bytes(memory, sizeof(memory), (double)machine->memory_bytes),
        term_bytes(left, sizeof(left), (double)machine->memory_free_bytes));
}

static const char *
limit_text(const struct limit *limit, uint64_t value, char *text, size_t room)
{
    if (value == UINT64_MAX)
        snprintf(text, room, "no limit");
    else if (limit->bytes)
        term_bytes(text, room, (double)value);
    else
        term_count(text, room, value);
    return text;
}

static void print_limits(const struct doctor *doctor)
{
    char soft[32], hard[32];

    heading("Limits (now, at most)");
    for (size_t i = 0; i < LIMITS; i++) {
        const struct limit *limit = &doctor->limits[i];

        row(limit->name, "%s, %s", limit_text(limit, limit->soft, soft, sizeof(soft)),
            limit_text(limit, limit->hard, hard, sizeof(hard)));
    }
    heading("Folders");
    for (size_t i = 0; i < FOLDERS; i++) {
        const struct folder *folder = &doctor->folders[i];

        if (folder->path[0] == '\0')
            row(folder->what, "none");
        else
            row(folder->what, "%s: %s of %s free%s%s", folder->path,
                term_bytes(soft, sizeof(soft), (double)folder->bytes_free),
                term_bytes(hard, sizeof(hard), (double)folder->bytes),
                folder->exists ? "" : ", not made yet",
                folder->writable ? "" : ", read-only");
    }
}

static void print_parts(const char *title, bool stores)
{
    struct hr_part_info part;

    heading(title);
    for (size_t i = 0; hr_part_info(i, &part) == HR_OK; i++) {
        bool ready = part.state == HR_PART_READY;

        if ((strcmp(part.kind, "store") == 0) != stores)
            continue;
        printf("  %-18s%s%-10s%s %s", part.name,
               ready ? term_green(stdout) : term_yellow(stdout),
               !ready            ? "missing"
               : part.version[0] ? part.version
                                 : "ready",
               term_plain(stdout), part.gives);
        if (!ready)
            printf("; %s", part.problem);
        printf("\n");
    }
}

static void print_warnings(const struct doctor *doctor)
{
    heading("Warnings");
    for (size_t i = 0; i < doctor->warning_count; i++)
        printf("  %s!%s %s\n", term_yellow(stdout), term_plain(stdout),
               doctor->warnings[i]);
    if (doctor->warning_count == 0)
        printf("  none\n");
}

/* ---- for programs ---- */

static void json_machine(struct json *json, const struct doctor *doctor)
{
    const struct hr_machine_info *machine = &doctor->machine;

    json_text(json, "version", hr_version());
    json_u64(json, "operators", hr_op_count());
    json_open(json, "machine", '{');
    json_text(json, "distribution", doctor->distribution);
    json_text(json, "kernel", doctor->system.release);
    json_text(json, "architecture", doctor->system.machine);
    json_text(json, "libc", doctor->libc);
    json_text(json, "processor", machine->cpu);
    json_i64(json, "cpus", machine->cpus);
    json_i64(json, "cpus_online", doctor->cpus_online);
    json_i64(json, "cpus_affinity", machine->cpus_affinity);
    json_i64(json, "cpus_quota", machine->cpus_quota);
    json_text(json, "isa", machine->isa);
    json_text(json, "isa_machine", machine->isa_machine);
    json_u64(json, "memory_bytes", doctor->machine.memory_bytes);
    json_u64(json, "memory_free_bytes", doctor->machine.memory_free_bytes);
    json_close(json, '}');
}

/* null: no limit. */
static void json_limit(struct json *json, const char *key, uint64_t value)
{
    if (value == UINT64_MAX)
        json_text(json, key, NULL);
    else
        json_u64(json, key, value);
}

static void json_limits(struct json *json, const struct doctor *doctor)
{
    json_open(json, "limits", '{');
    for (size_t i = 0; i < LIMITS; i++) {
        json_open(json, doctor->limits[i].name, '{');
        json_limit(json, "soft", doctor->limits[i].soft);
        json_limit(json, "hard", doctor->limits[i].hard);
        json_close(json, '}');
    }
    json_close(json, '}');
    json_open(json, "folders", '{');
    for (size_t i = 0; i < FOLDERS; i++) {
        const struct folder *folder = &doctor->folders[i];

        json_open(json, folder->what, '{');
        json_text(json, "path", folder->path[0] ? folder->path : NULL);
        json_bool(json, "exists", folder->exists);
        json_bool(json, "writable", folder->writable);
        json_u64(json, "bytes", folder->bytes);
        json_u64(json, "bytes_free", folder->bytes_free);
        json_close(json, '}');
    }
    json_close(json, '}');
}

static void json_parts(struct json *json)
{
    static const char *const states[] = {[HR_PART_READY] = "ready",
                                         [HR_PART_MISSING] = "missing",
                                         [HR_PART_NOT_BUILT] = "not built"};
    struct hr_part_info part;

    json_open(json, "parts", '[');
    for (size_t i = 0; hr_part_info(i, &part) == HR_OK; i++) {
        json_open(json, NULL, '{');
        json_text(json, "kind", part.kind);
        json_text(json, "name", part.name);
        json_text(json, "gives", part.gives);
        json_text(json, "state", states[part.state]);
        json_text(json, "version", part.version[0] ? part.version : NULL);
        json_text(json, "problem", part.problem[0] ? part.problem : NULL);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void print_json(const struct doctor *doctor)
{
    struct json json = {.out = stdout};

    json_open(&json, NULL, '{');
    json_machine(&json, doctor);
    json_limits(&json, doctor);
    json_parts(&json);
    json_open(&json, "warnings", '[');
    for (size_t i = 0; i < doctor->warning_count; i++)
        json_text(&json, NULL, doctor->warnings[i]);
    json_close(&json, ']');
    json_close(&json, '}');
    json_end(&json);
}

static int doctor_run(void *values, const struct cli_rest *rest)
{
    const struct doctor_options *options = values;
    struct doctor doctor = {.cpus_online = 0};

    (void)rest;
    read_facts(&doctor);
    check_machine(&doctor);
    check_limits(&doctor);
    check_parts(&doctor);
    if (options->json) {
        print_json(&doctor);
        return CLI_OK;
    }
    print_machine(&doctor);
    print_limits(&doctor);
    print_parts("Libraries and kernel", false);
    print_parts("Stores", true);
    print_warnings(&doctor);
    return CLI_OK;
}

const struct cli_command cmd_doctor = {
    .name = "doctor",
    .summary = "show what this build and this machine offer, for reports of bugs",
    .args = "",
    .text = "Shows the machine, its limits, the libraries that data are read with, their "
            "versions and the stores that can be used, and warns of what costs speed or "
            "will fail, with what to do. Changes nothing.",
    CLI_OPTIONS(doctor_table, struct doctor_options),
    CLI_EXAMPLES(doctor_examples),
    .run = doctor_run,
};
