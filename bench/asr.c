/*
 * asr.c - make bench B=asr: sound files to batches of log-mel spectra, beside torchaudio
 * and librosa with soxr.
 *
 * Two data sets: clips of 10 s at 44.1 kHz, which are synthesised, and spoken digits of
 * half a second at 8 kHz, from the folder that is given (else synthesised). The peers run
 * in Python ($ASR_PYTHON, else python3), each pass in a process of its own that times
 * itself, and are left out if they are not installed.
 */
#include "passes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CLIPS 60
#define DIGITS 500

static void put(FILE *file, uint32_t number, size_t bytes)
{
    if (fwrite(&number, bytes, 1, file) != 1)
        bench_die("cannot write a sound");
}

/* Harmonics under a slow envelope, and noise. */
static void write_sound(const char *path, uint32_t rate, uint32_t frames, uint32_t seed)
{
    FILE *file = fopen(path, "wb");

    if (file == NULL)
        bench_die("cannot write %s", path);
    fwrite("RIFF", 4, 1, file);
    put(file, 36 + 2 * frames, 4);
    fwrite("WAVEfmt ", 8, 1, file);
    put(file, 16, 4);
    put(file, 1, 2);
    put(file, 1, 2);
    put(file, rate, 4);
    put(file, 2 * rate, 4);
    put(file, 2, 2);
    put(file, 16, 2);
    fwrite("data", 4, 1, file);
    put(file, 2 * frames, 4);
    for (uint32_t i = 0; i < frames; i++) {
        double t = (double)i / rate, sum = 0;

        seed = seed * 1664525 + 1013904223;
        for (int k = 1; k < 8; k++)
            sum += sin(6.2831853 * k * (110 + 5 * sin(t)) * t) / k;
        sum = sum * (0.6 + 0.4 * sin(9 * t)) / 4 + ((double)seed / 4294967296 - 0.5) / 50;
        put(file, (uint32_t)(int32_t)(sum * 16000), 2);
    }
    if (fclose(file) != 0)
        bench_die("cannot write %s", path);
}

/* A folder of sounds beside the program, made once. */
static void make_sounds(char *dir, size_t room, const char *name, int count,
                        uint32_t rate, uint32_t frames)
{
    char path[4200];

    bench_path(dir, room, name);
    if (mkdir(dir, 0777) != 0)
        return;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%04d.wav", dir, i);
        write_sound(path, rate, frames + 37 * (uint32_t)(i % 20), (uint32_t)i);
    }
}

/* A pass of a peer; false where it is not installed. */
static bool
run_peer(struct bench *bench, const char *row, const char *peer, const char *dir)
{
    const char *python = getenv("ASR_PYTHON");
    const char *args[] = {"/usr/bin/env",
                          python != NULL ? python : "python3",
                          "-W",
                          "ignore",
                          BENCH_SOURCE_ROOT "/bench/peers/asr_peer.py",
                          peer,
                          dir,
                          NULL};
    double wall, cpu;
    char line[200];

    bench_pin(1);
    bench_child(line, sizeof(line), args);
    bench_pin(0);
    if (sscanf(line, "%lf %lf", &wall, &cpu) != 2)
        return false;
    bench_add(bench, row, wall, cpu);
    return true;
}

static const char hq[] = "headrace hq, 1 thread";
static const char hq_2[] = "headrace hq, 2 threads";
static const char hq_avx2[] = "headrace hq, AVX2, 1 thread";
static const char short_1[] = "headrace torchaudio's filter, 1 thread";
static const char librosa[] = "librosa + soxr HQ, 1 thread";
static const char torchaudio[] = "torchaudio, 1 thread";

static bool run_round(struct bench *bench, const char *dir, char *nodes, size_t room)
{
    struct pass pass = {.graph = "asr", .dir = dir, .threads = 1};
    bool peers;

    pass_run(bench, hq, &pass, nodes, room);
    peers = run_peer(bench, librosa, "librosa", dir);
    pass.params[pass.param_count++] = (struct hr_graph_param){"filter", "torchaudio"};
    pass_run(bench, short_1, &pass, NULL, 0);
    peers = run_peer(bench, torchaudio, "torchaudio", dir) && peers;
    pass.param_count = 0;
    pass.avx2 = true;
    pass_run(bench, hq_avx2, &pass, NULL, 0);
    if (bench_cpus() < 2)
        return peers;
    pass.avx2 = false;
    pass.threads = 2;
    pass_run(bench, hq_2, &pass, NULL, 0);
    return peers;
}

static void
claims(struct bench *bench, bool peers, double of_librosa, double of_torchaudio)
{
    if (peers) {
        if (of_librosa > 0)
            bench_claim_ratio(bench, "hq / librosa + soxr, wall clock", hq, librosa,
                              false, true, of_librosa);
        bench_claim_ratio(bench, "torchaudio's filter / torchaudio, wall clock", short_1,
                          torchaudio, false, true, of_torchaudio);
    }
    if (bench_cpus() >= 2)
        bench_claim_ratio(bench, "2 threads / 1 thread, wall clock", hq_2, hq, false,
                          true, 1.9);
}

int main(int argc, char **argv)
{
    static const char long_ones[] = "10 s at 44.1 kHz", short_ones[] = "spoken digits";
    static struct bench bench;
    char clips[4096], made[4096], nodes[2][160] = {"", ""};
    const char *digits = made;
    bool peers = true;

    bench_init(&bench, argc, argv, "asr",
               "WAV -> mono -> 16 kHz -> 80 log-mel bands, batches of 32", "files/s");
    bench.cpu_heading = "per CPU s";
    make_sounds(clips, sizeof(clips), "sounds-10s", CLIPS, 44100, 441000);
    if (bench.dir != NULL)
        digits = bench.dir;
    else
        make_sounds(made, sizeof(made), "sounds-digits", DIGITS, 8000, 3500);
    bench_fact(&bench, "digits", "%s", digits);
    for (int i = 0; i < bench.rounds; i++) {
        bench_group(&bench, long_ones);
        peers = run_round(&bench, clips, nodes[0], sizeof(nodes[0])) && peers;
        bench_group(&bench, short_ones);
        peers = run_round(&bench, digits, nodes[1], sizeof(nodes[1])) && peers;
    }
    bench_fact(&bench, "us per clip", "%s", nodes[0]);
    bench_fact(&bench, "us per digit", "%s", nodes[1]);
    if (!peers)
        bench_fact(&bench, "peers",
                   "not installed: torchaudio, librosa, soxr, soundfile");
    bench_group(&bench, long_ones);
    claims(&bench, peers, 3.3, 9);
    bench_group(&bench, short_ones);
    claims(&bench, peers, 0, 9);
    bench_print(&bench);
    return 0;
}
