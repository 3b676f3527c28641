"""The service with TLS: the same bytes, and what happens with certificates that are wrong."""
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from service_support import LONG, Service, begin, digest, free_port, token_file, wait_until
from support import graph, main, one_line, run, start, temp, test
from tls_support import authority, certificate, key, openssl, own, trusted

numbers = """pipeline:
  - source.range: {n: 3000}
  - order.shuffle: {}
  - batch.stack: {size: 10}
"""
rows = """pipeline:
  - source.range: {n: 240, field: label}
  - tensor.one_hot: {classes: 50000}
  - batch.stack: {size: 16}
"""


def secure(workers=1, options=(), worker_options=()):
    """A service with TLS whose clients on this host use TCP, too."""
    return Service(workers, options=[*own("server"), *options],
                   worker_options=[*own("server"), *trusted(), "--tcp-only", *worker_options])


@test
def tls_gives_the_same_bytes():
    with secure(2) as service:
        for name, text in (("numbers.yaml", numbers), ("rows.yaml", rows)):
            text = graph(name, text)
            assert digest(text, "--service", service.address, *trusted(), "--epochs", 2) == digest(text, "--epochs", 2)


@test
def a_run_with_tls_survives_the_death_of_workers_and_dispatcher():
    text = graph("numbers.yaml", numbers)
    wanted = digest(text, "--epochs", 40)
    with secure(2) as service:
        process = start("run", text, "--digest", "-q", "--epochs", 40, "--service", service.address, *trusted())
        for _ in range(3):
            time.sleep(0.1)
            service.kill_worker(0)
            service.kill_dispatcher()
        out, errors = process.communicate(timeout=LONG)
        assert out.strip() == wanted, errors


@test
def the_token_comes_first_within_tls():
    right, wrong = token_file("right", "r" * 40), token_file("wrong", "w" * 40)
    text = graph("numbers.yaml", numbers)
    with secure(1, ["--token-file", right], ["--token-file", right]) as service:
        words = ["run", text, "-q", "--service", service.address, *trusted()]
        run(*words, "--token-file", right)
        one_line(run(*words, "--token-file", wrong, code=1), "the token is wrong")


@test
def settings_come_from_the_environment_and_from_a_file_too():
    text = graph("numbers.yaml", numbers)
    file = temp / "worker.conf"
    file.write_text(f"tls-cert: {certificate('server')}\ntls-key: {key('server')}\n"
                    f"tls-ca: {authority('ca')}\ntcp-only: yes\n")
    with Service(0, options=own("server")) as service:
        service.workers = [begin("worker", "--dispatcher", service.address, "--config", file)]
        done = run("run", text, "-q", "--digest", "--service", service.address, env={"HEADRACE_TLS_CA": str(authority("ca"))})
        assert done.stdout.strip() == digest(text)
        one_line(run("run", text, "-q", "--service", service.address, code=1), "this side speaks TLS only", "--tls-ca")


@test
def who_speaks_plainly_and_who_does_not_are_told():
    text = graph("numbers.yaml", numbers)
    with secure(0) as service:
        one_line(run("run", text, "-q", "--service", service.address, code=1), "speaks TLS only", "--tls-ca")
        done = run("worker", "--dispatcher", service.address, code=1)
        assert "speaks TLS only" in done.stderr, done.stderr
    with Service(0) as service:
        one_line(run("run", text, "-q", "--service", service.address, *trusted(), code=1), "does not speak TLS", "--tls-cert")


@test
def certificates_that_are_wrong_are_named():
    text = graph("numbers.yaml", numbers)
    wrong = (("expired", {"days": -1}, "has expired"), ("stranger", {"ca": "other"}, "was not signed by a CA"),
             ("elsewhere", {"names": "DNS:gpu1,IP:10.0.0.1"}, "is not for 127.0.0.1"))
    for name, more, message in wrong:
        certificate(name, **more)
        if name == "expired":  # a listener does not start with it
            one_line(run("dispatcher", *own(name), code=2), "expired on", "renew")
            continue
        with Service(0, options=own(name)) as service:
            began = time.monotonic()
            one_line(run("run", text, "-q", "--service", service.address, *trusted(), code=1), "certificate", message)
            done = run("worker", "--dispatcher", service.address, *own("server"), *trusted(), code=1)
            assert message in done.stderr, done.stderr
            assert time.monotonic() - began < LONG


@test
def a_certificate_that_has_expired_since_is_refused():
    text = graph("numbers.yaml", numbers)
    certificate("expired", days=-1)
    listener = start_openssl("expired")
    try:
        done = run("run", text, "-q", "--service", listener.address, *trusted(), code=1)
        one_line(done, "has expired", "renew it")
    finally:
        listener.kill()
        listener.communicate()


def start_openssl(name):
    """openssl's own server, which does not look at dates."""
    port = free_port()
    process = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", certificate(name),
                                "-key", key(name), "-tls1_3", "-quiet"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    process.address = f"127.0.0.1:{port}"

    def listens():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    wait_until(listens)
    return process


@test
def another_name_may_be_expected():
    text = graph("numbers.yaml", numbers)
    other = own("elsewhere", names="DNS:gpu1,IP:10.0.0.1")
    named = [*trusted(), "--tls-name", "gpu1"]
    with Service(1, options=other, worker_options=[*other, *named, "--tcp-only"]) as service:
        run("run", text, "-q", "--service", service.address, *named)
        one_line(run("run", text, "-q", "--service", service.address, *trusted(), "--tls-name", "gpu2", code=1), "is not for gpu2")


@test
def clients_need_a_certificate_where_it_is_asked_for():
    text = graph("numbers.yaml", numbers)
    asks = ["--tls-client-ca", authority("clients")]
    guest = own("guest", ca="clients")
    both = [*own("guest", ca="clients"), *trusted("clients")]
    with Service(1, options=[*own("server"), *asks], worker_options=[*guest, *trusted(), *asks, "--tcp-only"]) as service:
        words = ["run", text, "-q", "--service", service.address]
        one_line(run(*words, *trusted(), code=1), "asks for a certificate", "--tls-cert")
        one_line(run(*words, *trusted(), *own("server"), code=1), "does not trust the CA")
        one_line(run(*words, *both, code=1), "was not signed by a CA")
    with Service(1, options=[*own("server"), *asks], worker_options=[*own("guest", ca="clients"), *trusted(), "--tcp-only"]) as service:
        bundle = temp / "bundle.crt"  # the worker's certificate is of the other CA
        bundle.write_text(authority("ca").read_text() + authority("clients").read_text())
        assert digest(text, "--service", service.address, "--tls-ca", bundle, *guest) == digest(text)
    process = begin_anywhere("dispatcher", *own("server"), *asks)  # needs no token
    process.kill()
    process.communicate()


def begin_anywhere(*words):
    process = start(*words, "--listen", "0.0.0.0:0")
    line = process.stdout.readline()
    assert "listens at 0.0.0.0:" in line, line + process.stderr.read()
    return process


@test
def files_are_checked_at_the_start():
    certificate("server")
    for words, parts in (
        (["--tls-cert", temp / "server.crt"], ["--tls-key"]),
        (["--tls-cert", temp / "nowhere", "--tls-key", key("server")], ["nowhere"]),
        (["--tls-cert", key("server"), "--tls-key", key("server")], ["server.key", "no certificate in PEM format"]),
        (["--tls-cert", certificate("server"), "--tls-key", key("ca")], ["does not belong to the certificate"]),
        (["--tls-cert", certificate("server"), "--tls-key", certificate("server")], ["no private key in PEM format"]),
        (["--tls-client-ca", authority("ca")], ["--tls-cert"]),
        ([*own("server"), "--control", "0.0.0.0:0", "--token-file", token_file("right", "r" * 40)], ["control port has no TLS"]),
    ):
        one_line(run("dispatcher", *words, code=2), *parts)
    locked = temp / "locked.key"
    openssl("pkey", "-in", key("server"), "-aes256", "-passout", "pass:secret", "-out", locked)
    one_line(run("dispatcher", "--tls-cert", certificate("server"), "--tls-key", locked, code=2), "passphrase", "openssl pkey")
    one_line(run("worker", "--dispatcher", "127.0.0.1:1", *own("server"), code=2), "--tls-ca")
    one_line(run("run", graph("numbers.yaml", numbers), "-q", "--service", "127.0.0.1:1", *own("server"), code=2), "--tls-ca")


@test
def a_full_dispatcher_with_tls_makes_a_run_wait():
    text = graph("numbers.yaml", numbers)
    with secure(1, ["--peers", 2]) as service:
        first = start("run", text, "-q", "--epochs", 1000000, "--service", service.address, *trusted())
        wait_until(lambda: service_is_full(service))
        second = start("run", text, "-q", "--digest", "--service", service.address, *trusted())
        time.sleep(0.3)
        assert second.poll() is None, second.communicate()
        first.terminate()
        first.communicate()
        out, errors = second.communicate(timeout=LONG)
        assert out.strip() == digest(text), errors


@test
def half_a_handshake_is_closed_in_time():
    with Service(0, options=[*own("server"), "--hello-timeout", 1]) as service:
        host, port = service.address.split(":")
        for said in (b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
            with socket.create_connection((host, int(port)), timeout=LONG) as silent:
                silent.sendall(said)
                try:
                    assert silent.recv(100) == b""
                except ConnectionResetError:
                    pass


def service_is_full(service):
    """Whether a connection is answered by an alert."""
    host, port = service.address.split(":")
    with socket.create_connection((host, int(port))) as s:
        s.settimeout(0.5)
        try:
            return s.recv(16)[:1] == b"\x15"
        except (TimeoutError, ConnectionError):
            return False


main()
