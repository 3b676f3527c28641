/*
 * tests/svc/sim_test.c - random schedules of the whole service, and protocols that were
 * found wrong.
 *
 *   sim_test [--design A|B] [--schedules N] [--seed S] [--verbose]
 *
 * Without --seed the seeds start at a drawn one; the first that fails is printed with the
 * command that replays it. With --seed and --verbose one schedule is run and traced.
 * Mutants are the library's own roles, compiled with HR_SVC_MUTANTS and told to do one
 * thing wrong; each must be found. HEADRACE_TEST_SCHEDULES sets the number of schedules
 * of each design.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tests/svc/sim.h"

enum hr_mutant hr__mutant;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SCHEDULES 3000u
#else
#define SCHEDULES 50000u
#endif
#define MUTANT_SCHEDULES 200000u /* until one must be found */

static const struct mutant {
    enum hr_mutant mutant;
    const struct sim_design *design;
    const char *name;
} mutants[] = {
    {HR_MUTANT_DONE_WHEN_LEASED,       &sim_a, "F1 a split is done when it is leased"           },
    {HR_MUTANT_DONE_WHEN_FINISHED,     &sim_a, "F2 a split is done when it was sent"            },
    {HR_MUTANT_ACK_ON_RECEIPT,         &sim_a, "F3 received is acknowledged, and restarts there"},
    {HR_MUTANT_NO_FILTER,              &sim_a, "F4 no filter by position"                       },
    {HR_MUTANT_RESTART_FROM_ACK,       &sim_a, "F5 restarts where it acknowledged"              },
    {HR_MUTANT_FILTER_BY_SPLIT,        &sim_a, "F6 filters whole splits"                        },
    {HR_MUTANT_OTHER_ORDER_IN_SPLIT,   &sim_a, "F7 another order in a split"                    },
    {HR_MUTANT_CLIENT_COUNTS,          &sim_a, "F8 frames without positions"                    },
    {HR_MUTANT_BIND_AFTER_LEASE,       &sim_b, "F9 bindings are journalled after the lease"     },
    {HR_MUTANT_EVICT_SAME_GENERATION,  &sim_b, "F10 eviction without generations"               },
    {HR_MUTANT_REJOIN_SAME_GENERATION, &sim_b, "F11 a generation outlives its client"           },
    {HR_MUTANT_CHECKPOINT_FIRST,       &sim_b, "F12 the checkpoint first, then the dispatcher"  },
    {HR_MUTANT_JOURNAL_TAIL_LOST,      &sim_b, "F13 the journal loses its tail"                 },
};

static const struct sim_design *const designs[] = {&sim_a, &sim_b};
#define DESIGNS (sizeof designs / sizeof designs[0])

struct options {
    const struct sim_design *design; /* NULL: all */
    uint64_t seed;
    uint32_t schedules;
    bool seeded, verbose;
};

static int number;

static void report(bool passed, const char *name)
{
    printf("%s %d - %s\n", passed ? "ok" : "not ok", ++number, name);
    fflush(stdout);
}

/* Returns the seed of the first schedule that fails in *ret_seed, or true. */
static bool run(struct sim *sim, const struct sim_design *design,
                const struct options *options, uint32_t count, uint64_t *ret_seed)
{
    for (uint32_t i = 0; i < count; i++) {
        *ret_seed = options->seed + i;
        if (!sim_run(sim, design, *ret_seed, options->verbose))
            return false;
    }
    return true;
}

static bool run_design(const struct sim_design *design, const struct options *options)
{
    uint32_t count = options->schedules;
    uint64_t seed = 0, steps = 0, crashes = 0;
    struct sim sim = {0};
    char name[128];
    bool passed = true;

    for (uint32_t i = 0; passed && i < count; i++) {
        seed = options->seed + i;
        passed = sim_run(&sim, design, seed, options->verbose);
        steps += sim.step;
        crashes += sim.crashes;
    }
    if (!passed)
        printf("# %s; replay: sim_test --design %s --seed %llu --schedules 1 --verbose\n",
               sim.failure, design->name, (unsigned long long)seed);
    printf("# %llu steps, %llu crashes\n", (unsigned long long)steps,
           (unsigned long long)crashes);
    snprintf(name, sizeof name, "design %s: %u schedules from seed %llu on", design->name,
             count, (unsigned long long)options->seed);
    report(passed, name);
    sim_finish(&sim);
    free(sim.state);
    return passed;
}

static bool run_mutant(const struct mutant *mutant, const struct options *options)
{
    struct sim sim = {0};
    uint64_t seed;
    char name[128];
    bool passed;

    hr__mutant = mutant->mutant;
    passed = !run(&sim, mutant->design, options, MUTANT_SCHEDULES, &seed);
    hr__mutant = HR_MUTANT_NONE;
    snprintf(name, sizeof name, "%s: found after %llu schedules: %s", mutant->name,
             (unsigned long long)(seed - options->seed + 1),
             passed ? sim.failure : "not at all");
    report(passed, name);
    sim_finish(&sim);
    free(sim.state);
    return passed;
}

static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--verbose") == 0) {
            options->verbose = true;
            continue;
        }
        if (next == NULL)
            return false;
        if (strcmp(argv[i], "--seed") == 0) {
            options->seed = strtoull(next, NULL, 10);
            options->seeded = true;
        } else if (strcmp(argv[i], "--schedules") == 0) {
            options->schedules = (uint32_t)strtoul(next, NULL, 10);
        } else if (strcmp(argv[i], "--design") == 0) {
            options->design = NULL;
            for (size_t k = 0; k < DESIGNS; k++)
                if (strcmp(next, designs[k]->name) == 0)
                    options->design = designs[k];
            if (options->design == NULL)
                return false;
        } else {
            return false;
        }
        i++;
    }
    return true;
}

int main(int argc, char **argv)
{
    const char *count = getenv("HEADRACE_TEST_SCHEDULES");
    struct options options = {.schedules = SCHEDULES};
    bool passed = true;
    uint32_t draw = 0;

    if (count != NULL)
        options.schedules = (uint32_t)strtoul(count, NULL, 10);
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: sim_test [--design A|B] [--schedules N] [--seed S] "
                        "[--verbose]\n");
        return 2;
    }
    if (!options.seeded && getrandom(&draw, sizeof draw, 0) == sizeof draw)
        options.seed = draw;
    for (size_t i = 0; i < DESIGNS; i++)
        if (options.design == NULL || options.design == designs[i])
            passed = run_design(designs[i], &options) && passed;
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0] && !options.seeded; i++)
        if (options.design == NULL || options.design == mutants[i].design)
            passed = run_mutant(&mutants[i], &options) && passed;
    printf("1..%d\n", number);
    return !passed;
}
