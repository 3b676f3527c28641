/*
 * opt/cedar_test_cases.h - the statistics that cedar ships, rounded to 7 digits, with the
 * hints of its pipelines, as pipes of opt/cedar.h.
 */
#ifndef HR_OPT_CEDAR_TEST_CASES_H
#define HR_OPT_CEDAR_TEST_CASES_H

#include "opt/cedar.h"
#include "tests/support/check.h"

#define MAPS                                                                             \
    (1U << HR_CEDAR_INPROCESS | 1U << HR_CEDAR_SMP | 1U << HR_CEDAR_RAY |                \
     1U << HR_CEDAR_TF | 1U << HR_CEDAR_TF_RAY)
#define HERE (1U << HR_CEDAR_INPROCESS)

/* Samples per second as SMP, RAY, TF_RAY; 0: not measured. */
#define RATES(smp, ray, tf_ray)                                                          \
    .rates = {                                                                           \
        [HR_CEDAR_SMP] = (smp), [HR_CEDAR_RAY] = (ray), [HR_CEDAR_TF_RAY] = (tf_ray)}
#define MAP(label, ns, in, out, rates, ...)                                              \
    {                                                                                    \
        .name = (label), .latency_ns = (ns), .bytes_in = (in), .bytes_out = (out),       \
        .variants = MAPS, .fusable = true, rates, __VA_ARGS__                            \
    }
#define OTHER(label, ns, in, out, ...)                                                   \
    {                                                                                    \
        .name = (label), .latency_ns = (ns), .bytes_in = (in), .bytes_out = (out),       \
        .variants = HERE, .fixed = true, __VA_ARGS__                                     \
    }
#define SOURCE(label, ns, out) OTHER(label, ns, 0, out, .fusable = false)
#define BATCH(ns, bytes) OTHER("batch", ns, bytes, bytes, .batches = true)
#define AFTER(i) .depends_on = (uint64_t)1 << (i)

/* clang-format off */
static const struct hr_cedar_pipe cv_torch_pipes[] = {
    SOURCE("source", 57345.69, 160.4706),
    OTHER("imread", 1986337, 160.4706, 487347.2, .fusable = false),
    MAP("float", 269284.2, 487347.2, 1949389, RATES(0, 25.51412, 0), .tf = false),
    MAP("crop", 2029028, 1949389, 714432, RATES(0, 20.75092, 0), .random = true),
    MAP("flip", 115993.8, 714432, 714432, RATES(0, 33.57, 0), AFTER(3), .random = true),
    MAP("jitter", 9055507, 714432, 714432, RATES(0, 48.49942, 0), .random = true),
    MAP("gray", 325785, 714432, 238144, RATES(0, 37.69401, 0), .tf = false),
    MAP("blur", 8262708, 238144, 238144, RATES(0, 65.45635, 0), .tf = false),
    MAP("norm", 224545, 238144, 238144, RATES(0, 40.54242, 0), AFTER(2)),
    BATCH(4717422, 238144),
};
static const struct hr_cedar_pipe cv_remote_pipes[] = {
    SOURCE("source", 16526.24, 152.8),
    MAP("read", 1966147, 152.8, 535453.3, RATES(0, 40.09831, 0), .fixed = true),
    MAP("float", 334439.6, 535453.3, 2141813, RATES(0, 22.25921, 0), .tf = false),
    MAP("crop", 2069423, 2141813, 714432, RATES(0, 23.49422, 0), .random = true),
    MAP("flip", 121452.4, 714432, 714432, RATES(0, 30.62993, 0), AFTER(3), .random = true),
    MAP("jitter", 9625668, 714432, 714432, RATES(0, 41.81244, 0), .random = true),
    MAP("gray", 363186.9, 714432, 238144, RATES(0, 33.39287, 0), .tf = false),
    MAP("blur", 6194943, 238144, 238144, RATES(0, 62.65463, 0), .tf = false),
    MAP("norm", 246840, 238144, 238144, RATES(0, 36.06594, 0), AFTER(2)),
    BATCH(5126579, 238144),
};
static const struct hr_cedar_pipe cv_tf_pipes[] = {
    SOURCE("source", 13339.67, 152.3951),
    MAP("read_file", 1.562207e7, 152.3951, 111460, RATES(0, 0, 62.44827), .tf = true, .fixed = true),
    MAP("decode", 1.380033e7, 111460, 533344.7, RATES(0, 0, 59.61553), .tf = true, .fixed = true),
    MAP("float", 1.297196e7, 533344.7, 2133379, RATES(0, 0, 32.5673), .tf = true),
    MAP("crop", 8.906746e7, 2133379, 714432, RATES(0, 0, 25.72834), .tf = true, .random = true),
    MAP("flip", 4.721822e7, 714432, 714432, RATES(0, 0, 48.71992), .tf = true, AFTER(4)),
    MAP("jitter", 4.834113e7, 714432, 714432, RATES(0, 0, 48.28283), .tf = true),
    MAP("gray", 2.231209e7, 714432, 238144, RATES(0, 0, 49.06393), .tf = true),
    MAP("blur", 5462766, 238144, 238144, RATES(0, 0, 92.23505), .tf = true),
    MAP("norm", 698793.7, 238144, 238144, RATES(0, 0, 61.62073), .tf = true, AFTER(3)),
    BATCH(6385877, 238144),
};
static const struct hr_cedar_pipe nlp_torch_pipes[] = {
    SOURCE("source", 9096.16, 605.44),
    MAP("tok", 582709.8, 605.44, 4866.96, RATES(2253.479, 2302.291, 0), .fixed = true),
    MAP("trunc", 2190430, 4866.96, 4594.24, RATES(1258.583, 1299.755, 0), .fixed = true),
    MAP("vocab", 2016816, 4594.24, 2625.28, RATES(1270.896, 1338.965, 0), .fixed = true),
    MAP("bos", 1957377, 2625.28, 2649.28, RATES(1327.752, 1391.498, 0), .fixed = false),
    MAP("eos", 1968189, 2649.28, 2681.28, RATES(1317.109, 1382.576, 0), .fixed = false),
    MAP("ToTensor", 2026209, 2681.28, 672.32, RATES(749.3249, 1127.51, 0), .fixed = true, .kept = true),
    MAP("emb", 110273.5, 672.32, 256826.2, RATES(526.6248, 591.3715, 0), .fixed = true),
    BATCH(7024.1, 256826.2),
};
static const struct hr_cedar_pipe nlp_tf_pipes[] = {
    {.name = "source", .latency_ns = 11435.69, .bytes_out = 326.6, .variants = 1U << HR_CEDAR_TF,
     .fixed = true, .tf = true},
    MAP("tok", 724025.2, 326.6, 377.68, RATES(752.5037, 0, 1063.871), .fixed = true, .tf = true),
    MAP("trunc", 391252, 377.68, 325.48, RATES(708.3609, 0, 730.791), .fixed = true, .tf = true),
    MAP("emb", 395024.9, 325.48, 249968.6, RATES(632.2767, 0, 428.959), .fixed = true, .tf = true),
};
static const struct hr_cedar_pipe ssd_torch_pipes[] = {
    SOURCE("source", 4268438, 819539.9),
    MAP("zoom", 3274151, 819539.9, 5703035, RATES(4.702741, 0, 0), .random = true),
    MAP("crop", 1.203695e7, 5703035, 4728173, RATES(4.45789, 0, 0), AFTER(1)),
    MAP("sanitize", 3322530, 4728173, 4728164, RATES(4.780677, 0, 0), AFTER(2)),
    MAP("flip", 5214733, 4728164, 4728164, RATES(5.529794, 0, 0), AFTER(3)),
    MAP("distort", 1.889007e8, 4728164, 4728164, RATES(12.03423, 0, 0), .random = true),
    MAP("to_tensor", 2.649433e7, 4728164, 1.891059e7, RATES(5.323473, 0, 0), .tf = false),
};
static const struct hr_cedar_pipe ssd_tf_pipes[] = {
    SOURCE("source", 11876.36, 1054),
    MAP("read", 7.832443e7, 1054, 3099054, RATES(17.34889, 0, 10.6576), .tf = true, .fixed = true),
    MAP("crop", 7.599651e7, 3099054, 1193512, RATES(16.06246, 0, 7.619804), .tf = true),
    MAP("resize", 7.861046e7, 1193512, 2.132273e7, RATES(14.21231, 0, 5.965344), .tf = true, AFTER(2)),
    MAP("flip", 9.35559e7, 2.132273e7, 2.132273e7, RATES(11.9389, 0, 1.398014), .tf = true, AFTER(3)),
    MAP("distort", 4.760047e7, 2.132273e7, 2.132273e7, RATES(10.46909, 0, 1.550869), .tf = true),
    MAP("normalize", 3.52487e7, 2.132273e7, 2.132273e7, RATES(12.84683, 0, 1.234947), .tf = true, .fixed = true),
};
/* Of cedar's own tests: steps that take the same time. */
static const struct hr_cedar_pipe toy_pipes[] = {
    SOURCE("source", 1, 1),
    MAP("grow", 1, 1, 10, RATES(0, 0, 0), .tf = false),
    MAP("keep", 1, 10, 10, RATES(0, 0, 0), .tf = false),
    MAP("shrink", 1, 10, 1, RATES(0, 0, 0), .tf = false),
};
/* clang-format on */

/* Of a fast disk, as in most of cedar's files. */
#define DISK_READ 8e-9
#define STATS(pipes, samples_per_second, fused)                                          \
    {                                                                                    \
        pipes, sizeof(pipes) / sizeof(pipes)[0], samples_per_second, fused, DISK_READ    \
    }
static const struct hr_cedar_stats cv_torch = STATS(cv_torch_pipes, 40.29777, 0);
static const struct hr_cedar_stats cv_remote = STATS(cv_remote_pipes, 39.89594, 0);
static const struct hr_cedar_stats cv_tf = STATS(cv_tf_pipes, 65.73627, 0);
static const struct hr_cedar_stats nlp_torch = STATS(nlp_torch_pipes, 1960.838, 0);
static const struct hr_cedar_stats nlp_tf = STATS(nlp_tf_pipes, 909.1796, 5118.622);
static const struct hr_cedar_stats ssd_torch = STATS(ssd_torch_pipes, 4.212811, 0);
static const struct hr_cedar_stats ssd_tf = STATS(ssd_tf_pipes, 12.77497, 0);
static const struct hr_cedar_stats toy = STATS(toy_pipes, 10, 0);

static inline void
optimize(const struct hr_cedar_stats *stats, const struct hr_cedar_options *options,
         struct hr_cedar_result *ret_result)
{
    struct hr_error error = {0};

    if (hr__cedar_optimize(stats, options, ret_result, &error) != HR_OK)
        check_failed(__FILE__, __LINE__, "%s", error.message);
}

#endif
