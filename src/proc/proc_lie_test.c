/*
 * proc/proc_lie_test.c - peers that write nonsense, and messages that no sound peer would
 * send, made up here so that no process has to be started for each.
 */
#include "proc/proc_test_util.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "proc/proc_internal.h"

TEST(a_peer_that_writes_nonsense_costs_its_record_only)
{
    struct single s = {0};
    struct numbers *n = numbers_make(20);
    struct hr_proc *proc;

    single_numbers(&s, "spoil");
    proc = open_program(&s.program, 0);
    run_program(proc, n->records, 20);
    for (int64_t i = 0; i < 20; i++)
        CHECK(n->records[i].code == HR_ERR_IO || number(&n->records[i], 0) == i + 1);
    run_program(proc, n->records, 5);
    for (int64_t i = 0; i < 5; i++)
        CHECK_EQ_INT(number(&n->records[i], 0), i + 1);
    close_program(proc);
    free(n);
}

/* Every byte that a result shows can be read. */
static uint64_t look_at(const struct hr_proc_record *records, size_t count,
                        size_t result_count, bool expand)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        size_t values = result_count * (expand ? records[i].child_count : 1);

        if (records[i].code != HR_OK) {
            sum += strlen(records[i].error.message) +
                   (records[i].detail != NULL ? strlen(records[i].detail) : 0);
            hr__free(records[i].detail);
            continue;
        }
        for (size_t r = 0; r < values && !records[i].drop; r++) {
            const struct hr_value *value = &records[i].results[r];
            const unsigned char *bytes = value->data;

            for (size_t b = 0; b < value->bytes; b += 61)
                sum += bytes[b];
            if (value->bytes > 0)
                sum += bytes[value->bytes - 1];
            if (value->kind == HR_VALUE_RAGGED)
                sum += (uint64_t)value->u.ragged->splits[0][value->dims[0]];
        }
    }
    return sum;
}

TEST(a_peer_that_scribbles_while_it_is_read_harms_nobody)
{
    struct mixed *m = mixed_make("scribble", 3);
    struct hr_error error = {0};
    uint64_t from = hr__now_ns(), sum = 0;
    struct hr_proc *proc = open_program(&m->s.program, 0);

    while (hr__now_ns() - from < 1500000000u && peer_count < PEERS_MAX - 100) {
        enum hr_err code = hr__proc_run(proc, m->records, 8, &error);

        CHECK(code == HR_OK || code == HR_ERR_IO || code == HR_ERR_CANCELLED);
        if (code == HR_OK)
            sum += look_at(m->records, 8, 3, false);
    }
    CHECK(sum != 0);
    close_program(proc);
    mixed_free(m);
}

/* A parent without a peer, so that the bytes of an answer can be made up. */
static void lone_open(struct hr_proc *proc, const struct hr_proc_program *program)
{
    *proc = (struct hr_proc){.program = program, .bytes_max = SIZE_MAX};
    hr__arena_init(&proc->arena);
    CHECK_OK(hr__proc_map_init(&proc->map, program));
    CHECK_OK(hr__shm_create(&proc->in, 1 << 21, NULL));
    CHECK_OK(hr__shm_create(&proc->out, 65536, NULL));
}

static void lone_close(struct hr_proc *proc)
{
    hr__shm_close(&proc->in);
    hr__shm_close(&proc->out);
    hr__proc_map_finish(&proc->map);
    hr__arena_finish(&proc->arena);
}

/* An answer that is nearly right: numbers near the borders of what is allowed. */
static uint64_t odd_number(uint64_t *state)
{
    static const uint64_t odd[] = {
        0,     1,      3,         64,         4096,
        65536, 65472,  65535,     1u << 31,   UINT32_MAX,
        200,   100,    20000,     UINT64_MAX, (uint64_t)1 << 62,
        80000, 131072, INT64_MAX, 6400};

    return draw(state) % 3 == 0 ? draw(state)
                                : odd[draw(state) % (sizeof odd / sizeof odd[0])];
}

/* What an honest peer would have said. */
static void make_sound(const struct hr_proc *proc)
{
    const struct hr_proc_map *map = &proc->map;
    struct hr_wire_value number = {
        .place = 32768,
        .bytes = 80000,
        .kind = HR_VALUE_TENSOR,
        .dtype = HR_F32,
        .ndim = 2,
        .dims = {100, 200}
    };

    memset(proc->out.base, 0, proc->out.bytes);
    for (size_t i = 0; i < 8; i++) {
        struct hr_proc_status status = {.children = map->expand ? i : 0, .place = 16384};

        memcpy(proc->out.base + map->status + i * sizeof status, &status, sizeof status);
        for (size_t r = 0; r < map->results.count && !map->expand; r++) {
            struct hr_wire_value passed = {.place = r, .where = HR_WIRE_PASSED};

            memcpy(proc->out.base + map->results.lanes[r].at +
                       i * map->results.lanes[r].step,
                   r == 0 && i % 2 == 0 ? &number : &passed, sizeof passed);
        }
    }
    for (size_t k = 0; k < 64; k++) {
        struct hr_wire_value passed = {.place = k % 2, .where = HR_WIRE_PASSED};

        memcpy(proc->out.base + 16384 + k * sizeof passed, k % 4 == 0 ? &number : &passed,
               sizeof passed);
    }
}

/* Up to five changes, to numbers near the borders of what is allowed. */
static void spoil(char *out, size_t end, uint64_t *state)
{
    for (uint64_t k = draw(state) % 6; k > 0; k--) {
        size_t from = draw(state) % 3 == 0 ? 16384 : HR_PROC_HEAD;
        size_t room = from == 16384 ? 4096 : end - from;
        uint64_t number = odd_number(state);
        size_t at = from + draw(state) % room / 8 * 8;

        switch (draw(state) % 3) {
        case 0:
            memcpy(out + at, &number, 8);
            break;
        case 1:
            number = (uint64_t)(0 - draw(state) % 18); /* a code, perhaps */
            memcpy(out + at, &number, 4);
            break;
        default:
            out[at + draw(state) % 8] = (char)(draw(state) % 14);
        }
    }
}

static void fuzz_take(struct mixed *m, uint64_t seed, size_t result_count)
{
    uint64_t state = seed, sound = 0, refused = 0;
    struct hr_proc proc;

    lone_open(&proc, &m->s.program);
    CHECK_OK(hr__shm_map(&proc.out, 1 << 17, true, NULL));
    CHECK_OK(hr__proc_put(&proc, m->records, 8, HR_WIRE_ID_BYTES, NULL));
    for (int round = 0; round < 6000; round++) {
        const char *nonsense = NULL;
        struct hr_error error = {0};
        size_t taken = 0, end = proc.map.results.end;
        enum hr_err code;

        make_sound(&proc);
        spoil(proc.out.base, end, &state);
        hr__arena_reset(&proc.arena);
        for (int i = 0; i < 8; i++)
            m->records[i].detail = NULL;
        code = hr__proc_take(&proc, m->records, 8, &taken, &nonsense, &error);
        CHECK(code == HR_OK || code == HR_ERR_CANCELLED || code == HR_ERR_MEMORY);
        if (code != HR_OK) {
            for (int i = 0; i < 8; i++)
                hr__free(m->records[i].detail);
            continue;
        }
        CHECK((taken == 8) == (nonsense == NULL));
        refused += nonsense != NULL;
        for (size_t i = 0; i < taken; i++)
            sound += m->records[i].code == HR_OK;
        look_at(m->records, taken, result_count, proc.map.expand);
        for (size_t i = taken; i < 8; i++)
            hr__free(m->records[i].detail);
    }
    CHECK(sound > 6000 && refused > 600);
    lone_close(&proc);
}

TEST(made_up_answers_never_lead_outside)
{
    struct mixed *m = mixed_make("pass", 4);

    for (uint64_t seed = 1; seed <= 3; seed++)
        fuzz_take(m, seed, 4);
    mixed_free(m);
    m = mixed_make("children", 2);
    m->s.step.kind = HR_OP_EXPAND;
    for (uint64_t seed = 1; seed <= 3; seed++)
        fuzz_take(m, seed, 2);
    mixed_free(m);
}

TEST(a_program_survives_the_round_trip_and_damaged_ones_are_refused)
{
    struct mixed *m = mixed_make("pass", 4);
    struct hr_proc_program program;
    struct hr_arena arena;
    struct hr_error error = {0};
    struct hr_str text;
    uint64_t state = 5;
    char *spoiled;

    hr__arena_init(&arena);
    hr__str_init(&text);
    hr__proc_program_write(&m->s.program, &text);
    CHECK_OK(hr__proc_program_read(text.text, text.length, &arena, &program, &error));
    CHECK_EQ_INT(program.slot_count, 8);
    CHECK_EQ_STR(program.steps[0].code, "pass");
    CHECK_EQ_STR(program.steps[0].output_fields[2]->name, "text");
    CHECK_EQ_INT(program.results[3], 7);
    for (size_t cut = 0; cut < text.length; cut += 7)
        CHECK_ERR(HR_ERR_FORMAT,
                  hr__proc_program_read(text.text, cut, &arena, &program, &error));
    spoiled = malloc(text.length);
    for (int k = 0; k < 3000; k++) {
        memcpy(spoiled, text.text, text.length);
        for (int b = 0; b < 3; b++)
            spoiled[draw(&state) % text.length] = (char)draw(&state);
        hr__arena_reset(&arena);
        (void)!hr__proc_program_read(spoiled, text.length, &arena, &program, &error);
    }
    free(spoiled);
    hr__str_finish(&text);
    hr__arena_finish(&arena);
    mixed_free(m);
}

TEST(serving_a_socket_that_is_closed_or_says_nonsense_ends)
{
    struct hr_error error = {0};
    int ends[2];

    CHECK_ERR(HR_ERR_ARGUMENT, hr_code_serve(-1, peer_find_code, NULL, &error));
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 ? HR_OK : HR_ERR_IO);
    close(ends[0]);
    CHECK_OK(hr_code_serve(ends[1], peer_find_code, NULL, &error));
    close(ends[1]);
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 ? HR_OK : HR_ERR_IO);
    CHECK_EQ_INT(send(ends[0], "hello", 5, 0), 5);
    CHECK_ERR(HR_ERR_FORMAT, hr_code_serve(ends[1], peer_find_code, NULL, &error));
    close(ends[0]);
    close(ends[1]);
}
