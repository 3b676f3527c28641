/*
 * service.c - make bench B=service: batches from a worker of the service on this machine,
 * worker and client on a core each, vs. a bare TCP stream of the same bytes.
 *
 * Batches are 256 images of 224x224x3 levels (38.5 MB) or single records of 1000 bytes,
 * from .npy files in the page cache. The client reads every byte in place, and so do
 * the readers of the bare streams: TCP, TLS by OpenSSL, and shared memory that the sender
 * fills with what a worker makes. A worker also makes what it sends: "bare, made" copies
 * each batch from the file before it sends it, and "the worker's graph alone" is a run
 * without a service on the worker's core. With TLS, the certificate is made by the
 * command openssl. Four runs of the same batches, each as fast as one, share what the
 * worker makes; their CPU time is the worker's. One-hot rows cost little more than a
 * memset to make. All figures are per 1000 bytes: 1000 / ns is GB/s; for records, ns are
 * per record.
 */
#include "measure.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef HR_TLS
#include <openssl/ssl.h>
#endif

#define IMAGE_BYTES ((size_t)224 * 224 * 3)
#define BATCH 256
#define BATCHES 8 /* in the file; runs have several epochs */
#define RECORD_BYTES 1000
#define RECORDS 100000
#define RING 4 /* buffers of the bare stream */
#define FIRSTS 9

static const char *const unit = "ns/kB";

/* What a group measures. */
struct what {
    const char *group, *file, *shape, *graph;
    size_t item_bytes, items; /* of the file */
    size_t batch;             /* items of a batch */
    size_t message;           /* bytes that the bare stream sends at once */
    size_t warm, count;       /* batches that are not timed; that are */
};

static const struct what images = {.group = "batches of 256x224x224x3 u8",
                                   .file = "service-images.npy",
                                   .shape = "224, 224, 3",
                                   .graph = "  - batch.stack: {size: 256}\n",
                                   .item_bytes = IMAGE_BYTES,
                                   .items = (size_t)BATCH * BATCHES,
                                   .batch = BATCH,
                                   .message = IMAGE_BYTES * BATCH,
                                   .warm = 16,
                                   .count = 48};
/* What it costs to make them is a memset. */
static const struct what zeros = {.group = "batches of 64 one-hot rows of 602 kB",
                                  .graph = "  - source.range: {n: 4096, field: label}\n"
                                           "  - tensor.one_hot: {classes: 150528}\n"
                                           "  - batch.stack: {size: 64}\n",
                                  .item_bytes = IMAGE_BYTES * 4,
                                  .items = BATCH,
                                  .batch = 64,
                                  .message = IMAGE_BYTES * BATCH,
                                  .warm = 16,
                                  .count = 48};
static const struct what records = {.group = "records of 1000 bytes, one by one",
                                    .file = "service-records.npy",
                                    .shape = "1000",
                                    .graph = "",
                                    .item_bytes = RECORD_BYTES,
                                    .items = RECORDS,
                                    .batch = 1,
                                    .message = (size_t)256 << 10,
                                    .warm = RECORDS * 3,
                                    .count = RECORDS * 10};

/* What costs something to make; figures are per record. */
static const struct what spins = {.group = "records of 100 us, by one and by four runs",
                                  .graph = "  - source.range: {n: 100000}\n"
                                           "  - debug.spin: {us: 100}\n"
                                           "  - batch.stack: {size: 16}\n",
                                  .item_bytes = 1000,
                                  .batch = 16,
                                  .warm = 100,
                                  .count = 400};
#define RUNS 4

/* ---- data ---- */

static void write_file(const struct what *what, const char *path)
{
    size_t bytes = what->item_bytes * what->items, file_bytes;
    char head[128], text[100];
    uint64_t number = 1, *block;
    struct stat stat_;
    FILE *file;

    file_bytes = sizeof head + bytes;
    if (stat(path, &stat_) == 0 && (size_t)stat_.st_size == file_bytes)
        return;
    snprintf(text, sizeof text,
             "{'descr': '|u1', 'fortran_order': False, 'shape': (%zu, %s), }",
             what->items, what->shape);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(head + 10, text, strlen(text));
    head[sizeof head - 1] = '\n';
    block = malloc(1 << 20);
    file = fopen(path, "w");
    if (block == NULL || file == NULL || fwrite(head, 1, sizeof head, file) == 0)
        bench_die("cannot write %s", path);
    for (size_t done = 0; done < bytes;) {
        size_t part = bytes - done < 1 << 20 ? bytes - done : 1 << 20;

        for (size_t i = 0; i < (1 << 20) / 8; i++)
            block[i] = number = number * 6364136223846793005u + 1442695040888963407u;
        if (fwrite(block, 1, part, file) != part)
            bench_die("cannot write %s", path);
        done += part;
    }
    if (fclose(file) != 0)
        bench_die("cannot write %s", path);
    free(block);
}

static void data_path(const struct what *what, char *path, size_t room)
{
    bench_path(path, room, what->file);
    write_file(what, path);
}

/* ---- processes ---- */

/* One of the CPUs that the benchmark was given. */
static void pin(int which)
{
    static cpu_set_t all;
    cpu_set_t one;
    int at = 0;

    if (CPU_COUNT(&all) == 0 && sched_getaffinity(0, sizeof all, &all) != 0)
        bench_die("cannot choose CPUs");
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all) && at++ == which)
            CPU_SET(i, &one);
    if (CPU_COUNT(&one) == 0 || sched_setaffinity(0, sizeof one, &one) != 0)
        bench_die("this benchmark needs two CPUs");
}

struct process {
    pid_t pid;
    char address[64];
};

/* Starts a process of the service on a CPU and reads where it listens. `flag` or NULL. */
static struct process start(int cpu, const char *command, const char *option,
                            const char *address, const char *flag)
{
    struct process p = {0};
    char line[256], program[4096];
    int ends[2];
    FILE *out;

    bench_path(program, sizeof program, "../headrace");
    if (pipe(ends) != 0 || (p.pid = fork()) < 0)
        bench_die("cannot start a process");
    if (p.pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(cpu);
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, command, option, address, flag, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    out = fdopen(ends[0], "r");
    if (out == NULL || fgets(line, sizeof line, out) == NULL ||
        strrchr(line, ' ') == NULL)
        bench_die("headrace %s does not start; build it first", command);
    snprintf(p.address, sizeof p.address, "%.*s",
             (int)strcspn(strrchr(line, ' ') + 1, "\n"), strrchr(line, ' ') + 1);
    fclose(out);
    return p;
}

static void stop(const struct process *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
}

/* A dispatcher and a worker on the first CPU. */
struct service {
    struct process dispatcher, worker;
    const char *ca; /* NULL: without TLS */
};

/* ---- reading ---- */

static uint64_t sink;

/* Reads all of it, at the speed of memory. */
static void read_all(const void *data, size_t bytes)
{
    const uint64_t *words = data;
    uint64_t sums[8] = {0};

    for (size_t i = 0; i + 8 <= bytes / 8; i += 8)
        for (int k = 0; k < 8; k++)
            sums[k] ^= words[i + (size_t)k];
    for (int k = 0; k < 8; k++)
        sink ^= sums[k];
}

static void add(struct bench *bench, const char *row, const struct what *what,
                double wall, double cpu)
{
    double kilobytes =
        (double)what->count * (double)(what->batch * what->item_bytes) / 1000;

    bench_add(bench, row, wall * 1e9 / kilobytes, cpu < 0 ? cpu : cpu * 1e9 / kilobytes);
}

/* ---- the bare stream ---- */

static void local(int fd)
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* A socket, with TLS if `secure`. The sender has the certificate of start_secure(). */
struct stream {
    int fd;
    bool secure;
#ifdef HR_TLS
    SSL *ssl;
#endif
};

#ifdef HR_TLS
static void shake(struct stream *stream, bool sender)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    char cert[4096], key[4096];

    bench_path(cert, sizeof cert, "service-tls.crt");
    bench_path(key, sizeof key, "service-tls.key");
    if (context == NULL || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1 ||
        (sender && (SSL_CTX_use_certificate_chain_file(context, cert) != 1 ||
                    SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)))
        bench_die("TLS cannot be set up");
    stream->ssl = SSL_new(context);
    SSL_CTX_free(context);
    if (stream->ssl == NULL || SSL_set_fd(stream->ssl, stream->fd) != 1 ||
        (sender ? SSL_accept(stream->ssl) : SSL_connect(stream->ssl)) != 1)
        bench_die("TLS does not connect");
}

static ssize_t secure_send(const struct stream *stream, const char *data, size_t bytes)
{
    return SSL_write(stream->ssl, data, bytes < 1 << 20 ? (int)bytes : 1 << 20);
}

static ssize_t secure_receive(const struct stream *stream, char *to, size_t bytes)
{
    return SSL_read(stream->ssl, to, bytes < 1 << 20 ? (int)bytes : 1 << 20);
}

static void stream_close(const struct stream *stream)
{
    if (stream->secure)
        SSL_free(stream->ssl);
    close(stream->fd);
}
#else
static void shake(struct stream *stream, bool sender)
{
    (void)stream;
    (void)sender;
    bench_die("there is no TLS in this build");
}

static ssize_t secure_send(const struct stream *stream, const char *data, size_t bytes)
{
    (void)stream;
    (void)data;
    (void)bytes;
    return -1;
}

static ssize_t secure_receive(const struct stream *stream, char *to, size_t bytes)
{
    (void)to;
    return secure_send(stream, NULL, bytes);
}

static void stream_close(const struct stream *stream)
{
    close(stream->fd);
}
#endif

static void send_all(const struct stream *stream, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = stream->secure ? secure_send(stream, data, bytes)
                                      : send(stream->fd, data, bytes, MSG_NOSIGNAL);

        if (done <= 0)
            _exit(0);
        data += done;
        bytes -= (size_t)done;
    }
}

static void
send_stream(const struct what *what, const char *path, int port, bool make, bool secure)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t bytes = what->item_bytes * what->items, message = what->message;
    struct stream stream = {.fd = socket(AF_INET, SOCK_STREAM, 0), .secure = secure};
    int file = open(path, O_RDONLY);
    char *ring[RING];

    local(stream.fd);
    for (int i = 0; i < RING; i++) {
        ring[i] = malloc(message);
        if (ring[i] == NULL || pread(file, ring[i], message, 128) != (ssize_t)message)
            _exit(1);
    }
    if (connect(stream.fd, (struct sockaddr *)&to, sizeof to) != 0)
        _exit(1);
    if (secure)
        shake(&stream, true);
    for (size_t at = 0, turn = 0;; at += message, turn++) {
        char *from = ring[turn % RING];

        at = at + message > bytes ? 0 : at;
        if (make && pread(file, from, message, (off_t)(128 + at)) != (ssize_t)message)
            _exit(1);
        send_all(&stream, from, message);
    }
}

static void receive(const struct stream *stream, char *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = stream->secure
                          ? secure_receive(stream, to, bytes)
                          : recv(stream->fd, to, bytes < 1 << 20 ? bytes : 1 << 20, 0);

        if (got <= 0)
            bench_die("the bare stream ended");
        to += got;
        bytes -= (size_t)got;
    }
}

static void bare(struct bench *bench, const char *row, const struct what *what, bool make,
                 bool secure)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct stream stream = {.secure = secure};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t room = sizeof at;
    size_t batch = what->batch * what->item_bytes, message = what->message;
    size_t warm = what->warm * batch / message, count = what->count * batch / message;
    double wall = 0, cpu = 0;
    char path[4096], *ring[RING];
    pid_t sender;

    data_path(make ? what : &images, path, sizeof path);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &room) != 0)
        bench_die("cannot listen");
    sender = fork();
    if (sender == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(0);
        send_stream(what, path, ntohs(at.sin_port), make, secure);
        _exit(0);
    }
    for (int i = 0; i < RING; i++) {
        ring[i] = malloc(message);
        if (ring[i] == NULL)
            bench_die("out of memory");
        memset(ring[i], 1, message);
    }
    stream.fd = accept(listener, NULL, NULL);
    local(stream.fd);
    if (secure)
        shake(&stream, false);
    for (size_t i = 0; i < warm + count; i++) {
        if (i == warm) {
            wall = bench_now();
            cpu = bench_cpu_seconds() + bench_cpu_of(sender);
        }
        receive(&stream, ring[i % RING], message);
        read_all(ring[i % RING], message);
    }
    add(bench, row, what, bench_now() - wall,
        bench_cpu_seconds() + bench_cpu_of(sender) - cpu);
    stop(&(struct process){.pid = sender});
    for (int i = 0; i < RING; i++)
        free(ring[i]);
    stream_close(&stream);
    close(listener);
}

/* ---- bare shared memory ---- */

/* Slots that two processes share. A byte in a pipe is a slot that is full, or free. */
struct slots {
    char *ring[RING];
    int full[2], free[2];
};

static void open_slots(struct slots *slots, size_t message)
{
    for (int i = 0; i < RING; i++) {
        slots->ring[i] = mmap(NULL, message, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (slots->ring[i] == MAP_FAILED)
            bench_die("out of memory");
    }
    if (pipe(slots->full) != 0 || pipe(slots->free) != 0 ||
        write(slots->free[1], "0123", RING) != RING)
        bench_die("cannot open pipes");
}

static void close_slots(const struct slots *slots, size_t message)
{
    for (int i = 0; i < RING; i++)
        munmap(slots->ring[i], message);
    for (int i = 0; i < 2; i++) {
        close(slots->full[i]);
        close(slots->free[i]);
    }
}

/* Makes what the service's worker makes, where it lies. */
static void fill_slots(const struct what *what, const char *path, const struct slots *to)
{
    size_t bytes = what->item_bytes * what->items, message = what->message, at = 0;
    int file = path != NULL ? open(path, O_RDONLY) : -1;
    char byte;

    for (size_t turn = 0; read(to->free[0], &byte, 1) == 1; turn++) {
        char *slot = to->ring[turn % RING];

        at = at + message > bytes ? 0 : at;
        if (path == NULL) /* row by row, as the op does */
            for (size_t done = 0; done < message; done += what->item_bytes)
                memset(slot + done, 0, what->item_bytes);
        else if (pread(file, slot, message, (off_t)(128 + at)) != (ssize_t)message)
            _exit(1);
        at += message;
        if (write(to->full[1], &byte, 1) != 1)
            _exit(1);
    }
}

static void bare_shared(struct bench *bench, const char *row, const struct what *what)
{
    size_t batch = what->batch * what->item_bytes, message = what->message;
    size_t warm = what->warm * batch / message, count = what->count * batch / message;
    double wall = 0, cpu = 0;
    struct slots slots;
    char path[4096], byte;
    pid_t sender;

    if (what->file != NULL)
        data_path(what, path, sizeof path);
    open_slots(&slots, message);
    sender = fork();
    if (sender == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(0);
        fill_slots(what, what->file != NULL ? path : NULL, &slots);
        _exit(0);
    }
    for (size_t i = 0; i < warm + count; i++) {
        if (i == warm) {
            wall = bench_now();
            cpu = bench_cpu_seconds() + bench_cpu_of(sender);
        }
        if (read(slots.full[0], &byte, 1) != 1)
            bench_die("the bare stream ended");
        read_all(slots.ring[i % RING], message);
        if (write(slots.free[1], &byte, 1) != 1)
            bench_die("the bare stream ended");
    }
    add(bench, row, what, bench_now() - wall,
        bench_cpu_seconds() + bench_cpu_of(sender) - cpu);
    stop(&(struct process){.pid = sender});
    close_slots(&slots, message);
}

/* ---- the service ---- */

static struct hr_graph *parse(const struct what *what)
{
    struct hr_error error = {0};
    struct hr_graph *graph = NULL;
    char text[5000], path[4096];

    if (what->file == NULL) {
        snprintf(text, sizeof text, "headrace: 1\npipeline:\n%s", what->graph);
    } else {
        data_path(what, path, sizeof path);
        snprintf(text, sizeof text,
                 "headrace: 1\npipeline:\n  - source.npy: {path: %s}\n%s", path,
                 what->graph);
    }
    bench_must(hr_graph_parse(text, strlen(text), "bench", NULL, 0, &graph, &error),
               &error);
    bench_must(hr_graph_freeze(graph, &error), &error);
    return graph;
}

static void next(struct hr_iter *iter)
{
    struct hr_error error = {0};
    struct hr_field_view view;
    struct hr_batch *batch;

    bench_must(hr_iter_next(iter, &batch, &error), &error);
    bench_must(hr_batch_field(batch, 0, &view), &error);
    read_all(view.data, view.bytes);
    hr_batch_unref(batch);
}

/* `ca`: talks TLS with the service; NULL: does not. */
static struct hr_iter *
open_run(struct hr_graph *graph, const char *service, const char *ca)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_iter *iter;

    hr_iter_options_init(&options);
    options.epochs = 0;
    options.threads = 1;
    options.service = service;
    options.service_tls_ca = ca;
    bench_must(hr_iter_open(graph, &options, &iter, &error), &error);
    return iter;
}

/* `service` NULL: a run without one, on this core. */
static void run(struct bench *bench, const char *row, const struct what *what,
                const struct service *service)
{
    struct hr_graph *graph = parse(what);
    struct hr_iter *iter =
        service == NULL ? open_run(graph, NULL, NULL)
                        : open_run(graph, service->dispatcher.address, service->ca);
    pid_t worker = service != NULL ? service->worker.pid : 0;
    double wall = 0, cpu = 0;

    for (size_t i = 0; i < what->warm + what->count; i++) {
        if (i == what->warm) {
            wall = bench_now();
            cpu = bench_cpu_seconds() + (worker > 0 ? bench_cpu_of(worker) : 0);
        }
        next(iter);
    }
    add(bench, row, what, bench_now() - wall,
        bench_cpu_seconds() + (worker > 0 ? bench_cpu_of(worker) : 0) - cpu);
    hr_iter_close(iter);
    hr_graph_unref(graph);
}

/* Several runs of the same batches at the same speed; the time is that of one. */
static void run_equal(struct bench *bench, const char *row, size_t count,
                      const struct service *service)
{
    struct hr_graph *graph = parse(&spins);
    struct hr_iter *iters[RUNS];
    double wall = 0, cpu = 0;

    for (size_t i = 0; i < count; i++)
        iters[i] = open_run(graph, service->dispatcher.address, NULL);
    for (size_t i = 0; i < spins.warm + spins.count; i++) {
        if (i == spins.warm) {
            wall = bench_now();
            cpu = bench_cpu_of(service->worker.pid);
        }
        for (size_t k = 0; k < count; k++)
            next(iters[k]);
    }
    add(bench, row, &spins, bench_now() - wall, bench_cpu_of(service->worker.pid) - cpu);
    for (size_t i = 0; i < count; i++)
        hr_iter_close(iters[i]);
    hr_graph_unref(graph);
}

/* The median time from opening a run to its first record, in ms. */
static double first_record(const char *service, double spread[2])
{
    struct hr_graph *graph = parse(&records);
    double took[FIRSTS];

    for (int i = 0; i < FIRSTS; i++) {
        double began = bench_now();
        struct hr_iter *iter = open_run(graph, service, NULL);

        next(iter);
        took[i] = (bench_now() - began) * 1e3;
        hr_iter_close(iter);
    }
    hr_graph_unref(graph);
    return bench_middle(took, FIRSTS, spread);
}

/* tf.data service on the same cores, where $TF_PYTHON has TensorFlow. */
static void tf_data(struct bench *bench)
{
    const char *python = getenv("TF_PYTHON");
    char line[256], script[4096];
    const char *args[] = {python, script, NULL};

    snprintf(script, sizeof script, "%s/bench/python/tf_service.py", BENCH_SOURCE_ROOT);
    if (python == NULL) {
        bench_fact(bench, "tf.data service",
                   "not run ($TF_PYTHON has TensorFlow); an earlier figure on another "
                   "machine: 0.39 GB/s, 5,253 records/s");
        return;
    }
    bench_child(line, sizeof line, args);
    bench_fact(bench, "tf.data service", "%s", line);
}

/* `more`: of the worker, or NULL. */
static struct service start_service(const char *more)
{
    struct service s = {.dispatcher =
                            start(0, "dispatcher", "--listen", "127.0.0.1:0", NULL)};

    s.worker = start(0, "worker", "--dispatcher", s.dispatcher.address, more);
    return s;
}

/* The same with TLS. Without the command openssl there is none: false. */
static bool start_secure(struct service *ret_service)
{
    static char cert[4096];
    char key[4096], command[9000];

    bench_path(cert, sizeof cert, "service-tls.crt");
    bench_path(key, sizeof key, "service-tls.key");
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
             "-keyout %s -out %s -subj /CN=bench -days 2 -addext "
             "subjectAltName=IP:127.0.0.1 >/dev/null 2>&1",
             key, cert);
    if (system(command) != 0)
        return false;
    setenv("HEADRACE_TLS_CERT", cert, 1);
    setenv("HEADRACE_TLS_KEY", key, 1);
    setenv("HEADRACE_TLS_CA", cert, 1);
    *ret_service = start_service("--tcp-only");
    ret_service->ca = cert;
    unsetenv("HEADRACE_TLS_CERT");
    unsetenv("HEADRACE_TLS_KEY");
    unsetenv("HEADRACE_TLS_CA");
    return true;
}

static void stop_service(const struct service *service)
{
    stop(&service->worker);
    stop(&service->dispatcher);
}

static void
measure(struct bench *bench, const struct what *what, const struct service *tcp,
        const struct service *shared, const struct service *tls)
{
    bench_group(bench, what->group);
    bare(bench, "bare TCP stream", what, false, false);
    if (what->file != NULL)
        bare(bench, "bare, made", what, true, false);
    run(bench, "service, TCP", what, tcp);
    if (tls->ca != NULL) {
        bare(bench, "bare TLS stream", what, false, true);
        run(bench, "service, TLS", what, tls);
    }
    bare_shared(bench, "bare shared memory", what);
    run(bench, "service, shared memory", what, shared);
    run(bench, "the worker's graph alone", what, NULL);
}

static void claims(struct bench *bench, bool secured)
{
    bench->group = images.group;
    bench_claim_ratio(bench, "bare stream / service, batches", "bare TCP stream",
                      "service, TCP", false, true, 0.9);
    bench_claim_ratio(bench, "bare stream that makes / service, batches", "bare, made",
                      "service, TCP", false, true, 0.9);
    bench->group = zeros.group;
    bench_claim_ratio(bench, "bare stream / service, one-hot rows", "bare TCP stream",
                      "service, TCP", false, true, 0.9);
    bench_claim_value(bench, "GB/s of one-hot rows through shared memory",
                      1000 / bench_median(bench, "service, shared memory"), true, 18);
    bench_claim_ratio(bench, "bare shared memory / service's, one-hot rows",
                      "bare shared memory", "service, shared memory", false, true, 0.9);
    if (secured) {
        bench_claim_value(bench, "GB/s of one-hot rows through TLS",
                          1000 / bench_median(bench, "service, TLS"), true, 2);
        bench_claim_ratio(bench, "bare TLS stream / service, one-hot rows",
                          "bare TLS stream", "service, TLS", false, true, 0.9);
    }
    bench->group = records.group;
    bench_claim_ratio(bench, "bare stream / service, records", "bare TCP stream",
                      "service, TCP", false, true, 0.9);
    bench->group = spins.group;
    bench_claim_ratio(bench, "one run / each of four equal runs", "one run",
                      "four equal runs, each", false, true, 0.95);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct service tcp, shared, alone, tls = {.ca = NULL};
    double spread[2];
    bool secured;

    bench_init(&bench, argc, argv, "service",
               "the service on one machine: worker and client on a core each, every byte "
               "read by the client",
               unit);
    bench.cpu_heading = "CPU ns";
    pin(1); /* before children, which know the CPUs from here */
    tcp = start_service("--tcp-only");
    shared = start_service(NULL);
    alone = start_service("--keep=0");
    secured = start_secure(&tls);
    for (int i = 0; i < bench.rounds; i++) {
        measure(&bench, &images, &tcp, &shared, &tls);
        measure(&bench, &zeros, &tcp, &shared, &tls);
        measure(&bench, &records, &tcp, &shared, &tls);
        bench_group(&bench, spins.group);
        run_equal(&bench, "one run", 1, &shared);
        run_equal(&bench, "four equal runs, each", RUNS, &shared);
        run_equal(&bench, "four runs that share nothing, each", RUNS, &alone);
    }
    claims(&bench, secured);
    bench_claim_value(&bench, "ms from opening a run to its first record",
                      first_record(tcp.dispatcher.address, spread), false, 10);
    bench_fact(&bench, "first record", "%.1f to %.1f ms", spread[0], spread[1]);
    tf_data(&bench);
    bench_print(&bench);
    stop_service(&tcp);
    stop_service(&shared);
    stop_service(&alone);
    if (secured)
        stop_service(&tls);
    return 0;
}
