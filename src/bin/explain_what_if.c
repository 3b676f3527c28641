/*
 * explain_what_if.c - --what-if of headrace explain: parses the description of another
 * machine, such as cores=16 disk=200MB/s memory=64GiB copy=5GB/s price=1.20.
 */
#include "explain_predict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum unit { COUNT, BYTES, RATE };

static const struct fact {
    const char *name;
    enum unit unit;
    const char *example;
} facts[] = {
    {"cores",  COUNT, "16"     },
    {"disk",   RATE,  "200MB/s"},
    {"memory", BYTES, "64GiB"  },
    {"copy",   RATE,  "5GB/s"  },
    {"price",  COUNT, "1.20"   },
};
#define FACTS (sizeof(facts) / sizeof(facts[0]))

static bool read_number(const struct fact *fact, const char *text, double *ret)
{
    char *end;

    errno = 0;
    *ret = fact->unit == COUNT ? strtod(text, &end) : cli_bytes(text, &end);
    if (fact->unit == RATE && strcmp(end, "/s") == 0)
        end += 2;
    return end != text && *end == '\0' && errno == 0 && *ret > 0 && *ret < HUGE_VAL;
}

static void set(struct hr_machine *machine, size_t at, double value)
{
    double *const numbers[FACTS] = {&machine->cores, &machine->disk, NULL, &machine->copy,
                                    &machine->price};

    if (numbers[at] != NULL)
        *numbers[at] = value;
    else
        machine->memory = value < 0x1p63 ? (uint64_t)value : UINT64_MAX;
}

/* `given`: a bit for each fact that was taken before. */
static int take(const char *name, size_t length, const char *value, unsigned *given,
                struct hr_machine *machine)
{
    double number;

    for (size_t i = 0; i < FACTS; i++) {
        if (strlen(facts[i].name) != length || strncmp(facts[i].name, name, length) != 0)
            continue;
        if (!read_number(&facts[i], value, &number))
            return cli_usage("--what-if %s: '%s' is not a value such as %s",
                             facts[i].name, value, facts[i].example);
        if (*given >> i & 1)
            return cli_usage("--what-if: '%s' is given twice; run explain once for each",
                             facts[i].name);
        *given |= 1u << i;
        set(machine, i, number);
        return CLI_OK;
    }
    return cli_usage("--what-if knows cores, disk, memory, copy and price, not '%.*s'",
                     (int)length, name);
}

int explain_what_if(const struct cli_params *given, const char *const *words,
                    size_t count, struct hr_machine *ret_machine)
{
    unsigned seen = 0;
    int code = CLI_OK;

    memset(ret_machine, 0, sizeof(*ret_machine));
    for (size_t i = 0; code == CLI_OK && i < given->count; i++)
        code = take(given->items[i].name, strlen(given->items[i].name),
                    given->items[i].value, &seen, ret_machine);
    for (size_t i = 0; code == CLI_OK && i < count; i++) {
        const char *equals = strchr(words[i], '=');

        code = equals != NULL && given->count > 0
                   ? take(words[i], (size_t)(equals - words[i]), equals + 1, &seen,
                          ret_machine)
                   : cli_usage("explain takes one graph; '%s' is too much", words[i]);
    }
    return code;
}
